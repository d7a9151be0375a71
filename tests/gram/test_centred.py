"""Test centring: results against the dense formula, and the number of passes over K."""

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

from mercer.gram import CentredGram, DenseGram, LowRankGram, TiledGram, gram
from mercer.kernels import RBF, Distance, Linear, Sigmoid, White, float32_error_bound

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
WEIGHTS = {
    "equal": None,
    "some": rng.exponential(size=60),
    "counts": rng.integers(0, 3, size=60),
    "wild": 10.0 ** rng.uniform(-6, 2, size=60),
}


class Read(DenseGram):
    """Gram operator that counts complete passes over K."""

    reads = 0

    def _matmat(self, V):
        self.reads += 1
        return super()._matmat(V)

    def _matvec(self, v):
        self.reads += 1
        return super()._matvec(v)

    def with_squares(self, V, weights):
        before = self.reads
        result = super().with_squares(V, weights)
        self.reads = before + 1
        return result


def dense(kernel, X, weights):
    """Return S (I - 1 w^T) K (I - w 1^T) S as an array."""
    n = len(X)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    P = np.eye(n) - np.outer(np.ones(n), w)
    S = np.diag(np.sqrt(n * w))
    return S @ P @ kernel(X) @ P.T @ S, w


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)
@pytest.mark.parametrize(
    "kernel", [RBF(), Linear(), Distance(), Sigmoid(0.4, 0.5), RBF() + White(0.3)], ids=str
)
@pytest.mark.parametrize("first", ["numbers", "products", "vectors"])
def test_numbers_as_the_dense_formula_has_them(kernel, hold, weights, first):
    """Means and norm are right in any order of calls, with or without a product before."""
    want, w = dense(kernel, X, weights)
    K, size = kernel(X), np.linalg.norm(want) + 1.0
    c = CentredGram(hold(kernel, X), weights)
    if first == "products":
        V = rng.normal(size=(60, 4))
        np.testing.assert_allclose(c @ V, want @ V, atol=1e-11 * size)
    if first == "vectors":
        v = rng.normal(size=60)
        np.testing.assert_allclose(c @ v, want @ v, atol=1e-11 * size)
    S = np.sqrt(60 * w)
    np.testing.assert_allclose(c.means, K @ w, atol=1e-13 * np.abs(K).max())
    assert c.grand_mean == pytest.approx(w @ K @ w, abs=1e-12)
    assert c.uncentred_norm == pytest.approx(np.linalg.norm(S[:, None] * K * S), rel=1e-13)
    squared = np.linalg.norm(want) ** 2
    assert c.squared_norm() == pytest.approx(squared, abs=1e-13 * c.uncentred_norm**2)
    np.testing.assert_allclose(c.diagonal(), want.diagonal(), atol=1e-12 * size)
    assert c.trace() == pytest.approx(np.trace(want), abs=1e-12 * size)
    np.testing.assert_allclose(c.to_array(), want, atol=1e-12 * size)


def test_distances_to_the_mean_in_feature_space():
    w = WEIGHTS["some"] / WEIGHTS["some"].sum()
    c = CentredGram(DenseGram(Linear(), X), w)
    want = np.square(X - w @ X).sum(axis=1)
    np.testing.assert_allclose(c.squared_distances(), want, atol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS["some"]], ids=["equal", "weights"])
def test_a_product_of_several_columns_brings_everything_along(weights):
    K = Read(RBF(), X)
    c = CentredGram(K, weights)
    assert K.reads == 0
    c @ rng.normal(size=(60, 2))
    assert K.reads == 1
    numbers = c.means, c.grand_mean, c.trace(), c.diagonal(), c.uncentred_norm, c.squared_norm()
    assert K.reads == 1 and len(numbers) == 6
    c @ rng.normal(size=(60, 5))
    c @ rng.normal(size=60)
    assert K.reads == 3


def test_the_means_alone_are_one_product_and_the_norm_brings_them():
    K = Read(RBF(), X)
    c = CentredGram(K)
    c.means, c.grand_mean, c.trace(), c.diagonal()
    assert K.reads == 1
    c.uncentred_norm, c.squared_norm()
    assert K.reads == 2
    K = Read(RBF(), X)
    c = CentredGram(K)
    c.squared_norm(), c.means, c.trace()
    assert K.reads == 1
    c @ rng.normal(size=(60, 3))
    assert K.reads == 2


