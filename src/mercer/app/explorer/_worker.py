"""A background thread that runs tasks one after the other."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Worker"]

_log = logging.getLogger("mercer.app.explorer")


class Worker:
    """Run tasks in order, in one daemon thread that starts with the first task.

    `concurrent.futures.ThreadPoolExecutor` is not suitable, because the interpreter waits for its
    threads at exit, so Ctrl-C would not end the process while a task is running.  If a task raises
    an exception, one line is written to the log.

    Parameters
    ----------
    name : str
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None]
        self._tasks = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._running = False

    @property
    def is_busy(self) -> bool:
        """Whether a task is running."""
        return self._running

    def submit(self, task: Callable[..., Any], *args: Any) -> None:
        """Queue the call `task(*args)`; after `close`, do nothing."""
        with self._lock:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._tasks.put((task, args))

    def close(self, *, drop: bool = True) -> None:
        """End the thread after the running task.

        If `drop` is True, queued tasks are discarded; otherwise they are run first.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            while drop and not self._tasks.empty():
                self._tasks.get()
            self._tasks.put(None)

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended; call `close` first."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while (call := self._tasks.get()) is not None:
            task, args = call
            self._running = True
            try:
                task(*args)
            except Exception as error:  # the next task must still run
                _log.warning("%s failed: %s", self._name, type(error).__name__)
            finally:
                self._running = False
            del call, task, args  # a task may refer to a large scene; release it before waiting
