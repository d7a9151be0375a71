"""Gaussian process regression, in addition to scikit-learn's own tests."""

import numpy as np
import pytest
import sklearn.gaussian_process as theirs
import sklearn.gaussian_process.kernels as gp
from data_folder import DATA
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from mercer import (
    GaussianProcessRegressor,
    KernelRidge,
    MemoryBudgetError,
    NotPositiveDefiniteError,
    compress,
)
from mercer.kernels import (
    RBF,
    Bounded,
    Callable,
    Fixed,
    Linear,
    Matern,
    Periodic,
    Precomputed,
    RationalQuadratic,
    White,
)
from mercer.models.gp import Conditioned, MarginalLikelihood, maximise
from mercer.solvers import Status


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)


def held(kernel=None, **options):
    """Return a model with a fixed theta."""
    return GaussianProcessRegressor(kernel, optimizer=None, **options)


# ---------------------------------------------------------------------- predictions


@pytest.mark.parametrize("kernel", [RBF(0.7), 2 * Matern(nu=2.5) + Linear()], ids=str)
def test_the_mean_is_kernel_ridge(kernel, data):
    X, y = data
    Z = np.random.default_rng(1).normal(size=(9, 2))
    process = held(kernel, alpha=0.1).fit(X, y)
    ridge = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y)
    np.testing.assert_allclose(process.predict(Z), ridge.predict(Z), atol=1e-10)
    np.testing.assert_allclose(process.alpha_, ridge.dual_coef_, atol=1e-10)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("normalize", [False, True])
def test_scikit_learn_says_the_same(normalize, targets, data):
    X, y = data
    Y = y if targets == 1 else np.column_stack([y, 3 * y + 1, np.cos(y)])
    Z = np.random.default_rng(1).normal(size=(9, 2))
    alpha = np.linspace(1e-4, 1e-3, len(y))
    kernel = gp.ConstantKernel(2.0) * gp.RBF([0.8, 1.2]) + gp.WhiteKernel(0.05)
    options = {"alpha": alpha, "normalize_y": normalize}
    ours = GaussianProcessRegressor(kernel, **options).fit(X, Y)
    other = theirs.GaussianProcessRegressor(kernel, **options).fit(X, Y)
    np.testing.assert_allclose(ours.kernel_.theta, other.kernel_.theta, atol=2e-3)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        other.log_marginal_likelihood_value_, abs=1e-4
    )
    other = theirs.GaussianProcessRegressor(ours.kernel_, optimizer=None, **options).fit(X, Y)
    for wanted in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(ours.predict(Z, **wanted), other.predict(Z, **wanted), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(ours.sample_y(Z, 4), other.sample_y(Z, 4), atol=1e-5)
    theta = ours.kernel_.theta + 0.1
    got = ours.log_marginal_likelihood(theta, eval_gradient=True)
    want = other.log_marginal_likelihood(theta, eval_gradient=True)
    assert got[0] == pytest.approx(want[0], rel=1e-10)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-7)
    for name in ("X_train_", "y_train_", "L_", "alpha_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(other, name), atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        gp.DotProduct(0.7) + gp.WhiteKernel(0.1),
        gp.PairwiseKernel(0.5, metric="rbf") + gp.WhiteKernel(0.1),
        gp.PairwiseKernel(0.5, metric="poly", pairwise_kernels_kwargs={"degree": 2}),
        gp.RBF(1.0, "fixed") * gp.ConstantKernel(2.0, (0.1, 10.0)) + gp.WhiteKernel(0.1),
        gp.ExpSineSquared(1.0, 3.0) + gp.RationalQuadratic() + gp.WhiteKernel(0.1),
    ],
    ids=str,
)
def test_theta_is_spelled_as_theirs(kernel, data):
    X, y = data[0][:, :1], data[1]
    ours, other = held(kernel), theirs.GaussianProcessRegressor(kernel, optimizer=None)
    other.alpha = 1e-3
    ours.set_params(alpha=1e-3).fit(X, y)
    other.fit(X, y)
    assert isinstance(ours.kernel_, gp.Kernel)
    theta = kernel.theta + 0.1
    got = ours.log_marginal_likelihood(theta, eval_gradient=True)
    want = other.log_marginal_likelihood(theta, eval_gradient=True)
    assert got[0] == pytest.approx(want[0], rel=1e-9)
    theirs_by_differences = "PairwiseKernel" in str(kernel)
    rtol = 1e-4 if theirs_by_differences else 1e-6
    np.testing.assert_allclose(got[1], want[1], rtol=rtol, atol=1e-6)
    with pytest.raises(ValueError, match=r"theta has shape \(9,\)"):
        ours.log_marginal_likelihood(np.zeros(9))


