"""The variational bound of a Gaussian process with inducing points (landmarks)."""

import dataclasses
import pickle
import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer import MemoryBudgetError, NotDifferentiableError
from mercer.blocks import Blocks, as_blocks
from mercer.gram import clip_negative_residual
from mercer.kernels import (
    RBF,
    Bounded,
    Constant,
    Distance,
    Fixed,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Scale,
    SklearnKernel,
    White,
)
from mercer.models.gp import InducingBound, MarginalLikelihood, StochasticLikelihood, maximise
from mercer.models.gp._gp_objective import diagonal_pullback, latent_and_noise, without_noise
from mercer.models.gp._inducing_bound import Projection
from mercer.solvers import Status
from mercer.testing._finite_differences import STEP, directional_derivative

rng = np.random.default_rng(0)
N = 90
X = rng.normal(size=(N, 2))
Y = np.c_[np.sin(2 * X[:, 0]), X[:, 1]] + 0.1 * rng.normal(size=(N, 2))
S = rng.normal(size=(15, 2))
UNEQUAL = rng.uniform(0.01, 0.1, size=N)

KERNELS = [
    2 * RBF(1.3) + White(0.1),
    Constant(2.0) * RBF((1.0, 2.0)) + White(0.05),
    2 * RBF((1.0, 2.0)),
    Constant(2.0) * (Matern(2.0, nu=2.5) + White(0.2)) + Linear(),
    1.5 * (RationalQuadratic() + 3 * White(0.1)) + Fixed(White(0.2)) + Bounded(Linear()),
    Normalized(Polynomial(degree=2) + White(0.3)) + Constant(0.5),
    (RBF() + White(0.1)) ** 2,
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
each_noise = pytest.mark.parametrize("noise", [0.02, UNEQUAL], ids=["equal", "unequal"])


def brute(kernel, X, Y, noise, S):
    """Return the bound by its formula, from full kernel matrices."""
    latent = np.array([kernel(x[None], x[None]).item() for x in X])
    D = noise + kernel.diag(X) - latent
    cross = kernel(X, S)
    Q = cross @ np.linalg.pinv(kernel(S, S), rcond=1e-13, hermitian=True) @ cross.T
    L = np.linalg.cholesky(Q + np.diag(D))
    logdet = 2 * np.sum(np.log(L.diagonal()))
    fit = np.sum(np.linalg.solve(L, Y) ** 2)
    gaussian = -0.5 * (fit + Y.shape[1] * (logdet + len(X) * np.log(2 * np.pi)))
    return gaussian - 0.5 * Y.shape[1] * np.sum((latent - np.diag(Q)) / D)


def differences(objective, theta):
    return np.array(
        [
            directional_derivative(lambda e: objective.value(theta + e), STEP * e) / STEP
            for e in np.eye(len(theta))
        ]
    )


# ---------------------------------------------------------------------- values


@each_kernel
@each_noise
def test_value_is_the_formula(kernel, noise):
    bound = InducingBound(kernel, X, Y, noise, landmarks=S)
    assert bound.value() == pytest.approx(brute(kernel, X, Y, noise, S), rel=1e-9)


@each_kernel
@each_noise
def test_gradient_is_that_of_the_value(kernel, noise):
    bound = InducingBound(kernel, X, Y, noise, landmarks=S)
    theta = kernel.theta + 0.1
    value, gradient = bound.value_and_gradient(theta)
    assert value == bound.value(theta)
    want = differences(bound, theta)
    np.testing.assert_allclose(gradient, want, rtol=1e-7, atol=1e-8 * np.abs(want).max())


@each_kernel
@each_noise
def test_all_points_as_landmarks_are_exact(kernel, noise):
    exact = MarginalLikelihood(kernel, X, Y, noise)
    bound = InducingBound(kernel, X, Y, noise)  # fewer points than the default rank
    value, gradient = exact.value_and_gradient()
    assert bound.value() == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(bound.value_and_gradient()[1], gradient, atol=1e-5)


@given(
    rank=st.integers(1, N - 1),
    seed=st.integers(0, 99),
    method=st.sampled_from(["auto", "kmeans", "rpcholesky", "uniform", "kmeans++", "leverage"]),
    noise=st.floats(1e-4, 1.0),
)
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore:.* times the noise unexplained")
def test_never_above_the_likelihood_and_bracketed(rank, seed, method, noise):
    kernel = 2 * RBF(0.8) + White(noise)
    bound = InducingBound(kernel, X, Y, rank=rank, landmarks=method, random_state=seed)
    exact = MarginalLikelihood(kernel, X, Y).value()
    slack = 1e-8 * abs(exact)
    assert bound.value() <= exact + slack
    certificate = bound.posterior().report.certificate
    assert certificate["log p >="] == bound.value()
    assert exact <= certificate["log p <="] + slack


def test_more_landmarks_never_hurt():
    values = [InducingBound(KERNELS[0], X, Y, landmarks=X[:m]).value() for m in (1, 5, 20, 60, N)]
    assert np.all(np.diff(values) > -1e-8)


def test_small_noise_keeps_its_digits():
    # F^T F + noise would lose all digits of a noise of 1e-10; the exact likelihood retains some.
    x = np.linspace(-2, 2, 400)[:, None]
    y = np.sin(3 * x)
    exact = MarginalLikelihood(100 * RBF(), x, y, 1e-9).value()
    assert InducingBound(100 * RBF(), x, y, 1e-9, rank=40).value() == pytest.approx(exact, rel=1e-4)


def test_strips_and_threads_do_not_matter():
    many = np.random.default_rng(1).normal(size=(1100, 2))  # five strips
    y = np.sin(many[:, 0])
    one, two = (InducingBound(KERNELS[0], many, y, landmarks=S, n_threads=t) for t in (1, 2))
    value, gradient = one.value_and_gradient()
    assert value == two.value()
    np.testing.assert_array_equal(gradient, two.value_and_gradient()[1])
    assert value == pytest.approx(brute(KERNELS[0], many, y[:, None], 0.0, S), rel=1e-9)


@each_noise
@pytest.mark.parametrize("size", [17, 300, 700])
def test_blocks_give_the_same_sums(noise, size):
    many = np.random.default_rng(1).normal(size=(700, 2))
    y, noise = np.sin(many), noise if np.ndim(noise) == 0 else np.resize(noise, len(many))
    whole = InducingBound(KERNELS[0], many, y, noise, landmarks=S)
    value, gradient = whole.value_and_gradient()
    posterior = whole.posterior()
    for threads in (1, 2):
        bound = InducingBound(
            KERNELS[0], Blocks.of(many, rows=size), y, noise, landmarks=S, n_threads=threads
        )
        got, slope = bound.value_and_gradient()
        assert got == bound.value() == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slope, gradient, rtol=1e-9)
        there = bound.posterior()
        np.testing.assert_allclose(there.expansion(X), posterior.expansion(X), atol=1e-10)
        np.testing.assert_allclose(there.covariance.diag(X), posterior.covariance.diag(X))
        assert there.report.certificate == pytest.approx(posterior.report.certificate)
    one, two = (
        InducingBound(KERNELS[0], Blocks.of(many, rows=size), y, noise, landmarks=S, n_threads=t)
        for t in (1, 2)
    )
    np.testing.assert_array_equal(one.value_and_gradient()[1], two.value_and_gradient()[1])


