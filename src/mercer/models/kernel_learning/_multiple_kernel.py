"""Multiple kernel learning: a weighted sum of kernels whose weights v >= 0 are learned from data.

The methods are closed-form rules (equal weights, and alignment with the targets), support vector
machines (EasyMKL and SimpleMKL), and the marginal likelihood of a Gaussian process (ML-II).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    MemoryLimit,
    Points,
    as_float64,
    budget_in_bytes,
    check_choice,
    entry_point,
    is_count,
    length,
    one_blas_thread,
    resource_scope,
    take,
    warn_caller,
)
from ..._core.linalg import eigh
from ...gram import DenseGram, GramOperator, KernelRows, gram, memoise_if_affordable
from ...kernels import (
    Fixed,
    Kernel,
    Precomputed,
    Prepared,
    Properties,
    Scale,
    Sum,
    as_kernel,
    data_dependent,
    node,
    without_targets,
)
from ...solvers import BlockSMO, Dual, DualSolution, Status
from ..gp import RidgeCriterion, maximise
from ._kernel_alignment import (
    GramInnerProducts,
    check_weights,
    target_gram,
    targets_to_matrix,
    tiled_gram,
)

METHODS = ("average", "alignment", "alignf", "easymkl", "simplemkl", "likelihood")

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class WeightingProblem:
    """The data from which the weights of p kernels are computed.

    Attributes
    ----------
    kernels : sequence of Kernel
        The p kernels, scaled to comparable size, with numbers instead of rules such as "median".
    X : points
        The n training points.
    Y : ndarray of shape (n, q)
        The targets.
    weights : ndarray of shape (n,) or None
        Weights of the points.
    products : ndarray of shape (p, p)
        The inner products M_kl = <A_k, A_l> of the centred kernel matrices.
    with_target : ndarray of shape (p,)
        The inner products a_k = <A_k, T> with the centred T = Y Y^T.
    target_norm2 : float
        The squared norm <T, T>.
    max_memory : int, str or None
        The memory budget.
    """

    kernels: Sequence[Kernel]
    X: Points
    Y: np.ndarray
    weights: np.ndarray | None
    products: np.ndarray
    with_target: np.ndarray
    target_norm2: float
    max_memory: MemoryLimit = None

    @property
    def counts(self) -> np.ndarray:
        """The weights of the points; ones if `weights` is None."""
        return np.ones(len(self.Y)) if self.weights is None else self.weights

    @cached_property
    def alignments(self) -> np.ndarray:
        """The alignment of each kernel with the targets; 0 for a constant kernel."""
        return np.array([self.alignment(e) for e in np.eye(len(self.kernels))])

    def select(self, mask: np.ndarray) -> WeightingProblem:
        """Return the problem restricted to the kernels that a Boolean mask selects."""
        indices = np.flatnonzero(mask).tolist()
        return replace(
            self,
            kernels=[self.kernels[i] for i in indices],
            products=self.products[np.ix_(indices, indices)],
            with_target=self.with_target[indices],
        )

    def alignment(self, v: np.ndarray) -> float:
        """Return the alignment of sum_k v_k K_k with the targets."""
        norm2 = float(v @ self.products @ v) * self.target_norm2
        return float(v @ self.with_target / np.sqrt(norm2)) if norm2 > 0 else 0.0

    @property
    def has_classes(self) -> bool:
        """Whether the targets are one-hot encoded classes."""
        Y = self.Y
        return Y.shape[1] > 1 and bool(np.all((Y == 0) | (Y == 1)) and np.all(Y.sum(axis=1) == 1))

    @property
    def signs(self) -> np.ndarray:
        """The targets +-1 of one-vs-rest classifiers, one per column; one column for 2 classes."""
        return 2.0 * (self.Y[:, 1:] if self.Y.shape[1] == 2 else self.Y) - 1.0


def weighted_sum(kernels: Sequence[Kernel], factors: np.ndarray) -> Sum:
    """Return the kernel sum_k factor_k k_k over the kernels with a positive factor."""
    pairs = zip(kernels, factors.tolist(), strict=True)
    return Sum(tuple(Scale(k, factor) for k, factor in pairs if factor > 0))


def compute_weights(problem: WeightingProblem, method: str, ridge: float, C: float) -> np.ndarray:
    """Return the weights of the kernels by one of `METHODS`; the caller normalises them.

    `ridge` is the parameter of "easymkl", and C that of "simplemkl".  If all weights are 0, a
    warning is issued and all kernels have the same weight.
    """
    if method == "average":
        return np.ones(len(problem.kernels))
    # Kernels that do not vary are constant on X, and have the weight 0.
    varies = np.diagonal(problem.products) > 0
    v = np.zeros(len(varies))
    if problem.target_norm2 > 0 and varies.any():  # otherwise all targets, or kernels, are constant
        methods: dict[str, Callable[[WeightingProblem], np.ndarray]] = {
            "alignment": _align_weights,
            "alignf": _alignf_weights,
            "easymkl": partial(_easymkl_weights, ridge=ridge),
            "simplemkl": partial(_simplemkl_weights, C=C),
            "likelihood": _marginal_likelihood_weights,
        }
        v[varies] = methods[method](problem.select(varies))
    if np.any(v > 0):
        return v
    warn_caller(
        f"none of the {len(v)} kernels is aligned with the targets: the largest alignment is "
        f"{problem.alignments.max():.2g}, so all weights would be 0. Equal weights are used "
        f"instead; try other kernels or other columns of X"
    )
    return np.ones(len(v))


def _align_weights(problem: WeightingProblem) -> np.ndarray:
    """Return each kernel's alignment with the targets as its weight, or 0 if negative (ALIGN)."""
    return np.maximum(problem.alignments, 0.0)


