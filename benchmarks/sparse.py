"""Test errors at equal numbers of vectors: learned support vectors against uniform Nyström.

Both minimise the same objective, mean loss + α‖f‖², over f = Σⱼ bⱼ k(zⱼ, ·) + c with the Gaussian
kernel; they differ in the m vectors zⱼ alone.  γ and α are chosen for each from the same grid, by
the error on a quarter of the first seed's training rows.  The test rows are never among them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._models import excess
from ._problems import draw, there
from ._suite import Call, Case, Contender, Suite

SETS = ("kin40k", "protein", "parkinsons", "banana", "waveform", "pendigits")
REGRESSION = SETS[:3]
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)  # times 1 / d, of standardised columns
ALPHAS = (1e-7, 1e-5, 1e-3)
NOISE = 0.05  # relative difference of mean errors that three seeds cannot tell from 0
TUNING = 50  # iterations for each point of the grid; a full fit has the default


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
    X, y, _, _ = draw(name, n)
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
        draws = [draw(name, n, seed=seed) for seed in range(seeds)]

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


def cases(quick: bool) -> list[Case]:
    """A case for each data set that is there and each m."""
    n, seeds = (500, 2) if quick else (3000, 3)
    return [
        Case(f"{name} m={m}", {"name": name, "n": n, "m": m, "seeds": seeds}, NOISE, excess)
        for name in filter(there, SETS[:1] if quick else SETS)
        for m in ((25,) if quick else (25, 50, 100))
    ]


CONTENDERS = {
    "mercer": Contender("mercer", contender(learned)),
    "scikit-learn, Nystroem": Contender("sklearn", contender(uniform)),
}
SUITE = Suite("test error at m vectors, learned or drawn", cases, CONTENDERS, reference, slow=0.0)
