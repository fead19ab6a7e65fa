//! Empty sets, equal features, tiny batches and bad input.
#![allow(clippy::unwrap_used)]

mod oracle;

use negscale::{BatchLabels, Error, NegScale, Settings, Targets, Taxonomy, TermState, Workspace};
use oracle::Batch;

fn plugin(settings: Settings) -> NegScale {
    NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), settings).unwrap()
}

/// Value and gradient with default settings.
fn evaluate(features: &[f64], dim: usize, labels: &[usize]) -> (f64, negscale::Terms, Vec<f64>) {
    let mut workspace = Workspace::new();
    let confidence = vec![0.5; labels.len()];
    let default = plugin(Settings::default());
    let result = default
        .loss_and_gradient(features, dim, &BatchLabels::new(labels, &confidence), &mut workspace)
        .unwrap();
    (result.value, result.terms, result.gradient.to_vec())
}

#[test]
fn a_batch_of_none_or_one_sample_gives_zero_and_says_why() {
    for labels in [&[][..], &[3][..]] {
        let features: Vec<f64> = labels.iter().flat_map(|_| [1.0, 2.0]).collect();
        let (value, terms, gradient) = evaluate(&features, 2, labels);
        assert_eq!(value, 0.0);
        assert_eq!((terms.snop_state, terms.dcsa_state), (TermState::NoPairs, TermState::NoPairs));
        assert!(gradient.len() == features.len() && gradient.iter().all(|g| *g == 0.0));
    }
}

#[test]
fn a_batch_of_one_class_gives_zero_with_zero_gradient() {
    let (value, terms, gradient) = evaluate(&[1.0, 2.0, -1.0, 0.5, 3.0, 1.0], 2, &[7, 7, 7]);
    assert_eq!((value, terms.unrelated_pairs, terms.related_pairs), (0.0, 0, 0));
    assert_eq!((terms.snop_state, terms.dcsa_state), (TermState::NoPairs, TermState::NoPairs));
    assert!(gradient.iter().all(|g| *g == 0.0));
}

#[test]
fn related_pairs_without_unrelated_ones_have_no_anchor_so_both_terms_rest() {
    let (value, terms, _) = evaluate(&[1.0, 2.0, 1.0, 2.1], 2, &[3, 5]); // cat, dog
    assert_eq!((value, terms.related_pairs, terms.unrelated_pairs), (0.0, 1, 0));
    assert_eq!((terms.snop_state, terms.dcsa_state), (TermState::NoPairs, TermState::NoPairs));
}

#[test]
fn unrelated_pairs_without_related_ones_leave_snop_at_work() {
    let (value, terms, gradient) = evaluate(&[1.0, 2.0, 1.0, 2.1], 2, &[3, 0]); // cat, airplane
    assert!(value > 0.0 && gradient.iter().any(|g| *g != 0.0));
    assert_eq!((terms.snop_state, terms.dcsa_state), (TermState::Active, TermState::NoPairs));
}

#[test]
fn equal_features_of_unrelated_classes_have_no_direction_and_no_global_gradient() {
    let settings = Settings::default().with_local(0.0).with_dcsa(false);
    let mut workspace = Workspace::new();
    let same = [0.3, -0.2, 0.9, 0.3, -0.2, 0.9];
    let global = plugin(settings);
    let result =
        global.loss_and_gradient(&same, 3, &BatchLabels::new(&[3, 0], &[0.5, 0.5]), &mut workspace).unwrap();
    assert_eq!(result.terms.identical_pairs, 1);
    assert!(result.gradient.iter().all(|g| *g == 0.0));
    assert_eq!(result.terms.global, 1.0); // |0 - I_1|^2 / 1

    // The same in f32, among other samples: finite, and the twins are told apart from nobody.
    let batch = Batch::random(20, 16, 10, 9);
    let mut features: Vec<f32> = batch.features.iter().map(|&f| f as f32).collect();
    let mut labels = batch.labels.clone();
    features.copy_within(0..16, 16);
    (labels[0], labels[1]) = (3, 0);
    let confidence = vec![0.5f32; 20];
    let mut workspace = Workspace::new();
    let result = plugin(Settings::default()).loss_and_gradient(
        &features,
        16,
        &BatchLabels::new(&labels, &confidence),
        &mut workspace,
    );
    let result = result.unwrap();
    assert_eq!(result.terms.identical_pairs, 1);
    assert!(result.value.is_finite() && result.gradient.iter().all(|g| g.is_finite() && g.abs() < 10.0));
}

