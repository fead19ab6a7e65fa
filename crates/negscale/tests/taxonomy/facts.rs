//! The built-in trees against the figures they were designed for.

use negscale::taxonomy::{Relation, Taxonomy, Thresholds};

use crate::{NO_NAMES, between, builtin, complains, counts, thresholds};

#[test]
fn every_built_in_tree_loads_and_has_its_number_of_classes() {
    let classes: Vec<usize> = Taxonomy::builtin_names().iter().map(|name| builtin(name).classes()).collect();
    assert_eq!(classes, [10, 10, 10, 10, 100, 100, 10, 50, 10]);
    assert_eq!(builtin("cifar10").name(), "cifar10");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_and_all_known_ones() {
    complains(
        Taxonomy::builtin("cifar-100"),
        &["`cifar-100`", "did you mean `cifar100`?", "webvision50", "fashion-mnist"],
    );
    let message = Taxonomy::builtin("zoo").unwrap_err().to_string();
    assert!(!message.contains("did you mean") && message.contains("animal10n"), "{message}");
}

#[test]
fn distance_is_a_metric_on_every_built_in_tree() {
    for name in Taxonomy::builtin_names() {
        let tree = builtin(name);
        let d = tree.distances();
        for a in 0..tree.classes() {
            for b in 0..tree.classes() {
                assert_eq!(d.get(a, b), d.get(b, a), "{name} {a} {b}");
                assert_eq!(d.get(a, b) == 0, a == b, "{name} {a} {b}");
                for c in 0..tree.classes() {
                    assert!(d.get(a, c) <= d.get(a, b) + d.get(b, c), "{name} {a} {b} {c}");
                }
            }
        }
    }
}

#[test]
fn distance_equals_the_formula_with_depths_found_by_walking_the_ancestors() {
    for name in Taxonomy::builtin_names() {
        let tree = builtin(name);
        let d = tree.distances();
        let path = |class: usize| -> Vec<&str> {
            std::iter::once(tree.class_name(class)).chain(tree.ancestors(class)).collect()
        };
        for a in 0..tree.classes() {
            assert_eq!(path(a).len() as u32, tree.depth_of_class(a) + 1);
            for b in 0..tree.classes() {
                let (pa, pb) = (path(a), path(b));
                let lca = pa.iter().find(|node| pb.contains(node)).unwrap();
                let h_lca = (pa.len() - 1 - pa.iter().position(|node| node == lca).unwrap()) as u32;
                let by_formula =
                    tree.depth_of_class(a).abs_diff(h_lca) + tree.depth_of_class(b).abs_diff(h_lca);
                assert_eq!(tree.distance(a, b), by_formula, "{name} {a} {b}");
                assert_eq!(d.get(a, b), by_formula, "{name} {a} {b}");
            }
        }
    }
}

#[test]
fn the_pairs_of_every_tree_divide_as_tabulated_at_three_and_five() {
    for (name, expected) in [
        ("cifar10", (8, 13, 24)),
        ("cifar10-flat", (8, 13, 24)),
        ("cifar10-contracted", (13, 8, 24)),
        ("cifar10-wordnet", (5, 24, 16)),
        ("cifar100", (200, 525, 4225)),
        ("cifar100-three-level", (200, 525, 4225)),
        ("animal10n", (9, 8, 28)),
        ("webvision50", (117, 221, 887)),
        ("fashion-mnist", (9, 9, 27)),
    ] {
        assert_eq!(counts(&builtin(name), Thresholds::default()), expected, "{name}");
    }
}

#[test]
fn the_distances_of_every_tree_are_as_often_as_tabulated() {
    for (name, expected) in [
        ("cifar10", &[(2, 4), (3, 4), (4, 9), (5, 4), (8, 16), (9, 8)][..]),
        ("cifar10-flat", &[(2, 8), (4, 13), (8, 24)]),
        ("cifar100", &[(2, 200), (4, 525), (6, 1050), (8, 900), (10, 2275)]),
        ("cifar100-three-level", &[(2, 200), (4, 525), (6, 4225)]),
        ("animal10n", &[(2, 5), (3, 4), (4, 4), (5, 4), (6, 20), (7, 8)]),
        ("webvision50", &[(2, 89), (3, 28), (4, 112), (5, 109), (6, 287), (7, 463), (8, 137)]),
        ("fashion-mnist", &[(2, 7), (3, 2), (4, 9), (6, 6), (7, 12), (8, 7), (9, 2)]),
    ] {
        let histogram: Vec<(u32, usize)> =
            builtin(name).summary(Thresholds::default()).histogram.into_iter().collect();
        assert_eq!(histogram, expected, "{name}");
    }
}

#[test]
fn the_six_threshold_pairs_give_the_tabulated_set_sizes() {
    let settings = [(3, 3), (3, 5), (5, 5), (1, 7), (1, 3), (4, 6)];
    for (name, expected) in [
        ("cifar10", [(8, 37), (8, 24), (21, 24), (0, 24), (0, 37), (17, 24)]),
        ("cifar100", [(200, 4750), (200, 4225), (725, 4225), (0, 3175), (0, 4750), (725, 3175)]),
        ("animal10n", [(9, 36), (9, 28), (17, 28), (0, 0), (0, 36), (13, 8)]),
        ("webvision50", [(117, 1108), (117, 887), (338, 887), (0, 137), (0, 1108), (229, 600)]),
    ] {
        let tree = builtin(name);
        for ((eta_min, eta_max), expected) in settings.into_iter().zip(expected) {
            let (related, _, unrelated) = counts(&tree, thresholds(eta_min, eta_max));
            assert_eq!((related, unrelated), expected, "{name} at ({eta_min}, {eta_max})");
            let summary = tree.summary(thresholds(eta_min, eta_max));
            assert_eq!((summary.related, summary.unrelated), expected, "{name} at ({eta_min}, {eta_max})");
        }
    }
}

#[test]
fn figure_one_holds_horse_and_dog_are_close_and_automobile_and_frog_far() {
    for (name, horse_dog, automobile_frog) in
        [("cifar10", 3, 8), ("cifar10-flat", 2, 8), ("cifar10-contracted", 3, 7), ("cifar10-wordnet", 4, 5)]
    {
        let tree = builtin(name);
        assert_eq!(between(&tree, "horse", "dog"), horse_dog, "{name}");
        assert_eq!(between(&tree, "automobile", "frog"), automobile_frog, "{name}");
    }
}

#[test]
fn the_alternatives_for_cifar10_share_the_unrelated_pairs_and_differ_where_they_should() {
    let unrelated = |tree: &Taxonomy, t: Thresholds| -> Vec<bool> {
        tree.distances().as_slice().iter().map(|&d| t.relation(d) == Relation::Unrelated).collect()
    };
    let (tree, flat, contracted) =
        (builtin("cifar10"), builtin("cifar10-flat"), builtin("cifar10-contracted"));
    let default = Thresholds::default();
    assert_eq!(unrelated(&tree, default), unrelated(&flat, default));
    assert_eq!(unrelated(&tree, default), unrelated(&contracted, default));
    assert_eq!(counts(&flat, thresholds(5, 5)), counts(&flat, thresholds(4, 6)));
    assert_eq!((between(&contracted, "bird", "frog"), between(&contracted, "bird", "horse")), (2, 3));
    assert!(contracted.summary(default).without_relative.is_empty());
    assert_eq!(tree.summary(default).without_relative, ["bird", "frog"]);
    // P_neg is the same for eta_max = 5, 6, 7 on our tree, and shrinks to 16 at 7 on the contracted one.
    assert_eq!(unrelated(&tree, default), unrelated(&tree, thresholds(1, 7)));
    assert_eq!(counts(&contracted, thresholds(1, 7)).2, 16);
}

#[test]
fn both_cifar100_trees_divide_the_pairs_alike_at_three_and_five_only() {
    let (five, three) = (builtin("cifar100").distances(), builtin("cifar100-three-level").distances());
    let t = Thresholds::default();
    assert!(five.as_slice().iter().zip(three.as_slice()).all(|(&a, &b)| t.relation(a) == t.relation(b)));
    for (eta_min, eta_max) in [(4, 6), (1, 7)] {
        assert_eq!(counts(&builtin("cifar100-three-level"), thresholds(eta_min, eta_max)).2, 0);
    }
}

#[test]
fn the_closest_pairs_of_animal10n_are_the_five_it_was_built_to_confuse() {
    let tree = builtin("animal10n");
    for (a, b) in [
        ("cat", "lynx"),
        ("jaguar", "cheetah"),
        ("wolf", "coyote"),
        ("chimpanzee", "orangutan"),
        ("hamster", "guinea_pig"),
    ] {
        assert_eq!(between(&tree, a, b), 2);
    }
}

#[test]
fn webvision_calls_exactly_the_pairs_of_different_vertebrate_classes_unrelated() {
    let tree = builtin("webvision50");
    let kind = |class| tree.ancestors(class).nth(tree.depth_of_class(class) as usize - 2).unwrap();
    for a in 0..50 {
        for b in 0..50 {
            assert_eq!(
                tree.distance(a, b) > 5,
                kind(a) != kind(b),
                "{} {}",
                tree.class_name(a),
                tree.class_name(b)
            );
        }
    }
    let alone = tree.summary(Thresholds::default()).without_relative;
    assert_eq!(alone.len(), 2, "{alone:?}");
    assert!(alone[0].contains("ostrich") && alone[1].contains("crocodile"), "{alone:?}");
}

#[test]
fn fashion_mnist_relates_what_people_confuse() {
    let tree = builtin("fashion-mnist");
    let names = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ];
    assert!(tree.class_names().eq(names));
    let relation = |a, b| Thresholds::default().relation(between(&tree, a, b));
    for (a, b) in
        [("Shirt", "T-shirt/top"), ("Shirt", "Coat"), ("Sneaker", "Ankle boot"), ("Sneaker", "Sandal")]
    {
        assert_eq!(relation(a, b), Relation::Related, "{a} {b}");
    }
    assert_eq!(relation("Dress", "Shirt"), Relation::Neutral);
    for (a, b) in [("Shirt", "Sneaker"), ("Trouser", "Ankle boot"), ("Bag", "Coat"), ("Bag", "Sandal")] {
        assert_eq!(relation(a, b), Relation::Unrelated, "{a} {b}");
    }
    for (eta_min, eta_max) in [(3, 3), (3, 5), (5, 5), (1, 7), (1, 3), (4, 6)] {
        assert!(counts(&tree, thresholds(eta_min, eta_max)).2 > 0);
    }
}

