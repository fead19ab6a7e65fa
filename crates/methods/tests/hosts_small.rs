//! Co-teaching, JoCoR and NCT beyond what every method must keep to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod house;

use burn::tensor::{Device, Tensor, TensorData};
use house::{
    clouds, finish, is_sound, known_noise, long_run, picture_settings, pictures, settings, task, weights,
};
use negscale_data::{LoaderSettings, NoiseSpec, Order, View};
use negscale_methods::host::{Facts, ItemKind, Protocol};
use negscale_methods::hosts::parts::SmallLossSettings;
use negscale_methods::hosts::{card, jocor};
use negscale_methods::trainer::{EpochEnd, Task, TrainSettings, Trainer};
use negscale_nets::optim::{Optimiser, OptimiserSettings, Sgd};
use negscale_nets::schedule::Schedule;
use negscale_nets::values;
use negscale_nets::{self, Network, Output, Pass};
use std::sync::atomic::Ordering::Relaxed;

const ALL: [&str; 3] = ["co-teaching", "jocor", "nct"];
const NOISE: &str = "sym-exact:0.4";
const BATCH: usize = 50;
const FORGET: f64 = 0.4;
const LAMBDA: f64 = 0.7;

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

fn plain_steps() -> OptimiserSettings {
    Sgd { lr: 0.5, momentum: 0.0, nesterov: false, weight_decay: 0.0, decay_norms: true }.into()
}

/// A run of plain steps on all samples as they are.
fn simple(host: &str, text: &str) -> TrainSettings {
    TrainSettings {
        host_settings: table(text),
        batch: BATCH,
        validation: 0.0,
        optimiser: plain_steps(),
        schedule: Schedule::default(),
        ..settings(host)
    }
}

/// One step of a batch, as the trainer takes it and by hand.
struct Step {
    before: [Network; 2],
    after: [Network; 2],
    x: Tensor<2>,
    given: Vec<u32>,
}

impl Step {
    fn take(host: &str, text: &str) -> Self {
        let settings = simple(host, text);
        let (task, seed) = (task(200, NOISE), settings.seed);
        let loading = LoaderSettings { seed, threads: 1, ..LoaderSettings::default() };
        let loader = task.preparation.loader(&task.train, loading).unwrap();
        let loader = loader.showing(vec![View::Plain], BATCH, true).unwrap();
        let first = loader.epoch(0, &Order::Shuffled { passes: 1 }).unwrap().next().unwrap().unwrap();
        let shape = [BATCH, first.views[0].len() / BATCH];
        let x =
            Tensor::from_data(TensorData::new(first.views[0].to_vec(), shape), &Device::flex().autodiff());
        let mut trainer = Trainer::new(task, settings).unwrap();
        let nets = |trainer: &Trainer| [0, 1].map(|net| trainer.networks().net(net).clone());
        let before = nets(&trainer);
        let flag = trainer.stop_flag();
        trainer.epoch(|_| flag.store(true, Relaxed)).unwrap();
        assert_eq!(trainer.batches_done(), 1);
        Self { before, after: nets(&trainer), x, given: first.given.clone() }
    }

    fn rows(&self, rows: &[usize]) -> Tensor<2> {
        Tensor::cat(rows.iter().map(|&row| self.x.clone().narrow(0, row, 1)).collect(), 0)
    }

    fn run(&self, net: usize, rows: &[usize], pass: Pass) -> Output {
        self.before[net].forward(self.rows(rows), &pass).unwrap()
    }

    /// -log p(given) of these rows, by the definition.
    fn losses(&self, logits: Tensor<2>, rows: &[usize]) -> Tensor<1> {
        let classes = logits.dims()[1];
        let p = burn::tensor::activation::softmax(logits, 1);
        let pick = |(at, &row): (usize, &usize)| {
            p.clone().slice([at..at + 1, 0..classes]).narrow(1, self.given[row] as usize, 1).reshape([1])
        };
        -Tensor::cat(rows.iter().enumerate().map(pick).collect(), 0).log()
    }

