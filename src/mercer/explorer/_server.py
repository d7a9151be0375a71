"""The server: on the loopback alone, and for nobody but the page that it shows."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ._scene import Scene

__all__ = ["HOST", "Serving", "load_in_notebook", "require_panel", "serve"]

HOST = "127.0.0.1"
_PERIOD = 2000  # milliseconds between two looks at the file
_PAGE = """
{% extends base %}
{% block postamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>html, body { margin: 0; padding: 0; height: 100%; }</style>
{% endblock %}
{% block contents %}{{ embed(roots.explorer) }}{% endblock %}
"""


class Serving:
    """A server at `url`, in a thread that ends with the process: `start()`, `wait()`, `stop()`.

    It is built in the thread that runs it.  Elsewhere a loop of events may be running, that of a
    notebook say, which parts of the server would take for theirs.
    """

    def __init__(self, build: Callable[[], Any], url: str) -> None:
        self._build, self.url = build, url
        self._server: Any = None
        self._error: BaseException | None = None
        self._ready, self._done = threading.Event(), threading.Event()

    def start(self) -> Serving:
        """Return when it listens."""
        threading.Thread(target=self._run, name="mercer-explorer", daemon=True).start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self

    def wait(self) -> None:
        """Wait until it is stopped, or interrupted by Ctrl-C."""
        try:
            while not self._done.wait(0.5):
                pass
        finally:
            self.stop()

    def stop(self) -> None:
        """End it."""
        if not self._done.is_set():
            loop = self._server.io_loop
            loop.add_callback(loop.stop)
            self._done.wait(10)

    def _run(self) -> None:
        try:
            self._server = self._build()
            self._ready.set()
            self._server.io_loop.start()
            self._server.stop()
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
) -> Serving:
    """Return a server that shows a scene to each page that is opened; port 0 stands for a free one.

    It refuses, with 403, whoever calls it by another name than its own or comes from another
    page (so that no site that is open beside it can ask it for data), and paths with "..".
    """
    panel = require_panel()
    from panel.io.server import get_server
    from tornado.ioloop import IOLoop
    from tornado.routing import Rule

    from ._component import Component

    port = _free_port(port)
    names = [f"{host}:{port}" for host in (HOST, "localhost")]

    def opened() -> Any:
        component = Component(scene(), "100vh", reread, watched)
        if watched is not None:
            panel.state.add_periodic_callback(component.desk.check_file, period=_PERIOD)
        panel.state.on_session_destroyed(lambda _: component.desk.close())
        page = panel.Template(_PAGE)
        page.add_panel("explorer", component)
        return page

    for noisy in ("bokeh", "tornado.access"):
        logging.getLogger(noisy).setLevel(logging.ERROR)

    def build() -> Any:
        loop = IOLoop()
        at = {"port": port, "address": HOST, "websocket_origin": names, "loop": loop}
        server = get_server({"/": opened}, title=title, location=False, **at)
        matcher, handler = _doorkeeper(names)
        server._tornado.default_router.rules.insert(0, Rule(matcher, handler))
        server.start()
        return server

    return Serving(build, f"http://{HOST}:{port}/")


def require_panel() -> Any:
    """Return Panel, or say how to get it."""
    try:
        import panel
    except ImportError as error:
        raise ImportError(
            "the explorer needs panel: pip install 'mercer[explore]'; a page of its own, "
            "explorer.save(path), does not"
        ) from error
    return panel


def load_in_notebook() -> None:
    """Give a notebook the scripts of Panel, once, from here and not from the network."""
    panel = require_panel()
    if not panel.extension._loaded:
        panel.extension(inline=True)


def _free_port(port: int) -> int:
    """Return a port that nobody listens on: the one that is asked for, or any for 0."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "is in use" if error.errno == errno.EADDRINUSE else "is not for us to take"
            raise ValueError(
                f"port {port} {why} - usually by another explorer that still runs - end that one, "
                f"or take another: --port {port + 1 if port < 65535 else 0}, or 0 for any free one"
            ) from None
        return int(trial.getsockname()[1])


def _doorkeeper(names: list[str]) -> tuple[Any, Any]:
    """Return what tells requests of strangers, and what refuses them."""
    from tornado.routing import Matcher
    from tornado.web import RequestHandler

    class Stranger(Matcher):
        """Matches a request under another name, from another page, or for a path outside."""

        def match(self, request: Any) -> dict[str, Any] | None:
            origin = request.headers.get("Origin")
            known = request.host in names and (origin is None or urlsplit(origin).netloc in names)
            page = (
                request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
            )  # or a part of one
            site = request.headers.get("Sec-Fetch-Site", "none")
            known = known and (page or site in ("same-origin", "none"))
            outside = ".." in unquote(unquote(request.path)).replace("\\", "/").split("/")
            return None if known and not outside else {}

    class Refuse(RequestHandler):
        """Says no, whatever is asked."""

        def prepare(self) -> None:
            self.set_status(403)
            self.finish("403: this explorer answers to its own page alone\n")

    return Stranger(), Refuse
