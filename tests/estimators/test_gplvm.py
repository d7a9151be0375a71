"""The Gaussian process latent variable model: dual PCA, oil flow, coordinates of new points."""

import numpy as np
import pytest
from curves import GAPS, X, bent, errors, oil_flow, t
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer import GPLVM, NotPositiveDefiniteError, compress, load, save
from mercer.kernels import RBF, Linear, White
from mercer.models.embedding import pca_scores
from mercer.solvers import Status

rng = np.random.default_rng(0)


def test_linear_kernel_is_dual_probabilistic_pca():
    data = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(30, 5))
    model = GPLVM(2, kernel=Linear() + White(0.3), prior=False, tol=1e-14, max_iter=5000).fit(data)
    Y = data - data.mean(axis=0)
    n, d = Y.shape
    U, s, _ = np.linalg.svd(Y)
    eigenvalues = np.r_[s**2, np.zeros(n - d)] / d
    noise = eigenvalues[2:].mean()
    logs = np.log(eigenvalues[:2]).sum() + (n - 2) * np.log(noise)
    best = -0.5 * d * (n * np.log(2 * np.pi) + logs + n)
    assert model.log_likelihood_ == pytest.approx(best, rel=1e-6)
    plane = np.linalg.qr(model.embedding_)[0]
    np.testing.assert_allclose(np.linalg.svd(plane.T @ U[:, :2])[1], 1.0, atol=1e-5)


@pytest.fixture(scope="module")
def curve():
    return GPLVM(1).fit(X)


def test_a_curve_is_found_and_new_points_are_placed_on_it(curve):
    assert abs(spearmanr(curve.embedding_[:, 0], t)[0]) > 0.999
    np.testing.assert_allclose(curve.transform(X), curve.embedding_, atol=1e-2)
    new = bent(np.linspace(-1.3, 1.3, 17))
    back = curve.inverse_transform(curve.transform(new))
    assert np.sqrt(np.mean((back - new) ** 2)) < 0.05


def test_places_are_the_most_likely_ones(curve):
    found = curve.model_.place(X + 0.05)
    best = curve.model_.log_density(X + 0.05, found) - 0.5 * found[:, 0] ** 2
    for step in (1e-3, -1e-3):
        moved = found + step
        other = curve.model_.log_density(X + 0.05, moved) - 0.5 * moved[:, 0] ** 2
        assert np.all(other < best)
    np.testing.assert_allclose(curve.score_samples(X), curve.model_.log_density(X))
    assert curve.score(X) == pytest.approx(curve.score_samples(X).mean())


def test_variance_is_small_where_data_are(curve):
    near, far = curve.model_.variance(np.array([curve.embedding_[30], [40.0]]))
    assert near < 0.01 < 0.1 < far


def test_draws_lie_near_the_curve(curve):
    drawn = curve.sample(200, random_state=1)
    inside = drawn[np.abs(drawn[:, 0]) < 1.3]
    assert len(inside) > 50
    assert np.median(np.abs(inside[:, 1] - inside[:, 0] ** 2 / 2)) < 0.1
    np.testing.assert_array_equal(curve.sample(3), curve.sample(3))


def test_draws_are_distributed_as_the_data(curve):
    """N(0, I) is wider than the latent coordinates, and would give samples from the prior."""
    drawn = curve.sample(1000, random_state=1)
    assert curve.embedding_.std() < 0.5
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.1)


def test_starts():
    for init in (t[:, None], "kernel_pca"):
        model = GPLVM(1, init=init).fit(X)
        assert abs(spearmanr(model.embedding_[:, 0], t)[0]) > 0.99
    assert GPLVM(5, init="kernel_pca", tol=10.0).fit(X).embedding_.shape == (60, 5)


def test_the_scale_of_places_is_free_without_a_prior():
    kernel = RBF() + White(0.01)
    tied, free = (GPLVM(1, kernel=kernel, prior=prior).fit(X) for prior in (True, False))
    assert free.embedding_.std() > tied.embedding_.std()
    # the given kernel does not change
    assert repr(kernel) == "RBF(length_scale=1.0) + White(noise=0.01)"


def test_new_points_have_no_prior_if_the_others_had_none(tmp_path):
    data = X + 0.1 * np.random.default_rng(1).normal(size=X.shape)
    model = GPLVM(1, prior=False, init=10.0 * t[:, None]).fit(data)
    assert model.embedding_.std() > 5.0
    np.testing.assert_allclose(model.transform(data), model.embedding_, atol=0.3)
    save(model, tmp_path / "latent.mercer")
    again = load(tmp_path / "latent.mercer")
    np.testing.assert_array_equal(again.transform(data), model.transform(data))