def test_a_dask_array_gives_the_sums_of_its_blocks():
    dask_array = pytest.importorskip("dask.array")
    many = np.random.default_rng(1).normal(size=(700, 2))
    y, noise = np.sin(many[:, 0]), np.linspace(0.1, 0.2, 700)
    chunked = as_blocks(dask_array.from_array(many, chunks=(200, -1)))
    got, want = (
        InducingBound(KERNELS[0], blocks, y, noise, landmarks=S).value_and_gradient()
        for blocks in (chunked, Blocks.of(many, rows=200))
    )
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])


def test_the_landmarks_of_blocks_are_chosen_from_a_sample():
    many = np.random.default_rng(1).normal(size=(700, 2)).astype(np.float32)
    y = np.sin(many[:, 0])
    bounds = [
        InducingBound(KERNELS[0], Blocks.of(many, rows=size), y, rank=10) for size in (50, 400)
    ]
    np.testing.assert_array_equal(bounds[0].points, bounds[1].points)
    assert bounds[0].points.shape == (10, 2)
    given = InducingBound(KERNELS[0], Blocks.of(many), y, rank=10, candidates=X)
    np.testing.assert_array_equal(given.points, InducingBound(KERNELS[0], X, Y, rank=10).points)
    # The search over theta uses all blocks, because they have no subsets of rows.
    assert not bounds[0].capabilities.subset
    found = maximise(bounds[0], KERNELS[0].theta, KERNELS[0].bounds)
    assert found.converged
    array = InducingBound(KERNELS[0], many, y, landmarks=bounds[0].points)
    assert array.value(found.theta) == pytest.approx(found.value)
    assert found.value == pytest.approx(
        maximise(array, KERNELS[0].theta, KERNELS[0].bounds).value, rel=1e-3
    )


