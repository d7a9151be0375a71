"""Probabilistic PCA, and the base class of all latent variable models.

`LatentModelMixin` implements `transform`, `inverse_transform`, `score_samples` and `sample` with a
fitted `model_`, for ProbabilisticPCA, GPLVM and BayesianGPLVM.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..._core import Points, RandomState, is_count, progress, reject_structured, seeded_generator
from ...models.embedding import LinearGaussian, fit_ppca, fit_ppca_missing
from .._kernel_estimator import ExploreMixin
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._plan_method import PlanMixin


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
        """Return the latent coordinates z of each row of X.

        These are the posterior means for `ProbabilisticPCA` and `BayesianGPLVM`, and the
        coordinates that maximise the posterior density for `GPLVM`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data. `ProbabilisticPCA` accepts
            missing values (NaN).

        Returns
        -------
        ndarray of shape (n, n_components)
            The latent coordinates.
        """
        check_is_fitted(self)
        return np.asarray(self.model_.place(self._check(X)))

    @predict_method
    def inverse_transform(self, X: Points) -> np.ndarray:
        """Return the expected data point x for each row of latent coordinates.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Latent coordinates, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)
            Points in the units of the training data.
        """
        check_is_fitted(self)
        return np.asarray(
            self.model_.expected(check_latent_coordinates(self, X, self._n_features_out))
        )

    @predict_method
    def score_samples(self, X: Points) -> np.ndarray:
        """Return the log density of each row of X under the model.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data. `ProbabilisticPCA` accepts
            missing values (NaN).

        Returns
        -------
        ndarray of shape (n,)
            log p(x) for `ProbabilisticPCA`, log p(x | z) at the latent coordinates z of x for
            `GPLVM`, and a lower bound of log p(x) for `BayesianGPLVM`.
        """
        check_is_fitted(self)
        return np.asarray(self.model_.log_density(self._check(X)))

    def score(self, X: Points, y: object = None) -> float:
        """Return the mean of `score_samples`, for model selection.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data. `ProbabilisticPCA` accepts
            missing values (NaN).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        float
            The mean log density per row; larger is better.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> np.ndarray:
        """Draw random data points from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, Generator, RandomState or None, default=None
            Seed; None means 0, so that draws are reproducible.

        Returns
        -------
        ndarray of shape (n_samples, d)
            Random points, one per row, including noise.
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = self._accepts_nan
        return tags


# Values above this, or columns that vary by less than its reciprocal, are rejected, because their
# squares would overflow or underflow float64.
_MAX_MAGNITUDE = 1e140


@estimator()
class ProbabilisticPCA(LatentModelMixin, PlanMixin, BaseEstimator):
    """Probabilistic PCA: a linear-Gaussian latent variable model that accepts missing values.

        x = W z + mu + e,    z ~ N(0, I),    e ~ N(0, noise I)

    The maximum-likelihood W spans the subspace of the leading principal components, and the noise
    is the mean variance outside it.  Missing values (NaN) are allowed in all methods, and are
    integrated out. ``inverse_transform(transform(X))`` contains the expected values of missing
    entries.

    Parameters
    ----------
    n_components : int or None
        The number of latent dimensions, smaller than the number of columns. None means 2, or 1 if
        there are only two columns. Choose it by the `score` of held-out rows.
    tol : float
        If values are missing, the EM algorithm stops when an iteration improves the log likelihood
        per row by less than this. Complete data have a closed-form solution and do not need it.
    max_iter : int
        Maximum number of EM iterations. EM is slow if many values are missing.
    verbose : int
        Whether to print the progress of EM and the result.

    Attributes
    ----------
    model_ : LinearGaussian
        The model with mu, W and the noise.
    mean_ : ndarray of shape (n_features,)
        The mean mu.
    loadings_ : ndarray of shape (n_features, n_components)
        The matrix W, with orthogonal columns in descending order of length.
    noise_variance_ : float
        The maximum-likelihood estimate of the noise variance, with divisor n (scikit-learn's `PCA`
        uses n - 1).
    log_likelihoods_ : ndarray of shape (n_iter_,)
        The mean log likelihood per row after each iteration.
    n_iter_ : int
        Number of EM iterations; 1 if no values are missing.
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    KernelPCA : Nonlinear components, and points of any type.
    GPLVM : The nonlinear generalisation, with Gaussian processes.
    Autoencoder : A nonlinear embedding by a neural network.
    sklearn.decomposition.PCA : PCA without missing values, with n - 1 as the divisor of variances.
    sklearn.decomposition.FactorAnalysis : A separate noise variance for each column.

    References
    ----------
    Tipping and Bishop, "Probabilistic principal component analysis", Journal of the Royal
    Statistical Society, Series B 61, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ProbabilisticPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)) * [2.0, 1.0, 1.0] + 0.1 * rng.normal(size=(300, 3))
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> round(model.noise_variance_, 3), model.transform(X[:3]).shape
    (0.009, (3, 1))
    >>> X[5, 0] = np.nan  # column 0 is about twice column 1
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> filled = model.inverse_transform(model.transform(X))
    >>> bool(abs(filled[5, 0] - 2.0 * X[5, 1]) < 0.2)
    True
    """

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    tol: float = parameter("positive", default=1e-6)
    max_iter: int = parameter("positive integer", default=1000)
    verbose: int = parameter("boolean", "non-negative integer", default=0)

    model_: LinearGaussian = fitted()
    log_likelihoods_: np.ndarray = fitted()
    n_iter_: int = fitted()
    _accepts_nan: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Fit the model by maximum likelihood.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data. NaN marks missing values; each column needs observed values.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : ProbabilisticPCA
            The fitted estimator.
        """
        X = self._check(X, reset=True, ensure_min_samples=2)
        (_, d), is_observed = X.shape, np.isfinite(X)
        q = self.n_components or max(1, min(2, d - 1))
        if q >= d:
            raise ValueError(
                f"n_components={q} must be smaller than n_features={d}, "
                f"because the noise variance is estimated from the remaining dimensions"
            )
        if not is_observed.any(axis=0).all():
            empty = np.flatnonzero(~is_observed.any(axis=0))
            raise ValueError(f"all values in columns {empty.tolist()} are missing; remove them")
        if np.all(np.nanmin(X, axis=0) == np.nanmax(X, axis=0)):
            raise ValueError(
                f"all {len(X)} rows of X are equal, so there is no variance to explain; the usual "
                f"cause is constant columns"
            )
        _check_magnitude(X)
        if is_observed.all():
            result = fit_ppca(X, q)
        else:
            with progress(type(self).__name__, self.verbose) as log:
                result = fit_ppca_missing(X, q, self.tol, self.max_iter, log)
        self.model_, self.log_likelihoods_ = result
        self.n_iter_ = len(self.log_likelihoods_)
        with progress(type(self).__name__, self.verbose) as log:
            if log is not None:
                log(
                    f"{q} of {d} dimensions, log likelihood {self.log_likelihoods_[-1]:.6g} per row"
                )
        return self

    @property
    def mean_(self) -> np.ndarray:
        """The mean mu, shape (n_features,)."""
        return self.model_.mean

    @property
    def loadings_(self) -> np.ndarray:
        """The matrix W, shape (n_features, n_components)."""
        return self.model_.loadings

    @property
    def noise_variance_(self) -> float:
        """The variance of the noise e in each dimension."""
        return self.model_.noise


def _check_magnitude(X: np.ndarray) -> None:
    """Raise an error if squares of the values would overflow or underflow; NaN is ignored."""
    largest = float(np.nanmax(np.abs(X)))
    widest = float(np.nanmax(np.nanmax(X, axis=0) - np.nanmin(X, axis=0)))
    if largest > _MAX_MAGNITUDE or widest < 1.0 / _MAX_MAGNITUDE:
        raise ValueError(
            f"X has values up to {largest:.1e}, and no column varies by more than {widest:.1e}: "
            f"the squares overflow or underflow. Rescale X"
        )
