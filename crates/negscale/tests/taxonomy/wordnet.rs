//! WordNet. The fixture holds the licence of WordNet 3.0 and, unchanged, the lines of the synsets of
//! CIFAR-10 and ANIMAL-10N with everything above them.

use negscale::taxonomy::{SeveralHypernyms, Taxonomy, Thresholds, WordNetOptions};
use proptest::prelude::*;

use crate::{between, builtin, complains, counts};

const EXCERPT: &str = include_str!("../fixtures/wordnet-3.0-excerpt.noun");

const CIFAR10: [&str; 10] = [
    "n02691156",
    "n02958343",
    "n01503061",
    "n02121620",
    "n02430045",
    "n02084071",
    "n01639765",
    "n02374451",
    "n04194289",
    "n04490091",
];
const CIFAR10_NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
const ANIMAL10N: [&str; 10] = [
    "n02121620",
    "n02127052",
    "n02114100",
    "n02114855",
    "n02130308",
    "n02128925",
    "n02481823",
    "n02480495",
    "n02342885",
    "n02364673",
];

fn raw() -> WordNetOptions {
    WordNetOptions::default().with_contract_unary(false)
}

fn named(options: WordNetOptions) -> WordNetOptions {
    options.with_class_names(CIFAR10_NAMES)
}

fn read(text: &str, synsets: &[&str], options: &WordNetOptions) -> negscale::Result<Taxonomy> {
    Taxonomy::from_wordnet("test", text.as_bytes(), synsets, options)
}

#[test]
fn full_wordnet_on_cifar10_gives_the_published_distances_by_either_path() {
    for several_hypernyms in [SeveralHypernyms::LongestPath, SeveralHypernyms::FirstListed] {
        let tree = read(EXCERPT, &CIFAR10, &named(raw().with_several_hypernyms(several_hypernyms))).unwrap();
        assert!(tree.class_names().eq(CIFAR10_NAMES));
        assert_eq!(between(&tree, "horse", "dog"), 7);
        assert_eq!(between(&tree, "automobile", "frog"), 15);
        assert_eq!(between(&tree, "bird", "frog"), 3);
        assert_eq!(between(&tree, "cat", "dog"), 4);
        assert_eq!(counts(&tree, Thresholds::default()), (2, 2, 41));
    }
}

#[test]
fn wordnet_without_single_child_nodes_has_the_distances_of_the_built_in_wordnet_tree() {
    let tree = read(EXCERPT, &CIFAR10, &named(WordNetOptions::default())).unwrap();
    assert_eq!(tree.distances(), builtin("cifar10-wordnet").distances());
    assert_eq!(tree.nodes(), builtin("cifar10-wordnet").nodes());
}

#[test]
fn in_wordnet_wolf_is_the_parent_of_coyote_and_contraction_leaves_it_so() {
    let tree = read(EXCERPT, &ANIMAL10N, &raw()).unwrap();
    assert_eq!(between(&tree, "wolf", "coyote"), 1);
    assert_eq!(between(&tree, "lynx", "cheetah"), 5);
    assert_eq!(between(&tree, "cat", "hamster"), 5);
    assert_eq!(between(&tree, "cheetah", "coyote"), 6);
    assert_eq!(counts(&tree, Thresholds::default()), (7, 8, 30));
    let contracted = read(EXCERPT, &ANIMAL10N, &WordNetOptions::default()).unwrap();
    assert_eq!(between(&contracted, "wolf", "coyote"), 1);
    assert!(contracted.nodes() < tree.nodes());
}

#[test]
fn ids_may_be_written_in_three_ways() {
    let tree = read(EXCERPT, &["02084071-n", "02121620", "n02374451"], &raw()).unwrap();
    assert!(tree.class_names().eq(["dog", "cat", "horse"]));
    assert_eq!(tree.distance(0, 2), 7);
}

/// A synset line with one word and the given hypernyms.
fn line(offset: u32, word: &str, hypernyms: &[u32]) -> String {
    let pointers: String = hypernyms.iter().map(|h| format!("@ {h:08} n 0000 ")).collect();
    format!("{offset:08} 05 n 01 {word} 0 {:03} {pointers}| gloss\n", hypernyms.len())
}

#[test]
fn of_several_hypernyms_the_longer_path_or_the_first_is_taken() {
    let text = line(1, "top", &[])
        + &line(2, "short", &[1])
        + &line(3, "middle", &[1])
        + &line(4, "long", &[3])
        + &line(5, "thing", &[2, 4])
        + &line(6, "other", &[1]);
    let distance = |several_hypernyms| {
        let options = raw().with_several_hypernyms(several_hypernyms);
        read(&text, &["5", "6"], &options).unwrap().distance(0, 1)
    };
    assert_eq!(distance(SeveralHypernyms::LongestPath), 4);
    assert_eq!(distance(SeveralHypernyms::FirstListed), 3);
    let contracted = read(&text, &["5", "6"], &WordNetOptions::default()).unwrap();
    assert_eq!((contracted.distance(0, 1), contracted.nodes()), (2, 3));
}

#[test]
fn of_two_equally_long_paths_the_one_listed_first_is_taken() {
    let text =
        line(1, "top", &[]) + &line(2, "left", &[1]) + &line(3, "right", &[1]) + &line(4, "thing", &[3, 2]);
    let tree = read(&text, &["4"], &raw()).unwrap();
    assert_eq!(tree.ancestors(0).collect::<Vec<_>>(), ["right", "top"]);
}

