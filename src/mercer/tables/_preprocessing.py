"""The `Recipe` class: preprocessing that turns the columns of a table into points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from shlex import quote
from typing import Any

import numpy as np

from .._core import take
from ._column_contents import (
    RunningStatistics,
    inspect_texts,
    is_missing,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_text,
    refuse_unlikely_categories,
    truncated,
)
from ._table import (
    GRAPHS,
    TEXT,
    Table,
    TableError,
    as_texts,
    column_from_texts,
    is_number,
    kind_of,
    suggest_name,
)
from ._table_source import Source, as_table, is_frame

IMPUTE = ("mean", "median", "most_frequent", "drop")
_DROPPED = "Rows with missing values were dropped."
_ALL = "all"  # in `onehot`, this selects all text columns, unless a column is named "all"


@dataclass(frozen=True)
class ColumnTransform:
    """The fitted preprocessing of one column of a table.

    A numeric column becomes (value - mean) / scale; a categorical column is one-hot encoded.

    Parameters
    ----------
    name : str
        The name of the column.
    categories : tuple of str, default=None
        The categories of a one-hot encoded column; None for a numeric column.
    fill : float or str, default=None
        The value that replaces missing values, in the units of the column; None if they are not
        replaced.
    mean, scale : float, default=0.0, 1.0
        The mean and the standard deviation for standardisation.
    text : bool, default=False
        Whether the column was text when the recipe was fitted, so that "01" and "1" are different.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    mean: float = 0.0
    scale: float = 1.0
    text: bool = False

    @property
    def width(self) -> int:
        """The number of features that are computed from the column."""
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True)
class Recipe:
    """Preprocessing that turns the columns of a table into points for a kernel.

    The points are numeric vectors, or the strings or graphs in one column.  No column is converted
    silently: a text column raises an error unless it is in `onehot` or `ignore`, and a missing
    value raises an error unless `impute` states how to replace it.

    Parameters
    ----------
    columns : tuple of str, default=None
        The columns to use as features; None uses all columns except `target` and `ignore`.
    target : str, default=None
        The column to predict.
    ignore : tuple of str, default=()
        Columns to exclude.
    points : {"vectors", "texts", "graphs"}, default="vectors"
        The kind of points that the kernel accepts.
    standardize : bool, default=False
        Whether to scale numeric columns to mean 0 and standard deviation 1.  Missing values are
        excluded from the mean and the standard deviation.
    onehot : tuple of str or "all", default=()
        Columns to one-hot encode.  "all" encodes all text columns, but raises an error for a
        column that probably does not contain categories: most of its values are numbers or dates,
        or they are all different.  ("all", "date") encodes the column `date` anyway.
    impute : {"mean", "median", "most_frequent", "drop"} or float, default=None
        How to replace missing numbers; a float is a constant replacement.  In one-hot encoded
        columns, missing values are replaced by the most frequent category.  "drop" drops rows
        with missing values, and None raises an error.
    parts : tuple of ColumnTransform, default=None
        The fitted preprocessing of each column; set by `fit`.
    target_text : bool, default=False
        Whether the target was text or boolean when the recipe was fitted; set by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tables import Recipe, Table
    >>> city = np.array(["Bonn", "Ulm", "Bonn"], dtype=object)
    >>> table = Table({"x": np.array([1.0, 2.0, 3.0]), "city": city})
    >>> recipe = Recipe(onehot=("city",)).fit(table)
    >>> recipe.transform(table)
    array([[1., 1., 0.],
           [2., 0., 1.],
           [3., 1., 0.]])
    """

    columns: tuple[str, ...] | None = None
    target: str | None = None
    ignore: tuple[str, ...] = ()
    points: str = "vectors"
    standardize: bool = False
    onehot: tuple[str, ...] | str = ()
    impute: str | float | None = None
    parts: tuple[ColumnTransform, ...] | None = field(default=None, repr=False)
    target_text: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if f.repr and getattr(self, f.name) != f.default)
        return f"Recipe({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    # ------------------------------------------------------------------ fitting

    def fit(self, tables: Any) -> Recipe:
        """Compute means, scales and categories from all rows, and return the fitted recipe.

        Parameters
        ----------
        tables : Table, DataFrame, Source or iterable of Table
            A table, a pandas or polars DataFrame, a source from `open_table`, or blocks of rows.

        Returns
        -------
        Recipe
            A new recipe; this one is not changed.
        """
        self._check_parameters()
        if isinstance(tables, Source):
            tables = tables.blocks()
        is_single = (
            isinstance(tables, Table) or is_frame(tables) or not isinstance(tables, Iterable)
        )
        blocks = map(as_table, [tables] if is_single else tables)
        first = next(blocks)
        names = self._feature_columns(first)
        target_text = self.target is not None and _is_text(first, self.target)
        if self.points == "vectors":
            parts = self._fit_vectors(first, names, blocks)
        else:
            for table in chain([first], blocks):
                self._check_missing(table, names, fitted=False)
            parts = (ColumnTransform(names[0], text=self.points == "texts"),)
        return replace(self, parts=parts, target_text=target_text)

    def _check_missing(self, table: Table, names: list[str], *, fitted: bool) -> None:
        """Raise a TableError if values are missing and `impute` is None."""
        if self.impute is None:
            refuse_missing(table, names, fitted=fitted)

    def _fit_vectors(
        self, first: Table, names: list[str], blocks: Iterator[Table]
    ) -> tuple[ColumnTransform, ...]:
        """Return the preprocessing of the columns `names` of all blocks, if points are vectors."""
        onehot = self._onehot_columns(first, names)
        numeric = [name for name in names if name not in onehot]
        stats = RunningStatistics(len(numeric))
        counts: dict[str, Counter[str]] = {name: Counter() for name in names if name in onehot}
        second = next(blocks, None)
        n_missing, n_complete = Counter[str](), 0
        for table in chain([first], [] if second is None else [second], blocks):
            refuse_text(table, numeric, fitted=False)
            self._check_missing(table, names, fitted=False)
            rows = self._complete_rows(table, names)
            n_complete += int(rows.sum())
            for name in names if self.impute is not None else ():
                n_missing[name] += int(is_missing(table.columns[name]).sum())
            if numeric:
                X = np.column_stack([table.columns[name][rows] for name in numeric])
                refuse_infinite(table, numeric, fitted=False)
                stats.update(X)
            for name in onehot:
                categories = _categories(table.texts(name))[rows]
                counts[name].update(value for value in categories if value is not None)
        empty = [name for name, n in zip(numeric, stats.count, strict=True) if not n]
        empty += [name for name, values in counts.items() if not values]
        refuse_empty(first, n_complete, n_missing, empty, self.target)
        named = self._onehot_named(first)
        refuse_unlikely_categories(first, {n: c for n, c in counts.items() if n not in named})
        fills = self._fill_values(first, numeric, second is not None, stats)
        scale = stats.scale
        if self.standardize and not np.isfinite(scale).all():
            raise first.error(
                "values are too large to compute a standard deviation - usually a placeholder for "
                "a missing value - correct the values, or exclude the column with --ignore",
                numeric[int(np.argmin(np.isfinite(scale)))],
            )
        parts = []
        for name in names:
            if name in onehot:
                ordered = tuple(sorted(counts[name]))
                most_frequent = max(ordered, key=counts[name].__getitem__, default=None)
                fill = most_frequent if self.impute not in (None, "drop") else None
                parts.append(ColumnTransform(name, ordered, fill, text=_is_text(first, name)))
            else:
                j = numeric.index(name)
                mean_and_scale = (float(stats.mean[j]), float(scale[j])) if self.standardize else ()
                parts.append(ColumnTransform(name, None, fills[j], *mean_and_scale))
        return tuple(parts)

    def _check_parameters(self) -> None:
        """Raise a TableError if a parameter is invalid regardless of the data."""
        impute = self.impute
        if isinstance(impute, str) and impute not in IMPUTE:
            raise TableError(
                f"impute={impute!r} must be one of {', '.join(IMPUTE)} or a number"
                f"{suggest_name(str(impute), IMPUTE).removesuffix(';')}"
            )
        if isinstance(impute, (int, float)) and not np.isfinite(impute):
            raise TableError(
                f"impute={impute!r}: the number that replaces missing values must be finite"
            )
        if self.points == "vectors":
            return
        is_set = {"standardize": self.standardize, "onehot": bool(self.onehot)}
        is_set["impute"] = impute not in (None, "drop")
        for name in (name for name, value in is_set.items() if value):
            raise TableError(
                f"--{name} applies only to vectors, but this kernel compares {self.points} - omit "
                f"it{', or drop rows with --impute drop' if name == 'impute' else ''}"
            )

    def _feature_columns(self, table: Table) -> list[str]:
        """Return the names of the columns from which the points are computed."""
        for name in (*(self.columns or ()), *self.ignore, *filter(None, [self.target])):
            table.column(name)
        if isinstance(self.onehot, tuple):
            for name in self.onehot:
                if name != _ALL:
                    table.column(name)
        excluded = {*self.ignore, self.target, *(() if self.columns else table.index_columns)}
        names = [name for name in self.columns or table.columns if name not in excluded]
        kind = {"texts": TEXT, "graphs": GRAPHS}.get(self.points)
        if kind is not None:
            return [self._single_column(table, names, kind)]
        for name in names:
            if kind_of(table.columns[name]) == GRAPHS:
                raise TableError(
                    f"{table.source} contains graphs, but this kernel requires vectors - try a "
                    f"graph kernel: --kernel 'Normalized(WeisfeilerLehman())'"
                )
        if not names:
            raise TableError(
                f"{table.source} has no columns to use as features, because every column is "
                f"ignored, the colour or the target - include a column with --columns"
            )
        return names

    def _single_column(self, table: Table, names: list[str], kind: str) -> str:
        """Return the only column of this kind; raise a TableError if there are none or several."""
        matching = [name for name in names if kind_of(table.columns[name]) == kind]
        if len(matching) == 1:
            return matching[0]
        listed = ", ".join(map(repr, matching[:12]))
        longest = max(matching, key=lambda name: _total_length(table.columns[name]), default="")
        what = (
            f"has {len(matching)} columns of {kind}: {listed}"
            if matching
            else f"has no column of {kind}"
        )
        advice = (
            f"select one: --columns {quote(longest)}"
            if matching
            else "use a kernel on vectors, such as RBF()"
        )
        raise TableError(f"{table.source} {what}, but this kernel requires exactly one - {advice}")

    def _onehot_columns(self, table: Table, names: list[str]) -> set[str]:
        """Return the names of the columns to one-hot encode."""
        use_all = self._onehot_all and _ALL not in table.columns
        texts = {name for name in names if use_all and kind_of(table.columns[name]) == TEXT}
        named = self._onehot_named(table)
        unused = named - set(names)
        if unused:
            name = sorted(unused)[0]
            raise TableError(
                f"onehot contains the column {name!r}, which is not a feature, because it is "
                f"ignored, the colour or the target - remove it from onehot"
            )
        return texts | named

    @property
    def _onehot_all(self) -> bool:
        """Whether `onehot` contains "all"."""
        return self.onehot == _ALL or (isinstance(self.onehot, tuple) and _ALL in self.onehot)

    def _onehot_named(self, table: Table) -> set[str]:
        """Return the columns that `onehot` lists by name."""
        named = set(() if isinstance(self.onehot, str) else self.onehot)
        return named if _ALL in table.columns else named - {_ALL}

    def _fill_values(
        self, table: Table, numeric: list[str], has_several_blocks: bool, stats: RunningStatistics
    ) -> list[Any]:
        """Return the value that replaces missing values, for each numeric column."""
        impute = self.impute
        if impute is None or impute == "drop" or not numeric:
            return [None] * len(numeric)
        if isinstance(impute, (int, float)):
            return [float(impute)] * len(numeric)
        if impute == "mean":
            return [float(value) for value in stats.mean]
        if has_several_blocks:
            raise TableError(
                f"{table.source} is too large to read at once, as --impute {impute} requires - use "
                f"--impute mean, which can be computed block by block"
            )
        from sklearn.impute import SimpleImputer

        X = np.column_stack([table.columns[name] for name in numeric])
        imputer = SimpleImputer(strategy=impute, keep_empty_features=True).fit(X)
        return [float(value) for value in imputer.statistics_]

    # ------------------------------------------------------------------ validation

    def _complete_rows(self, table: Table, names: list[str]) -> np.ndarray:
        """Return a mask of the rows to keep: all rows, or only complete rows if impute="drop"."""
        keep = np.ones(len(table), dtype=bool)
        if self.impute == "drop":
            for name in (*names, *filter(None, [self.target])):
                if name in table.columns:
                    keep &= ~is_missing(table.columns[name])
        return keep

    # ------------------------------------------------------------------ transforming

    def without_target(self) -> Recipe:
        """Return a copy that does not require the target column, for use in prediction."""
        return replace(self, target=None)

    def _read(self, table: Any) -> Table:
        """Convert data to a `Table`; if it is a source, read the `text_columns` as text."""
        return table.table(self.text_columns) if isinstance(table, Source) else as_table(table)

    def kept_rows(self, table: Any) -> np.ndarray:
        """Return the indices of the rows that `transform` converts to points.

        These are all rows or, if ``impute="drop"``, only those without missing values.
        """
        table = self._read(table)
        return np.flatnonzero(self._complete_rows(table, [part.name for part in self._parts]))

    def transform(self, table: Any) -> Any:
        """Convert the rows that `kept_rows` selects to points.

        Parameters
        ----------
        table : Table, DataFrame or Source
            The rows, with the same columns as the table passed to `fit`.

        Returns
        -------
        array of shape (n_rows, n_features), list of str or Graphs
            The points; the type depends on the parameter `points` of the recipe.
        """
        table = self._read(table)
        if self.points != "vectors":
            column = table.column(self._parts[0].name)
            self._check_missing(table, [self._parts[0].name], fitted=True)
            column = take(column, self.kept_rows(table))
            return column.tolist() if isinstance(column, np.ndarray) else column
        for part in self._parts:
            table.column(part.name)
        names = [part.name for part in self._parts]
        numeric = [part.name for part in self._parts if part.categories is None]
        refuse_text(table, numeric, fitted=True)
        self._check_missing(table, names, fitted=True)
        refuse_infinite(table, numeric, fitted=True)
        rows = self.kept_rows(table)
        X = np.empty((len(rows), sum(part.width for part in self._parts)))
        start = 0
        for part in self._parts:
            X[:, start : start + part.width] = self._transform_column(part, table, rows)
            start += part.width
        return X

    def _transform_column(
        self, part: ColumnTransform, table: Table, rows: np.ndarray
    ) -> np.ndarray:
        """Return the features of one column, of shape (n_rows, part.width)."""
        column = take(table.columns[part.name], rows)
        if part.categories is None:
            if part.fill is not None:
                column = np.where(np.isnan(column), part.fill, column)
            return ((column - part.mean) / part.scale)[:, None]
        if part.text and not _is_text(table, part.name):
            self._refuse_ambiguous_numbers(part, table, rows)
        positions = {value.strip(): j for j, value in enumerate(part.categories)}
        encoded = np.zeros((len(rows), part.width))
        for i, value in enumerate(_categories(table.texts(part.name)[rows])):
            value = str(part.fill).strip() if value is None else value
            if value not in positions:
                listed = ", ".join(map(repr, part.categories[:8]))
                more = " ..." if part.width > 8 else ""
                raise table.error(
                    f"the category {value!r} did not occur in the training data, only {listed}"
                    f"{more} - correct the value, or fit the model again with rows that contain it",
                    part.name,
                    rows[i],
                )
            encoded[i, positions[value]] = 1.0
        return encoded

    def _refuse_ambiguous_numbers(
        self, part: ColumnTransform, table: Table, rows: np.ndarray
    ) -> None:
        """Raise a TableError if a number could stand for several categories: "1", "01"."""
        numbers = {c: float(c) for c in part.categories or () if is_number(c)}
        occurrences = Counter(numbers.values())
        ambiguous = {
            v: c
            for c, v in numbers.items()
            if occurrences[v] > 1 or c != as_texts(np.array([v]))[0]
        }
        for row in rows.tolist():
            value = float(table.columns[part.name][row])
            if value in ambiguous:
                raise table.error(
                    f"the number {value:g} may or may not mean the category {ambiguous[value]!r}, "
                    f"because the column was text when the model was fitted - convert the column "
                    f"to text, or read a file with open_table(path).table(recipe.text_columns)",
                    part.name,
                    row,
                )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that were text when the recipe was fitted, and must be read as text again."""
        target = (self.target,) if self.target is not None and self.target_text else ()
        return (*(part.name for part in self._parts if part.text), *target)

    def targets(self, table: Any, *, labels: bool) -> Any:
        """Return the targets of the rows that `kept_rows` selects.

        Parameters
        ----------
        table : Table, DataFrame or Source
            The rows.
        labels : bool
            Whether to return class labels (integers or strings) for a classifier, rather than
            numbers for a regression.

        Returns
        -------
        array of shape (n_rows,)
            The targets.
        """
        table = self._read(table)
        if self.target is None:
            raise TableError(
                f"no target is set for {table.source} - choose the column to predict: --target NAME"
            )
        column = table.column(self.target)
        missing_rows = np.flatnonzero(is_missing(column))
        if len(missing_rows) and self.impute != "drop":
            raise table.error(
                "the target is missing - drop rows with missing values with --impute drop",
                self.target,
                missing_rows[0],
            )
        rows = self.kept_rows(table)
        column = take(column, rows)
        content = None
        if kind_of(column) == TEXT:
            content = inspect_texts(Counter(cell for cell in column if cell is not None))
        has_fractions = content is not None and labels and content.is_mostly_numbers
        has_fractions = has_fractions and any(is_number(cell) and "." in cell for cell in column)
        if content is not None and (
            (content.is_number and not (labels and content.is_identifier))
            or (content.is_mostly_numbers and (not labels or has_fractions))
        ):
            row = column.tolist().index(content.example)
            raise table.error(
                f"the target contains {content.what}; the first is {truncated(content.example)} "
                f"on {table.where(rows[row])} - {content.remedy}",
                self.target,
            )
        if labels:
            if self.target_text or self.target in table.booleans:
                return label_values(take(table.texts(self.target), rows))
            result = label_values(column)
            if result.dtype.kind == "f":
                row = int(np.flatnonzero(column != np.round(column))[0])
                raise table.error(
                    f"the target contains numbers such as {column[row]:g} on "
                    f"{table.where(rows[row])}, but a classifier predicts labels - try a "
                    f"regression: mercer fit ridge, gp or svr",
                    self.target,
                )
            return result
        if kind_of(column) == TEXT:
            raise table.error(
                f"the target contains text ({truncated(column[0])} on {table.where(rows[0])}), but "
                f"a regression predicts numbers - try a classifier: mercer fit svc, logistic or "
                f"fisher",
                self.target,
            )
        refuse_infinite(table, [self.target], fitted=self.parts is not None)
        return column

    def result_table(
        self,
        table: Any,
        values: dict[str, Any],
        extra_columns: Iterable[str] = (),
        *,
        all_rows: bool = False,
    ) -> Table:
        """Return a table of results with row numbers and, optionally, columns of the input.

        Parameters
        ----------
        table : Table or DataFrame
            The input rows.
        values : dict
            The result columns by name, with one value for each row that `kept_rows` selects.
        extra_columns : iterable of str, default=()
            Columns of the input to copy.  If a result has the same name, such as "component1", the
            copy is named "input_component1".
        all_rows : bool, default=False
            Whether to return all rows of the input, with missing values for rows that were
            dropped, rather than only the selected rows.

        Returns
        -------
        Table
            The results.
        """
        table = as_table(table)
        rows = self.kept_rows(table)
        if all_rows:
            values = {
                name: expand_to_all_rows(column, rows, len(table))
                for name, column in values.items()
            }
            rows = np.arange(len(table))
        row_column = "row_number" if "row" in values else "row"
        results = {row_column: table.start + 1 + rows, **values}
        copied = {}
        for name in extra_columns:
            new_name = name
            while new_name in results:
                new_name = f"input_{new_name}"
            copied[new_name] = take(table.texts(name), rows)
        return Table({row_column: results.pop(row_column), **copied, **results}, table.source)

    def inverse_transform(self, points: Any) -> dict[str, Any]:
        """Convert points back to columns in the units of the table: the inverse of `transform`.

        One-hot encoded columns are not decoded: there is one column per category.
        """
        if self.points != "vectors":
            return {self._parts[0].name: column_from_texts(points)}
        columns = dict(zip(self.features, np.asarray(points, dtype=float).T, strict=True))
        for part in self._parts:
            if part.categories is None:
                columns[part.name] = columns[part.name] * part.scale + part.mean
        return columns

    @property
    def _parts(self) -> tuple[ColumnTransform, ...]:
        """The fitted `parts`; raise a ValueError if the recipe is not fitted."""
        if self.parts is None:
            raise ValueError("this recipe is not fitted; call its fit method with a table first")
        return self.parts

    @property
    def features(self) -> list[str]:
        """The names of the features, such as age, city=Bonn, city=Ulm."""
        return [
            name
            for part in self._parts
            for name in (
                [part.name]
                if part.categories is None
                else [f"{part.name}={value}" for value in part.categories]
            )
        ]

    # ------------------------------------------------------------------ description and storage

    def describe(self) -> list[str]:
        """Return sentences that describe the fitted preprocessing."""
        if self.points != "vectors":
            name = self._parts[0].name
            text = (
                f"The points are the {self.points} of the column {name!r}; no other column is used."
            )
            return [text, *[_DROPPED] * (self.impute == "drop")]
        numeric = [part for part in self._parts if part.categories is None]
        categorical = [part for part in self._parts if part.categories is not None]
        sentences = list[str]()
        if numeric:
            standardised = "standardised to mean 0 and standard deviation 1"
            how = standardised if self.standardize else "not scaled"
            count = _count(len(numeric), "numeric column")
            sentences.append(f"{count}, {how}: {_name_list(numeric)}.")
        for part in categorical:
            values = _count(part.width, "value")
            sentences.append(f"Column {part.name!r} was one-hot encoded: {values}.")
        if self.impute == "drop":
            sentences.append(_DROPPED)
        elif self.impute is not None:
            how = self.impute if isinstance(self.impute, str) else f"number {self.impute:g}"
            text = f"Missing numbers were replaced by the {how.replace('_', ' ')}"
            more = ", missing categories by the most frequent category" if categorical else ""
            sentences.append(f"{text}{more}.")
        unused = [*self.ignore, *filter(None, [self.target])]
        if unused:
            sentences.append(f"Columns not used as features: {', '.join(unused)}.")
        return sentences

    def to_json(self) -> str:
        """Return the recipe as a JSON string that `from_json` can read."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Create a recipe from a JSON string written by `to_json`."""
        values = {key: _as_tuple(value) for key, value in json.loads(text).items()}
        if values["parts"] is not None:
            values["parts"] = tuple(
                ColumnTransform(**{key: _as_tuple(value) for key, value in part.items()})
                for part in values["parts"]
            )
        return cls(**values)


