"""Support vector classification: one machine for each pair of classes, and their votes."""

from __future__ import annotations

from abc import abstractmethod
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ...solvers import Dual, DualSolution
from .._fitting import fitting
from .._labels import class_weights
from .._parameters import estimator, parameter
from ._machine import SupportVectorMachine, at_bound
from ._pairs import votes_of_pairs
from ._problem import Problem

__all__ = ["Sorted", "SupportVectorClassifier"]


class Sorted(NamedTuple):
    """The points of a fit with their classes and weights, numbered as in `problem`."""

    X: Any
    problem: Problem
    labels: np.ndarray
    weights: np.ndarray  # of the points alone
    classes: np.ndarray
    class_weights: np.ndarray

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of classes, each of which has a machine, in LIBSVM's order."""
        return list(combinations(range(len(self.classes)), 2))

    def sums(self) -> np.ndarray:
        """Return the weight of each class, without the weights of classes."""
        return np.bincount(self.labels, self.weights)

    def members(self, pair: tuple[int, int]) -> np.ndarray:
        return self.problem.members(*self._views(pair))

    def signs(self, pair: tuple[int, int]) -> np.ndarray:
        """Return +1 for the class whose f is positive: the second of two, else the first."""
        positive = 1 if len(self.classes) == 2 else pair[0]
        return np.where(self.labels[self.members(pair)] == positive, 1.0, -1.0)

    def minimize(self, dual: Dual, pair: tuple[int, int], follow: Any) -> DualSolution:
        return self.problem.minimize(dual, *self._views(pair), follow=follow)

    def _views(self, pair: tuple[int, int]) -> tuple[int, ...]:
        return () if len(self.classes) == 2 else pair


@estimator(kw_only=True)
class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """A vote of machines, one for each pair of classes; see SVC.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights of classes, positive, which multiply those of the points; "balanced" makes the sums
        of the weights of all classes equal.
    decision_function_shape : {"ovr", "ovo"}
        Whether `decision_function` has a column for each class, or for each pair of classes.
    break_ties : bool
        Whether equal votes are decided by the values of f.
    """

    class_weight: dict | str | None = parameter(StrOptions({"balanced"}), dict, None, default=None)
    decision_function_shape: str = parameter(StrOptions({"ovr", "ovo"}), default="ovr")
    break_ties: bool = parameter("boolean", default=False)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a machine to each pair of classes of the labels y, (n,).

        Weights multiply C, point by point; a point of weight 0 or less is left out.  A class is
        one that has points of positive weight.
        """
        data = self._sorted(X, y, sample_weight)
        self._learn(data, self._duals(data))
        return self

    @abstractmethod
    def _duals(self, data: Sorted) -> list[Dual]:
        """Return the dual of each pair of classes."""

    @abstractmethod
    def _scale(self, solution: DualSolution) -> float:
        """Return what f and b are to be divided by, so that the margin is at f + b = +-1."""

    @abstractmethod
    def _read(self, data: Sorted) -> str:
        """Set what else a fit has learned, and return what the report is to say about it."""

    @abstractmethod
    def _refuse_one_class(self, name: Any) -> None:
        """Raise an error that says that all points are of this class."""

    # ------------------------------------------------------------------ a fit

    def _sorted(self, X: Any, y: Any, sample_weight: Any) -> Sorted:
        X, y = self._accept(X, y)
        check_classification_targets(y)
        w = self._check_weights(sample_weight, X)
        some = np.flatnonzero(w)
        classes, labels = np.unique(y[some], return_inverse=True)
        if len(classes) < 2:
            if len(np.unique(y)) < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got 1 class: "
                    f"{classes.tolist()}"
                )
            self._refuse_one_class(classes.tolist()[0])
        each = np.ones(len(classes))
        if self.class_weight is not None:
            each = class_weights(self.class_weight, classes, np.bincount(labels, w[some]))
        sizes = None
        if len(classes) > 2:
            order = np.argsort(labels, kind="stable")
            some, labels, sizes = some[order], labels[order], np.bincount(labels).tolist()
        problem = self._problem(X, some, w[some], sizes)
        return Sorted(X, problem, labels, w[some], classes, each)

    def _learn(self, data: Sorted, duals: list[Dual], note: str = "") -> list[DualSolution]:
        """Solve the duals, set all that a fit learns, and return the solutions."""
        problem, pairs, q = data.problem, data.pairs(), len(data.classes)
        follow, before, found = self._follow(), problem.counts, []
        for number, (pair, dual) in enumerate(zip(pairs, duals, strict=True), start=1):
            if follow and len(pairs) > 1:
                a, b = data.classes[list(pair)]
                follow.title = f"{a} against {b} ({number} of {len(pairs)}): "
            found.append(data.minimize(dual, pair, follow))
        D = np.zeros((len(data.labels), q - 1))
        functions = np.zeros((len(D), len(pairs))) if problem.phi else None
        intercepts, held = np.empty(len(pairs)), np.zeros(len(D), dtype=bool)
        for p, (pair, dual, solution) in enumerate(zip(pairs, duals, found, strict=True)):
            (a, b), members, rho = pair, data.members(pair), self._scale(solution)
            labels = data.labels[members]
            with np.errstate(divide="ignore", invalid="ignore"):  # looked at by _keep
                coefficients = solution.coefficients / rho
                intercepts[p] = -solution.multipliers.mean() / rho
            D[members, np.where(labels == a, b - 1, a)] = coefficients
            held[members] |= at_bound(dual, solution)
            if functions is not None:
                functions[members, p] = coefficients
        self._keep(data.X, problem, data.labels, D, intercepts, held, functions)
        self.classes_, self.class_weight_ = data.classes, data.class_weights
        self.n_iter_ = np.array([solution.report.n_iter for solution in found], dtype=np.int32)
        self._tell(data.X, problem, found, before, note or self._read(data))
        return found

    # ------------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b for two classes, (n,), positive for `classes_[1]`.

        For more classes and "ovo" the f of each pair, (n, pairs), positive for its first class; for
        "ovr" the votes for each class, (n, n_classes), plus something smaller than 1/3 that rises
        with the sum of the f.  For a precomputed kernel X is k(X, training points).
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return _ovr_decision_function(values < 0, -values, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the most votes; of equals the first, unless `break_ties`."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken "
                "by the values of 'ovr'"
            )
        if len(self.classes_) == 2:
            best = (self.decision_function(X) >= 0).astype(np.intp)  # a tie is LIBSVM's: f <= 0
        elif self.break_ties:
            best = self.decision_function(X).argmax(axis=1)
        else:
            best = votes_of_pairs(self._values(X), len(self.classes_)).argmax(axis=1)
        return self.classes_[best]
