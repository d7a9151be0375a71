"""Fits of few points use one thread of the BLAS, and give the others back."""

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from zoo import ESTIMATORS

from mercer import KernelRidge
from mercer._runtime._threads import _SHARED
from mercer.solvers import Cholesky

FITS = {type(estimator): estimator for estimator in ESTIMATORS}


def blas_threads():
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


class Watched:
    """Points that note how many threads the BLAS has when they are read."""

    def __init__(self, X):
        self.X, self.seen = X, set()
        self.shape, self.ndim = X.shape, 2

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        self.seen |= blas_threads()
        return np.array(self.X, dtype=dtype)


class Watching(Cholesky):
    """A solver that does."""

    def factorize(self, gram, shift=0.0, **options):
        Watching.seen = blas_threads()
        return super().factorize(gram, shift, **options)


@threadpool_limits.wrap(limits=2, user_api="blas")
@pytest.mark.parametrize("kind", FITS, ids=lambda kind: kind.__name__)
def test_every_fit_of_few_points_has_one_thread(kind):
    rng = np.random.default_rng(0)
    X = Watched(np.abs(rng.normal(size=(60, 3))))  # histograms, too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that stops early
        FITS[kind].fit(X, (np.arange(60) % 2).astype(float))
    assert X.seen == {1}
    assert blas_threads() == {2}


@threadpool_limits.wrap(limits=2, user_api="blas")
@pytest.mark.parametrize(("n", "threads"), [(_SHARED - 1, 1), (_SHARED, 2)])
def test_many_points_have_all_threads(n, threads):
    X = np.linspace(0.0, 1.0, n)[:, None]
    KernelRidge(kernel="rbf", gamma=1e6, solver=Watching()).fit(X, X[:, 0])
    assert Watching.seen == {threads}
    assert blas_threads() == {2}


@threadpool_limits.wrap(limits=2, user_api="blas")
def test_a_fit_that_fails_gives_the_threads_back():
    for bad in (np.full((5, 2), np.nan), 3.0, None):
        with pytest.raises((ValueError, TypeError)):
            KernelRidge().fit(bad, np.ones(5))
        assert blas_threads() == {2}


def test_the_bits_of_few_points_do_not_depend_on_the_threads():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            found.append(KernelRidge(kernel="rbf", alpha=1e-3).fit(X, y).dual_coef_)
    assert np.array_equal(*found)
