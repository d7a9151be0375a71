"""BlockKrylov with passes in float32 tiles: as accurate as without them, with valid bounds."""

import numpy as np
import pytest

from mercer import Blocks
from mercer.gram import CentredGram, DenseGram, DistributedGram, TiledGram
from mercer.kernels import RBF, Matern
from mercer.solvers import BlockKrylov, Status
from mercer.solvers.eigen import _rayleigh_ritz
from mercer.solvers.eigen._rayleigh_ritz import Float32Products

K_PAIRS = 6
rng = np.random.default_rng(0)
X = rng.normal(size=(2200, 12)) * 0.8 ** np.arange(12)
WEIGHTS = rng.uniform(0.5, 2.0, size=len(X))
KERNEL = RBF(2.0)


def centred(weights=None, n_threads=None):
    return CentredGram(TiledGram(KERNEL, X, n_threads=n_threads), weights)


def array(weights=None):
    return CentredGram(DenseGram(KERNEL, X), weights).to_array()


@pytest.fixture(autouse=True)
def few_points_are_enough(monkeypatch):
    monkeypatch.setattr(_rayleigh_ritz, "_MIN_POINTS", 2000)


@pytest.fixture
def quick(monkeypatch):
    """Record the number of columns of each product in float32."""
    columns, times = [], Float32Products.times

    def counted(self, V):
        columns.append(V.shape[1])
        return times(self, V)

    monkeypatch.setattr(Float32Products, "times", counted)
    return columns


def assert_true(pairs, A):
    """Residuals and bounds hold for the float64 matrix, and eigenvalues agree with LAPACK."""
    U, found = pairs.vectors, pairs.certificate
    exact = np.linalg.eigvalsh(A)[::-1]
    assert np.all(np.linalg.norm(A @ U - U * pairs.values, axis=0) <= pairs.residuals + found.slack)
    assert np.all(pairs.residuals <= 1e-8 * pairs.values)
    assert np.all(found.lower <= exact[:K_PAIRS]) and np.all(exact[:K_PAIRS] <= found.upper)
    assert exact[K_PAIRS] <= found.outside
    np.testing.assert_allclose(pairs.values, exact[:K_PAIRS], rtol=1e-11)
    np.testing.assert_allclose(U.T @ U, np.eye(K_PAIRS), atol=1e-12)
    assert found.nothing_missed and pairs.report.status is Status.CONVERGED


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_passes_in_float32_change_nothing_that_counts(quick, weights):
    pairs = BlockKrylov(random_state=0).eigenpairs(centred(weights), K_PAIRS)
    assert 1 <= len(quick) < pairs.report.n_iter
    assert_true(pairs, array(weights))


def test_what_float32_spoils_is_computed_again(quick, monkeypatch):
    """Corrections too large for float32 are declared small: the error estimates show it later."""
    monkeypatch.setattr(Float32Products, "expected_error", lambda self, V: np.zeros(V.shape[1]))
    single = CentredGram.rounded

    def worse(self):
        other = single(self)
        part, product = other.gram.part, other.gram._matmat
        tilt = 1e-6 * np.cos(np.arange(len(X)))[:, None]
        other.gram.part = lambda rows, V: part(rows, V) * (1.0 + tilt[rows])
        other.gram._matmat = lambda V: product(V) * (1.0 + tilt)
        return other

    monkeypatch.setattr(CentredGram, "rounded", worse)
    spoilt = BlockKrylov(random_state=0).eigenpairs(centred(), K_PAIRS)
    assert len(quick) >= 2
    assert_true(spoilt, array())


def test_the_sample_tells_what_is_lost():
    A, V = centred(), np.linalg.qr(rng.normal(size=(len(X), 5)))[0]
    rounded = Float32Products.of(A, np.random.default_rng(1))
    Y, lost = rounded.times(V)
    true = np.linalg.norm(array() @ V - Y, axis=0)
    assert np.all(true > 0)
    measured, expected = rounded.error_norms(lost), rounded.expected_error(V)
    assert np.all(measured >= 1.4 * true) and np.all(measured <= 2.8 * true)
    assert np.all(expected >= 0.5 * true) and np.all(expected <= 4.0 * true)


def test_bits_do_not_depend_on_the_threads(quick):
    one, two = (
        BlockKrylov(random_state=0).eigenpairs(centred(n_threads=threads), K_PAIRS)
        for threads in (1, 2)
    )
    assert quick
    assert np.array_equal(one.values, two.values) and np.array_equal(one.vectors, two.vectors)


def test_where_there_is_no_float32():
    draws = np.random.default_rng(0)
    assert Float32Products.of(centred(), draws) is not None
    grams = [
        TiledGram(Matern(2.0, nu=0.5), X),  # not smooth
        TiledGram(KERNEL, X.astype(np.float32)),
        TiledGram(KERNEL, 1e3 * X),  # points too far apart
        TiledGram(KERNEL, X, max_memory=10**6),
        TiledGram(KERNEL, X[:500]),  # too few points
        DenseGram(KERNEL, X),
    ]
    assert all(Float32Products.of(CentredGram(K), draws) is None for K in grams)
    assert Float32Products.of(np.eye(3000), draws) is None
    assert TiledGram(KERNEL, X).rounded() is not None
    assert DistributedGram(KERNEL, Blocks.of(X)).rounded() is None  # no second copy of the points
