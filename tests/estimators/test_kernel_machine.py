"""KernelMachineRegressor and KernelMachineClassifier against dedicated estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from mercer import (
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelRidge,
    MemoryBudgetError,
    compress,
)
from mercer.kernels import RBF, Callable, Linear
from mercer.solvers import SquaredHinge, Status


def curve(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) + (0.2 + 0.1 * np.abs(X[:, 0])) * rng.normal(size=n)


def plane(n=60, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, 2.0, -1.0] + 1.0 + rng.standard_t(2, size=n)


def weights(n, seed=2):
    return np.random.default_rng(seed).uniform(0.1, 2.0, size=n)


class Softplus:
    """log(1 + exp(-y f)), as a user might implement it."""

    def value(self, y, f):
        return np.logaddexp(0.0, -y * f)

    def gradient(self, y, f):
        return -y / (1.0 + np.exp(y * f))

    def curvature(self, y, f):
        p = 1.0 / (1.0 + np.exp(-f))
        return p * (1.0 - p)


class Square:
    def __repr__(self):
        return "Square()"

    def value(self, y, f):
        return (y - f) ** 2

    def gradient(self, y, f):
        return 2.0 * (f - y)

    def curvature(self, y, f):
        return np.full(len(f), 2.0)


# ---------------------------------------------------------------------- other estimators


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_squared_is_kernel_ridge(alpha):
    X, y = curve()
    w = weights(len(y))
    ridge = KernelRidge(alpha, kernel="rbf", gamma="scale").fit(X, y, w)
    ours = KernelMachineRegressor(alpha=alpha, fit_intercept=False).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), atol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_, ridge.dual_coef_, atol=1e-7, rtol=1e-7)
    assert ours.intercept_ == 0.0


def test_squared_with_intercept_is_a_bordered_system():
    X, y = curve()
    w, alpha = weights(len(y)), 0.3
    K = RBF(1.5)(X)
    system = np.block(
        [[K + np.diag(alpha / w), np.ones((80, 1))], [np.ones((1, 80)), np.zeros((1, 1))]]
    )
    *a, b = np.linalg.solve(system, np.append(y, 0.0))
    ours = KernelMachineRegressor(alpha=alpha, kernel=RBF(1.5)).fit(X, y, w)
    np.testing.assert_allclose(ours.dual_coef_, a, atol=1e-9)
    assert ours.intercept_ == pytest.approx(b, abs=1e-10)
    ridge = KernelRidge(alpha, kernel=RBF(1.5), fit_intercept=True).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), atol=1e-9)


def test_a_loss_of_ones_own_is_the_named_one():
    X, y = curve()
    named = KernelMachineRegressor(alpha=0.1).fit(X, y)
    own = KernelMachineRegressor(Square(), alpha=0.1).fit(X, y)
    np.testing.assert_allclose(own.predict(X), named.predict(X), atol=1e-10)


@pytest.mark.parametrize("alpha", [0.2, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_epsilon_insensitive_is_svr(alpha, epsilon):
    X, y = curve()
    w = weights(len(y))
    theirs = SVR(C=1 / (2 * alpha), epsilon=epsilon, gamma=0.5, tol=1e-10).fit(X, y, w)
    ours = KernelMachineRegressor(
        "epsilon_insensitive", alpha, epsilon=epsilon, gamma=0.5, tol=1e-12
    ).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-6)  # in float32
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=2e-6)
    dual = np.zeros(len(y))
    dual[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(ours.dual_coef_, dual, atol=2e-5)
    if epsilon:  # points inside the tube have no coefficient
        inside = np.setdiff1d(np.arange(len(y)), theirs.support_)
        assert len(inside) and np.abs(ours.dual_coef_[inside]).max() < 1e-6


def test_absolute_is_twice_the_median_loss():
    X, y = curve()
    one = KernelMachineRegressor("absolute", alpha=0.2).fit(X, y)
    two = KernelMachineRegressor("quantile", alpha=0.1).fit(X, y)
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-5)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.7])
def test_quantile_is_scikit_learns_on_a_linear_kernel(q):
    X, y = plane()
    w = weights(len(y))
    theirs = QuantileRegressor(quantile=q, alpha=0.0).fit(X, y, w)
    ours = KernelMachineRegressor("quantile", 1e-8, quantile=q, kernel="linear", tol=1e-11).fit(
        X, y, w
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    slopes = ours.expansion_.gradient(X[:1])[0, 0]
    np.testing.assert_allclose(slopes, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_huber_is_scikit_learns_on_a_linear_kernel(alpha):
    X, y = plane()
    w = weights(len(y))
    theirs = HuberRegressor(alpha=alpha, tol=1e-11, max_iter=10_000).fit(X, y, w)
    scale = theirs.scale_
    ours = KernelMachineRegressor(
        "huber", alpha * scale, epsilon=1.35 * scale, kernel="linear"
    ).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-4)

    def objective(model):  # the objective of scikit-learn, which is not lower than ours
        r = np.abs(y - model.predict(X)) / scale
        coef = model.coef_ if hasattr(model, "coef_") else model.expansion_.gradient(X[:1])[0, 0]
        return scale * w @ np.where(r < 1.35, r * r, 2.7 * r - 1.35**2) + alpha * coef @ coef

    assert objective(ours) <= objective(theirs) + 1e-10
    assert objective(ours) == pytest.approx(objective(theirs), rel=1e-7)


def test_poisson_is_scikit_learns_on_a_linear_kernel():
    X, _ = plane()
    counts = np.random.default_rng(0).poisson(np.exp(0.4 * X @ [1.0, 2.0, -1.0]))
    theirs = PoissonRegressor(alpha=0.1, solver="newton-cholesky", tol=1e-12).fit(X, counts)
    ours = KernelMachineRegressor("poisson", 0.05 * len(X), kernel="linear").fit(X, counts)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_log_loss_is_kernel_logistic_regression(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    w = weights(len(y))
    options = {"class_weight": "balanced", "gamma": 0.3}
    theirs = KernelLogisticRegression(C=1 / (2 * 0.05), **options).fit(X, y)
    ours = KernelMachineClassifier(alpha=0.05, **options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    theirs = KernelLogisticRegression(C=10.0, gamma=0.3).fit(X, y, w)
    ours = KernelMachineClassifier(alpha=0.05, gamma=0.3).fit(X, y, w)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-5, rtol=1e-6
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_squared_hinge_against_a_general_solver(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes][::2], y[y < classes][::2]
    w, alpha, n = weights(len(y)), 0.1, len(y)
    ours = KernelMachineClassifier("squared_hinge", alpha, gamma=0.2).fit(X, y, w)
    signs = 2.0 * np.eye(classes)[y] - 1.0
    signs = signs[:, 1:] if classes == 2 else signs
    L = np.linalg.cholesky(RBF.from_gamma(0.2)(X) + 1e-13 * np.eye(n))

    def value_and_gradient(x):
        x = x.reshape(n + 1, -1)
        local = SquaredHinge()(L @ x[:n] + x[n], signs)
        G = w[:, None] * local.slopes
        slope = np.vstack([L.T @ G + 2 * alpha * x[:n], G.sum(axis=0)])
        return w @ local.values + alpha * np.sum(x[:n] ** 2), slope.ravel()

    start = np.zeros((n + 1) * signs.shape[1])
    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    assert ours.report_.certificate["objective"] == pytest.approx(found.fun, rel=1e-9)
    x = found.x.reshape(n + 1, -1)
    values = L @ x[:n] + x[n]
    got = ours.decision_function(X).reshape(n, -1)
    np.testing.assert_allclose(got, values, atol=1e-4)
    assert not hasattr(ours, "predict_proba")


def test_a_classification_loss_of_ones_own():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    own = KernelMachineClassifier(Softplus(), alpha=0.1).fit(X, y)
    named = KernelMachineClassifier(alpha=0.1).fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), named.decision_function(X), atol=1e-7)
    with pytest.raises(AttributeError):
        own.predict_proba(X)


# ---------------------------------------------------------------------- quantiles


LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def test_several_quantiles_do_not_cross():
    X, y = curve(n=150)
    model = KernelMachineRegressor("quantile", 0.02, quantile=LEVELS, gamma=0.5).fit(X, y)
    fitted = model.expansion_(X) + model.intercept_
    assert np.diff(fitted, axis=1).min() >= -1e-7  # without sorting
    alone = [clone(model).set_params(quantile=q).fit(X, y) for q in LEVELS]
    apart = np.column_stack([one.predict(X) for one in alone])
    assert np.diff(apart, axis=1).min() < -1e-3  # separate fits do cross
    # At other points, less sorting is needed.
    new = np.random.default_rng(0).uniform(-3, 3, size=(1000, 2))
    unsorted = model.expansion_(new) + model.intercept_
    apart = np.column_stack([one.predict(new) for one in alone])
    crossed = [np.mean(np.any(np.diff(f, axis=1) < 0, axis=1)) for f in (unsorted, apart)]
    assert 0 < crossed[0] < 0.9 * crossed[1]
    np.testing.assert_array_equal(model.predict(new), np.sort(unsorted, axis=1))
    assert model.dual_coef_.shape == (150, 5)
    assert model.intercept_.shape == (5,)


def test_quantiles_cover_what_they_say():
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 4, size=(400, 1))
    y = np.sin(X[:, 0]) + 0.2 * (1 + X[:, 0]) * rng.normal(size=400)
    model = KernelMachineRegressor("quantile", 1.0, quantile=LEVELS, gamma=0.5).fit(X, y)
    fresh = rng.uniform(0, 4, size=(5000, 1))
    truth = np.sin(fresh[:, 0]) + 0.2 * (1 + fresh[:, 0]) * rng.normal(size=5000)
    share = np.mean(truth[:, None] <= model.predict(fresh), axis=0)
    np.testing.assert_allclose(share, LEVELS, atol=0.05)
    # With an intercept, about n q of the training points lie below.
    share = np.mean(y[:, None] <= model.predict(X) + 1e-6, axis=0)
    np.testing.assert_allclose(share, LEVELS, atol=0.02)


def test_quantiles_come_in_the_order_asked_for():
    X, y = curve()
    up = KernelMachineRegressor("quantile", quantile=[0.1, 0.5, 0.9]).fit(X, y).predict(X)
    mixed = KernelMachineRegressor("quantile", quantile=[0.5, 0.9, 0.1]).fit(X, y).predict(X)
    np.testing.assert_array_equal(mixed, up[:, [1, 2, 0]])
    one = KernelMachineRegressor("quantile", quantile=[0.5]).fit(X, y).predict(X)
    assert one.shape == (80, 1)


def test_the_same_point_with_different_targets():
    X = np.repeat(np.arange(5.0), 3)[:, None]
    y = np.tile([0.0, 1.0, 10.0], 5) + X[:, 0]
    for loss, middle in (("absolute", 1.0), ("squared", 11 / 3)):
        model = KernelMachineRegressor(loss, 1e-6, gamma=1.0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), middle + X[:, 0], atol=1e-3)


# ---------------------------------------------------------------------- the minimum


@pytest.mark.parametrize(
    "penalty", ["ridge", "norm", (np.cosh, np.sinh)], ids=["ridge", "norm", "own"]
)
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", Square()], ids=str)
def test_the_gradient_of_the_objective_is_zero(loss, penalty):
    """By differences of the objective, computed only from the expansion."""
    X, y = curve(n=40)
    y = np.round(2 + y) if isinstance(loss, str) and loss == "poisson" else y
    model = KernelMachineRegressor(loss, 0.3, penalty=penalty, gamma=0.5, tol=1e-12).fit(X, y)
    K, a = RBF.from_gamma(0.5)(X), model.dual_coef_
    g = (
        {"ridge": np.square, "norm": lambda t: t}.get(penalty)
        if isinstance(penalty, str)
        else np.cosh
    )

    def objective(a, b):
        f = K @ a + b
        r = np.abs(y - f)
        if isinstance(loss, str) and loss == "poisson":
            losses = np.exp(f) - y * f
        elif isinstance(loss, str) and loss == "huber":
            losses = np.where(r <= 1.35, r * r, 2.7 * r - 1.35**2)
        else:
            losses = r * r
        return losses.sum() + 0.3 * g(np.sqrt(a @ K @ a))

    best, h = objective(a, model.intercept_), 1e-5
    assert model.report_.certificate["objective"] == pytest.approx(best, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(10):
        e, s = rng.normal(size=40), rng.normal()
        e /= np.sqrt(e @ K @ e)
        up, down = (objective(a + x * e, model.intercept_ + x * s) for x in (h, -h))
        assert abs(up - down) / (2 * h) < 1e-5 * best
        assert min(up, down) > best - 1e-12


def test_the_norm_may_leave_nothing():
    X, y = curve()
    model = KernelMachineRegressor("absolute", 1e4, penalty="norm").fit(X, y)
    assert not model.dual_coef_.any()
    np.testing.assert_allclose(model.predict(X), np.median(y), atol=0.05)
    assert model.report_.certificate["norm"] == 0.0


def test_a_penalty_with_methods():
    class Quartic:
        def value(self, t):
            return t**4

        def derivative(self, t):
            return 4 * t**3

    X, y = curve()
    one = KernelMachineRegressor(penalty=Quartic()).fit(X, y)
    two = KernelMachineRegressor(penalty=(lambda t: t**4, lambda t: 4 * t**3)).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    # The ridge problem with the same minimum.
    shift = one.report_.certificate["shift"]
    three = KernelMachineRegressor(alpha=shift / 2).fit(X, y)
    np.testing.assert_allclose(one.predict(X), three.predict(X), atol=1e-9)
    assert shift == pytest.approx(4 * one.report_.certificate["norm"] ** 2, rel=1e-8)


@pytest.mark.parametrize("loss", ["squared", "huber", "epsilon_insensitive", "quantile"])
def test_several_targets_are_several_fits(loss):
    X, y = curve()
    Y = np.column_stack([y, np.cos(X[:, 1]), -y])
    both = KernelMachineRegressor(loss, 0.1, tol=1e-11).fit(X, Y)
    assert both.predict(X).shape == Y.shape
    for c in range(3):
        one = KernelMachineRegressor(loss, 0.1, tol=1e-11).fit(X, Y[:, c])
        np.testing.assert_allclose(both.predict(X)[:, c], one.predict(X), atol=1e-5)


# ---------------------------------------------------------------------- forms of input


REGRESSORS = [
    KernelMachineRegressor("huber", 0.1, gamma=0.5),
    KernelMachineRegressor("quantile", 0.1, gamma=0.5, quantile=[0.2, 0.8]),
    KernelMachineRegressor("squared", 0.1, gamma=0.5, penalty="norm"),
]
each_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: m.loss)


@each_regressor
def test_landmarks_on_all_points_are_exact(model):
    X, y = curve()
    exact = clone(model).fit(X, y)
    near = clone(model).set_params(solver="nystroem", landmarks=X).fit(X, y)
    np.testing.assert_allclose(near.predict(X), exact.predict(X), atol=1e-5)
    assert exact.report_.status is Status.CONVERGED
    assert near.report_.status is Status.APPROXIMATE
    assert "landmarks" in near.report_.message


def test_few_landmarks():
    X, y = curve(n=200)
    model = KernelMachineRegressor("huber", 0.1, solver="nystroem", rank=30).fit(X, y)
    assert model.X_fit_.shape == (30, 2)
    exact = KernelMachineRegressor("huber", 0.1).fit(X, y)
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.1
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


@each_regressor
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_precomputed_and_sparse_and_weightless(model, solver):
    X, y = curve()
    model = clone(model).set_params(solver=solver, landmarks="rpcholesky", rank=80)
    w = weights(len(y))
    w[::5] = 0.0
    want = clone(model).fit(X[w > 0], y[w > 0], w[w > 0]).predict(X)
    K = RBF.from_gamma(0.5)(X)
    given = clone(model).set_params(kernel="precomputed").fit(K, y, w)
    np.testing.assert_allclose(given.predict(K), want, atol=1e-5)
    rows = clone(model).fit(sp.csr_array(X), y, w)
    np.testing.assert_allclose(rows.predict(sp.csr_array(X)), want, atol=1e-5)


def test_points_of_any_kind():
    words = ["aa", "ab", "abb", "bbb", "bb", "aaa"]

    def shared(A, B):
        return np.array(
            [[sum(min(a.count(c), b.count(c)) for c in "ab") for b in B] for a in A], float
        )

    lengths = np.array([len(word) for word in words])
    model = KernelMachineRegressor("absolute", 1e-3, kernel=Callable(shared)).fit(words, lengths)
    np.testing.assert_allclose(model.predict(words), lengths, atol=0.05)
    labels = np.array(["b" in word for word in words])
    classes = KernelMachineClassifier(alpha=1e-3, kernel=Callable(shared)).fit(words, labels)
    assert classes.score(words, labels) == 1.0
    with pytest.raises(ValueError, match="6 points, but y has 5 labels"):
        classes.fit(words, labels[:5])


def test_compressed():
    X, y = curve(n=150)
    model = KernelMachineRegressor("huber", 0.5).fit(X, y)
    small = compress(model, 15, method="select")
    assert len(small.X_fit_) == 15
    assert np.abs(small.predict(X) - model.predict(X)).max() < 0.1


def test_large_values_of_the_kernel():
    """For k(x, x) of 1e15, gradients of the losses are inaccurate coefficients."""
    X = np.random.default_rng(0).normal(loc=100.0, size=(10, 2))
    y = np.arange(10) % 2
    model = KernelMachineClassifier("squared_hinge", 0.1, kernel="poly").fit(X, y)
    values = model.decision_function(X)
    losses = np.maximum(1 - (2 * y - 1) * values, 0) ** 2
    c = model.report_.certificate
    assert losses.sum() + 0.1 * c["norm"] ** 2 == pytest.approx(c["objective"], rel=1e-3)


def test_talks_and_reports(capsys):
    X, y = curve()
    KernelMachineRegressor("absolute", verbose=1).fit(X, y)
    out = capsys.readouterr().out
    assert "gap" in out and "converged" in out
    model = KernelMachineRegressor("quantile", quantile=[0.2, 0.8]).fit(X, y)
    assert {"objective", "norm", "shift", "slope", "stationarity", "gap"} <= set(
        model.report_.certificate
    )
    assert model.report_.n_iter == model.n_iter_ > 1


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"loss": "hubert"}, "The 'loss' parameter"),
        ({"loss": Softplus}, "loss is the class Softplus, but must be an object"),
        ({"alpha": 0.0}, "The 'alpha' parameter"),
        ({"alpha": -1.0}, "The 'alpha' parameter"),
        ({"penalty": "lasso"}, "The 'penalty' parameter"),
        ({"penalty": (np.cosh,)}, "a pair of functions"),
        ({"epsilon": -1.0}, "The 'epsilon' parameter"),
        ({"loss": "huber", "epsilon": 0.0}, "epsilon must be positive for loss='huber'"),
        ({"loss": "quantile", "quantile": 0.0}, "between 0 and 1"),
        ({"loss": "quantile", "quantile": [0.5, 1.0]}, "between 0 and 1"),
        ({"loss": "quantile", "quantile": [0.5, 0.5]}, "distinct numbers"),
        ({"loss": "quantile", "quantile": []}, "distinct numbers"),
        ({"loss": "huber", "quantile": [0.2, 0.5]}, "use loss='quantile'"),
        ({"loss": Square(), "quantile": [0.2, 0.5]}, "use loss='quantile'"),
        ({"loss": "poisson"}, "loss='poisson' needs non-negative targets, got -"),
        ({"solver": "nystroem", "landmarks": np.ones((3, 5))}, "landmarks have 5 columns"),
        ({"landmarks": "best"}, "The 'landmarks' parameter"),
        ({"epsilon": 0.3}, "epsilon=0.3 has no effect for loss='squared'"),
        ({"max_memory": "1 kB", "solver": "exact"}, "needs .* but the budget is"),
    ],
)
def test_bad_parameters(options, says):
    X, y = curve()
    with pytest.raises((ValueError, TypeError, MemoryBudgetError), match=says):
        KernelMachineRegressor(**options).fit(X, y)


def test_bad_targets():
    X, y = curve()
    with pytest.raises(ValueError, match="under loss='poisson' is minus infinity"):
        KernelMachineRegressor("poisson").fit(X, 0 * y)
    with pytest.raises(ValueError, match="fitted to a single target"):
        KernelMachineRegressor("quantile", quantile=[0.1, 0.2]).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="belong to one class"):
        KernelMachineClassifier().fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="class_weight must be positive"):
        KernelMachineClassifier(class_weight={0: -1.0}).fit(X, (y > 0).astype(int))
    with pytest.raises(ValueError, match="NaN"):
        KernelMachineRegressor().fit(X, np.where(y > 0, np.nan, y))


class Broken(Square):
    def __init__(self, **methods):
        vars(self).update(methods)


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (Broken(value=lambda y, f: np.log(f)), "is -inf at y"),
        (Broken(gradient=lambda y, f: np.full(len(f), np.inf)), "gradient of .* is inf"),
        (Broken(gradient=lambda y, f: f - y), "finite differences of its value give"),
        (Broken(curvature=lambda y, f: np.full(len(f), -2.0)), "not convex"),
        (Broken(value=lambda y, f: np.zeros(3)), r"shape \(3,\) for 80 points"),
    ],
)
def test_bad_losses(own, says):
    X, y = curve()
    with pytest.raises(ValueError, match=says):
        KernelMachineRegressor(own).fit(X, y)


def test_too_few_steps_warn():
    X, y = curve()
    with pytest.warns(ConvergenceWarning, match="duality gap") as seen:
        model = KernelMachineRegressor("absolute", max_iter=1).fit(X, y)
    assert seen[0].filename == __file__
    assert model.report_.status is Status.NOT_CONVERGED
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        KernelMachineClassifier(alpha=1e-6, max_iter=1).fit(X, y > 0)


def test_targets_too_large():
    X, y = curve()
    for loss, size in (("squared", 1e160), ("absolute", 1e307), ("huber", 1e307)):
        with pytest.raises(ValueError, match=r"losses at f = 0 add up to .*Scale them"):
            KernelMachineRegressor(loss).fit(X, size * y)
    model = KernelMachineRegressor().fit(X, 1e70 * y)
    small = KernelMachineRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X) / 1e70, small.predict(X), rtol=1e-8)


def test_precomputed_must_be_square():
    X, y = curve()
    K = RBF()(X)[:, :-1]
    for model in (KernelMachineRegressor(), KernelMachineClassifier()):
        for solver in ("exact", "nystroem"):
            model.set_params(kernel="precomputed", solver=solver)
            with pytest.raises(ValueError, match="is not square"):
                model.fit(K, (y > 0).astype(int))


def test_the_budget_counts_functions():
    """A budget for one quantile is too small for seven; the error is raised immediately."""
    X, y = curve(n=300)
    options = {"max_memory": "7 MB", "rank": 20}
    one = KernelMachineRegressor("quantile", **options).fit(X, y)
    assert one.report_.status is Status.CONVERGED
    seven = KernelMachineRegressor("quantile", quantile=np.linspace(0.1, 0.9, 7), **options)
    said = r"300 points are too many for solver='auto' to be exact, .* solver='exact' for the exact"
    with pytest.warns(UserWarning, match=said) as seen:
        seven.fit(X, y)
    assert seen[0].filename == __file__ and str(seen[0].message) in seven.report_.message

    def never(A, B):
        raise AssertionError("kernel values before the budget is known to suffice")

    for solver in ("exact", "nystroem"):
        seven.set_params(solver=solver, rank=300, kernel=never)
        with pytest.raises(MemoryBudgetError, match="7 functions of 300 points"):
            seven.fit(X, y)


# ---------------------------------------------------------------------- fits and fitted models


def test_the_certificate_is_about_predictions():
    """Weights of 1e-4 to 1e4: gradients of the losses would be worse coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)
    for _ in range(5):
        w = 10.0 ** rng.uniform(-4, 4, size=40)
        model = KernelMachineRegressor("absolute", 1e-3, gamma=0.5).fit(X, y, w)
        objective = w @ np.abs(y - model.predict(X)) + 1e-3 * model.expansion_.norm()[0] ** 2
        assert model.report_.certificate["objective"] == pytest.approx(objective, rel=1e-6)


