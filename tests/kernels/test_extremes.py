"""Kernels and their gradients against mpmath, for extreme arguments and parameters.

Errors are compared with the effect of rounding the inputs.  Let u = 2^-53, let f be the result and
t_i the inputs of the formula: the difference x - z of a stationary kernel, the coordinates for
other kernels, and the parameters.  The error must be at most
TOLERANCE u (|f| + sum_i |t_i df / dt_i|).
"""

import mpmath as mp
import numpy as np
import pytest
from formulas import formula, parameters

from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Bilinear,
    Bounded,
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
    HistogramIntersection,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Map,
    Matern,
    Multiquadric,
    Normalized,
    Periodic,
    Polynomial,
    PolynomialBasis,
    QuadraticMap,
    RationalQuadratic,
    Select,
    Sigmoid,
    SigmoidBasis,
    Stretch,
    ThinPlate,
    float32_error_bound,
)
from mercer.kernels.vectors._vector_kernel import distant_centre

U = 2.0**-53
TOLERANCE = 50.0
SMALLEST = 1e-290  # underflow is negligible relative to this

# ---------------------------------------------------------------------- errors


class Exact:
    """k(x, z) and its derivatives at one pair of points, and the effect of rounded inputs."""

    def __init__(self, kernel, x, z, stationary):
        self.kernel, self.stationary = kernel, stationary
        self.x, self.z = ([mp.mpf(float(t)) for t in point] for point in (x, z))
        self.p, self.d = kernel.theta.size, len(x)
        self.coordinates = 1 if stationary else 2 * self.d
        # Bessel functions are slow in high precision.
        self.digits = 60 if getattr(kernel, "nu", 0.5) in BESSEL else 400

    def value(self, h, dx, inputs):
        """Return k with log-parameters changed by h, x by dx, and inputs by relative amounts."""
        grow, more = inputs[: self.coordinates], inputs[self.coordinates :]
        x, z = self.x, self.z
        if self.stationary:
            x = [b + (a - b) * (1 + grow[0]) for a, b in zip(x, z, strict=True)]
        else:
            x = [a * (1 + g) for a, g in zip(x, grow[: self.d], strict=True)]
            z = [a * (1 + g) for a, g in zip(z, grow[self.d :], strict=True)]
        x = [a + b for a, b in zip(x, dx, strict=True)]
        v = parameters(self.kernel, [a + b for a, b in zip(h, more, strict=True)])
        return formula(self.kernel, v, x, z)

    def derivative(self, which, inputs):
        """Return k (for None), dk / dtheta_i (for ("theta", i)) or dk / dx_c (for ("x", c))."""
        h, dx = [mp.mpf(0)] * self.p, [mp.mpf(0)] * self.d
        if which is None:
            return self.value(h, dx, inputs)
        kind, i = which
        sizes = [abs(t) for t in (self.x[i] - self.z[i], self.x[i])] if kind == "x" else []
        unit = min([t for t in sizes if t] + [mp.mpf(1)])
        step = mp.mpf(10) ** (-self.digits // 5)

        def at(t):
            (h if kind == "theta" else dx)[i] = t * step * unit
            return self.value(h, dx, inputs)

        # The relative error is step^4.
        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step * unit)

    def compare(self, which, got):
        """Return the error of `got`, relative to k and to the effect of rounded inputs."""
        with mp.workdps(self.digits):
            nothing = [mp.mpf(0)] * (self.coordinates + self.p)
            want = self.derivative(which, nothing)
            error, moved = abs(mp.mpf(float(got)) - want) - SMALLEST, abs(want)
            if error <= TOLERANCE * U * moved:  # the sensitivity need not be computed
                relative = max(0.0, float(error / (U * moved))) if moved else 0.0
                return relative, relative
            relative, tiny = float(error / (U * moved)) if moved else np.inf, mp.mpf(10) ** -10
            for i in range(len(nothing)):
                inputs = [tiny if j == i else mp.mpf(0) for j in range(len(nothing))]
                moved += abs(self.derivative(which, inputs) - want) / tiny
            return relative, float(error / (U * moved)) if moved else np.inf


def errors(kernel, X, Z, stationary=False):
    """Yield the quantity, the points, the error in units of u, and the conditioned error."""
    K, G = kernel(X, Z), kernel.input_gradient(X, Z, np.eye(len(X)))
    for i, (x, z) in enumerate(zip(X, Z, strict=True)):
        exact = Exact(kernel, x, z, stationary)
        W = np.zeros(K.shape)
        W[i, i] = 1.0
        results = {None: K[i, i]}
        results |= {("theta", j): g for j, g in enumerate(kernel.pullback(X, Z, W))}
        results |= {("x", c): g for c, g in enumerate(G[i])}
        for which, got in results.items():
            yield (which or ("k",))[0], (x, z), *exact.compare(which, got)


