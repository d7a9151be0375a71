"""Objectives of latent variable models: the GPLVM, and the Bayesian GPLVM.

The likelihood of the GPLVM is a function of the latent points and theta.  The Bayesian GPLVM
maximises a variational bound, in which the latent points are integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._core import (
    ENTRY_WORK,
    MemoryLimit,
    NotPositiveDefiniteError,
    check_budget,
    check_threads,
    entry_point,
    ordered_sum,
    slices,
)
from ..._core.linalg import solve_triangular
from ...expansion import Expansion
from ...kernels import Kernel
from ...solvers.linear import mirror_lower_triangle
from ._exact_likelihood import log_density
from ._exact_solve import FactorizedCovariance
from ._gp_objective import Capabilities
from ._posterior import Conditioned
from ._psi_statistics import Expectations, PsiPullback, expectations, length_scales, with_relevance

# Number of n x n arrays that a gradient needs: the covariance, the weights of its derivatives, and
# temporary arrays for the gradient in the points.
_N_SQUARE_ARRAYS = 8


@dataclass(frozen=True)
class _LatentBoundTuning:
    """Jitter and block sizes of `LatentBound`."""

    # Added to the diagonal of K(Z, Z), relative to its mean, so that its Cholesky factor exists.
    jitter: float = 1e-6
    # Number of entries (rows times pairs of inducing points) in a block, which limits the memory.
    block_entries: int = 2**18
    # Number of arrays with `block_entries` entries in each thread, for the memory estimate.
    arrays_per_thread: int = 4
    # Number of parameter vectors in the optimiser, for the memory estimate: L-BFGS stores 20 steps
    # with their gradients, and needs additional work arrays.
    optimiser_vectors: int = 70
    # Blocks are summed in this fixed number of groups, so that the sums do not depend on the number
    # of threads.
    groups: int = 8


_TUNING = _LatentBoundTuning()


@entry_point
@dataclass(frozen=True, eq=False)
class LatentLikelihood:
    """Log likelihood of data Y as a function of latent points Z and theta, for the GPLVM.

        log p(Y | Z, theta) + log p(Z) = sum_c log N(y_c; 0, K(Z)) + sum_i log N(z_i; 0, I)
        d log p(Y | Z, theta) = sum_ij W_ij dK_ij,   W = 1/2 (A A^T - d K^-1),   A = K^-1 Y

    for the d columns of Y.  The gradient in z_i is 2 sum_j W_ij dk(z_i, z_j)/dz_i - z_i.  All
    parameters are stored in one vector u: the rows of Z, followed by theta.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the latent points, with the noise as a `White` term.  Its parameters must be
        numbers, not rules that depend on data, such as gamma="scale".
    Y : array of shape (n, d)
        The observed data.
    n_components : int
        The number of columns of Z.
    prior : bool, default=True
        Whether to add log p(Z).  If False, the objective is log p(Y | Z, theta).
    max_memory : int, str or None
        The memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LatentLikelihood
    >>> from mercer.kernels import RBF, White
    >>> likelihood = LatentLikelihood(RBF() + White(0.1), np.array([[0.0], [1.0]]), 1)
    >>> u = likelihood.joined(np.array([[0.0], [1.0]]))
    >>> value, gradient = likelihood.value_and_gradient(u)
    >>> round(value, 3), gradient.shape
    (-4.743, (4,))
    """

    kernel: Kernel
    Y: np.ndarray
    n_components: int
    prior: bool = True
    max_memory: MemoryLimit = None

    def __post_init__(self) -> None:
        n = len(self.Y)
        check_budget(
            8 * n * n * _N_SQUARE_ARRAYS, self.max_memory, f"a latent variable model of {n} points"
        )

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def X(self) -> np.ndarray:
        """The data Y; `maximise` needs only its number of rows."""
        return self.Y

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of u: infinite for the points, and those of the kernel for theta."""
        unbounded = np.tile([-np.inf, np.inf], (len(self.Y) * self.n_components, 1))
        return np.concatenate([unbounded, self.kernel.bounds])

    def joined(self, Z: np.ndarray) -> np.ndarray:
        """Return the parameter vector u: the points Z, followed by the theta of the kernel."""
        return np.concatenate([Z.ravel(), self.kernel.theta])

    def split(self, u: np.ndarray) -> tuple[np.ndarray, Kernel]:
        """Return the points Z and the kernel that the parameter vector u describes."""
        size = len(self.Y) * self.n_components
        return u[:size].reshape(-1, self.n_components), self.kernel.with_theta(u[size:])

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient; -inf and 0 if K is not positive definite."""
        (Z, kernel), (_, d) = self.split(u), self.Y.shape
        try:
            system = FactorizedCovariance(kernel, Z, 0.0, self.max_memory)
        except NotPositiveDefiniteError:
            return -np.inf, np.zeros_like(u)
        A = system.solve(self.Y)
        value = log_density(system, A, self.Y)
        W = system.invert()
        mirror_lower_triangle(W)
        W *= -0.5 * d
        W += 0.5 * (A @ A.T)
        on_theta = system.derivatives(lambda rows, cols: W[rows, cols])[0]
        on_Z = 2.0 * kernel.input_gradient(Z, Z, W)
        if self.prior:
            value -= 0.5 * float(np.sum(Z**2) + Z.size * np.log(2.0 * np.pi))
            on_Z -= Z
        return value, np.concatenate([on_Z.ravel(), on_theta])


# --- The Bayesian GPLVM.


class LatentState(NamedTuple):
    """The variables of `LatentBound`: latent points N(mu, S), inducing points Z, kernel, noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LatentState
    >>> from mercer.kernels import RBF
    >>> mu, Z = np.zeros((3, 2)), np.eye(2)
    >>> state = LatentState(mu, mu + 0.5, Z, 1.0 * RBF((1.0, 4.0)), 0.1)
    >>> state.permuted([1, 0]).kernel
    1.0*RBF(length_scale=(4.0, 1.0))
    """

    mu: np.ndarray
    S: np.ndarray
    Z: np.ndarray
    kernel: Kernel
    noise: float

    def permuted(self, order: Any) -> LatentState:
        """Return the same state with its latent dimensions in another order."""
        kernel = with_relevance(self.kernel, len(order), length_scales(self.kernel)[order])
        return LatentState(
            self.mu[:, order], self.S[:, order], self.Z[:, order], kernel, self.noise
        )


@entry_point
class RowBound:
    """Contribution of each row y to the bound `LatentBound`, for fixed inducing values.

        -1/2 [d log 2 pi s + |y|^2 / s] + g0 psi0 + G1 . psi1 + <G2, psi2> - KL(q(x) || N(0, I))

        g0 = -d / 2s,   G1 = alpha y / s,   G2 = (d (K^-1 - L^-T C^-1 L^-1) - alpha alpha^T) / 2s

    The inducing values (f at the inducing points) have the fixed distribution
    N(K alpha, L C^-1 L^T), and q(x) = N(mu, S) is the latent distribution of the row.  Maximising
    the contribution over mu and S gives the latent distribution of new rows.

    Parameters
    ----------
    psi : Expectations
        The psi statistics of the kernel and the inducing points.
    alpha : ndarray of shape (m, d)
        The coefficients of the mean of the inducing values.
    factor, inner : ndarrays of shape (m, m)
        L with L L^T = K, and B with B B^T = C = I + L^-1 psi2 L^-T / s.
    noise : float
        The noise variance s.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import RowBound, expectations, with_relevance
    >>> from mercer.kernels import RBF
    >>> psi = expectations(with_relevance(RBF(), 1), np.zeros((1, 1)))
    >>> row = RowBound(psi, np.ones((1, 1)), np.eye(1), np.eye(1), 1.0)
    >>> value, on_mu, on_log_S = row.value_and_gradients(*np.ones((3, 2, 1)))
    >>> value.round(3), on_mu.shape
    (array([-2.075, -2.075]), (2, 1))
    """

    def __init__(
        self,
        psi: Expectations,
        alpha: np.ndarray,
        factor: np.ndarray,
        inner: np.ndarray,
        noise: float,
    ) -> None:
        d, a, one = alpha.shape[1], factor.T @ alpha, np.eye(len(alpha))
        root = solve_triangular(inner, one, lower=True)
        self.psi, self.noise, self.d = psi, noise, d
        self.whitened_weights = d * (one - root.T @ root) - a @ a.T  # 2s G2 in whitened coordinates
        self.psi0_weight = -0.5 * d / noise
        self.psi1_weight = alpha / noise
        self.psi2_weight = 0.5 / noise * unwhiten(factor, self.whitened_weights)

    def pullback(self, Y: np.ndarray, mu: np.ndarray, S: np.ndarray) -> PsiPullback:
        """Return, for each row, the sum of the terms with psi statistics, and its derivatives."""
        return self.psi.pullback(mu, S, self.psi0_weight, Y @ self.psi1_weight.T, self.psi2_weight)

    def value_and_gradients(
        self, Y: np.ndarray, mu: np.ndarray, S: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the contribution of each row, and its derivatives in mu and log S."""
        terms = self.pullback(Y, mu, S)
        value = terms.rows - kl_divergences(mu, S) - 0.5 * self.d * np.log(2.0 * np.pi * self.noise)
        value -= 0.5 / self.noise * np.sum(Y**2, axis=1)
        return value, terms.mu - mu, S * terms.S - 0.5 * (S - 1.0)


