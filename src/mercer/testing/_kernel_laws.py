"""Checks of a kernel: symmetry, tiles, derivatives, parameters and definiteness."""

from __future__ import annotations

import copy
import itertools
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space
from sklearn.base import clone
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.preprocessing import PolynomialFeatures

from .._core import KernelSyntaxError, NotDifferentiableError, Points, length, same_points, take
from ..kernels import Kernel, White, parse_kernel
from ._finite_differences import Laws, check_input_gradient, check_pullback, is_float


def check_kernel(
    kernel: Kernel,
    X: Points,
    Z: Points = None,
    *,
    psd: bool = True,
    cpd_order: int | None = None,
    differentiable: bool = True,
    rtol: float = 1e-10,
    random_state: int = 0,
) -> None:
    """Check that an object satisfies all requirements on a kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel without unresolved parameters such as "median".
    X, Z : points
        Test points; about a dozen are enough.  Derivatives are compared with finite differences, so
        the points should not be near a kink or the boundary of the domain.  If Z is None, every
        second point of X is used.
    psd : bool
        Whether k(X) must be positive semidefinite.
    cpd_order : int, optional
        If given, check that the kernel is conditionally positive definite of order m = `cpd_order`:
        c^T K c >= 0 for all c that are orthogonal to the polynomials of degree less than m.  The
        points must then be dense vectors.
    differentiable : bool
        If False, a NotDifferentiableError is accepted; derivatives that exist are still checked.
    rtol : float
        Allowed error, relative to the largest entry of the kernel matrix.
    random_state : int
        Seed of the random weights and of the random order of rows in tiles.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.testing import check_kernel
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> check_kernel((RBF() + 1) * Linear(), X)
    """
    laws = Laws(kernel, rtol)
    Z = take(X, slice(None, None, 2)) if Z is None else Z
    before = copy.deepcopy((X, Z))
    _check_blocks(laws, kernel, X, Z)
    _check_tiles(laws, kernel, X, Z, np.random.default_rng(random_state))
    _check_precision(laws, kernel, X)
    for second in (Z, None):
        for check in (check_pullback, check_input_gradient):
            try:
                check(kernel, X, second, random_state=random_state)
            except NotDifferentiableError as error:
                laws.require("differentiable", not differentiable, f"but raises: {error}")
    _check_value(laws, kernel)
    _check_parameters(laws, kernel, X)
    if psd:
        _check_definite(laws, kernel, X, 0)
    if cpd_order:
        _check_definite(laws, kernel, X, cpd_order)
    same = all(map(same_points, (X, Z), before))
    laws.require("points are not modified", same, "the points were changed in place")


def _check_blocks(laws: Laws, kernel: Kernel, X: Points, Z: Points) -> None:
    n, m = length(X), length(Z)
    K, B = kernel(X), kernel(X, Z)
    laws.require("shape", K.shape == (n, n), f"k(X) has shape {K.shape} for {n} points")
    laws.require("shape", B.shape == (n, m), f"k(X, Z) has shape {B.shape}, not {(n, m)}")
    laws.require("finite", bool(np.isfinite(K).all() and np.isfinite(B).all()), "not finite")
    laws.require_close("symmetry", kernel(Z, X), B.T, "k(Z, X) and k(X, Z)^T")
    laws.require_close("symmetry", K, K.T, "k(X) and its transpose")
    laws.require("determinism", np.array_equal(K, kernel(X)), "k(X) differs when computed twice")

    # White adds noise to the diagonal of k(X), but not to that of k(X, copy of X), whose arguments
    # are different observations.  In kernels with White, the diagonal is therefore not compared.
    copied = kernel(X, copy.deepcopy(X))
    scale = np.abs(K).max(initial=0.0)
    compared = np.ones((n, n), dtype=bool)
    if any(isinstance(part, (White, WhiteKernel)) for part in parts(kernel)):
        compared = ~np.eye(n, dtype=bool)
    laws.require_close("k(X) is k(X, X)", copied[compared], K[compared], "k(X, copy of X)", scale)
    laws.require_close("diagonal", kernel.diag(X), K.diagonal(), "diag(X) and k(X)", scale)

    empty = take(X, slice(0, 0))
    shapes = (kernel(empty).shape, kernel(empty, X).shape, kernel(X, empty).shape)
    laws.require("no points", shapes == ((0, 0), (0, n), (n, 0)), f"shapes are {shapes}")
    laws.require("no points", kernel.diag(empty).shape == (0,), "diag of no points is not empty")


