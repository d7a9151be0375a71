"""The training problem of a support vector machine, in the form that its solver requires.

==========  ===========================================  =======================================
solver      input of the solver                          when "auto" chooses it
==========  ===========================================  =======================================
"smo"       rows of K through a cache (BlockSMO)         always, unless "primal" applies
"primal"    the columns of X: k(x, z) = <x, z>           linear kernel and dense X with more than
            (BoxInterior)                                500 rows and fewer columns than rows, if
                                                         "smo" takes longer than 1/7 of the time
                                                         estimated for "primal", or all of it for
                                                         up to 1600 points (SMOThenInteriorPoint)
"nystroem"  features on landmarks (BoxInterior)          never, because it is approximate
"core-set"  rows of K at a growing core set (CoreSet)    for a squared hinge loss, if K is too large
                                                         to be stored
==========  ===========================================  =======================================

Classification is one-vs-one: there is a function for each pair of classes, in the layout of LIBSVM.
With q classes there are q (q - 1) / 2 functions.  A support vector of class a has q - 1
coefficients, one for each other class b: in row b - 1 of `dual_coef_` if b > a, otherwise in row b.
So each k(x, x_i) is evaluated once and used in q - 1 sums, not in q (q - 1) / 2.  Estimators with a
single function (regression, one-class) are the case q = 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..._core import Points, ProgressCallback, ProgressStep, length, take
from ...blocks import select_rows
from ...expansion import Expansion, cross_kernel_cached
from ...gram import KernelRows, gram
from ...kernels import Kernel, Linear
from ...solvers import (
    BlockSMO,
    CoreProblem,
    CoreSet,
    DualProgress,
    Duals,
    DualSolution,
    DualSolutions,
    DualSolver,
    FollowCallback,
    Report,
    Reports,
    Status,
    WhitenedCoordinates,
)
from .._training_sample import Sample

# Up to this many entries (2 MB), k(X, support vectors) is evaluated as one array; a larger matrix
# is evaluated class by class, in tiles.
_MAX_STORED_ENTRIES = 2**18

# Up to this many entries of K (about one row), one reduction over all classes is faster than a
# matrix product for each class, because the overhead of the calls dominates.
_MAX_ENTRIES_REDUCEAT = 2**10

Pair = tuple[int, int]


@lru_cache(maxsize=64)
def class_pairs(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of each pair of q classes, as two index arrays."""
    return np.triu_indices(q, 1)


