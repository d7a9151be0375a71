"""Losses, the interior point method, penalties: against differences, brute force and duality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from mercer import SparseKernelRegressor
from mercer.kernels import RBF
from mercer.solvers import (
    Absolute,
    CustomLoss,
    EpsilonInsensitive,
    Huber,
    InteriorPoint,
    Logistic,
    NormPenaltySolver,
    Penalty,
    Poisson,
    Quantile,
    ReducedExpansionRisk,
    RegularisedRisk,
    Softmax,
    Squared,
    SquaredHinge,
    Status,
)
from mercer.solvers.risk import _loss_interior_point
from mercer.solvers.risk._basis_learning import OverflowingKernelError


class Cosh:
    """A user-defined loss with all derivatives."""

    def value(self, y, f):
        return np.cosh(f - y)

    def gradient(self, y, f):
        return np.sinh(f - y)

    def curvature(self, y, f):
        return np.cosh(f - y)

    def __repr__(self):
        return "Cosh()"


NUMBERS = np.random.default_rng(0).normal(size=(12, 3))
SIGNS = np.where(np.random.default_rng(1).random((12, 3)) < 0.5, -1.0, 1.0)
COUNTS = np.random.default_rng(2).poisson(2.0, size=(12, 3)).astype(float)
UNITS = np.eye(3)[np.random.default_rng(3).integers(3, size=12)]
LOSSES = [
    (Squared(), NUMBERS),
    (Huber(0.7), NUMBERS),
    (Absolute(), NUMBERS),
    (Quantile([0.1, 0.5, 0.8]), NUMBERS),
    (EpsilonInsensitive(0.3), NUMBERS),
    (Poisson(), COUNTS),
    (Logistic(), SIGNS),
    (SquaredHinge(), SIGNS),
    (Softmax(), UNITS),
    (CustomLoss(Cosh()), NUMBERS),
]
every_loss = pytest.mark.parametrize(("loss", "Y"), LOSSES, ids=[repr(x) for x, _ in LOSSES])


# ---------------------------------------------------------------------- losses


@every_loss
def test_derivatives_agree_with_differences(loss, Y):
    F = np.random.default_rng(4).normal(size=Y.shape) + 0.01  # no kink within a step
    local, h = loss(F, Y), 1e-6
    for c, e in enumerate(np.eye(3)):
        up, down = loss(F + h * e, Y), loss(F - h * e, Y)
        np.testing.assert_allclose(
            (up.values - down.values) / (2 * h), local.slopes[:, c], atol=1e-7, rtol=1e-7
        )
        second = (up.slopes - down.slopes) / (2 * h)
        np.testing.assert_allclose(second, local.times(e * np.ones_like(F)), atol=1e-7, rtol=1e-6)
        diagonal = np.broadcast_to(local.diagonal, F.shape)[:, c]
        np.testing.assert_allclose(second[:, c], diagonal, atol=1e-7, rtol=1e-6)


@every_loss
@given(seed=st.integers(0, 100))
def test_losses_are_convex(loss, Y, seed):
    F, G = np.random.default_rng(seed).normal(scale=2.0, size=(2, *Y.shape))
    middle = loss((F + G) / 2, Y).values
    assert np.all(middle <= (loss(F, Y).values + loss(G, Y).values) / 2 + 1e-12)


def test_losses_by_hand():
    y, f = np.array([[3.0], [0.0], [0.0]]), np.array([[1.0], [0.5], [2.0]])
    np.testing.assert_allclose(Huber(1.0)(f, y).values, [3.0, 0.25, 3.0])
    np.testing.assert_allclose(Absolute()(f, y).values, [2.0, 0.5, 2.0])
    np.testing.assert_allclose(Quantile(0.9)(f, y).values, [1.8, 0.05, 0.2])
    np.testing.assert_allclose(EpsilonInsensitive(0.5)(f, y).values, [1.5, 0.0, 1.5])
    np.testing.assert_allclose(Poisson()(f, y).values, np.exp(f[:, 0]) - [3.0, 0.0, 0.0])
    assert Absolute()(y, y).slopes.tolist() == [[0.0]] * 3  # the middle of -1 and 1
    huge = Poisson()(np.full((1, 1), 1e4), np.ones((1, 1)))
    assert huge.values[0] == np.inf


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"value": lambda y, f: np.log(f)}, r"value of .* is -inf at y = .*f = 0.*logarithm"),
        ({"curvature": lambda y, f: np.full(len(f), np.nan)}, "curvature of .* is nan"),
        ({"gradient": lambda y, f: np.sinh(y - f)}, "finite differences of its value give"),
        ({"gradient": lambda y, f: np.zeros((2, 2))}, r"shape \(2, 2\) for 12 points"),
    ],
)
def test_a_wrong_loss_is_refused(change, says):
    own = Cosh()
    for name, function in change.items():
        setattr(own, name, function)
    with pytest.raises(ValueError, match=says):
        CustomLoss(own).check(NUMBERS)


def test_a_loss_that_is_not_convex_is_refused():
    own = Cosh()
    own.curvature = lambda y, f: -np.cosh(f - y)
    with pytest.raises(ValueError, match=r"curvature of .* < 0 at y = .*not convex"):
        CustomLoss(own)(NUMBERS, NUMBERS)


@pytest.mark.parametrize("factor", [0.0, 0.4, 2.5])
def test_a_wrong_curvature_is_reported(factor):
    own = Cosh()
    own.curvature = lambda y, f: factor * np.cosh(f - y)
    with pytest.warns(UserWarning, match=r"curvature of Cosh\(\) is .*gradient give") as seen:
        CustomLoss(own).check(NUMBERS)
    assert seen[0].filename == __file__
    own.curvature = lambda y, f: 1.5 * np.cosh(f - y)  # a user-defined upper bound of the curvature
    CustomLoss(own).check(NUMBERS)


def test_a_kink_of_the_gradient_is_not_an_error():
    """At y f = 1, differences of the squared hinge mix two curvatures."""

    class Hinge:
        def value(self, y, f):
            return SquaredHinge()(f[:, None], y[:, None]).values

        def gradient(self, y, f):
            return SquaredHinge()(f[:, None], y[:, None]).slopes[:, 0]

        def curvature(self, y, f):
            return SquaredHinge()(f[:, None], y[:, None]).diagonal[:, 0]

    CustomLoss(Hinge()).check(SIGNS)


def test_a_loss_of_ones_own_cannot_change_the_data():
    own = Cosh()

    def value(y, f):
        f -= y
        return np.cosh(f)

    own.value = value
    F, Y = NUMBERS.copy(), SIGNS.copy()
    with pytest.raises(ValueError, match="read-only"):
        CustomLoss(own)(F, Y)
    F[0] = 1.0  # the arrays of the caller are still writeable
    with pytest.raises(TypeError, match=r"loss is the class Cosh, but must be an object: Cosh\(\)"):
        CustomLoss(Cosh)


def test_a_loss_may_end_somewhere():
    """-log(1 - f) is infinite for f >= 1; such values are never accepted."""

    class Barrier:
        def value(self, y, f):
            return (f - y) ** 2 - np.log(1.0 - f)

        def gradient(self, y, f):
            return 2.0 * (f - y) + 1.0 / (1.0 - f)

        def curvature(self, y, f):
            return 2.0 + 1.0 / (1.0 - f) ** 2

    loss, Y = CustomLoss(Barrier()), np.array([[5.0], [-1.0], [9.0]])
    loss.check(Y)
    found = NormPenaltySolver().minimize(
        RegularisedRisk(np.eye(3), Y, loss, np.ones(3)), Penalty.of("ridge", 1e-3)
    )
    f = found.weights[:, 0] + found.intercept
    assert np.all(f < 1.0)
    assert found.report.status is Status.CONVERGED


# ---------------------------------------------------------------------- the interior point


def problem(seed=0, n=40, m=6, q=1):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, m))
    return F, np.repeat(F @ rng.normal(size=(m, 1)) + rng.standard_t(3, size=(n, 1)), q, axis=1)


BOUNDED = [Absolute(), Quantile(0.2), EpsilonInsensitive(0.5), Huber(0.4)]


def dual_value(loss, F, y, a, c, shift):
    """Return the dual value: -sum_i c_i loss*(-a_i / c_i) - |F^T a|^2 / (2 shift)."""
    s, t = np.maximum(a, 0.0), np.maximum(-a, 0.0)
    room = 1e-9 * c
    assert np.all(s <= c * loss.above + room)
    assert np.all(t <= c * loss.below + room)
    conjugate = loss.epsilon * (s + t) + 0.5 * loss.bend * (s * s + t * t) / c
    return np.sum(y * a) - np.sum(conjugate) - 0.5 / shift * np.sum((F.T @ a) ** 2)


@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shift", [1e-4, 0.3, 1e4])
def test_duality_proves_the_minimum(loss, intercept, shift):
    F, Y = problem()
    c = np.random.default_rng(1).uniform(0.2, 3.0, size=len(F))
    found = InteriorPoint(tol=1e-11).minimize(
        RegularisedRisk(F, Y, loss, c, shift, intercept=intercept)
    )
    f = F @ found.weights + found.intercept
    primal = c @ loss(f, Y).values + 0.5 * shift * np.sum(found.weights**2)
    dual = dual_value(loss, F, Y[:, 0], found.dual[:, 0], c, shift)
    assert found.value == pytest.approx(primal, rel=1e-12)
    assert primal - dual <= 1e-9 * primal
    np.testing.assert_allclose(F.T @ found.dual, shift * found.weights, atol=1e-8 * shift)
    if intercept:
        assert abs(found.dual.sum()) <= 1e-8
    assert found.report.status is Status.CONVERGED
    assert found.n_iter <= 25


@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
def test_no_direction_decreases_the_objective(loss):
    """The problem is convex: no direction decreases the objective at the minimum."""
    F, Y = problem(seed=2)
    found = InteriorPoint(tol=1e-12).minimize(RegularisedRisk(F, Y, loss, np.ones(len(F)), 0.5))
    rng = np.random.default_rng(0)
    for size in 10.0 ** rng.uniform(-6, 0, size=200):
        w = found.weights + size * rng.normal(size=found.weights.shape)
        b = found.intercept + size * rng.normal()
        assert loss(F @ w + b, Y).values.sum() + 0.25 * np.sum(w * w) >= found.value - 1e-9


def test_ordered_quantiles_are_the_linear_program():
    """For a negligible penalty, the minimum is that of a linear program, found by HiGHS."""
    F, Y = problem(seed=3, n=25, m=4, q=3)
    Y = Y + np.random.default_rng(0).normal(size=(25, 1)) * 3 * np.abs(F[:, :1])
    levels, (n, m) = np.array([0.3, 0.45, 0.6]), F.shape
    G = np.column_stack([F, np.ones(n)])
    # Variables: three times (w, b), then u and v for each residual: f + u - v = y.
    k = 3 * (m + 1)
    cost = np.concatenate([np.zeros(k), np.repeat(levels, n), np.repeat(1 - levels, n)])
    blocks = np.kron(np.eye(3), G)
    equal = np.hstack([blocks, np.eye(3 * n), -np.eye(3 * n)])
    order = np.hstack([np.kron([[1, -1, 0], [0, 1, -1]], G), np.zeros((2 * n, 6 * n))])
    bounds = [(None, None)] * k + [(0, None)] * (6 * n)
    theirs = linprog(cost, order, np.zeros(2 * n), equal, Y.T.ravel(), bounds)
    solver = InteriorPoint(tol=1e-9)
    ours = solver.minimize(RegularisedRisk(F, Y, Quantile(levels), np.ones(n), 1e-9, ordered=True))
    free = solver.minimize(RegularisedRisk(F, Y, Quantile(levels), np.ones(n), 1e-9))
    assert ours.value == pytest.approx(theirs.fun, rel=1e-7)
    assert free.value < theirs.fun - 1e-3  # the order constraint is active here
    f = G @ np.vstack([ours.weights, ours.intercept])
    assert np.diff(f, axis=1).min() >= -1e-9


def test_ordered_quantiles_against_a_general_solver():
    F, Y = problem(seed=5, n=12, m=3, q=2)
    levels, n, m = np.array([0.5, 0.55]), 12, 3
    loss, shift = Quantile(levels), 0.8
    ours = InteriorPoint(tol=1e-11).minimize(
        RegularisedRisk(F, Y, loss, np.ones(n), shift, ordered=True)
    )
    G = np.column_stack([F, np.ones(n)])
    k = 2 * (m + 1)

    def parts(x):
        return G @ x[:k].reshape(m + 1, 2), x[k : k + 2 * n].reshape(n, 2), x[k + 2 * n :]

    def cost(x):
        _, u, v = parts(x)
        w = x[:k].reshape(m + 1, 2)[:m]
        return (
            np.sum(levels * u) + np.sum((1 - levels) * v.reshape(n, 2)) + shift / 2 * np.sum(w**2)
        )

    def equal(x):
        f, u, v = parts(x)
        return (f + u - v.reshape(n, 2) - Y).ravel()

    theirs = minimize(
        cost,
        np.concatenate([np.zeros(k), np.abs(Y).ravel(), np.abs(Y).ravel()]),
        method="SLSQP",
        bounds=[(None, None)] * k + [(0, None)] * (4 * n),
        constraints=[
            {"type": "eq", "fun": equal},
            {"type": "ineq", "fun": lambda x: np.diff(parts(x)[0], axis=1).ravel()},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert theirs.success
    assert ours.value == pytest.approx(theirs.fun, rel=1e-6)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_weight_of_two_is_two_points(ordered):
    F, Y = problem(seed=6, q=3)
    c = np.random.default_rng(0).integers(1, 4, size=len(F))
    often = np.repeat(np.arange(len(F)), c)
    loss, solver = Quantile([0.2, 0.4, 0.7]), InteriorPoint()
    one = solver.minimize(RegularisedRisk(F, Y, loss, c.astype(float), 0.3, ordered=ordered))
    two = solver.minimize(
        RegularisedRisk(F[often], Y[often], loss, np.ones(len(often)), 0.3, ordered=ordered)
    )
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(one.intercept, two.intercept, rtol=1e-9)


def test_units_do_not_matter():
    F, Y = problem(seed=7)
    one = InteriorPoint().minimize(
        RegularisedRisk(F, Y, EpsilonInsensitive(0.2), np.ones(len(F)), 0.3)
    )
    two = InteriorPoint().minimize(
        RegularisedRisk(F, 1e6 * Y + 1e9, EpsilonInsensitive(0.2e6), np.ones(len(F)), 0.3e-6)
    )
    np.testing.assert_allclose(two.weights, 1e6 * one.weights, rtol=1e-5, atol=1.0)
    assert two.report.status is Status.CONVERGED


@pytest.mark.parametrize("s", [1e-11, 1e-6, 1e6])
def test_squares_of_units_do_not_matter(s):
    F, Y = problem(seed=7)
    one = InteriorPoint().minimize(RegularisedRisk(F, Y, Huber(0.1), np.ones(len(F)), 0.3))
    two = InteriorPoint().minimize(RegularisedRisk(F, s * Y, Huber(0.1 * s), np.ones(len(F)), 0.3))
    np.testing.assert_allclose(two.weights, s * one.weights, rtol=1e-6)
    assert two.gap <= 1e-9 * two.value


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_nothing_to_fit(intercept, ordered):
    """No coordinates, coordinates of 0, or constant targets."""
    loss = Quantile([0.2, 0.6])
    for F in (np.zeros((5, 0)), np.zeros((5, 2)), np.ones((5, 1))):
        for y in (np.zeros((5, 2)), np.full((5, 2), 7.0)):
            found = InteriorPoint().minimize(
                RegularisedRisk(F, y, loss, np.ones(5), 1e-3, intercept=intercept, ordered=ordered)
            )
            assert found.report.status is Status.CONVERGED
            if intercept:
                np.testing.assert_allclose(F @ found.weights + found.intercept, y, atol=1e-8)
            f = np.sum(F @ found.weights, axis=1)
            by_dual = np.sum(F @ (F.T @ found.dual) / 1e-3, axis=1)
            np.testing.assert_allclose(by_dual, f, atol=1e-4)


def test_too_few_steps_are_reported():
    F, Y = problem()
    says = r"after 2 steps with a duality gap of .* Raise"
    with pytest.warns(ConvergenceWarning, match=says) as seen:
        found = InteriorPoint(max_iter=2).minimize(
            RegularisedRisk(F, Y, Absolute(), np.ones(len(F)), 1.0)
        )
    assert found.report.status is Status.NOT_CONVERGED
    assert found.gap > 0
    assert seen[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=says) as seen:
        NormPenaltySolver(max_iter=2).minimize(
            RegularisedRisk(F, Y, Absolute(), np.ones(len(F))), Penalty.of("norm", 1.0)
        )
    assert seen[0].filename == __file__


# ---------------------------------------------------------------------- penalties

PENALTIES = {
    "norm": "norm",
    "quartic": (lambda t: t**4, lambda t: 4 * t**3),
    "cosh": (np.cosh, np.sinh),
    "free up to 1": (lambda t: max(t - 1, 0) ** 2, lambda t: 2 * max(t - 1, 0)),
}
FITTED = [Squared(), Huber(0.4), Absolute(), CustomLoss(Cosh())]


@pytest.mark.parametrize("loss", FITTED, ids=repr)
@pytest.mark.parametrize("name", PENALTIES)
def test_any_penalty_is_minimised(loss, name):
    """The problem is convex: the objective is not lower along random rays and directions."""
    F, Y = problem(seed=8, m=3)
    penalty = Penalty.of(PENALTIES[name], 2.0)
    found = NormPenaltySolver(tol=1e-12).minimize(
        RegularisedRisk(F, Y, loss, np.ones(len(F))), penalty
    )

    def objective(w, b):
        return loss(F @ w + b, Y).values.sum() + penalty.value(np.linalg.norm(w))

    best = objective(found.weights, found.intercept)
    certificate = found.report.certificate
    assert certificate["objective"] == pytest.approx(best, rel=1e-10)
    assert certificate["stationarity"] < 1e-6
    assert certificate["slope"] == pytest.approx(penalty.slope(certificate["norm"]), rel=1e-6)
    rng = np.random.default_rng(0)
    for size in 10.0 ** rng.uniform(-5, 0, size=100):
        w = found.weights + size * rng.normal(size=found.weights.shape)
        assert objective(w, found.intercept + size * rng.normal()) >= best - 1e-8 * best
        assert objective(found.weights * (1 + size), found.intercept) >= best - 1e-8 * best


@pytest.mark.parametrize("loss", [Squared(), Huber(0.4)], ids=repr)
def test_the_norm_makes_zero(loss):
    """f = 0 if and only if the slope of the losses at 0 is at most alpha."""
    F, Y = problem(seed=9, m=3)
    ones = np.ones(len(F))
    b = (
        NormPenaltySolver(tol=1e-13)
        .minimize(RegularisedRisk(0 * F, Y, loss, ones), Penalty.of("ridge", 1.0))
        .intercept
    )
    edge = np.linalg.norm(F.T @ loss(np.zeros_like(Y) + b, Y).slopes)
    above = NormPenaltySolver().minimize(
        RegularisedRisk(F, Y, loss, ones), Penalty.of("norm", 1.001 * edge)
    )
    below = NormPenaltySolver().minimize(
        RegularisedRisk(F, Y, loss, ones), Penalty.of("norm", 0.999 * edge)
    )
    assert not above.weights.any()
    assert not above.dual.any()
    assert above.report.certificate["shift"] == np.inf
    assert above.report.certificate["slope"] == pytest.approx(edge, rel=1e-3)
    np.testing.assert_allclose(above.intercept, b, rtol=1e-6)
    assert 0 < np.linalg.norm(below.weights) < 0.03


@pytest.mark.parametrize("loss", [Squared(), Huber(0.4), Absolute()], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_small_norm_is_not_nothing(loss, intercept):
    """If |f| is 1e-5, and the shift far below R, because of the units of F, f is not set to 0."""
    F, Y = problem(seed=9, m=3)
    ones = np.ones(len(F))
    options = {"intercept": intercept}
    one = NormPenaltySolver().minimize(
        RegularisedRisk(F, Y, loss, ones, **options), Penalty.of("norm", 1.0)
    )
    two = NormPenaltySolver().minimize(
        RegularisedRisk(1e5 * F, Y, loss, ones, **options), Penalty.of("norm", 1e5)
    )
    np.testing.assert_allclose(1e5 * two.weights, one.weights, rtol=1e-4)
    tiny = NormPenaltySolver().minimize(
        RegularisedRisk(1e5 * F, Y, loss, ones, **options), Penalty.of("norm", 0.1)
    )
    free = NormPenaltySolver().minimize(
        RegularisedRisk(F, Y, loss, ones, **options), Penalty.of("ridge", 1e-7)
    )
    np.testing.assert_allclose(1e5 * tiny.weights, free.weights, rtol=1e-3)
    assert tiny.report.status is Status.CONVERGED


@pytest.mark.parametrize("intercept", [True, False])
def test_the_norm_makes_zero_at_a_kink(intercept):
    """At a kink, f = 0 depends on the smallest subgradient, by a linear program for m = 1."""
    F, Y = problem(seed=9, m=1)
    Y[::13] = np.median(Y) if intercept else 0.0  # ties: subgradients from -1 to 1
    b = np.median(Y) if intercept else 0.0
    n, free = len(F), Y[:, 0] == b
    a = np.sign(Y[:, 0] - b)
    bounds = [(-1, 1) if tie else (x, x) for tie, x in zip(free, a, strict=True)]
    # t >= |F^T a| with sum a = 0.
    above = np.vstack([np.append(F[:, 0], -1.0), np.append(-F[:, 0], -1.0)])
    equal = np.append(np.ones(n), 0.0)[None] if intercept else None
    least = linprog(
        np.append(np.zeros(n), 1.0), above, [0, 0], equal, [0] if intercept else None,
        [*bounds, (0, None)],
    ).fun  # fmt: skip
    for factor, nothing in ((1.001, True), (0.99, False)):
        penalty = Penalty.of("norm", factor * least)
        found = NormPenaltySolver().minimize(
            RegularisedRisk(F, Y, Absolute(), np.ones(n), intercept=intercept), penalty
        )
        assert (found.report.certificate["norm"] == 0.0) == nothing
        assert found.report.status is Status.CONVERGED
        if nothing:
            assert found.report.certificate["slope"] <= 1.001 * least
            assert found.report.certificate["gap"] <= 1e-6 * np.abs(Y).sum()


def test_a_penalty_that_is_not_convex_has_a_local_minimum():
    F, Y = problem(seed=10, m=3)
    penalty = Penalty.of((lambda t: np.log1p(t * t), lambda t: 2 * t / (1 + t * t)), 5.0)
    found = NormPenaltySolver(tol=1e-12).minimize(
        RegularisedRisk(F, Y, Squared(), np.ones(len(F))), penalty
    )

    def objective(w):
        return Squared()(F @ w + found.intercept, Y).values.sum() + penalty.value(np.linalg.norm(w))

    for scale in (0.9, 0.99, 1.01, 1.1):
        assert objective(scale * found.weights) > objective(found.weights)
    assert found.report.certificate["stationarity"] < 1e-8


@pytest.mark.parametrize(
    ("penalty", "says"),
    [
        ((np.cosh, lambda t: 2 * np.sinh(t)), r"derivative of the penalty g .* differences"),
        ((lambda t: -t, lambda t: -1.0), "must not decrease with the norm"),
        ((lambda t: t, lambda t: np.nan), "must not decrease with the norm"),
        ((np.cosh,), r"a pair of functions \(g, dg\)"),
        ((np.cosh, 3), r"a pair of functions \(g, dg\)"),
    ],
)
def test_a_wrong_penalty_is_refused(penalty, says):
    F, Y = problem()
    with pytest.raises(ValueError, match=says):
        NormPenaltySolver().minimize(
            RegularisedRisk(F, Y, Squared(), np.ones(len(F))), Penalty.of(penalty, 1.0)
        )


def test_an_unbounded_penalty_is_reported():
    F, Y = problem(m=2)
    flat = Penalty.of((lambda t: 0.0, lambda t: 0.0), 1.0)
    with pytest.warns(
        ConvergenceWarning, match="The usual cause is a penalty that is flat"
    ) as seen:
        found = NormPenaltySolver().minimize(
            RegularisedRisk(F, Y, Squared(), np.ones(len(F))), flat
        )
    assert found.report.status is Status.NOT_CONVERGED
    assert seen[0].filename == __file__


def test_singular_systems_of_the_interior_point_method_end_the_search(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    risk = RegularisedRisk(X, X[:, :1], Quantile([0.5]), np.ones(40))
    monkeypatch.setattr(_loss_interior_point, "cholesky_or_none", lambda A: None)
    with pytest.warns(ConvergenceWarning, match="the interior-point method stopped after 0 steps"):
        assert InteriorPoint().minimize(risk).report.status is Status.NOT_CONVERGED


def test_multipliers_with_another_sum_are_no_lower_bound():
    X = np.random.default_rng(0).normal(size=(40, 2))
    risk = RegularisedRisk(X, X[:, :1], Quantile([0.5]), np.ones(40))
    problem = _loss_interior_point._BarrierProblem(risk)
    assert problem.dual_objective(np.full((40, 1), 1e6), problem.start()) == -np.inf


def test_vectors_for_which_the_kernel_overflows_are_avoided(monkeypatch):
    calls, fit_weights = [], ReducedExpansionRisk.fit_weights

    def overflowing(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OverflowingKernelError("k is not finite")
        return fit_weights(self, *arguments)

    monkeypatch.setattr(ReducedExpansionRisk, "fit_weights", overflowing)
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SparseKernelRegressor(kernel=RBF(), n_vectors=3, random_state=0).fit(X, X[:, 0])
    assert len(calls) > 3 and model.score(X, X[:, 0]) > 0.9
