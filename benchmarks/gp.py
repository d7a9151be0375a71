"""Gaussian processes: maximise the likelihood over kernel parameters, compared at equal likelihood.

A likelihood that is better than the reference is accepted.

`gp`: c·RBF + noise, 3 000 points.  GPyTorch uses Cholesky factors (its conjugate gradients would
not be exact) and PyTorch's L-BFGS with strong Wolfe conditions, in float64.
`gp-classes`: two classes with the Laplace approximation, c·RBF, 1 000 points.
`gp-family`: ten problems chosen by a seed, six generated and four real ones.  Their sizes,
dimensions and noise, and the kernel that is fitted, are random too.  All parameters start at 1.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from . import _models
from ._problems import (
    LABELS,
    UCI,
    VALUES,
    Problem,
    describe,
    is_available,
    load_problem,
    problem_family,
)
from ._suite import Call, Case, Contender, Suite

# ---------------------------------------------------------------- one kernel, against GPyTorch


def gpytorch(model: str, job: str, **inputs: Any) -> Call:
    """Return a call that fits an exact GP with GPyTorch."""
    import gpytorch
    import torch

    X, y, *_ = (torch.as_tensor(part) for part in load_problem(**inputs))

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
        # The loss is the negative log likelihood divided by n, so a tolerance of 1e-7 of the loss
        # is 3e-4 of the log likelihood at n = 3000.
        optimizer = torch.optim.LBFGS(
            model.parameters(),
            max_iter=100,
            tolerance_grad=1e-7,
            tolerance_change=1e-7,
            line_search_fn="strong_wolfe",
        )
        best = [np.inf, 0]

        def closure():
            optimizer.zero_grad()
            loss = -mll(model(X), y)
            loss.backward()
            best[:] = min(best[0], loss.item()), best[1] + 1
            return loss

        with gpytorch.settings.fast_computations(False, False, False):
            optimizer.step(closure)
        return np.array([-best[0] * len(y)])

    return fit


def cases(model: str, members: tuple, n: int, small: int, quick: bool, **common: Any) -> list[Case]:
    """Return the cases of one estimator on a family of problems."""
    n = small if quick else n
    description = f"`{model}.fit`, {n} points"
    return [
        _models.make_case(describe(inputs), model, "fit", inputs, family=description)
        for inputs in problem_family(members, quick, n=n, queries=1, **common)
    ]


# ------------------------------------------------------------------------ ten random problems

SEED = 18  # nothing in mercer was tuned on the problems of this seed
SIZES = (1200, 1400, 1600, 2000)


def random_problem(i: int, max_points: int) -> tuple[str, Problem, Any]:
    """Return the i-th of ten problems: its title, its data and the kernel to start from."""
    rng = np.random.default_rng(SEED)
    real_sets = [name for name in UCI if name not in ("concrete", "energy", "housing", "bike")]
    sources = ["process"] * 4 + ["friedman", "waves", *rng.permutation(real_sets)[:4].tolist()]
    rng = np.random.default_rng([SEED, i])
    inputs = {"name": sources[i], "n": min(int(rng.choice(SIZES)), max_points), "seed": SEED + i}
    if i < 6:
        d = int(np.round(np.exp(rng.uniform(np.log(2), np.log(32)))))
        noise = round(float(np.exp(rng.uniform(np.log(0.01), np.log(0.5)))), 2)
        inputs |= {"d": max(d, 5) if sources[i] == "friedman" else d, "noise": noise}
    data = load_problem(**inputs, queries=1)
    kernel, description = random_kernel(data.X.shape[1], (i + SEED) % 5, rng)
    return f"{describe(inputs)}, {description}", data, kernel


def random_kernel(d: int, kind: int, rng: np.random.Generator) -> tuple[Any, str]:
    """Return a kernel with all parameters equal to 1, and its description."""
    from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel
    from sklearn.gaussian_process.kernels import ConstantKernel as C

    widths = np.ones(d) if d <= 12 and rng.random() < 0.5 else 1.0
    scales = "one length scale" if np.ndim(widths) == 0 else "one length scale per column"
    if kind == 0:
        return C() * RBF(widths) + WhiteKernel(), f"RBF, {scales}"
    if kind == 1:
        return C() * Matern(widths, nu=1.5) + WhiteKernel(), f"Matern 3/2, {scales}"
    if kind == 2:
        return C() * RationalQuadratic() + WhiteKernel(), "rational quadratic"
    if kind == 3:
        return C() * Matern(widths, nu=2.5) + WhiteKernel(), f"Matern 5/2, {scales}"
    return C() * RBF() + C() * Matern(nu=1.5) + WhiteKernel(), "RBF + Matern 3/2"


def make_fit(library: str, i: int, most: int) -> Call:
    """Return a call that fits the i-th problem and returns the log marginal likelihood."""
    _, (X, y, *_), kernel = random_problem(i, most)

    def fit() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parameters at a bound
            model = _models.Library(library).GaussianProcessRegressor(kernel).fit(X, y)
        if library == "mercer":
            fit.note = f"{model.report_.n_iter} likelihood evaluations"
        return np.array([model.log_marginal_likelihood_value_])

    return fit


def family_cases(quick: bool) -> list[Case]:
    """Return the ten random problems, or those whose data are available."""
    max_points = 800 if quick else SIZES[-1]
    common = {"tolerance": 1e-6, "error": _models.likelihood_shortfall}
    selected = (0, 4) if quick else range(10 if is_available("protein") else 6)
    description = "`GaussianProcessRegressor.fit`, random kernels, sizes and noise levels"
    return [
        Case(
            random_problem(i, max_points)[0],
            {"i": i, "most": max_points},
            **common,
            family=description,
        )
        for i in selected
    ]


SUITES = {
    "gp": Suite(
        "Gaussian process regression, c·RBF + noise",
        partial(cases, "GaussianProcessRegressor", VALUES, 3000, 800),
        _models.CONTENDERS | {"GPyTorch": Contender("gpytorch", gpytorch)},
        _models.reference,
    ),
    "gp-classes": _models.make_suite(
        "Gaussian process classification of two classes",
        partial(cases, "GaussianProcessClassifier", LABELS, 1000, 300, classes=2),
    ),
    "gp-family": Suite(
        "Gaussian process regression, ten problems",
        family_cases,
        {
            "mercer": Contender("mercer", partial(make_fit, "mercer")),
            "scikit-learn": Contender("sklearn", partial(make_fit, "scikit-learn")),
        },
        lambda **inputs: make_fit("scikit-learn", **inputs)(),
    ),
}
