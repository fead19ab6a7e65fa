#!/usr/bin/env python3
"""Writes selection.json beside this file: neighbour votes and FINE's verdicts by NumPy and scikit-learn, as reference for the tests.

Singular vectors by SVD, neighbours by sorting all cosines, mixtures by scikit-learn from the start that gmm.py explains.
Seeds whose result hangs on the last digits of a float (neighbours within 1e-5, a radius within 1e-7) are passed over.
Needs: pip install numpy scikit-learn
"""
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

warnings.filterwarnings("ignore", category=ConvergenceWarning)
SAMPLES, DIM, CLASSES, K, CEILING = 90, 9, 4, 7, 30
RADII = np.arange(99, -101, -1) / 100


def vote(cosines, labels, sizes):
    """Balanced votes of the nearest `sizes[i]` samples."""
    shares = np.bincount(labels, minlength=CLASSES) / len(labels)
    order = np.argsort(-cosines, axis=1, kind="stable")
    votes = []
    for near, k in zip(order, sizes):
        vote = np.bincount(labels[near[:k]], minlength=CLASSES) / k
        vote = np.divide(vote, shares, out=np.zeros(CLASSES), where=shares > 0)
        votes.append((vote / vote.sum()).tolist())
    return votes


def adapt(row, fewest):
    for radius in RADII:
        if (count := int((row > radius).sum())) >= fewest:
            return min(max(count, 5), CEILING)
    return CEILING


def is_lower(x):
    low, high = x.min(), x.max()
    while True:
        first = np.abs(x - low) <= np.abs(x - high)
        if (low, high) == (new := (x[first].mean(), x[~first].mean())):
            return first
        low, high = new


def posterior(x):
    """Of the component of larger mean."""
    first = is_lower(x)
    shares = np.stack([first, ~first], 1).astype(float)
    count = shares.sum(0) + 10 * np.finfo(float).eps
    means = shares.T @ x / count
    variances = (shares * (x[:, None] - means) ** 2).sum(0) / count + 1e-6
    model = GaussianMixture(
        2, max_iter=10, tol=1e-6, reg_covar=1e-6, weights_init=count / len(x), means_init=means[:, None],
        precisions_init=1 / variances[:, None, None], init_params="random", random_state=0).fit(x[:, None])
    return model.predict_proba(x[:, None])[:, model.means_.ravel().argmax()]


def fine(z, labels):
    aligned, clean = np.zeros(len(z)), np.ones(len(z))
    for c in range(CLASSES):
        mine = labels == c
        if mine.any():
            aligned[mine] = np.abs(z[mine] @ np.linalg.svd(z[mine])[2][0])
        if mine.sum() >= 5:
            clean[mine] = posterior(aligned[mine])
    return aligned, clean


def case(seed):
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, CLASSES - 1, SAMPLES)
    centres = draw.normal(size=(CLASSES, DIM))
    features = np.round(centres[truth] + draw.normal(size=(SAMPLES, DIM)) * draw.uniform(0.3, 0.9, (SAMPLES, 1)), 3)
    labels = np.where(draw.random(SAMPLES) < 0.3, draw.integers(0, CLASSES - 1, SAMPLES), truth)
    labels[:3] = CLASSES - 1  # a class too small to be judged
    z = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = z @ z.T
    fewest = draw.choice([5, 8, 13, 20], SAMPLES)
    sizes = [adapt(row, k) for row, k in zip(cosines, fewest)]
    ordered = -np.sort(-cosines, axis=1)
    gaps = [ordered[i, k - 1] - ordered[i, k] for i in range(SAMPLES) for k in (K, sizes[i])]
    off_radius = np.abs(cosines[~np.eye(SAMPLES, dtype=bool)][:, None] - RADII).min()
    if min(gaps) < 1e-5 or off_radius < 1e-7:
        return None
    fixed = vote(cosines, labels, [K] * SAMPLES)
    found = NearestNeighbors(n_neighbors=K, metric="cosine", algorithm="brute").fit(z).kneighbors(z)[1]
    assert all(set(a) == set(b[:K]) for a, b in zip(found, np.argsort(-cosines, axis=1)))
    aligned, clean = fine(z, labels)
    return {
        "seed": seed, "dim": DIM, "classes": CLASSES, "k": K, "ceiling": CEILING, "features": features.ravel().tolist(),
        "labels": labels.tolist(), "fewest": fewest.tolist(), "sizes": sizes, "fixed": fixed,
        "adaptive": vote(cosines, labels, sizes), "alignment": aligned.tolist(), "posterior": clean.tolist(),
    }


def shorter(value):
    if isinstance(value, list):
        return [shorter(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def main():
    cases = []
    for seed in range(1000):
        if len(cases) < 3 and (found := case(seed)):
            cases.append({key: shorter(value) for key, value in found.items()})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
    print([(case["seed"], sorted(set(case["sizes"]))) for case in cases])


main()
