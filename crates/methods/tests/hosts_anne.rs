//! ANNE: its selection against a literal loop, its loss, and what it is good for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod house;

use burn::tensor::{Device, Tensor};
use house::{finish, known_noise, settings, task, timeless};
use negscale_audit::gmm::{self, CleanSide, GmmSettings};
use negscale_audit::{Audit, FLAG_BELOW};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::Error;
use negscale_methods::host::{Facts, ItemKind, Protocol};
use negscale_methods::hosts::anne::{Settings, consistency};
use negscale_methods::kit::adaptive::{AdaptiveSettings, Selection};
use negscale_methods::trainer::{TrainSettings, Trainer};
use negscale_nets::Scan;
use negscale_nets::optim::{self, Sgd};
use negscale_nets::schedule::{Milestone, Shape};
use negscale_nets::{Heads, Input, NetSpec, Network, Pass, Projection};

const NOISE: &str = "sym-exact:0.4";

/// Three loose bundles of directions, with logits that mostly follow them and labels that often do not.
fn example(samples: usize) -> (Scan, Vec<u32>) {
    let (classes, dim) = (3, 5);
    let mut draw = Draw::new(4, Purpose::Noise, 0, 0);
    let (mut logits, mut features, mut given) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..samples {
        let class = i % classes;
        let push = 6.0 * draw.unit() - 1.0;
        logits.extend((0..classes).map(|c| (if c == class { push } else { draw.normal() }) as f32));
        features.extend((0..dim).map(|j| (if j == class { 1.5 } else { 0.0 } + 0.5 * draw.normal()) as f32));
        given.push(if draw.unit() < 0.4 { (draw.unit() * 3.0) as u32 } else { class as u32 });
    }
    (Scan { classes, logits, dim, features }, given)
}

