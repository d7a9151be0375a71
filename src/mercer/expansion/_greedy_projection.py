"""Projections of functions in an RKHS on the span of k(z, .) for greedily chosen points z."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .._core import Points, length, take
from ._expansion import Expansion


class GreedyProjection:
    """Projections g of functions f on a growing span, with the norms |f - g|.

    Each step adds the point for which the sum of |f - g|^2 decreases most, by h(z)^2 / P(z)^2 with
    the residual h = f - g and the distance P(z) of z from the present span in feature space.
    """

    def __init__(self, f: Expansion, sample: Points) -> None:
        self._f, self._sample = f, sample
        self._residual = f(f.points)
        self._squares = np.einsum("ij,ij->j", f.coefficients, self._residual)
        # The differences of squared norms have rounding errors of this size.
        self._rounding = 1e-10 * self._squares
        self._power = np.array(f.kernel.diag(f.points), dtype=float)
        self._smallest = 1e-6 * self._power.max(initial=0.0)
        self.pivots = np.empty(0, dtype=np.intp)
        self._factor = np.empty((length(f.points), 0), order="F")
        self._weights = np.empty((0, len(f)))
        self.columns = np.empty((length(sample), 0))  # k(x, z) for the sample and the pivots

    def extend(self, m: int) -> bool:
        """Add points until there are m; return False if the others are numerically in the span."""
        f, t, pivots = self._f, len(self.pivots), self.pivots.tolist()
        L, W = np.empty((len(self._factor), m), order="F"), np.empty((m, len(f)))
        L[:, :t], W[:t] = self._factor, self._weights
        for s in range(t, m):
            gains = np.square(self._residual).sum(axis=1) / np.maximum(self._power, self._smallest)
            i = int(np.where(self._power > self._smallest, gains, -1.0).argmax())
            if self._power[i] <= self._smallest:
                return False
            column = np.asarray(f.kernel(f.points, take(f.points, [i])))[:, 0]
            L[:, s] = (column - L[:, :s] @ L[i, :s]) / np.sqrt(self._power[i])
            W[s] = self._residual[i] / np.sqrt(self._power[i])
            self._residual -= np.outer(L[:, s], W[s])
            self._squares -= W[s] ** 2
            self._power = np.maximum(self._power - np.square(L[:, s]), 0.0)
            self._power[i] = 0.0
            pivots.append(i)
        self.pivots, self._weights, self._factor = np.array(pivots), W, L
        new = f.kernel(self._sample, take(f.points, self.pivots[t:]))
        self.columns = np.hstack([self.columns, np.asarray(new, dtype=float)])
        return True

    def projection(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the projections g, and upper bounds on |f - g|."""
        triangle = self._factor[self.pivots]
        B = scipy.linalg.solve_triangular(triangle, self._weights, lower=True, trans="T")
        return B, np.sqrt(np.maximum(self._squares, 0.0) + self._rounding)


def regress_on_columns(K: np.ndarray, R: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    """Return the minimiser B of |K B - Y|^2 + ridge tr(B^T R B).

    A small multiple of the identity is added to the matrix of the linear system, which can be
    singular if R = 0.
    """
    C = K.T @ K + ridge * R
    C.flat[:: len(C) + 1] += 1e-10 * np.trace(C)
    return np.asarray(scipy.linalg.solve(C, K.T @ Y, assume_a="pos"))
