"""Models of an audit as a file: `negscale.FrozenAudit`."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from negscale import _inputs
from negscale._errors import InputError
from negscale._negscale import FrozenModels, text_ids

#: The models in the folder of an audit.
_MODEL = "audit.safetensors"


class FrozenAudit:
    """The models that `negscale audit fit` has written: they judge labels of rows wherever these are, such as in tasks of Spark.

    `path` is the folder of the audit, or the `audit.safetensors` in it, which is all that is needed.

    >>> import pathlib, subprocess, sys, tempfile, numpy as np, negscale
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> draw = np.random.default_rng(0)
    >>> labels = np.arange(300) % 3
    >>> features = draw.normal(size=(300, 4)) + 4 * np.eye(4)[labels]
    >>> labels[7] = 0                                     # it was 1
    >>> np.save(folder / "x.npy", features), np.save(folder / "y.npy", labels)
    (None, None)
    >>> words = ["audit", "fit", folder / "x.npy", "--labels", folder / "y.npy", "--out", folder / "A", "--quiet"]
    >>> subprocess.run([sys.executable, "-m", "negscale", *words], check=True).returncode
    0
    >>> audit = negscale.FrozenAudit(folder / "A")
    >>> found = audit.score(features[6:9], labels[6:9], ids=[6, 7, 8])
    >>> found["suggested"].tolist(), found["flag"].tolist()
    (['0', '1', '2'], [False, True, False])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._models = FrozenModels(self._path / _MODEL if self._path.is_dir() else self._path)
        #: Names of the classes.
        self.classes: NDArray[Any] = np.array(self._models.classes)
        #: Numbers of a row.
        self.dim: int = self._models.dim
        #: What the models were made of: the estimate from the sample, the score from which labels are flagged, settings, version.
        self.about: dict[str, Any] = json.loads(self._models.about())
        self._places = {name: place for place, name in enumerate(self.classes.tolist())}
        #: Names are whole numbers in their order: then numbers are names, as in the data.
        self._is_numbered = _rises([_whole(name) for name in self._places])

    def score(self, features: Any, labels: Any, ids: Any, *, threads: int = 1) -> dict[str, NDArray[Any]]:
        """What is believed of each label: columns `score`, `suggested` (the name of a class), `suggested_probability` and `flag`, as `negscale.Audit` has them.

        features : rows of numbers, with the columns of the data that the models were fitted to.
        labels : names of classes; or whole numbers, as they were in that data, or where its classes have other names, places in `classes`.
        ids : what each row is called in that data: its id, or without a column of ids its number from 0. A row of the sample is judged by models that did not see it.
        threads : how many; 0 is one for each core.

        Scores are those of `negscale audit score` to the sixth digit: products of other blocks of rows may round differently. To the bit they are the same where
        the rows of a call begin at a multiple of a block, which is 8,192 rows of up to 128 numbers.
        """
        numbers = self._numbers_of(ids)
        count = len(numbers)
        rows, codes = np.empty((0, self.dim), np.float32), np.empty(0, np.uint32)
        if count or len(labels):
            rows, codes = _inputs.features(features).values, self._codes(labels)
        if not len(rows) == len(codes) == count:
            raise InputError(f"{len(rows)} rows of features, {len(codes)} labels and {count} ids: every row needs one of each")
        found = self._models.score(rows, codes, numbers, threads)
        return {**found, "suggested": self.classes[found["suggested"]]}

    def _codes(self, labels: Any) -> NDArray[Any]:
        """Places of classes. What a label means does not depend on the others that it came with."""
        column = _inputs.label_column(labels, "labels")
        distinct, back = np.unique(column, return_inverse=True)
        is_place = column.dtype.kind in "iu" and not self._is_numbered
        places = [self._place(value, is_place) for value in distinct.tolist()]
        if None in places:
            row = int(np.argmax(back.reshape(-1) == places.index(None)))
            named = ", ".join(self.classes[:5]) + (", ..." if len(self.classes) > 5 else "")
            raise InputError(f"label {column[row].item()!r} of row {row} is none of the {len(self.classes)} classes of the audit ({named})")
        return np.array(places, dtype=np.uint32)[back.reshape(-1)]

    def _place(self, label: Any, is_place: bool) -> int | None:
        if is_place:
            return label if 0 <= label < len(self.classes) else None
        return self._places.get(str(label))

    def _numbers_of(self, ids: Any) -> NDArray[Any]:
        column = np.asarray(_inputs.plain(ids, "ids"))
        if column.ndim != 1:
            raise InputError(f"ids have {column.ndim} dimensions: give one for each row")
        if not len(column):
            return np.empty(0, np.uint64)
        is_text = column.dtype.kind in "UOT" and all(isinstance(entry, str) for entry in column.tolist())
        if not is_text and (column.dtype.kind not in "iu" or column.min() < 0):
            raise InputError("ids must be text, or whole numbers from 0 on, without gaps: a row is judged by models that did not see it, which its id tells")
        settings = self.about["settings"]
        named = settings["options"]["id_column"]
        has_none = named == "none" or settings["data"].endswith(".npy") or not settings["is_looked_at"]
        if has_none and is_text:
            raise InputError("ids are text, but the audit was fitted to rows without a column of ids: give the numbers of the rows")
        if has_none:
            return column.astype(np.uint64)
        if named is None and not is_text:
            raise InputError(
                "ids are numbers, and it is not known whether the audit was fitted to rows with a column of ids: give these as text, or fit it again and name "
                "that column (--id-column NAME; none if rows are known by their numbers)"
            )
        return text_ids([str(entry) for entry in column.tolist()])

    def __reduce__(self) -> tuple[type[FrozenAudit], tuple[str]]:
        return FrozenAudit, (fspath(self._path),)

    def __repr__(self) -> str:
        return f"<negscale.FrozenAudit: {self.dim} numbers a row, {len(self.classes):,} classes>"


def _whole(name: str) -> int:
    return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else -1


def _rises(numbers: list[int]) -> bool:
    return numbers[0] >= 0 and all(before < after for before, after in zip(numbers, numbers[1:], strict=False))
