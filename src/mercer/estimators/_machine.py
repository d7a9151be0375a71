"""Kernel machines: regression and classification with any convex loss and any increasing penalty.

min over f in the RKHS and b:  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import column_or_1d

from .._runtime import check_threads
from ..expansion import Expansion
from ..gram import working_bytes
from ..solvers import (
    Absolute,
    EpsilonInsensitive,
    Given,
    Huber,
    Loss,
    Machine,
    Penalty,
    Poisson,
    Quantile,
    RegularisedRisk,
    Squared,
    Status,
    whiten,
)
from ._base import KernelLike, Landmarked, NamedKernel
from ._decisions import LOSSES, Decisions
from ._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, fitting, parameter, solver
from ._sample import Sample

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]

OWN_LOSS = HasMethods(["value", "gradient", "curvature"])


@estimator(kw_only=True)
class KernelMachine(Landmarked, NamedKernel):
    """An estimator that minimises any loss with any penalty; see KernelMachineRegressor.

    Parameters
    ----------
    alpha : float
        The weight of the penalty, positive.
    penalty : {"ridge", "norm"}, pair (g, dg) or object
        g(t) = t^2 or t, or one's own with its derivative: two functions of a number, or an object
        with methods `value` and `derivative`.  For several functions |f|^2 is the sum over them.
        If g is not convex what is found is a local minimum along the norm.
    fit_intercept : bool
        Add a constant b to each f, which is not penalised.
    solver : {"auto", "exact", "nystroem"} or Machine
        Over the whole RKHS, or over the span of landmarks.  "auto" is exact up to 3000 points, 1000
        for several quantiles, if the memory allows; beyond, it takes landmarks, with a warning.
        Or a `Machine` of `mercer.solvers`, exact, which has its own tol and max_iter.
    tol : float
        Stop when the objective is this close to its minimum, relatively; for losses of bounded
        slope, relative to no less than 1e-4 times the losses of the best constant.
    max_iter : int
        Steps of Newton's method or of the interior point.
    """

    loss: Any = parameter(OWN_LOSS, default="squared")
    alpha: float = parameter(POSITIVE, default=1.0)
    penalty: Any = parameter(
        StrOptions({"ridge", "norm"}), tuple, HasMethods(["value", "derivative"]), default="ridge"
    )
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    solver: Any = solver("nystroem", given=[Machine], default="auto")
    tol: float = parameter(POSITIVE, default=1e-9)
    max_iter: int = parameter(COUNT, default=100)

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss, *, ordered: bool = False) -> None:
        """Find f and the intercept for the targets Y of the points that take part."""
        sample = sample.doubled()
        w, (n, q) = sample.counts, Y.shape
        _check_loss(loss, Y, w)
        penalty = Penalty.of(self.penalty, float(self.alpha))
        kernel, points = sample.resolve(self._make_kernel(self.gamma)), sample.points
        values = sample.evaluated(kernel, self.max_memory)
        tiles = working_bytes(values, points, None, 0, check_threads(None))
        phi = whiten(
            values,
            points,
            self.solver,
            self._chosen,
            lambda _, m: tiles + Machine.workspace(n, m, q),
            exact="exact",
            ordered=ordered,
            what=f"the fit of {q} functions of {n} points",
            max_memory=self.max_memory,
        )
        self._say(f"{loss} of {n} points, {phi.message}")
        risk = RegularisedRisk(phi.F, Y, loss, w, intercept=self.fit_intercept, ordered=ordered)
        named = isinstance(self.solver, str)
        solver = Machine(self.tol, self.max_iter) if named else self.solver
        found = solver.minimize(risk, penalty, self._teller)
        A = found.dual  # the coefficients of the theorem: 0 for every point whose loss is flat at f
        if phi.approximate or A is None:
            points, A = phi.points, phi.coefficients(found.weights)
        status = found.report.status
        if phi.approximate and status is Status.CONVERGED:
            status = Status.APPROXIMATE
        message = "; ".join(filter(None, [phi.message, found.report.message]))
        self.kernel_, self.loss_ = kernel, loss
        self._set_expansion(Expansion(kernel, points, A), found.intercept, flat=False)
        self.n_iter_ = found.report.n_iter
        self.report_ = dataclasses.replace(found.report, status=status, message=message)
        self._say(f"objective {self.report_.certificate['objective']:.8g}: {status.value}")


def _check_loss(loss: Loss, Y: np.ndarray, w: np.ndarray) -> None:
    """Refuse a loss of one's own that is wrong, and targets too large to compute with."""
    if isinstance(loss, Given):
        loss.check(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(w @ loss(np.zeros(Y.shape), Y).values)
        if not np.isfinite(total * total):
            raise ValueError(
                f"the losses at f = 0 add up to {total:.3g}, too large to compute with; the usual "
                f"cause is targets as large as {np.abs(Y).max():.3g}, or weights. Scale them"
            )


_NAMES = {"squared", "absolute", "huber", "quantile", "epsilon_insensitive", "poisson"}


@estimator()
class KernelMachineRegressor(MultiOutputMixin, RegressorMixin, KernelMachine):
    """Minimise  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over the RKHS of the kernel.

    By the representer theorem f = sum_i a_i k(x_i, .), whatever the convex loss and the increasing
    g; -a_i is proportional to the slope of the loss at point i.

    ======================= ============================================ =========================
    loss                    with r = y - f                               the same as
    ======================= ============================================ =========================
    "squared"               r^2                                          KernelRidge
    "absolute"              |r|                                          the median
    "quantile"              q max(r, 0) + (1 - q) max(-r, 0)             the quantile q
    "huber"                 r^2 up to |r| = epsilon, then linear         HuberRegressor, see below
    "epsilon_insensitive"   max(|r| - epsilon, 0)                        SVR, C = 1 / (2 alpha)
    "poisson"               exp(f) - y f: counts of mean exp(f)          PoissonRegressor
    an object               value(y, f), gradient(y, f) and curvature(y, f): any smooth convex loss
    ======================= ============================================ =========================

    "squared", "poisson" and losses of one's own are minimised by Newton's method, the others as
    quadratic programs by an interior point; both end with a certificate in `report_`.

    **Several quantiles** are fitted at once, under the condition that they cross at no training
    point.  Between those they still may, if less than quantiles fitted one by one; `predict`
    sorts the values at each point, which never takes them further from the true quantiles, as a
    whole.  What the condition adds to sorting: the functions themselves, `expansion_`, are in order
    at the training points, and less is left to sort elsewhere.

    Parameters
    ----------
    loss : str or object
        See the table.  The methods of an object are called with arrays y and f of shape (n,), for
        the points of positive weight, and return arrays.
    quantile : float or list
        For "quantile": one in (0, 1), or several.
    epsilon : float or None
        For "huber" (None: 1.35) and "epsilon_insensitive" (None: 0.1), in the units of y.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_functions)
    X_fit_ : points
        Those of the expansion: the training points of positive weight (for a precomputed kernel
        their indices), or if rounding makes that unsafe some that span the rest; or the landmarks.
    intercept_ : float or ndarray of shape (n_functions,)
    expansion_ : Expansion
        The fitted functions without intercepts, as a value.
    kernel_ : Kernel
    loss_ : Loss
        The loss that was minimised.
    n_iter_ : int
    report_ : Report
        With `certificate`: the objective, |f|, the shift mu of the ridge problem with the same
        minimum, the relative stationarity of the minimum, and a bound on what is left to gain.

    Notes
    -----
    HuberRegressor also fits a scale s; with that, its solution is the one for epsilon * s and
    alpha * s here.

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

    loss: Any = parameter(StrOptions(_NAMES), OWN_LOSS, default="squared")
    alpha: float = 1.0
    _: KW_ONLY
    quantile: float | np.ndarray | list = parameter(Real, "array-like", default=0.5)
    epsilon: float | None = parameter(AT_LEAST_0, None, default=None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._counts
        tags.target_tags.multi_output = not self._counts
        return tags

    @property
    def _counts(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "poisson"

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the losses.

        Counts ("poisson") and several quantiles are of one target.
        """
        sample = self._sample(X, y, sample_weight)
        Y, flat = sample.targets, sample.flat
        quantiles, several = self._quantiles(flat)
        loss = self._loss(quantiles)
        if self._counts:
            column_or_1d(y, warn=True)  # refuses several targets
            flat = True
            _check_counts(Y, self.fit_intercept)
        if several:
            Y = np.repeat(Y, len(quantiles), axis=1)
        self._learn(sample, Y, loss, ordered=several)
        self._columns = np.argsort(np.argsort(self.quantile)) if several else None
        self._set_expansion(self.expansion_, self.intercept_, flat and not several)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) + b for each point, (n,) or (n, n_functions); exp of that for "poisson".

        Several quantiles are the columns, in the order in which they were asked for.
        """
        values = self._values(X)
        if self._one_target:
            values = values[:, 0]
        elif self._columns is not None:
            values = np.sort(values, axis=1)[:, self._columns]
        if isinstance(self.loss_, Poisson):
            with np.errstate(over="ignore"):  # far from all points inf may be the answer
                values = np.exp(values)
        return values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2; for "quantile" the D^2 of the pinball loss, the mean over several quantiles.

        Either is 1 minus the loss as a part of that of the best constant.
        """
        from sklearn.metrics import d2_pinball_score, r2_score

        predictions = self.predict(X)
        if not isinstance(self.loss_, Quantile):
            return float(r2_score(y, predictions, sample_weight=sample_weight))
        levels = self.loss_.above
        if self._columns is None:
            columns = [(predictions, levels[0])]
        else:
            columns = list(zip(predictions.T, levels[self._columns], strict=True))
        scores = [d2_pinball_score(y, f, sample_weight=sample_weight, alpha=q) for f, q in columns]
        return float(np.mean(scores))

    def _quantiles(self, flat: bool) -> tuple[np.ndarray, bool]:
        """Return the quantiles in rising order, and whether there may be several."""
        q, several = np.sort(np.atleast_1d(np.asarray(self.quantile, dtype=float))), False
        if np.ndim(self.quantile):
            several = True
            if self.loss != "quantile":
                raise ValueError(
                    f"quantile={self.quantile!r} are several, but loss={self.loss!r} is not made "
                    f"for them; use loss='quantile', whose functions do not cross"
                )
            if np.ndim(self.quantile) > 1 or not q.size or np.any(np.diff(q) == 0):
                raise ValueError(f"quantile must list distinct numbers, got {self.quantile!r}")
            if not flat:
                raise ValueError(
                    "several quantiles are fitted to one target at a time, but y has two "
                    "dimensions; fit each column by itself"
                )
        if not np.all((q > 0) & (q < 1)):
            raise ValueError(
                f"quantile must lie between 0 and 1, and be neither, got {self.quantile!r}"
            )
        return q, several

    def _loss(self, quantiles: np.ndarray) -> Loss:
        if not isinstance(self.loss, str):
            return Given(self.loss)
        epsilon = self.epsilon
        if epsilon is not None and self.loss not in ("huber", "epsilon_insensitive"):
            raise ValueError(
                f"epsilon={epsilon!r} has no meaning for loss={self.loss!r}; leave it out, or use "
                f"loss='huber' or 'epsilon_insensitive'"
            )
        if self.loss == "huber":
            if epsilon == 0:
                raise ValueError(
                    "epsilon must be positive for loss='huber', got 0; its limit, but for a factor "
                    "2 epsilon, is loss='absolute'"
                )
            return Huber(1.35 if epsilon is None else float(epsilon))
        if self.loss == "epsilon_insensitive":
            return EpsilonInsensitive(0.1 if epsilon is None else float(epsilon))
        if self.loss == "quantile":
            return Quantile(quantiles)
        others: dict[str, Loss] = {
            "squared": Squared(),
            "absolute": Absolute(),
            "poisson": Poisson(),
        }
        return others[self.loss]


