"""Kernel k-means clustering."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from .._core import Points, as_vectors, length
from ..blocks import is_chunked
from ..expansion import Expansion
from ..kernels import Kernel
from ..solvers import Lloyd, Plan, cluster, plan_clusters
from ._kernel_estimator import DualEstimator, KernelLike, LandmarkMixin, Shrink
from ._parameters import estimator, fit_method, fitted, parameter, predict_method, solver
from ._plan_method import n_of
from ._training_sample import Sample, check_weights

_DEFAULT_N_INIT = 10  # number of starts for n_init="auto", unless `init` is an array
# A squared distance below this fraction of the terms it is computed from is set to 0, because it
# consists of rounding errors.
_DISTANCE_ROUNDING = 32 * np.finfo(np.float64).eps


@estimator()
class KernelKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, LandmarkMixin, DualEstimator
):
    """K-means clustering in the feature space of a kernel.

    Minimises the inertia  sum_i w_i min_c |k(x_i, .) - f_c|^2  over centroids f_1, ..., f_C in the
    RKHS. A centroid is the mean of its points, f_c = sum_{i in c} w_i k(x_i, .) / sum_{i in c} w_i,
    and |k(x, .) - f_c|^2 = k(x, x) - 2 f_c(x) + |f_c|^2, so only the kernel matrix K is needed.
    Parameters and attributes are named as in scikit-learn's `KMeans`, which is equivalent to the
    linear kernel. Points may be strings, graphs or any other objects with a kernel. The kernel
    only needs to be conditionally positive definite.

    Normalised cuts of a graph with adjacency matrix A are a special case (Dhillon, Guan and Kulis
    2004): use the weights w_i = sum_j A_ij and the kernel matrix K = D^-1 A D^-1 + s D^-1 with D =
    diag(w), where s is large enough to make K positive semidefinite.

    Parameters
    ----------
    n_clusters : int
        The number of clusters C. Compare several values by the silhouette of the distances, or by
        the decrease of `inertia_`.
    init : {"k-means++", "random"}, points or labels
        The initial centroids. "k-means++" draws points with probability proportional to their
        squared distance in feature space from the points drawn before; "random" draws them
        uniformly. Otherwise an array of `n_clusters` points (their indices for a precomputed
        kernel), or an initial label for every point, from 0 to n_clusters - 1.
    n_init : int or "auto"
        The number of starts; the result with the lowest inertia is used. "auto" means 10, or 1 if
        `init` is an array. K is evaluated once for all starts.
    max_iter : int
        The maximum number of iterations of each start.
    tol : float
        Each start ends when no point changes its cluster, or when an iteration lowers the inertia
        by less than tol times the variance that the clusters explain.
    algorithm : {"lloyd", "hartigan"}
        "lloyd" ends when every point is nearest to the centroid of its own cluster. With a narrow
        kernel, a point contributes so much to its own centroid that it rarely moves. "hartigan"
        also moves points if this lowers the inertia after the centroids are updated; choose it for
        narrow kernels.
    solver : {"auto", "exact", "nystroem"} or Lloyd
        "exact" iterates over K, which is evaluated in tiles if it has more than 4000 rows or does
        not fit into `max_memory`. "nystroem" restricts centroids to the span of landmarks. "auto"
        means "exact" for up to 50 000 points, otherwise "nystroem" with a warning. A `Lloyd` object
        of `mercer.solvers` is exact and uses its own parameters.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The index of the nearest centroid of each point. Clusters are numbered by decreasing weight,
        or as in `init` if that is an array. Not available for data in blocks; use
        `predict`.
    inertia_ : float
        The objective, computed with the exact kernel even if the centroids are approximate.
    expansion_ : Expansion
        The centroids as functions.
    X_fit_, dual_coef_
        The points of the expansion of the centroids (their indices for a precomputed kernel), and
        the coefficients of shape (n, n_clusters).
    intercept_ : ndarray of shape (n_clusters,)
        Zeros, because centroids have no intercepts.
    squared_norms_ : ndarray of shape (n_clusters,)
        Squared norms of the centroids; infinite for an empty cluster.
    inertia_history_ : ndarray
        The inertia after each iteration of the best start.
    n_iter_ : int
        The number of iterations of the best start.
    kernel_ : Kernel
        The kernel with all parameters resolved. If the points are far from the origin compared with
        their spread, its linear terms are shifted to the centre of the points, which does not
        change any distance (`mercer.kernels.Shift`).
    solver_, report_
        The solver and its report.

    See Also
    --------
    KernelPCA : Scores whose plot may show clusters.
    herd : Chooses representative points instead of centroids.
    KernelFisherDiscriminant : Separates classes that are known.
    sklearn.cluster.KMeans : The linear kernel, for more points.
    sklearn.cluster.SpectralClustering : Clusters eigenvectors of a graph Laplacian.

    References
    ----------
    Dhillon, Guan and Kulis, "Kernel k-means, spectral clustering and normalized cuts", KDD 2004.

    Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Telgarsky and Vattani, "Hartigan's method: k-means clustering without Voronoi", AISTATS 2010.

    Examples
    --------
    Two concentric rings:

    >>> from sklearn.metrics import adjusted_rand_score
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import circles
    >>> X, ring = circles(200, random_state=0)
    >>> model = KernelKMeans(2, kernel="rbf", gamma=5.0).fit(X)
    >>> adjusted_rand_score(ring, model.labels_)
    1.0
    """

    n_clusters: int = parameter("positive integer", default=8)
    _: KW_ONLY
    init: Any = parameter(
        {"k-means++", "random"}, "array-like", "sparse matrix", default="k-means++"
    )
    n_init: int | str = parameter("positive integer", {"auto"}, default="auto")
    max_iter: int = parameter("positive integer", default=300)
    tol: float = parameter("non-negative", default=1e-4)
    algorithm: str = parameter({"lloyd", "hartigan"}, default="lloyd")
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    solver: Any = solver("nystroem", given=[Lloyd], default="auto")

    labels_: np.ndarray = fitted()
    inertia_: float = fitted()
    inertia_history_: np.ndarray = fitted()
    squared_norms_: np.ndarray = fitted()
    n_iter_: int = fitted()
    solver_: Lloyd = fitted()
    _norms: np.ndarray | None = fitted()

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # order 1 is sufficient, because k-means uses only distances

    @fit_method
    def fit(self, X: Points, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the points. Points of weight 0 do not affect the centroids; they are assigned
            to the nearest one afterwards.

        Returns
        -------
        self : KernelKMeans
            The fitted estimator.
        """
        sample = self._sample(X, sample_weight=sample_weight).doubled()
        kernel, lloyd = (
            sample.resolve_centred(self._make_kernel(self.gamma), check=False),
            self._make_lloyd(),
        )
        clustering = cluster(
            sample.evaluated(kernel, self.max_memory),
            sample.points,
            lloyd,
            self.solver if isinstance(self.solver, str) else "exact",
            self._chosen,
            weights=sample.weights,
            start=self._start(sample, kernel),
            among=(sample.subsample.points, sample.subsample.weights),
            log=self._progress_callback,
        )
        A = clustering.coefficients
        approximate = clustering.approximate
        f = Expansion(kernel, clustering.points, A) if approximate else sample.expansion(kernel, A)
        self.kernel_, self.solver_ = kernel, lloyd
        self._norms = None if sample.values is None else sample.values.diag(sample.given)
        self._set_expansion(f, np.zeros(self.n_clusters), flat=False)
        self.squared_norms_, self.inertia_ = clustering.squared_norms, clustering.inertia
        self.inertia_history_, self.report_ = clustering.history, clustering.report
        self.n_iter_ = clustering.report.n_iter
        if clustering.labels is not None:
            self.labels_ = np.empty(length(sample.given), dtype=np.int32)
            self.labels_[sample.kept] = clustering.labels
            if len(zero_weight := np.flatnonzero(sample.places < 0)):
                distances = self._shifted_distances(sample.rows(zero_weight))
                self.labels_[zero_weight] = distances.argmin(axis=1)
        self._log_progress(f"inertia {self.inertia_:.6g}: {self.report_.status.value}")
        return self

    def _plan(self, sample: Sample) -> Plan:
        n, C = len(sample), self.n_clusters
        return plan_clusters(
            f"k-means of {n} points in {n_of(C, 'cluster')}",
            self._planned_kernel(sample),
            sample.points,
            self._make_lloyd(),
            self.solver if isinstance(self.solver, str) else "exact",
            self._chosen,
        )

    def fit_predict(self, X: Points, y: object = None, **params: Any) -> Any:
        """Cluster the points and return their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem".
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        **params : dict
            Additional arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        ndarray of int, shape (n,)
            The index of the cluster of each point, from 0 to n_clusters - 1; lazy blocks if X is in
            blocks.
        """
        self.fit(X, y, **params)
        return self.predict(X) if is_chunked(X) else self.labels_

    def _make_lloyd(self) -> Lloyd:
        """Return `solver` if it is a `Lloyd` object, otherwise one made from the parameters."""
        if isinstance(self.solver, Lloyd):
            if self.solver.n_clusters != self.n_clusters:
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, but the solver is {self.solver}; set both "
                    f"to the same number of clusters"
                )
            return self.solver
        init_is_name = isinstance(self.init, str)
        n_init = (_DEFAULT_N_INIT if init_is_name else 1) if self.n_init == "auto" else self.n_init
        return Lloyd(
            self.n_clusters,
            self.init if init_is_name else "k-means++",
            int(n_init),
            self.algorithm,
            self.tol,
            self.max_iter,
            self.random_state,
            self.max_memory,
        )

    def _start(self, sample: Sample, kernel: Kernel) -> Any:
        """Return the initial points or labels from `init`, or None if `init` is a name.

        Labels are restricted to the points of positive weight.
        """
        if isinstance(self.init, str):
            return None
        start, n = self.init, length(sample.given)
        is_index_array = np.ndim(start) == 1 and np.asarray(start).dtype.kind in "iu"
        if is_index_array and len(start) == n:
            return np.asarray(start)[sample.kept]
        if not is_index_array and kernel.domain.on_vectors:
            start = as_vectors(start, "init")
            if start.shape[1] != sample.points.shape[1]:
                raise ValueError(
                    f"init has {start.shape[1]} columns, but X has {sample.points.shape[1]}; both "
                    f"must have the same features"
                )
        return start

    def _shifted_distances(self, X: Points) -> np.ndarray:
        """Return |f_c|^2 - 2 f_c(x), the squared distance to each centroid f_c minus k(x, x)."""
        return self.squared_norms_ - 2.0 * self.expansion_(X)

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Return the index of the nearest centroid of each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of int, shape (n,)
            Indices from 0 to n_clusters - 1.
        """
        return self._shifted_distances(self._check_new_float64(X)).argmin(axis=1).astype(np.int32)

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the distances |k(x, .) - f_c| of points to all centroids.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", X must be
            the kernel matrix of the training points, because the distances need its diagonal k(x,
            x).

        Returns
        -------
        ndarray of shape (n, n_clusters)
            Distances in feature space.
        """
        return np.sqrt(self._squared_distances(self._check_new_float64(X)))

    @predict_method
    def score(self, X: Points, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the negative inertia, minus the sum of squared distances to the nearest centroids.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", X must be
            the kernel matrix of the training points, because the distances need its diagonal k(x,
            x).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the squared distances.

        Returns
        -------
        float
            At most 0; larger is better for the same kernel and number of clusters.
        """
        X = self._check_new_float64(X)
        nearest = self._squared_distances(X).min(axis=1)
        w = np.ones(len(nearest)) if sample_weight is None else check_weights(sample_weight, X)
        return -float(np.sum(w * nearest))

    def _squared_distances(self, X: Points) -> np.ndarray:
        """Return the squared distances to all centroids; 0 where rounding errors dominate."""
        self_kernel, shifted = (
            self._self_kernel(X, self._norms, "distances")[:, None],
            self._shifted_distances(X),
        )
        terms = np.abs(self_kernel) + np.abs(self.squared_norms_)
        squared = self_kernel + shifted
        return np.where(
            squared > _DISTANCE_ROUNDING * np.where(np.isfinite(terms), terms, 0.0), squared, 0.0
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def _compress(self, shrink: Shrink) -> None:
        """Reduce the centroids to fewer points and recompute their norms."""
        super()._compress(shrink)
        self.squared_norms_ = np.where(
            np.isfinite(self.squared_norms_), np.square(self.expansion_.norm()), np.inf
        )
