"""Compiled loops, and the small functions that they have instead of slow ones."""

import numpy as np
import pytest

from mercer._runtime import jit, larger, number, smaller, word


@jit()
def _clipped(x, out):
    for i in range(len(x)):
        out[i] = larger(smaller(x[i], 1.0), -1.0)


@jit()
def _there_and_back(x, words, out):
    for i in range(len(x)):
        words[i] = word(x[i])
        out[i] = number(words[i])


def test_bounds_pass_over_what_is_not_a_number():
    x, out = np.array([-3.0, 0.5, 2.0, np.nan]), np.empty(4)
    _clipped(x, out)
    assert out.tolist() == [-1.0, 0.5, 1.0, 1.0]
    assert (smaller(1.0, 2.0), larger(1.0, 2.0)) == (1.0, 2.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_of_numbers(dtype):
    x = np.array([1.5, -0.75, 3e-20, np.inf], dtype=dtype)
    words, out = np.empty(4, dtype=f"i{x.itemsize}"), np.empty_like(x)
    _there_and_back(x, words, out)
    np.testing.assert_array_equal(words, x.view(words.dtype))
    np.testing.assert_array_equal(out, x)
    assert [word(value) for value in x] == words.tolist()
    assert [number(value) for value in words] == x.tolist()
