"""Checks of a kernel, of an expansion f = sum_i a_i k(x_i, .), and of its form <w, phi(x)>."""

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
from ._finite_differences import (
    Laws,
    check_input_gradient,
    check_pullback,
    extent,
    is_float,
    numerical_gradient,
    to_float64,
)


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

    It checks symmetry, shapes, tiles, precision, derivatives, parameters, and definiteness.  Call
    it in the tests of a user-defined kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel without unresolved parameters such as "median".
    X : points
        Test points; about a dozen are enough.  Derivatives are compared with finite differences, so
        the points should not be near a kink or the boundary of the domain.
    Z : points, default None
        Points of the second argument; None means every second point of X.
    psd : bool, default True
        Whether k(X) must be positive semidefinite.
    cpd_order : int or None, default None
        If given, check that the kernel is conditionally positive definite of order m = `cpd_order`:
        c^T K c >= 0 for all c that are orthogonal to the polynomials of degree less than m.  The
        points must then be dense vectors.
    differentiable : bool, default True
        If False, a NotDifferentiableError is accepted; derivatives that exist are still checked.
    rtol : float, default 1e-10
        Allowed error, relative to the largest entry of the kernel matrix.
    random_state : int, default 0
        Seed of the random weights and of the random order of rows in tiles.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    check_pullback : Check only the derivative in the parameters.
    check_input_gradient : Check only the derivative in the points.
    mercer.kernels.validity.Validity : Proofs and counterexamples of definiteness.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.testing import check_kernel
    >>> X = np.random.default_rng(0).normal(size=(10, 3))
    >>> check_kernel((RBF() + 1) * Linear(), X) is None  # no error: all laws hold
    True
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
        n, m = map(int, block.shape)
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
            pairs = (moved(X), fresh(X)), (moved.diag(X), fresh.diag(X))
            same = all(np.allclose(a, b, rtol, 0.0) for a, b in pairs)
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


# --- Checks of expansions.


def check_expansion(
    expansion: Any,
    X: Points,
    *,
    differentiable: bool = True,
    rtol: float = 1e-9,
    random_state: int = 0,
) -> None:
    """Check that an expansion is a vector of functions in the RKHS of its kernel.

        f(x) = <f, k(x, .)>,        |f|^2 = a^T K a,        |f(x)| <= |f| sqrt(k(x, x))

    Here a are the coefficients, and K is the kernel matrix of the points of the expansion.

    Parameters
    ----------
    expansion : Expansion
        One or several functions f_c = sum_i coefficients[i, c] k(points[i], .).
    X : points
        Points at which the functions are evaluated.  The kernel must be positive semidefinite on
        the union of X and the points of the expansion.
    differentiable : bool, default True
        If False, a NotDifferentiableError from `gradient` is accepted.
    rtol : float, default 1e-9
        Allowed error, relative to sum_i |coefficients[i]| |k(points[i], x)|.
    random_state : int, default 0
        Seed of the random test functions.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    check_primal : Check the conversion to weights of features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> from mercer.testing import check_expansion
    >>> X = np.random.default_rng(0).normal(size=(8, 2))
    >>> check_expansion(Expansion.mean(RBF(), X), X) is None  # no error: all laws hold
    True
    """
    f, kernel, points, A = expansion, expansion.kernel, expansion.points, expansion.coefficients
    laws = Laws(f, rtol)
    K, B = kernel(points), kernel(X, points)
    size = _largest(np.abs(B) @ np.abs(A))
    energy = _largest(np.abs(A).T @ np.abs(K) @ np.abs(A))
    root = np.sqrt(energy)  # a rounding error of |f|^2 changes |f| by up to its square root

    fx = f(X)
    laws.require_close("representer", fx, B @ A, "f(X) and k(X, points) @ coefficients", size)
    sections = type(f).sections(kernel, X)
    laws.require_close("sections", sections(points), B.T, "sections(X) and k(., X)")
    inner = f.inner(sections)
    laws.require_close("reproducing property", inner, fx.T, "<f, k(x, .)> and f(x)", size)
    norm, want = f.norm(), np.einsum("ic,ij,jc->c", A, K, A)
    laws.require_close("norm", norm**2, want, "|f|^2 and a^T K a", energy)
    excess = _largest(np.abs(fx) - np.outer(np.sqrt(kernel.diag(X)), norm))
    detail = f"|f(x)| exceeds |f| |k(x, .)| by {excess:.3g}"
    laws.require("Cauchy-Schwarz", excess <= 1e-6 * (size + root), detail)
    got, want = type(f).mean(kernel, points)(X), B.mean(axis=1, keepdims=True)
    what = "the mean expansion at X and the row means of k(X, points)"
    laws.require_close("mean", got, want, what, np.abs(B).max())

    random = np.random.default_rng(random_state).normal(size=(length(X), len(f)))
    g = type(f)(kernel, X, random)
    gx = g(X)
    scale = size + _largest(np.abs(gx))
    for what, left, right in (
        ("f + g", f + g, fx + gx),
        ("f - g", f - g, fx - gx),
        ("2 f", 2.0 * f, 2.0 * fx),
        ("f 2", f * 2.0, 2.0 * fx),
        ("-f", -f, -fx),
    ):
        laws.require_close("linearity", left(X), right, f"{what} as expansion and as values", scale)
    both = energy + _largest(np.abs(random).T @ np.abs(gx))
    inner = f.inner(g)
    laws.require_close("inner", inner, g.inner(f).T, "<f, g> and <g, f>", both)
    laws.require_close(
        "distance", f.distance(f), np.zeros(len(f)), "|f - f| and 0", root, rtol=1e-6
    )
    want = norm**2 - 2.0 * inner.diagonal() + g.norm() ** 2
    laws.require_close("distance", f.distance(g) ** 2, want, "|f - g|^2 and its expansion", both)
    laws.require_close("columns", f[-1](X), fx[:, -1:], "f[-1] and the last function", size)
    _check_gradient(f, to_float64(X), differentiable, size)


