//! Indented text.

use negscale::taxonomy::Taxonomy;
use proptest::prelude::*;

use crate::{NO_NAMES, builtin, complains};

const CIFAR10: &str = "
entity
  artifact
    vehicle
      motor vehicle: automobile, truck
      craft: airplane, ship
  organism              # all that lives
    vertebrate
      mammal
        carnivore: cat, dog
        deer, horse
      bird class: bird
      amphibian: frog
";

fn read(text: &str, classes: &[&str]) -> negscale::Result<Taxonomy> {
    Taxonomy::from_indented("test", text, classes)
}

#[test]
fn the_sketch_of_the_cifar10_tree_gives_the_built_in_tree() {
    let built_in = builtin("cifar10");
    let names: Vec<&str> = built_in.class_names().collect();
    let tree = Taxonomy::from_indented("cifar10", CIFAR10, &names).unwrap();
    assert_eq!(tree, built_in);
    assert_eq!(Taxonomy::from_indented("cifar10", &CIFAR10.replace("  ", "\t"), &names).unwrap(), built_in);
    assert_eq!(Taxonomy::from_indented("cifar10", &CIFAR10.replace('\n', "\r\n"), &names).unwrap(), built_in);
}

#[test]
fn without_a_list_the_leaves_are_numbered_as_they_appear() {
    let tree = read(CIFAR10, NO_NAMES).unwrap();
    let names = ["automobile", "truck", "airplane", "ship", "cat", "dog", "deer", "horse", "bird", "frog"];
    assert!(tree.class_names().eq(names));
}

#[test]
fn lines_may_follow_below_a_node_with_leaves_beside_it() {
    let tree =
        read("carnivore\n feline: cat, lynx\n  big cat: jaguar, cheetah\n canine:\n  wolf\n", NO_NAMES)
            .unwrap();
    assert!(tree.class_names().eq(["cat", "lynx", "jaguar", "cheetah", "wolf"]));
    assert_eq!((tree.distance(0, 2), tree.distance(2, 4)), (3, 5));
}

#[test]
fn listed_classes_may_be_inner_nodes_and_be_spelt_loosely() {
    let tree =
        read("canine\n  Wolf: coyote\n  C#, guinea pig\n", &["coyote", "wolf", "guinea_pig", "C#"]).unwrap();
    assert!(tree.class_names().eq(["coyote", "Wolf", "guinea pig", "C#"]));
    assert_eq!(tree.distance(0, 1), 1);
}

#[test]
fn every_flaw_is_reported_with_its_line_and_node() {
    for (text, classes, parts) in [
        ("", NO_NAMES, &["`test`", "empty"][..]),
        ("a\n  b\nc\n", NO_NAMES, &["line 3", "`c`", "second root", "`a` in line 1"]),
        ("a\n    b\n  c\n", NO_NAMES, &["line 3", "`c`", "matches none"]),
        ("  a\n    b\nc\n", NO_NAMES, &["line 3", "`c`", "matches none"]),
        ("a\n  b\n\tc\n", NO_NAMES, &["line 3", "`c`", "tabs", "spaces"]),
        ("a\n \tb\n", NO_NAMES, &["line 2", "`b`", "tabs", "spaces"]),
        ("a\n  b, c\n    d\n", NO_NAMES, &["line 3", "`d`", "several leaves"]),
        ("a\n  b\n  b\n", NO_NAMES, &["line 3", "`b`", "taken", "line 2"]),
        ("a: b,, c\n", NO_NAMES, &["line 1", "`a`", "comma"]),
        ("a\n  : b\n", NO_NAMES, &["line 2", "`a`", "colon"]),
        ("a\n  b\n  c\n", &["b"], &["line 3", "`c`", "not in the list"]),
        ("a\n  cat\n  dog\n", &["cat", "doge"], &["line 3", "`dog`", "did you mean `doge`?"]),
        ("a\n  b\n  c\n", &["b", "c", "zebra"], &["`zebra`", "class 2", "nowhere"]),
        ("a\n  b\n  B\n", &["b"], &["line 3", "`B`", "class `b`", "line 2"]),
        ("a\n  b\n  c\n", &["b", "c", "b"], &["`b`", "listed twice"]),
        ("a\n  cat\n", &["Cat", "CAT"], &["line 2", "`cat`", "`Cat` and `CAT`"]),
        ("a\n  b:\n  c\n", NO_NAMES, &["line 2", "`b`", "no members"]),
    ] {
        println!("{text:?}");
        complains(read(text, classes), parts);
    }
}

#[test]
fn a_missing_name_with_nothing_above_it_blames_no_node() {
    let error = read(", a\n", NO_NAMES).unwrap_err().to_string();
    assert!(error.contains("line 1") && !error.contains("node"), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), classes in prop::collection::vec(any::<String>(), 0..3)) {
        let _ = Taxonomy::from_indented("x", &text, &classes);
    }

    #[test]
    fn arbitrary_sketches_never_panic(
        text in "([ \t]{0,3}[a-c:,# ]{0,5}\n){0,6}",
        classes in prop::collection::vec("[a-cA]", 0..4),
    ) {
        if let Ok(tree) = Taxonomy::from_indented("x", &text, &classes) {
            prop_assert_eq!(Taxonomy::from_tsv("x", &tree.to_tsv()).unwrap(), tree);
        }
    }
}
