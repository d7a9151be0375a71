"""CCA and PLS in coordinates: against eigenproblems, singular values and explicit deflation."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.solvers import (
    CanonicalCorrelations,
    PartialLeastSquares,
    Status,
    View,
    columnwise_correlations,
)
from mercer.solvers.two_view import _views


def pair(seed, n=40, m=6, m_y=4):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    F, G = (
        Z @ rng.normal(size=(2, k)) + rng.normal(size=(n, k)) + rng.normal(size=k) for k in (m, m_y)
    )
    return F, G, rng.integers(1, 4, size=n).astype(float)


def centred(A, c):
    return A - c @ A


def same_up_to_sign(A, B, **tolerance):
    np.testing.assert_allclose(A * np.sign(np.sum(A * B, axis=0)), B, **tolerance)


def test_a_view_is_its_coordinates_less_their_mean():
    F, G, w = pair(0)
    c = w / w.sum()
    A, B = centred(F, c), centred(G, c)
    x, y = View.of(F, w), View.of(G, w)
    np.testing.assert_allclose(x.scores(np.eye(6)), A, atol=1e-14)
    np.testing.assert_allclose(x.weighted_adjoint(G), A.T @ (c[:, None] * G), atol=1e-14)
    np.testing.assert_allclose(x.weighted_adjoint(G[:, 0]), A.T @ (c * G[:, 0]), atol=1e-14)
    np.testing.assert_allclose(x.covariance(y), A.T @ (c[:, None] * B), atol=1e-14)
    values, Q = x.spectrum()
    np.testing.assert_allclose((Q * values) @ Q.T, A.T @ (c[:, None] * A), atol=1e-13)
    assert not x.is_constant and View.of(np.ones((5, 2))).is_constant


@pytest.mark.parametrize("alpha", [1e-9, 0.1, 100.0])
def test_correlations_are_those_of_the_eigenproblem(alpha):
    F, G, w = pair(1)
    c = w / w.sum()
    A, B = np.sqrt(c)[:, None] * centred(F, c), np.sqrt(c)[:, None] * centred(G, c)
    zero, beta = np.zeros((6, 4)), 2.0 * alpha
    left = np.block([[np.zeros((6, 6)), A.T @ B], [B.T @ A, np.zeros((4, 4))]])
    right = np.block([[A.T @ A + alpha * np.eye(6), zero], [zero.T, B.T @ B + beta * np.eye(4)]])
    values, W = scipy.linalg.eigh(left, right)
    found = CanonicalCorrelations(3, alpha, beta).relate(View.of(F, w), View.of(G, w))
    np.testing.assert_allclose(found.values, values[::-1][:3], atol=1e-12)
    same_up_to_sign(found.x, np.sqrt(2) * W[:6, ::-1][:, :3], rtol=1e-7, atol=1e-9)
    same_up_to_sign(found.y, np.sqrt(2) * W[6:, ::-1][:, :3], rtol=1e-7, atol=1e-9)
    assert found.report.status is Status.DIRECT and found.report.residual < 1e-12


def test_a_large_alpha_leaves_the_covariance():
    F, G, w = pair(2)
    x, y = View.of(F, w), View.of(G, w)
    U, s, Vt = np.linalg.svd(x.covariance(y))
    found = CanonicalCorrelations(3, 1e10, 1e10).relate(x, y)
    np.testing.assert_allclose(1e10 * found.values, s[:3], rtol=1e-8)
    same_up_to_sign(1e5 * found.x, U[:, :3], atol=1e-8)
    same_up_to_sign(1e5 * found.y, Vt[:3].T, atol=1e-8)
    first = PartialLeastSquares(1).relate(x, y)
    same_up_to_sign(first.x, U[:, :1], atol=1e-13)


@pytest.mark.parametrize("mode", ["regression", "canonical"])
def test_partial_least_squares_by_hand(mode):
    """Deflate F and G explicitly, one score after the other."""
    F, G, w = pair(3)
    c = w / w.sum()
    A, B, k = centred(F, c), centred(G, c), 4
    scores, scores_y, values = [], [], []
    for _ in range(k):
        U, s, Vt = np.linalg.svd(A.T @ (c[:, None] * B))
        t, u = A @ U[:, 0], B @ Vt[0]
        v = u if mode == "canonical" else t
        A = A - np.outer(t, c * t @ A) / (c @ t**2)
        B = B - np.outer(v, c * v @ B) / (c @ v**2)
        scores.append(t), scores_y.append(u), values.append(s[0])
    x, y = View.of(F, w), View.of(G, w)
    found = PartialLeastSquares(k, mode).relate(x, y)
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
    same_up_to_sign(x.scores(found.x), np.column_stack(scores), atol=1e-9)
    if mode == "canonical":
        same_up_to_sign(y.scores(found.y), np.column_stack(scores_y), atol=1e-9)
    else:
        targets = centred(G, c)
        Q, mean = found.regression(G)
        np.testing.assert_allclose(x.scores(found.x) @ Q, targets - B, atol=1e-10)
        np.testing.assert_allclose(mean, c @ G)


def test_all_components_are_least_squares():
    F, G, _ = pair(4)
    found = PartialLeastSquares(6).relate(View.of(F), View.of(G))
    Q, mean = found.regression(G)
    design = np.column_stack([np.ones(40), F])
    best = design @ np.linalg.lstsq(design, G)[0]
    np.testing.assert_allclose(found.view.scores(found.x) @ Q + mean, best, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 4),
    alpha=st.sampled_from([1e-8, 1e-2, 1.0]),
    mode=st.sampled_from(["regression", "canonical"]),
)
def test_laws(seed, k, alpha, mode):
    F, G, w = pair(seed)
    x, y, c = View.of(F, w), View.of(G, w), (w / w.sum())[:, None]
    found = CanonicalCorrelations(k, alpha, alpha).relate(x, y)
    S, T = x.scores(found.x), y.scores(found.y)
    assert np.all((found.values >= 0) & (found.values <= 1))
    assert np.all(np.diff(found.values) <= 1e-12)
    norms = S.T @ (c * S) + alpha * found.x.T @ found.x
    np.testing.assert_allclose(norms, np.eye(k), atol=1e-8)
    # The functions of x and y exchange their roles.
    other = CanonicalCorrelations(k, alpha, alpha).relate(y, x)
    np.testing.assert_allclose(found.values, other.values, atol=1e-10)
    # alpha reduces correlations.
    assert np.all(columnwise_correlations(S, T, w) >= found.values - 1e-9)
    found = PartialLeastSquares(k, mode).relate(x, y)
    S = x.scores(found.x)
    spread = S.T @ (c * S)
    scale = np.sqrt(np.diag(spread))
    np.testing.assert_allclose(spread / np.outer(scale, scale), np.eye(k), atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
def test_a_few_of_many_singular_values(shape, monkeypatch):
    M = np.random.default_rng(0).normal(size=shape)
    U, s, V = _views.leading_singular_vectors(M, 3)
    monkeypatch.setattr(_views, "_MAX_FULL_SVD", 5)
    U2, s2, V2 = _views.leading_singular_vectors(M, 3)
    np.testing.assert_allclose(s2, s, rtol=1e-12)
    same_up_to_sign(U2, U, atol=1e-10)
    same_up_to_sign(V2, V, atol=1e-10)
    np.testing.assert_allclose(M @ V2, U2 * s2, atol=1e-12)


def test_correlations_of_columns():
    S, T, w = pair(5)
    weighted = columnwise_correlations(S[:, :4], T, w)
    rows = np.repeat(np.arange(40), w.astype(int))
    for j in range(4):
        assert weighted[j] == pytest.approx(np.corrcoef(S[rows, j], T[rows, j])[0, 1])
    assert columnwise_correlations(np.ones((3, 1)), np.ones((3, 1))).tolist() == [0.0]


def test_what_is_not_there_is_refused():
    F, G, _ = pair(6)
    x, y = View.of(F), View.of(G)
    for alpha in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=r"alpha and alpha_y must be positive.*perfectly"):
            CanonicalCorrelations(1, 1.0, alpha)
    with pytest.raises(
        ValueError, match="n_components=5, but in feature space X has 6 and y has 4 directions"
    ):
        CanonicalCorrelations(5).relate(x, y)
    with pytest.raises(ValueError, match=r"n_components=5, but 40 points with 6 .* at most 4"):
        PartialLeastSquares(5, "canonical").relate(x, y)
    PartialLeastSquares(5).relate(x, y)
    for how in (CanonicalCorrelations(1), PartialLeastSquares(1)):
        with pytest.raises(ValueError, match="the views have 40 and 39 points"):
            how.relate(x, View.of(G[:-1]))
        with pytest.raises(ValueError, match="views with n_samples = 1 have no covariance"):
            how.relate(View.of(F[:1]), View.of(G[:1]))
        with pytest.raises(
            ValueError, match="y is constant: its 40 points differ in feature space by less"
        ):
            how.relate(x, View.of(np.full((40, 1), 7.0)))


def test_what_rounding_spoils_is_reported(monkeypatch):
    """Directions that violate their constraints are not reported as a solution."""
    F, G, _ = pair(8)
    right = _views.leading_singular_vectors

    def wrong(M, k):
        U, s, V = right(M, k)
        return U, s + 1e-3, V

    monkeypatch.setattr("mercer.solvers.two_view._cca_pls.leading_singular_vectors", wrong)
    with pytest.warns(UserWarning, match=r"residual of 1\.0e-03.* Increase alpha"):
        found = CanonicalCorrelations(2).relate(View.of(F), View.of(G))
    assert found.report.status is Status.INACCURATE


def test_components_that_leave_nothing_are_the_last():
    F, _, _ = pair(7)
    y = F[:, :1] * [[1.0, 2.0]]  # rank one
    with pytest.warns(UserWarning, match="only 1 of n_components=2 components exist"):
        found = PartialLeastSquares(2, "canonical").relate(View.of(F), View.of(y))
    assert found.x.shape == (6, 1) and found.y.shape == (2, 1) and found.values.shape == (1,)
    x = np.linalg.qr(F - F.mean(axis=0))[0]  # uncorrelated columns: one of them explains y
    with pytest.warns(UserWarning, match="only 1 of n_components=3 components exist"):
        found = PartialLeastSquares(3).relate(View.of(x), View.of(x[:, :1]))
    np.testing.assert_allclose(np.abs(found.x), np.eye(6)[:, :1], atol=1e-12)
