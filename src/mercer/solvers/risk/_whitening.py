"""Whitened coordinates w in R^m of functions f in the RKHS, with equal norms, |f| = |w|.

    f(x_i) = (F w)_i,     F F^T = K,     |f|^2 = |w|^2,     f = sum_s a_s k(x_s, .),   L^T a = w

S is a set of m pivots, points that are linearly independent in feature space, with K_SS = L L^T and
F = K_nS L^-T.  Cholesky's method with complete pivoting selects them.  If the residual K - F F^T is
only rounding, the pivots span the images of all points.  By the representer theorem, the minimiser
over w is then the minimiser over f.  With landmarks instead of pivots this is the Nyström
approximation.

The residual R = K - F F^T also bounds the error of the approximation.  Let a_i be the slopes of the
losses at the minimum of sum_i loss_i + |f|^2 / 2 over w.  By duality, this minimum exceeds the
exact one over all f by at most a^T R a / 2 <= (sum_i |a_i| sqrt(R_ii))^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from ..._core import (
    MemoryLimit,
    NotPositiveDefiniteError,
    Points,
    as_csr,
    as_float64,
    budget_in_bytes,
    check_budget,
    entry_point,
    length,
    not_finite_error,
    take,
    warn_caller,
)
from ..._core.linalg import lapack, solve_triangular
from ...blocks import BlockRows, Blocks, map_rows
from ...gram import Landmarks, NystroemMap, gram, residual_tolerances
from ...kernels import Kernel, as_index_kernel, expects_precomputed_rows
from .._choose_solver import affordable_landmarks, use_landmarks

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True, eq=False)
class WhitenedCoordinates:
    """Whitened coordinates F of points in feature space, with F F^T = K exactly or approximately.

    A function with weights w has the values F w at the points and the RKHS norm |w|.  The method
    `coefficients` converts w to the coefficients of a kernel expansion.  Create objects with
    `WhitenedCoordinates.exact` or `WhitenedCoordinates.nystroem`.

    Attributes
    ----------
    points : points
        The m pivots or landmarks; their indices if the kernel is a precomputed matrix.
    F : ndarray of shape (n, m)
        Coordinates of the n points.
    factor : ndarray of shape (m, m)
        Lower triangular Cholesky factor L of the kernel matrix of `points`.
    residual_diagonal : ndarray of shape (n,)
        The diagonal of K - F F^T; only rounding errors if F is exact.
    residual : float
        The sum of `residual_diagonal` relative to the trace of K.
    approximate : bool
        Whether F comes from landmarks.
    message : str
        Description of how F was computed, for reports.

    See Also
    --------
    whiten : Choose between exact and approximate coordinates.
    mercer.gram.NystroemMap : The features of new points.

    References
    ----------
    Bach and Jordan, "Kernel independent component analysis", Journal of Machine Learning Research,
    2002, for the pivoted Cholesky factor of a kernel matrix.

    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import WhitenedCoordinates
    >>> X = np.arange(24.0)[:, None] % 8  # each point three times
    >>> phi = WhitenedCoordinates.exact(RBF(), X)
    >>> phi.F.shape
    (24, 8)
    >>> w = np.ones((8, 1))
    >>> f = Expansion(RBF(), phi.points, phi.coefficients(w))
    >>> bool(np.allclose(f(X), phi.F @ w)), f.norm().round(3)
    (True, array([2.828]))
    """

    points: Points
    F: np.ndarray
    factor: np.ndarray
    residual_diagonal: np.ndarray
    residual: float
    approximate: bool
    message: str

    @classmethod
    def exact(cls, kernel: Kernel, X: Points, *, max_memory: MemoryLimit = None) -> Self:
        """Return coordinates from the factorisation of the full K, which may be singular.

        Parameters
        ----------
        kernel : Kernel
            A positive semidefinite kernel whose parameters are all numbers.
        X : points
            The n points.
        max_memory : int, str or None, default=None
            Memory budget; None for half of the memory of the computer.

        Returns
        -------
        WhitenedCoordinates
            F has shape (n, m), where m is the numerical rank of K.

        Raises
        ------
        NotPositiveDefiniteError
            If K is indefinite by more than rounding.
        MemoryBudgetError
            If 24 n^2 bytes do not fit the memory budget.
        """
        n = length(X)
        text = f"the exact factor of {n} points (solver='nystroem' needs less)"
        check_budget(24 * n * n, max_memory, text)
        K = gram(kernel, as_float64(as_csr(X)), storage="dense", max_memory=max_memory)
        # The dtype of a precomputed matrix determines the precision of its values.
        precision, (_, negative_tol) = float(np.finfo(K.dtype).eps), residual_tolerances(K.dtype)
        floor = max(n * _EPS, 100.0 * precision)
        F, pivots, residuals = _pivoted_cholesky(
            np.asarray(K.release(), dtype=float),  # no variable, which would keep the matrix alive
            *(floor, negative_tol, kernel),
        )
        points = pivots if expects_precomputed_rows(kernel) else take(as_csr(as_float64(X)), pivots)
        text = f"exact: {len(pivots)} of {n} points span the others in feature space"
        residual = float(residuals.sum() / max(residuals.sum() + np.vdot(F, F), _TINY))
        factor = np.asfortranarray(F[pivots])
        return cls(points, F, factor, residuals, residual, approximate=False, message=text)

    @classmethod
    def nystroem(
        cls,
        kernel: Kernel,
        X: Points | Blocks,
        landmarks: Landmarks | None = None,
        *,
        among: Points = None,
        max_memory: MemoryLimit = None,
    ) -> Self:
        """Return approximate coordinates, from the projection on the span of landmarks.

        If X is `Blocks`, the coordinates are computed block by block, and only they are stored.

        Parameters
        ----------
        kernel : Kernel
            A positive semidefinite kernel whose parameters are all numbers.
        X : points or Blocks
            The n points.
        landmarks : Landmarks or None, default=None
            How many landmarks to choose, and how; None means `Landmarks()`.
        among : points or None, default=None
            The points from which landmarks are chosen; None means X.
        max_memory : int, str or None, default=None
            Memory budget; None for half of the memory of the computer.

        Returns
        -------
        WhitenedCoordinates
            F has shape (n, m) for m landmarks.
        """
        landmarks, n = landmarks or Landmarks(), length(X)
        m = landmarks.count(n)
        text = f"the features of {n} points on {m} landmarks (a smaller rank needs less)"
        check_budget(8 * (n * m + 3 * m * m), max_memory, text)
        if not isinstance(X, Blocks):
            kernel, X = as_index_kernel(kernel, X)
            among = X if among is None else as_index_kernel(kernel, among)[1]
        uses_all_points = m == length(among) and not landmarks.given
        phi = NystroemMap.on(kernel, among) if uses_all_points else landmarks.map(kernel, among)
        F = phi.features(X)
        diagonal = map_rows(X, _diagonal, kernel)
        residual_diagonal = np.maximum(diagonal - np.einsum("ij,ij->i", F, F), 0.0)
        residual = float(residual_diagonal.sum()) / max(float(diagonal.sum()), _TINY)
        text = f"Nyström on {len(phi)} landmarks, relative trace error {residual:.1e}"
        text = "; ".join([text, *phi.report_remarks])
        return cls(phi.points, F, phi.factor, residual_diagonal, residual, True, text)

    def approximation_bound(self, A: np.ndarray) -> float:
        """Return an upper bound on tr(A^T (K - F F^T) A) / 2.

        If A holds the slopes of the losses at the minimum over w, this bounds how much lower the
        minimum over all f in the RKHS can be.

        Parameters
        ----------
        A : ndarray of shape (n, q)
            Coefficients of the points.

        Returns
        -------
        float
            The bound.
        """
        return 0.5 * float(np.square(np.sqrt(self.residual_diagonal) @ np.abs(A)).sum())

    def coefficients(self, W: np.ndarray) -> np.ndarray:
        """Convert weights of the coordinates to coefficients of a kernel expansion on `points`.

        The result is L^-T W with the Cholesky factor L.

        Parameters
        ----------
        W : ndarray of shape (m, q)
            Weights, one function per column.

        Returns
        -------
        ndarray of shape (m, q)
            The coefficients.
        """
        W = np.asarray(W, dtype=float)
        if W.shape[:1] != (len(self.factor),):
            raise ValueError(f"W has shape {W.shape}, but there are {len(self.factor)} coordinates")
        return solve_triangular(self.factor, W, trans="T", lower=True) if W.size else W.copy()

    def project(self, values: np.ndarray) -> np.ndarray:
        """Return the weights w of the projection of a function f, given its values at `points`.

        The result is L^-1 f(points) with the Cholesky factor L.

        Parameters
        ----------
        values : ndarray of shape (m,) or (m, q)
            Values of one or several functions at the m points.

        Returns
        -------
        ndarray of shape (m,) or (m, q)
            The weights.
        """
        values = np.asarray(values, dtype=float)
        return solve_triangular(self.factor, values, lower=True) if values.size else values.copy()


@entry_point
def whiten(
    kernel: Kernel,
    X: Points | Blocks,
    spec: str,
    landmarks: Landmarks,
    needed: Callable[[str, int], int],
    *,
    exact: str,
    what: str,
    ordered: bool = False,
    among: Points = None,
    max_memory: MemoryLimit = None,
) -> WhitenedCoordinates:
    """Return whitened coordinates, exact or from landmarks.

    ============ ================================================================================
    spec         coordinates
    ============ ================================================================================
    "nystroem"   from landmarks
    "auto"       exact, if the number of points is within the limit of the solver `exact` and the
                 problem fits into memory; else from landmarks, with a warning (as many landmarks
                 as fit into memory, unless their number is fixed)
    other        exact
    ============ ================================================================================

    Parameters
    ----------
    kernel : Kernel
        A positive semidefinite kernel whose parameters are all numbers.
    X : points or Blocks
        The n points.
    spec : str
        The `solver` parameter of the estimator; see the table.
    landmarks : Landmarks
        How to choose landmarks.
    needed : callable
        `needed(solver, m)` returns the bytes that a solver needs for m coordinates.
    exact : str
        Name of the exact solver.
    what : str
        Description of the problem in error messages.
    ordered : bool, default=False
        Whether the outputs are constrained to be in ascending order, which is more expensive; the
        limit of points for "auto" is then lower.
    among : points or None, default=None
        The points from which landmarks are chosen; None means X.  Must be given if X is `Blocks`,
        for which `spec` must be "nystroem".
    max_memory : int, str or None, default=None
        Memory budget; None for half of the memory of the computer.

    Returns
    -------
    WhitenedCoordinates
        F has shape (n, m): m is the rank of K, or the number of landmarks.

    See Also
    --------
    WhitenedCoordinates : The result.

    References
    ----------
    Bach and Jordan, "Kernel independent component analysis", Journal of Machine Learning Research,
    2002, for the pivoted Cholesky factor of a kernel matrix.

    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Landmarks
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import whiten
    >>> X = np.arange(5.0)[:, None]
    >>> found = whiten(
    ...     RBF(), X, "exact", Landmarks(), lambda s, m: 8 * m * m, exact="exact", what="this"
    ... )
    >>> bool(np.allclose(found.F @ found.F.T, RBF()(X)))
    True
    """
    n, budget = length(X), budget_in_bytes(max_memory)
    limit = "ordered" if ordered else exact
    fits = spec != "auto" or needed(exact, n) <= budget
    if not use_landmarks(spec, n, limit, fits):
        solver = exact if spec == "auto" else spec
        text = f"{what} (solver='nystroem' needs less)"
        check_budget(needed(solver, n), max_memory, text)
        return WhitenedCoordinates.exact(kernel, X, max_memory=max_memory)
    solver = "nystroem"
    landmarks = affordable_landmarks(landmarks, spec, n, partial(needed, solver), budget)
    m = landmarks.count(n)
    check_budget(needed(solver, m), max_memory, f"{what} on rank={m} landmarks")
    phi = WhitenedCoordinates.nystroem(kernel, X, landmarks, among=among, max_memory=max_memory)
    if spec == solver:
        return phi
    text = (
        f"{n} points are too many for solver='auto' to be exact, because of their number or the "
        f"memory budget; {phi.message}. Use solver={exact!r} for the exact solution, or "
        f"solver='nystroem' to use this approximation without a warning"
    )
    warn_caller(text)
    return replace(phi, message=text)


def _diagonal(rows: BlockRows, kernel: Kernel) -> np.ndarray:
    return kernel.diag(as_float64(rows.X))


def _pivoted_cholesky(
    K: np.ndarray, floor: float, negative_tol: float, kernel: Kernel
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return F with K = F F^T, the pivots, and the diagonal of the residual; overwrites K."""
    n, diagonal = len(K), K.diagonal().copy()
    probe = np.where(np.random.default_rng(0).random(n) < 0.5, -1.0, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # the next line checks for overflow
        product = K @ probe
    if not np.all(np.isfinite(product)):
        raise not_finite_error(kernel)
    largest = float(np.abs(diagonal).max(initial=0.0))
    # Scale K so that its diagonal is about 1; otherwise points with a small k(x, x) would be
    # discarded as rounding errors.  Scaling by powers of 2 is exact.
    scale = np.exp2(np.round(0.5 * np.log2(np.maximum(diagonal, _EPS * largest or 1.0))))
    K /= scale
    K /= scale[:, None]
    C, order, rank, _ = lapack.dpstrf(K.T, tol=floor, lower=1, overwrite_a=1)
    rank = rank if largest > 0 else 0
    order = order.astype(np.intp) - 1
    F = np.empty((n, rank))
    F[order] = C[:, :rank]
    for j, pivot in enumerate(order[:rank]):
        F[pivot, j + 1 :] = 0.0
    F *= scale[:, None]
    residual_diagonal = diagonal - np.einsum("ij,ij->i", F, F)
    # A residual with zero diagonal but nonzero off-diagonal entries c has eigenvalues +c and -c.
    # Its diagonal does not show them, but its product with a vector of random signs does.
    excess = np.abs(product - F @ (F.T @ probe)).max() - max(float(residual_diagonal.sum()), 0.0)
    lowest = min(float(residual_diagonal.min()), -excess / n)
    if lowest < -negative_tol * largest:
        raise NotPositiveDefiniteError(
            f"after {rank} of {n} pivots the Schur complement has diagonal entries of about "
            f"{lowest:.3g}, and k(x, x) is up to {largest:.3g}: {kernel} is not positive "
            f"semidefinite on these points; choose a Mercer kernel"
        )
    # k(x, x) itself is rounded, so a residual is at least half a unit in its last place.
    return F, order[:rank], np.maximum(residual_diagonal, 0.5 * _EPS * diagonal)
