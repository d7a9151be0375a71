"""Formulas of kernels on vectors in arbitrary precision, with mpmath.

`value(k, x, z)` is k(x, z) in the current mpmath precision, for all expressions of the kernels
below.  A test function has its own formula: `Callable(with_formula(function, exact))`.
"""

import dataclasses
from functools import singledispatch

import mpmath as mp
import numpy as np

from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Bilinear,
    Callable,
    Cauchy,
    Chi2,
    Constant,
    Cosine,
    Distance,
    Exp,
    Features,
    Fixed,
    GaussianBasis,
    GaussianSeries,
    Geodesic,
    HistogramIntersection,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    Map,
    Matern,
    Multiquadric,
    Normalized,
    Periodic,
    Polynomial,
    PolynomialBasis,
    Power,
    Product,
    RationalQuadratic,
    Scale,
    Select,
    Shift,
    Sigmoid,
    SigmoidBasis,
    Stretch,
    Sum,
    ThinPlate,
)


def value(kernel, x, z):
    """Return k(x, z); x and z may be any objects if the kernel is a Callable with a formula."""
    if not isinstance(kernel, Callable):
        x, z = ([mp.mpf(float(t)) for t in np.ravel(point)] for point in (x, z))
    return formula(kernel, parameters(kernel, [mp.mpf(0)] * kernel.theta.size), x, z)


def with_formula(function, exact):
    """Attach an exact formula to a function, and return the function."""
    function.exact = exact
    return function


@singledispatch
def formula(kernel, v, x, z):
    """Return k(x, z) with the parameters v, by the definition of the kernel."""
    raise TypeError(f"no formula for {kernel!r}")


def scaled(v, x, z):
    lengths = v["length_scale"]
    lengths = lengths if isinstance(lengths, list) else [lengths] * len(x)
    return [(a - b) / c for a, b, c in zip(x, z, lengths, strict=True)]


def squared(v, x, z):
    return mp.fsum(t * t for t in scaled(v, x, z))


def dot(x, z):
    return mp.fsum(a * b for a, b in zip(x, z, strict=True))


@formula.register
def _(kernel: RBF, v, x, z):
    return mp.exp(-squared(v, x, z) / 2)


@formula.register
def _(kernel: Matern, v, x, z):
    s, nu = squared(v, x, z), kernel.nu
    if nu == np.inf:
        return mp.exp(-s / 2)
    nu = mp.mpf(nu)
    u = mp.sqrt(2 * nu * s)
    if kernel.nu == 0.5:
        return mp.exp(-u)
    if kernel.nu == 1.5:
        return (1 + u) * mp.exp(-u)
    if kernel.nu == 2.5:
        return (1 + u + u * u / 3) * mp.exp(-u)
    if u == 0:
        return mp.mpf(1)
    if u > 1e6:
        return mp.mpf(0)
    return 2 * mp.rgamma(nu) * (u / 2) ** nu * mp.besselk(nu, u)


@formula.register
def _(kernel: RationalQuadratic, v, x, z):
    return (1 + squared(v, x, z) / (2 * v["alpha"])) ** (-v["alpha"])


@formula.register
def _(kernel: Cauchy, v, x, z):
    return 1 / (1 + squared(v, x, z))


@formula.register
def _(kernel: InverseMultiquadric, v, x, z):
    return 1 / mp.sqrt(1 + squared(v, x, z))


@formula.register
def _(kernel: Multiquadric, v, x, z):
    return -mp.sqrt(1 + squared(v, x, z))


@formula.register
def _(kernel: ThinPlate, v, x, z):
    s = squared(v, x, z)
    if s == 0:
        return s
    return s * mp.log(s) / 2 if kernel.degree == 2 else -s * s * mp.log(s) / 2


@formula.register
def _(kernel: Distance, v, x, z):
    return -(squared(v, x, z) ** (mp.mpf(kernel.exponent) / 2))


@formula.register
def _(kernel: Laplacian, v, x, z):
    return mp.exp(-mp.fsum(abs(t) for t in scaled(v, x, z)))


def chi2(x, z):
    return mp.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b)


@formula.register
def _(kernel: Chi2, v, x, z):
    return mp.exp(-v["gamma"] * chi2(x, z))


@formula.register
def _(kernel: AdditiveChi2, v, x, z):
    return -chi2(x, z)


@formula.register
def _(kernel: HistogramIntersection, v, x, z):
    return mp.fsum(min(a, b) for a, b in zip(x, z, strict=True))


@formula.register
def _(kernel: Periodic, v, x, z):
    sines = [mp.sinpi((a - b) / v["period"]) for a, b in zip(x, z, strict=True)]
    return mp.exp(-2 * mp.fsum(t * t for t in sines) / v["length_scale"] ** 2)


@formula.register
def _(kernel: Linear, v, x, z):
    return dot(x, z)


@formula.register
def _(kernel: Polynomial, v, x, z):
    return (v["gamma"] * dot(x, z) + v["coef0"]) ** kernel.degree


@formula.register
def _(kernel: Sigmoid, v, x, z):
    return mp.tanh(v["gamma"] * dot(x, z) + v["coef0"])


@formula.register
def _(kernel: Cosine, v, x, z):
    return normalized(dot(x, z), dot(x, x), dot(z, z))


@formula.register
def _(kernel: Bilinear, v, x, z):
    return dot(x, [dot(map(mp.mpf, row), z) for row in np.asarray(kernel.A).tolist()])


@formula.register
def _(kernel: Constant, v, x, z):
    return v["value"]


@formula.register
def _(kernel: Features, v, x, z):
    return dot(phi(kernel.basis, x), phi(kernel.basis, z))


