"""Expectations of kernels at points that are known up to a Gaussian: the psi statistics.

    psi0_i = <k(x_i, x_i)>,   psi1_ia = <k(x_i, z_a)>,   psi2_ab = sum_i <k(x_i, z_a) k(x_i, z_b)>

for x_i ~ N(mu_i, diag S_i) and inducing points z_a.  For an RBF with length scales l both are made
of bumps exp(-(x - t)^2 / 2h): psi1 of those about z_a with h = l^2, and psi2 of those about
(z_a + z_b) / 2 with h = l^2 / 2, because a product of two is a bump again.  Their expectations,

    prod_q (1 + S / h)^-1/2 exp(-(mu - t)^2 / 2(S + h)),

have exponents that are one matrix product, and so are all their derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..kernels import RBF, Kernel, Linear, Scale, Stretch, exp_inplace

__all__ = ["Expectations", "Pulled", "expectations", "length_scales", "with_relevance"]


class Pulled(NamedTuple):
    """What weights make of the statistics of some rows: values, and derivatives in all there is."""

    rows: np.ndarray  # (n,), g0 psi0_i + G1_i . psi1_i + <G2, psi2 of row i>
    mu: np.ndarray
    S: np.ndarray
    Z: np.ndarray
    theta: np.ndarray


class Expectations(ABC):
    """The statistics of a kernel with inducing points Z, of as many rows as are given."""

    def __init__(self, kernel: Kernel, Z: np.ndarray) -> None:
        self.Z = Z

    @abstractmethod
    def psi0(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return <k(x_i, x_i)>, (n,)."""

    @abstractmethod
    def psi1(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return <k(x_i, z_a)>, (n, m)."""

    @abstractmethod
    def psi2(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the sum over rows of <k(x_i, z_a) k(x_i, z_b)>, (m, m)."""

    @abstractmethod
    def pullback(
        self, mu: np.ndarray, S: np.ndarray, g0: float, G1: np.ndarray, G2: np.ndarray
    ) -> Pulled:
        """Return g0 sum psi0 + <G1, psi1> + <G2, psi2> row by row, and its derivatives.

        G1 is (n, m), and G2 (m, m) symmetric; derivatives are in mu, S, Z and the theta of the
        kernel.
        """


class _Moved(NamedTuple):
    """Derivatives of sum_ip T_ip, T = W * bumps; `total` has the sums of rows, `at` of columns."""

    total: np.ndarray
    at: np.ndarray
    mu: np.ndarray
    S: np.ndarray
    h: np.ndarray
    t: np.ndarray


class _Bumps:
    """Expectations of exp(-(x - t_p)^2 / 2h) for centres t, (p, q), and squared widths h, (q,)."""

    def __init__(self, t: np.ndarray, h: np.ndarray) -> None:
        self.t, self.h = t, h
        self._powers = np.concatenate([t, t**2, np.ones((len(t), 1))], axis=1)  # of a parabola

    def __call__(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        D = 1.0 / (S + self.h)
        level = -0.5 * np.sum(np.log1p(S / self.h) + D * mu**2, axis=1, keepdims=True)
        return exp_inplace(np.concatenate([D * mu, -0.5 * D, level], axis=1) @ self._powers.T)

    def moved(self, mu: np.ndarray, S: np.ndarray, W: np.ndarray) -> _Moved:
        """Return the derivatives, for weights (n, p) or (p,)."""
        T, q, D = self(mu, S), self.t.shape[1], 1.0 / (S + self.h)
        T *= W
        moments = T @ self._powers
        first, second, total = moments[:, :q], moments[:, q:-1], moments[:, -1:]
        spread = D**2 * (mu**2 * total - 2.0 * mu * first + second)  # of (mu - t)^2 / (S + h)^2
        sums = T.T @ np.concatenate([D * mu, D], axis=1)
        return _Moved(
            total[:, 0],
            T.sum(axis=0),
            D * (first - mu * total),
            0.5 * (spread - D * total),
            0.5 * np.sum(S * D / self.h * total + spread, axis=0),
            sums[:, :q] - self.t * sums[:, q:],
        )


class _OfRBF(Expectations):
    """v exp(-sum_q (x - z)^2 / 2 l^2)."""

    def __init__(self, kernel: Any, Z: np.ndarray) -> None:
        super().__init__(kernel, Z)
        self.v = float(kernel.factor)
        self.square = length_scales(kernel) ** 2
        self.centre = Z.mean(axis=0)  # near 0 the parabolas of the exponents do not cancel
        z = Z - self.centre
        self.a, self.b = np.triu_indices(len(Z))
        self.apart = z[self.a] - z[self.b]
        self.single = _Bumps(z, self.square)
        self.double = _Bumps(0.5 * (z[self.a] + z[self.b]), 0.5 * self.square)
        self.factor = self.v**2 * np.exp(-0.25 * np.sum(self.apart**2 / self.square, axis=1))

    def psi0(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.full(len(mu), self.v)

    def psi1(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self.v * self.single(mu - self.centre, S)

    def psi2(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        out = np.empty((len(self.Z), len(self.Z)))
        out[self.a, self.b] = self.factor * self.double(mu - self.centre, S).sum(axis=0)
        out[self.b, self.a] = out[self.a, self.b]
        return out

    def pullback(
        self, mu: np.ndarray, S: np.ndarray, g0: float, G1: np.ndarray, G2: np.ndarray
    ) -> Pulled:
        mu = mu - self.centre
        one = self.single.moved(mu, S, self.v * G1)
        twice = np.where(self.a == self.b, 1.0, 2.0)  # of each pair one is kept
        two = self.double.moved(mu, S, twice * self.factor * G2[self.a, self.b])
        rows = g0 * self.v + one.total + two.total
        pairs = np.zeros((2, *G2.shape, mu.shape[1]))
        pairs[0][self.a, self.b] = 0.5 * two.t
        pairs[1][self.a, self.b] = -0.5 * two.at[:, None] * self.apart / self.square
        Z = one.t + (pairs[0] + pairs[1]).sum(axis=1) + (pairs[0] - pairs[1]).sum(axis=0)
        width = 2.0 * self.square * one.h + self.square * two.h
        width += 0.5 * (two.at @ self.apart**2) / self.square
        height = g0 * self.v * len(mu) + one.total.sum() + 2.0 * two.total.sum()
        return Pulled(rows, one.mu + two.mu, one.S + two.S, Z, np.append(width, height))


class _OfLinear(Expectations):
    """sum_q x z / l^2."""

    def __init__(self, kernel: Any, Z: np.ndarray) -> None:
        super().__init__(kernel, Z)
        self.scale = length_scales(kernel)
        self.z = Z / self.scale

    def psi0(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum((mu**2 + S) / self.scale**2, axis=1))

    def psi1(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.asarray(mu / self.scale @ self.z.T)

    def psi2(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        P, spread = self.psi1(mu, S), S.sum(axis=0) / self.scale**2
        return np.asarray(P.T @ P + (self.z * spread) @ self.z.T)

    def pullback(
        self, mu: np.ndarray, S: np.ndarray, g0: float, G1: np.ndarray, G2: np.ndarray
    ) -> Pulled:
        mu, S, P = mu / self.scale, S / self.scale**2, self.psi1(mu, S)
        Gz = G2 @ self.z
        own = g0 + np.einsum("aq,aq->q", self.z, Gz)  # of S
        meets = G1 + P @ (2.0 * G2)
        rows = S @ own + g0 * np.sum(mu**2, axis=1)
        rows += np.einsum("ia,ia->i", P, 0.5 * (G1 + meets))
        on_mu, on_S = 2.0 * g0 * mu + meets @ self.z, np.broadcast_to(own, S.shape)
        on_Z = meets.T @ mu + 2.0 * Gz * S.sum(axis=0)
        theta = -np.sum(mu * on_mu + 2.0 * S * on_S, axis=0) - np.sum(self.z * on_Z, axis=0)
        return Pulled(rows, on_mu / self.scale, on_S / self.scale**2, on_Z / self.scale, theta)


def with_relevance(kernel: Kernel, q: int, scales: Any = None) -> Kernel:
    """Return v*RBF(l), or Stretch(Linear(), l), with a length scale for each of q dimensions.

    They are those of the kernel, or `scales`.

    Examples
    --------
    >>> from mercer.gp import with_relevance
    >>> from mercer.kernels import RBF, Linear
    >>> with_relevance(RBF(2.0), 2)
    1.0*RBF(length_scale=(2.0, 2.0))
    >>> with_relevance(Linear(), 2)
    Stretch(Linear(), length_scale=(1.0, 1.0))
    """
    node: Any = kernel
    if isinstance(node, Linear):
        node = Stretch(node, 1.0)
    if isinstance(node, RBF):
        node = Scale(node, 1.0)
    linear = isinstance(node, Stretch) and isinstance(node.kernel, Linear)
    if not linear and not (isinstance(node, Scale) and isinstance(node.kernel, RBF)):
        raise ValueError(
            f"expectations under a Gaussian are known of v*RBF(l) and Stretch(Linear(), l), and "
            f"not of {kernel}; GPLVM takes any kernel with derivatives in its points"
        )
    own = length_scales(node) if scales is None else np.asarray(scales, dtype=np.float64)
    if own.size not in (1, q):
        raise ValueError(f"{own.size} length scales, but places have {q} dimensions")
    own = np.broadcast_to(own, (q,)).copy()
    return Stretch(Linear(), own) if linear else Scale(RBF(own), node.factor)


def length_scales(kernel: Any) -> np.ndarray:
    """Return the length scales of a kernel as `with_relevance` makes it.

    Examples
    --------
    >>> from mercer.gp import length_scales
    >>> from mercer.kernels import RBF
    >>> length_scales(2.0 * RBF((1.0, 3.0)))
    array([1., 3.])
    """
    node: Any = kernel.kernel if isinstance(kernel, Scale) else kernel
    return np.asarray(node.length_scale, dtype=np.float64)


def expectations(kernel: Kernel, Z: np.ndarray) -> Expectations:
    """Return the statistics of a kernel as `with_relevance` makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import expectations, with_relevance
    >>> from mercer.kernels import RBF
    >>> psi = expectations(with_relevance(RBF(), 1), np.array([[0.0], [1.0]]))
    >>> mu, S = np.zeros((1, 1)), np.full((1, 1), 3.0)
    >>> psi.psi1(mu, S).round(4)
    array([[0.5   , 0.4412]])
    """
    return _OfRBF(kernel, Z) if isinstance(kernel, Scale) else _OfLinear(kernel, Z)