@lru_cache(maxsize=64)
def _contribution_indices(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each pair of classes, the flat indices of its two terms in a (q - 1, q) array.

    The decision function of a pair is the sum of two terms, one from the points of each class.
    Column c of the array contains the terms of class c, one for each pair that includes c.
    """
    a, b = class_pairs(q)
    return (b - 1) * q + a, a * q + b


@dataclass(frozen=True, eq=False)
class Pairs:
    """The training points of each pair of classes, in the order of LIBSVM.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        The class 0, ..., q - 1 of each point.
    q : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.support_vector._svm_training import Pairs
    >>> pairs = Pairs(np.array([0, 1, 2]), 3)
    >>> list(pairs)
    [(0, 1), (0, 2), (1, 2)]
    >>> pairs.members((0, 2))
    array([0, 2])
    >>> pairs.functions(np.array([[1.0, 4.0], [-2.0, 5.0], [-3.0, -6.0]]))
    array([[ 1.,  4.,  0.],
           [-2.,  0.,  5.],
           [ 0., -3., -6.]])
    """

    labels: np.ndarray
    q: int

    def __iter__(self) -> Iterator[Pair]:
        return combinations(range(self.q), 2)

    def __len__(self) -> int:
        return self.q * (self.q - 1) // 2

    def members(self, pair: Pair) -> np.ndarray:
        """Return the indices of the points of both classes of a pair."""
        return np.concatenate([self._order[self._ends[c] : self._ends[c + 1]] for c in pair])

    @cached_property
    def _order(self) -> np.ndarray:
        """The indices of the points, sorted by class."""
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def _ends(self) -> np.ndarray:
        """The number of points of all classes before each class, followed by that of all points."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.labels, minlength=self.q))])

    @cached_property
    def all_members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The indices, columns and signs of the points of all pairs, concatenated.

        The column is where the coefficient is stored in the transpose of `dual_coef_`.  The sign is
        +1 for the class for which f is positive: the second class if there are only two, otherwise
        the first of the pair.
        """
        n, q = len(self.labels), self.q
        if q == 2:
            signs = np.where(self.labels == 1, 1.0, -1.0)
            return np.arange(n), np.zeros(n, dtype=np.intp), signs
        ends, (a, b) = self._ends, class_pairs(q)
        classes = np.stack([a, b], axis=1).ravel()
        sizes = np.diff(ends)[classes]
        stops = np.cumsum(sizes)
        positions = np.repeat(ends[classes] - stops + sizes, sizes) + np.arange(stops[-1])
        members = self._order[positions]
        columns = np.repeat(np.stack([b - 1, a], axis=1).ravel(), sizes)
        return members, columns, np.repeat(np.tile([1.0, -1.0], len(a)), sizes)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of points of each pair."""
        if self.q == 2:
            return np.array([len(self.labels)])
        counts, (a, b) = np.diff(self._ends), class_pairs(self.q)
        return counts[a] + counts[b]

    def functions(self, D: np.ndarray) -> np.ndarray:
        """Return the coefficients of the function of each pair, shape (n, n_pairs).

        D is the transpose of `dual_coef_`.
        """
        (a, b), pair_index = class_pairs(self.q), np.empty((self.q, self.q - 1), dtype=int)
        pair_index[a, b - 1] = pair_index[b, a] = np.arange(len(self))
        A = np.zeros((len(D), len(self)))
        np.put_along_axis(A, pair_index[self.labels], D, axis=1)
        return A


class PairExpansion(Expansion):
    """The functions of all pairs of classes, on support vectors that are sorted by class.

    They are evaluated class by class, because most coefficients are 0.

    Parameters
    ----------
    kernel : Kernel
        The resolved kernel.
    points : points
        The support vectors.
    dual : ndarray of shape (n, q - 1)
        The transpose of `dual_coef_`, which has the layout of LIBSVM.
    n_support : ndarray of int
        Number of support vectors of each class; a single number for a single function.
    owner : object, optional
        The model to which the support vectors belong.  It is the key of the cache of prepared
        points, so that an expansion can be created for each prediction.
    """

    dual: np.ndarray
    owner: object = None

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        dual: np.ndarray,
        n_support: np.ndarray,
        owner: object = None,
    ) -> None:
        # Other attributes are computed on demand only, because predictions do not need them.
        self.__dict__.update(
            kernel=kernel, points=points, dual=dual, n_support=n_support, owner=owner
        )

    def __getstate__(self) -> dict[str, Any]:
        # `n_support` is computed from `pairs`, which is part of the file format.
        return {
            "kernel": self.kernel,
            "points": self.points,
            "dual": self.dual,
            "pairs": self.pairs,
        }

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of classes of the support vectors."""
        q = len(self.n_support)
        return Pairs(np.repeat(np.arange(q), self.n_support), max(q, 2))

    @cached_property
    def n_support(self) -> np.ndarray:
        """The number of support vectors of each class."""
        return np.bincount(self.pairs.labels, minlength=self.pairs.q)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the function of each pair of classes, shape (n, n_pairs)."""
        return self.dual if self.dual.shape[1] == 1 else self.pairs.functions(self.dual)

    def __call__(self, X: Points, *, n_threads: int | None = None) -> np.ndarray:
        kernel, points, dual = self.kernel, self.points, self.dual
        if isinstance(kernel, Linear):
            return np.asarray(X @ (points.T @ self.coefficients))
        if length(X) * len(dual) <= _MAX_STORED_ENTRIES:
            dense = isinstance(X, np.ndarray) and isinstance(points, np.ndarray) and len(dual)
            if dense and kernel.domain.on_vectors:
                owner = self if self.owner is None else self.owner
                K = cross_kernel_cached(owner, kernel, X, points)
            else:
                K = gram(kernel, X, points, n_threads=n_threads).to_array()
            return values_of_pairs(K, dual.T, self.n_support)
        if dual.shape[1] == 1:
            return np.asarray(gram(kernel, X, points, n_threads=n_threads) @ dual)
        terms = np.zeros((length(X), dual.shape[1], len(self.n_support)))
        for c, part in enumerate(_class_slices(self.n_support)):
            if part.stop > part.start:
                own = gram(kernel, X, take(points, part), n_threads=n_threads)
                terms[:, :, c] = own @ dual[part]
        return _sum_contributions(terms)


