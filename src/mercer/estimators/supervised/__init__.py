"""Regressors and classifiers that minimise a regularised loss."""
