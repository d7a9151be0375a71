"""mercer explore: a page, a server, and what cannot be shown."""

import io
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest
from shell import ENVIRONMENT


@pytest.fixture
def flowers(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["kind,a,b,c"]
    for i in range(60):
        a, b, c = rng.normal(size=3) + 2 * (i % 3)
        lines.append(f"{'xyz'[i % 3]},{a:.3f},{b:.3f},{c:.3f}")
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_page(mercer, flowers, tmp_path):
    done = mercer("explore", flowers, "--color", "kind", "--export", "page.html")
    assert done.code == 0 and "wrote page.html" in done.err, done
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<title>flowers.csv</title>" in text
    assert set(re.findall("https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}  # a name
    again = mercer("explore", flowers, "--color", "kind", "--export", "-")
    assert again.out == text
    told = mercer("explore", flowers, "--color", "kind", "--export", "page.html", "--json")
    assert f'"bytes": {len(text.encode())}' in told.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--color", "kin"), "has no column 'kin'; did you mean 'kind'?"),
        (("--strict",), "'kind' contains categories"),
        (("--ignore", "kind", "--image-shape", "2x2"), "images of 2x2 have 4 pixels, but points"),
        (
            ("--ignore", "kind", "--second", "gtm"),
            "the second embedding 'gtm' is not available for these points",
        ),
        (("--ignore", "kind", "--kernel", "RBF(("), "RBF(("),
        (("--ignore", "kind", "--kernel", "RBF(1e9)"), "considers all"),
        (("--ignore", "kind", "--new", "nowhere.csv"), "nowhere.csv does not exist"),
        (("--image-shape", "8by8"), "'8by8' is not an image shape"),
    ],
    ids=["color", "text", "pixels", "second", "kernel", "constant", "new", "shape"],
)
def test_what_cannot_be_shown(mercer, flowers, options, words):
    done = mercer("explore", flowers, *options, "--export", "page.html")
    assert done.code in (1, 2) and words in done.err, done


def test_missing_values_and_a_port_in_use(mercer, flowers):
    flowers.write_text(flowers.read_text("utf-8") + "x,,1.0,2.0\n", "utf-8")
    options = ("--color", "kind", "--export", "page.html")
    done = mercer("explore", flowers, *options, "--strict")
    assert done.code == 1 and "has 1 missing value" in done.err
    assert mercer("explore", flowers, *options).code == 0
    options = ("--color", "kind", "--impute", "drop")
    done = mercer("explore", flowers, *options, "--new", flowers, "--export", "page.html")
    assert done.code == 0 and "1 of 61 rows dropped" in done.err
    pytest.importorskip("tornado")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = mercer("explore", flowers, *options, "--port", port, "--no-browser")
    assert done.code == 1 and f"port {port} is in use" in done.err


def test_a_server(mercer, flowers, monkeypatch):
    given = {}

    class Serving:
        url = "http://127.0.0.1:1234/?token=secret"

        def start(self):
            return self

        def wait(self):
            given["waited"] = True

    def serve(scene, **options):
        given.update(options, scene=scene())
        return Serving()

    monkeypatch.setattr("mercer.app.explorer.serve", serve)
    monkeypatch.setattr("webbrowser.open", lambda url: given.update(opened=url))
    done = mercer("explore", flowers, "--color", "kind", "--second", "mds", "--port", "1234")
    assert done.code == 0 and done.out == f"The explorer is at {Serving.url}\n"
    assert given["waited"] and given["opened"] == Serving.url and given["port"] == 1234
    assert given["watched"] == flowers and given["scene"].embeddings[1].title == "metric MDS"
    flowers.write_text("\n".join(flowers.read_text("utf-8").splitlines()[:31]), "utf-8")
    assert len(given["reload"]()) == 30


@pytest.mark.long
def test_a_server_until_it_is_interrupted(flowers):
    pytest.importorskip("tornado")
    code = "from mercer.app.cli import main; main()"
    command = [sys.executable, "-c", code, "explore", str(flowers), "--color", "kind"]
    with subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as run:
        line = run.stdout.readline()
        url = line.removeprefix("The explorer is at ").strip()
        assert url.startswith("http://127.0.0.1:"), line + run.stderr.read()
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert answer.status == 200
        finally:
            said = interrupt(run)
    assert run.returncode == 130 and "Traceback" not in said


def interrupt(run):
    """Press Ctrl-C, and return the messages of the process, which must end within two seconds."""
    begun = time.monotonic()
    run.send_signal(signal.SIGINT)
    try:
        said = run.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        run.kill()
        raise
    assert time.monotonic() - begun < 2.0 + 2.0  # 0.3 s on an idle computer
    return said


# As a column of many points, in threads that the interpreter waits for.
SLEEPING = """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 60).result()
"""
# As a fit to many points: one call of LAPACK takes longer than the limit.
DECOMPOSING = """
    eigh(A, driver="evr", overwrite_a=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("task", [SLEEPING, DECOMPOSING], ids=["sleeping", "decomposing"])
def test_ctrl_c_ends_the_server_while_a_column_is_computed(flowers, task):
    pytest.importorskip("tornado")
    code = f"""
import time
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from mercer._core.linalg import eigh
from mercer.app.explorer._scene import Scene

A = np.random.default_rng(0).normal(size=(3000, 3000))
A = np.asfortranarray(A + A.T)

def slow(self, one):
    print("computing", flush=True)
{task}

Scene._trustworthiness = slow
from mercer.app.cli import main
main()
"""
    command = [sys.executable, "-c", code, "explore", str(flowers), "--color", "kind"]
    with subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as run:
        url = urlsplit(run.stdout.readline().removeprefix("The explorer is at ").strip())
        with socket.create_connection((url.hostname, url.port), timeout=20) as line:
            ask = json.dumps({"type": "column", "name": "trustworthiness in kernel PCA"}).encode()
            line.sendall(
                f"GET /ws?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n"
                f"Origin: http://{url.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
                "".encode()
                + bytes([0x81, 0x80 | len(ask), 0, 0, 0, 0])
                + ask
            )
            try:
                assert run.stdout.readline() == "computing\n"
                time.sleep(1.0)  # the slow call has begun
            finally:
                said = interrupt(run)
    assert run.returncode == 130 and "Traceback" not in said
    assert "interrupted; the running computation was cancelled" in said


def test_an_approximation_of_many_points_is_reported(mercer, flowers, monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._model_requests.MAX_EXACT_SECONDS", 0.0)
    done = mercer("explore", flowers, "--color", "kind", "--export", "page.html")
    assert done.code == 0 and "using a Nyström approximation instead: " in done.err


@pytest.mark.parametrize(
    ("is_busy", "suffix"),
    [(True, "the running computation was cancelled"), (False, "existing files were not changed")],
)
def test_ctrl_c_ends_a_server_of_the_standard_input(mercer, flowers, monkeypatch, is_busy, suffix):
    """The process ends at once, and the copy of the standard input is removed."""

    class Serving:
        url = "http://127.0.0.1:1234/"

        def start(self):
            return self

        def wait(self):
            raise KeyboardInterrupt

    def end(code):
        raise SystemExit(code)

    Serving.is_busy = is_busy
    copies = []
    monkeypatch.setattr("mercer.app.explorer.serve", lambda scene, **options: Serving())
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr("pathlib.Path.unlink", lambda path, missing_ok: copies.append(path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(flowers.read_bytes())))
    done = mercer("explore", "-", "--color", "kind", "--no-browser")
    assert done.code == 130 and f"interrupted; {suffix}\n" in done.err
    assert len(copies) == 1 and copies.pop().exists()
    done = mercer("explore", flowers, "--color", "kind", "--no-browser")
    assert done.code == 130 and copies == []  # the file of the user is not removed
