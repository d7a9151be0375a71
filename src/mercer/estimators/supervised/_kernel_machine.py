"""Kernel regression and classification with any convex loss and any increasing penalty.

The estimators minimise  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over functions f in the
RKHS and intercepts b, with sample weights w_i and an increasing function g.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import column_or_1d

from ..._core import Points, check_threads
from ...expansion import Expansion
from ...gram import working_bytes
from ...kernels import Kernel
from ...solvers import (
    Absolute,
    CustomLoss,
    EpsilonInsensitive,
    Huber,
    Loss,
    NormPenaltySolver,
    Penalty,
    Plan,
    Poisson,
    Quantile,
    RegularisedRisk,
    Squared,
    Status,
    plan_exact_or_landmarks,
    whiten,
)
from .._kernel_estimator import DualEstimator, KernelLike, LandmarkMixin
from .._label_encoding import CLASSIFICATION_LOSSES, WeightedClassifierMixin
from .._parameters import estimator, fit_method, fitted, parameter, predict_method, solver
from .._plan_method import n_of
from .._prediction_intervals import IntervalMixin, PredictionSetMixin
from .._training_sample import Sample

# Parameter constraint: a user-defined loss is an object with these methods.
CUSTOM_LOSS = HasMethods(["value", "gradient", "curvature"])


@estimator(kw_only=True)
class RegularisedRiskEstimator(LandmarkMixin, DualEstimator):
    """Base class of estimators that minimise a convex loss plus a penalty of the norm of f.

    See KernelMachineRegressor.

    Parameters
    ----------
    alpha : float
        The positive weight of the penalty. Larger values regularise more. Search a logarithmic
        grid, for instance 10^-6 to 10^2.
    penalty : {"ridge", "norm"}, pair (g, dg) or object
        The penalty g(|f|): g(t) = t^2 for "ridge" and t for "norm". A custom penalty is a pair of
        functions, g and its derivative, or an object with methods `value` and `derivative`. If
        there are several functions f, |f|^2 is the sum of their squared norms. If g is not convex,
        the result may be a local minimum only.
    fit_intercept : bool
        Whether to add an intercept b to each f, which is not penalised.
    solver : {"auto", "exact", "nystroem"} or NormPenaltySolver
        "exact" minimises over the whole RKHS, "nystroem" over the span of landmarks. "auto" means
        "exact" for up to 3000 points (1000 with several quantiles) if the memory allows, otherwise
        "nystroem" with a warning. A `NormPenaltySolver` object of `mercer.solvers` is exact and
        uses its own tol and max_iter.
    tol : float
        The solver stops when the objective exceeds its minimum by at most this fraction of itself.
        For losses with bounded slope, it is a fraction of at least 1e-4 times the loss of the best
        constant prediction. The default is very accurate; 1e-4 is enough for predictions.
    max_iter : int
        The maximum number of Newton or interior-point iterations. A few tens are usually enough.

    Attributes
    ----------
    X_fit_ : points
        The points of the expansion (their indices for a precomputed kernel). These are the training
        points of positive weight, or a subset that spans the others if all of them would be
        numerically unstable; with "nystroem", the landmarks.
    expansion_ : Expansion
        The fitted functions without intercepts.
    loss_ : Loss
        The loss that was minimised.
    n_iter_ : int
        The number of iterations.
    """

    loss: Any = parameter(CUSTOM_LOSS, default="squared")
    alpha: float = parameter("positive", default=1.0)
    penalty: Any = parameter(
        {"ridge", "norm"}, tuple, HasMethods(["value", "derivative"]), default="ridge"
    )
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    solver: Any = solver("nystroem", given=[NormPenaltySolver], default="auto")
    tol: float = parameter("positive", default=1e-9)
    max_iter: int = parameter("positive integer", default=100)

    loss_: Loss = fitted()
    n_iter_: int = fitted()

    def _memory(self, kernel: Kernel, sample: Sample, q: int) -> Callable[[object, int], int]:
        """Return a function of the solver and of m: the bytes for m coordinates, q functions."""
        n = len(sample)
        tiles = working_bytes(kernel, sample.subsample.points, None, 0, check_threads(None))
        return lambda _, m: tiles + NormPenaltySolver.workspace(n, m, q)

    def _plan(self, sample: Sample) -> Plan:
        n, kernel = len(sample), self._planned_kernel(sample)
        ordered = np.size(getattr(self, "quantile", 0.5)) > 1 and self.loss == "quantile"
        q = max(1, len(sample.classes) if sample.labels is not None else sample.targets.shape[1])
        q = np.size(self.quantile) if ordered else 1 if q == 2 and sample.labels is not None else q
        return plan_exact_or_landmarks(
            f"{self._loss_name} loss of {n} points, {n_of(q, 'function')}",
            *(kernel, sample.points),
            self.solver if isinstance(self.solver, str) else "exact",
            self._chosen,
            squares=4.0 + q * (1.0 if ordered else 0.3),
            features=(1.0, 0.6, 4.0 + q),
            needed=self._memory(kernel, sample, q),
            limit="ordered" if ordered else "exact",
            steps=8.0,
            max_memory=self.max_memory,
        )

    @property
    def _loss_name(self) -> str:
        return self.loss if isinstance(self.loss, str) else type(self.loss).__name__

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss, *, ordered: bool = False) -> None:
        """Fit f and the intercept to the targets Y of the points of positive weight.

        If `ordered` is True, the columns of Y are fitted by quantiles in increasing order, which
        must not cross at the training points.
        """
        sample = sample.doubled()
        w, (n, q) = sample.counts, Y.shape
        _check_loss(loss, Y, w)
        penalty = Penalty.of(self.penalty, float(self.alpha))
        kernel, points = sample.resolve(self._make_kernel(self.gamma)), sample.points
        values = sample.evaluated(kernel, self.max_memory)
        seen = sample.subsample.points
        phi = whiten(
            values,
            points,
            self.solver,
            self._chosen,
            self._memory(values, sample, q),
            exact="exact",
            ordered=ordered,
            what=f"the fit of {q} functions of {n} points",
            among=seen,
            max_memory=self.max_memory,
        )
        self._log_progress(f"{loss} of {n} points, {phi.message}")
        risk = RegularisedRisk(phi.F, Y, loss, w, intercept=self.fit_intercept, ordered=ordered)
        solver_is_name = isinstance(self.solver, str)
        solver = NormPenaltySolver(self.tol, self.max_iter) if solver_is_name else self.solver
        minimum = solver.minimize(risk, penalty, self._progress_callback)
        A = minimum.dual  # coefficients a_i of f; 0 where the loss has slope 0
        if phi.approximate or A is None:
            points, A = phi.points, phi.coefficients(minimum.weights)
        status = minimum.report.status
        if phi.approximate and status is Status.CONVERGED:
            status = Status.APPROXIMATE
        message = "; ".join(filter(None, [phi.message, minimum.report.message]))
        self.kernel_, self.loss_ = kernel, loss
        self._set_expansion(Expansion(kernel, points, A), minimum.intercept, flat=False)
        self.n_iter_ = minimum.report.n_iter
        self.report_ = dataclasses.replace(minimum.report, status=status, message=message)
        self._log_progress(f"objective {self.report_.certificate['objective']:.8g}: {status.value}")


def _check_loss(loss: Loss, Y: np.ndarray, w: np.ndarray) -> None:
    """Raise an error if a custom loss is invalid or the squared total loss at f = 0 overflows."""
    if isinstance(loss, CustomLoss):
        loss.check(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(w @ loss(np.zeros(Y.shape), Y).values)
        if not np.isfinite(total * total):
            raise ValueError(
                f"the losses at f = 0 add up to {total:.3g}, whose square overflows; the usual "
                f"cause is large targets (up to {np.abs(Y).max():.3g}) or weights. Scale them down"
            )


_REGRESSION_LOSSES = {"squared", "absolute", "huber", "quantile", "epsilon_insensitive", "poisson"}


@estimator()
class KernelMachineRegressor(
    IntervalMixin, MultiOutputMixin, RegressorMixin, RegularisedRiskEstimator
):
    """Kernel regression with any convex loss and any increasing penalty.

    Minimises  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over functions f in the RKHS of the
    kernel and intercepts b. By the representer theorem f = sum_i a_i k(x_i, .) for every convex
    loss and increasing g; -a_i is proportional to the slope of the loss at point i.

    ======================= ============================================ =========================
    loss                    with r = y - f                               equivalent to
    ======================= ============================================ =========================
    "squared"               r^2                                          KernelRidge
    "absolute"              |r|                                          median regression
    "quantile"              q max(r, 0) + (1 - q) max(-r, 0)             quantile regression
    "huber"                 r^2 up to |r| = epsilon, then linear         HuberRegressor, see Notes
    "epsilon_insensitive"   max(|r| - epsilon, 0)                        SVR, C = 1 / (2 alpha)
    "poisson"               exp(f) - y f, for counts with mean exp(f)    PoissonRegressor
    an object               value(y, f), gradient(y, f) and curvature(y, f): any smooth convex loss
    ======================= ============================================ =========================

    "squared", "poisson" and custom losses are minimised by Newton's method. The other losses are
    quadratic programs and are solved by an interior-point method. Both certify their accuracy
    in `report_`.

    **Several quantiles** are fitted jointly, with the constraint that they do not cross at any
    training point. Between training points they may still cross, but less than quantiles fitted
    separately. `predict` sorts the values at each point, which never increases their total
    distance from the true quantiles. Compared with sorting alone, the constraint has two
    advantages: the functions in `expansion_` are ordered at the training points, and less sorting
    is needed elsewhere.

    Parameters
    ----------
    loss : str or object
        See the table. "huber", "absolute" and "epsilon_insensitive" are robust against outliers.
        The methods of a custom loss are called with arrays y and f of shape (n,) for the points of
        positive weight, and return arrays of the same shape.
    quantile : float or list
        The quantile or quantiles of loss="quantile", each between 0 and 1.
    epsilon : float or None
        The parameter of "huber" (None means 1.35) and "epsilon_insensitive" (None means 0.1), in
        the units of y. Choose about the standard deviation of the noise; residuals beyond it count
        less than in least squares.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_functions)
        The coefficients of the expansion.
    intercept_ : float or ndarray of shape (n_functions,)
        The intercepts b.
    report_ : Report
        Its `certificate` contains the objective, |f|, the ridge parameter mu for which a squared
        penalty has the same minimum, the relative stationarity, and an upper bound of the objective
        minus its minimum.

    See Also
    --------
    KernelRidge : The squared loss, with more solvers.
    SVR : The epsilon-insensitive loss, for more points.
    GaussianProcessRegressor : Predictive distributions for Gaussian noise.
    KernelMachineClassifier : For class labels.
    sklearn.linear_model.QuantileRegressor : The linear case of "quantile".
    sklearn.linear_model.HuberRegressor : The linear case of "huber", with an estimated scale.
    sklearn.linear_model.PoissonRegressor : The linear case of "poisson".

    Notes
    -----
    HuberRegressor also fits a scale s. Its solution is obtained here with epsilon * s and alpha * s
    instead of epsilon and alpha.

    References
    ----------
    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

    Takeuchi, Le, Sears and Smola, "Nonparametric quantile estimation", Journal of Machine Learning
    Research 7, 2006.

    Chernozhukov, Fernández-Val and Galichon, "Quantile and probability curves without crossing",
    Econometrica 78, 2010.

    Examples
    --------
    Three quantiles of noise that grows with x:

    >>> import numpy as np
    >>> from mercer import KernelMachineRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 4, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.2 * X[:, 0] * rng.normal(size=200)
    >>> model = KernelMachineRegressor("quantile", quantile=[0.1, 0.5, 0.9], alpha=0.1).fit(X, y)
    >>> np.mean(y[:, None] <= model.predict(X), axis=0).round(1)
    array([0.1, 0.5, 0.9])
    >>> fitted = model.expansion_(X) + model.intercept_  # before any sorting
    >>> bool(np.all(np.diff(fitted, axis=1) > -1e-6))
    True
    """

    loss: Any = parameter(_REGRESSION_LOSSES, CUSTOM_LOSS, default="squared")
    alpha: float = 1.0
    _: KW_ONLY
    quantile: float | np.ndarray | list = parameter(Real, "array-like", default=0.5)
    epsilon: float | None = parameter("non-negative", None, default=None)

    _columns: np.ndarray | None = fitted()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._has_count_targets
        tags.target_tags.multi_output = not self._has_count_targets
        return tags

    @property
    def _has_count_targets(self) -> bool:
        """Whether the targets must be counts, which is the case for loss="poisson"."""
        return isinstance(self.loss, str) and self.loss == "poisson"

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,) or (n, n_targets)
            Targets. "poisson" and several quantiles need a single target; "poisson" needs
            non-negative targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights that multiply the losses. Points of weight 0 are ignored.

        Returns
        -------
        self : KernelMachineRegressor
            The fitted estimator.
        """
        sample = self._sample(X, y, sample_weight)
        Y, flat = sample.targets, sample.flat
        quantiles, several = self._quantiles(flat)
        loss = self._loss(quantiles)
        if self._has_count_targets:
            column_or_1d(y, warn=True)  # raises an error for several targets
            flat = True
            _check_counts(Y, self.fit_intercept)
        if several:
            Y = np.repeat(Y, len(quantiles), axis=1)
        self._learn(sample, Y, loss, ordered=several)
        self._columns = np.argsort(np.argsort(self.quantile)) if several else None
        self._set_expansion(self.expansion_, self.intercept_, flat and not several)
        return self

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the targets of points: f(x) + b, or exp(f(x) + b) with loss="poisson".

        Several quantiles are the columns of the result, in the order of the parameter `quantile`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,) or (n, n_functions)
            The predictions; one-dimensional for a single target and a single quantile.
        """
        values = self._values(X)
        if self._has_single_target:
            values = values[:, 0]
        elif self._columns is not None:
            values = np.sort(values, axis=1)[:, self._columns]
        if isinstance(self.loss_, Poisson):
            # Predictions may overflow to infinity far from the training points.
            with np.errstate(over="ignore"):
                values = np.exp(values)
        return values

    def _prediction_range(self, X: Points) -> np.ndarray:
        if self._columns is None:
            return super()._prediction_range(X)
        quantiles = np.sort(self.predict(X), axis=1)  # the outermost quantiles are the bounds
        return quantiles[:, [0, -1]]

    def score(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2, or for loss="quantile" the D^2 score of the pinball loss.

        Both are 1 minus the ratio of the loss to the loss of the best constant prediction. With
        several quantiles the result is the mean of their scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points.
        y : array-like of shape (n,) or (n, n_targets)
            The true targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points in the score.

        Returns
        -------
        float
            At most 1; 0 for a constant prediction.
        """
        from sklearn.metrics import d2_pinball_score, r2_score

        predictions = self.predict(X)
        if not isinstance(self.loss_, Quantile):
            return float(r2_score(y, predictions, sample_weight=sample_weight))
        quantiles = self.loss_.above
        if self._columns is None:
            columns = [(predictions, quantiles[0])]
        else:
            columns = list(zip(predictions.T, quantiles[self._columns], strict=True))
        scores = [d2_pinball_score(y, f, sample_weight=sample_weight, alpha=q) for f, q in columns]
        return float(np.mean(scores))

    def _quantiles(self, flat: bool) -> tuple[np.ndarray, bool]:
        """Return the quantiles in increasing order, and whether `quantile` is a list."""
        q, several = np.sort(np.atleast_1d(np.asarray(self.quantile, dtype=float))), False
        if np.ndim(self.quantile):
            several = True
            if self.loss != "quantile":
                raise ValueError(
                    f"quantile={self.quantile!r} lists several quantiles, but loss={self.loss!r} "
                    f"does not support them; use loss='quantile'"
                )
            if np.ndim(self.quantile) > 1 or not q.size or np.any(np.diff(q) == 0):
                raise ValueError(f"quantile must list distinct numbers, got {self.quantile!r}")
            if not flat:
                raise ValueError(
                    "several quantiles can only be fitted to a single target, but y has two "
                    "dimensions; fit one model per column of y"
                )
        if not np.all((q > 0) & (q < 1)):
            raise ValueError(f"quantile must lie strictly between 0 and 1, got {self.quantile!r}")
        return q, several

    def _loss(self, quantiles: np.ndarray) -> Loss:
        """Return the loss object that the parameters `loss` and `epsilon` define."""
        if not isinstance(self.loss, str):
            return CustomLoss(self.loss)
        epsilon = self.epsilon
        if epsilon is not None and self.loss not in ("huber", "epsilon_insensitive"):
            raise ValueError(
                f"epsilon={epsilon!r} has no effect for loss={self.loss!r}; omit it, or use "
                f"loss='huber' or 'epsilon_insensitive'"
            )
        if self.loss == "huber":
            if epsilon == 0:
                raise ValueError(
                    "epsilon must be positive for loss='huber', got 0; use loss='absolute', which "
                    "is the limit of the Huber loss divided by 2 epsilon"
                )
            return Huber(1.35 if epsilon is None else float(epsilon))
        if self.loss == "epsilon_insensitive":
            return EpsilonInsensitive(0.1 if epsilon is None else float(epsilon))
        if self.loss == "quantile":
            return Quantile(quantiles)
        losses: dict[str, Loss] = {
            "squared": Squared(),
            "absolute": Absolute(),
            "poisson": Poisson(),
        }
        return losses[self.loss]


