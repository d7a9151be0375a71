"""Alignment of kernels: the cosine between the centred kernel matrices A and B.

The inner products of all pairs of centred matrices are computed in one pass over tiles.

    <A, B> = sum_ij w_i w_j A_ij B_ij
    A = K - m 1^T - 1 m^T + g,     m = K w / W,     g = m^T w / W,     W = sum of the weights w

A point of weight 2 counts as two points.  No n x n matrix is stored: p kernels need one tile and
one vector each, and one p x p matrix.  For the centred matrices A and B of K and L, the formula

    <A, B> = <K, L> - 2 W (m_K w) . m_L + W^2 g_K g_L

suffers from cancellation if the kernel values hardly vary.  K - r 1^T - 1 r^T has the same centred
matrix A for *any* r, so each K is first centred approximately, with r from a few of the points.
The subtracted terms are then small, and the cancellation is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..._core import (
    MemoryLimit,
    Points,
    as_float64,
    as_vectors,
    budget_in_bytes,
    check_budget,
    check_threads,
    entry_point,
    ignore_overflow,
    length,
    not_finite_error,
    one_blas_thread,
    ordered_sum,
    resource_scope,
    slices,
    take,
)
from ...gram import GramOperator, gram, memoise_if_affordable
from ...kernels import Kernel, Linear, Precomputed, as_kernel
from ..gp import Capabilities


@dataclass(frozen=True)
class _InnerProductTuning:
    """Tile sizes, and the tolerance below which a kernel counts as constant."""

    # Bounds of the number of rows and columns of a tile.
    max_tile_size: int = 384
    min_tile_size: int = 32
    # Maximum number of entries in the tiles of all matrices together.
    max_tile_entries: int = 2**20
    # Each thread has an equal part of the memory budget; this part is at least this many times the
    # size of its tiles.
    min_budget_ratio: int = 8
    # Number of points from which the approximate centring of K is computed.
    n_centres: int = 32
    # A centred matrix whose norm, relative to the largest diagonal entry of K, is below this value
    # is treated as 0, because it is rounding error.
    zero_tolerance: float = 1e-13


_TUNING = _InnerProductTuning()

# A kernel, the name of one, a function of two points, a kernel matrix, or targets.
KernelOrTargets: TypeAlias = Kernel | Callable[..., float] | ArrayLike


@dataclass(frozen=True)
class GramInnerProducts:
    """Inner products of centred kernel matrices A_1, ..., A_p, and their sizes.

    Attributes
    ----------
    products : ndarray of shape (p, p)
        The inner products <A_k, A_l>.
    sizes : ndarray of shape (p,)
        The mean squared distance of the points from their mean in the feature space of each
        kernel, sum_i w_i (A_k)_ii / W, for sample weights w with sum W.
    """

    products: np.ndarray
    sizes: np.ndarray

    @classmethod
    @ignore_overflow
    def of(
        cls,
        grams: Sequence[GramOperator],
        weights: np.ndarray | None = None,
        *,
        max_memory: MemoryLimit = None,
    ) -> GramInnerProducts:
        """Compute the inner products of symmetric matrices over the same points."""
        n, p = grams[0].shape[0], len(grams)
        w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        W, root = w.sum(), np.sqrt(w)
        threads = check_threads(None)
        # The tiles use only this part of the memory budget; the rest is for the points.
        max_entries = budget_in_bytes(max_memory) / (8 * _TUNING.min_budget_ratio * threads)
        size = np.sqrt(min(_TUNING.max_tile_entries, max_entries) / p)
        size = int(np.clip(size, _TUNING.min_tile_size, _TUNING.max_tile_size))
        strips = slices(n, size)
        n_numbers = threads * (3 * p * min(n, size) ** 2 + p * p + 2 * p * n)
        check_budget(8 * n_numbers, max_memory, f"products of {p} kernel matrices of {n} points")
        offsets = np.array([_approximate_offsets(K) for K in grams])

        def strip(i: int) -> np.ndarray:
            """Return the inner products and K w over diagonal tile i and the tiles to its right."""
            rows, products, sums = strips[i], np.zeros((p, p)), np.zeros((p, n))
            for cols in strips[i:]:
                T = np.empty((p, rows.stop - rows.start, cols.stop - cols.start))
                for K, r, tile in zip(grams, offsets, T, strict=True):
                    tile[...] = K.block(rows, cols)
                    tile -= r[rows, None]
                    tile -= r[cols]
                sums[:, rows] += T @ w[cols]
                if rows != cols:
                    sums[:, cols] += w[rows] @ T
                T *= root[rows, None] * root[cols]
                flat = T.reshape(p, -1)
                products += (1.0 if rows == cols else 2.0) * (flat @ flat.T)
            return np.concatenate([products.ravel(), sums.ravel()])

        # The first strips have the most tiles.  This order spreads them over all groups.
        order = sorted(range(len(strips)), key=lambda i: min(i, len(strips) - 1 - i))
        work = sum(K.kernel._evaluation_work(n * n // 2) for K in grams)
        total = ordered_sum(strip, order, min(8, len(strips)), work=work)
        products, sums = total[: p * p].reshape(p, p), total[p * p :].reshape(p, n)
        diagonals = np.array([K.diagonal() for K in grams], dtype=float)
        for K, square, diagonal in zip(grams, products.diagonal(), diagonals, strict=True):
            if not (np.isfinite(square) and np.isfinite(diagonal).all()):
                raise not_finite_error(K.kernel)
        means = sums / W
        overall = means @ w / W
        products -= 2.0 * W * (means * w) @ means.T - W**2 * np.outer(overall, overall)
        sizes = ((diagonals - 2.0 * (offsets + means)) @ w) / W + overall
        is_constant = np.sqrt(np.maximum(products.diagonal(), 0.0)) / W
        is_constant = is_constant <= _TUNING.zero_tolerance * np.abs(diagonals).max(axis=1)
        products[is_constant], products[:, is_constant], sizes[is_constant] = 0.0, 0.0, 0.0
        return cls(0.5 * (products + products.T), np.maximum(sizes, 0.0))

    @property
    def alignments(self) -> np.ndarray:
        """The alignments <A_k, A_l> / (|A_k| |A_l|), shape (p, p); 0 for constant kernels."""
        norms = np.sqrt(self.products.diagonal())
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        return np.clip(self.products * inverse * inverse[:, None], -1.0, 1.0)


def _approximate_offsets(K: GramOperator) -> np.ndarray:
    """Return r such that K - r 1^T - 1 r^T has mean 0 over a few evenly spaced points."""
    centres = np.unique(np.linspace(0, K.shape[0] - 1, _TUNING.n_centres).astype(int))
    strips = slices(K.shape[0], _TUNING.max_tile_size)
    columns = np.concatenate([K.block(rows, centres) for rows in strips])
    r = columns.mean(axis=1, dtype=float)
    return np.asarray(r - 0.5 * r[centres].mean())


# ---------------------------------------------------------------------- alignment


@entry_point
@one_blas_thread
@resource_scope()
def alignment(
    k1: KernelOrTargets,
    k2: KernelOrTargets,
    X: Points = None,
    *,
    sample_weight: ArrayLike | None = None,
    max_memory: MemoryLimit = None,
) -> float:
    """Return the centred alignment of two kernels, or of a kernel and targets, on the points X.

    Use it to choose a kernel for given targets before a model is trained, or to find out whether
    two kernels measure the same property.  The alignment is <A, B> / (|A| |B|), where A and B are
    the centred kernel matrices.  It is 1 for kernels that differ only by a positive factor and a
    constant, and about 0 for kernels that measure unrelated properties.  Without centring, any two
    kernels with positive values would appear aligned (Cortes, Mohri and Rostamizadeh).  The
    matrices are evaluated in tiles and never stored.

    Parameters
    ----------
    k1, k2 : Kernel, str, callable, matrix or targets
        A kernel; a symmetric (n, n) matrix; or targets y, for which the kernel matrix is y y^T.
        Kernel parameters that depend on the data, such as "median", are computed from X with its
        weights.  Targets are floats of shape (n,) or (n, q), or labels of shape (n,), which are
        one-hot encoded.  Integers of shape (n,) are labels.
    X : points, optional
        The n points; not needed if k1 and k2 are matrices or targets.
    sample_weight : array of shape (n,), optional
        Weights of the points.  A point of weight 2 counts as two points, also when kernel
        parameters are computed from the data; a point of weight 0 is ignored.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    Returns
    -------
    float
        The alignment, between -1 and 1.  It is not negative if both matrices are positive
        semidefinite.

    See Also
    --------
    MultipleKernel : Weighted sum of kernels with a large alignment.
    hsic : The inner product <A, B> / n^2, without normalisation.
    TargetAlignment : The alignment with targets as a function of kernel parameters.

    References
    ----------
    Cristianini, Shawe-Taylor, Elisseeff and Kandola, "On kernel-target alignment", NIPS 2001.

    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import alignment
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> round(alignment(Linear(), 3 * Linear() + 5, X), 3)
    1.0
    >>> round(alignment(RBF(1.0), np.where(X[:, 0] > 0, "right", "left"), X), 3)
    0.796
    """
    points = None if X is None else as_float64(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if points is not None:
        check_weights(weights, length(points))
    grams = [_as_gram(k, points, weights, name, max_memory) for k, name in ((k1, "k1"), (k2, "k2"))]
    (n, _), (m, _) = (K.shape for K in grams)
    if n != m:
        raise ValueError(f"k1 has {n} points and k2 has {m}: both must refer to the same points")
    check_weights(weights, n)
    inner = GramInnerProducts.of(grams, weights, max_memory=max_memory)
    for name, norm2 in zip(("k1", "k2"), inner.products.diagonal(), strict=True):
        if not norm2 > 0:
            raise ValueError(
                f"{name} is constant on these {n} points: its centred matrix is 0, so the "
                f"alignment is not defined; use another kernel, or targets that vary"
            )
    return float(inner.alignments[0, 1])


def tiled_gram(kernel: Kernel, X: Points, max_memory: MemoryLimit = None) -> GramOperator:
    """Return K as an operator that evaluates tiles; a `Precomputed` matrix is used directly."""
    storage = "auto" if isinstance(kernel, Precomputed) else "tiled"
    kernel = memoise_if_affordable(kernel, length(X), max_memory)
    return gram(kernel, X, storage=storage, max_memory=max_memory)


def target_gram(Y: np.ndarray) -> GramOperator:
    """Return Y Y^T for targets Y, which are shifted to mean 0 first."""
    return gram(Linear(), Y - Y.mean(axis=0), storage="tiled")


def targets_to_matrix(y: ArrayLike) -> np.ndarray:
    """Return targets as a float array of shape (n, q).

    A 1-D array of any other type than float contains labels, which are one-hot encoded.

    Examples
    --------
    >>> from mercer.models.kernel_learning._kernel_alignment import targets_to_matrix
    >>> targets_to_matrix(["a", "b", "a"])
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """
    y = np.asarray(y)
    if y.ndim == 1 and y.dtype.kind != "f":
        classes, labels = np.unique(y, return_inverse=True)
        return np.eye(len(classes))[labels]
    return np.asarray(as_vectors(y[:, None] if y.ndim == 1 else y, "the targets"), dtype=float)


def check_weights(weights: np.ndarray | None, n: int) -> None:
    """Raise an error unless the weights are n numbers >= 0 with a positive, finite sum."""
    if weights is not None and (
        weights.shape != (n,) or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf
    ):
        raise ValueError(f"sample_weight must be {n} numbers >= 0, not all of them 0")


def _as_gram(
    k: KernelOrTargets, X: Points, weights: np.ndarray | None, name: str, max_memory: MemoryLimit
) -> GramOperator:
    if isinstance(k, (str, Kernel)) or callable(k):
        if X is None:
            raise ValueError(
                f"{name} is a kernel, so X is needed; pass the points on which to evaluate it"
            )
        kernel = as_kernel(k).resolve(X, weights)
        return tiled_gram(kernel, X, max_memory)
    values = np.asarray(k)
    if values.ndim == 2 and values.shape[0] == values.shape[1] and len(values) > 1:
        return tiled_gram(Precomputed(values), np.arange(len(values)), max_memory)
    if values.ndim not in (1, 2) or not len(values):
        raise ValueError(
            f"{name} must be a kernel, a square matrix or targets, got an array of shape "
            f"{values.shape}"
        )
    return target_gram(targets_to_matrix(values))


# ---------------------------------------------------------------------- alignment as an objective

_N_MATRICES = 6  # number of n x n matrices in memory, including temporary ones


@entry_point
@dataclass(frozen=True, eq=False)
class TargetAlignment:
    """The centred alignment of a kernel with the targets, as a function of theta.

    `mercer.models.gp.maximise` maximises it to choose kernel parameters without training a model.

    The objective is n <A, T> / (|A| |T|), where A is the centred kernel matrix and T the centred
    Y Y^T.  The factor n gives it the scale of a log likelihood.  Its derivatives are

        d value = sum_ij W_ij dK_ij,     W = n / |A| (T / |T| - c A / |A|)

    where c = <A, T> / (|A| |T|) is the alignment.

    Parameters
    ----------
    kernel : Kernel
        The kernel, whose `theta` is the starting point.
    X : points
        The n training points.
    Y : ndarray of shape (n, q)
        The targets; class labels must be one-hot encoded.
    weights : ndarray of shape (n,), optional
        Weights of the points; a point of weight 2 counts as two points.
    max_memory : int, str or None, default=None
        The memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
        this computer.

    See Also
    --------
    alignment : The alignment of two kernels, or of a kernel and targets.
    tune : Choose the parameters of an estimator.
    mercer.models.gp.maximise : Maximise an objective.

    References
    ----------
    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.kernel_learning import TargetAlignment
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> value, gradient = TargetAlignment(RBF(1.0), X, np.sin(3 * X)).value_and_gradient()
    >>> round(value / 30, 3)
    0.729
    """

    kernel: Kernel
    X: Points
    Y: np.ndarray
    weights: np.ndarray | None = None
    max_memory: MemoryLimit = None

    capabilities: ClassVar[Capabilities] = Capabilities(subset=True)

    @property
    def start(self) -> np.ndarray:
        """The theta of `kernel`, where the optimisation starts."""
        return self.kernel.theta

    def subset(self, rows: np.ndarray) -> Self:
        """Return the objective restricted to some of the points.

        Parameters
        ----------
        rows : ndarray of int
            The indices of the points.

        Returns
        -------
        TargetAlignment
            The objective for ``X[rows]`` and ``Y[rows]``.
        """
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=take(self.X, rows), Y=self.Y[rows], weights=weights)

    def value(self, theta: np.ndarray | None = None) -> float:
        """Return the objective at theta.

        Parameters
        ----------
        theta : ndarray of shape (p,), optional
            The logarithms of the p free kernel parameters; None means those of `kernel`.

        Returns
        -------
        float
            The alignment times n.
        """
        return self.value_and_gradient(theta)[0]

    def value_and_gradient(self, theta: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient with respect to theta.

        Parameters
        ----------
        theta : ndarray of shape (p,), optional
            The logarithms of the p free kernel parameters; None means those of `kernel`.

        Returns
        -------
        value : float
            The alignment times n.
        gradient : ndarray of shape (p,)
            Its derivatives in theta.
        """
        n = length(self.X)
        check_budget(8 * _N_MATRICES * n * n, self.max_memory, f"an alignment of {n} points")
        kernel = self.kernel if theta is None else self.kernel.with_theta(theta)
        w = np.ones(n) if self.weights is None else self.weights
        fractions = w / w.sum()
        A = gram(kernel, self.X, max_memory=self.max_memory).to_array().astype(float, copy=False)
        if not np.isfinite(A).all():
            raise not_finite_error(kernel)
        means = A @ fractions
        A = A - means
        A -= means[:, None] - means @ fractions
        Y = self.Y - fractions @ self.Y
        T = Y @ Y.T
        pair_weights = w[:, None] * w
        a, t = np.sqrt(np.sum(pair_weights * A * A)), np.sqrt(np.sum(pair_weights * T * T))
        if not (a > 0 and t > 0):
            return 0.0, np.zeros(self.start.size)
        cosine = float(np.sum(pair_weights * A * T) / (a * t))
        W = T / t
        W -= cosine / a * A
        W *= pair_weights
        W *= n / a
        return n * cosine, kernel.pullback(self.X, None, W)
