"""The options that say which rows and columns of which file become points, and how."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ._session import Session

if TYPE_CHECKING:
    from ..tables import Recipe, Source, Table

__all__ = ["Data", "data_options", "kernel_option", "parameters", "points_of", "reading_options"]

_FORMATS = ("csv", "jsonl", "parquet", "arrow", "npy", "fasta", "graphs")
RBF = "RBF(length_scale='median')"


@dataclass(frozen=True)
class Data:
    """A file, and the options that say how it is read and what becomes of its columns."""

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
    def treats_columns(self) -> bool:
        """Whether an option says what becomes of columns."""
        given = (self.columns, self.ignore, self.standardize, self.onehot, self.impute)
        return any(value not in ((), False, None) for value in given)

    @property
    def reading(self) -> dict[str, Any]:
        """The options of `open_table` that were given."""
        given = {n: getattr(self, n) for n in ("format", "delimiter", "header", "arrays")}
        return {name: value for name, value in given.items() if value not in (None, ())}

    def open(self, session: Session, path: str | None = None) -> Source:
        """Open the file, or another one in the same way."""
        from ..tables import open_table

        source = open_table(path or self.path, **self.reading)
        for note in source.notes:
            session.note(f"{source.name}: {note}")
        return source

    def recipe(
        self,
        source: Source,
        kernel: str | None,
        target: str | None = None,
        beside: tuple[str, ...] = (),
    ) -> Recipe:
        """Return the recipe that the options describe, for a kernel on such points."""
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
            ignore=(*_names(self.ignore, names), *beside),
            points=points_of(kernel),
            standardize=self.standardize,
            onehot="all" if onehot == ("all",) and "all" not in names else onehot,
            impute=impute,
        )


def _names(given: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    """Return names of columns: each as it is, or several between commas."""
    found: list[str] = []
    for text in given:
        found += [text] if text in known else [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(found))


def points_of(kernel: str | None) -> str:
    """Return what a kernel compares: "vectors", "texts" or "graphs"."""
    from ..kernels import as_kernel

    kinds = {"strings": "texts", "texts": "texts", "graphs": "graphs"}
    return kinds.get("" if kernel is None else as_kernel(kernel).domain, "vectors")


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument DATA and how it is read, together as one `Data`."""

    @click.argument("data")
    @click.option("--format", type=click.Choice(_FORMATS), help="What kind of file DATA is.")
    @click.option("--delimiter", help="What separates the cells of a CSV file: ; tab space ...")
    @click.option(
        "--header/--no-header", default=None, help="Whether the first line of a CSV holds names."
    )
    @click.option(
        "--arrays",
        metavar="NAMES",
        help="Which arrays of a .npz to take; X=X_test takes one under the name of another.",
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
    """Give a command DATA with the options of its columns, too."""

    @reading_options
    @click.option("--columns", multiple=True, metavar="NAMES", help="Take only these columns.")
    @click.option("--ignore", multiple=True, metavar="NAMES", help="Leave out these columns.")
    @click.option("--standardize", is_flag=True, help="Give each column mean 0 and deviation 1.")
    @click.option(
        "--onehot",
        multiple=True,
        metavar="NAMES",
        help="Turn these columns into one of 0 and 1 per value; 'all' for all with text.",
    )
    @click.option(
        "--impute",
        metavar="HOW",
        help="What stands for missing values: mean, median, most_frequent or a number; "
        "'drop' leaves out their rows.",
    )
    @wraps(command)
    def run(*args: Any, data: Data, **options: Any) -> Any:
        names = ["columns", "ignore", "standardize", "onehot", "impute"]
        data = replace(data, **{name: options.pop(name) for name in names})
        return command(*args, data=data, **options)

    return run


def kernel_option(default: str | None = RBF) -> Callable[..., Any]:
    """Give a command --kernel."""
    return click.option(
        "--kernel",
        default=default,
        show_default=default is not None,
        metavar="EXPRESSION",
        help='A kernel, such as "2*RBF(0.5) + Linear()"; see `mercer kernels`.',
    )


def parameters(cls: Any, given: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of an estimator from texts NAME=VALUE, or name the nearest."""
    from inspect import signature

    from ..tables import TableError, nearest

    known, found = list(signature(cls).parameters), {}
    for text in given:
        name, mark, value = text.partition("=")
        if not mark:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
        if name not in known:
            raise TableError(
                f"{cls.__name__} has no parameter {name!r}{nearest(name, known)} it has "
                f"{', '.join(known)}"
            )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value  # a word
    return found


def kept(recipe: Recipe, table: Table, session: Session) -> None:
    """Report how many rows were left out, if any."""
    left_out = len(table) - len(recipe.kept(table))
    if left_out:
        session.note(left_out_rows(table.source, left_out, len(table)))


def left_out_rows(source: str, count: int, rows: int) -> str:
    """Return the message about rows that are left out."""
    return f"{source}: {count} of {rows} rows left out, values are missing"
