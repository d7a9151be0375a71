"""scikit-learn's GP kernels: conversion to mercer kernels, and the wrapper for the others."""

import pickle

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as gp
from sklearn.base import clone

from mercer import NotDifferentiableError
from mercer.kernels import (
    RBF,
    Bounded,
    Constant,
    Fixed,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Power,
    Product,
    RationalQuadratic,
    Scale,
    SklearnKernel,
    Sum,
    White,
    from_sklearn,
)
from mercer.testing import check_kernel, check_pullback

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))

sine = gp.ExpSineSquared(1.2, 3.0)


def scaled(x, z, gamma):
    return gamma * np.dot(x, z)


TRANSLATED = [
    (gp.RBF(0.7), RBF(0.7)),
    (gp.RBF([0.7, 1.0, 2.0]), RBF((0.7, 1.0, 2.0))),
    (gp.RBF([0.7]), RBF(0.7)),
    (gp.RBF(0.7, "fixed"), Fixed(RBF(0.7))),
    (gp.RBF(0.7, (0.1, 10.0)), Bounded(RBF(0.7), (0.1, 10.0))),
    (gp.Matern(1.3, nu=0.5), Matern(1.3, nu=0.5)),
    (gp.Matern(1.3, nu=1.1), Matern(1.3, nu=1.1)),
    (gp.Matern(1.3, nu=np.inf), Matern(1.3, nu=np.inf)),
    (gp.RationalQuadratic(0.7, 1.5), RationalQuadratic(0.7, 1.5)),
    (gp.RationalQuadratic(0.7, 1.5, "fixed", "fixed"), Fixed(RationalQuadratic(0.7, 1.5))),
    (
        gp.RationalQuadratic(0.7, 1.5, alpha_bounds=(0.1, 10)),
        Bounded(RationalQuadratic(0.7, 1.5), ((1e-5, 1e5), (0.1, 10.0))),
    ),
    (gp.DotProduct(0.5), Linear() + Constant(0.25)),
    (gp.DotProduct(0.0), Linear() + Constant(0.0)),
    (gp.DotProduct(0.5, "fixed"), Linear() + Fixed(Constant(0.25))),
    (gp.DotProduct(0.5, (0.1, 10.0)), Linear() + Bounded(Constant(0.25), (0.1**2, 100.0))),
    (gp.WhiteKernel(0.3), White(0.3)),
    (gp.ConstantKernel(2.0), Constant(2.0)),
    (2.0 * gp.RBF(), 2.0 * RBF()),
    (gp.RBF() * 2.0, 2.0 * RBF()),
    (gp.ConstantKernel(2.0, "fixed") * gp.RBF(), Fixed(Constant(2.0)) * RBF()),
    (gp.RBF() + gp.Matern() + gp.WhiteKernel(), RBF() + Matern() + White()),
    ((gp.RBF() + gp.Matern()) * gp.RationalQuadratic(), (RBF() + Matern()) * RationalQuadratic()),
    (gp.RBF() ** 2, RBF() ** 2),
    (gp.RBF() ** 0.5, RBF() ** 0.5),
    (gp.DotProduct() ** 3, (Linear() + 1.0) ** 3),
    (gp.PairwiseKernel(0.4, metric="rbf"), RBF.from_gamma(0.4)),
    (gp.PairwiseKernel(0.4, metric="laplacian"), Laplacian.from_gamma(0.4)),
    (gp.PairwiseKernel(0.4, metric="linear"), Linear()),
    (
        gp.PairwiseKernel(0.4, metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.5}),
        Polynomial(degree=2, coef0=0.5, gamma=0.4),
    ),
    (gp.PairwiseKernel(0.4, "fixed", metric="poly"), Fixed(Polynomial(gamma=0.4))),
    (
        gp.PairwiseKernel(0.4, (0.1, 10.0), metric="laplacian"),
        Bounded(Laplacian.from_gamma(0.4), (0.1, 10.0)),
    ),
]
WRAPPED = [
    sine,
    gp.RationalQuadratic(0.7, 1.5, alpha_bounds="fixed"),
    gp.Exponentiation(sine + gp.WhiteKernel(0.2), 0.5),
    gp.PairwiseKernel(0.4, metric=scaled),
]


