"""Herding and thinning: greedy steps against brute force, weights, and guarantees."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Expansion, NotDifferentiableError, herd, mmd, thin
from mercer.gram import TiledGram
from mercer.kernels import RBF, Callable, Distance, Linear, Select, ThinPlate, White
from mercer.models.mean_embedding import _summary
from mercer.models.mean_embedding._summary import MeanEmbedding, _halve, _swap, optimal_weights

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
each = pytest.mark.parametrize("summarise", [herd, thin])


def test_herding_is_greedy():
    kernel = RBF(0.8)
    chosen = []
    for _ in range(8):
        values = {
            i: mmd(X[[*chosen, i]], X, kernel, "biased") for i in range(60) if i not in chosen
        }
        chosen.append(min(values, key=values.get))
    found = herd(X, 8, kernel)
    assert found.indices.tolist() == chosen
    assert found.mmd == pytest.approx(values[chosen[-1]], rel=1e-8)
    assert herd(X, 5, kernel).indices.tolist() == chosen[:5]  # one point after the other


@each
@pytest.mark.parametrize("kernel", [None, RBF(0.5), Distance(), RBF() + White(0.1)])
@pytest.mark.parametrize("m", [1, 7, 40, 60])
def test_what_a_summary_says_is_true(summarise, kernel, m):
    found = summarise(X, m, kernel)
    assert len(set(found.indices.tolist())) == m
    np.testing.assert_array_equal(found.points, X[found.indices])
    np.testing.assert_array_equal(found.weights, np.full(m, 1 / m))
    # with noise, equal points are different observations
    if not isinstance(found.kernel, type(RBF() + White(0.1))):
        expected = mmd(found.points, X, found.kernel, "biased")
        assert found.mmd == pytest.approx(expected, abs=1e-12)
    if m == 60:
        assert found.mmd < 1e-12
    best = summarise(X, m, kernel, weights="optimal")
    np.testing.assert_array_equal(best.indices, found.indices)
    assert best.weights.sum() == pytest.approx(1.0)
    assert best.mmd <= found.mmd + 1e-12


def test_optimal_weights_are():
    S = X[:12]
    K, mu = RBF()(S), RBF()(S, X).mean(axis=1)
    w = optimal_weights(K, mu)
    KKT = np.block([[K, np.ones((12, 1))], [np.ones((1, 12)), np.zeros((1, 1))]])
    np.testing.assert_allclose(w, np.linalg.solve(KKT, [*mu, 1.0])[:12], rtol=1e-6, atol=1e-9)
    twice = np.r_[0:12, 0]  # a point that occurs twice
    shared = optimal_weights(K[np.ix_(twice, twice)], mu[twice])
    assert shared[0] == pytest.approx(shared[12]) == pytest.approx(w[0] / 2, rel=1e-4)


def test_the_expansion_is_close_to_the_mean():
    found = herd(X, 15, RBF(1.0), weights="optimal")
    mean = RBF(1.0)(X).mean(axis=1)
    np.testing.assert_allclose(found.expansion(X)[:, 0], mean, atol=0.01)


def test_refinement_leaves_the_data_and_comes_closer():
    start, found = herd(X, 6, RBF(1.0)), herd(X, 6, RBF(1.0), refine=100)
    assert found.mmd < 0.3 * start.mmd
    assert found.indices is None and found.points.shape == (6, 2)
    assert found.mmd == pytest.approx(mmd(found.points, X, RBF(1.0), "biased"), abs=1e-13)
    start = herd(X, 6, RBF(1.0), weights="optimal")
    best = herd(X, 6, RBF(1.0), refine=50, weights="optimal")
    assert best.mmd < 0.7 * start.mmd and best.weights.sum() == pytest.approx(1.0)
    exact = best.expansion.distance(Expansion.mean(RBF(1.0), X))[0] ** 2
    assert best.mmd == pytest.approx(exact, abs=1e-12)
    sparse = herd(sp.csr_array(X), 6, RBF(1.0), refine=5)
    assert sparse.mmd <= start.mmd
    product = Callable(lambda A, B: A @ B.T)
    with pytest.raises(NotDifferentiableError):
        herd(X, 3, product, refine=3)
    with pytest.raises(
        ValueError, match="refine=3 moves points along a gradient, which requires vec"
    ):
        herd(["a", "b"], 1, lambda s, t: float(s == t), refine=3)


def test_thinning_is_never_behind_its_candidates():
    for seed in range(5):
        found = thin(X, 7, RBF(0.7), random_state=seed)
        evenly = mmd(X[np.arange(7) * 60 // 7], X, RBF(0.7), "biased")
        assert found.mmd <= evenly
    mean = MeanEmbedding.of(X, RBF(0.7), None)
    equal, start = np.full(7, 1 / 7), np.arange(7)
    swapped = _swap(mean, start)
    assert mean.squared_distance(swapped, equal) < mean.squared_distance(start, equal)
    # no unused point is left to swap
    np.testing.assert_array_equal(_swap(mean, np.arange(60)), np.arange(60))


def test_halves_are_closer_than_random_ones():
    Z = rng.normal(size=(1000, 2))
    K = TiledGram(RBF(1.0), Z)
    ours, random = [], []
    for seed in range(3):
        numbers = np.random.default_rng(seed)
        a, b = _halve(K, numbers.permutation(1000), numbers, 0.5)
        assert sorted([*a, *b]) == list(range(1000)) and len(a) == 500
        ours.append(mmd(Z[a], Z[b], RBF(1.0), "biased"))
        split = numbers.permutation(1000)
        random.append(mmd(Z[split[:500]], Z[split[500:]], RBF(1.0), "biased"))
    assert np.mean(ours) < 0.3 * np.mean(random)


def test_halving_does_not_depend_on_its_blocks(monkeypatch):
    K = TiledGram(RBF(1.0), X)
    whole = _halve(K, np.arange(60), np.random.default_rng(1), 0.5)
    tuning = dataclasses.replace(_summary._TUNING, points_per_tile=6, rows_per_task=11)
    monkeypatch.setattr(_summary, "_TUNING", tuning)
    parts = _halve(K, np.arange(60), np.random.default_rng(1), 0.5)
    np.testing.assert_array_equal(whole[0], parts[0])


def test_points_that_coincide():
    Z = np.repeat(X[:5], 8, axis=0)
    for found in (herd(Z, 5, RBF(0.3)), thin(Z, 5, RBF(0.3)), thin(np.ones((9, 1)), 2, RBF())):
        assert found.mmd < 1e-12


@each
def test_words(summarise):
    words = ["aa", "ab", "ba", "bb"] * 4 + ["zz"] * 4

    def shared(s, t):
        return float(len(set(s) & set(t)))

    found = summarise(words, 5, shared)
    assert len(found.points) == 5 and "zz" in found.points
    assert found.mmd == pytest.approx(mmd(found.points, words, shared, "biased"), abs=1e-12)


@each
def test_values_and_seeds(summarise):
    found = summarise(X, 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.mmd = 0.0
    assert "mmd=" in repr(found) and "points" not in repr(found)
    np.testing.assert_array_equal(summarise(X, 4).indices, found.indices)


def test_what_the_points_have_in_common_costs_no_digits():
    for far in (1e4, 1e8):
        for near, found in ((f(X, 5, Linear()), f(X + far, 5, Linear())) for f in (herd, thin)):
            np.testing.assert_array_equal(found.indices, near.indices)
            assert found.mmd == pytest.approx(near.mmd, rel=1e-5, abs=1e-12)


@each
def test_a_negative_distance_is_not_called_zero(summarise):
    with pytest.raises(ValueError, match=r"is -.* < 0: ThinPlate.* is not conditionally positive"):
        summarise(X, 5, ThinPlate())


def test_one_point_of_many_takes_no_time():
    Z = np.random.default_rng(0).normal(size=(4000, 1))
    halvings = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mercer.models.mean_embedding._summary._halve",
            lambda *args: halvings.append(1) or _halve(*args),
        )
        assert thin(Z, 1, RBF()).mmd <= mmd(Z[:1], Z, RBF(), "biased")
    assert len(halvings) < 450  # fewer than 2^11


def test_what_is_refused():
    for bad in (0, 61, 2.5, True):
        with pytest.raises(ValueError, match=f"n_points must be .* from 1 to 60, .* got {bad}"):
            thin(X, bad)
    with pytest.raises(ValueError, match="weights must be 'equal' or 'optimal', got 'best'"):
        herd(X, 3, weights="best")
    with pytest.raises(ValueError, match=r"refine must be a number of steps .* got -1"):
        herd(X, 3, refine=-1)
    pd = pytest.importorskip("pandas")
    with pytest.raises(
        ValueError, match="refine=5 moves points along a gradient, which requires vec"
    ):
        herd(pd.DataFrame(X, columns=["a", "b"]), 5, Select(RBF(), ["a"]), refine=5)
    with pytest.raises(ValueError, match="X has 0 points, but at least 1 are needed"):
        herd(X[:0], 1)
    with pytest.raises(ValueError, match=r"entries that are not finite; .* Scale the features"):
        thin(1e200 * X, 3, Linear())


@pytest.mark.parametrize("weights", ["equal", "optimal"])
def test_a_refined_summary_reports_its_own_distance(weights):
    A = np.random.default_rng(4).normal(size=(120, 2))
    noisy = herd(A, 8, RBF() + White(0.3), refine=20, weights=weights)
    kernel = RBF()(np.concatenate([noisy.points, A]))
    w = np.append(noisy.weights, np.full(120, -1 / 120))
    noise = 0.3 * (noisy.weights @ noisy.weights + 1 / 120)
    assert noisy.mmd == pytest.approx(w @ kernel @ w + noise, rel=1e-8)
    far = herd(A + 1e8, 8, Linear(), refine=20, weights=weights)
    truth = np.sum((far.weights @ (far.points - (A + 1e8).mean(axis=0))) ** 2)
    assert far.mmd == pytest.approx(truth, abs=1e-8)  # the coordinates have eight digits left
