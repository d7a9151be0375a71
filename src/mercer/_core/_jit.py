"""Compile functions with numba at their first call; they release the GIL and are cached on disk.

numba is imported at the first call of such a function.  Reported fit times do not include
compilation: `compile_seconds` returns the total compilation time, which `Stopwatch` subtracts.
The names of functions that are compiled are added to `COMPILED_FUNCTIONS`, and are reported to the
progress output of the running fit.

numba uses only the first cache folder that it can write to.  A container image is often built by
one user and run by another user who cannot write to its cache folder.  `_LayeredCache` also reads
compiled code from read-only folders, so that numba does not compile all functions again.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

from ._resources import running_resources

# Every function decorated with `jit` in the modules imported so far.
JIT_FUNCTIONS: list[JitFunction] = []
# The names of the functions that numba has compiled in this process, not those read from its cache.
COMPILED_FUNCTIONS: list[str] = []
_lock = threading.RLock()


class JitFunction:
    """A function that numba compiles at its first call with each combination of argument types."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str]) -> None:
        self._function, self._fastmath, self._dispatcher = function, fastmath, None
        update_wrapper(self, function)
        JIT_FUNCTIONS.append(self)

    def __call__(self, *args: Any) -> Any:
        if self._dispatcher is None:
            self._make()
        return self._dispatcher(*args)  # type: ignore[misc]

    @property
    def signatures(self) -> list[Any]:
        """The argument types that the function has been compiled for in this process."""
        return [] if self._dispatcher is None else self._dispatcher.signatures

    @property
    def files(self) -> list[Path]:
        """The cache files of the function, one per signature; [] without a writable folder."""
        if self._dispatcher is None:
            self._make()
        code = self._function.__code__
        name = f"{Path(code.co_filename).stem}.{self._function.__qualname__}"
        folder = getattr(self._dispatcher._cache, "cache_path", None)  # type: ignore[attr-defined]
        files = Path(folder).glob(f"{name}-{code.co_firstlineno}.*.nbc") if folder else ()
        return sorted(files)

    @property
    def name(self) -> str:
        """The qualified name of the function, with its module."""
        return f"{self._function.__module__}.{self._function.__qualname__}"

    @property
    def _numba_type_(self) -> Any:
        """The numba type, which numba reads when another compiled function calls this one."""
        if self._dispatcher is None:
            self._make()
        return self._dispatcher._numba_type_  # type: ignore[attr-defined]

    def _make(self) -> None:
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self._function, self._fastmath)


