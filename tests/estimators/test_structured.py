"""Structured points in every estimator: one test for each pair of kernel family and task."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer import (
    SVC,
    GaussianProcessRegressor,
    Graphs,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    OneClassSVM,
    compress,
    two_sample_test,
)
from mercer._core import take
from mercer.kernels import (
    RBF,
    BagOfWords,
    Jaccard,
    Kendall,
    Mallows,
    MeanOf,
    Select,
    ShortestPath,
    Spectrum,
    Subsequence,
    WeisfeilerLehman,
)

N = 30
rng = np.random.default_rng(0)
LABELS = np.arange(N) % 2


def a_set(label):
    return {int(e) for e in rng.choice(12, size=5, p=weights(label, 12))} | {99}


def weights(label, size):
    w = np.linspace(1, 4, size)
    return (w if label else w[::-1]) / w.sum()


def a_string(label):
    return "".join(rng.choice(list("ACGT"), size=rng.integers(6, 12), p=weights(label, 4)))


def a_text(label):
    words = ["kernel", "graph", "string", "mean", "tree", "sea"]
    return " ".join(rng.choice(words, size=6, p=weights(label, 6)))


def a_graph(label):
    n = int(rng.integers(4, 8))
    edges = [(i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if label else [])
    return edges, rng.choice(["C", "N"], size=n).tolist()


def a_ranking(label):
    noisy = np.arange(6.0) * (1 if label else -1) + rng.normal(size=6) * 2
    return np.argsort(np.argsort(noisy)) + 1


def graphs():
    pairs = [a_graph(label) for label in LABELS]
    return Graphs.from_edges([e for e, _ in pairs], labels=[labels for _, labels in pairs])


def table():
    numbers = rng.normal(size=(N, 2)) + LABELS[:, None]
    return pd.DataFrame(
        {"seq": [a_string(c) for c in LABELS], "a": numbers[:, 0], "b": numbers[:, 1]}
    )


STRINGS = [a_string(label) for label in LABELS]
RANKINGS = np.array([a_ranking(label) for label in LABELS])
FAMILIES = {  # kernel, points, a parameter to search over
    "sets": (Jaccard(), [a_set(label) for label in LABELS], None),
    "bags": (MeanOf(RBF()), [rng.normal(label, size=(3, 2)) for label in LABELS], "kernel"),
    "strings": (Spectrum(2), STRINGS, ("p", [1, 2])),
    "subsequences": (Subsequence(2, 0.5), STRINGS, ("decay", [0.3, 0.6])),
    "text": (BagOfWords(), [a_text(label) for label in LABELS], None),
    "graphs": (WeisfeilerLehman(2), graphs(), ("h", [1, 2])),
    "paths": (ShortestPath(), graphs(), None),
    "rankings": (Mallows(0.1), RANKINGS, ("decay", [0.05, 0.2])),
    "kendall": (Kendall(), RANKINGS, None),
    "mixed table": (
        Select(Spectrum(2), "seq") * Select(RBF(1.0), ["a", "b"]),
        table(),
        ("factors__0__kernel__p", [1, 2]),
    ),
}


TRAIN, TEST = slice(0, 20), slice(20, N)


def fitted(model, X):
    """Fit on some points, predict others, and predict the same after pickling."""
    y = (
        LABELS[TRAIN].astype(float)
        if isinstance(model, GaussianProcessRegressor)
        else LABELS[TRAIN]
    )
    model = clone(model).fit(take(X, TRAIN), y)
    values = model.predict(take(X, TEST))
    assert np.isfinite(values).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(take(X, TEST)), values)
    return values


def pca(kernel, X, **options):
    model = KernelPCA(2, kernel=kernel, **options)
    scores = model.fit_transform(take(X, TRAIN))
    np.testing.assert_allclose(model.transform(take(X, TRAIN)), scores, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(take(X, TEST)), model.transform(take(X, TEST)))


def two_samples(kernel, X):
    first = two_sample_test(
        take(X, np.flatnonzero(LABELS == 0)), take(X, np.flatnonzero(LABELS)), kernel
    )
    assert 0 < first.pvalue < 0.3


def reduced(kernel, X):
    model = KernelRidge(kernel=kernel, alpha=0.1).fit(X, LABELS)
    small = compress(model, 10)
    assert len(small.expansion_.coefficients) <= 10
    assert np.abs(small.predict(X) - model.predict(X)).max() <= small.reduction_.sup_bound[0] + 1e-9


def cross_validated(kernel, X):
    assert cross_val_score(SVC(kernel=kernel, C=10.0), X, LABELS, cv=3).mean() > 0.5


def ridge(kernel, X):
    values = fitted(KernelRidge(kernel=kernel), X)
    assert np.corrcoef(values, LABELS[TEST])[0, 1] > 0


USES = {
    "pca": lambda k, X: pca(k, X),
    "pca krylov": lambda k, X: pca(k, X, eigen_solver="krylov"),
    "pca nystroem": lambda k, X: pca(k, X, eigen_solver="nystroem", rank=20),
    "ridge": ridge,
    "gp": lambda k, X: fitted(GaussianProcessRegressor(k, alpha=0.5, optimizer=None), X),
    "logistic": lambda k, X: fitted(KernelLogisticRegression(kernel=k), X),
    "svc": lambda k, X: fitted(SVC(kernel=k), X),
    "one class": lambda k, X: fitted(OneClassSVM(kernel=k, nu=0.3), X),
    "two samples": two_samples,
    "compress": reduced,
    "cross-validation": cross_validated,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("family", FAMILIES)
def test_structured_points_pass_through(family, use):
    kernel, X, _ = FAMILIES[family]
    USES[use](kernel, X)


@pytest.mark.parametrize("family", [f for f, (*_, search) in FAMILIES.items() if search])
def test_a_grid_searches_over_the_parameters_of_a_kernel(family):
    kernel, X, search = FAMILIES[family]
    if search == "kernel":
        search = ("kernel__length_scale", [0.5, 2.0])
    name, values = search
    grid = GridSearchCV(SVC(kernel=kernel), {f"kernel__{name}": values}, cv=3).fit(X, LABELS)
    assert grid.best_params_[f"kernel__{name}"] in values
    assert grid.best_score_ > 0.5
