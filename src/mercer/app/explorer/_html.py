"""HTML pages of the explorer: self-contained files, and the page that the server sends."""

from __future__ import annotations

import base64
import gzip
import html
import re
from functools import cache
from importlib.resources import files
from typing import Any

from ._serialize import pack

__all__ = ["adapter", "page", "script", "served_page", "style"]

_SCRIPT_FILES = ("wire", "query", "colours", "raster", "geometry", "pane", "view", "controls")


@cache
def script() -> str:
    """Return the JavaScript code of the view, a module without dependencies."""
    return "\n".join(_asset(f"{part}.js") for part in _SCRIPT_FILES)


@cache
def adapter() -> str:
    """Return the JavaScript code that connects the view to Panel."""
    return _asset("panel.js")


@cache
def style() -> str:
    """Return the style sheet of the view."""
    return _asset("view.css")


def page(message: dict[str, Any]) -> str:
    """Return a self-contained HTML page for a scene, given as the result of `Scene.to_message`.

    The data are compressed with gzip and encoded as base64, so that no text in the data can close
    the HTML element that contains them.
    """
    data = base64.b64encode(gzip.compress(pack(message), compresslevel=6, mtime=0)).decode()
    fields = {
        "title": html.escape(message["title"]),
        "style": style(),
        "script": script(),
        "data": data,
    }
    return _fill_template("page.html", fields)


def served_page(title: str, nonce: str) -> str:
    """Return the HTML page that the server sends, which connects to the server.

    Parameters
    ----------
    title : str
        Title of the page.
    nonce : str
        Random string that marks the script and the style for the Content-Security-Policy.
    """
    fields = {
        "title": html.escape(title),
        "style": style(),
        "script": script(),
        "connect": _asset("served.js"),
        "nonce": nonce,
    }
    return _fill_template("served.html", fields)


def _fill_template(name: str, fields: dict[str, str]) -> str:
    """Replace {{field}} in a template by the values of the fields."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], _asset(name))


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
