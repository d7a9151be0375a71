"""Construction: points that move freely in R^d, so as to minimise the error (Burges 1996).

    E(Z) = -tr(A^T K_xz K_zz^-1 K_zx A) = -tr(C^T B),      C = K_zx A,   B = K_zz^-1 C
    dE/dz_j = -2 sum_ic B_jc A_ic dk(z_j, x_i)/dz_j + 2 sum_lc B_jc B_lc dk(z_j, z_l)/dz_j

Variable projection: the coefficients are the best ones for the points at every step, so that their
own derivative is 0 and drops out, and L-BFGS moves the points alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._errors import NotPositiveDefiniteError
from .._runtime import one_blas_thread, ordered_sum, slices
from .._runtime.linalg import cho_factor, cho_solve
from ._functions import Functions

__all__ = ["construct"]

_BLOCK = 512  # original points that are worked on at a time
_SHIFT = 1e-8  # times the largest k(z, z), on the diagonal of K_zz, as moving points may meet
_MEMORY = 20  # steps that L-BFGS remembers
_TOL = 1e-5  # a step that lowers the squared error by less, relatively, is the last
_FLAT = 1e-12  # times the squared error, is a slope too small for a step that means anything
_BEYOND = 0.5  # times the extent of the data, is how far points may leave it


def construct(f: Functions, Z: np.ndarray, n_iter: int, n_threads: int | None = None) -> np.ndarray:
    """Return Z moved by at most `n_iter` steps of L-BFGS; where it began, if nothing was gained."""
    energy = _Energy(f, Z.shape, n_threads)
    low, high = _box(f)
    bounds = np.stack([np.tile((low / energy.unit), len(Z)), np.tile(high / energy.unit, len(Z))])
    start = np.clip((Z / energy.unit).ravel(), *bounds)
    value, slope = energy(start)
    if not np.abs(slope).max() > _FLAT * value:
        return np.asarray(energy.best * energy.unit)
    energy.scale *= max(value, 1e-12)  # tolerances are relative to the error of the start
    energy.lowest = np.inf
    options = {"maxiter": n_iter, "maxfun": 2 * n_iter, "maxcor": _MEMORY, "ftol": _TOL, "gtol": 0}
    minimize(energy, start, jac=True, method="L-BFGS-B", bounds=bounds.T, options=options)
    return np.asarray(energy.best * energy.unit)


class _Energy:
    """The squared error sum_c |f_c|^2 + E(Z) and its gradient, in units of `scale`.

    Coordinates are in units of the spread of each column.
    """

    def __init__(self, f: Functions, shape: tuple[int, ...], n_threads: int | None) -> None:
        self.f, self.shape, self.n_threads = f, shape, n_threads
        spread = np.std(f.X, axis=0)
        self.unit = np.where(spread > 0, spread, 1.0)
        self.scale = self.squares = float(f.squares.sum())
        self.lowest, self.best = np.inf, np.empty(shape)
        self.blocks = slices(len(f.X), _BLOCK)

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.isfinite(z).all():  # a step too long for a float
            return np.inf, np.zeros_like(z)
        f, Z = self.f, z.reshape(self.shape) * self.unit
        C = self._sum(lambda X, A: f.kernel(Z, X) @ A)
        K = f.kernel(Z)
        with one_blas_thread:
            B = cho_solve(_factor(K, f), C)
            value = (self.squares - float(np.einsum("jc,jc->", C, B))) / self.scale
            G = f.kernel.input_gradient(Z, None, B @ B.T)
        G -= self._sum(lambda X, A: f.kernel.input_gradient(Z, X, B @ A.T))
        if value < self.lowest:
            self.lowest, self.best = value, z.reshape(self.shape).copy()
        return value, (2.0 / self.scale * G * self.unit).ravel()

    def _sum(self, part: Any) -> np.ndarray:
        """Return the sum of part(X_b, A_b) over blocks of points, always in the same order."""
        X, A = self.f.X, self.f.A
        return ordered_sum(
            lambda rows: part(X[rows], A[rows]),
            self.blocks,
            len(self.blocks),
            self.n_threads,
            self.f.kernel._evaluation_work(len(X) * self.shape[0]),
        )


def _factor(K: np.ndarray, f: Functions) -> Any:
    largest = float(K.diagonal().max())
    K.flat[:: len(K) + 1] += _SHIFT * largest if largest > 0 else 1.0
    try:
        return cho_factor(K, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError as why:
        raise NotPositiveDefiniteError(
            f"K_zz of {len(K)} points is not positive definite with {_SHIFT:g} of its largest "
            f"diagonal entry added: {f.kernel} is no Mercer kernel there; use method='select'"
        ) from why


def _box(f: Functions) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of the new points: beyond the data by half, if the kernel is defined."""
    low, high = f.X.min(axis=0), f.X.max(axis=0)
    wide = _BEYOND * (high - low)
    try:
        f.kernel.diag(np.stack([low - wide, high + wide]))
    except ValueError:  # histograms, say, whose entries are not negative
        return low, high
    return low - wide, high + wide
