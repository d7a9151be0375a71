"""Certified error bounds for computed eigenpairs, from their residuals and the Frobenius norm.

Let t_1 >= ... >= t_j be Ritz values of a symmetric A, with orthonormal Ritz vectors U and the
residuals R = A U - U T.  In an orthonormal basis that starts with U, A has the blocks T, R and
A_perp, and

    |A|_F^2 = |T|_F^2 + 2 |R|_F^2 + |A_perp|_F^2                       (the Frobenius identity)

gives w_j = |A_perp|_F.  No eigenvalue of A_perp exceeds w_j, so at most j eigenvalues of A exceed
it.  The trace, and lower bounds on the other eigenvalues of A_perp, can give a smaller w_j; see
`largest_value_bound`.

Let l_1 >= l_2 >= ... be the eigenvalues of A, with eigenvectors v_i, and let u_i and r_i be the
columns of U and R.  If w_j < t_k, then for i <= k

    t_i <= l_i                                                         (Cauchy)
    l_i <= t_i + 2 |R|^2 / (g + sqrt(g^2 + 4 |R|^2)),  g = t_i - w_j   (Li & Li 2005)
    l_i <= t_i + |r_i|^2 / (t_i - l_{i+1})                             (Kato-Temple)
    sin(u_i, v_i) <= |r_i| / gap_i                                     (Davis-Kahan)

where gap_i is the distance of t_i to the rest of the spectrum.  The remaining eigenvalues belong to
the orthogonal complement of the first k vectors.  There, A has the blocks t_{k+1} ... t_j, their
residuals and A_perp, and a Schur complement shows that

    l_{k+1} <= x   if   sum_{k < i <= j} |r_i|^2 / (x - t_i) <= x - w_j,   x > t_{k+1}, w_j

No eigenvalue larger than t_k was overlooked if there is such an x <= t_k + |r_k|.  All j >= k are
tried, because residuals are small for small j, and A_perp is small for large j.  If neighbouring
eigenvalues are not separated by their bounds, their common subspace is certified instead of each
vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._core import NotebookResult, entry_point

# Number of fixed-point iterations in `largest_value_bound`; more iterations tighten the bound.
_BOUND_ITERATIONS = 20

# Maximum number of calls of the `bound` function of `certify`; each call may solve an eigenproblem.
_N_BOUND_CALLS = 8


@dataclass(frozen=True, repr=False)
class Certificate(NotebookResult):
    """Certified bounds on k computed eigenpairs.

    The bounds follow from the residuals of the pairs and the Frobenius norm of the matrix, and not
    from assumptions on its spectrum.  They hold for the kernel matrix as computed in floating
    point, and allow for the rounding errors of the solver.  `str(certificate)` is a summary.

    Attributes
    ----------
    lower, upper : ndarray of shape (k,)
        The i-th largest eigenvalue lies in [lower[i], upper[i]].
    residuals : ndarray of shape (k,)
        The distance from the i-th computed eigenvalue to some exact one is at most residuals[i].
    sines : ndarray of shape (k,)
        Bounds on the sine of the angle between each computed eigenvector and the exact one.  For a
        cluster, the bound is on the largest angle between the computed and the exact subspace.
        1 means that no bound is known.
    clusters : tuple of (int, int)
        Half-open index ranges of eigenvalues that are not separated by their bounds.
    outside : float
        Upper bound on all eigenvalues after the k largest.
    found : int
        At most this many eigenvalues exceed `rest`.  0 means that no bound is known.
    rest : float
        Upper bound on all eigenvalues except the `found` largest.
    nothing_missed : bool
        Whether it is proved that no larger eigenvalue was overlooked.  The proof is that `rest` is
        below the k-th eigenvalue and `outside` exceeds it by at most its residual, or that a direct
        method computed all eigenvalues.
    slack : float
        Allowance for rounding errors, already included in each bound.

    References
    ----------
    Parlett, "The symmetric eigenvalue problem", SIAM, 1998, for residual bounds and the
    inequalities of Cauchy, Kato and Temple, and Davis and Kahan.

    Li and Li, "A note on eigenvalues of perturbed Hermitian matrices", Linear Algebra and its
    Applications, 2005.

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
        """Return the certificate of the first k pairs.

        If k splits a cluster, no bound is known for the angles of its eigenvectors that are kept.

        Parameters
        ----------
        k : int
            Number of pairs, at most that of this certificate.

        Returns
        -------
        Certificate
            Its arrays have shape (k,).
        """
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
        missed = "no larger eigenvalue was"
        if not self.nothing_missed:
            missed = "a larger eigenvalue may have been"
        return (
            f"{missed} overlooked: all others are at most {max(self.outside, 0.0):.4g}, "
            f"and the smallest one returned is {self.lower[-1]:.4g}"
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
    """Return certified bounds for the first k of j >= k Ritz pairs.

    Parameters
    ----------
    values : ndarray of shape (j,)
        All Ritz values, in descending order.
    residuals : ndarray of shape (j,)
        The norms of their residuals A u - t u.
    k : int
        Number of pairs to certify.
    squared_norm : float, default=inf
        The squared Frobenius norm of the matrix A; inf if it is unknown.
    slack : float, default=0.0
        Bound on the change of an eigenvalue by rounding.
    floor : float, default=0.0
        Square root of the rounding error of |A|_F^2 minus the squares of Ritz values and residuals.
    following : float or None, default=None
        The (k+1)-th eigenvalue, if a direct method computed it; -inf if k = n.  No proof is then
        needed that no eigenvalue was overlooked.
    ritz : bool, default=False
        Whether the residuals are orthogonal to the Ritz vectors up to rounding, as after the
        Rayleigh-Ritz procedure.  This gives tighter bounds.
    bound : callable or None, default=None
        bound(j, square) returns an upper bound on the largest eigenvalue of A restricted to the
        complement of the first j Ritz vectors, given the squared Frobenius norm of the restriction.
        It is called for a few values of j.

    Returns
    -------
    Certificate
        Its arrays have shape (k,).

    See Also
    --------
    Certificate : The meaning of the bounds.

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
        bounds = _frobenius_bounds(t, r, k, squared_norm, floor, ritz, bound)
    else:
        bounds = _UpperBounds(t[:k] + r[:k], following, following, k)
    upper, outside, rest = bounds.upper + slack, bounds.outside + slack, bounds.rest + slack
    t, r = t[:k], r[:k] + slack
    upper = np.minimum.accumulate(upper)  # an upper bound on l_i also bounds l_{i+1}
    upper = _kato_temple(t, r, upper, outside, slack)
    proved = bool(rest < t[-1] - slack and outside <= t[-1] + r[-1])
    bounds = _UpperBounds(upper, outside, rest, bounds.found)
    return _make_certificate(t, r, bounds, following is not None or proved, slack)


def weyl_certificate(values: np.ndarray, trace: float, k: int, slack: float = 0.0) -> Certificate:
    """Return certified bounds on the eigenvalues of A from an approximation A^ <= A.

    A - A^ must be positive semidefinite.  Its j-th largest eigenvalue is then at most trace / j,
    where `trace` is the trace of A - A^.  By Weyl's inequality, the i-th largest eigenvalue l_i
    satisfies

        l_i(A^) <= l_i(A) <= min_j l_{i-j+1}(A^) + trace / j

    Parameters
    ----------
    values : ndarray
        The eigenvalues of A^ in descending order; eigenvalues that are not listed are 0.
    trace : float
        The trace of A - A^.
    k : int
        Number of eigenvalues to certify.
    slack : float, default=0.0
        Bound on the change of an eigenvalue by rounding.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import weyl_certificate
    >>> found = weyl_certificate(np.array([4.0, 2.0]), trace=0.5, k=1)
    >>> found.lower, found.upper, found.nothing_missed
    (array([4.]), array([4.5]), True)
    """
    lower = np.append(np.asarray(values, dtype=float), 0.0)[: k + 1]
    upper = np.array(
        [np.min(lower[i::-1] + trace / np.arange(1, i + 2)) for i in range(len(lower))]
    )
    upper = np.minimum.accumulate(upper) + slack
    t = lower[:k]
    outside = float(upper[k]) if len(upper) > k else float(trace + slack)
    proved, residuals = bool(outside < t[-1] - slack), np.full(k, trace + slack)
    bounds = _UpperBounds(upper[:k], outside, outside, k)
    return _make_certificate(t, residuals, bounds, proved, slack)


def largest_value_bound(count: int, total: float, squares: float, others: np.ndarray) -> float:
    """Return an upper bound on the largest of `count` numbers from their sum and sum of squares.

    `total` is the sum and `squares` the sum of squares.  If x is the largest number, the sum of
    squares is at least

        x^2 + min { |y|^2 : sum_i y_i = total - x,  y_i >= others_i }

    over the remaining count - 1 numbers y_i, where `others` are lower bounds on the largest of
    them, in descending order.  The minimum is at y_i = max(others_i, level) for some common level.
    The returned bound is the largest x that this condition allows.  Without lower bounds, it is
    Samuelson's inequality.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.eigen._certificate import largest_value_bound
    >>> largest_value_bound(4, 6.0, 14.0, np.array([2.0, 1.0]))  # 3, 2, 1, 0
    3.0
    """
    others = np.asarray(others, dtype=float)[: max(0, count - 2)]
    sums = np.concatenate([[0.0], np.cumsum(others)])
    squared = np.concatenate([[0.0], np.cumsum(others**2)])
    n_remaining = np.maximum(count - 1.0 - np.arange(len(sums)), 1.0)
    next_bound = np.append(others, -np.inf)
    x = float(np.sqrt(max(squares, 0.0)))
    for _ in range(_BOUND_ITERATIONS):  # each x is a valid bound, and the next one is tighter
        rest = np.maximum(total - x - sums, 0.0)
        # The first q lower bounds exceed the level of the other numbers.
        q = int(np.argmax(next_bound <= rest / n_remaining))
        x = float(np.sqrt(max(squares - squared[q] - rest[q] ** 2 / n_remaining[q], 0.0)))
    return x


def unknown_certificate(values: np.ndarray) -> Certificate:
    """Return the certificate of an approximation without error bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import unknown_certificate
    >>> print(unknown_certificate(np.array([3.0, 1.0])))
    no bound is known
    """
    unbounded = np.full(len(values), np.inf)
    bounds = (-unbounded, unbounded, unbounded, np.ones(len(values)))
    return Certificate(*bounds, (), np.inf, found=0, rest=np.inf, nothing_missed=False, slack=0.0)


class _UpperBounds(NamedTuple):
    """Upper bounds on eigenvalues; the attributes of `Certificate` have the same names."""

    upper: np.ndarray
    outside: float
    rest: float
    found: int


def _make_certificate(
    t: np.ndarray, r: np.ndarray, bounds: _UpperBounds, nothing_missed: bool, slack: float
) -> Certificate:
    """Return the certificate of Ritz values t with the given bounds; adds bounds on the angles."""
    upper, outside, rest, found = bounds
    sines, clusters = _davis_kahan(t, r, upper, outside, slack)
    values = (t - slack, np.maximum(upper, t), r, sines, clusters)
    return Certificate(*values, float(outside), found, float(rest), nothing_missed, slack)


def _frobenius_bounds(
    t: np.ndarray,
    r: np.ndarray,
    k: int,
    squared_norm: float,
    floor: float,
    ritz: bool,
    bound: Callable[[int, float], float] | None,
) -> _UpperBounds:
    """Return upper bounds from the Frobenius identity; see the module docstring for the symbols.

    The result holds upper bounds on the eigenvalues l_1 ... l_k, the bound on l_{k+1}, the smallest
    w_j, and its j.
    """
    if not np.isfinite(squared_norm):
        return _UpperBounds(np.full(k, np.inf), np.inf, np.inf, 0)
    T, R = np.cumsum(t**2), np.sqrt(np.cumsum(r**2))
    perp = np.sqrt(np.maximum(squared_norm - T - (1 + ritz) * R**2, 0.0) + floor**2)
    first = k - 1  # index of the entries for j = k
    T, R, perp = T[first:], R[first:], perp[first:]
    if bound is not None:
        for i in np.unique(np.geomspace(1, len(perp), _N_BOUND_CALLS).astype(int) - 1).tolist():
            perp[i] = min(perp[i], bound(k + i, perp[i] ** 2))
        perp = np.minimum.accumulate(perp)  # A_perp for j + 1 is a submatrix of A_perp for j
    # Column j: bounds on the i-th largest number among t_1 ... t_j and the eigenvalues of A_perp.
    ranked = np.maximum(t[:k, None], perp)
    gap = t[:k, None] - perp
    with np.errstate(invalid="ignore", divide="ignore"):  # `np.where` discards nan values
        correction = 2.0 * R**2 / (gap + np.sqrt(gap**2 + 4.0 * R**2))
    bounds = ranked + np.where((gap > 0) & (R > 0), correction, R)
    outside = _next_eigenvalue_bound(t[k:], r[k:], perp)
    best = int(np.argmin(perp))
    return _UpperBounds(bounds.min(axis=1), outside, float(perp[best]), best + first + 1)


def _next_eigenvalue_bound(t: np.ndarray, r: np.ndarray, perp: np.ndarray) -> float:
    """Return the smallest of the upper bounds x on l_{k+1} for all j >= k, found by bisection.

    The module docstring defines x, j and w_j.  `t` and `r` belong to the Ritz vectors k + 1,
    k + 2, ...; `perp` holds w_k, w_{k+1}, ...
    """
    high = float(perp[0])  # the bound for j = k
    if not len(t):
        return high
    low = max(float(t[0]), float(perp.min()))
    while low < (x := 0.5 * (low + high)) < high:
        is_bound = np.cumsum(r**2 / (x - t)) <= x - perp[1:]
        low, high = (low, x) if is_bound.any() else (x, high)
    return high


def _kato_temple(
    t: np.ndarray, r: np.ndarray, upper: np.ndarray, outside: float, slack: float
) -> np.ndarray:
    """Tighten the upper bounds of isolated eigenvalues by the Kato-Temple inequality.

    The loop starts with the smallest eigenvalue, because each bound uses that of the next smaller
    eigenvalue.
    """
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
    """Return Davis-Kahan bounds on the sines of eigenvector angles, and the clusters.

    A cluster is a range of eigenvalues that are not separated by their bounds.  Its bound is on the
    angles of the common subspace.
    """
    k = len(t)
    below = np.append(upper[1:], outside)
    gaps = (t - below - slack).tolist()  # distances to the bound on the next eigenvalue
    min_gaps = np.append(r[:-1] + r[1:], 0.0).tolist()
    sines = np.ones(k)
    clusters: list[tuple[int, int]] = []
    start = 0
    for i in range(k):
        if i + 1 < k and gaps[i] <= min_gaps[i]:
            continue  # eigenvalue i is not separated from the next one
        above = np.inf if start == 0 else t[start - 1] - t[start] - slack
        gap = min(above, gaps[i])
        if gap > 0:
            size = r[i] if i == start else np.linalg.norm(r[start : i + 1])
            sines[start : i + 1] = min(1.0, float(size) / gap)
        if i > start:
            clusters.append((start, i + 1))
        start = i + 1
    return sines, tuple(clusters)
