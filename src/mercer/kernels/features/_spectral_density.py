"""Spectral densities of stationary kernels, from which random Fourier features are drawn.

    k(x, z) = sum_t c_t E cos((w_1 + w_2 + ...).(x - z))

By Bochner's theorem, every kernel that is a function of x - z has this form with a single term,
where the distribution of the random frequency w is the Fourier transform of the kernel.  A term t
consists of its factor c_t and of the distributions from which its frequencies w_1, w_2, ... are
drawn.  Combinations of kernels combine terms: a sum concatenates the terms, a product multiplies
the factors and adds independent frequencies, and a constant has the frequency 0.

Radial kernels are mixtures of Gaussians with random widths, E exp(-v s / 2), where s is the squared
scaled distance.  Their frequencies are normal with a random variance v / l^2, and in a product the
variances add up.  Let G have the gamma distribution with shape a, so that E exp(-G t) = (1 + t)^-a.
Then v is

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

from .._base import Kernel
from ..algebra._closure_rules import Power, Product, Scale, Sum
from ..algebra._input_maps import Periodic, Select, Shift, Stretch
from ..algebra._wrappers import Bounded, Fixed, Normalized
from ..vectors._constant import Constant
from ..vectors._histogram import Laplacian
from ..vectors._radial import Radial
from ..vectors._radial_kernels import RBF, Cauchy, InverseMultiquadric, Matern, RationalQuadratic
from ..vectors._vector_kernel import scalar_or_per_column

QuantileFunction = Function[[np.ndarray], np.ndarray]

# Largest product of a frequency and the length scale l.  Higher frequencies matter only at
# distances below 1e-10 l; at larger distances the rounding error of their phases may exceed a full
# turn.
_MAX_FREQUENCY = 1e10
_MAX_TERMS = 10_000  # largest number of terms when a product of sums is expanded
# If the variance 1 / l^2 of the discrete spectrum of Periodic exceeds this, the spectrum is
# approximated by a rounded normal distribution.
_MIN_NORMAL_VARIANCE = 1e6


class FrequencyDistribution(NamedTuple):
    """A distribution of frequencies, as a function of uniform random numbers.

    `law` maps an array of shape (m, uniforms) of numbers between 0 and 1 to an array of shape
    (m, d): the variances of the frequencies if these are normal, otherwise the frequencies.
    """

    normals: tuple[int, ...]  # the columns in which the frequencies are normal; may be ()
    uniforms: int  # the number of uniform random numbers per frequency
    law: QuantileFunction


class SpectralTerm(NamedTuple):
    """A term size * E cos(w.(x - z)), where w is the sum of one frequency from each of `draws`."""

    size: float
    draws: tuple[FrequencyDistribution, ...] = ()


def spectral_terms(kernel: Kernel, columns: int) -> list[SpectralTerm]:
    """Return the spectral terms of a stationary kernel, for points with this number of columns."""
    rules = _rule.registry  # use the exact class, because a subclass may change the kernel
    return rules.get(type(kernel), rules[object])(kernel, columns)


@singledispatch
def _rule(kernel: Kernel, columns: int) -> list[SpectralTerm]:
    name = type(kernel).__name__
    if isinstance(kernel, Power):
        name += f" with the exponent {kernel.exponent:g}"
    raise TypeError(
        f"random_features: {name} has no random Fourier features, because it is not a function of "
        f"x - z with a known spectrum; use Nystroem, which works for any kernel"
    )


def _one_term(normals: tuple[int, ...], uniforms: int, law: QuantileFunction) -> list[SpectralTerm]:
    """Return the spectrum of a kernel with k(x, x) = 1 and a single distribution of frequencies."""
    return [SpectralTerm(1.0, (FrequencyDistribution(normals, uniforms, law),))]


# ---------------------------------------------------------------------- kernels


# The quantile function of the random variance v in k = E exp(-v s / 2), where s is the squared
# scaled distance, for each kernel; v = 1 for the RBF.
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
def _mixture(kernel: Radial, columns: int) -> list[SpectralTerm]:
    """Return the spectrum of a radial kernel that is a mixture of Gaussians."""
    variance = None if getattr(kernel, "nu", 0.0) == np.inf else _VARIANCES.get(type(kernel))
    inverse = np.full(columns, kernel._scale(columns)) ** -2.0

    def law(U: np.ndarray) -> np.ndarray:
        v = np.ones((len(U), 1)) if variance is None else variance(kernel, U)
        return np.minimum(v, _MAX_FREQUENCY**2) * inverse

    return _one_term(tuple(range(columns)), int(variance is not None), law)


@_rule.register
def _laplacian(kernel: Laplacian, columns: int) -> list[SpectralTerm]:
    scale = kernel._scale(columns)
    # The frequencies of each column have a Cauchy distribution.
    return _one_term((), columns, lambda U: np.tan(np.pi * (U - 0.5)) / scale)


@_rule.register
def _periodic(kernel: Periodic, columns: int) -> list[SpectralTerm]:
    # exp(q (cos t - 1)) = sum_n e^-q I_n(q) cos(n t) over all integers n, with q = 1 / l^2.  The
    # frequencies are multiples n of 2 pi / period with probability e^-q I_n(q) and variance q.
    q = float(kernel.length_scale) ** -2.0

    def multiples(U: np.ndarray) -> np.ndarray:
        integers: np.ndarray
        if q > _MIN_NORMAL_VARIANCE:
            integers = np.rint(np.sqrt(q) * ndtri(U))
            return integers
        # The probability that |n| > last is smaller than the rounding error.
        last = math.ceil(40.0 + 10.0 * math.sqrt(q))
        cumulative = np.cumsum(ive(np.arange(-last, last + 1), q))
        integers = np.searchsorted(cumulative, U * cumulative[-1]) - last
        return integers

    base_frequency = 2.0 * np.pi / float(kernel.period)
    return _one_term((), columns, lambda U: base_frequency * multiples(U))


@_rule.register
def _constant(kernel: Constant, columns: int) -> list[SpectralTerm]:
    return [SpectralTerm(float(kernel.value))]


# ---------------------------------------------------------------------- combinations


@_rule.register
def _sum(kernel: Sum, columns: int) -> list[SpectralTerm]:
    return [term for child in kernel.terms for term in spectral_terms(child, columns)]


@_rule.register
def _product(kernel: Product, columns: int) -> list[SpectralTerm]:
    children = [spectral_terms(child, columns) for child in kernel.factors]
    count = math.prod(map(len, children))
    if count > _MAX_TERMS:
        raise ValueError(
            f"random_features: a product of sums has {count} terms when it is expanded, and each "
            f"term needs its own features; use Nystroem, which works for any kernel"
        )
    return [
        SpectralTerm(math.prod(t.size for t in terms), tuple(d for t in terms for d in t.draws))
        for terms in itertools.product(*children)
    ]


@_rule.register
def _power(kernel: Power, columns: int) -> list[SpectralTerm]:
    if kernel.exponent != int(kernel.exponent):
        return _rule.registry[object](kernel, columns)
    return spectral_terms(Product((kernel.kernel,) * int(kernel.exponent)), columns)


@_rule.register
def _scale(kernel: Scale, columns: int) -> list[SpectralTerm]:
    return [
        SpectralTerm(kernel.factor * size, draws)
        for size, draws in spectral_terms(kernel.kernel, columns)
    ]


@_rule.register
def _normalized(kernel: Normalized, columns: int) -> list[SpectralTerm]:
    terms = spectral_terms(kernel.kernel, columns)
    total = sum(term.size for term in terms) or 1.0  # if k = 0, its normalised kernel is also 0
    return [SpectralTerm(size / total, draws) for size, draws in terms]


@_rule.register(Fixed)
@_rule.register(Bounded)
def _wrapped(kernel: Fixed | Bounded, columns: int) -> list[SpectralTerm]:
    return spectral_terms(kernel.kernel, columns)


@_rule.register
def _select(kernel: Select, columns: int) -> list[SpectralTerm]:
    indices = kernel._column_indices(np.empty((0, columns)))
    if not indices:
        raise ValueError(f"Select: {kernel.columns!r} selects none of the {columns} columns")

    def embed(draw: FrequencyDistribution) -> FrequencyDistribution:
        def law(U: np.ndarray) -> np.ndarray:
            inner, outer = draw.law(U), np.zeros((len(U), columns))
            for index, column in zip(indices, inner.T, strict=True):
                outer[:, index] += column  # a column may be selected twice
            return outer

        return FrequencyDistribution(tuple(indices[c] for c in draw.normals), draw.uniforms, law)

    return _transform_draws(spectral_terms(kernel.kernel, len(indices)), embed)


@_rule.register
def _shift(kernel: Shift, columns: int) -> list[SpectralTerm]:
    kernel._per_column(columns)  # raises an error if the number of offsets is wrong
    return spectral_terms(kernel.kernel, columns)


@_rule.register
def _stretch(kernel: Stretch, columns: int) -> list[SpectralTerm]:
    scale = scalar_or_per_column("Stretch", kernel.length_scale, columns)

    def rescale(draw: FrequencyDistribution) -> FrequencyDistribution:
        divisor = scale**2 if draw.normals else scale  # `law` returns variances or frequencies
        return draw._replace(law=lambda U: draw.law(U) / divisor)

    return _transform_draws(spectral_terms(kernel.kernel, columns), rescale)


def _transform_draws(
    terms: list[SpectralTerm], transform: Function[[FrequencyDistribution], FrequencyDistribution]
) -> list[SpectralTerm]:
    """Return the terms with `transform` applied to each distribution of frequencies."""
    return [SpectralTerm(size, tuple(transform(draw) for draw in draws)) for size, draws in terms]