def test_std_is_the_root_of_the_diagonal(data):
    X, y = data
    model = held(2 * RBF() + White(0.1), normalize_y=True).fit(X, y)
    Z = np.concatenate([X[:5], X[:5] + 1])
    _, std = model.predict(Z, return_std=True)
    _, cov = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-9)
    np.testing.assert_array_equal(cov, cov.T)
    assert isinstance(model.covariance_, Conditioned)
    np.testing.assert_allclose(cov, model.covariance_(Z) * np.var(y), rtol=1e-12)
    np.testing.assert_allclose(model.predict(Z), model.expansion_(Z)[:, 0] + np.mean(y))


def test_prior(data):
    X = data[0]
    kernel = 2 * RBF("median") + White(0.1)
    model = GaussianProcessRegressor(kernel, n_targets=2)
    mean, cov = model.predict(X, return_cov=True)
    assert mean.shape == (40, 2) and not mean.any()
    np.testing.assert_array_equal(cov[..., 1], kernel.resolve(X)(X))
    assert model.sample_y(X, 3).shape == (40, 2, 3)
    _, std = held().predict(X, return_std=True)
    np.testing.assert_array_equal(std, 1.0)


def test_samples_of_the_posterior_have_its_moments(data):
    X, y = data
    model = held(RBF() + White(0.01)).fit(X, y)
    Z = X[:3] + 0.1
    mean, cov = model.predict(Z, return_cov=True)
    draws = model.sample_y(Z, 40_000, random_state=1)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.01)
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.01 * cov.max())
    np.testing.assert_array_equal(model.sample_y(Z, 2, None), model.sample_y(Z, 2, 0))


@pytest.mark.parametrize("normalize", [False, True])
def test_predict_gradient_is_that_of_differences(normalize, data):
    X, y = data
    kernel = 1.5 * RBF((0.8, 1.4)) + Linear() * RationalQuadratic() + White(0.05)
    Z = np.random.default_rng(1).normal(size=(6, 2))
    for target in (y, np.column_stack([y, 2 * y - 1])):
        model = held(kernel, alpha=0.01, normalize_y=normalize).fit(X, target)
        mean, std = model.predict_gradient(Z, return_std=True)
        np.testing.assert_array_equal(model.predict_gradient(Z), mean)
        for c, step in enumerate(1e-5 * np.eye(2)):
            up, down = (model.predict(Z + s * step, return_std=True) for s in (1, -1))
            np.testing.assert_allclose(mean[:, c], (up[0] - down[0]) / 2e-5, atol=1e-6)
            np.testing.assert_allclose(std[:, c], (up[1] - down[1]) / 2e-5, atol=1e-6)


def test_leave_one_out_is_n_refits(data):
    X, y = data
    kernel, alpha = 1.5 * RBF(0.9) + White(0.02), np.linspace(1e-4, 1e-3, 40)
    model = GaussianProcessRegressor(kernel, alpha=alpha).fit(X, y)
    means, variances = model.leave_one_out()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        other = held(model.kernel_, alpha=alpha[rest]).fit(X[rest], y[rest])
        mean, std = other.predict(X[i : i + 1], return_std=True)
        assert means[i] == pytest.approx(mean[0], abs=1e-8)
        assert variances[i] == pytest.approx(std[0] ** 2 + alpha[i], abs=1e-8)
    scaled = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, np.column_stack([y, 5 * y]))
    means, variances = scaled.leave_one_out()
    np.testing.assert_allclose(means[:, 1], 5 * means[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variances[:, 1], 25 * variances[:, 0])


def test_the_gradient_at_a_kink_is_the_mean_of_both_sides(data):
    X, y = data[0][:6, :1], data[1][:6]
    model = held(Matern(nu=0.5), alpha=0.1).fit(X, y)
    up, at, down = (model.predict(X + step) for step in (1e-6, 0.0, -1e-6))
    assert np.all(np.abs((up - at) - (at - down)) > 1e-8)  # there is a kink
    np.testing.assert_allclose(model.predict_gradient(X)[:, 0], (up - down) / 2e-6, atol=1e-5)


# ---------------------------------------------------------------------- the search for theta


def test_hyper_parameters_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(300, 1))
    truth = 2.0 * RBF(0.8) + White(0.1)
    y = rng.multivariate_normal(np.zeros(300), truth(X))
    model = GaussianProcessRegressor(1.0 * RBF() + White()).fit(X, y)
    np.testing.assert_allclose(model.kernel_.theta[[0, 2]], truth.theta[[0, 2]], atol=0.3)
    assert model.log_marginal_likelihood_value_ > held(truth).fit(X, y).log_marginal_likelihood()
    assert model.report_.status is Status.DIRECT and model.report_.n_iter > 3
    assert model.log_marginal_likelihood(model.kernel_.theta) == pytest.approx(
        model.log_marginal_likelihood()
    )