def agree(kernel, reference):
    for got, want in [
        (kernel(X, Z), reference(X, Z)),
        (kernel(X), reference(X)),
        (kernel.diag(X), reference.diag(X)),
    ]:
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("theirs", "ours"), TRANSLATED, ids=lambda k: str(k)[:60])
def test_translated(theirs, ours):
    assert from_sklearn(theirs) == ours
    agree(ours, theirs)


def test_a_product_with_a_constant_is_a_scale():
    kinds = [Sum, Product, Scale, Power]
    theirs = [gp.RBF() + 1.0, gp.RBF() * gp.RBF(), 2.0 * gp.RBF(), gp.RBF() ** 2]
    assert [type(from_sklearn(k)) for k in theirs] == kinds


def test_bounds_are_kept():
    low, high = np.sqrt(0.05), np.sqrt(5.0)
    kernel = from_sklearn(gp.PairwiseKernel(0.4, (0.1, 10.0), metric="rbf"))
    np.testing.assert_allclose(np.exp(kernel.bounds), [[low, high]])
    theirs = gp.RBF([0.7, 1.0], [(1e-2, 1e2), (1e-3, 1e3)])
    np.testing.assert_allclose(from_sklearn(theirs).bounds, theirs.bounds)


@pytest.mark.parametrize("kernel", WRAPPED, ids=lambda k: type(k).__name__)
def test_wrapped(kernel):
    ours = from_sklearn(kernel)
    assert isinstance(ours, SklearnKernel)
    agree(ours, kernel)
    np.testing.assert_array_equal(ours.theta, kernel.theta)
    np.testing.assert_array_equal(ours.bounds, kernel.bounds)


@pytest.mark.parametrize("part", [sine, gp.RationalQuadratic(0.7, 1.5, "fixed")], ids=str)
def test_parts_are_wrapped(part):
    ours = from_sklearn(2.0 * part + gp.WhiteKernel(0.1))
    assert ours == 2.0 * SklearnKernel(part) + White(0.1)


# ---------------------------------------------------------------------- the adapter

wrapped = SklearnKernel(sine * gp.RBF([1.0, 2.0, 3.0]) + gp.ConstantKernel(0.5, "fixed"))


@pytest.mark.parametrize(
    "kernel", [wrapped, 3 * wrapped + RBF(), SklearnKernel(sine + gp.WhiteKernel(0.2))], ids=str
)
def test_pullback(kernel):
    check_pullback(kernel, X)
    with pytest.raises(
        NotDifferentiableError, match=r"derivatives only of k\(X\), not of k\(X, Z\)"
    ):
        kernel.pullback(X, Z, np.ones((9, 5)))


def test_noise_is_on_the_diagonal_of_every_tile():
    kernel = SklearnKernel(sine + gp.WhiteKernel(0.2))
    P, want = kernel.prepare(X), kernel.kernel(X)
    rows, columns = slice(2, 6), slice(4, 9)
    got = kernel.tile(P[rows], P[columns], np.empty((4, 5)))
    np.testing.assert_allclose(got, want[rows, columns])


def test_adapter_laws():
    check_kernel(SklearnKernel(sine), X, Z, psd=False, differentiable=False)
    check_kernel(3 * SklearnKernel(sine) + RBF(), X, Z, psd=False, differentiable=False)


def test_parameters():
    names = ["kernel__k1__k1__length_scale", "kernel__k1__k1__periodicity"]
    names += [f"kernel__k1__k2__length_scale[{i}]" for i in range(3)]
    assert wrapped.theta_names == names
    theta = wrapped.theta + 0.1
    moved = wrapped.with_theta(theta)
    np.testing.assert_allclose(moved.theta, theta)
    assert moved != wrapped
    assert wrapped.get_params()["kernel__k1__k1__periodicity"] == 3.0
    changed = wrapped.set_params(kernel__k1__k1__periodicity=2.0)
    assert changed.kernel.k1.k1.periodicity == 2.0
    assert wrapped.kernel.k1.k1.periodicity == 3.0
    nested = (3 * wrapped).set_params(kernel__kernel__k1__k1__periodicity=2.0)
    assert nested == 3 * changed
    assert wrapped.set_params(**wrapped.get_params()) == wrapped


