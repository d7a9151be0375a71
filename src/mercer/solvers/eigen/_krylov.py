"""Exact leading eigenpairs of a matrix that is never held: a few passes over K.

    Z <- [Z, orth(M^-1 R)],    R = A U - U diag(t),    (t, U) = Rayleigh-Ritz of A in span(Z)

One pass computes A times the newest block of Z; everything else works on tall thin arrays.  Z
starts as the leading eigenvectors of A^ = F F^T, F a randomly pivoted Cholesky factor of some
hundred columns, and the residuals are preconditioned by the same factor: M = A^ - t I.  A residual
is then divided by the distances t - l_j of the *other* eigenvalues, as far as A^ knows them, and a
pass gains about as many digits as A^ has.  Without a factor (the kernel is not positive
semidefinite) M is left out, and span(Z) is the block Krylov space of a random start.

A correction of weight w in the Ritz vectors needs its product to tol / w alone: once the weights
are small, passes are made in float32 (`_rounded`), and what these lose is added to the residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._errors import NotPositiveDefiniteError, warn_caller
from ..._runtime import Step, Stopwatch, entry_point, generator, one_blas_thread
from ..._runtime.linalg import lapack, qr, solve_triangular
from .._cost import Cost
from .._report import Status
from ._basis import Basis
from ._certificate import Certificate, certify, largest
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
from ._rounded import Rounded

__all__ = ["BlockKrylov"]

_TOL = 1e-8  # what tol = 0 stands for: eigenvalues are then exact to rounding
_MOST_PASSES = 100  # passes over K at most, by default
_GUARDS = 2  # Ritz pairs beyond the k wanted that are improved with them
_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # columns more that may give the proof
_LITTLE = 0.2  # of the residual that is asked for: what float32 may be expected to add
_WELL = 1e-5  # of the largest diagonal entry of a factor: what a smaller one divides is lost
_IN_DOUBLE, _SINGLE = 1.5, 0.56  # passes in float64, on most spectra; what one in float32 takes
_FEWEST_EXPECTED, _MOST_EXPECTED = 5.5, 11.0  # passes over K, on most spectra; more for more pairs


@entry_point
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
    prove : bool
        If the vectors of the first pass do not promise a proof that nothing was missed, let more
        of them ride along with the second, up to 256, provided that these promise to be enough.
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
    prove: bool = True
    random_state: Any = None

    def __post_init__(self) -> None:
        least = {"tol": 0.0, "max_iter": 1, "block": 1, "rank": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and not value >= bound:
                raise ValueError(f"BlockKrylov: {name} must be at least {bound:g}, got {value!r}")

    def workspace(self, n: int, k: int) -> int:
        """Return the bytes needed beside K: the factor, the basis and its image."""
        b = self._block(n, k)
        wide = 4 * min(n, _WIDTHS[-1]) if self.prove else 0
        # twice for basis and image, twice for the moment when they grow
        return 8 * n * (self._rank(n, b) + 4 * _capacity(n, b) + 6 * b + wide)

    def cost(self, n: int, k: int, read: Cost, rounds: bool = False) -> Cost:
        """Return what k pairs of n points take if a pass over K takes `read` beside products.

        `rounds` says that later passes may be in float32.
        """
        b = self._block(n, k)
        r, m, new = self._rank(n, b), min(n, 3 * b), 0.6 * b  # basis and new columns, on average
        factor = Cost(thin=2.0 * n * r**2 + 15.0 * r**3)  # pivots, F F^T, its eigenvectors
        thin = 4.0 * n * r * new + 14.0 * n * m * new + 4.0 * n * m * b + 5.0 * m**3
        passes = min(_FEWEST_EXPECTED + float(np.log2(k)), _MOST_EXPECTED)
        full = passes
        if rounds and Rounded.enough(n):
            full = _IN_DOUBLE + _SINGLE * (passes - _IN_DOUBLE)
        one = read + Cost(products=2.0 * n * n * new)
        return factor + r / n * read + full * one + passes * Cost(thin=thin, calls=80)

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
            found = self._iterate(gram, Z, k, M, rng, say or (lambda _: None))
            norm, message = norms_of(gram)[1], ""
            values, vectors = in_order(found.t[:k], found.U, rounding(float, norm))
            residuals = found.r[:k].copy()
            for a, b in equal_ranges(values, rounding(float, norm)):
                residuals[a:b] = np.linalg.norm(residuals[a:b])  # the basis was rotated
        certificate = found.certificate
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

    def _iterate(
        self,
        A: Any,
        new: np.ndarray,
        k: int,
        M: DavidsonPreconditioner | None,
        rng: Any,
        say: Callable[[str], None],
    ) -> _Found:
        """Iterate until all residuals are small, and nothing was missed or no proof is in sight."""
        n, b = new.shape
        most, tol = self.max_iter or _MOST_PASSES, self.tol or _TOL
        capacity, stay, passes = _capacity(n, b), max(b, k + _GUARDS), 0
        basis, quick = Basis(n), False  # whether float32 will do
        while True:
            if quick and basis.rounded is not None:
                basis.append(new, *basis.rounded.times(new))
            else:
                basis.append(new, np.asarray(A @ new, dtype=float))
            passes += 1
            t, W = basis.ritz()
            kept = W[:, : b if passes == 1 else min(k + _GUARDS, len(t))]
            U, R = basis.Z @ kept, basis.Y @ kept
            R -= U * t[: kept.shape[1]]
            doubts = basis.doubts(kept)[0]
            r = np.linalg.norm(R, axis=0) + doubts
            enough = np.maximum(tol * np.abs(t[: len(r)]), _floor(A, t))
            waiting = np.flatnonzero(r > enough)
            done = int(np.sum(r[:k] <= enough[:k]))
            words = (
                f"pass {passes}: {done} of {k} components converged, largest relative residual "
                f"{relative_residual(r[:k], t[:k]):.1e}"
            )
            say(Step(words))
            over = passes >= most or len(basis) == n
            if done == k or over:
                every, certificate = _certified(A, M, basis, t, W, k)
                last = over or passes > 1 or not self.prove or certificate.nothing_missed
                proof = None if last else _more(A, t, r, k, M, basis.Z)
                if proof is None:
                    return _Found(t, every, U[:, :k], passes, done == k, certificate)
                say(f"one more pass, of {proof.shape[1]} columns, to prove that nothing was missed")
                new = proof  # if something was, the next residuals show it
                continue
            if np.any(doubts[:k] > 0.5 * enough[:k]):  # float32 is in the way: begin with U, exact
                new, basis, quick = basis.Z @ W[:, :stay], Basis(n, basis.rounded), False
                continue
            if M is None:
                fresh = np.asarray(basis.Y[:, -new.shape[1] :])
            else:
                fresh = M.solve(R[:, waiting], t[waiting])
            if passes == 1 and M is not None and (single := Rounded.of(A, rng)) is not None:
                basis.measure(single)
            if basis.rounded is not None and not quick:  # from then on corrections are smaller
                wanted = waiting < k
                off = basis.rounded.lost(fresh[:, wanted])
                quick = bool(np.all(off <= _LITTLE * enough[waiting][wanted]))
            proof = _more(A, t, r, k, M, basis.Z) if self.prove and passes == 1 else None
            if proof is not None:
                say(f"{proof.shape[1]} more columns, to prove that nothing was missed")
                capacity, stay = capacity + proof.shape[1], stay + proof.shape[1]
                fresh = np.hstack([proof, fresh])
            new = _orthonormal(fresh, basis.Z, rng, fill=1)
            if len(basis) + new.shape[1] > capacity:  # thick restart: the best Ritz vectors stay
                basis.restart(t, W[:, :stay])

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
    certificate: Certificate


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
    Q = _by_cholesky(N)
    if Q is None:
        Q, R, _ = qr(N, mode="economic", pivoting=True, check_finite=False)
        Q = Q[:, : int(np.sum(np.abs(R.diagonal()) > 1e-13))]
    Q = Q - Z @ (Z.T @ Q)  # rounding left 1e-16 of Z in N, divided by that diagonal
    missing = min(fill, n - Z.shape[1]) - Q.shape[1]
    if missing > 0:
        everything = np.hstack([Z, Q])
        Q = np.hstack([Q, _orthonormal(rng.standard_normal((n, missing)), everything, rng)])
    again = _by_cholesky(Q)
    return np.linalg.qr(Q)[0] if again is None else again


def _by_cholesky(N: np.ndarray) -> np.ndarray | None:
    """Return N R^-1 with R^T R = N^T N, an orthonormal basis but for cond(N)^2 eps; or None.

    Householder's reflections go through a tall N column by column, this in two products.  It is
    None where N is too ill-conditioned for a second round to mend.
    """
    R, info = lapack.dpotrf(N.T @ N, lower=0, clean=1)
    if info or not N.size or R.diagonal().min() < _WELL * R.diagonal().max():
        return None
    return np.ascontiguousarray(solve_triangular(R, N.T, trans="T", check_finite=False).T)


def _floor(A: Any, t: np.ndarray) -> float:
    """Return the residual below which there is only rounding; known after the first product."""
    norm = norms_of(A)[1] if hasattr(A, "uncentred_norm") else float(np.abs(t).max())
    return rounding(A.dtype, norm)


def _certified(
    A: Any,
    M: DavidsonPreconditioner | None,
    basis: Basis,
    t: np.ndarray,
    W: np.ndarray,
    k: int,
) -> tuple[np.ndarray, Certificate]:
    """Return the residuals of all Ritz pairs, and what is certain of them."""
    squared, norm = norms_of(A)
    slack, total = rounding(A.dtype, norm), _trace(A)
    shares = M.shares(basis.Z @ W) if M is not None and _is_mercer(A) else None
    measured, (doubts, shifts) = basis.residuals(t, W), basis.doubts(W)
    r = measured + doubts
    # what is subtracted from |A|_F^2, t^2 + 2 r^2, may be too large by this
    floor = 8 * np.finfo(A.dtype).eps * norm**2 + float(
        np.sum(2.0 * np.abs(t) * shifts + shifts**2 + 2.0 * (r**2 - measured**2))
    )

    def bound(j: int, squares: float) -> float:
        others = np.zeros(0)
        if shares is not None:
            others = shares.beyond(j)[1:] - (1.0 + len(shares.s) / 16.0) * slack
        rest = total - len(t) * slack - float(np.sum(t[:j] + shifts[:j]))
        return largest(len(basis.Z) - j, rest, squares, others)

    certificate = certify(
        t,
        r,
        k,
        squared_norm=squared,
        slack=slack + float(shifts[:k].max()),
        floor=float(np.sqrt(floor)),
        ritz=True,
        bound=bound,
    )
    return r, certificate


def _more(
    A: Any,
    t: np.ndarray,
    r: np.ndarray,
    k: int,
    M: DavidsonPreconditioner | None,
    Z: np.ndarray,
) -> np.ndarray | None:
    """Return the vectors that promise to bring A_perp below t_k, if they are few enough.

    (t, r) are the Ritz values and residuals of the first block.  A vector more takes s^2 off
    |A_perp|_F^2, and about as much beyond that, in units of s, as the last of the block did.
    """
    squared, total = norms_of(A)[0], _trace(A)
    if M is None or not np.isfinite(squared) or not t[k - 1] > 0:
        return None
    last = slice(len(r) // 2, min(len(r), M.used))
    gain = float(np.sum(t[last] ** 2 + 2.0 * r[last] ** 2 - M.s[last] ** 2))
    gain = max(gain, 0.0) / max(float(np.sum(M.s[last])), 1e-300)
    s, known = M.s[M.used :], _is_mercer(A)
    total, squared = total - float(np.sum(t)), squared - float(np.sum(t**2))
    for more in (0, *_WIDTHS):
        more = min(more, len(s))
        squares = squared - float(np.sum(s[:more] * (s[:more] + gain)))
        others = s[more + 1 :] if known else s[:0]
        count = len(Z) - len(t) - more
        if largest(count, total - float(np.sum(s[:more])), squares, others) < 0.8 * t[k - 1]:
            break
    else:
        return None
    proof = _orthonormal(M.take(more), Z, None) if more else np.empty((0, 0))
    return proof if proof.size else None


def _trace(A: Any) -> float:
    return float(A.trace() if hasattr(A, "trace") else np.sum(A.diagonal()))


def _is_mercer(A: Any) -> bool:
    """Tell whether A is known to be positive semidefinite, and so A >= A^."""
    held = getattr(A, "gram", A)
    claims, width = held.kernel.claims, len(getattr(held.X, "shape", ()))
    within = claims.columns is None or (width == 2 and held.X.shape[1] <= claims.columns)
    return claims.order == 0 and within
