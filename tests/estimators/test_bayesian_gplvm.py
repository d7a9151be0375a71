"""The Bayesian GPLVM: its effective dimension, coordinates of new points, oil flow."""

import numpy as np
import pytest
from curves import GAPS, X, bent, errors, oil_flow, t
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer import BayesianGPLVM, MemoryBudgetError, load, save
from mercer.kernels import Linear
from mercer.models.embedding import pca_scores
from mercer.solvers import Status

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def curve():
    return BayesianGPLVM(n_inducing=12).fit(X)


def test_it_finds_that_a_curve_has_one_dimension(curve):
    assert curve.embedding_.shape == curve.variances_.shape == (60, 4)
    assert curve.active_.tolist() == [True, False, False, False] and curve.n_active_ == 1
    assert np.all(np.diff(curve.relevance_) <= 0)
    assert abs(spearmanr(curve.embedding_[:, 0], t)[0]) > 0.99
    assert 0.0004 < curve.noise_variance_ < 0.0016  # 0.0009
    # In an unused dimension, the posterior is the prior.
    np.testing.assert_allclose(curve.variances_[:, 1:], 1.0, atol=0.05)
    assert np.all(curve.variances_[:, 0] < 0.1)


def test_an_uninformative_embedding_is_reported():
    noise = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(UserWarning, match="all of X as noise: .*no dimension is active"):
        model = BayesianGPLVM(2, n_inducing=5).fit(noise)
    assert model.n_active_ == 0


def test_new_points_are_placed_and_brought_back(curve):
    np.testing.assert_allclose(curve.transform(X), curve.embedding_, atol=1e-2)
    new = bent(np.linspace(-1.3, 1.3, 17))
    back = curve.inverse_transform(curve.transform(new))
    assert np.sqrt(np.mean((back - new) ** 2)) < 0.05
    alone = np.vstack([curve.transform(row[None]) for row in new])  # rows are independent
    np.testing.assert_allclose(alone, curve.transform(new), atol=2e-3)


def test_places_bound_the_density_best(curve):
    mu, S = curve.model_.posterior(X[::7] + 0.02)
    Y = (X[::7] + 0.02 - curve.model_.mean) / curve.model_.unit
    best = curve.model_._row_bound.value_and_gradients(Y, mu, S)[0]
    of_unit = 4 * np.log(curve.model_.unit)
    np.testing.assert_allclose(curve.score_samples(X[::7] + 0.02), best - of_unit)
    for step in (1e-2, -1e-2):
        assert np.all(curve.model_._row_bound.value_and_gradients(Y, mu + step, S)[0] < best)
        assert np.all(
            curve.model_._row_bound.value_and_gradients(Y, mu, S * np.exp(step))[0] < best
        )
    assert curve.score(X) > curve.score(X + 0.3)


def test_variance_is_small_where_data_are(curve):
    far = np.array([[40.0, 0.0, 0.0, 0.0]])
    assert curve.model_.variance(curve.embedding_).max() < 0.01 < curve.model_.variance(far)[0]


def test_draws_lie_near_the_curve(curve):
    drawn = curve.sample(200, random_state=1)
    inside = drawn[np.abs(drawn[:, 0]) < 1.3]
    assert len(inside) > 50
    assert np.median(np.abs(inside[:, 1] - inside[:, 0] ** 2 / 2)) < 0.1
    np.testing.assert_array_equal(curve.sample(3), curve.sample(3))


