"""Pairs of rows so close that |y|^2 + |w|^2 - 2 y.w has lost the digits of |y - w|^2.

The rounding of the three terms is about 4 eps N, N = |y|^2 + |w|^2.  A pair is called *close* when

    |y - w|^2 < 1e-4 N,

and is then computed from the differences of its rows; for all others 4 eps N is at most 1e-11 of
the squared distance.  Close pairs are few unless the points form clusters that are far apart
compared with their size, so that one comparison per entry is the usual cost.

Rows are dense or CSR with sorted columns; for CSR rows the two lists of columns are merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._runtime import jit

__all__ = ["close_moments", "refine"]

_CLOSE = 1e-4  # |y - w|^2 / (|y|^2 + |w|^2) below which a pair is close
_AHEAD = 64  # pairs that are looked at together


def refine(
    Y: Any, V: Any, columns: int, left: Any, right: Any, s: np.ndarray, relative: bool
) -> None:
    """Set s_ij <- |y_i - v_j|^2 for the close pairs; `left` and `right` are the |y|^2 and |v|^2.

    Unless digits `relative` to s are wanted, also below 1, small norms leave nothing to do.
    Dense rows may be longer than their `columns`.
    """
    if sp.issparse(Y) or sp.issparse(V):
        _refine_sparse(*_parts(Y), *_parts(V), left, right, s, relative)
    else:
        _refine_dense(Y, V, columns, left, right, s, relative)


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
        _moments_sparse(M, *_parts(Y), *_parts(V), left, right, s, first, second)
    else:
        _moments_dense(M, Y, V, left, right, s, first, second)


def _parts(rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = rows if sp.issparse(rows) else sp.csr_array(rows)
    return rows.indptr, rows.indices, rows.data


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
def _some_close(s: Any, left: Any, right: Any, relative: bool) -> bool:
    return s.size > 0 and (relative or _CLOSE * (left.max() + right.max()) > 1.0)


@jit("reassoc", "nsz")
def _square(y: Any, v: Any, columns: int) -> Any:
    total = y.dtype.type(0)
    for c in range(columns):
        total += (y[c] - v[c]) * (y[c] - v[c])
    return total


@jit()
def _refine_dense(
    Y: Any, V: Any, columns: int, left: Any, right: Any, s: Any, relative: bool
) -> None:
    if not _some_close(s, left, right, relative):
        return
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


@jit()
def _step(p: int, stop: int, cols: Any, a: Any, q: int, end: int, others: Any, b: Any) -> Any:
    """Return the next column of two merged rows, the difference there, and the places after it."""
    if q == end or (p < stop and cols[p] < others[q]):
        return cols[p], a[p], p + 1, q
    if p == stop or others[q] < cols[p]:
        return others[q], -b[q], p, q + 1
    return cols[p], a[p] - b[q], p + 1, q + 1


@jit()
def _refine_sparse(
    starts: Any,
    cols: Any,
    a: Any,
    ends: Any,
    others: Any,
    b: Any,
    left: Any,
    right: Any,
    s: Any,
    relative: bool,
) -> None:
    if not _some_close(s, left, right, relative):
        return
    for i in range(s.shape[0]):
        stop = starts[i + 1]
        for j in range(s.shape[1]):
            if _is_close(s[i, j], left[i], right[j]):
                p, q, total = starts[i], ends[j], 0.0
                while p < stop or q < ends[j + 1]:
                    _, t, p, q = _step(p, stop, cols, a, q, ends[j + 1], others, b)
                    total += t * t
                s[i, j] = total


@jit()
def _moments_sparse(
    M: Any,
    starts: Any,
    cols: Any,
    a: Any,
    ends: Any,
    others: Any,
    b: Any,
    left: Any,
    right: Any,
    s: Any,
    first: Any,
    second: Any,
) -> None:
    for i in range(s.shape[0]):
        stop = starts[i + 1]
        for j in range(s.shape[1]):
            if _is_close(s[i, j], left[i], right[j]):
                p, q, weight = starts[i], ends[j], M[i, j]
                M[i, j] = 0
                while p < stop or q < ends[j + 1]:
                    c, t, p, q = _step(p, stop, cols, a, q, ends[j + 1], others, b)
                    first[i, c] += weight * t
                    second[c] += weight * (t * t)
