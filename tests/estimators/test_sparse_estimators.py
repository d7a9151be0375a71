"""Learned support vectors: derivatives, closed forms, scikit-learn, and errors."""

import dataclasses
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

from mercer import (
    KernelRidge,
    MemoryBudgetError,
    NotDifferentiableError,
    NotPositiveDefiniteError,
    SparseKernelClassifier,
    SparseKernelRegressor,
)
from mercer.kernels import (
    RBF,
    Bounded,
    Callable,
    Chi2,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
)
from mercer.solvers import (
    LearnedVectors,
    Logistic,
    ReducedExpansionRisk,
    Softmax,
    Squared,
    SquaredHinge,
    Status,
)
from mercer.solvers.risk import _reduced_expansion
from mercer.testing._finite_differences import STEP, directional_derivative

rng = np.random.default_rng(7)
X = rng.normal(size=(150, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = np.stack([y, X[:, 0] ** 2], axis=1)
labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
two = y > 0
X_test = rng.normal(size=(40, 3))

KERNELS = [
    RBF(1.3),
    Matern(nu=2.5),
    Polynomial(degree=2, gamma=0.3),
    2.0 * RBF((1, 2, 3)) + Linear(),
]
LOSSES = [Squared(), SquaredHinge(), Logistic(), Softmax()]


def targets(loss, n, q, seed=0):
    """Return random targets that are valid for the loss."""
    draw = np.random.default_rng(seed)
    if isinstance(loss, Squared):
        return draw.normal(size=(n, q))
    if isinstance(loss, Softmax):
        return np.eye(q)[draw.integers(q, size=n)]
    return draw.choice([-1.0, 1.0], size=(n, q))


def risk_of(loss, kernel=KERNELS[0], n=60, q=3, **options):
    w = np.random.default_rng(1).uniform(0.2, 1.0, size=n)
    options = {"alpha": 1e-2, "intercept": True, **options}
    return ReducedExpansionRisk(kernel, X[:n], targets(loss, n, q), loss, w / w.sum(), **options)


# ---------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slopes_and_second_derivatives(loss):
    F, V = rng.normal(size=(2, 30, 3))
    Y = targets(loss, 30, 3)
    local = loss(F, Y)
    along = directional_derivative(lambda t: loss(F + t * V, Y).values, np.array(STEP)) / STEP
    np.testing.assert_allclose(np.sum(local.slopes * V, axis=1), along, atol=1e-7)
    bent = directional_derivative(lambda t: loss(F + t * V, Y).slopes, np.array(STEP)) / STEP
    np.testing.assert_allclose(local.times(V), bent, atol=1e-7)
    for c in range(3):
        unit = np.zeros((30, 3))
        unit[:, c] = 1.0
        diagonal = np.broadcast_to(local.diagonal, (30, 3))
        np.testing.assert_allclose(local.times(unit)[:, c], diagonal[:, c], atol=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=repr)
def test_losses_of_large_values_are_finite(loss):
    F = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]])
    local = loss(F, targets(loss, 2, 3))
    assert np.isfinite(local.values).all() and np.isfinite(local.slopes).all()
    assert local.values.max() >= 1e4 or local.values.min() == 0.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_of_the_objective(loss, kernel, intercept):
    risk = risk_of(loss, kernel, intercept=intercept)
    Z, DZ = rng.normal(size=(2, 5, 3))
    B, DB = 0.3 * rng.normal(size=(2, 5 + intercept, 3))
    in_Z, in_B = risk.gradient(Z, B)
    for dZ, dB in [(DZ, 0 * DB), (0 * DZ, DB)]:
        got = np.sum(in_Z * dZ) + np.sum(in_B * dB)

        def value(t, dZ=dZ, dB=dB):
            return risk.value(Z + t * dZ, B + t * dB)

        want = directional_derivative(value, np.array(STEP)) / STEP
        assert got == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_in_the_parameters_of_the_kernel(loss, kernel):
    risk = risk_of(loss, kernel)
    Z = rng.normal(size=(5, 3))
    fit = risk.fit_weights(Z)
    got = risk.theta_gradient(Z, fit.weights, fit.slopes)

    def value(move):
        return (
            dataclasses.replace(risk, kernel=kernel.with_theta(kernel.theta + move))
            .fit_weights(Z)
            .value
        )

    want = [directional_derivative(value, STEP * e) / STEP for e in np.eye(len(kernel.theta))]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_of_the_projected_objective_and_the_best_weights(loss):
    """At the optimal weights, dJ/dB = 0, and dJ/dZ is the derivative of min_B J."""
    risk = risk_of(loss)
    Z, D = rng.normal(size=(2, 5, 3))
    fit = risk.fit_weights(Z)
    B = np.vstack([fit.weights, fit.intercept])
    in_Z, in_B = risk.gradient(Z, B)
    assert fit.value == pytest.approx(risk.value(Z, B), rel=1e-12)
    assert np.abs(in_B).max() < 1e-7
    np.testing.assert_allclose(risk.vector_gradient(Z, fit.weights, fit.slopes), in_Z, atol=1e-12)
    want = (
        directional_derivative(lambda t: risk.fit_weights(Z + t * D).value, np.array(STEP)) / STEP
    )
    assert np.sum(in_Z * D) == pytest.approx(want, rel=1e-5, abs=1e-8)
    for _ in range(5):
        assert risk.value(Z, B + 0.01 * rng.normal(size=B.shape)) > fit.value


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_products_that_are_not_held_are_evaluated_again(loss):
    held, again = risk_of(loss), risk_of(loss, max_memory=1)
    Z = X[:7]
    one, other = held.fit_weights(Z), again.fit_weights(Z)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("points", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [*KERNELS, Laplacian(), Linear() + White(0.1)], ids=str)
