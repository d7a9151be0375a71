"""Jobs: computations in the background, with progress, and cancelled by newer requests or the user.

Jobs run in lanes.  A lane runs one job at a time, in the order of their submission; jobs of
different lanes run at the same time, so that a slow column does not delay a pre-image.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from typing import Any

from ..._core import capture_progress, one_blas_thread, resource_scope, thread_count

ANNOUNCE_SECONDS = 1.0  # jobs that take longer are shown on the page
_REPORT_SECONDS = 0.2  # minimum time between two messages about the progress of a job
_MAX_SMALL_POINTS = 2000  # with at most this many points, a second thread hardly saves time

_log = logging.getLogger("mercer.app.explorer")
_numbers = count(1)


class Cancelled(Exception):
    """Raised in a job that was cancelled, by a newer request or by the user."""


class Job:
    """A computation in the background.

    Parameters
    ----------
    task : function
        Called without arguments.  Computations inside it stop at their next step after `cancel`.
    title : str
        The name of the job on the page.
    key : str
        Identifies the result of the job; two jobs with the same key compute the same thing.
    request : dict, optional
        The request that the job answers.
    needs_models : bool, default=False
        Whether the result becomes useless when the embeddings change.
    """

    def __init__(
        self,
        task: Callable[[], None],
        title: str = "",
        key: str = "",
        request: dict | None = None,
        *,
        needs_models: bool = False,
    ) -> None:
        self.id, self.title, self.key = next(_numbers), title, key
        self.request, self.needs_models = request or {}, needs_models
        self.is_cancelled = False
        self.has_replied = False  # whether it has sent a reply, to the connection at that time
        self._thread: int | None = None  # the thread that runs the job
        self._task = task
        self._state: dict[str, Any] = {"text": "waiting", "fraction": None}
        self._announce: Callable[[dict[str, Any]], None] = lambda message: None
        self._lock = threading.RLock()
        self._is_visible, self._is_done, self._reported_at = False, False, 0.0
        self._threads = 1
        self._timer: threading.Timer | None = None

    @property
    def is_current(self) -> bool:
        """Whether the calling thread runs this job."""
        return self._thread == threading.get_ident()

    def checkpoint(self) -> None:
        """Raise `Cancelled` if the job was cancelled."""
        if self.is_cancelled:
            raise Cancelled

    def report(self, text: str) -> None:
        """Store the progress, a message or a `ProgressStep`, and show it at intervals."""
        self.checkpoint()
        done, total = getattr(text, "done", None), getattr(text, "total", None)
        with self._lock:
            self._state = {"text": str(text), "fraction": done / total if done and total else None}
            if self._is_visible and time.monotonic() > self._reported_at + _REPORT_SECONDS:
                self.show()

    def show(self) -> None:
        """Show the job on the page, unless it is done."""
        with self._lock:
            if not self._is_done:
                self._is_visible, self._reported_at = True, time.monotonic()
                state = {"text": "cancelling"} if self.is_cancelled else {}
                message = {"id": self.id, "title": self.title} | self._state | state
                self._announce(message | {"done": False})

    def show_if_visible(self) -> None:
        """Show the job again, for a page that has lost it."""
        if self._is_visible:
            self.show()

    def cancel(self) -> None:
        """Stop the job at its next step."""
        self.is_cancelled = True
        self.show_if_visible()

    def prepare(self, announce: Callable[[dict[str, Any]], None], threads: int) -> None:
        """Set the number of threads, and start the clock after which `announce` shows the job."""
        self._announce, self._threads = announce, threads
        self._timer = threading.Timer(ANNOUNCE_SECONDS, self.show)
        self._timer.daemon = True
        self._timer.start()

    def run(self) -> None:
        """Run the task; an exception is written to the log."""
        self._thread = threading.get_ident()
        with self._lock:
            self._state["text"] = "running"
        try:
            with ExitStack() as stack:
                stack.enter_context(resource_scope(n_threads=self._threads))
                stack.enter_context(capture_progress(self.report, self.checkpoint))
                if self._threads == 1:
                    stack.enter_context(one_blas_thread)
                self.checkpoint()
                self._task()
        except Cancelled:
            pass
        except Exception as error:  # the next job must still run
            _log.warning("%s failed: %s", self.title or "a job", type(error).__name__)
        finally:
            self.finish()

    def finish(self) -> None:
        """Remove the job from the page."""
        with self._lock:
            self._is_done = True
            if self._is_visible:
                self._announce({"id": self.id, "title": self.title, "done": True})
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # it refers to this job, which may refer to a large scene


class Jobs:
    """The jobs of one page.

    The thread of a lane ends when the lane has no more jobs, so that idle pages have no threads.
    `concurrent.futures.ThreadPoolExecutor` is not suitable, because the interpreter waits for its
    threads at exit, so Ctrl-C would not end the process while a job is running.

    Parameters
    ----------
    announce : function
        Takes a dict that describes a job that has been running for longer than `ANNOUNCE_SECONDS`:
        its id, title, text, fraction (None if unknown), and whether it is done.
    """

    def __init__(self, announce: Callable[[dict[str, Any]], None]) -> None:
        self._announce = announce
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Job]] = {}
        self._running: dict[str, Job | None] = {}
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a job is running."""
        return bool(self._running)

    def submit(self, lane: str, job: Job, n_points: int = 0) -> None:
        """Run a job in a lane; after `close`, do nothing.

        Jobs leave one processor to the answers of other lanes; with few points (`n_points`), they
        use one thread.
        """
        threads = 1 if n_points <= _MAX_SMALL_POINTS else max(1, thread_count() - 1)
        with self._lock:
            if self._is_closed:
                return
            job.prepare(self._announce, threads)
            self._waiting.setdefault(lane, deque()).append(job)
            if lane in self._running:
                return
            self._running[lane] = None
        name = f"mercer-{lane}"
        threading.Thread(target=self._run_lane, args=(lane,), name=name, daemon=True).start()

    def _run_lane(self, lane: str) -> None:
        while True:
            with self._lock:
                if not self._waiting[lane]:
                    del self._running[lane], self._waiting[lane]
                    return
                job = self._running[lane] = self._waiting[lane].popleft()
            job.run()

    def find(self, condition: Callable[[Job], bool]) -> list[Job]:
        """Return the running and waiting jobs that satisfy a condition and are not cancelled."""
        with self._lock:
            every = [job for job in self._running.values() if job is not None]
            every += [job for lane in self._waiting.values() for job in lane]
        return [job for job in every if not job.is_cancelled and condition(job)]

    def cancel(self, condition: Callable[[Job], bool]) -> list[Job]:
        """Cancel the jobs that satisfy a condition, and return them.

        Waiting jobs are removed; running jobs stop at their next step.
        """
        jobs = self.find(condition)
        for job in jobs:
            job.cancel()
        with self._lock:
            removed = [job for lane in self._waiting.values() for job in lane if job in jobs]
            for lane in self._waiting.values():
                for job in [job for job in lane if job in removed]:
                    lane.remove(job)
        for job in removed:
            job.finish()
        return jobs

    def show_again(self) -> None:
        """Show the jobs that were visible, for a page that has lost them."""
        for job in self.find(lambda job: True):
            job.show_if_visible()

    def close(self) -> None:
        """Cancel all jobs, and accept no more."""
        with self._lock:
            self._is_closed = True
        self.cancel(lambda job: True)