#[test]
fn features_that_are_all_equal_give_finite_numbers() {
    let labels: Vec<usize> = (0..12).map(|i| i % 10).collect();
    let (value, terms, gradient) = evaluate(&[0.7; 12 * 4], 4, &labels);
    assert!(value.is_finite() && gradient.iter().all(|g| g.is_finite()));
    assert_eq!(terms.identical_pairs, terms.unrelated_pairs);
}

#[test]
fn nearly_equal_features_are_continuous_with_the_floor() {
    // Distances just below and just above 1e-3: value and gradient must not jump.
    let at = |distance: f64| {
        let (value, _, gradient) =
            evaluate(&[1.0, 0.0, distance.cos(), distance.sin(), 0.2, 1.0], 2, &[3, 0, 5]);
        (value, gradient)
    };
    let ((below, _), (above, _)) = (at(0.999_999e-3), at(1.000_001e-3));
    assert!((below - above).abs() < 1e-5, "{below} {above}");
}

#[test]
fn a_zero_feature_has_no_direction_gets_no_gradient_and_is_counted() {
    let (value, terms, gradient) = evaluate(&[0.0, 0.0, 1.0, 2.0, -1.0, 0.5], 2, &[3, 0, 5]);
    assert_eq!(terms.zero_features, 1);
    assert!(value.is_finite() && gradient[..2] == [0.0, 0.0] && gradient[2..].iter().any(|g| *g != 0.0));
}

#[test]
fn features_of_no_dimension_have_no_directions() {
    let (_, terms, gradient) = evaluate(&[], 0, &[3, 0, 5]);
    assert_eq!((terms.zero_features, terms.identical_pairs, gradient.len()), (3, 2, 0));
    let ours = plugin(Settings::default());
    assert!(
        negscale::reference::loss_and_gradient(&ours, &[], 0, &BatchLabels::new(&[3, 0], &[0.5, 0.5]))
            .is_err()
    );
}

#[test]
fn huge_and_tiny_features_neither_overflow_nor_vanish() {
    let labels = [3usize, 0, 5, 1];
    let base = [0.4f32, 1.0, -0.3, 0.8, 1.1, -0.9, 0.2, 0.5];
    let confidence = [0.5f32; 4];
    let value = |scale: f32| {
        let features: Vec<f32> = base.iter().map(|f| f * scale).collect();
        let mut w = Workspace::new();
        plugin(Settings::default())
            .loss_and_gradient(&features, 2, &BatchLabels::new(&labels, &confidence), &mut w)
            .unwrap()
            .value
    };
    for scale in [1e-30, 1e-20, 1e20, 1e37] {
        assert!((value(scale) - value(1.0)).abs() < 1e-5, "{scale}");
    }
}

#[test]
fn a_warming_host_gets_nothing_unless_asked_for() {
    let batch = Batch::random(16, 5, 10, 2);
    let given = batch.given().with_warming_up(true);
    let mut w = Workspace::new();
    let rest = plugin(Settings::default());
    let result = rest.loss_and_gradient(&batch.features, 5, &given, &mut w).unwrap();
    assert_eq!((result.value, result.terms.snop_state), (0.0, TermState::WarmUp));
    assert!(result.gradient.iter().all(|g| *g == 0.0));
    let eager = plugin(Settings::default().with_during_warm_up(true));
    assert!(eager.loss_and_gradient(&batch.features, 5, &given, &mut w).unwrap().value > 0.0);
}

