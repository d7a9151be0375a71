"""Run a command without network, except for the loopback interface.

    python tools/offline.py python script.py

On Linux, the command runs in a separate network namespace (`unshare --net`) if the system permits
it, so that no program can reach another computer.  Otherwise, Python processes refuse to connect to
other computers; programs that are not written in Python are not restricted.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

_NAMESPACES = (
    ["unshare", "--net"],
    ["unshare", "--user", "--map-root-user", "--net"],  # for users who are not root
)
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # from linux/sockios.h and linux/if.h

# Python imports the module sitecustomize when it starts.
_GUARD = """
import socket

def _refuse(event, arguments):
    if event == "socket.getaddrinfo" and arguments[0] not in (None, "", "localhost", "127.0.0.1"):
        raise ConnectionRefusedError(f"offline: {arguments[0]}")
    if event == "socket.connect" and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
        host = arguments[1][0]
        if host not in ("localhost", "::1") and not host.startswith("127."):
            raise ConnectionRefusedError(f"offline: {host}")

__import__("sys").addaudithook(_refuse)
"""


def namespace() -> list[str] | None:
    """Return the command that starts a network namespace, or None if it is not permitted."""
    for command in _NAMESPACES:
        if shutil.which(command[0]) is None:
            continue
        start = [*command, sys.executable, __file__, "--inside", "true"]
        if subprocess.run(start, capture_output=True, check=False).returncode == 0:
            return command
    return None


def start_loopback() -> None:
    """Start the loopback interface, which is down in a new network namespace."""
    import fcntl  # not on Windows, which has no network namespaces

    with socket.socket() as any_socket:
        request = struct.pack("16sh", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket.fileno(), _SIOCSIFFLAGS, request)


def run(command: list[str], prefix: list[str] | None) -> int:
    """Run a command in a network namespace, or with the guard if `prefix` is None."""
    if prefix is not None:
        inside = [*prefix, sys.executable, __file__, "--inside", *command]
        return subprocess.run(inside, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(_GUARD, "utf-8")
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
        return done.returncode


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "--inside":
        start_loopback()
        os.execvp(arguments[1], arguments[1:])
    prefix = namespace()
    kind = "a network namespace" if prefix else "Python processes that refuse connections"
    print(f"offline: by {kind}", file=sys.stderr, flush=True)
    return run(arguments, prefix)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
