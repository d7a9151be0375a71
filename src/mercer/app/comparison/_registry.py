"""The named models of `compare` and of the explorer."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable as Function
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, Isomap, SpectralEmbedding
from sklearn.utils.metaestimators import available_if

from ..._core import Points
from ...estimators import (
    GPLVM,
    Autoencoder,
    BayesianGPLVM,
    KernelPCA,
    MetricMDS,
    NeuroScale,
    ProbabilisticPCA,
)
from ...kernels import LocallyLinear, as_kernel
from ...models.embedding import feature_space_cdist, feature_space_pdist

_MAX_INVERSE_POINTS = 5000  # for more points, fitting an inverse transform takes minutes


@dataclass(frozen=True)
class EmbeddingRequest:
    """Description of the data, and options, for creating the models of a comparison.

    Attributes
    ----------
    n : int
        Number of points.
    q : int
        Number of dimensions of the embedding.
    kernel : Kernel or str
        Kernel on the points.
    vectors : bool
        Whether the points are vectors.
    has_missing : bool
        Whether the points have missing values.
    seed : int
        Random seed.
    max_memory : int, str or None
        Memory limit.
    d : int
        Number of columns if the points are vectors, otherwise 1.

    Examples
    --------
    >>> from mercer.app.comparison import EmbeddingRequest
    >>> EmbeddingRequest(100, 2, "rbf").distance  # the linear kernel gives Euclidean distances
    'linear'
    """

    n: int
    q: int
    kernel: Any
    vectors: bool = True
    has_missing: bool = False
    seed: int = 0
    max_memory: Any = None
    d: int = 1

    @property
    def distance(self) -> Any:
        """The kernel that defines the distances of the points; "linear" (Euclidean) for vectors."""
        return "linear" if self.vectors else self.kernel


class KernelDistanceModel(BaseEstimator):
    """Fits a model to distances in the feature space of a kernel.

    It makes scikit-learn's models with ``metric="precomputed"`` available for strings, graphs and
    other points that are not vectors.

    Parameters
    ----------
    model : estimator
        A model with `fit_transform` that accepts a matrix of distances.
    kernel : Kernel or str, default="rbf"
        Kernel that defines the distances.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, q)
        Coordinates of the training points.
    kernel_ : Kernel
        The kernel with all parameters resolved.
    X_fit_ : points
        The training points.
    model_ : estimator
        The fitted model.

    Examples
    --------
    >>> from sklearn.manifold import Isomap
    >>> from mercer.app.comparison import KernelDistanceModel
    >>> words = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC"]
    >>> isomap = Isomap(n_neighbors=3, n_components=2, metric="precomputed")
    >>> model = KernelDistanceModel(isomap, "Spectrum(2)")
    >>> model.fit_transform(words).shape, model.transform(["GATTAC"]).shape
    ((5, 2), (1, 2))
    """

    def __init__(self, model: Any, kernel: Any = "rbf") -> None:
        self.model = model
        self.kernel = kernel

    def fit(self, X: Points, y: object = None) -> KernelDistanceModel:
        """Fit the model to the distances of the points.

        Parameters
        ----------
        X : points
            The n training points.
        y : None, default=None
            Ignored.

        Returns
        -------
        self : KernelDistanceModel
            The fitted model.
        """
        self.kernel_, self.X_fit_ = as_kernel(self.kernel).resolve(X), X
        self.model_ = clone(self.model)
        distances = squareform(feature_space_pdist(self.kernel_, X))
        self.embedding_ = np.asarray(self.model_.fit_transform(distances))
        return self

    def fit_transform(self, X: Points, y: object = None) -> np.ndarray:
        """Fit the model and return the coordinates of the points.

        Parameters
        ----------
        X : points
            The n training points.
        y : None, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (n, q)
            The attribute `embedding_`.
        """
        return self.fit(X).embedding_

    @available_if(lambda self: hasattr(self.model, "transform"))
    def transform(self, X: Points) -> np.ndarray:
        """Return the coordinates of new points.

        Parameters
        ----------
        X : points
            The m new points.

        Returns
        -------
        ndarray of shape (m, q)
            Their coordinates.
        """
        norms = [np.asarray(self.kernel_.diag(Z), dtype=float) for Z in (X, self.X_fit_)]
        return self.model_.transform(feature_space_cdist(self.kernel_, X, self.X_fit_, *norms))


@dataclass(frozen=True)
class ModelSpec:
    """A named model: how to create it, which points it accepts, and when it is fitted by default.

    Attributes
    ----------
    make : function
        Takes an `EmbeddingRequest` and returns the estimator.
    max_points : int or None
        Largest number of points for which this is a default model, so that a fit takes at most
        about a minute.
    max_values : int or None
        Largest number of values in X (rows times columns) for which this is a default model.
    any_points : bool
        Whether the model accepts points that are not vectors.
    for_missing : bool
        Whether this is a default model only for data with missing values.
    title : str
        Full name for headings; by default the name of the model.
    by_name_only : bool
        Whether the model is fitted only if it is named.
    package : str
        Name of the optional module that the model requires, if any.

    Examples
    --------
    >>> from mercer.app.comparison import MODELS, EmbeddingRequest
    >>> MODELS["autoencoder"].reason_excluded(EmbeddingRequest(20_000, 2, "rbf"))
    'too slow for 20000 points (limit 5000)'
    """

    make: Function[[EmbeddingRequest], Any]
    max_points: int | None = None
    max_values: int | None = None
    any_points: bool = False
    for_missing: bool = False
    title: str = ""
    by_name_only: bool = False
    package: str = ""

    def build(self, request: EmbeddingRequest) -> Any:
        """Return the estimator, with the seed and the memory limit if it has such parameters."""
        model = self.make(request)
        options = {"random_state": request.seed, "max_memory": request.max_memory}
        return model.set_params(**{k: v for k, v in options.items() if k in model.get_params()})

    def reason_unavailable(self, request: EmbeddingRequest) -> str:
        """Return why this model cannot be fitted to these points, or "" if it can be fitted."""
        if not (request.vectors or self.any_points):
            return "it requires vectors"
        if self.package and find_spec(self.package) is None:
            return f"the package {self.package} is not installed"
        return ""

    def reason_too_slow(self, request: EmbeddingRequest) -> str:
        """Return the limit that the size of the data exceeds, or "" if a fit takes a minute."""
        if self.max_points is not None and request.n > self.max_points:
            return f"too slow for {request.n} points (limit {self.max_points})"
        if self.max_values is not None and request.n * request.d > self.max_values:
            size = f"{request.n} x {request.d} values"
            return f"too slow for {size} (limit {self.max_values})"
        return ""

    def reason_excluded(self, request: EmbeddingRequest) -> str:
        """Return why this is not a default model for the request, or "" if it is a default."""
        unavailable = self.reason_unavailable(request)
        if unavailable:
            return unavailable
        if request.has_missing and not self.for_missing:
            return "it does not support missing values"
        if self.for_missing and not request.has_missing:
            return "it is equivalent to PCA if no value is missing"
        return self.reason_too_slow(request) or (
            "it is fitted only if it is named" if self.by_name_only else ""
        )


_MAX_PERPLEXITY = 30.0  # scikit-learn's default; t-SNE requires perplexity < n


def _manifold_model(cls: Function[..., Any], r: EmbeddingRequest, **options: Any) -> Any:
    """Return a model of Euclidean distances, or of kernel distances if points are not vectors."""
    if r.vectors:
        return cls(n_components=r.q, **options)
    model = cls(n_components=r.q, **options, metric="precomputed")
    return KernelDistanceModel(model, r.kernel)


def _tsne(r: EmbeddingRequest) -> Any:
    options = {"init": "pca" if r.vectors else "random", "random_state": r.seed}
    perplexity = min(_MAX_PERPLEXITY, max(1.0, (r.n - 1) / 3))
    return _manifold_model(TSNE, r, perplexity=perplexity, **options)


def _umap(r: EmbeddingRequest) -> Any:
    with warnings.catch_warnings():  # umap warns if the optional package tensorflow is missing
        warnings.simplefilter("ignore", ImportWarning)
        from umap import UMAP

    # With a seed, UMAP uses one thread; n_jobs=1 avoids the warning that says so.
    options = {"n_neighbors": max(2, min(15, r.n - 1)), "random_state": r.seed, "n_jobs": 1}
    return _manifold_model(UMAP, r, **options)


def _isomap(r: EmbeddingRequest) -> Any:
    return _manifold_model(Isomap, r, n_neighbors=max(1, min(10, r.n - 1)))


def _locally_linear(r: EmbeddingRequest) -> Any:
    return KernelPCA(r.q, kernel=LocallyLinear(max(1, min(10, r.n - 1))))


def _spectral_embedding(r: EmbeddingRequest) -> Any:
    affinity = "nearest_neighbors" if r.vectors else "precomputed_nearest_neighbors"
    model = SpectralEmbedding(
        n_components=r.q,
        affinity=affinity,
        n_neighbors=max(2, min(10, r.n - 1)),
        random_state=r.seed,
    )
    return model if r.vectors else KernelDistanceModel(model, r.kernel)


MODELS: dict[str, ModelSpec] = {
    "PCA": ModelSpec(lambda r: PCA(r.q)),
    "PPCA": ModelSpec(lambda r: ProbabilisticPCA(r.q), for_missing=True, title="probabilistic PCA"),
    "kernel PCA": ModelSpec(
        lambda r: KernelPCA(
            r.q, kernel=r.kernel, fit_inverse_transform=r.vectors and r.n <= _MAX_INVERSE_POINTS
        ),
        any_points=True,
    ),
    "MDS": ModelSpec(
        lambda r: MetricMDS(r.q, kernel=r.distance), 10_000, any_points=True, title="metric MDS"
    ),
    "Sammon": ModelSpec(
        lambda r: MetricMDS(r.q, stress="sammon", kernel=r.distance),
        10_000,
        any_points=True,
        title="Sammon's map",
    ),
    "NeuroScale": ModelSpec(
        lambda r: NeuroScale(r.q, kernel="rbf" if r.vectors else r.kernel), 3000, any_points=True
    ),
    "autoencoder": ModelSpec(lambda r: Autoencoder(r.q), 5000, max_values=250_000),
    "GPLVM": ModelSpec(lambda r: GPLVM(r.q), 1000),
    "Bayesian GPLVM": ModelSpec(lambda r: BayesianGPLVM(r.q), 3000),
    "t-SNE": ModelSpec(_tsne, 5000, any_points=True, by_name_only=True),
    "UMAP": ModelSpec(_umap, 50_000, any_points=True, by_name_only=True, package="umap"),
    "Isomap": ModelSpec(_isomap, 5000, any_points=True, by_name_only=True),
    "LLE": ModelSpec(_locally_linear, 5000, by_name_only=True, title="locally linear embedding"),
    "spectral embedding": ModelSpec(
        _spectral_embedding, 20_000, any_points=True, by_name_only=True
    ),
}


def choose_models(models: Any, request: EmbeddingRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the unfitted estimators by name, and why each other named model was left out.

    Examples
    --------
    >>> from mercer.app.comparison import EmbeddingRequest, choose_models
    >>> models, left_out = choose_models(None, EmbeddingRequest(20_000, 2, "rbf"))
    >>> list(models), list(left_out)  # doctest: +ELLIPSIS
    (['PCA', 'kernel PCA'], ['PPCA', 'MDS', 'Sammon', 'NeuroScale', ..., 'spectral embedding'])
    """
    if models is None:
        reasons = {name: spec.reason_excluded(request) for name, spec in MODELS.items()}
        default = {name: MODELS[name].build(request) for name, why in reasons.items() if not why}
        return default, {name: why for name, why in reasons.items() if why}
    if isinstance(models, Mapping):
        labelled = list(models.items())
    else:
        labelled = [(None, item) for item in ([models] if _is_model(models) else models)]
    estimators: dict[str, Any] = {}
    for label, item in labelled:
        name = _canonical_name(item) if isinstance(item, str) else type(item).__name__
        if not isinstance(item, str) and not _is_model(item):
            raise TypeError(f"models must be names or estimators with fit_transform, got {item!r}")
        model = MODELS[name].build(request) if isinstance(item, str) else clone(item)
        estimators[_unique_name(str(label or name), estimators)] = model
    if not estimators:
        raise ValueError("models is empty; give at least one model, or None for the default models")
    return estimators, {}


