"""The regularised risk of a reduced expansion f = sum_j b_j k(z_j, .) + c, and its best weights.

    J(Z, B) = sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2,        |f|^2 = tr(B^T K_zz B)

For fixed vectors Z with rows z_j, the risk is convex in the weights B with rows b_j.  (The last row
of B is the intercept, which is not penalised.)  Newton's method finds the weights.  Its linear
systems are solved by conjugate gradients (CG), preconditioned by the Hessian H_c of each output c,

    H_c = [K_xz 1]^T W_c [K_xz 1] + 2 alpha K_zz,       W_c = diag(w_i d^2 loss_i / df_c(x_i)^2).

Unless the loss couples the outputs (Softmax), this is the whole Hessian and one CG step solves the
system; for the squared loss the result is the ridge solution.  If the vectors are linearly
dependent in feature space, the components of B that change neither f nor its norm stay 0.

The rows of k(X, Z) are processed in blocks whose boundaries depend only on n and m, so results do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..._core import (
    ENTRY_WORK,
    MemoryLimit,
    NotPositiveDefiniteError,
    Points,
    budget_in_bytes,
    ignore_overflow,
    ordered_sum,
    run_in_threads,
    take,
)
from ...kernels import Kernel, Prepared
from ._hessian import newton_direction
from ._losses import LocalLoss, Loss


@dataclass(frozen=True)
class _ReducedExpansionTuning:
    """Numerical constants of the risk of a reduced expansion."""

    # Size in bytes of the blocks of k(X, Z); a block fits into the second-level cache.
    block_bytes: int = 2**20
    # Sums over points are split into this many parts, which are added in a fixed order.
    n_partial_sums: int = 8
    # Limits for Newton steps, CG steps and step halvings; far above what is needed in practice.
    max_newton_steps: int = 100
    max_cg_steps: int = 200
    max_halvings: int = 40
    # Maximum number of vectors over which `rkhs_speed` averages.
    n_scale_vectors: int = 10
    # If there are more columns than this, `rkhs_speed` uses this many random directions.
    n_scale_moves: int = 32
    # The preconditioner is recomputed if the last Newton step took more CG steps than this.
    max_stale_cg_steps: int = 4


_TUNING = _ReducedExpansionTuning()


class OverflowingKernelError(ValueError):
    """Raised if k(x, z) is not finite for the current vectors."""


class ExpansionFit(NamedTuple):
    """The optimal weights for given vectors: f = sum_j weights_j k(vectors_j, .) + intercept."""

    value: float
    kernel: Kernel
    vectors: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    slopes: np.ndarray  # weighted slopes of the losses at the points, used to compute gradients


@dataclass(frozen=True, eq=False)
class ReducedExpansionRisk:
    """Regularised risk of a kernel expansion on a few vectors, which need not be training points.

        J(Z, B) = sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2,    f = sum_j b_j k(z_j, .) + c

    For fixed vectors Z, the risk is convex in the weights B, and `fit_weights` minimises it.  Use
    `LearnedVectors` to learn the vectors, too.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers.
    X : ndarray or CSR array of shape (n, d)
        Training points, float64.
    Y : ndarray of shape (n, q)
        Targets.
    loss : Loss
        A smooth loss, such as `Squared` or `Logistic`.
    weights : ndarray of shape (n,)
        Sample weights w_i, which sum to 1.
    alpha : float
        Weight of the penalty |f|^2.
    intercept : bool, default=True
        Whether to fit the intercept c.
    max_memory : int, str or None, default=None
        Memory budget.  If k(X, Z) needs at most half of it, k(X, Z) is stored while the weights
        are fitted; otherwise it is recomputed for each product.

    See Also
    --------
    LearnedVectors : Learn the vectors.

    References
    ----------
    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", SIAM Journal on Numerical Analysis, 1973.

    Wu, Schölkopf and Bakır, "A direct method for building sparse kernel learning algorithms",
    Journal of Machine Learning Research, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ReducedExpansionRisk, Squared
    >>> X = np.array([[0.0], [1.0]])
    >>> Y, w = np.array([[1.0], [3.0]]), np.full(2, 0.5)
    >>> risk = ReducedExpansionRisk(RBF(), X, Y, Squared(), w, alpha=1e-9)
    >>> risk.fit_weights(X).intercept.round(4)
    array([2.])
    """

    kernel: Kernel
    X: Points
    Y: np.ndarray
    loss: Loss
    weights: np.ndarray
    alpha: float
    intercept: bool = True
    max_memory: MemoryLimit = None

    # ------------------------------------------------------------------ derivatives

    def value(self, Z: np.ndarray, B: np.ndarray) -> float:
        """Return the risk J for given vectors and weights.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.
        B : ndarray of shape (m, q) or (m + 1, q)
            The weights, with the intercept as an optional last row.

        Returns
        -------
        float
            The risk.
        """
        values = self.loss(Columns(self, Z).times(B), self.Y).values
        return float(self.weights @ values) + self._penalty(self.kernel(Z), B)

    def gradient(self, Z: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients dJ/dZ and dJ/dB.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.
        B : ndarray of shape (m, q) or (m + 1, q)
            The weights, with the intercept as an optional last row.

        Returns
        -------
        vector_gradient : ndarray of shape (m, d)
            dJ/dZ.
        weight_gradient : ndarray of the shape of B
            dJ/dB.
        """
        columns = Columns(self, Z)
        G = self._slopes(self.loss(columns.times(B), self.Y))
        weight_gradient = columns.adjoint(G) + self._penalty_gradient(self.kernel(Z), B)
        return self.vector_gradient(Z, B[: len(Z)], G), weight_gradient

    def vector_gradient(self, Z: np.ndarray, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the gradient dJ/dZ, given the slopes of the losses.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.
        B : ndarray of shape (m, q)
            The weights, without the intercept.
        G : ndarray of shape (n, q)
            Weighted slopes of the losses at the points.

        Returns
        -------
        ndarray of shape (m, d)
            dJ/dZ.
        """
        norm_gradient = self.kernel.input_gradient(Z, None, B @ B.T)
        data_gradient = self._data_gradient(self.kernel.input_gradient, Z, B, G)
        return data_gradient + 2.0 * self.alpha * norm_gradient

    def theta_gradient(self, Z: np.ndarray, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the gradient dJ/dtheta, given the slopes of the losses.

        theta holds the logarithms of the free kernel parameters.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.
        B : ndarray of shape (m, q)
            The weights, without the intercept.
        G : ndarray of shape (n, q)
            Weighted slopes of the losses at the points.

        Returns
        -------
        ndarray of shape (n_theta,)
            dJ/dtheta.
        """
        norm_gradient = self.kernel.pullback(Z, None, B @ B.T)
        return self._data_gradient(self.kernel.pullback, Z, B, G) + self.alpha * norm_gradient

    def _data_gradient(
        self, derivative: Callable[..., np.ndarray], Z: np.ndarray, B: np.ndarray, G: np.ndarray
    ) -> np.ndarray:
        """Return the derivative of the losses; `derivative` is that of sum_ij W_ij k(z_i, x_j)."""

        def block_gradient(rows: slice) -> np.ndarray:
            return derivative(Z, take(self.X, rows), B @ G[rows].T)

        return self._sum_over_rows(block_gradient, len(Z), 8.0 * len(G) * Z.size)

    def rkhs_speed(self, Z: np.ndarray) -> np.ndarray:
        """Return how fast k(z, .) moves in the RKHS if a column c of z changes, averaged over Z.

        The square of |dk(z, .)/dz_c|, d^2 k(z, z') / dz_c dz'_c at z' = z, is computed by finite
        differences in z'.  If there are many columns, all are changed at once with random signs, so
        that the mixed terms cancel on average.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.

        Returns
        -------
        ndarray of shape (d,)
            The mean of |dk(z, .)/dz_c| for each column c.
        """
        Z = Z[:: -(-len(Z) // _TUNING.n_scale_vectors)]
        d, rng = Z.shape[1], np.random.default_rng(0)
        squares = self.X.multiply(self.X) if sp.issparse(self.X) else np.square(self.X)
        variance = np.maximum(self.weights @ squares - np.square(self.weights @ self.X), 0.0)
        step = 1e-3 * np.sqrt(np.maximum(variance, 0.01 * variance.mean()))
        step = np.where(step > 0, step, 1e-3)
        signs: np.ndarray = np.eye(d)
        if d > _TUNING.n_scale_moves:
            signs = rng.choice([-1.0, 1.0], size=(_TUNING.n_scale_moves, d))
        total = np.zeros(d)
        for e in np.concatenate([signs, -signs]):
            total += e * self.kernel.input_gradient(Z, Z + step * e, np.eye(len(Z))).mean(axis=0)
        root: np.ndarray = np.sqrt(
            np.maximum(total / (2.0 * step * np.square(signs).sum(axis=0)), 0.0)
        )
        return root

    def _slopes(self, local: LocalLoss) -> np.ndarray:
        slopes: np.ndarray = self.weights[:, None] * local.slopes
        return slopes

    def _penalty(self, K: np.ndarray, B: np.ndarray) -> float:
        return self.alpha * float(np.sum(B[: len(K)] * (K @ B[: len(K)])))

    def _penalty_gradient(self, K: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return d(alpha |f|^2)/dB, which is 0 for the intercept."""
        out = np.zeros_like(B)
        out[: len(K)] = 2.0 * self.alpha * (K @ B[: len(K)])
        return out

    # ------------------------------------------------------------------ optimal weights

    @ignore_overflow
    def fit_weights(
        self, Z: np.ndarray, start: ExpansionFit | None = None, accuracy: float = 1e-13
    ) -> ExpansionFit:
        """Return the weights and intercept that minimise the risk for the vectors Z.

        Parameters
        ----------
        Z : ndarray of shape (m, d)
            The vectors.
        start : ExpansionFit or None, default=None
            Initial weights; None means 0.
        accuracy : float, default=1e-13
            Newton's method stops if the expected decrease of the risk is below `accuracy` times
            the risk.

        Returns
        -------
        ExpansionFit
            Named tuple of the risk, the kernel, the vectors, the weights of shape (m, q), the
            intercept of shape (q,), and the weighted slopes of shape (n, q).
        """
        columns, K = Columns(self, Z), self.kernel(Z)
        B = np.zeros((len(Z) + self.intercept, self.Y.shape[1]))
        if start is not None and len(start.weights) == len(Z):
            B[: len(Z)] = start.weights
            B[len(Z) :] = start.intercept
        F = columns.times(B)
        local = self.loss(F, self.Y)
        value = float(self.weights @ local.values) + self._penalty(K, B)
        whitener, cg_steps = None, 0
        for _ in range(_TUNING.max_newton_steps):
            g = columns.adjoint(self._slopes(local)) + self._penalty_gradient(K, B)
            if whitener is None or cg_steps > _TUNING.max_stale_cg_steps:
                whitener = self._whitener(columns, K, local)
            whitened = _per_output(whitener.transpose(0, 2, 1), g)
            if np.sum(np.square(whitened)) <= 1e-3 * accuracy * value:
                break
            product = partial(self._hessian_product, columns, K, local, whitener)
            limits = _cg_tolerance(value), _TUNING.max_cg_steps
            C, change, cg_steps = newton_direction(product, _identity, whitened, *limits)
            D, length = _per_output(whitener, C), 1.0
            expected_decrease = -0.5 * float(np.sum(g * D))
            if not expected_decrease > accuracy * value:
                break
            for _ in range(_TUNING.max_halvings):
                trial = self.loss(F + length * change, self.Y)
                trial_value = float(self.weights @ trial.values) + self._penalty(K, B + length * D)
                if trial_value <= value - 1e-4 * length * expected_decrease:
                    break
                length *= 0.5
            else:  # no step length decreases J, because only rounding errors are left
                break
            B, F, local, value = B + length * D, F + length * change, trial, trial_value
        weights, intercept = B[: len(Z)], _intercept_row(B, len(Z))
        return ExpansionFit(value, self.kernel, Z, weights, intercept, self._slopes(local))

    def _whitener(self, columns: Columns, K: np.ndarray, local: LocalLoss) -> np.ndarray:
        """Return matrices T_c that whiten the Hessian H_c of each output, T_c^T H_c T_c = I.

        Directions whose eigenvalue is only rounding error are set to 0.
        """
        H = columns.weighted_normal_matrix(self.weights[:, None] * local.diagonal)
        H[:, : len(K), : len(K)] += 2.0 * self.alpha * K
        if not np.isfinite(H.sum()):
            raise OverflowingKernelError(
                f"k(x, z) is not finite for some training point x and vector z. The usual cause is "
                f"that the kernel {self.kernel} overflows on these points. Scale the features"
            )
        values, Q = np.linalg.eigh(H)
        if np.any(values[:, 0] < -1e-8 * np.abs(values).max(axis=1)):
            raise NotPositiveDefiniteError(
                f"the Hessian of the risk of {len(K)} vectors has eigenvalues from "
                f"{values.min():.3g} to {values.max():.3g}: {self.kernel} is not positive "
                f"semidefinite on them; choose a Mercer kernel"
            )
        floor = 4.0 * H.shape[1] * np.finfo(float).eps * np.maximum(values[:, -1:], 0.0)
        significant = values > floor
        scales = np.where(significant, 1.0 / np.sqrt(np.where(significant, values, 1.0)), 0.0)
        return np.asarray(Q * scales[:, None, :])

    def _hessian_product(
        self, columns: Columns, K: np.ndarray, local: LocalLoss, T: np.ndarray, C: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the whitened Hessian T^T H T times C, and the change of f for the weights T C."""
        V = _per_output(T, C)
        change = columns.times(V)
        product = columns.adjoint(self.weights[:, None] * local.times(change))
        product += self._penalty_gradient(K, V)
        return _per_output(T.transpose(0, 2, 1), product), change

    # ------------------------------------------------------------------ blocks of rows

    @cached_property
    def _prepared(self) -> Prepared:
        return self.kernel.prepare(self.X)

    def row_blocks(self, m: int) -> list[slice]:
        """Return slices that split the points into blocks.

        Parameters
        ----------
        m : int
            Number of vectors; the size of a block depends only on it.

        Returns
        -------
        list of slice
            The blocks, in order.
        """
        n = len(self.Y)
        size = int(np.clip(_TUNING.block_bytes // (8 * m), 64, 4096))
        return [slice(i, min(i + size, n)) for i in range(0, n, size)]

    def _sum_over_rows(
        self, term: Callable[[slice], np.ndarray], m: int, cost: float
    ) -> np.ndarray:
        """Return the sum of term(rows) over all blocks of rows, in a fixed order."""
        return np.asarray(ordered_sum(term, self.row_blocks(m), _TUNING.n_partial_sums, work=cost))


class Columns:
    """The matrix [k(X, Z) 1] as an operator.

    It is stored if it fits into the memory budget; otherwise its rows are recomputed block by
    block.  The column of ones belongs to the intercept, and is omitted if there is none.
    """

    def __init__(
        self, risk: ReducedExpansionRisk, Z: np.ndarray, parts: tuple[Columns, ...] = ()
    ) -> None:
        """Evaluate k(X, Z), or concatenate `parts`, the operators of consecutive rows of Z."""
        self.risk, self.m = risk, len(Z)
        P = risk._prepared
        self._P, self._Q = P, risk.kernel.prepare(Z, like=P)
        self._stored: np.ndarray | None = None
        if 16 * len(P) * self.m > budget_in_bytes(risk.max_memory):
            return
        if parts:  # they are stored, because they are smaller
            self._stored = np.hstack([part._stored for part in parts if part._stored is not None])
        else:
            stored = np.empty((len(P), self.m))
            self._run_over_rows(
                lambda rows: risk.kernel.tile(P[rows], self._Q, stored[rows]), ENTRY_WORK
            )
            self._stored = stored

    def tile(self, rows: slice) -> np.ndarray:
        """Return the given rows of k(X, Z)."""
        if self._stored is not None:
            return self._stored[rows]
        P = self._P[rows]
        return self.risk.kernel.tile(P, self._Q, np.empty((len(P), self.m)))

    def times(self, B: np.ndarray) -> np.ndarray:
        """Return [k(X, Z) 1] B; if B has only m rows, the intercept is 0."""
        out = np.empty((len(self._P), B.shape[1]))

        def strip(rows: slice) -> None:
            np.matmul(self.tile(rows), B[: self.m], out=out[rows])
            out[rows] += _intercept_row(B, self.m)

        self._run_over_rows(strip, self._entry_cost + B.shape[1])
        return out

    def adjoint(self, G: np.ndarray) -> np.ndarray:
        """Return [k(X, Z) 1]^T G, without the last row if there is no intercept."""
        cost = (self._entry_cost + G.shape[1]) * len(G) * self.m
        out = self.risk._sum_over_rows(lambda rows: self.tile(rows).T @ G[rows], self.m, cost)
        return np.vstack([out, G.sum(axis=0)]) if self.risk.intercept else out

    def weighted_normal_matrix(self, W: np.ndarray) -> np.ndarray:
        """Return [k(X, Z) 1]^T diag(W_c) [k(X, Z) 1] for each column W_c of W."""
        root, size = np.sqrt(W), self.m + self.risk.intercept

        def strip(rows: slice) -> np.ndarray:
            A = self.tile(rows)
            if self.risk.intercept:
                A = np.hstack([A, np.ones((len(A), 1))])
            out = np.empty((W.shape[1], size, size))
            for c, r in enumerate(root[rows].T):
                weighted = A[r > 0] * r[r > 0, None]  # skip points without curvature
                np.matmul(weighted.T, weighted, out=out[c])
            return out

        cost = (self._entry_cost + self.m * W.shape[1]) * len(W) * self.m
        return self.risk._sum_over_rows(strip, self.m, cost)

    @property
    def _entry_cost(self) -> float:
        """The cost of evaluating one entry of k(X, Z), in multiplications; 0 if it is stored."""
        return 0.0 if self._stored is not None else ENTRY_WORK

    def _run_over_rows(self, task: Callable[[slice], object], cost: float) -> None:
        run_in_threads(task, self.risk.row_blocks(self.m), work=cost * len(self._P) * self.m)


def _per_output(T: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return T_c times column c of C for each output c; if T holds one matrix, use it for all."""
    products: np.ndarray = T[0] @ C if len(T) == 1 else np.matmul(T, C.T[:, :, None])[:, :, 0].T
    return products


def _identity(R: np.ndarray) -> np.ndarray:
    """Return R unchanged: in whitened coordinates, CG needs no preconditioner."""
    return R


def _cg_tolerance(value: float) -> Callable[[float], float]:
    """Return the relative tolerance of CG as a function of the squared Newton decrement.

    It is loose far from the minimum and tight near it, which keeps the fast convergence of
    Newton's method.
    """
    return lambda decrement: min(0.01, float(np.sqrt(decrement / value)))


def _intercept_row(B: np.ndarray, m: int) -> np.ndarray:
    """Return row m of B, the intercept, or zeros if B has only the m rows of weights."""
    return B[m] if len(B) > m else np.zeros(B.shape[1])