def test_fits_repeat(curve):
    np.testing.assert_array_equal(GPLVM(1).fit(X).embedding_, curve.embedding_)
    np.testing.assert_array_equal(GPLVM(1, n_jobs=1).fit(X).embedding_, curve.embedding_)


def test_a_constant_column_says_nothing():
    model = GPLVM(1).fit(np.c_[X, np.full(60, 3.0)])
    assert abs(spearmanr(model.embedding_[:, 0], t)[0]) > 0.99
    np.testing.assert_allclose(model.inverse_transform(model.embedding_)[:, 4], 3.0, atol=1e-9)


def test_units_do_not_matter(curve):
    for unit in (1e-90, 1e90):
        scaled = GPLVM(1).fit(unit * X)
        np.testing.assert_allclose(scaled.embedding_, curve.embedding_, atol=1e-3)
        np.testing.assert_allclose(scaled.transform(unit * X), scaled.embedding_, atol=1e-2)
        expected = curve.score(X) - 4 * np.log(unit)
        spread = np.sqrt(scaled.model_.variance(curve.embedding_)) / unit
        known = np.sqrt(curve.model_.variance(curve.embedding_))
        np.testing.assert_allclose(spread, known, rtol=0.05)
        assert scaled.score(unit * X) == pytest.approx(expected, abs=0.1)
        drop = scaled.log_likelihood_ + X.size * np.log(unit)
        assert drop == pytest.approx(curve.log_likelihood_, rel=1e-3)


def test_what_it_says(curve, capsys):
    assert curve.get_feature_names_out().tolist() == ["gplvm0"]
    text = curve.summary()
    assert text.startswith("GPLVM of 60 points in 1 dimension\n  kernel     ")
    assert "status     converged" in text and "the last 10 steps gained too little" in text
    assert "nan" not in text  # nothing has a residual here
    assert curve.n_iter_ == curve.report_.n_iter > 10
    assert curve.report_.certificate["log likelihood"] == curve.log_likelihood_
    GPLVM(1, verbose=1, tol=1.0).fit(X)
    out = capsys.readouterr().out
    assert "[GPLVM] evaluation 1: " in out and "[GPLVM] log likelihood " in out


def test_an_end_before_convergence_is_reported():
    with pytest.warns(ConvergenceWarning, match="ended after .* raise max_iter=2 or tol=1.0e-04"):
        model = GPLVM(1, max_iter=2).fit(X)
    assert model.report_.status is Status.NOT_CONVERGED


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (
            GAPS,
            {},
            "contains NaN in 3 of 60 rows, and GPLVM needs complete.*ProbabilisticPCA accepts",
        ),
        (np.where(X > 1.4, np.inf, X), {}, "infinity"),
        (X, {"n_components": 5}, "n_components=5, but PCA of 60 points has at most 4 dimensions"),
        (X[:1], {}, "1 sample"),
        (np.ones((5, 3)), {}, "all 5 rows of X are equal.*constant columns"),
        (X, {"init": X}, r"init has shape \(60, 4\), but the embedding has shape \(60, 2\)"),
        (X[:5], {"n_components": 5, "init": "kernel_pca"}, "kernel PCA of 5 points has at most 4"),
        (X, {"init": "random"}, "The 'init' parameter of GPLVM"),
        (["GATTACA", "CC"], {}, "requires vectors, but X contains strings"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, message):
    with pytest.raises(ValueError, match=message):
        GPLVM(**options).fit(data)


def test_a_kernel_without_noise_is_reported():
    with pytest.raises(NotPositiveDefiniteError, match="kernel without noise: add White"):
        GPLVM(2, kernel=Linear()).fit(X)


def test_what_cannot_be_asked_is_reported(curve):
    with pytest.raises(ValueError, match="contains NaN in 3 of 60 rows"):
        curve.transform(GAPS)
    with pytest.raises(ValueError, match="the embedding has 1 dimensions, but X has 2 columns"):
        curve.inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="n_samples must be a positive integer, got 0"):
        curve.sample(0)
    with pytest.raises(NotFittedError):
        GPLVM().sample()
    with pytest.raises(TypeError, match="a GPLVM cannot be compressed; fit it to fewer points"):
        compress(curve, 10)


@pytest.mark.data
@pytest.mark.long
def test_oil_flow():
    data, labels = oil_flow()
    assert errors(pca_scores(data, 2), labels) == 162
    model = GPLVM(2).fit(data)
    assert errors(model.embedding_, labels) <= 5
    again = model.transform(data)
    assert np.abs(again - model.embedding_).max() < 1e-2
