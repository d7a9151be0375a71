"""What is certain about computed eigenpairs, from their residuals and one number of the matrix.

Let t_1 >= ... >= t_j be Ritz values of a symmetric A, with orthonormal Ritz vectors U and the
residuals R = A U - U T.  In a basis that U begins, A has the blocks T, R and A_perp, and

    |A|_F^2 = |T|_F^2 + 2 |R|_F^2 + |A_perp|_F^2                       (the Frobenius identity)

gives w_j = |A_perp|_F, which bounds every eigenvalue of A_perp: at most j eigenvalues of A exceed
w_j.  A smaller w_j follows from the trace, and from what the other eigenvalues of A_perp are at
least: see `largest`.  If w_j < t_k, then for i <= k

    t_i <= l_i                                                         (Cauchy)
    l_i <= t_i + 2 |R|^2 / (g + sqrt(g^2 + 4 |R|^2)),  g = t_i - w_j   (Li & Li 2005)
    l_i <= t_i + |r_i|^2 / (t_i - l_{i+1})                             (Kato-Temple)
    sin(u_i, v_i) <= |r_i| / gap_i                                     (Davis-Kahan)

where gap_i is the distance of t_i to the rest of the spectrum.  What is not among the k first lies
in the complement of their vectors, where A has the blocks t_{k+1} ... t_j, their residuals and
A_perp; a Schur complement shows that

    l_{k+1} <= x   if   sum_{k < i <= j} |r_i|^2 / (x - t_i) <= x - w_j,   x > t_{k+1}, w_j

Nothing was missed if there is such an x that is not above t_k + |r_k|.  Every j >= k is tried: few
vectors have small residuals, many leave a small A_perp.  Where neighbours cannot be told apart,
their common subspace is certified instead of each vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._runtime import entry_point

__all__ = ["Certificate", "certify", "largest", "sandwich", "unknown"]

_ROUNDS = 20  # in which a bound is improved

_TRIED = 8  # numbers j for which a better bound than |A_perp|_F is asked for


@dataclass(frozen=True)
class Certificate:
    """Bounds on k eigenpairs of the matrix as it was evaluated, with the rounding of the solver.

    Attributes
    ----------
    lower, upper : ndarray of shape (k,)
        The i-th largest eigenvalue lies between them.
    residuals : ndarray of shape (k,)
        An eigenvalue lies within residuals[i] of the i-th one printed.
    sines : ndarray of shape (k,)
        Bounds on the sine of the angle between each computed and exact vector; in a cluster, on
        the largest one between the two subspaces.  1: nothing is certain.
    clusters : tuple of (int, int)
        Half-open ranges of components that cannot be told apart.
    outside : float
        No eigenvalue beyond the k largest exceeds it.
    found : int
        At most this many eigenvalues exceed `rest`, and the k printed are the largest of them.
    rest : float
        The bound on all the others, from the Frobenius identity.
    nothing_missed : bool
        Whether no larger eigenvalue was overlooked: since rest lies below the k-th, and outside no
        further above it than its residual; or since a direct method has found them all.
    slack : float
        What rounding added to each bound.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> found = KernelPCA(2, kernel="rbf").fit(np.arange(10.0)[:, None]).certificate_
    >>> found.nothing_missed, bool(np.all(found.lower <= found.upper))
    (True, True)
    >>> str(found).split(":")[0]
    'no larger eigenvalue was overlooked'
    """

    lower: np.ndarray
    upper: np.ndarray
    residuals: np.ndarray
    sines: np.ndarray
    clusters: tuple[tuple[int, int], ...]
    outside: float
    found: int
    rest: float
    nothing_missed: bool
    slack: float

    def first(self, k: int) -> Certificate:
        """Return what is certain about the first k alone; of a cluster that is cut, no angle."""
        sines = self.sines[:k].copy()
        for a, b in self.clusters:
            if a < k < b:
                sines[a:] = 1.0
        return replace(
            self,
            lower=self.lower[:k],
            upper=self.upper[:k],
            residuals=self.residuals[:k],
            sines=sines,
            clusters=tuple((a, min(b, k)) for a, b in self.clusters if a < k),
            outside=float(self.upper[k]) if k < len(self.upper) else self.outside,
        )

    def __str__(self) -> str:
        if self.found == 0:
            return "no bound is known"
        verdict = (
            "no larger eigenvalue was" if self.nothing_missed else "a larger one may have been"
        )
        return (
            f"{verdict} overlooked: all others are at most {max(self.outside, 0.0):.4g}, "
            f"and the smallest one kept is {self.lower[-1]:.4g}"
        )


@entry_point
def certify(
    values: np.ndarray,
    residuals: np.ndarray,
    k: int,
    *,
    squared_norm: float = float("inf"),
    slack: float = 0.0,
    floor: float = 0.0,
    following: float | None = None,
    ritz: bool = False,
    bound: Callable[[int, float], float] | None = None,
) -> Certificate:
    """Return what is certain about the first k of the Ritz pairs given.

    Parameters
    ----------
    values, residuals : ndarray of shape (j,)
        All Ritz values, descending, and the norms of their residuals; j >= k.
    k : int
    squared_norm : float
        |A|_F^2; inf if it is not known.
    slack : float
        How far rounding may have moved an eigenvalue.
    floor : float
        What rounding may take from |A_perp|_F: the difference of squares is exact to floor^2.
    following : float, optional
        The (k+1)-th eigenvalue (-inf if there is none), where a direct method has found it: then
        nothing needs proof.
    ritz : bool
        Whether U^T R is 0 to rounding, as Rayleigh-Ritz leaves it; else |R|^2 counts only once in
        the identity, which then holds for all orthonormal vectors.
    bound : callable, optional
        Of j and |A_perp|_F^2: a bound on the largest eigenvalue of A_perp, asked for a few j.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.eigen import certify
    >>> c = certify(np.array([4.0, 2.0]), np.array([0.0, 0.0]), 1, squared_norm=21.0)
    >>> c.nothing_missed, float(c.rest), float(c.upper[0])
    (True, 1.0, 4.0)
    """
    t, r = np.asarray(values, dtype=float), np.asarray(residuals, dtype=float)
    if following is None:
        upper, outside, rest, found = _from_norm(t, r, k, squared_norm, floor, ritz, bound)
        upper, outside, rest = upper + slack, outside + slack, rest + slack
    else:
        upper, outside, rest, found = t[:k] + r[:k] + slack, following + slack, following + slack, k
    t, r = t[:k], r[:k] + slack
    upper = np.minimum.accumulate(upper)  # eigenvalues descend, and so do their bounds
    upper = _kato_temple(t, r, upper, outside, slack)
    proved = bool(rest < t[-1] - slack and outside <= t[-1] + r[-1])
    return _bounded(t, r, upper, outside, found, rest, following is not None or proved, slack)


def sandwich(values: np.ndarray, trace: float, k: int, slack: float = 0.0) -> Certificate:
    """Return what is certain of A from an approximation A^ below it, with A - A^ of this trace.

    A - A^ is positive semidefinite, so its j-th eigenvalue is at most trace / j, and by Weyl

        l_i(A^) <= l_i(A) <= min_j l_{i-j+1}(A^) + trace / j

    `values` are all eigenvalues of A^, descending; those not given are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import sandwich
    >>> found = sandwich(np.array([4.0, 2.0]), trace=0.5, k=1)
    >>> found.lower, found.upper, found.nothing_missed
    (array([4.]), array([4.5]), True)
    """
    known = np.append(np.asarray(values, dtype=float), 0.0)[: k + 1]
    upper = np.array(
        [np.min(known[i::-1] + trace / np.arange(1, i + 2)) for i in range(len(known))]
    )
    upper = np.minimum.accumulate(upper) + slack
    t = known[:k]
    outside = float(upper[k]) if len(upper) > k else float(trace + slack)
    proved, residuals = bool(outside < t[-1] - slack), np.full(k, trace + slack)
    return _bounded(t, residuals, upper[:k], outside, k, outside, proved, slack)


def largest(count: int, total: float, squares: float, others: np.ndarray) -> float:
    """Return a bound on the largest of some numbers, from their sum and their sum of squares.

    If x is the largest, the sum of the squares of all is at least

        x^2 + min { |y|^2 : sum_i y_i = total - x,  y_i >= others_i }

    for the count - 1 that remain, of which the `others`, descending, are bounds from below.  The
    minimum has y_i = max(others_i, level).  Without any of them that is Samuelson's inequality.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.eigen._certificate import largest
    >>> largest(4, 6.0, 14.0, np.array([2.0, 1.0]))  # 3, 2, 1, 0
    3.0
    """
    others = np.asarray(others, dtype=float)[: max(0, count - 2)]
    sums = np.concatenate([[0.0], np.cumsum(others)])
    squared = np.concatenate([[0.0], np.cumsum(others**2)])
    left = np.maximum(count - 1.0 - np.arange(len(sums)), 1.0)
    follows = np.append(others, -np.inf)
    x = float(np.sqrt(max(squares, 0.0)))
    for _ in range(_ROUNDS):  # each x is a bound, and makes the next one better
        rest = np.maximum(total - x - sums, 0.0)
        q = int(np.argmax(follows <= rest / left))  # so many are above the level
        x = float(np.sqrt(max(squares - squared[q] - rest[q] ** 2 / left[q], 0.0)))
    return x


def unknown(values: np.ndarray) -> Certificate:
    """Return the certificate of an approximation about which nothing is certain.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import unknown
    >>> print(unknown(np.array([3.0, 1.0])))
    no bound is known
    """
    k = len(values)
    return Certificate(
        lower=np.full(k, -np.inf),
        upper=np.full(k, np.inf),
        residuals=np.full(k, np.inf),
        sines=np.ones(k),
        clusters=(),
        outside=np.inf,
        found=0,
        rest=np.inf,
        nothing_missed=False,
        slack=0.0,
    )


def _bounded(
    t: np.ndarray,
    r: np.ndarray,
    upper: np.ndarray,
    outside: float,
    found: int,
    rest: float,
    nothing_missed: bool,
    slack: float,
) -> Certificate:
    """Return the certificate of all these bounds, with the angles that follow from them."""
    sines, clusters = _davis_kahan(t, r, upper, outside, slack)
    return Certificate(
        t - slack,
        np.maximum(upper, t),
        r,
        sines,
        clusters,
        float(outside),
        found,
        float(rest),
        nothing_missed,
        slack,
    )


def _from_norm(
    t: np.ndarray,
    r: np.ndarray,
    k: int,
    squared_norm: float,
    floor: float,
    ritz: bool,
    bound: Callable[[int, float], float] | None,
) -> tuple[np.ndarray, float, float, int]:
    """Return upper bounds on l_1 ... l_k and on l_{k+1}, the best w_j, and its j."""
    if not np.isfinite(squared_norm):
        return np.full(k, np.inf), np.inf, np.inf, 0
    T, R = np.cumsum(t**2), np.sqrt(np.cumsum(r**2))
    perp = np.sqrt(np.maximum(squared_norm - T - (1 + ritz) * R**2, 0.0) + floor**2)
    first = k - 1  # the index that belongs to j = k
    T, R, perp = T[first:], R[first:], perp[first:]
    if bound is not None:
        for i in np.unique(np.geomspace(1, len(perp), _TRIED).astype(int) - 1).tolist():
            perp[i] = min(perp[i], bound(k + i, perp[i] ** 2))
        perp = np.minimum.accumulate(perp)  # each A_perp is a part of the one before
    # one column per j: the i-th largest of {t_1 ... t_j} and the spectrum of A_perp, at most
    ranked = np.maximum(t[:k, None], perp)
    gap = t[:k, None] - perp
    with np.errstate(invalid="ignore", divide="ignore"):  # where the gap is not used
        apart = 2.0 * R**2 / (gap + np.sqrt(gap**2 + 4.0 * R**2))
    bounds = ranked + np.where((gap > 0) & (R > 0), apart, R)
    outside = _beyond(t[k:], r[k:], perp)
    best = int(np.argmin(perp))
    return bounds.min(axis=1), outside, float(perp[best]), best + first + 1


def _beyond(t: np.ndarray, r: np.ndarray, perp: np.ndarray) -> float:
    """Return the least x, to rounding, that bounds l_{k+1} by one of the j; see the module.

    `t` and `r` belong to the Ritz vectors k + 1, k + 2 ...; `perp` are w_k, w_{k+1} ...
    """
    high = float(perp[0])  # j = k
    if not len(t):
        return high
    low = max(float(t[0]), float(perp.min()))
    while low < (x := 0.5 * (low + high)) < high:
        enough = np.cumsum(r**2 / (x - t)) <= x - perp[1:]
        low, high = (low, x) if enough.any() else (x, high)
    return high


def _kato_temple(
    t: np.ndarray, r: np.ndarray, upper: np.ndarray, outside: float, slack: float
) -> np.ndarray:
    """Improve the bounds of eigenvalues that are isolated, from the last one upwards."""
    t, r, below, high = t.tolist(), r.tolist(), outside, upper.tolist()
    for i in range(len(t) - 1, -1, -1):
        above = np.inf if i == 0 else t[i - 1] - slack
        if below < t[i] - slack and high[i] < above:
            high[i] = min(high[i], t[i] + r[i] ** 2 / (t[i] - slack - below) + slack)
        below = high[i]
    return np.array(high)


def _davis_kahan(
    t: np.ndarray, r: np.ndarray, upper: np.ndarray, outside: float, slack: float
) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """Return the sines of vectors, or of the subspaces of those that cannot be told apart."""
    k = len(t)
    below = np.append(upper[1:], outside)
    gaps = (t - below - slack).tolist()  # from each value down to what may follow it
    least = np.append(r[:-1] + r[1:], 0.0).tolist()
    sines = np.ones(k)
    clusters: list[tuple[int, int]] = []
    start = 0
    for i in range(k):
        if i + 1 < k and gaps[i] <= least[i]:
            continue  # not told apart from the next
        above = np.inf if start == 0 else t[start - 1] - t[start] - slack
        gap = min(above, gaps[i])
        if gap > 0:
            size = r[i] if i == start else np.linalg.norm(r[start : i + 1])
            sines[start : i + 1] = min(1.0, float(size) / gap)
        if i > start:
            clusters.append((start, i + 1))
        start = i + 1
    return sines, tuple(clusters)
