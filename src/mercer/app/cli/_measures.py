"""Measures of prediction quality for --scoring: their names, and how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from ... import tables

if TYPE_CHECKING:
    import numpy as np

# For each measure: scikit-learn's other names for it, and common abbreviations.
CLASSIFICATION: dict[str, tuple[str, ...]] = {
    "accuracy": ("acc", "accuracy_score"),
    "balanced_accuracy": ("bacc", "balanced_accuracy_score"),
    "f1": ("f1_score",),
    "precision": ("precision_score",),
    "recall": ("recall_score", "sensitivity"),
    "roc_auc": ("auc", "roc_auc_ovr", "roc_auc_score"),
    "log_loss": ("neg_log_loss", "logloss", "cross_entropy"),
    "brier": ("neg_brier_score", "brier_score", "brier_score_loss"),
}
REGRESSION: dict[str, tuple[str, ...]] = {
    "r2": ("r^2", "r2_score"),
    "rmse": ("neg_root_mean_squared_error", "root_mean_squared_error"),
    "mse": ("neg_mean_squared_error", "mean_squared_error"),
    "mae": ("neg_mean_absolute_error", "mean_absolute_error"),
    "median_ae": ("neg_median_absolute_error", "median_absolute_error", "medae"),
    "mape": (  # codespell:ignore mape
        "neg_mean_absolute_percentage_error",
        "mean_absolute_percentage_error",
    ),
    "explained_variance": ("ev", "explained_variance_score"),
}
_AVERAGED = ("f1", "precision", "recall")  # of one class, or averaged over classes
_AVERAGES = ("macro", "micro", "weighted")
CLASSIFICATION |= {f"{name}_{how}": () for name in _AVERAGED for how in _AVERAGES}
# The measures in help texts and messages; those with another average are not listed.
LISTED = {
    "classification": [n for n in CLASSIFICATION if n.rpartition("_")[2] not in _AVERAGES],
    "regression": list(REGRESSION),
}


def parse_scoring(values: Iterable[str], *, labels: bool) -> list[str]:
    """Return the measures that --scoring selects; by default accuracy or r2.

    Parameters
    ----------
    values : iterable of str
        Names or abbreviations; each string may contain several, separated by commas.
    labels : bool
        Whether the model is a classifier.

    Returns
    -------
    list of str
        Names of measures, each once.
    """
    task, other = ("classification", "regression") if labels else ("regression", "classification")
    known = CLASSIFICATION if labels else REGRESSION
    canonical = {alias: name for name, aliases in known.items() for alias in (name, *aliases)}
    elsewhere = REGRESSION if labels else CLASSIFICATION
    wrong_task = {alias for name, aliases in elsewhere.items() for alias in (name, *aliases)}
    names = list[str]()
    for text in (part.strip() for value in values for part in value.split(",")):
        name = text.lower().replace("-", "_").replace(" ", "_")
        if not name:
            continue
        listed = f"measures of {task}: {', '.join(LISTED[task])}"
        if name in wrong_task and name not in canonical:
            raise click.BadParameter(
                f"{text!r} is a measure of {other}, but this model is for {task}; {listed}",
                param_hint="--scoring",
            )
        if name not in canonical:
            hint = tables.suggest_name(name, [*canonical, *wrong_task])
            raise click.BadParameter(
                f"{text!r} is not a known measure{hint} {listed}", param_hint="--scoring"
            )
        names.append(canonical[name])
    return list(dict.fromkeys(names)) or ["accuracy" if labels else "r2"]


def display_name(measure: str, n_classes: int) -> str:
    """Return the name under which a measure is printed; it contains the kind of average."""
    if n_classes > 2 and measure in _AVERAGED:
        return f"{measure}_macro"
    return "roc_auc_ovr" if n_classes > 2 and measure == "roc_auc" else measure


def explain_measures(measures: Iterable[str], classes: np.ndarray | None) -> str:
    """Return a message about the positive class or the averages, or "" if none is needed."""
    if classes is None:
        return ""
    positive = [name for name in measures if name in _AVERAGED]
    if len(classes) == 2 and positive:
        return f"The positive class of {' and '.join(positive)} is {classes.tolist()[1]!r}."
    averaged = [name for name in measures if name in (*_AVERAGED, "roc_auc")]
    if len(classes) > 2 and averaged:
        verb = "are means" if len(averaged) > 1 else "is the mean"
        return f"With {len(classes)} classes, {' and '.join(averaged)} {verb} over the classes."
    return ""


@dataclass(frozen=True)
class Predictions:
    """The predictions of a fitted model for rows with known targets.

    Parameters
    ----------
    model : estimator
        The fitted model.
    X : points
        The rows.
    y : ndarray of shape (n,)
        Their targets.
    classes : ndarray or None, default=None
        All classes in sorted order, also those that are not in `y` or unknown to the model; None
        for a regression.
    """

    model: Any
    X: Any
    y: np.ndarray
    classes: np.ndarray | None = None

    def compute(self, measure: str) -> float:
        """Return the value of a measure; NaN if it is undefined for these rows."""
        if measure in REGRESSION:
            return self._regression(measure)
        if measure == "accuracy":
            return float((self.y == self.predicted).mean())
        if measure == "balanced_accuracy":
            return self._averaged("recall", "macro", sorted(set(self.y.tolist())))
        stem, _, average = measure.rpartition("_")
        if average in _AVERAGES:
            return self._averaged(stem, average)
        if measure in _AVERAGED:
            return self._averaged(measure, "binary" if len(self._classes) == 2 else "macro")
        compute = {"roc_auc": self._roc_auc, "log_loss": self._log_loss, "brier": self._brier}
        return compute[measure]()

    @cached_property
    def predicted(self) -> np.ndarray:
        """The predictions."""
        predicted: np.ndarray = self.model.predict(self.X)
        return predicted

    @property
    def _classes(self) -> np.ndarray:
        import numpy as np

        return np.unique(self.y) if self.classes is None else self.classes

    def _regression(self, measure: str) -> float:
        import numpy as np
        from sklearn import metrics

        if measure in ("r2", "explained_variance") and len(self.y) < 2:
            return float("nan")
        compute: dict[str, Callable[..., float]] = {
            "r2": metrics.r2_score,
            "rmse": lambda *args: np.sqrt(metrics.mean_squared_error(*args)),
            "mse": metrics.mean_squared_error,
            "mae": metrics.mean_absolute_error,
            "median_ae": metrics.median_absolute_error,
            "mape": metrics.mean_absolute_percentage_error,  # codespell:ignore mape
            "explained_variance": metrics.explained_variance_score,
        }
        return float(compute[measure](self.y, self.predicted))

    def _averaged(self, measure: str, average: str, labels: list[Any] | None = None) -> float:
        """Return precision, recall or F1: of the second class ("binary"), or averaged."""
        from sklearn import metrics

        compute = getattr(metrics, f"{measure}_score")
        if average == "binary":
            positive = [self._classes[1]]
            values = compute(
                self.y, self.predicted, labels=positive, average=None, zero_division=0.0
            )
            return float(values[0])
        return float(
            compute(self.y, self.predicted, labels=labels, average=average, zero_division=0.0)
        )

    @cached_property
    def _probabilities(self) -> np.ndarray:
        """The probabilities of all classes, of shape (n, n_classes)."""
        if not hasattr(self.model, "predict_proba"):
            raise tables.TableError(
                f"log_loss and brier need probabilities, which {type(self.model).__name__} does "
                f"not compute; use another measure, such as roc_auc, or another method: logistic "
                f"or fisher"
            )
        return self._for_all_classes(self.model.predict_proba(self.X))

    def _for_all_classes(self, values: np.ndarray) -> np.ndarray:
        """Return one column per class; classes that the model does not know get zeros."""
        import numpy as np

        columns = np.searchsorted(self._classes, self.model.classes_)
        complete = np.zeros((len(values), len(self._classes)))
        complete[:, columns] = values
        return complete

    @property
    def _indicators(self) -> np.ndarray:
        """The targets as 0 and 1, of shape (n, n_classes)."""
        return (self.y[:, None] == self._classes).astype(float)

    def _roc_auc(self) -> float:
        """Area under the ROC curve; for several classes, the mean of one class versus the rest."""
        import numpy as np
        from sklearn.metrics import roc_auc_score

        binary = len(self._classes) == 2
        has_decision = hasattr(self.model, "decision_function")
        has_proba = hasattr(self.model, "predict_proba")
        if has_decision and (binary or not has_proba):
            values = self.model.decision_function(self.X)
            values = np.c_[-values, values] if values.ndim == 1 else values
        else:  # every classifier has one of the two methods
            values = self.model.predict_proba(self.X)
        values, indicators = self._for_all_classes(values), self._indicators
        areas = [
            roc_auc_score(indicators[:, j], values[:, j])
            for j in ([1] if binary else range(len(self._classes)))
            if 0 < indicators[:, j].sum() < len(self.y)
        ]
        return float(np.mean(areas)) if areas else float("nan")

    def _log_loss(self) -> float:
        """Mean of -log p for the probability p of the true class, clipped as in scikit-learn."""
        import numpy as np

        p = np.einsum("ij,ij->i", self._probabilities, self._indicators)
        return float(-np.log(np.clip(p, np.finfo(float).eps, 1.0)).mean())

    def _brier(self) -> float:
        """Brier score: of the second of two classes, or summed over several classes."""
        import numpy as np

        squares = np.square(self._probabilities - self._indicators)
        return float(squares[:, 1].mean() if squares.shape[1] == 2 else squares.sum(axis=1).mean())