def _is_model(model: Any) -> bool:
    """Return True for a model name or an estimator, and False for a list of them."""
    return isinstance(model, str) or hasattr(model, "fit_transform") or hasattr(model, "transform")


def _unique_name(name: str, used: dict[str, Any]) -> str:
    """Return the name, with a number appended if it is already used."""
    names = [name, *(f"{name} {k}" for k in range(2, len(used) + 2))]
    return next(candidate for candidate in names if candidate not in used)


def find_model(name: str) -> str | None:
    """Return the name in `MODELS` of a model, or None if there is no such model.

    The case, spaces and hyphens do not matter, and names of estimator classes are accepted.

    Examples
    --------
    >>> from mercer.app.comparison import find_model
    >>> find_model("bayesian-gplvm"), find_model("TSNE"), find_model("GTM")
    ('Bayesian GPLVM', 't-SNE', None)
    """
    return _names().get(_normalised(name))


def _names() -> dict[str, str]:
    """Return the names in `MODELS` by normalised name, including names of estimator classes."""
    names = {_normalised(known): known for known in MODELS}
    return names | {"kernelpca": "kernel PCA", "metricmds": "MDS", "probabilisticpca": "PPCA"}


def _canonical_name(name: str) -> str:
    """Return the name of a model as in `MODELS`, or raise a ValueError with a suggestion."""
    found = find_model(name)
    if found is not None:
        return found
    names = _names()
    matches = difflib.get_close_matches(_normalised(name), names, 1, cutoff=0.5)
    hint = f"; did you mean {names[matches[0]]!r}?" if matches else ";"
    raise ValueError(f"unknown model {name!r}{hint} the models are {', '.join(MODELS)}")


def _normalised(name: str) -> str:
    """Return a name in lower case, without characters other than letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