def test_nothing_to_fit_predicts_it():
    X, _ = curve()
    three = np.full(80, 3.0)
    for options in (
        {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
        {"loss": "absolute"},
        {"loss": "huber"},
        {"loss": "epsilon_insensitive"},
    ):
        got = KernelMachineRegressor(**options).fit(X, three).predict(X)
        np.testing.assert_allclose(got, np.full(got.shape, 3.0), rtol=1e-12)
    counts = KernelMachineRegressor("poisson", fit_intercept=False).fit(X, np.ones(80))
    np.testing.assert_allclose(counts.predict(10 * X), 1.0)
    assert counts.report_.status is Status.CONVERGED


def test_a_small_penalty_of_the_norm():
    rng = np.random.default_rng(0)
    X = 1000.0 * rng.normal(size=(100, 2))
    y = X @ [0.003, -0.002] + rng.normal(size=100)
    for alpha in (1e-3, 0.1, 1.0):
        model = KernelMachineRegressor(alpha=alpha, penalty="norm", kernel="linear").fit(X, y)
        assert model.score(X, y) > 0.88


def test_given_landmarks_of_a_precomputed_kernel_are_its_indices():
    X, y = curve()
    w = weights(80)
    w[:40:2] = 0.0
    chosen = np.array([1, 41, 50, 60, 79])
    options = {"loss": "huber", "alpha": 0.1, "solver": "nystroem"}
    K = RBF.from_gamma(0.5)(X)
    ours = KernelMachineRegressor(kernel="precomputed", landmarks=chosen, **options).fit(K, y, w)
    want = KernelMachineRegressor(gamma=0.5, landmarks=X[chosen], **options).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(K), want.predict(X), atol=1e-8)
    assert sorted(ours.X_fit_) == chosen.tolist()


