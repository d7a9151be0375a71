"""Fast predictions that are identical to those of a model: `accelerate`.

A prediction usually needs only the sign of f(x), or the largest of several functions.  It is
decided as soon as an approximation g(x) and a proven bound on |f(x) - g(x)| imply it.  Only points
that remain undecided are passed to the model itself.
"""

from __future__ import annotations

from collections.abc import Generator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
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
    GreedyProjection,
    QueryRows,
    add_products,
    is_binary,
    make_evaluators,
    regress_on_columns,
    value_errors,
)
from ._kernel_estimator import DualEstimator
from ._label_encoding import DecisionMixin
from ._parameters import predict_method
from .gaussian_process._gp_regressor import GaussianProcessRegressor
from .support_vector import SVC, SVR, NuSVC, NuSVR, OneClassSVM

_SVMS = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)


@dataclass(frozen=True)
class _AccelerationTuning:
    """Sizes and limits; none of them affects the predicted classes."""

    # Number of queries x that are processed at a time, and in one task of a thread.
    chunk_rows: int = 2**15
    strip_rows: int = 2048
    # Size of the sample from which the levels are chosen, or the guess of the class is fitted.
    calibration_points: int = 1500
    guess_points: int = 5000
    # Sizes of the levels that are tried, relative to the number of points of the model, and their
    # maximum.  For the guess of the class, only the first three are tried.
    fractions: tuple[float, ...] = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
    max_level: int = 1024
    # Maximum number of classes that are tried as the prediction before the model itself is used.
    max_guesses: int = 3
    # Estimated cost of an exponential and of a level, per query, in float64 multiplications.
    exponential_cost: float = 16.0
    level_cost: float = 1000.0
    # Levels are used only if their predicted cost is below this fraction of the cost of the model.
    max_relative_cost: float = 0.8
    # No further levels are tried if the bounds exceed the values, or the tolerance, by this factor.
    max_relative_bound: float = 16.0
    # Functions with a larger sum of |a_i| use the sharper bound on rounding errors (`weighted`).
    max_coefficient_sum: float = 500.0
    # With at most this many functions, sums are computed in float64, because they take little time.
    max_float64_functions: int = 8
    # The regularisation of the guess: ridge * |g|^2 * (sample size / number of points).
    ridge: float = 1e-4


_TUNING = _AccelerationTuning()


class _Level(NamedTuple):
    """The points z of a level, with the coefficients of several functions."""

    points: np.ndarray  # indices of the points z in the model
    coefficients: np.ndarray
    sums: np.ndarray  # sum_i |a_i| sqrt(k(z_i, z_i)) of the functions that are decided
    offset: np.ndarray  # constants that are added to the functions
    # Indices of the functions with the sharper bound on rounding errors.  For each of them,
    # `coefficients` has a further column, which contains |coefficients| times the weights.
    weighted: np.ndarray


