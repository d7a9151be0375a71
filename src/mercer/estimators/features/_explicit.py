"""The features of kernels that have finitely many, as a transformer."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...kernels import Kernel, finite_features
from .._base import NamedKernel
from .._parameters import estimator, fitting, learned, threaded
from ._features import precision

__all__ = ["ExplicitFeatures"]


@estimator()
class ExplicitFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernel):
    """phi(x) with phi(x) . phi(z) = k(x, z) exactly, for kernels with finitely many features.

    Linear, Bilinear, Polynomial, Constant, kernels of a basis (`Features`, `RankOne`), of strings,
    texts, sets and graphs that count (`Spectrum`, `BagOfWords`, `WeisfeilerLehman`, ...), Kendall,
    and what sums, products, integer powers, Normalized, Select and Stretch make of them.  A linear
    model on phi is the kernel machine in the primal: cheaper where features are fewer than points.

    Features that count are those that occur in the training points; others have no product with
    these, so that k(x, training points) stays exact.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all its values.

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

    kernel_: Kernel = learned()

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which features there are."""
        self._learn(X, features=False)
        return self

    @fitting
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return `fit(X).transform(X)`, evaluated once."""
        return self._learn(X, features=True)

    @threaded
    def transform(self, X: Any) -> Any:
        """Return phi(x_i), one row per point: an array, or CSR where features are sparse."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        phi, _ = finite_features(self.kernel_, X, self._frame, self.max_memory)
        return phi.astype(precision(X), copy=False)

    def _learn(self, X: Any, features: bool) -> Any:
        if self._precomputed:
            raise ValueError("a precomputed matrix has no explicit features; use Nystroem")
        sample = self._sample(X, copy=False)
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        points = sample.points
        if not features and self.kernel_.on_vectors:
            points = points[:1]  # the columns do not depend on the points
        phi, self._frame = finite_features(self.kernel_, points, None, self.max_memory)
        self._n_features_out = int(phi.shape[1])
        self._say(f"{self._n_features_out} features of {len(sample)} points")
        return phi.astype(precision(sample.points), copy=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_frame")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
