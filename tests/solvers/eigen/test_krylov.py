"""BlockKrylov against LAPACK, its progress output, and its stopping criteria."""

import itertools
import re
import warnings

import numpy as np
import pytest
import zoo
from sklearn.exceptions import ConvergenceWarning

from mercer import DensifyWarning
from mercer.gram import CentredGram, DenseGram, TiledGram, gram
from mercer.kernels import RBF, Constant, Distance, Linear, Matern, Precomputed, Sigmoid
from mercer.solvers import Arpack, BlockKrylov, DenseEigen, PowerDeflation, RandomizedEigen, Status
from mercer.solvers.eigen._rayleigh_ritz import RitzBasis

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
vectors = [e for e in zoo.KERNELS if e.domain in ("vectors", "nonnegative")]


def polygon(n):
    """Return points whose eigenvalues come in pairs."""
    angles = 2.0 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)])


# eigenvalues of multiplicity 5 and 10
CUBE = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))
SLOW = Matern(0.3, nu=0.5)  # with a slowly decaying spectrum


def assert_same_pairs(pairs, reference, norm):
    np.testing.assert_allclose(pairs.values, reference.values, rtol=0, atol=1e-13 * norm)
    alone = np.flatnonzero(reference.certificate.sines < 1e-9)
    np.testing.assert_allclose(pairs.vectors[:, alone], reference.vectors[:, alone], atol=1e-7)
    k = pairs.vectors.shape[1]
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-13)


# ---------------------------------------------------------------------- against LAPACK


@pytest.mark.parametrize("entry", vectors, ids=lambda e: e.id)
def test_every_kernel_as_lapack(entry):
    """For every kernel, also indefinite ones: the largest eigenvalues, not the largest moduli."""
    points = entry.points(60 if entry.id == "Callable pair" else 150)
    dense = CentredGram(DenseGram(entry.kernel, points))
    reference = DenseEigen().eigenpairs(dense, 4)
    for hold in zoo.GRAMS:
        K = CentredGram(hold(entry.kernel, points))
        pairs = BlockKrylov(random_state=0).eigenpairs(K, 4)
        assert pairs.report.status is Status.CONVERGED
        assert_same_pairs(pairs, reference, dense.uncentred_norm)


@pytest.mark.parametrize("kernel", [RBF(), SLOW, Distance(), Sigmoid(0.4, 0.5)], ids=str)
@pytest.mark.parametrize("weights", [None, rng.exponential(size=400)], ids=["", "weights"])
def test_several_tiles(kernel, weights):
    dense = CentredGram(DenseGram(kernel, X), weights)
    reference = DenseEigen().eigenpairs(dense, 10)
    for K in (dense, CentredGram(TiledGram(kernel, X), weights)):
        pairs = BlockKrylov(random_state=0).eigenpairs(K, 10)
        assert_same_pairs(pairs, reference, dense.uncentred_norm)


@pytest.mark.parametrize("kernel", [RBF(), Linear(), Distance(), Constant(2.0)], ids=str)
def test_all_eigenpairs(kernel):
    K = CentredGram(DenseGram(kernel, X[:40]))
    pairs = BlockKrylov(random_state=0).eigenpairs(K)
    assert pairs.report.status is Status.CONVERGED and pairs.values.shape == (40,)
    rebuilt = (pairs.vectors * pairs.values) @ pairs.vectors.T
    np.testing.assert_allclose(rebuilt, K.to_array(), atol=1e-13 * K.uncentred_norm)


def test_one_point_and_a_matrix_of_zeros():
    pairs = BlockKrylov().eigenpairs(CentredGram(DenseGram(RBF(), X[:1])), 1)
    assert pairs.values.tolist() == [0.0] and abs(pairs.vectors[0, 0]) == 1.0
    for hold in zoo.GRAMS:
        pairs = BlockKrylov(random_state=0).eigenpairs(CentredGram(hold(0.0 * RBF(), X[:30])), 3)
        assert pairs.report.status is Status.CONVERGED and not pairs.values.any()
        np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-14)


@pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)
@pytest.mark.parametrize("k", [3, 5, 20])
def test_a_null_space_is_an_answer_also_without_centring(hold, k):
    """Beyond the rank, the eigenvalue is 0, so that no residual is small relative to it."""
    pairs = BlockKrylov(random_state=0).eigenpairs(hold(Linear(), X[:60]), k)
    assert pairs.report.status is Status.CONVERGED
    exact = np.append(np.linalg.svd(X[:60], compute_uv=False) ** 2, np.zeros(57))
    np.testing.assert_allclose(pairs.values, exact[:k], atol=1e-12)


def test_vectors_are_orthonormal_when_the_krylov_space_is_exhausted():
    """With repeated points, most eigenvalues are 0, and new directions are mostly rounding."""
    twice = 30.0 * X[rng.integers(25, size=74)]
    for seed in range(8):
        K = CentredGram(DenseGram(Matern(1.2), twice))
        pairs = BlockKrylov(block=2, rank=0, random_state=seed).eigenpairs(K, 4)
        np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(4), atol=4e-15)
        exact = np.linalg.eigvalsh(K.to_array())[::-1][:4]
        np.testing.assert_allclose(pairs.values, exact, rtol=1e-13)


# ---------------------------------------------------------------------- multiplicities

DEGENERATE = {
    "polygon": (RBF(0.7), polygon(40), 4),
    "cube": (RBF(2.0), CUBE, 5),
    "cube, 15": (RBF(2.0), CUBE, 15),
    "simplex": (RBF(), np.eye(12), 11),
    "rough polygon": (Matern(0.5), polygon(60), 8),
    "cross": (Linear(), np.vstack([np.eye(5), -np.eye(5)]), 5),
    "conditional": (Distance(), polygon(30), 6),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.filterwarnings("ignore::mercer.DensifyWarning")
def test_equal_eigenvalues_have_the_same_vectors_by_every_solver(name):
    kernel, points, k = DEGENERATE[name]
    reference = DenseEigen().eigenpairs(CentredGram(DenseGram(kernel, points)), k)
    assert reference.certificate.clusters and reference.certificate.clusters[-1][1] == k
    solvers = [
        BlockKrylov(random_state=0),
        BlockKrylov(tol=1e-10, block=3, rank=4, random_state=1),
        Arpack(random_state=0),
        Arpack(random_state=5),
        RandomizedEigen(n_iter=50, random_state=0),
        PowerDeflation(tol=1e-12, max_iter=5000, random_state=0),
    ]
    for hold in zoo.GRAMS:
        for solver in solvers:
            pairs = solver.eigenpairs(CentredGram(hold(kernel, points)), k)
            np.testing.assert_allclose(pairs.values, reference.values, rtol=1e-12)
            np.testing.assert_allclose(pairs.vectors, reference.vectors, atol=1e-7, err_msg=solver)


def test_a_multiplicity_larger_than_the_block_of_one():
    """Five equal eigenvalues, and an initial block with only as many columns as requested."""
    K = CentredGram(DenseGram(RBF(2.0), CUBE))
    exact = np.linalg.eigvalsh(K.to_array())[::-1]
    for k in (1, 2, 3, 5):
        pairs = BlockKrylov(block=1, rank=0, random_state=0).eigenpairs(K, k)
        np.testing.assert_allclose(pairs.values, exact[:k], rtol=1e-12)


@pytest.mark.parametrize("solver", [DenseEigen(), BlockKrylov(random_state=0)], ids=repr)
def test_the_first_of_the_largest_entries_is_positive(solver):
    # u = (1, -1, 1, -1) / 2: all entries have the same modulus, so that the first one decides.
    u = np.array([1.0, -1.0, 1.0, -1.0]) / 2
    for sign in (1.0, -1.0):
        v = sign * u + 1e-12 * np.arange(4)
        pairs = solver.eigenpairs(gram(Precomputed(), np.outer(v, v)), 1)
        np.testing.assert_allclose(pairs.vectors[:, 0], u, atol=1e-10)
    pairs = solver.eigenpairs(CentredGram(DenseGram(RBF(), X[:50])), 6)
    largest = np.abs(pairs.vectors).argmax(axis=0)
    assert np.all(pairs.vectors[largest, np.arange(6)] > 0)


# ---------------------------------------------------------------------- determinism


@pytest.mark.parametrize("n", [700, 1300])
def test_the_same_bits_whatever_the_threads(n):
    points = np.random.default_rng(n).normal(size=(n, 5))
    solver = BlockKrylov(random_state=3)
    runs = [
        solver.eigenpairs(CentredGram(TiledGram(RBF(2.0), points, n_threads=threads)), 3)
        for threads in (1, 2, 2, None)
    ]
    for other in runs[1:]:
        assert np.array_equal(runs[0].vectors, other.vectors)
        assert np.array_equal(runs[0].values, other.values)
        assert np.array_equal(runs[0].certificate.upper, other.certificate.upper)


def test_the_same_bits_of_an_array_that_threads_share():
    points = np.random.default_rng(0).normal(size=(2100, 2))  # K has more than 2^22 entries
    runs = [
        BlockKrylov(random_state=0).eigenpairs(
            CentredGram(DenseGram(RBF(2.0), points, n_threads=threads)), 2
        )
        for threads in (1, 2)
    ]
    assert np.array_equal(runs[0].vectors, runs[1].vectors)


def test_arpack_repeats_itself_also_where_its_space_is_exhausted():
    """Beyond the rank of K, ARPACK has to draw new directions."""
    K = CentredGram(DenseGram(Linear(), X[:60]))
    runs = [Arpack(random_state=0).eigenpairs(K, 20).vectors for _ in range(4)]
    assert all(np.array_equal(runs[0], other) for other in runs[1:])


# ---------------------------------------------------------------------- passes


@pytest.mark.parametrize("rank", [0, 6])
@pytest.mark.parametrize("k", [1, 3])
def test_thick_restarts(k, rank, monkeypatch):
    """With a small block, the basis is repeatedly restarted with its best vectors."""
    K = CentredGram(TiledGram(SLOW, X))
    widths, ritz = [], RitzBasis.ritz
    monkeypatch.setattr(RitzBasis, "ritz", lambda Z: widths.append(len(Z)) or ritz(Z))
    pairs = BlockKrylov(block=1, rank=rank, random_state=0).eigenpairs(K, k)
    assert max(widths) <= 5 * k + 2
    assert np.sum(np.diff(widths) <= 0) >= 3  # passes that did not extend the basis
    assert pairs.report.status is Status.CONVERGED
    reference = DenseEigen().eigenpairs(CentredGram(DenseGram(SLOW, X)), k)
    assert_same_pairs(pairs, reference, K.uncentred_norm)


def test_a_start_that_is_right_needs_one_pass():
    K = CentredGram(TiledGram(SLOW, X))
    plain = BlockKrylov(random_state=0, prove=False)
    first = plain.eigenpairs(K, 4)
    assert first.report.n_iter > 1
    again = plain.eigenpairs(K, 4, start=first.vectors)
    assert again.report.n_iter == 1
    np.testing.assert_allclose(again.values, first.values, rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 4, 40])
