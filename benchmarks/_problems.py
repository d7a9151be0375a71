"""The data of all suites: real data sets from the folder `MERCER_DATA`, and generated ones.

`load_problem("kin40k", n=5000)` and `load_problem("waves", n=5000, d=8, noise=0.5)` both return
training points with targets, and query points with theirs.  Columns and real-valued targets are
standardised with the mean and standard deviation of the training points.  A family is a list of
such problems, each given as a dictionary of inputs.
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
BUNDLED = ("iris", "breast_cancer", "digits", "diabetes")  # included in scikit-learn
# Sets that are not standardised: all columns have the same unit, and many are constant.
NOT_STANDARDISED = ("a9a", "ijcnn1", "usps", "mnist", "digits")
LEAKING_COLUMNS = {"bike": [15, 16]}  # columns whose sum is the exponential of the target
SUBSPACES = {"plane": (10, 1.0), "curve": (3, 0.5)}  # dimension q of the subspace, and scale

Inputs = dict[str, Any]


class Problem(NamedTuple):
    """Training points with targets, and query points with theirs."""

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray  # query points
    truth: np.ndarray  # targets of the query points


@lru_cache(maxsize=2)
def load_problem(
    name: str,
    n: int = 0,
    d: int = 2,
    noise: float = 0.1,
    classes: int = 0,
    queries: int = 0,
    seed: int = 0,
) -> Problem:
    """Return a data set by name, as n training points and a number of query points.

    `n` and `queries` limit the numbers of points.  0 means all points of a real set; for generated
    sets, `queries=0` means n queries.  `noise` is relative to the standard deviation of the
    function.  If `classes` is positive, a real-valued target is binned into that many classes of
    equal size, and labels are taken modulo `classes`.
    """
    rng = np.random.default_rng([seed, n])
    if name in FILES or name in BUNDLED:
        X, y, test = _read_dataset(name)
        order = rng.permutation(np.flatnonzero(~test)) if n else np.flatnonzero(~test)
        indices = order[: n or None], np.flatnonzero(test)[: queries or None]
        has_labels = name not in UCI and name != "diabetes"
    else:
        queries = queries or n
        X, y = _generate(name, n + queries, d, classes, rng)
        if name != "blobs":
            y = y + noise * y.std() * rng.standard_normal(len(y))
        indices = np.arange(n), np.arange(n, n + queries)
        has_labels = name == "blobs"
    train, test = indices
    X = X.astype(float)
    if (name in FILES or name in BUNDLED) and name not in NOT_STANDARDISED:
        std = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0))[:, std > 0] / std[std > 0]
    if has_labels and classes:
        y = np.unique(y, return_inverse=True)[1] % classes
    elif classes:
        y = np.digitize(y, np.quantile(y[train], np.linspace(0, 1, classes + 1)[1:-1]))
    elif not has_labels:
        y = (y - y[train].mean()) / y[train].std()
    return Problem(X[train], y[train], X[test], y[test])


def _generate(
    name: str, n_points: int, d: int, classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return `n_points` points with d columns, and the values of a function of them.

    The eigenvalues of a Gaussian kernel decay slowly for "normal".  They decay faster if the
    columns shrink ("falling") or the points lie near a subspace of dimension 10 ("plane"), and
    fastest near a subspace of dimension 3 ("curve").
    """
    if name == "blobs":
        centres, y = rng.uniform(-3, 3, (classes, d)), rng.integers(0, classes, n_points)
        return centres[y] + rng.standard_normal((n_points, d)), y
    X = rng.standard_normal((n_points, d))
    if name in SUBSPACES:
        q, scale = SUBSPACES[name]
        X = rng.standard_normal((n_points, q)) @ rng.standard_normal((q, d)) * (scale / np.sqrt(q))
        X += 0.01 * rng.standard_normal((n_points, d))
    elif name == "falling":
        X *= 0.9 ** np.arange(d)
    elif name == "line":
        return X, X @ rng.standard_normal(d)
    elif name == "shells":
        return X, np.linalg.norm(X, axis=1)
    elif name == "friedman":
        X = rng.random((n_points, max(d, 5)))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        return X, f + 10 * X[:, 3] + 5 * X[:, 4]
    elif name == "waves":
        X = rng.uniform(-2, 2, size=(n_points, d))
        return X, np.sin(X @ rng.standard_normal(d)) + np.abs(X[:, 0]) * (X[:, 1] > 0)
    elif name == "process":  # random smoothness, one length scale for each column
        from sklearn.gaussian_process.kernels import RBF, Matern

        widths = np.sqrt(d) * np.exp(rng.uniform(np.log(0.3), np.log(3.0), size=d))
        K = [RBF(widths), Matern(widths, nu=1.5), Matern(widths, nu=2.5)][rng.integers(3)](X)
        K.flat[:: n_points + 1] += 1e-8
        return X, np.linalg.cholesky(K) @ rng.standard_normal(n_points)
    elif name != "normal":
        raise ValueError(f"there is no problem named {name!r}")
    return X, np.sin(X[:, 0]) + X[:, 1 % d] * X[:, 2 % d]


