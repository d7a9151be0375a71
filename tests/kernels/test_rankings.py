"""Rankings: tau and its mean over complete rankings, Mallows, pre-images, errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from mercer import SVC, Expansion, KernelPCA
from mercer.kernels import Kendall, Mallows, Normalized

TOTAL = np.array(list(itertools.permutations(range(1, 5))), dtype=float)


def completions(x, unranked):
    """Return all complete rankings that are consistent with x."""

    def agrees(z):
        for a, b in itertools.permutations(range(len(x)), 2):
            if x[a] < x[b] and not z[a] < z[b]:
                return False
            if unranked == "last" and np.isnan(x[b]) and not np.isnan(x[a]) and not z[a] < z[b]:
                return False
        return True

    return [z for z in itertools.permutations(range(len(x))) if agrees(z)]


def tau(x, z):
    pairs = itertools.combinations(range(len(x)), 2)
    signs = [np.sign(x[a] - x[b]) * np.sign(z[a] - z[b]) for a, b in pairs]
    return sum(signs) / len(signs)


def test_all_permutations_of_four():
    want = np.array([[kendalltau(x, z).statistic for z in TOTAL] for x in TOTAL])
    np.testing.assert_allclose(Kendall()(TOTAL), want, atol=1e-14)
    discordant = np.rint(6 * (1 - want) / 2)
    np.testing.assert_allclose(Mallows(0.3)(TOTAL), np.exp(-0.3 * discordant), rtol=1e-14)
    np.testing.assert_array_equal(np.diag(Mallows(0.3)(TOTAL)), 1.0)
    assert Kendall()(TOTAL).min() == -1.0
    phi = Kendall().features(TOTAL)
    assert phi.shape == (24, 6)
    np.testing.assert_allclose((phi @ phi.T).toarray(), want, atol=1e-14)


ranks = st.sampled_from([1.0, 2.0, 3.0, 4.0, np.nan])
row = st.lists(ranks, min_size=4, max_size=4)


@pytest.mark.parametrize("unranked", ["between", "last"])
@settings(max_examples=40, deadline=None)
@given(x=row, z=row)
def test_incomplete_rankings_are_means_over_complete_ones(unranked, x, z):
    k = Kendall(unranked, ties=True)
    pairs = itertools.product(completions(x, unranked), completions(z, unranked))
    want = np.mean([tau(a, b) for a, b in pairs])
    np.testing.assert_allclose(k([x], [z]), [[want]], atol=1e-13)
    phi, psi = k.features([x]), k.features([z], like=[x])
    np.testing.assert_allclose((phi @ psi.T).toarray(), k([x], [z]), atol=1e-14)
    gap = 6 * (k([x]) + k([z]) - 2 * k([x], [z])) / 4
    np.testing.assert_allclose(
        Mallows(0.7, unranked, ties=True)([x], [z]), np.exp(-0.7 * gap), rtol=1e-12
    )


def test_only_the_order_counts_and_items_may_be_renamed():
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(6) for _ in range(5)], dtype=float)
    items = rng.permutation(6)
    for k in (Kendall(), Mallows(0.2)):
        np.testing.assert_allclose(k(X[:, items]), k(X), atol=1e-15)
        np.testing.assert_allclose(k(10 * X**2 + 3), k(X), atol=1e-15)


def test_a_ranking_of_nothing_is_at_the_origin():
    none = np.full((1, 4), np.nan)
    np.testing.assert_array_equal(Kendall()(none, TOTAL), np.zeros((1, 24)))
    assert Kendall()(none) == 0.0
    np.testing.assert_array_equal(Normalized(Kendall())(none), [[0.0]])
    assert Mallows()(none) == 1.0


def test_many_items_take_several_parts():
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(120) for _ in range(4)])
    want = [[kendalltau(x, z).statistic for z in X] for x in X]
    np.testing.assert_allclose(Kendall()(X), want, atol=1e-13)


# ---------------------------------------------------------------------- pre-images


@pytest.mark.parametrize("kernel", [Kendall(), Mallows(0.2)], ids=str)
def test_the_mean_of_rankings(kernel):
    rng = np.random.default_rng(0)
    centre = np.array([3.0, 1.0, 4.0, 2.0])
    X = np.array([centre] * 4 + [rng.permutation(4) + 1 for _ in range(5)])
    f = Expansion.mean(kernel, X)
    found = f.preimage()
    best = (kernel.diag(TOTAL)[:, None] - 2 * f(TOTAL)).min() + f.norm()[0] ** 2
    np.testing.assert_allclose(found.residuals, [best], atol=1e-12)
    assert found.methods == ("search",)
    assert found.points.shape == (1, 4)
    one = Expansion(kernel, X[:1], [1.0]).preimage()
    np.testing.assert_array_equal(one.points, [centre])
    assert one.residuals[0] < 1e-12


def test_preimages_of_incomplete_rankings_are_complete():
    X = np.array([[1, 2, np.nan, np.nan], [np.nan, 1, 2, 3], [1, np.nan, 2, np.nan]])
    found = Expansion.mean(Kendall(), X).preimage()
    np.testing.assert_array_equal(found.points, [[1, 2, 3, 4]])
    zero = Expansion.mean(Kendall(), X - 1).preimage()
    np.testing.assert_array_equal(zero.points, [[0, 1, 2, 3]])


# ---------------------------------------------------------------------- estimators and errors


def test_estimators_take_missing_ranks():
    rng = np.random.default_rng(0)
    X = np.argsort(rng.normal(size=(40, 6)) + np.arange(6) * np.repeat([1, -1], 20)[:, None])
    X = np.argsort(X, axis=1) + 1.0
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.repeat([0, 1], 20)
    assert SVC(kernel=Mallows(0.2)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.8
    assert KernelPCA(2, kernel=Kendall()).fit_transform(X).shape == (40, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: Kendall()([[1, 2], [1, -2]]),
            ValueError,
            "Kendall: point 1 gives item 1 the rank -2",
        ),
        (lambda: Kendall()([[1, np.inf]]), ValueError, "point 0 gives item 1 the rank inf"),
        (
            lambda: Mallows()([[1, 2, 3], [2, 1, 2]]),
            ValueError,
            "Mallows: point 1 gives the rank 2 to the items 0, 2; pass ties=True",
        ),
        (lambda: Kendall()([[1], [1]]), ValueError, r"at least two items.* got shape \(2, 1\)"),
        (lambda: Kendall()([1, 2]), ValueError, r"got shape \(2,\)"),
        (lambda: Kendall()([[1, 2], [1]]), TypeError, "all of the same length"),
        (lambda: Kendall()([["a", "b"]]), TypeError, "requires rows of ranks"),
        (lambda: Kendall()([[1, 2]], [[1, 2, 3]]), ValueError, "of 2 items with rankings of 3"),
        (lambda: Kendall("first"), ValueError, "unranked must be one of"),
        (lambda: Kendall(ties=2), TypeError, "ties must be a bool"),
        (lambda: Mallows(0.0), ValueError, "Mallows: decay must be positive"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()
