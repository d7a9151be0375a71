"""Whitened coordinates, Newton's method, and gradient descent in comparison."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    Expansion,
    MemoryBudgetError,
    NotPositiveDefiniteError,
)
from mercer.gram import Landmarks
from mercer.kernels import RBF, Callable, Linear, Polynomial, Precomputed, Sigmoid, White
from mercer.solvers import (
    GradientDescent,
    Logistic,
    Newton,
    Poisson,
    RegularisedRisk,
    Softmax,
    Squared,
    SquaredHinge,
    Status,
    WhitenedCoordinates,
)
from mercer.solvers.risk import _smooth_risk_solvers
from mercer.solvers.risk._hessian import _factor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))


# ---------------------------------------------------------------------- whitened coordinates


@pytest.mark.parametrize(
    ("kernel", "rank"), [(RBF(1.0), 60), (Linear(), 3), (RBF(30.0), None), (Linear() * 0.0, 0)]
)
def test_exact_factor(kernel, rank):
    phi = WhitenedCoordinates.exact(kernel, X)
    assert np.allclose(phi.F @ phi.F.T, kernel(X), atol=1e-11)
    assert rank is None or phi.F.shape == (60, rank)
    assert phi.F.shape[1] < 61 and not phi.approximate


def test_points_of_all_sizes_count():
    """Points with small and large k(x, x) are spanned equally well; `left` is the residual."""
    Z = X * 10.0 ** np.linspace(-4, 4, 60)[:, None]
    K = Polynomial(2, gamma=1.0, coef0=1.0)
    phi = WhitenedCoordinates.exact(K, Z)
    d = np.sqrt(K.diag(Z))
    assert np.abs(phi.F @ phi.F.T - K(Z)).max() / d.max() ** 2 < 1e-14
    assert (np.abs(phi.F @ phi.F.T - K(Z)) / np.outer(d, d)).max() < 1e-12
    assert phi.F.shape[1] == 10 and phi.residual < 1e-14
    assert (
        WhitenedCoordinates.exact(RBF(30.0), X).residual_diagonal.max() < 5e-14
    )  # nothing but rounding
    # one column of 1e10 hides one of 1 from K, but not from `left`
    hidden = WhitenedCoordinates.exact(Linear(), X[:, :2] * [1.0, 1e10])
    assert np.all(hidden.residual_diagonal >= 1e-16 * np.square(1e10 * X[:, 1]))


def test_what_is_missed_is_bounded():
    phi = WhitenedCoordinates.nystroem(RBF(0.5), X, Landmarks(10, "rpcholesky"))
    A = RNG.standard_normal((60, 2))
    R = RBF(0.5)(X) - phi.F @ phi.F.T
    assert 0.5 * np.trace(A.T @ R @ A) <= phi.approximation_bound(A)
    best = [
        Newton().minimize(RegularisedRisk(F, targets(Logistic()), Logistic(), np.ones(60), 1.0))
        for F in (phi.F, WhitenedCoordinates.exact(RBF(0.5), X).F)
    ]
    slopes = Logistic()(phi.F @ best[0].weights + best[0].intercept, targets(Logistic())).slopes
    assert 0 < best[0].value - best[1].value <= phi.approximation_bound(slopes)


def test_duplicates_are_spanned_once():
    phi = WhitenedCoordinates.exact(RBF(), np.concatenate([X, X, X]))
    assert phi.F.shape == (180, 60)
    assert np.array_equal(np.unique(phi.points, axis=0), np.unique(X, axis=0))


@pytest.mark.parametrize("make", [WhitenedCoordinates.exact, WhitenedCoordinates.nystroem])
@pytest.mark.parametrize("kernel", [RBF(1.5), Linear() + 1.0, RBF(1.5) + White(0.2)])
def test_functions_and_norms(make, kernel):
    phi = make(kernel, X)
    W = RNG.standard_normal((phi.F.shape[1], 2))
    f = Expansion(kernel, phi.points, phi.coefficients(W))
    assert np.allclose(f.norm(), np.linalg.norm(W, axis=0), rtol=1e-7)
    if "White" not in repr(kernel):
        assert np.allclose(f(X), phi.F @ W, atol=1e-8)
        assert np.allclose(phi.project(f(phi.points)), W, atol=1e-5)


def test_structured_and_precomputed_points():
    words = ["ab", "abc", "b", "cab", "ab"]
    count = Callable(lambda s, t: float(sum(s.count(c) * t.count(c) for c in set(s))), "pair")
    phi = WhitenedCoordinates.exact(count, words)
    assert phi.F.shape[1] == len(phi.points) <= 3
    K = count(words)
    given = WhitenedCoordinates.exact(Precomputed(), K)
    assert [words[i] for i in given.points] == phi.points
    assert np.array_equal(given.F, phi.F)
    kept = K.copy()
    low = WhitenedCoordinates.nystroem(Precomputed(), K, Landmarks(5))
    assert np.allclose(low.F @ low.F.T, K) and np.array_equal(K, kept)


def test_nystroem_says_what_it_leaves():
    phi = WhitenedCoordinates.nystroem(RBF(0.5), X, Landmarks(10, "rpcholesky"))
    left = np.trace(RBF(0.5)(X) - phi.F @ phi.F.T) / 60
    assert phi.approximate and phi.residual == pytest.approx(left)
    assert "10 landmarks" in phi.message
    given = WhitenedCoordinates.nystroem(RBF(0.5), X, Landmarks(method=X[:7]))
    assert np.allclose(given.F @ given.F[:7].T, RBF(0.5)(X, X[:7]))


def test_what_whitening_refuses():
    with pytest.raises(NotPositiveDefiniteError, match="is not positive semidefinite on these"):
        WhitenedCoordinates.exact(Sigmoid(gamma=1.0, coef0=-2.0), X)
    with pytest.raises(NotPositiveDefiniteError, match="after 0 of 2 pivots the Schur compl"):
        WhitenedCoordinates.exact(Precomputed(), np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(MemoryBudgetError, match=r"exact factor of 60 points .*'nystroem'"):
        WhitenedCoordinates.exact(RBF(), X, max_memory="10 kB")
    with pytest.raises(MemoryBudgetError, match="features of 60 points"):
        WhitenedCoordinates.nystroem(RBF(), X, Landmarks(), max_memory=1000)
    with pytest.raises(ValueError, match=r"the usual cause is that the kernel .* overflows"):
        WhitenedCoordinates.exact(Linear(), 1e200 * X)
    with pytest.raises(ValueError, match=r"W has shape \(2, 1\), but there are 60"):
        WhitenedCoordinates.exact(RBF(), X).coefficients(np.ones((2, 1)))


# ---------------------------------------------------------------------- Newton


def targets(loss, n=60, seed=1):
    rng = np.random.default_rng(seed)
    z = np.sin(2 * X[:n, 0]) + X[:n, 1] + 0.7 * rng.standard_normal(n)
    if isinstance(loss, Softmax):
        return np.eye(3)[np.digitize(z, [-0.6, 0.6])]
    if isinstance(loss, Logistic):
        return np.sign(z)[:, None]
    return np.column_stack([np.sign(z), np.sign(X[:n, 2] + z)])


LOSSES = [Logistic(), Softmax(), SquaredHinge(), Squared()]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_finds_what_scipy_finds(loss, intercept):
    F, Y = WhitenedCoordinates.exact(RBF(1.5), X).F, targets(loss)
    v, mu, (m, q) = RNG.uniform(0.2, 2.0, 60), 0.1, (F.shape[1], Y.shape[1])

    def J(x):
        w, b = x[: m * q].reshape(m, q), x[m * q :] * intercept
        local = loss(F @ w + b, Y)
        g = v[:, None] * local.slopes
        value = v @ local.values + 0.5 * mu * np.sum(w * w)
        return value, np.concatenate([(F.T @ g + mu * w).ravel(), intercept * g.sum(axis=0)])

    options = {"maxiter": 10_000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 50}
    theirs = minimize(J, np.zeros((m + 1) * q), jac=True, method="L-BFGS-B", options=options)
    ours = Newton().minimize(RegularisedRisk(F, Y, loss, v, mu, intercept))
    assert ours.value == pytest.approx(theirs.fun, rel=1e-9)
    assert ours.value <= theirs.fun * (1 + 1e-12)
    assert np.allclose(ours.weights, theirs.x[: m * q].reshape(m, q), atol=2e-5)
    assert np.any(ours.intercept) == intercept
    assert J(np.concatenate([ours.weights.ravel(), ours.intercept]))[0] == pytest.approx(ours.value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_against_differences(loss):
    F, Y, rng = WhitenedCoordinates.exact(RBF(1.5), X).F, targets(loss), np.random.default_rng(3)
    risk = RegularisedRisk(F, Y, loss, rng.uniform(0.2, 2.0, 60), 0.3, True)
    w, b = 0.3 * rng.standard_normal((F.shape[1], Y.shape[1])), rng.standard_normal(Y.shape[1])
    dw, db = rng.standard_normal(w.shape), rng.standard_normal(b.shape)

    def at(t):
        return risk.evaluate(w + t * dw, b + t * db, F @ (w + t * dw) + b + t * db)

    g, h = risk.gradient(at(0.0))
    step = 1e-6
    slope = (at(step).value - at(-step).value) / (2 * step)
    assert np.sum(g * dw) + h @ db == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=repr)
def test_the_certificate_holds(loss):
    """The gap bounds the remaining error, also if Newton's method was stopped early."""
    F, Y, v = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(loss), np.ones(60)
    least = Newton(tol=1e-14).minimize(RegularisedRisk(F, Y, loss, v, 1e-6)).value
    for steps in (1, 2):
        with pytest.warns(ConvergenceWarning, match=rf"after {steps} steps \(max_iter={steps}\)"):
            some = Newton(tol=1e-16, max_iter=steps).minimize(RegularisedRisk(F, Y, loss, v, 1e-6))
        assert 1e-9 * least < some.value - least <= some.report.certificate["gap"]
        assert some.report.status is Status.NOT_CONVERGED


