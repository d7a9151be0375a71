"""K @ V with the Gaussian kernel, from points: K is never given."""

from __future__ import annotations

import numpy as np

from ._limit import Limit
from ._suite import Call, Case, Contender, Suite

PROBES = 64  # rows of K @ V that the reference computes


def problem(n: int, d: int, columns: int, dtype: str, seed: int):
    """Points, right-hand sides and ℓ = √d, at which a typical entry of K is 1/e."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    V = rng.standard_normal((n, columns)).astype(dtype)
    return X, V, float(np.sqrt(d))


def mercer(**inputs) -> Call:
    from mercer.gram import gram
    from mercer.kernels import RBF

    X, V, scale = problem(**inputs)
    return lambda: gram(RBF(length_scale=scale), X, storage="tiled") @ V


def keops(**inputs) -> Call:
    from pykeops.numpy import Vi, Vj

    X, V, scale = problem(**inputs)

    def product(X, V):
        return (-(Vi(X) - Vj(X)).sqnorm2() / (2 * scale**2)).exp() @ V

    product(X[:8], V[:8])  # compiles: the formula depends on d, the columns and the type only
    return lambda: product(X, V)


def limit(**inputs) -> Call:
    return Limit(problem(**inputs)[0])


def limit_with_products(**inputs) -> Call:
    X, V, _ = problem(**inputs)
    return Limit(X, V=V)


def reference(**inputs) -> np.ndarray:
    """Σⱼ exp(−‖xᵢ − xⱼ‖²/2ℓ²) vⱼ for random rows i, from differences, in float64."""
    X, V, scale = problem(**inputs)
    X, V = X.astype(np.float64), V.astype(np.float64)
    result = np.full(V.shape, np.nan)
    for i in np.random.default_rng(inputs["seed"] + 1).choice(len(X), PROBES, replace=False):
        result[i] = np.exp(-((X - X[i]) ** 2).sum(axis=1) / (2 * scale**2)) @ V
    return result


def cases(quick: bool) -> list[Case]:
    n = 4000 if quick else 20000
    return [
        Case(
            f"n={n} d={d} {dtype}",
            {"n": n, "d": d, "columns": 12, "dtype": dtype, "seed": 0},
            tolerance={"float64": 1e-9, "float32": 1e-4}[dtype],
        )
        for dtype in ("float64", "float32")
        for d in (3, 50, 500)
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
