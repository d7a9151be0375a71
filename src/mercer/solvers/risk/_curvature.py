"""The second derivatives H of a regularised risk: factors of them, and Newton steps by CG.

    H = sum_i v_i [F 1]_i^T (d^2 loss_i) [F 1]_i + mu I,      the intercepts without mu

of q (m + 1) unknowns.  Outputs that the loss does not couple have a block each, which is exact.
Coupled ones share that of the mean of their second derivatives: one factor for all of them, and a
number of CG steps that grows with the certainty of predictions.  Where these become many and the
joint H is small, it is factored as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._runtime.linalg import blas, cho_solve, lapack
from .._row_blocks import weighted_gram
from ._losses import Local

__all__ = ["Blocks", "Joint", "coupled", "newton_direction"]


class Blocks:
    """The inverse of the second derivatives, of each output for itself or of their mean."""

    def __init__(
        self, F: np.ndarray, weights: np.ndarray, local: Local, shift: float, intercept: bool
    ) -> None:
        D = weights[:, None] * local.diagonal
        if coupled(local):
            D = D.sum(axis=1, keepdims=True) / (D.shape[1] - 1)
        self.intercept = intercept
        # the outputs that share a factor: all of them, if it is the same for all
        alone = D.shape[1] > 1
        self.parts = [slice(c, c + 1) for c in range(D.shape[1])] if alone else [slice(None)]
        self.factors = [self._of(F, d, shift) for d in D.T]

    def _of(self, F: np.ndarray, d: np.ndarray, shift: float) -> _Block:
        # an output without curvature says nothing about its intercept
        total = float(d.sum()) if d.sum() > np.finfo(float).tiny else np.inf
        mean = self.intercept * (F.T @ d) / total
        H = weighted_gram(F, d)
        if H.size and total < np.inf:
            H = blas.dsyr(-total, mean, lower=1, a=H, overwrite_a=1)
        H.flat[:: len(H) + 1] += shift
        return _Block(_factor(H), mean, total)

    def __call__(self, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, t = np.empty_like(r), np.empty_like(s)
        for part, (L, mean, total) in zip(self.parts, self.factors, strict=True):
            right = r[:, part] - np.outer(mean, s[part])
            z[:, part] = cho_solve((L, True), right, check_finite=False) if L.size else right
            t[part] = self.intercept * (s[part] / total - mean @ z[:, part])
        return z, t


class _Block(NamedTuple):
    """L L^T = F^T D F + mu I with F centred, its mean under D, and the trace of D."""

    L: np.ndarray
    mean: np.ndarray
    total: float


class Joint:
    """The inverse of the second derivatives of all outputs together."""

    def __init__(
        self, F: np.ndarray, weights: np.ndarray, local: Local, shift: float, intercept: bool
    ) -> None:
        n, m = F.shape
        A = np.column_stack([F, np.ones(n)]) if intercept else F
        M, q = A.shape[1], local.slopes.shape[1]
        H = np.empty((M * q, M * q), order="F")
        for c in range(q):
            bent = weights[:, None] * local.times(np.broadcast_to(np.eye(q)[c], (n, q)))
            for e in range(c, q):
                H[e * M : (e + 1) * M, c * M : (c + 1) * M] = A.T @ (bent[:, e, None] * A)
        diagonal = H.diagonal().reshape(q, M).copy()
        diagonal[:, :m] += shift
        # H is singular: a coupled loss does not see a constant that all intercepts share
        diagonal[:, m:] *= 1.0 + 1e-8
        np.fill_diagonal(H, diagonal.ravel())
        self.L, self.intercept = _factor(H), intercept

    def __call__(self, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        right = np.vstack([r, s]) if self.intercept else r
        x = cho_solve((self.L, True), right.ravel(order="F"), check_finite=False)
        x = x.reshape(right.shape, order="F")
        return (x[:-1], x[-1]) if self.intercept else (x, np.zeros_like(s))


def coupled(local: Local) -> bool:
    """Tell whether a change in the first output alone changes the slopes in others."""
    V = np.zeros(local.slopes.shape)
    V[:, 0] = 1.0
    return bool(np.any(local.times(V)[:, 1:]))


def _factor(H: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of H; where rounding outweighs mu, of H + jitter.

    The jitter only makes it a worse preconditioner.
    """
    if not len(H):
        return H
    jitter = 0.0
    for _ in range(20):
        A = H.copy(order="F")
        A.flat[:: len(A) + 1] += jitter
        L, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
        if info == 0:
            return L
        jitter = max(10.0 * jitter, float(np.finfo(float).eps * np.trace(H)))
    raise np.linalg.LinAlgError("the second derivatives of the loss are not finite")


def newton_direction(
    times: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    precondition: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    digits: Callable[[float], float],
    most: int,
) -> tuple[np.ndarray, Any, int]:
    """Return d with H d = -gradient, nearly, the values of f along d, and the products it took.

    Conjugate gradients, of all outputs together; `times` returns H p and the values of p.  They end
    when the squared decrement that is left is `digits` of the first one, or after `most` products,
    or where rounding leaves no curvature: each of these is a direction of descent.
    """
    R = -gradient
    Z = precondition(R)
    d, P, products = np.zeros_like(R), Z, 0
    values: Any = 0.0
    left = float(np.sum(R * Z))
    enough = max(left * digits(left), 0.0)
    while products < most and left > enough:
        HP, moved = times(P)
        products += 1
        bend = float(np.sum(P * HP))
        if not bend > 0:
            break
        size = left / bend
        d, values, R = d + size * P, values + size * moved, R - size * HP
        Z = precondition(R)
        left, before = float(np.sum(R * Z)), left
        P = Z + (left / before) * P
    return d, values, products
