"""Objectives for the hyperparameters of Gaussian processes."""