/// Steps 2 to 6 of the method, sample by sample and cut by cut.
fn literally(
    scan: &Scan,
    given: &[u32],
    rule: &AdaptiveSettings,
    warming_up: bool,
) -> (Vec<u32>, Vec<bool>, Vec<f64>) {
    let (n, classes, dim) = (given.len(), scan.classes, scan.dim);
    let p: Vec<Vec<f64>> = scan
        .logits
        .chunks(classes)
        .map(|z| {
            let e: Vec<f64> = z.iter().map(|&z| f64::from(z).exp()).collect();
            e.iter().map(|x| x / e.iter().sum::<f64>()).collect()
        })
        .collect();
    let best = |row: &[f64]| (0..row.len()).fold(0, |b, c| if row[c] > row[b] { c } else { b });
    let s: Vec<f64> = p.iter().map(|p| p[best(p)]).collect();
    let labels: Vec<u32> =
        (0..n).map(|i| if s[i] > rule.gamma_r { best(&p[i]) as u32 } else { given[i] }).collect();
    // Groups.
    let bins: Vec<f64> = s.iter().map(|s| (s * 1000.0).floor().min(999.0) / 1000.0).collect();
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let m = mean(&s);
    let (mut most, mut cut) = (f64::NEG_INFINITY, (0.5, 0.5, 0.5));
    for k in 2..=997 {
        let theta = f64::from(k) / 1000.0;
        let (low, high): (Vec<f64>, Vec<f64>) = bins.iter().partition(|&&b| b < theta - 1e-9);
        if low.is_empty() || high.is_empty() {
            continue;
        }
        let spread = |x: &[f64]| {
            x.len() as f64
                * mean(&x.iter().map(|v| (v - mean(x)).powi(2)).collect::<Vec<_>>()).max(1e-5).sqrt()
        };
        let between = |x: &[f64]| x.len() as f64 * (mean(x) - m).powi(2);
        let q = (between(&low) + between(&high)) / (spread(&low) + spread(&high));
        if q > most + 1e-9 {
            (most, cut) = (q, (theta, mean(&low), mean(&high)));
        }
    }
    let (theta, m1, m2) = cut;
    let group = |s: f64| [s >= m2, s >= theta, s >= m1, true].iter().position(|&is| is).unwrap();
    // Neighbours.
    let z: Vec<Vec<f64>> = scan
        .features
        .chunks(dim)
        .map(|f| {
            let length = f.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            f.iter().map(|&x| f64::from(x) / length).collect()
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let ceiling = rule.ceiling.min(n / classes).max(5);
    let size = |c: u32| labels.iter().filter(|&&label| label == c).count() as f64;
    let vote = |i: usize| -> Vec<f64> {
        let mut near: Vec<(f64, usize)> = (0..n).map(|j| (dot(&z[i], &z[j]), j)).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut k = ceiling;
        if !warming_up {
            let wanted = rule.fewest[group(s[i])].min(ceiling);
            let beyond = |r: i32| near.iter().filter(|(sim, _)| *sim > f64::from(r) / 100.0).count();
            k = (-100..100).rev().map(beyond).find(|&k| k >= wanted).unwrap().clamp(5, ceiling);
        }
        let share = |c: u32| near[..k].iter().filter(|(_, j)| labels[*j] == c).count() as f64 / k as f64;
        let v: Vec<f64> = (0..classes as u32)
            .map(|c| if size(c) > 0.0 { share(c) / (size(c) / n as f64) } else { 0.0 })
            .collect();
        v.iter().map(|x| x / v.iter().sum::<f64>()).collect()
    };
    // Class directions.
    let mut posterior = vec![1.0; n];
    for c in 0..classes as u32 {
        let members: Vec<usize> = (0..n).filter(|&j| labels[j] == c).collect();
        if members.len() < 5 {
            continue;
        }
        let mut u = vec![1.0; dim];
        for _ in 0..5000 {
            let mut next = vec![0.0; dim];
            for &j in &members {
                let along = dot(&u, &z[j]);
                next.iter_mut().zip(&z[j]).for_each(|(n, z)| *n += along * z);
            }
            let length = dot(&next, &next).sqrt();
            u = next.iter().map(|x| x / length).collect();
        }
        let a: Vec<f64> = members.iter().map(|&j| dot(&u, &z[j]).abs()).collect();
        let mixture = gmm::fit(&a, &GmmSettings::fine()).unwrap();
        members.iter().zip(a).for_each(|(&j, a)| posterior[j] = mixture.clean(a, CleanSide::Larger));
    }
    let (mut clean, mut right) = (vec![false; n], vec![0.0; n]);
    for i in 0..n {
        if warming_up || group(s[i]) >= 2 {
            let v = vote(i);
            clean[i] = v[labels[i] as usize] >= rule.theta_s * v[best(&v)];
            right[i] = v[given[i] as usize] / v[best(&v)];
        } else {
            (clean[i], right[i]) = (posterior[i] > rule.gamma_e, posterior[i]);
        }
        if labels[i] != given[i] {
            right[i] = p[i][given[i] as usize];
        }
    }
    (labels, clean, right)
}

#[test]
fn the_selection_is_that_of_a_literal_loop() {
    for (samples, warming_up) in [(60, true), (60, false), (151, true), (151, false)] {
        let (scan, given) = example(samples);
        let rule = AdaptiveSettings { ceiling: 30, fewest: [5, 8, 12, 20], ..AdaptiveSettings::default() };
        let made = rule.select(&scan, &given, warming_up).unwrap();
        let (labels, clean, right) = literally(&scan, &given, &rule, warming_up);
        assert_eq!(made.labels, labels);
        assert_eq!(made.clean, clean, "{samples} samples, warm-up {warming_up}");
        for (a, b) in made.right.iter().zip(&right) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b}");
        }
        // The example is worth something: labels change, and both answers occur.
        assert_ne!(made.labels, given);
        assert!(made.clean.contains(&true) && made.clean.contains(&false) && !made.fell_back);
        let kept = AdaptiveSettings { relabel: false, ..rule };
        assert_eq!(kept.select(&scan, &given, warming_up).unwrap().labels, given);
    }
}

