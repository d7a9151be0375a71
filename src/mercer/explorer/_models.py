"""Which models make maps, what they cost, and the maps they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from .. import estimators
from .._points import is_table, length, same_points
from ..estimators import KernelPCA
from ..solvers import Cost, evaluating
from ._map import Map, Plane

__all__ = ["SECONDS", "affordable", "kernel_map", "map_of", "second_map", "seconds", "seconds_for"]
__all__ += ["follows", "vectors"]

SECONDS = {  # second maps: what they are called, the classes that make them, and parameters
    "ppca": ("probabilistic PCA", "ProbabilisticPCA", {}),
    "gplvm": ("GPLVM", "GPLVM", {}),
    "bayesian-gplvm": ("Bayesian GPLVM", "BayesianGPLVM", {}),
    "autoencoder": ("autoencoder", "Autoencoder", {}),
    "mds": ("metric MDS", "MetricMDS", {}),
    "sammon": ("Sammon's map", "MetricMDS", {"stress": "sammon"}),
}
_OF_ANY = ("mds", "sammon")  # maps of distances, which any kernel has
EXACT = 20.0  # seconds of an exact fit beyond which landmarks are taken
_CHEAP = ("ppca", "data", "none")
_FEW = 500  # points up to which other models are fitted without asking


def vectors(X: Any) -> np.ndarray | None:
    """Return points as rows of numbers, if they are; None for sparse ones and all others."""
    if hasattr(X, "toarray") or length(X) == 0:
        return None
    if is_table(X) and len(X.shape) == 2:
        kinds = {np.asarray(X[name][:1]).dtype.kind for name in X.columns}
        return np.asarray(X, dtype=float) if kinds <= set("biuf") else None
    if isinstance(X, np.ndarray) or (isinstance(X, (list, tuple)) and np.ndim(X[0]) == 1):
        found = np.asarray(X)
        if found.ndim == 2 and found.dtype.kind in "biuf":
            return found.astype(float, copy=False)
    return None


def affordable(model: KernelPCA, X: Any) -> tuple[KernelPCA, float]:
    """Return a kernel PCA that is found in bearable time, and about how many seconds that is.

    Exact if that can be; on landmarks otherwise, unless the model names a solver itself.
    """
    plan = model.plan(X)
    exact = np.inf if plan.chosen is None else plan.chosen.cost.seconds
    if model.eigen_solver != "auto" or exact <= EXACT:
        return model, float(exact)
    model = clone(model).set_params(eigen_solver="nystroem")
    entries = next(o.entries for o in plan.options if o.eigen_solver == "nystroem") / 2.0  # n m
    features = entries / plan.n  # each is solved for, and summed into a matrix of moments
    cost = evaluating(None, X, entries) + Cost(products=4.0 * entries * features)
    return model, cost.seconds


def kernel_map(
    model: KernelPCA, X: Any, shown: tuple[int, int] = (0, 1), *, trained: bool = False
) -> Map:
    """Return the map of a fitted kernel PCA; `trained` says that it was fitted to these points."""
    if not np.any(model.eigenvalues_ > 0):
        raise ValueError(
            f"all {length(X)} points are the same to the kernel {model.kernel_}, so there are no "
            f"components; the usual cause is too large a length scale, or columns that are "
            f"constant; try another kernel, or look at the data"
        )
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    places = getattr(model, "training_scores_", None) if trained else None
    places = model.transform(X) if places is None else places
    title = "kernel PCA" if model._components.basis is None else "kernel PCA on landmarks"
    return Map(title, model, np.asarray(places), _within(shown, places.shape[1]))


def map_of(model: Any, X: Any, title: str | None = None, *, trained: bool = False) -> Map:
    """Return the map of any fitted model with `transform`; `trained` on these points, or not."""
    if isinstance(model, KernelPCA):
        return kernel_map(model, X, trained=trained)
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    places = getattr(model, "embedding_", None) if trained else None
    places = model.transform(X) if places is None else places
    titles = {cls: words for words, cls, parts in SECONDS.values() if not parts}
    name = type(model).__name__
    return Map(title or titles.get(name, name), model, np.asarray(places))


def seconds_for(X: Any) -> list[tuple[str, str]]:
    """Return names and titles of the second maps that there can be of points."""
    found, dense = [("none", "none")], vectors(X)
    if dense is not None and dense.shape[1] > 1:
        found.append(("data", "the data, two columns"))
    known = [(key, one[0]) for key, one in SECONDS.items() if hasattr(estimators, one[1])]
    wide = dense is not None and dense.shape[1] > 2
    return found + [one for one in known if wide or (dense is None and one[0] in _OF_ANY)]


def second_map(
    name: str, X: Any, names: list[str], kernel: Any = None, *, verbose: bool = False
) -> Map | None:
    """Fit another model to the points, and return its map; None for "none".

    `kernel` tells the distances of points that are no vectors.
    """
    if name == "none":
        return None
    offered = [key for key, _ in seconds_for(X)]
    if name not in offered:
        raise ValueError(
            f"there is no second map {name!r} of these points; there are {', '.join(offered)}"
        )
    dense = vectors(X)
    if dense is not None and name == "data":
        X = dense
        across, up = np.sort(np.argsort(-np.nanvar(X, axis=0), kind="stable")[:2]).tolist()
        return Map("the data", Plane(), X, (across, up), tuple(names))
    words, cls, parts = SECONDS[name]
    model = getattr(estimators, cls)(n_components=2, **parts)
    if dense is None:
        model.set_params(kernel=kernel)
    loud = {"verbose": 1} if verbose and "verbose" in model.get_params() else {}
    model.set_params(**loud).fit(X if dense is None else dense)
    model.set_params(**dict.fromkeys(loud, 0))
    return map_of(model, X if dense is None else dense, words, trained=True)


def follows(name: str, X: Any) -> bool:
    """Tell whether a second map is one of the kernel's own distances."""
    return name in _OF_ANY and vectors(X) is None


def seconds(name: str, X: Any) -> float:
    """Return about how long a second map takes to fit; inf where nobody knows."""
    return 0.0 if name in _CHEAP or length(X) <= _FEW else np.inf


def _within(shown: tuple[int, int], k: int) -> tuple[int, int]:
    return shown if max(shown) < k or k < 2 else (0, 1)
