"""The likelihood by iterative solvers and random probes, and covariances solved on demand."""

import pickle
import re
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import logm
from sklearn.exceptions import ConvergenceWarning

from mercer import MemoryBudgetError, NotDifferentiableError
from mercer.kernels import (
    RBF,
    Callable,
    Constant,
    Distance,
    Fixed,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
    SklearnKernel,
    White,
)
from mercer.models.gp import (
    Capabilities,
    InducingBound,
    MarginalLikelihood,
    StochasticLikelihood,
    _stochastic_likelihood,
    maximise,
)
from mercer.models.gp._inducing_bound import Projection
from mercer.models.gp._stochastic_likelihood import Preconditioned, Solved
from mercer.solvers import Status
from mercer.testing._finite_differences import STEP, directional_derivative

rng = np.random.default_rng(0)
N = 160
X = rng.normal(size=(N, 3))
Y = np.c_[np.sin(2 * X[:, 0]), X[:, 1]] + 0.1 * rng.normal(size=(N, 2))
NEW = rng.normal(size=(7, 3))
UNEQUAL = rng.uniform(0.01, 0.1, size=N)
NOISE = np.random.default_rng(2).normal(size=(120, 1))
HARD = 2 * Matern(1.3) + White(0.1)  # far from low rank

KERNELS = [
    HARD,
    2 * RBF((1.0, 2.0, 3.0)),
    Constant(2.0) * (RBF(2.0) + White(0.2)) + Linear(),
    1.5 * (RationalQuadratic() + 3 * White(0.1)) + Fixed(White(0.2)),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
each_noise = pytest.mark.parametrize("noise", [0.02, UNEQUAL], ids=["equal", "unequal"])


def system(kernel, noise, rank):
    return Preconditioned(Projection.on(kernel, X, noise, X[:rank]))


def root_inverse(P):
    values, vectors = np.linalg.eigh(P)
    return (vectors / np.sqrt(values)) @ vectors.T


# ---------------------------------------------------------------------- values


@each_kernel
@each_noise
def test_exact_with_all_points_as_landmarks(kernel, noise):
    value, gradient = MarginalLikelihood(kernel, X, Y, noise).value_and_gradient()
    estimate = StochasticLikelihood(kernel, X, Y, noise).estimate()
    assert estimate.value == pytest.approx(value, abs=1e-6)
    assert estimate.standard_error < 1e-6
    np.testing.assert_allclose(estimate.gradient, gradient, rtol=1e-6, atol=1e-6)


@each_kernel
@each_noise
def test_within_standard_errors(kernel, noise):
    value, gradient = MarginalLikelihood(kernel, X, Y, noise).value_and_gradient()
    options = {"rank": 40, "n_threads": 1}
    likelihoods = [
        StochasticLikelihood(kernel, X, Y, noise, random_state=seed, **options)
        for seed in range(10)
    ]
    estimates = [likelihood.estimate() for likelihood in likelihoods]
    gaps = np.array([e.value - value for e in estimates])
    errors = np.array([e.standard_error for e in estimates])
    # Student's t with 15 degrees of freedom exceeds 4 once in a thousand draws.
    assert np.all(np.abs(gaps) < 4 * errors)
    assert 0.4 < gaps.std() / errors.mean() < 2.0  # the error estimates have the right size
    slopes = np.array([e.gradient for e in estimates]) - gradient
    assert np.all(np.abs(slopes.mean(axis=0)) < 4 * slopes.std(axis=0, ddof=1) / np.sqrt(10))
    assert np.all(slopes.std(axis=0) < 0.1 * np.abs(gradient).max())


def test_landmarks_take_the_variance():
    errors = [
        StochasticLikelihood(HARD, X, Y, rank=rank).estimate().standard_error
        for rank in (5, 80, 150)
    ]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0.0


def test_probes_are_the_same_along_a_search():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40, tol=1e-8, n_threads=1)
    assert likelihood.value() == likelihood.value()
    assert likelihood.value() == StochasticLikelihood(HARD, X, Y, rank=40, tol=1e-8).value()
    theta = HARD.theta
    # Smooth: its derivative differs from the estimated derivative only by noise.
    slope = [
        directional_derivative(lambda e: likelihood.value(theta + e), STEP * e) / STEP
        for e in np.eye(3)
    ]
    gradient = likelihood.value_and_gradient()[1]
    assert np.abs(gradient - slope).max() < 0.1 * np.abs(gradient).max()


