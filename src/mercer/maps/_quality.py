"""How much of a map is true: who is near whom in the data, and in the map.

rho_ij is the rank of z_j among the neighbours of x_i in the data, r_ij its rank in the map; 1 is
nearest.  Each measure compares the two over one row i, for all numbers of neighbours K at once, and
is then a mean over rows.  So some rows, whose ranks among *all* points stay exact, estimate it
without bias, with a standard error; some points instead of some rows would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._points import length
from .._runtime import ENTRY_WORK, entry_point, is_count, ordered_sum, quiet, random_numbers, slices
from ..kernels import Kernel, as_kernel, reads_all
from ._distances import Distances, distances

__all__ = ["EmbeddingQuality", "Measures", "embedding_quality"]

_ALL = 5000  # points up to which all rows are taken
_SOME = 2000  # rows that are taken beyond
_ENTRIES = 2**19  # of a block of distances
_GROUPS = 4  # of blocks; the number of threads has no say in the order of sums
_NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class Measures:
    """The measures of a map, or their standard errors, or those of each point.

    Attributes
    ----------
    trustworthiness, continuity, lcmc, q_nx, r_nx : ndarray
    auc : float or ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_quality
    >>> quality = embedding_quality(np.arange(5.0)[:, None], [[0.0], [2.0], [4.0], [1.0], [3.0]])
    >>> quality.trustworthiness[0].round(3), quality.standard_error.auc
    (np.float64(0.2), 0.0)
    >>> quality.points.q_nx.round(2)  # of each point, at three neighbours of four
    array([0.67, 0.67, 0.67, 0.67, 1.  ])
    """

    trustworthiness: np.ndarray
    continuity: np.ndarray
    lcmc: np.ndarray
    q_nx: np.ndarray
    r_nx: np.ndarray
    auc: Any


@dataclass(frozen=True, eq=False)
class EmbeddingQuality:
    """What `embedding_quality` found; entry K - 1 of a curve belongs to K neighbours.

    Attributes
    ----------
    trustworthiness : ndarray of shape (n - 2,)
        1 if all neighbours in the map are neighbours in the data.
    continuity : ndarray of shape (n - 2,)
        1 if all neighbours in the data are neighbours in the map.
    q_nx : ndarray of shape (n - 2,)
        The share of neighbours that data and map have in common.
    lcmc : ndarray of shape (n - 2,)
        `q_nx` less what chance would give.
    r_nx : ndarray of shape (n - 2,)
        `q_nx` so that chance gives 0, and a perfect map 1.
    auc : float
        The mean of `r_nx` with weights 1 / K: one number for all scales.
    standard_error : Measures
        Of all these; 0 where all rows were taken.
    points : Measures
        The same for each of the rows alone, at `n_neighbors`.
    rows : ndarray of shape (m,)
        Which points were asked for their neighbours.
    n_neighbors : int or ndarray
        The K of `points`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_quality
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) * [3.0, 1.0, 0.1]
    >>> quality = embedding_quality(X, X[:, :2])
    >>> quality.trustworthiness[4].round(3), quality.continuity[4].round(3)
    (np.float64(1.0), np.float64(1.0))
    >>> worst = quality.rows[quality.points.trustworthiness.argmin()]  # the point least to trust
    """

    trustworthiness: np.ndarray
    continuity: np.ndarray
    lcmc: np.ndarray
    q_nx: np.ndarray
    r_nx: np.ndarray
    auc: float
    standard_error: Measures = field(repr=False)
    points: Measures = field(repr=False)
    rows: np.ndarray = field(repr=False)
    n_neighbors: Any


@entry_point
@quiet
def embedding_quality(
    X: Any,
    Z: Any,
    rows: int | Sequence[int] | np.ndarray | None = None,
    *,
    kernel: Any = None,
    n_neighbors: int | Sequence[int] | np.ndarray | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> EmbeddingQuality:
    """Tell how much of a map z_i of points x_i is true, at every number K of neighbours.

    ================ ===========================================================================
    trustworthiness  T(K) = 1 - (2/G) sum over r_ij <= K < rho_ij of (rho_ij - K)
    continuity       C(K) = 1 - (2/G) sum over rho_ij <= K < r_ij of (r_ij - K)
    q_nx             Q(K) = #{rho_ij <= K and r_ij <= K} / (K n)
    lcmc             Q(K) - K / (n - 1)
    r_nx             R(K) = ((n - 1) Q(K) - K) / (n - 1 - K)
    auc              sum_K R(K)/K / sum_K 1/K
    ================ ===========================================================================

    rho_ij and r_ij are the ranks of point j among the neighbours of point i, in the data and in the
    map; G = n K (2n - 3K - 1) for K < n/2, else n (n - K)(n - K - 1), and K = 1 ... n - 2.

    Parameters
    ----------
    X : points
        The data: rows of numbers, or any points that `kernel` takes.
    Z : array of shape (n, q)
        Their places in the map.
    rows : int, indices or None
        How many points, drawn at random, or which, are asked for their neighbours among all n.
        None is all of up to 5000, and 2000 of more.  Time grows with rows n log n, memory with n.
    kernel : Kernel, str, callable or None
        Distances of the data are those of its feature space; None for the distance of vectors.
    n_neighbors : int, sequence of int or None
        K for the measures of single points; None is 10, or n - 2 if that is less.
    random_state : int, Generator, RandomState or None
        Draws the rows; None stands for 0.

    Returns
    -------
    EmbeddingQuality

    Notes
    -----
    Of neighbours that are equally far, the one in the earlier row is nearer, in data and map alike:
    a copy of the data is a perfect map, duplicates or not.  A map that heaps points at one place
    should have its rows in no order, lest that of the data be taken for its own.

    References
    ----------
    Venna & Kaski (2001), Neighborhood preservation in nonlinear projection methods; Lee & Verleysen
    (2009), Quality assessment of dimensionality reduction; Lee, Peluffo-Ordóñez & Verleysen (2015),
    Multi-scale similarities in stochastic neighbour embedding.

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
    asked = _check_rows(rows, n, random_state)
    at = _check_neighbours(n_neighbors, n)
    data, picture = distances(X, _check_kernel(kernel), "X"), distances(Z, None, "Z")
    return _Comparison(data, picture, n, at).over(asked)


