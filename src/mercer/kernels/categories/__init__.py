"""Kernels on categories: values that are either equal or different, such as colours or codes."""
