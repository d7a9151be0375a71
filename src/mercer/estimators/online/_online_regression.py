"""Online regressors: kernel recursive least squares and stochastic gradient descent (NORMA)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ..._core import Points
from ...kernels import Kernel
from ...solvers import Norma, OnlineLearner, RecursiveLeastSquares, Schedule
from .._kernel_estimator import Seed
from .._parameters import (
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INTEGER,
    estimator,
    fit_method,
    fitted_attribute,
    parameter,
)
from .._training_sample import Sample
from ._online_estimator import OnlineEstimator


@estimator(kw_only=True)
class OnlineRegressor(MultiOutputMixin, RegressorMixin, OnlineEstimator):
    """Base class of the regressors that learn from one point at a time."""

    def predict(self, X: Points) -> np.ndarray:
        """Return f(x) + b for each point.

        For a precomputed kernel, X is the kernel matrix between the points and the training points.
        """
        values = self._values(X)
        return values[:, 0] if self._flat else values

    @abstractmethod
    def _make_learner(self, sample: Sample, kernel: Kernel) -> OnlineLearner:
        """Return a new learner with the parameters of this estimator."""

    def _learn(self, sample: Sample, schedule: Schedule) -> None:
        """Learn from points in memory, in as many passes as the schedule specifies."""
        kernel = self._resolve_kernel(sample)
        self._learn_passes(
            self._make_learner(sample, kernel), sample, sample.targets, kernel, schedule
        )

    def _learn_new(self, sample: Sample) -> None:
        """Learn from new points in one pass; raise an error if the number of targets changed."""
        if hasattr(self, "_learner"):
            n_before, n_now = self._learner.n_functions, sample.targets.shape[1]
            if (self._flat, n_before) != (sample.flat, n_now):
                raise ValueError(
                    f"y has {_describe_columns(n_now, sample.flat)}, but had "
                    f"{_describe_columns(n_before, self._flat)} in the first call to "
                    f"partial_fit; pass the same number of targets each time"
                )
        self._learn_stream(
            sample, sample.targets, lambda kernel: self._make_learner(sample, kernel)
        )


def _describe_columns(count: int, flat: bool) -> str:
    """Return a description of the shape of y for an error message."""
    return "one dimension" if flat else f"{count} columns"


@estimator()
class KernelRecursiveLeastSquares(OnlineRegressor):
    """Online kernel ridge regression on a sparse dictionary of points.

    After each point, f minimises

        sum_t w_t (y_t - f(x_t))^2 + alpha |f|^2

    over expansions in a dictionary of m points, at a cost of O(m^2) per update (Engel, Mannor and
    Meir, 2004).  A point x enters the dictionary if the squared distance of its feature vector
    from the span of the dictionary exceeds nu k(x, x) (approximate linear dependence).  Otherwise
    its feature vector is replaced by the projection on that span.  With nu = 0 and distinct
    points, f is the solution of KernelRidge.

    Parameters
    ----------
    nu : float
        Threshold for adding a point to the dictionary, as a fraction of k(x, x).  A larger nu gives
        a smaller dictionary.
    alpha : float
        Regularisation: the weight of |f|^2.
    budget : int or None
        Maximum number of points in the dictionary; None means no limit.  When it is full,
        new points are projected on its span.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
        Coefficients of f.
    X_fit_ : points
        The dictionary.
    expansion_ : Expansion
        The fitted f.
    n_iter_ : int
        Number of calls of `partial_fit`; 1 after `fit`.
    t_ : int
        Number of points processed.
    kernel_ : Kernel
        The kernel with all parameters resolved.
    report_ : Report
        The report of the learner, with the number of points in the expansion.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRecursiveLeastSquares
    >>> X = np.linspace(0, 6, 1000)[:, None]
    >>> model = KernelRecursiveLeastSquares(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), model.predict([[1.5]]).round(2)
    (22, array([1.]))
    """

    nu: float = parameter(NON_NEGATIVE, default=1e-3)
    _: KW_ONLY
    alpha: float = parameter(POSITIVE, default=1e-3)

    @fit_method
    def fit(self, X: Points, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the points in one pass, in the given order.

        Sample weights multiply the squared errors.
        """
        sample = self._sample(X, y, sample_weight).doubled()
        self._learn(sample, Schedule(max_iter=1, tol=None, shuffle=False))
        return self

    @available_if(lambda model: model._can_stream())
    @fit_method
    def partial_fit(self, X: Points, y: Any, sample_weight: Any = None) -> Self:
        """Update the model with new points, in one pass and in the given order.

        The first call also computes parameters that depend on the data, such as gamma="scale", from
        its points.
        """
        self._refuse_compressed()
        reset = not hasattr(self, "_learner")
        sample = self._sample(X, y, sample_weight, reset=reset).doubled()
        self._learn_new(sample)
        return self

    def _workspace(self, m: int) -> int:
        return 33 * m * m + super()._workspace(m)  # triangular factors, which are copied to grow

    def _make_learner(self, sample: Sample, kernel: Kernel) -> RecursiveLeastSquares:
        budget = None if self.budget is None else int(self.budget)
        # nu is at least 1e-10, so that rounding errors alone do not enlarge the dictionary.
        nu, q = max(float(self.nu), 1e-10), sample.targets.shape[1]
        return RecursiveLeastSquares(q, False, nu=nu, alpha=float(self.alpha), budget=budget)


