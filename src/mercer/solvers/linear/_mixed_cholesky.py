"""Conjugate gradients in float64, preconditioned by a Cholesky factor L in float32.

    S (K + diag(shift)) S ~ L L^T  in float32,   S = diag(K_ii + shift_i)^-1/2,
    P^-1 = S L^-T L^-1 S

The factor takes half the memory and half the time of a float64 factor.  A few products with K in
float64 make the solution as exact as that of a float64 factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..._core import (
    ENTRY_WORK,
    MemoryLimit,
    NotPositiveDefiniteError,
    check_budget,
    entry_point,
    not_finite_error,
    run_in_threads,
)
from ..._core.linalg import lapack
from ...gram import GramOperator
from .._cost_model import Cost
from ._cholesky import Cholesky, Factor, InPlaceSymmetric, check_points, check_shift
from ._pcg import PreconditionedFactor, check_stopping_criteria

_TILE = 384  # rows and columns of a tile of K, which is evaluated in float64
_FLOAT32_EPS = 6e-8  # unit roundoff of float32; the jitter starts at this times |A|
_EXPECTED_STEPS = 5  # CG steps in the cost model; 3 to 6 are usual unless the shift is tiny
_MAX_JITTER = 1e-2  # if more jitter, relative to |A|, is needed, A is considered indefinite


@entry_point
@dataclass(frozen=True)
class MixedCholesky:
    """Cholesky factorisation of K + diag(shift) in float32, corrected by CG in float64.

    Prefer it to `Cholesky` if 8 n^2 bytes do not fit the memory but 4 n^2 bytes do, and to
    `ConjugateGradient` if the shift is so small that the latter would need many steps.

    The float32 factor preconditions conjugate gradients.  It takes 4 n^2 bytes, and is computed
    from tiles of K that are evaluated in float64.  With a TiledGram, the solver needs half the
    memory of `Cholesky`; with a DenseGram it needs more memory, but products with K are cheaper.
    The solution is as exact as that of a float64 factor: the true residual is computed in float64,
    and reported.

    If the matrix is not positive definite in float32 (lambda_max / shift above about 1e7), jitter
    is added to the diagonal of the *preconditioner*.  The solution remains exact, but takes more
    steps; the report contains the jitter.

    Parameters
    ----------
    tol : float, default=1e-14
        Relative residual |y - (K + shift) a| / |y| at which the iteration stops.  Rounding may
        prevent that: it causes a residual of about 1e-17 lambda_max / shift, or more if the
        diagonal of K varies much.  Such a residual is accepted up to 1e-6 (1e-3 for a K in
        float32); above that, the solution is reported as inaccurate.
    max_iter : int, default=100
        Maximum number of CG steps.  Each step is a product with K; one more product is needed at
        the end for the residual.
    max_memory : int, str or None, default=None
        Memory budget for the float32 matrix and, for `logdet` and `inverse_diagonal`, for a float64
        factor; None for half of the memory of the computer.

    See Also
    --------
    Cholesky : A float64 factor.
    ConjugateGradient : A low-rank preconditioner, which needs less memory.

    References
    ----------
    Higham and Mary, "Mixed precision algorithms in numerical linear algebra", Acta Numerica, 2022.

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
    max_memory: MemoryLimit = None
    storage: ClassVar[str] = "tiled"  # the recommended storage of K

    def __post_init__(self) -> None:
        check_stopping_criteria(self)

    def workspace(self, n: int) -> int:
        """Return the memory that the solver needs in addition to K.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        int
            Number of bytes, mainly those of the float32 factor.
        """
        return 4 * n * n + 80 * n

    @staticmethod
    def cost(n: int, read: Cost, columns: int = 1) -> Cost:
        """Predict the cost of factorising and solving.

        Parameters
        ----------
        n : int
            Number of points.
        read : Cost
            Cost of one pass over K.
        columns : int, default=1
            Number of right-hand sides.

        Returns
        -------
        Cost
            The expected work.
        """
        float32_read = Cost(read=4.0 * n * n)
        step = read + 2.0 * float32_read + Cost(products=3.0 * n * n * (columns - 1))
        return Cost(factors=n**3 / 6.0, written=4.0 * n * n) + read + _EXPECTED_STEPS * step

    def factorize(self, gram: GramOperator, shift: Any = 0.0, *, overwrite: bool = False) -> Factor:
        """Factorise K + diag(shift) in float32; the shift may be 0.

        Parameters
        ----------
        gram : GramOperator of shape (n, n)
            The symmetric matrix K.
        shift : float or ndarray of shape (n,), default=0.0
            Non-negative numbers that are added to the diagonal of K.
        overwrite : bool, default=False
            Ignored; `gram` is not changed, but `solve` uses it later.

        Returns
        -------
        Factor
            The preconditioner; `solve` iterates in float64.  Log determinants and diagonals of the
            inverse need a float64 factor, which is computed on demand.

        Raises
        ------
        NotPositiveDefiniteError
            If the factorisation fails even with jitter of 1 % of |K| on the diagonal.
        MemoryBudgetError
            If the float32 matrix does not fit `max_memory`.
        """
        shift = check_shift(gram, shift)
        check_points(gram)
        n = gram.shape[0]
        check_budget(self.workspace(n), self.max_memory, f"a float32 factor of {n} points")
        return _MixedFactor(self, gram, shift)


