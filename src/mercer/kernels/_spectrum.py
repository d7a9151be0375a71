"""The spectra of stationary kernels, k(x, z) = sum_t c_t E cos((w_1 + w_2 + ...).(x - z)).

By Bochner's theorem every kernel that is a function of x - z is such a sum, and the law of the
frequencies w is its Fourier transform.  A term holds c and how to draw its frequencies.  Terms
follow the algebra: a sum adds terms, a product multiplies c and adds independent frequencies, a
constant has the frequency 0.

Radial kernels are mixtures of Gaussians of random width, E exp(-v s / 2): their frequencies are
normal with a random variance v / l^2, and in a product variances add.  With G of the gamma
distribution of shape a, for which E exp(-G t) = (1 + t)^-a,

    (1 + s / b)^-a      v = 2 G / b                  RationalQuadratic, Cauchy, InverseMultiquadric
    Matern              v = nu / G,  a = nu          w is Student's t with 2 nu degrees of freedom
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable as Function
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ive, ndtri

from ._algebra import Power, Product, Scale, Sum
from ._base import Kernel
from ._elementwise import Laplacian
from ._flat import Constant
from ._maps import Periodic, Select, Shift, Stretch
from ._radial import Radial
from ._stationary import RBF, Cauchy, InverseMultiquadric, Matern, RationalQuadratic
from ._vectors import per_column
from ._wrappers import Bounded, Fixed, Normalized

__all__ = ["Draw", "Term", "spectrum"]

Law = Function[[np.ndarray], np.ndarray]

# Frequencies beyond this, over l, matter only at distances below 1e-10 l, and their phases would
# have no digits left.
_HIGHEST = 1e10
_MOST_TERMS = 10_000
_NARROW = 1e6  # from this 1 / l^2 on the spectrum of Periodic is normal, to as many digits


class Draw(NamedTuple):
    """Frequencies of one law, made of (m, uniforms) numbers between 0 and 1."""

    normals: tuple[int, ...]  # the columns in which they are normal; () if they are not
    uniforms: int
    law: Law  # -> (m, d): variances of normal frequencies, of others the frequencies themselves


class Term(NamedTuple):
    """size * E cos(w.(x - z)), where w is the sum of independent draws."""

    size: float
    draws: tuple[Draw, ...] = ()


def spectrum(kernel: Kernel, columns: int) -> list[Term]:
    """Return the terms of a kernel on points with so many columns."""
    rules = _rule.registry  # by exact class: a subclass may have changed the kernel
    return rules.get(type(kernel), rules[object])(kernel, columns)


@singledispatch
def _rule(kernel: Kernel, columns: int) -> list[Term]:
    name = type(kernel).__name__
    if isinstance(kernel, Power):
        name += f" with the exponent {kernel.exponent:g}"
    raise TypeError(
        f"random_features: {name} has no random Fourier features, because it is not a function of "
        f"x - z with a spectrum that is known here; Nyström landmarks serve any kernel"
    )


# ---------------------------------------------------------------------- kernels


# The quantiles of v; without an entry it is 1.
_VARIANCES: dict[type, Function[[Any, np.ndarray], np.ndarray]] = {
    Matern: lambda k, U: k.nu / np.maximum(gammaincinv(k.nu, U), 1e-300),
    RationalQuadratic: lambda k, U: gammaincinv(k.alpha, U) / k.alpha,
    Cauchy: lambda k, U: 2.0 * gammaincinv(1.0, U),
    InverseMultiquadric: lambda k, U: 2.0 * gammaincinv(0.5, U),
}


@_rule.register(RBF)
@_rule.register(Matern)
@_rule.register(RationalQuadratic)
@_rule.register(Cauchy)
@_rule.register(InverseMultiquadric)
def _mixture(kernel: Radial, columns: int) -> list[Term]:
    """Return the spectrum of a mixture of Gaussians."""
    variance = None if getattr(kernel, "nu", 0.0) == np.inf else _VARIANCES.get(type(kernel))
    inverse = np.full(columns, kernel._scale(columns)) ** -2.0

    def law(U: np.ndarray) -> np.ndarray:
        v = np.ones((len(U), 1)) if variance is None else variance(kernel, U)
        return np.minimum(v, _HIGHEST**2) * inverse

    return [Term(1.0, (Draw(tuple(range(columns)), int(variance is not None), law),))]


@_rule.register
def _laplacian(kernel: Laplacian, columns: int) -> list[Term]:
    scale = kernel._scale(columns)
    # a Cauchy variable for each column
    return [Term(1.0, (Draw((), columns, lambda U: np.tan(np.pi * (U - 0.5)) / scale),))]


@_rule.register
def _periodic(kernel: Periodic, columns: int) -> list[Term]:
    # exp(q (cos t - 1)) = sum_n e^-q I_n(q) cos(n t) over all integers n, of variance q = 1 / l^2
    q = float(kernel.length_scale) ** -2.0

    def multiples(U: np.ndarray) -> np.ndarray:
        if q > _NARROW:
            return np.rint(np.sqrt(q) * ndtri(U))
        last = math.ceil(40.0 + 10.0 * math.sqrt(q))  # the rest is lost to rounding
        total = np.cumsum(ive(np.arange(-last, last + 1), q))
        return np.searchsorted(total, U * total[-1]) - last

    turn = 2.0 * np.pi / float(kernel.period)
    return [Term(1.0, (Draw((), columns, lambda U: turn * multiples(U)),))]


@_rule.register
def _constant(kernel: Constant, columns: int) -> list[Term]:
    return [Term(float(kernel.value))]


# ---------------------------------------------------------------------- combinations


@_rule.register
def _sum(kernel: Sum, columns: int) -> list[Term]:
    return [term for child in kernel.terms for term in spectrum(child, columns)]


@_rule.register
def _product(kernel: Product, columns: int) -> list[Term]:
    children = [spectrum(child, columns) for child in kernel.factors]
    count = math.prod(map(len, children))
    if count > _MOST_TERMS:
        raise ValueError(
            f"random_features: a product of sums has {count} terms when it is multiplied out, and "
            f"each would need features of its own; Nyström landmarks serve any kernel"
        )
    return [
        Term(math.prod(t.size for t in terms), tuple(d for t in terms for d in t.draws))
        for terms in itertools.product(*children)
    ]


@_rule.register
def _power(kernel: Power, columns: int) -> list[Term]:
    if kernel.exponent != int(kernel.exponent):
        return _rule.registry[object](kernel, columns)
    return spectrum(Product((kernel.kernel,) * int(kernel.exponent)), columns)


@_rule.register
def _scale(kernel: Scale, columns: int) -> list[Term]:
    return [Term(kernel.factor * size, draws) for size, draws in spectrum(kernel.kernel, columns)]


@_rule.register
def _normalized(kernel: Normalized, columns: int) -> list[Term]:
    terms = spectrum(kernel.kernel, columns)
    total = sum(term.size for term in terms) or 1.0  # normalising 0 leaves 0
    return [Term(size / total, draws) for size, draws in terms]


@_rule.register(Fixed)
@_rule.register(Bounded)
def _wrapped(kernel: Fixed | Bounded, columns: int) -> list[Term]:
    return spectrum(kernel.kernel, columns)


@_rule.register
def _select(kernel: Select, columns: int) -> list[Term]:
    places = kernel._column_indices(np.empty((0, columns)))
    if not places:
        raise ValueError(f"Select: {kernel.columns!r} is none of the {columns} columns")

    def move(draw: Draw) -> Draw:
        def law(U: np.ndarray) -> np.ndarray:
            inner, outer = draw.law(U), np.zeros((len(U), columns))
            for place, column in zip(places, inner.T, strict=True):
                outer[:, place] += column  # a column may be selected twice
            return outer

        return Draw(tuple(places[c] for c in draw.normals), draw.uniforms, law)

    return _moved(spectrum(kernel.kernel, len(places)), move)


@_rule.register
def _shift(kernel: Shift, columns: int) -> list[Term]:
    kernel._per_column(columns)  # as many offsets as columns
    return spectrum(kernel.kernel, columns)


@_rule.register
def _stretch(kernel: Stretch, columns: int) -> list[Term]:
    scale = per_column("Stretch", kernel.length_scale, columns)

    def move(draw: Draw) -> Draw:
        divisor = scale**2 if draw.normals else scale
        return draw._replace(law=lambda U: draw.law(U) / divisor)

    return _moved(spectrum(kernel.kernel, columns), move)


def _moved(terms: list[Term], move: Function[[Draw], Draw]) -> list[Term]:
    return [Term(size, tuple(move(draw) for draw in draws)) for size, draws in terms]
