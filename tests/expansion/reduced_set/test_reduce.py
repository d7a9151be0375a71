"""Reduced sets: errors against brute force, valid bounds, and the guarantees of each method."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import check_grad
from threadpoolctl import threadpool_limits

from mercer import (
    Expansion,
    MemoryBudgetError,
    NotDifferentiableError,
    NotPositiveDefiniteError,
    Reduction,
)
from mercer.expansion.reduced_set import _reduce
from mercer.expansion.reduced_set._construction import _SquaredError
from mercer.expansion.reduced_set._reduction_target import Selection, TargetFunctions
from mercer.gram import DenseGram, rpcholesky
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Callable,
    Chi2,
    Cosine,
    Distance,
    Laplacian,
    Linear,
    Matern,
    Multiquadric,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
)

MOVING = ("kmeans", "construct")


def smooth(n=150, m=2, d=2, kernel=None, seed=0):
    """Return functions whose coefficients vary smoothly, like those of a fitted model."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    waves = np.sin(X @ np.random.default_rng(seed + 1).normal(size=(d, m)) + np.arange(m))
    return Expansion(RBF(1.0) if kernel is None else kernel, X, waves)


def squared_distance(f, g):
    """Return |f_c - g_c|^2 from three kernel blocks, and the sum of the sizes of its terms."""
    k, A, B = f.kernel, f.coefficients, g.coefficients
    blocks = (A, k(f.points), A, 1.0), (A, k(f.points, g.points), B, -2.0), (B, k(g.points), B, 1.0)
    square = sum(c * np.einsum("ic,ij,jc->c", U, K, V) for U, K, V, c in blocks)
    size = sum(abs(c) * np.einsum("ic,ij,jc->c", abs(U), abs(K), abs(V)) for U, K, V, c in blocks)
    return square, size


def exact_values(kernel, X, Z):
    """Return k(X, Z) in extended precision, by definition, for the kernels below."""
    X, Z = np.longdouble(X), np.longdouble(Z)
    if isinstance(kernel, RBF):
        squared = ((X[:, None] - Z) ** 2).sum(axis=2)
        return np.exp(-squared / (2 * np.longdouble(kernel.length_scale) ** 2))
    if isinstance(kernel, Polynomial):
        return (np.longdouble(kernel.gamma) * (X @ Z.T) + kernel.coef0) ** int(kernel.degree)
    assert isinstance(kernel, Linear)
    return X @ Z.T


def exact_squares(f, g):
    """Return |f_c - g_c|^2 in extended precision, from one expansion in all points."""
    X = np.concatenate([f.points, g.points])
    A = np.concatenate([np.longdouble(f.coefficients), -np.longdouble(g.coefficients)])
    return np.einsum("ic,ic->c", A, exact_values(f.kernel, X, X) @ A)


def check(f, g, X=None):
    """The certificate is the RKHS distance, not below it, and bounds the error of values."""
    r = g.reduction
    assert isinstance(r, Reduction) and r.n_points == len(g.coefficients) == len(g.points)
    assert r.n_points_before == len(f.coefficients) and len(r.error) == len(f)
    square, size = squared_distance(f, g)
    np.testing.assert_allclose(r.error**2, square, rtol=1e-9, atol=1e-14 * size.max())
    assert np.all(r.error**2 >= square - 1e-15 * size)
    np.testing.assert_allclose(r.norm, f.norm(), rtol=1e-9, atol=1e-9)
    if X is not None:
        apart = np.abs(f(X) - g(X))
        slack = 1e-12 * (1.0 + np.abs(f.kernel(X, g.points)) @ np.abs(g.coefficients))
        assert np.all(apart <= r.bound(X) + slack)
        assert np.all(apart <= r.sup_bound + slack)


# ---------------------------------------------------------------------- the zoo


@pytest.mark.parametrize("entry", **zoo.every(psd=True))
def test_selection_over_the_zoo(entry):
    points, X = entry.points(11), entry.points(6, seed=1)
    a = np.random.default_rng(2).normal(size=(11, 2))
    f = Expansion(entry.kernel, points, a)
    g = f.compress(4, method="select")
    check(f, g, X)
    r = g.reduction
    assert r.method == "select" and r.n_points <= 4
    if r.curve is not None:
        assert np.all(np.diff(r.curve, axis=0) <= 0.0)
        np.testing.assert_allclose(r.curve[-1], r.error, rtol=1e-6, atol=1e-6 * r.norm.max())