# --- arguments ------------------------------------------------------------------------------------


def _check_lengths(X: Any, Z: Any) -> int:
    n, others = length(X), length(Z)
    if n != others:
        raise ValueError(
            f"X has {n} points and Z has {others}: row i of Z is the place of point i; the usual "
            f"cause is a map of other points, or one that was cut"
        )
    if n < 3:
        raise ValueError(
            f"X has {n} point{'s' * (n != 1)}, but at least 3 are needed: with fewer, nobody "
            f"has a nearer and a farther neighbour"
        )
    return n


def _check_rows(rows: Any, n: int, random_state: Any) -> np.ndarray:
    if rows is None:
        rows = n if n <= _ALL else _SOME
    if is_count(rows):
        if rows >= n:
            return np.arange(n)
        return np.sort(random_numbers(random_state).choice(n, size=rows, replace=False))
    asked = np.asarray(rows)
    if asked.ndim != 1 or asked.dtype.kind not in "iu" or not len(asked):
        raise ValueError(f"rows must be a positive count, indices of points or None, got {rows!r}")
    if asked.min() < 0 or asked.max() >= n or len(np.unique(asked)) != len(asked):
        raise ValueError(f"rows must be distinct indices from 0 to {n - 1}, got {rows!r}")
    return asked.astype(np.intp)


def _check_neighbours(n_neighbors: Any, n: int) -> Any:
    if n_neighbors is None:
        return min(_NEIGHBOURS, n - 2)
    at = np.asarray(n_neighbors)
    if at.ndim > 1 or at.dtype.kind not in "iu" or not at.size or at.min() < 1 or at.max() > n - 2:
        raise ValueError(
            f"n_neighbors must be integers from 1 to {n - 2}, two less than there are points, "
            f"got {n_neighbors!r}"
        )
    return int(at) if at.ndim == 0 else at


def _check_kernel(spec: Any) -> Kernel | None:
    kernel = None if spec is None else as_kernel(spec)
    if kernel is not None and reads_all(kernel):
        raise ValueError(
            "kernel='precomputed' takes rows of a matrix as points; keep the matrix, "
            "kernel=Precomputed(K), and give X as indices, np.arange(len(K))"
        )
    return kernel


# --- the comparison -------------------------------------------------------------------------------


