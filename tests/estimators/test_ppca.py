"""Probabilistic PCA: against explicit densities, scikit-learn, and complete data."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer import ProbabilisticPCA
from mercer.models.embedding import LinearGaussian, fit_ppca, fit_ppca_missing
from mercer.models.embedding._ppca_training import _bounded_noise

rng = np.random.default_rng(0)
W = rng.normal(size=(6, 2)) * [3.0, 1.5]
X = rng.normal(size=(250, 2)) @ W.T + [1.0, -2.0, 0.0, 5.0, 0.0, 0.5]
X += 0.3 * rng.normal(size=X.shape)
GAPS = np.where(rng.random(X.shape) < 0.15, np.nan, X)
NEW = rng.normal(size=(7, 6))


def covariance(model):
    return model.loadings_ @ model.loadings_.T + model.noise_variance_ * np.eye(6)


def cosines(A, B):
    """Return the cosines of the angles between two subspaces."""
    return np.linalg.svd(np.linalg.qr(A)[0].T @ np.linalg.qr(B)[0])[1]


def test_closed_form_is_that_of_scikit_learn_but_for_the_divisor():
    ours, theirs = ProbabilisticPCA(2).fit(X), PCA(2).fit(X)
    n = len(X)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_ * (n - 1) / n, rel=1e-10)
    np.testing.assert_allclose(covariance(ours), theirs.get_covariance() * (n - 1) / n, rtol=1e-9)
    np.testing.assert_allclose(cosines(ours.loadings_, theirs.components_.T), 1.0, rtol=1e-12)
    assert ours.score(X) > theirs.score(X) > ours.score(X) - 1e-3  # the maximum of the likelihood
    assert ours.n_iter_ == 1 and ours.log_likelihoods_[0] == pytest.approx(ours.score(X))


def test_density_is_that_of_the_covariance():
    model = ProbabilisticPCA(2).fit(X)
    expected = multivariate_normal(model.mean_, covariance(model)).logpdf(NEW)
    np.testing.assert_allclose(model.score_samples(NEW), expected, rtol=1e-10)
    assert model.score(NEW) == pytest.approx(expected.mean())


@pytest.mark.parametrize("gaps", [[1], [0, 3, 5], [0, 1, 2, 3, 4], list(range(6))])
def test_gaps_are_integrated_out(gaps):
    model = ProbabilisticPCA(2).fit(X)
    C, kept = covariance(model), np.setdiff1d(np.arange(6), gaps)
    rows = NEW.copy()
    rows[:, gaps] = np.nan
    mixed = np.r_[rows, NEW]  # together with complete rows
    inner = np.linalg.inv(C[np.ix_(kept, kept)]) @ (rows - model.mean_)[:, kept].T
    np.testing.assert_allclose(model.transform(mixed)[:7], (model.loadings_[kept].T @ inner).T)
    np.testing.assert_allclose(model.transform(mixed)[7:], model.transform(NEW))
    if len(kept):
        marginal = multivariate_normal(model.mean_[kept], C[np.ix_(kept, kept)])
        np.testing.assert_allclose(model.score_samples(rows), marginal.logpdf(rows[:, kept]))
    else:
        np.testing.assert_array_equal(model.score_samples(rows), 0.0)
    expected = model.mean_[gaps] + (C[np.ix_(gaps, kept)] @ inner).T
    np.testing.assert_allclose(model.inverse_transform(model.transform(rows))[:, gaps], expected)


def test_em_finds_the_closed_form_where_there_are_no_gaps():
    model, likelihoods = fit_ppca_missing(X, 2, tol=1e-13)
    exact = fit_ppca(X, 2)
    assert likelihoods[-1] == pytest.approx(exact.log_likelihoods[0], abs=1e-10)
    assert model.noise == pytest.approx(exact.model.noise, rel=1e-6)
    np.testing.assert_allclose(model.loadings, exact.model.loadings, rtol=1e-4, atol=1e-4)


def test_em_climbs_to_a_maximum():
    model = ProbabilisticPCA(2, tol=1e-12, max_iter=5000).fit(GAPS)
    assert np.all(np.diff(model.log_likelihoods_) > -1e-12)
    assert model.n_iter_ == len(model.log_likelihoods_) > 3
    best = model.score(GAPS)
    assert model.log_likelihoods_[-1] == pytest.approx(best, abs=1e-10)
    mean, loadings, noise = model.mean_, model.loadings_, model.noise_variance_
    for step in (1e-5, -1e-5):  # no change of a parameter increases the likelihood
        for place in np.ndindex(loadings.shape):
            moved = loadings.copy()
            moved[place] += step
            assert LinearGaussian(mean, moved, noise).log_density(GAPS).mean() < best + 1e-9
        for j in range(6):
            shifted = mean + step * (np.arange(6) == j)
            assert LinearGaussian(shifted, loadings, noise).log_density(GAPS).mean() < best + 1e-9
        other = LinearGaussian(mean, loadings, noise + step)
        assert other.log_density(GAPS).mean() < best + 1e-9
    # 15 % missing values cost only some precision.
    assert np.all(cosines(loadings, W) > 0.99)
    filled = model.inverse_transform(model.transform(GAPS))
    gaps = np.isnan(GAPS)
    assert np.std(filled[gaps] - X[gaps]) < 0.25 * np.std(X[gaps])


def test_loadings_are_axes_whose_largest_entries_are_positive():
    for data in (X, GAPS):
        model = ProbabilisticPCA(3).fit(data)
        G = model.loadings_.T @ model.loadings_
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-9 * G.max())
        assert np.all(np.diff(np.diag(G)) < 0)
        assert np.all(model.loadings_.max(axis=0) == np.abs(model.loadings_).max(axis=0))


def test_draws_have_the_moments_of_the_model():
    model = ProbabilisticPCA(2).fit(X)
    drawn = model.sample(40_000, random_state=1)
    np.testing.assert_allclose(drawn.mean(axis=0), model.mean_, atol=0.06)
    np.testing.assert_allclose(
        np.cov(drawn.T), covariance(model), atol=0.03 * covariance(model).max()
    )
    np.testing.assert_array_equal(model.sample(3), model.sample(3))
    with pytest.raises(ValueError, match="n_samples must be a positive integer, got 0"):
        model.sample(0)


def test_blocks_of_rows_do_not_matter(monkeypatch):
    before = ProbabilisticPCA(2, tol=1e-9).fit(GAPS)
    monkeypatch.setattr("mercer.models.embedding._ppca_training._ENTRIES_PER_BLOCK", 100)
    after = ProbabilisticPCA(2, tol=1e-9).fit(GAPS)
    np.testing.assert_allclose(before.loadings_, after.loadings_, rtol=1e-8)
    np.testing.assert_allclose(before.transform(GAPS), after.transform(GAPS), rtol=1e-7, atol=1e-9)


def test_units_and_offsets():
    plain = ProbabilisticPCA(2).fit(X)
    for scale in (1e-100, 1e100):
        scaled = ProbabilisticPCA(2).fit(scale * X)
        np.testing.assert_allclose(scaled.transform(scale * X), plain.transform(X), rtol=1e-8)
    moved = ProbabilisticPCA(2).fit(X + 1e6)
    np.testing.assert_allclose(moved.transform(X + 1e6), plain.transform(X), atol=1e-6)


def test_few_rows_and_many_columns():
    wide = rng.normal(size=(10, 50))
    model = ProbabilisticPCA(3).fit(wide)
    variances = np.sort(np.linalg.eigvalsh(np.cov(wide.T, bias=True)))[::-1]
    assert model.noise_variance_ == pytest.approx(variances[3:].mean(), rel=1e-10)


def test_a_plane_without_noise_is_reported():
    flat = rng.normal(size=(30, 2)) @ W.T
    with pytest.warns(UserWarning, match="which is rounding error, so that the likelihood is"):
        model = ProbabilisticPCA(2).fit(flat)
    np.testing.assert_allclose(model.inverse_transform(model.transform(flat)), flat, atol=1e-6)


def test_an_end_before_convergence_is_reported():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps without convergence"):
        model = ProbabilisticPCA(2, max_iter=2).fit(GAPS)
    assert model.log_likelihoods_[-1] == pytest.approx(model.score(GAPS))


def test_gaps_that_leave_nothing_over_are_reported():
    few = np.where(np.random.default_rng(1).random(X.shape) < 0.85, np.nan, X)[:40]
    with pytest.warns(UserWarning, match="components explain all of the .* observed values"):
        model = ProbabilisticPCA(2).fit(few)
    assert model.noise_variance_ < 1e-8


def test_verbose(capsys):
    ProbabilisticPCA(2, verbose=1).fit(GAPS)
    assert "[ProbabilisticPCA] step 1: log likelihood -" in capsys.readouterr().out


EMPTY = np.where(np.arange(6) == 4, np.nan, X)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (X, {"n_components": 6}, "n_components=6 must be smaller than n_features=6"),
        (X[:, :1], {}, "n_components=1 must be smaller than n_features=1"),
        (X[:1], {}, "1 sample"),
        (EMPTY, {}, r"all values in columns \[4\] are missing"),
        (np.ones((5, 3)), {}, "all 5 rows of X are equal.*constant columns"),
        (np.where(X > 3, np.inf, X), {}, "infinity"),
        (1e160 * X, {}, "X has values up to .*overflow or underflow. Rescale X"),
        (1e-160 * X, {}, "no column varies by more than .*the squares overflow or underflow"),
        (["GATTACA", "CC"], {}, "requires vectors, but X contains strings"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, message):
    with pytest.raises(ValueError, match=message):
        ProbabilisticPCA(**options).fit(data)


def test_a_constant_column_has_the_noise_alone():
    wide = np.c_[X, np.full(len(X), 3.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ProbabilisticPCA(2).fit(wide)
    np.testing.assert_allclose(model.loadings_[6], 0.0, atol=1e-12)
    assert model.mean_[6] == 3.0


def test_places_of_another_size():
    model = ProbabilisticPCA(2).fit(X)
    with pytest.raises(ValueError, match="the embedding has 2 dimensions, but X has 3 columns"):
        model.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(NotFittedError):
        ProbabilisticPCA().sample()
    assert ProbabilisticPCA().fit(X).transform(X).shape == (250, 2)
    assert ProbabilisticPCA().fit(X[:, :2]).transform(X[:, :2]).shape == (250, 1)


def test_the_noise_of_an_iteration_is_bounded_without_a_warning():
    assert _bounded_noise(0.0, 2.0, quiet=True) == 2.0 * np.finfo(float).eps
    with pytest.warns(UserWarning, match="which is rounding error, so that the likelihood is unbo"):
        assert _bounded_noise(0.0, 2.0) == 2.0 * np.finfo(float).eps
