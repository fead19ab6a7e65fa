"""Calls that cleanlab's users know, side by side with cleanlab itself on the data of its documentation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import negscale

METHODS = ["self_confidence", "normalized_margin", "confidence_weighted_entropy"]


def predictions(features, labels):
    linear = pytest.importorskip("sklearn.linear_model")
    selection = pytest.importorskip("sklearn.model_selection")
    model = linear.LogisticRegression(max_iter=2000)
    return selection.cross_val_predict(model, features, labels, cv=5, method="predict_proba")


def relabelled(truth, trace, seed):
    generation = pytest.importorskip("cleanlab.benchmarking.noise_generation")
    shares = np.bincount(truth) / len(truth)
    matrix = generation.generate_noise_matrix_from_trace(len(shares), trace=trace * len(shares), py=shares, valid_noise_matrix=True, seed=seed)
    np.random.seed(seed)
    return generation.generate_noisy_labels(truth, matrix)


def three_clouds(seed=1):
    """Three Gaussians in the plane with a fifth of the labels changed, as in cleanlab's overview of its workflows."""
    draw = np.random.RandomState(seed)
    means, sizes = [[3, 2], [7, 7], [0, 8]], [80, 40, 40]
    covs = [[[5, -1.5], [-1.5, 1]], [[1, 0.5], [0.5, 4]], [[5, 1], [1, 5]]]
    parts = [draw.multivariate_normal(mean, cov, size) for mean, cov, size in zip(means, covs, sizes, strict=True)]
    truth = np.repeat(np.arange(3), sizes)
    return np.vstack(parts), truth, relabelled(truth, 0.8, seed)


def digits():
    data = pytest.importorskip("sklearn.datasets").load_digits()
    return data.data / 16, data.target, relabelled(data.target, 0.85, 0)


def iris():
    data = pytest.importorskip("sklearn.datasets").load_iris()
    return data.data, data.target, relabelled(data.target, 0.85, 2)


@pytest.fixture(scope="module", params=[three_clouds, digits, iris], ids=lambda make: make.__name__)
def example(request):
    pytest.importorskip("cleanlab")
    features, truth, labels = request.param()
    return features, truth, labels, predictions(features, labels)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjust", [False, True])
def test_scores_with_a_formula_are_the_same(example, method, adjust):
    rank = pytest.importorskip("cleanlab.rank")
    _, _, labels, pred_probs = example
    if adjust and method == "confidence_weighted_entropy":
        for score in (rank.get_label_quality_scores, negscale.get_label_quality_scores):
            with pytest.raises(ValueError, match="adjust_pred_probs"):
                score(labels, pred_probs, method=method, adjust_pred_probs=True)
        return
    theirs = rank.get_label_quality_scores(labels, pred_probs, method=method, adjust_pred_probs=adjust)
    ours = negscale.get_label_quality_scores(labels, pred_probs, method=method, adjust_pred_probs=adjust)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    alone = getattr(negscale, f"get_{method}_for_each_label")(labels, pred_probs)
    np.testing.assert_array_equal(alone, negscale.get_label_quality_scores(labels, pred_probs, method))


@pytest.mark.parametrize("filter_by", ["predicted_neq_given", "confident_learning"])
@pytest.mark.parametrize("method", METHODS)
def test_filters_with_a_definition_find_the_same_issues_in_the_same_order(example, filter_by, method):
    find = pytest.importorskip("cleanlab.filter").find_label_issues
    _, _, labels, pred_probs = example
    theirs = find(labels, pred_probs, filter_by=filter_by, n_jobs=1)
    ours = negscale.find_label_issues(labels, pred_probs, filter_by=filter_by)
    assert ours.dtype == np.bool_ and ours.tolist() == theirs.tolist()
    ranked = find(labels, pred_probs, filter_by=filter_by, n_jobs=1, return_indices_ranked_by=method)
    mine = negscale.find_label_issues(labels, pred_probs, filter_by=filter_by, return_indices_ranked_by=method)
    scores = negscale.get_label_quality_scores(labels, pred_probs, method)
    # Equal scores may be in any order there.
    np.testing.assert_array_equal(scores[mine], scores[ranked])
    assert sorted(mine) == sorted(ranked)
    order = negscale.order_label_issues(theirs, labels, pred_probs, rank_by=method)
    assert order.tolist() == mine.tolist()