def _read_dataset(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all rows of a real data set, their targets, and a mask of the rows for testing."""
    if name in BUNDLED:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X = X / 16.0 if name == "digits" else X
        return X, y, _random_third(len(X))
    path = DATA / FILES[name]
    if name in UCI:
        table = np.delete(np.loadtxt(path, delimiter=","), LEAKING_COLUMNS.get(name, []), axis=1)
        with np.load(path.with_name(f"{name}_fold.npz"), allow_pickle=False) as file:
            fold = file[file.files[0]]
        return table[:, :-1], table[:, -1], fold == 0
    with np.load(path, allow_pickle=False) as file:
        if name == "covtype":
            codes = [np.eye(4)[file["wilderness"]], np.eye(40)[file["soil"]]]
            return np.hstack([file["X_num"], *codes]), file["y"], _random_third(len(file["y"]))
        if "X" in file:
            return file["X"], file["y"].ravel(), _random_third(len(file["X"]))
        X, y = _dense_rows(file, "train"), file["y_train"]
        test = _random_third(len(y)) if "y_test" not in file else np.zeros(len(y), dtype=bool)
        if "y_test" in file:
            X = np.concatenate([X, _dense_rows(file, "test")])
            y = np.concatenate([y, file["y_test"]])
            test = np.arange(len(y)) >= len(file["y_train"])
        scale = {"usps": 1e-3, "mnist": 1 / 255}.get(name) or file.get("scale", 1.0)
    return X * float(scale), y, test


def _dense_rows(file: Any, part: str) -> np.ndarray:
    """Return the training or test rows of a file as a dense array."""
    if f"X_{part}" in file:
        return file[f"X_{part}"]
    from scipy.sparse import csr_array

    data, indices, indptr = (file[f"{part}_{piece}"] for piece in ("data", "indices", "indptr"))
    pieces = (data.astype(float), indices.astype(np.int32), indptr)
    return csr_array(pieces, shape=tuple(file[f"{part}_shape"])).toarray()


def _random_third(n: int) -> np.ndarray:
    """Return a mask of a random third of the rows, for sets without a separate test set."""
    return np.random.default_rng(0).permutation(n) < n // 3


# ------------------------------------------------------------------------------------ families

POINTS = (  # slow and fast eigenvalue decay, few and many columns
    {"name": "normal", "d": 3},
    {"name": "protein"},
    {"name": "curve", "d": 50},
    {"name": "kin40k"},
    {"name": "falling", "d": 20},
    {"name": "plane", "d": 50},
    {"name": "a9a"},
)
VALUES = (  # smooth and rough functions, low and high noise
    {"name": "falling", "d": 20, "noise": 0.1},
    {"name": "kin40k"},
    {"name": "waves", "d": 8, "noise": 0.5},
    {"name": "protein"},
    {"name": "friedman", "d": 6, "noise": 0.01},
    {"name": "normal", "d": 20, "noise": 0.3},
    {"name": "tamielectric"},
)
LABELS = (  # two and more classes
    {"name": "shells", "d": 2, "classes": 2, "noise": 0.3},
    {"name": "letter"},
    {"name": "line", "d": 15, "classes": 2, "noise": 0.3},
    {"name": "blobs", "d": 10, "classes": 5},
    {"name": "pendigits"},
    {"name": "covtype"},
)


def problem_family(members: Iterable[Inputs], quick: bool, **common: Any) -> list[Inputs]:
    """Return the problems whose data are available, extended by the common inputs.

    If `quick`, only the first two are returned.
    """
    available = [member | common for member in members if is_available(member["name"])]
    return available[:2] if quick else available


def is_available(name: str) -> bool:
    """Return True if the data of a problem are available; otherwise print what is missing."""
    if name not in FILES or (DATA / FILES[name]).exists():
        return True
    print(f"{name} is skipped: {FILES[name]} was not found in MERCER_DATA")
    return False


def describe(inputs: Inputs) -> str:
    """Return a title for a problem, such as "waves, noise 0.5 n=5000 d=8"."""
    parts = [inputs["name"]]
    parts += [f"noise {inputs['noise']:g}"] if inputs.get("noise") else []
    parts += [f"{inputs['classes']} classes"] if inputs.get("classes") else []
    sizes = [f"{key}={inputs[key]}" for key in ("n", "d") if inputs.get(key)]
    return " ".join([", ".join(parts), *sizes])


def default_gamma(X: np.ndarray) -> float:
    """Return γ = 1 / E‖x − z‖², for which a typical entry of a Gaussian K is 1/e."""
    return 1.0 / (2.0 * float(X.var(axis=0).sum()))
