"""Class trees."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import negscale
from negscale import Taxonomy

TEXT = "animal\n  pet: cat, dog\n  wild: wolf, bear\n"


@pytest.mark.parametrize("name", Taxonomy.builtin_names())
def test_built_in_trees_have_distances_that_are_distances(name):
    tree = Taxonomy(name)
    distances = tree.distances()
    assert distances.dtype == np.int64 and distances.shape == (len(tree), len(tree)) == (len(tree.class_names),) * 2
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(distances == 0, np.eye(len(tree), dtype=bool))
    assert (distances[:, :, None] + distances[None] >= distances[:, None, :]).all()
    assert distances[0, 1] == tree.distance(0, 1) == tree.distance(*tree.class_names[:2])


def test_relations_are_what_the_thresholds_make_of_distances():
    tree = Taxonomy("cifar10")
    d, relations = tree.distances(), tree.relations(2, 6)
    np.testing.assert_array_equal(relations == 2, d == 0)
    np.testing.assert_array_equal(relations == 1, (d > 0) & (d <= 2))
    np.testing.assert_array_equal(relations == -1, d > 6)
    assert relations.dtype == np.int8


@pytest.mark.parametrize("tree", [Taxonomy("cifar100"), Taxonomy.from_indented(TEXT, name="mine"), Taxonomy("cifar10").permuted(3)])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, *(lambda t, p=p: pickle.loads(pickle.dumps(t, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1))])
def test_a_copy_is_equal_and_named_alike(tree, again):
    other = again(tree)
    assert other == tree and hash(other) == hash(tree) and other.name == tree.name and repr(other) == repr(tree)


def test_equality_is_of_trees():
    assert Taxonomy("cifar10") == Taxonomy.builtin("cifar10") != Taxonomy("cifar10-flat")
    assert Taxonomy("cifar10") != "cifar10"
    assert len({Taxonomy("cifar10"), Taxonomy("cifar10"), Taxonomy("cifar100")}) == 2


def test_trees_are_read_from_text_and_from_files(tmp_path):
    tree = Taxonomy.from_indented(TEXT)
    (tmp_path / "zoo.txt").write_text(TEXT)
    (tmp_path / "zoo.tsv").write_text(tree.to_tsv())
    for source in (tmp_path / "zoo.txt", str(tmp_path / "zoo.txt")):
        assert Taxonomy.from_indented(source).name == "zoo"
    found = [Taxonomy(tmp_path / "zoo.txt"), Taxonomy(str(tmp_path / "zoo.tsv")), Taxonomy.from_tsv(tmp_path / "zoo.tsv"), Taxonomy(tree.to_tsv(), "zoo")]
    assert all(other == found[0] for other in found) and found[0].class_names == tree.class_names
    ordered = Taxonomy.from_indented(TEXT, ["Wolf", "bear", "cat", "dog"])
    assert ordered.class_names == ["wolf", "bear", "cat", "dog"] and ordered.distance("wolf", "bear") == 2


def test_wordnet_is_read_from_its_own_file(tmp_path):
    def line(offset, word, *parents):
        pointers = "".join(f" @ {parent:08} n 0000" for parent in parents)
        return f"{offset:08} 03 n 01 {word} 0 {len(parents):03}{pointers} | about {word}\n"

    nouns = line(1, "entity") + line(2, "animal", 1) + line(3, "cat", 2) + line(4, "dog", 2) + line(5, "car", 1)
    (tmp_path / "data.noun").write_text("  1 This software and database is being provided to you\n" + nouns)
    tree = Taxonomy.from_wordnet(tmp_path / "data.noun", ["n00000003", "00000004-n", "00000005"], name="small")
    assert (tree.class_names, tree.distance("cat", "dog"), tree.distance("cat", "car")) == (["cat", "dog", "car"], 2, 3)
    assert Taxonomy.from_wordnet(tmp_path / "data.noun", ["3", "5"], ["kitty", "wheels"]).class_names == ["kitty", "wheels"]
    with pytest.raises(OSError, match="cannot read .*nowhere"):
        Taxonomy.from_wordnet(tmp_path / "nowhere", ["3"])
    with pytest.raises(negscale.InputError, match="synset `99`"):
        Taxonomy.from_wordnet(tmp_path / "data.noun", ["99"])


def test_a_tree_is_learnt_from_features_of_any_kind():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    features = np.array([[9, 1, 0], [9, -1, 0], [-9, 0, 1], [-9, 0, -1]])[labels] + rng.normal(size=(400, 3))
    trees = [
        Taxonomy.learnt(array, labels, ["a", "b", "c", "d"])
        for array in (features, np.asfortranarray(features), features.astype(np.float32), features.astype(np.float32).tolist())
    ]
    assert all(tree.relations().tolist() == trees[0].relations().tolist() for tree in trees)
    assert trees[0].distance("a", "b") < trees[0].distance("a", "c")
    with pytest.raises(negscale.InputError, match="labels: sample 0 has -1, which is negative"):
        Taxonomy.learnt(features, labels - 1 - labels)
    with pytest.raises(negscale.InputError, match="a row of numbers per sample"):
        Taxonomy.learnt(features[:, 0], labels)


def test_drawings_and_tables_come_out_as_text():
    tree = Taxonomy("cifar10")
    assert tree.to_svg().startswith("<svg") and tree._repr_svg_() == tree.to_svg()
    assert tree.to_tsv().splitlines()[0].split("\t") == ["node", "parent", "depth", "class_index"]
    assert "10 classes" in tree.summary() and "0 < D <= 2" in tree.summary(eta_min=2)


def test_networkx_gets_every_node_and_class():
    networkx = pytest.importorskip("networkx")
    tree = Taxonomy("cifar100")
    graph = tree.to_networkx()
    assert networkx.is_arborescence(graph) and graph.graph["name"] == "cifar100"
    classes = {index: node for node, index in graph.nodes(data="class_index") if index is not None}
    assert [classes[index] for index in range(100)] == tree.class_names
    around = graph.to_undirected()
    for a, b in [(0, 1), (3, 77), (50, 99)]:
        assert networkx.shortest_path_length(around, classes[a], classes[b]) == tree.distance(a, b)


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: Taxonomy("cifra10"), ValueError, r"no built-in class tree is called `cifra10` \(did you mean `cifar10`\?\)"),
        (lambda: Taxonomy("nowhere/tree.tsv"), ValueError, "there is no file `nowhere/tree.tsv`"),
        (lambda: Taxonomy.from_tsv("nowhere.tsv"), OSError, "cannot read nowhere.tsv"),
        (lambda: Taxonomy(3), ValueError, "a class tree cannot be int; give"),
        (lambda: Taxonomy("cifar10", "mine"), ValueError, "has its name already"),
        (lambda: Taxonomy.from_tsv("a\t\n" "b\tz\t\t0\n"), ValueError, "class tree `tree`, line 2, node `b`: its parent `z`"),
        (lambda: Taxonomy("cifar10").index("kat"), ValueError, "has no class `kat`; did you mean `cat`"),
        (lambda: Taxonomy("cifar10").distance(0, 10), IndexError, "class 10: .*run from 0 to 9"),
        (lambda: Taxonomy("cifar10").distance(0, -1), IndexError, "class -1"),
        (lambda: Taxonomy("cifar10").distance(0, 1.5), TypeError, "float"),
        (lambda: Taxonomy("cifar10").relations(6, 5), ValueError, "eta_min must not exceed eta_max"),
        (lambda: Taxonomy("cifar10").for_classes(["cat", "sofa"]), ValueError, "sofa"),
        (lambda: Taxonomy.flat([]), ValueError, "class tree"),
    ],
)
def test_what_is_wrong_is_said(make, kind, told):
    with pytest.raises(kind, match=told):
        make()


@given(st.text(max_size=40))
def test_any_text_is_a_tree_or_an_input_error(text):
    for read in (Taxonomy.from_tsv, Taxonomy.from_indented):
        try:
            assert len(read(text + "\n")) > 0
        except negscale.InputError as error:
            assert re.search("class tree", str(error))
