"""A scikit-learn classifier for tables whose labels are partly wrong.

>>> from negscale.sklearn import NoisyLabelClassifier
>>> from sklearn.datasets import load_iris
>>> features, species = load_iris(return_X_y=True, as_frame=True)
>>> species[7] = 2  # a setosa called virginica
>>> classifier = NoisyLabelClassifier(random_state=0).fit(features, species)
>>> print(classifier.predict(features[7:8]), classifier.suggested_[7])
[0] 0
>>> int(classifier.label_quality_.argmin())
7

The whole interface is that of scikit-learn: pipelines, searches, pickles. What is said of the labels is in attributes
(`label_quality_`, `suggested_`, `label_issues_`, `noise_rate_`) in the order of the rows that were fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from negscale import _negscale

try:
    from joblib import cpu_count
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as missing:
    raise ImportError(
        "negscale.sklearn needs scikit-learn 1.6 or later: pip install 'negscale[sklearn]'"
    ) from missing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["NoisyLabelClassifier"]


class NoisyLabelClassifier(ClassifierMixin, BaseEstimator):
    """Neural networks trained by a method that expects some of the labels to be wrong.

    Columns are standardised inside, so no scaler is needed; categories must be numbers already, such as by `OneHotEncoder`.
    There is no `sample_weight`: these methods weigh every sample themselves, by how far they believe its label, and a weight
    from outside has no meaning in most of them. So `fit` does not take one, rather than ignore it; `score` does.

    Parameters
    ----------
    host : str, default="rolr"
        Training method; ``negscale methods`` on the command line lists them. "cross-entropy" is plain training.
    plugin : str, default="none"
        Loss that is attached to the method: "none" or "negscale", which asks for a class tree.
    tree : str or negscale.Taxonomy, default="auto"
        Class tree of the plug-in: "auto" (a built-in one that has these classes, else "learnt"), "learnt" from the features,
        "flat", the name of a built-in one, the path of a file, or a `Taxonomy`.
    hidden_layer_sizes : sequence of int, default=(64,)
        Units of the hidden layers.
    epochs : int, default=None
        Passes over the rows. By default as many as make about 300 steps, at least 10 and at most 60.
    batch_size : int, default=None
        Rows per step. By default the rows divided by 10, at least 16 and at most 128.
    learning_rate : float, default=0.05
        Learning rate of the optimiser.
    settings : dict, default=None
        Any other setting of a recipe by its name, as ``negscale config explain`` lists them, such as
        ``{"rolr.lambda_p": 0.5}`` or ``{"rolr": {"lambda_p": 0.5}}``.
    n_jobs : int, default=None
        Threads; None means 1, -1 all cores. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of weights, order and all else that is drawn. With a number, results are the same on every call.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` was a table whose column names are all strings.
    label_quality_ : ndarray of shape (n_samples,)
        How well each label that was given to `fit` goes with what the method believes: from 0, surely wrong, to 1.
    clean_probability_ : ndarray of shape (n_samples,)
        Probability that the label is right by which the method itself went in training; often nearly 0 or 1.
    suggested_ : ndarray of shape (n_samples,)
        The class that each label should be; that of the label itself where nothing speaks against it.
    label_issues_ : ndarray of shape (n_samples,), dtype=bool
        Labels held to be wrong: as many as are estimated to be wrong, those of lowest quality.
    noise_rate_ : float or None
        Estimated share of wrong labels; None if the labels cannot be judged.
    noise_interval_ : tuple of float or None
        95 % interval of it.
    history_ : list of dict
        What was measured in every epoch, by name: ``pandas.DataFrame(classifier.history_)``.
    model_ : negscale.Model
        The trained model. ``model_.save(folder)`` writes what the command ``negscale predict`` reads.

    Examples
    --------
    >>> from negscale.sklearn import NoisyLabelClassifier
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(300, centers=3, cluster_std=0.8, random_state=1)
    >>> y[:5] = (y[:5] + 1) % 3
    >>> classifier = NoisyLabelClassifier(random_state=0).fit(X, y)
    >>> sorted(classifier.label_quality_.argsort()[:5].tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        host: str = "rolr",
        plugin: str = "none",
        *,
        tree: Any = "auto",
        hidden_layer_sizes: Any = (64,),
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 0.05,
        settings: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.host = host
        self.plugin = plugin
        self.tree = tree
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> NoisyLabelClassifier:
        """Trains on rows `X` with labels `y`, and judges the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers without gaps. They are used as 32-bit floats.
        y : array-like of shape (n_samples,)
            Class of each row: numbers, text or anything else that can be sorted.

        Returns
        -------
        self : NoisyLabelClassifier
            The fitted classifier.
        """
        rows: NDArray[np.float32]
        rows, y = validate_data(self, X, y, dtype=np.float32, order="C", ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"every label is {self.classes_[0]}: a classifier needs at least two classes")
        fitted = _negscale.fit(
            rows,
            labels.astype(np.uint32),
            [str(name) for name in self.classes_],
            self._settings(len(rows)),
            None if isinstance(self.tree, str) else self.tree,
        )
        self.model_ = fitted.model
        self.label_quality_ = fitted.label_quality
        self.clean_probability_ = fitted.clean_probability
        self.suggested_ = self.classes_[fitted.suggested]
        self.label_issues_ = fitted.flags
        rate, interval = fitted.rate or (None, None)
        self.noise_rate_, self.noise_interval_ = rate, interval
        self.history_ = fitted.epochs
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns that `fit` has seen.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A row for each row of `X`; each adds up to 1.
        """
        check_is_fitted(self)
        rows: NDArray[np.float32] = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        found = self.model_.predict_proba(rows, self._threads()).astype(np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns that `fit` has seen.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
            One of `classes_` for each row.
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def _threads(self) -> int:
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if jobs == 0:
            raise ValueError("n_jobs is 0: give a number of threads, or -1 for all cores")
        return jobs if jobs > 0 else max(1, cpu_count() + 1 + jobs)

    def _settings(self, rows: int) -> list[tuple[str, dict[str, Any]]]:
        """Settings of a recipe, with the argument they come from."""
        batch = max(16, min(128, rows // 10)) if self.batch_size is None else self.batch_size
        epochs = self.epochs
        if epochs is None:
            steps = rows // batch if isinstance(batch, int) and batch > 0 else 1
            epochs = max(10, min(60, 300 // max(1, steps)))
        chosen = {
            "host": {"host": self.host},
            "plugin": {"plugin": self.plugin},
            "hidden_layer_sizes": {"hidden": self.hidden_layer_sizes},
            "epochs": {"epochs": epochs},
            "batch_size": {"batch": batch},
            "learning_rate": {"optimiser.lr": self.learning_rate},
            "n_jobs": {"threads": self._threads()},
            "random_state": {"seed": check_random_state(self.random_state).randint(2**31)},
            "tree": {"tree": self.tree if isinstance(self.tree, str) else "auto"},
            "settings": dict(self.settings or {}),
        }
        return list(chosen.items())