def test_fixed_parameters_stay(data):
    model = GaussianProcessRegressor(Fixed(RBF(0.9)) + White(0.1)).fit(*data)
    assert model.kernel_.terms[0] == Fixed(RBF(0.9))
    assert model.kernel_.terms[1] != White(0.1)


def test_restarts_do_not_lower_the_likelihood():
    X = np.linspace(0, 1, 30)[:, None]
    y = np.sin(20 * X[:, 0])
    kernel = Bounded(1.0 * RBF(50.0), (1e-2, 1e2)) + White(1.0)
    best = -np.inf
    for restarts in (0, 2, 4):
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=restarts)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        assert model.log_marginal_likelihood_value_ >= best - 1e-6
        best = model.log_marginal_likelihood_value_
    with pytest.warns(ConvergenceWarning):
        again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.kernel_.theta, again.kernel_.theta)


def test_with_many_points_a_bound_is_no_reason_to_search_again():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, size=(500, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=500)
    # the optimal length scale is outside of the bounds
    kernel = Bounded(RBF(0.3), (0.2, 0.4)) + White()
    with pytest.warns(ConvergenceWarning, match="close to the specified upper bound 0.4"):
        model = GaussianProcessRegressor(kernel).fit(X, y)
    alone = maximise(MarginalLikelihood(kernel, X, y, 1e-10), kernel.theta, kernel.bounds)
    assert model.report_.n_iter == alone.evaluations
    assert model.log_marginal_likelihood_value_ == alone.value


def test_a_noise_that_vanishes_takes_few_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    C = Matern(np.sqrt(10.0), nu=2.5)(X) + 0.0025 * np.eye(600)
    y = np.linalg.cholesky(C) @ rng.normal(size=600)
    kernel = gp.WhiteKernel() + gp.ConstantKernel() * gp.Matern(nu=2.5)
    model = GaussianProcessRegressor(kernel).fit(X, y)
    assert model._spelled.noise_mask.tolist() == [True, False, False]
    assert model.kernel_.k1.noise_level < 0.02
    assert model.report_.n_iter <= 6, model.kernel_


def test_a_bound_is_named(data):
    X, y = data
    kernel = Bounded(RBF((1.0, 1.0)), (0.1, 1.1)) + Bounded(White(1.0), (0.9, 2.0))
    with pytest.warns(ConvergenceWarning) as caught:
        GaussianProcessRegressor(kernel).fit(X, y)
    assert [str(w.message) for w in caught] == [
        f"The optimal value found for dimension {place} of parameter {name} is close to the "
        f"specified {bound}. {change} the bound and calling fit again may find a better value."
        for place, name, bound, change in (
            (1, "terms__0__kernel__length_scale", "upper bound 1.1", "Increasing"),
            (0, "terms__1__kernel__noise", "lower bound 0.9", "Decreasing"),
        )
    ]
    assert {w.filename for w in caught} == {__file__}


def test_a_first_start_that_fails_is_restarted(data):
    X, y = np.repeat(data[0][:20], 2, axis=0), data[1][:20]  # singular with little noise
    y = np.column_stack([y + 0.2, y - 0.2]).ravel()
    kernel = Bounded(1.0 * RBF(), (0.1, 100.0)) + Bounded(White(1e-18), (1e-18, 10.0))
    model = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=4)
    with pytest.warns(ConvergenceWarning, match="not finite at the start") as caught:
        model.fit(X, y)
    assert len(caught) == 1 and model.report_.status is Status.DIRECT
    from_there = GaussianProcessRegressor(1.0 * RBF() + White()).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        from_there.log_marginal_likelihood_value_, abs=1e-3
    )