def test_the_seed_counts_and_threads_do_not():
    one, two = (StochasticLikelihood(HARD, X, Y, rank=40, n_threads=t).estimate() for t in (1, 2))
    assert one.value == two.value
    np.testing.assert_array_equal(one.gradient, two.gradient)
    assert StochasticLikelihood(HARD, X, Y, rank=40, random_state=1).value() != one.value
    drawn = StochasticLikelihood(HARD, X, Y, rank=40, random_state=np.random.default_rng(5))
    assert drawn.value() == drawn.value()


def test_value_and_estimate_agree():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40)
    value, gradient = likelihood.value_and_gradient()
    estimate = likelihood.estimate()
    assert value == likelihood.value() == estimate.value
    np.testing.assert_array_equal(gradient, estimate.gradient)
    assert estimate.n_iter > 1
    assert 0.0 <= estimate.gap < 1e-4


def test_dependent_landmarks_are_dropped():
    twice = StochasticLikelihood(HARD, X, Y, landmarks=np.vstack([X, X]))
    assert twice.value() == pytest.approx(MarginalLikelihood(HARD, X, Y).value())
    assert "160 linearly dependent ones were dropped" in twice.posterior().report.message


def test_precomputed_values():
    likelihood = StochasticLikelihood(Precomputed(), RBF()(X), Y, 0.1, rank=50)
    exact = MarginalLikelihood(RBF(), X, Y, 0.1)
    estimate = likelihood.estimate()
    assert abs(estimate.value - exact.value()) < 4 * estimate.standard_error
    mean = likelihood.posterior().expansion(RBF()(NEW, X))
    np.testing.assert_allclose(mean, exact.posterior().expansion(NEW), atol=1e-6)


def test_subset_keeps_the_landmarks():
    likelihood = StochasticLikelihood(HARD, X, Y, UNEQUAL, rank=40)
    part = likelihood.subset(np.arange(0, N, 2))
    np.testing.assert_array_equal(part.points, likelihood.points)
    exact = MarginalLikelihood(HARD, X[::2], Y[::2], UNEQUAL[::2]).value()
    estimate = part.estimate()
    assert abs(estimate.value - exact) < 4 * estimate.standard_error


# ---------------------------------------------------------------------- the iteration


@each_noise
def test_the_scaled_matrices(noise):
    C, S = HARD(X) + np.diag(np.broadcast_to(noise, N)), 1.0 / np.sqrt(noise + 0.1)
    scaled = system(HARD, noise, 40)
    want = S[..., None] * C * S
    np.testing.assert_allclose(scaled.times(np.eye(N)), want, atol=1e-12)
    cross = HARD(X, X[:40])
    Q = cross @ np.linalg.solve(HARD(X[:40], X[:40].copy()), cross.T)
    P = S[..., None] * Q * S + np.eye(N)
    np.testing.assert_allclose(scaled.P.solve(P), np.eye(N), atol=1e-9)
    assert np.linalg.eigvalsh(want - P)[0] > -1e-10  # P <= C is required by the certificate


def test_the_iteration_knows_how_far_it_is():
    scaled = system(HARD, 0.02, 40)
    C = scaled.times(np.eye(N))
    B = np.c_[Y, rng.normal(size=(N, 3)), np.zeros(N)]
    exact = np.einsum("ic,ic->c", B, np.linalg.solve(C, B))
    for steps in (1, 3, 8, 1000):
        solution = scaled.solve(B, 1e-9, steps)
        np.testing.assert_allclose(solution.R, B - C @ solution.X, atol=1e-10)
        left = exact - solution.forms
        assert np.all(left >= -1e-9)
        assert np.all(left <= solution.gaps + 1e-9)
        assert solution.converged == (steps == 1000)
    assert np.all(solution.X[:, -1] == 0.0)


def test_the_logarithm_is_that_of_the_matrix():
    scaled = system(HARD, 0.02, 40)
    C = scaled.times(np.eye(N))
    root = root_inverse(np.linalg.inv(scaled.P.solve(np.eye(N))))
    z = rng.normal(size=N)
    u = root @ z
    want = u @ logm(root @ C @ root) @ u
    assert scaled.solve(z[:, None], 1e-8, 1000).logarithm(0) == pytest.approx(want, rel=1e-8)


def test_too_few_steps_are_reported():
    likelihood = StochasticLikelihood(HARD, X, Y, 1e-3, rank=2, max_iter=3)
    with pytest.warns(
        ConvergenceWarning, match=r"after 3 steps the residual is .* Try more landmarks.*'cholesky'"
    ):
        likelihood.value()
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        posterior = likelihood.posterior()
    assert posterior.report.status is Status.NOT_CONVERGED
    with pytest.warns(ConvergenceWarning, match="variances may be too large by .*% after 3 steps"):
        posterior.covariance.diag(NEW)


