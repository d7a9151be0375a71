"""SMO for the dual of SVMs: optimality conditions, other solvers, hard cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from mercer import NuSVR
from mercer.gram import KernelRows, _kernel_rows
from mercer.kernels import RBF, Linear, Polynomial, Precomputed
from mercer.solvers import Status
from mercer.solvers.svm import BlockSMO, Dual, _block_smo, _smo_steps
from mercer.solvers.svm._refinement import QPBatch, refine

KINDS = ["classify", "nu_classify", "regress", "nu_regress", "one_class"]
KERNELS = [RBF(1.0), Linear(), Polynomial(2, gamma=1.0, coef0=1.0)]


def problem(kind, seed, n=None):
    """Return a kernel, points, and a dual problem of this type with weights and a random C."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = n or int(rng.integers(5, 60))
    X = rng.normal(size=(n, int(rng.integers(1, 6))))
    C, w = 10 ** rng.uniform(-2, 3) * rng.uniform(0.1, 1, n), rng.uniform(0.5, 2, n)
    signs = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    y, nu = X[:, 0] + 0.3 * rng.normal(size=n), rng.uniform(0.05, 0.9)
    most = 2.0 * min(w[signs > 0].sum(), w[signs < 0].sum()) / w.sum()
    dual = {
        "classify": lambda: Dual.classify(signs, C),
        "nu_classify": lambda: Dual.nu_classify(signs, w, min(nu, 0.99 * most)),
        "regress": lambda: Dual.regress(y, C, 0.1),
        "nu_regress": lambda: Dual.nu_regress(y, C, nu),
        "one_class": lambda: Dual.one_class(w, nu),
    }[kind]()
    return KERNELS[seed % 3], X, dual


def check(kernel, X, dual, found, tol, rounding=1e-9):
    """Check the optimality conditions to tol with a recomputed K, and the reported gap."""
    v = found.variables
    assert np.all(v >= dual.lower) and np.all(v <= dual.upper)
    for k in range(dual.n_groups):
        own = dual.groups == k
        assert v[own].sum() == pytest.approx(dual.start[own].sum(), abs=1e-9 * np.abs(v[own]).sum())
    f = kernel(X) @ found.coefficients
    size = 1.0 + np.abs(f).max()
    assert np.allclose(found.values, f, rtol=0, atol=rounding * size)
    own = found.coefficients != 0
    assert np.allclose(found.values[own], f[own], rtol=0, atol=1e-9 * size)
    g = f[dual.points] + dual.linear
    for k in range(dual.n_groups):
        m, own = found.multipliers[k], dual.groups == k
        assert np.all(g[own & (v > dual.lower)] <= m + tol + 1e-9 * size)
        assert np.all(g[own & (v < dual.upper)] >= m - tol - 1e-9 * size)
    c = found.report.certificate
    assert found.report.status is Status.CONVERGED
    assert 0.0 <= c["gap"] <= c["bound"] + 1e-12 * abs(c["primal"])
    assert c["bound"] <= tol * np.sum(dual.upper - dual.lower)
    assert c["dual"] == pytest.approx(-(0.5 * v @ f[dual.points] + dual.linear @ v), rel=1e-8)
    assert c["primal"] == pytest.approx(c["dual"] + c["gap"])


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_of_a_minimum_on_random_problems(kind):
    for seed in range(60):
        kernel, X, dual = problem(kind, seed)
        check(kernel, X, dual, BlockSMO().minimize(KernelRows(kernel, X), dual), 1e-3)


def tune(monkeypatch, **values):
    """Change tuning parameters of block SMO."""
    monkeypatch.setattr(_block_smo, "_TUNING", replace(_block_smo._TUNING, **values))