class _Comparison:
    """Ranks in the data against ranks in the map, row by row.

    What is summed are losses, 1 - T, 1 - C and 1 - Q: those of a perfect map are exactly 0.
    """

    def __init__(self, data: Distances, picture: Distances, n: int, at: Any) -> None:
        self.data, self.picture, self.n, self.at = data, picture, n, at
        K = self.K = np.arange(1.0, n - 1)
        few = n > 2 * K
        self.worst = np.where(few, K * (2 * n - 3 * K - 1), (n - K) * (n - K - 1)) / 2.0
        self.beyond_chance = (n - 1) / (n - 1 - K)  # 1 - R = (1 - Q) times this
        self.weights = self.beyond_chance / K / np.sum(1.0 / K)

    def over(self, rows: np.ndarray) -> EmbeddingQuality:
        """Return the measures over some rows."""
        n, m = self.n, len(rows)
        single = np.empty((3, m, *np.shape(self.at)))
        areas = np.empty(m)
        spread = np.zeros((2, m))  # the largest distance of each row, in the data and in the map

        def sums(part: slice) -> np.ndarray:
            """Return the sums of losses and of their squares over a block of rows."""
            total = np.zeros((2, 3, n - 2))
            blocks = self.data.block(rows[part]), self.picture.block(rows[part])
            spread[:, part] = [block.max(axis=1) for block in blocks]
            for i, here, there in zip(range(part.start, part.stop), *blocks, strict=True):
                loss = self._losses(here, there, rows[i])
                total[0] += loss
                total[1] += loss**2
                single[:, i] = loss[:, np.asarray(self.at) - 1]
                areas[i] = loss[2] @ self.weights
            return total

        parts = slices(m, max(1, _ENTRIES // n))
        total, squares = ordered_sum(sums, parts, _GROUPS, work=ENTRY_WORK * m * n)
        for name, largest in zip("XZ", spread, strict=True):
            if not largest.any():
                raise ValueError(
                    f"all {n} points of {name} are equal, so that nobody is nearer than anybody "
                    f"else; the usual cause is columns that are constant"
                )
        mean = total / m
        # of a mean over m of n rows, drawn without repetition
        part = np.sqrt(max(0.0, 1.0 - m / n) / m)
        variance = np.maximum(squares - m * mean**2, 0.0) / (m - 1) if m > 1 else np.nan * mean
        error = part * np.sqrt(variance) if m < n else np.zeros_like(mean)
        deviation = float(np.std(areas, ddof=1)) if m > 1 else np.nan
        return EmbeddingQuality(
            **vars(self._measures(mean, float(areas.mean()), slice(None))),
            standard_error=self._errors(error, part * deviation if m < n else 0.0),
            points=self._measures(single, areas, np.asarray(self.at) - 1),
            rows=rows,
            n_neighbors=self.at,
        )

    def _measures(self, loss: np.ndarray, area: Any, which: Any) -> Measures:
        """Return the measures for losses at some K."""
        T, C, Q = 1.0 - loss
        chance = self.K[which] / (self.n - 1)
        return Measures(T, C, Q - chance, Q, 1.0 - loss[2] * self.beyond_chance[which], 1.0 - area)

    def _errors(self, loss: np.ndarray, area: float) -> Measures:
        """Return the standard errors of the measures, from those of losses."""
        T, C, Q = loss
        return Measures(T, C, Q, Q, Q * self.beyond_chance, area)

    def _losses(self, here: np.ndarray, there: np.ndarray, own: int) -> np.ndarray:
        """Return 1 - T, 1 - C and 1 - Q of one row for all K, from its squared distances.

        a_k is the rank in the data of whoever has rank k in the map, b_k the rank in the map of
        whoever has rank k in the data.
        """
        (by_data, rho), (by_map, r) = (_ranked(d, own) for d in (here, there))
        a, b = rho[by_map][1:-1], r[by_data][1:-1]
        k = np.arange(1, self.n - 1)
        trust, cont = _intrusion(a, b, k), _intrusion(b, a, k)
        common = np.cumsum((a <= k) + (b < k).view("i1"), dtype=np.int64)
        return np.stack([trust / self.worst, cont / self.worst, 1.0 - common / k])


def _intrusion(a: np.ndarray, b: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the sum over r <= K < rho of (rho - K), for all K.

    Whoever has rank k in the map enters it at K = k with a_k, if that is larger, and whoever has
    rank k in the data leaves it at K = k.
    """
    enter, leave = a > k, b < k
    number = np.cumsum(enter.view("i1") - leave.view("i1"), dtype=np.int64)
    return np.cumsum(a * enter - k * leave) - k * number


def _ranked(squared: np.ndarray, own: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the order of their distances, the point itself first, and their ranks."""
    squared[own] = -1.0
    order = np.argsort(squared)
    ascending = squared[order]
    if np.any(ascending[1:] == ascending[:-1]):
        order = np.argsort(squared, kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return order, ranks