@pytest.mark.parametrize("entry", **zoo.every(psd=True, differentiable=True))
def test_construction_over_the_zoo(entry):
    f = Expansion(entry.kernel, entry.points(10), np.random.default_rng(2).normal(size=(10, 2)))
    g = f.compress(3, method="construct", max_iter=8)
    check(f, g, entry.points(6, seed=1))
    selected = f.compress(3, method="select").reduction
    assert np.sum(g.reduction.error**2) <= np.sum(selected.error**2) * (1 + 1e-9)


@pytest.mark.parametrize("entry", **zoo.every())
def test_diagonal_bound(entry):
    bound = entry.kernel.diagonal_bound
    diagonal = entry.kernel.diag(entry.points(12))
    assert isinstance(bound, float) and np.all(np.abs(diagonal) <= bound * (1 + 1e-12))


@pytest.mark.parametrize(
    ("kernel", "bound"),
    [
        (RBF(), 1.0),
        (2.5 * Matern() + 1, 3.5),
        ((RBF() + 1) * (3 * Laplacian()), 6.0),
        ((2 * RBF()) ** 3, 8.0),
        (RBF() * Linear(), np.inf),
        (0.0 * Linear(), 0.0),
        (Linear() * (0.0 * RBF()), 0.0),
        (Precomputed([[2.0, 1.0], [1.0, 3.0]]), 3.0),
        (Sigmoid(), 1.0),
        (White(0.3) + Chi2(), 1.3),
        (Distance(), np.inf),
        (RBF() + Multiquadric(), np.inf),
        (AdditiveChi2(), np.inf),
    ],
    ids=str,
)
def test_diagonal_bounds_are_tight(kernel, bound):
    assert kernel.diagonal_bound == pytest.approx(bound)


# ---------------------------------------------------------------------- selection


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(float, (9, 2), elements=st.floats(-3, 3)),
    # The squared norm of a function with coefficients below 1e-100 underflows.
    a=arrays(float, (9, 2), elements=st.floats(-5, 5).map(lambda v: v * (abs(v) > 1e-100))),
    n_points=st.integers(1, 8),
    kernel=st.sampled_from([RBF(0.7), Matern(nu=0.5), Linear(), Polynomial(degree=2), RBF() + 1]),
)
def test_selection_of_any_points(X, a, n_points, kernel):
    f = Expansion(kernel, X, a)
    g = f.compress(n_points, method="select")
    check(f, g, X)


def test_each_choice_is_the_best_one():
    f = smooth(30)
    functions = TargetFunctions.of(f.kernel, f.points, f.coefficients)
    selection = Selection(functions).extend(5)
    chosen, curve = selection.indices, selection.curve
    for j in range(5):
        errors = [
            functions.project(f.points[[*chosen[:j], i]]).squares.sum()
            for i in range(30)
            if i not in chosen[:j]
        ]
        assert np.sum(curve[j] ** 2) == pytest.approx(min(errors), rel=1e-6)


def test_a_selection_goes_on_where_it_stopped():
    f = smooth(300)
    functions = TargetFunctions.of(f.kernel, f.points, f.coefficients)
    whole, parts = Selection(functions).extend(30), Selection(functions)
    for n_points, max_error in ((3, 0.0), (29, 1e-2), (30, 0.0)):
        parts.extend(n_points, max_error)
    np.testing.assert_array_equal(parts.indices, whole.indices)
    np.testing.assert_array_equal(parts.curve, whole.curve)


def test_a_tight_error_selects_once(monkeypatch):
    made, first = [], Selection.__init__
    monkeypatch.setattr(
        Selection, "__init__", lambda self, f: (made.append(self), first(self, f))[1]
    )
    f = smooth(200)
    for method in ("select", "construct"):
        made.clear()
        f.compress(max_error=1e-5 * f.norm().max(), method=method, max_iter=2)
        assert len(made) == 1


@pytest.mark.parametrize("kernel", [RBF(0.8), Linear(), Polynomial(degree=3, gamma=0.5)], ids=str)
@pytest.mark.parametrize("method", ["select", *MOVING])
def test_errors_are_not_below_the_truth_in_more_digits(kernel, method):
    for seed, n_points in ((0, 4), (1, 30)):
        f = smooth(60, d=3, kernel=kernel, seed=seed)
        f = Expansion(kernel, f.points - f.points.mean(axis=0), 1e3 * f.coefficients)
        g = f.compress(n_points, method=method, max_iter=10)
        truth = exact_squares(f, g)
        assert np.all(g.reduction.error**2 >= truth)
        assert np.all(g.reduction.error**2 <= truth + 2 * g.reduction.rounding**2)


