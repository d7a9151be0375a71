"""Support vector machines by a growing core set, for very many points.

    repeat  solve the dual problem on the core set W               started from the last v
            f = sum over W of v_s k(x_s, .) at all n points        one pass over the points
            split all points into random groups, and add the point of each group with the
            largest loss to W
    until   primal objective <= (1 + tol)^2 dual objective

A variable outside of W is 0, so that v is feasible for all points, and its dual objective is a
lower bound.  The pass sums the loss of f over all points, which gives the primal objective.  The
certificate is therefore the duality gap of the whole problem, not that of a random subset.

With the squared hinge loss, the dual is the squared distance of two polytopes with the kernel
k(x, z) + delta_xz / (2 C).  The hard one-class SVM is the distance of one polytope from the origin,
which is the minimum enclosing ball if k(x, x) is constant.  For these problems, a core set of
O(1 / tol) points exists for any n; the constant is the squared diameter of the polytopes divided by
their squared distance, so that it is small only if few points violate the margin.

Groups are random: the farthest point of a group of 59 is among the farthest 5 % of all points with
a probability of 95 % (Tsang, Kwok & Cheung 2005).  If there are many points, a random subset is
solved first, so that only few passes over all points are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    Stopwatch,
    budget_in_bytes,
    check_budget,
    concatenate,
    entry_point,
    take,
)
from ..._core.linalg import cho_solve
from ...blocks import BlockRows, Blocks, hash_rows, reduce_rows, select_rows
from ...gram import KernelRows, gram
from ...kernels import Kernel, Precomputed, as_index_kernel
from .._box_qp import cholesky_or_none
from .._report import Report, Status
from ._block_smo import BlockSMO
from ._dual_problem import Dual, fill_in_order
from ._dual_solutions import DualProgress, DualSolution, FollowCallback, StopReason


@dataclass(frozen=True)
class _CoreSetTuning:
    """Tuning constants of the core-set method."""

    # Number of points of each class in the first core set.
    first_points: int = 50
    # A pass adds at most as many points as the core set has, within these limits.
    min_added: int = 64
    max_added: int = 1000
    # Sizes of the random subsets that are solved first: the smallest, the factor to the next one,
    # and the largest size in bytes, if the points are vectors.
    subset_points: int = 20_000
    subset_factor: int = 7
    subset_bytes: int = 2**26
    # The core set is solved to this fraction of tol, and ten times more precisely if needed.
    inner_accuracy: float = 0.1
    # While points are added, it is only solved to this fraction of the largest violation.
    early_accuracy: float = 0.01
    min_accuracy: float = 1e-12
    # Newton's method for a squared loss: maximum number of steps, and of halvings of a step.
    max_newton_steps: int = 50
    max_halvings: int = 20
    # Its tolerances: for violations of the margin, and for the sum of v relative to that of |v|.
    newton_slack: float = 1e-10
    newton_sum: float = 1e-9
    # The objective of a one-class SVM is 0 if it is below this fraction of that of the ball.
    zero_minimum: float = 1e-10
    # The core set is limited so that this many matrices of its size fit into the memory budget.
    matrices: int = 4
    # Largest number of rounds with max_iter=-1.
    max_rounds: int = 1000


_TUNING = _CoreSetTuning()


@dataclass(frozen=True, eq=False)
class CoreProblem:
    """A support vector machine on points that need not be in memory.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers.
    points : points or Blocks
        The n points.
    signs : ndarray of shape (n,)
        The classes, +1 or -1; +1 for a one-class SVM.
    C : ndarray of shape (n,)
        The weight of the loss of each point.
    squared : bool, default=False
        Whether the loss is squared: C_i max(0, 1 - y_i f(x_i))^2.
    total : float or None, default=None
        For a one-class SVM, the sum of the dual variables, which is the weight of the offset rho in
        the objective; None for classification.

    See Also
    --------
    CoreSet : The solver.

    References
    ----------
    Tsang, Kwok and Cheung, "Core vector machines: fast SVM training on very large data sets",
    Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers.svm import CoreProblem
    >>> X, signs = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> CoreProblem(Linear(), X, signs, np.ones(2)).dual(np.arange(2)).linear
    array([ 1., -1.])
    """

    kernel: Kernel
    points: Points | Blocks
    signs: np.ndarray
    C: np.ndarray
    squared: bool = False
    total: float | None = None

    def dual(self, index: np.ndarray) -> Dual:
        """Return the dual problem on a subset of the points, without the shift of a squared loss.

        Parameters
        ----------
        index : ndarray of int of shape (m,)
            Indices of the points.

        Returns
        -------
        Dual
            The problem; its start is 0 for classification.
        """
        C = self.C[index]
        if self.total is not None:
            start = fill_in_order(C, self.total)
            return replace(Dual.one_class(C, 1.0), start=start)
        return Dual.classify(self.signs[index], np.full(len(C), np.inf) if self.squared else C)

    def shift(self, index: np.ndarray) -> np.ndarray:
        """Return the numbers that a squared loss adds to the diagonal of K, 1 / (2 C).

        Parameters
        ----------
        index : ndarray of int of shape (m,)
            Indices of the points.

        Returns
        -------
        ndarray of shape (m,)
            The numbers; 0 if the loss is not squared.
        """
        return 0.5 / self.C[index] if self.squared else np.zeros(len(index))

    def rows(self, index: np.ndarray) -> Points:
        """Return some of the points, in memory.

        Parameters
        ----------
        index : ndarray of int of shape (m,)
            Indices of the points, which must be ascending if the points are in blocks.

        Returns
        -------
        points
            The points with these indices.
        """
        rows = select_rows(self.points, index)
        return rows.to_array() if isinstance(rows, Blocks) else rows


class CoreSolution(NamedTuple):
    """The solution of a `CoreProblem`: the core set, and the solution of its dual problem.

    Attributes
    ----------
    members : ndarray of int of shape (m,)
        The points of the core set.
    solution : DualSolution
        The variables of these points; those of all other points are 0.  The certificate of its
        report refers to all points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers.svm import CoreProblem, CoreSet
    >>> X, signs = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> found = CoreSet().minimize(CoreProblem(Linear(), X, signs, np.ones(2)))
    >>> found.members, found.solution.coefficients
    (array([0, 1]), array([-0.5,  0.5]))
    """

    members: np.ndarray
    solution: DualSolution


@entry_point
@dataclass(frozen=True)
class CoreSet:
    """Train a support vector machine on a growing core set (core vector machine).

    The dual problem is solved on a small subset of the points, the core set.  A pass over all
    points computes the duality gap of the whole problem, and finds the points that are added to the
    core set.  The points may be in blocks: only the core set is in memory.  Use it for more than
    about 10^5 points if few of them violate the margin.  If a large fraction of the points are
    support vectors, no small core set exists, and landmarks are better.

    Parameters
    ----------
    tol : float, default=1e-3
        Accuracy epsilon of the objective.  The solver stops when the primal objective is at most
        (1 + tol)^2 times the dual objective, so that it is at most this factor above its minimum.
        For the one-class SVM, both the objective and the squared radius of the enclosing ball are
        known up to this factor.
    max_iter : int, default=-1
        Maximum number of rounds, each of which solves the problem on the core set; -1 means 1000.
    max_memory : int, str or None, default=None
        Memory budget, mainly for the kernel matrix of the core set; None for half of the memory of
        the computer.  If the core set needs more, the solver stops without convergence.

    See Also
    --------
    CoreProblem : The problem.
    BlockSMO : The solver for problems whose points fit in memory.

    References
    ----------
    Tsang, Kwok and Cheung, "Core vector machines: fast SVM training on very large data sets",
    Journal of Machine Learning Research 6, 2005.

    Badoiu and Clarkson, "Optimal core-sets for balls", Computational Geometry 40, 2008.

    Gärtner and Jaggi, "Coresets for polytope distance", Symposium on Computational Geometry, 2009,
    for the certificate and kernels whose k(x, x) is not constant.

    Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007, for
    the solution on the core set with a squared loss; `BlockSMO` solves it otherwise.

    Loosli and Canu, "Comments on the core vector machines", Journal of Machine Learning Research 8,
    2007, for the accuracy of the ball as a stopping criterion.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers.svm import CoreProblem, CoreSet
    >>> X = np.random.default_rng(0).uniform(size=(50_000, 2))
    >>> signs = np.where(X[:, 0] + X[:, 1] > 1.0, 1.0, -1.0)
    >>> problem = CoreProblem(RBF(0.3), X, signs, np.full(50_000, 100.0), squared=True)
    >>> members, solution = CoreSet(tol=0.05).minimize(problem)
    >>> certificate = solution.report.certificate
    >>> bool(certificate["primal"] <= 1.05**2 * certificate["dual"]), len(members) < 5000
    (True, True)
    """

    tol: float = 1e-3
    max_iter: int = -1
    max_memory: MemoryLimit = field(default=None, repr=False)

    def minimize(self, problem: CoreProblem, follow: FollowCallback = None) -> CoreSolution:
        """Return the minimum of a problem up to the factor (1 + tol)^2.

        No warning is issued if it does not converge; see the status in the report.

        Parameters
        ----------
        problem : CoreProblem
            The problem.
        follow : callable or None, default=None
            Called with a `DualProgress` after each round.

        Returns
        -------
        CoreSolution
            The core set and its variables.
        """
        if not np.isfinite(problem.C).all():
            raise ValueError(
                "solver='core-set' needs a finite C, because with C=inf the primal objective is "
                "infinite unless all margins are exact. Use a large C such as 1e6, or solver='smo'"
            )
        n, search = len(problem.signs), _CoreSearch(self, problem, follow)
        order = np.argsort(hash_rows(np.arange(n), 0), kind="stable")  # a random order
        size = max(_TUNING.subset_points, 2 * len(search.enter(order)))
        columns = getattr(problem.points, "shape", (n, 1))[-1]
        while 2 * size < n and 8 * size * columns <= _TUNING.subset_bytes and not search.message:
            subset = np.sort(order[:size])
            search.grow(problem.rows(subset), subset)
            size *= _TUNING.subset_factor
        del order
        search.stop, search.message = StopReason.CONVERGED, ""
        search.grow(problem.points, None)
        return search.result()


class _Candidates(NamedTuple):
    """The sum of the losses of some points, and the point with the largest loss of each group."""

    loss: float
    excess: np.ndarray  # 1 - y_i f(x_i), or rho - f(x_i) for a one-class SVM
    group: np.ndarray
    row: np.ndarray
    X: Points


class _CoreSearch:
    """The state of the core-set method: the core set with its matrix K and variables v."""

    def __init__(self, solver: CoreSet, problem: CoreProblem, follow: FollowCallback) -> None:
        self.solver, self.problem, self.follow = solver, problem, follow
        self.watch, self.scale = Stopwatch(), 1.0
        self.index, self.v = np.empty(0, dtype=np.intp), np.empty(0)
        self.K = np.empty((0, 0))
        self.X: Any = None
        self.f, self.m = np.empty(0), np.zeros(1)
        self.curvature = self.dual_objective = 0.0
        self.rounds = self.passes = self.entries = 0
        self.primal, self.epsilon, self.excess = np.inf, np.inf, np.inf
        self.accuracy = _TUNING.inner_accuracy * solver.tol
        self.stop, self.message = StopReason.CONVERGED, ""
        capacity = budget_in_bytes(solver.max_memory) / (8 * _TUNING.matrices)
        self.max_size = int(np.sqrt(capacity))

    def enter(self, order: np.ndarray) -> np.ndarray:
        """Set the first core set: the first points of each class, or of sufficient weight."""
        problem, count = self.problem, _TUNING.first_points
        if problem.total is not None:  # the variables of the core set must have the given sum
            needed = 1 + int(np.searchsorted(np.cumsum(problem.C[order]), problem.total))
            what = f"the matrix of the first {needed} points of the core set"
            check_budget(8 * _TUNING.matrices * needed**2, self.solver.max_memory, what)
            index = np.sort(order[: needed + count])
        else:
            signs = problem.signs[order]
            index = np.sort(np.concatenate([order[signs == s][:count] for s in (-1.0, 1.0)]))
        self._add(index, problem.rows(index))
        self.v = problem.dual(index).start
        if problem.total is not None:
            self.scale = problem.total * float(np.abs(np.diag(self.K)).max())
        return index

    def _add(self, index: np.ndarray, X: Points) -> None:
        """Add points to the core set."""
        K = gram(self.problem.kernel, X).to_array()
        K = K + np.diag(self.problem.shift(index))
        if self.X is None:
            self.index, self.X, self.K, self.v = index, X, K, np.zeros(len(index))
            return
        cross = gram(self.problem.kernel, self.X, X).to_array()
        self.entries += cross.size + K.size
        self.K = np.block([[self.K, cross], [cross.T, K]])
        self.index, self.X = np.concatenate([self.index, index]), concatenate(self.X, X)
        self.v = np.concatenate([self.v, np.zeros(len(index))])

    def _drop_unused(self) -> None:
        """Remove the points with variable 0 from the core set."""
        used = np.flatnonzero(self.v)
        self.index, self.X, self.v = self.index[used], take(self.X, used), self.v[used]
        self.K = self.K[np.ix_(used, used)]

    def grow(self, points: Points | Blocks, index: np.ndarray | None) -> None:
        """Grow the core set until the gap on these points is small; `index` None means all."""
        problem, solver = self.problem, self.solver
        limit = _TUNING.max_rounds if solver.max_iter < 0 else solver.max_iter
        ids = np.arange(len(problem.signs)) if index is None else index
        targets = np.column_stack([problem.signs[ids], ids])
        weights = problem.C[ids]
        while True:
            dual = self._solve()
            self.rounds, self.passes = self.rounds + 1, self.passes + (index is None)
            used = np.flatnonzero(self.v)
            n_groups = int(np.clip(len(self.index), _TUNING.min_added, _TUNING.max_added))
            found = reduce_rows(
                *(points, _worst_points, partial(_merge, n_groups)),
                *(problem.kernel, take(self.X, used), self.v[used], float(self.m[0])),
                *(problem.total is None, problem.squared, np.sort(self.index), n_groups),
                y=targets,
                weights=weights,
            )
            self.entries += len(used) * len(ids)
            self._certify(dual, found)
            if self.follow is not None:
                state = self.rounds, self.watch.seconds, self.excess, self.dual_objective
                self.follow(DualProgress(*state))
            if self.epsilon <= solver.tol:
                return
            if self.rounds >= limit:
                self._give_up(StopReason.MAX_ITER, f"max_iter={limit} rounds")
                return
            if not len(found.row):
                self.accuracy *= 0.1
                if self.accuracy < _TUNING.min_accuracy:
                    self._give_up(StopReason.ROUNDING, "rounding errors")
                    return
                continue
            if len(self.v) + len(found.row) > min(self.max_size, 2 * len(used)):
                self._drop_unused()
            room = self.max_size - len(self.v)
            if room < min(_TUNING.min_added, len(found.row)):
                memory = f"the memory budget, which allows a core set of {self.max_size} points"
                self._give_up(StopReason.GIVEN_UP, memory)
                return
            best = np.argsort(-found.excess, kind="stable")[:room]
            self._add(found.row[best], take(found.X, best))

    def _give_up(self, stop: StopReason, reason: str) -> None:
        self.stop = stop
        self.message = (
            f"stopped by {reason}, with a core set of {len(self.v)} points: the primal objective "
            f"{self.primal:.4g} exceeds the dual objective {self.dual_objective:.4g} by more than "
            f"the factor (1 + tol)^2 for tol={self.solver.tol:g}. The usual cause is that many "
            f"points violate the margin, so that no small core set exists. Increase tol or "
            f"max_memory, or use solver='nystroem'"
        )

    def _solve(self) -> Dual:
        """Solve the dual problem on the core set, and return it."""
        dual = replace(self.problem.dual(self.index), start=self.v)
        if self.problem.squared and self._solve_squared(dual):
            self.curvature, self.dual_objective = 0.0, dual.objective(self.v, self.f)
            return dual
        kernel, index = as_index_kernel(Precomputed(), self.K)
        rows = KernelRows(kernel, index, max_memory=self.solver.max_memory)
        early = _TUNING.early_accuracy * self.excess if np.isfinite(self.excess) else 0.0
        found = BlockSMO(max(self.accuracy * self.scale, early)).minimize(rows, dual)
        self.v, self.f, self.m = found.variables, found.values, found.multipliers
        self.curvature = found.report.certificate["curvature"]
        self.dual_objective = dual.objective(self.v, self.f)
        return dual

    def _solve_squared(self, dual: Dual) -> bool:
        """Solve the problem with a squared loss by Newton's method; return False if it fails.

        A step solves the linear system of the points S that violate the margin (Chapelle 2007),

            (K + D)_SS v_S + b 1 = y_S,   sum v_S = 0,      D = 1 / (2 C) on the diagonal,

        and a line search reduces the primal objective.  If S does not change, v is the minimum.
        """
        y, shift, C = -dual.linear, self.problem.shift(self.index), self.problem.C[self.index]
        a, b, Ka = self.v, -float(self.m[0]), np.zeros(len(self.v))
        if a.any():
            Ka = self.K @ a - shift * a

        def objective(a: np.ndarray, b: float, Ka: np.ndarray) -> float:
            slack = np.maximum(0.0, 1.0 - y * (Ka + b))
            return float(0.5 * a @ Ka + C @ (slack * slack))

        value = objective(a, b, Ka)
        for _ in range(_TUNING.max_newton_steps):
            S = np.flatnonzero(y * (Ka + b) < 1.0)
            L = cholesky_or_none(np.asfortranarray(self.K[np.ix_(S, S)]))
            if L is None or not len(S):
                return False
            u = cho_solve((L, True), np.column_stack([y[S], np.ones(len(S))]))
            new_b = float(u[:, 0].sum() / u[:, 1].sum())
            new_a = np.zeros(len(a))
            new_a[S] = u[:, 0] - new_b * u[:, 1]
            new_Ka = self.K[:, S] @ new_a[S] - shift * new_a
            is_outside = np.ones(len(a), dtype=bool)
            is_outside[S] = False
            margin = y * (new_Ka + new_b)
            slack = _TUNING.newton_slack * float(np.abs(margin).max())
            if np.all(margin[S] < 1.0 + slack) and np.all(margin[is_outside] >= 1.0 - slack):
                v = np.where(y * new_a > 0.0, new_a, 0.0)
                self.v, self.f, self.m = v, self.K @ v, np.array([-new_b])
                return bool(abs(v.sum()) <= _TUNING.newton_sum * np.abs(v).sum())
            for _ in range(_TUNING.max_halvings):
                trial = objective(new_a, new_b, new_Ka)
                if trial < value:
                    break
                new_a, new_b, new_Ka = 0.5 * (a + new_a), 0.5 * (b + new_b), 0.5 * (Ka + new_Ka)
            else:
                return False
            a, b, Ka, value = new_a, new_b, new_Ka, trial
        return False

    def _certify(self, dual: Dual, found: _Candidates) -> None:
        """Compute both objectives, and the accuracy epsilon that they prove."""
        problem = self.problem
        norm = float(self.v @ (self.f - problem.shift(self.index) * self.v))
        total = problem.total or 0.0
        self.primal = 0.5 * norm - float(self.m[0]) * total + found.loss
        gap = max(0.0, self.primal - self.dual_objective)
        self.excess = float(found.excess.max(initial=0.0))
        if problem.total is None:
            ratio = self.primal / self.dual_objective if self.dual_objective > 0 else np.inf
        else:
            # The objective is -norm / 2, and that of the ball is proportional to `spread`.
            spread = 0.5 * (total * float(self.v @ np.diag(self.K)) - norm)
            left = 0.5 * norm - gap
            ratio = 1.0 + gap / spread if spread > 0 else 1.0
            # If the hull contains the origin, the minimum is 0, and has no relative accuracy.
            if 0.5 * norm + gap > _TUNING.zero_minimum * spread:
                ratio = max(ratio, 0.5 * norm / left if left > 0 else np.inf)
        self.epsilon = float(np.sqrt(max(1.0, ratio)) - 1.0)

    def result(self) -> CoreSolution:
        """Return the solution with its certificate, and without the points of variable 0."""
        gap = max(0.0, self.primal - self.dual_objective)
        used = np.flatnonzero(self.v)
        self.f = self.f[used]
        self._drop_unused()
        v, dual = self.v, self.problem.dual(self.index)
        at_bound = ~dual.free(v)
        certificate = {
            "primal": self.primal,
            "dual": self.dual_objective,
            "gap": gap,
            "bound": gap,
            "violation": self.excess,
            "n_free": int(np.count_nonzero(~at_bound)),
            "n_bound": int(np.count_nonzero(at_bound)),
            "entries": self.entries,
            "cache_hits": float("nan"),
            "curvature": self.curvature,
            "epsilon": self.epsilon,
            "passes": self.passes,
        }
        status = Status.NOT_CONVERGED if self.message else Status.CONVERGED
        numbers = self.rounds, self.epsilon, self.watch.seconds
        report = Report(repr(self.solver), status, *numbers, self.message, certificate)
        f = self.f - self.problem.shift(self.index) * v
        return CoreSolution(self.index, DualSolution(v, at_bound, v, f, self.m, report, self.stop))


def _worst_points(
    rows: BlockRows,
    kernel: Kernel,
    core: Points,
    v: np.ndarray,
    m: float,
    has_margin: bool,
    squared: bool,
    members: np.ndarray,
    n_groups: int,
) -> _Candidates:
    """Return the loss of f - m on the rows of a block, and the worst point of each group."""
    signs, index = rows.y[:, 0], rows.y[:, 1].astype(np.intp)
    f = np.asarray(gram(kernel, rows.X, core) @ v) if len(index) else np.zeros(0)
    excess = np.maximum(float(has_margin) - signs * (f - m), 0.0)
    loss = float(rows.weights @ (excess * excess if squared else excess))
    worst = np.flatnonzero(excess)
    worst = worst[~np.isin(index[worst], members)]
    group = (hash_rows(index[worst], 1) % np.uint64(n_groups)).astype(np.intp)
    best = _largest_of_groups(excess[worst], group, n_groups)
    worst = worst[best]
    return _Candidates(loss, excess[worst], group[best], index[worst], take(rows.X, worst))


def _largest_of_groups(excess: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the index of the largest value of each group that is not empty."""
    order, best = np.argsort(excess, kind="stable"), np.full(n_groups, -1)
    best[group[order]] = order  # ascending, so the largest value of a group is assigned last
    return best[best >= 0]


def _merge(n_groups: int, one: _Candidates, other: _Candidates) -> _Candidates:
    """Merge the results of two blocks."""
    excess, group, index = (
        np.concatenate([a, b]) for a, b in zip(one[1:4], other[1:4], strict=True)
    )
    best = _largest_of_groups(excess, group, n_groups)
    X = take(concatenate(one.X, other.X), best)
    return _Candidates(one.loss + other.loss, excess[best], group[best], index[best], X)
