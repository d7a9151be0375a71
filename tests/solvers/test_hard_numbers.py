"""Extreme numbers and indefinite matrices: no certificate may be wrong."""

import numpy as np
import pytest

from mercer import KernelPCA, NotPositiveDefiniteError
from mercer.gram import CentredGram, DenseGram, TiledGram, gram
from mercer.kernels import RBF, Linear, Polynomial, Precomputed, Sigmoid
from mercer.solvers import (
    EIGEN,
    BlockKrylov,
    DenseEigen,
    FourierEigen,
    LowRankEigen,
    RandomizedEigen,
    choose,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 20))


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_landmarks_do_not_certify_what_is_not_a_kernel():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(NotPositiveDefiniteError, match="goes down to -3, with k"):
        LowRankEigen(landmarks=np.array([0])).eigenpairs(gram(Precomputed(K), np.arange(2)), 1)
    model = KernelPCA(
        2,
        kernel=Sigmoid(gamma=0.1, coef0=1.0),
        eigen_solver="nystroem",
        rank=3,
        landmarks="uniform",
    )
    with pytest.raises(NotPositiveDefiniteError, match="is not positive semidefinite on"):
        model.fit(X[:, :2])


@pytest.mark.parametrize("scale", [1e-90, 1e63])
@pytest.mark.parametrize("storage", [DenseGram, TiledGram])
def test_squares_out_of_range_prove_nothing(scale, storage):
    small = CentredGram(storage(Linear(), X))
    reference = DenseEigen().eigenpairs(CentredGram(DenseGram(Linear(), X)), 3).values
    for solver in (
        BlockKrylov(max_iter=30, random_state=0),
        RandomizedEigen(n_iter=1, random_state=0),
    ):
        K = CentredGram(storage(Linear(), scale * X))
        pairs = solver.eigenpairs(K, 3)
        exact = reference * scale**2
        assert not pairs.certificate.nothing_missed
        assert np.all(pairs.certificate.upper >= exact)
        assert np.all(pairs.certificate.lower <= exact)
    assert np.isfinite(small.squared_norm())


def test_the_estimator_survives_large_numbers():
    ordinary, large = (KernelPCA(2, kernel="linear").fit(s * X) for s in (1.0, 1e80))
    np.testing.assert_allclose(large.eigenvalues_ / 1e160, ordinary.eigenvalues_, rtol=1e-10)


def test_float32_near_its_rounding_says_so():
    K = CentredGram(gram(RBF(1e3), X[:, :2].astype(np.float32), storage="tiled"))
    pairs = BlockKrylov(random_state=0).eigenpairs(K, 3)
    assert "close to the rounding error of K in float32" in pairs.report.message


def test_residuals_of_a_chosen_basis_are_true():
    Q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    K = Q @ np.diag([5.0, 3.0, 3.0, 3.0, *np.linspace(1.0, 0.1, 36)]) @ Q.T
    K = gram(Precomputed(0.5 * (K + K.T)), np.arange(40))
    pairs = BlockKrylov(tol=1e-6, rank=5, random_state=0).eigenpairs(K, 4)
    true = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(true <= pairs.residuals + 1e-13)


@pytest.mark.parametrize(
    "solver", [LowRankEigen(rank=60, random_state=0), FourierEigen(rank=60, random_state=0)]
)
def test_bits_do_not_depend_on_the_blas(solver):
    from threadpoolctl import threadpool_limits

    K = CentredGram(gram(RBF(3.0), X, storage="tiled"))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(solver.eigenpairs(K, 3).vectors)
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize(
    "options",
    [{"tol": -1.0}, {"max_iter": 0}, {"block": 0}, {"rank": -3}],
    ids=str,
)
def test_options_of_the_solver_are_checked(options):
    with pytest.raises(ValueError, match=f"BlockKrylov: {next(iter(options))} must be at least"):
        BlockKrylov(**options)


def test_names_that_no_solver_has():
    K = gram(RBF(), X)
    with pytest.raises(TypeError, match=r"has the options \['tolerance'\]"):
        choose(EIGEN, K, "krylov", tolerance=1e-3)
    with pytest.raises(ValueError, match="unknown landmark method 'foo'; choose"):
        LowRankEigen(landmarks="foo")


def test_landmarks_that_nearly_coincide_are_no_fault_of_the_kernel():
    for seed in range(20):
        local = np.random.default_rng(seed)
        points = local.normal(size=(40, 3))
        close = points[:1] + 10.0 ** local.uniform(-4, -2) * local.normal(size=(12, 3))
        K = CentredGram(gram(Polynomial(degree=2, gamma=0.5), points))
        pairs = LowRankEigen(landmarks=close).eigenpairs(K, 2)
        assert np.all(np.isfinite(pairs.values))
