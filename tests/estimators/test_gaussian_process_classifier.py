"""Gaussian process classification: scikit-learn's values, several classes, structured points."""

import inspect
import pickle

import numpy as np
import pytest
import sklearn.gaussian_process as theirs
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF as TheirRBF
from sklearn.gaussian_process.kernels import ConstantKernel

from mercer import GaussianProcessClassifier, MemoryBudgetError, NotPositiveDefiniteError, compress
from mercer.kernels import RBF, Linear, Normalized, Precomputed, Sigmoid, Spectrum, White
from mercer.models.gp import LaplaceLikelihood, expected_probability

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
Z = rng.normal(size=(15, 2))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80) > 0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
NOISY = np.digitize(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80), [-0.7, 0.7])
KERNEL = 2.0 * RBF((1.0, 2.0))
THEIRS = ConstantKernel(2.0) * TheirRBF([1.0, 2.0])


def test_values_and_gradients_are_those_of_scikit_learn():
    ours = GaussianProcessClassifier(THEIRS, optimizer=None).fit(X, Y)
    peer = theirs.GaussianProcessClassifier(THEIRS, optimizer=None).fit(X, Y)
    for theta in (THEIRS.theta, THEIRS.theta + 0.7):
        value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
        expected, slopes = peer.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5)
    for mine, their in zip(
        ours.latent_mean_and_variance(Z), peer.latent_mean_and_variance(Z), strict=True
    ):
        np.testing.assert_allclose(mine, their, rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(Z), peer.predict(Z))
    np.testing.assert_allclose(ours.predict_proba(Z), peer.predict_proba(Z), atol=1e-3)


def test_the_optimum_is_as_good_as_that_of_scikit_learn():
    ours = GaussianProcessClassifier(THEIRS).fit(X, Y)
    peer = theirs.GaussianProcessClassifier(THEIRS).fit(X, Y)
    least = peer.log_marginal_likelihood_value_ - 1e-4
    assert ours.log_marginal_likelihood_value_ >= least
    assert ours.report_.status.value == "converged"


@pytest.mark.parametrize("kernel", [KERNEL, 0.5 * Linear() + White(0.3), KERNEL + 1.0], ids=str)
def test_the_gradient_is_that_of_differences(kernel):
    objective = LaplaceLikelihood(kernel, X, Y)
    _, gradient = objective.value_and_gradient()
    steps = 1e-5 * np.eye(kernel.theta.size)
    slopes = [
        (objective.value(kernel.theta + e) - objective.value(kernel.theta - e)) / 2e-5
        for e in steps
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)


def test_probabilities_are_expectations():
    means, variances = np.array([-3.0, 0.0, 0.4, 8.0]), np.array([0.0, 2.0, 30.0, 4.0])
    expected = [
        quad(lambda f, m=m, v=v: expit(f) * norm.pdf(f, m, np.sqrt(v)), m - 60, m + 60, points=[m])[
            0
        ]
        if v
        else expit(m)
        for m, v in zip(means, variances, strict=True)
    ]
    np.testing.assert_allclose(expected_probability(means, variances), expected, atol=1e-7)


def test_several_classes_by_rest_and_by_pairs():
    rest = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, THREE)
    assert len(rest.expansions_) == len(rest.kernel_) == len(rest.reports_) == 3
    P = rest.predict_proba(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(rest.predict(Z), P.argmax(axis=1))
    peer = theirs.GaussianProcessClassifier(THEIRS, optimizer=None).fit(X, THREE)
    np.testing.assert_allclose(P, peer.predict_proba(Z), atol=1e-3)
    assert rest.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood())
    pairs = GaussianProcessClassifier(KERNEL, optimizer=None, multi_class="one_vs_one")
    pairs.fit(X, THREE)
    assert pairs.score(X, THREE) > 0.85
    assert not hasattr(pairs, "predict_proba")
    np.testing.assert_array_equal(
        pairs.predict(Z),
        theirs.GaussianProcessClassifier(THEIRS, optimizer=None, multi_class="one_vs_one")
        .fit(X, THREE)
        .predict(Z),
    )


