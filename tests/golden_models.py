"""Model files of the first format version, which every later version must be able to read.

    PYTHONPATH=src:. python tests/golden_models.py

writes the missing files and does not change existing ones, which were written by the version that
introduced them.  `answers.json` contains the predictions of the models at that time.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

import mercer
from mercer import SVC, Expansion, Graphs, KernelPCA, KernelRidge, to_primal
from mercer.kernels import RBF, Jaccard, Linear, Select, Spectrum, WeisfeilerLehman
from mercer.solvers import CoreSet
from mercer.tables import Recipe, TableModel
from tools.smoke import estimator_names

FOLDER = Path(__file__).parent / "persist" / "golden"
X = np.round(np.sin(np.arange(24.0)).reshape(12, 2), 3)
NEW = np.round(np.cos(np.arange(6.0)).reshape(3, 2), 3)
TWO, THREE = np.arange(12) % 2, np.array(["a", "b", "c"])[np.arange(12) % 3]
WORDS = ["ACGT", "AACC", "GGTA", "TTTT", "CAGT", "ACAC"] * 2
GRAPHS = Graphs.from_edges(
    [[(0, 1), (1, 2)], [(0, 1)], [(0, 1), (1, 2), (0, 2)]] * 4,
    labels=[["C", "N", "O"], ["C", "C"], ["O", "O", "N"]] * 4,
)
TABLE = pd.DataFrame({"word": WORDS, "a": X[:, 0], "b": X[:, 1]})
MIXED = Select(Spectrum(2), "word") * Select(RBF(1.5), ["a", "b"])

POSITIVE, NEW_POSITIVE = np.abs(X) + 0.1, np.abs(NEW) + 0.1  # for kernels on histograms


def process():
    return mercer.GaussianProcessRegressor(2.0 * RBF(1.5), alpha=0.1, optimizer=None)


def table_model():
    """Return a model with its recipe, for columns of numbers, categories and words."""
    recipe = Recipe()
    return TableModel(KernelRidge(kernel="rbf").fit(recipe.fit_transform(TABLE), TWO), recipe)


def first_fit(name):
    """Return a public estimator with its default parameters, fitted to positive vectors."""
    model = getattr(mercer, name)()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    kind = model.__sklearn_tags__().estimator_type
    return model.fit(POSITIVE, TWO if kind == "classifier" else 1.0 + POSITIVE[:, 0])


MODELS = (
    {  # functions that return a fitted model, and points for its predictions
        "svc": (lambda: SVC(kernel=RBF(1.5) + 0.5 * Linear()).fit(X, THREE), NEW),
        "ridge": (
            lambda: KernelRidge(kernel="rbf", fit_intercept=True).fit(np.asfortranarray(X), X),
            NEW,
        ),
        "pca": (lambda: KernelPCA(2, kernel="rbf", eigen_solver="nystroem", rank=4).fit(X), NEW),
        "process": (lambda: process().fit(X, X[:, 0]), NEW),
        "perceptron": (
            lambda: mercer.KernelPerceptron(random_state=np.random.RandomState(3)).fit(X, TWO),
            NEW,
        ),
        "intervals": (
            lambda: (
                KernelRidge(kernel=RBF(1.5), solver="nystroem", rank=4, random_state=0)
                .fit(X, X[:, 0])
                .conformalize(X, X[:, 0])
            ),
            NEW,
        ),
        "core_set": (
            lambda: SVC(loss="squared_hinge", solver=CoreSet(0.01)).fit(X, THREE),
            NEW,
        ),
        "sparse": (lambda: SVC().fit(sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)), TWO), NEW),
        "strings": (lambda: KernelRidge(kernel=Spectrum(2)).fit(WORDS, TWO), WORDS[:3]),
        "graphs": (lambda: SVC(kernel=WeisfeilerLehman(1)).fit(GRAPHS, TWO), GRAPHS[:3]),
        "table": (lambda: SVC(kernel=MIXED).fit(TABLE, TWO), TABLE.iloc[:3]),
        "sets": (
            lambda: Expansion(Jaccard(), [{"a", "b"}, {1, 2.5}, set(), {("a", 1)}], np.arange(4.0)),
            [{"a"}, {1, "b"}],
        ),
        "table_model": (table_model, TABLE.iloc[:3]),
        "primal": (lambda: to_primal(first_fit("KernelRidge")), NEW_POSITIVE),
        "accelerated": (lambda: mercer.accelerate(first_fit("SVC")), NEW_POSITIVE),
        "inverse": (
            lambda: KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X),
            NEW,
        ),
    }
    | {name: (partial(first_fit, name), NEW_POSITIVE) for name in estimator_names()}
)


def answer(model, points):
    for verb in ("decision_function", "predict", "transform", "score_samples", "__call__"):
        with contextlib.suppress(AttributeError):
            return np.asarray(getattr(model, verb)(points)).tolist()
    raise TypeError(model)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "answers.json"
    answers = json.loads(path.read_text()) if path.exists() else {}
    for name, (make, points) in MODELS.items():
        if name not in answers:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model = make()
            mercer.save(model, FOLDER / f"{name}.safetensors")
            answers[name] = answer(model, points)
    path.write_text(json.dumps(answers, indent=1) + "\n")
