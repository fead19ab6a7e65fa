"""What scikit-learn asks of a classifier."""

import pytest

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_blobs
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from negscale.sklearn import NoisyLabelClassifier

CHECKED = {
    "as it comes": NoisyLabelClassifier(),
    "cross-entropy": NoisyLabelClassifier("cross-entropy"),
    "with the plug-in": NoisyLabelClassifier(plugin="negscale", tree="unrelated"),
}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{name}-{check.func.__name__}")
        for name, chosen in CHECKED.items()
        for estimator, check in estimator_checks_generator(chosen)
    ],
)
# Some checks call what scikit-learn warns of.
@pytest.mark.filterwarnings("ignore:::sklearn")
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def quick(*args, **settings):
    return NoisyLabelClassifier(*args, **{"epochs": 6, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def test_a_seed_makes_results_the_same_and_threads_change_nothing(iris):
    X, y = iris
    one = quick().fit(X, y).predict_proba(X)
    assert (quick().fit(X, y).predict_proba(X) == one).all()
    assert (quick(n_jobs=2).fit(X, y).predict_proba(X) == one).all()
    assert (quick(random_state=np.random.RandomState(0)).fit(X, y).predict_proba(X) == one).all()
    assert (quick(random_state=1).fit(X, y).predict_proba(X) != one).any()


def test_columns_are_standardised_inside(iris):
    X, y = iris
    stretched = X * [1, 1000, 0.001, 1] + [0, 0, 0, 64]
    one, two = quick().fit(X, y).predict_proba(X), quick().fit(stretched, y).predict_proba(stretched)
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_copies_predict_the_same_to_the_bit(iris, tmp_path):
    X, y = iris
    fitted = quick().fit(X, y)
    joblib.dump(fitted, tmp_path / "classifier.joblib")
    copies = [pickle.loads(pickle.dumps(fitted, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in [*copies, copy.deepcopy(fitted), joblib.load(tmp_path / "classifier.joblib")]:
        assert (other.predict_proba(X) == fitted.predict_proba(X)).all()
        assert (other.label_quality_ == fitted.label_quality_).all()
        assert other.get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "model_")
    script = "import joblib, sys; print(joblib.load(sys.argv[1]).predict([[5.0, 3.4, 1.5, 0.2]])[0])"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, tmp_path / "classifier.joblib"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(fitted.predict(X[:1])[0])


def test_pipelines_take_columns_of_text_and_missing_words():
    draw = np.random.default_rng(0)
    colour = draw.choice(["red", "green", "blue"], 300)
    table = pd.DataFrame({"colour": colour, "size": draw.normal(size=300) + (colour == "red")})
    kind = np.where(colour == "blue", "sky", "fruit")
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]))
    pipeline = make_pipeline(columns, quick()).fit(table, kind)
    assert pipeline.score(table, kind) > 0.95
    assert pipeline.predict_proba(table).shape == (300, 2)
    with pytest.raises(ValueError, match="could not convert string to float"):
        quick().fit(table, kind)


def test_a_search_over_methods_and_settings_runs_in_processes(iris):
    X, y = iris
    grid = {"host": ["rolr", "cross-entropy"], "learning_rate": [0.05, 1e-6], "settings": [None, {"width": 0.5}]}
    search = GridSearchCV(quick(), grid, cv=2, n_jobs=2, error_score="raise").fit(X, y)
    assert search.best_params_["learning_rate"] == 0.05 and search.best_score_ > 0.8
    assert search.best_estimator_.predict(X).shape == (150,)


def test_ensembles_and_predictions_out_of_fold(iris):
    X, y = iris
    assert BaggingClassifier(quick(), n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.85
    outside = cross_val_predict(quick(), X, y, cv=3, method="predict_proba")
    np.testing.assert_allclose(outside.sum(axis=1), 1)


@pytest.mark.parametrize("kind", ["str", "object", "category", "bool", "float", "int8", "list"])
def test_labels_of_any_kind_come_back_as_they_were(kind):
    X, y = make_blobs(60, centers=2, random_state=0)
    words = np.array(["no", "yes"])[y]
    labels = {
        "str": words,
        "object": words.astype(object),
        "category": pd.Series(words, dtype="category"),
        "bool": y == 1,
        "float": y * 2.0 - 1,
        "int8": (y * 7 - 3).astype("int8"),
        "list": words.tolist(),
    }[kind]
    fitted = quick().fit(X, labels)
    plain = np.asarray(labels)
    assert (fitted.classes_ == np.unique(plain)).all() and fitted.classes_.dtype == plain.dtype
    assert fitted.predict(X).dtype == fitted.suggested_.dtype == plain.dtype
    assert (fitted.predict(X) == plain).mean() > 0.9


@pytest.mark.parametrize("host", ["rolr", "cross-entropy", "elr", "co-teaching", "dividemix", "gce"])
@pytest.mark.parametrize("rows", [2, 3, 5, 17])
def test_few_rows_will_do(host, rows):
    X = np.arange(rows)[:, None] % 2 + 0.01 * np.arange(rows)[:, None]
    fitted = quick(host).fit(X, np.arange(rows) % 2)
    assert fitted.predict_proba(X).shape == (rows, 2) and np.isfinite(fitted.label_quality_).all()


def test_input_is_left_alone_and_may_be_read_only_or_laid_out_otherwise(iris):
    X, y = iris
    plain = np.array(X, dtype=np.float32)
    plain.setflags(write=False)
    one = quick().fit(plain, y).predict_proba(plain)
    for other in [np.asfortranarray(X), np.repeat(X.to_numpy(), 2, axis=0)[::2], X.astype("float16").astype("float32"), X]:
        assert quick().fit(other, y).predict_proba(other).shape == one.shape
    assert (quick().fit(np.asfortranarray(plain), y).predict_proba(plain) == one).all()


def test_weights_of_samples_are_refused_rather_than_ignored(iris):
    X, y = iris
    with pytest.raises(TypeError, match="sample_weight"):
        quick().fit(X, y, sample_weight=np.ones(150))
    fitted = quick().fit(X, y)
    hit = fitted.predict(X) == y
    assert fitted.score(X, y, sample_weight=hit + 1e-9) > 0.99


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"host": "rolrr"}, "there is no .*`rolrr`; nearest: rolr"),
        ({"plugin": "no"}, "`no`"),
        ({"tree": "cifar"}, "`cifar`"),
        ({"epochs": 0}, "in epochs.*must be at least 1"),
        ({"epochs": 2.5}, "in epochs.*must be a whole number"),
        ({"batch_size": "many"}, "in batch_size.*must be a whole number"),
        ({"hidden_layer_sizes": 64}, "in hidden_layer_sizes.*must be a list"),
        ({"learning_rate": -1.0}, "in learning_rate"),
        ({"settings": {"epocs": 3}}, "no key `epocs`; did you mean `epochs`"),
        ({"settings": {"rolr": {"lambda_q": 1}}}, "did you mean `lambda_p`"),
        ({"settings": {"data": "cifar10"}}, "the rows are here already"),
        ({"settings": {"baseline": "cross-entropy"}}, "the rows are here already"),
        ({"settings": {"epochs": object()}}, "object"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_wrong_settings_are_named_when_fitting(iris, settings, message):
    with pytest.raises(ValueError, match=message):
        NoisyLabelClassifier(**settings).fit(*iris)


def test_settings_of_recipes_are_written_with_dots_or_as_tables(iris):
    X, y = iris
    plain = quick().fit(X, y).predict_proba(X)
    dots = quick(settings={"rolr.lambda_p": 0.0}).fit(X, y).predict_proba(X)
    table = quick(settings={"rolr": {"lambda_p": np.float64(0.0)}}).fit(X, y).predict_proba(X)
    assert (dots == table).all() and (dots != plain).any()
    assert len(quick(settings={"epochs": 3}).fit(X, y).history_) == 3, "settings are over arguments"


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="every label is a: .*two classes"):
        quick().fit([[1.0], [2.0]], ["a", "a"])


