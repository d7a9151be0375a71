"""Functions compiled with numba, fmin and fmax, bitcasts, and the on-disk cache."""

import importlib.util
import os
import tempfile

import numpy as np
import pytest

from mercer._core import bitcast_float, bitcast_int, fmax, fmin, jit


@jit()
def _clipped(x, out):
    for i in range(len(x)):
        out[i] = fmax(fmin(x[i], 1.0), -1.0)


@jit()
def _there_and_back(x, words, out):
    for i in range(len(x)):
        words[i] = bitcast_int(x[i])
        out[i] = bitcast_float(words[i])


def test_bounds_pass_over_what_is_not_a_number():
    x, out = np.array([-3.0, 0.5, 2.0, np.nan]), np.empty(4)
    _clipped(x, out)
    assert out.tolist() == [-1.0, 0.5, 1.0, 1.0]
    assert (fmin(1.0, 2.0), fmax(1.0, 2.0)) == (1.0, 2.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_of_numbers(dtype):
    x = np.array([1.5, -0.75, 3e-20, np.inf], dtype=dtype)
    words, out = np.empty(4, dtype=f"i{x.itemsize}"), np.empty_like(x)
    _there_and_back(x, words, out)
    np.testing.assert_array_equal(words, x.view(words.dtype))
    np.testing.assert_array_equal(out, x)
    assert [bitcast_int(value) for value in x] == words.tolist()
    assert [bitcast_float(value) for value in words] == x.tolist()


def test_a_cache_that_cannot_be_written_to_is_read(tmp_path, monkeypatch):
    """For example, a container image built by another user."""
    from numba import config

    source, folder = tmp_path / "loops.py", tmp_path / "cache"
    source.write_text("from mercer._core import jit\n\n\n@jit()\ndef twice(x):\n    return x + x\n")
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))

    def fresh():
        spec = importlib.util.spec_from_file_location("loops", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.twice(2.0) == 4.0
        return module.twice

    assert len(fresh().files) == 1
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK and access(path, how))

    def refuse(*_, **__):
        raise PermissionError("a folder of another user")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    again = fresh()
    assert sum(again._dispatcher.stats.cache_hits.values()) == 1
    assert again.files == []  # there is no writable folder
    source.write_text(source.read_text().replace("x + x", "2.0 * x"))
    assert sum(fresh()._dispatcher.stats.cache_hits.values()) == 0  # the source has changed
