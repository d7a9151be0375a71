"""Test Gram operators: choice of storage, tiles, memory budgets, determinism, centring."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import cg, eigsh
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer import Blocks, MemoryBudgetError
from mercer._core import budget_in_bytes, format_bytes
from mercer.gram import CentredGram, DenseGram, DistributedGram, GramOperator, TiledGram, gram
from mercer.gram import _tiled as tiled_module
from mercer.gram._dense import _SquaredDistance
from mercer.kernels import RBF, Linear, Matern, Polynomial, Precomputed, SklearnKernel, White

rng = np.random.default_rng(0)
X = rng.normal(size=(1300, 11))  # several tiles, the last ones incomplete
Z = rng.normal(size=(700, 11))
V = rng.normal(size=(1300, 3))


@pytest.mark.parametrize("kernel", [RBF(3.0), Matern(2.0, nu=0.5), Linear() + White(0.1)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_multiply_like_the_matrix(kernel, dtype):
    K = kernel(X)
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    for held in (TiledGram(kernel, X.astype(dtype)), DenseGram(kernel, X.astype(dtype))):
        product = held @ V.astype(dtype)
        assert np.abs(product - K @ V).max() <= tolerance * np.abs(K @ V).max()
        assert np.abs(held @ V[:, 0] - K @ V[:, 0]).max() <= tolerance * np.abs(K @ V).max()


@pytest.mark.parametrize("storage", ["dense", "tiled"])
def test_rectangular_products_and_their_adjoint(storage):
    K = gram(RBF(3.0), X, Z, storage=storage)
    reference = RBF(3.0)(X, Z)
    U = rng.normal(size=(700, 4))
    np.testing.assert_allclose(K @ U, reference @ U, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(K.T @ V, reference.T @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(K.H @ V[:, 0], reference.T @ V[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(K.rmatmat(V), reference.T @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(K.diagonal(), reference.diagonal(), rtol=1e-14)
    np.testing.assert_allclose(K.rows(5), reference[5], rtol=1e-13)
    np.testing.assert_allclose(K.block([3, 1], slice(2, 9)), reference[[3, 1], 2:9], rtol=1e-13)


def test_complex_columns():
    K = TiledGram(RBF(3.0), X)
    W = V + 1j * V[::-1]
    np.testing.assert_allclose(K @ W, RBF(3.0)(X) @ W, rtol=1e-11, atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 40), c=st.integers(1, 3), rows=st.integers(1, 9), ratio=st.integers(1, 4))
def test_any_tile_size_gives_the_same_product(n, c, rows, ratio):
    points = np.random.default_rng(n).normal(size=(n, 2))
    columns = np.random.default_rng(c).normal(size=(n, c))
    kernel = RBF() + White(0.5)
    old = tiled_module._TILE_ROWS, tiled_module.TILE_COLUMNS
    tiled_module._TILE_ROWS, tiled_module.TILE_COLUMNS = rows, rows * ratio
    try:
        product = TiledGram(kernel, points) @ columns
        array = DenseGram(kernel, points).to_array()
    finally:
        tiled_module._TILE_ROWS, tiled_module.TILE_COLUMNS = old
    np.testing.assert_allclose(product, kernel(points) @ columns, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(array, kernel(points), rtol=1e-13, atol=1e-15)
    assert np.array_equal(array, array.T)


def test_the_bits_do_not_depend_on_the_threads():
    for kernel in (RBF(3.0), Matern(2.0)):
        products = [TiledGram(kernel, X, n_threads=t) @ V for t in (1, 2, 3, 7)]
        crossed = [TiledGram(kernel, X, Z, n_threads=t) @ V[:700] for t in (1, 2, 5)]
        arrays = [DenseGram(kernel, X, n_threads=t).to_array() for t in (1, 4)]
        for same in (products, crossed, arrays):
            assert all(np.array_equal(same[0], other) for other in same[1:])


def test_a_dense_gram_is_symmetric_to_the_bit():
    K = DenseGram(RBF(2.0) * Polynomial(2), X).to_array()
    assert np.array_equal(K, K.T)


def test_scipy_solvers_accept_a_gram():
    K = TiledGram(RBF(1.0) + White(1.0), X)
    solution, info = cg(K, V[:, 0], rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(K @ solution, V[:, 0], atol=1e-8)
    top = eigsh(TiledGram(RBF(3.0), X), 2, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(top), np.linalg.eigvalsh(RBF(3.0)(X))[-2:], rtol=1e-10)


def test_sparse_points():
    S = sp.random_array((300, 40), density=0.1, format="csr", rng=0)
    W = rng.normal(size=(300, 2))
    for kernel in (RBF(1.0), Linear()):
        reference = kernel(S.toarray()) @ W
        np.testing.assert_allclose(TiledGram(kernel, S) @ W, reference, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(DenseGram(kernel, S) @ W, reference, rtol=1e-10, atol=1e-12)


def test_pullback_of_a_gram():
    kernel = 2.0 * RBF(3.0) + White(0.3)
    W = V @ V[:, ::-1].T
    expected = kernel.pullback(X, None, W)
    np.testing.assert_allclose(gram(kernel, X).pullback(V, V[:, ::-1]), expected, rtol=1e-10)
    with pytest.raises(
        ValueError, match=r"pullback needs U of shape \(1300, c\) and V of shape \(1300, c\)"
    ):
        gram(kernel, X).pullback(V, V[:5])


# ---------------------------------------------------------------------- choice of storage


def test_the_rule_table():
    assert isinstance(gram(RBF(), X), DenseGram)
    assert isinstance(gram(RBF(), X, Z), TiledGram)
    assert isinstance(gram(RBF(), X, storage="tiled"), TiledGram)
    assert isinstance(gram(RBF(), X, Z, storage="dense"), DenseGram)
    assert isinstance(gram(RBF(), X, max_memory="8 MiB"), TiledGram)
    assert repr(gram(RBF(), X)) == "<DenseGram 1300x1300, float64, RBF(length_scale=1.0)>"


def test_a_budget_is_respected_before_anything_is_allocated():
    huge = np.zeros((200_000, 1))
    message = r"the 200000 x 200000 matrix K needs 298.0 GiB, but the budget is 1.0 GiB"
    with pytest.raises(MemoryBudgetError, match=message):
        gram(RBF(), huge, storage="dense", max_memory="1 GiB")
    with pytest.raises(MemoryBudgetError, match="the 200000 x 200000 matrix K does not fit"):
        gram(RBF(), huge, max_memory=1000)
    with pytest.raises(MemoryBudgetError, match="choose a solver that works on tiles"):
        gram(RBF(), X, max_memory="8 MiB").to_array()


def test_wishes_that_make_no_sense():
    with pytest.raises(ValueError, match="storage must be 'auto', 'dense' or 'tiled'"):
        gram(RBF(), X, storage="disk")
    with pytest.raises(TypeError, match="The kernel must be a str, a callable, a Kernel"):
        gram(3, X)
    with pytest.raises(ValueError, match="which must be computed from data"):
        gram(RBF(length_scale="median"), X)
    for bad in (0, -1, "lots", "3 XB", True):
        with pytest.raises(ValueError, match="max_memory must be a positive number of bytes"):
            gram(RBF(), X, max_memory=bad)


@pytest.mark.parametrize(
    ("text", "size"), [("2 GiB", 2**31), ("1.5kb", 1500), ("7", 7), ("3 MB", 3_000_000)]
)
def test_budgets_as_text(text, size):
    assert budget_in_bytes(text) == size
    assert budget_in_bytes(size) == size


def test_format_of_sizes():
    assert [format_bytes(s) for s in (5, 2048, 3 * 2**20, 2**31, 2**42)] == [
        "5 bytes",
        "2.0 KiB",
        "3.0 MiB",
        "2.0 GiB",
        "4.0 TiB",
    ]


def test_precomputed_values_are_held_as_they_are():
    K = RBF()(X[:50])
    held = gram(Precomputed(), K)
    before = K.copy()
    assert np.shares_memory(held.array, K)
    assert held.release() is not K  # a solver that works in place gets a copy
    assert np.array_equal(K, before)


def test_an_asymmetric_precomputed_matrix_is_reported_and_symmetrised():
    K = np.array([[1.0, 2.0], [3.0, 40.0]])
    with pytest.warns(UserWarning, match="not symmetric: K and its transpose differ by 1"):
        held = gram(Precomputed(), K)
    assert np.array_equal(held.to_array(), [[1.0, 2.5], [2.5, 40.0]])
    with pytest.raises(ValueError, match="not square"):
        gram(Precomputed(), np.ones((2, 3)))


def test_a_released_gram_says_so():
    held = gram(RBF(), X[:20])
    held.release()
    with pytest.raises(RuntimeError, match="was overwritten by a solver"):
        held @ np.ones(20)


# ---------------------------------------------------------------------- centring


@pytest.mark.parametrize("storage", ["dense", "tiled"])
@pytest.mark.parametrize("weighted", [False, True])
def test_centring_is_algebra(storage, weighted):
    n = 90
    K = RBF(2.0)(X[:n])
    w = rng.uniform(size=n) if weighted else np.ones(n)
    u = w / w.sum()
    left = np.diag(np.sqrt(n * u)) @ (np.eye(n) - np.outer(np.ones(n), u))
    reference = left @ K @ left.T
    centred = CentredGram(gram(RBF(2.0), X[:n], storage=storage), w if weighted else None)
    np.testing.assert_allclose(centred.to_array(), reference, atol=1e-13)
    np.testing.assert_allclose(centred @ V[:n], reference @ V[:n], atol=1e-12)
    np.testing.assert_allclose(centred.diagonal(), reference.diagonal(), atol=1e-13)
    assert centred.trace() == pytest.approx(np.trace(reference), rel=1e-12)
    assert centred.T @ V[:n, 0] == pytest.approx(reference @ V[:n, 0], abs=1e-12)
    np.testing.assert_allclose(centred.release(), reference, atol=1e-13)


def test_centring_checks_its_weights():
    K = gram(RBF(), X[:5])
    with pytest.raises(ValueError, match=r"weights have shape \(4,\), but there are 5 points"):
        CentredGram(K, np.ones(4))
    for bad in (np.zeros(5), np.array([1, 1, 1, 1, -1.0]), np.array([1, np.nan, 1, 1, 1])):
        with pytest.raises(ValueError, match="finite, non-negative, and not all zero"):
            CentredGram(K, bad)
    with pytest.raises(ValueError, match="centring needs a symmetric kernel matrix"):
        CentredGram(gram(RBF(), X[:5], Z))


def test_points_that_overflow():
    far = np.array([[1e200] * 9, [-1e200] * 9])
    with pytest.raises(ValueError, match=r"RBF: squared distances overflow, because points have"):
        gram(RBF(), far)
    assert RBF(1e200)(far)[0, 1] == pytest.approx(np.exp(-18.0))
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        CentredGram(gram(Linear(), far)).trace()
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        CentredGram(gram(Linear(), far, storage="tiled")) @ np.eye(2)


def test_no_points():
    K = gram(RBF(), np.empty((0, 3)), storage="tiled")
    assert K.shape == (0, 0)
    assert (gram(RBF(), X[:0], Z) @ np.ones((700, 2))).shape == (0, 2)


def test_sums_across_tiles_are_float64():
    # each tile except the first adds 0.0384 to 10^6, which would be lost in float32
    column = np.full((3072, 1), 1e-4)
    column[0] = 1e6
    total = (TiledGram(RBF(), np.zeros((3072, 1), dtype=np.float32)) @ column)[0, 0]
    assert total - 1e6 == pytest.approx(7 * 0.0384, abs=1e-3)


def test_many_columns_go_in_several_passes():
    V = rng.normal(size=(1300, 40))
    K = TiledGram(RBF(3.0), X, max_memory="1 MiB")
    np.testing.assert_allclose(K @ V, RBF(3.0)(X) @ V, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "2"])
def test_numbers_of_threads(bad):
    with pytest.raises(ValueError, match="n_threads must be a positive integer or None"):
        gram(RBF(), X, n_threads=bad)


def test_pullback_of_a_wrapped_kernel_beyond_one_tile():
    kernel = SklearnKernel(ExpSineSquared(1.5, 2.5))
    points = np.linspace(0.0, 5.0, 600)[:, None]
    U = rng.normal(size=(600, 2))
    expected = kernel.pullback(points, None, U @ U.T)
    np.testing.assert_allclose(gram(kernel, points).pullback(U, U), expected, rtol=1e-10)


class Rectangular(GramOperator):
    """A Gram operator with only the required methods."""

    def block(self, rows, cols):
        return self.kernel(self.X, self.X if self.Z is None else self.Z)[rows][:, cols]

    def diagonal(self):
        return self.kernel.diag(self.X)

    def to_array(self):
        return self.block(slice(None), slice(None))

    def _matmat(self, V):
        return self.to_array() @ V


def test_default_methods_of_a_gram_operator():
    rng = np.random.default_rng(0)
    A, V, w = rng.normal(size=(9, 2)), rng.normal(size=(9, 3)), rng.uniform(size=9)
    operator, K = Rectangular(RBF(), A, None, (9, 9), np.float64), RBF()(A)
    rows = np.array([4, 1])
    np.testing.assert_allclose(operator.part(rows, V), K[rows] @ V, rtol=1e-12)
    product, squares = operator.with_squares(V, w)
    np.testing.assert_allclose(product, K @ V, rtol=1e-12)
    assert squares == pytest.approx(w @ K**2 @ w)
    other = Rectangular(RBF(), A, A[:4], (9, 4), np.float64)
    with pytest.raises(NotImplementedError, match="Rectangular has no transposed operator"):
        other.T @ np.ones(9)


def test_the_adjoint_of_a_centred_gram():
    A = np.random.default_rng(0).normal(size=(9, 2))
    K, v = CentredGram(gram(RBF(), A)), np.arange(9.0)
    for found in (K.H @ v, K.rmatvec(v)):
        np.testing.assert_allclose(found, K.to_array() @ v, atol=1e-14)


def test_squared_distances_have_derivatives():
    A, B = np.array([[0.0, 1.0], [2.0, 4.0]]), np.array([[1.0, 1.0]])
    kernel = _SquaredDistance()
    np.testing.assert_allclose(kernel(A, B), [[1.0], [10.0]])
    np.testing.assert_allclose(kernel.input_gradient(A, B, np.ones((2, 1))), 2.0 * (A - B))


def test_distributed_products_need_workers():
    A = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(TypeError, match="workers must be Blocks if X is not"):
        DistributedGram(RBF(), A)
    K, rows = DistributedGram(RBF(), Blocks.of(A, 3)), np.array([7, 2])
    np.testing.assert_allclose(K.part(rows, np.eye(9)), RBF()(A)[rows], rtol=1e-12)
