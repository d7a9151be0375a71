"""Check an installed mercer[all]: all public names, the shell commands and the explorer.

    cd EMPTY_FOLDER; python smoke_install.py

The script needs only an installed mercer with its extras, not the repository.  It refuses to run if
mercer is imported from another place than the environment of the interpreter, or if other computers
can be reached (see tools/offline.py).  It writes files to the current folder.  The exit code is 1
if a check fails.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

COMMAND = str(Path(sys.executable).with_name("mercer"))
_SECONDS = 300  # limit for one command, which may have to compile loops
_STOP_SECONDS = 20  # limit for stopping the explorer


def check_environment() -> str:
    """Check where mercer was imported from, and that the network is off."""
    import mercer

    place = Path(mercer.__file__).resolve()
    if not place.is_relative_to(Path(sys.prefix).resolve()):
        raise RuntimeError(f"mercer was imported from {place}, which is outside of {sys.prefix}")
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=2).close()  # reserved, RFC 5737
    except TimeoutError:
        raise RuntimeError("the network is on; start this script with tools/offline.py") from None
    except OSError:
        return f"mercer {mercer.__version__}, Python {sys.version.split()[0]}"
    raise RuntimeError("the network is on; start this script with tools/offline.py")


def check_imports() -> str:
    """Import all public modules and all names that they export."""
    import mercer

    modules = ["mercer"]
    modules += [
        found.name
        for found in pkgutil.walk_packages(mercer.__path__, "mercer.")
        if not any(part.startswith("_") for part in found.name.split("."))
    ]
    names = 0
    for name in modules:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)
            names += 1
    return f"{len(modules)} modules, {names} names"


def run(*arguments: str) -> str:
    """Run a `mercer` command and return its output; raise a RuntimeError if it fails."""
    done = subprocess.run(
        [COMMAND, *arguments], text=True, capture_output=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        text = f"exit code {done.returncode} of mercer {' '.join(arguments)}"
        raise RuntimeError(f"{text}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_help() -> str:
    """Run every command with --help."""
    from mercer.app.cli._main import app

    commands = [
        [name, *([sub] if sub else [])]
        for name, command in app.commands.items()
        for sub in ("", *getattr(command, "commands", ()))
    ]
    for command in ([], *commands):
        if "Usage: mercer" not in run(*command, "--help"):
            raise RuntimeError(f"mercer {' '.join(command)} --help has no usage line")
    return f"{len(commands) + 1} commands"


def check_demo() -> str:
    """Run the demo, whose data the other checks use."""
    run("demo", "-o", "out")
    files = sorted(Path("out").iterdir())
    if not {".csv", ".png", ".html"} <= {file.suffix for file in files}:
        raise RuntimeError(f"files of the demo: {[file.name for file in files]}")
    return f"{len(files)} files"


def check_shell() -> str:
    """Fit a model, use it for predictions, and call the other commands for models and kernels."""
    import numpy as np

    import mercer
    from mercer.tables import read_table

    data = Path("out", "digits.csv")
    rows = data.read_text("utf-8").splitlines()
    Path("digits.csv").write_text("\n".join(rows[:401]) + "\n", "utf-8")
    run("fit", "svc", "digits.csv", "--target", "digit", "-o", "model.mercer")
    printed = run("predict", "model.mercer", "digits.csv").splitlines()[1:]
    predicted = [float(line.rpartition(",")[2]) for line in printed]
    same = mercer.load("model.mercer").predict(read_table("digits.csv"))
    if len(predicted) != 400 or not np.array_equal(np.asarray(same, dtype=float), predicted):
        raise RuntimeError("the shell and Python predict different values")
    if "proved" not in run("check", "RBF() + 2*Linear()"):
        raise RuntimeError("mercer check does not prove that RBF() + 2*Linear() is a kernel")
    if "cholesky" not in (plan := run("plan", "ridge", "digits.csv", "--target", "digit")):
        raise RuntimeError(f"the plan does not list the Cholesky solver: {plan}")
    run("info", "model.mercer")
    run("kernels", "RBF")
    return f"accuracy {np.mean(same == read_table('digits.csv').column('digit')):.3f}"


def check_explorer() -> str:
    """Start the explorer, request its page and its scene, and stop it."""
    # A background job of a shell ignores Ctrl-C, and so would the explorer.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [COMMAND, "explore", "digits.csv", "--color", "digit", "--no-browser", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        printed = process.stdout.readline() if process.stdout else ""
        if "http://127.0.0.1:" not in printed:
            raise RuntimeError(f"the explorer does not print its address, but {printed!r}")
        url = printed.split()[-1]
        with urllib.request.urlopen(url, timeout=_SECONDS) as reply:
            page = reply.read().decode()
        if not all(part in page for part in ("<script", "<style", "WebSocket")):
            raise RuntimeError("the page of the explorer is not complete")
        try:
            urllib.request.urlopen(url.partition("?")[0], timeout=_SECONDS).close()
        except urllib.error.HTTPError as error:
            if error.code != 403:
                raise
        else:
            raise RuntimeError("the explorer accepts requests without its token")
        scene = asyncio.run(asyncio.wait_for(request_scene(url), _SECONDS))
        if process.poll() is not None:
            raise RuntimeError(f"the explorer ended with exit code {process.returncode}")
        process.send_signal(signal.SIGINT if sys.platform != "win32" else signal.SIGTERM)
        process.wait(_STOP_SECONDS)
    finally:
        process.kill()
    return f"a page of {len(page) // 1024} KiB, a scene of {len(scene) // 1024} KiB"


async def request_scene(url: str) -> bytes:
    """Return the first message of the websocket: the points and their embeddings."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    parts = urlsplit(url)
    request = HTTPRequest(
        f"ws://{parts.netloc}/ws?{parts.query}", headers={"Origin": f"http://{parts.netloc}"}
    )
    connection = await websocket_connect(request)
    await connection.write_message(json.dumps({"type": "scene", "page": "0123456789abcdef"}))
    message = await connection.read_message()
    connection.close()
    if not isinstance(message, bytes) or b'"scene"' not in message:
        raise RuntimeError(f"the first message is not a scene: {message!r:.80}")
    return message


CHECKS: list[Callable[[], str]] = [
    check_environment,
    check_imports,
    check_help,
    check_demo,
    check_shell,
    check_explorer,
]


def main() -> int:
    """Run all checks, which depend on the earlier ones; return the exit code."""
    for check in CHECKS:
        start, name = time.perf_counter(), check.__name__.removeprefix("check_")
        try:
            result = check()
        except Exception as error:
            print(f"{name}: FAILED: {type(error).__name__}: {error}", flush=True)
            return 1
        print(f"{name}: {result} ({time.perf_counter() - start:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
