"""tune(): its results, the supported estimators, and errors."""

import numpy as np
import pytest
from data_folder import DATA
from sklearn.model_selection import GridSearchCV

from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelRidge,
    MultipleKernel,
    tune,
)
from mercer.estimators import Tuned, _tune
from mercer.kernels import RBF, Fixed, Linear, Matern, Select, Spectrum, White
from mercer.models.gp import MarginalLikelihood
from mercer.models.kernel_learning import TargetAlignment

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=120)
LABELS = np.where(Y > 0.4, "a", np.where(Y < -0.4, "b", "c"))
NEW = np.random.default_rng(1).normal(size=(300, 3))
TRUTH = np.sin(2 * NEW[:, 0]) + 0.3 * NEW[:, 1]
OBJECTIVES = ["loo", "gcv", "likelihood", "alignment"]


def error(model):
    return float(np.mean((model.predict(NEW) - TRUTH) ** 2))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_as_good_as_a_grid(objective):
    base = KernelRidge(kernel="rbf", fit_intercept=True)
    grid = {"alpha": np.geomspace(1e-3, 1, 5), "gamma": np.geomspace(0.02, 2, 8)}
    best = GridSearchCV(base, grid, scoring="neg_mean_squared_error").fit(X, Y)
    found = tune(base, X, Y, objective)
    assert found.converged
    assert error(found.estimator.fit(X, Y)) < 1.3 * error(best)
    assert base.kernel == "rbf"  # the given model does not change


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_length_scales_of_columns_say_which_matter(objective):
    isotropic = tune(KernelRidge(kernel=RBF(), fit_intercept=True), X, Y, objective).estimator
    ard = tune(KernelRidge(kernel=RBF([1.0] * 3), fit_intercept=True), X, Y, objective).estimator
    scales = np.array(ard.kernel.length_scale)
    assert scales[2] > 3 * scales[0]
    assert error(ard.fit(X, Y)) < 0.8 * error(isotropic.fit(X, Y))


def test_the_value_is_the_error_of_leave_one_out():
    found = tune(KernelRidge(kernel=RBF(), fit_intercept=True), X, Y)
    model = found.estimator.fit(X, Y)
    assert found.value == pytest.approx(np.mean((Y - model.leave_one_out()) ** 2), rel=1e-9)
    values = [value for value, _ in found.history]
    assert min(values) == pytest.approx(found.value)
    assert len(values) == found.evaluations


@pytest.mark.parametrize("objective", ["loo", "alignment"])
@pytest.mark.parametrize(
    "model",
    [SVC(), KernelLogisticRegression(), GaussianProcessClassifier(1.0 * RBF()), SVR(epsilon=0.05)],
    ids=lambda m: type(m).__name__,
)
def test_other_losses_through_least_squares(model, objective):
    y = Y if isinstance(model, SVR) else LABELS
    found = tune(model, X, y, objective).estimator
    truth = TRUTH if y is Y else np.where(TRUTH > 0.4, "a", np.where(TRUTH < -0.4, "b", "c"))
    assert found.fit(X, y).score(NEW, truth) > 0.7
    if isinstance(model, GaussianProcessClassifier):
        assert found.optimizer is None


def test_gaussian_processes():
    noisy = tune(GaussianProcessRegressor(1.0 * RBF() + White(0.1)), X, Y, "likelihood")
    fitted = GaussianProcessRegressor(1.0 * RBF() + White(0.1)).fit(X, Y)
    assert noisy.value == pytest.approx(fitted.log_marginal_likelihood_value_, abs=1e-3)
    assert noisy.estimator.alpha == 1e-10
    assert noisy.estimator.fit(X, Y).kernel_ == noisy.estimator.kernel
    plain = tune(GaussianProcessRegressor(1.0 * RBF()), X, Y, "likelihood")
    assert plain.value == pytest.approx(noisy.value, abs=1e-2)
    assert plain.estimator.alpha == pytest.approx(noisy.estimator.kernel.terms[1].noise, rel=0.05)
    value = MarginalLikelihood(plain.estimator.kernel, X, Y, plain.estimator.alpha).value()
    assert value == pytest.approx(plain.value, rel=1e-9)
    left_out = tune(GaussianProcessRegressor(1.0 * RBF() + White(0.1)), X, Y, "loo")
    assert error(left_out.estimator.fit(X, Y)) < 0.05
    assert error(tune(GaussianProcessRegressor(RBF()), X, Y, "gcv").estimator.fit(X, Y)) < 0.1


def test_parameters_that_are_held_stay():
    found = tune(KernelRidge(kernel=Fixed(RBF(0.7)) + Matern(2.0)), X, Y).estimator
    assert found.kernel.terms[0] == Fixed(RBF(0.7))
    assert found.kernel.terms[1] != Matern(2.0)
    white = tune(KernelRidge(0.5, kernel=RBF() + White(0.1)), X, Y).estimator
    assert white.alpha == 0.5
    other = tune(KernelMachineRegressor(alpha=0.5), X, Y).estimator
    assert other.alpha == 0.5
    assert isinstance(other.kernel, RBF)