    /// The networks after a step along this loss, against those of the trainer: the largest difference of weights, by network.
    fn away(&self, loss: Tensor<1>) -> [f32; 2] {
        let mut gradients = loss.backward();
        [0, 1].map(|net| {
            let mut optimiser = Optimiser::new(plain_steps()).unwrap();
            let stepped = optimiser.step(self.before[net].clone(), &mut gradients);
            let read = |net: &Network| net.read().unwrap().into_iter().flat_map(|(_, values)| values);
            let largest = read(&stepped).zip(read(&self.after[net])).map(|(a, b)| (a - b).abs());
            let moved = read(&stepped).zip(read(&self.before[net])).map(|(a, b)| (a - b).abs());
            assert!(moved.fold(0.0, f32::max) > 1e-3, "a step goes somewhere");
            largest.fold(0.0, f32::max)
        })
    }
}

/// Numbers of the smallest losses.
fn smallest(losses: Tensor<1>, count: usize) -> Vec<usize> {
    let losses = values(losses).unwrap();
    let mut order: Vec<usize> = (0..losses.len()).collect();
    order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
    order.truncate(count);
    order
}

fn mean_at(losses: &Tensor<1>, rows: &[usize]) -> Tensor<1> {
    rows.iter().map(|&row| losses.clone().narrow(0, row, 1)).reduce(|a, b| a + b).unwrap() / rows.len() as f64
}

const CLOSE: f32 = 2e-6;

#[test]
fn a_step_of_co_teaching_is_along_what_the_peer_finds_easy() {
    let step = Step::take("co-teaching", "rate = 0.4\nramp = 0");
    let all: Vec<usize> = (0..BATCH).collect();
    let kept = 30;
    let losses = [0, 1].map(|net| step.losses(step.run(net, &all, Pass::train(0, 0)).logits, &all));
    let easy = losses.each_ref().map(|losses| smallest(losses.clone(), kept));
    assert_ne!(easy[0], easy[1]);
    let away = step.away(mean_at(&losses[0], &easy[1]) + mean_at(&losses[1], &easy[0]));
    assert!(away.iter().all(|&away| away < CLOSE), "{away:?}");
    let losses = [0, 1].map(|net| step.losses(step.run(net, &all, Pass::train(0, 0)).logits, &all));
    let own = step.away(mean_at(&losses[0], &easy[0]) + mean_at(&losses[1], &easy[1]));
    assert!(own.iter().all(|&away| away > 100.0 * CLOSE), "its own choice is another step: {own:?}");
}

#[test]
fn a_step_of_jocor_is_along_one_loss_of_both() {
    let step = Step::take("jocor", "rate = 0.4\nramp = 0\nlambda = 0.7");
    let all: Vec<usize> = (0..BATCH).collect();
    let logits = [0, 1].map(|net| step.run(net, &all, Pass::train(0, 0)).logits);
    let fit = step.losses(logits[0].clone(), &all) + step.losses(logits[1].clone(), &all);
    let [p, q] = logits.map(|logits| burn::tensor::activation::softmax(logits, 1));
    let apart = (p.clone() * (p.clone() / q.clone()).log() + q.clone() * (q / p).log()).sum_dim(1);
    let joint = fit * (1.0 - LAMBDA) + apart.squeeze_dim::<1>(1) * LAMBDA;
    let kept = smallest(joint.clone(), 30);
    let away = step.away(mean_at(&joint, &kept));
    assert!(away.iter().all(|&away| away < CLOSE), "{away:?}");
}

