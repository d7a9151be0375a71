"""Kernel two-sample and independence tests."""
