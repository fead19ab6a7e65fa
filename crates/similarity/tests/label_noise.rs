//! Relations of wrong labels and precision of pairs, against loops over samples and pairs, and against what is known of real labels.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale::Taxonomy;
use negscale::taxonomy::Thresholds;
use negscale_data::real_data::real;
use negscale_similarity::label_noise::ErrorShare;
use negscale_similarity::{LabelNoise, Labels, RELATIONS};
use proptest::prelude::*;

fn cifar(name: &str) -> Taxonomy {
    Taxonomy::builtin(name).unwrap()
}

fn place(tree: &Taxonomy, a: u32, b: u32) -> usize {
    let name = format!("{:?}", tree.relation(a as usize, b as usize, Thresholds::default())).to_lowercase();
    RELATIONS.iter().position(|relation| *relation == name).unwrap()
}

fn by_truth(tree: &Taxonomy, given: &[u32], truth: &[u32]) -> LabelNoise {
    LabelNoise::of(&Labels::new(given, Some(truth), tree, Thresholds::default()).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn precision_is_what_a_loop_over_all_pairs_counts(
        labels in prop::collection::vec((0u32..10, 0u32..10), 0..60)
    ) {
        let tree = cifar("cifar10");
        let (given, truth): (Vec<u32>, Vec<u32>) = labels.into_iter().unzip();
        let (mut called, mut right, mut truly, mut all) = ([0u64; 4], [0u64; 4], [0u64; 4], 0u64);
        for i in 0..given.len() {
            for j in 0..i {
                let (a, b) = (place(&tree, given[i], given[j]), place(&tree, truth[i], truth[j]));
                called[a] += 1;
                right[a] += u64::from(a == b);
                truly[b] += 1;
                all += 1;
            }
        }
        let found = by_truth(&tree, &given, &truth);
        for (at, found) in found.pairs.list().into_iter().enumerate() {
            prop_assert_eq!(found.is_some(), called[at] > 0);
            if let Some(found) = found {
                prop_assert_eq!(found.pairs, called[at]);
                prop_assert!((found.precision - right[at] as f64 / called[at] as f64).abs() < 1e-12);
                prop_assert!((found.chance - truly[at] as f64 / all as f64).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn shares_of_wrong_labels_and_of_chance_are_means_over_wrong_labels(
        labels in prop::collection::vec((0u32..10, 0u32..10), 1..60)
    ) {
        let tree = cifar("cifar10");
        let (given, truth): (Vec<u32>, Vec<u32>) = labels.into_iter().unzip();
        let wrong: Vec<usize> = (0..given.len()).filter(|&i| given[i] != truth[i]).collect();
        let found = by_truth(&tree, &given, &truth);
        prop_assert_eq!(found.wrong, wrong.len() as f64);
        for (at, found) in found.errors.list().into_iter().enumerate() {
            let (mut share, mut chance) = (0.0, 0.0);
            for &i in &wrong {
                share += f64::from(u8::from(place(&tree, given[i], truth[i]) == at));
                // Every given label of another class is as likely.
                let others: Vec<u32> = given.iter().copied().filter(|&g| g != truth[i]).collect();
                let hits = others.iter().filter(|&&g| place(&tree, g, truth[i]) == at).count();
                chance += hits as f64 / others.len() as f64;
            }
            let wrong = wrong.len() as f64;
            prop_assert_eq!(found.is_some(), chance > 0.0);
            if let Some(ErrorShare { share: s, chance: c, ratio, interval: [low, high] }) = found {
                prop_assert!((s - share / wrong).abs() < 1e-12 && (c - chance / wrong).abs() < 1e-12);
                prop_assert!((ratio - share / chance).abs() < 1e-9);
                prop_assert!(0.0 <= *low && *low <= ratio + 1e-9 && ratio - 1e-9 <= *high);
                prop_assert!(*high > 0.0, "an interval of nothing is not nothing");
            }
        }
    }
}

/// Labels of balanced classes by a transition matrix, in expectation.
fn expected(tree: &Taxonomy, transition: impl Fn(usize, usize) -> f64) -> LabelNoise {
    let classes = tree.classes();
    let count = |at: usize| 5000.0 * transition(at % classes, at / classes);
    let counts: Vec<f64> = (0..classes * classes).map(count).collect();
    LabelNoise::estimated(&counts, tree, Thresholds::default()).unwrap()
}

/// A share r of all labels is drawn anew from all classes.
fn symmetric(r: f64) -> impl Fn(usize, usize) -> f64 {
    move |y, g| r / 10.0 + if y == g { 1.0 - r } else { 0.0 }
}

/// The usual flips of CIFAR-10: truck to automobile, bird to airplane, deer to horse, cat and dog.
fn asymmetric(r: f64) -> impl Fn(usize, usize) -> f64 {
    let target = |y: usize| match y {
        9 => 1,
        2 => 0,
        4 => 7,
        3 => 5,
        5 => 3,
        _ => y,
    };
    move |y, g| (if y == g { 1.0 - r } else { 0.0 }) + if target(y) == g { r } else { 0.0 }
}

fn near(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() < within, "{found}, not {wanted}");
}

fn precisions(found: &LabelNoise) -> [f64; 2] {
    [found.pairs.unrelated.unwrap().precision, found.pairs.related.unwrap().precision]
}

#[test]
fn symmetric_noise_follows_no_tree_and_its_pairs_are_little_better_than_chance() {
    let tree = cifar("cifar10");
    let found = expected(&tree, symmetric(0.8));
    for error in [found.errors.related, found.errors.neutral, found.errors.unrelated] {
        let error = error.unwrap();
        near(error.ratio, 1.0, 1e-9);
        assert!(error.interval[0] < 1.0 && error.interval[1] > 1.0);
    }
    assert!(found.verdict().contains("do not follow the tree"), "{}", found.verdict());
    let [unrelated, related] = precisions(&found);
    near(unrelated, 0.505, 0.005);
    near(related, 0.22, 0.005);
    near(found.pairs.unrelated.unwrap().chance, 0.48, 0.001);
}

#[test]
fn asymmetric_noise_of_cifar_10_follows_the_tree() {
    let tree = cifar("cifar10");
    let found = expected(&tree, asymmetric(0.4));
    let [unrelated, related] = precisions(&found);
    near(unrelated, 0.91, 0.01);
    near(related, 0.83, 0.01);
    assert!(found.errors.related.unwrap().interval[0] > 3.0, "{:?}", found.errors);
    assert!(found.verdict().ends_with("the errors follow the tree."), "{}", found.verdict());
}

/// Columns of a table of bytes in a .npy file.
fn columns(name: &str, width: usize) -> Option<Vec<Vec<u32>>> {
    let bytes = std::fs::read(real(name)?).unwrap();
    let begin = bytes.len() - 50_000 * width;
    Some(
        (0..width)
            .map(|c| bytes[begin..].iter().skip(c).step_by(width).map(|&b| b.into()).collect())
            .collect(),
    )
}

#[test]
fn labels_of_people_follow_the_tree() {
    if let Some(labels) = columns("cifar-n/cifar10n_labels.npy", 6) {
        let found = by_truth(&cifar("cifar10"), &labels[2], &labels[0]);
        let [unrelated, related] = precisions(&found);
        near(unrelated, 0.79, 0.005);
        near(related, 0.53, 0.005);
        for (error, wanted) in
            [(found.errors.related, 2.22), (found.errors.neutral, 1.09), (found.errors.unrelated, 0.53)]
        {
            let error = error.unwrap();
            near(error.ratio, wanted, 0.01);
            assert!(error.interval[1] - error.interval[0] < 0.1, "{error:?}");
        }
        assert!(found.verdict().starts_with("Wrong labels are 2.2 times as often"), "{}", found.verdict());
    }
    if let Some(labels) = columns("cifar-n/cifar100n_labels.npy", 4) {
        let found = by_truth(&cifar("cifar100"), &labels[1], &labels[0]);
        let [unrelated, related] = precisions(&found);
        near(unrelated, 0.95, 0.005);
        near(related, 0.52, 0.005);
    }
}

#[test]
fn the_interval_is_wilsons_by_chance() {
    // Two pairs of siblings, all labels wrong, every given class as frequent: chance gives a sibling in 1 of 3.
    let tree = Taxonomy::from_indented(
        "four",
        "all\n  living\n    plant\n      rose\n      tulip\n  made\n    vehicle\n      lorry\n      bus\n",
        &["rose", "tulip", "lorry", "bus"],
    )
    .unwrap();
    let mut counts = vec![0.0; 16];
    for y in 0..4 {
        for g in (0..4).filter(|&g| g != y) {
            counts[g * 4 + y] = if g / 2 == y / 2 { 20.0 } else { 5.0 };
        }
    }
    let found = LabelNoise::estimated(&counts, &tree, Thresholds::default()).unwrap();
    let related = found.errors.related.unwrap();
    near(related.ratio, 2.0, 1e-12);
    let (n, p, z) = (120.0f64, 2.0 / 3.0, 1.959_963_984_540_054f64);
    let (centre, reach) = (p + z * z / (2.0 * n), z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt());
    for (bound, wanted) in related.interval.into_iter().zip([centre - reach, centre + reach]) {
        near(bound, 3.0 * wanted / (1.0 + z * z / n), 1e-9);
    }
}

#[test]
fn estimates_must_be_clearer_than_counts() {
    let tree = cifar("cifar10");
    // A tenth more related labels than chance would give.
    let count = |y: u32, g: u32| match place(&tree, g, y) {
        0 => 3000.0,
        1 => 220.0,
        _ => 200.0,
    };
    let mut labels = (Vec::new(), Vec::new());
    let counts: Vec<f64> = (0..100).map(|at| count(at % 10, at / 10)).collect();
    for (at, &n) in counts.iter().enumerate() {
        labels.0.extend(std::iter::repeat_n(at as u32 / 10, n as usize));
        labels.1.extend(std::iter::repeat_n(at as u32 % 10, n as usize));
    }
    let counted = by_truth(&tree, &labels.0, &labels.1);
    let estimated = LabelNoise::estimated(&counts, &tree, Thresholds::default()).unwrap();
    assert_eq!(LabelNoise { is_estimated: true, ..counted }, estimated);
    assert!(counted.verdict().ends_with("the errors follow the tree."), "{}", counted.verdict());
    assert!(estimated.verdict().ends_with("do not follow the tree."), "{}", estimated.verdict());
}

#[test]
fn what_cannot_be_told_is_not_told() {
    let tree = cifar("cifar10");
    let clean = by_truth(&tree, &[0, 1, 2], &[0, 1, 2]);
    assert_eq!(clean.errors.list(), [None; 4]);
    assert_eq!(clean.verdict(), "Too few wrong labels to say (0).");
    let flat = Taxonomy::flat(&["a", "b", "c"]).unwrap();
    let given: Vec<u32> = (0..90).map(|i| i % 3).collect();
    let truth: Vec<u32> = (0..90).map(|i| (i + 1) % 3).collect();
    let found =
        LabelNoise::of(&Labels::new(&given, Some(&truth), &flat, Thresholds::new(1, 1).unwrap()).unwrap());
    assert!(found.unwrap().verdict().contains("nothing can be said"));
    let nothing = Labels::new(&given, None, &flat, Thresholds::default()).unwrap();
    assert!(LabelNoise::of(&nothing).is_none(), "no truth, no answer");
    assert!(LabelNoise::estimated(&[1.0; 9], &tree, Thresholds::default()).is_err());
    assert!(LabelNoise::estimated(&[f64::NAN; 100], &tree, Thresholds::default()).is_err());
}