#[test]
fn a_flat_tree_claims_no_relation() {
    let tree = Taxonomy::flat(&["cat", "only cat", "all classes", "dog"]).unwrap();
    assert!(tree.class_names().eq(["cat", "only cat", "all classes", "dog"]));
    assert_eq!(counts(&tree, Thresholds::default()), (0, 6, 0));
    assert_eq!(tree.distance(0, 3), 4);
    assert_eq!(Taxonomy::flat(&["one"]).unwrap().classes(), 1);
    complains(Taxonomy::flat(NO_NAMES), &["`flat`", "empty"]);
    complains(Taxonomy::flat(&["cat", "dog", "cat"]), &["node `cat`", "`cat`, class 0", "unique"]);
    complains(Taxonomy::flat(&["cat", " "]), &["name is empty"]);
    complains(Taxonomy::flat(&["a\tb"]), &["tabs"]);
}

#[test]
fn thresholds_in_the_wrong_order_are_refused() {
    complains(Thresholds::new(5, 3), &["eta_min", "5", "eta_max = 3"]);
    let t = Thresholds::default();
    assert_eq!((t.eta_min(), t.eta_max()), (3, 5));
    assert_eq!([0, 3, 4, 5, 6].map(|d| t.relation(d)), {
        use Relation::*;
        [Same, Related, Neutral, Neutral, Unrelated]
    });
    assert_eq!(thresholds(0, u32::MAX).relation(u32::MAX), Relation::Neutral);
}

