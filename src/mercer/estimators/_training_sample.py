"""The training sample of an estimator: checked points, targets and weights.

Weights count as repetitions: a point of weight 2 counts as two points, and a point of weight 0 is
ignored.
The weight of a point is its `sample_weight` times the `class_weight` of its class.
`Sample.resolve` passes these weights to rules for kernel parameters, such as gamma="scale", so that
the kernel of a weighted fit equals the kernel of a fit to repeated points.

A user-supplied matrix (kernel="precomputed") is converted to a kernel on indices here.  The
fitted model stores the indices instead of the matrix.

The points may be in memory or in `Blocks` (files, Dask); targets and weights are always in memory.
For points in blocks, kernel parameters and landmarks are computed from a random sample of the rows
(`Sample.subsample`), and the rest of a fit only needs sums over the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from .._core import MemoryLimit, NotMercerWarning, Points, as_float64, length, take, warn_caller
from ..blocks import BlockRows, Blocks, RowSample, map_rows, select_rows
from ..expansion import Expansion
from ..gram import memoise_if_affordable, warn_if_cancelled
from ..kernels import Kernel, Precomputed, as_index_kernel, shifted_to_data
from ..kernels.validity import check_gram, known_counterexample


@dataclass(frozen=True, eq=False)
class Sample:
    """The training points of positive weight, with their targets and weights.

    The length n of a sample is the number of points of positive weight.

    Attributes
    ----------
    given : points or Blocks
        All points that were passed to `fit`, including those of weight 0; for a precomputed
        kernel, their indices.
    kept : ndarray of int, shape (n,)
        The indices of the points of positive weight.
    weights : ndarray of shape (n,) or None
        The positive weights; None if no weights were passed.
    targets : ndarray of shape (n, q) or None
        The targets of the points of positive weight.
    flat : bool
        Whether the targets were passed as a one-dimensional array.
    values : Precomputed or None
        The user-supplied kernel matrix.
    classes : ndarray or None
        The labels that occur among the points of positive weight, sorted.
    labels : ndarray of int, shape (n,), or None
        The index of the class of each point.
    order : int or None
        The order of conditional positive definiteness that the kernel must have: 0 means a Mercer
        kernel; None means that any symmetric function is allowed.
    drawn : RowSample or None
        For points in blocks: a random sample of the rows, with their indices.
    workers : Blocks or None
        The blocks from which points were loaded into memory.  Their workers can compute products
        with the kernel matrix.
    warned : list
        The kernels for which a warning was issued, so that there is only one warning per fit.
    """

    given: Points | Blocks
    kept: np.ndarray
    weights: np.ndarray | None = None
    targets: Any = None
    flat: bool = True
    values: Precomputed | None = None
    classes: Any = None
    labels: Any = None
    order: int | None = 0
    drawn: RowSample | None = None
    workers: Blocks | None = None
    warned: list[Kernel] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        X: Points,
        weights: np.ndarray | None = None,
        *,
        precomputed: bool = False,
        order: int | None = 0,
    ) -> Self:
        """Return the sample of the points in X with positive weight; weights are not validated."""
        values = None
        if precomputed:
            values, X = as_index_kernel(Precomputed(), X)
        kept = np.arange(length(X)) if weights is None else np.flatnonzero(weights)
        positive_weights = None if weights is None else weights[kept]
        return cls(X, kept, positive_weights, values=values, order=order)

    def with_targets(self, y: np.ndarray) -> Self:
        """Return the sample with numeric targets; y has one row for each point of `given`."""
        Y = y.reshape(len(y), -1).astype(float)
        return replace(self, targets=Y[self.kept], flat=y.ndim == 1)

    def with_labels(self, y: np.ndarray, class_weight: Any, owner: str) -> Self:
        """Return the sample with class labels; class weights multiply the weights of the points.

        `owner` is the name of the estimator, for error messages.
        """
        classes, labels = np.unique(y[self.kept], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs points of at least 2 classes, but all points of positive weight "
                f"belong to one class: {classes.tolist()}"
            )
        factors = None
        if class_weight is not None:
            factors = class_weights(class_weight, classes, np.bincount(labels, self.counts))
        return self.with_classes(classes, labels, factors)

    def with_classes(
        self, classes: np.ndarray, labels: np.ndarray, factors: np.ndarray | None = None
    ) -> Self:
        """Return the sample with its classes and class indices.

        The weights of the points are multiplied by the class weights `factors`.
        """
        w = self.counts if factors is None else self.counts * factors[labels]
        return replace(self, weights=w, classes=classes, labels=labels)

    def with_indicators(self) -> Self:
        """Return the sample with one-hot encoded class labels as targets."""
        return replace(self, targets=np.eye(len(self.classes))[self.labels], flat=False)

    def doubled(self) -> Self:
        """Return the sample with its points converted to float64."""
        if self.drawn is not None:  # feature maps convert the rows of each block
            return replace(self, drawn=self.drawn._replace(X=as_float64(self.drawn.X)))
        return replace(self, given=as_float64(self.given))

    def __len__(self) -> int:
        """Return the number of points of positive weight."""
        return len(self.kept)

    @cached_property
    def points(self) -> Points:
        """The points of positive weight; `Blocks` if they are not in memory."""
        return self.given if self.whole else select_rows(self.given, self.kept)

    @cached_property
    def subsample(self) -> Self:
        """The points in memory from which kernel parameters and landmarks are computed.

        This is the sample itself or, for points in blocks, the random sample of rows.
        """
        if self.drawn is None:
            return self
        part = self.take(np.searchsorted(self.kept, self.drawn.places))
        return replace(part, given=self.drawn.X, kept=np.arange(len(part)), drawn=None)

    @cached_property
    def whole(self) -> bool:
        """Whether all points have positive weight and are in their original order."""
        return np.array_equal(self.kept, np.arange(length(self.given)))

    @property
    def counts(self) -> np.ndarray:
        """The weights of the points; 1 for each point if no weights were passed."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def resolve(self, kernel: Kernel) -> Kernel:
        """Compute kernel parameters that depend on the data, such as gamma="scale".

        Weights count as repetitions of points.  A precomputed kernel has no
        parameters and is returned unchanged.
        """
        if self.values is not None:
            return kernel
        seen = self.subsample
        w, targets = seen.weights, seen.targets_for_kernel if kernel._unresolved else None
        if w is not None and np.all(w == 1.0):
            w = None
        kernel = kernel.resolve(seen.points, w, targets)
        self.judge(kernel)
        return kernel

    def resolve_centred(self, kernel: Kernel, check: bool = True) -> Kernel:
        """Return the resolved kernel of a model that depends only on distances in feature space.

        If the points are far from the origin, the linear terms of the kernel are evaluated at
        x - c, where c is the centre of the points.  This does not change distances but avoids
        cancellation.  If `check` is True, a warning is issued if distances still suffer from
        cancellation, which may happen with other terms of the kernel or with sparse points.
        """
        kernel = self.resolve(kernel)
        if self.values is not None:
            return kernel
        points = self.subsample.points
        kernel = shifted_to_data(kernel, points)
        if check:
            warn_if_cancelled(kernel, points)
        return kernel

    def judge(self, kernel: Kernel) -> None:
        """Warn, once per fit, if the kernel is known to lack the required positive definiteness."""
        if not self.warned and warn_if_indefinite(kernel, self.subsample.points, self.order):
            self.warned.append(kernel)

    @property
    def targets_for_kernel(self) -> np.ndarray | None:
        """The targets for kernels that learn from them: numbers, or one-hot encoded classes."""
        if self.targets is None and self.labels is not None:
            return self.with_indicators().targets
        return self.targets

    def evaluated(self, kernel: Kernel, max_memory: MemoryLimit = None) -> Kernel:
        """Return the kernel to evaluate during the fit.

        For a precomputed kernel it contains the matrix.  For other kernels, values that are
        expensive to compute are stored until the end of the fit, if the memory budget allows it.
        """
        if self.values is not None:
            return self.values
        if self.drawn is not None:
            return kernel
        return memoise_if_affordable(kernel, len(self), max_memory)

    def take(self, rows: np.ndarray) -> Self:
        """Return a subsample; `rows` are indices into the points of this sample."""
        parts: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[rows]
            for name in ("weights", "targets", "labels")
        }
        return replace(self, kept=self.kept[rows], **parts)

    def rows(self, index: np.ndarray) -> Points:
        """Return rows of the X that was passed to `fit`, selected by `index`, for `predict`."""
        if isinstance(self.given, Blocks):
            ascending, places = np.unique(index, return_inverse=True)
            return select_rows(self.given, ascending).to_array()[places]
        return take(self.given if self.values is None else self.values.matrix, index)

    def scatter(self, A: np.ndarray) -> np.ndarray:
        """Expand A to one row for each point passed to `fit`, with zeros for points of weight 0."""
        if self.whole:
            return A
        out = np.zeros((length(self.given), *A.shape[1:]))
        out[self.kept] = A
        return out

    @property
    def places(self) -> np.ndarray:
        """The index in this sample of each point that was passed to `fit`; -1 for weight 0."""
        positions = np.full(length(self.given), -1)
        positions[self.kept] = np.arange(len(self))
        return positions

    def evaluate(self, f: Expansion) -> np.ndarray:
        """Return the values of f at the points, of shape (n, n_functions)."""
        return map_rows(self.points, _values_of_rows, f)

    def expansion(self, kernel: Kernel, A: np.ndarray) -> Expansion:
        """Return the expansion sum_i A_i k(x_i, .), with coefficient 0 for points of weight 0."""
        return Expansion(kernel, self.given, self.scatter(A))


