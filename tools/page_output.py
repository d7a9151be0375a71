"""Write below each Python block of a page in docs/ what the block prints.

    python tools/page_output.py docs/tour.md docs/course/*.md     update the outputs
    python tools/page_output.py --check                           compare only; all pages

The blocks of a page run in one namespace, in the order of the page. A block "text" after a Python
block contains what it printed. There, `...` stands for any text. An output that still matches is
not changed, so that `...` written by hand remains.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A Python block, followed by its output if it has one.
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.S | re.M
)
_TIME = re.compile(r"\d[\d.]*(?= (?:ms|s|us)\b)")
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+")  # not an integer


def pages() -> list[Path]:
    """Return all pages whose code runs: README, CONTRIBUTING, and docs/ with its subfolders."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    summary = ROOT / "benchmarks" / "SUMMARY.md"
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", summary, *docs]


def run_page(text: str, name: str) -> list[tuple[re.Match[str], str]]:
    """Run the Python blocks of a page and return each of them with what it printed."""
    namespace = {"__name__": "page"}
    results = []
    for block in _BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], name, "exec"), namespace)
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        results.append((block, "\n".join(lines).strip("\n")))
    return results


def matches(shown: str, printed: str) -> bool:
    """Return True if the output on the page agrees with the printed text.

    `...` matches any text. Numbers with a decimal point may differ by a relative error of 1e-3, or
    if both are below 1e-7, because rounding errors depend on the processor. Times may differ.
    """
    lines, found = shown.strip("\n").splitlines(), printed.splitlines()
    if len(lines) == len(found) and all(map(_same_line, lines, found)):
        return True
    return bool(shown) and _matches_wildcard(shown.strip("\n"), printed)


def _matches_wildcard(shown: str, printed: str) -> bool:
    parts = [re.escape(part) for part in shown.split("...")]
    return re.fullmatch(r".*?".join(parts), printed, re.S) is not None


def _same_line(shown: str, printed: str) -> bool:
    if "..." in shown:
        return _matches_wildcard(shown, printed)
    shown, printed = _TIME.sub("0", shown), _TIME.sub("0", printed)
    if _NUMBER.sub("#", shown).split() != _NUMBER.sub("#", printed).split():
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=2e-7) for a, b in pairs)


def updated(text: str, results: list[tuple[re.Match[str], str]]) -> str:
    """Return the text of the page with the present outputs."""
    pieces, end = [], 0
    for block, printed in results:
        pieces += [text[end : block.start()], f"```python\n{block['code']}```\n"]
        shown = block["shown"] or ""
        if printed and matches(shown, printed):
            printed = shown.strip("\n")
        if printed:
            pieces.append(f"\n```text\n{printed}\n```\n")
        end = block.end()
    return "".join([*pieces, text[end:]])


def outdated(text: str, results: list[tuple[re.Match[str], str]]) -> list[str]:
    """Return a message for each block whose output on the page is missing or wrong."""
    return [
        f"line {text[: block.start()].count(chr(10)) + 1}: the page shows\n{shown}\nbut the code "
        f"prints\n{printed}"
        for block, printed in results
        if not matches(shown := (block["shown"] or "").strip("\n"), printed)
    ]


def main() -> int:
    """Update or check the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("pages", nargs="*", type=Path, help="default: all pages")
    arguments = parser.parse_args()
    problems = 0
    for page in [path.resolve() for path in arguments.pages] or pages():
        text = page.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ.setdefault("MPLBACKEND", "Agg")
            results = run_page(text, page.name)
        if arguments.check:
            for message in outdated(text, results):
                problems += 1
                print(f"{page.relative_to(ROOT)}, {message}\n")
        elif (new := updated(text, results)) != text:
            page.write_text(new, "utf-8")
            print(f"updated {page.relative_to(ROOT)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
