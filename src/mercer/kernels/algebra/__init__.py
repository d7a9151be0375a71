"""Kernels built from other kernels: sums, products, wrappers and maps of the inputs."""
