"""Kernel weights that maximise the marginal likelihood of a Gaussian process (ML-II)."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core import warn_caller
from ...kernels import Fixed
from ..gp import RidgeCriterion, maximise
from ._closed_form_weights import WeightingProblem, weighted_sum

__all__ = ["marginal_likelihood_weights"]

_INITIAL_SIGNAL_TO_NOISE = (
    10.0  # variance of f relative to the noise variance at the start of the search
)
_WEIGHT_BOUNDS = (1e-4, 1e8)  # bounds of a weight, relative to the noise variance
# A weight below this fraction of the largest is set to 0: such a weight was approaching its lower
# bound.
_NEGLIGIBLE_WEIGHT = 1e-3


def marginal_likelihood_weights(problem: WeightingProblem) -> np.ndarray:
    """Return the weights v that maximise the marginal likelihood p(Y | v) of a Gaussian process.

    The covariance is c (sum_k v_k K_k + diag(1 / w)) with sample weights w and the optimal factor
    c.  A constant mean is integrated out.  Class labels are one-hot encoded and treated as numbers.
    """
    p = len(problem.kernels)
    kernel = weighted_sum(
        [Fixed(k) for k in problem.kernels], np.full(p, _INITIAL_SIGNAL_TO_NOISE / p)
    )
    noise = 0.0 if problem.weights is None else 1.0 / problem.weights
    objective = RidgeCriterion(
        kernel,
        problem.X,
        problem.Y,
        noise,
        problem.max_memory,
        free=False,
        intercept=True,
        criterion="likelihood",
    )
    result = maximise(objective, objective.start, np.tile(np.log(_WEIGHT_BOUNDS), (p, 1)))
    if not result.converged:
        warn_caller(
            f"the search for the weights of {p} kernels stopped after {result.evaluations} "
            f"evaluations at a log marginal likelihood of {result.value:.6g} without convergence: "
            f"{result.message}",
            ConvergenceWarning,
        )
    v = np.exp(result.theta)
    return np.where(v > _NEGLIGIBLE_WEIGHT * v.max(), v, 0.0)
