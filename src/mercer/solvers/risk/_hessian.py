"""Hessian factorisations of a regularised risk, and Newton steps by conjugate gradients.

    H = sum_i v_i [F 1]_i^T (d^2 loss_i) [F 1]_i + mu I,      mu = 0 for the intercepts

[F 1]_i holds the m coordinates of point i and a 1 for the intercept, v_i is its weight, and mu is
the ridge penalty.  H has q (m + 1) rows for q outputs.  There are three cases:

- The loss does not couple the outputs: H is block diagonal, with one exact factor per output.
- The loss couples the outputs (softmax): all outputs share one factor, computed from the mean of
  their second derivatives, which preconditions conjugate gradients (CG).  The number of CG steps
  grows as the predicted probabilities approach 0 and 1.
- The loss couples the outputs, CG needs many steps and H is small: H is factored as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._core.linalg import blas, cho_solve, lapack
from .._blocked_products import weighted_gram
from ._losses import LocalLoss


class BlockPreconditioner:
    """Inverse of the block-diagonal Hessian: one block per output, or one shared mean block.

    Calling it with the residuals r (m, q) of the weights and s (q,) of the intercepts applies the
    inverse.
    """

    def __init__(
        self, F: np.ndarray, weights: np.ndarray, local: LocalLoss, shift: float, intercept: bool
    ) -> None:
        curvature = weights[:, None] * local.diagonal
        if is_coupled(local):
            curvature = curvature.sum(axis=1, keepdims=True) / (curvature.shape[1] - 1)
        self.intercept = intercept
        # Each slice selects the outputs that share a factor: a single output, or all of them.
        separate = curvature.shape[1] > 1
        self.output_slices = (
            [slice(c, c + 1) for c in range(curvature.shape[1])] if separate else [slice(None)]
        )
        self.factors = [self._factor_block(F, d, shift) for d in curvature.T]

    def _factor_block(self, F: np.ndarray, d: np.ndarray, shift: float) -> _FactoredBlock:
        # If the loss has no curvature, an infinite `total` leaves the intercept unchanged.
        total = float(d.sum()) if d.sum() > np.finfo(float).tiny else np.inf
        mean = self.intercept * (F.T @ d) / total
        H = weighted_gram(F, d)
        if H.size and total < np.inf:
            H = blas.dsyr(-total, mean, lower=1, a=H, overwrite_a=1)
        H.flat[:: len(H) + 1] += shift
        return _FactoredBlock(_factor(H), mean, total)

    def __call__(self, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, t = np.empty_like(r), np.empty_like(s)
        for outputs, (L, mean, total) in zip(self.output_slices, self.factors, strict=True):
            right = r[:, outputs] - np.outer(mean, s[outputs])
            z[:, outputs] = cho_solve((L, True), right, check_finite=False) if L.size else right
            t[outputs] = self.intercept * (s[outputs] / total - mean @ z[:, outputs])
        return z, t


class _FactoredBlock(NamedTuple):
    """Cholesky factor L of one block of the Hessian, L L^T = F^T D F + mu I.

    F is centred here: `mean`, the mean of its rows with weights D, has been subtracted.  D is the
    diagonal matrix of second derivatives, and `total` its trace.
    """

    L: np.ndarray
    mean: np.ndarray
    total: float


class JointPreconditioner:
    """Inverse of the joint Hessian of all outputs, including the coupling between outputs.

    Calling it with the residuals r (m, q) of the weights and s (q,) of the intercepts applies the
    inverse.
    """

    def __init__(
        self, F: np.ndarray, weights: np.ndarray, local: LocalLoss, shift: float, intercept: bool
    ) -> None:
        n, m = F.shape
        A = np.column_stack([F, np.ones(n)]) if intercept else F
        M, q = A.shape[1], local.slopes.shape[1]
        H = np.empty((M * q, M * q), order="F")
        for c in range(q):
            weighted = weights[:, None] * local.times(np.broadcast_to(np.eye(q)[c], (n, q)))
            for e in range(c, q):
                H[e * M : (e + 1) * M, c * M : (c + 1) * M] = A.T @ (weighted[:, e, None] * A)
        diagonal = H.diagonal().reshape(q, M).copy()
        diagonal[:, :m] += shift
        # A constant added to all intercepts does not change the softmax loss, so H is singular.
        # Slightly larger diagonal entries make it positive definite.
        diagonal[:, m:] *= 1.0 + 1e-8
        np.fill_diagonal(H, diagonal.ravel())
        self.L, self.intercept = _factor(H), intercept

    def __call__(self, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        right = np.vstack([r, s]) if self.intercept else r
        x = cho_solve((self.L, True), right.ravel(order="F"), check_finite=False)
        x = x.reshape(right.shape, order="F")
        return (x[:-1], x[-1]) if self.intercept else (x, np.zeros_like(s))


def is_coupled(local: LocalLoss) -> bool:
    """Return True if changing the first output changes the slopes of the other outputs."""
    V = np.zeros(local.slopes.shape)
    V[:, 0] = 1.0
    return bool(np.any(local.times(V)[:, 1:]))


def _factor(H: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of H, with jitter on the diagonal if H is numerically indefinite.

    Jitter does not change the solution of the Newton step, because the factor is only a
    preconditioner.
    """
    if not len(H):
        return H
    jitter = 0.0
    L: np.ndarray
    for _ in range(20):
        A = H.copy(order="F")
        A.flat[:: len(A) + 1] += jitter
        L, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
        if info == 0:
            return L
        jitter = max(10.0 * jitter, float(np.finfo(float).eps * np.trace(H)))
    raise np.linalg.LinAlgError(
        "the second derivatives of the objective are not finite, or not positive"
    )


def newton_direction(
    hessian_product: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    precondition: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    relative_tol: Callable[[float], float],
    max_products: int,
) -> tuple[np.ndarray, Any, int]:
    """Solve H d = -gradient approximately by preconditioned conjugate gradients.

    CG runs for all outputs together.  It stops if the residual is small enough, measured by its
    squared Newton decrement, if `max_products` is reached, or if rounding makes the curvature along
    the search direction non-positive.  The result is a descent direction in each case.

    Parameters
    ----------
    hessian_product : function
        Maps a direction p to H p and to the change of the predictions along p.
    precondition : function
        Applies an approximate inverse of H.
    gradient : ndarray
        The gradient of the objective.
    relative_tol : function
        Maps the initial squared decrement to the factor of reduction at which CG stops.
    max_products : int
        Maximum number of products with H.

    Returns
    -------
    d : ndarray
        The direction.
    values : ndarray or 0.0
        The change of the predictions along d; 0.0 if no product was made.
    products : int
        Number of products with H.
    """
    R = -gradient
    Z = precondition(R)
    d, P, products = np.zeros_like(R), Z, 0
    values: Any = 0.0
    decrement = float(np.sum(R * Z))
    target = max(decrement * relative_tol(decrement), 0.0)
    while products < max_products and decrement > target:
        HP, values_along = hessian_product(P)
        products += 1
        curvature = float(np.sum(P * HP))
        if not curvature > 0:
            break
        length = decrement / curvature
        d, values, R = d + length * P, values + length * values_along, R - length * HP
        Z = precondition(R)
        decrement, previous = float(np.sum(R * Z)), decrement
        P = Z + (decrement / previous) * P
    return d, values, products
