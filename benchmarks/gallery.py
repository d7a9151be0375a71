"""Everyday scripts on small data, from imports that are done to the number one would look at.

Each is a function of a namespace of classes, run with scikit-learn's and with mercer's, and returns
scores; mercer's may not be worse.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from ._models import Library
from ._problems import draw
from ._suite import Call, Case, Contender, Suite

Scripts = Any  # Library, whose attributes are classes


def grid_of_machines(k: Scripts, few: bool) -> np.ndarray:
    """C and γ of a support vector machine on iris, by five folds of a 13 × 13 grid."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_iris(return_X_y=True)
    steps = 4 if few else 13
    grid = {"svc__C": np.geomspace(1e-2, 1e10, steps), "svc__gamma": np.geomspace(1e-9, 1e3, steps)}
    machine = make_pipeline(StandardScaler(), k.SVC(max_iter=100_000))
    machine.steps[-1] = ("svc", machine.steps[-1][1])
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    return np.array([GridSearchCV(machine, grid, cv=folds).fit(X, y).best_score_])


def curves(k: Scripts, few: bool) -> np.ndarray:
    """Three support vector regressions through 40 noisy points of a sine."""
    rng = np.random.default_rng(0)
    x = np.sort(5 * rng.random((40, 1)), axis=0)
    y = np.sin(x[:, 0])
    y[::5] += 3 * (0.5 - rng.random(8))
    machines = [
        k.SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
        k.SVR(kernel="linear", C=100, gamma="auto"),
        k.SVR(kernel="poly", C=100, gamma="auto", degree=3, epsilon=0.1, coef0=1),
    ]
    return np.array([machine.fit(x, y).score(x, y) for machine in machines])


def ridge_and_process(k: Scripts, few: bool) -> np.ndarray:
    """A periodic signal of 200 noisy points: kernel ridge by a search, a process by likelihood."""
    from sklearn.gaussian_process.kernels import ExpSineSquared, WhiteKernel
    from sklearn.model_selection import RandomizedSearchCV

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 30, (200, 1))
    y = 2 * np.sin(x[:, 0]) + 0.5 * np.sin(3 * x[:, 0]) + 0.4 * rng.standard_normal(200)
    grid = np.linspace(0, 30, 500)[:, None]
    truth = 2 * np.sin(grid[:, 0]) + 0.5 * np.sin(3 * grid[:, 0])
    widths = {"alpha": np.geomspace(1e-3, 1e1, 30), "gamma": np.geomspace(1e-2, 1e2, 30)}
    search = RandomizedSearchCV(
        k.KernelRidge(kernel="rbf"), widths, n_iter=5 if few else 60, random_state=0
    ).fit(x, y)
    kernel = ExpSineSquared(1.0, 6.3, periodicity_bounds=(1e-1, 1e2)) + WhiteKernel(1e-1)
    process = k.GaussianProcessRegressor(kernel).fit(x, y)
    mean, deviation = process.predict(grid, return_std=True)
    close = np.mean(np.abs(mean - truth) < 3 * deviation + 0.3)
    return np.array([search.best_score_, np.corrcoef(mean, truth)[0, 1], close])


def noisy_targets(k: Scripts, few: bool) -> np.ndarray:
    """A process through six points, exact and with known noise, with nine restarts."""
    from sklearn.gaussian_process.kernels import RBF

    x = np.linspace(0, 10, 1000)[:, None]
    truth = x[:, 0] * np.sin(x[:, 0])
    rows = np.random.default_rng(1).choice(1000, 6, replace=False)
    noise = 0.75 * np.random.default_rng(2).standard_normal(6)
    found = []
    for alpha, y in ((1e-10, truth[rows]), (0.75**2, truth[rows] + noise)):
        restarts = {"n_restarts_optimizer": 9, "random_state": 0}
        process = k.GaussianProcessRegressor(RBF(1.0, (1e-2, 1e2)), alpha=alpha, **restarts)
        process.fit(x[rows], y).predict(x, return_std=True)
        found.append(process.log_marginal_likelihood_value_)
    return np.array(found)


