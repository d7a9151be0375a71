"""A page whose connection is lost connects again, and continues where it was."""

import contextlib
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import _server, serve
from mercer.app.explorer._jobs import Job


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * 0.4 + 2.0 * np.eye(4)[np.arange(120) % 3]
    return explore(KernelPCA(3, kernel="RBF(1.5)").fit(X), X, title="blobs").scene


@pytest.fixture
def served(scene):
    serving = serve(lambda: scene).start()
    yield serving
    serving.stop()


def in_loop(serving, action):
    """Call a function in the thread of the server, and return its result."""
    found, done = [], threading.Event()

    def run():
        found.append(action())
        done.set()

    serving._loop.add_callback(run)
    assert done.wait(20)
    return found[0]


def lose(serving):
    """Close the sockets of all pages, like a tunnel that breaks; refuse others until `accept`."""

    def close():
        serving._application.names = []
        for one in list(serving._application.sockets):
            one.ws_connection.stream.close()  # without a close frame

    in_loop(serving, close)


def accept(serving):
    """Accept connections again."""
    names = [urlsplit(serving.url).netloc]
    in_loop(serving, lambda: setattr(serving._application, "names", names))


def forgive(page):
    """Ignore the errors that the browser logs about connections that it could not open."""
    page.wrong[:] = [text for text in page.wrong if "WebSocket" not in text]


def controllers(serving):
    return in_loop(serving, lambda: [one.controller for one in serving._application.sockets])


@contextlib.contextmanager
def line_of(serving, page):
    """Open the websocket of a page, yield it when the scene has come, and lose the connection."""
    url = urlsplit(serving.url)
    with socket.create_connection((url.hostname, url.port), timeout=20) as line:
        ask = json.dumps({"type": "scene", "page": page}).encode()
        line.sendall(
            f"GET /ws?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n"
            f"Origin: http://{url.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
            "".encode()
            + bytes([0x81, 0x80 | len(ask), 0, 0, 0, 0])
            + ask
        )
        received = b""
        while b'"kind":"scene"' not in received:
            received += line.recv(4096)
        yield line


BANNER = "ex.root.querySelector('.notices').textContent"


def test_a_lost_connection_is_restored_with_model_selection_zoom_and_text(opened, served):
    page = opened.go(served.url)
    page.page.get_by_role("tab", name="Model").click()
    box = page.page.get_by_label("kernel", exact=True)
    box.fill("RBF(2.5)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=2.5)'")
    (controller,) = controllers(served)
    page("ex.select(Uint8Array.from({length: ex.n}, (_, i) => i % 3 === 0), 'thirds')")
    page("ex.panes[0].zoom(2)")
    where = page("[ex.panes[0].scale, ex.panes[0].toPixels(0, 0)]")
    box.press_sequentially(" + ")  # not a complete kernel
    box.evaluate("node => node.setSelectionRange(3, 3)")
    lose(served)
    page.until(f"{BANNER} === 'Connection lost – reconnecting …'")
    page.page.mouse.click(*page.place(0.1, -0.2))  # answered later
    page.page.wait_for_timeout(700)  # at least one attempt fails
    accept(served)
    page.until(f"{BANNER} === ''")
    page.until("ex.point.card.querySelector('dl')")
    assert controllers(served) == [controller]
    assert page("ex.form.kernel.value") == "RBF(2.5) + "
    assert page("ex.form.kernel.selectionStart") == 3
    assert page("[ex.panes[0].scale, ex.panes[0].toPixels(0, 0)]") == where
    assert page("ex.count") == 40 and controller.selection.tolist() == list(range(0, 120, 3))
    page.page.get_by_role("tab", name="Model").click()
    box.fill("RBF(3.5)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=3.5)'")
    forgive(page)


