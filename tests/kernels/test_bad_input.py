"""Invalid input raises an error with an explanation; unusual but valid input is accepted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from mercer.kernels import (
    RBF,
    Bilinear,
    Cauchy,
    Constant,
    Cosine,
    Distance,
    Exp,
    Linear,
    Matern,
    Multiquadric,
    Normalized,
    Polynomial,
    Precomputed,
    RankOne,
    RationalQuadratic,
    Sigmoid,
    ThinPlate,
    White,
)

X = np.random.default_rng(0).normal(size=(6, 3))

# One kernel for each way of reading vectors: radial, inner product, unit rows, matrix, composite.
VECTORS = [
    RBF(),
    Matern(),
    Linear(),
    Polynomial(),
    Cosine(),
    Bilinear(np.eye(3).tolist()),
    RBF() + Linear(),
    Linear() * Matern(),
    2 * RBF(),
    Normalized(Linear()),
    Exp(Linear()),
    Linear() ** 2,
]
each_vector_kernel = pytest.mark.parametrize("kernel", VECTORS, ids=str)


def with_entry(value):
    A = X.copy()
    A[2, 1] = value
    return A


# ---------------------------------------------------------------------- points


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (with_entry(np.nan), "contains NaN"),
        (with_entry(np.inf), "contains infinity"),
        (with_entry(-np.inf), "contains infinity"),
        (X[0], "Expected 2D array, got 1D array"),
        (np.float64(1.0), "Expected 2D array, got scalar"),
        (X[None], "dim 3|Expected 2D array"),
        (X[:, :0], "0 feature"),
        ([["a", "b", "c"]], "could not convert string to float|numeric"),
        (X + 1j, "Complex data not supported"),
        ([[1.0, 2.0, 3.0], [1.0]], "inhomogeneous|sequence"),
    ],
    ids=["nan", "inf", "-inf", "1-D", "0-D", "3-D", "no columns", "text", "complex", "ragged"],
)  # fmt: skip
@each_vector_kernel
def test_bad_points(kernel, points, text):
    calls = [
        lambda: kernel(points),
        lambda: kernel(X, points),
        lambda: kernel(points, X),
        lambda: kernel.diag(points),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=text):
            call()


@each_vector_kernel
def test_wrong_number_of_columns(kernel):
    W = np.ones((6, 6))
    calls = [
        lambda: kernel(X, X[:, :2]),
        lambda: kernel(X[:, :2], X),
        lambda: kernel.input_gradient(X, X[:, :2], W),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"points with \d columns to points with \d columns; pass"
        ):
            call()


def test_wrong_number_of_columns_for_a_matrix():
    k = Bilinear([[1.0, 0.0], [0.0, 1.0]])
    for call in (
        lambda: k(X),
        lambda: k.diag(X),
        lambda: k.input_gradient(X, None, np.ones((6, 6))),
    ):
        with pytest.raises(ValueError, match="Bilinear cannot compare points with 2 columns to"):
            call()


@pytest.mark.parametrize("kernel", [RBF((1.0, 2.0)), 2 * Matern((1.0, 2.0)) + 1], ids=str)
def test_wrong_number_of_length_scales(kernel):
    calls = [
        lambda: kernel(X),
        lambda: kernel(X, X),
        lambda: kernel.pullback(X, None, np.ones((6, 6))),
        lambda: kernel.input_gradient(X, None, np.ones((6, 6))),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="has 2 length scales, but the points have 3 columns"):
            call()


@each_vector_kernel
def test_one_point(kernel):
    assert kernel(X[:1]).shape == (1, 1)
    np.testing.assert_allclose(kernel(X[:1])[0, 0], kernel(X)[0, 0], rtol=1e-12)
    assert kernel.pullback(X[:1], None, np.ones((1, 1))).shape == kernel.theta.shape
    assert kernel.input_gradient(X[:1], X, np.ones((1, 6))).shape == (1, 3)


@each_vector_kernel
def test_no_points(kernel):
    assert kernel(X[:0]).shape == (0, 0)
    assert kernel.diag(X[:0]).shape == (0,)
    np.testing.assert_array_equal(kernel.pullback(X[:0], X, np.ones((0, 6))), 0 * kernel.theta)
    np.testing.assert_array_equal(kernel.pullback(X, X[:0], np.ones((6, 0))), 0 * kernel.theta)
    assert kernel.input_gradient(X[:0], X, np.ones((0, 6))).shape == (0, 3)
    np.testing.assert_array_equal(
        kernel.input_gradient(X, X[:0], np.ones((6, 0))), np.zeros((6, 3))
    )


@each_vector_kernel
def test_constant_columns_and_equal_rows(kernel):
    A = np.ones((5, 3))
    K = kernel(A)
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)
    assert np.isfinite(kernel.input_gradient(A, None, np.ones((5, 5)))).all()
    assert np.isfinite(kernel.pullback(A, None, np.ones((5, 5)))).all()
    A = X.copy()
    A[:, 1] = 7.0
    assert np.isfinite(kernel(A)).all()


@pytest.mark.parametrize(
    "dtype", [np.int64, np.int8, np.uint8, bool, np.float16, np.float32, object]
)
@each_vector_kernel
def test_other_types_of_numbers(kernel, dtype):
    A = (np.arange(18) % 5).reshape(6, 3).astype(dtype)
    want = kernel(A.astype(np.float64))
    np.testing.assert_allclose(kernel(A), want, rtol=1e-5)
    np.testing.assert_allclose(kernel(A, A[:2]), want[:, :2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kernel.diag(A), want.diagonal(), rtol=1e-5)
    if dtype not in (np.float32,):
        assert kernel(A).dtype == np.float64


@each_vector_kernel
def test_lists_and_data_frames(kernel):
    pandas = pytest.importorskip("pandas")
    want = kernel(X)
    np.testing.assert_array_equal(kernel(X.tolist()), want)
    np.testing.assert_allclose(kernel(pandas.DataFrame(X)), want, rtol=1e-13)
    np.testing.assert_allclose(kernel(pandas.DataFrame(X), X[:2]), kernel(X, X[:2]), rtol=1e-13)
    np.testing.assert_array_equal(kernel.diag(X.tolist()), kernel.diag(X))
    W = np.random.default_rng(1).normal(size=(6, 6))
    np.testing.assert_array_equal(
        kernel.input_gradient(X.tolist(), None, W), kernel.input_gradient(X, None, W)
    )
    np.testing.assert_array_equal(kernel.pullback(X.tolist(), None, W), kernel.pullback(X, None, W))


# ---------------------------------------------------------------------- weights and theta


@pytest.mark.parametrize(
    "W", [np.ones((6, 5)), np.ones((5, 6)), np.ones(6), 1.0, np.ones((6, 6, 1))]
)
def test_wrong_shape_of_weights(W):
    for kernel in (RBF(), RBF() + Linear(), Normalized(Polynomial())):
        with pytest.raises(ValueError, match=r"W has shape .* but k\(X, Z\) has shape \(6, 6\)"):
            kernel.pullback(X, None, W)
        with pytest.raises(ValueError, match=r"W has shape .* but k\(X, Z\) has shape \(6, 6\)"):
            kernel.input_gradient(X, X, W)


@pytest.mark.parametrize("theta", [[], [0.0], [0.0, 0.0, 0.0], 0.0, [[0.0, 0.0]]])
def test_wrong_length_of_theta(theta):
    text = r"theta has shape .* has 2 free parameters: \['kernel__length_scale', 'factor'\]"
    with pytest.raises(ValueError, match=text):
        (2 * RBF()).with_theta(theta)


def test_theta_that_is_not_finite():
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="length_scale must be positive and finite"):
            RBF().with_theta([bad])


# ---------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (RBF("median"), "RBF has length_scale='median'"),
        (Polynomial(gamma="scale"), "Polynomial has gamma='scale'"),
        (RBF("auto") + Sigmoid(gamma="scale"), "length_scale='auto', gamma='scale'"),
        (Normalized(RBF("auto")), "length_scale='auto'"),
        (RBF("auto") * RBF("median"), "length_scale='auto', length_scale='median'"),
    ],
    ids=str,
)
def test_a_rule_needs_data(kernel, named):
    calls = [
        lambda: kernel(X),
        lambda: kernel.diag(X),
        lambda: kernel.prepare(X),
        lambda: kernel.theta,
        lambda: kernel.bounds,
        lambda: kernel.theta_names,
        lambda: kernel.with_theta([0.0]),
        lambda: kernel.pullback(X, None, np.ones((6, 6))),
        lambda: kernel.input_gradient(X, None, np.ones((6, 6))),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=f"{named}.*which must be computed from data; call kernel.resolve"
        ):
            call()
    resolved = kernel.resolve(X)
    assert resolved(X).shape == (6, 6)
    assert resolved.resolve(X) is resolved


def test_rules_resolve_to_what_they_say():
    assert RBF("auto").resolve(X) == RBF.from_gamma(1 / 3)
    assert Polynomial(gamma="scale").resolve(X).gamma == pytest.approx(1 / (3 * X.var()))
    distances = [np.linalg.norm(X[i] - X[j]) for i in range(6) for j in range(i)]
    assert RBF("median").resolve(X).length_scale == pytest.approx(np.median(distances))


@pytest.mark.parametrize("rule", ["median", "scale"])
def test_rules_on_points_that_are_all_the_same(rule):
    k = RBF(rule).resolve(np.ones((4, 2)))
    assert 0 < k.length_scale < np.inf


@pytest.mark.parametrize("rule", ["medain", "", "Median", "1.0"])
def test_unknown_rules(rule):
    with pytest.raises(ValueError, match="RBF: length_scale must be positive numbers or one of"):
        RBF(rule)
    with pytest.raises(ValueError, match="Polynomial: gamma must be a positive number or one of"):
        Polynomial(gamma=rule)
    with pytest.raises(ValueError, match="Sigmoid: gamma must be a positive number or one of"):
        Sigmoid(gamma=rule)


# ---------------------------------------------------------------------- parameters

NUMBER, POSITIVE = "must be a number", "must be positive and finite"
RADIAL = [RBF, Matern, RationalQuadratic, Cauchy, Multiquadric, ThinPlate, Distance]


@pytest.mark.parametrize("family", RADIAL)
@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0, ValueError, POSITIVE),
        (-1.0, ValueError, POSITIVE),
        (np.nan, ValueError, POSITIVE),
        (np.inf, ValueError, POSITIVE),
        ((1.0, -1.0), ValueError, POSITIVE),
        ((1.0, np.nan), ValueError, POSITIVE),
        ((), ValueError, r"one number per column, got shape \(0,\)"),
        ([[1.0]], ValueError, r"one number per column, got shape \(1, 1\)"),
        (None, TypeError, NUMBER),
        (True, TypeError, NUMBER),
        (1j, TypeError, NUMBER),
    ],
)
def test_bad_length_scales(family, value, error, text):
    with pytest.raises(error, match=f"{family.__name__}: length_scale {text}|{text}"):
        family(length_scale=value)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: Matern(nu=0), ValueError, r"nu must be positive \(or inf\), got 0"),
        (lambda: Matern(nu=-1.5), ValueError, "nu must be positive"),
        (lambda: Matern(nu=np.nan), ValueError, "nu must be positive"),
        (lambda: Matern(nu="1.5"), ValueError, "nu must be positive"),
        (lambda: RationalQuadratic(alpha=0.0), ValueError, "alpha must be positive and finite"),
        (lambda: RationalQuadratic(alpha="1"), TypeError, "alpha must be a number, got '1'"),
        (lambda: ThinPlate(degree=3), ValueError, "degree must be 2 or 4, got 3"),
        (lambda: Distance(exponent=0), ValueError, r"must lie in \(0, 2\], got 0"),
        (
            lambda: Distance(exponent=2.1),
            ValueError,
            r"must lie in \(0, 2\], got 2.1; with an exponent above 2, the kernel is not",
        ),
        (lambda: Distance(exponent=np.nan), ValueError, r"must lie in \(0, 2\]"),
        (lambda: Polynomial(degree=0), ValueError, "degree must be a positive integer, got 0"),
        (lambda: Polynomial(degree=-2), ValueError, "degree must be a positive integer, got -2"),
        (lambda: Polynomial(degree=1.5), ValueError, "positive integer, got 1.5; a fractional"),
        (lambda: Polynomial(degree="2"), ValueError, "degree must be a positive integer, got '2'"),
        (lambda: Polynomial(degree=np.nan), ValueError, "degree must be a positive integer"),
        (lambda: Polynomial(degree=np.inf), ValueError, "degree must be a positive integer"),
        (lambda: Polynomial(coef0=-1.0), ValueError, "coef0 must be non-negative and finite"),
        (lambda: Polynomial(coef0="1"), TypeError, "coef0 must be a number, got '1'"),
        (lambda: Polynomial(gamma=0.0), ValueError, "gamma must be positive and finite"),
        (lambda: Sigmoid(gamma=-1.0), ValueError, "gamma must be positive and finite"),
        (lambda: Sigmoid(coef0=np.nan), ValueError, "coef0 must be a finite number"),
        (lambda: Sigmoid(coef0="1"), ValueError, "coef0 must be a finite number, got '1'"),
        (lambda: Constant(-1.0), ValueError, "value must be non-negative and finite, got -1.0"),
        (lambda: Constant(np.nan), ValueError, "value must be non-negative and finite"),
        (lambda: White(-1.0), ValueError, "noise must be non-negative and finite"),
        (lambda: White("1"), TypeError, "noise must be a number"),
        (lambda: White((0.1, 0.2)), TypeError, r"noise must be a number, got \(0.1, 0.2\)"),
        (lambda: Constant([1.0]), TypeError, r"value must be a number, got \(1.0,\)"),
        (lambda: Polynomial(gamma=[1.0]), TypeError, "gamma must be a number"),
        (lambda: RBF.from_gamma(0.0), ValueError, "RBF: gamma must be positive and finite"),
        (
            lambda: RBF.from_gamma("none"),
            ValueError,
            "length_scale must be positive numbers or one",
        ),
        (lambda: Bilinear(), ValueError, "A must be square, got shape"),
        (lambda: Bilinear([[1.0, 2.0]]), ValueError, r"A must be square, got shape \(1, 2\)"),
        (lambda: Bilinear([[1.0, np.nan], [0.0, 1.0]]), ValueError, "NaN or infinite"),
        (
            lambda: Bilinear([[1.0, 1.0], [0.0, 1.0]]),
            ValueError,
            "symmetric, but .* transpose by 1",
        ),
        (lambda: Bilinear([[1.0, 0.0], [0.0, -2.0]]), ValueError, "smallest eigenvalue is -2"),
        (
            lambda: Bilinear([[1.0, 0.0], [0.0, -5e-11]]),
            ValueError,
            "smallest eigenvalue is -5e-11",
        ),
        (lambda: RankOne(), TypeError, "RankOne needs a function of the points, got None"),
        (lambda: RankOne(3), TypeError, "RankOne needs a function of the points, got 3"),
        (lambda: RBF(scale=2), TypeError, "unexpected keyword"),
    ],
)
def test_bad_parameters(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_a_function_that_returns_the_wrong_number_of_values():
    for bad in (np.sum, lambda A: np.zeros((len(A), 2)), lambda A: np.zeros((len(A), 1, 1))):
        with pytest.raises(
            ValueError, match=r"RankOne: the function returned shape .* for 6 points"
        ):
            RankOne(bad)(X)


def test_a_kernel_without_norms_cannot_be_normalized():
    with pytest.raises(ValueError, match=r"Normalized: k\(x, x\) = -1 < 0 for some x"):
        Normalized(Multiquadric())(X)


def test_a_kernel_is_frozen():
    k = RBF()
    with pytest.raises(AttributeError, match="cannot assign to field 'length_scale'"):
        k.length_scale = 2.0


def test_a_scalar_is_not_a_collection_of_points():
    with pytest.raises(TypeError, match="expected a collection of points, got the scalar"):
        Constant()(np.float64(3))


@pytest.mark.parametrize("rule", ["median", "scale"])
def test_a_rule_without_a_finite_scale_says_so(rule):
    X = 1e200 * np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match=rf"the rule '{rule}' gives gamma = .* scale the features"):
        RBF(rule).resolve(X)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_text_columns_of_numbers_are_converted(library):
    table = library.DataFrame({"a": ["1", "2.5"], "b": [3.0, 4.0]})
    np.testing.assert_array_equal(RBF()(table), RBF()([[1.0, 3.0], [2.5, 4.0]]))


def test_a_precomputed_matrix_must_be_dense():
    with pytest.raises(TypeError, match=r"Precomputed: the matrix must be a dense array, got a sp"):
        Precomputed(sp.eye_array(3, format="csr"))


def test_values_that_are_not_numbers_are_no_length_scales():
    with pytest.raises(TypeError, match=r"RBF: length_scale must be a number, got \['a', 1\]"):
        RBF(["a", 1])
