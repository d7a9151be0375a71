"""A float32 Cholesky factor as the preconditioner of float64 conjugate gradients.

    S (K + diag(shift)) S ~ L L^T  in float32,   S = diag(K_ii + shift_i)^-1/2,
    P^-1 = S L^-T L^-1 S

Half the memory of a float64 factor and half its time, and a handful of products with K in float64
make the solution as exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..._errors import NotPositiveDefiniteError, not_finite
from ..._runtime import ENTRY_WORK, check_budget, entry_point, run
from ..._runtime.linalg import lapack
from ...gram import GramOperator
from .._cost import Cost
from ._cholesky import Cholesky, Factor, check_shift
from ._in_place import Triangle, check_points
from ._pcg import PreconditionedFactor, check_stopping

__all__ = ["MixedCholesky"]

_TILE = 384  # rows and columns of K evaluated at a time, in float64
_UNIT = 6e-8  # the relative rounding of float32
_EXPECTED_STEPS = 5  # 3 to 6 unless the shift is tiny
_MOST_ADDED = 1e-2  # a matrix that needs more of |A| than this on its diagonal is indefinite


@entry_point
@dataclass(frozen=True)
class MixedCholesky:
    """K + shift = L L^T in float32, repaired by conjugate gradients in float64.

    The float32 matrix, 4 n^2 bytes, is all that is held beside the Gram; it is written tile by
    tile, and the tiles are evaluated in float64.  On a TiledGram that is half the memory of
    `Cholesky`; on a DenseGram the products are cheaper.  The solution is as exact as that of a
    float64 factor: the true residual is computed in float64, and reported.

    If float32 does not see that the matrix is positive definite (lambda_max / shift beyond 1e7),
    the *preconditioner* gets a larger shift, the report says which, and it takes more steps.

    Parameters
    ----------
    tol : float
        Of the relative residual |y - (K + shift) a| / |y|.  What rounding leaves, in the order
        of 1e-17 lambda_max / shift (more if the diagonal of K varies much), is enough if it is at
        most 1e-6, or 1e-3 for a K in float32; beyond that the solution is called inaccurate.
    max_iter : int
        Products with K, beside one at the end.
    max_memory : int, str or None
        The budget for the float32 matrix (and, for `logdet` and `inverse_diagonal`, for a float64
        factor); None for half of the machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import MixedCholesky
    >>> X = np.linspace(0, 3, 200)[:, None]
    >>> factor = MixedCholesky().factorize(gram(RBF(), X, storage="tiled"), shift=0.1)
    >>> a = factor.solve(np.sin(X[:, 0]))
    >>> factor.report.residual < 1e-13
    True
    """

    tol: float = 1e-14
    max_iter: int = 100
    max_memory: Any = None
    storage: ClassVar[str] = "tiled"  # how K is best held

    def __post_init__(self) -> None:
        check_stopping(self)

    def workspace(self, n: int) -> int:
        """Return the bytes needed beside the Gram."""
        return 4 * n * n + 80 * n

    @staticmethod
    def cost(n: int, read: Cost, columns: int = 1) -> Cost:
        """Return what n points take if a pass over K takes `read`."""
        single = Cost(read=4.0 * n * n)
        step = read + 2.0 * single + Cost(products=3.0 * n * n * (columns - 1))
        return Cost(factors=n**3 / 6.0, written=4.0 * n * n) + read + _EXPECTED_STEPS * step

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Factorise K + diag(shift) in float32; the Gram is kept, whatever `overwrite` says.

        Parameters
        ----------
        gram : GramOperator
            Symmetric, held in any way; products with it repair the rounding.
        shift : float or ndarray of shape (n,)
            Non-negative.
        overwrite : bool
            Without effect.

        Raises
        ------
        NotPositiveDefiniteError
            If a shift of 1 % of |K| in the preconditioner is not enough.
        MemoryBudgetError
            If the float32 matrix does not fit `max_memory`.
        """
        shift = check_shift(gram, shift)
        check_points(gram)
        n = gram.shape[0]
        check_budget(self.workspace(n), self.max_memory, f"a float32 factor of {n} points")
        return _MixedFactor(self, gram, shift)


