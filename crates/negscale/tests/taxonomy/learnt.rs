//! Trees learnt from class means.

use negscale::taxonomy::{LearntSettings, Taxonomy, Thresholds, class_means};
use proptest::prelude::*;

use crate::{NO_NAMES, complains, counts};

fn names(classes: usize) -> Vec<String> {
    (0..classes).map(|c| format!("c{c}")).collect()
}

fn learn(means: &[f64], classes: usize) -> negscale::Result<Taxonomy> {
    Taxonomy::learnt(&names(classes), means, &LearntSettings::default())
}

/// Twelve classes, three families of two groups of two: axes for family, group and class, each weaker
/// than the one before.
fn hierarchy() -> Vec<f64> {
    let mut means = vec![0.0; 12 * 21];
    for class in 0..12 {
        let row = &mut means[class * 21..(class + 1) * 21];
        row[class / 4] = 3.0;
        row[3 + class / 2] = 1.5;
        row[9 + class] = 0.5;
        row.iter_mut().for_each(|value| *value += 10.0);
    }
    means
}

#[test]
fn a_planted_hierarchy_is_recovered() {
    let tree = learn(&hierarchy(), 12).unwrap();
    for a in 0..12 {
        for b in 0..12 {
            let expected = match (a == b, a / 2 == b / 2, a / 4 == b / 4) {
                (true, ..) => 0,
                (_, true, _) => 2,
                (_, _, true) => 4,
                _ => 6,
            };
            assert_eq!(tree.distance(a, b), expected, "{a} {b}");
        }
    }
    assert_eq!(counts(&tree, Thresholds::default()), (6, 12, 48));
    assert_eq!(
        tree.ancestors(1).collect::<Vec<_>>(),
        ["group 1 (c0, c1)", "broad group 1 (c0, c1, c2, +1)", "all classes"]
    );
    assert_eq!(Taxonomy::from_tsv("learnt", &tree.to_tsv()).unwrap(), tree);
}

#[test]
fn neither_scale_nor_shift_nor_order_of_classes_changes_the_tree() {
    let means = hierarchy();
    let tree = learn(&means, 12).unwrap();
    let moved: Vec<f64> = means.iter().enumerate().map(|(i, m)| 1e200 * (m + (i % 21) as f64)).collect();
    assert_eq!(learn(&moved, 12).unwrap(), tree);
    let reversed: Vec<f64> = means.chunks(21).rev().flatten().copied().collect();
    let reversed = learn(&reversed, 12).unwrap();
    for a in 0..12 {
        for b in 0..12 {
            assert_eq!(reversed.distance(11 - a, 11 - b), tree.distance(a, b));
        }
    }
}

#[test]
fn the_shares_bound_the_related_and_unrelated_pairs() {
    let settings = LearntSettings::default().with_related_share(0.0).with_unrelated_share(1.0);
    let tree = Taxonomy::learnt(&names(12), &hierarchy(), &settings).unwrap();
    assert_eq!(counts(&tree, Thresholds::default()), (0, 0, 66));
    let settings = LearntSettings::default().with_related_share(0.3).with_unrelated_share(0.0);
    let tree = Taxonomy::learnt(&names(12), &hierarchy(), &settings).unwrap();
    assert_eq!(counts(&tree, Thresholds::default()), (18, 48, 0));
}

#[test]
fn very_few_classes_work() {
    assert_eq!(learn(&[1.0, 2.0], 1).unwrap().classes(), 1);
    assert_eq!(learn(&[1.0, 2.0], 2).unwrap().distance(0, 1), 6);
    let three = learn(&[1.0, 0.1, 1.0, -0.1, -1.0, 0.0], 3).unwrap();
    assert_eq!((three.distance(0, 1), three.distance(0, 2), three.distance(1, 2)), (2, 6, 6));
    // The closest pair stays related even where that leaves fewer unrelated pairs than asked for.
    let settings = LearntSettings::default().with_related_share(0.1).with_unrelated_share(0.9);
    assert_eq!(Taxonomy::learnt(&names(3), &[1.0, 0.1, 1.0, -0.1, -1.0, 0.0], &settings).unwrap(), three);
}

#[test]
fn classes_equally_far_from_each_other_are_not_lumped_together() {
    let mut means = vec![0.0; 25];
    (0..5).for_each(|c| means[c * 5 + c] = 1.0);
    assert_eq!(counts(&learn(&means, 5).unwrap(), Thresholds::default()), (0, 0, 10));
    // Two equally close pairs are both related, although one alone would fill the share.
    let square = learn(&[1.0, 0.1, 1.0, -0.1, -1.0, 0.1, -1.0, -0.1], 4).unwrap();
    assert_eq!(counts(&square, Thresholds::default()), (2, 0, 4));
}

