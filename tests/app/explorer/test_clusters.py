"""Clusters of the points and their labels."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans, KernelPCA
from mercer.app.explorer._clusters import cluster_points, describe_clusters
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding, embedding_of
from mercer.datasets import circles
from mercer.tables import Table, UnreadableColumn


@pytest.fixture(scope="module")
def rings():
    X, ring = circles(400, random_state=0)
    return X, ring, embedding_of(KernelPCA(2, kernel="rbf", gamma=5.0).fit(X), X)


def test_clusters_of_a_kernel_pca_are_those_of_kernel_k_means(rings):
    X, ring, embedding = rings
    labels = cluster_points(embedding, X, 2)
    expected = KernelKMeans(2, kernel=embedding.model.kernel_, random_state=0).fit(X).labels_
    assert adjusted_rand_score(labels, expected) == 1.0
    assert adjusted_rand_score(labels, ring) == 1.0  # k-means on the points cannot separate rings
    sizes = np.bincount(labels)[1:]
    assert sizes.tolist() == sorted(sizes, reverse=True)
    np.testing.assert_array_equal(labels, cluster_points(embedding, X, 2))


def test_centroids_of_many_points_are_computed_from_a_sample(monkeypatch, rings):
    X, ring, embedding = rings
    monkeypatch.setattr("mercer.app.explorer._clusters._MAX_KERNEL_VALUES", 300.0 * len(X))
    labels = cluster_points(embedding, X, 2)
    assert len(labels) == 400 and adjusted_rand_score(labels, ring) == 1.0


def blobs():
    """Return the coordinates and the columns of three groups of 30, 20 and 10 points."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [30, 20, 10])
    Z = rng.normal(scale=0.1, size=(60, 2)) + np.array([[0, 0], [5, 0], [0, 5]])[group]
    return Z, group


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        (
            lambda group: {"city": np.array(["Bonn", "Köln", "Ulm"], dtype=object)[group]},
            ["Bonn", "Köln", "Ulm"],
        ),
        (  # strings that are all different do not describe clusters
            lambda group: {
                "name": np.array([f"row {i}" for i in range(60)], dtype=object),
                "length": np.where(group == 1, 100.0, 0.0) + np.linspace(0, 1, 60) + 20 * group,
            },
            ["low length", "high length", "cluster 3"],
        ),
        (lambda group: {"level": group * 1.0}, ["level 0", "level 1", "level 2"]),
        (
            lambda group: {
                "day": np.datetime64("2024-01-01", "us")
                + (group * 60 + np.arange(60)) * 86400 * 10**6
            },
            ["early day", "cluster 2", "late day"],
        ),
        (lambda group: {"constant": np.ones(60)}, ["cluster 1", "cluster 2", "cluster 3"]),
    ],
)
def test_labels_state_what_is_characteristic(columns, texts):
    Z, group = blobs()
    embedding = Embedding("data", IdentityEmbedding(), Z)
    labels = cluster_points(embedding, Z, 3)
    np.testing.assert_array_equal(labels, group + 1)
    found = describe_clusters(labels, embedding, Table(columns(group)))
    assert [c.text for c in found] == texts
    assert [c.size for c in found] == [30, 20, 10]
    for c, cluster in enumerate(found):
        expected = np.median(Z[group == c].astype(np.float32), axis=0)
        np.testing.assert_allclose((cluster.x, cluster.y), expected)


def test_identifiers_do_not_describe_small_clusters():
    group = np.repeat([0, 1], [57, 3])
    embedding = Embedding("data", IdentityEmbedding(), np.eye(2)[group])
    names = np.array([f"W{i - i % 20 // 19}" for i in range(60)], dtype=object)  # three occur twice
    found = describe_clusters(group + 1, embedding, Table({"name": names}))
    assert [c.text for c in found] == ["cluster 1", "cluster 2"]


def test_points_without_coordinates_are_in_no_cluster():
    Z, group = blobs()
    Z[[0, 35]] = np.nan
    embedding = Embedding("data", IdentityEmbedding(), Z)
    labels = cluster_points(embedding, Z, 3)
    assert np.flatnonzero(labels == 0).tolist() == [0, 35]
    found = describe_clusters(labels, embedding, Table({"level": group * 1.0}))
    assert [(c.size, c.text) for c in found] == [(29, "level 0"), (19, "level 1"), (10, "level 2")]
    assert all(np.isfinite((c.x, c.y)).all() for c in found)


def test_missing_values_do_not_describe_clusters():
    Z, group = blobs()
    embedding = Embedding("data", IdentityEmbedding(), Z)
    city = np.array([None, "Köln", "Ulm"], dtype=object)[group]
    size = np.where(group == 0, 2.5, np.nan) + np.arange(60) % 3
    found = describe_clusters(group + 1, embedding, Table({"city": city, "size": size}))
    assert [c.text for c in found] == ["cluster 1", "Köln", "Ulm"]


def test_columns_that_cannot_describe_clusters(monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._clusters._MAX_LABELLED_ROWS", 40)
    Z, group = blobs()
    embedding = Embedding("data", IdentityEmbedding(), Z)
    table = {"image": UnreadableColumn("images", 60), "constant": np.full(60, 0.5)}
    found = describe_clusters(group + 1, embedding, Table(table))
    assert [(c.size, c.text) for c in found] == [
        *[(30, "cluster 1"), (20, "cluster 2"), (10, "cluster 3")]
    ]
