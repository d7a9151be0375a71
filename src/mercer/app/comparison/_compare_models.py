"""The function `compare`, and the named models that it can fit."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable as Function
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from ..._core import (
    MemoryLimit,
    Points,
    ProgressStep,
    Stopwatch,
    budget_in_bytes,
    entry_point,
    is_count,
    length,
    progress,
    reject_structured,
    take,
    warn_caller,
)
from ...estimators import GPLVM, Autoencoder, BayesianGPLVM, KernelPCA, MetricMDS, ProbabilisticPCA
from ...kernels import RBF, as_kernel
from ...models.embedding import embedding_quality
from ._comparison_result import Comparison, ModelResult

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
        if request.has_missing and not self.for_missing:
            return "it does not support missing values"
        if self.for_missing and not request.has_missing:
            return "it is equivalent to PCA if no value is missing"
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


_DEFAULT_NEIGHBORS = 10  # number of neighbours for trustworthiness and continuity


@entry_point
def compare(
    X: Points,
    y: Any = None,
    models: Any = None,
    *,
    n_components: int = 2,
    kernel: Any = None,
    rows: int | None = None,
    n_neighbors: int | None = None,
    random_state: int = 0,
    max_memory: MemoryLimit = None,
    verbose: int = 0,
) -> Comparison:
    """Embed points with several models, and measure the quality of each embedding.

    Use it to choose a method of dimension reduction for given data.

    The models are fitted to X without y.  If y contains labels, the comparison also counts how
    often the nearest neighbour in an embedding has a different label.  If a model fails, a warning
    is issued, the result contains the reason, and the other models are compared without it.

    Parameters
    ----------
    X : array of shape (n, d), or points
        Vectors, or other points such as strings or graphs if `kernel` accepts them.  NaN is a
        missing value.  Of the named models, only "PPCA" supports missing values; embeddings are
        evaluated on the rows without missing values.
    y : array-like of shape (n,), optional
        Labels or numbers that colour the points in `Comparison.plot`.  The models do not use them.
    models : list or dict of names and estimators, optional
        The names are "PCA", "PPCA", "kernel PCA", "MDS", "Sammon", "autoencoder", "GPLVM" and
        "Bayesian GPLVM".  An estimator is any object with `fit_transform`, for example from
        scikit-learn; its parameters are not changed.  The default is all named models that support
        X and are fast enough for n points; `Comparison.left_out` gives reasons for the others.
    n_components : int, default=2
        Number q of dimensions of the embeddings; it applies to the named models.
    kernel : Kernel, str or None, default=None
        Kernel of "kernel PCA".  If the points are not vectors, it also defines their distances.
        None means an RBF kernel whose length scale is the median distance.
    rows : int or None, default=None
        Number of randomly chosen points whose neighbours among all points are evaluated, as in
        `embedding_quality`.  None means all points if n <= 5000, otherwise 2000.
    n_neighbors : int or None, default=None
        Number of neighbours for trustworthiness and continuity.  None means 10, or n - 2 if that is
        smaller.  Small numbers measure local structure, large ones global structure.
    random_state : int, default=0
        Random seed for the choice of rows and for named models.
    max_memory : int, str or None, default=None
        Memory limit for the named models in bytes, or a string such as "2 GiB"; None means half of
        the memory of this computer.
    verbose : int, default=0
        If positive, print the name of each model when its fit starts.

    Returns
    -------
    Comparison
        The results, which print as a table; `plot()` draws the embeddings side by side.  The
        embeddings are arrays of shape (n, q) in the dictionary `maps`.

    See Also
    --------
    embedding_quality : Measure the quality of one embedding.
    explore : Explore an embedding interactively.

    Examples
    --------
    >>> import mercer
    >>> from mercer.datasets import swiss_roll
    >>> X, height = swiss_roll(200, random_state=0)
    >>> comparison = mercer.compare(X, height, ["PCA", "kernel PCA", "Sammon"])
    >>> quality = comparison.qualities
    >>> best = max(quality, key=lambda name: quality[name].auc)
    >>> best, round(quality[best].auc, 2)
    ('Sammon', 0.61)
    """
    counts = {"n_components": n_components, "rows": rows, "n_neighbors": n_neighbors}
    for name, value in counts.items():
        if not is_count(value) and (value is not None or name == "n_components"):
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if not is_count(random_state, 0):
        raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}")
    budget_in_bytes(max_memory)  # raises a ValueError if max_memory is invalid
    on_vectors = kernel is None or as_kernel(kernel).domain.on_vectors
    if on_vectors:
        reject_structured(X, "compare(kernel=None)")
        options = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "estimator": "compare"}
        X = check_array(X, **options)
    n, d = length(X), X.shape[1] if on_vectors else None
    if n < 3:
        raise ValueError(f"a comparison needs at least 3 points, got n_samples={n}")
    if d is not None and n_components > d:
        raise ValueError(f"n_components={n_components} exceeds the number of columns of X, {d}")
    y = _check_labels(y, n)
    complete = np.flatnonzero(np.isfinite(X).all(axis=1)) if on_vectors else np.arange(n)
    if len(complete) < 3:
        raise ValueError(f"only {len(complete)} of {n} rows have no missing values; 3 are needed")
    if on_vectors and np.all(X[complete] == X[complete[0]]):
        raise ValueError(
            f"all {len(complete)} rows of X are equal, so there is nothing to embed; usually "
            f"the columns are constant; check the data"
        )
    request = EmbeddingRequest(
        *(n, n_components, RBF("median") if kernel is None else kernel, on_vectors),
        *(len(complete) < n, random_state, max_memory, d or 1),
    )
    estimators, left_out = choose_models(models, request)
    evaluate = _Evaluation(X, y, complete, None if on_vectors else kernel, rows, random_state)
    compared: list[ModelResult] = []
    with progress("compare", verbose) as log:
        for k, (name, model) in enumerate(estimators.items()):
            if log is not None:
                log(ProgressStep(f"{name}, {k + 1} of {len(estimators)}", k + 1, len(estimators)))
            compared.append(_fit_and_evaluate(name, model, X, evaluate))
    if all(row.Z is None for row in compared):
        texts = "; ".join(f"{row.name} {row.note}" for row in compared)
        raise ValueError(f"all models failed: {texts}")
    evaluated = next(row.quality.rows for row in compared if row.quality is not None)
    K = min(n_neighbors or _DEFAULT_NEIGHBORS, len(complete) - 2)
    return Comparison(tuple(compared), left_out, n, len(evaluated), K, y)


def _fit_and_evaluate(name: str, model: Any, X: Points, evaluate: _Evaluation) -> ModelResult:
    """Fit and evaluate a model; if it fails, the `note` of the result contains the reason."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = evaluate(_fit(name, model, X))
        except Exception as error:  # the failure of one model must not stop the comparison
            result = ModelResult(name, note=f"failed: {error}")
    if result.Z is None:
        warn_caller(f"{name} {result.note}; the other models are compared without it")
        return result
    for warning in caught:
        warn_caller(f"{name}: {warning.message}", warning.category)
    return replace(result, note="; ".join(str(warning.message) for warning in caught))