def test_a_theta_for_all_functions_or_for_each():
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, THREE)
    one = model.log_marginal_likelihood(KERNEL.theta)
    assert one == pytest.approx(model.log_marginal_likelihood(np.tile(KERNEL.theta, 3)))
    assert one == pytest.approx(model.log_marginal_likelihood())
    with pytest.raises(ValueError, match="Shape of theta must be either 3 or 9"):
        model.log_marginal_likelihood(np.zeros(4))
    with pytest.raises(NotImplementedError, match="not implemented for multi-class"):
        model.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)


def test_strings():
    words = ["".join(rng.choice(list("ab" if i % 2 else "bc"), size=8)) for i in range(30)]
    labels = np.where(np.arange(30) % 2, "first", "second")
    model = GaussianProcessClassifier(3.0 * Normalized(Spectrum(2)), optimizer=None)
    assert model.fit(words, labels).score(words, labels) > 0.9
    assert model.predict_proba(["abab", "cbcb"]).argmax(axis=1).tolist() == [0, 1]


def test_a_warm_start_ends_where_a_cold_one_does():
    cold = GaussianProcessClassifier(KERNEL).fit(X, Y)
    warm = GaussianProcessClassifier(KERNEL, warm_start=True).fit(X, Y)
    np.testing.assert_allclose(warm.predict_proba(Z), cold.predict_proba(Z), atol=1e-4)


def test_bad_input():
    model = GaussianProcessClassifier(KERNEL)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X, np.zeros(80))
    with pytest.raises(ValueError, match=r"predictions need k\(x, x\) of new points"):
        GaussianProcessClassifier("precomputed").fit(X @ X.T, Y)
    with pytest.raises(MemoryBudgetError, match="a Gaussian process on 80 points"):
        clone(model).set_params(max_memory=10_000).fit(X, Y)
    with pytest.raises(ValueError, match="one column of 0 and 1"):
        LaplaceLikelihood(KERNEL, X, 2 * Y)
    with pytest.raises(ValueError, match="compress its expansion_"):
        compress(clone(model).set_params(optimizer=None).fit(X, Y), 5)
    with pytest.raises(ValueError, match="only supported for binary classification, received 3"):
        clone(model).set_params(optimizer=None).fit(X, THREE).latent_mean_and_variance(Z)
    indices = np.arange(80)
    held = GaussianProcessClassifier(Precomputed(KERNEL(X)), optimizer=None).fit(indices, Y)
    assert held.score(indices, Y) > 0.8


def test_few_steps_are_reported():
    with pytest.warns(UserWarning, match="not converged after 1 Newton steps"):
        GaussianProcessClassifier(9.0 * KERNEL, optimizer=None, max_iter_predict=1).fit(X, Y)


def test_a_bound_is_reported():
    kernel = ConstantKernel(1.0, (0.9, 1.1)) * TheirRBF(1.0)
    with pytest.warns(ConvergenceWarning, match="k1__constant_value is close to the specified"):
        GaussianProcessClassifier(kernel).fit(X, Y)


# ------------------------------------------------------------------ all classes in one model


def multinomial(kernel=KERNEL, **options):
    return GaussianProcessClassifier(kernel, multi_class="multinomial", **options)


def test_the_multinomial_form_has_one_kernel_one_likelihood_and_a_function_per_class():
    names = np.array(["low", "middle", "high"])[NOISY]
    model = multinomial().fit(X, names)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert len(model.expansion_) == 3 and model.expansions_ == [model.expansion_]
    assert model.report_.status.value == "converged"
    theta = model.kernel_.theta
    value, slopes = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood_value_
    assert value > multinomial(optimizer=None).fit(X, names).log_marginal_likelihood_value_
    assert np.abs(slopes).max() < 0.02 * np.sqrt(len(X))
    P = model.predict_proba(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(Z), model.classes_[P.argmax(axis=1)])
    assert model.score(X, names) > 0.75
    mean, variance = model.latent_mean_and_variance(Z)
    np.testing.assert_array_equal(mean, model.expansion_(Z))
    assert mean.shape == variance.shape == (15, 3) and (variance > 0).all()
    with pytest.raises(ValueError, match=r"theta must be 3\. Obtained"):
        model.log_marginal_likelihood(np.zeros(9))
    moved = model.log_marginal_likelihood(KERNEL.theta, clone_kernel=False)
    assert moved == model.log_marginal_likelihood() and model.kernel_ == KERNEL
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))


