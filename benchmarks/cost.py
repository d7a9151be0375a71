"""K @ V as n grows: the curves of cost.png."""

from __future__ import annotations

import numpy as np

from . import kv
from ._suite import Call, Case, Contender, Suite

LARGEST_STORED = 16000  # points; beyond it K alone takes more than 2 GB


def _whole(X: np.ndarray, scale: float) -> np.ndarray:
    """K in one n × n array, from ‖x − z‖² = |x|² + |z|² − 2⟨x, z⟩, with no second one."""
    squares = np.einsum("ij,ij->i", X, X)
    K = X @ X.T
    K *= 2.0
    K -= squares[:, None]
    K -= squares
    K /= 2 * scale**2
    return np.exp(K, out=K)


def numpy_whole(**inputs) -> Call:
    X, V, scale = kv.problem(**inputs)
    return lambda: _whole(X, scale) @ V


def numpy_stored(**inputs) -> Call:
    X, V, scale = kv.problem(**inputs)
    K = _whole(X, scale)
    return lambda: K @ V


def cases(quick: bool) -> list[Case]:
    """Double n; the contenders that store K stop where it no longer fits comfortably."""
    tiled = tuple(name for name in CONTENDERS if "NumPy" not in name)
    return [
        Case(
            f"n={n} d=50 float64",
            {"name": "normal", "n": n, "d": 50, "columns": 12, "dtype": "float64"},
            contenders=() if n <= LARGEST_STORED else tiled,
        )
        for n in (1000, 2000, 4000, 8000, 16000, 32000)[: 3 if quick else None]
    ]


CONTENDERS = kv.SUITE.contenders | {
    "NumPy, K formed": Contender("numpy", numpy_whole),
    "NumPy, K stored": Contender("numpy", numpy_stored),
}
SUITE = Suite("K @ V as n grows", cases, CONTENDERS, kv.reference, give_up=10.0)
