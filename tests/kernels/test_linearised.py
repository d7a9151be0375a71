"""Linearised kernel blocks agree with values, pullbacks and finite differences."""

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    Bounded,
    Constant,
    Fixed,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    Scale,
    White,
)

KERNELS = [
    RBF(0.7),
    RBF((0.5, 2.0, 1.3)),
    Matern(0.9, nu=0.5),
    Matern((0.5, 2.0, 1.3), nu=1.5),
    Matern(0.9, nu=2.5),
    Matern(0.9, nu=0.8),
    RationalQuadratic((0.5, 2.0, 1.3), alpha=0.6),
    RationalQuadratic(1.1, alpha=300.0),
    2.0 * RBF(0.7) + 0.3 * RationalQuadratic() + White(0.2),
    3.0 * White(0.2) + Bounded(1.5 * Matern(), limits=(0.1, 10.0)) + Fixed(RBF()),
    Constant(2.0) * RBF() * Laplacian() + Linear(),
    Scale(RBF(), 0.0) + White(0.0),
]


@pytest.mark.parametrize("columns", [3, 12])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_block_agrees_with_the_kernel(kernel, alone, columns):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, columns)), None if alone else rng.normal(size=(5, columns))
    if columns > 3:
        X[:, 3:], kernel = 0.1 * X[:, 3:], widened(kernel, columns)
    block, theta = kernel.linearise(X, Z), kernel.theta
    m = 7 if alone else 5
    W, V, U = rng.normal(size=(7, m)), rng.normal(size=(m, 2)), rng.normal(size=(7, 2))
    np.testing.assert_allclose(block.total(W), np.sum(W * kernel(X, Z)), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(block.pullback(W), kernel.pullback(X, Z, W), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(block.products(V), kernel(X, Z) @ V, rtol=1e-9, atol=1e-12)
    up, down = (
        [kernel.with_theta(theta + h * e)(X, Z) for e in np.eye(theta.size)] for h in (1e-5, -1e-5)
    )
    D = (np.array(up) - np.array(down)).reshape(theta.size, 7, m) / 2e-5
    np.testing.assert_allclose(block.tangents(V), D @ V, atol=1e-5)
    back = np.swapaxes(D, 1, 2) @ U
    np.testing.assert_allclose(block.tangents(U, transposed=True), back, atol=1e-5)


def widened(kernel, columns):
    """Return the kernel with one length scale per column, if it supports several."""
    scale = kernel.get_params().get("length_scale")
    if np.ndim(scale) == 0:
        return kernel
    return kernel.set_params(length_scale=np.resize(scale, columns))


def test_noise_is_added_only_to_the_points_themselves():
    X = np.eye(3)
    for Z, expected in ((None, 0.2 * np.eye(3)), (X, np.zeros((3, 3)))):
        total = np.zeros((3, 3))
        White(0.2).linearise(X, Z).add_to(total)
        np.testing.assert_array_equal(total, expected)
