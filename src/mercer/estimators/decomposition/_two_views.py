"""Estimators that relate two views of the same points: kernel CCA and kernel PLS.

The scores of x are f_j(x) - mean(f_j), and the scores of y are g_j(y) - mean(g_j), with functions
f_j and g_j, j = 1, 2, ...  Kernel CCA maximises their correlations, kernel PLS their covariances.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, TransformerMixin
from sklearn.utils import RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, length
from ...blocks import ArrayBlocks, Blocks, as_blocks, is_chunked
from ...expansion import Expansion
from ...gram import LANDMARK_METHODS, Landmarks
from ...kernels import Kernel, as_kernel
from ...solvers import (
    CanonicalCorrelations,
    PartialLeastSquares,
    Plan,
    Status,
    TwoViewResult,
    View,
    columnwise_correlations,
    plan_exact_or_landmarks,
    two_view_coordinates,
    two_view_memory,
)
from .._blockwise import in_memory
from .._kernel_estimator import DualEstimator, KernelLike, LandmarkMixin, NamedKernelEstimator
from .._parameters import (
    FittedFunction,
    estimator,
    fit_method,
    fitted,
    parameter,
    predict_method,
    solver,
)
from .._plan_method import n_of
from .._training_sample import Sample, check_weights


@estimator(kw_only=True)
class SecondView(NamedKernelEstimator):
    """Helper that validates the second view y and stores the number and names of its columns."""

    _accepts_blocks: ClassVar[bool] = True

    def columns(self, y: Points) -> Points:
        """Return a one-dimensional numeric y as a column if the kernel is defined on vectors."""
        if isinstance(y, Blocks) or (
            isinstance(self.kernel, Kernel) and not self.kernel.domain.on_vectors
        ):
            return y
        try:
            numbers = np.asarray(y)
            numbers = numbers.astype(float) if numbers.dtype == object else numbers
        except (TypeError, ValueError):  # y is not numeric: sets, strings, graphs ...
            return y
        if numbers.ndim != 1 or numbers.dtype.kind not in "biuf":
            return y
        return numbers[:, None]

    def sample(self, y: Points, first: Sample) -> Sample:
        """Check the second view, and return its sample with the weights of the first view."""
        if isinstance(y, Blocks) and (y.width is None or first.drawn is None):
            y = y.to_array()
        columns = self.columns(y)
        n, n_y, weights = length(first.given), length(columns), None
        if n != n_y:
            raise ValueError(
                f"X has {n} points, but y, the second view, has {n_y}; pass both views of every "
                f"point"
            )
        flat = columns is not y
        if first.drawn is not None:  # both views are processed in the same blocks
            if not isinstance(columns, Blocks):
                columns = np.asarray(columns)
                columns = ArrayBlocks(first.given.sizes, columns.shape[1], (columns,))
            weights = first.scatter(first.counts)
        with _SecondViewErrors():
            second = replace(self._sample(columns, sample_weight=weights), flat=flat)
        return replace(second.doubled(), kept=first.kept, weights=first.weights)

    def points(self, y: Points) -> Points:
        """Check new points of the second view and return them."""
        with _SecondViewErrors():
            return self._check_points(self.columns(y), reset=False)


@estimator(kw_only=True)
class TwoViewEstimator(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MultiOutputMixin,
    LandmarkMixin,
    DualEstimator,
):
    """Base class of the estimators that relate two views of the same points.

    Parameters
    ----------
    n_components : int
        Number of pairs of functions. Choose it by cross-validation with `score`, or 2 for plots.
    kernel_y : str, Kernel, callable or scikit-learn GP kernel
        The kernel of the second view y, specified like `kernel`.  For kernels given by name, gamma,
        degree and coef0 apply to both views.
    solver : {"auto", "exact", "nystroem"}
        "exact" optimises over the whole RKHS, "nystroem" over the span of landmarks of each view.
        "auto" is exact for up to 3000 points if the memory budget allows it; otherwise it uses
        landmarks, with a warning. Set "nystroem" for large data, to avoid the warning.
    landmarks_y : str or points
        The landmarks of the second view, specified like `landmarks`.  `rank` and `random_state`
        apply to both views.

    Attributes
    ----------
    expansion_y_, intercept_y_
        The functions g_j of the second view, in the same form as those of the first.
    X_fit_, dual_coef_
        The points of `expansion_` (their indices for a precomputed kernel) and its coefficients.
    n_components_ : int
        The number of pairs of functions.
    kernel_, kernel_y_ : Kernel
        The kernels of the two views with all parameters resolved.
    """

    n_components: int = parameter("positive integer", default=2)
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    kernel_y: KernelLike = parameter(
        *NamedKernelEstimator._parameter_constraints["kernel"], default="rbf"
    )
    solver: Any = solver("nystroem", default="auto")
    landmarks_y: Any = parameter(
        set(LANDMARK_METHODS), "array-like", "sparse matrix", default="auto"
    )

    n_components_: int = fitted()
    kernel_y_: Kernel = fitted()
    expansion_y_: FittedFunction = fitted()
    intercept_y_: np.ndarray = fitted()
    _second: SecondView = fitted()

    _kernels: ClassVar[tuple[str, ...]] = ("kernel", "kernel_y")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit_transform(self, X: Points, y: Points, **params: Any) -> np.ndarray:
        """Fit to both views and return the scores of X only, as pipelines expect.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view: vectors as the rows of a matrix, or a list of strings, sets or graphs.
            With kernel="precomputed", the kernel matrix of shape (n, n).
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of the same points in the same order, specified like X, for `kernel_y`.
        **params : dict
            Additional arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        ndarray of shape (n, n_components_)
            The scores of the first view.
        """
        return self.fit(X, y, **params).transform(X)

    @predict_method
    def transform(self, X: Points, y: Points = None) -> Any:
        """Return the scores of X and, if y is passed, the scores of y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view of new points. With kernel="precomputed", the kernel matrix of shape (n,
            n_fit) between the n new points and the n_fit training points.
        y : points or None, default=None
            The second view of the same points, in the same form as in `fit`; None to transform X
            only.

        Returns
        -------
        scores : ndarray of shape (n, n_components_)
            The scores f_j(x) - mean(f_j) of the first view.
        scores_y : ndarray of shape (n, n_components_)
            The scores of the second view; only if y is passed.
        """
        scores = self._values(X)
        return scores if y is None else (scores, self._values_y(y))

    def _correlations(
        self, X: Points, y: Points, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the correlation between the scores of X and y for each component."""
        S, T = self.transform(X, _require_y(y, self))
        if len(S) != len(T):
            raise ValueError(f"X has {len(S)} points, but y, the second view, has {len(T)}")
        return columnwise_correlations(
            S, T, None if sample_weight is None else check_weights(sample_weight, S)
        )

    # ------------------------------------------------------------------ fitting

    # Numbers of n x n arrays, and of arrays on landmarks (see `landmark_bytes`), for `plan`.
    _planned_arrays: ClassVar[tuple[float, tuple[float, float, float]]]

    @abstractmethod
    def _two_view_solver(self) -> CanonicalCorrelations | PartialLeastSquares:
        """Return the solver with the parameters of this estimator."""

    def _plan_sample(self, X: Points, y: Any) -> Sample:
        if y is not None and not isinstance(X, Blocks):
            return self._samples(X, y, None)[0]
        return super()._plan_sample(X, None)

    def _plan(self, sample: Sample) -> Plan:
        n, k, solver = len(sample), self.n_components, self._two_view_solver()
        kernel, points = self._planned_kernel(sample), sample.points
        landmarks = Landmarks(self.rank, self.landmarks_y, self.random_state)
        needed = two_view_memory(
            *((kernel, kernel), (points, points), n, landmarks),
            lambda n, m, m_y: solver.workspace(n, m, m_y, k),
        )
        squares, features = self._planned_arrays
        return plan_exact_or_landmarks(
            f"two views of {n} points, {n_of(k, 'component')}",
            *(kernel, points, self.solver, self._chosen),
            squares=squares,
            features=features,
            needed=lambda name, m: needed(name, m, m),
            limit="exact",
            steps=6.0,
            max_memory=self.max_memory,
        )

    def _samples(
        self, X: Points, y: Points, sample_weight: ArrayLike | None
    ) -> tuple[Sample, Sample]:
        """Return the checked training samples of both views."""
        y = as_blocks(y, "y") if is_chunked(y) else _require_y(y, self)
        sample = self._sample(X, sample_weight=sample_weight).doubled()
        self._second = SecondView(kernel=self.kernel_y)
        second = self._second.sample(y, sample)
        if len(sample) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 points of positive weight, got "
                f"n_samples = {len(sample)}"
            )
        return sample, second

    def _fit_views(
        self, sample: Sample, second: Sample, solver: CanonicalCorrelations | PartialLeastSquares
    ) -> TwoViewResult:
        """Solve the two-view problem and set the fitted attributes.

        The solver works on finite-dimensional coordinates of both views; its solution is then
        converted to kernel expansions.
        """
        kernel = sample.resolve_centred(self._make_kernel(self.gamma))
        options = {name: getattr(self, name) for name in ("gamma", "degree", "coef0")}
        kernel_y = second.resolve_centred(as_kernel(self.kernel_y, **options))
        values = sample.evaluated(kernel, self.max_memory)
        values_y = second.evaluated(kernel_y, self.max_memory)
        phi, psi = two_view_coordinates(
            (values, values_y),
            (sample.points, second.points),
            self.solver,
            (self._chosen, Landmarks(self.rank, self.landmarks_y, self.random_state)),
            lambda n, m, m_y: solver.workspace(n, m, m_y, solver.n_components),
            among=(sample.subsample.points, second.subsample.points),
            max_memory=self.max_memory,
        )
        self._log_progress(f"X: {phi.message}")
        self._log_progress(f"y: {psi.message}")
        relation = solver.relate(View.of(phi.F, sample.weights), View.of(psi.F, sample.weights))
        f = Expansion(kernel, phi.points, phi.coefficients(relation.x))
        self._set_expansion(f, -relation.offset, flat=False)
        self.expansion_y_ = Expansion(kernel_y, psi.points, psi.coefficients(relation.y))
        self.intercept_y_ = -relation.offset_y
        self.kernel_, self.kernel_y_ = kernel, kernel_y
        self.n_components_ = len(relation.values)
        report, status = relation.report, relation.report.status
        if (phi.approximate or psi.approximate) and status is Status.DIRECT:
            status = Status.APPROXIMATE
        text = "; ".join(filter(None, [report.message, f"X: {phi.message}", f"y: {psi.message}"]))
        self.report_ = replace(report, status=status, message=text)
        self._log_progress(f"{relation.values.round(6)}: {status.value}")
        return relation

    @predict_method
    def _values_y(self, y: Points) -> np.ndarray:
        """Return the scores of points of the second view."""
        check_is_fitted(self)
        return np.asarray(self.expansion_y_(self._second.points(y)) + self.intercept_y_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


class _SecondViewErrors:
    """Context manager that prefixes error messages with a remark that they concern y."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind in (ValueError, TypeError):
            raise kind(f"y, the second view (called X in what follows): {error}") from error


def _require_y(y: Points, model: object) -> Points:
    """Return y; raise an error if it is None."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None; pass the "
            f"second view as y"
        )
    return y