def _check_tiles(
    laws: Laws, kernel: Kernel, X: Points, Z: Points, rng: np.random.Generator
) -> None:
    for second in (None, Z):
        P = kernel.prepare(X)
        Q = P if second is None else kernel.prepare(second, like=P)
        block = kernel(X, second)
        n, m = block.shape
        out = np.full_like(block, np.nan)
        halves = [[slice(0, k // 2), slice(k // 2, k)] for k in (n, m)]
        for some, others in itertools.product(*halves):
            kernel.tile(P[some], Q[others], out[some, others])
        laws.require_close("tiles", out, block, "tiles of slices and the block")
        rows, columns = np.arange(n), np.arange(m)
        # Only the first and the last index remain in place, so that `rows` is not a range.
        rng.shuffle(rows[1:-1])
        repeated = rng.choice(columns, size=m)
        for i, j in ((rows, repeated), (rows, columns), (rows[::-1], rows[rows < m])):
            out = np.full((len(i), len(j)), np.nan, dtype=block.dtype)
            kernel.tile(P[i], Q[j], out)
            laws.require_close("tiles", out, block[i][:, j], "tiles of indices and the block")


def _check_precision(laws: Laws, kernel: Kernel, X: Points) -> None:
    if not is_float(X):
        return
    single = X.astype(np.float32)
    K = kernel(single.astype(np.float64))
    laws.require_close("float32", kernel(single), K, "k in float32 and in float64", rtol=1e-3)
    if not sp.issparse(X):
        other = kernel(np.asfortranarray(X))
        laws.require_close("layout", other, kernel(X), "layouts of X", rtol=1e-12)


def _check_value(laws: Laws, kernel: Kernel) -> None:
    """Check that a kernel is immutable, and can be parsed, copied, compared and hashed."""
    try:
        again = parse_kernel(repr(kernel), vocabulary(kernel))
    except KernelSyntaxError as error:
        laws.require("repr", False, f"its repr cannot be parsed: {error}")
    laws.require("repr", again == kernel, f"its repr is parsed as {again!r}")
    laws.require("hash", hash(again) == hash(kernel), "equal kernels have different hashes")
    laws.require("equality", kernel != "k", "it equals a string")
    if kernel.theta.size:
        moved = kernel.with_theta(kernel.theta + 0.125)
        laws.require("equality", moved != kernel, "a different theta gives an equal kernel")
    # deepcopy uses __reduce_ex__, as pickle does.
    laws.require("copy", copy.deepcopy(kernel) == kernel, "its copy differs")
    laws.require("clone", clone(kernel) == kernel, "its clone differs")
    with suppress(AttributeError, TypeError):
        copy.deepcopy(kernel).anything = 0  # type: ignore[attr-defined]
        laws.require("value", False, "it can be changed in place: make it a frozen dataclass")


def _check_parameters(laws: Laws, kernel: Kernel, X: Points) -> None:
    for deep in (False, True):
        params = kernel.get_params(deep=deep)
        same = kernel.set_params(**params)
        laws.require("parameters", same == kernel, f"set_params(get_params({deep=})) is {same!r}")
    for name, value in params.items():
        same = kernel.set_params(**{name: value})
        laws.require("parameters", same == kernel, f"set_params({name}=its value) is {same!r}")

    theta, names, bounds = kernel.theta, kernel.theta_names, kernel.bounds
    laws.require("theta", theta.ndim == 1 and np.isfinite(theta).all(), f"theta is {theta}")
    laws.require("theta", len(set(names)) == len(names) == theta.size, f"names are {names}")
    laws.require("theta", bounds.shape == (theta.size, 2), f"bounds have shape {bounds.shape}")
    laws.require("theta", bool((bounds[:, 0] < bounds[:, 1]).all()), f"bounds are {bounds}")
    same = kernel.with_theta(theta)
    digits = Laws(kernel, 1e-13)
    digits.require_close("theta", same.theta, theta, "theta and with_theta(theta).theta", 1.0)
    laws.require_close("theta", same(X), kernel(X), "k and with_theta(theta)", rtol=100 * laws.rtol)
    _check_changed_parameters(laws, kernel, X)
    for i, name in enumerate(names):
        if not name.endswith("]"):  # set_params cannot set a single entry of a vector
            changed = theta + 0.125 * (np.arange(theta.size) == i)
            moved = kernel.set_params(**{name: float(np.exp(changed[i]))}).theta
            digits.require_close("theta", moved, changed, f"theta and set_params({name}=...)", 1.0)


def _check_changed_parameters(laws: Laws, kernel: Kernel, X: Points) -> None:
    """Check that a kernel with changed parameters has the same values as a new kernel."""
    kernel(X)
    # Arrays in the kernel may be float32, but the repr is parsed as float64, so values may differ.
    rtol = 1e-6
    theta, names = kernel.theta, kernel.theta_names
    for step in (0.125, -0.125, 0.0):
        changed = [kernel.with_theta(theta + step)]
        if not any(name.endswith("]") for name in names):
            values = np.exp(theta + step).tolist()
            changed.append(kernel.set_params(**dict(zip(names, values, strict=True))))
        for moved in changed:
            fresh = parse_kernel(repr(moved), vocabulary(moved))
            same = np.allclose(moved(X), fresh(X), rtol, 0.0) and np.allclose(
                moved.diag(X), fresh.diag(X), rtol, 0.0
            )
            laws.require("fresh value", same, f"its values differ from those of a new {moved!r}")


def _check_definite(laws: Laws, kernel: Kernel, X: Points, order: int) -> None:
    K = np.asarray(kernel(X), dtype=float)
    allowed = 1e-9 * np.abs(K).max(initial=0.0) * len(K)
    law = "positive semidefinite"
    if order:  # restrict K to the orthogonal complement of polynomials of lower degree
        law = f"conditionally positive definite of order {order}"
        centred = np.asarray(X, dtype=float) - np.mean(X, axis=0)
        basis = null_space(PolynomialFeatures(order - 1).fit_transform(centred).T, rcond=1e-10)
        K = basis.T @ K @ basis
    lowest = np.linalg.eigvalsh((K + K.T) / 2)[:1]
    detail = f"the smallest eigenvalue is {lowest}, below {-allowed:.3g}"
    laws.require(law, bool((lowest >= -allowed).all()), detail)


# --- The names that occur in the repr of a kernel, for parsing it.


def parts(kernel: Kernel) -> list[Any]:
    """Return the kernel and all its parameter values, including nested kernels and functions."""
    return [kernel, *kernel.get_params(deep=True).values()]


def vocabulary(kernel: Kernel) -> dict[str, Any]:
    """Return a dictionary of the classes and functions that the repr of a kernel may contain."""
    names: dict[str, Any] = {"nan": np.nan}
    for part in parts(kernel):
        if callable(part) and hasattr(part, "__name__"):
            names[part.__name__] = part
        else:
            names[type(part).__name__] = type(part)
    return names
