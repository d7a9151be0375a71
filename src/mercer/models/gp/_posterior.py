"""The posterior of a Gaussian process: its mean is an expansion, its covariance a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable as Function
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._core import Points, as_float64, entry_point, length, same_points, take, warn_caller
from ..._core.linalg import solve_triangular
from ...expansion import Expansion, cross_kernel_cached
from ...gram import solve_triangular_rows
from ...kernels import Kernel, Prepared, Properties, child, node, prepare_pair
from ...solvers import Report, invert_lower

_CHUNK_ROWS = 512  # number of points whose rows k_S(x) are in memory at a time
# Negative variances up to this size, relative to k(x, x), are normal rounding errors; they are set
# to 0 without a warning.
_MAX_NEGATIVE_VARIANCE = 1e-6
_MAX_REPR_POINTS = 64  # with more points, the repr does not list their values


@entry_point
@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior mean and covariance of a Gaussian process.

    The `posterior` methods of objectives return this object.

    Attributes
    ----------
    expansion : Expansion
        The posterior mean, one function per target.  ``expansion(X)`` has shape (n, q).
    covariance : Kernel or ClassCovariance
        The posterior covariance of f(x) and f(z), usually `Conditioned`; the same for all targets.
        For several classes it is a `ClassCovariance`: the covariance matrix of the class functions
        at each point.
    report : Report
        How the posterior was computed, with its residuals.

    See Also
    --------
    MarginalLikelihood : Compute an exact posterior.
    Conditioned : The posterior covariance.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.gp import MarginalLikelihood
    >>> X = np.array([[0.0], [1.0]])
    >>> posterior = MarginalLikelihood(RBF(), X, np.array([1.0, 2.0]), noise=1e-9).posterior()
    >>> posterior.expansion(X).round(4).ravel(), posterior.covariance.diag([[9.0]])
    (array([1., 2.]), array([1.]))
    """

    expansion: Expansion
    covariance: Any
    report: Report

    def moments(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior means and variances of f; both use the same kernel evaluations.

        The covariance must be `Conditioned`.

        Parameters
        ----------
        X : points
            The n points at which f is predicted.

        Returns
        -------
        means : ndarray of shape (n, q)
            The posterior means, one column per target.
        variances : ndarray of shape (n,)
            The posterior variances.  They include the noise of `White` terms in the kernel, but not
            the `noise` of the objective.
        """
        f, means = self.expansion, []

        def cross_kernel(points: Points) -> np.ndarray:
            K = cross_kernel_cached(f, f.kernel, points, f.points)
            means.append(K @ f.coefficients)
            return np.array(K, dtype=float, order="C")

        variances = self.covariance.variances(X, cross_kernel)
        return np.concatenate([np.zeros((0, len(f))), *means]), variances


@node
class PosteriorKernel(Kernel):
    """Base class of posterior covariances: `kernel` is the prior, `points` are the observations.

    `theta` is empty: the posterior is computed for fixed parameters of the prior.
    """

    kernel: Kernel = child(free=False)
    points: Any = None

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(diagonal_bound=inner[0].diagonal_bound)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = as_float64(X)
        child = self.kernel._prepare(X, None if like is None else like.children[0])
        return Prepared(self._features(X), (child,), source=child.source, positions=child.positions)

    @abstractmethod
    def _features(self, X: Points) -> tuple[np.ndarray, ...]:
        """Return the arrays, with one row per point, from which the covariance is computed."""

    @abstractmethod
    def _point_weights(self, Z: Points, W: np.ndarray) -> np.ndarray:
        """Return the weights of the derivatives of k(x, s) for the points s, given those for Z."""

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        point_weights = self._point_weights(as_float64(X if Z is None else Z), W)
        prior_gradient = self.kernel.input_gradient(X, Z, W)
        return prior_gradient - self.kernel.input_gradient(X, self.points, point_weights)

    def __str__(self) -> str:
        return f"{self.kernel} given {length(self.points)} points"


@entry_point
@node
class Conditioned(PosteriorKernel):
    """Posterior covariance of a Gaussian process, as a kernel.

        k(x, z | data) = k(x, z) - phi(x) . phi(z) + psi(x) . psi(z)
        phi(x) = L^-1 k_S(x),     psi(x) = B^-1 phi(x),     k_S(x) = (k(s, x) for s in S)

    If S are the observations, L L^T = K_SS + noise, and there is no psi.  If S are inducing points
    for n observations, L L^T = K_SS, and B B^T = I + L^-1 K_Sn D^-1 K_nS L^-T, where D is the noise
    of the observations.

    `theta` is empty, because the factors are valid for this prior only.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance k.
    points : points
        The m points S.
    factor : array of shape (m, m)
        The Cholesky factor L, lower triangular.
    inner : array of shape (m, m), optional
        The Cholesky factor B, lower triangular; None if S are the observations.

    See Also
    --------
    Posterior : The posterior mean with this covariance.
    MarginalLikelihood : Compute an exact posterior.
    InducingBound : Compute a posterior from inducing points.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section 2.2.

    Titsias, "Variational learning of inducing variables in sparse Gaussian processes", AISTATS
    2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.gp import Conditioned
    >>> S = np.array([[0.0], [2.0]])
    >>> k = Conditioned(RBF(), S, np.linalg.cholesky(RBF()(S)))
    >>> k.diag([[0.0], [1.0], [9.0]]).round(4)
    array([0.    , 0.3519, 1.    ])
    """

    factor: Any = None
    inner: Any = None

    def _check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"Conditioned needs a prior Kernel, got {self.kernel!r}")
        m = length(self.points)
        for name in ("factor", "inner"):
            value = getattr(self, name)
            if value is None and name == "inner":
                continue
            L = np.asfortranarray(value, dtype=float)
            if L.shape != (m, m):
                raise ValueError(
                    f"Conditioned: {name} has shape {L.shape}, but there are {m} points; "
                    f"it must have shape ({m}, {m})"
                )
            view = L.view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    def _properties(self, *inner: Properties) -> Properties:
        if inner[0].order != 0:
            return super()._properties(*inner)
        # With two arguments, the kernel treats all observations as different: K has no noise.
        K = self.kernel(self.points, self.points)
        lowest = np.linalg.eigvalsh(self.factor @ self.factor.T - K)[0]
        order = 0 if lowest >= -1e-10 * np.abs(K).max() else None
        rule, bound = "Schur complement, since L L^T >= K_SS", inner[0].diagonal_bound
        return Properties.of(inner, rule, order, diagonal_bound=bound)

    @cached_property
    def inverse_factor(self) -> np.ndarray:
        """The inverse of the Cholesky factor L, which leave-one-out predictions need."""
        return invert_lower(self.factor)

    # ------------------------------------------------------------------ evaluation

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out -= P.arrays[0] @ Q.arrays[0].T
        if self.inner is not None:
            out += P.arrays[1] @ Q.arrays[1].T

    def _diag(self, X: Points) -> np.ndarray:
        return self.variances(X, self._cross_kernel)

    def variances(self, X: Points, cross_kernel: Function[[Any], np.ndarray]) -> np.ndarray:
        """Return the posterior variance k(x, x | data) at each point x of X.

        Parameters
        ----------
        X : points
            The n points.
        cross_kernel : callable
            ``cross_kernel(points)`` returns a new array with the rows k_S(x), of shape
            (len(points), m); the array is overwritten.

        Returns
        -------
        ndarray of shape (n,)
            The posterior variances.
        """
        X = as_float64(X)
        prior = np.array(self.kernel.diag(X), dtype=float)
        out = prior.copy()
        for start in range(0, len(out), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            phi, *psi = self._solve_features(cross_kernel(take(X, rows)))
            out[rows] -= np.einsum("ij,ij->i", phi, phi)
            for part in psi:
                out[rows] += np.einsum("ij,ij->i", part, part)
        return _clip_variance(out, prior)

    def _features(self, X: Points) -> tuple[np.ndarray, ...]:
        return self._solve_features(self._cross_kernel(X))

    def _cross_kernel(self, X: Points) -> np.ndarray:
        """Return the kernel values k_S(x) of each x in X with the points S, as a new array."""
        P, Q = prepare_pair(self.kernel, X, self.points)
        K = np.empty((len(P), len(Q)))
        for start in range(0, len(P), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            self.kernel._tile(P[rows], Q, K[rows])
        return K

    def _solve_features(self, phi: np.ndarray) -> tuple[np.ndarray, ...]:
        """Convert the rows k_S(x) to phi(x) in place, and return phi(x), and psi(x) if B exists."""
        solve_triangular_rows(self.factor, phi)
        if self.inner is None:
            return (phi,)
        psi = phi.copy()
        solve_triangular_rows(self.inner, psi)
        return phi, psi

    # ------------------------------------------------------------------ derivatives

    def _point_weights(self, Z: Points, W: np.ndarray) -> np.ndarray:
        # In the gradient, the derivatives of k_S(x_i) are weighted by
        # L^-T (B^-T B^-1 - I) sum_j W_ij phi(z_j).
        G = W @ self._features(Z)[0]
        if self.inner is not None:
            G -= _solve(self.inner, _solve(self.inner, G), transposed=True)
        return _solve(self.factor, G, transposed=True)

    # ------------------------------------------------------------------ equality and repr

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conditioned):
            return NotImplemented
        return (
            self.kernel == other.kernel
            and same_points(self.points, other.points)
            and np.array_equal(self.factor, other.factor)
            and np.array_equal(self.inner, other.inner)
        )

    def __hash__(self) -> int:
        return hash((Conditioned, self.kernel, tuple(self.factor.diagonal().tolist())))

    def __repr__(self) -> str:
        return super().__repr__() if len(self.factor) <= _MAX_REPR_POINTS else f"<{self}>"


def _solve(L: np.ndarray, G: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return L^-1 g, or L^-T g if `transposed`, for each row g of G and a lower triangular L."""
    return solve_triangular(L, G.T, lower=True, trans=int(transposed), check_finite=False).T


def _clip_variance(variance: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Set negative variances to 0, in place; warn if they are larger than rounding errors."""
    lowest = np.min(variance + _MAX_NEGATIVE_VARIANCE * prior, initial=0.0)
    if lowest < 0.0:
        warn_caller(
            f"Predicted variances smaller than 0. Setting those variances to 0. "
            f"({np.sum(variance < 0)} of {len(variance)}, the lowest {variance.min():.3g}.) The "
            f"usual cause is a nearly singular kernel matrix: try a larger alpha, or add White() "
            f"to the kernel"
        )
    return np.maximum(variance, 0.0, out=variance)
