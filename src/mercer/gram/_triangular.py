"""B <- B L^-T in place: each row b of B becomes the y with L y = b, L lower triangular.

SciPy's wrappers of the BLAS keep the interpreter's lock while they compute, so that threads would
solve one after the other.  The same routine, called through the table that SciPy exports for other
compiled code, lets it go.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas
from scipy.linalg.blas import dtrmm, dtrsm

__all__ = ["multiply_rows", "solve_rows"]

# the shape of the signature; a build whose integers have 64 bits spells it in another way
_KINDS = ("char", "char", "char", "char", "int", "int", "real", "real", "int", "real", "int")


def solve_rows(L: np.ndarray, B: np.ndarray) -> None:
    """Set B <- B L^-T; L is in Fortran order, the rows of B are contiguous, both float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import solve_rows
    >>> L, B = np.asfortranarray([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 3.0]])
    >>> solve_rows(L, B)
    >>> B
    array([[1., 2.]])
    """
    _apply("dtrsm", dtrsm, L, B)


def multiply_rows(L: np.ndarray, B: np.ndarray) -> None:
    """Set B <- B L^T; L lower triangular, and both as in `solve_rows`."""
    _apply("dtrmm", dtrmm, L, B)


def _apply(name: str, wrapper: Any, L: np.ndarray, B: np.ndarray) -> None:
    if not B.size:
        return
    if not (L.flags.f_contiguous and L.dtype == B.dtype == np.float64 and B.strides[1] == 8):
        raise ValueError(f"{name} needs float64, L in Fortran order and contiguous rows of B")
    routine = _unlocked(name)
    if routine is None:
        B[...] = wrapper(1.0, L, B.T, lower=1).T
        return
    # a row-major B is B^T to the BLAS: it solves L B^T <- B^T with as many columns as B has rows
    m, n, one = ctypes.c_int(B.shape[1]), ctypes.c_int(B.shape[0]), ctypes.c_double(1.0)
    stride = ctypes.c_int(max(B.strides[0] // 8, B.shape[1]))
    ref, data = ctypes.byref, ctypes.c_void_p
    routine(
        *(b"L", b"L", b"N", b"N"),  # L on the left, its lower half, as it is, with its diagonal
        *(ref(m), ref(n), ref(one)),
        *(data(L.ctypes.data), ref(m), data(B.ctypes.data), ref(stride)),
    )


@cache
def _unlocked(routine: str = "dtrsm") -> Any:
    """Return a BLAS routine as a function that lets the lock go, or None without one."""
    capsule = getattr(cython_blas, "__pyx_capi__", {}).get(routine)
    if capsule is None:
        return None
    python = ctypes.pythonapi  # prototypes of our own: those of this table are everybody's
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer_to = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    name = name_of(capsule)
    if _kinds(name.decode()) != _KINDS:
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(_KINDS))(pointer_to(capsule, name))


def _kinds(signature: str) -> tuple[str, ...]:
    """Return the kinds of the arguments in a signature as Cython writes it."""
    arguments = signature.partition("(")[2].rstrip(")").split(", ")
    kinds = (argument.removesuffix(" *") for argument in arguments)
    return tuple("real" if kind.endswith("cython_blas_d") else kind for kind in kinds)
