//! Fitting a tree to a data set.

use negscale::taxonomy::Taxonomy;

use crate::{NO_NAMES, between, builtin, complains};

#[test]
fn classes_take_the_order_and_spelling_of_the_data() {
    let names = [
        "Guinea Pig",
        "HAMSTER",
        "cat",
        "lynx",
        "wolf",
        "coyote",
        "cheetah",
        "jaguar",
        "chimpanzee",
        "orangutan",
    ];
    let (tree, built_in) = (builtin("animal10n").for_classes(&names).unwrap(), builtin("animal10n"));
    assert!(tree.class_names().eq(names));
    assert_eq!((tree.distance(0, 1), tree.distance(0, 2)), (2, 6));
    assert_eq!(between(&tree, "wolf", "jaguar"), between(&built_in, "wolf", "jaguar"));
    assert_eq!(Taxonomy::from_tsv("animal10n", &tree.to_tsv()).unwrap(), tree);
}

#[test]
fn spellings_found_in_copies_of_fashion_mnist_fit() {
    let names = [
        "T - shirt / top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "ankle_boot",
    ];
    let tree = builtin("fashion-mnist").for_classes(&names).unwrap();
    assert_eq!(tree.distances(), builtin("fashion-mnist").distances());
}

#[test]
fn classes_the_data_lacks_are_dropped_and_distances_stay() {
    let tree = builtin("cifar10").for_classes(&["frog", "horse", "automobile"]).unwrap();
    assert_eq!(tree.classes(), 3);
    assert_eq!((tree.distance(0, 1), tree.distance(0, 2), tree.distance(1, 2)), (4, 8, 8));
    assert!(tree.nodes() < builtin("cifar10").nodes());
    assert_eq!(Taxonomy::from_tsv("cifar10", &tree.to_tsv()).unwrap(), tree);
}

#[test]
fn every_class_the_tree_lacks_is_named_with_what_may_have_been_meant() {
    complains(
        builtin("cifar10").for_classes(&["cat", "aeroplane", "zebra", "Mammal"]),
        &[
            "`cifar10`",
            "3 of",
            "`aeroplane` (did you mean `airplane`?)",
            "`zebra`",
            "`Mammal` (a group of the tree",
        ],
    );
}

#[test]
fn classes_that_cannot_be_told_apart_are_refused() {
    complains(builtin("cifar10").for_classes(&["cat", "dog", "Cat"]), &["`cat`", "classes 0", "and 2"]);
    let tree = Taxonomy::from_tsv("t", "r\t\nCat\tr\t\t0\ncat\tr\t\t1\n").unwrap();
    complains(tree.for_classes(&["CAT"]), &["`CAT`", "`Cat` or `cat`"]);
    assert!(tree.for_classes(&["cat", "Cat"]).unwrap().class_names().eq(["cat", "Cat"]));
    complains(tree.for_classes(NO_NAMES), &["empty"]);
}

#[test]
fn a_spelling_that_another_node_bears_is_not_taken_over() {
    let tree = Taxonomy::from_tsv("t", "r\t\nBird\tr\nbird\tBird\t\t0\n").unwrap();
    assert!(tree.for_classes(&["Bird"]).unwrap().class_names().eq(["bird"]));
    assert!(tree.for_classes(&["BIRD"]).unwrap().class_names().eq(["BIRD"]));
}
