"""Psi statistics: expectations of kernels at points with a Gaussian distribution.

    psi0_i = <k(x_i, x_i)>,   psi1_ia = <k(x_i, z_a)>,   psi2_ab = sum_i <k(x_i, z_a) k(x_i, z_b)>

Here x_i ~ N(mu_i, diag S_i), the z_a are inducing points, and < > is the expectation.  For an RBF
kernel with length scales l, psi1 and psi2 are expectations of Gaussian bumps exp(-(x - t)^2 / 2h).
For psi1 the centres t are the z_a, with h = l^2.  For psi2 the centres are (z_a + z_b) / 2, with h
= l^2 / 2, because the product of two bumps is a bump.  The expectation of a bump is

    prod_q (1 + S / h)^-1/2 exp(-(mu - t)^2 / 2(S + h))

The exponents for all points and centres are one matrix product, and so are all derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ...kernels import RBF, Kernel, Linear, Scale, Stretch, exp_inplace


class PsiPullback(NamedTuple):
    """Weighted sum of the psi statistics of each row, and derivatives of the total of all rows."""

    rows: np.ndarray  # (n,), the sum g0 psi0_i + G1_i . psi1_i + <G2, psi2 of row i>
    mu: np.ndarray  # derivative with respect to mu; the fields below are named in the same way
    S: np.ndarray
    Z: np.ndarray
    theta: np.ndarray


class Expectations(ABC):
    """Base class of psi statistics: kernel expectations at Gaussian points x_i ~ N(mu_i, S_i).

    Z contains the inducing points z_a.  The methods take mu and S for any block of rows.
    """

    def __init__(self, kernel: Kernel, Z: np.ndarray) -> None:
        self.Z = Z

    @abstractmethod
    def psi0(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the expectations of k(x_i, x_i), of shape (n,)."""

    @abstractmethod
    def psi1(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the expectations of k(x_i, z_a), of shape (n, m)."""

    @abstractmethod
    def psi2(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the sum over i of the expectations of k(x_i, z_a) k(x_i, z_b), of shape (m, m)."""

    @abstractmethod
    def pullback(
        self, mu: np.ndarray, S: np.ndarray, g0: float, G1: np.ndarray, G2: np.ndarray
    ) -> PsiPullback:
        """Return the terms of g0 sum_i psi0_i + <G1, psi1> + <G2, psi2>, and its derivatives.

        There is one term per row i.  G1 has shape (n, m); G2 has shape (m, m) and is symmetric.
        The derivatives are with respect to mu, S, Z and the theta of the kernel.
        """


class _BumpGradients(NamedTuple):
    """Sums and derivatives of the weighted expectations T_ip = W_ip * bump_p(x_i)."""

    total: np.ndarray  # (n,), the sums of T_ip over p
    column_sums: np.ndarray  # (p,), the sums of T_ip over i
    mu: np.ndarray  # derivative of sum_ip T_ip with respect to mu; the same for S, h and t
    S: np.ndarray
    h: np.ndarray
    t: np.ndarray


class _GaussianBumps:
    """Expectations of Gaussian bumps exp(-(x - t_p)^2 / 2h) at points x ~ N(mu, S).

    The centres t have shape (p, q), the squared widths h have shape (q,).
    """

    def __init__(self, t: np.ndarray, h: np.ndarray) -> None:
        self.t, self.h = t, h
        # The exponents are quadratic in t; these are the powers of t that occur in them.
        self._polynomial = np.concatenate([t, t**2, np.ones((len(t), 1))], axis=1)

    def __call__(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        D = 1.0 / (S + self.h)
        level = -0.5 * np.sum(np.log1p(S / self.h) + D * mu**2, axis=1, keepdims=True)
        return exp_inplace(np.concatenate([D * mu, -0.5 * D, level], axis=1) @ self._polynomial.T)

    def pullback_terms(self, mu: np.ndarray, S: np.ndarray, W: np.ndarray) -> _BumpGradients:
        """Return the sums and derivatives for weights W of shape (n, p) or (p,)."""
        T, q, D = self(mu, S), self.t.shape[1], 1.0 / (S + self.h)
        T *= W
        moments = T @ self._polynomial
        first, second, total = moments[:, :q], moments[:, q:-1], moments[:, -1:]
        # weighted sums of (mu - t)^2 / (S + h)^2
        spread = D**2 * (mu**2 * total - 2.0 * mu * first + second)
        sums = T.T @ np.concatenate([D * mu, D], axis=1)
        return _BumpGradients(
            total[:, 0],
            T.sum(axis=0),
            D * (first - mu * total),
            0.5 * (spread - D * total),
            0.5 * np.sum(S * D / self.h * total + spread, axis=0),
            sums[:, :q] - self.t * sums[:, q:],
        )


class _RBFExpectations(Expectations):
    """Psi statistics of the kernel v exp(-sum_q (x_q - z_q)^2 / 2 l_q^2)."""

    def __init__(self, kernel: Any, Z: np.ndarray) -> None:
        super().__init__(kernel, Z)
        self.v = float(kernel.factor)
        self.squared_scales = length_scales(kernel) ** 2
        self.centre = Z.mean(axis=0)  # centring avoids cancellation in the quadratic exponents
        z = Z - self.centre
        self.a, self.b = np.triu_indices(len(Z))
        self.differences = z[self.a] - z[self.b]
        self.bumps = _GaussianBumps(z, self.squared_scales)
        self.pair_bumps = _GaussianBumps(0.5 * (z[self.a] + z[self.b]), 0.5 * self.squared_scales)
        self.pair_factor = self.v**2 * np.exp(
            -0.25 * np.sum(self.differences**2 / self.squared_scales, axis=1)
        )

    def psi0(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.full(len(mu), self.v)

    def psi1(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self.v * self.bumps(mu - self.centre, S)

    def psi2(self, mu: np.ndarray, S: np.ndarray) -> np.ndarray:
        out = np.empty((len(self.Z), len(self.Z)))
        out[self.a, self.b] = self.pair_factor * self.pair_bumps(mu - self.centre, S).sum(axis=0)
        out[self.b, self.a] = out[self.a, self.b]
        return out

    def pullback(
        self, mu: np.ndarray, S: np.ndarray, g0: float, G1: np.ndarray, G2: np.ndarray
    ) -> PsiPullback:
        mu = mu - self.centre
        psi1_terms = self.bumps.pullback_terms(mu, S, self.v * G1)
        multiplicity = np.where(self.a == self.b, 1.0, 2.0)  # only pairs a <= b are stored
        psi2_terms = self.pair_bumps.pullback_terms(
            mu, S, multiplicity * self.pair_factor * G2[self.a, self.b]
        )
        rows = g0 * self.v + psi1_terms.total + psi2_terms.total
        pairs = np.zeros((2, *G2.shape, mu.shape[1]))
        pairs[0][self.a, self.b] = 0.5 * psi2_terms.t
        pairs[1][self.a, self.b] = (
            -0.5 * psi2_terms.column_sums[:, None] * self.differences / self.squared_scales
        )
        Z = psi1_terms.t + (pairs[0] + pairs[1]).sum(axis=1) + (pairs[0] - pairs[1]).sum(axis=0)
        on_scales = 2.0 * self.squared_scales * psi1_terms.h + self.squared_scales * psi2_terms.h
        on_scales += 0.5 * (psi2_terms.column_sums @ self.differences**2) / self.squared_scales
        on_variance = g0 * self.v * len(mu) + psi1_terms.total.sum() + 2.0 * psi2_terms.total.sum()
        return PsiPullback(
            rows,
            psi1_terms.mu + psi2_terms.mu,
            psi1_terms.S + psi2_terms.S,
            Z,
            np.append(on_scales, on_variance),
        )


class _LinearExpectations(Expectations):
    """Psi statistics of the kernel sum_q x_q z_q / l_q^2."""

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
    ) -> PsiPullback:
        mu, S, P = mu / self.scale, S / self.scale**2, self.psi1(mu, S)
        Gz = G2 @ self.z
        S_weights = g0 + np.einsum("aq,aq->q", self.z, Gz)
        psi1_weights = G1 + P @ (2.0 * G2)
        rows = S @ S_weights + g0 * np.sum(mu**2, axis=1)
        rows += np.einsum("ia,ia->i", P, 0.5 * (G1 + psi1_weights))
        on_mu, on_S = 2.0 * g0 * mu + psi1_weights @ self.z, np.broadcast_to(S_weights, S.shape)
        on_Z = psi1_weights.T @ mu + 2.0 * Gz * S.sum(axis=0)
        theta = -np.sum(mu * on_mu + 2.0 * S * on_S, axis=0) - np.sum(self.z * on_Z, axis=0)
        return PsiPullback(rows, on_mu / self.scale, on_S / self.scale**2, on_Z / self.scale, theta)


def with_relevance(kernel: Kernel, q: int, scales: Any = None) -> Kernel:
    """Return the kernel with one length scale for each of q dimensions (ARD).

    Parameters
    ----------
    kernel : Kernel
        RBF(l), v*RBF(l), Linear() or Stretch(Linear(), l), with length scales l and variance v.
    q : int
        The number of dimensions.
    scales : float or array of shape (q,), optional
        The length scales; by default, those of the kernel.

    Returns
    -------
    Kernel
        v*RBF(l) or Stretch(Linear(), l), with q length scales.

    Examples
    --------
    >>> from mercer.models.gp import with_relevance
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
    is_linear = isinstance(node, Stretch) and isinstance(node.kernel, Linear)
    if not is_linear and not (isinstance(node, Scale) and isinstance(node.kernel, RBF)):
        raise ValueError(
            f"kernel expectations at Gaussian points are implemented for v*RBF(l) and "
            f"Stretch(Linear(), l), but not for {kernel}; use one of these, or GPLVM, which "
            f"supports any kernel with derivatives in its points"
        )
    new_scales = length_scales(node) if scales is None else np.asarray(scales, dtype=np.float64)
    if new_scales.size not in (1, q):
        raise ValueError(
            f"the kernel has {new_scales.size} length scales, but latent points have {q} "
            f"dimensions; pass 1 or {q} length scales"
        )
    new_scales = np.broadcast_to(new_scales, (q,)).copy()
    return Stretch(Linear(), new_scales) if is_linear else Scale(RBF(new_scales), node.factor)


def length_scales(kernel: Any) -> np.ndarray:
    """Return the length scales of a kernel that `with_relevance` returned.

    Examples
    --------
    >>> from mercer.models.gp import length_scales
    >>> from mercer.kernels import RBF
    >>> length_scales(2.0 * RBF((1.0, 3.0)))
    array([1., 3.])
    """
    node: Any = kernel.kernel if isinstance(kernel, Scale) else kernel
    return np.asarray(node.length_scale, dtype=np.float64)


def expectations(kernel: Kernel, Z: np.ndarray) -> Expectations:
    """Return the psi statistics of a kernel that `with_relevance` returned.

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), with one length scale per dimension.
    Z : ndarray of shape (m, q)
        The inducing points.

    Returns
    -------
    Expectations
        An object with the methods `psi0`, `psi1`, `psi2` and `pullback`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import expectations, with_relevance
    >>> from mercer.kernels import RBF
    >>> psi = expectations(with_relevance(RBF(), 1), np.array([[0.0], [1.0]]))
    >>> mu, S = np.zeros((1, 1)), np.full((1, 1), 3.0)
    >>> psi.psi1(mu, S).round(4)
    array([[0.5   , 0.4412]])
    """
    return (
        _RBFExpectations(kernel, Z) if isinstance(kernel, Scale) else _LinearExpectations(kernel, Z)
    )
