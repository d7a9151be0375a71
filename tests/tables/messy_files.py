"""Messy files as users have them, each with the result that the `mercer` commands must give.

`FILES` lists them.  A file either opens at the first attempt, without any option except the target,
or is refused with one message that lists all problems.  To write all files into a folder:

    PYTHONPATH=src python tests/tables/messy_files.py FOLDER
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import sys
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np

N_ROWS = 60
Columns = dict[str, list]


@dataclass(frozen=True)
class MessyFile:
    """A file, the model that is fitted to it, and the expected result.

    Parameters
    ----------
    name : str
        The file name, whose extension is the format.
    description : str
        One line about the file.
    content : callable
        Returns the bytes of the file.
    method, target : str
        What `mercer fit` fits.
    types : dict
        The expected types of columns.
    score : float
        The smallest acceptable score in two-fold cross-validation.
    rows : int
        The number of rows.
    notes : tuple of str
        Texts that `mercer fit` must print.
    refused : tuple of str
        Texts that the one error message must contain; empty if the file opens.
    commands : tuple of str
        The commands that refuse the file.
    new : callable
        Returns the bytes of a file of new rows; by default the rows of the file itself.
    values : callable
        Returns the expected values of some columns.
    stdin : bool
        Whether the file is read from standard input.
    needs : str
        A package that is needed to write the file.
    """

    name: str
    description: str
    content: Callable[[], bytes]
    method: str = "ridge"
    target: str = "price"
    types: Mapping[str, str] = field(default_factory=dict)
    score: float = 0.5
    rows: int = N_ROWS
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    commands: tuple[str, ...] = ("pca", "fit", "score", "explore")
    new: Callable[[], bytes] | None = None
    values: Callable[[], Columns] | None = None
    stdin: bool = False
    needs: str = ""

    def write(self, folder: Path) -> Path:
        """Write the file into a folder, and return its path."""
        path = folder / self.name
        path.write_bytes(self.content())
        return path


FILES: list[MessyFile] = []
_Builder = Callable[[np.random.Generator], bytes]


def messy(name: str, description: str, **expected) -> Callable[[_Builder], _Builder]:
    """Return a decorator that adds the file written by a function to `FILES`."""

    def add(function: _Builder) -> _Builder:
        seed = zlib.crc32(name.encode())
        new, values = expected.pop("new", None), expected.pop("values", None)
        if new is not None:
            expected["new"] = lambda: new(np.random.default_rng(seed + 1))
        if values is not None:
            expected["values"] = lambda: values(np.random.default_rng(seed))
        file = MessyFile(
            name, description, lambda: function(np.random.default_rng(seed)), **expected
        )
        FILES.append(file)
        return function

    return add


# ---------------------------------------------------------------------- tables

CITIES = {"Bonn": 0.0, "Köln": 60.0, "Ulm": -60.0}


def houses(rng: np.random.Generator, n: int = N_ROWS, **more: Sequence) -> Columns:
    """Return area, rooms, city and price; the price depends on the other columns."""
    area = rng.uniform(30, 150, n).round(1)
    rooms = rng.integers(1, 7, n)
    city = [list(CITIES)[i % 3] for i in range(n)]
    effect = np.array([CITIES[name] for name in city])
    price = (2 * area + 15 * rooms + effect + rng.normal(0, 3, n)).round(1)
    given = {"area": area, "rooms": rooms, "city": city, "price": price}
    return {name: list(getattr(v, "tolist", lambda v=v: v)()) for name, v in (given | more).items()}


def with_kind(columns: Columns, values: tuple = ("cheap", "dear"), name: str = "kind") -> Columns:
    """Replace the price by a class: whether the price is above the median."""
    prices = columns["price"]
    middle = float(np.median(prices))
    rest = {key: column for key, column in columns.items() if key != "price"}
    return rest | {name: [values[price > middle] for price in prices]}


def scaled_houses(**factors: float) -> Callable[[np.random.Generator], Columns]:
    """Return a function for `values`: columns of `houses`, multiplied by factors."""

    def values(rng: np.random.Generator) -> Columns:
        table = houses(rng)
        return {name: [f * value for value in table[name]] for name, f in factors.items()}

    return values


def rows_of(columns: Columns) -> list[dict]:
    """Return the rows of a table as dictionaries."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def csv_text(
    columns: Columns,
    delimiter: str = ",",
    end: str = "\n",
    header: bool = True,
    names: Sequence[str] | None = None,
) -> str:
    """Return a table as CSV; None is an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
    if header:
        writer.writerow(names or list(columns))
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def csv_bytes(columns: Columns, **options) -> bytes:
    """Return a table as CSV in UTF-8."""
    return csv_text(columns, **options).encode()


def json_lines(rows: Sequence[dict]) -> bytes:
    """Return rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def days(rng: np.random.Generator, n: int = N_ROWS) -> list[date]:
    """Return days of the years 2021 to 2024, at least one of them after the 12th of a month."""
    first = date(2021, 1, 1)
    some = [first + timedelta(days=int(d)) for d in rng.integers(0, 4 * 365, n)]
    return [date(2022, 7, 25), *some[1:]]


def sales(rng: np.random.Generator, notation: Callable[[date], str] | None, **more) -> Columns:
    """Return days and amounts that grow with the day, so that the day is needed to predict them."""
    when = days(rng)
    amount = [0.5 * (d - date(2021, 1, 1)).days + float(rng.normal(0, 10)) for d in when]
    shown = when if notation is None else [notation(d) for d in when]
    noise = rng.normal(size=len(when)).round(3).tolist()
    return {"day": shown, "noise": noise, "amount": [round(a, 2) for a in amount], **more}


# ---------------------------------------------------------------------- CSV: numbers and dialects


