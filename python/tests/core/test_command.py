"""The command that comes with the package: words, exit codes, signals and pipes as those of the binary."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import negscale

SCRIPT = Path(sysconfig.get_path("scripts")) / "negscale"


def run(*words, **options):
    options = {"capture_output": True, "text": True} | options
    return subprocess.run([str(SCRIPT), *map(str, words)], **options)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    rows = [f"{5 * y + x:.3f},{z:.3f},{'no' if y ^ (i < 10) else 'yes'}" for i, (y, x, z) in enumerate(zip(labels, *rng.normal(size=(2, 200)), strict=True))]
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_text("\n".join(["a,b,label", *rows]))
    return path


def test_it_says_its_version_and_helps():
    assert run("--version").stdout == f"negscale {negscale.__version__}\n"
    done = run("--help")
    assert done.returncode == 0 and "Usage: negscale <COMMAND>" in done.stdout and not done.stderr


def test_python_finds_it_as_a_module():
    done = subprocess.run([sys.executable, "-m", "negscale", "tree"], capture_output=True, text=True, check=True)
    assert done.stdout == run("tree").stdout and "cifar10" in done.stdout


def test_exit_codes_are_those_of_the_binary(table):
    assert run("tree", "cifar10").returncode == 0
    wrong = run("tree", "cifra10")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: no built-in class tree is called `cifra10` (did you mean `cifar10`?)")
    assert run("tre").returncode == 2 and "similar subcommand" in run("tre").stderr
    check = run("audit", table, "--check", "0.001", "--quiet", "--out", table.parent / "audit")
    assert check.returncode == 1 and "check failed: an estimated" in check.stderr


def test_output_without_a_last_line_end_is_not_lost(tmp_path):
    script = run("completions", "bash")
    assert script.returncode == 0 and "complete -F _negscale" in script.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_reader_that_has_seen_enough_is_no_error():
    line = f"set -o pipefail; '{SCRIPT}' config explain | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") == 1


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_stop_a_run_that_resumes(table, tmp_path, sent, code):
    words = ["train", "--data", table, "--set", "host=cross-entropy", "--set", "baseline=none", "--json", "--out", tmp_path / "run"]
    command = [str(SCRIPT), *map(str, words), "--epochs", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        first = json.loads(child.stdout.readline())
        child.send_signal(sent)
        said = child.communicate(timeout=60)[1]
    assert child.returncode == code and "run the same command again to resume" in said, said
    assert "Traceback" not in said and first["epoch"] == 1
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        again = json.loads(child.stdout.readline())
        child.send_signal(sent)
        child.communicate(timeout=60)
    assert again["epoch"] > 1 and child.returncode == code


def test_ctrl_c_ends_a_verb_that_has_nothing_to_save(tmp_path):
    os.mkfifo(tmp_path / "never")
    with subprocess.Popen([str(SCRIPT), "tree", str(tmp_path / "never")]) as child:
        # It opens the pipe and waits for a writer that does not write.
        writer = os.open(tmp_path / "never", os.O_WRONLY)
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
        os.close(writer)
    assert child.returncode == -signal.SIGINT


def test_a_sweep_starts_its_runs_by_itself(table, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'data = "{table}"\nepochs = 1\nhost = "cross-entropy"\nbaseline = "none"\n[matrix]\nseed = [1, 2]\n')
    # A folder of the package's name must not be taken for it.
    (tmp_path / "negscale").mkdir()
    (tmp_path / "negscale/__init__.py").write_text("raise RuntimeError('not this one')")
    done = run("sweep", "run", recipe, "--out", tmp_path / "out", "--jobs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs are done, 0 failed" in done.stderr
    assert len(list((tmp_path / "out").rglob("results.json"))) == 2
