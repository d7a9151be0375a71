"""LAPACK and BLAS routines whose number of BLAS threads depends on the size of their matrices.

Every module of mercer imports these routines from here instead of from `scipy.linalg`.  For
matrices of 1500 rows or more, they may use all BLAS threads that the user allows.  For smaller
matrices, and to solve systems with few right-hand sides, they use one thread, because splitting
short steps between threads would take longer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.linalg

from ._threads import blas_threads
from ._without_gil import eigh as _eigh_without_gil

__all__ = ["blas", "cho_factor", "cho_solve", "eigh", "lapack", "lstsq", "qr"]
__all__ += ["solve_triangular", "svd"]

# With fewer right-hand sides than this, memory bandwidth limits a triangular solve, so that
# additional BLAS threads do not make it faster.
_MIN_COLUMNS = 64


def _with_blas_threads(routine: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a routine so that it may use all BLAS threads if its matrices are large."""

    @wraps(routine)
    def call(*args: Any, **options: Any) -> Any:
        with blas_threads(_matrix_size(args)):
            return routine(*args, **options)

    return call


def _matrix_size(args: tuple[Any, ...]) -> int:
    """Return the smaller dimension of the first matrix among the arguments.

    If the second array argument has few columns, return 0, so that one BLAS thread is used.
    """
    # An argument may be a tuple that begins with the matrix, as in cho_solve((L, lower), B).
    operands = [a[0] if isinstance(a, tuple) else a for a in args]
    arrays = [a for a in operands if isinstance(a, np.ndarray)]
    if not arrays or arrays[0].ndim < 2:
        return 0
    if len(arrays) > 1 and (arrays[1].ndim < 2 or min(arrays[1].shape) < _MIN_COLUMNS):
        return 0
    smallest: int = min(arrays[0].shape[-2:])
    return smallest


class _Routines:
    """The routines of `scipy.linalg.lapack` or `scipy.linalg.blas`, wrapped on first use."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        routine = _with_blas_threads(getattr(self._module, name))
        setattr(self, name, routine)
        return routine


lapack, blas = _Routines(scipy.linalg.lapack), _Routines(scipy.linalg.blas)
cho_factor: Callable[..., tuple[np.ndarray, bool]] = _with_blas_threads(scipy.linalg.cho_factor)
cho_solve: Callable[..., np.ndarray] = _with_blas_threads(scipy.linalg.cho_solve)
eigh = _with_blas_threads(_eigh_without_gil)
lstsq = _with_blas_threads(scipy.linalg.lstsq)
qr = _with_blas_threads(scipy.linalg.qr)
solve_triangular: Callable[..., np.ndarray] = _with_blas_threads(scipy.linalg.solve_triangular)
svd = _with_blas_threads(scipy.linalg.svd)
