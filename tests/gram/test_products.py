"""Test products of a tile with few columns against the BLAS."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.gram import TiledGram
from mercer.gram._tile_products import is_faster_than_blas, pad_columns, tile_product, tile_products
from mercer.kernels import RBF

sizes = st.integers(1, 21)


@settings(max_examples=60, deadline=None)
@given(n=sizes, m=sizes, c=st.integers(1, 9), dtype=st.sampled_from([np.float64, np.float32]))
def test_products(n, m, c, dtype):
    rng = np.random.default_rng(n + 100 * m)
    T, V, U = (rng.normal(size=s).astype(dtype) for s in ((n, m), (m, c), (n, c)))
    V, U = pad_columns(V), pad_columns(U)
    width = V.shape[1]
    out, mirror = np.full((n, width), np.nan, dtype), np.full((width, m), np.nan, dtype)
    tile_products(T, np.ascontiguousarray(V.T), U, out, mirror)
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(out, T @ V, atol=tolerance * 10)
    np.testing.assert_allclose(mirror, U.T @ T, atol=tolerance * 10)
    alone = tile_product(T, np.ascontiguousarray(V.T), np.full((n, width), np.nan, dtype))
    np.testing.assert_allclose(alone, T @ V, atol=tolerance * 10)


def test_padding():
    V = np.ones((4, 5))
    assert pad_columns(V).shape == (4, 6)
    assert np.array_equal(pad_columns(V)[:, 5], np.zeros(4))
    assert pad_columns(V[:, :3]).base is V  # already a multiple of three, so nothing is copied


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 17, 48, 49])
def test_every_number_of_columns(columns):
    rng = np.random.default_rng(columns)
    X, Z = rng.normal(size=(900, 3)), rng.normal(size=(500, 3))
    V, W = rng.normal(size=(900, columns)), rng.normal(size=(500, columns))
    assert is_faster_than_blas(V) == (2 <= columns <= 48)
    np.testing.assert_allclose(TiledGram(RBF(), X) @ V, RBF()(X) @ V, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(TiledGram(RBF(), X, Z) @ W, RBF()(X, Z) @ W, rtol=1e-11, atol=1e-11)