def test_restarts_of_a_kernel_with_a_rule(data):
    kernel = Bounded(1.0 * RBF("scale") + White(), (0.1, 10.0))
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=1)
    with pytest.warns(ConvergenceWarning, match="noise is close"):
        model.fit(*data)
    for endless in (gp.RBF(1.0, (1e-3, np.inf)), Bounded(RBF(), (1e-3, np.inf))):
        model = GaussianProcessRegressor(endless, alpha=0.1, n_restarts_optimizer=1)
        with pytest.raises(ValueError, match="requires that all bounds are finite"):
            model.fit(*data)
        found = model.set_params(n_restarts_optimizer=0).fit(*data)
        assert np.all(np.isfinite(found.kernel_.theta))
    with pytest.raises(ValueError, match="must be positive"):
        GaussianProcessRegressor(gp.RBF(1.0, (-1.0, 2.0))).fit(*data)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")  # from scikit-learn
def test_a_parameter_of_scikit_learn_may_be_0(data):
    kernel = gp.RBF() + gp.WhiteKernel(0.0)
    ours = held(kernel, alpha=0.1).fit(*data)
    other = theirs.GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(*data)
    np.testing.assert_allclose(ours.predict(data[0]), other.predict(data[0]), atol=1e-10)


def test_a_search_that_cannot_start_is_reported():
    X, y = np.zeros((4, 1)), np.arange(4.0)
    model = GaussianProcessRegressor(RBF(), alpha=0.0)
    with (
        pytest.warns(ConvergenceWarning, match=r"after 1 evaluations.*not finite at the start"),
        pytest.raises(NotPositiveDefiniteError, match="not returning a positive definite matrix"),
    ):
        model.fit(X, y)


def test_duplicates_with_different_targets():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    y = np.array([0.0, 2.0, 1.0, 5.0])
    model = held(100 * RBF(0.1), alpha=0.5).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [1.0, 3.0], atol=0.02)
    # K is singular to rounding here: smaller noise is raised, with a warning.
    jittered = held(1e6 * RBF(), alpha=1e-14)
    text = "was added to its diagonal, in addition to a noise of 1.00e-14"
    with pytest.warns(UserWarning, match=text):
        jittered.fit(X, [0.0, 0.0, 1.0, 1.0])
    assert jittered.report_.certificate["jitter"] > 0
    value = jittered.log_marginal_likelihood(jittered.kernel_.theta)
    assert value == pytest.approx(jittered.log_marginal_likelihood_value_, rel=1e-12)
    assert np.all(np.isfinite(jittered.leave_one_out()[0]))


def test_a_fit_that_fails_changes_nothing(data):
    X, y = data
    model = held(RBF() + White(0.1), normalize_y=True).fit(X, y)
    before = dict(vars(model))
    for wrong in ({"alpha": -np.ones(20)}, {"kernel": RBF(), "alpha": 0.0}):
        model.set_params(**wrong)
        with pytest.raises(ValueError, match=r"not negative|not returning a positive definite"):
            model.fit(np.zeros((20, 2)), 7 * y[:20])
        after = vars(model)
        assert all(after[name] is before[name] for name in before if name not in wrong)
        model.set_params(**{name: before[name] for name in wrong})


def test_a_theta_that_is_kept_moves_all_of_the_model(data):
    model = GaussianProcessRegressor(1.0 * RBF() + White()).fit(*data)
    value = model.log_marginal_likelihood(model.kernel_.theta + 0.3, clone_kernel=False)
    assert value == model.log_marginal_likelihood_value_
    other = held(model.kernel_).fit(*data)
    for a, b in (
        (model.predict(data[0]), other.predict(data[0])),
        (model.L_, other.L_),
        (model.alpha_, other.alpha_),
        (model.leave_one_out(), other.leave_one_out()),
    ):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_verbose_shows_progress(data, capsys):
    GaussianProcessRegressor(1.0 * RBF() + White(), verbose=1).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert ": cholesky, dense, about" in lines[0]
    assert lines[1].startswith("[GaussianProcessRegressor] start 0, evaluation 1: ")
    assert lines[-1].startswith("[GaussianProcessRegressor] log marginal likelihood ")


# ---------------------------------------------------------------------- other points, many points


def test_words():
    def common(s, t):
        return float(len(set(s) & set(t)))

    model = held(1.0 * Callable(common) + White(0.1)).fit(
        ["abc", "bcd", "xyz", "axz"], [1.0, 1.1, -1.0, -0.3]
    )
    mean, std = model.predict(["ab", "xy", "q"], return_std=True)
    assert mean[0] > 0.3 > -0.3 > mean[1] and mean[2] == 0.0
    assert std.shape == (3,)
    with pytest.raises(TypeError, match="no derivative with respect to its points"):
        model.predict_gradient(["ab"])


