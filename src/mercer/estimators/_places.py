"""What estimators of maps have in common: places of rows, the way back, densities, draws.

`Mapped` asks a fitted `model_` for all of it; `LatentVariables` adds what a search for places
needs: data that have some, and a start.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._points import refuse_structured
from .._runtime import is_count, random_numbers
from ..kernels import Kernel
from ..maps import principal_places, whitened
from ..solvers import Report
from ._base import KernelEstimator
from ._explorable import Explorable
from ._parameters import COUNT, POSITIVE, estimator, learned, parameter, threaded
from ._pca import KernelPCA

__all__ = ["LatentVariables", "Mapped", "check_places", "number_of_components", "refuse_equal"]


def number_of_components(given: int | None, d: int) -> int:
    """Return the number of dimensions of a map of vectors: not more than they have."""
    q = max(1, min(2, d - 1)) if given is None else int(given)
    if q > d:
        raise ValueError(f"n_components={q}, but X has only n_features={d}: ask for at most {d}")
    return q


def refuse_equal(n: int, equal: bool) -> None:
    """Refuse points of which no map can be made."""
    if equal:
        raise ValueError(
            f"all {n} rows of X are equal, and there is nothing to be mapped; the usual cause is "
            f"columns that are constant"
        )


def check_places(model: Any, Z: Any, q: int) -> np.ndarray:
    """Return places in a map of q dimensions, checked."""
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="X", estimator=model))
    if Z.shape[1] != q:
        raise ValueError(f"places have {q} coordinates, but X has {Z.shape[1]} columns")
    return Z


class Mapped(Explorable, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """An estimator whose `model_` has `place`, `expected`, `log_density` and `draw`."""

    model_: Any
    _takes_gaps: ClassVar[bool] = False

    @threaded
    def transform(self, X: Any) -> np.ndarray:
        """Return the place z of each row, given the map."""
        check_is_fitted(self)
        return np.asarray(self.model_.place(self._check(X)))

    @threaded
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the expected x at each place z."""
        check_is_fitted(self)
        return np.asarray(self.model_.expected(check_places(self, X, self._n_features_out)))

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log density of each row, as `model_` has it."""
        check_is_fitted(self)
        return np.asarray(self.model_.log_density(self._check(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw points x, shape (n_samples, n_features); `random_state=None` stands for 0."""
        check_is_fitted(self)
        if not is_count(n_samples):
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        return np.asarray(self.model_.draw(n_samples, random_numbers(random_state)))

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.n_components)

    def _check(self, X: Any, reset: bool = False, **options: Any) -> np.ndarray:
        name = type(self).__name__
        refuse_structured(X, name)
        kinds = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        X = np.asarray(validate_data(self, X, reset=reset, **kinds, **options))
        gaps = 0 if self._takes_gaps else np.isnan(X).any(axis=1).sum()
        if gaps:
            raise ValueError(
                f"Input X contains NaN in {gaps} of {len(X)} rows, and {name} places whole rows; "
                f"ProbabilisticPCA takes gaps, and fills them: inverse_transform(transform(X))"
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = self._takes_gaps
        return tags


@estimator(kw_only=True)
class LatentVariables(Mapped, KernelEstimator):
    """A map whose places are searched for, with a kernel of places.

    Parameters
    ----------
    init : {"pca", "kernel_pca"} or array of shape (n, n_components)
        Where the search starts.  There are many optima, and a start at random leads to a bad one.
        The first two are scaled to a variance of 1 in each direction.
    tol : float
        The search ends where ten steps gain less than this in log likelihood each, per entry of X.
    max_iter : int
        The most steps.
    """

    kernel: Any = parameter(None, Kernel, str, default=None)
    init: Any = parameter(StrOptions({"pca", "kernel_pca"}), "array-like", default="pca")
    tol: float = parameter(POSITIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=1000)

    kernel_: Kernel = learned()
    report_: Report = learned()
    log_likelihood_: float = learned()

    def summary(self) -> str:
        """Return what was fitted, and how far the search went, as text."""
        check_is_fitted(self)
        n, q = self.embedding_.shape
        head = f"{type(self).__name__} of {n} points in {q} dimension{'s' if q != 1 else ''}"
        lines = [f"kernel     {self.kernel_}", *self._words(), *str(self.report_).splitlines()]
        return "\n  ".join([head, *lines])

    def _words(self) -> list[str]:
        """Return the lines of a summary that are an estimator's own."""
        return []

    @property
    def embedding_(self) -> np.ndarray:
        return np.asarray(self.model_.places)

    @property
    def n_iter_(self) -> int:
        return self.report_.n_iter

    def _given_rows(self, X: Any) -> np.ndarray:
        """Return a copy of the data of a fit, of which some must differ."""
        X = self._check(X, reset=True, copy=True, ensure_min_samples=2)
        refuse_equal(len(X), not np.ptp(X, axis=0).any())
        return X

    def _settle(self, found: Any) -> Self:
        """Make what a search has found that of the model, and say it."""
        self.model_, self.log_likelihood_, self.report_ = found
        self.expansion_ = self.model_.expansion
        self.kernel_ = self.expansion_.kernel
        name = next(iter(self.report_.certificate))
        self._say("; ".join([f"{name} {self.log_likelihood_:.6g}, {self.kernel_}", *self._words()]))
        return self

    def _start(self, X: np.ndarray, q: int) -> np.ndarray:
        n, d = X.shape
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init", estimator=self)
            if start.shape != (n, q):
                raise ValueError(f"init has shape {start.shape}, but places have shape {(n, q)}")
            return start
        if self.init == "kernel_pca":
            if q >= n:
                raise ValueError(
                    f"n_components={q}, but kernel PCA of {n} points has at most {n - 1} "
                    f"dimensions; give places as init"
                )
            model = KernelPCA(n_components=q, kernel="rbf", gamma="median")
            return whitened(model.fit_transform(X))
        if q > min(n, d):
            raise ValueError(
                f"n_components={q}, but PCA of {n} points has at most {min(n, d)} dimensions for "
                f"n_features={d}; give places as init, or init='kernel_pca'"
            )
        return whitened(principal_places(X, q))

    def _reads_values(self, kernel: Any) -> bool:
        return False  # the kernel compares places, and not X

    def _compress(self, shrink: Any) -> None:
        name = type(self).__name__
        raise TypeError(f"a {name} on fewer points is one that was fitted to fewer points")
