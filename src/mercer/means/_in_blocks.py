"""Tests of samples in blocks: sums of features, or of pairs, over rows and random rearrangements.

A rearrangement stays within a block: labels "x" or "y" of its rows, signs of its pairs, or who is
paired with whom.  If nothing differs, these are as likely as what was observed, all blocks
together, so that the level is exact for every number of rows, as it is for all rearrangements.
What is random in a block follows from the seed and its number.

The kernel, and landmarks, must not know which row came first: they are chosen from the rows with
the smallest hash of their contents, in an order of these.
"""

from __future__ import annotations

from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np

from .._runtime import one_blas_thread
from ..blocks import Blocks, Rows, as_blocks, beside, in_blocks
from ..expansion import Expansion
from ..gram import CANDIDATES, NystroemMap, choose_landmarks
from ..kernels import Kernel
from ._mmd import Splits, pair_terms
from ._order import canonical_order
from ._permutation import pvalue, warn_of_few
from ._rounding import margin_of, rounding
from ._samples import make_kernel, resolved

__all__ = ["either_in_blocks", "independent_in_blocks", "same_in_blocks"]

_MOST = 2**26  # bytes of sums over rearrangements that a block returns


def either_in_blocks(X: Any, Y: Any) -> bool:
    """Tell whether samples are in blocks; one alone is refused."""
    if in_blocks(X) != in_blocks(Y):
        raise ValueError("one sample is in blocks, and the other is not; give both in the same way")
    return in_blocks(X)


def paired_blocks(X: Any, Y: Any) -> Blocks:
    """Return the rows of both samples side by side."""
    X, Y = as_blocks(X, "X"), as_blocks(Y, "Y")
    if X.ndim != 2 or Y.ndim != 2:
        raise ValueError(f"samples in blocks have the shapes {X.shape} and {Y.shape}, not rows")
    if X.sizes != Y.sizes:
        raise ValueError(
            f"samples in blocks are rearranged block by block, and need blocks of the same sizes: "
            f"X has {len(X)} rows in {len(X.sizes)}, Y {len(Y)} in {len(Y.sizes)}"
        )
    return beside(X, Y)


# ---------------------------------------------------------------------- rows in no order


