"""Random Fourier features: a cosine and a sine of each random frequency."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..._core import Points, seeded_generator
from ...gram import FeatureMap, FourierMap
from ...kernels import RBF, RULES, Features, FourierBasis, random_features, skewed_features
from .._kernel_estimator import FeatureMixin, NamedKernelEstimator, Seed, precision
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._training_sample import Sample
from ._feature_transformer import FeatureTransformer, planned_features

METHODS = {"auto", "orthogonal", "qmc", "iid"}


@estimator(kw_only=True)
class _RandomFourierSampler(FeatureTransformer):
    """Base class of RBFSampler and SkewedChi2Sampler.

    The features are sqrt(2 / D) cos(x W + b) with random frequencies W and offsets b.

    Parameters
    ----------
    n_components : int
        The number D of features. If it is even, phi(x) . phi(x) = k(x, x) exactly. The error
        decreases at least as 1 / sqrt(D); start with a few hundred and double D until the
        validation score no longer improves.
    method : {"auto", "orthogonal", "qmc", "iid"}
        How frequencies are sampled: "qmc" by Sobol points, "orthogonal" with orthogonal blocks, and
        "iid" independently. "auto" chooses "qmc" or "orthogonal" by the number of columns; see
        `mercer.kernels.random_features`.
    """

    n_components: int = parameter("positive integer", default=100)
    method: str = parameter(METHODS, default="auto")

    random_weights_: np.ndarray = fitted()
    random_offset_: np.ndarray = fitted()

    def _set_map(self, basis: FourierBasis, rng: np.random.Generator, dtype: Any) -> Self:
        """Set the feature map for these frequencies, `random_weights_` and `random_offset_`."""
        phi = FourierMap(Features(basis), basis)
        self._map = phi.odd(rng) if self.n_components % 2 else phi
        W, b = self._map.as_cosines()
        self.random_weights_, self.random_offset_ = W.astype(dtype), b.astype(dtype)
        return self


@estimator()
class RBFSampler(_RandomFourierSampler):
    """Random Fourier features of the RBF kernel.

        phi(x) = sqrt(2 / D) cos(x W + b),     E phi(x) . phi(z) = exp(-gamma |x - z|^2)

    A drop-in replacement for scikit-learn's `RBFSampler`, with the same parameters, defaults,
    attributes and formula.  For the same number of features its error is smaller, because
    frequencies come in pairs of a cosine and a sine (b = 0 and b = -pi/2) and are not independent.
    Frequencies are Sobol points if there are at least as many as the square of the number of
    columns; otherwise they are orthogonal in blocks (Yu et al., NeurIPS 2016, for orthogonal
    frequencies; Sutherland and Schneider, UAI 2015, for pairs).  If D is odd, one cosine has a
    random b.

    Parameters
    ----------
    gamma : float, "scale", "auto", "median", "scott" or "silverman"
        Parameter of the kernel exp(-gamma |x - z|^2), or a rule that computes it from X. "scale"
        means 1 / (n_features X.var()), which suits standardised columns; `RandomFeatures` documents
        all rules.

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, D)
        The frequencies W.
    random_offset_ : ndarray of shape (D,)
        The offsets b.
    kernel_ : RBF
        The kernel that is approximated.

    See Also
    --------
    RandomFeatures : Features of any stationary kernel, also with one length scale per column.
    Nystroem : Features from landmarks; usually more accurate for the same number.
    SkewedChi2Sampler : Features for non-negative data such as histograms.
    sklearn.kernel_approximation.RBFSampler : Independent frequencies, with a larger error.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, "Orthogonal random features", NIPS 2016.

    Sutherland and Schneider, "On the error of random Fourier features", UAI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBFSampler
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> F = RBFSampler(gamma=0.5, n_components=512).fit_transform(X)
    >>> K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    >>> bool(np.abs(F @ F.T - K).max() < 0.05)
    True
    """

    _: KW_ONLY
    gamma: float | str = parameter("positive", set(RULES), default=1.0)

    kernel_: Annotated[Any, RBF] = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Draw the frequencies.

        X determines the number of columns and, if gamma is a rule, gamma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training points.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : RBFSampler
            The fitted estimator.
        """
        X = self._check(X, reset=True)
        self.kernel_ = RBF.from_gamma(self.gamma).resolve(X)
        rng, even = seeded_generator(self.random_state), self.n_components + self.n_components % 2
        options: dict[str, Any] = {"method": self.method, "random_state": rng}
        basis = random_features(self.kernel_, X.shape[1], even, **options)
        return self._set_map(basis, rng, precision(X))

    @property
    def _gamma(self) -> float:
        return float(0.5 / self.kernel_.length_scale**2)


