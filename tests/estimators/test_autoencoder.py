"""The autoencoder: gradients against differences, PCA in the linear case, Adam, real data."""

import warnings

import numpy as np
import pytest
from data_folder import DATA
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

from mercer import Autoencoder, MemoryBudgetError, embedding_quality
from mercer._core import resource_scope
from mercer.models.embedding import MLP, Adam, ReconstructionLoss, fit_autoencoder
from mercer.models.embedding._adam import adam_minimise

rng = np.random.default_rng(0)
t = rng.uniform(-2.0, 2.0, size=(150, 1))
X = np.hstack([t, t**2, np.sin(2 * t), 0.3 * t**3]) + 0.02 * rng.normal(size=(150, 4)) + 1.0
QUICK = {"hidden_layer_sizes": (10,), "tol": 1e-3}


@pytest.fixture(scope="module")
def model():
    return Autoencoder(1, **QUICK).fit(X)


@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu", "identity"])
@pytest.mark.parametrize("hidden", [(), (5,), (6, 3)], ids=str)
def test_slopes_are_those_of_differences(activation, hidden):
    Y = np.random.default_rng(1).normal(size=(20, 4))
    E = ReconstructionLoss(Y, (4, *hidden, 2), activation, alpha=0.03)
    theta = E.start(np.random.default_rng(2))
    found = E(theta)[1]
    h = 1e-5
    differences = [(E(theta + h * e)[0] - E(theta - h * e)[0]) / (2 * h) for e in np.eye(E.size)]
    np.testing.assert_allclose(found, differences, atol=1e-6 * np.abs(found).max())


def test_loss_is_its_formula():
    Y = rng.normal(size=(30, 3))
    E = ReconstructionLoss(Y, (3, 4, 2), "tanh", alpha=0.1)
    theta = E.start(np.random.default_rng(0))
    encoder, decoder = E.halves(theta)
    (A, B), (a, b) = encoder.weights, encoder.biases
    (C, D), (c, d) = decoder.weights, decoder.biases
    back = np.tanh((np.tanh(Y @ A + a) @ B + b) @ C + c) @ D + d
    decay = sum(np.sum(W**2) for W in (A, B, C, D))
    expected = np.sum((Y - back) ** 2) / np.sum(Y**2) + 0.1 * decay
    assert E(theta)[0] == pytest.approx(expected, rel=1e-12)
    assert encoder.theta.tolist() + decoder.theta.tolist() == theta.tolist()


def test_linear_units_find_the_plane_of_pca():
    Y = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(100, 6))
    ours = Autoencoder(
        2, hidden_layer_sizes=(), activation="identity", alpha=0.0, tol=1e-8, n_init=1
    ).fit(Y)
    theirs = PCA(2).fit(Y)
    lost = np.mean((Y - theirs.inverse_transform(theirs.transform(Y))) ** 2)
    assert -ours.score(Y) == pytest.approx(lost, rel=1e-6)
    assert ours.losses_[0] == pytest.approx(lost / Y.var(axis=0).mean(), rel=1e-6)


def test_a_curve_is_unrolled(model):
    Z = model.transform(X)
    rank = np.argsort(np.argsort(Z[:, 0]))
    true = np.argsort(np.argsort(t[:, 0]))
    assert abs(np.corrcoef(rank, true)[0, 1]) > 0.99
    assert -model.score(X) < 0.01 * X.var(axis=0).mean()
    assert embedding_quality(X, Z).trustworthiness[4] > 0.99
    errors = np.mean((X - model.inverse_transform(Z)) ** 2, axis=1)
    np.testing.assert_allclose(model.score_samples(X), -errors)


def test_axes_are_principal_and_centred():
    Y = np.hstack([X, rng.normal(size=(150, 2))])
    Z = Autoencoder(2, **QUICK, n_init=1).fit_transform(Y)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    C = np.cov(Z.T)
    assert abs(C[0, 1]) < 1e-10 and C[0, 0] > C[1, 1]


def test_restarts_are_reported(model):
    assert model.losses_.shape == (3,) and model.report_.certificate["restarts"] == 3
    assert model.report_.certificate["spread"] == np.ptp(model.losses_) > 0
    assert model.report_.certificate["loss"] == model.losses_.min()
    assert model.report_.status.name == "CONVERGED" and model.report_.residual <= 1e-3
    assert model.n_iter_ == model.report_.n_iter > 10
    text = model.summary()
    assert text.startswith("Autoencoder 4-10-1-10-4, tanh\n  solver     L-BFGS(n_init=3)")
    assert f"lost       {model.losses_.min():.4g} to {model.losses_.max():.4g}" in text


