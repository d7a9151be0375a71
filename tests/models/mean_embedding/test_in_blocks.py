"""Tests on chunked samples: same decisions as in memory, and the right level."""

from dataclasses import replace

import numpy as np
import pytest

from mercer import Blocks, hsic, independence_test, two_sample_test
from mercer.kernels import RBF, Linear
from mercer.models.mean_embedding import _independence_test, _two_sample_test
from mercer.models.mean_embedding._permutation_test import (
    Rearrangements,
    _rows_with_smallest_hash,
    landmark_map,
)
from mercer.models.mean_embedding._sample_validation import canonical_order

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

rng = np.random.default_rng(0)
n, ROWS = 600, 200
X, Y, Z = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.normal(0.3, 1.0, size=(n, 2))


def blocks(A):
    return Blocks.of(A, ROWS)


def on_dask(A):
    return da.from_array(A, chunks=(ROWS, A.shape[1]))


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_the_statistic_is_that_of_the_plain_test(estimator):
    # As many landmarks as the dimension of the span of the points, so that features are exact.
    few = rng.integers(0, 4, size=(2, n, 2)).astype(float)
    options = {"kernel": RBF(2.0), "method": "lowrank", "rank": 20, "estimator": estimator}
    plain = two_sample_test(*few, n_permutations=19, **options)
    found = two_sample_test(*map(blocks, few), n_permutations=19, **options)
    assert found.statistic == pytest.approx(plain.statistic, rel=1e-9, abs=1e-14)
    assert found.truncation < 1e-10
    assert found.kernel == plain.kernel


@pytest.mark.parametrize("method", ["lowrank", "linear"])
def test_two_samples(method):
    options = {"method": method, "n_permutations": 199}
    same = two_sample_test(blocks(X), blocks(Y), **options)
    other = two_sample_test(blocks(X), blocks(Z), **options)
    assert same.pvalue > 0.05
    assert other.pvalue < (0.02 if method == "lowrank" else 0.5)
    assert other.method == method
    there = two_sample_test(on_dask(X), on_dask(Z), **options)
    assert there.statistic == other.statistic
    assert np.array_equal(there.null, other.null)


def test_the_witness_tells_where_they_differ():
    found = two_sample_test(blocks(X), blocks(X + 3.0), method="lowrank", n_permutations=19)
    at = found.witness(np.array([[0.0, 0.0], [3.0, 3.0]])).ravel()
    assert at[0] > 0 > at[1]


@pytest.mark.parametrize("method", ["lowrank", "linear"])
def test_the_level_is_exact(method):
    """Under the null hypothesis, p-values are uniform on 1/20, ..., 1; 10 % are at most 0.1."""
    draws = np.random.default_rng(1)
    values = []
    for seed in range(200):
        A, B = draws.normal(size=(2, 40, 1))
        options = {"method": method, "kernel": RBF(1.0), "rank": 5, "n_permutations": 19}
        given = (Blocks.of(A, 20), Blocks.of(B, 20))
        values.append(two_sample_test(*given, random_state=seed, **options).pvalue)
    low = np.mean(np.array(values) <= 0.1)
    assert abs(low - 0.1) <= 3.5 * np.sqrt(0.09 / 200)


def test_independence():
    x = np.random.default_rng(2).uniform(-1, 1, size=(n, 1))
    y = x**2 + 0.1 * X[:, :1]
    options = {"method": "lowrank", "rank": 30, "n_permutations": 199}
    found = independence_test(blocks(x), blocks(y), **options)
    assert found.pvalue == pytest.approx(1 / 200)
    assert independence_test(blocks(x), blocks(Y[:, 1:]), **options).pvalue > 0.05
    there = independence_test(on_dask(x), on_dask(y), **options)
    assert np.array_equal(there.null, found.null)
    few = np.random.default_rng(3).integers(0, 4, size=(2, n, 1)).astype(float)
    options |= {"kernel": RBF(1.0), "kernel_y": RBF(2.0)}
    plain = independence_test(*few, **options)
    assert independence_test(*map(blocks, few), **options).statistic == pytest.approx(
        plain.statistic, rel=1e-8
    )


TESTS = {
    "two samples": (two_sample_test, {"estimator": "unbiased"}),
    "two samples, biased": (two_sample_test, {"estimator": "biased"}),
    "two samples, linear": (two_sample_test, {"method": "linear"}),
    "independence": (independence_test, {"estimator": "biased"}),
    "independence, unbiased": (independence_test, {"estimator": "unbiased"}),
}


@pytest.mark.parametrize("name", TESTS)
def test_points_in_memory_are_one_block(name):
    test, options = TESTS[name]
    options = {"method": "lowrank", "rank": 20, "n_permutations": 99} | options
    here = test(X, Z, **options)
    there = test(Blocks.of(X, n), Blocks.of(Z, n), **options)
    assert (there.statistic, there.pvalue) == (here.statistic, here.pvalue)
    assert np.array_equal(there.null, here.null)
    assert (there.truncation, there.rank) == (here.truncation, here.rank)
    assert there.kernel == here.kernel


