"""Prediction intervals from leave-one-out models, without fitting them (jackknife+).

Ridge regression is linear in the targets: f(x) = sum_i psi_i(x) y_i.  If y_i is replaced by the
leave-one-out prediction f_-i(x_i), the fit to all points is f_-i.  Therefore

    f_-i(x) = f(x) - psi_i(x) R_i,       R_i = y_i - f_-i(x_i),

at every point x.  With P of `BorderedSystem`, and u = C^-1 1 if there is an intercept,

    psi(x) = P k(x) + u / u^T 1,         R_i = (P y)_i / P_ii.

For features phi, psi_i(x) = w_i phi(x)^T (F^T W F + alpha)^-1 phi(x_i), where an intercept centres
the features and adds w_i / sum w.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from ..._core import check_budget, run_in_threads, slices, warn_caller
from ..._core.linalg import blas, lapack
from ..linear import inverse_diagonal_with_intercept

_RELATIVE_ROUNDING = 1e-12  # coverage * (n + 1) is an integer if it differs by less than this
_COLUMNS_PER_BLOCK = 256  # columns of L^-1 whose norms are computed at a time
_ROWS_PER_JOB = 32  # new points per parallel task when order statistics are selected


def interval_rank(n: int, coverage: float) -> int:
    """Return k = ceil(coverage (n + 1)), the rank of the score that bounds conformal intervals.

    If k > n, there are too few scores for this coverage, and the interval is infinite.

    Examples
    --------
    >>> from mercer.solvers import interval_rank
    >>> interval_rank(19, 0.95), interval_rank(18, 0.95)
    (19, 19)
    """
    return ceil(coverage * (n + 1) * (1.0 - _RELATIVE_ROUNDING))


def warn_if_infinite(n: int, coverage: float) -> None:
    """Warn if n scores are too few for finite intervals with this coverage.

    Examples
    --------
    >>> from mercer.solvers import warn_if_infinite
    >>> warn_if_infinite(9, 0.9)
    """
    if interval_rank(n, coverage) > n:
        needed = ceil(coverage / (1.0 - coverage) * (1.0 - 1e-9))
        warn_caller(
            f"coverage={coverage:g} needs at least {needed} calibration points, but there are {n}, "
            f"so that only infinite intervals, or sets of all classes, have this coverage. Use "
            f"more points, or a coverage of at most {n / (n + 1):.3g}"
        )


def interval_bounds(lower: np.ndarray, upper: np.ndarray, coverage: float) -> np.ndarray:
    """Return the jackknife+ interval of each row, from one lower and upper bound per model.

    With k = ceil(coverage (n + 1)), the lower bound is the (n + 1 - k)-th smallest value of
    `lower`, and the upper bound the k-th smallest value of `upper`.  If they are in the wrong
    order, which happens for small coverages only, both are replaced by their mean.

    Parameters
    ----------
    lower, upper : ndarray of shape (r, n)
        The bounds of n models at r points, such as f_-i(x) - |R_i| and f_-i(x) + |R_i|.
    coverage : float
        The nominal coverage, between 0 and 1.

    Returns
    -------
    ndarray of shape (r, 2)
        The bounds; -inf and inf if n is too small.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import interval_bounds
    >>> values = np.arange(9.0)[None]
    >>> interval_bounds(values - 1.0, values + 1.0, 0.8), interval_bounds(values, values, 0.95)
    (array([[0., 8.]]), array([[-inf,  inf]]))
    """
    r, n = lower.shape
    k, out = interval_rank(n, coverage), np.empty((r, 2))
    if k > n:
        out[:] = -np.inf, np.inf
        return out

    def select(rows: slice) -> None:
        out[rows, 0] = np.partition(lower[rows], n - k, axis=1)[:, n - k]
        out[rows, 1] = np.partition(upper[rows], k - 1, axis=1)[:, k - 1]

    run_in_threads(select, slices(r, _ROWS_PER_JOB), work=10.0 * lower.size)
    crossed = out[:, 0] > out[:, 1]
    out[crossed] = out[crossed].mean(axis=1, keepdims=True)
    return out


def jackknife_bounds(
    f: np.ndarray, psi: np.ndarray, errors: np.ndarray, coverage: float
) -> np.ndarray:
    """Return the jackknife+ intervals of points, of shape (r, q, 2).

    Parameters
    ----------
    f : ndarray of shape (r, q)
        The predictions for q targets.
    psi : ndarray of shape (r, n)
        The influence of the target of each calibration point on the prediction.
    errors : ndarray of shape (n, q)
        The leave-one-out errors R of the calibration points.
    coverage : float
        The nominal coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import jackknife_bounds
    >>> y = np.array([1.0, 2.0, 6.0])  # predicted by their mean: psi = 1 / 3
    >>> errors = 1.5 * (y - 3.0)
    >>> bounds = jackknife_bounds(np.array([[3.0]]), np.ones((1, 3)) / 3, errors[:, None], 0.5)
    >>> bounds[0, 0], [float(np.delete(y, i).mean()) for i in range(3)]
    (array([1., 6.]), [4.0, 3.5, 1.5])
    """
    bounds = np.empty((*f.shape, 2))
    for c in range(f.shape[1]):
        shift, radii = psi * -errors[:, c], np.abs(errors[:, c])
        bounds[:, c] = f[:, c, None] + interval_bounds(shift - radii, shift + radii, coverage)
    return bounds


def invert_lower(L: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """Return L^-1 in Fortran order; the upper triangles of L and of the result are undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import invert_lower
    >>> np.tril(invert_lower(np.array([[2.0, 0.0], [1.0, 1.0]])))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    L = np.asarray(L, dtype=float, order="F")
    return np.asarray(lapack.dtrtri(L, lower=1, overwrite_c=overwrite)[0])