def test_the_seed_decides(model):
    again = Autoencoder(1, **QUICK, random_state=0).fit(X)
    other = Autoencoder(1, **QUICK, random_state=1).fit(X)
    assert again.transform(X).tobytes() == model.transform(X).tobytes()
    assert not np.array_equal(other.losses_, model.losses_)


def test_threads_and_blocks_change_nothing(monkeypatch):
    Y = np.repeat(X, 10, axis=0) + 0.01 * rng.normal(size=(1500, 4))
    E = ReconstructionLoss(Y, (4, 6, 1), "tanh", 1e-4)
    theta = E.start(np.random.default_rng(0))
    value, slope = E(theta)
    for count in (1, 2):
        with resource_scope(n_threads=count):
            again = E(theta)
            assert again[0] == value and again[1].tobytes() == slope.tobytes()
    monkeypatch.setattr("mercer.models.embedding._autoencoder_training._ROWS_PER_BLOCK", 100)
    monkeypatch.setattr("mercer.models.embedding._autoencoder_training._VALUES_PER_BLOCK", 100)
    smaller = ReconstructionLoss(Y, (4, 6, 1), "tanh", 1e-4)
    np.testing.assert_allclose(smaller(theta)[1], slope, atol=1e-12)
    encoder, _ = E.halves(theta)
    np.testing.assert_allclose(encoder(Y), encoder.values(Y)[-1], rtol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**500])  # scaling by powers of 2 is exact
def test_units_do_not_matter(model, unit):
    scaled = Autoencoder(1, **QUICK).fit(unit * X)
    np.testing.assert_array_equal(scaled.losses_, model.losses_)
    assert np.isfinite(scaled.inverse_transform(scaled.transform(unit * X))).all()


def test_an_end_before_convergence_is_reported():
    with pytest.warns(
        ConvergenceWarning, match=r"after 3 steps \(max_iter=3\) with a gradient .* more than tol="
    ):
        model = Autoencoder(1, max_iter=3).fit(X)
    assert model.report_.status.name == "NOT_CONVERGED"


def test_verbose(capsys):
    Autoencoder(1, **QUICK, n_init=2, verbose=1).fit(X)
    out = capsys.readouterr().out
    assert "[Autoencoder] restart 1 of 2, step 1: " in out and " of the variance lost" in out
    assert "in the best of 2 restarts" in out


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (X, {"n_components": 5}, "n_components=5 is too large for n_features=4; use at most 4"),
        (X[:1], {}, "1 sample"),
        (np.ones((5, 3)), {}, "all 5 rows of X are equal.*constant columns"),
        (np.where(X > 3, np.nan, X), {}, "NaN"),
        (["GATTACA", "CC"], {}, "requires vectors, but X contains strings"),
        (X, {"hidden_layer_sizes": (3, 0)}, r"must be positive integers, got \(3, 0\)"),
        (X, {"hidden_layer_sizes": (2.5,)}, r"must be positive integers, got \(2.5,\)"),
        (X, {"activation": "sine"}, "activation"),
        (X, {"solver": "sgd"}, "solver"),
        (X[:2], {"solver": "adam", "early_stopping": True, "validation_fraction": 0.9}, "none to"),
        (X, {"solver": "adam", "learning_rate_init": 1e15}, "decrease learning_rate_init=1e"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, message):
    with pytest.raises(ValueError, match=message):
        Autoencoder(**options).fit(data)