@pytest.mark.parametrize("kernel", [Linear(), Cosine(), Polynomial(coef0=0.0)], ids=str)
def test_terms_that_cancel_are_no_indefiniteness(kernel):
    X = np.random.default_rng(0).normal(size=(200, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for points in (X, np.concatenate([X, -X])):
        f = Expansion.mean(kernel, points)  # by symmetry, the mean is almost 0
        K = kernel(points)
        np.testing.assert_allclose(f.norm(), np.sqrt(max(K.mean(), 0.0)), atol=1e-7)
        for method in ("select", *MOVING):
            g = f.compress(5, method=method, max_iter=5)
            assert g.reduction.error[0] <= f.norm()[0] + 1.001 * g.reduction.rounding[0]


@pytest.mark.parametrize(("seed", "degree"), [(43, 3), (88, 5)])
def test_a_rank_that_is_exhausted_is_not_indefiniteness(seed, degree):
    X = np.random.default_rng(seed).normal(size=(150, 2))
    f = Expansion(Polynomial(degree=degree), X, np.sin(X[:, 0]))
    g = f.compress(40, method="select")
    assert g.reduction.relative_error[0] < 1e-6


def test_selected_points_are_points_of_the_expansion():
    f = smooth()
    g = f.compress(9, method="select")
    assert all(any(np.array_equal(z, x) for x in f.points) for z in g.points)
    g = Expansion(Precomputed(zoo.VALUES), np.arange(12), np.ones(12)).compress(3)
    assert g.reduction.method == "select" and set(g.points) <= set(range(12))


def test_one_term_compresses_without_error():
    X = np.random.default_rng(0).normal(size=(40, 3))
    a = np.zeros((40, 1))
    a[17] = 2.0
    for method in ("select", "construct", "auto"):
        g = Expansion(RBF(), X, a).compress(1, method=method)
        assert g.reduction.error[0] < 1e-6
        np.testing.assert_allclose(g(X), RBF()(X, X[[17]]) * 2.0, atol=1e-6)
    alone = Expansion(RBF(), X[:1], [[3.0]])
    assert alone.compress(1).reduction.error[0] < 1e-6


def test_a_space_of_few_dimensions_needs_no_more_points():
    X = np.random.default_rng(0).normal(size=(60, 3))
    f = Expansion(Linear(), X, np.ones((60, 1)))
    g = f.compress(20, method="select")
    assert g.reduction.n_points <= 3
    np.testing.assert_allclose(g(X), f(X), atol=1e-9)


def test_functions_that_are_zero():
    f = Expansion(RBF(), np.random.default_rng(0).normal(size=(20, 2)), np.zeros((20, 2)))
    for method in ("auto", "select", "construct"):
        g = f.compress(5, method=method)
        np.testing.assert_array_equal(g.reduction.error, [0.0, 0.0])
        np.testing.assert_array_equal(g.reduction.relative_error, [0.0, 0.0])
        assert not np.any(g(f.points))


def test_functions_below_their_own_rounding():
    P = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 2, axis=0)
    a = np.tile([1e6, -1e6], 20)
    a[0] += 1e-3  # the other terms cancel
    f = Expansion(RBF(), P, a)
    for method in ("auto", "select", "construct"):
        with pytest.raises(
            ValueError, match="max_error=1e-06 cannot be reached: with 1 of the 40 points"
        ):
            f.compress(max_error=1e-6, method=method)
    g = f.compress(3)
    np.testing.assert_array_equal(g.points, P[:1])  # the point that matters
    np.testing.assert_allclose(g.coefficients, [[1e-3]], rtol=1e-4)
    assert g.reduction.error[0] >= (g - Expansion(RBF(), P[:1], [1e-3])).norm()[0]
    with pytest.raises(ValueError, match=r"cannot be reached: with 1 of the 1 points"):
        Expansion(RBF(), P[:1], [1.0]).compress(max_error=1e-30)


def test_the_error_that_is_reported_as_reachable_is():
    for seed in range(4):
        f = smooth(40, seed=seed)
        with pytest.raises(ValueError, match="cannot be reached") as caught:
            f.compress(max_error=1e-13, method="select")
        said = float(re.search(r"the error is still (\S+);", str(caught.value))[1])
        assert f.compress(max_error=said, method="select").reduction.error.max() <= said


def test_selection_is_better_than_pivots_of_rpcholesky():
    f = smooth(400, m=1, d=3)
    functions = TargetFunctions.of(f.kernel, f.points, f.coefficients)
    pivots = rpcholesky(DenseGram(f.kernel, f.points), 40, random_state=0).pivots
    ours = f.compress(40, method="select").reduction.error
    assert ours < 0.8 * functions.project(f.points[pivots]).error


def test_max_error_stops_at_the_first_number_of_points_that_does():
    f = smooth(200)
    whole = f.compress(60, method="select").reduction.curve.max(axis=1)
    for goal in (0.3 * f.norm().max(), 0.01 * f.norm().max()):
        r = f.compress(max_error=goal, method="select").reduction
        assert r.error.max() <= goal
        assert r.n_points == 1 + np.argmax(whole <= goal)
    r = smooth(700, kernel=RBF(0.15)).compress(max_error=1.0, method="select").reduction
    assert r.n_points > 256 and r.error.max() <= 1.0  # more points than were allocated at first


def test_construction_to_an_error_needs_fewer_points():
    f = smooth(200)
    goal = 0.02 * f.norm().max()
    selected = f.compress(max_error=goal, method="select").reduction
    constructed = f.compress(max_error=goal, method="construct").reduction
    assert constructed.error.max() <= goal and constructed.n_points < selected.n_points


# ---------------------------------------------------------------------- optimised points


def test_construction_is_better_than_selection_and_clusters():
    f = smooth(300, d=3)
    errors = {m: f.compress(15, method=m).reduction for m in ("select", "kmeans", "construct")}
    total = {m: np.sum(r.error**2) for m, r in errors.items()}
    assert total["construct"] < 0.5 * min(total["select"], total["kmeans"])
    assert all(r.method == m for m, r in errors.items())


@pytest.mark.parametrize("kernel", [RBF((0.7, 2.0)), Polynomial(gamma=0.2) + Matern()], ids=str)
def test_gradient_of_the_energy(kernel):
    f = smooth(600, kernel=kernel)  # more than a block of points
    energy = _SquaredError(TargetFunctions.of(kernel, f.points, f.coefficients), (4, 2), None)
    z = np.random.default_rng(1).normal(size=8)
    size = np.linalg.norm(energy(z)[1])
    assert check_grad(lambda z: energy(z)[0], lambda z: energy(z)[1], z) < 1e-5 * size


@pytest.mark.parametrize("method", ["select", *MOVING])
def test_results_repeat(method):
    f = smooth()
    one, two = (f.compress(10, method=method, max_iter=10) for _ in range(2))
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    for seed in (np.random.default_rng(0), np.random.RandomState(0)):
        check(f, f.compress(10, method=method, max_iter=5, random_state=seed))


def test_results_do_not_depend_on_threads(monkeypatch):
    f = smooth(900, kernel=RBF(0.5))
    for method in ("select", *MOVING):
        results = []
        for threads in (1, 3):
            monkeypatch.setattr("mercer._core._resources.thread_count", lambda n=threads: n)
            with threadpool_limits(threads):
                results.append(f.compress(20, method=method, max_iter=5))
        np.testing.assert_array_equal(results[0].points, results[1].points)
        np.testing.assert_array_equal(results[0].coefficients, results[1].coefficients)
        np.testing.assert_array_equal(results[0].reduction.error, results[1].reduction.error)


def test_points_that_have_nowhere_to_go():
    r = np.random.default_rng(1)
    X = r.normal(size=(40, 3)) * 10.0 ** r.uniform(-4, 4, size=(40, 1))
    f = Expansion.mean(RBF(10.0), X)  # most points are so far apart that the gradient is 0
    for method in ("auto", "construct"):
        g = f.compress(1, method=method, max_iter=20)
        check(f, g, X)
        assert np.isfinite(g.points).all()
    energy = _SquaredError(TargetFunctions.of(f.kernel, X, f.coefficients), (1, 3), None)
    value, slope = energy(np.array([np.nan, 0.0, np.inf]))
    assert value == np.inf and not slope.any()


@pytest.mark.parametrize("method", ["auto", "select", *MOVING])
def test_a_point_whose_section_is_zero(method):
    points = np.concatenate([np.eye(4), -np.eye(4)])  # their mean is 0, and k(0, .) = 0
    f = Expansion(Linear(), points, np.eye(8))
    g = f.compress(1, method=method)
    check(f, g, points)
    assert len(g.points) == 1 and np.all(g.reduction.error <= f.norm() + 1e-7)


def test_auto_says_what_it_did(monkeypatch):
    assert smooth().compress(10).reduction.method == "construct"
    words = zoo.Entry("", Callable(zoo.letters), domain="words").points(15)
    f = Expansion(Callable(zoo.letters), words, np.ones(15))
    assert f.compress(3).reduction.method == "select"
    sparse = Expansion(RBF(), sp.random_array((20, 5), density=0.3, rng=0).tocsr(), np.ones(20))
    g = sparse.compress(5)
    assert g.reduction.method == "select" and sp.issparse(g.points)
    monkeypatch.setattr(
        _reduce, "_TUNING", replace(_reduce._TUNING, max_auto_work=150 * 10 * 52 - 1)
    )
    assert smooth().compress(10).reduction.method == "select"  # more work than that
    assert smooth().compress(9).reduction.method == "construct"


def test_points_stay_in_the_domain_of_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4)) * (rng.uniform(size=(60, 4)) > 0.4)
    f = Expansion(Chi2(0.5), X, rng.normal(size=(60, 1)))
    g = f.compress(8, method="construct", max_iter=20)
    assert g.points.min() >= 0.0
    check(f, g, X)


