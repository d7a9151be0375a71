"""The Parzen density: the mean embedding of a sample, with a kernel that is a density."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._points import refuse_structured
from .._runtime import random_numbers
from ..blocks import Blocks
from ..expansion import Expansion
from ..kernels import RBF, Kernel, Laplacian, Matern, Scale, as_kernel
from ..means import Window, choose_bandwidth, log_sums
from ._in_blocks import gathered
from ._parameters import POSITIVE, estimator, fitting, parameter, threaded
from ._sample import Sample, check_weights

__all__ = ["ParzenDensity"]

_NAMES = {"gaussian": RBF(), "exponential": Matern(nu=0.5), "laplacian": Laplacian()}


@estimator(kw_only=True)
class ParzenDensity(DensityMixin, BaseEstimator):
    """The density p(x) = sum_i w_i k((x - x_i) / h) / (c h^d), the mean of normalised kernels.

    Parameters and methods are those of scikit-learn's `KernelDensity`, where it has them.  Sums are
    exact, over all points, in tiles, and in logarithms: far from all points the log density is what
    it should be, not -inf.

    Parameters
    ----------
    bandwidth : float, "scott", "silverman" or "loo"
        h: a number; a power of n, n^(-1/(d+4)) or (n (d+2) / 4)^(-1/(d+4)), for columns of unit
        variance, where n = 1 / sum_i w_i^2 is the number of points if their weights are equal, as
        in SciPy's `gaussian_kde` (scikit-learn counts rows whatever their weights, also those of
        weight 0); or the h with the greatest leave-one-out likelihood sum_i w_i log p_(-i)(x_i),
        for which about 30 passes over all pairs are made.
    kernel : {"gaussian", "exponential", "laplacian"}, Kernel or str
        `RBF()`, `Matern(nu=0.5)`, `Laplacian()`, or any such kernel, also a `RationalQuadratic`
        with alpha > d/2.  Its length scale is in units of h, and may be one number per column.

    Attributes
    ----------
    bandwidth_ : float
        h.
    kernel_ : Kernel
        The kernel with the length scale h, not normalised.
    X_fit_ : ndarray of shape (n, d)
    weights_ : ndarray of shape (n,)
        w, which sum to 1.
    expansion_ : Expansion
        p itself, in the RKHS of the normalised kernel.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ParzenDensity
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = ParzenDensity(bandwidth="loo").fit(X)
    >>> round(model.bandwidth_, 1)
    0.3
    >>> np.exp(model.score_samples([[0.0]])).round(2), model.expansion_([[0.0]]).round(2)
    (array([0.37]), array([[0.37]]))
    >>> bool(np.isfinite(model.score_samples([[1e6]])[0]))
    True
    """

    bandwidth: float | str = parameter(
        POSITIVE, StrOptions({"scott", "silverman", "loo"}), default=1.0
    )
    kernel: str | Kernel = parameter(str, Kernel, default="gaussian")

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep the points, with their weights, and choose the bandwidth."""
        refuse_structured(X, type(self).__name__)
        X = validate_data(self, X, dtype=np.float64, copy=True)
        given = None if sample_weight is None else check_weights(sample_weight, X)
        sample = Sample.of(X, given)
        w = sample.counts / sample.counts.max()
        self.X_fit_, self.weights_ = sample.points, w / w.sum()
        name = self.kernel if isinstance(self.kernel, str) else ""
        kernel = sample.resolve(_NAMES.get(name) or as_kernel(self.kernel))
        h = self.bandwidth
        if isinstance(h, str):
            h = choose_bandwidth(h, kernel, self.X_fit_, self.weights_)
        self.bandwidth_ = h
        self._window = Window.of(kernel, self.bandwidth_, X.shape[1])
        self.kernel_ = self._window.kernel
        return self

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Gather the points, if they fit the budget: the density is made of all of them."""
        self.fit(*gathered(self, X, None, sample_weight))

    @property
    def expansion_(self) -> Expansion:
        """The density as a value: p(x) = expansion_(x)."""
        check_is_fitted(self)
        log_factor = -self._window.log_constant
        if not abs(log_factor) < 700.0:
            raise ValueError(
                f"the density of one kernel at its centre is e^{log_factor:.0f}, which is no "
                f"floating-point number; score_samples works in logarithms"
            )
        normalised = Scale(self.kernel_, float(np.exp(log_factor)))
        return Expansion.mean(normalised, self.X_fit_, self.weights_)

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(x) for each point."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return log_sums(self._window, X, self.X_fit_, self.weights_) - self._window.log_constant

    def score(self, X: Any, y: Any = None) -> float:
        """Return the total log likelihood, sum_i log p(x_i)."""
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw points from p, shape (n_samples, d).

        `random_state=None` stands for 0, as everywhere in mercer: the same points at each call.
        Give a Generator to draw others each time.
        """
        check_is_fitted(self)
        integer = isinstance(n_samples, Integral) and not isinstance(n_samples, bool)
        if not integer or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        rng = random_numbers(random_state)
        centres = rng.choice(len(self.X_fit_), size=n_samples, p=self.weights_)
        return self.X_fit_[centres] + self._window.draw(n_samples, rng)
