"""Recursive feature machines: regression and classification with a learned metric."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names, validate_data

from ..._core import (
    Points,
    budget_in_bytes,
    check_budget,
    is_table,
    length,
    seeded_generator,
    warn_caller,
)
from ..._core import take as take_rows
from ...expansion import Expansion
from ...gram import gram
from ...kernels import RBF, Kernel, Laplacian, Matern, Radial
from ...models.kernel_learning import (
    METRIC_FAMILIES,
    ColumnScaling,
    FeatureChoice,
    FeatureSearch,
    MetricFamily,
    RidgeFit,
    average_gradient_outer_product,
    best_ridge,
    calibrate,
    principal_directions,
)
from ...solvers import (
    MAX_EXACT_POINTS,
    ExactPath,
    LandmarkRidge,
    Plan,
    Status,
    affordable_landmarks,
    landmark_bytes,
    plan_exact_or_landmarks,
    use_landmarks,
    warn_inaccurate,
)
from .._category_columns import (
    encode_columns,
    has_categories,
    learn_categories,
    missing_values_error,
)
from .._kernel_estimator import DualFunctions, DualPredictor, LandmarkMixin, record_n_features
from .._label_encoding import DecisionFunctions
from .._parameters import estimator, fit_method, fitted, parameter, solver
from .._plan_method import n_of
from .._training_sample import Sample, check_positive_numbers

_LIMIT = "newton"  # the key of `MAX_EXACT_POINTS` for solver="auto"
_EXACT_SQUARES = 4.0  # n x n arrays of an exact fit: K, its reflectors, Q and work space
_FEATURES = (1.0, 0.6, 5.0)  # arrays of a fit on landmarks, see `landmark_bytes`
_MAX_GRADIENT_POINTS = 5000  # points from which the average gradient outer product is computed
_MAX_REFINEMENTS = 2  # rounds on all points, after a search on fewer points


@estimator(kw_only=True)
class FeatureMachine(LandmarkMixin, DualFunctions):
    """Base class of RFMRegressor and RFMClassifier.

    Parameters
    ----------
    kernel : str or Kernel
        "auto" compares the Laplacian of the L1 distance and the Matern kernels of the Euclidean
        distance with nu = 1/2, 3/2 and 5/2. Otherwise a radial kernel, such as
        ``Matern(nu=0.5)`` (the kernel of the papers) or ``RBF()``, or ``Laplacian()``; its length
        scale is ignored.
    metric : {"auto", "full", "diagonal"} or int
        The form of the metric. A diagonal metric weights the columns, and a full one also learns
        directions; it needs more rows than columns. A number is the largest rank of a full metric.
        "auto" compares full and diagonal metrics.
    max_rounds : int
        The largest number of rounds, in which the metric is learned again. 0 means the Euclidean
        metric of standardised columns.
    exponents : array-like
        The exponents e of the average gradient outer product M to try; the metric is M^e.
    alphas : array-like or None
        The ridge penalties to try, for targets of variance 1 and kernels with k(x, x) = 1. None
        means 19 values between 1e-8 and 10.
    widths : array-like or None
        The length scales to try, in units of the median distance of two points. None means a local
        search.
    selection : {"cross-fit", "leave-one-out"}
        How rounds and families of kernels are compared. "leave-one-out" uses the points from which
        the metric was learned, which favours late rounds if there are few rows. "cross-fit" learns
        the metric from each half of the points, and uses the leave-one-out errors of the other
        half.
    combine : bool
        Whether the kernel may be a weighted sum of several kernels, each with its own metric. If
        False, only the best one is used.
    search_points : int
        The metric is learned from a random sample of this many points. Afterwards, up to two
        rounds use all points.
    solver : {"auto", "exact", "nystroem"}
        How the final model is fitted. "exact" uses all points, and "nystroem" restricts f to the
        span of landmarks. "auto" means "exact" for up to 5000 points if the memory allows it,
        otherwise "nystroem" with a warning.
    """

    kernel: Any = parameter({"auto"}, str, Kernel, default="auto")
    metric: Any = parameter({"auto", "full", "diagonal"}, "positive integer", default="auto")
    max_rounds: int = parameter("non-negative integer", default=6)
    exponents: Any = parameter("array-like", default=(0.5, 1.0))
    alphas: Any = parameter("array-like", None, default=None)
    widths: Any = parameter("array-like", None, default=None)
    selection: str = parameter({"cross-fit", "leave-one-out"}, default="cross-fit")
    combine: bool = parameter("boolean", default=True)
    search_points: int = parameter("positive integer", default=1000)
    solver: Any = solver("nystroem", default="auto")

    alpha_: float = fitted()
    metric_: np.ndarray = fitted()
    feature_importances_: np.ndarray = fitted()
    directions_: np.ndarray = fitted()
    scale_: np.ndarray = fitted()
    path_: list[dict[str, Any]] = fitted()
    categories_: Any = fitted()
    leave_one_out_: np.ndarray = fitted(per_point=True)

    _vector_validation: ClassVar[dict[str, Any]] = {"accept_sparse": False}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.pairwise = False
        return tags

    # ------------------------------------------------------------------ points

    @property
    def _kernel_spec(self) -> Any:
        is_auto = isinstance(self.kernel, str) and self.kernel == "auto"
        return self.kernel if is_auto else super()._kernel_spec

    @property
    def _precomputed(self) -> bool:
        return False

    def _expects_matrix(self, X: Points) -> bool:
        return True

    def _check_points(
        self,
        X: Points,
        y: Any = None,
        *,
        reset: bool,
        copy: bool = False,
        supervised: bool = False,
        labels: bool = False,
    ) -> Any:
        """Validate X and y; encode columns of a data frame that are not numeric."""
        two_columns = is_table(X) and len(X.shape) == 2 and length(X) > 0
        encoded = has_categories(X) if reset and two_columns else not reset and self._has_categories
        if reset:
            self.categories_ = learn_categories(X) if encoded else None
        if not encoded:
            if (two_columns or isinstance(X, np.ndarray)) and len(X.shape) == 2:
                self._reject_missing(X)
            options = {"copy": copy, "supervised": supervised, "labels": labels}
            return super()._check_points(X, y, reset=reset, **options)
        if not two_columns:
            raise TypeError(
                f"{type(self).__name__} was fitted to a data frame with columns of categories; "
                f"pass a data frame with the same columns, got {type(X).__name__}"
            )
        if not reset:
            _check_feature_names(self, X, reset=False)
            if X.shape[1] != len(self.categories_):
                raise ValueError(
                    f"X has {X.shape[1]} columns, but {type(self).__name__} was fitted to "
                    f"{len(self.categories_)} columns"
                )
        rows = encode_columns(X, self.categories_, type(self).__name__)
        if not np.isfinite(rows).all():
            raise ValueError("Input X contains infinity; replace these values, or drop the rows")
        if supervised:
            options = {} if labels else self._target_validation
            y = validate_data(self, y=y, X="no_validation", **options)
            if len(y) != len(rows):
                raise ValueError(f"X has {len(rows)} points, but y has {len(y)} values")
        if reset:  # after the validation of y, which removes names
            record_n_features(self, X, True)
            _check_feature_names(self, X, reset=True)
        return (rows, y) if supervised else rows

    @property
    def _has_categories(self) -> bool:
        return self.__dict__.get("categories_") is not None

    def _reject_missing(self, X: Points) -> None:
        """Raise an error that lists the columns with missing values."""
        if is_table(X):
            encode_columns(X, [None] * X.shape[1], type(self).__name__)
        elif X.ndim == 2 and X.dtype.kind == "f" and np.isnan(X.sum()):
            counts = np.isnan(X).sum(axis=0)
            missing = {int(j): int(counts[j]) for j in np.flatnonzero(counts)}
            if missing:
                raise missing_values_error(missing, len(X), type(self).__name__)

    @property
    def _groups(self) -> np.ndarray:
        """The column of X to which each encoded column belongs."""
        if not self._has_categories:
            return np.arange(len(self.scale_))
        sizes = [1 if known is None else len(known) for known in self.categories_]
        return np.repeat(np.arange(len(sizes)), sizes)

    # ------------------------------------------------------------------ fit

    @property
    def _families(self) -> list[MetricFamily]:
        """The families of kernels to compare."""
        spec = self._kernel_spec
        rank = self.metric if not isinstance(self.metric, str) else None
        diagonal = None if self.metric == "auto" else self.metric == "diagonal"
        if isinstance(spec, str) and spec == "auto":
            families = [f for f in METRIC_FAMILIES if diagonal in (None, f.diagonal)]
            return [f if f.diagonal else replace(f, rank=rank) for f in families]
        if isinstance(spec, str):
            spec = {"rbf": RBF(), "laplacian": Laplacian()}.get(spec, spec)
        if isinstance(spec, Laplacian):
            if diagonal is False:
                raise ValueError(
                    f"metric={self.metric!r}, but the Laplacian of the L1 distance has only a "
                    f"diagonal metric; use kernel=Matern(nu=0.5), the Laplacian of the Euclidean "
                    f"distance"
                )
            return [MetricFamily(spec, True)]
        if not isinstance(spec, Radial):
            raise TypeError(
                f"{type(self).__name__} needs a radial kernel, such as Matern(nu=0.5) or RBF(), or "
                f"Laplacian(), because the metric defines a distance; got kernel={self.kernel!r}"
            )
        forms = (True, False) if diagonal is None else (diagonal,)
        return [MetricFamily(spec, form, None if form else rank) for form in forms]

    def _fit(self, sample: Sample, Y: np.ndarray, sample_weight: Any) -> RidgeFit:
        """Learn the metric and fit the functions to the targets Y.

        Sets the fitted attributes that do not depend on the kind of the targets.  `sample_weight`
        is that of all points, without class weights, which do not count as copies.
        """
        if len(sample) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two points for leave-one-out errors, got "
                f"n_samples = {len(sample)}"
            )
        seen = sample.subsample
        groups = self._groups if self._has_categories else None
        scaling = ColumnScaling.of(seen.points, seen.weights, groups)
        targets = ColumnScaling.of(Y, sample.weights)
        standard = targets(Y)
        seed = 0 if self.random_state is None else self.random_state
        rng = seeded_generator(seed)
        on_landmarks = self._uses_landmarks(sample)
        rows = np.arange(len(seen))
        if len(rows) > self.search_points:
            rows = np.sort(rng.choice(len(rows), self.search_points, replace=False))
        of_rows = (
            rows
            if sample.drawn is None
            else np.searchsorted(sample.kept, sample.drawn.places)[rows]
        )
        search = FeatureSearch(
            scaling(take_rows(seen.points, rows)),
            standard[of_rows],
            None if seen.weights is None else seen.weights[rows],
            self._families,
            check_positive_numbers(self.exponents, "exponents").tolist(),
            self.max_rounds,
            None if self.alphas is None else check_positive_numbers(self.alphas, "alphas").tolist(),
            None if self.widths is None else check_positive_numbers(self.widths, "widths").tolist(),
            self._progress_callback,
        )
        copies = None
        if sample_weight is not None and sample.drawn is None:
            of_all = np.asarray(sample_weight, dtype=float)
            copies = np.broadcast_to(of_all, length(sample.given))[sample.kept]
            search.copies = copies[rows]
        choice = search.run(cross_fit=self.selection == "cross-fit", combine=self.combine)
        fit = self._ridge(scaling.kernel(choice), sample, standard, copies, on_landmarks)
        for _ in range(_MAX_REFINEMENTS if len(rows) < len(sample) and self.max_rounds else 0):
            M = self._outer_product(scaling.kernel(choice), fit, seen, scaling, rng)
            if not M.any():
                break
            other = choice.with_metric(M, search.X, search.weights)
            refined = self._ridge(scaling.kernel(other), sample, standard, copies, on_landmarks)
            self._log_progress(f"all points: error {refined.score:.4g}, before {fit.score:.4g}")
            if refined.score >= fit.score:
                break
            choice, fit = other, refined
        self.alpha_, self.scale_ = fit.alpha, scaling.scale
        self._set_metric(choice, fit, seen, scaling, rng)
        self.path_ = [_summary(r) for path in choice.paths for r in path]
        self._set_report(choice, fit)
        return fit._replace(
            A=fit.A * targets.scale,
            b=fit.b * targets.scale + targets.mean,
            errors=fit.errors * targets.scale,
        )

    def _uses_landmarks(self, sample: Sample) -> bool:
        """Return whether the final model uses landmarks; warn if "auto" approximates."""
        n = len(sample)
        if sample.drawn is not None:
            return True
        needed = int(8 * _EXACT_SQUARES * n * n)
        fits = needed <= budget_in_bytes(self.max_memory)
        on_landmarks = use_landmarks(self.solver, n, _LIMIT, fits)
        if not on_landmarks:
            check_budget(needed, self.max_memory, f"a recursive feature machine of {n} points")
        elif self.solver == "auto":
            warn_caller(
                f"{type(self).__name__} restricts f to the span of {self._affordable(n).count(n)} "
                f"landmarks, because n = {n} points exceed the limit of {MAX_EXACT_POINTS[_LIMIT]} "
                f"for an exact fit, or the memory budget. Use solver='nystroem' to use this "
                f"approximation without a warning, or solver='exact'"
            )
        return on_landmarks

    def _affordable(self, n: int) -> Any:
        budget = budget_in_bytes(self.max_memory)

        def needed(m: int) -> int:
            return landmark_bytes(n, m, *_FEATURES)

        return affordable_landmarks(self._chosen, self.solver, n, needed, budget)

    def _ridge(
        self,
        kernel: Kernel,
        sample: Sample,
        Y: np.ndarray,
        copies: np.ndarray | None,
        on_landmarks: bool,
    ) -> RidgeFit:
        """Return ridge regression with this kernel on all points, with the best penalty."""
        path: Any
        if on_landmarks:
            n = len(sample)
            path = LandmarkRidge(
                *(kernel, sample.points, Y, sample.weights, np.ones(Y.shape[1]), True),
                self._affordable(n),
                among=sample.subsample.points,
                max_memory=self.max_memory,
                log=self._progress_callback,
            ).path()
        else:
            K = gram(kernel, sample.points, storage="dense", max_memory=self.max_memory)
            path = ExactPath(K, Y, sample.weights, intercept=True)
        alphas = None if self.alphas is None else np.atleast_1d(self.alphas).tolist()
        in_blocks = sample.drawn is not None
        return best_ridge(path, Y, sample.weights, alphas, copies=copies, in_blocks=in_blocks)

    def _outer_product(
        self, kernel: Kernel, fit: RidgeFit, seen: Sample, scaling: ColumnScaling, rng: Any
    ) -> np.ndarray:
        """Return the average gradient outer product of the fit, for standardised columns."""
        n = len(seen)
        rows = np.arange(n)
        if n > _MAX_GRADIENT_POINTS:
            rows = np.sort(rng.choice(n, _MAX_GRADIENT_POINTS, replace=False))
        weights = None if seen.weights is None else seen.weights[rows]
        f = Expansion(kernel, fit.points, fit.A)
        M = average_gradient_outer_product(f, take_rows(seen.points, rows), weights)
        return np.asarray(M * scaling.scale * scaling.scale[:, None])

    def _set_metric(
        self, choice: FeatureChoice, fit: RidgeFit, seen: Sample, scaling: ColumnScaling, rng: Any
    ) -> None:
        """Set the kernel, the metric and what is derived from it."""
        self.kernel_ = scaling.kernel(choice)
        M = self._outer_product(self.kernel_, fit, seen, scaling, rng)
        trace = np.trace(M)
        self.metric_ = M / trace if trace > 0.0 else M
        self.feature_importances_ = np.bincount(self._groups, np.diag(self.metric_))
        self.directions_ = principal_directions(self.metric_)

    def _set_report(self, choice: FeatureChoice, fit: RidgeFit) -> None:
        names = [
            f"{w:.2f} {r.family.name}, round {r.round}, exponent {r.exponent:g}"
            for w, r in zip(choice.weights, choice.rounds, strict=True)
        ]
        message = f"{fit.report.message}; kernel: {' + '.join(names)}"
        if not self.feature_importances_.any():
            message += "; the fitted function is constant, so that all importances are 0"
        certificate = {**fit.report.certificate, "leave-one-out error": fit.score}
        if fit.report.status is Status.INACCURATE:
            warn_inaccurate(fit.report)
        self.report_ = replace(
            fit.report,
            n_iter=max(r.round for r in choice.rounds),
            message=message,
            certificate=certificate,
        )

    def _set_functions(self, sample: Sample, fit: RidgeFit, flat: bool) -> None:
        """Set the expansion, whose points may be landmarks."""
        if fit.points is sample.points:
            f = sample.expansion(self.kernel_, fit.A)
        else:
            f = Expansion(self.kernel_, fit.points, fit.A)
        self._set_expansion(f, fit.b, flat)

    def _leave_one_out(self, sample: Sample, values: np.ndarray) -> np.ndarray:
        """Return leave-one-out values of all points; points of weight 0 are predicted."""
        if sample.whole:
            return values
        out = sample.scatter(values)
        others = np.flatnonzero(sample.places < 0)
        out[others] = self.expansion_(take_rows(sample.given, others)) + self.intercept_
        return out

    # ------------------------------------------------------------------ plans

    def _planned_kernel(self, sample: Sample) -> Kernel:
        return Matern(nu=1.5)

    def _plan(self, sample: Sample) -> Plan:
        n = len(sample)
        outputs = n_of(1 if sample.targets is None else sample.targets.shape[1], "target")
        kernel = self._planned_kernel(sample)
        return plan_exact_or_landmarks(
            f"recursive feature machine of {n} points, {outputs}",
            *(kernel, sample.points, self.solver, self._chosen),
            squares=_EXACT_SQUARES,
            features=_FEATURES,
            limit=_LIMIT,
            steps=12.0,
            max_memory=self.max_memory,
        )


def _without_unit_weights(sample: Sample) -> Sample:
    """Return the sample in float64; weights that are all 1 are dropped, which saves time."""
    if sample.weights is not None and np.all(sample.weights == 1.0):
        sample = replace(sample, weights=None)
    return sample.doubled()


def _summary(r: Any) -> dict[str, Any]:
    """Return a round as an entry of `path_`."""
    return {
        "kernel": r.family.name,
        "round": r.round,
        "exponent": float(r.exponent),
        "width": float(r.width),
        "alpha": float(r.alpha),
        "score": -float(r.score),
    }


@estimator()
class RFMRegressor(FeatureMachine, DualPredictor):
    """Kernel ridge regression with a metric that is learned from gradients, for tables.

    A recursive feature machine repeats two steps.  Kernel ridge regression with a kernel of the
    distance |x - z|_M, where |u|_M^2 = u^T M u, gives a function f.  The average gradient outer
    product of f, the mean of grad f(x_i) grad f(x_i)^T over the training points, is the next M.
    Columns and directions on which the targets do not depend are thus removed from the distances.
    Several kernels are tried, each with its own metric, and combined.  All choices use
    leave-one-out errors in closed form, so that no validation set is needed.

    Columns are standardised internally.  Columns of a data frame that are not numbers (strings,
    categories) are one-hot encoded.  A category that was not in the training table is encoded
    by zeros, and missing values are a separate category.  Missing numbers raise an error.

    Parameters
    ----------
    kernel : str or Kernel
        "auto" compares the Laplacian of the L1 distance and the Matern kernels of the Euclidean
        distance with nu = 1/2, 3/2 and 5/2. Otherwise a radial kernel, such as
        ``Matern(nu=0.5)`` (the kernel of the papers) or ``RBF()``, or ``Laplacian()``; its length
        scale is ignored.

    Attributes
    ----------
    metric_ : ndarray of shape (d, d)
        The average gradient outer product of the fitted function, for columns of standard
        deviation 1, divided by its trace. The matrices of the kernels are in `kernel_`.
    feature_importances_ : ndarray of shape (n_features_in_,)
        The diagonal of `metric_`, summed over the categories of a column. The sum is 1, or 0 if
        the fitted function is constant.
    directions_ : ndarray of shape (d, d)
        The eigenvectors of `metric_` as rows, in the order of decreasing eigenvalues. The function
        varies most along the first one.
    scale_ : ndarray of shape (d,)
        The standard deviations of the columns. Categories of a column have a common scale.
    path_ : list of dict
        The rounds of all kernels: the exponent, the width (in units of the median distance), alpha
        and the score, which is the negative mean squared error for targets of variance 1.
    alpha_ : float
        The ridge penalty, for targets of variance 1.
    leave_one_out_ : ndarray of shape (n,) or (n, n_targets)
        Leave-one-out predictions of the final model, whose metric is fixed.
    categories_ : list or None
        The categories of each column, None for numbers; None if all columns are numbers.
    expansion_ : Expansion
        The function f on encoded columns.
    report_ : Report
        The report of the final fit. `message` lists the kernels and their weights.
    dual_coef_, intercept_, X_fit_, kernel_
        As in `KernelRidge`, for encoded columns.

    See Also
    --------
    RFMClassifier : For class labels.
    KernelRidgeCV : One kernel with a fixed metric.
    GaussianProcessRegressor : One length scale per column by maximum likelihood.
    tune : Optimises kernel parameters by gradients.
    sklearn.ensemble.HistGradientBoostingRegressor : Gradient boosting; faster for many rows.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural networks
    and backpropagation-free machine learning models", Science 383, 2024.

    Beaglehole, Holzmüller, Radhakrishnan and Belkin, "xRFM: Accurate, scalable, and interpretable
    feature learning models for tabular data", arXiv:2508.10053, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RFMRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = np.sin(2 * X[:, 3]) + X[:, 7] ** 2
    >>> model = RFMRegressor().fit(X, y)
    >>> np.argsort(-model.feature_importances_)[:2], bool(model.score(X, y) > 0.99)
    (array([7, 3]), True)
    """

    kernel: Any = "auto"
    _: KW_ONLY

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the metric and fit the function.

        Parameters
        ----------
        X : array-like of shape (n, d), data frame or blocks
            Training points. Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,) or (n, n_targets)
            Targets. Several targets share the metric.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors and of the gradients.

        Returns
        -------
        self : RFMRegressor
            The fitted estimator.
        """
        sample = _without_unit_weights(self._sample(X, y, sample_weight))
        fit = self._fit(sample, sample.targets, sample_weight)
        self._set_functions(sample, fit, sample.flat)
        predictions = self._leave_one_out(sample, sample.targets - fit.errors)
        self.leave_one_out_ = predictions[:, 0] if sample.flat else predictions
        return self


