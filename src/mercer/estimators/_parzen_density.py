"""Kernel density estimation (Parzen windows)."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import Points, RandomState, reject_structured, seeded_generator
from ..blocks import Blocks, with_targets
from ..expansion import Expansion
from ..kernels import RBF, Kernel, Laplacian, Matern, Scale, as_kernel
from ..models.mean_embedding import DensityKernel, choose_bandwidth, log_kernel_sums
from ._blockwise import in_memory
from ._parameters import estimator, fit_method, fitted, parameter, predict_method
from ._plan_method import PlanMixin
from ._training_sample import Sample, check_weights

_KERNELS_BY_NAME = {"gaussian": RBF(), "exponential": Matern(nu=0.5), "laplacian": Laplacian()}


@estimator(kw_only=True)
class ParzenDensity(DensityMixin, PlanMixin, BaseEstimator):
    """Kernel density estimation (Parzen windows).

    The density is the weighted mean of normalised kernels centred at the training points,

        p(x) = sum_i w_i k((x - x_i) / h) / (c h^d),

    where h is the bandwidth, d the dimension and c the integral of k. Parameters and methods are
    named as in scikit-learn's `KernelDensity`. The sums are exact, over all training points, and
    are computed in tiles. They are computed as logarithms, so the log density is finite and
    accurate even far from all training points.

    Parameters
    ----------
    bandwidth : float, "scott", "silverman" or "loo"
        The bandwidth h. "scott" means n^(-1/(d+4)) and "silverman" (n (d+2) / 4)^(-1/(d+4)), both
        for columns of unit variance. With sample weights, n is the effective sample size 1 / sum_i
        w_i^2, as in SciPy's `gaussian_kde`; scikit-learn counts all rows, including those of weight
        0. "loo" maximises the leave-one-out log likelihood sum_i w_i log p_(-i)(x_i), where p_(-i)
        is the density without point i; this takes about 30 passes over all pairs of points. The
        rules of Scott and Silverman suit densities with one peak; use "loo" for several peaks.
    kernel : {"gaussian", "exponential", "laplacian"}, Kernel or str
        The names mean `RBF()`, `Matern(nu=0.5)` and `Laplacian()`. Other kernels of these classes
        are allowed, and `RationalQuadratic` with alpha > d/2. The length scale is in units of h and
        may be one number per column. The choice of the bandwidth matters more than that of the
        kernel.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth h.
    kernel_ : Kernel
        The kernel scaled by the bandwidth h, with k(x, x) = 1.
    X_fit_ : ndarray of shape (n, d)
        The training points of positive weight.
    weights_ : ndarray of shape (n,)
        The weights w, which sum to 1.
    expansion_ : Expansion
        The density p as a function in the RKHS of the normalised kernel.
    n_features_in_ : int
        The number of columns of X.

    See Also
    --------
    OneClassSVM : Finds a region of high density, without estimating the density.
    herd : Chooses points that represent a density.
    mmd : Compares two samples without estimating densities.
    sklearn.neighbors.KernelDensity : Uses trees, which are faster for many points in few
        dimensions; also has compact kernels.

    References
    ----------
    Parzen, "On estimation of a probability density function and mode", Annals of Mathematical
    Statistics 33, 1962.

    Silverman, "Density Estimation for Statistics and Data Analysis", Chapman and Hall, 1986.

    Scott, "Multivariate Density Estimation", Wiley, 1992.

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

    bandwidth: float | str = parameter("positive", {"scott", "silverman", "loo"}, default=1.0)
    kernel: str | Kernel = parameter(str, Kernel, default="gaussian")

    kernel_: Kernel = fitted()
    X_fit_: np.ndarray = fitted()
    bandwidth_: float = fitted()
    weights_: np.ndarray = fitted()
    _window: DensityKernel = fitted()
    _accepts_blocks: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Store the points and their weights, and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training points.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Non-negative weights of the points; they are normalised to the sum 1.

        Returns
        -------
        self : ParzenDensity
            The fitted estimator.
        """
        if isinstance(X, Blocks):  # the density depends on every point
            sample_weight = in_memory(with_targets(X, None, sample_weight).weights)
            X = X.to_array(getattr(self, "max_memory", None))
        reject_structured(X, type(self).__name__)
        X = validate_data(self, X, dtype=np.float64, copy=True)
        weights = None if sample_weight is None else check_weights(sample_weight, X)
        sample = Sample.of(X, weights)
        w = sample.counts / sample.counts.max()
        self.X_fit_, self.weights_ = sample.points, w / w.sum()
        kernel_name = self.kernel if isinstance(self.kernel, str) else ""
        kernel = sample.resolve(_KERNELS_BY_NAME.get(kernel_name) or as_kernel(self.kernel))
        h = self.bandwidth
        if isinstance(h, str):
            h = choose_bandwidth(h, kernel, self.X_fit_, self.weights_)
        self.bandwidth_ = h
        self._window = DensityKernel.of(kernel, self.bandwidth_, X.shape[1])
        self.kernel_ = self._window.kernel
        return self

    @property
    def expansion_(self) -> Expansion:
        """The density as a function: p(x) = expansion_(x)."""
        check_is_fitted(self)
        log_factor = -self._window.log_constant
        if not abs(log_factor) < 700.0:
            raise ValueError(
                f"the density of one kernel at its centre is e^{log_factor:.0f}, which is outside "
                f"the range of floating-point numbers; use score_samples, which returns logarithms"
            )
        normalised = Scale(self.kernel_, float(np.exp(log_factor)))
        return Expansion.mean(normalised, self.X_fit_, self.weights_)

    @predict_method
    def score_samples(self, X: Points) -> np.ndarray:
        """Return the log density log p(x) of each point.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Log densities, which are finite also far from all training points.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return (
            log_kernel_sums(self._window, X, self.X_fit_, self.weights_) - self._window.log_constant
        )

    def score(self, X: Points, y: object = None) -> float:
        """Return the total log likelihood, sum_i log p(x_i).

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, that were not used in `fit`.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        float
            The sum of `score_samples`; larger is better.
        """
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> np.ndarray:
        """Draw random points from the density.

        Parameters
        ----------
        n_samples : int, default=1
            The number of points.
        random_state : int, RandomState, Generator or None, default=None
            None means 0, as everywhere in mercer, so that every call returns the same points. Pass
            a Generator to draw different points each time.

        Returns
        -------
        ndarray of shape (n_samples, d)
            Random points, one per row.
        """
        check_is_fitted(self)
        is_integer = isinstance(n_samples, Integral) and not isinstance(n_samples, bool)
        if not is_integer or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        rng = seeded_generator(random_state)
        centre_indices = rng.choice(len(self.X_fit_), size=n_samples, p=self.weights_)
        return self.X_fit_[centre_indices] + self._window.draw(n_samples, rng)
