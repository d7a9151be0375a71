"""The problems of all suites: real sets from the folder `MERCER_DATA`, and sets drawn by a seed.

One name, one function: `draw("kin40k", n=5000)` and `draw("waves", n=5000, d=8, noise=0.5)` both
give points with targets, and further points with theirs.  Columns and real-valued targets are
standardised by the former.  A `family` is a list of such problems, as the inputs of cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
UCI = (
    *("airfoil", "bike", "concrete", "energy", "housing", "keggdirected", "keggundirected"),
    *("kin40k", "parkinsons", "protein", "skillcraft", "sml", "tamielectric", "wine"),
)
FILES = {name: f"regression/uci_datasets/{name}.csv.gz" for name in UCI}
FILES |= {n: f"libsvm/{n}.npz" for n in ("a9a", "ijcnn1", "letter", "pendigits", "svmguide1")}
FILES |= {"cod-rna": "libsvm/cod_rna.npz", "covtype": "libsvm/covtype_16pct.npz"}
FILES |= {n: f"raetsch/{n}.npz" for n in ("banana", "image", "splice", "twonorm", "waveform")}
FILES |= {"usps": "usps/usps.npz", "mnist": "mnist/mnist.npz"}
BUNDLED = ("iris", "breast_cancer", "digits", "diabetes")  # come with scikit-learn
AS_THEY_ARE = ("a9a", "ijcnn1", "usps", "mnist", "digits")  # columns of one unit, many constant
LEAKS = {"bike": [15, 16]}  # columns that sum to the exponential of the target
PLANES = {"plane": (10, 1.0), "curve": (3, 0.5)}  # dimensions q and scale s

Inputs = dict[str, Any]


class Problem(NamedTuple):
    """Points and targets to learn from, and further ones."""

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    truth: np.ndarray


@lru_cache(maxsize=2)
def draw(
    name: str,
    n: int = 0,
    d: int = 2,
    noise: float = 0.1,
    classes: int = 0,
    queries: int = 0,
    seed: int = 0,
) -> Problem:
    """Return n points (0: all that a real set has) and at most so many queries (0: all).

    The noise is in deviations of the function.  With `classes`, a real-valued target is cut into
    parts of equally many points, and labels count modulo their number.
    """
    rng = np.random.default_rng([seed, n])
    if name in FILES or name in BUNDLED:
        X, y, test = _read(name)
        order = rng.permutation(np.flatnonzero(~test)) if n else np.flatnonzero(~test)
        parts = order[: n or None], np.flatnonzero(test)[: queries or None]
        labelled = name not in UCI and name != "diabetes"
    else:
        queries = queries or n
        X, y = _made(name, n + queries, d, classes, rng)
        if name != "blobs":
            y = y + noise * y.std() * rng.standard_normal(len(y))
        parts = np.arange(n), np.arange(n, n + queries)
        labelled = name == "blobs"
    train, test = parts
    X = X.astype(float)
    if (name in FILES or name in BUNDLED) and name not in AS_THEY_ARE:
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if labelled and classes:
        y = np.unique(y, return_inverse=True)[1] % classes
    elif classes:
        y = np.digitize(y, np.quantile(y[train], np.linspace(0, 1, classes + 1)[1:-1]))
    elif not labelled:
        y = (y - y[train].mean()) / y[train].std()
    return Problem(X[train], y[train], X[test], y[test])


def _made(
    name: str, m: int, d: int, classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """m points in d columns, and a function of them.

    The spectrum of a Gaussian kernel falls slowly for "normal", faster where columns shrink
    ("falling") or the points are near a plane of 10 dimensions, fast near one of 3 ("curve").
    """
    if name == "blobs":
        centres, y = rng.uniform(-3, 3, (classes, d)), rng.integers(0, classes, m)
        return centres[y] + rng.standard_normal((m, d)), y
    X = rng.standard_normal((m, d))
    if name in PLANES:
        q, scale = PLANES[name]
        X = rng.standard_normal((m, q)) @ rng.standard_normal((q, d)) * (scale / np.sqrt(q))
        X += 0.01 * rng.standard_normal((m, d))
    elif name == "falling":
        X *= 0.9 ** np.arange(d)
    elif name == "line":
        return X, X @ rng.standard_normal(d)
    elif name == "shells":
        return X, np.linalg.norm(X, axis=1)
    elif name == "friedman":
        X = rng.random((m, max(d, 5)))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        return X, f + 10 * X[:, 3] + 5 * X[:, 4]
    elif name == "waves":
        X = rng.uniform(-2, 2, size=(m, d))
        return X, np.sin(X @ rng.standard_normal(d)) + np.abs(X[:, 0]) * (X[:, 1] > 0)
    elif name == "process":  # of random smoothness, a width for each column
        from sklearn.gaussian_process.kernels import RBF, Matern

        widths = np.sqrt(d) * np.exp(rng.uniform(np.log(0.3), np.log(3.0), size=d))
        K = [RBF(widths), Matern(widths, nu=1.5), Matern(widths, nu=2.5)][rng.integers(3)](X)
        K.flat[:: m + 1] += 1e-8
        return X, np.linalg.cholesky(K) @ rng.standard_normal(m)
    elif name != "normal":
        raise ValueError(f"no problem {name!r}")
    return X, np.sin(X[:, 0]) + X[:, 1 % d] * X[:, 2 % d]


def _read(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all rows of a real set, their targets, and which of them are for testing."""
    if name in BUNDLED:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X = X / 16.0 if name == "digits" else X
        return X, y, _third(len(X))
    path = DATA / FILES[name]
    if name in UCI:
        table = np.delete(np.loadtxt(path, delimiter=","), LEAKS.get(name, []), axis=1)
        with np.load(path.with_name(f"{name}_fold.npz"), allow_pickle=False) as file:
            fold = file[file.files[0]]
        return table[:, :-1], table[:, -1], fold == 0
    with np.load(path, allow_pickle=False) as file:
        if name == "covtype":
            codes = [np.eye(4)[file["wilderness"]], np.eye(40)[file["soil"]]]
            return np.hstack([file["X_num"], *codes]), file["y"], _third(len(file["y"]))
        if "X" in file:
            return file["X"], file["y"].ravel(), _third(len(file["X"]))
        X, y = _dense(file, "train"), file["y_train"]
        test = _third(len(y)) if "y_test" not in file else np.zeros(len(y), dtype=bool)
        if "y_test" in file:
            X = np.concatenate([X, _dense(file, "test")])
            y = np.concatenate([y, file["y_test"]])
            test = np.arange(len(y)) >= len(file["y_train"])
        scale = {"usps": 1e-3, "mnist": 1 / 255}.get(name) or file.get("scale", 1.0)
    return X * float(scale), y, test


