"""Probabilistic PCA, thin: checks, and scikit-learn's names for what `maps` finds."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from .._runtime import progress
from ..maps import LinearGaussian, principal, with_gaps
from ._parameters import COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._places import Mapped

__all__ = ["ProbabilisticPCA"]

_LARGEST = 1e140  # a value, or one over the variation of a column


@estimator()
class ProbabilisticPCA(Mapped, BaseEstimator):
    """x = W z + mu + e, z ~ N(0, I), e ~ N(0, noise I): PCA as a density, which knows of gaps.

    The most likely W spans the plane of PCA, and the noise is the mean variance outside of it.
    Values that are missing (NaN) are integrated out, in `fit` as in all that is asked later:
    ``inverse_transform(transform(X))`` is what is expected in their place.

    Parameters
    ----------
    n_components : int or None
        The number of latent dimensions, less than there are columns; None is 2, or 1 of two.
    tol : float
        Where there are gaps, EM ends when a step gains less than this in log likelihood per row.
    max_iter : int
        The most steps of EM.
    verbose : int
        Whether to say how far EM is, and what was found.

    Attributes
    ----------
    model_ : LinearGaussian
        mu, W and the noise as a value.
    mean_ : ndarray of shape (n_features,)
        mu.
    loadings_ : ndarray of shape (n_features, n_components)
        W: orthogonal columns, the longest first.
    noise_variance_ : float
        With the divisor n, as the likelihood has it (scikit-learn's `PCA` has n - 1).
    log_likelihoods_ : ndarray
        The mean log likelihood of a row after each step; one entry without gaps.
    n_iter_ : int
        The steps of EM; 1 without gaps.
    n_features_in_ : int

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
    >>> X[5, 0] = np.nan  # where 2 x_1 is expected
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> filled = model.inverse_transform(model.transform(X))
    >>> bool(abs(filled[5, 0] - 2.0 * X[5, 1]) < 0.2)
    True
    """

    n_components: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    tol: float = parameter(POSITIVE, default=1e-6)
    max_iter: int = parameter(COUNT, default=1000)
    verbose: int = parameter("boolean", Interval(Integral, 0, None, closed="left"), default=0)

    model_: LinearGaussian = learned()
    _takes_gaps: ClassVar[bool] = True

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the most likely model; NaN is a value that is missing."""
        X = self._check(X, reset=True, ensure_min_samples=2)
        (_, d), there = X.shape, np.isfinite(X)
        q = self.n_components or max(1, min(2, d - 1))
        if q >= d:
            raise ValueError(
                f"n_components={q}, but X has n_features={d}: at least one dimension must be left, "
                f"whose variance is the noise"
            )
        if not there.any(axis=0).all():
            empty = np.flatnonzero(~there.any(axis=0))
            raise ValueError(f"no row of X has a value in columns {empty.tolist()}; leave them out")
        if np.all(np.nanmin(X, axis=0) == np.nanmax(X, axis=0)):
            raise ValueError(
                f"all {len(X)} rows of X are equal, and have no variance to be explained; the "
                f"usual cause is columns that are constant"
            )
        _refuse_scale(X)
        if there.all():
            found = principal(X, q)
        else:
            with progress(type(self).__name__, self.verbose) as say:
                found = with_gaps(X, q, self.tol, self.max_iter, say)
        self.model_, self.log_likelihoods_ = found
        self.n_iter_ = len(self.log_likelihoods_)
        with progress(type(self).__name__, self.verbose) as say:
            if say is not None:
                say(f"{q} of {d} dimensions, log likelihood {self.log_likelihoods_[-1]:.6g} a row")
        return self

    @property
    def mean_(self) -> np.ndarray:
        return self.model_.mean

    @property
    def loadings_(self) -> np.ndarray:
        return self.model_.loadings

    @property
    def noise_variance_(self) -> float:
        return self.model_.noise


def _refuse_scale(X: np.ndarray) -> None:
    """Refuse values whose squares are beyond the range of numbers; NaN are gaps."""
    largest = float(np.nanmax(np.abs(X)))
    widest = float(np.nanmax(np.nanmax(X, axis=0) - np.nanmin(X, axis=0)))
    if largest > _LARGEST or widest < 1.0 / _LARGEST:
        raise ValueError(
            f"X has values up to {largest:.1e}, and no column varies by more than {widest:.1e}: "
            f"squares of these are beyond the range of numbers. Take other units"
        )
