"""Test errors at equal numbers of vectors: learned support vectors against uniform Nyström.

Both minimise the same objective, mean loss + α‖f‖², over f = Σⱼ bⱼ k(zⱼ, ·) + c with the Gaussian
kernel; they differ in the m vectors zⱼ alone.  γ and α are chosen for each from the same grid, by
the error on a quarter of the first seed's training rows.  The test rows are never among them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ._suite import Call, Case, Contender, Suite

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILES = {
    "kin40k": "regression/uci_datasets/kin40k.csv.gz",
    "protein": "regression/uci_datasets/protein.csv.gz",
    "parkinsons": "regression/uci_datasets/parkinsons.csv.gz",
    "banana": "raetsch/banana.npz",
    "waveform": "raetsch/waveform.npz",
    "pendigits": "libsvm/pendigits.npz",
}
REGRESSION = ("kin40k", "protein", "parkinsons")
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)  # times 1 / d, of standardised columns
ALPHAS = (1e-7, 1e-5, 1e-3)
NOISE = 0.05  # relative difference of mean errors that three seeds cannot tell from 0
TUNING = 50  # iterations for each point of the grid; a full fit has the default


def _table(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return X, y, and how many of the last rows are for testing."""
    path = DATA / FILES[name]
    if name in REGRESSION:
        table = np.loadtxt(path, delimiter=",")
        table = table[np.random.default_rng(0).permutation(len(table))]
        return table[:, :-1], table[:, -1], len(table) // 3
    with np.load(path, allow_pickle=False) as file:
        if "X_test" in file:
            X = np.concatenate([file["X_train"], file["X_test"]]).astype(float)
            return X, np.concatenate([file["y_train"], file["y_test"]]), len(file["X_test"])
        X, y = file["X"].astype(float), file["y"].ravel()
        order = np.random.default_rng(0).permutation(len(X))
        return X[order], y[order], len(X) // 3


def problem(name: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return n training rows, drawn by the seed, and all test rows; columns standardised."""
    X, y, tests = _table(name)
    chosen = np.random.default_rng(seed).permutation(len(X) - tests)[:n]
    middle, spread = X[chosen].mean(axis=0), X[chosen].std(axis=0)
    X = (X - middle) / np.where(spread > 0, spread, 1.0)
    if name in REGRESSION:
        y = (y - y[chosen].mean()) / y[chosen].std()
    return X[chosen], y[chosen], X[-tests:], y[-tests:]


def learned(name: str, m: int) -> Callable:
    """Return fit(X, y, γ, α, seed, quick) of mercer."""
    from mercer import SparseKernelClassifier, SparseKernelRegressor

    model = SparseKernelRegressor if name in REGRESSION else SparseKernelClassifier

    def fit(X, y, gamma, alpha, seed, quick):
        steps = {"max_iter": TUNING} if quick else {}
        return model(m, gamma=gamma, alpha=alpha, random_state=seed, **steps).fit(X, y)

    return fit


def uniform(name: str, m: int) -> Callable:
    """The same with scikit-learn's Nystroem; its features have w·w = ‖f‖², so α means the same."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    def fit(X, y, gamma, alpha, seed, quick):
        n = len(X)
        if name in REGRESSION:
            linear = Ridge(alpha=n * alpha)
        else:
            C = 1 / (2 * n * alpha)
            linear = LogisticRegression(C=C, solver="newton-cholesky", max_iter=1000)
        features = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=seed)
        return make_pipeline(features, linear).fit(X, y)

    return fit


def _error(model, X: np.ndarray, y: np.ndarray, name: str) -> float:
    """RMSE, in units of the targets' deviation, or the share of wrong labels."""
    wrong = model.predict(X) - y if name in REGRESSION else model.predict(X) != y
    return float(np.sqrt(np.mean(np.square(wrong)))) if name in REGRESSION else float(wrong.mean())


def _tuned(fit: Callable, name: str, n: int) -> tuple[float, float]:
    X, y, _, _ = problem(name, n, 0)
    some = 3 * len(X) // 4
    grid = [(gamma / X.shape[1], alpha) for gamma in GAMMAS for alpha in ALPHAS]

    def error(pair):
        return _error(fit(X[:some], y[:some], *pair, 0, True), X[some:], y[some:], name)

    return min(grid, key=error)


def contender(make: Callable) -> Callable[..., Call]:
    """Return a contender: its call fits and tests once for each seed; the note gives the errors."""

    def ready(name: str, n: int, m: int, seeds: int) -> Call:
        import warnings

        warnings.simplefilter("ignore")  # a grid has corners where nothing converges
        fit = make(name, m)
        gamma, alpha = _tuned(fit, name, n)
        draws = [problem(name, n, seed) for seed in range(seeds)]

        def call() -> np.ndarray:
            errors = np.array(
                [
                    _error(fit(X, y, gamma, alpha, seed, False), X_test, y_test, name)
                    for seed, (X, y, X_test, y_test) in enumerate(draws)
                ]
            )
            call.note = (
                f"test error {errors.mean():.4f} ± {errors.std(ddof=1):.4f} "
                f"({seeds} seeds), γ d = {gamma * draws[0][0].shape[1]:g}, α = {alpha:g}"
            )
            return errors

        return call

    return ready


def reference(name: str, n: int, m: int, seeds: int) -> np.ndarray:
    """Return the errors of uniform Nyström: learned vectors may not be worse."""
    return contender(uniform)(name, n, m, seeds)()


def excess(errors: np.ndarray, reference: np.ndarray) -> float:
    """By how much, relatively, the mean error is above that of uniform Nyström."""
    return max(0.0, float(errors.mean() / reference.mean()) - 1.0)


def cases(quick: bool) -> list[Case]:
    """Return a case for each data set that is there and each m."""
    there = [name for name in FILES if (DATA / FILES[name]).exists()]
    if not there:
        print(f"no data for the suite sparse in {DATA}: set MERCER_DATA")
    n, seeds = (500, 2) if quick else (3000, 3)
    return [
        Case(f"{name} m={m}", {"name": name, "n": n, "m": m, "seeds": seeds}, NOISE, excess)
        for name in (there[:1] if quick else there)
        for m in ((25,) if quick else (25, 50, 100))
    ]


CONTENDERS = {
    "mercer": Contender("mercer", contender(learned)),
    "scikit-learn, Nystroem": Contender("sklearn", contender(uniform)),
}
SUITE = Suite("test error at m vectors, learned or drawn", cases, CONTENDERS, reference, slow=0.0)
