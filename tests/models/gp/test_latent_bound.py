"""The psi statistics against quadrature, and the bound of the Bayesian GPLVM."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import norm

import mercer.models.gp._latent_objectives as _latent_bound
from mercer.kernels import RBF, Linear, Matern, Stretch, White
from mercer.models.gp import (
    InducingBound,
    LatentBound,
    LatentState,
    RowBound,
    expectations,
    length_scales,
    with_relevance,
)

rng = np.random.default_rng(0)
N, Q, M, D = 9, 2, 4, 3
MU, Z = rng.normal(size=(N, Q)), rng.normal(size=(M, Q))
S = rng.uniform(0.1, 1.5, size=(N, Q))
Y = rng.normal(size=(N, D))
KERNELS = [1.7 * RBF([0.8, 1.4]), Stretch(Linear(), [0.7, 1.9])]
NODES, WEIGHTS = hermegauss(100)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def by_quadrature(kernel, mu, S):
    """Return psi0, psi1 and psi2 of one row."""
    x = np.stack(np.meshgrid(NODES, NODES, indexing="ij"), -1).reshape(-1, 2) * np.sqrt(S) + mu
    w, K = np.outer(WEIGHTS, WEIGHTS).ravel(), kernel(x, Z)
    return w @ kernel.diag(x), w @ K, K.T @ (w[:, None] * K)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_statistics_are_those_of_quadrature(kernel):
    psi = expectations(kernel, Z)
    rows = [by_quadrature(kernel, MU[i], S[i]) for i in range(N)]
    zeroth, first, second = (np.array(part) for part in zip(*rows, strict=True))
    np.testing.assert_allclose(psi.psi0(MU, S), zeroth, rtol=1e-9)
    np.testing.assert_allclose(psi.psi1(MU, S), first, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(psi.psi2(MU, S), second.sum(axis=0), rtol=1e-9, atol=1e-9)
    G1, G2 = rng.normal(size=(N, M)), rng.normal(size=(M, M))
    G2 += G2.T
    expected = 0.3 * zeroth + np.sum(G1 * first, axis=1) + np.sum(G2 * second, axis=(1, 2))
    np.testing.assert_allclose(psi.pullback(MU, S, 0.3, G1, G2).rows, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_statistics_of_known_points_are_those_of_the_kernel(kernel):
    psi, K = expectations(kernel, Z + 1e3), kernel(MU + 1e3, Z + 1e3)  # far from the origin
    known = (MU + 1e3, np.full_like(MU, 1e-14))
    np.testing.assert_allclose(psi.psi1(*known), K, rtol=1e-8)
    np.testing.assert_allclose(psi.psi2(*known), K.T @ K, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_those_of_differences(kernel):
    bound = LatentBound(kernel, Y, Q, M)
    u = bound.joined(LatentState(MU, S, Z, kernel, 0.3))
    _, gradient = bound.value_and_gradient(u)
    found = np.empty_like(u)
    for i, step in enumerate(1e-4 * np.eye(len(u))):
        far = [bound.value_and_gradient(u + t * step)[0] for t in (2, 1, -1, -2)]
        found[i] = (-far[0] + 8 * far[1] - 8 * far[2] + far[3]) / 12e-4
    np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-8 * np.abs(found).max())


def divergence(mu, S):
    return 0.5 * np.sum(S + mu**2 - np.log(S) - 1.0)


def test_of_points_that_are_known_it_is_that_of_inducing_points():
    kernel, known = KERNELS[0], np.full_like(MU, 1e-12)
    bound = LatentBound(kernel, Y, Q, M)
    state = LatentState(MU, known, Z, kernel, 0.3)
    value, _ = bound.value_and_gradient(bound.joined(state))
    other = InducingBound(kernel + White(0.3), MU, Y, landmarks=Z)
    assert value + divergence(MU, known) == pytest.approx(other.value(), rel=1e-5)
    f, covariance = bound.posterior(state)
    posterior = other.posterior()
    np.testing.assert_allclose(f(MU), posterior.expansion(MU), rtol=1e-4)
    np.testing.assert_allclose(covariance.diag(MU) + 0.3, posterior.covariance.diag(MU), rtol=1e-4)


@pytest.mark.parametrize("kernel", [1.7 * RBF([0.8]), Stretch(Linear(), [0.7])], ids=str)
def test_it_is_a_bound(kernel):
    x, y = NODES[:, None], np.array([[0.3, -1.2]])
    given = norm(0.0, np.sqrt(kernel.diag(x) + 0.3)[:, None]).pdf(y).prod(axis=1)
    exact = float(np.log(WEIGHTS @ given))
    bound = LatentBound(kernel, y, 1, 2)
    values = [
        bound.value_and_gradient(
            bound.joined(LatentState(m * np.ones((1, 1)), s * np.ones((1, 1)), z, kernel, 0.3))
        )[0]
        for m in (0.0, 0.7, 1.4)
        for s in (0.1, 0.5, 1.0)
        for z in (np.array([[0.5], [2.0]]), np.array([[0.0], [1.0]]))
    ]
    assert max(values) < exact < max(values) + 1.5


def test_rows_add_up_to_the_bound():
    kernel = KERNELS[0]
    bound = LatentBound(kernel, Y, Q, M)
    state = LatentState(MU, S, Z, kernel, 0.3)
    u = bound.joined(state)
    value, gradient = bound.value_and_gradient(u)
    f, covariance = bound.posterior(state)
    L, B = covariance.factor, covariance.inner
    row = RowBound(expectations(kernel, Z), f.coefficients, L, B, 0.3)
    rows, on_mu, on_log_S = row.value_and_gradients(Y, MU, S)
    # Subtract the KL divergence of the inducing values, N(K alpha, L C^-1 L^T), from N(0, L L^T).
    C = np.linalg.inv(B @ B.T)
    inner = np.trace(C) - M - np.linalg.slogdet(C)[1]
    apart = 0.5 * (D * inner + np.sum((L.T @ f.coefficients) ** 2))
    assert value == pytest.approx(rows.sum() - apart, rel=1e-9)
    np.testing.assert_allclose(np.r_[on_mu.ravel(), on_log_S.ravel()], gradient[: 2 * N * Q])


def test_neither_blocks_nor_threads_matter(monkeypatch):
    kernel = KERNELS[0]
    u = LatentBound(kernel, Y, Q, M).joined(LatentState(MU, S, Z, kernel, 0.3))
    before = LatentBound(kernel, Y, Q, M).value_and_gradient(u)
    monkeypatch.setattr(_latent_bound, "_TUNING", replace(_latent_bound._TUNING, block_entries=20))
    one, two = (LatentBound(kernel, Y, Q, M, n).value_and_gradient(u) for n in (1, 2))
    assert one[0] == two[0] == pytest.approx(before[0], rel=1e-12)
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_allclose(one[1], before[1], rtol=1e-9, atol=1e-9)


def test_memory_grows_with_the_data_alone():
    def peak(n):
        kernel, mu = 1.0 * RBF([1.0, 1.0]), rng.normal(size=(n, 2))
        bound = LatentBound(kernel, mu, 2, 40, n_threads=1)
        u = bound.joined(LatentState(mu, np.full_like(mu, 0.5), mu[:40], kernel, 0.1))
        bound.value_and_gradient(u)
        tracemalloc.start()
        bound.value_and_gradient(u)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # 12 arrays of the size of mu; psi1 alone would have 20
    assert peak(8000) - peak(2000) < 12 * 8 * 6000 * 2


def test_no_value_where_the_matrix_is_singular(monkeypatch):
    monkeypatch.setattr(_latent_bound, "_TUNING", replace(_latent_bound._TUNING, jitter=0.0))
    bound = LatentBound(KERNELS[0], Y, Q, M)
    u = bound.joined(LatentState(MU, S, np.ones_like(Z), KERNELS[0], 0.3))
    value, gradient = bound.value_and_gradient(u)
    assert value == -np.inf and not gradient.any()


def test_kernels_that_have_no_expectations_are_refused():
    assert repr(with_relevance(2.0 * RBF(3.0), 2)) == "2.0*RBF(length_scale=(3.0, 3.0))"
    np.testing.assert_array_equal(length_scales(with_relevance(Linear(), 3)), np.ones(3))
    with pytest.raises(
        ValueError, match=r"v\*RBF\(l\) and Stretch.*not for Matern.*GPLVM, which supports"
    ):
        with_relevance(Matern(), 2)
    with pytest.raises(ValueError, match="3 length scales, but latent points have 2 dimensions"):
        with_relevance(RBF([1.0, 2.0, 3.0]), 2)