def test_a_constant_column_comes_back():
    wide = np.c_[X, np.full(len(X), 3.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Autoencoder(1, **QUICK).fit(wide)
    np.testing.assert_allclose(model.inverse_transform(model.transform(wide))[:, 4], 3.0, atol=0.1)


def test_places_of_another_size(model):
    with pytest.raises(ValueError, match="the embedding has 1 dimensions, but X has 3 columns"):
        model.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(NotFittedError):
        Autoencoder().summary()
    assert Autoencoder(**QUICK, n_init=1).fit(X).transform(X).shape == (150, 2)


def test_the_function_is_the_estimator(model):
    found = fit_autoencoder(X, 1, (10,), tol=1e-3, rng=np.random.default_rng(0))
    assert isinstance(found.encoder, MLP)
    np.testing.assert_array_equal(found.encoder(X), model.transform(X))


DEEP = {"hidden_layer_sizes": (64, 32), "solver": "adam", "random_state": 0}
digits = load_digits().data


def test_batches_average_to_the_loss():
    Y = rng.normal(size=(300, 3))
    E = ReconstructionLoss(Y, (3, 4, 2), "tanh", alpha=0.1)
    theta = E.start(np.random.default_rng(0))
    parts = [E(theta, rows) for rows in np.array_split(rng.permutation(300), 3)]
    value, gradient = E(theta)
    assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, atol=1e-12)
    undecayed = ReconstructionLoss(Y, (3, 4, 2), "tanh", alpha=0.0)
    assert E.lost_variance(theta) == pytest.approx(undecayed(theta)[0], rel=1e-12)
    single = ReconstructionLoss(Y.astype(np.float32), (3, 4, 2), "tanh", alpha=0.1)
    lower = single(theta.astype(np.float32))
    assert lower[1].dtype == np.float32 and lower[0] == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(lower[1], gradient, atol=1e-5)


def test_steps_of_adam_are_those_of_scikit_learn():
    A, b, options = rng.normal(size=(40, 6)), rng.normal(size=40), Adam(16, 0.1)

    def gradient(theta, rows):
        error = A[rows] @ theta - b[rows]
        return float(error @ error) / len(rows), 2.0 * A[rows].T @ error / len(rows)

    found = adam_minimise(gradient, np.zeros(6), 40, options, 7, np.random.default_rng(3))
    theta, draw = np.zeros(6), np.random.default_rng(3)
    theirs = AdamOptimizer([theta])
    for step in range(1, 22):  # three batches in each of seven epochs
        if step % 3 == 1:
            batches = np.array_split(draw.permutation(40), 3)
        theirs.learning_rate_init = options.learning_rate(step, 21)
        theirs.update_params([theta], [gradient(theta, batches[(step - 1) % 3])[1]])
    np.testing.assert_allclose(found.theta, theta, rtol=1e-5)
    assert options.learning_rate(21, 21) == 0.0 and options.learning_rate(3, 21) < 0.1
    long = adam_minimise(gradient, np.zeros(6), 40, options, 400, np.random.default_rng(3))
    np.testing.assert_allclose(long.theta, np.linalg.lstsq(A, b)[0], atol=1e-2)
    assert len(long.losses) == 400 and long.decrease < 0.01


def test_adam_finds_the_plane_of_pca():
    Y = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(400, 6))
    options = {"activation": "identity", "hidden_layer_sizes": (), "alpha": 0.0}
    ours = Autoencoder(2, solver="adam", learning_rate_init=0.1, max_iter=150, **options).fit(Y)
    theirs = PCA(2).fit(Y)
    lost = np.mean((Y - theirs.inverse_transform(theirs.transform(Y))) ** 2)
    assert -ours.score(Y) == pytest.approx(lost, rel=3e-3)
    assert ours.losses_[0] == pytest.approx(lost / Y.var(axis=0).mean(), rel=3e-3)


def test_a_deep_network_is_better_than_pca():
    train, test = digits[::2], digits[1::2]
    model = Autoencoder(2, **DEEP, max_iter=40).fit(train)
    pca = PCA(2).fit(train)
    lost = np.mean((test - pca.inverse_transform(pca.transform(test))) ** 2)
    assert -model.score(test) < 0.85 * lost
    report = model.report_
    assert report.solver == "Adam(batch_size=90, learning_rate_init=0.002)"
    assert report.status.name == "CONVERGED" and 0.0 < report.residual <= 0.02
    assert report.n_iter == model.n_iter_ == 40 and "0 over 40 epochs" in report.message
    assert report.certificate["loss"] == model.losses_[0] and report.certificate["gradient"] < 0.02
    assert model.summary().startswith("Autoencoder 64-64-32-2-32-64-64, relu\n  solver     Adam(")


def test_seed_and_threads_of_adam():
    fits = [
        Autoencoder(2, **{**DEEP, "random_state": seed}, max_iter=3, tol=1.0, n_jobs=jobs)
        .fit(digits[:600])
        .transform(digits[:5])
        .tobytes()
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    ]
    assert fits[0] == fits[1] != fits[2]


