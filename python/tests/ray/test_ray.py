"""Audits on a Ray cluster: what one machine finds, also if a node dies, and nothing is done twice."""

import doctest
import inspect
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import negscale

pytest.importorskip("ray", reason="Ray is not installed")
import negscale.ray

SAMPLE = {"sample": 4000, "seed": 5}
TABLES = ["audit.csv", "corrected.csv", "top.csv"]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="session")
def alone(files, tmp_path_factory):
    """The same audit by the command, all on one machine and in one shard."""
    out = tmp_path_factory.mktemp("alone") / "A"
    for words in (
        ["fit", files.rows, "--labels", files.labels, "--sample", "4000", "--seed", "5", "--out", out],
        ["score", out, "--shard", "1/1"],
        ["merge", out],
    ):
        done = subprocess.run([sys.executable, "-m", "negscale", "audit", *map(str, words), "--quiet"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return out


def below(process):
    """Processes that a process has started, and those that they have."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def shard_of(process):
    """The shard that a process scores, such as `shard-3-of-14`."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    except OSError:
        return None
    is_score = words[2:5] == ["negscale", "audit", "score"]
    return "shard-" + words[words.index("--shard") + 1].replace("/", "-of-") if is_score else None


class Killer(threading.Thread):
    """Waits until some shards are finished and a node is in the middle of another one, and kills all of that node."""

    def __init__(self, raylet, shards):
        super().__init__(daemon=True)
        self.raylet, self.shards, self.lost, self.finished, self.over = raylet, shards, None, None, threading.Event()

    def run(self):
        while self.lost is None and not self.over.wait(0.002):
            if len(list(self.shards.glob("*.json"))) < 2:
                continue
            for process in below(self.raylet):
                if (shard := shard_of(process)) and self.stops_before_it_is_done(process, shard):
                    self.finished = {path.stem for path in self.shards.glob("*.json")}
                    for one in [self.raylet, *below(self.raylet)]:
                        os.kill(one, signal.SIGKILL)
                    self.lost = shard
                    break

    def stops_before_it_is_done(self, process, shard):
        os.kill(process, signal.SIGSTOP)
        if not (self.shards / f"{shard}.json").exists():
            return True
        os.kill(process, signal.SIGCONT)
        return False


def test_a_node_that_dies_changes_nothing_and_a_second_call_scores_nothing(cluster, files, alone, tmp_path):
    out, (node,) = tmp_path / "A", cluster.worker_nodes
    (raylet,) = node.all_processes["raylet"]
    killer = Killer(raylet.process.pid, out / "shards")
    killer.start()
    heard = []
    audit = negscale.ray.audit(files.rows, files.labels, out=out, shards=14, progress=heard.append, **SAMPLE)
    killer.over.set()
    killer.join()
    assert killer.lost, "no shard was scored on the second node"
    assert raylet.process.wait() == -signal.SIGKILL
    assert killer.lost not in killer.finished and 2 <= len(killer.finished) < 14
    assert heard == sorted(heard) and heard[0] == 0 and heard[-1] == 1
    for table in TABLES:
        assert (out / table).read_bytes() == (alone / table).read_bytes(), table
    assert audit.folder == out and len(audit) == 56_000 and audit.results["shards"] == 14
    assert abs(audit.rate - 0.1) < 0.02 and str(audit.flags.sum()) in audit.summary

    made = {path.name: path.stat().st_mtime_ns for path in (out / "shards").iterdir()}
    model = (out / "audit.safetensors").stat().st_mtime_ns
    again = negscale.ray.audit(files.rows, files.labels, out=out, **SAMPLE)
    assert {path.name: path.stat().st_mtime_ns for path in (out / "shards").iterdir()} == made and len(made) == 28
    assert (out / "audit.safetensors").stat().st_mtime_ns == model
    assert again.scores.tobytes() == audit.scores.tobytes()
    with pytest.raises(negscale.InputError, match="holds scores of 14 shards: give shards=14"):
        negscale.ray.audit(files.rows, files.labels, out=out, shards=3, **SAMPLE)


def test_what_the_command_says_is_the_error_and_is_not_tried_again(cluster, files, tmp_path):
    out = tmp_path / "A"
    with pytest.raises(negscale.InputError, match="unexpected argument '--sampel'"):
        negscale.ray.audit(files.rows, files.labels, out=out, sampel=4000)
    with pytest.raises(negscale.InputError, match="missing.npy"):
        negscale.ray.audit(files.rows, tmp_path / "missing.npy", out=out)
    # Models can be fitted, but no task can write what it scores: with retries for ever, the call would not end.
    out.mkdir()
    (out / ".negscale-folder").touch()
    (out / "shards").write_text("somebody else's")
    with pytest.raises(negscale.InputError) as raised:
        negscale.ray.audit(files.rows, files.labels, out=out, shards=3, retries=-1, **SAMPLE)
    assert str(raised.value).startswith(f"cannot create {out / 'shards'}") and "Traceback" not in str(raised.value)
    assert type(raised.value) is negscale.InputError


def test_arrays_are_refused():
    with pytest.raises(TypeError, match="for arrays there is negscale.audit"):
        negscale.ray.audit(np.zeros((3, 2)), out="A")
    with pytest.raises(TypeError, match="labels must be the path"):
        negscale.ray.audit("x.npy", np.zeros(3), out="A")


@pytest.mark.usefixtures("environment")
def test_its_example_does_what_it_shows_without_a_cluster():
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(negscale.ray.audit), {}, "audit", None, 0)
    said = []
    runner = doctest.DocTestRunner()
    runner.run(example, out=said.append)
    assert runner.tries and not runner.failures, "".join(said)


def test_without_ray_it_says_what_to_install():
    program = "import sys; sys.modules['ray'] = None\nimport negscale.ray"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "ImportError: negscale.ray needs Ray 2.30 or later: pip install 'negscale[ray]'" in done.stderr
