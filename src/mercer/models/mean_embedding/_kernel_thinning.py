"""Kernel thinning (Dwivedi and Mackey): halve a sample repeatedly, then improve the best half.

Halving assigns one point of each pair (x, x') to the first half and the other point to the second.
Let psi be the difference of the sums of k over the two halves so far, b^2 = |k(x, .) - k(x', .)|^2
and alpha = psi(x) - psi(x').  The two possible assignments have the probabilities (1 +- alpha / a)
/ 2, so that psi is a random walk in the RKHS with a drift towards 0.  The scale a of the walk is
updated after each pair, for a failure probability delta:

    a = max(b sigma sqrt(2 log(2 / delta)), b^2),   sigma^2 += b^2 (1 + (b^2 - 2 a) sigma^2 / a^2)_+

The mean embeddings of the two halves then differ by about log n / n; those of random halves differ
by about 1 / sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import entry_point, jit, one_blas_thread, run_in_threads, seeded_generator, slices
from ...gram import TiledGram
from ...kernels import Prepared
from ._weighted_coreset import MeanEmbedding, Summary, check_summary_options

__all__ = ["thin"]


@dataclass(frozen=True)
class _ThinningTuning:
    """Block sizes, and parameters of the halving stage of kernel thinning."""

    # Number of points whose pairs are assigned from one tile of K, before psi, the difference of
    # the kernel sums of both halves, is updated at the other points.
    points_per_tile: int = 256
    # Number of rows of K in one parallel task that updates these differences psi.
    rows_per_task: int = 1024
    # Number of candidate parts that are retained after a halving; more candidates require more
    # evaluations of K.
    max_candidates: int = 64
    # Bound on the probability that, for some pair in any halving, the assignment probability
    # (1 +- alpha / a) / 2 of the module docstring is outside [0, 1].
    delta: float = 0.5


_TUNING = _ThinningTuning()


@entry_point
@one_blas_thread
def thin(
    X: Any,
    n_points: int,
    kernel: Any = None,
    *,
    weights: str = "equal",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    max_memory: int | str | None = None,
) -> Summary:
    """Summarise X by m = `n_points` of its points through kernel thinning.

    Kernel thinning has two stages.  Split: a random subset of m 2^g points, for the largest
    possible g, is halved g times, which gives 2^g candidates of m points each; if there are more
    than 64 parts, only the 64 closest to X are halved further.  Swap: of these candidates and a set
    of m evenly spaced points, the one with the smallest MMD^2 to X is selected.  Each of its points
    in turn is exchanged for the best point of X.  No exchange increases the MMD, so the result is
    never worse than evenly spaced points.

    The computation takes about two passes over the kernel matrix K, plus 2 m of its columns.  K is
    evaluated in blocks and never stored.

    Parameters
    ----------
    X : points
        The sample.
    n_points : int
        The number m of points to select, without repetition; at most the number of points in X.
    kernel : Kernel, str, callable or None, default=None
        The kernel; None means the RBF with the median bandwidth.  See `mmd`.
    weights : {"equal", "optimal"}, default="equal"
        "equal" uses 1/m for each point.  "optimal" minimises MMD^2 over all weights of sum 1, which
        may be negative.
    random_state : int, Generator, RandomState or None, default=None
        The random seed for the subset and the assignments; None means the seed 0.
    max_memory : int, str or None, default=None
        The memory budget; see `mercer.gram.gram`.

    Returns
    -------
    Summary
        The points, their weights, and their MMD^2 to X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd, thin
    >>> X = np.random.default_rng(0).normal(size=(512, 2))
    >>> summary = thin(X, 32)
    >>> bool(summary.mmd < 0.1 * mmd(X[:32], X, summary.kernel, "biased"))
    True
    """
    mean = MeanEmbedding.of(X, kernel, max_memory)
    n = len(mean)
    m = check_summary_options(n_points, n, weights, max_memory)
    rng = seeded_generator(random_state)

    def distance(part: np.ndarray) -> float:
        return mean.squared_distance(part, np.full(len(part), 1.0 / len(part)))

    halvings = int(np.log2(n // m))
    parts = [rng.permutation(n)[: m * 2**halvings]]
    for _ in range(halvings):
        parts = [
            half for part in parts for half in _halve(mean.K, part, rng, _TUNING.delta / halvings)
        ]
        if len(parts) > _TUNING.max_candidates:
            parts = sorted(parts, key=distance)[: _TUNING.max_candidates]
    parts.append(np.arange(m) * n // m)
    return mean.summary(_swap(mean, min(parts, key=distance)), weights)


def _halve(
    K: TiledGram, index: np.ndarray, rng: np.random.Generator, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Split an even number of points, given by their indices, into two halves with close means."""
    n, P = len(index), K._P[index]  # P is copied once, so that tiles are slices of it
    psi, sides, uniforms = np.zeros(n), np.empty(n), rng.random(n // 2)
    sigma, width = 0.0, np.sqrt(2.0 * np.log(2.0 * n / delta))

    def tile(rows: slice, Q: Prepared) -> np.ndarray:
        return K.kernel.tile(Pi := P[rows], Q, np.empty((len(Pi), len(Q)), dtype=K.dtype))

    for part in slices(n, _TUNING.points_per_tile):
        Q, side, pairs = P[part], sides[part], uniforms[part.start // 2 : part.stop // 2]
        sigma = _assign_pairs(tile(part, Q), psi[part], pairs, sigma, width, side)

        def update_psi(first: int, Q: Any = Q, side: Any = side) -> None:
            rows = slice(first, min(first + _TUNING.rows_per_task, n))
            psi[rows] += tile(rows, Q) @ side

        work = K.kernel._evaluation_work((n - part.stop) * len(side))
        run_in_threads(update_psi, range(part.stop, n, _TUNING.rows_per_task), K.n_threads, work)
    return index[sides < 0], index[sides > 0]


@jit()
def _assign_pairs(
    T: np.ndarray,
    psi: np.ndarray,
    uniforms: np.ndarray,
    sigma: float,
    width: float,
    sides: np.ndarray,
) -> float:
    """Assign one point of each pair to side -1 and one to side +1; return the updated sigma.

    T is the tile of K for these points.  psi is updated in place for the pairs that follow.
    """
    for i in range(len(uniforms)):
        x, y = 2 * i, 2 * i + 1
        b2 = max(T[x, x] + T[y, y] - 2.0 * T[x, y], 0.0)
        a = max(np.sqrt(b2) * sigma * width, b2)
        if a > 0.0 and uniforms[i] < 0.5 * (1.0 - (psi[x] - psi[y]) / a):
            x, y = y, x
        if a > 0.0:
            growth = max(1.0 + (b2 - 2.0 * a) * (sigma / a) ** 2, 0.0)
            sigma = np.sqrt(sigma**2 + b2 * growth)
        sides[x], sides[y] = -1.0, 1.0
        for j in range(2 * i + 2, len(psi)):
            psi[j] += T[j, y] - T[j, x]
    return sigma


def _swap(mean: MeanEmbedding, selected: np.ndarray) -> np.ndarray:
    """Exchange each selected point in turn for the point of X that minimises the MMD."""
    selected, m = selected.copy(), len(selected)
    score = mean.weighted_columns(selected, np.ones(m)) + 0.5 * mean.diagonal - m * mean.values
    available = np.ones(len(mean), dtype=bool)
    available[selected] = False
    for i, old in enumerate(selected):
        available[old] = True
        score -= (column := mean.column(old))
        new = int(np.argmin(np.where(available, score, np.inf)))
        if not score[new] < score[old]:
            new = old
        available[new] = False
        score += column if new == old else mean.column(new)
        selected[i] = new
    return selected