@pytest.fixture
def small_blocks(monkeypatch):
    """Nothing is small enough to be solved at once, and blocks hold 16 variables."""
    tune(monkeypatch, max_single_block=0)
    monkeypatch.setattr(_smo_steps, "_MAX_VARIABLES", 16)
    monkeypatch.setattr(_smo_steps, "_MAX_NEW_VARIABLES", 8)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_find_the_same_minimum(kind, small_blocks):
    for seed in range(8):
        kernel, X, dual = problem(kind, seed)
        found = BlockSMO().minimize(KernelRows(kernel, X), dual)
        check(kernel, X, dual, found, 1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_costs_no_accuracy(kind, small_blocks, monkeypatch):
    monkeypatch.setattr(
        _kernel_rows, "_TUNING", replace(_kernel_rows._TUNING, small_matrix_bytes=0)
    )
    _, X, dual = problem(kind, 3, n=200)
    rows = KernelRows(RBF(), X)
    assert rows.dtype == np.float32
    found = BlockSMO(tol=1e-5).minimize(rows, dual)
    f = RBF()(X) @ found.coefficients
    assert dual.violation(found.variables, f[dual.points] + dual.linear) <= 1e-5


def test_single_precision_at_once(monkeypatch):
    monkeypatch.setattr(
        _kernel_rows, "_TUNING", replace(_kernel_rows._TUNING, small_matrix_bytes=0)
    )
    _, X, dual = problem("classify", 3, n=200)
    found = BlockSMO(tol=1e-5).minimize(KernelRows(RBF(), X), dual)
    f = RBF()(X) @ found.coefficients
    assert dual.violation(found.variables, f[dual.points] + dual.linear) <= 1e-5


# SLSQP of SciPy 1.15 evaluates points a rounding error outside the bounds, and warns.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_general_solver_agrees(kind, seed):
    kernel, X, dual = problem(kind, seed, n=12)
    K = kernel(X)[np.ix_(dual.points, dual.points)]
    scale = 1.0 / max(1.0, np.abs(dual.upper - dual.lower).max())
    groups = np.array([dual.groups == k for k in range(dual.n_groups)], dtype=float)
    theirs = minimize(
        lambda v: scale * (0.5 * v @ K @ v + dual.linear @ v),
        dual.start,
        jac=lambda v: scale * (K @ v + dual.linear),
        bounds=list(zip(dual.lower, dual.upper, strict=True)),
        constraints=LinearConstraint(groups, groups @ dual.start, groups @ dual.start),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    found = BlockSMO().minimize(KernelRows(kernel, X), dual)
    value = found.report.certificate["dual"]
    assert value >= -theirs.fun / scale - 1e-6 * (1.0 + abs(value))
    assert value <= -theirs.fun / scale + 1e-4 * (1.0 + abs(value))


def test_small_problems_are_solved_to_the_last_digits():
    for kind in KINDS:
        for seed in range(10):
            kernel, X, dual = problem(kind, seed)
            found = BlockSMO().minimize(KernelRows(kernel, X), dual)
            size = 1.0 + np.abs(found.values).max() + np.abs(dual.linear).max()
            assert found.report.residual <= 1e-10 * size


def test_two_points_have_the_margin_of_the_book():
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    found = BlockSMO().minimize(
        KernelRows(Linear(), X), Dual.classify(np.array([-1.0, 1.0]), np.full(2, np.inf))
    )
    assert np.array_equal(found.coefficients, [-0.5, 0.5])
    assert found.multipliers == pytest.approx(0.0)
    assert found.report.certificate["dual"] == pytest.approx(0.5)  # 1 / (2 margin^2)


def test_a_weight_is_a_number_of_copies():
    _, X, _ = problem("classify", 5, n=40)
    rng = np.random.default_rng(0)
    signs, counts = np.sign(X[:, 0] + 0.5 * rng.normal(size=40)), rng.integers(1, 4, 40)
    once = BlockSMO().minimize(KernelRows(RBF(), X), Dual.classify(signs, 2.0 * counts))
    again = np.repeat(np.arange(40), counts)
    dual = Dual.classify(signs[again], np.full(len(again), 2.0))
    often = BlockSMO().minimize(KernelRows(RBF(), X[again]), dual)
    assert np.allclose(often.values, once.values[again], rtol=1e-8, atol=1e-9)
    assert often.multipliers == pytest.approx(once.multipliers, abs=1e-9)


def test_a_start_at_the_minimum_is_the_end():
    kernel, X, dual = problem("regress", 1)
    first = BlockSMO().minimize(KernelRows(kernel, X), dual)
    again = BlockSMO().minimize(KernelRows(kernel, X), replace(dual, start=first.variables))
    assert again.report.n_iter == 0
    assert np.array_equal(again.variables, first.variables)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_max_iter_is_met_exactly(steps, whole, monkeypatch):
    if not whole:
        tune(monkeypatch, max_single_block=0)
        monkeypatch.setattr(_smo_steps, "_MAX_VARIABLES", 16)
    kernel, X, dual = problem("classify", 0, n=60)
    found = BlockSMO(max_iter=steps).minimize(KernelRows(kernel, X), dual)
    assert found.report.n_iter == steps
    assert found.report.status is Status.NOT_CONVERGED
    assert "max_iter" in found.report.message
    assert found.report.certificate["violation"] > 1e-3


def test_nothing_but_the_limit_ends_a_search_that_crawls():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1.0, 1e3, 1e6]
    signs = np.where(rng.normal(size=40) > 0, 1.0, -1.0)
    rows = KernelRows(Polynomial(3, gamma=1.0), X)
    found = BlockSMO(max_iter=5000).minimize(rows, Dual.classify(signs, np.ones(40)))
    assert found.report.n_iter == 5000 or found.report.status is Status.CONVERGED


def test_a_kernel_that_is_not_positive_says_so():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    K, signs = 0.5 * (A + A.T), np.where(rng.normal(size=30) > 0, 1.0, -1.0)
    dual = Dual.classify(signs, np.ones(30))
    found = BlockSMO().minimize(KernelRows(Precomputed(K), np.arange(30)), dual)
    g = K @ found.coefficients - signs
    assert dual.violation(found.variables, g) <= 1e-3  # a stationary point
    c = found.report.certificate["curvature"]
    assert c < 0
    pairs = K.diagonal()[:, None] + K.diagonal() - 2 * K
    assert c >= pairs.min() - 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_points_left_out_for_a_while(seed, small_blocks, monkeypatch):
    tune(monkeypatch, blocks_per_shrinking=3, max_active_fraction=0.9)
    kinds = []
    original = _block_smo._SMOState.subset_search
    monkeypatch.setattr(
        _block_smo._SMOState,
        "subset_search",
        lambda self, *a: (kinds.append(1), original(self, *a))[1],
    )
    for kind in KINDS:
        _, X, dual = problem(kind, seed, n=100)
        objectives = []
        rows = KernelRows(RBF(), X, cache_bytes=1)
        found = BlockSMO().minimize(rows, dual, lambda p, to=objectives: to.append(p.objective))
        check(RBF(), X, dual, found, 1e-3, rounding=1e-4)  # float32, except for support vectors
        size = abs(objectives[-1]) + 1.0
        assert np.all(np.diff(objectives) >= -1e-5 * size)  # float32, until the final check
        with_all = BlockSMO(shrinking=False).minimize(KernelRows(RBF(), X, cache_bytes=1), dual)
        bound = found.report.certificate["bound"] + with_all.report.certificate["bound"]
        ours, theirs = found.report.certificate["dual"], with_all.report.certificate["dual"]
        assert abs(ours - theirs) <= bound
    assert kinds  # the case occurred


def test_the_same_bits_whatever_the_threads(small_blocks):
    kernel, X, dual = problem("classify", 0, n=300)
    one = BlockSMO().minimize(KernelRows(kernel, X, n_threads=1), dual)
    two = BlockSMO().minimize(KernelRows(kernel, X, n_threads=3), dual)
    assert np.array_equal(one.variables, two.variables)


def test_an_interrupt_leaves_rows_that_can_be_used(small_blocks):
    kernel, X, dual = problem("classify", 0, n=300)
    rows = KernelRows(kernel, X)

    def stop(progress):
        if progress.n_iter > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BlockSMO().minimize(rows, dual, stop)
    check(kernel, X, dual, BlockSMO().minimize(rows, dual), 1e-3)


def test_the_gap_is_primal_minus_dual():
    _, X, dual = problem("classify", 0, n=30)
    C, signs = dual.upper - dual.lower, -dual.linear
    found = BlockSMO(max_iter=25).minimize(KernelRows(RBF(), X), dual)
    f, b = RBF()(X) @ found.coefficients, -found.multipliers[0]
    primal = 0.5 * found.coefficients @ f + C @ np.maximum(0.0, 1.0 - signs * (f + b))
    assert found.report.certificate["primal"] == pytest.approx(primal)


def test_free_and_bound_are_counted_by_points():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (120, 2)).astype(float), rng.integers(0, 5, 120).astype(float)
    dual = Dual.nu_regress(y, np.full(120, 1e3), 0.9)  # for some points, both variables are free
    found = BlockSMO().minimize(KernelRows(RBF(), X), dual)
    c = found.report.certificate
    assert c["n_bound"] >= 0
    assert c["n_free"] + c["n_bound"] == np.count_nonzero(found.coefficients)


