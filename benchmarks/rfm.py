"""Compare the accuracy of recursive feature machines on real tables with other models.

    python -m benchmarks.rfm [--sets concrete image] [--models mercer xRFM] [--max-rows 2000]
                             [--folds 5] [--results rfm.jsonl]

All models have their default parameters, except that scale-dependent models get standardised
columns, `KernelRidgeCV` a grid of gammas, and `GaussianProcessRegressor` an ARD kernel with noise.
Everything, including the standardisation, is fitted inside the training folds.  xRFM, which needs
validation data, gets a fifth of the training rows for that.  Sets with more than `--max-rows` rows
are reduced to a random sample.  The output is the error of each model on each set, the root mean
squared error in units of the standard deviation of the targets or the fraction of wrong labels,
averaged over the folds, with the time of the fit relative to gradient boosting; then the mean
ranks.  With --results, finished folds are stored in a file, and a later run continues there.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import KFold, StratifiedKFold

from ._problems import DATA, LEAKING_COLUMNS

REGRESSION = (
    *("airfoil", "autompg", "autos", "bike", "breastcancer", "concrete", "concreteslump"),
    *("energy", "forest", "gas", "housing", "kin40k", "machine", "parkinsons", "pendulum"),
    *("protein", "servo", "skillcraft", "sml", "solar", "stock", "yacht", "diabetes"),
)
CLASSES = (
    *("banana", "breast_cancer", "flare_solar", "german", "image", "splice", "thyroid", "titanic"),
    *("twonorm", "waveform", "iris", "wine", "breast_cancer_wisconsin", "digits"),
)
BASELINE = "HistGradientBoosting"


def load(name: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a random sample of the rows of a table, and their targets or labels."""
    from sklearn import datasets

    bundled = {"breast_cancer_wisconsin": "breast_cancer"}.get(name, name)
    if name in ("diabetes", "iris", "wine", "digits", "breast_cancer_wisconsin"):
        X, y = getattr(datasets, f"load_{bundled}")(return_X_y=True)
    elif name in CLASSES:
        arrays = np.load(DATA / "raetsch" / f"{name}.npz")
        X, y = arrays["X"], arrays["y"]
    else:
        table = np.loadtxt(DATA / f"regression/uci_datasets/{name}.csv.gz", delimiter=",")
        X, y = np.delete(table[:, :-1], LEAKING_COLUMNS.get(name, []), axis=1), table[:, -1]
    rows = np.random.default_rng(0).permutation(len(X))[:max_rows]
    return np.asarray(X, dtype=float)[rows], np.asarray(y)[rows]


def standardised(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def models(labels: bool, columns: int) -> dict[str, Callable[[], Any]]:
    """Return functions that create the models, by name."""
    from sklearn import ensemble
    from sklearn.svm import SVC, SVR

    import mercer
    from mercer.kernels import RBF, White

    kind = "Classifier" if labels else "Regressor"
    found: dict[str, Callable[[], Any]] = {
        "mercer": lambda: getattr(mercer, f"RFM{kind}")(),
        BASELINE: lambda: getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0),
        "RandomForest": lambda: getattr(ensemble, f"RandomForest{kind}")(random_state=0),
        "support vectors": lambda: standardised(SVC() if labels else SVR()),
        "xRFM": lambda: XRFM(labels),
    }
    if not labels:
        gammas = np.geomspace(1e-3, 1.0, 7)
        kernel = 1.0 * RBF([np.sqrt(columns)] * columns) + White(0.1)
        found["KernelRidgeCV"] = lambda: standardised(
            mercer.KernelRidgeCV(kernel="rbf", gammas=gammas, fit_intercept=True)
        )
        found["Gaussian process"] = lambda: standardised(
            mercer.GaussianProcessRegressor(kernel, normalize_y=True)
        )
    return found


