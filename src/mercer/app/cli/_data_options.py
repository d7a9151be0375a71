"""Options that select an input file, the rows and columns to use, and their preprocessing."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ._console import Session

if TYPE_CHECKING:
    from ..tables import Recipe, Source, Table

__all__ = [
    "Data",
    "data_options",
    "input_kind",
    "input_options",
    "kernel_option",
    "parse_parameters",
]

_FORMATS = ("csv", "jsonl", "parquet", "arrow", "npy", "fasta", "graphs")
RBF = "RBF(length_scale='median')"  # the default kernel


@dataclass(frozen=True)
class Data:
    """An input file, with the options for reading it and for preprocessing its columns."""

    path: str
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    arrays: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    standardize: bool = False
    onehot: tuple[str, ...] = ()
    impute: str | None = None

    @property
    def has_column_options(self) -> bool:
        """Whether the user gave any option that selects or preprocesses columns."""
        options = (self.columns, self.ignore, self.standardize, self.onehot, self.impute)
        return any(value not in ((), False, None) for value in options)

    @property
    def read_options(self) -> dict[str, Any]:
        """The keyword arguments of `open_table` that differ from their defaults."""
        options = {n: getattr(self, n) for n in ("format", "delimiter", "header", "arrays")}
        return {name: value for name, value in options.items() if value not in (None, ())}

    def open(self, session: Session, path: str | None = None) -> Source:
        """Open the input file (or `path`, with the same options) and print the notes about it."""
        from ..tables import open_table

        source = open_table(path or self.path, **self.read_options)
        for note in source.notes:
            session.note(f"{source.name}: {note}")
        return source

    def recipe(
        self,
        source: Source,
        kernel: str | None,
        target: str | None = None,
        exclude: tuple[str, ...] = (),
    ) -> Recipe:
        """Return the unfitted preprocessing recipe for these options and this kernel.

        The recipe ignores the columns in `exclude`, such as the column that colours the points.
        """
        from ..tables import Recipe

        names = set(source.shape.kinds)
        onehot: Any = _names(self.onehot, names)
        impute: Any = self.impute
        if impute is not None:
            with contextlib.suppress(ValueError):
                impute = float(impute)
        return Recipe(
            columns=_names(self.columns, names) or None,
            target=target,
            ignore=(*_names(self.ignore, names), *exclude),
            points=input_kind(kernel),
            standardize=self.standardize,
            onehot="all" if onehot == ("all",) and "all" not in names else onehot,
            impute=impute,
        )


def _names(values: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    """Return the column names in `values`; a value that is not a column is split at commas."""
    names: list[str] = []
    for text in values:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(names))


def input_kind(kernel: str | None) -> str:
    """Return the kind of input that a kernel accepts: "vectors", "texts" or "graphs"."""
    from ...kernels import as_kernel

    kinds = {"strings": "texts", "texts": "texts", "graphs": "graphs"}
    return kinds.get("" if kernel is None else as_kernel(kernel).domain, "vectors")


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument DATA and its read options to a command, which receives a `Data` object."""

    @click.argument("data")
    @click.option(
        "--format",
        type=click.Choice(_FORMATS),
        help="File format of DATA; by default inferred from the file name.",
    )
    @click.option(
        "--delimiter",
        help='Field delimiter of a CSV file: one character, "tab" or "space"; by default detected.',
    )
    @click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a CSV file contains column names; by default detected.",
    )
    @click.option(
        "--arrays",
        metavar="NAMES",
        help="Comma-separated names of the arrays to read from a .npz file; X=X_test reads the "
        "array X_test under the name X.",
    )
    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        names = ("format", "delimiter", "header")
        arrays = tuple(filter(None, (options.pop("arrays") or "").split(",")))
        path = options.pop("data")
        data = Data(path, arrays=arrays, **{name: options.pop(name) for name in names})
        return command(*args, data=data, **options)

    return run


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add DATA, its read options, and the options that preprocess columns to a command."""

    @input_options
    @click.option(
        "--columns", multiple=True, metavar="NAMES", help="Comma-separated columns to use."
    )
    @click.option(
        "--ignore",
        multiple=True,
        metavar="NAMES",
        help="Comma-separated columns not to use.",
    )
    @click.option(
        "--standardize",
        is_flag=True,
        help="Scale each column to mean 0 and standard deviation 1.",
    )
    @click.option(
        "--onehot",
        multiple=True,
        metavar="NAMES",
        help="One-hot encode these columns; 'all' encodes all text columns.",
    )
    @click.option(
        "--impute",
        metavar="HOW",
        help="How to replace missing values: mean, median or most_frequent (of the column), or a "
        "number; 'drop' drops the rows that contain them.",
    )
    @wraps(command)
    def run(*args: Any, data: Data, **options: Any) -> Any:
        names = ["columns", "ignore", "standardize", "onehot", "impute"]
        data = replace(data, **{name: options.pop(name) for name in names})
        return command(*args, data=data, **options)

    return run


def kernel_option(default: str | None = RBF) -> Callable[..., Any]:
    """Return a decorator that adds the option --kernel to a command."""
    return click.option(
        "--kernel",
        default=default,
        show_default=default is not None,
        metavar="EXPRESSION",
        help='Kernel expression, such as "2*RBF(0.5) + Linear()"; see `mercer kernels` for a list.',
    )


def parse_parameters(cls: Any, assignments: tuple[str, ...]) -> dict[str, Any]:
    """Parse the NAME=VALUE strings of --set into parameters of the estimator class `cls`.

    An unknown name raises a `TableError` that suggests the closest parameter.
    """
    from inspect import signature

    from ..tables import TableError, suggest_name

    known, parameters = list(signature(cls).parameters), {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
        if name not in known:
            raise TableError(
                f"{cls.__name__} has no parameter {name!r}{suggest_name(name, known)} its "
                f"parameters "
                f"are {', '.join(known)}"
            )
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value  # values that are not Python literals are unquoted strings
    return parameters


def report_dropped_rows(recipe: Recipe, table: Table, session: Session) -> None:
    """Print how many rows the recipe drops because of missing values, if any."""
    dropped = len(table) - len(recipe.kept_rows(table))
    if dropped:
        session.note(dropped_rows_message(table.source, dropped, len(table)))


def dropped_rows_message(source: str, count: int, rows: int) -> str:
    """Return the message about rows that were dropped because of missing values."""
    return f"{source}: {count} of {rows} rows dropped because of missing values"