def _alignf_weights(problem: WeightingProblem) -> np.ndarray:
    """Return the weights that maximise the alignment of the sum with the targets (ALIGNF).

    The weights v >= 0 minimise v^T M v - 2 v^T a, where M_kl = <A_k, A_l> and a_k = <A_k, T> are
    the inner products of the centred matrices.  This is the non-negative least squares problem
    |S v - b| with S^T S = M and S^T b = a, computed from the eigenvectors of M.  Eigenvalues at the
    level of rounding, which mean that kernels are linearly dependent, are dropped; no ridge is
    added to M.
    """
    norms = np.sqrt(problem.products.diagonal())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    values, Q = eigh(problem.products * scale * scale[:, None])
    significant = values > len(values) * 8 * _EPS * max(values[-1], 0.0)
    root, Q = np.sqrt(values[significant]), Q[:, significant]
    S, b = root[:, None] * Q.T, (Q.T @ (scale * problem.with_target)) / root
    v, _ = nnls(S, b / max(np.abs(b).max(initial=0.0), 1e-300))
    return np.asarray(v * scale)


# ---------------------------------------------------------------------- support vector machines


@dataclass(frozen=True)
class _MKLTuning:
    """Stopping criteria of SimpleMKL, and storage of the kernel matrix."""

    # SimpleMKL stops when the duality gap is below this fraction of the objective.
    relative_gap: float = 1e-2
    # Maximum number of alternating updates of SVMs and weights.
    max_iter: int = 200
    # A weight below this fraction of the largest is set to 0.
    negligible_weight: float = 1e-4
    # K is stored if the memory budget is at least this many times the size of K.
    min_budget_ratio: int = 4
    # Epsilon of support vector regression, in standard deviations of the targets.
    epsilon: float = 0.1


_TUNING = _MKLTuning()


@node
class _DiagonalKernel(Kernel):
    """Diagonal kernel, k(x_i, x_j) = r_i if i = j, else 0: adds a ridge to each observation."""

    r: np.ndarray

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        return Prepared(positions=range(length(X)))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        out[...] = 0.0
        i, j = P.coincidences(Q)
        out[i, j] = self.r[P.index[i]]

    def _diag(self, X: Points) -> np.ndarray:
        return np.asarray(self.r)