def test_blocks_without_noise_and_other_objectives():
    blocks = Blocks.of(X, rows=20)
    noise = np.where(np.arange(N) % 30, 0.1, 0.0)
    with pytest.raises(ValueError, match=f"the noise of 3 of {N} observations is 0"):
        InducingBound(RBF(), blocks, Y, noise, landmarks=S).value()
    assert InducingBound(Distance() + White(), blocks, Y, landmarks=S).value() == -np.inf
    for objective in (MarginalLikelihood, StochasticLikelihood):
        with pytest.raises(TypeError, match=r"all points in memory, got <ArrayBlocks.*nystroem"):
            objective(KERNELS[0], blocks, Y)


def test_float32_sparse_and_given_points():
    kernel, single = KERNELS[0], X.astype(np.float32)
    want = InducingBound(kernel, single.astype(float), Y, landmarks=S).value()
    assert InducingBound(kernel, single, Y, landmarks=S).value() == want
    sparse = InducingBound(kernel, sp.csr_array(X), Y, landmarks=sp.csr_array(S))
    assert sparse.value() == pytest.approx(InducingBound(kernel, X, Y, landmarks=S).value())
    assert InducingBound(kernel, sp.csr_array(X), Y, rank=10).points.shape == (10, 2)


# ---------------------------------------------------------------------- the choice of landmarks


def test_landmarks_are_chosen_once_and_by_seed():
    bound = InducingBound(KERNELS[0], X, Y, rank=10)
    before = bound.points.copy()
    bound.value_and_gradient(bound.kernel.theta + 1.0)
    np.testing.assert_array_equal(bound.points, before)
    again = InducingBound(KERNELS[0], X, Y, rank=10, random_state=0)
    np.testing.assert_array_equal(again.points, before)
    other = InducingBound(KERNELS[0], X, Y, rank=10, random_state=1)
    assert not np.array_equal(other.points, before)


def test_centroids_for_a_radial_kernel_beneath_noise_and_factors():
    for kernel in (KERNELS[0], KERNELS[1], Bounded(3 * RBF() + 2 * White())):
        points = InducingBound(kernel, X, Y, rank=10).points
        assert not np.all(np.isin(points, X))
    assert np.all(np.isin(InducingBound(RBF() + Linear() + White(), X, Y, rank=10).points, X))


def test_dependent_landmarks_are_dropped_and_reported():
    twice = np.vstack([S, S])
    bound = InducingBound(KERNELS[0], X, Y, landmarks=twice)
    assert bound.value() == pytest.approx(brute(KERNELS[0], X, Y, 0.0, S), rel=1e-8)
    report = bound.posterior().report
    assert "15 linearly dependent ones were dropped" in report.message
    assert report.status is Status.APPROXIMATE


