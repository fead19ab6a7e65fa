//! Small losses, nested dropout and the noise rate: against their definitions, and whole objectives against PyTorch
//! (`golden/small.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::tensor::{Device, Tensor, TensorData};
use negscale_audit::ledger::Ledger;
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::host::{Facts, ItemKind, KnownNoise, Protocol};
use negscale_methods::hosts::parts::Rate;
use negscale_methods::kit::loss::{cross_entropy, cross_entropy_rows, joint_rows};
use negscale_methods::kit::nested::{choose_width, draw_masks, draw_width, right_by_width};
use negscale_methods::kit::small_loss::{easiest, forget_rate, mean_of, pick};
use negscale_nets::values;
use negscale_nets::{Classifier, Input, NetSpec, Network, Pass, Samples};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    ramp: Ramp,
    co_teaching: Pair<CoTeaching>,
    jocor: Pair<Jocor>,
    nct: Pair<Nct>,
}

#[derive(Deserialize)]
struct Ramp {
    rate: f64,
    points: usize,
    rates: Vec<f64>,
}

/// A batch, two networks `x -> W x` and what becomes of them.
#[derive(Deserialize)]
struct Pair<T> {
    rows: usize,
    width: usize,
    classes: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    x: Vec<f32>,
    y: Vec<u32>,
    forget: f64,
    gradients: [Vec<f64>; 2],
    #[serde(flatten)]
    own: T,
}

#[derive(Deserialize)]
struct CoTeaching {
    values: [f64; 2],
}

#[derive(Deserialize)]
struct Jocor {
    weight: f64,
    losses: Vec<f64>,
    value: f64,
}

#[derive(Deserialize)]
struct Nct {
    judged: [usize; 2],
    drawn: usize,
    chosen: [Vec<usize>; 2],
    values: [f64; 2],
    bias: Vec<f32>,
    labels: Vec<u32>,
    right: Vec<usize>,
    best: usize,
    sigma: f64,
    law: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/small.json")).unwrap()
}