def test_weights_of_points_and_structured_points():
    weights = np.where(X[:, 0] > 0, 1.0, 1e-6)  # almost excludes the left half
    half = X[:, 0] > 0
    a = tune(KernelRidge(kernel=RBF()), X, Y, sample_weight=weights).estimator
    b = tune(KernelRidge(kernel=RBF()), X[half], Y[half]).estimator
    assert a.kernel.length_scale == pytest.approx(b.kernel.length_scale, rel=0.3)
    words = ["aab", "ab", "abb", "bba", "ba", "baa", "aaab", "bbba"]
    found = tune(KernelRidge(kernel=Spectrum(2)), words, [1.0, 1, 1, 0, 0, 0, 1, 0])
    assert found.names == ["alpha"]


def test_several_kernels_go_on_from_their_weights():
    kernel = MultipleKernel([Select(RBF(), [0]), Select(RBF(), [1])], "alignf")
    found = tune(KernelRidge(kernel=kernel, fit_intercept=True), X, Y).estimator
    assert len(found.kernel.terms) == 2
    assert error(found.fit(X, Y)) < 0.05


def test_the_gradient_of_the_alignment():
    for weights in (None, RNG.integers(1, 4, 30).astype(float)):
        objective = TargetAlignment(RBF([1.0, 2.0, 3.0]) + Linear(), X[:30], Y[:30, None], weights)
        _, gradient = objective.value_and_gradient()
        for i, slope in enumerate(gradient):
            step = 1e-5 * np.eye(3)[i]
            up, down = (objective.value(objective.start + s * step) for s in (1, -1))
            assert slope == pytest.approx((up - down) / 2e-5, rel=1e-5)


def test_what_it_says(capsys):
    found = tune(KernelRidge(kernel=RBF([1.0] * 3)), X, Y, verbose=1)
    assert isinstance(found, Tuned)
    text = str(found)
    assert text.startswith("loo 0.0")
    assert "length_scale[2]  1 -> " in text  # starts from the given value
    assert "alpha" in text
    assert "[tune] evaluation 1:" in capsys.readouterr().out


def test_many_points_are_said_to_be_too_many(monkeypatch):
    monkeypatch.setattr(_tune, "_TUNING", _tune._Tuning(max_points=60))
    with pytest.warns(UserWarning, match="so it uses a random sample of 60"):
        found = tune(KernelRidge(kernel=RBF()), X, Y)
    assert "60 of 120 points" in found.message
    again = tune(KernelRidge(kernel=RBF()), X, Y, subsample=60)
    assert again.estimator.kernel == found.estimator.kernel
    assert tune(KernelRidge(kernel=RBF()), X, Y, subsample=None).message != found.message


def test_a_kernel_without_parameters_leaves_alpha():
    assert tune(KernelRidge(), X, Y).names == ["alpha"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((KernelRidge(kernel="precomputed"), X @ X.T, Y), ValueError, "no parameters"),
        ((KernelKMeans(), X, Y), TypeError, "a regressor or a classifier"),
        ((RBF(), X, Y), TypeError, "a regressor or a classifier"),
        ((KernelRidge(), X, Y, "aic"), ValueError, "objective"),
        ((KernelRidge(), X, Y, "alignment"), ValueError, "use objective='loo'"),
        ((KernelRidge(), X, np.ones(120)), ValueError, "all 120 targets are equal"),
        ((KernelMachineRegressor(kernel=Linear()), X, Y), ValueError, "nothing to tune"),
        ((GaussianProcessRegressor(alpha=np.ones(120)), X, Y), ValueError, "one number"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        tune(*arguments)


def test_bad_subsamples_and_memory():
    with pytest.raises(ValueError, match="subsample must be"):
        tune(KernelRidge(), X, Y, subsample=0)
    with pytest.raises(MemoryError, match="budget"):
        tune(KernelRidge(kernel=RBF(), max_memory="100 kB"), X, Y)


@pytest.mark.data
def test_ard_on_real_data():
    folder = DATA
    file = folder / "regression" / "uci_datasets" / "concrete.csv.gz"
    if not file.exists():
        pytest.skip("no data")
    table = np.random.default_rng(0).permutation(np.loadtxt(file, delimiter=","))[:600]
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    points, y = table[:, :-1], table[:, -1]
    train = np.arange(len(y)) % 4 != 0
    errors = [
        np.mean(
            (
                tune(KernelRidge(kernel=kernel, fit_intercept=True), points[train], y[train])
                .estimator.fit(points[train], y[train])
                .predict(points[~train])
                - y[~train]
            )
            ** 2
        )
        for kernel in (RBF([2.0] * 8), RBF(2.0))
    ]
    assert errors[0] < errors[1]


def test_alignment_of_a_kernel_with_noise_leaves_the_regularisation_alone():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelRidge(kernel=RBF() + White(0.1), alpha=0.5)
    tuned = tune(model, X, X[:, 0], objective="alignment")
    assert tuned.estimator.alpha == 0.5
