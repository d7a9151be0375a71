"""Embeddings of points in a few dimensions, as estimators."""
