"""Advice for keywords of kernels that other libraries have: gamma, sigma, outputscale, ..."""

from __future__ import annotations

import dataclasses
from typing import Any

from .._core import first_known, short_repr

# For each parameter, its names in other libraries (scikit-learn, GPyTorch, GPy, GPflow, kernlab).
_SYNONYMS = {
    "length_scale": "lengthscale lengthscales length_scales ls ell l sigma bandwidth width rho "
    "scale h",
    "gamma": "scale sigma",
    "period": "periodicity period_length p",
    "degree": "d power order exponent",
    "coef0": "offset c bias constant variance",
    "noise": "noise_level noise_variance variance sigma sigma2 nugget",
    "value": "constant_value constant c bias variance",
    "nu": "smoothness",
    "alpha": "scale_mixture power",
    "decay": "lambda lambda_ lam lmbda gamma",
    "p": "k n length",
    "k": "p n length",
    "n": "p k length",
    "h": "n_iter depth iterations n_iterations height",
    "ngrams": "ngram_range n ngram",
    "columns": "active_dims dims features",
    "limits": "bounds length_scale_bounds",
    "exponent": "power p degree",
    "factor": "outputscale variance amplitude scale",
    "function": "f func fn",
    "matrix": "k gram",
    "A": "matrix metric m",
}
_FACTOR = "A factor multiplies the kernel: write {value} * {kernel}(...)"
_ARD = "For one length scale per column, pass a list: {kernel}([1.0, 2.0])"
_SELECT = "To restrict a kernel to some columns, write Select({kernel}(...), {value})"
_BOUNDS = (
    "Bounds are set by a wrapper: write Bounded({kernel}(...), (low, high)), or "
    "Fixed({kernel}(...)) for a parameter that is not optimised"
)
_NOISE = "Noise is a separate kernel: write {kernel}(...) + White({value})"

# Keywords that correspond to an expression instead of a parameter.
_EXPRESSIONS = {
    **dict.fromkeys(
        ("outputscale", "variance", "amplitude", "constant_value", "sigma_f", "output_scale"),
        _FACTOR,
    ),
    **dict.fromkeys(("ard", "ard_num_dims", "input_dim", "n_dims"), _ARD),
    **dict.fromkeys(("active_dims", "dims", "columns", "features"), _SELECT),
    **dict.fromkeys(("bounds", "length_scale_bounds", "lengthscale_constraint"), _BOUNDS),
    **dict.fromkeys(("noise", "noise_level", "nugget", "sigma_n"), _NOISE),
    "normalize": "To normalise a kernel to k(x, x) = 1, write Normalized({kernel}(...))",
    "sigma_0": "To add a constant, write {kernel}(...) + {value} ** 2",
}


def kernel_argument_advice(cls: type, name: str, value: Any, *, as_text: bool = False) -> str:
    """Return advice for an unknown keyword of a kernel, or "" if nothing is known about it.

    If `as_text` is True, the kernel is part of a kernel expression in text, which cannot contain
    calls of methods.
    """
    kernel, known = cls.__name__, [field.name for field in dataclasses.fields(cls)]
    if name == "gamma" and hasattr(cls, "from_gamma"):
        return f"{kernel} has a length scale: write {_from_gamma(cls, value, as_text=as_text)}"
    parameter = first_known(_SYNONYMS, name, known)
    if parameter is not None:
        text = (
            f"The parameter is called {parameter}: write {kernel}({parameter}={short_repr(value)})"
        )
        if name == "sigma" and hasattr(cls, "from_gamma"):
            text += (
                f". If sigma is the factor of the squared distance, as in R's kernlab, write "
                f"{_from_gamma(cls, value, as_text=as_text)}"
            )
        return text
    text = _EXPRESSIONS.get(name.lower(), "")
    return text.format(kernel=kernel, value=short_repr(value))


def _from_gamma(cls: Any, gamma: Any, *, as_text: bool = False) -> str:
    """Return a call that makes the kernel with this gamma, if possible with its length scale."""
    call = f"{cls.__name__}.from_gamma({short_repr(gamma)})"
    try:
        kernel = str(cls.from_gamma(gamma))
    except (TypeError, ValueError):
        return call
    return kernel if as_text else f"{call}, which is {kernel}"