#[test]
fn a_class_in_the_very_centre_is_orthogonal_to_all_others() {
    let tree = learn(&[1.0, 0.1, 1.0, -0.1, -1.0, 0.1, -1.0, -0.1, 0.0, 0.0], 5).unwrap();
    assert_eq!((tree.distance(0, 1), tree.distance(2, 3)), (2, 2));
    assert!((0..4).all(|c| tree.distance(c, 4) > 2));
}

#[test]
fn group_names_step_aside_for_classes_of_the_same_name() {
    let tree =
        Taxonomy::learnt(&["all classes", "group 1 (all classes)"], &[0.0, 1.0], &LearntSettings::default());
    assert!(tree.unwrap().class_names().eq(["all classes", "group 1 (all classes)"]));
}

#[test]
fn unusable_means_and_settings_are_refused() {
    complains(learn(&[1.0, f64::NAN, 1.0, 1.0], 2), &["class 0 (`c0`)", "NaN"]);
    complains(learn(&[1.0, 1.0, 1.0, f64::INFINITY], 2), &["class 1 (`c1`)", "inf"]);
    complains(learn(&[2.0, 3.0, 2.0, 3.0], 2), &["same mean feature", "flat tree"]);
    complains(learn(&[0.0; 6], 3), &["same mean feature"]);
    complains(learn(&[1.0; 5], 2), &["class means", "got 5", "2 classes"]);
    complains(learn(&[], 2), &["class means", "got 0"]);
    complains(Taxonomy::learnt(NO_NAMES, &[1.0], &LearntSettings::default()), &["class means", "0 classes"]);
    for (related_share, unrelated_share) in [(-0.1, 0.5), (f64::NAN, 0.5), (0.1, 1.5), (0.6, 0.6)] {
        let settings =
            LearntSettings::default().with_related_share(related_share).with_unrelated_share(unrelated_share);
        complains(Taxonomy::learnt(&names(3), &hierarchy()[..63], &settings), &["related_share"]);
    }
}

#[test]
fn class_means_are_means_and_flaws_name_their_place() {
    let names = ["cat", "dog"];
    let means = class_means(&names, &[1.0, 2.0, 10.0, 20.0, 3.0, 4.0], 2, &[0, 1, 0]).unwrap();
    assert_eq!(means, [2.0, 3.0, 10.0, 20.0]);
    complains(class_means(&names, &[1.0, 2.0], 1, &[0, 0]), &["class 1 (`dog`)", "no sample"]);
    complains(class_means(&names, &[1.0, 2.0], 1, &[0, 2]), &["label 2", "sample 1", "2 classes"]);
    complains(class_means(&names, &[1.0, f32::NAN], 1, &[0, 1]), &["feature", "sample 1", "NaN"]);
    complains(class_means(&names, &[1.0, 2.0, 3.0], 2, &[0, 1]), &["features", "got 3", "need 4"]);
    complains(class_means(&names, &[], 0, &[0, 1]), &["features", "0 features each"]);
}

proptest! {
    #[test]
    fn any_finite_means_give_a_levelled_tree_within_the_shares(
        classes in 5_usize..12, values in prop::collection::vec(-1.0_f64..1.0, 12 * 3)
    ) {
        let tree = learn(&values[..classes * 3], classes).unwrap();
        let (related, neutral, unrelated) = counts(&tree, Thresholds::default());
        let pairs = (classes * (classes - 1) / 2) as f64;
        prop_assert!(tree.distances().as_slice().iter().all(|d| [0, 2, 4, 6].contains(d)));
        prop_assert!(related >= 1 && related as f64 <= 0.15 * pairs + 1e-9);
        prop_assert!(unrelated as f64 >= 0.5 * pairs - 1e-9, "{related} {neutral} {unrelated}");
    }
}

#[test]
fn many_classes_have_few_relatives_each() {
    let classes = 80;
    let means: Vec<f64> =
        (0..classes * 4).map(|at| ((at * at * 31 + at * 17) % 97) as f64 / 48.0 - 1.0).collect();
    let (related, _, _) = counts(&learn(&means, classes).unwrap(), Thresholds::default());
    assert!(related >= 1 && related <= 4 * classes / 2, "{related}");
    let many = LearntSettings::default().with_relatives(1e9);
    let tree = Taxonomy::learnt(&names(classes), &means, &many).unwrap();
    assert!(counts(&tree, Thresholds::default()).0 > related);
}
