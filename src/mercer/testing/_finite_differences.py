"""Assertions that name the violated law, and checks of derivatives by finite differences."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import Points
from ..kernels import Kernel


@dataclass(frozen=True)
class Laws:
    """Assertions about the object `subject`, with the default relative tolerance `rtol`."""

    subject: Any
    rtol: float

    def require(self, law: str, condition: Any, detail: str) -> None:
        """Raise an AssertionError with the name of the law unless the condition is true."""
        if not condition:
            raise AssertionError(f"law {law!r} fails for {self.subject!r}: {detail}")

    def require_close(
        self, law: str, got: Any, want: Any, what: str, scale: Any = None, rtol: float | None = None
    ) -> None:
        """Require |got - want| <= rtol * scale; the default scale is the largest |want|."""
        got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
        self.require(
            law, got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
        )
        scale = np.abs(want).max(initial=0.0) if scale is None else scale
        allowed = (self.rtol if rtol is None else rtol) * scale + np.finfo(float).tiny
        error, allowed = np.broadcast_arrays(np.abs(got - want), allowed)
        bad = ~(error <= allowed)  # NaN counts as an error
        if bad.any():
            worst = np.unravel_index(np.argmax(np.where(bad, error, -1)), error.shape)
            at = tuple(map(int, worst))
            where = f"{what} differ in {bad.sum()} of {bad.size} entries, most at index {at}"
            numbers = f"got {got[at]:.10g}, expected {want[at]:.10g}, allowed {allowed[at]:.3g}"
            self.require(law, False, f"{where}: {numbers}")


# Step h of the fourth-order differences f' = (8 [f(h) - f(-h)] - [f(2h) - f(-2h)]) / 12h.  With
# this h, both the truncation error h^4 and the rounding error eps / h are near 1e-12.
STEP = 3e-4
_STENCIL = ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0))


def check_pullback(
    kernel: Kernel, X: Points, Z: Points = None, *, random_state: int = 0, rtol: float = 1e-7
) -> None:
    """Check the derivative of a kernel with respect to its parameters by finite differences.

    `kernel.pullback` must be the derivative of <W, k(X, Z)> in theta, for a random W.  theta is the
    vector of kernel parameters.

    Parameters
    ----------
    kernel : Kernel
        A kernel without unresolved parameters such as "median".
    X : points
        Test points; about a dozen are enough.
    Z : points, default None
        Points of the second argument; None means the symmetric matrix k(X, X).
    random_state : int, default 0
        Seed of the random weights W.
    rtol : float, default 1e-7
        Allowed error, relative to sum_ij |W_ij k(x_i, z_j)|.

    Raises
    ------
    AssertionError
        If the derivatives differ; the message contains the entry with the largest error.

    See Also
    --------
    check_kernel : Check all requirements on a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RationalQuadratic
    >>> from mercer.testing import check_pullback
    >>> X = np.random.default_rng(0).normal(size=(9, 2))
    >>> check_pullback(2 * RationalQuadratic(), X) is None  # no error: the derivatives agree
    True
    """
    laws, theta = Laws(kernel, rtol), kernel.theta
    X, Z = to_float64(X), to_float64(Z)
    block = kernel(X, Z)
    W = np.random.default_rng(random_state).normal(size=block.shape)
    original = W.copy()
    got = kernel.pullback(X, Z, W)
    laws.require("weights are not modified", np.array_equal(W, original), "pullback changed W")
    laws.require("pullback", got.shape == theta.shape, f"shape {got.shape}, theta {theta.shape}")

    def value(move: np.ndarray) -> Any:
        return np.sum(W * kernel.with_theta(theta + move)(X, Z))

    want = [directional_derivative(value, STEP * e) / STEP for e in np.eye(theta.size)]
    second = "None" if Z is None else "given"
    what = f"pullback and finite differences in {kernel.theta_names}, Z={second}"
    laws.require_close("pullback", got, want, what, np.sum(np.abs(W * block)))


def check_input_gradient(
    kernel: Kernel, X: Points, Z: Points = None, *, random_state: int = 0, rtol: float = 1e-6
) -> None:
    """Check the derivative of a kernel with respect to its points by finite differences.

    `kernel.input_gradient` must be the derivative of sum_j W_ij k(x_i, z_j) in x_i, for a random W.
    If the points are not floating-point vectors, finite differences do not exist, and only the call
    itself is checked.

    Parameters
    ----------
    kernel : Kernel
        A kernel without unresolved parameters such as "median".
    X : points
        Test points; about a dozen are enough.  They should not be near a kink of the kernel.
        Sparse vectors are converted to dense vectors.
    Z : points, default None
        Points of the second argument.  If None, both arguments of k(X, X) vary, and the derivative
        along a random direction is compared.
    random_state : int, default 0
        Seed of the random weights W and of the direction.
    rtol : float, default 1e-6
        Allowed error, relative to the derivative, or to sum_j |W_ij k(x_i, z_j)| divided by the
        extent of X if that is larger.

    Raises
    ------
    AssertionError
        If the derivatives differ; the message contains the entry with the largest error.

    See Also
    --------
    check_kernel : Check all requirements on a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Matern
    >>> from mercer.testing import check_input_gradient
    >>> X = np.random.default_rng(0).normal(size=(9, 2))
    >>> check_input_gradient(Matern(nu=2.5), X) is None  # no error: the derivatives agree
    True
    """
    laws, rng = Laws(kernel, rtol), np.random.default_rng(random_state)
    X, Z = to_float64(X), to_float64(Z)
    block = kernel(X, Z)
    W = rng.normal(size=block.shape)
    original = W.copy()
    got = kernel.input_gradient(X, Z, W)
    laws.require(
        "weights are not modified", np.array_equal(W, original), "input_gradient changed W"
    )
    if not is_float(X):
        return
    laws.require("input gradient", got.shape == X.shape, f"shape {got.shape}, points {X.shape}")
    dense = X.toarray() if sp.issparse(X) else X
    size = np.abs(W * block).sum(axis=1) / extent(dense)
    if Z is None:
        D, step = rng.normal(size=X.shape), difference_step(dense)
        got = np.sum(D * (got + kernel.input_gradient(X, None, W.T)))
        want = (
            directional_derivative(lambda move: np.sum(W * kernel(dense + move)), step * D) / step
        )
        scale = np.sum(size)
    else:
        want = numerical_gradient(lambda A: np.sum(W * kernel(A, Z), axis=1), dense)
        scale = np.maximum(np.abs(want), size[:, None])
    what = f"gradient and finite differences, Z={'None' if Z is None else 'given'}"
    laws.require_close("input gradient", got, want, what, scale)


def directional_derivative(f: Function[[np.ndarray], Any], step: np.ndarray) -> Any:
    """Return the directional derivative of f at 0 along `step`, by fourth-order differences."""
    total: Any = 0.0
    for times, weight in _STENCIL:
        total = total + weight * np.asarray(f(times * step), dtype=float)
    return total / 12.0


def numerical_gradient(f: Function[[np.ndarray], Any], X: np.ndarray) -> np.ndarray:
    """Return df/dx_i by finite differences; the last axis of the result is the column of X.

    Row i of f must depend only on x_i, so that all rows can be varied at once.
    """
    step = difference_step(X)
    parts = [
        directional_derivative(lambda move: f(X + move), step * e) / step
        for e in np.eye(X.shape[1])
    ]
    return np.stack(parts, axis=-1)


def is_float(X: Points) -> bool:
    """Return True if X contains floating-point vectors, for which finite differences exist."""
    return getattr(X, "ndim", 0) == 2 and getattr(X, "dtype", np.dtype(int)).kind == "f"


def extent(X: np.ndarray) -> float:
    """Return max(X) - min(X), the length scale for derivatives in X; 1 if it is zero."""
    return float(np.ptp(X) if X.size else 0.0) or 1.0


def difference_step(X: np.ndarray) -> float:
    """Return a step h that is so small that a kink between x - 2h and x + 2h is unlikely."""
    return 0.1 * STEP * extent(X)


def to_float64(X: Points) -> Any:
    """Convert vectors to float64, because finite differences need this precision."""
    return X.astype(np.float64) if is_float(X) else X
