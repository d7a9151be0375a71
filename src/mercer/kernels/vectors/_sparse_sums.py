"""Sums over the common columns of two sparse rows, out_ij = sum_c g(a_ic, b_jc).

For each entry a_ic of row i, row c of B^T lists the rows j of B that have an entry in column c.
Their terms are added to row i of the dense result, so that the work is proportional to the number
of nonzero terms.  SciPy's product of two sparse matrices computes the same terms, but collects the
sums in a sparse matrix.  That takes ten times as long if most of the sums are not 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import jit

__all__ = ["sparse_inner_products", "sparse_min_sums"]


def sparse_inner_products(A: Any, B: Any, out: np.ndarray, *, add: bool = False) -> None:
    """Write sum_c a_ic b_jc to out_ij for CSR matrices A and B, or add it if `add` is True."""
    _scatter(False, add, *_csr_arrays(A), *_csr_arrays(B.T.tocsr()), out)


def sparse_min_sums(A: Any, B: Any, out: np.ndarray) -> None:
    """Write sum_c min(a_ic, b_jc) to out_ij for two CSR matrices with entries >= 0."""
    _scatter(True, False, *_csr_arrays(A), *_csr_arrays(B.T.tocsr()), out)


def _csr_arrays(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row pointers, the column indices and the values of a CSR matrix."""
    # Always convert indices to int64, so that Numba does not compile the loop for other types.
    return A.indptr.astype(np.int64), A.indices.astype(np.int64, copy=False), A.data


@jit()
def _scatter(
    minimum: bool,
    add: bool,
    a_indptr: Any,
    a_columns: Any,
    a_values: Any,
    bt_indptr: Any,
    bt_rows: Any,
    bt_values: Any,
    out: Any,
) -> None:
    """Add the terms min(a, b) or a * b to `out`, given the CSR arrays of A and of B^T."""
    for i in range(out.shape[0]):
        sums = out[i]
        if not add:
            sums[:] = 0
        for p in range(a_indptr[i], a_indptr[i + 1]):
            a, c = a_values[p], a_columns[p]
            if minimum:
                for q in range(bt_indptr[c], bt_indptr[c + 1]):
                    sums[bt_rows[q]] += min(a, bt_values[q])
            else:
                for q in range(bt_indptr[c], bt_indptr[c + 1]):
                    sums[bt_rows[q]] += a * bt_values[q]
