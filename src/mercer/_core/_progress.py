"""Progress output of a fit: one line that is updated on a terminal, or a few lines in a file.

Solvers call ``log(text)`` to print a message and ``log(ProgressStep(text, done, total))`` to report
progress.  A message stays on the screen.  On a terminal, each step overwrites the previous one; if
the total is known, the line also shows a progress bar and the remaining time.  If the output is not
a terminal, only some steps are printed: one for each tenth of the total or, without a total, steps
1, 2, 4, 8, ... and the last one.  In this case, the output does not depend on timing.

All output goes to the current `sys.stdout`.  Use ``contextlib.redirect_stdout(sys.stderr)`` to
separate it from data that is written to a pipe.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ._arguments import ProgressCallback
from ._resources import entered, running_resources

_BAR_WIDTH = 20  # width of the progress bar in characters
_REFRESH_SECONDS = 0.1  # minimum time between two updates of a line on a terminal
_lock = threading.RLock()  # shared by all instances, because they write to the same terminal


class ProgressStep(str):
    """A string with the progress of a fit; on a terminal, the next step overwrites it.

    Examples
    --------
    >>> from mercer._core import ProgressStep
    >>> ProgressStep("300 of 1000 points", 300, 1000)
    '300 of 1000 points'
    """

    done: float | None
    total: float | None

    def __new__(
        cls, text: str, done: float | None = None, total: float | None = None
    ) -> ProgressStep:
        """Create a step with its text and, if known, the work done so far and the total work."""
        self = super().__new__(cls, text)
        self.done, self.total = done, total
        return self


class Progress:
    """Print the progress of one fit; call it with a string or a `ProgressStep`, from any thread.

    Leaving the `with` block, even by Ctrl-C, ends the line that is being updated.

    Examples
    --------
    >>> from mercer._core import Progress, ProgressStep
    >>> with Progress("Model") as log:
    ...     for done in range(25, 101, 25):
    ...         log(ProgressStep(f"{done} of 100 points", done, 100))
    [Model] 25 of 100 points
    [Model] 50 of 100 points
    [Model] 75 of 100 points
    [Model] 100 of 100 points
    """

    _open: Progress | None = None  # instance whose line on the terminal has not ended yet
    reports_compilation = True  # whether it also prints the names of functions that are compiled

    def __init__(self, name: str) -> None:
        self._name = name
        self._restart()

    def _restart(self) -> None:
        """Start a new sequence of steps: reset its clock and its counters."""
        self._start = time.perf_counter()
        self._last: ProgressStep | None = None
        self._count, self._next, self._printed, self._drawn_at = 0, 1, True, 0.0

    def __call__(self, text: str) -> None:
        """Print a message, or update the progress line if `text` is a `ProgressStep`."""
        with _lock:
            if isinstance(text, ProgressStep):
                self._step(text)
            else:
                self.end()
                self._write(f"[{self._name}] {text}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Print the last step if it is pending, and end the line that is being updated."""
        with _lock:
            other = Progress._open
            if other not in (None, self):
                other.end()
            if self._last is not None and not self._printed:
                self._draw(self._last) if _is_terminal() else self._print(self._last)
            if Progress._open is self:
                Progress._open = None
                self._write("\n")
            self._restart()

    def _step(self, step: ProgressStep) -> None:
        previous = self._last
        if previous is not None and (
            previous.total != step.total or (step.done or 0) < (previous.done or 0)
        ):
            self.end()  # this step starts a new sequence
        self._last, self._printed = step, False
        self._count += 1
        if _is_terminal():
            now = time.perf_counter()
            if now >= self._drawn_at + _REFRESH_SECONDS:
                self._draw(step)
                self._drawn_at = now
            return
        if step.total:
            tenth = int(10 * (step.done or 0) / step.total)
            if tenth >= self._next or (step.done or 0) >= step.total:
                self._print(step)
                self._next = tenth + 1
        elif self._count >= self._next:
            self._print(step)
            self._next = 2 * self._count

    def _print(self, step: ProgressStep) -> None:
        self._printed = True
        self._write(f"[{self._name}] {step}\n")

    def _draw(self, step: ProgressStep) -> None:
        if Progress._open not in (None, self):
            Progress._open.end()
        Progress._open, self._printed = self, True
        text = f"[{self._name}] {step}"
        if step.total and step.done:
            fraction = min(1.0, step.done / step.total)
            rate = step.done / max(1e-9, time.perf_counter() - self._start)
            remaining = max(0.0, (step.total - step.done) / rate)
            bar = "#" * int(_BAR_WIDTH * fraction)
            time_left = _format_seconds(remaining)
            text += f" [{bar:-<{_BAR_WIDTH}}] {fraction:.0%}, {rate:.3g}/s, {time_left} left"
        # Truncate the line, because a wrapped line cannot be overwritten.
        self._write(f"\r{text[: _terminal_width() - 1]}\x1b[K")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def progress(name: str, enabled: bool | int = True) -> Iterator[ProgressCallback | None]:
    """Yield a `Progress`, which also reports compilations by numba; None if not `enabled`.

    Inside another `progress` block with the same name, or inside `capture_progress`, the outer
    `Progress` is reused.
    """
    outer = running_resources().progress
    is_shared = isinstance(outer, _CapturedProgress) or (
        isinstance(outer, Progress) and outer._name == name
    )
    if is_shared or not enabled:
        yield outer if enabled else None
        return
    with Progress(name) as log, entered(replace(running_resources(), progress=log)):
        yield log


class _CapturedProgress(Progress):
    """Progress that passes messages and steps to a callback instead of printing them."""

    reports_compilation = False

    def __init__(self, callback: ProgressCallback) -> None:
        super().__init__("")
        self._callback = callback

    def __call__(self, text: str) -> None:
        self._callback(text)


@contextmanager
def capture_progress(
    callback: ProgressCallback, checkpoint: Callable[[], None] | None = None
) -> Iterator[None]:
    """Pass all progress output inside the block to a callback instead of printing it.

    An exception raised by the callback propagates into the computation and stops it.

    Parameters
    ----------
    callback : callable
        Called with messages and `ProgressStep`s.
    checkpoint : callable, optional
        Called without arguments between the steps of long loops (`run_in_threads`, `report_step`),
        also by functions that print no progress.  It may raise an exception, too.

    Examples
    --------
    >>> from mercer._core import capture_progress, progress
    >>> lines = []
    >>> with capture_progress(lines.append), progress("Model") as log:
    ...     log("1 of 2 passes")
    >>> lines
    ['1 of 2 passes']
    """
    captured = _CapturedProgress(callback)
    with entered(replace(running_resources(), progress=captured, checkpoint=checkpoint)):
        yield


def report_step(text: str, done: float, total: float) -> None:
    """Report a step of a function without `verbose` to `capture_progress`; otherwise do nothing.

    Examples
    --------
    >>> from mercer._core import capture_progress, report_step
    >>> steps = []
    >>> with capture_progress(steps.append):
    ...     report_step("3 of 4 rows", 3, 4)
    >>> steps[0], steps[0].done / steps[0].total
    ('3 of 4 rows', 0.75)
    """
    running = running_resources()
    if running.checkpoint is not None:
        running.checkpoint()
    if isinstance(running.progress, _CapturedProgress):
        running.progress(ProgressStep(text, done, total))


def _format_seconds(seconds: float) -> str:
    """Format a duration as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _is_terminal() -> bool:
    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):  # the width is unknown, or stdout is not a file
        return 80
