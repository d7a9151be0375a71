"""Pairs of rows so close that |y|^2 + |w|^2 - 2 y.w has lost the digits of |y - w|^2.

The rounding of the three terms is about 4 eps N, N = |y|^2 + |w|^2.  A pair is called *close* when

    |y - w|^2 < 1e-4 N,

and is then computed from the differences of its rows; for all others 4 eps N is at most 1e-11 of
the squared distance.  Close pairs are few unless the points form clusters that are far apart
compared with their size, so that one comparison per entry is the usual cost.

Dense rows go through compiled loops; sparse rows are subtracted by SciPy, some pairs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._runtime import jit, slices

__all__ = ["close_moments", "refine"]

_CLOSE = 1e-4  # |y - w|^2 / (|y|^2 + |w|^2) below which a pair is close
_AHEAD = 64  # pairs that are looked at together
_PAIRS = 2**14  # pairs of sparse rows whose differences are held


def refine(
    Y: Any, V: Any, columns: int, left: Any, right: Any, s: np.ndarray, relative: bool
) -> None:
    """Set s_ij <- |y_i - v_j|^2 for the close pairs; `left` and `right` are the |y|^2 and |v|^2.

    Unless digits `relative` to s are wanted, also below 1, small norms leave nothing to do.
    Dense rows may be longer than their `columns`.
    """
    if not _some_close(s, left, right, relative):
        return
    if sp.issparse(Y) or sp.issparse(V):
        for i, j, D in _sparse_differences(Y, V, left, right, s):
            s[i, j] = D.multiply(D).sum(axis=1)
    else:
        _refine_dense(Y, V, columns, left, right, s)


def close_moments(
    M: np.ndarray,
    Y: Any,
    V: Any,
    left: Any,
    right: Any,
    s: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Move the close pairs from M into the moments, leaving M_ij = 0 behind.

    first_ic <- first_ic + sum_j M_ij (y_ic - v_jc) and
    second_c <- second_c + sum_ij M_ij (y_ic - v_jc)^2, over close pairs.
    """
    if sp.issparse(Y) or sp.issparse(V):
        for i, j, D in _sparse_differences(Y, V, left, right, s):
            weights, M[i, j] = M[i, j], 0.0
            moved = sp.csr_array((weights, (i, np.arange(len(i)))), (len(first), len(i))) @ D
            first[moved.nonzero()] += moved[moved.nonzero()]
            second += D.multiply(D).T @ weights
    else:
        _moments_dense(M, Y, V, left, right, s, first, second)


def _some_close(s: np.ndarray, left: np.ndarray, right: np.ndarray, relative: bool) -> bool:
    return s.size > 0 and (relative or _CLOSE * (left.max() + right.max()) > 1.0)


def _sparse_differences(
    Y: Any, V: Any, left: np.ndarray, right: np.ndarray, s: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """Yield the places i, j of close pairs with the rows y_i - v_j, in float64."""
    Y, V = (rows if sp.issparse(rows) else sp.csr_array(rows) for rows in (Y, V))
    pairs = _close_pairs(s, left, right)
    for part in slices(pairs.shape[1], _PAIRS):
        i, j = pairs[:, part]
        yield i, j, (Y[i] - V[j]).astype(np.float64)


# ---------------------------------------------------------------------- loops


@jit()
def _is_close(s: Any, left: Any, right: Any) -> bool:
    # not "less than": a pair whose product overflowed is close, too
    return not (s >= _CLOSE * (left + right))


@jit()
def _count_close(s: Any, left: Any, right: Any) -> int:
    """Count without a branch, by vector instructions."""
    count = 0
    for j in range(s.shape[0]):
        count += _is_close(s[j], left, right[j])
    return count


@jit()
def _close_pairs(s: Any, left: Any, right: Any) -> Any:
    """Return the places i and j of the close pairs, in two rows."""
    count = 0
    for i in range(s.shape[0]):
        count += _count_close(s[i], left[i], right)
    pairs = np.empty((2, count), dtype=np.intp)
    for i in range(s.shape[0]):
        for j in range(s.shape[1] if count else 0):
            if _is_close(s[i, j], left[i], right[j]):
                count -= 1
                pairs[0, count], pairs[1, count] = i, j
    return pairs


@jit("reassoc", "nsz")
def _square(y: Any, v: Any, columns: int) -> Any:
    total = y.dtype.type(0)
    for c in range(columns):
        total += (y[c] - v[c]) * (y[c] - v[c])
    return total


@jit()
def _refine_dense(Y: Any, V: Any, columns: int, left: Any, right: Any, s: Any) -> None:
    for i in range(s.shape[0]):
        for start in range(0, s.shape[1], _AHEAD):
            stop = min(start + _AHEAD, s.shape[1])
            if not _count_close(s[i, start:stop], left[i], right[start:stop]):
                continue
            for j in range(start, stop):
                if _is_close(s[i, j], left[i], right[j]):
                    s[i, j] = _square(Y[i], V[j], columns)


@jit()
def _moments_dense(
    M: Any, Y: Any, V: Any, left: Any, right: Any, s: Any, first: Any, second: Any
) -> None:
    for i in range(s.shape[0]):
        for start in range(0, s.shape[1], _AHEAD):
            stop = min(start + _AHEAD, s.shape[1])
            if not _count_close(s[i, start:stop], left[i], right[start:stop]):
                continue
            for j in range(start, stop):
                if _is_close(s[i, j], left[i], right[j]):
                    weight = M[i, j]
                    M[i, j] = 0
                    for c in range(first.shape[1]):
                        t = Y[i, c] - V[j, c]
                        first[i, c] += weight * t
                        second[c] += weight * (t * t)