def test_clusters_of_points_that_coincide():
    X = np.repeat(np.arange(4.0), 10)[:, None]
    f = Expansion(RBF(), X, np.ones(40))
    for method in MOVING:
        g = f.compress(12, method=method)
        assert g.reduction.n_points <= 12 and g.reduction.error[0] < 1e-5


def test_points_in_single_precision_and_in_lists():
    f = smooth(80)
    single = Expansion(f.kernel, f.points.astype(np.float32), f.coefficients)
    for method in ("select", "construct"):
        g = single.compress(20, method=method, max_iter=10)
        assert g.points.dtype == np.float64
        np.testing.assert_allclose(
            g.reduction.error,
            f.compress(20, method=method, max_iter=10).reduction.error,
            rtol=1e-2,
        )
    listed = Expansion(f.kernel, f.points.tolist(), f.coefficients)
    np.testing.assert_array_equal(
        listed.compress(5, method="select").points, f.compress(5, method="select").points
    )


# ---------------------------------------------------------------------- the result


def test_algebra_drops_the_reduction():
    f = smooth()
    g = f.compress(10, method="select")
    assert f.reduction is None and g.reduction is not None
    for h in (g + g, 2 * g, -g, g[0], f - g):
        assert h.reduction is None


def test_repr():
    f = smooth()
    text = repr(f.compress(10, method="select").reduction)
    assert text.startswith("<Reduction by select: 150 to 10 points, errors up to ")
    assert "% of |f|" in text
    assert ", error " in repr(f[0].compress(10, method="select").reduction)


