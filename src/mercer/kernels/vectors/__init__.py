"""Kernels on vectors, and the numerical routines that they share."""
