"""Whitened coordinates: f = Phi w with |f| = |w|, so that a problem in the RKHS is one in R^m.

    f(x_i) = (F w)_i,     F F^T = K,     |f|^2 = |w|^2,     f = sum_s a_s k(x_s, .),   L^T a = w

Here S are m pivots, points that depend on no others: K_SS = L L^T and F = K_nS L^-T, in the order
in which Cholesky's method with complete pivoting takes them.  If nothing but rounding is left of K
then all of its RKHS that the points can see is there, and a minimiser over w is the minimiser over
f, by the representer theorem.  Landmarks in the place of pivots give the Nyström approximation.

What is left, R = K - F F^T, bounds what a minimum of sum_i loss_i + |f|^2 / 2 over w misses: with
a_i the slopes of the losses there, duality says a^T R a / 2 <= (sum_i |a_i| sqrt(R_ii))^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..._errors import NotPositiveDefiniteError, not_finite, warn_caller
from ..._points import doubled, length, sliceable, take
from ..._runtime import budget_in_bytes, check_budget, entry_point
from ..._runtime.linalg import lapack, solve_triangular
from ...gram import RANK, Landmarks, NystroemMap, gram, significance
from ...kernels import Kernel, on_indices, reads_all
from .._choose import MOST_EXACT

__all__ = ["Whitened", "whiten"]

_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True, eq=False)
class Whitened:
    """F with F F^T = K, or nearly so, and the way back from w to coefficients.

    Make one with `Whitened.exact` or `Whitened.nystroem`.

    Attributes
    ----------
    points : points
        The m pivots or landmarks, for a matrix of kernel values their indices.
    F : ndarray of shape (n, m)
        Coordinates of the n points.
    factor : ndarray of shape (m, m)
        L, lower triangular.
    left : ndarray of shape (n,)
        The diagonal of K - F F^T; 0 but for rounding if exact.
    residual : float
        The sum of `left` as a part of the trace of K.
    approximate : bool
    message : str
        What F was made from.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Whitened
    >>> X = np.arange(24.0)[:, None] % 8  # each point three times
    >>> phi = Whitened.exact(RBF(), X)
    >>> phi.F.shape
    (24, 8)
    >>> w = np.ones((8, 1))
    >>> f = Expansion(RBF(), phi.points, phi.coefficients(w))
    >>> bool(np.allclose(f(X), phi.F @ w)), f.norm().round(3)
    (True, array([2.828]))
    """

    points: Any
    F: np.ndarray
    factor: np.ndarray
    left: np.ndarray
    residual: float
    approximate: bool
    message: str

    @classmethod
    def exact(cls, kernel: Kernel, X: Any, *, max_memory: Any = None) -> Self:
        """Factor all of K, which may be singular.

        Raises
        ------
        NotPositiveDefiniteError
            If K is not positive semidefinite, by more than rounding explains.
        """
        n = length(X)
        check_budget(
            24 * n * n, max_memory, f"the exact factor of {n} points (solver='nystroem' needs less)"
        )
        K = gram(kernel, doubled(sliceable(X)), storage="dense", max_memory=max_memory)
        # a matrix that was given says how exact its values are
        unit, (_, negative) = float(np.finfo(K.dtype).eps), significance(K.dtype)
        floor = max(n * _EPS, 100.0 * unit)
        F, pivots, left = _pivoted(np.asarray(K.release(), dtype=float), floor, negative, kernel)
        points = pivots if reads_all(kernel) else take(sliceable(doubled(X)), pivots)
        text = f"exact: {len(pivots)} of {n} points span the rest"
        residual = float(left.sum() / max(left.sum() + np.vdot(F, F), _TINY))
        return cls(points, F, np.asfortranarray(F[pivots]), left, residual, False, text)

    @classmethod
    def nystroem(
        cls, kernel: Kernel, X: Any, landmarks: Landmarks | None = None, *, max_memory: Any = None
    ) -> Self:
        """Project on the span of landmarks."""
        landmarks, n = landmarks or Landmarks(), length(X)
        m = landmarks.count(n)
        text = f"the features of {n} points on {m} landmarks (a smaller rank needs less)"
        check_budget(8 * (n * m + 3 * m * m), max_memory, text)
        kernel, X = on_indices(kernel, X)
        whole = m == n and not landmarks.given
        phi = NystroemMap.on(kernel, X) if whole else landmarks.map(kernel, X)
        F = phi.features(X)
        diagonal = kernel.diag(doubled(X))
        left = np.maximum(diagonal - np.einsum("ij,ij->i", F, F), 0.0)
        residual = float(left.sum()) / max(float(diagonal.sum()), _TINY)
        text = f"Nyström on {len(phi)} landmarks, which leave {residual:.1e} of the trace of K"
        text = "; ".join([text, *phi.flaws])
        return cls(phi.points, F, phi.factor, left, residual, True, text)

    def missed(self, A: np.ndarray) -> float:
        """Return a bound of tr(A^T (K - F F^T) A) / 2 for A of shape (n, q)."""
        return 0.5 * float(np.square(np.sqrt(self.left) @ np.abs(A)).sum())

    def coefficients(self, W: np.ndarray) -> np.ndarray:
        """Return L^-T W, the coefficients of the functions Phi W on `points`."""
        W = np.asarray(W, dtype=float)
        if W.shape[:1] != (len(self.factor),):
            raise ValueError(f"W has shape {W.shape}, but there are {len(self.factor)} coordinates")
        return solve_triangular(self.factor, W, trans="T", lower=True) if W.size else W.copy()

    def project(self, values: np.ndarray) -> np.ndarray:
        """Return L^-1 f(points): the w of the function nearest to f among those here."""
        values = np.asarray(values, dtype=float)
        return solve_triangular(self.factor, values, lower=True) if values.size else values.copy()


@entry_point
def whiten(
    kernel: Kernel,
    X: Any,
    spec: str,
    landmarks: Landmarks,
    needed: Callable[[str, int], int],
    *,
    exact: str,
    what: str,
    ordered: bool = False,
    max_memory: Any = None,
) -> Whitened:
    """Return coordinates of all points, or on landmarks.

    ============ ================================================================================
    spec         coordinates
    ============ ================================================================================
    "nystroem"   on landmarks
    "auto"       as for the solver `exact`, for the points that MOST_EXACT allows it if its problem
                 fits the memory; else on landmarks, with a warning: as many as fit, if their number
                 is free
    another      of all points
    ============ ================================================================================

    Parameters
    ----------
    needed : function of a solver and a number
        The bytes that this solver needs for so many coordinates.
    what : str
        What needs them, for an error.
    ordered : bool
        Whether outputs are in order.

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
    most = MOST_EXACT["ordered" if ordered else exact]
    if spec == "auto":
        solver = exact if n <= most and needed(exact, n) <= budget else "nystroem"
    else:
        solver = spec
    if solver != "nystroem":
        text = f"{what} (solver='nystroem' needs less)"
        check_budget(needed(solver, n), max_memory, text)
        return Whitened.exact(kernel, X, max_memory=max_memory)
    if spec == "auto" and landmarks.rank is None and not landmarks.given:
        fits = (m for m in range(min(n, RANK), 0, -1) if needed(solver, m) <= budget)
        landmarks = replace(landmarks, rank=next(fits, 1))
    m = landmarks.count(n)
    check_budget(needed(solver, m), max_memory, f"{what} on rank={m} landmarks")
    phi = Whitened.nystroem(kernel, X, landmarks, max_memory=max_memory)
    if spec == solver:
        return phi
    text = (
        f"{n} points are too many for solver='auto' to be exact, by their number or the memory; "
        f"{phi.message}. solver={exact!r} is exact, solver='nystroem' asks for this"
    )
    warn_caller(text)
    return replace(phi, message=text)