fn tensor(values: &[f32], shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

/// Ours in f32 against theirs in f64, to the named part of the largest.
fn close<const D: usize>(what: &str, found: Tensor<D>, wanted: &[f64], within: f64) {
    let found = values(found).unwrap();
    assert_eq!(found.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0f64, |largest, x| largest.max(x.abs()));
    let away = found.iter().zip(wanted).map(|(&ours, theirs)| (f64::from(ours) - theirs).abs() / largest);
    let worst = away.fold(0.0, f64::max);
    assert!(worst < within, "{what}: {worst}");
}

impl<T> Pair<T> {
    fn nets(&self) -> [Tensor<2>; 2] {
        [&self.a, &self.b].map(|net| tensor(net, [self.classes, self.width]).require_grad())
    }

    fn x(&self) -> Tensor<2> {
        tensor(&self.x, [self.rows, self.width])
    }

    /// The gradients of a loss with respect to both networks are those of the file.
    fn compare(&self, loss: &Tensor<1>, nets: &[Tensor<2>; 2]) {
        let gradients = loss.backward();
        for (net, wanted) in nets.iter().zip(&self.gradients) {
            close("gradient", net.grad(&gradients).unwrap(), wanted, 1e-5);
        }
    }
}

fn logits(net: &Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    x.matmul(net.clone().transpose())
}

#[test]
fn the_objective_of_co_teaching_is_that_of_pytorch() {
    let g = golden().co_teaching;
    let nets = g.nets();
    let losses = nets.each_ref().map(|net| cross_entropy_rows(logits(net, g.x()), &g.y));
    let easy = losses.each_ref().map(|losses| easiest(&values(losses.clone()).unwrap(), g.forget).unwrap());
    let [a, b] = losses;
    let (a, b) = (mean_of(a, &easy[1]), mean_of(b, &easy[0]));
    close("values", Tensor::cat(vec![a.clone(), b.clone()], 0), &g.own.values, 1e-6);
    g.compare(&(a + b), &nets);
}

#[test]
fn the_objective_of_jocor_is_that_of_pytorch() {
    let g = golden().jocor;
    let nets = g.nets();
    let [a, b] = nets.each_ref().map(|net| logits(net, g.x()));
    let losses = joint_rows(a, b, &g.y, g.own.weight);
    close("losses", losses.clone(), &g.own.losses, 1e-6);
    let kept = easiest(&values(losses.clone()).unwrap(), g.forget).unwrap();
    let loss = mean_of(losses, &kept);
    close("value", loss.clone(), &[g.own.value], 1e-6);
    g.compare(&loss, &nets);
}

#[test]
fn the_objective_of_nct_is_that_of_pytorch() {
    let g = golden().nct;
    let nets = g.nets();
    let masked = |x: Tensor<2>, kept: usize| {
        let zeros = Tensor::zeros([x.dims()[0], g.width - kept], &x.device());
        Tensor::cat(vec![x.narrow(1, 0, kept), zeros], 1)
    };
    let rows: Vec<usize> = (0..g.rows).collect();
    let Samples::Rows(x) = pick(&g.x().into(), &rows) else { panic!("rows stay rows") };
    let halves = [&rows[..g.rows / 2], &rows[g.rows / 2..]];
    let labels = |rows: &[usize]| rows.iter().map(|&row| g.y[row]).collect::<Vec<_>>();
    let part = |rows: &[usize], kept: usize| match pick(&x.clone().into(), rows) {
        Samples::Rows(x) => masked(x, kept),
        Samples::Images(_) => panic!("rows stay rows"),
    };
    let mut chosen = Vec::new();
    for net in 0..2 {
        let scores = logits(&nets[net], part(halves[net], g.own.judged[net]));
        let losses = values(cross_entropy_rows(scores, &labels(halves[net]))).unwrap();
        let easy = easiest(&losses, g.forget).unwrap();
        chosen.push(easy.into_iter().map(|at| halves[net][at]).collect::<Vec<_>>());
    }
    assert_eq!(chosen, g.own.chosen);
    let learn = |net: usize| {
        let rows = &chosen[1 - net];
        cross_entropy(logits(&nets[net], part(rows, g.own.drawn)), &labels(rows))
    };
    let (a, b) = (learn(0), learn(1));
    close("values", Tensor::cat(vec![a.clone(), b.clone()], 0), &g.own.values, 1e-6);
    g.compare(&(a + b), &nets);
}

#[test]
fn the_share_to_forget_grows_along_a_line_or_a_power() {
    let Ramp { rate, points, rates } = golden().ramp;
    for (epoch, wanted) in rates.into_iter().enumerate() {
        let found = forget_rate(epoch, rate, points, 1.0);
        assert!((found - wanted).abs() < 1e-12, "epoch {epoch}: {found}, not {wanted}");
    }
    assert_eq!(forget_rate(2, 0.4, 9, 2.0), 0.2, "4 of 8");
    assert_eq!(forget_rate(3, 0.4, 9, 2.0), 0.4, "9 of 8 is all");
    for points in [0, 1] {
        assert_eq!(forget_rate(0, 0.4, points, 1.0), 0.4, "no ramp");
    }
    assert_eq!(forget_rate(7, 0.0, 4, 1.0), 0.0);
}

#[test]
fn at_least_one_sample_is_always_easy() {
    assert_eq!(easiest(&[3.0, 1.0, 2.0], 0.0).unwrap(), [1, 2, 0]);
    assert_eq!(easiest(&[3.0, 1.0, 2.0], 0.4).unwrap(), [1]);
    assert_eq!(easiest(&[3.0, 1.0, 2.0], 1.0).unwrap(), [1]);
    assert!(easiest(&[3.0, f64::NAN], 0.5).is_err());
}

#[test]
fn gradients_come_to_the_rows_of_a_mean_alone() {
    let x = tensor(&[4.0, 1.0, 2.0, 8.0], [4, 1]).require_grad();
    let mean = mean_of(x.clone().squeeze_dim(1), &[2, 0]);
    let gradients = mean.backward();
    assert_eq!(values(mean).unwrap(), [3.0]);
    assert_eq!(values(x.grad(&gradients).unwrap()).unwrap(), [0.5, 0.0, 0.5, 0.0]);
}

#[test]
fn widths_are_drawn_by_their_law() {
    let Nct { sigma, law, .. } = golden().nct.own;
    let mut draw = Draw::new(1, Purpose::Method, 0, 0);
    let count = 60_000;
    let mut seen = vec![0u32; law.len()];
    (0..count).for_each(|_| seen[draw_width(&mut draw, sigma, law.len()) - 1] += 1);
    for (k, (&seen, p)) in seen.iter().zip(law).enumerate() {
        let (found, error) = (f64::from(seen) / f64::from(count), (p * (1.0 - p) / f64::from(count)).sqrt());
        assert!((found - p).abs() < 4.0 * error + 1e-9, "{}: {found}, not {p}", k + 1);
    }
    assert!(
        (0..100).all(|_| draw_width(&mut draw, 1e-3, 64) == 1),
        "a small scale keeps the first channel alone"
    );
    assert!((0..100).any(|_| draw_width(&mut draw, 1e9, 64) > 48), "a large one keeps any number");
    assert_eq!(draw_width(&mut draw, 10.0, 1), 1);
}

#[test]
fn a_coin_decides_which_layer_of_vgg_is_masked_unless_both_are() {
    let image = Input::Image { channels: 3, height: 32, width: 32 };
    let [vgg, other] = ["vgg-19-bn", "cnn-small"]
        .map(|name| Network::build(&NetSpec::new(name, image, 5).scaled(0.1), &Device::flex()).unwrap());
    let mut draw = Draw::new(2, Purpose::Method, 0, 0);
    let mut masks = |net: &Network, both: bool| {
        (0..200).map(|_| draw_masks(&mut draw, 5.0, net, both)).collect::<Vec<_>>()
    };
    let one = masks(&vgg, false);
    let first = one.iter().filter(|keep| keep[0].is_some()).count();
    assert!(
        (70..130).contains(&first) && one.iter().all(|keep| keep[0].is_some() != keep[1].is_some()),
        "{first}"
    );
    let both = masks(&vgg, true);
    assert!(both.iter().all(|keep| keep[0].is_some() && keep[1].is_some()));
    assert!(both.iter().any(|keep| keep[0] != keep[1]), "each has a width of its own");
    for both in [false, true] {
        assert!(masks(&other, both).iter().all(|keep| keep[0].is_none() && keep[1].is_some()));
    }
}

#[test]
fn the_width_is_that_of_the_best_accuracy_and_of_equals_the_smallest() {
    let g = golden().nct;
    let classifier = Classifier { weight: g.a.clone(), bias: g.own.bias.clone(), rectifies: false };
    let right = right_by_width(&g.x, &g.own.labels, &classifier).unwrap();
    assert_eq!(right, g.own.right);
    assert_eq!(choose_width(&right, g.rows), g.own.best);
    assert_eq!(choose_width(&[5, 7, 7, 6], 10), 2);
    assert_eq!(choose_width(&[0, 0], 10), 1);
    // Fifteen hundred channels are worth a gain of two in a hundred samples, but not of one.
    let late = |gain: usize| {
        let mut right = vec![50; 1500];
        right[1499] += gain;
        choose_width(&right, 100)
    };
    assert_eq!([late(1), late(2)], [1, 1500]);
    assert!(right_by_width(&[], &[], &classifier).is_err());
}

/// Some numbers between -1 and 1.
fn noise(count: usize) -> Vec<f32> {
    let mut draw = Draw::new(9, Purpose::Noise, 0, 0);
    (0..count).map(|_| draw.within(-1.0, 1.0) as f32).collect()
}

#[test]
fn a_narrowed_network_says_what_a_pass_with_as_many_channels_says() {
    let image = Input::Image { channels: 3, height: 32, width: 32 };
    for (name, input) in [
        ("mlp", Input::Features(12)),
        ("mlp-bottleneck", Input::Features(12)),
        ("cnn-small", image),
        ("resnet-20", image),
        ("preact-resnet-18", image),
        ("resnet-18", image),
        ("cnn-9", image),
        ("cnn-7", image),
        ("vgg-19-bn", image),
    ] {
        let spec = NetSpec::new(name, input, 5).scaled(0.1).seeded(3);
        let net = Network::build(&spec, &Device::flex()).unwrap();
        let samples: Samples = match input {
            Input::Features(size) => tensor(&noise(4 * size), [4, size]).inner().into(),
            Input::Image { .. } => {
                let data = TensorData::new(noise(4 * 3072), [4, 3, 32, 32]);
                Tensor::<4>::from_data(data, &Device::flex()).into()
            }
        };
        let size = net.feature_size();
        let run = |net: &Network, pass: Pass| net.forward(samples.clone(), &pass).unwrap();
        let whole = run(&net, Pass::evaluate());
        for width in [1, size / 2, size, size + 3] {
            let kept = values(run(&net, Pass::evaluate().keeping(None, Some(width))).logits).unwrap();
            let narrowed = run(&net.clone().narrowed(width).unwrap(), Pass::evaluate());
            assert_eq!(values(narrowed.logits).unwrap(), kept, "{name} {width}");
            assert_eq!(values(narrowed.features).unwrap(), values(whole.features.clone()).unwrap());
        }
        // What the first channels say by themselves is counted as the network would say it.
        let rows = values(whole.features.clone()).unwrap();
        let counted = |width: usize| {
            let said = values(run(&net, Pass::evaluate().keeping(None, Some(width))).logits).unwrap();
            let is_first =
                |row: &&[f32]| (0..5).all(|c| if c < 2 { row[c] < row[2] } else { row[c] <= row[2] });
            said.chunks(5).filter(is_first).count()
        };
        let right = right_by_width(&rows, &[2; 4], &net.classifier().unwrap()).unwrap();
        assert_eq!(right.len(), size);
        for width in [1, size / 2, size] {
            assert_eq!(right[width - 1], counted(width), "{name} {width}");
        }
    }
}

#[test]
fn nested_dropout_takes_the_place_of_a_networks_own() {
    let spec = NetSpec::new("cnn-9", Input::Image { channels: 3, height: 32, width: 32 }, 4).scaled(0.1);
    let net = Network::build(&spec, &Device::flex()).unwrap();
    let images = Tensor::<4>::from_data(TensorData::new(noise(2 * 3072), [2, 3, 32, 32]), &Device::flex());
    let run = |pass: Pass| values(net.forward(images.clone(), &pass).unwrap().logits).unwrap();
    assert_ne!(run(Pass::frozen(1, 0)), run(Pass::frozen(1, 1)), "it drops channels");
    let kept = |step: u64| run(Pass::frozen(1, step).keeping(None, Some(3)));
    assert_eq!(kept(0), kept(1));
}

fn facts(wrong_share: Option<f64>) -> Facts {
    let noise = match wrong_share {
        Some(_) => KnownNoise::Asymmetric(0.4),
        None => KnownNoise::Unknown,
    };
    Facts { kind: ItemKind::Images, classes: 10, samples: 1000, epochs: 20, batch: 64, noise, wrong_share }
}

#[test]
fn a_noise_rate_is_estimated_known_or_given() {
    let (blind, tuned) = (Protocol::Blind, Protocol::Tuned);
    let known = facts(Some(0.21));
    assert_eq!(Rate::Estimate.settle(blind, &known).unwrap(), Rate::Estimate, "blind looks at nothing");
    assert_eq!(
        Rate::Estimate.settle(tuned, &known).unwrap(),
        Rate::Share(0.21),
        "the actual one, not the nominal"
    );
    assert_eq!(Rate::Known.settle(blind, &known).unwrap(), Rate::Share(0.21));
    assert_eq!(Rate::Share(0.3).settle(tuned, &known).unwrap(), Rate::Share(0.3), "what is given holds");
    assert_eq!(Rate::Estimate.settle(tuned, &facts(None)).unwrap(), Rate::Estimate);
    let message = Rate::Known.settle(blind, &facts(None)).unwrap_err().to_string();
    assert!(message.contains("rate") && message.contains("estimate"), "{message}");
    for share in [-0.1, 1.1, f64::NAN] {
        assert!(Rate::Share(share).settle(blind, &known).unwrap_err().to_string().contains("from 0 to 1"));
    }
}

#[test]
fn a_noise_rate_is_written_and_read_as_a_word_or_a_number() {
    #[derive(serde::Serialize, Deserialize, PartialEq, Debug)]
    struct Holder {
        rate: Rate,
    }
    for (text, rate) in [
        ("rate = \"estimate\"", Rate::Estimate),
        ("rate = \"known\"", Rate::Known),
        ("rate = 0.4", Rate::Share(0.4)),
        ("rate = 1", Rate::Share(1.0)),
    ] {
        let read: Holder = toml::from_str(text).unwrap();
        assert_eq!(read.rate, rate);
        assert_eq!(toml::from_str::<Holder>(&toml::to_string(&read).unwrap()).unwrap(), read);
    }
    for text in ["rate = \"knwon\"", "rate = true", "rate = []"] {
        let message = toml::from_str::<Holder>(text).unwrap_err().to_string();
        assert!(message.contains("\"estimate\", \"known\" or a number"), "{message}");
    }
}

/// Predictions sure of a class, and labels of which every fifth differs.
#[test]
fn the_estimate_is_what_confident_predictions_count() {
    let given: Vec<u32> = (0..200).map(|i| if i % 5 == 0 { (i + 1) % 4 } else { i % 4 }).collect();
    let mut ledger = Ledger::new(&given, 4, 3).unwrap();
    assert_eq!(Rate::Estimate.now(&ledger).unwrap(), 0.0, "nobody has looked yet");
    let row = |i: u32| (0..4).map(move |c| if c == i % 4 { 0.91 } else { 0.03 });
    let predictions: Vec<f32> = (0..200).flat_map(row).collect();
    ledger.record_predictions(&predictions, false).unwrap();
    assert!((Rate::Estimate.now(&ledger).unwrap() - 0.2).abs() < 1e-9);
    assert_eq!(Rate::Share(0.7).now(&ledger).unwrap(), 0.7);
}
