"""The textbook power method."""

import re

import numpy as np
import pytest
import zoo
from sklearn.exceptions import ConvergenceWarning

from mercer.gram import CentredGram, DenseGram, TiledGram, gram
from mercer.kernels import RBF, Distance, Linear, Matern, Precomputed
from mercer.solvers import DenseEigen, PowerDeflation, Status

rng = np.random.default_rng(0)
X = rng.normal(size=(70, 3))


def held(*spectrum):
    """Return a matrix with these eigenvalues and random eigenvectors."""
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(len(spectrum),) * 2))[0]
    K = (Q * np.array(spectrum)) @ Q.T
    return gram(Precomputed(), (K + K.T) / 2)


@pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)
@pytest.mark.parametrize("kernel", [RBF(), Matern(1.2), Linear(), Distance()], ids=str)
def test_leading_pairs(kernel, hold):
    dense = CentredGram(DenseGram(kernel, X))
    reference = DenseEigen().eigenpairs(dense, 3)
    solver = PowerDeflation(tol=1e-9, max_iter=20_000, random_state=0)
    pairs = solver.eigenpairs(CentredGram(hold(kernel, X)), 3)
    assert pairs.report.status is Status.CONVERGED
    np.testing.assert_allclose(pairs.values, reference.values, rtol=1e-12)
    np.testing.assert_allclose(pairs.vectors, reference.vectors, atol=1e-6)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-13)


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.8])
def test_the_error_shrinks_by_the_ratio_of_the_eigenvalues(ratio):
    """Four more digits of the residual take log 1e-4 / log ratio more products."""
    K, products = held(1.0, ratio, 0.01, 0.0), []
    for tol in (1e-4, 1e-8):
        products.append(PowerDeflation(tol=tol, random_state=0).eigenpairs(K, 1).report.n_iter)
    assert products[1] - products[0] == pytest.approx(np.log(1e-4) / np.log(ratio), abs=1.01)


def test_the_error_of_the_eigenvalue_shrinks_by_its_square():
    K, errors = held(1.0, 0.5, 0.01, 0.0), []
    for most in (6, 11):
        with pytest.warns(ConvergenceWarning):
            pairs = PowerDeflation(max_iter=most, random_state=0).eigenpairs(K, 1)
        errors.append(1.0 - pairs.values[0])
    assert errors[1] / errors[0] == pytest.approx(0.5**10, rel=0.01)


def test_components_come_one_after_the_other_and_are_reported():
    said = []
    pairs = PowerDeflation(random_state=0).eigenpairs(held(9.0, 4.0, 1.0, 0.1), 3, log=said.append)
    pattern = r"component (\d): (\S+) after (\d+) products, residual (\d\.\de-\d\d)"
    told = [re.fullmatch(pattern, line) for line in said]
    assert [int(t[1]) for t in told] == [1, 2, 3]
    np.testing.assert_allclose([float(t[2]) for t in told], [9.0, 4.0, 1.0], rtol=1e-5)
    assert pairs.report.n_iter == sum(int(t[3]) for t in told)
    assert all(float(t[4]) <= 9e-6 for t in told)
    np.testing.assert_allclose(pairs.values, [9.0, 4.0, 1.0], rtol=1e-10)


def test_products_that_are_too_few_warn_with_numbers():
    said = (
        r"PowerDeflation did not converge: largest relative residual (\d\.\de-\d\d) "
        r"after 7 products, but 1\.0e-08 was required; the usual cause is two eigenvalues that "
        r"are close\. Raise max_iter or tol, or"
    )
    K = held(1.0, 0.99, 0.2)
    with pytest.warns(ConvergenceWarning, match=said) as caught:
        pairs = PowerDeflation(max_iter=7, random_state=0).eigenpairs(K, 1)
    assert caught[0].filename == __file__
    assert pairs.report.status is Status.NOT_CONVERGED and pairs.report.n_iter == 7
    number = re.search(said, str(caught[0].message))[1]
    assert pairs.report.message == f"relative residual {number} after 7 products"
    true = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values)
    np.testing.assert_allclose(pairs.residuals, true, rtol=1e-10)
    assert float(number) == pytest.approx(true / pairs.values[0], rel=0.02)