#[test]
fn the_summary_prints_counts_shares_and_lonely_classes() {
    let text = builtin("cifar10").summary(Thresholds::default()).to_string();
    for part in ["10 classes, 45 pairs", "17.8 %", "28.9 %", "53.3 %", "without a related class: bird, frog"]
    {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(!text.contains("warning") && !text.contains("without an unrelated"), "{text}");
}

#[test]
fn the_summary_warns_when_a_set_of_pairs_is_empty() {
    let text = builtin("cifar10").summary(thresholds(1, 7)).to_string();
    assert!(text.contains("warning: DCSA will be off") && text.contains("P_sim is empty"), "{text}");
    let text = builtin("animal10n").summary(thresholds(3, 7)).to_string();
    assert!(text.contains("SNOP and DCSA will be off") && text.contains("P_neg is empty"), "{text}");
    let single = Taxonomy::flat(&["one"]).unwrap().summary(Thresholds::default());
    assert_eq!((single.pairs, single.warnings().len()), (0, 1));
    assert!(single.to_string().contains("1 class, 0 pairs"));
}

#[test]
fn distances_of_no_tree_make_the_same_plug_in_and_are_checked() {
    use negscale::{NegScale, Settings, taxonomy::Distances};
    let tree = builtin("cifar10");
    let copy = Distances::new(10, tree.distances().as_slice().to_vec()).unwrap();
    let plugin = NegScale::from_distances("mine", &copy, Settings::default()).unwrap();
    assert_eq!(plugin.relations(), NegScale::new(&tree, Settings::default()).unwrap().relations());
    complains(Distances::new(2, vec![0, 1, 1]), &["3 values", "2 classes"]);
    complains(Distances::new(0, vec![]), &["0 classes"]);
    complains(Distances::new(2, vec![0, 1, 1, 4]), &["class 1", "distance 4 from itself"]);
    complains(Distances::new(2, vec![0, 2, 3, 0]), &["class 1 to class 0", "3", "2"]);
}