def test_the_speed_along_columns(kernel, points):
    """d^2 k(z, z') / dz_c dz'_c is 1 / l_c^2 for the Gaussian, and 1 for the linear kernel."""
    risk = dataclasses.replace(risk_of(Squared(), kernel), X=points(X[:60]))
    got = risk.rkhs_speed(X[:25])
    if kernel == RBF(1.3):
        np.testing.assert_allclose(got, np.full(3, 1 / 1.3), rtol=1e-4)
    elif isinstance(kernel, Laplacian):
        assert np.all((got > 1) & (got < 100))  # infinite without the finite step
    elif kernel == KERNELS[3]:
        np.testing.assert_allclose(got, np.sqrt(2 / np.array([1, 4, 9]) + 1), rtol=1e-4)
    elif kernel == Linear() + White(0.1):
        np.testing.assert_allclose(got, np.ones(3), rtol=1e-6)
    else:
        assert np.all(np.isfinite(got) & (got > 0))


def test_the_speed_along_many_columns():
    scales = tuple(np.linspace(1.0, 5.0, 50))
    points = np.random.default_rng(0).normal(size=(80, 50))
    share = np.full(80, 1 / 80)
    for kernel, want in [(RBF(scales), 1 / np.array(scales)), (Linear(), np.ones(50))]:
        risk = ReducedExpansionRisk(kernel, points, np.ones((80, 1)), Squared(), share, alpha=1.0)
        np.testing.assert_allclose(risk.rkhs_speed(points[:20]), want, rtol=1e-3)


# ---------------------------------------------------------------------- closed forms


def test_best_weights_solve_the_ridge_system():
    w = rng.uniform(size=150)
    Z, kernel, alpha = X_test[:12], RBF(1.1), 1e-3
    model = SparseKernelRegressor(kernel=kernel, alpha=alpha, init=Z, max_iter=0)
    model.fit(X, Y, sample_weight=w)
    A = np.column_stack([kernel(X, Z), np.ones(150)])
    penalty = np.zeros((13, 13))
    penalty[:12, :12] = alpha * kernel(Z)
    share = w / w.sum()
    B = np.linalg.solve(A.T @ (share[:, None] * A) + penalty, A.T @ (share[:, None] * Y))
    np.testing.assert_allclose(model.dual_coef_, B[:-1], rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, B[-1], rtol=1e-6)
    objective = share @ np.square(Y - A @ B).sum(axis=1) + np.sum(B * (penalty @ B))
    np.testing.assert_allclose(model.objective_curve_, [objective], rtol=1e-9)
    np.testing.assert_array_equal(model.vectors_, Z)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine"])
