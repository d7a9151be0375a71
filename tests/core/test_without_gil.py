"""Eigenvalue decompositions equal those of SciPy, and other threads run meanwhile."""

import ctypes
import threading
import time

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import cython_lapack

from mercer._core import _without_gil, one_blas_thread
from mercer._core._without_gil import _MIN_ROWS, eigh


def symmetric(n, dtype=np.float64, order="C"):
    A = np.random.default_rng(0).normal(size=(n, n))
    return np.array(A + A.T, dtype=dtype, order=order)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"driver": "evd"},
        {"driver": "evr", "lower": False},
        {"subset_by_index": (_MIN_ROWS - 5, _MIN_ROWS - 1)},
        {"subset_by_index": (3, 3), "check_finite": False},
    ],
)
def test_the_results_are_those_of_scipy(dtype, order, options):
    A = symmetric(_MIN_ROWS, dtype, order)
    before = A.copy()
    with one_blas_thread:
        values, vectors = eigh(A, **options)
        wanted = scipy.linalg.eigh(A, **options)
    assert np.array_equal(A, before)
    assert values.dtype == vectors.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(values, wanted[0], atol=tolerance * np.abs(wanted[0]).max())
    assert vectors.shape == wanted[1].shape
    agreement = np.abs(np.sum(vectors * wanted[1], axis=0))  # the signs are arbitrary
    np.testing.assert_allclose(agreement, 1.0, atol=100 * tolerance)


def test_the_matrix_is_overwritten_only_on_request_and_if_possible():
    A = symmetric(_MIN_ROWS, order="F")
    wanted = scipy.linalg.eigh(A)[0]
    fixed = A.copy(order="F")
    fixed.flags.writeable = False
    np.testing.assert_allclose(eigh(fixed, overwrite_a=True)[0], wanted, atol=1e-10)
    assert np.array_equal(fixed, A)
    values, vectors = eigh(A, driver="evd", overwrite_a=True)
    assert vectors.base is A or vectors is A
    np.testing.assert_allclose(values, wanted, atol=1e-10)


def test_other_matrices_are_left_to_scipy(monkeypatch):
    A = symmetric(_MIN_ROWS)
    A[0, 0] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        eigh(A)
    with pytest.raises(ValueError, match="indices are not valid"):
        eigh(symmetric(_MIN_ROWS), subset_by_index=(0, _MIN_ROWS))
    for a, options in (
        (symmetric(5), {}),
        (symmetric(_MIN_ROWS), {"eigvals_only": True}),
        (symmetric(_MIN_ROWS).astype(complex), {"driver": "evd"}),
    ):
        for got, wanted in zip(eigh(a, **options), scipy.linalg.eigh(a, **options), strict=True):
            assert np.array_equal(got, wanted)
    monkeypatch.setattr(_without_gil, "routine_without_gil", lambda *arguments: None)
    A = symmetric(_MIN_ROWS)
    assert np.array_equal(eigh(A)[0], scipy.linalg.eigh(A)[0])


@pytest.mark.parametrize("driver", ["evd", "evr"])
def test_other_threads_run_during_a_decomposition(driver):
    steps, is_done = [], threading.Event()

    def tick():
        while not is_done.is_set():
            steps.append(time.monotonic())
            time.sleep(0.001)

    A = symmetric(600)
    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    eigh(A, driver=driver)
    ended = time.monotonic()
    is_done.set()
    thread.join()
    assert sum(begun < one < ended for one in steps) >= 5  # with the lock, at most one


def test_a_routine_that_does_not_converge_raises_an_error():
    def routine(*arguments):
        ctypes.cast(arguments[-1], ctypes.POINTER(ctypes.c_int))[0] = 3

    with pytest.raises(np.linalg.LinAlgError, match=r"did not converge \(LAPACK info=3\)"):
        _without_gil._call_with_workspace(routine, np.dtype(float))


def test_unknown_routines_and_types_are_not_called():
    kinds = ("char",) * 3
    assert _without_gil.routine_without_gil(cython_lapack, "no_such_routine", kinds) is None
    assert _without_gil.routine_without_gil(cython_lapack, "dsyevd", kinds) is None
