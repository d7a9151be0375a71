"""Points to look at: drawn for each kind of points, with small changes for the objects among them.

Where points are objects, all small ones come first: metrics that are no kernel (edit distances,
overlaps) show it on words of three letters and sets of three elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._points import is_table, length, take
from .._base import Kernel
from .._callable import point
from .._graph_collection import Graphs
from .._precomputed import Precomputed

__all__ = ["changes", "draws", "kinds_of", "size_of", "typical"]

Draws = Iterator[Any]
Random = np.random.Generator

_SCALES = (1.0, 0.3, 3.0, 0.1, 10.0, 0.03, 30.0, 100.0)
_FEW = 24  # points of a sampled Gram matrix
_LARGEST = 2000  # indices of a matrix that are looked at together
_ANY = ("strings", "sets", "vectors", "rankings")  # what a function might take


def kinds_of(kernel: Kernel, X: Any) -> tuple[str, ...]:
    """Return the kinds of points to draw, the likeliest first; "given" for none but X."""
    domain = kernel.domain
    if X is None or (domain and domain not in ("sets", "bags")):
        return (domain,) if domain else _ANY
    if _is_rows(X):
        values = np.unique(X.data if sp.issparse(X) else np.asarray(X))
        if np.isin(values, (0, 1)).all():
            return ("rows of 0 and 1",)
        # what is not negative in all examples may not be so on purpose
        return ("nonnegative",) if domain == "bags" or values.min() >= 0 else ("vectors",)
    first = point(X, 0) if length(X) else None
    if isinstance(first, str):
        return ("texts",) if " " in first else ("strings",)
    return ("sets",) if isinstance(first, (set, frozenset)) else ("given",)


def _is_rows(X: Any) -> bool:
    if sp.issparse(X):
        return True
    if is_table(X) or not hasattr(X, "shape"):
        return False
    return X.ndim == 2 and X.dtype.kind in "biuf"


def draws(kind: str, kernel: Kernel, X: Any, columns: tuple[int, ...], rng: Random) -> Draws:
    """Yield collections of points without end: some of X first, then ones of a kind."""
    n = 0 if X is None else length(X)
    for i in range(4 if n > _FEW else min(n, 1)):
        yield take(X, np.arange(min(n, _FEW)) if i == 0 else np.sort(rng.permutation(n)[:_FEW]))
    if kind in _VECTORS:
        yield from _vectors(kind, X, columns, rng)
    while kind in _OBJECTS:
        yield from _OBJECTS[kind](kernel, X, rng)
    if kind == "indices" and (n := size_of(kernel)):
        X = np.arange(n)
        yield X[:_LARGEST]
    while n > _FEW:  # of a kind that nothing else is known of
        yield take(X, np.sort(rng.permutation(n)[:_FEW]))


# ---------------------------------------------------------------------- vectors

_VECTORS = ("vectors", "nonnegative", "bags", "rows of 0 and 1")


def _vectors(kind: str, X: Any, columns: tuple[int, ...], rng: Random) -> Draws:
    """Yield points at several scales, in several dimensions: normal, on a grid, positive."""
    centre, spread = _place(X)
    while True:
        for scale, d in product(_SCALES, columns):
            near = scale * np.asarray(spread)
            if kind == "rows of 0 and 1":
                yield (rng.random((_FEW, d)) < rng.uniform(0.1, 0.9)).astype(float)
                continue
            if kind == "vectors":
                yield centre + near * rng.normal(size=(_FEW, d))
                yield centre + near * _grid(d)
            # powers of two, as far apart in the small as in the large: where powers show
            yield near * np.abs(rng.normal(size=(_FEW, d))) * 2.0 ** rng.integers(-3, 2, (_FEW, 1))


def typical(kind: str, X: Any, columns: int) -> Draws:
    """Yield a few vectors at three scales, to see how exact the values of a function are."""
    centre, spread = _place(X)
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.3, 3.0):
        step = scale * np.asarray(spread) * rng.normal(size=(8, columns))
        yield centre + step if kind == "vectors" else np.abs(step)


def _place(X: Any) -> tuple[Any, Any]:
    """Return where vectors X are, and how far apart in each column."""
    if X is None or sp.issparse(X) or not length(X):
        return 0.0, 1.0
    X = np.asarray(X, dtype=float)
    spread = X.std(axis=0)
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _grid(d: int) -> np.ndarray:
    """Return a regular lattice of about as many points as are drawn."""
    side = {1: 12, 2: 4, 3: 3}.get(d, 2)
    ticks = np.arange(side) - 0.5 * (side - 1)
    every = np.stack(np.meshgrid(*[ticks] * min(d, 4)), axis=-1).reshape(-1, min(d, 4))
    return np.hstack([every, np.zeros((len(every), d - every.shape[1]))])


def size_of(kernel: Kernel) -> int:
    """Return how many points a matrix inside the kernel has, 0 if there is none."""
    if isinstance(kernel, Precomputed):
        return 0 if kernel.matrix is None else len(kernel.matrix)
    return max((size_of(child) for _, child in kernel._children()), default=0)


# ---------------------------------------------------------------------- objects


def _letters(X: Any) -> str:
    found = sorted({c for s in (X if X is not None else []) for c in s})
    return "".join(found[:20]) if len(found) > 1 else "abcd"


def _strings(kernel: Kernel, X: Any, rng: Random) -> Draws:
    letters = _letters(X)
    yield ["".join(w) for size in range(4) for w in product(letters[:2], repeat=size)]
    yield ["".join(w) for size in range(3) for w in product(letters[:4], repeat=size)]
    for size in (4, 6, 9):
        yield ["".join(rng.choice(list(letters), rng.integers(1, size))) for _ in range(_FEW)]


def _texts(kernel: Kernel, X: Any, rng: Random) -> Draws:
    words = sorted({w for s in (X if X is not None else ["a b c d e f"]) for w in s.split()})
    yield [" ".join(rng.choice(words, rng.integers(1, 7))) for _ in range(_FEW)]


def _elements(X: Any) -> list:
    found = {e for s in (X if X is not None else []) for e in s}
    return sorted(found, key=repr)[:20] if len(found) > 1 else [1, 2, 3, 4, 5, 6]


def _sets(kernel: Kernel, X: Any, rng: Random) -> Draws:
    elements = _elements(X)
    for some in (elements[:3], elements[:4]):
        yield [set(s) for size in range(1, len(some) + 1) for s in combinations(some, size)]
    picked = [rng.random(len(elements)) < 0.5 for _ in range(_FEW)]
    yield [{e for e, chosen in zip(elements, row, strict=True) if chosen} for row in picked]


def _rankings(kernel: Kernel, X: Any, rng: Random) -> Draws:
    items = 4 if X is None or not hasattr(X, "shape") else X.shape[1]
    if items <= 4:
        yield np.array(list(permutations(np.arange(1.0, items + 1.0))))
    yield np.array([rng.permutation(items) + 1.0 for _ in range(_FEW)])


def _graphs(kernel: Kernel, X: Any, rng: Random) -> Draws:
    sizes = rng.integers(2, 6, size=12)
    pairs = [list(combinations(range(m), 2)) for m in sizes]
    yield Graphs.from_edges(
        [[pair for pair in some if rng.random() < 0.6] for some in pairs],
        labels=[rng.choice(list("CNO"), size=m).tolist() for m in sizes],
    )


def _collections(kernel: Kernel, X: Any, rng: Random) -> Draws:
    yield [rng.normal(size=(rng.integers(1, 4), 2)) for _ in range(_FEW)]


_OBJECTS: dict[str, Callable[[Kernel, Any, Random], Draws]] = {
    "strings": _strings,
    "texts": _texts,
    "sets": _sets,
    "rankings": _rankings,
    "graphs": _graphs,
    "collections": _collections,
}


# ---------------------------------------------------------------------- small changes


def changes(kind: str, kernel: Kernel, X: Any) -> Callable[[Any, Random], Any] | None:
    """Return a function that changes a point a little; None if there is none for these points."""
    neighbours = kernel._neighbours(X)
    if neighbours is not None:

        def step(x: Any, rng: Random) -> Any:
            around = neighbours(x)
            return point(around, int(rng.integers(length(around)))) if length(around) else x

        return step
    if kind == "strings":
        letters = list(_letters(X))
        return lambda x, rng: _edited(x, letters, rng)
    if kind == "sets":
        elements = _elements(X)
        return lambda x, rng: (x ^ {elements[rng.integers(len(elements))]}) or x
    return _swapped if kind == "rankings" else None


def _edited(x: str, letters: list[str], rng: Random) -> str:
    """Insert, replace or delete a letter."""
    i, letter = int(rng.integers(len(x) + 1)), str(rng.choice(letters))
    old, new = x[i : i + int(rng.integers(2))], letter if rng.random() < 0.67 else ""
    return x[:i] + new + x[i + len(old) :]


def _swapped(x: Any, rng: Random) -> np.ndarray:
    """Exchange two entries."""
    x = np.array(x)
    i, j = rng.choice(len(x), 2, replace=False)
    x[[i, j]] = x[[j, i]]
    return x
