"""A cache for numba that also reads compiled code from read-only folders.

numba uses only the first cache folder that it can write to.  A container image is often built by
one user and run by another user who cannot write to its cache folder.  Without this cache, numba
would then compile all functions again.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["LayeredCache", "layered_cache"]


class LayeredCache:
    """A numba cache that looks up code in read-only caches first and writes to its own cache."""

    def __init__(self, own: Any, others: list[Any]) -> None:
        self._own, self._others = own, others

    @property
    def cache_path(self) -> str | None:
        return self._own.cache_path

    def load_overload(self, sig: Any, context: Any) -> Any:
        for cache in (*self._others, self._own):
            if (overload := cache.load_overload(sig, context)) is not None:
                return overload
        return None

    def save_overload(self, sig: Any, result: Any) -> None:
        self._own.save_overload(sig, result)

    def flush(self) -> None:
        self._own.flush()


def layered_cache(function: Any, own: Any) -> Any:
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
    return LayeredCache(own, others) if others else own