def _dense(file: Any, part: str) -> np.ndarray:
    if f"X_{part}" in file:
        return file[f"X_{part}"]
    from scipy.sparse import csr_array

    data, indices, indptr = (file[f"{part}_{piece}"] for piece in ("data", "indices", "indptr"))
    pieces = (data.astype(float), indices.astype(np.int32), indptr)
    return csr_array(pieces, shape=tuple(file[f"{part}_shape"])).toarray()


def _third(n: int) -> np.ndarray:
    """A third of the rows, where a set comes without a part for testing."""
    return np.random.default_rng(0).permutation(n) < n // 3


# ------------------------------------------------------------------------------------ families

POINTS = (  # spectra that fall slowly and fast, few and many columns
    {"name": "normal", "d": 3},
    {"name": "protein"},
    {"name": "curve", "d": 50},
    {"name": "kin40k"},
    {"name": "falling", "d": 20},
    {"name": "plane", "d": 50},
    {"name": "a9a"},
)
VALUES = (  # smooth and rough functions, little noise and much
    {"name": "falling", "d": 20, "noise": 0.1},
    {"name": "kin40k"},
    {"name": "waves", "d": 8, "noise": 0.5},
    {"name": "protein"},
    {"name": "friedman", "d": 6, "noise": 0.01},
    {"name": "normal", "d": 20, "noise": 0.3},
    {"name": "tamielectric"},
)
LABELS = (  # of two classes and of many
    {"name": "shells", "d": 2, "classes": 2, "noise": 0.3},
    {"name": "letter"},
    {"name": "line", "d": 15, "classes": 2, "noise": 0.3},
    {"name": "blobs", "d": 10, "classes": 5},
    {"name": "pendigits"},
    {"name": "covtype"},
)


def family(members: Iterable[Inputs], quick: bool, **common: Any) -> list[Inputs]:
    """The members whose data are there, with what is common to all; quick: the first two."""
    kept = [member | common for member in members if there(member["name"])]
    return kept[:2] if quick else kept


def there(name: str) -> bool:
    if name not in FILES or (DATA / FILES[name]).exists():
        return True
    print(f"{name} is left out: there is no {FILES[name]} in MERCER_DATA")
    return False


def title(inputs: Inputs) -> str:
    """The name of a problem: "waves, noise 0.5, n=5000 d=8"."""
    words = [inputs["name"]]
    words += [f"noise {inputs['noise']:g}"] if inputs.get("noise") else []
    words += [f"{inputs['classes']} classes"] if inputs.get("classes") else []
    sizes = [f"{key}={inputs[key]}" for key in ("n", "d") if inputs.get(key)]
    return " ".join([", ".join(words), *sizes])


def width(X: np.ndarray) -> float:
    """γ = 1 / E‖x − z‖², at which a typical entry of a Gaussian K is 1/e."""
    return 1.0 / (2.0 * float(X.var(axis=0).sum()))
