"""Base classes of estimators with a kernel: kernel parameters, input validation, predictions.

`KernelEstimator` converts the user's `kernel` parameter to a `Kernel` and validates X and y;
`NamedKernelEstimator` adds the parameters of kernels given by name, and `LandmarkMixin` those of
landmarks.  `ExpansionEstimator` and `DualEstimator` are the base classes of estimators whose fitted
functions are kernel expansions.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from .._core import (
    KernelSyntaxError,
    MemoryLimit,
    Points,
    as_float64,
    as_numpy,
    in_native_order,
    is_table,
    length,
    optional_type,
    progress,
    reject_structured,
    snapshot,
    warn_caller,
)
from ..blocks import Blocks, RowSample, with_targets
from ..expansion import Expansion, Primal
from ..expansion.reduced_set import Reduction
from ..gram import LANDMARK_METHODS, Landmarks
from ..kernels import RULES, Kernel, Laplacian, Precomputed, as_kernel, parse_if_expression
from ..solvers import Report
from ._blockwise import draw_candidates, in_memory, require_landmarks
from ._parameters import (
    FittedFunction,
    FittedPoints,
    NumberOrArray,
    estimator,
    fitted,
    parameter,
    predict_method,
    remove_fitted,
)
from ._plan_method import PlanMixin
from ._training_sample import Sample, check_weights

# Default of y in `_sample` for unsupervised models; y=None is a user error in supervised ones.
NO_TARGETS = object()
SklearnGPKernel = optional_type("sklearn.gaussian_process.kernels", "Kernel")
KernelLike: TypeAlias = str | Kernel | Function[..., Any]
Seed: TypeAlias = int | np.random.RandomState | None
# A function that reduces an expansion to fewer points, or to a weight vector.
Shrink: TypeAlias = Function[[Expansion], Expansion | Primal]


@estimator(kw_only=True)
class KernelEstimator(PlanMixin, BaseEstimator):
    """Base class of estimators with a kernel whose fitted functions are kernel expansions.

    Parameters
    ----------
    kernel : str, Kernel, callable or scikit-learn GP kernel
        The kernel, which defines the similarity of two points. A name: "linear", "poly", "rbf",
        "laplacian", "sigmoid", "cosine", "chi2" or "additive_chi2", or "precomputed" if X is a
        matrix of kernel values. A kernel expression such as ``RBF(2.0) + Linear()``, which may also
        be a string, "RBF(2.0) + Linear()". A function of two matrices or of two points. "rbf" suits
        standardised columns, and "linear" suits many columns and few rows; `mercer.kernels` also
        has kernels for strings, graphs and sets.
    max_memory : int, str or None
        The memory budget, in bytes or as a string such as "2 GiB". None means half of the
        computer's memory. A fit that needs more raises a `MemoryBudgetError` before it allocates
        anything; `plan` lists the memory of each solver.
    n_jobs : int or None
        The number of threads. None means all processors, -2 all but one. The number does not affect
        the results. Set it to 1 if several fits run in parallel, for instance in `GridSearchCV`.
    verbose : int
        Whether to print progress: 0 for no output, 1 for messages from the solver.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all parameters resolved.
    """

    kernel: KernelLike = parameter(str, Kernel, SklearnGPKernel, callable, default="linear")
    max_memory: int | float | str | None = parameter("positive", str, None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)
    verbose: int = parameter("boolean", "non-negative integer", default=0)

    kernel_: Kernel = fitted()

    _kernels: ClassVar[tuple[str, ...]] = ("kernel",)  # names of the parameters that are kernels
    # Options of scikit-learn's `validate_data` for vectors, and for numeric targets.
    _vector_validation: ClassVar[dict[str, Any]] = {"accept_sparse": "csr"}
    _target_validation: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    @property
    def _required_cpd_order(self) -> int | None:
        """The order of conditional positive definiteness that the kernel must have.

        0 means a Mercer kernel. 1 is enough for estimators that use only differences of feature
        vectors, such as distances. None allows any symmetric function.
        """
        return 0

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator and of its kernel, such as `kernel__length_scale=2.0`.

        Kernels are immutable. The estimator gets a new kernel, and other estimators that use the
        same kernel object do not change.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator, or of the kernel with the prefix ``kernel__``.

        Returns
        -------
        self : estimator
            The same estimator, with the new parameters; it is not fitted again.
        """
        kernel_params: dict[str, dict[str, Any]] = {name: {} for name in self._kernels}
        for key in list(params):
            name, separator, parameter_name = key.partition("__")
            if separator and name in kernel_params:
                kernel_params[name][parameter_name] = params.pop(key)
        super().set_params(**params)
        for name, nested in kernel_params.items():
            kernel = parse_if_expression(getattr(self, name)) if nested else None
            if isinstance(kernel, Kernel):
                setattr(self, name, kernel.set_params(**nested))
            elif isinstance(kernel, str):
                raise ValueError(
                    f"{name}={kernel!r} is a kernel given by name, whose parameters are gamma, "
                    f"degree and coef0; pass a Kernel, such as RBF(2.0), to set {sorted(nested)}"
                )
            elif nested and kernel is None:
                raise ValueError(
                    f"{name}=None is the default kernel, without parameters; pass a Kernel, such "
                    f"as RBF(2.0), to set {sorted(nested)}"
                )
            elif nested:
                super().set_params(**{f"{name}__{key}": value for key, value in nested.items()})
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _kernel_spec(self) -> Any:
        """The `kernel` parameter; a string with a kernel expression is parsed to a Kernel."""
        return parse_if_expression(self.kernel)

    @property
    def _precomputed(self) -> bool:
        """Whether the rows of X are kernel values instead of points."""
        with suppress(KernelSyntaxError):  # invalid expressions are reported by `fit`
            return self._is_precomputed_kernel(self._kernel_spec)
        return False

    def _is_precomputed_kernel(self, kernel: Any) -> bool:
        """Return True if X is a matrix of kernel values for this kernel specification."""
        if isinstance(kernel, str):
            return kernel == "precomputed"
        return isinstance(kernel, Precomputed) and kernel.matrix is None

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
        """Validate X (and y if `supervised`) and return them in the form that the kernel requires.

        Vectors are checked by scikit-learn's validation. Other objects, such as strings or graphs,
        are accepted only if the kernel is not defined on vectors. Targets are numbers of shape (n,)
        or (n, q), or labels of shape (n,).
        """
        target_options = {} if labels else self._target_validation
        is_valid = points_need_no_validation(self, X, reset) and self._expects_matrix(X)
        if is_valid and (not supervised or _targets_need_no_validation(y, len(X))):
            X = record_n_features(self, X, reset)
            X = X.copy() if copy else X
            return (X, y) if supervised else X
        if self._expects_matrix(X):
            reject_structured(X, type(self).__name__)
            options = {**self._vector_validation, "reset": reset, "copy": copy}
            if not supervised:
                return _as_float(validate_data(self, X, **options))
            X, y = validate_data(self, X, y, **target_options, **options)
            return _as_float(X), y
        X = as_numpy(X)
        if length(X) == 0:
            raise ValueError(f"{type(self).__name__} needs at least one point, got none")
        if reset:
            for attribute in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(attribute, None)  # remove attributes of an earlier fit to vectors
        if reset or copy:  # copy X, so that later changes by the user do not affect the model
            X = snapshot(X, arrays=copy)
        if supervised:
            y = validate_data(self, y=y, X="no_validation", **target_options)
            if len(y) != length(X):
                what = "labels" if labels else "targets"
                raise ValueError(f"X has {length(X)} points, but y has {len(y)} {what}")
        by_position = (
            isinstance(kernel := self._kernel_spec, Kernel) and not kernel.domain.selects_by_name
        )
        if is_table(X) and len(X.shape) == 2 and by_position:
            _check_feature_names(self, X, reset=reset)
        return (X, y) if supervised else X

    def _sample(
        self,
        X: Points,
        y: Any = NO_TARGETS,
        sample_weight: ArrayLike | None = None,
        *,
        labels: bool = False,
        copy: bool = True,
        reset: bool = True,
    ) -> Sample:
        """Validate the arguments of a fit and return them as a `Sample`."""
        if isinstance(X, Blocks):
            return self._sample_blocks(X, y, sample_weight, labels=labels)
        precomputed, supervised = self._precomputed, y is not NO_TARGETS
        checked = self._check_points(
            X, y, reset=reset, copy=copy and not precomputed, supervised=supervised, labels=labels
        )
        X, y = checked if supervised else (checked, None)
        weights = None if sample_weight is None else self._check_weights(sample_weight, X)
        sample = Sample.of(X, weights, precomputed=precomputed, order=self._required_cpd_order)
        return self._with_targets(sample, y, labels) if supervised else sample

    def _check_weights(self, sample_weight: ArrayLike | None, X: Points) -> np.ndarray:
        """Return validated sample weights, one for each point."""
        return check_weights(sample_weight, X)

    def _with_targets(self, sample: Sample, y: np.ndarray, labels: bool) -> Sample:
        """Return the sample with validated targets or class labels."""
        if not labels:
            return sample.with_targets(y)
        check_classification_targets(y)
        return sample.with_labels(y, getattr(self, "class_weight", None), type(self).__name__)

    def _sample_blocks(
        self, X: Blocks, y: Any, sample_weight: ArrayLike | None, *, labels: bool
    ) -> Sample:
        """Validate points in blocks, and return them as a `Sample`.

        Targets and weights are loaded into memory.  The points are loaded only if the solver needs
        all of them at once (`_gathers_blocks`).
        """
        supervised, what = y is not NO_TARGETS, "labels" if labels else "targets"
        if supervised and y is None:
            raise ValueError(f"{type(self).__name__} needs {what} y, in blocks or as one array")
        blocks = with_targets(X, y if supervised else None, sample_weight)
        y, w = in_memory(blocks.y), in_memory(blocks.weights)
        if labels and y.ndim != 1:
            raise ValueError(f"y must have one label per row, but its shape is {y.shape}")
        if self._gathers_blocks():
            points = X.to_array(self.max_memory)
            sample = self._sample(points, y if supervised else NO_TARGETS, w, labels=labels)
            sample = replace(sample, workers=X)
        else:
            drawn = self._draw_candidates(blocks._with(y, w))
            weights = None if w is None else self._check_weights(w, X)
            self._check_points(drawn.X, reset=True)
            sample = replace(Sample.of(X, weights, order=self._required_cpd_order), drawn=drawn)
            if supervised:
                options = {} if labels else self._target_validation
                y = validate_data(self, y=y, X="no_validation", **options)
                sample = self._with_targets(sample, y, labels)
        if X.names is not None:
            self.feature_names_in_ = np.asarray(X.names, dtype=object)
        return sample

    def _gathers_blocks(self) -> bool:
        """Whether points in blocks are loaded into memory, because the solver needs all of them.

        Raises an error if the solver does not support points in blocks at all.
        """
        return False

    def _draw_candidates(self, blocks: Blocks) -> RowSample:
        """Draw the rows from which kernel parameters and landmarks are computed."""
        return draw_candidates(blocks)

    def _planned_kernel(self, sample: Sample) -> Kernel:
        """Return the kernel of a plan, whose parameters need not be resolved."""
        if sample.values is not None:
            return sample.values
        return as_kernel("rbf" if self.kernel is None else self.kernel)  # None is a default RBF

    def _expects_matrix(self, X: Points) -> bool:
        """Return True if X must be a numeric matrix.

        This is the case if the kernel is defined on vectors, or, for kernels that accept several
        types, if X can be converted to a numeric matrix.
        """
        kernel = self._kernel_spec
        if isinstance(kernel, (str, SklearnGPKernel)):
            return True
        if isinstance(kernel, Kernel) and kernel.domain.on_vectors:
            return True
        if isinstance(kernel, Kernel) and not kernel.domain.accepts_matrix:
            return False
        if is_table(X):  # kernels not defined on vectors read table columns by name
            return not isinstance(kernel, Kernel)
        if sp.issparse(X):
            return True
        try:
            array = np.asarray(X)
        except ValueError:  # X is not a rectangular array, but sets, strings, graphs ...
            return False
        return array.ndim == 2 and array.dtype.kind in "biuf"

    def _check_new(self, X: Points) -> Points:
        """Return validated new points; raise an error if the estimator is not fitted."""
        if "kernel_" not in self.__dict__:  # scikit-learn's check is slow for a single row
            check_is_fitted(self)
        return self._check_points(X, reset=False)

    def _check_new_float64(self, X: Points) -> Points:
        """Return validated new points in float64.

        Distances are small differences of large numbers, for which float32 is not accurate enough.
        """
        X = self._check_new(X)
        return X if self._precomputed else as_float64(X)

    def _self_kernel(self, X: Points, training_diagonal: Any, purpose: str) -> np.ndarray:
        """Return k(x, x) for each point, or raise an error if it is unknown.

        A precomputed matrix of kernel values between new and training points has k(x, x) on its
        diagonal only if the new points are the training points. To detect a square matrix for other
        points, its diagonal is compared with `training_diagonal`.

        Parameters
        ----------
        X : points, or a precomputed matrix
        training_diagonal : ndarray of shape (n,)
            The values k(x, x) of the training points.
        purpose : str
            The quantity that needs these values, for the error message.
        """
        if self._precomputed:
            is_square = X.shape[0] == X.shape[1]
            if not is_square or not np.allclose(X.diagonal(), training_diagonal, rtol=1e-5):
                raise ValueError(
                    f"{purpose} need k(x, x), which a precomputed matrix (here of shape {X.shape}) "
                    f"contains only for the training points; fit with a kernel, or with "
                    f"kernel=Precomputed(K) and indices as points"
                )
        return np.asarray(self.kernel_.diag(X), dtype=np.float64)

    @property
    def _progress_callback(self) -> Function[[str], None] | None:
        """The function that solvers call with progress messages; None unless `verbose` is set."""
        return self._log_progress if self.verbose else None

    def _log_progress(self, text: str) -> None:
        """Print a progress message if `verbose` is set."""
        with progress(type(self).__name__, self.verbose) as log:
            if log is not None:
                log(text)


