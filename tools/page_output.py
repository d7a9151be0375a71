"""Write below each Python block of a page in docs/ what the block prints.

    python tools/page_output.py docs/tour.md docs/course/*.md     update the outputs
    python tools/page_output.py --check                           compare only; all pages

The blocks of a page run in one namespace, in the order of the page. A block "text" after a Python
block contains what it printed. There, `...` stands for any text. An output that still matches is
not changed, so that `...` written by hand remains.

Comments at the beginning of a page change how it runs:

    <!-- needs data -->   the page reads files from the folder MERCER_DATA, or shared/data next to
                          the repository; it is skipped if there is no such folder
    <!-- run shell -->    "sh" blocks run too, one command per line, and their output is compared
    <!-- numbers to 5 % -->   the relative tolerance of numbers, for results that depend on rounding
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
# A block of code, followed by its output if it has one.
_BLOCK = re.compile(
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.S | re.M,
)
_MARKERS = re.compile(r"\A(?:<!-- [\w %]+ -->\s*)+")
_TOLERANCE = re.compile(r"<!-- numbers to (\d+) % -->")
_TIME = re.compile(r"\d[\d.]*(?= (?:ms|s|us)\b)")
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+")  # not an integer


def pages() -> list[Path]:
    """Return all pages whose code runs: README, CONTRIBUTING, and docs/ with its subfolders."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    summary = ROOT / "benchmarks" / "SUMMARY.md"
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", summary, *docs]


def data_folder() -> Path:
    """Return the folder of external data sets, which need not exist."""
    return Path(os.environ.get("MERCER_DATA", ROOT.parent / "shared" / "data"))


def has_marker(text: str, marker: str) -> bool:
    """Return True if the comments at the beginning of a page contain a marker."""
    found = _MARKERS.match(text)
    return found is not None and f"<!-- {marker} -->" in found[0]


def python_blocks(text: str) -> list[re.Match[str]]:
    """Return the Python blocks of a page."""
    return [block for block in _BLOCK.finditer(text) if block["language"] == "python"]


def run_page(text: str, name: str) -> list[tuple[re.Match[str], str]]:
    """Run the blocks of a page and return each of them with the output that it printed."""
    namespace = {"__name__": "page"}
    languages = {"python", "sh"} if has_marker(text, "run shell") else {"python"}
    results = []
    with mock.patch.dict(os.environ, {"MERCER_DATA": str(data_folder())}):
        for block in _BLOCK.finditer(text):
            if block["language"] not in languages:
                continue
            if block["language"] == "sh":
                output = "".join(map(run_command, block["code"].splitlines()))
            else:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block["code"], name, "exec"), namespace)
                output = printed.getvalue()
            lines = [line.rstrip() for line in output.splitlines()]
            results.append((block, "\n".join(lines).strip("\n")))
    return results


def run_command(line: str) -> str:
    """Run a line of a shell and return its standard output and standard error.

    A `mercer` command without a pipe runs in this process, because starting Python takes most of
    the time.
    """
    words = shlex.split(line)
    code: str | int | None = None
    words, file = (words[:-2], words[-1]) if words[-2:-1] == [">"] else (words, None)
    if words[:1] != ["mercer"] or {"|", ">"} & set(words):
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env={**os.environ, "PATH": path},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        code, output = done.returncode, done.stdout
    else:
        from mercer.app.cli import main as mercer

        printed = io.StringIO()
        with (
            mock.patch.object(sys, "argv", words),
            open(file, "w", encoding="utf-8") if file else contextlib.nullcontext(printed) as out,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(printed),
        ):
            try:
                mercer()
            except SystemExit as end:
                code = end.code
        output = printed.getvalue()
    if code:
        raise RuntimeError(f"{line!r} ended with exit code {code}:\n{output}")
    return output


def tolerance(text: str) -> float:
    """Return the relative tolerance of numbers on a page: 1e-3, if the page states no other."""
    markers = _MARKERS.match(text)
    found = _TOLERANCE.search(markers[0]) if markers else None
    return int(found[1]) / 100 if found else 1e-3


def matches(shown: str, printed: str, rtol: float = 1e-3) -> bool:
    """Return True if the output on the page agrees with the printed text.

    `...` matches any text. Numbers with a decimal point may differ by a relative error of `rtol`,
    or if both are below 1e-7, because rounding errors depend on the processor. Times may differ.
    """
    lines, found = shown.strip("\n").splitlines(), printed.splitlines()
    if len(lines) == len(found) and all(map(partial(_same_line, rtol=rtol), lines, found)):
        return True
    return bool(shown) and _matches_wildcard(shown.strip("\n"), printed)


def _matches_wildcard(shown: str, printed: str) -> bool:
    parts = [re.escape(part) for part in shown.split("...")]
    return re.fullmatch(r".*?".join(parts), printed, re.S) is not None


def _same_line(shown: str, printed: str, rtol: float) -> bool:
    shown, printed = _TIME.sub("0", shown), _TIME.sub("0", printed)
    pattern = "".join(
        ".*?" if piece == "..." else f"({_NUMBER.pattern})" if _NUMBER.fullmatch(piece)
        else r"\s+".join(map(re.escape, re.split(r"\s+", piece)))
        for piece in re.split(rf"(\.\.\.|{_NUMBER.pattern})", shown)
    )  # fmt: skip
    found = re.fullmatch(pattern, printed)
    if found is None:
        return False
    numbers = map(float, _NUMBER.findall(shown))
    pairs = zip(numbers, map(float, found.groups()), strict=True)
    return all(math.isclose(a, b, rel_tol=rtol, abs_tol=2e-7) for a, b in pairs)


def updated(text: str, results: list[tuple[re.Match[str], str]]) -> str:
    """Return the text of the page with the present outputs."""
    pieces, end = [], 0
    for block, printed in results:
        pieces += [text[end : block.start()], f"```{block['language']}\n{block['code']}```\n"]
        shown = block["shown"] or ""
        if printed and matches(shown, printed, tolerance(text)):
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
        if not matches(shown := (block["shown"] or "").strip("\n"), printed, tolerance(text))
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
        if has_marker(text, "needs data") and not data_folder().is_dir():
            print(f"skipped {page.relative_to(ROOT)}: set MERCER_DATA to the folder of the data")
            continue
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