def test_ctrl_c_stops_training_and_other_threads_run_meanwhile(iris):
    # The timer needs the lock that training must have given up.
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    classifier = quick(epochs=10**7)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(*iris)
    assert not hasattr(classifier, "model_")
    assert quick().fit(*iris).score(*iris) > 0.8, "nothing is left of it"


def test_threads_fit_at_once_and_get_what_they_would_alone(iris):
    X, y = iris
    alone = [quick(random_state=seed).fit(X, y).predict_proba(X) for seed in range(4)]
    together = joblib.Parallel(n_jobs=4, prefer="threads")(joblib.delayed(quick(random_state=seed).fit)(X, y) for seed in range(4))
    for one, fitted in zip(alone, together, strict=True):
        assert (fitted.predict_proba(X) == one).all()


def _in_child(fitted, X, y):
    return fitted.predict_proba(X), quick().fit(X, y).predict_proba(X)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_predicts_and_fits(iris):
    X, y = iris
    fitted = quick(n_jobs=2).fit(X, y)
    here = fitted.predict_proba(X)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        there, again = pool.apply_async(_in_child, (fitted, X, y)).get(timeout=120)
    assert (there == here).all() and (again == here).all()


def test_held_out_rows_of_the_model_are_predicted_in_any_number(iris):
    X, y = iris
    X, other, y, _ = train_test_split(X, y, random_state=0)
    fitted = quick().fit(X, y)
    many = np.repeat(other.to_numpy(), 40, axis=0)
    fitted = NoisyLabelClassifier(epochs=6, random_state=0).fit(X.to_numpy(), y)
    np.testing.assert_allclose(fitted.predict_proba(many)[::40], fitted.predict_proba(other.to_numpy()), rtol=1e-6)