def test_a_failed_fit_changes_nothing():
    X, y = curve()
    model = KernelMachineClassifier(alpha=0.1).fit(X, y > 0)
    before = model.predict_proba(X)
    three = np.arange(80) % 3
    with pytest.raises(MemoryBudgetError):
        model.set_params(max_memory="1 kB", solver="exact", kernel="linear").fit(X, three)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.classes_.tolist() == [False, True]
    assert isinstance(model.kernel_, RBF)


def test_parameters_set_after_a_fit_are_for_the_next():
    X, y = curve()
    counts = KernelMachineRegressor("poisson").fit(X, np.round(2 + y))
    before = counts.predict(X)
    np.testing.assert_array_equal(counts.set_params(loss="squared").predict(X), before)
    model = KernelMachineClassifier("squared_hinge").fit(X, y > 0).set_params(loss="log_loss")
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.fit(X, y > 0).set_params(loss="squared_hinge"), "predict_proba")
    assert repr(counts.loss_) == "Poisson()"


def test_scores_of_quantiles():
    X, y = curve()
    w = weights(80)
    model = KernelMachineRegressor("quantile", quantile=[0.9, 0.2]).fit(X, y)
    got = model.score(X, y, w)
    each = [
        d2_pinball_score(y, model.predict(X)[:, k], sample_weight=w, alpha=q)
        for k, q in enumerate([0.9, 0.2])
    ]
    assert got == pytest.approx(np.mean(each), rel=1e-12)
    assert got < model.score(X, y) + 1.0
    one = clone(model).set_params(quantile=0.2).fit(X, y)
    assert one.score(X, y) == pytest.approx(d2_pinball_score(y, one.predict(X), alpha=0.2))
    search = GridSearchCV(model, {"alpha": [1e-3, 0.1]}, cv=2).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    ridge = KernelMachineRegressor().fit(X, y)
    assert ridge.score(X, y, w) == r2_score(y, ridge.predict(X), sample_weight=w)


