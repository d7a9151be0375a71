"""Views, the centred coordinates of points in feature space, and pairs of views for CCA and PLS.

Let the rows of F be whitened coordinates of n points, F F^T = K, let c be the weights of the
points, which sum to 1, and m = F^T c the mean.  A direction u represents a function f of the RKHS,
with

    f(x_i) - mean = ((F - 1 m^T) u)_i,    var f = u^T C u,    C = (F - 1 m^T)^T diag(c) (F - 1 m^T)

The mean is subtracted from products with F and not from F itself, so that F need not be copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..._core import MemoryLimit, Points, check_threads, entry_point, length
from ..._core.linalg import eigh, svd
from ...gram import Landmarks, working_bytes
from ...kernels import Kernel
from .._blocked_products import cross_gram, rmatvec, squared_row_norms, weighted_gram
from .._report import Report
from ..risk import WhitenedCoordinates, whiten

_EPS = float(np.finfo(float).eps)
# Up to this size, computing all singular values with LAPACK is as fast as computing a few.
_MAX_FULL_SVD = 500


@entry_point
@dataclass(frozen=True, eq=False)
class View:
    """Coordinates F of n points in feature space, with their weights c and their mean m.

    Attributes
    ----------
    F : ndarray of shape (n, m)
        Whitened coordinates, not centred.
    weights : ndarray of shape (n,)
        Weights c of the points, which sum to 1.
    mean : ndarray of shape (m,)
        Weighted mean of the rows of F.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import View
    >>> x, y = View.of(np.array([[1.0], [3.0]])), View.of(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> x.scores(np.ones((1, 1)))[:, 0], x.covariance(y)
    (array([-1.,  1.]), array([[-1. ,  0.5]]))
    """

    F: np.ndarray
    weights: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, F: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Return the view of points with given coordinates.

        Parameters
        ----------
        F : ndarray of shape (n, m)
            Whitened coordinates, one point per row, not centred.
        weights : ndarray of shape (n,) or None, default=None
            Weights of the points, which are normalised to sum to 1; None means equal weights.

        Returns
        -------
        View
            The view, which does not copy F.
        """
        weights = np.full(len(F), 1.0 / len(F)) if weights is None else weights / weights.sum()
        return cls(F, weights, rmatvec(F, weights))

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Return the scores (F - 1 m^T) W of directions; m is the mean of F.

        Parameters
        ----------
        W : ndarray of shape (m,) or (m, k)
            Directions, one per column.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            The centred scores.
        """
        product: np.ndarray = self.F @ W - self.mean @ W
        return product

    def weighted_adjoint(self, T: np.ndarray) -> np.ndarray:
        """Return (F - 1 m^T)^T diag(c) T, where m is the mean and c are the weights.

        Parameters
        ----------
        T : ndarray of shape (n,) or (n, k)
            Values at the points.

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            The covariances of the coordinates with T.
        """
        T = (self.weights * T.T).T
        product: np.ndarray = rmatvec(self.F, T) - np.multiply.outer(self.mean, T.sum(axis=0))
        return product

    def covariance(self, other: View) -> np.ndarray:
        """Return the covariance matrix of the coordinates of two views.

        Parameters
        ----------
        other : View
            A view of the same points, with m' coordinates.

        Returns
        -------
        ndarray of shape (m, m')
            The weighted covariances.
        """
        return cross_gram(self.F, self.weights, other.F, self.mean, other.mean)

    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues and eigenvectors of the covariance matrix of this view.

        Eigenvalues that are so small that they may be rounding errors are omitted.

        Returns
        -------
        values : ndarray of shape (r,)
            Eigenvalues in ascending order.
        vectors : ndarray of shape (m, r)
            Eigenvectors, one per column.
        """
        C = weighted_gram(self.F, self.weights, self.mean)
        values, Q = eigh(C, lower=True, overwrite_a=True)
        significant = values > self.rounding_variance
        return values[significant], Q[:, significant]

    @cached_property
    def mean_squared_norm(self) -> float:
        """The weighted mean of |F_i|^2, which is the mean of k(x, x) if F is exact."""
        return float(self.weights @ squared_row_norms(self.F))

    @property
    def rounding_variance(self) -> float:
        """The largest variance that rounding errors of K may cause."""
        size: int = max(16, *self.F.shape)
        return size * _EPS * self.mean_squared_norm

    @property
    def is_constant(self) -> bool:
        """Whether the points are equal up to rounding errors."""
        return self.mean_squared_norm - float(self.mean @ self.mean) <= self.rounding_variance


@entry_point
@dataclass(frozen=True, eq=False)
class TwoViewResult:
    """Result of CCA or PLS: k pairs of directions, one for each view.

    Attributes
    ----------
    x, y : ndarray of shape (m, k) and (m', k)
        The directions, in the coordinates of each view.
    values : ndarray of shape (k,)
        The correlation (CCA) or covariance (PLS) of each pair.
    offset, offset_y : ndarray of shape (k,)
        The means of the functions of each pair.  Scores are function values minus these means.
    view : View
        The first view.
    report : Report
        Status, time and residual.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import CanonicalCorrelations, View
    >>> F = np.random.default_rng(0).normal(size=(50, 2))
    >>> found = CanonicalCorrelations(1, 1e-9, 1e-9).relate(View.of(F), View.of(F[:, :1]))
    >>> found.values.round(6)
    array([1.])
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    offset: np.ndarray
    offset_y: np.ndarray
    view: View
    report: Report

    @classmethod
    def of(cls, x: View, y: View, U: np.ndarray, V: np.ndarray, **attributes: Any) -> Self:
        """Return the result for two views with given directions; the offsets are computed.

        Parameters
        ----------
        x, y : View
            The two views.
        U, V : ndarray of shape (m, k) and (m', k)
            Directions of the first and of the second view.
        **attributes : object
            The attributes `values` and `report`.

        Returns
        -------
        TwoViewResult
            The result.
        """
        return cls(U, V, offset=x.mean @ U, offset_y=y.mean @ V, view=x, **attributes)

    def regression(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least-squares regression T B + b of targets on the scores T of the first view.

        The scores must be uncorrelated, as they are for PLS.

        Parameters
        ----------
        targets : ndarray of shape (n, q)
            Targets of the points.

        Returns
        -------
        B : ndarray of shape (k, q)
            Coefficients of the scores.
        b : ndarray of shape (q,)
            Intercepts, the means of the targets.
        """
        c, T = self.view.weights, self.view.scores(self.x)
        mean = c @ targets
        variances = c @ np.square(T)
        return T.T @ (c[:, None] * (targets - mean)) / variances[:, None], mean


@entry_point
def columnwise_correlations(
    S: np.ndarray, T: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the correlation of each column of S with the same column of T.

    The correlation is 0 if one of the two columns is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import columnwise_correlations
    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> columnwise_correlations(x, 2 * x).round(6)
    array([1.])
    """
    c = None if weights is None else weights / weights.sum()
    S, T = (A - np.average(A, axis=0, weights=c) for A in (S, T))
    moments = (np.average(A, axis=0, weights=c) for A in (S * T, S * S, T * T))
    covariance, variance_s, variance_t = moments
    scale = np.sqrt(variance_s) * np.sqrt(variance_t)
    ratio: np.ndarray = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
    return ratio


def check_views(x: View, y: View) -> None:
    """Raise ValueError if the views differ in length, are constant, or have only one point."""
    n, n_y = len(x.F), len(y.F)
    if n != n_y:
        raise ValueError(f"the views have {n} and {n_y} points; each point must be in both views")
    if n < 2:
        raise ValueError(f"views with n_samples = {n} have no covariance; use at least 2 points")
    for name, view in (("X", x), ("y", y)):
        if view.is_constant:
            raise ValueError(
                f"{name} is constant: its {n} points differ in feature space by less than the "
                f"rounding error of k(x, x), which is {view.mean_squared_norm:.3g} on average. The "
                f"usual cause is a length scale that is far too large, or a linear kernel on "
                f"features far from 0: centre or scale the features"
            )


def leading_singular_vectors(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the k largest singular values s of M and their vectors U and V: M V = U diag(s)."""
    if min(M.shape) <= _MAX_FULL_SVD:
        U, s, Vt = svd(M, full_matrices=False)
        return U[:, :k], s[:k], Vt[:k].T
    if M.shape[0] < M.shape[1]:
        V, s, U = leading_singular_vectors(M.T, k)
        return U, s, V
    m = M.shape[1]
    _, V = eigh(M.T @ M, subset_by_index=[m - k, m - 1], overwrite_a=True)
    # Small singular values are inaccurate, because M^T M has the squared condition number of M.
    # Recompute them from M, restricted to the subspace of V.
    U, s, Rt = svd(M @ V, full_matrices=False)
    return U, s, V @ Rt.T


# --- Whitened coordinates of two views


@entry_point
def two_view_coordinates(
    kernels: tuple[Kernel, Kernel],
    points: tuple[Any, Any],
    spec: str,
    landmarks: tuple[Landmarks, Landmarks],
    workspace: Callable[[int, int, int], int],
    *,
    among: tuple[Points, Points] | None = None,
    max_memory: MemoryLimit = None,
) -> tuple[WhitenedCoordinates, WhitenedCoordinates]:
    """Compute the whitened coordinates of both views, exact or from landmarks.

    Parameters
    ----------
    kernels : pair of Kernel
    points : pair of points
    spec : str
        "auto", "nystroem" or the name of an exact solver; see `whiten`.
    landmarks : pair of Landmarks
    workspace : function
        `workspace(n, m, m_y)` returns the bytes that the solver needs in addition to the
        coordinates, for n points with m and m_y coordinates.
    among : pair of points, optional
        The points from which landmarks are chosen, by default all points.  Must be given for
        points in `Blocks`.
    max_memory : int, str or None
        Memory budget.

    Returns
    -------
    phi, psi : WhitenedCoordinates

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.solvers import two_view_coordinates
    >>> X = np.arange(5.0)[:, None]
    >>> spec, marks = "exact", (Landmarks(), Landmarks())
    >>> phi, psi = two_view_coordinates((RBF(), Linear()), (X, X), spec, marks, lambda n, m, m_y: 0)
    >>> phi.F.shape, psi.F.shape
    ((5, 5), (5, 1))
    """
    n, seen = length(points[0]), among or points
    needed = two_view_memory(kernels, seen, n, landmarks[1], workspace)
    common: dict[str, Any] = {"exact": "exact", "max_memory": max_memory}
    common["what"] = f"two views of {n} points"
    (k_x, k_y), (X, Y), (landmarks_x, landmarks_y) = kernels, points, landmarks
    seen_x, seen_y = seen
    phi = whiten(k_x, X, spec, landmarks_x, lambda s, m: needed(s, m, m), among=seen_x, **common)
    m = phi.F.shape[1]
    return phi, whiten(
        k_y, Y, spec, landmarks_y, lambda s, m_y: needed(s, m, m_y), among=seen_y, **common
    )


def two_view_memory(
    kernels: tuple[Kernel, Kernel],
    among: tuple[Points, Points],
    n: int,
    landmarks: Landmarks,
    workspace: Callable[[int, int, int], int],
) -> Callable[[str, int, int], int]:
    """Return a function `needed(solver, m, m_y)`: the bytes for m and m_y coordinates.

    The arguments are those of `two_view_coordinates`; `landmarks` are those of the second view.
    """
    threads = check_threads(None)
    tile_bytes = max(
        working_bytes(k, X, None, 0, threads) for k, X in zip(kernels, among, strict=True)
    )

    def needed(solver: str, m: int, m_y: int) -> int:
        """Return the peak memory in bytes.

        Memory use peaks either while the second view is computed, with the first one in memory, or
        while the solver uses both views.
        """
        if solver == "nystroem":
            selection_bytes = replace(landmarks, rank=m_y).workspace(n)
            whitening_bytes = selection_bytes + 8 * (n * m_y + 3 * m_y * m_y)
        else:
            whitening_bytes = 24 * n * n
        solving_bytes = 8 * (n * m_y + m_y * m_y) + workspace(n, m, m_y)
        return tile_bytes + 8 * (n * m + m * m) + max(whitening_bytes, solving_bytes)

    return needed
