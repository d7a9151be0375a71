"""Random test points for the search for a counterexample, for each kind of points.

If the points are objects, such as strings or sets, all small ones are tested first: invalid kernels
of edit distances or overlaps usually have counterexamples with words of three letters or sets of
three elements.  The module also contains functions for small random changes of such objects, and
lattices at which the spectrum of a stationary function is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._core import Points, is_table, length, take
from .._base import Kernel
from .._pairwise_kernels import get_point
from .._precomputed import Precomputed
from .._preimage_formulas import preimage_neighbours
from ..graphs._graph_collection import Graphs

PointBatches = Iterator[Points]
RNG = np.random.Generator

# Scales of random vectors, relative to the standard deviations of the user's points, or to 1.
_SCALES = (1.0, 0.3, 3.0, 0.1, 10.0, 0.03, 30.0, 100.0)
_SAMPLE_SIZE = 24  # number of points of a sampled Gram matrix
# Maximum number of rows of a precomputed matrix that are examined at once.
_MAX_MATRIX_POINTS = 2000
# Kinds of points with which a user-supplied function is tested, in this order.
_FUNCTION_KINDS = ("strings", "sets", "vectors", "rankings")


def point_kinds(kernel: Kernel, X: Points) -> tuple[str, ...]:
    """Return the kinds of points to sample, the most likely kind first.

    ("other",) means that no new points can be generated, so that only those of X are used.
    """
    domain = kernel.domain.kind
    if X is None or (domain and domain not in ("sets", "bags")):
        return (domain,) if domain else _FUNCTION_KINDS
    if _is_rows(X):
        values = np.unique(X.data if sp.issparse(X) else np.asarray(X))
        if np.isin(values, (0, 1)).all():
            return ("rows of 0 and 1",)
        # If X has no negative entries, the kernel may be defined only for non-negative points.
        return ("nonnegative",) if domain == "bags" or values.min() >= 0 else ("vectors",)
    first = get_point(X, 0) if length(X) else None
    if isinstance(first, str):
        return ("texts",) if " " in first else ("strings",)
    return ("sets",) if isinstance(first, (set, frozenset)) else ("other",)


def _is_rows(X: Points) -> bool:
    """Return True if X is a sparse matrix or a 2-D array of numbers."""
    if sp.issparse(X):
        return True
    if is_table(X) or not hasattr(X, "shape"):
        return False
    return X.ndim == 2 and X.dtype.kind in "biuf"


def sample_points(
    kind: str, kernel: Kernel, X: Points, columns: tuple[int, ...], rng: RNG
) -> PointBatches:
    """Yield an infinite sequence of batches of points: first points of X, then random points.

    The sequence ends only if no new points of this kind can be generated.
    """
    n = 0 if X is None else length(X)
    for i in range(4 if n > _SAMPLE_SIZE else min(n, 1)):
        yield take(
            X,
            np.arange(min(n, _SAMPLE_SIZE))
            if i == 0
            else np.sort(rng.permutation(n)[:_SAMPLE_SIZE]),
        )
    if kind in _VECTOR_KINDS:
        yield from _vectors(kind, X, columns, rng)
    while kind in _OBJECT_SAMPLERS:
        yield from _OBJECT_SAMPLERS[kind](kernel, X, rng)
    if kind == "indices" and (n := n_matrix_points(kernel)):
        X = np.arange(n)
        yield X[:_MAX_MATRIX_POINTS]
    while n > _SAMPLE_SIZE:  # new points cannot be generated, so sample X
        yield take(X, np.sort(rng.permutation(n)[:_SAMPLE_SIZE]))


# ---------------------------------------------------------------------- vectors

_VECTOR_KINDS = ("vectors", "nonnegative", "bags", "rows of 0 and 1")


def _vectors(kind: str, X: Points, columns: tuple[int, ...], rng: RNG) -> PointBatches:
    """Yield random vectors at several scales and with several numbers of columns.

    Depending on the kind, they are normal, on a regular grid, positive, or rows of 0 and 1.
    """
    n = _SAMPLE_SIZE
    centre, spread = _location_and_spread(X)
    while True:
        for scale, d in product(_SCALES, columns):
            size = scale * np.asarray(spread)
            if kind == "rows of 0 and 1":
                yield (rng.random((n, d)) < rng.uniform(0.1, 0.9)).astype(float)
                continue
            if kind == "vectors":
                yield centre + size * rng.normal(size=(n, d))
                yield centre + size * _grid(d)
            # Random powers of two give vectors of very different lengths, for which invalid powers
            # of kernels have negative eigenvalues.
            yield size * np.abs(rng.normal(size=(n, d))) * 2.0 ** rng.integers(-3, 2, (n, 1))


def typical_vectors(kind: str, X: Points, columns: int) -> PointBatches:
    """Yield a few vectors at three scales, at which the noise of a function is measured."""
    centre, spread = _location_and_spread(X)
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.3, 3.0):
        step = scale * np.asarray(spread) * rng.normal(size=(8, columns))
        yield centre + step if kind == "vectors" else np.abs(step)


def _location_and_spread(X: Points) -> tuple[Any, Any]:
    """Return the mean and the standard deviation of each column of X; 0 and 1 if X is None."""
    if X is None or sp.issparse(X) or not length(X):
        return 0.0, 1.0
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _grid(d: int) -> np.ndarray:
    """Return a grid of 12 to 27 points in d dimensions; coordinates after the fourth are 0."""
    side = {1: 12, 2: 4, 3: 3}.get(d, 2)
    ticks = np.arange(side) - 0.5 * (side - 1)
    grid = np.stack(np.meshgrid(*[ticks] * min(d, 4)), axis=-1).reshape(-1, min(d, 4))
    return np.hstack([grid, np.zeros((len(grid), d - grid.shape[1]))])


def n_matrix_points(kernel: Kernel) -> int:
    """Return the number of points of a precomputed matrix in the kernel, 0 if there is none."""
    if isinstance(kernel, Precomputed):
        return 0 if kernel.matrix is None else len(kernel.matrix)
    return max((n_matrix_points(child) for _, child in kernel._children()), default=0)


# ---------------------------------------------------------------------- objects


def _letters(X: Points) -> str:
    """Return up to 20 letters that occur in the strings X, or "abcd" if there are fewer than 2."""
    letters = sorted({c for s in (X if X is not None else []) for c in s})
    return "".join(letters[:20]) if len(letters) > 1 else "abcd"


def _strings(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield all short strings over alphabets of two and four letters, then random longer ones."""
    letters = _letters(X)
    yield ["".join(w) for size in range(4) for w in product(letters[:2], repeat=size)]
    yield ["".join(w) for size in range(3) for w in product(letters[:4], repeat=size)]
    for size in (4, 6, 9):
        yield [
            "".join(rng.choice(list(letters), rng.integers(1, size))) for _ in range(_SAMPLE_SIZE)
        ]


