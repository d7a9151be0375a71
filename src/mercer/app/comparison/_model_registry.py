"""The named models of `compare`, and the rules that select the default models."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable as Function
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.decomposition import PCA

from ...estimators import GPLVM, Autoencoder, BayesianGPLVM, KernelPCA, MetricMDS, ProbabilisticPCA

__all__ = ["MODELS", "EmbeddingRequest", "ModelSpec", "choose_models"]

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


@dataclass(frozen=True)
class ModelSpec:
    """A named model: how to create it, and when it belongs to the default models.

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

    def build(self, request: EmbeddingRequest) -> Any:
        """Return the estimator, with the seed and the memory limit if it has such parameters."""
        model = self.make(request)
        options = {"random_state": request.seed, "max_memory": request.max_memory}
        return model.set_params(**{k: v for k, v in options.items() if k in model.get_params()})

    def reason_excluded(self, request: EmbeddingRequest) -> str:
        """Return why this is not a default model for the request, or "" if it is a default."""
        if not (request.vectors or self.any_points):
            return "it requires vectors"
        if request.has_missing != self.for_missing:
            return (
                "it does not support missing values"
                if request.has_missing
                else "it is equivalent to PCA if no value is missing"
            )
        if self.max_points is not None and request.n > self.max_points:
            return f"too slow for {request.n} points (limit {self.max_points})"
        if self.max_values is not None and request.n * request.d > self.max_values:
            size = f"{request.n} x {request.d} values"
            return f"too slow for {size} (limit {self.max_values})"
        return ""


MODELS: dict[str, ModelSpec] = {
    "PCA": ModelSpec(lambda r: PCA(r.q)),
    "PPCA": ModelSpec(lambda r: ProbabilisticPCA(r.q), for_missing=True),
    "kernel PCA": ModelSpec(
        lambda r: KernelPCA(
            r.q, kernel=r.kernel, fit_inverse_transform=r.vectors and r.n <= _MAX_INVERSE_POINTS
        ),
        any_points=True,
    ),
    "MDS": ModelSpec(lambda r: MetricMDS(r.q, kernel=r.distance), 10_000, any_points=True),
    "Sammon": ModelSpec(
        lambda r: MetricMDS(r.q, stress="sammon", kernel=r.distance), 10_000, any_points=True
    ),
    "autoencoder": ModelSpec(lambda r: Autoencoder(r.q), 5000, max_values=250_000),
    "GPLVM": ModelSpec(lambda r: GPLVM(r.q), 1000),
    "Bayesian GPLVM": ModelSpec(lambda r: BayesianGPLVM(r.q), 3000),
}


def choose_models(models: Any, request: EmbeddingRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the unfitted estimators by name, and why each other named model was left out.

    Examples
    --------
    >>> from mercer.app.comparison import EmbeddingRequest, choose_models
    >>> models, left_out = choose_models(None, EmbeddingRequest(20_000, 2, "rbf"))
    >>> list(models), list(left_out)
    (['PCA', 'kernel PCA'], ['PPCA', 'MDS', 'Sammon', 'autoencoder', 'GPLVM', 'Bayesian GPLVM'])
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


def _canonical_name(name: str) -> str:
    """Return the name of a model as in `MODELS`, regardless of case, spaces and hyphens."""
    names = {_normalised(known): known for known in MODELS}
    names |= {"kernelpca": "kernel PCA", "metricmds": "MDS", "probabilisticpca": "PPCA"}
    if _normalised(name) in names:
        return names[_normalised(name)]
    matches = difflib.get_close_matches(_normalised(name), names, 1, cutoff=0.5)
    hint = f"; did you mean {names[matches[0]]!r}?" if matches else ";"
    raise ValueError(f"unknown model {name!r}{hint} the models are {', '.join(MODELS)}")


def _normalised(name: str) -> str:
    """Return a name in lower case, without characters other than letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
