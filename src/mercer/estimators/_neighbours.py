"""Nearest neighbours in feature space, with the metric of the kernel."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._errors import warn_caller
from .._points import length, take
from .._runtime import budget_in_bytes, is_count, slices
from ..expansion import Expansion
from ..gram import nearest, within
from ..kernels import Kernel
from ..solvers import Report, Status
from ._base import NamedKernel
from ._parameters import AT_LEAST_0, COUNT, estimator, fitting, learned, parameter, threaded
from ._sample import Sample

__all__ = [
    "KernelKNeighborsClassifier",
    "KernelKNeighborsRegressor",
    "KernelRadiusNeighborsClassifier",
]

_BLOCK = 2**22  # pairs of points whose distances are held at a time, at most
_BYTES = 128  # that a pair within the radius takes


@estimator(kw_only=True)
class Neighbours(NamedKernel):
    """An estimator that keeps its points and looks for the nearest.

    Parameters
    ----------
    weights : {"uniform", "distance"}, callable or None
        The weight of a neighbour at distance d: 1; 1 / d (where points are at distance 0, these
        alone count); or a function of an array of distances.
    """

    weights: str | Function[[np.ndarray], Any] | None = parameter(
        StrOptions({"uniform", "distance"}), callable, None, default="uniform"
    )

    kernel_: Kernel = learned()

    @property
    def _order(self) -> int | None:
        return 1  # distances are all that counts

    def _keep(self, sample: Sample, Y: np.ndarray) -> None:
        """Keep the points, with a column of targets for each function of the expansion.

        In float64: distances of points that are near are small differences of large numbers.
        """
        sample = sample.doubled()
        kernel = sample.resolve_about(self._make_kernel(self.gamma), check=False)
        values = kernel if sample.values is None else sample.values
        self._norms = np.asarray(values.diag(sample.points), dtype=np.float64)
        f, self.kernel_ = Expansion(kernel, sample.points, Y), kernel
        self._set_expansion(f, np.zeros(Y.shape[1]), flat=False)
        self.n_samples_fit_ = len(sample)
        self.report_ = Report("none: the points are kept", Status.DIRECT)
        self._say(f"{self.n_samples_fit_} points are kept")

    def _points_and_norms(self, X: Any, what: str) -> tuple[Any, Any, np.ndarray]:
        """Return the points x, the points z (None if they are the same), and k(x, x)."""
        check_is_fitted(self)
        if X is None and self._precomputed:
            raise ValueError(
                f"{what} of the training points need their matrix, which is not kept for "
                f"kernel='precomputed'; give it as X, or kernel=Precomputed(K) and indices"
            )
        if X is None:
            return self.X_fit_, None, self._norms
        X = self._check_new(X)
        return X, self.X_fit_, self._self_kernel(X, self._norms, what)

    def _weights(self, distances: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return the weights of neighbours; `group` is the place of the point that each is of."""
        if self.weights in (None, "uniform"):
            return np.ones(len(distances))
        if callable(self.weights):
            w = np.asarray(self.weights(distances), dtype=float)
            if w.shape != distances.shape:
                raise ValueError(
                    f"weights must return one number for each of {distances.shape} distances, got "
                    f"shape {w.shape}"
                )
            return w
        zero = distances == 0.0
        at = np.zeros(int(group.max(initial=-1)) + 1, dtype=bool)
        at[group[zero]] = True
        with np.errstate(divide="ignore"):
            return np.where(at[group], zero, 1.0 / distances)

    def _compress(self, shrink: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} answers by its points themselves, of which a shorter expansion "
            f"keeps none; fit it to fewer points, such as those of mercer.thin"
        )