def agree(kernel, X, Z, stationary=False, tolerance=TOLERANCE):
    for which, (x, z), relative, explained in errors(kernel, X, Z, stationary):
        assert explained <= tolerance, (
            f"{kernel}: {which} at {x}, {z} is off by {relative:.3g} u, {explained:.3g} times what "
            f"rounding explains"
        )


# ---------------------------------------------------------------------- points


def around(length, columns=1, distances=(1e-16, 1e-8, 1e-3, 0.7, 3.0, 12.0, 1e8, 1e16)):
    """Return pairs at many distances in units of the length scale, near 0 and 1e8 lengths away."""
    at, direction = np.array([1.0, -1.0, 0.5])[:columns], np.array([1.0, -0.6, 0.3])[:columns]
    X = np.array([length * offset * at for offset in (0.0, 1e8) for _ in distances])
    Z = X + length * np.outer(np.tile(distances, 2), direction)
    apart = np.any(X != Z, axis=1)  # the smallest distances are lost next to 1e8
    return X[apart], Z[apart]


def everywhere():
    """Return pairs of vectors of many sizes."""
    rng = np.random.default_rng(0)
    sizes = np.array([1e-16, 1e-8, 1e-3, 1.0, 1.0, 10.0, 1e8, 1e8])[:, None]
    others = np.array([1e-16, 1.0, 1e-3, 1.0, 1.0, 10.0, 1e8, 1e-8])[:, None]
    return sizes * rng.normal(size=(8, 3)), others * rng.normal(size=(8, 3))


def moderate():
    """Return pairs of vectors for kernels that overflow early."""
    X, Z = everywhere()
    return X[:-2], Z[:-2]


CENTRES = [[0.0, 0.0, 0.0], [1.0, -1.0, 0.5], [0.3, 0.8, -1.0], [-1.0, 0.2, 0.4]]
A = [[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 1.5]]

RADIAL = [
    *(
        (family(length), length)
        for length in (1e-8, 1.3, 1e8)
        for family in (RBF, Cauchy, InverseMultiquadric, Multiquadric, ThinPlate, Laplacian)
    ),
    *((ThinPlate(length, degree=4), length) for length in (1e-8, 1.3, 1e8)),
    *((Distance(1.3, exponent=b), 1.3) for b in (1e-8, 0.5, 1.0, 1.5, 2.0)),
    *((Matern(1.3, nu=nu), 1.3) for nu in (0.5, 1.5, 2.5, np.inf)),
    *(
        (RationalQuadratic(1.3, alpha), 1.3)
        for alpha in (1e-16, 1e-8, 1e-2, 0.6, 1.0, 1e2, 1e5, 1e8, 1e15, 1e17)
    ),
]
COLUMNS = [
    RBF((1.0, 1e-4, 1e4)),
    Matern((1.0, 0.5, 2.0), nu=1.5),
    RationalQuadratic((1.0, 0.5, 2.0), alpha=2.0),
    Laplacian((1.0, 0.5, 2.0)),
    2 * RBF() + Cauchy(),
    RBF() * Matern(),
    RBF(2.0) ** 0.5,
    (RBF() * Cauchy()) ** 1.5,
    Exp(RBF()),
]
BESSEL = [1e-8, 0.3, 0.8, 1.0 + 1e-9, 1.1, 3.7, 20.1, 99.7]
VECTORS = [
    Linear(),
    Cosine(),
    Bilinear(A=A),
    Constant(1e-8),
    Polynomial(gamma=1e-8),
    Polynomial(gamma=1e8, coef0=1e8),
    Polynomial(degree=2, coef0=0.0),
    Polynomial(degree=9, gamma=1e-16),
    Linear() ** 2,
    RBF() * Linear(),
    Normalized(Linear()),
    Features(PolynomialBasis(degree=2)),
    Features(QuadraticMap()),
    Stretch(Linear(), (1e-8, 1.0, 1e8)),
]
MODERATE = [
    Sigmoid(),
    Sigmoid(gamma=1e-8, coef0=1e-8),
    Sigmoid(gamma=8.0, coef0=-10.0),
    Exp(0.01 * Linear()),
    Features(SigmoidBasis(centres=(-1.0, 0.0, 0.5), width=0.05)),
    Features(SigmoidBasis(centres=(-1.0, 0.0, 0.5), width=1e8)),
    Features(GaussianBasis(CENTRES, width=1.3)),
    Map(Polynomial(degree=2), GaussianBasis(CENTRES)),
    Select(RBF(0.8), [0, 2]),
    Stretch(Matern(nu=2.5), 1.5),
    Stretch(RBF() + Cosine(), (0.5, 1.0, 2.0)),
    Periodic(1e-8),
    Periodic(1.7, length_scale=1e-4),
    Periodic(1.7, length_scale=1e8),
    Periodic(1e8),
    Periodic(2.0) * RBF(3.0),
]
HISTOGRAMS = [Chi2(1e-8), Chi2(0.4), Chi2(1e8), AdditiveChi2(), HistogramIntersection()]


