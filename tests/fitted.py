"""Models fitted to 40 points, and their outputs for bit-for-bit comparison."""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(40, 3)))
NEW = np.abs(rng.normal(size=(7, 3)))
NUMBERS = np.sin(X[:, 0]) + 2.0
LABELS = np.where(X[:, 0] + X[:, 1] > 1.5, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.arange(40) % 3]
VERBS = (
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"),
    *("score_samples", "kneighbors", "reconstruction_error", "summary"),
)


def fit(model, y=None, points=X):
    model = clone(model)
    if y is None:
        y = LABELS if hasattr(model, "classes_") or is_classifier(model) else NUMBERS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # caused by the small number of points
        return model.fit(points, y)


def is_classifier(model):
    return model.__sklearn_tags__().estimator_type == "classifier"


def answers(model, points=NEW):
    found = {}
    for verb in VERBS:
        try:
            with warnings.catch_warnings():
                for category in (UserWarning, RuntimeWarning):
                    warnings.simplefilter("ignore", category)
                value = getattr(model, verb)(*(() if verb == "summary" else (points,)))
        except (AttributeError, NotImplementedError, ValueError, TypeError) as error:
            value = f"{type(error).__name__}: {error}"
        parts = value if isinstance(value, tuple) else (value,)
        found[verb] = [part if isinstance(part, str) else bits(part) for part in parts]
    return found


def bits(value):
    value = value.toarray() if sp.issparse(value) else np.asarray(value)
    has_padding = value.dtype.char in "gG"  # long doubles, whose last bytes are arbitrary
    as_values = value.dtype == object or has_padding
    return value.dtype.str, value.shape, value.tolist() if as_values else value.tobytes()
