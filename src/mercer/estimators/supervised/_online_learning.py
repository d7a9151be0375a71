"""Estimators that learn from one point at a time, with `fit` in several passes and `partial_fit`.

`OnlineEstimator` is the base class of the regressors of this module, kernel recursive least squares
and stochastic gradient descent (NORMA), and of the kernel perceptron.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ..._core import Points, budget_in_bytes, concatenate, length, take, warn_caller
from ...expansion import Expansion
from ...gram import gram
from ...kernels import Kernel, unwrap
from ...solvers import (
    Norma,
    OnlineLearner,
    RecursiveLeastSquares,
    Report,
    Schedule,
    Status,
    tile_bytes,
)
from .._kernel_estimator import DualEstimator, DualRegressor, KernelLike, Seed
from .._parameters import FittedPoints, estimator, fit_method, fitted, parameter
from .._training_sample import Sample

# With at most this many points, K is stored for several passes if it fits the memory budget
# (128 MB in float64); with more points, entries of K are evaluated again in each pass.
_MAX_POINTS_STORED_GRAM = 4096
_BLOCK_ROWS = 256  # number of points whose kernel values are computed together


@estimator(kw_only=True)
class OnlineEstimator(DualEstimator):
    """Base class of the estimators that learn from one point at a time.

    Parameters
    ----------
    budget : int or None
        Maximum number of points in the expansion of f; None means no limit. A smaller budget makes
        predictions faster and less accurate. Set it for streams without an end.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    budget: int | None = parameter("positive integer", None, default=None)

    n_iter_: int = fitted()
    t_: int = fitted()
    mistakes_: np.ndarray = fitted()
    _learner: OnlineLearner = fitted(per_point=True)
    _kept: FittedPoints = fitted(per_point=True)
    _flat: bool = fitted()

    @staticmethod
    def _stores_gram(n: int, max_iter: int) -> bool:
        """Whether K is stored, if it fits the memory budget, because it is read several times."""
        return n <= _MAX_POINTS_STORED_GRAM and max_iter > 1

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, kernel = len(sample), self._planned_kernel(sample)
        m = min(n, getattr(self, "budget", None) or n)
        tiles, matrix = tile_bytes(kernel, sample.points), 8 * n * n
        stored = self._stores_gram(n, getattr(self, "max_iter", 1))
        stored &= matrix + tiles <= budget_in_bytes(self.max_memory)
        memory = tiles + matrix * stored + self._workspace(m)
        option = {"solver": "online", "storage": "dense" if stored else "tiled", "exact": False}
        rank = None if m == n else m
        return f"{type(self).__name__} of {n} points", {**option, "extra": memory, "rank": rank}

    def _workspace(self, m: int) -> int:
        """Return the memory for m points in the expansion, in bytes."""
        return 16 * m * _BLOCK_ROWS

    def _can_stream(self) -> bool:
        """Return True if `partial_fit` is available; raise AttributeError otherwise."""
        if self._precomputed:
            raise AttributeError(
                "partial_fit does not support kernel='precomputed', because kernel values between "
                "new and old points would be missing; use kernel=Precomputed(K) and indices as "
                "points"
            )
        return True

    def _resolve_kernel(self, sample: Sample) -> Kernel:
        """Return the kernel with its parameters resolved on the points of the sample."""
        return sample.resolve(self._make_kernel(self.gamma))

    def _learn_passes(
        self,
        learner: OnlineLearner,
        sample: Sample,
        Y: np.ndarray,
        kernel: Kernel,
        schedule: Schedule,
    ) -> None:
        """Learn from points in memory, in as many passes as the schedule specifies."""
        learner.max_memory = self.max_memory
        evaluated, n = sample.evaluated(kernel, self.max_memory), len(sample)
        store_gram = sample.values is not None or self._stores_gram(n, schedule.max_iter)
        K = gram(
            evaluated,
            sample.points,
            storage="auto" if store_gram else "tiled",
            max_memory=self.max_memory,
        )
        report, mistakes = schedule.run(learner, K, Y, sample.counts, self._progress_callback)
        unwrap(evaluated)
        if report.status is Status.NOT_CONVERGED:
            warn_caller(report.message, ConvergenceWarning)
        self._set_fitted(learner, sample, sample.points, kernel, report, mistakes)

    def _learn_stream(self, sample: Sample, Y: np.ndarray, make_learner: Any) -> None:
        """Learn from new points in one pass; the first call creates the learner."""
        new_points, is_continued = sample.points, hasattr(self, "_learner")
        if is_continued:
            # Update a copy, so that an interrupted call leaves the estimator unchanged.
            learner, kernel, past_mistakes = deepcopy(self._learner), self.kernel_, self.mistakes_
            points = concatenate(self._kept, new_points)
        else:
            kernel, past_mistakes = self._resolve_kernel(sample), np.zeros(0)
            learner, points = make_learner(kernel), new_points
        learner.max_memory = self.max_memory
        indices = np.arange(length(points))
        K = gram(kernel, points, storage="tiled", max_memory=self.max_memory)
        first = len(indices) - len(sample)
        _, mistakes = learner.learn(K, indices[first:], Y, sample.counts)
        counts = np.append(past_mistakes, mistakes.sum())
        report = Report(
            type(learner).__name__,
            Status.APPROXIMATE,
            len(counts),
            message=f"{int(learner.seen.max())} points processed, one at a time",
            certificate=learner.certificate,
        )
        self._log_progress(
            f"{counts[-1]:.0f} {learner.counted} at {len(sample)} new points; "
            f"{len(learner.support)} points are stored"
        )
        self._set_fitted(learner, sample, points, kernel, report, counts)

    def _set_fitted(
        self,
        learner: OnlineLearner,
        sample: Sample,
        points: Points,
        kernel: Kernel,
        report: Report,
        mistakes: np.ndarray,
    ) -> None:
        """Set the fitted attributes; only the points in the expansion of f are stored."""
        A, b = learner.solution()
        flat = sample.targets is not None and sample.flat
        self._kept = take(points, learner.support)
        learner.support = np.arange(len(learner.support))
        expansion_points = self._kept
        if not len(A):  # f = 0, but an expansion needs at least one point
            expansion_points, A = take(points, np.arange(1)), np.zeros((1, A.shape[1]))
        self._learner, self.kernel_, self.report_ = learner, kernel, report
        self.n_iter_, self.t_, self.mistakes_ = report.n_iter, int(learner.seen.max()), mistakes
        self._flat = flat
        self._set_expansion(Expansion(kernel, expansion_points, A), b, flat)

    def _refuse_compressed(self) -> None:
        """Raise an error if the model was compressed, because it cannot be updated."""
        if hasattr(self, "expansion_") and not hasattr(self, "_learner"):
            raise ValueError(
                "a compressed model cannot be updated by partial_fit; use the original model"
            )


