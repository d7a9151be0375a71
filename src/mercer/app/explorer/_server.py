"""The web server of the explorer: two routes, and access checks for each request.

    GET /?token=...    the page, including the script and the style of the view
    GET /ws?token=...  its websocket: requests as JSON, replies as the bytes of `pack`

The server listens on the loopback interface only.  Any web page that is open in the same browser
can nevertheless send requests to it, and so can other users of the computer.
`ExplorerApplication.refusal` therefore rejects requests by default:

* The Host header must be the name of this server, which prevents DNS rebinding (a foreign name that
  resolves to 127.0.0.1).
* An Origin header, if there is one, must be the origin of this server.
* Browsers describe a request by Sec-Fetch headers.  A request from another site is accepted only if
  it opens the page as a document, for example from a link.  It is rejected in a frame, and as a
  script, an image or the target of `fetch`.
* Both routes require the token, which only the printed address contains.  It is not stored in a
  cookie, because browsers send cookies of 127.0.0.1 to the servers on all of its ports.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ._controller import Controller
from ._scene import FileStamp, Scene, WatchedScene
from ._serialize import missing_package, served_page

try:
    from tornado.httpserver import HTTPServer
    from tornado.ioloop import IOLoop, PeriodicCallback
    from tornado.web import Application, RequestHandler
    from tornado.websocket import WebSocketClosedError, WebSocketHandler
except ImportError as error:
    raise missing_package("tornado") from error

HOST = "127.0.0.1"  # loopback interface, to which other computers cannot connect
_METHODS = {"/": ("GET", "HEAD"), "/ws": ("GET",)}  # allowed methods of each route
_MAX_HEADERS, _MAX_BODY = 2**14, 2**10  # limits of a request in bytes; no route reads a body
_MAX_MESSAGE = 20 * 2**20  # limit in bytes for a websocket message; see also controls.js
_WATCH_PERIOD = 2000  # milliseconds between checks whether the file has changed
_KEEP_SECONDS = 600.0  # the models of a page whose connection was lost are kept this long
_MAX_KEPT_PAGES = 8  # at most this many such pages are kept
_PAGE_CLOSED = (1000, 1001)  # close codes of a websocket that the page closed deliberately
_FLUSH_SECONDS = 0.05  # time to send the last messages before the server stops
_SERVER_STOPPED = 4000  # close code of a websocket if the server is stopped; see also served.js
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_NO_TOKEN = (
    "This address does not contain the token of the explorer.\n\n"
    "Use the complete address, with ?token=..., that `mercer explore` printed in the terminal, or "
    "explorer.show().url in Python. The token changes whenever the explorer is started.\n"
)

_log = logging.getLogger("mercer.app.explorer")


class ExplorerApplication(Application):
    """The routes of the explorer, and the access checks that precede them.

    Parameters
    ----------
    names : list of str
        Host names with ports under which the server can be reached.
    token : str
        The secret in the address of the page.
    title : str
        The title of the page.
    connect : function
        Returns a `Controller` for a new page.
    """

    def __init__(
        self,
        names: list[str],
        token: str,
        title: str,
        connect: Callable[[], Controller],
    ) -> None:
        super().__init__(
            [("/", PageHandler), ("/ws", SocketHandler)],
            default_handler_class=RefusalHandler,
            default_handler_args={"status": 404, "reason": "not found"},
            log_function=lambda handler: None,
            websocket_max_message_size=_MAX_MESSAGE,
        )
        self.names, self.title, self.connect = names, title, connect
        self._token = token.encode()
        self.sockets: set[SocketHandler] = set()
        self.is_stopping = False
        # The set includes the controllers of closed pages, which may still be computing.
        self.controllers: weakref.WeakSet[Controller] = weakref.WeakSet()
        # The controllers of pages whose connection was lost, and the timers that close them.
        self._kept: dict[str, tuple[Controller, object]] = {}

    def controller(self, socket: SocketHandler) -> Controller:
        """Return the controller of a page that was reconnected, or a new one."""
        if socket.page:
            if socket.page in self._kept:
                return self._take(socket.page)
            for other in list(self.sockets):  # its connection was lost, but not closed
                if other is not socket and other.page == socket.page:
                    controller = other.release()
                    other.close()
                    # It is None only if `connect` has failed for the old connection.
                    if controller is not None:  # pragma: no branch
                        return controller
        controller = self.connect()
        self.controllers.add(controller)
        return controller

    def keep(self, page: str, controller: Controller) -> None:
        """Keep the controller of a page whose connection was lost, for some time."""
        if len(self._kept) >= _MAX_KEPT_PAGES:
            self._take(next(iter(self._kept))).close()
        close = lambda: self._take(page).close()  # noqa: E731
        self._kept[page] = controller, IOLoop.current().call_later(_KEEP_SECONDS, close)

    def _take(self, page: str) -> Controller:
        controller, timer = self._kept.pop(page)
        IOLoop.current().remove_timeout(timer)
        return controller

    def close(self) -> None:
        """Close all websockets and controllers, before the server is stopped."""
        self.is_stopping = True
        for page in list(self._kept):
            self._take(page).close()
        for websocket in list(self.sockets):
            websocket.close(_SERVER_STOPPED, "stopped")
            websocket.on_close()

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """Return the handler of the route, or a handler that rejects the request."""
        refused = self.refusal(request)
        if refused is not None:
            status, reason = refused
            return self.get_handler_delegate(
                request, RefusalHandler, {"status": status, "reason": reason}
            )
        return super().find_handler(request, **kwargs)

    def refusal(self, request: Any) -> tuple[int, str] | None:
        """Return the status and the reason if a request is rejected, or None if it is accepted."""
        headers, path = request.headers, request.path
        own = f"http://{request.host}"
        if request.host not in self.names or headers.get("Origin", own) != own:
            return 403, "this explorer accepts requests only from its own page"
        if path not in _METHODS:
            return 404, "not found"
        if request.method not in _METHODS[path]:
            return 405, "method not allowed"
        if not (self._is_document(headers) if path == "/" else self._is_own_socket(headers)):
            return 403, "this explorer accepts requests only from its own page"
        tokens = request.query_arguments.get("token", [])
        if len(tokens) != 1 or not secrets.compare_digest(tokens[0], self._token):
            return 403, _NO_TOKEN
        return None

    @staticmethod
    def _is_document(headers: Any) -> bool:
        """Return True if the request opens a page in a tab, or has no Sec-Fetch headers."""
        mode, dest = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
        return mode in (None, "navigate") and dest in (None, "document")

    @staticmethod
    def _is_own_socket(headers: Any) -> bool:
        """Return True if the page itself opens the websocket (browsers always send Origin)."""
        return "Origin" in headers and headers.get("Sec-Fetch-Site") in (None, "same-origin")


class _SecureHandler(RequestHandler):
    """Base class that sets strict security headers and reports errors without tracebacks."""

    application: ExplorerApplication

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", _POLICY)

    def compute_etag(self) -> None:
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code}\n")

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        _log.warning("request failed: %s", _one_line(value))


class RefusalHandler(_SecureHandler):
    """Reject a request with any method."""

    def initialize(self, status: int, reason: str) -> None:
        self._status, self._why = status, reason

    def prepare(self) -> None:
        self.set_status(self._status)
        if self._status == 405:
            self.set_header("Allow", ", ".join(_METHODS[self.request.path]))
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._status}: {self._why}\n")


class PageHandler(_SecureHandler):
    """Serves the page: markup, style and script in one response, so no other file is needed."""

    def get(self) -> None:
        nonce = secrets.token_urlsafe(16)
        # The view uses no eval, no inline handlers and no style attributes, so a nonce for the
        # script and the style is enough.  Data arrive over the websocket and are shown as text.
        policy = (
            f"{_POLICY}; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
            f"connect-src ws://{self.request.host}"
        )
        self.set_header("Content-Security-Policy", policy)
        self.finish(served_page(self.application.title, nonce))

    def head(self) -> None:
        self.get()


class SocketHandler(_SecureHandler, WebSocketHandler):
    """The websocket of one page, whose messages a `Controller` handles.

    The first message may contain the key "page", a random string that identifies the page.  If the
    connection is lost, the page opens another one with the same string, and continues with the same
    controller.
    """

    controller: Controller | None = None
    page = ""

    def open(self, *args: str, **kwargs: str) -> None:
        self.application.sockets.add(self)

    def on_message(self, message: str | bytes) -> None:
        try:
            request = json.loads(message)
            self._connected_controller(request).handle(request)
        except (ValueError, RecursionError):
            self.close(1007, "not JSON")
        except Exception as error:
            _log.warning("handling a message from the page failed: %s", _one_line(error))

    def _connected_controller(self, request: Any) -> Controller:
        """Return the controller of this page, which the first message determines."""
        if self.controller is None:
            page = request.get("page") if isinstance(request, dict) else None
            self.page = page if isinstance(page, str) and 16 <= len(page) <= 64 else ""
            loop = IOLoop.current()
            self.controller = self.application.controller(self)
            self.controller.connect(lambda data: loop.add_callback(self._send, data))
            self._watch = PeriodicCallback(self.controller.check_file, _WATCH_PERIOD)
            self._watch.start()
        return self.controller

    def release(self) -> Controller | None:
        """Disconnect the controller from this websocket, and return it."""
        self.application.sockets.discard(self)
        controller, self.controller = self.controller, None
        if controller is not None:
            self._watch.stop()
            controller.connect(None)
        return controller

    def on_close(self) -> None:
        controller = self.release()
        if controller is None:
            return
        if self.page and self.close_code not in _PAGE_CLOSED and not self.application.is_stopping:
            self.application.keep(self.page, controller)
        else:
            controller.close()

    async def _send(self, data: bytes) -> None:
        with suppress(WebSocketClosedError):
            await self.write_message(data, binary=True)


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
            self._listener.close()
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
        """Stop the server; pages show that it was stopped."""
        loop = self._loop
        if loop is not None and not self._done.is_set():

            def close() -> None:
                self._application.close()
                loop.call_later(_FLUSH_SECONDS, loop.stop)

            loop.add_callback(close)
            self._done.wait(1.0)  # the thread is a daemon, so that it does not delay Ctrl-C
        self._listener.close()

    def _run(self) -> None:
        try:
            loop = self._loop = IOLoop()
            loop.add_callback(self._ready.set)
            server = HTTPServer(
                self._application, max_header_size=_MAX_HEADERS, max_body_size=_MAX_BODY
            )
            server.add_socket(self._listener)
            try:
                loop.start()
            finally:
                server.stop()
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
    stamp: FileStamp = None,
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
    source = WatchedScene(scene, watched, reload, stamp)
    listener = _listen(port)
    names = [f"{host}:{listener.getsockname()[1]}" for host in (HOST, "localhost")]
    token = secrets.token_urlsafe(24)
    connect = lambda: Controller(source.scene, source=source)  # noqa: E731
    return ExplorerServer(ExplorerApplication(names, token, title, connect), listener, token)


def _listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback interface; 0 means any free port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # On Windows, this would allow two servers on one port.
        if os.name != "nt":  # pragma: no branch
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


def _one_line(error: BaseException) -> str:
    """Return the type and the first line of an exception, for the log."""
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
