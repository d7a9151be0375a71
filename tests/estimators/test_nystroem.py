"""Nystroem: features on landmarks, their exact error, and the inverse transform."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_approximation as theirs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import mercer
from mercer import MemoryBudgetError, Nystroem
from mercer.estimators import FlippedMap
from mercer.kernels import RBF, Callable, Linear, Polynomial, Precomputed, Sigmoid, Spectrum

STRINGS = ["abba", "baab", "abab", "cabbac", "bacca", "aabb", "ccab", "bbbb"]


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((200, 3))


@pytest.mark.parametrize(
    "landmarks", ["auto", "kmeans", "rpcholesky", "uniform", "kmeans++", "leverage"]
)
def test_error_is_the_trace_of_what_is_left(X, landmarks):
    model = Nystroem(gamma=0.5, n_components=30, landmarks=landmarks)
    F = model.fit_transform(X)
    left = rbf_kernel(X, gamma=0.5) - F @ F.T
    assert model.approximation_error_ == pytest.approx(np.trace(left), abs=1e-8)
    assert np.linalg.eigvalsh(left).min() > -1e-8
    assert model.report_.certificate["trace"] == model.approximation_error_
    # computing it would need all of k(X, landmarks)
    assert model.fit(X).approximation_error_ is None


def test_fitted_names_are_those_of_their_formula(X):
    model = Nystroem(gamma=0.5, n_components=20).fit(X)
    K = rbf_kernel(X, model.components_, gamma=0.5)
    np.testing.assert_allclose(K @ model.normalization_.T, model.transform(X), atol=1e-8)
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    np.testing.assert_allclose(model.expansion_(X), model.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-10)


def test_less_is_left_than_by_theirs(X):
    K = rbf_kernel(X, gamma=0.5)
    for seed in range(3):
        F = theirs.Nystroem(gamma=0.5, n_components=20, random_state=seed).fit_transform(X)
        ours = Nystroem(gamma=0.5, n_components=20, random_state=seed)
        ours.fit_transform(X)
        assert ours.approximation_error_ < np.trace(K - F @ F.T)


def test_exact_for_a_kernel_of_finite_rank(X):
    model = Nystroem(kernel=Polynomial(2), n_components=50)
    F = model.fit_transform(X)
    assert F.shape == (200, 10)  # more landmarks would not increase the rank
    np.testing.assert_allclose(F @ F.T, Polynomial(2)(X), rtol=1e-8, atol=1e-6)
    assert model.get_feature_names_out().tolist() == [f"nystroem{i}" for i in range(10)]


def test_medoids_are_distinct_points():
    X = np.repeat(np.random.default_rng(0).standard_normal((30, 2)), 3, axis=0)
    model = Nystroem(gamma=5.0, n_components=20).fit(X)
    assert len(np.unique(model.component_indices_)) == len(model.component_indices_)
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    assert len(np.unique(model.components_, axis=0)) == len(model.components_)


def test_landmarks_that_are_given(X):
    model = Nystroem(gamma=0.5, landmarks=X[:7]).fit(X)
    np.testing.assert_array_equal(model.components_, X[:7])
    assert model.component_indices_ is None


def test_precomputed_needs_fewer_landmarks_than_points(X):
    K = rbf_kernel(X, gamma=0.5)
    model = Nystroem(kernel="precomputed", n_components=25)
    F = model.fit_transform(K)
    assert F.shape == (200, 25)
    assert model.approximation_error_ == pytest.approx(np.trace(K - F @ F.T), abs=1e-8)
    np.testing.assert_allclose(model.transform(K[:5]), F[:5], atol=1e-8)
    assert len(pickle.dumps(model)) < K.nbytes / 8  # without the matrix
    by_index = Nystroem(kernel=Precomputed(K), n_components=25).fit_transform(np.arange(200))
    np.testing.assert_allclose(by_index, F, atol=1e-8)
    with pytest.raises(ValueError, match="pre-images need points"):
        model.inverse_transform(F)


def test_strings():
    kernel = Spectrum(2)
    model = Nystroem(kernel=kernel, n_components=len(STRINGS))
    with np.errstate(all="raise"):
        F = model.fit_transform(STRINGS)
    np.testing.assert_allclose(F @ F.T, kernel(STRINGS), atol=1e-8)
    assert model.approximation_error_ == pytest.approx(0.0, abs=1e-8)
    back = model.inverse_transform(F[:3], method="nearest")
    np.testing.assert_allclose(np.diag(kernel(list(back), STRINGS[:3])), kernel.diag(STRINGS[:3]))
    np.testing.assert_allclose(model.transform(["abbaab"]) @ F.T, kernel(["abbaab"], STRINGS))


def test_way_back(X):
    model = Nystroem(gamma=0.3, n_components=80)
    F = model.fit_transform(X)
    assert np.abs(model.inverse_transform(F[:5]) - X[:5]).max() < 0.05
    found = model.preimage(F[:5])
    assert found.residuals.shape == (5,)
    with pytest.raises(ValueError, match=r"each of the 80 features of the map, got shape \(5, 3\)"):
        model.inverse_transform(F[:5, :3])


def test_functions_are_called_no_more_than_needed(X):
    calls = []

    def product(x, z):
        calls.append(1)
        return float(x @ z)

    model = Nystroem(kernel=product, n_components=3).fit(X[:20])
    assert len(calls) == 6
    assert model.approximation_error_ is None
    F = model.fit_transform(X[:20])
    np.testing.assert_allclose(F @ F.T, X[:20] @ X[:20].T, atol=1e-8)
    assert model.approximation_error_ == pytest.approx(0.0, abs=1e-8)
    model = Nystroem(kernel=Callable(lambda A, B: A @ B.T, contract="matrix"), n_components=3)
    model.fit_transform(X)
    assert model.approximation_error_ < 1e-8


def test_kernels_that_are_not_definite_warn(X):
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        F = Nystroem(kernel="sigmoid", gamma=2.0, n_components=10).fit_transform(X)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        G = Nystroem(kernel="sigmoid", gamma=2.0, n_components=10).fit(X).transform(X)
    assert F.shape == (200, 10)
    np.testing.assert_allclose(F, G)


def test_sparse_and_single(X):
    kernel = RBF(1.5) + Linear()
    F = Nystroem(kernel=kernel, n_components=20).fit_transform(X)
    S = Nystroem(kernel=kernel, n_components=20).fit(sp.csr_array(X))
    np.testing.assert_allclose(S.transform(sp.csr_array(X)), F, atol=1e-6)
    single = X.astype(np.float32)
    model = Nystroem(kernel=kernel, n_components=20).fit(single)
    assert model.transform(single).dtype == model.fit_transform(single).dtype == np.float32
    np.testing.assert_allclose(model.transform(single), F, atol=1e-4)


def test_bits_do_not_depend_on_threads(X):
    F, G = (Nystroem(n_components=20, n_jobs=jobs).fit_transform(X) for jobs in (1, 2))
    np.testing.assert_array_equal(F, G)


def test_refusals(X):
    with pytest.raises(ValueError, match="Don't pass gamma, coef0 or degree"):
        Nystroem(kernel=lambda x, z: 1.0, gamma=1.0).fit(X)
    with pytest.raises(ValueError, match="n_components"):
        Nystroem(n_components=0).fit(X)
    with pytest.raises(ValueError, match="4 columns, but X has 3"):
        Nystroem(landmarks=np.ones((2, 4))).fit(X)
    with pytest.raises(MemoryBudgetError, match="100 landmarks"):
        Nystroem(max_memory=1000).fit(X)
    with pytest.warns(UserWarning, match="n_components > n_samples"):
        assert Nystroem(n_components=500, gamma=50.0).fit_transform(X).shape == (200, 200)


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.hypot(*X.T) > 1.1
    model = make_pipeline(Nystroem(gamma=1.0, n_components=30), LinearSVC())
    assert cross_val_score(model, X, y).mean() > 0.9


def test_it_says_what_it_does(X, capsys):
    Nystroem(n_components=10, verbose=1).fit(X)
    out = capsys.readouterr().out
    assert "10 landmarks among 200 points" in out
    assert "trace of K - F F^T" in out


def test_a_precomputed_matrix_in_float32_has_features_in_float32():
    X = np.random.default_rng(0).normal(size=(30, 3))
    K = RBF(1.0)(X).astype(np.float32)
    model = Nystroem(kernel="precomputed", n_components=5)
    F = model.fit_transform(K)
    assert F.dtype == model.transform(K).dtype == np.float32
    np.testing.assert_allclose(F, model.transform(K), atol=1e-6)


def test_features_with_absolute_eigenvalues():
    X = np.random.default_rng(0).normal(size=(9, 2))
    phi = FlippedMap.on(Sigmoid(), X[:5])
    assert repr(phi) == "<FlippedMap on 5 landmarks, Sigmoid(gamma=1.0, coef0=1.0)>"
    ((_, K),) = phi.blocks(X, whiten=False)
    np.testing.assert_allclose(K, Sigmoid()(X, X[:5]), rtol=1e-12)
    with pytest.raises(ValueError, match=r"K_SS has entries that are not finite.*on the landmarks"):
        FlippedMap.on(Polynomial(3), np.array([[1e200], [1.0]]))


def test_features_must_be_finite():
    model = Nystroem(n_components=5).fit(np.random.default_rng(0).normal(size=(9, 2)))
    with pytest.raises(ValueError, match="features contain values that are not finite"):
        model.inverse_transform(np.full((1, 5), np.nan))


def test_names_of_random_features():
    X = np.random.default_rng(0).uniform(size=(9, 2))
    names = mercer.RandomFeatures(n_components=3).fit(X).get_feature_names_out()
    assert list(names) == ["randomfeatures0", "randomfeatures1", "randomfeatures2"]
    sketch = mercer.PolynomialCountSketch(n_components=4, random_state=0).fit(X)
    assert repr(sketch._map).startswith("<CountSketchMap to 4 features, Polynomial(degree=2")
