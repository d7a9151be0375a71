"""An order of the points that does not depend on the one they come in.

A permutation test has its exact level if the kernel is the same for every order of the points.
Rules such as "median" and landmarks look at some of the points, so they are given them in an order
that depends on what the points are, never on where they stand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._points import column, is_table, length
from .._runtime import slices
from ..gram import TiledGram
from ..kernels import Kernel, Precomputed

__all__ = ["UnorderableError", "canonical_order", "is_precomputed"]

_STRIP = 256  # rows of K at a time
_PLAIN = (str, bytes, bool, int, float, complex, type(None))


class UnorderableError(ValueError):
    """The points have no order of their own."""


def canonical_order(X: Any, kernel: Kernel | None = None) -> np.ndarray:
    """Return the order of the points by what they are; equal points may stand in any order.

    Vectors are ordered along a direction, the same for all data of this width, tables by their
    columns, and other points by a text that says all of them.  If the points are indices of a
    `Precomputed` kernel, they are known by its values alone, and each is placed by its sorted row.
    """
    if kernel is not None and is_precomputed(kernel):
        return _by_values(TiledGram(kernel, X))
    if sp.issparse(X):
        return np.argsort(np.asarray(X @ _direction(X.shape[1])), kind="stable")
    if is_table(X) and len(X.shape) == 2:
        return np.lexsort([_ranks(column(X, j).to_numpy()) for j in range(X.shape[1])][::-1])
    if isinstance(X, np.ndarray) and X.ndim >= 2 and X.dtype.kind in "biuf":
        return _by_direction(X.reshape(len(X), -1))
    points = X.to_numpy() if is_table(X) else X
    if _may_be_indices(points):
        raise UnorderableError(
            "the points are different integers, which may be no more than their numbers"
        )
    return np.argsort(_ranks(points), kind="stable")


# ---------------------------------------------------------------------- vectors and values


def _direction(width: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=width)


def _by_direction(X: np.ndarray) -> np.ndarray:
    # Not by the BLAS, because equal rows must have equal bits wherever they stand.
    along = np.einsum("ij,j->i", X, _direction(X.shape[1]))
    order = np.argsort(along, kind="stable")
    a, b = order[:-1], order[1:]
    tied = along[a] == along[b]
    if np.any(X[a[tied]] != X[b[tied]]):  # a large column hides the others
        return np.lexsort(X.T[::-1])
    return order


def _by_values(K: TiledGram) -> np.ndarray:
    n = K.shape[0]
    along, direction = np.empty(n), _direction(n)
    for part in slices(n, _STRIP):
        rows = np.sort(K.block(part, slice(None)), axis=1)
        along[part] = np.einsum("ij,j->i", rows, direction)
    order = np.lexsort([along, diagonal := K.diagonal()])
    a, b = order[:-1], order[1:]
    same = (along[a] == along[b]) & (diagonal[a] == diagonal[b])
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(places):  # small values are hidden by large ones, or the points are alike
        tied = order[places]
        rows = np.sort(K.block(tied, slice(None)), axis=1)
        again = np.lexsort([*rows.T, along[tied], diagonal[tied]])
        order[places], rows = tied[again], rows[again]
        _check_alike(K, order[places], np.all(rows[1:] == rows[:-1], axis=1))
    return order


def _check_alike(K: TiledGram, points: np.ndarray, same: np.ndarray) -> None:
    """Refuse neighbours whose sorted rows of K are the same, unless the rows are."""
    for i in np.flatnonzero(same):
        pair = points[i : i + 2]
        first, second = K.block(pair, slice(None))
        second[pair] = second[pair[::-1]]  # k(x, y) and k(x, x) change places with y
        if np.any(first != second):
            raise UnorderableError(
                f"points {points[i]} and {points[i + 1]} have the same kernel values in another "
                f"order, which does not tell them apart"
            )


def is_precomputed(kernel: Kernel) -> bool:
    inside = any(is_precomputed(child) for _, child in kernel._children())
    return isinstance(kernel, Precomputed) or inside


# ---------------------------------------------------------------------- points of other kinds


def _may_be_indices(points: Any) -> bool:
    if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in points):
        return False
    return length(points) > 1 and len(set(points)) == length(points)


def _ranks(points: Any) -> np.ndarray:
    """Return numbers that are ordered as the points are, and equal where they are."""
    if isinstance(points, np.ndarray) and points.ndim == 1 and points.dtype.kind in "biufmM":
        return points
    texts = [_text(x) for x in points]
    rank = {text: i for i, text in enumerate(sorted(set(texts)))}
    return np.array([rank[text] for text in texts], dtype=np.intp)


def _text(x: Any) -> str:
    """Return a text that says all of x, the same for the same x."""
    if type(x) in _PLAIN or (isinstance(x, np.generic) and x.dtype.kind not in "OV"):
        return repr(x)
    kind = type(x).__name__
    if isinstance(x, np.ndarray):
        inside = _text(x.tolist()) if x.dtype.kind in "OV" else x.tobytes().hex()
        return f"{kind}{x.shape}{x.dtype.str}{inside}"
    if sp.issparse(x):
        return f"{kind}{_text(x.toarray())}"
    if isinstance(x, (tuple, list)):
        return f"{kind}({','.join(map(_text, x))})"
    if isinstance(x, (set, frozenset)):
        return f"{kind}({','.join(sorted(map(_text, x)))})"
    if isinstance(x, dict):
        return f"{kind}({','.join(sorted(f'{_text(k)}:{_text(v)}' for k, v in x.items()))})"
    raise UnorderableError(f"points of the type {kind} have no order that is known")
