"""Gaussian process regression and classification."""
