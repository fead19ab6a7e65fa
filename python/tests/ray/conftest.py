"""A Ray cluster of two nodes with one processor each, on this machine, and rows to audit."""

import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest


class Files(NamedTuple):
    rows: Path
    labels: Path


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Clouds of points as files, with a tenth of the labels wrong. Fourteen blocks, so that shards can be as many."""
    draw = np.random.default_rng(0)
    truth = draw.integers(0, 4, 56_000)
    features = draw.normal(size=(len(truth), 256)).astype(np.float32)
    features[:, :4] += 4 * np.eye(4, dtype=np.float32)[truth]
    labels = np.where(draw.random(len(truth)) < 0.1, (truth + 1) % 4, truth)
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "x.npy", features.astype(np.float16))
    np.save(folder / "y.npy", labels)
    return Files(folder / "x.npy", folder / "y.npy")


@pytest.fixture
def environment(monkeypatch):
    """Ray without a word to its makers, and with a key that it need not leave in the home folder. In the end nothing started with it runs."""
    key = secrets.token_hex(32)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_TOKEN", key)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    end = time.monotonic() + 60
    while (left := with_key(key)) and time.monotonic() < end:
        time.sleep(0.1)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left, left


def with_key(key):
    """Processes that have it in their environment, and what they are."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if key.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


@pytest.fixture
def cluster(environment):
    """Two nodes, each with a worker that waits for tasks, and this process connected to the first."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        there.add_node(num_cpus=1)
        ray.init(address=there.address, log_to_driver=False)
        warm = ray.remote(num_cpus=1)(lambda: None)
        ray.get([warm.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote() for node in ray.nodes()])
        yield there
    finally:
        ray.shutdown()
        there.shutdown()