def test_the_number_of_issues_off_the_diagonal_is_the_same(example):
    count = pytest.importorskip("cleanlab.count").num_label_issues
    _, _, labels, pred_probs = example
    assert negscale.num_label_issues(labels, pred_probs, estimation_method="off_diagonal") == count(labels, pred_probs)
    calibrated = {"estimation_method": "off_diagonal_calibrated"}
    assert abs(negscale.num_label_issues(labels, pred_probs, **calibrated) - count(labels, pred_probs, **calibrated)) <= 1
    joint = pytest.importorskip("cleanlab.count").compute_confident_joint(labels, pred_probs)
    custom = {"estimation_method": "off_diagonal_custom", "confident_joint": joint}
    assert negscale.num_label_issues(labels, pred_probs, **custom) == count(labels, pred_probs, **custom)


def quality(found, wrong):
    precision, recall = (found & wrong).sum() / max(found.sum(), 1), (found & wrong).sum() / wrong.sum()
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


@pytest.mark.parametrize("filter_by", ["negscale", "prune_by_noise_rate", "prune_by_class", "both", "low_normalized_margin", "low_self_confidence"])
def test_our_issues_are_about_as_good_as_theirs_or_better(example, filter_by):
    find = pytest.importorskip("cleanlab.filter").find_label_issues
    _, truth, labels, pred_probs = example
    wrong = labels != truth
    theirs = find(labels, pred_probs, filter_by=filter_by if filter_by != "negscale" else "prune_by_noise_rate", n_jobs=1)
    ours = negscale.find_label_issues(labels, pred_probs, filter_by=filter_by)
    (precision, recall, f1), (*_, their_f1) = quality(ours, wrong), quality(theirs, wrong)
    assert f1 > their_f1 - 0.06, (quality(ours, wrong), quality(theirs, wrong))
    assert precision > 0.6 and recall > 0.5
    assert negscale.num_label_issues(labels, pred_probs) == negscale.find_label_issues(labels, pred_probs).sum()


def test_a_table_has_the_columns_of_cleanlab(example):
    classification = pytest.importorskip("cleanlab.classification")
    linear = pytest.importorskip("sklearn.linear_model")
    features, _, labels, _ = example
    theirs = classification.CleanLearning(linear.LogisticRegression(max_iter=2000), seed=0).find_label_issues(features, labels)
    ours = negscale.audit(features, labels).to_pandas("cleanlab")
    assert set(ours.columns) == set(theirs.columns)
    assert [ours[name].dtype.kind for name in theirs.columns] == [theirs[name].dtype.kind for name in theirs.columns]
    assert (ours["given_label"] == theirs["given_label"]).all()
    agreed = (ours["is_label_issue"] & theirs["is_label_issue"]).sum()
    assert agreed > 0.5 * theirs["is_label_issue"].sum()


def test_settings_of_filters_keep_their_meaning(example):
    _, _, labels, pred_probs = example
    classes = pred_probs.shape[1]
    for filter_by in ["negscale", "prune_by_class"]:
        wanted = [3, 0] + [1] * (classes - 2)
        found = negscale.find_label_issues(labels, pred_probs, filter_by=filter_by, num_to_remove_per_class=wanted)
        per_class = np.bincount(labels[found], minlength=classes)
        assert (per_class <= wanted).all() and per_class[1] == 0 and per_class.sum() >= 3
    whole, half = (negscale.find_label_issues(labels, pred_probs, frac_noise=part) for part in (1.0, 0.5))
    assert half.sum() == round(0.5 * whole.sum()) and (whole | ~half).all()
    most = int(np.bincount(labels).max())
    assert not negscale.find_label_issues(labels, pred_probs, min_examples_per_class=most).any()
    none = negscale.find_label_issues(labels, pred_probs, filter_by="both", confident_joint=np.eye(classes))
    assert not none.any()
    by_ours = negscale.find_label_issues(labels, pred_probs, return_indices_ranked_by="negscale", n_jobs=2, verbose=True)
    assert sorted(by_ours) == np.flatnonzero(whole).tolist()


