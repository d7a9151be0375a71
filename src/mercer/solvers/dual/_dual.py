"""The dual of every support vector machine: one quadratic program in a box.

    min_v  1/2 v^T K v + q^T v,     lower <= v <= upper,     sum of v in each group = given

v_s belongs to the point p_s, and K stands for K[p_s, p_t]; f = sum_s v_s k(x_{p_s}, .).  Signs are
in the boxes: a point of class -1 has v <= 0, so that no label is multiplied with the kernel.

=============  ==========================  ===========  ==================  ====================
               box                         q            groups              sum
=============  ==========================  ===========  ==================  ====================
classify       [0, C_i] or [-C_i, 0]       -y_i         one                 0
nu_classify    [0, w_i] or [-w_i, 0]       0            one for each class  +nu W/2 and -nu W/2
regress        [0, C_i] and [-C_i, 0]      -y_i +- eps  one                 0
nu_regress     [0, C_i] and [-C_i, 0]      -y_i         one for each sign   +-nu sum(C) / 2
one_class      [0, w_i]                    0            one                 nu W
=============  ==========================  ===========  ==================  ====================

W is the sum of the weights w.  With the gradient g = K v + q there are multipliers m, one for each
group, such that at the minimum g_s > m only where v_s = lower_s, and g_s < m only where
v_s = upper_s.  For any v in the box and any m,

    sum_s (g_s - m)_+ (v_s - lower_s) + (m - g_s)_+ (upper_s - v_s)

is exactly the primal minus the dual objective: zero at the minimum, and never negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._report import Report

__all__ = ["HIDDEN", "Dual", "DualSolution", "Duals", "filled"]

HIDDEN = 10.0  # a violation is called small if rounding hides at most so many times tol of it


class DualSolution(NamedTuple):
    """A minimum: v, what it says about the points, and how good it is.

    Examples
    --------
    >>> from mercer import SVC
    >>> machine = SVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> machine.dual_coef_, machine.at_bound_
    (array([[-0.5,  0.5]]), array([False, False]))
    """

    variables: np.ndarray  # v
    at_bound: np.ndarray  # points in f, none of whose variables is free
    coefficients: np.ndarray  # of the points: f = sum_i coefficients_i k(x_i, .)
    values: np.ndarray  # f at the points, in float64
    multipliers: np.ndarray  # m, one for each group; the intercept is minus their mean
    report: Report


@dataclass(frozen=True, eq=False)
class Dual:
    """A quadratic program in a box; see the module.

    Parameters
    ----------
    n : int
        The number of points.
    points : ndarray of int
        p_s, the point that each variable belongs to.
    linear, lower, upper : ndarray
        q and the box, an end of which may be infinite.
    groups : ndarray of int
        0, ... 0 and 1, ... 1: which variables have a given sum.
    start : ndarray
        In the box, with the sums that all v must have.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.dual import Dual
    >>> dual = Dual.classify(np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> dual.gap(np.zeros(2), np.zeros(2))  # K v = 0: the losses are 1, weighed by C
    20.0
    """

    n: int
    points: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    start: np.ndarray

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def classify(cls, signs: np.ndarray, C: np.ndarray) -> Self:
        """C-SVM: min 1/2 |f|^2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b))."""
        n = len(signs)
        lower, upper = _boxes(signs, C)
        return cls(n, np.arange(n), -signs, lower, upper, _zeros(n), np.zeros(n))

    @classmethod
    def nu_classify(cls, signs: np.ndarray, weights: np.ndarray, nu: Any, ends: Any = None) -> Self:
        """nu-SVM: at most a share nu of margin errors, at least that of support vectors.

        With `ends` several side by side, a nu for each, as `Duals` has them.
        """
        ends = np.array([0, len(signs)] if ends is None else ends)
        which = np.repeat(2 * np.arange(len(ends) - 1), np.diff(ends)) + (signs < 0)
        points = np.argsort(which, kind="stable")  # by group
        lower, upper = _boxes(signs[points], weights[points])
        halves = 0.5 * nu * np.add.reduceat(weights, ends[:-1])
        sizes = np.bincount(which, minlength=2 * len(halves))
        start = filled(upper - lower, np.repeat(halves, 2), sizes) * signs[points]
        return cls(len(signs), points, np.zeros(len(signs)), lower, upper, which[points] % 2, start)

    @classmethod
    def regress(cls, y: np.ndarray, C: np.ndarray, epsilon: float) -> Self:
        """epsilon-SVR: min 1/2 |f|^2 + sum_i C_i max(0, |y_i - f(x_i) - b| - epsilon)."""
        n, zero = len(y), np.zeros(len(y))
        return cls(
            n,
            np.tile(np.arange(n), 2),
            np.concatenate([epsilon - y, -epsilon - y]),
            np.concatenate([zero, -C]),
            np.concatenate([C, zero]),
            _zeros(2 * n),
            np.zeros(2 * n),
        )

    @classmethod
    def nu_regress(cls, y: np.ndarray, C: np.ndarray, nu: float) -> Self:
        """nu-SVR: epsilon is found too, such that a share nu of the points lie outside of it."""
        both = cls.regress(y, C, 0.0)
        start = filled(C, 0.5 * nu * C.sum())
        groups = np.repeat(np.arange(2), len(y))
        return replace(both, groups=groups, start=np.concatenate([start, -start]))

    @classmethod
    def one_class(cls, weights: np.ndarray, nu: float) -> Self:
        """One-class SVM: a share nu of the weight may lie outside of {f >= m}."""
        n = len(weights)
        start = filled(weights, nu * weights.sum())
        return cls(n, np.arange(n), np.zeros(n), np.zeros(n), weights.copy(), _zeros(n), start)

    # ------------------------------------------------------------------ what v says

    def free(self, v: np.ndarray) -> np.ndarray:
        """Return which variables are between their bounds."""
        return (v > self.lower) & (v < self.upper)

    def coefficients(self, v: np.ndarray) -> np.ndarray:
        """Return the coefficient of each point."""
        return np.bincount(self.points, v, minlength=self.n)

    def gradient(self, values: np.ndarray) -> np.ndarray:
        """Return g = K v + q, from the values f = K v at the points."""
        return values[self.points] + self.linear

    def objective(self, v: np.ndarray, values: np.ndarray) -> float:
        """Return the dual objective, which is maximised: -(1/2 v^T K v + q^T v)."""
        return float(-v @ (0.5 * values[self.points] + self.linear))

    def violation(self, v: np.ndarray, g: np.ndarray) -> float:
        """Return max g over v > lower, minus min g over v < upper, in the worst group.

        Not above 0 at a minimum; what `tol` bounds.
        """
        return max(low - up for _, low, up in self.bounds(v, g))

    def multipliers(self, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return m: the mean of g over free variables, else the middle of what is possible."""
        out = []
        for members, low, up in self.bounds(v, g):
            free = members & self.free(v)
            if free.any():
                out.append(float(g[free].mean()))
            elif np.isfinite(low) and np.isfinite(up):
                out.append(0.5 * (low + up))
            else:
                out.append(low if np.isfinite(low) else up)
        return np.array(out)

    def gap(self, v: np.ndarray, values: np.ndarray, multipliers: Any = None) -> float:
        """Return the primal minus the dual objective; see the module."""
        g = self.gradient(values)
        m = self.multipliers(v, g) if multipliers is None else np.asarray(multipliers)
        return float(self.excess(v, g, m[self.groups]).sum())

    def excess(self, v: np.ndarray, g: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Return the terms of the gap, for the multiplier of each variable."""
        over = g - m
        if np.isfinite((self.upper - self.lower).sum()):
            return np.where(over > 0, over * (v - self.lower), -over * (self.upper - v))
        # What is 0 but for rounding must not be multiplied with an infinite width.
        tiny = 1e-13 * (1.0 + float(np.abs(g).max(initial=0.0)))
        over[np.isinf(self.upper - self.lower) & (np.abs(over) <= tiny)] = 0.0
        with np.errstate(invalid="ignore"):  # 0 * inf, replaced below
            terms = np.where(over > 0, over * (v - self.lower), -over * (self.upper - v))
        terms[over == 0] = 0.0
        return terms

    @staticmethod
    def hidden(v: np.ndarray, largest: float, tol: float) -> float:
        """Return what rounding may hide of f, or -inf if that is excused by tol.

        Terms of f are rounded to a few eps of the `largest` k(x, x), times |v|; ten times tol is
        excused.
        """
        unknown = float(4.0 * np.finfo(float).eps * largest * np.abs(v).sum())
        return unknown if unknown > HIDDEN * tol else -np.inf

    def bound(self, violation: float) -> float:
        """Return what the gap cannot exceed, where nothing violates the conditions by more."""
        if violation <= 0:
            return 0.0
        return float(violation * np.sum(self.upper - self.lower))

    def solution(
        self,
        v: np.ndarray,
        values: np.ndarray,
        violation: float,
        report: Report,
        work: dict[str, Any],
    ) -> DualSolution:
        """Return a minimum with its certificate, to which `work` adds what the search has done."""
        m = self.multipliers(v, self.gradient(values))
        gap, objective = self.gap(v, values, m), self.objective(v, values)
        coefficients = self.coefficients(v)
        free = np.zeros(self.n, dtype=bool)
        free[self.points[self.free(v)]] = True
        at_bound = (coefficients != 0.0) & ~free
        certificate = {
            "primal": objective + gap,
            "dual": objective,
            "gap": gap,
            "bound": self.bound(violation),
            "violation": violation,
            "n_free": int(np.count_nonzero(free & (coefficients != 0.0))),
            "n_bound": int(np.count_nonzero(at_bound)),
            **work,
        }
        report = replace(report, certificate=certificate)
        return DualSolution(v, at_bound, coefficients, values, m, report)

    @property
    def starts(self) -> np.ndarray:
        """Where each group starts, and the number of variables."""
        return np.searchsorted(self.groups, np.arange(self.n_groups + 1))

    @property
    def n_groups(self) -> int:
        """One or two."""
        return int(self.groups[-1]) + 1

    def bounds(self, v: np.ndarray, g: np.ndarray) -> list[tuple[np.ndarray, float, float]]:
        """Return for each group its members, and what m must not be below, nor above."""
        out = []
        for k in range(self.n_groups):
            members = self.groups == k
            low = g[members & (v > self.lower)].max(initial=-np.inf)
            up = g[members & (v < self.upper)].min(initial=np.inf)
            out.append((members, float(low), float(up)))
        return out


@dataclass(frozen=True, eq=False)
class Duals:
    """Duals side by side, of some points of one sample each.

    Parameters
    ----------
    all : Dual
        Of all variables, one dual after the other; `points` counts all points in the same way.
    members : ndarray of int
        Which point of the sample each of these points is.
    ends, point_ends : ndarray of int
        Where the variables and the points of each dual begin, and their number.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers.dual import Dual, Duals
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
        """Return duals whose points are those of the sample that `members` lists."""
        ends = np.cumsum([0, *map(len, duals)])
        point_ends = np.cumsum([0, *(dual.n for dual in duals)])
        if len(duals) == 1:
            return cls(duals[0], members, ends, point_ends)
        parts = [[getattr(dual, name) for dual in duals] for name in _ARRAYS]
        parts[0] = [p + first for p, first in zip(parts[0], point_ends, strict=False)]
        return cls(Dual(len(members), *map(np.concatenate, parts)), members, ends, point_ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, p: int) -> Dual:
        if len(self) == 1:
            return self.all
        part = slice(self.ends[p], self.ends[p + 1])
        points, *rest = (getattr(self.all, name)[part] for name in _ARRAYS)
        first, last = self.point_ends[p : p + 2]
        return Dual(int(last - first), points - first, *rest)

    def __iter__(self) -> Iterator[Dual]:
        return (self[p] for p in range(len(self)))

    def started(self, start: np.ndarray) -> Self:
        """Return the same duals with another start."""
        return replace(self, all=replace(self.all, start=start))

    def classes(self, ends: np.ndarray) -> np.ndarray | None:
        """Return the two classes of each dual, (duals, 2), if it has a variable for each of theirs.

        `ends` is where the points of each class begin in the sample, and their number.
        """
        rows, sizes = self.rows, np.diff(ends)
        at = np.stack([rows[self.ends[:-1]], rows[self.ends[1:] - 1]], axis=1)
        pairs = np.searchsorted(ends, at, side="right") - 1
        counts = sizes[pairs]
        if len(ends) <= 3 or not np.array_equal(counts.sum(axis=1), np.diff(self.ends)):
            return None
        starts = np.cumsum(counts.ravel()) - counts.ravel()
        every = np.repeat(ends[pairs].ravel() - starts, counts.ravel()) + np.arange(len(rows))
        return pairs if np.array_equal(rows, every) else None

    @property
    def rows(self) -> np.ndarray:
        """The point of the sample that each variable belongs to."""
        return self.members[self.all.points]

    @property
    def starts(self) -> np.ndarray:
        """Where both groups of each dual begin, the second of which may be empty; and the end."""
        seconds = np.add.reduceat(self.all.groups, self.ends[:-1])
        starts = np.repeat(self.ends, 2)[:-1]
        starts[1::2] = self.ends[1:] - seconds
        return starts


_ARRAYS = ("points", "linear", "lower", "upper", "groups", "start")


def _boxes(signs: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(signs < 0, -C, 0.0), np.where(signs > 0, C, 0.0)


def _zeros(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.int64)


def filled(room: np.ndarray, total: Any, sizes: Any = None) -> np.ndarray:
    """Return 0 <= v <= room with this sum, the first ones full; or one part after the other."""
    if sizes is None or len(sizes) == 1:
        before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
        return np.clip(total - before, 0.0, room)
    # The sum over all parts is long, and what is taken off it must leave all digits of a part.
    sums = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(room, dtype=np.longdouble)])
    begins = np.cumsum(sizes) - sizes
    before = (sums[:-1] - np.repeat(sums[begins], sizes)).astype(float)
    return np.clip(np.repeat(total, sizes) - before, 0.0, room)
