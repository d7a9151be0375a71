"""The `Recipe` class: preprocessing that turns the columns of a table into points."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from os import PathLike
from shlex import quote
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._core import take, warn_caller
from ..estimators import estimator, fitted, parameter
from ._cell_notation import GRAPHS, TEXT, column_from_texts, is_number
from ._column_contents import is_missing, truncated
from ._column_encoders import (
    CategoryColumn,
    NumberColumn,
    TextColumn,
)
from ._column_types import TYPES, USED_TYPES, TableSummary
from ._table import Table, TableError, kind_of, suggest_name, take_rows
from ._table_source import Source, as_table, is_frame
from ._targets import target_values
from ._treatments import ALL, Treatment, TreatmentMixin, is_text

IMPUTE = ("auto", "mean", "median", "most_frequent", "drop")
_MAX_LISTED = 20  # `describe` combines columns with the same treatment if there are more


class UnknownValuesWarning(UserWarning):
    """Warning for values that did not occur in the training rows and were ignored."""


@estimator()
class Recipe(TreatmentMixin, TransformerMixin, BaseEstimator):
    r"""Preprocessing that turns the columns of a table into points for a kernel.

    A recipe is a scikit-learn transformer for pandas and polars DataFrames, pyarrow tables, files
    and `Table` objects.  `fit` detects the type of each column and chooses its treatment:

    ==========  ======================================  =========================================
    type        values                                  treatment
    ==========  ======================================  =========================================
    number      numbers                                 standardised if the scales differ
    boolean     true and false                          0 and 1
    category    text with repeated values               one-hot encoded
    date        dates and times                         elapsed time; position in year, week, day
    text        free text                               features of the bag-of-words kernel
    others      identifiers, constants, empty columns   not used
    ==========  ======================================  =========================================

    The attribute `treatments_` and the method `describe` show the result.  With ``strict=True``,
    `fit` raises an error instead of making such choices, and lists everything that has to be
    decided.

    Parameters
    ----------
    columns : tuple of str
        The columns to use as features; None uses all columns except `target` and `ignore`.
    target : str
        The column to predict.  It is not a feature; `targets` returns its values.  Leave it out in
        a scikit-learn pipeline, in which the target is passed separately.
    ignore : tuple of str
        Columns to exclude.
    points : {"vectors", "rows", "texts", "graphs"}
        The kind of points that the kernel accepts: vectors of features, the rows of a DataFrame
        (for kernels with `Select` by name), or the texts or graphs in one column.
    standardize : bool or "auto"
        Whether to scale numeric columns to mean 0 and standard deviation 1.  "auto" does so if
        there are also columns of other types, or if a few columns would determine all distances,
        because their scales are much larger than those of the others.
    onehot : tuple of str or "all"
        Columns to one-hot encode, also if they seem to be numbers, identifiers or texts.  With
        ``strict=True``, "all" allows one-hot encoding of all columns that contain categories.
    types : dict of str
        The types of columns, if they should not be detected: {"zip": "category"}.  The types are
        "number", "boolean", "category", "date", "text" and "identifier" (not used).
    impute : "auto", "mean", "median", "most_frequent", "drop", float, dict or None
        How to replace missing values.  "auto": numbers by the mean, categories by a separate level
        "(missing)".  "mean", "median", "most_frequent" and a number apply to numbers; the
        categories are then replaced by the most frequent one.  "drop" drops rows with missing
        values, and None raises an error.  A dict sets it by type: {"number": "median",
        "category": "most_frequent"}.
    unknown : {"ignore", "error", "drop"}
        What `transform` does with values that it cannot use, such as a category that did not occur
        in the training rows.  "ignore" handles them as missing, and warns.  "drop" drops the row.
    na : tuple of str
        Values that stand for a missing value, such as ("ERR42", "-999").
    strict : bool
        Whether to raise an error if the table contains missing values, or columns other than
        numbers and booleans, unless the other parameters state how to handle them.

    Attributes
    ----------
    encoders_ : tuple of NumberColumn, CategoryColumn, DateColumn or TextColumn
        The fitted preprocessing of each column that is used.
    treatments_ : tuple of Treatment
        What the recipe does with each column of the table: column, type, treatment and number of
        missing values.
    notations_ : dict of str
        The notations of columns of a text file that could be misread, such as dates with the day
        first.  New files are read in the same notations.
    n_features_in_ : int
        The number of columns of the table, without the target.
    feature_names_in_ : array of str
        The names of these columns.

    See Also
    --------
    TableModel : A recipe and a fitted estimator, which predicts from raw tables.
    open_table : Opens a file.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer.tables import Recipe
    >>> flats = pd.DataFrame({"area": [50, 80, 120], "city": ["Bonn", "Ulm", "Bonn"]})
    >>> recipe = Recipe().fit(flats)
    >>> print("\n".join(recipe.describe()))
    column  type      treatment          missing
    area    number    standardised             0
    city    category  one-hot, 2 levels        0
    >>> recipe.transform(flats).round(2)
    array([[-1.16,  1.  ,  0.  ],
           [-0.12,  0.  ,  1.  ],
           [ 1.28,  1.  ,  0.  ]])
    >>> recipe.get_feature_names_out()
    array(['area', 'city=Bonn', 'city=Ulm'], dtype=object)
    """

    columns: Any = parameter("array-like", None, default=None)
    target: str | None = parameter(str, None, default=None)
    ignore: Any = parameter("array-like", default=())
    points: str = parameter({"vectors", "rows", "texts", "graphs"}, default="vectors")
    standardize: bool | str = parameter("boolean", {"auto"}, default="auto")
    onehot: Any = parameter("array-like", {ALL}, default=())
    types: dict[str, str] | None = parameter(dict, None, default=None)
    impute: Any = parameter(set(IMPUTE), "finite", dict, None, default="auto")
    unknown: str = parameter({"ignore", "error", "drop"}, default="ignore")
    na: Any = parameter("array-like", default=())
    strict: bool = parameter("boolean", default=False)

    encoders_: tuple[Any, ...] = fitted()
    treatments_: tuple[Treatment, ...] = fitted()
    target_text_: bool = fitted()
    notations_: dict[str, str] = fitted()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return _code(self)

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: object = None) -> Self:
        """Choose and fit the treatment of each column.

        Parameters
        ----------
        X : DataFrame, Table, path, Source or iterable of Table
            A pandas or polars DataFrame, a pyarrow table, an array (whose columns are named x0, x1,
            ...), a file, a source from `open_table`, or blocks of rows.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : Recipe
            The fitted recipe.
        """
        self._check_parameters()
        if isinstance(X, (str, PathLike)):
            X = self.open(X)
        blocks = map(self._without_marks, _blocks(X))
        first = next(blocks)
        names = self._feature_columns(first)
        target_text = self.target is not None and is_text(first, self.target)
        summary = TableSummary(first, names)
        n_without_target = 0
        for table in chain([first], blocks):
            if self.target is not None:
                n_without_target += int(is_missing(table.column(self.target)).sum())
            # The types are not known yet, so rows are not dropped by type.
            summary.update(table.take(self._rows_to_use(table, dict.fromkeys(names, ""))))
        if not summary.n_rows:
            raise self._no_rows_error(first, names)
        if self.points in ("texts", "graphs"):
            name = names[0]
            if self.impute is None or self.strict:
                self._refuse(first, summary, {name: "text"})
            encoders: list[Any] = [TextColumn(name, None)]
            treatments = [Treatment(name, self.points, "point of the kernel")]
        else:
            types = self._column_types(first, summary, names)
            self._refuse(first, summary, types)
            encoders, treatments = self._encoders(first, summary, types)
        # Columns that were not selected are not listed.
        others = [] if self.columns else [n for n in first.columns if n not in names]
        others = [self.target] if self.columns and self.target else others
        for name in others:
            is_target = name == self.target
            missing = n_without_target if is_target else 0
            kind, text = ("target", "predicted") if is_target else ("ignored", "not used")
            treatments.append(Treatment(name, kind, text, missing))
        self.encoders_, self.treatments_ = tuple(encoders), tuple(treatments)
        self.target_text_ = target_text
        self.notations_ = {**first.notations, **summary.notations}
        inputs = [name for name in first.columns if name != self.target]
        self.n_features_in_, self.feature_names_in_ = len(inputs), np.array(inputs, dtype=object)
        return self

    def _check_parameters(self) -> None:
        """Raise an error if a parameter is not valid regardless of the data."""
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
        for name, kind in (self.types or {}).items():
            if kind not in TYPES:
                raise TableError(
                    f"the type {kind!r} of the column {name!r} is not one of {', '.join(TYPES[:6])}"
                    f"{suggest_name(str(kind), TYPES).removesuffix(';')}"
                )
        for kind in impute if isinstance(impute, dict) else ():
            if kind not in USED_TYPES:
                raise TableError(f"impute: {kind!r} is not one of {', '.join(USED_TYPES)}")
        self._validate_params()
        if self.points not in ("texts", "graphs"):
            return
        is_set = {
            "standardize": self.standardize is True,
            "onehot": bool(self.onehot),
            "impute": impute not in (None, "auto", "drop"),
        }
        for name in (name for name, value in is_set.items() if value):
            raise TableError(
                f"--{name} applies only to vectors, but this kernel compares {self.points} - omit "
                f"it{', or drop rows with --impute drop' if name == 'impute' else ''}"
            )

    def _feature_columns(self, table: Table) -> list[str]:
        """Return the names of the columns from which the points may be computed."""
        columns, ignore = tuple(self.columns or ()), tuple(self.ignore)
        onehot = () if isinstance(self.onehot, str) else tuple(self.onehot)
        listed = [*columns, *ignore, *filter(None, [self.target]), *(self.types or {})]
        listed += [name for name in onehot if name != ALL]
        unknown = [name for name in dict.fromkeys(listed) if name not in table.columns]
        if len(unknown) == 1:
            table.column(unknown[0])
        if unknown:
            raise TableError(
                f"{table.source} has no columns {', '.join(map(repr, unknown))}; its columns are "
                f"{', '.join(map(repr, table.columns))}"
            )
        excluded = {*ignore, self.target, *(() if columns else table.index_columns)}
        names = [name for name in columns or table.columns if name not in excluded]
        for name in (*onehot, *(self.types or {})):
            if name != ALL and name not in names:
                raise TableError(
                    f"{'onehot' if name in onehot else 'types'} contains the column {name!r}, "
                    f"which is not a feature, because it is ignored, the colour or the target - "
                    f"remove it"
                )
        kind = {"texts": TEXT, "graphs": GRAPHS}.get(self.points)
        if kind is not None:
            return [self._single_column(table, names, kind)]
        if any(kind_of(table.columns[name]) == GRAPHS for name in names):
            raise TableError(
                f"{table.source} contains graphs, but this kernel requires vectors - try a "
                f"graph kernel: --kernel 'Normalized(WeisfeilerLehman())'"
            )
        if not names:
            raise TableError(
                f"{table.source} has no columns to use as features, because every column is "
                f"ignored, the colour or the target: {', '.join(map(repr, table.columns))} - use a "
                f"table with more columns, or include a column with --columns"
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

    def _no_rows_error(self, table: Table, names: list[str]) -> TableError:
        """Return the error for a table in which no row can be used."""
        counts = {name: int(is_missing(table.columns[name]).sum()) for name in names}
        name = max(counts, key=lambda n: counts[n])
        if self.target is not None and is_missing(table.columns[self.target]).all():
            return table.error("all values of the target are missing", self.target)
        most = f", or exclude the column with most missing values: --ignore {quote(name)}"
        return table.error(
            f"every row has a missing value, so no rows remain - replace missing values, for "
            f"example with --impute mean instead of --impute drop{most if counts[name] else ''}"
        )

    # ------------------------------------------------------------------ transforming

    def _rows_to_use(self, table: Table, types: dict[str, str]) -> np.ndarray:
        """Return a mask of the rows that have a target and, if impute="drop", no missing value.

        The parameter `types` contains the type of each column that may be used.
        """
        keep = np.ones(len(table), dtype=bool)
        if self.target is not None and self.target in table.columns:
            keep &= ~is_missing(table.columns[self.target])
        for name, kind in types.items():
            if self._impute_of(kind) == "drop":
                column = table.columns[name]
                keep &= ~is_missing(column)
                if isinstance(column, np.ndarray) and column.dtype.kind == "f":
                    keep &= ~np.isinf(column)
        return keep

    def without_target(self) -> Recipe:
        """Return a copy that does not require the target column, for use in prediction."""
        recipe = copy.copy(self)
        recipe.target = None
        return recipe

    def _read(self, table: Any) -> Table:
        """Convert data to a `Table`; columns that were text are read as text."""
        check_is_fitted(self)
        table = self.open(table)
        if isinstance(table, Source):
            table = table.table(self.text_columns, self.notations_)
        table = self._without_marks(as_table(table))
        missing = [e.name for e in self._encoders_fitted if e.name not in table.columns]
        if len(missing) == 1:
            table.column(missing[0])
        if missing:
            raise TableError(
                f"{table.source} has no columns {', '.join(map(repr, missing))}, which the model "
                f"uses; its columns are {', '.join(map(repr, list(table.columns)[:12]))}"
            )
        return table

    def open(self, data: Any) -> Any:
        """Open a file or a DataFrame as a source of rows, with the marks of missing values.

        Parameters
        ----------
        data : path, DataFrame, Table or Source
            The rows.

        Returns
        -------
        Source or Table
            The source; a table or a source is returned unchanged.
        """
        from ._open_table import open_table

        if isinstance(data, (str, PathLike)):
            return open_table(data, na=tuple(self.na))
        return open_table(data) if is_frame(data) else data

    def _without_marks(self, table: Table) -> Table:
        """Return the table with missing values in place of the values in `na`."""
        if not len(self.na):
            return table
        marks = {str(mark).strip() for mark in self.na}
        numbers = [float(mark) for mark in marks if is_number(mark)]
        columns = dict(table.columns)
        for name, column in columns.items():
            if not isinstance(column, np.ndarray) or column.dtype.kind == "M":
                continue
            if column.dtype == object:
                texts = (None if v is None or v.strip() in marks else v for v in column)
                columns[name] = column_from_texts(texts)
            elif name not in table.booleans:
                columns[name] = np.where(np.isin(column, numbers), np.nan, column)
        return replace(table, columns=columns)

    @property
    def _encoders_fitted(self) -> tuple[Any, ...]:
        check_is_fitted(self)
        return self.encoders_

    def kept_rows(self, table: Any) -> np.ndarray:
        """Return the indices of the rows that `transform` converts to points.

        Parameters
        ----------
        table : DataFrame, Table, path or Source
            The rows.

        Returns
        -------
        array of int
            All rows, except those without a target (if the recipe has a target that the table
            contains), with missing values if ``impute="drop"``, and with unknown values if
            ``unknown="drop"``.
        """
        return np.flatnonzero(self._kept(self._read(table)))

    def _kept(self, table: Table) -> np.ndarray:
        keep = self._rows_to_use(table, {e.name: e.type for e in self.encoders_})
        if self.points in ("texts", "graphs"):
            return keep
        for encoder in self.encoders_:
            is_dropped = self._impute_of(encoder.type) == "drop"
            # A text in a column of numbers is a missing value.
            if self.unknown == "drop" or (is_dropped and isinstance(encoder, NumberColumn)):
                keep &= ~encoder.unusable(table)
        return keep

    def transform(self, X: Any) -> Any:
        """Convert the rows that `kept_rows` selects to points.

        Parameters
        ----------
        X : DataFrame, Table, path or Source
            The rows, with the same columns as the table passed to `fit`, in any order.  Other
            columns are ignored.

        Returns
        -------
        array of shape (n_rows, n_features), DataFrame, list of str or Graphs
            The points; the type depends on the parameter `points` of the recipe.
        """
        table = self._read(X)
        if self.points in ("texts", "graphs"):
            return self._single_points(table)
        self._check_unknown(table)
        table = table.take(self._kept(table))
        if self.points == "rows":
            import pandas as pd

            return pd.DataFrame({e.name: e.cleaned(table) for e in self.encoders_})
        encoded = [encoder.encode(table) for encoder in self.encoders_]
        points = np.empty((len(table), sum(part.shape[1] for part in encoded)))
        return np.concatenate(encoded, axis=1, out=points)

    def _single_points(self, table: Table) -> Any:
        """Return the texts or graphs of the only column."""
        name = self.encoders_[0].name
        column = take(table.columns[name], self._kept(table))
        if isinstance(column, np.ndarray):
            missing = np.flatnonzero(is_missing(column))
            if len(missing):
                raise table.error(
                    f"{len(missing)} of {len(table)} values are missing; the first is on "
                    f"{table.where(int(missing[0]))} - fill them in, or drop these rows with "
                    f"--impute drop",
                    name,
                )
            return column.tolist()
        return column

    def _check_unknown(self, table: Table) -> None:
        """Warn or raise an error for values that the encoders cannot use, and for missing ones."""
        messages = list[str]()
        for encoder in self.encoders_:
            column = table.columns[encoder.name]
            if not isinstance(column, np.ndarray):
                raise table.error(
                    f"the values are {kind_of(column)}, not {encoder.type}s", encoder.name
                )
            if self._impute_of(encoder.type) is None:
                missing = np.flatnonzero(is_missing(column))
                if len(missing):
                    raise table.error(
                        f"{len(missing)} of {len(table)} values are missing; the first is on "
                        f"{table.where(int(missing[0]))} - fill them in, or fit the model again "
                        f"with --impute",
                        encoder.name,
                    )
            rows = np.flatnonzero(encoder.unusable(table))
            if not len(rows):
                continue
            value = truncated(str(table.texts(encoder.name)[rows[0]]))
            where = table.where(int(rows[0]))
            if encoder.type == "category":
                what = "did not occur in the training rows"
            else:
                is_date = isinstance(column, np.ndarray) and column.dtype.kind == "M"
                what = f"are {'dates' if is_date else 'texts'}, not {encoder.type}s"
                what = "are infinite" if column.dtype.kind == "f" else what
            described = f"{len(rows)} of {len(table)} values {what}, such as {value} on {where}"
            n_present = int((~is_missing(column)).sum())
            is_wrong_column = encoder.type != "category" and len(rows) == n_present
            if getattr(encoder, "has_unusable", False) and not is_wrong_column:
                continue  # such values are reported by `describe`
            is_wrong_column = is_wrong_column and n_present > 1 and self.unknown != "drop"
            if is_wrong_column:
                raise table.error(f"{described} - correct the file", encoder.name)
            messages.append(f"column {encoder.name!r}: {described}")
        if messages and self.unknown == "error":
            raise TableError(
                f"{table.source}: {'; '.join(messages)} - correct the values, or ignore them with "
                f"--unknown ignore"
            )
        if messages:
            what = "values that the model cannot use count as missing"
            if self.unknown == "drop":
                what = "rows with values that the model cannot use are dropped"
            warn_caller(f"{table.source}: {what}: {'; '.join(messages)}", UnknownValuesWarning)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that were text when the recipe was fitted, and must be read as text again."""
        texts = [e.name for e in self._encoders_fitted if isinstance(e, TextColumn)]
        texts += [e.name for e in self.encoders_ if isinstance(e, CategoryColumn) and e.text]
        if self.points == "graphs":
            texts = []
        target = (self.target,) if self.target is not None and self.target_text_ else ()
        return (*texts, *target)

    def targets(self, table: Any, *, labels: bool) -> Any:
        """Return the targets of the rows that `kept_rows` selects.

        Parameters
        ----------
        table : DataFrame, Table, path or Source
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
        return target_values(
            table, self.target, self.kept_rows(table), labels=labels, text=self.target_text_
        )

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
        table = self._read(table)
        rows = self.kept_rows(table)
        if all_rows:
            values = {
                name: expand_to_all_rows(column, rows, len(table))
                for name, column in values.items()
            }
            rows = np.arange(len(table))
        row_column = "row_number" if "row" in values else "row"
        results = {row_column: table.start + 1 + rows, **values}
        copied, booleans, integers = dict[str, Any](), list[str](), list[str]()
        for name in extra_columns:
            new_name = name
            while new_name in results:
                new_name = f"input_{new_name}"
            column = copied[new_name] = take_rows(table.column(name), rows)
            if name in table.booleans:
                booleans.append(new_name)
            elif name in table.integers or _are_integers(column):
                integers.append(new_name)
        columns = {row_column: results.pop(row_column), **copied, **results}
        return Table(columns, table.source, booleans=tuple(booleans), integers=tuple(integers))

    def inverse_transform(self, points: Any) -> dict[str, Any]:
        """Convert points back to columns in the units of the table: the inverse of `transform`.

        Categories, dates and texts are not decoded: there is one column for each feature.

        Parameters
        ----------
        points : array of shape (n_rows, n_features) or list of str
            The points.

        Returns
        -------
        dict of array
            The columns by name.

        See Also
        --------
        to_texts : Decodes categories and dates, and returns one text per column of the table.
        """
        encoders = self._encoders_fitted
        if self.points != "vectors":
            return {encoders[0].name: column_from_texts(points)}
        columns = dict[str, Any]()
        for encoder, features in self._encoded_parts(points):
            columns |= encoder.inverse(features)
        return columns

    def _encoded_parts(self, points: Any) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield each encoder with its columns of the points, which are vectors."""
        points, start = np.asarray(points, dtype=float), 0
        for encoder in self._encoders_fitted:
            stop = start + len(encoder.feature_names)
            yield encoder, points[:, start:stop]
            start = stop

    def to_texts(self, points: Any) -> dict[str, list[str]]:
        """Describe points by one text per column of the table, for display.

        Points need not correspond to rows of a table: in the pre-image of a kernel method, a
        category can have a weight of 0.52.

        Parameters
        ----------
        points : array of shape (n_rows, n_features), or DataFrame
            The points, for a recipe with ``points="vectors"`` or ``points="rows"``.

        Returns
        -------
        dict of list of str
            The texts by column: numbers in the units of the table; booleans with their value,
            "true (0.93)"; the most likely category and the second one with their weights, "Bonn
            (0.52), Köln (0.31)"; dates in ISO format; and the most similar known text.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from mercer.tables import Recipe
        >>> table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "city": ["Bonn", "Ulm", "Bonn"]})
        >>> recipe = Recipe(standardize=False).fit(table)
        >>> recipe.to_texts(np.array([[1.5, 0.75, 0.25]]))
        {'size': ['1.5'], 'city': ['Bonn (0.75), Ulm (0.25)']}
        """
        if self.points == "rows":
            return {
                e.name: [str(value) for value in points[e.name]]
                if e.type in ("category", "text")
                else e.to_texts(np.asarray(points[e.name], dtype=float)[:, None])
                for e in self._encoders_fitted
            }
        return {e.name: e.to_texts(features) for e, features in self._encoded_parts(points)}

    @property
    def features(self) -> list[str]:
        """The names of the features, such as age, city=Bonn, city=Ulm."""
        encoders = self._encoders_fitted
        if self.points != "vectors":
            return [encoder.name for encoder in encoders]
        return [name for encoder in encoders for name in encoder.feature_names]

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the features that `transform` computes.

        Parameters
        ----------
        input_features : None, default=None
            Ignored; the names of the columns are known from `fit`.

        Returns
        -------
        array of str
            The names, such as "age" and "city=Bonn".
        """
        return np.array(self.features, dtype=object)

    # ------------------------------------------------------------------ description

    @property
    def types_(self) -> dict[str, str]:
        """The type of each feature column, as a value for the parameter `types`."""
        check_is_fitted(self)
        skipped = ("target", "ignored", "texts", "graphs", "unreadable")
        return {t.column: t.type for t in self.treatments_ if t.type not in skipped}

    @property
    def is_standardized(self) -> bool:
        """Whether numeric columns are scaled to mean 0 and standard deviation 1."""
        return any(t.treatment.startswith("standardised") for t in self.treatments_)

    def describe(self) -> list[str]:
        """Return the lines of a table: column, type, treatment and number of missing values.

        Returns
        -------
        list of str
            The lines, with a header.  If there are many columns, those with the same treatment
            are combined in one line.
        """
        check_is_fitted(self)
        rows: list[tuple[str, ...]] = [
            (t.column, t.type, t.treatment, str(t.n_missing)) for t in self.treatments_
        ]
        if len(rows) > _MAX_LISTED:
            groups: dict[tuple[str, ...], list[str]] = {}
            for column, *others in rows:
                groups.setdefault(tuple(others), []).append(column)
            rows = [(_name_list(names), *others) for others, names in groups.items()]
        rows.insert(0, ("column", "type", "treatment", "missing"))
        widths = [max(len(row[j]) for row in rows) for j in range(4)]
        return [
            "  ".join(
                [*(c.ljust(w) for c, w in zip(row[:3], widths, strict=False)), row[3].rjust(7)]
            )
            for row in rows
        ]

    def to_code(self, estimator: Any = None) -> str:
        """Return the source code of an equivalent scikit-learn pipeline.

        The types of all columns are written out, so that the pipeline does not detect them again.

        Parameters
        ----------
        estimator : estimator, default=None
            The estimator after the recipe.  If None, the code contains only the recipe.

        Returns
        -------
        str
            Python code.
        """
        check_is_fitted(self)
        used = [t.column for t in self.treatments_ if t.type in USED_TYPES]
        explicit = Recipe(
            columns=used if self.points == "vectors" else self.columns,
            points=self.points,
            standardize=self.is_standardized if self.points == "vectors" else "auto",
            types={n: t for n, t in self.types_.items() if n in used} or None,
            impute=self.impute,
            unknown=self.unknown,
        )
        lines = [
            "from sklearn.pipeline import make_pipeline",
            "",
            "from mercer.tables import Recipe",
        ]
        steps = [_code(explicit)]
        if estimator is not None:
            package = "mercer" if type(estimator).__module__.startswith("mercer") else "sklearn"
            lines.insert(2, f"from {package} import {type(estimator).__name__}")
            steps.append(_code(estimator))
        indented = "".join(f"    {step},\n" for step in steps)
        lines += ["", f"model = make_pipeline(\n{indented})"]
        if self.target is not None:
            lines.append(f"model.fit(table.drop(columns={self.target!r}), table[{self.target!r}])")
        return "\n".join(lines)


def _blocks(data: Any) -> Iterator[Table]:
    """Yield the blocks of a source, a DataFrame, an array or an iterable of tables."""
    if isinstance(data, Source):
        return data.blocks()
    is_single = isinstance(data, Table) or is_frame(data) or hasattr(data, "shape")
    if is_single or not isinstance(data, Iterable):
        return iter([as_table(data)])
    return map(as_table, data)


def _code(estimator: Any) -> str:
    """Return the source code of an estimator with the parameters that differ from the defaults."""
    defaults = type(estimator)().get_params(deep=False)
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if repr(value) != repr(defaults[name])
    }
    return f"{type(estimator).__name__}({', '.join(f'{n}={v!r}' for n, v in given.items())})"


def _are_integers(column: Any) -> bool:
    """Return True if a column contains integers, which are written without a decimal point."""
    if not isinstance(column, np.ndarray) or column.dtype.kind != "f":
        return False
    present = column[~np.isnan(column)]
    return bool(np.all(np.abs(present) < 2**53) and np.array_equal(present, np.round(present)))


def expand_to_all_rows(values: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Return an array of length n with `values` at the indices `rows`, otherwise missing."""
    values = np.asarray(values)
    if len(rows) == n:
        return values
    shape, is_float = (n, *values.shape[1:]), values.dtype.kind == "f"
    expanded = np.full(shape, np.nan, values.dtype) if is_float else np.full(shape, None, object)
    expanded[rows] = values
    return expanded


def _total_length(column: np.ndarray) -> int:
    """Return the total number of characters of a column of text."""
    return sum(len(cell) for cell in column if cell is not None)


def _name_list(names: list[str], max_shown: int = 3) -> str:
    """Return the first column names and the number of the others, such as "a, b and 3 more"."""
    more = f" and {len(names) - max_shown} more" if len(names) > max_shown + 1 else ""
    return ", ".join(names[:max_shown] if more else names) + more
