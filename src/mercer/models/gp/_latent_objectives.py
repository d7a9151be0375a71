"""Objectives of latent variable models: the GPLVM, and the Bayesian GPLVM.

The likelihood of the GPLVM is a function of the latent points and theta.  The Bayesian GPLVM
maximises a variational bound, in which the latent points are integrated out.  The bound depends on
the psi statistics, the expectations of kernels at points with a Gaussian distribution:

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
from ...kernels import RBF, Kernel, Linear, Scale, Stretch, exp_inplace
from ...solvers.linear import mirror_lower_triangle
from ._exact_likelihood import log_density
from ._exact_solve import FactorizedCovariance
from ._gp_objective import Capabilities
from ._posterior import Conditioned

# --- Psi statistics.


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
        squared_distances = np.sum(self.differences**2 / self.squared_scales, axis=1)
        self.pair_factor = self.v**2 * np.exp(-0.25 * squared_distances)

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
        one = self.bumps.pullback_terms(mu, S, self.v * G1)  # the terms of psi1
        multiplicity = np.where(self.a == self.b, 1.0, 2.0)  # only pairs a <= b are stored
        pair_weights = multiplicity * self.pair_factor * G2[self.a, self.b]
        two = self.pair_bumps.pullback_terms(mu, S, pair_weights)  # the terms of psi2
        D, h = self.differences, self.squared_scales
        pairs = np.zeros((2, *G2.shape, mu.shape[1]))
        pairs[0][self.a, self.b] = 0.5 * two.t
        pairs[1][self.a, self.b] = -0.5 * two.column_sums[:, None] * D / h
        Z = one.t + (pairs[0] + pairs[1]).sum(axis=1) + (pairs[0] - pairs[1]).sum(axis=0)
        on_scales = 2.0 * h * one.h + h * two.h
        on_scales += 0.5 * (two.column_sums @ D**2) / h
        on_variance = g0 * self.v * len(mu) + one.total.sum() + 2.0 * two.total.sum()
        rows, theta = g0 * self.v + one.total + two.total, np.append(on_scales, on_variance)
        return PsiPullback(rows, one.mu + two.mu, one.S + two.S, Z, theta)


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
        The length scales; by default, those of the kernel.  A single number applies to all
        dimensions.

    Returns
    -------
    Kernel
        v*RBF(l) or Stretch(Linear(), l), with q length scales.

    See Also
    --------
    length_scales : Read the length scales.
    expectations : Psi statistics of such a kernel.

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

    A large length scale means that the latent dimension is irrelevant.

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l).

    Returns
    -------
    ndarray of shape (q,)
        One length scale per dimension.

    See Also
    --------
    with_relevance : Create such a kernel.

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

    They are expectations of kernel values at points with Gaussian distributions x_i ~ N(mu_i, S_i),
    on which the Bayesian GPLVM is based:

        psi0_i = <k(x_i, x_i)>,   psi1_ia = <k(x_i, z_a)>,   psi2_ab = sum_i <k(x_i, z_a) k(x_i,
        z_b)>

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), with one length scale per dimension.
    Z : ndarray of shape (m, q)
        The m inducing points z_a.

    Returns
    -------
    Expectations
        An object with the methods `psi0`, `psi1` and `psi2`, which return arrays of shape (n,), (n,
        m) and (m, m), and with `pullback` for derivatives.

    See Also
    --------
    LatentBound : The bound that uses these statistics.

    References
    ----------
    Titsias and Lawrence, "Bayesian Gaussian process latent variable model", AISTATS 2010.

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
    kind = _RBFExpectations if isinstance(kernel, Scale) else _LinearExpectations
    return kind(kernel, Z)


# --- The GPLVM.

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


@dataclass(frozen=True, eq=False)
class LatentObjective:
    """Base class of the objectives of latent variable models, for `maximise`."""

    kernel: Kernel
    Y: np.ndarray
    n_components: int

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def X(self) -> np.ndarray:
        """The data Y; `maximise` needs only its number of rows."""
        return self.Y


@entry_point
@dataclass(frozen=True, eq=False)
class LatentLikelihood(LatentObjective):
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
        The number q of columns of Z, the dimension of the latent points.
    prior : bool, default=True
        Whether to add log p(Z), which fixes the scale of the latent points.  If False, the
        objective is log p(Y | Z, theta).
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    See Also
    --------
    GPLVM : The estimator that maximises this likelihood.
    LatentBound : Objective in which the latent points are integrated out.

    References
    ----------
    Lawrence, "Probabilistic non-linear principal component analysis with Gaussian process latent
    variable models", JMLR 6, 2005.

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

    prior: bool = True
    max_memory: MemoryLimit = None

    def __post_init__(self) -> None:
        n = len(self.Y)
        check_budget(
            8 * n * n * _N_SQUARE_ARRAYS, self.max_memory, f"a latent variable model of {n} points"
        )

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of u: infinite for the points, and those of the kernel for theta."""
        unbounded = np.tile([-np.inf, np.inf], (len(self.Y) * self.n_components, 1))
        return np.concatenate([unbounded, self.kernel.bounds])

    def joined(self, Z: np.ndarray) -> np.ndarray:
        """Return the parameter vector u: the points Z, followed by the theta of the kernel.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
            The latent points.

        Returns
        -------
        ndarray of shape (n q + p,)
            The vector u, for p kernel parameters.
        """
        return np.concatenate([Z.ravel(), self.kernel.theta])

    def split(self, u: np.ndarray) -> tuple[np.ndarray, Kernel]:
        """Return the points Z and the kernel that the parameter vector u describes.

        Parameters
        ----------
        u : ndarray of shape (n q + p,)
            The parameter vector.

        Returns
        -------
        Z : ndarray of shape (n, q)
            The latent points.
        kernel : Kernel
            The kernel with its parameters.
        """
        size = len(self.Y) * self.n_components
        return u[:size].reshape(-1, self.n_components), self.kernel.with_theta(u[size:])

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient; -inf and 0 if K is not positive definite.

        Parameters
        ----------
        u : ndarray of shape (n q + p,)
            The parameter vector; see `joined`.

        Returns
        -------
        value : float
            The log likelihood, including the prior of Z if `prior`.
        gradient : ndarray of shape (n q + p,)
            Its derivatives in u.
        """
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

    Attributes
    ----------
    mu : ndarray of shape (n, q)
        The means of the latent points.
    S : ndarray of shape (n, q)
        Their variances, one per dimension.
    Z : ndarray of shape (m, q)
        The inducing points.
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), with q length scales.
    noise : float
        The noise variance s.

    See Also
    --------
    LatentBound : The bound as a function of these variables.

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
        """Return the same state with its latent dimensions in another order.

        Parameters
        ----------
        order : sequence of int, of length q
            The index of the old dimension at each new position.

        Returns
        -------
        LatentState
            The permuted state.
        """
        kernel = with_relevance(self.kernel, len(order), length_scales(self.kernel)[order])
        mu, S, Z = (array[:, order] for array in (self.mu, self.S, self.Z))
        return LatentState(mu, S, Z, kernel, self.noise)


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

    See Also
    --------
    LatentBound : The bound for all training rows.

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
        """Return, for each row, the sum of the terms with psi statistics, and its derivatives.

        Parameters
        ----------
        Y : ndarray of shape (n, d)
            The rows y.
        mu, S : ndarrays of shape (n, q)
            Means and variances of their latent distributions.

        Returns
        -------
        PsiPullback
            The sums `rows` of shape (n,), and the derivatives of their total in `mu`, `S`, `Z` and
            `theta`.
        """
        return self.psi.pullback(mu, S, self.psi0_weight, Y @ self.psi1_weight.T, self.psi2_weight)

    def value_and_gradients(
        self, Y: np.ndarray, mu: np.ndarray, S: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the contribution of each row, and its derivatives in mu and log S.

        Parameters
        ----------
        Y : ndarray of shape (n, d)
            The rows y.
        mu, S : ndarrays of shape (n, q)
            Means and variances of their latent distributions.

        Returns
        -------
        values : ndarray of shape (n,)
            The contributions.
        by_mu, by_log_S : ndarrays of shape (n, q)
            The derivatives of each contribution.
        """
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
class LatentBound(LatentObjective):
    """Lower bound on the log likelihood of the Bayesian GPLVM, with its gradient.

        log p(Y) >= F = sum_c <log N(y_c; f(X), s)> - KL(q || p)

        F = -1/2 [nd log 2 pi s + d log |I + A| - d tr A + (|Y|^2 + d psi0) / s]
            + 1/2 tr Y^T psi1 (s K + psi2)^-1 psi1^T Y / s - 1/2 sum (S + mu^2 - log S - 1)

    with the noise variance s, A = L^-1 psi2 L^-T / s and K = k(Z, Z) = L L^T.  The latent points X
    are integrated out with q(x_i) = N(mu_i, diag S_i) and the prior N(0, I); the values of f at the
    m inducing points Z have their optimal distribution (Titsias and Lawrence).

    All parameters are stored in one vector u: mu, log S, Z, the theta of the kernel, and log s.

    Parameters
    ----------
    kernel : Kernel
        v*RBF(l) or Stretch(Linear(), l), as returned by `with_relevance`.
    Y : array of shape (n, d)
        The observed data, centred.
    n_components : int
        The number q of columns of mu, the dimension of the latent points.
    n_inducing : int
        The number m of inducing points.  More points make the bound tighter; the time is
        proportional to n m^2.
    n_threads : int, optional
        Number of threads; by default, all processors.  The results do not depend on it.

    See Also
    --------
    BayesianGPLVM : The estimator that maximises this bound.
    LatentLikelihood : Objective with the latent points as parameters.

    Notes
    -----
    A jitter of 1e-6 times the mean diagonal entry is added to the diagonal of K.  F is still a
    bound, because this is equivalent to observing the inducing values with noise.  Rows are
    processed in blocks: apart from the blocks, no array is larger than Y, mu or an m x m matrix.

    References
    ----------
    Titsias and Lawrence, "Bayesian Gaussian process latent variable model", AISTATS 2010.

    Damianou, Titsias and Lawrence, "Variational inference for latent variables and uncertain inputs
    in Gaussian processes", JMLR 17, 2016.

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

    n_inducing: int
    n_threads: int | None = None

    @property
    def _sizes(self) -> list[int]:
        """The lengths of the parts of u: mu, log S, Z, theta and log s."""
        n, q, m = len(self.Y), self.n_components, self.n_inducing
        return [n * q, n * q, m * q, self.kernel.theta.size, 1]

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of u: those of theta, and limits of log S and log s that avoid overflow."""
        limits = [np.inf, 30.0, np.inf, np.nan, 200.0]
        parts = [np.tile([-x, x], (n, 1)) for n, x in zip(self._sizes, limits, strict=True)]
        parts[3] = self.kernel.bounds
        return np.concatenate(parts)

    def joined(self, state: LatentState) -> np.ndarray:
        """Return the parameter vector u of a state.

        Parameters
        ----------
        state : LatentState
            The variables of the bound.

        Returns
        -------
        ndarray of shape (2 n q + m q + p + 1,)
            The vector u: mu, log S, Z, the p kernel parameters theta, and log s.
        """
        mu, S, Z, kernel, noise = state
        log_S, log_s = np.log(S).ravel(), [np.log(noise)]
        return np.concatenate([mu.ravel(), log_S, Z.ravel(), kernel.theta, log_s])

    def split(self, u: np.ndarray) -> LatentState:
        """Return the state that the parameter vector u describes.

        Parameters
        ----------
        u : ndarray of shape (2 n q + m q + p + 1,)
            The parameter vector; see `joined`.

        Returns
        -------
        LatentState
            The variables of the bound.
        """
        mu, log_S, Z, theta, log_s = np.split(u, np.cumsum(self._sizes)[:-1])
        q = self.n_components
        kernel = self.kernel.with_theta(theta)
        S, noise = np.exp(log_S).reshape(-1, q), float(np.exp(log_s[0]))
        return LatentState(mu.reshape(-1, q), S, Z.reshape(-1, q), kernel, noise)

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the bound and its gradient; -inf and 0 if K is not positive definite.

        Parameters
        ----------
        u : ndarray of shape (2 n q + m q + p + 1,)
            The parameter vector; see `joined`.

        Returns
        -------
        value : float
            The bound F.
        gradient : ndarray, of the shape of u
            Its derivatives in u.
        """
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
        """Return the mean and covariance of f, for the optimal distribution of inducing values.

        Parameters
        ----------
        state : LatentState
            The variables of the bound.

        Returns
        -------
        mean : Expansion
            d functions of latent points, on the m inducing points.
        covariance : Conditioned
            The covariance of each function.
        """
        inner = self._inducing_system(state, expectations(state.kernel, state.Z))
        mean = Expansion(state.kernel, state.Z, inner.alpha)
        return mean, Conditioned(state.kernel, state.Z, inner.L, inner.B)

    def workspace(self) -> int:
        """Return the memory of an optimisation, in bytes: vectors of L-BFGS, and blocks of rows.

        Returns
        -------
        int
            The number of bytes.
        """
        n_arrays = _TUNING.arrays_per_thread * check_threads(self.n_threads)
        blocks = n_arrays * max(_TUNING.block_entries, self.n_inducing**2)
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
            psi2, psi0 = psi.psi2(mu[rows], S[rows]), psi.psi0(mu[rows], S[rows])
            return np.concatenate([projected.ravel(), psi2.ravel(), [psi0.sum()]])

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
