"""Coverage and width of prediction intervals on 20 data sets: python -m benchmarks.intervals.

Each set is split at random several times into at most 200 training rows and at most 1000 test rows.
Columns and targets are standardised with the training rows.  The contenders are

* the jackknife+ of `KernelRidgeCV.predict_interval`, where α and γ are chosen by leave-one-out from
  the same training rows,
* the jackknife+ of `KernelRidge` with α = 0.1 and gamma="median" ("fixed"),
* ten-fold CV+ of `KernelRidgeCV`, where α and γ are chosen again in each fold ("folds"),
* ten-fold CV+ of MAPIE around `KernelRidge` with the same α and γ, if MAPIE is installed,
* the Gaussian intervals of `GaussianProcessRegressor`, whose noise and length scale maximise the
  likelihood.

The table lists the mean coverage over the splits, at three levels, and the mean width at 90 %
relative to the jackknife+.  A star marks a mean coverage that is more than two standard errors
below the level; a standard error is the standard deviation over splits divided by the square root
of their number.  A final line compares the time of 1000 intervals with that of a fit to 5000 rows.
"""

from __future__ import annotations

import gzip
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from statistics import NormalDist
from time import process_time

import numpy as np

from ._problems import DATA

UCI = "airfoil autompg autos breastcancer concrete concreteslump energy fertility forest housing "
UCI += "machine pendulum servo skillcraft stock wine yacht"
GENERATED = ("friedman", "heteroscedastic", "heavy tails")
LEVELS = np.array([0.8, 0.9, 0.95])
GAMMAS, ALPHAS = np.geomspace(1e-3, 1.0, 7), np.geomspace(1e-4, 10.0, 11)
MAX_TRAIN, MAX_TEST, SPLITS = 200, 1000, 20
N_TIMED, N_QUERIES = 5000, 1000