@pytest.mark.parametrize("factor", [1e-20, 1e20])
def test_the_scale_of_a_kernel_changes_nothing(factor):
    _, X, _ = problem("classify", 0, n=60)
    signs = np.where(np.arange(60) % 3 > 0, 1.0, -1.0)
    one = BlockSMO().minimize(KernelRows(RBF(), X), Dual.classify(signs, np.ones(60)))
    dual = Dual.classify(signs, np.full(60, 1.0 / factor))
    other = BlockSMO().minimize(KernelRows(factor * RBF(), X), dual)
    assert np.allclose(other.values, one.values, rtol=1e-8, atol=1e-9)


def test_a_hard_margin_has_a_finite_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    signs = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += signs
    dual = Dual.classify(signs, np.full(60, np.inf))
    found = BlockSMO().minimize(KernelRows(Linear(), X), dual)
    assert found.report.status is Status.CONVERGED
    assert 0.0 <= found.report.certificate["gap"] < 1e-9


def test_rounding_ends_a_search_that_asks_for_too_much(monkeypatch):
    tune(monkeypatch, steps_per_report=2000)  # what cannot be interrupted must be short
    _, X, dual = problem("classify", 0, n=150)
    found = BlockSMO(tol=1e-17, max_iter=20_000).minimize(KernelRows(RBF(0.1), X), dual)
    assert found.report.status is Status.NOT_CONVERGED
    assert found.report.residual < 1e-9


