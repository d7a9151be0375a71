"""Compile functions with numba at their first call; they release the GIL and are cached on disk.

numba is imported at the first call of such a function.  Reported fit times do not include
compilation: `compile_seconds` returns the total compilation time, which `Stopwatch` subtracts.
The names of functions that are compiled are added to `COMPILED_FUNCTIONS`, and are reported to the
progress output of the running fit.

numba is replaceable.  This module uses only its documented interface; `_numba_hooks` contains the
rest, and each part of it is optional.  Without numba, or if numba cannot compile a function, the
function runs in the interpreter (`_interpreted`): the results are the same up to rounding.

numba uses only the first cache folder that it can write to.  A container image is often built by
one user and run by another user who cannot write to its cache folder.  `read_layered_cache` also
reads compiled code from read-only folders, so that numba does not compile all functions again.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import warn_caller
from ._interpreted import as_double, as_entry, interpreted_copy, own_copy, substitute_names
from ._numba_hooks import (
    ScalarFunctions,
    cache_folder,
    is_cache_error,
    is_compiler_error,
    listen_to_compiler,
    lower_scalar_functions,
    plain_scalar_functions,
    read_layered_cache,
    refresh_target,
)
from ._resources import running_resources

# Every function decorated with `jit` in the modules imported so far.
JIT_FUNCTIONS: list[JitFunction] = []
# The names of the functions that numba has compiled in this process, not those read from its cache.
COMPILED_FUNCTIONS: list[str] = []
_lock = threading.RLock()


class JitFunction:
    """A function that numba compiles at its first call with each combination of argument types."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str]) -> None:
        self._function, self._fastmath = function, fastmath
        self._numpy_form: Callable[..., Any] | None = None
        self._dispatcher: Any = None
        self._interpreted: Callable[..., Any] | None = None
        self._run: Callable[..., Any] | None = None
        update_wrapper(self, function)
        JIT_FUNCTIONS.append(self)

    def __call__(self, *args: Any) -> Any:
        run = self._run
        if run is None:
            run = self._prepare(args)
        try:
            return run(*args)
        except Exception as error:
            if not is_compiler_error(error):
                raise
            _compiler.report_failure(self, run, error)  # nothing has been computed yet
        return self(*args)

    def without_numba(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the NumPy implementation of this function, which runs if numba is not available.

        It is optional, but loops over all entries of a matrix should have one.
        """
        self._numpy_form = function
        return function

    @property
    def signatures(self) -> list[Any]:
        """The argument types that the function has been compiled for in this process."""
        return list(getattr(self._dispatcher, "signatures", []))

    @property
    def files(self) -> list[Path]:
        """The cache files of the function, one per signature; [] without a writable folder."""
        code = self._function.__code__
        name = f"{Path(code.co_filename).stem}.{self._function.__qualname__}"
        folder = cache_folder(self.dispatcher())
        files = Path(folder).glob(f"{name}-{code.co_firstlineno}.*.nbc") if folder else ()
        return sorted(files)

    @property
    def name(self) -> str:
        """The qualified name of the function, with its module."""
        return f"{self._function.__module__}.{self._function.__qualname__}"

    def dispatcher(self) -> Any:
        """Return the function object of numba, which compiles; None without numba."""
        with _lock:
            if self._dispatcher is None and _compiler.is_available():
                copy = own_copy(self._function)
                dispatcher = _compiler.dispatcher(copy, self._fastmath)
                # A function can call itself.  Two functions that call each other end here with a
                # RecursionError; numba would crash when it reads them from its cache.
                substitute_names(
                    copy, lambda v: dispatcher if v is self else _compiler.compiled_form(v)
                )
                self._dispatcher = dispatcher
            return self._dispatcher

    def interpreted(self) -> Callable[..., Any]:
        """Return the Python function that replaces the compiled one in the interpreter."""
        with _lock:
            if self._interpreted is None:
                self._interpreted = copy = interpreted_copy(self._numpy_form or self._function)
                substitute_names(copy, interpreted_form)
            return self._interpreted

    def interpret(self) -> Callable[..., Any]:
        """Run this function in the interpreter from now on; return its new form."""
        self._run = as_entry(self.interpreted())
        return self._run

    def discard(self) -> None:
        """Discard the compiled function, so that the next call compiles it again."""
        self._dispatcher = self._run = None

    def _prepare(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the function that a call executes, and store it."""
        with _lock:
            if self._run is not None:  # another thread has stored it
                return self._run
            dispatcher: Callable[..., Any] | None = self.dispatcher()
            if dispatcher is None:
                return self.interpret()
            _compiler.prepare(self, args)
            self._run = dispatcher
            return dispatcher


def jit(*fastmath: str) -> Callable[[Callable[..., Any]], JitFunction]:
    """Return a decorator that compiles a function at its first call.

    `fastmath` lists LLVM fast-math flags.  "contract", which fuses a * b + c, is always enabled.
    """
    return lambda function: JitFunction(function, {"contract", *fastmath})


def fmin(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, or the other one if one is NaN, like `numpy.fmin`.

    In compiled functions it becomes an LLVM instruction that can be vectorised, whereas the builtin
    `min` prevents vectorisation.
    """
    return b if b < a or a != a else a


def fmax(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, or the other one if one is NaN; see `fmin`."""
    return b if b > a or a != a else a


def bitcast_int(x: Any) -> Any:
    """Return the bits of a floating-point number as an integer of the same width.

    NumPy's `view` does the same, but numba takes several times as long to compile it.
    """
    return np.asarray(x).view(f"i{np.asarray(x).itemsize}")[()]


def bitcast_float(bits: Any) -> Any:
    """Return the floating-point number that has the bits of an integer (undoes `bitcast_int`)."""
    return np.asarray(bits).view(f"f{np.asarray(bits).itemsize}")[()]


def interpreted_form(value: Any) -> Any:
    """Return the replacement of a global value in a function that runs in the interpreter."""
    return value.interpreted() if isinstance(value, JitFunction) else as_double(value)


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


class _Compiler:
    """numba, imported at the first use, with those hooks that its version has."""

    def __init__(self) -> None:
        self._numba: Any = None
        self._is_loaded = self._has_events = self._has_warned = False
        self._has_cache = True
        # Replacements of `fmin` and so on in compiled functions; None while LLVM instructions are
        # used, which needs no replacement.
        self._plain: dict[Callable[..., Any], Any] | None = None

    def is_available(self) -> bool:
        """Import numba at the first call; return False and warn once if that is not possible."""
        with _lock:
            if not self._is_loaded:
                self._load()
                self._is_loaded = True
        return self._numba is not None

    def _load(self) -> None:
        with _compile_clock:
            try:
                import numba
            except Exception as error:  # an unsupported Python or NumPy can raise any exception
                self._warn(f"numba is not available ({type(error).__name__}: {error})")
                return
            if getattr(numba.config, "DISABLE_JIT", False):  # the user chose the interpreter
                return
            self._has_events = listen_to_compiler(_on_compile_start, _on_compile_end) is None
            if lower_scalar_functions(numba, _SCALAR_FUNCTIONS) is not None:
                self._plain = plain_scalar_functions(numba, _SCALAR_FUNCTIONS)
            refresh_target()
            self._numba = numba

    def dispatcher(self, function: Callable[..., Any], fastmath: set[str]) -> Any:
        """Return numba's dispatcher of a function, which compiles it at the first call."""
        with _compile_clock:
            options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
            if not self._has_cache:
                return self._numba.njit(**options)(function)
            try:
                dispatcher = self._numba.njit(cache=True, **options)(function)
            except RuntimeError:  # without a writable cache folder, compile in every process
                dispatcher = self._numba.njit(**options)(function)
            read_layered_cache(function, dispatcher)
            return dispatcher

    def compiled_form(self, value: Any) -> Any:
        """Return the replacement of a global value in a compiled function."""
        if isinstance(value, JitFunction):
            return value.dispatcher()
        if self._plain is not None and any(value is f for f in _SCALAR_FUNCTIONS):
            return self._plain[value]
        return value

    def prepare(self, function: JitFunction, args: tuple[Any, ...]) -> None:
        """Compile now and report the time, if numba does not report compilations."""
        if self._has_events:
            return
        dispatcher = function.dispatcher()
        with _compile_clock:
            try:
                dispatcher.compile(tuple(map(self._numba.typeof, args)))
                is_compiled = not sum(dispatcher.stats.cache_hits.values())
            except Exception:  # the call itself will raise the error, or compile
                return
        if is_compiled:
            _report_compilation(function.name)

    def report_failure(
        self, function: JitFunction, run: Callable[..., Any], error: BaseException
    ) -> None:
        """After an error of the compiler, switch to a fallback.

        The fallbacks are, in this order: no cache, no LLVM instructions, and the interpreter for
        this function.  `run` is the form of the function that failed.
        """
        with _lock:
            if function._run is not run:  # another thread has reported the failure of this form
                return
            line = str(error).strip().partition("\n")[0]
            reason = f"{type(error).__name__}: {line}"
            if self._has_cache and is_cache_error(error):
                self._has_cache = False
                self._compile_again()
                warn_caller(
                    f"numba cannot use its cache of compiled loops ({reason}), so that loops are "
                    f"compiled again in every process. If the disk is full, free space; otherwise "
                    f"delete the files *.nbi and *.nbc in the folder NUMBA_CACHE_DIR or, if it is "
                    f"not set, in the __pycache__ folders of mercer"
                )
            elif self._plain is None:
                self._plain = plain_scalar_functions(self._numba, _SCALAR_FUNCTIONS)
                self._compile_again()
            else:
                function.interpret()
                self._warn(f"numba could not compile {function.name} ({reason})")

    def _compile_again(self) -> None:
        """Discard all compiled functions, because the options of the compiler have changed."""
        for function in JIT_FUNCTIONS:
            function.discard()

    def _warn(self, problem: str) -> None:
        """Warn once per process that functions run in the interpreter."""
        if not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"{problem}, so that loops run as Python code: results are the same up to "
                f"rounding, but a fit can take hundreds of times as long. Install a version of "
                f"numba that supports this Python and NumPy: pip install -U numba; see the page "
                f"'Installation' of the documentation"
            )


_SCALAR_FUNCTIONS = ScalarFunctions(fmin, fmax, bitcast_int, bitcast_float)
_compiler = _Compiler()


def has_compiler() -> bool:
    """Return True if numba is installed and enabled; imports it, and warns once if it is not."""
    return _compiler.is_available()


def _on_compile_start(function: Callable[..., Any]) -> None:
    _compile_clock.__enter__()
    if function.__module__.startswith("mercer."):
        _report_compilation(f"{function.__module__}.{function.__qualname__}")


def _on_compile_end() -> None:
    _compile_clock.__exit__()


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