# ---------------------------------------------------------------------- the posterior


@each_kernel
@each_noise
def test_posterior_is_exact(kernel, noise):
    got = StochasticLikelihood(kernel, X, Y, noise, rank=40).posterior()
    want = MarginalLikelihood(kernel, X, Y, noise).posterior()
    np.testing.assert_allclose(got.expansion(NEW), want.expansion(NEW), atol=1e-6)
    excess = got.covariance.diag(NEW) / want.covariance.diag(NEW) - 1.0
    assert np.all(excess > -1e-9)  # the variance is never underestimated
    assert np.all(excess < 2e-3)
    C = got.covariance(NEW)
    np.testing.assert_allclose(C, want.covariance(NEW), atol=2e-3 * C.diagonal().max())
    np.testing.assert_allclose(C, C.T, atol=1e-12)
    np.testing.assert_allclose(C.diagonal(), got.covariance.diag(NEW), rtol=1e-9)
    assert np.linalg.eigvalsh(C)[0] > 0.0
    block = got.covariance(NEW[:3], NEW[3:])
    np.testing.assert_allclose(block, want.covariance(NEW[:3], NEW[3:]), atol=2e-3 * C.max())
    assert got.report.status is Status.CONVERGED
    assert got.report.residual < 1e-6


def test_the_report_knows_the_standard_error():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40)
    estimate, certificate = likelihood.estimate(), likelihood.posterior().report.certificate
    value = certificate["log marginal likelihood"]
    assert abs(value - estimate.value) <= estimate.gap  # the posterior iterates further
    assert certificate["standard error"] == estimate.standard_error == likelihood.standard_error()


def test_one_iteration_makes_a_posterior(monkeypatch):
    calls = []
    solve = Preconditioned.solve

    def counted(self, *arguments):
        calls.append(self)
        return solve(self, *arguments)

    monkeypatch.setattr(Preconditioned, "solve", counted)
    StochasticLikelihood(HARD, X, Y, rank=40).posterior()
    assert len(calls) == 1


@pytest.mark.parametrize("noise", [1e-6, 1e-8, 1e-10])
def test_rounding_is_part_of_the_gap(noise):
    flat, y = X[:120, :2], Y[:120, :1] + 0.1 * NOISE
    estimate = StochasticLikelihood(RBF(), flat, y, noise).estimate()
    off = abs(estimate.value - MarginalLikelihood(RBF(), flat, y, noise).value())
    assert off <= estimate.gap + 4 * estimate.standard_error


def test_drift_counts_in_second_order_alone(monkeypatch):
    scaled, exactly, calls = system(HARD, 0.02, 40), Preconditioned.times, []

    def drifting(self, V):
        calls.append(V)
        return exactly(self, V) * (1.0001 if len(calls) <= 30 else 1.0)

    monkeypatch.setattr(Preconditioned, "times", drifting)
    solution = scaled.solve(Y, 1e-30, 30)
    exact = np.einsum("ic,ic->c", Y, np.linalg.solve(scaled.times(np.eye(N)), Y))
    assert np.all(np.abs(np.einsum("ic,ic->c", Y, solution.X) / exact - 1.0) > 1e-5)
    np.testing.assert_allclose(solution.forms, exact, rtol=1e-6)
    assert np.all(np.abs(exact - solution.forms) <= solution.gaps)


def test_probes_are_on_a_sphere():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40)
    scaled = Preconditioned(likelihood._projection(None))
    Z, solved = likelihood._probes(scaled)
    np.testing.assert_allclose(np.einsum("ic,ic->c", Z, solved), N)
    np.testing.assert_allclose(scaled.P.solve(Z), solved, atol=1e-10)


# ---------------------------------------------------------------------- the search


def test_a_search_ends_where_the_standard_error_does():
    points, y = X[:60, :1], np.sin(2 * X[:60, 0]) + 0.1 * NOISE[:60, 0]
    kernel = 1.0 * RBF() + White()
    likelihood = StochasticLikelihood(kernel, points, y, rank=3, n_threads=1)
    best = maximise(likelihood, kernel.theta, kernel.bounds)
    assert best.converged
    exact = MarginalLikelihood(kernel, points, y)
    error = likelihood.standard_error(best.theta)
    assert error > 0.01
    top = maximise(exact, kernel.theta, kernel.bounds).value
    assert exact.value(best.theta) > top - error


