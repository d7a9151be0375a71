"""Accurate squared distances between rows that are close to each other.

The formula |y|^2 + |w|^2 - 2 y.w for the squared distance of rows y and w suffers from
cancellation.  Its rounding error is about 4 eps N, with N = |y|^2 + |w|^2.  A pair is called
*close* if

    |y - w|^2 < 1e-4 N,

and its distance is then recomputed from the differences of the rows.  For all other pairs, 4 eps N
is at most 1e-11 of the squared distance.  There are few close pairs unless the points form tight
clusters that are far apart, so that the usual cost is one comparison per entry.

Dense rows are processed by compiled loops; sparse rows are subtracted by SciPy, in batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from ..._core import Points, jit, slices

_CLOSE_RATIO = 1e-4  # a pair is close if |y - w|^2 / (|y|^2 + |w|^2) is below this
# The number of pairs that vector instructions check together.  If one of them is close, a loop
# checks each pair of the block.
_CHECK_BLOCK = 64
_SPARSE_BATCH = 2**14  # number of pairs of sparse rows that are subtracted at a time


def recompute_close_pairs(
    Y: Points,
    V: Points,
    columns: int,
    left: np.ndarray,
    right: np.ndarray,
    s: np.ndarray,
    relative: bool,
) -> None:
    """Recompute s_ij = |y_i - v_j|^2 for the close pairs, in place.

    Parameters
    ----------
    Y, V : arrays or CSR matrices
        The rows y_i and v_j.
    columns : int
        The number of entries of dense rows to use; further entries are ignored.
    left, right : ndarray
        The squared norms |y_i|^2 and |v_j|^2.
    s : ndarray of shape (n, m)
        The squared distances, overwritten for close pairs.
    relative : bool
        If True, the relative error of every s_ij is small.  If False, an error of 1e-11 max(s, 1)
        is sufficient, so that nothing is recomputed if all norms are small.
    """
    if not _may_be_close(s, left, right, relative):
        return
    if sp.issparse(Y) or sp.issparse(V):
        for i, j, D in _sparse_differences(Y, V, left, right, s):
            s[i, j] = D.multiply(D).sum(axis=1)
    else:
        _refine_dense(Y, V, columns, left, right, s)


def add_close_moments(
    M: np.ndarray,
    Y: Points,
    V: Points,
    left: np.ndarray,
    right: np.ndarray,
    s: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Add the close pairs (i, j) to weighted sums of the differences of rows, in place.

    This adds M_ij (y_ic - v_jc) to first_ic and M_ij (y_ic - v_jc)^2 to second_c for each close
    pair, and then sets its M_ij to 0.  The caller adds all other pairs by matrix products.
    """
    if sp.issparse(Y) or sp.issparse(V):
        for i, j, D in _sparse_differences(Y, V, left, right, s):
            weights, M[i, j] = M[i, j], 0.0
            moved = sp.csr_array((weights, (i, np.arange(len(i)))), (len(first), len(i))) @ D
            first[moved.nonzero()] += moved[moved.nonzero()]
            second += D.multiply(D).T @ weights
    else:
        _moments_dense(M, Y, V, left, right, s, first, second)


def _may_be_close(s: np.ndarray, left: np.ndarray, right: np.ndarray, relative: bool) -> bool:
    """Return False if no pair can be close enough to be recomputed."""
    return s.size > 0 and (relative or _CLOSE_RATIO * (left.max() + right.max()) > 1.0)


def _sparse_differences(
    Y: Points, V: Points, left: np.ndarray, right: np.ndarray, s: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, sp.csr_array]]:
    """Yield (i, j, y_i - v_j) for batches of close pairs, with the differences in float64."""
    Y, V = (rows if sp.issparse(rows) else sp.csr_array(rows) for rows in (Y, V))
    pairs = _close_pairs(s, left, right)
    for part in slices(pairs.shape[1], _SPARSE_BATCH):
        i, j = pairs[:, part]
        yield i, j, (Y[i] - V[j]).astype(np.float64)