def test_a_single_column_brings_nothing_along():
    K = Read(RBF(), X)
    c = CentredGram(K)
    c @ rng.normal(size=60)
    assert K.reads == 1
    c.means  # noqa: B018
    assert K.reads == 2


def test_means_do_not_change_when_a_product_could_bring_others():
    c = CentredGram(TiledGram(RBF(), X))
    before = c.means
    c @ rng.normal(size=(60, 3))
    assert c.means is before


def test_numbers_survive_the_array():
    reference = CentredGram(DenseGram(RBF(), X))
    given = CentredGram(DenseGram(RBF(), X))
    np.testing.assert_allclose(given.release(), reference.to_array(), atol=1e-15)
    assert given.trace() == reference.trace()
    assert given.squared_norm() == reference.squared_norm()
    with pytest.raises(RuntimeError, match="was overwritten by a solver"):
        given @ np.ones(60)


def test_the_squares_of_several_tiles():
    many = np.random.default_rng(1).normal(size=(1000, 2))
    for weights in (None, np.random.default_rng(2).exponential(size=1000)):
        held = [CentredGram(hold(RBF(), many), weights) for hold in zoo.GRAMS]
        norms = [c.uncentred_norm for c in held]
        assert norms[0] == pytest.approx(norms[1], rel=1e-13)
        assert held[0].squared_norm() == pytest.approx(held[1].squared_norm(), rel=1e-11)
        threads = [CentredGram(TiledGram(RBF(), many, n_threads=t), weights) for t in (1, 2)]
        assert threads[0].uncentred_norm == threads[1].uncentred_norm


def test_other_grams_of_the_same_points():
    low = CentredGram(LowRankGram(RBF(), X, n_landmarks=60, random_state=0))
    full = CentredGram(DenseGram(RBF(), X))
    assert low.squared_norm() == pytest.approx(full.squared_norm(), rel=1e-9)


@pytest.mark.parametrize("columns", [1, 3, 8, 12, 50, 200, 400, 500])
@pytest.mark.parametrize("kind", ["line", "normal", "uniform", "offset", "sparse"])
def test_float32_tiles_are_within_their_bound(kind, columns):
    rng = np.random.default_rng(0)
    P = {
        "line": np.linspace(-1.0, 1.0, 200)[:, None] * np.ones(columns),
        "normal": rng.normal(size=(200, columns)),
        "uniform": rng.random((200, columns)),
        "offset": 2000.0 + rng.random((200, columns)),
        # Most columns are 0; the bound depends on the number of other entries per row.
        "sparse": sp.hstack(
            [
                sp.csr_array(np.linspace(-1.0, 1.0, 200)[:, None] * np.ones(columns)),
                sp.csr_array((200, 1000 - columns)),
            ],
            format="csr",
        ),
    }[kind]
    for length in (0.1, 1.0, 10.0):
        kernel = RBF(length * np.sqrt(columns))
        exact, double = kernel(P), kernel.prepare(P)
        single = double.astype(np.float32)
        tiles = TiledGram.on(kernel, single, single).to_array()
        assert np.all(np.abs(tiles - exact) <= float32_error_bound(kernel, double) * exact + 1e-37)


@pytest.mark.parametrize("weights", [None, WEIGHTS["some"]], ids=["equal", "weights"])
def test_expansions_are_centred_with_the_same_weights(weights):
    c = CentredGram(DenseGram(Linear(), X), weights)
    beta = rng.normal(size=(60, 2))
    gamma, at_mean = c.centre_expansion(beta)
    mean = c.weights @ X
    np.testing.assert_allclose(X.T @ gamma, (X - mean).T @ beta, atol=1e-12)
    np.testing.assert_allclose(at_mean, mean @ (X - mean).T @ beta, atol=1e-12)


def test_overflow_is_reported_once_it_is_seen():
    far = np.full((4, 2), 1e160)
    for ask in (lambda c: c.means, lambda c: c.uncentred_norm, lambda c: c @ np.eye(4)):
        with pytest.raises(ValueError, match="entries that are not finite; the usual cause"):
            ask(CentredGram(gram(Linear(), far)))


def test_no_points():
    with pytest.raises(ValueError, match="at least one point, got none"):
        CentredGram(gram(RBF(), X[:0]))
