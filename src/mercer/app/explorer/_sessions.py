"""Sessions: the state of a page of the explorer as a JSON document.

The page writes and reads sessions (session.js).  Python only checks that a file is a session, and
computes the fingerprint by which a session recognises its data.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path

from ._serialize import Message, pack

_SESSION_KIND = "explorer session"
_SESSION_VERSION = 1
_MAX_SESSION_BYTES = 50_000_000  # the page does not read larger sessions either


def read_session(path: str | PathLike[str]) -> str:
    """Read a session that a page of the explorer saved.

    Parameters
    ----------
    path : str or path
        The JSON file of the session.

    Returns
    -------
    str
        The session as JSON.  The page checks its contents when it shows them.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_SESSION_BYTES:
        raise ValueError(f"{path} is too large to be a session of the explorer")
    try:
        document = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("mercer") != _SESSION_KIND:
        raise ValueError(
            f"{path} is not a session of the explorer; save one with Session > Save session on a "
            f"page of the explorer"
        )
    if document.get("version") != _SESSION_VERSION:
        raise ValueError(
            f"{path} is a session of version {document.get('version')!r}, but this version of "
            f"mercer reads version {_SESSION_VERSION}; use the version of mercer that wrote it"
        )
    return json.dumps(document)


def column_fingerprint(columns: list[Message]) -> str:
    """Return a hash of the names and values of columns, given as results of `column_message`."""
    keys = ("name", "type", "data", "values", "missing", "divisor", "step")
    digest = hashlib.blake2b(digest_size=8)
    for column in columns:
        digest.update(pack({key: column.get(key) for key in keys}))
    return digest.hexdigest()