@estimator()
class KernelCCA(TwoViewEstimator):
    """Kernel canonical correlation analysis.

    Finds pairs of functions, f of the first view X and g of the second view y, that maximise the
    regularised correlation

        cov(f(x), g(y)) / sqrt((var f + alpha |f|^2) (var g + alpha_y |g|^2)).

    The views may be of different types, such as strings and vectors, or texts and graphs, if each
    has a kernel. Each pair is uncorrelated with the previous pairs, up to the effect of
    alpha. The linear kernel with a small alpha is equivalent to scikit-learn's `CCA`, with scores
    of variance 1. With a large alpha, the covariance of functions of norm 1 is maximised, as in
    partial least squares without deflation.

    Parameters
    ----------
    alpha : float
        The weight of the penalty |f|^2 relative to the variance of f, in units of k(x, x). It must
        be positive: without a penalty, any two high-dimensional views are perfectly correlated.
        Choose it by cross-validation on a logarithmic grid, for instance 10^-4 to 1; see Notes.
    alpha_y : float or None
        The weight of the penalty |g|^2; None means alpha.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components_,)
        The maxima of the regularised correlation. Because of alpha they are smaller than the
        correlations of the scores, which `correlations` computes for training points or new points.
    expansion_, intercept_
        The functions f_j. Scores are ``expansion_(X) + intercept_``, where the intercept is minus
        the mean of f_j.

    See Also
    --------
    KernelPLS : Maximises covariances instead, and predicts y.
    KernelPCA : For a single view.
    hsic : Measures the dependence of two views.
    independence_test : Tests whether two views are independent.
    sklearn.cross_decomposition.CCA : The linear case, without regularisation.

    Notes
    -----
    The penalty is that of Hardoon, Szedmak and Shawe-Taylor (2004). Bach and Jordan (2002) use
    (K + kappa I)^2 = K^2 + 2 kappa K + kappa^2 I instead, which agrees with it for
    kappa = n alpha / 2, up to the term kappa^2.

    Sample weights are treated as repetitions of points, up to a common factor.

    To choose alpha and the kernels by cross-validation, use `score`, the mean correlation on new
    points: ``GridSearchCV(KernelCCA(), {"alpha": [0.001, 0.01, 0.1]}).fit(X, Y)``.

    References
    ----------
    Bach and Jordan, "Kernel independent component analysis", Journal of Machine Learning Research
    3, 2002.

    Hardoon, Szedmak and Shawe-Taylor, "Canonical correlation analysis: an overview with application
    to learning methods", Neural Computation 16, 2004.

    Examples
    --------
    On a circle the two coordinates are not linearly related, but their squares are.

    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> x, y = np.cos(angle)[:, None], np.sin(angle)[:, None]
    >>> linear = KernelCCA(1, kernel="linear", kernel_y="linear").fit(x, y)
    >>> bool(linear.score(x, y) < 0.2)
    True
    >>> model = KernelCCA(1).fit(x[:100], y[:100])
    >>> bool(model.score(x[100:], y[100:]) > 0.99)
    True
    """

    n_components: int = parameter("positive integer", default=2)
    _: KW_ONLY
    alpha: float = parameter("positive", default=1e-3)
    alpha_y: float | None = parameter("positive", None, default=None)

    canonical_correlations_: np.ndarray = fitted()

    _planned_arrays = 9.0, (2.0, 1.0, 8.0)

    def _two_view_solver(self) -> CanonicalCorrelations:
        alpha_y = self.alpha if self.alpha_y is None else self.alpha_y
        return CanonicalCorrelations(int(self.n_components), float(self.alpha), float(alpha_y))

    @fit_method
    def fit(self, X: Points, y: Points, sample_weight: ArrayLike | None = None) -> Self:
        """Find correlated functions of two views of the same points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view: vectors as the rows of a matrix, or a list of strings, sets or graphs.
            With kernel="precomputed", the kernel matrix of shape (n, n). Data in blocks
            (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of the same points in the same order, specified like X, for `kernel_y`.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which count as repetitions of points, up to a common factor.

        Returns
        -------
        self : KernelCCA
            The fitted estimator.
        """
        solver = self._two_view_solver()
        relation = self._fit_views(*self._samples(X, y, sample_weight), solver)
        self.canonical_correlations_ = relation.values
        return self

    def correlations(
        self, X: Points, y: Points, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the correlation between f_j(x) and g_j(y) over these points, for each pair j.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view of new points. With kernel="precomputed", the kernel matrix of shape (n,
            n_fit) between the n new points and the n_fit training points.
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of these points, in the same order and in the same form.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points.

        Returns
        -------
        ndarray of shape (n_components_,)
            Correlations between -1 and 1.
        """
        return self._correlations(X, y, sample_weight)

    def score(self, X: Points, y: Points, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean correlation of the scores, for the choice of alpha and of kernels.

        On new points, a mean correlation far below that of the training points means that alpha is
        too small.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view of new points. With kernel="precomputed", the kernel matrix of shape (n,
            n_fit) between the n new points and the n_fit training points.
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of these points, in the same order and in the same form.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points.

        Returns
        -------
        float
            The mean of `correlations` over all pairs of functions.
        """
        return float(np.mean(self._correlations(X, y, sample_weight)))


@estimator()
class KernelPLS(TwoViewEstimator):
    """Partial least squares in the feature spaces of two kernels.

        maximise  cov(f(x), g(y))  over  |f| = |g| = 1,   then deflate both views and repeat

    Each component is a pair of functions of maximal covariance (Rosipal and Trejo 2001).  In the
    regression mode, deflation removes from both views the part that the score of x explains, and
    `predict` is the least-squares regression of y on the scores.  A few components often predict
    as well as ridge regression with a well-chosen alpha.  In the canonical mode, each view is
    deflated by its own score.

    With linear kernels these are scikit-learn's `PLSRegression` and `PLSCanonical` with
    scale=False: columns are not scaled.

    Parameters
    ----------
    mode : {"regression", "canonical"}
        "regression" is for predicting y from X; "canonical" treats both views alike and has no
        `predict`.

    Attributes
    ----------
    covariances_ : ndarray of shape (n_components_,)
        The maximal covariance of each component.
    expansion_, intercept_
        The functions f_j, which apply to x itself, not to the deflated view.  Scores
        are expansion_(X) + intercept_, where intercept_ is minus the mean of f_j.
    expansion_y_, intercept_y_
        The functions g_j of y, in the same form.  In the regression mode they have norm 1 and are
        not deflated.
    n_components_ : int
        The number of components.  It is smaller than n_components, with a warning, if no
        covariance remains after deflation.

    See Also
    --------
    KernelCCA : Maximises correlations instead of covariances.
    KernelRidge : Prediction with a penalty instead of a small number of components.
    KernelPCA : Components of X only, without y.
    sklearn.cross_decomposition.PLSRegression : The linear case; scales the columns by default.

    Notes
    -----
    Sample weights count as repetitions of points, up to a common factor.

    References
    ----------
    Rosipal and Trejo, "Kernel partial least squares regression in reproducing kernel Hilbert
    space", Journal of Machine Learning Research 2, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPLS
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.c_[np.sin(X), np.cos(X)]
    >>> model = KernelPLS(4).fit(X, y)
    >>> model.transform(X).shape, bool(model.score(X, y) > 0.99)
    ((100, 4), True)
    """

    n_components: int = parameter("positive integer", default=2)
    _: KW_ONLY
    mode: str = parameter({"regression", "canonical"}, default="regression")
    kernel_y: KernelLike = "linear"

    covariances_: np.ndarray = fitted()
    _flat: bool = fitted()
    _regression: tuple | None = fitted()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.mode == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    _planned_arrays = 3.0, (2.0, 0.5, 3.0)

    def _two_view_solver(self) -> PartialLeastSquares:
        return PartialLeastSquares(int(self.n_components), self.mode)

    @fit_method
    def fit(self, X: Points, y: Points, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the components of two views of the same points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view: vectors as the rows of a matrix, or a list of strings, sets or graphs.
            With kernel="precomputed", the kernel matrix of shape (n, n). Data in blocks
            (`open_blocks`, Dask arrays) need solver="nystroem".
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of the same points in the same order, specified like X, for `kernel_y`.
            For predictions, numeric targets of shape (n,) or (n, n_targets).
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which count as repetitions of points, up to a common factor.

        Returns
        -------
        self : KernelPLS
            The fitted estimator.
        """
        sample, second = self._samples(X, y, sample_weight)
        solver = self._two_view_solver()
        relation = self._fit_views(sample, second, solver)
        self.covariances_ = relation.values
        self._regression = None
        targets = in_memory(second.points)
        if self.mode == "regression" and isinstance(targets, np.ndarray) and targets.ndim == 2:
            self._regression = relation.regression(np.asarray(targets, dtype=float))
            self._flat = second.flat
        return self

    def _can_predict(self) -> bool:
        """Return True in the regression mode; raise AttributeError otherwise."""
        if self.mode != "regression":
            raise AttributeError(f"mode={self.mode!r} cannot predict; use mode='regression'")
        return True

    @available_if(_can_predict)
    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict a numeric y.

        Only available with mode="regression", if y in `fit` was a dense array of numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view of new points. With kernel="precomputed", the kernel matrix of shape (n,
            n_fit) between the n new points and the n_fit training points. If X is in blocks, so is
            the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            The predictions; one-dimensional if y was one-dimensional in `fit`.
        """
        scores = self._values(X)
        if self._regression is None:
            raise ValueError(
                "predict needs a model that was fitted to a dense numeric array y; for other types "
                "of y, compare the scores that transform(X, y) returns"
            )
        B, b = self._regression
        values = scores @ B + b
        return values[:, 0] if self._flat else values

    def score(self, X: Points, y: Points, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2 of the predictions, or in the canonical mode the mean correlation of scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            The first view of new points. With kernel="precomputed", the kernel matrix of shape (n,
            n_fit) between the n new points and the n_fit training points.
        y : array-like or sparse matrix of shape (n, d_y) or (n,), or list of objects
            The second view of these points, in the same order and in the same form.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points.

        Returns
        -------
        float
            At most 1; larger is better.
        """
        from sklearn.metrics import r2_score

        if self.mode == "regression":
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        return float(np.mean(self._correlations(X, y, sample_weight)))
