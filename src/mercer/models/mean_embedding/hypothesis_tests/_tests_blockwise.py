"""Two-sample and independence tests of chunked data (`Blocks`, Dask arrays).

Each block contributes sums of features, or of pair terms, for the observed data and for random
rearrangements.  A rearrangement affects each block separately: it permutes the sample labels of its
rows, changes the signs of its pairs, or permutes the pairing of its rows.  Under the null
hypothesis all rearrangements are equally likely, so the level of the test is exact for every number
of rows, as it is for rearrangements of the whole sample.  The random numbers of a block depend only
on the seed and on the index of the block.

The level is exact only if the kernel and the landmarks do not depend on the order of the rows.
They are therefore chosen from the rows whose contents have the smallest hash values, in a
canonical order of these rows.
"""

from __future__ import annotations

from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ...._core import one_blas_thread
from ....blocks import BlockRows, Blocks, as_blocks, is_chunked, with_targets
from ....expansion import Expansion
from ....gram import DEFAULT_CANDIDATES, NystroemMap, choose_landmarks
from ....kernels import Kernel
from .._canonical_order import canonical_order
from .._mmd import SplitSums, pair_terms
from .._sample_validation import make_kernel, resolve_kernel
from .._statistic_rounding import relative_rounding, rounding_margin
from ._permutations import pvalue, warn_if_level_unreachable

__all__ = ["are_chunked", "chunked_independence_test", "chunked_two_sample_test"]

# Maximum bytes of the cross-products, one per rearrangement, that a block returns at a time.
_MAX_CROSS_PRODUCT_BYTES = 2**26


def are_chunked(X: Any, Y: Any) -> bool:
    """Whether both samples are chunked; raises a ValueError if only one of them is."""
    if is_chunked(X) != is_chunked(Y):
        raise ValueError(
            "one sample is in blocks, but the other is not; pass both as arrays or both as blocks"
        )
    return is_chunked(X)


def pair_blocks(X: Any, Y: Any) -> Blocks:
    """Validate two chunked samples; return blocks that contain the rows of both."""
    X, Y = as_blocks(X, "X"), as_blocks(Y, "Y")
    if X.ndim != 2 or Y.ndim != 2:
        raise ValueError(f"samples in blocks must be 2-D, got the shapes {X.shape} and {Y.shape}")
    if X.sizes != Y.sizes:
        raise ValueError(
            f"samples in blocks are permuted block by block, so the blocks must have equal sizes: "
            f"X has {len(X)} rows in {len(X.sizes)} blocks, Y has {len(Y)} rows in "
            f"{len(Y.sizes)} blocks"
        )
    return with_targets(X, Y)


# ---------------------------------------------------- samples that do not depend on the row order