def test_early_stopping():
    noise = rng.normal(size=(60, 5))
    options = {"hidden_layer_sizes": (50,), "solver": "adam", "alpha": 0.0, "max_iter": 200}
    model = Autoencoder(2, **options, early_stopping=True, n_iter_no_change=5, n_init=2).fit(noise)
    report, certificate = model.report_, model.report_.certificate
    assert report.status.name == "APPROXIMATE" and model.n_iter_ < 200
    assert report.message.startswith("stopped early: the error on 6 held-out rows has not")
    assert model.n_iter_ == certificate["epoch"] + 5 and model.losses_.shape == (2,)
    order = np.random.default_rng(0).permutation(60)
    held, rest = noise[order[:6]], noise[order[6:]]
    expected = -model.score(held) * 5 * 6 / np.sum((held - noise.mean(axis=0)) ** 2)
    assert certificate["validation_loss"] == pytest.approx(expected, rel=1e-3)
    longer = Autoencoder(2, **options).fit(rest)  # overfits
    assert longer.score(held) < model.score(held) and longer.score(rest) > model.score(rest)


@pytest.mark.parametrize(
    ("n", "d", "options", "solver", "layers"),
    [
        (1000, 12, {}, "lbfgs", "12-20-2, 3 starts"),
        (10_000, 784, {}, "adam", "784-256-64-2, 1 start:"),
        (10_000, 784, {"solver": "exact"}, "lbfgs", "784-256-64-2, 3 starts"),
        (4999, 48, {"hidden_layer_sizes": (40,)}, "lbfgs", "48-40-2"),  # 4000 weights
        (5000, 48, {"hidden_layer_sizes": (40,)}, "adam", "48-40-2"),
    ],
)
def test_the_solver_depends_on_the_size(n, d, options, solver, layers):
    plan = Autoencoder(2, **options).plan(np.broadcast_to(0.0, (n, d)))
    assert plan.chosen.solver == solver
    assert layers in plan.summary


def test_memory_is_checked():
    model = Autoencoder(2, **DEEP, max_iter=1, tol=1.0)
    needed = model.plan(digits).chosen.required
    model.set_params(max_memory=needed).fit(digits)
    with pytest.raises(MemoryBudgetError, match="an autoencoder of 1797 points needs"):
        model.set_params(max_memory=needed - 1).fit(digits)


def test_adam_without_convergence_is_reported(capsys):
    with pytest.warns(
        ConvergenceWarning, match=r"2 epochs \(max_iter=2\), but the loss decreased by .* tol=0.02"
    ):
        model = Autoencoder(2, **DEEP, max_iter=2, verbose=1, early_stopping=True).fit(digits)
    assert model.report_.status.name == "NOT_CONVERGED" and model.report_.residual > 0.02
    out = capsys.readouterr().out
    assert "[Autoencoder] epoch 1 of 2: " in out and " of held-out rows" in out


@pytest.mark.data
def test_oil_flow():
    """Published: a test error of .014 to .017 (PCA: .0785), with 198 to 245 label errors."""
    path = DATA / "oil_flow" / "oil_flow.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as data:
        train, test = data["X_train"], data["X_test"]
    pca = PCA(2).fit(train)
    lost = np.mean((test - pca.inverse_transform(pca.transform(test))) ** 2)
    assert lost == pytest.approx(0.0785, abs=5e-5)
    model = Autoencoder(2, n_init=1, tol=5e-4).fit(train)  # for the best of 3 see the docs
    assert -model.score(test) < 0.014
    assert embedding_quality(train, model.transform(train)).trustworthiness[9] > 0.97


@pytest.mark.data
@pytest.mark.long
def test_images_of_digits():
    """Hinton and Salakhutdinov: 3.00 for 30 codes and 60,000 images; PCA: 13.87."""
    path = DATA / "mnist" / "mnist.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as data:
        train = data["X_train"].reshape(60_000, 784)[:10_000] / 255.0
        test = data["X_test"].reshape(10_000, 784)[:2000] / 255.0
    pca = PCA(30, random_state=0).fit(train)
    by_pca = 784 * np.mean((test - pca.inverse_transform(pca.transform(test))) ** 2)
    assert 12.0 < by_pca < 16.0
    layers = (1000, 500, 250)
    model = Autoencoder(30, hidden_layer_sizes=layers, max_iter=15, tol=0.1).fit(train)
    assert model.report_.solver.startswith("Adam")
    assert -784 * model.score(test) < 0.75 * by_pca
