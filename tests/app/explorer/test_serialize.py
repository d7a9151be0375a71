"""Messages to the browser: the same numbers, bit for bit, in few bytes."""

import networkx
import numpy as np
import pytest
from wire import unpack

from mercer import Graphs
from mercer.app.explorer._serialize import column_message, pack, point_text


def restored(message):
    """Return the values of a column, as the view reads them."""
    message = unpack(pack(message))
    data = message["data"]
    absent = (
        np.zeros(len(data), dtype=bool)
        if message.get("missing") is None
        else data == message["missing"]
    )
    if message["type"] == "text":
        return [
            None if gone else message["values"][code]
            for code, gone in zip(data, absent, strict=True)
        ]
    if message["type"] == "dates":
        return np.where(absent, np.nan, data * float(message["step"]))
    values = data / message["divisor"] if message.get("divisor", 1) != 1 else data.astype(float)
    return np.where(absent, np.nan, values)


def test_values_of_all_kinds():
    value = {
        "a": [1, None, "x\u2028</script>"],
        "b": np.arange(3, dtype="f4"),
        "c": np.float64(2.5),
        "d": np.nan,
    }
    found = unpack(pack(value))
    assert found["a"] == value["a"] and found["c"] == 2.5 and found["d"] is None
    np.testing.assert_array_equal(found["b"], value["b"])


rng = np.random.default_rng(0)
NUMBERS = {
    "digits": (np.arange(200.0) % 10, 1),
    "negative": (np.arange(-100.0, 28.0), 1),
    "years": (np.arange(1900.0, 2026.0), 2),
    "missing": (np.array([1.0, np.nan, 3.0]), 1),
    "full": (np.append(np.arange(256.0), np.nan), 2),
    "cents": (np.round(rng.normal(size=300) * 100, 2), 2),
    "tenths": (np.array([0.1, 0.2, 0.3, -0.7]), 1),
    "floats": (rng.normal(size=50), 8),
    "singles": (rng.normal(size=50).astype(np.float32).astype(float), 4),
    "large": (np.array([1e300, -1e-300, np.nan]), 8),
    "empty": (np.full(5, np.nan), 1),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_come_back_to_the_last_bit(name):
    values, size = NUMBERS[name]
    message = column_message("x", values)
    assert message["data"].itemsize == size
    np.testing.assert_array_equal(restored(message), values)


def test_integers_beyond_float64_are_exact():
    for dtype in ("int64", "uint64"):
        values = np.array([2**60 + 1, 2**60 + 2, 3], dtype=dtype)
        assert restored(column_message("id", values)) == [str(value) for value in values]
    assert column_message("id", np.array([2**53, -(2**53)]))["type"] == "numbers"


def test_texts_by_codes():
    values = np.array(["b", None, "a", "b", ""], dtype=object)
    message = column_message("t", values)
    assert message["data"].itemsize == 1
    assert restored(message) == values.tolist()


DATES = {
    "days": ("2024-05-31", "2024-06-01", 86_400_000_000, 2),
    "minutes": ("2024-05-31T18:30", "2024-05-31", 60_000_000, 4),
    "milliseconds": ("2024-05-31T18:30:00.125", "1969-12-31T23:59:59.875", 1000, 8),
    "microseconds": ("2024-05-31T18:30:00.000001", "1700-01-01", 1, 8),
    "long ago": ("-4712-11-24", "12024-01-01", 86_400_000_000, 4),
}


@pytest.mark.parametrize("name", DATES)
@pytest.mark.parametrize("has_missing", [False, True])
def test_dates_come_back_to_the_microsecond(name, has_missing):
    first, second, step, size = DATES[name]
    dates = np.array([first, second, "NaT" if has_missing else first], dtype="datetime64[us]")
    message = column_message("day", dates)
    assert (message["type"], message["step"]) == ("dates", step)
    assert message["data"].itemsize == size
    expected = np.where(np.isnat(dates), np.nan, dates.astype(np.int64).astype(float))
    np.testing.assert_array_equal(restored(message), expected)
    empty = column_message("day", np.full(3, "NaT", dtype="datetime64[us]"))
    assert np.isnan(restored(empty)).all()


def test_booleans_are_texts():
    message = column_message("b", np.array([1.0, np.nan, 0.0]), boolean=True)
    assert restored(message) == ["true", None, "false"]


@pytest.mark.parametrize("absent", [False, True])
def test_integers_at_the_limit_of_32_bits(absent):
    """The largest integer of a type stands for missing values."""
    values = np.array([-1.0, 2.0**31 - 1, np.nan if absent else 0.0])
    np.testing.assert_array_equal(restored(column_message("x", values)), values)
    # Minutes, because microseconds cannot represent 2**31 - 1 days.
    times = np.array([-1, 2**31 - 1, 0], dtype="M8[m]").astype("M8[us]")
    times[2] = "NaT" if absent else times[2]
    message = column_message("time", times)
    assert message["step"] == 60_000_000
    expected = np.where(np.isnat(times), np.nan, times.astype(np.int64))
    np.testing.assert_array_equal(restored(message), expected)


def test_decimals_that_appear_late():
    values = np.append(np.arange(20_000.0), 0.25)
    message = column_message("x", values)
    assert message["divisor"] == 100
    np.testing.assert_array_equal(restored(message), values)


@pytest.mark.parametrize(
    ("point", "text"),
    [
        (("b", 1), "b 1"),
        ({"b", "a"}, "{a, b}"),
        (networkx.path_graph(3), "3 nodes, 2 edges"),
        (Graphs.from_edges([[(0, 1)]])[0], "2 nodes, 1 edges"),
        (1.5, "1.5"),
    ],
    ids=["tuple", "set", "networkx", "graph", "number"],
)
def test_texts_of_points(point, text):
    assert point_text(point) == text
