"""Training runs from recipes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from negscale import _negscale, _progress
from negscale._errors import FileError, InputError

if TYPE_CHECKING:
    import pandas


class Run:
    """A finished run: the folder that ``negscale.train`` or ``negscale train`` wrote."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: Where it is.
        self.folder = Path(folder)
        #: What it came to: the content of ``results.json``.
        self.results: dict[str, Any] = _read_json(self.folder / "results.json")
        #: The same in words.
        self.summary = _read(self.folder / "summary.txt")

    @property
    def records(self) -> list[dict[str, Any]]:
        """What was measured in every epoch, as ``metrics.jsonl`` has it."""
        path = self.folder / "metrics.jsonl"
        return [json.loads(line) for line in _read(path).splitlines()]

    @property
    def metrics(self) -> pandas.DataFrame | list[dict[str, Any]]:
        """A row for every epoch, as a DataFrame of pandas; without pandas, as a list of dicts. Losses are called ``losses.total`` and so on."""
        rows = [_flat(record) for record in self.records]
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def __str__(self) -> str:
        return self.summary


def train(
    recipe: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    keep: Literal["all", "results"] = "all",
    checkpoint_every: float = 0.0,
    progress: bool | Callable[[float], object] | None = None,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
    **settings: Any,
) -> Run:
    """Trains by a recipe and returns the run; the same as ``negscale train``.

    ``recipe`` is a path, the text of a recipe (TOML), or a dict; without one, and without ``data``, it is the built-in one. Settings go over the recipe, by the names
    that ``negscale config explain`` lists; those of a table are written ``negscale={"lambda": 0.5}`` or ``**{"negscale.lambda": 0.5}``.

    Everything is written to the folder ``out``, or to one in ``runs`` named after what the run is. Ctrl-C stops it within a batch and saves its state: the
    same call goes on from there, to the same bits, unless ``resume`` is false. A finished run is only read. ``keep="results"`` leaves nothing but settings, metrics
    and results; ``checkpoint_every`` is the least time between two checkpoints in seconds. ``progress`` is True, False, or a function that is called
    with the share that is done; ``on_epoch`` is called with what was measured after every epoch.

    >>> import tempfile
    >>> import negscale
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = negscale.train(epochs=1, samples=512, baseline="none", out=folder.name + "/run")
    >>> len(run.records), sorted(run.records[0])[:2]
    (1, ['epoch', 'fit_clean'])
    >>> (run.folder / "audit.csv").exists()
    True
    >>> folder.cleanup()
    """
    if keep not in ("all", "results"):
        raise InputError(f"keep is {keep!r}: give 'all' or 'results'")
    bar = _progress.listener(progress, "training")

    def hear(text: str) -> None:
        event = json.loads(text)
        kind = event["event"]
        if kind == "batch" and bar is not None:
            bar((event["epoch"] - 1 + event["done"] / max(event["of"], 1)) / event["epochs"])
        elif kind == "epoch" and on_epoch is not None:
            on_epoch(event["record"])
        elif kind in ("note", "warning") and progress is not False:
            print(f"{kind}: {event['text']}", file=sys.stderr)

    try:
        given = dict(recipe) if isinstance(recipe, Mapping) else recipe
        place, _, _ = _negscale.train(given, settings, out, not resume, keep == "results", checkpoint_every, hear)
    finally:
        if bar is not None:
            _progress.finish(bar)
    return Run(place)


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Numbers of inner tables beside the others."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= {f"{name}.{inner}": number for inner, number in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}: is {path.parent} the folder of a finished run?") from error


def _read_json(path: Path) -> dict[str, Any]:
    text = _read(path)
    try:
        results: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): train the run again with resume=False") from error
    return results
