"""A recipe: what becomes of each column of a table on its way to points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from shlex import quote
from typing import Any

import numpy as np

from .._points import take
from ._frame import as_table, is_frame
from ._source import Source
from ._spread import Spread
from ._table import GRAPHS, TEXT, Table, TableError, as_texts, kind_of, nearest
from ._text_columns import inspect_texts

__all__ = ["IMPUTE", "Part", "Recipe", "scattered"]

IMPUTE = ("mean", "median", "most_frequent", "drop")
_MANY = 100  # different values of a column that is hardly a category
_ALL = "all"  # in onehot, unless a column has this name


@dataclass(frozen=True)
class Part:
    """What becomes of one column: (value - mean) / scale, or one column of 0 and 1 per category.

    `fill` stands for a missing value, in the units of the column; None where none may be missing.
    `text` is True if the column was text in the table of `fit`, so that "01" is not "1".
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    mean: float = 0.0
    scale: float = 1.0
    text: bool = False

    @property
    def width(self) -> int:
        """How many columns come out."""
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True)
class Recipe:
    """How columns become points: vectors, or the texts or graphs of one column.

    Nothing is done without a word: a column of text is an error unless it is in `onehot` or
    `ignore`, a missing value unless `impute` says what stands for it.

    Parameters
    ----------
    columns : tuple of str, optional
        The columns to take; all but `target` and `ignore`, unless given.
    target : str, optional
        The column to predict.
    ignore : tuple of str
        Columns to leave out.
    points : {"vectors", "texts", "graphs"}
        What the kernel compares.
    standardize : bool
        Give columns of numbers mean 0 and standard deviation 1, of the values that are there.
    onehot : tuple of str, or "all"
        Columns to turn into one column of 0 and 1 for each of their values; "all" for those with
        text, unless most of their values are numbers, dates or different from each other, which
        is an error.  ("all", "date") takes the column `date` in any case.
    impute : {"mean", "median", "most_frequent", "drop"}, float or None
        What stands for a missing number.  In a one-hot column it is the most frequent value,
        whichever of these is said; "drop" leaves out the row.
    parts : tuple of Part, optional
        What `fit` has learned.
    target_text : bool
        Whether the target was text or booleans in the table of `fit`.

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
    parts: tuple[Part, ...] | None = field(default=None, repr=False)
    target_text: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if f.repr and getattr(self, f.name) != f.default)
        return f"Recipe({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    # ------------------------------------------------------------------ learning

    def fit(self, tables: Any) -> Recipe:
        """Return the recipe with what it learns from all rows: means, spreads, categories.

        Parameters
        ----------
        tables : Table, DataFrame of pandas or polars, source of `open_table`, or iterable of Table
        """
        self._refuse_words()
        if isinstance(tables, Source):
            tables = tables.blocks()
        one = isinstance(tables, Table) or is_frame(tables) or not isinstance(tables, Iterable)
        blocks = map(as_table, [tables] if one else tables)
        first = next(blocks)
        names = self._chosen(first)
        target = self.target is not None and _is_text(first, self.target)
        self = replace(self, target_text=target)
        fresh = replace(self, parts=None)  # whose advice is that of a first fit
        if self.points == "vectors":
            return fresh._learn(first, names, blocks)
        for table in _chained([first], blocks):
            fresh._refuse_missing(table, names)
        return replace(self, parts=(Part(names[0], text=self.points == "texts"),))

    def _learn(self, first: Table, names: list[str], blocks: Iterator[Table]) -> Recipe:
        hot = self._hot(first, names)
        plain = [name for name in names if name not in hot]
        spread = Spread(len(plain))
        counts: dict[str, Counter[str]] = {name: Counter() for name in names if name in hot}
        several = next(blocks, None)
        rest = [] if several is None else [several]
        absent, complete = Counter[str](), 0
        for table in _chained([first, *rest], blocks):
            self._refuse_text(table, plain)
            self._refuse_missing(table, names)
            rows = self._complete(table, names)
            complete += int(rows.sum())
            for name in names if self.impute is not None else ():
                absent[name] += int(missing(table.columns[name]).sum())
            if plain:
                X = np.column_stack([table.columns[name][rows] for name in plain])
                self._refuse_infinite(table, plain)
                spread.take(X)
            for name in hot:
                given = _categories(table.texts(name))[rows]
                counts[name].update(value for value in given if value is not None)
        empty = [name for name, n in zip(plain, spread.count, strict=True) if not n]
        empty += [name for name, values in counts.items() if not values]
        self._refuse_nothing(first, complete, absent, empty)
        self._refuse_unlikely_categories(first, counts)
        fills = self._fills(first, plain, several is not None, spread)
        scale = spread.scale
        if self.standardize and not np.isfinite(scale).all():
            raise TableError(
                f"{first.source}, column {plain[int(np.argmin(np.isfinite(scale)))]!r}: values are "
                f"too large for a standard deviation - usually a mark for a missing value - mend it"
            )
        parts = []
        for name in names:
            if name in hot:
                ordered = tuple(sorted(counts[name]))
                top = max(ordered, key=counts[name].__getitem__, default=None)
                fill = top if self.impute not in (None, "drop") else None
                parts.append(Part(name, ordered, fill, text=_is_text(first, name)))
            else:
                j = plain.index(name)
                at = (float(spread.mean[j]), float(scale[j])) if self.standardize else ()
                parts.append(Part(name, None, fills[j], *at))
        return replace(self, parts=tuple(parts))

    def _refuse_words(self) -> None:
        """Refuse what no table makes sense of."""
        how = self.impute
        if isinstance(how, str) and how not in IMPUTE:
            raise TableError(
                f"impute={how!r} is none of {', '.join(IMPUTE)} or a number"
                f"{nearest(str(how), IMPUTE).removesuffix(';')}"
            )
        if isinstance(how, (int, float)) and not np.isfinite(how):
            raise TableError(f"impute={how!r}: a number that stands for others must be finite")
        if self.points == "vectors":
            return
        given = {"standardize": self.standardize, "onehot": bool(self.onehot)}
        given["impute"] = how not in (None, "drop")
        for name in (name for name, value in given.items() if value):
            raise TableError(
                f"--{name} is about vectors, and this kernel compares {self.points} - leave it "
                f"away{'; --impute drop leaves out rows' if name == 'impute' else ''}"
            )

    def _refuse_nothing(
        self, table: Table, complete: int, absent: Counter[str], empty: list[str]
    ) -> None:
        """Refuse a column without any value, and a table without any complete row."""
        if not complete:
            name, count = absent.most_common(1)[0] if absent else (self.target or "", 0)
            most = f"; most are in the column {name!r}: --ignore {quote(name)}" if count else ""
            raise TableError(
                f"{table.source}: every row has a missing value, so none is left - say what stands "
                f"for missing values in place of --impute drop{most}"
            )
        if empty:
            raise TableError(
                f"{table.source}, column {empty[0]!r}: all values are missing, so there is nothing "
                f"to learn from it - leave it out: --ignore {quote(empty[0])}"
            )

    def _chosen(self, table: Table) -> list[str]:
        """Return the columns that become points."""
        for name in (*(self.columns or ()), *self.ignore, *filter(None, [self.target])):
            table.column(name)
        if isinstance(self.onehot, tuple):
            for name in self.onehot:
                if name != _ALL:
                    table.column(name)
        left_out = {*self.ignore, self.target, *(() if self.columns else table.beside)}
        names = [name for name in self.columns or table.columns if name not in left_out]
        wanted = {"texts": TEXT, "graphs": GRAPHS}.get(self.points)
        if wanted is not None:
            return [self._only(table, names, wanted)]
        for name in names:
            if kind_of(table.columns[name]) == GRAPHS:
                raise TableError(
                    f"{table.source} holds graphs, and this kernel takes vectors - try a kernel of "
                    f"graphs: --kernel 'Normalized(WeisfeilerLehman())'"
                )
        if not names:
            raise TableError(
                f"{table.source} has no column left to make points of: all of them are ignored, "
                f"coloured by or the target"
            )
        return names

    def _only(self, table: Table, names: list[str], kind: str) -> str:
        """Return the one column of a kind."""
        found = [name for name in names if kind_of(table.columns[name]) == kind]
        if len(found) == 1:
            return found[0]
        some = ", ".join(map(repr, found[:12]))
        longest = max(found, key=lambda name: _symbols(table.columns[name]), default="")
        what = (
            f"has {len(found)} columns of {kind}: {some}" if found else f"has no column of {kind}"
        )
        advice = (
            f"name it: --columns {quote(longest)}"
            if found
            else "take a kernel on vectors: RBF(), ..."
        )
        raise TableError(f"{table.source} {what}, and this kernel compares one - {advice}")

    def _hot(self, table: Table, names: list[str]) -> set[str]:
        everything = self._onehot_all and _ALL not in table.columns
        texts = {name for name in names if everything and kind_of(table.columns[name]) == TEXT}
        named = self._onehot_named(table)
        unused = named - set(names)
        if unused:
            name = sorted(unused)[0]
            raise TableError(
                f"onehot names the column {name!r}, which is ignored, coloured by or the target"
            )
        return texts | named

    @property
    def _onehot_all(self) -> bool:
        return self.onehot == _ALL or (isinstance(self.onehot, tuple) and _ALL in self.onehot)

    def _onehot_named(self, table: Table) -> set[str]:
        """Return the one-hot columns that were named."""
        named = set(() if isinstance(self.onehot, str) else self.onehot)
        return named if _ALL in table.columns else named - {_ALL}

    def _fills(self, table: Table, plain: list[str], several: bool, spread: Spread) -> list[Any]:
        how = self.impute
        if how is None or how == "drop" or not plain:
            return [None] * len(plain)
        if isinstance(how, (int, float)):
            return [float(how)] * len(plain)
        if how == "mean":
            return [float(value) for value in spread.mean]
        if several:
            raise TableError(
                f"{table.source} is read in several blocks, and {how!r} needs all values at once - "
                f"try --impute mean, which does not"
            )
        from sklearn.impute import SimpleImputer

        X = np.column_stack([table.columns[name] for name in plain])
        imputer = SimpleImputer(strategy=how, keep_empty_features=True).fit(X)
        return [float(value) for value in imputer.statistics_]

    # ------------------------------------------------------------------ what may not be

    def _refuse_text(self, table: Table, plain: list[str]) -> None:
        for name in plain:
            column = table.columns[name]
            if kind_of(column) != TEXT:
                continue
            texts = [i for i, cell in enumerate(column) if cell is not None and not _numeric(cell)]
            row = texts[0] if texts else 0
            called = quote(name)
            held = inspect_texts(Counter(cell for cell in column if cell is not None))
            different = len({cell for cell in column if cell is not None})
            first = f"{_shown(column[row])} on {table.where(row)}"
            if held is not None and held.is_number:
                row = column.tolist().index(held.example)
                unless = f", or leave the column out: --ignore {called}"
                what = (
                    f"holds {held.what}, the first {_shown(held.example)} on {table.where(row)} - "
                    f"{held.remedy}{unless if self.parts is None else ''}"
                )
            elif self.parts is not None:
                what = (
                    f"holds text, {first}, where the model was fitted to numbers - usually a "
                    f"typing error or a mark for a missing value - mend the file"
                )
            elif not texts:
                what = (
                    f"holds numbers written as text, {first} - write them as numbers, or leave the "
                    f"column out: --ignore {called}"
                )
            elif len(texts) <= len(column) // 10:
                what = (
                    f"{len(texts)} of {len(column)} values are no numbers, the first {first} - "
                    f"usually a typing error or a mark for a missing value - mend the file, or "
                    f"leave the column out: --ignore {called}"
                )
            else:
                several = f"{different} different values"
                advice = f"turn it into columns of 0 and 1 ({several}): --onehot {called}"
                if different > _MANY:
                    advice = (
                        f"compare the texts by a kernel of strings: --columns {called} --kernel"
                    )
                    advice += " 'Normalized(Spectrum(3))'"
                what = (
                    f"holds text, {first}, and a kernel on vectors takes numbers - usually a name "
                    f"or a category - leave it out: --ignore {called}; {advice}; or colour by it: "
                    f"--color {called}"
                )
            raise TableError(f"{table.source}, column {name!r}: {what}")

    def _refuse_unlikely_categories(self, table: Table, counts: dict[str, Counter[str]]) -> None:
        """Refuse columns that onehot="all" found, and that hold anything but categories."""
        found = {
            name: what
            for name, values in counts.items()
            if name not in self._onehot_named(table) and (what := inspect_texts(values)) is not None
        }
        if not found:
            return
        listed = "; ".join(
            f"{name!r} holds {what.what}, such as {_shown(what.example)} ({what.remedy})"
            for name, what in found.items()
        )
        names = quote(",".join(found))
        raise TableError(
            f"{table.source}: --onehot all found columns of text that are hardly categories: "
            f"{listed} - correct the file, leave them out: --ignore {names}; or make each value a "
            f"category nevertheless: --onehot all,{names}"
        )

    def _refuse_missing(self, table: Table, names: list[str]) -> None:
        if self.impute is not None:
            return
        for name in names:
            rows = np.flatnonzero(missing(table.columns[name]))
            if len(rows):
                advice = (
                    f"say what stands for them: --impute mean, median or a number; leave out these "
                    f"rows: --impute drop; or the column: --ignore {quote(name)}"
                    if self.parts is None
                    else "fill them in, or fit the model again with --impute"
                )
                raise TableError(
                    f"{table.source}, column {name!r}: {len(rows)} of {len(table)} values are "
                    f"missing, the first on {table.where(rows[0])} - {advice}"
                )

    def _refuse_infinite(self, table: Table, names: list[str]) -> None:
        for name in names:
            bad = np.flatnonzero(np.isinf(table.columns[name]))
            if len(bad):
                unless = f", or leave the column out: --ignore {quote(name)}"
                raise TableError(
                    f"{table.source}, {table.where(bad[0])}, column {name!r}: the value is "
                    f"infinite - usually a division by zero or a mark for a missing value - mend "
                    f"it{unless if self.parts is None else ''}"
                )

    def _complete(self, table: Table, names: list[str]) -> np.ndarray:
        """Return the rows to keep: all, or with impute="drop" those where nothing is missing."""
        keep = np.ones(len(table), dtype=bool)
        if self.impute == "drop":
            for name in (*names, *filter(None, [self.target])):
                if name in table.columns:
                    keep &= ~missing(table.columns[name])
        return keep

    # ------------------------------------------------------------------ using

    def without_target(self) -> Recipe:
        """Return the recipe for rows to predict, whose target may be missing."""
        return replace(self, target=None)

    def _read(self, table: Any) -> Table:
        """Return a table; of a source, with the text of columns that were text in `fit`."""
        return table.table(self.text_columns) if isinstance(table, Source) else as_table(table)

    def kept(self, table: Any) -> np.ndarray:
        """Return the indices of the rows that become points: all, or the complete ones."""
        table = self._read(table)
        return np.flatnonzero(self._complete(table, [part.name for part in self._parts]))

    def transform(self, table: Any) -> Any:
        """Return the points of the rows that are kept."""
        table = self._read(table)
        if self.points != "vectors":
            column = table.column(self._parts[0].name)
            self._refuse_missing(table, [self._parts[0].name])
            column = take(column, self.kept(table))
            return column.tolist() if isinstance(column, np.ndarray) else column
        for part in self._parts:
            table.column(part.name)
        names = [part.name for part in self._parts]
        plain = [part.name for part in self._parts if part.categories is None]
        self._refuse_text(table, plain)
        self._refuse_missing(table, names)
        self._refuse_infinite(table, plain)
        rows = self.kept(table)
        X = np.empty((len(rows), sum(part.width for part in self._parts)))
        place = 0
        for part in self._parts:
            X[:, place : place + part.width] = self._part(part, table, rows)
            place += part.width
        return X

    def _part(self, part: Part, table: Table, rows: np.ndarray) -> np.ndarray:
        column = take(table.columns[part.name], rows)
        if part.categories is None:
            if part.fill is not None:
                column = np.where(np.isnan(column), part.fill, column)
            return ((column - part.mean) / part.scale)[:, None]
        if part.text and not _is_text(table, part.name):
            self._refuse_ambiguous_numbers(part, table, rows)
        places = {value.strip(): j for j, value in enumerate(part.categories)}
        hot = np.zeros((len(rows), part.width))
        for i, value in enumerate(_categories(table.texts(part.name)[rows])):
            value = str(part.fill).strip() if value is None else value
            if value not in places:
                shown = ", ".join(map(repr, part.categories[:8]))
                more = " ..." if part.width > 8 else ""
                raise TableError(
                    f"{table.source}, {table.where(rows[i])}, column {part.name!r}: the model has "
                    f"never seen {value!r}; it was fitted to {shown}{more} - mend the value, or "
                    f"fit again with rows that have it"
                )
            hot[i, places[value]] = 1.0
        return hot

    def _refuse_ambiguous_numbers(self, part: Part, table: Table, rows: np.ndarray) -> None:
        """Refuse numbers that two categories stand for, or one in another notation, as "01"."""
        written = {c: float(c) for c in part.categories or () if _numeric(c)}
        same = Counter(written.values())
        other = {v: c for c, v in written.items() if same[v] > 1 or c != as_texts(np.array([v]))[0]}
        for row in rows.tolist():
            value = float(table.columns[part.name][row])
            if value in other:
                raise TableError(
                    f"{table.source}, {table.where(row)}, column {part.name!r}: the number "
                    f"{value:g} may be the category {other[value]!r} or not, because the column "
                    f"was text when the model was fitted - convert the column to text, or read a "
                    f"file by open_table(path).table(recipe.text_columns)"
                )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that were text in the table of `fit`, to be read as text again."""
        target = (self.target,) if self.target is not None and self.target_text else ()
        return (*(part.name for part in self._parts if part.text), *target)

    def targets(self, table: Any, *, labels: bool) -> Any:
        """Return the target of each row that is kept: labels, or numbers."""
        table = self._read(table)
        if self.target is None:
            raise TableError(f"which column of {table.source} is to be predicted? --target NAME")
        column = table.column(self.target)
        absent = np.flatnonzero(missing(column))
        if len(absent) and self.impute != "drop":
            raise TableError(
                f"{table.source}, {table.where(absent[0])}, column {self.target!r}: the target is "
                f"missing - leave out such rows: --impute drop"
            )
        rows = self.kept(table)
        column = take(column, rows)
        held = None
        if kind_of(column) == TEXT:
            held = inspect_texts(Counter(cell for cell in column if cell is not None))
        fractions = held is not None and labels and held.is_mostly_numbers
        fractions = fractions and any(_numeric(cell) and "." in cell for cell in column)
        if held is not None and (
            (held.is_number and not (labels and held.is_identifier))
            or (held.is_mostly_numbers and (not labels or fractions))
        ):
            row = column.tolist().index(held.example)
            raise TableError(
                f"{table.source}, column {self.target!r}: the target holds {held.what}, the first "
                f"{_shown(held.example)} on {table.where(rows[row])} - {held.remedy}"
            )
        if labels:
            if self.target_text or self.target in table.booleans:
                return label_values(take(table.texts(self.target), rows))
            found = label_values(column)
            if found.dtype.kind == "f":
                row = int(np.flatnonzero(column != np.round(column))[0])
                raise TableError(
                    f"{table.source}, column {self.target!r}: the target holds numbers such as "
                    f"{column[row]:g} on {table.where(rows[row])}, and a classifier predicts "
                    f"labels - try a regression: mercer fit ridge, gp or svr"
                )
            return found
        if kind_of(column) == TEXT:
            raise TableError(
                f"{table.source}, column {self.target!r}: the target holds text, "
                f"{_shown(column[0])} on {table.where(rows[0])}, and a regression predicts numbers "
                f"- try a classifier: mercer fit svc, logistic or fisher"
            )
        self._refuse_infinite(table, [self.target])
        return column

    def answer(
        self,
        table: Any,
        values: dict[str, Any],
        beside: Iterable[str] = (),
        *,
        all_rows: bool = False,
    ) -> Table:
        """Return values as a table with the row numbers and the columns `beside`.

        It has the rows that are kept; with `all_rows`, every row of the table, where the values
        of the others are missing.  A column of the table that has the name of a result, such as
        "component1", is called "input_component1".
        """
        table = as_table(table)
        rows = self.kept(table)
        if all_rows:
            values = {name: scattered(column, rows, len(table)) for name, column in values.items()}
            rows = np.arange(len(table))
        number = "row_number" if "row" in values else "row"
        results = {number: table.start + 1 + rows, **values}
        kept = {}
        for name in beside:
            called = name
            while called in results:
                called = f"input_{called}"
            kept[called] = take(table.texts(name), rows)
        return Table({number: results.pop(number), **kept, **results}, table.source)

    def restored(self, points: Any) -> dict[str, Any]:
        """Return points as columns in the units of the file: the way back of `transform`.

        One-hot columns stay what they are, a number for each value.
        """
        if self.points != "vectors":
            found = np.empty(len(points), dtype=object)
            found[:] = list(points)
            return {self._parts[0].name: found}
        columns = dict(zip(self.features, np.asarray(points, dtype=float).T, strict=True))
        for part in self._parts:
            if part.categories is None:
                columns[part.name] = columns[part.name] * part.scale + part.mean
        return columns

    @property
    def _parts(self) -> tuple[Part, ...]:
        if self.parts is None:
            raise ValueError("this recipe has not seen a table yet: call fit first")
        return self.parts

    @property
    def features(self) -> list[str]:
        """The names of the columns of the points: age, city=Bonn, city=Ulm."""
        return [
            name
            for part in self._parts
            for name in (
                [part.name]
                if part.categories is None
                else [f"{part.name}={value}" for value in part.categories]
            )
        ]

    # ------------------------------------------------------------------ what it says, and keeps

    def describe(self) -> list[str]:
        """Return what was done, in sentences."""
        if self.points != "vectors":
            name = self._parts[0].name
            said = [f"Points are the {self.points} of the column {name!r}, and of no other."]
            dropped = ["Rows with a missing value were left out."] * (self.impute == "drop")
            return said + dropped
        plain = [part for part in self._parts if part.categories is None]
        hot = [part for part in self._parts if part.categories is not None]
        said = list[str]()
        if plain:
            how = "standardised to mean 0 and deviation 1" if self.standardize else "taken as is"
            said.append(f"{_count(len(plain), 'column')} of numbers, {how}: {_some(plain)}.")
        for part in hot:
            values = _count(part.width, "value")
            said.append(f"Column {part.name!r} one-hot: {values}, one column of 0 and 1 for each.")
        if self.impute == "drop":
            said.append("Rows with a missing value were left out.")
        elif self.impute is not None:
            how = self.impute if isinstance(self.impute, str) else f"number {self.impute:g}"
            text = f"Missing numbers were replaced by the {how.replace('_', ' ')}"
            said.append(text + (", missing categories by the most frequent." if hot else "."))
        left = [*self.ignore, *filter(None, [self.target])]
        if left:
            said.append(f"Not among the points: {', '.join(left)}.")
        return said

    def to_json(self) -> str:
        """Return the recipe as text, from which `from_json` makes an equal one."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Return the recipe that a text describes."""
        values = {key: _frozen(value) for key, value in json.loads(text).items()}
        if values["parts"] is not None:
            values["parts"] = tuple(
                Part(**{key: _frozen(value) for key, value in part.items()})
                for part in values["parts"]
            )
        return cls(**values)


