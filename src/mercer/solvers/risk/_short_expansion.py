"""The regularised risk of a short expansion f = sum_j b_j k(z_j, .) + c, and its best weights.

    J(Z, B) = sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2,        |f|^2 = tr(B^T K_zz B)

For given vectors Z it is convex in the weights B (with the intercept c as a last row, which is not
penalised).  They are found by Newton's method; its steps by conjugate gradients, preconditioned by
the second derivatives of each output for itself,

    H_c = [K_xz 1]^T W_c [K_xz 1] + 2 alpha K_zz,       W_c = diag(w_i d^2 loss_i / df_c(x_i)^2).

Unless the loss couples the outputs (Softmax), these are all there is, and one step of CG solves the
system; for the squared loss that is the ridge solution.  What of B neither the data nor the norm
can see, because vectors depend on each other, stays 0.

Rows of k(X, Z) are worked on in strips, dealt to groups by n and m alone: the bits do not depend on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._errors import NotPositiveDefiniteError
from ..._points import take
from ..._runtime import ENTRY_WORK, budget_in_bytes, ordered_sum, quiet, run
from ...kernels import Kernel, Prepared
from ._curvature import newton_direction
from ._losses import Local, Loss

__all__ = ["Fit", "OverflowingKernelError", "ShortExpansionRisk"]

_TILE = 2**20  # bytes of k(X, Z) evaluated at a time, which fit the second-level cache
_GROUPS = 8  # sums over rows are made of this many parts, added in order
_MAX_NEWTON, _MAX_CG, _MAX_HALVINGS = 100, 200, 40  # far more than are ever needed
_SCALE_VECTORS, _SCALE_MOVES = 10, 32  # so many vectors, and moves of them, tell a column's scale
_STALE = 4  # after more steps of CG the preconditioner is made anew


class OverflowingKernelError(ValueError):
    """k(x, z) is not finite for these vectors."""


class Fit(NamedTuple):
    """The best weights for some vectors: f = sum_j weights_j k(vectors_j, .) + intercept."""

    value: float
    kernel: Kernel
    vectors: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    slopes: np.ndarray  # w_i dloss_i / df(x_i), from which gradients follow


@dataclass(frozen=True, eq=False)
class ShortExpansionRisk:
    """J(Z, B) = sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2 for f = sum_j b_j k(z_j, .) + c.

    Parameters
    ----------
    kernel : Kernel
        With all its values resolved.
    X : ndarray or CSR array of shape (n, d)
        In float64.
    Y : ndarray of shape (n, q)
    loss : Loss
    weights : ndarray of shape (n,)
        The w_i; they sum to 1.
    alpha : float
    intercept : bool
    max_memory : int, str or None
        k(X, Z) is kept while weights are sought if it fits half of this, else evaluated again.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ShortExpansionRisk, Squared
    >>> X = np.array([[0.0], [1.0]])
    >>> Y, w = np.array([[1.0], [3.0]]), np.full(2, 0.5)
    >>> risk = ShortExpansionRisk(RBF(), X, Y, Squared(), w, alpha=1e-9)
    >>> risk.best(X).intercept.round(4)
    array([2.])
    """

    kernel: Kernel
    X: Any
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray
    alpha: float
    intercept: bool = True
    max_memory: Any = None

    # ------------------------------------------------------------------ derivatives

    def value(self, Z: np.ndarray, B: np.ndarray) -> float:
        """Return J for weights B of shape (m, q) or, with the intercept below them, (m + 1, q)."""
        values = self.loss(_Columns(self, Z).times(B), self.Y).values
        return float(self.weights @ values) + self._penalty(self.kernel(Z), B)

    def gradient(self, Z: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dJ/dZ and dJ/dB."""
        columns = _Columns(self, Z)
        G = self._slopes(self.loss(columns.times(B), self.Y))
        return self.pull(Z, B[: len(Z)], G), columns.adjoint(G) + self._pull(self.kernel(Z), B)

    def pull(self, Z: np.ndarray, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return dJ/dZ for the slopes G = w_i dloss_i / df(x_i)."""

        def strip(rows: slice) -> np.ndarray:
            return self.kernel.input_gradient(Z, take(self.X, rows), B @ G[rows].T)

        norms = self.kernel.input_gradient(Z, None, B @ B.T)
        return self._sum(strip, len(Z), 8.0 * len(G) * Z.size) + 2.0 * self.alpha * norms

    def pull_theta(self, Z: np.ndarray, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return dJ/dtheta, theta the logarithms of the kernel's free parameters."""

        def strip(rows: slice) -> np.ndarray:
            return self.kernel.pullback(Z, take(self.X, rows), B @ G[rows].T)

        norms = self.kernel.pullback(Z, None, B @ B.T)
        return self._sum(strip, len(Z), 8.0 * len(G) * Z.size) + self.alpha * norms

    def speed(self, Z: np.ndarray) -> np.ndarray:
        """Return how fast k(z, .) moves in the RKHS along each column, on average over the vectors.

        |dk(z, .)/dz_c|^2 = d^2 k(z, z') / dz_c dz'_c at z' = z, here by differences in z'.  Of many
        columns all move at once, up or down by random signs, with which mixed terms cancel.
        """
        Z = Z[:: -(-len(Z) // _SCALE_VECTORS)]
        d, rng = Z.shape[1], np.random.default_rng(0)
        squares = self.X.multiply(self.X) if sp.issparse(self.X) else np.square(self.X)
        variance = np.maximum(self.weights @ squares - np.square(self.weights @ self.X), 0.0)
        step = 1e-3 * np.sqrt(np.maximum(variance, 0.01 * variance.mean()))
        step = np.where(step > 0, step, 1e-3)
        moves = np.eye(d) if d <= _SCALE_MOVES else rng.choice([-1.0, 1.0], size=(_SCALE_MOVES, d))
        total = np.zeros(d)
        for e in np.concatenate([moves, -moves]):
            total += e * self.kernel.input_gradient(Z, Z + step * e, np.eye(len(Z))).mean(axis=0)
        return np.sqrt(np.maximum(total / (2.0 * step * np.square(moves).sum(axis=0)), 0.0))

    def _slopes(self, local: Local) -> np.ndarray:
        return self.weights[:, None] * local.slopes

    def _penalty(self, K: np.ndarray, B: np.ndarray) -> float:
        return self.alpha * float(np.sum(B[: len(K)] * (K @ B[: len(K)])))

    def _pull(self, K: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return d(alpha |f|^2)/dB, with 0 for an intercept."""
        out = np.zeros_like(B)
        out[: len(K)] = 2.0 * self.alpha * (K @ B[: len(K)])
        return out

    # ------------------------------------------------------------------ the best weights

    @quiet
    def best(self, Z: np.ndarray, start: Fit | None = None, accuracy: float = 1e-13) -> Fit:
        """Return the weights that minimise J for these vectors.

        Newton's method stops when a step promises less than `accuracy` times J; `start` is where
        it begins, 0 by default.
        """
        columns, K = _Columns(self, Z), self.kernel(Z)
        B = np.zeros((len(Z) + self.intercept, self.Y.shape[1]))
        if start is not None and len(start.weights) == len(Z):
            B[: len(Z)] = start.weights
            B[len(Z) :] = start.intercept
        F = columns.times(B)
        local = self.loss(F, self.Y)
        value = float(self.weights @ local.values) + self._penalty(K, B)
        T, taken = None, 0
        for _ in range(_MAX_NEWTON):
            g = columns.adjoint(self._slopes(local)) + self._pull(K, B)
            if T is None or taken > _STALE:
                T = self._whitener(columns, K, local)
            whitened = _each(T.transpose(0, 2, 1), g)
            if np.sum(np.square(whitened)) <= 1e-3 * accuracy * value:
                break
            C, moved, taken = newton_direction(
                partial(self._bent, columns, K, local, T), _same, whitened, _digits(value), _MAX_CG
            )
            D, size = _each(T, C), 1.0
            promise = -0.5 * float(np.sum(g * D))
            if not promise > accuracy * value:
                break
            for _ in range(_MAX_HALVINGS):
                tried = self.loss(F + size * moved, self.Y)
                new = float(self.weights @ tried.values) + self._penalty(K, B + size * D)
                if new <= value - 1e-4 * size * promise:
                    break
                size *= 0.5
            else:  # nothing but rounding is left
                break
            B, F, local, value = B + size * D, F + size * moved, tried, new
        return Fit(value, self.kernel, Z, B[: len(Z)], _intercept(B, len(Z)), self._slopes(local))

    def _whitener(self, columns: _Columns, K: np.ndarray, local: Local) -> np.ndarray:
        """Return T_c with T_c^T H_c T_c = I on all that can be told from rounding, (q, m, m)."""
        H = columns.normal(self.weights[:, None] * local.diagonal)
        H[:, : len(K), : len(K)] += 2.0 * self.alpha * K
        if not np.isfinite(H.sum()):
            raise OverflowingKernelError(
                f"k(x, z) is not finite; the usual cause is a kernel that overflows on these "
                f"points: {self.kernel}. Scale the features"
            )
        values, Q = np.linalg.eigh(H)
        if np.any(values[:, 0] < -1e-8 * np.abs(values).max(axis=1)):
            raise NotPositiveDefiniteError(
                f"the risk of {len(K)} vectors has a second derivative of {values.min():.3g}, with "
                f"others up to {values.max():.3g}: {self.kernel} is not positive semidefinite on "
                f"them; choose a Mercer kernel"
            )
        floor = 4.0 * H.shape[1] * np.finfo(float).eps * np.maximum(values[:, -1:], 0.0)
        kept = values > floor
        return Q * np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]

    def _bent(
        self, columns: _Columns, K: np.ndarray, local: Local, T: np.ndarray, C: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the second derivatives times T C, whitened, and the values of T C."""
        V = _each(T, C)
        moved = columns.times(V)
        bent = columns.adjoint(self.weights[:, None] * local.times(moved)) + self._pull(K, V)
        return _each(T.transpose(0, 2, 1), bent), moved

    # ------------------------------------------------------------------ rows

    @cached_property
    def _prepared(self) -> Prepared:
        return self.kernel.prepare(self.X)

    def strips(self, m: int) -> list[slice]:
        """Return the rows, some at a time."""
        n = len(self.Y)
        size = int(np.clip(_TILE // (8 * m), 64, 4096))
        return [slice(i, min(i + size, n)) for i in range(0, n, size)]

    def _sum(self, term: Callable[[slice], np.ndarray], m: int, cost: float) -> np.ndarray:
        """Return the sum of term(rows) over all strips, in an order that does not change."""
        return np.asarray(ordered_sum(term, self.strips(m), _GROUPS, work=cost))


class _Columns:
    """[k(X, Z) 1] as a matrix to multiply with: held if that fits, else evaluated strip by strip.

    A factor with m rows leaves the 1, the intercept, out.
    """

    def __init__(self, risk: ShortExpansionRisk, Z: np.ndarray) -> None:
        self.risk, self.m = risk, len(Z)
        P = risk._prepared
        self._P, self._Q = P, risk.kernel.prepare(Z, like=P)
        self._held = None
        if 16 * len(P) * self.m <= budget_in_bytes(risk.max_memory):
            held = np.empty((len(P), self.m))
            self._over(lambda rows: risk.kernel.tile(P[rows], self._Q, held[rows]), ENTRY_WORK)
            self._held = held

    def tile(self, rows: slice) -> np.ndarray:
        if self._held is not None:
            return self._held[rows]
        P = self._P[rows]
        return self.risk.kernel.tile(P, self._Q, np.empty((len(P), self.m)))

    def times(self, B: np.ndarray) -> np.ndarray:
        """Return [K 1] B."""
        out = np.empty((len(self._P), B.shape[1]))

        def strip(rows: slice) -> None:
            np.matmul(self.tile(rows), B[: self.m], out=out[rows])
            out[rows] += _intercept(B, self.m)

        self._over(strip, self._cost + B.shape[1])
        return out

    def adjoint(self, G: np.ndarray) -> np.ndarray:
        """Return [K 1]^T G, without the last row if there is no intercept."""
        cost = (self._cost + G.shape[1]) * len(G) * self.m
        out = self.risk._sum(lambda rows: self.tile(rows).T @ G[rows], self.m, cost)
        return np.vstack([out, G.sum(axis=0)]) if self.risk.intercept else out

    def normal(self, W: np.ndarray) -> np.ndarray:
        """Return [K 1]^T diag(W_c) [K 1] for each column of W."""
        root, size = np.sqrt(W), self.m + self.risk.intercept

        def strip(rows: slice) -> np.ndarray:
            A = self.tile(rows)
            if self.risk.intercept:
                A = np.hstack([A, np.ones((len(A), 1))])
            out = np.empty((W.shape[1], size, size))
            for c, r in enumerate(root[rows].T):
                some = A[r > 0] * r[r > 0, None]  # for the hinge few rows are left
                np.matmul(some.T, some, out=out[c])
            return out

        return self.risk._sum(strip, self.m, (self._cost + self.m * W.shape[1]) * len(W) * self.m)

    @property
    def _cost(self) -> float:
        """What it costs to have an entry of K, in multiplications."""
        return 0.0 if self._held is not None else ENTRY_WORK

    def _over(self, task: Callable[[slice], Any], cost: float) -> None:
        run(task, self.risk.strips(self.m), work=cost * len(self._P) * self.m)


def _each(T: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return T_c times column c of C; there may be one T for all."""
    return T[0] @ C if len(T) == 1 else np.matmul(T, C.T[:, :, None])[:, :, 0].T


def _same(R: np.ndarray) -> np.ndarray:
    """Return R: whitened coordinates need no preconditioner."""
    return R


def _digits(value: float) -> Callable[[float], float]:
    """Return few digits while far away, many when close: then Newton's method keeps its speed."""
    return lambda left: min(0.01, float(np.sqrt(left / value)))


def _intercept(B: np.ndarray, m: int) -> np.ndarray:
    """Return the last row of B, 0 if there is none beside the weights."""
    return B[m] if len(B) > m else np.zeros(B.shape[1])
