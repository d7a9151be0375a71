"""RBFSampler, RandomFeatures, SkewedChi2Sampler, PolynomialCountSketch, AdditiveChi2Sampler."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_approximation as theirs
from sklearn.metrics.pairwise import rbf_kernel

from mercer import (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    RandomFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)
from mercer.kernels import RBF, Laplacian, Linear, Matern, Spectrum
from mercer.kernels.vectors._fast_math import scaled_sincos


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((150, 4))


# ---------------------------------------------------------------------- random Fourier features


@pytest.mark.parametrize("size", [1.0, 1e3, 9.9e5, 1e9])
def test_waves_are_cosines_and_sines(size):
    P = np.linspace(-size, size, 1001 * 7).reshape(-1, 7)
    P[0, :4] = [0.0, np.pi / 2, np.pi, -np.pi / 4]
    a, out = np.arange(1.0, 8.0), np.empty((len(P), 14))
    scaled_sincos(P, a, out)
    np.testing.assert_allclose(out, np.hstack([a * np.cos(P), a * np.sin(P)]), atol=4e-15)


def test_waves_of_what_is_not_finite():
    out = np.empty((1, 4))
    with np.errstate(invalid="ignore"):
        scaled_sincos(np.array([[np.nan, np.inf]]), np.ones(2), out)
    assert np.isnan(out).all()


# ---------------------------------------------------------------------- random features


@pytest.mark.parametrize("n_components", [1, 7, 200])
@pytest.mark.parametrize("method", ["auto", "orthogonal", "iid"])
def test_their_formula_holds(X, n_components, method):
    model = RBFSampler(gamma=0.3, n_components=n_components, method=method).fit(X)
    W, b = model.random_weights_, model.random_offset_
    assert W.shape == (4, n_components)
    expected = np.sqrt(2.0 / n_components) * np.cos(X @ W + b)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-12)
    np.testing.assert_allclose(model.transform(sp.csr_array(X)), expected, atol=1e-12)


def test_odd_numbers_of_features_are_unbiased():
    X = np.array([[0.0, 0.0], [0.7, -0.4]])
    for kernel in (RBF(1.0), RBF(1.0) + 3.0 * Matern()):
        fits = (
            RandomFeatures(5, kernel=kernel, random_state=seed).fit_transform(X)
            for seed in range(400)
        )
        mean = np.mean([F @ F.T for F in fits], axis=0)
        np.testing.assert_allclose(mean, kernel(X), atol=0.2)


def test_a_constant_needs_no_sine(X):
    kernel = RBF(1.0) + 2.0
    F = RandomFeatures(401, kernel=kernel).fit_transform(X)
    np.testing.assert_allclose((F**2).sum(axis=1), 3.0)
    assert np.abs(F @ F.T - kernel(X)).max() < 0.4


def test_error_is_below_theirs(X):
    K = rbf_kernel(X, gamma=0.2)
    for seed in range(5):
        options = {"gamma": 0.2, "n_components": 200, "random_state": seed}
        F, G = (S(**options).fit_transform(X) for S in (RBFSampler, theirs.RBFSampler))
        assert np.linalg.norm(F @ F.T - K) < 0.7 * np.linalg.norm(G @ G.T - K)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(2.0),
        RBF((1.0, 2.0, 3.0, 4.0)),
        Laplacian(5.0),
        Matern(2.0, nu=2.5),
        RBF(2.0) + 0.5 * Matern(3.0),
        RBF(3.0) * Laplacian(9.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["qmc", "orthogonal"])
def test_kernels(X, kernel, method):
    model = RandomFeatures(4096, kernel=kernel, method=method)
    F = model.fit_transform(X)
    np.testing.assert_allclose((F**2).sum(axis=1), kernel.diag(X))
    assert np.sqrt(np.mean((F @ F.T - kernel(X)) ** 2)) < 0.03
    assert F.shape == (150, 4096)
    assert model.basis_.frequencies.shape == (2048, 4)


def test_single_precision_and_threads(X):
    single = X.astype(np.float32)
    for model in (RBFSampler(), RandomFeatures(), SkewedChi2Sampler(skewedness=9.0)):
        F = model.fit_transform(single)
        assert F.dtype == np.float32
        np.testing.assert_allclose(F, model.fit(X).transform(X), atol=1e-4)
        np.testing.assert_array_equal(model.set_params(n_jobs=1).fit_transform(single), F)


def test_what_has_no_random_features(X):
    with pytest.raises(TypeError, match="for other points use Nystroem"):
        RandomFeatures(kernel=Spectrum(2)).fit(["ab", "ba"])
    with pytest.raises((TypeError, ValueError), match="Linear"):
        RandomFeatures(kernel=Linear()).fit(X)
    with pytest.raises(ValueError, match="use at least 4"):
        RandomFeatures(2, kernel=RBF() + Matern()).fit(X)
    with pytest.raises(ValueError, match="method"):
        RBFSampler(method="sobol").fit(X)


def test_skewed_chi2():
    X = np.random.default_rng(1).uniform(size=(40, 3))
    s = 0.5
    A, B = X[:, None] + s, X[None] + s
    K = np.prod(2 * np.sqrt(A * B) / (A + B), axis=2)
    model = SkewedChi2Sampler(skewedness=s, n_components=1000)
    F = model.fit_transform(X)
    assert np.abs(F @ F.T - K).max() < 0.02
    W, b = model.random_weights_, model.random_offset_
    np.testing.assert_allclose(F, np.sqrt(2e-3) * np.cos(np.log(X + s) @ W + b), atol=1e-12)
    with pytest.raises(ValueError, match=r"than -skewedness: got -1, with skewedness=0\.5"):
        model.transform(X - 1 - X.min())


# ---------------------------------------------------------------------- polynomials


@pytest.mark.parametrize("coef0", [0.0, 1.5])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_count_sketch_is_unbiased(degree, coef0):
    X = np.array([[0.5, -0.2, 0.3], [0.1, 0.4, 0.6]])
    options = {"degree": degree, "coef0": coef0, "gamma": 2.0, "n_components": 8}
    K = (2.0 * X @ X.T + coef0) ** degree
    fits = [PolynomialCountSketch(**options, random_state=i).fit_transform(X) for i in range(300)]
    products = np.array([F @ F.T for F in fits])
    spread = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - K) <= 5 * spread + 1e-9)


def test_count_sketch_of_degree_one_is_exact(X):
    F = PolynomialCountSketch(degree=1, coef0=1.0, n_components=5).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, X @ X.T + 1.0, atol=1e-12)


@pytest.mark.parametrize("coef0", [0.0, 1.5])
def test_count_sketch_by_rotations_and_by_transforms(coef0, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 7)).astype(np.float32)
    model = PolynomialCountSketch(degree=3, coef0=coef0, gamma=0.5, n_components=11).fit(X)
    F, sparse = model.transform(X), model.transform(sp.csr_array(X))
    monkeypatch.setattr(
        "mercer.estimators.features._polynomial_count_sketch._FOURIER_THRESHOLD", 0.0
    )
    np.testing.assert_allclose(model.transform(X), F, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse, F, rtol=1e-5, atol=1e-5)


def test_count_sketch_error_is_below_theirs():
    X = np.random.default_rng(0).uniform(size=(100, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = (X @ X.T) ** 2
    errors = []
    for sketch in (PolynomialCountSketch, theirs.PolynomialCountSketch):
        fits = [sketch(n_components=100, random_state=seed).fit_transform(X) for seed in range(20)]
        errors.append(np.mean([np.linalg.norm(F @ F.T - K) for F in fits]))
    assert errors[0] < errors[1]


def test_count_sketch_names_its_hashes(X):
    model = PolynomialCountSketch(degree=3, coef0=1.0, n_components=4).fit(X)
    assert model.indexHash_.shape == model.bitHash_.shape == (3, 5)
    assert set(np.unique(model.bitHash_)) <= {-1.0, 1.0}
    with pytest.raises(ValueError, match="coef0"):
        PolynomialCountSketch(coef0=-1.0).fit(X)


# ---------------------------------------------------------------------- chi-squared


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_additive_chi2_equals_theirs(steps):
    X = np.random.default_rng(0).uniform(size=(60, 5))
    X[X < 0.3] = 0.0
    ours, other = (
        AdditiveChi2Sampler(sample_steps=steps),
        theirs.AdditiveChi2Sampler(sample_steps=steps),
    )
    np.testing.assert_allclose(ours.fit_transform(X), other.fit_transform(X), atol=1e-12)
    S = sp.csr_array(X)
    F = ours.fit_transform(S)
    assert sp.issparse(F)
    np.testing.assert_array_equal(F.toarray(), ours.transform(X))


def test_additive_chi2_converges():
    X = np.random.default_rng(0).uniform(size=(30, 3)) + 0.05
    A, B = X[:, None], X[None]
    K = (2 * A * B / (A + B)).sum(axis=2)
    F = AdditiveChi2Sampler(sample_steps=20, sample_interval=0.2).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, K, atol=1e-4)


def test_additive_chi2_refuses_negative_numbers():
    with pytest.raises(ValueError, match="Negative values in data passed to X in AdditiveChi2"):
        AdditiveChi2Sampler().fit([[1.0, -1.0]])
    with pytest.raises(ValueError, match=r"provide sample_interval; got sample_steps=4"):
        AdditiveChi2Sampler(sample_steps=4).fit([[1.0]])
