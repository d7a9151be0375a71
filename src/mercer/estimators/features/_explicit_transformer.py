"""Exact explicit features of kernels with a finite number of features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..._core import Points
from ...kernels import Kernel, finite_features
from .._kernel_estimator import NamedKernelEstimator
from .._parameters import estimator, fit_method, fitted_attribute, predict_method
from .._training_sample import Sample
from ._feature_transformer import precision


@estimator()
class ExplicitFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernelEstimator):
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

    kernel_: Kernel = fitted_attribute()
    _accepts_blocks: ClassVar[bool] = True

    @fit_method
    def fit(self, X: Points, y: Any = None) -> Self:
        """Determine the features that occur in the points X; y is ignored."""
        self._fit_features(X, all_points=False)
        return self

    @fit_method
    def fit_transform(self, X: Points, y: Any = None) -> Any:
        """Fit to X and return its features; faster than `fit(X).transform(X)`."""
        return self._fit_features(X, all_points=True)

    @predict_method
    def transform(self, X: Points) -> Any:
        """Return the features phi(x), one row per point; a CSR matrix if they are sparse."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        phi, _ = finite_features(self.kernel_, X, self._frame, self.max_memory)
        return phi.astype(precision(X), copy=False)

    def _fit_features(self, X: Points, all_points: bool) -> Any:
        """Set the fitted attributes; return the features of all points if `all_points` is True."""
        if self._precomputed:
            raise ValueError("a precomputed matrix has no explicit features; use Nystroem")
        sample = self._sample(X, copy=False).subsample
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        points = sample.points
        if not all_points and self.kernel_.on_vectors:
            points = points[:1]  # for kernels on vectors, one point determines all features
        phi, self._frame = finite_features(self.kernel_, points, None, self.max_memory)
        self._n_features_out = int(phi.shape[1])
        self._log_progress(f"{self._n_features_out} features of {len(sample)} points")
        return phi.astype(precision(sample.points), copy=False)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        option: dict[str, Any] = {"solver": "explicit", "storage": "features", "copies": 1.0}
        if self._planned_kernel(sample).on_vectors:
            option["copies"] = 0.0  # one point determines the features
        return f"explicit features of {len(sample)} points", option

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_frame")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
