"""Base class of KernelCCA and KernelPLS, which relate two views of the same points.

The scores of x are f_j(x) - mean(f_j), and the scores of y are g_j(y) - mean(g_j), with functions
f_j and g_j, j = 1, 2, ...
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    TransformerMixin,
)
from sklearn.utils._param_validation import StrOptions
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
    Report,
    Status,
    TwoViewResult,
    View,
    columnwise_correlations,
    plan_exact_or_landmarks,
    two_view_coordinates,
    two_view_memory,
)
from .._kernel_estimator import KernelLike, LandmarkMixin, NamedKernelEstimator
from .._parameters import (
    POSITIVE_INTEGER,
    estimator,
    fitted_attribute,
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

    def columns(self, y: Any) -> Any:
        """Return a one-dimensional numeric y as a column if the kernel is defined on vectors."""
        if isinstance(y, Blocks) or (
            isinstance(self.kernel, Kernel) and not self.kernel.on_vectors
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

    def sample(self, y: Any, first: Sample) -> Sample:
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

    def points(self, y: Any) -> Any:
        """Check new points of the second view and return them."""
        with _SecondViewErrors():
            return self._check_points(self.columns(y), reset=False)


@estimator(kw_only=True)
class TwoViewEstimator(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MultiOutputMixin,
    LandmarkMixin,
    NamedKernelEstimator,
):
    """Base class of the estimators that relate two views of the same points.

    Parameters
    ----------
    n_components : int
        Number of pairs of functions.
    kernel_y : str, Kernel, callable or scikit-learn GP kernel
        The kernel of the second view y, specified like `kernel`.  For kernels given by name, gamma,
        degree and coef0 apply to both views.
    solver : {"auto", "exact", "nystroem"}
        "exact" optimises over the whole RKHS, "nystroem" over the span of landmarks of each view.
        "auto" is exact for up to 3000 points if the memory budget allows it; otherwise it uses
        landmarks, with a warning.
    landmarks_y : str or points
        The landmarks of the second view, specified like `landmarks`.  `rank` and `random_state`
        apply to both views.
    """

    n_components: int = parameter(POSITIVE_INTEGER, default=2)
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    kernel_y: KernelLike = parameter(
        *NamedKernelEstimator._parameter_constraints["kernel"], default="rbf"
    )
    solver: Any = solver("nystroem", default="auto")
    landmarks_y: Any = parameter(
        StrOptions(set(LANDMARK_METHODS)), "array-like", "sparse matrix", default="auto"
    )

    n_components_: int = fitted_attribute()
    kernel_: Kernel = fitted_attribute()
    kernel_y_: Kernel = fitted_attribute()
    expansion_y_: Expansion = fitted_attribute()
    intercept_y_: np.ndarray = fitted_attribute()
    report_: Report = fitted_attribute()
    _second: SecondView = fitted_attribute()

    _kernels: ClassVar[tuple[str, ...]] = ("kernel", "kernel_y")
    # Numbers of n x n arrays, and of arrays on landmarks (see `landmark_bytes`), for `plan`.
    _planned_arrays: ClassVar[tuple[float, tuple[float, float, float]]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit_transform(self, X: Points, y: Any, **params: Any) -> np.ndarray:
        """Fit to both views and return the scores of X only, as pipelines expect.

        Parameters
        ----------
        X : points
            The first view.
        y : points
            The second view.
        params
            Additional arguments of `fit`.

        Returns
        -------
        ndarray of shape (n, n_components_)
        """
        return self.fit(X, y, **params).transform(X)

    @predict_method
    def transform(self, X: Points, y: Any = None) -> Any:
        """Return the scores of X and, if y is passed, the scores of y.

        Parameters
        ----------
        X : points
            Points of the first view; for a precomputed kernel, the kernel matrix between these and
            the training points.
        y : points or None, default=None
            Points of the second view, in the same form.

        Returns
        -------
        scores : ndarray of shape (n, n_components_), or a pair of such arrays if y is passed
        """
        scores = self._values(X)
        return scores if y is None else (scores, self._values_y(y))

    def _correlations(self, X: Points, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return the correlation between the scores of X and y for each component."""
        S, T = self.transform(X, _require_y(y, self))
        if len(S) != len(T):
            raise ValueError(f"X has {len(S)} points, but y, the second view, has {len(T)}")
        return columnwise_correlations(
            S, T, None if sample_weight is None else check_weights(sample_weight, S)
        )

    # ------------------------------------------------------------------ fitting

    def _samples(self, X: Points, y: Any, sample_weight: Any) -> tuple[Sample, Sample]:
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

    def _fit_views(
        self,
        sample: Sample,
        second: Sample,
        solver: CanonicalCorrelations | PartialLeastSquares,
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
    def _values_y(self, y: Any) -> np.ndarray:
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


def _require_y(y: Any, model: Any) -> Any:
    """Return y; raise an error if it is None."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None; pass the "
            f"second view as y"
        )
    return y
