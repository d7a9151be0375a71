"""Tests on chunked samples: same decisions as in memory, and the right level."""

import numpy as np
import pytest

from mercer import Blocks, independence_test, two_sample_test
from mercer.kernels import RBF

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


def test_what_is_refused():
    with pytest.raises(ValueError, match="one sample is in blocks, but the other is not"):
        two_sample_test(blocks(X), Y)
    with pytest.raises(ValueError, match="'permutation' needs all pairs"):
        two_sample_test(blocks(X), blocks(Y), method="permutation")
    with pytest.raises(ValueError, match=r"'auto' needs all pairs"):
        independence_test(blocks(X), blocks(Y))
    with pytest.raises(ValueError, match="blocks must have equal sizes: X has 600 rows in 3"):
        two_sample_test(blocks(X), Blocks.of(Y, 100), method="linear")
    with pytest.raises(ValueError, match="X has 2 columns and Y has 1; both samples need the same"):
        two_sample_test(blocks(X), blocks(Y[:, :1]), method="linear")
    with pytest.raises(ValueError, match="support estimator='biased', got 'unbiased'"):
        independence_test(blocks(X), blocks(Y), method="lowrank", estimator="unbiased")
