"""Base classes of the latent variable models: ProbabilisticPCA, GPLVM and BayesianGPLVM.

`LatentModelMixin` implements `transform`, `inverse_transform`, `score_samples` and `sample` with a
fitted `model_`.  `GPLVMBase`, for models that optimise the latent coordinates, adds validation of
the data, the initial coordinates and the summary.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..._core import Points, RandomState, is_count, reject_structured, seeded_generator
from ...kernels import Kernel
from ...models.embedding import pca_scores, scale_to_unit_variance
from .._kernel_estimator import ExpansionEstimator, ExploreMixin
from .._parameters import estimator, fitted, parameter, predict_method
from ..decomposition._kernel_pca import KernelPCA


def resolve_n_components(n_components: int | None, d: int) -> int:
    """Return the number of latent dimensions for d columns; None means 2, or 1 if d < 3."""
    q = max(1, min(2, d - 1)) if n_components is None else int(n_components)
    if q > d:
        raise ValueError(f"n_components={q} is too large for n_features={d}; use at most {d}")
    return q


def require_distinct_rows(n: int, equal: bool) -> None:
    """Raise an error if all n rows are equal, because they have no structure to embed."""
    if equal:
        raise ValueError(
            f"all {n} rows of X are equal, so there is no structure to embed; the usual cause is "
            f"constant columns"
        )


def check_latent_coordinates(model: Any, Z: Points, q: int) -> np.ndarray:
    """Check that latent coordinates have q columns, and return them as an array."""
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="X", estimator=model))
    if Z.shape[1] != q:
        raise ValueError(f"the embedding has {q} dimensions, but X has {Z.shape[1]} columns")
    return Z


class LatentModelMixin(ExploreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for estimators whose `model_` has `place`, `expected`, `log_density` and `draw`."""

    model_: Any
    _accepts_nan: ClassVar[bool] = False

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the latent coordinates z of each row of X, shape (n, n_components)."""
        check_is_fitted(self)
        return np.asarray(self.model_.place(self._check(X)))

    @predict_method
    def inverse_transform(self, X: Points) -> np.ndarray:
        """Return the expected data point x for each row of latent coordinates.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Latent coordinates.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        check_is_fitted(self)
        return np.asarray(
            self.model_.expected(check_latent_coordinates(self, X, self._n_features_out))
        )

    @predict_method
    def score_samples(self, X: Points) -> np.ndarray:
        """Return the log density of each row of X under the model, shape (n,)."""
        check_is_fitted(self)
        return np.asarray(self.model_.log_density(self._check(X)))

    def score(self, X: Points, y: Any = None) -> float:
        """Return the mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> np.ndarray:
        """Draw data points from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, Generator, RandomState or None, default=None
            Seed; None means 0, so that draws are reproducible.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if not is_count(n_samples):
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        return np.asarray(self.model_.draw(n_samples, seeded_generator(random_state)))

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.n_components)

    def _check(self, X: Points, reset: bool = False, **options: Any) -> np.ndarray:
        """Check X and return it as a float64 array; NaN is allowed if `_accepts_nan` is True."""
        name = type(self).__name__
        reject_structured(X, name)
        kinds = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        X = np.asarray(validate_data(self, X, reset=reset, **kinds, **options))
        n_incomplete = 0 if self._accepts_nan else np.isnan(X).any(axis=1).sum()
        if n_incomplete:
            raise ValueError(
                f"Input X contains NaN in {n_incomplete} of {len(X)} rows, and {name} needs "
                f"complete rows; ProbabilisticPCA accepts missing values, and imputes them with "
                f"inverse_transform(transform(X))"
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = self._accepts_nan
        return tags


@estimator(kw_only=True)
class GPLVMBase(LatentModelMixin, ExpansionEstimator):
    """Base class of the GPLVMs, which optimise the latent coordinates of the training points.

    Parameters
    ----------
    init : {"pca", "kernel_pca"} or array of shape (n, n_components)
        Initial latent coordinates.  "pca" and "kernel_pca" are scaled to variance 1 in each
        dimension.  The objective has many local optima, and random initial coordinates
        usually lead to a bad one.
    tol : float
        The optimisation stops when each of ten iterations improves the log likelihood per entry of
        X by less than this.
    max_iter : int
        Maximum number of iterations.
    """

    kernel: Any = parameter(None, Kernel, str, default=None)
    init: Any = parameter({"pca", "kernel_pca"}, "array-like", default="pca")
    tol: float = parameter("positive", default=1e-4)
    max_iter: int = parameter("positive integer", default=1000)

    log_likelihood_: float = fitted()

    def summary(self) -> str:
        """Return a string with the kernel, the number of points and the report of the optimiser."""
        check_is_fitted(self)
        n, q = self.embedding_.shape
        head = f"{type(self).__name__} of {n} points in {q} dimension{'s' if q != 1 else ''}"
        lines = [f"kernel     {self.kernel_}", *self._words(), *str(self.report_).splitlines()]
        return "\n  ".join([head, *lines])

    def _words(self) -> list[str]:
        """Return the lines of the summary that are specific to the estimator."""
        return []

    @property
    def embedding_(self) -> np.ndarray:
        """The latent coordinates of the training points, shape (n, n_components)."""
        return np.asarray(self.model_.places)

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the optimiser."""
        return self.report_.n_iter

    def _check_training_data(self, X: Points) -> np.ndarray:
        """Check the training data and return a copy; raise an error if all rows are equal."""
        X = self._check(X, reset=True, copy=True, ensure_min_samples=2)
        require_distinct_rows(len(X), not np.ptp(X, axis=0).any())
        return X

    def _settle(self, result: Any) -> Self:
        """Set the fitted attributes from the result of the optimiser, and log progress."""
        self.model_, self.log_likelihood_, self.report_ = result
        self.expansion_ = self.model_.expansion
        self.kernel_ = self.expansion_.kernel
        name = next(iter(self.report_.certificate))
        self._log_progress(
            "; ".join([f"{name} {self.log_likelihood_:.6g}, {self.kernel_}", *self._words()])
        )
        return self

    def _start(self, X: np.ndarray, q: int) -> np.ndarray:
        """Return the initial latent coordinates, shape (n, q)."""
        n, d = X.shape
        if not isinstance(self.init, str):
            start = check_array(self.init, dtype=np.float64, input_name="init", estimator=self)
            if start.shape != (n, q):
                raise ValueError(
                    f"init has shape {start.shape}, but the embedding has shape {(n, q)}"
                )
            return start
        if self.init == "kernel_pca":
            if q >= n:
                raise ValueError(
                    f"n_components={q}, but kernel PCA of {n} points has at most {n - 1} "
                    f"dimensions; pass initial coordinates as init"
                )
            model = KernelPCA(n_components=q, kernel="rbf", gamma="median")
            return scale_to_unit_variance(model.fit_transform(X))
        if q > min(n, d):
            raise ValueError(
                f"n_components={q}, but PCA of {n} points has at most {min(n, d)} dimensions for "
                f"n_features={d}; pass initial coordinates as init, or init='kernel_pca'"
            )
        return scale_to_unit_variance(pca_scores(X, q))

    def _is_precomputed_kernel(self, kernel: Any) -> bool:
        return False  # the kernel compares latent coordinates, so X is never a kernel matrix

    def _compress(self, shrink: Any) -> None:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be compressed; fit it to fewer points instead")
