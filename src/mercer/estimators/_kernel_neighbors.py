"""Nearest-neighbour estimators that use the distance in feature space."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._core import Points, budget_in_bytes, is_count, length, slices, take, warn_caller
from ..expansion import Expansion
from ..gram import nearest_neighbors, radius_neighbors
from ..solvers import Report, Status
from ._kernel_estimator import DualEstimator, Shrink
from ._parameters import estimator, fit_method, fitted, parameter, predict_method
from ._training_sample import Sample

_MAX_PAIRS_PER_BLOCK = 2**22  # `_votes` stores at most this many distances at a time
_BYTES_PER_PAIR = 128  # estimated memory for each pair of points within the radius


@estimator(kw_only=True)
class NeighborsEstimator(DualEstimator):
    """Base class of the estimators that store the training points and search for neighbours.

    Parameters
    ----------
    weights : {"uniform", "distance"}, callable or None
        The weight of a neighbour at distance d. "uniform" or None: all weights are 1. "distance": 1
        / d; if some neighbours have distance 0, only these are used, so that training points are
        predicted exactly. A callable takes an array of distances and returns an array of weights of
        the same shape.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of training points.
    X_fit_, dual_coef_
        The points of the expansion (indices for a precomputed kernel) and its coefficients.
    intercept_ : ndarray
        Zeros, because the functions have no intercepts.
    kernel_ : Kernel
        The kernel with all parameters resolved.  If the points are far from the origin compared
        with their spread, its linear terms are shifted to the centre of the points
        (`mercer.kernels.Shift`); this does not change any distance.
    report_ : Report
        States that there was nothing to solve.
    """

    weights: str | Function[[np.ndarray], Any] | None = parameter(
        {"uniform", "distance"}, callable, None, default="uniform"
    )

    n_samples_fit_: int = fitted()
    _norms: np.ndarray = fitted()

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # the model depends only on distances in feature space

    def _store_training_data(self, sample: Sample, Y: np.ndarray) -> None:
        """Store the training points and the targets Y, shape (n, q).

        Points are converted to float64, because squared distances of close points are small
        differences of large numbers.
        """
        sample = sample.doubled()
        kernel = sample.resolve_centred(self._make_kernel(self.gamma), check=False)
        values = kernel if sample.values is None else sample.values
        self._norms = np.asarray(values.diag(sample.points), dtype=np.float64)
        f, self.kernel_ = Expansion(kernel, sample.points, Y), kernel
        self._set_expansion(f, np.zeros(Y.shape[1]), flat=False)
        self.n_samples_fit_ = len(sample)
        self.report_ = Report("none (the training points are only stored)", Status.DIRECT)
        self._log_progress(f"stored {self.n_samples_fit_} training points")

    def _points_and_norms(self, X: Points, what: str) -> tuple[Any, Any, np.ndarray]:
        """Return the query points x, the training points z, and the values k(x, x).

        X=None means that the training points are the query points; z is then None.  `what` names
        the requested quantity in error messages.
        """
        check_is_fitted(self)
        if X is None and self._precomputed:
            raise ValueError(
                f"{what} of the training points need their kernel matrix, which is not stored for "
                f"kernel='precomputed'; pass the matrix as X, or use kernel=Precomputed(K) and "
                f"indices as points"
            )
        if X is None:
            return self.X_fit_, None, self._norms
        X = self._check_new_float64(X)
        return X, self.X_fit_, self._self_kernel(X, self._norms, what)

    def _neighbour_weights(self, distances: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return the weight of each neighbour.

        Parameters
        ----------
        distances : ndarray of shape (n_pairs,)
            The distance of each (query point, neighbour) pair.
        group : ndarray of int, shape (n_pairs,)
            The index of the query point of each pair.
        """
        if self.weights in (None, "uniform"):
            return np.ones(len(distances))
        if callable(self.weights):
            w = np.asarray(self.weights(distances), dtype=float)
            if w.shape != distances.shape:
                raise ValueError(
                    f"weights is a function that must return one number for each distance: the "
                    f"distances have shape {distances.shape}, but it returned shape {w.shape}"
                )
            return w
        is_zero = distances == 0.0
        has_zero = np.zeros(int(group.max(initial=-1)) + 1, dtype=bool)
        has_zero[group[is_zero]] = True
        with np.errstate(divide="ignore"):
            return np.where(has_zero[group], is_zero, 1.0 / distances)

    def _compress(self, shrink: Shrink) -> None:
        raise TypeError(
            f"{type(self).__name__} cannot be compressed or converted to the primal, because its "
            f"predictions need the training points. Fit it to fewer points instead, such as those "
            f"that mercer.thin returns"
        )


