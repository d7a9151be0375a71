"""Metric multidimensional scaling: scikit-learn interface to `mercer.models.embedding`."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import KW_ONLY
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, check_budget, length, seeded_generator, slices, take
from ...kernels import Kernel, Linear
from ...models.embedding import (
    embed_new_points,
    feature_space_cdist,
    feature_space_pdist,
    metric_mds,
    stress_of_points,
)
from ...solvers import Report
from .._kernel_estimator import ExploreMixin, NamedKernelEstimator, Seed
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._training_sample import Sample
from ._pairs_of_points import check_pairs, make_stress, resolve_dimension, to_condensed

# `transform` processes new points in blocks of at most this many dissimilarities, to limit memory.
_MAX_BLOCK_ENTRIES = 2**17


@estimator()
class MetricMDS(
    ExploreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernelEstimator
):
    """Metric multidimensional scaling (MDS) with raw stress or Sammon stress.

    Finds coordinates z_i whose Euclidean distances approximate given dissimilarities delta_ij by
    minimising the stress

        S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2.

    The weights are w = 1, or w = 1 / delta for Sammon's mapping, which preserves small distances
    better; `fit` takes additional weights. The dissimilarities are distances in the feature space
    of a kernel, so that points may be of any type; with the linear kernel they are Euclidean
    distances. With dissimilarity="precomputed", X is the matrix of dissimilarities.

    L-BFGS starts at classical scaling, which is kernel PCA of -delta^2 / 2, and with `n_init` > 1
    also at random coordinates. `transform` minimises the stress of each new point relative to the
    training points and uses the best of three starts, which may be a local minimum. Training
    points are mapped to their coordinates in `embedding_`.

    Parameters
    ----------
    n_components : int or None
        The dimension of the embedding; None means 2, or 1 for vectors with two columns or fewer.
        The stress decreases with the dimension; 2 or 3 suit plots.
    stress : {"raw", "sammon"}
        The weights of the pairs: w = 1, or w = 1 / delta. Choose "sammon" if small distances matter
        more. With "sammon", pairs with delta = 0 have the weight of the smallest positive delta.
    dissimilarity : {"kernel", "precomputed"}
        "kernel" uses the distance |phi(x) - phi(z)| in the feature space of the kernel. With
        "precomputed", X is a symmetric matrix of non-negative dissimilarities, and for new points
        the matrix of their dissimilarities to the training points.
    n_init : int
        The number of starts; the result with the smallest stress is used. The first start is
        classical scaling, which is usually good enough; compare `stresses_`.
    tol : float
        A start has converged when a majorisation (SMACOF) step would move the embedding by less
        than tol times its size. Smaller values take more iterations.
    max_iter : int
        The maximum number of L-BFGS iterations per start.
    random_state : int, RandomState or None
        Seed of the random starts; None means 0.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The coordinates of the training points, with mean 0, along their principal axes.
    stress_ : float
        The stress S, between 0 and 1. scikit-learn's `MDS` reports S sum_(i<j) delta_ij^2 instead.
    stresses_ : ndarray of shape (n_init,)
        The final stress of each start.
    report_ : Report
        Iterations, the size of the last majorisation step relative to the embedding (compared with
        `tol`), and the range of `stresses_`.
    kernel_ : Kernel or None
        The kernel with all parameters resolved; None for "precomputed".
    X_fit_ : points
        The training points; None for "precomputed".
    n_iter_ : int
        The number of iterations of the best start.

    See Also
    --------
    KernelPCA : Classical scaling of the same distances, with a closed-form solution.
    NeuroScale : Minimises the same stress over functions, which map new points directly.
    embedding_quality : Measures how well an embedding preserves neighbours and distances.
    compare : Compares several embeddings of the same points.
    sklearn.manifold.MDS : Also has nonmetric scaling; cannot embed new points.
    sklearn.manifold.TSNE : Preserves neighbourhoods instead of distances.

    References
    ----------
    Sammon, "A nonlinear mapping for data structure analysis", IEEE Transactions on Computers C-18,
    1969.

    de Leeuw, "Convergence of the majorization method for multidimensional scaling", Journal of
    Classification 5, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MetricMDS
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) @ [[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]
    >>> model = MetricMDS(2).fit(X)  # a plane in three dimensions
    >>> bool(model.stress_ < 1e-9), model.transform(X[:3] + 0.1).shape
    (True, (3, 2))
    >>> from mercer.kernels import Spectrum
    >>> words = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC"]
    >>> sammon = MetricMDS(2, stress="sammon", kernel=Spectrum(2)).fit(words)
    >>> np.allclose(sammon.transform(words), sammon.embedding_)
    True
    """

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    stress: str = parameter({"raw", "sammon"}, default="raw")
    dissimilarity: str = parameter({"kernel", "precomputed"}, default="kernel")
    n_init: int = parameter("positive integer", default=1)
    tol: float = parameter("positive", default=1e-5)
    max_iter: int = parameter("positive integer", default=1000)
    random_state: Seed = parameter("random_state", default=None)

    embedding_: np.ndarray = fitted()
    stress_: float = fitted()
    stresses_: np.ndarray = fitted()
    report_: Report = fitted()
    kernel_: Kernel | None = fitted()  # type: ignore[assignment]
    X_fit_: Annotated[Any, Sized | None] = fitted()
    _norms: Annotated[Any, np.ndarray | None] = fitted()
    _least: float = fitted()

    @property
    def _required_cpd_order(self) -> int | None:
        return 1  # order 1 is sufficient, because the embedding uses only distances

    @fit_method
    def fit(self, X: Points, y: object = None, weights: ArrayLike | None = None) -> Self:
        """Compute the embedding.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n); with dissimilarity="precomputed", the symmetric matrix of dissimilarities of
            shape (n, n).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        weights : array-like of shape (n, n) or None, default=None
            Non-negative weights of the pairs of points; pairs of weight 0 are ignored. None means
            the weights of `stress` only.

        Returns
        -------
        self : MetricMDS
            The fitted estimator.
        """
        precomputed = self.dissimilarity == "precomputed"
        sample = self._sample(X, copy=not precomputed).doubled()
        n = len(sample)
        is_euclidean = self.dissimilarity == "kernel" and self._has_linear_kernel
        q = resolve_dimension(self.n_components, sample.points, is_euclidean)
        required = self._pair_bytes(n, weights is not None)
        check_budget(required, self.max_memory, f"all pairs of {n} points")
        if precomputed:
            delta = to_condensed(sample.points, "dissimilarities", zero_diagonal=True)
            self.kernel_, self.X_fit_, self._norms = None, None, None
        else:
            kernel = sample.resolve_centred(self._make_kernel(self.gamma))
            values = sample.evaluated(kernel, self.max_memory)
            delta = feature_space_pdist(values, sample.points)
            self.kernel_, self.X_fit_ = kernel, sample.points
            self._norms = np.asarray(values.diag(sample.points), dtype=np.float64)
        w = None if weights is None else check_pairs(weights, "weights", (n, n))
        S, unit, self._least = make_stress(delta, self.stress, w)
        rng = seeded_generator(self.random_state)
        scaling = metric_mds(
            S, q, self.n_init, self.tol, self.max_iter, rng, self._progress_callback
        )
        self.embedding_ = unit * scaling.Z
        self.stresses_, self.report_ = scaling.stresses, scaling.report
        self.stress_ = float(scaling.stresses.min())
        self._log_progress(f"stress {self.stress_:.4g} in {q} dimensions")
        return self

    def _pair_bytes(self, n: int, weighted: bool) -> int:
        """Return the memory for all pairs of n points, in bytes."""
        # The number of arrays with one entry for each pair of points, about n^2 / 2 each.
        n_condensed = 3 + weighted + (self.stress == "sammon")
        return 4 * n_condensed * n * n

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n = len(sample)
        memory = self._pair_bytes(n, weighted=False)
        option = {"solver": "smacof", "storage": "pairs", "exact": False, "required": memory}
        return f"metric scaling of {n} points", {**option, "extra": memory}

    def fit_transform(
        self, X: Points, y: object = None, weights: ArrayLike | None = None
    ) -> np.ndarray:
        """Compute the embedding and return the coordinates of the points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n); with dissimilarity="precomputed", the symmetric matrix of dissimilarities of
            shape (n, n).
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        weights : array-like of shape (n, n) or None, default=None
            Non-negative weights of the pairs of points; pairs of weight 0 are ignored. None means
            the weights of `stress` only.

        Returns
        -------
        ndarray of shape (n, n_components)
            A copy of `embedding_`.
        """
        return self.fit(X, y, weights).embedding_.copy()

    @predict_method
    def transform(self, X: Points, weights: ArrayLike | None = None) -> np.ndarray:
        """Return coordinates of new points that minimise their stress to the training points.

        The stress of a new point may have local minima, so three starts are tried for each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With dissimilarity="precomputed" or
            kernel="precomputed", the matrix of shape (n, n_fit) of dissimilarities or kernel values
            between new and training points.
        weights : array-like of shape (n, n_fit) or None, default=None
            Weights of the pairs of new points and training points; None means equal weights.

        Returns
        -------
        ndarray of shape (n, n_components)
            Coordinates in the space of `embedding_`.
        """
        blocks = [
            embed_new_points(delta, self.embedding_, w)
            for delta, w in self._dissimilarity_blocks(X, weights)
        ]
        return np.concatenate(blocks)

    @predict_method
    def score(self, X: Points, y: object = None, weights: ArrayLike | None = None) -> float:
        """Return minus the stress between the points and the training points.

        The points have the coordinates that `transform` returns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With dissimilarity="precomputed" or
            kernel="precomputed", the matrix of shape (n, n_fit) of dissimilarities or kernel values
            between new and training points.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.
        weights : array-like of shape (n, n_fit) or None, default=None
            Weights of the pairs of new points and training points; None means equal weights.

        Returns
        -------
        float
            At most 0; larger is better.
        """
        Z, stress, total = self.embedding_, 0.0, 0.0
        for delta, pair_weights in self._dissimilarity_blocks(X, weights):
            w = np.ones_like(delta) if pair_weights is None else pair_weights
            stress += float(
                stress_of_points(embed_new_points(delta, Z, pair_weights), delta, Z, w).sum()
            )
            total += float(np.sum(w * delta * delta))
        return -stress / total if total else 0.0

    def summary(self) -> str:
        """Return a text with the type of the embedding, its quality and the cost of the fit.

        Returns
        -------
        str
            Several lines, to print.
        """
        check_is_fitted(self)
        precomputed = self.kernel_ is None
        source = "a matrix of dissimilarities" if precomputed else f"the distance of {self.kernel_}"
        report = str(self.report_).replace("\n", "\n  ")
        n, q = self.embedding_.shape
        title = f"Metric scaling ({self.stress}) of {n} points in {q} dimensions, by {source}"
        return f"{title}\n  {report}"

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the best start."""
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= self.dissimilarity == "precomputed"
        return tags

    @property
    def _has_linear_kernel(self) -> bool:
        """Whether the kernel is linear, so that dissimilarities are Euclidean distances."""
        kernel = self._kernel_spec
        return isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")

    def _dissimilarity_blocks(
        self, X: Points, weights: Any
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield, block by block, the dissimilarities to the training points and their weights."""
        check_is_fitted(self)
        n, kernel = len(self.embedding_), self.kernel_
        X = self._check_points(X, reset=False) if kernel is None else self._check_new_float64(X)
        m = length(X)
        pair_weights = None if weights is None else check_pairs(weights, "weights", (m, n))
        if pair_weights is not None and not pair_weights.max(axis=1).min() > 0.0:
            isolated = int(pair_weights.max(axis=1).argmin())
            raise ValueError(
                f"all pairs of point {isolated} with training points have weight 0; set a positive "
                f"weight, or remove this point"
            )
        self_kernel: Any = (
            None if kernel is None else self._self_kernel(X, self._norms, "coordinates")
        )
        if kernel is None and np.min(X) < 0.0:
            raise ValueError(
                f"dissimilarities must not be negative, but the smallest is {np.min(X):.3g}"
            )
        for rows in slices(m, max(1, _MAX_BLOCK_ENTRIES // n)):
            block = take(X, rows)
            if kernel is None:
                delta = np.asarray(block, dtype=np.float64)
            else:
                delta = feature_space_cdist(
                    kernel, block, self.X_fit_, self_kernel[rows], self._norms
                )
            w = None if pair_weights is None else pair_weights[rows]
            if self.stress == "sammon":
                w = (1.0 if w is None else w) / np.maximum(delta, self._least)
            yield delta, w
