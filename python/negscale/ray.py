"""Audits on the machines of a Ray cluster.

Ray only decides what runs where, and runs it again where a machine dies. What is done is known by the files: rows, labels and the folder
of the audit are on a file system that all machines see by the same paths.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from negscale import _progress
from negscale._errors import InputError
from negscale._findings import Audit

try:
    import ray
    from ray.exceptions import RayTaskError
except ImportError as missing:
    raise ImportError("negscale.ray needs Ray 2.30 or later: pip install 'negscale[ray]'") from missing

__all__ = ["audit"]

#: Shards for each processor of the cluster, so that one that begins late or is slow has less of them.
_SHARDS = 4
#: Bytes of rows, as numbers of four bytes, below which a shard is not worth a process.
_LEAST = 64 << 20
#: Exit code of the command where something is wrong with what it was given.
_ERROR = 2


def audit(
    data: str | PathLike[str],
    labels: str | PathLike[str] | None = None,
    *,
    out: str | PathLike[str],
    shards: int | None = None,
    cpus: int = 1,
    retries: int = 3,
    seed: int = 0,
    fresh: bool = False,
    progress: bool | Callable[[float], object] | None = None,
    **settings: Any,
) -> Audit:
    """Audits rows of numbers by all machines of a Ray cluster: fits models here, scores shards of the rows as tasks of Ray, and merges them here.

    `data` is an `.npy` or `.parquet` file, or a folder of them; `labels` a file of labels, if they are not in the data. The result is that of `negscale audit fit`,
    `score` and `merge` on one machine. Run the same call again after a stop: models and finished shards are kept.

    Without a cluster that `ray.init` has connected to, the one of `RAY_ADDRESS` or of this machine is taken, or one is started here.

    out : a folder for models, scores and results that all machines see.
    shards : how many; by default as many as the folder has already, or four for each processor of the cluster, but not of less than 64 MiB.
    cpus : processors, and threads, of a task.
    retries : how often Ray tries a shard again whose process or machine died; -1 is for ever. Errors of the command are not tried again.
    seed : of everything random; the command's default is 1.
    fresh : start over in that folder.
    progress : a bar (True), none (False), a function of the share of shards that is done, or a bar where somebody watches (None).
    settings : of the command `negscale audit fit`, such as `sample=50_000`, `memory="1GiB"` or `label_column="kind"`.

    >>> import tempfile, pathlib, numpy as np, ray, negscale.ray
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> draw = np.random.default_rng(0)
    >>> classes = np.arange(300) % 3
    >>> np.save(folder / "x.npy", draw.normal(size=(300, 4)) + 4 * np.eye(4)[classes])
    >>> classes[7] = 0                                    # it was 1
    >>> np.save(folder / "y.npy", classes)
    >>> audit = negscale.ray.audit(folder / "x.npy", folder / "y.npy", out=folder / "A", shards=2)
    >>> int(audit.order[0]), str(audit.suggested[7])
    (7, '1')
    >>> ray.shutdown()
    """
    for what, path in {"data": data, "labels": labels}.items():
        if not isinstance(path, (str, PathLike)) and (what == "data" or path is not None):
            raise TypeError(f"{what} must be the path of a file that all machines see; for arrays there is negscale.audit")
    place = Path(os.path.abspath(fspath(out)))
    given = {"labels": labels, "seed": seed, "fresh": fresh, **settings}
    notes = _command(["fit", os.path.abspath(fspath(data)), "--out", fspath(place), *_words(given)])
    if not ray.is_initialized():
        ray.init()
    shards = _count(place, shards)
    # The command's errors are input errors. Whatever else ends it, such as a lack of memory, may not come again.
    task = ray.remote(num_cpus=cpus, max_retries=retries, retry_exceptions=[ChildProcessError])(_command)
    with _progress.told(progress, "negscale audit") as heard:
        if heard is not None:
            heard(0)
        waiting = [task.remote(["score", fspath(place), "--shard", f"{number}/{shards}", "--quiet"], cpus) for number in range(1, shards + 1)]
        try:
            while waiting:
                done, waiting = ray.wait(waiting)
                ray.get(done)
                if heard is not None:
                    heard(1 - len(waiting) / shards)
        except RayTaskError as error:
            # The exception of the task, without the traceback on that machine as its text.
            raise error.cause from None
        finally:
            for one in waiting:
                ray.cancel(one)
    notes += _command(["merge", fspath(place)])
    audited = Audit.open(place)
    audited.notes[:0] = notes
    return audited


def _command(words: Sequence[str], threads: int = 0) -> list[str]:
    """Runs a part of an audit as a process of its own, so that it ends with the task. Gives the notes that it prints."""
    environment = {**os.environ, "PYTHONSAFEPATH": "1", **({"RAYON_NUM_THREADS": str(threads)} if threads else {})}
    done = subprocess.run([sys.executable, "-m", "negscale", "audit", *words], env=environment, capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    if done.returncode == _ERROR:
        raise InputError(said.removeprefix("error: "))
    if done.returncode:
        raise ChildProcessError(f"negscale audit {words[0]} ended with code {done.returncode}: {said or 'it said nothing'}")
    return [line.removeprefix("note: ") for line in said.splitlines() if line.startswith("note: ")]


def _words(settings: dict[str, Any]) -> list[str]:
    """Settings as arguments of the command."""
    words: list[str] = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, PathLike) or (name in ("labels", "class_names") and value is not None):
            value = os.path.abspath(fspath(value))
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def _count(place: Path, asked: int | None) -> int:
    """How many shards there shall be. Those of the folder have to be of as many, as the merge takes no others."""
    there = {int(path.stem.rpartition("-")[2]) for path in (place / "shards").glob("shard-*-of-*.json")}
    if asked is None and there:
        return max(there)
    if asked is None:
        about = json.loads((place / "fit.json").read_text(encoding="utf-8"))
        worthwhile = 4 * about["data"]["rows"] * about["numbers_per_row"] // _LEAST
        return max(1, min(worthwhile, _SHARDS * int(ray.cluster_resources().get("CPU", 1))))
    if asked < 1:
        raise InputError(f"shards is {asked}: give a number from 1 on")
    if other := there - {asked}:
        raise InputError(f"{place} holds scores of {max(other)} shards: give shards={max(other)} or no number, or start over with fresh=True")
    return asked
