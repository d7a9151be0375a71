"""ExplicitFeatures: phi(x) . phi(z) = k(x, z), exactly."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from mercer import ExplicitFeatures, KernelRidge, MemoryBudgetError
from mercer.kernels import (
    RBF,
    BagOfWords,
    Cosine,
    Features,
    Graphs,
    Kendall,
    Linear,
    Normalized,
    Polynomial,
    PolynomialBasis,
    Select,
    Spectrum,
    Stretch,
    WeisfeilerLehman,
)

WORDS = ["abba", "baobab", "cab", "abracadabra", "cc"]
X = np.random.default_rng(0).standard_normal((30, 3))


def products(model, Z, X):
    F, G = model.transform(Z), model.transform(X)
    K = F @ G.T
    return K.toarray() if sp.issparse(K) else K


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, 0.7, 0.5),
        Polynomial(2, 0.0, 2.0),
        Cosine(),
        2.0 * Linear() + 3.0,
        Linear() * Polynomial(2),
        Linear() ** 2,
        Normalized(Polynomial(2)),
        Select(Polynomial(2), [0, 2]) + Stretch(Linear(), 2.0),
        Features(PolynomialBasis(2)),
    ],
    ids=str,
)
def test_vectors(kernel):
    model = ExplicitFeatures(kernel=kernel)
    F = model.fit_transform(X)
    np.testing.assert_allclose(F, model.transform(X))
    np.testing.assert_allclose(products(model, X[:5] + 1, X), kernel(X[:5] + 1, X), atol=1e-10)
    assert model.get_feature_names_out()[-1] == f"explicitfeatures{F.shape[1] - 1}"


def test_polynomial_has_as_many_features_as_monomials():
    assert ExplicitFeatures(kernel="poly").fit_transform(X).shape == (30, 20)
    assert ExplicitFeatures(kernel="poly", coef0=0).fit_transform(X).shape == (30, 10)


@pytest.mark.parametrize(
    "kernel",
    [Spectrum(2), 3.0 * Spectrum(1), Normalized(Spectrum(2)), Spectrum(1) + Spectrum(3)],
    ids=str,
)
def test_strings(kernel):
    model = ExplicitFeatures(kernel=kernel).fit(WORDS[:4])
    np.testing.assert_allclose(
        products(model, ["dabba", *WORDS], WORDS[:4]), kernel(["dabba", *WORDS], WORDS[:4])
    )


def test_products_of_counts():
    kernel = Spectrum(1) * Spectrum(2)
    model = ExplicitFeatures(kernel=kernel).fit(WORDS)
    np.testing.assert_allclose(products(model, WORDS, WORDS), kernel(WORDS))


def test_graphs_texts_and_rankings():
    edges = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]]
    graphs = Graphs.from_edges(edges, labels=[["C", "C", "O"]] * 2)
    for kernel, points in (
        (BagOfWords(), ["a rose is a rose", "a daisy", "the rose"]),
        (Kendall(), np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])),
        (WeisfeilerLehman(2), graphs),
    ):
        model = ExplicitFeatures(kernel=kernel).fit(points)
        K = model.kernel_(points)
        np.testing.assert_allclose(products(model, points, points), K, atol=1e-12)


def test_the_primal_of_a_kernel_machine():
    y = X[:, 0] * X[:, 1]
    F = ExplicitFeatures(kernel=Polynomial(2)).fit(X)
    primal = Ridge(alpha=0.1, fit_intercept=False).fit(F.transform(X), y)
    dual = KernelRidge(alpha=0.1, kernel=Polynomial(2)).fit(X, y)
    np.testing.assert_allclose(primal.predict(F.transform(X + 1)), dual.predict(X + 1), atol=1e-6)


def test_refusals():
    with pytest.raises(TypeError, match=r"RBF has no finite features: .* Nystroem .* RandomF"):
        ExplicitFeatures(kernel=RBF()).fit(X)
    with pytest.raises(ValueError, match="use Nystroem"):
        ExplicitFeatures(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(MemoryBudgetError, match="20 monomials"):
        ExplicitFeatures(kernel="poly", max_memory=1000).fit_transform(X)