def expand_to_all_rows(values: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Return an array of length n with `values` at the indices `rows`, otherwise missing."""
    values = np.asarray(values)
    if len(rows) == n:
        return values
    shape, is_float = (n, *values.shape[1:]), values.dtype.kind == "f"
    expanded = np.full(shape, np.nan, values.dtype) if is_float else np.full(shape, None, object)
    expanded[rows] = values
    return expanded


def _as_tuple(value: Any) -> Any:
    """Convert a list to a tuple, because JSON stores tuples as lists."""
    return tuple(value) if isinstance(value, list) else value


def _is_text(table: Table, name: str) -> bool:
    """Return True if a column contains text or booleans (treated as "True" and "False")."""
    return name in table.booleans or kind_of(table.column(name)) == TEXT


def _categories(column: np.ndarray) -> np.ndarray:
    """Return the values as text, without leading and trailing spaces."""
    return column_from_texts(None if value is None else value.strip() for value in as_texts(column))


def label_values(column: np.ndarray) -> np.ndarray:
    """Return class labels: text without surrounding spaces, or integers for whole numbers.

    Missing text becomes the label "missing".  Numbers with fractions are returned as floats.
    """
    if column.dtype == object:
        return np.array(["missing" if v is None else v for v in _categories(column)], dtype=str)
    is_integer = bool(np.all(np.abs(column) < 2**63)) and bool(np.all(column == np.round(column)))
    return column.astype(np.int64) if is_integer else column


def _total_length(column: np.ndarray) -> int:
    """Return the total number of characters of a column of text."""
    return sum(len(cell) for cell in column if cell is not None)


def _count(n: int, what: str) -> str:
    """Return a number and a noun, such as "1 row" or "2 rows"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def _name_list(parts: list[ColumnTransform], max_shown: int = 8) -> str:
    """Return the first column names and the number of the others, such as "a, b and 3 more"."""
    more = f" and {len(parts) - max_shown} more" if len(parts) > max_shown else ""
    return ", ".join(part.name for part in parts[:max_shown]) + more
