"""Laplace approximation for Gaussian process classification, with a logistic or softmax link.

    log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det(I + K W) / 2,

where f is the mode: the most probable values at the points.  W is the Hessian of -log p(y | f) at
the mode (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 3.4, 3.5
and 5.5).

Two classes have the probabilities p = 1 / (1 + exp(-f)) and 1 - p.

For C classes, the class probabilities are p_c = exp(f_c) / sum_b exp(f_b).  The functions f_c are
independent a priori, each with the covariance K.  The Hessian W couples them at each point, but no
matrix of size Cn x Cn is needed, because W = D - Pi Pi^T, where D is the diagonal matrix of all
p_c, and Pi stacks the matrices D_c = diag(p_c):

    B_c = I + D_c^1/2 K D_c^1/2,    E_c = D_c^1/2 B_c^-1 D_c^1/2,    S = sum_c E_c = M M^T,
    J_c = M^-1 E_c,                 R_cd = ((K + W^-1)^-1)_cd = delta_cd E_c - J_c^T J_d,
    log det(I + K W) = sum_c log det B_c + log det S

(section 3.5, algorithm 3.3).  Note that sum_c J_c = M^T.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit, log_softmax, ndtr, ndtri, softmax
from scipy.stats import qmc

from ..._core import (
    NotPositiveDefiniteError,
    Points,
    Stopwatch,
    as_float64,
    check_budget,
    entry_point,
    slices,
    warn_caller,
)
from ..._core.linalg import blas, lapack
from ...expansion import Expansion
from ...kernels import Kernel, prepare_pair
from ...solvers import Report, Status
from ...solvers.linear import mirror_lower_triangle
from ._exact_likelihood import DenseObjective
from ._exact_solve import dense_matrix, derivatives, fits_one_block, symmetric_tile
from ._gp_objective import Theta
from ._posterior import Conditioned, Posterior

# --- Likelihoods of class labels: logistic and softmax.


@dataclass(frozen=True)
class _ClassLikelihoodTuning:
    """Limits of quadratures and curvatures, and block sizes."""

    # The quadrature covers this many standard deviations on each side of the mean, beyond
    # which the normal density is negligible in float64.
    normal_range: float = 9.0
    # Above this standard deviation of f, integrating over a logistic variable instead of f takes
    # fewer nodes.
    wide_std: float = 4.0
    # Number of quadrature nodes on each side of 0, at a distance of 0.75; the logistic density
    # beyond them is below 1e-17.
    logistic_nodes: int = 53
    # Number of points that the quadrature processes at a time, which limits the memory.
    quadrature_rows: int = 4096
    # Lower limit of the curvature W, so that 1 / sqrt(W) is finite.
    min_curvature: float = 1e-200
    # Number of columns that are processed at a time, which limits the temporary memory.
    column_block: int = 64
    # Lower limit of the square root of a probability, so that its inverse is finite.
    min_root: float = 1e-150
    # Largest number of array entries in memory at a time when covariances are evaluated.
    max_numbers: int = 2**20
    # Base-2 logarithm of the number of Sobol points for averaging a softmax; more points are more
    # accurate and take longer.
    log2_nodes: int = 12
    # Resolution of the Sobol points in bits.
    sobol_bits: int = 30
    # Number of solves per linear system: the first one, and one step of iterative refinement.
    refinements: int = 2


_LIKELIHOOD = _ClassLikelihoodTuning()


class LogisticCurvature:
    """The Hessian W = p (1 - p) of -log p(y | f) at one f, and R = (K + W^-1)^-1.

        R = W^1/2 B^-1 W^1/2,     B = I + W^1/2 K W^1/2 = L L^T

    Attributes
    ----------
    P : ndarray of shape (n, 1)
        The probabilities p.
    half_logdet : float
        log det(I + K W) / 2.
    """

    def __init__(self, K: np.ndarray, F: np.ndarray) -> None:
        self.P = self.probabilities(F)
        self.root = np.sqrt(self.P[:, 0] * (1.0 - self.P[:, 0]))
        self.L = factorize_shifted(K, self.root, np.empty(K.shape))
        self.half_logdet = float(np.sum(np.log(np.diag(self.L))))

    @staticmethod
    def probabilities(F: np.ndarray) -> np.ndarray:
        """Return the probability p for each f."""
        return np.asarray(expit(F))

    @staticmethod
    def log_likelihood(F: np.ndarray, Y: np.ndarray) -> float:
        """Return sum_i log p(y_i | f_i)."""
        return -float(np.sum(np.logaddexp(0.0, np.where(Y > 0, -F, F))))

    @staticmethod
    def n_square_arrays(q: int, gradient: bool) -> int:
        """Return the number of n x n arrays that exist at the same time, including K."""
        return 4 if gradient else 3

    def solve(self, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return (I + W K)^-1 V = V - R K V."""
        root = self.root[:, None]
        return V - root * lapack.dpotrs(self.L, root * (K @ V), lower=1)[0]

    def gradient_terms(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u = (I - R K) s and R, valid in its lower triangle, for the gradient in theta.

        R, B and W are defined in the class docstring, and s = d(-log det B / 2) / df.  If v is the
        diagonal of (K^-1 + W)^-1 and W' = dW / df, then s = -v W' / 2, and v W = 1 - diag(B^-1).
        """
        R, _ = lapack.dpotri(self.L, lower=1)
        s = -0.5 * (1.0 - np.diag(R)) * (1.0 - 2.0 * self.P[:, 0])
        R *= self.root
        R *= self.root[:, None]
        return self.solve(K, s[:, None]), R

    def covariance(self, kernel: Kernel, X: Points) -> Conditioned:
        """Return the covariance of f given the labels."""
        root = np.maximum(self.root, np.sqrt(_LIKELIHOOD.min_curvature))
        return Conditioned(kernel, X, np.tril(self.L) / root[:, None])


def factorize_shifted(K: np.ndarray, root: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor L of I + W^1/2 K W^1/2, stored in `out`.

    `root` is the diagonal of W^1/2.  The eigenvalues of the matrix are at least 1 if K is positive
    semidefinite.
    """
    np.multiply(K, root, out=out)
    out *= root[:, None]
    out[np.diag_indices_from(out)] += 1.0
    # out.T is in Fortran order, as LAPACK needs it, and equals `out`, which is symmetric
    L, info = lapack.dpotrf(out.T, lower=1, clean=0, overwrite_a=1)
    if info != 0 or not np.isfinite(L[-1, -1]):
        raise NotPositiveDefiniteError(
            f"I + W^1/2 K W^1/2 is not positive definite (pivot {info} of {len(L)}): the kernel is "
            f"not positive semidefinite on these points; choose a Mercer kernel"
        )
    return np.asarray(L)


@entry_point
def expected_probability(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return E[1 / (1 + exp(-f))] for normal f, the class probability of a Gaussian process.

    Parameters
    ----------
    mean : ndarray of shape (n,)
        The means of f at n points.
    variance : ndarray of shape (n,)
        The variances of f, at least 0.

    Returns
    -------
    ndarray of shape (n,)
        The probabilities of class 1.

    See Also
    --------
    expected_softmax : The same for more than two classes.
    GaussianProcessClassifier : Classifier that uses these probabilities.

    Notes
    -----
    The trapezoidal rule converges exponentially here.  In units of the standard deviation sigma,
    the nearest pole of the logistic function is at the distance pi / sigma from the real line, so
    that a step of 0.8 / sigma has an error of exp(-2 pi^2 / 0.8) = 2e-11.  If sigma is large, this
    would take many nodes.  Then the integral is written as an expectation over a logistic variable
    l, because 1 / (1 + exp(-f)) is the probability of l <= f:

        E[1 / (1 + exp(-f))] = E[Phi((mean - l) / sigma)]

    where Phi is the standard normal distribution function.  The poles of the density of l are at
    the distance pi from the real line, and a step of 0.75 in l is sufficient.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
    3.4.2.

    Trefethen and Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import expected_probability
    >>> expected_probability(np.array([0.0, 2.0]), np.array([1.0, 4.0])).round(4)
    array([0.5   , 0.7752])
    """
    sigma: np.ndarray = np.sqrt(np.maximum(variance, 0.0))
    out, wide = np.empty(len(sigma)), sigma > _LIKELIHOOD.wide_std
    if not wide.all():
        widest = float(sigma[~wide].max())
        steps = int(np.ceil(_LIKELIHOOD.normal_range * max(1.7, widest / 0.8)))
        x = np.linspace(-_LIKELIHOOD.normal_range, _LIKELIHOOD.normal_range, 2 * steps + 1)
        out[~wide] = _weighted_mean(expit, mean[~wide], sigma[~wide], x, np.exp(-0.5 * x**2))
    if wide.any():
        n_nodes, scale = _LIKELIHOOD.logistic_nodes, 1.0 / sigma[wide]
        nodes = 0.75 * np.arange(-n_nodes, n_nodes + 1)
        density = expit(nodes) * expit(-nodes)
        out[wide] = _weighted_mean(ndtr, mean[wide] * scale, scale, nodes, density)
    # rounding errors must not move a probability to the wrong side of 0.5
    return np.where(mean >= 0.0, np.maximum(out, 0.5), np.minimum(out, 0.5))


def _weighted_mean(
    f: Function[[np.ndarray], np.ndarray],
    a: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """Return the mean of f(a_i + b_i x) over x with weights w, for each i."""
    out = np.empty(len(a))
    for rows in slices(len(a), _LIKELIHOOD.quadrature_rows):
        out[rows] = f(a[rows, None] + b[rows, None] * x) @ w
    return np.asarray(out / w.sum())


class SoftmaxCurvature:
    """The Hessian W_cd = delta_cd p_c - p_c p_d of -log p(y | f), and R = (K + W^-1)^-1.

    The symbols are defined in the module docstring.

    Attributes
    ----------
    P : ndarray of shape (n, C)
        The probabilities p_c.
    half_logdet : float
        log det(I + K W) / 2.
    """

    def __init__(self, K: np.ndarray, F: np.ndarray) -> None:
        n, q = F.shape
        self.P = self.probabilities(F)
        self.roots = np.sqrt(self.P)
        self.factors = np.empty((q, n, n))  # the Cholesky factors of the B_c, transposed
        self.S, self.half_logdet = np.zeros((n, n), order="F"), 0.0
        self.diagonals = np.empty((n, q))  # the diagonals of the B_c^-1
        work = np.empty((n, n))
        for c, (factor, root) in enumerate(zip(self.factors, self.roots.T, strict=True)):
            L = factorize_shifted(K, root, factor)
            self.half_logdet += float(np.sum(np.log(np.diag(L))))
            B = _invert(factor, work)
            self.diagonals[:, c] = np.diag(B)
            for rows in slices(n, _LIKELIHOOD.column_block):
                self.S[:, rows] += (root[rows, None] * B[rows] * root).T
        del work, B
        self.M, info = lapack.dpotrf(self.S, lower=1, clean=1)
        if info != 0 or not np.isfinite(self.M[-1, -1]):
            raise NotPositiveDefiniteError(
                f"sum_c (K + 1/p_c)^-1 is not positive definite (pivot {info} of {n}): the kernel "
                f"values are too large, or the kernel is not positive semidefinite on these "
                f"points; try a smaller constant factor, or choose a Mercer kernel"
            )
        self.half_logdet += float(np.sum(np.log(np.diag(self.M))))

    @staticmethod
    def probabilities(F: np.ndarray) -> np.ndarray:
        """Return the probabilities p_c for each f."""
        return np.asarray(softmax(F, axis=1))

    @staticmethod
    def log_likelihood(F: np.ndarray, Y: np.ndarray) -> float:
        """Return sum_i log p(y_i | f_i)."""
        return float(np.sum(log_softmax(F, axis=1)[Y > 0]))

    @staticmethod
    def n_square_arrays(q: int, gradient: bool) -> int:
        """Return the number of n x n arrays for q classes, including K.

        They are K, S, M, a work array, q Cholesky factors, and M^-1 if a gradient is needed.
        """
        return q + (5 if gradient else 4)

    def solve(self, K: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return A = (I + W K)^-1 V = V - R K V, for a V whose rows sum to 0.

        If K is large, rounding errors of R become large errors of K A.  They are reduced by
        iterative refinement.
        """
        A = np.zeros_like(V)
        for _ in range(_LIKELIHOOD.refinements):
            f = self.P * (K @ A)
            r = V - A - f + self.P * f.sum(axis=1, keepdims=True)
            A += r - self._times_R(K @ r)
            A -= A.mean(axis=1, keepdims=True)
        return A

    def _times_R(self, V: np.ndarray) -> np.ndarray:
        """Return R V = E V - E S^-1 sum_c E_c V_c; see the module docstring."""
        T = self._times_E(V)
        common = lapack.dpotrs(self.M, T.sum(axis=1), lower=1)[0]
        return T - self._times_E(np.broadcast_to(common[:, None], V.shape))

    def _times_E(self, V: np.ndarray) -> np.ndarray:
        """Return the columns E_c V_c, with E_c = D_c^1/2 B_c^-1 D_c^1/2."""
        pairs = zip(self.factors, (self.roots * V).T, strict=True)
        return self.roots * np.column_stack([lapack.dpotrs(L.T, v, lower=1)[0] for L, v in pairs])

    def _whitened_block(self, c: int, out: np.ndarray) -> np.ndarray:
        """Return the transpose of J_c = M^-1 E_c, stored in `out`, which may be `factors[c]`."""
        J, root = _invert(self.factors[c], out).T, self.roots[:, c]
        J *= root[:, None]
        blas.dtrsm(1.0, self.M, J, lower=1, overwrite_b=1)
        J *= root
        return out

    def gradient_terms(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u = (I - R K) s and sum_c R_cc, for the gradient in theta.

        s = d(-log det(I + K W) / 2) / df.  At each point s_c = -(r_c - p_c sum_a r_a) / 2 with
        r_a = p_a (T_aa - 2 sum_b T_ab p_b), where T = (K^-1 + W)^-1 is the covariance of f given
        the labels:

            p_a^1/2 T_ab p_b^1/2 = delta_ab (1 - (B_a^-1)_ii) + g_a . g_b

        g_a is a column of M^-1 D_a^1/2 (I - B_a^-1), and sum_b p_b^1/2 g_b is one of M^-1 - M^T.
        The sum of R_cc is valid in its lower triangle only.  It overwrites S, so this method can
        be called only once.  The other symbols are defined in the module docstring.
        """
        P, R, work = self.P, self.S, np.empty(K.shape)
        inverse, _ = lapack.dtrtri(self.M, lower=1)
        r = (1.0 - self.diagonals) * (1.0 - 2.0 * P)
        for c, root in enumerate(self.roots.T):
            J = self._whitened_block(c, work)
            for cols in slices(len(P), _LIKELIHOOD.column_block):
                V = inverse[:, cols]
                g = V * root[cols] - J[cols].T / np.maximum(root[cols], _LIKELIHOOD.min_root)
                r[cols, c] += np.einsum("ij,ij->j", g, g)
                r[cols, c] -= 2.0 * root[cols] * np.einsum("ij,ij->j", g, V - self.M[cols].T)
            blas.dsyrk(-1.0, J.T, beta=1.0, c=R, trans=1, lower=1, overwrite_c=1)
        s = -0.5 * (r - P * r.sum(axis=1, keepdims=True))
        return self.solve(K, s), R

    def covariance(self, kernel: Kernel, X: Points) -> ClassCovariance:
        """Return the covariance of the f_c given the labels.

        This overwrites the Cholesky factors, so this method can be called only once.
        """
        for c, factor in enumerate(self.factors):
            self._whitened_block(c, factor)
        return ClassCovariance(kernel, X, self.factors)


def _invert(factor: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return (L L^T)^-1, stored in `out`, where `factor` is L transposed."""
    if out is not factor:
        out[...] = factor
    lapack.dpotri(out.T, lower=1, overwrite_c=1)
    mirror_lower_triangle(out.T)
    return out


@entry_point
@dataclass(frozen=True, eq=False)
class ClassCovariance:
    """Posterior covariance matrix of the class functions f_1(x), ..., f_C(x) at each point.

        cov(f_c(x), f_d(x) | labels) = delta_cd (k(x, x) - sum_b psi_b . psi_c) + psi_c . psi_d
        psi_c(x) = J_c k_X(x)

    k_X(x) contains the kernel values of x and the observations.  The sum of all f_c keeps its prior
    variance, because the softmax does not depend on it.

    Attributes
    ----------
    kernel : Kernel
        The prior k, the same for all classes.
    points : points
        The n observations.
    factors : ndarray of shape (C, n, n)
        The transposes of the matrices J_c, which are defined in the module docstring.

    See Also
    --------
    LaplaceLikelihood : Compute the posterior of the class functions.
    expected_softmax : Class probabilities from this covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> from mercer.kernels import RBF
    >>> X, y = np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2]
    >>> model = GaussianProcessClassifier(1.0 * RBF(), multi_class="multinomial", optimizer=None)
    >>> mean, covariance = model.fit(X, y).latent_mean_and_variance(X[:2])
    >>> np.shape(covariance)
    (2, 3)
    """

    kernel: Kernel
    points: Points
    factors: np.ndarray

    def __call__(self, X: Points) -> np.ndarray:
        """Return the covariance matrices of the class functions.

        Parameters
        ----------
        X : points
            The m points.

        Returns
        -------
        ndarray of shape (m, C, C)
            One matrix per point.
        """
        q, n, _ = self.factors.shape
        P, Q = prepare_pair(self.kernel, as_float64(X), self.points)
        out = np.empty((len(P), q, q))
        for rows in slices(len(P), max(1, _LIKELIHOOD.max_numbers // (n * q))):
            k = np.empty((len(P[rows]), n))
            self.kernel._tile(P[rows], Q, k)
            psi = np.stack([k @ J for J in self.factors], axis=1)
            out[rows] = psi @ psi.transpose(0, 2, 1)
        prior = np.asarray(self.kernel.diag(as_float64(X)), dtype=float)
        np.einsum("icc->ic", out)[...] += prior[:, None] - out.sum(axis=2)
        return out


@cache
def _normal_nodes(q: int) -> np.ndarray:
    """Return quasi-random normal vectors whose q coordinates sum to 0, from Sobol points."""
    bits, rng = _LIKELIHOOD.sobol_bits, np.random.default_rng(0)
    points = qmc.Sobol(d=q - 1, scramble=True, bits=bits, seed=rng)
    # The shift avoids the point 0, whose normal quantile is infinite.
    quantiles = points.random_base2(_LIKELIHOOD.log2_nodes) + 0.5 ** (bits + 1)
    return np.asarray(ndtri(quantiles) @ helmert(q))


@entry_point
def expected_softmax(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return E[softmax(f)] for normal vectors f, the class probabilities of a Gaussian process.

    Parameters
    ----------
    mean : ndarray of shape (m, C)
        The means of the C functions at m points.
    covariance : ndarray of shape (m, C, C)
        Their covariance matrices, such as those of `ClassCovariance`.

    Returns
    -------
    ndarray of shape (m, C)
        The class probabilities; rows sum to 1.

    See Also
    --------
    expected_probability : The same for two classes and one function.
    ClassCovariance : The covariance of the class functions.

    Notes
    -----
    For two classes, the expectation is computed by quadrature, with an error of about 1e-10.  For
    more classes, it is the mean over 4096 points of a Sobol sequence, the same in every call.  Its
    error is up to 1e-4 for 3 classes and 5e-4 for 10 classes if f has a standard deviation of 1,
    and up to 5e-4 and about 5e-3 if f has a standard deviation of 8.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section 3.5.

    Sobol', "On the distribution of points in a cube and the approximate evaluation of integrals",
    USSR Computational Mathematics and Mathematical Physics 7, 1967.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import expected_softmax
    >>> expected_softmax(np.array([[2.0, 1.0, 0.0]]), np.eye(3)[None]).round(3)
    array([[0.596, 0.281, 0.123]])
    """
    m, q = mean.shape
    if q == 2:
        variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
        p = expected_probability(mean[:, 1] - mean[:, 0], variance)
        return np.column_stack([1.0 - p, p])
    # remove the common shift of all f_c, on which the softmax does not depend
    covariance = covariance - covariance.mean(axis=1, keepdims=True)
    eigenvalues, V = np.linalg.eigh(covariance - covariance.mean(axis=2, keepdims=True))
    roots = (V * np.sqrt(np.maximum(eigenvalues, 0.0))[:, None, :]) @ V.transpose(0, 2, 1)
    nodes, out = _normal_nodes(q), np.empty((m, q))
    for i in range(m):
        out[i] = softmax(mean[i] + nodes @ roots[i], axis=1).mean(axis=0)
    return out / out.sum(axis=1, keepdims=True)


# --- The Laplace approximation.


@dataclass(frozen=True)
class _LaplaceTuning:
    """Limits of the Newton iteration that finds the mode."""

    # Number of times that a step which decreases the objective is halved before it is rejected.
    max_halvings: int = 30
    # Number of additional steps that reuse a factorisation of I + K W; a new factorisation costs as
    # much as several steps.
    max_corrections: int = 3
    # The mode f has converged if |K^-1 f - (Y - P)| / |Y - P| is at most this value, for labels Y
    # and probabilities P; it is 0 at the exact mode.
    max_mode_residual: float = 1e-4
    # Relative gains of the objective below this are rounding errors.
    min_relative_gain: float = 1e-12


_TUNING = _LaplaceTuning()


@dataclass(frozen=True)
class _Mode:
    """The posterior mode f, the most probable latent values, and quantities computed at f."""

    curvature: LogisticCurvature | SoftmaxCurvature
    slope: np.ndarray  # labels minus probabilities, Y - P; equals K^-1 f at the mode
    value: float  # the approximate log marginal likelihood
    steps: int
    converged: bool
    slack: float  # |K^-1 f - (Y - P)| relative to |Y - P|; 0 at the exact mode


@entry_point
@dataclass(frozen=True, eq=False)
class LaplaceLikelihood(DenseObjective):
    """Approximate log marginal likelihood of class labels, by the Laplace approximation.

        log q(y) = log p(y | f) - f^T K^-1 f / 2 - log det(I + K W) / 2

    where f is the posterior mode and W is the Hessian of -log p(y | f) at f.  Maximise it to choose
    the kernel parameters of a Gaussian process classifier.

    Parameters
    ----------
    kernel : Kernel
        The prior covariance of f.
    X : points
        The n observations.
    Y : array of shape (n,), (n, 1) or (n, C)
        The labels: for two classes one column of 0 and 1, with one function f and the logistic
        link; for C classes C indicator columns, with one function f_c per class and the softmax
        link.  All functions have the same kernel.
    noise : float, default=0
        Must be 0, because the randomness of labels is part of the link.  For noise of f itself,
        add a `White` kernel.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.  One column needs 3 arrays of n x n numbers, and 4 for a gradient; C columns
        need C + 4, and C + 5 for a gradient.
    max_iter : int, default=100
        Largest number of Newton steps for finding the mode.  Increase it if `posterior` warns that
        the mode was not found.
    warm : bool, default=False
        Whether the Newton steps start at the previous mode, rather than at f = 0.  This saves steps
        in an optimisation, but values then depend slightly on the previous ones.

    See Also
    --------
    GaussianProcessClassifier : The estimator that maximises this likelihood.
    expected_probability : Class probabilities from the posterior of f.

    Notes
    -----
    The gradient is d log q = sum_ij M_ij dK_ij with

        M = sum_c (a_c a_c^T - R_cc + u_c a_c^T + a_c u_c^T) / 2,
        a = K^-1 f = Y - P,    R = (K + W^-1)^-1,    u = (I - R K) s,

    where P are the probabilities, and s is the derivative of -log det(I + K W) / 2 with respect to
    f.  No array of size n x n x p is needed, for p parameters.

    Two columns 1 - y, y with the kernel k are equivalent to one column y with the kernel 2 k,
    because the probabilities depend only on the difference of the two functions.

    References
    ----------
    Williams and Barber, "Bayesian classification with Gaussian processes", IEEE Transactions on
    Pattern Analysis and Machine Intelligence 20, 1998.

    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, sections
    3.4, 3.5 and 5.5.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import LaplaceLikelihood
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> round(LaplaceLikelihood(RBF(), X, X[:, 0] > 1.0).value(), 4)
    -5.8364
    >>> thirds = np.column_stack([X < 1.0, (1.0 <= X) & (X < 2.0), 2.0 <= X])
    >>> round(LaplaceLikelihood(RBF(), X, thirds).value(), 4)
    -9.6794
    """

    max_iter: int = 100
    warm: bool = False

    remedy: ClassVar[str] = "a kernel that is positive semidefinite on all points"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_binary, Y = self.Y.shape[1] == 1, self.Y
        if not np.all((Y == 0.0) | (Y == 1.0)) or (not is_binary and np.any(Y.sum(axis=1) != 1.0)):
            raise ValueError(
                "the labels of a LaplaceLikelihood must be one column of 0 and 1, or several "
                "columns of 0 and 1 with a single 1 in each row"
            )
        if np.any(self.noise):
            raise ValueError(
                "LaplaceLikelihood has no noise variance, because the randomness of labels is part "
                "of the link; leave noise at 0, or add White(...) to the kernel for noise of the "
                "latent function"
            )
        n, q = Y.shape
        needed = 8 * n * n * self._link.n_square_arrays(q, gradient=False)
        text = f"a Gaussian process on {n} points{self._classes_text}"
        check_budget(needed, self.max_memory, text)

    @property
    def _link(self) -> type[LogisticCurvature] | type[SoftmaxCurvature]:
        """The class that implements the logistic or the softmax likelihood."""
        return LogisticCurvature if self.Y.shape[1] == 1 else SoftmaxCurvature

    @property
    def _classes_text(self) -> str:
        q = self.Y.shape[1]
        return "" if q == 1 else f" of {q} classes"

    @property
    def _n_square_arrays(self) -> int:
        return self._link.n_square_arrays(self.Y.shape[1], gradient=True)

    def _value(self, theta: Theta) -> float:
        return self._find_mode(dense_matrix(self._kernel_at(theta), self.X, self.max_memory)).value

    def _value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        kernel = self._kernel_at(theta)
        block = kernel.linearise(self.X) if fits_one_block(kernel, self.X) else None
        K = dense_matrix(kernel, self.X, self.max_memory, block)
        mode = self._find_mode(K)
        A = mode.slope
        U, R = mode.curvature.gradient_terms(K)

        def weights(rows: slice, cols: slice) -> np.ndarray:
            outer = (A[rows] + U[rows]) @ A[cols].T + A[rows] @ U[cols].T
            return 0.5 * (outer - symmetric_tile(R, rows, cols))

        return mode.value, derivatives(kernel, self.X, weights, block=block)[0]

    def posterior(self, theta: Theta = None) -> Posterior:
        """Return the mean and covariance of f given the labels, by the Laplace approximation.

        Parameters
        ----------
        theta : array of shape (p,), optional
            The logarithms of the p free kernel parameters; by default, those of `kernel`.

        Returns
        -------
        Posterior
            The mean as an `Expansion` of 1 or C functions on the n observations.  The covariance is
            a `Conditioned` kernel for two classes, and a `ClassCovariance` for indicator columns.
        """
        watch, kernel = Stopwatch(), self._kernel_at(theta)
        mode = self._find_mode(dense_matrix(kernel, self.X, self.max_memory))
        status = Status.CONVERGED if mode.converged else Status.NOT_CONVERGED
        if not mode.converged:
            advice = "the kernel values are too large: try a smaller constant factor"
            if mode.steps == self.max_iter:
                advice = "increase max_iter_predict"
            warn_caller(
                f"the posterior mode of f has not converged after {mode.steps} Newton steps: the "
                f"relative difference between its coefficients and y - p is {mode.slack:.2e}; "
                f"{advice}"
            )
        covariance = mode.curvature.covariance(kernel, self.X)
        report = Report(
            solver=type(self).__name__,
            status=status,
            residual=mode.slack,
            n_iter=mode.steps,
            seconds=watch.seconds,
            certificate={"log marginal likelihood": mode.value},
        )
        return Posterior(Expansion(kernel, self.X, mode.slope), covariance, report)

    def _find_mode(self, K: np.ndarray) -> _Mode:
        """Return the posterior mode f, found by Newton's method.

        Factorising I + K W costs as much as several solves.  Each factor is therefore used for its
        Newton step and for a few more corrections.  The iteration ends with a step that uses a
        new factor, because such a step converges quadratically.
        """
        link, Y = self._link, self.Y
        A = self.__dict__.get("_last", np.zeros(Y.shape))
        F = K @ A
        log_joint, converged, steps = self._log_joint(A, F), False, 0
        while True:
            curvature = link(K, F)
            slope = Y - curvature.P
            if converged or steps == self.max_iter:
                break
            for correction in range(1 + _TUNING.max_corrections):
                previous, step = log_joint, curvature.solve(K, Y - link.probabilities(F) - A)
                A, F, log_joint = self._line_search(K, A, F, log_joint, step)
                is_flat = log_joint - previous < _TUNING.min_relative_gain * (1.0 + abs(previous))
                converged = is_flat and not correction
                if is_flat:
                    break
            steps += 1
            del curvature  # free the memory of this factor before the next one is computed
        if self.warm:
            # The next call starts from this A; its result hardly depends on the start.
            self.__dict__["_last"] = A
        slack = float(np.linalg.norm(A - slope)) / max(float(np.linalg.norm(slope)), 1e-300)
        converged = converged and slack <= _TUNING.max_mode_residual
        return _Mode(curvature, slope, log_joint - curvature.half_logdet, steps, converged, slack)

    def _line_search(
        self, K: np.ndarray, A: np.ndarray, F: np.ndarray, log_joint: float, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return A, K A and the log joint density after a step.

        The step is halved until it does not decrease the log joint density.
        """
        lowest = log_joint - _TUNING.min_relative_gain * (1.0 + abs(log_joint))
        for _ in range(_TUNING.max_halvings):
            A_next = A + step
            F_next = K @ A_next
            value_next = self._log_joint(A_next, F_next)
            if value_next >= lowest:
                return A_next, F_next, value_next
            step = 0.5 * step
        return A, F, log_joint

    def _log_joint(self, A: np.ndarray, F: np.ndarray) -> float:
        """Return log p(y | f) - f^T K^-1 f / 2, where A = K^-1 f."""
        return float(self._link.log_likelihood(F, self.Y)) - 0.5 * float(np.sum(A * F))
