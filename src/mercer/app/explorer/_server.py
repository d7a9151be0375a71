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

from ._controller import Controller
from ._scene import Scene, WatchedScene

if TYPE_CHECKING:
    from tornado.ioloop import IOLoop

    from ._http import ExplorerApplication

HOST = "127.0.0.1"  # loopback interface, to which other computers cannot connect


class ExplorerServer:
    """A web server in a daemon thread, with the methods `start`, `wait` and `stop`.

    The event loop is created in the thread that runs it, because the calling thread may already
    have a running loop, for example in a notebook.

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

    def start(self) -> ExplorerServer:
        """Start the thread, and return when the server is ready."""
        threading.Thread(target=self._run, name="mercer-explorer", daemon=True).start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self

    @property
    def is_busy(self) -> bool:
        """Whether a fit or another computation is running for a page, open or closed."""
        return any(controller.is_busy for controller in list(self._application.controllers))

    def wait(self) -> None:
        """Wait until the server is stopped or the user presses Ctrl-C."""
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
    reload: Callable[[], Scene] | None = None,
    watched: Path | None = None,
    stamp: Any = None,
) -> ExplorerServer:
    """Return a server for the explorer; it is not started yet.

    The server has two routes, the page and its websocket, and both require the token that is part
    of `ExplorerServer.url`.  Requests from other web pages are rejected.

    Parameters
    ----------
    scene : function
        Returns the scene that a new page shows.
    port : int, default=0
        Port of the server; 0 means any free port.
    title : str
        Title of the page.
    reload : function, optional
        Reads the file again and returns the new scene.
    watched : Path, optional
        The file that the scene was read from.
    stamp : optional
        The value of `file_stamp(watched)` before the file was read; by default the current one.

    Returns
    -------
    ExplorerServer
        The server; call `start` to run it.
    """
    _require("tornado")
    from ._http import ExplorerApplication

    source = WatchedScene(scene, watched, reload, stamp)
    listener = _listen(port)
    names = [f"{host}:{listener.getsockname()[1]}" for host in (HOST, "localhost")]
    token = secrets.token_urlsafe(24)
    connect = lambda send: Controller(source.scene, send, source)  # noqa: E731
    return ExplorerServer(ExplorerApplication(names, token, title, connect), listener, token)


def require_panel() -> Any:
    """Return the module panel, or raise an ImportError with instructions to install it."""
    return _require("panel")


def load_in_notebook() -> None:
    """Load the scripts of Panel into the notebook once, from local files."""
    panel = require_panel()
    if not panel.extension._loaded:
        panel.extension(inline=True)


def _require(name: str) -> Any:
    """Import a module that the extra `explore` installs; raise an ImportError if missing."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"the explorer needs {name}, which is not installed; install it with: "
            f"pip install 'mercer[explore]'. Without it, explorer.save(path) can still "
            f"write a self-contained page"
        ) from error


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback interface; 0 means any free port."""
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
        why = (
            "is in use, usually by another explorer; stop that explorer, or"
            if error.errno == errno.EADDRINUSE
            else "requires administrator rights;"
        )
        raise ValueError(
            f"port {port} {why} choose another port: --port {port + 1 if port < 65535 else 0}, or "
            f"0 for any free port"
        ) from None
    return listener