@pytest.mark.parametrize("name", TESTS)
def test_single_precision_threads_and_passes_change_nothing(name, monkeypatch):
    test, options = TESTS[name]
    options = {"rank": 20, "n_permutations": 99} | options
    A, B = (P.astype(np.float32) for P in (X, Z))
    here = test(blocks(A), blocks(B), **options)
    with dask.config.set(scheduler="threads"):
        there = test(on_dask(A), on_dask(B), **options)
    assert np.array_equal(there.null, here.null) and there.statistic == here.statistic
    double = test(*(blocks(P.astype(float)) for P in (A, B)), **options)
    assert np.array_equal(double.null, here.null)
    tuning = replace(_independence_test._TUNING, cross_product_bytes=1, permutation_block_bytes=1)
    monkeypatch.setattr(_independence_test, "_TUNING", tuning)
    monkeypatch.setattr(_two_sample_test, "_SPLIT_BLOCK_BYTES", 1)
    monkeypatch.setattr(_two_sample_test, "_SIGNS_PER_BLOCK", 1)
    parts = test(blocks(A), blocks(B), **options)
    np.testing.assert_allclose(parts.null, here.null, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_permutations_within_blocks_are_those_of_brute_force(estimator):
    x, y = X[:30], Y[:30, :1]
    options = {"kernel": RBF(1.0), "kernel_y": RBF(2.0), "rank": 30, "n_permutations": 20}
    found = independence_test(
        Blocks.of(x, 12), Blocks.of(y, 12), estimator=estimator, random_state=5, **options
    )
    random = np.random.default_rng(5)
    for k, Z in ((RBF(1.0), x), (RBF(2.0), y)):
        landmark_map((k, Z[canonical_order(Z)]), 30, random)  # uses up the same numbers
    orders = Rearrangements.of_permutations(30, 20, [12, 12, 6], random)
    rows = np.concatenate(
        [
            start + orders.permutations(block, size, slice(0, 21))
            for block, (start, size) in enumerate([(0, 12), (12, 12), (24, 6)])
        ],
        axis=1,
    )
    expected = [hsic(x, y[p], RBF(1.0), RBF(2.0), estimator) for p in rows]
    np.testing.assert_allclose([found.statistic, *found.null], expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("method", ["lowrank", "linear"])
def test_data_far_from_the_origin_lose_no_digits(method):
    A, B, far = X, Z + 1.0, 1e7
    options = {"kernel": Linear(), "method": method, "n_permutations": 99}
    near = two_sample_test(blocks(A), blocks(B), **options)
    shifted = two_sample_test(blocks(A + far), blocks(B + far), **options)
    if method == "lowrank":  # "linear" pairs the same points, also far away
        assert shifted.pvalue == near.pvalue == 0.01
    assert shifted.statistic == pytest.approx(near.statistic, rel=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="one sample is in blocks, but the other is not"):
        two_sample_test(blocks(X), Y)
    with pytest.raises(ValueError, match="'permutation' needs all pairs"):
        two_sample_test(blocks(X), blocks(Y), method="permutation")
    with pytest.raises(ValueError, match=r"support method='lowrank'; 'permutation' needs all pair"):
        independence_test(blocks(X), blocks(Y), method="permutation")
    with pytest.raises(ValueError, match="blocks must have equal sizes: X has 600 rows in 3"):
        two_sample_test(blocks(X), Blocks.of(Y, 100), method="linear")
    with pytest.raises(ValueError, match="X has 2 columns and Y has 1; both samples need the same"):
        two_sample_test(blocks(X), blocks(Y[:, :1]), method="linear")
    with pytest.raises(ValueError, match="estimator must be 'biased' or 'unbiased', got 'x'"):
        independence_test(blocks(X), blocks(Y), estimator="x")
    with pytest.raises(ValueError, match="X has 3 points, but at least 4 are needed"):
        two_sample_test(Blocks.of(X[:3]), Blocks.of(Y[:3]), method="linear")


def test_samples_in_blocks_need_two_dimensions():
    t = np.arange(40.0)
    with pytest.raises(ValueError, match=r"must be 2-D, got the shapes \(40,\) and \(40,\)"):
        two_sample_test(Blocks.of(t, 10), Blocks.of(t, 10))


def test_the_sample_of_rows_does_not_depend_on_their_order():
    X = np.random.default_rng(0).normal(size=(50, 2))
    found, backwards = (_rows_with_smallest_hash(10, A).tolist() for A in (X, X[::-1]))
    assert len(found) == 10 and sorted(found) == sorted(backwards)
    assert all(row in X.tolist() for row in found)
