"""LAPACK and BLAS routines that choose the number of BLAS threads by the size of their matrices.

Every module of mercer imports these routines from here instead of from `scipy.linalg`.  Within an
entry point the BLAS has one thread (see `entry_point`).  A routine on a matrix of 1500 rows or more
is permitted all threads that the user allows.  A smaller matrix, or a solve with few right-hand
sides, has steps that are too short to be shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.linalg

from ._threads import blas_threads

__all__ = ["blas", "cho_factor", "cho_solve", "eigh", "lapack", "lstsq", "qr"]
__all__ += ["solve_triangular", "svd"]

_MIN_COLUMNS = 64  # right-hand sides from which a solve is limited by arithmetic, not by memory


def _shared(routine: Callable[..., Any]) -> Callable[..., Any]:
    """Return a routine that permits all BLAS threads if its matrices are large."""

    @wraps(routine)
    def call(*args: Any, **options: Any) -> Any:
        with blas_threads(_rows(args)):
            return routine(*args, **options)

    return call


def _rows(args: tuple[Any, ...]) -> int:
    """Return the smaller side of the first matrix; 0 if the second argument has few columns."""
    given = [a[0] if isinstance(a, tuple) else a for a in args]  # cho_solve((L, lower), B)
    arrays = [a for a in given if isinstance(a, np.ndarray)]
    if not arrays or arrays[0].ndim < 2:
        return 0
    if len(arrays) > 1 and (arrays[1].ndim < 2 or min(arrays[1].shape) < _MIN_COLUMNS):
        return 0
    return min(arrays[0].shape[-2:])


class _Routines:
    """The routines of `scipy.linalg.lapack` or `scipy.linalg.blas`, wrapped on first use."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        routine = _shared(getattr(self._module, name))
        setattr(self, name, routine)
        return routine


lapack, blas = _Routines(scipy.linalg.lapack), _Routines(scipy.linalg.blas)
cho_factor, cho_solve = _shared(scipy.linalg.cho_factor), _shared(scipy.linalg.cho_solve)
solve_triangular, lstsq = _shared(scipy.linalg.solve_triangular), _shared(scipy.linalg.lstsq)
eigh, qr, svd = _shared(scipy.linalg.eigh), _shared(scipy.linalg.qr), _shared(scipy.linalg.svd)