def test_signal_drops_noise_and_nothing_else():
    assert without_noise(2 * RBF() + White() + 3 * White()) == 2 * RBF()
    assert without_noise(Constant(2.0) * RBF() + White()) == 2 * RBF()
    assert without_noise(Constant(2.0) * Fixed(Constant(3.0)) + White()) == Constant(6.0)
    assert without_noise(RBF() + Constant(0.5) * White(0.1)) == RBF()
    assert without_noise(RBF() + Linear() * White(0.1)) == RBF()
    assert without_noise((RBF() + White()) * (Linear() + White())) == RBF() * Linear()
    assert without_noise(Bounded(RBF() + White()) ** 2) == RBF() ** 2
    small = Scale(RBF(0.01), 1e-6)
    assert without_noise(Constant(1e-6) * RBF(0.01) + RBF(3.0)) == small + RBF(3.0)
    assert without_noise(RBF() + Linear() + White()) == RBF() + Linear()
    assert without_noise(White()) == White()
    assert without_noise(White() + White()) == White() + White()


# ---------------------------------------------------------------------- noise


@each_kernel
def test_latent_and_noise_are_the_parts_of_the_diagonal(kernel):
    latent, noise = latent_and_noise(kernel, X)
    np.testing.assert_allclose(latent, np.diag(kernel(X, X.copy())), atol=1e-12)
    np.testing.assert_allclose(latent + noise, kernel.diag(X))


@each_kernel
def test_diagonal_pullback_against_differences(kernel):
    a, b = np.random.default_rng(2).normal(size=(2, N))

    def value(move):
        latent, noise = latent_and_noise(kernel.with_theta(kernel.theta + move), X)
        return a @ latent + b @ noise

    want = [directional_derivative(value, STEP * e) / STEP for e in np.eye(kernel.theta.size)]
    np.testing.assert_allclose(diagonal_pullback(kernel, X, a, b), want, atol=1e-8)


def test_parameters_at_zero_are_no_part_of_theta():
    kernel = Scale(RBF(), 0.0) + White(0.0) + RBF() + White(0.1)
    gradient = InducingBound(kernel, X, Y, landmarks=S).value_and_gradient()[1]
    assert gradient.shape == kernel.theta.shape == (3,)
    assert gradient[0] == pytest.approx(0.0, abs=1e-9)


# ---------------------------------------------------------------------- the posterior


@each_noise
def test_posterior_is_the_formula(noise):
    kernel, new = KERNELS[0], rng.normal(size=(6, 2))
    posterior = InducingBound(kernel, X, Y, noise, landmarks=S).posterior()
    D = noise + 0.1
    Ks, cross = kernel(S, S), kernel(S, X)
    inside = Ks + (cross / D) @ cross.T
    mean = kernel(new, S) @ np.linalg.solve(inside, (cross / D) @ Y)
    np.testing.assert_allclose(posterior.expansion(new), mean, atol=1e-8)
    ks = kernel(new, S)
    known = ks @ np.linalg.solve(Ks, ks.T) - ks @ np.linalg.solve(inside, ks.T)
    np.testing.assert_allclose(posterior.covariance(new), kernel(new) - known, atol=1e-8)


def test_posterior_on_all_points_is_exact():
    kernel, new = KERNELS[0], rng.normal(size=(6, 2))
    got = InducingBound(kernel, X, Y, landmarks=X).posterior()
    want = MarginalLikelihood(kernel, X, Y).posterior()
    np.testing.assert_allclose(got.expansion(new), want.expansion(new), atol=1e-7)
    np.testing.assert_allclose(got.covariance(new), want.covariance(new), atol=1e-7)


