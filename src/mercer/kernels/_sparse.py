"""Sums over the columns that two sparse rows share, out_ij = sum_c g(a_ic, b_jc).

For every entry of row i, column c of B^T lists the j it meets, and their terms are added to row i
of a dense block.  So the work is that of the terms which are not 0; SciPy's product of two sparse
matrices has the same terms, but keeps their sums in a sparse matrix first: ten times as slow where
most of the sums are not 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import jit

__all__ = ["shared_minima", "shared_products"]


def shared_products(A: Any, B: Any, out: np.ndarray, *, add: bool = False) -> None:
    """Set out_ij <- sum_c a_ic b_jc for CSR rows; or add it to what is there."""
    _scatter(False, add, *_parts(A), *_parts(B.T.tocsr()), out)


def shared_minima(A: Any, B: Any, out: np.ndarray) -> None:
    """Set out_ij <- sum_c min(a_ic, b_jc) for CSR rows of non-negative entries."""
    _scatter(True, False, *_parts(A), *_parts(B.T.tocsr()), out)


def _parts(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # one type of index, or every mixture of types would be compiled
    return A.indptr.astype(np.int64), A.indices.astype(np.int64, copy=False), A.data


@jit()
def _scatter(
    minimum: bool,
    add: bool,
    starts: Any,
    columns: Any,
    values: Any,
    ends: Any,
    rows: Any,
    others: Any,
    out: Any,
) -> None:
    for i in range(out.shape[0]):
        sums = out[i]
        if not add:
            sums[:] = 0
        for p in range(starts[i], starts[i + 1]):
            a, c = values[p], columns[p]
            if minimum:
                for q in range(ends[c], ends[c + 1]):
                    sums[rows[q]] += min(a, others[q])
            else:
                for q in range(ends[c], ends[c + 1]):
                    sums[rows[q]] += a * others[q]