def test_other_kinds_of_arrays_are_taken(example):
    torch = pytest.importorskip("torch")
    pandas = pytest.importorskip("pandas")
    _, _, labels, pred_probs = example
    expected = negscale.find_label_issues(labels, pred_probs)
    for given_labels, given_probs in [
        (labels.tolist(), pred_probs.tolist()),
        (torch.tensor(labels), torch.tensor(pred_probs)),
        (pandas.Series(labels), pandas.DataFrame(pred_probs)),
        (labels, np.asfortranarray(pred_probs)),
    ]:
        assert negscale.find_label_issues(given_labels, given_probs).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda y, p: negscale.find_label_issues(y, p, filter_by="mine"), "filter_by is 'mine'"),
        (lambda y, p: negscale.find_label_issues(y, p, return_indices_ranked_by="mine"), "method is 'mine'"),
        (lambda y, p: negscale.find_label_issues(y, p, frac_noise=2), "frac_noise is 2"),
        (lambda y, p: negscale.find_label_issues(y, p, multi_label=True), "several classes each"),
        (lambda y, p: negscale.find_label_issues(y, p, num_to_remove_per_class=[1]), "for each of the 2 classes"),
        (lambda y, p: negscale.find_label_issues(y, p, filter_by="both", confident_joint=[[1]]), "2 x 2"),
        (lambda y, p: negscale.find_label_issues([0, 5], p), "label 5 of row 1"),
        (lambda y, p: negscale.find_label_issues(y, [[3.0, -2.0], [0, 1]]), "row 0, column 0 of pred_probs is 3.0"),
        (lambda y, p: negscale.find_label_issues(y, [[0.5, 0.4], [0, 1]]), "row 0 of pred_probs sums to 0.9"),
        (lambda y, p: negscale.get_label_quality_scores([0], p), "2 rows of pred_probs for 1 labels"),
        (lambda y, p: negscale.order_label_issues([1, 0], y, p), "True or False"),
        (lambda y, p: negscale.num_label_issues(y, p, estimation_method="off_diagonal_custom"), "with confident_joint"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(negscale.InputError, match=words):
        call([0, 1], [[0.9, 0.1], [0.2, 0.8]])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_scores_are_from_0_to_1_and_follow_their_formula(classes, rows, seed):
    draw = np.random.default_rng(seed)
    pred_probs = draw.dirichlet(np.full(classes, 0.3), rows)
    labels = draw.integers(0, classes, rows)
    for method in [*METHODS, "negscale"]:
        scores = negscale.get_label_quality_scores(labels, pred_probs, method)
        assert scores.shape == (rows,) and ((scores >= -1e-12) & (scores <= 1 + 1e-12)).all(), method
    own = pred_probs[np.arange(rows), labels]
    assert (negscale.get_label_quality_scores(labels, pred_probs) == own).all()
    margins = [p[y] - max(np.delete(p, y)) for p, y in zip(pred_probs, labels, strict=True)]
    np.testing.assert_allclose(negscale.get_label_quality_scores(labels, pred_probs, "normalized_margin"), (np.array(margins) + 1) / 2, atol=1e-12)
    mask = negscale.find_label_issues(labels, pred_probs)
    ranked = negscale.find_label_issues(labels, pred_probs, return_indices_ranked_by="self_confidence")
    assert sorted(ranked) == np.flatnonzero(mask).tolist()
