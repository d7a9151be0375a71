"""The likelihood of latent coordinates: gradients, and the known solution of a linear kernel."""

import numpy as np
import pytest

from mercer import MemoryBudgetError
from mercer.kernels import RBF, Constant, Linear, Matern, Polynomial, RationalQuadratic, White
from mercer.models.gp import LatentLikelihood, MarginalLikelihood, maximise

rng = np.random.default_rng(0)
Y = rng.normal(size=(25, 4))
Y -= Y.mean(axis=0)
Z = rng.normal(size=(25, 2))

KERNELS = [
    1.3 * RBF(0.7) + Constant(0.2) + White(0.1),
    RBF([0.5, 2.0]) + White(0.2),
    Matern(nu=2.5) * Linear() + White(0.3),
    2.0 * Linear() + White(0.5),
    RationalQuadratic() + 0.1 * Polynomial(degree=2) + White(0.1),
]


@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_those_of_differences(kernel, prior):
    likelihood = LatentLikelihood(kernel, Y, 2, prior)
    u = likelihood.joined(Z)
    _, gradient = likelihood.value_and_gradient(u)
    found = np.empty_like(u)
    for i, step in enumerate(1e-4 * np.eye(len(u))):
        far = [likelihood.value_and_gradient(u + t * step)[0] for t in (2, 1, -1, -2)]
        found[i] = (-far[0] + 8 * far[1] - 8 * far[2] + far[3]) / 12e-4
    np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_value_is_that_of_a_gaussian_process_and_of_the_prior():
    kernel = KERNELS[0]
    u = LatentLikelihood(kernel, Y, 2).joined(Z)
    plain = LatentLikelihood(kernel, Y, 2, prior=False).value_and_gradient(u)[0]
    assert plain == pytest.approx(MarginalLikelihood(kernel, Z, Y).value(), rel=1e-12)
    prior = -0.5 * np.sum(Z**2) - 25 * np.log(2 * np.pi)
    assert LatentLikelihood(kernel, Y, 2).value_and_gradient(u)[0] == pytest.approx(plain + prior)


def test_no_value_where_the_matrix_is_singular():
    likelihood = LatentLikelihood(Linear(), Y, 2)
    value, gradient = likelihood.value_and_gradient(likelihood.joined(Z))
    assert value == -np.inf and not gradient.any()


def test_a_gain_that_is_too_small_ends_a_search():
    likelihood = LatentLikelihood(KERNELS[0], Y, 2)
    u = likelihood.joined(Z)
    short = maximise(likelihood, u, likelihood.bounds, first_step="unit", gain=1.0)
    long = maximise(likelihood, u, likelihood.bounds, first_step="unit", gain=1e-3)
    assert short.converged and short.message == "the last 10 steps gained too little"
    assert short.evaluations < long.evaluations and short.value < long.value


def test_the_budget():
    with pytest.raises(MemoryBudgetError, match="a latent variable model of 25 points needs"):
        LatentLikelihood(KERNELS[0], Y, 2, max_memory="10 KiB")
