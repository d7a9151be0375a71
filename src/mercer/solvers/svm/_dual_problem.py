"""The dual problems of support vector machines, in one form: a box-constrained quadratic program.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     the sum of v in each group is fixed

The variable v_s belongs to the point with index p_s, and K_st = k(x_{p_s}, x_{p_t}).  The solution
is the function f = sum_s v_s k(x_{p_s}, .).  Class labels determine the bounds and do not appear in
K: a point of class -1 has v <= 0.

=============  ==========================  ===========  ==================  ====================
               box                         q            groups              sum
=============  ==========================  ===========  ==================  ====================
classify       [0, C_i] or [-C_i, 0]       -y_i         one                 0
nu_classify    [0, w_i] or [-w_i, 0]       0            one for each class  +nu W/2 and -nu W/2
regress        [0, C_i] and [-C_i, 0]      -y_i +- eps  one                 0
nu_regress     [0, C_i] and [-C_i, 0]      -y_i         one for each sign   +-nu sum(C) / 2
one_class      [0, w_i]                    0            one                 nu W
=============  ==========================  ===========  ==================  ====================

Here W is the sum of the sample weights w.  Let g = K v + q be the gradient.  At the minimum, each
group has a multiplier m such that g_s > m only if v_s = lower_s, and g_s < m only if
v_s = upper_s.  For any v in the box and any m,

    sum_s (g_s - m)_+ (v_s - lower_s) + (m - g_s)_+ (upper_s - v_s)

is exactly the duality gap, the primal minus the dual objective: zero at the minimum, and never
negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

# A solution counts as converged only if rounding errors of the violation are at most 10 tol.
MAX_HIDDEN_VIOLATION = 10.0


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual problem of one support vector machine, as a box-constrained quadratic program.

    It is min 1/2 v^T K v + q^T v for lower <= v <= upper, where the variables v belong to one or
    two groups, and the sum of v in each group is fixed.  The solution is f = sum_s v_s k(x_s, .)
    with the point x_s of each variable.  Create a problem with one of the class methods, and solve
    it with `BlockSMO` or `BoxInterior`.

    Parameters
    ----------
    n : int
        Number of points.
    points : ndarray of int of shape (n_variables,)
        The index of the point that each variable belongs to.
    linear : ndarray of shape (n_variables,)
        The linear term q.
    lower, upper : ndarray of shape (n_variables,)
        The bounds of v, which may be infinite.
    groups : ndarray of int of shape (n_variables,)
        The group of each variable, 0 or 1, in ascending order.
    start : ndarray of shape (n_variables,)
        A feasible v.  Its sums over the groups are the fixed sums.
    shift : ndarray of shape (n_variables,) or None, default=None
        The positive numbers 1 / (2 C) that a squared loss has added to the diagonal of K.  The
        duality gap is then that of the problem with the squared loss.

    See Also
    --------
    BlockSMO : Solve the problem with rows of K.
    BoxInterior : Solve the problem with features F, K = F F^T.

    References
    ----------
    Cortes and Vapnik, "Support-vector networks", Machine Learning, 1995.

    Schölkopf, Smola, Williamson and Bartlett, "New support vector algorithms", Neural Computation,
    2000, for the parameter nu.

    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation, 2001, for the one-class SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.svm import Dual
    >>> dual = Dual.classify(np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> dual.gap(np.zeros(2), np.zeros(2))  # f = 0: both losses are 1, weighted by C = 10
    20.0
    """

    n: int
    points: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    start: np.ndarray
    shift: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def classify(cls, signs: np.ndarray, C: np.ndarray) -> Self:
        """Return the dual of the C-SVM.

        It minimises 1/2 |f|^2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)).

        Parameters
        ----------
        signs : ndarray of shape (n,)
            The classes y, +1 or -1.
        C : ndarray of shape (n,)
            The positive penalty of the margin error of each point.

        Returns
        -------
        Dual
            The problem, with one variable for each point.
        """
        n = len(signs)
        lower, upper = _boxes(signs, C)
        return cls(n, np.arange(n), -signs, lower, upper, _zeros(n), np.zeros(n))

    @classmethod
    def nu_classify(
        cls,
        signs: np.ndarray,
        weights: np.ndarray,
        nu: float | np.ndarray,
        ends: np.ndarray | None = None,
    ) -> Self:
        """Dual of the nu-SVM for classification.

        At most a fraction nu of the points are margin errors, and at least a fraction nu are
        support vectors.

        Parameters
        ----------
        signs : ndarray of shape (n,)
            The classes, +1 or -1.
        weights : ndarray of shape (n,)
            Sample weights.
        nu : float or ndarray of shape (n_problems,)
            The parameter nu; an array has one value for each problem.
        ends : ndarray of int of shape (n_problems + 1,) or None, default=None
            If given, several problems are concatenated, as in `Duals`: the index of the first point
            of each problem, followed by the number of points.

        Returns
        -------
        Dual
            The problem, with one variable for each point and one group for each class.
        """
        ends = np.array([0, len(signs)] if ends is None else ends)
        group_numbers = np.repeat(2 * np.arange(len(ends) - 1), np.diff(ends)) + (signs < 0)
        points = np.argsort(group_numbers, kind="stable")  # sort the points by group
        lower, upper = _boxes(signs[points], weights[points])
        group_sums = 0.5 * nu * np.add.reduceat(weights, ends[:-1])
        sizes = np.bincount(group_numbers, minlength=2 * len(group_sums))
        start = fill_in_order(upper - lower, np.repeat(group_sums, 2), sizes) * signs[points]
        groups, n = group_numbers[points] % 2, len(signs)
        return cls(n, points, np.zeros(n), lower, upper, groups, start)

    @classmethod
    def regress(cls, y: np.ndarray, C: np.ndarray, epsilon: float) -> Self:
        """Return the dual of epsilon-SVR.

        It minimises 1/2 |f|^2 + sum_i C_i max(0, |y_i - f(x_i) - b| - epsilon).

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.
        C : ndarray of shape (n,)
            The positive penalty of the error of each point.
        epsilon : float
            Half the width of the tube in which errors are 0.

        Returns
        -------
        Dual
            The problem, with two variables for each point.
        """
        n, zero = len(y), np.zeros(len(y))
        linear = np.concatenate([epsilon - y, -epsilon - y])
        box = np.concatenate([zero, -C]), np.concatenate([C, zero])
        return cls(n, np.tile(np.arange(n), 2), linear, *box, _zeros(2 * n), np.zeros(2 * n))

    @classmethod
    def nu_regress(cls, y: np.ndarray, C: np.ndarray, nu: float) -> Self:
        """Return the dual of nu-SVR.

        It is that of epsilon-SVR with an epsilon such that at most a fraction nu of the errors
        exceed it.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.
        C : ndarray of shape (n,)
            The positive penalty of the error of each point.
        nu : float
            The fraction, between 0 and 1.

        Returns
        -------
        Dual
            The problem, with two variables for each point and one group for each sign.
        """
        dual = cls.regress(y, C, 0.0)
        start = fill_in_order(C, 0.5 * nu * C.sum())
        groups = np.repeat(np.arange(2), len(y))
        return replace(dual, groups=groups, start=np.concatenate([start, -start]))

    @classmethod
    def one_class(cls, weights: np.ndarray, nu: float) -> Self:
        """Return the dual of the one-class SVM.

        Outliers have at most a fraction nu of the total weight.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Sample weights.
        nu : float
            The fraction, between 0 and 1.

        Returns
        -------
        Dual
            The problem, with one variable for each point.
        """
        n = len(weights)
        start = fill_in_order(weights, nu * weights.sum())
        return cls(n, np.arange(n), np.zeros(n), np.zeros(n), weights.copy(), _zeros(n), start)

    def select(self, variables: np.ndarray | slice, n: int, points: np.ndarray) -> Dual:
        """Return the problem of some of the variables.

        Parameters
        ----------
        variables : ndarray of int or slice
            Indices of the variables.
        n : int
            Number of points of the new problem.
        points : ndarray of int
            The index, among these n points, of the point of each variable.

        Returns
        -------
        Dual
            The smaller problem.
        """
        arrays = (getattr(self, name)[variables] for name in _ARRAY_FIELDS)
        shift = None if self.shift is None else self.shift[variables]
        return replace(Dual(n, points, *arrays), shift=shift)

    # ------------------------------------------------------------------ functions of v

    def free(self, v: np.ndarray) -> np.ndarray:
        """Return a mask of the variables strictly between their bounds.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.

        Returns
        -------
        ndarray of bool of shape (n_variables,)
            True for free variables.
        """
        return (v > self.lower) & (v < self.upper)

    def coefficients(self, v: np.ndarray) -> np.ndarray:
        """Return the coefficient of each point, the sum of its variables.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.

        Returns
        -------
        ndarray of shape (n,)
            The coefficients of f = sum_i a_i k(x_i, .).
        """
        return np.bincount(self.points, v, minlength=self.n)

    def gradient(self, values: np.ndarray) -> np.ndarray:
        """Return the gradient g = K v + q.

        Parameters
        ----------
        values : ndarray of shape (n,)
            The values of f = K v at the points.

        Returns
        -------
        ndarray of shape (n_variables,)
            The gradient with respect to the variables.
        """
        values_at_points: np.ndarray = values[self.points] + self.linear
        return values_at_points

    def objective(self, v: np.ndarray, values: np.ndarray) -> float:
        """Return the dual objective, which is maximised, -(1/2 v^T K v + q^T v).

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        values : ndarray of shape (n,)
            The values of f = K v at the points.

        Returns
        -------
        float
            A lower bound on the minimum of the primal objective.
        """
        return float(-v @ (0.5 * values[self.points] + self.linear))

    def violation(self, v: np.ndarray, g: np.ndarray) -> float:
        """Return the violation of the optimality conditions, the largest over the groups.

        In each group, it is the largest gradient g of variables v > lower, minus the smallest g of
        variables v < upper.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        g : ndarray of shape (n_variables,)
            The gradient K v + q.

        Returns
        -------
        float
            At most 0 at a minimum.  Solvers stop when it is at most `tol`.
        """
        return max(low - up for _, low, up in self.multiplier_bounds(v, g))

    def multipliers(self, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the multiplier of each group.

        It is the mean of the gradient g over the free variables (those between their bounds), or
        the middle of the admissible interval if no variable is free.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        g : ndarray of shape (n_variables,)
            The gradient K v + q.

        Returns
        -------
        ndarray of shape (n_groups,)
            The multipliers.
        """
        out = []
        for members, low, up in self.multiplier_bounds(v, g):
            free = members & self.free(v)
            if free.any():
                out.append(float(g[free].mean()))
            elif np.isfinite(low) and np.isfinite(up):
                out.append(0.5 * (low + up))
            else:
                out.append(low if np.isfinite(low) else up)
        return np.array(out)

    def gap(
        self, v: np.ndarray, values: np.ndarray, multipliers: np.ndarray | None = None
    ) -> float:
        """Return the duality gap, the primal minus the dual objective.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        values : ndarray of shape (n,)
            The values of f = K v at the points.
        multipliers : ndarray of shape (n_groups,) or None, default=None
            The multiplier of each group; None computes them by `multipliers`.

        Returns
        -------
        float
            The gap, which is never negative, and 0 at the minimum.
        """
        g = self.gradient(values)
        m = self.multipliers(v, g) if multipliers is None else np.asarray(multipliers)
        return float(self.gap_terms(v, g, m[self.groups]).sum())

    def gap_terms(self, v: np.ndarray, g: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Return the contribution of each variable to the duality gap.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        g : ndarray of shape (n_variables,)
            The gradient K v + q.
        m : ndarray of shape (n_variables,)
            The multiplier of the group of each variable.

        Returns
        -------
        ndarray of shape (n_variables,)
            Non-negative numbers, whose sum is the gap.
        """
        if self.shift is not None:
            return self._squared_gap_terms(v, g - m, self.shift)
        difference, width = g - m, self.upper - self.lower
        if unbounded := not np.isfinite(width.sum()):
            # Differences that are 0 up to rounding must not be multiplied by infinite bounds.
            tiny = 1e-13 * (1.0 + float(np.abs(g).max(initial=0.0)))
            difference[np.isinf(width) & (np.abs(difference) <= tiny)] = 0.0
        with np.errstate(invalid="ignore"):  # 0 * inf gives NaN, which is replaced below
            above, below = difference * (v - self.lower), -difference * (self.upper - v)
            terms: np.ndarray = np.where(difference > 0, above, below)
        if unbounded:
            terms[difference == 0] = 0.0
        return terms

    def _squared_gap_terms(
        self, v: np.ndarray, difference: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """Return C max(0, slack)^2 - a slack + a^2 / (4 C) for a = |v| and shift = 1 / (2 C)."""
        a, slope = np.abs(v), np.where(self.upper > 0, difference, -difference)
        slack = shift * a - slope
        outside = a * (0.5 * shift * a - slack)
        return np.asarray(np.where(slack > 0, 0.5 * slope * slope / shift, outside))

    @staticmethod
    def hidden_violation(v: np.ndarray, largest: float, tol: float) -> float:
        """Return the largest violation that rounding errors of f may hide.

        It is 4 eps times the largest k(x, x) times the sum of |v|.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        largest : float
            The largest k(x, x).
        tol : float
            The tolerance of the solver.

        Returns
        -------
        float
            The violation; -inf if it is at most ten times `tol`, and thus acceptable.
        """
        rounding = float(4.0 * np.finfo(float).eps * largest * np.abs(v).sum())
        return rounding if rounding > MAX_HIDDEN_VIOLATION * tol else -np.inf

    def bound(self, violation: float) -> float:
        """Return an upper bound on the duality gap of a v with a given violation.

        Parameters
        ----------
        violation : float
            The violation of the optimality conditions.

        Returns
        -------
        float
            The violation times the sum of the widths of all boxes; 0 if it is not positive.
        """
        if violation <= 0:
            return 0.0
        return float(violation * np.sum(self.upper - self.lower))

    @property
    def starts(self) -> np.ndarray:
        """The index of the first variable of each group, followed by the number of variables."""
        return np.searchsorted(self.groups, np.arange(self.n_groups + 1))

    @property
    def n_groups(self) -> int:
        """Number of groups, one or two."""
        return int(self.groups[-1]) + 1

    def multiplier_bounds(
        self, v: np.ndarray, g: np.ndarray
    ) -> list[tuple[np.ndarray, float, float]]:
        """Return the members of each group, and the interval of admissible multipliers.

        If the lower end exceeds the upper end, no multiplier is admissible; the difference is the
        violation of the group.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The variables.
        g : ndarray of shape (n_variables,)
            The gradient K v + q.

        Returns
        -------
        list of tuples
            For each group, a mask of the members of shape (n_variables,), the lower end, and the
            upper end.
        """
        out = []
        for k in range(self.n_groups):
            members = self.groups == k
            low = g[members & (v > self.lower)].max(initial=-np.inf)
            up = g[members & (v < self.upper)].min(initial=np.inf)
            out.append((members, float(low), float(up)))
        return out


@dataclass(frozen=True, eq=False)
class Duals:
    """Several dual problems on subsets of the same sample, stored as one concatenated problem.

    Parameters
    ----------
    all : Dual
        The variables and the points of all problems, one problem after the other.
    members : ndarray of int
        The index in the sample of each of these points.
    ends, point_ends : ndarray of int
        The index of the first variable and of the first point of each problem, followed by the
        total number of variables and of points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.svm import Dual, Duals
    >>> one, two = Dual.one_class(np.ones(3), 0.5), Dual.one_class(np.ones(2), 0.5)
    >>> both = Duals.of([one, two], np.array([0, 1, 2, 0, 2]))
    >>> len(both), both[1].points, both.rows
    (2, array([0, 1]), array([0, 1, 2, 0, 2]))
    """

    all: Dual
    members: np.ndarray
    ends: np.ndarray
    point_ends: np.ndarray

    @classmethod
    def of(cls, duals: Sequence[Dual], members: np.ndarray) -> Self:
        """Concatenate dual problems; `members` contains the sample indices of their points."""
        ends = np.cumsum([0, *map(len, duals)])
        point_ends = np.cumsum([0, *(dual.n for dual in duals)])
        if len(duals) == 1:
            return cls(duals[0], members, ends, point_ends)
        points = [dual.points + first for dual, first in zip(duals, point_ends, strict=False)]
        arrays = [points, *([getattr(dual, name) for dual in duals] for name in _ARRAY_FIELDS)]
        shifts = [dual.shift for dual in duals if dual.shift is not None]
        shift = np.concatenate(shifts) if shifts else None  # all duals have a shift, or none
        merged = Dual(len(members), *map(np.concatenate, arrays))
        return cls(replace(merged, shift=shift), members, ends, point_ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, p: int) -> Dual:
        if len(self) == 1:
            return self.all
        own, (first, last) = slice(*self.ends[p : p + 2]), self.point_ends[p : p + 2]
        return self.all.select(own, int(last - first), self.all.points[own] - first)

    def __iter__(self) -> Iterator[Dual]:
        return (self[p] for p in range(len(self)))

    def started(self, start: np.ndarray) -> Self:
        """Return the same problems with another feasible start."""
        return replace(self, all=replace(self.all, start=start))

    def class_pairs(self, ends: np.ndarray) -> np.ndarray | None:
        """Return the two classes of each problem, as an array of shape (problems, 2).

        Each problem must have exactly one variable for each point of two classes, in the order of
        the sample; otherwise, None is returned.  `ends` contains the index of the first point of
        each class in the sample, followed by the number of points.
        """
        rows, sizes = self.rows, np.diff(ends)
        first_and_last = np.stack([rows[self.ends[:-1]], rows[self.ends[1:] - 1]], axis=1)
        pairs = np.searchsorted(ends, first_and_last, side="right") - 1
        counts = sizes[pairs]
        if len(ends) <= 3 or not np.array_equal(counts.sum(axis=1), np.diff(self.ends)):
            return None
        starts = np.cumsum(counts.ravel()) - counts.ravel()
        expected = np.repeat(ends[pairs].ravel() - starts, counts.ravel()) + np.arange(len(rows))
        return pairs if np.array_equal(rows, expected) else None

    @property
    def rows(self) -> np.ndarray:
        """The sample index of the point that each variable belongs to."""
        members: np.ndarray = self.members[self.all.points]
        return members

    @property
    def starts(self) -> np.ndarray:
        """The first variables of both groups of each problem, then the number of variables.

        The second group of a problem may be empty.
        """
        second_sizes = np.add.reduceat(self.all.groups, self.ends[:-1])
        starts = np.repeat(self.ends, 2)[:-1]
        starts[1::2] = self.ends[1:] - second_sizes
        return starts


_ARRAY_FIELDS = ("linear", "lower", "upper", "groups", "start")  # one value per variable


def _boxes(signs: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds: [0, C_i] for class +1, [-C_i, 0] for class -1."""
    return np.where(signs < 0, -C, 0.0), np.where(signs > 0, C, 0.0)


def _zeros(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64)


def fill_in_order(
    room: np.ndarray, total: float | np.ndarray, sizes: np.ndarray | None = None
) -> np.ndarray:
    """Return v with 0 <= v <= room and the sum `total`: the first entries equal `room`.

    With `sizes`, v is split into consecutive parts of these sizes, and `total` has one value for
    each part.
    """
    if sizes is None or len(sizes) == 1:
        before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
        return np.clip(total - before, 0.0, room)
    # The cumulative sums run over all parts.  Their differences within a part are less precise,
    # so that extended precision is needed.
    sums = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(room, dtype=np.longdouble)])
    begins = np.cumsum(sizes) - sizes
    before = (sums[:-1] - np.repeat(sums[begins], sizes)).astype(float)
    amounts: np.ndarray = np.clip(np.repeat(total, sizes) - before, 0.0, room)
    return amounts
