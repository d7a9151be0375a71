"""The server answers only its own page, with the token, and rejects all other requests."""

import base64
import http.client
import http.server
import itertools
import json
import logging
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import serve
from mercer.datasets import circles

STRICT = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
}
# Paths that Bokeh, Panel, Tornado or Jupyter serve, and attempts to leave the root.
PATHS = [
    "/components/this/a/_css/b",
    "/components/unittest.__main__/a/_css/b",
    "/components/antigravity/a/_esm/b",
    "/static/js/bokeh.min.js",
    "/static/extensions/panel/panel.min.js",
    "/autoload.js?bokeh-autoload-element=1",
    "/metadata",
    "/favicon.ico",
    "/liveness",
    "/rest/data",
    "/login",
    "/logout",
    "/robots.txt",
    "/index.html",
    "/ws/",
    "//",
    "/%2f",
    "/../secret",
    "/%2e%2e/secret",
    "/..%2f..%2fetc/passwd",
    "/..\\..\\secret",
]


@pytest.fixture(scope="module")
def scene():
    X, y = circles(60, random_state=0)
    return explore(KernelPCA(2, kernel="rbf", gamma=2.0).fit(X), X, color=y, title="secret").scene


@pytest.fixture
def served(scene):
    serving = serve(lambda: scene).start()
    yield serving
    assert asked(serving).status == 200  # the server is still running
    serving.stop()


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, dict(response.getheaders())
        self.body = b"" if response.status == 101 else response.read()


def asked(serving, path=None, method="GET", headers=None, body=None):
    """Return the response to a request; the path is sent unchanged, None is the path with token."""
    where = urlsplit(serving.url)
    headers = headers or {}
    line = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    target = f"/?{where.query}" if path is None else path
    line.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        line.putheader(name, value)
    if body is not None:
        line.putheader("Content-Length", str(len(body)))
    line.endheaders(body)
    answer = Answer(line.getresponse())
    line.close()
    return answer


def with_token(serving, path):
    return f"{path}{'&' if '?' in path else '?'}{urlsplit(serving.url).query}"


def is_strict(answer):
    """Return True if the response may not be framed, embedded, sniffed or stored."""
    policy = answer.headers.get("Content-Security-Policy", "")
    wanted = ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'")
    return STRICT.items() <= answer.headers.items() and all(one in policy for one in wanted)


# --- routes ---------------------------------------------------------------------------------------


def routes(rules):
    """Yield the patterns of all rules, including nested ones."""
    for rule in rules:
        inner = getattr(rule.target, "rules", None)
        if inner is None:
            yield rule.matcher.regex.pattern, rule.target.__name__
        else:
            yield from routes(inner)


def test_there_are_two_routes(served):
    application = served._application
    every = [*routes(application.default_router.rules), *routes(application.wildcard_router.rules)]
    assert set(every) == {("/$", "PageHandler"), ("/ws$", "SocketHandler")}


def test_the_server_imports_neither_panel_nor_bokeh(scene, tmp_path):
    code = (
        "import sys; from mercer.app.explorer import serve; serve(lambda: None).start().stop(); "
        "print([name for name in ('panel', 'bokeh') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", PATHS)
def test_other_paths_are_refused_even_with_the_token(served, path):
    before = set(sys.modules)
    for headers in ({}, {"Origin": served.origin}, {"Sec-Fetch-Mode": "navigate"}):
        answer = asked(served, with_token(served, path), headers=headers)
        assert answer.status == 404 and is_strict(answer)
        assert len(answer.body) < 100
    assert not {"this", "antigravity", "unittest.__main__"} & (set(sys.modules) - before)


# --- the token ------------------------------------------------------------------------------------


