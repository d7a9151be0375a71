"""A lower bound on the likelihood of targets whose points are integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._runtime import ENTRY_WORK, check_threads, entry_point, ordered_sum, slices
from .._runtime.linalg import solve_triangular
from ..expansion import Expansion
from ..kernels import Kernel
from ._capabilities import Capabilities
from ._posterior import Conditioned
from ._psi import Expectations, Pulled, expectations, length_scales, with_relevance

__all__ = ["LatentBound", "LatentState", "RowBound"]

_JITTER = 1e-6  # of the mean k(z, z): inducing values are seen through so much noise
_ENTRIES = 2**18  # of psi2 row by row, at a time
_ARRAYS = 4  # of that size, in each thread
_VECTORS = 70  # like the one that is searched for: 20 steps of L-BFGS, their slopes, and its own
_GROUPS = 8  # of blocks, each added up by itself, so that threads do not change a sum


class LatentState(NamedTuple):
    """All that the bound depends on: points N(mu, S), inducing points Z, a kernel, the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import LatentState
    >>> from mercer.kernels import RBF
    >>> mu, Z = np.zeros((3, 2)), np.eye(2)
    >>> state = LatentState(mu, mu + 0.5, Z, 1.0 * RBF((1.0, 4.0)), 0.1)
    >>> state.turned([1, 0]).kernel
    1.0*RBF(length_scale=(4.0, 1.0))
    """

    mu: np.ndarray
    S: np.ndarray
    Z: np.ndarray
    kernel: Kernel
    noise: float

    def turned(self, order: Any) -> LatentState:
        """Return the same state with its dimensions in another order."""
        kernel = with_relevance(self.kernel, len(order), length_scales(self.kernel)[order])
        return LatentState(
            self.mu[:, order], self.S[:, order], self.Z[:, order], kernel, self.noise
        )


@entry_point
class RowBound:
    """What a row adds to the bound, once the inducing values are known: N(K alpha, L C^-1 L^T).

        -1/2 [d log 2 pi s + |y|^2 / s] + g0 psi0 + G1 . psi1 + <G2, psi2> - KL(q(x) || N(0, I))

        g0 = -d / 2s,   G1 = alpha y / s,   G2 = (d (K^-1 - L^-T C^-1 L^-1) - alpha alpha^T) / 2s

    Parameters
    ----------
    psi : Expectations
    alpha : ndarray of shape (m, d)
    factor, inner : ndarrays of shape (m, m)
        L with L L^T = K, and B with B B^T = C = I + L^-1 psi2 L^-T / s.
    noise : float
        s.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import RowBound, expectations, with_relevance
    >>> from mercer.kernels import RBF
    >>> psi = expectations(with_relevance(RBF(), 1), np.zeros((1, 1)))
    >>> row = RowBound(psi, np.ones((1, 1)), np.eye(1), np.eye(1), 1.0)
    >>> value, on_mu, on_log_S = row.value_and_slopes(*np.ones((3, 2, 1)))
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
        self.explained = d * (one - root.T @ root) - a @ a.T  # 2s G2 in whitened coordinates
        self.zeroth = -0.5 * d / noise
        self.first = alpha / noise
        self.second = 0.5 / noise * whitened_back(factor, self.explained)

    def pulled(self, Y: np.ndarray, mu: np.ndarray, S: np.ndarray) -> Pulled:
        """Return the part with psi of each row, and its derivatives."""
        return self.psi.pullback(mu, S, self.zeroth, Y @ self.first.T, self.second)

    def value_and_slopes(
        self, Y: np.ndarray, mu: np.ndarray, S: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all of it of each row, and the derivatives in mu and log S."""
        found = self.pulled(Y, mu, S)
        value = found.rows - divergences(mu, S) - 0.5 * self.d * np.log(2.0 * np.pi * self.noise)
        value -= 0.5 / self.noise * np.sum(Y**2, axis=1)
        return value, found.mu - mu, S * found.S - 0.5 * (S - 1.0)


class _Inner(NamedTuple):
    """The m x m part: K = L L^T, C = I + A = B B^T, alpha = (s K + psi2)^-1 psi1^T Y."""

    L: np.ndarray
    A: np.ndarray
    B: np.ndarray
    alpha: np.ndarray
    value: float  # without the divergence


@entry_point
@dataclass(frozen=True, eq=False)
class LatentBound:
    """log p(Y) >= sum_c <log N(y_c; f(X), s)> - KL(q || p), the points X integrated out.

        F = -1/2 [nd log 2 pi s + d log |I + A| - d tr A + (|Y|^2 + d psi0) / s]
            + 1/2 tr Y^T psi1 (s K + psi2)^-1 psi1^T Y / s - 1/2 sum (S + mu^2 - log S - 1)

    with A = L^-1 psi2 L^-T / s and K = k(Z, Z) = L L^T, to which a millionth of its mean diagonal
    is added, as if inducing values were seen through noise: it stays a bound.  It is that of
    Titsias & Lawrence (2010), for q(x_i) = N(mu_i, diag S_i), a prior N(0, I) and m inducing points
    Z, whose values are integrated out at their best.  Points are read in blocks of rows: nothing
    larger than Y, mu or m x m is held, whatever n is.

    What is searched for is one vector: mu, log S, Z, the theta of the kernel, log s.

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), as `with_relevance` makes it.
    Y : array of shape (n, d)
        About 0.
    n_components, n_inducing : int
        The columns of mu, and the rows of Z.
    n_threads : int, optional
        All processors by default; results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import LatentBound, LatentState, with_relevance
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
        """The observations, of which there are as many as points."""
        return self.Y

    @property
    def _sizes(self) -> list[int]:
        n, q, m = len(self.Y), self.n_components, self.n_inducing
        return [n * q, n * q, m * q, self.kernel.theta.size, 1]

    @property
    def bounds(self) -> np.ndarray:
        """Those of theta; log S and log s are kept where they can be squared."""
        far, log = [-np.inf, np.inf], [-30.0, 30.0]
        parts = [[far], [log], [far], None, [[-200.0, 200.0]]]
        return np.concatenate(
            [
                self.kernel.bounds if part is None else np.tile(part, (size, 1))
                for size, part in zip(self._sizes, parts, strict=True)
            ]
        )

    def joined(self, state: LatentState) -> np.ndarray:
        """Return a state as one vector."""
        mu, S, Z, kernel, noise = state
        return np.concatenate(
            [mu.ravel(), np.log(S).ravel(), Z.ravel(), kernel.theta, [np.log(noise)]]
        )

    def split(self, u: np.ndarray) -> LatentState:
        """Return the state that a vector stands for."""
        mu, log_S, Z, theta, log_s = np.split(u, np.cumsum(self._sizes)[:-1])
        q = self.n_components
        kernel = self.kernel.with_theta(theta)
        S, noise = np.exp(log_S).reshape(-1, q), float(np.exp(log_s[0]))
        return LatentState(mu.reshape(-1, q), S, Z.reshape(-1, q), kernel, noise)

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the bound and its derivatives; -inf and 0 where K is not definite."""
        mu, S, Z, kernel, s = state = self.split(u)
        psi = expectations(kernel, Z)
        try:
            inner = self._inner(state, psi)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros_like(u)
        (n, d), cut = self.Y.shape, Z.size
        row = RowBound(psi, inner.alpha, inner.L, inner.B, s)
        on_mu, on_S = np.empty_like(mu), np.empty_like(S)

        def term(rows: slice) -> np.ndarray:
            found = row.pulled(self.Y[rows], mu[rows], S[rows])
            on_mu[rows], on_S[rows] = found.mu - mu[rows], S[rows] * found.S - 0.5 * (S[rows] - 1.0)
            return np.concatenate([found.Z.ravel(), found.theta, [found.rows.sum()]])

        sums = ordered_sum(term, self.blocks, _GROUPS, self.n_threads, self._work)
        on_K = 0.5 * whitened_back(inner.L, row.explained - d * inner.A)
        jitter = np.full(len(Z), _JITTER * float(np.trace(on_K)) / len(Z))
        on_Z = sums[:cut].reshape(Z.shape) + 2.0 * kernel.input_gradient(Z, Z, on_K)
        on_Z += kernel._diag_gradient(Z, jitter)
        theta = sums[cut:-1] + kernel.pullback(Z, None, on_K + np.diag(jitter))
        on_s = 0.5 * float(np.sum(self.Y**2)) / s - 0.5 * n * d - sums[-1]
        value = inner.value - float(divergences(mu, S).sum())
        parts = (on_mu.ravel(), on_S.ravel(), on_Z.ravel(), theta, [on_s])
        return value, np.concatenate(parts)

    def posterior(self, state: LatentState) -> tuple[Expansion, Conditioned]:
        """Return mean and covariance of f at the best values of the inducing points."""
        inner = self._inner(state, expectations(state.kernel, state.Z))
        mean = Expansion(state.kernel, state.Z, inner.alpha)
        return mean, Conditioned(state.kernel, state.Z, inner.L, inner.B)

    def workspace(self) -> int:
        """Return the bytes that a search takes: what L-BFGS remembers, and a few blocks."""
        blocks = _ARRAYS * max(_ENTRIES, self.n_inducing**2) * check_threads(self.n_threads)
        return 8 * (_VECTORS * sum(self._sizes) + blocks)

    @property
    def _work(self) -> float:
        """The multiplications that the expectations of all rows take."""
        return ENTRY_WORK * len(self.Y) * self.n_inducing**2

    @property
    def blocks(self) -> list[slice]:
        """The rows, as many at a time as have `_ENTRIES` pairs of inducing points."""
        pairs = self.n_inducing * (self.n_inducing + 1) // 2
        return slices(len(self.Y), max(1, _ENTRIES // pairs))

    def _inner(self, state: LatentState, psi: Expectations) -> _Inner:
        mu, S, Z, kernel, s = state
        (n, d), m = self.Y.shape, len(Z)

        def term(rows: slice) -> np.ndarray:
            first = psi.psi1(mu[rows], S[rows]).T @ self.Y[rows]
            second = psi.psi2(mu[rows], S[rows])
            return np.concatenate(
                [first.ravel(), second.ravel(), [psi.psi0(mu[rows], S[rows]).sum()]]
            )

        sums = ordered_sum(term, self.blocks, _GROUPS, self.n_threads, self._work)
        P, psi2, psi0 = sums[: m * d].reshape(m, d), sums[m * d : -1].reshape(m, m), sums[-1]
        K = np.array(kernel(Z), dtype=np.float64)
        K[np.diag_indices(m)] += _JITTER * np.trace(K) / m
        L = np.linalg.cholesky(K)
        half = solve_triangular(L, psi2, lower=True)
        A = solve_triangular(L, half.T, lower=True) / s
        A = 0.5 * (A + A.T)
        B = np.linalg.cholesky(np.eye(m) + A)
        c = solve_triangular(B, solve_triangular(L, P, lower=True), lower=True) / s
        alpha = solve_triangular(L.T, solve_triangular(B.T, c))
        value = n * d * np.log(2.0 * np.pi * s) + 2.0 * d * np.sum(np.log(B.diagonal()))
        value += (np.sum(self.Y**2) + d * psi0) / s - np.sum(c**2) - d * np.trace(A)
        return _Inner(L, A, B, alpha, -0.5 * float(value))


def whitened_back(L: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return L^-T M L^-1, symmetric as M is."""
    half = solve_triangular(L, M, lower=True, trans="T")
    return np.asarray(solve_triangular(L, half.T, lower=True, trans="T"))


def divergences(mu: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return KL(N(mu_i, S_i) || N(0, I)) of each row."""
    return np.asarray(0.5 * np.sum(S + mu**2 - np.log(S) - 1.0, axis=1))
