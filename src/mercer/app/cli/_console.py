"""Output of a command: messages, progress bars, results and output files.

Results are written to standard output or to a file, and messages to standard error.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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

    The result goes to standard output or to a file.  Messages, warnings and the progress bar go to
    standard error.

    Attributes
    ----------
    quiet : bool
        Whether to suppress messages and the progress bar.
    as_json : bool
        Whether to print the result as JSON.
    converged : bool
        Whether all solvers have converged so far.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json, self.converged = quiet, as_json, True
        self._bar: ProgressBar | None = None

    def note(self, text: str) -> None:
        """Print a message to standard error, unless `quiet` is set."""
        if not self.quiet:
            self._print(text)

    def warn(self, text: str) -> None:
        """Print a warning to standard error, even if `quiet` is set."""
        self._print(click.style("warning: ", fg="yellow") + text)

    def _print(self, text: str) -> None:
        """Print to standard error, above the progress bar if there is one."""
        with nullcontext() if self._bar is None else self._bar.hidden():
            click.echo(text, err=True, color=_use_color())

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

    def summary(self, text: str, output: str | None, **values: Any) -> None:
        """Print a summary: the result if there is no output file, otherwise a message."""
        if output is None or self.as_json:
            self.result(text, **values)
        else:
            self.note(text)

    @contextmanager
    def capture_warnings(self) -> Iterator[None]:
        """Print Python warnings as one line each, and record whether a solver did not converge."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings(record=True) as caught:
            # Filters of other categories stay: our tests turn deprecations into errors.
            warnings.simplefilter("default", UserWarning)
            yield
        for warning in caught:
            # A hyperparameter at the bound of its search interval is not a failure to converge.
            at_bound = "close to the specified" in str(warning.message)
            if issubclass(warning.category, ConvergenceWarning) and not at_bound:
                self.converged = False
            if not issubclass(warning.category, (DeprecationWarning, FutureWarning)):
                self.warn(str(warning.message))

    @contextmanager
    def progress(
        self, description: str, fraction: Callable[[], float] | None = None
    ) -> Iterator[Callable[[float | None], None]]:
        """Show a progress bar after two seconds, if standard error is a terminal.

        Yields a function that updates the bar to a completed fraction (0 to 1, None if unknown).
        If `fraction` is given, it is called repeatedly, and returns the completed fraction.
        """
        if self.quiet or self._bar is not None or not sys.stderr.isatty():
            yield lambda fraction: None
            return
        self._bar = ProgressBar(description, fraction)
        try:
            with self._bar:
                yield self._bar.update
        finally:
            self._bar = None

    @contextmanager
    def reading(self, source: tables.Source) -> Iterator[None]:
        """Show the progress of reading a file."""
        with self.progress(f"reading {source.title}", lambda: source.fraction_read):
            yield

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or 3 if a solver did not converge."""
        return 0 if self.converged else NOT_CONVERGED


class ProgressBar:
    """A progress bar on standard error that appears if the work takes longer than two seconds.

    A separate thread draws the bar.  It works while other threads compute without holding the
    interpreter lock.

    Parameters
    ----------
    description : str
        The text before the bar.
    fraction : callable or None, default=None
        Function that returns the completed fraction; None if `update` sets it.
    """

    DELAY = 2.0  # seconds before the bar appears
    _INTERVAL = 0.1  # seconds between updates

    def __init__(self, description: str, fraction: Callable[[], float] | None = None) -> None:
        self._description, self._poll = description, fraction
        self._fraction: float | None = None
        self._done, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._progress: Any = None

    def __enter__(self) -> ProgressBar:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def update(self, fraction: float | None) -> None:
        """Set the completed fraction; None if it is unknown."""
        self._fraction = fraction

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar from the terminal while text is printed."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
            yield
            if self._progress is not None:
                self._progress.start()

    def _run(self) -> None:
        """Wait, and then draw the bar until the work is done."""
        if self._done.wait(self.DELAY):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        progress = Progress(
            *columns,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        task = progress.add_task(self._description, total=None)
        started = progress.tasks[0].start_time
        progress.tasks[0].start_time = None if started is None else started - self.DELAY
        with self._lock:
            progress.start()
            self._progress = progress
        while not self._done.wait(self._INTERVAL):
            fraction = self._fraction if self._poll is None else self._poll()
            progress.update(
                task, total=None if not fraction else 1.0, completed=min(fraction or 0.0, 1.0)
            )
        with self._lock:
            self._progress = None
            progress.stop()


def session_options(command: Command) -> Command:
    """Add --quiet, --json and --debug to a command, and pass it a `Session` as first argument."""

    @click.option("-q", "--quiet", is_flag=True, help="Print only the result, warnings and errors.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("--debug", is_flag=True, help="Show the traceback if an error occurs.")
    @wraps(command)
    def run(*args: Any, quiet: bool, as_json: bool, debug: bool, **options: Any) -> int:
        session = Session(quiet, as_json)
        command(session, *args, **options)
        return session.exit_code

    run.__doc__ = keep_line_breaks(command.__doc__)
    return run


def keep_line_breaks(help_text: str | None) -> str:
    r"""Return a help text in which click keeps the line breaks of paragraphs that start with \b.

    For click, a backspace character starts such a paragraph.  In a raw docstring, ``\b`` consists
    of two characters instead, which this function replaces.
    """
    return (help_text or "").replace(r"\b", "\b")


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
