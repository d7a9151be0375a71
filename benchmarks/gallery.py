"""Everyday scripts on small data, as in scikit-learn's example gallery.

Each script is a function of a namespace of classes, which is run with scikit-learn's classes and
with mercer's.  It returns scores, and those of mercer must not be worse.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from ._models import Library
from ._problems import load_problem
from ._suite import Call, Case, Contender, Suite

Classes = Any  # a Library, whose attributes are estimator classes


def svc_grid_search(classes: Classes, quick: bool) -> np.ndarray:
    """Choose C and γ of an SVM on iris by five-fold cross-validation on a 13 × 13 grid."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_iris(return_X_y=True)
    steps = 4 if quick else 13
    parameters = {
        "svc__C": np.geomspace(1e-2, 1e10, steps),
        "svc__gamma": np.geomspace(1e-9, 1e3, steps),
    }
    model = make_pipeline(StandardScaler(), classes.SVC(max_iter=100_000))
    model.steps[-1] = ("svc", model.steps[-1][1])
    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    return np.array([GridSearchCV(model, parameters, cv=folds).fit(X, y).best_score_])


def svr_curves(classes: Classes, quick: bool) -> np.ndarray:
    """Fit three support vector regressions to 40 noisy points of a sine."""
    rng = np.random.default_rng(0)
    x = np.sort(5 * rng.random((40, 1)), axis=0)
    y = np.sin(x[:, 0])
    y[::5] += 3 * (0.5 - rng.random(8))
    models = [
        classes.SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
        classes.SVR(kernel="linear", C=100, gamma="auto"),
        classes.SVR(kernel="poly", C=100, gamma="auto", degree=3, epsilon=0.1, coef0=1),
    ]
    return np.array([model.fit(x, y).score(x, y) for model in models])


def ridge_and_gp(classes: Classes, quick: bool) -> np.ndarray:
    """Fit a periodic signal of 200 noisy points.

    Kernel ridge regression is tuned by a random search, a Gaussian process by its likelihood.
    """
    from sklearn.gaussian_process.kernels import ExpSineSquared, WhiteKernel
    from sklearn.model_selection import RandomizedSearchCV

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 30, (200, 1))
    y = 2 * np.sin(x[:, 0]) + 0.5 * np.sin(3 * x[:, 0]) + 0.4 * rng.standard_normal(200)
    grid = np.linspace(0, 30, 500)[:, None]
    truth = 2 * np.sin(grid[:, 0]) + 0.5 * np.sin(3 * grid[:, 0])
    parameters = {"alpha": np.geomspace(1e-3, 1e1, 30), "gamma": np.geomspace(1e-2, 1e2, 30)}
    search = RandomizedSearchCV(
        classes.KernelRidge(kernel="rbf"), parameters, n_iter=5 if quick else 60, random_state=0
    ).fit(x, y)
    kernel = ExpSineSquared(1.0, 6.3, periodicity_bounds=(1e-1, 1e2)) + WhiteKernel(1e-1)
    gp = classes.GaussianProcessRegressor(kernel).fit(x, y)
    mean, std = gp.predict(grid, return_std=True)
    coverage = np.mean(np.abs(mean - truth) < 3 * std + 0.3)
    return np.array([search.best_score_, np.corrcoef(mean, truth)[0, 1], coverage])


def gp_noisy_targets(classes: Classes, quick: bool) -> np.ndarray:
    """Fit a Gaussian process to six points, exact and with known noise, with nine restarts."""
    from sklearn.gaussian_process.kernels import RBF

    x = np.linspace(0, 10, 1000)[:, None]
    truth = x[:, 0] * np.sin(x[:, 0])
    rows = np.random.default_rng(1).choice(1000, 6, replace=False)
    noise = 0.75 * np.random.default_rng(2).standard_normal(6)
    scores = []
    for alpha, y in ((1e-10, truth[rows]), (0.75**2, truth[rows] + noise)):
        restarts = {"n_restarts_optimizer": 9, "random_state": 0}
        gp = classes.GaussianProcessRegressor(RBF(1.0, (1e-2, 1e2)), alpha=alpha, **restarts)
        gp.fit(x[rows], y).predict(x, return_std=True)
        scores.append(gp.log_marginal_likelihood_value_)
    return np.array(scores)