#[test]
fn a_step_of_nct_together_is_along_what_the_peer_keeps_of_its_half() {
    // So small a scale always draws a width of 1.
    let step = Step::take("nct", "rate = 0.4\nalone = 0\nsigma = 0.001\nview = \"plain\"");
    let halves = [(0..BATCH / 2).collect::<Vec<_>>(), (BATCH / 2..BATCH).collect()];
    let kept = ((1.0 - FORGET) * (BATCH / 2) as f64) as usize;
    let chosen = [0, 1].map(|net| {
        let logits = step.run(net, &halves[net], Pass::evaluate()).logits;
        let easy = smallest(step.losses(logits, &halves[net]), kept);
        easy.into_iter().map(|at| halves[net][at]).collect::<Vec<_>>()
    });
    let learn = |net: usize, rows: &[usize]| {
        let logits = step.run(net, rows, Pass::train(0, 0).keeping(None, Some(1))).logits;
        step.losses(logits, rows).mean()
    };
    let away = step.away(learn(0, &chosen[1]) + learn(1, &chosen[0]));
    assert!(away.iter().all(|&away| away < CLOSE), "{away:?}");
    let own = step.away(learn(0, &chosen[0]) + learn(1, &chosen[1]));
    assert!(own.iter().all(|&away| away > 100.0 * CLOSE), "its own half is another step: {own:?}");
}

fn bits(net: &Network) -> Vec<u32> {
    net.read().unwrap().into_iter().flat_map(|(_, values)| values).map(f32::to_bits).collect()
}

fn finished(settings: TrainSettings) -> Trainer {
    let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
    finish(&mut trainer);
    trainer
}

#[test]
fn where_nothing_is_forgotten_each_network_learns_by_cross_entropy_alone() {
    let alone = finished(simple("cross-entropy", "view = \"plain\""));
    let pair = finished(simple("co-teaching", "rate = 0.0"));
    assert_eq!(bits(alone.networks().net(0)), bits(pair.networks().net(0)));
    assert_ne!(bits(alone.networks().net(0)), bits(pair.networks().net(1)), "the second begins elsewhere");
    let joint = finished(simple("jocor", "rate = 0.0\nlambda = 0.0"));
    assert_eq!(
        weights(&pair),
        weights(&joint),
        "without agreement the joint loss is the summed cross-entropy"
    );
    let agreeing = finished(simple("jocor", "rate = 0.0\nlambda = 0.5"));
    assert_ne!(weights(&pair), weights(&agreeing));
}

#[test]
fn the_share_forgotten_follows_its_ramp_and_is_what_the_ledger_says() {
    for (host, parts) in [("co-teaching", 8.0), ("jocor", 4.0)] {
        let mut run = simple(host, "rate = \"known\"\nramp = 3");
        run.epochs = 4;
        let mut trainer = Trainer::new(task(200, NOISE), run).unwrap();
        let mut records = Vec::new();
        while let EpochEnd::Finished(record) = trainer.epoch(|_| {}).unwrap() {
            records.push(*record);
            let said = trainer.ledger().unwrap().clean(0).is_some();
            assert_eq!(said, records.len() > 1, "the first epoch forgets nothing");
            if trainer.is_finished() {
                break;
            }
        }
        let noted = |name: &str| records.iter().map(|record| record.more[name]).collect::<Vec<_>>();
        let wrong = noted("noise rate assumed")[0];
        assert!((wrong - 0.4).abs() < 0.011, "{wrong}");
        for (found, share) in noted("share forgotten").into_iter().zip([0.0, 0.5, 1.0, 1.0]) {
            assert!((found - share * wrong).abs() < 1e-9, "{host}: {found}");
        }
        let ledger = trainer.ledger().unwrap();
        let clean: Vec<f64> = (0..200).map(|i| f64::from(ledger.clean(i).unwrap())).collect();
        assert!(clean.iter().all(|w| (w * parts).fract() == 0.0), "three epochs of votes: {clean:?}");
        let kept = clean.iter().sum::<f64>() / 200.0;
        let wanted = 1.0 - (0.25 * 0.5 + 0.25 + 0.5) * wrong;
        assert!((kept - wanted).abs() < 0.03, "{host}: {kept}, not {wanted}");
    }
}

