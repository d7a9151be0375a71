"""Features without random numbers: exact features, and those of the chi-squared kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from ..._core import Points
from ...kernels import additive_chi2_features, finite_features
from .._kernel_estimator import FeatureMixin, NamedKernelEstimator, precision
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._plan_method import PlanMixin
from .._training_sample import Sample


@estimator()
class ExplicitFeatures(FeatureMixin, NamedKernelEstimator):
    """Exact explicit features of a kernel: phi(x) . phi(z) = k(x, z).

    Available for kernels with a finite number of features: Linear, Bilinear, Polynomial, Constant,
    Kendall, kernels of a basis (`Features`, `RankOne`), counting kernels of strings, texts, sets
    and graphs (`Spectrum`, `BagOfWords`, `WeisfeilerLehman`, ...), and sums, products, integer
    powers, Normalized, Select and Stretch of these.  A linear model on phi(x) is the primal form
    of the kernel model, and cheaper if there are fewer features than points.

    Counting kernels only have features for the items that occur in the training points.  Other
    items do not contribute to kernel values with training points, which remain exact.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all parameters resolved.

    See Also
    --------
    to_primal : Converts a fitted kernel model to a linear model on these features.
    Nystroem : Approximate features of any kernel.
    RandomFeatures : Approximate features of stationary kernels.
    sklearn.preprocessing.PolynomialFeatures : Monomials without the weights of the polynomial
        kernel.
    sklearn.feature_extraction.text.CountVectorizer : Counts of words and n-grams, without a kernel.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel Methods for Pattern Analysis", Cambridge University Press,
    2004.

    Examples
    --------
    >>> from mercer import ExplicitFeatures
    >>> from mercer.kernels import Spectrum
    >>> words = ["abba", "baobab", "cab"]
    >>> model = ExplicitFeatures(kernel=Spectrum(2))
    >>> F = model.fit_transform(words)
    >>> F.shape  # ab, ba, bb, ao, ob, ca
    (3, 6)
    >>> bool((F @ F.T == Spectrum(2)(words)).all())
    True
    """

    _frame: Any = fitted()
    _n_features_out: int = fitted()
    _accepts_blocks: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Determine the features that occur in the points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. kernel="precomputed" is not supported.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : ExplicitFeatures
            The fitted estimator.
        """
        self._fit_features(X, all_points=False)
        return self

    @fit_method
    def fit_transform(self, X: Points, y: object = None) -> Any:
        """Fit to X and return its features; faster than `fit(X).transform(X)`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. kernel="precomputed" is not supported.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        ndarray or CSR matrix of shape (n, n_features_out)
            The features; a CSR matrix if they are sparse, as those of counting kernels.
        """
        return self._fit_features(X, all_points=True)

    @predict_method
    def transform(self, X: Points) -> Any:
        """Return the features phi(x) of points, with phi(x) . phi(z) = k(x, z).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. If X is in blocks, so is the result,
            which is computed lazily.

        Returns
        -------
        ndarray or CSR matrix of shape (n, n_features_out)
            The features, one row per point; a CSR matrix if they are sparse.
        """
        X = self._check_new(X)
        phi, _ = finite_features(self.kernel_, X, self._frame, self.max_memory)
        return phi.astype(precision(X), copy=False)

    def _fit_features(self, X: Points, all_points: bool) -> Any:
        """Set the fitted attributes; return the features of all points if `all_points` is True."""
        if self._precomputed:
            raise ValueError("a precomputed matrix has no explicit features; use Nystroem")
        sample = self._sample(X, copy=False).subsample
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        points = sample.points
        if not all_points and self.kernel_.domain.on_vectors:
            points = points[:1]  # for kernels on vectors, one point determines all features
        phi, self._frame = finite_features(self.kernel_, points, None, self.max_memory)
        self._n_features_out = int(phi.shape[1])
        self._log_progress(f"{self._n_features_out} features of {len(sample)} points")
        return phi.astype(precision(sample.points), copy=False)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        option: dict[str, Any] = {"solver": "explicit", "storage": "features", "copies": 1.0}
        if self._planned_kernel(sample).domain.on_vectors:
            option["copies"] = 0.0  # one point determines the features
        return f"explicit features of {len(sample)} points", option

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_frame")


# Default sampling interval for each number of steps: Vedaldi and Zisserman (2012), figure 3.
_DEFAULT_INTERVALS = {1: 0.8, 2: 0.5, 3: 0.4}