def _values_of_rows(rows: BlockRows, f: Expansion) -> np.ndarray:
    return f(rows.X)


def warn_if_indefinite(kernel: Kernel, X: Points, order: int | None = 0) -> bool:
    """Warn and return True if the kernel is known not to be positive definite.

    The check uses only the declared properties of the kernel; it does not search for
    counterexamples.

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel.
    X : points
        The training points; only the number of their columns matters.
    order : int or None
        The required order of conditional positive definiteness; None means no check.
    """
    if order is None:
        return False
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else None
    counterexample = known_counterexample(kernel, order, columns)
    if counterexample is None:
        return False
    requirement = "a Mercer kernel"
    requirement += ", nor conditionally positive definite of order 1" if order else ""
    warn_caller(
        f"{kernel} is not {requirement}: {counterexample}\nThe fitted model "
        f"may be unreliable; choose a Mercer kernel. `kernel.validity()` shows whether a kernel is "
        f"a Mercer kernel",
        NotMercerWarning,
    )
    return True


_MAX_CHECKED_POINTS = 25  # points on which a function is checked; its values may be expensive


def warn_if_indefinite_on_points(kernel: Kernel, evaluated: Kernel, X: Points) -> None:
    """Warn if a kernel without known properties is indefinite on some of the points.

    `evaluated` is the kernel, or the same kernel with stored values.  The check uses the centred
    kernel matrix of at most 25 points, so that conditionally positive definite functions pass it.
    It can find a counterexample, but cannot prove validity.
    """
    if kernel.properties.rule or kernel.properties.order is not None or not length(X):
        return
    if known_counterexample(kernel, 1) is not None:
        return  # another warning shows the counterexample
    n = min(length(X), _MAX_CHECKED_POINTS)
    rows = np.linspace(0, length(X) - 1, n).astype(np.intp)
    K = np.asarray(evaluated(take(X, rows)), dtype=float)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    check = check_gram(0.5 * (K + K.T))
    if not check.finite or check.semidefinite:
        return
    lowest, highest = check.eigenvalues[0], check.eigenvalues[-1]
    warn_caller(
        f"{kernel} is not a Mercer kernel, nor conditionally positive definite of order 1: the "
        f"centred kernel matrix of {n} of the points has eigenvalues from {lowest:.4g} to "
        f"{highest:.4g}. The fitted model may be unreliable; choose a Mercer kernel, or set "
        f"indefinite='clip', 'flip' or 'shift'",
        NotMercerWarning,
    )


