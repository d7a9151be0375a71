"""Quality of an embedding: how well it preserves the neighbours of each point.

rho_ij is the rank of point j among the neighbours of point i in the data, and r_ij its rank in the
embedding; rank 1 is the nearest.  Each measure compares both ranks for all points j of a row i, for
all numbers K of neighbours at once, and is averaged over the rows i.  A random subset of the rows,
each with its exact ranks among *all* points, therefore gives an unbiased estimate with a standard
error.  Ranks within a random subset of the points would give a biased estimate.

Distances are computed in input space or in the feature space of a kernel, in blocks of rows.
Distances between vectors are computed from their differences, not from a matrix product.  Two
copies of a point then have bit-for-bit identical distances to all other points; a matrix product
does not guarantee this, because its order of summation varies between tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.utils.validation import check_array

from ..._core import (
    ENTRY_WORK,
    Points,
    RandomState,
    entry_point,
    ignore_overflow,
    is_count,
    length,
    not_finite_error,
    ordered_sum,
    reject_structured,
    report_step,
    seeded_generator,
    slices,
)
from ...kernels import (
    Kernel,
    Linear,
    Radial,
    Shift,
    as_kernel,
    expects_precomputed_rows,
    prepare_pair,
    shifted_to_data,
)

# --- Distances between points, in blocks of rows.

_ZERO_ULPS = 32  # squared distances below this many rounding units of their terms are set to 0
# Points beyond 2^200 or below 2^-200 are rescaled, so that squares do not overflow.
_MAX_EXPONENT = 200
_ENTRIES_PER_BLOCK = 2**17  # number of distances in a block of rows


class Distances(Protocol):
    """Squared distances between n points, or values that sort the points in the same order."""

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances of the m points `rows` (indices) to all n points, shape (m, n)."""


def distances(X: Points, kernel: Kernel | None, name: str) -> Distances:
    """Return the distances of points in the feature space of a kernel; None means Euclidean.

    `name` is the name of the argument X in error messages.
    """
    if kernel is None:
        reject_structured(X, f"embedding_quality(kernel=None) compares rows of {name} and")
    vectors = kernel is None or kernel.domain.on_vectors
    points = _vectors(X, name) if vectors else X
    kernel = kernel if kernel is None else shifted_to_data(kernel.resolve(points), points)
    if isinstance(points, np.ndarray) and vectors:
        if kernel is None or _is_euclidean(kernel):
            return _EuclideanDistances(points)
        if isinstance(kernel, Radial) and kernel.is_decreasing:
            # Distances in input space sort the points in the same order as distances in feature
            # space, and are exact even where k underflows to 0 and all points are equally far
            # apart in feature space.
            return _EuclideanDistances(points / kernel.length_scale)
    return _FeatureSpaceDistances(Linear() if kernel is None else kernel, points)


def _vectors(X: Points, name: str) -> Any:
    """Validate X as finite vectors in float64."""
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, input_name=name, estimator="embedding_quality"
    )


