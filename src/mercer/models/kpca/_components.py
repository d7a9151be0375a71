"""The fitted components of a kernel PCA: component functions, mean, and spectrum.

    score_j(x) = w_j(x) - <w_j, mu>,     |phi(x) - mu - sum_j score_j(x) w_j|^2
                                           = k(x, x) - 2 mu(x) + |mu|^2 - sum_j score_j(x)^2

phi(x) = k(x, .) is the point x in feature space, mu is the mean of phi over the training points,
and w_j is component j.  The functions w_j and mu are expansions in the same points: all training
points for an exact solver, and the landmarks for Nyström.  With random features, they are
expansions of the linear kernel in the feature space.

`reduced_components` compresses the expansion to fewer points, and `LearnedInverse` is a learned map
from scores to points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..._core import MemoryLimit, Points, entry_point, length, take
from ...expansion import Expansion, Primal
from ...expansion.preimage import (
    PreImages,
    choose_regression_map,
    concatenate_preimages,
    evenly_spaced_indices,
)
from ...expansion.reduced_set import Reduction
from ...gram import CentredGram, FourierMap, NystroemMap, gram
from ...kernels import RBF, Kernel, Linear
from ...solvers import (
    Certificate,
    Cholesky,
    EigenPairs,
    LeastSquares,
    Moments,
    Report,
    canonical_signs,
)

_FEATURE_BLOCK_ROWS = 8192  # number of points whose random features are in memory at a time
_MAX_DECODE_ENTRIES = 2**22  # number of coefficients of reconstructions in memory at a time


@entry_point
@dataclass(frozen=True, eq=False)
class Components:
    """The components of a kernel PCA: eigenvalues with bounds, and functions that score points.

    Attributes
    ----------
    values : ndarray of shape (k,)
        The eigenvalues of the centred kernel matrix, in descending order.
    vectors : ndarray of shape (n, k) or None
        Its eigenvectors; None after `partial_fit`, which does not store the points.
    certificate : Certificate
        Bounds on the eigenvalues.
    report : Report
        The report of the solver: its status, residual and time.
    total : float
        The trace of the centred kernel matrix; for Nyström, an upper bound on it.
    rows : int
        The number of training points that were used.
    expansion : Expansion or Primal
        The component functions w_j, and the mean mu in feature space as the last column.
    offset : ndarray of shape (k,)
        The inner products <w_j, mu>.
    squared_mean : float
        The squared norm |mu|^2.
    scores : ndarray of shape (n, k) or None
        The scores of the training points.
    basis : FeatureBasis or None
        The feature map and the moments of the features, for landmarks or random features.
    reduction : Reduction or None
        Information about the compression of the expansion to fewer points; None if there was none.
    """

    values: np.ndarray
    vectors: np.ndarray | None
    certificate: Certificate
    report: Report
    total: float
    rows: int
    expansion: Any
    offset: np.ndarray
    squared_mean: float
    scores: np.ndarray | None
    basis: Any = None
    reduction: Reduction | None = None

    @classmethod
    def exact(
        cls,
        centred: CentredGram,
        pairs: EigenPairs,
        points: Points,
        score_factors: np.ndarray,
        total: float,
    ) -> Components:
        """Return components expanded in all points: w_j = sum_i u_ij c_j (phi(x_i) - mu).

        u_ij are the entries of the eigenvectors.  The factors c_j (`score_factors`) are
        1 / sqrt(l_j) for the eigenvalues l_j, unless `repair_spectrum` changed the spectrum of an
        indefinite matrix.
        """
        S, vectors = centred.scale[:, None], pairs.vectors
        is_unweighted = bool(np.all(S == 1.0))  # S holds the square roots of the weights
        weighted = vectors if is_unweighted else S * vectors
        coefficients, offset = centred.centre_expansion(weighted * score_factors)
        columns = np.column_stack([coefficients, centred.weights])
        f, n = Expansion(centred.kernel, points, columns), centred.shape[0]
        scores = (vectors if is_unweighted else vectors / S) * np.sqrt(pairs.values)
        solution = pairs.values, vectors, pairs.certificate, pairs.report
        return cls(*solution, total, n, f, offset, centred.grand_mean, scores)

    @classmethod
    def from_features(
        cls, pairs: EigenPairs, scale: np.ndarray | None, *, drop_zeros: bool = False
    ) -> Components:
        """Return components expanded in landmarks, or in the space of random features.

        Components without variance are set to 0, or removed if `drop_zeros` is True.  The sign of
        a component is such that its largest score in modulus among the landmarks is positive.  If
        all points are landmarks, these are the signs of an exact solver.
        """
        phi, moments, axes, _ = pairs.basis
        total = float(np.trace(moments.comoment)) + moments.residual
        squared_mean = float(moments.mean @ moments.mean)
        largest = float(pairs.values.max(initial=0.0))
        uncentred_trace = total + moments.weight * squared_mean
        is_zero = pairs.values < rounding_floor(pairs.values, largest, uncentred_trace)
        signs = np.ones(axes.shape[1])
        if isinstance(phi, NystroemMap):
            signs = canonical_signs(phi.factor @ axes - moments.mean @ axes)
        signs[is_zero] = 0.0
        axes = axes * signs
        pairs = replace(
            pairs,
            values=np.where(is_zero, 0.0, pairs.values),
            vectors=pairs.vectors * signs,
            basis=pairs.basis._replace(axes=axes),
        )
        if drop_zeros:
            pairs = pairs.first(int(np.count_nonzero(~is_zero)))
            axes = pairs.basis.axes
        columns = np.column_stack([axes, moments.mean])
        kernel: Kernel
        if isinstance(phi, FourierMap):
            kernel, points, coefficients = Linear(), columns.T, np.eye(columns.shape[1])
        else:
            kernel, points = phi.kernel, phi.points
            coefficients = phi.expansion_coefficients(columns)
        vectors = scores = None
        if scale is not None:
            vectors = pairs.vectors
            scores = vectors * np.sqrt(pairs.values) / scale[:, None]
        f, offset = Expansion(kernel, points, coefficients), axes.T @ moments.mean
        solution = pairs.values, vectors, pairs.certificate, pairs.report
        return cls(*solution, total, moments.rows, f, offset, squared_mean, scores, pairs.basis)

    @property
    def functions(self) -> Any:
        """The component functions w_j, without the mean."""
        return self.expansion[slice(0, len(self.offset))]

    @property
    def mean(self) -> Any:
        """The mean mu of the training points in feature space, as an expansion with one column."""
        return self.expansion[[len(self.offset)]]

    @property
    def in_features(self) -> bool:
        """Whether the expansion is in the space of random features."""
        return self.basis is not None and isinstance(self.basis.map, FourierMap)

    def with_moments(self, moments: Moments) -> Components:
        """Return the components with the given moments of the features."""
        return replace(self, basis=self.basis._replace(moments=moments))

    def in_terms_of(self, kernel: Kernel) -> Components:
        """Return the components with the kernel replaced by `kernel`, which has the same values."""
        f, basis = self.expansion, self.basis
        if basis is not None and isinstance(basis.map, NystroemMap):
            basis = basis._replace(map=replace(basis.map, kernel=kernel))
        return replace(self, expansion=Expansion(kernel, f.points, f.coefficients), basis=basis)

    def to_primal(self, max_memory: MemoryLimit = None) -> Components:
        """Return the components as weights of the explicit features of the kernel."""
        f = self.expansion.to_primal(max_memory=max_memory)
        return replace(self, expansion=f, vectors=None, scores=None, basis=None)

    @property
    def in_primal(self) -> bool:
        """Whether the functions are stored as weights of features, without points."""
        return isinstance(self.expansion, Primal)

    def decode(self, scores: np.ndarray) -> Expansion:
        """Return the elements mu + sum_j scores_ij w_j of the RKHS, one for each row of scores."""
        f, A = self.expansion, self.expansion.coefficients
        return Expansion(f.kernel, f.points, A[:, :-1] @ scores.T + A[:, -1:])

    def preimage(
        self, scores: np.ndarray, method: str = "auto", *, start: Any = None, **options: Any
    ) -> PreImages:
        """Return approximate pre-images of `decode(scores)`, computed in blocks of rows."""
        if not len(scores):
            raise ValueError("scores is empty: pre-images need at least one row of scores")
        points = self.expansion.points
        n_columns = points.shape[1] if getattr(points, "ndim", 0) == 2 else 1
        rows = max(1, _MAX_DECODE_ENTRIES // max(length(points), 16 * n_columns))
        preimages = []
        for first in range(0, len(scores), rows):
            block = slice(first, first + rows)
            block_start = None if start is None else take(start, block)
            f = self.decode(scores[block])
            preimages.append(f.preimage(method, start=block_start, **options))
        return concatenate_preimages(preimages)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return the relative contribution of each feature to each component, shape (k, d).

        The contribution of feature c to component j is proportional to the mean over X of
        (s_c dw_j / dx_c)^2, where s_c is the standard deviation of the feature.  Rows sum to 1.
        """
        if not len(self.values):
            return np.zeros((0, X.shape[1]))
        squares = np.mean((self.functions.gradient(X) * np.std(X, axis=0)) ** 2, axis=0)
        total = squares.sum(axis=1, keepdims=True)
        return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)

    def score(self, X: Points) -> np.ndarray:
        """Return the scores <w_j, phi(x) - mu> of each point x of X, shape (n, k)."""
        # The last column, the mean mu, is evaluated but not used.  It costs little, and the points
        # of the whole expansion are already prepared and cached.
        return self._evaluate(X, self.expansion)[:, :-1] - self.offset

    def error(self, X: Points, kernel: Kernel) -> np.ndarray:
        """Return the squared reconstruction error in feature space for each point of X.

        With random features, phi(x) are these features, and k(x, x) is replaced by |phi(x)|^2.
        """
        if self.in_features:
            diagonal = self._evaluate(X, lambda Y: np.einsum("ij,ij->i", Y, Y))
        else:
            diagonal = np.asarray(kernel.diag(X))
        values = self._evaluate(X, self.expansion)
        distances = diagonal - 2.0 * values[:, -1] + self.squared_mean
        return self.reconstruction_errors(distances, values[:, :-1] - self.offset)

    @staticmethod
    def reconstruction_errors(distances: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return |phi(x) - mu|^2 - |scores|^2; negative values are rounding errors and become 0."""
        return np.maximum(distances - np.einsum("ij,ij->i", scores, scores), 0.0)

    def _evaluate(self, X: Points, function: Any) -> np.ndarray:
        """Apply the function to the points, or to their random features in blocks of rows."""
        if not self.in_features:
            return np.asarray(function(X))
        blocks = self.basis.map.blocks(X, _FEATURE_BLOCK_ROWS)
        return np.concatenate([function(F) for _, F in blocks])


def rounding_floor(values: np.ndarray, largest: float, uncentred_trace: float) -> float:
    """Return the value below which an eigenvalue cannot be distinguished from 0.

    It is the larger of 1e-12 (2e-7 in float32) times the largest eigenvalue, and eight machine
    epsilons times the trace of the matrix before centring.
    """
    relative = 2e-7 if values.dtype == np.float32 else 1e-12
    return max(relative * largest, 8.0 * float(np.finfo(values.dtype).eps) * uncentred_trace)


# --- Compression to fewer points.

# Eigenvalues of the matrix <g_i, g_j> below this fraction of the largest one count as 0, which
# means that the functions g_j are linearly dependent.
_MIN_RELATIVE_EIGENVALUE = 1e-10


@entry_point
def reduced_components(
    components: Components, shrink: Callable[[Expansion], Expansion]
) -> tuple[Components, np.ndarray | None]:
    """Return the components expanded in fewer points, and the errors of the training points.

    Parameters
    ----------
    components : Components
    shrink : callable
        Function that compresses an expansion to fewer points.

    Returns
    -------
    tuple of Components and ndarray of shape (n,) or None
        The compressed components, and the reconstruction errors of the training points; None if
        the training points are not stored.

    Notes
    -----
    The scaled components w_j sqrt(l_j / n), with eigenvalues l_j and n training points, are
    compressed together with the mean mu.  Let g_j be the projection of w_j on the span of the new
    points.  To first order, the variance along g_j is smaller than that along w_j by
    l_j |w_j - g_j|^2 / n.  With this scaling all squared errors, including that of the mean, are
    therefore variances.

    The g_j are not orthonormal.  The Rayleigh-Ritz method finds coefficients T of a new basis of
    their span with

        T^T <g, g> T = I,   T^T C T = diag(l),   C_ij = sum over training points of g_i g_j, centred

    so that the scores are uncorrelated again, the squared scores and the reconstruction error add
    up to the squared distance from the mean, and no l_j exceeds the exact eigenvalue.  Because g_j
    is in the span on which mu was projected, <g_j, mu> is exact.
    """
    k, f = len(components.offset), components.expansion
    nonzero = np.flatnonzero(components.values > 0)
    column_scales = np.append(np.sqrt(components.values / components.rows), 1.0)
    compressed = shrink(f * column_scales)
    kernel, Z, B = compressed.kernel, compressed.points, compressed.coefficients
    axes, mean = B[:, nonzero] / column_scales[nonzero], B[:, k]
    K_zz = gram(kernel, Z, storage="tiled")
    G, at_mean = np.hsplit(axes.T @ (K_zz @ np.column_stack([axes, mean])), [len(nonzero)])
    squared_mean, errors = float(mean @ (K_zz @ mean)), None
    if components.basis is None:
        values = gram(kernel, f.points, Z) @ np.column_stack([axes, mean])
        centred = values[:, :-1] - at_mean.T
        weights = components.rows * f.coefficients[:, k]
        ritz_values, T = _ritz(G, (weights[:, None] * centred).T @ centred, k)
        distances = kernel.diag(f.points) - 2.0 * values[:, -1] + squared_mean
        errors = Components.reconstruction_errors(distances, centred @ T)
    else:
        # With landmarks S, the covariance is that of the features L^-1 k_S(x), with L L^T = K_SS.
        moments = components.basis.moments
        F = components.basis.map.features(Z).T @ axes
        C = components.rows / moments.weight * (F.T @ moments.comoment @ F)
        ritz_values, T = _ritz(G, C, k)
    c, lower = components.certificate, np.minimum(ritz_values, components.certificate.lower)
    deviations = np.maximum(np.abs(c.upper - ritz_values), np.abs(ritz_values - c.lower))
    reduced = replace(
        components,
        values=ritz_values,
        vectors=None,
        certificate=replace(c, lower=lower, residuals=deviations, sines=np.ones(k), clusters=()),
        expansion=Expansion(f.kernel, Z, np.column_stack([axes @ T, mean]), compressed.reduction),
        offset=T.T @ at_mean[:, 0],
        squared_mean=squared_mean,
        scores=None,
        basis=None,
        reduction=compressed.reduction,
    )
    return reduced, errors


def _ritz(G: np.ndarray, C: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k values l in descending order, and T with T^T G T = I and T^T C T = diag(l).

    If the functions are linearly dependent, the last values and columns of T are 0.
    """
    s, V = np.linalg.eigh(G)
    independent = s > _MIN_RELATIVE_EIGENVALUE * s.max(initial=0.0)
    V = V[:, independent] / np.sqrt(s[independent])
    ritz, U = np.linalg.eigh(V.T @ C @ V)
    values, T = np.zeros(k), np.zeros((len(G), k))
    values[: len(ritz)] = np.maximum(ritz[::-1], 0.0)
    T[:, : len(ritz)] = (V @ U)[:, ::-1]
    # choose the sign of each component so that its overlap with the original one is positive
    n_signs = min(len(G), k)
    overlaps = np.einsum("ij,ji->i", G[:n_signs], T[:, :n_signs])
    T[:, :n_signs] *= np.where(overlaps < 0, -1.0, 1.0)
    return values, T


# --- The inverse transform, learned by kernel ridge regression.


@entry_point
@dataclass(frozen=True, eq=False)
class LearnedInverse:
    """Map from scores to points, learned by kernel ridge regression.

        x(t) = centre + sum_i b_i k(t_i, t),

    where t_i are the scores of the training points x_i.  The kernel k of the scores is chosen by
    the leave-one-out error, and so is the ridge if it is None.

    Attributes
    ----------
    expansion : Expansion
        The functions sum_i b_i k(t_i, .), one per feature.
    centre : ndarray of shape (d,)
        The weighted mean of the training points.
    ridge : float
        The regularisation that was used.
    """

    expansion: Expansion
    centre: np.ndarray
    ridge: float

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        X: Points,
        weights: np.ndarray | None,
        ridge: float | None,
        *,
        max_memory: MemoryLimit = None,
    ) -> Self:
        """Learn the map from the scores to the points X."""
        if sp.issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        if not (isinstance(X, np.ndarray) and X.ndim == 2):
            raise TypeError(
                f"fit_inverse_transform requires points that are vectors, got a "
                f"{type(X).__name__}; denoise and inverse_transform(X, method='nearest') accept "
                f"any points"
            )
        subset = evenly_spaced_indices(len(scores))
        subset_scores = scores[subset].astype(float)
        choice = choose_regression_map(
            subset_scores @ subset_scores.T, X[subset].astype(float), ridge
        )
        kernel: Kernel = Linear() if choice.width is None else RBF(choice.width)
        K = gram(kernel, scores, storage="dense", max_memory=max_memory)
        diagonal = choice.shift if weights is None else choice.shift / weights
        centre = np.average(X, axis=0, weights=weights)
        # without a ridge, K may be singular
        solver = Cholesky() if np.all(diagonal > 0) else LeastSquares()
        coefficients = solver.factorize(K, diagonal, overwrite=True).solve(X - centre)
        return cls(Expansion(kernel, scores, coefficients), centre, choice.shift)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the points for scores of shape (n, k)."""
        return self.centre + self.expansion(scores)
