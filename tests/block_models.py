"""Estimators that accept blocks of points, each with its targets and prediction method."""

import dask.array as da
import numpy as np
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    ExplicitFeatures,
    KernelCCA,
    KernelFisherDiscriminant,
    KernelKMeans,
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPLS,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    ParzenDensity,
    PolynomialCountSketch,
    RandomFeatures,
    RBFSampler,
    RFMClassifier,
    RFMRegressor,
    SparseKernelClassifier,
    SparseKernelRegressor,
)
from mercer.kernels import Laplacian

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
FEATURES = {"kernel": Laplacian(), "max_rounds": 1, "search_points": 100, "widths": [1.0]}
FEATURES |= {"solver": "nystroem", "rank": 60}
# each with its targets, and the methods that are compared
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
    "rfm": (RFMRegressor(**FEATURES), PAIRS, "predict"),
    "rfm-classes": (RFMClassifier(**FEATURES), THREE, "predict_proba"),
    "kmeans": (
        KernelKMeans(3, init=X[:3], tol=0.0, solver="nystroem", **LANDMARKS),
        None,
        "transform",
    ),
    "svc": (SVC(solver="nystroem", **LANDMARKS), THREE, "decision_function"),
    "svc-core-set": (
        SVC(loss="squared_hinge", solver="core-set", gamma=0.3, tol=1e-6),
        THREE,
        "decision_function",
    ),
    "svr": (SVR(solver="nystroem", **LANDMARKS), NUMBERS, "predict"),
    "parzen": (ParzenDensity(bandwidth=0.5), None, "score_samples"),
    "nystroem": (Nystroem(gamma=0.3, n_components=40), None, "transform"),
    "random-features": (RandomFeatures(64, gamma="scale"), None, "transform"),
    "rbf-sampler": (RBFSampler(gamma="median", n_components=64), None, "transform"),
    "logistic-cv": (
        KernelLogisticRegressionCV([0.1, 1.0], cv=3, **LOGISTIC),
        THREE,
        "decision_function",
    ),
    "fisher": (KernelFisherDiscriminant(**RIDGE), THREE, "transform"),
    "fisher-fit": (
        KernelFisherDiscriminant(0.1, within="fit", **RIDGE),
        TWO,
        "decision_function",
    ),
    "cca": (KernelCCA(2, solver="nystroem", alpha=0.01, **LANDMARKS), PAIRS, "transform"),
    "pls": (KernelPLS(2, solver="nystroem", **LANDMARKS), NUMBERS, "predict"),
    "machine": (KernelMachineRegressor("huber", solver="nystroem", **LANDMARKS), PAIRS, "predict"),
    "machine-classes": (
        KernelMachineClassifier("squared_hinge", solver="nystroem", **LANDMARKS),
        THREE,
        "decision_function",
    ),
    "nu-svc": (NuSVC(nu=0.6, solver="nystroem", **LANDMARKS), TWO, "decision_function"),
    "nu-svr": (NuSVR(solver="nystroem", **LANDMARKS), NUMBERS, "predict"),
    "one-class": (OneClassSVM(solver="nystroem", **LANDMARKS), None, "decision_function"),
    "one-class-core-set": (
        OneClassSVM(nu=0.05, solver="core-set", gamma=0.3, tol=1e-6),
        None,
        "decision_function",
    ),
    "sparse": (SparseKernelRegressor(9, gamma=0.3, max_iter=20, tol=0.9), NUMBERS, "predict"),
    "sparse-classes": (
        SparseKernelClassifier(9, gamma=0.3, max_iter=20, tol=0.9),
        THREE,
        "decision_function",
    ),
    "count-sketch": (PolynomialCountSketch(n_components=32), None, "transform"),
    "explicit": (ExplicitFeatures(kernel="poly", degree=2), None, "transform"),
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
    "logistic-cv",
    "cca",
    "pls",
    "machine",
    "machine-classes",
)


def on_dask(A):
    return None if A is None else da.from_array(A, chunks=(ROWS, *A.shape[1:]))


def fitted(name, X, y, *more, **params):
    model = clone(MODELS[name][0]).set_params(**params)
    return model.fit(X, *([] if y is None else [y]), *more)
