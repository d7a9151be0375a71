"""How far a fit is: one line that moves on a terminal, a few lines in a file.

Whoever works calls ``say(text)`` for news, and ``say(Step(text, done, total))`` for where it is.
News stay.  A step takes the place of the one before it on a terminal, with a bar and the time left
if the total is known.  Elsewhere steps become few lines: the tenths of a total, or the first, the
second, the fourth, the eighth ..., and the last.  Which ones depends on counts, never on a clock.

Lines go to what `sys.stdout` is at the time: ``contextlib.redirect_stdout(sys.stderr)`` keeps them
away from data that is piped.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ._jit import compiling

__all__ = ["Progress", "Step", "hearing", "progress"]

_BAR = 20  # characters
_SECONDS = 0.1  # between two changes of a line on a terminal
_lock = threading.RLock()  # one for all, since they share a terminal
_current: ContextVar[Progress | None] = ContextVar("who speaks", default=None)


class Step(str):
    """A line about where something is, which the next one replaces; a text for all who just read.

    Examples
    --------
    >>> from mercer._runtime import Step
    >>> Step("300 of 1000 points", 300, 1000)
    '300 of 1000 points'
    """

    done: float | None
    total: float | None

    def __new__(cls, text: str, done: float | None = None, total: float | None = None) -> Step:
        """Return the line; `done` of `total`, if they are known."""
        self = super().__new__(cls, text)
        self.done, self.total = done, total
        return self


class Progress:
    """Writes the lines of one fit; call it with a text or a `Step`, from any thread.

    Leaving the block ends a line that is still moving, also after Ctrl-C.

    Examples
    --------
    >>> from mercer._runtime import Progress, Step
    >>> with Progress("Model") as say:
    ...     for done in range(25, 101, 25):
    ...         say(Step(f"{done} of 100 points", done, 100))
    [Model] 25 of 100 points
    [Model] 50 of 100 points
    [Model] 75 of 100 points
    [Model] 100 of 100 points
    """

    _moving: Progress | None = None  # whose line is not ended yet

    def __init__(self, name: str) -> None:
        self._name = name
        self._restart()

    def _restart(self) -> None:
        """Begin a new sequence of steps."""
        self._start = time.perf_counter()
        self._last: Step | None = None
        self._count, self._next, self._told, self._drawn = 0, 1, True, 0.0

    def __call__(self, text: str) -> None:
        """Write a line, or move one."""
        with _lock:
            if isinstance(text, Step):
                self._step(text)
            else:
                self.end()
                self._write(f"[{self._name}] {text}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the line that is moving, anybody's, and a sequence of steps with its last one."""
        with _lock:
            other = Progress._moving
            if other not in (None, self):
                other.end()
            if self._last is not None and not self._told:
                self._draw(self._last) if _terminal() else self._line(self._last)
            if Progress._moving is self:
                Progress._moving = None
                self._write("\n")
            self._restart()

    def _step(self, step: Step) -> None:
        before = self._last
        if before is not None and (
            before.total != step.total or (step.done or 0) < (before.done or 0)
        ):
            self.end()  # a new sequence
        self._last, self._told = step, False
        self._count += 1
        if _terminal():
            now = time.perf_counter()
            if now >= self._drawn + _SECONDS:
                self._draw(step)
                self._drawn = now
            return
        if step.total:
            tenth = int(10 * (step.done or 0) / step.total)
            if tenth >= self._next or (step.done or 0) >= step.total:
                self._line(step)
                self._next = tenth + 1
        elif self._count >= self._next:
            self._line(step)
            self._next = 2 * self._count

    def _line(self, step: Step) -> None:
        self._told = True
        self._write(f"[{self._name}] {step}\n")

    def _draw(self, step: Step) -> None:
        if Progress._moving not in (None, self):
            Progress._moving.end()
        Progress._moving, self._told = self, True
        text = f"[{self._name}] {step}"
        if step.total and step.done:
            share = min(1.0, step.done / step.total)
            rate = step.done / max(1e-9, time.perf_counter() - self._start)
            left = max(0.0, (step.total - step.done) / rate)
            bar = "#" * int(_BAR * share)
            text += f" [{bar:-<{_BAR}}] {share:.0%}, {rate:.3g}/s, {_clock(left)} left"
        # cut, as a line that goes on to the next one cannot be taken back
        self._write(f"\r{text[: _width() - 1]}\x1b[K")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def progress(name: str, wanted: Any = True) -> Iterator[Progress | None]:
    """Give whoever works inside of the block a `Progress`, which is also told what is compiled.

    None if it is not wanted.  Inside of another block of the same name it is that one's.
    """
    outer = _current.get()
    heard = isinstance(outer, _Heard)
    if not wanted or heard or (outer is not None and outer._name == name):
        yield outer if wanted else None
        return
    with Progress(name) as say:
        token = _current.set(say)
        try:
            with compiling(say):
                yield say
        finally:
            _current.reset(token)


class _Heard(Progress):
    """Gives what is said to a listener."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        super().__init__("")
        self._listener = listener

    def __call__(self, text: str) -> None:
        self._listener(text)


@contextmanager
def hearing(listener: Callable[[str], None]) -> Iterator[None]:
    """Let a listener hear all that is said inside of the block, in place of a terminal.

    What it raises ends whoever has spoken.

    Examples
    --------
    >>> from mercer._runtime import hearing, progress
    >>> lines = []
    >>> with hearing(lines.append), progress("Model") as say:
    ...     say("1 of 2 passes")
    >>> lines
    ['1 of 2 passes']
    """
    token = _current.set(_Heard(listener))
    try:
        yield
    finally:
        _current.reset(token)


def _clock(seconds: float) -> str:
    """Write a time as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _terminal() -> bool:
    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):  # a terminal that does not know, or no file
        return 80
