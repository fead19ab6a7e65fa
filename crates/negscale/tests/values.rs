//! The fast forms against the literal formulas.
#![allow(clippy::unwrap_used)]

mod oracle;

use negscale::{NegScale, PairSource, Reduction, Settings, Taxonomy, Workspace};
use oracle::{Batch, tree_pairs, values};
use proptest::prelude::*;

/// Agreement to 1e-10, relative to `scale` where that is above 1.
#[track_caller]
fn close(ours: f64, literal: f64, scale: f64, what: &str) {
    let tolerance = 1e-10 * scale.abs().max(literal.abs()).max(1.0);
    assert!((ours - literal).abs() <= tolerance, "{what}: {ours} instead of {literal}");
}

fn trees() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "cifar10",
        "cifar100",
        "animal10n",
        "webvision50",
        "fashion-mnist",
        "cifar10-flat",
    ])
}

fn settings() -> impl Strategy<Value = Settings> {
    let thresholds =
        prop::sample::select(vec![(3, 5), (3, 3), (5, 5), (1, 7), (1, 3), (4, 6), (0, 0), (2, 9)]);
    let weights = (0.0f64..3.0, 0.0f64..3.0, prop::sample::select(vec![0.0, 1.0, 0.3]), 0.0f64..2.0);
    (thresholds, weights, any::<[bool; 5]>(), any::<u64>()).prop_map(
        |((eta_min, eta_max), weights, flags, seed)| {
            Settings::default()
                .with_lambda(weights.0)
                .with_mu(weights.1)
                .with_global(weights.2)
                .with_local(weights.3)
                .with_eta_min(eta_min)
                .with_eta_max(eta_max)
                .with_reduction(if flags[0] { Reduction::Mean } else { Reduction::Sum })
                .with_pairs(if flags[1] && flags[2] { PairSource::Random } else { PairSource::Tree })
                .with_delta_pairs(if flags[1] && flags[2] { PairSource::Random } else { PairSource::Tree })
                .with_self_anchor(flags[3])
                .with_delta_gradient(flags[4])
                .with_seed(seed)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_term_equals_the_literal_formula(
        tree in trees(), settings in settings(), b in 0usize..40, dim in 1usize..24, few in 1usize..101, seed: u64,
    ) {
        let tree = Taxonomy::builtin(tree).unwrap();
        let batch = Batch::random(b, dim, few.min(tree.classes()), seed);
        let plugin = NegScale::new(&tree, settings.clone()).unwrap();
        let pairs = plugin.pairs(&batch.given()).unwrap();
        if settings.pairs == PairSource::Tree {
            assert_eq!(pairs, tree_pairs(&batch.labels, &tree, &settings));
        }
        let literal = values(&batch, &pairs, &settings, None);
        let mut workspace = Workspace::new();
        let ours = plugin.loss_and_gradient(&batch.features, dim, &batch.given(), &mut workspace).unwrap();
        let p = pairs.unrelated.len();
        let scale = if settings.reduction == Reduction::Sum { literal.square } else { 1.0 };
        close(ours.terms.global, literal.global, scale, "global");
        close(ours.terms.local, literal.local, 1.0, "local");
        close(ours.terms.dcsa, literal.dcsa, 1.0, "dcsa");
        close(ours.value, literal.total, settings.lambda * scale, "total");
        assert_eq!((ours.terms.unrelated_pairs, ours.terms.related_pairs), (p, pairs.related.len()));
    }
}

#[test]
fn the_two_readings_of_the_identity_differ_by_the_constant_d_minus_p() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let batch = Batch::random(20, 7, 10, 3);
    let pairs = tree_pairs(&batch.labels, &tree, &Settings::default());
    let v = values(&batch, &pairs, &Settings::default(), None);
    let p = pairs.unrelated.len() as f64;
    close(v.feature_identity - v.pair_identity, 7.0 - p, v.square, "d x d less P x P");
    close(v.pair_identity, v.square - p, v.square, "P x P");

    let sum = NegScale::new(&tree, Settings::default().with_reduction(Reduction::Sum)).unwrap();
    let mut workspace = Workspace::new();
    let ours = sum.loss_and_gradient(&batch.features, 7, &batch.given(), &mut workspace).unwrap();
    close(ours.terms.global, v.feature_identity, v.square, "`sum` is the d x d form that the paper prints");
}

#[test]
fn ordered_pairs_would_double_the_sums_and_quadruple_the_global_square() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let batch = Batch::random(18, 6, 10, 4);
    let settings = Settings::default().with_reduction(Reduction::Sum);
    let once = tree_pairs(&batch.labels, &tree, &settings);
    let mut twice = once.clone();
    twice.unrelated.extend(once.unrelated.iter().map(|&(i, j)| (j, i)));
    twice.related.extend(once.related.iter().map(|&(i, j)| (j, i)));
    let (a, b) = (values(&batch, &once, &settings, None), values(&batch, &twice, &settings, None));
    close(b.square, 4.0 * a.square, b.square, "square");
    close(b.local, 2.0 * a.local, 1.0, "local");
    close(b.dcsa, 2.0 * a.dcsa, 1.0, "dcsa");
}

