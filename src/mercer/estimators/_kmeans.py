"""Kernel k-means: clusters of points around centroids in feature space."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .._errors import warn_caller
from .._points import as_vectors, length
from ..blocks import Blocks, in_blocks
from ..expansion import Expansion
from ..gram import Landmarks
from ..kernels import Kernel
from ..solvers import Lloyd, Status, cluster, cluster_blocks
from ._base import KernelLike, Landmarked, NamedKernel
from ._in_blocks import require_landmarks, sampled
from ._parameters import AT_LEAST_0, COUNT, estimator, fitting, learned, parameter, solver, threaded
from ._sample import Sample, check_weights

__all__ = ["KernelKMeans"]

_STARTS = 10  # what n_init="auto" stands for, unless the start is given
_ROUNDING = 32 * np.finfo(np.float64).eps


@estimator()
class KernelKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Landmarked, NamedKernel
):
    """Minimise  sum_i w_i min_c |k(x_i, .) - f_c|^2  over centroids f_1, ..., f_C in the RKHS.

    A centroid is the mean of its points, f_c = sum_{i in c} w_i k(x_i, .) / sum_{i in c} w_i, and
    |k(x, .) - f_c|^2 = k(x, x) - 2 f_c(x) + |f_c|^2, so that K is all that is needed.  Parameters
    and attributes have the names of scikit-learn's `KMeans`, to which the linear kernel leads back.
    The kernel may be one of strings, graphs or any other points, and need only be conditionally
    positive definite.

    With weights w_i = sum_j A_ij and K = D^-1 A D^-1 + s D^-1, D = diag(w), s large enough for K to
    be positive semidefinite, the normalised cut of a graph with edges A is minimised (Dhillon, Guan
    and Kulis 2004).

    Parameters
    ----------
    n_clusters : int
        C.
    init : {"k-means++", "random"}, points or labels
        First centroids: points drawn by their squared distance in feature space to those drawn
        before; points drawn with equal chances; `n_clusters` points (their places, for a
        precomputed kernel); or the first label of every point, from 0 to n_clusters - 1.
    n_init : int or "auto"
        How many starts, of which the one that ends with the lowest inertia is kept; "auto" is 10,
        or 1 if `init` is points or labels.  They share the evaluation of K.
    max_iter : int
        Rounds of a start, at most.
    tol : float
        A start ends when no point moves, or when a round lowers the inertia by less than this
        share of the variance that the clusters explain.
    algorithm : {"lloyd", "hartigan"}
        "lloyd" ends when every point is nearest to its own centroid.  With a narrow kernel a point
        is much of its own centroid, and stays where it is; "hartigan" goes on with points whose
        move lowers the inertia because the centroids move with them.
    solver : {"auto", "exact", "nystroem"} or Lloyd
        "exact" makes passes over K, which is evaluated in tiles if it has more than 4000 rows or
        does not fit `max_memory`.  "nystroem" takes centroids in the span of landmarks.  "auto" is
        exact up to 50 000 points; beyond, it takes landmarks, with a warning.  Or a `Lloyd` of
        `mercer.solvers`, exact, which has parameters of its own.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The nearest centroid of each point (not for points in blocks: `predict` has them in
        blocks).  Clusters are numbered by their weight, the heaviest
        first; if `init` is points or labels, as there.
    inertia_ : float
        The objective, also with landmarks that of the kernel itself.
    expansion_ : Expansion
        The centroids, as a value.
    X_fit_, dual_coef_
        The points that centroids are expanded in (their indices for a precomputed kernel), and
        coefficients, (n, n_clusters).
    squared_norms_ : ndarray of shape (n_clusters,)
        |f_c|^2; infinite for a cluster without points.
    inertia_history_ : ndarray
        After each round of the start that was kept.
    n_iter_ : int
        Rounds of that start.
    kernel_ : Kernel
        The kernel with all its values.  If the points are far from the origin compared with their
        spread, its linear terms are shifted to the middle of the points, which changes no
        distance (`mercer.kernels.Shift`).
    solver_, report_
        The solver, and what it did.

    Examples
    --------
    Two rings around the same centre:

    >>> from sklearn.metrics import adjusted_rand_score
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import circles
    >>> X, ring = circles(200, random_state=0)
    >>> model = KernelKMeans(2, kernel="rbf", gamma=5.0).fit(X)
    >>> adjusted_rand_score(ring, model.labels_)
    1.0
    """

    n_clusters: int = parameter(COUNT, default=8)
    _: KW_ONLY
    init: Any = parameter(
        StrOptions({"k-means++", "random"}), "array-like", "sparse matrix", default="k-means++"
    )
    n_init: int | str = parameter(COUNT, StrOptions({"auto"}), default="auto")
    max_iter: int = parameter(COUNT, default=300)
    tol: float = parameter(AT_LEAST_0, default=1e-4)
    algorithm: str = parameter(StrOptions({"lloyd", "hartigan"}), default="lloyd")
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    solver: Any = solver("nystroem", given=[Lloyd], default="auto")

    kernel_: Kernel = learned()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _order(self) -> int | None:
        return 1  # distances are all that counts

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find clusters of the points; those of weight 0 are given to them afterwards."""
        sample = self._sample(X, sample_weight=sample_weight).doubled()
        kernel, lloyd = (
            sample.resolve_about(self._make_kernel(self.gamma), check=False),
            self._lloyd(),
        )
        found = cluster(
            sample.evaluated(kernel, self.max_memory),
            sample.points,
            lloyd,
            self.solver if isinstance(self.solver, str) else "exact",
            self._chosen,
            weights=sample.weights,
            start=self._start(sample, kernel),
            say=self._teller,
        )
        A = found.coefficients
        low = found.approximate
        f = Expansion(kernel, found.points, A) if low else sample.expansion(kernel, A)
        self.kernel_, self.solver_ = kernel, lloyd
        self._norms = None if sample.values is None else sample.values.diag(sample.given)
        self._set_expansion(f, np.zeros(self.n_clusters), flat=False)
        self.squared_norms_, self.inertia_ = found.squared_norms, found.inertia
        self.inertia_history_, self.report_ = found.history, found.report
        self.n_iter_ = found.report.n_iter
        self.labels_ = np.empty(length(sample.given), dtype=np.int32)
        self.labels_[sample.kept] = found.labels
        if len(without := np.flatnonzero(sample.places < 0)):
            self.labels_[without] = self._scores(sample.rows(without)).argmin(axis=1)
        self._say(f"inertia {self.inertia_:.6g}: {self.report_.status.value}")
        return self

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Find clusters and return those of the points; of blocks, as lazy ones."""
        self.fit(X, y, **params)
        return self.predict(X) if in_blocks(X) else self.labels_

    def _fit_blocks(self, X: Blocks, y: Any = None, sample_weight: Any = None) -> None:
        """Find clusters of points in blocks on landmarks: one pass a round, after a sample's."""
        require_landmarks(self)
        blocks, drawn = sampled(X, self._chosen, None, sample_weight)
        sample = self._sample(drawn.X, sample_weight=drawn.weights, copy=False).doubled()
        kernel, lloyd = (
            sample.resolve_about(self._make_kernel(self.gamma), check=False),
            self._lloyd(),
        )
        start = self._start(sample, kernel)
        if start is not None and np.ndim(start) == 1:
            raise ValueError("for points in blocks, init must be points, not labels")
        self._chosen.require(len(sample))
        phi = self._chosen.map(kernel, sample.points)
        if start is None:
            some = Landmarks(method=phi.points)
            found = cluster(
                *(kernel, sample.points, lloyd, "nystroem", some),
                weights=sample.weights,
                say=self._teller,
            )
            first = phi.factor.T @ found.coefficients  # from k(s, .) to coordinates
        else:
            first = phi.features(start).T
        found = cluster_blocks(phi, blocks, lloyd, first, start, self._teller)
        if found.report.status is Status.NOT_CONVERGED:
            warn_caller(
                f"after {self.max_iter} rounds points still move; raise max_iter, or tol",
                ConvergenceWarning,
            )
        self.kernel_, self.solver_, self._norms = kernel, lloyd, None
        f = Expansion(kernel, found.points, found.coefficients)
        self._set_expansion(f, np.zeros(self.n_clusters), flat=False)
        self.squared_norms_, self.inertia_ = found.squared_norms, found.inertia
        self.inertia_history_, self.report_ = found.history, found.report
        self.n_iter_ = found.report.n_iter
        self.__dict__.pop("labels_", None)  # one for each point: `predict` has them, in blocks

    def _lloyd(self) -> Lloyd:
        """Return the solver: the one given, or one made of the parameters."""
        if isinstance(self.solver, Lloyd):
            if self.solver.n_clusters != self.n_clusters:
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, but the solver is {self.solver}; both need "
                    f"the same number of clusters"
                )
            return self.solver
        named = isinstance(self.init, str)
        starts = (_STARTS if named else 1) if self.n_init == "auto" else self.n_init
        return Lloyd(
            self.n_clusters,
            self.init if named else "k-means++",
            int(starts),
            self.algorithm,
            self.tol,
            self.max_iter,
            self.random_state,
            self.max_memory,
        )

    def _start(self, sample: Sample, kernel: Kernel) -> Any:
        """Return the points or labels to start from, or None; labels for points that take part."""
        if isinstance(self.init, str):
            return None
        start, n = self.init, length(sample.given)
        flat = np.ndim(start) == 1 and np.asarray(start).dtype.kind in "iu"
        if flat and len(start) == n:
            return np.asarray(start)[sample.kept]
        if not flat and kernel.on_vectors:
            start = as_vectors(start, "init")
            if start.shape[1] != sample.points.shape[1]:
                raise ValueError(
                    f"init has {start.shape[1]} columns, but X has {sample.points.shape[1]}; both "
                    f"need the same features"
                )
        return start

    def _scores(self, X: Any) -> np.ndarray:
        """Return |f_c|^2 - 2 f_c(x), the squared distance less k(x, x)."""
        return self.squared_norms_ - 2.0 * self.expansion_(X)

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centroid of each point; for a precomputed kernel X is k(X, X_fit)."""
        return self._scores(self._new(X)).argmin(axis=1).astype(np.int32)

    @threaded
    def transform(self, X: Any) -> np.ndarray:
        """Return the distances |k(x, .) - f_c|, (n, n_clusters).

        For a precomputed kernel, X must be the matrix of the training points: k(x, x), which is on
        its diagonal, is not known for others.
        """
        return np.sqrt(self._squared(self._new(X)))

    @threaded
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of points around the centroids, the greater the better."""
        X = self._new(X)
        nearest = self._squared(X).min(axis=1)
        w = np.ones(len(nearest)) if sample_weight is None else check_weights(sample_weight, X)
        return -float(np.sum(w * nearest))

    def _squared(self, X: Any) -> np.ndarray:
        own, scores = self._own(X, self._norms, "distances")[:, None], self._scores(X)
        terms = np.abs(own) + np.abs(self.squared_norms_)
        squared = own + scores  # 0 where rounding leaves nothing of it
        return np.where(
            squared > _ROUNDING * np.where(np.isfinite(terms), terms, 0.0), squared, 0.0
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        self.squared_norms_ = np.where(
            np.isfinite(self.squared_norms_), np.square(self.expansion_.norm()), np.inf
        )