def test_fits_repeat_and_are_saved(curve, tmp_path):
    one, two = (BayesianGPLVM(2, n_inducing=6, n_jobs=n, tol=1e-2).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    save(curve, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(X[:5]), curve.transform(X[:5]))
    np.testing.assert_array_equal(loaded.relevance_, curve.relevance_)


def test_a_linear_kernel_has_the_plane_of_pca():
    data = rng.normal(size=(80, 2)) * [3.0, 1.0] @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    data += 0.1 * rng.normal(size=data.shape)
    model = BayesianGPLVM(4, kernel=Linear(), n_inducing=4, tol=1e-5).fit(data)
    assert model.n_active_ == 2 and model.noise_variance_ == pytest.approx(0.01, rel=0.2)
    planes = [
        np.linalg.qr(Z - Z.mean(0))[0] for Z in (model.embedding_[:, :2], pca_scores(data, 2))
    ]
    np.testing.assert_allclose(np.linalg.svd(planes[0].T @ planes[1])[1], 1.0, atol=1e-3)


def test_a_constant_column_says_nothing():
    model = BayesianGPLVM(2, n_inducing=8, tol=1e-3).fit(np.c_[X, np.full(60, 3.0)])
    assert model.n_active_ == 1
    np.testing.assert_allclose(model.inverse_transform(model.embedding_)[:, 4], 3.0, atol=1e-9)


def test_more_dimensions_than_columns_from_kernel_pca():
    model = BayesianGPLVM(6, init="kernel_pca", n_inducing=8, tol=1e-2).fit(X)
    assert model.embedding_.shape == (60, 6) and model.n_active_ < 6


def test_what_it_says(curve, capsys):
    assert curve.get_feature_names_out().tolist() == [f"bayesiangplvm{i}" for i in range(4)]
    text = curve.summary()
    assert text.startswith("BayesianGPLVM of 60 points in 4 dimensions\n  kernel     ")
    assert "active     1 of 4 dimensions" in text and "12 inducing points" in text
    assert curve.report_.certificate["bound"] == curve.log_likelihood_
    BayesianGPLVM(1, n_inducing=5, verbose=1, tol=1.0).fit(X)
    out = capsys.readouterr().out
    assert "[BayesianGPLVM] evaluation 1: " in out and "[BayesianGPLVM] bound " in out


def test_an_end_before_convergence_is_reported():
    with pytest.warns(ConvergenceWarning, match="at a bound of .* raise max_iter=2 or tol=1.0e-04"):
        model = BayesianGPLVM(1, max_iter=2, n_inducing=5).fit(X)
    assert model.report_.status is Status.NOT_CONVERGED


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (GAPS, {}, "contains NaN in 3 of 60 rows, and BayesianGPLVM.*ProbabilisticPCA accepts"),
        (X, {"n_components": 5}, "n_components=5, but PCA of 60 points has at most 4 dimensions"),
        (X[:1], {}, "1 sample"),
        (np.ones((5, 3)), {}, "all 5 rows of X are equal.*constant columns"),
        (X, {"kernel": "Matern()"}, r"implemented for v\*RBF\(l\) and Stretch.*not for Matern"),
        (X, {"kernel": "RBF([1.0, 2.0])"}, "2 length scales, but latent points have 4 dimensions"),
        (["GATTACA", "CC"], {}, "requires vectors, but X contains strings"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, message):
    with pytest.raises(ValueError, match=message):
        BayesianGPLVM(**options).fit(data)


def test_units_do_not_matter(curve):
    for unit in (1e-90, 1e90):
        scaled = BayesianGPLVM(n_inducing=12).fit(unit * X)
        assert scaled.n_active_ == 1
        np.testing.assert_allclose(scaled.embedding_[:, 0], curve.embedding_[:, 0], atol=3e-2)
        deviation = np.sqrt(scaled.noise_variance_) / unit
        assert deviation == pytest.approx(np.sqrt(curve.noise_variance_), rel=1e-2)
        spread = np.sqrt(scaled.model_.variance(curve.embedding_)) / unit
        known = np.sqrt(curve.model_.variance(curve.embedding_))
        np.testing.assert_allclose(spread, known, rtol=0.05)
        assert scaled.score(unit * X) == pytest.approx(curve.score(X) - 4 * np.log(unit), abs=0.1)


def test_the_budget():
    with pytest.raises(MemoryBudgetError, match="a Bayesian GPLVM of 60 points needs"):
        BayesianGPLVM(max_memory="10 KiB").fit(X)


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        BayesianGPLVM().transform(X)


@pytest.mark.data
@pytest.mark.long
def test_oil_flow():
    data, labels = oil_flow()
    model = BayesianGPLVM(10, n_inducing=50).fit(data)
    assert model.n_active_ <= 5
    assert errors(model.embedding_[:, model.active_], labels) <= 10
    assert np.abs(model.transform(data) - model.embedding_).max() < 1e-2