class DualSmoother:
    """The predictions of ridge regression on all points as linear functions of the targets.

    Parameters
    ----------
    inverse_factor : ndarray of shape (n, n)
        L^-1 for the lower Cholesky factor L of C = K + diag(alpha / w) or, if `root` is given, of
        S K S + alpha I with S = diag(root); see `invert_lower`.  The upper triangle is ignored.
    Y : ndarray of shape (n, q)
        The targets.
    root : ndarray of shape (n,) or None, default=None
        The square roots of the sample weights.
    intercept : bool, default=False
        Whether the model has an intercept.

    Attributes
    ----------
    errors : ndarray of shape (n, q)
        The leave-one-out errors R.
    """

    def __init__(
        self,
        inverse_factor: np.ndarray,
        Y: np.ndarray,
        root: np.ndarray | None = None,
        *,
        intercept: bool = False,
    ) -> None:
        n, self._inverse_factor = len(inverse_factor), inverse_factor
        self._root = np.ones(n) if root is None else root
        diagonal = np.empty(n)
        for columns in slices(n, _COLUMNS_PER_BLOCK):  # (A^-1)_ii = |column i of L^-1|^2
            block = np.tril(self._inverse_factor[columns.start :, columns])
            diagonal[columns] = np.einsum("ij,ij->j", block, block)
        self._u = self._solve_rows(np.ones((1, n)))[0] if intercept else None
        P = inverse_diagonal_with_intercept(np.square(self._root) * diagonal, self._u)
        # Centre the targets, because a large mean reduces the precision.
        weights = np.square(self._root)
        self._mean = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(Y.shape[1])
        self._Y = Y - self._mean
        A = self._solve_rows(self._Y.T).T
        if self._u is not None:
            A -= np.outer(self._u, (self._u @ self._Y) / self._u.sum())
        self.errors = A / P[:, None]

    def bounds(self, K: np.ndarray, coverage: float) -> np.ndarray:
        """Return the intervals, of shape (r, q, 2), of points with kernel values K of shape (r, n).

        Parameters
        ----------
        K : ndarray of shape (r, n)
            The kernel values between the new points and the training points.
        coverage : float
            The nominal coverage.
        """
        psi = self._solve_rows(K)
        if self._u is not None:
            psi += np.outer((1.0 - K @ self._u) / self._u.sum(), self._u)
        return jackknife_bounds(psi @ self._Y + self._mean, psi, self.errors, coverage)

    def _solve_rows(self, B: np.ndarray) -> np.ndarray:
        """Return B C^-1 as a new array."""
        product = np.array((B * self._root).T, order="F")
        for transposed in (0, 1):
            product = blas.dtrmm(
                1.0, self._inverse_factor, product, lower=1, trans_a=transposed, overwrite_b=1
            )
        return np.asarray(product.T * self._root)


def check_interval_memory(n: int, max_memory: int | float | str | None) -> None:
    """Raise an error if L^-1 for n points does not fit into the memory budget.

    Examples
    --------
    >>> from mercer.solvers import check_interval_memory
    >>> check_interval_memory(100, "1 MiB")
    """
    check_budget(
        8 * n * n,
        max_memory,
        f"closed-form prediction intervals from {n} points, which store an {n} x {n} array (use "
        f"solver='nystroem', or `conformalize` with data that were not used in `fit`), and",
    )
