"""A scene that is read from a file, and read again when the file changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._scene import Scene

__all__ = ["WatchedScene", "file_stamp"]

_MISSING = "missing"  # `file_stamp` of a file that does not exist


def file_stamp(path: Path | None) -> Any:
    """Return a value that changes when the file changes; None if `path` is None."""
    if path is None:
        return None
    try:
        stat = os.stat(path)
    except OSError:
        return _MISSING
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


class WatchedScene:
    """The scene that new pages show, and the file from which it was read.

    Parameters
    ----------
    scene : function
        Returns the scene in memory.
    path : Path, optional
        The file that the scene was read from.
    read : function, optional
        Reads the file again and returns the new scene.
    stamp : optional
        The value of `file_stamp(path)` before the file was read, so that changes since then are
        detected.
    """

    def __init__(
        self,
        scene: Callable[[], Scene],
        path: Path | None = None,
        read: Callable[[], Scene] | None = None,
        stamp: Any = None,
    ) -> None:
        self._scene, self.path, self._read = scene, path, read
        self.stamp = file_stamp(path) if stamp is None else stamp
        self._lock = threading.Lock()

    @property
    def scene(self) -> Scene:
        """The scene that was read most recently."""
        return self._scene()

    @property
    def can_read(self) -> bool:
        """Whether the file can be read again."""
        return self._read is not None

    @property
    def is_gone(self) -> bool:
        """Whether the file no longer exists."""
        return self.path is not None and file_stamp(self.path) == _MISSING

    def changed_since(self, stamp: Any) -> bool:
        """Return True if the file has changed since `file_stamp` returned this stamp."""
        return self.path is not None and file_stamp(self.path) != stamp

    def refresh(self) -> bool:
        """Read the file again if it has changed since it was last read; return True if so."""
        with self._lock:
            now = file_stamp(self.path)
            if self._read is None or now in (self.stamp, _MISSING):
                return False
            scene = self._read()
            self._scene, self.stamp = (lambda: scene), now
            return True