def test_the_token_is_needed_and_the_refusal_says_where_it_is(served):
    token = urlsplit(served.url).query.removeprefix("token=")
    assert len(token) >= 32
    wrong = ["", "?token=", "?token=x", f"?token={token}x", f"?token={token[:-1]}", f"?{token}"]
    wrong += [f"?token={token}&token={token}", f"?TOKEN={token}", f"?token=%00{token}", "?token=ü"]
    for query in wrong:
        answer = asked(served, "/" + query.replace("ü", "%C3%BC"))
        assert answer.status == 403 and is_strict(answer), query
        assert b"`mercer explore` printed in the terminal" in answer.body
        assert b"<" not in answer.body and token.encode() not in answer.body
        own = {**UPGRADE, "Origin": served.origin}
        assert asked(served, "/ws" + query.replace("ü", "%C3%BC"), headers=own).status == 403
    cookie = {"Cookie": f"token={token}", "Authorization": f"token {token}"}
    assert asked(served, "/", headers=cookie).status == 403


def test_tokens_differ(scene):
    first, second = serve(lambda: scene), serve(lambda: scene)
    assert urlsplit(first.url).query != urlsplit(second.url).query
    first.stop()
    second.stop()


def test_the_page_has_a_strict_policy(served):
    answer = asked(served)
    assert answer.status == 200 and is_strict(answer) and "Set-Cookie" not in answer.headers
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";")
    )
    nonce = policy["script-src"]
    assert nonce.startswith("'nonce-") and policy["style-src"] == nonce
    assert policy["connect-src"] == served.origin.replace("http:", "ws:")
    assert "unsafe" not in str(policy) and "*" not in str(policy)
    assert nonce[7:-1] in answer.body.decode() and b"secret" not in answer.body  # without any data
    other = asked(served)
    assert nonce not in other.headers["Content-Security-Policy"]


# --- headers --------------------------------------------------------------------------------------


def test_names_origins_and_sites(served):
    port = urlsplit(served.url).port
    path = with_token(served, "/")
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert asked(served, path, headers={"Host": host}).status == 200
        origin = {"Host": host, "Origin": f"http://{host}"}
        assert asked(served, path, headers=origin).status == 200
    hosts = [
        "example.com",
        f"example.com:{port}",
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{port + 1}",
    ]
    hosts += [f"127.0.0.1.example.com:{port}", f"[::1]:{port}", f"x@127.0.0.1:{port}"]
    for host in hosts:
        assert asked(served, path, headers={"Host": host}).status in (400, 403), host
    origins = [
        "http://example.com",
        "null",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}0",
    ]
    origins += [f"http://localhost:{port}", "file://", "http://127.0.0.1", "", "*"]
    for origin in origins:
        assert asked(served, path, headers={"Origin": origin}).status == 403, origin
        there = {**UPGRADE, "Origin": origin}
        assert asked(served, with_token(served, "/ws"), headers=there).status == 403, origin
    # no Origin header
    assert asked(served, with_token(served, "/ws"), headers=UPGRADE).status == 403


SITES = [None, "none", "same-origin", "same-site", "cross-site"]
MODES = [None, "navigate", "no-cors", "cors", "same-origin", "websocket"]
DESTS = [None, "document", "iframe", "frame", "object", "embed", "image", "script", "style"]
DESTS += ["empty", "worker", "serviceworker", "font", "audio", "video", "manifest", "report"]


def test_of_all_fetch_headers_only_documents_pass(served):
    passed = set()
    for site, mode, dest in itertools.product(SITES, MODES, DESTS):
        given = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        given = {name: value for name, value in given.items() if value is not None}
        answer = asked(served, headers=given)
        assert answer.status in (200, 403) and is_strict(answer)
        if answer.status == 200:
            passed.add((mode, dest))
    assert passed == set(itertools.product([None, "navigate"], [None, "document"]))


def test_methods(served):
    methods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "X-Y"]
    for path, method in itertools.product(["/", "/ws"], [*methods, "HEAD"]):
        answer = asked(served, with_token(served, path), method, body=b"a=1")
        expected = 200 if (path, method) == ("/", "HEAD") else 405
        assert answer.status == expected, (path, method)
        assert is_strict(answer) and (expected == 405 or answer.body == b"")
    plain = {"Origin": served.origin}
    # no Upgrade header
    assert asked(served, with_token(served, "/ws"), headers=plain).status == 400


# --- an attack from another page ------------------------------------------------------------------

ATTACK = Path(__file__).with_name("attack.js").read_text("utf-8")


