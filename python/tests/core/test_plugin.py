"""The plug-in: value and gradient of a batch against the printed formulas, and what it refuses."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negscale
from negscale._negscale import Plugin

CLASSES = 10


def batch(b=24, d=8, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(b, d)).astype(dtype)
    return features, rng.integers(0, CLASSES, b), rng.random(b).astype(dtype)


def literal(tree, features, labels, confidence):
    """The terms as printed, over lists of pairs, with means for sums."""
    x = features / np.linalg.norm(features, axis=1, keepdims=True)
    relation = tree.relations()[np.ix_(labels, labels)]
    pairs = [(i, j) for i in range(len(x)) for j in range(i + 1, len(x))]
    unrelated = [pair for pair in pairs if relation[pair] == -1]
    related = [pair for pair in pairs if relation[pair] == 1]
    f = np.array([(x[i] - x[j]) / np.linalg.norm(x[i] - x[j]) for i, j in unrelated])
    p = len(unrelated)
    snop_global = ((f @ f.T - np.eye(p)) ** 2).sum() / p**2
    snop_local = sum((1 - confidence[i]) * (1 - confidence[j]) * (x[i] @ x[j]) ** 2 for i, j in unrelated) / p
    dcsa = 0.0
    for i, j in related:
        nearest = max(max(x[i] @ x[p] + x[j] @ x[q], x[i] @ x[q] + x[j] @ x[p]) for p, q in unrelated)
        dcsa += max(0.0, x[i] @ x[j] - (1 - nearest / 2)) ** 2
    return snop_global, snop_local, dcsa / len(related), p, len(related)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("b", "d"), [(24, 8), (40, 3), (17, 33)])
def test_terms_are_those_of_the_printed_formulas(dtype, b, d):
    features, labels, confidence = batch(b, d, dtype=dtype)
    value, terms, gradient = Plugin("cifar10").evaluate(features, labels, confidence)
    wanted = literal(negscale.Taxonomy("cifar10"), features.astype(float), labels, confidence.astype(float))
    assert (terms.snop_global, terms.snop_local, terms.dcsa) == pytest.approx(wanted[:3], rel=1e-4 if dtype == np.float32 else 1e-10)
    assert (terms.unrelated_pairs, terms.related_pairs) == wanted[3:]
    assert value == pytest.approx(terms.snop_global + terms.snop_local + terms.dcsa)
    assert gradient.dtype == dtype and gradient.shape == (b, d)
    assert terms.to_dict()["snop_state"] == "active" and "snop_state='active'" in repr(terms)


# With delta a constant, the paper's choice, it would be the slope of SNOP alone.
@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"mu": 0}, {"lam": 0.5}, {"similarity": "half"}])
def test_the_gradient_is_the_slope_of_the_value(options):
    features, labels, confidence = batch()
    plugin = Plugin("cifar10", **{"delta_gradient": True} | options)
    gradient = plugin.evaluate(features, labels, confidence)[2]
    direction = np.random.default_rng(1).normal(size=features.shape)
    ahead, behind = (plugin.evaluate(features + step * direction, labels, confidence)[0] for step in (1e-6, -1e-6))
    assert (gradient * direction).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    b=st.integers(0, 40),
    d=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from(["C", "F", "strided", "reversed"]),
    label_type=st.sampled_from([np.int64, np.int32, np.uint8, list]),
    confidence_type=st.sampled_from([np.float64, np.float32, np.float16, list]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_answer_does_not_depend_on_how_arrays_lie_in_memory_nor_on_their_types(b, d, dtype, order, label_type, confidence_type, seed):
    features, labels, confidence = batch(b, d, seed, dtype)
    confidence = confidence.astype(np.float16).astype(dtype)
    plugin = Plugin("cifar10")
    wanted = plugin.evaluate(features, labels, confidence)
    if order == "strided":
        there = np.full((2 * b, 3 * d), np.nan, dtype)
        there[::2, 1::3] = features
        other = there[::2, 1::3]
    else:
        other = features[::-1].copy()[::-1] if order == "reversed" else np.array(features, order=order)
    as_type = lambda values, kind: values.tolist() if kind is list else values.astype(kind)  # noqa: E731
    found = plugin.evaluate(other, as_type(labels, label_type), as_type(confidence, confidence_type))
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[2], wanted[2])


def test_nothing_that_was_handed_over_is_changed_and_every_gradient_is_an_array_of_its_own():
    features, labels, confidence = batch()
    copies = features.copy(), labels.copy(), confidence.copy()
    plugin = Plugin("cifar10")
    first = plugin.evaluate(features, labels, confidence)[2]
    kept = first.copy()
    second = plugin.evaluate(2 * features[::-1], labels[::-1], confidence[::-1])[2]
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second) and first.flags.writeable
    for now, before in zip((features, labels, confidence), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_without_a_gradient_there_is_none():
    value, _, gradient = Plugin("cifar10").evaluate(*batch(), want_gradient=False)
    assert gradient is None and value == Plugin("cifar10").evaluate(*batch())[0]


def test_arrays_that_cannot_be_written_are_read():
    arrays = batch()
    for array in arrays:
        array.flags.writeable = False
    assert Plugin("cifar10").evaluate(*arrays)[0] > 0


def test_a_table_of_distances_stands_in_for_a_tree():
    tree = negscale.Taxonomy("cifar10")
    mine, theirs = Plugin(tree.distances()), Plugin(tree)
    np.testing.assert_array_equal(mine.relations(), theirs.relations())
    assert mine.evaluate(*batch())[0] == theirs.evaluate(*batch())[0]
    with pytest.raises(ValueError, match="C x C"):
        Plugin(np.zeros((2, 3), np.int64))
    with pytest.raises(ValueError, match="the other way"):
        Plugin(np.array([[0, 1], [2, 0]]))
    with pytest.raises(ValueError, match="below 0"):
        Plugin(np.array([[0, -1], [-1, 0]]))


def test_settings_are_those_of_a_recipe_by_the_same_names():
    plugin = Plugin("cifar10", lam=0.5, eta_max=np.int64(6), dcsa=np.bool_(False), mu=np.float32(2), reduction="sum")
    found = json.loads(plugin.settings)
    assert (found["lambda"], found["eta_max"], found["dcsa"], found["mu"], found["reduction"]) == (0.5, 6, False, 2.0, "sum")
    assert json.loads(Plugin("cifar10", **{"lambda": 0.5}).settings) == json.loads(Plugin("cifar10", lam=0.5).settings)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lamda": 1}, r"there is no key `lamda`; did you mean `lambda`\?"),
        ({"lam": -1}, "setting `lambda` = -1: a weight must be a finite number, 0 or more"),
        ({"eta_min": 6}, "eta_min must not exceed eta_max"),
        ({"reduction": "median"}, "median"),
        ({"mu": "much"}, "much"),
        ({"mu": object()}, "setting `mu` is <class 'object'>"),
        ({"seed": 2**70}, "setting `seed`"),
        ({"exclusion": 0.1}, "acts inside of training methods only"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_the_words_of_the_command(options, told):
    with pytest.raises(negscale.InputError, match=told) as caught:
        Plugin("cifar10", **options)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, negscale.NegScaleError)


def changed(**changes):
    features, labels, confidence = batch()
    return {"features": features, "labels": labels, "confidence": confidence} | changes


def with_value(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (changed(features=with_value(batch()[0], (5, 2), np.nan)), "feature of sample 5 of the batch is NaN: .*finite numbers"),
        (changed(labels=with_value(batch()[1], 3, 10)), "label 10 of sample 3 .*has 10 classes, so labels run from 0 to 9"),
        (changed(labels=with_value(batch()[1], 3, -1)), "label -1 of sample 3 of the batch is negative"),
        (changed(labels=batch()[1][:-1]), "features have 24 rows, but there are 23 labels"),
        (changed(labels=batch()[1][:, None]), "labels must be one whole number per sample; got int64 of shape"),
        (changed(labels=batch()[2]), "labels must be one whole number per sample; got float64"),
        (changed(labels=None), "labels must be one whole number per sample; got NoneType"),
        (changed(confidence=with_value(batch()[2], 7, 1.5)), "confidence 1.5 of sample 7 of the batch is not in"),
        (changed(confidence=batch()[2][:5]), "confidence: got 5 values, need 24"),
        (changed(confidence="sure"), "confidence must be one number per sample; got str"),
        (changed(features=batch()[0][0]), r"B x d of float32 or float64.* got float64 of shape \[8\]"),
        (changed(features=batch()[0].astype(np.float16)), "got float16"),
        (changed(features=batch()[0].tolist()), "got list"),
    ],
)
def test_input_that_does_not_fit_is_refused_and_the_plug_in_goes_on(arguments, told):
    plugin = Plugin("cifar10")
    wanted = plugin.evaluate(*batch())[0]
    with pytest.raises(negscale.InputError, match=told):
        plugin.evaluate(**arguments)
    assert plugin.evaluate(*batch())[0] == wanted


def test_sets_without_pairs_give_zero():
    features, _, confidence = batch()
    value, terms, gradient = Plugin("cifar10").evaluate(features, np.zeros(24, np.int64), confidence)
    assert (value, terms.snop_state, terms.dcsa_state) == (0, "no-pairs", "no-pairs")
    np.testing.assert_array_equal(gradient, 0)


def test_what_a_setting_needs_is_asked_for_by_its_name_here():
    with pytest.raises(negscale.InputError, match='targets = "refurbished", but `refurbished` is not given'):
        Plugin("cifar10", targets="refurbished").evaluate(*batch())
    with pytest.raises(negscale.InputError, match="but `clean` is not given"):
        Plugin("cifar10", confidence="clean").evaluate(*batch())
    with pytest.raises(negscale.InputError, match="but `frozen` is not given"):
        Plugin("cifar10", delta_features="epoch").evaluate(*batch())
    features, labels, confidence = batch()
    swapped = Plugin("cifar10", targets="refurbished").evaluate(features, labels[::-1], confidence, refurbished=labels)
    assert swapped[0] == Plugin("cifar10").evaluate(*batch())[0]


def test_memory_is_saved_and_taken_up_to_the_bit():
    first = Plugin("cifar10", centre="class-balanced")
    assert first.remembers and not Plugin("cifar10").remembers and Plugin("cifar10").state() is None
    first.evaluate(*batch(seed=1))
    second = Plugin("cifar10", centre="class-balanced")
    second.restore(first.state())
    np.testing.assert_array_equal(first.evaluate(*batch(seed=2))[2], second.evaluate(*batch(seed=2))[2])
    assert first.state() == second.state()
    with pytest.raises(negscale.InputError, match="the state of the plug-in cannot be read"):
        first.restore("{")
    with pytest.raises(negscale.InputError, match="remembers nothing"):
        Plugin("cifar10").restore("{}")


def test_a_refused_batch_leaves_the_memory_as_it_was():
    plugin = Plugin("cifar10", centre="class-balanced")
    plugin.evaluate(*batch(seed=1))
    before = plugin.state()
    with pytest.raises(negscale.InputError):
        plugin.evaluate(**changed(features=with_value(batch()[0], (5, 2), np.inf)))
    assert plugin.state() == before


def test_balance_adds_nothing_before_the_host_was_heard():
    plugin = Plugin("cifar10", balance=0.3)
    assert plugin.evaluate(*batch())[0] == 0
    plugin.hear(2.0)
    _, terms, gradient = plugin.evaluate(*batch())
    assert np.linalg.norm(gradient) == pytest.approx(0.3 * 2.0) and terms.scale > 0


def test_the_anchor_pulls_class_means_back_to_where_they_were():
    features, labels, confidence = batch(b=200)
    plugin = Plugin("cifar10", anchor=1.0, snop=False, dcsa=False)
    plugin.remember(features, labels)
    assert plugin.evaluate(features, labels, confidence)[1].anchor == pytest.approx(0, abs=1e-12)
    assert plugin.evaluate(features + 3 * np.eye(8)[labels % 8], labels, confidence)[1].anchor > 1e-6