@messy("plain.csv", "A clean CSV file.", types={"area": "number", "city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _plain(rng):
    return csv_bytes(houses(rng))


@messy("plain_classes.csv", "A clean CSV file with a target of two classes.", method="svc",
       target="kind", score=0.75)  # fmt: skip
def _plain_classes(rng):
    return csv_bytes(with_kind(houses(rng)))


def _comma(value: float) -> str:
    return str(value).replace(".", ",")


@messy("european.csv", "Semicolons as delimiters and decimal commas, as Excel writes in Europe.",
       types={"area": "number", "rooms": "number", "city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _european(rng):
    t = houses(rng)
    t["area"], t["price"] = map(_comma, t["area"]), map(_comma, t["price"])
    return csv_bytes(t, delimiter=";", end="\r\n")


@messy("thousands.csv", "Quoted numbers with commas as thousands separators.",
       types={"area": "number"},
       values=scaled_houses(area=100.0, price=1000.0))  # fmt: skip
def _thousands(rng):
    t = houses(rng)
    t["area"] = [f"{100 * a:,.1f}" for a in t["area"]]
    t["price"] = [f"{1000 * p:,.0f}" for p in t["price"]]
    return csv_bytes(t)


@messy("european_thousands.csv", "Points as thousands separators and decimal commas.",
       types={"area": "number"},
       values=scaled_houses(area=100.0, price=1000.0))  # fmt: skip
def _european_thousands(rng):
    t = houses(rng)
    swap = str.maketrans(",.", ".,")
    t["area"] = [f"{100 * a:,.2f}".translate(swap) for a in t["area"]]
    t["price"] = [f"{1000 * p:,.2f}".translate(swap) for p in t["price"]]
    return csv_bytes(t, delimiter=";")


@messy("french.csv", "No-break spaces as thousands separators and decimal commas, in latin-1.",
       types={"surface": "number"}, target="prix")  # fmt: skip
def _french(rng):
    t = houses(rng)
    shown = {
        "surface": [_comma(f"{100 * a:,.1f}".replace(",", "\u00a0")) for a in t["area"]],
        "prix": [_comma(f"{1000 * p:,.1f}".replace(",", "\u00a0")) for p in t["price"]],
        "région": t["city"],
    }
    return csv_text(shown, delimiter=";").encode("latin-1")


@messy("swiss.csv", "Apostrophes as thousands separators.", types={"area": "number"},
       values=scaled_houses(area=100.0, price=1000.0))  # fmt: skip
def _swiss(rng):
    t = houses(rng)
    t["area"] = [f"{100 * a:,.1f}".replace(",", "'") for a in t["area"]]
    t["price"] = [f"{1000 * p:,.0f}".replace(",", "'") for p in t["price"]]
    return csv_bytes(t, delimiter=";")


@messy("excel_sep.csv", "The first line is sep=; for Excel, after a byte order mark.",
       types={"area": "number"})  # fmt: skip
def _excel_sep(rng):
    t = houses(rng)
    t["area"] = [_comma(a) for a in t["area"]]
    return ("\ufeffsep=;\r\n" + csv_text(t, delimiter=";", end="\r\n")).encode()


@messy("european_whole.csv", "Decimal commas in one column, and 950 and 1.234 in another.",
       values=scaled_houses(area=10.0, price=10.0))  # fmt: skip
def _european_whole(rng):
    t = houses(rng)
    t["price"] = [_comma(f"{10 * p:.2f}") for p in t["price"]]
    t["area"] = [f"{round(10 * a):,}".replace(",", ".") for a in t["area"]]
    return csv_bytes(t, delimiter=";")


@messy("quoted_commas.csv", "Decimal commas in quoted cells, with commas as delimiters.",
       types={"area": "number"}, values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _quoted_commas(rng):
    t = houses(rng)
    t["area"], t["price"] = map(_comma, t["area"]), map(_comma, t["price"])
    return csv_bytes(t)


@messy("all_quoted.csv", "All cells are quoted, with spaces inside the quotes.",
       types={"area": "number", "city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _all_quoted(rng):
    t = houses(rng)
    lines = [list(t), *([f"{cell} " for cell in row] for row in zip(*t.values(), strict=True))]
    return "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines).encode()


@messy("minus_signs.csv", "Negative numbers with the Unicode minus sign.", target="y",
       types={"x": "number"}, score=0.7)  # fmt: skip
def _minus_signs(rng):
    x = rng.uniform(-20, 20, N_ROWS).round(2)
    shown = [str(v).replace("-", "\u2212") for v in x.tolist()]
    return csv_bytes({"x": shown, "y": (3 * x + 1).round(2).tolist()})


@messy("parentheses.csv", "Negative amounts in parentheses, as accountants write.", target="y",
       types={"balance": "number"}, score=0.7)  # fmt: skip
def _parentheses(rng):
    x = rng.uniform(-2000, 2000, N_ROWS).round(2)
    shown = [f"({-v:,.2f})" if v < 0 else f"{v:,.2f}" for v in x.tolist()]
    return csv_bytes({"balance": shown, "y": (3 * x + 1).round(2).tolist()})


@messy("percent.csv", "Percentages with and without a space before the sign.",
       types={"share": "number"}, target="sold", score=0.7)  # fmt: skip
def _percent(rng):
    share = rng.uniform(0, 100, N_ROWS).round(1)
    shown = [f"{s}%" if i % 2 else f"{s} %" for i, s in enumerate(share)]
    noise = rng.normal(size=N_ROWS).round(3).tolist()
    return csv_bytes({"share": shown, "noise": noise, "sold": (3 * share + 5).round(2).tolist()})


@messy("currency.csv", "Prices with currency signs; the target, too.",
       types={"area": "number", "fee": "number"},
       values=scaled_houses(price=1000.0))  # fmt: skip
def _currency(rng):
    t = houses(rng)
    t["fee"] = [f"{5 * r + 100} €" for r in t["rooms"]]
    t["price"] = [f"${1000 * p:,.2f}" for p in t["price"]]
    return csv_bytes(t)


@messy("units.csv", 'A sensor log with units in the cells, such as "12.5 C".', target="load",
       types={"temperature": "number", "time": "date"}, score=0.7)  # fmt: skip
def _units(rng):
    start = datetime(2024, 5, 1)
    t = rng.uniform(5, 35, N_ROWS).round(1)
    return csv_bytes(
        {
            "time": [f"{start + timedelta(minutes=15 * i):%Y-%m-%d %H:%M}" for i in range(N_ROWS)],
            "temperature": [f"{v} C" for v in t],
            "load": (200 - 4 * t + rng.normal(0, 2, N_ROWS)).round(2).tolist(),
        }
    )


@messy("scientific.csv", "Numbers such as 1e-05, +3.0E+2, .5 and 5.", target="y",
       types={"x": "number"}, score=0.7)  # fmt: skip
def _scientific(rng):
    x = rng.uniform(-2, 2, N_ROWS)
    shown = [
        (f"{v:.4e}", f"{v:+.3E}", f"{v:.4f}".replace("0.", "."))[i % 3] for i, v in enumerate(x)
    ]
    return csv_bytes({"x": shown, "y": (x * 2 + 1).round(4).tolist()})


@messy("bom.csv", "A byte order mark at the beginning; the first column is the target.",
       method="svc", target="kind", score=0.75,
       values=scaled_houses(area=1.0))  # fmt: skip
def _bom(rng):
    t = with_kind(houses(rng))
    return b"\xef\xbb\xbf" + csv_bytes({"kind": t.pop("kind"), **t}, end="\r\n")


@messy("utf16.txt", "Unicode text of Excel: UTF-16 and tabs.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _utf16(rng):
    return csv_text(houses(rng), delimiter="\t", end="\r\n").encode("utf-16")


@messy("latin1.csv", "Umlauts in latin-1 in names and cells.", target="größe",
       types={"fläche": "number", "ort": "category"})  # fmt: skip
def _latin1(rng):
    t = houses(rng)
    return csv_text(t, names=["fläche", "räume", "ort", "größe"]).encode("latin-1")


@messy("windows1252.csv", "Windows-1252 with a euro sign and curly quotes.",
       target="price", types={"area": "number"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _windows1252(rng):
    t = houses(rng)
    t["city"] = [f"“{c}”" for c in t["city"]]
    t["price"] = [f"{p} €" for p in t["price"]]
    return csv_text(t, delimiter=";").encode("cp1252")


@messy("headerless.csv", "Numbers without a header.", target="column3", score=0.4)
def _headerless(rng):
    t = houses(rng)
    del t["city"]
    return csv_bytes(t, header=False)


@messy("flowers.data", "Numbers and a class without a header, as in the UCI repository.",
       method="svc", target="column4", score=0.75)  # fmt: skip
def _flowers(rng):
    return csv_bytes(with_kind(houses(rng)), header=False)


@messy("pandas_index.csv", "A row number in a first column without a name, as pandas writes.",
       types={"area": "number"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _pandas_index(rng):
    return csv_bytes({"": list(range(N_ROWS)), **houses(rng)})


@messy("pandas_numbers.csv", "The column names are 0, 1, 2, as pandas writes an array.",
       target="3", types={"0": "number"})  # fmt: skip
def _pandas_numbers(rng):
    return csv_bytes(houses(rng), names=["0", "1", "2", "3"])


@messy("pandas_numbers_index.csv", "Column names 0, 1, 2 and an index, all cells numbers.",
       target="2", types={"0": "number"}, score=0.4)  # fmt: skip
def _pandas_numbers_index(rng):
    t = houses(rng)
    del t["city"]
    return csv_bytes({"": list(range(N_ROWS)), **t}, names=["", "0", "1", "2"])


@messy("r_table.txt", "R's write.table: quoted names, and no name for the row numbers.",
       types={"area": "number", "city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _r_table(rng):
    t = houses(rng)
    lines = [" ".join(f'"{name}"' for name in t)]
    for i, row in enumerate(zip(*t.values(), strict=True), 1):
        cells = [f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row]
        lines.append(" ".join([f'"{i}"', *cells]))
    return "\n".join(lines).encode()


@messy("quoted_newlines.csv", "Quoted cells with line breaks, quotes and delimiters.",
       types={"area": "number", "city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _quoted_newlines(rng):
    t = houses(rng)
    t["city"] = [f'{c},\nthe "old" town' for c in t["city"]]
    return csv_bytes(t)


@messy("trailing_delimiters.csv", "Each line, with the header, ends with a delimiter.",
       types={"area": "number"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _trailing_delimiters(rng):
    return csv_text(houses(rng), delimiter=";").replace("\n", ";\n").encode()


@messy("trailing_in_rows.csv", "Each line except the header ends with a delimiter.",
       types={"area": "number"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _trailing_in_rows(rng):
    head, _, rest = csv_text(houses(rng)).partition("\n")
    return (head + "\n" + rest.replace("\n", ",\n")).encode()


@messy("blank_lines.csv", "Empty lines before the header, between rows and at the end.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _blank_lines(rng):
    head, *rows = csv_text(houses(rng)).splitlines()
    rows = [row + ("\n" if i % 7 == 0 else "") for i, row in enumerate(rows)]
    return ("\n\n" + "\n".join([head, "", *rows]) + "\n\n\n").encode()


@messy("lines_of_delimiters.csv", "Lines of delimiters only, as Excel writes for empty rows.")
def _lines_of_delimiters(rng):
    return (csv_text(houses(rng)) + ",,,\n" * 5).encode()


@messy("comments.csv", "Lines that begin with #, at the top and between rows.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _comments(rng):
    head, *rows = csv_text(houses(rng)).splitlines()
    rows.insert(10, "# the following rows were measured again")
    return "\n".join(["# houses, version 2", "# units: m2; EUR", head, *rows]).encode()


@messy("title.csv", "A title and an empty line precede the header, as in exported reports.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _title(rng):
    return ("House prices 2024\n\n" + csv_text(houses(rng))).encode()


@messy("aligned.txt", "Columns aligned with several spaces.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _aligned(rng):
    t = houses(rng)
    rows = [list(t), *zip(*t.values(), strict=True)]
    return "\n".join("".join(f"{cell!s:>10}" for cell in row) for row in rows).encode()


@messy("tabs.tsv", "Tabs as delimiters, with commas in cells.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _tabs(rng):
    t = houses(rng)
    t["city"] = [f"{c}, Germany" for c in t["city"]]
    return csv_bytes(t, delimiter="\t")


@messy("tabs.csv", "Tabs as delimiters in a .csv file.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _tabs_csv(rng):
    return csv_bytes(houses(rng), delimiter="\t")


@messy("bars.csv", "Vertical bars as delimiters.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _bars(rng):
    return csv_bytes(houses(rng), delimiter="|")


@messy("mac.csv", "Carriage returns as line ends, as in old Mac files.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _mac(rng):
    return csv_bytes(houses(rng), end="\r")


@messy("windows.csv", "Windows line ends, and spaces after the commas.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _windows(rng):
    return csv_text(houses(rng), end="\r\n").replace(",", ", ").encode()


@messy("mixed_ends.csv", "Line ends of Windows and Unix in one file, and none at the end.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _mixed_ends(rng):
    lines = csv_text(houses(rng)).splitlines()
    return "".join(
        line + ("\r\n" if i % 2 else "\n") for i, line in enumerate(lines)
    ).rstrip().encode()  # fmt: skip


@messy("houses.csv.gz", "A CSV file compressed with gzip.",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _gz(rng):
    return gzip.compress(csv_bytes(houses(rng)), mtime=0)


@messy("houses.csv.bz2", "A CSV file compressed with bzip2.")
def _bz2(rng):
    return bz2.compress(csv_bytes(houses(rng)))


@messy("houses.csv.zip", "A zip archive of one CSV file, as Kaggle provides.")
def _zip(rng):
    return archive({"houses.csv": csv_text(houses(rng))})


# ---------------------------------------------------------------------- column names


@messy("duplicate_names.csv", "Two pairs of columns have the same name, as after a join.",
       types={"area": "number"}, notes=("area", "city"))  # fmt: skip
def _duplicate_names(rng):
    t = houses(rng)
    t["again"], t["where"] = t["area"], t["city"]
    return csv_bytes(t, names=["area", "rooms", "city", "price", "area", "city"])


@messy("empty_names.csv", "Two cells of the header in the middle are empty.",
       types={"area": "number"})  # fmt: skip
def _empty_names(rng):
    return csv_bytes(houses(rng), names=["area", "", "", "price"])


@messy("odd_names.csv", "Names with spaces, quotes, commas, umlauts and a leading dash.",
       method="svc", target="-kind, 'new'", score=0.75)  # fmt: skip
def _odd_names(rng):
    t = with_kind(houses(rng))
    return csv_bytes(t, names=[" area in m²", 'the "rooms"', "city, town", "-kind, 'new'"])


@messy("case_names.csv", "Two names differ only in case.", target="Price",
       types={"price": "number"})  # fmt: skip
def _case_names(rng):
    t = houses(rng)
    t["list price"] = rng.normal(size=N_ROWS).round(3).tolist()
    return csv_bytes(t, names=["area", "rooms", "city", "Price", "price"])


@messy("reserved_names.csv", "Columns are named as the columns that commands write.",
       method="svc", target="prediction", score=0.75)  # fmt: skip
def _reserved_names(rng):
    t = with_kind(houses(rng))
    return csv_bytes(t, names=["component1", "row", "std", "prediction"])


@messy("wide.csv", "500 columns, of which two matter.", method="ridge", target="y", score=-0.5)
def _wide(rng):
    X = rng.normal(size=(N_ROWS, 499)).round(3)
    columns = {f"x{j}": X[:, j].tolist() for j in range(499)}
    return csv_bytes(columns | {"y": (5 * X[:, 0] + 5 * X[:, 1]).round(3).tolist()})


# ---------------------------------------------------------------------- dates and times


def _date_file(
    name: str,
    notation: Callable[[date], str],
    description: str,
    is_complete: bool = True,
    **more,
) -> None:
    expected = {"types": {"day": "date"}, "score": 0.7, "target": "amount"} | more
    if is_complete:
        expected["values"] = lambda rng: {"day": sales(rng, None)["day"]}
    messy(name, description, **expected)(lambda rng: csv_bytes(sales(rng, notation)))


_date_file("dates_iso.csv", date.isoformat, "Dates such as 2024-05-31.")
_date_file("dates_slashes.csv", lambda d: f"{d:%Y/%m/%d}", "Dates such as 2024/05/31.")
_date_file("dates_german.csv", lambda d: f"{d:%d.%m.%Y}", "Dates such as 31.05.2024.")
_date_file("dates_british.csv", lambda d: f"{d:%d/%m/%Y}", "Dates such as 31/05/2024.")
_date_file("dates_american.csv", lambda d: f"{d:%m/%d/%Y}", "Dates such as 05/31/2024.")
_date_file("dates_short_american.csv", lambda d: f"{d.month}/{d.day}/{d:%Y}",
           "Dates such as 5/31/2024, without leading zeros.")  # fmt: skip
_date_file("dates_words.csv", lambda d: f"{d.day} {d:%B} {d.year}", "Dates such as 31 May 2024.")
_date_file("dates_words_american.csv", lambda d: f"{d:%b} {d.day}, {d.year}",
           "Dates such as May 31, 2024.")  # fmt: skip
_date_file("months.csv", lambda d: f"{d:%Y-%m}", "Months such as 2024-05.",
           is_complete=False)  # fmt: skip
_date_file("dates_ambiguous.csv", lambda d: f"{d.replace(day=1 + d.day % 12):%d/%m/%Y}",
           "Dates in which no day is above 12, so that the order of day and month is unknown.",
           is_complete=False, score=0.4, notes=("day", "month"))  # fmt: skip
_date_file("dates_missing.csv", lambda d: "" if d.day == 3 else "n/a" if d.day == 4 else f"{d}",
           "Dates, some of them missing.", is_complete=False)  # fmt: skip


_date_file("dates_short_years.csv", lambda d: f"{d:%d.%m.%y}", "Dates such as 31.05.24.")
_date_file("dates_compact.csv", lambda d: f"{d:%Y%m%d}",
           "Dates such as 20240531, which can also be numbers.", is_complete=False,
           types={}, score=0.5)  # fmt: skip


def shift_times(rng: np.random.Generator) -> tuple[list[int], list[float]]:
    """Return minutes of the day, and a target that depends on the hour."""
    minutes = rng.integers(0, 24 * 60, N_ROWS).tolist()
    load = [100 + 50 * np.sin(2 * np.pi * m / 1440) + rng.normal(0, 2) for m in minutes]
    return minutes, [round(float(v), 2) for v in load]


@messy("times.csv", "Times of the day such as 08:30.", target="load", types={"time": "date"},
       score=0.7)  # fmt: skip
def _times(rng):
    minutes, load = shift_times(rng)
    return csv_bytes({"time": [f"{m // 60:02}:{m % 60:02}" for m in minutes], "load": load})


@messy("zones.csv", "Dates and times with different zones.", target="load", types={"at": "date"},
       score=0.7)  # fmt: skip
def _zones(rng):
    minutes, load = shift_times(rng)
    start = datetime(2024, 3, 1, tzinfo=UTC)
    shown = []
    for i, m in enumerate(minutes):
        at = start + timedelta(days=i % 5, minutes=m)
        shown.append(at.astimezone(timezone(timedelta(hours=i % 3))).isoformat())
    return csv_bytes({"at": shown, "load": load})


@messy("zulu.csv", "Times in UTC with Z and fractions of a second.", target="load",
       types={"at": "date"}, score=0.7)  # fmt: skip
def _zulu(rng):
    minutes, load = shift_times(rng)
    start = datetime(2024, 3, 1)
    times = [start + timedelta(minutes=m, milliseconds=m) for m in minutes]
    return csv_bytes({"at": [f"{t.isoformat(timespec='milliseconds')}Z" for t in times],
                      "load": load})  # fmt: skip


@messy("us_times.csv", "Dates and times such as 5/31/2024 6:30 PM.", target="load",
       types={"at": "date"}, score=0.7)  # fmt: skip
def _us_times(rng):
    minutes, load = shift_times(rng)
    times = [datetime(2024, 5, 13 + i % 5) + timedelta(minutes=m) for i, m in enumerate(minutes)]
    shown = [f"{t.month}/{t.day}/{t.year} {t:%I:%M %p}" for t in times]
    return csv_bytes({"at": shown, "load": load})


# ---------------------------------------------------------------------- kinds of columns


@messy("booleans.csv", "Booleans in three notations.", types={"garden": "boolean",
       "lift": "boolean", "new": "boolean"})  # fmt: skip
def _booleans(rng):
    t = houses(rng)
    garden, lift, new = (rng.integers(0, 2, N_ROWS).astype(bool).tolist() for _ in range(3))
    t["garden"], t["lift"] = garden, [str(b).upper() for b in lift]
    t["new"] = [str(b).lower() for b in new]
    t["price"] = [p + 40 * g for p, g in zip(t["price"], garden, strict=True)]
    return csv_bytes(t)


@messy("boolean_target.csv", "A target of True and False.", method="svc", target="dear",
       score=0.75)  # fmt: skip
def _boolean_target(rng):
    return csv_bytes(with_kind(houses(rng), (False, True), "dear"))


@messy("zero_one_target.csv", "A target of 0 and 1.", method="logistic", target="dear", score=0.75)
def _zero_one_target(rng):
    return csv_bytes(with_kind(houses(rng), (0, 1), "dear"))


@messy("yes_no.csv", "Columns of yes and no; the target, too.", method="svc", target="dear",
       types={"garden": "category"}, score=0.75)  # fmt: skip
def _yes_no(rng):
    t = with_kind(houses(rng), ("no", "yes"), "dear")
    t["garden"] = [("no", "yes")[i] for i in rng.integers(0, 2, N_ROWS)]
    return csv_bytes(t)


@messy("numeric_ids.csv", "A column of row numbers.", types={"id": "identifier"})
def _numeric_ids(rng):
    return csv_bytes({"id": list(range(1, N_ROWS + 1)), **houses(rng)})


@messy("shuffled_ids.csv", "A column of customer numbers in random order.",
       types={"customer_id": "identifier"})  # fmt: skip
def _shuffled_ids(rng):
    ids = (rng.permutation(N_ROWS) + 100_000).tolist()
    return csv_bytes({"customer_id": ids, **houses(rng)})


@messy("string_ids.csv", "Identifiers such as P-0001.", types={"patient": "identifier"})
def _string_ids(rng):
    return csv_bytes({"patient": [f"P-{i:04}" for i in range(N_ROWS)], **houses(rng)})


@messy("uuids.csv", "A column of UUIDs.", types={"key": "identifier"})
def _uuids(rng):
    keys = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(N_ROWS)]
    return csv_bytes({"key": keys, **houses(rng)})


@messy("leading_zeros.csv", "Postcodes with leading zeros, such as 01069, that must stay text.",
       score=0.4)  # fmt: skip
def _leading_zeros(rng):
    t = houses(rng)
    codes = {"Bonn": "01069", "Köln": "04103", "Ulm": "99084"}
    t["city"] = [codes[c] for c in t["city"]]
    return csv_bytes(t)


@messy("whole_incomes.csv", "Distinct whole numbers that are measurements and not identifiers.",
       target="tax", types={"income": "number"}, score=0.7)  # fmt: skip
def _whole_incomes(rng):
    income = rng.choice(np.arange(20_000, 90_000), N_ROWS, replace=False)
    tax = (0.3 * income + rng.normal(0, 300, N_ROWS)).round(2)
    return csv_bytes({"income": income.tolist(), "tax": tax.tolist()})


@messy("yearly.csv", "One row per year, so that the years are consecutive integers.",
       target="population", types={"year": "number"}, score=0.7)  # fmt: skip
def _yearly(rng):
    years = rng.permutation(np.arange(1960, 1960 + N_ROWS))
    population = (2 * (years - 1960) + rng.normal(0, 3, N_ROWS)).round(2)
    return csv_bytes({"year": years.tolist(), "population": population.tolist()})


@messy("odometer.csv", "Distinct integers in increasing order that are measurements.",
       target="value", types={"km": "number"}, score=0.7)  # fmt: skip
def _odometer(rng):
    km = np.cumsum(rng.integers(1, 5000, N_ROWS))
    value = (20_000 - 0.1 * km + rng.normal(0, 200, N_ROWS)).round(2)
    return csv_bytes({"km": km.tolist(), "value": value.tolist()})


@messy("income_and_city.csv", "One number of a large scale, and a category that matters more.",
       target="rent", types={"income": "number", "city": "category"}, score=0.6)  # fmt: skip
def _income_and_city(rng):
    income = rng.normal(50_000, 20_000, N_ROWS).round(-1)
    city = [list(CITIES)[i % 3] for i in range(N_ROWS)]
    rent = [
        600 + 5 * CITIES[c] + i / 1000 + rng.normal(0, 20)
        for c, i in zip(city, income, strict=True)
    ]
    return csv_bytes({"income": income.tolist(), "city": city, "rent": np.round(rent, 2).tolist()})


@messy("huge_integers.csv", "Integers above 2^53.", types={"account": "identifier"})
def _huge_integers(rng):
    return csv_bytes({"account": [2**60 + 3 * i for i in range(N_ROWS)], **houses(rng)})


GOOD = ["great", "lovely", "excellent", "friendly", "clean"]
BAD = ["awful", "dirty", "rude", "broken", "noisy"]
THINGS = ["room", "staff", "breakfast", "view", "bed", "shower", "lift", "garden", "corridor"]


def reviews(rng: np.random.Generator, n: int = 80) -> Columns:
    """Return reviews and nights, and a label that depends on the words of the review."""
    texts, labels = [], []
    for i in range(n):
        words = GOOD if i % 2 else BAD
        parts = [f"the {rng.choice(THINGS)} was {rng.choice(words)}" for _ in range(4)]
        texts.append(f"{', and '.join(parts)}.".capitalize())
        labels.append("good" if i % 2 else "bad")
    return {"review": texts, "nights": rng.integers(1, 9, n).tolist(), "label": labels}


@messy("free_text.csv", "Reviews as free text, and numbers.", method="svc", target="label",
       types={"review": "text", "nights": "number"}, rows=80, score=0.75)  # fmt: skip
def _free_text(rng):
    return csv_bytes(reviews(rng))


@messy("free_text.jsonl", "Reviews as free text, and numbers, in JSON Lines.", method="svc",
       target="label", types={"review": "text", "nights": "number"}, rows=80,
       score=0.75)  # fmt: skip
def _free_text_jsonl(rng):
    return json_lines(rows_of(reviews(rng)))


@messy("only_text.csv", "Only free text and a label.", method="logistic", target="label",
       types={"review": "text"}, rows=80, score=0.75)  # fmt: skip
def _only_text(rng):
    t = reviews(rng)
    del t["nights"]
    return csv_bytes(t)


@messy("rare_levels.csv", "Two categories occur once each, and so does one class.", method="svc",
       target="kind", types={"city": "category"}, score=0.7)  # fmt: skip
def _rare_levels(rng):
    t = with_kind(houses(rng))
    t["city"][4], t["city"][9] = "Worms", "Jena"
    return csv_bytes(t)


@messy("rare_class.csv", "One class of the target occurs once.", method="svc", target="kind",
       score=0.7)  # fmt: skip
def _rare_class(rng):
    t = with_kind(houses(rng))
    t["kind"][5] = "free"
    return csv_bytes(t)


def _unseen(rng):
    t = houses(rng)
    t["city"] = ["Worms" if i % 2 else c for i, c in enumerate(t["city"])]
    return csv_bytes(t)


@messy("unseen_levels.csv", "New rows have a city that the training rows do not have.",
       types={"city": "category"}, new=_unseen)  # fmt: skip
def _unseen_levels(rng):
    return csv_bytes(houses(rng))


def _text_in_numbers(rng):
    t = houses(rng)
    t["area"][3], t["rooms"][5] = "unknown", ""
    return csv_bytes(t)


@messy("unseen_text.csv", "New rows have a word in a column of numbers.", new=_text_in_numbers)
def _unseen_text(rng):
    return csv_bytes(houses(rng))


@messy("high_cardinality.csv", "A category of 40 levels in 120 rows.", rows=120,
       types={"district": "category"}, score=0.3)  # fmt: skip
def _high_cardinality(rng):
    levels = rng.integers(0, 40, 120).tolist()
    return csv_bytes({"district": [f"district {i}" for i in levels], **houses(rng, 120)})


@messy("constant.csv", "A column of one number and a column of one word.",
       types={"year": "constant", "country": "constant"})  # fmt: skip
def _constant(rng):
    return csv_bytes({"year": [2024] * N_ROWS, **houses(rng), "country": ["Germany"] * N_ROWS})


@messy("empty_column.csv", "A column without values.", types={"remark": "empty"})
def _empty_column(rng):
    return csv_bytes({**houses(rng), "remark": [None] * N_ROWS})


@messy("typos.csv", "A numeric column in which three of 60 cells are typing errors.",
       types={"area": "number"}, notes=("area", "8o.5"))  # fmt: skip
def _typos(rng):
    t = houses(rng)
    t["area"][7], t["area"][20], t["area"][33] = "8o.5", "about 90", "7,,1"
    return csv_bytes(t)


@messy("infinite.csv", "Infinite values in a numeric column.", types={"area": "number"})
def _infinite(rng):
    t = houses(rng)
    t["area"][3], t["area"][8], t["area"][9] = "inf", "-inf", "Infinity"
    return csv_bytes(t)


@messy("placeholder.csv", "Missing numbers written as -999.", types={"area": "number"}, score=-1.0)
def _placeholder(rng):
    t = houses(rng)
    for i in (3, 8, 21, 40):
        t["area"][i] = -999
    return csv_bytes(t)


# ---------------------------------------------------------------------- missing values

MARKS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "#DIV/0!", "#VALUE!",
         "#REF!", "\\N", "<NA>", "?", "-", "--", ".", "NaT"]  # fmt: skip


@messy("missing_marks.csv", "Missing numbers with the marks of Excel, pandas, R and SQL.",
       types={"area": "number", "rooms": "number"}, score=0.3)  # fmt: skip
def _missing_marks(rng):
    t = houses(rng)
    for i, mark in enumerate(MARKS):
        t["area" if i % 2 else "rooms"][2 * i] = mark
    return csv_bytes(t)


@messy("missing_everywhere.csv", "Each row has one missing value.", types={"city": "category"},
       score=-0.5)  # fmt: skip
def _missing_everywhere(rng):
    t = houses(rng)
    for i in range(N_ROWS):
        t[("area", "rooms", "city")[i // 3 % 3]][i] = None
    return csv_bytes(t)


@messy("missing_categories.csv", "Missing categories.", types={"city": "category"}, score=0.2)
def _missing_categories(rng):
    t = houses(rng)
    t["city"] = [None if i % 5 == 0 else c for i, c in enumerate(t["city"])]
    return csv_bytes(t)


@messy("missing_target.csv", "Five rows without a target.", notes=("5 ", "target"))
def _missing_target(rng):
    t = houses(rng)
    for i in (1, 5, 30, 31, 59):
        t["price"][i] = None
    return csv_bytes(t)


@messy("missing_label.csv", "Five rows without a label.", method="svc", target="kind",
       score=0.75, notes=("5 ", "target"))  # fmt: skip
def _missing_label(rng):
    t = with_kind(houses(rng))
    for i in (1, 5, 30, 31, 59):
        t["kind"][i] = None
    return csv_bytes(t)


# ---------------------------------------------------------------------- Parquet and Arrow


def arrow_table(columns: Mapping):
    """Return a pyarrow table."""
    import pyarrow as pa

    return pa.table(dict(columns))


def parquet(table) -> bytes:
    """Return the bytes of a Parquet file."""
    from pyarrow import parquet as pq

    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def arrow_file(table, stream: bool = False) -> bytes:
    """Return the bytes of an Arrow file, or of an Arrow stream."""
    import pyarrow as pa

    file = io.BytesIO()
    create = pa.ipc.new_stream if stream else pa.ipc.new_file
    with create(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


@messy("plain.parquet", "A clean Parquet file.", needs="pyarrow", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _plain_parquet(rng):
    return parquet(arrow_table(houses(rng)))


@messy("dictionary.parquet", "Categories as a dictionary, with an unused value.", needs="pyarrow",
       types={"city": "category"})  # fmt: skip
def _dictionary(rng):
    import pyarrow as pa

    t = houses(rng)
    codes = [list(CITIES).index(c) for c in t["city"]]
    values = [*CITIES, "Worms"]
    t["city"] = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values))
    return parquet(arrow_table(t))


@messy("timestamps.parquet", "Timestamps in four units, one with a zone, and dates.",
       needs="pyarrow", target="amount", score=0.7,
       types={"day": "date", "ns": "date", "zoned": "date"})  # fmt: skip
def _timestamps(rng):
    import pyarrow as pa

    t = sales(rng, None)
    when = [datetime(d.year, d.month, d.day, 12, 30) for d in t["day"]]
    t["ns"] = pa.array(when, pa.timestamp("ns"))
    t["s"] = pa.array([None, *when[1:]], pa.timestamp("s"))
    t["zoned"] = pa.array(when, pa.timestamp("ms", tz="Europe/Berlin"))
    t["day"] = pa.array(t["day"], pa.date32())
    return parquet(arrow_table(t))


@messy("times.parquet", "Times of the day and durations.", needs="pyarrow", target="load",
       types={"time": "date", "took": "number"}, score=0.6)  # fmt: skip
def _times_parquet(rng):
    import pyarrow as pa

    minutes, load = shift_times(rng)
    time = pa.array([60 * m for m in minutes], pa.time32("s"))
    took = pa.array(rng.integers(1, 10**6, N_ROWS).tolist(), pa.duration("ms"))
    return parquet(arrow_table({"time": time, "took": took, "load": load}))


@messy("decimals.parquet", "Decimal numbers.", needs="pyarrow", types={"area": "number"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _decimals(rng):
    t = houses(rng)
    t["area"], t["price"] = ([Decimal(str(v)) for v in t[name]] for name in ("area", "price"))
    return parquet(arrow_table(t))


@messy("lists.parquet", "Columns of lists, structures and bytes, which no model can use.",
       needs="pyarrow", types={"tags": "unreadable", "place": "unreadable",
       "photo": "unreadable", "area": "number"})  # fmt: skip
def _lists(rng):
    t = houses(rng)
    t["tags"] = [["a", "b"][: i % 3] for i in range(N_ROWS)]
    t["place"] = [{"x": i, "y": 0.5} for i in range(N_ROWS)]
    t["photo"] = [bytes([i, 255, 0]) for i in range(N_ROWS)]
    return parquet(arrow_table(t))


@messy("nullable.parquet", "Integers and booleans with missing values.", needs="pyarrow",
       types={"rooms": "number", "garden": "boolean"})  # fmt: skip
def _nullable(rng):
    t = houses(rng)
    t["rooms"] = [None if i % 9 == 0 else r for i, r in enumerate(t["rooms"])]
    t["garden"] = [None if i % 11 == 0 else i % 2 == 0 for i in range(N_ROWS)]
    return parquet(arrow_table(t))


@messy("boolean_target.parquet", "A target of booleans.", needs="pyarrow", method="svc",
       target="dear", score=0.75)  # fmt: skip
def _boolean_target_parquet(rng):
    return parquet(arrow_table(with_kind(houses(rng), (False, True), "dear")))


@messy("huge_integers.parquet", "Integers above 2^53.", needs="pyarrow",
       types={"account": "identifier"})  # fmt: skip
def _huge_parquet(rng):
    return parquet(arrow_table({"account": [2**60 + 3 * i for i in range(N_ROWS)], **houses(rng)}))


@messy("pandas.parquet", "A DataFrame with categories, dates, a text index and nullable columns.",
       needs="pandas", types={"city": "category", "day": "date", "rooms": "number",
       "garden": "boolean"})  # fmt: skip
def _pandas_parquet(rng):
    import pandas as pd

    t = houses(rng)
    frame = pd.DataFrame(t, index=[f"h{i}" for i in range(N_ROWS)])
    frame["city"] = frame["city"].astype("category")
    frame["day"] = pd.to_datetime(days(rng))
    frame["rooms"] = frame["rooms"].astype("Int64")
    frame["garden"] = pd.array([i % 2 == 0 for i in range(N_ROWS)], dtype="boolean")
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


@messy("houses.feather", "A Feather file with a null column.", needs="pyarrow",
       types={"city": "category", "remark": "empty"})  # fmt: skip
def _feather(rng):
    from pyarrow import feather

    file = io.BytesIO()
    table = arrow_table({**houses(rng), "remark": [None] * N_ROWS})
    feather.write_feather(table, file, compression="zstd")
    return file.getvalue()


@messy("stream.arrow", "An Arrow stream instead of an Arrow file.", needs="pyarrow",
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _stream(rng):
    return arrow_file(arrow_table(houses(rng)), stream=True)


# ---------------------------------------------------------------------- JSON


@messy("nested.jsonl", "Objects inside objects, lists and missing keys.",
       types={"area": "number"})  # fmt: skip
def _nested(rng):
    rows = rows_of(houses(rng))
    for i, row in enumerate(rows):
        row["place"] = {"name": row.pop("city"), "lat": 50 + i / 10}
        row["tags"] = ["new", "old"][: i % 3]
        if i % 10 == 3:
            del row["rooms"]
    return json_lines(rows)


@messy("booleans.jsonl", "Booleans and nulls in JSON.", types={"garden": "boolean"})
def _booleans_jsonl(rng):
    t = houses(rng)
    t["garden"] = [None if i % 11 == 0 else i % 2 == 0 for i in range(N_ROWS)]
    return json_lines(rows_of(t))


@messy("numbers_as_text.jsonl", "Numbers and dates as strings.",
       types={"area": "number", "day": "date"})  # fmt: skip
def _numbers_as_text(rng):
    t = houses(rng)
    t["area"], t["day"] = map(str, t["area"]), map(str, days(rng))
    return json_lines(rows_of(t))


@messy("array.json", "A JSON array of objects, indented.", types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _array_json(rng):
    return json.dumps(rows_of(houses(rng)), indent=2).encode()


@messy("lines.json", "JSON Lines in a .json file.", types={"city": "category"})
def _lines_json(rng):
    return json_lines(rows_of(houses(rng)))


@messy("pandas.json", "pandas' DataFrame.to_json: one object per column.",
       types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0))  # fmt: skip
def _pandas_json(rng):
    t = houses(rng)
    return json.dumps({n: {str(i): v for i, v in enumerate(c)} for n, c in t.items()}).encode()


# ---------------------------------------------------------------------- Excel


def archive(files: Mapping[str, str]) -> bytes:
    """Return a zip archive, which does not depend on the time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, text in files.items():
            out.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


def xlsx(**sheets: Sequence[Sequence]) -> bytes:
    """Return an Excel workbook; each sheet is a list of rows, with None for empty cells."""
    from openpyxl import Workbook

    book, file = Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for i, row in enumerate(rows, 1):
            for j, value in enumerate(row, 1):
                page.cell(i, j, value)
    book.save(file)
    return file.getvalue()


def sheet(columns: Columns) -> list[list]:
    """Return a table as the rows of a sheet."""
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


@messy("houses.xlsx", "A sheet with numbers, text, dates and booleans.",
       types={"city": "category", "day": "date", "garden": "boolean"},
       values=scaled_houses(area=1.0, price=1.0), needs="openpyxl")  # fmt: skip
def _xlsx(rng):
    garden = [i % 2 == 0 for i in range(N_ROWS)]
    return xlsx(Houses=sheet({**houses(rng), "day": days(rng), "garden": garden}))


@messy("several_sheets.xlsx", "Three sheets, of which the first has the table.",
       types={"city": "category"}, notes=("Prices", "Codes"), needs="openpyxl")  # fmt: skip
def _several_sheets(rng):
    codes = [["city", "code"], ["Bonn", 53111], ["Ulm", 89073]]
    return xlsx(Prices=sheet(houses(rng)), Codes=codes, Notes=[["written in May"]])


@messy("leading_rows.xlsx", "Two empty rows and an empty column precede the table.",
       types={"city": "category"},
       values=scaled_houses(area=1.0, price=1.0), needs="openpyxl")  # fmt: skip
def _leading_rows(rng):
    return xlsx(Sheet1=[[], [], *([None, *row] for row in sheet(houses(rng)))])


@messy("error_cells.xlsx", "Cells with errors of formulas, and empty cells.",
       types={"area": "number", "rooms": "number"}, needs="openpyxl")  # fmt: skip
def _error_cells(rng):
    t = houses(rng)
    for i, mark in enumerate(("#DIV/0!", "#N/A", "#VALUE!", "#REF!", "#NAME?")):
        t["area"][7 * i] = mark  # openpyxl writes this text as an error
    t["rooms"][2] = None
    return xlsx(Sheet1=sheet(t))


# ---------------------------------------------------------------------- NumPy


def _saved(save: Callable, *args, **arrays) -> bytes:
    file = io.BytesIO()
    save(file, *args, **arrays)
    return file.getvalue()


@messy("structured.npy", "A structured array with text, booleans and dates.",
       types={"city": "category", "garden": "boolean", "day": "date"})  # fmt: skip
def _structured(rng):
    t = houses(rng)
    t["garden"], t["day"] = [i % 2 == 0 for i in range(N_ROWS)], days(rng)
    kinds = [("area", "f4"), ("rooms", "i2"), ("city", "U8"), ("price", "f8"), ("garden", "?"),
             ("day", "M8[D]")]  # fmt: skip
    return _saved(np.save, np.array(list(zip(*t.values(), strict=True)), dtype=kinds))


@messy("matrix.npy", "A matrix of float32 without names.", target="x3", score=0.4)
def _matrix(rng):
    t = houses(rng)
    del t["city"]
    return _saved(np.save, np.array(list(t.values()), dtype=np.float32).T)


@messy("arrays.npz", "A matrix X and labels y.", method="svc", target="y", score=0.75)
def _arrays(rng):
    t = with_kind(houses(rng))
    X = np.column_stack([t["area"], t["rooms"]])
    return _saved(np.savez, X=X, y=np.array(t["kind"]))


# ---------------------------------------------------------------------- standard input


def _from_stdin(name: str) -> None:
    """Add a file of `FILES` a second time, now read from standard input."""
    file = next(file for file in FILES if file.name == name)
    description = f"{file.description} Read from standard input."
    FILES.append(replace(file, description=description, stdin=True))


for _name in ("plain.csv", "european.csv", "utf16.txt", "houses.csv.gz", "plain.parquet",
              "houses.feather", "stream.arrow", "booleans.jsonl", "array.json", "houses.xlsx",
              "matrix.npy"):  # fmt: skip
    _from_stdin(_name)


# ---------------------------------------------------------------------- refused files


@messy("ragged.csv", "Three rows have too many or too few cells.",
       refused=("line 6", "line 21", "line 41"))  # fmt: skip
def _ragged(rng):
    lines = csv_text(houses(rng)).splitlines()
    lines[5] += ",7"
    lines[20] = lines[20].rpartition(",")[0]
    lines[40] += ",8,9"
    return "\n".join(lines).encode()


@messy("unclosed_quote.csv", "A quote is opened and not closed.", refused=("line 6", "quote"))
def _unclosed_quote(rng):
    lines = csv_text(houses(rng)).splitlines()
    lines[5] = lines[5].replace("Ulm", '"Ulm').replace("Bonn", '"Bonn').replace("Köln", '"Köln')
    return "\n".join(lines).encode()


@messy("truncated.parquet", "The second half of a Parquet file is missing.", needs="pyarrow",
       refused=("truncated.parquet", "Parquet"))  # fmt: skip
def _truncated_parquet(rng):
    whole = parquet(arrow_table(houses(rng)))
    return whole[: len(whole) // 2]


@messy("truncated.csv.gz", "The end of a compressed file is missing.",
       refused=("truncated.csv.gz",))  # fmt: skip
def _truncated_gz(rng):
    return gzip.compress(csv_bytes(houses(rng)), mtime=0)[:-40]


@messy("truncated.xlsx", "The second half of an Excel file is missing.",
       refused=("truncated.xlsx",), needs="openpyxl")  # fmt: skip
def _truncated_xlsx(rng):
    whole = xlsx(Sheet1=sheet(houses(rng)))
    return whole[: len(whole) // 2]


@messy("garbage.csv", "Random bytes with the extension .csv.", refused=("garbage.csv",))
def _garbage(rng):
    return b"\x00\x01" + rng.bytes(4000)


@messy("picture.csv", "A PNG picture with the extension .csv.", refused=("picture.csv",))
def _picture(rng):
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + rng.bytes(3000)


@messy("page.csv", "A web page instead of a table, as a failed download leaves.",
       refused=("page.csv", "HTML"))  # fmt: skip
def _page(rng):
    return b"<!DOCTYPE html>\n<html>\n<head><title>404</title></head>\n<body>No</body></html>\n"


@messy("empty.csv", "A file of 0 bytes.", refused=("empty.csv", "empty"), rows=0)
def _empty(rng):
    return b""


@messy("header_only.csv", "Only a header.", refused=("header_only.csv", "row"), rows=0)
def _header_only(rng):
    return b"area,rooms,city,price\n"


@messy("one_column.csv", "Only the target.", refused=("price",))
def _one_column(rng):
    return csv_bytes({"price": houses(rng)["price"]})


@messy("one_row.csv", "A header and one row.", method="svc", target="kind", rows=1,
       refused=("kind", "cheap"), commands=("fit", "score"))  # fmt: skip
def _one_row(rng):
    return csv_bytes(with_kind(houses(rng, 1)))


@messy("nothing_to_use.csv", "Only identifiers, a constant and an empty column.",
       refused=("'name'", "'key'", "'year'", "'remark'"))  # fmt: skip
def _nothing_to_use(rng):
    names = [f"P-{i:04}" for i in range(N_ROWS)]
    keys = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(N_ROWS)]
    return csv_bytes({"name": names, "key": keys, "year": [2024] * N_ROWS,
                      "remark": [None] * N_ROWS, "price": houses(rng)["price"]})  # fmt: skip


@messy("no_target_values.csv", "The target has no value.", refused=("price",),
       commands=("fit", "score"))  # fmt: skip
def _no_target_values(rng):
    return csv_bytes(houses(rng) | {"price": [None] * N_ROWS})


@messy("one_class.csv", "The target has one class.", method="svc", target="kind",
       refused=("kind", "cheap"), commands=("fit", "score"))  # fmt: skip
def _one_class(rng):
    return csv_bytes(with_kind(houses(rng), ("cheap", "cheap")))


@messy("text_target.csv", "The target of a regression is text.", refused=("kind", "svc"),
       target="kind", commands=("fit", "score"))  # fmt: skip
def _text_target(rng):
    return csv_bytes(with_kind(houses(rng)))


@messy("continuous_classes.csv", "The target of a classifier is continuous.", method="svc",
       refused=("price", "ridge"), commands=("fit", "score"))  # fmt: skip
def _continuous_classes(rng):
    return csv_bytes(houses(rng))


@messy("no_such_target.csv", "The name of the target is misspelt.", target="prize",
       refused=("'prize'", "did you mean 'price'"), commands=("fit", "score"))  # fmt: skip
def _no_such_target(rng):
    return csv_bytes(houses(rng))


@messy("broken.jsonl", "Two lines are not JSON objects.",
       refused=("line 4", "line 31"))  # fmt: skip
def _broken_jsonl(rng):
    lines = json_lines(rows_of(houses(rng))).decode().splitlines()
    lines[3], lines[30] = lines[3][:-9], "end of part 1"
    return "\n".join(lines).encode()


@messy("broken.json", "A JSON array without its end.", refused=("broken.json", "JSON"))
def _broken_json(rng):
    return json.dumps(rows_of(houses(rng)))[:-200].encode()


@messy("csv_named.parquet", "A CSV file with the extension .parquet.",
       refused=("csv_named.parquet", "Parquet"))  # fmt: skip
def _csv_named_parquet(rng):
    return csv_bytes(houses(rng))


@messy("old_excel.xls", "A workbook in the format of Excel 97.", refused=("old_excel.xls", "xlsx"))
def _old_excel(rng):
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + rng.bytes(3000)


def main() -> None:
    """Write all files into the folder of the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        if file.needs and find_spec(file.needs) is None:
            continue
        file.write(folder)
        outcome = "refused" if file.refused else "opens"
        print(f"{file.name:28} {outcome:8} {file.method:9} {file.target:14} {file.description}")


if __name__ == "__main__":
    main()