def _easymkl_weights(problem: WeightingProblem, ridge: float) -> np.ndarray:
    """Return the contribution g^T K_k g of each kernel to the margin between classes (EasyMKL).

    g minimises the squared distance between the convex hulls of the two classes, with a ridge,

        g^T ((1 - ridge) sum_k K_k / p + ridge diag(1 / w)) g

    for p kernels and sample weights w, where the coefficients g sum to 1 over one class and to -1
    over the other (Aiolli and Donini, 2015).  With several classes, the one-vs-rest contributions
    are added.
    """
    if not problem.has_classes:
        raise ValueError(
            "method='easymkl' maximises the margin between classes, but the targets are numbers; "
            "use 'alignf', 'likelihood' or 'simplemkl'"
        )
    n, p = len(problem.Y), len(problem.kernels)
    mixed = weighted_sum(problem.kernels, np.full(p, (1.0 - ridge) / p)).terms if ridge < 1 else ()
    rows = _kernel_rows(Sum((*mixed, _DiagonalKernel(ridge / problem.counts))), problem)
    solver, ones = BlockSMO(tol=1e-4 / n), np.ones(n)
    duals = [Dual.nu_classify(signs, ones, 2.0 / n) for signs in problem.signs.T]
    solutions = [solver.minimize(rows, dual) for dual in duals]
    _warn_if_not_converged(solutions)
    return _squared_norms(problem, solutions)


def _simplemkl_weights(problem: WeightingProblem, C: float) -> np.ndarray:
    """Return the weights that minimise the objective of a support vector machine (SimpleMKL).

    Over weights v >= 0 with sum 1, they minimise the maximum over the SVM coefficients a of the
    dual objective

        sum_i |a_i| - 1/2 a^T (sum_k v_k K_k) a

    (Rakotomamonjy et al., 2008).  The component f_k of the decision function f that belongs to
    kernel k has the norm |f_k| = v_k sqrt(a^T K_k a), and for a fixed f the optimal v_k is
    proportional to |f_k|.  Updating the SVM and the weights in turn therefore decreases the
    objective without a line search (Xu et al., 2010).  The iteration stops when the duality gap
    shows that no other weights could lower the objective by more than 1 %.

    With several classes, the one-vs-rest objectives are added.  For numeric targets, the model is
    support vector regression with an epsilon of a tenth of their standard deviation.
    """
    if problem.has_classes:
        duals = [Dual.classify(signs, C * problem.counts) for signs in problem.signs.T]
    else:
        mean = np.average(problem.Y, axis=0, weights=problem.weights)
        spread = np.sqrt(np.average((problem.Y - mean) ** 2, axis=0, weights=problem.weights))
        Y = (problem.Y - mean) / np.where(spread > 0, spread, 1.0)
        duals = [Dual.regress(y, C * problem.counts, _TUNING.epsilon) for y in Y.T]
    v, gap, objective = np.full(len(problem.kernels), 1.0 / len(problem.kernels)), np.inf, np.inf
    for _ in range(_TUNING.max_iter):
        rows = _kernel_rows(weighted_sum(problem.kernels, v), problem)
        solutions = [BlockSMO().minimize(rows, dual) for dual in duals]
        del rows
        duals = [replace(d, start=s.variables) for d, s in zip(duals, solutions, strict=True)]
        squared_norms = _squared_norms(problem, solutions)
        gap = 0.5 * float(squared_norms.max() - v @ squared_norms)
        objective = float(sum(s.report.certificate["dual"] for s in solutions))
        if gap <= _TUNING.relative_gap * abs(objective):
            break
        v = v * np.sqrt(squared_norms)
        v /= v.sum()
    else:
        warn_caller(
            f"the weights of the kernels have not converged after {_TUNING.max_iter} iterations: "
            f"other weights might lower the objective of {objective:.4g} by {gap:.2g}. Try a "
            f"smaller C, which converges faster",
            ConvergenceWarning,
        )
    _warn_if_not_converged(solutions)
    return np.where(v > _TUNING.negligible_weight * v.max(), v, 0.0)


