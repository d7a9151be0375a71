"""Kernel PCA, canonical correlation analysis and partial least squares."""
