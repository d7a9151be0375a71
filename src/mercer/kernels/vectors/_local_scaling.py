"""The kernel `LocalRBF`, a Gaussian whose width adapts to the local density of the points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ..._core import Points
from .._base import Kernel, node, option
from .._evaluation import Prepared
from .._parameter_checks import positive_integer
from .._parameter_tree import data_dependent
from .._properties import FEATURES, Properties
from ._bandwidth_rules import evenly_spaced_rows
from ._vector_kernel import VectorKernel

# Largest number of training points from which the density is estimated (a point of weight 2 counts
# twice).  More points would describe the density in more detail, but slow down the kernel.
_MAX_POINTS = 1000


@node
class LocalRBF(VectorKernel):
    """Gaussian kernel with a length scale that adapts to the local density of the points.

        k(x, z) = (2 l(x) l(z) / (l(x)^2 + l(z)^2))^(d/2) exp(-|x - z|^2 / (l(x)^2 + l(z)^2))

    l(x) is the distance of x to its `n_neighbors`-th nearest neighbour among the training points
    (all of them, or 1000 evenly spaced ones).  The kernel is therefore narrow where the points
    are dense, and wide where they are sparse.

    Parameters
    ----------
    n_neighbors : int, default=7
        The rank of the neighbour whose distance is the length scale.  The first neighbour of a
        training point is the point itself.  5 to 20 is usual: a small number follows the density
        closely but is noisy, and a large number approaches an `RBF` with a constant length scale.
    points : array-like of shape (m, d), optional
        The points from which the density is estimated.  None means the training points; call
        `resolve` to set them (estimators do this in `fit`).

    See Also
    --------
    RBF : The same length scale everywhere; it is tunable and faster.
    Stretch : A different length scale for each column instead of each point.

    Notes
    -----
    The kernel is positive definite for every function l > 0, because it is the inner product in L2
    of Gaussians of width l(x) around x (Gibbs, 1997; Paciorek and Schervish, 2003).

    The self-tuning affinity of Zelnik-Manor and Perona, exp(-|x - z|^2 / (l(x) l(z))), has the same
    purpose, but it is *not* a Mercer kernel in general.  The first factor of k is necessary for a
    Mercer kernel.  It reduces k between regions of different density, especially if the number of
    columns d is large.

    References
    ----------
    Gibbs, "Bayesian Gaussian processes for regression and classification", PhD thesis, University
    of Cambridge, 1997. Paciorek and Schervish, "Nonstationary covariance functions for Gaussian
    process regression", NIPS 2003. Zelnik-Manor and Perona, "Self-tuning spectral clustering", NIPS
    2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import LocalRBF
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [6.0], [7.0]])
    >>> kernel = LocalRBF(n_neighbors=2).resolve(X)
    >>> kernel([[0.0], [5.0]], [[0.1], [6.0]]).round(3)  # dense and sparse cluster
    array([[0.607, 0.   ],
           [0.   , 0.607]])
    """

    n_neighbors: int = option(7, positive_integer)
    points: Any = data_dependent(None, is_rule=lambda points: points is None)

    def _properties(self, *inner: Properties) -> Properties:
        rule = f"{FEATURES}: Gaussians of width l(x) around x, in L2"
        return Properties(rule, 0, nonnegative=True, unit_diagonal=True)

    def _check(self) -> None:
        if self.points is not None:
            points = np.array(_dense(self._vectors(self.points)), dtype=float)
            points.setflags(write=False)
            object.__setattr__(self, "points", points)

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        X = self._vectors(X)
        chosen = evenly_spaced_rows(X.shape[0], _MAX_POINTS, weights)
        return replace(self, points=_dense(X[chosen]))

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = np.asarray(_dense(self._vectors(X, like)), dtype=np.float64)
        self._check_same_columns(self.points.shape[1], X.shape[1])
        return Prepared((X, self._widths(X)))

    def _widths(self, X: np.ndarray) -> np.ndarray:
        """Return the length scale l(x) > 0 at each point.

        If the `n_neighbors` nearest points are all copies of x, l(x) is the smallest positive
        distance, or 1 if there is none.
        """
        k = min(self.n_neighbors, len(self.points))
        distances = np.asarray(cKDTree(self.points).query(X, k=[k])[0])[:, 0]
        if not np.all(distances > 0):
            all_distances = cdist(X[distances == 0], self.points)
            all_distances[all_distances == 0] = np.inf
            nearest = all_distances.min(axis=1)
            distances[distances == 0] = np.where(np.isfinite(nearest), nearest, 1.0)
        return distances

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        (X, a), (Z, b) = P.arrays, Q.arrays
        sums = np.add.outer(a**2, b**2)
        exponents = cdist(X, Z, "sqeuclidean")
        exponents /= -sums
        ratio = np.multiply.outer(2.0 * a, b)
        ratio /= sums
        out[...] = ratio ** (0.5 * X.shape[1]) * np.exp(exponents)

    def _diag(self, X: Points) -> np.ndarray:
        return np.ones(self._vectors(X).shape[0])


def _dense(X: Points) -> np.ndarray:
    dense: np.ndarray = X.toarray() if sp.issparse(X) else X
    return dense
