from . import embedding, gp, kernel_learning, kpca, mean_embedding

__all__ = ["embedding", "gp", "kernel_learning", "kpca", "mean_embedding"]
