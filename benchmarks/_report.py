"""Results for people: one table over every suite that has been run, and one plot."""

from __future__ import annotations

import json
import platform
import statistics
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ._suite import BASELINE, THREADS

_HEAD = f"""# Results

Written by `python -m benchmarks`; [the README of the benchmarks]({{readme}}) defines every column.
A ratio is the time of the contender over the time of {BASELINE}: the median over rounds and, in
brackets, the least and the greatest. Above 1, {BASELINE} is faster. `limit` is the GEMM of the
distances and the exp alone; `limit, with products` adds the GEMM with V.

| suite | case | contender | ratio | rounds | scratch / MiB | relative error | note |
|---|---|---|---|---|---|---|---|
"""


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


def _row(suite: str, case: str, name: str, record: dict) -> str:
    ratio = "" if record["ratio"] is None else "{:.3g} ({:.3g}–{:.3g})".format(*record["ratio"])
    scratch = record["scratch"][0] if record["scratch"] else None
    memory = "" if scratch is None else f"{scratch / 2**20:.0f}"
    error = f"{record['error']:.0e}" if "error" in record else ""
    rounds = str(len(record["seconds"]) or "")
    cells = (suite, case, name, ratio, rounds, memory, error, record["note"].replace("|", "/"))
    return f"| {' | '.join(cells)} |"


def write_table(folder: Path) -> str:
    """Write README.md from all JSON files in the folder, and return it."""
    rows, settings = [], []
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text())
        for case in run["cases"]:
            records = case["contenders"].items()
            rows += [_row(path.stem, case["name"], *record) for record in records]
        env = run["environment"]
        versions = ", ".join(f"{name} {number}" for name, number in env["versions"].items())
        chip = f"{env['threads']} threads of {env['cpu']} ({' '.join(env['flags'])})"
        blas = ", ".join(env["BLAS"])
        settings.append(f"* `{path.stem}`: {run['title']}. On {chip}; {versions}; {blas}.")
    plot = ["", "![cost of K @ V against n](cost.png)"] if (folder / "cost.png").exists() else []
    readme = "../" * (2 if folder.name == "quick" else 1) + "README.md"
    text = _HEAD.format(readme=readme) + "\n".join([*rows, *plot, "", *settings]) + "\n"
    (folder / "README.md").write_text(text)
    return text


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