def generate(name: str, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and targets of a generated set."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 10))
    if name == "friedman":
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        return X, f + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
    X = X[:, :2]
    noise = X[:, 0] * rng.normal(size=n) if name == "heteroscedastic" else rng.standard_t(3, n)
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * noise


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and targets of a set."""
    if name in GENERATED:
        return generate(name)
    with gzip.open(DATA / "regression" / "uci_datasets" / f"{name}.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    return table[:, :-1], table[:, -1]


def splits(name: str, count: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield standardised training and test points and targets."""
    X, y = load(name)
    n = min(MAX_TRAIN, len(y) // 2)
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n], order[n : n + MAX_TEST]
        spread = np.where(X[train].std(axis=0) > 0, X[train].std(axis=0), 1.0)
        P, t = (X - X[train].mean(axis=0)) / spread, (y - y[train].mean()) / y[train].std()
        yield P[train], t[train], P[test], t[test]


def jackknife(X, y, Z) -> tuple[np.ndarray, object]:
    """Return the intervals of the jackknife+ at all levels, and the model."""
    from mercer import KernelRidgeCV

    model = KernelRidgeCV(ALPHAS, kernel="rbf", gammas=GAMMAS, fit_intercept=True).fit(X, y)
    return np.stack([model.predict_interval(Z, level) for level in LEVELS]), model


def fixed(X, y, Z, _) -> np.ndarray:
    """Return the intervals of the jackknife+ at all levels for parameters that are not tuned."""
    from mercer import KernelRidge

    model = KernelRidge(0.1, kernel="rbf", gamma="median", fit_intercept=True).fit(X, y)
    return np.stack([model.predict_interval(Z, level) for level in LEVELS])


def folds(X, y, Z, model) -> np.ndarray:
    """Return the intervals of CV+ at all levels; parameters are chosen again in each fold."""
    model.conformalize(X, y, cv=10)
    return np.stack([model.predict_interval(Z, level) for level in LEVELS])


def cross_conformal(X, y, Z, chosen) -> np.ndarray:
    """Return the intervals of ten-fold CV+ by MAPIE at all levels."""
    from mapie.regression import CrossConformalRegressor

    from mercer import KernelRidge

    model = KernelRidge(chosen.alpha_, kernel="rbf", gamma=chosen.gamma_, fit_intercept=True)
    wrapped = CrossConformalRegressor(model, confidence_level=LEVELS.tolist(), cv=10)
    bounds = wrapped.fit_conformalize(X, y).predict_interval(Z)[1]
    return np.asarray(np.moveaxis(bounds, 2, 0))


def gaussian(X, y, Z, _) -> np.ndarray:
    """Return the Gaussian intervals of a Gaussian process at all levels."""
    from mercer import GaussianProcessRegressor
    from mercer.kernels import RBF, White

    kernel = 1.0 * RBF(np.sqrt(X.shape[1])) + White(0.1)
    mean, std = GaussianProcessRegressor(kernel).fit(X, y).predict(Z, return_std=True)
    z = np.array([NormalDist().inv_cdf(0.5 + 0.5 * level) for level in LEVELS])
    return np.stack([mean - z[:, None] * std, mean + z[:, None] * std], axis=-1)


def evaluate(name: str, contenders: dict, count: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the coverage and the mean width at all levels, per contender and split."""
    results: dict[str, list] = {contender: [] for contender in contenders}
    for X, y, Z, t in splits(name, count):
        first, model = jackknife(X, y, Z)
        for contender, method in contenders.items():
            bounds = first if method is jackknife else method(X, y, Z, model)
            inside = (bounds[..., 0] <= t) & (t <= bounds[..., 1])
            width = (bounds[..., 1] - bounds[..., 0]).mean(axis=1)
            results[contender].append((inside.mean(axis=1), width))
    return {
        c: (np.array([r[0] for r in parts]), np.array([r[1] for r in parts]))
        for c, parts in results.items()
    }


def time_ratios(n: int) -> str:
    """Return the processor time of 1000 intervals relative to that of the fit, as text."""
    from mercer import KernelRidge, KernelRidgeCV

    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, 10)), rng.normal(size=(N_QUERIES, 10))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    parts = []
    options = {"kernel": "rbf", "gamma": 0.05, "fit_intercept": True}
    models = {
        "KernelRidge(solver='cholesky')": KernelRidge(0.1, solver="cholesky", **options),
        "KernelRidge": KernelRidge(0.1, **options),
        "KernelRidge(solver='nystroem')": KernelRidge(0.1, solver="nystroem", **options),
        "KernelRidgeCV": KernelRidgeCV(**options),
    }
    for name, model in models.items():
        times = [process_time()]
        model.fit(X, y)
        for _ in range(2):
            times.append(process_time())
            model.predict_interval(Z)
        times.append(process_time())
        fit, first, second = np.diff(times)
        parts.append(f"{name}: first call {first / fit:.2f}, later calls {second / fit:.2f}")
    return "time relative to the fit, n = " + f"{n}: " + "; ".join(parts)


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    contenders = {
        "jackknife+": jackknife,
        "fixed": fixed,
        "MAPIE CV+": cross_conformal,
        "Gaussian": gaussian,
    }
    try:
        import_module("mapie")
    except ImportError:
        del contenders["MAPIE CV+"]
    names = [*UCI.split(), *GENERATED] if (DATA / "regression").exists() else [*GENERATED]
    count = 3 if quick else SPLITS
    low = {c: np.zeros(len(LEVELS), dtype=int) for c in contenders}
    relative: dict[str, list[float]] = {c: [] for c in contenders}
    print("| set | " + " | ".join(f"{c} {LEVELS.tolist()} | width" for c in contenders) + " |")
    for name in names:
        results, cells = evaluate(name, contenders, count), []
        base = results["jackknife+"][1][:, 1].mean()
        for contender, (coverage, width) in results.items():
            mean, error = coverage.mean(axis=0), coverage.std(axis=0, ddof=1) / np.sqrt(count)
            is_low = mean + 2 * error < LEVELS
            low[contender] += is_low
            relative[contender].append(width[:, 1].mean() / base)
            text = " ".join(
                f"{100 * m:.1f}{'*' if b else ''}" for m, b in zip(mean, is_low, strict=True)
            )
            cells += [text, f"{relative[contender][-1]:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for contender in contenders:
        print(
            f"{contender}: low on {low[contender].tolist()} of {len(names)} sets, "
            f"geometric mean width {np.exp(np.mean(np.log(relative[contender]))):.3f}"
        )
    print(time_ratios(500 if quick else N_TIMED))


if __name__ == "__main__":
    main("--quick" in sys.argv)
