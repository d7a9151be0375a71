"""CONVERGED and DIRECT are true for every problem, and every other status comes with a warning.

Everything is recomputed here from the matrices themselves.  MERCER_EXAMPLES=2000 tests more
random problems.
"""

import os
import re
import warnings

import numpy as np
import pytest
import zoo
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelLogisticRegressionCV,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    NotPositiveDefiniteError,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from mercer.gram import KernelRows, gram
from mercer.kernels import RBF, Linear, Polynomial, Precomputed, White
from mercer.solvers import (
    Absolute,
    BlockSMO,
    BoxInterior,
    Dual,
    EpsilonInsensitive,
    GradientDescent,
    Huber,
    InteriorPoint,
    Logistic,
    LowRankEigen,
    Newton,
    NormPenaltySolver,
    Penalty,
    Poisson,
    Quantile,
    RegularisedRisk,
    Report,
    Squared,
    SquaredHinge,
    Status,
)
from mercer.testing import check_status

MANY = int(os.environ.get("MERCER_EXAMPLES", "0"))


def draws(examples):
    return settings(max_examples=MANY or examples, deadline=None, derandomize=not MANY)


@st.composite
def factors(draw, most=24):
    """Return F with K = F F^T: badly scaled, singular, clustered, or of fast decaying spectrum."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(2, most)), draw(st.integers(1, most))
    F = rng.normal(size=(n, m))
    kind = draw(st.sampled_from(["plain", "columns", "rows", "clusters", "decay", "mean"]))
    spread = draw(st.floats(0.5, 8.0))
    if kind == "columns":
        F *= 10.0 ** rng.uniform(-spread, spread, size=m)
    elif kind == "rows":
        F *= 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    elif kind == "clusters":
        F = F[rng.integers(0, max(1, n // 3), size=n)] + 10.0**-spread * F
    elif kind == "decay":
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        F = Q * 10.0 ** (-spread * np.arange(n) / n)
    elif kind == "mean":
        F += 10.0**spread
    return F * 10.0 ** draw(st.integers(-4, 4)), rng


def matrix(F):
    K = F @ F.T
    return gram(Precomputed(), 0.5 * (K + K.T))


def recorded(act):
    """Return the result, or None after an error, and the texts of its ConvergenceWarnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        try:
            found = act()
        except (NotPositiveDefiniteError, ValueError):
            found = None
    return found, [str(w.message) for w in said if issubclass(w.category, ConvergenceWarning)]


def has_number(texts, number):
    found = [float(x) for text in texts for x in re.findall(r"\d\.\d+e[+-]\d+|inf", text)]
    return any(x == number or abs(x - number) <= 0.1 * abs(number) for x in found)


# ---------------------------------------------------------------------- systems and eigenpairs


@draws(25)
@given(factors(), st.floats(-13.0, 1.0), st.floats(0.0, 6.0), st.integers(1, 2))
@pytest.mark.parametrize("solver", zoo.LINEAR_SOLVERS, ids=repr)
def test_systems(solver, drawn, power, spread, columns):
    F, rng = drawn
    K = matrix(F)
    shift = 10.0**power * np.abs(K.diagonal()).max() * 10.0 ** rng.uniform(-spread, 0.0, len(F))
    y = F[:, :1] + 10.0 ** rng.uniform(-6, 1) * rng.normal(size=(len(F), columns))
    check_status(solver, K, y, shift=shift)


@draws(30)
@given(factors(), st.integers(1, 5))
@pytest.mark.parametrize("solver", zoo.EIGEN_SOLVERS, ids=repr)
def test_eigenpairs(solver, drawn, k):
    F, _ = drawn
    k = min(k, len(F) - 1)
    if isinstance(solver, LowRankEigen):  # raises an error if k exceeds the numerical rank
        k = 1
    check_status(solver, matrix(F), k=k)