def test_bounds_without_a_bound_on_the_diagonal():
    f = Expansion(Polynomial(degree=2), np.random.default_rng(0).normal(size=(30, 4)), np.ones(30))
    r = f.compress(3, method="select").reduction
    assert np.isinf(r.sup_bound).all() and np.isfinite(r.bound(f.points)).all()


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "either n_points or max_error, got neither"),
        ({"n_points": 3, "max_error": 1.0}, "either n_points or max_error, got both"),
        ({"n_points": 30}, "n_points=30 must be smaller than the present number of points, 30"),
        ({"n_points": 31}, "n_points=31 must be smaller"),
        ({"n_points": 0}, "n_points must be a positive integer, got 0"),
        ({"n_points": 2.5}, "n_points must be a positive integer, got 2.5"),
        ({"max_error": 0.0}, "max_error must be a positive number"),
        ({"max_error": -1.0}, "max_error must be a positive number"),
        ({"max_error": np.nan}, "max_error must be a positive number"),
        ({"n_points": 3, "method": "best"}, "method must be one of 'auto', .*, got 'best'"),
        ({"max_error": 1.0, "method": "kmeans"}, "method='kmeans' needs n_points"),
        ({"n_points": 3, "max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"n_points": 3, "random_state": "a"}, "random_state must be an integer .* got 'a'"),
        ({"n_points": 3, "random_state": -1}, "random_state must be an integer .* got -1"),
    ],
)
def test_invalid_requests(options, text):
    with pytest.raises(ValueError, match=text):
        smooth(30).compress(**options)


