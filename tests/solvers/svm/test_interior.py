"""Dual problems of SVMs on explicit features: interior point method, then crossover to a vertex."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mercer import SVC
from mercer.gram import KernelRows
from mercer.kernels import Linear
from mercer.solvers import SMOThenInteriorPoint, Status
from mercer.solvers.svm import (
    BlockSMO,
    BoxInterior,
    Dual,
    _box_interior_point,
)

KINDS = ["classify", "nu_classify", "regress", "nu_regress", "one_class"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def classes(numbers, F):
    """Return overlapping labels, with both classes present."""
    first = F[:, 0] if F.shape[1] else 0.0
    signs = np.where(first + 0.5 * numbers.normal(size=len(F)) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return signs


def targets(numbers, F):
    return F @ numbers.normal(size=F.shape[1]) + 0.5 * numbers.normal(size=len(F))


def dual_of(kind, numbers, F, C, share=0.4):
    """Return a dual problem of this type; `share` is the fraction of the largest feasible nu."""
    signs, y = classes(numbers, F), targets(numbers, F)
    if kind == "classify":
        return Dual.classify(signs, C)
    if kind == "nu_classify":
        largest = 2.0 * min(C[signs > 0].sum(), C[signs < 0].sum()) / C.sum()
        return Dual.nu_classify(signs, C, share * largest)
    if kind == "regress":
        return Dual.regress(y, C, 0.1)
    return Dual.nu_regress(y, C, share) if kind == "nu_regress" else Dual.one_class(C, share)


def check(F, dual, found, tol=1e-3):
    """Check all guarantees of the result against K itself."""
    v, report = found.variables, found.report
    f = F @ (F.T @ np.bincount(dual.points, v, minlength=len(F)))
    np.testing.assert_allclose(found.values, f, atol=1e-9 * (1.0 + np.abs(f).max()))
    assert np.all(v >= dual.lower) and np.all(v <= dual.upper)
    for k in range(dual.n_groups):
        some = dual.groups == k
        size = np.abs(v[some]).sum() + np.abs(dual.start[some]).sum()
        assert abs(v[some].sum() - dual.start[some].sum()) <= 1e-13 * size
    g = f[dual.points] + dual.linear
    for k in range(dual.n_groups):
        some = dual.groups == k
        low = g[some & (v > dual.lower)].max(initial=-np.inf)
        up = g[some & (v < dual.upper)].min(initial=np.inf)
        assert low - up <= tol + 1e-13 * np.abs(g).max()
    numbers = report.certificate
    assert report.status is Status.CONVERGED and report.residual == numbers["violation"]
    assert numbers["primal"] >= numbers["dual"] and numbers["gap"] >= 0
    assert numbers["gap"] <= numbers["bound"] * (1 + 1e-9) + 1e-12 * abs(numbers["dual"])
    free = np.count_nonzero((v > dual.lower) & (v < dual.upper))
    assert free == numbers["n_free"] and free + numbers["n_bound"] == np.count_nonzero(v)
    return numbers


def by_general_solver(F, dual):
    """Return the smallest objective that SLSQP finds."""
    G = F[dual.points]
    sums = [np.where(dual.groups == k, 1.0, 0.0) for k in range(dual.n_groups)]
    best = minimize(
        lambda v: 0.5 * np.sum(np.square(G.T @ v)) + dual.linear @ v,
        dual.start,
        jac=lambda v: G @ (G.T @ v) + dual.linear,
        bounds=np.column_stack([dual.lower, dual.upper]),
        constraints=[
            {"type": "eq", "fun": lambda v, s=s: s @ (v - dual.start), "jac": lambda v, s=s: s}
            for s in sums
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return best.fun


# ---------------------------------------------------------------------- against other solvers


# SLSQP of SciPy 1.15 evaluates points a rounding error outside the bounds, and warns.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("seed", range(12))
@each_kind
def test_no_general_solver_finds_a_better_minimum(kind, seed):
    numbers = np.random.default_rng([seed, KINDS.index(kind)])
    F = numbers.normal(size=(int(numbers.integers(4, 20)), int(numbers.integers(1, 5))))
    C = 10.0 ** numbers.uniform(-1, 1) * numbers.uniform(0.5, 2.0, size=len(F))
    dual = dual_of(kind, numbers, F, C)
    found = check(F, dual, BoxInterior().minimize(F, dual))
    lowest = by_general_solver(F, dual)
    assert found["dual"] == pytest.approx(-lowest, abs=1e-5 * (1.0 + abs(lowest)))


@each_kind
def test_pairs_find_the_same_function(kind):
    numbers = np.random.default_rng(7)
    F = numbers.normal(size=(300, 6))
    dual = dual_of(kind, numbers, F, np.full(300, 2.0))
    found = BoxInterior().minimize(F, dual)
    other = BlockSMO(tol=1e-7).minimize(KernelRows(Linear(), F), dual)
    check(F, dual, found)
    size = np.abs(other.values).max()
    np.testing.assert_allclose(found.values, other.values, atol=1e-5 * size + 1e-6)
    np.testing.assert_allclose(found.multipliers, other.multipliers, atol=1e-4 * size + 1e-6)


# ---------------------------------------------------------------------- every type of problem


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(KINDS),
    n=st.integers(2, 120),
    m=st.integers(0, 9),
    columns=st.sampled_from(["plain", "whole", "twice", "zero", "far", "units"]),
    power=st.floats(-4, 4),
    weights=st.sampled_from(["equal", "orders", "some zero"]),
    share=st.sampled_from([0.02, 0.4, 0.9, 1.0]),
)
def test_what_is_promised_holds(seed, kind, n, m, columns, power, weights, share):
    numbers = np.random.default_rng(seed)
    F = numbers.normal(size=(n, m))
    if columns == "whole":
        F = np.round(F)
    elif columns == "twice":
        F = F[numbers.integers(n, size=n)]
    elif columns == "zero":
        F[:] = 0.0
    elif columns == "far":
        F += 100.0
    elif columns == "units":
        F *= 10.0 ** numbers.uniform(-3, 2, size=m)
    C = np.full(n, 10.0**power)
    if weights == "orders":
        C *= 10.0 ** numbers.uniform(-3, 3, size=n)
    elif weights == "some zero":
        C[2:] *= numbers.integers(0, 3, size=n - 2)
    dual = dual_of(kind, numbers, F, C, share)
    found = BoxInterior().minimize(F, dual)
    # K v is not more accurate than this.
    sizes = np.linalg.norm(F, axis=1)
    rounding = 1e-14 * sizes.max(initial=0.0) * np.linalg.norm(found.variables * sizes[dual.points])
    if found.report.certificate["violation"] > 1e-3:
        assert found.report.certificate["violation"] <= rounding
        assert found.report.status is Status.NOT_CONVERGED
    else:
        check(F, dual, found)


@each_kind
def test_constant_targets_and_features_that_say_nothing(kind):
    numbers = np.random.default_rng(2)
    F, C = np.zeros((40, 3)), np.full(40, 1.5)
    dual = dual_of(kind, numbers, F, C)
    found = check(F, dual, BoxInterior().minimize(F, dual))
    assert found["n_free"] <= 3 + 2
    if kind.endswith("regress"):
        F = numbers.normal(size=(40, 3))
        constant = replace(dual, linear=np.repeat([0.1 - 7.0, -0.1 - 7.0], 40))
        assert check(F, constant, BoxInterior().minimize(F, constant))["gap"] <= 1e-9


def test_weights_of_many_orders_need_no_more_steps():
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(400, 5))
    C = 10.0 ** numbers.uniform(-3, 3, size=400)
    for kind in KINDS:
        dual = dual_of(kind, numbers, F, C)
        found = BoxInterior().minimize(F, dual)
        check(F, dual, found)
        assert found.report.n_iter <= 40


@each_kind
def test_points_without_weight_are_as_good_as_absent(kind):
    numbers = np.random.default_rng(5)
    F = numbers.normal(size=(60, 3))
    C = np.where(np.arange(60) < 40, 1.0, 0.0)
    whole = dual_of(kind, np.random.default_rng(1), F, C)
    found = BoxInterior().minimize(F, whole)
    check(F, whole, found)
    assert not found.coefficients[40:].any()
    if kind == "one_class":
        part = BoxInterior().minimize(F[:40], Dual.one_class(C[:40], 0.4))
        np.testing.assert_allclose(part.values, found.values[:40], atol=1e-8)


@each_kind
def test_a_point_twice_is_a_point_of_twice_the_weight(kind):
    numbers = np.random.default_rng(3)
    F = numbers.normal(size=(50, 4))
    once = dual_of(kind, np.random.default_rng(1), F, np.full(50, 2.0))
    rows = np.tile(np.arange(50), 2)
    double = Dual(
        100,
        np.concatenate([once.points, once.points + 50]),
        *(np.tile(x, 2) for x in (once.linear, 0.5 * once.lower, 0.5 * once.upper)),
        np.tile(once.groups, 2),
        np.tile(0.5 * once.start, 2),
    )
    order = np.argsort(double.groups, kind="stable")
    fields = ("points", "linear", "lower", "upper", "groups", "start")
    double = replace(double, **{name: getattr(double, name)[order] for name in fields})
    one, two = BoxInterior().minimize(F, once), BoxInterior().minimize(F[rows], double)
    check(F[rows], double, two)
    np.testing.assert_allclose(two.values[:50], one.values, atol=1e-8)


def test_a_hard_margin():
    # The two nearest points are (0, 0) and (2, 0): w = (1, 0), b = -1, and both have v = 1/2.
    F = np.array([[0.0, 0.0], [-1.0, 3.0], [-4.0, 1.0], [2.0, 0.0], [3.0, 3.0], [9.0, -5.0]])
    dual = Dual.classify(np.repeat([-1.0, 1.0], 3), np.full(6, np.inf))
    found = BoxInterior().minimize(F, dual)
    np.testing.assert_allclose(found.coefficients, [-0.5, 0, 0, 0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found.multipliers, [1.0], atol=1e-12)
    assert found.report.status is Status.CONVERGED
    assert found.report.certificate["dual"] == pytest.approx(0.5)


def test_a_hard_margin_for_some_points_and_a_soft_one_for_others():
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(200, 5))
    signs = np.where(F[:, 0] > 0, 1.0, -1.0)
    C = np.where(np.arange(200) % 2 == 0, 1.0, np.inf)
    signs[4], signs[5] = -signs[4], -signs[5]
    soft = Dual.classify(signs, np.minimum(C, 1e7))
    endless = BoxInterior().minimize(F, Dual.classify(signs, C))
    np.testing.assert_allclose(endless.values, BoxInterior().minimize(F, soft).values, atol=1e-4)


def test_tubes_that_must_not_be_left():
    numbers = np.random.default_rng(1)
    F = numbers.normal(size=(80, 4))
    y = F @ np.array([1.0, -2.0, 0.5, 3.0]) + 4.0
    found = BoxInterior().minimize(F, Dual.regress(y, np.full(80, np.inf), 0.1))
    errors = y - (found.values - found.multipliers.mean())
    assert np.abs(errors).max() <= 0.1 + 1e-8


def test_classes_that_overlap_have_no_hard_margin():
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(60, 2))
    dual = Dual.classify(np.where(numbers.normal(size=60) > 0, 1.0, -1.0), np.full(60, np.inf))
    report = BoxInterior().minimize(F, dual).report
    assert report.status is Status.NOT_CONVERGED
    assert "the classes overlap: no hard margin exists; choose a finite C" in report.message
    assert "SMO" not in report.message  # none can help


def test_more_of_the_same_points_do_not_hide_that_classes_overlap():
    numbers = np.random.default_rng(0)
    F = np.tile(numbers.normal(size=(200, 3)), (10, 1))
    signs = np.tile(np.where(numbers.normal(size=200) > 0, 1.0, -1.0), 10)
    found = BoxInterior().minimize(F, Dual.classify(signs, np.full(2000, np.inf)))
    assert found.report.status is Status.NOT_CONVERGED and np.isfinite(found.variables).all()
    assert "no hard margin exists" in found.report.message


@pytest.mark.parametrize("m", [0, 3])
def test_endless_boxes_without_features_have_no_minimum(m):
    signs = np.where(np.random.default_rng(0).random(200) < 0.5, -1.0, 1.0)
    found = BoxInterior().minimize(np.zeros((200, m)), Dual.classify(signs, np.full(200, np.inf)))
    assert np.isfinite(found.variables).all() and np.isfinite(found.multipliers).all()
    assert found.report.status is Status.NOT_CONVERGED
    assert "choose a finite C" in found.report.message


def test_tubes_too_narrow_for_any_function():
    numbers = np.random.default_rng(0)
    F, y = numbers.normal(size=(60, 2)), numbers.normal(size=60)
    report = BoxInterior().minimize(F, Dual.regress(y, np.full(60, np.inf), 0.1)).report
    assert report.status is Status.NOT_CONVERGED
    assert "no f is within epsilon of all targets; choose a finite C, or raise" in report.message


def test_a_hard_margin_that_was_not_waited_for_is_not_denied(monkeypatch):
    numbers = np.random.default_rng(0)
    signs = np.where(numbers.random(2000) < 0.5, -1.0, 1.0)
    F = numbers.normal(size=(2000, 40)) + 2.0 * signs[:, None]
    dual = Dual.classify(signs, np.full(2000, np.inf))
    assert BoxInterior().minimize(F, dual).report.status is Status.CONVERGED
    monkeypatch.setattr(
        _box_interior_point,
        "find_vertex",
        lambda F, dual, v, tol: _box_interior_point.evaluate_at(F, dual, v),
    )
    report = BoxInterior(tol=1e-12, max_iter=1).minimize(F, dual).report
    assert report.status is Status.NOT_CONVERGED and "no hard margin" not in report.message


def test_what_is_not_finite_is_never_preferred():
    dual = Dual.classify(np.array([-1.0, 1.0]), np.full(2, np.inf))
    F = np.eye(2)
    good = _box_interior_point.evaluate_at(F, dual, np.zeros(2))
    for v in (np.full(2, np.nan), np.array([-1e200, 1e200])):
        with np.errstate(all="ignore"):
            bad = _box_interior_point.evaluate_at(F, dual, v)
        assert bad.violation == np.inf
        for one, other in ((good, bad), (bad, good)):
            assert _box_interior_point.better_of(one, other, 1e-3) is good


# ---------------------------------------------------------------------- scaling


def test_columns_of_any_unit():
    numbers = np.random.default_rng(4)
    F = numbers.normal(size=(2000, 5))
    dual = dual_of("regress", numbers, F, np.full(2000, 1.0))
    small = BoxInterior().minimize(F, dual)
    # K grows by 4^20 while C and targets are the same: f = 2^20 F w, with w smaller by 2^20.
    large = BoxInterior().minimize(F * 2.0**20, replace(dual, start=dual.start))
    assert large.report.n_iter <= 2 * small.report.n_iter
    # Every term of F^T v is rounded, which affects the longest row of F.
    sizes = np.linalg.norm(F * 2.0**20, axis=1)
    rounding = 2.0**-48 * sizes.max() * np.linalg.norm(large.variables * np.tile(sizes, 2))
    assert large.report.certificate["violation"] <= max(1e-3, rounding)
    units = np.array([1e6, 1e-3, 1.0, 1e3, 1e-6])
    check(F * units, dual, BoxInterior(tol=1e-2).minimize(F * units, dual), tol=1e-2)


def test_columns_far_from_zero_cost_no_steps():
    numbers = np.random.default_rng(4)
    F = numbers.normal(size=(500, 5))
    dual = dual_of("classify", numbers, F, np.ones(500))
    near, far = BoxInterior().minimize(F, dual), BoxInterior().minimize(F + 2.0**10, dual)
    check(F + 2.0**10, dual, far)
    np.testing.assert_allclose(far.coefficients, near.coefficients, atol=1e-6)
    assert far.report.n_iter == near.report.n_iter


@pytest.mark.parametrize(("size", "C"), [(1.0, 1e300), (1e200, 1.0), (1e150, 1e150)])
# and no warning, because warnings are errors here
def test_numbers_that_overflow_are_no_minimum(size, C):
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(100, 3))
    found = BoxInterior().minimize(F * size, Dual.classify(classes(numbers, F), np.full(100, C)))
    assert found.report.status is Status.NOT_CONVERGED and np.isfinite(found.variables).all()
    assert "cale the features" in found.report.message


def test_a_start_whose_values_overflow():
    F = 1e200 * np.random.default_rng(0).normal(size=(30, 2))
    report = BoxInterior().minimize(F, Dual.one_class(np.ones(30), 0.5)).report
    assert report.status is Status.NOT_CONVERGED and report.residual == np.inf
    assert "values of f are not finite" in report.message


@pytest.mark.parametrize("size", [1e6, 1e7, 1e8])
def test_columns_too_large_for_v_leave_a_function_of_use(size):
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(900, 3))
    y = 2.0 * F[:, 0] + 0.1 * numbers.normal(size=900)
    dual = Dual.regress(y, np.ones(900), 0.1)
    found = BoxInterior().minimize(F * size, dual)
    assert found.report.status is Status.NOT_CONVERGED
    assert "Scale the features" in found.report.message
    errors = y - (found.values - found.multipliers.mean())
    assert np.var(errors) <= 0.2 * np.var(y)
    # v = 0 is a known vertex.
    assert found.report.certificate["primal"] <= dual.gap(np.zeros(1800), np.zeros(900))


def test_a_column_far_from_zero_is_not_an_obstacle():
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(200, 3))
    dual = dual_of("classify", numbers, F, np.ones(200))
    near, far = (BoxInterior().minimize(F + x * np.eye(3)[1], dual) for x in (0.0, 1e8))
    assert far.report.status is Status.CONVERGED
    assert far.report.certificate["primal"] == pytest.approx(
        near.report.certificate["primal"], rel=1e-3
    )


# ---------------------------------------------------------------------- implementation


@each_kind
def test_more_columns_than_points(kind):
    numbers = np.random.default_rng(3)
    F = numbers.normal(size=(60, 500)) / np.sqrt(500)
    dual = dual_of(kind, numbers, F, np.full(60, 2.0))
    tracemalloc.start()
    found = BoxInterior().minimize(F, dual)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(F, dual, found)
    assert peak <= BoxInterior.workspace(60, 500, len(dual)) < 8 * 1000**2  # not (500 + 60)^2


@pytest.mark.parametrize(("n", "m"), [(20_000, 5), (600, 400), (100, 900)])
def test_the_budget_is_kept(n, m):
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(n, m))
    dual = dual_of("classify", numbers, F, np.full(n, 0.1))
    needed = BoxInterior.workspace(n, m, n)
    with pytest.raises(MemoryError, match=f"{n} rows of {m} columns.*solver='smo'.*max_memory"):
        BoxInterior(max_memory=needed - 1).minimize(F, dual)
    tracemalloc.start()
    BoxInterior(max_memory=needed).minimize(F, dual)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= needed


def test_auto_needs_no_more_than_the_budget():
    numbers = np.random.default_rng(0)
    X = numbers.normal(size=(1000, 90))
    y = classes(numbers, X)
    assert isinstance(SVC(kernel="linear", C=0.01).fit(X, y).solver_, SMOThenInteriorPoint)
    small = {"kernel": "linear", "C": 0.01, "max_memory": "700 KiB"}
    with pytest.raises(MemoryError, match="1000 rows of 90 columns"):
        SVC(**small, solver="primal").fit(X, y)
    for solver in ("auto", "smo"):  # if "primal" does not fit into memory, "auto" tries the other
        with pytest.raises(MemoryError, match="machine on 1000 points needs"):
            SVC(**small, solver=solver).fit(X, y)
    with pytest.raises(MemoryError, match="a dense X of 1000 rows and 90 columns"):
        SVC(**small, solver="primal").fit(sp.csr_array(X), y)


@each_kind
def test_many_points(kind):
    numbers = np.random.default_rng(6)
    F = numbers.normal(size=(20_000, 30)) + 0.3
    dual = dual_of(kind, numbers, F, np.ones(20_000), 0.8)
    found = BoxInterior().minimize(F, dual)
    assert check(F, dual, found)["n_free"] <= 30 + 2
    assert found.report.n_iter <= 40 and not found.report.message


def test_no_copy_of_the_features():
    numbers = np.random.default_rng(0)
    F = numbers.normal(size=(4000, 400))
    dual = dual_of("classify", numbers, F, np.full(4000, 0.01))
    tracemalloc.start()
    BoxInterior().minimize(F, dual)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    squares = 8 * (2 * 402) ** 2  # for the free variables
    assert peak < 0.5 * F.nbytes + 3 * squares


def test_what_the_corner_leaves_is_moved_in_pairs(monkeypatch):
    numbers = np.random.default_rng(8)
    F = numbers.normal(size=(80, 3))
    dual = dual_of("classify", numbers, F, np.ones(80))
    expected = BoxInterior().minimize(F, dual).values
    monkeypatch.setattr(
        _box_interior_point,
        "find_vertex",
        lambda F, dual, v, tol: _box_interior_point.evaluate_at(F, dual, v),
    )
    steps = []
    found = BoxInterior(max_iter=6).minimize(F, dual, steps.append)
    numbers = check(F, dual, found)
    assert "SMO steps were taken after the interior-point method" in found.report.message
    np.testing.assert_allclose(found.values, expected, atol=5e-3)
    assert numbers["entries"] > 0
    assert found.report.n_iter == 6 < steps[-1].n_iter  # SMO steps are reported, too
    assert [p.n_iter for p in steps] == sorted(p.n_iter for p in steps)
    assert [p.seconds for p in steps] == sorted(p.seconds for p in steps)


def test_pairs_take_no_more_patience_than_there_is():
    numbers = np.random.default_rng(8)
    F = numbers.normal(size=(2400, 20))
    dual = dual_of("classify", numbers, F, np.full(2400, 100.0))
    steps = []
    report = BoxInterior(max_iter=1).minimize(F, dual, steps.append).report
    assert report.status is Status.NOT_CONVERGED
    assert "; 112 SMO steps were taken after the interior-point method" in report.message
    assert "the violation is" in report.message and steps[-1].n_iter == 113
    assert report.certificate["entries"] > 0 and 0 <= report.certificate["cache_hits"] <= 1


def test_report_and_progress():
    numbers = np.random.default_rng(9)
    F = numbers.normal(size=(200, 3))
    dual = dual_of("regress", numbers, F, np.ones(200))
    steps = []
    found = BoxInterior(tol=1e-4).minimize(F, dual, steps.append)
    assert [p.n_iter for p in steps] == list(range(1, found.report.n_iter + 1))
    assert steps[-1].violation < 1e-6 < steps[0].violation
    assert steps[-1].objective == pytest.approx(found.report.certificate["dual"], rel=1e-5)
    assert found.report.solver == "BoxInterior(tol=0.0001, max_iter=200)"
    assert found.report.certificate["entries"] == 0
    assert np.isnan(found.report.certificate["cache_hits"])
    again = BoxInterior(tol=1e-4).minimize(F, dual)
    assert np.array_equal(again.variables, found.variables)


def test_an_interrupt_is_passed_on():
    numbers = np.random.default_rng(9)
    F = numbers.normal(size=(200, 3))
    dual = dual_of("regress", numbers, F, np.ones(200))

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BoxInterior().minimize(F, dual, stop)


def test_a_start_that_is_the_minimum_takes_no_step():
    F = np.random.default_rng(0).normal(size=(30, 2))
    # all variables are at their bounds
    found = BoxInterior().minimize(F, Dual.one_class(np.ones(30), 1.0))
    assert found.report.n_iter == 0 and found.report.status is Status.CONVERGED
    np.testing.assert_array_equal(found.variables, np.ones(30))
