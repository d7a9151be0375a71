"""Results for people: tables from the files of all suites that have been run, and one plot."""

from __future__ import annotations

import json
import platform
import re
import statistics
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from . import ACCURACY
from ._suite import BASELINE, THREADS

_HEAD = f"""# Results

Written by `python -m benchmarks`; [the README of the benchmarks]({{readme}}) defines every column.
A ratio is the time of the contender over the time of {BASELINE}. Above 1, {BASELINE} is faster.
`limit` is the GEMM of the distances and the exp alone; `limit, with products` adds the GEMM with V.

## Families of problems

"""
_CASES = """
## Cases

The median ratio over rounds and, in brackets, the least and the greatest.

| suite | case | contender | ratio | rounds | scratch / MiB | relative error | note |
|---|---|---|---|---|---|---|---|
"""
_FAMILIES = """| | against | problems | median | worst | memory beside inputs and outputs |
|---|---|---|---|---|---|
"""
MARKS = ("<!-- speed -->\n", "<!-- /speed -->\n")  # around a table that `--publish` writes


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "–"


def environment() -> dict:
    """Return what a ratio may depend on, and nothing that names the machine or its folders."""
    from threadpoolctl import threadpool_info

    source = Path("/proc/cpuinfo")
    lines = source.read_text().splitlines() if source.exists() else []
    cpu = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(cpu.get("flags", cpu.get("Features", "")).split())
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    keys = ("internal_api", "version", "architecture")
    packages = ("mercer", "numpy", "scipy", "numba", "scikit-learn", "pykeops")
    return {
        "cpu": cpu.get("model name", platform.machine()),
        "flags": sorted(flags & {"avx", "avx2", "fma", "avx512f", "avx512dq", "asimd", "sve"}),
        "threads": THREADS,
        "BLAS": sorted({" ".join(str(pool.get(key, "")) for key in keys) for pool in pools}),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in packages},
    }


# ------------------------------------------------------------------ families: median and worst


class Summary(NamedTuple):
    """A family of problems against one peer."""

    suite: str
    family: str
    peer: str
    ratios: list[float]
    worst: str  # the case with the least ratio
    ours: list[float]  # scratch in MiB, where it is known
    theirs: list[float]

    def row(self) -> str:
        problems = f"{len(self.ratios)}"
        median, least = statistics.median(self.ratios), min(self.ratios)
        memory = ""
        if self.ours:
            memory = f"{statistics.median(self.ours):.0f} MiB"
            memory += f", theirs {statistics.median(self.theirs):.0f}" if self.theirs else ""
        cells = (self.family, self.peer, problems, times(median), f"{times(least)} ({self.worst})")
        return f"| {' | '.join((*cells, memory))} |\n"


def times(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:.2g}×"


def summaries(name: str, run: dict) -> Iterator[Summary]:
    """Yield what a run of a suite says of each of its families, peer by peer.

    Of several candidates, "peer, setting", the fastest that was accurate stands for the peer.
    """
    found: dict[tuple[str, str], list[tuple[float, str, dict, dict]]] = {}
    for case in run["cases"]:
        best: dict[str, dict] = {}
        for contender, record in case["contenders"].items():
            if contender == BASELINE or not record.get("ratio"):
                continue
            peer = contender.partition(",")[0] if record.get("candidate") else contender
            if peer not in best or record["ratio"][0] < best[peer]["ratio"][0]:
                best[peer] = record
        for peer, record in best.items():
            key = case.get("family") or run["title"], peer
            ours = case["contenders"][BASELINE]
            found.setdefault(key, []).append((record["ratio"][0], case["name"], ours, record))
    for (family, peer), rows in found.items():
        worst = min(rows, key=lambda row: row[0])[1]
        ours, theirs = (_scratch([row[side] for row in rows]) for side in (2, 3))
        yield Summary(name, family, peer, [row[0] for row in rows], worst, ours, theirs)


def _scratch(records: list[dict]) -> list[float]:
    first = [record["scratch"][0] for record in records if record["scratch"]]
    return [scratch / 2**20 for scratch in first if scratch is not None]


