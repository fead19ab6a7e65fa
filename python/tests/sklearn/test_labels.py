"""What is said of labels, and models as files."""

import pytest

pytest.importorskip("sklearn")

import csv
import subprocess
import sys

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import negscale
from negscale.sklearn import NoisyLabelClassifier


def noisy(rows=800, classes=4, share=0.3, seed=0):
    """Rows, labels of which a share is wrong, and the true ones."""
    X, truth = make_blobs(rows, n_features=8, centers=classes, cluster_std=2.0, random_state=seed)
    draw = np.random.default_rng(seed)
    y = truth.copy()
    wrong = draw.random(rows) < share
    y[wrong] = (truth[wrong] + draw.integers(1, classes, wrong.sum())) % classes
    return X, y, truth


@pytest.mark.parametrize("seed", range(3))
def test_wrong_labels_are_found_and_right_ones_suggested(seed):
    X, y, truth = noisy(seed=seed)
    fitted = NoisyLabelClassifier(random_state=seed).fit(X, y)
    wrong = y != truth
    assert roc_auc_score(wrong, -fitted.label_quality_) > 0.99
    assert wrong[fitted.label_issues_].mean() > 0.9 and fitted.label_issues_[wrong].mean() > 0.65
    assert (fitted.suggested_[wrong] == truth[wrong]).mean() > 0.8
    assert fitted.noise_interval_[0] <= fitted.noise_rate_ <= fitted.noise_interval_[1]
    assert abs(fitted.noise_rate_ - wrong.mean()) < 0.1
    assert fitted.score(X, truth) > 0.95


def test_too_few_labels_have_no_rate():
    fitted = NoisyLabelClassifier(random_state=0).fit(np.arange(8.0)[:, None], np.arange(8) > 3)
    assert fitted.noise_rate_ is None and fitted.noise_interval_ is None
    assert not fitted.label_issues_.any()


def test_every_epoch_leaves_its_figures():
    X, y, _ = noisy(200)
    history = NoisyLabelClassifier(epochs=5, random_state=0).fit(X, y).history_
    assert [record["epoch"] for record in history] == [1, 2, 3, 4, 5]
    assert history[-1]["accuracy/train"] > 0.3 and history[-1]["loss/total"] < history[0]["loss/total"]


def test_the_plug_in_acts_by_the_tree_it_is_given():
    X, y, _ = noisy(300)
    names = np.array(["cat", "dog", "ship", "truck"])[y]
    text = "root\n  animal\n    cat\n    dog\n  thing\n    sea\n      ship\n    road\n      truck\n"
    tree = negscale.Taxonomy.from_indented(text)
    settings = {"negscale.eta_min": 3, "negscale.eta_max": 4}

    def fitted(plugin, **more):
        return NoisyLabelClassifier(plugin=plugin, epochs=10, random_state=0, **more).fit(X, names)

    plain = fitted("none", tree=tree)
    by_tree = fitted("negscale", tree=tree, settings=settings)
    permuted = fitted("negscale", tree=tree.permuted(1), settings=settings)
    learnt = fitted("negscale", tree="learnt")
    terms = [{name for name in one.history_[-1] if "snop" in name} for one in (plain, by_tree, learnt)]
    assert not terms[0] and terms[1] and terms[2]
    rows = [one.predict_proba(X).tobytes() for one in (plain, by_tree, permuted)]
    assert len(set(rows)) == 3


def test_a_tree_of_other_classes_is_refused():
    X, y, _ = noisy(100)
    with pytest.raises(ValueError, match="cifar10|class"):
        NoisyLabelClassifier(plugin="negscale", tree=negscale.Taxonomy("cifar10")).fit(X, y)


def test_a_model_is_saved_and_read_by_the_library_and_by_the_command(tmp_path):
    X, y, _ = noisy(300)
    fitted = NoisyLabelClassifier(epochs=5, random_state=0).fit(X, np.array(["a", "b", "c", "d"])[y])
    paths = fitted.model_.save(tmp_path)
    assert [path.name for path in paths] == ["model.safetensors", "model-2.safetensors"]
    back = negscale.Model.load(tmp_path)
    assert back.classes == ["a", "b", "c", "d"] and back.n_features == 8 and back.about["method"] == "rolr"
    rows = X.astype(np.float32)
    assert (back.predict_proba(rows) == fitted.model_.predict_proba(rows)).all()
    assert (back.predict_proba(np.asfortranarray(rows), 2) == back.predict_proba(rows)).all()
    assert repr(back) == "<Model of rolr: 8 features, 4 classes>"
    np.save(tmp_path / "rows.npy", rows[:20])
    asked = [sys.executable, "-m", "negscale", "predict", tmp_path, "--data", tmp_path / "rows.npy"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert [row["class"] for row in csv.DictReader(told.splitlines())] == fitted.predict(X[:20]).tolist()


def test_files_that_are_no_model_are_refused(tmp_path):
    with pytest.raises(OSError, match="no such file"):
        negscale.Model.load(tmp_path / "nothing.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"something else entirely")
    with pytest.raises(ValueError, match="not a safetensors file"):
        negscale.Model.load(tmp_path)
    with pytest.raises(ValueError, match="has no file"):
        negscale.Model.from_files([])


def test_rows_that_do_not_fit_a_model_are_refused():
    X, y, _ = noisy(100)
    model = NoisyLabelClassifier(epochs=2, random_state=0).fit(X, y).model_
    with pytest.raises(ValueError, match="length 3"):
        model.predict_proba(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="row 1 holds NaN"):
        model.predict_proba(np.array([[0] * 8, [np.nan] * 8], np.float32))
    assert model.predict_proba(np.zeros((0, 8), np.float32)).shape == (0, 4)