def outliers(k: Scripts, few: bool) -> np.ndarray:
    """One-class machine: share of inliers kept and outliers found, and a map of decisions."""
    rng = np.random.default_rng(0)
    X = np.r_[0.3 * rng.standard_normal((100, 2)) + 2, 0.3 * rng.standard_normal((100, 2)) - 2]
    strange = rng.uniform(-4, 4, (20, 2))
    machine = k.OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(X)
    plane = np.stack(np.meshgrid(*[np.linspace(-5, 5, 100)] * 2), axis=-1).reshape(-1, 2)
    inside = np.mean(machine.decision_function(plane) > 0)
    return np.array(
        [np.mean(machine.predict(X) > 0), 1 - inside, np.mean(machine.predict(strange) < 0)]
    )


def circles(k: Scripts, few: bool) -> np.ndarray:
    """Kernel PCA parts two circles, and finds its way back."""
    from sklearn.datasets import make_circles
    from sklearn.linear_model import LogisticRegression

    X, y = make_circles(1000, factor=0.3, noise=0.05, random_state=0)
    pca = k.KernelPCA(4, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1)
    scores = pca.fit(X[:750]).transform(X)
    right = LogisticRegression().fit(scores[:750], y[:750]).score(scores[750:], y[750:])
    back = pca.inverse_transform(scores[750:])
    return np.array([right, 1.0 - np.mean((back - X[750:]) ** 2) / X.var()])


def probabilities(k: Scripts, few: bool) -> np.ndarray:
    """Two classifiers by Gaussian processes on two columns of iris, and a map of probabilities."""
    from sklearn.datasets import load_iris
    from sklearn.gaussian_process.kernels import RBF

    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    plane = np.stack(np.meshgrid(*[np.linspace(1, 8, 60)] * 2), axis=-1).reshape(-1, 2)
    found = []
    for kernel in (1.0 * RBF([1.0]), 1.0 * RBF([1.0, 1.0])):
        model = k.GaussianProcessClassifier(kernel).fit(X, y)
        found += [np.mean(np.log(model.predict_proba(X)[np.arange(len(y)), y])), model.score(X, y)]
        model.predict_proba(plane)
    return np.array(found)


def digits(k: Scripts, few: bool) -> np.ndarray:
    """Half of the handwritten digits recognise the other half."""
    X, y, Q, truth = draw("digits")
    return np.array([k.SVC(gamma=0.2).fit(X, y).score(Q, truth)])


SCRIPTS = {
    f.__name__: f
    for f in (
        *(grid_of_machines, curves, ridge_and_process, noisy_targets, outliers, circles),
        *(probabilities, digits),
    )
}


def script(library: str, name: str, few: bool) -> Call:
    def call() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # corners of grids, bounds of parameters
            found = SCRIPTS[name](Library(library), few)
        call.note = "scores " + ", ".join(f"{score:.4g}" for score in found)
        return found

    return call


def worse(result: np.ndarray, reference: np.ndarray) -> float:
    """How far the worst of the scores is below scikit-learn's, in units of 1 or of its size."""
    size = np.maximum(np.abs(reference), 1.0)
    return float(np.max(np.maximum(reference - result, 0.0) / size))


def cases(quick: bool) -> list[Case]:
    words = "everyday scripts of a gallery"
    return [Case(f, {"name": f, "few": quick}, 0.01, worse, family=words) for f in SCRIPTS]


SUITE = Suite(
    "everyday scripts",
    cases,
    {
        "mercer": Contender("mercer", partial(script, "mercer")),
        "scikit-learn": Contender("sklearn", partial(script, "scikit-learn")),
    },
    lambda **inputs: script("scikit-learn", **inputs)(),
)
