"""The cost of K @ V as n grows, which is plotted in cost.png."""

from __future__ import annotations

import numpy as np

from . import kv
from ._suite import Call, Case, Contender, Suite

MAX_STORED_POINTS = 16000  # points; with more, K alone needs more than 2 GB


def _gaussian_matrix(X: np.ndarray, scale: float) -> np.ndarray:
    """Return K as one array, from ‖x − z‖² = |x|² + |z|² − 2⟨x, z⟩, without temporary copies."""
    squares = np.einsum("ij,ij->i", X, X)
    K = X @ X.T
    K *= 2.0
    K -= squares[:, None]
    K -= squares
    K /= 2 * scale**2
    return np.exp(K, out=K)


def numpy_formed(**inputs) -> Call:
    """Return a call that forms K and multiplies it by V."""
    X, V, scale = kv.make_problem(**inputs)
    return lambda: _gaussian_matrix(X, scale) @ V


def numpy_stored(**inputs) -> Call:
    """Return a call that multiplies a stored K by V."""
    X, V, scale = kv.make_problem(**inputs)
    K = _gaussian_matrix(X, scale)
    return lambda: K @ V


def cases(quick: bool) -> list[Case]:
    """Return cases in which n doubles; those that store K stop at MAX_STORED_POINTS."""
    tiled = tuple(name for name in CONTENDERS if "NumPy" not in name)
    return [
        Case(
            f"n={n} d=50 float64",
            {"name": "normal", "n": n, "d": 50, "columns": 12, "dtype": "float64"},
            contenders=() if n <= MAX_STORED_POINTS else tiled,
        )
        for n in (1000, 2000, 4000, 8000, 16000, 32000)[: 3 if quick else None]
    ]


CONTENDERS = kv.SUITE.contenders | {
    "NumPy, K formed": Contender("numpy", numpy_formed),
    "NumPy, K stored": Contender("numpy", numpy_stored),
}
SUITE = Suite("K @ V as n grows", cases, CONTENDERS, kv.reference, max_seconds=10.0)
