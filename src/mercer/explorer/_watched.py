"""A scene that was read from a file, and is read again when the file has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._scene import Scene

__all__ = ["WatchedScene", "file_stamp"]

_GONE = "gone"  # the stamp of a file that does not exist


def file_stamp(path: Path | None) -> Any:
    """Return a value that differs after a file has changed; None without a file."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return _GONE
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class WatchedScene:
    """The scene that all pages of a server start with.

    Parameters
    ----------
    scene : function
        Returns the scene as it is in memory.
    path : Path, optional
        The file that it was read from.
    read : function, optional
        Reads the file again and returns the new scene.
    stamp : optional
        `file_stamp(path)` from before the file was read, so that a change in the meantime is seen.
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
        """The scene that was read last."""
        return self._scene()

    @property
    def can_read(self) -> bool:
        """Whether the file can be read again."""
        return self._read is not None

    @property
    def is_gone(self) -> bool:
        """Whether the file does not exist at present."""
        return self.path is not None and file_stamp(self.path) == _GONE

    def changed_since(self, stamp: Any) -> bool:
        """Return True if the file is not the one that had this stamp."""
        return self.path is not None and file_stamp(self.path) != stamp

    def refresh(self) -> bool:
        """Read the file again if it has changed since the last reading; return True if so."""
        with self._lock:
            now = file_stamp(self.path)
            if self._read is None or now in (self.stamp, _GONE):
                return False
            scene = self._read()
            self._scene, self.stamp = (lambda: scene), now
            return True
