"""Kernel thinning (Dwivedi and Mackey): halve a sample again and again, then refine the best part.

Halving goes through pairs (x, x') and gives one to each half.  With psi the difference of the sums
of k over the two halves so far, and b^2 = |k(x, .) - k(x', .)|^2, the pair goes in as it is or
swapped by a coin of the chances (1 +- alpha / a) / 2, alpha = psi(x) - psi(x'): a random walk in
the RKHS that is always pulled back to 0.  Its scale grows with the walk,

    a = max(b sigma sqrt(2 log(2 / delta)), b^2),   sigma^2 += b^2 (1 + (b^2 - 2 a) sigma^2 / a^2)_+

and keeps the halves about as close to each other as log n / n, where random halves are at
1 / sqrt(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import entry_point, jit, one_blas_thread, random_numbers, run, slices
from ..gram import TiledGram
from ..kernels import Prepared
from ._summary import Mean, Summary, check_summary

__all__ = ["thin"]

_BLOCK = 256  # points whose pairs are dealt out from one tile
_STRIP = 1024  # rows of K that one task works on
_PARTS = 64  # candidates that are kept after a halving
_DELTA = 0.5  # bounds the chance that some alpha exceeds its a in a halving


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
    """Summarise X by m of its points through kernel thinning: split, then swap.

    Split: the largest number m 2^g of points that there are is halved g times, which leaves 2^g
    candidates of m points; of more than 64 parts, the 64 closest to X are halved on.  Swap: of the
    candidates and of m evenly spaced points, the one with the least
    MMD^2 to all of X is taken, and each of its points in turn is exchanged for the best point of
    X.  No step makes the MMD worse, so that the result is never behind evenly spaced points.

    It takes about two passes over K, in blocks, and 2 m columns of it; K is never held.

    Parameters
    ----------
    X : points
    n_points : int
        m, at most the number of points: none is taken twice.
    kernel : Kernel, str, callable or None
        None is the RBF with the median bandwidth; see `mmd`.
    weights : {"equal", "optimal"}
        1/m each, or those of sum 1 with the least MMD^2, which may be negative.
    random_state : int, Generator, RandomState or None
        None stands for 0.
    max_memory : int, str or None
        The budget; see `mercer.gram.gram`.

    Returns
    -------
    Summary
        The points, their weights, and how far they are from all of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd, thin
    >>> X = np.random.default_rng(0).normal(size=(512, 2))
    >>> few = thin(X, 32)
    >>> bool(few.mmd < 0.1 * mmd(X[:32], X, few.kernel, "biased"))
    True
    """
    mean = Mean.of(X, kernel, max_memory)
    n = len(mean)
    m = check_summary(n_points, n, weights, max_memory)
    rng = random_numbers(random_state)

    def distance(part: np.ndarray) -> float:
        return mean.squared_distance(part, np.full(len(part), 1.0 / len(part)))

    halvings = int(np.log2(n // m))
    parts = [rng.permutation(n)[: m * 2**halvings]]
    for _ in range(halvings):
        parts = [half for part in parts for half in _halve(mean.K, part, rng, _DELTA / halvings)]
        if len(parts) > _PARTS:
            parts = sorted(parts, key=distance)[:_PARTS]
    parts.append(np.arange(m) * n // m)
    return mean.summary(_swap(mean, min(parts, key=distance)), weights)


def _halve(
    K: TiledGram, index: np.ndarray, rng: np.random.Generator, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Split the points `index`, an even number of them, into two halves."""
    n, P = len(index), K._P[index]  # gathered once, so that tiles are made of slices
    psi, sides, coins = np.zeros(n), np.empty(n), rng.random(n // 2)
    sigma, width = 0.0, np.sqrt(2.0 * np.log(2.0 * n / delta))

    def tile(rows: slice, Q: Prepared) -> np.ndarray:
        return K.kernel.tile(Pi := P[rows], Q, np.empty((len(Pi), len(Q)), dtype=K.dtype))

    for part in slices(n, _BLOCK):
        Q, side, pairs = P[part], sides[part], coins[part.start // 2 : part.stop // 2]
        sigma = _walk(tile(part, Q), psi[part], pairs, sigma, width, side)

        def strip(first: int, Q: Any = Q, side: Any = side) -> None:
            rows = slice(first, min(first + _STRIP, n))
            psi[rows] += tile(rows, Q) @ side

        work = K.kernel._evaluation_work((n - part.stop) * len(side))
        run(strip, range(part.stop, n, _STRIP), K.n_threads, work)
    return index[sides < 0], index[sides > 0]


@jit()
def _walk(
    T: np.ndarray, psi: np.ndarray, coins: np.ndarray, sigma: float, width: float, sides: np.ndarray
) -> float:
    """Give one point of each pair to the side -1 and one to +1; return the new sigma."""
    for i in range(len(coins)):
        x, y = 2 * i, 2 * i + 1
        b2 = max(T[x, x] + T[y, y] - 2.0 * T[x, y], 0.0)
        a = max(np.sqrt(b2) * sigma * width, b2)
        if a > 0.0 and coins[i] < 0.5 * (1.0 - (psi[x] - psi[y]) / a):
            x, y = y, x
        if a > 0.0:
            growth = max(1.0 + (b2 - 2.0 * a) * (sigma / a) ** 2, 0.0)
            sigma = np.sqrt(sigma**2 + b2 * growth)
        sides[x], sides[y] = -1.0, 1.0
        for j in range(2 * i + 2, len(psi)):
            psi[j] += T[j, y] - T[j, x]
    return sigma


def _swap(mean: Mean, chosen: np.ndarray) -> np.ndarray:
    """Exchange each point in turn for the one of X with which the MMD is least."""
    chosen, m = chosen.copy(), len(chosen)
    score = mean.columns(chosen, np.ones(m)) + 0.5 * mean.diagonal - m * mean.values
    free = np.ones(len(mean), dtype=bool)
    free[chosen] = False
    for i, old in enumerate(chosen):
        free[old] = True
        score -= (column := mean.column(old))
        new = int(np.argmin(np.where(free, score, np.inf)))
        if not score[new] < score[old]:
            new = old
        free[new] = False
        score += column if new == old else mean.column(new)
        chosen[i] = new
    return chosen
