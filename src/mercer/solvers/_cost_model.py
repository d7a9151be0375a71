"""A cost model that predicts how long a solver will take.

    seconds = sum over the kinds of work of (amount of work) * (seconds per unit of that work)

The automatic choice of a solver compares these predictions.  The seconds per unit were measured
once, as processor time on one core of a typical server (AVX2, float64, OpenBLAS).  They were then
increased by 50 % for work that cannot run in parallel, and by up to 100 % for memory traffic,
because cores share the memory bandwidth.  Only the ratios matter.  The values are constants, so
that the same input selects the same solver, and gives bit-for-bit identical results, on every
computer.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, mul
from typing import Self

from .._core import Points
from ..kernels import Kernel, Precomputed

_SECONDS_PER_UNIT = {  # the keys are in the order of the fields of Cost
    "products": 2.5e-11,  # per flop of a matrix product: 40 GFlop/s
    "thin": 7e-11,  # per flop with tall thin arrays, QR or small eigenproblems (one thread)
    "factors": 3e-11,  # per flop of a float64 Cholesky factorisation; float32 takes half the time
    "reductions": 4e-11,  # per flop of a tridiagonal reduction of a K that fits in the cache
    "entries": 1.2e-9,  # per entry of K, in addition to the inner product <x, z>
    "read": 7e-11,  # per byte read from memory
    "written": 1e-9,  # per byte of a newly allocated array, including the page faults
    "moves": 1.6e-6,  # per SMO step (two variables) inside a block of a quadratic program
    "calls": 3e-5,  # per call of NumPy or LAPACK on a small array
}
CACHE_BYTES = 2**25  # assumed size of the last-level cache, in bytes
# How many times longer an entry of K takes for strings, graphs and the like than for vectors.
_STRUCTURED_ENTRY_FACTOR = 1000


@dataclass(frozen=True)
class Cost:
    """The amount of work of each kind that a computation takes.

    Two costs can be added, and `number * cost` multiplies all amounts.

    Parameters
    ----------
    products, thin, factors, reductions : float, default=0.0
        Floating-point operations in matrix products, on tall thin arrays, in Cholesky
        factorisations, and in reductions to tridiagonal form.
    entries : float, default=0.0
        Number of entries of K that are evaluated.
    read, written : float, default=0.0
        Bytes read from memory, and bytes of newly allocated arrays.
    moves : float, default=0.0
        Number of SMO steps, each of which changes two variables.
    calls : float, default=0.0
        Number of calls of NumPy or LAPACK on small arrays.

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
        """Predicted time on one core of a typical server."""
        return float(sum(map(mul, _SECONDS_PER_UNIT.values(), vars(self).values())))

    def __add__(self, other: Cost) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def __rmul__(self, times: float) -> Self:
        return type(self)(*(times * amount for amount in vars(self).values()))


def cost_of_entries(kernel: Kernel | None, X: Points, entries: float) -> Cost:
    """Return the cost of evaluating a given number of kernel values k(x, z).

    If the points are vectors, each value is computed from an inner product <x, z>.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel; None means an arbitrary kernel on vectors.
    X : array-like or sequence
        The points.
    entries : float
        Number of kernel values.

    Returns
    -------
    cost : Cost

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import cost_of_entries
    >>> cost_of_entries(RBF(), np.zeros((10, 5)), entries=100.0).products
    1000.0
    """
    if isinstance(kernel, Precomputed):
        return Cost(read=8.0 * entries)
    if kernel is not None and (kernel.domain.costly or not kernel.domain.on_vectors):
        return Cost(entries=_STRUCTURED_ENTRY_FACTOR * entries)
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1
    return Cost(products=2.0 * columns * entries, entries=entries)


def cost_of_storing_and_reading(
    kernel: Kernel | None, X: Points, n: int, *, stored: bool
) -> tuple[Cost, Cost]:
    """Return the cost of storing the kernel matrix K, and the cost of one pass over it.

    If K is not stored, each pass evaluates its entries again.  Only half of them are evaluated,
    because K is symmetric.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel; None means an arbitrary kernel on vectors.
    X : array-like or sequence
        The points.
    n : int
        Number of points.
    stored : bool
        Whether K is stored as an array.

    Returns
    -------
    storing, reading : Cost

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import cost_of_storing_and_reading
    >>> storing, read = cost_of_storing_and_reading(RBF(), np.zeros((10, 5)), 10, stored=True)
    >>> read.read  # bytes
    800.0
    """
    half = cost_of_entries(kernel, X, n * n / 2.0)
    if not stored:
        return Cost(), half
    storing = Cost() if isinstance(kernel, Precomputed) else half + Cost(written=8.0 * n * n)
    return storing, Cost(read=8.0 * n * n)