def _warn_if_not_converged(solutions: list[DualSolution]) -> None:
    """Warn if one of the SVMs has not converged."""
    worst = max(solutions, key=lambda s: s.report.certificate["violation"])
    if any(s.report.status is Status.NOT_CONVERGED for s in solutions):
        warn_caller(
            f"the weights of the kernels come from an SVM that did not converge: its optimality "
            f"conditions are violated by up to {worst.report.certificate['violation']:.2g}. Try "
            f"scaled features, or another method",
            ConvergenceWarning,
        )


def _kernel_rows(kernel: Kernel, problem: WeightingProblem) -> KernelRows:
    """Return an object that provides rows of K; a small K is stored and shared by all SVMs."""
    if 8 * len(problem.Y) ** 2 * _TUNING.min_budget_ratio > budget_in_bytes(problem.max_memory):
        return KernelRows(kernel, problem.X, max_memory=problem.max_memory)
    array = DenseGram(kernel, problem.X).release()
    array.setflags(write=False)
    return KernelRows(Precomputed(array), np.arange(len(array)), max_memory=problem.max_memory)


def _squared_norms(problem: WeightingProblem, solutions: list[DualSolution]) -> np.ndarray:
    """Return sum_j v_j^T K_k v_j over the coefficients v_j of all solutions, for each kernel k.

    K_k is evaluated only on the points with a nonzero coefficient.
    """
    V = np.column_stack([solution.coefficients for solution in solutions])
    support = np.flatnonzero(np.any(V != 0.0, axis=1))
    points, A, budget = take(problem.X, support), V[support], problem.max_memory
    grams = (gram(k, points, storage="tiled", max_memory=budget) for k in problem.kernels)
    return np.maximum([np.sum(A * (K @ A)) for K in grams], 0.0)


# ---------------------------------------------------------------------- marginal likelihood

# Variance of f relative to the noise variance at the start of the search.
_INITIAL_SIGNAL_TO_NOISE = 10.0
_WEIGHT_BOUNDS = (1e-4, 1e8)  # bounds of a weight, relative to the noise variance
# A weight below this fraction of the largest is set to 0: such a weight was approaching its lower
# bound.
_NEGLIGIBLE_WEIGHT = 1e-3