def jit(*fastmath: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function at its first call.

    `fastmath` lists LLVM fast-math flags.  "contract", which fuses a * b + c, is always enabled.
    """
    return lambda function: JitFunction(function, {"contract", *fastmath})


def fmin(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, like `numpy.fmin`.

    In compiled functions it becomes an LLVM instruction that can be vectorised, whereas the builtin
    `min` prevents vectorisation.  If one argument is NaN, compiled code returns the other one.
    """
    return b if b < a else a


def fmax(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, like `numpy.fmax`; see `fmin`."""
    return b if b > a else a


def bitcast_int(x: Any) -> Any:
    """Return the bits of a floating-point number as an integer of the same width.

    NumPy's `view` does the same, but numba takes several times as long to compile it.
    """
    return np.asarray(x).view(f"i{np.asarray(x).itemsize}")[()]


def bitcast_float(bits: Any) -> Any:
    """Return the floating-point number that has the bits of an integer (undoes `bitcast_int`)."""
    return np.asarray(bits).view(f"f{np.asarray(bits).itemsize}")[()]


class _CompileClock:
    """Measure the time that threads spend compiling, and disable garbage collection meanwhile.

    The compiler keeps most objects that it creates.  Garbage collection would scan them repeatedly
    without freeing memory, which takes about a tenth of the compilation time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active, self._spent, self._since, self._gc_enabled = 0, 0.0, 0.0, False

    def __enter__(self) -> None:
        with self._lock:
            if self._active == 0:
                self._since, self._gc_enabled = time.perf_counter(), gc.isenabled()
                gc.disable()
            self._active += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                self._spent += time.perf_counter() - self._since
                if self._gc_enabled:
                    gc.enable()

    @property
    def seconds(self) -> float:
        with self._lock:
            running = time.perf_counter() - self._since if self._active else 0.0
            return self._spent + running


_compile_clock = _CompileClock()


def compile_seconds() -> float:
    """Return the total seconds that this process has spent on compilation."""
    return _compile_clock.seconds


def _report_compilation(name: str) -> None:
    """Record that a function is being compiled, and report it to the running fit, if verbose."""
    COMPILED_FUNCTIONS.append(name)
    progress = running_resources().progress
    if progress is not None and getattr(progress, "reports_compilation", False):
        progress(f"compiling {name} (once on this machine)")


def _dispatcher(function: Callable[..., Any], fastmath: set[str]) -> Any:
    with _compile_clock:
        numba = _numba()
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        try:
            dispatcher = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # without a writable cache folder, compile in every process
            dispatcher = numba.njit(**options)(function)
        dispatcher._cache = _layered_cache(function, dispatcher._cache)
        return dispatcher


@cache
def _numba() -> Any:
    """Import numba, time its compilations, and register compiled forms of functions like `fmin`."""
    import numba
    from llvmlite import ir
    from numba.core import event
    from numba.core.registry import cpu_target
    from numba.extending import lower_builtin, type_callable

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:
            _compile_clock.__enter__()
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("mercer."):
                _report_compilation(f"{function.__module__}.{function.__qualname__}")

        def on_end(self, event: Any) -> None:
            _compile_clock.__exit__()

    event.register("numba:compile", Compilations())

    for function, name in ((fmin, "llvm.minnum"), (fmax, "llvm.maxnum")):
        type_callable(function)(lambda context: lambda a, b: context.unify_types(a, b))

        def lowered(context: Any, builder: Any, sig: Any, args: Any, name: str = name) -> Any:
            pairs = zip(args, sig.args, strict=True)
            values = [context.cast(builder, value, t, sig.return_type) for value, t in pairs]
            kind = values[0].type
            binary = ir.FunctionType(kind, [kind, kind])
            return builder.call(builder.module.declare_intrinsic(name, [kind], binary), values)

        lower_builtin(function, numba.types.Float, numba.types.Float)(lowered)

    types = numba.types
    pairs = ((types.float64, types.int64), (types.float32, types.int32))
    for bitcast, table in ((bitcast_int, dict(pairs)), (bitcast_float, {i: x for x, i in pairs})):
        type_callable(bitcast)(lambda context, get=table.get: get)  # type: ignore[misc]

        def cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(sig.return_type))

        lower_builtin(bitcast, types.Number)(cast)
    cpu_target.target_context.refresh()  # refresh now, so that the time counts as compilation
    return numba


# --- A cache that also reads compiled code from read-only folders.


class _LayeredCache:
    """A numba cache that looks up code in read-only caches first and writes to its own cache."""

    def __init__(self, own: Any, others: list[Any]) -> None:
        self._own, self._others = own, others

    @property
    def cache_path(self) -> str | None:
        path: str | None = self._own.cache_path
        return path

    def load_overload(self, sig: Any, context: Any) -> Any:
        for source in (*self._others, self._own):
            if (overload := source.load_overload(sig, context)) is not None:
                return overload
        return None

    def save_overload(self, sig: Any, result: Any) -> None:
        self._own.save_overload(sig, result)

    def flush(self) -> None:
        self._own.flush()


def _layered_cache(function: Any, own: Any) -> Any:
    """Return a cache that also reads `NUMBA_CACHE_DIR` and the `__pycache__` next to the source.

    `own` is numba's cache of the function.  Writable folders are skipped, because `own` uses them.
    If there is no other readable folder, `own` itself is returned.
    """
    from numba.core.caching import FunctionCache

    def require_read_only(self: Any) -> None:
        folder = self.get_cache_path()
        if os.access(folder, os.W_OK) or not os.access(folder, os.R_OK | os.X_OK):
            raise OSError("the cache folder is writable, or cannot be read")

    implementation = FunctionCache._impl_class
    others = []
    for locator in implementation._locator_classes[:2]:
        locators = [type(locator.__name__, (locator,), {"ensure_cache_path": require_read_only})]
        read_only = type(implementation.__name__, (implementation,), {"_locator_classes": locators})
        try:
            others.append(type("Reader", (FunctionCache,), {"_impl_class": read_only})(function))
        except RuntimeError:  # the folder is not a readable, read-only folder
            continue
    return _LayeredCache(own, others) if others else own


# --- A timer that excludes the time numba spends on compilation.


class Stopwatch:
    """Measure the seconds since its creation, excluding compilation by numba.

    Examples
    --------
    >>> from mercer._core import Stopwatch
    >>> Stopwatch().seconds < 1.0
    True
    """

    def __init__(self) -> None:
        self._start = time.perf_counter() - compile_seconds()

    @property
    def seconds(self) -> float:
        """Seconds since the stopwatch was created, excluding compilation."""
        return time.perf_counter() - compile_seconds() - self._start