def _class_slices(n_support: np.ndarray) -> list[slice]:
    """Return the slice of the support vectors of each class."""
    return [slice(a, b) for a, b in pairwise([0, *np.cumsum(n_support).tolist()])]


def values_of_pairs(K: np.ndarray, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the values of the functions of all pairs of classes, shape (n, n_pairs).

    K is the kernel matrix between the points and the support vectors.
    """
    if len(dual_coef) == 1:
        return K @ dual_coef.T
    if K.size <= _MAX_ENTRIES_REDUCEAT and n_support.all():
        starts = np.cumsum(n_support) - n_support
        return _sum_contributions(np.add.reduceat(K[:, None] * dual_coef, starts, axis=2))
    terms = [K[:, part] @ dual_coef[:, part].T for part in _class_slices(n_support)]
    return _sum_contributions(np.stack(terms, axis=2))


def _sum_contributions(G: np.ndarray) -> np.ndarray:
    """Return the values of the functions of all pairs of classes, shape (n, n_pairs).

    G has shape (n, q - 1, q) for q classes; G[:, :, c] are the contributions of class c to its
    q - 1 functions.
    """
    first, second = _contribution_indices(G.shape[2])
    G = G.reshape(len(G), -1)
    return G.take(first, axis=1) + G.take(second, axis=1)


def votes_of_pairs(values: np.ndarray, q: int) -> np.ndarray:
    """Return the number of votes for each class, shape (n, q).

    The function of a pair votes for the first class if its value is positive, otherwise for the
    second.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.support_vector._svm_training import votes_of_pairs
    >>> votes_of_pairs(np.array([[1.0, -1.0, 0.0]]), 3)  # 0 beats 1, 2 beats 0, 2 beats 1
    array([[1., 0., 2.]])
    """
    first, second = class_pairs(q)
    rows = q * np.arange(len(values))[:, None]
    winners = np.where(values > 0, first, second) + rows
    return np.bincount(winners.ravel(), minlength=q * len(values)).reshape(-1, q).astype(float)


# A warning reports a column whose mean exceeds this many standard deviations, as it needs centring.
_MAX_MEAN_TO_STD = 1e4


SolverData: TypeAlias = KernelRows | np.ndarray | tuple[KernelRows, np.ndarray] | Kernel


@dataclass(frozen=True, eq=False)
class SVMProblem:
    """The training data of an SVM, in the form that its solver requires.

    Attributes
    ----------
    sample : Sample
        The points of positive weight.  Their weights include the class weights.
    kernel : Kernel
        The resolved kernel, which is used for predictions.
    solver : DualSolver or CoreSet
        The solver of the dual problems.
    data : KernelRows, ndarray, tuple or Kernel
        Rows of K, features F with F F^T = K, or both; for a core set, the kernel to evaluate.
    phi : WhitenedCoordinates or None
        The feature map on landmarks, if solver="nystroem".
    class_weights : ndarray of shape (n_classes,)
        The class weights, by which the weights of the points have been multiplied.
    """

    sample: Sample
    kernel: Kernel
    solver: DualSolver | CoreSet
    data: SolverData
    phi: WhitenedCoordinates | None = None
    class_weights: np.ndarray = field(default_factory=lambda: np.ones(1))

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of classes; for an SVM with one function, a single pair with all points."""
        if self.sample.classes is None:
            return Pairs(np.zeros(len(self.sample), dtype=np.intp), 2)
        return Pairs(self.sample.labels, len(self.sample.classes))

    @property
    def rows(self) -> KernelRows | None:
        """The cache of rows of K, if the solver uses one."""
        data = self.data[0] if isinstance(self.data, tuple) else self.data
        return data if isinstance(data, KernelRows) else None

    def minimize_all(self, duals: Duals, log: ProgressCallback | None = None) -> DualSolutions:
        """Solve the dual problem of each pair of classes; `log` prints progress."""
        pairs = list(self.pairs)

        def follow(p: int) -> FollowCallback:
            return None if log is None else progress_callback(log, self.title(pairs[p]))

        def data(p: int) -> Any:
            return self._data_of(self.data, pairs[p])

        if isinstance(self.solver, BlockSMO) and isinstance(self.data, KernelRows):
            callbacks = None if log is None else follow
            return self.solver.minimize_all(self.data, duals, data, callbacks)
        solver: Any = self.solver
        solutions = (solver.minimize(data(p), dual, follow(p)) for p, dual in enumerate(duals))
        return DualSolutions.of(solutions, duals)

    def minimize_core_sets(
        self,
        C: float,
        squared: bool,
        total: float | None,
        duals: Callable[[SVMProblem], Duals],
        log: ProgressCallback | None = None,
    ) -> tuple[SVMProblem, DualSolutions]:
        """Solve the problem of each pair of classes on a core set.

        Returns the problem on the points of all core sets, and its solutions.

        Parameters
        ----------
        C, squared, total
            As in `CoreProblem`; C multiplies the weights of the points.
        duals : callable
            Returns the dual problems of the pairs of classes of an `SVMProblem`.
        log : callable or None
            Prints progress.
        """
        found, pairs, sample = [], list(self.pairs), self.sample
        solver: Any = self.solver  # a CoreSet
        kernel: Any = self.data
        for pair in pairs:
            members, points, signs = np.arange(len(sample)), sample.points, np.ones(len(sample))
            if len(pairs) > 1:
                members = np.sort(self.pairs.members(pair))
                points = select_rows(points, members)
            if sample.labels is not None:  # f > 0 for this class, as in `all_members`
                positive = pair[1] if len(pairs) == 1 else pair[0]
                signs = np.where(sample.labels[members] == positive, 1.0, -1.0)
            weights = C * sample.counts[members]
            problem = CoreProblem(kernel, points, signs, weights, squared, total)
            follow = None if log is None else progress_callback(log, self.title(pair))
            index, solution = solver.minimize(problem, follow)
            found.append((members[index], solution))
        used = np.unique(np.concatenate([index for index, _ in found]))
        reduced = replace(self, sample=sample.take(used))
        solutions: list[DualSolution] = []
        for pair, (index, solution) in zip(pairs, found, strict=True):
            own = np.arange(len(used)) if len(pairs) == 1 else reduced.pairs.members(pair)
            places = np.full(len(used), -1)
            places[np.searchsorted(used, index)] = np.arange(len(index))
            places = places[own]
            arrays: dict[str, Any] = {
                name: np.where(places < 0, part.dtype.type(0), part[places])
                for name, part in zip(solution._fields[:4], solution[:4], strict=True)
            }
            solutions.append(solution._replace(**arrays))
        return reduced, DualSolutions.of(solutions, duals(reduced))

    def _data_of(self, data: Any, pair: Pair) -> Any:
        """Return the part of the data that belongs to a pair of classes."""
        if isinstance(data, tuple):
            return tuple(self._data_of(part, pair) for part in data)
        is_single = len(self.pairs) == 1
        if isinstance(data, KernelRows):
            return data.view(*(() if is_single else pair))
        return data if is_single else data[self.pairs.members(pair)]

    @property
    def weighted_sums(self) -> np.ndarray:
        """The sum of the weights of the points of each class, including the class weights."""
        return np.bincount(self.sample.labels, self.sample.counts)

    @property
    def sums(self) -> np.ndarray:
        """The sum of the sample weights of the points of each class, without the class weights."""
        return self.weighted_sums / self.class_weights

    def names(self, pair: Pair) -> list[object]:
        """Return the original labels of the two classes of a pair."""
        return self.sample.classes[list(pair)].tolist()

    def title(self, pair: Pair) -> str:
        """Return a prefix of progress messages that names the pair; empty for a single pair."""
        if len(self.pairs) == 1:
            return ""
        a, b = self.names(pair)
        number = list(self.pairs).index(pair) + 1
        return f"{a} vs. {b} ({number} of {len(self.pairs)}): "

    @property
    def counts(self) -> tuple[int, int]:
        """The number of rows of K requested so far, and how many of them were in the cache."""
        return (0, 0) if self.rows is None else (self.rows.requests, self.rows.hits)

    @property
    def largest(self) -> float:
        """The largest |k(x, x)|; 0 for features, whose kernel is always positive semidefinite."""
        return 0.0 if self.rows is None else self.rows.largest


def progress_callback(log: ProgressCallback, title: str) -> Callable[[DualProgress], None]:
    """Return a callback that logs the progress of a solver, prefixed with the title."""

    def follow(state: DualProgress) -> None:
        text = (
            f"{title}{state.n_iter} steps, {state.seconds:.1f} s: violation {state.violation:.2e}, "
        )
        log(ProgressStep(f"{text}dual objective {state.objective:.8g}"))

    return follow


def merge_reports(
    problem: SVMProblem, reports: Reports, before: tuple[int, int], note: str = ""
) -> Report:
    """Combine the reports of all pairs: costs, objectives and gaps are added, violations maximised.

    Parameters
    ----------
    problem : SVMProblem
        The problem that was solved.
    reports : Reports
        The report of each pair.
    before : tuple of int
        The value of `problem.counts` before solving.
    note : str
        A remark for the message of the report.
    """
    requests, hits = (now - then for now, then in zip(problem.counts, before, strict=True))
    # Objectives, gaps and counts are added, apart from the following entries.
    columns = reports.certificate
    merged = {
        "violation": float(columns["violation"].max()),
        "cache_hits": float(hits / requests) if requests else float("nan"),
        "curvature": float(columns["curvature"].min()),
    }
    certificate = {
        name: merged[name] if name in merged else sum(column.tolist())
        for name, column in columns.items()
    }
    failed = reports.failed
    status = Status.CONVERGED if problem.phi is None else Status.APPROXIMATE
    messages = [problem.phi.message if problem.phi else "", note]
    messages += [reports.message[failed[0] if failed else 0]]
    if len(reports) > 1:
        messages.append(f"{len(reports)} pairs of classes, {len(failed)} of which did not converge")
    return Report(
        reports.solver,
        Status.NOT_CONVERGED if failed else status,
        sum(reports.n_iter.tolist()),
        float(reports.residual.max()),
        sum(reports.seconds.tolist()),
        "; ".join(filter(None, messages)),
        certificate,
    )


def describe_scales(X: Points, has_C: bool = True) -> str:
    """Return advice about the scales of the columns of X, for a solver that did not converge."""
    if (
        not (isinstance(X, np.ndarray) or sp.issparse(X))
        or X.ndim != 2
        or X.dtype.kind not in "biuf"
    ):
        return ""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if sp.issparse(X) else np.square(X)
    with np.errstate(over="ignore", invalid="ignore"):
        std = np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - mean**2, 0.0))
    typical = float(np.median(std[std > 0])) if np.any(std > 0) else 0.0
    if not typical > 0.0:
        return "all columns of X are constant"
    far_columns = np.flatnonzero(np.abs(mean) > _MAX_MEAN_TO_STD * np.maximum(std, typical))
    if len(far_columns):
        c = far_columns[np.argmax(np.abs(mean[far_columns]))]
        return f"column {c} has a mean of {mean[c]:.2g} and a standard deviation of {std[c]:.2g}"
    largest = np.argsort(-std, kind="stable")[:3]
    large = [
        f"column {c} has a standard deviation of {std[c]:.2g}, {std[c] / typical:.2g} times the "
        f"median"
        for c in largest
        if std[c] > 10.0 * typical
    ]
    if large:
        return "; ".join(large)
    if typical > 10.0 or typical < 0.1:
        return f"the columns of X have standard deviations of about {typical:.2g}"
    needed = "a smaller C or a larger max_iter" if has_C else "a larger max_iter"
    return f"the columns of X have similar scales, so {needed} may help"