#[test]
fn if_nobody_is_clean_the_vote_decides() {
    let (mut scan, given) = example(90);
    // Everyone is as confident as everyone else, so that only directions judge; and no posterior is above 1.
    for (i, row) in scan.logits.chunks_mut(3).enumerate() {
        row.fill(0.0);
        row[i % 3] = 2.0;
    }
    let rule = AdaptiveSettings { gamma_e: 1.0, ..AdaptiveSettings::default() };
    let Selection { labels, clean, right, fell_back } = rule.select(&scan, &given, false).unwrap();
    assert!(fell_back && clean.contains(&true) && clean.contains(&false));
    assert_eq!(labels, given);
    assert!(right.iter().all(|w| (0.0..=1.0).contains(w)));
    assert!(clean.iter().zip(&right).all(|(&clean, &w)| clean == (w == 1.0)));
}

#[test]
fn the_weak_side_of_the_consistency_is_a_constant() {
    let heads = Heads { projection: Some(Projection::NormRelu), prediction: true };
    let spec = NetSpec { heads, ..NetSpec::new("mlp", Input::Features(6), 3) };
    let device = Device::flex().autodiff();
    let net = Network::build(&spec, &device).unwrap();
    let size = net.feature_size();
    let row = |seed: u64| {
        let mut draw = Draw::new(seed, Purpose::Noise, 0, 0);
        let values: Vec<f32> = (0..8 * size).map(|_| draw.normal() as f32).collect();
        Tensor::<1>::from_floats(values.as_slice(), &device).reshape([8, size]).require_grad()
    };
    let (weak, strong) = (row(1), row(2));
    let loss = consistency(&net, weak.clone(), strong.clone(), &Pass::train(1, 0)).unwrap();
    let value: f32 = loss.clone().into_scalar();
    assert!((-1.0..=1.0).contains(&value));
    let gradients = loss.backward();
    assert!(weak.grad(&gradients).is_none());
    let total: f32 = strong.grad(&gradients).unwrap().abs().sum().into_scalar();
    assert!(total > 1e-6, "{total}");
}

fn facts(classes: usize, noise: &str) -> Facts {
    let noise = known_noise(noise);
    Facts {
        kind: ItemKind::Images,
        classes,
        samples: 50_000,
        epochs: 300,
        batch: 128,
        noise,
        wrong_share: None,
    }
}

#[test]
fn tuned_settings_are_the_published_ones() {
    let tuned = |classes, noise| {
        let settings = Settings { protocol: Protocol::Tuned, ..Settings::default() };
        let Settings { rule, warm_up, .. } = settings.checked(&facts(classes, noise)).unwrap();
        (rule.gamma_r, rule.gamma_e, warm_up.epochs(if noise == "none" { 150 } else { 300 }))
    };
    assert_eq!(tuned(100, "sym-incl:0.5"), (0.5, 0.1, 30));
    assert_eq!(tuned(100, "sym-incl:0.2"), (0.8, 0.1, 30));
    assert_eq!(tuned(100, "sym-incl:0.8"), (0.5, 0.1, 30));
    assert_eq!(tuned(100, "ins:0.2:input=raw:matrix=per-class"), (0.5, 0.1, 30));
    assert_eq!(tuned(10, "sym-incl:0.5"), (0.9, 0.5, 10));
    assert_eq!(tuned(10, "none"), (0.95, 0.3, 1));
    assert_eq!(tuned(50, "none"), (0.95, 0.5, 0));
    // Blind: noise makes no difference, and an own setting holds.
    let rule = AdaptiveSettings { gamma_r: 0.7, ..AdaptiveSettings::default() };
    let own = Settings { rule, ..Settings::default() };
    assert_eq!(own.clone().checked(&facts(100, "sym-incl:0.5")).unwrap(), own);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let refused = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        match settings.checked(&facts(10, "none")) {
            Err(Error::Range { setting, .. }) => setting,
            Err(Error::Nets(negscale_nets::Error::Optim(optim::Error::Setting { name, .. }))) => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|s| s.warm_up = Milestone::Share(1.5)), "warm_up");
    assert_eq!(refused(|s| s.rule.gamma_r = f64::NAN), "gamma_r");
    assert_eq!(refused(|s| s.rule.gamma_e = -0.1), "gamma_e");
    assert_eq!(refused(|s| s.rule.theta_s = 1.1), "theta_s");
    assert_eq!(refused(|s| s.rule.ceiling = 4), "ceiling");
    assert_eq!(refused(|s| s.rule.fewest[3] = 201), "fewest");
    assert_eq!(refused(|s| s.rule.fewest[0] = 0), "fewest");
    assert_eq!(refused(|s| s.alpha = -1.0), "alpha");
    assert_eq!(refused(|s| s.lambda_fc = f64::INFINITY), "lambda_fc");
    assert_eq!(refused(|s| s.scan_every = 0), "scan_every");
}

