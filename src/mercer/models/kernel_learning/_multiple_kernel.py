"""Multiple kernel learning: a weighted sum of kernels whose weights are learned from data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..._core import (
    MemoryLimit,
    Points,
    as_float64,
    check_choice,
    entry_point,
    is_count,
    length,
    one_blas_thread,
    resource_scope,
    take,
)
from ...gram import GramOperator, memoise_if_affordable
from ...kernels import (
    Kernel,
    Prepared,
    Properties,
    Sum,
    as_kernel,
    data_dependent,
    node,
    without_targets,
)
from ._kernel_alignment import (
    GramInnerProducts,
    check_weights,
    target_gram,
    targets_to_matrix,
    tiled_gram,
)
from ._kernel_weights import METHODS, WeightingProblem, compute_weights, weighted_sum


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
                  kernels share one weight (Cortes, Mohri and Rostamizadeh, 2012)
    "easymkl"     the contribution of each kernel to the margin between classes (Aiolli and
                  Donini, 2015)
    "simplemkl"   minimise the objective of a support vector machine with this C: sparse
                  (Rakotomamonjy et al., 2008)
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
        See the table above.
    normalize : bool, default=True
        Whether each kernel is divided by its size s_k on the data, the trace of its centred matrix
        divided by n.  The sum then has size 1, so that alpha or C have the same meaning for all
        kernels.  If False, s_k = 1.
    ridge : float, default=0.1
        For "easymkl", between 0 (distance between the convex hulls of the classes) and 1
        (distance between their means).
    C : float, default=1.0
        The penalty parameter of the SVM, for "simplemkl".
    subsample : int or None, default=None
        The number of evenly spaced points from which the weights are learned; None uses all points.
    max_memory : int, str or None, default=None
        The memory budget for learning the weights; None uses the budget of the estimator.

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
        return dataclasses.replace(of_sum, strict=False, against=None)

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
            The targets: floats are numeric targets, any other type means class labels.
        sample_weight : array of shape (n,), optional
            Weights of the points.  A point of weight 2 counts as two points; with "easymkl" and
            "likelihood" it counts as one point with half the noise variance.

        Returns
        -------
        KernelWeights
        """
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        Y = None if y is None else targets_to_matrix(y)
        if weights is not None:
            check_weights(weights, length(X))
            positive = np.flatnonzero(weights)
            X, weights, Y = take(X, positive), weights[positive], None if Y is None else Y[positive]
        resolved = [k.resolve(X, weights, Y) for k in self.kernels]
        return dataclasses.replace(self, kernels=tuple(resolved))._learn_weights(X, weights, Y)

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
    return dataclasses.replace(kernel, kernels=kernels, method="average")
