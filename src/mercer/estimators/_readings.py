"""What can be read off a fitted kernel PCA: errors, outliers, contributions, plan and summary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..expansion import Expansion
from ..kernels import Kernel
from ..reduce import Reduction
from ._base import Landmarked, NamedKernel
from ._components import Components
from ._plan import Plan, make_plan
from ._summary import summary

__all__ = ["Readings"]


class Readings(Landmarked, NamedKernel):
    """The part of KernelPCA that answers questions about a fitted model, or before fitting one."""

    kernel_: Kernel
    expansion_: Expansion
    offset_: float
    _components: Components
    _threads: Any
    _finished: Any
    _dtype: np.dtype

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """Return |phi(x) - mu - sum_j score_j w_j|^2 for each point, exactly, in feature space."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        if self._precomputed:
            raise ValueError(
                "the reconstruction error needs k(x, x), which k(X, X_fit) does not hold; "
                "fit with a kernel, not with its values"
            )
        parts = self._components
        return parts.error(X, parts.diagonal(X, self.kernel_), self._threads())

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the reconstruction error: the lower, the less x is like the training points.

        PCA's scores are log-likelihoods; in a feature space without a density this is what stays.
        Different kernels have different feature spaces: it does not choose between them.
        """
        return -self.reconstruction_error(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return score_samples(X) - offset_: negative for outliers.

        With so many components that the training points have no error left, every other point has
        more: ask for fewer.
        """
        check_is_fitted(self)
        if not hasattr(self, "offset_"):
            raise NotFittedError(
                "partial_fit sees each point once, and compress has landmarks alone, so the "
                "threshold of its training points is not known; compare score_samples with a "
                "threshold of your own"
            )
        return self.score_samples(X) - self.offset_

    def is_outlier(self, X: Any) -> np.ndarray:
        """Tell for each point whether its reconstruction error is beyond the threshold."""
        return self.decision_function(X) < 0

    def contributions(self, X: Any = None) -> np.ndarray:
        """Return the share of each feature in each component, (n_components_, n_features).

        The mean over the points X (the training points) of (s_c df_j / dx_c)^2, with s_c the
        standard deviation of feature c; each row sums to 1.
        """
        check_is_fitted(self)
        parts = self._components
        if parts.in_features:
            raise ValueError("random features have no gradient here; use eigen_solver='nystroem'")
        gone = parts.basis is not None or parts.reduction is not None
        if X is None and (self._precomputed or gone):
            raise ValueError(
                "this model does not hold its training points; give the points X at which the "
                "gradients are to be taken"
            )
        X = self.X_fit_ if X is None else self._check_points(X, reset=False)
        X = X.toarray() if sp.issparse(X) else X
        if not self.n_components_:
            return np.zeros((0, X.shape[1]))
        squares = np.mean((self.expansion_.gradient(X) * np.std(X, axis=0)) ** 2, axis=0)
        total = squares.sum(axis=1, keepdims=True)
        return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)

    def plan(self, X: Any) -> Plan:
        """Return what each method would cost for these points, before anything is allocated."""
        return self._plan(X, self._make_kernel(self.gamma))

    def _plan(self, X: Any, kernel: Kernel) -> Plan:
        return make_plan(
            kernel,
            X,
            self.n_components,
            max_memory=self.max_memory,
            n_threads=self._threads(),
            storage=self.storage,
            rank=self.rank,
        )

    def summary(self) -> str:
        """Return what was fitted, how well, and at what cost, as text."""
        check_is_fitted(self)
        return summary(self)

    @property
    def reduction_(self) -> Reduction | None:
        """The certificate of a model that `compress` has returned; None for others."""
        check_is_fitted(self)
        return self._components.reduction

    @property
    def components_(self) -> Expansion:
        """The components w_j, of unit norm in the RKHS: a_j has length 1 / sqrt(l_j)."""
        check_is_fitted(self)
        return self.expansion_

    @property
    def training_scores_(self) -> np.ndarray:
        """The scores of the training points that count; a stream has not kept them."""
        check_is_fitted(self)
        if self._components.scores is None:
            raise AttributeError(
                "partial_fit and compress do not keep the training points: give X to transform"
            )
        return self._finished(self._components.scores, self._dtype)
