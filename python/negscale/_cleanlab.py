"""Calls that cleanlab's users know, under its names: what goes in, what comes out and what columns are called are the same.

What finds issues is the audit's model of hidden true labels (`filter_by="negscale"`, the default), and every other filter takes from it how many labels of which
class are wrong. Scores that have a formula are that formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from negscale import _inputs, _negscale
from negscale._errors import InputError

__all__ = [
    "find_label_issues",
    "get_confidence_weighted_entropy_for_each_label",
    "get_label_quality_scores",
    "get_normalized_margin_for_each_label",
    "get_self_confidence_for_each_label",
    "num_label_issues",
    "order_label_issues",
]

#: Probabilities below this are taken for this where they divide.
_LEAST = 1e-6
FILTERS = (
    "negscale",
    "prune_by_noise_rate",
    "prune_by_class",
    "both",
    "confident_learning",
    "predicted_neq_given",
    "low_normalized_margin",
    "low_self_confidence",
)
METHODS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy", "negscale")


class _Given(NamedTuple):
    """Labels by number, and a probability for every class."""

    labels: NDArray[Any]
    probabilities: NDArray[Any]

    @property
    def own(self) -> NDArray[Any]:
        """The probability of each label."""
        return np.asarray(self.probabilities[np.arange(len(self.labels)), self.labels])

    @property
    def others(self) -> NDArray[Any]:
        """The largest probability of another class."""
        rest = self.probabilities.copy()
        rest[np.arange(len(self.labels)), self.labels] = -np.inf
        return np.asarray(rest.max(axis=1)) if rest.shape[1] > 1 else np.zeros(len(rest))

    @property
    def differs(self) -> NDArray[Any]:
        """Whether another class is likelier than that of the label."""
        return np.asarray(self.others > self.own + _LEAST)

    def thresholds(self) -> NDArray[Any]:
        """Mean probability of each class where it is given; of a class that nobody has, more than there can be."""
        classes = self.probabilities.shape[1]
        counts = np.bincount(self.labels, minlength=classes)
        sums = np.bincount(self.labels, weights=self.own, minlength=classes)
        return np.where(counts > 0, np.maximum(sums / np.maximum(counts, 1), 2 * _LEAST), 2.0)

    def rank(self) -> dict[str, Any]:
        """What the audit says."""
        return _negscale.rank_labels(np.ascontiguousarray(self.probabilities, dtype=np.float32), self.labels.astype(np.uint32))


def _given(labels: Any, pred_probs: Any, multi_label: bool = False) -> _Given:
    if multi_label:
        raise InputError("labels with several classes each are not supported: give one class for each row")
    numbers = _inputs.numbers(pred_probs, "pred_probs").values
    _inputs.check_probabilities(numbers)
    codes = _inputs.labels(labels, range(numbers.shape[1])).codes
    if len(codes) != len(numbers):
        raise InputError(f"{len(numbers)} rows of pred_probs for {len(codes)} labels: every label needs one")
    return _Given(codes.astype(np.int64), numbers.astype(np.float64))


def find_label_issues(
    labels: Any,
    pred_probs: Any,
    *,
    return_indices_ranked_by: str | None = None,
    rank_by_kwargs: Mapping[str, Any] | None = None,
    filter_by: str = "negscale",
    frac_noise: float = 1.0,
    num_to_remove_per_class: Sequence[int] | None = None,
    min_examples_per_class: int = 1,
    confident_joint: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    multi_label: bool = False,
) -> NDArray[Any]:
    """Which labels look wrong: a mask, or with `return_indices_ranked_by` the numbers of the rows, worst first.

    `labels` are whole numbers from 0 on, `pred_probs` N x C probabilities by models that did not train on the sample they predict.

    return_indices_ranked_by : one of the methods of `get_label_quality_scores`.
    filter_by : "negscale": the most suspicious labels, as many as are estimated to be wrong. "prune_by_class": in each class those with the least probability of
        their label. "prune_by_noise_rate": for each pair of classes those with the largest margin of the other class. "both": what both find.
        "low_self_confidence", "low_normalized_margin": those with the lowest score. For all of these the audit says how many. "confident_learning": those
        counted off the diagonal of the confident joint. "predicted_neq_given": those whose likeliest class is another one.
    frac_noise : only this part of them, the worst first.
    num_to_remove_per_class : how many of each class in place of the estimate.
    min_examples_per_class : classes with no more labels than this keep all of them.
    confident_joint : counts of given (row) by true (column) class in place of the estimate, for the filters that prune.
    n_jobs, verbose : taken and not needed.

    >>> import negscale
    >>> labels = [0] * 6 + [1] * 6
    >>> pred_probs = [[0.9, 0.1]] * 5 + [[0.1, 0.9]] + [[0.2, 0.8]] * 6
    >>> negscale.find_label_issues(labels, pred_probs, return_indices_ranked_by="self_confidence").tolist()
    [5]
    """
    if filter_by not in FILTERS:
        raise InputError(f"filter_by is {filter_by!r}; it must be one of {', '.join(FILTERS)}")
    if not 0 <= frac_noise <= 1:
        raise InputError(f"frac_noise is {frac_noise}; it must be from 0 to 1")
    given = _given(labels, pred_probs, multi_label)
    wanted = _per_class(num_to_remove_per_class, given)
    found = _found(given, filter_by, frac_noise, wanted, confident_joint)
    counts = np.bincount(given.labels, minlength=given.probabilities.shape[1])
    found &= (counts > min_examples_per_class)[given.labels]
    if return_indices_ranked_by is None:
        return found
    return _ranked(found, given, return_indices_ranked_by, rank_by_kwargs or {})


def _found(given: _Given, filter_by: str, part: float, wanted: NDArray[Any] | None, joint: Any) -> NDArray[Any]:
    probabilities, labels = given.probabilities, given.labels
    if filter_by == "predicted_neq_given":
        return given.differs
    if filter_by == "confident_learning":
        guess = _confident(given)
        return (guess >= 0) & (guess != labels) & given.differs
    ranked = given.rank()
    flags: NDArray[Any] = ranked["flags"]
    if filter_by.startswith("low_"):
        scores = _scores(given, filter_by.removeprefix("low_"))
        return _lowest(scores, round(part * int(flags.sum())))
    if filter_by == "negscale":
        if wanted is None:
            keep = round(part * int(flags.sum()))
            return flags if part == 1 else _first(ranked["order"], keep, len(labels))
        scores = 1 - ranked["scores"]
        return _of_classes(labels, wanted, scores)
    counts = _scaled(np.asarray(joint, dtype=np.float64), given) if joint is not None else ranked["joint"]
    wrong = part * (counts - np.diag(np.diag(counts)))
    if wanted is not None:
        sums = wrong.sum(axis=1, keepdims=True)
        wrong = np.divide(wrong * wanted[:, None], sums, out=np.zeros_like(wrong), where=sums > 0)
    by_class = by_pair = None
    if filter_by in ("prune_by_class", "both"):
        by_class = _of_classes(labels, wanted if wanted is not None else np.round(wrong.sum(axis=1)).astype(int), given.own)
    if filter_by in ("prune_by_noise_rate", "both"):
        by_pair = np.zeros(len(labels), dtype=np.bool_)
        for own, true in np.argwhere(np.round(wrong) > 0):
            members = np.flatnonzero(labels == own)
            margins = probabilities[members, own] - probabilities[members, true]
            by_pair[members[_lowest(margins, round(wrong[own, true]))]] = True
    found = by_pair if by_class is None else by_class if by_pair is None else by_class & by_pair
    assert found is not None
    # What the model itself calls by its label is no issue.
    return found & given.differs


def _confident(given: _Given) -> NDArray[Any]:
    """The class that each sample is confidently of, by thresholds of classes; -1 where there is none (Northcutt et al. 2021)."""
    over = given.probabilities >= given.thresholds() - _LEAST
    guess = np.where(over.sum(axis=1) > 1, given.probabilities.argmax(axis=1), over.argmax(axis=1))
    return np.where(over.any(axis=1), guess, -1)


def _scaled(joint: NDArray[Any], given: _Given) -> NDArray[Any]:
    """Counts with as many labels of each class as there are."""
    classes = given.probabilities.shape[1]
    if joint.shape != (classes, classes) or not np.isfinite(joint).all() or (joint < 0).any():
        raise InputError(f"confident_joint must be {classes} x {classes} counts that are not negative, a row for each given class")
    sums = joint.sum(axis=1, keepdims=True)
    shares = np.divide(joint, sums, out=np.eye(classes), where=sums > 0)
    return shares * np.bincount(given.labels, minlength=classes)[:, None]


def _per_class(wanted: Sequence[int] | None, given: _Given) -> NDArray[Any] | None:
    if wanted is None:
        return None
    numbers = np.asarray(wanted)
    if numbers.shape != (given.probabilities.shape[1],) or numbers.dtype.kind not in "iu" or (numbers < 0).any():
        raise InputError(f"num_to_remove_per_class is {wanted!r}: give a whole number from 0 on for each of the {given.probabilities.shape[1]} classes")
    return numbers


def _of_classes(labels: NDArray[Any], counts: NDArray[Any], scores: NDArray[Any]) -> NDArray[Any]:
    """So many of each class, those with the lowest scores."""
    found = np.zeros(len(labels), dtype=np.bool_)
    for own in np.flatnonzero(counts):
        members = np.flatnonzero(labels == own)
        found[members[_lowest(scores[members], int(counts[own]))]] = True
    return found


def _lowest(scores: NDArray[Any], count: int) -> NDArray[Any]:
    return _first(np.argsort(scores, kind="stable"), count, len(scores))


def _first(order: NDArray[Any], count: int, rows: int) -> NDArray[Any]:
    mask = np.zeros(rows, dtype=np.bool_)
    mask[order[:count]] = True
    return mask


def get_label_quality_scores(labels: Any, pred_probs: Any, method: str = "self_confidence", adjust_pred_probs: bool = False) -> NDArray[Any]:
    """A score from 0 to 1 for every label; the lower, the likelier it is wrong.

    method : "self_confidence": the probability p of the label. "normalized_margin": (p - q + 1) / 2 with q the largest probability of another class.
        "confidence_weighted_entropy": ln(1 + x) / x with x the entropy of the row, as a share of the largest there could be, over p. "negscale": one less the audit's
        score.
    adjust_pred_probs : take the mean probability of each class, where it is given, off its column first; for the first two.

    >>> import negscale
    >>> negscale.get_label_quality_scores([0, 1, 1], [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]], "normalized_margin").round(6).tolist()
    [0.9, 0.3, 0.8]
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    given = _given(labels, pred_probs)
    if adjust_pred_probs:
        if method not in METHODS[:2]:
            raise InputError(f"adjust_pred_probs does not go with {method}; leave it out, or take {' or '.join(METHODS[:2])}")
        thresholds = given.thresholds()
        adjusted = given.probabilities - thresholds + thresholds.max()
        given = _Given(given.labels, adjusted / adjusted.sum(axis=1, keepdims=True))
    return _scores(given, method)


