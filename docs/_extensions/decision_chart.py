"""Sphinx extension: draw the tables of a page as a decision chart.

A page contains the comment `<!-- decision chart: QUESTION -->`. The comment is replaced by a
drawing of the tables below it: each section is a branch, and each row of its first table is a leaf
with a condition (first column) and the names to use (second column), which are links to the API.
The tables are the only source, so that chart and text agree, and the page is complete without the
chart.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from html import escape

from api_links import page_of

_MARK = re.compile(r"^<!-- decision chart: (.+?) -->$", re.M)
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.S | re.M)
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|", re.M)
_NAMES_TITLES = {"use", "kernel"}  # of the second column of a table that is drawn

# Sizes in units of the drawing, which is scaled to the width of the page.
_WIDTH, _LINE, _GAP = 960, 17, 9
_ROOT_X, _TASK_X, _CONDITION_X, _NAMES_X = 4, 122, 312, 630
_TASK_CHARS, _CONDITION_CHARS, _NAMES_CHARS = 22, 40, 40


@dataclass(frozen=True)
class Leaf:
    """A condition, and the names to use under this condition."""

    condition: str
    names: list[str]

    @property
    def height(self) -> int:
        lines = max(len(wrapped(self.condition, _CONDITION_CHARS)), len(self.name_lines()))
        return lines * _LINE + _GAP

    def name_lines(self) -> list[list[str]]:
        """Return the names, as many per line as fit."""
        lines: list[list[str]] = [[]]
        for name in self.names:
            if lines[-1] and len(", ".join([*lines[-1], name])) > _NAMES_CHARS:
                lines.append([])
            lines[-1].append(name)
        return lines


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) or [""]


def branches(text: str) -> dict[str, list[Leaf]]:
    """Return the sections that have a table with names in its second column."""
    found = {}
    for title, body in _SECTION.findall(text):
        head, *rows = _ROW.findall(body) or [("", "")]
        leaves = [
            Leaf(plain(condition), names)
            for condition, use in rows
            if head[1] in _NAMES_TITLES
            if (names := [name for name in re.findall(r"`(\w+)", use) if address(name)])
        ]
        if leaves:
            found[title] = leaves
    return found


def plain(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")


def address(name: str) -> str | None:
    """Return the address of a name's page in the API, relative to a page in docs/howto."""
    page = page_of(name)
    return page and page.replace("docs/", "../", 1) + ".html"


def draw(question: str, tree: dict[str, list[Leaf]]) -> str:
    """Return the chart as inline SVG; its colours follow the theme of the page."""
    parts: list[str] = []
    y = 12
    middles = []
    for task, leaves in tree.items():
        top = y
        joints = []
        for leaf in leaves:
            middle = y + leaf.height / 2
            joints.append(middle)
            parts += [
                text_block(wrapped(leaf.condition, _CONDITION_CHARS), _CONDITION_X, middle),
                f'<path class="line" d="M{_NAMES_X - 22} {middle}h14"/>',
                names_block(leaf, middle),
            ]
            y += leaf.height
        middle = (top + y) / 2
        middles.append(middle)
        x = _CONDITION_X - 22
        parts.append(f'<path class="line" d="M{x} {joints[0]}V{joints[-1]}"/>')
        parts += [f'<path class="line" d="M{x} {joint}h14"/>' for joint in joints]
        parts.append(box(wrapped(task, _TASK_CHARS), _TASK_X, middle, x - _TASK_X))
        y += 12
    x = _TASK_X - 14
    parts.append(f'<path class="line" d="M{x} {middles[0]}V{middles[-1]}"/>')
    parts += [f'<path class="line" d="M{x} {middle}h14"/>' for middle in middles]
    parts.append(box(wrapped(question, 14), _ROOT_X, (middles[0] + middles[-1]) / 2, x - _ROOT_X))
    return (
        f'<svg class="decision-chart" viewBox="0 0 {_WIDTH} {y}" role="group" '
        f'aria-label="Decision chart: {escape(question)}">' + "".join(parts) + "</svg>"
    )


def text_block(lines: list[str], x: float, middle: float, kind: str = "condition") -> str:
    first = middle - (len(lines) - 1) * _LINE / 2 + 4
    spans = [
        f'<tspan x="{x}" y="{first + i * _LINE}">{escape(line)}</tspan>'
        for i, line in enumerate(lines)
    ]
    return f'<text class="{kind}">{"".join(spans)}</text>'


def names_block(leaf: Leaf, middle: float) -> str:
    lines = leaf.name_lines()
    first = middle - (len(lines) - 1) * _LINE / 2 + 4
    spans = []
    for i, names in enumerate(lines):
        links = [f'<a href="{address(name)}">{escape(name)}</a>' for name in names]
        spans.append(f'<tspan x="{_NAMES_X}" y="{first + i * _LINE}">{", ".join(links)}</tspan>')
    return f'<text class="names">{"".join(spans)}</text>'


def box(lines: list[str], x: float, middle: float, width: float) -> str:
    height = len(lines) * _LINE + 14
    frame = f'<rect x="{x}" y="{middle - height / 2}" width="{width}" height="{height}" rx="6"/>'
    return frame + text_block(lines, x + 8, middle, "task")


def insert_chart(app, docname, source):
    """Replace the comment of a page by the chart of its tables."""
    if mark := _MARK.search(source[0]):
        chart = draw(mark[1], branches(source[0]))
        block = f"```{{raw}} html\n<div class='decision-chart-scroll'>{chart}</div>\n```"
        source[0] = source[0].replace(mark[0], block)


def setup(app):
    """Connect the function above to Sphinx."""
    app.connect("source-read", insert_chart)
    return {"parallel_read_safe": True}
