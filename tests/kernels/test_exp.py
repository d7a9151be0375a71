"""The in-place exponential: accuracy over its range, limits, and compilation without a cache."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer._core import jit
from mercer.kernels.vectors._fast_math import exp_inplace


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float64, -708.0), (np.float32, -87.0)])
def test_as_close_as_the_rounding_of_its_argument(dtype, lowest):
    x = np.linspace(lowest, 0.0, 400_000).astype(dtype).reshape(400, -1)
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(exp_inplace(x.copy()) / exact - 1.0)
    assert np.all(error <= (2.0 + 2.0 * np.abs(x)) * np.finfo(dtype).eps)


@given(st.floats(0.0, 1e308), st.floats(-1e3, 0.0))
def test_scale_and_cap(t, scale):
    value = exp_inplace(np.array([[t]]), scale)[0, 0]
    assert value == pytest.approx(np.exp(np.maximum(scale * t, -800.0)), rel=1e-12, abs=1e-300)
    assert exp_inplace(np.array([[-t]]), scale)[0, 0] == 1.0  # arguments above 0 are clipped


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ends(dtype):
    x = np.array([[0.0, -0.0, -1e30, -np.inf, np.nan, 3.0]], dtype=dtype)
    assert np.array_equal(exp_inplace(x), [[1.0, 1.0, 0.0, 0.0, np.nan, 1.0]], equal_nan=True)


def test_compilation_without_a_writable_cache_folder(monkeypatch):
    real = numba.njit

    def without_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(numba, "njit", without_cache)
    assert jit()(lambda x: x + 1)(2) == 3