def _marginal_likelihood_weights(problem: WeightingProblem) -> np.ndarray:
    """Return the weights v that maximise the marginal likelihood p(Y | v) of a Gaussian process.

    The covariance is c (sum_k v_k K_k + diag(1 / w)) with sample weights w and the optimal factor
    c.  A constant mean is integrated out.  Class labels are one-hot encoded and treated as numbers.
    """
    p = len(problem.kernels)
    start = np.full(p, _INITIAL_SIGNAL_TO_NOISE / p)
    kernel = weighted_sum([Fixed(k) for k in problem.kernels], start)
    noise = 0.0 if problem.weights is None else 1.0 / problem.weights
    data = (kernel, problem.X, problem.Y, noise, problem.max_memory)
    objective = RidgeCriterion(*data, free=False, intercept=True, criterion="likelihood")
    result = maximise(objective, objective.start, np.tile(np.log(_WEIGHT_BOUNDS), (p, 1)))
    if not result.converged:
        warn_caller(
            f"the search for the weights of {p} kernels stopped after {result.evaluations} "
            f"evaluations at a log marginal likelihood of {result.value:.6g} without convergence: "
            f"{result.message}",
            ConvergenceWarning,
        )
    v = np.exp(result.theta)
    return np.where(v > _NEGLIGIBLE_WEIGHT * v.max(), v, 0.0)


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """The weights that `MultipleKernel.learn` returns; `print` it for a table.

    Attributes
    ----------
    method : str
        The method that computed the weights.
    kernels : tuple of Kernel
        The p kernels, with all data-dependent parameters, such as "median", replaced by numbers.
    weights : ndarray of shape (p,)
        The weight of each kernel after division by its size; not negative, with sum 1.
    sizes : ndarray of shape (p,)
        The mean squared distance of the points from their mean in the feature space of each kernel.
        It is set to 1 for constant kernels, and for all kernels if `normalize` is False.
    alignments : ndarray of shape (p,) or None
        The alignment of each kernel with the targets; None if there are no targets.
    alignment, alignment_of_average : float or None
        The alignment of the weighted sum with the targets, and that of the sum with equal weights.

    See Also
    --------
    MultipleKernel.learn : Compute the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultipleKernel
    >>> from mercer.kernels import RBF, Select
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> kernel = MultipleKernel([Select(RBF(), [0]), Select(RBF(), [1])])
    >>> int(kernel.learn(X, X[:, 0]).weights.argmax())
    0
    """

    method: str
    kernels: tuple[Kernel, ...]
    weights: np.ndarray
    sizes: np.ndarray
    alignments: np.ndarray | None = None
    alignment: float | None = None
    alignment_of_average: float | None = None

    @property
    def kernel(self) -> Sum:
        """The sum of (weight_k / size_k) k_k over the kernels with a positive weight."""
        return weighted_sum(self.kernels, self.weights / self.sizes)

    def __str__(self) -> str:
        n_used = int(np.count_nonzero(self.weights))
        lines = [f"{n_used} of {len(self.kernels)} kernels have a positive weight by {self.method}"]
        for i in np.argsort(-self.weights, kind="stable"):
            column = "" if self.alignments is None else f"  alignment {self.alignments[i]:6.3f}"
            lines.append(f"{self.weights[i]:7.4f}{column}  {self.kernels[i]}")
        if self.alignments is not None:
            lines.append(
                f"alignment with the targets: {self.alignment:.3f}; with equal weights "
                f"{self.alignment_of_average:.3f}; of the best single kernel "
                f"{self.alignments.max():.3f}"
            )
        return "\n".join(lines)


