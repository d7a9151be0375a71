"""Fast predictions that are identical to those of a model: `accelerate`.

A prediction usually needs only the sign of f(x), or the largest of several functions.  It is
decided as soon as an approximation g(x) and a proven bound on |f(x) - g(x)| imply it.  Only points
that remain undecided are passed to the model itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.linalg
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import (
    MemoryLimit,
    Points,
    RandomState,
    budget_in_bytes,
    check_budget,
    entry_point,
    is_table,
    length,
    progress,
    run_in_threads,
    slices,
    take,
)
from ..expansion import (
    Evaluator,
    Expansion,
    Rows,
    add_products,
    is_binary,
    make_evaluators,
    value_errors,
)
from ..gram import gram
from ._kernel_estimator import DualEstimator
from ._label_encoding import DecisionMixin
from ._parameters import predict_method
from .gaussian_process._gp_regressor import GaussianProcessRegressor
from .support_vector import SVC, SVR, NuSVC, NuSVR, OneClassSVM

_SVMS = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)


@dataclass(frozen=True)
class _AccelerationTuning:
    """Sizes and limits; none of them affects the predictions."""

    # Number of points x that are processed at a time, and by one task.
    chunk_rows: int = 2**15
    strip_rows: int = 2048
    # Number of points from which the levels, or the guess of the class, are computed.
    calibration_points: int = 1500
    guess_points: int = 5000
    # Fractions of the n points of the model that the levels, and the guess of the class, may use.
    fractions: tuple[float, ...] = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
    max_level: int = 1024
    # How many classes are tried as the winner before a point is passed to the model.
    max_candidates: int = 3
    # Cost of evaluating the exponential and of one point of a level, in multiplications.
    exponential_cost: float = 16.0
    level_cost: float = 300.0
    # No further levels are tried if the bounds exceed the values, or the tolerance, by this factor.
    max_bound: float = 16.0
    # Functions with a larger sum of |a_i| need a better bound on their rounding errors.
    max_unweighted: float = 500.0
    # Levels are only used if their predicted cost is below this fraction of that of the model.
    largest_cost: float = 0.8
    # The regularisation of the guess: ridge * |g|^2 * (sample size / number of points).
    ridge: float = 1e-4


_TUNING = _AccelerationTuning()


@dataclass(eq=False)
class AcceleratedModel:
    """A fitted model with faster predictions, as `accelerate` returns it.

    `predict` returns the same classes as the model, or values within `tolerance` of it.  All other
    methods and attributes are those of the model.  An accelerated model cannot be fitted;
    ``sklearn.base.clone`` returns it unchanged.

    Parameters
    ----------
    model : estimator
        The fitted model.  It must not change afterwards.
    tolerance : float or None
        The largest absolute error of a predicted value; None for classes.
    kind : {"sign", "largest", "pairs", "value"}
        How a prediction follows from the functions of the model.
    order : ndarray of int
        The points of the model in the order in which they are used.
    ends : ndarray of int
        The number of points of each level.
    coefficients : list of ndarray
        The coefficients of the approximations, or of the guess of the class.
    residuals : ndarray of shape (n_levels, n_functions)
        The RKHS norms |f - g| of the approximations g.
    expected : ndarray
        The fractions of predictions that are expected to be decided at each level, and by the
        model.
    precision : {"float32", "float64"}, default="float32"
        The precision of Gaussian kernels.  Other kernels are computed in float64.
    max_memory : int, str or None, default=None
        Memory budget of predictions.

    Attributes
    ----------
    statistics_ : dict of int
        How many predictions each level has decided since the statistics were last reset.

    See Also
    --------
    accelerate : Creates an accelerated model.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, accelerate
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = SVC(C=10.0, gamma=0.5).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> fast = accelerate(model, X)
    >>> bool((fast.predict(X) == model.predict(X)).all())
    True
    """

    model: Any
    tolerance: float | None
    kind: str
    order: np.ndarray
    ends: np.ndarray
    coefficients: list
    residuals: np.ndarray
    expected: np.ndarray
    precision: str = "float32"
    max_memory: MemoryLimit = None
    statistics_: dict = field(default_factory=dict)

    # ------------------------------------------------------------------ the interface of the model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(name)
        if name == "score":  # the same as that of the model, from the predictions of this object
            getattr(self.model, name)  # raises an error if the model has no score
            return partial(type(self.model).score, self)
        return getattr(self.model, name)

    def __getstate__(self) -> dict[str, Any]:
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}

    def __sklearn_tags__(self) -> Tags:
        return self.model.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> AcceleratedModel:
        return self

    def __repr__(self) -> str:
        return f"<AcceleratedModel of {self.model!r}>"

    def fit(self, X: Points, y: Any = None, **params: Any) -> NoReturn:
        """Raise an error, because only the original model can be fitted.

        Parameters
        ----------
        X : points
        y : array-like or None, default=None
        **params : dict
        """
        raise TypeError(
            f"an accelerated {type(self.model).__name__} cannot be fitted, because its levels "
            f"belong to the fitted model; fit the model, and call accelerate(model) again"
        )

    @predict_method
    def predict(self, X: Points, **options: Any) -> Any:
        """Predict classes as the model does, or values within `tolerance` of those of the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points.
        **options : dict
            Options of the `predict` of the model, such as `return_std`.  With such options, the
            result is that of the model.

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            The predictions.
        """
        points = self.model._check_new(X)
        n, results = length(points), []
        if any(options.values()) or n == 0:
            return self.model.predict(X, **options)
        counts = np.zeros(len(self.level_names), dtype=np.int64)
        if not self._is_useful:
            self._count([n])
            return self.model.predict(X)
        for part in slices(n, self._chunk_rows(points)):
            block = take(points, part)
            binary = len(self._evaluators) == 1 or is_binary(block)
            cascade = _Cascade(self, self._evaluators[0 if binary else -1])
            values, level = cascade.run(block, self.n_jobs)
            undecided = np.flatnonzero(level == len(counts) - 1)
            if self.kind == "value":
                result = values[:, 0] if self._is_flat else values
            else:
                result = self._labels[values]
            if undecided.size:
                source = X if is_table(X) else points
                result[undecided] = self.model.predict(take(source, part.start + undecided))
            results.append(result)
            counts += np.bincount(level, minlength=len(counts))
        self._count(counts.tolist())
        return np.concatenate(results)

    def _count(self, counts: list[int]) -> None:
        for name, count in zip(self.level_names, counts, strict=True):
            self.statistics_[name] = self.statistics_.get(name, 0) + count

    def plan(self) -> str:
        """Return a table of the levels, with the fraction of points that each decides.

        Returns
        -------
        str
            One line for each level.
        """
        n = length(self.model.expansion_.points)
        total = sum(self.statistics_.values())
        lines = [f"{type(self.model).__name__}, {n} points: predictions decided at each level"]
        for name, expected in zip(self.level_names, self.expected.tolist(), strict=True):
            seen = f", observed {self.statistics_[name] / total:.1%}" if total else ""
            lines.append(f"  {name}: expected {expected:.1%}{seen}")
        return "\n".join(lines)

    @property
    def level_names(self) -> list[str]:
        """The names of the levels, in order; the last one is the model itself."""
        if not self._is_useful:
            return ["model"]
        if self.kind == "pairs":
            tries = [f"candidate {i + 1}" for i in range(_TUNING.max_candidates)]
            return [*tries, "model"]
        return [*(f"{m} points" for m in self.ends.tolist()), "model"]

    # ------------------------------------------------------------------ derived quantities

    @property
    def _is_useful(self) -> bool:
        """Whether there is any level below the model itself."""
        return len(self.ends) > 0

    def _chunk_rows(self, points: Points) -> int:
        """Return the number of points to process at a time, within the memory budget."""
        columns = points.shape[1] if hasattr(points, "shape") else 1
        per_row = 16 * (columns + 2) + 64 * (len(self.model.expansion_) + 4)
        return int(
            np.clip(budget_in_bytes(self.max_memory) // (4 * per_row), 64, _TUNING.chunk_rows)
        )

    @cached_property
    def _evaluators(self) -> list[Evaluator]:
        f = self.model.expansion_
        return make_evaluators(f.kernel, f.points, single=self.precision == "float32")

    @cached_property
    def _is_flat(self) -> bool:
        """Whether predicted values are one-dimensional."""
        return self.model.predict(take(self.model.expansion_.points, slice(0, 1))).ndim == 1

    @cached_property
    def _labels(self) -> np.ndarray:
        return np.array([-1, 1]) if is_outlier_detector(self.model) else self.model.classes_

    @cached_property
    def _offset(self) -> np.ndarray:
        return np.atleast_1d(_offset(self.model))

    @cached_property
    def _sizes(self) -> np.ndarray:
        """The values sqrt(k(z, z)) of the points of the model."""
        f = self.model.expansion_
        return np.sqrt(np.maximum(np.asarray(f.kernel.diag(f.points), dtype=float), 0.0))

    @cached_property
    def _blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each level, its additional points, and their coefficients for it and all later ones.

        The last column contains the absolute values of the coefficients of a single function f, if
        the kernel is positive.
        """
        A, blocks, start = self.model.expansion_.coefficients, [], 0
        weights = self._evaluators[-1].weights[:, None]
        has_absolute = A.shape[1] == 1 and self._evaluators[0].is_gaussian
        for end in self.ends.tolist():
            rows = self.order[start:end]
            later = [B[start:end] for B in self.coefficients if len(B) >= end]
            absolute = [np.abs(A[rows]) * weights[rows]] if has_absolute else []
            blocks.append((rows, np.hstack([*later, A[rows], *absolute])))
            start = end
        return blocks

    @cached_property
    def _absolute_sums(self) -> list[np.ndarray]:
        """The sums of |a_i| sqrt(k(z_i, z_i)) for the coefficients a of each level."""
        A = self.model.expansion_.coefficients
        sums = [self._sizes[self.order[: len(B)]] @ np.abs(B) for B in self.coefficients]
        return [*sums, self._sizes @ np.abs(A)]

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(len(self.model.classes_), 1)

    @cached_property
    def _classes(self) -> list[_OneAgainstOthers]:
        """The functions of the pairs of each class."""
        A, sizes = self.model.expansion_.coefficients, self._sizes
        first, second = self._pairs
        parts = []
        for c in range(len(self.model.classes_)):
            pairs = np.flatnonzero((first == c) | (second == c))
            signs = np.where(first[pairs] == c, 1.0, -1.0)
            rows = np.flatnonzero(A[:, pairs].any(axis=1))
            V = A[np.ix_(rows, pairs)] * signs
            sums = sizes[rows] @ np.abs(V)
            is_heavy = sums > _TUNING.max_unweighted * sizes.max()
            heavy = np.flatnonzero(is_heavy & self._evaluators[0].is_gaussian)
            weights = self._evaluators[-1].weights[rows, None]
            V = np.hstack([V, np.abs(V[:, heavy]) * weights])
            parts.append(_OneAgainstOthers(rows, V, self._offset[pairs] * signs, sums, heavy))
        return parts