@formula.register
def _(kernel: Map, v, x, z):
    return formula(kernel.kernel, v["kernel"], phi(kernel.function, x), phi(kernel.function, z))


@formula.register
def _(kernel: Select, v, x, z):
    return formula(kernel.kernel, v["kernel"], *([t[c] for c in kernel.columns] for t in (x, z)))


@formula.register
def _(kernel: Fixed, v, x, z):
    return formula(kernel.kernel, v["kernel"], x, z)


@formula.register
def _(kernel: Callable, v, x, z):
    return kernel.function.exact(x, z)


@formula.register
def _(kernel: Shift, v, x, z):
    offset = [mp.mpf(c) for c in np.broadcast_to(kernel.offset, len(x)).tolist()]
    moved = ([a - c for a, c in zip(point, offset, strict=True)] for point in (x, z))
    return formula(kernel.kernel, v["kernel"], *moved)


@formula.register
def _(kernel: Stretch, v, x, z):
    origin = [0] * len(x)
    return formula(kernel.kernel, v["kernel"], scaled(v, x, origin), scaled(v, z, origin))


@formula.register
def _(kernel: Sum, v, x, z):
    return mp.fsum(formula(k, w, x, z) for k, w in zip(kernel.terms, v["terms"], strict=True))


@formula.register
def _(kernel: Product, v, x, z):
    return mp.fprod(formula(k, w, x, z) for k, w in zip(kernel.factors, v["factors"], strict=True))


@formula.register
def _(kernel: Scale, v, x, z):
    return v["factor"] * formula(kernel.kernel, v["kernel"], x, z)


@formula.register
def _(kernel: Power, v, x, z):
    return formula(kernel.kernel, v["kernel"], x, z) ** mp.mpf(kernel.exponent)


@formula.register
def _(kernel: Exp, v, x, z):
    return mp.exp(formula(kernel.kernel, v["kernel"], x, z))


@formula.register
def _(kernel: Normalized, v, x, z):
    between, left, right = (
        formula(kernel.kernel, v["kernel"], a, b) for a, b in ((x, z), (x, x), (z, z))
    )
    return normalized(between, left, right)


def normalized(between, left, right):
    """Return the cosine; by convention, it is 0 if one of the two norms is 0."""
    return between / mp.sqrt(left * right) if left and right else mp.mpf(0)


def phi(basis, x):
    if basis is np.tanh:
        return [mp.tanh(t) for t in x]
    if isinstance(basis, GaussianBasis):
        v = {"length_scale": mp.mpf(basis.width)}
        return [formula(RBF(), v, x, list(map(mp.mpf, c))) for c in basis.centres]
    if isinstance(basis, SigmoidBasis):
        width = mp.mpf(basis.width)
        return [1 / (1 + mp.exp((mp.mpf(c) - t) / width)) for t in x for c in basis.centres]
    if isinstance(basis, GaussianSeries):
        t = x[0] / mp.mpf(basis.length_scale)
        decay = mp.exp(-t * t / 2)
        return [decay * t**m / mp.sqrt(mp.factorial(m)) for m in range(basis.n_terms)]
    products = [a * b for i, a in enumerate(x) for b in x[i:]]
    if isinstance(basis, PolynomialBasis):
        return [mp.mpf(1), *x, *products]
    root = mp.sqrt(2)
    return [
        a * b * (1 if i == j else root) for i, a in enumerate(x) for j, b in enumerate(x) if i <= j
    ]


def parameters(kernel, h):
    """Return the parameters by field, multiplied by exp(h_i); consumes h in the order of theta."""
    if isinstance(kernel, Fixed):  # its parameters are not part of theta
        return {"kernel": parameters(kernel.kernel, [mp.mpf(0)] * kernel.kernel.theta.size)}
    free = {name for name, _ in kernel._free()}
    v = {}
    for f in dataclasses.fields(kernel):
        value = getattr(kernel, f.name)
        if isinstance(value, Kernel):
            v[f.name] = parameters(value, h)
        elif isinstance(value, tuple) and value and isinstance(value[0], Kernel):
            v[f.name] = [parameters(child, h) for child in value]
        elif "bounds" in f.metadata:
            many = [
                mp.mpf(t) * (mp.exp(h.pop(0)) if f.name in free else 1) for t in np.ravel(value)
            ]
            v[f.name] = many[0] if np.ndim(value) == 0 else many
    return v


@formula.register
def _(kernel: Geodesic, v, x, z):
    """The shortest paths between x, z and all vertices, by the algorithm of Floyd and Warshall."""
    vertices = [[mp.mpf(float(t)) for t in row] for row in kernel.points]
    points = [*vertices, x, z]

    def distance(i, j):
        return mp.sqrt(mp.fsum((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True)))

    n, length = len(vertices), {}
    nearest = []  # distances of x and z to the nearest vertex
    for i in range(n + 2):
        others = sorted((j for j in range(n) if j != i), key=lambda j: distance(i, j))
        for j in others[: kernel.n_neighbors]:
            length[i, j] = length[j, i] = distance(i, j)
        if i >= n:
            nearest.append(distance(i, others[0]))
    if distance(n, n + 1) < max(nearest) and min(nearest) > 0:
        length[n, n + 1] = length[n + 1, n] = distance(n, n + 1)
    for i in range(n + 2):
        length[i, i] = mp.mpf(0)
    for m in range(n + 2):
        for i in range(n + 2):
            for j in range(n + 2):
                detour = length.get((i, m), mp.inf) + length.get((m, j), mp.inf)
                length[i, j] = min(length.get((i, j), mp.inf), detour)
    return -(length[n, n + 1] ** 2) / 2