@estimator(kw_only=True)
class OnlineRegressor(OnlineEstimator, DualRegressor):
    """Base class of the regressors that learn from one point at a time."""

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
        Threshold for adding a point to the dictionary, as a fraction of k(x, x). A larger nu gives
        a smaller dictionary; 10^-4 to 10^-2 are typical.
    alpha : float
        Regularisation: the weight of |f|^2. Choose it as in `KernelRidge`, about the variance of
        the noise relative to that of y.
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
    intercept_ : float or ndarray of shape (n_targets,)
        Zero, because f has no intercept.
    mistakes_ : ndarray of shape (n_iter_,)
        Number of points processed in each call, because each of them changes f.
    n_iter_ : int
        Number of calls of `partial_fit`; 1 after `fit`.
    t_ : int
        Number of points processed.
    report_ : Report
        The report of the learner, with the number of points in the expansion.

    See Also
    --------
    KernelRidge : The same objective, if all points are available.
    OnlineKernelRegressor : Cheaper updates and other losses, less accurate; adapts to changes.
    sklearn.linear_model.SGDRegressor : Linear models for streams; combine it with `Nystroem`
        features.

    References
    ----------
    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", IEEE Transactions on
    Signal Processing 52, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRecursiveLeastSquares
    >>> X = np.linspace(0, 6, 1000)[:, None]
    >>> model = KernelRecursiveLeastSquares(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), model.predict([[1.5]]).round(2)
    (22, array([1.]))
    """

    nu: float = parameter("non-negative", default=1e-3)
    _: KW_ONLY
    alpha: float = parameter("positive", default=1e-3)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the points in one pass, in the given order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors.

        Returns
        -------
        self : KernelRecursiveLeastSquares
            The fitted estimator.
        """
        sample = self._sample(X, y, sample_weight).doubled()
        self._learn(sample, Schedule(max_iter=1, tol=None, shuffle=False))
        return self

    @available_if(lambda model: model._can_stream())
    @fit_method
    def partial_fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with new points, in one pass and in the given order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points. The first call also computes parameters that depend on the data, such as
            gamma="scale", so its points should be representative. kernel="precomputed" is not
            supported.
        y : array-like of shape (n,) or (n, n_targets)
            Targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors.

        Returns
        -------
        self : KernelRecursiveLeastSquares
            The updated estimator.
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
        Larger values reduce the influence of old points sooner; smaller values suit data that do
        not change over time.
    eta0 : float or None
        The initial step size. None means 1 / max_i k(x_i, x_i) over the first points, or 1 / (1 +
        max_i k(x_i, x_i)) with an intercept. Decrease it if the loss oscillates.
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
    mistakes_ : ndarray of shape (n_iter_,)
        Number of updates of f in each pass, or in each call of `partial_fit`.
    n_iter_ : int
        Number of passes, or of calls of `partial_fit`.
    t_ : int
        Number of points processed; each pass counts all points again.
    report_ : Report
        The report of the learner, with the number of points in the expansion.

    See Also
    --------
    KernelRecursiveLeastSquares : More accurate updates, for the squared error.
    KernelPerceptron : For class labels.
    KernelRidge : If all points are available.
    sklearn.linear_model.SGDRegressor : The linear case.

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Transactions on Signal
    Processing 52, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> model = OnlineKernelRegressor(gamma=1.0, budget=200).fit(X, np.sin(X[:, 0]))
    >>> len(model.X_fit_), bool(abs(model.predict([[1.5]])[0] - 1) < 0.1)
    (200, True)
    """

    eta0_: float = fitted()
    _learner: Norma = fitted(per_point=True)

    loss: str = parameter(
        {"squared_error", "huber", "epsilon_insensitive"}, default="squared_error"
    )
    _: KW_ONLY
    epsilon: float = parameter("non-negative", default=0.1)
    alpha: float = parameter("non-negative", default=1e-4)
    eta0: float | None = parameter("positive", None, default=None)
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter("positive integer", default=1000)
    tol: float | None = parameter("non-negative", None, default=1e-2)
    n_iter_no_change: int = parameter("positive integer", default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Make passes over the points until the loss stops decreasing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,) or (n, n_targets)
            Targets.

        Returns
        -------
        self : OnlineKernelRegressor
            The fitted estimator.
        """
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
    def partial_fit(self, X: Points, y: ArrayLike) -> Self:
        """Update the model with new points, in one pass and in the given order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points. The first call also computes parameters that depend on the data, such as
            gamma="scale" and eta0=None, so its points should be representative.
            kernel="precomputed" is not supported.
        y : array-like of shape (n,) or (n, n_targets)
            Targets.

        Returns
        -------
        self : OnlineKernelRegressor
            The updated estimator.
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