def speed(folder: Path, suites: tuple[str, ...] = (), peers_only: bool = False) -> str:
    """The table of medians and worst ratios, of all suites about time that were run or of some."""
    text = _FAMILIES
    for name, run in _runs(folder):
        if name in ACCURACY or (suites and name not in suites):
            continue
        for summary in summaries(name, run):
            own = summary.peer.startswith((BASELINE, "limit"))
            text += summary.row() if not (own and peers_only) else ""
    return text


def publish(page: Path, table: str) -> None:
    """Put a table between the marks of a page."""
    begin, end = MARKS
    pattern = re.compile(f"({re.escape(begin)}).*?({re.escape(end)})", re.DOTALL)
    text, count = pattern.subn(lambda m: m[1] + table + m[2], page.read_text("utf-8"))
    if count != 1:
        raise ValueError(f"{page.name} has {count} places for the table, not one")
    page.write_text(text, "utf-8")


def _runs(folder: Path) -> Iterator[tuple[str, dict]]:
    for path in sorted(folder.glob("*.json")):
        yield path.stem, json.loads(path.read_text())


# ------------------------------------------------------------------------------ every record


def _row(suite: str, case: str, name: str, record: dict) -> str:
    ratio = "" if record["ratio"] is None else "{:.3g} ({:.3g}–{:.3g})".format(*record["ratio"])
    scratch = record["scratch"][0] if record["scratch"] else None
    memory = "" if scratch is None else f"{scratch / 2**20:.0f}"
    error = f"{record['error']:.0e}" if "error" in record else ""
    rounds = str(len(record["seconds"]) or "")
    cells = (suite, case, name, ratio, rounds, memory, error, record["note"].replace("|", "/"))
    return f"| {' | '.join(cells)} |"


def write_table(folder: Path) -> str:
    """Write README.md from all JSON files in the folder, and return its table of families."""
    rows, texts, settings = [], [], []
    for name, run in _runs(folder):
        for case in run["cases"]:
            rows += [_row(name, case["name"], *record) for record in case["contenders"].items()]
        if run.get("text"):
            texts += [f"\n## {name}\n\n{run['text']}"]
        env = run["environment"]
        versions = ", ".join(f"{name} {number}" for name, number in env["versions"].items())
        chip = f"{env['threads']} threads of {env['cpu']} ({' '.join(env['flags'])})"
        blas = ", ".join(env["BLAS"])
        settings.append(f"* `{name}`: {run['title']}. On {chip}; {versions}; {blas}.")
    plot = ["", "![cost of K @ V against n](cost.png)"] if (folder / "cost.png").exists() else []
    inside = folder.name == "results"
    head = _HEAD.format(readme="../README.md" if inside else "../../benchmarks/README.md")
    table = speed(folder)
    body = "\n".join([*rows, *texts, *plot, "", *settings])
    (folder / "README.md").write_text(f"{head}{table}{_CASES}{body}\n", "utf-8")
    return table


def draw_cost(run: dict, path: Path) -> None:
    """Plot the cost against n on log axes; the unit is mercer's cost at the smallest n.

    Every point is (median ratio at n) × (mercer at n) / (mercer at the smallest n), so that what
    is drawn between two curves is what the table says.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curves: dict[str, list[tuple[int, float]]] = {}
    for case in run["cases"]:
        ours = case["contenders"][BASELINE]
        for name, record in case["contenders"].items():
            if record["ratio"] is not None:
                cost = record["ratio"][0] * statistics.median(ours["seconds"])
                curves.setdefault(name, []).append((case["inputs"]["n"], cost))
    if BASELINE not in curves:
        return
    smallest, unit = curves[BASELINE][0]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        style = {"limit": "k:", "limit, with products": "k-.", BASELINE: "o-"}.get(name, "s--")
        axes.loglog(*zip(*((n, c / unit) for n, c in points), strict=True), style, label=name)
    axes.set(xlabel="n", ylabel=f"cost of K @ V ({BASELINE} at n = {smallest} is 1)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    FigureCanvasAgg(figure).print_png(path)