def test_nothing_converges_against_its_certificate():
    """If |g|^2 underflows, or rounding stops the iteration far from the minimum."""
    F, Y, v = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(Logistic()), np.ones(60)
    tiny = Newton().minimize(RegularisedRisk(F, Y, Logistic(), v, 1e-300))
    assert tiny.report.status is Status.CONVERGED
    assert 0 < tiny.report.certificate["gap"] <= 1e-6 * tiny.value
    huge = WhitenedCoordinates.exact(Polynomial(3, gamma=1.0, coef0=1.0), 1e4 * X).F
    with pytest.warns(ConvergenceWarning, match="rounding stopped Newton's method after") as seen:
        found = Newton().minimize(RegularisedRisk(huge, Y, Logistic(), v, 1.0))
    assert found.report.status is Status.NOT_CONVERGED and found.n_iter < 20
    assert "Raise max_iter" not in found.report.message and "RuntimeW" not in str(seen.list)
    assert seen[0].filename == __file__


def test_exponential_losses_and_nothing_left():
    """A step that is far too long is halved repeatedly; if J is only rounding, it is a minimum."""
    F = np.linalg.cholesky(RBF(1.0)(np.arange(5.0)[:, None]))
    found = Newton().minimize(
        RegularisedRisk(F, np.full((5, 1), 100.0), Poisson(), np.ones(5), 2.0, False)
    )
    assert found.report.status is Status.CONVERGED and found.n_iter <= 3
    F, Y = WhitenedCoordinates.exact(RBF(1.0), X).F, np.full((60, 1), 0.1)
    flat = Newton().minimize(RegularisedRisk(F, Y, Squared(), np.ones(60), 2.0))
    assert flat.report.status is Status.CONVERGED and flat.n_iter <= 2
    assert flat.intercept == pytest.approx(0.1) and flat.value < 1e-25


