"""Labels and landmarks as users give them: what they must be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._errors import warn_caller
from .._points import length
from ..solvers import Whitened
from ._base import KernelEstimator, _floating
from ._weights import check_weights

__all__ = ["Labelled", "class_weights", "instead_of_exact"]


class Labelled(NamedTuple):
    """Points with the places of their labels among the classes, and their weights.

    Classes are those of points of positive weight; a point without weight, which may be of another
    class, has the label -1.
    """

    X: Any
    labels: np.ndarray  # 0, 1, ... or -1
    classes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls,
        model: KernelEstimator,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        class_weight: Any = None,
        *,
        copy: bool = False,
    ) -> Self:
        """Check what the fit of a model was given.

        Weights of classes multiply those of points; "balanced" makes the sums of weights equal.
        """
        if model._takes(X):
            X, y = validate_data(model, X, y, accept_sparse="csr", copy=copy)
            X = _floating(X)
        else:
            X, y = model._check_points(X, reset=True, copy=copy), column_or_1d(y, warn=True)
            if len(y) != length(X):
                raise ValueError(f"{length(X)} points, but {len(y)} labels")
        check_classification_targets(y)
        w = np.ones(len(y)) if sample_weight is None else check_weights(sample_weight, X)
        some = np.flatnonzero(w)
        classes = np.unique(y[some])
        if len(classes) < 2:
            raise ValueError(
                f"{type(model).__name__} needs points of at least 2 classes, but those of positive "
                f"weight are all of one class: {classes.tolist()}"
            )
        labels = np.full(len(y), -1)
        labels[some] = np.searchsorted(classes, y[some])
        if class_weight is not None:
            each = class_weights(class_weight, classes, np.bincount(labels[some], w[some]))
            w = w * each[labels]
        return cls(X, labels, classes, w)


def class_weights(class_weight: Any, classes: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the weight of each class, given the sums of the weights of its points."""
    each = _of_classes(class_weight, classes, sums)
    if not (np.all(np.isfinite(each)) and np.all(each > 0)):
        raise ValueError(
            f"class_weight must be positive, got {each.tolist()} for the classes "
            f"{classes.tolist()}; to leave out a class, leave out its points"
        )
    return each


def _of_classes(class_weight: Any, classes: np.ndarray, sums: np.ndarray) -> np.ndarray:
    if isinstance(class_weight, str):  # "balanced"
        return sums.sum() / (len(sums) * sums)
    names = classes.tolist()
    missing = [name for name in names if name not in class_weight]
    if missing and len(names) - len(missing) < len(class_weight):
        raise ValueError(
            f"class_weight has the keys {list(class_weight)}, but nothing for the classes "
            f"{missing}; the usual cause is a name that is spelled in another way"
        )
    return np.array([class_weight.get(name, 1.0) for name in names], dtype=float)


def instead_of_exact(phi: Whitened, n: int, exact: str) -> Whitened:
    """Warn that "auto" has taken landmarks, where another solver would be exact; return them."""
    text = (
        f"{n} points are too many for solver='auto' to be exact, by their number or the memory; "
        f"{phi.message}. solver={exact!r} is exact, solver='nystroem' asks for this"
    )
    warn_caller(text)
    return replace(phi, message=text)
