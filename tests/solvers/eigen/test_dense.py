"""LAPACK on the full matrix: a subset of the eigenpairs, or all of them."""

import numpy as np
import pytest
from scipy.sparse.linalg import ArpackError, aslinearoperator

from mercer import KernelPCA
from mercer.gram import CentredGram, gram
from mercer.kernels import RBF, Linear
from mercer.solvers import Arpack, DenseEigen
from mercer.solvers.eigen import _standard_eigensolvers
from mercer.solvers.eigen._eigenpairs import canonical_signs

X = np.random.default_rng(0).standard_normal((120, 4))


@pytest.mark.parametrize("k", [1, 10, 19, 20, 60, 119, 120])
@pytest.mark.parametrize("overwrite", [True, False])
def test_the_pairs_do_not_depend_on_the_driver(k, overwrite):
    K = CentredGram(gram(RBF(2.0), X))
    A = K.to_array()
    pairs = DenseEigen().eigenpairs(K, k, overwrite=overwrite)
    exact = np.linalg.eigvalsh(A)[::-1]
    assert np.allclose(pairs.values, exact[:k], atol=1e-13 * exact[0])
    assert np.all(np.abs(A @ pairs.vectors - pairs.vectors * pairs.values) <= 1e-12 * exact[0])
    assert np.all(pairs.certificate.lower <= exact[:k] + 1e-13 * exact[0])
    assert np.all(exact[:k] <= pairs.certificate.upper + 1e-13 * exact[0])
    assert pairs.certificate.outside >= (exact[k] if k < 120 else -np.inf) - 1e-13 * exact[0]


def test_only_the_pairs_to_keep_are_returned():
    K, seen = CentredGram(gram(Linear(), X)), []
    pairs = DenseEigen().eigenpairs(K, keep=lambda values: seen.append(values) or 3)
    assert len(seen[0]) == 120 and np.all(np.diff(seen[0]) <= 0)
    assert pairs.vectors.shape == (120, 3) and len(pairs.residuals) == 3
    assert pairs.certificate.nothing_missed
    assert np.isclose(pairs.certificate.outside, seen[0][3])


@pytest.mark.parametrize("n", [120, 400])
def test_components_without_variance_are_not_kept(n):
    points = np.random.default_rng(1).standard_normal((n, 4))
    model = KernelPCA().fit(points)
    assert model.n_components_ == 4 and model.certificate_.nothing_missed
    assert np.allclose(model.explained_variance_ratio_.sum(), 1.0)
    assert KernelPCA(0.5).fit(points).n_components_ == 2
    K = points @ np.diag([1.0, 1.0, 1.0, -1.0]) @ points.T
    with pytest.raises(ValueError, match="negative eigenvalues"):
        KernelPCA(kernel="precomputed").fit(K)


def test_linear_operators_whose_norm_is_unknown():
    A = np.diag([3.0, 2.0, 1.0, 0.5])
    pairs = Arpack(random_state=0).eigenpairs(aslinearoperator(A), 2)
    np.testing.assert_allclose(pairs.values, [3.0, 2.0], rtol=1e-10)
    assert np.all(pairs.certificate.lower <= [3.0, 2.0])


def test_other_errors_of_arpack_are_raised(monkeypatch):
    def failing(*arguments, **options):
        raise ArpackError(-9999)

    monkeypatch.setattr(_standard_eigensolvers, "eigsh", failing)
    with pytest.raises(ArpackError):
        Arpack().eigenpairs(aslinearoperator(np.eye(4)), 2)
    zero = Arpack().eigenpairs(aslinearoperator(np.zeros((4, 4))), 2)
    assert np.array_equal(zero.values, [0.0, 0.0])


def test_signs_of_vectors_without_entries():
    assert np.array_equal(canonical_signs(np.zeros((0, 2))), [1.0, 1.0])
