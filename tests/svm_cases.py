"""Five support vector estimators, the iris data, and functions to compare estimators."""

import copy

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM

SHARP = {"tol": 1e-8}


def points_of_iris():
    """Return the iris data in random order and with small noise, so that no point occurs twice."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    X = X - X.mean(axis=0) + 2.0 + 0.02 * rng.normal(size=X.shape)
    return X[order], y[order]


def theirs(model):
    """Return scikit-learn's estimator with the same parameters."""
    cls = getattr(sklearn.svm, type(model).__name__)
    known = set(cls().get_params())
    params = {k: v for k, v in model.get_params(deep=False).items() if k in known}
    return cls(**params)


def output(model, X):
    """Return pairwise decision values of a classifier, or the predictions of a regressor."""
    if hasattr(model, "decision_function_shape"):
        model = copy.copy(model).set_params(decision_function_shape="ovo")
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


def fitted(model, X, y, **options):
    args = (X,) if isinstance(model, (OneClassSVM, sklearn.svm.OneClassSVM)) else (X, y)
    return model.fit(*args, **options)


SVMS = [
    SVC(C=2.0, **SHARP),
    NuSVC(nu=0.33, **SHARP),
    SVR(C=5.0, epsilon=0.05, **SHARP),
    NuSVR(C=5.0, nu=0.33, **SHARP),
    OneClassSVM(nu=0.23, **SHARP),
]
each_svm = pytest.mark.parametrize("model", SVMS, ids=lambda m: type(m).__name__)
