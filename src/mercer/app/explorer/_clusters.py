"""Clusters of the points by kernel k-means, with a position in an embedding and a short label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from ..._core import Points, length, take
from ...estimators import KernelKMeans
from ...tables import Table
from ._embeddings import Embedding

DEFAULT_CLUSTERS = 8
_MAX_CLUSTERS = 50  # a page shows at most this many labels
_MAX_SAMPLE, _MIN_SAMPLE = 2000, 200  # centroids are computed from that many points
_MAX_KERNEL_VALUES = 2e8  # the sample is smaller if more values of the kernel would be needed
_MAX_KMEANS_SAMPLE = 50_000  # k-means on coordinates is fitted to at most this many points
_MAX_LABELLED_ROWS = 20_000  # labels are derived from a sample of the rows
_MAX_CATEGORIES = 1000  # columns of strings with more distinct values do not describe clusters
_MAX_DISTINCT_FRACTION = 0.5  # nor do those with more than this fraction of distinct strings
_MAX_INTEGER_CATEGORIES = 12  # columns of at most this many distinct integers have classes
_MIN_SUPPORT = 0.3  # a value describes a cluster if at least this fraction of its rows has it
_MIN_LIFT = 1.2  # and if it is this much more frequent in the cluster than in all rows
_MIN_SHIFT = 0.5  # smaller differences of means, in standard deviations, do not describe clusters


class Cluster(NamedTuple):
    """The number of points of a cluster, the median of their positions, and a short label."""

    size: int
    x: float
    y: float
    text: str


def cluster_column(embedding: Embedding) -> str:
    """Return the name of the derived column with the cluster of each point."""
    return f"cluster in {embedding.title}"


def cluster_points(
    embedding: Embedding, points: Points, count: int = DEFAULT_CLUSTERS
) -> np.ndarray:
    """Return the cluster of each point, from 1 (the largest cluster) to at most `count`.

    Points without coordinates have the value 0.

    The clusters of a kernel PCA are those of kernel k-means with the same kernel; centroids are
    computed from a sample if there are many points.  Other models are clustered by k-means on
    their coordinates.  The result is reproducible.
    """
    known = np.flatnonzero(np.isfinite(embedding.coordinates).all(axis=1))
    labels, n = np.zeros(length(points), dtype=np.int64), len(known)
    count = min(max(1, count), _MAX_CLUSTERS)
    rng = np.random.default_rng(0)
    if embedding.is_kernel_pca and embedding.model.kernel != "precomputed":
        size = int(np.clip(_MAX_KERNEL_VALUES / n, _MIN_SAMPLE, _MAX_SAMPLE))
        model: Any = KernelKMeans(
            count, kernel=embedding.model.kernel_, solver="exact", random_state=0
        )
        X = points if n == len(labels) else take(points, known)
    else:
        size = _MAX_KMEANS_SAMPLE
        model = KMeans(count, n_init=4, random_state=0)
        X = np.asarray(embedding.coordinates, dtype=float)[known]
    sample = X if n <= size else take(X, np.sort(rng.choice(n, size, replace=False)))
    count = min(count, length(sample))
    found = np.asarray(model.set_params(n_clusters=count).fit(sample).predict(X))
    order = np.argsort(-np.bincount(found, minlength=count), kind="stable")
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(1, count + 1)
    labels[known] = rank[found]
    return labels


def describe_clusters(labels: np.ndarray, embedding: Embedding, table: Table) -> list[Cluster]:
    """Return the clusters in the order of their labels, which start from 1.

    The text of a cluster is its most characteristic category.  If there is none, it is the numeric
    column whose mean in the cluster differs most from the overall mean, in standard deviations.
    """
    count, rows = int(labels.max(initial=0)), np.flatnonzero(labels)
    if len(rows) > _MAX_LABELLED_ROWS:
        rng = np.random.default_rng(0)
        rows = np.sort(rng.choice(rows, _MAX_LABELLED_ROWS, replace=False))
    candidates: list[list[_Candidate]] = [[] for _ in range(count)]
    sampled = table.take(rows)
    for name, column in sampled.columns.items():
        kind = sampled.kinds[name]
        if kind in ("text", "numbers", "dates"):
            for c, candidate in _candidates(name, column, kind, labels[rows] - 1, count):
                candidates[c].append(candidate)
    x, y = embedding.axis_values(0), embedding.axis_values(1)
    clusters = []
    for c, found in enumerate(candidates):
        inside = labels == c + 1  # not empty, because empty clusters would have the last labels
        text = max(found).text if found else f"cluster {c + 1}"
        position = float(np.median(x[inside])), float(np.median(y[inside]))
        clusters.append(Cluster(int(inside.sum()), *position, text))
    return clusters


class _Candidate(NamedTuple):
    """A possible text of a cluster; the largest is the best: categories first, then by effect."""

    is_category: bool
    effect: float
    text: str


def _candidates(
    name: str, column: np.ndarray, kind: str, labels: np.ndarray, count: int
) -> Iterator[tuple[int, _Candidate]]:
    """Yield the cluster, counted from 0, and the possible texts from one column."""
    sizes = np.bincount(labels, minlength=count)
    if kind == "text":
        present = np.array([value is not None for value in column], dtype=bool)
    else:
        present = ~np.isnat(column) if kind == "dates" else np.isfinite(column)
        column = column.astype(float)
    values, codes = np.unique(column[present], return_inverse=True)
    few_integers = len(values) <= _MAX_INTEGER_CATEGORIES and kind == "numbers"
    if kind == "text" or (few_integers and np.all(values == np.rint(values))):
        if not 1 < len(values) <= _MAX_CATEGORIES:
            return
        if kind == "text" and len(values) > _MAX_DISTINCT_FRACTION * len(codes):
            return
        counts = np.zeros((count, len(values)))
        np.add.at(counts, (labels[present], codes), 1.0)
        support = counts / np.maximum(sizes, 1)[:, None]
        lift = support / (counts.sum(axis=0) / len(labels))
        for c, k in zip(*np.nonzero((support >= _MIN_SUPPORT) & (lift >= _MIN_LIFT)), strict=True):
            text = str(values[k]) if kind == "text" else f"{name} {values[k]:g}"
            yield int(c), _Candidate(True, float(lift[c, k]), text)
        return
    deviation = float(np.std(column[present])) if present.any() else 0.0
    if deviation == 0.0:
        return
    mean = float(np.mean(column[present]))
    weights = np.bincount(labels[present], minlength=count)
    sums = np.bincount(labels[present], weights=column[present] - mean, minlength=count)
    more, less = ("late", "early") if kind == "dates" else ("high", "low")
    for c in np.flatnonzero(weights):
        effect = float(sums[c] / weights[c] / deviation)
        if abs(effect) >= _MIN_SHIFT:
            yield int(c), _Candidate(False, abs(effect), f"{more if effect > 0 else less} {name}")
