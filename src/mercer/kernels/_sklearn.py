"""From scikit-learn's kernels, those with names and those of its Gaussian processes, to ours."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._errors import NotDifferentiableError
from .._lazy import foreign
from .._points import as_vectors, length
from ._algebra import Power, power_claims
from ._base import Kernel, node
from ._claims import Claims
from ._dot import Cosine, Linear, Polynomial, Sigmoid
from ._elementwise import AdditiveChi2, Chi2, Laplacian
from ._flat import Constant, White
from ._linearised import Linearised
from ._prepared import Prepared
from ._stationary import RBF, Matern, RationalQuadratic
from ._wrappers import Bounded, Fixed

__all__ = ["KERNEL_NAMES", "SklearnKernel", "from_name", "from_sklearn"]

_NAMED: dict[str, Function[..., Kernel]] = {
    "additive_chi2": lambda gamma, degree, coef0: AdditiveChi2(),
    "chi2": lambda gamma, degree, coef0: Chi2(1.0 if gamma is None else gamma),
    "cosine": lambda gamma, degree, coef0: Cosine(),
    "laplacian": lambda gamma, degree, coef0: Laplacian.from_gamma(_rate(gamma)),
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, coef0, _rate(gamma)),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, coef0, _rate(gamma)),
    "rbf": lambda gamma, degree, coef0: RBF.from_gamma(_rate(gamma)),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(_rate(gamma), coef0),
}
KERNEL_NAMES = tuple(_NAMED)

_THEIRS = "sklearn.gaussian_process.kernels"
_GPKernel, _CompoundKernel = foreign(_THEIRS, "Kernel"), foreign(_THEIRS, "CompoundKernel")

_DEFAULT_BOUNDS = (1e-5, 1e5)  # of every hyper-parameter in scikit-learn, and here


def from_name(name: str, *, gamma: Any = None, degree: Any = 3, coef0: Any = 1) -> Kernel:
    """Return the kernel that scikit-learn's `pairwise_kernels` computes under this name.

    `gamma=None` means 1 / n_features ("auto"), and 1 for chi2; names that know no gamma, degree
    or coef0 ignore them.
    """
    return _NAMED[name](gamma, degree, coef0)


def _rate(gamma: Any) -> Any:
    return "auto" if gamma is None else gamma


def _name(kernel: Any) -> str:
    """Return the name of a class of theirs; subclasses may mean anything and have none."""
    kind = type(kernel)
    return kind.__name__ if kind.__module__ == _THEIRS else ""


def from_sklearn(kernel: Any) -> Kernel:
    """Return the kernel that a Gaussian process kernel of scikit-learn stands for.

    RBF, Matern, RationalQuadratic, DotProduct, WhiteKernel, ConstantKernel, PairwiseKernel and
    their sums, products and powers are translated; what cannot be (a kernel of your own, a
    parameter fixed beside a free one, a power that is not a Mercer kernel, ExpSineSquared, which
    is none beyond one column) is wrapped as a `SklearnKernel`.

    Bounds "fixed" become `Fixed`, and bounds other than the default (1e-5, 1e5) `Bounded`.
    DotProduct(sigma_0) is <x, z> + c with c = sigma_0^2, so that its theta is twice as large.
    The coef0 of a PairwiseKernel, which scikit-learn does not tune, is a parameter here.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from mercer.kernels import from_sklearn
    >>> from_sklearn(2.0 * RBF(0.5) + WhiteKernel(0.1, noise_level_bounds="fixed"))
    2.0*RBF(length_scale=0.5) + Fixed(White(noise=0.1))
    """
    if not isinstance(kernel, _GPKernel):
        raise TypeError(f"from_sklearn takes a scikit-learn GP kernel, got {kernel!r}")
    translated = _translate(kernel)
    return SklearnKernel(clone(kernel)) if translated is None else translated


def _translate(kernel: Any) -> Kernel | None:
    """Return the kernel in our terms, or None."""
    name = _name(kernel)
    if name == "Sum":
        return from_sklearn(kernel.k1) + from_sklearn(kernel.k2)
    if name == "Product":
        return _product(kernel)
    if name == "Exponentiation":
        return _power(kernel)
    if name in _SIMPLE:
        make, names = _SIMPLE[name]
        theirs = {ours: getattr(kernel, f"{their}_bounds") for ours, their in names.items()}
        return _with_bounds(make(kernel), **theirs)
    if name == "DotProduct":
        constant = Constant(float(kernel.sigma_0) ** 2)
        bounded = _with_bounds(constant, value=_through(np.square, kernel.sigma_0_bounds))
        return None if bounded is None else Linear() + bounded
    if name == "PairwiseKernel":
        return _pairwise(kernel)
    return None


def _product(kernel: Any) -> Kernel:
    left, right = from_sklearn(kernel.k1), from_sklearn(kernel.k2)
    for factor, other in ((left, right), (right, left)):
        if type(factor) is Constant:
            return float(factor.value) * other
    return left * right


def _power(kernel: Any) -> Kernel | None:
    base, exponent = from_sklearn(kernel.kernel), float(kernel.exponent)
    if exponent <= 0 or not (exponent.is_integer() or base.infinitely_divisible):
        return None
    return Power(base, int(exponent) if exponent.is_integer() else exponent)


def _pairwise(kernel: Any) -> Kernel | None:
    if not isinstance(kernel.metric, str) or kernel.metric not in KERNEL_NAMES:
        return None
    given = kernel.pairwise_kernels_kwargs or {}
    options = {name: given[name] for name in ("degree", "coef0") if name in given}
    ours = from_name(kernel.metric, gamma=float(kernel.gamma), **options)
    if isinstance(ours, RBF):
        bounds = _through(lambda gamma: np.sqrt(0.5 / gamma), kernel.gamma_bounds)
        return _with_bounds(ours, length_scale=bounds)
    if isinstance(ours, Laplacian):
        return _with_bounds(ours, length_scale=_through(np.reciprocal, kernel.gamma_bounds))
    return _with_bounds(ours, gamma=kernel.gamma_bounds)


def _scale(kernel: Any) -> Any:
    scale = np.asarray(kernel.length_scale, dtype=float)
    return float(scale.item()) if scale.size == 1 else tuple(scale.tolist())


# The kernel that one of scikit-learn's is, and what that calls the parameters.
_SIMPLE: dict[str, tuple[Function[[Any], Kernel], dict[str, str]]] = {
    "RBF": (lambda k: RBF(_scale(k)), {"length_scale": "length_scale"}),
    "Matern": (lambda k: Matern(_scale(k), nu=k.nu), {"length_scale": "length_scale"}),
    "RationalQuadratic": (
        lambda k: RationalQuadratic(_scale(k), alpha=float(k.alpha)),
        {"length_scale": "length_scale", "alpha": "alpha"},
    ),
    "ConstantKernel": (lambda k: Constant(float(k.constant_value)), {"value": "constant_value"}),
    "WhiteKernel": (lambda k: White(float(k.noise_level)), {"noise": "noise_level"}),
}


def _through(function: Any, bounds: Any) -> Any:
    """Return the bounds of function(parameter), function monotone; the default stays ours."""
    if isinstance(bounds, str) or np.array_equal(bounds, _DEFAULT_BOUNDS):
        return bounds
    return np.sort(function(np.asarray(bounds, dtype=float)), axis=-1)


def _with_bounds(kernel: Kernel, **bounds: Any) -> Kernel | None:
    """Return the kernel with these bounds of its parameters, None if some of them are fixed."""
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


# ---------------------------------------------------------------------- the adapter


@node
class SklearnKernel(Kernel):
    """k(x, z) = kernel(x, z) for a Gaussian process kernel of scikit-learn, your own included.

    `theta` and `bounds` are those of the wrapped kernel.  It has derivatives with respect to them
    for k(X), not for k(X, Z), and forms the (n, n, p) array that scikit-learn's `eval_gradient`
    returns: for a few thousand points.  `from_sklearn` wraps only what it cannot translate.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import ExpSineSquared
    >>> from mercer.kernels import SklearnKernel
    >>> SklearnKernel(ExpSineSquared(periodicity=2.0))([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    kernel: Any = None

    tells_observations_apart: ClassVar[bool] = True  # it may hold a WhiteKernel
    pullback_in_tiles: ClassVar[bool] = False

    def _check(self) -> None:
        if not isinstance(self.kernel, _GPKernel):
            raise TypeError(f"SklearnKernel wraps a scikit-learn GP kernel, got {self.kernel!r}")
        if isinstance(self.kernel, _CompoundKernel):
            raise ValueError(
                "SklearnKernel: a CompoundKernel is a stack of kernels, not a kernel; "
                "use one of its `kernels`, or their sum"
            )

    def _claims(self, *inner: Claims) -> Claims:
        theirs, name = self.kernel, _name(self.kernel)
        ours = _SIMPLE[name][0](theirs) if name in _SIMPLE else from_sklearn(theirs)  # no bounds
        if not isinstance(ours, SklearnKernel):
            return replace(ours.claims, rule=f"{ours}: {ours.claims.rule}")
        if name == "ExpSineSquared":
            # Points one period apart have k = 1.  Two of them at half a period from each other do
            # not, but a third, one period from both, exists in the plane.
            p = float(theirs.periodicity)
            plane = p * np.array([[0.0, 0.0], [0.5, 0.0], [0.25, np.sqrt(15.0) / 4.0]])
            known = {"nonnegative": True, "unit_diagonal": True, "infinitely_divisible": True}
            line = "k(phi(x), phi(z)), an RBF of points wound around a circle"
            return Claims(line, 0, **known, stationary=True, columns=1, against=plane)
        if name == "Exponentiation":
            claims = power_claims(from_sklearn(theirs.kernel).claims, float(theirs.exponent))
            if claims.order is None:
                places = np.array([[0.0], [0.5], [1.0], [2.0], [4.0], [8.0]])
                return replace(claims, rule="a real power is no closure rule", against=places)
            return claims
        return Claims()

    # ------------------------------------------------------------------ evaluation

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        return Prepared((self._points(X),))

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if not out.size:
            return
        X, Z = P.arrays[0], Q.arrays[0]
        block = np.asarray(self.kernel(X, Z))
        if block.shape != out.shape:
            raise ValueError(
                f"SklearnKernel: {type(self.kernel).__name__} returned shape {block.shape} for "
                f"{len(P)} x {len(Q)} points"
            )
        out[...] = block
        i, j = P.coincidences(Q)
        if len(i):  # a WhiteKernel inside does not see that they are the same points
            out[i, j] = self.kernel.diag(X)[i]

    def _diag(self, X: Any) -> np.ndarray:
        X = self._points(X)
        return np.asarray(self.kernel.diag(X)) if length(X) else np.zeros(0)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        if Z is not None:
            raise NotDifferentiableError(
                "SklearnKernel: scikit-learn's kernels have derivatives of k(X), not of k(X, Z)"
            )
        return {"kernel": _LinearisedSklearn(self, X, None).pullback(W)}

    def _linearise(self, X: Any, Z: Any) -> Linearised:
        return Linearised(self, X, Z) if Z is not None else _LinearisedSklearn(self, X, None)

    @property
    def on_vectors(self) -> bool:
        return bool(self.kernel.requires_vector_input)

    @property
    def domain(self) -> str:
        """Vectors, if it takes no others."""
        return "vectors" if self.on_vectors else ""

    def _points(self, X: Any) -> Any:
        if not self.on_vectors:
            return X
        X = as_vectors(X, "SklearnKernel")
        return X.toarray() if sp.issparse(X) else X

    # ------------------------------------------------------------------ parameters

    def _free(self) -> Any:
        yield "kernel", np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of the wrapped kernel, in log space, shape (p, 2)."""
        return np.asarray(self.kernel.bounds, dtype=float).reshape(-1, 2)

    @property
    def theta_names(self) -> list[str]:
        """The nested name of each entry of `theta`, as `set_params` spells it."""
        names: list[str] = []
        for h in self.kernel.hyperparameters:
            if not h.fixed:
                places = [f"[{i}]" for i in range(h.n_elements)] if h.n_elements > 1 else [""]
                names += [f"kernel__{h.name}{place}" for place in places]
        return names

    def with_theta(self, theta: Any) -> Self:
        """Return this kernel with its free parameters set to exp(theta)."""
        return type(self)(self.kernel.clone_with_theta(np.asarray(theta, dtype=float)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the wrapped kernel; with `deep`, also its parameters, behind `kernel__`."""
        inner = self.kernel.get_params() if deep else {}
        return {"kernel": self.kernel} | {f"kernel__{name}": v for name, v in inner.items()}

    def set_params(self, **params: Any) -> Self:
        """Return a *new* kernel with these (possibly nested) parameters."""
        inner = {name[8:]: params.pop(name) for name in list(params) if name[:8] == "kernel__"}
        changed = super().set_params(**params)
        return type(self)(clone(changed.kernel).set_params(**inner)) if inner else changed


class _LinearisedSklearn(Linearised):
    """K and the array (n, n, p) of its derivatives, as scikit-learn returns them together."""

    kernel: SklearnKernel

    @cached_property
    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        K, tensor = self.kernel.kernel(self.kernel._points(self.X), eval_gradient=True)
        K = np.array(K)
        np.fill_diagonal(K, self.kernel.diag(self.X))  # as in tiles: a kernel may have its own
        return K, np.asarray(tensor)

    @property
    def values(self) -> np.ndarray:
        return self._both[0]

    def pullback(self, W: np.ndarray) -> np.ndarray:
        return np.tensordot(W, self._both[1], 2)

    def tangents(self, V: np.ndarray, transposed: bool = False) -> np.ndarray:
        return np.asarray(np.moveaxis(self._both[1], 2, 0) @ V)
