"""Wrong labels made to order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from negscale import _inputs, _negscale
from negscale._errors import InputError
from negscale._negscale import Taxonomy


@dataclass(frozen=True, repr=False, eq=False)
class NoisyLabels:
    """Labels of which some are wrong, and how they came about. ``np.asarray`` of it is ``labels``."""

    #: The labels, as the true ones were handed over.
    labels: np.ndarray
    #: Which of them are not the true ones.
    is_wrong: np.ndarray
    #: Share of labels that are not the true ones.
    rate: float
    #: The rate asked for; None for a list that says nothing of it.
    nominal: float | None
    #: What became of the true labels: shares, C x C, a row for each true class.
    transition: np.ndarray
    #: Names of the classes.
    classes: list[str]
    #: The noise model, with defaults filled in.
    noise: str
    #: The law in a sentence.
    convention: str
    #: What it was drawn with; 0 where nothing is drawn.
    seed: int
    #: Identifies labels and noise; that of the command's noise file.
    hash: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.labels, dtype=dtype, copy=True) if copy else np.asarray(self.labels, dtype=dtype)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"NoisyLabels({self.noise!r}, seed={self.seed}: {100 * self.rate:.2f} % of {len(self)} labels wrong)"


def noise(
    labels: Any,
    noise: str,
    *,
    seed: int = 0,
    features: Any = None,
    classes: Sequence[Any] | None = None,
    taxonomy: Taxonomy | str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> NoisyLabels:
    """Draws wrong labels over true ones, the same that ``negscale noise`` draws with the same seed.

    ``noise`` is ``sym:0.5`` (a share of 0.5 gets a label drawn from all classes), ``sym-excl:R``, ``sym-exact:R``, ``asym:R``, ``asym-map:R``,
    ``asym-block:R``, ``asym-super:R``, ``pairflip:R``, ``ins:R``, ``cifarn:worse`` or ``file:PATH``. Labels are numbers or names. Which classes there
    are is said by ``classes``, else by ``taxonomy``, else by the labels that occur. Noise that depends on the items (``ins``) needs ``features``: a row
    of numbers for each label, or pictures of bytes (N x height x width x channels). For ``asym-super`` a class's superclass is its parent in
    ``taxonomy``. Tables of human labels (``cifarn``) are looked for in ``data_dir`` and where ``NEGSCALE_DATA`` says.

    >>> import numpy as np
    >>> import negscale
    >>> noisy = negscale.noise(np.arange(1000) % 10, "sym-exact:0.4", seed=1)
    >>> noisy
    NoisyLabels('sym-exact:0.4', seed=1: 40.00 % of 1000 labels wrong)
    >>> int(noisy.is_wrong.sum())
    400
    >>> negscale.noise(["cat", "dog", "cat", "dog"], "pairflip:1").labels.tolist()
    ['dog', 'cat', 'dog', 'cat']
    """
    tree = None if taxonomy is None else taxonomy if isinstance(taxonomy, Taxonomy) else Taxonomy(taxonomy)
    if classes is None and tree is not None:
        classes = tree.class_names
    given = _inputs.labels(labels, classes)
    superclasses = None
    if tree is not None and noise.startswith("asym-super"):
        parents = [tree.ancestors(name)[0] for name in tree.for_classes(given.names).class_names]
        places = {parent: place for place, parent in enumerate(dict.fromkeys(parents))}
        superclasses = [places[parent] for parent in parents]
    items = None if features is None else _items(features, len(given.codes))
    drawn = _negscale.draw_noise(noise, given.codes, given.names, items, seed, superclasses, data_dir)
    is_numbers = np.asarray(labels).dtype.kind in "iuf"
    totals = drawn.counts.sum(axis=1, keepdims=True)
    return NoisyLabels(
        # Numbers of classes that have names come back as numbers.
        labels=drawn.labels.astype(np.int64) if is_numbers and given.values.dtype.kind not in "iu" else given.values[drawn.labels],
        is_wrong=drawn.labels != given.codes,
        rate=drawn.achieved,
        nominal=drawn.nominal,
        transition=np.divide(drawn.counts, totals, out=np.zeros(drawn.counts.shape), where=totals > 0),
        classes=given.names,
        noise=drawn.spec,
        convention=drawn.convention,
        seed=drawn.seed,
        hash=drawn.hash,
    )


def _items(features: Any, count: int) -> np.ndarray:
    """Pictures of bytes as they are, anything else as rows of numbers."""
    is_pictures = isinstance(features, np.ndarray) and features.ndim == 4 and features.dtype == np.uint8
    items = features if is_pictures else _inputs.features(features).values
    if len(items) != count:
        raise InputError(f"there are {len(items)} rows of features for {count} labels: one for each label is needed")
    return items
