"""Derivatives against differences."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels import Kernel
from ._law import Laws

__all__ = ["check_input_gradient", "check_pullback", "difference", "double", "gradient", "is_float"]

# Fourth order differences, f' = (8 [f(h) - f(-h)] - [f(2h) - f(-2h)]) / 12h: with this h both the
# truncation h^4 and the rounding eps / h are near 1e-12.
STEP = 3e-4
_STENCIL = ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0))


def check_pullback(
    kernel: Kernel, X: Any, Z: Any = None, *, random_state: int = 0, rtol: float = 1e-7
) -> None:
    """Check that `kernel.pullback` is the derivative of <W, k(X, Z)> in theta, W random.

    The error is measured against sum |W| |k|, the size of what is differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RationalQuadratic
    >>> from mercer.testing import check_pullback
    >>> check_pullback(2 * RationalQuadratic(), np.random.default_rng(0).normal(size=(9, 2)))
    """
    laws, theta = Laws(kernel, rtol), kernel.theta
    X, Z = double(X), double(Z)
    block = kernel(X, Z)
    W = np.random.default_rng(random_state).normal(size=block.shape)
    kept = W.copy()
    got = kernel.pullback(X, Z, W)
    laws.hold("weights are left alone", np.array_equal(W, kept), "pullback changed W")
    laws.hold("pullback", got.shape == theta.shape, f"shape {got.shape}, theta {theta.shape}")

    def value(move: np.ndarray) -> Any:
        return np.sum(W * kernel.with_theta(theta + move)(X, Z))

    want = [difference(value, STEP * e) / STEP for e in np.eye(theta.size)]
    what = f"pullback and differences in {kernel.theta_names}, Z={'None' if Z is None else 'given'}"
    laws.close("pullback", got, want, what, np.sum(np.abs(W * block)))


def check_input_gradient(
    kernel: Kernel, X: Any, Z: Any = None, *, random_state: int = 0, rtol: float = 1e-6
) -> None:
    """Check that `kernel.input_gradient` is the derivative of sum_j W_ij k(x_i, z_j) in x_i.

    With `Z=None` both arguments of k(X) move, and the derivative along a random direction is
    compared.  Sparse vectors are made dense to be moved; points that are no floating point
    vectors cannot be moved, and then nothing is checked but that the call is refused or answers.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Matern
    >>> from mercer.testing import check_input_gradient
    >>> check_input_gradient(Matern(nu=2.5), np.random.default_rng(0).normal(size=(9, 2)))
    """
    laws, rng = Laws(kernel, rtol), np.random.default_rng(random_state)
    X, Z = double(X), double(Z)
    block = kernel(X, Z)
    W = rng.normal(size=block.shape)
    kept = W.copy()
    got = kernel.input_gradient(X, Z, W)
    laws.hold("weights are left alone", np.array_equal(W, kept), "input_gradient changed W")
    if not is_float(X):
        return
    laws.hold("input gradient", got.shape == X.shape, f"shape {got.shape}, points {X.shape}")
    dense = X.toarray() if sp.issparse(X) else X
    size = np.abs(W * block).sum(axis=1) / spread_of(dense)
    if Z is None:
        D, step = rng.normal(size=X.shape), step_of(dense)
        got = np.sum(D * (got + kernel.input_gradient(X, None, W.T)))
        want = difference(lambda move: np.sum(W * kernel(dense + move)), step * D) / step
        scale = np.sum(size)
    else:
        want = gradient(lambda A: np.sum(W * kernel(A, Z), axis=1), dense)
        scale = np.maximum(np.abs(want), size[:, None])
    what = f"gradient and differences, Z={'None' if Z is None else 'given'}"
    laws.close("input gradient", got, want, what, scale)


def difference(f: Function[[np.ndarray], Any], step: np.ndarray) -> Any:
    """Return the directional derivative of f at 0 along `step`, to fourth order."""
    total: Any = 0.0
    for times, weight in _STENCIL:
        total = total + weight * np.asarray(f(times * step), dtype=float)
    return total / 12.0


def gradient(f: Function[[np.ndarray], Any], X: np.ndarray) -> np.ndarray:
    """Return df/dx_i along each axis, as the last one; row i of f depends on x_i alone.

    All rows can therefore move at once.
    """
    step = step_of(X)
    parts = [difference(lambda move: f(X + move), step * e) / step for e in np.eye(X.shape[1])]
    return np.stack(parts, axis=-1)


def is_float(X: Any) -> bool:
    """Tell whether X holds vectors that can be moved a little."""
    return getattr(X, "ndim", 0) == 2 and getattr(X, "dtype", np.dtype(int)).kind == "f"


def spread_of(X: np.ndarray) -> float:
    """Return the extent of X, by which a derivative in X is measured."""
    return float(np.ptp(X) if X.size else 0.0) or 1.0


def step_of(X: np.ndarray) -> float:
    """Return a step so small that a kink is unlikely to lie between x and x + 2h."""
    return 0.1 * STEP * spread_of(X)


def double(X: Any) -> Any:
    """Return X in float64, whose digits differences need."""
    return X.astype(np.float64) if is_float(X) else X