# ---------------------------------------------------------------------- compiled loops


@jit()
def _is_close(s: float, left: float, right: float) -> bool:
    # The condition is written as "not >=", so that a NaN from an overflow also counts as close.
    return not (s >= _CLOSE_RATIO * (left + right))


@jit()
def _count_close(s: np.ndarray, left: float, right: np.ndarray) -> int:
    """Count the close pairs in a row, by a loop without branches, so that it is vectorised."""
    count = 0
    for j in range(s.shape[0]):
        count += _is_close(s[j], left, right[j])
    return count


@jit()
def _close_pairs(s: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the indices i and j of the close pairs, as an array of shape (2, count)."""
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


@_close_pairs.without_numba
def _close_pairs_numpy(s: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    found = np.nonzero(~(s >= _CLOSE_RATIO * (left[:, None] + right)))
    return np.array(found)[:, ::-1]  # in the order of the compiled loop


@jit()
def _list_close(
    s: np.ndarray, left: float, right: np.ndarray, start: int, found: np.ndarray
) -> int:
    """Write the close columns of a row to `found`, from a block of columns; return their number."""
    stop = min(start + _CHECK_BLOCK, s.shape[0])
    count = 0
    if _count_close(s[start:stop], left, right[start:stop]):
        for j in range(start, stop):
            if _is_close(s[j], left, right[j]):
                found[count] = j
                count += 1
    return count


@jit("reassoc", "nsz")
def _squared_distance(y: np.ndarray, v: np.ndarray, columns: int) -> float:
    total: float = y.dtype.type(0)
    for c in range(columns):
        total += (y[c] - v[c]) * (y[c] - v[c])
    return total


@jit()
def _refine_dense(
    Y: np.ndarray, V: np.ndarray, columns: int, left: np.ndarray, right: np.ndarray, s: np.ndarray
) -> None:
    """Recompute the squared distances s of close pairs of dense rows."""
    found = np.empty(_CHECK_BLOCK, dtype=np.intp)
    for i in range(s.shape[0]):
        for start in range(0, s.shape[1], _CHECK_BLOCK):
            for j in found[: _list_close(s[i], left[i], right, start, found)]:
                s[i, j] = _squared_distance(Y[i], V[j], columns)


@_refine_dense.without_numba
def _refine_dense_numpy(
    Y: np.ndarray, V: np.ndarray, columns: int, left: np.ndarray, right: np.ndarray, s: np.ndarray
) -> None:
    for part in slices(len(Y), _CHECK_BLOCK):
        i, j = _close_pairs_numpy(s[part], left[part], right)
        s[part][i, j] = np.sum((Y[part][i, :columns] - V[j, :columns]) ** 2, axis=1)


@jit()
def _moments_dense(
    M: np.ndarray,
    Y: np.ndarray,
    V: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    s: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Implement `add_close_moments` for dense rows."""
    found = np.empty(_CHECK_BLOCK, dtype=np.intp)
    for i in range(s.shape[0]):
        for start in range(0, s.shape[1], _CHECK_BLOCK):
            for j in found[: _list_close(s[i], left[i], right, start, found)]:
                weight = M[i, j]
                M[i, j] = 0
                for c in range(first.shape[1]):
                    t = Y[i, c] - V[j, c]
                    first[i, c] += weight * t
                    second[c] += weight * (t * t)


@_moments_dense.without_numba
def _moments_dense_numpy(
    M: np.ndarray,
    Y: np.ndarray,
    V: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    s: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    d = first.shape[1]
    for i in range(len(s)):
        j = _close_pairs_numpy(s[i : i + 1], left[i : i + 1], right)[1]
        t = Y[i, :d] - V[j, :d]
        first[i] += M[i, j] @ t
        second += M[i, j] @ (t * t)
        M[i, j] = 0