def one_class_outliers(classes: Classes, quick: bool) -> np.ndarray:
    """Detect outliers with a one-class SVM, and evaluate its decision function on a grid.

    Returns the fraction of inliers accepted, of the grid rejected, and of outliers detected.
    """
    rng = np.random.default_rng(0)
    X = np.r_[0.3 * rng.standard_normal((100, 2)) + 2, 0.3 * rng.standard_normal((100, 2)) - 2]
    outliers = rng.uniform(-4, 4, (20, 2))
    model = classes.OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(X)
    grid = np.stack(np.meshgrid(*[np.linspace(-5, 5, 100)] * 2), axis=-1).reshape(-1, 2)
    inside = np.mean(model.decision_function(grid) > 0)
    return np.array(
        [np.mean(model.predict(X) > 0), 1 - inside, np.mean(model.predict(outliers) < 0)]
    )


def kernel_pca_circles(classes: Classes, quick: bool) -> np.ndarray:
    """Separate two circles by kernel PCA, and reconstruct the points from their scores."""
    from sklearn.datasets import make_circles
    from sklearn.linear_model import LogisticRegression

    X, y = make_circles(1000, factor=0.3, noise=0.05, random_state=0)
    pca = classes.KernelPCA(4, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1)
    scores = pca.fit(X[:750]).transform(X)
    accuracy = LogisticRegression().fit(scores[:750], y[:750]).score(scores[750:], y[750:])
    reconstructed = pca.inverse_transform(scores[750:])
    return np.array([accuracy, 1.0 - np.mean((reconstructed - X[750:]) ** 2) / X.var()])


def gp_probabilities(classes: Classes, quick: bool) -> np.ndarray:
    """Fit two Gaussian process classifiers to two columns of iris, and predict on a grid."""
    from sklearn.datasets import load_iris
    from sklearn.gaussian_process.kernels import RBF

    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    grid = np.stack(np.meshgrid(*[np.linspace(1, 8, 60)] * 2), axis=-1).reshape(-1, 2)
    scores = []
    for kernel in (1.0 * RBF([1.0]), 1.0 * RBF([1.0, 1.0])):
        model = classes.GaussianProcessClassifier(kernel).fit(X, y)
        scores += [np.mean(np.log(model.predict_proba(X)[np.arange(len(y)), y])), model.score(X, y)]
        model.predict_proba(grid)
    return np.array(scores)


def svc_digits(classes: Classes, quick: bool) -> np.ndarray:
    """Classify half of the handwritten digits with an SVM fitted to the other half."""
    X, y, Q, truth = load_problem("digits")
    return np.array([classes.SVC(gamma=0.2).fit(X, y).score(Q, truth)])


SCRIPTS = {
    script.__name__: script
    for script in (
        *(
            svc_grid_search,
            svr_curves,
            ridge_and_gp,
            gp_noisy_targets,
            one_class_outliers,
            kernel_pca_circles,
        ),
        *(gp_probabilities, svc_digits),
    )
}


def make_script_call(library: str, name: str, few: bool) -> Call:
    """Return a call that runs a script with the classes of a library."""

    def call() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no convergence at grid corners, parameters at bounds
            scores = SCRIPTS[name](Library(library), few)
        call.note = "scores " + ", ".join(f"{score:.4g}" for score in scores)
        return scores

    return call


def score_shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """Return how far the worst score is below scikit-learn's, relative to max(1, |score|)."""
    size = np.maximum(np.abs(reference), 1.0)
    return float(np.max(np.maximum(reference - result, 0.0) / size))


def cases(quick: bool) -> list[Case]:
    family = "everyday scripts"
    return [
        Case(name, {"name": name, "few": quick}, 0.01, score_shortfall, family=family)
        for name in SCRIPTS
    ]


SUITE = Suite(
    "everyday scripts",
    cases,
    {
        "mercer": Contender("mercer", partial(make_script_call, "mercer")),
        "scikit-learn": Contender("sklearn", partial(make_script_call, "scikit-learn")),
    },
    lambda **inputs: make_script_call("scikit-learn", **inputs)(),
)
