//! The networks of a method and how they are run.

use crate::{Error, Result};
use burn::module::Module;
use burn::tensor::{Gradients, Tensor};
use negscale_nets::optim::Optimiser;
use negscale_nets::{Network, Output, Pass, Samples};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A network with its optimiser.
#[derive(Debug)]
struct Learner {
    /// There but for the moment of its update.
    net: Option<Network>,
    optimiser: Optimiser,
    /// For steps that only the classifier takes.
    classifier: Optimiser,
    /// How many channels of its features it is judged by, if not all.
    width: Option<usize>,
}

/// The networks of a method.
#[derive(Debug)]
pub struct Networks {
    learners: Vec<Learner>,
    seed: u64,
    /// Passes in training mode so far: each draws dropout masks of its own.
    passes: AtomicU64,
}

impl Networks {
    pub(crate) fn new(nets: Vec<Network>, optimiser: &Optimiser, seed: u64) -> Self {
        let learner = |net: Network| {
            let classifier = optimiser.clone().only([net.classifier_path()]);
            Learner { net: Some(net), optimiser: optimiser.clone(), classifier, width: None }
        };
        Self { learners: nets.into_iter().map(learner).collect(), seed, passes: AtomicU64::new(0) }
    }

    /// How many networks.
    pub fn len(&self) -> usize {
        self.learners.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.learners.is_empty()
    }

    /// A network.
    ///
    /// # Panics
    /// If there is no such network: a host asks for as many as its card says.
    pub fn net(&self, number: usize) -> &Network {
        match &self.learners[number].net {
            Some(net) => net,
            None => unreachable!("a network is away only while it is updated"),
        }
    }

