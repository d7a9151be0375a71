"""One run of a command: what it says, to whom, and how it ends.

Data go to the standard output, everything else to the standard error.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import click

from ._app import NOT_CONVERGED

__all__ = ["Output", "Session", "TableOutput", "replacing", "session_options"]


class Session:
    """What a command says while it runs.

    Attributes
    ----------
    quiet, as_json : bool
        Whether to say nothing but warnings; whether the result is wanted as JSON.
    converged : bool
        Whether all solvers did.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json, self.converged = quiet, as_json, True

    def note(self, text: str) -> None:
        """Tell what was done, on the standard error."""
        if not self.quiet:
            click.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Tell what needs attention."""
        click.echo(click.style("warning: ", fg="yellow") + text, err=True, color=_colours())

    def write(self, table: Any, file: TextIO, number: int) -> None:
        """Write a block of a table: as CSV, or to the standard output as JSON Lines if wanted."""
        if self.as_json and file is sys.stdout:
            table.write_json(file)
        else:
            table.write(file, header=number == 0)

    @contextmanager
    def table(self, output: str | None) -> Iterator[Callable[[Any], None]]:
        """Yield what writes the blocks of a table to a file, in the format of its name.

        Without a file they go to the standard output: as CSV, or as JSON Lines with --json.
        """
        if output in (None, "-"):
            numbers = count()
            yield lambda block: self.write(block, sys.stdout, next(numbers))
            return
        from ..tables import table_writer

        with table_writer(str(output)) as writer:
            yield writer.write

    def result(self, words: str, **values: Any) -> None:
        """Give the result: as text, or as JSON."""
        if self.as_json:
            click.echo(json.dumps(_plain(values), indent=1, allow_nan=False))
        elif words:
            click.echo(words)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Say warnings of the library in a line each, and remember what did not converge."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for warning in caught:
            at_bound = "close to the specified" in str(warning.message)  # of a search's box
            if issubclass(warning.category, ConvergenceWarning) and not at_bound:
                self.converged = False
            if not issubclass(warning.category, (DeprecationWarning, FutureWarning)):
                self.warn(str(warning.message))

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[float | None], None]]:
        """Show how far long work is, on a terminal; yields what takes a share from 0 to 1."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda share: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        console = Console(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda share: bar.update(
                task, total=None if share is None else 1.0, completed=share or 0.0
            )

    @property
    def code(self) -> int:
        """The exit code."""
        return 0 if self.converged else NOT_CONVERGED


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --quiet, --json and --debug, and a `Session` as its first argument."""

    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
    @click.option("--json", "as_json", is_flag=True, help="Give the result as JSON.")
    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @wraps(command)
    def run(*args: Any, quiet: bool, as_json: bool, debug: bool, **options: Any) -> int:
        session = Session(quiet, as_json)
        command(session, *args, **options)
        return session.code

    return run


@contextmanager
def replacing(path: str | Path | None) -> Iterator[TextIO]:
    """Yield a file that takes the place of `path` when it is complete; stdout for None or "-"."""
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    place = Path(path)
    new = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with new.open("w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place)
    finally:
        new.unlink(missing_ok=True)


class Output(click.Path):
    """A file or a folder to write, refused at once if that cannot be: not after an hour's fit."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path, if the folder it will be in takes new files."""
        found = super().convert(value, param, ctx)
        place = Path(str(found))
        around = place.absolute().parent if self.file_okay else place.absolute()
        while not self.file_okay and not around.exists():
            around = around.parent  # which will be made
        if str(found) != "-" and not around.is_dir():
            self.fail(f"{str(found)!r} cannot be written: there is no folder {around}", param, ctx)
        if str(found) != "-" and not os.access(around, os.W_OK | os.X_OK):
            self.fail(f"{str(found)!r} cannot be written: {around} is read-only", param, ctx)
        return found


class TableOutput(Output):
    """A file for a table, refused at once if its name does not stand for a format."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path, if a table can be written there."""
        from ..tables import TableError, output_format

        found = super().convert(value, param, ctx)
        try:
            output_format(str(found))
        except TableError as error:
            self.fail(str(error), param, ctx)
        return found


def _colours() -> bool | None:
    return False if os.environ.get("NO_COLOR") else None


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a value; null for a number that is not finite."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
