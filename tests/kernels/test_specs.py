"""as_kernel: conversion of user input to kernels."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from mercer import KernelSyntaxError
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Callable,
    Chi2,
    Cosine,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    as_kernel,
)
from mercer.kernels._as_kernel import KERNEL_NAMES

rng = np.random.default_rng(0)
X, Z = rng.uniform(size=(9, 3)), rng.uniform(size=(5, 3))


def test_the_names_are_those_of_scikit_learn():
    assert set(KERNEL_NAMES) == set(PAIRWISE_KERNEL_FUNCTIONS)


@pytest.mark.parametrize("name", KERNEL_NAMES)
@pytest.mark.parametrize("options", [{}, {"gamma": 0.7, "degree": 2, "coef0": 0.5}], ids=str)
def test_names(name, options):
    """Same defaults as scikit-learn's KernelRidge."""
    given = {"gamma": None, "degree": 3, "coef0": 1} | options
    if name == "chi2" and not options:
        given = {}  # scikit-learn fails with gamma=None
    want = pairwise_kernels(X, Z, metric=name, filter_params=True, **given)
    np.testing.assert_allclose(as_kernel(name, **options).resolve(X)(X, Z), want, rtol=1e-12)


@pytest.mark.parametrize(
    ("spec", "options", "kernel"),
    [
        ("linear", {"gamma": 3.0}, Linear()),
        ("rbf", {}, RBF("auto")),
        ("rbf", {"gamma": "median"}, RBF("median")),
        ("rbf", {"gamma": 0.5}, RBF(1.0)),
        ("laplacian", {"gamma": "scale"}, Laplacian("scale")),
        ("poly", {"degree": 2.0}, Polynomial(degree=2, coef0=1, gamma="auto")),
        ("sigmoid", {"coef0": -1.0}, Sigmoid(gamma="auto", coef0=-1.0)),
        ("cosine", {}, Cosine()),
        ("chi2", {}, Chi2(1.0)),
        ("chi2", {"gamma": "auto"}, Chi2("auto")),
        ("additive_chi2", {}, AdditiveChi2()),
        ("precomputed", {}, Precomputed()),
        ("2*RBF(0.5) + rbf", {"gamma": 7.0}, 2.0 * RBF(0.5) + RBF("auto")),
        ("rbf", {"gamma": 0.5, "kernel_params": {"gamma": 7.0}}, RBF(1.0)),
        (np.dot, {"gamma": 7.0}, Callable(np.dot)),
        (np.dot, {"kernel_params": {}}, Callable(np.dot)),
        (2.0 * gp.RBF(0.5), {}, 2.0 * RBF(0.5)),
    ],
)
def test_specs(spec, options, kernel):
    assert as_kernel(spec, **options) == kernel


def test_a_kernel_is_itself():
    kernel = RBF() + Linear()
    assert as_kernel(kernel, gamma=3.0) is kernel


def power(x, z, exponent=1.0):
    return (1.0 + x @ z) ** exponent


def test_params_of_a_function():
    params = {"exponent": 2.0}
    kernel = as_kernel(power, kernel_params=params)
    params["exponent"] = 5.0  # changing the caller's dict has no effect
    np.testing.assert_allclose(kernel(X, Z), (1.0 + X @ Z.T) ** 2.0)
    y = rng.normal(size=9)
    theirs = KernelRidge(kernel=power, kernel_params={"exponent": 2.0}).fit(X, y)
    ours = np.linalg.solve(kernel(X) + np.eye(9), y)
    np.testing.assert_allclose(ours, theirs.dual_coef_)


@pytest.mark.parametrize(
    ("spec", "options", "error", "text"),
    [
        ("gauss", {}, KernelSyntaxError, r"unknown name 'gauss'; did you mean RBF\?"),
        ("RBF", {}, KernelSyntaxError, r"RBF is a class; write RBF\(\)"),
        (None, {}, TypeError, "Got None instead"),
        (RBF, {}, TypeError, r"the class RBF, not an instance; write RBF\(\.\.\.\)"),
        ("poly", {"degree": 2.5}, ValueError, "degree must be a positive integer"),
        ("poly", {"coef0": -1.0}, ValueError, "coef0 must be non-negative"),
        ("rbf", {"gamma": -1.0}, ValueError, "gamma must be positive"),
        ("chi2", {"gamma": "mean"}, ValueError, "gamma must be a positive number or one of"),
        ("laplacian", {"gamma": "mean"}, ValueError, "must be positive numbers or one of"),
    ],
)
def test_refused(spec, options, error, text):
    with pytest.raises(error, match=text):
        as_kernel(spec, **options)
