"""The view as text, and a scene in one file that needs no network."""

from __future__ import annotations

import base64
import gzip
import html
import re
from functools import cache
from importlib.resources import files
from typing import Any

from ._wire import pack

__all__ = ["adapter", "page", "script", "served_page", "style"]

_PARTS = ("wire", "query", "colours", "raster", "geometry", "pane", "view", "controls")


@cache
def script() -> str:
    """Return the view, a module of JavaScript without any other."""
    return "\n".join(_asset(f"{part}.js") for part in _PARTS)


@cache
def adapter() -> str:
    """Return what makes a component of Panel of the view."""
    return _asset("panel.js")


@cache
def style() -> str:
    """Return the looks of the view."""
    return _asset("view.css")


def page(told: dict[str, Any]) -> str:
    """Return a scene, as `Scene.told` has it, as a page of its own.

    Data travel as base64 of gzip, so that no text in them can end the element they stand in.
    """
    data = base64.b64encode(gzip.compress(pack(told), compresslevel=6, mtime=0)).decode()
    fields = {
        "title": html.escape(told["title"]),
        "style": style(),
        "script": script(),
        "data": data,
    }
    return _filled("page.html", fields)


def served_page(title: str, nonce: str) -> str:
    """Return the page of the server: the view, and the script that connects it.

    Parameters
    ----------
    title : str
        Title of the page.
    nonce : str
        The random word that marks the script and the style for the Content-Security-Policy.
    """
    fields = {
        "title": html.escape(title),
        "style": style(),
        "script": script(),
        "connect": _asset("served.js"),
        "nonce": nonce,
    }
    return _filled("served.html", fields)


def _filled(name: str, fields: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: fields[found[1]], _asset(name))


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