def test_with_all_points_it_is_kernel_ridge_regression(kernel):
    options = {"kernel": kernel, "gamma": 0.4}
    full = KernelRidge(150 * 1e-2, **options).fit(X, Y)
    model = SparseKernelRegressor(150, alpha=1e-2, fit_intercept=False, **options).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_test), full.predict(X_test), rtol=1e-6, atol=1e-8)
    assert "whole RKHS" in model.report_.message
    assert model.n_iter_ == 0


def test_with_all_points_and_an_intercept_residuals_have_mean_zero():
    model = SparseKernelRegressor(500, alpha=1e-2).fit(X, y + 100.0)
    assert np.mean(y + 100.0 - model.predict(X)) == pytest.approx(0.0, abs=1e-8)
    shifted = SparseKernelRegressor(500, alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(
        model.predict(X_test), shifted.predict(X_test) + 100.0, rtol=1e-9, atol=1e-7
    )
    assert model.intercept_ == pytest.approx(shifted.intercept_ + 100.0)


@pytest.mark.parametrize("target", [two, labels], ids=["two", "three"])
def test_at_fixed_vectors_it_is_logistic_regression_on_features(target):
    Z, alpha, kernel = X_test[:8], 1e-3, RBF(1.2)
    model = SparseKernelClassifier(kernel=kernel, alpha=alpha, init=Z, max_iter=0).fit(X, target)
    L = np.linalg.cholesky(kernel(Z))
    theirs = LogisticRegression(C=1 / (2 * 150 * alpha), tol=1e-12, max_iter=10000)
    theirs.fit(np.linalg.solve(L, kernel(Z, X)).T, target)
    phi = np.linalg.solve(L, kernel(Z, X_test)).T
    got, want = model.predict_proba(X_test), theirs.predict_proba(phi)
    np.testing.assert_allclose(got, want, atol=2e-5)  # scikit-learn is less accurate here
    np.testing.assert_array_equal(model.predict(X_test), theirs.predict(phi))
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_, theirs.classes_)


@pytest.mark.parametrize("target", [two, labels], ids=["two", "three"])
def test_at_fixed_vectors_it_is_a_linear_svm_on_features(target):
    Z, alpha, kernel = X_test[:8], 1e-3, RBF(1.2)
    model = SparseKernelClassifier(
        kernel=kernel, alpha=alpha, init=Z, max_iter=0, loss="squared_hinge", fit_intercept=False
    ).fit(X, target)
    L = np.linalg.cholesky(kernel(Z))
    theirs = LinearSVC(C=1 / (2 * 150 * alpha), tol=1e-10, fit_intercept=False, max_iter=100000)
    theirs.fit(np.linalg.solve(L, kernel(Z, X)).T, target)
    want = theirs.decision_function(np.linalg.solve(L, kernel(Z, X_test)).T)
    np.testing.assert_allclose(model.decision_function(X_test), want, rtol=1e-5, atol=1e-5)
    assert not hasattr(model, "predict_proba")


def test_dependent_vectors_do_no_harm():
    Z = np.vstack([X[:10], X[:10], X[:1] + 1e-9])
    once = SparseKernelRegressor(init=X[:10], max_iter=0).fit(X, y)
    model = SparseKernelRegressor(init=Z, max_iter=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X_test), once.predict(X_test), atol=1e-4)
    assert np.abs(model.dual_coef_).max() < 1e4 * np.abs(once.dual_coef_).max()