def test_a_start_of_any_width_and_of_no_use(columns):
    reference = DenseEigen().eigenpairs(CentredGram(DenseGram(RBF(), X[:90])), 4)
    for start in (rng.normal(size=(90, columns)), np.zeros((90, columns)), np.ones((90, columns))):
        K = CentredGram(DenseGram(RBF(), X[:90]))
        pairs = BlockKrylov(random_state=0).eigenpairs(K, 4, start=start)
        assert_same_pairs(pairs, reference, K.uncentred_norm)


def test_each_pass_is_reported():
    said = []
    K = CentredGram(TiledGram(SLOW, X))
    pairs = BlockKrylov(prove=False, random_state=0).eigenpairs(K, 4, log=said.append)
    pattern = (
        r"pass (\d+): (\d) of 4 components converged, largest relative residual (\d\.\de-\d\d)"
    )
    told = [re.fullmatch(pattern, line) for line in said]
    assert all(told)
    assert [int(t[1]) for t in told] == list(range(1, pairs.report.n_iter + 1))
    assert int(told[-1][2]) == 4 and float(told[-1][3]) <= 1e-8 < float(told[0][3])


def test_the_proof_rides_along():
    said = []
    K = CentredGram(TiledGram(RBF(0.4), X))
    proved = BlockKrylov(random_state=0).eigenpairs(K, 4, log=said.append)
    open_ = BlockKrylov(prove=False, random_state=0).eigenpairs(K, 4)
    assert not open_.certificate.nothing_missed and proved.certificate.nothing_missed
    assert proved.report.n_iter <= open_.report.n_iter
    assert re.fullmatch(r"\d+ extra columns, to prove that nothing was missed", said[1])
    assert str(proved.certificate) == proved.report.certificate["nothing missed"]


