"""The laws of a kernel."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import WhiteKernel

from .._errors import NotDifferentiableError
from .._points import length, take
from ..kernels import Kernel, White
from ..kernels._prepared import pair
from ._differences import (
    check_input_gradient,
    check_pullback,
    is_float,
)
from ._law import close, hold, unchanged
from ._repr import nodes, read, vocabulary

__all__ = ["check_kernel"]


def check_kernel(
    kernel: Kernel,
    X: Any,
    Z: Any = None,
    *,
    psd: bool = True,
    cpd_order: int | None = None,
    differentiable: bool = True,
    rtol: float = 1e-10,
    random_state: int = 0,
) -> None:
    """Check every law that a kernel obeys.

    Parameters
    ----------
    kernel : Kernel
        Without unresolved rules such as "median".
    X, Z : points
        A dozen are enough.  Derivatives are compared with differences, so keep vectors off kinks
        and off the border of the domain.  `Z=None` takes every other point of X.
    psd : bool
        Whether k(X) must be positive semidefinite.
    cpd_order : int, optional
        m if the kernel is conditionally positive definite of order m: positive where polynomials
        of degree below m vanish.  The points must then be dense vectors.
    differentiable : bool
        If False, a NotDifferentiableError is accepted; derivatives that exist are still checked.
    rtol : float
        Allowed error, relative to the largest entry of the block.
    random_state : int
        Seed of the weights and of the tiles.

    Raises
    ------
    AssertionError
        Naming the law.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.testing import check_kernel
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> check_kernel((RBF() + 1) * Linear(), X)
    """
    if Z is None:
        Z = take(X, slice(None, None, 2))
    before = copy.deepcopy((X, Z))
    _check_blocks(kernel, X, Z, rtol)
    _check_tiles(kernel, X, Z, rtol, np.random.default_rng(random_state))
    _check_precision(kernel, X)
    for second in (Z, None):
        for check in (check_pullback, check_input_gradient):
            try:
                check(kernel, X, second, random_state=random_state)
            except NotDifferentiableError as error:
                hold("differentiable", kernel, not differentiable, f"but raises: {error}")
    _check_value(kernel)
    _check_parameters(kernel, X, rtol)
    if psd:
        _check_definite(kernel, X, 0)
    if cpd_order:
        _check_definite(kernel, X, cpd_order)
    unchanged("points are left alone", kernel, (X, Z), before)


def _check_blocks(kernel: Kernel, X: Any, Z: Any, rtol: float) -> None:
    n, m = length(X), length(Z)
    K, B = kernel(X), kernel(X, Z)
    hold("shape", kernel, K.shape == (n, n), f"k(X) has shape {K.shape} for {n} points")
    hold("shape", kernel, B.shape == (n, m), f"k(X, Z) has shape {B.shape}, not {(n, m)}")
    hold("finite", kernel, bool(np.isfinite(K).all() and np.isfinite(B).all()), "not finite")
    close("symmetry", kernel, kernel(Z, X), B.T, rtol, "k(Z, X) and k(X, Z)^T")
    close("symmetry", kernel, K, K.T, rtol, "k(X) and its transpose")
    hold("determinism", kernel, np.array_equal(K, kernel(X)), "k(X) differs when computed twice")

    # k(X) knows which points are the same, k(X, copy of X) does not: White sees the difference,
    # and so does a root near 0, which turns the rounding of a squared distance into its root.
    twin = kernel(X, copy.deepcopy(X))
    apart = ~np.eye(n, dtype=bool)
    scale = np.abs(K).max(initial=0.0)
    close("k(X) is k(X, X)", kernel, twin[apart], K[apart], rtol, "off the diagonal", scale)
    if not any(isinstance(part, (White, WhiteKernel)) for part in nodes(kernel)):
        close("k(X) is k(X, X)", kernel, twin.diagonal(), K.diagonal(), 1e-3, "diagonals", scale)
    close("diagonal", kernel, kernel.diag(X), K.diagonal(), rtol, "diag(X) and k(X)", scale)

    none = take(X, slice(0, 0))
    shapes = (kernel(none).shape, kernel(none, X).shape, kernel(X, none).shape)
    hold("no points", kernel, shapes == ((0, 0), (0, n), (n, 0)), f"shapes are {shapes}")
    hold("no points", kernel, kernel.diag(none).shape == (0,), "diag of no points is not empty")


def _check_tiles(kernel: Kernel, X: Any, Z: Any, rtol: float, rng: np.random.Generator) -> None:
    for second in (None, Z):
        P, Q = pair(kernel, X, second)
        block = kernel(X, second)
        n, m = block.shape
        out = np.full_like(block, np.nan)
        halves = [[slice(0, k // 2), slice(k // 2, k)] for k in (n, m)]
        for some, others in itertools.product(*halves):
            kernel.tile(P[some], Q[others], out[some, others])
        close("tiles", kernel, out, block, rtol, "tiles of slices and the block")
        rows, columns = np.arange(n), np.arange(m)
        rng.shuffle(rows[1:-1])  # its ends look like those of a range, which it is not
        repeated = rng.choice(columns, size=m)
        for i, j in ((rows, repeated), (rows, columns), (rows[::-1], rows[rows < m])):
            out = np.full((len(i), len(j)), np.nan, dtype=block.dtype)
            kernel.tile(P[i], Q[j], out)
            close("tiles", kernel, out, block[i][:, j], rtol, "tiles of indices and the block")


def _check_precision(kernel: Kernel, X: Any) -> None:
    if not is_float(X):
        return
    single = X.astype(np.float32)
    K = kernel(single.astype(np.float64))
    close("float32", kernel, kernel(single), K, 1e-3, "k in single and in double precision")
    if not sp.issparse(X):
        close("layout", kernel, kernel(np.asfortranarray(X)), kernel(X), 1e-12, "layouts of X")


def _check_value(kernel: Kernel) -> None:
    """A kernel is a value: it can be read back, copied, compared and used as a key."""
    try:
        again = read(repr(kernel), vocabulary(kernel))
    except (KeyError, SyntaxError, TypeError, ValueError) as error:
        hold("repr", kernel, False, f"its repr cannot be evaluated: {error!r}")
    hold("repr", kernel, again == kernel, f"its repr reads back as {again!r}")
    hold("hash", kernel, hash(again) == hash(kernel), "equal kernels have different hashes")
    hold("equality", kernel, kernel != "k", "it equals a string")
    if kernel.theta.size:
        moved = kernel.with_theta(kernel.theta + 0.125)
        hold("equality", kernel, moved != kernel, "another theta gives an equal kernel")
    # deepcopy rebuilds objects as pickle does, by __reduce_ex__
    hold("copy", kernel, copy.deepcopy(kernel) == kernel, "its copy differs")
    hold("clone", kernel, clone(kernel) == kernel, "its clone differs")
    frozen = False
    try:
        copy.deepcopy(kernel).anything = 0  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        frozen = True
    hold("value", kernel, frozen, "it can be changed in place: make it a frozen dataclass")


def _check_parameters(kernel: Kernel, X: Any, rtol: float) -> None:
    for deep in (False, True):
        params = kernel.get_params(deep=deep)
        same = kernel.set_params(**params)
        hold("parameters", kernel, same == kernel, f"set_params(get_params({deep=})) is {same!r}")
    for name, value in params.items():
        same = kernel.set_params(**{name: value})
        hold("parameters", kernel, same == kernel, f"set_params({name}=its value) is {same!r}")

    theta, names, bounds = kernel.theta, kernel.theta_names, kernel.bounds
    hold("theta", kernel, theta.ndim == 1 and np.isfinite(theta).all(), f"theta is {theta}")
    hold("theta", kernel, len(set(names)) == len(names) == theta.size, f"names are {names}")
    hold("theta", kernel, bounds.shape == (theta.size, 2), f"bounds have shape {bounds.shape}")
    hold("theta", kernel, bool((bounds[:, 0] < bounds[:, 1]).all()), f"bounds are {bounds}")
    same = kernel.with_theta(theta)
    close("theta", kernel, same.theta, theta, 1e-13, "theta and that of with_theta(theta)", 1.0)
    close("theta", kernel, same(X), kernel(X), 100 * rtol, "k and with_theta(theta)")
    for i, name in enumerate(names):
        if not name.endswith("]"):  # an entry of a vector has no name in set_params
            there = theta + 0.125 * (np.arange(theta.size) == i)
            moved = kernel.set_params(**{name: float(np.exp(there[i]))}).theta
            close("theta", kernel, moved, there, 1e-13, f"theta and set_params({name}=...)", 1.0)


def _check_definite(kernel: Kernel, X: Any, order: int) -> None:
    K = np.asarray(kernel(X), dtype=float)
    allowed = 1e-9 * np.abs(K).max(initial=0.0) * len(K)
    law = "positive semidefinite"
    if order:
        law = f"conditionally positive definite of order {order}"
        basis = _complement(_monomials(np.asarray(X, dtype=float), order))
        K = basis.T @ K @ basis
    lowest = np.linalg.eigvalsh((K + K.T) / 2)[:1]
    detail = f"the smallest eigenvalue is {lowest}, below {-allowed:.3g}"
    hold(law, kernel, bool((lowest >= -allowed).all()), detail)


def _monomials(X: np.ndarray, order: int) -> np.ndarray:
    """Return the values of all monomials of degree below `order`, one column each."""
    X = X - X.mean(axis=0)
    columns = [
        np.prod(X[:, list(chosen)], axis=1)
        for degree in range(order)
        for chosen in itertools.combinations_with_replacement(range(X.shape[1]), degree)
    ]
    return np.column_stack(columns)


def _complement(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the complement of the columns of A."""
    U, s, _ = np.linalg.svd(A, full_matrices=True)
    return U[:, int(np.sum(s > 1e-10 * s.max(initial=0.0))) :]