class _InducingSystem(NamedTuple):
    """Matrices of the m inducing points: K = L L^T, I + A = B B^T, (s K + psi2) alpha = psi1^T Y.

    A = L^-1 psi2 L^-T / s, where s is the noise variance.
    """

    L: np.ndarray
    A: np.ndarray
    B: np.ndarray
    alpha: np.ndarray
    value: float  # the bound without the KL divergence of the latent points


@entry_point
@dataclass(frozen=True, eq=False)
class LatentBound:
    """Lower bound on the log likelihood of the Bayesian GPLVM, with its gradient.

        log p(Y) >= F = sum_c <log N(y_c; f(X), s)> - KL(q || p)

        F = -1/2 [nd log 2 pi s + d log |I + A| - d tr A + (|Y|^2 + d psi0) / s]
            + 1/2 tr Y^T psi1 (s K + psi2)^-1 psi1^T Y / s - 1/2 sum (S + mu^2 - log S - 1)

    with the noise variance s, A = L^-1 psi2 L^-T / s and K = k(Z, Z) = L L^T.  The latent points X
    are integrated out with q(x_i) = N(mu_i, diag S_i) and the prior N(0, I); the values of f at the
    m inducing points Z have their optimal distribution (Titsias & Lawrence, 2010).

    All parameters are stored in one vector u: mu, log S, Z, the theta of the kernel, and log s.

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), as returned by `with_relevance`.
    Y : array of shape (n, d)
        The observed data, centred.
    n_components, n_inducing : int
        The number of columns of mu, and of rows of Z.
    n_threads : int, optional
        Number of threads; by default, all processors.  The results do not depend on it.

    Notes
    -----
    A jitter of 1e-6 times the mean diagonal entry is added to the diagonal of K.  F is still a
    bound, because this is equivalent to observing the inducing values with noise.  Rows are
    processed in blocks: apart from the blocks, no array is larger than Y, mu or an m x m matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LatentBound, LatentState, with_relevance
    >>> from mercer.kernels import RBF
    >>> mu = np.linspace(-1, 1, 20)[:, None]
    >>> kernel = with_relevance(RBF(), 1)
    >>> bound = LatentBound(kernel, np.sin(2 * mu), 1, 5)
    >>> state = LatentState(mu, np.full_like(mu, 0.01), mu[::4], kernel, 0.1)
    >>> value, gradient = bound.value_and_gradient(bound.joined(state))
    >>> round(value, 1), gradient.shape
    (-44.2, (48,))
    """

    kernel: Kernel
    Y: np.ndarray
    n_components: int
    n_inducing: int
    n_threads: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def X(self) -> np.ndarray:
        """The data Y; `maximise` needs only its number of rows."""
        return self.Y

    @property
    def _sizes(self) -> list[int]:
        """The lengths of the parts of u: mu, log S, Z, theta and log s."""
        n, q, m = len(self.Y), self.n_components, self.n_inducing
        return [n * q, n * q, m * q, self.kernel.theta.size, 1]

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of u: those of theta, and limits of log S and log s that avoid overflow."""
        unbounded, log_range = [-np.inf, np.inf], [-30.0, 30.0]
        parts = [[unbounded], [log_range], [unbounded], None, [[-200.0, 200.0]]]
        return np.concatenate(
            [
                self.kernel.bounds if part is None else np.tile(part, (size, 1))
                for size, part in zip(self._sizes, parts, strict=True)
            ]
        )

    def joined(self, state: LatentState) -> np.ndarray:
        """Return the parameter vector u of a state."""
        mu, S, Z, kernel, noise = state
        return np.concatenate(
            [mu.ravel(), np.log(S).ravel(), Z.ravel(), kernel.theta, [np.log(noise)]]
        )

    def split(self, u: np.ndarray) -> LatentState:
        """Return the state that the parameter vector u describes."""
        mu, log_S, Z, theta, log_s = np.split(u, np.cumsum(self._sizes)[:-1])
        q = self.n_components
        kernel = self.kernel.with_theta(theta)
        S, noise = np.exp(log_S).reshape(-1, q), float(np.exp(log_s[0]))
        return LatentState(mu.reshape(-1, q), S, Z.reshape(-1, q), kernel, noise)

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the bound and its gradient; -inf and 0 if K is not positive definite."""
        mu, S, Z, kernel, s = state = self.split(u)
        psi = expectations(kernel, Z)
        try:
            inner = self._inducing_system(state, psi)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros_like(u)
        (n, d), n_inducing_entries = self.Y.shape, Z.size
        row = RowBound(psi, inner.alpha, inner.L, inner.B, s)
        on_mu, on_S = np.empty_like(mu), np.empty_like(S)

        def block_sums(rows: slice) -> np.ndarray:
            terms = row.pullback(self.Y[rows], mu[rows], S[rows])
            on_mu[rows], on_S[rows] = terms.mu - mu[rows], S[rows] * terms.S - 0.5 * (S[rows] - 1.0)
            return np.concatenate([terms.Z.ravel(), terms.theta, [terms.rows.sum()]])

        sums = ordered_sum(block_sums, self.blocks, _TUNING.groups, self.n_threads, self._work)
        on_K = 0.5 * unwhiten(inner.L, row.whitened_weights - d * inner.A)
        jitter = np.full(len(Z), _TUNING.jitter * float(np.trace(on_K)) / len(Z))
        on_Z = sums[:n_inducing_entries].reshape(Z.shape) + 2.0 * kernel.input_gradient(Z, Z, on_K)
        on_Z += kernel._diag_gradient(Z, jitter)
        theta = sums[n_inducing_entries:-1] + kernel.pullback(Z, None, on_K + np.diag(jitter))
        on_s = 0.5 * float(np.sum(self.Y**2)) / s - 0.5 * n * d - sums[-1]
        value = inner.value - float(kl_divergences(mu, S).sum())
        parts = (on_mu.ravel(), on_S.ravel(), on_Z.ravel(), theta, [on_s])
        return value, np.concatenate(parts)

    def posterior(self, state: LatentState) -> tuple[Expansion, Conditioned]:
        """Return the mean and covariance of f, for the optimal distribution of inducing values."""
        inner = self._inducing_system(state, expectations(state.kernel, state.Z))
        mean = Expansion(state.kernel, state.Z, inner.alpha)
        return mean, Conditioned(state.kernel, state.Z, inner.L, inner.B)

    def workspace(self) -> int:
        """Return the memory of an optimisation, in bytes: vectors of L-BFGS, and blocks of rows."""
        blocks = (
            _TUNING.arrays_per_thread
            * max(_TUNING.block_entries, self.n_inducing**2)
            * check_threads(self.n_threads)
        )
        return 8 * (_TUNING.optimiser_vectors * sum(self._sizes) + blocks)

    @property
    def _work(self) -> float:
        """The number of multiplications for the psi statistics of all rows."""
        return ENTRY_WORK * len(self.Y) * self.n_inducing**2

    @property
    def blocks(self) -> list[slice]:
        """Slices of rows; each has about `block_entries` rows times pairs of inducing points."""
        pairs = self.n_inducing * (self.n_inducing + 1) // 2
        return slices(len(self.Y), max(1, _TUNING.block_entries // pairs))

    def _inducing_system(self, state: LatentState, psi: Expectations) -> _InducingSystem:
        """Return the m x m matrices of a state, and the bound without the KL divergence."""
        mu, S, Z, kernel, s = state
        (n, d), m = self.Y.shape, len(Z)

        def block_sums(rows: slice) -> np.ndarray:
            projected = psi.psi1(mu[rows], S[rows]).T @ self.Y[rows]
            psi2 = psi.psi2(mu[rows], S[rows])
            return np.concatenate(
                [projected.ravel(), psi2.ravel(), [psi.psi0(mu[rows], S[rows]).sum()]]
            )

        sums = ordered_sum(block_sums, self.blocks, _TUNING.groups, self.n_threads, self._work)
        P, psi2, psi0 = sums[: m * d].reshape(m, d), sums[m * d : -1].reshape(m, m), sums[-1]
        K = np.array(kernel(Z), dtype=np.float64)
        K[np.diag_indices(m)] += _TUNING.jitter * np.trace(K) / m
        L = np.linalg.cholesky(K)
        half = solve_triangular(L, psi2, lower=True)
        A = solve_triangular(L, half.T, lower=True) / s
        A = 0.5 * (A + A.T)
        B = np.linalg.cholesky(np.eye(m) + A)
        c = solve_triangular(B, solve_triangular(L, P, lower=True), lower=True) / s
        alpha = solve_triangular(L.T, solve_triangular(B.T, c))
        value = n * d * np.log(2.0 * np.pi * s) + 2.0 * d * np.sum(np.log(B.diagonal()))
        value += (np.sum(self.Y**2) + d * psi0) / s - np.sum(c**2) - d * np.trace(A)
        return _InducingSystem(L, A, B, alpha, -0.5 * float(value))


def unwhiten(L: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return L^-T M L^-1 for a symmetric M."""
    half = solve_triangular(L, M, lower=True, trans="T")
    return np.asarray(solve_triangular(L, half.T, lower=True, trans="T"))


def kl_divergences(mu: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return KL(N(mu_i, S_i) || N(0, I)) for each row."""
    return np.asarray(0.5 * np.sum(S + mu**2 - np.log(S) - 1.0, axis=1))
