"""Treatments of columns: how each column becomes features, chosen by its type."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from ._cell_notation import GRAPHS, TEXT, UNREADABLE
from ._column_contents import is_missing
from ._column_encoders import (
    DAYS_PER_YEAR,
    CategoryColumn,
    ColumnEncoder,
    DateColumn,
    NumberColumn,
    TextColumn,
    stripped,
    text_features,
)
from ._column_types import USED_TYPES, TableSummary, needs_standardising
from ._table import Table, TableError, kind_of

MAX_CATEGORIES = 400  # a category column has at most this many levels; rare ones are combined
N_TEXT_FEATURES = 200  # number of features of a column of free text
ALL = "all"  # in `onehot`, this allows one-hot encoding of all columns that contain categories


class DecisionError(TableError):
    """Error for a table with columns that need a decision.

    Parameters
    ----------
    message : str
        The message, which lists all columns.
    options : str
        The options of the command line that would decide.
    """

    def __init__(self, message: str, options: str) -> None:
        super().__init__(message)
        self.options = options


class Treatment(NamedTuple):
    """What a recipe does with one column.

    Attributes
    ----------
    column : str
        The name of the column.
    type : str
        Its type: "number", "boolean", "category", "date", "text", or the reason why it is not
        used: "identifier", "constant", "empty", "unreadable", "target", "ignored".
    treatment : str
        How features are computed from it.
    n_missing : int
        The number of missing values in the training rows.
    """

    column: str
    type: str
    treatment: str
    n_missing: int = 0


_DATE_FEATURES = {
    "elapsed": "elapsed time",
    "year": "time of year",
    "week": "day of week",
    "day": "time of day",
}
REASONS = {
    "identifier": "an identifier",
    "constant": "constant",
    "empty": "empty",
    "unreadable": "neither numbers, text nor dates",
    "graphs": "graphs",
}


class TreatmentMixin:
    """The part of `Recipe.fit` that chooses the treatment of each column."""

    points: str
    standardize: bool | str
    onehot: Any
    types: dict[str, str] | None
    impute: Any
    strict: bool

    def _column_types(
        self, table: Table, summary: TableSummary, names: list[str]
    ) -> dict[str, str]:
        """Return the type of each column: given by the user, or detected."""
        onehot = () if self.onehot == ALL else tuple(self.onehot)
        types = {name: summary.type_of(name) for name in names}
        for name in names:
            if name in onehot:
                types[name] = "category"
            elif name in (self.types or {}):
                types[name] = self._requested_type(table, summary, name)
        if not any(kind in USED_TYPES for kind in types.values()):
            # A table of the numbers 1, 2, 3, ... has no other column: use them.
            undecided = [name for name in summary.numbers if name not in (self.types or {})]
            types |= {name: "number" for name in undecided if types[name] == "identifier"}
        return types

    def _requested_type(self, table: Table, summary: TableSummary, name: str) -> str:
        """Return the type that the user gave to a column, if its values allow it."""
        requested, kind = (self.types or {})[name], summary.kinds[name]
        detected = summary.type_of(name)
        is_text = name in summary.counts
        possible = {
            "number": name in summary.numbers or detected == "number",
            "boolean": name in summary.numbers,
            "date": name in summary.dates,
            "text": is_text,
            "category": kind not in (GRAPHS, UNREADABLE),
        }
        if possible.get(requested, True) or detected == "empty":
            return requested if detected != "empty" or requested == "category" else detected
        raise table.error(
            f"the type is {detected}, not {requested} - the values cannot be read as {requested}s; "
            f"correct them, or omit the type",
            name,
        )

    def _impute_of(self, kind: str) -> Any:
        """Return how missing values of a type are replaced: "auto", a strategy, a value or None."""
        if isinstance(self.impute, dict):
            return self.impute.get(kind, "auto")
        return self.impute

    def _encoders(
        self, table: Table, summary: TableSummary, types: dict[str, str]
    ) -> tuple[list[ColumnEncoder], list[Treatment]]:
        """Return the fitted encoders of the columns, and the treatments of all columns."""
        numbers = [n for n in types if types[n] == "number"]
        standardize = self.standardize
        if standardize == "auto":
            has_others = any(types[n] in USED_TYPES and types[n] != "number" for n in types)
            scales = [summary.mean_and_scale(n)[1] for n in numbers]
            standardize = has_others or needs_standardising(scales)
        if not standardize and all(types[n] in ("number", "constant") for n in types):
            # The columns have the same units, such as pixels: constant ones keep their place.
            types = types | {n: "number" for n in types if n in summary.numbers}
        encoders: list[Any] = []
        treatments = list[Treatment]()
        for name, kind in types.items():
            missing = summary.n_missing[name]
            encoder: Any = None
            if kind in ("number", "boolean"):
                encoder = self._number(table, summary, name, kind, bool(standardize))
                text = "0 and 1" if kind == "boolean" else "not scaled"
                text = "standardised" if kind == "number" and standardize else text
                if summary.n_unusable[name]:
                    what = "infinite value" if name in summary.numbers else "text"
                    text += f", {count_of(summary.n_unusable[name], what)} missing"
                    text += f" ({summary.example(name)})"
                    missing += summary.n_unusable[name]
                if missing and encoder.fill is not None:
                    text += f", filled with {encoder.fill:.4g}"
                if placeholder := summary.placeholder(name):
                    value, count = placeholder
                    text += f"; {count} values are {value:g}: if missing, use --na {value:g}"
            elif kind == "category":
                encoder = self._category(table, summary, name)
                how = "categories" if self.points == "rows" else "one-hot"
                text = f"{how}, {count_of(len(encoder.levels) - encoder.has_missing, 'level')}"
                text += " and missing" if encoder.has_missing else ""
                if encoder.has_other:
                    n_others = len(summary.counts[name]) - len(encoder.categories)
                    text += f" ({n_others} rare values combined)"
                if missing and encoder.fill is not None:
                    text += f", filled with {encoder.fill!r}"
            elif self.points == "rows" and kind == "text":
                encoder, text = TextColumn(name, None), "text"
            elif kind == "date":
                encoder = self._date(summary, name)
                if self.points == "rows":
                    encoder = replace(encoder, parts=("elapsed",))
                text = ", ".join(_DATE_FEATURES[part] for part in encoder.parts)
            elif kind == "text":
                features = text_features(summary.counts[name], N_TEXT_FEATURES, seed=0)
                encoder = TextColumn(name, features)
                text = f"{len(encoder.feature_names)} features of BagOfWords"
            else:
                text = "not used"
                if kind == "unreadable":
                    text += f": {table.columns[name].reason}"
            if name in summary.hints and kind != "number":
                text += f"; {summary.hints[name]}"
            if encoder is not None:
                encoders.append(encoder)
            treatments.append(Treatment(name, kind, text, missing))
        if not encoders:
            reasons = "; ".join(
                f"{t.column!r} is {REASONS[t.type]}{t.treatment.removeprefix('not used')}"
                for t in treatments[:12]
            )
            raise TableError(
                f"{table.source} has no columns to use as features: {reasons} - use one anyway "
                f"with --type NAME=category"
            )
        return encoders, treatments

    def _number(
        self, table: Table, summary: TableSummary, name: str, kind: str, standardize: bool
    ) -> NumberColumn:
        """Return the encoder of numbers or booleans."""
        mean, scale = summary.mean_and_scale(name)
        if not np.isfinite(scale):
            raise table.error(
                "values are too large to compute a standard deviation - usually a placeholder for "
                "a missing value - correct the values, or exclude the column with --ignore",
                name,
            )
        impute = self._impute_of(kind)
        fill: float | None = None
        if impute in ("auto", "mean"):
            fill = mean
        elif isinstance(impute, (int, float)):
            fill = float(impute)
        elif impute in ("median", "most_frequent"):
            fill = _statistic(table, summary, name, impute)
        if kind == "boolean" or not standardize:
            mean, scale = 0.0, 1.0
        notation = summary.notations.get(name, "")
        return NumberColumn(name, kind, fill, mean, scale, summary.n_unusable[name] > 0, notation)

    def _category(self, table: Table, summary: TableSummary, name: str) -> CategoryColumn:
        """Return the encoder of categories."""
        if name in summary.counts:
            counts = summary.counts[name]
        else:  # numbers or dates that are categories
            counts = summary.counts[name] = Counter[str]()
            counts.update(_category_counts(summary, name, table))
        if not counts:
            raise table.error(
                "all values are missing, so the column contains no information - exclude it with "
                f"--ignore {quote(name)}",
                name,
            )
        ordered = sorted(counts, key=lambda value: (-counts[value], value))
        kept = tuple(sorted(ordered[:MAX_CATEGORIES]))
        impute = self._impute_of("category")
        missing_level = impute == "auto" and summary.n_missing[name] > 0
        fill = ordered[0] if impute not in ("auto", "drop", None) else None
        has_other = len(ordered) > MAX_CATEGORIES
        return CategoryColumn(name, kept, has_other, missing_level, fill, is_text(table, name))

    def _date(self, summary: TableSummary, name: str) -> DateColumn:
        """Return the encoder of dates."""
        start = int(summary.date_ranges[name][0].astype("datetime64[us]").astype(np.int64))
        mean, scale = summary.date_mean_and_scale(name)
        per_year = DAYS_PER_YEAR * 86400
        parts = summary.date_parts(name)
        return DateColumn(name, start, parts, (mean - start / 1e6) / per_year, scale / per_year)

    def _refuse(self, table: Table, summary: TableSummary, types: dict[str, str]) -> None:
        """Raise an error that lists all columns that need a decision, if strict or impute=None."""
        problems: dict[str, list[str]] = {}
        options: dict[str, list[str]] = {"--onehot": [], "--ignore": [], "--type": []}
        needs_impute = False
        decided = {*(self.types or {}), *(() if self.onehot == ALL else self.onehot)}
        for name, kind in types.items():
            missing = summary.n_missing[name] + summary.n_unusable[name]
            if self.strict and kind not in ("number", "boolean") and name not in decided:
                if kind == "category" and self.onehot != ALL and ALL not in self.onehot:
                    values = count_of(len(summary.counts[name]), "different value")
                    problems.setdefault(name, []).append(f"contains categories ({values})")
                    options["--onehot"].append(name)
                elif kind in ("date", "text") and self.points == "vectors":
                    problems.setdefault(name, []).append(f"contains {kind}s")
                    options["--type"].append(f"{name}={kind}")
                elif kind not in USED_TYPES:
                    problems.setdefault(name, []).append(f"is {REASONS[kind]}")
                    options["--ignore"].append(name)
            if missing and kind in USED_TYPES:
                impute = self._impute_of(kind)
                if impute is None or (self.strict and impute == "auto"):
                    row = _first_missing(table, name)
                    where = "" if row is None else f", first on {table.where(row)}"
                    described = f"has {count_of(missing, 'missing value')}{where}"
                    problems.setdefault(name, []).append(described)
                    needs_impute = True
        if not problems:
            return
        parts = [f"{o} {quote(','.join(names))}" for o, names in options.items() if names]
        parts += ["--impute mean"] * needs_impute
        listed = "; ".join(f"{name!r} {' and '.join(found)}" for name, found in problems.items())
        why = "strict" if self.strict else "impute=None"
        raise DecisionError(
            f"{table.source}: {count_of(len(problems), 'column')} need a decision, because missing "
            f"values and columns that are not numeric are not converted automatically ({why}): "
            f"{listed} - for example, add: {' '.join(parts)}",
            " ".join(parts),
        )


def _statistic(table: Table, summary: TableSummary, name: str, impute: str) -> float:
    """Return the median or the most frequent value of a numeric column."""
    from sklearn.impute import SimpleImputer

    try:
        values = summary.column_values(name)
    except TableError:
        raise TableError(
            f"{table.source} is too large to read at once, as --impute {impute} requires - use "
            f"--impute mean, which can be computed block by block"
        ) from None
    imputer = SimpleImputer(strategy=impute).fit(values[np.isfinite(values)][:, None])
    return float(imputer.statistics_[0])


def _category_counts(summary: TableSummary, name: str, table: Table) -> Counter[str]:
    """Return the number of occurrences of each value of a column of numbers or dates."""
    if summary.n_rows > len(table):
        raise TableError(
            f"{table.source} is too large to read at once, as the type category of the numeric "
            f"column {name!r} requires - write its values as text"
        )
    texts = stripped(table.texts(name))
    return Counter(value for value in texts if value is not None)


def _first_missing(table: Table, name: str) -> int | None:
    rows = np.flatnonzero(is_missing(table.columns[name]))
    return int(rows[0]) if len(rows) else None


def count_of(n: int, what: str) -> str:
    """Return a number and a noun, such as "1 row" or "2 rows"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def is_text(table: Table, name: str) -> bool:
    """Return True if a column contains text."""
    return kind_of(table.column(name)) == TEXT
