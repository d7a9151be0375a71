"""Conversion of the `kernel` argument of estimators to a Kernel object."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from .._core import optional_type
from ._base import Kernel
from ._pairwise_kernels import Callable
from ._precomputed import Precomputed
from ._sklearn_kernels import KERNEL_NAMES, from_name, from_sklearn
from .language import parse_kernel

_GPKernel = optional_type("sklearn.gaussian_process.kernels", "Kernel")


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
    return spec if named else parse_kernel(spec)


def as_kernel(
    spec: Any,
    *,
    gamma: Any = None,
    degree: Any = 3,
    coef0: Any = 1,
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
    gamma : float, "scale", "auto", "median" or None, default=None
        The gamma of a kernel given by name.  A rule such as "median" is replaced by a number when
        an estimator is fitted.  None means scikit-learn's default: 1 for "chi2", and
        1 / n_features ("auto") for all others.
    degree : int, default=3
        The degree of "poly".
    coef0 : float, default=1
        The constant term of "poly" and "sigmoid".
    kernel_params : dict, optional
        Keyword arguments if `spec` is a function; otherwise they are ignored.

    Returns
    -------
    Kernel

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
