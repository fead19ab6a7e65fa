#!/usr/bin/env python3
"""Score the shards of an audit as bare processes and as tasks of Ray, in turns, and print a Markdown table of rows per second.

  processes  `negscale audit score A --shard K/N`, as many at a time as there are workers, started by threads of this script
  Ray        `negscale.ray.audit` of the same folder, on a cluster started here with as many processors as there are workers

Usage (needs: pip install "negscale[ray]")
  python throughput.py                                    400,000 rows of 128 numbers, 10 classes, 8 shards, 1 and 2 workers
  python throughput.py --rows 3200000 --folder /scratch

Every worker has one thread, also of numpy, which Ray sees to by itself. Timed is the scoring of all shards: models are fitted once before,
and what was scored is removed before each turn. For Ray it begins when the tasks are handed over to a cluster that is there already; the
tasks start its workers. The forms take turns, so that other work on the machine meets all of them; the ratio is the median over rounds
of Ray's rows per second by those of the processes in the same round. On a machine that others use, what the processes score in a second of
processor time, and not of the clock, tells whether two of them disturb each other. Rows are clouds of normal numbers about a corner for
each class, a tenth of the labels is wrong.
"""

import argparse
import os
import resource
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

os.environ.update({"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
# Nothing to the makers of Ray, and no key in the home folder.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
import ray

import negscale.ray

SEED = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where rows and results are put for as long as it takes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as there:
        measure(Path(there), args)


def measure(folder, args):
    make(folder, args)
    out = folder / "A"
    command("fit", folder / "x.npy", "--labels", folder / "y.npy", "--seed", SEED, "--out", out)
    forms = [(form, workers) for workers in args.workers for form in (of_processes, of_ray)]
    speeds, by_processor = {form: [] for form in forms}, {workers: [] for workers in args.workers}
    for number in range(args.rounds):
        # Nobody is always the first.
        for form, workers in forms if number % 2 == 0 else forms[::-1]:
            shutil.rmtree(out / "shards", ignore_errors=True)
            before = spent()
            speeds[form, workers].append(args.rows / form(folder, workers, args.shards))
            if form is of_processes:
                by_processor[workers].append(args.rows / (spent() - before))
    print(f"{args.rows:,} rows of {args.dim} numbers, {args.shards} shards, medians of {args.rounds} rounds: rows per second\n")
    print("| workers | processes, a processor second | processes | Ray | Ray by processes |\n|---:|---:|---:|---:|---:|")
    for workers in args.workers:
        bare, by_ray = speeds[of_processes, workers], speeds[of_ray, workers]
        ratio = statistics.median(ours / theirs for ours, theirs in zip(by_ray, bare, strict=True))
        print(f"| {workers} | {told(by_processor[workers])} | {told(bare)} | {told(by_ray)} | {ratio:.2f} |")


def spent():
    """Processor seconds of processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def told(speeds):
    """The median, and from where to where they are."""
    return f"{statistics.median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f})"


def make(folder, args):
    """Rows and labels as files, a part at a time."""
    draw = np.random.default_rng(SEED)
    truth = draw.integers(0, args.classes, args.rows)
    centres = draw.normal(size=(args.classes, args.dim)).astype(np.float32)
    rows = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(args.rows, args.dim))
    for start in range(0, args.rows, 100_000):
        part = slice(start, start + 100_000)
        rows[part] = centres[truth[part]] + draw.standard_normal((len(truth[part]), args.dim), dtype=np.float32)
    rows.flush()
    wrong = draw.random(args.rows) < 0.1
    np.save(folder / "y.npy", np.where(wrong, (truth + draw.integers(1, args.classes, args.rows)) % args.classes, truth))


def command(*words):
    subprocess.run([sys.executable, "-m", "negscale", "audit", *map(str, words), "--quiet"], check=True)


def of_processes(folder, workers, shards):
    """Seconds that bare processes take."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: command("score", folder / "A", "--shard", f"{number}/{shards}"), range(1, shards + 1)))
    return time.perf_counter() - begin


def of_ray(folder, workers, shards):
    """Seconds from the first task to the end of the last one."""
    times = {}
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    try:
        heard = lambda share: times.setdefault(share, time.perf_counter())
        negscale.ray.audit(folder / "x.npy", folder / "y.npy", out=folder / "A", shards=shards, seed=SEED, progress=heard)
    finally:
        ray.shutdown()
    return times[1] - times[0]


if __name__ == "__main__":
    main()
