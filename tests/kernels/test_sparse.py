"""Sparse and dense points give the same results, in every combination."""

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

from mercer.kernels import RBF, Linear, Matern

FORMATS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix]

each_sparse_kernel = pytest.mark.parametrize("entry", **zoo.every(sparse=True))


def operands(entry, columns):
    """Return points of the domain in which about half of the numbers are 0."""
    X, Z = entry.points(9, columns), entry.points(5, columns, seed=1)
    for seed, A in enumerate((X, Z)):
        A[np.random.default_rng(seed).random(A.shape) < 0.4] = 0.0
        A[:, 0] = np.where(A[:, 0] == 0, 0.5, A[:, 0])  # no row is 0, where Cosine is discontinuous
    return X, Z


def close(got, want, rtol=1e-10):
    assert not sp.issparse(got)
    np.testing.assert_allclose(got, want, rtol=0, atol=rtol * max(1.0, np.abs(want).max(initial=0)))


def mixtures(X, Z):
    S, T = sp.csr_array(X), sp.csr_array(Z)
    return {"sparse sparse": (S, T), "sparse dense": (S, Z), "dense sparse": (X, T)}


@pytest.mark.parametrize(("entry", "columns"), **zoo.every_with_columns(sparse=True))
def test_blocks(entry, columns):
    k = entry.kernel
    X, Z = operands(entry, columns)
    S = sp.csr_array(X)
    close(k(S), k(X))
    close(k.diag(S), k.diag(X))
    for A, B in mixtures(X, Z).values():
        close(k(A, B), k(X, Z))


@pytest.mark.parametrize(
    ("entry", "columns"), **zoo.every_with_columns(sparse=True, differentiable=True)
)
def test_derivatives(entry, columns):
    k = entry.kernel
    X, Z = operands(entry, columns)
    S = sp.csr_array(X)
    rng = np.random.default_rng(2)
    W, V = rng.normal(size=(len(X), len(Z))), rng.normal(size=(len(X), len(X)))
    for A, B in mixtures(X, Z).values():
        close(k.pullback(A, B, W), k.pullback(X, Z, W))
        close(k.input_gradient(A, B, W), k.input_gradient(X, Z, W), 1e-9)
    close(k.pullback(S, None, V), k.pullback(X, None, V))
    close(k.input_gradient(S, None, V), k.input_gradient(X, None, V), 1e-9)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("kernel", [RBF(), Linear(), RBF() + 2 * Linear()], ids=str)
def test_every_format(kernel, form):
    X, Z = operands(zoo.LEAVES[0], 10)
    close(kernel(form(X)), kernel(X))
    close(kernel(form(X), Z), kernel(X, Z))
    close(kernel(X, form(Z)), kernel(X, Z))
    close(kernel.diag(form(X)), kernel.diag(X))


@pytest.mark.parametrize("kernel", [RBF(), Matern(), Linear()], ids=str)
def test_float32(kernel):
    X, Z = (A.astype(np.float32) for A in operands(zoo.LEAVES[0], 10))
    want = kernel(X.astype(np.float64), Z.astype(np.float64))
    for A, B in mixtures(X, Z).values():
        np.testing.assert_allclose(kernel(A, B), want, atol=1e-5)


def test_tiles_of_a_mixture():
    X, Z = operands(zoo.LEAVES[0], 10)
    k = RBF() * Linear() + 1
    P = k.prepare(sp.csr_array(X))
    Q = k.prepare(Z, like=P)
    rows, columns = np.array([3, 0, 5]), slice(1, 4)
    close(k.tile(P[rows], Q[columns], np.empty((3, 3))), k(X, Z)[rows, columns])


def test_a_sparse_operand_must_set_the_frame():
    X, Z = operands(zoo.LEAVES[0], 10)
    with pytest.raises(ValueError, match="prepare the sparse points first"):
        RBF().prepare(sp.csr_array(X), like=RBF().prepare(Z))


def test_no_rows_and_no_entries():
    X = sp.csr_array((4, 10))
    np.testing.assert_array_equal(RBF()(X), np.ones((4, 4)))
    np.testing.assert_array_equal(Linear()(X), np.zeros((4, 4)))
    assert RBF()(X[:0], X).shape == (0, 4)
    assert Linear()(X, X[:0]).shape == (4, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad):
    X = sp.csr_array(np.array([[1.0, bad], [0.0, 2.0]]))
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        RBF()(X)


def test_wrong_width():
    with pytest.raises(
        ValueError, match=r"RBF cannot compare points with 3 columns to .* 4 columns;"
    ):
        RBF()(sp.csr_array((2, 3)), sp.csr_array((2, 4)))


def test_median_rule_on_sparse_points():
    X, _ = operands(zoo.LEAVES[0], 10)
    for rule in ("median", "scale", "auto"):
        dense, sparse = RBF(rule).resolve(X), RBF(rule).resolve(sp.csr_array(X))
        assert sparse.length_scale == pytest.approx(dense.length_scale, rel=1e-12)