@estimator()
class RFMClassifier(FeatureMachine, DecisionFunctions):
    """Classification with a metric that is learned from gradients, for tables.

    A recursive feature machine, see `RFMRegressor`, for indicators of the classes.  The
    probabilities are those of a logistic model of the leave-one-out values (Platt scaling), so that
    they need no further fit of the kernel model.

    Parameters
    ----------
    kernel : str or Kernel
        "auto" compares the Laplacian of the L1 distance and the Matern kernels of the Euclidean
        distance with nu = 1/2, 3/2 and 5/2. Otherwise a radial kernel, such as
        ``Matern(nu=0.5)`` (the kernel of the papers) or ``RBF()``, or ``Laplacian()``; its length
        scale is ignored.
    class_weight : dict, "balanced" or None
        Positive weights of the classes, which multiply the weights of their points. "balanced"
        gives all classes the same total weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    metric_, feature_importances_, directions_, scale_, path_, alpha_, categories_
        As in `RFMRegressor`, for functions that predict the indicators of the classes.
    leave_one_out_ : ndarray of shape (n, n_functions)
        Leave-one-out decision values, one column for two classes.
    expansion_ : Expansion
        The functions on encoded columns, whose values are log-odds.
    report_ : Report
        The report of the final fit. `message` lists the kernels and their weights.
    dual_coef_, intercept_, X_fit_, kernel_
        As in `KernelRidge`, for encoded columns.

    See Also
    --------
    RFMRegressor : For numbers.
    KernelLogisticRegressionCV : One kernel with a fixed metric.
    SVC : Support vector machine.
    sklearn.ensemble.HistGradientBoostingClassifier : Gradient boosting; faster for many rows.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin, "Mechanism for feature learning in neural networks
    and backpropagation-free machine learning models", Science 383, 2024.

    Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", Advances in Large Margin Classifiers, MIT Press, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RFMClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = np.where(X[:, 3] + X[:, 7] > 0, "yes", "no")
    >>> model = RFMClassifier().fit(X, y)
    >>> np.sort(np.argsort(-model.feature_importances_)[:2]), bool(model.score(X, y) > 0.97)
    (array([3, 7]), True)
    """

    kernel: Any = "auto"
    _: KW_ONLY
    class_weight: dict | str | None = parameter(dict, {"balanced"}, None, default=None)

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the metric and fit the functions.

        Parameters
        ----------
        X : array-like of shape (n, d), data frame or blocks
            Training points. Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared errors and of the gradients.

        Returns
        -------
        self : RFMClassifier
            The fitted estimator.
        """
        sample = _without_unit_weights(self._sample(X, y, sample_weight, labels=True))
        classes, labels = sample.classes, sample.labels
        Y = 2.0 * np.eye(len(classes))[labels] - 1.0
        Y = Y[:, 1:] if len(classes) == 2 else Y
        fit = self._fit(sample, Y, sample_weight)
        values = Y - fit.errors
        a, offset = calibrate(values, labels, sample.counts)
        self._set_functions(sample, fit._replace(A=a * fit.A, b=a * fit.b + offset), False)
        self.classes_ = classes
        self.leave_one_out_ = self._leave_one_out(sample, a * values + offset)
        return self
