"""Canonical orders that do not depend on the order of the points, and the levels of tests."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import hsic, independence_test, two_sample_test
from mercer.kernels import RBF, Kernel, Precomputed, Select, node
from mercer.kernels._parameter_tree import data_dependent
from mercer.models.mean_embedding import _independence_test, _two_sample_test
from mercer.models.mean_embedding._sample_validation import (
    UnorderableError,
    canonical_order,
    resolve_kernel,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 3))


class Opaque:
    """A point that can only be compared through a kernel."""

    def __init__(self, x):
        self.x = x


def rbf(x, z):
    (a, b), (c, d) = sorted(x), sorted(z)
    return float(np.exp(-((a - c) ** 2 + (b - d) ** 2) / 0.18))


def table(A):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "c": [f"{x:.0f}" for x in A[:, 0]]})


# Representations of vectors as other types of points, with the kernel RBF(0.3) on them.
KINDS = {
    "indices": lambda A: (np.arange(len(A)), Precomputed(RBF(0.3)(A))),
    "scaled indices": lambda A: (range(len(A)), 2.0 * Precomputed(RBF(0.3)(A))),
    "tables": lambda A: (table(A), Select(RBF(0.3), ["a", "b"])),
    "arrays": lambda A: ([*A], rbf),
    "lists": lambda A: (A.tolist(), rbf),
    "sets": lambda A: ([frozenset(x) for x in A.tolist()], rbf),
}
lowrank = {"method": "lowrank", "n_permutations": 19}


@pytest.mark.parametrize("kind", KINDS)
def test_the_level_does_not_rest_on_the_kind_of_points(kind):
    def independent(random):
        (P, k), (Q, l) = (KINDS[kind](random.normal(size=(16, 2))) for _ in "xy")  # noqa: E741
        return independence_test(P, Q, k, l, rank=3, **lowrank)

    def two_samples(random):
        P, k = KINDS[kind](random.normal(size=(30, 2)))
        first, second = (P.iloc[:5], P.iloc[5:]) if kind == "tables" else (P[:5], P[5:])
        return two_sample_test(first, second, k, estimator="biased", rank=5, **lowrank)

    for test in (independent, two_samples):
        random = np.random.default_rng(1)
        level = np.mean([test(random).pvalue <= 0.05 for _ in range(60)])
        # at a level of 0.05, more than 9 of 60 rejections have a probability of 1/1000
        assert level <= 0.15, level


@pytest.mark.parametrize("small", [8, 16])
def test_the_level_of_linear_in_small_samples(small):
    random = np.random.default_rng(0)
    test = partial(two_sample_test, kernel=RBF(), method="linear")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_two_sample_test, "warn_if_level_unreachable", lambda *_: None)
        p = [test(*random.normal(size=(2, small, 1))).pvalue for _ in range(800)]
    level = 1 / 16 if small == 8 else 0.05
    assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=0.02)


POINTS = {
    "vectors": X,
    "sparse": sp.csr_array(np.where(X > 0, X, 0.0)),
    "hidden": np.column_stack([np.full(24, 1e20), X]),
    "images": X.reshape(24, 3, 1),
    "numbers": X[:, 0],
    "texts": [str(x) for x in X],
    "sets": [{*x} for x in X.round(0)],
    "dicts": [{"a": x, "b": [y, None]} for x, y, _ in X.tolist()],
    "repeated": [3, 1, 2, 2] * 6,
}


@pytest.mark.parametrize("kind", POINTS)
def test_the_order_of_points_is_their_own(kind):
    P, shuffled = POINTS[kind], np.random.default_rng(3).permutation(24)
    Q = P[shuffled] if hasattr(P, "shape") else [P[i] for i in shuffled]
    a, b = canonical_order(P), shuffled[canonical_order(Q)]
    assert sorted(a) == list(range(24))
    P = P.toarray() if kind == "sparse" else P
    assert all(np.array_equal(P[i], P[j]) for i, j in zip(a, b, strict=True))


def test_indices_are_known_by_their_values():
    K, shuffled = RBF()(X), np.random.default_rng(3).permutation(24)
    a = canonical_order(np.arange(24), Precomputed(K))
    b = canonical_order(np.arange(24), Precomputed(K[np.ix_(shuffled, shuffled)]))
    np.testing.assert_array_equal(a, shuffled[b])
    twice = np.r_[0:24, 0:5]  # the same point at two indices
    assert sorted(canonical_order(twice, Precomputed(K))) == list(range(29))
    alike = np.eye(24) + 1e-20 * K  # small values matter, too
    a, b = (
        canonical_order(np.arange(24), Precomputed(M))
        for M in (alike, alike[np.ix_(shuffled, shuffled)])
    )
    np.testing.assert_array_equal(a, shuffled[b])
    blocks = np.kron(np.eye(2), np.ones((3, 3)))  # which of the two is the first?
    with pytest.raises(UnorderableError, match="the same kernel values in different orders"):
        canonical_order(np.arange(6), Precomputed(blocks))


def test_points_without_an_order_have_no_landmarks(monkeypatch):
    points, k = [Opaque(x) for x in X[:, 0]], lambda s, t: float(np.exp(-((s.x - t.x) ** 2)))
    with pytest.raises(
        ValueError, match=r"Opaque cannot be sorted by their contents; use method='permutation'"
    ):
        two_sample_test(points[:9], points[9:], k, method="lowrank")
    with pytest.raises(ValueError, match="distinct integers, which may be indices"):
        independence_test(range(24), X, lambda i, j: k(points[i], points[j]), method="lowrank")
    monkeypatch.setattr(_two_sample_test, "_MAX_PERMUTATION_POINTS", 10)
    tuning = replace(_independence_test._TUNING, max_permutation_pairs=10)
    monkeypatch.setattr(_independence_test, "_TUNING", tuning)
    assert two_sample_test(points[:9], points[9:], k, n_permutations=19).method == "permutation"
    assert independence_test(points, X, k, RBF(), n_permutations=19).method == "permutation"


def test_points_that_can_be_exchanged_have_an_order():
    K = RBF()(np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0))
    jittered = Precomputed(K + 1e-6 * np.eye(40))
    X, Y = np.arange(20), np.arange(20, 40)
    assert 0 < two_sample_test(X, Y, jittered, method="lowrank", rank=10).pvalue <= 1


def test_values_inside_a_composite_belong_to_one_sample():
    with pytest.raises(ValueError, match="pass those for Y as kernel_y"):
        hsic(np.arange(6), np.arange(6), 2 * Precomputed(np.eye(6)))


def same_length(a, b):
    return float(len(a) == len(b))


def shared_entries(a, b):
    return float((a * b).sum())


class Unknown:
    """An object without a value."""


@pytest.mark.parametrize(
    ("kernel", "X", "Y"),
    [
        (same_length, [[1, 2], [3], [4, 5]] * 3, [[4], [5, 6], [7]] * 3),
        (shared_entries, [sp.eye_array(2)] * 9, [2 * sp.eye_array(2)] * 9),
    ],
    ids=["ragged lists", "sparse matrices"],
)
def test_lists_of_other_objects(kernel, X, Y):
    result = two_sample_test(X, Y, kernel=kernel, n_permutations=99, random_state=0)
    again = two_sample_test(X[::-1], Y, kernel=kernel, n_permutations=99, random_state=0)
    assert (result.statistic, result.pvalue) == (again.statistic, again.pvalue)


def test_sparse_matrices_have_an_order():
    points = [k * sp.eye_array(2, format="csr") for k in (3.0, 1.0, 2.0)]
    order, backwards = canonical_order(points), canonical_order(points[::-1])
    assert np.array_equal(order, 2 - backwards) and sorted(order) == [0, 1, 2]


def test_ragged_lists_are_not_vectors():
    with pytest.raises(ValueError, match="does not contain vectors, which RBF"):
        two_sample_test([[1.0, 2.0], [3.0]], [[4.0], [5.0]])


def test_objects_that_cannot_be_sorted_keep_their_order():
    points = [Unknown() for _ in range(4)]
    kernel = Memorising()
    assert resolve_kernel(kernel, points).first is points[0]


@node
class Memorising(Kernel):
    """A kernel that stores the first training point."""

    first: object = data_dependent(None, is_rule=lambda first: first is None)

    def _resolve(self, X, weights, targets):
        return replace(self, first=X[0])

    def _tile(self, P, Q, out):
        out[...] = 1.0
