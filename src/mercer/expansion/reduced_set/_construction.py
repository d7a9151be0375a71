"""Reduced sets with free points in R^d, optimised to minimise the error (Burges 1996).

    E(Z) = -tr(A^T K_xz K_zz^-1 K_zx A) = -tr(C^T B),      C = K_zx A,   B = K_zz^-1 C
    dE/dz_j = -2 sum_ic B_jc A_ic dk(z_j, x_i)/dz_j + 2 sum_lc B_jc B_lc dk(z_j, z_l)/dz_j

The functions sum_i A_ic k(x_i, .) are approximated by sum_j B_jc k(z_j, .), and E is the squared
error up to a constant; K_xz = k(X, Z), and so on.  L-BFGS optimises only the points Z (variable
projection): at every step the coefficients B are optimal for Z, so that the derivative of the error
with respect to B is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..._core import NotPositiveDefiniteError, RandomState, one_blas_thread, ordered_sum, slices
from ..._core.linalg import cho_factor, cho_solve
from ...gram import euclidean_kmeans, unwrap_radial
from ._reduction_target import TargetFunctions


@dataclass(frozen=True)
class _ConstructTuning:
    """Numerical constants of the optimisation of free points."""

    # Number of original points that are processed at a time.
    block_rows: int = 512
    # This times the largest k(z, z) is added to the diagonal of k(Z, Z), as points may coincide.
    relative_jitter: float = 1e-8
    # Number of previous steps that L-BFGS stores.
    lbfgs_memory: int = 20
    # L-BFGS stops after a step with a smaller relative decrease of the squared error.
    tol: float = 1e-5
    # A gradient below this times the squared error is a rounding error, and Z is not optimised.
    min_relative_gradient: float = 1e-12
    # The bounding box of the data is enlarged on all sides by this fraction of its extent.
    box_margin: float = 0.5


_TUNING = _ConstructTuning()


def construct(
    f: TargetFunctions, Z: np.ndarray, n_iter: int, n_threads: int | None = None
) -> np.ndarray:
    """Return Z after at most `n_iter` L-BFGS steps; the error is never larger than initially."""
    objective = _SquaredError(f, Z.shape, n_threads)
    box = [bound / objective.column_scale for bound in _coordinate_bounds(f)]
    bounds = np.stack([np.tile(bound, len(Z)) for bound in box])
    start = np.clip((Z / objective.column_scale).ravel(), *bounds)
    value, gradient = objective(start)
    if not np.abs(gradient).max() > _TUNING.min_relative_gradient * value:
        return np.asarray(objective.best * objective.column_scale)
    objective.scale *= max(value, 1e-12)  # makes tolerances relative to the initial error
    objective.best_value = np.inf
    limits = {"maxiter": n_iter, "maxfun": 2 * n_iter, "ftol": _TUNING.tol, "gtol": 0}
    options = {"maxcor": _TUNING.lbfgs_memory, **limits}
    minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds.T, options=options)
    return np.asarray(objective.best * objective.column_scale)


class _SquaredError:
    """The squared error sum_c |f_c|^2 + E(Z) and its gradient, divided by `scale`.

    E(Z) is defined in the docstring of this module.  Coordinates are divided by the standard
    deviation of their column.  The best Z so far is stored in `best`.
    """

    def __init__(self, f: TargetFunctions, shape: tuple[int, ...], n_threads: int | None) -> None:
        self.f, self.shape, self.n_threads = f, shape, n_threads
        spread = np.std(f.X, axis=0)
        self.column_scale = np.where(spread > 0, spread, 1.0)
        self.scale = self.squared_norm = float(f.squares.sum())
        self.best_value, self.best = np.inf, np.empty(shape)
        self.blocks = slices(len(f.X), _TUNING.block_rows)

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.isfinite(z).all():  # the line search overflowed
            return np.inf, np.zeros_like(z)
        f, Z = self.f, z.reshape(self.shape) * self.column_scale
        C = self._sum_over_points(lambda X, A: f.kernel(Z, X) @ A)
        K = f.kernel(Z)
        with one_blas_thread:
            B = cho_solve(_cholesky(K, f), C)
            value = (self.squared_norm - float(np.einsum("jc,jc->", C, B))) / self.scale
            G = f.kernel.input_gradient(Z, None, B @ B.T)
        G -= self._sum_over_points(lambda X, A: f.kernel.input_gradient(Z, X, B @ A.T))
        if value < self.best_value:
            self.best_value, self.best = value, z.reshape(self.shape).copy()
        return value, (2.0 / self.scale * G * self.column_scale).ravel()

    def _sum_over_points(self, term: Callable[..., np.ndarray]) -> np.ndarray:
        """Return the sum of term(X_b, A_b) over blocks of points, in a fixed order."""
        X, A, blocks = self.f.X, self.f.A, self.blocks
        work = self.f.kernel._evaluation_work(len(X) * self.shape[0])

        def block_term(rows: slice) -> np.ndarray:
            return term(X[rows], A[rows])

        return ordered_sum(block_term, blocks, len(blocks), self.n_threads, work)


def _cholesky(K: np.ndarray, f: TargetFunctions) -> Any:
    """Return the Cholesky factor of K with a small multiple of its diagonal added."""
    largest = float(K.diagonal().max())
    K.flat[:: len(K) + 1] += _TUNING.relative_jitter * largest if largest > 0 else 1.0
    try:
        return cho_factor(K, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError as why:
        raise NotPositiveDefiniteError(
            f"the kernel matrix of {len(K)} new points is not positive definite, even with "
            f"{_TUNING.relative_jitter:g} times its largest entry added to the diagonal: "
            f"{f.kernel} is not positive semidefinite on these points; use method='select'"
        ) from why


def _coordinate_bounds(f: TargetFunctions) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the new points: the bounding box of the data, enlarged.

    The box is not enlarged if the kernel is not defined there.
    """
    low, high = f.X.min(axis=0), f.X.max(axis=0)
    margin = _TUNING.box_margin * (high - low)
    try:
        f.kernel.diag(np.stack([low - margin, high + margin]))
    except ValueError:  # for example, the kernel needs non-negative histograms
        return low, high
    return low - margin, high + margin


# --- Reduced sets by k-means: the new points are cluster centres.  Points are weighted by the size
# of their coefficients.


_LLOYD_ITERATIONS = 10  # more iterations take longer and may improve the centres


def kmeans(f: TargetFunctions, n_points: int, random_state: RandomState) -> np.ndarray:
    """Return n_points cluster centres; some may coincide.

    Distances are measured in units of the length scale if the kernel is radial.
    """
    from sklearn.cluster import kmeans_plusplus

    radial = unwrap_radial(f.kernel)
    scale = radial._scale(f.X.shape[1]) if radial is not None else 1.0
    weights = np.sqrt(np.einsum("ic,ic->i", f.A, f.A))
    is_used = weights > 1e-8 * weights.max()
    if isinstance(random_state, np.random.Generator):  # scikit-learn does not accept a Generator
        random_state = int(random_state.integers(2**31 - 1))
    X, weights = f.X[is_used] / scale, weights[is_used] / weights.max()
    options = {"sample_weight": weights, "random_state": random_state}
    centres, _ = kmeans_plusplus(X, min(n_points, len(X)), **options)
    return np.asarray(euclidean_kmeans(X, centres, _LLOYD_ITERATIONS, weights) * scale)
