"""Compiled loops: no lock on the interpreter, kept on disk where there is a place for them.

Nothing is compiled, and numba not even imported, before a loop is first called.  What that takes
is no part of a solution: `compiling` says what is being compiled, and `compile_seconds` counts it,
so that a `Stopwatch` can leave it out.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

from ._shelves import shelves

__all__ = ["LOOPS", "Loop", "compile_seconds", "compiling", "jit"]
__all__ += ["larger", "number", "smaller", "word"]

LOOPS: list[Loop] = []  # all that there are in the modules imported so far
_lock = threading.RLock()
_tell: ContextVar[Callable[[str], None] | None] = ContextVar("who hears of it", default=None)


class Loop:
    """A function that is compiled at its first call, for the types that it is then called with."""

    def __init__(self, function: Callable, fastmath: set[str]) -> None:
        self._function, self._fastmath, self._dispatcher = function, fastmath, None
        update_wrapper(self, function)
        LOOPS.append(self)

    def __call__(self, *args: Any) -> Any:
        if self._dispatcher is None:
            self._make()
        return self._dispatcher(*args)  # type: ignore[misc]

    @property
    def signatures(self) -> list[Any]:
        """The types that it has been compiled for."""
        return [] if self._dispatcher is None else self._dispatcher.signatures

    @property
    def files(self) -> list[Path]:
        """Compiled code that is kept, one file for each signature; none without a folder."""
        if self._dispatcher is None:
            self._make()
        code = self._function.__code__
        name = f"{Path(code.co_filename).stem}.{self._function.__qualname__}"
        folder = getattr(self._dispatcher._cache, "cache_path", None)  # type: ignore[attr-defined]
        found = Path(folder).glob(f"{name}-{code.co_firstlineno}.*.nbc") if folder else ()
        return sorted(found)

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self._function.__module__}.{self._function.__qualname__}"

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where another loop calls this one."""
        if self._dispatcher is None:
            self._make()
        return self._dispatcher._numba_type_  # type: ignore[attr-defined]

    def _make(self) -> None:
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self._function, self._fastmath)


def jit(*fastmath: str) -> Callable[[Callable], Any]:
    """Compile a function at its first call; "contract", fusing a * b + c, is always allowed."""
    return lambda function: Loop(function, {"contract", *fastmath})


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller one: a loop that keeps it compiles to vector instructions, as min's not.

    Compiled, it passes over a NaN beside a number.
    """
    return b if b < a else a


def larger(a: Any, b: Any) -> Any:
    """Return the larger one; see `smaller`."""
    return b if b > a else a


def word(x: Any) -> Any:
    """Return the bits of a floating-point number as an integer of as many bits.

    NumPy's `view` does the same, and takes numba several times as long to compile.
    """
    return np.asarray(x).view(f"i{np.asarray(x).itemsize}")[()]


def number(word: Any) -> Any:
    """Return the floating-point number that has these bits."""
    return np.asarray(word).view(f"f{np.asarray(word).itemsize}")[()]


class _Clock:
    """Seconds in which somebody was inside; no garbage is collected meanwhile.

    What compilers make is kept, and to look through it again and again takes a tenth of the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._spent, self._since, self._collects = 0, 0.0, 0.0, False

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._since, self._collects = time.perf_counter(), gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._spent += time.perf_counter() - self._since
                if self._collects:
                    gc.enable()

    @property
    def seconds(self) -> float:
        with self._lock:
            now = time.perf_counter() - self._since if self._inside else 0.0
            return self._spent + now


_clock = _Clock()


def compile_seconds() -> float:
    """Return the seconds that this process has spent on compiling."""
    return _clock.seconds


@contextmanager
def compiling(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Let somebody know, inside of the block, which loops have to be compiled."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def _dispatcher(function: Callable, fastmath: set[str]) -> Any:
    with _clock:
        numba = _numba()
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        try:
            made = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder can be written to: what is nowhere is compiled each time
            made = numba.njit(**options)(function)
        made._cache = shelves(function, made._cache)
        return made


@cache
def _numba() -> Any:
    """Return numba, with a clock on its compiler, and with the small functions above."""
    import numba
    from llvmlite import ir
    from numba.core import event
    from numba.core.registry import cpu_target
    from numba.extending import lower_builtin, type_callable

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:
            _clock.__enter__()
            name, tell = event.data["dispatcher"].py_func, _tell.get()
            if tell is not None and name.__module__.startswith("mercer."):
                tell(f"compiling {name.__module__}.{name.__qualname__}, once for this machine")

        def on_end(self, event: Any) -> None:
            _clock.__exit__()

    event.register("numba:compile", Compilations())

    for function, name in ((smaller, "llvm.minnum"), (larger, "llvm.maxnum")):
        type_callable(function)(lambda context: lambda a, b: context.unify_types(a, b))

        def lowered(context: Any, builder: Any, sig: Any, args: Any, name: str = name) -> Any:
            pairs = zip(args, sig.args, strict=True)
            values = [context.cast(builder, value, t, sig.return_type) for value, t in pairs]
            kind = values[0].type
            two = ir.FunctionType(kind, [kind, kind])
            return builder.call(builder.module.declare_intrinsic(name, [kind], two), values)

        lower_builtin(function, numba.types.Float, numba.types.Float)(lowered)

    types = numba.types
    pairs = ((types.float64, types.int64), (types.float32, types.int32))
    for view, table in ((word, dict(pairs)), (number, {i: x for x, i in pairs})):
        type_callable(view)(lambda context, get=table.get: get)  # type: ignore[misc]

        def cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(sig.return_type))

        lower_builtin(view, types.Number)(cast)
    cpu_target.target_context.refresh()  # else the first call does, where no clock sees it
    return numba
