"""Laplacian, chi-square and histogram intersection: values, domains, kinks, rules."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise

from mercer.kernels import RBF, AdditiveChi2, Chi2, HistogramIntersection, Laplacian
from mercer.kernels.vectors import _histogram
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
X = rng.uniform(size=(40, 6)) * (rng.uniform(size=(40, 6)) > 0.3)
Z = np.concatenate([X[:5], rng.uniform(size=(20, 6))])


def intersection(X, Z):
    return np.minimum(X[:, None], Z).sum(axis=2)


KERNELS = [
    (Laplacian.from_gamma(0.7), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.7)),
    (Chi2(0.3), lambda A, B: pairwise.chi2_kernel(A, B, gamma=0.3)),
    (AdditiveChi2(), pairwise.additive_chi2_kernel),
    (HistogramIntersection(), intersection),
]
each_kernel = pytest.mark.parametrize(("kernel", "reference"), KERNELS, ids=lambda k: str(k)[:9])
each_histogram_kernel = pytest.mark.parametrize(
    "kernel", [Chi2(), AdditiveChi2(), HistogramIntersection()], ids=str
)


@each_kernel
@pytest.mark.parametrize("left", [np.asarray, sp.csr_array, sp.csr_matrix, np.asfortranarray])
@pytest.mark.parametrize("right", [np.asarray, sp.csr_array])
def test_reference(kernel, reference, left, right):
    np.testing.assert_allclose(kernel(left(X), right(Z)), reference(X, Z), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel(left(X)), reference(X, X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(left(X)), reference(X, X).diagonal(), rtol=1e-15)


@each_kernel
def test_single_precision(kernel, reference):
    block = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, reference(X, Z), rtol=1e-5, atol=1e-6)
    assert kernel(X.astype(np.float32), Z).dtype == np.float64


@each_kernel
def test_sparse_rows_become_dense_in_parts(kernel, reference, monkeypatch):
    monkeypatch.setattr(_histogram, "_MAX_DENSE_ENTRIES", 20)  # three rows of six columns
    A, B = sp.csr_array(X), sp.csr_array(Z)
    W = rng.normal(size=(len(X), len(Z)))
    np.testing.assert_allclose(kernel(A, B), reference(X, Z), rtol=1e-13, atol=1e-14)
    got, want = kernel.input_gradient(A, B, W), kernel.input_gradient(X, Z, W)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_more_points_than_are_summed_at_a_time():
    A, B = rng.uniform(size=(3, 2)), rng.uniform(size=(1300, 2))
    np.testing.assert_allclose(HistogramIntersection()(A, B), intersection(A, B), rtol=1e-14)


@pytest.mark.parametrize(
    "kernel",
    [Laplacian(0.8), Laplacian((0.5, 1.0, 3.0)), Chi2(0.4), HistogramIntersection()],
    ids=str,
)
def test_laws(kernel):
    A, B = rng.uniform(0.1, 2.0, size=(9, 3)), rng.uniform(0.1, 2.0, size=(5, 3))
    check_kernel(kernel, A, B)
    check_kernel(kernel * RBF() + kernel, A, B)


def test_laws_of_the_additive_kernel():
    check_kernel(AdditiveChi2(), rng.uniform(0.1, 2.0, size=(9, 3)), psd=False, cpd_order=1)


def test_exact_values():
    x, y = [[1.0, 2.0, 0.0]], [[2.0, 1.0, 1.0]]
    assert HistogramIntersection()(x, y)[0, 0] == 2.0
    np.testing.assert_allclose(AdditiveChi2()(x, y), -5.0 / 3.0, rtol=1e-15)
    np.testing.assert_allclose(Chi2(3.0)(x, y), np.exp(-5.0), rtol=1e-14)
    np.testing.assert_allclose(Laplacian((1.0, 2.0, 4.0))(x, y), np.exp(-1.75), rtol=1e-14)


def test_a_large_offset_does_not_cost_digits():
    A = (1e6 + np.array([[0.0], [1.0]])).astype(np.float32)
    np.testing.assert_allclose(Laplacian(3.0)(A)[0, 1], np.exp(-1 / 3), rtol=1e-6)


# ---------------------------------------------------------------------- kinks


def test_coincident_coordinates_add_nothing_to_the_gradient():
    kernel = Laplacian()
    got = kernel.input_gradient([[1.0, 2.0]], [[1.0, 3.0]], [[1.0]])
    np.testing.assert_allclose(got, [[0.0, np.exp(-1.0)]])
    assert not kernel.input_gradient(X[:3], None, np.eye(3)).any()


def test_an_intersection_of_equals_grows_by_half():
    got = HistogramIntersection().input_gradient([[1.0, 2.0, 3.0]], [[2.0, 2.0, 2.0]], [[1.0]])
    np.testing.assert_array_equal(got, [[1.0, 0.5, 0.0]])


def test_empty_columns_are_equal():
    assert Chi2()([[0.0, 0.0]], [[0.0, 0.0]])[0, 0] == 1.0
    assert not AdditiveChi2().input_gradient([[0.0]], [[0.0]], [[1.0]]).any()


# ---------------------------------------------------------------------- domains and rules


@each_histogram_kernel
@pytest.mark.parametrize("points", [np.asarray, sp.csr_array])
def test_negative_entries_are_refused(kernel, points):
    wrong = points(X - 0.25)
    for call in (kernel, kernel.diag, kernel.prepare):
        with pytest.raises(ValueError, match=r"cannot be negative, but X contains -0\.25"):
            call(wrong)


def test_length_scales_count_columns():
    for call in (Laplacian((1.0, 2.0)), Laplacian((1.0, 2.0)).diag):
        with pytest.raises(ValueError, match="2 length scales, but the points have 6 columns"):
            call(X)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.inf, "mean", (), [[1.0]]])
def test_bad_parameters(wrong):
    with pytest.raises(ValueError, match="length_scale must be"):
        Laplacian(wrong)
    if np.ndim(wrong) == 0:
        with pytest.raises(ValueError, match="gamma must be"):
            Chi2(wrong)


def test_rules():
    d, variance = X.shape[1], X.var()
    distances = pairwise.manhattan_distances(X)[np.triu_indices(len(X), 1)]
    sums = -pairwise.additive_chi2_kernel(X)[np.triu_indices(len(X), 1)]
    for rule, length_scale, gamma in [
        ("auto", d, 1 / d),
        ("scale", d * variance, 1 / (d * variance)),
        ("median", np.median(distances), 1 / np.median(sums)),
    ]:
        for points in (X, sp.csr_array(X)):
            got = Laplacian.from_gamma(rule).resolve(points).length_scale
            np.testing.assert_allclose(got, length_scale)
            np.testing.assert_allclose(Chi2(rule).resolve(points).gamma, gamma)


def test_infinitely_divisible():
    np.testing.assert_allclose((Laplacian() ** 0.3)(X), Laplacian(1 / 0.3)(X))
    np.testing.assert_allclose((Chi2() ** 0.3)(X), Chi2(0.3)(X))
    with pytest.raises(ValueError, match="not known to be infinitely divisible"):
        HistogramIntersection() ** 0.5
