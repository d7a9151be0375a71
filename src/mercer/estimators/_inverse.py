"""From scores back to points: the part of KernelPCA that finds or learns pre-images.

    Psi = mu + sum_j t_j w_j,     its coefficients sum_j t_j a_j + m, those of the mean included

A reconstruction is an expansion like any other; a pre-image of it is a point like the training
points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._errors import NotDifferentiableError
from .._points import length, take
from ..expansion import Expansion
from ..gram import gram
from ..kernels import RBF, Kernel, Linear
from ..preimage import PreImages, choose_map, evenly, joined, local_method
from ..solvers import Cholesky
from ._readings import Readings
from ._spectrum import gains_of

__all__ = ["Inverse"]

_ENTRIES = 2**22  # coefficients of reconstructions held at a time


class Inverse(Readings):
    """The part of KernelPCA that comes back from feature space."""

    alpha: Any
    fit_inverse_transform: Any
    explained_variance_: np.ndarray
    n_components_: int
    _inverse: Expansion

    def decode(self, X: Any) -> Expansion:
        """Return the elements mu + sum_j X_ij w_j of the RKHS, one function for each row of scores.

        What `transform` has projected, in feature space: `decode(transform(x))` is the
        reconstruction of phi(x), and its distance to phi(x) the reconstruction error.
        """
        parts = self._feature_space()
        scores = self._check_scores(X)
        A = parts.expansion.coefficients
        return Expansion(
            parts.expansion.kernel, parts.expansion.points, A[:, :-1] @ scores.T + A[:, -1:]
        )

    def preimage(self, X: Any, method: str = "auto", **options: Any) -> PreImages:
        """Return points whose phi is close to `decode(X)`, with their residuals.

        Parameters
        ----------
        X : array of shape (n, n_components_)
            Scores.
        method, options
            Of `Expansion.preimage`.
        """
        parts = self._feature_space()
        scores, start = self._check_scores(X), options.pop("start", None)
        if not len(scores):
            raise ValueError("there are no scores to find pre-images of")
        points = parts.expansion.points
        columns = points.shape[1] if getattr(points, "ndim", 0) == 2 else 1
        rows = max(1, _ENTRIES // max(length(points), 16 * columns))
        blocks = [slice(i, i + rows) for i in range(0, len(scores), rows)]
        found = []
        for block in blocks:
            here = None if start is None else take(start, block)
            found.append(self.decode(X[block]).preimage(method, start=here, **options))
        return joined(found)

    def denoise(self, X: Any, method: str | None = None, **options: Any) -> Any:
        """Return for each point the pre-image of its projection on the components.

        Parameters
        ----------
        X : points
        method : str or None, default=None
            None: descend from x itself, by the fixed point where the kernel has one, else by the
            gradient ("auto" for kernels without one).  Where the projection has several
            pre-images, x knows which is meant; the one of smallest residual ("auto") may be
            another.  "distance" stays among the training points near the projection, which is
            better where noise replaces values instead of adding to them.
        options
            Of `Expansion.preimage`.
        """
        check_is_fitted(self)
        scores = self.transform(X)
        scores = getattr(scores, "to_numpy", lambda: scores)()  # a table, after set_output
        X = self._check_points(X, reset=False)
        if self._takes(X):
            options = {"start": X, **options}
        if method is not None:
            return self._cast(self.preimage(scores, method, **options).points)
        try:
            found = self.preimage(scores, local_method(self.kernel_), **options)
        except NotDifferentiableError:
            found = self.preimage(scores, "auto", **options)
        return self._cast(found.points)

    def inverse_transform(self, X: Any, method: str | None = None, **options: Any) -> Any:
        """Return points for the scores X, (n, n_components_).

        Parameters
        ----------
        X : array of shape (n, n_components_)
        method : str or None, default=None
            None: by the map that was learned with `fit_inverse_transform=True`.  Otherwise a
            method of `Expansion.preimage`, which needs no such map.
        options
            Of `Expansion.preimage`.
        """
        if method is not None:
            return self._cast(self.preimage(X, method, **options).points)
        if options:
            raise TypeError(
                f"{', '.join(sorted(options))}: the learned map takes no options; name a method, "
                f"such as method='auto'"
            )
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available. Without it, name a method: "
                "inverse_transform(X, method='auto')."
            )
        check_is_fitted(self)
        if not hasattr(self, "_inverse"):
            raise NotFittedError(
                "the inverse transform was not learned: fit_inverse_transform must be True when "
                "fit is called, and neither partial_fit nor compress keeps the points it needs; "
                "inverse_transform(X, method='auto') needs no map"
            )
        X = self._check_scores(X, whitened=True)
        return self._cast(self._centre + self._inverse(X, n_threads=self._threads()))

    # ------------------------------------------------------------------ parts

    def _fit_inverse(self, X: Any, weights: np.ndarray | None) -> None:
        """Learn the map from scores to points: ridge regression with a kernel of its own."""
        if sp.issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        if not (isinstance(X, np.ndarray) and X.ndim == 2):
            raise TypeError(
                f"fit_inverse_transform learns points that are vectors, and these are a "
                f"{type(X).__name__}; denoise and inverse_transform(X, method='nearest') take any"
            )
        self.X_transformed_fit_ = scores = self.training_scores_
        some = evenly(len(scores))
        T = scores[some].astype(float)
        alpha = None if self.alpha == "auto" else float(self.alpha)
        choice = choose_map(T @ T.T, X[some].astype(float), alpha)
        kernel: Kernel = Linear() if choice.width is None else RBF(choice.width)
        K = gram(
            kernel, scores, storage="dense", max_memory=self.max_memory, n_threads=self._threads()
        )
        shift = choice.shift if weights is None else choice.shift / weights
        self._centre = np.average(X, axis=0, weights=weights)
        self.inverse_kernel_, self.inverse_alpha_ = kernel, choice.shift
        self.dual_coef_ = Cholesky().factorize(K, shift, overwrite=True).solve(X - self._centre)
        self._inverse = Expansion(kernel, scores, self.dual_coef_)

    def _feature_space(self) -> Any:
        """Return the components, if their space is that of the kernel."""
        check_is_fitted(self)
        parts = self._components
        if parts.in_features:
            raise ValueError(
                "random features live in another space than the kernel's, so pre-images there are "
                "only learned: set fit_inverse_transform=True, or use eigen_solver='nystroem'"
            )
        if self._precomputed:
            raise ValueError(
                "a precomputed kernel matrix has no points to come back to; fit with a kernel"
            )
        if self.indefinite != "raise":
            raise ValueError(
                f"with indefinite={self.indefinite!r} scores are not those of the kernel's own "
                f"space, so that they have no pre-images there"
            )
        return parts

    def _check_scores(self, X: Any, whitened: bool = False) -> np.ndarray:
        """Return scores as numbers, as many as components; without the whitening, if any."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise ValueError(
                f"scores have shape {X.shape}, but there are {self.n_components_} components: one "
                f"column for each is needed"
            )
        if not np.all(np.isfinite(X)):
            raise ValueError("scores hold values that are not finite")
        if self.whiten and not whitened:
            gains = gains_of(self.explained_variance_)
            X = np.divide(X, gains, out=np.zeros_like(X), where=gains > 0)
        return X

    def _cast(self, Z: Any) -> Any:
        numbers = isinstance(Z, np.ndarray) and Z.dtype.kind == "f"
        return Z.astype(self._dtype, copy=False) if numbers else Z