def test_precomputed(data):
    X, y = data
    given = held("precomputed", alpha=0.1).fit(RBF()(X), y)
    np.testing.assert_allclose(
        given.predict(RBF()(X[:5] + 1, X)), held(RBF(), alpha=0.1).fit(X, y).predict(X[:5] + 1)
    )


@pytest.mark.parametrize("solver", ["nystroem", "cg"])
def test_large_solvers_on_all_landmarks_are_nearly_exact(solver, data):
    X, y = data
    kernel = 2 * RBF() + White(0.1)
    exact = held(kernel).fit(X, y)
    model = held(kernel, solver=solver, rank=40).fit(X, y)
    Z = X[:7] + 0.3
    for a, b in zip(
        model.predict(Z, return_std=True), exact.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        exact.log_marginal_likelihood_value_, abs=1e-2
    )
    assert not hasattr(model, "L_")
    with pytest.raises(ValueError, match=r"leave_one_out needs C.-1, which solver='"):
        model.leave_one_out()
    found = GaussianProcessRegressor(kernel, solver=solver, rank=40).fit(X, y)
    best = GaussianProcessRegressor(kernel).fit(X, y)
    np.testing.assert_allclose(found.kernel_.theta, best.kernel_.theta, atol=0.05)


def test_auto_says_when_it_is_not_exact(data):
    X, y = np.tile(data[0], (5, 1)), np.tile(data[1], 5)
    model = held(RBF() + White(0.1), max_memory="400 kB", rank=5)
    with pytest.warns(UserWarning, match=r"exact Gaussian process on 200 points.*approximate"):
        model.fit(X, y)
    assert model.report_.status is Status.APPROXIMATE


def test_compress_keeps_the_mean(data):
    X, y = data
    model = held(RBF(1.5), alpha=0.1).fit(X, y)
    small = compress(model, 20)
    assert len(small.expansion_.points) <= 20
    np.testing.assert_array_equal(small.alpha_, small.expansion_.coefficients[:, 0])
    np.testing.assert_allclose(small.predict(X), model.predict(X), atol=0.05)
    np.testing.assert_array_equal(
        small.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1]
    )


