"""Expansions: evaluation, geometry, algebra, and errors."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Expansion, KernelMismatchError, mmd
from mercer.kernels import (
    RBF,
    Callable,
    Distance,
    Linear,
    Polynomial,
    Precomputed,
    Select,
    Sigmoid,
    White,
)

rng = np.random.default_rng(2)
X, Z = rng.normal(size=(15, 3)), rng.normal(size=(9, 3))
a, b = rng.normal(size=(15, 2)), rng.normal(size=(9, 2))
kernel = RBF(1.5)
f, g = Expansion(kernel, X, a), Expansion(kernel, Z, b)


def test_values_are_the_sum():
    np.testing.assert_allclose(f(Z), kernel(Z, X) @ a, rtol=1e-12)
    assert f([[0.0, 0.0, 0.0]]).shape == (1, 2)
    assert len(f) == 2 and [len(h) for h in f] == [1, 1]
    np.testing.assert_allclose(f[1](Z), f(Z)[:, 1:], rtol=1e-13)


def test_geometry():
    np.testing.assert_allclose(f.inner(g), a.T @ kernel(X, Z) @ b, rtol=1e-12)
    np.testing.assert_allclose(f.norm() ** 2, np.diag(a.T @ kernel(X) @ a), rtol=1e-12)
    np.testing.assert_allclose(
        f.distance(g) ** 2,
        np.diag(f.inner(f)) - 2 * np.diag(f.inner(g)) + np.diag(g.inner(g)),
        rtol=1e-10,
    )
    assert np.all(np.abs(f.inner(g)) <= np.outer(f.norm(), g.norm()) * (1 + 1e-12))


def test_the_reproducing_property():
    np.testing.assert_allclose(Expansion.sections(kernel, Z).inner(f), f(Z), rtol=1e-12)


def test_the_mean_embedding():
    mu = Expansion.mean(kernel, X)
    np.testing.assert_allclose(mu(Z)[:, 0], kernel(Z, X).mean(axis=1), rtol=1e-12)
    w = rng.uniform(size=15)
    np.testing.assert_allclose(Expansion.mean(kernel, X, w)(Z)[:, 0], kernel(Z, X) @ w, rtol=1e-12)
    with pytest.raises(ValueError, match="mean of 0 points"):
        Expansion.mean(kernel, X[:0])
    with pytest.raises(ValueError, match=r"weights have shape \(3,\), but there are 15 points"):
        Expansion.mean(kernel, X, np.ones(3))


def test_the_distance_of_weighted_means():
    w, v = rng.uniform(size=15), rng.uniform(size=9)
    difference = np.concatenate([w / w.sum(), -v / v.sum()])
    both = np.concatenate([X, Z])
    # for weights with sum 0, CPD of order 1 is enough
    for k in (kernel, Distance(), Polynomial(2)):
        squared = difference @ k(both) @ difference
        mean, other = (
            Expansion.mean(k, X, w / w.sum()),
            Expansion.mean(k, Z, v / v.sum()),
        )
        assert mean.distance(other)[0] ** 2 == pytest.approx(squared, rel=1e-8)
        assert mean.distance(other)[0] ** 2 == pytest.approx(
            mmd(X, Z, k, "biased", x_weights=w, y_weights=v), rel=1e-8
        )
        assert other.distance(mean) == pytest.approx(mean.distance(other), rel=1e-10)
    counts = np.arange(1.0, 16.0)  # a weight of 2 equals a point that occurs twice
    repeated = Expansion.mean(kernel, np.repeat(X, counts.astype(int), axis=0))
    assert Expansion.mean(kernel, X, counts / 120).distance(repeated) == pytest.approx(0, abs=1e-7)
    assert len((mean - Expansion.mean(Polynomial(2), X)).points) == 15  # equal points are merged


def test_algebra():
    np.testing.assert_allclose((f + g)(Z), f(Z) + g(Z), rtol=1e-12)
    np.testing.assert_allclose((f - g)(Z), f(Z) - g(Z), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((2.0 * f / 4)(Z), f(Z) / 2, rtol=1e-12)
    np.testing.assert_allclose((np.float64(2) * f)(Z), 2 * f(Z), rtol=1e-12)
    np.testing.assert_allclose((f * [1.0, -1.0])(Z), f(Z) * [1.0, -1.0], rtol=1e-12)
    assert len((f + f).points) == 15  # equal points are merged
    assert (f - f).norm() == pytest.approx([0.0, 0.0])
    with pytest.raises(TypeError):
        f + 1


def test_gradient_by_differences():
    h, at = 1e-6, Z[:4]
    for kernel in (RBF(1.5), Polynomial(3) + Linear()):
        f = Expansion(kernel, X, a)
        gradient = f.gradient(at)
        assert gradient.shape == (4, 2, 3)
        for c in range(3):
            step = h * np.eye(3)[c]
            numeric = (f(at + step) - f(at - step)) / (2 * h)
            np.testing.assert_allclose(gradient[:, :, c], numeric, rtol=1e-5, atol=1e-6)
    assert f.gradient(X[:0]).shape == (0, 2, 3)


def test_noise_belongs_to_observations_not_to_places():
    noisy = Expansion(kernel + White(0.5), X, a)
    np.testing.assert_allclose(noisy(X), kernel(X) @ a, rtol=1e-12)
    expected = np.diag(a.T @ (kernel(X) + 0.5 * np.eye(15)) @ a)
    np.testing.assert_allclose(noisy.norm() ** 2, expected, rtol=1e-12)


def test_points_of_any_kind():
    words = ["kernel", "mercer", "hilbert"]
    shared = Callable(lambda s, t: float(len(set(s) & set(t))), contract="pair")
    h = Expansion(shared, words, np.ones(3))
    assert h(["ker"]).item() == 3 + 2 + 2
    assert h.norm()[0] ** 2 == pytest.approx(sum(shared(words).ravel()))
    sparse = Expansion(Linear(), sp.csr_array(X), a)
    np.testing.assert_allclose(sparse(sp.csr_array(Z)), Z @ X.T @ a, rtol=1e-12)


def test_precomputed_values():
    K, test = kernel(X), kernel(Z, X)
    h = Expansion(Precomputed(), np.arange(15), a)
    np.testing.assert_allclose(h(test), f(Z), rtol=1e-12)
    with pytest.raises(ValueError, match="contains the matrix"):
        h.norm()
    known = Expansion(Precomputed(K), np.arange(15), a)
    np.testing.assert_allclose(known.norm(), f.norm(), rtol=1e-12)


def test_what_is_refused():
    other = Expansion(RBF(2.0), X, a)
    with pytest.raises(
        KernelMismatchError, match=r"RBF\(length_scale=1.5\).*RBF\(length_scale=2.0"
    ):
        f + other
    with pytest.raises(KernelMismatchError):
        f.inner(other)
    with pytest.raises(ValueError, match=r"coefficients have shape \(3,\), but there are 15"):
        Expansion(kernel, X, np.ones(3))
    with pytest.raises(ValueError, match="cannot add expansions of 2 and 1 functions"):
        f + f[0]
    with pytest.raises(TypeError, match="needs a Kernel"):
        Expansion("rbf", X, a)
    with pytest.raises(ValueError, match="is not positive semidefinite on these points"):
        indefinite = Sigmoid(coef0=0.0)
        K = indefinite([[1.0], [2.0]])
        worst = np.linalg.eigh(K)[1][:, 0]
        Expansion(indefinite, np.array([[1.0], [2.0]]), worst).norm()


def test_repr():
    assert repr(f) == "<Expansion: 2 functions on 15 points, RBF(length_scale=1.5)>"


def test_rounding_is_not_indefiniteness():
    for seed in range(20):
        A = np.random.default_rng(seed).normal(size=(40, 3))
        shuffled = A[np.random.default_rng(seed).permutation(40)]
        mean = Expansion.mean(Distance(), A)
        assert mean.distance(Expansion.mean(Distance(), shuffled)) == pytest.approx([0.0], abs=1e-6)


def test_tables_and_lists_of_arrays_as_points():
    pd = pytest.importorskip("pandas")
    kernel = Select(RBF(), ["a"])
    A, B = (pd.DataFrame({"a": X[:5, i], "b": X[:5, 2]}) for i in (0, 1))
    f, g = Expansion(kernel, A, np.ones(5)), Expansion(kernel, B, np.ones(5))
    assert (f - g).norm()[0] ** 2 == pytest.approx(
        f.norm()[0] ** 2 + g.norm()[0] ** 2 - 2 * f.inner(g)[0, 0]
    )
    assert len((f + Expansion(kernel, A.copy(), np.ones(5))).points) == 5
    pair = Callable(lambda s, t: float(s @ t), contract="pair")
    h = Expansion(pair, [np.ones(2), np.zeros(2)], np.ones(2))
    assert len((h + Expansion(pair, [np.ones(2), np.zeros(2)], np.ones(2))).points) == 2


def test_more_that_is_refused():
    with pytest.raises(TypeError):
        f * f
    with pytest.raises(TypeError):
        f / f
    with pytest.raises(TypeError, match="coefficients must be real"):
        Expansion(kernel, X, 1j * a)
    mine = a.copy()
    h = Expansion(kernel, X, mine)
    mine[:] = 0.0
    assert np.array_equal(h.coefficients, a)


def test_points_that_are_written_to_are_seen_by_few_and_many_queries():
    X = np.zeros((60, 4))
    f = Expansion(RBF(), X, np.ones(60))
    few, many = np.zeros((3, 4)), np.zeros((2000, 4))
    np.testing.assert_array_equal(f(few), 60.0)
    X += 1.0
    np.testing.assert_allclose(f(few), 60.0 * np.exp(-2.0), rtol=1e-12)
    np.testing.assert_allclose(f(many)[:3], f(few), rtol=1e-12)


@pytest.mark.parametrize("operate", [lambda f: f - 1, lambda f: f * "a", lambda f: f * None])
def test_operations_with_other_objects_are_not_defined(operate):
    f = Expansion(RBF(), np.zeros((2, 1)), [1.0, 2.0])
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        operate(f)
