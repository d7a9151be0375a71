"""The Parzen density: against scikit-learn, against integrals, and for distant points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, gaussian_kde
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import check_estimator

from mercer import ParzenDensity
from mercer.kernels import RBF, Laplacian, Linear, Matern, RationalQuadratic
from mercer.models.mean_embedding import _density_estimation

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3))
Q = np.concatenate([rng.normal(size=(100, 3)), 4.0 * rng.normal(size=(50, 3))])
KERNELS = [
    RBF(),
    Laplacian(),
    Laplacian((0.5, 2.0)),
    Matern(nu=0.5),
    Matern(nu=0.8),
    Matern(nu=1.5),
    Matern(nu=2.5),
    Matern(nu=4.0),
    Matern(nu=np.inf),
    RationalQuadratic(alpha=2.5),
    RBF((0.5, 2.0)),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@pytest.mark.parametrize("name", ["gaussian", "exponential"])
@pytest.mark.parametrize("bandwidth", [0.2, 1.0, "scott", "silverman"])
def test_agrees_with_scikit_learn(name, bandwidth):
    weights = rng.uniform(size=500) if bandwidth == 0.2 else None
    # A single leaf; with more, sums of logarithms would lose all digits in the tails.
    theirs = KernelDensity(bandwidth=bandwidth, kernel=name, rtol=0, leaf_size=500)
    theirs.fit(X, sample_weight=weights)
    ours = ParzenDensity(bandwidth=bandwidth, kernel=name).fit(X, sample_weight=weights)
    assert ours.bandwidth_ == pytest.approx(theirs.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(ours.score_samples(Q), theirs.score_samples(Q), rtol=0, atol=1e-9)
    assert ours.score(Q) == pytest.approx(theirs.score(Q), rel=1e-12)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_rules_count_the_points_that_weights_leave(rule):
    weights = rng.uniform(size=500)
    theirs = gaussian_kde(X.T, bw_method=rule, weights=weights)  # n is 1 / sum w^2 in SciPy, too
    ours = ParzenDensity(bandwidth=rule).fit(X, sample_weight=weights)
    assert ours.bandwidth_ == pytest.approx(theirs.factor, rel=1e-12)
    assert ours.bandwidth_ > 1.01 * ParzenDensity(bandwidth=rule).fit(X).bandwidth_
    # A point of weight 0 has no effect.
    some = ParzenDensity(bandwidth=rule).fit(X, sample_weight=np.arange(500) < 100)
    assert some.bandwidth_ == pytest.approx(ParzenDensity(bandwidth=rule).fit(X[:100]).bandwidth_)


def test_many_tiles(monkeypatch):
    tuning = replace(_density_estimation._TUNING, tile_rows=33, tile_columns=71)
    monkeypatch.setattr(_density_estimation, "_TUNING", tuning)
    s = ((Q[:, None] - X) ** 2).sum(axis=2) / 0.3**2
    expected = logsumexp(-0.5 * s, axis=1) - np.log(500) - 3 * np.log(0.3 * np.sqrt(2 * np.pi))
    found = ParzenDensity(bandwidth=0.3).fit(X).score_samples(Q)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_far_away_the_density_is_small_not_zero():
    model = ParzenDensity(bandwidth=0.1).fit(X)
    far = np.array([[1e3, 0.0, 0.0], [0.0, -1e6, 0.0]])
    found = model.score_samples(far)
    s = ((far[:, None] - X) ** 2).sum(axis=2).min(axis=1) / 0.01
    np.testing.assert_allclose(found, -0.5 * s, rtol=1e-4)
    assert np.isfinite(found).all() and np.all(model.expansion_(far) == 0.0)
    wide = rng.normal(size=(30, 20))  # distances by matrix products
    assert np.isfinite(ParzenDensity(bandwidth=0.01).fit(wide).score_samples(1e4 + wide)).all()


@every_kernel
def test_integrates_to_one_and_is_an_expansion(kernel):
    model = ParzenDensity(bandwidth=1.2, kernel=kernel).fit(X[:2, :2])
    side = np.linspace(-25.0, 25.0, 401)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    p = np.exp(model.score_samples(grid))
    assert p.sum() * 0.125**2 == pytest.approx(1.0, abs=5e-3)
    few = grid[::997]
    np.testing.assert_allclose(model.expansion_(few)[:, 0], p[::997], rtol=1e-9, atol=1e-300)
    assert len(model.expansion_.points) == 2


@every_kernel
def test_samples_are_from_the_density(kernel):
    model = ParzenDensity(bandwidth=0.7, kernel=kernel).fit([[0.0, 0.0], [3.0, 1.0]])
    S = model.sample(4000, random_state=1)
    assert S.shape == (4000, 2)
    np.testing.assert_array_equal(S, model.sample(4000, random_state=1))
    # Against the integral of p over squares of width 1.5, by the midpoint rule with 900 cells.
    across, up = (np.linspace(start, start + 15.0, 301)[:-1] + 0.025 for start in (-6.0, -7.0))
    p = np.exp(model.score_samples(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)))
    mass = p.reshape(10, 30, 10, 30).sum(axis=(1, 3)) * 0.05**2
    edges = np.linspace(-7.0, 8.0, 11), np.linspace(-6.0, 9.0, 11)
    found = np.histogram2d(S[:, 1], S[:, 0], bins=edges)[0]
    large = mass > 0.002
    counts = np.append(found[large], 4000 - found[large].sum())
    expected = np.append(mass[large], 1.0 - mass[large].sum()) * 4000
    assert large.sum() > 10 and chisquare(counts, expected).pvalue > 1e-3


def test_weights_are_counts():
    counts = rng.integers(0, 4, size=500)
    one = ParzenDensity(bandwidth=0.4).fit(X, sample_weight=counts)
    two = ParzenDensity(bandwidth=0.4).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(one.score_samples(Q), two.score_samples(Q), rtol=1e-10)
    assert one.weights_.sum() == pytest.approx(1.0) and len(one.X_fit_) == np.sum(counts > 0)
    heavy = ParzenDensity().fit([[0.0], [100.0]], sample_weight=[0.0, 1.0])
    assert heavy.sample(50).min() > 90.0


def test_leave_one_out_is_the_best_bandwidth():
    Z = X[:60, :1]

    def likelihood(h):
        return sum(
            ParzenDensity(bandwidth=h).fit(np.delete(Z, i, axis=0)).score_samples(Z[[i]])[0]
            for i in range(60)
        )

    h = ParzenDensity(bandwidth="loo").fit(Z).bandwidth_
    best = likelihood(h)
    assert all(best >= likelihood(h * factor) for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2.0))
    weighted = ParzenDensity(bandwidth="loo").fit(Z, sample_weight=np.full(60, 7.0)).bandwidth_
    assert weighted == pytest.approx(h, rel=1e-6)
    assert ParzenDensity(bandwidth="loo").fit(1000 * Z).bandwidth_ == pytest.approx(1000 * h)


def test_leave_one_out_where_there_is_no_best():
    with pytest.warns(ConvergenceWarning, match=r"no maximum for .* the lower end .* duplicate"):
        ParzenDensity(bandwidth="loo").fit(np.repeat(X[:20], 2, axis=0))
    with pytest.raises(
        ValueError, match="one point at a time and needs at least 2 points, got 1 sample"
    ):
        ParzenDensity(bandwidth="loo").fit([[1.0]])
    with pytest.raises(ValueError, match="all points are equal; pass a number"):
        ParzenDensity(bandwidth="loo").fit(np.ones((5, 2)))


def test_leave_one_out_in_units_of_the_length_scale(monkeypatch):
    Z = X[:80, :2]
    h = ParzenDensity(bandwidth="loo").fit(Z).bandwidth_
    for scale in (1e4, 1e-4, (1e4, 1e4)):
        found = ParzenDensity(bandwidth="loo", kernel=RBF(scale)).fit(Z).bandwidth_
        assert found * np.max(scale) == pytest.approx(h, rel=1e-3)
    monkeypatch.setattr(
        _density_estimation, "_TUNING", replace(_density_estimation._TUNING, loo_range=(1e-3, 1e-1))
    )
    with pytest.warns(ConvergenceWarning, match=r"no maximum for .* the upper end .* too few"):
        ParzenDensity(bandwidth="loo").fit(Z)


def test_the_nearest_point_may_have_next_to_no_weight():
    model = ParzenDensity().fit([[0.0], [30.0]], sample_weight=[1e-300, 1.0])
    exact = np.logaddexp(np.log(1e-300), -0.5 * 30.0**2) - 0.5 * np.log(2 * np.pi)
    assert model.score_samples([[0.0]])[0] == pytest.approx(exact, rel=1e-12)
    heavy = {"sample_weight": [1e-320, 1.0, 1e-30]}
    with pytest.warns(ConvergenceWarning, match="the upper end"):  # and no other warning
        ParzenDensity(bandwidth="loo").fit([[0.0], [1.0], [2.0]], **heavy)


@pytest.mark.parametrize("nu", [0.3, 0.8, 4.0, 100.0])
def test_any_matern_falls_for_ever(nu):
    model = ParzenDensity(kernel=Matern(nu=nu)).fit([[0.0]])
    r = np.concatenate([[0.0], np.geomspace(1e-200, 1e15, 400)])
    log = model.score_samples(r[:, None])
    assert np.all(np.diff(log) <= 1e-7) and np.isfinite(log).all()
    assert log[-1] == pytest.approx(-np.sqrt(2 * nu) * 1e15, rel=1e-9)


def test_a_far_query_costs_the_others_no_digits():
    Z = rng.normal(size=(60, 20))
    model = ParzenDensity(bandwidth=0.5).fit(Z)
    alone = model.score_samples(Z[:5] + 0.1)
    together = model.score_samples(np.concatenate([Z[:5] + 0.1, np.full((9, 20), 1e8)]))
    np.testing.assert_allclose(together[:5], alone, rtol=1e-12)


def test_in_a_grid_search():
    search = GridSearchCV(ParzenDensity(), {"bandwidth": [0.01, 0.3, 10.0]}).fit(X)
    assert search.best_params_ == {"bandwidth": 0.3}


@pytest.mark.filterwarnings("ignore:the leave-one-out likelihood")  # some points occur twice
def test_leave_one_out_passes_the_checks_of_scikit_learn():
    check_estimator(ParzenDensity(bandwidth="loo"), on_skip=None)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"Linear\(.* cannot be used as a density: only RBF"):
        ParzenDensity(kernel=Linear()).fit(X)
    with pytest.raises(ValueError, match=r"no finite integral in 3 dimensions.* alpha > 1\.5"):
        ParzenDensity(kernel=RationalQuadratic(alpha=1.5)).fit(X)
    with pytest.raises(ValueError, match="The 'bandwidth' parameter of ParzenDensity must be"):
        ParzenDensity(bandwidth=0.0).fit(X)
    with pytest.raises(ValueError, match="unknown name 'tophat'"):
        ParzenDensity(kernel="tophat").fit(X)
    with pytest.raises(NotFittedError):
        ParzenDensity().sample()
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="n_samples must be a positive integer, got"):
            ParzenDensity().fit(X).sample(bad)
    with pytest.raises(ValueError, match="RBF has 2 length scales, but the points have 3 columns"):
        ParzenDensity(kernel=RBF((1.0, 2.0))).fit(X)
    high = ParzenDensity(bandwidth=1e-3).fit(rng.normal(size=(5, 150)))
    assert np.isfinite(high.score(high.X_fit_))
    with pytest.raises(ValueError, match=r"is e\^898, which is outside the range of float"):
        _ = high.expansion_
