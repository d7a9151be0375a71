"""The two-sample test: permutations against brute force, p-values, and its report."""

import dataclasses
from itertools import product
from math import comb

import numpy as np
import pytest

from mercer import Expansion, NotPositiveDefiniteError, mmd, two_sample_test
from mercer.gram import DenseGram, LowRankGram
from mercer.kernels import RBF, Distance, Linear, Precomputed, ThinPlate
from mercer.models.mean_embedding import _two_sample_test
from mercer.models.mean_embedding._mean_discrepancies import SplitSums, pair_terms
from mercer.models.mean_embedding._permutation_test import Rearrangements, landmark_map, pvalue
from mercer.models.mean_embedding._sample_validation import pool_samples

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(14, 2)), rng.normal(size=(19, 2)) + 0.4
Z = np.concatenate([X, Y])


def permuted(m, n, count, seed, size=10**6):
    splits = Rearrangements.of_splits(m, n, count, [m], np.random.default_rng(seed))
    return np.concatenate([splits.splits(0, m, n, part) for part in splits.passes(size)])


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("kernel", [RBF(1.3), Distance()])
def test_permuted_statistics_are_those_of_brute_force(kernel, estimator):
    result = two_sample_test(X, Y, kernel, estimator=estimator, n_permutations=40, random_state=5)
    rows = permuted(14, 19, 40, 5)
    expected = [mmd(Z[row], Z[~row], kernel, estimator) for row in rows]
    np.testing.assert_allclose(result.null, expected[1:], rtol=1e-9, atol=1e-13)
    assert result.statistic == pytest.approx(mmd(X, Y, kernel, estimator), rel=1e-10)
    above = np.count_nonzero(np.array(expected[1:]) >= expected[0])
    assert result.pvalue == pytest.approx((1 + above) / 41)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_features_are_a_kernel_like_any_other(estimator):
    options = {"method": "lowrank", "rank": 5, "n_permutations": 30, "random_state": 7}
    result = two_sample_test(X, Y, RBF(1.3), estimator=estimator, **options)
    random = np.random.default_rng(7)
    K = LowRankGram(RBF(1.3), Z, landmark_map((RBF(1.3), Z), 5, random)).to_array()
    rows = permuted(14, 19, 30, random)
    places = np.arange(33)
    expected = [mmd(places[r], places[~r], Precomputed(K), estimator) for r in rows]
    assert result.statistic == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(result.null, expected[1:], atol=1e-12)
    assert result.rank == 5 and result.method == "lowrank"
    exact = mmd(X, Y, RBF(1.3), "biased")
    assert result.truncation == pytest.approx(1 - np.trace(K) / 33, rel=1e-6)
    if estimator == "biased":
        assert 0 <= exact - result.statistic <= result.truncation * 33 * (1 / 14 + 1 / 19)


def test_with_all_landmarks_nothing_is_lost():
    few = two_sample_test(X, Y, RBF(), method="lowrank", rank=33, n_permutations=50)
    assert few.statistic == pytest.approx(mmd(X, Y, RBF()), rel=1e-8)
    assert few.truncation < 1e-10


def test_blocks_of_permutations_change_nothing(monkeypatch):
    whole = two_sample_test(X, Y, n_permutations=200, random_state=3)
    monkeypatch.setattr(_two_sample_test, "_SPLIT_BLOCK_BYTES", 1)  # 16 at a time
    parts = two_sample_test(X, Y, n_permutations=200, random_state=3)
    np.testing.assert_allclose(parts.null, whole.null, rtol=1e-12, atol=1e-15)
    assert parts.pvalue == whole.pvalue
    np.testing.assert_array_equal(permuted(14, 19, 99, 0, 7), permuted(14, 19, 99, 0, 1000))


@pytest.mark.filterwarnings("ignore:the smallest possible p-value")
def test_every_split_of_a_few_points_is_tried_once():
    A, B = 0.1 * rng.normal(size=(3, 1)), 0.1 * rng.normal(size=(4, 1)) + 2.0
    result = two_sample_test(A, B, RBF(1.0))
    assert result.n_permutations == comb(7, 3) - 1 == len(result.null)
    assert result.pvalue == result.smallest_pvalue == pytest.approx(1 / 35)
    # With samples of equal size, every value occurs twice.
    result = two_sample_test(A, B[:3], RBF(1.0), n_permutations=50)
    assert result.n_permutations == 19 and result.pvalue == pytest.approx(2 / 20)
    assert result.smallest_pvalue == pytest.approx(0.1)


def test_too_few_points_or_permutations_to_reject_anything():
    with pytest.warns(UserWarning, match=r"smallest possible p-value is 0\.333, .* 2 and 2"):
        two_sample_test(X[:2], Y[:2])
    with pytest.warns(UserWarning, match=r"is 0\.1, so that the test .* 9 permutations; use more"):
        assert two_sample_test(X, Y, n_permutations=9).smallest_pvalue == 0.1


