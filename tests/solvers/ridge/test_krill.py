"""Ridge regression on many landmarks, against the direct solution."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import MemoryBudgetError
from mercer.gram import NystroemMap
from mercer.kernels import RBF, Laplacian, Linear, Precomputed
from mercer.solvers import Krill, Status

rng = np.random.default_rng(4)
X = rng.normal(size=(1500, 3))
Y = np.c_[np.sin(X[:, 0]) * X[:, 1], rng.normal(size=1500)]
weights = rng.uniform(0.1, 3.0, size=1500)
weights[:20] = 0.0


def direct(kernel, points, shift, u):
    """Solve the whole least-squares problem with a QR decomposition; return f at X."""
    F = NystroemMap.on(kernel, points).features(X)
    root = np.sqrt(u)[:, None]
    A = np.r_[root * F, np.sqrt(shift) * np.eye(F.shape[1])]
    b = np.r_[root * Y, np.zeros((F.shape[1], Y.shape[1]))]
    return F @ np.linalg.lstsq(A, b, rcond=None)[0]


@pytest.mark.parametrize("shift", [10.0, 1e-2, 1e-5])
@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian(2.0), Linear()], ids=str)
@pytest.mark.parametrize("u", [None, weights], ids=["alike", "weights"])
def test_the_minimum(kernel, shift, u):
    points, w, report = Krill(100, "uniform").regress(kernel, X, Y, shift, u)
    assert report.status is Status.CONVERGED and report.n_iter < 80
    assert report.residual < 1e-7
    want = direct(kernel, points, shift, np.ones(1500) if u is None else u)
    np.testing.assert_allclose(kernel(X, points) @ w, want, atol=1e-7)


def test_the_embedding_is_worth_its_name():
    # Few passes, although the spectrum of F^T F spans many orders of magnitude.
    _, _, report = Krill(100, "uniform").regress(RBF(0.5), X, Y, 1e-8)
    assert report.n_iter < 80


def test_landmarks_and_columns():
    given = X[:40]
    points, w, report = Krill(landmarks=given).regress(RBF(), X, Y[:, 0], 0.1)
    assert w.shape == (40,) and np.array_equal(points, given)
    _, both, _ = Krill(landmarks=given).regress(RBF(), X, Y, 0.1)
    np.testing.assert_allclose(both[:, 0], w, atol=1e-7)
    _, all_of_them, _ = Krill(landmarks=X[:300]).regress(RBF(), X[:300], Y[:300], 0.1)
    exact = np.linalg.solve(RBF()(X[:300]) + 0.1 * np.eye(300), Y[:300])
    np.testing.assert_allclose(RBF()(X, X[:300]) @ (all_of_them - exact), 0.0, atol=1e-7)
    repeated = np.concatenate([given, given[:5]])
    points, w, report = Krill(landmarks=repeated).regress(RBF(), X, Y, 0.1)
    assert len(points) == 40 and "5 more depended on others" in report.message


def test_a_matrix_of_values():
    K = RBF()(X[:200])
    points, w, _ = Krill(50, "uniform").regress(Precomputed(), K, Y[:200], 0.1)
    same, v, _ = Krill(50, "uniform").regress(RBF(), X[:200], Y[:200], 0.1)
    np.testing.assert_allclose(K[:, points] @ w, RBF()(X[:200], same) @ v, atol=1e-7)


def test_the_certificate_bounds_the_distance_from_the_minimum():
    points, rough, report = Krill(60, "uniform", tol=1e-2).regress(RBF(), X, Y, 0.1)
    _, exact, _ = Krill(landmarks=points).regress(RBF(), X, Y, 0.1)
    gap = rough - exact
    distance = np.sqrt(np.einsum("ic,ij,jc->c", gap, RBF()(points), gap)).max()
    assert 1e-6 < distance <= report.certificate["function"]


def test_bits_progress_and_numbers_in_warnings():
    told = []
    one = Krill(60, random_state=None).regress(RBF(), X, Y, 0.1, n_threads=1, log=told.append)[1]
    two = Krill(60, random_state=0).regress(RBF(), X, Y, 0.1, n_threads=2)[1]
    assert np.array_equal(one, two)
    assert told[0] == "sketch of 1500 x 60 by 240 rows" and "relative residual" in told[-1]
    with pytest.warns(ConvergenceWarning, match=r"Krill did not converge: .* after 2 steps"):
        Krill(60, max_iter=2).regress(RBF(), X, Y, 1e-3)


def test_what_makes_no_sense():
    with pytest.raises(ValueError, match=r"Y has shape \(3, 2\), but there are 1500 points"):
        Krill(10).regress(RBF(), X, Y[:3], 0.1)
    for bad in (0.0, np.nan, np.ones(3)):
        with pytest.raises(ValueError, match="Krill needs a positive, finite shift"):
            Krill(10).regress(RBF(), X, Y, bad)
    for bad in (-weights, weights[:3], np.full(1500, np.inf)):
        with pytest.raises(ValueError, match="weights must be 1500 finite, non-negative numbers"):
            Krill(10).regress(RBF(), X, Y, 0.1, bad)
    with pytest.raises(ValueError, match="rank must be a positive integer or None, got 0"):
        Krill(0)
    with pytest.raises(ValueError, match="unknown landmark method 'best'"):
        Krill(10, "best")
    with pytest.raises(MemoryBudgetError, match="a fit on 1000 landmarks needs"):
        Krill(max_memory="10 MB").regress(RBF(), X, Y, 0.1)
