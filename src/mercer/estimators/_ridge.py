"""Kernel ridge regression: f = sum_i a_i k(x_i, .) with (K + alpha I) a = y."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._errors import NotPositiveDefiniteError
from .._points import length, take
from ..expansion import Expansion
from ..gram import gram
from ..gram._budget import check_budget
from ..kernels import Kernel
from ..solvers import LINEAR, LeastSquares, choose
from ._base import KernelEstimator, points_of
from ._weights import check_weights

__all__ = ["KernelRidge"]


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Minimise  sum_i w_i (y_i - f(x_i))^2 + alpha |f|^2  over the RKHS of the kernel.

    A drop-in for scikit-learn's estimator of this name: same parameters, defaults, attributes.
    Two differences: under a name, gamma must be positive, and for "poly" degree a positive integer
    and coef0 non-negative, because nothing else is a Mercer kernel; and a precomputed matrix that
    is not symmetric is symmetrised, with a warning.

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
        targets = y.reshape(len(y), -1).astype(float)
        alpha = _check_alpha(self.alpha, targets.shape[1])
        root = np.sqrt(check_weights(sample_weight, X)) if sample_weight is not None else None
        self.kernel_: Kernel = self._make_kernel(self.gamma).resolve(*self._counted(X, root))
        coefficients = self._solve(X, targets, alpha, root)
        self.X_fit_ = points_of(self.kernel_, X)
        self.expansion_ = Expansion(self.kernel_, self.X_fit_, coefficients)
        self.dual_coef_ = coefficients[:, 0] if y.ndim == 1 else coefficients
        return self

    def _counted(self, X: Any, root: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
        """Return the points with a say in data-dependent scales, and how much of one."""
        if root is None or self._precomputed:
            return X, None
        counted = np.flatnonzero(root)
        return take(X, counted), root[counted] ** 2

    def _solve(
        self, X: Any, y: np.ndarray, alpha: np.ndarray, root: np.ndarray | None
    ) -> np.ndarray:
        """Return a with (K + alpha / w) a = y, with one factorisation for each distinct alpha.

        Weights enter as (S K S + alpha I) b = S y, a = S b with S = sqrt(w), which stays well
        conditioned when some of them are tiny, and gives a = 0 where they are 0.
        """
        solution = np.empty(y.shape)
        distinct = np.unique(alpha)
        K = self._gram(X, root, len(distinct))
        self.solver_ = choose(LINEAR, K, self.solver)
        for ridge in distinct:
            last = ridge == distinct[-1]  # then the matrix may be worked in
            self._say(f"{self.solver_} of {K!r}, alpha = {ridge:g}")
            try:
                factor = self.solver_.factorize(K, ridge, overwrite=last)
            except NotPositiveDefiniteError as why:
                if self.solver != "auto":
                    raise
                warnings.warn(
                    f"Singular matrix in solving dual problem. Using least-squares solution "
                    f"instead. ({why})",
                    stacklevel=4,
                )
                K = self._gram(X, root, 2) if last else K
                factor = LeastSquares().factorize(K, ridge, overwrite=last)
            columns = alpha == ridge
            right = y[:, columns]
            part = factor.solve(right if root is None else root[:, None] * right)
            solution[:, columns] = part if root is None else root[:, None] * part
            self.report_ = factor.report
            self._say(f"residual {self.report_.residual:.1e}")
        return solution

    def _gram(self, X: Any, root: np.ndarray | None, alphas: int) -> Any:
        # Cholesky works in K itself; eigenvectors, or a K kept for the next alpha, are a second one
        vectors = self.solver == "lstsq" or isinstance(self.solver, LeastSquares)
        copies, n = 1 + (alphas > 1 or vectors), length(X)
        check_budget(8 * n * n * copies, self.max_memory, f"kernel ridge regression of {n} points")
        K = gram(self.kernel_, X, storage="dense", max_memory=self.max_memory)
        return K if root is None else K.scaled(root)

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
