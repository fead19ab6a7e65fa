"""What an audit has found: `negscale.Audit`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from negscale._errors import FileError, InputError

if TYPE_CHECKING:
    import pandas
    import polars

#: Labels that are shown in a notebook.
_SHOWN = 10
#: Whole numbers in columns: -1 is none.
_NONE = -1
#: Columns with the number of a class.
_CLASSES = ("given", "suggested", "predicted")


class Audit:
    """Every label of a dataset, judged. Made by `negscale.audit`, or read from a folder that `negscale audit` has written.

    All arrays are in the order of the data, so that `features[audit.flags]` are the rows whose labels look wrong.

    >>> import numpy as np, negscale
    >>> draw = np.random.default_rng(0)
    >>> classes = np.arange(300) % 3
    >>> features = draw.normal(size=(300, 4)) + 4 * np.eye(4)[classes]
    >>> labels = np.array(["ant", "bee", "fly"])[classes]
    >>> labels[:6] = "fly"                       # rows 0, 1, 3 and 4 were something else
    >>> audit = negscale.audit(features, labels)
    >>> np.flatnonzero(audit.flags).tolist()
    [0, 1, 3, 4]
    >>> audit.suggested[:6].tolist()
    ['ant', 'bee', 'fly', 'ant', 'bee', 'fly']
    """

    #: How suspicious each label is, from 0 to 1: the probability that it is wrong.
    scores: NDArray[Any]
    #: Whether each label is held to be wrong: as many as are estimated to be.
    flags: NDArray[Any]
    #: Numbers of the rows, most suspicious first.
    order: NDArray[Any]
    #: The classes, as they were handed in.
    classes: NDArray[Any]
    #: All figures: what the command writes to `audit.json`.
    results: dict[str, Any]
    #: What was found, in words.
    summary: str
    #: What should be known first.
    notes: list[str]
    #: P(given class | true class), a row for every true class; None if labels cannot be judged, or not known (folders of more than 100 classes, or of a merge).
    transition: NDArray[Any] | None
    #: The folder with the files of the audit, if there is one.
    folder: Path | None

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]],
        *,
        order: NDArray[Any],
        reasons: Mapping[int, Sequence[str]],
        classes: NDArray[Any],
        results: dict[str, Any],
        summary: str,
        transition: NDArray[Any] | None,
        page: Callable[[], str] | str,
        index: Any = None,
        ids: Sequence[str] | None = None,
        folder: Path | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self._columns, self._reasons, self._page, self._index, self._ids = dict(columns), dict(reasons), page, index, ids
        self.scores, self.flags, self.order = self._columns["score"], self._columns["flag"], order
        self.classes, self.results, self.summary, self.transition, self.folder = classes, results, summary, transition, folder
        self.notes = [*notes, *results.get("notes", [])]

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Audit:
        """The audit in a folder that `negscale audit` (or `negscale.audit` with `out=`) has written, also one in parts (`negscale audit merge`).

        >>> import tempfile, numpy as np, negscale
        >>> folder = tempfile.mkdtemp()
        >>> draw = np.random.default_rng(0)
        >>> made = negscale.audit(draw.normal(size=(60, 2)) + 5 * np.eye(2)[np.arange(60) % 2], np.arange(60) % 2, out=folder)
        >>> bool((negscale.Audit.open(folder).scores == made.scores).all())
        True
        """
        return _read(cls, Path(folder))

    @property
    def given(self) -> NDArray[Any]:
        """The labels as given."""
        labels: NDArray[Any] = self.classes[self._columns["given"]]
        return labels

    @property
    def suggested(self) -> NDArray[Any]:
        """What each label should probably be; the label itself where it is not flagged and likeliest."""
        labels: NDArray[Any] = self.classes[self._columns["suggested"]]
        return labels

    @property
    def corrected(self) -> NDArray[Any]:
        """Labels to train on: the suggestion where the label is flagged and the suggestion clearly likelier right than wrong."""
        return np.where(self._columns["corrected"], self.suggested, self.given)

    @property
    def rate(self) -> float | None:
        """The estimated share of wrong labels; None if the labels cannot be judged."""
        return None if self.cannot_judge else (self.results.get("noise") or {}).get("rate")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the estimate; None if the labels cannot be judged."""
        ends = (self.results.get("noise") or {}).get("interval_95")
        return (ends[0], ends[1]) if ends and not self.cannot_judge else None

    @property
    def cannot_judge(self) -> str | None:
        """Why nothing can be said about the labels, if so."""
        return (self.results.get("noise") or {}).get("cannot_judge")

    @cached_property
    def reasons(self) -> list[list[str]]:
        """Why each flagged label is doubted, most telling first; nothing for the others."""
        return [list(self._reasons.get(row, ())) for row in range(len(self))]

    def __len__(self) -> int:
        return len(self.scores)

    def __getstate__(self) -> dict[str, Any]:
        # The page is made when it is asked for; what is pickled has it.
        return {**self.__dict__, "_page": self._html()}

    def _html(self) -> str:
        return self._page if isinstance(self._page, str) else self._page()

    def __repr__(self) -> str:
        return f"<negscale.Audit: {self._told()}>"

    def _told(self) -> str:
        start = f"{len(self):,} labels of {len(self.classes):,} classes"
        if self.cannot_judge:
            return f"{start}, which cannot be judged: {self.cannot_judge}"
        told = f"{start}, {int(self.flags.sum()):,} look wrong"
        if self.rate is not None and self.interval is not None:
            low, high = self.interval
            told += f" (estimated {100 * self.rate:.1f} %, {100 * low:.1f} to {100 * high:.1f} %)"
        return told

    def _repr_html_(self) -> str:
        flagged = self.order[self.flags[self.order]]
        text = f"<p><b>Audit</b>: {escape(self._told())}</p>"
        if not len(flagged):
            return text
        worst = flagged[:_SHOWN]
        given, suggested = (self.classes[self._columns[name][worst]] for name in ("given", "suggested"))
        rows = "".join(
            f"<tr><th>{escape(str(self._name(row)))}</th><td>{escape(str(own))}</td><td>{escape(str(other))}</td>"
            f"<td>{self.scores[row]:.3f}</td><td style='text-align:left'>{escape('; '.join(self._reasons.get(row, [])[:2]))}</td></tr>"
            for row, own, other in zip(worst.tolist(), given, suggested, strict=True)
        )
        more = f"<p>and {len(flagged) - _SHOWN:,} more</p>" if len(flagged) > _SHOWN else ""
        head = "<tr><th></th><th>given</th><th>suggested</th><th>score</th><th style='text-align:left'>why</th></tr>"
        return f"{text}<table><thead>{head}</thead><tbody>{rows}</tbody></table>{more}"

    def _name(self, row: int) -> Any:
        return row if self._index is None else self._index[row]

    # Tables ---------------------------------------------------------------------------------------------------

    def _table(self, columns: str, ranked: bool) -> tuple[dict[str, NDArray[Any]], NDArray[Any] | None]:
        """Columns, and their order; -1 is none in distances and sets."""
        order = self.order if ranked else None
        if columns == "cleanlab":
            suggested = self._columns["suggested"]
            predicted = self._columns.get("predicted", suggested)
            likeliest = np.where(predicted == _NONE, suggested, predicted)
            return {
                "is_label_issue": self.flags,
                "label_quality": 1 - self.scores,
                "given_label": self.given,
                "predicted_label": self.classes[likeliest],
            }, order
        if columns != "negscale":
            raise InputError(f"columns are called {columns!r}: they are those of 'negscale' or of 'cleanlab'")
        table: dict[str, NDArray[Any]] = {}
        if self._ids is not None:
            table["path"] = np.array(self._ids, dtype=object)
        for name, column in self._columns.items():
            table[name] = self.classes[column] if name in _CLASSES and not (column == _NONE).any() else column
        table["reasons"] = np.array(["; ".join(self._reasons.get(row, ())) for row in range(len(self))], dtype=object)
        return table, order

    def to_pandas(self, columns: Literal["negscale", "cleanlab"] = "negscale", *, ranked: bool = False) -> pandas.DataFrame:
        """A table with a row for every label, in the order of the data and with its index; `ranked` puts the most suspicious first.

        With `columns="cleanlab"` the columns are `is_label_issue`, `label_quality`, `given_label` and `predicted_label`.

        >>> import numpy as np, negscale
        >>> draw = np.random.default_rng(0)
        >>> audit = negscale.audit(draw.normal(size=(60, 2)) + 5 * np.eye(2)[np.arange(60) % 2], np.arange(60) % 2)
        >>> audit.to_pandas("cleanlab").columns.to_list()
        ['is_label_issue', 'label_quality', 'given_label', 'predicted_label']
        """
        import pandas

        table, order = self._table(columns, ranked)
        parts = {name: pandas.array(column, dtype="Int64") if _has_none(name, column) else column for name, column in table.items()}
        frame = pandas.DataFrame(parts, index=self._index)
        for name, column in table.items():
            if _has_none(name, column):
                frame.loc[column == _NONE, name] = pandas.NA
        return frame if order is None else frame.iloc[order]

    def to_polars(self, columns: Literal["negscale", "cleanlab"] = "negscale", *, ranked: bool = False) -> polars.DataFrame:
        """The same as a table of polars, with the numbers of the rows as `index`."""
        import polars

        table, order = self._table(columns, ranked)
        frame = polars.DataFrame({"index": np.arange(len(self)), **{name: _plain_objects(column) for name, column in table.items()}})
        gone = [name for name, column in table.items() if _has_none(name, column)]
        frame = frame.with_columns(polars.when(polars.col(name) != _NONE).then(polars.col(name)).alias(name) for name in gone)
        return frame if order is None else frame[order]

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes the page of the audit: one HTML file that needs no network, the same as the command's `report.html`. Gives its path."""
        path = Path(path)
        try:
            path.write_text(self._html(), encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror or error}") from error
        return path