def _check_gradient(f: Any, X: Points, differentiable: bool, size: float) -> None:
    laws = Laws(f, 1e-6)
    try:
        got = f.gradient(X)
    except NotDifferentiableError as error:
        return laws.require("differentiable", not differentiable, f"but raises: {error}")
    if is_float(X) and not sp.issparse(X):
        scale = size / extent(X)
        laws.require_close(
            "gradient", got, numerical_gradient(f, X), "gradient and differences", scale
        )


def _largest(A: np.ndarray) -> float:
    """Return the largest entry, or 0 if no entry is positive."""
    return float(np.max(A, initial=0.0))


def check_primal(expansion: Any, X: Points, *, rtol: float = 1e-9) -> None:
    """Check the conversion of an expansion to weights of explicit features, and back.

        f(x) = <w, phi(x)>,     <f, f> = <w, w>,     Phi^T a = w

    Here w are the weights, a the coefficients, and the rows of Phi the features of the points.

    Parameters
    ----------
    expansion : Expansion
        An expansion whose kernel has finitely many features.
    X : points
        Points at which the functions are evaluated.
    rtol : float, default 1e-9
        Allowed error, relative to sum_i |coefficients[i]| |k(points[i], x)|.  For the conversion
        back to coefficients, 1000 times this error is allowed.

    Raises
    ------
    AssertionError
        If a check fails; the message names the law.

    See Also
    --------
    check_expansion : Check an expansion.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Polynomial
    >>> from mercer.testing import check_primal
    >>> X = np.random.default_rng(0).normal(size=(8, 2))
    >>> check_primal(Expansion.mean(Polynomial(2), X), X) is None
    True
    """
    f, A = expansion, np.abs(expansion.coefficients)
    laws, p = Laws(f, rtol), f.to_primal()
    size = _largest(np.abs(f.kernel(X, f.points)) @ A)
    energy = _largest(A.T @ np.abs(f.kernel(f.points)) @ A)
    fx = f(X)
    laws.require_close("values", p(X), fx, "<w, phi(x)> and f(x)", size)
    laws.require_close("inner", p.inner(p), f.inner(f), "<w, w> and <f, f>", energy)
    laws.require_close("norm", p.norm() ** 2, f.norm() ** 2, "|w|^2 and |f|^2", energy)
    laws.require_close("columns", p[-1](X), fx[:, -1:], "p[-1] and the last function", size)
    g = p.to_dual(f.points)
    laws.require_close(
        "round trip", g(X), fx, "f(x) after the round trip and f(x)", size, rtol=1e3 * rtol
    )
    root = np.sqrt(energy)
    laws.require_close(
        "round trip", g.to_primal().weights, p.weights, "Phi^T a and w", root, 1e3 * rtol
    )
    decrease = np.linalg.norm(f.coefficients, axis=0) - np.linalg.norm(g.coefficients, axis=0)
    detail = f"the norm of the coefficients grew by {-decrease.min():.3g}"
    laws.require("least norm", np.all(decrease >= -1e3 * rtol * A.max(initial=1.0)), detail)
