//! Trees that serve as controls: permuted, and with all classes unrelated.

use negscale::taxonomy::{LearntSettings, Taxonomy, Thresholds};

use crate::{builtin, complains, counts, thresholds};

/// All distances, sorted.
fn multiset(tree: &Taxonomy) -> Vec<u32> {
    let mut all = tree.distances().as_slice().to_vec();
    all.sort_unstable();
    all
}

#[test]
fn a_permutation_keeps_shape_counts_and_classes_and_changes_who_is_where() {
    for name in Taxonomy::builtin_names() {
        let tree = builtin(name);
        for seed in 0..20 {
            let other = tree.permuted(seed).unwrap();
            assert_eq!(other.name(), format!("permuted:{seed}:{name}"));
            assert!(other.class_names().eq(tree.class_names()), "{name}: classes keep their indices");
            assert_eq!(other.nodes(), tree.nodes());
            assert_eq!(multiset(&other), multiset(&tree), "{name} {seed}");
            assert_ne!(other.distances(), tree.distances(), "{name} {seed}: never the same tree");
            for t in [thresholds(3, 5), thresholds(1, 7), thresholds(4, 6)] {
                assert_eq!(counts(&other, t), counts(&tree, t), "{name} {seed}");
            }
            assert_eq!(
                Taxonomy::from_tsv(other.name(), &other.to_tsv()).unwrap(),
                other,
                "a tree by its table"
            );
        }
    }
}

#[test]
fn a_seed_gives_one_permutation_and_another_seed_another() {
    let tree = builtin("cifar100");
    assert_eq!(tree.permuted(3).unwrap(), tree.permuted(3).unwrap());
    assert_ne!(tree.permuted(3).unwrap().distances(), tree.permuted(4).unwrap().distances());
}

#[test]
fn every_class_comes_to_every_place_about_equally_often() {
    // Depths of this tree tell the places apart: a at 1, b at 2, c at 3.
    let tree = Taxonomy::from_indented("line", "root\n  a\n  g\n    b\n    h\n      c\n", &[""; 0]).unwrap();
    let mut table = [[0_u32; 3]; 3];
    for seed in 0..3000 {
        let other = tree.permuted(seed).unwrap();
        (0..3).for_each(|class| table[class][other.depth_of_class(class) as usize - 1] += 1);
    }
    // D(b, c) = 3 = D(a, b): distances leave b, c and a to be told apart by D(a, c) = 4 alone, so that the identity and the
    // swap of a and c are redrawn. Of the four others, two have each of a and c in the middle, and none has b there.
    assert_eq!(table[1][1], 0, "{table:?}");
    for count in [table[0][1], table[2][1]] {
        assert!(count.abs_diff(1500) < 150, "{table:?}");
    }
    for count in [table[0][0], table[0][2], table[2][0], table[2][2]] {
        assert!(count.abs_diff(750) < 120, "{table:?}");
    }
}

#[test]
fn a_tree_that_no_permutation_changes_is_refused() {
    complains(Taxonomy::flat(&["a", "b", "c"]).unwrap().permuted(1), &["`flat`", "cannot be permuted"]);
    let two = Taxonomy::from_indented("two", "root\n  a\n  b\n", &[""; 0]).unwrap();
    complains(two.permuted(1), &["`two`"]);
}

#[test]
fn a_learnt_tree_is_permuted_once_it_is_grown() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let means: Vec<f64> =
        (0..6).flat_map(|c| [f64::from(c / 2), f64::from(c % 2) * 0.1, f64::from(c * c)]).collect();
    let tree = Taxonomy::learnt(&names, &means, &LearntSettings::default()).unwrap();
    let other = Taxonomy::learnt(&names, &means, &LearntSettings::default().with_permuted(Some(5))).unwrap();
    assert_eq!(other, tree.permuted(5).unwrap());
}

#[test]
fn a_tree_of_unrelated_classes_has_no_other_pairs_at_any_threshold_a_built_in_tree_can_use() {
    let names: Vec<String> = builtin("cifar100").class_names().map(str::to_owned).collect();
    let tree = Taxonomy::unrelated(&names).unwrap();
    assert!(tree.class_names().eq(names.iter().map(String::as_str)));
    assert_eq!(counts(&tree, Thresholds::default()), (0, 0, 4950));
    for name in Taxonomy::builtin_names() {
        assert!(builtin(name).distances().largest() < tree.distance(0, 1), "{name}");
    }
    complains(Taxonomy::unrelated(&["a", "a"]), &["`unrelated`", "unique"]);
}
