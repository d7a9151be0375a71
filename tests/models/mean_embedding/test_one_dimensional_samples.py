"""Samples given as sequences of numbers are points with one column."""

import numpy as np
import pytest

from mercer import herd, hsic, independence_test, mmd, thin, two_sample_test
from mercer.kernels import RBF, Callable

rng = np.random.default_rng(0)
x, y = rng.normal(size=30), rng.normal(size=30) + 1.0


def forms(values):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    return [values, values.tolist(), tuple(values), pd.Series(values), pl.Series(values)]


@pytest.mark.parametrize("form", range(5))
def test_all_functions_accept_sequences_of_numbers(form):
    a, b = forms(x)[form], forms(y)[form]
    A, B = x[:, None], y[:, None]
    assert mmd(a, b) == mmd(A, B)
    assert hsic(a, b) == hsic(A, B)
    assert two_sample_test(a, b).pvalue == two_sample_test(A, B).pvalue
    assert independence_test(a, b).pvalue == independence_test(A, B).pvalue
    assert independence_test(np.column_stack([x, y]), b).pvalue <= 0.05
    np.testing.assert_array_equal(herd(a, 3).indices, herd(A, 3).indices)
    np.testing.assert_array_equal(thin(a, 3).indices, thin(A, 3).indices)


def test_labels_and_booleans_are_numbers():
    labels = (x > 0).astype(int)
    assert independence_test(x, labels).pvalue < 0.01
    assert independence_test(x, x > 0).pvalue < 0.01


def test_kernels_of_other_points_get_the_sequence_itself():
    k = Callable(lambda s, t: float(s == t), "pair")
    assert mmd([1, 2, 3], [1, 2, 3], kernel=k) == pytest.approx(
        mmd(["a", "b", "c"], ["a", "b", "c"], kernel=k)
    )


def test_other_sequences_still_raise_an_error():
    with pytest.raises(ValueError, match="X contains strings"):
        two_sample_test(["a", "b"], ["c", "d"], kernel=RBF())
    with pytest.raises(ValueError, match="different numbers of columns"):
        two_sample_test(x, np.column_stack([x, y]))


def test_labelled_arrays():
    xr = pytest.importorskip("xarray")
    X = xr.DataArray(np.column_stack([x, y]), dims=("time", "band"))
    assert mmd(X[:10], X[10:]) == mmd(X.values[:10], X.values[10:])
    assert hsic(X[:, 0], X[:, 1]) == hsic(x, y)
    assert two_sample_test(X[:10, 0], X[10:, 0]).pvalue == two_sample_test(x[:10], x[10:]).pvalue
