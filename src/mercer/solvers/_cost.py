"""What a method would take, counted before anything is computed: the numbers that decide.

    seconds = sum over the kinds of work of (how much) * (what a unit of it takes)

The units below were measured once, on one core of a common server (AVX2, float64, OpenBLAS), as
processor time; what other cores cannot share counts for a half more, and bytes, for which they
compete, for up to twice as much.  Only their ratios matter.
They are constants, so that the same input has the same solver, and the same bits, everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, mul
from typing import Any, Self

from ..kernels import Kernel, Precomputed

__all__ = ["Cost", "evaluating", "reading"]

_SECONDS = {  # in the order of the fields of Cost
    "products": 2.5e-11,  # an operation of a product of matrices: 40 GFlop/s
    "thin": 7e-11,  # of tall thin arrays, their QR factors, small eigenproblems; never shared
    "factors": 3e-11,  # of a Cholesky factorisation; in float32 half of that
    "reductions": 4e-11,  # of a reduction to tridiagonal form of a K that fits the cache
    "entries": 1.2e-9,  # an entry of K once its <x, z> is known
    "read": 7e-11,  # a byte read from memory
    "written": 1e-9,  # a byte of an array that is new, and has to be mapped
    "moves": 1.6e-6,  # a pair of variables moved inside a block of a quadratic program
    "calls": 3e-5,  # a call of NumPy or LAPACK on something small
}
CACHE = 2**25  # bytes of the last cache
_STRUCTURED = 1000  # what an entry takes whose points are no vectors, in units of one whose are


@dataclass(frozen=True)
class Cost:
    """How much of each kind of work there is; costs add up, and are multiplied by numbers.

    Examples
    --------
    >>> from mercer.solvers import Cost
    >>> n = 3000
    >>> cholesky = Cost(factors=n**3 / 3)
    >>> cholesky.seconds < (cholesky + 10 * Cost(read=8 * n**2)).seconds
    True
    """

    products: float = 0.0
    thin: float = 0.0
    factors: float = 0.0
    reductions: float = 0.0
    entries: float = 0.0
    read: float = 0.0
    written: float = 0.0
    moves: float = 0.0
    calls: float = 0.0

    @property
    def seconds(self) -> float:
        """About how long it takes, on one core of a common machine."""
        return float(sum(map(mul, _SECONDS.values(), vars(self).values())))

    def __add__(self, other: Cost) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def __rmul__(self, times: float) -> Self:
        return type(self)(*(times * amount for amount in vars(self).values()))


def evaluating(kernel: Kernel | None, X: Any, entries: float) -> Cost:
    """Return what so many entries k(x, z) take: a product of rows, and the function of it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import evaluating
    >>> evaluating(RBF(), np.zeros((10, 5)), entries=100.0).products
    1000.0
    """
    if isinstance(kernel, Precomputed):
        return Cost(read=8.0 * entries)
    if kernel is not None and (kernel.costly or not kernel.on_vectors):
        return Cost(entries=_STRUCTURED * entries)
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1
    return Cost(products=2.0 * columns * entries, entries=entries)


def reading(kernel: Kernel | None, X: Any, n: int, *, stored: bool) -> tuple[Cost, Cost]:
    """Return what it takes to hold K, and to read it once; in tiles each entry serves twice.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import reading
    >>> hold, read = reading(RBF(), np.zeros((10, 5)), 10, stored=True)
    >>> read.read  # bytes
    800.0
    """
    half = evaluating(kernel, X, n * n / 2.0)
    if not stored:
        return Cost(), half
    held = Cost() if isinstance(kernel, Precomputed) else half + Cost(written=8.0 * n * n)
    return held, Cost(read=8.0 * n * n)
