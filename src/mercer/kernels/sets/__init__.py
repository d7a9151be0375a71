"""Kernels on sets, bags and rankings."""