def check_weights(sample_weight: ArrayLike | None, X: Points) -> np.ndarray:
    """Check that weights are finite, non-negative and not all 0; return one per point."""
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
    """Return the weight of each class.

    Parameters
    ----------
    class_weight : dict or "balanced"
        As in scikit-learn.
    classes : ndarray of shape (n_classes,)
        The labels.
    sums : ndarray of shape (n_classes,)
        The sum of the sample weights of each class.
    """
    if isinstance(class_weight, str):  # class_weight is "balanced"
        return sums.sum() / (len(sums) * sums)
    names = classes.tolist()
    missing = [name for name in names if name not in class_weight]
    if missing and len(names) - len(missing) < len(class_weight):
        raise ValueError(
            f"class_weight has the keys {list(class_weight)}, but no weight for the classes "
            f"{missing}; the usual cause is a misspelled label"
        )
    weights = np.array([class_weight.get(name, 1.0) for name in names], dtype=float)
    if not (np.all(np.isfinite(weights)) and np.all(weights > 0)):
        raise ValueError(
            f"class_weight must be positive, got {weights.tolist()} for the classes "
            f"{classes.tolist()}; to exclude a class, remove its points"
        )
    return weights


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Return the smallest value v such that values <= v have at least the fraction q of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators._training_sample import weighted_quantile
    >>> weighted_quantile(np.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    2.0
    >>> weighted_quantile(np.array([1.0, 2.0]), 0.5, np.array([1.0, 3.0]))
    2.0
    """
    order = np.argsort(values, kind="stable")
    w = np.ones(len(values)) if weights is None else weights
    cumulative = np.cumsum(w[order]) / w.sum()
    return float(values[order][np.searchsorted(cumulative, q - 1e-12)])


def check_positive_numbers(values: Any, name: str) -> np.ndarray:
    """Return values as a 1-D array; raise an error unless all are positive and finite."""
    try:
        values = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}") from None
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"{name} must be positive and finite numbers, got {values!r}")
    return values


def split_folds(
    cv: Any, X: Points, y: ArrayLike, sample: Sample, *, classifier: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the train and test indices of each fold.

    The splitter is applied to all points that were passed to `fit`. The returned indices refer to
    the points of positive weight only.
    """
    from sklearn.model_selection import check_cv  # slow to import, and rarely needed

    splits: list[tuple[np.ndarray, np.ndarray]] = []
    for split in check_cv(cv, y, classifier=classifier).split(X, y):
        train, test = (_retained_indices(rows, sample) for rows in split)
        if not (len(train) and len(test)):
            raise ValueError(
                f"fold {len(splits) + 1} has {len(train)} training and {len(test)} test points of "
                f"positive weight, but needs at least one of each; use fewer folds"
            )
        splits.append((train, test))
    if not splits:
        raise ValueError(
            f"cv={cv!r} yields no folds; the usual cause is an exhausted generator. Pass a list of "
            f"splits instead"
        )
    return splits


def _retained_indices(rows: Any, sample: Sample) -> np.ndarray:
    """Convert the rows of a split to indices into the points of positive weight.

    The rows may be indices or a boolean mask. Points of weight 0 are dropped.
    """
    index = np.asarray(rows)
    indices = sample.places[index if index.dtype == bool else index.astype(np.intp)]
    return indices[indices >= 0]