def scattered(values: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """Return n values, those of the given rows as they are, and missing values elsewhere."""
    values = np.asarray(values)
    if len(rows) == n:
        return values
    absent = np.nan if values.dtype.kind == "f" else None
    found = np.full((n, *values.shape[1:]), absent, values.dtype if absent is not None else object)
    found[rows] = values
    return found


def _frozen(value: Any) -> Any:
    """Return lists as tuples: JSON knows no others."""
    return tuple(value) if isinstance(value, list) else value


def missing(column: Any) -> np.ndarray:
    """Tell for each row whether its value is missing."""
    if not isinstance(column, np.ndarray):
        return np.zeros(len(column), dtype=bool)
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column)


def _is_text(table: Table, name: str) -> bool:
    """Whether a column is text, or booleans, which are the texts "True" and "False"."""
    return name in table.booleans or kind_of(table.column(name)) == TEXT


def _categories(column: np.ndarray) -> np.ndarray:
    """Return values as texts without the spaces around them, which do not make a category."""
    found = np.empty(len(column), dtype=object)
    found[:] = [None if value is None else value.strip() for value in as_texts(column)]
    return found


def label_values(column: np.ndarray) -> np.ndarray:
    """Return labels: texts without the spaces around them, or whole numbers as integers."""
    if column.dtype == object:
        return np.array(["missing" if v is None else v for v in _categories(column)], dtype=str)
    whole = bool(np.all(np.abs(column) < 2**63)) and bool(np.all(column == np.round(column)))
    return column.astype(np.int64) if whole else column


def _shown(cell: str | None, most: int = 60) -> str:
    """Return a cell for a message, of which the beginning is enough."""
    text = repr(cell)
    return text if len(text) <= most else f"{text[:most]}..."


def _symbols(column: np.ndarray) -> int:
    return sum(len(cell) for cell in column if cell is not None)


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _chained(first: list[Table], rest: Iterator[Table]) -> Iterator[Table]:
    yield from first
    yield from rest


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _some(parts: list[Part], most: int = 8) -> str:
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(part.name for part in parts[:most]) + more