def content_hashes(X: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of the values of each row."""
    bits = np.ascontiguousarray(X, dtype=np.float64).view(np.uint64)
    h = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:
        h = (h ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return h


def _rows_with_smallest_hash(count: int, X: np.ndarray) -> np.ndarray:
    if len(X) <= count:
        return X
    return X[np.argsort(content_hashes(X), kind="stable")[:count]]


def _sample_block(rows: BlockRows, count: int, pool: bool) -> tuple[np.ndarray, ...]:
    X, Y = np.asarray(rows.X, dtype=float), np.asarray(rows.y, dtype=float)
    return tuple(
        _rows_with_smallest_hash(count, A) for A in ((np.concatenate([X, Y]),) if pool else (X, Y))
    )


def _merge_samples(count: int, a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> Any:
    return tuple(
        _rows_with_smallest_hash(count, np.concatenate(pair)) for pair in zip(a, b, strict=True)
    )


def _canonical_samples(blocks: Blocks, count: int, pool: bool) -> tuple[np.ndarray, ...]:
    """Return up to `count` rows in canonical order, of the pooled samples or of X and Y each."""
    sampled = blocks.reduce(_sample_block, partial(_merge_samples, count), count, pool)
    return tuple(A[canonical_order(A)] for A in sampled)


def _nystroem_map(
    kernel: Kernel, Z: np.ndarray, rank: int, rng: np.random.Generator
) -> NystroemMap:
    landmarks = choose_landmarks(kernel, Z, min(rank, len(Z)), random_state=rng)
    return NystroemMap.on(kernel, Z[landmarks])


def _block_rng(seed: int, block: int) -> np.random.Generator:
    return np.random.default_rng([seed, block])


# ---------------------------------------------------------------------- two samples


@one_blas_thread
def chunked_two_sample_test(
    X: Any, Y: Any, kernel: Any, estimator: str, method: str, count: int, rank: int, rng: Any
) -> dict[str, Any]:
    """Run the two-sample test on chunked data; return the fields of a `TwoSampleResult`."""
    blocks = pair_blocks(X, Y)
    if method not in ("lowrank", "linear"):
        raise ValueError(
            f"samples in blocks support method='lowrank' and 'linear'; {method!r} needs all pairs "
            f"of points"
        )
    if blocks.width != blocks.y.width:
        raise ValueError(
            f"X has {blocks.width} columns and Y has {blocks.y.width}; both samples need the same "
            f"columns"
        )
    n, seed = len(blocks), int(rng.integers(2**31))
    (Z,) = _canonical_samples(blocks, DEFAULT_CANDIDATES, True)
    kernel = resolve_kernel(make_kernel(kernel), Z)
    smallest = 1 / (1 + count)
    warn_if_level_unreachable(smallest, f"there are {count} permutations")
    if method == "linear":
        sums, size, pairs = blocks.reduce(_signed_sums, _add_elementwise, kernel, seed, count)
        values, margin = sums / pairs, relative_rounding(float) * size / pairs
        coefficients, points, truncated, n_features = np.zeros((0, 1)), Z[:0], 0.0, None
        estimator = "linear"
    else:
        phi = _nystroem_map(kernel, Z, rank, rng)
        totals = blocks.reduce(_block_feature_sums, _add_elementwise, phi)
        mean = (totals[0] + totals[1]) / (2 * n)
        U, d = blocks.reduce(_split_sums, _add_elementwise, phi, mean, seed, count)
        split_sums = _to_split_sums(U, d, n, kernel)
        values, margin = split_sums.statistics(estimator), split_sums.margin
        mean_difference = (totals[0] - totals[1]) / n
        coefficients, points = phi.expansion_coefficients(mean_difference[:, None]), phi.points
        truncated, n_features = max(float(totals[2]), 0.0) / max(float(totals[3]), 1e-300), len(phi)
    return {
        "statistic": float(values[0]),
        "pvalue": pvalue(values[0], values[1:], margin),
        "method": method,
        "estimator": estimator,
        "n_permutations": count,
        "smallest_pvalue": smallest,
        "truncation": truncated,
        "rank": n_features,
        "kernel": kernel,
        "null": values[1:],
        "witness": Expansion(kernel, points, coefficients)
        if n_features
        else _zero_function(kernel, Z),
    }


def _zero_function(kernel: Kernel, Z: np.ndarray) -> Expansion:
    """Return the zero function as the witness for "linear", which computes no mean embeddings."""
    return Expansion(kernel, Z[:1], np.zeros((1, 1)))


def _add_elementwise(a: Any, b: Any) -> Any:
    return tuple(map(add, a, b))


def _signed_sums(
    rows: BlockRows, kernel: Kernel, seed: int, count: int
) -> tuple[np.ndarray, float, int]:
    """Return the sums of the pair terms of a block, their absolute sum, and their number.

    The first sum is the observed one; the other `count` sums have random signs.
    """
    terms = pair_terms(kernel, np.asarray(rows.X, float), np.asarray(rows.y, float))
    sums, rng = np.empty(1 + count), _block_rng(seed, rows.place)
    sums[0] = terms.sum()
    for b in range(count):
        sums[1 + b] = sums[0] - 2.0 * (rng.random(len(terms)) < 0.5) @ terms
    return sums, float(np.abs(terms).sum()), len(terms)


def _block_feature_sums(rows: BlockRows, phi: NystroemMap) -> tuple[Any, ...]:
    """Return sum phi(x), sum phi(y), sum of k(x, x) - |phi(x)|^2, and sum of k(x, x) of a block.

    The last two sums run over the rows of both samples.
    """
    sums, truncated, trace = [], 0.0, 0.0
    for A in (rows.X, rows.y):
        F, diagonal = phi.features(A), phi.kernel.diag(np.asarray(A, float))
        sums.append(F.sum(axis=0))
        truncated += float(diagonal.sum() - np.einsum("ij,ij->", F, F))
        trace += float(diagonal.sum())
    return (*sums, truncated, trace)


def _split_sums(
    rows: BlockRows, phi: NystroemMap, mean: np.ndarray, seed: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return F^T Z and d . Z for a block, with centred features F and their squared norms d.

    The columns of Z are the 0/1 indicators of the observed split (first) and of `count` random
    splits, and a column of ones (last).
    """
    n, rng = len(rows.X), _block_rng(seed, rows.place)
    F = np.concatenate([phi.features(rows.X), phi.features(rows.y)]) - mean
    Z = np.zeros((2 * n, count + 2))
    Z[:n, 0], Z[:, -1] = 1.0, 1.0
    for b in range(count):
        Z[rng.permutation(2 * n)[:n], 1 + b] = 1.0
    return F.T @ Z, np.einsum("ij,ij->i", F, F) @ Z


def _to_split_sums(U: np.ndarray, d: np.ndarray, n: int, kernel: Kernel) -> SplitSums:
    sxx, sx = np.einsum("ij,ij->j", U, U), U[:, -1] @ U
    sxx, total = sxx[:-1], sxx[-1]
    sxy = sx[:-1] - sxx
    syy = total - 2.0 * sxy - sxx
    dx, dy = d[:-1], d[-1] - d[:-1]
    size = (np.abs(sxx) + np.abs(syy) + np.abs(sxy) + dx + dy) / n**2
    margin = float(rounding_margin(float, size.max(), 2.0 * d[-1] / n**2))
    return SplitSums(sxx, sxy, syy, dx, dy, n, n, kernel, margin)


# ---------------------------------------------------------------------- independence


class _FeaturePair(NamedTuple):
    """The feature maps of X and Y, and the means of the features."""

    phi: NystroemMap
    psi: NystroemMap
    mean: np.ndarray
    mean_y: np.ndarray


@one_blas_thread
def chunked_independence_test(
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
    """Run the independence test on chunked data; return the fields of an `IndependenceResult`."""
    blocks = pair_blocks(X, Y)
    if method != "lowrank":
        raise ValueError(
            f"samples in blocks support method='lowrank'; {method!r} needs all pairs of points"
        )
    if estimator != "biased":
        raise ValueError(f"samples in blocks support estimator='biased', got {estimator!r}")
    n, seed = len(blocks), int(rng.integers(2**31))
    samples = _canonical_samples(blocks, DEFAULT_CANDIDATES, False)
    specs = (kernel, kernel if kernel_y is None else kernel_y)
    k, k_y = (resolve_kernel(make_kernel(spec), Z) for spec, Z in zip(specs, samples, strict=True))
    phi, psi = (_nystroem_map(a, Z, rank, rng) for a, Z in zip((k, k_y), samples, strict=True))
    totals = blocks.reduce(_paired_feature_sums, _add_elementwise, phi, psi)
    pair = _FeaturePair(phi, psi, totals[0] / n, totals[1] / n)
    per_pass = max(1, _MAX_CROSS_PRODUCT_BYTES // (8 * len(phi) * len(psi)))
    values = []
    for start in range(0, 1 + count, per_pass):
        options = (pair, seed, start, min(per_pass, 1 + count - start))
        C = blocks.reduce(_cross_products, np.add, *options)
        values.append(np.einsum("bij,bij->b", C, C))
    statistics = np.concatenate(values) / n**2
    size = float(totals[4] * totals[5]) / n**2
    margin = relative_rounding(float) * size
    smallest = 1 / (1 + count)
    warn_if_level_unreachable(smallest, f"there are {count} permutations")
    return {
        "statistic": max(float(statistics[0]), 0.0),
        "pvalue": pvalue(statistics[0], statistics[1:], margin),
        "method": "lowrank",
        "estimator": estimator,
        "n_permutations": count,
        "smallest_pvalue": smallest,
        "truncation": tuple(
            max(float(totals[2 + i]), 0.0) / max(float(totals[4 + i]), 1e-300) for i in range(2)
        ),
        "rank": (len(phi), len(psi)),
        "kernel": k,
        "kernel_y": k_y,
        "null": statistics[1:],
    }


def _paired_feature_sums(rows: BlockRows, phi: NystroemMap, psi: NystroemMap) -> tuple[Any, ...]:
    """Return sums over a block: features of X and Y, truncated traces, and traces of K and L.

    A truncated trace is the sum of k(x, x) - |phi(x)|^2, the variance that the features miss.
    """
    F, G = phi.features(rows.X), psi.features(rows.y)
    traces = [
        float(map_.kernel.diag(np.asarray(A, float)).sum())
        for map_, A in ((phi, rows.X), (psi, rows.y))
    ]
    norms = [float(np.einsum("ij,ij->", A, A)) for A in (F, G)]
    truncated = [trace - norm for trace, norm in zip(traces, norms, strict=True)]
    return (F.sum(axis=0), G.sum(axis=0), *truncated, *traces)


def _cross_products(
    rows: BlockRows, pair: _FeaturePair, seed: int, start: int, count: int
) -> np.ndarray:
    """Return F^T G_p of a block for the pairings p = start, ..., start + count - 1.

    Pairing 0 is the observed one; the others are random permutations of the rows of G.
    """
    F = pair.phi.features(rows.X) - pair.mean
    G = pair.psi.features(rows.y) - pair.mean_y
    out = np.empty((count, F.shape[1], G.shape[1]))
    for b in range(count):
        rng = np.random.default_rng([seed, rows.place, start + b])
        order = rng.permutation(len(G)) if start + b else slice(None)
        out[b] = F.T @ G[order]
    return out
