"""Every estimator that scikit-learn has too, by n and d: one table of ratios, none below 1 wanted.

Cells beyond what the peer does in about a minute, or beyond a K of 1 GB where it stores several,
are left out and shown as a dash.
"""

from __future__ import annotations

from ._models import MODELS, case, suite
from ._suite import Case

SIZES = (100, 300, 1000, 3000, 10_000, 20_000)
COLUMNS = (2, 10, 50)
MOST = {  # points that the peer is given
    "GaussianProcessRegressor": 1000,
    "GaussianProcessClassifier": 1000,
    "KernelRidge": 10_000,
    "KernelPCA": 10_000,
}
QUERIES = 1000


def cases(quick: bool) -> list[Case]:
    """A function of noisy waves, cut into two classes for classifiers."""
    found = []
    for model, rule in MODELS.items():
        for n in (300,) if quick else SIZES:
            for d in COLUMNS[:1] if quick else COLUMNS:
                if n > MOST.get(model, SIZES[-1]):
                    continue
                inputs = {"name": "waves", "n": n, "d": d, "noise": 0.3, "queries": QUERIES}
                inputs |= {"classes": 2} if rule.learns == "labels" else {}
                for job in ("fit", QUERIES):
                    verb = "fit" if job == "fit" else rule.verb
                    name, words = f"{model}.{verb} n={n} d={d}", f"`{model}.{verb}`, all n and d"
                    found.append(case(name, model, job, inputs, family=words))
    return found


def table(cases: list[dict]) -> str:
    """Ratios, and the peer's memory over ours, in rows of estimators and columns of n and d."""
    sizes = sorted({(c["inputs"]["n"], c["inputs"]["d"]) for c in cases})
    text = ""
    for what, cell in (("time", _time), ("memory", _memory)):
        rows: dict[str, dict] = {}
        for one in cases:
            row = rows.setdefault(one["name"].partition(" ")[0], dict.fromkeys(sizes, "–"))
            row[one["inputs"]["n"], one["inputs"]["d"]] = cell(**one["contenders"])
        text += f"| {what}: theirs / ours | {' | '.join(f'{n}, {d}' for n, d in sizes)} |\n"
        text += f"|---|{'---|' * len(sizes)}\n"
        text += "".join(f"| {name} | {' | '.join(row.values())} |\n" for name, row in rows.items())
        text += "\n"
    left = ", ".join(f"{model} beyond {n}" for model, n in MOST.items())
    ratios = {c["name"]: c["contenders"]["scikit-learn"]["ratio"] for c in cases}
    low = [name for name, ratio in ratios.items() if ratio and ratio[0] < 1.0]
    text += f"Columns are n, d. Left out, as too long for the peer: {left}.\n"
    return text + f"{len(low)} of {len(cases)} cells below 1: {', '.join(low) or 'none'}.\n"


def _time(mercer: dict, **peer: dict) -> str:
    ratio = peer["scikit-learn"]["ratio"]
    return f"{ratio[0]:.2g}" if ratio else "not comparable"


def _memory(mercer: dict, **peer: dict) -> str:
    first = [r["scratch"][0] if r["scratch"] else None for r in (peer["scikit-learn"], mercer)]
    if None in first:
        return ""
    theirs, ours = (max(scratch, 2**20) for scratch in first)  # less is an allocator's noise
    return f"{theirs / ours:.2g}"


SUITE = suite("every estimator by n and d", cases, remarks=table, slow=10.0)
