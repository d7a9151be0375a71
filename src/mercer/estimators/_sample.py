"""A sample: the checked points, targets and weights of a fit, the same for every estimator.

Weights are repetitions: a point of weight 2 counts as two points, a point of weight 0 is absent.
The weight of a point is its `sample_weight` times the `class_weight` of its class.
`Sample.resolve` gives these weights to the rules of the kernel, such as gamma="scale", so that the
kernel of a weighted fit is the kernel of a fit to repeated points.

A matrix that the user computed (kernel="precomputed") becomes a kernel on indices here, and the
fitted model keeps the indices instead of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from .._errors import NotMercerWarning, warn_caller
from .._points import doubled, length, take
from ..expansion import Expansion
from ..gram import memoise_if_affordable, warn_if_cancelled
from ..kernels import Kernel, Precomputed, on_indices
from ..kernels.validity import declared_witness

__all__ = ["Sample", "check_weights", "class_weights", "warn_refuted", "weighted_quantile"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Points that take part in a fit, with their targets and weights.

    Attributes
    ----------
    given : points
        All that came, in their order; for values that the user computed, the indices of them.
    kept : ndarray of int
        The places of those of positive weight.
    weights : ndarray or None
        Of the points kept, positive; None if none were given.
    targets : ndarray of shape (n, q) or None
        Of the points kept.
    flat : bool
        Whether the targets came as one column without a second axis.
    values : Precomputed or None
        The matrix that the user computed.
    classes, labels : ndarray or None
        The classes of points of positive weight, and their places among them.
    order : int or None
        What the model asks of a kernel: to be conditionally positive definite of this order, 0 for
        a Mercer kernel; None if it takes any symmetric function.
    warned : list
        The kernels that were found not to be that: one warning is enough.
    """

    given: Any
    kept: np.ndarray
    weights: np.ndarray | None = None
    targets: Any = None
    flat: bool = True
    values: Precomputed | None = None
    classes: Any = None
    labels: Any = None
    order: int | None = 0
    warned: list[Kernel] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        X: Any,
        weights: np.ndarray | None = None,
        *,
        precomputed: bool = False,
        order: int | None = 0,
    ) -> Self:
        """Return the points X of positive weight; weights are checked already."""
        values = None
        if precomputed:
            values, X = on_indices(Precomputed(), X)
        kept = np.arange(length(X)) if weights is None else np.flatnonzero(weights)
        chosen = None if weights is None else weights[kept]
        return cls(X, kept, chosen, values=values, order=order)

    def with_targets(self, y: np.ndarray) -> Self:
        """Return the sample with numbers as targets, (n,) or (n, q)."""
        Y = y.reshape(len(y), -1).astype(float)
        return replace(self, targets=Y[self.kept], flat=y.ndim == 1)

    def with_labels(self, y: np.ndarray, class_weight: Any, owner: str) -> Self:
        """Return the sample with labels; weights of classes multiply those of points."""
        classes, labels = np.unique(y[self.kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs points of at least 2 classes, but those of positive weight are all "
                f"of one class: {classes.tolist()}"
            )
        factors = None
        if class_weight is not None:
            factors = class_weights(class_weight, classes, np.bincount(labels, self.counts))
        return self.with_classes(classes, labels, factors)

    def with_classes(
        self, classes: np.ndarray, labels: np.ndarray, factors: np.ndarray | None = None
    ) -> Self:
        """Return the sample with classes, the index of the class of each point, and class weights.

        The class weights multiply the weights of the points, here and nowhere else.
        """
        w = self.counts if factors is None else self.counts * factors[labels]
        return replace(self, weights=w, classes=classes, labels=labels)

    def with_indicators(self) -> Self:
        """Return a sample of labels with a column of zeros and ones for each class as targets."""
        return replace(self, targets=np.eye(len(self.classes))[self.labels], flat=False)

    def doubled(self) -> Self:
        """Return the sample with points in float64."""
        return replace(self, given=doubled(self.given))

    def __len__(self) -> int:
        """Return the number of points that take part."""
        return len(self.kept)

    @cached_property
    def points(self) -> Any:
        """The points that take part."""
        return self.given if self.whole else take(self.given, self.kept)

    @cached_property
    def whole(self) -> bool:
        """Whether all points that came take part, in their order."""
        return np.array_equal(self.kept, np.arange(length(self.given)))

    @property
    def counts(self) -> np.ndarray:
        """The weights, 1 for each point if none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def resolve(self, kernel: Kernel) -> Kernel:
        """Return the kernel that a model keeps, resolved on its points and learned from targets.

        The rules of the kernel see the weights of points and of classes as repetitions.
        """
        if self.values is not None:
            return kernel
        w, targets = self.weights, self.learned_from if kernel._unresolved else None
        if w is not None and np.all(w == 1.0):
            w = None
        kernel = kernel.resolve(self.points, w, targets)
        self.judge(kernel)
        return kernel

    def resolve_about(self, kernel: Kernel, check: bool = True) -> Kernel:
        """Return the resolved kernel of a model that depends only on distances in feature space.

        If the points are far from the origin, its linear terms are those of x - c with c in the
        middle of the points: the distances are the same, and do not cancel.  If they cancel
        all the same, for another kernel or for sparse points, `check` warns.
        """
        kernel = self.resolve(kernel)
        if self.values is not None:
            return kernel
        kernel = kernel._about(self.points)
        if check:
            warn_if_cancelled(kernel, self.points)
        return kernel

    def judge(self, kernel: Kernel) -> None:
        """Warn, once, if the kernel is known not to be what the model asks for."""
        if not self.warned and warn_refuted(kernel, self.points, self.order):
            self.warned.append(kernel)

    @property
    def learned_from(self) -> np.ndarray | None:
        """The targets as a kernel may learn from them: numbers, or indicators of classes."""
        if self.targets is None and self.labels is not None:
            return self.with_indicators().targets
        return self.targets

    def evaluated(self, kernel: Kernel, max_memory: Any = None) -> Kernel:
        """Return the kernel that evaluates the points: for values, with them.

        The values of a costly kernel are stored until the end of the fit, if the budget allows it.
        """
        if self.values is not None:
            return self.values
        return memoise_if_affordable(kernel, len(self), max_memory)

    def take(self, rows: np.ndarray) -> Self:
        """Return some of the points that take part, by their places among them."""
        some: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[rows]
            for name in ("weights", "targets", "labels")
        }
        return replace(self, kept=self.kept[rows], **some)

    def rows(self, index: np.ndarray) -> Any:
        """Return some of all points that came, as one gives them to predict."""
        return take(self.given if self.values is None else self.values.matrix, index)

    def scatter(self, A: np.ndarray) -> np.ndarray:
        """Return rows for all points that came, 0 for those without weight."""
        if self.whole:
            return A
        out = np.zeros((length(self.given), *A.shape[1:]))
        out[self.kept] = A
        return out

    @property
    def places(self) -> np.ndarray:
        """The place of each point that came among those kept, -1 if it is not."""
        place = np.full(length(self.given), -1)
        place[self.kept] = np.arange(len(self))
        return place

    def expansion(self, kernel: Kernel, A: np.ndarray) -> Expansion:
        """Return sum_i A_i k(x_i, .) over all points that came."""
        return Expansion(kernel, self.given, self.scatter(A))


def warn_refuted(kernel: Kernel, X: Any, order: int | None = 0) -> bool:
    """Warn, with the witness, and return True, if the kernel is known not to be one.

    A proof is a walk over the expression, and no search is made for what is neither.
    """
    if order is None:
        return False
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else None
    witness = declared_witness(kernel, order, columns)
    if witness is None:
        return False
    what = "a Mercer kernel"
    what += ", nor conditionally positive definite of order 1" if order else ""
    warn_caller(
        f"{kernel} is not {what}: {witness}\nWhat a machine that needs one finds may be anything; "
        f"choose a Mercer kernel. `kernel.validity()` tells which are",
        NotMercerWarning,
    )
    return True


def check_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Return one weight per point: finite, not negative, not all 0."""
    if hasattr(X, "shape"):
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
    else:
        w = np.asarray(sample_weight, dtype=float)
        if w.shape not in ((), (length(X),)):
            raise ValueError(f"sample_weight has shape {w.shape}, but there are {length(X)} points")
        w = np.broadcast_to(w, (length(X),))
        if not np.isfinite(w).all():
            raise ValueError("sample_weight contains NaN or infinity")
    if np.any(w < 0):
        raise ValueError(f"sample_weight must be non-negative, got a minimum of {w.min():g}")
    if not np.any(w > 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return w


def class_weights(class_weight: Any, classes: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the weight of each class, given the sums of the weights of its points."""
    if isinstance(class_weight, str):  # "balanced"
        return sums.sum() / (len(sums) * sums)
    names = classes.tolist()
    missing = [name for name in names if name not in class_weight]
    if missing and len(names) - len(missing) < len(class_weight):
        raise ValueError(
            f"class_weight has the keys {list(class_weight)}, but nothing for the classes "
            f"{missing}; the usual cause is a name that is spelled in another way"
        )
    each = np.array([class_weight.get(name, 1.0) for name in names], dtype=float)
    if not (np.all(np.isfinite(each)) and np.all(each > 0)):
        raise ValueError(
            f"class_weight must be positive, got {each.tolist()} for the classes "
            f"{classes.tolist()}; to leave out a class, leave out its points"
        )
    return each


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Return the smallest value that a share q of the weight does not exceed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators._sample import weighted_quantile
    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    2.0
    >>> weighted_quantile(np.array([1.0, 2.0]), 0.5, np.array([1.0, 3.0]))
    2.0
    """
    order = np.argsort(values, kind="stable")
    w = np.ones(len(values)) if weights is None else weights
    share = np.cumsum(w[order]) / w.sum()
    return float(values[order][np.searchsorted(share, q - 1e-12)])
