"""Metric scaling, thin: checks, and scikit-learn's names for what `maps` finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from .._points import length, take
from .._runtime import check_budget, random_numbers, slices
from ..kernels import Kernel, Linear
from ..maps import Stress, across, of_pairs, place, scale, stress_at
from ..solvers import Report
from ._base import NamedKernel, Seed
from ._explorable import Explorable
from ._parameters import COUNT, POSITIVE, estimator, fitting, learned, parameter, threaded
from ._places import number_of_components, refuse_equal

__all__ = ["MetricMDS"]

_NUMBERS = 2**17  # of dissimilarities of new points at a time
_SYMMETRIC = 1e-8  # of the largest, how far a matrix may be from symmetric


@estimator()
class MetricMDS(Explorable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernel):
    """min S(Z) = sum_(i<j) w_ij (|z_i - z_j| - delta_ij)^2 / sum_(i<j) w_ij delta_ij^2.

    Places z whose distances are as near to dissimilarities delta as can be, with w = 1 (times
    weights of your own), or w = 1 / delta, which is Sammon's map and keeps small distances better.
    delta is the distance in the feature space of a kernel, so that points may be of any kind; that
    of the linear kernel is Euclid's.  Or it is a matrix, "precomputed".

    A descent (L-BFGS) begins at classical scaling, which is kernel PCA of -delta^2 / 2, and, with
    `n_init` above 1, at random coordinates as well.  A new point is placed at a minimum of its
    stress to the points of the embedding, the lowest that three descents find, which may be a local
    one.  Training points return to their coordinates.

    Parameters
    ----------
    n_components : int or None
        The dimensions of the map; None is 2, or 1 of vectors with two columns.
    stress : {"raw", "sammon"}
        w = 1, or w = 1 / delta.  Pairs with delta = 0 then have the weight of the nearest others.
    dissimilarity : {"kernel", "precomputed"}
        Whether delta is the distance |phi(x) - phi(z)| of the kernel, or X itself: a symmetric
        matrix of numbers that are not negative, and for new points delta(X, X_fit).
    n_init : int
        Descents; the one that ends with the least stress is kept.
    tol : float
        A descent has converged when a step of majorisation (SMACOF) would move the map by less than
        this part of its size.
    max_iter : int
        The most steps of a descent.
    random_state : int, RandomState or None
        Of random places; None stands for 0.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The places of the points, with mean 0, along their principal axes.
    stress_ : float
        S, between 0 and 1.  What scikit-learn's `MDS` calls stress is S sum_(i<j) delta_ij^2.
    stresses_ : ndarray of shape (n_init,)
        Where each descent ended.
    report_ : Report
        What was done: steps, the certificate that `tol` is compared with, and the spread of
        `stresses_`.
    kernel_ : Kernel
        The kernel with all its values; None for "precomputed".
    X_fit_ : points
    n_iter_ : int

    References
    ----------
    Sammon (1969), A nonlinear mapping for data structure analysis.
    de Leeuw (1988), Convergence of the majorization method for multidimensional scaling.

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

    n_components: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    stress: str = parameter(StrOptions({"raw", "sammon"}), default="raw")
    dissimilarity: str = parameter(StrOptions({"kernel", "precomputed"}), default="kernel")
    n_init: int = parameter(COUNT, default=1)
    tol: float = parameter(POSITIVE, default=1e-5)
    max_iter: int = parameter(COUNT, default=1000)
    random_state: Seed = parameter("random_state", default=None)

    embedding_: np.ndarray = learned()
    stress_: float = learned()
    stresses_: np.ndarray = learned()
    report_: Report = learned()
    kernel_: Kernel | None = learned()
    _norms: Any = learned()

    @property
    def _order(self) -> int | None:
        return 1  # distances are all that counts

    @fitting
    def fit(self, X: Any, y: Any = None, weights: Any = None) -> Self:
        """Find the places; `weights`, (n, n), say how much each pair counts, 0 for not at all."""
        given = self.dissimilarity == "precomputed"
        sample = self._sample(X, copy=not given).doubled()
        n, q = len(sample), self._dimensions(sample.points)
        if n < 2:
            raise ValueError("a map needs at least 2 points, got n_samples=1")
        halves = 3 + (weights is not None) + (self.stress == "sammon")  # of matrices
        check_budget(4 * halves * n * n, self.max_memory, f"all pairs of {n} points")
        if given:
            delta = _condensed(sample.points, "dissimilarities", zeros=True)
            self.kernel_, self.X_fit_, self._norms = None, None, None
        else:
            kernel = sample.resolve_about(self._make_kernel(self.gamma))
            values = sample.evaluated(kernel, self.max_memory)
            delta = of_pairs(values, sample.points)
            self.kernel_, self.X_fit_ = kernel, sample.points
            self._norms = np.asarray(values.diag(sample.points), dtype=np.float64)
        unit = float(delta.max())
        refuse_equal(n, unit == 0.0)
        delta /= unit
        self._least = unit * float(delta[delta > 0.0].min())
        w = None if weights is None else _condensed(self._checked(weights, (n, n)), "weights")
        if self.stress == "sammon":
            near = np.maximum(delta, self._least / unit)
            w = np.divide(1.0 if w is None else w, near, out=near)
        S = Stress(delta, w)
        if not S.mass.min() > 0.0:
            alone = int(S.mass.argmin())
            raise ValueError(f"point {alone} has weight 0 with all others; leave it out")
        rng = random_numbers(self.random_state)
        found = scale(S, q, self.n_init, self.tol, self.max_iter, rng, self._teller)
        self.embedding_ = unit * found.Z
        self.stresses_, self.report_ = found.stresses, found.report
        self.stress_ = float(found.stresses.min())
        self._say(f"stress {self.stress_:.4g} in {q} dimensions")
        return self

    def fit_transform(self, X: Any, y: Any = None, weights: Any = None) -> np.ndarray:
        """Find the places, and return them."""
        return self.fit(X, y, weights).embedding_.copy()

    @threaded
    def transform(self, X: Any, weights: Any = None) -> np.ndarray:
        """Return the coordinates of points, at the lowest minimum of stress that was found.

        The stress of a new point has local minima; three descents are made for each point.

        X is delta(X, X_fit) if that is precomputed, and k(X, X_fit) if the kernel is.
        """
        parts = [place(delta, self.embedding_, w) for delta, w in self._blocks(X, weights)]
        return np.concatenate(parts)

    @threaded
    def score(self, X: Any, y: Any = None, weights: Any = None) -> float:
        """Return -S of points to those of the map, each where `transform` puts it."""
        Z, lost, total = self.embedding_, 0.0, 0.0
        for delta, given in self._blocks(X, weights):
            w = np.ones_like(delta) if given is None else given
            lost += float(stress_at(place(delta, Z, given), delta, Z, w).sum())
            total += float(np.sum(w * delta * delta))
        return -lost / total if total else 0.0

    def summary(self) -> str:
        """Return what was fitted, how well, and at what cost, as text."""
        check_is_fitted(self)
        given = self.kernel_ is None
        what = "a matrix of dissimilarities" if given else f"the distance of {self.kernel_}"
        report = str(self.report_).replace("\n", "\n  ")
        n, q = self.embedding_.shape
        head = f"Metric scaling ({self.stress}) of {n} points in {q} dimensions, by {what}"
        return f"{head}\n  {report}"

    @property
    def n_iter_(self) -> int:
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= self.dissimilarity == "precomputed"
        return tags

    def _dimensions(self, points: Any) -> int:
        """Return the number of dimensions of the map."""
        n = length(points)
        if self.dissimilarity == "kernel" and self._euclidean:
            return number_of_components(self.n_components, points.shape[1])
        q = self.n_components or max(1, min(2, n - 1))
        if q >= n > 1:
            raise ValueError(
                f"n_components={q}, but {n} points fit into {n - 1} dimensions: ask for fewer"
            )
        return int(q)

    @property
    def _euclidean(self) -> bool:
        kernel = self._given
        return isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")

    def _blocks(self, X: Any, weights: Any) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the dissimilarities of some points to those of the map, and their weights."""
        check_is_fitted(self)
        n, kernel = len(self.embedding_), self.kernel_
        X = self._check_points(X, reset=False) if kernel is None else self._new(X)
        m = length(X)
        given = None if weights is None else self._checked(weights, (m, n))
        if given is not None and not given.max(axis=1).min() > 0.0:
            alone = int(given.max(axis=1).argmin())
            raise ValueError(f"point {alone} has weight 0 with all points of the map, and no place")
        own: Any = None if kernel is None else self._own(X, self._norms, "places")
        if kernel is None and np.min(X) < 0.0:
            raise ValueError(f"dissimilarities are not negative, but the least is {np.min(X):.3g}")
        for rows in slices(m, max(1, _NUMBERS // n)):
            some = take(X, rows)
            if kernel is None:
                delta = np.asarray(some, dtype=np.float64)
            else:
                delta = across(kernel, some, self.X_fit_, own[rows], self._norms)
            w = None if given is None else given[rows]
            if self.stress == "sammon":
                w = (1.0 if w is None else w) / np.maximum(delta, self._least)
            yield delta, w

    def _checked(self, weights: Any, shape: tuple[int, int]) -> np.ndarray:
        """Return weights of pairs."""
        w = np.asarray(check_array(weights, dtype=np.float64, input_name="weights"))
        if w.shape != shape:
            raise ValueError(f"weights of pairs have the shape {shape}, got {w.shape}")
        if w.min() < 0.0:
            raise ValueError(f"weights are not negative, but the least is {w.min():.3g}")
        return w


def _condensed(matrix: Any, what: str, zeros: bool = False) -> np.ndarray:
    """Return one half of a symmetric matrix of numbers that are not negative."""
    A = np.asarray(matrix, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{what} of pairs are a square matrix, got shape {A.shape}")
    largest = float(np.abs(A).max())
    gap = max(float(np.abs(A[rows] - A[:, rows].T).max()) for rows in slices(len(A), 256))
    if gap > _SYMMETRIC * largest:
        raise ValueError(
            f"the matrix of {what} is not symmetric: it differs from its transpose by {gap:.3g}, "
            f"with entries up to {largest:.3g}; take (D + D.T) / 2 if that is meant"
        )
    if A.min() < 0.0:
        raise ValueError(f"{what} are not negative, but the least is {A.min():.3g}")
    if zeros and np.abs(np.diagonal(A)).max() > _SYMMETRIC * largest:
        raise ValueError(
            f"the matrix of {what} has up to {np.diagonal(A).max():.3g} on its diagonal, where a "
            f"point is compared with itself; the usual cause is a matrix of similarities"
        )
    return np.asarray(squareform(A, checks=False))
