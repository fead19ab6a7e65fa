#!/usr/bin/env python3
"""Writes gmm.json beside this file: mixtures of two Gaussians as scikit-learn fits them, as reference for the tests.

Every mixture starts from the hard responsibilities of a 2-means run by Lloyd's rule from the smallest and the largest value.
The library takes no responsibilities, but weights, means and precisions: those of the M-step after that start are handed over,
which is what it would compute itself. Needs: pip install numpy scikit-learn
"""
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

warnings.filterwarnings("ignore", category=ConvergenceWarning)
SETTINGS = {"losses": (10, 1e-2, 5e-4), "long tail": (10, 1e-2, 1e-4), "fine": (10, 1e-6, 1e-6)}


def is_lower(x):
    """Lloyd's rule from min and max, ties to the lower."""
    low, high = x.min(), x.max()
    while True:
        first = np.abs(x - low) <= np.abs(x - high)
        if (low, high) == (new := (x[first].mean(), x[~first].mean())):
            return first
        low, high = new


def fit(x, max_iter, tol, reg):
    first = is_lower(x)
    shares = np.stack([first, ~first], 1).astype(float)
    count = shares.sum(0) + 10 * np.finfo(float).eps
    means = shares.T @ x / count
    variances = (shares * (x[:, None] - means) ** 2).sum(0) / count + reg
    model = GaussianMixture(
        2, max_iter=max_iter, tol=tol, reg_covar=reg, weights_init=count / len(x), means_init=means[:, None],
        precisions_init=1 / variances[:, None, None], init_params="random", random_state=0)
    model.fit(x[:, None])
    return {
        "values": x.tolist(), "max_iter": max_iter, "tol": tol, "reg": reg, "first": first.astype(int).tolist(),
        "iterations": model.n_iter_, "weights": model.weights_.tolist(), "means": model.means_.ravel().tolist(),
        "variances": model.covariances_.ravel().tolist(), "bound": float(model.lower_bound_),
        "posteriors": model.predict_proba(x[:, None])[:, 0].tolist(),
    }


def main():
    draw = np.random.default_rng(5)
    cases = []
    for number in range(24):
        size = int(draw.integers(20, 61))
        share = draw.uniform(0.15, 0.85)
        losses = np.where(
            draw.random(size) < share, draw.gamma(draw.uniform(0.5, 2), 0.2, size),
            draw.normal(draw.uniform(0.8, 4), draw.uniform(0.2, 1), size))
        x = (losses - losses.min()) / (losses.max() - losses.min())
        name = list(SETTINGS)[number % 3]
        cases.append({"name": f"{name}, {size} values"} | fit(x, *SETTINGS[name]))
    golden = fit(np.arange(20) ** 2 / 361, *SETTINGS["losses"])
    print(golden["iterations"], golden["weights"], golden["means"], golden["variances"])
    lines = ",\n".join(json.dumps(case) for case in cases)
    Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")


main()
