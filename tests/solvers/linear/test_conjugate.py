"""Preconditioned conjugate gradients, the preconditioner, and fallback solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from mercer import MemoryBudgetError, NotPositiveDefiniteError
from mercer.gram import DenseGram, TiledGram, gram, rpcholesky
from mercer.kernels import RBF, Polynomial, Precomputed, Sigmoid, White
from mercer.solvers import (
    LINEAR,
    Cholesky,
    ConjugateGradient,
    FallbackSolver,
    LeastSquares,
    MixedCholesky,
    ShiftedLowRank,
    Status,
    choose,
)

rng = np.random.default_rng(3)
X = rng.normal(size=(700, 3))
Y = rng.normal(size=(700, 3))
kernel = RBF(1.5)
K = kernel(X)
each_gram = pytest.mark.parametrize("hold", [DenseGram, TiledGram], ids=lambda h: h.__name__)

# ---------------------------------------------------------------------- F^T F + shift


@settings(max_examples=30, deadline=None)
@given(k=st.integers(0, 12), n=st.integers(1, 30), power=st.integers(-4, 4))
def test_the_shifted_low_rank_matrix(k, n, power):
    numbers = np.random.default_rng(100 * n + k)
    F, V, shift = numbers.normal(size=(k, n)), numbers.normal(size=(n, 2)), 10.0**power
    A = F.T @ F + shift * np.eye(n)
    values, Q = np.linalg.eigh(A)
    P = ShiftedLowRank(F, shift)
    size = np.linalg.norm(V) / shift
    np.testing.assert_allclose(P.solve(V), Q @ ((Q.T @ V) / values[:, None]), atol=1e-9 * size)
    np.testing.assert_allclose(P.solve(V[:, 0]), P.solve(V)[:, 0], atol=1e-12 * size)
    exact = np.linalg.slogdet(F @ F.T / shift + np.eye(k))[1] + n * np.log(shift)
    assert P.logdet() == pytest.approx(exact, abs=1e-9 * (n + abs(exact)))


def test_samples_have_the_covariance_and_the_same_seed_the_same_bits():
    F = rng.normal(size=(2, 4))
    P = ShiftedLowRank(F, 0.5)
    Z = P.sample(np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(Z @ Z.T / 200_000, F.T @ F + 0.5 * np.eye(4), atol=0.05)
    assert np.array_equal(Z, P.sample(np.random.default_rng(0), 200_000))


def test_threads_do_not_change_the_bits():
    F = rpcholesky(gram(kernel, X), 50, random_state=0).factor
    one, two = (ShiftedLowRank(F, 0.1, n_threads=t) for t in (1, 2))
    assert np.array_equal(one.solve(Y), two.solve(Y))


def test_matrices_without_an_inverse_are_refused():
    for bad in (0.0, -1.0, np.inf, np.nan, np.ones(4)):
        with pytest.raises(ValueError, match="needs a positive, finite shift"):
            ShiftedLowRank(np.ones((1, 4)), bad)
    with pytest.raises(ValueError, match=r"F must have shape \(k, n\)"):
        ShiftedLowRank(np.ones(4), 1.0)
    with pytest.raises(ValueError, match=r"V has shape \(3,\), but P has 4 rows"):
        ShiftedLowRank(np.ones((1, 4)), 1.0).solve(np.ones(3))


# ---------------------------------------------------------------------- systems


@each_gram
@pytest.mark.parametrize("shift", [1.0, 1e-2, np.linspace(0.01, 5.0, 700)], ids=["1", ".01", "v"])
def test_systems_and_their_certificates(hold, shift):
    solver = ConjugateGradient(rank=100)
    factor = solver.factorize(hold(kernel, X), shift)
    a = factor.solve(Y)
    A = K + np.diag(np.broadcast_to(shift, 700))
    exact = np.linalg.solve(A, Y)
    report = factor.report
    assert report.status is Status.CONVERGED and 0 < report.n_iter < 60
    reference = Cholesky().factorize(gram(kernel, X), shift)
    reference.solve(Y)
    assert report.residual <= max(2e-14, 2.0 * reference.report.residual)
    np.testing.assert_allclose(a, exact, atol=1e-11 / np.min(shift) ** 2)
    assert set(report.certificate) == {"coefficients", "function"}


@pytest.mark.parametrize("shift", [0.1, np.linspace(0.1, 5.0, 700)], ids=["scalar", "vector"])
def test_the_certificates_bound_the_errors(shift):
    # A rough solution, so that its error is more than rounding.
    factor = ConjugateGradient(rank=20, tol=1e-3).factorize(gram(kernel, X), shift)
    gap = factor.solve(Y) - np.linalg.solve(K + np.diag(np.broadcast_to(shift, 700)), Y)
    bounds = factor.report.certificate
    error = np.linalg.norm(gap, axis=0).max()
    assert 1e-9 < error <= bounds["coefficients"]
    distance = np.sqrt(np.einsum("ic,ij,jc->c", gap, K, gap)).max()
    assert 1e-9 < distance <= bounds["function"]
    assert factor.report.residual <= 1e-3


def test_columns_of_different_difficulty_and_size():
    easy, zero = 1e6 * np.linalg.eigh(K)[1][:, -1], np.zeros(700)
    right = np.c_[easy, zero, 1e-6 * Y[:, 0], Y[:, 1]]
    factor = ConjugateGradient(rank=30).factorize(gram(kernel, X), 0.05)
    a = factor.solve(right)
    exact = np.linalg.solve(K + 0.05 * np.eye(700), right)
    size = np.maximum(np.linalg.norm(right, axis=0), 1e-300)
    np.testing.assert_allclose(a / size, exact / size, atol=1e-12 / 0.05**2)
    assert not a[:, 1].any()
    assert a[:, 3].shape == factor.solve(Y[:, 1]).shape


def test_noise_and_bits_and_threads():
    noisy = kernel + White(0.3)
    a = ConjugateGradient(rank=50).factorize(TiledGram(noisy, X), 0.1).solve(Y)
    np.testing.assert_allclose(a, np.linalg.solve(K + 0.4 * np.eye(700), Y), atol=1e-11)
    shift = np.linspace(0.1, 1.0, 700)
    found = [
        ConjugateGradient(random_state=seed).factorize(TiledGram(kernel, X, n_threads=t), shift)
        for seed, t in ((None, 1), (0, 2))
    ]
    assert np.array_equal(found[0].solve(Y), found[1].solve(Y))


def test_progress_is_reported():
    told = []
    ConjugateGradient(rank=5, log=told.append).factorize(gram(kernel, X), 0.1).solve(Y)
    assert told[0].startswith("5 pivots; the trace of the residual is")
    assert told[1].startswith("step 20: relative residual")


@threadpool_limits.wrap(limits=2, user_api="blas")
def test_an_interrupt_leaves_no_mess():
    held, before = gram(kernel, X), [pool["num_threads"] for pool in threadpool_info()]

    def interrupt(text):
        if text.startswith("step"):
            raise KeyboardInterrupt

    factor = ConjugateGradient(rank=5, log=interrupt).factorize(held, 0.1)
    with pytest.raises(KeyboardInterrupt):
        factor.solve(Y)
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    ConjugateGradient(rank=50).factorize(held, 0.1).solve(Y)


def test_too_few_steps_warn_with_numbers():
    factor = ConjugateGradient(rank=5, max_iter=3).factorize(gram(kernel, X), 1e-3)
    with pytest.warns(
        ConvergenceWarning, match=r"relative residual .* after 3 steps, above tol=1.0e-14"
    ):
        factor.solve(Y)
    assert factor.report.status is Status.NOT_CONVERGED


def test_what_conjugate_gradients_do_not_do():
    factor = ConjugateGradient().factorize(gram(kernel, X), 1.0)
    with pytest.raises(NotImplementedError, match=r"cannot compute log det .* use Cholesky\(\)"):
        factor.logdet()
    with pytest.raises(NotImplementedError, match="cannot compute the diagonal of the inverse"):
        factor.inverse_diagonal()
    with pytest.raises(NotPositiveDefiniteError, match="need a positive shift"):
        ConjugateGradient().factorize(gram(kernel, X), 0.0)
    with pytest.raises(NotPositiveDefiniteError, match=r"a direction p with p\^T"):
        Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
        A = (Q * np.append(np.linspace(1.0, 2.0, 59), -0.5)) @ Q.T
        ConjugateGradient(rank=0).factorize(gram(Precomputed(), A), 0.1).solve(Q[:, -1])
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        overflow = gram(Polynomial(degree=300), 1e3 * X, storage="tiled")
        ConjugateGradient(rank=0).factorize(overflow, 1.0).solve(Y)
    with pytest.raises(ValueError, match="rank must not be negative, got -1"):
        ConjugateGradient(rank=-1)


def test_the_memory_is_known_beforehand():
    solver = ConjugateGradient()
    assert solver.workspace(10_000) == 8 * (10_000 * 500 + 10 * 500**2 + 8 * 10_000)
    assert solver.workspace(10**6) < 2**31
    assert ConjugateGradient(max_memory="50 MB").workspace(100_000) < 50e6
    with pytest.raises(MemoryBudgetError, match="conjugate gradients on 700 points needs"):
        ConjugateGradient(rank=700, max_memory="2 MB").factorize(gram(kernel, X), 1.0)
    assert MixedCholesky().workspace(1000) < 8 * 1000**2


# ---------------------------------------------------------------------- fallback solvers


def test_the_next_solver_takes_over_and_the_report_says_so():
    solver = FallbackSolver((ConjugateGradient(rank=0, max_iter=20), MixedCholesky(), Cholesky()))
    factor = solver.factorize(gram(kernel, X), 1e-4)
    a = factor.solve(Y)
    report = factor.report
    assert report.solver == repr(MixedCholesky())
    assert "ConjugateGradient was given up: relative residual" in report.message
    # the predicted number was much larger, so the solver stopped before 20
    assert "after 10 steps" in report.message
    np.testing.assert_allclose(a, np.linalg.solve(K + 1e-4 * np.eye(700), Y), rtol=1e-5, atol=1e-3)
    easy = solver.factorize(gram(kernel, X), 1e3)
    easy.solve(Y)
    assert easy.report.solver.startswith("ConjugateGradient") and easy.report.n_iter < 20
    assert easy.logdet() == pytest.approx(np.linalg.slogdet(K + 1e3 * np.eye(700))[1])


def test_a_breakdown_is_passed_on_and_the_last_one_raises():
    indefinite = gram(Sigmoid(), X)
    stages = (ConjugateGradient(), MixedCholesky(), LeastSquares())
    factor = FallbackSolver(stages).factorize(indefinite, 1e-3)
    factor.solve(Y)
    assert factor.report.solver == repr(LeastSquares())
    assert "MixedCholesky was given up: K + shift is not positive definite" in factor.report.message
    with pytest.raises(NotPositiveDefiniteError, match="is not positive"):
        FallbackSolver(stages[:2]).factorize(indefinite, 1e-3).solve(Y)
    # Without a shift, only a factorisation detects a singular K, so it is tried first.
    with pytest.raises(NotPositiveDefiniteError, match="Try a larger alpha"):
        twice = gram(kernel, np.concatenate([X, X]))
        FallbackSolver((ConjugateGradient(), Cholesky())).factorize(twice, 0.0)


def test_a_cascade_has_an_end():
    with pytest.raises(ValueError, match="at least one solver, got none"):
        FallbackSolver(())


def test_the_table_of_linear_solvers():
    small, tiled = gram(kernel, X), gram(kernel, X, storage="tiled")
    assert choose(LINEAR, small) == Cholesky()
    assert choose(LINEAR, small, "mixed", tol=1e-6) == MixedCholesky(tol=1e-6)
    assert choose(LINEAR, small, "cg", rank=7) == ConjugateGradient(rank=7)
    assert choose(LINEAR, small, "mixed", max_memory="1 GiB") == MixedCholesky(max_memory="1 GiB")
    assert choose(LINEAR, tiled) == FallbackSolver(
        (ConjugateGradient(rank=50, max_iter=20), MixedCholesky())
    )
    assert choose(LINEAR, tiled, max_memory="1 MB") == ConjugateGradient(max_memory="1 MB")
    assert choose(LINEAR, None, n=2000) == Cholesky()
    kinds = {
        "2 GiB": [ConjugateGradient, MixedCholesky, Cholesky],
        "1 GiB": [ConjugateGradient, Cholesky],
        "500 MiB": [ConjugateGradient, MixedCholesky],
    }
    for budget, stages in kinds.items():
        chosen = choose(LINEAR, None, n=10_000, max_memory=budget)
        assert [type(s) for s in chosen.solvers] == stages
        assert 50 < chosen.solvers[0].max_iter < 500
        assert chosen.storage == ("dense" if budget == "1 GiB" else "tiled")
    wide = choose(LINEAR, None, n=4000, kernel=kernel, X=np.empty((0, 500)), max_memory="2 GiB")
    # K is stored and read, not recomputed
    assert [type(s) for s in wide.solvers] == [ConjugateGradient, Cholesky]
    assert isinstance(choose(LINEAR, None, n=10_000, max_memory="300 MiB"), ConjugateGradient)
    with pytest.raises(TypeError, match=r"has the options \['speed'\]"):
        choose(LINEAR, small, speed=1)


def test_the_steps_that_are_expected_decide():
    """The pivots estimate the spectrum beyond the preconditioner, so no iteration is wasted."""
    tiles, y = gram(RBF(1.0), X, storage="tiled"), Y[:, :1]
    smooth, rough = gram(RBF(5.0), X, storage="tiled"), gram(RBF(0.3), X, storage="tiled")
    solver = FallbackSolver((ConjugateGradient(rank=50, max_iter=60), Cholesky()), hold=10)
    for K, shift, name, held in (
        (smooth, 1.0, "ConjugateGradient", False),
        (tiles, 5.0, "ConjugateGradient", True),
        (rough, 1e-3, "Cholesky", True),
    ):
        factor = solver.factorize(K, shift)
        a = factor.solve(y)
        assert factor.report.solver.startswith(name)
        assert hasattr(factor._gram, "release") == held
        assert ("the preconditioner predicts" in factor.report.message) == (name == "Cholesky")
        assert np.linalg.norm(y - K @ a - shift * a) <= 1e-12 * np.linalg.norm(y)


def test_expected_steps_are_about_those_taken():
    for scale, shift in ((1.0, 0.1), (1.0, 1e-3), (1.5, 1e-2), (3.0, 1e-2)):
        factor = ConjugateGradient(rank=60).factorize(gram(RBF(scale), X), shift)
        factor.solve(Y)
        assert 0.4 < factor.expected_steps / factor.report.n_iter < 2.5