class Boaster:
    """A solver that returns 0 for every system."""

    def __init__(self, status, residual):
        self.report = Report("Boaster()", status, residual=residual)

    def factorize(self, gram, shift):
        return self

    def solve(self, y):
        return 0.0 * y


@pytest.mark.parametrize(
    ("status", "residual", "law"),
    [
        (Status.CONVERGED, 1e-16, "residual"),
        (Status.CONVERGED, 1.0, "honest status"),
        (Status.DIRECT, 1.0, "honest status"),
        (Status.NOT_CONVERGED, 1.0, "failures are reported"),
    ],
)
def test_the_law_finds_out(status, residual, law):
    with pytest.raises(AssertionError, match=f"law '{law}' fails"):
        check_status(Boaster(status, residual), matrix(np.eye(5)))


class Refusing:
    """A solver that solves no system."""

    def factorize(self, gram, shift):
        raise NotPositiveDefiniteError("not positive definite")


def test_only_indefinite_matrices_are_refused():
    check_status(Refusing(), matrix(np.ones((2, 1))), shift=0.0)  # singular
    with pytest.raises(AssertionError, match="law 'a definite matrix is solved' fails"):
        check_status(Refusing(), matrix(np.eye(5)))


# ---------------------------------------------------------------------- regression tests

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 3))
y = X[:, 0] + rng.normal(size=100)
WEIGHTS = 10.0 ** np.random.default_rng(1).uniform(-5, 5, size=100)


def true_residual(model, K, alpha, w):
    a = model.dual_coef_.astype(np.longdouble)
    root = np.sqrt(w)
    # (S K S + alpha) S^-1 a = S y.
    right = root * y
    gap = right - root * (K.astype(np.longdouble) @ a) - alpha * a / root
    return float(np.linalg.norm(gap.astype(float)) / np.linalg.norm(right))


@pytest.mark.parametrize("solver", ["cg", "cholesky", "auto"])
def test_ridges_below_rounding_say_so(solver):
    """Residuals of 1e-2 and more were reported as converged or direct."""
    model = KernelRidge(1e-8, kernel="linear", solver=solver)
    with pytest.warns(ConvergenceWarning, match="rounding leaves a relative residual of") as said:
        model.fit(X, y, sample_weight=WEIGHTS)
    assert said[0].filename == __file__
    assert model.report_.status is Status.INACCURATE
    assert has_number([str(said[0].message)], model.report_.residual)
    if solver != "cg":
        true = true_residual(model, X @ X.T, 1e-8, WEIGHTS)
        assert 1e-5 < true == pytest.approx(model.report_.residual, rel=0.5)


def test_large_kernel_values_say_so():
    kernel = Polynomial(2, 1.0, 5000.0)
    for solver in ("cg", "mixed"):
        model = KernelRidge(1e-6, kernel=kernel, solver=solver)
        with pytest.warns(ConvergenceWarning, match=r"relative residual"):
            model.fit(X, y)
        assert model.report_.status in (Status.INACCURATE, Status.NOT_CONVERGED)


def test_the_worst_of_several_systems_is_reported():
    """An easy alpha, solved last, must not hide a hard one; nor easy targets the intercept."""
    Y = np.c_[y, y]
    with pytest.warns(ConvergenceWarning, match="rounding leaves"):
        model = KernelRidge(np.array([1e-11, 1.0]), kernel="linear").fit(X, Y)
    assert model.report_.status is Status.INACCURATE
    with pytest.warns(ConvergenceWarning, match="rounding leaves"):
        model = KernelRidge(1e-11, kernel="linear", fit_intercept=True).fit(X, 0.0 * y)
    assert model.report_.status is Status.INACCURATE


def test_small_components_of_kernel_pca():
    scaled = np.random.default_rng(0).normal(size=(100, 3)) * [10.0, 0.02, 0.01]
    model = KernelPCA(3, kernel="linear", eigen_solver="power").fit(scaled)
    assert model.report_.status is Status.CONVERGED
    exact = np.linalg.svd(scaled - scaled.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=1e-8)


