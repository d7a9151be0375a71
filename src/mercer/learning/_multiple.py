"""Several kernels in place of one: a kernel that waits for data, and then knows its weights."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._points import doubled, length, take
from .._runtime import check_choice, entry_point, is_count, one_blas_thread, reserving
from ..gram import GramOperator, memoise_if_affordable
from ..kernels import Claims, Kernel, Prepared, Sum, as_kernel, node
from ._alignment import as_targets, held_in_tiles, target_gram
from ._evidence import likelihood
from ._margin import easymkl, simplemkl
from ._pairing import Pairing
from ._weights import Candidates, aligned, alignf, average, combined, or_average

__all__ = ["METHODS", "KernelWeights", "MultipleKernel"]

METHODS = ("average", "alignment", "alignf", "easymkl", "simplemkl", "likelihood")


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """What `MultipleKernel.learn` found; `print` it.

    Attributes
    ----------
    method : str
    kernels : tuple of Kernel
        With their rules resolved.
    weights : ndarray of shape (p,)
        Not negative, with sum 1; of kernels divided by their `sizes`.
    sizes : ndarray of shape (p,)
        The mean squared distance of phi_k(x) from its mean; 1 where that is 0, or without
        `normalize`.
    alignments : ndarray of shape (p,) or None
        The alignment of each kernel with the targets; None without any.
    alignment, alignment_of_average : float or None
        The same of the sum, and of the sum with equal weights.

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
    alignments: np.ndarray | None
    alignment: float | None
    alignment_of_average: float | None

    @property
    def kernel(self) -> Sum:
        """sum_k (weight_k / size_k) k_k, without the kernels of weight 0."""
        return combined(self.kernels, self.weights / self.sizes)

    def __str__(self) -> str:
        used = int(np.count_nonzero(self.weights))
        lines = [f"{used} of {len(self.kernels)} kernels have a weight, by {self.method}"]
        for i in np.argsort(-self.weights, kind="stable"):
            told = "" if self.alignments is None else f"  alignment {self.alignments[i]:6.3f}"
            lines.append(f"{self.weights[i]:7.4f}{told}  {self.kernels[i]}")
        if self.alignments is not None:
            lines.append(
                f"alignment with the targets: {self.alignment:.3f}; with equal weights "
                f"{self.alignment_of_average:.3f}, of the best single kernel "
                f"{self.alignments.max():.3f}"
            )
        return "\n".join(lines)