#[test]
fn labels_held_to_be_clean_are_right_far_more_often_than_labels_are() {
    let task = task(600, NOISE);
    let truth = task.train.truth().unwrap().to_vec();
    let own = TrainSettings { epochs: 8, validation: 0.0, ..settings("anne") };
    let mut trainer = Trainer::new(task, own).unwrap();
    let records = finish(&mut trainer);
    let ledger = trainer.ledger().unwrap();
    let given = ledger.given();
    // Held to be clean as given: the target is the given label and nothing else.
    let held: Vec<usize> =
        (0..600).filter(|&i| ledger.target(i).unwrap()[given[i] as usize] == 1.0).collect();
    let right = held.iter().filter(|&&i| given[i] == truth[i]).count() as f64 / held.len() as f64;
    let all = (0..600).filter(|&i| given[i] == truth[i]).count() as f64 / 600.0;
    let (verdicts, _) = trainer.verdicts().unwrap();
    let audit = Audit::new(&verdicts, &["a", "b", "c", "d"].map(str::to_owned), FLAG_BELOW).unwrap();
    let measures = audit.measure(&truth).unwrap();
    assert!(measures.average_precision.unwrap() > 0.9, "{measures:?}");
    assert!(all < 0.61 && right > 0.9 && held.len() > 200, "{right} of {}", held.len());
    let notes = &records.last().unwrap().more;
    assert!(notes["held to be clean"] >= held.len() as f64 / 600.0 && notes.contains_key("relabelled"));
}

#[test]
fn judging_every_other_epoch_keeps_the_last_word() {
    let mut own = TrainSettings { epochs: 4, ..settings("anne") };
    own.host_settings.insert("scan_every".into(), 2.into());
    let records = finish(&mut Trainer::new(task(200, NOISE), own.clone()).unwrap());
    let held: Vec<f64> = records.iter().map(|record| record.more["held to be clean"]).collect();
    assert!(held[0] == held[1] && held[2] == held[3] && held[0] != held[2], "{held:?}");
    // Also across a stop between the two.
    let mut first = Trainer::new(task(200, NOISE), own.clone()).unwrap();
    first.epoch(|_| {}).unwrap();
    let mut second = Trainer::new(task(200, NOISE), own).unwrap();
    second.restore(&first.save("run").unwrap(), "run", "memory").unwrap();
    assert_eq!(timeless(&finish(&mut second)), timeless(&records[1..]));
}

#[test]
fn where_cross_entropy_learns_wrong_labels_by_heart_this_does_not() {
    let run = |host: &str| {
        let own = TrainSettings {
            hidden: vec![64],
            epochs: 30,
            optimiser: Sgd { lr: 0.1, weight_decay: 0.0, ..Sgd::default() }.into(),
            schedule: Shape::Constant.into(),
            ..settings(host)
        };
        let records = finish(&mut Trainer::new(task(300, NOISE), own).unwrap());
        let last = records.last().unwrap();
        (last.test_accuracy.unwrap(), last.fit_wrong_given.unwrap())
    };
    let (plain, learnt) = run("cross-entropy");
    let (ours, kept_out) = run("anne");
    assert!(learnt > 0.3, "cross-entropy was not trained for long enough: {learnt}");
    assert!(ours > plain + 0.05 && kept_out < learnt / 2.0, "{ours} against {plain}");
}