@estimator()
class SkewedChi2Sampler(_RandomFourierSampler):
    """Random Fourier features of the skewed chi-squared kernel.

        k(x, z) = prod_c 2 sqrt(x_c + s) sqrt(z_c + s) / (x_c + z_c + 2 s),     x_c > -s
        phi(x) = sqrt(2 / D) cos(log(x + s) W + b)

    A drop-in replacement for scikit-learn's `SkewedChi2Sampler`.  With u = log(x + s) and
    v = log(z + s), the kernel is a function of u - v, the product of sech((u_c - v_c) / 2).
    Frequencies are paired as in RBFSampler.

    Parameters
    ----------
    skewedness : float
        The shift s; all values of X must be larger than -s. For histograms, choose a small fraction
        of a typical value; a larger s reduces the influence of small values.

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, D)
        The frequencies W.
    random_offset_ : ndarray of shape (D,)
        The offsets b.

    See Also
    --------
    AdditiveChi2Sampler : Deterministic features of the additive chi-squared kernel.
    RandomFeatures : Features of stationary kernels.
    Nystroem : Features of any kernel, such as "chi2".
    sklearn.kernel_approximation.SkewedChi2Sampler : Independent frequencies, with a larger error.

    References
    ----------
    Li, Ionescu and Sminchisescu, "Random Fourier approximations for skewed multiplicative histogram
    kernels", DAGM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SkewedChi2Sampler
    >>> F = SkewedChi2Sampler(n_components=512).fit_transform([[0.0, 1.0], [1.0, 0.0]])
    >>> bool(abs(F[0] @ F[1] - 8 / 9) < 0.01)
    True
    """

    _: KW_ONLY
    skewedness: float = parameter("positive", default=1.0)

    _sparse: ClassVar[bool] = False

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Draw the frequencies.

        Only the number of columns of X is used.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training points with values larger than -skewedness.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : SkewedChi2Sampler
            The fitted estimator.
        """
        X = self._check(X, reset=True)
        rng, even = seeded_generator(self.random_state), self.n_components + self.n_components % 2
        options: dict[str, Any] = {"method": self.method, "random_state": rng}
        return self._set_map(skewed_features(X.shape[1], even, **options), rng, precision(X))

    def _map_input(self, X: Points) -> Points:
        """Return log(X + skewedness)."""
        if (-self.skewedness >= X).any():
            raise ValueError(
                f"X may not contain entries smaller than -skewedness: got {X.min():g}, with "
                f"skewedness={self.skewedness:g}; increase skewedness"
            )
        return np.log(X + X.dtype.type(self.skewedness))


@estimator()
class RandomFeatures(FeatureMixin, NamedKernelEstimator):
    """Random Fourier features of any kernel that is a function of x - z.

        phi(x) = [a_j cos(w_j.x), ..., a_j sin(w_j.x), ...],     E phi(x) . phi(z) = k(x, z)

    Such kernels are RBF, Laplacian, Matern, RationalQuadratic, Cauchy, Periodic and others, also
    with one length scale per column, and sums, products, Select and Stretch of these.  Features
    come in pairs of a cosine and a sine, so that |phi(x)|^2 = k(x, x) exactly.

    Parameters
    ----------
    n_components : int
        Number of features; use several hundred for each term of a sum of kernels, and double it
        until the validation score no longer improves. If it is odd, one cosine has no sine, and
        |phi(x)|^2 is not exact.
    method : {"auto", "orthogonal", "qmc", "iid"}
        How frequencies are sampled.  "qmc" uses Sobol points, with an error of about 1/D in few
        dimensions.  "orthogonal" makes Gaussian frequencies orthogonal in blocks.  "iid" draws
        frequencies independently.  "auto" chooses "qmc" or "orthogonal"; see
        `mercer.kernels.random_features`.
    random_state : int, RandomState or None
        Random seed; None means 0, so that fits are reproducible.

    Attributes
    ----------
    basis_ : FourierBasis
        The frequencies and their weights; `mercer.kernels.Features(basis_)` is the approximate
        kernel phi(x) . phi(z).
    kernel_ : Kernel
        The kernel that is approximated, with all parameters resolved.

    See Also
    --------
    Nystroem : Features from landmarks, for any kernel and any type of points; usually more accurate
        for the same number.
    RBFSampler : The RBF kernel only, with the parameters of scikit-learn.
    ExplicitFeatures : Exact features of kernels that have finitely many.
    sklearn.kernel_approximation.RBFSampler : The RBF kernel with independent frequencies.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, "Orthogonal random features", NIPS 2016.

    Sutherland and Schneider, "On the error of random Fourier features", UAI 2015.

    Yang, Sindhwani, Avron and Mahoney, "Quasi-Monte Carlo feature maps for shift-invariant
    kernels", ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RandomFeatures
    >>> from mercer.kernels import Laplacian, RBF
    >>> k = RBF((1.0, 3.0)) * Laplacian(5.0) + 0.5 * RBF(10.0)
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> F = RandomFeatures(2048, kernel=k).fit_transform(X)
    >>> bool(np.abs(F @ F.T - k(X)).max() < 0.08)
    True
    """

    n_components: int = parameter("positive integer", default=100)
    _: KW_ONLY
    kernel: Any = "rbf"
    method: str = parameter(METHODS, default="auto")
    random_state: Seed = parameter("random_state", default=None)

    basis_: FourierBasis = fitted()
    _map: FeatureMap = fitted()
    _accepts_blocks: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Draw the frequencies.

        X determines the number of columns and, if gamma is a rule, gamma.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training points; they may be in blocks. kernel="precomputed" is not supported.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : RandomFeatures
            The fitted estimator.
        """
        sample = self._sample(X, copy=False).subsample
        if len(np.shape(sample.points)) != 2:
            raise TypeError(
                "random Fourier features need vectors; for other points use Nystroem or "
                "ExplicitFeatures"
            )
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        rng, even = seeded_generator(self.random_state), self.n_components + self.n_components % 2
        options: dict[str, Any] = {"method": self.method, "random_state": rng}
        self.basis_ = random_features(self.kernel_, sample.points.shape[1], even, **options)
        phi = FourierMap(self.kernel_, self.basis_)
        self._map = phi.odd(rng) if self.n_components % 2 else phi
        self._log_progress(f"{len(self._map)} features of {self.kernel_}")
        return self

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        return planned_features(sample, self.n_components)

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the features phi(x) of points, whose inner products approximate the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Points, one per row, with the columns of the training data. If X is in blocks, so is the
            result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_components)
            The features; float32 if X is float32, otherwise float64.
        """
        X = self._check_new(X)
        return self._map.features(X, dtype=precision(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "basis_")

    @property
    def _n_features_out(self) -> int:
        return len(self._map)
