"""Kernel logistic regression: log-odds in the RKHS, for two classes or more."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from .._errors import warn_caller
from .._points import take
from ..gram._landmarks import reads_all
from ..solvers import Status
from ._labels import Labelled
from ._logistic_base import LogisticEstimator, Problem

__all__ = ["KernelLogisticRegression"]


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
    C : float, default=1.0
        The weight of the data against |f|^2 / 2; 1 / C is the ridge.
    kernel : str, Kernel, callable or scikit-learn GP kernel, default="rbf"
        See KernelRidge.  Points may be of any kind that it takes.
    gamma : float, "scale", "auto", "median" or None, default="scale"
        For kernels given by name.  "scale" is 1 / (n_features Var X), as in SVC: it follows the
        units of the data, so that the default fits what has not been standardised.  Weights of
        points and of classes count in Var X.
    degree, coef0 : float, default=3, 1
        For "poly" and "sigmoid".
    kernel_params : dict, default=None
        Further arguments of a callable.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply those of the points.
    tol : float, default=1e-10
        Stop when the objective is certified to be at most this part of itself above its minimum.
    max_iter : int or None, default=None
        Newton steps, of which a few are enough, or iterations of "gradient", which needs many;
        None for 100 and 10 000.
    solver : {"auto", "newton", "path", "nystroem", "gradient"}, default="auto"
    rank : int or None, default=None
        Landmarks of "nystroem"; None for 1000, or all points if there are fewer ("auto" takes
        fewer if these do not fit `max_memory`).  Exact solvers have no landmarks.
    landmarks : str or points, default="auto"
        For "nystroem": "kmeans", "rpcholesky", "uniform", "kmeans++", "leverage", or the points
        themselves; "auto" is "kmeans" for a radial kernel on dense vectors, else "rpcholesky".
    warm_start : bool, default=False
        Begin with the solution of the last fit, for instance at another C.
    random_state : int, RandomState or None, default=None
        For the choice of landmarks; None stands for 0.
    max_memory : int, str or None, default=None
        Bytes, or "2 GiB"; None for half of the machine's memory.
    verbose : int, default=0
        1 to write the objective after each step.

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

    _parameter_constraints: ClassVar[dict] = {
        **LogisticEstimator._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        C: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: Any = None,
        fit_intercept: Any = True,
        class_weight: Any = None,
        tol: Any = 1e-10,
        max_iter: Any = None,
        solver: Any = "auto",
        rank: Any = None,
        landmarks: Any = "auto",
        warm_start: Any = False,
        random_state: Any = None,
        max_memory: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.rank = rank
        self.landmarks = landmarks
        self.warm_start = warm_start
        self.random_state = random_state
        self.max_memory = max_memory
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        known = self._known()
        data = Labelled.of(self, X, y, sample_weight, self.class_weight)
        problem = self._problem(data)
        start = self._start(problem, data.X) if self.warm_start and known == self._known() else None
        found = self._minimize(problem, problem.task, self.C, start)
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(found.report.message, ConvergenceWarning)
        self._keep(problem, found, self._certified(problem, found, self.C))
        self._say(f"{self.n_iter_} steps: {self.report_.status.value}")
        return self

    def _known(self) -> tuple[bool, int | None]:
        """Return the kind of points: whether rows of values, and of how many numbers."""
        return self._precomputed, getattr(self, "n_features_in_", None)

    def _start(self, problem: Problem, X: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the last solution, projected on what f may be now; None if it does not fit."""
        if not np.array_equal(getattr(self, "classes_", ()), problem.classes):
            return None
        if reads_all(self.kernel_) != self._precomputed:
            return None
        at = take(X, problem.phi.points) if self._precomputed else problem.phi.points
        return problem.phi.project(self.expansion_(at)), self.intercept_
