"""Test RPCholesky of small matrices: the same distribution and errors as `rpcholesky`."""

import numpy as np
import pytest

from mercer import NotPositiveDefiniteError
from mercer.gram import DenseGram, rpcholesky
from mercer.gram._landmark_selection import choose_with_residual
from mercer.gram._pivoted_cholesky import sequential_rpcholesky
from mercer.kernels import RBF, Callable

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))


def test_what_is_left():
    K = RBF()(X)
    pivots, left = sequential_rpcholesky(K, 12, 1e-12, np.random.default_rng(3))
    part = K[:, pivots] @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])
    np.testing.assert_allclose(left, np.diag(K - part), atol=1e-9)
    assert len(set(pivots.tolist())) == 12 and np.abs(left[pivots]).max() < 1e-20


def test_the_law_of_the_first_and_of_the_rest():
    K = np.diag([1.0, 2.0, 5.0, 0.0])
    draws = [sequential_rpcholesky(K, 3, 1e-12, np.random.default_rng(s))[0] for s in range(2000)]
    assert all(len(found) == 3 for found in draws)
    first = np.bincount([found[0] for found in draws], minlength=4) / 2000
    np.testing.assert_allclose(first, [0.125, 0.25, 0.625, 0.0], atol=0.04)
    gram, seeds = DenseGram(RBF(), X), range(60)
    ours = [
        sequential_rpcholesky(gram.array, 10, 1e-12, np.random.default_rng(s))[1] for s in seeds
    ]
    theirs = [rpcholesky(gram, 10, random_state=s).trace for s in seeds]
    deviation = np.std(theirs) * np.sqrt(2 / 60)
    assert abs(np.sum(ours) / 60 - np.mean(theirs)) < 4 * deviation


def test_fewer_if_nothing_is_left():
    twice = np.vstack([X[:3], X[:3]])
    pivots, left = choose_with_residual(RBF(), twice, 5, np.random.default_rng(0))
    assert len(pivots) == 3
    assert left < 1e-12


def test_few_points_and_many_have_one_meaning():
    many = rng.normal(size=(700, 2))
    _, few = choose_with_residual(RBF(), many[:400], 20, np.random.default_rng(0))
    _, more = choose_with_residual(RBF(), many, 20, np.random.default_rng(0))
    assert 0.3 < few / more < 3.0


def test_what_is_not_a_kernel_is_refused():
    def mirrored(A, B):
        return np.exp(((A[:, None] - B) ** 2).sum(axis=2))

    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite"):
        choose_with_residual(Callable(mirrored, contract="matrix"), X, 5, np.random.default_rng(0))
