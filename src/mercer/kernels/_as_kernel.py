"""Conversion to kernels: of the `kernel` argument of estimators, and of scikit-learn kernels.

A kernel may be given as a scikit-learn metric name such as "rbf", a Gaussian process kernel of
scikit-learn, an expression, a function or a Kernel object.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from functools import cached_property, singledispatch
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._core import NotDifferentiableError, Points, as_vectors, length, optional_type
from ._base import Kernel, node
from ._evaluation import KernelLinearisation, ParameterGradients, Prepared, linearisation
from ._pairwise_kernels import Callable
from ._parameter_tree import child
from ._precomputed import Precomputed
from ._properties import MAP, Domain, Properties
from .algebra._closure_rules import Power, power_properties
from .algebra._wrappers import Bounded, Fixed
from .vectors._constant import Constant, White
from .vectors._dot_product import Cosine, Linear, Polynomial, Sigmoid
from .vectors._histogram import AdditiveChi2, Chi2, Laplacian
from .vectors._radial_kernels import RBF, Matern, RationalQuadratic

# The kernel for each name in scikit-learn's `pairwise_kernels`.
_FROM_NAME: dict[str, Function[..., Kernel]] = {
    "additive_chi2": lambda gamma, degree, coef0: AdditiveChi2(),
    "chi2": lambda gamma, degree, coef0: Chi2(1.0 if gamma is None else gamma),
    "cosine": lambda gamma, degree, coef0: Cosine(),
    "laplacian": lambda gamma, degree, coef0: Laplacian.from_gamma(_gamma_or_auto(gamma)),
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, coef0, _gamma_or_auto(gamma)),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, coef0, _gamma_or_auto(gamma)),
    "rbf": lambda gamma, degree, coef0: RBF.from_gamma(_gamma_or_auto(gamma)),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(_gamma_or_auto(gamma), coef0),
}
KERNEL_NAMES = tuple(_FROM_NAME)

GPKernel: TypeAlias = Any  # a Gaussian process kernel of scikit-learn, which has no type hints
_GP_MODULE = "sklearn.gaussian_process.kernels"
_GPKernel = optional_type(_GP_MODULE, "Kernel")
_CompoundKernel = optional_type(_GP_MODULE, "CompoundKernel")

_DEFAULT_BOUNDS = (1e-5, 1e5)  # default bounds of hyperparameters, in scikit-learn and mercer


def from_name(
    name: str, *, gamma: float | str | None = None, degree: float = 3, coef0: float = 1
) -> Kernel:
    """Return the kernel with this name in scikit-learn's `pairwise_kernels`.

    `gamma=None` means 1 / n_features ("auto"), except for chi2, where it means 1.  Kernels that do
    not have gamma, degree or coef0 ignore them.
    """
    return _FROM_NAME[name](gamma, degree, coef0)


def _gamma_or_auto(gamma: float | str | None) -> float | str:
    return "auto" if gamma is None else gamma


def _name(kernel: GPKernel) -> str:
    """Return the class name of a kernel if scikit-learn defines the class, else "".

    A subclass defined elsewhere also gives "", because its values may be different.
    """
    kind = type(kernel)
    return kind.__name__ if kind.__module__ == _GP_MODULE else ""


def from_sklearn(kernel: GPKernel) -> Kernel:
    """Convert a scikit-learn Gaussian process kernel to a mercer kernel.

    RBF, Matern, RationalQuadratic, DotProduct, WhiteKernel, ConstantKernel, PairwiseKernel and
    their sums, products and powers are translated.  All others are wrapped in a `SklearnKernel`:
    custom kernels, kernels that have both fixed and free parameters, powers that are not Mercer
    kernels, and ExpSineSquared, which is a Mercer kernel only for points with one column.

    Bounds "fixed" become `Fixed`, and bounds other than the default (1e-5, 1e5) become `Bounded`.
    DotProduct(sigma_0) becomes <x, z> + c with c = sigma_0^2, so that its theta is doubled.
    The coef0 of a PairwiseKernel, which scikit-learn does not tune, becomes a free parameter.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel to convert.  It is not modified.

    Returns
    -------
    Kernel
        A mercer kernel with the same values.

    See Also
    --------
    SklearnKernel : The wrapper of kernels that are not translated.
    as_kernel : Also converts names and functions.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from mercer.kernels import from_sklearn
    >>> from_sklearn(2.0 * RBF(0.5) + WhiteKernel(0.1, noise_level_bounds="fixed"))
    2.0*RBF(length_scale=0.5) + Fixed(White(noise=0.1))
    """
    if not isinstance(kernel, _GPKernel):
        raise TypeError(f"from_sklearn needs a scikit-learn GP kernel, got {kernel!r}")
    translated = _translate(kernel)
    return SklearnKernel(clone(kernel)) if translated is None else translated


def _translate(kernel: GPKernel) -> Kernel | None:
    """Return the equivalent mercer kernel, or None if the kernel must be wrapped."""
    name = _name(kernel)
    if name == "Sum":
        return from_sklearn(kernel.k1) + from_sklearn(kernel.k2)
    if name == "Product":
        return _product(kernel)
    if name == "Exponentiation":
        return _power(kernel)
    if name in _SIMPLE:
        make, names = _SIMPLE[name]
        bounds = {name: getattr(kernel, f"{other}_bounds") for name, other in names.items()}
        return _with_bounds(make(kernel), **bounds)
    if name == "DotProduct":
        constant = Constant(float(kernel.sigma_0) ** 2)
        bounded = _with_bounds(constant, value=_transformed(np.square, kernel.sigma_0_bounds))
        return None if bounded is None else Linear() + bounded
    if name == "PairwiseKernel":
        return _pairwise(kernel)
    return None


def _product(kernel: GPKernel) -> Kernel:
    """Translate a Product; a constant factor becomes a `Scale`."""
    left, right = from_sklearn(kernel.k1), from_sklearn(kernel.k2)
    for factor, other in ((left, right), (right, left)):
        if type(factor) is Constant:
            return float(factor.value) * other
    return left * right


def _power(kernel: GPKernel) -> Kernel | None:
    """Translate an Exponentiation; None if the power is not known to be a Mercer kernel."""
    base, exponent = from_sklearn(kernel.kernel), float(kernel.exponent)
    if exponent <= 0 or not (exponent.is_integer() or base.infinitely_divisible):
        return None
    return Power(base, int(exponent) if exponent.is_integer() else exponent)


def _pairwise(kernel: GPKernel) -> Kernel | None:
    """Translate a PairwiseKernel; None if its metric is not one of `KERNEL_NAMES`."""
    if not isinstance(kernel.metric, str) or kernel.metric not in KERNEL_NAMES:
        return None
    kwargs = kernel.pairwise_kernels_kwargs or {}
    options = {name: kwargs[name] for name in ("degree", "coef0") if name in kwargs}
    converted = from_name(kernel.metric, gamma=float(kernel.gamma), **options)
    if isinstance(converted, RBF):
        bounds = _transformed(lambda gamma: np.sqrt(0.5 / gamma), kernel.gamma_bounds)
        return _with_bounds(converted, length_scale=bounds)
    if isinstance(converted, Laplacian):
        return _with_bounds(
            converted, length_scale=_transformed(np.reciprocal, kernel.gamma_bounds)
        )
    return _with_bounds(converted, gamma=kernel.gamma_bounds)


def _scale(kernel: GPKernel) -> float | tuple[float, ...]:
    """Return the length scale as a float, or as a tuple with one entry per column."""
    scale = np.asarray(kernel.length_scale, dtype=float)
    return float(scale.item()) if scale.size == 1 else tuple(scale.tolist())


# For each scikit-learn class: a function that creates the mercer kernel, and a dictionary {mercer
# parameter: scikit-learn parameter}.
_SIMPLE: dict[str, tuple[Function[[GPKernel], Kernel], dict[str, str]]] = {
    "RBF": (lambda k: RBF(_scale(k)), {"length_scale": "length_scale"}),
    "Matern": (lambda k: Matern(_scale(k), nu=k.nu), {"length_scale": "length_scale"}),
    "RationalQuadratic": (
        lambda k: RationalQuadratic(_scale(k), alpha=float(k.alpha)),
        {"length_scale": "length_scale", "alpha": "alpha"},
    ),
    "ConstantKernel": (lambda k: Constant(float(k.constant_value)), {"value": "constant_value"}),
    "WhiteKernel": (lambda k: White(float(k.noise_level)), {"noise": "noise_level"}),
}


def _transformed(function: Any, bounds: Any) -> Any:
    """Return the bounds of function(parameter), given those of the parameter.

    The function must be monotone.  "fixed" and the default bounds are returned unchanged.
    """
    if isinstance(bounds, str) or np.array_equal(bounds, _DEFAULT_BOUNDS):
        return bounds
    return np.sort(function(np.asarray(bounds, dtype=float)), axis=-1)


def _with_bounds(kernel: Kernel, **bounds: Any) -> Kernel | None:
    """Return the kernel with the given bounds on its parameters.

    Returns None if only some of the parameters are fixed, because `Fixed` fixes all of them.
    """
    free = list(kernel._free())
    if not free:
        return kernel
    fixed = [isinstance(b, str) and b == "fixed" for b in bounds.values()]
    if any(fixed):
        return Fixed(kernel) if all(fixed) else None
    rows = [np.broadcast_to(bounds.get(n, _DEFAULT_BOUNDS), (len(part), 2)) for n, part in free]
    limits = np.concatenate(rows).astype(float)
    if np.all(limits == _DEFAULT_BOUNDS):
        return kernel
    same = bool(np.all(limits == limits[0]))
    return Bounded(
        kernel, tuple(limits[0].tolist()) if same else tuple(map(tuple, limits.tolist()))
    )


# ---------------------------------------------------------------------- adapter


@node
class SklearnKernel(Kernel):
    """Adapter that uses a scikit-learn Gaussian process kernel, possibly custom, in mercer.

        k(x, z) = kernel(x, z)

    `from_sklearn` uses this class only for kernels that it cannot translate.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The wrapped kernel.  `theta` and `bounds` are those of this kernel.  Prefer `from_sklearn`,
        which wraps a kernel only if necessary.

    See Also
    --------
    from_sklearn : Translates the kernels of scikit-learn that mercer has, which is faster.
    Callable : Kernel of a Python function, without parameters to tune.

    Notes
    -----
    Derivatives with respect to the parameters are available for k(X), but not for k(X, Z).  They
    use the (n, n, p) array that scikit-learn returns with `eval_gradient=True`, which limits n to
    a few thousand points.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import ExpSineSquared
    >>> from mercer.kernels import SklearnKernel
    >>> SklearnKernel(ExpSineSquared(periodicity=2.0))([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    kernel: GPKernel = child(None, foreign=True)

    def _domain(self, *inner: Domain) -> Domain:
        on_vectors = bool(self.kernel.requires_vector_input)
        return Domain(
            "vectors" if on_vectors else "",
            on_vectors=on_vectors,
            distinguishes_observations=True,  # because it may contain a WhiteKernel
            pullback_in_tiles=False,
        )

    def _check(self) -> None:
        if not isinstance(self.kernel, _GPKernel):
            raise TypeError(f"SklearnKernel needs a scikit-learn GP kernel, got {self.kernel!r}")
        if isinstance(self.kernel, _CompoundKernel):
            raise ValueError(
                "SklearnKernel: a CompoundKernel is a list of kernels, not a single kernel; "
                "use one of its `kernels`, or their sum"
            )

    def _properties(self, *inner: Properties) -> Properties:
        wrapped, name = self.kernel, _name(self.kernel)
        # Bounds do not affect the properties, so a kernel that was wrapped only because of its
        # bounds can be converted here.
        converted = _SIMPLE[name][0](wrapped) if name in _SIMPLE else from_sklearn(wrapped)
        if not isinstance(converted, SklearnKernel):
            return replace(converted.properties, rule=f"{converted}: {converted.properties.rule}")
        if name == "ExpSineSquared":
            # A counterexample in the plane: two points at a distance of half a period, so that
            # k < 1, and a third at a distance of one period from both, so that k = 1.  These three
            # values contradict positive semidefiniteness.
            p = float(wrapped.periodicity)
            plane = p * np.array([[0.0, 0.0], [0.5, 0.0], [0.25, np.sqrt(15.0) / 4.0]])
            rule = f"{MAP}, an RBF of points that phi maps to a circle"
            return Properties.exponential(rule, stationary=True, columns=1, against=plane)
        if name == "Exponentiation":
            properties = power_properties(
                from_sklearn(wrapped.kernel).properties, float(wrapped.exponent)
            )
            # `from_sklearn` converts all powers that are known to be Mercer kernels.
            points = np.array([[0.0], [0.5], [1.0], [2.0], [4.0], [8.0]])
            return replace(
                properties, rule="a real power need not be a Mercer kernel", against=points
            )
        return Properties()

    # ------------------------------------------------------------------ evaluation

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        return Prepared((self._points(X),))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if not out.size:
            return
        X, Z = P.arrays[0], Q.arrays[0]
        block = np.asarray(self.kernel(X, Z))
        if block.shape != out.shape:
            raise ValueError(
                f"SklearnKernel: {type(self.kernel).__name__} returned shape {block.shape} for "
                f"{len(P)} and {len(Q)} points, expected {out.shape}"
            )
        out[...] = block
        i, j = P.coincidences(Q)
        if len(i):  # a WhiteKernel adds no noise in kernel(X, Z), even if the points are the same
            out[i, j] = self.kernel.diag(X)[i]

    def _diag(self, X: Points) -> np.ndarray:
        X = self._points(X)
        return np.asarray(self.kernel.diag(X)) if length(X) else np.zeros(0)

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        if Z is not None:
            raise NotDifferentiableError(
                "SklearnKernel: scikit-learn computes derivatives only of k(X), not of k(X, Z); "
                "use a kernel of mercer.kernels instead"
            )
        return {"kernel": _SklearnLinearisation(self, X, None).pullback(W)}

    def _points(self, X: Points) -> Points:
        if not self.domain.on_vectors:
            return X
        X = as_vectors(X, "SklearnKernel")
        return X.toarray() if sp.issparse(X) else X


@linearisation.register
def _(kernel: SklearnKernel, X: Points, Z: Points) -> KernelLinearisation:
    return (KernelLinearisation if Z is not None else _SklearnLinearisation)(kernel, X, Z)


class _SklearnLinearisation(KernelLinearisation):
    """K and the (n, n, p) array of its derivatives, both from one call of the wrapped kernel."""

    kernel: SklearnKernel

    @cached_property
    def _values_and_derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        K, tensor = self.kernel.kernel(self.kernel._points(self.X), eval_gradient=True)
        K = np.array(K)
        # Set the diagonal to `diag(X)`, as `_tile` does; for a custom kernel they may differ.
        np.fill_diagonal(K, self.kernel.diag(self.X))
        return K, np.asarray(tensor)

    @property
    def values(self) -> np.ndarray:
        return self._values_and_derivatives[0]

    def pullback(self, W: np.ndarray) -> np.ndarray:
        return np.tensordot(W, self._values_and_derivatives[1], 2)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.asarray(np.moveaxis(self._values_and_derivatives[1], 2, 0) @ V)


# ---------------------------------------------------------------------- kernel arguments


def parse_if_expression(spec: Any) -> Any:
    """Parse a string such as "RBF() + 1" to a kernel; return everything else unchanged.

    Kernel names, those of scikit-learn such as "rbf" and also "precomputed", are not parsed.

    Parameters
    ----------
    spec : object
        A kernel specification, see `as_kernel`.

    Returns
    -------
    Kernel or object
        The parsed kernel, or `spec` itself if it is a name or not a string.

    Examples
    --------
    >>> from mercer.kernels import parse_if_expression
    >>> parse_if_expression("rbf"), parse_if_expression("RBF() + 1")
    ('rbf', RBF(length_scale=1.0) + 1.0)
    """
    named = spec in KERNEL_NAMES or spec == "precomputed" if isinstance(spec, str) else True
    if named:
        return spec
    from .language import parse_kernel

    return parse_kernel(spec)


def as_kernel(
    spec: Any,
    *,
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1,
    kernel_params: dict[str, Any] | None = None,
) -> Kernel:
    """Convert a kernel specification to a kernel.

    ========================== ===================================================
    spec                       kernel
    ========================== ===================================================
    a Kernel                   itself
    a scikit-learn GP kernel   `from_sklearn(spec)`
    "precomputed"              `Precomputed()`
    "linear"                   `Linear()`
    "poly", "polynomial"       `Polynomial(degree, coef0, gamma)`
    "rbf"                      `RBF.from_gamma(gamma)`
    "laplacian"                `Laplacian.from_gamma(gamma)`
    "sigmoid"                  `Sigmoid(gamma, coef0)`
    "cosine"                   `Cosine()`
    "chi2"                     `Chi2(gamma)`
    "additive_chi2"            `AdditiveChi2()`
    any other string           `parse_kernel(spec)`: "2.0*RBF() + White(noise=0.1)"
    a function                 `Callable(spec, params=kernel_params)`
    ========================== ===================================================

    Parameters
    ----------
    spec : Kernel, str, callable or scikit-learn GP kernel
        The specification, see the table.
    gamma : float, str or None, default=None
        The gamma of a kernel given by name, or a rule: "scale", "auto", "median", "scott" or
        "silverman", see `RBF`.  A rule is replaced by a number when an estimator is fitted.  None
        means scikit-learn's default: 1 for "chi2", and 1 / n_features ("auto") for all others.
    degree : int, default=3
        The degree of "poly".  2 or 3 are usual.
    coef0 : float, default=1
        The constant term of "poly" and "sigmoid".
    kernel_params : dict, optional
        Keyword arguments if `spec` is a function; otherwise they are ignored.

    Returns
    -------
    Kernel
        The kernel.  Rules for gamma are still unresolved.

    See Also
    --------
    parse_kernel : Parses expressions such as "RBF() + 1".
    from_sklearn : Converts scikit-learn's Gaussian process kernels.

    Examples
    --------
    >>> from mercer.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.5)
    RBF(length_scale=1.0)
    >>> as_kernel("2*RBF(0.5) + White(0.1)")
    2.0*RBF(length_scale=0.5) + White(noise=0.1)
    """
    if isinstance(spec := parse_if_expression(spec), Kernel):
        return spec
    if isinstance(spec, _GPKernel):
        return from_sklearn(spec)
    if isinstance(spec, str):
        if spec == "precomputed":
            return Precomputed()
        return from_name(spec, gamma=gamma, degree=degree, coef0=coef0)
    if isinstance(spec, type):
        raise TypeError(
            f"The kernel is the class {spec.__name__}, not an instance; write {spec.__name__}(...)"
        )
    if callable(spec):
        return Callable(spec, params=dict(kernel_params) if kernel_params else None)
    raise TypeError(
        f"The kernel must be a str, a callable, a Kernel or a scikit-learn GP kernel. "
        f"Got {spec!r} instead."
    )


@singledispatch
def without_targets(kernel: Kernel) -> Kernel:
    """Return a kernel with parts that learn from targets replaced by parts that do not.

    Classes that learn from targets register a function.

    Examples
    --------
    >>> from mercer import MultipleKernel
    >>> from mercer.kernels import RBF, without_targets
    >>> without_targets(2.0 * MultipleKernel([RBF()], method="alignf")).kernel.method
    'average'
    """
    return kernel._with_children({path: without_targets(c) for path, c in kernel._children()})
