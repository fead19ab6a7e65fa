"""Audits of labels: `negscale.audit`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from negscale import _inputs, _negscale, _progress
from negscale._errors import InputError
from negscale._findings import Audit
from negscale._negscale import AuditFindings, Taxonomy

__all__ = ["Audit", "audit"]


def audit(
    features: Any,
    labels: Any = None,
    *,
    pred_probs: Any = None,
    classes: Sequence[Any] | None = None,
    truth: Any = None,
    sources: Any = None,
    seed: int = 0,
    tree: str | PathLike[str] | Taxonomy = "auto",
    neighbours: bool = False,
    threads: int = 0,
    name: str = "data in memory",
    out: str | PathLike[str] | None = None,
    fresh: bool = False,
    progress: bool | Callable[[float], object] | None = None,
    **settings: Any,
) -> Audit:
    """Finds wrong labels: ranks all of them by models that never saw the label they judge, suggests corrections, and estimates how many are wrong.

    `features` are rows of numbers, such as embeddings: an array, a tensor, a table of pandas, polars or Arrow, a column of Hugging Face `datasets`; or the
    path of data, which is audited as by the command `negscale audit`. None goes with `pred_probs`.

    `labels` are a class for each row: whole numbers, text, categories; for a table also the name of its column; for a path a file of labels, or nothing.

    pred_probs : probabilities (N x C) by models that did not train on the sample they predict; then nothing is fitted. For a path, a file.
    classes : names of the classes, if labels count into them or some class does not occur; columns of `pred_probs` are in this order.
    truth : true labels, where they are known, to be compared with what is found.
    sources : where each label comes from, such as a camera, a site or a person.
    seed : of everything random; the command's default is 1.
    tree : class tree: "auto", "learnt", the name of a built-in one, a path, or a `Taxonomy` (with `out`, its path).
    neighbours : look for near-copies and outliers among more than 20,000 rows, too.
    threads : how many; 0 is one for each processor.
    name : what the report calls the data.
    out : a folder for the files that the command would write. Run the same call again after a stop.
    fresh : start over in that folder.
    progress : a bar (True), none (False), a function of the share that is done, or a bar where somebody watches (None).
    settings : for a path, settings of the command, such as `label_column="kind"` or `host="rolr"`.

    Ctrl-C stops the audit with `KeyboardInterrupt`.

    >>> import numpy as np, negscale
    >>> draw = np.random.default_rng(0)
    >>> labels = np.arange(300) % 3
    >>> features = draw.normal(size=(300, 4)) + 4 * np.eye(4)[labels]
    >>> labels[7] = 0                                     # it was 1
    >>> audit = negscale.audit(features, labels)
    >>> int(audit.order[0]), int(audit.suggested[7])
    (7, 1)
    """
    place = None if out is None else Path(fspath(out))
    with _named(tree, out) as name_of_tree, _progress.told(progress, "negscale audit") as heard:
        common = {"seed": _whole("seed", seed), "threads": _whole("threads", threads), "tree": name_of_tree, "audit.neighbours": bool(neighbours)}
        if not isinstance(features, (str, PathLike)):
            if settings:
                raise TypeError(f"audit() got an unexpected argument '{next(iter(settings))}': settings of the command go with a path")
            return _of_arrays(features, labels, pred_probs, classes, truth, sources, common, name, place, fresh, heard)
        unfit = [word for word, value in {"classes": classes, "truth": truth, "sources": sources}.items() if value is not None]
        if unfit:
            remedy = {"classes": "class_names", "truth": "truth_column", "sources": "source_column"}[unfit[0]]
            raise TypeError(f"{unfit[0]} go with arrays; for a path give {remedy}")
        given = {"labels": labels, "audit.pred_probs": pred_probs}
        for word, value in given.items():
            if value is not None and not isinstance(value, (str, PathLike)):
                raise TypeError(f"{word.rpartition('.')[2]} of a path are the path of a file; to give an array, read the data into one as well (numpy.load)")
        files = {word: _text(value) for word, value in given.items() if value is not None}
        return _of_path(_text(features), {**common, **files, **settings}, place, fresh, heard)


@contextmanager
def _named(tree: str | PathLike[str] | Taxonomy, out: object) -> Iterator[str]:
    """A class tree by name; one in memory gets a file for as long as it is needed."""
    if not isinstance(tree, Taxonomy):
        yield _text(tree)
        return
    if out is not None:
        raise TypeError("tree is a Taxonomy, which a folder cannot name: write tree.to_tsv() to a file and give its path")
    with TemporaryDirectory() as folder:
        path = Path(folder, "tree.tsv")
        path.write_text(tree.to_tsv(), encoding="utf-8")
        yield str(path)


def _of_path(what: str, settings: dict[str, Any], out: Path | None, fresh: bool, heard: Any) -> Audit:
    written = json.dumps({key: value for key, value in settings.items() if value is not None}, default=_plain)
    found, notes = _negscale.audit_path(what, settings=written, out=out, fresh=fresh, progress=heard)
    if isinstance(found, Path):
        audited = Audit.open(found)
        audited.notes[:0] = notes
        return audited
    results = json.loads(found.results())
    return _made(found, np.array(found.classes()), results, ids=found.ids(), folder=out, notes=notes)


def _of_arrays(
    features: Any,
    labels: Any,
    pred_probs: Any,
    classes: Sequence[Any] | None,
    truth: Any,
    sources: Any,
    settings: dict[str, Any],
    name: str,
    out: Path | None,
    fresh: bool,
    heard: Any,
) -> Audit:
    if labels is None:
        raise TypeError("labels are missing: give a class for each row of the features")
    if isinstance(labels, str):
        if not _inputs.is_table(features):
            raise TypeError(f"labels are {labels!r}: the name of a column needs a table of features")
        features, labels = _inputs.split_off(features, labels)
    if features is None and pred_probs is None:
        raise TypeError("features and pred_probs are both missing: give one of them")
    given = _inputs.labels(labels, classes)
    count = len(given.codes)
    rows = None if features is None else _inputs.features(features)
    if rows is not None and len(rows.values) != count:
        raise InputError(f"{len(rows.values)} rows of features for {count} labels: every row needs one")
    if rows is not None and not rows.values.shape[1]:
        raise InputError("rows of features hold no number")
    if pred_probs is not None and classes is None and given.values.dtype.kind in "biu":
        # Numbers of labels are columns of predictions, also of classes that do not occur.
        width = np.shape(pred_probs)[1] if len(np.shape(pred_probs)) == 2 else len(given.names)
        given = _inputs.labels(labels, range(width))
    index = _index(rows.index if rows else None, given.index)
    true = None if truth is None else _same_classes(truth, given, count)
    found = _negscale.audit_rows(
        None if rows is None else rows.values,
        given.codes,
        given.names,
        name=name,
        settings=json.dumps(settings),
        ids=None if index is None else [str(entry) for entry in index],
        columns=rows.columns if rows else None,
        sources=None if sources is None else _sources(sources, count),
        truth=true,
        pred_probs=None if pred_probs is None else _inputs.probabilities(pred_probs, count, len(given.names)),
        out=out,
        fresh=fresh,
        progress=heard,
    )
    return _made(found, given.values, json.loads(found.results()), index=index, folder=out)


def _made(found: AuditFindings, classes: NDArray[Any], results: dict[str, Any], **more: Any) -> Audit:
    return Audit(
        found.columns(),
        order=found.order(),
        reasons=dict(found.reasons()),
        classes=classes,
        results=results,
        summary=found.words(),
        transition=found.transition(),
        page=found.html,
        **more,
    )


def _index(of_features: Any, of_labels: Any) -> Any:
    """The index of a table, unless it only counts. Two that differ are a mistake: rows would be judged by labels of others."""
    named = [index for index in (of_features, of_labels) if index is not None and not _counts(index)]
    if len(named) == 2 and not named[0].equals(named[1]):
        raise InputError("features and labels have different indices, so their rows do not belong together: align them, or give labels.to_numpy()")
    return named[0] if named else None


def _counts(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _same_classes(truth: Any, given: _inputs.Labels, count: int) -> NDArray[Any]:
    true = _inputs.labels(truth, given.values.tolist(), "true labels").codes
    if len(true) != count:
        raise InputError(f"{len(true)} true labels for {count} labels: every row needs one")
    return true


def _sources(sources: Any, count: int) -> tuple[list[str], list[int]]:
    of = ["" if entry is None or entry != entry else str(entry) for entry in (sources.tolist() if hasattr(sources, "tolist") else sources)]
    if len(of) != count:
        raise InputError(f"{len(of)} sources for {count} labels: every row needs one, or None")
    names = list(dict.fromkeys(of))
    places = {name: place for place, name in enumerate(names)}
    return names, [places[entry] for entry in of]


def _whole(what: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"{what} is {number!r}: give a whole number")
    if not 0 <= number < 2**63:
        raise InputError(f"{what} is {number}: give a whole number from 0 on")
    return int(number)


def _plain(value: Any) -> Any:
    """A setting that JSON has no word for."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{value!r} is no setting: give text, a number, True or False, or a list of these")


def _text(path: str | PathLike[str]) -> str:
    text = fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"{path!r} is bytes: give text")
    return text