@estimator(kw_only=True)
class KNeighbours(Neighbours):
    """An estimator that asks a number of neighbours."""

    n_neighbors: int = parameter(COUNT, default=5)

    @threaded
    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return the distances of the nearest training points, ascending, and their places.

        Both (n, n_neighbors).  Without X, those of the training points, of which none is its own
        neighbour.  For a precomputed kernel, distances are known only for the matrix of the
        training points; the places, with `return_distance=False`, for any k(X, X_fit).
        """
        check_is_fitted(self)
        if not return_distance and self._precomputed and X is not None:
            X = self._check_new(X)
            k = self._count(n_neighbors, self.n_samples_fit_, length(X))
            return nearest(self.kernel_, X, self.X_fit_, k, self._norms)[1]
        X, Z, own = self._points_and_norms(X, "distances")
        k = self._count(n_neighbors, self.n_samples_fit_ - (Z is None), length(X))
        squared, index = nearest(self.kernel_, X, Z, k, self._norms, own)
        return (np.sqrt(squared), index) if return_distance else index

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> sp.csr_matrix:
        """Return the sparse matrix of neighbours, with 1 or (mode="distance") distances in it."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
        found = self.kneighbors(X, n_neighbors, return_distance=mode == "distance")
        values, index = found if mode == "distance" else (np.ones(found.shape), found)
        ends = np.arange(len(index) + 1) * index.shape[1]
        shape = (len(index), self.n_samples_fit_)
        return sp.csr_matrix((values.ravel(), index.ravel(), ends), shape=shape)

    def _count(self, k: Any, most: int, n: int) -> int:
        k = self.n_neighbors if k is None else k
        if not is_count(k):
            raise ValueError(f"n_neighbors must be a positive integer, got {k!r}")
        if k > most:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_}, n_samples = {n}: there are only {most} points to be "
                f"neighbours; ask for fewer"
            )
        return int(k)

    def _asked(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the places and weights of the neighbours of each point, (n, k) both."""
        if self.weights in (None, "uniform"):
            index = self.kneighbors(X, return_distance=False)
            return index, np.ones(index.shape)
        distances, index = self.kneighbors(X)
        group = np.repeat(np.arange(len(index)), index.shape[1])
        return index, self._weights(distances.ravel(), group).reshape(index.shape)


@estimator()
class KernelKNeighborsClassifier(ClassifierMixin, KNeighbours):
    """Vote among the k points z with the smallest d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z).

    Parameters, attributes and methods have the names of scikit-learn's `KNeighborsClassifier`, to
    which the linear kernel leads back; labels are one column, of two classes or more.  All
    distances are looked at, in tiles of which only the nearest points are kept.

    Parameters
    ----------
    n_neighbors : int
        k.

    Attributes
    ----------
    classes_ : ndarray
    n_samples_fit_ : int
    expansion_ : Expansion
        The points, and a function for each class: f_c = sum_{i in c} k(x_i, .).  A prediction asks
        only the nearest of its points.
    X_fit_, dual_coef_
        Points of the expansion (indices for a precomputed kernel), and its coefficients.
    kernel_ : Kernel
        The kernel with all its values.  If the points are far from the origin compared with their
        spread, its linear terms are shifted to the middle of the points, which changes no
        distance (`mercer.kernels.Shift`).

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

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the points and their labels y, (n,)."""
        sample = self._sample(X, y, labels=True)
        self.classes_ = sample.classes
        self._keep(sample, np.eye(len(sample.classes))[sample.labels])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with most votes, of equals the first; X is k(X, X_fit) if precomputed.

        `X=None` stands for the training points, each without its own vote.
        """
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the shares of the votes, (n, n_classes)."""
        index, w = self._asked(X)
        votes = np.zeros((len(index), len(self.classes_)))
        for j in range(index.shape[1]):
            votes += w[:, j, None] * self.dual_coef_[index[:, j]]
        return _shares(votes)


@estimator()
class KernelKNeighborsRegressor(MultiOutputMixin, RegressorMixin, KNeighbours):
    """Average over the k points z with the smallest d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z).

    Parameters, attributes and methods have the names of scikit-learn's `KNeighborsRegressor`, to
    which the linear kernel leads back.

    Parameters
    ----------
    n_neighbors : int
        k.

    Attributes
    ----------
    n_samples_fit_ : int
    expansion_ : Expansion
        The points, with their targets as coefficients.
    X_fit_, dual_coef_
        Points of the expansion (indices for a precomputed kernel), and its coefficients.
    kernel_ : Kernel
        The kernel with all its values.  If the points are far from the origin compared with their
        spread, its linear terms are shifted to the middle of the points, which changes no
        distance (`mercer.kernels.Shift`).

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

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the points and their targets y, (n,) or (n, n_targets)."""
        sample = self._sample(X, y)
        self._keep(sample, sample.targets)
        self._flat = sample.flat
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted mean of the targets of the neighbours.

        `X=None` stands for the training points, each without itself.
        """
        index, w = self._asked(X)
        total = np.zeros((len(index), self.dual_coef_.shape[1]))
        for j in range(index.shape[1]):
            total += w[:, j, None] * self.dual_coef_[index[:, j]]
        total /= w.sum(axis=1, keepdims=True)
        return total[:, 0] if self._flat else total


