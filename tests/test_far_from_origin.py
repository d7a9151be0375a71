"""Points far from the origin: results keep their digits, or a warning reports the loss."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import (
    Expansion,
    KernelFisherDiscriminant,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    MetricMDS,
    NeuroScale,
    OneClassSVM,
    check_gram,
    hsic,
    mmd,
)
from mercer.gram import gram
from mercer.kernels import RBF, Linear, Matern, Polynomial
from mercer.solvers import silhouette

rng = np.random.default_rng(0)
A = np.round(rng.normal(size=(40, 3)) * 64) / 64  # the shift is exact in floating point
CLASSES = A[:, 0] > 0
LOSS = "rounding error is up to"


@pytest.mark.parametrize("offset", [1e7, 1e8, 1e9])
@pytest.mark.parametrize(
    "fit",
    [
        lambda X: KernelPCA(2, kernel="linear").fit(X),
        lambda X: KernelFisherDiscriminant(kernel="linear").fit(X, CLASSES),
        lambda X: MetricMDS(2).fit(X),
        lambda X: NeuroScale(2).fit(X),
        lambda X: mmd(X[:20], X[20:], Linear()),
        lambda X: hsic(X, A[:, :1], Linear()),
    ],
    ids=["pca", "fisher", "mds", "neuroscale", "mmd", "hsic"],
)
def test_sparse_points_that_cancel_are_reported(fit, offset):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with contextlib.suppress(ValueError):
            fit(sp.csr_array(A + offset))
    assert any(LOSS in str(warning.message) for warning in caught)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_sparse_points_that_keep_their_digits_are_not_reported(offset):
    KernelPCA(2, kernel="linear").fit(sp.csr_array(A + offset))
    mmd(sp.csr_array(A[:20] + offset), sp.csr_array(A[20:] + offset), Linear())


def test_polynomials_that_cancel_are_reported():
    X, kernel = A + 1e8, Polynomial(2, gamma=1.0)
    with pytest.warns(UserWarning, match=LOSS):
        KernelPCA(2, kernel=kernel).fit(X)
    with pytest.warns(UserWarning, match=LOSS):
        mmd(X[:20], X[20:], kernel, estimator="biased")
    with pytest.warns(UserWarning, match=LOSS):
        hsic(X, A[:, :1], kernel, Linear())


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e6, 1e8])
@pytest.mark.parametrize("model", [KernelRidgeCV, KernelRidge], ids=["cv", "ridge"])
def test_an_intercept_removes_an_offset_of_the_points(model, offset):
    X, y = A[:, :2] + offset, A[:, :2] @ [1.0, 2.0]
    fitted = model(kernel="linear", fit_intercept=True).fit(X, y)
    near = model(kernel="linear", fit_intercept=True).fit(A[:, :2], y)
    assert fitted.score(X, y) == pytest.approx(near.score(A[:, :2], y), abs=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e7, 1e8])
def test_the_distance_of_two_means_does_not_cancel(offset):
    means = [Expansion.mean(Linear(), part) for part in (A[:15] + offset, A[15:] + offset)]
    expected = np.linalg.norm(A[:15].mean(axis=0) - A[15:].mean(axis=0))
    assert means[0].distance(means[1])[0] == pytest.approx(expected, rel=1e-9)


def test_silhouettes_of_points_with_equal_norms_are_reported_as_lost():
    labels = np.arange(12) % 2
    a = np.where(labels, 4.0, -4.0) + np.arange(12) / 8
    X = np.column_stack([1e9 + a, 1e9 - a])
    with pytest.warns(UserWarning, match=LOSS):
        silhouette(gram(Linear(), X), labels)


@pytest.mark.parametrize("rule", ["scale", "scott", "silverman", "median"])
@pytest.mark.parametrize("weights", [None, np.arange(40) % 3 + 1.0], ids=["plain", "weighted"])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8, 1e9])
def test_rules_of_sparse_points_are_those_of_dense_points(rule, weights, offset):
    X = A + offset
    dense = RBF(rule).resolve(X, weights).length_scale
    assert RBF(rule).resolve(sp.csr_array(X), weights).length_scale == pytest.approx(
        dense, rel=1e-6
    )


def test_rules_of_sparse_points_with_zeros_are_those_of_dense_points():
    X = np.where(rng.random((60, 5)) < 0.7, 0.0, rng.normal(size=(60, 5)) + 3.0)
    weights = rng.integers(1, 4, 60).astype(float)
    for rule in ("scale", "scott"):
        for w in (None, weights):
            dense = RBF(rule).resolve(X, w).length_scale
            assert RBF(rule).resolve(sp.csr_array(X), w).length_scale == pytest.approx(dense)


@pytest.mark.parametrize("value", [0.1, 3.0, 1e9])
def test_rules_of_constant_points_ignore_rounding(value):
    X, weights = np.full((25, 2), value), rng.integers(1, 4, 25).astype(float)
    plain = OneClassSVM(nu=0.4).fit(X).kernel_
    assert OneClassSVM(nu=0.4).fit(X, sample_weight=weights).kernel_ == plain
    assert plain.length_scale == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_matrices_of_low_precision_are_not_refuted_by_their_rounding(dtype):
    for seed in range(20):
        B = np.random.default_rng(seed).normal(size=(30, 5))
        K = B @ B.T
        check = check_gram((K / np.abs(K).max()).astype(dtype))
        assert check.semidefinite
        assert "0 of them negative" in str(check)
    indefinite = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]], dtype=dtype)
    assert not check_gram(indefinite).semidefinite


def test_a_product_of_kernels_in_float32_is_not_called_indefinite():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    kernel = 0.7 * RBF(1.0) * Matern(1.0)
    model = KernelRidge(0.1, kernel=kernel, solver="cg").fit(X, X[:, 0])
    exact = KernelRidge(0.1, kernel=kernel).fit(X.astype(float), X[:, 0])
    assert np.allclose(model.predict(X), exact.predict(X.astype(float)), atol=1e-4)
