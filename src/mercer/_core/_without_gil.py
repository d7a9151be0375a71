"""LAPACK and BLAS routines that do not hold the global interpreter lock (GIL).

SciPy's wrappers hold the lock while they compute.  During the eigenvalue decomposition of a matrix
with thousands of rows, which takes minutes, no other thread could run: a server would not answer,
and Ctrl-C would have no effect.  The routines here are called through the function tables that
SciPy exports for Cython code (`scipy.linalg.cython_lapack` and `cython_blas`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.linalg

from ._platform import has_threads

try:
    import ctypes

    from scipy.linalg import cython_lapack
except ImportError:  # `routine_without_gil` then returns None
    ctypes = cython_lapack = None  # type: ignore[assignment]

_MIN_ROWS = 200  # for smaller matrices, SciPy needs at most a few milliseconds
# Expected types of the arguments of the LAPACK routines, and the options of `eigh` that are
# translated to such arguments.
_ARGUMENT_KINDS = {
    "evd": (*("char",) * 2, "int", "real", "int", "real", "real", *("int",) * 4),
    "evr": (
        *(*("char",) * 3, "int", "real", "int", "real", "real", "int", "int", "real", "int"),
        *("real", "real", "int", "int", "real", *("int",) * 4),
    ),
}
_EIGH_OPTIONS = {"lower", "overwrite_a", "check_finite", "driver", "subset_by_index"}


def eigh(a: Any, b: Any = None, **options: Any) -> Any:
    """Compute eigenvalues and eigenvectors like `scipy.linalg.eigh`.

    The parameters and the results are those of SciPy.  For large real matrices and the drivers
    "evr" and "evd", the computation does not hold the GIL.
    """
    driver, subset = options.get("driver") or "evr", options.get("subset_by_index")
    routine = None
    if (
        b is None
        and options.keys() <= _EIGH_OPTIONS
        and (driver == "evr" or (driver == "evd" and subset is None))
        and isinstance(a, np.ndarray)
        and a.dtype in (np.float64, np.float32)
        and a.ndim == 2
        and _MIN_ROWS <= a.shape[0] == a.shape[1]
    ):
        prefix = "d" if a.dtype == np.float64 else "s"
        routine = routine_without_gil(cython_lapack, f"{prefix}sy{driver}", _ARGUMENT_KINDS[driver])
    low, high = subset or (0, len(a) - 1)
    if routine is None or not 0 <= low <= high < len(a):
        return scipy.linalg.eigh(a, b, **options)
    if options.get("check_finite", True):
        np.asarray_chkfinite(a)
    may_overwrite = options.get("overwrite_a", False) and a.flags.writeable
    A = np.array(a, order="F", copy=None if may_overwrite else True)
    uplo = b"L" if options.get("lower", True) else b"U"
    n, values = len(A), np.empty(len(A), a.dtype)
    if driver == "evd":
        _call_with_workspace(routine, a.dtype, b"V", uplo, n, A, n, values)
        return values, A
    vectors = np.empty((n, high - low + 1), a.dtype, order="F")
    found, support = np.zeros(1, np.intc), np.empty(2 * n, np.intc)
    unused = np.zeros(1, a.dtype)  # bounds of the eigenvalues, and the default tolerance
    _call_with_workspace(
        *(routine, a.dtype, b"V", b"A" if subset is None else b"I", uplo, n, A, n),
        *(unused, unused, low + 1, high + 1, unused, found, values, vectors, n, support),
    )
    return values[: found[0]], vectors[:, : found[0]]


def _call_with_workspace(routine: Any, dtype: Any, *arguments: Any) -> None:
    """Call a LAPACK routine whose last arguments are two work arrays and the status."""
    status, head = np.zeros(1, np.intc), [_by_reference(value) for value in arguments]
    work, integers = np.empty(1, dtype), np.empty(1, np.intc)
    for sizes in ((-1, -1), None):  # the first call computes the sizes of the workspace
        if sizes is None:
            sizes = int(np.nextafter(work[0], dtype.type(np.inf))), int(integers[0])
            work, integers = np.empty(sizes[0], dtype), np.empty(sizes[1], np.intc)
        tail = [work, sizes[0], integers, sizes[1], status]
        routine(*head, *map(_by_reference, tail))
    if status[0]:
        raise np.linalg.LinAlgError(
            f"the eigenvalue decomposition did not converge (LAPACK info={status[0]})"
        )


def _by_reference(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return value if isinstance(value, bytes) else ctypes.byref(ctypes.c_int(value))


@cache
def routine_without_gil(module: Any, name: str, kinds: tuple[str, ...]) -> Any:
    """Return a routine of a function table of SciPy as a function that releases the GIL.

    Parameters
    ----------
    module : module
        `scipy.linalg.cython_lapack` or `scipy.linalg.cython_blas`.
    name : str
        Name of the routine.
    kinds : tuple of str
        Expected types of its arguments: "char", "int" or "real".

    Returns
    -------
    function or None
        None if the routine does not exist or has other types, for example 64-bit integers.  Also
        None if there are no threads, or if Python has no `ctypes` or no C interface (PyPy).
    """
    capsule = getattr(module, "__pyx_capi__", {}).get(name)
    python: Any = getattr(ctypes, "pythonapi", None)
    if capsule is None or not hasattr(python, "PyCapsule_GetPointer") or not has_threads():
        return None
    # Prototypes are set on new objects; those of `pythonapi` are global.
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    pointer_to = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    signature = name_of(capsule)
    if argument_kinds(signature.decode()) != kinds:
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(pointer_to(capsule, signature))


def argument_kinds(signature: str) -> tuple[str, ...]:
    """Return the types of the arguments in a signature that was written by Cython."""
    arguments = signature.partition("(")[2].rstrip(")").split(", ")
    kinds = (argument.removesuffix(" *") for argument in arguments)
    return tuple(
        "real" if kind.endswith(("cython_blas_d", "cython_lapack_d", "cython_lapack_s")) else kind
        for kind in kinds
    )