@pytest.fixture
def attacker():
    """Pages of other origins, from a server on another port of this computer."""

    class Blank(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>attack</title><body></body>")

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def victim():
    """A server in a separate process, which lists the modules that it has imported."""
    code = """
import json, sys
from mercer import KernelPCA, explore
from mercer.datasets import circles
from mercer.app.explorer import serve
X, y = circles(60, random_state=0)
explorer = explore(KernelPCA(2, kernel="rbf", gamma=2.0).fit(X), X, color=y)
serving = serve(lambda: explorer.scene).start()
from tornado.websocket import WebSocketProtocol13
answered = []

def note(handler):
    request = handler.request
    headers = [request.headers.get(name) for name in ("Sec-Fetch-Dest", "Origin")]
    answered.append([handler.get_status(), request.method, request.path, *headers])

serving._application.settings["log_function"] = note
print(serving.url, flush=True)
before = set(sys.modules)
sys.stdin.readline()
print(json.dumps([sorted(set(sys.modules) - before), answered]), flush=True)
serving.stop()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    ) as process:
        process.url = process.stdout.readline().strip()
        yield process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize(
    ("host", "count"),
    [
        ("localhost", 5),  # another site
        ("127.0.0.1", 5),  # the same site, on another port
        pytest.param("localhost", 99, marks=pytest.mark.long),
        pytest.param("127.0.0.1", 99, marks=pytest.mark.long),
    ],
)
def test_a_page_of_another_origin_gets_nothing_but_refusals(
    chromium, attacker, victim, host, count
):
    where = urlsplit(victim.url)
    # The attacker knows the port, and in the worst case an address with the token.
    paths = ["/", f"/?{where.query}", "/ws", f"/ws?{where.query}", *PATHS]
    urls = [f"http://127.0.0.1:{where.port}{path}" for path in paths][:count]
    paths = ("/ws", f"/ws?{where.query}", "/", "/static/")
    names = ("127.0.0.1", "localhost")
    sockets = [f"ws://{name}:{where.port}{path}" for name in names for path in paths]
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"http://{host}:{attacker}/")
    outcomes = page.evaluate(ATTACK, {"targets": urls, "socket": sockets})
    assert len(outcomes) > 80 * len(urls)
    harmless = ("refused", "opaque", "timeout", "opaque, 0 frames")
    wrong = [one for one in outcomes if one[2] not in harmless]
    # The load event fires even if an element shows an error page, so it does not mean success.
    assert [one for one in wrong if one[0] != "<object>"] == []
    assert all(one[2].startswith(("opaque", "read 0", "0")) for one in wrong), wrong
    assert all(frame.locator(".mercer, #explorer").count() == 0 for frame in page.frames)
    forms(page, urls)
    windows(context, page, urls, victim.url)
    context.close()
    with urllib.request.urlopen(victim.url, timeout=20) as answer:
        assert answer.status == 200 and victim.poll() is None
    out, err = victim.communicate("\n", timeout=30)
    assert err == ""
    imported, answered = json.loads(out.splitlines()[-1])
    # The browser hides the outcome of most requests from the attacker, so the log of the server
    # is checked: it rejects all requests except the window with the token, its websocket, and the
    # request above.
    passed = [one for one in answered if one[0] < 400]
    own = f"http://{where.netloc}"
    expected = [[200, "GET", "/", "document", None], [101, "GET", "/ws", None, own]]
    assert len(answered) > 30 * len(urls)
    passed = [[*one[:3], one[3] if one[2] == "/" else None, one[4]] for one in passed]
    alive = [200, "GET", "/", None, None]  # the request above, which may not be recorded yet
    assert passed.count(alive) <= 1
    assert [one for one in passed if one != alive] == expected
    assert not [name for name in imported if name.split(".")[0] in FORBIDDEN], imported


FORBIDDEN = ("this", "antigravity", "unittest", "panel", "bokeh", "webbrowser")


def forms(page, urls):
    """Send forms into frames, which would show the response of the server."""
    for url, method in itertools.product(urls, ["get", "post"]):
        page.evaluate(
            """([url, method]) => new Promise(done => {
              const frame = document.createElement("iframe"), form = document.createElement("form");
              frame.name = `f${Math.random()}`;
              Object.assign(form, {action: url, method, target: frame.name});
              document.body.append(frame, form);
              form.submit();
              setTimeout(done, 20);
            })""",
            [url, method],
        )
    page.wait_for_timeout(500)
    for frame in page.frames[1:]:
        assert frame.locator(".mercer, #explorer").count() == 0, frame.url


def windows(context, page, urls, known):
    """Open windows: only the complete address shows the page, and the opener cannot reach it."""
    for url in urls:
        with context.expect_page() as found:
            page.evaluate("url => { window.last = window.open(url); }", url)
        other = found.value
        other.wait_for_load_state()
        shown = other.locator("#explorer").count() > 0
        assert shown == (url == known), url
        if shown:
            other.wait_for_selector("[data-drawn]")
            assert page.evaluate("window.last.closed")  # another browsing context group
        else:
            assert other.locator("body").inner_text()[:3] in ("403", "404", "405"), url
        other.close()


# --- garbage --------------------------------------------------------------------------------------


def raw(serving, data, wait=5.0):
    """Send bytes, and return the response until the server closes the connection or a timeout."""
    where = urlsplit(serving.url)
    with socket.create_connection((where.hostname, where.port), timeout=wait) as line:
        line.settimeout(wait)
        found = b""
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            while chunk := line.recv(65536):
                found += chunk
        except OSError:
            pass
        return found


def frame(opcode, payload, *, fin=True, mask=True, rsv=0, length=None):
    """Return a websocket frame, which may violate the protocol."""
    head = bytes([(0x80 if fin else 0) | (rsv << 4) | opcode])
    size = len(payload) if length is None else length
    flag = 0x80 if mask else 0
    if size < 126:
        head += bytes([flag | size])
    elif size < 2**16:
        head += bytes([flag | 126]) + struct.pack(">H", size)
    else:
        head += bytes([flag | 127]) + struct.pack(">Q", size)
    if mask:
        key = b"\x01\x02\x03\x04"
        payload = bytes(b ^ key[i % 4] for i, b in enumerate(payload))
        head += key
    return head + payload


def handshake(serving):
    where = urlsplit(serving.url)
    lines = [
        f"GET /ws?{where.query} HTTP/1.1",
        f"Host: {where.netloc}",
        f"Origin: {serving.origin}",
    ]
    lines += [f"{name}: {value}" for name, value in UPGRADE.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def garbage():
    rng = random.Random(0)
    yield from (b"", b"\0" * 1000, b"\r\n" * 50, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n")
    yield b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"
    yield b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"
    yield b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 5000
    yield b"GET /?" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"
    yield b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n"
    yield b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n"
    yield b"GET /%ff%00?token=%ff&token HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500)  # a TLS handshake
    for size in (1, 10, 100, 1000, 10_000):
        yield rng.randbytes(size)
    for _ in range(60):
        good = bytearray(
            b"GET /ws?token=x HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\r\n"
        )
        for _ in range(rng.randrange(1, 8)):
            good[rng.randrange(len(good))] = rng.randrange(256)
        yield bytes(good)


def broken_frames():
    rng = random.Random(1)
    text = json.dumps({"type": "scene"}).encode()
    yield frame(1, text, mask=False)
    yield frame(1, text, rsv=7)
    yield frame(3, b"")
    yield frame(0, b"a continuation of nothing")
    yield frame(1, b"a", fin=False) + frame(1, b"b", fin=False)
    yield frame(9, b"p" * 200)
    yield frame(9, b"p", fin=False)
    yield frame(8, b"\x00")
    yield frame(8, struct.pack(">H", 70))
    yield frame(1, b"\xff\xfe\xfd")
    yield frame(1, b"x", length=2**40)
    yield frame(1, text)[:-3]
    yield b"\xff" * 500
    for size in (2, 50, 5000):
        yield rng.randbytes(size)


MESSAGES = [
    "", "nonsense", "{", "[]", "null", "3", '"fit"', "NaN", "[" * 100_000, '{"a":' * 50_000,
    "{}", '{"type": null}', '{"type": {}}', '{"type": "fit", "kernel": 3}', '{"type": "\\ud800"}',
    '{"type": "fit", "kernel": "__import__(\'os\').system(\'true\')"}',
    '{"type": "fit", "parameter": 99, "value": 1}', '{"type": "fit", "parameter": "x"}',
    '{"type": "fit", "components": 1e308}', '{"type": "fit", "second": {"a": 1}}',
    '{"type": "preimage"}', '{"type": "preimage", "pane": 9, "x": 0, "y": 0, "token": 1}',
    '{"type": "preimage", "pane": 0, "x": 1e400, "y": "y", "token": [[[[]]]]}',
    '{"type": "preimage", "pane": 0, "token": ' + "[" * 900 + "]" * 900 + "}",
    '{"type": "column"}', '{"type": "column", "name": ["a"]}',
    '{"type": "column", "name": "\\ud800"}',
    '{"type": "field", "pane": -5, "name": "eigenfunction x"}', '{"type": "axes", "axes": [0]}',
    '{"type": "axes", "axes": [-1, 10]}', '{"type": "select", "rows": "%%%"}',
    '{"type": "select", "rows": "AAA="}', '{"type": "select"}', '{"type": "reload", "x": 1}',
    '{"type": "project", "name": "../../x.csv", "bytes": "eA=="}',
    '{"type": "project", "name": "a\\u0000b.csv", "bytes": "eA=="}', '{"type": "project"}',
    '{"type": "project", "name": "' + "x" * 5000 + '.csv", "bytes": "not base64"}',
]  # fmt: skip


def test_garbage_leaves_no_traceback_and_the_server_alive(victim):
    where = urlsplit(victim.url)

    class Where:
        url, origin = victim.url, f"http://{where.netloc}"

    for data in garbage():
        found = raw(Where, data)
        assert b"Traceback" not in found and not found.startswith(b"HTTP/1.1 200")
    for data in broken_frames():
        assert raw(Where, handshake(Where) + data).startswith(b"HTTP/1.1 101")
    for message in MESSAGES:
        found = raw(Where, handshake(Where) + frame(1, message.encode(errors="surrogatepass")))
        assert found.startswith(b"HTTP/1.1 101") and b"Traceback" not in found
    found = raw(Where, handshake(Where) + frame(2, json.dumps({"type": "scene"}).encode()))
    assert found.startswith(b"HTTP/1.1 101")
    with urllib.request.urlopen(victim.url, timeout=20) as answer:
        assert answer.status == 200
    _, err = victim.communicate("\n", timeout=30)
    assert "Traceback" not in err and len(err.splitlines()) <= 3, err


def test_a_failure_in_a_handler_is_one_line_in_the_log(served, monkeypatch, caplog):
    def fail(title, nonce):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("mercer.app.explorer._server.served_page", fail)
    with caplog.at_level(logging.WARNING):
        answer = asked(served)
    assert answer.status == 500 and answer.body == b"500\n" and is_strict(answer)
    assert [one.getMessage() for one in caplog.records] == [
        "request failed: RuntimeError: first line"
    ]
    assert caplog.records[0].exc_info is None
    monkeypatch.undo()


def test_a_failure_of_a_message_is_one_line_in_the_log(served, monkeypatch, caplog):
    def fail(controller, request):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("mercer.app.explorer._controller.Controller.handle", fail)
    with caplog.at_level(logging.WARNING):
        found = raw(served, handshake(served) + frame(1, b'{"type": "scene"}') + frame(8, b""))
    assert found.startswith(b"HTTP/1.1 101")
    assert [one.getMessage() for one in caplog.records] == [
        "handling a message from the page failed: RuntimeError: first line"
    ]


def test_a_valid_socket_answers(served):
    request = json.dumps(
        {"type": "select", "rows": base64.b64encode(b"\0\0\0\0").decode()}
    ).encode()
    found = raw(served, handshake(served) + frame(1, request) + frame(8, b""))
    assert found.startswith(b"HTTP/1.1 101")


def test_an_address_without_a_token_in_a_browser(opened, served):
    opened.page.goto(served.origin)
    assert "This address does not contain the token" in opened.page.locator("body").inner_text()
    opened.wrong.clear()  # the browser reports the status 403
