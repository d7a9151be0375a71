"""The models whose embeddings the explorer can show, and their expected run times."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ... import estimators
from ..._core import is_table, length, same_points
from ...estimators import KernelPCA
from ...solvers import Cost, cost_of_entries
from ._embedding_view import Embedding, IdentityEmbedding

__all__ = [
    "SECOND_MODELS",
    "affordable_kernel_pca",
    "as_vectors",
    "embedding_of",
    "fit_second_embedding",
    "kernel_pca_embedding",
    "second_fit_seconds",
    "second_options",
    "uses_kernel_distances",
]

SECOND_MODELS = {  # for each second embedding: title, estimator class and parameters
    "ppca": ("probabilistic PCA", "ProbabilisticPCA", {}),
    "gplvm": ("GPLVM", "GPLVM", {}),
    "bayesian-gplvm": ("Bayesian GPLVM", "BayesianGPLVM", {}),
    "autoencoder": ("autoencoder", "Autoencoder", {}),
    "mds": ("metric MDS", "MetricMDS", {}),
    "sammon": ("Sammon's map", "MetricMDS", {"stress": "sammon"}),
}
_DISTANCE_MODELS = ("mds", "sammon")  # models that need only distances, which any kernel defines
MAX_EXACT_SECONDS = 20.0  # if an exact kernel PCA takes longer, use the Nyström approximation
_FAST_MODELS = ("ppca", "data", "none")
_MAX_UNCONFIRMED_POINTS = 500  # with more points, slow models are fitted only after confirmation


def as_vectors(X: Any) -> np.ndarray | None:
    """Return the points as a dense matrix if they are vectors; None if sparse or structured."""
    if hasattr(X, "toarray") or length(X) == 0:
        return None
    if is_table(X) and len(X.shape) == 2:
        kinds = {np.asarray(X[name][:1]).dtype.kind for name in X.columns}
        return np.asarray(X, dtype=float) if kinds <= set("biuf") else None
    if isinstance(X, np.ndarray) or (isinstance(X, (list, tuple)) and np.ndim(X[0]) == 1):
        array = np.asarray(X)
        if array.ndim == 2 and array.dtype.kind in "biuf":
            return array.astype(float, copy=False)
    return None


def affordable_kernel_pca(model: KernelPCA, X: Any) -> tuple[KernelPCA, float]:
    """Return a kernel PCA that can be fitted in acceptable time, and its expected seconds.

    Returns `model` itself if its exact fit takes at most `MAX_EXACT_SECONDS` or if it specifies an
    `eigen_solver`, and otherwise a copy that uses the Nyström approximation.
    """
    plan = model.plan(X)
    exact = np.inf if plan.chosen is None else plan.chosen.cost.seconds
    if model.eigen_solver != "auto" or exact <= MAX_EXACT_SECONDS:
        return model, float(exact)
    model = clone(model).set_params(eigen_solver="nystroem")
    # The kernel matrix of n points and m landmarks has n m entries.
    entries = next(o.entries for o in plan.options if o.eigen_solver == "nystroem") / 2.0
    features = entries / plan.n  # = m; features and moments take 2 n m^2 flops each
    cost = cost_of_entries(None, X, entries) + Cost(products=4.0 * entries * features)
    return model, cost.seconds


def kernel_pca_embedding(
    model: KernelPCA, X: Any, shown_dims: tuple[int, int] = (0, 1), *, trained: bool = False
) -> Embedding:
    """Return the embedding of points by a fitted kernel PCA.

    If `trained` is True, the model was fitted to exactly these points.
    """
    if not np.any(model.eigenvalues_ > 0):
        raise ValueError(
            f"the kernel {model.kernel_} considers all {length(X)} points equal, so "
            f"there are no components; usual causes are a length scale that is too large and "
            f"constant columns; try another kernel, or check the data"
        )
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    coordinates = getattr(model, "training_scores_", None) if trained else None
    coordinates = model.transform(X) if coordinates is None else coordinates
    title = "kernel PCA" if model._components.basis is None else "kernel PCA on landmarks"
    return Embedding(
        title, model, np.asarray(coordinates), _valid_dims(shown_dims, coordinates.shape[1])
    )


def embedding_of(
    model: Any, X: Any, title: str | None = None, *, trained: bool = False
) -> Embedding:
    """Return the embedding of points by any fitted model with `transform`.

    If `trained` is True, the model was fitted to exactly these points.
    """
    if isinstance(model, KernelPCA):
        return kernel_pca_embedding(model, X, trained=trained)
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    coordinates = getattr(model, "embedding_", None) if trained else None
    coordinates = model.transform(X) if coordinates is None else coordinates
    titles = {
        cls: model_title
        for model_title, cls, parameters in SECOND_MODELS.values()
        if not parameters
    }
    name = type(model).__name__
    return Embedding(title or titles.get(name, name), model, np.asarray(coordinates))


def second_options(X: Any) -> list[tuple[str, str]]:
    """Return the keys and titles of the second embeddings that support these points."""
    options, dense = [("none", "none")], as_vectors(X)
    if dense is not None and dense.shape[1] > 1:
        options.append(("data", "the data (two columns)"))
    models = [(key, m[0]) for key, m in SECOND_MODELS.items() if hasattr(estimators, m[1])]
    wide = dense is not None and dense.shape[1] > 2
    return options + [
        model for model in models if wide or (dense is None and model[0] in _DISTANCE_MODELS)
    ]


def fit_second_embedding(
    name: str, X: Any, names: list[str], kernel: Any = None, *, verbose: bool = False
) -> Embedding | None:
    """Fit the model of a second embedding, and return the embedding, or None for "none".

    `kernel` defines the distances of points that are not vectors.
    """
    if name == "none":
        return None
    options = [key for key, _ in second_options(X)]
    if name not in options:
        raise ValueError(
            f"the second embedding {name!r} is not available for these points; the options are "
            f"{', '.join(options)}"
        )
    dense = as_vectors(X)
    if dense is not None and name == "data":
        X = dense
        across, up = np.sort(np.argsort(-np.nanvar(X, axis=0), kind="stable")[:2]).tolist()
        return Embedding("the data", IdentityEmbedding(), X, (across, up), tuple(names))
    title, cls, parameters = SECOND_MODELS[name]
    model = getattr(estimators, cls)(n_components=2, **parameters)
    if dense is None:
        model.set_params(kernel=kernel)
    verbose_option = {"verbose": 1} if verbose and "verbose" in model.get_params() else {}
    model.set_params(**verbose_option).fit(X if dense is None else dense)
    model.set_params(**dict.fromkeys(verbose_option, 0))
    return embedding_of(model, X if dense is None else dense, title, trained=True)


def uses_kernel_distances(name: str, X: Any) -> bool:
    """Return True if the second embedding is computed from distances defined by the kernel."""
    return name in _DISTANCE_MODELS and as_vectors(X) is None


def second_fit_seconds(name: str, X: Any) -> float:
    """Return the expected seconds to fit a second embedding; inf if unknown."""
    return 0.0 if name in _FAST_MODELS or length(X) <= _MAX_UNCONFIRMED_POINTS else np.inf


def _valid_dims(shown_dims: tuple[int, int], k: int) -> tuple[int, int]:
    """Return the dimensions to show if all of them exist, otherwise the first two."""
    return shown_dims if max(shown_dims) < k or k < 2 else (0, 1)
