"""The function `compare`."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
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
from ...kernels import RBF, as_kernel
from ...models.embedding import embedding_quality
from ._comparison_result import Comparison, ModelResult
from ._registry import EmbeddingRequest, choose_models

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
        The names are "PCA", "PPCA", "kernel PCA", "MDS", "Sammon", "NeuroScale",
        "autoencoder", "GPLVM", "Bayesian GPLVM", "t-SNE", "UMAP" (if umap-learn is installed),
        "Isomap", "LLE" and "spectral embedding".  An estimator is any object with `fit_transform`,
        for example from scikit-learn; its parameters are not changed.  The default is all named
        models of mercer and PCA that support X and are fast enough for n points;
        `Comparison.left_out` gives reasons for the others.
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
        warnings.simplefilter("always", Warning)  # issued again below
        try:
            result = evaluate(_fit(name, model, X))
        except Exception as error:  # the failure of one model must not stop the comparison
            result = ModelResult(name, note=f"failed: {error}")
    if result.Z is None:
        warn_caller(f"{name} {result.note}; the other models are compared without it")
        return result
    messages = {str(warning.message): warning.category for warning in caught}  # each one once
    for message, category in messages.items():
        warn_caller(f"{name}: {message}", category)
    return replace(result, note="; ".join(messages))


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
