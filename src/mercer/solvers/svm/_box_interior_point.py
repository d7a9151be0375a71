"""Support vector machines on explicit features, by an interior-point method with crossover.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     the sum of v in each group is fixed

for K = F F^T, where F has n rows and m columns.  `InteriorPointQP` takes about 20 steps of O(n m^2)
each, whatever C is.  Let w = F^T v, let -b be the multipliers of the fixed sums, u = (w, b), and H
the diagonal matrix of weights of the interior-point method.  The matrix of the linear system of a
step,

    [ F^T H F + I   F^T H A ]
    [   A^T H F     A^T H A ],       A_sk = 1 if v_s is in group k,

is computed without a copy of F (Fine & Scheinberg 2001).  The scale of the columns does not matter:
if columns are multiplied by powers of two, the rounding errors of a Cholesky factorisation do not
change.

The crossover `find_vertex` then determines which variables are at their
bounds; at most m + 2 of them are not.  If this does not give a solution, `BlockSMO` continues.

An F with more columns than rows is replaced by R^T of the QR factorisation F^T = Q R, which has
the same K and n columns.

The result v is rounded to float64, which limits the accuracy of f = K v.  Scaling F by s has the
same effect as scaling C by s^2.  For columns of size 10^8 and C = 1, the sum F^T v loses 16 digits,
so that no v in float64 gives the right f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..._core import MemoryLimit, Stopwatch, check_budget, entry_point
from ..._core.linalg import lapack
from ...gram import KernelRows
from ...kernels import Linear
from .._blocked_products import matvec, rmatvec, squared_row_norms, weighted_gram
from .._box_qp import BoxQP, PrimalDualPoint, cholesky_or_none
from .._cost_model import Cost
from .._report import Report, Status
from ._block_smo import BlockSMO
from ._crossover import VertexSolution, better_of, evaluate_at, find_vertex
from ._dual_problem import MAX_HIDDEN_VIOLATION, Dual
from ._dual_solutions import DualProgress, DualSolution, FollowCallback, StopReason


@dataclass(frozen=True)
class _InteriorTuning:
    """Tuning constants of the interior-point method."""

    # The iteration ends after this many steps without progress.  With infinite bounds, the first
    # steps may make no progress.
    max_stalled_steps: int = 15
    # Maximum number of attempts to find a vertex.  The next attempt is made when the error is a
    # thousand times smaller.
    max_vertex_attempts: int = 6
    # SMO may take this many steps for each step of max_iter, plus one for every
    # `variables_per_smo_step` variables.
    smo_steps_per_step: int = 100
    variables_per_smo_step: int = 200
    # Smallest cache for rows of K, in bytes.
    min_cache_bytes: int = 2**24
    # A step allocates this many values for each variable.
    numbers_per_variable: int = 40
    # Size of a block of rows of F in extended precision, in bytes.
    block_bytes: int = 2**24
    # Steps assumed by the cost model; most problems take 12 to 25.
    expected_steps: int = 20
    # F^T v counts as 0 if its norm, relative to |v| |F|, is below this.
    zero_tolerance: float = 1e-6
    # The crossover to a vertex starts when the error is below the first value times tol, and the
    # sum of the products (multiplier times distance from the bound) below the second times the
    # objective.
    max_vertex_error: float = 1e-3
    max_vertex_products: float = 1e-8


_TUNING = _InteriorTuning()
_RELATIVE_ROUNDING = 2.0**-50  # assumed relative rounding error of a term of K v
_TINY = float(np.finfo(float).tiny)


@entry_point
@dataclass(frozen=True)
class BoxInterior:
    """Train a support vector machine on explicit features by an interior-point method.

    It solves the dual problem `Dual` for K = F F^T, such as that of a linear SVM or of an SVM on
    landmarks.  A step takes O(n m^2) operations for F of shape (n, m), and about 20 steps are
    needed for any C.  Prefer it to `BlockSMO` if m is much smaller than n and the classes overlap,
    so that SMO would need many steps.  A crossover determines which variables are exactly at their
    bounds; if it fails, SMO continues.

    Parameters
    ----------
    tol : float, default=1e-3
        Violation of the optimality conditions at which the solver stops, in units of the gradient;
        see `Dual.violation`.  If rounding errors could exceed ten times this value, the violation
        is computed in extended precision.
    max_iter : int, default=200
        Largest number of interior-point steps.  If the violation is still above `tol`, SMO
        continues, with at most max_iter * (100 + n_variables / 200) steps.
    max_memory : int, str or None, default=None
        Memory budget in addition to F; None for half of the memory of the computer.  The solver
        needs about 40 values for each variable, and two matrices of up to 3 (m + 2) rows, with
        m <= n, for the free variables.  If m > n, F is also copied.  If SMO is needed, rows of K
        are cached.  The cache is as large as F, but at least 16 MiB, and within the budget.

    See Also
    --------
    BlockSMO : SMO on rows of K, for any kernel.
    SMOThenInteriorPoint : Try SMO first.

    References
    ----------
    Fine and Scheinberg, "Efficient SVM training using low-rank kernel representations", Journal of
    Machine Learning Research, 2001.

    Ferris and Munson, "Interior-point methods for massive support vector machines", SIAM Journal on
    Optimization, 2002.

    Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on
    Optimization, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.svm import BoxInterior
    >>> from mercer.solvers.svm import Dual
    >>> F = np.array([[-3.0], [-1.0], [1.0], [2.0]])
    >>> dual = Dual.classify(np.array([-1.0, -1.0, 1.0, 1.0]), np.full(4, 10.0))
    >>> BoxInterior().minimize(F, dual).coefficients.round(6) + 0.0
    array([ 0. , -0.5,  0.5,  0. ])
    """

    tol: float = 1e-3
    max_iter: int = 200
    max_memory: MemoryLimit = field(default=None, repr=False)

    @staticmethod
    def workspace(n: int, m: int, variables: int) -> int:
        """Return the memory that the solver needs in addition to F.

        Parameters
        ----------
        n : int
            Number of points.
        m : int
            Number of features.
        variables : int
            Number of variables of the dual problem.

        Returns
        -------
        int
            Number of bytes.
        """
        reduced = n * m + 2 * n * n if m > n else 0
        vectors = _TUNING.numbers_per_variable * variables
        numbers = 2 * _equations(n, m, variables) ** 2 + vectors + reduced
        return 8 * numbers + min(_TUNING.block_bytes, 16 * n * m)

    @staticmethod
    def cost(n: int, m: int) -> Cost:
        """Predict the cost for F of shape (n, m).

        Parameters
        ----------
        n : int
            Number of points.
        m : int
            Number of features.

        Returns
        -------
        Cost
            The expected work.
        """
        m = min(n, m)
        step = Cost(products=2.0 * n * m * m, factors=m**3 / 3.0, read=8.0 * n * 120, calls=20)
        return _TUNING.expected_steps * step

    @np.errstate(all="ignore")  # a value that is not finite ends the iteration, and is reported
    def minimize(self, data: np.ndarray, dual: Dual, follow: FollowCallback = None) -> DualSolution:
        """Return the minimum of a dual problem for K = F F^T.

        No warning is issued if it does not converge; see the status in the report.

        Parameters
        ----------
        data : ndarray of shape (n, m)
            The features F of the points.
        dual : Dual
            The problem.
        follow : callable or None, default=None
            Called with a `DualProgress` after each step.

        Returns
        -------
        DualSolution
            Variables, coefficients and values of f, multipliers and report.
        """
        watch, F = Stopwatch(), data
        n, m = F.shape
        check_budget(
            self.workspace(n, m, len(dual)),
            self.max_memory,
            f"the interior-point method for {n} rows of {m} columns, which solves up to "
            f"{_equations(n, m, len(dual))} equations (solver='smo' does not solve equations),",
        )
        if m > n:
            F = np.ascontiguousarray(np.transpose(np.linalg.qr(F.T, mode="r")))
        program = InteriorPointQP(F, dual)
        point, vertex = program.initial_iterate(), program.initial_point()
        target, stalled, attempts = np.inf, 0, _TUNING.max_vertex_attempts
        while vertex.violation > self.tol and attempts and point.n_iter < self.max_iter:
            next_point = program.step(point)
            if next_point is not None:
                stalled = 0 if program.decreased(point, next_point) else stalled + 1
                point = next_point
            error = program.error(point)
            if next_point is not None and follow is not None:
                follow(DualProgress(point.n_iter, watch.seconds, error, -program.value(point)))
            is_stalled = next_point is None or stalled == _TUNING.max_stalled_steps
            is_last = is_stalled or point.n_iter == self.max_iter
            if is_last or (error <= target and program.is_near_vertex(point, self.tol)):
                vertex = better_of(vertex, program.vertex(point, self.tol), self.tol)
                target, attempts = 1e-3 * error, 0 if is_last else attempts - 1
        smo, v = None, program.all_variables(point)
        unbounded = vertex.violation > self.tol and _is_unbounded(F, dual, v)
        hopeless = unbounded or program.is_limited_by_rounding(vertex) or _overflows(F, dual)
        if vertex.violation > self.tol and not hopeless:
            follow = _continued_progress(follow, point, watch)
            smo = self._continue_with_smo(F, replace(dual, start=vertex.v), follow)
            vertex = better_of(vertex, evaluate_at(F, dual, smo.variables), self.tol)
        messages = []
        vertex = vertex._replace(violation=_reliable_violation(F, dual, vertex, self.tol))
        if vertex.violation > self.tol:
            reason = _unbounded_message(dual, v) if unbounded else self._reason(F, dual, vertex)
            messages.append(f"after {point.n_iter} steps, {reason}")
        if smo is not None:
            messages.append(
                f"{smo.report.n_iter} SMO steps were taken after the interior-point method"
            )
        smo_certificate = {} if smo is None else smo.report.certificate
        n_free = int(np.count_nonzero(dual.free(vertex.v)))
        details = {
            "n_free": n_free,  # number of free variables; in regression, each point has two
            "n_bound": int(np.count_nonzero(vertex.v)) - n_free,
            "entries": smo_certificate.get("entries", 0),
            "cache_hits": smo_certificate.get("cache_hits", float("nan")),
            "curvature": 0.0,
        }
        status, stop = Status.CONVERGED, StopReason.CONVERGED
        if not vertex.violation <= self.tol:
            status, stop = Status.NOT_CONVERGED, StopReason.MAX_ITER
        numbers = point.n_iter, vertex.violation, watch.seconds
        report = Report(repr(self), status, *numbers, "; ".join(messages), details)
        values = matvec(F, rmatvec(F, dual.coefficients(vertex.v)))
        return DualSolution.certified(dual, vertex.v, values, report, stop)

    def _continue_with_smo(self, F: np.ndarray, dual: Dual, follow: FollowCallback) -> DualSolution:
        """Solve the problem by SMO, starting from `dual.start`."""
        X = F if F.shape[1] else np.zeros((len(F), 1))
        steps_per_step = _TUNING.smo_steps_per_step + len(dual) // _TUNING.variables_per_smo_step
        max_steps = self.max_iter * steps_per_step
        cache_bytes = max(X.nbytes, _TUNING.min_cache_bytes)
        rows = KernelRows(Linear(), X, cache_bytes=cache_bytes, max_memory=self.max_memory)
        return BlockSMO(tol=self.tol, max_iter=max_steps).minimize(rows, dual, follow)

    def _reason(self, F: np.ndarray, dual: Dual, vertex: VertexSolution) -> str:
        """Return the reason why no minimum was found, with advice for the user."""
        if not np.isfinite(vertex.violation) or _overflows(F, dual):
            largest = np.abs(F).max(initial=0.0)
            return (
                f"values of f are not finite, or may overflow, for features of up to {largest:.1e} "
                f"and a C of up to {_width(dual).max():.1e}. Scale the features, or decrease C"
            )
        return (
            f"the violation is {vertex.violation:.1e}, above tol={self.tol:g}, for gradients of up "
            f"to {np.abs(vertex.g).max():.1e}. The usual cause is features far larger than 1, or a "
            f"huge C, so that the rounding of v alone causes this violation. Scale the features, "
            f"decrease C, or increase tol or max_iter"
        )


def _reliable_violation(F: np.ndarray, dual: Dual, vertex: VertexSolution, tol: float) -> float:
    """Return the violation; it is recomputed in extended precision if rounding may hide it."""
    v, largest = vertex.v, float(squared_row_norms(F).max(initial=0.0))
    if not np.isfinite(vertex.violation) or dual.hidden_violation(v, largest, tol) < 0.0:
        return vertex.violation
    c, step = dual.coefficients(v), max(1, _TUNING.block_bytes // (16 * max(1, F.shape[1])))
    blocks = [slice(start, start + step) for start in range(0, len(F), step)]
    w = np.zeros(F.shape[1], dtype=np.longdouble)
    for rows in blocks:
        w += c[rows] @ F[rows].astype(np.longdouble)
    f = np.concatenate([F[rows].astype(np.longdouble) @ w for rows in blocks])
    violation = float(dual.violation(v, dual.gradient(f)))
    return violation if violation > MAX_HIDDEN_VIOLATION * tol else vertex.violation


def _continued_progress(
    follow: FollowCallback, point: PrimalDualPoint, watch: Stopwatch
) -> FollowCallback:
    """Return a progress callback for SMO; its steps and time include the interior-point method."""
    if follow is None:
        return None
    return lambda progress: follow(
        progress._replace(n_iter=point.n_iter + progress.n_iter, seconds=watch.seconds)
    )


def _equations(n: int, m: int, variables: int) -> int:
    """Return the largest number of equations that the crossover may have to solve."""
    columns = min(n, m) + 2
    return columns + min(2 * columns, variables)


def _width(dual: Dual) -> np.ndarray:
    widths: np.ndarray = dual.upper - dual.lower
    return widths


def _overflows(F: np.ndarray, dual: Dual) -> bool:
    """Whether K v may overflow for some v between the bounds; an infinite distance counts as 1."""
    width = _width(dual)
    total = np.where(np.isinf(width), 1.0, width).sum()
    return not np.isfinite(squared_row_norms(F).max(initial=0.0) * total)


def _is_unbounded(F: np.ndarray, dual: Dual, v: np.ndarray) -> bool:
    """Whether the objective decreases without limit in the direction v.

    This is so if F^T v = 0 and q^T v < 0.  Only variables with an infinite bound are considered.
    """
    d = np.where(np.isinf(_width(dual)), v, 0.0)
    largest = np.abs(d).max(initial=0.0)
    if not largest > 0:
        return False
    d /= largest
    w = rmatvec(F, dual.coefficients(d))
    rows = np.sqrt(squared_row_norms(F))[dual.points]
    linear, tolerance = dual.linear, _TUNING.zero_tolerance
    decreases = -float(linear @ d) > tolerance * float(np.abs(linear) @ np.abs(d))
    return decreases and float(np.linalg.norm(w)) <= tolerance * float(rows @ np.abs(d))


def _unbounded_message(dual: Dual, v: np.ndarray) -> str:
    """Return the message for a problem whose objective has no minimum."""
    cause = "the classes overlap: no hard margin exists; choose a finite C"
    if len(dual) > dual.n:  # regression has two variables for each point
        cause = "no f is within epsilon of all targets; choose a finite C, or raise epsilon"
    return f"the variables grow without bound, up to {np.abs(v).max():.1e}: {cause}"


class InteriorPointQP(BoxQP):
    """The interior-point method on a `Dual` with K = F F^T, and the crossover to a vertex.

    Variables that can have only one value, given their bounds or the sum of their group, are
    treated as constants.  The mean of F is subtracted in products with F: because the sums of v are
    fixed, this changes only the intercept and the linear term.

    Parameters
    ----------
    F : ndarray of shape (n, m)
    dual : Dual
    """

    def __init__(self, F: np.ndarray, dual: Dual) -> None:
        self.F, self.dual = F, dual
        self.determined = _determined_variables(dual)
        self.variable_indices = variables = np.flatnonzero(np.isnan(self.determined))
        self.points, self.groups = dual.points[variables], dual.groups[variables]
        self.one_per_point = np.array_equal(self.points, np.arange(dual.n))
        self.m = F.shape[1]
        constant = np.where(np.isnan(self.determined), 0.0, self.determined)
        sums = np.bincount(dual.groups, dual.start - constant, minlength=dual.n_groups)
        self.centre = rmatvec(F, np.full(len(F), 1.0 / len(F)))
        # The part of w that comes from the constants and the centre, and does not depend on v.
        offset = rmatvec(F, dual.coefficients(constant)) + sums.sum() * self.centre
        linear = dual.linear[variables] + self._centred_times(offset)[self.points]
        self.constant_term = 0.5 * float(offset @ offset)
        box = dual.lower[variables], dual.upper[variables]
        ridge = np.repeat([1.0, 0.0], [self.m, len(sums)])
        super().__init__(*box, linear, ridge, sums=np.concatenate([np.zeros(self.m), sums]))

        # The diagonal of K, for F and for centred features.
        self.row_squares = squared_row_norms(F)
        shift = matvec(F, 2.0 * self.centre)
        self.centred_squares = self.row_squares - shift + self.centre @ self.centre
        width = self.upper - self.lower
        self.box_width = np.where(np.isfinite(width), width, self._default_width())

    def _default_width(self) -> float:
        """Return the width used if a bound is infinite: an estimate of the largest variable."""
        size = float(self.centred_squares[self.points].mean()) if len(self.points) else 0.0
        width = 2.0 * float(np.ptp(self.linear)) / size if size > 0 else 0.0
        return max(width, float(np.abs(self.dual.start).max(initial=0.0))) or 1.0

    # ------------------------------------------------------------------ products with centred F

    def times(self, u: np.ndarray) -> np.ndarray:
        values: np.ndarray = (
            self._centred_times(u[: self.m])[self.points] + u[self.m :][self.groups]
        )
        return values

    def _centred_times(self, w: np.ndarray) -> np.ndarray:
        product: np.ndarray = matvec(self.F, w) - self.centre @ w
        return product

    def pulled(self, v: np.ndarray) -> np.ndarray:
        w = rmatvec(self.F, self.sum_by_point(v)) - self.centre * v.sum()
        return np.concatenate([w, self.sum_by_group(v)])

    def primal_residual(self, point: PrimalDualPoint) -> np.ndarray:
        residual = super().primal_residual(point)
        # The sums are recomputed from v, because rounding errors accumulate over the steps.
        sums = self.sum_by_group(self.variables(point.a, point.c))
        residual[self.m :] = sums - self.sums[self.m :]
        return residual

    def sum_by_point(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each point."""
        return x if self.one_per_point else np.bincount(self.points, x, minlength=self.dual.n)

    def sum_by_group(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x over the variables of each group."""
        one = self.dual.n_groups == 1
        return np.array([x.sum()]) if one else np.bincount(self.groups, x, self.dual.n_groups)

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        m, K, n = self.m, self.dual.n_groups, self.dual.n
        H = np.empty((n, K))  # the sum of h over the variables of each point, by group
        for k in range(K):
            H[:, k] = self.sum_by_point(h if K == 1 else np.where(self.groups == k, h, 0.0))
        total = H.sum(axis=0)
        A = np.zeros((m + K, m + K), order="F")
        A[:m, :m] = weighted_gram(self.F, H.sum(axis=1), self.centre)
        A[m:, :m] = rmatvec(self.F, H).T - np.outer(total, self.centre)
        A[m:, m:] = np.diag(np.where(total > 0, total, 1.0))
        A.flat[: m * (m + K) : m + K + 1] += 1.0
        L = cholesky_or_none(A)
        return None if L is None else lambda rhs: lapack.dpotrs(L, rhs, lower=1)[0]

    # ------------------------------------------------------------------ iterates

    def initial_iterate(self) -> PrimalDualPoint:
        """Return an iterate with the required sums.

        All variables of a group have the same relative position between their bounds.
        """
        ends = np.where(self.below, self.lower, self.upper - self.box_width)
        missing = self.sums[self.m :] - self.sum_by_group(ends)
        position = missing / np.maximum(self.sum_by_group(self.box_width), _TINY)
        # With infinite bounds, any relative position is feasible.
        position = np.clip(position, 0.01, 0.99)[self.groups]
        a = np.where(self.below, position * self.box_width, 1.0)
        c = np.where(self.above, (1.0 - position) * self.box_width, 1.0)
        v = self.variables(a, c)
        pull = self.pulled(v)
        # If the sums are 0, all multiples of v are feasible.  Use w = F^T v of the best multiple.
        size, best = float(pull[: self.m] @ pull[: self.m]), -float(self.linear @ v)
        multiple = min(max(best / size, 0.0), 1.0) if size and not self.sums.any() else 1.0
        u = multiple * pull
        u[self.m :] = 0.0
        g = self.times(u) + self.linear
        for k in range(self.dual.n_groups):
            members = self.groups == k
            u[self.m + k] = -float(np.median(g[members])) if members.any() else 0.0
        image = self.times(u)
        g = image + self.linear
        self.gradient_scale = float(np.abs(g).mean()) or 1.0 if len(g) else 1.0
        margin = g
        if len(g):
            margin = self.gradient_scale * float(self.box_width.mean()) / self.box_width
        z = np.where(self.below, np.maximum(g, 0.0) + margin, 0.0)
        y = np.where(self.above, np.maximum(-g, 0.0) + margin, 0.0)
        return PrimalDualPoint(u, a, c, z, y, image, pull)

    def value(self, point: PrimalDualPoint) -> float:
        """Return the objective, 1/2 |F^T v|^2 + q^T v."""
        v, w = self.variables(point.a, point.c), point.pull[: self.m]
        return 0.5 * float(w @ w) + float(self.linear @ v) + self.constant_term

    def error(self, point: PrimalDualPoint) -> float:
        """Return the error of the iterate, in units of the gradient.

        It is the largest product of a multiplier and the distance of v from the bound, divided by
        the distance between the bounds.
        """
        largest = np.maximum(point.a * point.z, point.c * point.y)
        return float((largest / self.box_width).max(initial=0.0))

    def decreased(self, before: PrimalDualPoint, after: PrimalDualPoint) -> bool:
        """Whether a step made progress.

        Either the sum of all products (multiplier times distance from the bound), or the norm of
        w - F^T v, must decrease by more than 10 %.
        """
        residuals = (self.primal_residual(point)[: self.m] for point in (before, after))
        old, new = map(np.linalg.norm, residuals)
        return bool(after.products < 0.9 * before.products or new < 0.9 * old)

    def all_variables(self, point: PrimalDualPoint) -> np.ndarray:
        """Return all variables v, including the constant ones."""
        v = self.determined.copy()
        v[self.variable_indices] = self.variables(point.a, point.c)
        return v

    def initial_point(self) -> VertexSolution:
        """Evaluate the start of the dual, which may already be its minimum."""
        v = np.where(np.isnan(self.determined), self.dual.start, self.determined)
        return evaluate_at(self.F, self.dual, v)

    def is_limited_by_rounding(self, vertex: VertexSolution) -> bool:
        """Whether the rounding of v alone can cause the violation."""
        return vertex.violation <= self._rounding_error(vertex.v[self.variable_indices])

    def is_near_vertex(self, point: PrimalDualPoint, tol: float) -> bool:
        """Whether the iterate is close enough to the minimum to search for a vertex."""
        error, max_error = self.error(point), _TUNING.max_vertex_error
        max_products = _TUNING.max_vertex_products * abs(self.value(point))
        if error <= max_error * self._rounding_error(self.variables(point.a, point.c)):
            return True
        small_products = point.products <= max_products or error <= max_error**2 * tol
        return small_products and error <= max_error * tol

    def _rounding_error(self, v: np.ndarray) -> float:
        """Return a bound on the error of K v that is caused by rounding of v."""
        sizes = v * np.sqrt(self.row_squares[self.points])
        longest_row = np.sqrt(self.row_squares.max(initial=0.0))
        return _RELATIVE_ROUNDING * float(longest_row * np.linalg.norm(sizes))

    def vertex(self, point: PrimalDualPoint, tol: float) -> VertexSolution:
        """Return a solution with variables exactly at their bounds, found by crossover."""
        v = self.determined.copy()
        v_variable = self.variables(point.a, point.c)
        # A variable is at a bound if its distance to the bound goes to 0, and its multiplier does
        # not.  To compare the two, the distance is multiplied by an estimate of the derivative of
        # the gradient: K_ii, or the size of the gradient divided by the width of the box.
        f = point.image - point.u[self.m :][self.groups]
        gradient_size = max(self.gradient_scale, float(np.abs(f).max(initial=0.0)))
        unit = np.maximum(gradient_size / self.box_width, self.centred_squares[self.points])
        down = self.below & (unit * point.a < point.z)
        up = self.above & (unit * point.c < point.y) & ~down
        v_variable = np.where(down, self.lower, np.where(up, self.upper, v_variable))
        v[self.variable_indices] = np.clip(v_variable, self.lower, self.upper)
        return find_vertex(self.F, self.dual, v, tol)


def _determined_variables(dual: Dual) -> np.ndarray:
    """Return the values of variables that can have only one value, and NaN for the others.

    The value is determined by equal bounds, or by a sum of the group that is the smallest or
    largest possible one.
    """
    determined = np.where(dual.upper > dual.lower, np.nan, dual.lower)
    for k in range(dual.n_groups):
        members = dual.groups == k
        for bounds in (dual.lower, dual.upper):
            distance = np.abs(bounds - dual.start)[members].sum()
            if distance <= 1e-14 * np.abs(dual.start[members]).sum():
                determined[members] = bounds[members]
    return determined