#[test]
fn an_estimated_rate_comes_near_the_actual_one() {
    for host in ALL {
        let mut trainer =
            Trainer::new(task(600, NOISE), TrainSettings { epochs: 8, ..settings(host) }).unwrap();
        let last = finish(&mut trainer).pop().unwrap();
        let rate = last.more["noise rate assumed"];
        assert!((rate - 0.4).abs() < 0.1, "{host}: {rate}");
    }
}

#[test]
fn a_rate_that_cannot_be_known_is_refused() {
    for host in ALL {
        let with = |rate: &str| {
            let task = Task { train: clouds(200, 1), noise: NoiseSpec::None, ..task(200, NOISE) };
            Trainer::new(task, TrainSettings { host_settings: table(rate), ..settings(host) })
        };
        let message = with("rate = \"known\"").err().unwrap().to_string();
        assert!(message.contains("`rate`") && message.contains("estimate"), "{host}: {message}");
        assert!(with("rate = \"estimate\"").is_ok());
    }
}

#[test]
fn each_beats_cross_entropy_that_has_memorised_wrong_labels() {
    let plain = long_run("cross-entropy", "view = \"plain\"");
    for host in ALL {
        let found = long_run(host, "");
        assert!(found.accuracy > plain.accuracy + 0.02, "{host}: {found:?}, cross-entropy {plain:?}");
        assert!(found.by_heart < plain.by_heart, "{host}: {found:?}, cross-entropy {plain:?}");
    }
}

/// Weights of the classifier by channel: a column for every channel of the features.
fn columns(net: &Network) -> Vec<Vec<f32>> {
    let (weight, size) = (net.classifier().unwrap().weight, net.feature_size());
    (0..size).map(|j| weight.chunks(size).map(|row| row[j]).collect()).collect()
}

#[test]
fn with_one_channel_drawn_no_other_ever_learns() {
    let run = simple("nct", "sigma = 0.001\nalone = 1.0");
    let begin = Trainer::new(task(200, NOISE), run.clone()).unwrap();
    let end = finished(run);
    for net in 0..2 {
        let [before, after] = [&begin, &end].map(|trainer| columns(trainer.networks().net(net)));
        assert_ne!(before[0], after[0]);
        assert_eq!(before[1..], after[1..]);
    }
    let ledger = end.ledger().unwrap();
    assert!((0..200).all(|i| ledger.clean(i).is_none()), "alone, nobody says which labels are clean");
}

#[test]
fn the_saved_model_judges_by_the_channels_that_were_chosen() {
    let mut narrower = 0;
    for seed in 1..=3 {
        let task = task(400, NOISE);
        let test = task.test.clone().unwrap();
        let mut trainer = Trainer::new(task, TrainSettings { seed, ..settings("nct") }).unwrap();
        let last = finish(&mut trainer).pop().unwrap();
        let model = trainer.model(Default::default()).unwrap();
        for (net, saved) in model.nets().iter().enumerate() {
            let width = trainer.networks().widths()[net].unwrap();
            assert_eq!(last.more[&format!("channels of net {}", net + 1)], width as f64);
            narrower += usize::from(width < saved.feature_size());
            let columns = columns(saved);
            assert!(columns[..width].iter().flatten().all(|&w| w != 0.0));
            assert!(columns[width..].iter().flatten().all(|&w| w == 0.0));
        }
        assert_eq!(model.evaluate(&test, 1).unwrap().top_1(), last.test_accuracy.unwrap());
    }
    assert!(narrower > 0, "a test of something");
}

fn of_pictures(host: &str, text: &str) -> Trainer {
    let settings = picture_settings(host);
    let (plugin, host_settings) = ("negscale".into(), table(text));
    Trainer::new(pictures(), TrainSettings { plugin, host_settings, epochs: 2, ..settings }).unwrap()
}

