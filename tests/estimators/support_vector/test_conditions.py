"""Optimality conditions of fitted SVMs: 60 random problems for each estimator."""

import numpy as np
import pytest

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.kernels import RBF, Linear, Polynomial

KERNELS = [RBF(1.0), Linear(), Polynomial(2, gamma=1.0, coef0=1.0)]
TOL = 1e-3  # the default


def data(seed):
    """Return points, labels and targets that are related, but not perfectly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 60))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    z = X[:, 0] + 0.7 * rng.normal(size=n)
    C, nu = 10 ** rng.uniform(-2, 2), rng.uniform(0.1, 0.9)
    return X, np.where(z > np.median(z), 1, -1), z, C, nu, {"kernel": KERNELS[seed % 3]}


def coefficients(model, n):
    v = np.zeros(n)
    v[model.support_] = model.dual_coef_[0]
    return v


def check(v, C, slack, tol):
    """slack >= 0 if v = 0, <= 0 if v = C, 0 in between; and 0 <= v <= C."""
    assert np.all(v >= 0) and np.all(v <= C * (1 + 1e-9))
    assert np.all(slack[v < C * (1 - 1e-9)] >= -tol)
    assert np.all(slack[v > 0] <= tol)


@pytest.mark.parametrize("seed", range(60))
def test_svc(seed):
    X, y, _, C, _, options = data(seed)
    model = SVC(C=C, **options).fit(X, y)
    v = coefficients(model, len(y))
    assert v.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(v).sum())
    check(v * y, C, y * model.decision_function(X) - 1.0, TOL)


@pytest.mark.parametrize("seed", range(60))
def test_nu_svc(seed):
    X, y, _, _, nu, options = data(seed)
    nu = 0.7 + 0.2 * nu  # for smaller nu, some problems have no margin
    model = NuSVC(nu=nu, **options).fit(X, y)
    v = coefficients(model, len(y))
    sums = [np.abs(v[y == sign]).sum() for sign in (-1, 1)]
    assert sums[0] == pytest.approx(sums[1])
    rho = nu * len(y) / sum(sums)
    check(rho * v * y, 1.0, rho * (y * model.decision_function(X) - 1.0), TOL)


@pytest.mark.parametrize("seed", range(60))
def test_svr(seed):
    X, _, z, C, _, options = data(seed)
    model = SVR(C=C, epsilon=0.2, **options).fit(X, z)
    v, r = coefficients(model, len(z)), z - model.predict(X)
    assert v.sum() == pytest.approx(0.0, abs=1e-9 * (1.0 + np.abs(v).sum()))
    check(np.maximum(v, 0.0), C, 0.2 - r, TOL)
    check(np.maximum(-v, 0.0), C, 0.2 + r, TOL)


@pytest.mark.parametrize("seed", range(60))
def test_nu_svr(seed):
    X, _, z, C, nu, options = data(seed)
    model = NuSVR(C=C, nu=nu, **options).fit(X, z)
    v, r, epsilon = coefficients(model, len(z)), z - model.predict(X), model.epsilon_
    assert v.sum() == pytest.approx(0.0, abs=1e-9 * (1.0 + np.abs(v).sum()))
    assert np.abs(v).sum() <= C * nu * len(z) * (1 + 1e-9)
    check(np.maximum(v, 0.0), C, epsilon - r, TOL)
    check(np.maximum(-v, 0.0), C, epsilon + r, TOL)


@pytest.mark.parametrize("seed", range(60))
def test_one_class(seed):
    X, _, _, _, nu, options = data(seed)
    model = OneClassSVM(nu=nu, **options).fit(X)
    v = coefficients(model, len(X))
    assert v.sum() == pytest.approx(nu * len(X))
    check(v, 1.0, model.decision_function(X), TOL)
