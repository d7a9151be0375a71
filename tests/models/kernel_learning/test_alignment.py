"""alignment(): against its definition, in tiles, with weights, and for invalid input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import alignment
from mercer.kernels import RBF, Constant, Linear, Polynomial, Spectrum
from mercer.models.kernel_learning import TargetAlignment
from mercer.models.kernel_learning._kernel_alignment import GramInnerProducts


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


def by_definition(K, L):
    A, B = centred(K), centred(L)
    return np.sum(A * B) / np.sqrt(np.sum(A * A) * np.sum(B * B))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 60), st.integers(0, 10**6), st.booleans())
def test_the_definition_with_weights_as_repeated_points(n, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    times = rng.integers(0, 3, n) if weighted else np.ones(n, dtype=int)
    times[:2] = 1
    Z = np.repeat(X, times, axis=0)
    weights = times.astype(float) if weighted else None
    found = alignment(RBF(1.3), Polynomial(2), X, sample_weight=weights)
    assert found == pytest.approx(by_definition(RBF(1.3)(Z), Polynomial(2)(Z)), abs=1e-10)


def test_tiles_add_up_whatever_their_number():
    X = np.random.default_rng(0).normal(size=(900, 3))
    y = X[:, 0] ** 2
    expected = by_definition(RBF()(X), np.outer(y, y))
    assert alignment(RBF(), y, X) == pytest.approx(expected, rel=1e-12)
    assert alignment(RBF()(X), y) == pytest.approx(expected, rel=1e-12)


def test_a_factor_and_a_constant_do_not_matter_even_where_they_would_cancel():
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert alignment(Linear(), 3 * Linear() + 1e6, X) == pytest.approx(1.0, abs=1e-9)
    # the alignment is 1 - 1e-8
    assert alignment(RBF(1e4), Linear(), X) == pytest.approx(1.0, abs=1e-7)


def test_labels_are_indicators_and_numbers_are_numbers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    names = np.array(["a", "b", "c"])[np.arange(60) % 3]
    Y = np.eye(3)[np.arange(60) % 3]
    assert alignment(RBF(), names, X) == pytest.approx(by_definition(RBF()(X), Y @ Y.T))
    assert alignment(RBF(), np.arange(60) % 3, X) == alignment(RBF(), names, X)
    numbers = 0.5 + np.arange(60) % 3
    expected = by_definition(RBF()(X), np.outer(numbers, numbers))
    assert alignment(RBF(), numbers, X) == pytest.approx(expected)


def test_structured_points_and_rules():
    words = ["cat", "cart", "dog", "dogs", "bird"]
    assert 0 < alignment(Spectrum(1), Spectrum(2), words) < 1
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert alignment("linear", RBF("median"), X) > 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Linear(), RBF()), "k1 is a kernel, so X is needed"),
        ((Constant(2.0), RBF(), np.eye(4)), "k1 is constant on these 4 points"),
        ((RBF(), np.ones(4), np.eye(4)), "k2 is constant on these 4 points"),
        ((RBF(), np.arange(3.0), np.eye(4)), "k1 has 4 points and k2 has 3"),
        ((RBF(), np.float64(3.0), np.eye(4)), "k2 must be a kernel, a square matrix or targets"),
        ((RBF(), np.array([0.0, np.nan, 1.0, 2.0]), np.eye(4)), "NaN"),
        ((Polynomial(400), RBF(), 1e3 * np.arange(4.0)[:, None]), "not finite"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        alignment(*arguments)


def test_weights_are_checked_and_memory_is_limited():
    X = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.raises(ValueError, match="500 numbers >= 0"):
        alignment(RBF(), Linear(), X, sample_weight=-np.ones(500))
    with pytest.raises(MemoryError, match="budget"):
        alignment(RBF(), Linear(), X, max_memory="100 kB")


def test_the_number_of_threads_changes_no_bit():
    from mercer._core import resource_scope
    from mercer.gram import gram

    X = np.random.default_rng(0).normal(size=(1000, 2))
    grams = [gram(k, X, storage="tiled") for k in (RBF(), Linear(), Polynomial(2))]
    with resource_scope(n_threads=1):
        one = GramInnerProducts.of(grams)
    with resource_scope(n_threads=2):
        two = GramInnerProducts.of(grams)
    assert np.array_equal(one.products, two.products)


@pytest.mark.parametrize("rule", ["scale", "median", "scott"])
def test_rules_of_the_kernels_see_weights(rule):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2)) + 3.0
    y = np.sin(X[:, 0])
    w = np.where(X[:, 1] > 3.0, rng.integers(1, 4, size=40), 0)
    weighted = alignment(RBF(rule), y, X, sample_weight=w)
    rows = np.repeat(np.arange(40), w)
    assert weighted == pytest.approx(alignment(RBF(rule), y[rows], X[rows]), rel=1e-10)
    absent = alignment(RBF(rule), y, X, sample_weight=(w > 0) * 1.0)
    assert absent == pytest.approx(alignment(RBF(rule), y[w > 0], X[w > 0]), rel=1e-10)
    with pytest.raises(ValueError, match="sample_weight must be 40 numbers"):
        alignment(RBF(rule), y, X, sample_weight=w[:-1])


def test_alignments_that_are_not_defined():
    overflowing = np.array([[1e200], [1.0], [2.0]])
    targets = TargetAlignment(Polynomial(3), overflowing, np.eye(3), None, None)
    with pytest.raises(ValueError, match=r"the kernel Polynomial.* overflows on these points"):
        targets.value_and_gradient()
    constant = TargetAlignment(RBF(), np.eye(3), np.ones((3, 1)), None, None)
    value, gradient = constant.value_and_gradient()
    assert value == 0.0 and np.array_equal(gradient, [0.0])
