"""The textbook method: the power iteration, and peeling off what it has found.

    v <- A v / |A v|      until it is an eigenvector; then the next one, orthogonal to it

A multiplies the part of v along the eigenvector u_i by l_i, so that the largest wins: the error
shrinks by l_2 / l_1 a step, that of the eigenvalue by its square.  Peeling subtracts l u u^T from
A; done as a projection of v instead, errors of earlier pairs do not spill into later ones.  One
product with A a step, for one vector at a time: many times the passes over K of BlockKrylov, which
is why it is here to be taught and compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime import Step, Stopwatch, entry_point, generator
from ..._runtime.linalg import eigh
from .._report import Status
from ._eigenpairs import EigenPairs, check_k, measured, norms_of, rounding

__all__ = ["PowerPeeling"]

_TOL = 1e-8
_ADVICE = (
    "the usual cause is two eigenvalues that are close. Raise max_iter or tol, or take BlockKrylov"
)


@entry_point
@dataclass(frozen=True)
class PowerPeeling:
    """The power method with peeling: O(k n^2) a round, memory for k vectors.

    Parameters
    ----------
    tol : float
        Stop when |A v - t v| is at most tol times the eigenvalue |t| (or at rounding); 0 stands
        for 1e-8.
    max_iter : int, optional
        Steps per component, 1000 by default.
    random_state : int or None
        Seeds the starting vectors.

    Notes
    -----
    The method follows the eigenvalue of largest *modulus*; of a matrix that is not positive
    semidefinite it may find a negative one.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import PowerPeeling
    >>> K = gram(Linear(), [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> PowerPeeling(random_state=0).eigenpairs(K, 2).values.round(6)
    array([9., 4.])
    """

    tol: float = 0.0
    max_iter: int | None = None
    random_state: Any = None

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the vectors, their images, and a few more."""
        return 8 * n * (2 * k + 6)

    def eigenpairs(
        self,
        gram: Any,
        k: int | None = None,
        *,
        say: Callable[[str], None] | None = None,
        **_: Any,
    ) -> EigenPairs:
        """Return the k leading eigenpairs, found one after the other."""
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        rng, most, tol = generator(self.random_state), self.max_iter or 1000, self.tol or _TOL
        U, largest, steps = np.empty((n, 0)), 0.0, 0
        for j in range(k):
            v = _apart(rng.standard_normal(n), U)
            before, last = steps, np.inf
            for _step in range(most):
                w = _apart(np.asarray(gram @ v, dtype=float), U, unit=False)
                steps += 1
                t, size = float(v @ w), float(np.linalg.norm(w))
                residual = float(np.linalg.norm(w - t * v))
                largest = max(largest, abs(t))
                # half of it, as the last rotation mixes the residuals of equal eigenvalues; and at
                # rounding go on while that still helps, but not with the noise of a null space
                floor = _nothing(gram, largest)
                rounded = size <= floor or (residual <= floor and not residual <= 0.9 * last)
                if residual <= 0.5 * tol * abs(t) or rounded:
                    break
                v, last = _apart(w / size, U), residual
            if say is not None:
                taken = steps - before
                words = f"{t:.6g} after {taken} products, residual {residual:.1e}"
                say(Step(f"component {j + 1}: {words}"))
            U = np.column_stack([U, v])
        AU = np.asarray(gram @ U, dtype=float)
        values, W = eigh(0.5 * (U.T @ AU + AU.T @ U))
        return measured(
            repr(self),
            gram.dot,
            values,
            U @ W,
            norms=norms_of(gram),
            status=Status.CONVERGED,
            watch=watch,
            n_iter=steps,
            dtype=gram.dtype,
            tol=tol,
            advice=_ADVICE,
        )


def _apart(v: np.ndarray, U: np.ndarray, unit: bool = True) -> np.ndarray:
    """Return v without its part in span(U): the peeling."""
    for _ in range(2):
        v = v - U @ (U.T @ v)
    return v / np.linalg.norm(v) if unit else v


def _nothing(gram: Any, largest: float) -> float:
    """Return the length below which A v - t v is 0 but for rounding."""
    norm = gram.uncentred_norm if hasattr(gram, "uncentred_norm") else largest
    return rounding(gram.dtype, max(norm, largest))
