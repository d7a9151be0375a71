"""Start and stop the explorer's web server, which listens on the loopback interface only."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._desk import Desk
from ._scene import Scene
from ._watched import WatchedScene

if TYPE_CHECKING:
    from tornado.ioloop import IOLoop

    from ._http import ExplorerApplication

__all__ = ["HOST", "Serving", "load_in_notebook", "require_panel", "serve"]

HOST = "127.0.0.1"


class Serving:
    """A web server in a daemon thread: `start()`, `wait()`, `stop()`.

    The event loop is created in the thread that runs it.  The calling thread may have a running
    loop already, for example that of a notebook.

    Attributes
    ----------
    origin : str
        "http://127.0.0.1:PORT".
    url : str
        The address of the page, with the token that the server requires.
    """

    def __init__(self, application: ExplorerApplication, listener: socket.socket, token: str):
        self._application, self._listener = application, listener
        self.origin = f"http://{HOST}:{listener.getsockname()[1]}"
        self.url = f"{self.origin}/?token={token}"
        self._loop: IOLoop | None = None
        self._error: BaseException | None = None
        self._ready, self._done = threading.Event(), threading.Event()

    def start(self) -> Serving:
        """Start the thread, and return when the server answers."""
        threading.Thread(target=self._run, name="mercer-explorer", daemon=True).start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self

    @property
    def is_busy(self) -> bool:
        """Whether a fit or another computation is running for a page, open or closed."""
        return any(desk.is_busy for desk in list(self._application.desks))

    def wait(self) -> None:
        """Wait until the server is stopped, or interrupted by Ctrl-C."""
        try:
            while not self._done.wait(0.5):
                pass
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the server."""
        if self._loop is not None and not self._done.is_set():
            self._loop.add_callback(self._loop.stop)
            self._done.wait(10)
        self._listener.close()

    def _run(self) -> None:
        from tornado.ioloop import IOLoop

        from ._http import run_server

        try:
            loop = self._loop = IOLoop()
            loop.add_callback(self._ready.set)
            run_server(self._application, [self._listener], loop)
            loop.close(all_fds=True)
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()
            self._done.set()


def serve(
    scene: Callable[[], Scene],
    *,
    port: int = 0,
    title: str = "mercer",
    reread: Callable[[], Scene] | None = None,
    watched: Path | None = None,
    stamp: Any = None,
) -> Serving:
    """Return a server that shows a scene to each page that is opened.

    The server has two routes, the page and its websocket, and both require the token that is part
    of `Serving.url`.  Requests from other web pages are refused.

    Parameters
    ----------
    scene : function
        Returns the scene.
    port : int, default=0
        0 stands for any free port.
    title : str
        Title of the page.
    reread : function, optional
        Reads the scene again after its file has changed.
    watched : Path, optional
        The file that the scene was read from.
    stamp : optional
        `file_stamp(watched)` from before the file was read; by default the stamp of now.

    Returns
    -------
    Serving
        The server, not started yet.
    """
    _require("tornado")
    from ._http import ExplorerApplication

    source = WatchedScene(scene, watched, reread, stamp)
    listener = _listen(port)
    names = [f"{host}:{listener.getsockname()[1]}" for host in (HOST, "localhost")]
    token = secrets.token_urlsafe(24)
    connect = lambda send: Desk(source.scene, send, source)  # noqa: E731
    return Serving(ExplorerApplication(names, token, title, connect), listener, token)


def require_panel() -> Any:
    """Return the module panel, or raise an ImportError that says how to install it."""
    return _require("panel")


def load_in_notebook() -> None:
    """Load the scripts of Panel into a notebook once, from this machine and not the network."""
    panel = require_panel()
    if not panel.extension._loaded:
        panel.extension(inline=True)


def _require(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"the explorer needs {name}, which is not installed; install it with: "
            f"pip install 'mercer[explore]'. A page in one file, explorer.save(path), does not "
            f"need it"
        ) from error


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback interface; 0 is any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # on Windows, this would allow two servers on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if error.errno == errno.EADDRINUSE else "needs more permissions"
        raise ValueError(
            f"port {port} {why} - usually by another explorer that is still running - stop that "
            f"one, or choose another port: --port {port + 1 if port < 65535 else 0}, or 0 for any "
            f"free one"
        ) from None
    return listener
