//! The examples run, and come to what they say.
#![allow(clippy::unwrap_used, dead_code)]

#[cfg(feature = "flex")]
#[path = "../examples/burn_loop.rs"]
mod burn_loop;
#[path = "../examples/class_tree.rs"]
mod class_tree;

use negscale::taxonomy::{Relation, Thresholds};

#[cfg(feature = "flex")]
#[test]
fn the_burn_loop_learns_although_two_labels_in_five_are_wrong() {
    let (before, after) = burn_loop::train(4).unwrap();
    assert!(before < 0.4 && after > 0.6, "accuracy {before} before, {after} after");
}

#[test]
fn the_learnt_tree_finds_the_groups_that_the_features_were_made_with() {
    let (tree, thresholds) = (class_tree::learn().unwrap(), Thresholds::default());
    let relation = |a, b| tree.relation(a, b, thresholds);
    for class in (0..8).step_by(2) {
        assert_eq!(relation(class, class + 1), Relation::Related, "{}", tree.class_name(class));
    }
    for (beast, vehicle) in [(0, 4), (1, 6), (3, 7)] {
        assert_eq!(relation(beast, vehicle), Relation::Unrelated);
    }
}
