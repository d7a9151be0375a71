"""Fits of few points use one BLAS thread, and restore the number of threads."""

import threading
import warnings

import numpy as np
import pytest
from one_thread import blas_threads, needs_counts, watching
from threadpoolctl import threadpool_limits
from zoo import ESTIMATORS

from mercer import KernelRidge
from mercer._core import blas_threads as blas_threads_for
from mercer._core import entry_point, one_blas_thread
from mercer._core._threads import _MIN_BLAS_ROWS
from mercer._core.linalg import lapack

FITS = {type(estimator): estimator for estimator in ESTIMATORS}


class Watched:
    """Points that record the number of BLAS threads when they are read."""

    def __init__(self, X):
        self.X, self.seen = X, set()
        self.shape, self.ndim = X.shape, 2

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        self.seen |= blas_threads()
        return np.array(self.X, dtype=dtype)


@threadpool_limits.wrap(limits=2, user_api="blas")
@pytest.mark.parametrize("kind", FITS, ids=lambda kind: kind.__name__)
def test_every_fit_of_few_points_has_one_thread(kind):
    rng = np.random.default_rng(0)
    X = Watched(np.abs(rng.normal(size=(60, 3))))  # nonnegative, for kernels on histograms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fits that stop early
        FITS[kind].fit(X, (np.arange(60) % 2).astype(float))
    assert X.seen == {1}
    assert blas_threads() == {2}


@needs_counts
@pytest.mark.parametrize(
    ("n", "threads"), [(_MIN_BLAS_ROWS - 1, set()), (_MIN_BLAS_ROWS, {"BLAS"})]
)
def test_a_factorisation_of_many_points_has_all_blas_threads(n, threads, monkeypatch):
    X = np.linspace(0.0, 1.0, n)[:, None]
    K = np.exp(-1e6 * (X - X.T) ** 2) + np.eye(n)
    with watching(monkeypatch) as ran:
        entry_point(lapack.dpotrf)(K)
    assert set(ran) == threads


@needs_counts
def test_a_solve_with_few_right_hand_sides_has_one_blas_thread(monkeypatch):
    L = np.asfortranarray(np.eye(_MIN_BLAS_ROWS))
    with watching(monkeypatch) as ran:
        lapack.dpotrs(L, np.ones((_MIN_BLAS_ROWS, 2)), lower=1)
    assert not ran


def test_nothing_is_permitted_within_one_blas_thread():
    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread, blas_threads_for(10 * _MIN_BLAS_ROWS):
            assert blas_threads() == {1}
        with threadpool_limits(limits=1, user_api="blas"), blas_threads_for(10 * _MIN_BLAS_ROWS):
            assert blas_threads() == {1}  # a limit set by the user is never raised


@threadpool_limits.wrap(limits=2, user_api="blas")
def test_a_permission_ends_while_another_python_thread_is_inside_an_entry_point():
    inside, leave = threading.Event(), threading.Event()

    @entry_point
    def other():
        inside.set()
        leave.wait(10)

    @entry_point
    def factor():
        with blas_threads_for(10 * _MIN_BLAS_ROWS):
            seen = [blas_threads()]
            thread = threading.Thread(target=other)
            thread.start()
            inside.wait(10)
            seen.append(blas_threads())
            leave.set()
            thread.join(10)
            seen.append(blas_threads())
        return [*seen, blas_threads()]

    assert factor() == [{2}, {1}, {2}, {1}]
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
