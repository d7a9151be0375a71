"""What every estimator does the same way: kernels from what users write, points from X."""

from __future__ import annotations

from collections.abc import Callable as Function
from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from .._errors import KernelSyntaxError
from .._lazy import foreign
from .._points import as_numpy, doubled, is_table, length, refuse_structured, snapshot
from .._runtime import progress
from ..expansion import Expansion, Primal
from ..gram import METHODS, Landmarks
from ..kernels import RULES, Kernel, Laplacian, Precomputed, as_kernel, spelled_out
from ..reduce import Reduction
from ._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, learned, parameter, threaded
from ._sample import Sample, check_weights

__all__ = ["NO_TARGETS", "KernelEstimator", "KernelLike", "Landmarked", "NamedKernel", "Seed"]
__all__ += ["SklearnGPKernel", "is_ready", "taken"]


NO_TARGETS = object()  # y=None is an error of the user's
SklearnGPKernel = foreign("sklearn.gaussian_process.kernels", "Kernel")
KernelLike: TypeAlias = str | Kernel | Function[..., Any]
Seed: TypeAlias = int | np.random.RandomState | None


@estimator(kw_only=True)
class KernelEstimator(BaseEstimator):
    """An estimator with a kernel, whose fitted state is an expansion.

    Parameters
    ----------
    kernel : str, Kernel, callable or scikit-learn GP kernel
        A name of scikit-learn's ("linear", "poly", "rbf", "laplacian", ..., "precomputed"), an
        expression like ``RBF(2.0) + Linear()``, also as text ("RBF(2.0) + Linear()"), or a
        function of two matrices or two points.
    max_memory : int, str or None
        Bytes, or "2 GiB"; None for half of the machine's memory.
    n_jobs : int or None
        Threads; None for all processors, -2 for all but one.  Results do not depend on it.
    verbose : int
        Whether to say what is done, and how far it is.
    """

    kernel: KernelLike = parameter(
        str,
        Kernel,
        SklearnGPKernel,
        callable,
        default="linear",
    )
    max_memory: int | float | str | None = parameter(POSITIVE, str, None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)
    verbose: int = parameter("boolean", Interval(Integral, 0, None, closed="left"), default=0)

    expansion_: Any = learned()  # an Expansion, or after `to_primal` a Primal
    dual_coef_: np.ndarray = learned()
    intercept_: Any = learned()

    _kernels: ClassVar[tuple[str, ...]] = ("kernel",)  # parameters that are kernels
    # what scikit-learn's validation is to do with vectors, and with targets that are numbers
    _vectors: ClassVar[dict[str, Any]] = {"accept_sparse": "csr"}
    _numbers: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    @property
    def _order(self) -> int | None:
        """The order of which a kernel must be conditionally positive definite.

        0 for Mercer kernels; 1 where only differences of features count; None for any function.
        """
        return 0

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the kernel included: `kernel__length_scale=2.0`.

        Kernels are values: the estimator gets a new one, and nobody else's kernel changes.
        """
        split: dict[str, dict[str, Any]] = {name: {} for name in self._kernels}
        for key in list(params):
            name, mark, rest = key.partition("__")
            if mark and name in split:
                split[name][rest] = params.pop(key)
        super().set_params(**params)
        for name, nested in split.items():
            kernel = spelled_out(getattr(self, name)) if nested else None
            if isinstance(kernel, Kernel):
                setattr(self, name, kernel.set_params(**nested))
            elif isinstance(kernel, str):
                raise ValueError(
                    f"the {name} is the name {kernel!r}, whose parameters are gamma, degree and "
                    f"coef0; give a Kernel, such as RBF(2.0), to set {sorted(nested)}"
                )
            elif nested:
                super().set_params(**{f"{name}__{key}": value for key, value in nested.items()})
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _given(self) -> Any:
        """The kernel as the user gave it, with an expression in text spelled out."""
        return spelled_out(self.kernel)

    @property
    def _precomputed(self) -> bool:
        with suppress(KernelSyntaxError):  # which is for `fit` to raise
            return self._reads_values(self._given)
        return False

    def _reads_values(self, kernel: Any) -> bool:
        """Tell whether X is a matrix of values of the kernel."""
        if isinstance(kernel, str):
            return kernel == "precomputed"
        return isinstance(kernel, Precomputed) and kernel.matrix is None

    def _check_points(
        self,
        X: Any,
        y: Any = None,
        *,
        reset: bool,
        copy: bool = False,
        supervised: bool = False,
        labels: bool = False,
    ) -> Any:
        """Check X (and y, for a supervised model) and return them ready for the kernel.

        Vectors go through scikit-learn's validation; other points pass if the kernel is not one
        of vectors.  Targets are numbers, (n,) or (n, q), or labels, (n,).
        """
        numbers = {} if labels else self._numbers
        ready = is_ready(self, X, reset) and self._takes(X)
        if ready and (not supervised or _are_ready(y, len(X))):
            X = taken(self, X, reset)
            X = X.copy() if copy else X
            return (X, y) if supervised else X
        if self._takes(X):
            refuse_structured(X, type(self).__name__)
            options = {**self._vectors, "reset": reset, "copy": copy}
            if not supervised:
                return _floating(validate_data(self, X, **options))
            X, y = validate_data(self, X, y, **numbers, **options)
            return _floating(X), y
        X = as_numpy(X)
        if length(X) == 0:
            raise ValueError(f"{type(self).__name__} needs at least one point, got none")
        if reset:
            for learned in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(learned, None)  # of an earlier fit, on vectors
        if reset or copy:  # a fit: changes of these objects must not change the model
            X = snapshot(X, arrays=copy)
        if supervised:
            y = validate_data(self, y=y, X="no_validation", **numbers)
            if len(y) != length(X):
                what = "labels" if labels else "targets"
                raise ValueError(f"{length(X)} points, but {len(y)} {what}")
        by_places = isinstance(kernel := self._given, Kernel) and not kernel._reads_names()
        if is_table(X) and len(X.shape) == 2 and by_places:
            _check_feature_names(self, X, reset=reset)
        return (X, y) if supervised else X

    def _sample(
        self,
        X: Any,
        y: Any = NO_TARGETS,
        sample_weight: Any = None,
        *,
        labels: bool = False,
        copy: bool = True,
        reset: bool = True,
    ) -> Sample:
        """Check what a fit is given: points and, for a supervised model, numbers or labels."""
        given, supervised = self._precomputed, y is not NO_TARGETS
        checked = self._check_points(
            X, y, reset=reset, copy=copy and not given, supervised=supervised, labels=labels
        )
        X, y = checked if supervised else (checked, None)
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        sample = Sample.of(X, weights, precomputed=given, order=self._order)
        if labels:
            check_classification_targets(y)
            return sample.with_labels(y, getattr(self, "class_weight", None), type(self).__name__)
        return sample.with_targets(y) if supervised else sample

    def _takes(self, X: Any) -> bool:
        """Tell whether X is to be a matrix of numbers: the kernel says so, or X looks like one."""
        kernel = self._given
        if isinstance(kernel, (str, SklearnGPKernel)):
            return True
        if isinstance(kernel, Kernel) and kernel.on_vectors:
            return True
        if isinstance(kernel, Kernel) and not kernel.reads_matrix:
            return False
        if is_table(X):  # a kernel that is not one of vectors reads it by names
            return not isinstance(kernel, Kernel)
        if sp.issparse(X):
            return True
        try:
            array = np.asarray(X)
        except ValueError:  # ragged: sets, strings, graphs ...
            return False
        return array.ndim == 2 and array.dtype.kind in "biuf"

    @property
    def reduction_(self) -> Reduction | None:
        """The certificate of an estimator that `compress` has returned; None for others."""
        return getattr(self.expansion_, "reduction", None)

    def _new(self, X: Any) -> Any:
        """Return new points, checked, in float64: for distances, which are small differences."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        return X if self._precomputed else doubled(X)

    def _own(self, X: Any, training: Any, what: str) -> np.ndarray:
        """Return k(x, x), if X has it; `training` is that of the training points.

        A matrix k(X, X_fit) that the user computed has it on its diagonal if X is X_fit, and not if
        X are as many other points.
        """
        if self._precomputed:
            square = X.shape[0] == X.shape[1]
            if not square or not np.allclose(X.diagonal(), training, rtol=1e-5):
                raise ValueError(
                    f"{what} need k(x, x), which k(X, X_fit) of shape {X.shape} holds only if X "
                    f"are the training points; fit with a kernel, or with kernel=Precomputed(K) "
                    f"and indices as points"
                )
        return np.asarray(self.kernel_.diag(X), dtype=np.float64)

    @threaded
    def _values(self, X: Any) -> np.ndarray:
        """Return f(x_i) + b, (n, q), in tiles."""
        check_is_fitted(self)
        return self.expansion_(self._check_points(X, reset=False)) + self.intercept_

    def _compress(self, shrink: Function[[Expansion], Expansion | Primal]) -> None:
        """Replace the expansion of this copy of a fitted estimator by one in fewer points.

        Called by `compress`, and by `to_primal`, which leaves no points at all.  For an estimator
        that has learned more than an expansion, this is the place to bring the rest in line.
        """
        small = shrink(self.expansion_)
        if isinstance(small, Primal):
            self.expansion_ = small
            for part in ("X_fit_", "dual_coef_"):
                self.__dict__.pop(part, None)
            return
        self.expansion_ = replace(small, kernel=self.expansion_.kernel)
        if hasattr(self, "X_fit_"):
            self.X_fit_ = small.points
        if hasattr(self, "dual_coef_"):
            flat = self.dual_coef_.ndim == 1
            self.dual_coef_ = small.coefficients[:, 0] if flat else small.coefficients

    def _to_primal(self, max_memory: Any) -> None:
        """Replace the expansion of this copy of a fitted estimator by the weights of features."""
        self._compress(lambda f: f.to_primal(max_memory=max_memory))

    def _set_expansion(self, f: Expansion, intercept: np.ndarray, flat: bool) -> None:
        """Set scikit-learn's names for f and its intercepts; without an axis for one target."""
        self.expansion_, self.X_fit_ = f, f.points
        self.dual_coef_ = f.coefficients[:, 0] if flat else f.coefficients
        self.intercept_ = float(intercept[0]) if flat else intercept

    @property
    def _one_target(self) -> bool:
        """Whether targets came without an axis of their own, as predictions then go."""
        return np.ndim(self.intercept_) == 0

    @property
    def _teller(self) -> Function[[str], None] | None:
        """What solvers call with a line of text; None unless the user wants to hear it."""
        return self._say if self.verbose else None

    def _say(self, text: str) -> None:
        with progress(type(self).__name__, self.verbose) as say:
            if say is not None:
                say(text)