@estimator()
class KernelRadiusNeighborsClassifier(ClassifierMixin, Neighbours):
    """Vote among all points z with d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z) <= radius^2.

    Parameters, attributes and methods have the names of scikit-learn's `RadiusNeighborsClassifier`,
    to which the linear kernel leads back.  For kernels with k(x, x) = 1 distances are at most 2,
    and at most sqrt(2) if they are not negative.

    Parameters
    ----------
    radius : float
    outlier_label : label, "most_frequent" or None
        What is said of points without a neighbour; None refuses them.

    Attributes
    ----------
    classes_ : ndarray
    outlier_label_ : label or None
    n_samples_fit_ : int
    expansion_ : Expansion
        The points, and a function for each class: f_c = sum_{i in c} k(x_i, .).
    X_fit_, dual_coef_
        Points of the expansion (indices for a precomputed kernel), and its coefficients.
    kernel_ : Kernel
        The kernel with all its values.  If the points are far from the origin compared with their
        spread, its linear terms are shifted to the middle of the points, which changes no
        distance (`mercer.kernels.Shift`).

    Examples
    --------
    >>> from mercer import KernelRadiusNeighborsClassifier
    >>> model = KernelRadiusNeighborsClassifier(2.0, outlier_label="none")
    >>> model.fit([[0.0], [1.0], [9.0]], ["low", "low", "high"]).predict([[2.0], [8.0], [50.0]])
    array(['low', 'high', 'none'], dtype='<U4')
    """

    radius: float = parameter(AT_LEAST_0, default=1.0)
    _: KW_ONLY
    outlier_label: Any = parameter(str, Real, None, default=None)

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the points and their labels y, (n,)."""
        sample = self._sample(X, y, labels=True)
        self.classes_ = sample.classes
        self._keep(sample, np.eye(len(sample.classes))[sample.labels])
        label = self.outlier_label
        if isinstance(label, str) and label == "most_frequent":
            label = self.classes_[np.bincount(sample.labels).argmax()]
        if label is not None and np.asarray(label).dtype.kind not in _kinds(self.classes_):
            raise TypeError(
                f"outlier_label {label!r} is of another type than the labels, such as "
                f"{self.classes_[0]!r}"
            )
        self.outlier_label_ = label
        return self

    @threaded
    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True
    ) -> Any:
        """Return for each point an array of distances and one of places, in the order of X_fit_.

        Without X, those of the training points, of which none is its own neighbour.
        """
        if radius is not None and not radius >= 0.0:
            raise ValueError(f"radius must be a number that is not negative, got {radius!r}")
        X, Z, own = self._points_and_norms(X, "radii")
        ends, squared, places = self._within(X, Z, own, radius)
        index = _ragged(np.split(places, ends[1:-1]))
        return (
            (_ragged(np.split(np.sqrt(squared), ends[1:-1])), index) if return_distance else index
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with most votes, of equals the first; or `outlier_label`."""
        votes = self._votes(X)
        labels = self.classes_[votes.argmax(axis=1)]
        nobody = np.isnan(votes[:, 0])
        if nobody.any():
            labels = labels.astype(np.result_type(labels, np.asarray(self.outlier_label_)))
            labels[nobody] = self.outlier_label_
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the shares of the votes, (n, n_classes).

        A point without neighbours is surely of the class `outlier_label`; where that is none of the
        classes, all its shares are 0, and a warning says so.
        """
        votes = self._votes(X)
        nobody = np.isnan(votes[:, 0])
        votes[nobody] = 0.0
        if nobody.any():
            place = np.flatnonzero(self.classes_ == self.outlier_label_)
            if len(place):
                votes[nobody, place[0]] = 1.0
            else:
                warn_caller(
                    f"Outlier label {self.outlier_label_} is not in training classes. All class "
                    f"probabilities of outliers will be assigned with 0."
                )
        return _shares(votes)

    def _within(self, X: Any, Z: Any, own: np.ndarray, radius: float | None = None) -> Any:
        r = self.radius if radius is None else radius
        return within(self.kernel_, X, Z, float(r), self._norms, own)

    @threaded
    def _votes(self, X: Any) -> np.ndarray:
        """Return the sums of weights by class; nan for points without a neighbour."""
        X, Z, own = self._points_and_norms(X, "radii")
        pairs = min(_BLOCK, budget_in_bytes(self.max_memory) // _BYTES)
        n, blocks = length(X), max(1, pairs // self.n_samples_fit_)
        out = np.empty((n, len(self.classes_)))
        for rows in slices(n, blocks):  # neighbours may be all points
            ends, squared, places = self._within(take(X, rows), self.X_fit_, own[rows])
            counts = np.diff(ends)
            group = np.repeat(np.arange(len(counts)), counts)
            if Z is None:  # a point is not its own neighbour
                others = places != group + rows.start
                group, squared, places = group[others], squared[others], places[others]
                counts = np.bincount(group, minlength=len(counts))
                ends = np.concatenate([[0], np.cumsum(counts)])
            w = self._weights(np.sqrt(squared), group)
            table = sp.csr_matrix((w, places, ends), shape=(len(counts), self.n_samples_fit_))
            out[rows] = table @ self.dual_coef_
            out[rows][counts == 0] = np.nan
        alone = np.flatnonzero(np.isnan(out[:, 0]))
        if len(alone) and self.outlier_label_ is None:
            raise ValueError(
                f"No neighbors found for test samples {alone[:10]} ({len(alone)} of {n}) within "
                f"radius={self.radius:g} in feature space; raise the radius, give an "
                f"outlier_label, or leave these points out"
            )
        return out


def _shares(votes: np.ndarray) -> np.ndarray:
    """Return rows that sum to 1, or to 0 where there are no votes."""
    total = votes.sum(axis=1, keepdims=True)
    return votes / np.where(total == 0.0, 1.0, total)


def _ragged(parts: list[np.ndarray]) -> np.ndarray:
    """Return arrays of different lengths as an array of objects."""
    out = np.empty(len(parts), dtype=object)
    out[:] = parts
    return out


def _kinds(classes: np.ndarray) -> str:
    """Return the kinds of a label that may stand among these classes."""
    return "biuf" if classes.dtype.kind in "biuf" else classes.dtype.kind + "UO"
