"""Kernel logistic regression: log-odds in the RKHS, for two classes or more."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from ..kernels import reads_all
from ..solvers import Status
from ._fitting import fitting
from ._logistic_base import LogisticEstimator, Problem
from ._parameters import POSITIVE, estimator, parameter
from ._sample import Sample

__all__ = ["KernelLogisticRegression"]


@estimator()
class KernelLogisticRegression(LogisticEstimator):
    """Minimise  C sum_i v_i log-loss(y_i, f(x_i) + b) + |f|^2 / 2  over the RKHS of the kernel.

    Two classes: one f, log-loss = log(1 + exp(-y f)), p(y = 1 | x) = 1 / (1 + exp(-f(x) - b)).
    More: one f_c for each, log-loss = -log softmax(f)_y, all fitted together (multinomial; never
    one class against the rest); they sum to 0.  The names are those of LogisticRegression, to which
    the linear kernel leads back: C multiplies the data term, and intercepts b are not penalised.

    ============ ========================================================= ======================
    solver       method                                                    memory in bytes
    ============ ========================================================= ======================
    "newton"     exact: Newton's method in coordinates F with F F^T = K    about 40 n^2
    "path"       the same, along a path of increasing C that ends at C     about 40 n^2
    "nystroem"   Newton's for functions on `rank` landmarks: approximate   16 n rank + 24 rank^2
    "gradient"   exact: accelerated gradient descent; many cheap steps     about 24 n^2
    "auto"       "newton" up to 5000 points that fit `max_memory`; else
                 "nystroem", with a warning
    ============ ========================================================= ======================

    Parameters
    ----------
    C : float
        The weight of the data against |f|^2 / 2; 1 / C is the ridge.
    gamma : float, "scale", "auto", "median" or None
        For kernels given by name.  "scale" is 1 / (n_features Var X), as in SVC: it follows the
        units of the data, so that the default fits what has not been standardised.  Weights of
        points and of classes count in Var X.
    rank : int or None
        Landmarks of "nystroem"; None for 1000, or all points if there are fewer ("auto" takes
        fewer if these do not fit `max_memory`).  Exact solvers have no landmarks.
    warm_start : bool
        Begin with the solution of the last fit, for instance at another C.

    Attributes
    ----------
    classes_ : ndarray
        The classes that have points of positive weight.
    expansion_ : Expansion
        The f, as a value: one function for two classes, else one for each.
    X_fit_ : points
        The points that f is expanded in: landmarks, or training points that depend on no others in
        the RKHS (of a singular K fewer than all; indices for a precomputed kernel).
    dual_coef_ : ndarray of shape (len(X_fit_), n_functions)
    intercept_ : ndarray of shape (n_functions,)
    n_iter_ : int
        Newton steps: factors of the second derivatives.  Each serves several directions; how many
        more there were is in ``report_.certificate["corrections"]``.
    kernel_ : Kernel
        The kernel with all its values.
    solver_, report_
        The solver, and what it did.  ``report_.certificate`` has the objective, the last Newton
        decrement, and the gap: the objective is at most so much above its minimum over functions
        on `X_fit_`.  "left out" bounds what all others could lower it by beyond that: for an exact
        solver rounding, for "nystroem" what landmarks cost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.predict_proba([[5.9, 3.0, 5.0, 1.8]]).round(2)
    array([[0.  , 0.28, 0.72]])
    >>> model.report_.certificate["gap"] < 1e-8
    True
    """

    C: float = parameter(POSITIVE, default=1.0)
    _: KW_ONLY
    warm_start: bool = parameter("boolean", default=False)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        known = self._known()
        sample = self._sample(X, y, sample_weight, labels=True, copy=False)
        problem = self._problem(sample)
        start = self._start(problem, sample) if self.warm_start and known == self._known() else None
        found = self._minimize(problem, problem.risk, self.C, start)
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        self._keep(problem, found, self._certified(problem, found, self.C))
        self._say(f"{self.n_iter_} steps: {self.report_.status.value}")
        return self

    def _known(self) -> tuple[bool, int | None]:
        """Return the kind of points: whether rows of values, and of how many numbers."""
        return self._precomputed, getattr(self, "n_features_in_", None)

    def _start(self, problem: Problem, sample: Sample) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the last solution, projected on what f may be now; None if it does not fit."""
        if not np.array_equal(getattr(self, "classes_", ()), problem.classes):
            return None
        if reads_all(self.kernel_) != self._precomputed:
            return None
        at = problem.phi.points if sample.values is None else sample.rows(problem.phi.points)
        return problem.phi.project(self.expansion_(at)), self.intercept_