def test_intercepts_of_a_class_of_little_weight():
    """The intercepts are optimal for every class: sum_i v_i (y_ic - p_ic) = 0."""
    F, Y = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(Softmax())
    v = np.where(Y[:, 2] == 1, 1e-13, 1.0)
    found = Newton().minimize(RegularisedRisk(F, Y, Softmax(), v, 1.0))
    slopes = Softmax()(F @ found.weights + found.intercept, Y).slopes
    assert np.all(np.abs(v @ slopes) <= 1e-10 * (v @ Y))


def test_an_output_without_curvature():
    """All margins of one output are satisfied at the start, so that its Hessian is 0."""
    F, Y, b = (
        WhitenedCoordinates.exact(RBF(1.0), X).F,
        targets(SquaredHinge()),
        np.array([0.0, 2.0]),
    )
    Y[:, 1] = 1.0
    found = Newton().minimize(
        RegularisedRisk(F, Y, SquaredHinge(), np.ones(60), 1.0), start=(0 * F[:, :2], b)
    )
    assert found.report.status is Status.CONVERGED
    assert np.all(np.isfinite(found.weights)) and np.allclose(found.weights[:, 1], 0.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_path(loss):
    F, Y, v = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(loss), np.ones(60)
    straight = Newton().minimize(RegularisedRisk(F, Y, loss, v, 1e-4))
    stages = Newton(path=0.1).minimize(RegularisedRisk(F, Y, loss, v, 1e-4))
    assert stages.report.status is Status.CONVERGED
    assert stages.value == pytest.approx(straight.value, rel=1e-9)
    # From the trace of the Hessian at 0, where each output has a separate factor.
    most = {"Logistic()": 0.25, "Softmax()": 2 / 9}.get(repr(loss), 2.0) * 60
    n = 1 + int(np.log10(most / 1e-4))
    assert stages.report.message.startswith(f"a path of {n} shifts from 1.0e")
    assert n <= stages.n_iter <= 2 * n + 3
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps"):
        Newton(max_iter=2, path=0.1).minimize(
            RegularisedRisk(F, targets(Logistic()), Logistic(), v, 1e-6)
        )


@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.7, np.inf], ids=["separable", "noisy", "labels drawn"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_few_factors(q, noise, scale):
    """At most 15 factorisations of the Hessian, from C = 1e-3 to C = 1e6."""
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((150, 3))
    z = np.sin(2 * Z[:, 0]) + Z[:, 1]
    z = rng.standard_normal(150) if noise == np.inf else z + noise * rng.standard_normal(150)
    labels = np.digitize(z, np.quantile(z, np.linspace(0, 1, q + 1)[1:-1]))
    Y, loss = (np.eye(3)[labels], Softmax()) if q == 3 else (2.0 * labels[:, None] - 1, Logistic())
    F = WhitenedCoordinates.exact(RBF(scale), Z).F
    for C in 10.0 ** np.arange(-3, 7, 3):
        found = Newton().minimize(RegularisedRisk(F, Y, loss, np.ones(150), 1.0 / C))
        assert found.report.status is Status.CONVERGED
        assert found.n_iter <= 15
        assert found.report.certificate["corrections"] <= 5 * found.n_iter
        assert found.report.certificate["gap"] <= 1e-9 * found.value


@pytest.mark.parametrize("intercept", [True, False])
def test_factored_as_a_whole(intercept, monkeypatch):
    """If blocks take many products, all outputs are factorised together, with the same minimum."""
    F, Y, v = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(Softmax()), np.ones(60)
    whole, parts = [], []
    monkeypatch.setattr(
        _smooth_risk_solvers,
        "_TUNING",
        replace(_smooth_risk_solvers._TUNING, joint_after_products=-1),
    )
    by_whole = Newton().minimize(
        RegularisedRisk(F, Y, Softmax(), v, 1e-4, intercept), log=whole.append
    )
    monkeypatch.setattr(
        _smooth_risk_solvers,
        "_TUNING",
        replace(_smooth_risk_solvers._TUNING, joint_after_products=np.inf),
    )
    by_parts = Newton().minimize(
        RegularisedRisk(F, Y, Softmax(), v, 1e-4, intercept), log=parts.append
    )
    assert by_whole.value == pytest.approx(by_parts.value, rel=1e-11)
    assert np.allclose(by_whole.weights, by_parts.weights, atol=1e-6)
    # The factorisation solves the Newton system, up to the constant that no loss depends on.
    products = [int(text.split()[-2]) for text in whole if ".0: " in text]
    fresh = [int(text.split()[-2]) for text in parts if ".0: " in text]
    assert max(products) <= 5 < max(fresh)


def test_outputs_sum_to_zero():
    Y = targets(Softmax())
    found = Newton().minimize(
        RegularisedRisk(WhitenedCoordinates.exact(RBF(1.0), X).F, Y, Softmax(), np.ones(60), 0.01)
    )
    assert np.abs(found.weights.sum(axis=1)).max() < 1e-8
    assert abs(found.intercept.sum()) < 1e-8


def test_start_and_nothing_to_do():
    F, Y, v = WhitenedCoordinates.exact(RBF(1.0), X).F, targets(Logistic()), np.ones(60)
    cold = Newton().minimize(RegularisedRisk(F, Y, Logistic(), v, 1e-4))
    warm = Newton().minimize(
        RegularisedRisk(F, Y, Logistic(), v, 1e-4), start=(cold.weights, cold.intercept)
    )
    assert warm.n_iter == 1 and warm.report.certificate["corrections"] == 0
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    far = Newton().minimize(
        RegularisedRisk(F, Y, Logistic(), v, 1e-4), start=(1e9 * cold.weights, cold.intercept)
    )
    assert far.value == pytest.approx(cold.value, rel=1e-12)
    empty = Newton().minimize(
        RegularisedRisk(np.zeros((60, 0)), Y, Logistic(), v, 1.0)
    )  # only the intercept
    share = np.mean(Y > 0)
    assert empty.intercept == pytest.approx(np.log(share / (1 - share)))
    said = []
    Newton().minimize(RegularisedRisk(F, Y, Logistic(), v, 1.0), log=said.append)
    assert said[0].startswith("step 1.0: objective")
    again = Newton().minimize(RegularisedRisk(F, Y, Logistic(), v, 1e-4))
    assert np.array_equal(again.weights, cold.weights)


def test_what_newton_refuses():
    for shift in (0.0, -1.0, np.nan):
        for solver in (Newton(), GradientDescent()):
            with pytest.raises(ValueError, match="shift must be positive and finite"):
                solver.minimize(
                    RegularisedRisk(X, targets(Logistic()), Logistic(), np.ones(60), shift)
                )
    for path in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="path must be a factor between 0 and 1"):
            Newton(path=path)


