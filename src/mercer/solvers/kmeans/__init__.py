"""Kernel k-means: clustering in feature space, from the kernel matrix K."""

from ._cluster_distances import silhouette
from ._kmeans_solver import cluster
from ._kmeans_solver import stores_cluster_gram as stores_cluster_gram
from ._lloyd import Clusters, Lloyd

__all__ = ["Clusters", "Lloyd", "cluster", "silhouette"]