@estimator(kw_only=True)
class KNeighborsEstimator(NeighborsEstimator):
    """Base class of the estimators that use a fixed number of neighbours."""

    n_neighbors: int = parameter("positive integer", default=5)

    @predict_method
    def kneighbors(
        self, X: Points = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return the distances and indices of the nearest training points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None, default=None
            Query points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. None means the training points, where no point is its own neighbour.
        n_neighbors : int or None, default=None
            Number of neighbours; None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return distances. For a precomputed kernel this is possible only if X is the
            kernel matrix of the training points.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            In ascending order; only if `return_distance` is True.
        indices : ndarray of shape (n, n_neighbors)
            Row indices of the training points.
        """
        check_is_fitted(self)
        if not return_distance and self._precomputed and X is not None:
            X = self._check_new_float64(X)
            k = self._check_n_neighbors(n_neighbors, self.n_samples_fit_, length(X))
            return nearest_neighbors(self.kernel_, X, self.X_fit_, k, self._norms)[1]
        X, Z, self_values = self._points_and_norms(X, "distances")
        k = self._check_n_neighbors(n_neighbors, self.n_samples_fit_ - (Z is None), length(X))
        squared, index = nearest_neighbors(self.kernel_, X, Z, k, self._norms, self_values)
        return (np.sqrt(squared), index) if return_distance else index

    def kneighbors_graph(
        self, X: Points = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> sp.csr_matrix:
        """Return the graph of the nearest neighbours as a sparse matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None, default=None
            Query points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. None means the training points, where no point is its own neighbour.
        n_neighbors : int or None, default=None
            Number of neighbours; None means the parameter of the estimator.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the value of an edge is 1 or the distance in feature space.

        Returns
        -------
        csr_matrix of shape (n, n_samples_fit_)
            Row i has an entry for each neighbour of point i.
        """
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
        neighbours = self.kneighbors(X, n_neighbors, return_distance=mode == "distance")
        values, index = (
            neighbours if mode == "distance" else (np.ones(neighbours.shape), neighbours)
        )
        ends = np.arange(len(index) + 1) * index.shape[1]
        shape = (len(index), self.n_samples_fit_)
        return sp.csr_matrix((values.ravel(), index.ravel(), ends), shape=shape)

    def _check_n_neighbors(self, k: Any, available: int, n: int) -> int:
        """Return the number of neighbours, or raise an error if it is invalid.

        Parameters
        ----------
        k : int or None
            The number of neighbours; None means the parameter `n_neighbors`.
        available : int
            The number of training points that can be neighbours.
        n : int
            The number of query points, for the error message.
        """
        k = self.n_neighbors if k is None else k
        if not is_count(k):
            raise ValueError(f"n_neighbors must be a positive integer, got {k!r}")
        if k > available:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_}, n_samples = {n}: only {available} training points can be "
                f"neighbours; choose a smaller n_neighbors"
            )
        return int(k)

    def _indices_and_weights(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and weights of the neighbours of each point, both of shape (n, k)."""
        if self.weights in (None, "uniform"):
            index = self.kneighbors(X, return_distance=False)
            return index, np.ones(index.shape)
        distances, index = self.kneighbors(X)
        group = np.repeat(np.arange(len(index)), index.shape[1])
        return index, self._neighbour_weights(distances.ravel(), group).reshape(index.shape)


@estimator()
class KernelKNeighborsClassifier(ClassifierMixin, KNeighborsEstimator):
    """Classifier that predicts by a vote of the k nearest training points in feature space.

        d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)

    Parameters, attributes and methods are named as in scikit-learn's `KNeighborsClassifier`.
    With the linear kernel, distances are Euclidean and predictions are the same.  Only a single
    column of labels is supported.  The search is exhaustive: distances are evaluated in tiles,
    and only the nearest points of each tile are retained.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbours that vote. Choose it by cross-validation: a small number follows the
        data closely, and a large number smooths. Odd numbers avoid ties of two classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    expansion_ : Expansion
        The training points, with one function f_c = sum_{i in c} k(x_i, .) for each class c.
        Predictions use only the nearest of its points.

    See Also
    --------
    KernelRadiusNeighborsClassifier : All points within a radius vote.
    KernelKNeighborsRegressor : For numeric targets.
    SVC : Usually more accurate; predictions need only support vectors.
    sklearn.neighbors.KNeighborsClassifier : Uses trees, which are faster for vectors with few
        columns.

    References
    ----------
    Fix and Hodges, "Discriminatory analysis: nonparametric discrimination, consistency properties",
    USAF School of Aviation Medicine, technical report, 1951.

    Yu, Ji and Zhang, "Kernel nearest-neighbor algorithm", Neural Processing Letters 15, 2002.

    Examples
    --------
    >>> from mercer import KernelKNeighborsClassifier
    >>> from mercer.kernels import Spectrum
    >>> words = ["ACACAC", "CACACA", "GTGTGT", "TGTGTG"]
    >>> model = KernelKNeighborsClassifier(1, kernel=Spectrum(2)).fit(words, [0, 0, 1, 1])
    >>> model.predict(["ACAC", "GTG"])
    array([0, 1])
    """

    n_neighbors: int = 5
    _: KW_ONLY

    classes_: np.ndarray = fitted()

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Store the training points and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.

        Returns
        -------
        self : KernelKNeighborsClassifier
            The fitted estimator.
        """
        sample = self._sample(X, y, labels=True)
        self.classes_ = sample.classes
        self._store_training_data(sample, np.eye(len(sample.classes))[sample.labels])
        return self

    def predict(self, X: Points) -> np.ndarray:
        """Predict the label with the most votes, or the first of them if several classes tie.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None
            Query points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. None means the training points, where no point votes for itself.

        Returns
        -------
        ndarray of shape (n,)
            Labels from `classes_`.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Points) -> np.ndarray:
        """Return the fraction of the votes for each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None
            Query points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. None means the training points, where no point votes for itself.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Fractions in the order of `classes_`; each row sums to 1.
        """
        index, w = self._indices_and_weights(X)
        votes = np.zeros((len(index), len(self.classes_)))
        for j in range(index.shape[1]):
            votes += w[:, j, None] * self.dual_coef_[index[:, j]]
        return _normalised_rows(votes)


