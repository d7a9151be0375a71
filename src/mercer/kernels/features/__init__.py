"""Kernels given by explicit features, and feature maps of kernels."""