def test_precomputed_values():
    K = RBF()(X)
    given_values = InducingBound(Precomputed(), K, Y, 0.1, rank=N)
    assert given_values.value() == pytest.approx(MarginalLikelihood(RBF(), X, Y, 0.1).value())
    few = InducingBound(Precomputed(), K, Y, 0.1, rank=20)
    places = np.asarray(few.points)
    assert few.value() == pytest.approx(brute(RBF(), X, Y, 0.1, X[places]), rel=1e-8)
    mean = few.posterior().expansion(RBF()(X[:3] + 0.5, X))
    want = InducingBound(RBF(), X, Y, 0.1, landmarks=X[places]).posterior().expansion(X[:3] + 0.5)
    np.testing.assert_allclose(mean, want, atol=1e-8)


def test_posterior_at_another_theta():
    theta = KERNELS[0].theta + 0.3
    moved = InducingBound(KERNELS[0], X, Y, landmarks=S).posterior(theta)
    there = InducingBound(KERNELS[0].with_theta(theta), X, Y, landmarks=S).posterior()
    np.testing.assert_array_equal(moved.expansion(X), there.expansion(X))


# ---------------------------------------------------------------------- values and errors


def test_a_value_that_can_be_copied():
    bound = InducingBound(KERNELS[0], X, Y, rank=10)
    assert pickle.loads(pickle.dumps(bound)).value() == bound.value()
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.rank = 3


def test_subset_keeps_the_landmarks():
    bound = InducingBound(KERNELS[0], X, Y, UNEQUAL, rank=10)
    rows = np.arange(0, N, 2)
    part = bound.subset(rows)
    np.testing.assert_array_equal(part.points, bound.points)
    want = brute(KERNELS[0], X[rows], Y[rows], UNEQUAL[rows], bound.points)
    assert part.value() == pytest.approx(want, rel=1e-8)


def test_nothing_to_search_for():
    value, gradient = InducingBound(Fixed(KERNELS[0]), X, Y, landmarks=S).value_and_gradient()
    assert gradient.shape == (0,)
    assert value == pytest.approx(brute(KERNELS[0], X, Y, 0.0, S))


def test_a_kernel_that_is_not_a_kernel():
    bound = InducingBound(Distance() + White(), X, Y, landmarks=S)
    assert bound.value() == -np.inf
    assert bound.value_and_gradient()[0] == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        bound.posterior()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"noise": 0.0}, ValueError, "the noise of 90 of 90 observations is 0"),
        ({"noise": np.r_[0.0, UNEQUAL[1:]]}, ValueError, "the noise of 1 of 90 observations is 0"),
        ({"rank": 0}, ValueError, "rank must be a positive integer or None, got 0"),
        ({"rank": 2.5}, ValueError, "rank must be a positive integer or None"),
        ({"landmarks": "best"}, ValueError, "unknown landmark method 'best'"),
        ({"landmarks": X[:0]}, ValueError, "landmarks that were passed are empty"),
        ({"rank": 0, "landmarks": S}, ValueError, "rank must be a positive integer or None, got 0"),
        ({"random_state": -3}, ValueError, "random_state must be None, .* at least 0.*, got -3"),
        ({"max_memory": "10 KiB"}, MemoryBudgetError, "Bound on 20 landmarks needs .* budget"),
    ],
)
def test_bad_input(options, error, text):
    options = {"noise": 0.1, "rank": 20} | options
    with pytest.raises(error, match=text):
        InducingBound(RBF(), X, Y, **options).value()


def test_a_kernel_without_derivatives_in_tiles():
    from sklearn.gaussian_process.kernels import ExpSineSquared

    bound = InducingBound(SklearnKernel(ExpSineSquared()), X[:, :1], Y, 0.1, rank=5)
    assert np.isfinite(bound.value())
    fresh = dataclasses.replace(bound)
    with pytest.raises(NotDifferentiableError, match=r"not for its tiles.*solver='cholesky'"):
        fresh.value_and_gradient()
    assert "points" not in vars(fresh)  # the error comes before landmarks are chosen


def test_an_unresolved_kernel():
    with pytest.raises(ValueError, match="resolve"):
        InducingBound(RBF("median"), X, Y, 0.1)


# ---------------------------------------------------------------------- what landmarks cannot do


