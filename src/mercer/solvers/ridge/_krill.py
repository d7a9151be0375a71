"""Ridge regression on many landmarks: conjugate gradients on a sketched normal equation (KRILL).

    min over w   sum_i u_i (y_i - k_S(x_i)^T w)^2 + shift w^T K_SS w,      w = L^-T v,  K_SS = L L^T
    (F^T U F + shift) v = F^T U y,      F = K_nS L^-T,   U = diag(u)

A pass over the points computes F^T U F v, evaluating each row of K_nS once for both products.  The
preconditioner is B^T B + shift with the sketch B = Phi U^1/2 F, Phi a sparse sign embedding of the
n points in 4 m dimensions: 8 entries +-1/sqrt(8) for each point.  It knows the spectrum of F^T U F
up to a small factor whatever the landmarks and the shift, so that the number of passes is bounded.
(Díaz, Epperly, Frangella, Tropp and Webber, arXiv 2304.12465, in whitened coordinates.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._points import length, sliceable
from ..._runtime import Stopwatch, check_budget, entry_point, one_blas_thread, ordered_sum
from ..._runtime.linalg import cho_solve, lapack, solve_triangular
from ...gram import Landmarks, NystroemMap
from ...kernels import on_indices
from .._report import Report, Status, judged
from ..linear import check_stopping, conjugate_gradients, ended, relative, unit_columns

__all__ = ["Krill"]

_ROWS, _ENTRIES = 4, 8  # rows of the embedding for each landmark, its entries for each point
_GROUPS = 8  # groups of strips; the sums of the groups are added in order


@entry_point
@dataclass(frozen=True)
class Krill:
    """Ridge regression in the span of many landmarks, in O(m^2) memory.

    It takes m^3 operations and some tens of passes over K_nS; a direct method takes n m^2.
    Several targets go in lockstep.  The gradient at the solution, relative to that at 0, is
    computed from the points and reported as the residual; the certificate `function` bounds
    |f - f*|_H, the distance from the exact minimum in the norm that the shift penalises.

    Parameters
    ----------
    rank : int, optional
        Landmarks; 1000 by default, or all points if there are fewer.
    landmarks : str or points
        As in `mercer.gram.Landmarks`.
    tol : float
        Of the relative residual; what rounding leaves is enough if it is at most 1e-6.
    max_iter : int
        Passes over K_nS.
    random_state : int or None
        Of landmarks and embedding; None stands for 0.
    max_memory : int, str or None
        The budget; None for half of the machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import Krill
    >>> X = np.linspace(0, 6, 3000)[:, None]
    >>> points, w, report = Krill(rank=30).regress(RBF(), X, np.sin(X), shift=0.1)
    >>> bool(np.abs(RBF()(X, points) @ w - np.sin(X)).max() < 0.02)
    True
    """

    rank: int | None = None
    landmarks: Any = "auto"
    tol: float = 1e-10
    max_iter: int = 200
    random_state: Any = None
    max_memory: Any = None

    def __post_init__(self) -> None:
        check_stopping(self)
        _ = self._choice  # raises if the method is unknown

    def workspace(self, n: int) -> int:
        """Return the bytes needed: the sketch, K_SS, two factors, and strips of rows."""
        m = self._choice.count(n)
        rows = min(n, _ROWS * m)
        return 8 * (rows * m + 4 * m * m) + 2**27

    def regress(
        self,
        kernel: Any,
        X: Any,
        Y: np.ndarray,
        shift: float,
        weights: np.ndarray | None = None,
        *,
        n_threads: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[Any, np.ndarray, Report]:
        """Return the landmarks, the coefficients w on them, and the report.

        Parameters
        ----------
        kernel : Kernel
            With all its values resolved.
        X : points
        Y : ndarray of shape (n,) or (n, q)
        shift : float
            Positive.
        weights : ndarray of shape (n,), optional
            Of the squared errors; not negative.
        n_threads : int, optional
            All processors by default.  The result does not depend on it.
        say : callable, optional
            Told of the progress.
        """
        watch = Stopwatch()
        kernel, X = on_indices(kernel, X)
        X, n = sliceable(X), length(X)
        right, weights = _check(Y, weights, shift, n)
        right, exponents = unit_columns(right)
        m = self._choice.count(n)
        check_budget(self.workspace(n), self.max_memory, f"a fit on {m} landmarks")
        phi = self._choice.map(kernel, X, n_threads)
        if not len(phi):  # no landmark says anything: f = 0
            report = Report(
                repr(self), Status.APPROXIMATE, message="every k(s, s) is 0, and so is f"
            )
            return phi.points, np.zeros((0, *np.shape(Y)[1:])), report
        passes = _Passes(phi, X, weights, n_threads)
        with one_blas_thread:  # so that the bits do not depend on the number of threads
            seed = 0 if self.random_state is None else self.random_state
            sketch = passes.sketch(np.random.default_rng(seed))
            if say is not None:
                say(f"sketch of {n} x {len(phi)} by {len(sketch)} rows")
            square = sketch.T @ sketch
            del sketch
            norm = _largest_eigenvalue(square) + shift
            square.flat[:: len(square) + 1] += shift
            C, _ = lapack.dpotrf(square, lower=1, overwrite_a=1)
            b = passes.project(right)
            found = conjugate_gradients(
                lambda V: passes.square(V) + shift * V,
                lambda R: cho_solve((C, True), R, check_finite=False),
                b,
                tol=self.tol,
                max_iter=self.max_iter,
                rounding=lambda V: norm * np.linalg.norm(V, axis=0),
                say=say,
            )
        residual = relative(found.gap, b)
        note = ", ".join([f"{len(phi)} landmarks", *phi.flaws])
        status, message = ended(found, residual, self.tol, note)
        status, message = judged(status, message, residual, self.tol)
        norms = np.linalg.norm(found.gap, axis=0)
        report = Report(
            repr(self),
            status,
            found.n_iter,
            residual,
            watch.seconds,
            message,
            {"function": float(np.ldexp(norms, exponents).max(initial=0.0)) / shift},
        )
        if status is not Status.CONVERGED:
            warn_caller(
                f"Krill did not converge: {message}. The usual cause is a shift that is tiny "
                f"beside the largest eigenvalue of K. Raise the shift or max_iter",
                ConvergenceWarning,
            )
        coefficients = phi.expansion_coefficients(np.ldexp(found.a, exponents))
        return phi.points, coefficients[:, 0] if np.ndim(Y) == 1 else coefficients, report

    @property
    def _choice(self) -> Landmarks:
        return Landmarks(self.rank, self.landmarks, self.random_state)


class _Passes:
    """Passes over the rows of F = K_nS L^-T, which are never held."""

    def __init__(
        self, phi: NystroemMap, X: Any, weights: np.ndarray, n_threads: int | None
    ) -> None:
        self.phi, self.X, self.weights, self.n_threads = phi, X, weights, n_threads

    def square(self, V: np.ndarray) -> np.ndarray:
        """Return F^T U F V, reading each row of K_nS once."""
        inner = np.ascontiguousarray(self._solve(V, trans="T"))
        return self._sum(lambda rows, T: T @ inner)

    def project(self, Y: np.ndarray) -> np.ndarray:
        """Return F^T U Y."""
        return self._sum(lambda rows, T: Y[rows])

    def sketch(self, rng: Any) -> np.ndarray:
        """Return Phi U^1/2 F, or U^1/2 F itself where that is no larger."""
        m, n = len(self.phi), len(self.weights)
        dimension = min(_ROWS * m, n)
        root = np.sqrt(self.weights)
        B = np.zeros((dimension, m))
        for rows, T in self.phi.blocks(self.X, n_threads=self.n_threads, whiten=False):
            T *= root[rows, None]
            if dimension == n:
                B[rows] = T
            else:
                B += _embedding(rng, dimension, len(T)) @ T
        return np.asarray(self._solve(B.T, trans="N").T)

    def _solve(self, V: np.ndarray, trans: str) -> np.ndarray:
        return np.asarray(
            solve_triangular(self.phi.factor, V, trans=trans, lower=True, check_finite=False)
        )

    def _sum(self, values: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return F^T U values, with the values for a strip of rows made from those of K_nS."""
        strips, m = self.phi._strips(slice(0, len(self.weights))), len(self.phi)

        def share(rows: slice) -> np.ndarray:
            T = np.empty((rows.stop - rows.start, m))
            self.phi._fill(self.X, rows, T, whiten=False)
            return T.T @ (self.weights[rows, None] * values(rows, T))

        total = ordered_sum(
            share, strips, _GROUPS, self.n_threads, self.phi._work(len(self.weights))
        )
        return self._solve(total, trans="N")