def test_a_search_that_the_estimates_mislead_is_reported():
    class Misleading:
        """An unbounded linear function, whose reported gradient has the wrong sign."""

        X, kernel = np.zeros((3, 1)), RBF()
        capabilities = Capabilities(standard_error=True)

        def value_and_gradient(self, theta):
            return float(theta.sum()), -np.ones(1)

        def standard_error(self, theta):
            return 1e-3

    best = maximise(Misleading(), np.zeros(1), np.array([[-5.0, 5.0]]))
    assert not best.converged
    assert "the objective and its gradient are estimates" in best.message


def test_points_of_any_kind():
    words = [f"{i:b}" for i in range(40)]
    y = np.array([word.count("1") for word in words])
    kernel = Callable(_shared_letters) + White(0.1)
    exact = MarginalLikelihood(kernel, words, y)
    estimate = StochasticLikelihood(kernel, words, y, rank=3).estimate()
    assert abs(estimate.value - exact.value()) <= 4 * estimate.standard_error + 1e-8
    bound = InducingBound(kernel, words, y, rank=3)
    assert bound.value() <= exact.value() + 1e-8
    mean = exact.posterior().expansion(["1010", "11"])
    for objective in (bound, StochasticLikelihood(kernel, words, y, rank=3)):
        np.testing.assert_allclose(objective.posterior().expansion(["1010", "11"]), mean, atol=1e-5)


def _shared_letters(a, b):
    return a.count("1") * b.count("1") + a.count("0") * b.count("0")


def test_gradient_of_the_posterior_covariance():
    got = StochasticLikelihood(HARD, X, Y, rank=40).posterior().covariance
    want = MarginalLikelihood(HARD, X, Y).posterior().covariance
    for Z in (None, X[:4] + 0.1):
        W = rng.normal(size=(len(NEW), len(NEW if Z is None else Z)))
        gradient = want.input_gradient(NEW, Z, W)
        close = 1e-3 * np.abs(gradient).max()
        np.testing.assert_allclose(got.input_gradient(NEW, Z, W), gradient, atol=close)


def test_the_covariance_is_a_value():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40)
    k, other = likelihood.posterior().covariance, likelihood.posterior().covariance
    assert k == k
    assert k != other  # solved again
    assert hash(k) == hash(k)
    assert k != HARD
    assert k.theta.size == 0
    assert str(k) == f"{HARD} given 160 points"
    assert k.diagonal_bound == HARD.diagonal_bound
    copied = pickle.loads(pickle.dumps(k))
    np.testing.assert_array_equal(copied.diag(NEW), k.diag(NEW))
    with pytest.raises(TypeError, match="Solved needs a Preconditioned system"):
        Solved(HARD, X, None)


def test_the_covariance_keeps_to_the_budget():
    likelihood = StochasticLikelihood(HARD, X, Y, rank=40, max_memory="6 MiB")
    covariance = likelihood.posterior().covariance
    with pytest.raises(MemoryBudgetError, match="posterior covariance of 4000 points given 160"):
        covariance(np.zeros((4000, 3)))
    wide, narrow = (replace(covariance, max_memory=size) for size in ("6 MiB", 5 * 192 * N))
    assert (wide._lockstep_columns, narrow._lockstep_columns) == (64, 5)
    np.testing.assert_allclose(narrow.diag(NEW), wide.diag(NEW), rtol=1e-9)


def test_memory_is_within_the_budget():
    many = np.random.default_rng(1).normal(size=(1100, 2))
    kernel, options = 2 * RBF(0.5) + White(0.1), {"probes": 4, "landmarks": "uniform"}

    def task(budget):
        like = StochasticLikelihood(
            kernel, many, many[:, 0], rank=50, max_memory=budget, n_threads=2, **options
        )
        like.value_and_gradient()
        like.posterior().covariance.diag(many[:20])

    StochasticLikelihood(kernel, many[:90], many[:90, 0], rank=9, **options).value_and_gradient()
    with pytest.raises(MemoryBudgetError) as refused:
        task("1 MiB")
    needed = float(re.search(r"needs ([0-9.]+) MiB", str(refused.value))[1]) + 0.1
    tracemalloc.start()
    task(f"{needed} MiB")
    used = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert 0.2 < used / needed < 1.0


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("objective", [InducingBound, StochasticLikelihood])
@pytest.mark.parametrize(
    ("kernel", "points"), [(White(0.5) + White(0.1), X), (HARD, X[:1]), (HARD, X[[0, 0, 0, 1]])]
)
def test_noise_alone_one_point_and_repeated_points(objective, kernel, points):
    y = np.arange(1.0, len(points) + 1.0)
    exact = MarginalLikelihood(kernel, points, y)
    value, gradient = objective(kernel, points, y).value_and_gradient()
    assert value == pytest.approx(exact.value())
    np.testing.assert_allclose(gradient, exact.value_and_gradient()[1], atol=1e-8)
    got, want = objective(kernel, points, y).posterior(), exact.posterior()
    np.testing.assert_allclose(got.expansion(NEW), want.expansion(NEW), atol=1e-7)
    np.testing.assert_allclose(got.covariance.diag(NEW), want.covariance.diag(NEW), rtol=2e-3)


