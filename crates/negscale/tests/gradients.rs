//! Gradients against central differences, and what must not change a value or only turn a gradient.
#![allow(clippy::unwrap_used)]

mod oracle;

use negscale::{BatchLabels, Centre, NegScale, PairSource, Reduction, Settings, Taxonomy, Workspace};
use oracle::{Batch, differences, same_direction, values};
use proptest::prelude::*;

/// Every setting of the loss that changes a gradient.
fn cases() -> Vec<(&'static str, Settings)> {
    let base = Settings::default().with_lambda(0.7).with_mu(1.3);
    let only = |global, local, dcsa| {
        base.clone().with_global(global).with_local(local).with_dcsa(dcsa).with_snop(global + local > 0.0)
    };
    vec![
        ("global", only(1.0, 0.0, false)),
        ("global, sum", only(1.0, 0.0, false).with_reduction(Reduction::Sum)),
        ("local", only(0.0, 1.0, false)),
        ("local, sum", only(0.0, 1.0, false).with_reduction(Reduction::Sum)),
        ("dcsa", only(0.0, 0.0, true)),
        ("dcsa, sum", only(0.0, 0.0, true).with_reduction(Reduction::Sum)),
        ("dcsa without self-anchor", only(0.0, 0.0, true).with_self_anchor(false)),
        ("dcsa through delta", only(0.0, 0.0, true).with_delta_gradient(true)),
        (
            "dcsa through delta without self-anchor",
            only(0.0, 0.0, true).with_delta_gradient(true).with_self_anchor(false),
        ),
        ("total", base.clone()),
        ("total, sum", base.clone().with_reduction(Reduction::Sum)),
        ("total through delta", base.clone().with_delta_gradient(true)),
        (
            "total, random pairs",
            base.clone().with_pairs(PairSource::Random).with_delta_pairs(PairSource::Random),
        ),
        ("total, wide thresholds", base.with_eta_min(4).with_eta_max(4)),
    ]
}

#[test]
fn the_gradient_of_every_term_equals_central_differences_through_the_normalisation() {
    for tree in ["cifar10", "cifar100", "fashion-mnist"] {
        let tree = Taxonomy::builtin(tree).unwrap();
        for (what, settings) in cases() {
            for (b, dim, seed) in [(9, 5, 1), (14, 4, 2), (18, 9, 3)] {
                // few classes, so that CIFAR-100 has related pairs too
                let mut batch = Batch::random(b, dim, 10, seed);
                // a common part, so that related pairs come above their cap
                batch.features.iter_mut().for_each(|f| *f += 0.4);
                if tree.classes() == 100 {
                    let some = [3, 42, 43, 88, 97, 9, 10, 16, 28, 61]; // two superclasses
                    batch.labels.iter_mut().for_each(|l| *l = some[*l]);
                }
                let plugin = NegScale::new(&tree, settings.clone()).unwrap();
                let pairs = plugin.pairs(&batch.given()).unwrap();
                let base = values(&batch, &pairs, &settings, None);
                let frozen = (!settings.delta_gradient).then_some(&base.delta[..]);
                let numeric = differences(&batch.features, |features| {
                    let moved = Batch { features: features.to_vec(), ..batch.clone() };
                    values(&moved, &pairs, &settings, frozen).total
                });
                let mut workspace = Workspace::new();
                let ours =
                    plugin.loss_and_gradient(&batch.features, dim, &batch.given(), &mut workspace).unwrap();
                same_direction(
                    ours.gradient,
                    &numeric,
                    &format!("{what}, {} samples, tree {}", b, tree.name()),
                );
            }
        }
    }
}

