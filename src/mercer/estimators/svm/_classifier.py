"""Support vector classification: one machine for each pair of classes, and their votes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ...solvers import Dual, DualSolution
from .._fitting import fitting
from .._parameters import estimator, parameter
from .._sample import class_weights
from ._machine import SupportVectorMachine
from ._pairs import Pair, Pairs, votes_of_pairs
from ._problem import Problem

__all__ = ["Classes", "SupportVectorClassifier"]


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a fit, with the points as the solver reads them."""

    problem: Problem
    weights: np.ndarray  # one for each class, which multiplies those of its points

    @property
    def pairs(self) -> Pairs:
        return self.problem.pairs

    @property
    def sums(self) -> np.ndarray:
        """The weight of each class, without the weights of classes."""
        return np.bincount(self.problem.sample.labels, self.problem.sample.counts)

    def name(self, pair: Pair) -> list[Any]:
        """Return the labels that the user has given to the classes of a pair."""
        return self.problem.sample.classes[list(pair)].tolist()


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

    _one_class_left: ClassVar[str] = (
        "Invalid input - all samples with positive weights belong to the same class: {!r}"
    )

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a machine to each pair of classes of the labels y, (n,).

        Weights multiply C, point by point; a point of weight 0 or less is left out.  A class is
        one that has points of positive weight.
        """
        data = self._classes(X, y, sample_weight)
        self._learn(data, self._duals(data))
        return self

    @abstractmethod
    def _duals(self, data: Classes) -> list[Dual]:
        """Return the dual of each pair of classes."""

    def _scale(self, solution: DualSolution) -> float:
        """Return what f and b are to be divided by, so that the margin is at f + b = +-1."""
        return 1.0

    def _read(self, data: Classes) -> str:
        """Set what else a fit has learned, and return what the report is to say about it."""
        return ""

    # ------------------------------------------------------------------ a fit

    def _classes(self, X: Any, y: Any, sample_weight: Any) -> Classes:
        """Check what a fit was given; more than two classes are sorted."""
        sample, y = self._sample_of(X, y, sample_weight)
        check_classification_targets(y)
        classes, labels = np.unique(y[sample.kept], return_inverse=True)
        if len(classes) < 2:
            if len(np.unique(y)) < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got 1 class: "
                    f"{classes.tolist()}"
                )
            raise ValueError(self._one_class_left.format(classes.tolist()[0]))
        sample = replace(sample, classes=classes, labels=labels)
        if len(classes) > 2:
            sample = sample.take(np.argsort(labels, kind="stable"))
        weights = np.ones(len(classes))
        if self.class_weight is not None:
            sums = np.bincount(sample.labels, sample.counts)
            weights = class_weights(self.class_weight, classes, sums)
        return Classes(self._problem(sample), weights)

    def _learn(self, data: Classes, duals: list[Dual], note: str = "") -> list[DualSolution]:
        """Solve the duals, set all that a fit learns, and return the solutions."""
        problem, pairs = data.problem, data.pairs
        follow, before, found = self._follow(), problem.counts, []
        for number, (pair, dual) in enumerate(zip(pairs, duals, strict=True), start=1):
            if follow and len(pairs) > 1:
                a, b = data.name(pair)
                follow.title = f"{a} against {b} ({number} of {len(pairs)}): "
            found.append(problem.minimize(dual, pair, follow))
        self._keep(problem, found, [self._scale(solution) for solution in found])
        self.classes_, self.class_weight_ = problem.sample.classes, data.weights
        self.n_iter_ = np.array([solution.report.n_iter for solution in found], dtype=np.int32)
        self._tell(problem, found, before, note or self._read(data))
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
            # f = 0 is the second class, as in LIBSVM.
            best = (self.decision_function(X) >= 0).astype(np.intp)
        elif self.break_ties:
            best = self.decision_function(X).argmax(axis=1)
        else:
            best = votes_of_pairs(self._values(X), len(self.classes_)).argmax(axis=1)
        return self.classes_[best]
