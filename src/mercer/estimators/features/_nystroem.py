"""Nyström features: phi(x) = L^-1 k_S(x), where L L^T = K_SS for landmarks S.

For an indefinite kernel, the signs of negative eigenvalues of K_SS are changed:

    phi(x) = |K_SS|^-1/2 sgn(K_SS) k_S(x),     so that  phi(s) . phi(t) = |K_SS|_st

K_SS is the kernel matrix of the landmarks S, and k_S(x) are the kernel values between x and S.
|K_SS| has the eigenvectors of K_SS and the absolute values of its eigenvalues ("spectrum flip";
Chen, Garcia, Gupta, Rahimi and Cazzanti, JMLR 2009).  scikit-learn's `Nystroem` is equivalent; it
uses the singular values of K_SS.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._core import (
    NotPositiveDefiniteError,
    Points,
    Stopwatch,
    as_csr,
    as_float64,
    check_budget,
    entry_point,
    length,
    not_finite_error,
    take,
    warn_caller,
)
from ..._core.linalg import eigh
from ...blocks import Blocks, RowSample
from ...expansion import Expansion
from ...expansion.preimage import PreImages
from ...gram import (
    LANDMARK_METHODS,
    FeatureMap,
    Landmarks,
    LowRankGram,
    NystroemMap,
    fill_gram,
    residual_tolerances,
    supports_kmeans_landmarks,
)
from ...kernels import Callable, Kernel, Prepared, as_kernel, unwrap
from ...solvers import Report, Status
from .._blockwise import draw_candidates
from .._kernel_estimator import (
    ExpansionEstimator,
    FeatureMixin,
    NamedKernelEstimator,
    Seed,
    Shrink,
    SklearnGPKernel,
    precision,
)
from .._parameters import FittedPoints, estimator, fit_method, fitted, parameter, predict_method
from .._plan_method import n_of
from .._training_sample import Sample
from ._feature_transformer import check_features


@estimator()
class Nystroem(FeatureMixin, NamedKernelEstimator, ExpansionEstimator):
    """Nyström features of any kernel, computed from its values at landmarks.

        phi(x) = L^-1 k_S(x),     L L^T = K_SS,     phi(x) . phi(z)  is close to  k(x, z)

    K_SS is the kernel matrix of the landmarks S, and k_S(x) are the kernel values between x and S.
    With the features F of the training points, K - F F^T is positive semidefinite, and its trace is
    sum_i k(x_i, x_i) - |phi(x_i)|^2.

    A drop-in replacement for scikit-learn's `Nystroem`, with the same parameters, defaults and
    attributes.  In addition, landmarks are chosen better than uniformly at random, the
    approximation error is computed exactly, points may be of any kind, a precomputed matrix may
    have fewer landmarks than points, and there is an inverse transform.  Differences:
    `random_state=None` means 0.  `normalization_` is triangular instead of symmetric, which
    rotates the features but does not change their inner products.  There are fewer than
    n_components features if the others would be 0.

    Parameters
    ----------
    kernel : str, Kernel, callable or scikit-learn GP kernel
        As in other estimators of mercer, except that a callable takes two points, as in
        scikit-learn's `Nystroem`.  Use ``Callable(function, contract="matrix")`` for a function of
        two collections of points.
    coef0 : float or None
        The constant term of "poly" and "sigmoid"; None means 1.
    degree : float or None
        The degree of "poly"; None means 3.
    kernel_params : dict or None
        Additional arguments of a callable.  For a kernel given by name it may contain gamma, coef0
        and degree.
    n_components : int
        Number of landmarks, which is the largest number of features m. Double it until
        `approximation_error_` is small relative to the sum of k(x, x), or until the validation
        score no longer improves.
    landmarks : str or points
        How landmarks are chosen ("medoids", "rpcholesky", "kmeans", "uniform", "kmeans++" or
        "leverage"), or the landmarks themselves.  "auto" means "medoids", the points nearest to the
        k-means centroids, for radial kernels on dense vectors; "uniform" for a callable, which may
        be expensive to evaluate; otherwise "rpcholesky".  "kmeans" uses the centroids themselves,
        which have the smallest approximation error but are not training points.
    random_state : int, RandomState or None
        Seed for the choice of landmarks; None means 0, so that fits are reproducible.

    Attributes
    ----------
    components_ : points
        The m landmarks; for a precomputed kernel, their indices.
    component_indices_ : ndarray of shape (m,) or None
        The indices of the landmarks among the training points; None if they are not training
        points.
    normalization_ : ndarray of shape (m, m)
        The matrix L^-1, so that phi(X) = k(X, components_) normalization_^T.
    approximation_error_ : float or None
        The exact trace of K - F F^T over the training points, which bounds all its norms.  Only
        `fit_transform` sets it, because it computes the features of all points.  None after `fit`,
        and if k is not positive semidefinite.
    expansion_ : Expansion
        The features as functions in the RKHS, which are linear combinations of k(s, .).
    report_ : Report
        The solver, its time, and the approximation error.

    See Also
    --------
    RandomFeatures : Features that do not depend on the data, for stationary kernels.
    ExplicitFeatures : Exact features of kernels that have finitely many.
    KernelRidge : Has solver="nystroem", like other estimators, with the same landmarks.
    KernelPCA : Orthogonal features of maximal variance.
    sklearn.kernel_approximation.Nystroem : Landmarks are drawn uniformly at random.

    Notes
    -----
    If the kernel is not positive semidefinite on the points (for example "sigmoid"), the features
    are those of |K_SS| on landmarks drawn uniformly at random, as in scikit-learn, with a warning.

    References
    ----------
    Williams and Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.

    Zhang, Tsang and Kwok, "Improved Nyström low-rank approximation and error analysis", ICML 2008.

    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a kernel
    matrix with few entry evaluations", Communications on Pure and Applied Mathematics, 2025.

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
    coef0: Any = parameter("finite", None, default=None)
    degree: Any = parameter("non-negative", None, default=None)
    kernel_params: dict | None = None
    n_components: int = parameter("positive integer", default=100)
    random_state: Seed = parameter("random_state", default=None)
    landmarks: Any = parameter(set(LANDMARK_METHODS), "array-like", "sparse matrix", default="auto")

    components_: FittedPoints = fitted()
    component_indices_: np.ndarray | None = fitted()
    normalization_: np.ndarray = fitted()
    approximation_error_: float | None = fitted()
    _map: Annotated[Any, FeatureMap | None] = fitted()  # None for a precomputed kernel

    @property
    def _required_cpd_order(self) -> int | None:
        return None  # `_fit_landmarks` handles indefinite kernels, with a warning

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Choose landmarks among the points X.

        Only kernel values that are needed to choose the landmarks are computed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks are sampled to choose the landmarks.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : Nystroem
            The fitted estimator.
        """
        sample = self._sample(X, copy=False)
        self._fit_landmarks(sample.subsample, with_features=False)
        if sample.drawn is not None and self.component_indices_ is not None:
            self.component_indices_ = sample.drawn.places[self.component_indices_]
        return self

    _accepts_blocks: ClassVar[bool] = True

    def _draw_candidates(self, blocks: Blocks) -> RowSample:
        landmarks = Landmarks(self.n_components, self.landmarks, self.random_state)
        return draw_candidates(blocks, landmarks)

    @fit_method
    def fit_transform(self, X: Points, y: object = None) -> np.ndarray:
        """Fit to X and return its features; also sets `approximation_error_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        ndarray of shape (n, m)
            The features F of the points, with F F^T close to K; float32 if X is float32.
        """
        sample = self._sample(X, copy=False)
        F = self._fit_landmarks(sample, with_features=True)
        points = sample.points if sample.values is None else sample.values.matrix
        return F.astype(precision(points), copy=False)

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the features phi(x) of points, whose inner products approximate the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, m)
            The features; m is the number of landmarks. float32 if X is float32.
        """
        X = self._check_new(X)
        if self._precomputed:
            return self.expansion_(X).astype(precision(X), copy=False)
        return self._map.features(X, dtype=precision(X))

    @predict_method
    def preimage(self, X: Points, method: str = "auto", **options: Any) -> PreImages:
        """Return pre-images: points z with phi(z) close to the features X.

        Parameters
        ----------
        X : array-like of shape (n, m)
            Features, as `transform` returns them.
        method : str, default="auto"
            A method of `Expansion.preimage`, such as "fixed_point", "gradient" or "nearest". "auto"
            tries all that apply to the kernel and returns the best.
        **options : dict
            Options of `Expansion.preimage`, such as `n_neighbors`, `tol` and `max_iter`.

        Returns
        -------
        PreImages
            The `points`, one for each row of X, and their `residuals`.
        """
        check_is_fitted(self)
        if self._precomputed:
            raise ValueError(
                "pre-images need points, which a precomputed kernel matrix does not have; fit with "
                "a kernel"
            )
        F = check_features(X, self._n_features_out)
        f = Expansion(self.kernel_, self.components_, self._map.expansion_coefficients(F.T))
        return f.preimage(method, max_memory=self.max_memory, **options)

    def inverse_transform(self, X: Points, method: str = "auto", **options: Any) -> Points:
        """Return points for the features X.

        Parameters
        ----------
        X : array-like of shape (n, m)
            Features, as `transform` returns them.
        method : str, default="auto"
            A method of `Expansion.preimage`. For points that are not vectors, "auto" returns the
            nearest landmark in feature space.
        **options : dict
            Options of `Expansion.preimage`, such as `n_neighbors`, `tol` and `max_iter`.

        Returns
        -------
        points
            One for each row of X: an ndarray of shape (n, d) for vectors, otherwise a list.
        """
        return self.preimage(X, method, **options).points

    # ------------------------------------------------------------------ the fit

    def _fit_landmarks(self, sample: Sample, with_features: bool) -> Any:
        """Choose landmarks and set the fitted attributes.

        If `with_features` is True, also set the approximation error and return the features of the
        sample; otherwise return None.
        """
        clock = Stopwatch()
        self.kernel_ = sample.resolve(self._make_kernel(self.gamma))
        evaluated = sample.evaluated(self.kernel_, self.max_memory)
        choice, n = self._landmark_method(evaluated, sample.points), len(sample)
        m = choice.count(n)
        check_budget(choice.workspace(n) + 16 * m * m, self.max_memory, f"{m} landmarks")
        self._log_progress(f"{m} landmarks among {n} points")
        F, residual_trace = None, None
        try:
            points, indices = choice.choose(evaluated, sample.points)
            phi: Any = NystroemMap.on(evaluated, points)
            indices = None if indices is None else indices[phi.kept]
            if with_features:
                gram = LowRankGram(evaluated, sample.points, phi, max_memory=self.max_memory)
                F, residual_trace = gram.features(), gram.residual_trace
        except NotPositiveDefiniteError as error:
            warn_caller(
                f"{error}. The features use absolute eigenvalues, on landmarks drawn at random"
            )
            uniform = choice if choice.given else replace(choice, method="uniform")
            points, indices = uniform.choose(evaluated, sample.points)
            phi = FlippedMap.on(evaluated, points)
            F = phi.features(sample.points) if with_features else None
        self._set_map(replace(phi, kernel=unwrap(evaluated)), indices)
        self.approximation_error_ = residual_trace
        self.report_ = Report(
            f"Nystroem on {len(phi)} landmarks",
            Status.APPROXIMATE,
            seconds=clock.seconds,
            message="; ".join(phi.report_remarks),
            certificate={} if residual_trace is None else {"trace": residual_trace},
        )
        self._log_progress(
            "trace of K - F F^T: "
            + ("unknown" if residual_trace is None else f"{residual_trace:.4g}")
        )
        return F

    def _set_map(self, phi: Any, indices: np.ndarray | None) -> None:
        """Store the features as an expansion and, unless the kernel is precomputed, as a map."""
        coefficients = phi.expansion_coefficients(np.eye(len(phi)))
        self.expansion_ = Expansion(self.kernel_, phi.points, coefficients)
        self.components_, self.component_indices_ = phi.points, indices
        self.normalization_ = np.ascontiguousarray(coefficients.T)
        self._map = None if self._precomputed else phi

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n = len(sample)
        m, method = min(self.n_components, n), self.landmarks
        method = "medoids" if isinstance(method, str) and method == "auto" else method
        required = Landmarks(m, method).workspace(n) + 16 * m * m
        option: dict[str, Any] = {"extra": required, "required": required, "rank": m}
        option |= {"copies": 0.0, "solver": "nystroem", "storage": "low rank", "exact": False}
        return f"{n_of(m, 'landmark')} of {n} points", option

    def _landmark_method(self, kernel: Kernel, X: Points) -> Landmarks:
        """Return the number of landmarks and the method to choose them among the points."""
        m, n = self.n_components, length(X)
        if m > n and isinstance(self.landmarks, str):
            warn_caller(
                f"n_components > n_samples. This is not possible.\nn_components={m} was set to "
                f"n_samples={n}, which results in inefficient evaluation of the full kernel."
            )
        method = self.landmarks
        if isinstance(method, str) and method == "auto":
            radial = supports_kmeans_landmarks(kernel, X)
            method = "medoids" if radial else "rpcholesky"
            method = "uniform" if self._kernel_is_function or m >= n else method
        return Landmarks(min(m, n), method, self.random_state)

    # ------------------------------------------------------------------ the kernel

    @property
    def _kernel_is_function(self) -> bool:
        """Whether the kernel is a Python function."""
        return callable(self.kernel) and not isinstance(self.kernel, (Kernel, SklearnGPKernel))

    def _make_kernel(self, gamma: Any) -> Kernel:
        params = {"gamma": gamma, "coef0": self.coef0, "degree": self.degree}
        params = {name: value for name, value in params.items() if value is not None}
        if (self._kernel_is_function or self._precomputed) and params:
            raise ValueError(
                "Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed "
                f"kernel: got {params}"
            )
        self._check_unused_params()
        if self._kernel_is_function:
            function_params = dict(self.kernel_params) if self.kernel_params else None
            return Callable(self.kernel, contract="pair", params=function_params)
        if isinstance(self.kernel, str):
            params = {**(self.kernel_params or {}), **params}
        degree, coef0 = params.get("degree", 3), params.get("coef0", 1)
        is_polynomial = isinstance(self.kernel, str) and self.kernel in ("poly", "polynomial")
        if is_polynomial and (degree != int(degree) or coef0 < 0):
            from sklearn.metrics.pairwise import polynomial_kernel

            # This is not a Mercer kernel, but it may be positive semidefinite on these points,
            # which the factorisation of the kernel matrix of the landmarks will show.
            function = partial(polynomial_kernel, **params)
            return Callable(function, contract="matrix")
        return as_kernel(self.kernel, gamma=params.get("gamma"), degree=degree, coef0=coef0)

    def _compress(self, shrink: Shrink) -> None:
        raise TypeError(
            "Nystroem cannot be compressed or converted to the primal; choose a smaller "
            "n_components, or convert the model that is fitted to the features"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "normalization_")

    @property
    def _n_features_out(self) -> int:
        return len(self.normalization_)


@entry_point
@dataclass(frozen=True, eq=False)
class FlippedMap(FeatureMap):
    """Nyström features on landmarks S, for kernels that may be indefinite.

    phi(x) = U |l|^-1/2 sgn(l) U^T k_S(x) with the eigendecomposition K_SS = U diag(l) U^T of the
    kernel matrix of the landmarks, and the kernel values k_S(x) between x and the landmarks.  If k
    is positive semidefinite, these are the features of `NystroemMap` up to a rotation.  Make one
    with `FlippedMap.on(kernel, points)`.

    Attributes
    ----------
    kernel : Kernel
    points : points
        The landmarks S.
    normalization : ndarray of shape (m, m)
        The matrix U |l|^-1/2 sgn(l) U^T.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators import FlippedMap
    >>> from mercer.kernels import Callable
    >>> k = Callable(lambda x, z: 0.0 if x == z else -1.0)
    >>> F = FlippedMap.on(k, ["a", "b"]).features(["a", "b"])
    >>> np.abs(F @ F.T).round(6)  # K has the eigenvalues -1 and 1
    array([[1., 0.],
           [0., 1.]])
    """

    kernel: Kernel
    points: Any
    normalization: np.ndarray

    @classmethod
    def on(cls, kernel: Kernel, points: Points, n_threads: int | None = None) -> Self:
        """Return the map for these landmarks; eigenvalues below rounding errors are dropped."""
        points = as_float64(as_csr(points))
        P = kernel.prepare(points)
        K = np.empty((len(P), len(P)))
        fill_gram(kernel, P, P, K, n_threads)
        if not np.isfinite(K.sum()):
            raise not_finite_error(kernel, "K_SS", "the landmarks")
        values, U = eigh(0.5 * (K + K.T))
        magnitudes = np.abs(values)
        significant = magnitudes > residual_tolerances(P.dtype)[0] * magnitudes.max()
        scale = np.zeros(len(values))
        scale[significant] = np.sign(values[significant]) / np.sqrt(magnitudes[significant])
        return cls(kernel, points, (U * scale) @ U.T)

    @property
    def report_remarks(self) -> list[str]:
        """Remarks on the landmarks for a solver report."""
        return ["features of |K_SS|, because k is not positive semidefinite"]

    def __len__(self) -> int:
        return len(self.normalization)

    def __repr__(self) -> str:
        return f"<FlippedMap on {len(self)} landmarks, {self.kernel}>"

    def expansion_coefficients(self, V: np.ndarray) -> np.ndarray:
        """Return the coefficients of phi(.)^T V in terms of k(s, .) for the landmarks s."""
        return np.asarray(self.normalization @ V)

    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        P = self.kernel.prepare(as_float64(take(X, rows)), like=self._landmarks)
        self.kernel.tile(P, self._landmarks, out)
        if whiten:
            out[...] = out @ self.normalization

    @cached_property
    def _landmarks(self) -> Prepared:
        return self.kernel.prepare(self.points)