def test_two_classes_are_those_of_twice_the_kernel():
    two = multinomial(optimizer=None).fit(X, Y)
    one = GaussianProcessClassifier(2.0 * KERNEL, optimizer=None).fit(X, Y)
    assert two.log_marginal_likelihood_value_ == pytest.approx(one.log_marginal_likelihood_value_)
    np.testing.assert_allclose(two.predict_proba(Z), one.predict_proba(Z), atol=1e-9)
    np.testing.assert_array_equal(two.predict(Z), one.predict(Z))
    both = zip(two.latent_mean_and_variance(Z), one.latent_mean_and_variance(Z), strict=True)
    for mine, other in both:
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_scikit_learns_kernels_restarts_and_warm_starts_find_the_same_theta():
    ours = multinomial().fit(X, NOISY)
    other = multinomial(THEIRS, warm_start=True, n_restarts_optimizer=1, random_state=0)
    other.fit(X, NOISY)
    assert other.log_marginal_likelihood_value_ == pytest.approx(
        ours.log_marginal_likelihood_value_, abs=1e-4
    )
    assert isinstance(other.kernel_, type(THEIRS))
    np.testing.assert_allclose(other.predict_proba(Z), ours.predict_proba(Z), atol=2e-3)


def test_three_classes_of_strings():
    words = ["".join(rng.choice(list(("ab", "bc", "ca")[i % 3]), size=8)) for i in range(30)]
    labels = np.array(["ab", "bc", "ca"])[np.arange(30) % 3]
    model = multinomial(3.0 * Normalized(Spectrum(2)), optimizer=None).fit(words, labels)
    assert model.score(words, labels) > 0.9
    assert model.predict(["abab", "cbcb", "acac"]).tolist() == ["ab", "bc", "ca"]


def test_a_model_is_what_was_fitted_whatever_is_set_later():
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, THREE)
    before = model.predict(Z)
    model.set_params(multi_class="one_vs_one")
    np.testing.assert_array_equal(model.predict(Z), before)
    assert hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, THREE), "predict_proba")


def test_what_each_function_keeps_counts():
    # One function needs 3 arrays of 80 x 80, and five store one each.
    five, options = np.arange(80) % 5, {"optimizer": None}
    assert GaussianProcessClassifier(KERNEL, max_memory="160 KiB", **options).fit(X, Y)
    with pytest.raises(MemoryBudgetError, match="a Gaussian process on 80 points needs"):
        GaussianProcessClassifier(KERNEL, max_memory="300 KiB", **options).fit(X, five)
    with pytest.raises(MemoryBudgetError, match="on 80 points of 5 classes needs 450"):
        multinomial(max_memory="440 KiB", **options).fit(X, five)
    assert multinomial(max_memory="460 KiB", **options).fit(X, five)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_an_indefinite_kernel_is_reported_in_terms_of_a_classifier():
    with pytest.raises(NotPositiveDefiniteError, match="Try a kernel that is positive semi") as e:
        multinomial(50.0 * Sigmoid(1.0, 1.0), optimizer=None).fit(X, THREE)
    assert "alpha" not in str(e.value)


def test_without_an_optimizer_the_defaults_are_those_of_scikit_learn():
    for labels in (Y, THREE):
        ours = GaussianProcessClassifier(optimizer=None).fit(X, labels)
        peer = theirs.GaussianProcessClassifier().fit(X, labels)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)
        np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
        np.testing.assert_array_equal(ours.classes_, peer.classes_)
        assert ours.n_classes_ == peer.n_classes_
        value, expected = (m.log_marginal_likelihood_value_ for m in (ours, peer))
        assert value == pytest.approx(expected, rel=1e-6)
    shared = set(inspect.signature(theirs.GaussianProcessClassifier).parameters)
    assert shared <= set(inspect.signature(GaussianProcessClassifier).parameters)


def test_a_mode_that_rounding_prevents_is_reported():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = GaussianProcessClassifier(kernel=1e300 * RBF(), optimizer=None)
    with pytest.warns(UserWarning, match=r"not converged after 1 Newton .*; the kernel values are"):
        model.fit(X, X[:, 0] > 0)