@estimator(kw_only=True)
class NamedKernel(KernelEstimator):
    """An estimator whose kernel may be given by name.

    Parameters
    ----------
    gamma : float, "scale", "auto", "median", "scott", "silverman" or None
        For kernels given by name; None for 1 / n_features (1 for chi2).  The rules see sample
        weights and class weights as repetitions: a point of weight 2 counts as two points.  A
        Kernel or a callable has its own parameters: with one, `fit` raises an error if gamma,
        degree or coef0 differ from their defaults.
    degree : int
        For "poly".
    coef0 : float
        For "poly" and "sigmoid".
    kernel_params : dict or None
        Further arguments of a callable.
    """

    gamma: float | str | None = parameter(POSITIVE, StrOptions(set(RULES)), None, default=None)
    degree: float = parameter(AT_LEAST_0, default=3)
    coef0: float = parameter(Interval(Real, None, None, closed="neither"), default=1)
    kernel_params: dict | None = parameter(dict, None, default=None)

    # parameters of kernels given by name; kernel_params are also those of a callable
    _of_names: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0", "kernel_params")

    @classmethod
    def _defaults_of_names(cls) -> dict[str, Any]:
        """Return the parameters of kernels given by name, with their defaults."""
        return {name: getattr(cls, name) for name in cls._of_names}

    def _refuse_unused(self) -> None:
        """Raise an error if a parameter of named kernels is set, but no kernel is given by name."""
        kernels = [spelled_out(getattr(self, name)) for name in self._kernels]
        if any(isinstance(kernel, str) for kernel in kernels):
            return
        function = any(
            callable(kernel) and not isinstance(kernel, Kernel | SklearnGPKernel)
            for kernel in kernels
        )
        for name, default in self._defaults_of_names().items():
            value = getattr(self, name)
            used = function and name == "kernel_params"
            if value is default or used or (isinstance(value, str | Real) and value == default):
                continue
            kernel = kernels[0]
            raise ValueError(
                f"{type(self).__name__} has {name}={value!r} and the kernel {kernel!r:.200}, which "
                f"would ignore it: {name} belongs to kernels given by name, such as 'rbf' or "
                f"'poly'. {_remedy(kernel, name, value)}, and leave {name} at its default, "
                f"{default!r}"
            )

    def _make_kernel(self, gamma: Any) -> Kernel:
        self._refuse_unused()
        return as_kernel(
            self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _resolved_gamma(self, kernel: Kernel) -> Any:
        """Return the number that gamma stands for; gamma itself if the kernel has none."""
        if not isinstance(self.gamma, str) and not isinstance(self._given, Kernel):
            return 1.0 / getattr(self, "n_features_in_", 1) if self.gamma is None else self.gamma
        if hasattr(kernel, "gamma"):
            return kernel.gamma
        scale = getattr(kernel, "length_scale", None)
        if scale is None or np.ndim(scale):
            return self.gamma  # a kernel without a gamma: the rule was not used
        return 1.0 / scale if isinstance(kernel, Laplacian) else 0.5 / scale**2


@estimator(kw_only=True)
class Landmarked(BaseEstimator):
    """An estimator with a solver that seeks f in the span of landmarks.

    Parameters
    ----------
    rank : int or None
        How many landmarks; 1000 by default, or all points if there are fewer.
    landmarks : str or points
        How landmarks are chosen ("kmeans", "medoids", "rpcholesky", "uniform", "kmeans++",
        "leverage"), or they themselves.  "auto" is "kmeans" for radial kernels on dense vectors,
        else "rpcholesky".
    random_state : int, RandomState or None
        For all that is drawn, such as landmarks; None stands for 0, so that fits repeat.
    """

    rank: int | None = parameter(COUNT, None, default=None)
    landmarks: Any = parameter(
        StrOptions(set(METHODS)), "array-like", "sparse matrix", default="auto"
    )
    random_state: Seed = parameter("random_state", default=None)

    @property
    def _chosen(self) -> Landmarks:
        return Landmarks(self.rank, self.landmarks, self.random_state)


def _remedy(kernel: Any, name: str, value: Any) -> str:
    """Return how to give a parameter of named kernels to a kernel that is not given by name."""
    if name == "kernel_params":
        return "Set the parameters of the kernel itself"
    if not isinstance(kernel, Kernel):
        if callable(kernel) and not isinstance(kernel, SklearnGPKernel):
            return f"Pass it to the function with kernel_params={{{name!r}: {value!r}}}"
        return "Set the parameters of the kernel itself"
    kind = type(kernel).__name__
    if name == "gamma" and hasattr(kernel, "from_gamma"):
        return f"Write kernel={kind}.from_gamma({value!r})"
    if name in kernel.get_params(deep=False):
        return f"Write kernel={kind}({name}={value!r})"
    return "Set the parameters of the kernel itself"


def is_ready(model: BaseEstimator, X: Any, reset: bool) -> bool:
    """Tell whether scikit-learn's validation, which is slow, would return vectors as they are."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.size:
        return False
    known = model.__dict__
    same = X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known
    return (reset or same) and X.flags.c_contiguous and _all_finite(X)


def taken(model: BaseEstimator, X: np.ndarray, reset: bool) -> np.ndarray:
    """Return vectors that are ready; with `reset` the model remembers how wide they are."""
    if reset:
        model.n_features_in_ = X.shape[1]
        model.__dict__.pop("feature_names_in_", None)
    return X


def _are_ready(y: Any, n: int) -> bool:
    """Tell whether scikit-learn's validation would return targets as they are."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "biu" or (y.dtype == np.float64 and _all_finite(y))


def _all_finite(a: np.ndarray) -> bool:
    """Tell whether the sum is finite, which it is only if all of a is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(a.sum()))


def _floating(X: Any) -> Any:
    """Return X as it is in float32 or float64, and anything else (integers, bool) as float64."""
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