@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_counts_weights(classes):
    """As in KernelLogisticRegression, a point of weight 2 counts as two points."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes][::2], y[y < classes][::2]
    often = np.random.default_rng(0).integers(0, 4, size=len(y))
    options = {"class_weight": "balanced", "gamma": 0.3}
    one = KernelMachineClassifier(alpha=0.05, **options).fit(X, y, often)
    theirs = KernelLogisticRegression(C=10.0, **options).fit(X, y, often)
    two = KernelMachineClassifier(alpha=0.05, **options).fit(
        np.repeat(X, often, axis=0), np.repeat(y, often)
    )
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(np.exp(one.predict_log_proba(X)), one.predict_proba(X))


def test_logarithms_of_small_probabilities():
    X = np.array([[-1.0], [1.0]])
    model = KernelMachineClassifier(alpha=1e-3, kernel="linear").fit(X, [0, 1])
    assert np.all(np.isfinite(model.predict_log_proba(1e5 * X)))
    assert not hasattr(KernelMachineClassifier("squared_hinge"), "predict_log_proba")


def test_large_counts_are_no_surprise():
    X, y = plane()
    model = KernelMachineRegressor("poisson", kernel="linear").fit(X, np.round(np.exp(0.2 * y)))
    assert model.predict(1e6 * X).max() == np.inf  # and no warning


def test_auto_is_exact_while_it_is_small():
    X, y = curve()
    model = KernelMachineRegressor(kernel=RBF() + Linear(), rank=9, max_memory="80 kB")
    with pytest.warns(UserWarning, match="80 points are too many for solver='auto' to be exact"):
        model.fit(X, y)
    assert model.report_.status is Status.APPROXIMATE  # all 80 points would take 256 kB
    assert KernelMachineRegressor().fit(X, y).report_.status is Status.CONVERGED