#[test]
fn gamma_is_the_derivative_with_respect_to_the_gram_matrix() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    for (what, settings) in cases().into_iter().filter(|(_, s)| s.delta_gradient || !s.dcsa) {
        let plugin = NegScale::new(&tree, settings).unwrap();
        let mut batch = Batch::random(8, 6, 10, 5);
        batch.labels = vec![3, 5, 3, 5, 1, 9, 0, 8]; // related and unrelated pairs, whatever the draw
        batch.features.iter_mut().for_each(|f| *f += 0.5);
        let x = batch.unit();
        // A Gram matrix whose diagonal is not 1: nothing relies on that.
        let gram: Vec<f64> = (0..64)
            .map(|at| {
                x[at / 8].iter().zip(&x[at % 8]).map(|(a, b)| a * b).sum::<f64>()
                    * if at % 9 == 0 { 1.3 } else { 1.0 }
            })
            .collect();
        // Only symmetric changes make sense: move (i, j) and (j, i) together.
        let upper: Vec<(usize, usize)> = (0..8).flat_map(|i| (i..8).map(move |j| (i, j))).collect();
        let start: Vec<f64> = upper.iter().map(|&(i, j)| gram[i * 8 + j]).collect();
        let value = |entries: &[f64]| {
            let mut moved = gram.clone();
            for (&(i, j), &g) in upper.iter().zip(entries) {
                (moved[i * 8 + j], moved[j * 8 + i]) = (g, g);
            }
            plugin
                .loss_and_gradient_from_cosines(&moved, 6, &batch.given(), &mut Workspace::new())
                .unwrap()
                .value
        };
        let numeric = differences(&start, value);
        let mut workspace = Workspace::new();
        let gamma =
            plugin.loss_and_gradient_from_cosines(&gram, 6, &batch.given(), &mut workspace).unwrap().gradient;
        let ours: Vec<f64> = upper
            .iter()
            .map(|&(i, j)| if i == j { gamma[i * 8 + i] } else { gamma[i * 8 + j] + gamma[j * 8 + i] })
            .collect();
        same_direction(&ours, &numeric, what);
        assert!(
            (0..64).all(|at| (gamma[at] - gamma[at % 8 * 8 + at / 8]).abs() < 1e-12),
            "{what}: not symmetric"
        );
    }
}

#[test]
fn the_gradient_with_a_centre_treats_the_centre_as_a_constant() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let plain = Settings::default().with_delta_gradient(true);
    let centred = plain.clone().with_centre(Centre::ClassBalanced);
    let mut batch = Batch::random(20, 6, 10, 8);
    batch.features.iter_mut().for_each(|f| *f = f.abs()); // as after a ReLU
    let plugin = NegScale::new(&tree, centred).unwrap();
    let mut workspace = Workspace::new();
    let ours = plugin
        .loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace)
        .unwrap()
        .gradient
        .to_vec();
    let centre = workspace.centre().to_vec();
    assert!(centre.iter().all(|c| *c > 0.0));
    let less_centre = |features: &[f64]| -> Vec<f64> {
        features.iter().enumerate().map(|(at, f)| f - centre[at % 6]).collect()
    };
    let pairs = plugin.pairs(&batch.given()).unwrap();
    let numeric = differences(&batch.features, |features| {
        values(&Batch { features: less_centre(features), ..batch.clone() }, &pairs, &plain, None).total
    });
    same_direction(&ours, &numeric, "centred");
}

#[test]
fn rectified_features_have_the_value_and_the_gradient_of_a_relu_in_front() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let plain = Settings::default().with_delta_gradient(true);
    let plugin = NegScale::new(&tree, plain.clone().with_rectify(true)).unwrap();
    let batch = Batch::random(20, 6, 10, 8);
    let mut workspace = Workspace::new();
    let found = plugin.loss_and_gradient(&batch.features, 6, &batch.given(), &mut workspace).unwrap();
    let relu = |features: &[f64]| features.iter().map(|f| f.max(0.0)).collect();
    let pairs = plugin.pairs(&batch.given()).unwrap();
    let value = |features: &[f64]| {
        values(&Batch { features: relu(features), ..batch.clone() }, &pairs, &plain, None).total
    };
    assert!((found.value - value(&batch.features)).abs() < 1e-10 * found.value.abs());
    let below = batch.features.iter().zip(found.gradient).filter(|(f, _)| **f < 0.0);
    assert!(below.clone().count() > 20 && below.clone().all(|(_, g)| *g == 0.0));
    same_direction(found.gradient, &differences(&batch.features, value), "rectified");
}

