"""Training runs: what they leave, how they stop, and that they go on to the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import negscale

SETTINGS = {
    "epochs": 3, "batch": 32, "host": "cross-entropy", "plugin": "negscale", "hidden": [24], "baseline": "none",
    "label_column": "label", "truth_column": "truth",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Four clouds, a third of their labels wrong."""
    folder = tmp_path_factory.mktemp("clouds")
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 4
    rows = np.array([[2, 1, 0], [2, -1, 0], [-2, 1, 0], [-2, -1, 0]])[truth] + rng.normal(size=(600, 3))
    labels = np.where(rng.random(600) < 0.3, rng.integers(0, 4, 600), truth)
    lines = [",".join([*(f"{x:.4f}" for x in row), f"c{label}", f"c{right}"]) for row, label, right in zip(rows, labels, truth, strict=True)]
    (folder / "clouds.csv").write_text("\n".join(["a,b,c,label,truth", *lines]))
    return folder / "clouds.csv"


def left(folder: Path) -> list[object]:
    """What a run leaves that must not depend on when it was stopped."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    timeless = [{name: value for name, value in record.items() if name != "seconds"} for record in records]
    return [timeless, *((folder / name).read_bytes() for name in ("model.safetensors", "audit.csv", "tree.tsv"))]


def test_a_run_is_what_the_command_makes(data, tmp_path):
    heard = []
    run = negscale.train(SETTINGS, data=data, out=tmp_path / "here", on_epoch=heard.append)
    words = [f"--set={name}={json.dumps(value)}" for name, value in SETTINGS.items()]
    command = [sys.executable, "-m", "negscale", "train", "--quiet", "--data", data, "--out", tmp_path / "there", *words]
    subprocess.run(list(map(str, command)), check=True)
    assert left(tmp_path / "here") == left(tmp_path / "there")
    assert [record["epoch"] for record in heard] == [1, 2, 3] and heard == run.records
    assert run.folder == tmp_path / "here" and run.summary and str(run) == run.summary
    assert run.results == json.loads((tmp_path / "here/results.json").read_text())


def test_metrics_are_a_table(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    run = negscale.train(SETTINGS, data=data, out=tmp_path / "run", progress=False)
    metrics = run.metrics
    assert isinstance(metrics, pandas.DataFrame) and metrics["epoch"].tolist() == [1, 2, 3]
    assert {"losses.total", "separation_auc", "seconds"} <= set(metrics.columns)
    assert negscale.Run(run.folder).metrics.equals(metrics)


def test_without_pandas_metrics_are_a_list(data, tmp_path, monkeypatch):
    run = negscale.train(SETTINGS, data=data, out=tmp_path / "run")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert [row["epoch"] for row in run.metrics] == [1, 2, 3] and "losses.total" in run.metrics[0]


def test_a_recipe_is_a_path_a_text_or_a_dict_and_settings_go_over_it(data, tmp_path):
    text = f'data = "{data}"\nepochs = 9\nhost = "cross-entropy"\nplugin = "negscale"\nhidden = [24]\nbatch = 32\nbaseline = "none"\n[negscale]\nlambda = 0.25\n'
    (tmp_path / "recipe.toml").write_text(text)
    tables = {
        "data": data, "epochs": 9, "host": "cross-entropy", "plugin": "negscale", "hidden": (24,), "batch": 32, "baseline": "none",
        "negscale": {"lam": 0.25},
    }
    more = {"epochs": np.int64(2), "label_column": "label", "truth_column": "truth", "negscale.mu": 0.5}
    runs = [negscale.train(recipe, out=tmp_path / str(at), **more) for at, recipe in enumerate((tmp_path / "recipe.toml", text, tables))]
    assert left(runs[0].folder) == left(runs[1].folder) == left(runs[2].folder)
    settings = (runs[0].folder / "settings.toml").read_text()
    assert "lambda = 0.25" in settings and "mu = 0.5" in settings and "epochs = 2" in settings


def test_a_finished_run_is_only_read_unless_it_is_to_start_over(data, tmp_path):
    heard = []
    for resume in (True, True, False):
        negscale.train(SETTINGS, data=data, out=tmp_path / "run", resume=resume, on_epoch=heard.append)
    assert len(heard) == 6


def test_only_results_are_kept_on_request(data, tmp_path):
    run = negscale.train(SETTINGS, data=data, out=tmp_path / "run", keep="results")
    assert not (run.folder / "model.safetensors").exists() and len(run.records) == 3


def test_progress_goes_up_to_one(data, tmp_path):
    shares = []
    negscale.train(SETTINGS, data=data, out=tmp_path / "run", progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 1


def test_an_exception_of_a_listener_stops_the_run_which_goes_on_later_to_the_same_bits(data, tmp_path):
    class Enough(Exception):
        pass

    def hear(record):
        if record["epoch"] == 1:
            raise Enough

    with pytest.raises(Enough):
        negscale.train(SETTINGS, data=data, out=tmp_path / "run", epochs=40, on_epoch=hear)
    assert not (tmp_path / "run/summary.txt").exists()
    negscale.train(SETTINGS, data=data, out=tmp_path / "run", epochs=40)
    negscale.train(SETTINGS, data=data, out=tmp_path / "whole", epochs=40)
    assert left(tmp_path / "run") == left(tmp_path / "whole")


STOPPED = """
import json, sys, threading, time
import negscale
settings, data, out = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
def hear(record):
    print(record["epoch"], flush=True)
