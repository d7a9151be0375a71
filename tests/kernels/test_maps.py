"""Select, Stretch, Map and Periodic: kernels on transformed points."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer import KernelRidge, NotDifferentiableError
from mercer._core import concatenate, same_points, take
from mercer.kernels import (
    RBF,
    Callable,
    Cosine,
    Linear,
    Map,
    Matern,
    Periodic,
    Polynomial,
    Select,
    Shift,
    Sigmoid,
    Stretch,
    White,
)
from mercer.models.mean_embedding._sample_validation import canonical_order
from mercer.testing import check_kernel, check_pullback

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))


class Rotation:
    """A map with a derivative."""

    def __init__(self):
        self.Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]

    def __call__(self, X):
        return np.sin(X @ self.Q)

    def pullback(self, X, G):
        return (G * np.cos(X @ self.Q)) @ self.Q.T


rotate = Rotation()

KERNELS = [
    Select(RBF(), [0, 2]),
    Select(Matern(), -1),
    Select(Polynomial(degree=2), (1, 1, 3)),
    Select(RBF((1.0, 2.0)), np.array([3, 0])) * Select(Linear(), [1]) + White(0.2),
    Stretch(RBF(), 2.0),
    Stretch(Linear(), (1.0, 2.0, 3.0, 0.5)),
    Stretch(Polynomial(degree=2) * Matern(nu=2.5), np.array([1.0, 2.0, 3.0, 0.5])),
    Stretch(2 * Cosine() + White(0.3), 0.7),
    Stretch(Select(RBF((1.0, 2.0)), (0, 3)), 1.3),
    Periodic(1.7, 1.3),
    Select(Periodic(3.0), [2]) * Periodic(2.6) + White(0.2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("points", [np.asarray, sp.csr_array])
def test_laws(kernel, points):
    check_kernel(kernel, points(X), points(Z))


@pytest.mark.parametrize("inner", [RBF(0.7), Linear() + White(0.1)], ids=str)
def test_laws_of_a_differentiable_map(inner):
    kernel = Map(inner, rotate)
    np.testing.assert_allclose(kernel(X, Z), inner(rotate(X), rotate(Z)))
    # A Rotation has no repr that can be parsed, so the laws are checked one by one.
    check_pullback(kernel, X, Z)
    W, D, h = rng.normal(size=(9, 5)), rng.normal(size=X.shape), 1e-6
    want = np.sum(W * (kernel(X + h * D, Z) - kernel(X - h * D, Z))) / (2 * h)
    np.testing.assert_allclose(np.sum(D * kernel.input_gradient(X, Z, W)), want, rtol=1e-7)
    W = rng.normal(size=(9, 9))
    got = kernel.input_gradient(X, None, W)
    np.testing.assert_allclose(got, kernel.input_gradient(X, X.copy(), W), atol=1e-12)


# ---------------------------------------------------------------------- Select


@pytest.mark.parametrize(
    ("columns", "same"),
    [(slice(1, 3), [1, 2]), (slice(None, None, 2), [0, 2]), (-1, [3]), (np.int64(2), [2])],
)
def test_columns(columns, same):
    kernel = Select(RBF(), columns)
    np.testing.assert_array_equal(kernel(X, Z), RBF()(X[:, same], Z[:, same]))
    assert kernel == Select(RBF(), columns)
    assert hash(kernel) == hash(Select(RBF(), columns))
    assert eval(repr(kernel)) == kernel


@pytest.mark.parametrize("points", [np.asarray, sp.csr_array, np.ndarray.tolist])
def test_no_such_column(points):
    with pytest.raises(ValueError, match=r"no column 4; the points have 4 columns \(0 to 3\)"):
        Select(RBF(), [0, 4])(points(X))


@pytest.mark.parametrize("wrong", [None, [], 1.5, [0.0], [True], ["a", 1], [[0]]])
def test_bad_columns(wrong):
    with pytest.raises(TypeError, match="columns must be"):
        Select(RBF(), wrong)


def test_names_need_a_data_frame():
    with pytest.raises(TypeError, match="pass a data frame, or select columns by index"):
        Select(RBF(), ["a"])(X)


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    return pytest.importorskip(request.param)


def test_data_frames(library):
    frame, other = (library.DataFrame(dict(zip("abcd", A.T, strict=True))) for A in (X, Z))
    want = RBF()(X[:, [3, 1]], Z[:, [3, 1]])
    np.testing.assert_array_equal(Select(RBF(), ["d", "b"])(frame, other), want)
    np.testing.assert_array_equal(Select(RBF(), [3, 1])(frame, other), want)
    np.testing.assert_array_equal(Select(RBF(), "a")(frame), RBF()(X[:, :1]))
    W = rng.normal(size=(9, 5))
    got = Select(RBF(), ["d", "b"]).input_gradient(frame, other, W)
    np.testing.assert_array_equal(got, Select(RBF(), [3, 1]).input_gradient(X, Z, W))
    with pytest.raises(ValueError, match="no column 'e' among 'a', 'b', 'c', 'd'"):
        Select(RBF(), ["a", "e"])(frame)


def common_letters(s, t):
    return len(set(s) & set(t))


def test_a_column_that_holds_no_numbers(library):
    frame = library.DataFrame({"x": [1.0, 2.0], "word": ["cat", "car"]})
    kernel = Select(Linear(), ["x"]) * Select(Callable(common_letters), "word")
    np.testing.assert_array_equal(kernel(frame), [[3.0, 4.0], [4.0, 12.0]])
    assert not kernel.factors[1].domain.on_vectors


def by_name(p, q):
    """A kernel of two rows of a table."""
    return p["x"] * q["x"] * common_letters(p["word"], q["word"])


def test_models_of_tables(library):
    """Models accept tables wherever they accept other points."""
    x, y = X[:, 0], X[:, 1].astype(np.float32)
    words = ["cat", "car", "cow", "dog", "dot", "act", "art", "rat", "tar"]
    table = library.DataFrame({"x": x, "y": y, "word": words})
    k = Select(RBF("median"), ["x", "y"]) * Select(Callable(common_letters), "word") + White(0.1)
    k = k.resolve(table)
    K = RBF("median").resolve(np.column_stack([x, y]))(np.column_stack([x, y]))
    K *= _common(words)
    np.testing.assert_allclose(k(table), K + 0.1 * np.eye(9), rtol=1e-12)

    ridge = KernelRidge(kernel=k).fit(table, x)
    np.testing.assert_allclose(ridge.predict(table), K @ ridge.dual_coef_, rtol=1e-10)
    low = KernelRidge(kernel=k, solver="nystroem", landmarks="rpcholesky", random_state=0)
    assert np.isfinite(low.fit(table, x).predict(table)).all()
    some = take(table, np.arange(9) % 2 == 0)
    np.testing.assert_allclose(k(some, table), K[::2], rtol=1e-12)
    np.testing.assert_allclose(k(concatenate(some, table), table), np.vstack([K[::2], K]))
    assert same_points(table, take(table, np.arange(9))) and not same_points(table, some)
    np.testing.assert_allclose(Callable(by_name, "pair")(table), np.outer(x, x) * _common(words))
    order = canonical_order(table)
    np.testing.assert_array_equal(order, np.argsort(x))


def _common(words):
    return np.array([[common_letters(s, t) for t in words] for s in words])


# ---------------------------------------------------------------------- Stretch


def test_stretch_is_a_length_scale():
    scale = (0.5, 1.0, 2.0, 3.0)
    np.testing.assert_allclose(Stretch(RBF(), scale)(X, Z), RBF(scale)(X, Z))
    assert Stretch(RBF(), scale)(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("wrong", ["median", -1.0, (), [[1.0]]])
def test_bad_stretch(wrong):
    with pytest.raises((TypeError, ValueError), match="Stretch: length_scale must be"):
        Stretch(RBF(), wrong)


def test_inner_rules_are_resolved_on_inner_points():
    kernel = Stretch(Select(RBF("median"), [1]), 10.0).resolve(X)
    assert kernel == Stretch(Select(RBF("median").resolve(X[:, [1]] / 10.0), [1]), 10.0)
    kernel = Map(RBF("scale"), rotate).resolve(X)
    assert kernel.kernel == RBF("scale").resolve(rotate(X))


@pytest.mark.parametrize("wrap", [Select, Stretch, Map])
def test_only_kernels_are_wrapped(wrap):
    with pytest.raises(TypeError, match="needs a kernel, got 'rbf'"):
        wrap("rbf", 1)


# ---------------------------------------------------------------------- Map


def lengths(words):
    return np.array([[float(len(word))] for word in words])


def test_map_from_anything_to_vectors():
    kernel = Map(Linear(), lengths)
    np.testing.assert_array_equal(kernel(["a", "abc"], ["ab"]), [[2.0], [6.0]])
    assert not kernel.domain.on_vectors
    with pytest.raises(NotDifferentiableError, match=r"Map: lengths has no method pullback"):
        kernel.input_gradient(["a"], ["ab"], [[1.0]])


def test_a_map_keeps_the_number_of_points():
    with pytest.raises(ValueError, match="returned 4 points for 9"):
        Map(Linear(), np.transpose)(X)
    with pytest.raises(TypeError, match="needs a function"):
        Map(Linear(), 3)


# ---------------------------------------------------------------------- Periodic


def test_periodic_on_the_line_is_exp_sine_squared():
    kernel, reference = Periodic(1.7, 0.6), ExpSineSquared(length_scale=0.6, periodicity=1.7)
    A, B = X[:, :1], Z[:, :1]
    np.testing.assert_allclose(kernel(A, B), reference(A, B), rtol=1e-11)
    W = rng.normal(size=(9, 9))
    want = np.einsum("ij,ijp->p", W, reference(A, eval_gradient=True)[1])
    np.testing.assert_allclose(kernel.pullback(A, None, W), want[::-1], rtol=1e-9)


def test_periodic_in_the_plane_is_a_kernel_and_exp_sine_squared_is_not():
    A = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)], [0.3, 0.0]])
    assert np.linalg.eigvalsh(Periodic(1.0)(A))[0] > 0
    assert np.linalg.eigvalsh(ExpSineSquared()(A))[0] < -0.01


def test_whole_periods_cost_no_digits():
    kernel = Periodic(0.25)
    A = np.array([[0.1], [0.2]])
    np.testing.assert_allclose(kernel(A + 2.0**30, A), kernel(A), atol=1e-6)  # A + 2^30 is rounded
    exact = np.array([[0.125], [0.0625]])
    np.testing.assert_allclose(kernel(exact + 2.0**30, exact), kernel(exact), rtol=1e-12)


@pytest.mark.parametrize("wrong", [0.0, -1.0, (1.0, 2.0), np.nan])
def test_bad_periods(wrong):
    with pytest.raises((TypeError, ValueError), match="Periodic: period must be"):
        Periodic(period=wrong)


def test_periodic_compares_equal_widths():
    with pytest.raises(ValueError, match="points with 4 columns to points with 3"):
        Periodic()(X, Z[:, :3])


# ---------------------------------------------------------------------- Shift


def test_a_shifted_counterexample():
    shifted = Shift(Sigmoid(gamma=1.0), (1.0, 2.0))
    points = shifted.properties.against
    np.testing.assert_allclose(shifted(points), Sigmoid(gamma=1.0)(points - [1.0, 2.0]))
    assert np.linalg.eigvalsh(shifted(points))[0] < -0.1
    assert shifted.validity().status == "refuted"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Shift(RBF(), "a"), "offset must be a finite number, or one per column, got 'a'"),
        (lambda: Shift(RBF(), [1.0, np.nan]), "Shift: offset must be a finite number"),
        (lambda: Shift(RBF(), []), "Shift: offset must be a finite number"),
        (lambda: Select(RBF(), [0])(X[:, 0]), r"Select requires points with columns.* \(9,\)"),
        (lambda: Select(RBF(), [0])([[1.0, 2.0], [3.0]]), "inhomogeneous"),
    ],
)
def test_bad_offsets_and_columns(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_points_of_two_types_are_not_the_same():
    dense = np.eye(3)
    assert not same_points(sp.csr_array(dense), dense)
    assert same_points([1.0, np.nan, 2.0], [1.0, float("nan"), 2.0])
    assert not same_points([1.0, 2.0], [1.0, 3.0])