def _scores(given: _Given, method: str) -> NDArray[Any]:
    if method == "self_confidence":
        return given.own
    if method == "normalized_margin":
        return (given.own - given.others + 1) / 2
    if method == "negscale":
        return 1 - np.asarray(given.rank()["scores"])
    p = given.probabilities
    logarithms = np.log(p, out=np.zeros_like(p), where=p > 0)
    entropy = -(p * logarithms).sum(axis=1) / np.log(max(p.shape[1], 2))
    weighted = entropy / np.maximum(given.own, _LEAST)
    # Below the least, the score falls to 0 again, as in cleanlab.
    return np.log1p(weighted) / np.maximum(weighted, _LEAST)


def get_self_confidence_for_each_label(labels: Any, pred_probs: Any) -> NDArray[Any]:
    """`get_label_quality_scores` with `method="self_confidence"`.

    >>> import negscale
    >>> negscale.get_self_confidence_for_each_label([0, 1], [[0.9, 0.1], [0.7, 0.3]]).tolist()
    [0.9, 0.3]
    """
    return get_label_quality_scores(labels, pred_probs, "self_confidence")


def get_normalized_margin_for_each_label(labels: Any, pred_probs: Any) -> NDArray[Any]:
    """`get_label_quality_scores` with `method="normalized_margin"`.

    >>> import negscale
    >>> negscale.get_normalized_margin_for_each_label([0, 1], [[0.9, 0.1], [0.7, 0.3]]).round(6).tolist()
    [0.9, 0.3]
    """
    return get_label_quality_scores(labels, pred_probs, "normalized_margin")