class XRFM:
    """The package xrfm with its default parameters, and a fifth of the rows for validation."""

    def __init__(self, labels: bool) -> None:
        from xrfm import xRFM

        metric = "accuracy" if labels else "mse"
        self.labels, self.model = labels, xRFM(device="cpu", tuning_metric=metric, random_state=0)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.model_selection import train_test_split

        self.mean, self.std = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        X = ((X - self.mean) / self.std).astype(np.float32)
        stratify = (
            y
            if self.labels and np.bincount(np.unique(y, return_inverse=True)[1]).min() > 1
            else None
        )
        if self.labels:
            self.classes, y = np.unique(y, return_inverse=True)
        else:
            self.centre, self.unit = y.mean(), y.std()
            y = ((y - self.centre) / self.unit).astype(np.float32)[:, None]
        parts = train_test_split(X, y, test_size=0.2, random_state=0, stratify=stratify)
        self.model.fit(parts[0], parts[2], parts[1], parts[3])

    def predict(self, X: np.ndarray) -> np.ndarray:
        values = np.asarray(self.model.predict(((X - self.mean) / self.std).astype(np.float32)))
        if self.labels:
            return self.classes[values.ravel().astype(int)]
        return values.ravel() * self.unit + self.centre


def folds(name: str, y: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold if name in CLASSES else KFold
    return list(splitter(count, shuffle=True, random_state=0).split(y[:, None], y))


def evaluate(name: str, model: Any, X: np.ndarray, y: np.ndarray, train: Any, test: Any) -> tuple:
    """Return the test error and the seconds of the fit."""
    start = perf_counter()
    model.fit(X[train], y[train])
    seconds, predicted = perf_counter() - start, model.predict(X[test])
    if name in CLASSES:
        return float(np.mean(predicted != y[test])), seconds
    return float(np.sqrt(np.mean(np.square(predicted - y[test]))) / y[train].std()), seconds


def ranks(errors: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean rank of each model over the sets on which all models were evaluated."""
    names = sorted({model for row in errors.values() for model in row})
    complete = [[row[n] for n in names] for row in errors.values() if len(row) == len(names)]
    if not complete:
        return {}
    mean = np.mean([rankdata(np.round(row, 6)) for row in complete], axis=0)
    return dict(zip(names, mean.tolist(), strict=True))


def main() -> None:
    """Evaluate the models and print the tables."""
    import warnings

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=[*REGRESSION, *CLASSES])
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--max-rows", type=int, default=2000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done: dict[tuple[str, str, int], tuple[float, float]] = {}
    if options.results is not None and options.results.exists():
        for line in options.results.read_text().splitlines():
            entry = json.loads(line)
            done[entry["set"], entry["model"], entry["fold"]] = entry["error"], entry["seconds"]
    tables: dict[bool, dict[str, dict[str, float]]] = {True: {}, False: {}}
    for name in options.sets:
        X, y = load(name, options.max_rows)
        found, splits = models(name in CLASSES, X.shape[1]), folds(name, y, options.folds)
        results = defaultdict(list)
        for label, make in found.items():
            if options.models and label not in options.models:
                continue
            try:
                make()
            except ImportError:
                continue
            for fold, (train, test) in enumerate(splits):
                key = name, label, fold
                if key not in done:
                    done[key] = evaluate(name, make(), X, y, train, test)
                    if options.results is not None:
                        entry = dict(zip(("set", "model", "fold"), key, strict=True))
                        entry |= {"error": done[key][0], "seconds": done[key][1]}
                        with options.results.open("a") as file:
                            file.write(json.dumps(entry) + "\n")
                results[label].append(done[key])
        errors = {label: float(np.mean([e for e, _ in r])) for label, r in results.items()}
        times = {label: float(np.mean([s for _, s in r])) for label, r in results.items()}
        tables[name in CLASSES][name] = errors
        unit = times.get(BASELINE, np.nan)
        text = "  ".join(f"{m} {e:.4f} ({times[m] / unit:.1f}x)" for m, e in errors.items())
        print(f"{name:<24}{len(y):>6} rows  {text}", flush=True)
    for labels, title in ((False, "regression"), (True, "classification")):
        mean = sorted(ranks(tables[labels]).items(), key=lambda item: item[1])
        print(f"mean ranks, {title}:", ", ".join(f"{m} {rank:.2f}" for m, rank in mean))


if __name__ == "__main__":
    main()