def test_values():
    again = eval(repr(wrapped), vars(gp) | {"SklearnKernel": SklearnKernel})
    assert again == wrapped
    assert hash(again) == hash(wrapped)
    assert clone(wrapped) == wrapped
    assert pickle.loads(pickle.dumps(wrapped)) == wrapped
    assert wrapped != SklearnKernel(sine)
    assert wrapped != sine
    third = SklearnKernel(gp.ExpSineSquared(1 / 3))
    assert third != SklearnKernel(gp.ExpSineSquared(0.333))  # although their reprs are equal


def test_later_changes_of_the_original_do_not_matter():
    theirs = gp.ExpSineSquared(1.2, 3.0)
    ours = from_sklearn(theirs)
    theirs.set_params(periodicity=1.0)
    assert ours.kernel.periodicity == 3.0


class Letters(gp.GenericKernelMixin, gp.Kernel):
    """A user-defined kernel on strings."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return self.weight * np.array([[float(len(set(x) & set(y))) for y in Y] for x in X])

    def diag(self, X):
        return self.weight * np.array([float(len(set(x))) for x in X])

    def is_stationary(self):
        return False


def test_kernels_on_structured_points():
    kernel = from_sklearn(Letters(2.0))
    assert not kernel.domain.on_vectors
    assert from_sklearn(sine).domain.on_vectors
    np.testing.assert_array_equal(kernel(["cat", "car"]), [[6.0, 4.0], [4.0, 6.0]])
    assert kernel([], ["cat"]).shape == (0, 1)
    assert kernel == SklearnKernel(Letters(2.0)) != SklearnKernel(Letters(3.0))


def test_a_subclass_is_not_its_parent():
    class Twice(gp.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2.0 * super().__call__(X, Y)

    assert isinstance(from_sklearn(Twice()), SklearnKernel)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: from_sklearn("rbf"), "needs a scikit-learn GP kernel, got 'rbf'"),
        (lambda: SklearnKernel(RBF()), "needs a scikit-learn GP kernel"),
        (lambda: from_sklearn(gp.CompoundKernel([sine, sine])), "a list of kernels"),
        (lambda: from_sklearn(gp.ConstantKernel(-1.0)), "value must be non-negative"),
    ],
)
def test_refused(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


# ---------------------------------------------------------------------- bounds of a search


def test_bounded():
    kernel = Bounded(2.0 * RBF(), ((0.1, 10.0), (0.5, 5.0)))
    np.testing.assert_allclose(np.exp((kernel + White()).bounds[:2]), kernel.limits)
    check_kernel(kernel, X, Z)
    check_kernel(Bounded(RBF((1.0, 2.0, 3.0)), (0.1, 10.0)) * Linear(), X, Z)


@pytest.mark.parametrize(
    "limits", [(1.0,), (1.0, 2.0, 3.0), (2.0, 1.0), (0.0, 1.0), (-1.0, 1.0), [[[1.0, 2.0]]]]
)
def test_bad_limits(limits):
    with pytest.raises(ValueError, match="Bounded: limits must"):
        Bounded(RBF(), limits)


def test_limits_count_parameters():
    with pytest.raises(
        ValueError, match=r"2 pairs of limits for the 1 parameters \['length_scale'\]"
    ):
        Bounded(RBF(), ((0.1, 1.0), (0.1, 1.0))).bounds  # noqa: B018


def test_real_powers_of_wrapped_kernels():
    root, other = (SklearnKernel(gp.Exponentiation(k, 0.5)) for k in (gp.RBF(), gp.DotProduct()))
    assert root.properties.order == 0 and root.validity().status == "proved"
    assert other.properties.order is None and len(other.properties.against) == 6


def test_a_kernel_that_returns_another_shape():
    class Flat(gp.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return super().__call__(X, Y).ravel()

    with pytest.raises(ValueError, match=r"Flat returned shape \(45,\) for 9 and 5 points"):
        SklearnKernel(Flat())(X, Z)