def content_hashes(X: np.ndarray) -> np.ndarray:
    """Return 64 scrambled bits for each row, of its numbers alone."""
    bits = np.ascontiguousarray(X, dtype=np.float64).view(np.uint64)
    h = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:
        h = (h ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return h


def _smallest(count: int, X: np.ndarray) -> np.ndarray:
    if len(X) <= count:
        return X
    return X[np.argsort(content_hashes(X), kind="stable")[:count]]


def _some_rows(rows: Rows, count: int, both: bool) -> tuple[np.ndarray, ...]:
    X, Y = np.asarray(rows.X, dtype=float), np.asarray(rows.y, dtype=float)
    return tuple(_smallest(count, A) for A in ((np.concatenate([X, Y]),) if both else (X, Y)))


def _merged_rows(count: int, a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> Any:
    return tuple(_smallest(count, np.concatenate(pair)) for pair in zip(a, b, strict=True))


def _samples(blocks: Blocks, count: int, both: bool) -> tuple[np.ndarray, ...]:
    """Return rows of both samples in one, or of each, in an order of their contents."""
    found = blocks.reduce(_some_rows, partial(_merged_rows, count), count, both)
    return tuple(A[canonical_order(A)] for A in found)


def _map(kernel: Kernel, Z: np.ndarray, rank: int, rng: np.random.Generator) -> NystroemMap:
    chosen = choose_landmarks(kernel, Z, min(rank, len(Z)), random_state=rng)
    return NystroemMap.on(kernel, Z[chosen])


def _rng(seed: int, place: int) -> np.random.Generator:
    return np.random.default_rng([seed, place])


# ---------------------------------------------------------------------- two samples


@one_blas_thread
def same_in_blocks(
    X: Any, Y: Any, kernel: Any, estimator: str, method: str, count: int, rank: int, rng: Any
) -> dict[str, Any]:
    """Return the fields of a `TwoSampleResult`."""
    blocks = paired_blocks(X, Y)
    if method not in ("lowrank", "linear"):
        raise ValueError(
            f"samples in blocks have method='lowrank' and 'linear'; {method!r} needs all pairs"
        )
    if blocks.width != blocks.y.width:
        raise ValueError(
            f"X has {blocks.width} columns and Y {blocks.y.width}; two samples have the same"
        )
    n, seed = len(blocks), int(rng.integers(2**31))
    (Z,) = _samples(blocks, CANDIDATES, True)
    kernel = resolved(make_kernel(kernel), Z)
    smallest = 1 / (1 + count)
    warn_of_few(smallest, f"there are {count} permutations")
    if method == "linear":
        sums, size, pairs = blocks.reduce(_signed, _each_added, kernel, seed, count)
        values, margin = sums / pairs, rounding(float) * size / pairs
        coefficients, points, left, used = np.zeros((0, 1)), Z[:0], 0.0, None
        estimator = "linear"
    else:
        phi = _map(kernel, Z, rank, rng)
        first = blocks.reduce(_feature_means, _each_added, phi)
        mean = (first[0] + first[1]) / (2 * n)
        U, d = blocks.reduce(_split, _each_added, phi, mean, seed, count)
        splits = _splits(U, d, n, kernel)
        values, margin = splits.statistics(estimator), splits.margin
        apart = (first[0] - first[1]) / n
        coefficients, points = phi.expansion_coefficients(apart[:, None]), phi.points
        left, used = max(float(first[2]), 0.0) / max(float(first[3]), 1e-300), len(phi)
    return {
        "statistic": float(values[0]),
        "pvalue": pvalue(values[0], values[1:], margin),
        "method": method,
        "estimator": estimator,
        "n_permutations": count,
        "smallest_pvalue": smallest,
        "truncation": left,
        "rank": used,
        "kernel": kernel,
        "null": values[1:],
        "witness": Expansion(kernel, points, coefficients) if used else _no_witness(kernel, Z),
    }


def _no_witness(kernel: Kernel, Z: np.ndarray) -> Expansion:
    """Return 0: pairs have no mean that could be evaluated."""
    return Expansion(kernel, Z[:1], np.zeros((1, 1)))


def _each_added(a: Any, b: Any) -> Any:
    return tuple(map(add, a, b))


def _signed(rows: Rows, kernel: Kernel, seed: int, count: int) -> tuple[np.ndarray, float, int]:
    """Return the sum of the terms of pairs, as they are and with random signs; and their size."""
    terms = pair_terms(kernel, np.asarray(rows.X, float), np.asarray(rows.y, float))
    sums, rng = np.empty(1 + count), _rng(seed, rows.place)
    sums[0] = terms.sum()
    for b in range(count):
        sums[1 + b] = sums[0] - 2.0 * (rng.random(len(terms)) < 0.5) @ terms
    return sums, float(np.abs(terms).sum()), len(terms)


def _feature_means(rows: Rows, phi: NystroemMap) -> tuple[Any, ...]:
    """Return the sums of phi over both samples, of what phi leaves of k(x, x), and of that."""
    sums, left, trace = [], 0.0, 0.0
    for A in (rows.X, rows.y):
        F, diagonal = phi.features(A), phi.kernel.diag(np.asarray(A, float))
        sums.append(F.sum(axis=0))
        left += float(diagonal.sum() - np.einsum("ij,ij->", F, F))
        trace += float(diagonal.sum())
    return (*sums, left, trace)


def _split(
    rows: Rows, phi: NystroemMap, mean: np.ndarray, seed: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return F^T z and d . z, for the split into samples and random ones of this block's rows."""
    n, rng = len(rows.X), _rng(seed, rows.place)
    F = np.concatenate([phi.features(rows.X), phi.features(rows.y)]) - mean
    Z = np.zeros((2 * n, count + 2))
    Z[:n, 0], Z[:, -1] = 1.0, 1.0
    for b in range(count):
        Z[rng.permutation(2 * n)[:n], 1 + b] = 1.0
    return F.T @ Z, np.einsum("ij,ij->i", F, F) @ Z


def _splits(U: np.ndarray, d: np.ndarray, n: int, kernel: Kernel) -> Splits:
    sxx, sx = np.einsum("ij,ij->j", U, U), U[:, -1] @ U
    sxx, total = sxx[:-1], sxx[-1]
    sxy = sx[:-1] - sxx
    syy = total - 2.0 * sxy - sxx
    dx, dy = d[:-1], d[-1] - d[:-1]
    size = (np.abs(sxx) + np.abs(syy) + np.abs(sxy) + dx + dy) / n**2
    margin = float(margin_of(float, size.max(), 2.0 * d[-1] / n**2))
    return Splits(sxx, sxy, syy, dx, dy, n, n, kernel, margin)


# ---------------------------------------------------------------------- independence


class _Pair(NamedTuple):
    """Features of both samples, and their means."""

    phi: NystroemMap
    psi: NystroemMap
    mean: np.ndarray
    mean_y: np.ndarray


@one_blas_thread
def independent_in_blocks(
    X: Any,
    Y: Any,
    kernel: Any,
    kernel_y: Any,
    estimator: str,
    method: str,
    count: int,
    rank: int,
    rng: Any,
) -> dict[str, Any]:
    """Return the fields of an `IndependenceResult`."""
    blocks = paired_blocks(X, Y)
    if method != "lowrank":
        raise ValueError(f"samples in blocks have method='lowrank'; {method!r} needs all pairs")
    if estimator != "biased":
        raise ValueError(f"samples in blocks have estimator='biased', not {estimator!r}")
    n, seed = len(blocks), int(rng.integers(2**31))
    samples = _samples(blocks, CANDIDATES, False)
    specs = (kernel, kernel if kernel_y is None else kernel_y)
    k, k_y = (resolved(make_kernel(spec), Z) for spec, Z in zip(specs, samples, strict=True))
    phi, psi = (_map(a, Z, rank, rng) for a, Z in zip((k, k_y), samples, strict=True))
    first = blocks.reduce(_both_means, _each_added, phi, psi)
    pair = _Pair(phi, psi, first[0] / n, first[1] / n)
    step = max(1, _MOST // (8 * len(phi) * len(psi)))
    values = []
    for start in range(0, 1 + count, step):
        shared = (pair, seed, start, min(step, 1 + count - start))
        C = blocks.reduce(_crossed, np.add, *shared)
        values.append(np.einsum("bij,bij->b", C, C))
    found = np.concatenate(values) / n**2
    size = float(first[4] * first[5]) / n**2
    margin = rounding(float) * size
    smallest = 1 / (1 + count)
    warn_of_few(smallest, f"there are {count} permutations")
    return {
        "statistic": max(float(found[0]), 0.0),
        "pvalue": pvalue(found[0], found[1:], margin),
        "method": "lowrank",
        "estimator": estimator,
        "n_permutations": count,
        "smallest_pvalue": smallest,
        "truncation": tuple(
            max(float(first[2 + i]), 0.0) / max(float(first[4 + i]), 1e-300) for i in range(2)
        ),
        "rank": (len(phi), len(psi)),
        "kernel": k,
        "kernel_y": k_y,
        "null": found[1:],
    }


def _both_means(rows: Rows, phi: NystroemMap, psi: NystroemMap) -> tuple[Any, ...]:
    """Return the sums of both features, of what they leave of the diagonals, and of these."""
    F, G = phi.features(rows.X), psi.features(rows.y)
    traces = [
        float(map_.kernel.diag(np.asarray(A, float)).sum())
        for map_, A in ((phi, rows.X), (psi, rows.y))
    ]
    seen = [float(np.einsum("ij,ij->", A, A)) for A in (F, G)]
    left = [trace - part for trace, part in zip(traces, seen, strict=True)]
    return (F.sum(axis=0), G.sum(axis=0), *left, *traces)


def _crossed(rows: Rows, pair: _Pair, seed: int, start: int, count: int) -> np.ndarray:
    """Return F^T G_p of a block for some pairings p, of which number 0 is the one observed."""
    F = pair.phi.features(rows.X) - pair.mean
    G = pair.psi.features(rows.y) - pair.mean_y
    out = np.empty((count, F.shape[1], G.shape[1]))
    for b in range(count):
        rng = np.random.default_rng([seed, rows.place, start + b])
        order = rng.permutation(len(G)) if start + b else slice(None)
        out[b] = F.T @ G[order]
    return out
