"""Mean and standard deviation of new observations, with the same meaning for all models."""

from __future__ import annotations

from inspect import signature
from statistics import NormalDist
from typing import Any

import numpy as np

from .._core import warn_caller
from ._table import TableError


def predict_observations(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of a new observation at each point.

    The standard deviation includes the uncertainty of the fitted function and the noise of one
    observation.  ``predict(X, return_std=True)`` differs between models: `KernelRidge` excludes
    the noise, and `GaussianProcessRegressor` includes the noise of a `White` term, but not
    `alpha`.

    Parameters
    ----------
    model : KernelRidge or GaussianProcessRegressor
        The fitted model, with one target.  `KernelRidge` is interpreted as a Gaussian process whose
        noise variance is `alpha` times a factor that maximises the likelihood, so `alpha` should
        be tuned.
    X : points
        The points.

    Returns
    -------
    mean, std : ndarray of shape (n,)
        Mean and standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.tables import predict_observations
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> model = KernelRidge(alpha=10, kernel="linear", fit_intercept=True).fit(X, y)
    >>> mean, std = predict_observations(model, [[0.5]])
    >>> bool(std > model.predict([[0.5]], return_std=True)[1])
    True
    """
    if not has_observation_std(model):
        raise TableError(
            f"{type(model).__name__} has no standard deviations; use a model from `mercer fit "
            f"ridge` or `mercer fit gp`"
        )
    mean, std = model.predict(X, return_std=True)
    return mean, np.sqrt(np.square(std) + _noise_variance(model))


def predict_observation_interval(model: Any, X: Any, coverage: float) -> np.ndarray:
    """Return intervals that contain new observations with a given probability.

    These are the intervals of ``model.predict_interval``, which do not assume a distribution of the
    noise.  If the model does not support them, for instance because it was compressed, the
    intervals are those of Gaussian noise (`predict_observations`), with a warning.

    Parameters
    ----------
    model : KernelRidge, GaussianProcessRegressor or SVR
        The fitted model, with one target.
    X : points
        The points.
    coverage : float
        The probability, between 0 and 1.

    Returns
    -------
    ndarray of shape (n, 2)
        The lower and upper bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.tables import predict_observation_interval
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> model = KernelRidge(alpha=10, kernel="linear", fit_intercept=True).fit(X, y)
    >>> bounds = predict_observation_interval(model, [[0.5]], 0.9)
    >>> bool(np.all(bounds == model.predict_interval([[0.5]], coverage=0.9)))
    True
    """
    try:
        return np.asarray(model.predict_interval(X, coverage))
    except ValueError as why:
        if not has_observation_std(model):
            raise
        reason = why
    mean, std = predict_observations(model, X)
    warn_caller(f"the intervals assume Gaussian noise, because {reason}")
    factor = NormalDist().inv_cdf((1 + coverage) / 2)
    return np.stack([mean - factor * std, mean + factor * std], axis=1)


def has_observation_interval(model: Any) -> bool:
    """Return True if `predict_observation_interval` supports a model."""
    return has_observation_std(model) or hasattr(model, "calibration_scores_")


def has_observation_std(model: Any) -> bool:
    """Return True if `predict_observations` supports a model."""
    return hasattr(model, "predict") and "return_std" in signature(model.predict).parameters


def _noise_variance(model: Any) -> float:
    """Return the variance of the noise that ``predict(X, return_std=True)`` does not include."""
    if hasattr(model, "_ridge"):  # KernelRidge
        return float(model._ridge.noise_variance()[0])
    alpha, scale = getattr(model, "alpha", 0.0), getattr(model, "_y_train_std", 1.0)
    if np.ndim(alpha):
        raise TableError(
            "alpha contains one noise variance for each training row, so the noise of new rows is "
            "unknown; fit the model with a single alpha, or with White() in the kernel"
        )
    return float(np.ravel(alpha * np.square(scale))[0])
