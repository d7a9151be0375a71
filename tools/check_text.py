"""Check names and prose: phrases that we do not use, recurring names, first lines of docstrings.

Run by `make lint`; the reasons are in the glossary of CONTRIBUTING.md.  Prints one line per
finding, as `file:line: message`, and exits with status 1 if there is one.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mercer"
PROSE = {".md", ".rst", ".html", ".js"}

# A phrase, and what to write in its place.
PHRASES = {
    r"\bTell (?:whether|which|how)\b": "'Whether ...' or 'Return True if ...'",
    r"\bReturns? (?:what|who)\b": "the name of what is returned",
    r"(?<!there )\b(?:is|are) none\b(?! of|,)": "'is not a ...'",
    r"(?<!there )\bis no (?:kernel|matrix|number|array|point|model|file|name)\b": "'is not a'",
    r"\bso (?:many|much)\b(?!.*\bthat\b)(?! as)": "the name of the quantity, or 'that many'",
    r"\bbeside\b": "'besides', 'in addition to', 'next to' or 'relative to'",
    r"\bof (?:its|their|one's) own\b(?! \w)": "'separate', 'its own ...' or 'new'",
    r"\b(?:is|are|was|were|be) told\b|\bin words\b|\bwithout a word\b": "'reported' or 'silently'",
    r"\b(?:nobody|somebody|anybody|everybody|whoever)\b": "the thing or the user that is meant",
    r"\bof (?:scikit-learn|Dask|NumPy|SciPy|LIBSVM|Newton)'s(?=[.,;:)])": "'scikit-learn's X'",
    r"\bthe way back\b": "'inverse transform'",
    r"\ba share of\b": "'a fraction of'",
    r"\bmend(?:s|ed|ing)?\b": "'fix'",
    r"\bquick(?:er|est)\b": "'faster', 'fastest'",
    r"\b(?:is|was) left over\b": "'residual' or 'remainder'",
    r"\bat the door\b": "'during validation'",
}
COMPILED = [(re.compile(pattern), advice) for pattern, advice in PHRASES.items()]
EXEMPT = {"CONTRIBUTING.md", "tools/check_text.py"}  # they quote the phrases


def tracked() -> list[Path]:
    """Return the files of the repository, as git lists them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def prose_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of comments and strings, or of all lines of a text file."""
    text = path.read_text("utf-8")
    if path.suffix in PROSE:
        yield from enumerate(text.splitlines(), 1)
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def phrases(paths: list[Path]) -> Iterator[str]:
    """Yield the places where a phrase of `PHRASES` occurs."""
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in PROSE | {".py"} or name in EXEMPT:
            continue
        for number, line in prose_lines(path):
            for pattern, advice in COMPILED:
                if match := pattern.search(line):
                    yield f"{name}:{number}: {match.group()!r}: write {advice}"


def recurring_names(paths: list[Path]) -> Iterator[str]:
    """Yield module and class names that occur more than once in the package."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        if path.suffix != ".py" or PACKAGE not in path.parents:
            continue
        name = path.relative_to(ROOT).as_posix()
        if path.stem not in {"__init__", "__main__"}:
            found["module", path.stem].append(f"{name}:1")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found["class", node.name].append(f"{name}:{node.lineno}")
    for (kind, name), places in found.items():
        if len(places) > 1:
            yield f"{places[0]}: {kind} name {name!r} is also used in {', '.join(places[1:])}"


def first_lines(paths: list[Path]) -> Iterator[str]:
    """Yield public docstrings that do not begin with a plain sentence."""
    for path in paths:
        if path.suffix != ".py" or PACKAGE not in path.parents:
            continue
        name = path.relative_to(ROOT).as_posix()
        for node in _public(ast.parse(path.read_text("utf-8"))):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if not first:
                continue  # ruff reports missing docstrings
            where = f"{name}:{getattr(node, 'lineno', 1)}"
            if not first.endswith("."):
                yield f"{where}: the first line of a docstring is one sentence: {first!r}"
            elif not re.match(r"[A-ZÀ-Ý][\w'’-]+|An? |`", first):
                yield f"{where}: a docstring begins with a word, not a formula: {first!r}"


def _public(tree: ast.Module) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Yield a module, its public classes and functions, and the public methods of the classes."""
    yield tree
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            for part in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                    yield part


def main() -> int:
    """Print all findings; return the exit status."""
    paths = tracked()
    findings = [*phrases(paths), *recurring_names(paths), *first_lines(paths)]
    for finding in findings:
        print(finding)
    print(f"check_text: {len(findings)} findings in {len(paths)} files")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