class _MixedFactor(PreconditionedFactor):
    _advice = (
        "The usual cause is a shift that is tiny beside the largest eigenvalue of K. Try a larger "
        "shift, or solver='cholesky'"
    )

    def __init__(self, options: MixedCholesky, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(options, gram, shift)
        self._scale = _unit_scale(gram, shift)
        self._L, extra = _factor(Triangle(_rounded(gram, self._scale)))
        if extra:
            self._message = (
                f"float32 rounding made pivots negative: {extra:.1e} of the diagonal was added in "
                f"the preconditioner"
            )
        self._note = self._message

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        scaled = self._scale[:, None] * R
        size = np.maximum(np.abs(scaled).max(axis=0), 1e-300)  # float32 has a narrow range
        Z, _ = lapack.spotrs(self._L, (scaled / size).astype(np.float32), lower=1)
        return np.asarray(self._scale[:, None] * Z * size, dtype=float)

    def logdet(self) -> float:
        return self._exact.logdet()

    def inverse_diagonal(self) -> np.ndarray:
        return self._exact.inverse_diagonal()

    @cached_property
    def _exact(self) -> Factor:
        """A float64 factor: determinants and inverses cannot be repaired afterwards."""
        check_budget(
            12 * self.size**2,
            self._options.max_memory,
            f"log det and inverses take a float64 factor of {self.size} points, which",
        )
        return Cholesky().factorize(self._gram, self._shift)


def _unit_scale(gram: GramOperator, shift: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = np.asarray(gram.diagonal(), dtype=float) + shift
    if not np.all(np.isfinite(diagonal)):
        raise not_finite(gram.kernel)
    if not np.all(diagonal > 0):
        raise NotPositiveDefiniteError(
            f"K + shift is not positive definite: its diagonal goes down to {diagonal.min():.3g}. "
            f"Try a larger shift, or solver='lstsq'"
        )
    return 1.0 / np.sqrt(diagonal)


def _rounded(gram: GramOperator, scale: np.ndarray) -> np.ndarray:
    """Return S (K + shift) S, whose diagonal is 1, as float32; K is evaluated in its own tiles."""
    n = len(scale)
    out = np.empty((n, n), dtype=np.float32)

    def column(j: int) -> Iterator[None]:
        cols = slice(j, min(j + _TILE, n))
        for i in range(0, j + 1, _TILE):
            yield
            rows = slice(i, min(i + _TILE, n))
            with np.errstate(over="ignore", invalid="ignore"):
                T = gram.block(rows, cols) * scale[rows, None]
                T *= scale[cols]
            if not np.isfinite(T.sum()):
                raise not_finite(gram.kernel)
            out[rows, cols] = T
            out[cols, rows] = T.T

    run(column, reversed(range(0, n, _TILE)), gram.n_threads, work=ENTRY_WORK * n * n)
    np.fill_diagonal(out, 1.0)
    return out


def _factor(A: Triangle) -> tuple[np.ndarray, float]:
    """Return the float32 factor of A + extra I, with an extra of 0 if that is enough."""
    extra = 0.0
    while True:
        L, info = lapack.spotrf(A.work, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return L, extra
        A.restore()
        if not extra:
            # The largest sum over a column of |A_ij|.
            strips = (np.abs(A.work[:, j : j + _TILE]) for j in range(0, len(L), _TILE))
            norm = max(float(strip.sum(axis=0, dtype=float).max()) for strip in strips)
        extra = max(4.0 * extra, _UNIT * norm)
        if extra > _MOST_ADDED * norm:
            raise NotPositiveDefiniteError(
                f"K + shift is not positive definite: pivot {info} of {len(L)} is not positive, "
                f"even with {extra / norm:.1e} of |K| added to the diagonal. The usual cause is a "
                f"kernel that is not positive semidefinite. Try a larger shift, or solver='lstsq'"
            )
        A.diagonal = np.full(len(L), 1.0 + extra, dtype=np.float32)
        A.restore_diagonal()
