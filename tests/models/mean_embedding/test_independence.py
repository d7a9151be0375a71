"""HSIC and the independence test: definitions, brute-force permutations, features."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import MemoryBudgetError, NotPositiveDefiniteError, hsic, independence_test
from mercer.gram import LowRankGram
from mercer.kernels import RBF, Distance, Linear, Precomputed, ThinPlate
from mercer.models.mean_embedding import _independence_test, _mean_discrepancies
from mercer.models.mean_embedding._permutation_test import Rearrangements, landmark_map

rng = np.random.default_rng(0)
X = rng.normal(size=(25, 2))
Y = np.column_stack([X[:, 0] ** 2, rng.normal(size=25), rng.normal(size=25)])
k, l = RBF(1.1), RBF(1.7)  # noqa: E741


def by_definition(K, L, estimator):
    n = len(K)
    if estimator == "biased":
        H = np.eye(n) - 1.0 / n
        return np.trace(K @ H @ L @ H) / n**2
    K, L, one = K - np.diag(np.diag(K)), L - np.diag(np.diag(L)), np.ones(n)
    middle = (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * one @ K @ L @ one) / (n * (n - 3))


def permuted(count, random):
    orders = Rearrangements.of_permutations(25, count, [25], random)
    return np.concatenate([orders.permutations(0, 25, part) for part in orders.passes(9)])


both = pytest.mark.parametrize("estimator", ["biased", "unbiased"])


@both
def test_is_what_it_is_defined_to_be(estimator, monkeypatch):
    expected = by_definition(k(X), l(Y), estimator)
    assert hsic(X, Y, k, l, estimator) == pytest.approx(expected, rel=1e-10)
    monkeypatch.setattr(_mean_discrepancies, "_TILE_SIZE", 7)
    assert hsic(X, Y, k, l, estimator) == pytest.approx(expected, rel=1e-10)


def test_the_biased_one_is_the_norm_of_a_covariance():
    C = np.cov(X.T, Y.T, bias=True)[:2, 2:]
    assert hsic(X, Y, Linear(), Linear()) == pytest.approx(np.sum(C**2), rel=1e-10)
    far = 1e4  # the points are centred before multiplication
    assert hsic(X + far, Y + far, Linear()) == pytest.approx(np.sum(C**2), rel=1e-6)
    assert hsic(X, np.ones((25, 1)), k, l) == 0.0


def test_distance_covariance():
    A, B = (np.linalg.norm(Z[:, None] - Z, axis=2) for Z in (X, Y))
    A, B = (D - D.mean(axis=0) - D.mean(axis=1)[:, None] + D.mean() for D in (A, B))
    assert hsic(X, Y, Distance()) == pytest.approx((A * B).mean(), rel=1e-10)


def test_without_bias():
    draws = [np.random.default_rng(seed).normal(size=(12, 2)) for seed in range(200)]
    values = np.array([hsic(D[:, :1], D[:, 1:], k, l, "unbiased") for D in draws])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(len(values))
    assert np.mean([hsic(D[:, :1], D[:, 1:], k, l) for D in draws]) > 5 * abs(values.mean())


@given(st.integers(4, 9), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_unbiased_estimator_does_not_see_the_diagonals(n, seed):
    random = np.random.default_rng(seed)
    K, L = (A @ A.T for A in random.normal(size=(2, n, n)))
    places, D = np.arange(n), np.diag(random.uniform(0, 50, size=n))
    expected = hsic(places, places, Precomputed(K), Precomputed(L), "unbiased")
    value = hsic(places, places, Precomputed(K + D), Precomputed(L - D), "unbiased")
    assert value == pytest.approx(expected, abs=1e-9)


@both
def test_permuted_statistics_are_those_of_brute_force(estimator):
    result = independence_test(X, Y, k, l, estimator=estimator, n_permutations=40, random_state=5)
    rows = permuted(40, np.random.default_rng(5))
    expected = [hsic(X, Y[p], k, l, estimator) for p in rows]
    assert result.statistic == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(result.null, expected[1:], rtol=1e-8, atol=1e-13)
    above = np.count_nonzero(np.array(expected[1:]) >= expected[0])
    assert result.pvalue == pytest.approx((1 + above) / 41)
    assert result.method == "permutation" and result.truncation == (0.0, 0.0)


@both
def test_features_are_kernels_like_any_other(estimator):
    options = {"method": "lowrank", "rank": 6, "n_permutations": 30, "random_state": 3}
    result = independence_test(X, Y, k, l, estimator=estimator, **options)
    random = np.random.default_rng(3)
    K, L = (
        LowRankGram(f, Z, landmark_map((f, Z), 6, random)).to_array() for f, Z in ((k, X), (l, Y))
    )
    rows = permuted(30, random)
    expected = [by_definition(K, L[np.ix_(p, p)], estimator) for p in rows]
    assert result.statistic == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(result.null, expected[1:], rtol=1e-8, atol=1e-12)
    assert result.rank == (6, 6)
    shares = (1 - np.trace(K) / 25, 1 - np.trace(L) / 25)
    assert result.truncation == pytest.approx(shares, rel=1e-6)
    if estimator == "biased":
        assert 0 <= hsic(X, Y, k, l) - result.statistic <= sum(result.truncation)


def test_chunks_change_nothing(monkeypatch):
    options = {"n_permutations": 70, "random_state": 1}
    whole = [independence_test(X, Y, method=m, **options) for m in ("permutation", "lowrank")]
    small = {"min_task_terms": 1, "feature_task_bytes": 1, "permutation_block_bytes": 1}
    small["cross_product_bytes_of_one_block"] = 1
    monkeypatch.setattr(_independence_test, "_TUNING", replace(_independence_test._TUNING, **small))
    parts = [independence_test(X, Y, method=m, **options) for m in ("permutation", "lowrank")]
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a.null, b.null, rtol=1e-10)
        assert a.pvalue == b.pvalue


@pytest.mark.filterwarnings("ignore:the smallest possible p-value")
def test_every_pairing_of_a_few_points_is_tried_once():
    x = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
    result = independence_test(x, x, Linear())
    assert result.n_permutations == 119 and result.pvalue == pytest.approx(1 / 120)
    with pytest.warns(UserWarning, match=r"p-value is 0\.167, .* 3 pairs, and 5 permutations"):
        independence_test(x[:3], x[:3], RBF())


def test_ties():
    x = np.repeat([[0.0], [1.0]], 6, axis=0)
    assert independence_test(x, np.ones((12, 1)), RBF(), n_permutations=99).pvalue == 1.0
    # perfectly balanced: every permutation has at least this statistic
    y = np.tile([[0.0], [1.0]], (6, 1))
    assert independence_test(x, y, RBF(), n_permutations=99).pvalue == 1.0


def test_the_method_is_reported(monkeypatch):
    assert independence_test(X, Y, n_permutations=19).method == "permutation"
    # less than 16 n^2 bytes
    small = independence_test(X, Y, n_permutations=19, rank=5, max_memory="9 KiB")
    assert small.method == "lowrank"
    tuning = replace(_independence_test._TUNING, max_permutation_pairs=20)
    monkeypatch.setattr(_independence_test, "_TUNING", tuning)
    assert independence_test(X, Y, n_permutations=19).method == "lowrank"
    assert independence_test(X, Y, Distance(), n_permutations=19).method == "permutation"
    with pytest.raises(NotPositiveDefiniteError):
        independence_test(X, Y, Distance(), method="lowrank")


def test_words_and_numbers():
    words = ["aa", "ab", "ba", "bb", "cc", "cd", "dc", "dd"] * 3
    values = np.array([[0.0] * 4 + [1.0] * 4] * 3).reshape(-1, 1)

    def shared(s, t):
        return float(len(set(s) & set(t)))

    for method in ("permutation", "lowrank"):
        options = {"method": method, "n_permutations": 99}
        assert independence_test(words, values, shared, RBF(1.0), **options).pvalue == 0.01
    assert hsic(words, values, shared, RBF()) > 0.01


def test_the_same_seed_gives_the_same_bits():
    for method in ("permutation", "lowrank"):
        one, two = (
            independence_test(X, Y, method=method, n_permutations=30, random_state=seed)
            for seed in (None, 0)
        )
        assert np.array_equal(one.null, two.null)


def test_what_is_refused():
    with pytest.raises(ValueError, match="estimator must be 'biased' or 'unbiased', got 'linear'"):
        hsic(X, Y, estimator="linear")
    with pytest.raises(ValueError, match="estimator must be 'biased' or 'unbiased', got 'x'"):
        independence_test(X, Y, estimator="x")
    with pytest.raises(ValueError, match=r"method must be one of .*'lowrank'\), got 'linear'"):
        independence_test(X, Y, method="linear")
    with pytest.raises(ValueError, match="25 points in X and 24 in Y, but the points must"):
        hsic(X, Y[:24])
    with pytest.raises(ValueError, match="X has 3 points, but at least 4 are needed"):
        hsic(X[:3], Y[:3], estimator="unbiased")
    with pytest.raises(ValueError, match="X has 0 points, but at least 2 are needed"):
        independence_test(X[:0], Y[:0])
    with pytest.raises(ValueError, match="pass those for Y as kernel_y"):
        hsic(np.arange(25), np.arange(25), Precomputed(k(X)))
    with pytest.raises(ValueError, match="n_permutations must be a positive integer, got 0"):
        independence_test(X, Y, n_permutations=0)
    with pytest.raises(MemoryBudgetError, match="test of 25 pairs by method='lowrank' needs"):
        independence_test(X, Y, max_memory="9 KiB")
    with pytest.raises(ValueError, match="rank must be a positive integer or None, got -3"):
        independence_test(X, Y, rank=-3)
    with pytest.raises(MemoryBudgetError, match="test of 25 pairs by method='permutation' needs"):
        independence_test(X, Y, method="permutation", max_memory="9 KiB")
    with pytest.raises(ValueError, match="not conditionally positive definite of order 1"):
        hsic([[0.0], [3.0]], [[0.0], [3.0]], ThinPlate(), Linear())
    with pytest.raises(ValueError, match=r"entries that are not finite; .* Scale the features"):
        hsic(1e200 * X, Y, Linear())