@entry_point
@node
class MultipleKernel(Kernel):
    """A weighted sum of kernels whose weights are learned when an estimator is fitted.

    Use it if several kernels are plausible, or if groups of columns are of unknown relevance.

    The kernel is k(x, z) = sum_k v_k k_k(x, z) / s_k, with weights v >= 0 of sum 1.  Like the
    parameter of ``RBF("median")``, the weights are computed from the training data: a fitted
    estimator has a plain sum of kernels as its `kernel_`, which is positive definite because no
    weight is negative.  In a Gaussian process the learned weights are only starting values, which
    are then optimised.

    ============= ============================================================================
    method        weights
    ============= ============================================================================
    "average"     equal weights, which often work well; the only method that needs no targets,
                  and can therefore be used in kernel PCA
    "alignment"   the alignment of each kernel with the targets
    "alignf"      maximise the alignment of the sum with the targets: sparse, and redundant
                  kernels share one weight (Cortes, Mohri and Rostamizadeh)
    "easymkl"     the contribution of each kernel to the margin between classes (Aiolli and
                  Donini)
    "simplemkl"   minimise the objective of a support vector machine with this C: sparse
                  (Rakotomamonjy et al.)
    "likelihood"  maximise the marginal likelihood of a Gaussian process; n^2 memory, n^3 time
    ============= ============================================================================

    Class labels are one-hot encoded to targets Y, whose kernel matrix is T = Y Y^T.  The inner
    products of all p matrices are computed in one pass over tiles.  Each kernel needs memory
    for one vector of length n and for its preprocessed points.

    Parameters
    ----------
    kernels : sequence of Kernel, str or callable
        The kernels, or anything that `as_kernel` accepts, all for the same kind of points.  Use
        `Select(kernel, columns)` for a kernel on some of the columns.
    method : str, default="alignf"
        How the weights are learned; see the table above.  Start with "average" as a baseline.  Use
        "alignf" for regression and classification, and "easymkl" or "simplemkl" for classification
        with SVMs.
    normalize : bool, default=True
        Whether each kernel is divided by its size s_k on the data, the trace of its centred matrix
        divided by n.  The sum then has size 1, so that alpha or C have the same meaning for all
        kernels.  If False, s_k = 1.
    ridge : float, default=0.1
        For "easymkl", between 0 (distance between the convex hulls of the classes) and 1 (distance
        between their means).
    C : float, default=1.0
        The penalty parameter of the SVM, for "simplemkl".
    subsample : int or None, default=None
        The number of evenly spaced points from which the weights are learned; None uses all points.
        Set it for large n, because the time grows with its square.
    max_memory : int, str or None, default=None
        The memory budget for learning the weights; None uses the budget of the estimator.

    See Also
    --------
    alignment : Alignment of a kernel with targets.
    search_kernels : Search for a kernel expression.
    mercer.kernels.Sum : Sum of kernels with fixed weights.

    References
    ----------
    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 13, 2012.

    Aiolli and Donini, "EasyMKL: a scalable multiple kernel learning algorithm", Neurocomputing 169,
    2015.

    Rakotomamonjy, Bach, Canu and Grandvalet, "SimpleMKL", JMLR 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, MultipleKernel
    >>> from mercer.kernels import RBF, Select
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> views = [Select(RBF(), [0]), Select(RBF(), [1])]
    >>> kernel = MultipleKernel(views, method="alignf")
    >>> kernel.learn(X, np.sin(X[:, 0])).weights.round(2)
    array([1., 0.])
    >>> model = KernelRidge(kernel=kernel).fit(X, np.sin(X[:, 0]))
    >>> model.kernel_ == kernel.learn(X, np.sin(X[:, 0])).kernel
    True
    """

    kernels: tuple[Kernel, ...] = ()
    method: str = data_dependent("alignf", is_rule=lambda method: True)
    normalize: bool = True
    ridge: float = 0.1
    C: float = 1.0
    subsample: int | None = None
    max_memory: MemoryLimit = None

    def __post_init__(self) -> None:
        kernels = self.kernels
        if isinstance(kernels, (Kernel, str)) or not np.iterable(kernels):
            raise TypeError(f"MultipleKernel needs a sequence of kernels, got {kernels!r}")
        object.__setattr__(self, "kernels", tuple(map(as_kernel, kernels)))
        super().__post_init__()

    def _properties(self, *inner: Properties) -> Properties:
        # Some weights may be 0, so only properties that hold for every kernel are certain.
        of_sum = Sum(self.kernels).properties
        return replace(of_sum, strict=False, against=None)

    def _check(self) -> None:
        if not self.kernels:
            raise ValueError("MultipleKernel needs at least one kernel, got an empty sequence")
        Sum(self.kernels)  # raises if the kernels need different kinds of points
        check_choice("method", self.method, *METHODS)
        if not 0.0 <= self.ridge <= 1.0:
            raise ValueError(f"ridge must be between 0 and 1, got {self.ridge!r}")
        if not 0.0 < self.C < np.inf:
            raise ValueError(f"C must be positive, got {self.C!r}")
        if self.subsample is not None and not is_count(self.subsample):
            raise ValueError(
                f"subsample must be a positive integer or None, got {self.subsample!r}"
            )

    def learn(
        self, X: Points, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> KernelWeights:
        """Learn the weights from points and targets, without fitting an estimator.

        Parameters
        ----------
        X : points
            The n training points.
        y : array of shape (n,) or (n, q), optional
            The targets: floats are numeric targets, any other type means class labels.  All methods
            but "average" need them.
        sample_weight : array of shape (n,), optional
            Weights of the points.  A point of weight 2 counts as two points; with "easymkl" and
            "likelihood" it counts as one point with half the noise variance.

        Returns
        -------
        KernelWeights
            The `weights` of shape (p,), the alignments, and the resulting `kernel`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import MultipleKernel
        >>> from mercer.kernels import RBF, Linear
        >>> X = np.linspace(-1, 1, 50)[:, None]
        >>> MultipleKernel([RBF(0.1), Linear()]).learn(X, 3.0 * X[:, 0]).weights.round(2)
        array([0., 1.])
        """
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        Y = None if y is None else targets_to_matrix(y)
        if weights is not None:
            check_weights(weights, length(X))
            positive = np.flatnonzero(weights)
            X, weights, Y = take(X, positive), weights[positive], None if Y is None else Y[positive]
        resolved = [k.resolve(X, weights, Y) for k in self.kernels]
        return replace(self, kernels=tuple(resolved))._learn_weights(X, weights, Y)

    # ------------------------------------------------------------------ interface of Kernel

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        return self._learn_weights(X, weights, targets).kernel

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._require_resolved()  # always raises: only the resolved kernel, a Sum, has values

    # ------------------------------------------------------------------ learning

    @one_blas_thread
    @resource_scope()
    def _learn_weights(
        self, X: Points, weights: np.ndarray | None, Y: np.ndarray | None
    ) -> KernelWeights:
        """Learn the weights of kernels whose data-dependent parameters are already numbers."""
        n, p = length(X), len(self.kernels)
        if Y is None and self.method != "average":
            raise ValueError(
                f"method={self.method!r} learns the weights of {p} kernels from targets, but no "
                f"targets were given; pass y, or use method='average', which does not need them"
            )
        if Y is not None and len(Y) != n:
            raise ValueError(f"there are {n} points, but {len(Y)} targets; pass one per point")
        if self.subsample is not None and self.subsample < n:
            rows = np.linspace(0, n - 1, self.subsample).astype(int)
            X, Y = take(X, rows), None if Y is None else Y[rows]
            weights = None if weights is None else weights[rows]
            n = len(rows)
        X = as_float64(X)
        kernels = [memoise_if_affordable(k, n, self.max_memory) for k in self.kernels]
        grams = [self._gram(i, X, kernels[i]) for i in range(p)]
        if Y is not None:
            grams.append(target_gram(Y))
        inner = GramInnerProducts.of(grams, weights, max_memory=self.max_memory)
        sizes = np.ones(p)
        if self.normalize:
            sizes = np.where(inner.sizes[:p] > 0, inner.sizes[:p], 1.0)
        if Y is None:
            return KernelWeights(self.method, self.kernels, np.full(p, 1.0 / p), sizes)
        pairs = zip(kernels, sizes.tolist(), strict=True)
        scaled = [k if s == 1.0 else (1.0 / s) * k for k, s in pairs]
        products = inner.products[:p, :p] / np.outer(sizes, sizes)
        with_target, norm2 = inner.products[:p, -1] / sizes, float(inner.products[-1, -1])
        problem = WeightingProblem(
            scaled, X, Y, weights, products, with_target, norm2, self.max_memory
        )
        v = np.ones(1) if p == 1 else compute_weights(problem, self.method, self.ridge, self.C)
        v = v / v.sum()
        alignments = problem.alignments, problem.alignment(v), problem.alignment(np.ones(p))
        return KernelWeights(self.method, self.kernels, v, sizes, *alignments)

    def _gram(self, i: int, X: Points, kernel: Kernel) -> GramOperator:
        try:
            return tiled_gram(kernel, X, self.max_memory)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise ValueError(
                f"kernel {i} of {len(self.kernels)}, {self.kernels[i]}, does not accept these "
                f"points: {error}. All kernels must accept the same points; for a kernel on some "
                f"columns of a table, use Select(kernel, columns)"
            ) from error


@without_targets.register
def _(kernel: MultipleKernel) -> Kernel:
    kernels = tuple(without_targets(k) for k in kernel.kernels)
    return replace(kernel, kernels=kernels, method="average")
