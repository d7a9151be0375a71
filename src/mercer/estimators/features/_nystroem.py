"""Nyström features: phi(x) = L^-1 k_S(x) with L L^T = K_SS, for landmarks S."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..._errors import NotPositiveDefiniteError, warn_caller
from ..._points import length
from ..._runtime import Stopwatch, check_budget
from ...blocks import Blocks
from ...expansion import Expansion
from ...gram import METHODS, FlippedMap, Landmarks, LowRankGram, NystroemMap, has_centroids
from ...kernels import Callable, Kernel, as_kernel, unwrap
from ...preimage import PreImages
from ...solvers import Report, Status
from .._base import NamedKernel, Seed, SklearnGPKernel
from .._in_blocks import sampled
from .._parameters import AT_LEAST_0, COUNT, estimator, fitting, learned, parameter, threaded
from .._sample import Sample
from ._features import check_features, precision

__all__ = ["Nystroem"]


@estimator()
class Nystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernel):
    """phi(x) = L^-1 k_S(x) with L L^T = K_SS: features on landmarks S whose products are about k.

        K - F F^T  is positive semidefinite, and its trace is  sum_i k(x_i, x_i) - |phi(x_i)|^2

    A drop-in for scikit-learn's transformer of this name: same parameters, defaults, attributes.
    Landmarks are chosen better than with equal chances, the error is known exactly, any kernel and
    any points will do, a precomputed matrix with fewer landmarks than points too, and there is a
    way back.  Differences: `random_state=None` stands for 0; features are turned
    (`normalization_` is triangular, not symmetric), which no product of them sees; and there are
    fewer than n_components where further ones would be 0.

    Parameters
    ----------
    kernel : str, Kernel, callable or scikit-learn GP kernel
        As everywhere, but for a function: it is one of two points, as in scikit-learn's class.
        Give ``Callable(function, contract="matrix")`` for one of two collections.
    coef0 : float or None
        For "poly" and "sigmoid"; None for 1.
    degree : float or None
        For "poly"; None for 3.
    kernel_params : dict or None
        Further arguments of a function; for a name, gamma, coef0 and degree may be here as well.
    n_components : int
        How many landmarks.
    landmarks : str or points
        How landmarks are chosen ("medoids", "rpcholesky", "kmeans", "uniform", "kmeans++",
        "leverage"), or they themselves.  "auto" is "medoids", the points nearest to the centroids
        of k-means, for radial kernels on dense vectors; "uniform" for a function, whose values may
        cost much; else "rpcholesky".  "kmeans" takes the centroids themselves, which leave least
        over, but are no training points.
    random_state : int, RandomState or None
        For the choice of landmarks; None stands for 0, so that fits repeat.

    Attributes
    ----------
    components_ : points
        The landmarks; for a precomputed kernel their indices.
    component_indices_ : ndarray of shape (m,) or None
        Their places among the training points; None if they do not come from there.
    normalization_ : ndarray of shape (m, m)
        L^-1, so that phi(X) = k(X, components_) normalization_^T.
    approximation_error_ : float or None
        The trace of K - F F^T over the training points, exactly: it bounds every norm of it.
        `fit_transform`, which has the features of all points, sets it.  None after `fit`, and where
        k is not positive semidefinite.
    expansion_ : Expansion
        The features as functions in the RKHS: sums of k(s, .).
    kernel_ : Kernel
        The kernel with all its values.
    report_
        What was done.

    Notes
    -----
    A kernel that is not positive semidefinite on the points ("sigmoid", say) gets the features of
    |K_SS| on landmarks drawn with equal chances, as in scikit-learn, and a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Nystroem
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> model = Nystroem(gamma=0.5, n_components=50)
    >>> F = model.fit_transform(X)
    >>> F.shape
    (500, 50)
    >>> bool(model.approximation_error_ < 0.01 * 500)
    True
    """

    kernel: Any = "rbf"
    _: KW_ONLY
    gamma: float | str | None = None
    coef0: Any = parameter(Interval(Real, None, None, closed="neither"), None, default=None)
    degree: Any = parameter(AT_LEAST_0, None, default=None)
    kernel_params: dict | None = None
    n_components: int = parameter(COUNT, default=100)
    random_state: Seed = parameter("random_state", default=None)
    landmarks: Any = parameter(
        StrOptions(set(METHODS)), "array-like", "sparse matrix", default="auto"
    )

    kernel_: Kernel = learned()
    component_indices_: np.ndarray | None = learned()

    @property
    def _order(self) -> int | None:
        return None  # what is done with negative eigenvalues is said where they show

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among the points X; k is evaluated on some of them alone."""
        self._learn(self._sample(X, copy=False), measured=False)
        return self

    def _fit_blocks(self, X: Blocks, y: Any = None) -> None:
        """Choose landmarks among a sample of points in blocks; one pass."""
        _, drawn = sampled(X, Landmarks(self.n_components, self.landmarks, self.random_state))
        self._learn(self._sample(drawn.X, copy=False), measured=False)
        if self.component_indices_ is not None:
            self.component_indices_ = drawn.places[self.component_indices_]

    @fitting
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return `fit(X).transform(X)`: the features of the points, evaluated once."""
        sample = self._sample(X, copy=False)
        F = self._learn(sample, measured=True)
        given = sample.points if sample.values is None else sample.values.matrix
        return F.astype(precision(given), copy=False)

    @threaded
    def transform(self, X: Any) -> np.ndarray:
        """Return phi(x_i), (n, m); for a precomputed kernel X is k(X, training points)."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        if self._precomputed:
            return self.expansion_(X).astype(precision(X), copy=False)
        return self._map.features(X, dtype=precision(X))

    @threaded
    def preimage(self, X: Any, method: str = "auto", **options: Any) -> PreImages:
        """Return points z with phi(z) near the features X, and how near: `Expansion.preimage`."""
        check_is_fitted(self)
        if self._precomputed:
            raise ValueError(
                "a precomputed kernel matrix has no points to come back to; fit with a kernel"
            )
        F = check_features(X, self._n_features_out)
        f = Expansion(self.kernel_, self.components_, self._map.expansion_coefficients(F.T))
        return f.preimage(method, max_memory=self.max_memory, **options)

    def inverse_transform(self, X: Any, method: str = "auto", **options: Any) -> Any:
        """Return points for the features X, (n, m).

        `method` and `options` are those of `Expansion.preimage`; for points that are not vectors,
        "auto" is the landmark that is nearest in feature space.
        """
        return self.preimage(X, method, **options).points

    # ------------------------------------------------------------------ the fit

    def _learn(self, sample: Sample, measured: bool) -> Any:
        """Learn the map; return the features of the sample, if what they miss is measured."""
        clock = Stopwatch()
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(self.kernel_, self.max_memory)
        chosen, n = self._choice(evaluated, sample.points), len(sample)
        m = chosen.count(n)
        check_budget(chosen.workspace(n) + 16 * m * m, self.max_memory, f"{m} landmarks")
        self._say(f"{m} landmarks among {n} points")
        F, left = None, None
        try:
            points, indices = chosen.choose(evaluated, sample.points)
            phi: Any = NystroemMap.on(evaluated, points)
            indices = None if indices is None else indices[phi.kept]
            if measured:
                gram = LowRankGram(evaluated, sample.points, phi, max_memory=self.max_memory)
                F, left = gram.features(), gram.residual_trace
        except NotPositiveDefiniteError as error:
            warn_caller(
                f"{error}. The features are those of |K_SS| on landmarks drawn with equal chances"
            )
            uniform = chosen if chosen.given else replace(chosen, method="uniform")
            points, indices = uniform.choose(evaluated, sample.points)
            phi = FlippedMap.on(evaluated, points)
            F = phi.features(sample.points) if measured else None
        self._keep(replace(phi, kernel=unwrap(evaluated)), indices)
        self.approximation_error_ = left
        self.report_ = Report(
            f"Nystroem on {len(phi)} landmarks",
            Status.APPROXIMATE,
            seconds=clock.seconds,
            message="; ".join(phi.flaws),
            certificate={} if left is None else {"trace": left},
        )
        self._say("trace of K - F F^T: " + ("not known" if left is None else f"{left:.4g}"))
        return F

    def _keep(self, phi: Any, indices: np.ndarray | None) -> None:
        """Keep the map; for a precomputed kernel without the matrix, as an expansion."""
        turned = phi.expansion_coefficients(np.eye(len(phi)))
        self.expansion_ = Expansion(self.kernel_, phi.points, turned)
        self.components_, self.component_indices_ = phi.points, indices
        self.normalization_ = np.ascontiguousarray(turned.T)
        self._map: Any = None if self._precomputed else phi

    def _choice(self, kernel: Kernel, X: Any) -> Landmarks:
        """Return which landmarks to choose among the points, and how."""
        m, n = self.n_components, length(X)
        if m > n and isinstance(self.landmarks, str):
            warn_caller(
                f"n_components > n_samples. This is not possible.\nn_components={m} was set to "
                f"n_samples={n}, which results in inefficient evaluation of the full kernel."
            )
        method = self.landmarks
        if isinstance(method, str) and method == "auto":
            radial = has_centroids(kernel, X)
            method = "medoids" if radial else "rpcholesky"
            method = "uniform" if self._by_function or m >= n else method
        return Landmarks(min(m, n), method, self.random_state)

    # ------------------------------------------------------------------ the kernel

    @property
    def _by_function(self) -> bool:
        return callable(self.kernel) and not isinstance(self.kernel, (Kernel, SklearnGPKernel))

    def _make_kernel(self, gamma: Any) -> Kernel:
        given = {"gamma": gamma, "coef0": self.coef0, "degree": self.degree}
        given = {name: value for name, value in given.items() if value is not None}
        if (self._by_function or self._precomputed) and given:
            raise ValueError(
                "Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed "
                f"kernel: got {given}"
            )
        self._refuse_unused()
        if self._by_function:
            params = dict(self.kernel_params) if self.kernel_params else None
            return Callable(self.kernel, contract="pair", params=params)
        if isinstance(self.kernel, str):
            given = {**(self.kernel_params or {}), **given}
        degree, coef0 = given.get("degree", 3), given.get("coef0", 1)
        named = isinstance(self.kernel, str) and self.kernel in ("poly", "polynomial")
        if named and (degree != int(degree) or coef0 < 0):
            from sklearn.metrics.pairwise import polynomial_kernel

            # no Mercer kernel, but on some points positive semidefinite: left to the numbers
            function = partial(polynomial_kernel, **given)
            return Callable(function, contract="matrix")
        return as_kernel(self.kernel, gamma=given.get("gamma"), degree=degree, coef0=coef0)

    def _compress(self, shrink: Any) -> None:
        raise TypeError(
            "Nystroem is a map to features, each a function on its landmarks; choose fewer "
            "n_components, or turn the model that is fitted to the features"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "normalization_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.normalization_)
