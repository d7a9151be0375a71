"""Estimators that can be fitted to chunked points, each with its targets and its output method."""

import dask.array as da
import numpy as np
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    ParzenDensity,
    RandomFeatures,
    RBFSampler,
)

rng = np.random.default_rng(0)
n, ROWS = 1500, 400
X = rng.standard_normal((n, 3))
NUMBERS = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)
PAIRS = np.column_stack([NUMBERS, X[:, 1] ** 2])
WEIGHTS = np.where(np.arange(n) % 7, rng.uniform(0.5, 2.0, n), 0.0)

TWO = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, "yes", "no")
THREE = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)

LANDMARKS = {"gamma": 0.3, "rank": 60}
RIDGE = {"kernel": "rbf", "solver": "nystroem", **LANDMARKS}
LOGISTIC = {"solver": "nystroem", "tol": 1e-15, **LANDMARKS}
# name: (estimator, targets, the method whose output is compared)
MODELS = {
    "pca": (KernelPCA(4, kernel="rbf", eigen_solver="nystroem", **LANDMARKS), None, "transform"),
    "pca-features": (
        KernelPCA(4, kernel="rbf", eigen_solver="features", **LANDMARKS),
        None,
        "transform",
    ),
    "pca-exact": (KernelPCA(3, kernel="rbf", gamma=0.3), None, "transform"),
    "ridge-exact": (KernelRidge(0.1, kernel="rbf", gamma=0.3, solver="cg"), NUMBERS, "predict"),
    "ridge": (KernelRidge(0.1, fit_intercept=True, **RIDGE), NUMBERS, "predict"),
    "ridge-two": (KernelRidge([0.1, 1.0], **RIDGE), PAIRS, "predict"),
    "ridge-cv": (KernelRidgeCV([1e-2, 0.1, 1.0], fit_intercept=True, **RIDGE), PAIRS, "predict"),
    "ridge-gcv": (
        KernelRidgeCV([1e-2, 0.1, 1.0], cv="gcv", alpha_per_target=True, **RIDGE),
        PAIRS,
        "predict",
    ),
    "logistic": (KernelLogisticRegression(**LOGISTIC), TWO, "decision_function"),
    "logistic-three": (
        KernelLogisticRegression(class_weight="balanced", **LOGISTIC),
        THREE,
        "predict_log_proba",
    ),
    "logistic-through-0": (
        KernelLogisticRegression(fit_intercept=False, **LOGISTIC),
        TWO,
        "predict_proba",
    ),
    "kmeans": (
        KernelKMeans(3, init=X[:3], tol=0.0, solver="nystroem", **LANDMARKS),
        None,
        "transform",
    ),
    "svc": (SVC(solver="nystroem", **LANDMARKS), THREE, "decision_function"),
    "svr": (SVR(solver="nystroem", **LANDMARKS), NUMBERS, "predict"),
    "parzen": (ParzenDensity(bandwidth=0.5), None, "score_samples"),
    "nystroem": (Nystroem(gamma=0.3, n_components=40), None, "transform"),
    "random-features": (RandomFeatures(64, gamma="scale"), None, "transform"),
    "rbf-sampler": (RBFSampler(gamma="median", n_components=64), None, "transform"),
}
WEIGHTED = (
    "pca",
    "ridge",
    "ridge-two",
    "ridge-cv",
    "logistic",
    "logistic-three",
    "kmeans",
    "parzen",
)


def on_dask(A):
    return None if A is None else da.from_array(A, chunks=(ROWS, *A.shape[1:]))


def fitted(name, X, y, *more, **params):
    model = clone(MODELS[name][0]).set_params(**params)
    return model.fit(X, *([] if y is None else [y]), *more)