#[test]
fn delta_equals_the_double_loop_to_the_last_bit() {
    // One related pair, weight 1, sum: the term is (G - (1 - delta))^2, so delta can be read off exactly.
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let settings = Settings::default().with_snop(false).with_reduction(Reduction::Sum);
    let plugin = NegScale::new(&tree, settings).unwrap();
    let labels = [3usize, 5, 0, 1, 9, 8]; // cat and dog related; airplane, automobile, truck, ship unrelated to both
    let confidence = [0.5f64; 6];
    let batch = Batch::random(6, 9, 1, 11);
    let x = batch.unit();
    let gram: Vec<f64> =
        (0..36).map(|at| x[at / 6].iter().zip(&x[at % 6]).map(|(a, b)| a * b).sum::<f64>()).collect();
    let mut largest = f64::NEG_INFINITY;
    for p in 0..6 {
        for q in 0..6 {
            if tree.distance(labels[p], labels[q]) > 5 {
                largest = largest.max(gram[p] + gram[6 + q]);
            }
        }
    }
    let mut expected = (gram[1] - (1.0 - largest / 2.0)).max(0.0).powi(2);
    // automobile-truck and airplane-ship are related too
    for (i, j) in [(3, 4), (2, 5)] {
        let mut largest = f64::NEG_INFINITY;
        for p in 0..6 {
            for q in 0..6 {
                if tree.distance(labels[p], labels[q]) > 5 {
                    largest = largest.max(gram[i * 6 + p] + gram[j * 6 + q]);
                }
            }
        }
        expected += (gram[i * 6 + j] - (1.0 - largest / 2.0)).max(0.0).powi(2);
    }
    let mut workspace = Workspace::new();
    let given = negscale::BatchLabels::new(&labels, &confidence);
    let ours = plugin.loss_and_gradient_from_cosines(&gram, 9, &given, &mut workspace).unwrap();
    assert!(expected > 0.0);
    assert!((ours.terms.dcsa - expected).abs() <= 4.0 * f64::EPSILON * expected);
}

#[test]
fn single_precision_follows_double_precision_even_when_features_crowd_together() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let plugin = NegScale::new(&tree, Settings::default()).unwrap();
    for (offset, tolerance) in [(0.0, 1e-5), (1.0, 1e-5), (5.0, 1e-4), (20.0, 2e-3)] {
        let mut batch = Batch::random(64, 32, 10, 7);
        batch.features.iter_mut().for_each(|f| *f += offset);
        let narrow: Vec<f32> = batch.features.iter().map(|&f| f as f32).collect();
        let confidence: Vec<f32> = batch.confidence.iter().map(|&c| c as f32).collect();
        let (mut w64, mut w32) = (Workspace::new(), Workspace::new());
        let wide = plugin.loss_and_gradient(&batch.features, 32, &batch.given(), &mut w64).unwrap();
        let given = negscale::BatchLabels::new(&batch.labels, &confidence);
        let single = plugin.loss_and_gradient(&narrow, 32, &given, &mut w32).unwrap();
        assert!(
            (wide.value - single.value).abs() < tolerance * wide.value,
            "value at offset {offset}: {} {}",
            wide.value,
            single.value
        );
        let norm = wide.gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let error = wide
            .gradient
            .iter()
            .zip(single.gradient)
            .map(|(a, &b)| (a - b as f64).powi(2))
            .sum::<f64>()
            .sqrt();
        assert!(error < tolerance * norm, "gradient at offset {offset}: off by {} of {norm}", error);
    }
}