class _EuclideanDistances:
    """Squared Euclidean distances; points are rescaled if the squares would over- or underflow."""

    def __init__(self, points: np.ndarray) -> None:
        _, exponent = np.frexp(np.abs(points).max())
        rescale = abs(exponent) > _MAX_EXPONENT
        self._points = np.ascontiguousarray(np.ldexp(points, -exponent) if rescale else points)

    def block(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(cdist(self._points[rows], self._points, "sqeuclidean"))


class _FeatureSpaceDistances:
    """Squared distances in feature space, k(x, x) - 2 k(x, z) + k(z, z)."""

    @ignore_overflow
    def __init__(self, kernel: Kernel, points: Points) -> None:
        self._kernel = kernel
        self._P, self._Q = prepare_pair(kernel, points, None)
        self._norms = np.asarray(kernel.diag(points), dtype=np.float64)

    @ignore_overflow
    def block(self, rows: np.ndarray) -> np.ndarray:
        P, norms = self._P[rows], self._norms
        out = np.empty((len(rows), len(norms)), dtype=np.result_type(P.dtype, self._Q.dtype))
        self._kernel._tile(P, self._Q, out)
        own = norms[rows, None]
        return _squared_distances(own, norms, out, self._kernel)


@entry_point
def feature_space_pdist(kernel: Kernel, points: Points) -> np.ndarray:
    """Return the distances of all pairs of points in the feature space of a kernel.

    The result is a condensed distance vector of shape (n (n - 1) / 2,), as from SciPy's `pdist`.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> from mercer.models.embedding import feature_space_pdist
    >>> feature_space_pdist(Spectrum(1), ["AA", "AC", "CC"]).round(3)
    array([1.414, 2.828, 1.414])
    """
    if _is_euclidean(kernel) and isinstance(points, np.ndarray):
        return _check_finite(np.asarray(pdist(points)), kernel)
    n, feature_distances = length(points), _FeatureSpaceDistances(kernel, points)
    out, start = np.empty(n * (n - 1) // 2), 0
    for rows in slices(n, max(1, _ENTRIES_PER_BLOCK // n)):
        block = np.sqrt(feature_distances.block(np.arange(rows.start, rows.stop)))
        for i, row in enumerate(block, start=rows.start):
            out[start : start + n - 1 - i] = row[i + 1 :]
            start += n - 1 - i
    return out


@entry_point
@ignore_overflow
def feature_space_cdist(
    kernel: Kernel, X: Points, Z: Points, own: np.ndarray, norms: np.ndarray
) -> np.ndarray:
    """Return the distances of points X to points Z in the feature space of a kernel.

    Parameters
    ----------
    kernel : Kernel
    X, Z : points
        The m points x and the n points z.
    own, norms : ndarrays of shape (m,) and (n,)
        The values k(x, x) and k(z, z).

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.embedding import feature_space_cdist
    >>> X, Z = np.array([[0.0]]), np.array([[0.0], [9.0]])
    >>> feature_space_cdist(RBF(), X, Z, np.ones(1), np.ones(2)).round(4)
    array([[0.    , 1.4142]])
    """
    if _is_euclidean(kernel) and isinstance(X, np.ndarray) and isinstance(Z, np.ndarray):
        return _check_finite(np.asarray(cdist(X, Z)), kernel)
    return np.sqrt(_squared_distances(own[:, None], norms, kernel(X, Z), kernel))


def _is_euclidean(kernel: Kernel) -> bool:
    """Whether distances in feature space are Euclidean distances of the vectors."""
    return type(kernel) is Linear or (isinstance(kernel, Shift) and _is_euclidean(kernel.kernel))


def _squared_distances(
    own: np.ndarray, norms: np.ndarray, K: np.ndarray, kernel: Kernel
) -> np.ndarray:
    """Return k(x, x) - 2 k(x, z) + k(z, z), with values at the level of rounding set to 0."""
    squared = own - 2.0 * K.astype(np.float64, copy=False) + norms
    threshold = _ZERO_ULPS * np.finfo(np.float64).eps * (np.abs(own) + np.abs(norms))
    squared[squared <= threshold] = 0.0
    return _check_finite(squared, kernel)


def _check_finite(distances: np.ndarray, kernel: Kernel) -> np.ndarray:
    if not np.isfinite(distances.sum()):
        raise not_finite_error(kernel)
    return distances


# --- Measures of quality.


@dataclass(frozen=True)
class _QualityTuning:
    """Defaults of `embedding_quality`, and block sizes."""

    # By default, all rows are evaluated if there are at most this many points.
    max_exact_points: int = 5000
    # By default, this many random rows are evaluated if there are more than `max_exact_points`.
    n_sampled_rows: int = 2000
    # Number of distances in a block of rows, which limits the memory.
    entries_per_block: int = 2**19
    # Blocks are summed in this fixed number of groups, so that the result does not depend on the
    # number of threads.
    n_groups: int = 4
    # Default number of neighbours for the measures of single points.
    n_neighbors: int = 10


_TUNING = _QualityTuning()


@dataclass(frozen=True, eq=False)
class QualityMeasures:
    """Quality measures of an embedding for single points, or their standard errors.

    It is the type of the fields `points` and `standard_error` of `EmbeddingQuality`, where the
    measures are defined.

    Attributes
    ----------
    trustworthiness, continuity, lcmc, q_nx, r_nx : ndarray
        Standard errors have one entry per number of neighbours; measures of single points have
        one entry per point.
    auc : float or ndarray
        The standard error is one number; the measure of single points has one entry per point.

    See Also
    --------
    embedding_quality : Compute these measures.
    EmbeddingQuality : The measures of the whole embedding.

    References
    ----------
    Lee and Verleysen, "Quality assessment of dimensionality reduction: rank-based criteria",
    Neurocomputing 72, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_quality
    >>> quality = embedding_quality(np.arange(5.0)[:, None], [[0.0], [2.0], [4.0], [1.0], [3.0]])
    >>> quality.trustworthiness[0].round(3), quality.standard_error.auc
    (np.float64(0.2), 0.0)
    >>> quality.points.q_nx.round(2)  # for each point, with three neighbours of four
    array([0.67, 0.67, 0.67, 0.67, 1.  ])
    """

    trustworthiness: np.ndarray
    continuity: np.ndarray
    lcmc: np.ndarray
    q_nx: np.ndarray
    r_nx: np.ndarray
    auc: Any


@dataclass(frozen=True, eq=False)
class EmbeddingQuality(QualityMeasures):
    """The result of `embedding_quality`; entry K - 1 of a curve belongs to K neighbours.

    Attributes
    ----------
    trustworthiness : ndarray of shape (n - 2,)
        1 if all neighbours in the embedding are neighbours in the data.
    continuity : ndarray of shape (n - 2,)
        1 if all neighbours in the data are neighbours in the embedding.
    q_nx : ndarray of shape (n - 2,)
        The fraction of neighbours that data and embedding have in common.
    lcmc : ndarray of shape (n - 2,)
        `q_nx` minus its expected value for a random embedding.
    r_nx : ndarray of shape (n - 2,)
        `q_nx` rescaled so that a random embedding has 0 and a perfect one has 1.
    auc : float
        The mean of `r_nx` over all K, with weights 1 / K: a single number for the embedding.
    standard_error : QualityMeasures
        The standard errors of these measures; 0 if all rows were evaluated.
    points : QualityMeasures
        The measures of each evaluated point, for `n_neighbors` neighbours.
    rows : ndarray of shape (m,)
        The indices of the points whose neighbours were evaluated.
    n_neighbors : int or ndarray
        The number or numbers of neighbours K that were used for `points`.

    See Also
    --------
    embedding_quality : Compute these measures.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_quality
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) * [3.0, 1.0, 0.1]
    >>> quality = embedding_quality(X, X[:, :2])
    >>> quality.trustworthiness[4].round(3), quality.continuity[4].round(3)
    (np.float64(1.0), np.float64(1.0))
    >>> worst = quality.rows[quality.points.trustworthiness.argmin()]  # the least trustworthy point
    """

    standard_error: QualityMeasures = field(repr=False)
    points: QualityMeasures = field(repr=False)
    rows: np.ndarray = field(repr=False)
    n_neighbors: Any


@entry_point
@ignore_overflow
def embedding_quality(
    X: Points,
    Z: Points,
    rows: int | Sequence[int] | np.ndarray | None = None,
    *,
    kernel: Any = None,
    n_neighbors: int | Sequence[int] | np.ndarray | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> EmbeddingQuality:
    """Measure how well an embedding preserves neighbours, for every number K of neighbours.

    Use it to compare embeddings of the same data, by different methods or with different
    parameters.  Trustworthiness is low if distant points appear as neighbours; continuity is low if
    neighbours are torn apart.

    ================ ===========================================================================
    trustworthiness  T(K) = 1 - (2/G) sum over r_ij <= K < rho_ij of (rho_ij - K)
    continuity       C(K) = 1 - (2/G) sum over rho_ij <= K < r_ij of (r_ij - K)
    q_nx             Q(K) = #{rho_ij <= K and r_ij <= K} / (K n)
    lcmc             Q(K) - K / (n - 1)
    r_nx             R(K) = ((n - 1) Q(K) - K) / (n - 1 - K)
    auc              sum_K R(K)/K / sum_K 1/K
    ================ ===========================================================================

    rho_ij and r_ij are the ranks of point j among the neighbours of point i, in the data and in the
    embedding; G = n K (2n - 3K - 1) for K < n/2, else n (n - K)(n - K - 1), and K = 1 ... n - 2.

    Parameters
    ----------
    X : points
        The data: n vectors, or any points that `kernel` accepts.
    Z : array of shape (n, q)
        The coordinates of the points in the embedding.
    rows : int, indices or None, default=None
        The number of points, drawn at random, or the indices of the points, whose neighbours
        among all n points are evaluated.  None means all points if n <= 5000, and otherwise 2000
        random points.  Time grows with rows * n log n, memory with n.
    kernel : Kernel, str, callable or None, default=None
        The kernel in whose feature space the distances of the data are measured; None means
        Euclidean distances.
    n_neighbors : int, sequence of int or None, default=None
        The number of neighbours K for the measures of single points; None means min(10, n - 2).  A
        sequence gives one value for each evaluated point.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for drawing the rows; None means the seed 0.

    Returns
    -------
    EmbeddingQuality
        Curves of shape (n - 2,), whose entry K - 1 belongs to K neighbours; the single number
        `auc`; and the measures of each evaluated point.

    See Also
    --------
    compare : Compare several embeddings with these measures.
    mercer.plotting.embedding : Plot an embedding.

    Notes
    -----
    Ties are broken by row: of two neighbours at the same distance, the one in the earlier row
    counts as nearer, both in the data and in the embedding.  A copy of the data is thus a perfect
    embedding, even with duplicates.  If an embedding puts many points at the same coordinates,
    shuffle the rows first; otherwise the row order of the data may look like a preserved order.

    References
    ----------
    Venna and Kaski, "Neighborhood preservation in nonlinear projection methods: an experimental
    study", ICANN 2001.

    Chen and Buja, "Local multidimensional scaling for nonlinear dimension reduction, graph drawing,
    and proximity analysis", Journal of the American Statistical Association 104, 2009.

    Lee and Verleysen, "Quality assessment of dimensionality reduction: rank-based criteria",
    Neurocomputing 72, 2009.

    Lee, Peluffo-Ordóñez and Verleysen, "Multi-scale similarities in stochastic neighbour embedding:
    reducing dimensionality while preserving both local and global structure", Neurocomputing 169,
    2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA, embedding_quality
    >>> from mercer.datasets import swiss_roll
    >>> X, _ = swiss_roll(300, random_state=0)
    >>> quality = embedding_quality(X, KernelPCA(n_components=2).fit_transform(X))
    >>> quality.trustworthiness[9].round(2), quality.continuity[9].round(2), round(quality.auc, 2)
    (np.float64(0.9), np.float64(0.98), 0.6)
    >>> from mercer.kernels import Spectrum
    >>> words = ["GATTACA", "GATTACC", "TTTT", "TTTTT", "CCGG"]
    >>> embedding_quality(words, [[0.0], [0.1], [2.0], [2.1], [5.0]], kernel=Spectrum(2)).q_nx
    array([0.8, 0.5, 0.8])
    """
    n = _check_lengths(X, Z)
    indices = _check_rows(rows, n, random_state)
    neighbors = _check_neighbors(n_neighbors, n)
    data, embedding = distances(X, _check_kernel(kernel), "X"), distances(Z, None, "Z")
    return _RankComparison(data, embedding, n, neighbors).measure(indices)


# --- arguments ------------------------------------------------------------------------------------


def _check_lengths(X: Points, Z: Points) -> int:
    n, n_embedded = length(X), length(Z)
    if n != n_embedded:
        raise ValueError(
            f"X has {n} points and Z has {n_embedded}: row i of Z must be the coordinates of "
            f"point i; the usual cause is an embedding of other points, or of some of the points"
        )
    if n < 3:
        raise ValueError(
            f"X has {n} point{'s' * (n != 1)}, but at least 3 are needed: with fewer, no point "
            f"has a nearer and a farther neighbour"
        )
    return n


def _check_rows(rows: Any, n: int, random_state: RandomState) -> np.ndarray:
    if rows is None:
        rows = n if n <= _TUNING.max_exact_points else _TUNING.n_sampled_rows
    if is_count(rows):
        if rows >= n:
            return np.arange(n)
        return np.sort(seeded_generator(random_state).choice(n, size=rows, replace=False))
    indices = np.asarray(rows)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not len(indices):
        raise ValueError(
            f"rows must be a positive integer, indices of points, or None, got {rows!r}"
        )
    if indices.min() < 0 or indices.max() >= n or len(np.unique(indices)) != len(indices):
        raise ValueError(f"rows must be distinct indices from 0 to {n - 1}, got {rows!r}")
    return indices.astype(np.intp)


def _check_neighbors(n_neighbors: Any, n: int) -> Any:
    if n_neighbors is None:
        return min(_TUNING.n_neighbors, n - 2)
    neighbors = np.asarray(n_neighbors)
    are_integers = neighbors.ndim <= 1 and neighbors.dtype.kind in "iu" and neighbors.size
    if not are_integers or neighbors.min() < 1 or neighbors.max() > n - 2:
        raise ValueError(
            f"n_neighbors must be integers from 1 to {n - 2} (the number of points minus 2), "
            f"got {n_neighbors!r}"
        )
    return int(neighbors) if neighbors.ndim == 0 else neighbors


def _check_kernel(spec: Any) -> Kernel | None:
    kernel = None if spec is None else as_kernel(spec)
    if kernel is not None and expects_precomputed_rows(kernel):
        raise ValueError(
            "kernel='precomputed' is not supported here; pass the matrix as "
            "kernel=Precomputed(K), and the indices X=np.arange(len(K))"
        )
    return kernel


# --- comparison of ranks --------------------------------------------------------------------------


class _RankComparison:
    """Compares the ranks in the data with the ranks in the embedding, row by row.

    It sums the losses 1 - T, 1 - C and 1 - Q, where T is the trustworthiness, C the continuity, and
    Q the fraction of common neighbours.  They are exactly 0 for a perfect embedding.
    """

    def __init__(self, data: Distances, embedding: Distances, n: int, neighbors: Any) -> None:
        self.data, self.embedding, self.n, self.neighbors = data, embedding, n, neighbors
        K = self.K = np.arange(1.0, n - 1)
        is_small_k = n > 2 * K
        self.max_loss = np.where(is_small_k, K * (2 * n - 3 * K - 1), (n - K) * (n - K - 1)) / 2.0
        self.chance_factor = (n - 1) / (n - 1 - K)  # the ratio (1 - r_nx) / (1 - q_nx)
        self.weights = self.chance_factor / K / np.sum(1.0 / K)

    def measure(self, rows: np.ndarray) -> EmbeddingQuality:
        """Return the measures, averaged over the given rows."""
        n, m = self.n, len(rows)
        size, finished = max(1, _TUNING.entries_per_block // n), count(1)
        point_losses = np.empty((3, m, *np.shape(self.neighbors)))
        point_areas = np.empty(m)
        spread = np.zeros((2, m))  # the largest distance in each row, of data and embedding

        def sums(block: slice) -> np.ndarray:
            """Return the sums of the losses and of their squares over a block of rows."""
            total = np.zeros((2, 3, n - 2))
            distance_blocks = self.data.block(rows[block]), self.embedding.block(rows[block])
            spread[:, block] = [distances.max(axis=1) for distances in distance_blocks]
            for i, data_distances, embedding_distances in zip(
                range(block.start, block.stop), *distance_blocks, strict=True
            ):
                loss = self._losses(data_distances, embedding_distances, rows[i])
                total[0] += loss
                total[1] += loss**2
                point_losses[:, i] = loss[:, np.asarray(self.neighbors) - 1]
                point_areas[i] = loss[2] @ self.weights
            evaluated = min(m, size * next(finished))
            report_step(f"{evaluated} of {m} points", evaluated, m)
            return total

        parts = slices(m, size)
        total, squares = ordered_sum(sums, parts, _TUNING.n_groups, work=ENTRY_WORK * m * n)
        for name, largest in zip("XZ", spread, strict=True):
            if not largest.any():
                raise ValueError(
                    f"all {n} points of {name} are equal, so that no point has a nearest "
                    f"neighbour; the usual cause is constant columns"
                )
        mean = total / m
        # Factor of the standard error of a mean over m of n rows, drawn without replacement.
        error_factor = np.sqrt(max(0.0, 1.0 - m / n) / m)
        variance = np.maximum(squares - m * mean**2, 0.0) / (m - 1) if m > 1 else np.nan * mean
        error = error_factor * np.sqrt(variance) if m < n else np.zeros_like(mean)
        area_deviation = float(np.std(point_areas, ddof=1)) if m > 1 else np.nan
        return EmbeddingQuality(
            **vars(self._measures(mean, float(point_areas.mean()), slice(None))),
            standard_error=self._errors(error, error_factor * area_deviation if m < n else 0.0),
            points=self._measures(point_losses, point_areas, np.asarray(self.neighbors) - 1),
            rows=rows,
            n_neighbors=self.neighbors,
        )

    def _measures(self, loss: np.ndarray, area: Any, which: Any) -> QualityMeasures:
        """Convert the losses for the neighbourhood sizes `self.K[which]` to quality measures."""
        T, C, Q = 1.0 - loss
        chance = self.K[which] / (self.n - 1)
        R = 1.0 - loss[2] * self.chance_factor[which]
        return QualityMeasures(T, C, Q - chance, Q, R, 1.0 - area)

    def _errors(self, loss: np.ndarray, area: float) -> QualityMeasures:
        """Convert the standard errors of the losses to those of the measures."""
        T, C, Q = loss
        return QualityMeasures(T, C, Q, Q, Q * self.chance_factor, area)

    def _losses(
        self, data_distances: np.ndarray, embedding_distances: np.ndarray, own: int
    ) -> np.ndarray:
        """Return three losses of one row for all K, from squared distances.

        They are 1 minus the trustworthiness, 1 minus the continuity, and 1 minus the fraction of
        common neighbours (q_nx).  a_k is the rank in the data of the point with rank k in the
        embedding; b_k is the rank in the embedding of the point with rank k in the data.
        """
        by_data, rho = _ranked(data_distances, own)
        by_embedding, r = _ranked(embedding_distances, own)
        a, b = rho[by_embedding][1:-1], r[by_data][1:-1]
        k = np.arange(1, self.n - 1)
        trust_loss = _intrusion(a, b, k) / self.max_loss
        continuity_loss = _intrusion(b, a, k) / self.max_loss
        common = np.cumsum((a <= k) + (b < k).view("i1"), dtype=np.int64)
        return np.stack([trust_loss, continuity_loss, 1.0 - common / k])


def _intrusion(a: np.ndarray, b: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return, for all K, the sum of (rho - K) over the points with ranks r <= K < rho.

    r is the rank of a point in the embedding and rho its rank in the data.  Cumulative sums over K
    suffice: the point with rank k in the embedding enters the sum at K = k if its rank a_k in the
    data is larger than k.  The point with rank k in the data leaves the sum at K = k if it was in
    it, i.e. if its rank b_k in the embedding is smaller than k.
    """
    enter, leave = a > k, b < k
    n_inside = np.cumsum(enter.view("i1") - leave.view("i1"), dtype=np.int64)
    return np.cumsum(a * enter - k * leave) - k * n_inside


def _ranked(squared: np.ndarray, own: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the points, sorted by distance from the point `own`, and their ranks.

    Of points at equal distances, the one with the smaller index comes first.  The stable sort that
    this requires is slower, and is only used if there are ties.
    """
    squared[own] = -1.0
    order = np.argsort(squared)
    ascending = squared[order]
    if np.any(ascending[1:] == ascending[:-1]):
        order = np.argsort(squared, kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return order, ranks
