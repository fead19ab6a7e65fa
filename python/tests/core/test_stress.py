"""Many threads, forks, ten thousand calls, panics: what long programs do to the package."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import negscale
from negscale._negscale import Plugin, provoke_panic

# Enough work to wake the pool for a caller outside of it.
LARGE = (320, 512)


def batch(b, d, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(b, d)).astype(dtype), rng.integers(0, 10, b), rng.random(b).astype(dtype)


def test_many_threads_get_what_one_gets():
    plugin = Plugin("cifar10")
    batches = [batch(b, d, seed, dtype) for seed, (b, d, dtype) in enumerate([(16, 8, np.float32), (64, 32, np.float64), (*LARGE, np.float32), (33, 5, np.float64)] * 6)]
    wanted = [plugin.evaluate(*one) for one in batches]
    with ThreadPoolExecutor(16) as pool:
        for _ in range(5):
            for found, one in zip(pool.map(lambda one: plugin.evaluate(*one), batches), wanted, strict=True):
                assert found[0] == one[0]
                np.testing.assert_array_equal(found[2], one[2])


def test_threads_share_a_memory_without_losing_a_batch():
    alone, shared = Plugin("cifar10", balance=0.5), Plugin("cifar10", balance=0.5)
    one = batch(32, 16)
    for _ in range(200):
        alone.evaluate(*one)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: shared.evaluate(*one), range(200)))
    # The same batch two hundred times: whatever the order, the running means are the same.
    assert shared.state() == alone.state()


def test_other_threads_run_while_the_plug_in_computes():
    """Nobody is asked to hand over the lock within this test, so the counter moves only where the call lets go of it."""
    plugin, one = Plugin("cifar10"), batch(1024, 512)
    progress, over, moved = [0], threading.Event(), []

    def count():
        while not over.is_set():
            progress[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    sys.setswitchinterval(1000)
    try:
        thread.start()
        for _ in range(3):
            before = progress[0]
            plugin.evaluate(*one)
            moved.append(progress[0] - before)
    finally:
        over.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert any(moved), "the counter stood still during every call"


def in_child(queue):
    plugin = Plugin("cifar10")
    queue.put([plugin.evaluate(*batch(*LARGE))[0], negscale.noise(np.arange(5000) % 10, "sym:0.4").hash])


def in_grandchild(queue):
    Plugin("cifar10").evaluate(*batch(*LARGE))
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=in_child, args=(queue,))
    child.start()
    child.join(60)
    os._exit(child.exitcode if child.exitcode is not None else 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("target", [in_child, in_grandchild])
def test_a_forked_child_computes_too(target):
    wanted = [Plugin("cifar10").evaluate(*batch(*LARGE))[0], negscale.noise(np.arange(5000) % 10, "sym:0.4").hash]
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=target, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == wanted
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()
    assert Plugin("cifar10").evaluate(*batch(*LARGE))[0] == wanted[0]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MEMORY = """
import gc
import numpy as np
import negscale
from negscale._negscale import Plugin
from test_stress import batch, resident

plugin, stateful, one, wide = Plugin("cifar10"), Plugin("cifar10", centre="class-balanced"), batch(32, 64), batch(32, 64, dtype=np.float64)
bad = np.full((32, 64), np.nan, np.float32)
tree = negscale.Taxonomy("cifar10")
labels = np.arange(32) % 10

def calls(count):
    for at in range(count):
        plugin.evaluate(*one)
        stateful.evaluate(*wide)
        tree.distances()
        if at % 10 == 0:
            try:
                plugin.evaluate(bad, *one[1:])
            except ValueError:
                pass
            negscale.noise(labels, "sym:0.5", seed=at)
            negscale.similarity(one[0], labels, None, tree)
            negscale.Taxonomy("cifar100").permuted(at)

calls(1000)
gc.collect()
before = resident()
calls(10_000)
gc.collect()
print(resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here")
def test_ten_thousand_calls_need_no_more_memory_than_a_thousand():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=os.path.dirname(__file__))
    # One leaked gradient of 8 KiB a call would be 80 MiB.
    assert int(done.stdout) < 8 << 20


def test_arrays_outlive_the_plug_in_that_made_them():
    gradient = Plugin("cifar10").evaluate(*batch(64, 32))[2]
    kept = gradient.copy()
    gc.collect()
    for seed in range(20):
        Plugin("cifar10").evaluate(*batch(64, 32, seed))
    np.testing.assert_array_equal(gradient, kept)


def test_a_panic_becomes_an_exception_that_asks_to_be_reported(capfd):
    for _ in range(3):
        with pytest.raises(negscale.NegScaleError, match="internal error: on purpose. This is a fault of negscale, .* report it") as caught:
            provoke_panic("on purpose")
        assert isinstance(caught.value, Exception) and not isinstance(caught.value, ValueError)
    assert Plugin("cifar10").evaluate(*batch(16, 8))[0] > 0
    assert "on purpose" in capfd.readouterr().err
