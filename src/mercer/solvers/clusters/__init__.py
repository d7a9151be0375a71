"""Kernel k-means: clustering in feature space, from the kernel matrix K."""

from ._cluster import Clusters, cluster
from ._in_blocks import cluster_blocks
from ._lloyd import Lloyd, Partition
from ._silhouette import silhouette

__all__ = ["Clusters", "Lloyd", "Partition", "cluster", "cluster_blocks", "silhouette"]
