"""Pre-images of expansions: exact values, laws for the zoo, every method against brute force."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mercer import Expansion, MemoryBudgetError, NotDifferentiableError, NotPositiveDefiniteError
from mercer.kernels import (
    RBF,
    Bilinear,
    Callable,
    Cauchy,
    Chi2,
    Cosine,
    Distance,
    Fixed,
    HistogramIntersection,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Multiquadric,
    Polynomial,
    Precomputed,
    PreimageFormula,
    RationalQuadratic,
    Sigmoid,
    ThinPlate,
    White,
    closed_form_preimage,
    node,
)

METHODS = (
    "nearest",
    "convex",
    "distance",
    "fixed_point",
    "regularized",
    "gradient",
    "conformal",
    "learned",
)
VECTORS = [
    e
    for e in zoo.KERNELS
    if e.psd
    and e.domain in ("vectors", "nonnegative")
    and e.id not in ("Scale 0", "deep")
    # With White, no two points are equal.
    and "hite" not in e.id
    and e.id != "Conditioned inducing"
]


def smooth_targets(rng, X, m, noise=0.02):
    """Return combinations of neighbours; the weights sum to 1, and some are negative."""
    near = np.exp(-((X[:, None] - X[None, :m]) ** 2).sum(axis=2))
    W = near / near.sum(axis=0) + noise * rng.normal(size=near.shape)
    return W / W.sum(axis=0)


def residual(kernel, f, Z):
    """Return |phi(z_c) - f_c|^2, computed with expansions."""
    return np.array(
        [float((Expansion.sections(kernel, Z[[c]]) - f[c]).norm()[0]) ** 2 for c in range(len(f))]
    )


def problem(seed):
    """Return a random expansion: kernel, points, and coefficients of every size and sign."""
    rng = np.random.default_rng(seed)
    d, n, m = int(rng.integers(1, 12)), int(rng.integers(4, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0)
    width = float(np.sqrt(d) * rng.uniform(0.4, 3.0))
    kernel = [
        RBF(width),
        Matern(width, nu=2.5),
        RationalQuadratic(width),
        Cauchy(width),
        Polynomial(degree=3, gamma=0.3 / d),
        2.0 * RBF(width) + 1,
        RBF(width) + Linear(),
    ][seed % 7]
    kind = seed % 3
    if kind == 0:
        W = smooth_targets(rng, X, min(m, n))
    elif kind == 1:
        W = rng.dirichlet(np.ones(n), size=m).T
    else:
        W = rng.normal(size=(n, m)) / np.sqrt(n)
    return Expansion(kernel, X, W)


# ---------------------------------------------------------------------- exact values


@pytest.mark.parametrize("entry", VECTORS, ids=[e.id for e in VECTORS])
def test_a_section_is_its_own_pre_image(entry):
    X = entry.points(12)
    found = Expansion.sections(entry.kernel, X)[[3, 7]].preimage()
    size = float(np.max(entry.kernel.diag(X)))
    assert np.all(found.residuals <= 1e-9 * size)


SMOOTH = [RBF(2.0), Matern(2.0), Cauchy(2.0), Polynomial(degree=3, gamma=0.2), RBF(2.0) + Linear()]


@pytest.mark.parametrize("kernel", [*SMOOTH, Laplacian(3.0)], ids=str)
def test_a_point_is_found_again_without_being_a_candidate(kernel):
    rng = np.random.default_rng(15)
    X, z = rng.normal(size=(40, 2)), rng.normal(size=(3, 2)) * 0.5
    found = Expansion.sections(kernel, z).preimage(candidates=X, max_iter=2000)
    tol = 0.1 if isinstance(kernel, Laplacian) else 1e-3  # a kink stops L-BFGS early
    np.testing.assert_allclose(found.points, z, atol=tol)


@pytest.mark.parametrize("kernel", [Linear(), Fixed(3.0 * Linear()) + 2, Bilinear(zoo.A)])
def test_linear_kernels_have_exact_pre_images(kernel):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
    W /= W.sum(axis=0)
    found = Expansion(kernel, X, W).preimage()
    np.testing.assert_allclose(found.points, W.T @ X, rtol=1e-12)
    assert found.methods == ("exact",) * 4
    assert np.all(found.residuals < 1e-10)


def test_the_centre_of_two_points_is_between_them():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    found = Expansion.mean(RBF(2.0), X).preimage()
    np.testing.assert_allclose(found.points, [[0.5, 1.0]], atol=1e-6)
    # |phi(z) - mu|^2 = 1 - 2 e^(-|x/2|^2 / 2 l^2) + (1 + e^(-|x|^2 / 2 l^2)) / 2
    expected = 1 - 2 * np.exp(-1.25 / 8) + 0.5 * (1 + np.exp(-5 / 8))
    np.testing.assert_allclose(found.residuals, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(2.0),
        RBF((1.0, 2.0, 4.0)),
        Matern(2.0),
        RationalQuadratic(1.5),
        Cauchy(2.0),
        InverseMultiquadric(2.0),
        Multiquadric(2.0),
        Distance(),
        Polynomial(degree=3, gamma=0.1),
        2.0 * RBF(2.0) + 1,
    ],
    ids=str,
)
def test_the_distance_method_recovers_a_point_from_its_distances(kernel):
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(30, 3)), rng.normal(size=(2, 3))
    found = Expansion.sections(kernel, z).preimage("distance", candidates=X)
    np.testing.assert_allclose(found.points, z, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_residuals_are_those_of_the_geometry(seed):
    f = problem(seed)
    for method in (*METHODS, "auto"):
        try:
            found = f.preimage(method)
        except TypeError:
            continue
        expected = residual(f.kernel, f, found.points)
        scale = 1.0 + np.abs(expected)
        np.testing.assert_allclose(found.residuals / scale, expected / scale, atol=1e-7)
        assert len(found.methods) == len(f) and found.report.n_iter >= 0


# ---------------------------------------------------------------------- global minima


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(block, marks=pytest.mark.long) for block in range(2, 8))]
)
def test_auto_is_at_least_as_good_as_every_method(block):
    for seed in range(25 * block, 25 * block + 25):
        f = problem(seed)
        best = f.preimage().residuals
        margin = 1e-9 * (1.0 + f.norm() ** 2)
        for method in METHODS:
            try:
                others = f.preimage(method).residuals
            except TypeError:  # not supported for this kernel
                assert method in ("distance", "fixed_point", "regularized")
                continue
            assert np.all(best <= others + margin), (seed, method)


def test_the_gradient_vanishes_where_the_iterations_end():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    for kernel in (RBF(2.0), RBF((1.0, 2.0, 3.0, 4.0)), Matern(2.0, nu=2.5), Cauchy(2.0)):
        f = Expansion(kernel, X, smooth_targets(rng, X, 3, noise=0.0))
        for method in ("fixed_point", "gradient", "auto"):
            Z = f.preimage(method, tol=1e-9, max_iter=5000).points
            slope = np.einsum("ccj->cj", f.gradient(Z))  # k(z, z) is constant
            np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_dot_products_end_where_their_gradient_vanishes():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    kernel = Polynomial(degree=3, gamma=0.2)
    f = Expansion(kernel, X, smooth_targets(rng, X, 3, noise=0.0))
    Z = f.preimage("fixed_point", tol=1e-10, max_iter=5000).points
    slope = kernel._diag_gradient(Z, np.ones(3)) - 2 * np.einsum("ccj->cj", f.gradient(Z))
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_the_regularized_form_is_pulled_to_its_start():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 3))
    f = Expansion(RBF((2.0, 1.0, 3.0)), X, smooth_targets(rng, X, 2, noise=0.0))
    start = rng.normal(size=(2, 3))
    apart = [
        np.linalg.norm(f.preimage("regularized", start=start, regularization=r).points - start)
        for r in (0.0, 0.1, 1.0, 10.0)
    ]
    assert apart == sorted(apart, reverse=True)
    free = f.preimage("fixed_point", start=start).points
    none = f.preimage("regularized", start=start, regularization=0.0).points
    np.testing.assert_array_equal(none, free)
    # z = (sum w x + l x_0) / (sum w + l)
    Z = f.preimage("regularized", start=start, regularization=0.1, tol=1e-12, max_iter=5000).points
    W = f.coefficients.T * f.kernel(Z, X)
    expected = (W @ X + 0.1 * start) / (W.sum(axis=1, keepdims=True) + 0.1)
    np.testing.assert_allclose(Z, expected, atol=1e-9)


@pytest.mark.parametrize("method", ["fixed_point", "gradient", "auto"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0), Cauchy(1.0)], ids=str)
@pytest.mark.parametrize("far", [1e3, 1e6])
def test_a_start_far_away_does_not_underflow(kernel, method, far):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3))
    f = Expansion.mean(kernel, X)
    near = f.preimage().residuals
    # exp(-1.5e6), for example
    found = f.preimage(method, start=np.full((1, 3), far), max_iter=5000)
    np.testing.assert_allclose(found.residuals, near, rtol=1e-2)


def test_auto_looks_beyond_its_start():
    for seed in range(0, 60, 7):
        f = problem(seed)
        start = np.random.default_rng(seed).normal(size=(len(f), f.points.shape[1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert np.all(f.preimage(start=start).residuals <= f.preimage().residuals + 1e-8)


HARD = {
    "wide": (RBF(1e6), lambda X: X),
    "wide Matern": (Matern(1e8), lambda X: X),
    "all the same": (RBF(), lambda X: np.repeat(X[:1], 10, axis=0)),
    "all the same, conditional": (Distance(), lambda X: np.repeat(X[:1], 10, axis=0)),
    "conditional": (Multiquadric(), lambda X: X),
    "one point": (Matern(), lambda X: X[:1]),
    "far off": (RBF() + Linear(), lambda X: X + 1e6),
    "on a line": (RBF(), lambda X: X[:, :1] * [1.0, 2.0, 0.0]),
    "zeros": (Cosine(), lambda X: np.zeros((5, 3))),
    "histograms": (Chi2(1.0), lambda X: np.abs(X) ** 3),
    "intersection": (HistogramIntersection(), lambda X: np.abs(X) ** 3),
}


def test_noise_does_not_favour_a_candidate():
    X = np.array([[0.0], [0.01], [3.0]])
    f = Expansion(RBF() + White(5.0), X, np.array([0.3, 0.3, 0.4]))
    every = [f.preimage("nearest", candidates=X[[i]]).residuals[0] for i in range(3)]
    assert f.preimage("nearest").residuals[0] == pytest.approx(min(every))
    assert f.preimage().residuals[0] <= min(every)


def test_an_indefinite_similarity_has_what_can_be_had():
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = Expansion(Sigmoid(0.4, -0.5), X, np.full(20, 0.05)).preimage()
    assert "learned" in found.report.message.partition(";")[2]
    with pytest.raises(NotPositiveDefiniteError, match="no regression can be learned"):
        Expansion(Sigmoid(0.4, -0.5), X, np.full(20, 0.05)).preimage("learned")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", HARD)
def test_auto_survives(name):
    kernel, change = HARD[name]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = change(rng.normal(size=(40, 3)))
        W = np.abs(rng.normal(size=(len(X), 3)))
        f = Expansion(kernel, X, W / W.sum(axis=0))
        found = f.preimage()
        assert np.all(np.isfinite(found.points))
        margin = 1e-3 if name == "far off" else 1e-9 * (1.0 + np.abs(found.residuals))
        assert np.all(found.residuals <= f.preimage("nearest").residuals + margin)


def test_what_does_not_fit_the_budget_is_left_out():
    f = Expansion.mean(RBF(), np.random.default_rng(0).normal(size=(30, 2)))
    found = f.preimage(max_memory=1000)
    assert found.report.message.endswith("; conformal, learned failed")


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_distances_of_any_size_are_met(scale):
    rng = np.random.default_rng(16)
    X, z = rng.normal(size=(30, 3)), rng.normal(size=(2, 3))
    found = Expansion.sections(Distance(), scale * z).preimage("distance", candidates=scale * X)
    np.testing.assert_allclose(found.points, scale * z, atol=1e-6 * scale)


def test_neighbours_of_many_columns_are_met_too():
    rng = np.random.default_rng(17)
    X = rng.normal(size=(8, 30))
    z = rng.dirichlet(np.ones(8), size=2) @ X  # in the span of the points
    found = Expansion.sections(RBF(8.0), z).preimage("distance", candidates=X)
    np.testing.assert_allclose(found.points, z, atol=1e-6)


def test_linear_kernels_do_not_cancel_far_from_the_origin():
    X = np.random.default_rng(18).normal(size=(40, 3))
    f = Expansion.mean(Linear(), X + 1e8)
    true = np.sum((X - X.mean(axis=0)) ** 2, axis=1)
    found = f.preimage("nearest")
    assert np.argmin(true) == np.argmin(np.abs(X + 1e8 - found.points).sum(axis=1))
    np.testing.assert_allclose(found.residuals, true.min(), rtol=1e-5)


def test_negative_weights_do_not_cycle():
    X = np.array([[0.0], [1.0], [2.0]])
    f = Expansion(RBF(0.7), X, np.array([1.0, -1.5, 1.0]))
    start = np.array([[1.0]])
    found = f.preimage("fixed_point", start=start)
    assert f(found.points)[0, 0] >= f(start)[0, 0]
    grid = np.linspace(-3, 5, 2001)[:, None]
    assert f(f.preimage().points)[0, 0] >= f(grid).max() - 1e-9


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_a_pre_image_moves_with_the_points(seed, scale, shift):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 3))
    W = smooth_targets(rng, X, 2, noise=0.0)
    one = Expansion(RBF(1.5), X, W).preimage()
    two = Expansion(RBF(1.5 * scale), scale * X + shift, W).preimage()
    np.testing.assert_allclose(two.residuals, one.residuals, atol=1e-9)
    np.testing.assert_allclose(two.points, scale * one.points + shift, atol=1e-3 * scale)


# ---------------------------------------------------------------------- single methods


def test_convex_combinations_stay_in_the_hull():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(40, 1))
    f = Expansion(RBF(0.3), X, rng.normal(size=(40, 5)))
    Z = f.preimage("convex").points
    assert np.all((X.min() <= Z) & (X.max() >= Z))
    mean = Expansion.mean(Linear(), X[:6])
    np.testing.assert_allclose(mean.preimage("convex").points, [X[:6].mean(axis=0)], atol=1e-6)


def test_nearest_is_the_best_candidate():
    rng = np.random.default_rng(7)
    X, C = rng.normal(size=(20, 2)), rng.normal(size=(9, 2))
    f = Expansion.mean(Matern(), X)
    every = [residual(f.kernel, f, C[[i]])[0] for i in range(9)]
    found = f.preimage("nearest", candidates=C)
    np.testing.assert_array_equal(found.points, C[[np.argmin(every)]])
    np.testing.assert_allclose(found.residuals, min(every), rtol=1e-9)


def test_the_learned_map_is_chosen_by_leaving_out():
    from mercer.expansion.preimage import choose_regression_map

    rng = np.random.default_rng(8)
    T = rng.normal(size=(25, 2))
    X = np.column_stack([np.sin(T[:, 0]), T[:, 1] ** 2, T.sum(axis=1)])
    choice = choose_regression_map(T @ T.T, X, shift=0.01)
    kernel = RBF(choice.width)
    errors = []
    centred = X - X.mean(axis=0)
    for i in range(25):
        rest = np.arange(25) != i
        K = kernel(T[rest]) + 0.01 * np.eye(24)
        errors.append(centred[i] - kernel(T[[i]], T[rest])[0] @ np.linalg.solve(K, centred[rest]))
    np.testing.assert_allclose(choice.error, np.mean(np.square(errors)), rtol=1e-8)
    assert choose_regression_map(T @ T.T, X).error <= choice.error
    T -= T.mean(axis=0)
    line = choose_regression_map(T @ T.T, T @ rng.normal(size=(2, 4)), shift=0.01)
    assert line.width is None  # a linear map


def test_the_learned_map_gives_back_training_points():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    found = Expansion.sections(RBF(2.0), X)[[0, 5, 9]].preimage("learned")
    np.testing.assert_allclose(found.points, X[[0, 5, 9]], atol=0.02)
    assert "leave-one-out error" in found.report.message


def test_the_conformal_map_is_a_weighted_mean_bent():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(30, 3))
    W = smooth_targets(rng, X, 4, noise=0.0)
    f = Expansion(RBF(1.5), X, W)
    flat, found = W.T @ X, f.preimage("conformal")
    bent = found.residuals < residual(f.kernel, f, flat)
    assert np.count_nonzero(bent) >= 3
    # z = mean + X^T g - eta X^+ K^-1 g: the nonlinear term has this direction.
    centred = X - X.mean(axis=0)
    bend = np.linalg.pinv(centred) @ np.linalg.solve(f.kernel(X) + 3e-9 * np.eye(30), W)
    cosines = np.sum((flat - found.points) * bend.T, axis=1)
    cosines /= np.linalg.norm(flat - found.points, axis=1) * np.linalg.norm(bend, axis=0)
    np.testing.assert_allclose(cosines[bent], 1.0, atol=1e-3)


def test_domains_are_kept():
    rng = np.random.default_rng(11)
    X = rng.uniform(size=(30, 4))
    W = smooth_targets(rng, X, 3, noise=0.05)
    found = Expansion(Chi2(0.5), X, W).preimage()
    assert np.all(found.points >= 0)
    assert np.all(found.residuals <= Expansion(Chi2(0.5), X, W).preimage("nearest").residuals)


def test_sparse_and_single_precision_points():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(25, 3)) * (rng.random((25, 3)) < 0.5)
    W = smooth_targets(rng, X, 2, noise=0.0)
    dense = Expansion(RBF(1.5), X, W).preimage()
    sparse = Expansion(RBF(1.5), sp.csr_array(X), W).preimage()
    single = Expansion(RBF(1.5), X.astype(np.float32), W).preimage()
    np.testing.assert_allclose(sparse.points, dense.points, atol=1e-5)
    np.testing.assert_allclose(single.points, dense.points, atol=1e-4)


def test_kernels_without_a_gradient_take_the_best_candidate():
    f = Expansion(
        Callable(zoo.laplace), np.random.default_rng(13).normal(size=(20, 2)), np.ones(20)
    )
    found = (f / 20).preimage()
    assert set(found.methods) <= {"nearest", "convex", "conformal", "learned"}
    assert found.residuals[0] <= f.preimage("nearest").residuals[0]


# ---------------------------------------------------------------------- structured objects

WORDS = ["abba", "cabb", "baab", "dcba", "aacb"]


def one_letter(word):
    return [word[:i] + c + word[i + 1 :] for i in range(len(word)) for c in "abcd"]


def hamming(s, t):
    return float(sum(a == b for a, b in zip(s, t, strict=True)))


def test_objects_climb_to_a_better_one():
    f = Expansion.mean(Callable(hamming), WORDS)
    nearest = f.preimage("nearest")
    assert nearest.points[0] in WORDS
    climbed = f.preimage(neighbours=one_letter)
    assert climbed.methods == ("search",)
    # The mean of this kernel is a sum over positions: the best word has the most frequent letters.
    best = min(
        (a + b + c + d for a in "abcd" for b in "abcd" for c in "abcd" for d in "abcd"),
        key=lambda w: hamming(w, w) - 2 * np.mean([hamming(w, x) for x in WORDS]),
    )
    assert climbed.points[0] == best
    assert climbed.residuals[0] <= nearest.residuals[0]
    assert f.preimage().points == nearest.points  # no local changes are known for this kernel


def test_indices_of_given_values_have_the_nearest():
    kernel = Precomputed(zoo.VALUES)
    f = Expansion(kernel, np.arange(12), np.eye(12)[:, [4]])
    found = f.preimage()
    np.testing.assert_array_equal(found.points, [4])
    assert found.residuals[0] < 1e-9


@node
class Intersection(Kernel):
    """k(A, B) = |A n B| of sets, whose pre-images have a closed form."""

    def _tile(self, P, Q, out):
        for i, a in enumerate(P.arrays[0]):
            out[i] = [len(a & b) for b in Q.arrays[0]]


@closed_form_preimage.register
def _(kernel: Intersection, X, C):
    elements = sorted(set().union(*X))
    inside = np.array([[e in x for e in elements] for x in X], dtype=float)
    rows = C.T @ inside
    return PreimageFormula(
        [{e for e, w in zip(elements, row, strict=True) if w >= 0.5} for row in rows]
    )


def test_a_kernel_may_know_its_pre_images():
    X = [{1, 2}, {2, 3}, {2}]
    found = Expansion.mean(Intersection(), X).preimage()
    assert found.points == [{2}] and found.methods == ("exact",)
    np.testing.assert_allclose(found.residuals, 2 / 9)


# ---------------------------------------------------------------------- invalid input

X3 = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("expansion", "arguments", "error", "text"),
    [
        (Expansion(RBF(), X3[:0], np.zeros((0, 1))), {}, ValueError, "of 1 functions on 0 points"),
        (Expansion(RBF(), X3, np.zeros((4, 0))), {}, ValueError, "of 0 functions on 4 points"),
        (Expansion.mean(RBF(), X3), {"method": "newton"}, ValueError, "method must be one of"),
        (
            Expansion(RBF(), X3, np.full(4, np.nan)),
            {},
            ValueError,
            "coefficients of the expansion contain NaN",
        ),
        (
            Expansion.mean(Callable(zoo.laplace), X3),
            {"method": "gradient"},
            NotDifferentiableError,
            "has no derivative with respect to its points",
        ),
        (
            Expansion.mean(Laplacian(), X3),
            {"method": "fixed_point"},
            TypeError,
            "the fixed-point iteration needs a kernel that is a function of the distance",
        ),
        (
            Expansion.mean(Laplacian(), X3),
            {"method": "distance"},
            TypeError,
            "is not; use 'gradient'",
        ),
        (Expansion.mean(ThinPlate(), X3), {"method": "distance"}, TypeError, "invertible function"),
        (
            Expansion.mean(Polynomial(degree=2, coef0=0.0), X3),
            {"method": "distance"},
            TypeError,
            "invertible function",
        ),
        (Expansion.mean(Sigmoid(), X3), {"method": "distance"}, TypeError, "invertible function"),
        (Expansion.mean(RBF(), X3), {"method": "search"}, ValueError, "needs neighbours"),
        (
            Expansion.mean(RBF(), X3),
            {"neighbours": one_letter},
            ValueError,
            "is not used for vectors with method='auto'",
        ),
        (
            Expansion.mean(Callable(hamming), WORDS),
            {"start": ["abba"]},
            ValueError,
            "start requires points that are vectors",
        ),
        (
            Expansion(RBF(), X3, np.full(4, 1e200)),
            {},
            ValueError,
            "\\|f\\|\\^2 is not finite: the coefficients \\(up to 1e\\+200\\)",
        ),
        (
            Expansion(Distance(), X3, np.full(4, 0.5)),
            {},
            ValueError,
            "coefficients must sum to 1, but they sum to 2",
        ),
        (Expansion.mean(RBF(), X3), {"n_neighbors": 2.5}, ValueError, "must be integers"),
        (Expansion.mean(RBF(), X3), {"candidates": X3[0]}, ValueError, "candidates have shape"),
        (Expansion.mean(RBF(), X3), {"start": X3[:2]}, ValueError, r"start has shape \(2, 3\)"),
        (
            Expansion.mean(RBF(), X3),
            {"start": np.full((1, 3), np.inf)},
            ValueError,
            "start contains NaN",
        ),
        (Expansion.mean(RBF(), X3), {"n_neighbors": 0}, ValueError, "n_neighbors and max_iter"),
        (Expansion.mean(RBF(), X3), {"tol": 0.0}, ValueError, "tol positive"),
        (Expansion.mean(RBF(), X3), {"regularization": -1}, ValueError, "regularization must be"),
        (
            Expansion.mean(RBF(), X3),
            {"method": "conformal", "max_memory": 100},
            MemoryBudgetError,
            "the budget is 100 bytes",
        ),
        (
            Expansion.mean(Callable(hamming), WORDS),
            {"method": "gradient"},
            TypeError,
            "needs points that are vectors",
        ),
        (
            Expansion.mean(Callable(hamming), WORDS),
            {"candidates": []},
            ValueError,
            "candidates is empty",
        ),
        (Expansion.mean(RBF(), X3), {"candidates": X3[:0]}, ValueError, "candidates is empty"),
        (
            Expansion.mean(RBF(), X3),
            {"candidates": X3[:, :2]},
            ValueError,
            "candidates have shape \\(4, 2\\), but the points have shape \\(4, 3\\)",
        ),
    ],
)
def test_bad_input(expansion, arguments, error, text):
    with pytest.raises(error, match=text):
        expansion.preimage(**arguments)


def test_what_has_not_converged_says_so():
    rng = np.random.default_rng(14)
    X = rng.normal(size=(40, 3))
    f = Expansion.mean(RBF(1.0), X)
    for method in ("gradient", "fixed_point", "auto"):
        with pytest.warns(
            ConvergenceWarning, match=rf"1 of 1 pre-images by '{method}' still moved"
        ):
            found = f.preimage(method, max_iter=1, start=np.full((1, 3), 0.5), tol=1e-12)
        assert "did not converge" in repr(found)
    words = Expansion.mean(Callable(hamming), ["dddd", "abba", "abba"])
    with pytest.warns(ConvergenceWarning, match=r"by 'search' still moved after 1 steps; increase"):
        words.preimage("search", neighbours=one_letter, candidates=["dddd"], max_iter=1)


def test_the_result_can_be_read():
    found = Expansion.mean(RBF(), X3).preimage("nearest")
    assert repr(found).startswith("<PreImages: 1 points, 1 by nearest, mean residual")
    assert "preimage(method='nearest')" in str(found.report)


def test_distances_of_the_linear_kernel():
    X, w = np.random.default_rng(0).normal(size=(20, 2)), np.arange(1.0, 21.0) / 210.0
    found = Expansion(Linear(), X, w).preimage(method="distance")
    np.testing.assert_allclose(found.points, [w @ X], rtol=1e-8)
