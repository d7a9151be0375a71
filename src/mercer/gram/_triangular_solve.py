"""Compute B <- B L^-T and B <- B L^T for a triangular L, in place and without the GIL.

SciPy's wrappers of the BLAS hold the global interpreter lock (GIL) while they compute, so that only
one thread could compute at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsm

from .._core import routine_without_gil

try:
    import ctypes

    from scipy.linalg import cython_blas
except ImportError:  # `routine_without_gil` then returns None
    ctypes = cython_blas = None  # type: ignore[assignment]

# Expected types of the arguments of a BLAS routine.  They differ for a BLAS with 64-bit integers.
_EXPECTED_KINDS = ("char",) * 4 + ("int", "int", "real", "real", "int", "real", "int")


def solve_triangular_rows(L: np.ndarray, B: np.ndarray) -> None:
    """Set B <- B L^-T in place: each row b of B becomes the solution y of L y = b.

    Parameters
    ----------
    L : ndarray of shape (m, m)
        Lower triangular matrix in float64 and Fortran order.
    B : ndarray of shape (n, m)
        Array in float64 with contiguous rows; it is overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import solve_triangular_rows
    >>> L, B = np.asfortranarray([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 3.0]])
    >>> solve_triangular_rows(L, B)
    >>> B
    array([[1., 2.]])
    """
    _apply("dtrsm", dtrsm, L, B)


def multiply_triangular_rows(L: np.ndarray, B: np.ndarray) -> None:
    """Set B <- B L^T in place; the parameters are those of `solve_triangular_rows`."""
    _apply("dtrmm", dtrmm, L, B)


def _apply(name: str, wrapper: Any, L: np.ndarray, B: np.ndarray) -> None:
    """Call a BLAS routine without the GIL, or SciPy's wrapper if that is not possible."""
    if not B.size:
        return
    if not (L.flags.f_contiguous and L.dtype == B.dtype == np.float64 and B.strides[1] == 8):
        raise ValueError(f"{name} needs float64, L in Fortran order, and B with contiguous rows")
    routine = routine_without_gil(cython_blas, name, _EXPECTED_KINDS)
    if routine is None:
        B[...] = wrapper(1.0, L, B.T, lower=1).T
        return
    # The BLAS expects Fortran order, and reads the memory of the C-ordered B as B^T.
    m, n, one = ctypes.c_int(B.shape[1]), ctypes.c_int(B.shape[0]), ctypes.c_double(1.0)
    stride = ctypes.c_int(max(B.strides[0] // 8, B.shape[1]))
    ref, data = ctypes.byref, ctypes.c_void_p
    routine(
        # L is on the left, lower triangular, not transposed, and without unit diagonal.
        *(b"L", b"L", b"N", b"N"),
        *(ref(m), ref(n), ref(one)),
        *(data(L.ctypes.data), ref(m), data(B.ctypes.data), ref(stride)),
    )