def _check_counts(Y: np.ndarray, intercept: bool) -> None:
    """Raise an error if targets are negative, or all 0 with an intercept."""
    if np.any(Y < 0):
        raise ValueError(
            f"loss='poisson' needs non-negative targets, got {Y.min():g}; use loss='squared'"
        )
    if intercept and np.any(Y.sum(axis=0) == 0):
        raise ValueError(
            "all targets are 0, for which the best intercept under loss='poisson' is minus "
            "infinity; use fit_intercept=False, or predict 0 without a model"
        )


@estimator()
class KernelMachineClassifier(
    PredictionSetMixin, RegularisedRiskEstimator, WeightedClassifierMixin
):
    """Kernel classification with any convex loss and any increasing penalty.

    Minimises  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over functions f in the RKHS of the
    kernel and intercepts b. By the representer theorem f = sum_i a_i k(x_i, .) for every convex
    loss and increasing g; -a_i is proportional to the slope of the loss at point i.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more classes: one f_c per class
    ================= ======================================== ===================================
    "log_loss"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum over classes, one vs. rest
    an object         value(y, f), gradient(y, f),             the sum over classes, one vs. rest
                      curvature(y, f), y = +1 or -1
    ================= ======================================== ===================================

    "log_loss" is equivalent to KernelLogisticRegression with C = 1 / (2 alpha).

    Parameters
    ----------
    loss : {"log_loss", "logistic", "squared_hinge"} or object
        See the table; "logistic" is a synonym of "log_loss". A custom loss is smooth and convex.
        Its methods return the loss and its first and second derivative with respect to f; they are
        called with arrays y and f of shape (n,) for the points of positive weight, and return
        arrays of the same shape.

    Attributes
    ----------
    classes_ : ndarray
        The class labels that have points of positive weight.
    dual_coef_ : ndarray of shape (n, n_functions)
        The coefficients of the expansion. n_functions is 1 for two classes, otherwise n_classes.
    intercept_ : ndarray of shape (n_functions,)
        The intercepts b.
    report_ : Report
        Its `certificate` has the same entries as in KernelMachineRegressor.

    See Also
    --------
    KernelLogisticRegression : The log-loss, with more solvers.
    SVC : The hinge loss; sparse.
    KernelMachineRegressor : For numeric targets.
    SparseKernelClassifier : The same losses with few learned expansion vectors.
    sklearn.linear_model.LogisticRegression : The linear case of "log_loss".
    sklearn.svm.LinearSVC : The linear case of "squared_hinge".

    References
    ----------
    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMachineClassifier("squared_hinge", alpha=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: Any = parameter(CLASSIFICATION_LOSSES, CUSTOM_LOSS, default="log_loss")
    alpha: float = 1.0

    @property
    def _decision_loss(self) -> str | Loss:
        return getattr(self, "loss_", self.loss)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights that multiply the losses. Points of weight 0 are ignored.

        Returns
        -------
        self : KernelMachineClassifier
            The fitted estimator.
        """
        sample = self._sample(X, y, sample_weight, labels=True)
        self._learn_labels(sample, self.loss)
        return self
