"""All uses of numba and llvmlite beyond their documented interface.

Each function below relies on names that a release of numba may change without notice, and has a
fallback that does not.  Only this module may import from `numba.core` and from llvmlite.

==========================  ==========================================================
function                    if it fails
==========================  ==========================================================
`listen_to_compiler`        `JitFunction` measures its first compilation itself
`lower_scalar_functions`    `plain_scalar_functions`, which uses `numba.extending`
`read_layered_cache`        numba's own cache: code is read from one folder only
`cache_folder`              the files of the cache are not listed
`is_cache_error`            the error counts as one of the compiler
`refresh_target`            the first compilation includes this step
==========================  ==========================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class ScalarFunctions(NamedTuple):
    """The functions of numbers that have a faster or shorter form in compiled code."""

    fmin: Callable[..., Any]
    fmax: Callable[..., Any]
    bitcast_int: Callable[..., Any]
    bitcast_float: Callable[..., Any]


def listen_to_compiler(
    on_start: Callable[[Any], None], on_end: Callable[[], None]
) -> BaseException | None:
    """Call on_start(Python function) before each compilation by numba, and on_end() afterwards.

    Returns None, or the error if numba has no such events.
    """
    try:
        from numba.core import event

        class Compilations(event.Listener):
            def on_start(self, event: Any) -> None:
                on_start(event.data["dispatcher"].py_func)

            def on_end(self, event: Any) -> None:
                on_end()

        event.register("numba:compile", Compilations())
    except Exception as error:  # another version of numba may raise any exception
        return error
    return None


def lower_scalar_functions(numba: Any, functions: ScalarFunctions) -> BaseException | None:
    """Compile `functions` to single LLVM instructions.

    Returns None, or the error if numba or llvmlite do not have the necessary functions.
    """
    try:
        from llvmlite import ir
        from numba.extending import lower_builtin, type_callable

        function_type, types = ir.FunctionType, numba.types
        for function, name in ((functions.fmin, "llvm.minnum"), (functions.fmax, "llvm.maxnum")):
            type_callable(function)(lambda context: lambda a, b: context.unify_types(a, b))

            def lowered(context: Any, builder: Any, sig: Any, args: Any, name: str = name) -> Any:
                pairs = zip(args, sig.args, strict=True)
                values = [context.cast(builder, value, t, sig.return_type) for value, t in pairs]
                kind = values[0].type
                binary = function_type(kind, [kind, kind])
                return builder.call(builder.module.declare_intrinsic(name, [kind], binary), values)

            lower_builtin(function, types.Float, types.Float)(lowered)
        to_int = {types.float64: types.int64, types.float32: types.int32}
        to_float = {integer: real for real, integer in to_int.items()}
        for bitcast, table in (
            (functions.bitcast_int, to_int),
            (functions.bitcast_float, to_float),
        ):
            type_callable(bitcast)(lambda context, get=table.get: get)  # type: ignore[misc]

            def cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return builder.bitcast(args[0], context.get_value_type(sig.return_type))

            lower_builtin(bitcast, types.Number)(cast)
    except Exception as error:
        return error
    return None


def plain_scalar_functions(numba: Any, functions: ScalarFunctions) -> dict[Callable[..., Any], Any]:
    """Return compiled functions that replace `functions`, by the documented interface only.

    LLVM vectorises loops that contain them less often, and they take longer to compile.
    """
    from numba.extending import overload

    types = numba.types
    to_int = {
        types.float64: lambda x: np.float64(x).view(np.int64),
        types.float32: lambda x: np.float32(x).view(np.int32),
    }
    to_float = {
        types.int64: lambda x: np.int64(x).view(np.float64),
        types.int32: lambda x: np.int32(x).view(np.float32),
    }

    def bitcast(forms: dict[Any, Callable[..., Any]]) -> Callable[..., Any]:
        def function(x: Any) -> Any:
            raise NotImplementedError  # never runs: numba compiles one of `forms` instead

        # numba compares the parameters of both functions, including annotations: use a lambda.
        overload(function)(lambda x: forms.get(x))
        return function

    return {
        functions.fmin: numba.njit(functions.fmin),
        functions.fmax: numba.njit(functions.fmax),
        functions.bitcast_int: bitcast(to_int),
        functions.bitcast_float: bitcast(to_float),
    }


def refresh_target() -> None:
    """Load the compiler now, so that the time it takes counts as compilation."""
    try:
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()
    except Exception:
        return


def is_compiler_error(error: BaseException) -> bool:
    """Return True if the compiler raised the error, so that the function has not run.

    An error in compiled code has no stack frames in numba and llvmlite.
    """
    return any(name.partition(".")[0] in ("numba", "llvmlite") for name in _modules_of(error))


def is_cache_error(error: BaseException) -> bool:
    """Return True if reading or writing numba's cache failed, for example on a full disk."""
    return "numba.core.caching" in _modules_of(error)


def _modules_of(error: BaseException) -> list[str]:
    """Return the names of the modules that define an error, and in which it was raised."""
    modules = [type(error).__module__]
    traceback = error.__traceback__
    while traceback is not None:
        modules.append(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next
    return modules


# --- A cache that also reads compiled code from read-only folders.


class _LayeredCache:
    """A numba cache that looks up code in read-only caches first and writes to its own cache."""

    def __init__(self, own: Any, others: list[Any]) -> None:
        self._own, self._others = own, others

    def load_overload(self, sig: Any, context: Any) -> Any:
        for source in (*self._others, self._own):
            if (overload := source.load_overload(sig, context)) is not None:
                return overload
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)  # cache_path, save_overload, flush, ...


def read_layered_cache(function: Callable[..., Any], dispatcher: Any) -> BaseException | None:
    """Let a dispatcher also read `NUMBA_CACHE_DIR` and the `__pycache__` next to the source.

    Writable folders are skipped, because the dispatcher's own cache uses one of them.  Returns
    None, or the error if numba's caches have another structure.
    """
    try:
        from numba.core.caching import FunctionCache

        def require_read_only(self: Any) -> None:
            folder = self.get_cache_path()
            if os.access(folder, os.W_OK) or not os.access(folder, os.R_OK | os.X_OK):
                raise OSError("the cache folder is writable, or cannot be read")

        own, implementation = dispatcher._cache, FunctionCache._impl_class
        others = []
        for locator in implementation._locator_classes[:2]:
            kinds = [type(locator.__name__, (locator,), {"ensure_cache_path": require_read_only})]
            read_only = type(
                implementation.__name__, (implementation,), {"_locator_classes": kinds}
            )
            try:
                others.append(
                    type("Reader", (FunctionCache,), {"_impl_class": read_only})(function)
                )
            except RuntimeError:  # the folder is not a readable, read-only folder
                continue
        if others:
            dispatcher._cache = _LayeredCache(own, others)
    except Exception as error:
        return error
    return None


def cache_folder(dispatcher: Any) -> str | None:
    """Return the folder to which a dispatcher writes compiled code, or None."""
    try:
        folder: str | None = dispatcher.stats.cache_path
    except Exception:
        return None
    return folder