def test_landmarks_that_leave_more_than_the_noise_are_reported():
    message = r"3 landmarks leave 1\.\de\+09 times the noise unexplained, .* Add White\(\)"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        InducingBound(RBF(0.3), X, Y, 1e-9 / 2, rank=3).posterior()
    assert caught[0].filename == __file__


def test_an_outlier_does_not_hide_the_other_landmarks():
    # k(s, s) is 1e18 at the outlier, and relative to that below 1e-12 at all other landmarks.
    far = np.vstack([[1000.0, 0.0], X])
    kernel, y = Polynomial(degree=3) + White(0.01), np.sin(far[:, 0])
    exact = MarginalLikelihood(kernel, far, y)
    bound = InducingBound(kernel, far, y, landmarks=far)
    assert bound.value() == pytest.approx(exact.value(), rel=1e-6)
    got = bound.posterior()
    with pytest.warns(ConvergenceWarning, match="rounding leaves a relative residual of"):
        want = exact.posterior()
    # cubics in two variables have dimension 10
    assert got.report.certificate["landmarks dropped"] == len(far) - 10
    np.testing.assert_allclose(got.expansion(X), want.expansion(X), atol=1e-4)


def test_dropped_landmarks_that_matter_relative_to_the_noise_are_reported():
    with pytest.warns(
        ConvergenceWarning, match=r"were dropped\), which may leave 1.0e-12 .* 1.0e-13"
    ):
        InducingBound(RBF(3.0), X, np.sin(X[:, 0]), 1e-13).posterior()


def test_jitter_is_reported():
    # A matrix with an eigenvalue of -1e-10, as rounding in float32 may cause.
    Q, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    K = (Q * np.r_[-1e-10, np.linspace(0.5, 2.0, 29)]) @ Q.T
    K = 0.5 * (K + K.T)
    for objective in (InducingBound, StochasticLikelihood):
        report = objective(Precomputed(), K, Y[:30], 0.1).posterior().report
        assert 0.0 < report.certificate["jitter"] < 1e-8
        assert "k(s, s) added to the diagonal" in report.message


def test_residuals_are_not_negative():
    Q = Projection.on(KERNELS[0], X, 0.0, X)
    left = np.r_[-1e-12, np.ones(N - 1)]
    assert clip_negative_residual(left, Q.latent, Q.kernel).min() == 0.0


# ---------------------------------------------------------------------- memory and threads


def peak(task):
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["uniform", "kmeans"])
def test_memory_is_within_the_budget(method):
    many = np.random.default_rng(1).normal(size=(5000, 2))
    options = {"rank": 30, "landmarks": method, "n_threads": 2}
    first = KERNELS[0], many[:100], many[:100, 0]
    InducingBound(*first, **options).posterior()  # first-time imports do not count

    def task(budget):
        bound = InducingBound(KERNELS[0], many, many[:, 0], max_memory=budget, **options)
        bound.value_and_gradient()
        bound.posterior()

    with pytest.raises(MemoryBudgetError) as refused:
        task("1 MiB")
    needed = float(re.search(r"needs ([0-9.]+) MiB", str(refused.value))[1]) + 0.1
    assert 0.2 < peak(lambda: task(f"{needed} MiB")) / 2**20 / needed < 1.0


def test_a_refusal_costs_nothing():
    many = np.zeros((4000, 2))
    y = np.zeros(4000)

    def task():
        with pytest.raises(MemoryBudgetError):
            InducingBound(KERNELS[0], many, y, rank=400, max_memory="1 MiB")

    assert peak(task) < 2**20


@pytest.mark.parametrize("objective", [InducingBound, StochasticLikelihood])
def test_threads_of_the_blas_do_not_change_bits(objective):
    many = np.random.default_rng(1).normal(size=(600, 2))
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            likelihood = objective(KERNELS[0], many, many[:, 0], landmarks=many[:250])
            value, gradient = likelihood.value_and_gradient()
            mean = likelihood.posterior().expansion.coefficients
            results.append(np.r_[value, gradient, mean[:, 0]])
    np.testing.assert_array_equal(*results)