@estimator()
class OnlineKernelRegressor(OnlineRegressor):
    """Online kernel regression by stochastic gradient descent in the RKHS (NORMA).

    The objective  E loss(y, f(x) + b) + alpha |f|^2 / 2  is minimised by one step per point:

        f <- (1 - eta_t alpha) f - eta_t loss' k(x, .),        b <- b - eta_t loss'

    where loss' is the derivative of the loss and eta_t = eta0 / sqrt(t) (Kivinen, Smola and
    Williamson, 2004).  When the expansion has `budget` points, a new point replaces the point s
    with the smallest contribution to f, |a_s| sqrt(k(x_s, x_s)).  This is usually an old point,
    because coefficients decay.

    Parameters
    ----------
    loss : {"squared_error", "huber", "epsilon_insensitive"}
        With the prediction p = f(x) + b: "squared_error": (y - p)^2 / 2.  "huber": the same up to
        |y - p| = epsilon, and linear beyond.  "epsilon_insensitive": max(0, |y - p| - epsilon);
        points that are predicted within epsilon do not enter the expansion.
    epsilon : float
        Threshold of the losses "huber" and "epsilon_insensitive", in units of y.
    alpha : float
        Regularisation: the weight of |f|^2 / 2, which determines how fast coefficients decay.
    eta0 : float or None
        The initial step size.  None means 1 / max_i k(x_i, x_i) over the first points, or
        1 / (1 + max_i k(x_i, x_i)) with an intercept.
    fit_intercept : bool
        Whether to learn the intercept b; otherwise it is 0.
    max_iter : int
        Maximum number of passes over the points in `fit`; `partial_fit` makes one pass.
    tol : float or None
        Training stops if the mean loss did not fall below its best value by this fraction in
        `n_iter_no_change` consecutive passes.  None means to make `max_iter` passes.
    n_iter_no_change : int
        Number of passes without progress after which `fit` stops.
    shuffle : bool
        Whether `fit` processes the points in a new random order in each pass.
    random_state : int, RandomState or None
        Seed for shuffling; None means 0, so that fits are reproducible.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
        Coefficients of f.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    X_fit_ : points
        The points of the expansion of f.
    expansion_ : Expansion
        The fitted f, without the intercept.
    eta0_ : float
        The initial step size that was used.
    n_iter_ : int
        Number of passes, or of calls of `partial_fit`.
    t_ : int
        Number of points processed; each pass counts all points again.
    kernel_ : Kernel
        The kernel with all parameters resolved.
    report_ : Report
        The report of the learner, with the number of points in the expansion.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> model = OnlineKernelRegressor(gamma=1.0, budget=200).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), bool(abs(model.predict([[1.5]])[0] - 1) < 0.1)
    (200, True)
    """

    _learner: Norma = fitted_attribute()

    loss: str = parameter(
        StrOptions({"squared_error", "huber", "epsilon_insensitive"}), default="squared_error"
    )
    _: KW_ONLY
    epsilon: float = parameter(NON_NEGATIVE, default=0.1)
    alpha: float = parameter(NON_NEGATIVE, default=1e-4)
    eta0: float | None = parameter(POSITIVE, None, default=None)
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter(POSITIVE_INTEGER, default=1000)
    tol: float | None = parameter(NON_NEGATIVE, None, default=1e-2)
    n_iter_no_change: int = parameter(POSITIVE_INTEGER, default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    @fit_method
    def fit(self, X: Points, y: Any) -> Self:
        """Make passes over the points until the loss stops decreasing."""
        sample = self._sample(X, y).doubled()
        schedule = Schedule(
            self.max_iter,
            self.tol,
            self.n_iter_no_change,
            self.shuffle,
            self.random_state,
            relative=True,
        )
        self._learn(sample, schedule)
        self.eta0_ = self._learner.eta
        return self

    @available_if(lambda model: model._can_stream())
    @fit_method
    def partial_fit(self, X: Points, y: Any) -> Self:
        """Update the model with new points, in one pass and in the given order.

        The first call also computes parameters that depend on the data, such as gamma="scale" and
        eta0=None, from its points.
        """
        self._refuse_compressed()
        sample = self._sample(X, y, reset=not hasattr(self, "_learner")).doubled()
        self._learn_new(sample)
        self.eta0_ = self._learner.eta
        return self

    def _make_learner(self, sample: Sample, kernel: Kernel) -> Norma:
        largest_diagonal = float(np.max(sample.evaluated(kernel).diag(sample.points)))
        squared_norm = (
            largest_diagonal + self.fit_intercept
        )  # |phi(x)|^2, where the intercept counts as a constant feature 1
        eta = (
            1.0 / max(squared_norm, np.finfo(float).tiny) if self.eta0 is None else float(self.eta0)
        )
        if eta * self.alpha >= 1:
            raise ValueError(
                f"eta0 * alpha = {eta * self.alpha:.3g} must be below 1, because the first step "
                f"multiplies f by 1 - eta0 * alpha; choose a smaller eta0 or alpha"
            )
        return Norma(
            sample.targets.shape[1],
            self.fit_intercept,
            loss=self.loss,
            epsilon=float(self.epsilon),
            eta=eta,
            alpha=float(self.alpha),
            budget=None if self.budget is None else int(self.budget),
        )
