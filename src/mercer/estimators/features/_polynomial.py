"""Random features of the polynomial kernel by tensor sketching."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from ..._runtime import random_numbers
from ...gram import CountSketchMap
from ...kernels import Polynomial
from .._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._features import FeatureTransformer

__all__ = ["PolynomialCountSketch"]


@estimator()
class PolynomialCountSketch(FeatureTransformer):
    """Random features of the polynomial kernel by tensor sketching.

        phi(x) = C_1 y * ... * C_p y,     E phi(x) . phi(z) = (gamma <x, z> + coef0)^p

    Here * is circular convolution, y consists of sqrt(gamma) x and sqrt(coef0), and each count
    sketch C_i adds up the coordinates with random signs in n_components buckets.  A drop-in
    replacement for scikit-learn's `PolynomialCountSketch`.  Buckets are assigned without
    replacement, so that coordinates share a bucket only if there are more coordinates than
    features.  The expectation is the same, and the error is smaller.

    Parameters
    ----------
    gamma : float
        Factor of the inner product.
    degree : int
        The degree p.
    coef0 : float
        The constant term; not negative.
    n_components : int
        Number of features.  More features have a smaller error.

    Attributes
    ----------
    indexHash_ : ndarray of shape (degree, n_features), one column more if coef0 is not 0
        The bucket of each coordinate.
    bitHash_ : ndarray of the same shape
        The sign of each coordinate.
    kernel_ : Polynomial
        The kernel that is approximated.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PolynomialCountSketch
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> F = PolynomialCountSketch(degree=2, n_components=1024).fit_transform(X)
    >>> bool(np.abs(F @ F.T - (X @ X.T) ** 2).mean() < 0.2)
    True
    """

    _: KW_ONLY
    gamma: float = parameter(POSITIVE, default=1.0)
    degree: int = parameter(COUNT, default=2)
    coef0: float = parameter(AT_LEAST_0, default=0)
    n_components: int = parameter(COUNT, default=100)

    indexHash_: np.ndarray = learned()
    bitHash_: np.ndarray = learned()

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Assign the columns to buckets; only the number of columns of X matters, y is ignored."""
        X = self._check(X, reset=True)
        self.kernel_ = Polynomial(self.degree, self.coef0, self.gamma)
        rng = random_numbers(self.random_state)
        self._map = CountSketchMap.on(self.kernel_, X.shape[1], self.n_components, rng)
        self.indexHash_, self.bitHash_ = self._map.buckets, self._map.signs
        return self
