"""Kernels on strings and texts."""