@estimator()
class AdditiveChi2Sampler(TransformerMixin, PlanMixin, BaseEstimator):
    """Approximate features of the additive chi-squared kernel, for non-negative data.

        phi(x) . phi(z)  is close to  sum_c 2 x_c z_c / (x_c + z_c),    x_c, z_c >= 0

    The features of each column x are, for j = 1 .. sample_steps - 1,

        sqrt(L x),    a_j cos(j L log x),    a_j sin(j L log x),    a_j = sqrt(2 L x sech(pi j L))

    They sample the spectrum of the kernel at multiples of the sampling interval L (Vedaldi and
    Zisserman, TPAMI 2012). The map is deterministic and does not depend on the training data.  A
    drop-in replacement for scikit-learn's `AdditiveChi2Sampler`.

    Parameters
    ----------
    sample_steps : int
        Number of multiples of L, including 0. Each column has 2 sample_steps - 1 features. 2 or 3
        are usually accurate enough.
    sample_interval : float or None
        The sampling interval L; None means 0.8, 0.5 or 0.4 for 1, 2 or 3 steps. For more steps it
        must be given.
    n_jobs : int or None
        Number of threads; None means all processors.  It does not affect the results.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    SkewedChi2Sampler : Random features of a chi-squared kernel that multiplies over columns.
    Nystroem : Features of any kernel, such as the exponential chi-squared kernel "chi2".
    sklearn.kernel_approximation.AdditiveChi2Sampler : The same features.

    References
    ----------
    Vedaldi and Zisserman, "Efficient additive kernels via explicit feature maps", IEEE Transactions
    on Pattern Analysis and Machine Intelligence 34, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import AdditiveChi2Sampler
    >>> F = AdditiveChi2Sampler(sample_steps=3).fit_transform([[0.2, 0.8], [0.5, 0.5]])
    >>> F.shape
    (2, 10)
    >>> bool(abs(F[0] @ F[1] - (2 * 0.1 / 0.7 + 2 * 0.4 / 1.3)) < 0.03)
    True
    """

    _: KW_ONLY
    sample_steps: int = parameter("positive integer", default=2)
    sample_interval: float | None = parameter("positive", None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        m = (2 * self.sample_steps - 1) * sample.points.shape[1]
        option = {"solver": "sampled", "storage": "features", "exact": False, "rank": m}
        return f"{m} features of {len(sample)} points", {**option, "copies": 0.0}

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Check X and store the number and names of its columns.

        Nothing is learned from the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Non-negative numbers, such as counts or histograms.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : AdditiveChi2Sampler
            The fitted estimator.
        """
        self._check(X, reset=True)
        self._interval()
        return self

    @predict_method
    def transform(self, X: Points) -> Any:
        """Return the features phi(x) of points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Non-negative numbers, such as counts or histograms.

        Returns
        -------
        ndarray or CSR matrix of shape (n, (2 sample_steps - 1) d)
            The features; sparse if X is sparse, because zeros have the features 0.
        """
        X = self._check(X, reset=False)
        return additive_chi2_features(X, self.sample_steps, self._interval())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, such as additivechi2sampler_x0_cos1.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns; None means the names seen in `fit`, or x0, x1, ...

        Returns
        -------
        ndarray of str objects, shape ((2 sample_steps - 1) d,)
            One name for each column that `transform` returns.
        """
        check_is_fitted(self, "n_features_in_")
        columns = _check_feature_names_in(self, input_features, generate_names=True)
        parts = [f"{wave}{j}" for j in range(1, self.sample_steps) for wave in ("cos", "sin")]
        prefix = type(self).__name__.lower()
        names = [f"{prefix}_{column}_{part}" for part in ["sqrt", *parts] for column in columns]
        return np.asarray(names, dtype=object)

    def _check(self, X: Points, *, reset: bool) -> Points:
        """Check X and return it; raise an error for negative values."""
        dtypes = [np.float64, np.float32]
        X = validate_data(self, X, accept_sparse="csr", dtype=dtypes, reset=reset)
        check_non_negative(X, f"X in {type(self).__name__}")
        return X

    def _interval(self) -> float:
        """Return the sampling interval L."""
        if self.sample_interval is not None:
            return float(self.sample_interval)
        if self.sample_steps not in _DEFAULT_INTERVALS:
            raise ValueError(
                "If sample_steps is not in [1, 2, 3], you need to provide sample_interval; got "
                f"sample_steps={self.sample_steps}"
            )
        return _DEFAULT_INTERVALS[self.sample_steps]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
