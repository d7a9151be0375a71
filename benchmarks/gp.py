"""Gaussian processes: the most likely scale, width and noise of c·RBF + noise, exactly.

Every contender starts from c = ℓ = σ² = 1 and returns the log marginal likelihood it has reached,
which has to be within 1e-3 of the optimum: what is measured is the way to the same model.
GPyTorch factorises by Cholesky (its conjugate gradients would not be exact) and searches with
PyTorch's L-BFGS with strong Wolfe conditions, in float64.
"""

from __future__ import annotations

import numpy as np

from . import _models
from ._suite import Call, Case, Contender, Suite


def shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """How far the log marginal likelihood is from the optimum."""
    return float(np.abs(result - reference).max())


def noted(call: Call, text: str) -> None:
    call.note = text  # type: ignore[attr-defined]


def mercer(**size) -> Call:
    from mercer import GaussianProcessRegressor
    from mercer.kernels import RBF, White

    X, y, _ = _models.problem(**size)

    def fit() -> np.ndarray:
        model = GaussianProcessRegressor(1.0 * RBF() + White()).fit(X, y)
        noted(fit, f"{model.report_.n_iter} likelihoods")
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def sklearn(**size) -> Call:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y, _ = _models.problem(**size)
    count = [0]

    class Counted(GaussianProcessRegressor):
        def log_marginal_likelihood(self, *args, **kwargs):
            count[0] += 1
            return super().log_marginal_likelihood(*args, **kwargs)

    def fit() -> np.ndarray:
        count[0] = 0
        model = Counted(ConstantKernel() * RBF() + WhiteKernel()).fit(X, y)
        noted(fit, f"{count[0]} likelihoods")
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def gpytorch(**size) -> Call:
    import gpytorch
    import torch

    X, y, _ = _models.problem(**size)
    X, y = torch.as_tensor(X), torch.as_tensor(y)

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    def fit() -> np.ndarray:
        positive = gpytorch.constraints.GreaterThan(1e-5)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=positive)
        model = Exact(likelihood).double()
        model.covar_module.outputscale = 1.0
        model.covar_module.base_kernel.lengthscale = 1.0
        likelihood.noise = 1.0
        model.train(), likelihood.train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        # the loss is 1/n of the likelihood: 1e-7 is 3e-4 of it at n = 3000
        search = torch.optim.LBFGS(
            model.parameters(),
            max_iter=100,
            tolerance_grad=1e-7,
            tolerance_change=1e-7,
            line_search_fn="strong_wolfe",
        )
        least = [np.inf, 0]

        def closure():
            search.zero_grad()
            loss = -mll(model(X), y)
            loss.backward()
            least[:] = min(least[0], loss.item()), least[1] + 1
            return loss

        with gpytorch.settings.fast_computations(False, False, False):
            search.step(closure)
        noted(fit, f"{least[1]} likelihoods")
        return np.array([-least[0] * len(y)])

    return fit


def reference(**size) -> np.ndarray:
    """The optimum, by SciPy's L-BFGS on the formula of the likelihood and its gradient."""
    from scipy.linalg import cho_solve, cholesky
    from scipy.optimize import minimize
    from scipy.spatial.distance import cdist

    X, y, _ = _models.problem(**size)
    n = len(y)
    D = cdist(X, X, "sqeuclidean")

    def minus(theta: np.ndarray) -> tuple[float, np.ndarray]:
        c, width, noise = np.exp(theta)
        K = c * np.exp(-0.5 / width**2 * D)
        L = cholesky(K + noise * np.eye(n), lower=True)
        a = cho_solve((L, True), y)
        W = np.outer(a, a) - cho_solve((L, True), np.eye(n))
        value = -0.5 * y @ a - np.log(L.diagonal()).sum() - 0.5 * n * np.log(2 * np.pi)
        slopes = [np.sum(W * K), np.sum(W * K * D) / width**2, noise * np.trace(W)]
        return -value, -0.5 * np.array(slopes)

    start = np.zeros(3)
    if n > 800:  # begin where a part of the points is best
        part = np.random.default_rng(1).permutation(n)[:600]
        whole, X, y, n, D = (X, y, n, D), X[part], y[part], 600, D[np.ix_(part, part)]
        start = minimize(minus, start, jac=True, method="L-BFGS-B").x
        X, y, n, D = whole
    found = minimize(minus, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-11})
    return np.array([-found.fun])


def cases(quick: bool) -> list[Case]:
    size = {"n": 800 if quick else 3000, "d": 5, "seed": 0}
    name = f"GaussianProcessRegressor.fit n={size['n']}"
    return [Case(name, size, tolerance=1e-3, error=shortfall)]


SUITE = Suite(
    "Gaussian processes",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "scikit-learn": Contender("sklearn", sklearn),
        "GPyTorch": Contender("gpytorch", gpytorch),
    },
    reference,
)
