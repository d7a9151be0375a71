"""K @ V with the Gaussian kernel, computed from points without storing K."""

from __future__ import annotations

import numpy as np

from ._limit import Limit
from ._problems import POINTS, default_gamma, describe, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite

N_CHECKED_ROWS = 64  # number of rows of K @ V that the reference computes


def make_problem(columns: int, dtype: str, **inputs):
    """Return points, right-hand sides, and the ℓ for which a typical entry of K is 1/e."""
    X = load_problem(**inputs, queries=1).X
    V = np.random.default_rng(1).standard_normal((len(X), columns))
    return X.astype(dtype), V.astype(dtype), float(np.sqrt(0.5 / default_gamma(X)))


def mercer(**inputs) -> Call:
    from mercer.gram import gram
    from mercer.kernels import RBF

    X, V, scale = make_problem(**inputs)
    return lambda: gram(RBF(length_scale=scale), X, storage="tiled") @ V


def keops(**inputs) -> Call:
    from pykeops.numpy import Vi, Vj

    X, V, scale = make_problem(**inputs)

    def product(X, V):
        return (-(Vi(X) - Vj(X)).sqnorm2() / (2 * scale**2)).exp() @ V

    product(X[:8], V[:8])  # compile before timing; the code depends only on d, columns and dtype
    return lambda: product(X, V)


def limit(**inputs) -> Call:
    """Return the lower bound on the time: distances and exponentials only."""
    return Limit(make_problem(**inputs)[0])


def limit_with_products(**inputs) -> Call:
    """Return the lower bound on the time, including the products with V."""
    X, V, _ = make_problem(**inputs)
    return Limit(X, V=V)


def reference(**inputs) -> np.ndarray:
    """Return Σⱼ exp(−‖xᵢ − xⱼ‖²/2ℓ²) vⱼ for random rows i, from differences, in float64."""
    X, V, scale = make_problem(**inputs)
    X, V = X.astype(np.float64), V.astype(np.float64)
    result = np.full(V.shape, np.nan)
    for i in np.random.default_rng(2).choice(len(X), N_CHECKED_ROWS, replace=False):
        result[i] = np.exp(-((X - X[i]) ** 2).sum(axis=1) / (2 * scale**2)) @ V
    return result


def cases(quick: bool) -> list[Case]:
    high_dimensional = {"name": "normal", "d": 500}
    return [
        Case(
            f"{describe(inputs)} {dtype}",
            inputs | {"dtype": dtype},
            tolerance={"float64": 1e-9, "float32": 1e-4}[dtype],
            family=f"K @ V from points, Gaussian kernel, {inputs['n']} points, 12 columns, {dtype}",
        )
        for dtype in ("float64", "float32")
        for inputs in problem_family(
            (*POINTS, high_dimensional), quick, n=4000 if quick else 20_000, columns=12
        )
    ]


SUITE = Suite(
    "K @ V, 12 columns",
    cases,
    {
        "mercer": Contender("mercer", mercer),
        "KeOps": Contender("pykeops", keops),
        "limit": Contender("numpy", limit),
        "limit, with products": Contender("numpy", limit_with_products),
    },
    reference,
)