@pytest.mark.parametrize(("kernel", "length"), RADIAL, ids=str)
def test_functions_of_the_distance(kernel, length):
    agree(kernel, *around(length), stationary=True)


@pytest.mark.parametrize("kernel", COLUMNS, ids=str)
def test_several_columns(kernel):
    agree(kernel, *around(1.0, 3), stationary=True)


@pytest.mark.parametrize("nu", BESSEL)
def test_matern_of_any_smoothness(nu):
    # kve loses digits as its order grows; 13 digits remain.
    X, Z = around(1.3, 1, (1e-8, 1e-2, 0.7, 5.0, 1e9))
    agree(Matern(1.3, nu=nu), X[:8], Z[:8], stationary=True, tolerance=1e-13 / U)


@pytest.mark.parametrize("kernel", VECTORS, ids=str)
def test_functions_of_vectors(kernel):
    agree(kernel, *everywhere())


@pytest.mark.parametrize("kernel", MODERATE, ids=str)
def test_functions_of_vectors_that_are_not_huge(kernel):
    agree(kernel, *moderate())


@pytest.mark.parametrize("kernel", HISTOGRAMS, ids=str)
def test_histograms(kernel):
    agree(kernel, *(np.abs(points) for points in everywhere()))


def test_a_series():
    t = np.array([[1e-8], [0.1], [1.0], [2.0], [3.0]])  # all positive, so that terms do not cancel
    agree(Features(GaussianSeries(length_scale=1.2)), t, t[::-1])


# ---------------------------------------------------------------------- single cases


@pytest.mark.parametrize("nu", [0.3, 0.8, 1.1, 3.7, 99.5])
@pytest.mark.parametrize("far", [1e3, 1e9, 1e10, 1e100])
def test_matern_vanishes_far_away(nu, far):
    k = Matern(1.0, nu=nu)
    assert k([[0.0]], [[far]]) == 0.0
    assert k.pullback([[0.0]], [[far]], np.ones((1, 1))) == 0.0
    assert k.input_gradient([[0.0]], [[far]], np.ones((1, 1))) == 0.0


def test_rational_quadratic_becomes_the_gaussian():
    for alpha in (1e15, 1e17, 1e30):
        assert RationalQuadratic(alpha=alpha)([[0.0]], [[1.0]]) == pytest.approx(np.exp(-0.5))


def test_the_slope_of_a_sigmoid_far_out():
    got = Sigmoid(coef0=0.0).input_gradient([[30.0]], [[1.0]], np.ones((1, 1)))
    assert got == pytest.approx(4.0 * np.exp(-60.0), rel=1e-13)
    with np.errstate(all="raise"):
        steps = SigmoidBasis(centres=[0.0]).pullback([[50.0], [-50.0]], np.ones((2, 1)))
    np.testing.assert_allclose(steps, np.exp(-50.0), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel", [2.0 * RBF(0.5), Fixed(RBF(0.5)), 3.0 * Bounded(RBF(0.5))], ids=str
)
def test_float32_errors_of_wrapped_kernels_are_bounded(kernel):
    X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    error = np.abs(kernel(X).astype(float) - kernel(X.astype(float))).max()
    bound = float32_error_bound(kernel, kernel.prepare(X))
    assert error <= bound * kernel.diag(X[:1]).item() and bound < 1e-4
    assert float32_error_bound(2.0 * Linear(), (2.0 * Linear()).prepare(X)) is None


def test_no_points_have_no_centre():
    assert distant_centre(np.zeros((0, 2))) is None
    assert distant_centre(np.array([[1e6], [1e6 + 1.0]])) == pytest.approx([1e6 + 0.5])