def test_gaussian_processes_and_ridge_paths_below_rounding_say_so():
    model = GaussianProcessRegressor(Linear(), alpha=1e-13, optimizer=None)
    with pytest.warns(ConvergenceWarning, match="rounding leaves a relative residual of"):
        model.fit(X, y)
    assert model.report_.status is Status.INACCURATE
    with pytest.warns(ConvergenceWarning, match="rounding leaves a relative residual of"):
        model = KernelRidgeCV([1e-11], kernel="linear").fit(X, y)
    assert model.report_.status is Status.INACCURATE
    a = model.dual_coef_.astype(np.longdouble)
    gap = (y - X @ (X.T @ a) - 1e-11 * a).astype(float)
    true = np.linalg.norm(gap) / np.linalg.norm(y)
    assert 0.1 < true / model.report_.residual < 10.0  # both are rounding errors
    good = KernelRidgeCV([1.0], kernel="linear").fit(X, y)
    assert good.report_.status is Status.DIRECT and good.report_.residual < 1e-13


# ---------------------------------------------------------------------- duals


@st.composite
def duals(draw):
    F, rng = draw(factors(16))
    n = len(F)
    y = rng.normal(size=n) * 10.0 ** draw(st.integers(-2, 2))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    C = 10.0 ** rng.uniform(-1, draw(st.floats(-1, 4)), size=n)
    kind = draw(st.sampled_from(["classify", "nu_classify", "regress", "nu_regress", "one_class"]))
    if kind == "classify":
        return F, Dual.classify(signs, C)
    if kind == "nu_classify":
        return F, Dual.nu_classify(signs, np.ones(n), 2.0 * (n // 2) / n * rng.uniform(0.1, 0.9))
    if kind == "regress":
        return F, Dual.regress(y, C, 0.1)
    if kind == "nu_regress":
        return F, Dual.nu_regress(y, C, 0.5)
    return F, Dual.one_class(C, 0.5)


@draws(60)
@given(duals())
@pytest.mark.parametrize("solver", [BlockSMO(max_iter=20_000), BoxInterior()], ids=repr)
def test_duals(solver, drawn):
    F, dual = drawn
    smo = isinstance(solver, BlockSMO)
    try:
        found = solver.minimize(KernelRows(Linear(), F) if smo else F, dual)
    except ValueError as refused:  # the values of f overflow
        assert "finite" in str(refused)
        reject()
    v = found.variables
    assert np.all(v >= dual.lower) and np.all(v <= dual.upper)
    size = np.abs(v).sum() + np.abs(dual.start).sum()
    for group in range(dual.n_groups):
        mine = dual.groups == group
        assert (
            abs(v[mine].sum() - dual.start[mine].sum())
            <= (1e-12 + 1e-15 * found.report.n_iter) * size
        )
    wide = F.astype(np.longdouble)
    values = wide @ (wide.T @ dual.coefficients(v))
    largest = float(np.square(wide).sum(axis=1).max() * np.abs(v).sum())
    g = dual.gradient(values)
    violation = dual.violation(v, g)
    rounding = 1e-13 * largest
    if found.report.status is Status.CONVERGED:
        assert violation <= 11.0 * solver.tol  # tol, plus rounding
    else:
        assert found.report.status is Status.NOT_CONVERGED and found.report.message
    assert abs(violation - found.report.residual) <= 0.01 * abs(violation) + rounding
    # For this v and any m, the gap is the difference of the primal and the dual objective.
    m = found.multipliers.astype(np.longdouble)[dual.groups]
    over = g - m
    gap = np.where(over > 0, over * (v - dual.lower), -over * (dual.upper - v)).sum()
    width = float((dual.upper - dual.lower).sum())
    noise = 1e-13 * (largest + np.abs(dual.linear).max())
    assert abs(gap - found.report.certificate["gap"]) <= 1e-6 * abs(gap) + noise * width


def test_polishing_keeps_the_sums_where_K_is_large():
    """Sum constraints of size 1 next to a K of 1e9 used to have only eight digits."""
    F = np.array(
        [[13, -13, 64, 10], [-54, 36, 130, 95], [-70, -127, -62, 4], [-233, -22, -125, -73]]
    )
    y, C = np.array([-0.54, -0.32, 0.41, 1.04]), np.array([0.11, 0.13, 0.47, 0.44])
    dual = Dual.nu_regress(y, C, 0.5)
    for scale in (100.0, 1e3, 1e4):
        found = BlockSMO().minimize(KernelRows(Linear(), scale * F), dual)
        assert found.report.status is Status.CONVERGED
        for group in (0, 1):
            mine = dual.groups == group
            total = found.variables[mine].sum()
            assert total == pytest.approx(dual.start[mine].sum(), rel=1e-13)


@draws(15)
@given(factors(30), st.sampled_from([SVC, SVR, NuSVC, NuSVR, OneClassSVM]), st.booleans())
def test_machines_warn_with_the_number(drawn, kind, primal):
    F, rng = drawn
    labels = np.arange(len(F)) % 2
    y = rng.normal(size=len(F)) if kind in (SVR, NuSVR) else labels
    options = {"nu": 0.3} if kind in (NuSVC, NuSVR, OneClassSVM) else {}
    solver = "primal" if primal else "smo"
    model = kind(kernel="linear", solver=solver, max_iter=50, **options)
    found, said = recorded(lambda: model.fit(F, None if kind is OneClassSVM else y))
    assume(found is not None)
    failed = found.report_.status is Status.NOT_CONVERGED
    assert failed == bool(said) == bool(found.fit_status_)
    assert not failed or has_number(said, found.report_.residual)


# ---------------------------------------------------------------------- risks


@st.composite
def risks(draw, losses):
    F, rng = draw(factors(16))
    n, name = len(F), draw(st.sampled_from(losses))
    F = F / np.linalg.norm(F) * 10.0 ** draw(st.integers(-2, 3))
    weights = 10.0 ** rng.uniform(-draw(st.floats(0.0, 5.0)), 0.0, size=n)
    numbers = rng.normal(size=(n, 1)) * 10.0 ** draw(st.integers(-3, 3))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    loss, Y = {
        "squared": (Squared(), numbers),
        "poisson": (Poisson(), rng.poisson(2.0, size=(n, 1)) + 0.0),
        "hinge": (SquaredHinge(), signs),
        "logistic": (Logistic(), signs),
        "absolute": (Absolute(), numbers),
        "quantile": (Quantile([0.3]), numbers),
        "epsilon": (EpsilonInsensitive(0.1), numbers),
        "huber": (Huber(0.5), numbers),
    }[name]
    if name == "poisson" and not Y.any():
        Y[0] = 1.0
    return F, Y, loss, weights, 10.0 ** draw(st.floats(-8.0, 2.0)), draw(st.booleans())


SMOOTH = ["squared", "poisson", "hinge", "logistic"]
BOUNDED = ["absolute", "quantile", "epsilon", "huber"]


def smooth_gap(F, Y, loss, weights, shift, w, b):
    """Return J, the bound |dJ/dw|^2 / (2 mu), and the gain of a better b, (dJ/db)^2 / (2 J_bb)."""
    wide = F.astype(np.longdouble)
    local = loss(wide @ w + b, Y.astype(np.longdouble))
    slopes = weights[:, None] * local.slopes
    g = wide.T @ slopes + shift * w
    value = float(weights @ local.values + 0.5 * shift * np.sum(w * w))
    bend = max(float(weights @ np.sum(local.diagonal, axis=1)), 1e-300)
    return value, float(np.sum(g * g) / (2.0 * shift)), float(slopes.sum() ** 2 / (2.0 * bend))


@draws(50)
@given(st.data())
@pytest.mark.parametrize(
    ("solver", "losses"),
    [(Newton(), SMOOTH), (GradientDescent(max_iter=300), ["logistic"])],
    ids=["Newton", "GradientDescent"],
)
def test_smooth_risks(solver, losses, data):
    F, Y, loss, weights, shift, intercept = data.draw(risks(losses))
    found, said = recorded(
        lambda: solver.minimize(RegularisedRisk(F, Y, loss, weights, shift, intercept))
    )
    value, gap, push = smooth_gap(F, Y, loss, weights, shift, found.weights, found.intercept)
    origin = float(weights @ np.abs(loss(np.zeros(Y.shape), Y).values))
    if found.report.status is Status.CONVERGED:
        assert not said
        allowed = max(solver.tol * abs(value), 1e-6 * abs(value), 1e-15 * origin)
        assert gap <= 1.01 * allowed
        assert not intercept or push <= 1.01 * allowed
    else:
        assert found.report.status is Status.NOT_CONVERGED
        assert has_number(said, found.report.certificate["gap"] / max(abs(value), 1e-300))
    unseen = 1e-6 * abs(value) + 1e-15 * origin
    assert found.report.certificate["gap"] == pytest.approx(gap, rel=0.1, abs=unseen)


def conjugate(loss, a, c):
    """Return sum_i c_i h*(a_i / c_i) for the loss h of r = y - f."""
    if isinstance(loss, Huber):
        return float(np.sum(a * a / (4.0 * c)))
    return float(getattr(loss, "epsilon", 0.0) * np.sum(np.abs(a)))


def feasible(a, loss, c, intercept):
    """Return multipliers in their box, which sum to 0 if there is an intercept."""
    low, high = -c * loss.below, c * loss.above
    a = np.clip(a, low, high)
    if intercept:
        for _ in range(60):
            total = a.sum()
            room = high - a if total < 0 else a - low
            if not room.sum() > 0 or not total:
                break
            a = np.clip(a - total * room / room.sum(), low, high)
    return a


@draws(50)
@given(risks(BOUNDED))
def test_bounded_risks(drawn):
    F, Y, loss, weights, shift, intercept = drawn
    solver = InteriorPoint()
    found, said = recorded(
        lambda: solver.minimize(RegularisedRisk(F, Y, loss, weights, shift, intercept=intercept))
    )
    check_dual(F, Y, loss, weights, intercept, found, said, solver.tol, 0.5 * shift)


@draws(25)
@given(risks([*BOUNDED, "squared", "logistic"]), st.sampled_from(["ridge", "norm"]))
def test_machines(drawn, penalty):
    F, Y, loss, weights, alpha, intercept = drawn
    solver = NormPenaltySolver()
    made = Penalty.of(penalty, alpha)
    found, said = recorded(
        lambda: solver.minimize(RegularisedRisk(F, Y, loss, weights, intercept=intercept), made)
    )
    assume(found is not None)
    status, known = found.report.status, found.report.certificate
    w, t = found.weights, float(np.linalg.norm(found.weights))
    value = float(weights @ loss(F @ w + found.intercept, Y).values) + made.value(t)
    assert known["objective"] == pytest.approx(value, rel=1e-6, abs=1e-300)
    assert (status is Status.CONVERGED) == (not said)
    if status is Status.CONVERGED and t > 0.0:
        # At the minimum, the gradients of the losses and of the penalty cancel.
        assert abs(known["slope"] - made.slope(t)) <= 1e-4 * made.slope(t)


def check_dual(F, Y, loss, weights, intercept, found, said, tol, half):
    """Check a duality gap: no f has an objective below that of feasible multipliers."""
    c = weights[:, None]
    wide = F.astype(np.longdouble)
    losses = float(weights @ loss(wide @ found.weights + found.intercept, Y).values)
    value = losses + half * float(np.sum(np.square(found.weights)))
    a = feasible(found.dual.astype(np.longdouble), loss, c, intercept)
    below = float(np.sum(Y * a)) - conjugate(loss, a, c)
    below -= float(np.sum(np.square(wide.T @ a))) / (4.0 * half)
    best, share = 0.0, np.mean(loss.above / (loss.above + loss.below))
    if intercept:
        best = np.quantile(Y[:, 0], share, weights=weights, method="inverted_cdf")
    constant = float(weights @ loss(np.zeros(Y.shape) + best, Y).values)
    unit = max(value, 1e-4 * constant, 1e-300)
    if found.report.status is Status.CONVERGED:
        assert not said
        assert (value - below) / unit <= 10.0 * tol + 1e-9
    else:
        assert has_number(said, found.gap)


# ---------------------------------------------------------------------- hyperparameter searches


@draws(8)
@given(st.integers(0, 2**32 - 1), st.integers(5, 30), st.integers(-3, 3), st.booleans())
def test_likelihoods(seed, n, power, noisy):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = 10.0**power * (np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=n))
    kernel = 1.0 * RBF(1.0) + White(0.1) if noisy else 1.0 * RBF(1.0)
    model = GaussianProcessRegressor(kernel, alpha=1e-10 if noisy else 1e-2)
    found, said = recorded(lambda: model.fit(X, y))
    assume(found is not None)
    theta = np.asarray(found.kernel_.theta)
    value = found.log_marginal_likelihood
    if found.report_.status is Status.DIRECT:
        slopes = []
        for e in 1e-4 * np.eye(len(theta)):
            slopes.append((value(theta + e) - value(theta - e)) / 2e-4)
        bounds = np.asarray(found.kernel_.bounds)
        free = np.clip(theta + slopes, bounds[:, 0], bounds[:, 1]) - theta
        assert np.abs(free).max() <= 0.02 * np.sqrt(n) + 1e-3
    else:
        assert any("without convergence" in text or "rounding leaves" in text for text in said)


@draws(8)
@given(factors(20), st.floats(-14.0, 0.0), st.booleans())
def test_ridge_searches(drawn, power, intercept):
    F, rng = drawn
    y = F[:, 0] + 0.1 * rng.normal(size=len(F))
    alphas = 10.0 ** np.array([power, power + 1]) * np.square(F).sum(axis=1).max()
    model = KernelRidgeCV(alphas, kernel="linear", fit_intercept=intercept)
    found, said = recorded(lambda: model.fit(F, y))
    assume(found is not None)
    # Far from the origin, a fit with an intercept uses the kernel <x - c, z - c>.
    wide = F.astype(np.longdouble) - np.asarray(getattr(found.kernel_, "offset", 0.0))
    a = found.dual_coef_.astype(np.longdouble)
    gap = y - wide @ (wide.T @ a) - found.alpha_ * a - found.intercept_
    if found.report_.status is Status.DIRECT:
        # With an intercept there are two systems, whose residuals are added.
        size = np.linalg.norm(y) + np.linalg.norm(y - np.mean(y)) + len(y) * abs(np.mean(y))
        size += np.sqrt(len(y)) * abs(found.intercept_)
        assert float(np.linalg.norm(gap.astype(float))) <= 3e-6 * size
    else:
        assert found.report_.status is Status.INACCURATE
        assert has_number(said, found.report_.residual)


def test_logistic_searches():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    good, said = recorded(lambda: KernelLogisticRegressionCV(3, cv=2).fit(X, y))
    assert good.report_.status is Status.CONVERGED and not said
    bad, said = recorded(lambda: KernelLogisticRegressionCV([1e6], cv=2, max_iter=1).fit(X, y))
    assert bad.report_.status is Status.NOT_CONVERGED and said
