"""Values known independently of this library: exact numbers, limits, and other libraries."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    RBF,
    Bilinear,
    Cauchy,
    Constant,
    Cosine,
    Distance,
    Exp,
    InverseMultiquadric,
    Kernel,
    Linear,
    Matern,
    Multiquadric,
    Normalized,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    ThinPlate,
    White,
)

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(20, 3)), rng.normal(size=(15, 3))
# many columns use another formula for distances
XW, ZW = rng.normal(size=(20, 12)), rng.normal(size=(15, 12))


def name(value):
    """Return a test id from a kernel; the address of a function would differ between processes."""
    return str(value) if isinstance(value, Kernel) else ""


def lowest(K):
    return np.linalg.eigvalsh(K)[0]


# ---------------------------------------------------------------------- closed forms


def test_tanh_is_not_a_mercer_kernel():
    a, b, c = math.tanh(1), math.tanh(2), math.tanh(4)
    exact = (a + c) / 2 - math.hypot((a - c) / 2, b)
    assert round(exact, 4) == -0.0909
    K = Sigmoid(gamma=1.0, coef0=0.0)([[1.0], [2.0]])
    assert lowest(K) == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize(("b", "value"), [(0.5, -0.243), (1.0, -0.0994), (2.0, -0.0142)])
def test_nor_is_tanh_with_an_offset(b, value):
    K = Sigmoid(gamma=1.0, coef0=b)([[0.3], [6.0]])
    assert lowest(K) == pytest.approx(value, rel=5e-3)


@pytest.mark.parametrize(
    ("kernel", "at_r"),
    [
        (RBF(2.0), lambda r: np.exp(-(r**2) / 8)),
        (Matern(2.0, nu=0.5), lambda r: np.exp(-r / 2)),
        (Matern(2.0, nu=1.5), lambda r: (1 + 3**0.5 * r / 2) * np.exp(-(3**0.5) * r / 2)),
        (
            Matern(2.0, nu=2.5),
            lambda r: (1 + 5**0.5 * r / 2 + 5 * r**2 / 12) * np.exp(-(5**0.5) * r / 2),
        ),
        (Matern(2.0, nu=np.inf), lambda r: np.exp(-(r**2) / 8)),
        (RationalQuadratic(2.0, alpha=0.7), lambda r: (1 + r**2 / (2 * 0.7 * 4)) ** -0.7),
        (Cauchy(2.0), lambda r: 1 / (1 + r**2 / 4)),
        (InverseMultiquadric(2.0), lambda r: 1 / np.sqrt(1 + r**2 / 4)),
        (Multiquadric(2.0), lambda r: -np.sqrt(1 + r**2 / 4)),
        (ThinPlate(2.0), lambda r: (r / 2) ** 2 * np.log(r / 2)),
        (ThinPlate(2.0, degree=4), lambda r: -((r / 2) ** 4) * np.log(r / 2)),
        (Distance(2.0), lambda r: -r / 2),
        (Distance(2.0, exponent=1.5), lambda r: -((r / 2) ** 1.5)),
    ],
    ids=name,
)
@pytest.mark.parametrize(("A", "B"), [(X, Z), (XW, ZW)], ids=["narrow", "wide"])
def test_radial_kernels_are_functions_of_the_distance(kernel, at_r, A, B):
    np.testing.assert_allclose(kernel(A, B), at_r(cdist(A, B)), rtol=1e-12, atol=1e-13)


def test_length_scales_per_column():
    scale = np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(RBF(scale)(X, Z), RBF(1.0)(X / scale, Z / scale), rtol=1e-13)
    np.testing.assert_allclose(
        Matern(scale, nu=0.5)(X, Z), np.exp(-cdist(X / scale, Z / scale)), rtol=1e-13
    )


def test_a_product_of_rbfs_is_an_rbf():
    merged = RBF(1.0) * RBF(2.0)
    np.testing.assert_allclose(merged(X), RBF(1.0)(X) * RBF(2.0)(X), rtol=1e-13)
    np.testing.assert_allclose(merged(X), RBF((1 + 1 / 4) ** -0.5)(X), rtol=1e-13)


def test_normalized_linear_is_cosine():
    np.testing.assert_allclose(Normalized(Linear())(X, Z), Cosine()(X, Z), rtol=1e-13)


def test_normalized_exponential_of_linear_is_gaussian():
    np.testing.assert_allclose(Normalized(Exp(Linear()))(X, Z), RBF()(X, Z), rtol=1e-12)


def test_a_point_at_zero_has_no_direction():
    A = np.array([[0.0, 0.0], [1.0, 1.0]])
    for kernel in (Cosine(), Normalized(Linear())):
        np.testing.assert_allclose(kernel(A), [[0.0, 0.0], [0.0, 1.0]], atol=1e-15)
        np.testing.assert_allclose(kernel.diag(A), [0.0, 1.0], atol=1e-15)
        assert np.isfinite(kernel.input_gradient(A, None, np.ones((2, 2)))).all()


def test_matern_tends_to_the_gaussian():
    gaps = [np.abs(Matern(nu=nu)(X) - RBF()(X)).max() for nu in (1.5, 4.0, 20.0, 100.0)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 5e-3


def test_rational_quadratic_tends_to_the_gaussian():
    np.testing.assert_allclose(RationalQuadratic(alpha=1e8)(X), RBF()(X), atol=1e-7)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_bessel_and_closed_form_agree(nu):
    near = nu * (1 + 1e-12)  # not the special case, but almost equal to it
    A = np.vstack([X, X[:1] + 1e-9, X[:1] + 1e-3])
    np.testing.assert_allclose(Matern(nu=near)(A), Matern(nu=nu)(A), rtol=1e-9)
    W = rng.normal(size=(len(A), len(Z)))
    np.testing.assert_allclose(
        Matern(nu=near).input_gradient(A, Z, W), Matern(nu=nu).input_gradient(A, Z, W), rtol=1e-8
    )


def test_from_gamma():
    np.testing.assert_allclose(
        RBF.from_gamma(0.3)(X, Z), np.exp(-0.3 * cdist(X, Z, "sqeuclidean")), rtol=1e-13
    )
    assert RBF.from_gamma("median") == RBF("median")
    assert RBF.from_gamma(0.5) == RBF(1.0)


# ---------------------------------------------------------------------- distant, close, repeated


@pytest.mark.parametrize("columns", [1, 20])
def test_far_points_underflow_to_zero(columns):
    A = np.zeros((2, columns))
    A[1] = 1e6
    assert RBF()(A)[0, 1] == 0.0
    assert Matern(nu=0.5)(A)[0, 1] == 0.0
    assert Matern(nu=1.5)(A)[0, 1] == 0.0
    assert np.isfinite(Matern(nu=0.8)(A)).all()
    assert RBF()(A.astype(np.float32))[0, 1] == 0.0


@pytest.mark.parametrize("columns", [1, 8, 9, 40])
@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Matern(nu=0.5), Matern(nu=0.8), Distance(), ThinPlate(), Multiquadric()]
)
def test_the_diagonal_is_exactly_that_at_distance_zero(kernel, columns):
    A = rng.normal(size=(30, columns)) + 100.0
    at_zero = kernel([[0.0]])[0, 0]
    assert (kernel(A).diagonal() == at_zero).all()
    assert (kernel.diag(A) == at_zero).all()


@pytest.mark.parametrize("columns", [1, 8])
@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(nu=0.5), Matern(nu=0.8), Distance()])
def test_equal_points_count_as_equal_in_few_columns(kernel, columns):
    A = rng.normal(size=(10, columns))
    twice = np.vstack([A, A])
    K = kernel(twice)
    np.testing.assert_array_equal(K[:10, 10:].diagonal(), K[:10, :10].diagonal())


def test_white_goes_by_observation_not_by_value():
    A = np.array([[1.0], [1.0], [2.0]])
    np.testing.assert_array_equal(White(0.5)(A), 0.5 * np.eye(3))
    np.testing.assert_array_equal(White(0.5)(A, A), 0.0 * np.eye(3))
    np.testing.assert_array_equal(White(0.5)(A, A.copy()), 0.0 * np.eye(3))


def test_blocks_larger_than_one_chunk_of_rows():
    A = rng.normal(size=(2500, 2))
    np.testing.assert_allclose((RBF() + White())(A)[1500:1510], RBF()(A[1500:1510], A)
                               + np.eye(2500)[1500:1510], rtol=1e-13)  # fmt: skip
    np.testing.assert_allclose(Normalized(Linear() + White()).diag(A), 1.0)


# ---------------------------------------------------------------------- definiteness

PLANE = np.random.default_rng(3).uniform(size=(40, 2))


def projected(kernel, order, points=PLANE):
    """Return the spectrum of K orthogonal to polynomials of degree < order, and the size of K."""
    monomials = [
        points[:, 0] ** i * points[:, 1] ** j
        for i, j in itertools.product(range(order), repeat=2)
        if i + j < order
    ]
    U, _, _ = np.linalg.svd(np.column_stack(monomials), full_matrices=True)
    N = U[:, len(monomials) :]
    K = kernel(points)
    return np.linalg.eigvalsh(N.T @ K @ N), np.abs(K).max()


@pytest.mark.parametrize(
    ("kernel", "order"),
    [
        (ThinPlate(), 2),
        (ThinPlate(0.3), 2),
        (ThinPlate(degree=4), 3),
        (ThinPlate(0.3, degree=4), 3),
        (Distance(), 1),
        (Distance(exponent=0.3), 1),
        (Distance(exponent=1.9), 1),
        (Distance(exponent=2), 1),
        (Multiquadric(), 1),
        (Multiquadric(0.1), 1),
    ],
    ids=repr,
)
def test_conditionally_positive_definite(kernel, order):
    spectrum, size = projected(kernel, order)
    assert spectrum[0] >= -1e-12 * size
    assert spectrum[-1] > 0
    if not (isinstance(kernel, Distance) and kernel.exponent == 2):  # which has rank 2
        assert spectrum[-1] > 1e-3 * size
    # Not CPD of a lower order: on the whole space, one eigenvalue is negative.
    assert lowest(kernel(PLANE)) < -1e-3 * size


@pytest.mark.parametrize("order", [1, 2])
def test_thin_plates_need_their_order(order):
    """r^2 log r changes its sign at r = 1, so that distant points violate a lower order."""
    for degree, needs in ((2, 2), (4, 3)):
        if order < needs:
            spectrum, size = projected(ThinPlate(degree=degree), order, 5 * PLANE)
            assert spectrum[0] < -1e-3 * size


def test_distance_2_centred_is_linear():
    H = np.eye(40) - 1 / 40
    np.testing.assert_allclose(
        H @ Distance(exponent=2)(PLANE) @ H, 2 * H @ Linear()(PLANE) @ H, atol=1e-13
    )


# ---------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(("A", "B"), [(X, Z), (XW, ZW)], ids=["narrow", "wide"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Linear(), pairwise.linear_kernel),
        (
            Polynomial(degree=3, coef0=1.5, gamma=0.2),
            lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, coef0=1.5, gamma=0.2),
        ),
        (
            Sigmoid(gamma=0.2, coef0=-0.4),
            lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.2, coef0=-0.4),
        ),
        (Cosine(), pairwise.cosine_similarity),
        (RBF.from_gamma(0.2), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.2)),
        (RBF(1.7), gp.RBF(1.7)),
        (Matern(1.7, nu=0.5), gp.Matern(1.7, nu=0.5)),
        (Matern(1.7, nu=1.5), gp.Matern(1.7, nu=1.5)),
        (Matern(1.7, nu=2.5), gp.Matern(1.7, nu=2.5)),
        (Matern(1.7, nu=0.8), gp.Matern(1.7, nu=0.8)),
        (Matern(1.7, nu=4.2), gp.Matern(1.7, nu=4.2)),
        (Matern(1.7, nu=np.inf), gp.Matern(1.7, nu=np.inf)),
        (RationalQuadratic(1.7, alpha=0.4), gp.RationalQuadratic(1.7, alpha=0.4)),
        (Constant(0.7), gp.ConstantKernel(0.7)),
        (Linear() + 4.0, gp.DotProduct(sigma_0=2.0)),
        (2 * RBF() + Linear() * Matern(), gp.ConstantKernel(2) * gp.RBF()
            + gp.DotProduct(sigma_0=0) * gp.Matern()),
        ((RBF() + 1) ** 2, (gp.RBF() + 1) ** 2),
    ],
    ids=name,
)  # fmt: skip
def test_values_of_scikit_learn(ours, theirs, A, B):
    np.testing.assert_allclose(ours(A, B), theirs(A, B), rtol=1e-12, atol=1e-13)


def test_white_of_scikit_learn():
    ours, theirs = RBF() + White(0.3), gp.RBF() + gp.WhiteKernel(0.3)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12)
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (2 * RBF(1.3), gp.ConstantKernel(2) * gp.RBF(1.3)),
        (RBF((0.5, 1.0, 2.0)), gp.RBF((0.5, 1.0, 2.0))),
        (Matern(nu=1.5), gp.Matern(nu=1.5)),
        (RationalQuadratic(1.3, 0.7), gp.RationalQuadratic(1.3, 0.7)),
    ],
    ids=["scale", "ARD", "Matern", "RationalQuadratic"],
)
def test_pullback_is_their_gradient_contracted(ours, theirs):
    W = rng.normal(size=(20, 20))
    _, gradient = theirs(X, eval_gradient=True)
    names = [h.name.split("__")[-1] for h in theirs.hyperparameters]
    want = np.einsum("ij,ijp->p", W, gradient)
    if names in (["alpha", "length_scale"], ["constant_value", "length_scale"]):
        want = want[::-1]  # scikit-learn sorts by name, mercer keeps the order of the fields
    np.testing.assert_allclose(ours.pullback(X, None, W), want, rtol=1e-6, atol=1e-8)


# ---------------------------------------------------------------------- float32


@pytest.mark.parametrize("columns", [3, 12, 200])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("kernel", [RBF(2.0), Cauchy(2.0), Matern(2.0), RationalQuadratic(2.0)])
def test_float32_is_accurate_far_from_the_origin(kernel, offset, columns):
    A = (rng.normal(size=(50, columns)) + offset).astype(np.float32)
    scale = np.sqrt(columns)
    kernel = kernel.set_params(length_scale=scale)
    K = kernel(A)
    np.testing.assert_allclose(K, kernel(A.astype(np.float64)), atol=2e-6)
    assert (K.diagonal() == 1).all()


def test_float64_is_accurate_far_from_the_origin():
    for A in (X, XW):
        np.testing.assert_allclose(RBF()(A + 1e6), RBF()(A), atol=1e-8)


def test_float32_with_wide_points_falls_back_to_double():
    A = (1e3 * rng.normal(size=(40, 30))).astype(np.float32)
    A[1] = A[0] + np.float32(0.25)
    K = RBF(1.0)(A)
    assert K.dtype == np.float64
    assert K[0, 1] == pytest.approx(RBF(1.0)(A.astype(np.float64))[0, 1], rel=1e-4)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), RBF(), Cosine(), Sigmoid(), RBF() + 1])
def test_float32_stays_float32(kernel):
    A = X.astype(np.float32)
    assert kernel(A).dtype == np.float32
    assert kernel(A, A[:4]).dtype == np.float32
    assert kernel(A, Z).dtype == np.float64
    assert kernel(X, A).dtype == np.float64
    np.testing.assert_allclose(kernel(A, Z), kernel(A.astype(float), Z), atol=1e-6)


# ---------------------------------------------------------------------- any shape, any value


def dot(x, z):
    return sum(a * b for a, b in zip(x, z, strict=True))


FORMULAS = [
    (RBF(0.7), lambda x, z: math.exp(-(math.dist(x, z) ** 2) / (2 * 0.49))),
    (Linear(), dot),
    (Polynomial(degree=2, coef0=0.5, gamma=0.3), lambda x, z: (0.3 * dot(x, z) + 0.5) ** 2),
    (Matern(0.7, nu=0.5), lambda x, z: math.exp(-math.dist(x, z) / 0.7)),
]  # fmt: skip


@st.composite
def operands(draw):
    n, m, d = draw(st.integers(0, 20)), draw(st.integers(0, 20)), draw(st.integers(1, 20))
    seed = draw(st.integers(0, 2**32 - 1))
    size = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    generator = np.random.default_rng(seed)
    return size * generator.normal(size=(n, d)), size * generator.normal(size=(m, d))


@pytest.mark.parametrize(
    ("kernel", "formula"), FORMULAS, ids=["RBF", "Linear", "Polynomial", "Matern"]
)
@settings(max_examples=60, deadline=None)
@given(points=operands())
def test_values_for_every_shape(kernel, formula, points):
    A, B = points
    K = kernel(A, B)
    want = np.array([[formula(x, z) for z in B] for x in A]).reshape(len(A), len(B))
    assert K.shape == want.shape
    size = 1.0 if isinstance(kernel, (RBF, Matern)) else np.abs(want).max(initial=1.0)
    np.testing.assert_allclose(K, want, atol=1e-10 * size)
    np.testing.assert_allclose(kernel.diag(A), kernel(A).diagonal(), atol=1e-12 * size * 100)


numbers = st.floats(-50, 50, allow_subnormal=False)


@pytest.mark.parametrize(
    ("kernel", "formula"), FORMULAS, ids=["RBF", "Linear", "Polynomial", "Matern"]
)
@settings(max_examples=60, deadline=None)
@given(x=st.lists(numbers, min_size=2, max_size=2), z=st.lists(numbers, min_size=2, max_size=2))
def test_values_for_chosen_numbers(kernel, formula, x, z):
    assert kernel([x], [z])[0, 0] == pytest.approx(formula(x, z), rel=1e-11, abs=1e-12)
    assert kernel([z], [x])[0, 0] == kernel([x], [z])[0, 0]


# ---------------------------------------------------------------------- extreme numbers


@pytest.mark.parametrize(
    ("nu", "r", "value"),
    [
        (100.0, 100.0, 0.0),
        (50.0, 1e6, 0.0),
        (100.0, 1e-3, 1.0),
        (30.5, 0.0, 1.0),
        (2.0, 1e-200, 1.0),
    ],
)
def test_matern_at_its_ends(nu, r, value):
    kernel = Matern(nu=nu)
    assert kernel([[0.0]], [[r]])[0, 0] == pytest.approx(value, abs=1e-5)
    assert np.isfinite(kernel.pullback([[0.0]], [[r]], np.ones((1, 1))))


def test_matern_of_large_order_is_nearly_the_rbf():
    A = np.linspace(0.0, 4.0, 30)[:, None]
    np.testing.assert_allclose(Matern(nu=100.0)(A), RBF()(A), atol=5e-3)
    with pytest.raises(ValueError, match="nu must be at most 100"):
        Matern(nu=101.0)


@pytest.mark.parametrize("columns", [3, 9])
@pytest.mark.parametrize("outlier", [1e6, 1e9])
def test_an_outlier_costs_the_others_no_digits(columns, outlier):
    A = np.random.default_rng(0).normal(size=(60, columns))
    reference = RBF(3.0)(A[1:])
    distances = Distance()(A[1:])
    A[0] = outlier
    np.testing.assert_allclose(RBF(3.0)(A)[1:, 1:], reference, atol=1e-13)
    np.testing.assert_allclose(Distance()(A)[1:, 1:], distances, atol=1e-6)
    single = RBF(3.0)(A.astype(np.float32))[1:, 1:]
    np.testing.assert_allclose(single, reference, atol=1e-5)


def test_equal_points_of_two_collections_are_equal_at_a_kink():
    A = 1e3 + np.random.default_rng(0).normal(size=(20, 12))
    for kernel in (Matern(nu=0.5), Distance(exponent=0.5), Matern(nu=0.8)):
        assert np.array_equal(kernel(A, A.copy()).diagonal(), kernel.diag(A))


def test_cosine_of_large_and_tiny_vectors():
    for size in (1e-300, 1e-170, 1e170, 1e300):
        assert Cosine()([[3 * size, 4 * size]], [[size, 0.0]])[0, 0] == pytest.approx(0.6)
        assert Cosine().diag([[size, size]]) == 1.0


def test_powers_where_the_kernel_underflows():
    kernel = RBF(0.01) ** 0.5
    assert np.array_equal(kernel.pullback([[0.0], [1.0]], None, np.ones((2, 2))), [0.0])
    assert np.array_equal(kernel.input_gradient([[0.0]], [[1.0]], np.ones((1, 1))), [[0.0]])


def test_normalising_what_overflows_is_refused():
    with pytest.raises(ValueError, match=r"k\(x, x\) overflows for .* and some x"):
        Normalized(Exp(Linear()))([[30.0], [1.0]])


def test_kernels_are_values():
    scale, A, K = np.array([1.0, 2.0]), np.eye(2), np.eye(3)
    k, b, p = RBF(scale), Bilinear(A), Precomputed(K)
    scale[0], A[0, 0], K[0, 0] = -5.0, -5.0, -5.0
    assert k == RBF((1.0, 2.0)) and b == Bilinear(np.eye(2)) and p == Precomputed(np.eye(3))
    with pytest.raises(ValueError, match="read-only"):
        b.A[0, 0] = 2.0
    with pytest.raises(ValueError, match="must be symmetric, but differs from its transpose by 2"):
        Precomputed([[1.0, 2.0], [0.0, 1.0]])
    assert str(Precomputed(np.eye(40))) == "Precomputed(matrix=[40 x 40 entries])"


def test_products_of_rbfs_check_their_columns():
    with pytest.raises(ValueError, match="has 3 length scales, but the points have 2 columns"):
        (RBF((1.0, 2.0)) * RBF((1.0, 2.0, 3.0)))([[1.0, 2.0]])
    with pytest.raises(ValueError, match="has 1 length scales, but the points have 2 columns"):
        (RBF((1.0, 2.0)) * RBF((3.0,)))([[1.0, 2.0]])
    with pytest.raises(ValueError, match="has 3 length scales, but the points have 2 columns"):
        RBF((1.0, 2.0, 3.0)).diag([[1.0, 2.0]])


def test_cached_values_are_not_part_of_the_kernel():
    fresh, used = (2.0 * RBF((1.0, 3.0)) + White(0.1) for _ in range(2))
    theta = used.theta
    theta += 1.0  # a copy, so that the kernel does not change
    np.testing.assert_array_equal(used.theta, fresh.theta)
    np.testing.assert_array_equal(used.with_theta(theta).theta, theta)
    unread = 2.0 * RBF((1.0, 3.0)) + White(0.1)
    assert used == unread and hash(used) == hash(unread) and repr(used) == repr(unread)
    assert pickle.dumps(used) == pickle.dumps(unread)