# ---------------------------------------------------------------------- learning

MODELS = [
    (SparseKernelRegressor(8), y),
    (SparseKernelRegressor(8, init="rpcholesky", kernel=Matern(nu=2.5)), Y),
    (SparseKernelClassifier(6), two),
    (SparseKernelClassifier(6, loss="squared_hinge"), two),
    (SparseKernelClassifier(6, alpha=1e-3), labels),
    (SparseKernelClassifier(6, loss="squared_hinge", init="uniform"), labels),
]


@pytest.mark.parametrize(("model", "target"), MODELS, ids=lambda v: repr(v)[:60])
def test_the_objective_never_rises(model, target):
    model = clone(model).fit(X, target)
    curve = model.objective_curve_
    assert np.all(np.diff(curve) <= 0)
    start = clone(model).set_params(max_iter=0).fit(X, target)
    assert curve[0] == start.objective_curve_[0]
    assert curve[-1] < 0.9 * curve[0]
    assert len(curve) == model.n_iter_ + 1
    assert model.report_.status is Status.CONVERGED
    again = clone(model).set_params(init=model.vectors_, max_iter=0).fit(X, target)
    assert again.objective_curve_[0] == pytest.approx(curve[-1], rel=1e-8)


@pytest.mark.filterwarnings("ignore:the objective still decreased")
@pytest.mark.parametrize(("model", "target"), MODELS, ids=lambda v: repr(v)[:60])
def test_the_same_seed_gives_the_same_bits(model, target, monkeypatch):
    # three blocks of rows, for several threads
    tuning = dataclasses.replace(_reduced_expansion._TUNING, block_bytes=1)
    monkeypatch.setattr(_reduced_expansion, "_TUNING", tuning)
    monkeypatch.setattr("mercer._core._threads._MIN_PARALLEL_WORK", 0.0)
    monkeypatch.setattr("mercer._core._resources.thread_count", lambda: 3)
    first = clone(model).set_params(max_iter=5).fit(X, target)
    monkeypatch.setattr("mercer._core._resources.thread_count", lambda: 1)
    second = clone(first).set_params(random_state=0).fit(X, target)
    np.testing.assert_array_equal(first.vectors_, second.vectors_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


def test_vectors_are_found_again():
    """A sum of three Gaussians is learned exactly from other initial vectors."""
    centres = np.array([[-1.5], [0.3], [1.6]])
    x = np.linspace(-3, 3, 200)[:, None]
    f = RBF(0.7)(x, centres) @ [1.0, -2.0, 1.5]
    model = SparseKernelRegressor(
        3, kernel=RBF(0.7), alpha=1e-10, fit_intercept=False, tol=1e-6
    ).fit(x, f)
    np.testing.assert_allclose(np.sort(model.vectors_, axis=0), centres, atol=1e-3)
    assert model.score(x, f) > 1 - 1e-6


def test_learned_vectors_beat_the_same_number_of_centroids():
    digits, target = load_digits(return_X_y=True)
    train, test = slice(0, 1000), slice(1000, None)
    start = SparseKernelClassifier(15, max_iter=0).fit(digits[train], target[train])
    model = SparseKernelClassifier(15).fit(digits[train], target[train])
    assert model.score(digits[test], target[test]) > start.score(digits[test], target[test]) + 0.02


def test_the_kernel_is_learned_too():
    """Only one of three columns matters: its length scale decreases, the others increase."""
    target = np.sin(3 * X[:, 1])
    kernel = Bounded(RBF((1.0, 1.0, 1.0)), (0.1, 20.0))
    options = {"kernel": kernel, "alpha": 1e-4}
    fixed = SparseKernelRegressor(8, **options).fit(X, target)
    model = SparseKernelRegressor(8, learn_kernel=True, **options).fit(X, target)
    assert fixed.kernel_ == kernel
    scales = np.exp(model.kernel_.theta)
    assert scales[1] < 1.2 < 4 < min(scales[0], scales[2])
    assert scales.max() <= 20.0 * (1 + 1e-12)
    assert model.objective_curve_[0] == fixed.objective_curve_[0]
    assert model.objective_curve_[-1] < 0.3 * fixed.objective_curve_[-1]
    assert model.expansion_.kernel == model.kernel_
    assert model.score(X_test, np.sin(3 * X_test[:, 1])) > 0.95


def test_multinomial_scores_sum_to_zero_over_classes():
    model = SparseKernelClassifier(5, alpha=1e-2).fit(*load_iris(return_X_y=True))
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-6)
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-8)