def get_confidence_weighted_entropy_for_each_label(labels: Any, pred_probs: Any) -> NDArray[Any]:
    """`get_label_quality_scores` with `method="confidence_weighted_entropy"`.

    >>> import negscale
    >>> negscale.get_confidence_weighted_entropy_for_each_label([0, 1], [[0.9, 0.1], [0.7, 0.3]]).round(3).tolist()
    [0.805, 0.467]
    """
    return get_label_quality_scores(labels, pred_probs, "confidence_weighted_entropy")


def order_label_issues(
    label_issues_mask: Any, labels: Any, pred_probs: Any, *, rank_by: str = "self_confidence", rank_by_kwargs: Mapping[str, Any] | None = None
) -> NDArray[Any]:
    """The numbers of the rows in a mask, worst first by a method of `get_label_quality_scores`.

    >>> import negscale
    >>> negscale.order_label_issues([True, False, True], [1, 0, 1], [[0.7, 0.3], [0.9, 0.1], [0.8, 0.2]]).tolist()
    [2, 0]
    """
    given = _given(labels, pred_probs)
    mask = np.asarray(label_issues_mask)
    if mask.dtype.kind != "b" or mask.shape != given.labels.shape:
        raise InputError(f"label_issues_mask must hold True or False for each of the {len(given.labels)} labels")
    return _ranked(mask, given, rank_by, rank_by_kwargs or {})


