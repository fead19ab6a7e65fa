//! A whole training loop with burn, cross-entropy plus NegScale: `cargo run --release --example burn_loop --features flex`

use burn::module::Module;
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{GradientsParams, SgdConfig, momentum::MomentumConfig};
use burn::tensor::{Device, Distribution, Int, Tensor, activation::relu};
use negscale::burn::{Adapter, confidence, labels};
use negscale::{BatchLabels, NegScale, Settings, Taxonomy};

const CLASSES: usize = 8;
const TREE: &str = "
everything
  animal
    pet: cat, dog
    wild: lion, wolf
  vehicle
    road: car, truck
    water: ferry, canoe
";

#[derive(Module, Debug)]
struct Network {
    body: Linear,
    features: Linear,
    head: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        let [body, features, head] = [(20, 64), (64, 32), (32, CLASSES)];
        let init = |(from, to): (usize, usize)| LinearConfig::new(from, to).init(device);
        Self { body: init(body), features: init(features), head: init(head) }
    }

    /// Features, taken before their ReLU so that they can be negative, and logits.
    fn forward(&self, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let features = self.features.forward(relu(self.body.forward(x)));
        (features.clone(), self.head.forward(relu(features)))
    }

    fn accuracy(&self, x: Tensor<2>, targets: Tensor<1, Int>) -> f32 {
        let predicted = self.forward(x).1.argmax(1).flatten::<1>(0, 1);
        predicted.equal(targets).float().mean().into_scalar()
    }
}

/// Points around the centres of the classes, which take turns.
fn points(centres: &Tensor<2>, count: i64) -> (Tensor<2>, Tensor<1, Int>) {
    let targets = Tensor::<1, Int>::arange(0..count, &centres.device()).remainder_scalar(CLASSES as i64);
    let x = centres.clone().select(0, targets.clone());
    (x.random_like(Distribution::Normal(0.0, 2.0)) + x, targets)
}

/// Trains with two labels in five wrong, and returns the accuracy on clean test data before and after.
pub fn train(epochs: usize) -> negscale::Result<(f32, f32)> {
    let device = Device::flex().autodiff();
    device.seed(1);
    // What a class shares with its kingdom, with its group, and what it has alone.
    let share = |kinds: usize| {
        let kind = Tensor::<1, Int>::arange(0..CLASSES as i64, &device).div_scalar((CLASSES / kinds) as i64);
        Tensor::<2>::random([kinds, 20], Distribution::Normal(0.0, 1.0), &device).select(0, kind)
    };
    let centres = share(2) + share(4) + share(8);
    let (x, _) = points(&centres, 2048);
    let given = (0..2048_i64).map(|i| if i % 5 < 2 { (i + 1 + i / 8 % 7) % 8 } else { i % 8 });
    let given = Tensor::<1, Int>::from_data(&given.collect::<Vec<_>>()[..], &device);
    let (test_x, test_targets) = points(&centres, 1024);

    let mut network = Network::new(&device);
    let mut optimiser = SgdConfig::new().with_momentum(Some(MomentumConfig::new())).init();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    let tree = Taxonomy::from_indented("mine", TREE, &[""; 0])?;
    let mut negscale = Adapter::new(NegScale::new(&tree, Settings::default())?);

    let before = network.accuracy(test_x.clone(), test_targets.clone());
    for _ in 0..epochs {
        for start in (0..2048).step_by(128) {
            let rows = start..start + 128;
            let (x, given) = (x.clone().slice(rows.clone()), given.clone().slice(rows));
            let (features, logits) = network.forward(x);
            let loss = cross_entropy.forward(logits.clone(), given.clone());
            let (labels, confidence) = (labels(given)?, confidence(logits)?);
            let extra = negscale.loss(features, &BatchLabels::new(&labels, &confidence))?;
            let gradients = GradientsParams::from_grads((loss + extra.loss).backward(), &network);
            network = optimiser.step(0.02, network, gradients);
        }
    }
    Ok((before, network.accuracy(test_x, test_targets)))
}

fn main() -> negscale::Result<()> {
    let (before, after) = train(20)?;
    println!("accuracy on clean test data: {before:.3} before training, {after:.3} after");
    Ok(())
}
