"""Real data for support vector machines, and their objectives in float64, the same for everybody.

For every pair of classes, f = Σᵢ aᵢ k(xᵢ, ·) with |aᵢ| ≤ C, opposite signs in the two classes, and
Σᵢ aᵢ = 0.  For any such a and any b, with K of its support vectors and y = ±1,

    Σ|aᵢ| − aᵀKa / 2   ≤   aᵀKa / 2 + C Σᵢ max(0, 1 − yᵢ (f(xᵢ) + b))

The left side, summed over the pairs, is what a fit has to make large; where both sides agree, that
is proved to be all there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .sparse import DATA

FOLDER = DATA / "libsvm"
FILES = {
    "a9a": "a9a.npz",
    "ijcnn1": "ijcnn1.npz",
    "cod-rna": "cod_rna.npz",
    "letter": "letter.npz",
    "covtype": "covtype_16pct.npz",
}
UNSCALED = ("cod-rna", "covtype")
ROWS = {"covtype": 20_000}  # for training; the others come with a training part
TILE = 1000


class Problem(NamedTuple):
    """Points, labels, further points to predict, and scikit-learn's γ = "scale"."""

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    gamma: float


@lru_cache(maxsize=1)
def problem(name: str, n: int | None = None) -> Problem:
    """Return the training rows of a set, or n of them, and its test rows; dense, in float64."""
    X, y, Q = _read(name)
    if n is not None and n < len(X):
        X, y = (part[np.random.default_rng(0).permutation(len(X))[:n]] for part in (X, y))
    if name in UNSCALED:
        middle, spread = X.mean(axis=0), X.std(axis=0)
        X, Q = ((part - middle) / np.where(spread > 0, spread, 1.0) for part in (X, Q))
    return Problem(X, y, Q, 1.0 / (X.shape[1] * X.var()))


def _read(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.load(FOLDER / FILES[name], allow_pickle=False) as file:
        if name == "a9a":
            return _dense(file, "train"), file["y_train"], _dense(file, "test")
        if name == "covtype":
            codes = [np.eye(4)[file["wilderness"]], np.eye(40)[file["soil"]]]
            X, y = np.hstack([file["X_num"], *codes]), file["y"]
            order, n = np.random.default_rng(0).permutation(len(X)), ROWS[name]
            return X[order[:n]], y[order[:n]], X[order[n:]]
        scale = float(file["scale"]) if "scale" in file else 1.0
        test = file["X_test"] if "X_test" in file else file["X_train"][:0]
        return scale * file["X_train"].astype(float), file["y_train"], scale * test.astype(float)


def _dense(file, part: str) -> np.ndarray:
    from scipy.sparse import csr_array

    data, indices, indptr = (file[f"{part}_{piece}"] for piece in ("data", "indices", "indptr"))
    pieces = (data.astype(float), indices.astype(np.int32), indptr)
    return csr_array(pieces, shape=tuple(file[f"{part}_shape"])).toarray()


def available() -> list[str]:
    there = [name for name in FILES if (FOLDER / FILES[name]).exists()]
    if not there:
        print(f"no data for the suites svm in {FOLDER}: set MERCER_DATA")
    return there


# ------------------------------------------------------------------------- one fit, as an array


def packed(support: np.ndarray, dual_coef: np.ndarray) -> np.ndarray:
    """Return the indices of the support vectors, and below them the coefficients."""
    return np.vstack([support, np.atleast_2d(np.asarray(dual_coef))])


class _Pair(NamedTuple):
    """The support vectors of two classes: which training rows, and a."""

    classes: tuple
    rows: np.ndarray
    a: np.ndarray


def pairs(result: np.ndarray, y: np.ndarray) -> Iterator[_Pair]:
    """Yield every pair of classes, from the layout that scikit-learn and LIBSVM share."""
    support, coefficients = result[0].astype(int), result[1:]
    classes = np.unique(y)
    members = [np.flatnonzero(y[support] == c) for c in classes]
    for i, j in combinations(range(len(classes)), 2):
        columns = np.concatenate([members[i], members[j]])
        a = np.concatenate([coefficients[j - 1, members[i]], coefficients[i, members[j]]])
        kept = a != 0.0
        yield _Pair((classes[i], classes[j]), support[columns[kept]], a[kept])


def values(X: np.ndarray, Z: np.ndarray, a: np.ndarray, gamma: float) -> np.ndarray:
    """f(x) = Σⱼ aⱼ exp(−γ‖x − zⱼ‖²), in tiles."""
    f, squares = np.empty(len(X)), np.square(Z).sum(axis=1)
    for start in range(0, len(X), TILE):
        tile = X[start : start + TILE]
        K = tile @ Z.T
        K *= -2.0
        K += squares
        K += np.square(tile).sum(axis=1, keepdims=True)
        np.maximum(K, 0.0, out=K)
        K *= -gamma
        f[start : start + TILE] = np.exp(K, out=K) @ a
    return f


def dual(result: np.ndarray, C: float, **which) -> float:
    """Return the dual objective, or −∞ for coefficients that break a constraint."""
    X, y, _, gamma = problem(**which)
    total = 0.0
    for pair in pairs(result, y):
        if not len(pair.a):  # f = 0
            continue
        signs = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(signs @ pair.a) or 1.0  # two classes: the second is positive
        a = signs * pair.a
        if a.min() < 0.0 or a.max() > C * (1 + 1e-9) or abs(pair.a.sum()) > 1e-6 * a.sum():
            return -math.inf
        Z = X[pair.rows]
        total += a.sum() - 0.5 * pair.a @ values(Z, Z, pair.a, gamma)
    return float(total)


def primal(result: np.ndarray, C: float, **which) -> float:
    """Return the primal objective of the same functions, each with the best b: an upper bound."""
    X, y, _, gamma = problem(**which)
    total = 0.0
    for pair in pairs(result, y):
        both = np.isin(y, pair.classes)
        signs = np.where(y[both] == pair.classes[0], 1.0, -1.0)
        ours = np.where(y[pair.rows] == pair.classes[0], 1.0, -1.0)
        signs *= np.sign(ours @ pair.a) or 1.0
        f = values(X[both], X[pair.rows], pair.a, gamma)
        at = np.searchsorted(np.flatnonzero(both), pair.rows)
        total += 0.5 * pair.a @ f[at] + C * least_hinge(f, signs)
    return float(total)


def least_hinge(f: np.ndarray, signs: np.ndarray) -> float:
    """min over b of Σ max(0, 1 − yᵢ (fᵢ + b)), which is convex with its kinks at b = yᵢ − fᵢ."""
    kinks = np.sort(signs - f)
    # the slope begins at −(number of y = +1) and grows by one at every kink
    b = kinks[min(np.count_nonzero(signs > 0), len(kinks) - 1)]
    return float(np.maximum(0.0, 1.0 - signs * (f + b)).sum())
