"""Count, mean and co-moment: merging parts gives the same result as all rows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer import NotPositiveDefiniteError
from mercer.solvers import Moments

numbers = st.floats(-100.0, 100.0, allow_subnormal=False)


def some_rows(most=12, columns=3):
    return st.integers(0, most).flatmap(lambda n: arrays(float, (n, columns), elements=numbers))


def of(Phi, weights=None):
    return Moments.of(Phi, weights, np.square(Phi).sum(axis=1) + 0.5)


def assert_same(a, b, scale=1e4):
    assert a.rows == b.rows
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-13)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-13 * np.sqrt(scale))
    np.testing.assert_allclose(a.comoment, b.comoment, atol=1e-11 * scale)
    np.testing.assert_allclose(a.residual, b.residual, atol=1e-11 * scale)


@settings(max_examples=60, deadline=None)
@given(Phi=some_rows(30))
def test_of_rows(Phi):
    moments = of(Phi)
    n = len(Phi)
    assert (moments.rows, moments.weight) == (n, n)
    if n:
        np.testing.assert_allclose(moments.mean, Phi.mean(axis=0), atol=1e-11)
        want = n * np.atleast_2d(np.cov(Phi.T, bias=True))
        np.testing.assert_allclose(moments.comoment, want, atol=1e-8)
        assert moments.residual == pytest.approx(0.5 * n, abs=1e-8)
    assert np.array_equal(moments.comoment, moments.comoment.T)


@settings(max_examples=60, deadline=None)
@given(A=some_rows(), B=some_rows(), C=some_rows())
def test_parts_merge_in_any_order(A, B, C):
    a, b, c = of(A), of(B), of(C)
    whole = of(np.concatenate([A, B, C]))
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(c.merge(a).merge(b), whole)


@settings(max_examples=40, deadline=None)
@given(Phi=some_rows(10), data=st.data())
def test_weights_are_repetitions(Phi, data):
    counts = data.draw(arrays(int, len(Phi), elements=st.integers(0, 4)))
    weighted, repeated = of(Phi, counts.astype(float)), of(np.repeat(Phi, counts, axis=0))
    assert weighted.rows == np.count_nonzero(counts)  # each point is counted once
    assert_same(weighted, Moments(weighted.rows, *list(vars(repeated).values())[1:]))


@pytest.mark.parametrize("parts", [1, 2, 50])
def test_a_large_mean_does_not_cancel(parts):
    """Deviations of size 1 around 1e8: sum phi phi^T - n m m^T would lose all their digits."""
    # exact when added to 1e8
    deviations = np.random.default_rng(0).integers(-8, 9, size=(400, 3)) / 8.0
    Phi = 1e8 + deviations
    moments = Moments.none(3)
    for part in np.array_split(Phi, parts):
        moments = moments.merge(Moments.of(part))
    want = 400 * np.cov(deviations.T, bias=True)
    np.testing.assert_allclose(moments.comoment, want, rtol=1e-6, atol=1e-4)
    naive = Phi.T @ Phi - 400 * np.outer(Phi.mean(axis=0), Phi.mean(axis=0))
    assert np.abs(naive - want).max() > 1.0


def test_no_points():
    none, some = Moments.none(2), of(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert_same(none.merge(some), some)
    assert_same(some.merge(none), some)
    assert_same(none.merge(none), none)
    assert_same(Moments.of(np.empty((0, 2))), none)
    assert_same(Moments.of(np.ones((3, 2)), np.zeros(3)), none)  # zero weight


def test_a_residual_that_rounding_made_negative_counts_as_zero():
    Phi = np.array([[1.0], [2.0]])
    moments = Moments.of(Phi, None, np.array([1.0 - 1e-15, 4.5]))
    assert moments.residual == 0.5
    assert Moments.of(Phi).residual == 0.0
    with pytest.raises(NotPositiveDefiniteError, match=r"goes down to -0\.25, with .* up to 3\.75"):
        Moments.of(Phi, None, np.array([1.5, 3.75]))


def test_parts_of_different_features_do_not_merge():
    with pytest.raises(
        ValueError, match="moments of 2 features cannot be merged with moments of 3"
    ):
        Moments.none(2).merge(Moments.none(3))


def test_merging_changes_neither_part():
    a, b = of(np.array([[1.0, 2.0]])), of(np.array([[4.0, 0.0], [0.0, 1.0]]))
    kept = a.mean.copy(), a.comoment.copy(), b.mean.copy(), b.comoment.copy()
    a.merge(b)
    for was, now in zip(kept, (a.mean, a.comoment, b.mean, b.comoment), strict=True):
        assert np.array_equal(was, now)


def test_the_bits_do_not_depend_on_the_threads():
    Phi = np.random.default_rng(0).normal(size=(5000, 60))
    one, two = (Moments.of(Phi, n_threads=threads) for threads in (1, 2))
    assert np.array_equal(one.comoment, two.comoment) and np.array_equal(one.mean, two.mean)