def test_outputs_share_the_vectors():
    model = SparseKernelRegressor(7).fit(X, Y)
    assert model.vectors_.shape == (7, 3)
    assert model.dual_coef_.shape == (7, 2)
    assert model.intercept_.shape == (2,)
    assert model.predict(X_test).shape == (40, 2)
    np.testing.assert_allclose(
        model.predict(X_test), model.expansion_(X_test) + model.intercept_, rtol=1e-12
    )
    single = SparseKernelRegressor(7).fit(X, y)
    assert isinstance(single.intercept_, float)
    assert single.predict(X_test).shape == (40,)


# ---------------------------------------------------------------------- weights


@settings(max_examples=10, deadline=None)
@given(counts=st.lists(st.integers(0, 3), min_size=40, max_size=40).filter(lambda c: sum(c) > 9))
def test_weights_are_repetitions(counts):
    model = SparseKernelRegressor(kernel=RBF(1.0), alpha=1e-2, init=X_test[:3], max_iter=0)
    weighted = clone(model).fit(X[:40], y[:40], sample_weight=counts)
    rows = np.repeat(np.arange(40), counts)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.predict(X_test), repeated.predict(X_test), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (SparseKernelRegressor(init=X_test[:4], max_iter=5), y),
        (SparseKernelClassifier(init=X_test[:4], max_iter=5, alpha=1e-2), labels),
        (SparseKernelClassifier(300, loss="squared_hinge", alpha=1e-2), labels),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_weights_are_repetitions_for_moving_vectors_too(model, target):
    counts = np.random.default_rng(0).integers(0, 3, size=150)
    rows = np.repeat(np.arange(150), counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(model).fit(X, target, sample_weight=counts)
        repeated = clone(model).fit(X[rows], target[rows])
    method = "predict" if target is y else "decision_function"
    got, want = (getattr(m, method)(X_test) for m in (weighted, repeated))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_weight_of_zero_is_not_a_point():
    some = rng.uniform(size=150) > 0.3
    weighted = SparseKernelRegressor(5).fit(X, y, sample_weight=some.astype(float))
    chosen = SparseKernelRegressor(5).fit(X[some], y[some])
    np.testing.assert_array_equal(weighted.vectors_, chosen.vectors_)
    model = SparseKernelClassifier(5).fit(X, labels, sample_weight=labels != "c")
    assert model.classes_.tolist() == ["a", "b"]


def test_class_weights_are_sample_weights():
    options = {"init": X_test[:5], "max_iter": 0}
    for weights in ("balanced", {"a": 3.0, "c": 0.5}):
        one = SparseKernelClassifier(class_weight=weights, **options).fit(X, labels)
        other = SparseKernelClassifier(**options)
        other.fit(X, labels, sample_weight=compute_sample_weight(weights, labels))
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


# ---------------------------------------------------------------------- points and kernels


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_sparse_rows_are_dense_rows(kernel):
    rows = np.where(np.abs(X) > 0.8, X, 0.0)
    model = SparseKernelRegressor(kernel=kernel, gamma=0.3, init=X_test[:5], max_iter=5, tol=0.9)
    dense, sparse = clone(model).fit(rows, y), clone(model).fit(sp.csr_array(rows), y)
    np.testing.assert_allclose(sparse.vectors_, dense.vectors_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        sparse.predict(sp.csr_array(rows)), dense.predict(rows), rtol=1e-5, atol=1e-6
    )
    started = SparseKernelRegressor(5, kernel=kernel).fit(sp.csr_array(rows), y)
    assert isinstance(started.vectors_, np.ndarray)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
@pytest.mark.parametrize("kernel", [Chi2(), "chi2"], ids=str)
def test_vectors_stay_where_the_kernel_is_defined(kernel):
    positive = np.abs(X)
    options = {"gamma": 1.0} if isinstance(kernel, str) else {}
    model = SparseKernelRegressor(6, kernel=kernel, **options).fit(positive, y)
    assert model.vectors_.min() >= 0.0
    assert model.objective_curve_[-1] < model.objective_curve_[0]


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_a_conditionally_positive_definite_kernel_is_an_error():
    model = SparseKernelRegressor(6, kernel="additive_chi2", gamma=1.0)
    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite"):
        model.fit(np.abs(X), y)


def test_a_kernel_of_low_rank_needs_few_vectors():
    model = SparseKernelRegressor(20, kernel="linear", alpha=1e-3).fit(X, y)
    assert len(model.vectors_) == 3  # the rank of <x, z>; more vectors would not help
    full = SparseKernelRegressor(150, kernel="linear", alpha=1e-3).fit(X, y)
    np.testing.assert_allclose(model.predict(X_test), full.predict(X_test), atol=1e-6)


def test_float32_and_integers_are_taken():
    model = SparseKernelRegressor(5, max_iter=3, tol=0.9)
    small = np.round(4 * X)
    for dtype in (np.float32, np.int64):
        got = clone(model).fit(small.astype(dtype), y).vectors_
        want = clone(model).fit(small, y).vectors_
        np.testing.assert_array_equal(got, want)


def test_the_size_of_the_model_may_be_given():
    model = SparseKernelRegressor("320 B", max_iter=0).fit(X, Y)
    assert model.vectors_.nbytes + model.dual_coef_.nbytes <= 320
    assert len(model.vectors_) == 320 // (8 * (3 + 2))
    assert len(SparseKernelClassifier("1 kB", max_iter=0).fit(X, labels).vectors_) == 20


def test_memory_is_far_below_that_of_a_matrix():
    n = 20_000
    points = np.random.default_rng(0).normal(size=(n, 2))
    model = SparseKernelRegressor(10, max_iter=2, tol=0.9, init="uniform", max_memory="20 MB")
    tracemalloc.start()
    model.fit(points, points[:, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_it_says_what_it_does(capsys):
    SparseKernelRegressor(5, verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert "[SparseKernelRegressor] 5 vectors at the start: objective" in said
    assert "iteration 10: objective" in said
    assert "converged" in said
    SparseKernelRegressor(5).fit(X, y)
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------------- errors


def test_iterations_that_do_not_suffice():
    with pytest.warns(ConvergenceWarning, match=r"still decreased by .* in the last 2 of 2"):
        model = SparseKernelRegressor(5, max_iter=2).fit(X, y)
    assert model.report_.status is Status.NOT_CONVERGED
    assert model.n_iter_ == 2


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
@pytest.mark.parametrize("estimator", [SparseKernelRegressor, SparseKernelClassifier])
def test_kernels_that_cannot_be_learned_with(estimator):
    def rough(a, b):
        return float(a @ b)

    with pytest.raises(NotDifferentiableError, match=r"needs the gradient.*compress its exp"):
        estimator(5, kernel=Callable(rough)).fit(X, two)
    with pytest.raises(ValueError, match="a precomputed matrix does not allow"):
        estimator(5, kernel="precomputed").fit(X @ X.T, two)
    with pytest.raises(ValueError, match="a precomputed matrix does not allow"):
        estimator(5, kernel=Precomputed()).fit(X @ X.T, two)
    words = ["aa", "ab", "b"]
    with pytest.raises(TypeError, match=r"learns vectors in R\^d.*fit KernelRidge instead"):
        estimator(2, kernel=Callable(lambda s, t: float(s == t))).fit(words, [0, 1, 1])
    with pytest.raises(NotPositiveDefiniteError, match="positive semidefinite"):
        estimator(20, kernel=Sigmoid(gamma=2.0, coef0=-1.0)).fit(X, two)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_sigmoid_at_given_vectors_is_refused_too():
    with pytest.raises(NotPositiveDefiniteError, match="has eigenvalues from -"):
        SparseKernelRegressor(
            init=X[:20], kernel=Sigmoid(gamma=2.0, coef0=-1.0), alpha=100.0, max_iter=0
        ).fit(X, y)


def test_numbers_of_vectors_that_make_no_sense():
    with pytest.raises(ValueError, match="is too small for a single vector: 3 coordinates and 1"):
        SparseKernelRegressor("10").fit(X, y)
    with pytest.raises(ValueError, match="n_vectors must be a positive integer, or the size"):
        SparseKernelRegressor("many").fit(X, y)
    with pytest.raises(ValueError, match="The 'n_vectors' parameter"):
        SparseKernelRegressor(0).fit(X, y)
    with pytest.raises(ValueError, match="init has 2 columns, but X has 3"):
        SparseKernelRegressor(init=X[:4, :2]).fit(X, y)
    with pytest.raises(ValueError, match="landmarks 'kmeans' and 'medoids' need dense vectors"):
        SparseKernelRegressor(5, init="kmeans", kernel="poly").fit(X, y)


def test_a_budget_that_is_too_small():
    with pytest.raises(MemoryBudgetError, match="learning 5 vectors from 150 points needs"):
        SparseKernelRegressor(5, max_memory=1000).fit(X, y)


def test_one_class_is_not_enough():
    with pytest.raises(ValueError, match=r"at least 2 classes.*belong to one class: \['a'\]"):
        SparseKernelClassifier(5).fit(X, np.full(150, "a"))


def test_probabilities_need_the_logistic_loss():
    model = SparseKernelClassifier(5, loss="squared_hinge", max_iter=0).fit(X, two)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "gives no probabilities; use loss='logistic'" in str(caught.value.__cause__)


def test_points_on_which_a_kernel_overflows():
    with pytest.raises(ValueError, match=r"k\(x, z\) is not finite.*Scale the features"):
        SparseKernelRegressor(init=1e200 * X[:3], kernel=Polynomial(degree=3)).fit(X, y)


def test_a_start_that_is_perfect_is_left_alone():
    model = SparseKernelRegressor(2).fit(X, np.zeros(150))
    np.testing.assert_array_equal(model.predict(X_test), 0.0)


def test_nothing_is_there_before_fit():
    for model in (SparseKernelRegressor(), SparseKernelClassifier()):
        assert not hasattr(model, "vectors_")
        with pytest.raises(NotFittedError):
            model.predict(X)


def test_the_solver_alone():
    risk = risk_of(Squared(), Laplacian(2.0))
    found = LearnedVectors(tol=1e-2).minimize(risk, X_test[:4])
    assert found.fit.value <= risk.fit_weights(X_test[:4]).value
    assert found.report.certificate["objective"] == found.curve[-1] == found.fit.value


# ---------------------------------------------------------------------- regression tests


def test_a_given_start_counts_in_the_budget():
    A = np.random.default_rng(0).normal(size=(400, 3))
    with pytest.raises(MemoryBudgetError, match="learning 300 vectors from 400 points"):
        SparseKernelRegressor(init=A[:300], max_memory="1 MiB").fit(A, A[:, 0])


def test_negative_class_weights_are_refused():
    A = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="class_weight must be positive"):
        SparseKernelClassifier(5, class_weight={0: -1.0}).fit(A, (A[:, 0] > 0).astype(int))


def test_a_constant_is_not_searched_for():
    A = np.random.default_rng(0).normal(size=(100, 2))
    model = SparseKernelRegressor(10).fit(A, np.full(100, 7.0))
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(A), 7.0)