#[test]
fn plug_ins_of_nct_may_see_the_channels_alone_that_reach_the_classifier() {
    let run = |masked: bool| {
        let mut trainer = of_pictures("nct", &format!("alone = 1\nrate = 0.3\nmasked_tap = {masked}"));
        let last = finish(&mut trainer).pop().unwrap();
        assert!(last.losses.contains_key("snop-global") && is_sound(&trainer), "{last:?}");
        weights(&trainer)
    };
    assert_ne!(run(false), run(true));
}

#[test]
fn norms_are_frozen_together_and_only_together() {
    let mut trainer = of_pictures("nct", "alone = 1\nrate = 0.2");
    let mut seen = vec![[0, 1].map(|net| trainer.networks().net(net).read().unwrap())];
    while !trainer.is_finished() {
        trainer.epoch(|_| {}).unwrap();
        seen.push([0, 1].map(|net| trainer.networks().net(net).read().unwrap()));
    }
    for net in 0..2 {
        for ((begin, alone), together) in seen[0][net].iter().zip(&seen[1][net]).zip(&seen[2][net]) {
            assert_ne!(begin.1, alone.1, "{}", begin.0.path);
            let is_norm = matches!(
                begin.0.kind,
                negscale_nets::ParameterKind::Norm | negscale_nets::ParameterKind::Buffer
            );
            assert_eq!(alone.1 == together.1, is_norm, "{}", begin.0.path);
        }
    }
}

fn facts(classes: usize, noise: &str) -> Facts {
    let noise = known_noise(noise);
    Facts {
        kind: ItemKind::Images,
        classes,
        samples: 1000,
        epochs: 200,
        batch: 128,
        noise,
        wrong_share: Some(0.2),
    }
}

#[test]
fn tuned_settings_are_the_published_ones() {
    let small_loss = SmallLossSettings { protocol: Protocol::Tuned, ..SmallLossSettings::default() };
    let tuned = jocor::Settings { small_loss, ..jocor::Settings::default() };
    for (classes, noise, lambda) in [
        (10, "sym-excl:0.2", 0.9),
        (10, "sym-excl:0.5", 0.9),
        (10, "sym-excl:0.8", 0.65),
        (10, "asym-map:0.4", 0.9),
        (10, "cifarn:worse", 0.9),
        (100, "sym-excl:0.8", 0.85),
        (100, "cifarn:fine", 0.85),
    ] {
        let found = tuned.clone().checked(&facts(classes, noise)).unwrap();
        assert_eq!(found.lambda, lambda, "{classes} {noise}");
        assert_eq!(
            found.small_loss.rate,
            negscale_methods::hosts::parts::Rate::Share(0.2),
            "the rate is known"
        );
    }
    let blind = jocor::Settings::default();
    assert_eq!(blind.clone().checked(&facts(100, "sym-excl:0.8")).unwrap(), blind, "blind looks at nothing");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    for (host, text, name) in [
        ("co-teaching", "rate = 1.5", "rate"),
        ("co-teaching", "rate = \"knwon\"", "estimate"),
        ("co-teaching", "ramp = 1.5", "ramp"),
        ("co-teaching", "exponent = 0.0", "exponent"),
        ("jocor", "lambda = 1.0", "lambda"),
        ("jocor", "rate = -0.1", "rate"),
        ("nct", "rate = nan", "rate"),
        ("nct", "sigma = -1.0", "sigma"),
        ("nct", "alone = 2.0", "alone"),
    ] {
        let error = (card(host).unwrap().build)(&table(text), &facts(10, "none")).err().unwrap();
        assert!(error.to_string().contains(name), "{host} {text}: {error}");
    }
    let small = Facts { batch: 1, ..facts(10, "none") };
    assert!((card("nct").unwrap().build)(&table(""), &small).is_err());
}
