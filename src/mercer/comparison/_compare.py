"""Maps of the same points by several models, measured alike."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from .._errors import warn_caller
from .._points import length, refuse_structured, take
from .._runtime import Step, Stopwatch, budget_in_bytes, entry_point, is_count, progress
from ..kernels import RBF, as_kernel
from ..maps import embedding_quality
from ._comparison import Compared, Comparison
from ._known import Asked, chosen

__all__ = ["compare"]

_NEIGHBOURS = 10


@entry_point
def compare(
    X: Any,
    y: Any = None,
    models: Any = None,
    *,
    n_components: int = 2,
    kernel: Any = None,
    rows: int | None = None,
    n_neighbors: int | None = None,
    random_state: int = 0,
    max_memory: Any = None,
    verbose: int = 0,
) -> Comparison:
    """Make maps of points by several models, and tell how much of each is true.

    Models see X alone; y is what the maps are coloured by, and if it holds labels, whether nearest
    neighbours in a map have the same.  A model that fails has a row that says why, and a warning;
    the others are compared without it.

    Parameters
    ----------
    X : array of shape (n, d), or points
        Vectors; or with a `kernel` on other points, these.  NaN is a missing value: only
        probabilistic PCA takes it, and neighbours are those among rows without.
    y : array-like of shape (n,), optional
        Labels, or numbers.
    models : list or dict of names and estimators, optional
        Names are "PCA", "PPCA", "kernel PCA", "MDS", "Sammon", "autoencoder", "GPLVM", "Bayesian
        GPLVM"; estimators are any with `fit_transform`, scikit-learn's too, and keep their
        parameters.  By default all that n points allow; `left_out` tells which were not taken, and
        why.
    n_components : int
        The dimensions of maps by models that are named.
    kernel : Kernel, str or None
        Of kernel PCA; and where points are no vectors, of all distances.  None is a Gaussian whose
        width is the median distance.
    rows : int or None
        How many points, drawn at random, are asked for their neighbours among all, as in
        `embedding_quality`; None is all of up to 5000, and 2000 of more.
    n_neighbors : int or None
        K of trustworthiness and continuity; None is 10, or n - 2 if that is less.
    random_state : int
        Draws the rows, and is given to models that are named.
    max_memory : int, str or None
        Given to models that are named.
    verbose : int
        Whether to say which model is at work.

    Returns
    -------
    Comparison
        Printed, it is a table; `plot()` draws the maps side by side.

    Examples
    --------
    >>> import mercer
    >>> from mercer.datasets import swiss_roll
    >>> X, height = swiss_roll(200, random_state=0)
    >>> found = mercer.compare(X, height, ["PCA", "kernel PCA", "Sammon"])
    >>> best = max(found.qualities, key=lambda name: found.qualities[name].auc)
    >>> best, round(found.qualities[best].auc, 2)
    ('Sammon', 0.61)
    """
    counts = {"n_components": n_components, "rows": rows, "n_neighbors": n_neighbors}
    for name, value in counts.items():
        if not is_count(value) and (value is not None or name == "n_components"):
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if not is_count(random_state, 0):
        raise ValueError(f"random_state must be an integer from 0, got {random_state!r}")
    budget_in_bytes(max_memory)  # refuses what is none
    on_vectors = kernel is None or as_kernel(kernel).on_vectors
    if on_vectors:
        refuse_structured(X, "compare(kernel=None)")
        options = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "estimator": "compare"}
        X = check_array(X, **options)
    n, d = length(X), X.shape[1] if on_vectors else None
    if n < 3:
        raise ValueError(f"maps are compared of at least 3 points, got n_samples={n}")
    if d is not None and n_components > d:
        raise ValueError(f"n_components={n_components}, but X has only n_features={d}")
    y = _labels(y, n)
    complete = np.flatnonzero(np.isfinite(X).all(axis=1)) if on_vectors else np.arange(n)
    if len(complete) < 3:
        raise ValueError(f"only {len(complete)} of {n} rows have no missing value; 3 are needed")
    if on_vectors and np.all(X[complete] == X[complete[0]]):
        raise ValueError(
            f"all {len(complete)} rows of X are equal, and there is nothing to be mapped; the "
            f"usual cause is columns that are constant"
        )
    asked = Asked(
        *(n, n_components, RBF("median") if kernel is None else kernel, on_vectors),
        *(len(complete) < n, random_state, max_memory, d or 1),
    )
    made, left_out = chosen(models, asked)
    measure = _Measure(X, y, complete, None if on_vectors else kernel, rows, random_state)
    compared: list[Compared] = []
    with progress("compare", verbose) as say:
        for k, (name, model) in enumerate(made.items()):
            if say is not None:
                say(Step(f"{name}, {k + 1} of {len(made)}", k + 1, len(made)))
            compared.append(_attempt(name, model, X, measure))
    if all(row.Z is None for row in compared):
        texts = "; ".join(f"{row.name} {row.note}" for row in compared)
        raise ValueError(f"no model could make a map: {texts}")
    first = next(row.quality.rows for row in compared if row.quality is not None)
    K = min(n_neighbors or _NEIGHBOURS, len(complete) - 2)
    return Comparison(tuple(compared), left_out, n, len(first), K, y)


def _attempt(name: str, model: Any, X: Any, measure: _Measure) -> Compared:
    """Return a model's map and its measures, or why there are none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = measure(_fitted(name, model, X))
        except Exception as error:  # of any model, ours or not: the others are to go on
            found = Compared(name, note=f"failed: {error}")
    if found.Z is None:
        warn_caller(f"{name} {found.note}; the others are compared without it")
        return found
    for warning in caught:
        warn_caller(f"{name}: {warning.message}", warning.category)
    return replace(found, note="; ".join(str(warning.message) for warning in caught))