proptest! {
    // Four dimensions at least: in fewer, random features come so close that 1e-8 asks too much of f64.
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_order_of_the_batch_changes_nothing_but_the_order_of_the_gradient(b in 2usize..30, dim in 4usize..12, seed: u64) {
        let plugin = NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), Settings::default()).unwrap();
        let batch = Batch::random(b, dim, 10, seed);
        let order: Vec<usize> = { let step = (1..).find(|s| gcd(*s + b / 2, b) == 1).unwrap() + b / 2; (0..b).map(|i| (i * step + 1) % b).collect() };
        let shuffled = Batch {
            features: order.iter().flat_map(|&i| batch.features[i * dim..][..dim].to_vec()).collect(),
            labels: order.iter().map(|&i| batch.labels[i]).collect(),
            confidence: order.iter().map(|&i| batch.confidence[i]).collect(),
            dim,
        };
        let (mut w, mut v) = (Workspace::new(), Workspace::new());
        let a = plugin.loss_and_gradient(&batch.features, dim, &batch.given(), &mut w).unwrap();
        let c = plugin.loss_and_gradient(&shuffled.features, dim, &shuffled.given(), &mut v).unwrap();
        prop_assert!((a.value - c.value).abs() < 1e-10);
        let size = a.gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (at, &i) in order.iter().enumerate() {
            for k in 0..dim {
                prop_assert!((c.gradient[at * dim + k] - a.gradient[i * dim + k]).abs() < 1e-8 * size);
            }
        }
    }

    #[test]
    fn turning_feature_space_turns_the_gradient_and_keeps_the_value(b in 2usize..25, dim in 4usize..10, seed: u64) {
        let plugin = NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), Settings::default()).unwrap();
        let batch = Batch::random(b, dim, 10, seed);
        // A product of reflections I - 2 u u^T is orthogonal.
        let mirrors: Vec<Vec<f64>> = Batch::random(3, dim, 1, seed ^ 1).unit();
        let turn = |rows: &[f64]| -> Vec<f64> {
            let mut out = rows.to_vec();
            for u in &mirrors {
                for row in out.chunks_mut(dim) {
                    let along: f64 = row.iter().zip(u).map(|(a, b)| a * b).sum();
                    row.iter_mut().zip(u).for_each(|(r, u)| *r -= 2.0 * along * u);
                }
            }
            out
        };
        let (mut w, mut v) = (Workspace::new(), Workspace::new());
        let a = plugin.loss_and_gradient(&batch.features, dim, &batch.given(), &mut w).unwrap();
        let c = plugin.loss_and_gradient(&turn(&batch.features), dim, &batch.given(), &mut v).unwrap();
        prop_assert!((a.value - c.value).abs() < 1e-10);
        let size = a.gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (x, y) in turn(a.gradient).iter().zip(c.gradient) {
            prop_assert!((x - y).abs() < 1e-8 * size);
        }
    }

    #[test]
    fn a_longer_feature_has_the_same_value_a_shorter_gradient_and_no_gradient_along_itself(
        b in 2usize..25, dim in 4usize..10, seed: u64, factor in 0.01f64..100.0,
    ) {
        let plugin = NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), Settings::default()).unwrap();
        let batch = Batch::random(b, dim, 10, seed);
        let which = (seed % b as u64) as usize;
        let mut scaled = batch.clone();
        scaled.features[which * dim..][..dim].iter_mut().for_each(|f| *f *= factor);
        let (mut w, mut v) = (Workspace::new(), Workspace::new());
        let a = plugin.loss_and_gradient(&batch.features, dim, &batch.given(), &mut w).unwrap();
        let c = plugin.loss_and_gradient(&scaled.features, dim, &scaled.given(), &mut v).unwrap();
        prop_assert!((a.value - c.value).abs() < 1e-10);
        let size = a.gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for at in 0..b * dim {
            let by = if at / dim == which { factor } else { 1.0 };
            prop_assert!((c.gradient[at] * by - a.gradient[at]).abs() < 1e-8 * size);
        }
        for (g, f) in a.gradient.chunks(dim).zip(batch.features.chunks(dim)) {
            prop_assert!(g.iter().zip(f).map(|(g, f)| g * f).sum::<f64>().abs() < 1e-8 * size);
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn confidence_and_weights_of_zero_leave_nothing() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let batch = Batch::random(16, 5, 10, 2);
    let off = NegScale::new(&tree, Settings::default().with_lambda(0.0).with_mu(0.0)).unwrap();
    let mut workspace = Workspace::new();
    let nothing = off.loss_and_gradient(&batch.features, 5, &batch.given(), &mut workspace).unwrap();
    assert_eq!(nothing.value, 0.0);
    assert!(nothing.gradient.iter().all(|g| *g == 0.0));
    // A certain prediction takes its pairs out of the local term.
    let local = NegScale::new(&tree, Settings::default().with_global(0.0).with_dcsa(false)).unwrap();
    let certain = vec![1.0; 16];
    let result = local
        .loss_and_gradient(&batch.features, 5, &BatchLabels::new(&batch.labels, &certain), &mut workspace)
        .unwrap();
    assert_eq!(result.value, 0.0);
    assert!(result.gradient.iter().all(|g| *g == 0.0));
}
