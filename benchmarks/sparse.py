"""Test errors with equal numbers of basis vectors: learned vectors against uniform Nyström.

Both minimise the same objective, mean loss + α‖f‖², over f = Σⱼ bⱼ k(zⱼ, ·) + c with the Gaussian
kernel.  They differ only in the m basis vectors zⱼ.  For each, γ and α are chosen from the same
grid, by the error on a quarter of the training rows of the first seed, never on test rows.

The second group of cases compares the two solvers of SparseKernelClassifier, L-BFGS for the squared
hinge loss and cutting planes for the hinge loss, with an SVM that uses all its support vectors.
Here γ and C are chosen for the SVM, and all methods use this γ and α = 1 / (2 n C).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ._models import relative_excess
from ._problems import is_available, load_problem
from ._suite import Call, Case, Contender, Suite

SETS = ("kin40k", "protein", "parkinsons", "banana", "waveform", "pendigits")
REGRESSION = SETS[:3]
SOLVER_SETS = ("banana", "waveform", "image", "svmguide1", "pendigits", "usps")
COSTS = (0.1, 1.0, 10.0)  # values of C from which the one for the SVM is chosen
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0)  # multiplied by 1 / d; columns are standardised
ALPHAS = (1e-7, 1e-5, 1e-3)
ERROR_TOLERANCE = 0.05  # relative differences up to this are not significant with three seeds
TUNING_ITERATIONS = 50  # iterations for each point of the grid; the final fit uses the default


def make_mercer_fit(name: str, m: int) -> Callable:
    """Return fit(X, y, γ, α, seed, quick) of mercer."""
    from mercer import SparseKernelClassifier, SparseKernelRegressor

    model = SparseKernelRegressor if name in REGRESSION else SparseKernelClassifier

    def fit(X, y, gamma, alpha, seed, quick):
        options = {"max_iter": TUNING_ITERATIONS} if quick else {}
        return model(m, gamma=gamma, alpha=alpha, random_state=seed, **options).fit(X, y)

    return fit


def make_nystroem_fit(name: str, m: int) -> Callable:
    """Return the same function for scikit-learn's Nystroem and a linear model.

    Its features satisfy w·w = ‖f‖², so α has the same meaning.
    """
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


def make_solver_contender(solver: str) -> Callable[..., Call]:
    """Return the `make` function of a solver of SparseKernelClassifier, or of SVC ("svc")."""

    def prepare(name: str, n: int, m: int, seeds: int, by_solver: bool = True) -> Call:
        import warnings

        from mercer import SVC, SparseKernelClassifier

        warnings.simplefilter("ignore")

        def fit(X, y, gamma, C, seed):
            if solver == "svc":
                return SVC(C=C, gamma=gamma).fit(X, y)
            loss = "hinge" if solver == "cutting-plane" else "squared_hinge"
            options = {"gamma": gamma, "alpha": 1 / (2 * len(X) * C), "random_state": seed}
            return SparseKernelClassifier(m, loss=loss, solver=solver, **options).fit(X, y)

        gamma, C = _choose_svm_parameters(name, n)
        datasets = [load_problem(name, n, seed=seed) for seed in range(seeds)]

        def call() -> np.ndarray:
            models = [fit(X, y, gamma, C, seed) for seed, (X, y, _, _) in enumerate(datasets)]
            errors = np.array(
                [
                    _test_error(model, X_test, y_test, name)
                    for model, (_, _, X_test, y_test) in zip(models, datasets, strict=True)
                ]
            )
            sizes = [len(model.expansion_.points) for model in models]
            call.note = (
                f"test error {errors.mean():.4f} ± {errors.std():.4f} ({seeds} seeds), "
                f"{np.mean(sizes):.0f} vectors, γ d = {gamma * datasets[0][0].shape[1]:g}, "
                f"C = {C:g}"
            )
            return errors

        return call

    return prepare


@lru_cache(maxsize=16)
def _choose_svm_parameters(name: str, n: int) -> tuple[float, float]:
    """Return the γ and C with which the SVM has the smallest validation error."""
    from sklearn.svm import SVC

    X, y, _, _ = load_problem(name, n)
    n_train = 3 * len(X) // 4
    grid = [(gamma / X.shape[1], C) for gamma in GAMMAS for C in COSTS]

    def error(parameters):
        svm = SVC(C=parameters[1], gamma=parameters[0]).fit(X[:n_train], y[:n_train])
        return _test_error(svm, X[n_train:], y[n_train:], name)

    return min(grid, key=error)


def _test_error(model, X: np.ndarray, y: np.ndarray, name: str) -> float:
    """Return the RMSE in standard deviations of the targets, or the fraction of wrong labels."""
    errors = model.predict(X) - y if name in REGRESSION else model.predict(X) != y
    return (
        float(np.sqrt(np.mean(np.square(errors)))) if name in REGRESSION else float(errors.mean())
    )


def _choose_parameters(fit: Callable, name: str, n: int) -> tuple[float, float]:
    """Return the γ and α with the smallest validation error."""
    X, y, _, _ = load_problem(name, n)
    n_train = 3 * len(X) // 4
    grid = [(gamma / X.shape[1], alpha) for gamma in GAMMAS for alpha in ALPHAS]

    def error(parameters):
        return _test_error(
            fit(X[:n_train], y[:n_train], *parameters, 0, True), X[n_train:], y[n_train:], name
        )

    return min(grid, key=error)


def make_contender(make: Callable) -> Callable[..., Call]:
    """Return the `make` function of a contender.

    Its call fits and tests once for each seed; the note contains the errors.
    """

    def prepare(name: str, n: int, m: int, seeds: int) -> Call:
        import warnings

        warnings.simplefilter("ignore")  # fits at the corners of the grid may not converge
        fit = make(name, m)
        gamma, alpha = _choose_parameters(fit, name, n)
        datasets = [load_problem(name, n, seed=seed) for seed in range(seeds)]

        def call() -> np.ndarray:
            errors = np.array(
                [
                    _test_error(fit(X, y, gamma, alpha, seed, False), X_test, y_test, name)
                    for seed, (X, y, X_test, y_test) in enumerate(datasets)
                ]
            )
            call.note = (
                f"test error {errors.mean():.4f} ± {errors.std(ddof=1):.4f} "
                f"({seeds} seeds), γ d = {gamma * datasets[0][0].shape[1]:g}, α = {alpha:g}"
            )
            return errors

        return call

    return prepare


def prepare_mercer(by_solver: bool = False, **inputs) -> Call:
    """Return the call of the solver "lbfgs", in both groups of cases."""
    if by_solver:
        return make_solver_contender("lbfgs")(**inputs)
    return make_contender(make_mercer_fit)(**inputs)


def reference(name: str, n: int, m: int, seeds: int, by_solver: bool = False) -> np.ndarray:
    """Return the errors of uniform Nyström; those of learned vectors must not be larger.

    The errors of the two solvers are only reported, so that their reference is 1.
    """
    if by_solver:
        return np.ones(seeds)
    return make_contender(make_nystroem_fit)(name, n, m, seeds)()


def cases(quick: bool) -> list[Case]:
    """Return a case for each available data set and each m."""
    n, seeds = (500, 2) if quick else (3000, 3)
    by_solver = [
        Case(
            f"solvers {name} m={m}",
            {"name": name, "n": 500 if quick else 2000, "m": m, "seeds": 2, "by_solver": True},
            ERROR_TOLERANCE,
            relative_excess,
            SOLVER_CONTENDERS,
            "solvers",
        )
        for name in filter(is_available, SOLVER_SETS[:1] if quick else SOLVER_SETS)
        for m in ((10,) if quick else (10, 50, 100))
    ]
    return by_solver + [
        Case(
            f"{name} m={m}",
            {"name": name, "n": n, "m": m, "seeds": seeds},
            ERROR_TOLERANCE,
            relative_excess,
            BASIS_CONTENDERS,
        )
        for name in filter(is_available, SETS[:1] if quick else SETS)
        for m in ((25,) if quick else (25, 50, 100))
    ]


BASIS_CONTENDERS = ("mercer", "scikit-learn, Nystroem")
SOLVER_CONTENDERS = ("mercer", "mercer, cutting planes", "mercer, SVC")
CONTENDERS = {
    "mercer": Contender("mercer", prepare_mercer),
    "scikit-learn, Nystroem": Contender("sklearn", make_contender(make_nystroem_fit)),
    "mercer, cutting planes": Contender("mercer", make_solver_contender("cutting-plane")),
    "mercer, SVC": Contender("mercer", make_solver_contender("svc")),
}
SUITE = Suite(
    "test error with m basis vectors, learned or sampled",
    cases,
    CONTENDERS,
    reference,
    max_warm_up=0.0,
)
