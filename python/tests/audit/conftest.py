"""Data for audits: clouds of points, some with labels of another cloud."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest


class Clouds(NamedTuple):
    features: np.ndarray
    labels: np.ndarray
    truth: np.ndarray

    @property
    def wrong(self):
        return self.labels != self.truth


def _make(rows=600, classes=3, dim=8, share=0.1, distance=4.0, seed=0):
    draw = np.random.default_rng(seed)
    truth = draw.permutation(np.arange(rows) % classes)
    features = draw.normal(size=(rows, dim)) + distance * np.eye(max(dim, classes))[truth, :dim]
    labels = truth.copy()
    wrong = draw.permutation(rows)[: round(share * rows)]
    labels[wrong] = (truth[wrong] + draw.integers(1, max(classes, 2), len(wrong))) % classes
    return Clouds(features.astype(np.float32), labels, truth)


@pytest.fixture(scope="session")
def make_clouds():
    return _make


@pytest.fixture(scope="session")
def clouds():
    return _make()


@pytest.fixture
def command():
    """Runs `negscale` as a process of its own."""

    def run(*arguments):
        done = subprocess.run([sys.executable, "-m", "negscale", *map(str, arguments)], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done

    return run