def _has_none(name: str, column: NDArray[Any]) -> bool:
    return name in ("tree_distance", "near_copies", *_CLASSES) and column.dtype.kind == "i" and bool((column == _NONE).any())


def _plain_objects(column: NDArray[Any]) -> Any:
    return column.tolist() if column.dtype.kind in "OU" else column


# Folders ----------------------------------------------------------------------------------------------------------


def _read(cls: type[Audit], folder: Path) -> Audit:
    try:
        results = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
        if results.get("method") == "parts":
            return _read_merged(cls, folder, results)
        with open(folder / "audit.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        summary = (folder / "summary.txt").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileError(f"{folder} holds no finished audit: {Path(error.filename).name} is missing; `negscale audit` writes one") from error
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read the audit in {folder}: {error}") from error
    classes = results["noise"]["classes"] if (results.get("noise") or {}).get("classes") else None
    names = [entry["class"] for entry in classes] if classes else sorted({_unguarded(row["given"]) for row in rows})
    places = _places(names)
    order = np.array([int(row["index"]) for row in rows], dtype=np.int64)

    def column(name: str, read: Callable[[str], Any], kind: Any) -> NDArray[Any]:
        values = np.empty(len(rows), dtype=kind)
        values[order] = [read(row[name]) for row in rows]
        return values

    def number(cell: str) -> float:
        return float(cell) if cell else float("nan")

    def whole(cell: str) -> int:
        return int(cell) if cell else _NONE

    def place(cell: str) -> int:
        return places.get(cell, _NONE)

    columns = {
        "given": column("given", place, np.int64),
        "suggested": column("suggested", place, np.int64),
        "score": column("score", number, np.float64),
        "clean_probability": column("clean_probability", number, np.float64),
        "suggested_probability": column("suggested_probability", number, np.float32),
        "tree_distance": column("tree_distance", whole, np.int64),
        "flag": column("flag", "true".__eq__, np.bool_),
        "predicted": column("predicted", place, np.int64),
        "predicted_probability": column("predicted_probability", number, np.float32),
        "given_probability": column("given_probability", number, np.float32),
        "near_copies": column("near_copies", whole, np.int64),
        "outlier": column("outlier", "true".__eq__, np.bool_),
    }
    changed = np.zeros(len(rows), dtype=np.bool_)
    with open(folder / "corrected.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            changed[int(row["index"])] = row["changed"] == "true"
    columns["corrected"] = changed
    paths = [""] * len(rows)
    for row in rows:
        paths[int(row["index"])] = row["path"]
    transition = (results.get("noise") or {}).get("given_by_true")
    return cls(
        columns,
        order=order,
        reasons={int(row["index"]): row["reasons"].split("; ") for row in rows if row["flag"] == "true"},
        classes=np.array(names),
        results=results,
        summary=summary,
        transition=np.array(transition) if transition else None,
        page=lambda: (folder / "report.html").read_text(encoding="utf-8"),
        ids=paths if any(paths) else None,
        folder=folder,
    )


def _read_merged(cls: type[Audit], folder: Path, results: dict[str, Any]) -> Audit:
    """What `negscale audit merge` has written: rows in their order, which may be many, so they are read one by one; without reasons and neighbours."""
    names = [entry["class"] for entry in results["noise"]["classes"]]
    places = _places(names)
    kinds = {"given": np.int64, "suggested": np.int64, "flag": np.bool_, "corrected": np.bool_}
    count = results["samples"]
    columns = {name: np.zeros(count, kinds.get(name, np.float32)) for name in ("given", "suggested", "score", "clean_probability", "suggested_probability", *kinds)}
    paths: list[str] = []
    with open(folder / "audit.csv", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for row, (_, path, given, suggested, score, clean, probability, _, flag) in enumerate(rows):
            columns["given"][row], columns["suggested"][row] = places[given], places[suggested]
            columns["score"][row], columns["clean_probability"][row], columns["suggested_probability"][row] = float(score), float(clean), float(probability)
            columns["flag"][row] = flag == "true"
            paths.append(path)
    with open(folder / "corrected.csv", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for row, cells in enumerate(rows):
            columns["corrected"][row] = cells[-1] == "true"
    return cls(
        columns,
        order=np.argsort(-columns["score"], kind="stable"),
        reasons={},
        classes=np.array(names),
        results=results,
        summary=_summary(results),
        transition=None,
        page=lambda: (folder / "report.html").read_text(encoding="utf-8"),
        ids=paths if any(paths) else None,
        folder=folder,
    )


def _summary(results: dict[str, Any]) -> str:
    """The first words of the merge, which no file keeps."""
    noise = results["noise"]
    told = f"{results['flagged']} of {results['samples']} labels are flagged, {results['changed']} corrected\n"
    if noise["cannot_judge"]:
        return f"{told}the labels cannot be judged: {noise['cannot_judge']}\n"
    low, high = noise["interval_95"]
    rows = results["fitted_to"]["rows"]
    return f"{told}estimated share of wrong labels: {100 * noise['rate']:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %), by models of {rows} rows\n"


def _places(names: Sequence[str]) -> dict[str, int]:
    """Where classes are, by their names as cells have them."""
    return {name: place for place, name in enumerate(names)} | {"'" + name: place for place, name in enumerate(names)}


def _unguarded(cell: str) -> str:
    """A cell without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@", "\t", "\r", "'") else cell
