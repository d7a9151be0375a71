"""Test cached rows of K: results do not depend on what is in the cache."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import MemoryBudgetError
from mercer.gram import KernelRows, _kernel_rows
from mercer.kernels import RBF, Callable, Laplacian, Linear, Polynomial, Precomputed, White

X = np.random.default_rng(0).normal(size=(90, 4))


def words(n):
    rng = np.random.default_rng(1)
    return ["".join(rng.choice(list("ab"), size=4)) for _ in range(n)]


def common_letters(x, z):
    return float(sum(a == b for a, b in zip(x, z, strict=True)))


KERNELS = [RBF(1.5), Linear(), Polynomial(2), Laplacian(), RBF() + White(0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_weighted_sum_of_rows(kernel, form):
    points = sp.csr_array(X) if form == "sparse" else X
    rows, some = KernelRows(kernel, points), np.array([3, 70, 11, 0])
    view, out = rows.view(), np.ones(90)
    view.fetch(some)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    view.add(some, weights, out)
    K = kernel(X)
    assert np.allclose(out, 1.0 + K[:, some] @ weights, rtol=1e-12)
    full = np.zeros(90)
    full[some] = weights
    assert np.allclose(view.product(full), K @ full, rtol=1e-12)
    assert np.allclose(view.product(full, some), (K @ full)[some], rtol=1e-12)
    assert np.allclose(view.block(some, some[:2]), K[np.ix_(some, some[:2])], rtol=1e-12)
    assert np.allclose(view.matrix(), K, rtol=1e-12)


@given(st.lists(st.lists(st.integers(0, 89), min_size=1, max_size=64, unique=True), max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_least_recently_used_make_room(requests):
    rows = KernelRows(RBF(), X, cache_bytes=1)  # the minimum size of the cache
    view, K = rows.view(), RBF()(X)
    assert view.capacity == 64
    for points in map(np.array, requests):
        view.fetch(points)
        out = np.zeros(90)
        view.add(points, np.ones(len(points)), out)
        assert np.allclose(out, K[points].sum(axis=0), rtol=1e-5)  # cached in float32
    assert rows.requests == sum(map(len, requests))
    assert rows.entries == 90 * (rows.requests - rows.hits)


def test_rows_that_are_there_are_not_evaluated_again():
    rows = KernelRows(RBF(), X)
    view = rows.view()
    view.fetch(np.arange(20))
    view.fetch(np.arange(10, 30))
    assert (rows.requests, rows.hits, rows.entries) == (40, 10, 30 * 90)
    assert view.counts == (2700, 10, 40)


def test_what_two_machines_share_is_evaluated_once():
    rows = KernelRows(RBF(), X, sizes=[40, 30, 20])
    K = RBF()(X)
    for classes, index in (
        ((0, 1), np.r_[0:40, 40:70]),
        ((0, 2), np.r_[0:40, 70:90]),
        ((2, 1), np.r_[70:90, 40:70]),
    ):
        view = rows.view(*classes)
        assert view.n == len(index)
        view.fetch(np.arange(view.n))
        w, out = np.linspace(-1, 1, view.n), np.zeros(view.n)
        view.add(np.arange(view.n), w, out)
        assert np.allclose(out, K[np.ix_(index, index)] @ w, rtol=1e-12)
        assert np.allclose(view.matrix(), K[np.ix_(index, index)], rtol=1e-12)
    own, across = 40**2 + 30**2 + 20**2, 2 * (40 * 30 + 40 * 20 + 20 * 30)
    matrices = across // 2  # for matrix(), each block between two classes once
    assert rows.entries == own + across + matrices


def test_classes_that_do_not_fit_give_way():
    rows = KernelRows(RBF(), X, sizes=[40, 30, 20], cache_bytes=40 * 40 * 8)
    K = RBF()(X)
    for classes in ((0, 1), (1, 2), (0, 2), (0, 1)):
        view = rows.view(*classes)
        index = np.concatenate([np.arange(*rows.ends[c : c + 2]) for c in classes])
        assert np.allclose(view.matrix(), K[np.ix_(index, index)], rtol=1e-5)
    assert sum(c.bytes for c in rows._class_caches.values()) <= 2 * 40 * 40 * 8


def test_large_problems_are_kept_in_single_precision(monkeypatch):
    monkeypatch.setattr(
        _kernel_rows, "_TUNING", replace(_kernel_rows._TUNING, small_matrix_bytes=0)
    )
    rows = KernelRows(RBF(), X)
    assert rows.dtype == np.float32
    view, out = rows.view(), np.zeros(90)
    view.fetch(np.arange(64))
    view.add(np.arange(64), np.ones(64), out)
    K = RBF()(X)[:, :64]
    error = np.abs(out - K.sum(axis=1))
    assert error.max() > 1e-12  # confirms single precision
    assert np.all(error <= rows.error * K.sum(axis=1))
    w = np.r_[np.ones(64), np.zeros(26)]
    assert np.allclose(view.product(w), K.sum(axis=1), rtol=1e-13)  # products use float64
    assert KernelRows(Polynomial(2), X).dtype == np.float64  # no bound on its error is known


def test_a_matrix_of_the_user_is_not_copied():
    K = RBF()(X)
    kernel = Precomputed(K)
    assert np.shares_memory(KernelRows(kernel, np.arange(90)).view().matrix(), kernel.matrix)
    shuffled = np.arange(90)[::-1].copy()
    assert np.allclose(KernelRows(Precomputed(K), shuffled).view().matrix(), K[::-1, ::-1])


def test_words():
    points = words(20)
    rows = KernelRows(Callable(common_letters), points, sizes=[8, 12])
    K = np.array([[common_letters(x, z) for z in points] for x in points])
    assert np.array_equal(rows.view(0, 1).matrix(), K)
    assert np.array_equal(rows.view(1).matrix(), K[8:, 8:])


def test_an_interrupt_leaves_no_half_row():
    class Stop(Exception):
        pass

    state = {"calls": 0}

    def kernel(A, B):
        state["calls"] += 1
        if state["calls"] == 3:
            raise Stop
        return A @ B.T

    rows = KernelRows(Callable(kernel), X)
    view = rows.view()
    state["calls"] = 0
    view.fetch(np.arange(5))
    with pytest.raises(Stop):
        for start in (5, 10, 15):
            view.fetch(np.arange(start, start + 5))
    view.fetch(np.arange(20))
    out = np.zeros(90)
    view.add(np.arange(20), np.ones(20), out)
    assert np.allclose(out, X @ X[:20].sum(axis=0))


def test_a_subset_and_the_way_back():
    rows = KernelRows(RBF(), X, sizes=[50, 40])
    view, K = rows.view(0, 1), RBF()(X)
    view.fetch(np.arange(10))
    some = np.array([2, 3, 55, 80])
    part = view.subset(some)
    part.fetch(np.arange(4))
    out = np.zeros(4)
    part.add(np.arange(4), np.ones(4), out)
    assert np.allclose(out, K[np.ix_(some, some)].sum(axis=1))
    before = rows.entries
    view.restore(part)
    assert rows.entries == before + 16
    view.fetch(np.arange(64))
    out = np.zeros(90)
    view.add(np.arange(64), np.ones(64), out)
    assert np.allclose(out, K[:, :64].sum(axis=1))


def test_kernel_values_that_are_not_finite():
    with pytest.raises(
        ValueError, match=r"not finite: k\(x, x\) is inf for a point x and Polynomial.*scale the"
    ):
        KernelRows(Polynomial(3, gamma=1.0), 1e120 * X)


def test_an_interrupt_in_a_full_cache():
    rng = np.random.default_rng(0)
    state = {"stop": False}

    def kernel(A, B):
        if state["stop"]:
            raise KeyboardInterrupt
        return A @ B.T

    rows = KernelRows(Callable(kernel), X, cache_bytes=1)
    view = rows.view()
    for turn in range(60):
        points = rng.permutation(90)[: rng.integers(1, 64)]
        state["stop"] = turn % 7 == 0
        try:
            view.fetch(points)
        except KeyboardInterrupt:
            continue
        finally:
            state["stop"] = False
        out = np.zeros(90)
        view.add(points, np.ones(len(points)), out)
        assert np.allclose(out, X @ X[points].sum(axis=0))


def test_three_classes_at_once():
    view, K = KernelRows(RBF(), X, sizes=[40, 30, 20]).view(), RBF()(X)
    view.fetch(np.arange(90))
    out = np.zeros(90)
    view.add(np.arange(90), np.ones(90), out)
    assert np.allclose(out, K.sum(axis=1))


def test_a_view_whose_memory_another_has_taken():
    rows, K = KernelRows(RBF(), X, sizes=[40, 30, 20]), RBF()(X)
    old = rows.view(0, 1)
    old.fetch(np.arange(70))
    rows.view(0, 2).fetch(np.arange(60))
    with pytest.raises(RuntimeError, match=r"another view has reused the memory.*fetch them again"):
        old.add(np.arange(70), np.ones(70), np.zeros(70))
    old.fetch(np.arange(70))
    out = np.zeros(70)
    old.add(np.arange(70), np.ones(70), out)
    assert np.allclose(out, K[:70, :70].sum(axis=1))
    rows.view(0, 2).fetch(np.arange(60))
    assert np.allclose(old.matrix(), K[:70, :70])


def test_a_cache_stays_within_the_memory():
    Z, wish = np.random.default_rng(2).normal(size=(400, 4)), {"cache_bytes": 10**9, "n_threads": 1}
    rows = KernelRows(Polynomial(2), Z, **wish, max_memory=3_500_000)
    held = 8 * 400 * rows.view().capacity
    assert 8 * 400 * 64 <= held < 8 * 400 * 400
    limit = 3_500_000 - 8 * 2 * 384**2  # tiles are part of the budget
    assert held + rows.block_bytes <= rows.available_bytes < limit
    with pytest.raises(MemoryBudgetError, match="a support vector machine on 400 points needs 3"):
        KernelRows(Polynomial(2), Z, **wish, max_memory=3_000_000)