# ---------------------------------------------------------------------- gradient descent


@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=repr)
def test_descent_meets_newton(loss):
    F, Y, v = WhitenedCoordinates.exact(RBF(1.5), X).F, targets(loss), RNG.uniform(0.2, 2.0, 60)
    exact = Newton().minimize(RegularisedRisk(F, Y, loss, v, 0.5))
    slow = GradientDescent(tol=1e-12).minimize(RegularisedRisk(F, Y, loss, v, 0.5))
    assert slow.report.status is Status.CONVERGED
    assert slow.n_iter > 10 * exact.n_iter
    assert exact.value <= slow.value <= exact.value * (1 + 2e-12)
    # R is 0.5-strongly convex.
    assert np.linalg.norm(slow.weights - exact.weights) <= np.sqrt(2 * 1e-12 * slow.value / 0.5)


def test_descent_says_when_it_fails():
    F, Y, v = WhitenedCoordinates.exact(RBF(1.5), X).F, targets(Logistic()), np.ones(60)
    with pytest.warns(ConvergenceWarning, match=r"after 7 iterations \(max_iter=7\).*L / mu = "):
        found = GradientDescent(max_iter=7).minimize(RegularisedRisk(F, Y, Logistic(), v, 1e-5))
    assert found.report.status is Status.NOT_CONVERGED
    with pytest.raises(TypeError, match=r"Lipschitz constants are known, got SquaredHinge\(\)"):
        GradientDescent().minimize(RegularisedRisk(F, Y, SquaredHinge(), v, 1.0))


def test_a_hessian_that_jitter_does_not_repair_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="are not finite, or not positive"):
        _factor(-np.eye(2))