#[test]
fn refurbished_targets_decide_the_pairs_when_asked_for() {
    let batch = Batch::random(16, 5, 10, 2);
    let believed: Vec<usize> = batch.labels.iter().map(|l| (l + 1) % 10).collect();
    let settings = Settings::default().with_targets(Targets::Refurbished);
    let by_belief = plugin(settings);
    let mut w = Workspace::new();
    let given = batch.given().with_refurbished(&believed);
    let value = by_belief.loss_and_gradient(&batch.features, 5, &given, &mut w).unwrap().value;
    let as_given = BatchLabels::new(&believed, &batch.confidence);
    let same =
        plugin(Settings::default()).loss_and_gradient(&batch.features, 5, &as_given, &mut w).unwrap().value;
    assert_eq!(value, same);
    let error = by_belief.loss_and_gradient(&batch.features, 5, &batch.given(), &mut w).unwrap_err();
    assert_eq!(error, Error::NoRefurbished);
}

#[test]
fn bad_input_is_an_error_that_names_the_sample() {
    let ours = plugin(Settings::default());
    let mut w = Workspace::new();
    let (labels, confidence) = ([3usize, 0, 5], [0.5; 3]);
    let good = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let mut message = |features: &[f64], labels: &[usize], confidence: &[f64]| {
        ours.loss_and_gradient(features, 2, &BatchLabels::new(labels, confidence), &mut w)
            .unwrap_err()
            .to_string()
    };
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut features = good;
        features[3] = bad;
        let text = message(&features, &labels, &confidence);
        assert!(text.contains("sample 1") && text.contains("finite"), "{text}");
    }
    let text = message(&good, &[3, 10, 5], &confidence);
    assert!(
        text.contains("label 10")
            && text.contains("sample 1")
            && text.contains("cifar10")
            && text.contains("0 to 9"),
        "{text}"
    );
    let text = message(&good, &labels, &[0.5, 0.5, 1.5]);
    assert!(text.contains("1.5") && text.contains("sample 2") && text.contains("softmax"), "{text}");
    let text = message(&good, &labels, &[0.5, f64::NAN, 0.5]);
    assert!(text.contains("sample 1"), "{text}");
    assert!(message(&good[..4], &labels, &confidence).contains("need 6"));
    assert!(message(&good, &labels, &[0.5]).contains("confidence"));
    let gram = [1.0, 0.5, f64::NAN, 1.0];
    let text = ours
        .loss_and_gradient_from_cosines(
            &gram,
            2,
            &BatchLabels::new(&[3, 0], &[0.5, 0.5]),
            &mut Workspace::new(),
        )
        .unwrap_err()
        .to_string();
    assert!(text.contains("sample 1"), "{text}");
}

#[test]
fn a_workspace_serves_batches_of_any_size_and_survives_an_error() {
    let ours = plugin(Settings::default());
    let mut shared = Workspace::new();
    for (n, b) in [32, 7, 0, 19, 32].into_iter().enumerate() {
        let batch = Batch::random(b, 5 + n, 10, n as u64);
        let fresh = {
            let mut w = Workspace::new();
            let r = ours.loss_and_gradient(&batch.features, batch.dim, &batch.given(), &mut w).unwrap();
            (r.value, r.gradient.to_vec())
        };
        let mut broken = batch.features.clone();
        if let Some(f) = broken.first_mut() {
            *f = f64::NAN;
            assert!(ours.loss_and_gradient(&broken, batch.dim, &batch.given(), &mut shared).is_err());
        }
        let again = ours.loss_and_gradient(&batch.features, batch.dim, &batch.given(), &mut shared).unwrap();
        assert_eq!((again.value, again.gradient), (fresh.0, &fresh.1[..]));
    }
}