def test_an_error_out_of_reach():
    f = Expansion(RBF(0.01), np.arange(12.0)[:, None], np.ones(12))  # all orthogonal
    for method in ("select", "construct"):
        with pytest.raises(
            ValueError,
            match=r"max_error=0\.5 cannot be reached: with 11 of the 12 points .* 1\.01;",
        ):
            f.compress(max_error=0.5, method=method)
    assert f.compress(max_error=1.01, method="select").reduction.n_points == 11


def test_coefficients_that_are_not_finite():
    f = smooth(30)
    bad = np.where(np.arange(30) < 2, np.nan, 1.0)
    with pytest.raises(ValueError, match="2 of 30 coefficients are not finite"):
        Expansion(f.kernel, f.points, bad).compress(3)


def test_nothing_to_compress():
    f = smooth(30)
    with pytest.raises(
        ValueError, match="expansion of 0 functions on 30 points cannot be compressed"
    ):
        f[slice(0)].compress(3)
    with pytest.raises(
        ValueError, match="expansion of 1 functions on 0 points cannot be compressed"
    ):
        Expansion(RBF(), np.empty((0, 2)), np.empty((0, 1))).compress(3)


@pytest.mark.parametrize("method", MOVING)
def test_points_that_cannot_move(method):
    words = Expansion(Callable(zoo.letters), ["ab", "bc", "ca"], np.ones(3))
    with pytest.raises(ValueError, match=f"method='{method}' makes new points.*are a list.*select"):
        words.compress(2, method=method)
    sparse = Expansion(RBF(), sp.eye_array(5, format="csr"), np.ones(5))
    with pytest.raises(ValueError, match="needs dense vectors; these points are a csr"):
        sparse.compress(2, method=method)
    places = Expansion(Precomputed(zoo.VALUES), np.arange(12), np.ones(12))
    with pytest.raises(ValueError, match=r"an array of int64 of shape \(12,\)"):
        places.compress(2, method=method)


def test_a_kernel_without_gradient():
    f = smooth(20, kernel=Callable(zoo.laplace))
    with pytest.raises(NotDifferentiableError, match="choose a method that does not need"):
        f.compress(3, method="construct")
    assert f.compress(3).reduction.method == "select"
    check(f, f.compress(3, method="kmeans"), f.points)


def test_kernels_that_are_none():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(NotPositiveDefiniteError, match=r"a squared norm is .* < 0"):
        Expansion(Distance(), X, np.ones(20)).compress(3)
    a = np.random.default_rng(3).normal(size=20)
    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite"):
        Expansion(Sigmoid(2.0, -1.0), X, a).compress(19, method="select")


@pytest.mark.parametrize("method", ["auto", "select", *MOVING])
def test_kernels_that_are_conditionally_positive_definite(method):
    X = np.random.default_rng(0).normal(size=(20, 2))
    # the norm of f exists, but not that of k(z, .)
    f = Expansion(Distance(), X, np.repeat([1.0, -1.0], 10))
    assert f.norm()[0] > 0
    with pytest.raises(
        NotPositiveDefiniteError, match=r"the values k\(x, x\) allow at most 0: .* conditionally"
    ):
        f.compress(3, method=method)
    same = Expansion.mean(Distance(), X) - Expansion.mean(Distance(), X[::-1])
    assert same.norm() == pytest.approx([0.0], abs=1e-7)


def test_values_between_indices_are_needed():
    f = Expansion(Precomputed(), np.arange(5), np.ones(5))
    with pytest.raises(ValueError, match=r"use Precomputed\(K\)"):
        f.compress(2)


def test_memory():
    with pytest.raises(MemoryBudgetError, match=r"400 of 3000 points needs 9\.2 MiB"):
        smooth(3000).compress(400, method="select", max_memory="6 MiB")


def test_overflow():
    f = Expansion(Polynomial(degree=9), 1e40 * np.ones((4, 2)), np.ones(4))
    with pytest.raises(ValueError, match=r"the usual cause is that the kernel .* overflows"):
        f.compress(2)


def test_one_step_from_each_start_and_a_single_new_point():
    X = np.random.default_rng(0).normal(size=(40, 2))
    short = Expansion(RBF(), X, X[:, 0]).compress(3, method="construct", max_iter=1)
    assert len(short.points) == 3
    flat = Expansion(RBF(50.0), X, np.ones(40)).compress(max_error=0.5, method="construct")
    assert len(flat.points) == 1