def test_a_fit_that_ends_without_connection_is_shown_afterwards(opened, served):
    page = opened.go(served.url)
    (controller,) = controllers(served)
    gate = threading.Event()
    controller.jobs.submit("fits", Job(lambda: gate.wait(20), "Something slow"))
    page("ex.requestFit({kernel: 'RBF(2.25)'}, 0)")
    page.until("ex.jobs.jobs.size === 2")
    lose(served)
    page.until(f"{BANNER} === 'Connection lost – reconnecting …'")
    gate.set()
    deadline = time.monotonic() + 20
    while controller.is_busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    accept(served)
    page.until("ex.form.message.kernel === 'RBF(length_scale=2.25)'")
    page.until("ex.jobs.jobs.size === 0 && ex.form.status.textContent === ''")
    forgive(page)


def test_a_page_without_models_on_the_server_keeps_its_selection(opened, served, monkeypatch):
    monkeypatch.setattr(_server, "_KEEP_SECONDS", 0.01)
    page = opened.go(served.url)
    page("ex.requestFit({kernel: 'RBF(2.25)'}, 0)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=2.25)'")
    page("ex.select(Uint8Array.from({length: ex.n}, (_, i) => i % 3 === 0), 'thirds')")
    lose(served)
    page.until(f"{BANNER} === 'Connection lost – reconnecting …'")
    page.page.wait_for_timeout(300)
    accept(served)
    page.until("ex.form.message.kernel === 'RBF(length_scale=1.5)'")
    page.until("ex.notices.textContent.includes('your selection was kept')")
    assert page("ex.count") == 40
    page.until(f"{BANNER} === ''")
    (controller,) = controllers(served)
    assert controller.selection.tolist() == list(range(0, 120, 3))
    forgive(page)


def test_a_server_that_is_started_again_at_the_same_address(opened, scene, monkeypatch):
    monkeypatch.setattr(_server.secrets, "token_urlsafe", lambda n: "x" * 32)
    first = serve(lambda: scene).start()
    page = opened.go(first.url)
    first.stop()
    page.until(f"{BANNER}.includes('usually because the explorer was stopped')")
    assert page.wrong == []  # the server says that it stops, so the page does not try again
    other = explore(scene.embeddings[0].model, scene.points, title="started again").scene
    second = serve(lambda: other, port=urlsplit(first.url).port).start()
    try:
        page.page.get_by_role("button", name="Reconnect").click()
        page.until("ex.title.textContent === 'started again'")
        assert page(BANNER) == ""
    finally:
        second.stop()


def test_after_a_minute_without_server_the_page_waits_for_the_user(opened, served):
    page = opened.go(served.url)
    page(
        """() => { const now = performance.now.bind(performance);
          performance.now = () => 30 * now(); }"""
    )
    lose(served)
    page.until(f"{BANNER}.includes('usually because the explorer was stopped')")
    accept(served)
    page.page.get_by_role("button", name="Reconnect").click()
    page.until(f"{BANNER} === ''")
    forgive(page)


def test_closed_pages_are_not_kept_and_few_lost_ones_are(opened, served, monkeypatch):
    monkeypatch.setattr(_server, "_MAX_KEPT_PAGES", 2)
    application, context = served._application, opened.page.context
    pages = [context.new_page() for _ in range(3)]
    for page in pages:
        page.goto(served.url)
        page.wait_for_selector("[data-drawn]")
    pages[0].close()
    deadline = time.monotonic() + 20
    while len(application.sockets) > 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert application._kept == {}
    for page in pages[1:]:
        page.close()
    for k in range(4):  # connections that are lost
        with line_of(served, f"{k}" * 20):
            pass
    while application.sockets:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(application._kept) == ["2" * 20, "3" * 20]


def test_a_page_that_connects_again_before_its_old_connection_is_closed(served):
    """The new connection takes the controller over, and the old one is closed."""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(line_of(served, "4" * 20))
        (before,) = controllers(served)
        stack.enter_context(line_of(served, "4" * 20))
        assert controllers(served) == [before]
        closing = b""
        while b"\x88" not in closing:  # the close frame
            closing += old.recv(4096)
