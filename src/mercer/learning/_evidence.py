"""Weights of kernels by marginal likelihood (ML-II)."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from ..gp import RidgeCriterion, maximise
from ..kernels import Fixed
from ._weights import Candidates, combined

__all__ = ["likelihood"]

_SIGNAL = 10.0  # the variance of f in units of that of the noise, where the search starts
_BOUNDS = (1e-4, 1e8)  # of a weight, in these units
_NONE = 1e-3  # a weight below this part of the largest is 0: it is on its way to the bound


def likelihood(c: Candidates) -> np.ndarray:
    """Return argmax_v p(Y | v) of a Gaussian process: covariance c (sum_k v_k K_k + diag(1 / w)).

    With the best c, and a constant integrated out.  Indicators of classes are taken as numbers.
    """
    p = len(c.kernels)
    kernel = combined([Fixed(k) for k in c.kernels], np.full(p, _SIGNAL / p))
    noise = 0.0 if c.weights is None else 1.0 / c.weights
    objective = RidgeCriterion(
        kernel, c.X, c.Y, noise, c.max_memory, free=False, intercept=True, criterion="likelihood"
    )
    found = maximise(objective, objective.start, np.tile(np.log(_BOUNDS), (p, 1)))
    if not found.converged:
        warn_caller(
            f"the weights of {p} kernels ended after {found.evaluations} evaluations at a log "
            f"marginal likelihood of {found.value:.6g} without convergence: {found.message}",
            ConvergenceWarning,
        )
    v = np.exp(found.theta)
    return np.where(v > _NONE * v.max(), v, 0.0)
