"""Regression with any convex loss and any increasing penalty of the norm."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import column_or_1d

from ..solvers import (
    Absolute,
    EpsilonInsensitive,
    Given,
    Huber,
    Loss,
    Poisson,
    Quantile,
    Squared,
)
from ._fitting import fitting
from ._machine import OWN_LOSS, KernelMachine
from ._parameters import AT_LEAST_0, estimator, parameter

__all__ = ["KernelMachineRegressor"]

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
        if self.dual_coef_.ndim == 1:
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