class _OneAgainstOthers(NamedTuple):
    """The functions of all pairs of one class, which are positive where this class wins."""

    points: np.ndarray  # the points of the model that occur in one of these functions
    coefficients: np.ndarray  # those of the q - 1 functions, and absolute ones of the heavy ones
    offset: np.ndarray
    sums: np.ndarray  # the sums of |a_i| sqrt(k(z_i, z_i))
    heavy: np.ndarray  # functions with many points, for which sum_i |a_i| k(x, z_i) is computed


class _Cascade:
    """The computation of the predictions for a chunk of points with one evaluator."""

    def __init__(self, fast: AcceleratedModel, evaluator: Evaluator) -> None:
        self._fast, self._evaluator = fast, evaluator

    def run(self, X: Points, n_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted values or class indices, and the level that decided each of them."""
        self._rows, n = self._evaluator.rows(X), length(X)
        f = self._fast.model.expansion_
        self.level = np.full(n, len(self._fast.level_names) - 1)
        if self._fast.kind == "value":
            self.result = np.zeros((n, len(f)))
        else:
            self.result = np.zeros(n, dtype=np.intp)
        (self._run_pairs if self._fast.kind == "pairs" else self._run_levels)(n, n_threads)
        return self.result, self.level

    def _products(self, rows: Rows, columns: np.ndarray, V: np.ndarray, largest: Any = None) -> Any:
        """Return k(x, z) V for some rows, as a generator that yields before each tile."""
        out = np.zeros((len(rows.relative), V.shape[1]))
        yield from add_products(
            self._evaluator, rows, columns, V * self._evaluator.factor, out, largest
        )
        return out

    # ------------------------------------------------------------------ nested levels

    def _run_levels(self, n: int, n_threads: int | None) -> None:
        jobs = slices(n, _TUNING.strip_rows)
        run_in_threads(self._nested_strip, jobs, n_threads)

    def _nested_strip(self, part: slice) -> Iterator[None]:
        fast = self._fast
        p, n_levels = len(fast.model.expansion_), len(fast.ends)
        rows, active = self._rows.take(part), np.arange(part.start, part.stop)
        sums, largest = None, np.zeros(len(active))
        for level, (columns, V) in enumerate(fast._blocks):
            new = yield from self._products(rows, columns, V, largest)
            # The first p columns of the previous sums belong to the previous level only.
            sums = new if sums is None else sums[:, p:] + new
            values = sums[:, :p] + fast._offset
            is_exact = level >= len(fast.coefficients)
            error = self._level_errors(level, rows, sums, largest, is_exact)
            decided, result = decide(values, error, fast.kind, fast.tolerance)
            self.result[active[decided]] = result[decided]
            self.level[active[decided]] = level
            if decided.all() or level == n_levels - 1:
                return
            remaining = ~decided
            active, rows, sums = active[remaining], rows.take(remaining), sums[remaining]
            largest = largest[remaining]

    def _level_errors(
        self, level: int, rows: Rows, sums: np.ndarray, largest: np.ndarray, is_exact: bool
    ) -> np.ndarray:
        """Return bounds on the errors of the values of a level.

        The approximations g satisfy |f(x) - g(x)| <= |f - g| P(x), where P(x) is the distance in
        feature space from x to the span of the points z.  It is at most the distance to the span of
        the most similar point, sqrt(k(x, x) - k(x, z)^2 / k(z, z)).
        """
        fast, c = self._fast, self._evaluator.factor
        weighted = sums[:, -1:] if is_exact and sums.shape[1] > len(fast.model.expansion_) else None
        absolute = fast._absolute_sums[level] * np.sqrt(c)
        error = value_errors(self._evaluator, rows, sums.shape[1], absolute, weighted)
        if is_exact:
            return error
        return error + fast.residuals[level] * power(
            rows.diagonal, c * (largest - rows.absolute), fast._sizes.max()
        )

    # ------------------------------------------------------------------ pairs of classes

    def _run_pairs(self, n: int, n_threads: int | None) -> None:
        """Guess the class of each point, and certify that it wins against all other classes.

        The class with q - 1 votes is the prediction, as all others have at most q - 2 votes.  Only
        the points of the model that occur in these q - 1 functions are needed.  If the guessed
        class loses against another class, that class is tried next.
        """
        fast, q = self._fast, len(self._fast.model.classes_)
        candidates = np.zeros(n, dtype=np.intp)

        def guess(part: slice) -> Iterator[None]:
            rows = self._rows.take(part)
            scores = yield from self._products(rows, fast.order, fast.coefficients[0])
            candidates[part] = (scores + fast.coefficients[1]).argmax(axis=1)

        run_in_threads(guess, slices(n, _TUNING.strip_rows), n_threads)
        active, tried = np.arange(n), np.zeros((n, q), dtype=bool)
        for attempt in range(_TUNING.max_candidates):
            tried[active, candidates[active]] = True
            jobs = [
                (c, rows[part])
                for c in range(q)
                for rows in [active[candidates[active] == c]]
                for part in slices(len(rows), _TUNING.strip_rows)
            ]
            rivals = np.full(n, -1, dtype=np.intp)
            run_in_threads(partial(self._certify, rivals, attempt), jobs, n_threads)
            active = active[rivals[active] >= 0]
            candidates[active] = rivals[active]
            active = active[~tried[active, candidates[active]]]

    def _certify(
        self, rivals: np.ndarray, attempt: int, job: tuple[int, np.ndarray]
    ) -> Iterator[None]:
        """Certify that points belong to a class, or write the class to try next to `rivals`."""
        (c, index), q = job, len(self._fast.model.classes_)
        own, others = self._fast._classes[c], np.delete(np.arange(q), c)
        rows = self._rows.take(index)
        sums = yield from self._products(rows, own.points, own.coefficients)
        values, weighted = sums[:, : q - 1] + own.offset, np.full((len(index), q - 1), np.inf)
        weighted[:, own.heavy] = sums[:, q - 1 :]
        absolute = own.sums * np.sqrt(self._evaluator.factor)
        error = value_errors(self._evaluator, rows, sums.shape[1], absolute, weighted)
        wins = np.all(values > error, axis=1)
        self.result[index[wins]], self.level[index[wins]] = c, attempt
        loses = np.min(values + error, axis=1) < 0.0
        rivals[index[loses]] = others[values[loses].argmin(axis=1)]


def power(diagonal: np.ndarray, largest: np.ndarray, size: float) -> np.ndarray:
    """Return a bound on the distance in feature space from points x to the span of points z.

    `diagonal` contains k(x, x), `largest` the largest k(x, z), and `size` that of sqrt(k(z, z)).
    """
    squares: np.ndarray = diagonal - (np.maximum(largest, 0.0) / size) ** 2
    return np.sqrt(np.maximum(squares, 0.0))[:, None]


def decide(
    values: np.ndarray, error: np.ndarray, kind: str, tolerance: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which predictions are certain, and the predictions.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        Approximate values of the functions.
    error : ndarray of shape (n, p)
        Bounds on their errors.
    kind : {"sign", "largest", "value"}
        How the prediction follows from the values.
    tolerance : float or None
        The largest error of kind "value".
    """
    if kind == "value":
        return (error <= tolerance).all(axis=1), values
    if kind == "sign":
        return np.abs(values[:, 0]) > error[:, 0], (values[:, 0] > 0).astype(np.intp)
    best, rows = values.argmax(axis=1), np.arange(len(values))
    upper = values + error
    upper[rows, best] = -np.inf
    return values[rows, best] - error[rows, best] > upper.max(axis=1), best


# ---------------------------------------------------------------------- the choice of the levels


@entry_point
def accelerate(
    model: Any,
    X: Points = None,
    *,
    tolerance: float | None = None,
    max_memory: MemoryLimit = None,
    random_state: RandomState = None,
    verbose: int = 0,
) -> AcceleratedModel:
    """Return a model with the same predictions that are computed several times faster.

    Predictions are derived from approximations with a proven error bound, and only undecided points
    are passed to the model.  The predicted classes, or the signs of a one-class SVM, are identical
    to those of the model for every input.  Predicted values of a regression are within `tolerance`
    of those of the model.

    Parameters
    ----------
    model : estimator
        A fitted `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM`, `GaussianProcessRegressor`,
        `KernelRidge`, or another classifier or regressor with an `expansion_`.
    X : points or None, default=None
        Points like those of later predictions, such as the training points.  The levels are chosen
        such that predictions for these points are fast.  None means mixtures of the points of the
        model.
    tolerance : float or None, default=None
        For a regression, the largest absolute difference of a prediction from that of the model.
        None means 1 % of the standard deviation of the predictions for X, or for the points of the
        model.  Ignored for a classifier.
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of the
        computer.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random choice of points from which the levels are chosen. None means 0, so that
        results are reproducible.
    verbose : int, default=0
        Whether to print the levels.

    Returns
    -------
    AcceleratedModel
        An object with the methods of the model.  `plan` returns a table of its levels, and
        `statistics_` counts the predictions that each level has decided.

    Raises
    ------
    TypeError
        If the model is not supported, for instance because its kernel is precomputed.

    See Also
    --------
    compress : A smaller model, whose predictions may differ.
    to_primal : Replaces points by weights of explicit features.

    Notes
    -----
    Three methods are combined.

    * A Gaussian kernel is evaluated in float32, with a bound on the rounding errors.  If all
      columns are 0 or 1, it is computed from the number of different columns.
    * For several classes, `SVC` has one function f for each pair.  If the functions of one class
      are positive against all other classes, no other class can have as many votes.  A fast guess
      of the class therefore saves all other functions.
    * For a single function or one per class, g is the projection of f on the span of k(z, .) for
      some of the points z, and |f(x) - g(x)| <= |f - g| P(x), where |f - g| is the RKHS norm and
      P(x) the distance of x from this span in feature space.  A level reuses the kernel values of
      the previous levels.

    A prediction is identical because the bound exceeds all rounding errors of the model, whose own
    value of f depends on the number of points that are predicted together.  If a value of f is 0 up
    to rounding errors, the model predicts such points.

    References
    ----------
    Cossalter, Yan and Zheng, "Adaptive kernel approximation for large-scale non-linear SVM
    prediction", ICML 2011.

    Burges, "Simplified support vector decision rules", ICML 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, accelerate
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> model = SVC(C=10.0, gamma=0.5).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> fast = accelerate(model, X)
    >>> bool((fast.predict(X) == model.predict(X)).all())
    True
    """
    kind = _kind(model)
    f = model.expansion_
    rng = check_random_state(0 if random_state is None else random_state)
    sample = _calibration_points(f.points, None if X is None else model._check_new(X), kind, rng)
    n, m = length(f.points), length(sample)
    check_budget(24 * m * n, max_memory, f"calibration with {m} points and a model of {n} points")
    values = f(sample) + _offset(model)
    if kind == "value" and tolerance is None:
        tolerance = 0.01 * float(values.std(axis=0).min())
    if kind == "value" and not (np.ndim(tolerance) == 0 and tolerance > 0):
        raise ValueError(
            f"tolerance must be a positive number, got {tolerance!r}; it is the largest difference "
            f"between the predictions of the model and of the accelerated model"
        )
    empty: Any = np.empty(0, dtype=np.intp)
    fast = AcceleratedModel(
        *(model, float(tolerance) if kind == "value" else None, kind, empty, empty, []),
        *(np.empty((0, len(f))), np.ones(1)),
        max_memory=max_memory,
    )
    if kind == "pairs":
        _choose_guess(fast, sample, values, rng)
    else:
        _choose_levels(fast, sample, values)
    with progress("accelerate", verbose) as log:
        if log is not None:
            log(fast.plan())
    return fast


def _kind(model: Any) -> str:
    """Return how predictions follow from the functions of a model; raise if it is unsupported."""
    name = type(model).__name__
    supported = isinstance(model, (*_SVMS, GaussianProcessRegressor, DualEstimator))
    if not (
        supported and (is_classifier(model) or is_regressor(model) or is_outlier_detector(model))
    ):
        raise TypeError(
            f"accelerate supports support vector machines, GaussianProcessRegressor, KernelRidge "
            f"and other models that predict f(x) + b with a kernel expansion f; got {name}"
        )
    check_is_fitted(model)
    f = model.expansion_
    if model._precomputed:
        raise TypeError(
            f"accelerate cannot speed up this {name}, because its kernel is precomputed, and all "
            f"kernel values of a new point are computed before `predict`; fit the model with a "
            f"kernel"
        )
    if not isinstance(f, Expansion):
        raise TypeError(
            f"accelerate cannot speed up this {name}, because it is already a linear model with a "
            f"weight for each feature"
        )
    if f.kernel.properties.order != 0:
        raise TypeError(
            f"accelerate needs a kernel that is known to be a Mercer kernel, because error bounds "
            f"are norms in its RKHS; the kernel is {f.kernel}"
        )
    if is_regressor(model):
        return "value"
    if isinstance(model, SVC | NuSVC) and len(model.classes_) > 2:
        return "pairs"
    if not (isinstance(model, (*_SVMS, DecisionMixin))):
        raise TypeError(f"accelerate does not support the decision rule of {name}")
    return "sign" if len(f) == 1 else "largest"


def _offset(model: Any) -> Any:
    """Return the constants that the model adds to its expansion."""
    is_gp = isinstance(model, GaussianProcessRegressor)
    return model._y_train_mean if is_gp else model.intercept_


def _calibration_points(Z: Points, X: Points | None, kind: str, rng: Any) -> Points:
    """Return points from which the levels are chosen: from X, or mixtures of the points Z."""
    m = _TUNING.guess_points if kind == "pairs" else _TUNING.calibration_points
    if X is not None:
        return take(X, np.sort(rng.permutation(length(X))[:m]))
    i, j = rng.randint(length(Z), size=(2, min(m, 4 * length(Z))))
    if not isinstance(Z, np.ndarray) or is_binary(Z):
        return take(Z, i)
    weights = rng.uniform(0.0, 0.3, size=(len(i), 1))
    return Z[i] * (1.0 - weights) + Z[j] * weights


def _choose_guess(fast: AcceleratedModel, sample: Points, values: np.ndarray, rng: Any) -> None:
    """Choose the points of the guess of the class, and fit its coefficients by least squares.

    The targets are the sums of the clipped functions of each class.  The number of points has the
    smallest predicted cost on the second half of the sample.
    """
    f, q = fast.model.expansion_, len(fast.model.classes_)
    first, second = fast._pairs
    signs = np.zeros((len(first), q))
    signs[np.arange(len(first)), first], signs[np.arange(len(first)), second] = 1.0, -1.0
    targets = np.clip(values, -1.0, 1.0) @ signs
    winner = (np.where(values > 0, 1.0, -1.0) @ signs).argmax(axis=1)
    n, half = length(f.points), int(0.8 * len(values))
    order = rng.permutation(n)
    most = min(n, max(q, min(_TUNING.max_level, int(n * max(_TUNING.fractions[:3])))))
    K = np.asarray(gram(f.kernel, sample, take(f.points, order[:most])).to_array())
    R = np.asarray(f.kernel(take(f.points, order[:most])))
    mean, best = targets.mean(axis=0), _TUNING.largest_cost * n
    sizes = sorted({min(most, max(q, int(n * r))) for r in _TUNING.fractions[:3]})
    work = np.array([len(part.points) for part in fast._classes])[winner].mean()
    evaluator = fast._evaluators[-1]
    options = {"float64": (1.0, 0.0)}  # relative cost, and fraction that remains undecided
    if evaluator.is_gaussian:
        few, A = slice(0, _TUNING.calibration_points), np.abs(f.coefficients)
        weighted = Expansion(f.kernel, f.points, A * evaluator.weights[:, None])(take(sample, few))
        rows = evaluator.rows(take(sample, few))
        errors = value_errors(evaluator, rows, 2 * q, fast._sizes @ A, weighted)
        is_relevant = (first == winner[few, None]) | (second == winner[few, None])
        uncertain = (np.abs(values[few]) <= errors) & is_relevant
        options["float32"] = (0.5, float(uncertain.any(axis=1).mean()))
    for m in sizes:
        Phi = K[:half, :m]
        C = Phi.T @ Phi + _TUNING.ridge * half / m * R[:m, :m]
        C.flat[:: m + 1] += 1e-10 * np.trace(C)
        B = scipy.linalg.solve(C, Phi.T @ (targets[:half] - mean), assume_a="pos")
        ranked = np.argsort(-(K[half:, :m] @ B + mean), axis=1)[:, : _TUNING.max_candidates]
        hits = (ranked == winner[half:, None]).mean(axis=0)
        for precision, (relative, undecided) in options.items():
            # A wrong guess costs at least one more attempt.
            cost = (m + work * (2.0 - hits[0])) * relative + n * undecided
            if cost < best:
                best, fast.precision = cost, precision
                fast.order, fast.coefficients = order[:m], [B, mean]
                fast.ends = np.array([m])
                expected = hits * (1.0 - undecided)
    if fast.ends.size:
        fast.expected = np.append(expected, 1.0 - expected.sum())
    if fast.precision == "float64" and evaluator.is_gaussian:
        del fast._evaluators, fast._classes


def _unit_cost(f: Expansion) -> float:
    """Return the cost of the contribution of one point to the functions f."""
    d = f.points.shape[1] if hasattr(f.points, "shape") else 1
    return d + len(f) + _TUNING.exponential_cost


def _choose_levels(fast: AcceleratedModel, sample: Points, values: np.ndarray) -> None:
    """Choose the points of the levels greedily, and the levels with the smallest predicted cost."""
    f = fast.model.expansion_
    evaluator, n, unit = fast._evaluators[-1], length(f.points), _unit_cost(f)
    bounds: list[Any] = []
    steps = GreedyProjection(f, sample)
    sizes = [m for r in _TUNING.fractions if 8 <= (m := int(n * r)) <= _TUNING.max_level]
    for m in sizes:
        if not steps.extend(m):
            break
        B, residual = steps.projection()
        size = float(fast._sizes.max())
        errors = residual * power(steps.diagonal, steps.largest, size)
        g = steps.sample_values(B) + _offset(fast.model)
        done, _ = decide(g, errors, fast.kind, fast.tolerance)
        bounds.append((m, B, residual, done))
        limits = fast.tolerance if fast.kind == "value" else np.median(np.abs(g))
        if 32 * m >= n and np.median(errors) > _TUNING.max_bound * limits:
            break  # the bounds are far too large, and a few more points would not change this
    relative = 0.5 if evaluator.is_single else 1.0
    exact = np.zeros(len(values), dtype=bool)
    if evaluator.is_gaussian:
        rows = evaluator.rows(sample)
        absolute = np.abs(f.coefficients)
        weighted = None
        if len(f) == 1:
            total = Expansion(f.kernel, f.points, absolute * evaluator.weights[:, None])
            weighted = total(sample)
        sums = absolute.sum(axis=0) * evaluator.factor
        errors = value_errors(evaluator, rows, len(f), sums, weighted)
        exact, _ = decide(values, errors, fast.kind, fast.tolerance)
    best: Any = (_TUNING.largest_cost * n * unit, (), False)
    for chosen in range(2 ** len(bounds)):
        subset = [b for i, b in enumerate(bounds) if chosen >> i & 1]
        for has_exact in (False, True) if evaluator.is_gaussian else (False,):
            remaining, cost, start = np.ones(len(values), dtype=bool), 0.0, 0
            for m, _, _, done in [*subset, *([(n, None, None, exact)] if has_exact else [])]:
                cost += remaining.mean() * ((m - start) * unit * relative + _TUNING.level_cost)
                remaining, start = remaining & ~done, m
            cost += remaining.mean() * n * unit
            if cost < best[0]:
                best = (cost, tuple(subset), has_exact)
    _, subset, has_exact = best
    rest = np.setdiff1d(np.arange(n), steps.pivots)
    fast.order = np.concatenate([steps.pivots, rest]).astype(np.intp)
    fast.ends = np.array([m for m, *_ in subset] + [n] * has_exact, dtype=np.intp)
    fast.coefficients = [B for _, B, _, _ in subset]
    fast.residuals = np.array([r for _, _, r, _ in subset]).reshape(-1, len(f))
    fractions, remaining = [], np.ones(len(values), dtype=bool)
    for done in [done for *_, done in subset] + [exact] * has_exact:
        fractions.append(np.mean(remaining & done))
        remaining &= ~done
    fast.expected = np.array([*fractions, remaining.mean()])


class GreedyProjection:
    """Projections of functions f on the span of k(z, .) for greedily chosen points z.

    Each step adds the point for which |f - g|^2 decreases most, by h(z)^2 / P(z)^2 with the
    residual h = f - g and the distance P(z) of z from the present span.
    """

    def __init__(self, f: Expansion, sample: Points) -> None:
        self._f, self._sample = f, sample
        self._residual = f(f.points)
        self._squared_norms = np.einsum("ij,ij->j", f.coefficients, self._residual)
        self._start = self._squared_norms.copy()
        self._power = np.asarray(f.kernel.diag(f.points), dtype=float).copy()
        self._smallest = 1e-6 * self._power.max(initial=0.0)
        self.pivots = np.empty(0, dtype=np.intp)
        n = length(f.points)
        self._factor, self._weights = np.empty((n, 0), order="F"), np.empty((0, len(f)))
        self.diagonal = np.asarray(f.kernel.diag(sample), dtype=float)
        self.largest = np.zeros(length(sample))
        self._sample_columns = np.empty((length(sample), 0))

    def extend(self, m: int) -> bool:
        """Add points until there are m; return False if the other points add almost nothing."""
        f, t = self._f, len(self.pivots)
        L = np.empty((len(self._factor), m), order="F")
        L[:, :t] = self._factor
        pivots, weights = self.pivots.tolist(), list(self._weights)
        for s in range(t, m):
            gains = np.square(self._residual).sum(axis=1) / np.maximum(self._power, self._smallest)
            gains[self._power <= self._smallest] = -1.0
            i = int(gains.argmax())
            if gains[i] < 0.0:
                return False
            column = np.asarray(f.kernel(f.points, take(f.points, [i])))[:, 0]
            L[:, s] = (column - L[:, :s] @ L[i, :s]) / np.sqrt(self._power[i])
            w = self._residual[i] / np.sqrt(self._power[i])
            self._residual -= np.outer(L[:, s], w)
            self._squared_norms -= w * w
            self._power = np.maximum(self._power - np.square(L[:, s]), 0.0)
            self._power[i] = 0.0
            pivots.append(i)
            weights.append(w)
        self.pivots, self._weights, self._factor = np.array(pivots), np.array(weights), L
        new = np.asarray(f.kernel(self._sample, take(f.points, self.pivots[t:])), dtype=float)
        self._sample_columns = np.hstack([self._sample_columns, new])
        self.largest = np.maximum(self.largest, new.max(axis=1, initial=0.0))
        return True

    def projection(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the projections g, and upper bounds on |f - g|."""
        triangle = self._factor[self.pivots]
        B = scipy.linalg.solve_triangular(triangle, self._weights, lower=True, trans="T")
        # The second term bounds the rounding errors of the differences of squared norms.
        squares = np.maximum(self._squared_norms, 0.0) + 1e-10 * self._start
        return B, np.sqrt(squares)

    def sample_values(self, B: np.ndarray) -> np.ndarray:
        """Return the values of g at the sample."""
        return np.asarray(self._sample_columns @ B)
