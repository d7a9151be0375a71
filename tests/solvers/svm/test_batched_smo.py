"""One-vs-one SVMs without the full K: the same minima, one pair of classes at a time."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mercer import SVC
from mercer.gram import KernelRows, _kernel_rows
from mercer.kernels import RBF, Linear
from mercer.solvers import Status
from mercer.solvers.svm import BlockSMO, Dual, Duals, _batched_smo
from mercer.solvers.svm._batched_smo import MAX_COMPILED_FREE

SIZES = [30, 7, 21, 90]
GAUSS, SMO = RBF(1.0), BlockSMO()


def classes(kind="classify", seed=0):
    """Return points of four classes, the pairs, and their dual problems."""
    rng, ends = np.random.default_rng(seed), np.cumsum([0, *SIZES])
    X = rng.normal(size=(ends[-1], 3)) + np.repeat(rng.normal(size=(4, 3)), SIZES, axis=0)
    duals, members = [], []
    for a, b in combinations(range(4), 2):
        signs, C = np.repeat([1.0, -1.0], [SIZES[a], SIZES[b]]), rng.uniform(0.5, 5.0)
        w = np.full(len(signs), C)
        one = Dual.classify(signs, w) if kind == "classify" else Dual.nu_classify(signs, w, 0.1)
        duals.append(one)
        members += [np.arange(*ends[a : a + 2]), np.arange(*ends[b : b + 2])]
    return X, Duals.of(duals, np.concatenate(members))


def solved(X, duals, kernel=GAUSS, solver=SMO, **options):
    rows = KernelRows(kernel, X, sizes=SIZES, **options)
    pairs = list(combinations(range(4), 2))
    return rows, solver.minimize_all(rows, duals, lambda p: rows.view(*pairs[p]))


@pytest.fixture
def no_matrix(monkeypatch):
    """Treat every K as too large to be stored; return the list of solver instances created."""
    made, init = [], _batched_smo.StreamedSMO.__init__
    monkeypatch.setattr(
        _kernel_rows, "_TUNING", replace(_kernel_rows._TUNING, small_matrix_bytes=0)
    )
    monkeypatch.setattr(
        _batched_smo.StreamedSMO,
        "__init__",
        lambda self, *args: made.append(1) or init(self, *args),
    )
    return made


@pytest.mark.parametrize("kind", ["classify", "nu_classify"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()])
def test_conditions_of_a_minimum(kind, kernel, no_matrix):
    X, duals = classes(kind)
    rows, found = solved(X, duals, kernel)
    assert no_matrix == [1]
    for dual, solution, first, last in zip(
        duals, found, duals.point_ends[:-1], duals.point_ends[1:], strict=True
    ):
        f = kernel(X[duals.members[first:last]]) @ solution.coefficients
        assert np.allclose(solution.values, f, rtol=0, atol=1e-9)
        v, g = solution.variables, dual.gradient(f)
        assert np.all((v >= dual.lower) & (v <= dual.upper))
        assert v.sum() == pytest.approx(dual.start.sum(), abs=1e-9)
        assert dual.violation(v, g) <= 1e-3
        assert solution.report.residual == pytest.approx(dual.violation(v, g), abs=1e-9)
    pairs = [a * b for a, b in combinations(SIZES, 2)]
    assert rows.entries == sum(pairs) + sum(size**2 for size in SIZES)


def test_the_same_bits_whatever_the_threads(no_matrix):
    X, duals = classes()
    one, *others = (solved(X, duals, n_threads=k)[1] for k in (1, 2, 5))
    for other in others:
        assert np.array_equal(one.variables, other.variables)
        assert np.array_equal(one.values, other.values)


def test_a_start_at_the_minimum_takes_no_step(no_matrix):
    X, duals = classes()
    _, found = solved(X, duals, solver=BlockSMO(tol=1e-6))
    _, again = solved(X, duals.started(found.variables))
    assert again.reports.n_iter.sum() == 0
    assert np.allclose(again.values, found.values, rtol=0, atol=1e-12)


def test_steps_beyond_those_of_one_call_are_taken_alone(no_matrix, monkeypatch):
    monkeypatch.setattr(_batched_smo, "_STEPS_PER_CALL", 3)
    X, duals = classes()
    _, found = solved(X, duals)
    assert set(found.reports.status) == {Status.CONVERGED}
    assert found.reports.n_iter.max() > 3
    _, few = solved(X, duals, solver=BlockSMO(max_iter=3))
    assert few.reports.n_iter.max() == 3
    assert Status.NOT_CONVERGED in few.reports.status


def test_without_room_for_a_pair_rows_are_read_through_the_cache(no_matrix):
    X, duals = classes()
    _, found = solved(X, duals)
    _, other = solved(X, duals, cache_bytes=1)
    assert len(no_matrix) == 1
    assert np.allclose(found.values, other.values, rtol=0, atol=3e-3)


def test_a_machine_of_many_classes(no_matrix, monkeypatch):
    X, _ = classes()
    y = np.repeat(np.arange(4), SIZES)
    apart = SVC(C=2.0, decision_function_shape="ovo").fit(X, y)
    assert len(no_matrix) == 1
    monkeypatch.setattr(
        _kernel_rows, "_TUNING", replace(_kernel_rows._TUNING, small_matrix_bytes=2**26)
    )
    together = SVC(C=2.0, decision_function_shape="ovo").fit(X, y)
    assert len(no_matrix) == 1
    f, h = apart.decision_function(X), together.decision_function(X)
    assert np.allclose(f, h, rtol=0, atol=3e-3)


def test_nu_machines_side_by_side_are_those_made_one_by_one():
    rng = np.random.default_rng(5)
    sizes, nu = [7, 300, 2, 41], np.array([0.3, 0.5, 1.0, 0.05])
    signs = [np.where(np.arange(m) < (m + 1) // 2, 1.0, -1.0) for m in sizes]
    signs[1] = rng.permutation(signs[1])
    weights = [rng.uniform(0.5, 2.0, m) if m > 2 else np.ones(m) for m in sizes]
    ends = np.cumsum([0, *sizes])
    one_by_one = map(Dual.nu_classify, signs, weights, nu)
    expected = Duals.of(list(one_by_one), np.arange(ends[-1]))
    together = Dual.nu_classify(np.concatenate(signs), np.concatenate(weights), nu, ends)
    for name in ("points", "linear", "lower", "upper", "groups"):
        np.testing.assert_array_equal(getattr(together, name), getattr(expected.all, name))
    np.testing.assert_allclose(together.start, expected.all.start, rtol=0, atol=1e-13)
    assert np.all((together.start >= together.lower) & (together.start <= together.upper))


def test_progress_of_some_problems():
    X, duals = classes()
    rows, pairs, seen = KernelRows(GAUSS, X, sizes=SIZES), list(combinations(range(4), 2)), []
    solutions = SMO.minimize_all(
        *(rows, duals, lambda p: rows.view(*pairs[p])), lambda p: seen.append if p == 2 else None
    )
    assert [step.violation for step in seen] == [solutions[2].report.residual]
    assert [s.report.residual for s in solutions[1:3]] == list(solutions.reports.residual[1:3])


def test_problems_with_many_free_variables():
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(3 * (MAX_COMPILED_FREE + 10), 2)),
        np.arange(3).repeat(MAX_COMPILED_FREE + 10),
    )
    model = SVC(kernel=RBF(0.01), C=100.0).fit(X, y)
    assert model.report_.status is Status.CONVERGED and not model.at_bound_.any()
    assert model.report_.residual < 1e-10
    assert len(model.support_) == len(X)