    /// A network as it is evaluated and saved: with a classifier that sees only the first channels of the features, if a host wants that.
    pub fn for_evaluation(&self, number: usize) -> Result<Cow<'_, Network>> {
        let net = self.net(number);
        match self.learners[number].width {
            Some(width) if width < net.feature_size() => Ok(Cow::Owned(net.clone().narrowed(width)?)),
            _ => Ok(Cow::Borrowed(net)),
        }
    }

    /// A pass of training: with gradients, batch statistics move the running ones, dropout on.
    pub fn train(&self, net: usize, samples: &Samples) -> Result<Output> {
        Ok(self.net(net).forward(samples.clone(), &self.next_pass(net))?)
    }

    /// Passes of [training](Self::train) over several batches; rows one batch after the other. Where samples cannot notice each
    /// other (no batch norm) it is a single pass, which is faster.
    pub fn train_each(&self, net: usize, batches: Vec<Samples>) -> Result<Output> {
        if !self.net(net).mixes_samples() {
            return self.train(net, &Samples::join(batches));
        }
        let outputs = batches.iter().map(|samples| self.train(net, samples)).collect::<Result<Vec<_>>>()?;
        let (features, logits) = outputs.into_iter().map(|out| (out.features, out.logits)).unzip();
        Ok(Output { features: Tensor::cat(features, 0), logits: Tensor::cat(logits, 0) })
    }

    /// As [`train`](Self::train) with the gradient cut off, as published code does it under `no_grad` with the network in
    /// training mode.
    pub fn guess(&self, net: usize, samples: &Samples) -> Result<Tensor<2>> {
        let logits = self.train(net, samples)?.logits.detach();
        self.net(net).without_way_back(samples.len());
        Ok(logits)
    }

    /// As [`train`](Self::train), leaving no trace: running statistics stay, and the masks of later passes are as without it.
    /// For passes that are for plug-ins only.
    pub fn rehearse(&self, net: usize, samples: &Samples) -> Result<Output> {
        let pass = Pass::rehearse(!self.stream(net), self.passes());
        Ok(self.net(net).forward(samples.clone(), &pass)?)
    }

    /// A pass in evaluation mode without gradients: how a peer is asked.
    pub fn watch(&self, net: usize, samples: &Samples) -> Result<Output> {
        let pass = Pass::evaluate().keeping(None, self.learners[net].width);
        let out = self.net(net).valid().forward(inner(samples.clone()), &pass)?;
        Ok(Output { features: Tensor::from_inner(out.features), logits: Tensor::from_inner(out.logits) })
    }

    /// The projection of features that a peer has [made](Self::watch), without gradients.
    pub fn watch_projection(&self, net: usize, features: Tensor<2>) -> Result<Tensor<2>> {
        let projected = self.net(net).valid().project(features.inner(), &Pass::evaluate())?;
        Ok(Tensor::from_inner(projected))
    }

    /// The pass of the next training step, for what [`train`](Self::train) does not do.
    pub fn next_pass(&self, net: usize) -> Pass {
        Pass::train(self.stream(net), self.passes.fetch_add(1, Relaxed))
    }

    /// Each network drops values of its own.
    fn stream(&self, net: usize) -> u64 {
        self.seed ^ (net as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Sets the pace of all optimisers.
    pub(crate) fn set_pace(&mut self, pace: negscale_nets::optim::Pace) -> Result<()> {
        for Learner { optimiser, classifier, .. } in &mut self.learners {
            optimiser.set_pace(pace)?;
            classifier.set_pace(pace)?;
        }
        Ok(())
    }

    /// A step of these networks along their gradients.
    pub(crate) fn step(&mut self, nets: &[usize], gradients: &mut Gradients) {
        for &number in nets {
            let Learner { net, optimiser, .. } = &mut self.learners[number];
            *net = net.take().map(|net| optimiser.step(net, gradients));
        }
    }

    /// A step of the classifiers of these networks, by optimisers of their own; all other parameters stay.
    pub(crate) fn step_classifiers(&mut self, nets: &[usize], gradients: &mut Gradients) {
        for &number in nets {
            let Learner { net, classifier, .. } = &mut self.learners[number];
            *net = net.take().map(|net| classifier.step(net, gradients));
        }
    }

    /// The optimiser of a network's classifier alone.
    pub(crate) fn classifier(&self, number: usize) -> &Optimiser {
        &self.learners[number].classifier
    }

    pub(crate) fn optimiser(&self, number: usize) -> &Optimiser {
        &self.learners[number].optimiser
    }

    /// How many channels of its features each network is judged by, if not all.
    pub fn widths(&self) -> Vec<Option<usize>> {
        self.learners.iter().map(|learner| learner.width).collect()
    }

    /// Sets the channels that networks are judged by; all channels of those that are not named.
    pub(crate) fn set_widths(&mut self, widths: &[Option<usize>]) {
        let widths = widths.iter().copied().chain(std::iter::repeat(None));
        self.learners.iter_mut().zip(widths).for_each(|(learner, width)| learner.width = width);
    }

    pub(crate) fn passes(&self) -> u64 {
        self.passes.load(Relaxed)
    }

    /// Puts everything back as it was saved.
    pub(crate) fn restore(
        &mut self,
        number: usize,
        mut values: impl FnMut(&str) -> Option<Vec<f32>>,
        state: &negscale_nets::optim::OptimiserState,
        classifier_state: Option<&negscale_nets::optim::OptimiserState>,
    ) -> Result<()> {
        let Learner { net, optimiser, classifier, .. } = &mut self.learners[number];
        if let Some(old) = net.take() {
            let mut missing = None;
            let new = old.replace(|entry| {
                let found = values(&entry.path);
                if found.is_none() {
                    missing.get_or_insert_with(|| entry.path.clone());
                }
                found
            })?;
            if let Some(path) = missing {
                let problem = format!("`{path}` of network {} is missing", number + 1);
                return Err(Error::Checkpoint { origin: "contents".into(), problem });
            }
            optimiser.restore(state, &new)?;
            if let Some(state) = classifier_state {
                classifier.restore(state, &new)?;
            }
            *net = Some(new);
        }
        Ok(())
    }

    pub(crate) fn set_passes(&mut self, passes: u64) {
        self.passes = AtomicU64::new(passes);
    }
}

/// Samples off the autodiff device.
pub(crate) fn inner(samples: Samples) -> Samples {
    match samples {
        Samples::Images(images) => Samples::Images(images.inner()),
        Samples::Rows(rows) => Samples::Rows(rows.inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use negscale_nets::optim::Sgd;
    use negscale_nets::{Input, NetSpec};

    const SHAPE: [usize; 3] = [1, 8, 8];

    fn batch(seed: usize, count: usize) -> Samples {
        let [channels, height, width] = SHAPE;
        let values: Vec<f32> = (0..count * channels * height * width)
            .map(|i| ((i * 31 + seed * 7) % 17) as f32 / 8.0 - 1.0)
            .collect();
        let data = TensorData::new(values, [count, channels, height, width]);
        Tensor::<4>::from_data(data, &Device::flex().autodiff()).into()
    }

    fn networks(name: &str) -> Networks {
        let [channels, height, width] = SHAPE;
        let spec = NetSpec::new(name, Input::Image { channels, height, width }, 3).scaled(0.25);
        let net = Network::build(&spec, &Device::flex().autodiff()).unwrap();
        Networks::new(vec![net], &Optimiser::new(Sgd::default()).unwrap(), 1)
    }

    fn numbers(logits: Tensor<2>) -> Vec<f32> {
        logits.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn batches_shown_together_are_seen_as_if_each_were_alone() {
        for (name, passes) in [("mlp", 1), ("cnn-small", 2), ("resnet-20", 2)] {
            let sets = [batch(1, 5), batch(2, 3)];
            let alone = networks(name);
            let apart: Vec<f32> =
                sets.iter().flat_map(|set| numbers(alone.train(0, set).unwrap().logits)).collect();
            let networks = networks(name);
            let together = networks.train_each(0, sets.to_vec()).unwrap();
            assert_eq!(together.features.dims()[0], 8);
            assert_eq!(numbers(together.logits), apart, "{name}");
            assert_eq!(networks.passes(), passes, "{name}");
        }
    }
}
