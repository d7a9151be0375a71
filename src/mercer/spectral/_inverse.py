"""The map from scores back to points that is learned by kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._runtime import entry_point
from ..expansion import Expansion
from ..gram import gram
from ..kernels import RBF, Kernel, Linear
from ..preimage import choose_map, evenly
from ..solvers import Cholesky, LeastSquares

__all__ = ["LearnedInverse"]


@entry_point
@dataclass(frozen=True, eq=False)
class LearnedInverse:
    """x = centre + sum_i b_i k(t_i, .), for the scores t_i of the points x_i that it learned from.

    The kernel of the scores, and the ridge if it is not given, are chosen by leave-one-out.
    """

    expansion: Expansion
    centre: np.ndarray
    ridge: float

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        X: Any,
        weights: np.ndarray | None,
        ridge: float | None,
        *,
        max_memory: Any = None,
    ) -> Self:
        """Learn the map from the scores of the points X."""
        if sp.issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        if not (isinstance(X, np.ndarray) and X.ndim == 2):
            raise TypeError(
                f"fit_inverse_transform learns points that are vectors, and these are a "
                f"{type(X).__name__}; denoise and inverse_transform(X, method='nearest') take any"
            )
        some = evenly(len(scores))
        T = scores[some].astype(float)
        choice = choose_map(T @ T.T, X[some].astype(float), ridge)
        kernel: Kernel = Linear() if choice.width is None else RBF(choice.width)
        K = gram(kernel, scores, storage="dense", max_memory=max_memory)
        shift = choice.shift if weights is None else choice.shift / weights
        centre = np.average(X, axis=0, weights=weights)
        solver = Cholesky() if np.all(shift > 0) else LeastSquares()  # alpha=0: K may be singular
        coefficients = solver.factorize(K, shift, overwrite=True).solve(X - centre)
        return cls(Expansion(kernel, scores, coefficients), centre, choice.shift)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return self.centre + self.expansion(scores)
