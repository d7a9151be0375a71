"""Kernel k-means: clustering in feature space, from the kernel matrix K."""

from ._kmeans_solver import Clusters, cluster
from ._kmeans_solver import cluster_blocks as cluster_blocks
from ._kmeans_solver import stores_cluster_gram as stores_cluster_gram
from ._lloyd import Lloyd, Partition
from ._silhouette import silhouette

__all__ = ["Clusters", "Lloyd", "Partition", "cluster", "silhouette"]
