"""Power iteration with deflation (also called peeling), the textbook eigensolver.

The step v <- A v / |A v| is repeated until v is an eigenvector.  The next eigenvector is then
computed in the same way, orthogonal to those found so far.

A multiplies the component of v along the eigenvector u_i by its eigenvalue l_i, so the eigenvector
of the largest eigenvalue dominates.  Each step reduces the error of v by the factor l_2 / l_1, and
that of the eigenvalue by the square of this factor.  Textbook deflation subtracts l u u^T from A.
Here v is projected onto the complement of the earlier eigenvectors instead, so that their errors do
not affect later ones.

Each step is one product of A with a single vector, so the method needs many more passes over K than
`BlockKrylov`.  It is meant for teaching and comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import (
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    as_generator,
    entry_point,
)
from ..._core.linalg import eigh
from .._report import Status
from ._eigenpairs import EigenPairs, assemble_eigenpairs, check_k, eigenvalue_rounding, matrix_norms

# Tolerance of the relative residual if tol = 0; eigenvalues are then accurate to rounding.
_DEFAULT_TOL = 1e-8
_ADVICE = (
    "the usual cause is two eigenvalues that are close. Raise max_iter or tol, or use BlockKrylov"
)


@entry_point
@dataclass(frozen=True)
class PowerDeflation:
    """Power iteration with deflation: O(n^2) operations per step, memory for k vectors.

    Parameters
    ----------
    tol : float, default=0.0
        Stop when the residual |A v - t v| of the eigenvalue t is at most tol |t|, or no larger than
        rounding errors.  0 means 1e-8.
    max_iter : int, optional
        Maximum number of steps per eigenpair, 1000 by default.
    random_state : int or None, default=None
        Seed for the starting vectors.

    Notes
    -----
    The method converges to the eigenvalue of largest *modulus*.  For a matrix that is not positive
    semidefinite, this may be a negative eigenvalue.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import PowerDeflation
    >>> K = gram(Linear(), [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> PowerDeflation(random_state=0).eigenpairs(K, 2).values.round(6)
    array([9., 4.])
    """

    tol: float = 0.0
    max_iter: int | None = None
    random_state: RandomState = None

    def workspace(self, n: int, k: int) -> int:
        """Return the memory needed in addition to K for k eigenpairs of n points, in bytes."""
        return 8 * n * (2 * k + 6)

    def eigenpairs(
        self,
        gram: Any,
        k: int | None = None,
        *,
        log: ProgressCallback | None = None,
        **_: Any,
    ) -> EigenPairs:
        """Return the k leading eigenpairs, computed one after the other."""
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        rng, max_iter, tol = (
            as_generator(self.random_state),
            self.max_iter or 1000,
            self.tol or _DEFAULT_TOL,
        )
        U, largest, steps = np.empty((n, 0)), 0.0, 0
        for j in range(k):
            v = _deflate(rng.standard_normal(n), U)
            steps_before, last_residual = steps, np.inf
            for _step in range(max_iter):
                w = _deflate(np.asarray(gram @ v, dtype=float), U, normalise=False)
                steps += 1
                t, norm = float(v @ w), float(np.linalg.norm(w))
                residual = float(np.linalg.norm(w - t * v))
                largest = max(largest, abs(t))
                # Stop at tol / 2, because the final rotation mixes the residuals of equal
                # eigenvalues.  If the residual is no larger than rounding errors, continue only
                # while it still decreases; in a null space it is only noise, so stop at once.
                floor = _residual_floor(gram, largest)
                at_rounding = norm <= floor or (
                    residual <= floor and not residual <= 0.9 * last_residual
                )
                if residual <= 0.5 * tol * abs(t) or at_rounding:
                    break
                v, last_residual = _deflate(w / norm, U), residual
            if log is not None:
                n_products = steps - steps_before
                progress = f"{t:.6g} after {n_products} products, residual {residual:.1e}"
                log(ProgressStep(f"component {j + 1}: {progress}"))
            U = np.column_stack([U, v])
        AU = np.asarray(gram @ U, dtype=float)
        values, W = eigh(0.5 * (U.T @ AU + AU.T @ U))
        return assemble_eigenpairs(
            repr(self),
            gram.dot,
            values,
            U @ W,
            norms=matrix_norms(gram),
            status=Status.CONVERGED,
            watch=watch,
            n_iter=steps,
            dtype=gram.dtype,
            tol=tol,
            advice=_ADVICE,
        )


def _deflate(v: np.ndarray, U: np.ndarray, normalise: bool = True) -> np.ndarray:
    """Project v onto the orthogonal complement of span(U), and normalise the result."""
    for _ in range(2):
        v = v - U @ (U.T @ v)
    return v / np.linalg.norm(v) if normalise else v


def _residual_floor(gram: Any, largest: float) -> float:
    """Return the residual norm |A v - t v| below which a residual is only rounding error."""
    norm = gram.uncentred_norm if hasattr(gram, "uncentred_norm") else largest
    return eigenvalue_rounding(gram.dtype, max(norm, largest))