def _fit(name: str, model: Any, X: Points) -> ModelResult:
    """Fit a model and return its embedding and the run time."""
    watch = Stopwatch()
    has_fit_transform = hasattr(model, "fit_transform")
    Z = model.fit_transform(X) if has_fit_transform else model.fit(X).transform(X)
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="the embedding"))
    return ModelResult(name, model, Z, seconds=watch.seconds)


@dataclass(frozen=True)
class _Evaluation:
    """Evaluate embeddings, all with the same measures on the same rows.

    `complete` contains the indices of the rows without missing values, and `kernel` is None if the
    points are vectors.
    """

    X: Any
    y: np.ndarray | None
    complete: np.ndarray
    kernel: Any
    rows: int | None
    seed: int

    def __call__(self, row: ModelResult) -> ModelResult:
        """Return a copy of the result with the quality measures of its embedding."""
        points, Z = take(self.X, self.complete), row.Z[self.complete]  # type: ignore[index]
        quality = embedding_quality(
            points, Z, rows=self.rows, kernel=self.kernel, random_state=self.seed
        )
        errors = np.nan
        if self.y is not None and _are_classes(self.y):
            labels = self.y[self.complete]
            neighbors = NearestNeighbors(n_neighbors=2).fit(Z).kneighbors(Z[quality.rows])[1]
            # The first neighbour is the point itself, except possibly if several points coincide.
            nearest = np.where(neighbors[:, 0] == quality.rows, neighbors[:, 1], neighbors[:, 0])
            errors = float(np.sum(labels[nearest] != labels[quality.rows]))
        error = np.nan
        if self.kernel is None and hasattr(row.model, "inverse_transform"):
            # In some models, `inverse_transform` raises an error unless a parameter enables it.
            with suppress(NotFittedError, NotImplementedError):
                restored = np.asarray(row.model.inverse_transform(Z[quality.rows]))
                error = float(np.mean((points[quality.rows] - restored) ** 2))
        return replace(row, quality=quality, errors=errors, reconstruction=error)


def _check_labels(y: Any, n: int) -> np.ndarray | None:
    """Return y as an array of length n, or None."""
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, but there are {n} points")
    return y


def _are_classes(y: np.ndarray) -> bool:
    """Return True if y contains class labels, which are integers or not numbers at all."""
    return y.dtype.kind not in "fc" or bool(np.all(y == np.rint(y)))