def _embedding(rng: Any, rows: int, points: int) -> Any:
    """Return a sparse (rows, points) matrix with up to 8 entries +-1/sqrt(8) in each column."""
    entries = min(_ENTRIES, rows)
    # one row out of each of 8 parts: entries never coincide
    parts = np.linspace(0, rows, entries + 1).astype(int)
    index = rng.integers(parts[:-1], parts[1:], size=(points, entries))
    signs = rng.choice((-1.0, 1.0), size=(points, entries)) / np.sqrt(entries)
    starts = np.arange(0, points * entries + 1, entries)
    return sp.csc_array((signs.ravel(), index.ravel(), starts), shape=(rows, points)).tocsr()


def _check(Y: Any, weights: Any, shift: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets as columns, and the weights."""
    Y = np.asarray(Y, dtype=float)
    if Y.ndim not in (1, 2) or len(Y) != n:
        raise ValueError(f"Y has shape {Y.shape}, but there are {n} points")
    if not (np.ndim(shift) == 0 and 0.0 < shift < np.inf):
        raise ValueError(f"Krill needs a positive, finite shift, got {shift!r}")
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            f"weights must be {n} finite numbers that are not negative, got shape {weights.shape} "
            f"with a minimum of {weights.min(initial=np.inf):.3g}"
        )
    return Y.reshape(n, -1), weights


def _largest_eigenvalue(A: np.ndarray) -> float:
    """Return the largest eigenvalue of a positive semidefinite A, nearly, by some power steps."""
    v, value = np.ones(len(A)), 0.0
    for _ in range(10):
        v = A @ v
        value = float(np.linalg.norm(v))
        v /= max(value, 1e-300)
    return value
