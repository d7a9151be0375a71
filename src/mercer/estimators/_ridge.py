"""Kernel ridge regression: f = sum_i a_i k(x_i, .) with (K + alpha I) a = y."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from ..expansion import Expansion
from ..gram import gram
from ..kernels import Kernel
from ..solvers import LINEAR, LeastSquares, choose
from ._base import KernelEstimator, points_of

__all__ = ["KernelRidge"]


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2  over the RKHS of the kernel.

    A drop-in for scikit-learn's estimator of this name: same parameters, defaults, attributes.
    Predictions are computed in tiles and need no memory for k(X, X_fit).

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1
        The ridge, one for all targets or one for each.
    kernel : str, Kernel, callable or scikit-learn GP kernel, default="linear"
        A name of scikit-learn's ("linear", "poly", "rbf", "laplacian", ..., "precomputed"), an
        expression like ``RBF(2.0) + Linear()``, or a function of two matrices or two rows.
    gamma : float, "scale", "auto", "median" or None, default=None
        For kernels given by name; None for 1 / n_features (1 for chi2).
    degree, coef0 : float, default=3, 1
        For "poly" and "sigmoid".
    kernel_params : dict, default=None
        Further arguments of a callable.
    solver : "auto", "cholesky", "lstsq" or a solver, default="auto"
        "auto" is Cholesky; a singular system falls back to least squares, with a warning.
    max_memory : int, str or None, default=None
        Bytes, or "2 GiB"; None for half of the machine's memory.
    verbose : int, default=0

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, n_targets)
    X_fit_ : points
        The training points (their indices for a precomputed kernel).
    expansion_ : Expansion
        The fitted f, as a value.
    kernel_ : Kernel
        The kernel with all its values.
    solver_, report_
        The solver, and what it did.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=10).fit(X, np.sin(6 * X[:, 0]))
    >>> model.predict([[0.5]]).round(2)
    array([0.14])
    """

    _parameter_constraints: ClassVar[dict] = {
        **KernelEstimator._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "solver": [StrOptions({"auto", "cholesky", "lstsq"}), HasMethods(["factorize"])],
    }

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: Any = None,
        solver: Any = "auto",
        max_memory: Any = None,
        verbose: Any = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.max_memory = max_memory
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit f to the targets y, (n,) or (n, n_targets); weights multiply the squared errors."""
        X, y = self._check_points(X, y, reset=True, copy=not self._precomputed, supervised=True)
        targets = y.reshape(len(y), -1)
        alpha = _check_alpha(self.alpha, targets.shape[1])
        w = None if sample_weight is None else _check_weights(sample_weight, X)
        # weight 0 means absent: coefficient 0, whatever y, and no say in data-dependent scales
        counted = np.arange(len(y)) if w is None else np.flatnonzero(w)
        inside = self._restricted(X, counted)
        self.kernel_: Kernel = self._make_kernel(self.gamma).resolve(inside)
        coefficients = np.zeros(targets.shape, dtype=np.result_type(targets, np.float32))
        coefficients[counted] = self._solve(
            inside, targets[counted], alpha, 1.0 if w is None else w[counted]
        )
        self.X_fit_ = points_of(self.kernel_, X)
        self.expansion_ = Expansion(self.kernel_, self.X_fit_, coefficients)
        self.dual_coef_ = coefficients[:, 0] if y.ndim == 1 else coefficients
        return self

    def _restricted(self, X: Any, rows: np.ndarray) -> Any:
        if len(rows) == length(X):
            return X
        X = take(X, rows)
        return X[:, rows] if self._precomputed else X

    def _solve(self, X: Any, y: np.ndarray, alpha: np.ndarray, w: Any) -> np.ndarray:
        """Return (K + alpha / w)^-1 y, with one factorisation for each distinct alpha."""
        solution = np.empty_like(y, dtype=float)
        distinct = np.unique(alpha)
        K = self._gram(X)
        self.solver_ = choose(LINEAR, K, self.solver)
        for ridge in distinct:
            last = ridge == distinct[-1]  # then the matrix may be worked in
            self._say(f"{self.solver_} of {K!r}, alpha = {ridge:g}")
            try:
                factor = self.solver_.factorize(K, ridge / w, overwrite=last)
            except NotPositiveDefiniteError as why:
                if self.solver != "auto":
                    raise
                warnings.warn(
                    f"Singular matrix in solving dual problem. Using least-squares solution "
                    f"instead. ({why})",
                    stacklevel=4,
                )
                K = self._gram(X) if last else K
                factor = LeastSquares().factorize(K, ridge / w, overwrite=last)
            columns = alpha == ridge
            solution[:, columns] = factor.solve(y[:, columns])
            self.report_ = factor.report
            self._say(f"residual {self.report_.residual:.1e}")
        return solution

    def _gram(self, X: Any) -> Any:
        return gram(self.kernel_, X, storage="dense", max_memory=self.max_memory)

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for each point; for a precomputed kernel X is k(X, X_fit)."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        values = self.expansion_(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values


def _check_alpha(alpha: Any, n_targets: int) -> np.ndarray:
    alpha = np.asarray(alpha, dtype=float)
    if alpha.ndim > 1 or alpha.size not in (1, n_targets):
        raise ValueError(
            f"alpha must be a number or one number per target: got {alpha.size} values "
            f"for {n_targets} targets"
        )
    if not np.all(np.isfinite(alpha)) or np.any(alpha < 0):
        raise ValueError(f"alpha must be finite and non-negative, got {alpha!r}")
    return np.broadcast_to(alpha.reshape(-1), (n_targets,))


def _check_weights(sample_weight: Any, X: Any) -> np.ndarray:
    if hasattr(X, "shape"):
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
    else:
        w = np.broadcast_to(np.asarray(sample_weight, dtype=float), (length(X),))
    if np.any(w < 0):
        raise ValueError(f"sample_weight must be non-negative, got a minimum of {w.min():g}")
    if not np.any(w > 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return w
