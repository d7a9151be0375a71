"""Output of a command: messages, progress bars, results and output files.

Results are written to standard output, and messages to standard error.
"""

from __future__ import annotations

import io
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

from ... import tables

Command = Callable[..., Any]  # a function that click calls with the values of the options
Decorator = Callable[[Command], Command]

# Exit codes of the command, in addition to 0 for success and 2, which click uses for a usage error.
FAILED, NOT_CONVERGED, INTERRUPTED = 1, 3, 130


class Session:
    """The output of one command: messages, warnings, progress and the result.

    Attributes
    ----------
    quiet : bool
        Whether to print only warnings and errors.
    as_json : bool
        Whether to print the result as JSON.
    converged : bool
        Whether all solvers have converged so far.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json, self.converged = quiet, as_json, True

    def note(self, text: str) -> None:
        """Print a message to standard error, unless `quiet` is set."""
        if not self.quiet:
            click.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Print a warning to standard error, even if `quiet` is set."""
        click.echo(click.style("warning: ", fg="yellow") + text, err=True, color=_use_color())

    @contextmanager
    def table(self, output: str | Path | None) -> Iterator[Callable[[tables.Table], None]]:
        """Yield a function that writes the blocks of a table to a file.

        The extension of `output` selects the format.  If `output` is None or "-", the blocks are
        written to standard output as CSV, or as JSON Lines with --json.
        """
        if output is not None and output != "-":
            with tables.table_writer(output) as writer:
                yield writer.write
        elif self.as_json:
            yield lambda block: block.write_json(sys.stdout)
        else:
            numbers = count()
            yield lambda block: block.write(sys.stdout, header=next(numbers) == 0)

    def result(self, text: str, **values: Any) -> None:
        """Print the result: `text`, or `values` as JSON with --json."""
        if self.as_json:
            click.echo(json.dumps(_to_json_types(values), indent=1, allow_nan=False))
        elif text:
            click.echo(text)

    @contextmanager
    def capture_warnings(self) -> Iterator[None]:
        """Print Python warnings as one line each, and record whether a solver did not converge."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for warning in caught:
            # A hyperparameter at the bound of its search interval is not a failure to converge.
            at_bound = "close to the specified" in str(warning.message)
            if issubclass(warning.category, ConvergenceWarning) and not at_bound:
                self.converged = False
            if not issubclass(warning.category, (DeprecationWarning, FutureWarning)):
                self.warn(str(warning.message))

    @contextmanager
    def progress(self, description: str) -> Iterator[Callable[[float | None], None]]:
        """Show a progress bar if standard error is a terminal.

        Yields a function that updates the bar to a completed fraction (0 to 1, None if unknown).
        """
        if self.quiet or not sys.stderr.isatty():
            yield lambda fraction: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        console = Console(stderr=True)
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(description, total=None)
            yield lambda fraction: bar.update(
                task, total=None if fraction is None else 1.0, completed=fraction or 0.0
            )

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or 3 if a solver did not converge."""
        return 0 if self.converged else NOT_CONVERGED


def session_options(command: Command) -> Command:
    """Add --quiet, --json and --debug to a command, and pass it a `Session` as first argument."""

    @click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("--debug", is_flag=True, help="Show the traceback if an error occurs.")
    @wraps(command)
    def run(*args: Any, quiet: bool, as_json: bool, debug: bool, **options: Any) -> int:
        session = Session(quiet, as_json)
        command(session, *args, **options)
        return session.exit_code

    # A backspace character tells click to keep the line breaks of the examples.  In a raw
    # docstring, "\b" is two characters instead, so they are replaced here.
    run.__doc__ = (command.__doc__ or "").replace(r"\b", "\b")
    return run


@contextmanager
def atomic_write(path: str | Path | None) -> Iterator[TextIO]:
    """Yield a temporary file that replaces `path` once it has been written completely.

    Yields standard output if `path` is None or "-".
    """
    if path is None or str(path) == "-":
        yield sys.stdout
        return

    with tables.atomic_file(Path(path)) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        yield text
        text.detach()  # flush the text, and leave the file open


class OutputPath(click.Path):
    """Option type: an output path, checked for write access before the computation starts."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path, or fail if it cannot be written."""
        converted = super().convert(value, param, ctx)
        path = Path(str(converted))
        folder = path.absolute().parent if self.file_okay else path.absolute()
        while not self.file_okay and not folder.exists():
            folder = folder.parent  # missing output folders are created later
        if str(converted) != "-" and not folder.is_dir():
            self.fail(
                f"{str(converted)!r} cannot be written: folder {folder} does not exist", param, ctx
            )
        if str(converted) != "-" and not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"{str(converted)!r} cannot be written: {folder} is not writable", param, ctx)
        return converted


class TableOutputPath(OutputPath):
    """Option type: an output file for a table, with the extension of a supported format."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path, or fail if a table cannot be written there."""
        converted = super().convert(value, param, ctx)
        try:
            tables.output_format(str(converted))
        except tables.TableError as error:
            self.fail(str(error), param, ctx)
        return converted


def _use_color() -> bool | None:
    """Return False if the variable NO_COLOR is set, otherwise None (click decides)."""
    return False if os.environ.get("NO_COLOR") else None


def _to_json_types(value: Any) -> Any:
    """Convert a value to types that JSON supports; numbers that are not finite become None."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {name: _to_json_types(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_types(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