def _fitted(name: str, model: Any, X: Any) -> Compared:
    watch = Stopwatch()
    both = hasattr(model, "fit_transform")
    Z = model.fit_transform(X) if both else model.fit(X).transform(X)
    Z = np.asarray(check_array(Z, dtype=np.float64, input_name="the map"))
    return Compared(name, model, Z, seconds=watch.seconds)


@dataclass(frozen=True)
class _Measure:
    """What is measured alike of all maps, at the same rows."""

    X: Any
    y: np.ndarray | None
    complete: np.ndarray
    kernel: Any
    rows: int | None
    seed: int

    def __call__(self, row: Compared) -> Compared:
        """Return the row with what is measured of its map."""
        points, Z = take(self.X, self.complete), row.Z[self.complete]  # type: ignore[index]
        quality = embedding_quality(
            points, Z, rows=self.rows, kernel=self.kernel, random_state=self.seed
        )
        errors = np.nan
        if self.y is not None and _are_classes(self.y):
            labels = self.y[self.complete]
            near = NearestNeighbors(n_neighbors=2).fit(Z).kneighbors(Z[quality.rows])[1]
            other = np.where(near[:, 0] == quality.rows, near[:, 1], near[:, 0])
            errors = float(np.sum(labels[other] != labels[quality.rows]))
        lost = np.nan
        if self.kernel is None and hasattr(row.model, "inverse_transform"):
            with suppress(NotFittedError, NotImplementedError):  # a way back that was not asked for
                back = np.asarray(row.model.inverse_transform(Z[quality.rows]))
                lost = float(np.mean((points[quality.rows] - back) ** 2))
        return replace(row, quality=quality, errors=errors, reconstruction=lost)


def _labels(y: Any, n: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, but there are {n} points")
    return y


def _are_classes(y: np.ndarray) -> bool:
    """Tell whether y holds labels: whatever is no number, and whole numbers."""
    return y.dtype.kind not in "fc" or bool(np.all(y == np.rint(y)))
