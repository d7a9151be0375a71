"""The same table in every format and library has the same kinds and values of columns."""

import datetime as dt
import math

import numpy as np
import pytest

from mercer.tables import open_table

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
pytest.importorskip("openpyxl")
pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

MOMENTS = st.datetimes(dt.datetime(1901, 1, 1), dt.datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)
WORDS = st.text("abcdefgäöü ,\"'", min_size=1, max_size=8).map(lambda text: f"w{text}w")
VALUES = {
    "floats": st.integers(-(10**6), 10**6).map(lambda i: i / 8),  # pandas rounds other floats
    "integers": st.integers(-(10**9), 10**9),
    "booleans": st.booleans(),
    "moments": MOMENTS,
    "days": st.dates(dt.date(1901, 1, 1), dt.date(2200, 1, 1)),
    "words": WORDS,
    "codes": st.sampled_from(["red", "green", "blue"]),
}
KINDS = {"moments": "dates", "days": "dates", "words": "text", "codes": "text"}


@st.composite
def tables(draw):
    n = draw(st.integers(2, 6))
    columns = {}
    for j in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(VALUES)))
        column = draw(st.lists(VALUES[kind], min_size=n, max_size=n))
        gaps = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        gaps[draw(st.integers(0, n - 1))] = False  # at least one value
        # A row without any value would be an empty line.
        columns[f"{kind}{j}"] = [
            None if gap and j else value for gap, value in zip(gaps, column, strict=True)
        ]
    return columns


def pandas_frame(columns):
    """Return a frame with the types that pandas users have, including nullable integers."""
    dtypes = {"integers": "Int64", "booleans": "boolean", "codes": "category"}
    frame = {}
    for name, values in columns.items():
        kind = name.rstrip("0123456789")
        if kind in ("moments", "days"):
            frame[name] = pd.Series(pd.to_datetime(pd.Series(values, dtype=object)))
        else:
            frame[name] = pd.Series(values, dtype=dtypes.get(kind))
    return pd.DataFrame(frame)


def write_all(frame, columns, folder):
    """Yield the table as files and as frames, with a name."""
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_json(folder / "a.jsonl", orient="records", lines=True, date_format="iso")
    for orient in ("records", "columns", "split", "table"):
        frame.to_json(
            folder / f"{orient}.json", orient=orient, date_format="iso", double_precision=15
        )
        yield orient, folder / f"{orient}.json"
    frame.to_parquet(folder / "a.parquet")
    frame.to_feather(folder / "a.feather")
    frame.to_excel(folder / "a.xlsx", index=False)
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.feather", "a.xlsx"):
        yield name, folder / name
    yield "pandas", frame
    yield "objects", pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in columns.items()})
    yield "polars", pl.DataFrame(columns, strict=False)
    yield "pyarrow", pa.table(columns)


def expected_column(name, values):
    kind = name.rstrip("0123456789")
    if kind in ("words", "codes"):
        return np.array(values, dtype=object)
    if kind in ("moments", "days"):
        return np.array([np.datetime64("NaT", "us") if v is None else v for v in values], "M8[us]")
    return np.array([math.nan if v is None else float(v) for v in values])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(columns=tables())
def test_the_same_table_in_every_format(tmp_path, columns, csv_has_types):
    frame = pandas_frame(columns)
    for name, data in write_all(frame, columns, tmp_path):
        if name == "a.csv" and not csv_has_types:
            continue
        source = open_table(data)
        kinds = {n: KINDS.get(n.rstrip("0123456789"), "numbers") for n in columns}
        assert source.shape.kinds == kinds, name
        found = source.table()
        for column, values in columns.items():
            expected = expected_column(column, values)
            if expected.dtype == object:
                assert found.columns[column].tolist() == expected.tolist(), (name, column)
            else:
                np.testing.assert_array_equal(found.columns[column], expected, f"{name} {column}")
        booleans = tuple(n for n in columns if n.startswith("booleans"))
        assert found.booleans == booleans, name


@pytest.fixture(scope="module")
def csv_has_types(tmp_path_factory):
    """Whether the reader of CSV files recognises dates and booleans."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text("day,ok\n2024-05-31,True\n")
    return open_table(path).shape.kinds == {"day": "dates", "ok": "numbers"}