def test_the_proof_is_free_where_the_factor_knows_enough():
    """The low-rank factor bounds the spectrum from below if the kernel is a Mercer kernel."""
    values = RBF(0.7)(X)
    for gram_, free in ((TiledGram(RBF(0.7), X), True), (gram(Precomputed(), values), False)):
        said = []
        pairs = BlockKrylov(random_state=0).eigenpairs(CentredGram(gram_), 4, log=said.append)
        assert pairs.certificate.nothing_missed
        assert any("to prove" in line for line in said) is not free


def test_what_the_proof_brings_to_light_is_solved_for():
    """Two uncoupled blocks: the iteration finds one, the certificate detects both."""
    n = 40
    second = RBF(0.35)(np.linspace(0.0, 1.0, n)[:, None])
    second *= 1.05 / np.linalg.eigvalsh(second)[-1]
    K = np.zeros((2 * n, 2 * n))
    K[:n, :n], K[n:, n:] = 1.0 / n, second  # with largest eigenvalues 1.0 and 1.05
    surprised = 0
    for seed in range(12):
        said = []
        solver = BlockKrylov(block=1, rank=3, random_state=seed)
        pairs = solver.eigenpairs(gram(Precomputed(), K), 1, log=said.append)
        assert pairs.report.status is Status.CONVERGED
        assert pairs.residuals[0] <= 1e-8 * pairs.values[0]
        if pairs.certificate.nothing_missed:
            assert pairs.values[0] == pytest.approx(1.05)
        proof = [i for i, line in enumerate(said) if line.startswith("one more pass")]
        surprised += any("0 of 1 components" in line for i in proof for line in said[i:])
    assert surprised


def test_passes_that_are_too_few_warn_with_numbers():
    K = CentredGram(TiledGram(SLOW, X))
    said = (
        r"block Krylov did not converge: largest relative residual (\d\.\de-\d\d) after 2 passes, "
        r"but 1\.0e-08 was required; the usual cause is a slowly decaying spectrum\. "
        r"Raise max_iter or tol"
    )
    with pytest.warns(ConvergenceWarning, match=said) as caught:
        pairs = BlockKrylov(max_iter=2, random_state=0).eigenpairs(K, 4)
    assert caught[0].filename == __file__
    assert pairs.report.status is Status.NOT_CONVERGED and pairs.report.n_iter == 2
    worst = np.max(pairs.residuals / pairs.values)
    assert f"{worst:.1e}" in str(caught[0].message)
    assert pairs.report.message == f"relative residual {worst:.1e} after 2 passes."


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 0.0])
def test_residuals_are_true_and_as_small_as_asked_for(tol):
    K = CentredGram(TiledGram(SLOW, X))
    pairs = BlockKrylov(tol=tol, random_state=0).eigenpairs(K, 6)
    true = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, atol=1e-13 * pairs.values[0])
    assert np.all(true <= (tol or 1e-8) * pairs.values + 1e-13)
    assert pairs.report.residual == pytest.approx(true.max() / pairs.values[0], abs=1e-14)


def test_parameters_that_make_no_sense():
    for name, bad in {"tol": -1.0, "max_iter": 0, "block": 0, "rank": -1}.items():
        with pytest.raises(ValueError, match=f"{name} must be at least"):
            BlockKrylov(**{name: bad})


# ---------------------------------------------------------------------- memory


def test_nothing_of_the_size_of_k_is_made():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DensifyWarning)
        solver = BlockKrylov(random_state=0)
        solver.eigenpairs(CentredGram(TiledGram(RBF(), X, max_memory="1 MiB")), 2)
    n = 10**6
    assert solver.workspace(n, 5) < 0.01 * 8 * n * n
    assert BlockKrylov(prove=False).workspace(n, 5) < solver.workspace(n, 5)


def test_pairs_that_make_no_sense():
    for k in (0, 401):
        with pytest.raises(ValueError, match="must lie between 1 and n = 400"):
            BlockKrylov().eigenpairs(CentredGram(TiledGram(RBF(), X)), k)
