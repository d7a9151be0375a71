"""A view: coordinates of points, seen from their mean, with weights; and what relates two of them.

With F the coordinates of n points in whitened coordinates, F F^T = K, c their weights (of sum 1)
and m = F^T c the mean, a direction u is the function f = Phi u of the RKHS, and

    f(x_i) - mean = ((F - 1 m^T) u)_i,    var f = u^T C u,    C = (F - 1 m^T)^T diag(c) (F - 1 m^T)

The mean is subtracted from products: F is not copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..._runtime import entry_point
from ..._runtime.linalg import eigh, svd
from .._report import Report
from .._row_blocks import cross_gram, pulled, row_norms, weighted_gram

__all__ = ["Relation", "View", "check_views", "correlations", "leading"]

_EPS = float(np.finfo(float).eps)
_SMALL = 500  # singular values up to which LAPACK finds all of them as quickly as a few


@entry_point
@dataclass(frozen=True, eq=False)
class View:
    """Coordinates of n points as seen from their mean.

    Attributes
    ----------
    F : ndarray of shape (n, m)
    shares : ndarray of shape (n,)
        The weights c, of sum 1.
    mean : ndarray of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import View
    >>> x, y = View.of(np.array([[1.0], [3.0]])), View.of(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> x.scores(np.ones((1, 1)))[:, 0], x.covariance(y)
    (array([-1.,  1.]), array([[-1. ,  0.5]]))
    """

    F: np.ndarray
    shares: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(cls, F: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Return the view of points with these weights, which count up to a common factor."""
        c = np.full(len(F), 1.0 / len(F)) if weights is None else weights / weights.sum()
        return cls(F, c, pulled(F, c))

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Return (F - 1 m^T) W, of mean 0."""
        return self.F @ W - self.mean @ W

    def pull(self, T: np.ndarray) -> np.ndarray:
        """Return (F - 1 m^T)^T diag(c) T."""
        T = (self.shares * T.T).T
        return pulled(self.F, T) - np.multiply.outer(self.mean, T.sum(axis=0))

    def covariance(self, other: View) -> np.ndarray:
        """Return the covariance of the coordinates of two views, (m, m')."""
        return cross_gram(self.F, self.shares, other.F, self.mean, other.mean)

    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances of this view that rounding does not hide, and their directions."""
        C = weighted_gram(self.F, self.shares, self.mean)
        values, Q = eigh(C, lower=True, overwrite_a=True)
        seen = values > self.rounding
        return values[seen], Q[:, seen]

    @cached_property
    def size(self) -> float:
        """The mean of k(x, x), as the coordinates know it."""
        return float(self.shares @ row_norms(self.F))

    @property
    def rounding(self) -> float:
        """A variance that rounding of K may account for."""
        return max(16, *self.F.shape) * _EPS * self.size

    @property
    def is_constant(self) -> bool:
        """Whether the points differ by no more than rounding."""
        return self.size - float(self.mean @ self.mean) <= self.rounding


@entry_point
@dataclass(frozen=True, eq=False)
class Relation:
    """Pairs of directions, one of each view, with what their scores have in common.

    Attributes
    ----------
    x, y : ndarray of shape (m, k) and (m', k)
        The directions, in the coordinates of each view.
    values : ndarray of shape (k,)
        What was made largest by each pair: a correlation, or a covariance.
    offset, offset_y : ndarray of shape (k,)
        The means of the functions: scores are values of functions less these.
    view : View
        The first.
    report : Report

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
    def of(cls, x: View, y: View, U: np.ndarray, V: np.ndarray, **found: Any) -> Self:
        """Return what relates two views."""
        return cls(U, V, offset=x.mean @ U, offset_y=y.mean @ V, view=x, **found)

    def regression(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return B and b of the least squares of targets on the scores T: targets ~ T B + b.

        The scores must be uncorrelated, as those of partial least squares are.
        """
        c, T = self.view.shares, self.view.scores(self.x)
        mean = c @ targets
        variances = c @ np.square(T)
        return T.T @ (c[:, None] * (targets - mean)) / variances[:, None], mean


@entry_point
def correlations(S: np.ndarray, T: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the correlation of each column of S with the same one of T; 0 if one is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import correlations
    >>> correlations(np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])).round(6)
    array([1.])
    """
    c = None if weights is None else weights / weights.sum()
    S, T = (A - np.average(A, axis=0, weights=c) for A in (S, T))
    both, first, second = (np.average(A, axis=0, weights=c) for A in (S * T, S * S, T * T))
    size = np.sqrt(first) * np.sqrt(second)
    return np.divide(both, size, out=np.zeros_like(both), where=size > 0)


def check_views(x: View, y: View) -> None:
    """Refuse views of different lengths, of one point, and those that do not vary."""
    n, n_y = len(x.F), len(y.F)
    if n != n_y:
        raise ValueError(f"the views have {n} and {n_y} points; each point needs both")
    if n < 2:
        raise ValueError(f"two views of n_samples = {n} have no covariance; give more points")
    for name, view in (("X", x), ("y", y)):
        if view.is_constant:
            raise ValueError(
                f"{name} is constant: its {n} points differ by less in feature space than rounding "
                f"of k(x, x), {view.size:.3g} in the mean. The usual cause is a length scale far "
                f"too long, or a linear kernel on features far from 0: centre or scale them"
            )


def leading(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, s and V of the k largest singular values: M V = U s."""
    if min(M.shape) <= _SMALL:
        U, s, Vt = svd(M, full_matrices=False)
        return U[:, :k], s[:k], Vt[:k].T
    if M.shape[0] < M.shape[1]:
        V, s, U = leading(M.T, k)
        return U, s, V
    m = M.shape[1]
    _, V = eigh(M.T @ M, subset_by_index=[m - k, m - 1], overwrite_a=True)
    # within their span M itself decides, without the squares
    U, s, Rt = svd(M @ V, full_matrices=False)
    return U, s, V @ Rt.T