def test_an_interrupt_while_points_are_left_out(small_blocks, monkeypatch):
    tune(monkeypatch, blocks_per_shrinking=2, max_active_fraction=0.9)
    _, X, dual = problem("classify", 0, n=150)
    view = KernelRows(RBF(), X, cache_bytes=1).view()
    original = _block_smo._SMOState.subset_search

    def stopped(self, *args):
        part = original(self, *args)
        part.solve_in_blocks = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
        return part

    monkeypatch.setattr(_block_smo._SMOState, "subset_search", stopped)
    with pytest.raises(KeyboardInterrupt):
        BlockSMO().minimize(view, dual)
    monkeypatch.setattr(_block_smo._SMOState, "subset_search", original)
    check(RBF(), X, dual, BlockSMO().minimize(view, dual), 1e-3, rounding=1e-4)


@pytest.mark.parametrize("rank", [40, 9])
def test_variables_that_meet_bounds_stay_while_the_others_agree(rank):
    """The minimum over a face, from an interior point; if K is singular, it is not unique."""
    rng = np.random.default_rng(3)
    F, n = rng.normal(size=(40, rank)), 40
    K = F @ F.T
    linear = -K @ rng.uniform(-0.05, 0.15, n)
    programs = QPBatch(np.arange(n), np.array([0, 25, n]), linear, np.zeros(n), np.full(n, 0.1))
    start = np.full(n, 0.05)
    g = programs.gradient(K, start)
    v = refine(K, programs, start, g)
    assert np.all((v >= 0.0) & (v <= 0.1)) and np.count_nonzero((v == 0.0) | (v == 0.1)) > 5
    for group in (slice(0, 25), slice(25, n)):
        assert v[group].sum() == pytest.approx(start[group].sum(), abs=1e-12)
        free = (v[group] > 0.0) & (v[group] < 0.1)
        assert np.ptp(programs.gradient(K, v)[group][free]) < 1e-9
    value = [0.5 * x @ K @ x + linear @ x for x in (start, v)]
    assert value[1] < value[0]


def test_values_that_overflow_in_the_gradient():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"not finite: values of f overflow.*Scale the features"),
    ):
        NuSVR(kernel="linear", C=1e308).fit(X, 1e307 * X[:, 0])


def test_the_bound_of_a_solution_without_violation_is_zero():
    dual = Dual.classify(np.array([1.0, -1.0]), np.ones(2))
    assert (dual.bound(-0.1), dual.bound(0.5)) == (0.0, 1.0)
