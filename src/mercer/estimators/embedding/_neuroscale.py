"""NeuroScale, a topographic embedding by kernel functions: scikit-learn interface."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, check_budget, length, seeded_generator
from ...gram import gram, warn_if_cancelled
from ...kernels import Kernel, Linear, shifted_to_data
from ...models.embedding import Stress, feature_space_pdist, fit_neuroscale
from .._kernel_estimator import DualEstimator, ExploreMixin, KernelLike, Seed
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._training_sample import Sample
from ._pairs_of_points import check_pairs, make_stress, resolve_dimension, to_condensed

# The memory of a fit per entry of the kernel matrix: 32 bytes are the kernel matrix, its
# eigenvectors and the work space of LAPACK or ARPACK; the rest are dissimilarities and weights.
_BYTES_PER_PAIR = 40


@estimator()
class NeuroScale(ExploreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DualEstimator):
    """Topographic embedding: kernel functions whose values preserve distances.

    The coordinates are functions of the points that minimise the stress of `MetricMDS`,

        z(x) = sum_j a_j k(x_j, x) + b,
        S = sum_(i<j) w_ij (|z(x_i) - z(x_j)| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2,

    plus a ridge penalty on the functions. `transform` therefore evaluates functions, and needs
    neither distances nor an optimisation; nearby points have nearby coordinates. With y, the
    dissimilarities delta can combine distances with class labels or target values (`supervision`).

    The shadow-target algorithm alternates between target coordinates, which are a majorisation step
    ahead, and a ridge regression on them. It is gradient descent in suitable variables; L-BFGS
    uses the same variables, and starts at the regression on classical scaling.

    Parameters
    ----------
    n_components : int or None
        The dimension of the embedding; None means 2, or 1 for vectors with two columns or fewer.
    alpha : float
        The ridge parameter, relative to the mean eigenvalue of the centred kernel matrix. Larger
        values give smoother functions with a larger stress. With 0, the functions of a strictly
        positive definite kernel can take any values, and the training points have the stress of
        `MetricMDS`. Compare the `score` of held-out points.
    stress : {"raw", "sammon"}
        The weights of the pairs: w = 1, or w = 1 / delta. Choose "sammon" if small distances matter
        more.
    dissimilarity : {"auto", "euclidean", "kernel"}
        "euclidean" preserves Euclidean distances of vectors, and "kernel" preserves distances
        |phi(x) - phi(z)| in the feature space of the kernel. "auto" means "euclidean" if the kernel
        is defined on vectors, otherwise "kernel". `fit` also takes a matrix.
    supervision : float
        The weight of y, between 0 and 1: the dissimilarities are (1 - supervision) d_ij +
        supervision s_ij. If y are labels (also integers), s_ij is 1 for points of different
        classes; otherwise it is |y_i - y_j|. s is scaled to the root mean square of d.
    n_init : int
        The number of starts; starts after the first are random.
    tol : float
        A start has converged when a step of the shadow-target algorithm would move the embedding by
        less than tol times its size.
    max_iter : int
        The maximum number of L-BFGS iterations per start.
    random_state : int, RandomState or None
        Seed of the random starts; None means 0.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The coordinates of the training points, with mean 0, along their principal axes.
    stress_ : float
        The stress S of the training points, without the penalty.
    report_ : Report
        Iterations, the relative size of the last step (compared with `tol`), the stress, the
        penalised stress and the norm of its gradient.
    expansion_ : Expansion
        The functions; the coordinates are ``expansion_(X) + intercept_``.
    X_fit_, dual_coef_, intercept_
        The points, coefficients and intercepts of the functions.
    n_iter_ : int
        The number of iterations of the best start.

    See Also
    --------
    MetricMDS : Minimises the same stress over the coordinates instead of functions.
    KernelPCA : Functions that preserve variance, with a closed-form solution.
    compress : Reduces the number of points x_j, the centres of the functions.

    References
    ----------
    Lowe and Tipping, "Feed-forward neural networks and topographic mappings for exploratory data
    analysis", Neural Computing & Applications 4, 1996.

    Tipping and Lowe, "Shadow targets: a novel algorithm for topographic projections by radial basis
    functions", Neurocomputing 19, 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import MetricMDS, NeuroScale
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NeuroScale(2).fit(X[::2])
    >>> model.transform(X[1::2]).shape
    (75, 2)
    >>> bool(model.stress_ < 1.1 * MetricMDS(2).fit(X[::2]).stress_)
    True
    >>> supervised = NeuroScale(2, supervision=0.5).fit(X, y)
    """

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "median"
    alpha: float = parameter("non-negative", default=1e-3)
    stress: str = parameter({"raw", "sammon"}, default="raw")
    dissimilarity: str = parameter({"auto", "euclidean", "kernel"}, default="auto")
    supervision: float = parameter(Interval(Real, 0, 1, closed="both"), default=0.0)
    n_init: int = parameter("positive integer", default=1)
    tol: float = parameter("positive", default=1e-5)
    max_iter: int = parameter("positive integer", default=1000)
    random_state: Seed = parameter("random_state", default=None)

    embedding_: np.ndarray = fitted(per_point=True)
    stress_: float = fitted()

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # order 1 is sufficient, because the kernel matrix is centred

    @fit_method
    def fit(
        self,
        X: Points,
        y: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        dissimilarities: ArrayLike | None = None,
    ) -> Self:
        """Fit the functions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,) or None, default=None
            Class labels or target values, used only if `supervision` is positive.
        weights : array-like of shape (n, n) or None, default=None
            Non-negative weights of the pairs of points; pairs of weight 0 are ignored.
        dissimilarities : array-like of shape (n, n) or None, default=None
            The symmetric matrix of distances d; None means those that `dissimilarity` selects.

        Returns
        -------
        self : NeuroScale
            The fitted estimator.
        """
        sample = self._sample(X).doubled()
        n, points = len(sample), sample.points
        kernel = sample.resolve_centred(self._make_kernel(self.gamma))
        is_euclidean = dissimilarities is None and self._is_euclidean(kernel)
        q = resolve_dimension(self.n_components, points, is_euclidean)
        check_budget(_BYTES_PER_PAIR * n * n, self.max_memory, f"all pairs of {n} points")
        values = sample.evaluated(kernel, self.max_memory)
        S, unit = self._stress(values, points, y, weights, dissimilarities)
        K = gram(values, points, storage="dense", max_memory=self.max_memory).release()
        result = fit_neuroscale(
            *(S, K.astype(np.float64, copy=False), q, self.alpha, self.n_init),
            *(self.tol, self.max_iter),
            *(seeded_generator(self.random_state), self._progress_callback),
        )
        self.kernel_, self.report_ = kernel, result.report
        f = sample.expansion(kernel, unit * result.A)
        self._set_expansion(f, -unit * result.mean, flat=False)
        self.embedding_, self.stress_ = unit * result.Z, result.report.certificate["stress"]
        self._log_progress(f"stress {self.stress_:.4g} in {q} dimensions")
        return self

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the coordinates of points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Points of the same type as the training points. With kernel="precomputed", the kernel
            matrix of shape (n, n_fit) between these and the training points.

        Returns
        -------
        ndarray of shape (n, n_components)
            Coordinates in the space of `embedding_`.
        """
        return np.asarray(self._values(X), dtype=np.float64)

    @predict_method
    def score(
        self, X: Points, y: ArrayLike | None = None, dissimilarities: ArrayLike | None = None
    ) -> float:
        """Return minus the stress S of points, such as held-out points, for model selection.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            At least two points, as in `transform`.
        y : array-like of shape (n,) or None, default=None
            Class labels or target values, used only if `supervision` is positive.
        dissimilarities : array-like of shape (n, n) or None, default=None
            The distances of the points, as in `fit`; required if kernel="precomputed".

        Returns
        -------
        float
            At most 0; larger is better.
        """
        Z = self.transform(X)
        if self._precomputed and dissimilarities is None:
            raise ValueError(
                "a precomputed kernel matrix does not contain the distances between new points; "
                "pass them as dissimilarities"
            )
        check_budget(20 * len(Z) ** 2, self.max_memory, f"all pairs of {len(Z)} points")
        points = self._check_new_float64(X)
        S, unit = self._stress(self.kernel_, points, y, None, dissimilarities)
        return -float(S(Z / unit)[0])

    def _stress(
        self, kernel: Kernel, points: Points, y: Any, weights: Any, dissimilarities: Any
    ) -> tuple[Stress, float]:
        """Return the stress of points as a function of coordinates, and their unit."""
        n = length(points)
        if n < 2:
            raise ValueError("the stress needs at least 2 points, got n_samples=1")
        if dissimilarities is None:
            distance = kernel
            if self._is_euclidean(kernel):
                distance = shifted_to_data(Linear(), points)
                if distance != kernel:  # a warning about `kernel` was issued by `resolve_centred`
                    warn_if_cancelled(distance, points)
            delta = feature_space_pdist(distance, points)
        else:
            D = check_pairs(dissimilarities, "dissimilarities", (n, n))
            delta = to_condensed(D, "dissimilarities", zero_diagonal=True)
        if self.supervision > 0.0:
            if y is None:
                raise ValueError(
                    f"supervision={self.supervision} requires y to be passed, but the target y is "
                    f"None"
                )
            s = _target_distances(y, n)
            s *= self.supervision * np.sqrt(np.mean(delta * delta) / np.mean(s * s))
            delta *= 1.0 - self.supervision
            delta += s
        w = None if weights is None else check_pairs(weights, "weights", (n, n))
        S, unit, _ = make_stress(delta, self.stress, w)
        return S, unit

    def _is_euclidean(self, kernel: Kernel) -> bool:
        """Whether the distances of the points are Euclidean distances of vectors."""
        on_vectors = kernel.domain.on_vectors and not self._precomputed
        if self.dissimilarity == "euclidean" and not on_vectors:
            raise ValueError(
                f"dissimilarity='euclidean' needs vectors, but the kernel {kernel} is not defined "
                f"on vectors; set dissimilarity='kernel', or pass dissimilarities to fit"
            )
        return on_vectors and self.dissimilarity != "kernel"

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n = len(sample)
        memory = {"required": _BYTES_PER_PAIR * n * n, "extra": _BYTES_PER_PAIR * n * n}
        option = {"solver": "shadow targets", "storage": "dense", "exact": False}
        return f"NeuroScale of {n} points", {**option, **memory}

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the best start."""
        check_is_fitted(self)
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return len(self.expansion_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.supervision > 0.0
        return tags


def _target_distances(y: ArrayLike, n: int) -> np.ndarray:
    """Return the distances of target values, or 0 and 1 for labels, of all pairs of n points."""
    values = np.asarray(column_or_1d(y))
    if len(values) != n:
        raise ValueError(f"y has {len(values)} values, but there are {n} points")
    is_continuous = type_of_target(values, input_name="y") == "continuous"
    numbers = values if is_continuous else np.unique(values, return_inverse=True)[1]
    s = pdist(numbers[:, None].astype(np.float64), "euclidean" if is_continuous else "hamming")
    if not s.any():
        raise ValueError(
            f"all {n} values of y are equal, so that they define no dissimilarities; set "
            f"supervision=0"
        )
    return s
