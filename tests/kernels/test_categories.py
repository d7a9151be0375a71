"""Categories: reference values, missing values, types of columns, bandwidths, errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import (
    RBF,
    AitchisonAitken,
    Bounded,
    Equal,
    Linear,
    Select,
    White,
    finite_features,
    parse_kernel,
)
from mercer.testing import check_kernel

COLOURS = ["red", "blue", None, "red", "green"]
SAME_COLOUR = np.array(
    [[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
)

COLUMNS = {  # the same values in every form that can contain them
    "list": COLOURS,
    "tuple": tuple(COLOURS),
    "rows": [[v] for v in COLOURS],
    "object array": np.array(COLOURS, dtype=object),
    "object column": np.array(COLOURS, dtype=object)[:, None],
    "object array with NaN": np.array([np.nan if v is None else v for v in COLOURS], dtype=object),
    "array of strings": np.array([str(v) for v in COLOURS]),
    "series": pd.Series(COLOURS),
    "object series": pd.Series(COLOURS, dtype=object),
    "string series": pd.Series(COLOURS, dtype="string"),
    "categorical series": pd.Series(COLOURS, dtype="category"),
    "frame": pd.DataFrame({"colour": COLOURS}),
    "categorical frame": pd.DataFrame({"colour": pd.Categorical(COLOURS)}),
    "polars series": pl.Series("colour", COLOURS),
    "polars frame": pl.DataFrame({"colour": COLOURS}),
    "polars categorical": pl.DataFrame({"colour": COLOURS}, schema={"colour": pl.Categorical}),
    "polars enum": pl.Series(COLOURS, dtype=pl.Enum(["green", "blue", "red"])),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_every_form_of_a_column(form):
    X = COLUMNS[form]
    np.testing.assert_array_equal(Equal()(X), SAME_COLOUR)
    if form != "array of strings":  # there, the missing value is the string "None"
        np.testing.assert_array_equal(Equal()(X, COLOURS), SAME_COLOUR)
        k = AitchisonAitken(0.3).resolve(X)
        assert k.n_levels == 4
        np.testing.assert_allclose(k(X, COLOURS), np.where(SAME_COLOUR, 0.7, 0.1), rtol=1e-15)


CODES = [2, 1, None, 2, 0]
NUMBERS = {
    "list": CODES,
    "floats": np.array(CODES, dtype=float),
    "float32": np.array(CODES, dtype=np.float32),
    "objects": np.array(CODES, dtype=object),
    "nullable integers": pd.Series(CODES, dtype="Int64"),
    "nullable in objects": np.array(pd.Series(CODES, dtype="Int64"), dtype=object),
    "categorical": pd.Series(CODES, dtype="category"),
    "polars": pl.Series(CODES),
    "polars int8": pl.Series(CODES, dtype=pl.Int8),
}


@pytest.mark.parametrize("form", NUMBERS)
def test_every_form_of_integer_codes(form):
    np.testing.assert_array_equal(Equal()(NUMBERS[form], CODES), SAME_COLOUR)


def test_equality_is_that_of_python():
    np.testing.assert_array_equal(Equal()([1], [1.0, True, "1", None, 2]), [[1, 1, 0, 0, 0]])
    for values in (np.array([True, False]), pd.Series([True, False]), pl.Series([True, False])):
        np.testing.assert_array_equal(Equal()(values, [1, 0]), np.eye(2))
    np.testing.assert_array_equal(Equal()([0.5, 1.0, 0.5]), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(Equal()([None], [np.nan, pd.NA, pd.NaT, "nan", ""])[0, :3], 1.0)
    assert not Equal()([None], ["nan", "", 0, "None"]).any()
    assert Equal()([-0.0], [0.0]) == 1.0
    large = np.array([2**63, 2**63 + 1], dtype=np.uint64)
    np.testing.assert_array_equal(Equal()(large), np.eye(2))
    near = pl.Series([2**53, 2**53 + 1, None])
    np.testing.assert_array_equal(Equal()(near), np.eye(3))


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from([None, True, False])),
    min_size=1,
    max_size=6,
)


@given(ROWS, ROWS)
def test_several_columns(X, Z):
    equal = np.array([[[a == b for a, b in zip(x, z, strict=True)] for z in Z] for x in X])
    np.testing.assert_allclose(Equal()(X, Z), equal.mean(axis=2), rtol=1e-15)
    h, c = np.array([0.1, 0.4, 0.5]), np.array([3, 4, 2])
    want = np.where(equal, 1 - h, h / (c - 1)).prod(axis=2)
    np.testing.assert_allclose(AitchisonAitken(h, tuple(c.tolist()))(X, Z), want, rtol=1e-14)
    phi, frame = finite_features(Equal(), X)
    psi, _ = finite_features(Equal(), Z, frame)
    np.testing.assert_allclose((phi @ psi.T).toarray(), Equal()(X, Z), atol=1e-15)


def test_features_are_the_one_hot_code():
    phi = Equal().features(["a", "b", "a"]).toarray()
    assert phi.shape == (3, 2)
    np.testing.assert_array_equal(np.sort(phi, axis=1), [[0, 1]] * 3)
    # Equal values in different columns are different features.
    assert Equal().features([["a", "a"]]).shape == (1, 2)
    assert not Equal().features([["b", "c"]], like=[["a", "b"]]).nnz


def test_number_of_levels():
    X = pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 1, 1]})
    k = AitchisonAitken().resolve(X)
    assert k.n_levels == (3, 2)  # at least 2
    assert parse_kernel(repr(k)) == k
    assert AitchisonAitken(n_levels=4).resolve(X).n_levels == 4
    with pytest.raises(ValueError, match=r"call kernel\.resolve\(X\)"):
        AitchisonAitken()(X)


def test_limits_of_the_bandwidth():
    X = ["a", "b", "c"]
    np.testing.assert_allclose(AitchisonAitken(2 / 3, 3)(X), np.full((3, 3), 1 / 3), rtol=1e-14)
    np.testing.assert_allclose(AitchisonAitken(1e-12, 3)(X), np.eye(3), atol=1e-11)
    # With many columns, the product does not overflow or become NaN.
    many = np.arange(2000.0).reshape(2, 1000)
    assert AitchisonAitken(1e-5, 50)(many)[0, 1] == 0.0
    # New levels do not make the kernel indefinite.
    K = AitchisonAitken(2 / 3, 3)(list("abcdefghij"))
    assert np.linalg.eigvalsh(K).min() > -1e-14


@pytest.mark.parametrize("kernel", [Equal(), AitchisonAitken(0.3, 3), AitchisonAitken(0.4, 2)])
def test_proved(kernel):
    assert kernel.validity().status == "proved"
    assert kernel.domain.kind == "categories"
    values = [["a", 1], ["b", 2], ["a", 2], [None, 1]]
    check_kernel(kernel, np.array(values, dtype=object), differentiable=False)


def test_gradient_and_search():
    rng = np.random.default_rng(0)
    X = rng.integers(8, size=(60, 2))
    # The levels of the first column have similar effects; the second column has no effect.
    y = (1.0 + rng.normal(size=8))[X[:, 0]] + 0.05 * rng.normal(size=60)
    k = Bounded(AitchisonAitken((0.2, 0.2), 8), limits=(1e-3, 0.87))
    model = GaussianProcessRegressor(4.0 * k + White(0.1), random_state=0)
    with pytest.warns(ConvergenceWarning, match="upper bound"):
        model.fit(X, y)
    found = model.kernel_.get_params()["terms__0__kernel__kernel__h"]
    assert 0.002 < found[0] < 0.8
    assert found[1] == pytest.approx(0.87)
    assert model.score(X, y) > 0.99


def test_integer_columns_of_an_array():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(3, size=80)])
    y = X[:, 0] * np.array([1.0, -1.0, 0.0])[X[:, 1].astype(int)]
    k = Select(RBF(1.0), [0]) * Select(Equal(), 1)
    assert KernelRidge(kernel=k, alpha=1e-3).fit(X[:60], y[:60]).score(X[60:], y[60:]) > 0.95


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: AitchisonAitken(0.6, 2), ValueError, r"at most .* = 0\.5 for 2 levels, got 0\.6"),
        (lambda: AitchisonAitken(0.7).resolve([1, 2]), ValueError, "for 2 levels, got 0.7"),
        (lambda: AitchisonAitken((0.1, 0.7), (5, 3)), ValueError, "for 3 levels, got 0.7"),
        (lambda: AitchisonAitken(1.0), ValueError, "h must be less than 1"),
        (lambda: AitchisonAitken(0.0), ValueError, "h must be positive"),
        (lambda: AitchisonAitken("x"), TypeError, "h must be a number"),
        (lambda: AitchisonAitken(n_levels=1), ValueError, "integers of at least 2, got 1"),
        (lambda: AitchisonAitken(n_levels=2.5), ValueError, "integers of at least 2, got 2.5"),
        (lambda: AitchisonAitken(n_levels="all"), ValueError, "'auto' or integers, got 'all'"),
        (lambda: AitchisonAitken((0.1, 0.2), (2, 2, 2)), ValueError, "2 values of h for 3 columns"),
        (
            lambda: AitchisonAitken((0.1, 0.2), 3)([["a"]]),
            ValueError,
            "2 values of h for 1 columns; pass one number",
        ),
        (
            lambda: Equal()([["a", 1]], [["a"]]),
            ValueError,
            "rows of 2 columns with rows of 1 columns",
        ),
        (lambda: Equal()([["a", 1], ["a"]]), ValueError, r"row 1 is \['a'\]; all rows"),
        (lambda: Equal()(np.zeros((2, 2, 2))), ValueError, r"an array of shape \(2, 2, 2\)"),
        (lambda: Equal()(sp.eye_array(3, format="csr")), TypeError, "X is a sparse matrix"),
        (lambda: Equal()([{1}, {2}]), TypeError, r"Equal: values must be .* index 0 is \{1\}"),
        (
            lambda: Equal()(pd.DataFrame({"a": [1, 2], "b": [[1], [2]]})),
            TypeError,
            r"Equal: the values of column 'b' must be .* index 0 is \[1\]",
        ),
        (
            lambda: Equal()(pd.DataFrame({"day": pd.to_datetime(["2024-05-31"])})),
            TypeError,
            r"the values of column 'day' are of type datetime64.* convert them to strings",
        ),
        (
            lambda: Equal()(np.ma.masked_array(["a", "b"], [True, False])),
            ValueError,
            "masked",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_names_in_expressions():
    k = parse_kernel('Select(RBF(1.0), ["age"]) * Select(Equal(), "sex") + AitchisonAitken()')
    assert parse_kernel(repr(k)) == k
    with pytest.raises(ValueError, match="did you mean Equal"):
        parse_kernel("Delta()")
    assert "x_c = z_c" in Equal()._repr_latex_()
    assert (Equal() + Linear()).domain.on_vectors


def test_fractional_numbers_are_categories():
    column = np.array([0.5, 1.5, 0.5, np.nan, 2.0])
    objects = [0.5, 1.5, 0.5, None, 2]
    np.testing.assert_array_equal(Equal()(column, objects), Equal()(objects))
    np.testing.assert_array_equal(Equal()(column)[0], [1, 0, 1, 0, 0])
    huge = Fraction(10**400, 3)  # is too large for a float
    np.testing.assert_array_equal(Equal()([huge, huge + 1, 1.0]), np.eye(3))