def test_nothing_to_search_for():
    assert StochasticLikelihood(Fixed(HARD), X, Y).estimate().gradient.shape == (0,)


def test_a_kernel_that_is_not_a_kernel():
    likelihood = StochasticLikelihood(Distance() + White(), X, Y, rank=5, landmarks="uniform")
    assert likelihood.value() == -np.inf
    value, gradient = likelihood.value_and_gradient()
    assert (value, gradient.tolist()) == (-np.inf, [0.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        likelihood.posterior()


def test_negative_curvature_is_found():
    K = np.eye(N)
    K[-1, -1] = -9.0  # invisible to the landmarks
    likelihood = StochasticLikelihood(Precomputed(), K, Y, 4.0, landmarks=np.arange(10))
    assert likelihood.value() == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="of conjugate gradients found v with v"):
        likelihood.posterior()


def test_noise_below_rounding_is_reported():
    x = np.linspace(0, 1, N)[:, None]
    likelihood = StochasticLikelihood(RBF(0.1), x, Y, 1e-17)
    assert likelihood.value() == -np.inf
    with pytest.raises(
        np.linalg.LinAlgError, match="lost in rounding errors: its smallest value is 1e-17"
    ):
        likelihood.posterior()
    far = np.vstack([np.full((1, 3), 1e5), X[1:]])
    with pytest.raises(np.linalg.LinAlgError, match=r"or an outlier with a large k.*'cholesky'"):
        StochasticLikelihood(Linear() ** 2, far, Y, 0.1).posterior()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"noise": 0.0}, ValueError, "the noise of 160 of 160 observations is 0"),
        ({"probes": 1}, ValueError, "probes must be an integer of at least 2"),
        ({"probes": 2.5}, ValueError, "probes must be an integer of at least 2"),
        ({"tol": 0.0}, ValueError, r"tol must be a number in \(0, 1\), got 0.0"),
        ({"rank": -1}, ValueError, "rank must be a positive integer or None, got -1"),
        ({"tol": "x"}, ValueError, r"tol must be a number in \(0, 1\), got 'x'"),
        ({"max_iter": -1}, ValueError, "max_iter must be an integer of at least 1, got -1"),
        ({"max_memory": "10 KiB"}, MemoryBudgetError, "Likelihood on 20 landmarks needs"),
    ],
)
def test_bad_input(options, error, text):
    options = {"noise": 0.1, "rank": 20} | options
    with pytest.raises(error, match=text):
        StochasticLikelihood(RBF(), X, Y, **options).value()


def test_a_kernel_without_derivatives_in_tiles():
    from sklearn.gaussian_process.kernels import ExpSineSquared

    likelihood = StochasticLikelihood(SklearnKernel(ExpSineSquared()), X[:, :1], Y, 0.1, rank=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(likelihood.value())
    with pytest.raises(NotDifferentiableError, match="not for its tiles"):
        likelihood.value_and_gradient()


def test_eigenvalues_of_a_tridiagonal_matrix_if_the_default_algorithm_fails(monkeypatch):
    plain = _stochastic_likelihood.eigh_tridiagonal

    def fails(diagonal, off_diagonal, lapack_driver="auto"):
        if lapack_driver == "auto":
            raise np.linalg.LinAlgError("stemr (eigh_tridiagonal) did not converge")
        return plain(diagonal, off_diagonal, lapack_driver=lapack_driver)

    monkeypatch.setattr(_stochastic_likelihood, "eigh_tridiagonal", fails)
    diagonal, off_diagonal = np.arange(1.0, 6.0), np.array([0.5, 1.0, 1e-9, 0.3])
    values, vectors = _stochastic_likelihood._tridiagonal_eigh(diagonal, off_diagonal)
    A = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-13)