@entry_point
@node
class MultipleKernel(Kernel):
    """k(x, z) = sum_k v_k k_k(x, z) / s_k,  with weights v >= 0, sum 1, learned in `fit`.

    Like ``RBF("median")`` it waits for data: in any estimator it becomes a plain sum, which
    `kernel_` shows, and which is a kernel because no weight is negative.  For a Gaussian process
    the weights are then where the search for theta starts: they are the factors of the sum.

    ============= ============================================================================
    method        weights
    ============= ============================================================================
    "average"     equal ones, hard to beat; the only method without targets, as in kernel PCA
    "alignment"   the alignment of each kernel with the targets
    "alignf"      those of the sum whose alignment with the targets is largest: sparse, and kernels
                  that say the same share one weight (Cortes, Mohri and Rostamizadeh, 2012)
    "easymkl"     what each kernel has of the margin between classes (Aiolli and Donini, 2015)
    "simplemkl"   the smallest objective of a support vector machine with this C: sparse
                  (Rakotomamonjy et al., 2008)
    "likelihood"  the largest marginal likelihood of a Gaussian process; n^2 memory, n^3 operations
    ============= ============================================================================

    The targets of classifiers are indicators of classes, T = Y Y^T.  The inner products of all p
    matrices come from one pass over tiles: memory does not grow with p but by p vectors, and what
    the kernels prepare of the points.

    Parameters
    ----------
    kernels : sequence of Kernel, or of what else `as_kernel` takes, such as text
        Over the same points; `Select(kernel, columns)` makes one of some columns, a view.
    method : str
    normalize : bool
        Whether each kernel is divided by its size s_k on the data, the trace of its centred matrix
        over n.  Then the sum has size 1, and alpha or C mean the same whatever the kernels; else
        s_k = 1.
    ridge : float
        For "easymkl": 0 is the distance of convex hulls, 1 that of means.
    C : float
        For "simplemkl".
    subsample : int or None
        Learn the weights from so many evenly spaced points; None for all of them.
    max_memory : int, str or None
        For learning the weights; None for what the estimator may take.

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
    method: str = "alignf"
    normalize: bool = True
    ridge: float = 0.1
    C: float = 1.0
    subsample: int | None = None
    max_memory: Any = None

    def __post_init__(self) -> None:
        kernels = self.kernels
        if isinstance(kernels, (Kernel, str)) or not np.iterable(kernels):
            raise TypeError(f"MultipleKernel needs a sequence of kernels, got {kernels!r}")
        object.__setattr__(self, "kernels", tuple(map(as_kernel, kernels)))
        super().__post_init__()

    def _claims(self, *inner: Claims) -> Claims:
        # some weights may turn out to be 0: nothing is known but what holds for all kernels
        known = Sum(self.kernels).claims
        return dataclasses.replace(known, strict=False, against=None)

    def _check(self) -> None:
        if not self.kernels:
            raise ValueError("MultipleKernel needs at least one kernel, got an empty sequence")
        Sum(self.kernels)  # which refuses kernels of different kinds of points
        check_choice("method", self.method, *METHODS)
        if not 0.0 <= self.ridge <= 1.0:
            raise ValueError(f"ridge must be between 0 and 1, got {self.ridge!r}")
        if not 0.0 < self.C < np.inf:
            raise ValueError(f"C must be positive, got {self.C!r}")
        if self.subsample is not None and not is_count(self.subsample):
            raise ValueError(
                f"subsample must be a positive integer or None, got {self.subsample!r}"
            )

    def learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelWeights:
        """Return the weights for these points and targets, with what led to them.

        Parameters
        ----------
        X : points
        y : array of shape (n,) or (n, q), optional
            Floats are numbers, anything else labels.
        sample_weight : array of shape (n,), optional
            A point of weight 2 counts as two points; for "easymkl" and "likelihood" as one whose
            noise is half.
        """
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        Y = None if y is None else as_targets(y)
        if weights is not None:
            if weights.shape != (length(X),) or not np.all(weights >= 0) or not weights.sum() > 0:
                raise ValueError(f"sample_weight must be {length(X)} numbers >= 0, not all 0")
            kept = np.flatnonzero(weights)
            X, weights, Y = take(X, kept), weights[kept], None if Y is None else Y[kept]
        resolved = [k.resolve(X, weights, Y) for k in self.kernels]
        return dataclasses.replace(self, kernels=tuple(resolved))._weighed(X, weights, Y)

    # ------------------------------------------------------------------ the contract

    def _rules(self) -> list[str]:
        return ["method"]

    def _untaught(self) -> Kernel:
        kernels = tuple(k._untaught() for k in self.kernels)
        return dataclasses.replace(self, kernels=kernels, method="average")

    def _learned(self, X: Any, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        return self._weighed(X, weights, targets).kernel

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._require_resolved()  # a sum of kernels takes its place

    # ------------------------------------------------------------------ learning

    @one_blas_thread
    @reserving()
    def _weighed(self, X: Any, weights: np.ndarray | None, Y: np.ndarray | None) -> KernelWeights:
        """Return the weights of kernels whose rules are resolved."""
        n, p = length(X), len(self.kernels)
        if Y is None and self.method != "average":
            raise ValueError(
                f"method={self.method!r} learns the weights of {p} kernels from targets, and this "
                f"model has none; method='average' needs none"
            )
        if Y is not None and len(Y) != n:
            raise ValueError(f"{n} points, but {len(Y)} targets")
        if self.subsample is not None and self.subsample < n:
            some = np.linspace(0, n - 1, self.subsample).astype(int)
            X, Y = take(X, some), None if Y is None else Y[some]
            weights = None if weights is None else weights[some]
            n = len(some)
        X = doubled(X)
        kernels = [memoise_if_affordable(k, n, self.max_memory) for k in self.kernels]
        grams = [self._gram(i, X, kernels[i]) for i in range(p)]
        if Y is not None:
            grams.append(target_gram(Y))
        pairing = Pairing.of(grams, weights, max_memory=self.max_memory)
        sizes = np.ones(p)
        if self.normalize:
            sizes = np.where(pairing.sizes[:p] > 0, pairing.sizes[:p], 1.0)
        if Y is None:
            return KernelWeights(
                self.method, self.kernels, np.full(p, 1.0 / p), sizes, None, None, None
            )
        candidates = Candidates(
            [
                k if s == 1.0 else (1.0 / s) * k
                for k, s in zip(kernels, sizes.tolist(), strict=True)
            ],
            X,
            Y,
            weights,
            pairing.products[:p, :p] / np.outer(sizes, sizes),
            pairing.products[:p, -1] / sizes,
            float(pairing.products[-1, -1]),
            self.max_memory,
        )
        v = np.ones(1) if p == 1 else self._method(candidates)
        v = v / v.sum()
        return KernelWeights(
            self.method,
            self.kernels,
            v,
            sizes,
            candidates.alignments,
            candidates.alignment(v),
            candidates.alignment(np.ones(p)),
        )

    def _method(self, candidates: Candidates) -> np.ndarray:
        if self.method == "average":
            return average(candidates)
        telling = np.diagonal(candidates.products) > 0  # others are constant, and explain nothing
        v = np.zeros(len(telling))
        if not (candidates.target > 0 and telling.any()):  # or all targets are equal
            return or_average(v, candidates)
        methods: dict[str, Any] = {
            "alignment": aligned,
            "alignf": alignf,
            "easymkl": partial(easymkl, ridge=self.ridge),
            "simplemkl": partial(simplemkl, C=self.C),
            "likelihood": likelihood,
        }
        v[telling] = methods[self.method](candidates.some(telling))
        return or_average(v, candidates)

    def _gram(self, i: int, X: Any, kernel: Kernel) -> GramOperator:
        try:
            return held_in_tiles(kernel, X, self.max_memory)
        except (TypeError, ValueError, KeyError, IndexError) as why:
            raise ValueError(
                f"kernel {i} of {len(self.kernels)}, {self.kernels[i]}, does not take these "
                f"points: {why}. All kernels must be over the same kind of points; one of some "
                f"columns of a table is Select(kernel, columns)"
            ) from why
