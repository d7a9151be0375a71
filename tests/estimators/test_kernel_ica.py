"""Kernel ICA: the measures of dependence, laws of the estimator, FastICA, and errors."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelICA, MemoryBudgetError, hsic
from mercer.kernels import RBF
from mercer.models.embedding import CONTRASTS, PairDependence, find_independent_rotation
from mercer.solvers import Status

EXAMPLE = Path(__file__).parents[2] / "examples" / "kernel_ica.py"


def sources(n=400, seed=0):
    """Return a uniform, an exponential and a bimodal source."""
    rng = np.random.default_rng(seed)
    bimodal = rng.choice([-1, 1], n) + 0.3 * rng.standard_normal(n)
    return np.column_stack([rng.uniform(-1, 1, n), rng.exponential(size=n), bimodal])


A = np.array([[1.0, 0.5, 0.2], [0.3, -2.0, 0.4], [0.6, 0.1, 1.5]])
S = sources()
X = S @ A.T + [1.0, 2.0, -50.0]


def amari_error(W, A):
    P = np.abs(W @ A)
    m = len(P)
    rows, columns = P.sum(axis=1) / P.max(axis=1) - 1, P.sum(axis=0) / P.max(axis=0) - 1
    return 100 * (rows.sum() + columns.sum()) / (2 * m * (m - 1))


# ---------------------------------------------------------------------- measures of dependence


def kernel_matrices(Z, bandwidth):
    H = np.eye(len(Z)) - 1 / len(Z)
    return [H @ RBF(bandwidth)(z[:, None]) @ H for z in Z.T]


@pytest.mark.parametrize("bandwidth", [0.3, 0.5, 1.0])
def test_hsic_is_that_of_the_gaussian_kernel(bandwidth):
    Z = S[:, :2] @ [[1.0, 0.3], [0.5, 1.0]]
    ours = PairDependence("hsic", bandwidth, 1.0, 8.0)(Z)
    exact = hsic(Z[:, :1], Z[:, 1:], kernel=RBF(bandwidth), estimator="biased")
    K, L = kernel_matrices(Z, bandwidth)
    assert float(exact) == pytest.approx(np.sum(K * L) / len(Z) ** 2, rel=1e-9)
    assert ours == pytest.approx(float(exact), rel=2e-3)


@pytest.mark.parametrize("contrast", ["normalized", "variance"])
def test_normalised_measures_are_those_of_kernel_matrices(contrast):
    """M^T M has the eigenvalues of R_x R_y with R = K (K + n kappa I)^-1."""
    kappa, Z = 0.01, S[:200, :2] @ [[1.0, 0.3], [0.5, 1.0]]
    n = len(Z)
    R = [K @ np.linalg.inv(K + n * kappa * np.eye(n)) for K in kernel_matrices(Z, 0.5)]
    value = np.trace(R[0] @ R[1])
    if contrast == "variance":
        value = -0.5 * np.linalg.slogdet(np.eye(n) - R[0] @ R[1])[1]
    assert PairDependence(contrast, 0.5, kappa, 8.0)(Z) == pytest.approx(value, rel=5e-3)


def test_independent_variables_have_the_smallest_dependence():
    for contrast in CONTRASTS:
        measure = PairDependence(contrast, 0.5, 5e-3, 10.0)
        Z = (S[:, :2] - S[:, :2].mean(axis=0)) / S[:, :2].std(axis=0)
        values = []
        for angle in np.linspace(0, np.pi / 2, 9):
            c, s = np.cos(angle), np.sin(angle)
            values.append(measure(Z @ [[c, s], [-s, c]]))
        assert np.argmin(values) in (0, 8)
        assert values[0] == pytest.approx(values[8])  # a quarter turn exchanges the columns


# ---------------------------------------------------------------------- the estimator


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_sources_are_found(contrast):
    model = KernelICA(contrast=contrast).fit(X)
    assert amari_error(model.components_, A) < 5
    assert model.report_.status is Status.CONVERGED
    found = np.abs(np.corrcoef(model.transform(X).T, S.T)[:3, 3:])
    assert np.all(found.max(axis=0) > 0.98)


def test_definitions():
    model = KernelICA().fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(Z.T @ Z / len(Z), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(Z), X, atol=1e-8)
    np.testing.assert_allclose(model.components_ @ model.mixing_, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(model.mixing_, np.linalg.pinv(model.components_), atol=1e-8)
    R = model.components_ @ np.linalg.pinv(model.whitening_)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-8)
    norms = np.linalg.norm(model.mixing_, axis=0)
    assert np.all(np.diff(norms) <= 0)
    assert np.all(model.mixing_[np.abs(model.mixing_).argmax(axis=0), range(3)] > 0)


def test_the_rotation_is_at_a_minimum():
    model = KernelICA(tol=1e-6).fit(X)
    Z = model.transform(X)
    extent = 2 * np.sqrt(np.square(Z).sum(axis=1).max())
    measure = PairDependence("normalized", model.bandwidth, model.regularization, extent)
    pairs = [(0, 1), (0, 2), (1, 2)]
    total = sum(measure(Z[:, pair]) for pair in pairs)
    assert model.report_.certificate["dependence"] == pytest.approx(total, rel=1e-6)
    for i, j in pairs:
        for angle in (-1e-3, 1e-3):
            turned = Z[:, [i, j]] @ [
                [np.cos(angle), np.sin(angle)],
                [-np.sin(angle), np.cos(angle)],
            ]
            assert measure(turned) > measure(Z[:, [i, j]])


def test_a_linear_map_of_the_points_does_not_change_the_components():
    B = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 1.0]])
    one, other = KernelICA().fit(X), KernelICA().fit(X @ B.T)
    match = np.abs(np.corrcoef(one.transform(X).T, other.transform(X @ B.T).T)[:3, 3:])
    np.testing.assert_allclose(match.max(axis=0), 1.0, atol=1e-4)


def test_fewer_components_span_the_principal_subspace():
    model = KernelICA(2).fit(X)
    pca = PCA(2).fit(X)
    projector = model.mixing_ @ np.linalg.pinv(model.mixing_)
    np.testing.assert_allclose(projector, pca.components_.T @ pca.components_, atol=1e-8)
    reconstructed = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(reconstructed, pca.inverse_transform(pca.transform(X)), atol=1e-7)


def test_more_starts_are_not_worse_and_reproducible():
    one = KernelICA(n_init=1).fit(X).report_.certificate
    many = KernelICA(n_init=3, random_state=1)
    certificate = many.fit(X).report_.certificate
    assert len(certificate["of each start"]) == 3
    assert certificate["dependence"] == min(certificate["of each start"])
    assert certificate["dependence"] <= one["dependence"]
    components = many.components_
    np.testing.assert_array_equal(many.fit(X).components_, components)
    np.testing.assert_array_equal(
        KernelICA(n_init=3, random_state=1, n_jobs=1).fit(X).components_, components
    )


def test_one_component_and_dependent_columns():
    single = KernelICA().fit(X[:, :1])
    np.testing.assert_allclose(single.transform(X[:, :1]).std(), 1.0)
    extended = np.column_stack([X, X[:, 0] + X[:, 1]])
    assert KernelICA().fit(extended).components_.shape == (3, 4)


def test_outliers_far_beyond_the_period_of_the_kernel():
    spoilt = X.copy()
    spoilt[0] += 1e3
    assert np.isfinite(KernelICA().fit(spoilt).components_).all()


# ---------------------------------------------------------------------- comparison with FastICA


@pytest.mark.long
def test_errors_on_the_densities_of_bach_and_jordan(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kernel_ica.py", "15"])
    example = runpy.run_path(str(EXAMPLE))
    errors = {name: np.array(values) for name, values in example["errors"].items()}
    ours, default = errors.pop("KernelICA"), errors["FastICA, logcosh"]
    assert np.sum(ours <= default) >= 12
    assert ours.mean() < np.min([*errors.values()], axis=0).mean() + 0.5
    assert ours.max() < 20 < default.max()


def test_sources_for_which_fastica_fails():
    rng = np.random.default_rng(0)
    skewed = np.where(rng.random((1000, 2)) < 0.25, -0.5, 0.5) + 0.15 * rng.standard_normal(
        (1000, 2)
    )
    B = np.array([[1.0, 0.6], [-0.2, 1.0]])
    mixed = skewed @ B.T
    fast = FastICA(2, whiten="unit-variance", random_state=0, max_iter=2000, tol=1e-3).fit(mixed)
    ours = amari_error(KernelICA().fit(mixed).components_, B)
    assert ours < 3 < amari_error(fast.components_, B)


# ---------------------------------------------------------------------- errors


def test_too_few_sweeps():
    with pytest.warns(ConvergenceWarning, match=r"after 1 sweeps the largest angle .* tol=0\.0001"):
        model = KernelICA(max_iter=1).fit(X)
    assert model.report_.status is Status.NOT_CONVERGED and model.n_iter_ == 1


def test_directions_that_do_not_exist():
    with pytest.raises(ValueError, match="span only 1 directions of 2, but n_components=2"):
        KernelICA(2).fit(np.repeat(X[:, :1], 2, axis=1))
    with pytest.raises(ValueError, match="span only 0 directions of 3"):
        KernelICA().fit(np.ones((5, 3)))
    with pytest.raises(MemoryBudgetError, match="KernelICA of 400 points needs"):
        KernelICA(max_memory=1000).fit(X)
    with pytest.raises(ValueError, match="has 3 dimensions, but X has 2 columns"):
        KernelICA().fit(X).inverse_transform(X[:, :2])


def test_progress_is_printed(capsys):
    KernelICA(2, verbose=1).fit(X)
    assert "[KernelICA] start 1: dependence" in capsys.readouterr().out


def test_the_search_alone():
    Z = (S - S.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(S.T, bias=True))).T
    measure = PairDependence("hsic", 0.5, 1.0, 12.0)
    rng = np.random.default_rng(0)
    found = find_independent_rotation(Z, measure, 1, 1e-4, 20, rng)
    np.testing.assert_allclose(found.rotation @ found.rotation.T, np.eye(3), atol=1e-12)
    assert found.largest_angle <= 1e-4


def test_columns_of_very_different_scales_all_count() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2)) @ np.array([[1.0, 0.5], [0.3, 1.0]])
    scales = np.array([1e8, 1e-3])
    plain, scaled = KernelICA(contrast="hsic").fit(X), KernelICA(contrast="hsic").fit(X * scales)
    assert scaled.components_.shape == (2, 2)
    S = scaled.transform(X * scales)
    np.testing.assert_allclose(np.cov(S.T, bias=True), np.eye(2), atol=1e-10)
    correlations = np.abs(np.corrcoef(S.T, plain.transform(X).T)[:2, 2:])
    np.testing.assert_allclose(correlations.max(axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(scaled.inverse_transform(S) / scales, X, atol=1e-9)


def test_variance_that_overflows() -> None:
    with pytest.raises(ValueError, match="variance of X overflows"):
        KernelICA().fit(np.random.default_rng(0).standard_normal((20, 2)) * 1e300)
