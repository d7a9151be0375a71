"""The working set of block SMO, and sequential minimal optimisation (SMO) inside it.

The block of K of the working set is in memory.

In each step, two variables v_i and v_j of a group change by t and -t, so that their sum does not
change.  With the gradient g, they are chosen as follows:

    i = argmin g over v < upper,     j = argmax (g_j - g_i)^2 / c_ij  over v > lower, g_j > g_i,
    c_ij = K_ii + K_jj - 2 K_ij,     t = min((g_j - g_i) / c_ij, upper_i - v_i, v_j - lower_j)

and g += t (K_i - K_j).  The choice of j maximises the decrease of the objective (second-order
working set selection, Fan, Chen & Lin 2005).

A step takes two passes over the working set: the first updates g and finds i, the second finds j.
Variables that are at their bound are excluded by adding infinity to g.  Both passes first find the
extreme value of each run of 32 entries, with vector instructions, and then its index within the
best run.  Among equal values the last one is taken, as in LIBSVM.

All of this is one flat function, `take_steps`, which compiles fast.  It solves many problems in one
call, because a small problem takes less time than a call.  In a large block, only some variables
take part in a round of steps: the free ones, and those at a bound with the largest violations.
They are copied to contiguous memory, so that the cost of a step depends only on their number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._core import fmax, fmin, jit
from ...gram import RowsView, add_weighted_rows
from ._dual_problem import Dual

_MAX_VARIABLES = 2048  # largest size of the working set; its block takes 16 MiB in float32
# Memory as a multiple of the block size: the block, and new rows before they are copied into it.
_MEMORY_FACTOR = 1.5
_MAX_NEW_VARIABLES = 512  # largest number of variables that are exchanged at a time
_RUN = 32  # the vectorised search for an extreme value processes runs of this many entries
_MAX_ALWAYS_ACTIVE = 640  # up to this many variables, all take part in every round
_STEPS_PER_ROUND = 256  # the active variables are chosen again after at least this many steps
# Maximum number of active variables at the lower bound, and at the upper bound, of each group.
_MAX_ACTIVE_AT_BOUND = 128
_LEAST_CURVATURE = 1e-12  # least value of c_ij, relative to the diagonal of K


class WorkingSet:
    """The variables W of the current block, and the matrix K[W, W].

    Each variable has a slot: a row and the same column of the block.  A new variable takes the slot
    of another one, preferably one at its correct bound, and among several such variables that which
    has been in the set longest.  Only the rows and columns of new variables are evaluated.

    Attributes
    ----------
    W : ndarray of int of shape (size,)
        The variable in each slot; -1 for an empty slot.
    K : ndarray of shape (size, size)
        The block of K of these variables.
    starts : ndarray of int
        The first slot of each group, followed by the number of slots.
    """

    def __init__(self, view: RowsView, dual: Dual) -> None:
        self.view, self.dual = view, dual
        counts, entries = np.diff(dual.starts), view.rows.block_bytes / view.rows.dtype.itemsize
        max_size = min(_MAX_VARIABLES, int(np.sqrt(entries / _MEMORY_FACTOR)))
        sizes = np.minimum(counts, max(2, max_size // len(counts)))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(self.starts[-1])
        self.clear()

    def clear(self) -> None:
        """Remove all variables, and free the memory of the block until the next choice."""
        self.K = np.zeros((0, 0), dtype=self.view.rows.dtype)
        self.W = np.full(self.size, -1, dtype=np.intp)
        self._is_member = np.zeros(len(self.dual), dtype=bool)
        self._entered = np.full(self.size, -1)
        self._round = 0

    def choose(self, g: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Add the variables that violate the optimality conditions most, and return W."""
        dual, self._round = self.dual, self._round + 1
        slots, variables = [], []
        for k, (_, m_low, m_high) in enumerate(dual.multiplier_bounds(v, g)):
            if not m_low > m_high:
                continue
            group = slice(*dual.starts[k : k + 2])
            n_slots = int(self.starts[k + 1] - self.starts[k])
            max_new = max(1, min(_MAX_NEW_VARIABLES // (2 * dual.n_groups), (n_slots - 2) // 2))
            should_increase = (v[group] < dual.upper[group]) & (g[group] < m_low)
            should_decrease = (v[group] > dual.lower[group]) & (g[group] > m_high)
            increasing = self._most_violating(should_increase, g[group], max_new, group)
            decreasing = self._most_violating(should_decrease, -g[group], max_new, group)
            ordered_slots = self._slots_in_order(k, should_increase | should_decrease, group, g, v)
            variables += [increasing, decreasing]
            slots.append(ordered_slots[: len(increasing) + len(decreasing)])
        self._assign(np.concatenate(slots), np.concatenate(variables))
        return self.W

    def _most_violating(
        self, candidates: np.ndarray, g: np.ndarray, count: int, group: slice
    ) -> np.ndarray:
        """Return the candidates with the smallest g, and mark them as members of the set."""
        chosen = np.flatnonzero(candidates & ~self._is_member[group])
        if len(chosen) > count:
            chosen = chosen[np.argpartition(g[chosen], count)[:count]]
        chosen += group.start
        self._is_member[chosen] = True
        return chosen

    def _slots_in_order(
        self, k: int, violates: np.ndarray, group: slice, g: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """Return the slots of a group, in the order in which new variables may take them."""
        first_slot, last = self.starts[k], self.starts[k + 1]
        W, entered = self.W[first_slot:last], self._entered[first_slot:last].astype(float)
        occupied = W >= 0
        members = W[occupied]
        is_needed = self.dual.free(v)[members] | violates[members - group.start]
        entered[occupied] += self._round * is_needed
        order = np.argsort(entered, kind="stable")
        # The pair of variables with the largest violation is replaced last: without it, there might
        # be no possible step.
        g_increasing = np.where(v[members] < self.dual.upper[members], g[members], np.inf)
        g_decreasing = np.where(v[members] > self.dual.lower[members], g[members], -np.inf)
        slots: np.ndarray
        if not len(members):
            slots = first_slot + order
            return slots
        protected = np.flatnonzero(occupied)[[g_increasing.argmin(), g_decreasing.argmax()]]
        last = np.isin(order, protected)
        slots = first_slot + np.concatenate([order[~last], order[last]])
        return slots

    def _assign(self, slots: np.ndarray, variables: np.ndarray) -> None:
        """Assign slots to new variables, and evaluate their rows and columns of the block."""
        removed = self.W[slots]
        self._is_member[removed[removed >= 0]] = False
        self._is_member[variables] = True
        self.W[slots], self._entered[slots] = variables, self._round
        occupied = np.flatnonzero(self.W >= 0)
        points = self.dual.points
        if not self.K.size:
            self.K = np.zeros((self.size, self.size), dtype=self.K.dtype)
        block = self.view.block(points[variables], points[self.W[occupied]])
        _write_symmetric(self.K, slots, occupied, block)


class BoxedGroups(NamedTuple):
    """The variables of one or several quadratic programs: their rows of K, groups and bounds."""

    rows: np.ndarray  # the row of K of each variable
    # The first variables of both groups of each program, the second of which may be empty, followed
    # by the number of variables.
    starts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def solve_block(
    K: np.ndarray,
    boxes: BoxedGroups,
    g: np.ndarray,
    v: np.ndarray,
    accuracy: float,
    fraction: float,
    max_steps: int,
) -> tuple[int, float, float, int]:
    """Minimise over the variables of a working set.

    SMO steps are taken until the violation is at most `accuracy`, or at most `fraction` times the
    initial violation.  The curvature of a step that changes v_i and v_j is
    c_ij = K_ii + K_jj - 2 K_ij.

    Parameters
    ----------
    K : ndarray of shape (s, s)
    boxes : BoxedGroups
        The s variables, in one or two groups, with one row of K each.
    g, v : ndarray of shape (s,)
        Gradients and variables; overwritten.
    accuracy, fraction : float
    max_steps : int

    Returns
    -------
    steps : int
        Number of steps taken.
    violation : float
        The remaining violation.
    curvature : float
        The most negative c_ij, or 0.
    negative_steps : int
        Number of steps in which c_ij was more negative than rounding explains.
    """
    steps, negative_steps, curvature, goal, charged_steps = 0, 0, 0.0, -1.0, 0
    all_active = len(g) <= _MAX_ALWAYS_ACTIVE
    while True:
        active, violation = _choose_active(boxes, g, v, all_active)
        W = active.rows
        if goal < 0.0:
            goal = max(accuracy, fraction * violation)
        # Each round counts as at least _STEPS_PER_ROUND steps towards the limit, so that rounds of
        # few steps do not delay an interrupt for long.
        if violation <= goal or max(steps, charged_steps) >= max_steps:
            return steps, violation, curvature, negative_steps
        step_limit = max_steps - steps
        if not all_active:
            step_limit = min(max(_STEPS_PER_ROUND, len(W)), step_limit)
        g_active, v_active = g[W], v[W]
        results = run_steps(K, active, g_active, v_active, goal, step_limit)
        n_steps, smallest, n_negative, _ = results[0]
        steps, negative_steps = steps + int(n_steps), negative_steps + int(n_negative)
        curvature = min(curvature, float(smallest))
        charged_steps += max(int(n_steps), min(_STEPS_PER_ROUND, max_steps - steps))
        if n_steps == 0:  # no progress is possible because of rounding
            return steps, violation, curvature, negative_steps
        if all_active:
            g[:], v[:] = g_active, v_active
        else:
            moved = np.flatnonzero(v_active != v[W])
            add_weighted_rows(K, W[moved], v_active[moved] - v[W[moved]], g)
            v[W] = v_active


def _choose_active(
    boxes: BoxedGroups, g: np.ndarray, v: np.ndarray, all_active: bool
) -> tuple[BoxedGroups, float]:
    """Return the active variables and the violation."""
    _, starts, lower, upper = boxes
    can_increase, can_decrease = v < upper, v > lower
    violation, active = -np.inf, []
    for first, last in pairwise(starts.tolist()):
        group = slice(first, last)
        g_group, up, down = g[group], can_increase[group], can_decrease[group]
        max_decreasing = g_group[down].max(initial=-np.inf)
        min_increasing = g_group[up].min(initial=np.inf)
        violation = max(violation, float(max_decreasing - min_increasing))
        if all_active:
            continue
        chosen = [np.flatnonzero(up & down)]
        for candidates, order in (
            (up & ~down & (g_group < max_decreasing), g_group),
            (down & ~up & (g_group > min_increasing), -g_group),
        ):
            at_bound, most = np.flatnonzero(candidates), _MAX_ACTIVE_AT_BOUND
            if len(at_bound) > most:
                at_bound = at_bound[np.argpartition(order[at_bound], most - 1)[:most]]
            chosen.append(at_bound)
        active.append(np.sort(np.concatenate(chosen)) + first)
    if all_active:
        return boxes, violation
    W = np.concatenate(active)
    starts = np.cumsum([0, *map(len, active)])
    return BoxedGroups(W, starts, lower[W], upper[W]), violation


def run_steps(
    K: np.ndarray, boxes: BoxedGroups, g: np.ndarray, v: np.ndarray, goal: float, max_steps: int
) -> np.ndarray:
    """Take SMO steps for one or several problems.

    The parameters are those of `take_steps`, which is called with suitable workspace.  The
    curvature of a step that changes v_i and v_j is c_ij = K_ii + K_jj - 2 K_ij.

    Returns
    -------
    results : ndarray of shape (problems, 4)
        The number of steps, the most negative c_ij, the number of steps in which c_ij was more
        negative than rounding explains, and the remaining violation.
    """
    rows, starts = boxes.rows, boxes.starts
    if len(starts) == 2:
        starts = starts[[0, 1, 1]]
        boxes = boxes._replace(starts=starts)
    max_size = int(np.max(starts[2::2] - starts[:-2:2]))
    is_whole = len(K) == len(rows) == max_size and K.flags.writeable and K.flags.c_contiguous
    if is_whole and np.array_equal(rows, np.arange(max_size)):
        inner = K  # `take_steps` copies K onto itself, which is faster than allocating memory
    else:
        inner = np.empty((max_size, max_size), dtype=K.dtype)
    work = np.empty((5, max_size))
    results = np.zeros((len(starts) // 2, 4))
    rounding = 1e-5 if K.itemsize == 4 else 1e-12
    take_steps(K, boxes, g, v, goal, max_steps, rounding, inner, work, results, True)
    return results


@jit("nnan", "nsz", "reassoc")
def take_steps(
    K: np.ndarray,
    boxes: BoxedGroups,
    g: np.ndarray,
    v: np.ndarray,
    goal: float,
    max_steps: int,
    rounding: float,
    inner: np.ndarray,
    work: np.ndarray,
    results: np.ndarray,
    begins: bool,
) -> int:
    """Take SMO steps for several problems until their violations are at most `goal`.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    boxes : BoxedGroups
    g, v : ndarray
        Gradients and variables; overwritten.
    goal : float
    max_steps : int
    rounding : float
        The curvature c_ij = K_ii + K_jj - 2 K_ij counts as negative if it is below
        -rounding (|K_ii| + |K_jj|).
    inner : ndarray
        Workspace for the block of K of a problem.
    work : ndarray of shape (5, size)
        Workspace: gradients, masks of variables that cannot increase or decrease (0 or inf), the
        diagonal of K, and which rows of `inner` are known (0 or 1).
    results : ndarray of shape (problems, 4)
        Updated; see `run_steps`.
    begins : bool
        If True, `inner` and `work` are first filled from K.  If False, there is a single problem,
        the caller has filled `work`, and fills rows of `inner` when they are needed.

    Returns
    -------
    row : int
        The index of a row of `inner` that is needed but not filled: the caller has to fill it and
        call the function again.  -1 if all problems are finished.
    """
    G, blocked_up, blocked_down, diagonal, known = work[0], work[1], work[2], work[3], work[4]
    rows, starts = boxes.rows, boxes.starts
    for p in range(len(results)):
        first = starts[2 * p]
        middle, size = starts[2 * p + 1] - first, starts[2 * p + 2] - first
        own_v, own_lower, own_upper = v[first:], boxes.lower[first:], boxes.upper[first:]
        if begins:
            for a in range(size):
                row, out = K[rows[first + a]], inner[a]
                for b in range(size):
                    out[b] = row[rows[first + b]]
                G[a], diagonal[a], known[a] = g[first + a], out[a], 1.0
                blocked_up[a] = 0.0 if own_v[a] < own_upper[a] else np.inf
                blocked_down[a] = 0.0 if own_v[a] > own_lower[a] else np.inf
        flat = 1e-280
        for a in range(size):
            flat = fmax(flat, abs(diagonal[a]))
        flat *= _LEAST_CURVATURE
        i, j, t = 0, 0, 0.0
        while True:
            violation, gain, to_i, to_j, wanted = -np.inf, 0.0, 0, -1, -1
            begin, end = 0, middle
            for _ in range(2):
                least, at = np.inf, begin
                for start in range(begin, end, _RUN):
                    stop = min(start + _RUN, end)
                    H, A = G[start:stop], blocked_up[start:stop]
                    Ki, Kj = inner[i, start:stop], inner[j, start:stop]
                    m = np.inf
                    for k in range(len(H)):
                        x = H[k] + t * (Ki[k] - Kj[k])
                        H[k] = x
                        m = fmin(m, x + A[k])
                    if m <= least:
                        least, at = m, start
                if least < np.inf:
                    leader = min(at + _RUN, end) - 1
                    while leader > at and G[leader] + blocked_up[leader] > least:
                        leader -= 1
                    if known[leader] == 0.0:
                        wanted = leader
                    d, best = diagonal[leader], 0.0
                    for start in range(begin, end, _RUN):
                        stop = min(start + _RUN, end)
                        H, B = G[start:stop], blocked_down[start:stop]
                        R, D = inner[leader, start:stop], diagonal[start:stop]
                        m = 0.0
                        for k in range(len(H)):
                            x = H[k] - B[k] - least
                            violation = fmax(violation, x)
                            x = fmax(x, 0.0)
                            m = fmax(m, x * x / fmax(d + D[k] - 2.0 * R[k], flat))
                        if m >= best:
                            best, at = m, start
                    if best > gain:
                        gain, best, to_i = best, 0.0, leader
                        for k in range(at, min(at + _RUN, end)):
                            x = fmax(G[k] - blocked_down[k] - least, 0.0)
                            x = x * x / fmax(d + diagonal[k] - 2.0 * inner[leader, k], flat)
                            if x >= best:
                                best, to_j = x, k
                begin, end = middle, size
            if violation <= goal or results[p, 0] >= max_steps or (wanted < 0 and to_j < 0):
                break
            if wanted < 0 and known[to_j] == 0.0:
                wanted = to_j
            if wanted >= 0:
                return wanted
            i, j = to_i, to_j
            c = diagonal[i] + diagonal[j] - 2.0 * inner[i, j]
            if c < -rounding * (abs(diagonal[i]) + abs(diagonal[j])):
                results[p, 1] = fmin(results[p, 1], c)
                results[p, 2] += 1.0
            room_i, room_j = own_upper[i] - own_v[i], own_v[j] - own_lower[j]
            t = fmin((G[j] - G[i]) / fmax(c, flat), fmin(room_i, room_j))
            own_v[i] = own_upper[i] if t == room_i else own_v[i] + t
            own_v[j] = own_lower[j] if t == room_j else own_v[j] - t
            for k in (i, j):
                blocked_up[k] = 0.0 if own_v[k] < own_upper[k] else np.inf
                blocked_down[k] = 0.0 if own_v[k] > own_lower[k] else np.inf
            results[p, 0] += 1.0
        results[p, 3] = violation
        for a in range(size):
            g[first + a] = G[a]
    return -1


@jit()
def _write_symmetric(K: np.ndarray, rows: np.ndarray, columns: np.ndarray, T: np.ndarray) -> None:
    """Set K[rows, columns] <- T and K[columns, rows] <- T^T."""
    for i in range(len(rows)):
        for j in range(len(columns)):
            K[rows[i], columns[j]] = T[i, j]
    for j in range(len(columns)):
        for i in range(len(rows)):
            K[columns[j], rows[i]] = T[i, j]
