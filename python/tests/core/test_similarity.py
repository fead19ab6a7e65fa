"""Similarity of all pairs against loops over pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negscale

TREE = negscale.Taxonomy("cifar10")
RELATIONS = {"same": 2, "related": 1, "neutral": 0, "unrelated": -1}


def made(n=120, d=7, seed=0, rate=0.4):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 10, n)
    given_ = np.where(rng.random(n) < rate, rng.integers(0, 10, n), true)
    return rng.normal(size=(n, d)) + np.eye(10, max(d, 10))[true][:, :d], given_, true


def cosines(features):
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    return units @ units.T


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 60), d=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_means_and_spreads_are_those_of_loops_over_all_pairs(n, d, seed):
    features, labels, true = made(n, d, seed)
    found = negscale.similarity(features, labels, true, TREE)
    cosine = cosines(features.astype(np.float32).astype(float))
    i, j = np.triu_indices(n, 1)
    clean = labels == true
    kinds = {
        ("all", "given"): np.ones(len(i), bool),
        ("all", "true"): np.ones(len(i), bool),
        ("clean-clean", "true"): clean[i] & clean[j],
        ("clean-noisy", "true"): clean[i] != clean[j],
        ("clean-noisy", "given"): clean[i] != clean[j],
        ("noisy-noisy", "true"): ~clean[i] & ~clean[j],
        ("cross-noise", "true"): (clean[i] != clean[j]) & (labels[i] == labels[j]),
    }
    rows = {(row["pairs"], row["by"], row["relation"]): row for row in found.rows}
    for (kind, by), chosen in kinds.items():
        classes = labels if by == "given" else true
        relation = TREE.relations()[classes[i], classes[j]]
        for name, code in RELATIONS.items():
            values = cosine[i, j][chosen & (relation == code)]
            row = rows.pop((kind, by, name), None)
            assert (row is None) == (len(values) == 0)
            if row is not None:
                assert row["count"] == len(values)
                assert row["mean"] == pytest.approx(values.mean(), abs=1e-9)
                assert row["std"] == pytest.approx(values.std(), abs=1e-6)
                assert row["normalised"] == pytest.approx((1 + values.mean()) / 2, abs=1e-9)
                assert found.mean(name, kind, by, column="mean") == row["mean"]
    assert not rows
    assert found.rate == pytest.approx((~clean).mean())


def test_a_clean_run_beside_it_says_what_changed():
    features, labels, true = made()
    moved = features + 0.3 * np.random.default_rng(5).normal(size=features.shape)
    found = negscale.similarity(moved, labels, true, TREE, clean_features=features)
    i, j = np.triu_indices(len(labels), 1)
    now, before = (cosines(x.astype(np.float32).astype(float))[i, j] for x in (moved, features))
    chosen = TREE.relations()[true[i], true[j]] == -1
    row = next(row for row in found.rows if (row["pairs"], row["by"], row["relation"]) == ("all", "true", "unrelated"))
    assert row["change"] == pytest.approx((now - before)[chosen].mean() / 2, abs=1e-9)
    assert row["rms"] == pytest.approx(np.sqrt(((now - before)[chosen] ** 2).mean()), abs=1e-7)
    assert row["correlation"] == pytest.approx(np.corrcoef(now[chosen], before[chosen])[0, 1], abs=1e-6)
    assert row["clean"] == pytest.approx((1 + before[chosen].mean()) / 2)


def test_labels_are_numbers_or_names_and_features_of_any_kind():
    features, labels, true = made()
    wanted = negscale.similarity(features, labels, true, TREE).rows
    names = np.array(TREE.class_names)
    assert negscale.similarity(np.asfortranarray(features), names[labels], names[true].tolist(), "cifar10").rows == wanted
    assert negscale.similarity(features, labels, true, TREE, eta_min=2, eta_max=6).rows != wanted


def test_it_is_a_table_and_a_text():
    pandas = pytest.importorskip("pandas")
    features, labels, true = made()
    found = negscale.similarity(features, labels, true, TREE)
    table = found.to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == len(found.rows)
    assert table.query("pairs == 'all' and by == 'true'")["count"].sum() == 120 * 119 // 2
    assert "cross-noise, by true labels" in repr(found) and "unrelated" in repr(found)
    assert found.class_means.shape == (10, 10)
    without = negscale.similarity(features, labels, taxonomy=TREE)
    assert without.rate is None and {row["pairs"] for row in without.rows} == {"all"}
    assert without.mean("same") == without.mean("same", "all", "given")


def test_zero_features_are_left_out_and_counted():
    features, labels, true = made()
    features[3] = 0
    found = negscale.similarity(features, labels, true, TREE)
    assert found.skipped == 1
    assert sum(row["count"] for row in found.rows if (row["pairs"], row["by"]) == ("all", "true")) == 119 * 118 // 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"taxonomy": ""}, "which class tree"),
        ({"given": [1, 2, 3]}, "there are 120"),
        ({"true": [1, 2, 3]}, "there are 3"),
        ({"given": np.full(120, 10)}, "none of the 10 classes"),
        ({"features": np.full((120, 2), np.nan)}, "row 0, column 0 of the features is nan"),
        ({"features": np.ones(120)}, "give a row of numbers for each label"),
        ({"eta_min": 9}, "eta_min must not exceed eta_max"),
    ],
)
def test_what_does_not_fit_is_refused(changes, told):
    features, labels, true = made()
    with pytest.raises(negscale.InputError, match=told):
        negscale.similarity(**{"features": features, "given": labels, "true": true, "taxonomy": TREE} | changes)


def test_a_question_that_has_no_answer_is_not_a_number_and_one_that_makes_no_sense_an_error():
    features, labels, _ = made()
    found = negscale.similarity(features, labels, labels, TREE)
    assert np.isnan(found.mean("same", "noisy-noisy"))
    with pytest.raises(negscale.InputError, match="no relation `close`"):
        found.mean("close")
    with pytest.raises(negscale.InputError, match="no pairs `noisy`"):
        found.mean("same", "noisy")