@dataclass(eq=False)
class AcceleratedModel:
    """A fitted model with faster predictions, as `accelerate` returns it.

    `predict` returns the same classes as the model, or values within `tolerance` of it.  All other
    methods and attributes are those of `model`, a copy that is unaffected if the original model is
    fitted again.  It cannot be fitted, and `sklearn.base.clone` returns it unchanged.
    `statistics_` counts the predictions that each level has decided.
    """

    model: Any
    kind: str  # the decision rule: "sign", "largest", "pairs" or "value" of the functions
    tolerance: float | None  # the largest error of a predicted value; None for classes
    max_memory: MemoryLimit = None
    order: np.ndarray = field(default_factory=partial(np.empty, 0, np.intp))  # of the points z
    ends: np.ndarray = field(default_factory=partial(np.empty, 0, np.intp))  # points of each level
    coefficients: list = field(default_factory=list)  # of the approximations g, or of the guess
    residuals: list = field(default_factory=list)  # the RKHS norms |f - g|
    expected: np.ndarray = field(default_factory=partial(np.ones, 1))  # fractions for each level
    statistics_: dict = field(default_factory=dict)

    # ------------------------------------------------------------------ methods of the model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(name)
        if name.startswith(("fit_", "partial_fit")) and name[-1] != "_":
            raise AttributeError(
                f"an accelerated model has no {name!r}, because it cannot be fitted"
            )
        value = getattr(self.model, name)  # raises an error if the model has no such attribute
        return partial(type(self.model).score, self) if name == "score" else value

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in self._fields}

    @property
    def _fields(self) -> Any:
        return self.__dataclass_fields__

    def __sklearn_tags__(self) -> Tags:
        return self.model.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> AcceleratedModel:
        return self

    def __repr__(self) -> str:
        return f"<AcceleratedModel of {self.model!r}>"

    def fit(self, X: Points, y: Any = None, **params: Any) -> NoReturn:
        """Raise an error, because only the original model can be fitted."""
        raise TypeError(
            f"an accelerated {type(self.model).__name__} cannot be fitted, because its levels "
            f"belong to the fitted model; fit the model, and call accelerate(model) again"
        )

    @predict_method
    def predict(self, X: Points, **options: Any) -> Any:
        """Predict classes as the model does, or values within `tolerance` of those of the model.

        With an option of the model such as `return_std`, the result is that of the model.
        """
        points = self.model._check_new(X)
        n, results, counts = length(points), [], np.zeros(len(self.level_names), dtype=np.intp)
        if any(options.values()) or n == 0 or len(counts) == 1:
            self._count([n] + [0] * (len(counts) - 1) if len(counts) == 1 else counts.tolist())
            return self.model.predict(X, **options)
        for part in slices(n, self._chunk_rows(points)):
            block = take(points, part)
            is_valid = len(self._evaluators) == 1 or is_binary(block)
            evaluator = self._evaluators[0 if is_valid else -1]
            run = self._decide_pairs if self.kind == "pairs" else self._decide_levels
            result, level = run(evaluator, evaluator.rows(block))
            undecided = np.flatnonzero(level == len(counts) - 1)
            if undecided.size:
                source = X if is_table(X) else points
                result[undecided] = self.model.predict(take(source, part.start + undecided))
            results.append(result)
            counts += np.bincount(level, minlength=len(counts))
        self._count(counts.tolist())
        return np.concatenate(results)

    def plan(self) -> str:
        """Return a table of the levels, with the fraction of points that each decides."""
        n, total = length(self._f.points), sum(self.statistics_.values())
        lines = [f"{type(self.model).__name__}, {n} points: predictions decided at each level"]
        for name, expected in zip(self.level_names, self.expected.tolist(), strict=True):
            seen = f", observed {self.statistics_[name] / total:.1%}" if total else ""
            lines.append(f"  {name}: expected {expected:.1%}{seen}")
        return "\n".join(lines)

    @property
    def level_names(self) -> list[str]:
        """The names of the levels, in order; the last one is the model itself."""
        if self.kind == "pairs" and len(self.ends):
            return [*(f"candidate {i + 1}" for i in range(_TUNING.max_guesses)), "model"]
        return [*(f"{m} points" for m in self.ends.tolist()), "model"]

    def _count(self, counts: list[int]) -> None:
        for name, count in zip(self.level_names, counts, strict=True):
            self.statistics_[name] = self.statistics_.get(name, 0) + count

    # ------------------------------------------------------------------ derived quantities

    def _chunk_rows(self, points: Points) -> int:
        """Return the number of points to process at a time, within the memory budget."""
        columns = points.shape[1] if hasattr(points, "shape") else 1
        per_row = 16 * (columns + 2) + 64 * (len(getattr(self.model, "classes_", "")) + 8)
        rows = budget_in_bytes(self.max_memory) // (4 * per_row)
        return int(np.clip(rows, 64, _TUNING.chunk_rows))

    @cached_property
    def _f(self) -> Expansion:
        f: Expansion = self.model.expansion_
        return f

    @cached_property
    def _evaluators(self) -> list[Evaluator]:
        return make_evaluators(self._f.kernel, self._f.points)

    @cached_property
    def _labels(self) -> np.ndarray:
        return np.array([-1, 1]) if is_outlier_detector(self.model) else self.model.classes_

    @cached_property
    def _sizes(self) -> np.ndarray:
        """The values sqrt(k(z, z)) of the points of the model."""
        return np.sqrt(np.asarray(self._f.kernel.diag(self._f.points), dtype=float))

    def _level(self, rows: np.ndarray, A: np.ndarray, offset: Any, is_weighted: Any) -> _Level:
        """Return a level for functions with the coefficients A."""
        sums, is_positive = self._sizes[rows] @ np.abs(A), self._evaluators[0].is_gaussian
        weighted = np.flatnonzero(np.broadcast_to(is_weighted & is_positive, A.shape[1]))
        absolute = np.abs(A[:, weighted]) * self._evaluators[-1].weights[rows, None]
        return _Level(rows, np.hstack([A, absolute]), sums, offset, weighted)

    @cached_property
    def _levels(self) -> list[_Level]:
        """The levels; each has the coefficients of its functions and those of all later levels."""
        A, offset, sizes = self._f.coefficients, np.atleast_1d(_offset(self.model)), self._sizes
        full = self._level(np.arange(len(A)), A, offset, A.shape[1] == 1)
        levels = []
        for start, end in pairwise([0, *self.ends.tolist()]):
            rows, later = self.order[start:end], [B for B in self.coefficients if len(B) >= end]
            V = np.hstack([*(B[start:end] for B in later), full.coefficients[rows]])
            if later:
                sums, weighted = sizes[self.order[:end]] @ np.abs(later[0]), full.weighted[:0]
            else:
                sums, weighted = full.sums, full.weighted
            levels.append(_Level(rows, V, sums, offset, weighted))
        return levels

    @cached_property
    def _classes(self) -> list[_Level]:
        """For each class, the functions of its pairs, which are positive where the class wins."""
        A, q, offset = self._f.coefficients, len(self.model.classes_), _offset(self.model)
        first, second = np.triu_indices(q, 1)
        levels = []
        for c in range(q):
            pairs = np.flatnonzero((first == c) | (second == c))
            signs = np.where(first[pairs] == c, 1.0, -1.0)
            rows = np.flatnonzero(A[:, pairs].any(axis=1))
            V = A[np.ix_(rows, pairs)] * signs
            is_large = np.abs(V).sum(axis=0) > _TUNING.max_coefficient_sum
            levels.append(self._level(rows, V, offset[pairs] * signs, is_large))
        return levels

    # ------------------------------------------------------------------ decisions

    def _evaluate(
        self,
        evaluator: Evaluator,
        rows: QueryRows,
        level: _Level,
        in_double: bool,
        largest: np.ndarray | None = None,
        previous: np.ndarray | float = 0.0,
    ) -> Generator[None, None, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return values, bounds on their rounding errors, and the sums of all functions."""
        c, p = evaluator.factor, len(level.sums)
        sums = np.zeros((len(rows.diagonal), level.coefficients.shape[1]))
        V = c * level.coefficients
        yield from add_products(evaluator, rows, level.points, V, sums, in_double, largest)
        sums += previous
        weighted = np.full((len(sums), p), np.inf)
        if level.weighted.size:
            weighted[:, level.weighted] = sums[:, -level.weighted.size :]
        errors = value_errors(evaluator, rows, in_double, level.sums * np.sqrt(c), weighted)
        return sums[:, :p] + level.offset, errors, sums

    def _decide_levels(
        self, evaluator: Evaluator, all_rows: QueryRows
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions, and the level that decided each of them."""
        n, p, levels = len(all_rows.diagonal), len(self._f), self._levels
        values, best = np.zeros((n, p)), np.zeros(n, dtype=np.intp)
        decider = np.full(n, len(levels))
        # All levels of a sum need the same precision.
        in_double = levels[0].coefficients.shape[1] <= _TUNING.max_float64_functions

        def task(part: slice) -> Generator[None]:
            rows, active = all_rows.take(part), np.arange(part.start, part.stop)
            previous: Any = 0.0
            largest = np.zeros(len(active))
            for i, level in enumerate(levels):
                g, errors, sums = yield from self._evaluate(
                    evaluator, rows, level, in_double, largest, previous
                )
                if i < len(self.residuals):
                    k = evaluator.factor * (largest - rows.absolute)
                    errors += (
                        distance_from_points(rows.diagonal, k, self._sizes) * self.residuals[i]
                    )
                decided, choice = certain_predictions(g, errors, self.kind, self.tolerance)
                done, remaining = active[decided], ~decided
                values[done], best[done], decider[done] = g[decided], choice[decided], i
                active, rows, largest = active[remaining], rows.take(remaining), largest[remaining]
                previous = sums[remaining, p:]  # without the approximations of this level
                if not active.size:
                    break

        run_in_threads(task, slices(n, _TUNING.strip_rows))
        if self.kind != "value":
            return self._labels[best], decider
        return values.reshape(n, *np.shape(_offset(self.model))), decider

    def _decide_pairs(
        self, evaluator: Evaluator, all_rows: QueryRows
    ) -> tuple[np.ndarray, np.ndarray]:
        """Guess the class of each point, and certify that it wins against all other classes.

        The class with q - 1 votes is the prediction, as all others have at most q - 2 votes.  Only
        the points of the model that occur in these q - 1 functions are needed.  If the guessed
        class loses against another class, that class is tried next.
        """
        n, q = len(all_rows.diagonal), len(self._labels)
        candidates, rivals = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
        decider = np.full(n, _TUNING.max_guesses)
        B, mean = self.coefficients
        guess = _Level(self.order, B, np.zeros(q), mean, np.empty(0, np.intp))

        def rank(part: slice) -> Generator[None]:
            rows = all_rows.take(part)
            scores, *_ = yield from self._evaluate(
                evaluator, rows, guess, q <= _TUNING.max_float64_functions
            )
            candidates[part] = scores.argmax(axis=1)

        def certify(job: tuple[int, np.ndarray, int]) -> Generator[None]:
            c, index, attempt = job
            level, others = self._classes[c], np.delete(np.arange(q), c)
            in_double = level.coefficients.shape[1] <= _TUNING.max_float64_functions
            rows = all_rows.take(index)
            values, errors, _ = yield from self._evaluate(evaluator, rows, level, in_double)
            decider[index[np.all(values > errors, axis=1)]] = attempt
            loses = np.any(values < -errors, axis=1)
            rivals[index] = np.where(loses, others[values.argmin(axis=1)], -1)

        run_in_threads(rank, slices(n, _TUNING.strip_rows))
        active, tried = np.arange(n), np.zeros((n, q), dtype=bool)
        for attempt in range(_TUNING.max_guesses):
            tried[active, candidates[active]] = True
            groups = [(c, active[candidates[active] == c]) for c in range(q)]
            jobs = [
                (c, index[part], attempt)
                for c, index in groups
                for part in slices(len(index), _TUNING.strip_rows)
            ]
            run_in_threads(certify, jobs)
            active = active[(rivals[active] >= 0) & (decider[active] > attempt)]
            active = active[~tried[active, rivals[active]]]
            candidates[active] = rivals[active]
        return self._labels[candidates], decider


def distance_from_points(
    diagonal: np.ndarray, largest: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Return bounds on the distance in feature space from points x to the span of points z.

    The distance to the most similar point is at most sqrt(k(x, x) - k(x, z)^2 / k(z, z)).

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        The values k(x, x).
    largest : ndarray of shape (n,)
        Lower bounds on the largest k(x, z).
    sizes : ndarray
        The values sqrt(k(z, z)).
    """
    squares = diagonal - (np.maximum(largest, 0.0) / sizes.max()) ** 2
    return np.sqrt(np.maximum(squares, 0.0))[:, None]


def certain_predictions(
    values: np.ndarray, error: np.ndarray, kind: str, tolerance: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the certain predictions, and the indices of the predicted classes.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        Approximate values of the functions.
    error : ndarray of shape (n, p)
        Bounds on their errors.
    kind : {"sign", "largest", "value"}
        The decision rule: the sign of the first value, the index of the largest value, or the
        values themselves.
    tolerance : float or None
        The largest error of a certain value if `kind` is "value".
    """
    if kind == "value":
        return np.asarray((error <= tolerance).all(axis=1)), np.zeros(len(values), dtype=np.intp)
    if kind == "sign":
        return np.abs(values[:, 0]) > error[:, 0], (values[:, 0] > 0).astype(np.intp)
    best, rows = values.argmax(axis=1), np.arange(len(values))
    upper = values + error
    upper[rows, best] = -np.inf
    certain: np.ndarray = values[rows, best] - error[rows, best] > upper.max(axis=1)
    return certain, best


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
    """Return a model with the same predictions that are usually computed faster.

    Predictions are derived from approximations with a proven error bound, and only undecided points
    are passed to the model.  The predicted classes, or the signs of a one-class SVM, are identical
    to those of the model, except where two functions are equal up to rounding errors: there, the
    prediction of the model itself depends on the other points of the call.  Predicted values of a
    regression are within `tolerance` of those of the model.

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
        model; 1 % of their largest value if they are constant.  Ignored for a classifier.
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
    points, q = model.expansion_.points, len(getattr(model, "classes_", ""))
    rng = check_random_state(0 if random_state is None else random_state)
    X = None if X is None else model._check_new(X)
    n = length(points)
    sample = _calibration_points(points, X, kind, rng) if n else points
    m = length(sample)
    needed = 24 * n * min(m, _TUNING.max_level) + 8 * (n + m) * q * q
    check_budget(needed, max_memory, f"calibration with {m} points and a model of {n} points")
    fast = AcceleratedModel(copy(model), kind, None, max_memory)
    values = fast._f(sample) + _offset(model) if n else np.atleast_2d(_offset(model))
    if kind == "value":
        if tolerance is None:  # the values of a constant model have no standard deviation
            scale = float(values.std(axis=0).min()) or float(np.abs(values).max()) or 1.0
            tolerance = 0.01 * scale
        if not (np.ndim(tolerance) == 0 and tolerance > 0):
            raise ValueError(
                f"tolerance must be a positive number, got {tolerance!r}; it is the largest "
                f"difference between the predictions of the model and of the accelerated model"
            )
        fast.tolerance = float(tolerance)
    choose = _choose_guess if kind == "pairs" else _choose_levels
    if n:  # a constant function has no points
        choose(fast, sample, values, rng)
    with progress("accelerate", verbose) as log:
        if log is not None:
            log(fast.plan())
    return fast


def _kind(model: Any) -> str:
    """Return the decision rule of a model; raise an error if the model is not supported."""
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
    if isinstance(model, GaussianProcessRegressor):
        mean = np.asarray(model._y_train_mean)
        return mean if len(model.expansion_) > 1 else mean.reshape(())
    return model.intercept_[0] if isinstance(model, SVR | NuSVR) else model.intercept_


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
    """Choose the points of the functions that guess the class, and fit them by least squares.

    The targets are the sums of the clipped functions of each class.  The number of points has the
    smallest predicted cost on the last fifth of the sample.
    """
    f, q = fast._f, len(fast._labels)
    first, second = np.triu_indices(q, 1)
    signs = (first[:, None] == np.arange(q)) * 1.0 - (second[:, None] == np.arange(q))
    targets = np.clip(values, -1.0, 1.0) @ signs
    winner = (np.where(values > 0, 1.0, -1.0) @ signs).argmax(axis=1)
    n, half = length(f.points), int(0.8 * len(values))
    sizes = [min(n, max(q, min(_TUNING.max_level, int(n * r)))) for r in _TUNING.fractions[:3]]
    order, mean = rng.permutation(n), targets.mean(axis=0)
    pivots = take(f.points, order[: sizes[-1]])
    K, R = np.asarray(f.kernel(sample, pivots)), np.asarray(f.kernel(pivots))
    work = np.array([len(level.points) for level in fast._classes])[winner].mean()
    evaluator, undecided, best = fast._evaluators[-1], 0.0, _TUNING.max_relative_cost * n
    d = f.points.shape[1] if hasattr(f.points, "shape") else 1
    overhead = _TUNING.level_cost / (d + q - 1 + _TUNING.exponential_cost)  # in kernel values
    if evaluator.is_single:
        few, A = slice(0, _TUNING.calibration_points), np.abs(f.coefficients)
        weighted = Expansion(f.kernel, f.points, A * evaluator.weights[:, None])(take(sample, few))
        rows = evaluator.rows(take(sample, few))
        errors = value_errors(evaluator, rows, False, fast._sizes @ A, weighted)
        is_relevant = (first == winner[few, None]) | (second == winner[few, None])
        undecided = np.any((np.abs(values[few]) <= errors) & is_relevant, axis=1).mean()
    for m in sizes:
        B = regress_on_columns(
            K[:half, :m], R[:m, :m], targets[:half] - mean, _TUNING.ridge * half / m
        )
        ranked = np.argsort(-(K[half:, :m] @ B + mean), axis=1)[:, : _TUNING.max_guesses]
        hits = (ranked == winner[half:, None]).mean(axis=0) * (1.0 - undecided)
        # A wrong guess costs at least one more attempt.
        attempts = 2.0 - hits[0]
        cost = (m + work * attempts) * evaluator.relative_cost + n * undecided
        cost += overhead * (1.0 + attempts)
        if cost < best:
            best, fast.order, fast.ends = cost, order[:m], np.array([m])
            fast.coefficients, fast.expected = [B, mean], np.append(hits, 1.0 - hits.sum())


def _choose_levels(fast: AcceleratedModel, sample: Points, values: np.ndarray, rng: Any) -> None:
    """Choose the points of the levels greedily, and the levels with the smallest predicted cost."""
    f, n = fast._f, length(fast._f.points)
    is_valid = len(fast._evaluators) == 1 or is_binary(sample)
    evaluator = fast._evaluators[0 if is_valid else -1]
    relative = evaluator.relative_cost
    d = f.points.shape[1] if hasattr(f.points, "shape") else 1
    unit = d + len(f) + _TUNING.exponential_cost
    diagonal = np.asarray(f.kernel.diag(sample), dtype=float)
    steps = GreedyProjection(f, sample)
    options: list[tuple[int, Any, Any, np.ndarray]] = []
    for m in (int(n * r) for r in _TUNING.fractions):
        if not 8 <= m <= _TUNING.max_level or not steps.extend(m):
            continue
        B, residual = steps.projection()
        errors = distance_from_points(diagonal, steps.columns.max(axis=1), fast._sizes) * residual
        g = steps.columns @ B + _offset(fast.model)
        options.append(
            (m, B, residual, certain_predictions(g, errors, fast.kind, fast.tolerance)[0])
        )
        limit = float(np.median(np.abs(g))) if fast.tolerance is None else fast.tolerance
        if np.median(errors) > _TUNING.max_relative_bound * limit:
            break  # a few more points would not change this
    if evaluator.is_gaussian:  # the last level evaluates f itself, in float32
        A = np.abs(f.coefficients)
        weighted = Expansion(f.kernel, f.points, A * evaluator.weights[:, None])(sample)
        errors = value_errors(evaluator, evaluator.rows(sample), True, fast._sizes @ A, weighted)
        options.append(
            (n, None, None, certain_predictions(values, errors, fast.kind, fast.tolerance)[0])
        )
    best, chosen = _TUNING.max_relative_cost * n * unit, []
    for code in range(2 ** len(options)):
        subset = [option for i, option in enumerate(options) if code >> i & 1]
        remaining, cost, start = np.ones(len(values), dtype=bool), 0.0, 0
        for i, (m, _, _, done) in enumerate(subset):
            # A level also computes the sums of all later levels.
            per_point = (unit - len(f)) * relative + len(f) * (len(subset) - i + 1)
            cost += remaining.mean() * ((m - start) * per_point + _TUNING.level_cost)
            remaining, start = remaining & ~done, m
        cost += remaining.mean() * n * unit
        if cost < best:
            best, chosen = cost, subset
    fast.order = np.append(steps.pivots, np.setdiff1d(np.arange(n), steps.pivots)).astype(np.intp)
    fast.ends = np.array([m for m, *_ in chosen], dtype=np.intp)
    fast.coefficients = [B for _, B, _, _ in chosen if B is not None]
    fast.residuals = [residual for _, _, residual, _ in chosen if residual is not None]
    decided = np.array([done for *_, done in chosen]).reshape(len(chosen), len(values))
    left = [1.0, *(1.0 - np.logical_or.accumulate(decided, axis=0).mean(axis=1))]
    fast.expected = np.append(-np.diff(left), left[-1])