def _check_counts(Y: np.ndarray, intercept: bool) -> None:
    if np.any(Y < 0):
        raise ValueError(
            f"loss='poisson' is for counts, but a target is {Y.min():g} < 0; use loss='squared'"
        )
    if intercept and np.any(Y.sum(axis=0) == 0):
        raise ValueError(
            "all targets are 0: under loss='poisson' the best intercept is minus infinity; "
            "predict 0, or use fit_intercept=False"
        )


@estimator()
class KernelMachineClassifier(Decisions, KernelMachine):
    """Minimise  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)  over the RKHS of the kernel.

    By the representer theorem f = sum_i a_i k(x_i, .), whatever the convex loss and the increasing
    g; -a_i is proportional to the slope of the loss at point i.

    ================= ======================================== ===================================
    loss              two classes: one f, y = +1 or -1         more: one f_c for each class
    ================= ======================================== ===================================
    "log_loss"        log(1 + exp(-y f))                       -log softmax(f)_y: multinomial
    "squared_hinge"   max(0, 1 - y f)^2                        the sum of that over one vs. rest
    an object         value(y, f), gradient(y, f),             the sum of that over one vs. rest
                      curvature(y, f), y = +1 or -1
    ================= ======================================== ===================================

    "log_loss" is KernelLogisticRegression with C = 1 / (2 alpha).

    Parameters
    ----------
    loss : {"log_loss", "logistic", "squared_hinge"} or object
        See the table; "logistic" is another name of "log_loss".  The methods of an object are
        called with arrays y and f of shape (n,), for the points of positive weight, and return
        arrays: a smooth convex loss, its first and its second derivative in f.

    Attributes
    ----------
    classes_ : ndarray
        The classes that have a positive weight.
    dual_coef_ : ndarray of shape (n, n_functions)
        n_functions is 1 for two classes, else the number of classes.
    X_fit_ : points
        Those of the expansion: the training points of positive weight (for a precomputed kernel
        their indices), or if rounding makes that unsafe some that span the rest; or the landmarks.
    intercept_ : ndarray of shape (n_functions,)
    expansion_ : Expansion
        The fitted functions without intercepts, as a value.
    kernel_ : Kernel
    loss_ : Loss
        The loss that was minimised.
    n_iter_ : int
    report_ : Report
        With `certificate`, as in KernelMachineRegressor.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMachineClassifier("squared_hinge", alpha=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: Any = parameter(StrOptions(LOSSES), OWN_LOSS, default="log_loss")
    alpha: float = 1.0

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the labels y, (n,); weights multiply the losses."""
        sample = self._sample(X, y, sample_weight, labels=True)
        self._learn_labels(sample, self.loss)
        return self