def test_ties_count_although_rounding_holds_them_apart():
    assert pvalue(1.0, np.array([1.0 - 1e-15, 0.5, 2.0]), 1e-12) == 0.75
    # Only two distinct values: many splits have the same statistic as the data.
    A, B = np.zeros((8, 1)), np.concatenate([np.zeros((6, 1)), np.ones((2, 1))])
    result = two_sample_test(A, B, Linear(), estimator="biased", n_permutations=400)
    both_in_one = 2 * comb(14, 6) / comb(16, 8)
    assert result.pvalue == pytest.approx(both_in_one, abs=0.08)
    constant = two_sample_test(np.ones((5, 1)), np.ones((6, 1)), RBF(), n_permutations=99)
    assert constant.pvalue == 1.0


def test_the_order_of_the_points_does_not_choose_the_kernel():
    # more points than "median" uses
    A = rng.normal(size=(1500, 3)) * rng.exponential(size=(1500, 1))
    shuffled = A[np.random.default_rng(1).permutation(1500)]
    assert (
        pool_samples(A[:700], A[700:], None)[0]
        == pool_samples(shuffled[:700], shuffled[700:], None)[0]
    )
    few, others = (landmark_map((RBF(2.0), P), 20, np.random.default_rng(0)) for P in (A, shuffled))
    np.testing.assert_array_equal(few.points, others.points)


def test_the_witness():
    result = two_sample_test(X, Y, n_permutations=19)
    k = result.kernel
    f = result.witness
    assert isinstance(f, Expansion)
    np.testing.assert_allclose(f(Z)[:, 0], k(Z, X).mean(axis=1) - k(Z, Y).mean(axis=1), atol=1e-12)
    assert f.norm()[0] ** 2 == pytest.approx(mmd(X, Y, k, "biased"), rel=1e-8)


def test_values_that_are_given_in_single_precision():
    single = Precomputed(RBF(1.3)(Z).astype(np.float32))
    given = two_sample_test(range(14), range(14, 33), single, n_permutations=30)
    expected = two_sample_test(X, Y, RBF(1.3), n_permutations=30)
    np.testing.assert_allclose(given.null, expected.null, atol=1e-5)
    assert given.pvalue == pytest.approx(expected.pvalue, abs=0.04)


def test_values_that_are_given():
    K = Precomputed(RBF(1.3)(Z))
    for method in ("permutation", "lowrank", "linear"):
        options = {"method": method, "n_permutations": 30, "rank": 33}
        given = two_sample_test(range(14), range(14, 33), K, **options)
        expected = two_sample_test(X, Y, RBF(1.3), **options)
        assert given.statistic == pytest.approx(expected.statistic, abs=1e-9)


def test_strings():
    words = [a + b for a in "abc" for b in "abcdef"]
    others = [a + b for a in "xyz" for b in "abcdef"]

    def shared(s, t):
        return float(len(set(s) & set(t)))

    for method in ("permutation", "lowrank", "linear"):
        result = two_sample_test(words, others, shared, method=method, n_permutations=99)
        assert result.method == method
        at_least = 1 + np.count_nonzero(result.null >= result.statistic - 1e-12)
        assert result.pvalue == at_least / 100 and (method == "linear" or at_least == 1)


def test_the_method_is_reported():
    small = two_sample_test(X, Y, n_permutations=19)
    assert (small.method, small.truncation, small.rank) == ("permutation", 0.0, None)
    A, B = rng.normal(size=(6000, 2)), rng.normal(size=(5000, 2)) + 0.1
    large = two_sample_test(A, B, n_permutations=199)
    assert large.method == "lowrank" and large.pvalue == 0.005 and 0 < large.truncation < 0.01
    linear = two_sample_test(A, B + 0.4, method="linear")
    assert linear.n_permutations == len(linear.null) == 999 and linear.pvalue == 0.001
    assert linear.statistic == pytest.approx(mmd(A, B + 0.4, linear.kernel), abs=0.02)


def test_a_kernel_that_is_not_positive_definite_has_no_features(monkeypatch):
    with pytest.raises(NotPositiveDefiniteError):
        two_sample_test(X, Y, Distance(), method="lowrank")
    monkeypatch.setattr(_two_sample_test, "_MAX_PERMUTATION_POINTS", 10)
    assert two_sample_test(X, Y, Distance(), n_permutations=19).method == "permutation"


def test_the_same_seed_gives_the_same_bits():
    for method in ("permutation", "lowrank", "linear"):
        options = {"method": method, "n_permutations": 50}
        one, two = (two_sample_test(X, Y, random_state=seed, **options) for seed in (None, 0))
        assert (one.statistic, one.pvalue) == (two.statistic, two.pvalue)
        two_sample_test(X, Y, random_state=np.random.RandomState(0), **options)
    first = two_sample_test(X, Y, n_permutations=50, random_state=1).null
    assert not np.array_equal(first, two_sample_test(X, Y, n_permutations=50).null)


def test_the_result_is_a_value():
    result = two_sample_test(X, Y, n_permutations=19)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.pvalue = 0.0
    assert "pvalue=" in repr(result) and "null" not in repr(result)


