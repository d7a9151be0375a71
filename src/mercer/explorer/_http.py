"""The web application of the explorer: two routes, and a check that each request passes first.

    GET /?token=...    the page, with the script and the style of the view inside
    GET /ws?token=...  its websocket: requests as JSON, answers as the bytes of `pack`

Any web page that is open in the same browser can send requests to this server, and so can other
users of the machine.  `ExplorerApplication.refusal` therefore refuses by default:

* The Host header must be the name of this server, so that a foreign name which resolves to
  127.0.0.1 (DNS rebinding) does not help.
* An Origin header must be that of this server.
* Browsers describe a request by Sec-Fetch headers.  A request from another site passes only if it
  opens the page as a document, for example from a link; never in a frame, nor as a script, an
  image or the target of `fetch`.
* Both routes need the token, which only the printed address contains.  It is not exchanged for a
  cookie, because browsers send cookies of 127.0.0.1 to the servers on all of its ports.
"""

from __future__ import annotations

import json
import logging
import secrets
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ._desk import Desk
from ._page import served_page

__all__ = ["ExplorerApplication", "run_server"]

_METHODS = {"/": ("GET", "HEAD"), "/ws": ("GET",)}  # the routes
_MAX_HEADERS, _MAX_BODY = 2**14, 2**10  # bytes of a request; no route reads a body
_MAX_MESSAGE = 20 * 2**20  # bytes on the websocket; controls.js keeps uploads below it
_WATCH_PERIOD = 2000  # milliseconds between two checks whether the file has changed
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
    "This address lacks the token of the explorer.\n\n"
    "Use the complete address, with ?token=..., that `mercer explore` printed in the terminal, or "
    "that explorer.show().url contains in Python. Every start of the explorer has a new token.\n"
)

_log = logging.getLogger("mercer.explorer")


class ExplorerApplication(Application):
    """The routes of the explorer, and the check that precedes them.

    Parameters
    ----------
    names : list of str
        Host names with ports under which the server is reached.
    token : str
        The secret in the address of the page.
    title : str
        The title of the page.
    connect : function
        Takes the function that sends an answer, and returns the `Desk` of a new page.
    """

    def __init__(
        self,
        names: list[str],
        token: str,
        title: str,
        connect: Callable[[Callable[[bytes], None]], Desk],
    ) -> None:
        super().__init__(
            [("/", Page), ("/ws", Socket)],
            default_handler_class=Refusal,
            default_handler_args={"status": 404, "reason": "not found"},
            log_function=lambda handler: None,
            websocket_max_message_size=_MAX_MESSAGE,
        )
        self.names, self.title, self.connect = names, title, connect
        self._token = token.encode()
        self.sockets: set[Socket] = set()
        # Also of closed pages, whose last computation may still be running.
        self.desks: weakref.WeakSet[Desk] = weakref.WeakSet()

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """Return the handler of a request: that of its route, or one that refuses it."""
        refused = self.refusal(request)
        if refused is not None:
            status, reason = refused
            return self.get_handler_delegate(request, Refusal, {"status": status, "reason": reason})
        return super().find_handler(request, **kwargs)

    def refusal(self, request: Any) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused; None if it may pass."""
        headers, path = request.headers, request.path
        own = f"http://{request.host}"
        if request.host not in self.names or headers.get("Origin", own) != own:
            return 403, "this explorer answers only to its own page"
        if path not in _METHODS:
            return 404, "not found"
        if request.method not in _METHODS[path]:
            return 405, "method not allowed"
        if not (self._is_document(headers) if path == "/" else self._is_own_socket(headers)):
            return 403, "this explorer answers only to its own page"
        given = request.query_arguments.get("token", [])
        if len(given) != 1 or not secrets.compare_digest(given[0], self._token):
            return 403, _NO_TOKEN
        return None

    @staticmethod
    def _is_document(headers: Any) -> bool:
        """Return True for a page in a window or tab; clients without these headers pass."""
        mode, dest = headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
        return mode in (None, "navigate") and dest in (None, "document")

    @staticmethod
    def _is_own_socket(headers: Any) -> bool:
        """Return True for a websocket from the page: browsers always name its origin."""
        return "Origin" in headers and headers.get("Sec-Fetch-Site") in (None, "same-origin")


class _Strict(RequestHandler):
    """Strict headers on each response; errors as short texts, without tracebacks."""

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


class Refusal(_Strict):
    """Refuse a request, whatever its method is."""

    def initialize(self, status: int, reason: str) -> None:
        self._status, self._why = status, reason

    def prepare(self) -> None:
        self.set_status(self._status)
        if self._status == 405:
            self.set_header("Allow", ", ".join(_METHODS[self.request.path]))
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._status}: {self._why}\n")


class Page(_Strict):
    """The page: markup, style and script in one response, so that no other file is served."""

    def get(self) -> None:
        nonce = secrets.token_urlsafe(16)
        # The view uses no eval, no inline handlers and no style attributes, so a nonce suffices
        # for the one script and the one style.  Data come over the websocket and stay text.
        policy = (
            f"{_POLICY}; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
            f"connect-src ws://{self.request.host}"
        )
        self.set_header("Content-Security-Policy", policy)
        self.finish(served_page(self.application.title, nonce))

    def head(self) -> None:
        self.get()


class Socket(_Strict, WebSocketHandler):
    """The connection of one page, with a `Desk` that answers it."""

    desk: Desk | None = None

    def open(self, *args: str, **kwargs: str) -> None:
        loop = IOLoop.current()
        self.desk = self.application.connect(lambda data: loop.add_callback(self._send, data))
        self.application.desks.add(self.desk)
        self._watch = PeriodicCallback(self.desk.check_file, _WATCH_PERIOD)
        self._watch.start()
        self.application.sockets.add(self)

    def on_message(self, message: str | bytes) -> None:
        try:
            question = json.loads(message)
            if self.desk is not None:
                self.desk.handle(question)
        except (ValueError, RecursionError):
            self.close(1007, "not JSON")
        except Exception as error:
            _log.warning("message of the page failed: %s", _one_line(error))

    def on_close(self) -> None:
        self.application.sockets.discard(self)
        if self.desk is not None:
            self._watch.stop()
            self.desk.close()

    async def _send(self, data: bytes) -> None:
        with suppress(WebSocketClosedError):
            await self.write_message(data, binary=True)


def run_server(application: ExplorerApplication, sockets: list[Any], loop: IOLoop) -> None:
    """Serve the application on listening sockets, in this thread, until the loop is stopped."""
    server = HTTPServer(application, max_header_size=_MAX_HEADERS, max_body_size=_MAX_BODY)
    server.add_sockets(sockets)
    try:
        loop.start()
    finally:
        server.stop()
        for socket in list(application.sockets):
            socket.on_close()


def _one_line(error: BaseException) -> str:
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
