"""Similarity of all pairs of samples: is dissimilarity invariant under label noise?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from negscale import _inputs, _negscale
from negscale._errors import InputError
from negscale._negscale import Taxonomy

if TYPE_CHECKING:
    import pandas

#: Kinds of pairs, where they are in what is found, and by which labels their classes are compared.
_KINDS = [
    ("all", ("given",), "given"),
    ("all", ("known", "truth"), "true"),
    ("clean-clean", ("known", "by_truth", "clean_clean"), "true"),
    ("clean-noisy", ("known", "by_truth", "clean_noisy"), "true"),
    ("clean-noisy", ("known", "by_given", "clean_noisy"), "given"),
    ("cross-noise", ("known", "cross_noise"), "true"),
    ("noisy-noisy", ("known", "by_truth", "noisy_noisy"), "true"),
]
_RELATIONS = ["same", "related", "neutral", "unrelated"]


@dataclass(frozen=True, repr=False, eq=False)
class Similarity:
    """Mean and spread of the cosine over all pairs of samples, by relation of their classes and by whether their labels are right."""

    #: A dict for every kind of pairs that there is: ``pairs`` (the kind), ``by``, ``relation``, ``count``, ``mean``, ``std``, ``normalised``, ``normalised_std``, and
    #: with features of a clean run ``clean``, ``change``, ``relative_change``, ``rms`` and ``correlation``.
    rows: list[dict[str, Any]]
    #: Mean cosine of every two classes, C x C, by true labels where they are known; NaN where there is no pair.
    class_means: np.ndarray
    #: Number of samples.
    samples: int
    #: Samples whose features are all zero, which are left out of all pairs.
    skipped: int
    #: Share of labels that are wrong, where the truth is known.
    rate: float | None
    #: Whether wrong labels follow the class tree, in a sentence, where the truth is known.
    verdict: str | None

    def mean(self, relation: str, pairs: str = "all", by: str | None = None, *, column: str = "normalised") -> float:
        """A number of the table: that of pairs of this relation (same, related, neutral or unrelated). NaN where there are no such pairs.

        ``pairs`` is all, clean-clean, clean-noisy, cross-noise or noisy-noisy; ``by`` says by which labels classes are compared (given or true; by default
        true where they are known). ``normalised`` is (1 + cosine)/2, as in the paper's tables.
        """
        kinds = {(kind, word) for kind, _, word in _KINDS}
        by = by or ("given" if self.rate is None and pairs == "all" else "true")
        if relation not in _RELATIONS:
            raise InputError(f"there is no relation `{relation}`: choose one of {', '.join(_RELATIONS)}")
        if (pairs, by) not in kinds:
            raise InputError(f"there are no pairs `{pairs}` by {by} labels: choose one of {', '.join(sorted(f'{k} ({w})' for k, w in kinds))}")
        for row in self.rows:
            if (row["pairs"], row["by"], row["relation"]) == (pairs, by, relation):
                return float(row[column])
        return float("nan")

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        lines = [f"Similarity of all pairs of {self.samples} samples, (1 + cosine)/2:"]
        lines.append(f"{'':<30}" + "".join(f"{name:>18}" for name in _RELATIONS))
        for kind, _, by in _KINDS:
            cells = {row["relation"]: row for row in self.rows if (row["pairs"], row["by"]) == (kind, by)}
            if cells:
                texts = (f"{cells[name]['normalised']:.4f} ±{cells[name]['normalised_std']:.4f}" if name in cells else "-" for name in _RELATIONS)
                lines.append(f"{f'{kind}, by {by} labels':<30}" + "".join(f"{text:>18}" for text in texts))
        return "\n".join(lines + ([self.verdict] if self.verdict else []))


def similarity(
    features: Any,
    given: Any,
    true: Any = None,
    taxonomy: Taxonomy | str | os.PathLike[str] = "",
    *,
    clean_features: Any = None,
    eta_min: int = 3,
    eta_max: int = 5,
) -> Similarity:
    """Measures the similarity of all pairs of samples, exactly, by the relation of their classes: the paper's Table 1 for any features.

    ``features`` has a row for each sample, ``given`` its label, ``true`` the true one where it is known. Labels are numbers of the tree's classes, or their
    names. Classes up to distance ``eta_min`` are related, beyond ``eta_max`` unrelated. With ``clean_features``, features of the same samples by a network that
    was trained without noise, the table also says what noise changed. The time is linear in the number of samples.

    >>> import numpy as np
    >>> import negscale
    >>> labels = np.arange(600) % 10
    >>> centres = np.random.default_rng(0).normal(size=(10, 16))
    >>> features = centres[labels] + np.random.default_rng(1).normal(size=(600, 16))
    >>> noisy = negscale.noise(labels, "sym:0.4", seed=2).labels
    >>> found = negscale.similarity(features, noisy, labels, "cifar10")
    >>> found.mean("same") > found.mean("unrelated")
    True
    >>> found.mean("same", "clean-clean") == found.mean("same", "cross-noise")
    False
    """
    if taxonomy == "":
        raise InputError("which class tree? Give taxonomy= a negscale.Taxonomy, the name of a built-in tree, or a path")
    tree = taxonomy if isinstance(taxonomy, Taxonomy) else Taxonomy(taxonomy)
    names = tree.class_names
    rows = _inputs.features(features).values
    labels = _inputs.labels(given, names).codes
    truth = None if true is None else _inputs.labels(true, names, "true labels").codes
    clean = None if clean_features is None else _inputs.features(clean_features, "clean_features").values
    found = json.loads(_negscale.measure_similarity(rows, labels, truth, tree, eta_min, eta_max, clean))
    means = [[float("nan") if mean is None else mean for mean in row] for row in found["class_means"]]
    return Similarity(_table(found), np.array(means), found["samples"], found["skipped"], found["wrong"], found["verdict"])


def _table(found: dict[str, Any]) -> list[dict[str, Any]]:
    table = []
    for kind, way, by in _KINDS:
        measured, clean, change = (_at(found[part], way) for part in ("similarity", "clean", "change"))
        for relation in _RELATIONS:
            if (values := (measured or {}).get(relation)) is None:
                continue
            row = {"pairs": kind, "by": by, "relation": relation, "count": values["pairs"]}
            row |= {name: values[name] for name in ("mean", "std", "normalised", "normalised_std")}
            if clean and change:
                row |= {"clean": clean[relation]["normalised"], "change": change[relation]["normalised"]}
                row |= {"relative_change": change[relation]["relative"], "rms": change[relation]["rms"]}
                correlation = change[relation]["correlation"]
                row["correlation"] = float("nan") if correlation is None else correlation
            table.append(row)
    return table


def _at(found: dict[str, Any] | None, way: tuple[str, ...]) -> dict[str, Any] | None:
    for step in way:
        found = None if found is None else found[step]
    return found
