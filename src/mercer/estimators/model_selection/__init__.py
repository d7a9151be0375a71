"""Search for kernels and hyperparameters."""
