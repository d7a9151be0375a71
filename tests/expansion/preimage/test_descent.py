"""Building blocks of pre-images: batched L-BFGS, and the derivatives that it uses."""

import numpy as np
import pytest
import zoo
from scipy.optimize import minimize, rosen, rosen_der

from mercer.expansion.preimage._iterative_preimage import batched_lbfgs
from mercer.expansion.preimage._preimage_target import PreImageTarget
from mercer.kernels import RBF, Cauchy, Constant, Linear, Matern, Polynomial


def test_many_descents_find_the_minimum_of_each():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(7, 4))
    shifts = rng.normal(size=(7, 4))

    def slopes(Z, rows):
        at = Z - shifts[rows]
        return np.array([rosen(z) for z in at]), np.array([rosen_der(z) for z in at])

    Z, steps, converged = batched_lbfgs(slopes, start, scale=1.0, tol=1e-10, max_iter=2000)
    assert converged.all() and steps > 5
    for c in range(7):
        one = minimize(lambda z, c=c: rosen(z - shifts[c]), Z[c], tol=1e-12)
        assert rosen(Z[c] - shifts[c]) <= one.fun + 1e-8
        assert rosen(Z[c] - shifts[c]) <= rosen(start[c] - shifts[c])


def test_a_lower_bound_is_kept():
    def slopes(Z, rows):
        return ((Z + 1.0) ** 2).sum(axis=1), 2.0 * (Z + 1.0)

    Z, _, _ = batched_lbfgs(slopes, np.ones((3, 2)), scale=1.0, tol=1e-9, max_iter=100, lower=0.0)
    np.testing.assert_allclose(Z, 0.0, atol=1e-9)


def test_a_stationary_start_is_left_alone():
    def slopes(Z, rows):
        return (Z**2).sum(axis=1), 2.0 * Z

    Z, steps, converged = batched_lbfgs(slopes, np.zeros((2, 3)), scale=1.0, tol=1e-9, max_iter=50)
    assert steps == 1 and converged.all() and not Z.any()


DIFFERENTIABLE = [
    e
    for e in zoo.KERNELS
    if e.differentiable and e.domain == "vectors" and "hite" not in e.id and e.id != "deep"
]


@pytest.mark.parametrize("entry", DIFFERENTIABLE, ids=[e.id for e in DIFFERENTIABLE])
def test_slopes_are_derivatives_of_the_cost(entry):
    rng = np.random.default_rng(1)
    X, Z = entry.points(9, seed=1), entry.points(3, seed=2)
    target = PreImageTarget(entry.kernel, np.asarray(X, dtype=float), rng.normal(size=(3, 9)))
    rows = np.arange(3)
    values, gradients = target.slopes(Z, rows)
    np.testing.assert_allclose(values, target.costs(Z, rows), atol=1e-10)
    h = 1e-5
    for j in range(Z.shape[1]):
        step = np.zeros_like(Z)
        step[:, j] = h
        slope = (target.costs(Z + step, rows) - target.costs(Z - step, rows)) / (2 * h)
        np.testing.assert_allclose(gradients[:, j], slope, atol=1e-5 * (1 + np.abs(slope).max()))


@pytest.mark.parametrize("kernel", [RBF(1.5), Cauchy(), Matern(nu=2.5), Polynomial(gamma=0.2)])
def test_attractions_vanish_with_the_slope(kernel):
    rng = np.random.default_rng(2)
    X, Z, rows = rng.normal(size=(12, 3)), rng.normal(size=(4, 3)), np.arange(4)
    target = PreImageTarget(kernel, X, rng.normal(size=(4, 12)))
    at = target.fixed_point_terms(Z, rows)
    values, gradients = target.slopes(Z, rows)
    np.testing.assert_allclose(at.J, values, rtol=1e-12)
    residual = at.b[:, None] * Z - at.a  # a positive multiple of the gradient
    ratio = gradients / residual
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-8)
    assert np.all(ratio > 0)


def test_factors_and_constants_are_taken_off():
    X, G = np.eye(3), np.ones((1, 3)) / 2
    plain = PreImageTarget(RBF(), X, G)
    dressed = PreImageTarget(2.0 * (3.0 * RBF() + 1) + 0.5 + Constant(0.25), X, G)
    assert dressed.core == RBF()
    assert (dressed.factor, dressed.constant) == (6.0, 2.75)
    Z = np.full((1, 3), 0.3)
    # (1 - sum g)^2 = 1/4 of the constant.
    expected = 6.0 * plain.residuals(Z) + 2.75 / 4
    np.testing.assert_allclose(dressed.residuals(Z), expected)
    assert PreImageTarget(RBF() + Linear(), X, G).core == RBF() + Linear()
