"""Objectives for optimising the hyperparameters of Gaussian processes."""
