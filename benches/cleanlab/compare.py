#!/usr/bin/env python3
"""Find wrong labels with cleanlab and with `negscale audit`, in turns, on the same embeddings; compare ranking, rate and time.

Usage (needs: pip install cleanlab torch scikit-learn numpy)
  python compare.py --data FOLDER --negscale target/release/negscale             all data sets, as a Markdown table
  python compare.py --data FOLDER --negscale ... --sets cifar10:aggre cifar100:fine
  python compare.py --data FOLDER --negscale ... --smoke                         one fold, 2,000 rows, one epoch: does it run?
  --seeds 1 2 3 repeats with other seeds; --json FILE keeps every figure; --threads N for both (default: all cores)

FOLDER holds embeddings/<set>_efflite0_pca128.npy (rows 0-49,999 train, 50,000-59,999 test) with <set>_labels.npy beside them,
cifar-n/cifar10n_labels.npy (columns clean, aggre, worse, random1-3) and cifar100n_labels.npy (clean fine, noisy fine, ...), and
label-errors/<set>_mturk.json.

cleanlab's route: 5-fold cross-validated probabilities of an MLP 128-256-128-C (ReLU; features scaled to mean 0 and deviation 1; Adam 1e-3,
batch 256, 6 epochs) in PyTorch, then get_label_quality_scores; `self` is its default (self-confidence), `margin` the normalised
margin. Its rate is that of estimate_joint. Its time is training and scoring, without imports.
Our route: `negscale audit x.npy --labels given.csv` with default settings; the order is that of audit.csv, the rate that of audit.json.
Its time is that of the whole process, reading and all files written included. Neither sees the truth.

Columns: AP = average precision of the order at finding wrong labels (sklearn); P@k = share of wrong ones among the first k (W = number of wrong ones);
rate error = estimated minus true share of wrong labels; s = seconds; cpu s = seconds
of all cores together, which is what to compare on a machine that others use too (there set OMP_WAIT_POLICY=PASSIVE: PyTorch's threads spin).

Sets: cifar10:{aggre,worse,random1,random2,random3}, cifar100:fine (labels by people; @N: N of the rows), cifar10:sym0.5 (half of the labels resampled, uniformly,
45 % wrong), cifar10:asym0.4 (40 % of the labels of five classes named as another one), cifar10:errors and cifar100:errors: the test rows with their published labels, audited by themselves (10,000 rows).
People judged only some of those labels (candidates chosen by another network): five people each, and a label counts as wrong if fewer than three
chose it alone (54 of 275 and 585 of 2,235). `judged`: the order among judged candidates alone. `all`: wrong ones among all 10,000 rows, whoever was not judged taken to be
right, which favours nobody but makes AP a lower bound. No rate error there: the true rate is not known.
"""
import argparse
import csv
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from cleanlab.count import estimate_joint
from cleanlab.rank import get_label_quality_scores
from sklearn.metrics import average_precision_score

SETS = [
    "cifar10:aggre", "cifar10:random1", "cifar10:random2", "cifar10:random3", "cifar10:worse", "cifar100:fine", "cifar100:fine@5000",
    "cifar10:sym0.5", "cifar10:asym0.4", "cifar10:errors", "cifar100:errors",
]
CIFAR10N = ["clean", "aggre", "worse", "random1", "random2", "random3"]


class Material:
    """Features, given labels, which are wrong, and which of these judgements count."""

    def __init__(self, folder, name):
        family, kind = name.split(":")
        kind, _, rows = kind.partition("@")
        features = np.load(folder / f"embeddings/{family}_efflite0_pca128.npy").astype(np.float32)
        truth = np.load(folder / f"embeddings/{family}_labels.npy").astype(np.int64)
        self.name, self.judged = name, None
        if kind == "errors":
            self.x, self.given = features[50000:], truth[50000:]
            votes = json.loads((folder / f"label-errors/{family}_mturk.json").read_text())
            self.wrong = np.zeros(len(self.given), bool)
            self.judged = np.zeros(len(self.given), bool)
            for row in votes:
                at = row["id"]
                if self.given[at] != row["given_original_label"]:
                    raise SystemExit(f"{name}: label {at} is not the one that was judged")
                self.judged[at] = True
                self.wrong[at] = row["mturk"]["given"] < 3
            return
        self.x, truth = features[:50000], truth[:50000]
        if kind == "fine":
            self.given = np.load(folder / "cifar-n/cifar100n_labels.npy")[:, 1].astype(np.int64)
        elif kind in CIFAR10N:
            self.given = np.load(folder / "cifar-n/cifar10n_labels.npy")[:, CIFAR10N.index(kind)].astype(np.int64)
        elif kind.startswith("sym"):
            chance = np.random.default_rng(0)
            chosen = chance.permutation(len(truth))[: int(float(kind[3:]) * len(truth))]
            self.given = truth.copy()
            self.given[chosen] = chance.integers(0, truth.max() + 1, len(chosen))
        elif kind == "asym0.4":
            chance = np.random.default_rng(0)
            chosen = chance.permutation(len(truth))[: int(0.4 * len(truth))]
            flips = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
            self.given = truth.copy()
            self.given[chosen] = [flips.get(label, label) for label in truth[chosen]]
        else:
            raise SystemExit(f"{name}: no such labels; known: {', '.join(SETS)}")
        self.wrong = self.given != truth
        if rows:
            few = np.random.default_rng(7).permutation(len(truth))[: int(rows)]
            self.x, self.given, self.wrong = self.x[few], self.given[few], self.wrong[few]

    def cut(self, rows):
        for field in ("x", "given", "wrong", "judged"):
            values = getattr(self, field)
            setattr(self, field, None if values is None else values[:rows])