def _pivoted(
    K: np.ndarray, floor: float, negative: float, kernel: Kernel
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return F with K = F F^T, the pivots, and the diagonal of what is left; K is worked in."""
    n, diagonal = len(K), K.diagonal().copy()
    signs = np.where(np.random.default_rng(0).random(n) < 0.5, -1.0, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # checked in the next line
        seen = K @ signs
    if not np.all(np.isfinite(seen)):
        raise not_finite(kernel)
    largest = float(np.abs(diagonal).max(initial=0.0))
    # points of small and of large k(x, x) count alike; powers of 2 do not round
    size = np.exp2(np.round(0.5 * np.log2(np.maximum(diagonal, _EPS * largest or 1.0))))
    K /= size
    K /= size[:, None]
    C, order, rank, _ = lapack.dpstrf(K.T, tol=floor, lower=1, overwrite_a=1)
    rank = rank if largest > 0 else 0
    order = order.astype(np.intp) - 1
    F = np.empty((n, rank))
    F[order] = C[:, :rank]
    for j, pivot in enumerate(order[:rank]):
        F[pivot, j + 1 :] = 0.0
    F *= size[:, None]
    left = diagonal - np.einsum("ij,ij->i", F, F)
    # beside a diagonal of 0 an entry c means the eigenvalues +c and -c: only the product shows them
    gap = np.abs(seen - F @ (F.T @ signs)).max() - max(float(left.sum()), 0.0)
    lowest = min(float(left.min()), -gap / n)
    if lowest < -negative * largest:
        raise NotPositiveDefiniteError(
            f"{rank} of {n} points leave a Schur complement with entries of about {lowest:.3g} on "
            f"its diagonal, and k(x, x) is up to {largest:.3g}: {kernel} is not positive "
            f"semidefinite on these points; choose a Mercer kernel"
        )
    return F, order[:rank], np.maximum(left, 0.5 * _EPS * diagonal)  # k(x, x) is rounded, too
