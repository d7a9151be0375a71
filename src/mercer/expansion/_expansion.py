"""The heart: f(.) = sum_i a_i k(x_i, .), the form of every fitted kernel machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._errors import KernelMismatchError
from .._points import concatenate, length, same_points, take
from .._runtime import entry_point, slices
from ..gram import GramOperator, gram
from ..kernels import Kernel, reads_all
from ..preimage import Options, PreImages, preimage
from ..reduce import Reduction, Request, reduce
from ._near import near
from ._primal import Primal, to_weights

__all__ = ["Expansion"]

_FEW = 2**15  # pairs of points whose block is held, which is faster than tiles in threads
_ZERO_SUM = 1e-12  # relative to the sum of |coefficients|: rounding of coefficients that sum to 0
_ROWS = 512  # points of a gradient worked on at a time


@entry_point
@dataclass(frozen=True, eq=False)
class Expansion:
    """m functions f_c(.) = sum_i coefficients[i, c] k(points[i], .) in the RKHS of `kernel`.

    A value: calling, adding, scaling and indexing it gives numbers or other expansions.

    Parameters
    ----------
    kernel : Kernel
    points : points
        The x_i, n of them.
    coefficients : array of shape (n, m) or (n,)
    reduction : Reduction, optional
        Of an expansion that `compress` has returned: how far it is from the one before.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.array([1.0, 1.0]))
    >>> f([[10.0]])
    array([[30.]])
    >>> f.norm()
    array([3.])
    """

    kernel: Kernel
    points: Any
    coefficients: np.ndarray
    reduction: Reduction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"an Expansion needs a Kernel, got {self.kernel!r}")
        a = np.asarray(self.coefficients)
        a = a[:, None] if a.ndim == 1 else a
        if a.ndim != 2 or len(a) != length(self.points):
            raise ValueError(
                f"coefficients have shape {np.shape(self.coefficients)}, but there are "
                f"{length(self.points)} points; one row per point is needed"
            )
        if np.iscomplexobj(a):
            raise TypeError("coefficients must be real numbers, got complex ones")
        dtype = a.dtype if a.dtype in (np.float32, np.float64) else np.float64
        object.__setattr__(self, "coefficients", np.array(a, dtype=dtype))  # a copy of its own

    @classmethod
    def sections(cls, kernel: Kernel, X: Any) -> Expansion:
        """Return the functions k(x_i, .), one for each point of X."""
        return cls(kernel, X, np.eye(length(X)))

    @classmethod
    def mean(cls, kernel: Kernel, X: Any, weights: Any = None) -> Expansion:
        """Return the mean embedding sum_i w_i k(x_i, .), with w_i = 1/n by default.

        Weights are taken as they are; they need not sum to 1.
        """
        n = length(X)
        if n == 0:
            raise ValueError("the mean of no points is not defined")
        w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (n,):
            raise ValueError(f"weights have shape {w.shape}, but there are {n} points")
        return cls(kernel, X, w)

    def __len__(self) -> int:
        """Return m, the number of functions."""
        return self.coefficients.shape[1]

    def __getitem__(self, columns: Any) -> Expansion:
        """Return some of the functions, on the same points."""
        if isinstance(columns, (int, np.integer)):
            columns = [columns]
        return Expansion(self.kernel, self.points, self.coefficients[:, columns])

    def __iter__(self) -> Any:
        return (self[c] for c in range(len(self)))

    # ------------------------------------------------------------------ values

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """Return f_c(x_i), shape (n, m), in tiles: k(X, points) is never held, but for few x."""
        if length(X) * len(self.coefficients) <= _FEW and not reads_all(self.kernel):
            return np.asarray(near(self, self.kernel, X, self.points) @ self.coefficients)
        return np.asarray(
            gram(self.kernel, X, self.points, n_threads=n_threads) @ self.coefficients
        )

    def gradient(self, X: Any) -> np.ndarray:
        """Return df_c/dx at each point of X, shape (n, m, d)."""
        if not length(X):
            return np.zeros((0, len(self), np.shape(X)[1]))
        parts = []
        for rows in slices(length(X), _ROWS):
            Xi = take(X, rows)
            weights = (np.ones((length(Xi), 1)) * a for a in self.coefficients.T)
            each = [self.kernel.input_gradient(Xi, self.points, W) for W in weights]
            parts.append(np.stack(each, axis=1))
        return np.concatenate(parts)

    # ------------------------------------------------------------------ geometry

    def inner(self, other: Expansion) -> np.ndarray:
        """Return <f_c, g_e> in the RKHS, shape (m, m')."""
        self._require_same_kernel(other)
        return np.asarray(self.coefficients.T @ (self._against(other) @ other.coefficients))

    def norm(self) -> np.ndarray:
        """Return |f_c| in the RKHS, shape (m,)."""
        a = self.coefficients
        K = self._against(self)
        Ka, sizes = np.hsplit(K @ np.concatenate([a, np.abs(a)], axis=1), 2)
        squared = np.einsum("ic,ic->c", a, Ka)
        # A square below 0 is rounding, if it is small beside its terms; otherwise k is no kernel.
        # The terms |a_i k_ij a_j| sum to at most (sum |a_i| sqrt k_ii)^2.  The diagonal of a kernel
        # that is only conditionally positive definite may be 0, and then |a|^T K |a| says more.
        bound = np.maximum(
            np.einsum("ic,ic->c", np.abs(a), np.abs(sizes)),
            (np.sqrt(np.abs(K.diagonal())) @ np.abs(a)) ** 2,
        )
        if np.any(squared < -max(1e-10, 100 * np.finfo(K.dtype).eps) * bound):
            raise ValueError(
                f"a squared norm is {squared.min():.3g} < 0: {self.kernel} is not positive "
                f"semidefinite on these points"
            )
        return np.sqrt(np.maximum(squared, 0.0))

    def distance(self, other: Expansion) -> np.ndarray:
        """Return |f_c - g_c| in the RKHS, column by column.

        If the coefficients of a difference sum to 0, as those of two means do, its linear terms are
        taken about the middle of the points: the distance is the same, and does not cancel.
        """
        gap = self - other
        sums, sizes = np.abs(gap.coefficients.sum(axis=0)), np.abs(gap.coefficients).sum(axis=0)
        if np.all(sums <= _ZERO_SUM * sizes):
            gap = replace(gap, kernel=gap.kernel._about(gap.points))
        return gap.norm()

    def _against(self, other: Expansion) -> GramOperator:
        same = other is self or same_points(self.points, other.points)
        return gram(self.kernel, self.points, None if same else other.points, storage="tiled")

    # ------------------------------------------------------------------ fewer points

    def compress(
        self,
        n_points: int | None = None,
        *,
        max_error: float | None = None,
        method: str = "auto",
        max_iter: int = 100,
        random_state: Any = None,
        max_memory: Any = None,
    ) -> Expansion:
        """Return g_c = sum_j b_jc k(z_j, .) near the f_c, in fewer points z_j: a reduced set.

            min_{Z, B}  sum_c |f_c - g_c|^2,     B = K_zz^-1 K_zx A  for the points Z

        All functions share the points.  The result carries a `reduction`: the exact errors
        |f_c - g_c|, and bounds on |f_c(x) - g_c(x)|.

        =========== ================================================== =========================
        method      new points                                         needs
        =========== ================================================== =========================
        "select"    some of the old ones, chosen greedily, so that     any points; memory n m
                    each lowers the error as much as possible
        "kmeans"    centres of clusters, weighted by |coefficients|    dense vectors
        "construct" moved freely by L-BFGS, from both of these         and an `input_gradient`
        "auto"      "construct" if it can be had in about a minute,
                    else "select"
        =========== ================================================== =========================

        Parameters
        ----------
        n_points : int, optional
            How many points at most: fewer than before.  There are fewer if more would add nothing.
        max_error : float, optional
            Instead of a number of points, the largest |f_c - g_c| allowed, as `norm` measures it:
            ``0.01 * f.norm().max()`` for one percent.
        method : {"auto", "select", "kmeans", "construct"}
        max_iter : int, default=100
            Steps of L-BFGS.  More make the error smaller, slowly.
        random_state : int, Generator, RandomState or None
            Of k-means; None stands for 0, so that results repeat.
        max_memory : int, str or None
            Bytes, or "2 GiB"; None for half of the machine's memory.

        Notes
        -----
        New points are in float64, also if the old ones are not: coefficients of either sign nearly
        cancel, and need the digits.  They do not share the noise of a `White` part.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import RBF
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> f = Expansion(RBF(0.5), X, np.sin(9 * X))
        >>> g = f.compress(max_error=1e-3 * f.norm()[0], method="select")
        >>> g.reduction.n_points
        7
        >>> bool(np.abs(f(X) - g(X)).max() <= g.reduction.sup_bound[0])
        True
        """
        request = Request(n_points, max_error, method, max_iter, random_state, max_memory)
        Z, B, reduction = reduce(self.kernel, self.points, self.coefficients, request)
        return Expansion(self.kernel, Z, B, reduction)

    # ------------------------------------------------------------------ features

    def to_primal(self, *, max_memory: Any = None) -> Primal:
        """Return f_c(.) = <w_c, phi(.)> with w_c = sum_i a_ic phi(x_i): the same functions.

        Exact, for kernels with finitely many features (`mercer.kernels.finite_features`); they
        need the memory of one weight per feature.  Others raise a TypeError.  Features of strings,
        texts and graphs are those that occur in the points: w has no others.

        Parameters
        ----------
        max_memory : int, str or None
            Bytes, or "2 GiB"; None for half of the machine's memory.
        """
        W, frame = to_weights(self.kernel, self.points, self.coefficients, max_memory)
        return Primal(self.kernel, W, frame)

    # ------------------------------------------------------------------ back to points

    def preimage(
        self,
        method: str = "auto",
        *,
        start: Any = None,
        candidates: Any = None,
        neighbours: Any = None,
        n_neighbors: int = 10,
        regularization: float = 0.01,
        tol: float = 1e-6,
        max_iter: int = 500,
        max_memory: Any = None,
    ) -> PreImages:
        """Return points z_c with phi(z_c) as close as possible to f_c, and how close that is.

            min_z  |phi(z) - f_c|^2  =  k(z, z) - 2 f_c(z) + |f_c|^2

        Exact pre-images rarely exist; what is returned says its residual.  The f_c that have one
        are combinations like means and reconstructions, whose coefficients sum to about 1.

        ============= ================================================== ========================
        method        how                                                kernels
        ============= ================================================== ========================
        "nearest"     the candidate with the smallest residual           any points
        "convex"      a convex combination of `n_neighbors` candidates   on vectors
        "distance"    meets the distances that f_c asks for              of distance, polynomial
        "fixed_point" iterates z = weighted mean of the points           of distance, of <x, z>
        "regularized" the same, pulled towards the start                 of distance, of <x, z>
        "gradient"    L-BFGS, from the start if there is one, else       with `input_gradient`
                      from the better of "nearest" and "distance"
        "conformal"   inner products of a conformal map                  on vectors; n^2 memory
        "learned"     ridge regression from feature space to points,     on vectors; n^2 memory
                      its kernel and ridge chosen by leave-one-out
        "search"      "nearest", then hill climbing through              any points
                      `neighbours`
        "auto"        in closed form if there is one; else all of the
                      above that apply ("conformal" and "learned" up
                      to 1000 points), the best refined by L-BFGS
        ============= ================================================== ========================

        Parameters
        ----------
        method : str
        start : array of shape (m, d), optional
            Where "fixed_point", "regularized" and "gradient" start, one row per function.
        candidates : points, optional
            The points to begin with; those of the expansion by default.
        neighbours : function, optional
            For points that are not vectors: `neighbours(obj)` lists objects one change away.  For
            graphs the default adds or removes an edge, or changes a label.
        n_neighbors : int
            Of "convex" and "distance".
        regularization : float
            The weight of the start in "regularized", where a point at distance 0 has weight 1.
        tol : float
            Steps end when shorter than this, relative to the spread of the points.
        max_iter : int
        max_memory : int, str or None
            For the n x n systems of "conformal" and "learned".

        Returns
        -------
        PreImages
            `points`, `residuals`, `methods` (which one found each point) and `report`.

        Examples
        --------
        The average of some points, under a kernel that is not linear:

        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import RBF
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
        >>> centre = Expansion.mean(RBF(2.0), X).preimage()
        >>> centre.points.round(2)
        array([[0.33, 0.33]])
        """
        options = Options(
            start, candidates, neighbours, n_neighbors, regularization, tol, max_iter, max_memory
        )
        return preimage(self.kernel, self.points, self.coefficients, method, options)

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        self._require_same_kernel(other)
        if len(self) != len(other):
            raise ValueError(f"cannot add {len(self)} functions to {len(other)}")
        if self.points is other.points or same_points(self.points, other.points):
            return Expansion(self.kernel, self.points, self.coefficients + other.coefficients)
        points = concatenate(self.points, other.points)
        return Expansion(
            self.kernel, points, np.concatenate([self.coefficients, other.coefficients])
        )

    def __sub__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        return self + (-other)

    def __neg__(self) -> Expansion:
        return self * -1.0

    def __mul__(self, factor: Any) -> Expansion:
        """Scale all functions by a number, or each by its own."""
        if isinstance(factor, Expansion):
            return NotImplemented
        factor = np.asarray(factor)
        if factor.dtype == object or factor.shape not in ((), (len(self),)):
            return NotImplemented
        return Expansion(self.kernel, self.points, self.coefficients * factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # so that numpy.float64(2) * f reaches __rmul__

    def __truediv__(self, factor: Any) -> Expansion:
        if isinstance(factor, Expansion):
            return NotImplemented
        return self * (1.0 / np.asarray(factor, dtype=float))

    def _require_same_kernel(self, other: Expansion) -> None:
        if self.kernel != other.kernel:
            raise KernelMismatchError(
                f"the two expansions live in different spaces: one has the kernel "
                f"{self.kernel}, the other {other.kernel}"
            )

    def __repr__(self) -> str:
        n, m = self.coefficients.shape
        functions = "function" if m == 1 else "functions"
        return f"<Expansion: {m} {functions} on {n} points, {self.kernel}>"