def test_bad_input(data):
    X, y = data
    for alpha, text in (
        (np.full(40, -1.0), "not negative, because .*; got a minimum of -1"),
        (np.full(40, np.nan), "finite"),
        (np.ones((40, 1)), r"array of shape \(40,\), got shape \(40, 1\)"),
        (np.ones(3), r"alpha must be a scalar or an array with same number.*\(3 != 40\)"),
    ):
        with pytest.raises(ValueError, match=text):
            GaussianProcessRegressor(alpha=alpha).fit(X, y)
    for normalize in (False, True):
        with pytest.raises(ValueError, match=r"as large as .*e\+200,? overflow"):
            GaussianProcessRegressor(normalize_y=normalize).fit(X, 1e200 * y)
    for answer, text in (
        (None, r"at theta\), got None"),
        (([np.nan, 0.0], 1.0), r"2 finite parameters and the value of obj_func there, got \[nan"),
        (([0.0, 0.0], np.nan), "and nan"),
        (([0.0], 0.0), r"got \[0.\] and 0.0"),
    ):
        with pytest.raises(ValueError, match=text):
            GaussianProcessRegressor(optimizer=lambda *_, a=answer, **__: a).fit(X, y)
    with pytest.raises(ValueError, match=r"kernel=None means .* to set \['kernel__l"):
        GaussianProcessRegressor().set_params(kernel__length_scale=3.0)
    model = held(alpha=0.1, max_memory="150 kB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="the covariance of 200 predictions needs"):
        model.predict(np.tile(X, (5, 1)), return_cov=True)
    with pytest.raises(ValueError, match="'alpha' parameter"):
        GaussianProcessRegressor(alpha=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GaussianProcessRegressor().fit(X, y[1:])
    with pytest.raises(ValueError, match="'solver' parameter"):
        GaussianProcessRegressor(solver="magic").fit(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        GaussianProcessRegressor().log_marginal_likelihood()


def test_kernels_of_every_kind_are_taken(data):
    X, y = data
    for kernel in ("rbf", Periodic(3.0) * RBF() + White(), gp.Matern(), None):
        assert held(kernel, alpha=0.1).fit(X, y).score(X, y) > 0.5


# ---------------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.filterwarnings("ignore:The optimal value found for")  # without noise in the kernel
@pytest.mark.filterwarnings("ignore:the optimisation of theta stopped")
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("name", ["airfoil", "concrete", "energy", "housing", "yacht"])
def test_defaults_are_as_good_as_those_of_scikit_learn(name):
    folder = DATA / "regression" / "uci_datasets"
    if not (folder / f"{name}.csv.gz").exists():
        pytest.skip(f"no {name}.csv.gz: set MERCER_DATA")
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",")
    with np.load(folder / f"{name}_fold.npz", allow_pickle=False) as file:
        test = file["fold"] == 0
    train = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:300]
    table = (table - table[train].mean(axis=0)) / np.maximum(table[train].std(axis=0), 1e-12)
    X, y = table[:, :-1], table[:, -1]
    errors = [
        np.sqrt(np.mean((model().fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2))
        for model in (GaussianProcessRegressor, theirs.GaussianProcessRegressor)
    ]
    assert errors[0] <= 1.001 * errors[1]


# ---------------------------------------------------------------------- many points


@pytest.mark.parametrize("solver", ["nystroem", "cg"])
def test_the_default_kernel_of_the_approximate_solvers_has_noise(solver, data):
    X, y = data
    model = GaussianProcessRegressor(solver=solver, rank=20).fit(X, y)
    assert isinstance(model.kernel_.terms[-1], White)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.abs(mean - y) < 4 * std)
    certificate = model.report_.certificate
    name = "log p >=" if solver == "nystroem" else "log marginal likelihood"
    assert model.log_marginal_likelihood_value_ == certificate[name]


def test_a_noise_too_small_for_the_landmarks_is_reported(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match="times the noise unexplained") as caught:
        held(RBF(0.3), solver="nystroem", rank=5).fit(X, y)
    assert caught[0].filename == __file__


def test_what_auto_has_chosen_is_in_the_report(data):
    X, y = data
    with pytest.warns(UserWarning, match="inducing points are used") as caught:
        model = held(RBF() + White(), rank=1, max_memory=24_000, landmarks=X[:1]).fit(
            X[:39], y[:39]
        )
    assert caught[0].filename == __file__
    assert model.report_.message.startswith("chosen by solver='auto'")


def test_a_search_without_convergence_is_in_the_status(data, monkeypatch):
    from mercer.estimators.gaussian_process import _gp_kernel_parameters as search
    from mercer.models.gp import Optimum

    theta = (RBF() + White()).theta
    ended = Optimum(theta, 1.0, 7, converged=False, message="the end")
    monkeypatch.setattr(search, "maximise", lambda *_, **__: ended)
    with pytest.warns(ConvergenceWarning, match=r"the end. Try more landmarks \(rank\), or"):
        model = GaussianProcessRegressor(RBF() + White(), solver="cg", rank=20).fit(*data)
    assert model.report_.status is Status.NOT_CONVERGED


def test_a_part_that_is_precomputed_makes_points_rows(data):
    X, y = data
    ours = held(2 * Precomputed() + White(0.1))
    scores = cross_val_score(ours, RBF()(X), y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(held(2 * RBF() + White(0.1)), X, y, cv=3))


def test_variances_of_precomputed_values_need_the_matrix(data):
    X, y = data
    model = held("precomputed", alpha=0.1).fit(RBF()(X), y)
    cross = RBF()(X[:5], X)
    assert model.predict(cross).shape == (5,)
    for new in (cross, RBF()(X + 1, X)):  # the diagonal of a square matrix is not k(x, x) either
        with pytest.raises(ValueError, match=r"variances need k.x, x., .* indices as X"):
            model.predict(new, return_std=True)


# the optimum is on a bound
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", ["periodic", "sum"])
def test_few_points_lead_to_the_optimum_of_scikit_learn(case):
    """There are several optima, and the first step, to a corner of the bounds, selects one."""
    rng = np.random.default_rng(0)
    if case == "periodic":
        X = np.sort(30.0 * rng.random((100, 1)), axis=0)
        y = np.sin(X[:, 0]) + 0.4 * rng.normal(size=100)
        kernel = 1.0 * gp.ExpSineSquared(1.0, 5.0, periodicity_bounds=(1e-2, 1e1)) + gp.WhiteKernel(
            0.1
        )
    else:
        X = rng.normal(size=(200, 3))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=200)
        kernel = 1.0 * gp.RBF() + 1.0 * gp.Matern() + gp.WhiteKernel()
    ours = GaussianProcessRegressor(kernel).fit(X, y)
    want = theirs.GaussianProcessRegressor(kernel).fit(X, y)
    value = want.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ > value - 1e-4  # or a better one
