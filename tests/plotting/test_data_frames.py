"""Plots of models that were fitted to data frames: no warnings about feature names."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mercer import (
    SVC,
    SVR,
    Expansion,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    OneClassSVM,
    plotting,
    two_sample_test,
)
from mercer.kernels import RBF

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["length", "width"])
one = X[["length"]]
y = pd.Series(np.arange(30) % 2, name="class")
three = pd.Series(["a", "b", "c"] * 10)
z = X["length"] + 0.1 * rng.normal(size=30)
x = np.linspace(-1, 1, 9)


def pca(**params):
    return KernelPCA(2, kernel="rbf", **params).fit(X)


PLOTS = {
    "margin of SVC": lambda ax: plotting.margin(SVC().fit(X, y), X, y, ax, n_grid=8),
    "margin, 3 classes": lambda ax: plotting.margin(SVC().fit(X, three), X, three, ax, n_grid=8),
    "margin of SVR": lambda ax: plotting.margin(SVR().fit(one, z), one, z, ax, n_grid=8),
    "margin of OneClassSVM": lambda ax: plotting.margin(OneClassSVM().fit(X), X, ax=ax, n_grid=8),
    "contours": lambda ax: plotting.contours(SVC().fit(X, y).decision_function, X, ax, n_grid=8),
    "credible_band": lambda ax: plotting.credible_band(
        KernelRidge(kernel="rbf").fit(one, z), x, one, z, ax=ax
    ),
    "credible_band of a GP": lambda ax: plotting.credible_band(
        GaussianProcessRegressor(RBF(), alpha=0.1).fit(one, z), x, one, z, ax=ax
    ),
    "embedding": lambda ax: plotting.embedding(pca(), y, X, ax=ax),
    "embedding of training points": lambda ax: plotting.embedding(pca(), y, ax=ax),
    "embedding of scores": lambda ax: plotting.embedding(pca().transform(X), three, ax=ax),
    "spectrum": lambda ax: plotting.spectrum(pca(), ax),
    "eigenfunctions": lambda ax: plotting.eigenfunctions(pca(), X, n_grid=8),
    "eigenfunctions of training points": lambda ax: plotting.eigenfunctions(pca(), n_grid=8),
    "cluster_numbers": lambda ax: plotting.cluster_numbers(KernelKMeans(), X, range(2, 4), ax),
    "gram_heatmap": lambda ax: plotting.gram_heatmap(RBF(), X, ax=ax),
    "witness": lambda ax: plotting.witness(
        two_sample_test(X[:15], X[15:]), X[:15], X[15:], ax, n_grid=8
    ),
    "maps": lambda ax: plotting.maps({"pca": pca().transform(X)}, y),
    "preimage_path": lambda ax: plotting.preimage_path(
        Expansion.mean(RBF(), X), X.iloc[0], ax, n_steps=3, n_grid=8
    ),
}


@pytest.mark.parametrize("name", PLOTS)
def test_models_of_data_frames_plot_without_warnings(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PLOTS[name](Figure().subplots())
