"""Exact leading eigenpairs of a matrix that is never held: a few passes over K.

    Z <- [Z, orth(M^-1 R)],    R = A U - U diag(t),    (t, U) = Rayleigh-Ritz of A in span(Z)

One pass computes A times the newest block of Z; everything else works on tall thin arrays.  Z
starts as the leading eigenvectors of A^ = F F^T, F a randomly pivoted Cholesky factor of some
hundred columns, and the residuals are preconditioned by the same factor: M = A^ - t I.  A residual
is then divided by the distances t - l_j of the *other* eigenvalues, as far as A^ knows them, and a
pass gains about as many digits as A^ has.  Without a factor (the kernel is not positive
semidefinite) M is left out, and span(Z) is the block Krylov space of a random start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from sklearn.exceptions import ConvergenceWarning

from ..._errors import NotPositiveDefiniteError, warn_caller
from ..._runtime import Step, Stopwatch, generator, one_blas_thread
from .._cost import Cost
from .._report import Status
from ._certificate import certify
from ._davidson import DavidsonPreconditioner
from ._eigenpairs import (
    EigenPairs,
    check_k,
    equal_ranges,
    in_order,
    norms_of,
    relative_residual,
    rounding,
)

__all__ = ["BlockKrylov"]

_TOL = 1e-8  # what tol = 0 stands for: eigenvalues are then exact to rounding
_MOST_PASSES = 100  # passes over K at most, by default
_GUARDS = 2  # Ritz pairs beyond the k wanted that are improved with them
_WIDEST = 256  # columns at most of the pass that proves that nothing was missed
_FEWEST_EXPECTED, _MOST_EXPECTED = 5.0, 9.0  # passes over K, on most spectra; more for more pairs
_RESOLVED = 100.0  # a resolved component is this many times the perturbation


@dataclass(frozen=True)
class BlockKrylov:
    """Preconditioned block Krylov iteration: exact eigenpairs in O(n) memory.

    Parameters
    ----------
    tol : float
        Stop when every residual |A u - t u| is at most tol times its eigenvalue (or at rounding).
        The error of an eigenvalue is about the square of that.  0 stands for 1e-8.
    max_iter : int, optional
        Passes over K; 100 by default.
    block : int, optional
        Columns of the first block, k + max(8, k / 4) by default.
    rank : int, optional
        Columns of the pivoted Cholesky factor; chosen so that it costs less than a pass by default.
    precision : {"double", "mixed"}
        "mixed" evaluates K in float32, about twice as fast.  What this may change is added to every
        bound; where it would blur a component, the solver goes on in float64, and says so.
    prove : bool
        If the Frobenius identity does not prove that nothing was missed, spend one more, wider pass
        on it, provided that up to 256 more vectors promise to be enough.
    random_state : int or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import CentredGram, gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import BlockKrylov
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> K = CentredGram(gram(RBF(2.0), X, storage="tiled"))
    >>> pairs = BlockKrylov(random_state=0).eigenpairs(K, 2)
    >>> pairs.certificate.nothing_missed
    True
    """

    tol: float = 0.0
    max_iter: int | None = None
    block: int | None = None
    rank: int | None = None
    precision: str = "double"
    prove: bool = True
    random_state: Any = None

    def __post_init__(self) -> None:
        least = {"tol": 0.0, "max_iter": 1, "block": 1, "rank": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and not value >= bound:
                raise ValueError(f"BlockKrylov: {name} must be at least {bound:g}, got {value!r}")
        if self.precision not in ("double", "mixed"):
            raise ValueError(f"precision must be 'double' or 'mixed', got {self.precision!r}")

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the factor, the basis and its image."""
        b = self._block(n, k)
        wide = 4 * min(n, _WIDEST) if self.prove else 0
        # twice for basis and image, twice for the moment when they grow
        return 8 * n * (self._rank(n, b) + 4 * _capacity(n, b) + 6 * b + wide)

    def cost(self, n: int, k: int, read: Cost) -> Cost:
        """Return what k pairs of n points take if a pass over K takes `read` beside products."""
        b = self._block(n, k)
        r, m, new = self._rank(n, b), min(n, 3 * b), 0.6 * b  # basis and new columns, on average
        factor = Cost(thin=2.0 * n * r**2 + 5.0 * r**3)  # pivots, F F^T, its eigenvectors
        thin = 4.0 * n * r * new + 14.0 * n * m * new + 4.0 * n * m * b + 5.0 * m**3
        one = read + Cost(products=2.0 * n * n * new, thin=thin, calls=80)
        passes = min(_FEWEST_EXPECTED + float(np.log2(k)), _MOST_EXPECTED)
        return factor + r / n * read + passes * one

    def eigenpairs(
        self,
        gram: Any,
        k: int | None = None,
        *,
        say: Callable[[str], None] | None = None,
        start: np.ndarray | None = None,
        **_: Any,
    ) -> EigenPairs:
        """Return the k largest eigenpairs; `say` is told of each pass, `start` begins the basis."""
        watch, n = Stopwatch(), gram.shape[0]
        k = check_k(k, n)
        b = self._block(n, k)
        rng = generator(self.random_state)
        with one_blas_thread:  # so that the bits do not depend on the number of threads
            M = self._factor(gram, self._rank(n, b), rng)
            Z = _orthonormal(_first_block(n, b, M, start, rng), np.empty((n, 0)), rng, fill=b)
            found, A, slack, message = self._run(gram, Z, k, M, rng, say or (lambda _: None))
            squared, norm = norms_of(A)
            values, vectors = in_order(found.t[:k], found.U, rounding(float, norm))
            residuals = found.r[:k].copy()
            for a, b in equal_ranges(values, rounding(float, norm)):
                residuals[a:b] = np.linalg.norm(residuals[a:b])  # the basis was rotated
            certificate = certify(
                found.t,
                found.r,
                k,
                squared_norm=squared,
                slack=rounding(gram.dtype, norm) + slack,
                floor=float(np.sqrt(8 * np.finfo(A.dtype).eps)) * norm,
                ritz=True,
            )
        status = Status.CONVERGED if found.converged else Status.NOT_CONVERGED
        blurred = residuals > max(self.tol, 1e-3) * np.abs(values)
        blurred &= values > 0.01 * certificate.slack  # what is further below is 0
        if found.converged and blurred.any():
            message = (
                f"{message} {int(blurred.sum())} eigenvalues are not far above the rounding of K "
                f"in {gram.dtype}, {certificate.slack:.1e}: see their residuals"
            )
        if not found.converged:
            worst = relative_residual(found.r[:k], found.t[:k])
            message = f"relative residual {worst:.1e} after {found.passes} passes. {message}"
            warn_caller(
                f"block Krylov did not converge: largest relative residual {worst:.1e} after "
                f"{found.passes} passes, {self.tol or _TOL:.1e} was asked for; the usual cause is "
                f"a slowly decaying spectrum. Raise max_iter or tol",
                ConvergenceWarning,
            )
        return EigenPairs.reported(
            *(repr(self), status, watch, values, vectors, residuals, certificate),
            n_iter=found.passes,
            message=message.strip(),
        )

    def _run(
        self,
        gram: Any,
        Z: np.ndarray,
        k: int,
        M: DavidsonPreconditioner | None,
        rng: Any,
        say: Callable[[str], None],
    ) -> tuple[_Found, Any, float, str]:
        """Iterate in float32 first, if asked for, and in float64 if that does not resolve all."""
        message, before, single = "", 0, None
        if self.precision == "mixed":
            single, message = _in_single(gram)
        if single is not None:
            A, relative = single
            say(f"float32 tiles, relative error of K at most {relative:.1e}")
            found = self._iterate(A, Z, k, M, rng, say, relative)
            slack, before = found.blur, found.passes
            if found.t[k - 1] >= _RESOLVED * slack:
                return found, A, slack, f"float32 tiles: {slack:.1e} is added to every bound"
            message = (
                f"float32 tiles may move eigenvalues by {slack:.1e}, too much for the last one, "
                f"{found.t[k - 1]:.1e}: float64 was used"
            )
            say(message)
            Z = _orthonormal(found.U, np.empty((len(Z), 0)), rng)
        found = self._iterate(gram, Z, k, M, rng, say, 0.0)
        return found._replace(passes=found.passes + before), gram, 0.0, message

    def _iterate(
        self,
        A: Any,
        new: np.ndarray,
        k: int,
        M: DavidsonPreconditioner | None,
        rng: Any,
        say: Callable[[str], None],
        relative: float,
    ) -> _Found:
        """Iterate until all residuals are small; `relative` is the error of the entries of K."""
        n, b = new.shape
        most, tol = self.max_iter or _MOST_PASSES, self.tol or _TOL
        capacity = _capacity(n, b)
        Z, Y, T = np.empty((n, 0)), np.empty((n, 0)), np.empty((0, 0))
        passes, proving, blur = 0, False, 0.0
        while True:
            Z, Y = np.hstack([Z, new]), np.hstack([Y, np.asarray(A @ new, dtype=float)])
            T = _bordered(T, Z.T @ Y[:, -new.shape[1] :])
            passes += 1
            if relative and passes == 1:
                blur = relative * _largest_row_sum(A)
            t, W = _ritz(T)
            kept = W[:, : min(k + _GUARDS, len(t))]
            U, R = Z @ kept, Y @ kept
            R -= U * t[: kept.shape[1]]
            r = np.linalg.norm(R, axis=0)
            enough = np.maximum(tol * np.abs(t[: len(r)]), max(blur, _floor(A, t)))
            waiting = np.flatnonzero(r > enough)
            done = int(np.sum(r[:k] <= enough[:k]))
            words = (
                f"pass {passes}: {done} of {k} components converged, largest relative residual "
                f"{relative_residual(r[:k], t[:k]):.1e}"
            )
            say(Step(words))
            wanted = done == k and self.prove and not proving
            proof = self._proof(A, t, k, M, Z) if wanted else None
            proving = proof is not None
            if proof is not None:
                say(f"one more pass, of {proof.shape[1]} columns, to prove that nothing was missed")
                new = proof  # if something was, the next residuals show it
                continue
            if done == k or passes >= most or Z.shape[1] == n:
                return _Found(t, _residuals(Y, Z, t, W), U[:, :k], passes, done == k, blur)
            if M is None:
                fresh = np.asarray(Y[:, -new.shape[1] :])
            else:
                fresh = M.solve(R[:, waiting], t[waiting])
            new = _orthonormal(fresh, Z, rng, fill=1)
            if Z.shape[1] + new.shape[1] > capacity:  # thick restart: the best Ritz vectors stay
                stay = W[:, : max(b, k + _GUARDS)]
                Z, Y, T = Z @ stay, Y @ stay, np.diag(t[: stay.shape[1]])

    def _proof(
        self, A: Any, t: np.ndarray, k: int, M: DavidsonPreconditioner | None, Z: np.ndarray
    ) -> np.ndarray | None:
        """Return the vectors that would bring |A_perp|_F below t_k, if they are few enough."""
        if M is None:
            return None
        squared = norms_of(A)[0]
        if not np.isfinite(squared):
            return None
        left = squared - float(np.sum(t**2))
        enough = 0.8 * max(t[k - 1], 0.0) ** 2
        if left < enough:
            return None
        gained = 0.9 * np.cumsum(M.s[M.used : M.used + _WIDEST] ** 2)
        if not gained.size or left - gained[-1] >= enough:
            return None
        wanted = int(np.argmax(left - gained < enough)) + 1
        proof = _orthonormal(M.vectors(M.used, M.used + wanted), Z, None)
        return proof if proof.size else None

    def _factor(self, gram: Any, rank: int, rng: Any) -> DavidsonPreconditioner | None:
        held = getattr(gram, "gram", gram)
        if not hasattr(held, "block") or rank < 1:
            return None
        try:
            return DavidsonPreconditioner.of(gram, rank, rng)
        except NotPositiveDefiniteError:
            return None

    def _block(self, n: int, k: int) -> int:
        return min(n, max(self.block or k + max(8, k // 4), k))

    def _rank(self, n: int, b: int) -> int:
        if self.rank is not None:
            return min(n, self.rank)
        # n rank^2 operations against about 100 n^2 of a pass; and not more than 512 MiB
        affordable = max(8 * b, min(int(4.0 * np.sqrt(n)), 2**26 // n))
        return min(n // 2, affordable)


class _Found(NamedTuple):
    t: np.ndarray  # all Ritz values, descending
    r: np.ndarray  # the norms of their residuals
    U: np.ndarray  # the first k Ritz vectors
    passes: int
    converged: bool
    blur: float  # how far the error of the entries may have moved an eigenvalue


def _capacity(n: int, b: int) -> int:
    return min(n, 5 * b)


def _first_block(
    n: int, b: int, M: DavidsonPreconditioner | None, start: np.ndarray | None, rng: Any
) -> np.ndarray:
    if start is not None:
        return np.asarray(start, dtype=float)
    return rng.standard_normal((n, b)) if M is None else M.leading(b)


def _orthonormal(N: np.ndarray, Z: np.ndarray, rng: Any, fill: int = 0) -> np.ndarray:
    """Return an orthonormal basis of what N adds to span(Z), with random columns up to `fill`."""
    n = len(N)
    size = np.linalg.norm(N, axis=0)
    N = N[:, size > 0] / size[size > 0]
    N = N - Z @ (Z.T @ N)
    Q, R, _ = qr(N, mode="economic", pivoting=True, check_finite=False)
    Q = Q[:, : int(np.sum(np.abs(R.diagonal()) > 1e-13))]
    Q = Q - Z @ (Z.T @ Q)  # rounding left 1e-16 of Z in N, divided by that diagonal
    missing = min(fill, n - Z.shape[1]) - Q.shape[1]
    if missing > 0:
        everything = np.hstack([Z, Q])
        Q = np.hstack([Q, _orthonormal(rng.standard_normal((n, missing)), everything, rng)])
    return np.linalg.qr(Q)[0]


def _bordered(T: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix that T begins, its last columns being `edge`."""
    m, new = len(T), edge.shape[1]
    corner = 0.5 * (edge[m:] + edge[m:].T)
    return np.block([[T, edge[:m]], [edge[:m].T, corner]]) if new else T


def _ritz(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Ritz values in span(Z), descending, and their vectors, from T = Z^T A Z."""
    # divide and conquer: LAPACK's default, MRRR, loses three digits of orthogonality
    t, W = eigh(T, driver="evd")
    return t[::-1], W[:, ::-1]


def _residuals(Y: np.ndarray, Z: np.ndarray, t: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return |A u_i - t_i u_i| for all Ritz vectors, by strips of rows."""
    total = np.zeros(len(t))
    for start in range(0, len(Y), 4096):
        rows = slice(start, start + 4096)
        total += np.sum((Y[rows] @ W - (Z[rows] @ W) * t) ** 2, axis=0)
    return np.sqrt(total)


def _floor(A: Any, t: np.ndarray) -> float:
    """Return the residual below which there is only rounding; known after the first product."""
    norm = norms_of(A)[1] if hasattr(A, "uncentred_norm") else float(np.abs(t).max())
    return rounding(A.dtype, norm)


def _in_single(gram: Any) -> tuple[tuple[Any, float] | None, str]:
    """Return the operator on float32 tiles and the relative error of its entries, if bounded."""
    held = getattr(gram, "gram", gram)
    single = held.single() if hasattr(held, "single") else None
    if single is None:
        return None, (
            f"the rounding of float32 tiles has no known bound for {type(held).__name__} of "
            f"{gram.kernel}: float64 was used"
        )
    tiles, relative = single
    return (tiles if held is gram else gram.with_gram(tiles), relative), ""


def _largest_row_sum(A: Any) -> float:
    """Return a bound on |S K S|_2 for entries K_ij >= 0 (Perron).

    That is the largest row sum, also of the similar matrix S^-1 (S K S) S = K S^2, whose row sums
    are n K w: the means that a centred Gram knows after its first product.
    """
    n = A.shape[0]
    if hasattr(A, "means"):
        return n * float(np.max(A.means))
    return float(np.max(np.asarray(A @ np.ones(n), dtype=float)))
