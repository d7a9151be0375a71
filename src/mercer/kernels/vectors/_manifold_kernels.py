"""Kernels of neighbour graphs: Isomap, LLE, Laplacian eigenmaps and diffusion maps.

The vertices of the graph are the training points.  The matrix of the values between all vertices is
stored in the kernel object, but not in model files: it is computed again after loading.  A new
point is connected to its nearest vertices.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ..._core import Points, check_budget, reserve, slices
from ..._core.linalg import lapack
from .._base import Kernel, node, option
from .._evaluation import Prepared
from .._parameter_checks import positive, positive_integer
from .._parameter_tree import data_dependent
from .._properties import FEATURES, Properties
from ._vector_kernel import VectorKernel

_N_DENSE_MATRICES = 4  # largest number of n x n arrays at the same time, as measured
_BLOCK_ROWS = 256  # points whose barycentric weights are computed at a time, to limit memory


def _check_width(owner: str, name: str, value: Any) -> None:
    if value is not None:
        positive(owner, name, value)


@node
class NeighborGraphKernel(VectorKernel):
    """Base class of kernels on the neighbour graph of training points.

    The numbers that `_weights` returns connect a new point to the graph.
    """

    n_neighbors: int = option(10, positive_integer)
    _: KW_ONLY
    points: Any = data_dependent(None, is_rule=lambda points: points is None)

    # The weights of a point that coincides with a vertex: for this vertex, and for its neighbours.
    _at_vertex: ClassVar[tuple[float, float]] = (1.0, 0.0)

    @abstractmethod
    def _values_on(self, graph: sp.csr_array) -> np.ndarray:
        """Return the matrix of kernel values, or of distances, between all vertices."""

    @abstractmethod
    def _weights(self, X: np.ndarray, distances: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return the weights of the neighbours of new points, of shape (n, n_neighbors)."""

    def _edge_weights(self, distances: np.ndarray) -> np.ndarray:
        """Return the weights of the edges of these lengths."""
        tiny = np.finfo(float).tiny  # a length of 0 would mean that there is no edge
        return np.asarray(np.maximum(distances, tiny))

    def _check(self) -> None:
        if self.points is None:
            return
        points = self._dense(self.points) + 0.0  # + 0.0 replaces -0.0 by 0.0 and copies the array
        first = np.sort(np.unique(points, axis=0, return_index=True)[1])
        if len(first) <= self.n_neighbors:
            fewer = f"use n_neighbors={len(first) - 1} or less, or " if len(first) > 1 else ""
            raise ValueError(
                f"{type(self).__name__}: n_neighbors={self.n_neighbors} needs more than "
                f"{self.n_neighbors} different training points, got {len(first)} (copies of a "
                f"point count once); {fewer}pass more points"
            )
        points = points[first]
        points.setflags(write=False)
        object.__setattr__(self, "points", points)

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        if self.points is not None:
            return self
        resolved = replace(self, points=X)
        reserve(resolved._values.nbytes)  # for the rest of the fit
        return resolved

    def _check_graph(self) -> None:
        """Raise an error if the graph is not connected or its matrices exceed the budget."""
        name, n = type(self).__name__, len(self.points)
        what = f"{name}: the matrix of all pairs of {n} points, on which each value depends,"
        check_budget(8 * _N_DENSE_MATRICES * n * n, None, what)
        n_parts, part = connected_components(self._graph, directed=False)
        if n_parts > 1:
            sizes = np.sort(np.bincount(part))[::-1]
            shown = ", ".join(map(str, sizes[:5])) + (", ..." if n_parts > 5 else "")
            raise ValueError(
                f"{name}: the graph of {self.n_neighbors} nearest neighbours of {n} points is not "
                f"connected; it has {n_parts} components, of {shown} points. The usual causes are "
                f"clusters or outliers that are far from the other points. Use a larger "
                f"n_neighbors, or fit each cluster separately"
            )

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.points)

    @cached_property
    def _graph(self) -> sp.csr_array:
        """The directed graph: row i contains the weights of the nearest neighbours of vertex i."""
        n, k = len(self.points), self.n_neighbors
        # The vertices are different, so that the nearest one is the vertex itself.
        distances, index = self._tree.query(self.points, k=range(2, k + 2))
        data = self._edge_weights(distances).ravel()
        graph = sp.csr_array((data, index.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        graph.eliminate_zeros()
        return graph

    @cached_property
    def _values(self) -> np.ndarray:
        """The kernel values, or distances, between all vertices."""
        self._check_graph()
        values = self._values_on(self._graph)
        values.setflags(write=False)
        return values

    def _dense(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = self._dense(X)
        self._check_same_columns(self.points.shape[1], X.shape[1])
        distances, index = self._tree.query(X, k=range(1, self.n_neighbors + 1))
        weights = self._weights(X, distances, index)
        at_vertex = distances[:, 0] == 0.0
        index[at_vertex] = index[at_vertex, :1]
        weights[at_vertex, 0], weights[at_vertex, 1:] = self._at_vertex
        # As the frame, the matrix is computed here, before several threads evaluate tiles.
        return Prepared((X, index, weights), frame=self._values)


@node
class Geodesic(NeighborGraphKernel):
    """Kernel of Isomap: distances along the neighbour graph of the training points.

        k(x, z) = -d(x, z)^2 / 2

    d(x, z) is the length of the shortest path from x to z in the graph in which each training point
    is connected to its nearest neighbours.  `KernelPCA` with this kernel and `indefinite="clip"` is
    Isomap, and `transform` embeds new points.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours to which each point is connected, without the point itself.  A small
        number follows the manifold closely, but the graph may not be connected.  A large number
        connects points that are far apart on the manifold.
    points : array-like of shape (n, d), optional
        The vertices of the graph; copies are removed.  None means the training points.

    See Also
    --------
    LocallyLinear, CommuteTime, Diffusion : Other kernels of neighbour graphs.
    Distance : The same kernel with Euclidean distances, which leads to PCA.

    Notes
    -----
    The kernel is conditionally positive definite if the graph distances are Euclidean distances of
    some points.  In general they are not, so the centred kernel matrix has negative eigenvalues,
    and estimators that need a Mercer kernel should not use it.

    A path from a new point x starts with an edge to one of its nearest vertices.  Two new points
    are also connected directly if they are closer to each other than one of them to all vertices.

    The kernel stores the distances between all n vertices, in addition to the kernel matrix of the
    estimator, because a shortest path may contain any vertex.

    References
    ----------
    Tenenbaum, de Silva and Langford, "A global geometric framework for nonlinear dimensionality
    reduction", Science 290, 2000. Ham, Lee, Mika and Schölkopf, "A kernel view of the
    dimensionality reduction of manifolds", ICML 2004. Bengio et al., "Out-of-sample extensions for
    LLE, Isomap, MDS, eigenmaps, and spectral clustering", NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Geodesic
    >>> corner = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    >>> Geodesic(n_neighbors=1).resolve(corner)(corner)
    array([[-0. , -0.5, -4.5],
           [-0.5, -0. , -2. ],
           [-4.5, -2. , -0. ]])
    """

    _at_vertex: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def _values_on(self, graph: sp.csr_array) -> np.ndarray:
        lengths = shortest_path(graph, method="D", directed=False)
        # The rounding errors of a sum of lengths depend on the direction of the path.
        return np.asarray(np.minimum(lengths, lengths.T))

    def _weights(self, X: np.ndarray, distances: np.ndarray, index: np.ndarray) -> np.ndarray:
        return distances

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (X, i, a), (Z, j, b) = P.arrays, Q.arrays
        columns, j = np.unique(j, return_inverse=True)
        j = j.reshape(b.shape)
        to_columns = np.full((len(X), len(columns)), np.inf)
        for m in _used(a):
            paths = a[:, m, None] + P.frame[np.ix_(i[:, m], columns)]
            np.minimum(to_columns, paths, out=to_columns)
        out[...] = np.inf
        for m in _used(b):
            np.minimum(out, to_columns[:, j[:, m]] + b[:, m], out=out)
        nearest = np.maximum.outer(a[:, 0], b[:, 0])
        if nearest.any():
            direct = cdist(X, Z)
            new = (direct < nearest) & np.logical_and.outer(a[:, 0] > 0, b[:, 0] > 0)
            out[new] = np.minimum(out[new], direct[new])
        out *= out
        out *= -0.5

    def _diag(self, X: Points) -> np.ndarray:
        return np.zeros(self._vectors(X).shape[0])


def _used(distances: np.ndarray) -> range:
    """Return the columns of distances that are used: only the first if all points are vertices."""
    return range(distances.shape[1] if np.isfinite(distances[:, 1:]).any() else 1)


@node
class InterpolatedKernel(NeighborGraphKernel):
    """Base class of kernels whose features of a new point are weighted means of those of vertices.

    k(x, z) = sum_ij w_i(x) K_ij w_j(z), where K is the matrix of the vertices and the weights of a
    point have sum 1; at a vertex, the weight of this vertex is 1.
    """

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(f"{FEATURES}: weighted means of the features of training points", 0)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (rows, left), (columns, right) = _compressed(P), _compressed(Q)
        out[...] = (right @ (left @ P.frame[np.ix_(rows, columns)]).T).T


def _compressed(P: Prepared) -> tuple[np.ndarray, sp.csr_array]:
    """Return the vertices that are neighbours of the points, and a matrix of their weights."""
    _, index, weights = P.arrays
    vertices, position = np.unique(index, return_inverse=True)
    ends = np.arange(0, index.size + 1, index.shape[1])
    shape = (len(P), len(vertices))
    return vertices, sp.csr_array((weights.ravel(), position.ravel(), ends), shape=shape)


@node
class LocallyLinear(InterpolatedKernel):
    """Kernel of locally linear embedding (LLE).

        K = pseudo-inverse of (I - W)^T (I - W)

    Row i of W contains the barycentric weights that reconstruct the training point x_i from its
    nearest neighbours.  The leading components of `KernelPCA` with this kernel are the coordinates
    of LLE, up to the scale of each one.  A new point is embedded with its barycentric weights.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours from which each point is reconstructed; it should exceed the number of
        components of the embedding.  If the graph is not connected, use more.
    reg : float, default=1e-3
        Regularisation of the weights, relative to the trace of the local Gram matrix.
    points : array-like of shape (n, d), optional
        The vertices of the graph; copies are removed.  None means the training points.

    See Also
    --------
    Geodesic, CommuteTime, Diffusion : Other kernels of neighbour graphs.

    Notes
    -----
    The kernel is positive semidefinite for all points.  It stores an n x n matrix for n training
    points: O(n^2) memory and O(n^3) time.  An estimate of the rounding error is added
    to the eigenvalues of (I - W)^T (I - W); this does not change the eigenvectors.

    References
    ----------
    Roweis and Saul, "Nonlinear dimensionality reduction by locally linear embedding", Science 290,
    2000. Ham, Lee, Mika and Schölkopf, "A kernel view of the dimensionality reduction of
    manifolds", ICML 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.kernels import LocallyLinear
    >>> t = np.linspace(0.0, 3.0, 40)
    >>> arc = np.c_[np.cos(t), np.sin(t)]
    >>> z = KernelPCA(1, kernel=LocallyLinear(n_neighbors=4)).fit_transform(arc)[:, 0]
    >>> print(round(abs(np.corrcoef(z, t)[0, 1]), 2))
    1.0
    """

    reg: float = option(1e-3, positive)

    def _weights(self, X: np.ndarray, distances: np.ndarray, index: np.ndarray) -> np.ndarray:
        weights = np.empty(index.shape)
        for rows in slices(len(X), _BLOCK_ROWS):
            Y = self.points[index[rows]] - X[rows, None]
            G = Y @ Y.transpose(0, 2, 1)
            trace = np.trace(G, axis1=1, axis2=2)
            diagonal = np.arange(index.shape[1])
            G[:, diagonal, diagonal] += self.reg * np.where(trace > 0, trace, 1.0)[:, None]
            w = np.linalg.solve(G, np.ones((*G.shape[:2], 1)))[..., 0]
            weights[rows] = w / w.sum(axis=1, keepdims=True)
        return weights

    def _values_on(self, graph: sp.csr_array) -> np.ndarray:
        n, k = len(self.points), self.n_neighbors
        distances, index = graph.data.reshape(n, k), graph.indices.reshape(n, k)
        W = graph.copy()
        W.data = self._weights(self.points, distances, index).ravel()
        R = sp.eye_array(n, format="csr") - W
        return _pseudo_inverse((R.T @ R).toarray())


def _pseudo_inverse(M: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of a symmetric M >= 0 whose null space is the constant vectors.

    An estimate of the rounding error is added to all eigenvalues, which makes M positive definite
    and does not change the eigenvectors.
    """
    n, shift = len(M), float(np.trace(M))
    M += shift / n  # moves the eigenvalue of the constant vectors from 0 to `shift`
    M[np.diag_indices(n)] += np.sqrt(n) * np.finfo(float).eps * np.abs(M).sum(axis=1).max()
    factor, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"the matrix of {n} training points is not positive definite")
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    inverse += np.tril(inverse, -1).T  # LAPACK computes only one triangle
    inverse -= inverse.mean(axis=0)
    inverse -= inverse.mean(axis=1, keepdims=True)
    return np.asarray(inverse)


@node
class RandomWalkKernel(InterpolatedKernel):
    """Base class of kernels of random walks on the neighbour graph.

    The affinity A_ij is the mean of the weights of the edges from i to j and from j to i; a walk
    moves from i to j with probability A_ij / d_i, where d_i is the degree, the sum over j.
    """

    width: float | None = option(None, _check_width)

    _self_affinity: ClassVar[float] = 0.0

    def degrees(self) -> np.ndarray:
        """Return the degrees of the vertices, as weights of the training points.

        Returns
        -------
        ndarray of shape (n,)
            The sum of the affinities of each vertex, in the order of `points`: that of the training
            points, without copies.  As `sample_weight`, the degrees centre with the stationary
            distribution of the random walk.
        """
        return np.asarray(self._affinity.sum(axis=1)).ravel()

    @property
    def _affinity(self) -> sp.csr_array:
        loops = self._self_affinity * sp.eye_array(len(self.points), format="csr")
        return sp.csr_array(0.5 * (self._graph + self._graph.T) + loops)

    def _edge_weights(self, distances: np.ndarray) -> np.ndarray:
        if self.width is None:
            return np.ones_like(distances)
        return np.asarray(np.exp(-0.5 * (distances / self.width) ** 2))

    def _weights(self, X: np.ndarray, distances: np.ndarray, index: np.ndarray) -> np.ndarray:
        if self.width is None:
            return np.full(index.shape, 1.0 / index.shape[1])
        squares = 0.5 * (distances / self.width) ** 2
        weights = np.exp(squares[:, :1] - squares)  # the nearest one has weight 1: no underflow
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@node
class CommuteTime(RandomWalkKernel):
    """Kernel of Laplacian eigenmaps (spectral embedding): commute times of a random walk.

        K = vol L^+,    L = D - A

    L^+ is the pseudo-inverse of the Laplacian of the neighbour graph with affinities A, D the
    diagonal matrix of the degrees, and vol their sum.  Squared distances in feature space are
    commute times: the mean number of steps from one point to the other and back.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours to which each point is connected, without the point itself.  If the
        graph is not connected, use more.
    width : float, optional
        Edges of length r have the weight exp(-r^2 / (2 width^2)).  None means that all edges have
        weight 1, or 1/2 if only one of the points is among the nearest neighbours of the other.
    points : array-like of shape (n, d), optional
        The vertices of the graph; copies are removed.  None means the training points.

    See Also
    --------
    Diffusion : Random walks with a given number of steps: diffusion maps.
    Geodesic, LocallyLinear : Other kernels of neighbour graphs.
    RandomWalk : A kernel between graphs.

    Notes
    -----
    The leading components of `KernelPCA` are the eigenvectors of L with the smallest positive
    eigenvalues, up to the scale of each one.  If `sample_weight` is `degrees()`, they are the
    coordinates of normalised Laplacian eigenmaps, as in scikit-learn's `SpectralEmbedding`.

    The coordinates of a new point are the mean of those of its nearest vertices, weighted with the
    affinities; Bengio et al. divide each coordinate of this mean by an eigenvalue close to 1.
    The kernel is positive semidefinite for all points.  It stores an n x n matrix for n training
    points: O(n^2) memory and O(n^3) time.

    References
    ----------
    Belkin and Niyogi, "Laplacian eigenmaps for dimensionality reduction and data representation",
    Neural Computation 15, 2003. Ham, Lee, Mika and Schölkopf, "A kernel view of the dimensionality
    reduction of manifolds", ICML 2004. Bengio et al., "Out-of-sample extensions for LLE, Isomap,
    MDS, eigenmaps, and spectral clustering", NIPS 2003.

    Examples
    --------
    >>> from mercer.kernels import CommuteTime
    >>> kernel = CommuteTime(n_neighbors=2).resolve([[0.0], [1.0], [3.0]])
    >>> K = kernel([[0.0], [3.0]])  # every point is connected to both others
    >>> print(round(K[0, 0] + K[1, 1] - 2 * K[0, 1], 6))
    4.0
    """

    def _values_on(self, graph: sp.csr_array) -> np.ndarray:
        L = -self._affinity.toarray()
        degrees = self.degrees()
        L[np.diag_indices_from(L)] += degrees
        return np.asarray(degrees.sum() * _pseudo_inverse(L))


@node
class Diffusion(RandomWalkKernel):
    """Kernel of diffusion maps: the transition probabilities of a random walk.

        k(x, z) = p_2t(x, z) / pi(z) - 1

    p_2t(x, z) is the probability that a walk on the neighbour graph moves from x to z in 2t steps,
    and pi the stationary distribution.  Squared distances in feature space are diffusion distances.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours to which each point is connected, in addition to the point itself.  If
        the graph is not connected, use more.
    width : float, optional
        Edges of length r have the weight exp(-r^2 / (2 width^2)).  None means that all edges have
        weight 1, or 1/2 if only one of the points is among the nearest neighbours of the other.
    steps : int, default=1
        The diffusion time t.  More steps give less weight to small clusters and noise.
    points : array-like of shape (n, d), optional
        The vertices of the graph; copies are removed.  None means the training points.

    See Also
    --------
    CommuteTime : All numbers of steps at once.
    Geodesic, LocallyLinear : Other kernels of neighbour graphs.

    Notes
    -----
    If `sample_weight` is `degrees()`, `KernelPCA` computes diffusion maps up to the scale of all
    coordinates: those of component j are the eigenvector j of the walk, multiplied by the power t
    of its eigenvalue.  The coordinates of a new point are the mean of those of its nearest
    vertices, weighted with the affinities.  The kernel is positive semidefinite for all points.  It
    stores an n x n matrix for n training points: O(n^2) memory and O(n^3) time.

    References
    ----------
    Coifman and Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis 21, 2006.

    Examples
    --------
    >>> from mercer.kernels import Diffusion
    >>> X = [[0.0], [1.0], [3.0], [4.0]]
    >>> Diffusion(n_neighbors=2, steps=2).resolve(X)(X).round(2)
    array([[ 0.1 ,  0.03, -0.03, -0.1 ],
           [ 0.03,  0.01, -0.01, -0.03],
           [-0.03, -0.01,  0.01,  0.03],
           [-0.1 , -0.03,  0.03,  0.1 ]])
    """

    steps: int = option(1, positive_integer)

    _self_affinity: ClassVar[float] = 1.0

    def _values_on(self, graph: sp.csr_array) -> np.ndarray:
        degrees = self.degrees()
        root = np.sqrt(degrees)
        S = self._affinity.toarray() / np.outer(root, root)
        S -= np.outer(root, root) / degrees.sum()  # removes the eigenvector of eigenvalue 1
        S = np.linalg.matrix_power(S, self.steps) / (root[:, None] / np.sqrt(degrees.sum()))
        return np.asarray(S @ S.T)