def _ranked(mask: NDArray[Any], given: _Given, rank_by: str, more: Mapping[str, Any]) -> NDArray[Any]:
    scores = get_label_quality_scores(given.labels, given.probabilities, rank_by, **more)
    rows = np.flatnonzero(mask)
    return rows[np.argsort(scores[rows], kind="stable")]


def num_label_issues(
    labels: Any, pred_probs: Any, *, confident_joint: Any = None, estimation_method: str = "negscale", multi_label: bool = False
) -> int:
    """How many labels are estimated to be wrong.

    estimation_method : "negscale": by the audit, as many as `find_label_issues` finds. "off_diagonal": counted off the diagonal of the confident joint.
        "off_diagonal_calibrated": the same, with counts scaled to the numbers of labels. "off_diagonal_custom": off the diagonal of `confident_joint`.

    >>> import negscale
    >>> negscale.num_label_issues([0] * 6 + [1] * 6, [[0.9, 0.1]] * 5 + [[0.1, 0.9]] + [[0.2, 0.8]] * 6)
    1
    """
    given = _given(labels, pred_probs, multi_label)
    if estimation_method == "negscale":
        return int(given.rank()["flags"].sum())
    if estimation_method == "off_diagonal":
        return int(_found(given, "confident_learning", 1.0, None, None).sum())
    classes = given.probabilities.shape[1]
    if estimation_method == "off_diagonal_calibrated":
        guess = _confident(given)
        joint = np.zeros((classes, classes))
        np.add.at(joint, (given.labels[guess >= 0], guess[guess >= 0]), 1)
        np.fill_diagonal(joint, np.maximum(np.diag(joint), 1))
    elif estimation_method == "off_diagonal_custom" and confident_joint is not None:
        joint = np.asarray(confident_joint, dtype=np.float64)
        return int(joint.sum() - np.trace(joint))
    else:
        custom = " (with confident_joint)" if estimation_method == "off_diagonal_custom" else ""
        names = "negscale, off_diagonal, off_diagonal_calibrated, off_diagonal_custom"
        raise InputError(f"estimation_method is {estimation_method!r}{custom}; it must be one of {names}")
    scaled = _scaled(joint, given)
    return round(float(scaled.sum() - np.trace(scaled)))
