"""Kernel PCA and ICA, canonical correlation analysis and partial least squares."""