try:
    negscale.train(settings, data=data, out=out, epochs=100_000, on_epoch=hear)
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(7)
"""


def test_ctrl_c_stops_a_run_which_goes_on_later_to_the_same_bits(data, tmp_path):
    command = [sys.executable, "-c", STOPPED, json.dumps(SETTINGS), str(data), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        rest = child.communicate(timeout=60)[0].split()
    assert child.returncode == 7 and first == "1\n" and rest[-1] == "stopped"
    epochs = 1 + len(rest[:-1]) + 2
    # The settings of a run are those it was begun with, so a shorter run is compared after as many epochs.
    heard = []

    def enough(record):
        heard.append({name: value for name, value in record.items() if name != "seconds"})
        if record["epoch"] >= epochs:
            raise StopIteration

    for folder in ("run", "whole"):
        with pytest.raises(StopIteration):
            negscale.train(SETTINGS, data=data, out=tmp_path / folder, epochs=100_000, on_epoch=enough)
    resumed, whole = heard[: len(heard) - epochs], heard[-epochs:]
    assert 0 < len(resumed) < epochs and resumed == whole[-len(resumed) :]


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        (dict(epoch=3), ValueError, r"in epoch=, there is no key `epoch`; did you mean `epochs`\?|there is no key `epoch`; did you mean `epochs`"),
        (dict(recipe="epochs = 'many'\n"), ValueError, "in the recipe"),
        (dict(recipe="nowhere.toml"), OSError, "nowhere.toml"),
        (dict(recipe=3), ValueError, "a recipe is a path, the text of one, or a dict of settings; got <class 'int'>"),
        (dict(data="nowhere.csv"), (ValueError, OSError), "nowhere.csv"),
        (dict(host="cross-entrpy"), ValueError, "cross-entropy"),
        (dict(keep="some"), ValueError, "give 'all' or 'results'"),
        (dict(checkpoint_every=-1.0), ValueError, "give seconds, 0 or more"),
        (dict(**{"negscale.lamda": 1}), ValueError, "did you mean `lambda`"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_folder_is_made(arguments, kind, told, tmp_path):
    with pytest.raises(kind, match=told) as caught:
        negscale.train(out=tmp_path / "run", **arguments)
    assert isinstance(caught.value, negscale.NegScaleError) and not (tmp_path / "run").exists()


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(OSError, match="the folder of a finished run"):
        negscale.Run(tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(negscale.InputError, match="is damaged"):
        negscale.Run(tmp_path)


def test_other_threads_go_on_while_a_run_trains(data, tmp_path):
    import threading

    counted, over = [0], threading.Event()

    def count():
        while not over.is_set():
            counted[0] += 1
            time.sleep(0)

    def hear(record):
        seen.append(counted[0])

    seen = []
    thread = threading.Thread(target=count)
    thread.start()
    try:
        negscale.train(SETTINGS, data=data, out=tmp_path / "run", on_epoch=hear)
    finally:
        over.set()
        thread.join()
    assert seen[0] < seen[-1]


def test_a_run_may_be_made_in_a_thread(data, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda at: negscale.train(SETTINGS, data=data, out=tmp_path / str(at)), range(2)))
    assert left(runs[0].folder) == left(runs[1].folder)
    assert os.path.samefile(runs[0].folder, tmp_path / "0")