def test_linear_on_constant_samples():
    A = np.zeros((12, 1))
    assert two_sample_test(A, A, RBF(), method="linear").pvalue == 1.0
    result = two_sample_test(A, A + 1.0, RBF(), method="linear")
    assert result.n_permutations == 63 and result.pvalue == result.smallest_pvalue == 1 / 64


def test_linear_tries_every_row_of_signs_of_a_few_terms():
    result = two_sample_test(X, Y, RBF(), method="linear", n_permutations=127)  # 7 terms
    signs = Rearrangements.of_signs(7, 127, [14], np.random.default_rng(0))
    terms = pair_terms(RBF(), signs.shuffled(0, X, 0), signs.shuffled(0, Y, 1))
    means = [np.mean(terms * s) for s in product([1, -1], repeat=7)]
    np.testing.assert_allclose(np.sort(result.null), np.sort(means[1:]), atol=1e-15)
    assert result.pvalue == pytest.approx(np.mean(np.array(means) >= means[0] - 1e-12))
    with pytest.warns(UserWarning, match=r"is 0\.25, .* 2 pairs, and 3 rows of signs"):
        two_sample_test(X[:4], Y[:4], RBF(), method="linear")


@pytest.mark.parametrize("method", ["permutation", "lowrank", "linear"])
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_what_the_points_have_in_common_costs_no_digits(method, estimator):
    options = {"method": method, "estimator": estimator, "n_permutations": 99}
    apart = Y + 1.0
    for far in (1e6, 1e8):
        expected = two_sample_test(X, apart, Linear(), **options)
        found = two_sample_test(X + far, apart + far, Linear(), **options)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)
        assert found.pvalue == expected.pvalue < 0.05
    if method != "linear":
        wide = two_sample_test(X, apart, RBF(1e6), **options | {"method": "permutation"})
        assert wide.pvalue == 0.01


def test_differences_that_rounding_hides_are_said_to_be():
    with pytest.warns(UserWarning, match=r"rounding error .* deviation of only .* is too large"):
        two_sample_test(X, Y + 1.0, RBF(1e8), n_permutations=19)


def test_an_unbiased_statistic_that_a_difference_makes_smaller():
    with pytest.warns(UserWarning, match="not conditionally positive definite of order 1"):
        assert two_sample_test(X, X + 9.0, ThinPlate(), n_permutations=19).pvalue > 0.5


def test_splits_of_a_gram_and_of_its_factor_agree():
    F = landmark_map((RBF(), Z), 8, np.random.default_rng(0)).features(Z)
    rows = permuted(14, 19, 5, 0)
    G, columns = F - F.mean(axis=0), np.column_stack([rows.T, np.ones(33)])
    squares = ((A**2).sum(axis=1) @ columns for A in (G, F))
    found = SplitSums.of_features(G.T @ columns, *squares, (14, 19), RBF())
    expected = SplitSums.of(DenseGram(Precomputed(G @ G.T), np.arange(33)), rows, 14)
    for name in ("sxx", "sxy", "syy", "dx", "dy"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)


def test_the_number_of_splits_is_known_without_counting_them():
    for m, n in [(2, 3), (3, 3), (2, 40), (29, 2)]:
        splits = Rearrangements.of_splits(m, n, 10**6, [m], rng)
        assert splits.is_complete and splits.count == comb(m + n, m) - 1
    assert not Rearrangements.of_splits(10**6, 10**6, 10**9, [10**6], rng).is_complete
    assert not Rearrangements.of_splits(2, 2, 99, [1, 1], rng).is_complete


def test_what_is_refused():
    with pytest.raises(ValueError, match="estimator must be 'unbiased' or 'biased', got 'linear'"):
        two_sample_test(X, Y, estimator="linear")
    with pytest.raises(ValueError, match=r"method must be one of .*'lowrank', 'linear'\), got 'x'"):
        two_sample_test(X, Y, method="x")
    for count in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_permutations must be a positive integer"):
            two_sample_test(X, Y, n_permutations=count)
    with pytest.raises(ValueError, match="X has 3 points, but at least 4 are needed"):
        two_sample_test(X[:3], Y, method="linear")
    with pytest.raises(ValueError, match="Y has 1 point, but at least 2 are needed"):
        two_sample_test(X, Y[:1])
    with pytest.raises(ValueError, match="X has 2 columns, Y has 1"):
        two_sample_test(X, Y[:, :1])
    with pytest.raises(ValueError, match=r"rank must be a positive integer or None, got 2\.5"):
        two_sample_test(X, Y, method="lowrank", rank=2.5)
    with pytest.raises(ValueError, match="rank must be a positive integer or None, got -3"):
        two_sample_test(X, Y, rank=-3)
    with pytest.raises(ValueError, match=r"X has 0 points, but at least 2 are needed"):
        two_sample_test([], Y)
    with pytest.raises(ValueError, match="contains NaN"):
        two_sample_test(np.where(X > 0, X, np.nan), Y)