class _MixedFactor(PreconditionedFactor):
    """Conjugate gradients with a float32 Cholesky factor as the preconditioner."""

    _options: MixedCholesky

    _advice = (
        "The usual cause is a shift that is tiny compared to the largest eigenvalue of K. Try a "
        "larger shift, or solver='cholesky'"
    )

    def __init__(self, options: MixedCholesky, gram: GramOperator, shift: np.ndarray) -> None:
        super().__init__(options, gram, shift)
        self._scale = _unit_scale(gram, shift)
        self._L, jitter = _factor_with_jitter(InPlaceSymmetric(_float32_matrix(gram, self._scale)))
        if jitter:
            self._message = (
                f"float32 rounding made pivots negative: jitter of {jitter:.1e} of the diagonal "
                f"was added in the preconditioner"
            )
        self._note = self._message

    def _precondition(self, R: np.ndarray) -> np.ndarray:
        scaled = self._scale[:, None] * R
        # Normalise the columns, because float32 overflows and underflows easily.
        size = np.maximum(np.abs(scaled).max(axis=0), 1e-300)
        Z, _ = lapack.spotrs(self._L, (scaled / size).astype(np.float32), lower=1)
        return np.asarray(self._scale[:, None] * Z * size, dtype=float)

    def logdet(self) -> float:
        return self._exact.logdet()

    def inverse_diagonal(self) -> np.ndarray:
        return self._exact.inverse_diagonal()

    @cached_property
    def _exact(self) -> Factor:
        """A float64 Cholesky factor, for determinants and inverses, which CG cannot correct."""
        what = f"log det and inverses need a float64 factor of {self.size} points, which"
        check_budget(12 * self.size**2, self._options.max_memory, what)
        return Cholesky().factorize(self._gram, self._shift)


def _unit_scale(gram: GramOperator, shift: np.ndarray) -> np.ndarray:
    """Return the diagonal of S, for which S (K + diag(shift)) S has ones on its diagonal."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = np.asarray(gram.diagonal(), dtype=float) + shift
    if not np.all(np.isfinite(diagonal)):
        raise not_finite_error(gram.kernel)
    if not np.all(diagonal > 0):
        raise NotPositiveDefiniteError(
            f"K + shift is not positive definite: its smallest diagonal entry is "
            f"{diagonal.min():.3g}. Try a larger shift, or solver='lstsq'"
        )
    scale: np.ndarray = 1.0 / np.sqrt(diagonal)
    return scale


def _float32_matrix(gram: GramOperator, scale: np.ndarray) -> np.ndarray:
    """Return S (K + diag(shift)) S, whose diagonal is 1, as a float32 array."""
    n = len(scale)
    out = np.empty((n, n), dtype=np.float32)

    def tile_column(j: int) -> Iterator[None]:
        cols = slice(j, min(j + _TILE, n))
        for i in range(0, j + 1, _TILE):
            yield
            rows = slice(i, min(i + _TILE, n))
            with np.errstate(over="ignore", invalid="ignore"):
                tile = gram.block(rows, cols) * scale[rows, None]
                tile *= scale[cols]
            if not np.isfinite(tile.sum()):
                raise not_finite_error(gram.kernel)
            out[rows, cols] = tile
            out[cols, rows] = tile.T

    columns = reversed(range(0, n, _TILE))
    run_in_threads(tile_column, columns, gram.n_threads, work=ENTRY_WORK * n * n)
    np.fill_diagonal(out, 1.0)
    return out


def _factor_with_jitter(A: InPlaceSymmetric) -> tuple[np.ndarray, float]:
    """Return the float32 Cholesky factor of A + jitter I, and the jitter.

    The jitter is 0 if A is positive definite in float32.  Otherwise it is increased by factors of 4
    until A + jitter I is positive definite.
    """
    jitter = 0.0
    while True:
        L, info = lapack.spotrf(A.work, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return L, jitter
        A.restore()
        if not jitter:
            # The 1-norm of A: the largest sum of |A_ij| over a column.
            strips = (np.abs(A.work[:, j : j + _TILE]) for j in range(0, len(L), _TILE))
            norm = max(float(strip.sum(axis=0, dtype=float).max()) for strip in strips)
        jitter = max(4.0 * jitter, _FLOAT32_EPS * norm)
        if jitter > _MAX_JITTER * norm:
            raise NotPositiveDefiniteError(
                f"K + shift is not positive definite: pivot {info} of {len(L)} is not positive, "
                f"even with {jitter / norm:.1e} of |K| added to the diagonal. The usual cause is a "
                f"kernel that is not positive semidefinite. Try a larger shift, or solver='lstsq'"
            )
        A.diagonal = np.full(len(L), 1.0 + jitter, dtype=np.float32)
        A.restore_diagonal()
