"""Kernel expansions f(.) = sum_i a_i k(x_i, .), in which fitted models are represented.

A kernel prepares points (for example, scales them and computes norms) before it evaluates
k(X, points).  For predictions at single points, preparing all points of the model takes longer than
the evaluation, so the prepared points are cached between calls (`cross_kernel_cached`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from .._core import (
    KernelMismatchError,
    MemoryLimit,
    Points,
    RandomState,
    concatenate,
    entry_point,
    length,
    same_points,
    slices,
    take,
)
from ..gram import GramOperator, gram
from ..kernels import Kernel, Prepared, expects_precomputed_rows, shifted_to_data
from ._primal_form import ColumnIndex, Primal, count_functions, select_columns, to_weights
from .preimage import PreImageOptions, PreImages, preimage
from .reduced_set import CompressionRequest, Reduction, reduce

# Arrays of points with more entries (32 MiB in float64) are not cached.
_MAX_CACHED_ENTRIES = 2**22


class _CacheEntry(NamedTuple):
    """Prepared points, and the data needed to detect that they are out of date."""

    kernel: Kernel
    points: np.ndarray
    snapshot: np.ndarray  # the values of `points` when they were prepared
    prepared: Prepared

    def is_valid_for(self, kernel: Kernel, points: np.ndarray) -> bool:
        """Return True if the entry is for this kernel and array, and the array is unchanged."""
        same = self.kernel is kernel and self.points is points
        return same and (not points.flags.writeable or bool((points == self.snapshot).all()))


# The keys are the models to which the points belong.  The cache is not an attribute of the models,
# so that it is neither copied nor saved with them.
_cache: WeakKeyDictionary[object, _CacheEntry] = WeakKeyDictionary()


@entry_point
def cross_kernel_cached(owner: object, kernel: Kernel, X: Points, points: Points) -> np.ndarray:
    """Return k(X, points) for a few points X; `points` are prepared only in the first call.

    Parameters
    ----------
    owner : object
        The model or expansion to which `points` belongs; it is the key of the cache.
    kernel : Kernel
    X : points
    points : points

    Returns
    -------
    ndarray of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.expansion import cross_kernel_cached
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.ones(2))
    >>> cross_kernel_cached(f, f.kernel, np.array([[3.0]]), f.points)
    array([[3., 6.]])
    """
    are_dense = kernel.domain.on_vectors and _is_dense(X) and _is_dense(points)
    if not (are_dense and points.size <= _MAX_CACHED_ENTRIES):
        return np.asarray(kernel(X, points))
    entry = _cache.get(owner)
    if entry is None or not entry.is_valid_for(kernel, points):
        snapshot = points.copy() if points.flags.writeable else points
        entry = _cache[owner] = _CacheEntry(kernel, points, snapshot, kernel.prepare(points))
    Q = entry.prepared
    P = kernel.prepare(X, like=Q)
    if P.dtype != Q.dtype:  # one of them is float32 and the other float64
        return np.asarray(kernel(X, points))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks for overflow
        return kernel.tile(P, Q, np.empty((len(P), len(Q)), dtype=Q.dtype))


def _is_dense(X: Points) -> bool:
    return type(X) is np.ndarray and X.ndim == 2 and len(X) > 0


# ---------------------------------------------------------------------- expansions

# Up to this many kernel values, one dense block is faster than tiles in several threads.
_MAX_CACHED_PAIRS = 2**15
# Coefficients are considered to sum to 0 if their sum is below this times the sum of their absolute
# values.
_ZERO_SUM = 1e-12
_GRADIENT_BLOCK_ROWS = 512  # `gradient` processes this many points at a time, to save memory


@entry_point
@dataclass(frozen=True, eq=False)
class Expansion:
    """Functions in the RKHS of a kernel, as linear combinations of kernel functions k(x_i, .).

        f_c(.) = sum_i coefficients[i, c] k(points[i], .),      c = 1, ..., m

    By the representer theorem, the solutions of most kernel methods have this form.  Fitted
    estimators store their functions as expansions, which can be evaluated, compared, compressed and
    mapped back to the input space.

    Expansions are immutable.  Calling an expansion evaluates its functions; addition, scaling and
    indexing return new expansions, and ``len`` returns the number of functions m.

    Parameters
    ----------
    kernel : Kernel
        The kernel k.  Operations on two expansions require equal kernels.
    points : points
        The n points x_i: an array or sparse matrix of shape (n, d), or a list of n objects
        (strings, sets, graphs) on which the kernel is defined.
    coefficients : array of shape (n, m) or (n,)
        The coefficients, with one row per point and one column per function.  They are copied.
    reduction : Reduction, optional
        The approximation error; set if the expansion was returned by `compress`.

    See Also
    --------
    Primal : The same functions as weights of finitely many features.
    Reduction : Approximation errors of a compressed expansion.
    mmd : Distance between the mean embeddings of two samples.

    References
    ----------
    Aronszajn, "Theory of reproducing kernels", Transactions of the American Mathematical Society
    68, 1950.

    Schölkopf, Herbrich and Smola, "A generalized representer theorem", COLT 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Linear
    >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.array([1.0, 1.0]))
    >>> f
    <Expansion: 1 function on 2 points, Linear()>
    >>> f([[10.0]])
    array([[30.]])
    >>> f.norm()
    array([3.])
    >>> (2 * f - f / 2)([[10.0]])
    array([[45.]])
    """

    kernel: Kernel
    points: Points
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
                f"{length(self.points)} points; coefficients must have one row per point"
            )
        if np.iscomplexobj(a):
            raise TypeError("coefficients must be real numbers, got complex numbers")
        dtype = a.dtype if a.dtype in (np.float32, np.float64) else np.float64
        # always copy the coefficients
        object.__setattr__(self, "coefficients", np.array(a, dtype=dtype))

    @classmethod
    def sections(cls, kernel: Kernel, X: Points) -> Expansion:
        """Return the kernel functions k(x_i, .), one for each point of X.

        These are the images phi(x_i) of the points in the RKHS.  Use them to express other
        functions, or to compute distances between points in feature space.

        Parameters
        ----------
        kernel : Kernel
            The kernel k.
        X : points
            The n points.

        Returns
        -------
        Expansion
            n functions on n points, with the identity matrix of shape (n, n) as coefficients.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Linear
        >>> f = Expansion.sections(Linear(), np.array([[1.0], [2.0]]))
        >>> f.inner(f)  # the kernel matrix
        array([[1., 2.],
               [2., 4.]])
        """
        return cls(kernel, X, np.eye(length(X)))

    @classmethod
    def mean(cls, kernel: Kernel, X: Points, weights: ArrayLike | None = None) -> Expansion:
        """Return the mean embedding sum_i w_i k(x_i, .) of a sample, with w_i = 1/n by default.

        The mean embedding represents the distribution of the sample in the RKHS; with a
        characteristic kernel such as the RBF kernel, it determines the distribution.

        Parameters
        ----------
        kernel : Kernel
            The kernel k.
        X : points
            The n points of the sample; at least one.
        weights : array of shape (n,), optional
            The weights w_i; None means 1/n for all points.  Weights are not normalised and need not
            sum to 1.

        Returns
        -------
        Expansion
            One function on n points.

        Raises
        ------
        ValueError
            If X is empty, or if there is not one weight per point.

        See Also
        --------
        mmd : Squared distance between two mean embeddings.

        References
        ----------
        Smola, Gretton, Song and Schölkopf, "A Hilbert space embedding for distributions", ALT 2007.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Linear
        >>> mean = Expansion.mean(Linear(), np.array([[1.0], [3.0]]))
        >>> mean([[1.0]])  # for the linear kernel, the mean embedding is x -> <mean, x>
        array([[2.]])
        """
        n = length(X)
        if n == 0:
            raise ValueError("the mean of 0 points is not defined; pass at least one point")
        w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (n,):
            raise ValueError(f"weights have shape {w.shape}, but there are {n} points")
        return cls(kernel, X, w)

    def __len__(self) -> int:
        """Return m, the number of functions."""
        return self.coefficients.shape[1]

    def __getitem__(self, columns: ColumnIndex) -> Expansion:
        """Return an expansion of the selected functions, on the same points.

        Parameters
        ----------
        columns : int, slice, list of int or ndarray
            Indices of functions, or a boolean mask.  An integer selects one function.

        Returns
        -------
        Expansion
        """
        return Expansion(self.kernel, self.points, select_columns(self.coefficients, columns))

    def __iter__(self) -> Iterator[Expansion]:
        return (self[c] for c in range(len(self)))

    # ------------------------------------------------------------------ values

    def __call__(self, X: Points, *, n_threads: int | None = None) -> np.ndarray:
        """Return the values f_c(x_i) at the points X.

        k(X, points) is computed in tiles and, unless it is small, never stored as a whole.

        Parameters
        ----------
        X : points
            The points at which the functions are evaluated.
        n_threads : int, optional
            Number of threads; None uses all available cores.

        Returns
        -------
        ndarray of shape (n, m)
            One row per point of X and one column per function.
        """
        kernel, points = self.kernel, self.points
        is_small = length(X) * len(self.coefficients) <= _MAX_CACHED_PAIRS
        if is_small and not expects_precomputed_rows(kernel):
            return np.asarray(cross_kernel_cached(self, kernel, X, points) @ self.coefficients)
        return np.asarray(gram(kernel, X, points, n_threads=n_threads) @ self.coefficients)

    def gradient(self, X: Points) -> np.ndarray:
        """Return the gradient of each function with respect to the input, at each point of X.

        Parameters
        ----------
        X : array of shape (n, d)
            The points at which gradients are computed.  They must be dense vectors.

        Returns
        -------
        ndarray of shape (n, m, d)
            Entry [i, c] is the gradient of f_c at x_i.

        Raises
        ------
        NotDifferentiableError
            If the kernel does not implement `input_gradient`.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Polynomial
        >>> square = Polynomial(2, coef0=0.0)
        >>> f = Expansion(square, np.array([[1.0]]), np.array([1.0]))  # f(x) = x^2
        >>> f.gradient(np.array([[3.0]]))
        array([[[6.]]])
        """
        if not length(X):
            return np.zeros((0, len(self), np.shape(X)[1]))
        gradients = []
        for rows in slices(length(X), _GRADIENT_BLOCK_ROWS):
            Xi = take(X, rows)
            weights = (np.ones((length(Xi), 1)) * a for a in self.coefficients.T)
            per_function = [self.kernel.input_gradient(Xi, self.points, W) for W in weights]
            gradients.append(np.stack(per_function, axis=1))
        return np.concatenate(gradients)

    # ------------------------------------------------------------------ geometry

    def inner(self, other: Expansion) -> np.ndarray:
        """Return all inner products <f_c, g_e> with the functions g_e of another expansion.

            <f_c, g_e> = sum_ij a_ic b_je k(x_i, z_j)

        Parameters
        ----------
        other : Expansion
            An expansion with the same kernel; its points may differ.

        Returns
        -------
        ndarray of shape (m, m')
            Entry [c, e] is <f_c, g_e>; m' is the number of functions of `other`.

        Raises
        ------
        KernelMismatchError
            If the two expansions have different kernels.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Linear
        >>> f = Expansion(Linear(), np.array([[1.0], [2.0]]), np.array([1.0, 1.0]))  # 3 x
        >>> g = Expansion(Linear(), np.array([[5.0]]), np.array([1.0]))  # 5 x
        >>> f.inner(g)
        array([[15.]])
        """
        self._require_same_kernel(other)
        return np.asarray(self.coefficients.T @ (self._gram_with(other) @ other.coefficients))

    def norm(self) -> np.ndarray:
        """Return the RKHS norms |f_c| of all functions.

            |f_c|^2 = sum_ij a_ic a_jc k(x_i, x_j)

        Returns
        -------
        ndarray of shape (m,)
            The norms.

        Raises
        ------
        ValueError
            If a squared norm is negative beyond rounding, because the kernel is not positive
            semidefinite on the points.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import RBF
        >>> X = np.array([[0.0], [3.0]])
        >>> Expansion(RBF(), X, np.eye(2)).norm()
        array([1., 1.])
        """
        a = self.coefficients
        K = self._gram_with(self)
        Ka, K_abs_a = np.hsplit(K @ np.concatenate([a, np.abs(a)], axis=1), 2)
        squared = np.einsum("ic,ic->c", a, Ka)
        # If a squared norm is negative, this is due to rounding if the norm is small compared with
        # its terms; otherwise k is not positive semidefinite.  The terms |a_i k_ij a_j| sum to at
        # most (sum |a_i| sqrt k_ii)^2.  This bound may be 0 for a kernel that is only conditionally
        # positive definite, because its diagonal may be 0; then |a|^T K |a| is used instead.
        bound_by_diagonal = (np.sqrt(np.abs(K.diagonal())) @ np.abs(a)) ** 2
        bound_by_values = np.einsum("ic,ic->c", np.abs(a), np.abs(K_abs_a))
        bound = np.maximum(bound_by_values, bound_by_diagonal)
        if np.any(squared < -max(1e-10, 100 * np.finfo(K.dtype).eps) * bound):
            raise ValueError(
                f"a squared norm is {squared.min():.3g} < 0: {self.kernel} is not positive "
                f"semidefinite on these points; choose a Mercer kernel"
            )
        return np.sqrt(np.maximum(squared, 0.0))

    def distance(self, other: Expansion) -> np.ndarray:
        """Return the distances |f_c - g_c| in the RKHS between functions of two expansions.

        If the coefficients of f_c - g_c sum to 0, as they do for two means, the points are centred
        in linear parts of the kernel.  This does not change the distance, but reduces rounding
        errors.

        Parameters
        ----------
        other : Expansion
            An expansion with the same kernel and the same number m of functions; its points may
            differ.

        Returns
        -------
        ndarray of shape (m,)
            Entry c is the distance between f_c and g_c.  For two mean embeddings, it is the
            (biased) maximum mean discrepancy of the samples.

        Raises
        ------
        KernelMismatchError
            If the two expansions have different kernels.
        ValueError
            If they have different numbers of functions.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Linear
        >>> P = Expansion.mean(Linear(), np.array([[0.0], [2.0]]))
        >>> Q = Expansion.mean(Linear(), np.array([[4.0]]))
        >>> P.distance(Q)  # the linear kernel compares only the means, 1 and 4
        array([3.])
        """
        difference = self - other
        a, kernel = difference.coefficients, difference.kernel
        if np.all(np.abs(a.sum(axis=0)) <= _ZERO_SUM * np.abs(a).sum(axis=0)):
            difference = replace(difference, kernel=shifted_to_data(kernel, difference.points))
        return difference.norm()

    def _gram_with(self, other: Expansion) -> GramOperator:
        """Return the Gram operator between the points of this and the other expansion."""
        same = other is self or same_points(self.points, other.points)
        return gram(self.kernel, self.points, None if same else other.points, storage="tiled")

    # ------------------------------------------------------------------ reduced sets

    def compress(
        self,
        n_points: int | None = None,
        *,
        max_error: float | None = None,
        method: str = "auto",
        max_iter: int = 100,
        random_state: RandomState = None,
        max_memory: MemoryLimit = None,
    ) -> Expansion:
        """Approximate the functions by expansions in fewer points (a reduced set).

            min_{Z, B}  sum_c |f_c - g_c|^2,     g_c = sum_j b_jc k(z_j, .)

        A compressed expansion is evaluated faster and needs less memory, in proportion to its
        number of points.  All functions share the new points Z.  For given Z, the best coefficients
        are B = k(Z, Z)^-1 k(Z, X) A with the present points X and coefficients A.  The `reduction`
        attribute of the result holds upper bounds on the errors |f_c - g_c| and on |f_c(x) -
        g_c(x)|.

        =========== ================================================== =========================
        method      new points                                         requires
        =========== ================================================== =========================
        "select"    a subset of the points, chosen greedily: each      any points; memory for
                    lowers the error as much as possible               n x n_points numbers
        "kmeans"    cluster centres, weighted by |coefficients|        dense vectors
        "construct" free points, optimised by L-BFGS, which starts     dense vectors and a kernel
                    from the points of both methods above              with `input_gradient`
        "auto"      "construct" if that takes at most about a minute,
                    else "select"
        =========== ================================================== =========================

        Parameters
        ----------
        n_points : int, optional
            Maximum number of new points; it must be smaller than the present number of points.  The
            result has fewer points if more would not reduce the error.  Use it if the memory or the
            time of predictions is limited.
        max_error : float, optional
            Alternative to `n_points`: the largest allowed error |f_c - g_c| in the RKHS norm, for
            example ``0.01 * f.norm().max()`` for one percent.  Exactly one of `n_points` and
            `max_error` must be passed.
        method : {"auto", "select", "kmeans", "construct"}, default="auto"
            How the new points are found; see the table.  "construct" has the smallest error for a
            given number of points, and takes longest.  Use "select" if the new points must be
            original points, for example because they are strings or graphs.
        max_iter : int, default=100
            Maximum number of L-BFGS steps.  More steps reduce the error further, but slowly.
        random_state : int, Generator, RandomState or None, default=None
            Seed of k-means.  None means 0, so that results are reproducible.
        max_memory : int, str or None, default=None
            Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
            this computer.

        Returns
        -------
        Expansion
            The m approximations g_c on at most `n_points` points.

        Raises
        ------
        ValueError
            If `max_error` cannot be reached, or if a method needs points that are dense vectors.

        See Also
        --------
        compress : Compress a fitted estimator.
        Reduction : The approximation errors.

        Notes
        -----
        New points are float64 even if the old ones are float32, because terms with coefficients of
        both signs nearly cancel.  The noise of a `White` kernel does not apply to new points.

        References
        ----------
        Burges, "Simplified support vector decision rules", ICML 1996.

        Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch and Smola, "Input space versus feature
        space in kernel-based methods", IEEE Transactions on Neural Networks 10, 1999.

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
        request = CompressionRequest(
            n_points, max_error, method, max_iter, random_state, max_memory
        )
        Z, B, reduction = reduce(self.kernel, self.points, self.coefficients, request)
        return Expansion(self.kernel, Z, B, reduction)

    # ------------------------------------------------------------------ primal form

    def to_primal(self, *, max_memory: MemoryLimit = None) -> Primal:
        """Return the same functions in primal form, f_c(.) = <w_c, phi(.)>.

        The primal form is faster and smaller if there are fewer features than points;
        `primal_or_dual` compares the two.  The conversion w_c = sum_i a_ic phi(x_i) is exact.  It
        needs a kernel with finitely many features (see `mercer.kernels.finite_features`), and
        memory for one weight per feature and function.  For strings, texts and graphs, only
        features that occur in the points are used.

        Parameters
        ----------
        max_memory : int, str or None, default=None
            Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
            this computer.

        Returns
        -------
        Primal
            m functions, with weights of shape (M, m) for M features.

        Raises
        ------
        TypeError
            If the kernel has infinitely many features.

        See Also
        --------
        Primal.to_dual : The inverse conversion.
        primal_or_dual : Compare the costs of both forms.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import Linear
        >>> f = Expansion(Linear(), np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([1.0, 1.0]))
        >>> f.to_primal().weights
        array([[3.],
               [1.]])
        """
        W, frame = to_weights(self.kernel, self.points, self.coefficients, max_memory)
        return Primal(self.kernel, W, frame)

    # ------------------------------------------------------------------ pre-images

    def preimage(
        self,
        method: str = "auto",
        *,
        start: Points = None,
        candidates: Points = None,
        neighbours: Any = None,
        n_neighbors: int = 10,
        regularization: float = 0.01,
        tol: float = 1e-6,
        max_iter: int = 500,
        max_memory: MemoryLimit = None,
    ) -> PreImages:
        """Find approximate pre-images: points z_c for which phi(z_c) is closest to f_c.

            min_z  |phi(z) - f_c|^2  =  k(z, z) - 2 f_c(z) + |f_c|^2

        Pre-images show functions of the RKHS in the input space: a mean of points, a cluster
        centre, or the denoised point that belongs to a projection by kernel PCA.  Exact pre-images
        rarely exist; the result contains the residuals |phi(z_c) - f_c|^2.  Good pre-images exist
        mainly if the coefficients of f_c sum to about 1, for example for means and for
        reconstructions by kernel PCA.

        ============= ================================================== ========================
        method        algorithm                                          kernels
        ============= ================================================== ========================
        "nearest"     the candidate with the smallest residual           any
        "convex"      a convex combination of `n_neighbors` candidates   on vectors
        "distance"    z is computed from its distances to                radial, polynomial
                      `n_neighbors` candidates, which follow from f_c
                      (Kwok and Tsang)
        "fixed_point" iterates z = weighted mean of the points           radial, dot product
                      (Mika et al.)
        "regularized" the same, with a penalty towards the start         radial, dot product
                      (Abrahamsen and Hansen)
        "gradient"    L-BFGS from `start`, by default from the better    with `input_gradient`
                      of "nearest" and "distance"
        "conformal"   map to the input space that preserves inner        on vectors; n^2 memory
                      products (Honeine and Richard)
        "learned"     ridge regression from feature space to points;     on vectors; n^2 memory
                      kernel and ridge minimise leave-one-out errors
                      (Bakır, Weston and Schölkopf)
        "search"      local search with `neighbours`, which starts       any
                      from the result of "nearest"
        "auto"        a closed form if there is one; else all of the
                      above that apply ("conformal" and "learned" up
                      to 1000 points); L-BFGS improves the best one
        ============= ================================================== ========================

        Parameters
        ----------
        method : str, default="auto"
            One of the methods in the table.  "auto" finds the smallest residual, but is the
            slowest.  For many functions choose "fixed_point" or "distance", which are fast for RBF
            kernels.  "nearest" returns one of the candidates, so that the result is always a valid
            object.
        start : array of shape (m, d), optional
            Initial points of "fixed_point", "regularized" and "gradient", one row per function.
            For denoising, use the noisy points.  None starts from the better of "nearest" and
            "distance".
        candidates : points, optional
            Points among which nearest neighbours are searched; by default those of the expansion.
        neighbours : function, optional
            For points that are not vectors: `neighbours(obj)` lists objects that differ from `obj`
            by one small change.  The default for graphs adds or removes an edge, or changes a
            label.
        n_neighbors : int, default=10
            Number of neighbours that "convex" and "distance" use.  Larger values average over more
            points and smooth the result; d + 1 neighbours or more can determine all d coordinates.
        regularization : float, default=0.01
            Weight of the start in the weighted mean of "regularized".  For comparison, a point at
            distance 0 has the weight of its coefficient.  Increase it if the iteration converges to
            points far from the start.
        tol : float, default=1e-6
            Iterations stop when steps are shorter than this times the spread of the points.
        max_iter : int, default=500
            Maximum number of iterations.  Increase it after a ConvergenceWarning.
        max_memory : int, str or None, default=None
            Memory budget for the n x n linear systems of "conformal" and "learned", in bytes or as
            a string such as "2 GiB"; None means half of the memory of this computer.

        Returns
        -------
        PreImages
            The `points`, of shape (m, d) for vectors, their `residuals` of shape (m,), the
            `methods` that found them, and a `report`.

        Raises
        ------
        TypeError
            If the method does not apply to the kernel or to the points.

        See Also
        --------
        KernelPCA : Denoising by projection, with pre-images in `inverse_transform`.

        References
        ----------
        Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, "Kernel PCA and de-noising in feature
        spaces", NIPS 1998.

        Kwok and Tsang, "The pre-image problem in kernel methods", IEEE Transactions on Neural
        Networks 15, 2004.

        Bakır, Weston and Schölkopf, "Learning to find pre-images", NIPS 2003.

        Abrahamsen and Hansen, "Input space regularization stabilizes pre-images for kernel PCA
        de-noising", IEEE Workshop on Machine Learning for Signal Processing, 2009.

        Honeine and Richard, "Preimage problem in kernel-based machine learning", IEEE Signal
        Processing Magazine 28, 2011.

        Examples
        --------
        The pre-image of the mean of some points:

        >>> import numpy as np
        >>> from mercer import Expansion
        >>> from mercer.kernels import RBF
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
        >>> centre = Expansion.mean(RBF(2.0), X).preimage()
        >>> centre.points.round(2)
        array([[0.33, 0.33]])
        >>> centre.residuals.round(2)
        array([0.15])
        """
        options = PreImageOptions(
            start, candidates, neighbours, n_neighbors, regularization, tol, max_iter, max_memory
        )
        return preimage(self.kernel, self.points, self.coefficients, method, options)

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        self._require_same_kernel(other)
        if len(self) != len(other):
            raise ValueError(f"cannot add expansions of {len(self)} and {len(other)} functions")
        if self.points is other.points or same_points(self.points, other.points):
            return Expansion(self.kernel, self.points, self.coefficients + other.coefficients)
        points = concatenate(self.points, other.points)
        coefficients = np.concatenate([self.coefficients, other.coefficients])
        return Expansion(self.kernel, points, coefficients)

    def __sub__(self, other: Expansion) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        return self + (-other)

    def __neg__(self) -> Expansion:
        return self * -1.0

    def __mul__(self, factor: ArrayLike | Expansion) -> Expansion:
        """Multiply all functions by one number, or each function by its own number."""
        if isinstance(factor, Expansion):
            return NotImplemented
        factor = np.asarray(factor)
        if factor.dtype.kind not in "biuf" or factor.shape not in ((), (len(self),)):
            return NotImplemented
        return Expansion(self.kernel, self.points, self.coefficients * factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # makes numpy.float64(2) * f call __rmul__

    def __truediv__(self, factor: ArrayLike | Expansion) -> Expansion:
        if isinstance(factor, Expansion):
            return NotImplemented
        return self * (1.0 / np.asarray(factor, dtype=float))

    def _require_same_kernel(self, other: Expansion) -> None:
        if self.kernel != other.kernel:
            raise KernelMismatchError(
                f"the two expansions belong to different RKHSs: one has the kernel "
                f"{self.kernel}, the other has {other.kernel}"
            )

    def __repr__(self) -> str:
        n, m = self.coefficients.shape
        return f"<Expansion: {count_functions(m)} on {n} points, {self.kernel}>"