@estimator()
class KernelKNeighborsRegressor(MultiOutputMixin, RegressorMixin, KNeighborsEstimator):
    """Regressor that averages the targets of the k nearest training points in feature space.

        d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)

    Parameters, attributes and methods are named as in scikit-learn's `KNeighborsRegressor`.
    With the linear kernel, distances are Euclidean and predictions are the same.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbours whose targets are averaged. Choose it by cross-validation: a small
        number follows the data closely, and a large number smooths.

    Attributes
    ----------
    expansion_ : Expansion
        The training points, with their targets as coefficients.

    See Also
    --------
    KernelKNeighborsClassifier : For class labels.
    KernelRidge : A smooth function, which is usually more accurate.
    sklearn.neighbors.KNeighborsRegressor : Uses trees, which are faster for vectors with few
        columns.

    References
    ----------
    Stone, "Consistent nonparametric regression", Annals of Statistics 5, 1977.

    Yu, Ji and Zhang, "Kernel nearest-neighbor algorithm", Neural Processing Letters 15, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelKNeighborsRegressor
    >>> X = np.arange(10.0)[:, None]
    >>> KernelKNeighborsRegressor(3, kernel="rbf").fit(X, X[:, 0] ** 2).predict([[5.1]]).round(2)
    array([25.67])
    """

    n_neighbors: int = 5
    _: KW_ONLY

    _flat: bool = fitted()

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Store the training points and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,) or (n, n_targets)
            Targets.

        Returns
        -------
        self : KernelKNeighborsRegressor
            The fitted estimator.
        """
        sample = self._sample(X, y)
        self._store_training_data(sample, sample.targets)
        self._flat = sample.flat
        return self

    def predict(self, X: Points) -> np.ndarray:
        """Predict targets by the weighted mean of the targets of the neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None
            Query points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. None means the training points, where no point is its own neighbour.

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            The predictions; one-dimensional if y was one-dimensional in `fit`.
        """
        index, w = self._indices_and_weights(X)
        total = np.zeros((len(index), self.dual_coef_.shape[1]))
        for j in range(index.shape[1]):
            total += w[:, j, None] * self.dual_coef_[index[:, j]]
        total /= w.sum(axis=1, keepdims=True)
        return total[:, 0] if self._flat else total


@estimator()
class KernelRadiusNeighborsClassifier(ClassifierMixin, NeighborsEstimator):
    """Classifier that predicts by a vote of all training points within a radius in feature space.

        d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z) <= radius^2

    Parameters, attributes and methods are named as in scikit-learn's
    `RadiusNeighborsClassifier`.  With the linear kernel, distances are Euclidean and predictions
    are the same.  If k(x, x) = 1, as for the RBF kernel, distances are at most 2; if the kernel
    also has no negative values, they are at most sqrt(2).

    Parameters
    ----------
    radius : float
        Distance in feature space within which training points vote. Look at the distances that
        `radius_neighbors` returns, and choose a quantile that leaves few points without neighbours.
    outlier_label : label, "most_frequent" or None
        The prediction for points without a neighbour within the radius. With None, such points
        raise an error. A label that does not occur in y marks outliers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    outlier_label_ : label or None
        The label for points without a neighbour; "most_frequent" is replaced by that label.
    expansion_ : Expansion
        The training points, with one function f_c = sum_{i in c} k(x_i, .) for each class c.

    See Also
    --------
    KernelKNeighborsClassifier : A fixed number of neighbours votes.
    ParzenDensity : Weights all points by their distance.
    sklearn.neighbors.RadiusNeighborsClassifier : Uses trees, which are faster for vectors with few
        columns.

    References
    ----------
    Fix and Hodges, "Discriminatory analysis: nonparametric discrimination, consistency properties",
    USAF School of Aviation Medicine, technical report, 1951.

    Yu, Ji and Zhang, "Kernel nearest-neighbor algorithm", Neural Processing Letters 15, 2002.

    Examples
    --------
    >>> from mercer import KernelRadiusNeighborsClassifier
    >>> model = KernelRadiusNeighborsClassifier(2.0, outlier_label="none")
    >>> model.fit([[0.0], [1.0], [9.0]], ["low", "low", "high"]).predict([[2.0], [8.0], [50.0]])
    array(['low', 'high', 'none'], dtype='<U4')
    """

    radius: float = parameter("non-negative", default=1.0)
    _: KW_ONLY
    outlier_label: Any = parameter(str, Real, None, default=None)

    classes_: np.ndarray = fitted()
    outlier_label_: Any = fitted()

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Store the training points and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.

        Returns
        -------
        self : KernelRadiusNeighborsClassifier
            The fitted estimator.
        """
        sample = self._sample(X, y, labels=True)
        self.classes_ = sample.classes
        self._store_training_data(sample, np.eye(len(sample.classes))[sample.labels])
        label = self.outlier_label
        if isinstance(label, str) and label == "most_frequent":
            label = self.classes_[np.bincount(sample.labels).argmax()]
        if label is not None and np.asarray(label).dtype.kind not in _allowed_dtype_kinds(
            self.classes_
        ):
            raise TypeError(
                f"outlier_label={label!r} has a different type than the class labels, such as "
                f"{self.classes_[0]!r}; use a label of the same type"
            )
        self.outlier_label_ = label
        return self

    @predict_method
    def radius_neighbors(
        self, X: Points = None, radius: float | None = None, return_distance: bool = True
    ) -> Any:
        """Return the distances and indices of all training points within the radius.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None, default=None
            Query points of the same type as the training points. None means the training points,
            where no point is its own neighbour. With kernel="precomputed", the kernel matrix of the
            training points, because distances need k(x, x).
        radius : float or None, default=None
            Distance in feature space; None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return distances.

        Returns
        -------
        distances : ndarray of n arrays
            In the order of `X_fit_`, not sorted; only if `return_distance` is True.
        indices : ndarray of n arrays
            Rows of the training points.
        """
        if radius is not None and not radius >= 0.0:
            raise ValueError(f"radius must be a non-negative number, got {radius!r}")
        X, Z, self_values = self._points_and_norms(X, "radii")
        ends, squared, indices = self._radius_search(X, Z, self_values, radius)
        index = _ragged(np.split(indices, ends[1:-1]))
        return (
            (_ragged(np.split(np.sqrt(squared), ends[1:-1])), index) if return_distance else index
        )

    def predict(self, X: Points) -> np.ndarray:
        """Predict the label with the most votes; `outlier_label_` for points without neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None
            Query points of the same type as the training points. None means the training points,
            where no point votes for itself.

        Returns
        -------
        ndarray of shape (n,)
            Labels from `classes_`, or `outlier_label_`.
        """
        votes = self._votes(X)
        labels = self.classes_[votes.argmax(axis=1)]
        isolated = np.isnan(votes[:, 0])
        if isolated.any():
            labels = labels.astype(np.result_type(labels, np.asarray(self.outlier_label_)))
            labels[isolated] = self.outlier_label_
        return labels

    def predict_proba(self, X: Points) -> np.ndarray:
        """Return the fraction of the votes for each class.

        A point without neighbours has probability 1 for the class `outlier_label_`. If this label
        is not one of the training classes, all probabilities of the point are 0, and a warning is
        issued.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), list of objects, or None
            Query points of the same type as the training points. None means the training points,
            where no point votes for itself.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Fractions in the order of `classes_`.
        """
        votes = self._votes(X)
        isolated = np.isnan(votes[:, 0])
        votes[isolated] = 0.0
        if isolated.any():
            position = np.flatnonzero(self.classes_ == self.outlier_label_)
            if len(position):
                votes[isolated, position[0]] = 1.0
            else:
                warn_caller(
                    f"Outlier label {self.outlier_label_} is not in training classes. All class "
                    f"probabilities of outliers will be assigned with 0."
                )
        return _normalised_rows(votes)

    def _radius_search(
        self, X: Points, Z: Points, self_values: np.ndarray, radius: float | None = None
    ) -> Any:
        """Return the neighbours within the radius: CSR row ends, squared distances and indices."""
        r = self.radius if radius is None else radius
        return radius_neighbors(self.kernel_, X, Z, float(r), self._norms, self_values)

    @predict_method
    def _votes(self, X: Points) -> np.ndarray:
        """Return the total weight of the neighbours in each class; NaN if a point has none.

        Points are processed in blocks, because all training points may be within the radius.
        """
        X, Z, self_values = self._points_and_norms(X, "radii")
        max_pairs = min(_MAX_PAIRS_PER_BLOCK, budget_in_bytes(self.max_memory) // _BYTES_PER_PAIR)
        n, block_rows = length(X), max(1, max_pairs // self.n_samples_fit_)
        out = np.empty((n, len(self.classes_)))
        for rows in slices(n, block_rows):
            ends, squared, indices = self._radius_search(
                take(X, rows), self.X_fit_, self_values[rows]
            )
            counts = np.diff(ends)
            group = np.repeat(np.arange(len(counts)), counts)
            if Z is None:  # for training points, remove each point from its own neighbours
                others = indices != group + rows.start
                group, squared, indices = group[others], squared[others], indices[others]
                counts = np.bincount(group, minlength=len(counts))
                ends = np.concatenate([[0], np.cumsum(counts)])
            w = self._neighbour_weights(np.sqrt(squared), group)
            weight_matrix = sp.csr_matrix(
                (w, indices, ends), shape=(len(counts), self.n_samples_fit_)
            )
            out[rows] = weight_matrix @ self.dual_coef_
            out[rows][counts == 0] = np.nan
        isolated = np.flatnonzero(np.isnan(out[:, 0]))
        if len(isolated) and self.outlier_label_ is None:
            raise ValueError(
                f"No neighbors found for test samples {isolated[:10]} ({len(isolated)} of {n}) "
                f"within radius={self.radius:g} in feature space; increase the radius, set an "
                f"outlier_label, or remove these points"
            )
        return out


def _normalised_rows(votes: np.ndarray) -> np.ndarray:
    """Scale each row to sum to 1; rows without votes remain 0."""
    total = votes.sum(axis=1, keepdims=True)
    return votes / np.where(total == 0.0, 1.0, total)


def _ragged(parts: list[np.ndarray]) -> np.ndarray:
    """Return arrays of different lengths as a one-dimensional array of objects."""
    out = np.empty(len(parts), dtype=object)
    out[:] = parts
    return out


def _allowed_dtype_kinds(classes: np.ndarray) -> str:
    """Return the dtype kinds that are allowed for an outlier label, given the classes."""
    return "biuf" if classes.dtype.kind in "biuf" else classes.dtype.kind + "UO"