def test_small_components_next_to_a_large_one_are_found():
    """With a tolerance relative to the largest eigenvalue, anything would be accepted at once."""
    scaled = np.random.default_rng(0).normal(size=(100, 3)) * [10.0, 0.02, 0.01]
    K = CentredGram(gram(Linear(), scaled))
    pairs = PowerDeflation(random_state=0).eigenpairs(K, 3)
    assert pairs.report.status is Status.CONVERGED
    exact = np.linalg.svd(scaled - scaled.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(pairs.values, exact, rtol=1e-8)
    true = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(true <= 1e-8 * pairs.values)


@pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)
@pytest.mark.parametrize("centred", [True, False])
def test_the_null_space(hold, centred):
    K = hold(Linear(), X)
    K = CentredGram(K) if centred else K
    pairs = PowerDeflation(random_state=0).eigenpairs(K, 7)
    assert pairs.report.status is Status.CONVERGED
    np.testing.assert_allclose(pairs.values[3:], 0.0, atol=1e-12)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(7), atol=1e-13)
    assert pairs.report.n_iter < 500


def test_a_matrix_of_zeros_and_all_pairs():
    pairs = PowerDeflation(random_state=0).eigenpairs(CentredGram(DenseGram(0.0 * RBF(), X[:9])), 4)
    assert not pairs.values.any() and pairs.report.status is Status.CONVERGED
    K = held(5.0, 3.0, 1.0, 0.0)
    pairs = PowerDeflation(tol=1e-10, random_state=0).eigenpairs(K)
    rebuilt = (pairs.vectors * pairs.values) @ pairs.vectors.T
    np.testing.assert_allclose(rebuilt, K.to_array(), atol=1e-13)


def test_equal_eigenvalues_are_no_failure():
    pairs = PowerDeflation(random_state=0).eigenpairs(held(2.0, 2.0, 2.0, 0.5, 0.1), 3)
    assert pairs.report.status is Status.CONVERGED
    np.testing.assert_allclose(pairs.values, 2.0, rtol=1e-10)
    assert pairs.certificate.clusters == ((0, 3),) and pairs.certificate.nothing_missed


def test_the_largest_in_modulus_wins():
    K = held(1.0, -3.0, 0.5)
    np.testing.assert_allclose(PowerDeflation(random_state=0).eigenpairs(K, 1).values, [-3.0])
    pairs = PowerDeflation(random_state=0).eigenpairs(K, 2)
    np.testing.assert_allclose(pairs.values, [1.0, -3.0], rtol=1e-9)
    # The certificate does not claim that -3 is the largest eigenvalue.
    assert not PowerDeflation(random_state=0).eigenpairs(K, 1).certificate.nothing_missed


def test_a_null_space_in_single_precision():
    K = CentredGram(TiledGram(Linear(), X.astype(np.float32)))
    pairs = PowerDeflation(tol=1e-5, random_state=0).eigenpairs(K, 5)
    assert pairs.report.status is Status.CONVERGED
    exact = np.linalg.eigvalsh(CentredGram(DenseGram(Linear(), X)).to_array())[::-1][:5]
    np.testing.assert_allclose(pairs.values, exact, atol=1e-5 * exact[0])
    assert pairs.certificate.slack > 1e-7 * exact[0]  # limited by float32


def test_the_same_seed_gives_the_same_bits():
    K = CentredGram(TiledGram(RBF(), X))
    runs = [PowerDeflation(random_state=s).eigenpairs(K, 2).vectors for s in (3, 3, 4)]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])
    assert PowerDeflation().workspace(1000, 3) < 8 * 1000**2
