"""Regressors that see points one after the other: recursive least squares, and NORMA."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ..kernels import Kernel
from ..solvers import Norma, OnlineLearner, RecursiveLeastSquares, Schedule
from ._base import Seed
from ._online import OnlineEstimator
from ._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._sample import Sample

__all__ = ["KernelRecursiveLeastSquares", "OnlineKernelRegressor"]


@estimator(kw_only=True)
class OnlineRegressor(MultiOutputMixin, RegressorMixin, OnlineEstimator):
    """A regressor that learns from one point after the other."""

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point; for a precomputed kernel X is k(X, training points)."""
        values = self._values(X)
        return values[:, 0] if self._flat else values

    @abstractmethod
    def _made(self, sample: Sample, kernel: Kernel) -> OnlineLearner:
        """Return a learner that has seen nothing."""

    def _learn(self, sample: Sample, schedule: Schedule) -> None:
        """Learn from points that stay."""
        kernel = self._resolved(sample)
        self._pass_over(self._made(sample, kernel), sample, sample.targets, kernel, schedule)

    def _see(self, sample: Sample) -> None:
        """Learn from points that come once, and check that targets are as before."""
        if hasattr(self, "_learner"):
            before, now = self._learner.n_functions, sample.targets.shape[1]
            if (self._flat, before) != (sample.flat, now):
                raise ValueError(
                    f"y has {_columns(now, sample.flat)}, but had {_columns(before, self._flat)} "
                    f"in the first call to partial_fit; give as many targets each time"
                )
        self._take_in(sample, sample.targets, lambda kernel: self._made(sample, kernel))


def _columns(count: int, flat: bool) -> str:
    return "no second axis" if flat else f"{count} columns"


@estimator()
class KernelRecursiveLeastSquares(OnlineRegressor):
    """Minimise  sum_t w_t (y_t - f(x_t))^2 + alpha |f|^2  after each point, in O(m^2).

    f lives on m points that do not depend on each other: x is kept if more than the part nu of
    k(x, x) is outside of the span of those before, and counts as its projection otherwise (Engel,
    Mannor and Meir, 2004).  With nu = 0, and points that all differ, f is that of KernelRidge.

    Parameters
    ----------
    nu : float
        Which part of k(x, x) must be new for a point to be kept: larger for fewer points.
    alpha : float
        The ridge.
    budget : int or None
        At most so many points are kept; further ones count as their projections.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    X_fit_ : points
        Those kept.
    expansion_ : Expansion
    n_iter_, t_ : int
        Calls of `partial_fit` (1 for `fit`), and points seen.
    kernel_, report_

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRecursiveLeastSquares
    >>> X = np.linspace(0, 6, 1000)[:, None]
    >>> model = KernelRecursiveLeastSquares(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), model.predict([[1.5]]).round(2)
    (22, array([1.]))
    """

    nu: float = parameter(AT_LEAST_0, default=1e-3)
    _: KW_ONLY
    alpha: float = parameter(POSITIVE, default=1e-3)

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """See the points once, in their order; weights multiply the squared errors."""
        sample = self._sample(X, y, sample_weight).doubled()
        self._learn(sample, Schedule(max_iter=1, tol=None, shuffle=False))
        return self

    @available_if(lambda model: model._can_stream())
    @fitting
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """See further points; the first call also resolves rules like gamma="scale"."""
        self._require_whole()
        reset = not hasattr(self, "_learner")
        sample = self._sample(X, y, sample_weight, reset=reset).doubled()
        self._see(sample)
        return self

    def _made(self, sample: Sample, kernel: Kernel) -> RecursiveLeastSquares:
        budget = None if self.budget is None else int(self.budget)
        # rounding alone must not make a point look new
        nu, q = max(float(self.nu), 1e-10), sample.targets.shape[1]
        return RecursiveLeastSquares(q, False, nu=nu, alpha=float(self.alpha), budget=budget)


@estimator()
class OnlineKernelRegressor(OnlineRegressor):
    """Descend  E loss(y, f(x) + b) + alpha |f|^2 / 2  by a step at each point (NORMA).

        f <- (1 - eta_t alpha) f - eta_t loss' k(x, .),        b <- b - eta_t loss'

    with eta_t = eta0 / sqrt(t) (Kivinen, Smola and Williamson, 2004).  With a `budget`, a point too
    many takes the place of the one whose part of f, |a_s| sqrt(k(x_s, x_s)), is smallest: old ones
    decay.

    Parameters
    ----------
    loss : {"squared_error", "huber", "epsilon_insensitive"}
        (y - p)^2 / 2; the same up to |y - p| = epsilon and linear beyond;
        max(0, |y - p| - epsilon), which adds no point that is predicted well.
    epsilon : float
    alpha : float
        The decay: the weight of |f|^2 / 2.
    eta0 : float or None
        The first step; None for 1 / k(x, x), with the largest k(x, x) of the first points, and 1
        for the constant b.
    fit_intercept : bool
        Whether b changes.
    max_iter : int
        Passes over the points of `fit`; `partial_fit` makes one.
    tol : float or None
        Stop when the loss was not this part of its best below it in `n_iter_no_change` passes; None
        to make `max_iter` passes.
    n_iter_no_change : int
    shuffle : bool
        Take the points of `fit` in a new order in each pass.
    random_state : int, RandomState or None
        For these orders; None stands for 0, so that fits repeat.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (m,) or (m, n_targets)
    intercept_ : float or ndarray of shape (n_targets,)
    X_fit_ : points
    expansion_ : Expansion
    eta0_ : float
    n_iter_, t_ : int
        Passes, and points seen, those of each pass counted.
    kernel_, report_

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> model = OnlineKernelRegressor(gamma=1.0, budget=200).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), bool(abs(model.predict([[1.5]])[0] - 1) < 0.1)
    (200, True)
    """

    _learner: Norma = learned()

    loss: str = parameter(
        StrOptions({"squared_error", "huber", "epsilon_insensitive"}), default="squared_error"
    )
    _: KW_ONLY
    epsilon: float = parameter(AT_LEAST_0, default=0.1)
    alpha: float = parameter(AT_LEAST_0, default=1e-4)
    eta0: float | None = parameter(POSITIVE, None, default=None)
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter(COUNT, default=1000)
    tol: float | None = parameter(AT_LEAST_0, None, default=1e-2)
    n_iter_no_change: int = parameter(COUNT, default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Make passes over the points until no more is gained."""
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
    @fitting
    def partial_fit(self, X: Any, y: Any) -> Self:
        """See further points once, in their order; the first call also resolves gamma and eta0."""
        self._require_whole()
        sample = self._sample(X, y, reset=not hasattr(self, "_learner")).doubled()
        self._see(sample)
        self.eta0_ = self._learner.eta
        return self

    def _made(self, sample: Sample, kernel: Kernel) -> Norma:
        largest = float(np.max(sample.evaluated(kernel).diag(sample.points)))
        size = largest + self.fit_intercept  # of the features, the constant among them
        eta = 1.0 / max(size, np.finfo(float).tiny) if self.eta0 is None else float(self.eta0)
        if eta * self.alpha >= 1:
            raise ValueError(
                f"eta0 * alpha = {eta * self.alpha:.3g} must be below 1: a step takes away "
                f"this part of f"
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