@estimator(kw_only=True)
class NamedKernelEstimator(KernelEstimator):
    """Base class of estimators whose kernel may be given by name.

    Parameters
    ----------
    gamma : float, "scale", "auto", "median", "scott", "silverman" or None
        The scale of kernels given by name: "rbf" is exp(-gamma |x - z|^2), so that a large gamma
        means functions that change over short distances. None means 1 / n_features (1 for "chi2").
        A string is a rule for n points with d columns. "scale": 1 / (d Var), where Var is the
        variance of all entries of X. "auto": 1 / d. "median": 1 / (2 m^2), where m is the median
        distance between two different points. "scott": 1 / (2 h^2) with h = s n^(-1 / (d + 4)),
        where s^2 is the mean variance of the columns. "silverman": 1 / (2 h^2) with
        h = s (n (d + 2) / 4)^(-1 / (d + 4)). Use "scale" for standardised columns, "median" as a
        robust first guess, and "scott" or "silverman" for densities; then search a logarithmic grid
        around that value. A point of weight 2 (sample weight times class weight) counts as two
        points. A Kernel or a callable has its own parameters. If gamma, degree or coef0 differ from
        their defaults, they are ignored with a warning, which says what to write instead.
    degree : float
        The degree of the "poly" kernel. Degree 2 contains all products of two columns.
    coef0 : float
        The constant term of the "poly" and "sigmoid" kernels. For "poly", a larger value gives more
        weight to terms of low degree; 0 leaves only terms of the full degree.
    kernel_params : dict or None
        Additional keyword arguments of a callable kernel.
    """

    gamma: float | str | None = parameter("positive", set(RULES), None, default=None)
    degree: float = parameter("non-negative", default=3)
    coef0: float = parameter("finite", default=1)
    kernel_params: dict | None = parameter(dict, None, default=None)

    # Parameters of kernels given by name; `kernel_params` also applies to callables.
    _named_kernel_params: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0", "kernel_params")

    @classmethod
    def _named_kernel_defaults(cls) -> dict[str, Any]:
        """Return a dictionary from each parameter of kernels given by name to its default."""
        return {name: getattr(cls, name) for name in cls._named_kernel_params}

    def _check_unused_params(self) -> None:
        """Warn if a parameter of named kernels is set, but ignored by the kernel."""
        kernels = [parse_if_expression(getattr(self, name)) for name in self._kernels]
        if any(isinstance(kernel, str) for kernel in kernels):
            return
        has_callable = any(
            callable(kernel) and not isinstance(kernel, Kernel | SklearnGPKernel)
            for kernel in kernels
        )
        for name, default in self._named_kernel_defaults().items():
            value = getattr(self, name)
            is_used = has_callable and name == "kernel_params"
            if value is default or is_used or (isinstance(value, str | Real) and value == default):
                continue
            kernel = kernels[0]
            warn_caller(
                f"{type(self).__name__} has {name}={value!r} and the kernel {kernel!r:.200}, which "
                f"ignores it, because {name} applies only to kernels given by name, such as "
                f"'rbf' or 'poly'. {_remedy(kernel, name, value)}, and leave {name} at its "
                f"default, {default!r}"
            )

    def _make_kernel(self, gamma: Any) -> Kernel:
        """Return the `kernel` parameter as a `Kernel`; a kernel given by name gets this gamma."""
        self._check_unused_params()
        return as_kernel(
            self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _planned_kernel(self, sample: Sample) -> Kernel:
        return self._make_kernel(self.gamma) if sample.values is None else sample.values

    def _resolved_gamma(self, kernel: Kernel) -> Any:
        """Return the numeric gamma of the resolved kernel; `self.gamma` if it has no gamma."""
        if not isinstance(self.gamma, str) and not isinstance(self._kernel_spec, Kernel):
            return 1.0 / getattr(self, "n_features_in_", 1) if self.gamma is None else self.gamma
        if hasattr(kernel, "gamma"):
            return kernel.gamma
        scale = getattr(kernel, "length_scale", None)
        if scale is None or np.ndim(scale):
            return self.gamma  # the kernel has no single gamma
        return 1.0 / scale if isinstance(kernel, Laplacian) else 0.5 / scale**2


@estimator(kw_only=True)
class ExpansionEstimator(KernelEstimator):
    """Base class of estimators whose fitted functions are the kernel expansion `expansion_`.

    Attributes
    ----------
    report_ : Report
        The report of the solver.
    """

    expansion_: FittedFunction = fitted()
    report_: Report = fitted()

    @property
    def reduction_(self) -> Reduction | None:
        """The error certificate of a model returned by `compress`; None for other models."""
        return getattr(self.expansion_, "reduction", None)

    def _compress(self, shrink: Shrink) -> None:
        """Replace the expansion of this copy of a fitted estimator by a reduced one.

        `compress` calls this with a function that reduces the number of points, and `to_primal`
        with one that returns a `Primal`, which has no points. Attributes that refer to individual
        training points are deleted. Subclasses override this method to update attributes that
        depend on the expansion.
        """
        f = self.expansion_
        reduced = shrink(f)
        remove_fitted(self, per_point=True)
        is_primal = isinstance(reduced, Primal)
        self.expansion_ = reduced if is_primal else replace(reduced, kernel=f.kernel)

    def _to_primal(self, max_memory: MemoryLimit) -> None:
        """Replace the expansion of this copy of a fitted estimator by a primal weight vector."""
        self._compress(lambda f: f.to_primal(max_memory=max_memory))


@estimator(kw_only=True)
class DualFunctions(ExpansionEstimator):
    """Base class of estimators with functions f = sum_i a_i k(x_i, .) + b.

    The coefficients a are `dual_coef_`, the points x are `X_fit_`, and b is `intercept_`.
    """

    X_fit_: FittedPoints = fitted(per_point=True)
    dual_coef_: np.ndarray = fitted(per_point=True)
    intercept_: NumberOrArray = fitted()

    @predict_method
    def _values(self, X: Points) -> np.ndarray:
        """Return f(x_i) + b for each point, of shape (n, n_functions), evaluated in tiles."""
        X = self._check_new(X)
        return self.expansion_(X) + self.intercept_

    def _compress(self, shrink: Shrink) -> None:
        super()._compress(shrink)
        if not isinstance(self.expansion_, Primal):
            self._set_expansion(self.expansion_, self.intercept_, self._has_single_target)

    def _set_expansion(self, f: Expansion, intercept: NumberOrArray, flat: bool) -> None:
        """Set the fitted attributes `expansion_`, `X_fit_`, `dual_coef_` and `intercept_`.

        If `flat` is True, there is a single target: `dual_coef_` has shape (n,) and `intercept_` is
        a float.
        """
        self.expansion_, self.X_fit_ = f, f.points
        self.dual_coef_ = f.coefficients[:, 0] if flat else f.coefficients
        self.intercept_ = float(np.ravel(intercept)[0]) if flat else intercept

    @property
    def _has_single_target(self) -> bool:
        """Whether y was one-dimensional in `fit`, so that predictions are one-dimensional too."""
        return np.ndim(self.intercept_) == 0


@estimator(kw_only=True)
class DualEstimator(NamedKernelEstimator, DualFunctions):
    """Base class of estimators with functions f + b whose kernel may be given by name."""


@estimator(kw_only=True)
class DualPredictor(MultiOutputMixin, RegressorMixin, DualFunctions):
    """Base class of regressors that predict f(x) + b, with any parameters of their kernel."""

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the targets of points, as f(x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            The predictions; one-dimensional if y was one-dimensional in `fit`.
        """
        values = self._values(X)
        return values[:, 0] if self._has_single_target else values


@estimator(kw_only=True)
class DualRegressor(DualPredictor, DualEstimator):
    """Base class of regressors that predict f(x) + b, and whose kernel may be given by name."""


class FeatureMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for transformers whose results have the precision of the points."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def precision(X: Points) -> np.dtype:
    """Return the dtype of the features of X: float32 for float32 points, otherwise float64."""
    return np.dtype(np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)


@estimator(kw_only=True)
class LandmarkMixin(BaseEstimator):
    """Base class of estimators with a solver that restricts functions to the span of landmarks.

    Parameters
    ----------
    rank : int or None
        The number of landmarks of solver="nystroem". None means 1000, or all points if there are
        fewer. Time grows as n rank^2. Double the rank until the validation score no longer
        improves; 300 to 1000 is typical for 10^5 points.
    landmarks : str or points
        The method that selects landmarks ("kmeans", "medoids", "rpcholesky", "uniform", "kmeans++"
        or "leverage"), or the landmarks themselves. "auto" means "kmeans" for radial kernels on
        dense vectors, otherwise "rpcholesky". "uniform" is the fastest, but usually needs more
        landmarks for the same accuracy.
    random_state : int, RandomState or None
        Seed of the random number generator, for instance for the choice of landmarks. None means 0,
        so that repeated fits give the same result.
    """

    rank: int | None = parameter("positive integer", None, default=None)
    landmarks: Any = parameter(set(LANDMARK_METHODS), "array-like", "sparse matrix", default="auto")
    random_state: Seed = parameter("random_state", default=None)

    _accepts_blocks: ClassVar[bool] = True

    @property
    def _chosen(self) -> Landmarks:
        """The parameters `rank`, `landmarks` and `random_state` as a `Landmarks` object."""
        return Landmarks(self.rank, self.landmarks, self.random_state)

    def _gathers_blocks(self) -> bool:
        require_landmarks(self)
        return False

    def _draw_candidates(self, blocks: Blocks) -> RowSample:
        return draw_candidates(blocks, self._chosen)


def _remedy(kernel: Any, name: str, value: Any) -> str:
    """Return advice on how to set the parameter `name` for a kernel that is not given by name."""
    if name == "kernel_params":
        return "Set the parameters of the kernel itself"
    if not isinstance(kernel, Kernel):
        if callable(kernel) and not isinstance(kernel, SklearnGPKernel):
            return f"Pass it to the function with kernel_params={{{name!r}: {value!r}}}"
        return "Set the parameters of the kernel itself"
    class_name = type(kernel).__name__
    if name == "gamma" and hasattr(kernel, "from_gamma"):
        return f"Write kernel={class_name}.from_gamma({value!r})"
    if name in kernel.get_params(deep=False):
        return f"Write kernel={class_name}({name}={value!r})"
    return "Set the parameters of the kernel itself"


def points_need_no_validation(model: BaseEstimator, X: Points, reset: bool) -> bool:
    """Return True if scikit-learn's validation would return the matrix X unchanged.

    The validation is then skipped, as it is slow compared with a prediction for a few points.
    """
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.size:
        return False
    fitted = model.__dict__
    same_columns = X.shape[1] == fitted.get("n_features_in_") and "feature_names_in_" not in fitted
    return (reset or same_columns) and X.flags.c_contiguous and _all_finite(X)


def record_n_features(model: BaseEstimator, X: np.ndarray, reset: bool) -> np.ndarray:
    """Return X unchanged; if `reset` is True, store its number of columns in the model."""
    if reset:
        model.n_features_in_ = X.shape[1]
        model.__dict__.pop("feature_names_in_", None)
    return X


def _targets_need_no_validation(y: ArrayLike, n: int) -> bool:
    """Return True if scikit-learn's validation would return the n targets unchanged."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "biu" or (y.dtype == np.float64 and _all_finite(y))


def _all_finite(a: np.ndarray) -> bool:
    """Return True if the sum of the array is finite, which implies that all entries are.

    The sum may overflow although all entries are finite. The result is then False, which only means
    that the full validation runs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(a.sum()))


def _as_float(X: Points) -> Points:
    """Return X unchanged if it is float32 or float64; convert other types to float64."""
    X = in_native_order(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


# --- The method `explore`, which opens the interactive explorer for a fitted embedding model.


class ExploreMixin:
    """Mixin for models with an embedding that can be displayed interactively."""

    def explore(self, X: Points = None, **options: Any) -> Any:
        """Open the interactive explorer for the embedding of this model.

        Parameters
        ----------
        X : points or None, default=None
            The points to show, in the same form as in `transform`. None means the training points,
            if the model stores them.
        **options : dict
            Options of `mercer.explore`, such as `color`, `table`, `image_shape` and `title`.

        Returns
        -------
        Explorer
            The result of `mercer.explore`, which can be displayed in a notebook, served over HTTP,
            or saved as an HTML page.
        """
        return import_module("mercer").explore(self, X, **options)
