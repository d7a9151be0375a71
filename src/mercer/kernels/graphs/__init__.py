"""Graphs, and kernels on graphs."""