#[test]
fn synsets_with_the_same_first_word_get_names_of_their_own() {
    let text =
        line(1, "top", &[]) + &line(2, "crane", &[1]) + &line(3, "crane", &[1]) + &line(4, "top", &[1]);
    let tree = read(&text, &["2", "3", "4"], &raw()).unwrap();
    assert!(tree.class_names().eq(["crane (n00000002)", "crane (n00000003)", "top"]));
    assert_eq!(tree.ancestors(0).collect::<Vec<_>>(), ["top (n00000001)"]);
}

#[test]
fn instances_hang_below_their_kind_and_a_single_class_is_its_own_root() {
    let text = line(1, "top", &[]) + &line(2, "river", &[1]) + &line(3, "Rhine", &[2]).replace('@', "@i");
    assert_eq!(read(&text, &["3", "1"], &raw()).unwrap().distance(0, 1), 2);
    assert_eq!(read(&text, &["3"], &WordNetOptions::default()).unwrap().nodes(), 1);
}

#[test]
fn flaws_in_the_list_of_synsets_name_the_id_and_its_position() {
    let check = |ids: &[&str], parts: &[&str]| complains(read(EXCERPT, ids, &raw()), parts);
    check(&["n02084071", "n99999999"], &["class 1", "`n99999999`", "not in this WordNet file"]);
    check(&["n02084071", "dog.n.01"], &["class 1", "`dog.n.01`", "not the id of a noun"]);
    check(&["n+2084071"], &["class 0", "not the id"]);
    check(&["n02084071", "n02121620", "02084071-n"], &["class 2", "`02084071-n`", "class 0 (`n02084071`)"]);
    check(&[], &["`test`", "empty"]);
    let options = raw().with_class_names(["dog"]);
    complains(read(EXCERPT, &["n02084071", "n02121620"], &options), &["class names", "got 1", "need 2"]);
    let options = raw().with_class_names(["pet", "pet"]);
    complains(read(EXCERPT, &["n02084071", "n02121620"], &options), &["`pet`", "unique"]);
}

#[test]
fn flaws_in_the_file_name_the_line() {
    let check = |text: &str, parts: &[&str]| complains(read(text, &["5"], &raw()), parts);
    let good = line(1, "top", &[]);
    check(&(good.clone() + "garbage\n"), &["line 2", "`garbage`, not a number"]);
    check(&(good.clone() + "00000005 05 n\n"), &["line 2", "ends before the number of words"]);
    check(&(good.clone() + "00000005 05 v 01 run 0 000 | x\n"), &["line 2", "kind `v`"]);
    check(&(good.clone() + "00000005 05 n 00 000 | x\n"), &["line 2", "no word"]);
    check(&(good.clone() + "00000005 05 n ff run 0 000 | x\n"), &["line 2", "ends before"]);
    check(&(good.clone() + "00000005 05 n 01 run 0 999 @ 1 n 0 | x\n"), &["line 2", "ends before"]);
    check(&(good.clone() + "00000005 05 n 01 run 0 4000000000\n"), &["line 2", "ends before"]);
    check(
        &(good.clone() + &line(5, "x", &[1]) + &line(5, "y", &[1])),
        &["line 3", "00000005", "line 2 already"],
    );
    check(&(good.clone() + &line(5, "x", &[7])), &["line 2", "00000007", "not in the file"]);
    check(&(line(5, "x", &[6]) + &line(6, "y", &[5])), &["circle", "line 2", "`y`"]);
    check(&line(5, "x", &[5]), &["circle", "line 1", "`x`"]);
    complains(Taxonomy::from_wordnet("t", &b"\xff\xfe 1\n"[..], &["5"], &raw()), &["line 1", "UTF-8"]);
    let two_tops = good + &line(2, "summit", &[]) + &line(5, "x", &[1]) + &line(6, "y", &[2]);
    complains(read(&two_tops, &["5", "6"], &raw()), &["second root", "`summit`"]);
}

#[test]
fn a_very_long_chain_of_hypernyms_overflows_no_stack() {
    let text: String =
        line(1, "w1", &[]) + &(2..100_000).map(|i| line(i, &format!("w{i}"), &[i - 1])).collect::<String>();
    let tree = read(&text, &["99999", "1"], &raw()).unwrap();
    assert_eq!(tree.distance(0, 1), 99_998);
    assert_eq!(read(&text, &["99999", "1"], &WordNetOptions::default()).unwrap().nodes(), 2);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Taxonomy::from_wordnet("x", &bytes[..], &["1"], &raw());
    }

    #[test]
    fn arbitrary_hypernyms_never_panic_and_give_trees(
        hypernyms in prop::collection::vec(prop::collection::vec(0_u32..9, 0..3), 1..9),
        contract_unary in any::<bool>(),
    ) {
        let text: String = hypernyms.iter().enumerate().map(|(i, h)| line(i as u32, "w", h)).collect();
        let options = raw().with_contract_unary(contract_unary);
        if let Ok(tree) = read(&text, &["0", "3"], &options) {
            prop_assert_eq!(Taxonomy::from_tsv("test", &tree.to_tsv()).unwrap(), tree);
        }
    }
}