#[test]
fn a_refused_batch_leaves_the_running_class_means_alone() {
    let centred = plugin(Settings::default().with_centre(negscale::Centre::ClassBalanced));
    let mut w = Workspace::new();
    let (first, second) = (Batch::random(12, 4, 10, 1), Batch::random(12, 4, 10, 2));
    centred.loss_and_gradient(&first.features, 4, &first.given(), &mut w).unwrap();
    let before = w.memory().clone();
    let bad = vec![2.0; 12];
    assert!(
        centred
            .loss_and_gradient(&second.features, 4, &BatchLabels::new(&second.labels, &bad), &mut w)
            .is_err()
    );
    assert_eq!(w.memory(), &before);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for b in [100, 300, 520] {
        let batch = Batch::random(b, 24, 10, 1);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut w = Workspace::new();
                let ours = plugin(Settings::default());
                let r = ours.loss_and_gradient(&batch.features, 24, &batch.given(), &mut w).unwrap();
                (r.value, r.gradient.to_vec())
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "batch {b}");
    }
}

#[test]
fn evaluations_at_the_same_time_and_inside_each_others_pool_change_no_bit() {
    use rayon::prelude::*;
    let batch = Batch::random(300, 24, 10, 1);
    let run = |_: usize| {
        let mut w = Workspace::new();
        let r = plugin(Settings::default())
            .loss_and_gradient(&batch.features, 24, &batch.given(), &mut w)
            .unwrap();
        (r.value, r.gradient.to_vec())
    };
    let alone = run(0);
    let in_one_pool: Vec<_> = (0..8).into_par_iter().map(run).collect();
    let from_outside = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|at| scope.spawn(move || run(at))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(in_one_pool.iter().chain(&from_outside).all(|result| *result == alone));
}

#[test]
fn normalising_inside_the_products_equals_normalising_first() {
    // Rectifying changes nothing where all is positive, but takes the other way.
    for (b, dim) in [(2, 3), (20, 31), (70, 90)] {
        let mut batch = Batch::random(b, dim, 10, 8);
        batch.features.iter_mut().for_each(|f| *f = f.abs() + 0.01);
        let run = |rectify: bool| {
            let mut w = Workspace::new();
            let ours = plugin(Settings::default().with_rectify(rectify));
            let r = ours.loss_and_gradient(&batch.features, dim, &batch.given(), &mut w).unwrap();
            (r.value, r.gradient.to_vec(), r.terms)
        };
        let ((value, gradient, terms), (other, other_gradient, other_terms)) = (run(false), run(true));
        assert!((value - other).abs() < 1e-12 * value.abs().max(1.0), "{value} {other}");
        assert_eq!(terms.capped_pairs, other_terms.capped_pairs);
        let size = gradient.iter().fold(1e-12, |m: f64, g| m.max(g.abs()));
        for (a, b) in gradient.iter().zip(&other_gradient) {
            assert!((a - b).abs() < 1e-11 * size, "{a} {b}");
        }
    }
}

#[test]
fn the_printed_form_used_for_comparison_agrees() {
    for name in ["cifar10", "cifar100"] {
        let tree = Taxonomy::builtin(name).unwrap();
        for settings in [
            Settings::default(),
            Settings::default().with_reduction(negscale::Reduction::Sum).with_self_anchor(false),
        ] {
            let ours = NegScale::new(&tree, settings).unwrap();
            let batch = Batch::random(40, 12, tree.classes(), 6);
            let mut w = Workspace::new();
            let fast = ours.loss_and_gradient(&batch.features, 12, &batch.given(), &mut w).unwrap();
            let literal =
                negscale::reference::loss_and_gradient(&ours, &batch.features, 12, &batch.given()).unwrap();
            assert!((fast.value - literal.value).abs() < 1e-10 * fast.value.abs().max(1.0));
            let size = literal.gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9 * size;
            assert!(size > 0.0 && fast.gradient.iter().zip(&literal.gradient).all(close));
        }
    }
}
