"""Probabilistic PCA as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from ..._core import Points, progress
from ...models.embedding import LinearGaussian, fit_ppca, fit_ppca_missing
from .._parameters import (
    POSITIVE,
    POSITIVE_INTEGER,
    estimator,
    fit_method,
    fitted_attribute,
    parameter,
)
from .._plan_method import PlanMixin
from ._latent_model import LatentModelMixin

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
        The number of latent dimensions, smaller than the number of columns.  None means 2, or 1
        if there are only two columns.
    tol : float
        If values are missing, the EM algorithm stops when an iteration improves the log likelihood
        per row by less than this.
    max_iter : int
        Maximum number of EM iterations.
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

    References
    ----------
    Tipping & Bishop (1999), Probabilistic principal component analysis.

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

    n_components: int | None = parameter(POSITIVE_INTEGER, None, default=None)
    _: KW_ONLY
    tol: float = parameter(POSITIVE, default=1e-6)
    max_iter: int = parameter(POSITIVE_INTEGER, default=1000)
    verbose: int = parameter("boolean", Interval(Integral, 0, None, closed="left"), default=0)

    model_: LinearGaussian = fitted_attribute()
    _accepts_nan: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: Any = None) -> Self:
        """Fit the model by maximum likelihood; NaN marks missing values, and y is ignored."""
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