def _texts(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield random texts of one to six words that occur in X."""
    # By default, words have several letters, because kernels on texts ignore single letters.
    texts = X if X is not None else ["cat dog cow red green blue"]
    words = sorted({word for text in texts for word in text.split()})
    yield [" ".join(rng.choice(words, rng.integers(1, 7))) for _ in range(_SAMPLE_SIZE)]


def _elements(X: Points) -> list[Any]:
    """Return up to 20 elements of the sets X, or the numbers 1 to 6."""
    elements = {e for s in (X if X is not None else []) for e in s}
    return sorted(elements, key=repr)[:20] if len(elements) > 1 else [1, 2, 3, 4, 5, 6]


def _sets(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield all nonempty subsets of three and of four elements, then random sets."""
    elements = _elements(X)
    for subset in (elements[:3], elements[:4]):
        yield [set(s) for size in range(1, len(subset) + 1) for s in combinations(subset, size)]
    masks = [rng.random(len(elements)) < 0.5 for _ in range(_SAMPLE_SIZE)]
    yield [{e for e, chosen in zip(elements, mask, strict=True) if chosen} for mask in masks]


def _rankings(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield all rankings of up to four items, then random rankings."""
    items = 4 if X is None or not hasattr(X, "shape") else X.shape[1]
    if items <= 4:
        yield np.array(list(permutations(np.arange(1.0, items + 1.0))))
    yield np.array([rng.permutation(items) + 1.0 for _ in range(_SAMPLE_SIZE)])


def _categories(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield three levels in one column, then random rows of strings and of integers."""
    d = 1 if X is None or len(getattr(X, "shape", ())) < 2 else X.shape[1]
    levels = np.array(["a", "b", "c"], dtype=object)
    if X is None:
        yield levels[:, None]
    yield levels[rng.integers(3, size=(_SAMPLE_SIZE, d))]
    yield rng.integers(6, size=(_SAMPLE_SIZE, d))


def _graphs(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield 12 random graphs of two to five nodes with labels."""
    sizes = rng.integers(2, 6, size=12)
    pairs = [list(combinations(range(m), 2)) for m in sizes]
    yield Graphs.from_edges(
        [[pair for pair in graph_pairs if rng.random() < 0.6] for graph_pairs in pairs],
        labels=[rng.choice(list("CNO"), size=m).tolist() for m in sizes],
    )


def _collections(kernel: Kernel, X: Points, rng: RNG) -> PointBatches:
    """Yield collections of one to three random points in the plane."""
    yield [rng.normal(size=(rng.integers(1, 4), 2)) for _ in range(_SAMPLE_SIZE)]


# Functions that sample each kind of object.  They yield a few batches and are called repeatedly.
_OBJECT_SAMPLERS: dict[str, Callable[[Kernel, Points, RNG], PointBatches]] = {
    "strings": _strings,
    "texts": _texts,
    "sets": _sets,
    "rankings": _rankings,
    "categories": _categories,
    "graphs": _graphs,
    "collections": _collections,
}


# ---------------------------------------------------------------------- small changes


def perturbation(kind: str, kernel: Kernel, X: Points) -> Callable[[Any, RNG], Any] | None:
    """Return a function that changes a point slightly at random; None if this is not supported."""
    neighbours = preimage_neighbours(kernel, X)
    if neighbours is not None:

        def step(x: Any, rng: RNG) -> Any:
            nearby = neighbours(x)
            return get_point(nearby, int(rng.integers(length(nearby)))) if length(nearby) else x

        return step
    if kind == "strings":
        letters = list(_letters(X))
        return lambda x, rng: _edit_string(x, letters, rng)
    if kind == "sets":
        elements = _elements(X)
        return lambda x, rng: (x ^ {elements[rng.integers(len(elements))]}) or x
    return _swap_entries if kind == "rankings" else None


def _edit_string(x: str, letters: list[str], rng: RNG) -> str:
    """Return the string with one letter inserted, replaced or deleted."""
    i, letter = int(rng.integers(len(x) + 1)), str(rng.choice(letters))
    old, new = x[i : i + int(rng.integers(2))], letter if rng.random() < 0.67 else ""
    return x[:i] + new + x[i + len(old) :]


def _swap_entries(x: Any, rng: RNG) -> np.ndarray:
    """Return a copy of the ranking with two entries exchanged."""
    swapped = np.array(x)
    i, j = rng.choice(len(swapped), 2, replace=False)
    swapped[[i, j]] = swapped[[j, i]]
    return swapped


# ---------------------------------------------------------------------- stationary functions
#
# By Bochner's theorem, a function of x - z is a Mercer kernel if and only if its Fourier transform
# is non-negative.  For the points x_j = h j of a lattice, j in {0 ... m-1}^d, and f(l) = k(h l, 0),
#
#     c^* K c  =  sum_l  prod_a (m - |l_a|)  f(l) e^(i w l),      c_j = e^(i w j).
#
# One FFT therefore gives c^* K c for all frequencies w.  A frequency for which it is negative gives
# a counterexample.

_LATTICE_SIDES = {1: 256, 2: 20, 3: 8}  # number of lattice points along each axis, by dimension d
_LATTICE_STEPS = (0.2, 0.05, 1.0, 0.01, 5.0)  # lattice spacings h, in the order they are tried
# For d = 1, number of points that sample a wave whose frequency has a negative spectral value.
_WAVE_POINTS = 16


def is_stationary(kernel: Kernel, d: int) -> bool:
    """Return True if k is known to depend only on x - z, or seems to, on a few random points."""
    if kernel.properties.stationary:
        return True
    X = np.random.default_rng(0).normal(size=(5, d))
    K, translated = kernel(X), kernel(X + 0.77)
    return bool(np.allclose(K, translated, rtol=1e-9, atol=1e-9 * np.abs(K).max()))


def points_of_negative_spectrum(kernel: Kernel, d: int) -> Iterator[np.ndarray]:
    """Yield lattices that sample the frequency at which the spectrum of k is most negative.

    Nothing is yielded if no negative value of the spectrum is found.
    """
    if d not in _LATTICE_SIDES:
        return
    m = _LATTICE_SIDES[d]
    lags = np.stack(np.meshgrid(*[np.arange(-m, m)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.prod(m - np.abs(lags), axis=1)
    origin = int(np.flatnonzero(~lags.any(axis=1))[0])
    for step in _LATTICE_STEPS:
        with np.errstate(all="ignore"):
            f = np.array(kernel(np.zeros((1, d)), lags * step), dtype=float)[0]
            f[origin] = kernel.diag(np.zeros((1, d)))[0]
        if not np.isfinite(f).all():
            continue
        terms = np.fft.ifftshift((f * weights).reshape([2 * m] * d))
        values = np.fft.fftn(terms).real
        if values.min() >= -1e-9 * np.abs(terms).sum():
            continue
        index = np.unravel_index(int(np.argmin(values)), values.shape)
        w = np.abs([np.fft.fftfreq(2 * m)[i] for i in index]) * 2.0 * np.pi / step
        half_wave = np.pi / float(np.sqrt(w @ w) or np.pi / (m * step))
        for h in (half_wave, half_wave / 2.0, half_wave / 3.0):
            yield _lattice(_WAVE_POINTS if d == 1 else 5 if d == 2 else 3, d) * h
        yield _lattice(min(m, 128 if d == 1 else 12 if d == 2 else 5), d) * step


def _lattice(side: int, d: int) -> np.ndarray:
    """Return the integer points {0, ..., side - 1}^d, shape (side^d, d)."""
    return np.stack(np.meshgrid(*[np.arange(float(side))] * d), axis=-1).reshape(-1, d)
