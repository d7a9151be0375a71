"""The inverse transform of kernel PCA, learned by kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from ..._core import MemoryLimit, Points, entry_point
from ...expansion import Expansion
from ...expansion.preimage import choose_regression_map, evenly_spaced_indices
from ...gram import gram
from ...kernels import RBF, Kernel, Linear
from ...solvers import Cholesky, LeastSquares


@entry_point
@dataclass(frozen=True, eq=False)
class LearnedInverse:
    """Map from scores to points, learned by kernel ridge regression.

        x(t) = centre + sum_i b_i k(t_i, t),

    where t_i are the scores of the training points x_i.  The kernel k of the scores is chosen by
    the leave-one-out error, and so is the ridge if it is None.

    Attributes
    ----------
    expansion : Expansion
        The functions sum_i b_i k(t_i, .), one per feature.
    centre : ndarray of shape (d,)
        The weighted mean of the training points.
    ridge : float
        The regularisation that was used.
    """

    expansion: Expansion
    centre: np.ndarray
    ridge: float

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        X: Points,
        weights: np.ndarray | None,
        ridge: float | None,
        *,
        max_memory: MemoryLimit = None,
    ) -> Self:
        """Learn the map from the scores to the points X."""
        if sp.issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        if not (isinstance(X, np.ndarray) and X.ndim == 2):
            raise TypeError(
                f"fit_inverse_transform requires points that are vectors, got a "
                f"{type(X).__name__}; denoise and inverse_transform(X, method='nearest') accept "
                f"any points"
            )
        subset = evenly_spaced_indices(len(scores))
        subset_scores = scores[subset].astype(float)
        choice = choose_regression_map(
            subset_scores @ subset_scores.T, X[subset].astype(float), ridge
        )
        kernel: Kernel = Linear() if choice.width is None else RBF(choice.width)
        K = gram(kernel, scores, storage="dense", max_memory=max_memory)
        diagonal = choice.shift if weights is None else choice.shift / weights
        centre = np.average(X, axis=0, weights=weights)
        # without a ridge, K may be singular
        solver = Cholesky() if np.all(diagonal > 0) else LeastSquares()
        coefficients = solver.factorize(K, diagonal, overwrite=True).solve(X - centre)
        return cls(Expansion(kernel, scores, coefficients), centre, choice.shift)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the points for scores of shape (n, k)."""
        return self.centre + self.expansion(scores)