def cross_validate(x, given, folds, epochs, seed):
    """Out-of-sample probabilities."""
    classes = int(given.max()) + 1
    x = torch.tensor((x - x.mean(0)) / (x.std(0) + 1e-8))
    labels = torch.tensor(given)
    torch.manual_seed(seed)
    fold = np.random.default_rng(seed).permutation(len(given)) % max(folds, 2)
    probabilities = np.full((len(given), classes), 1 / classes)
    for held_out in range(folds):
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 256), torch.nn.ReLU(),
            torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, classes),
        )
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)
        inside = torch.tensor(np.flatnonzero(fold != held_out))
        for _ in range(epochs):
            order = inside[torch.randperm(len(inside))]
            for batch in order.split(256):
                loss = torch.nn.functional.cross_entropy(net(x[batch]), labels[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        outside = np.flatnonzero(fold == held_out)
        with torch.no_grad():
            probabilities[outside] = torch.softmax(net(x[torch.tensor(outside)]), 1).numpy()
    return probabilities


def by_cleanlab(material, arguments, seed):
    """Suspicion of every label by each score, the rate, and the time."""
    begun, busy = time.perf_counter(), time.process_time()
    folds, epochs = (1, 1) if arguments.smoke else (5, 6)
    probabilities = cross_validate(material.x, material.given, folds, epochs, seed)
    scores = {
        "cleanlab self": -get_label_quality_scores(material.given, probabilities, method="self_confidence"),
        "cleanlab margin": -get_label_quality_scores(material.given, probabilities, method="normalized_margin"),
    }
    joint = estimate_joint(material.given, probabilities)
    return scores, 1 - np.trace(joint), (time.perf_counter() - begun, time.process_time() - busy)


def children():
    """Processor time of all processes started and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_negscale(material, arguments, seed):
    """The same from the list that `negscale audit` writes."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "x.npy", material.x)
        with open(folder / "given.csv", "w", newline="") as file:
            csv.writer(file).writerows([["label"], *[[label] for label in material.given]])
        command = [
            arguments.negscale, "audit", str(folder / "x.npy"), "--labels", str(folder / "given.csv"), "--quiet",
            "--seed", str(seed), "--set", f"threads={arguments.threads}", "--out", str(folder / "out"), *arguments.more,
        ]
        if arguments.smoke:
            command += ["--epochs", "2"]
        begun, busy = time.perf_counter(), children()
        subprocess.run(command, check=True)
        seconds = (time.perf_counter() - begun, children() - busy)
        summary = json.loads((folder / "out" / "audit.json").read_text())
        suspicion = np.zeros(len(material.given))
        with open(folder / "out" / "audit.csv", newline="") as file:
            for place, row in enumerate(csv.DictReader(file)):
                suspicion[int(row["index"])] = -place
    noise = summary["noise"]
    return {"negscale audit": suspicion}, noise["rate"], seconds, noise["interval_95"]


def judge(suspicion, wrong):
    """Average precision, and precision at 100, 1000 and the number of wrong ones."""
    ranked = wrong[np.argsort(-suspicion, kind="stable")]
    count = int(wrong.sum())
    at = {k: float(ranked[:k].mean()) if k <= len(ranked) else None for k in (100, 1000)}
    return {
        "ap": float(average_precision_score(wrong, suspicion)), "p100": at[100], "p1000": at[1000],
        "pw": float(ranked[:count].mean()),
    }


def rows_of(material, arguments, seed):
    parts = [("", np.ones(len(material.given), bool))]
    if material.judged is not None:
        parts = [(" judged", material.judged), (" all", np.ones(len(material.given), bool))]
    found = [by_negscale(material, arguments, seed), (*by_cleanlab(material, arguments, seed), None)]
    for scores, rate, seconds, interval in found:
        for route, suspicion in scores.items():
            for part, counts in parts:
                error = None if part else rate - float(material.wrong.mean())
                yield {
                    "set": material.name + part, "route": route, "seed": seed, "wrong": int(material.wrong[counts].sum()),
                    "of": int(counts.sum()), **judge(suspicion[counts], material.wrong[counts]),
                    "rate_error": error, "interval": interval, "seconds": seconds[0], "cpu_seconds": seconds[1],
                }


def cell(value, form):
    return "-" if value is None else format(value, form)


def main():
    parser = argparse.ArgumentParser(description="cleanlab and negscale audit, in turns (see the head of this file)")
    parser.add_argument("--data", type=Path, required=True, help="folder with embeddings, cifar-n and label-errors")
    parser.add_argument("--negscale", required=True, help="the program")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--smoke", action="store_true", help="one fold, 2,000 rows, one epoch")
    parser.add_argument("more", nargs="*", help="after --, arguments for negscale audit")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    all_rows = []
    print("| labels | wrong | route | AP | P@100 | P@1000 | P@W | rate error | s | cpu s |\n|---|---|---|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        for seed in arguments.seeds:
            material = Material(arguments.data, name)
            if arguments.smoke:
                material.cut(2000)
            for row in rows_of(material, arguments, seed):
                all_rows.append(row)
                error = cell(row["rate_error"], "+.3f")
                print(
                    f"| {row['set']} | {row['wrong']} of {row['of']} | {row['route']} | {row['ap']:.3f} | {cell(row['p100'], '.2f')} "
                    f"| {cell(row['p1000'], '.3f')} | {row['pw']:.3f} | {error} | {row['seconds']:.1f} | {row['cpu_seconds']:.1f} |", flush=True,
                )
    if arguments.json:
        arguments.json.write_text(json.dumps(all_rows, indent=1))


if __name__ == "__main__":
    main()
