"""Functions that fit estimators to data in blocks, and predict for data in blocks.

A random sample of the rows is drawn first and validated like any array. Kernel parameters that
depend on the data, such as gamma="scale", are computed from this sample, and landmarks are chosen
from it. With landmarks, the rest of the fit only needs sums over the blocks. An estimator that
supports blocks has a method `_fit_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..blocks import Blocks, RowSample, as_blocks, sample_rows, with_targets
from ..gram import CANDIDATES_PER_LANDMARK, DEFAULT_CANDIDATES, Landmarks, distribute_products

__all__ = [
    "call_on_blocks",
    "distributed_exact_products",
    "fit_on_blocks",
    "gather_blocks",
    "require_landmarks",
    "sample_blocks",
]

_ROWWISE_METHODS = (  # methods whose result has one row per point
    *("transform", "predict", "decision_function", "predict_proba", "predict_log_proba"),
    *("score_samples", "reconstruction_error", "_values"),
)
_SUPPORTED_ESTIMATORS = (
    "KernelPCA, KernelRidge, KernelRidgeCV, KernelLogisticRegression, KernelKMeans, SVC, SVR, "
    "NuSVC, NuSVR, OneClassSVM, ParzenDensity, Nystroem, RandomFeatures, RBFSampler and "
    "SkewedChi2Sampler"
)


def fit_on_blocks(model: Any, method: str, X: Any, *args: Any, **params: Any) -> Any:
    """Call `fit` or `fit_transform` of an estimator with data in blocks, and return the result.

    Parameters
    ----------
    model : estimator
    method : str
        The name of the method that the user called.
    X : Blocks, or an object that `as_blocks` accepts
    *args, **params
        Additional arguments of the method, such as y and sample_weight.
    """
    name = type(model).__name__
    if not hasattr(model, "_fit_blocks"):
        raise TypeError(
            f"{name} does not support data in blocks ({type(X).__name__}); "
            f"{_SUPPORTED_ESTIMATORS} do. If the data fit into memory, pass an array: "
            f"X.compute(), or blocks.to_array()"
        )
    if getattr(model, "_precomputed", False):
        raise ValueError(f"{name} does not support a precomputed matrix in blocks; pass points")
    if method not in ("fit", "fit_transform"):
        raise TypeError(f"{name}.{method} takes arrays; call `fit` with all blocks at once")
    X = as_blocks(X)
    if X.ndim != 2:
        raise ValueError(
            f"X in blocks must have two dimensions with one row per point, got shape {X.shape}"
        )
    model._fit_blocks(X, *args, **params)
    if X.names is not None:
        model.feature_names_in_ = np.asarray(X.names, dtype=object)
    return model if method == "fit" else model.transform(X)


def sample_blocks(
    X: Blocks,
    landmarks: Landmarks | None = None,
    y: Any = None,
    sample_weight: Any = None,
    rank: int | None = None,
) -> tuple[Blocks, RowSample]:
    """Join X with targets and weights, and draw a sample of the rows.

    Parameters
    ----------
    X : Blocks
    landmarks : Landmarks or None
        The landmarks that will be chosen from the sample; they determine its size and seed.
    y, sample_weight : arrays or Blocks, optional
    rank : int or None
        The number of landmarks, if `landmarks` does not specify it.

    Returns
    -------
    blocks : Blocks
        X with targets and weights.
    row_sample : RowSample
        The sampled rows of positive weight.
    """
    blocks, count = with_targets(X, y, sample_weight), DEFAULT_CANDIDATES
    if landmarks is not None and not landmarks.given:
        count = max(count, CANDIDATES_PER_LANDMARK * landmarks.count(len(X)))
    if rank is not None:
        count = max(count, CANDIDATES_PER_LANDMARK * rank)
    seed = getattr(landmarks, "random_state", None)
    if isinstance(seed, np.random.RandomState):
        # Derive a seed from the generator without advancing it.
        seed = int(seed.get_state(legacy=False)["state"]["key"][0])
    row_sample = sample_rows(blocks, count, 0 if seed is None else int(seed))
    if not len(row_sample.places):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return blocks, row_sample


def require_landmarks(model: Any, name: str = "solver") -> None:
    """Raise an error unless the parameter `name` is 'nystroem', the solver with landmarks."""
    value = getattr(model, name)
    if not (isinstance(value, str) and value == "nystroem"):
        raise ValueError(
            f"{type(model).__name__} supports data in blocks only with landmarks: set "
            f"{name}='nystroem'; {name}={value!r} needs all points at once"
        )


def gather_blocks(
    model: Any, X: Blocks, y: Any = None, sample_weight: Any = None
) -> tuple[Any, ...]:
    """Load points, targets and weights into memory; raise an error if this exceeds the budget."""
    blocks = with_targets(X, y, sample_weight)
    points = X.to_array(getattr(model, "max_memory", None))
    return points, _in_memory(blocks.y), _in_memory(blocks.weights)


@contextmanager
def distributed_exact_products(
    model: Any, X: Blocks, name: str, supported: tuple[str, ...]
) -> Iterator[None]:
    """Let the workers that hold the blocks compute products with K inside a `with` statement.

    K is the kernel matrix of the points. Each worker receives all points once.

    Parameters
    ----------
    model : estimator
    X : Blocks
    name : str
        The name of the solver parameter.
    supported : tuple of str
        The solvers that only need products with K. For others a ValueError is raised.
    """
    value = getattr(model, name)
    if not (isinstance(value, str) and value in supported):
        raise ValueError(
            f"{type(model).__name__} supports data in blocks with {name}='nystroem' (landmarks) "
            f"and {name}='{supported[-1]}' (products with K); {name}={value!r} needs K in one array"
        )
    with distribute_products(X.spread):
        yield


def _in_memory(values: Any) -> Any:
    """Return values as an array if they are in blocks, otherwise unchanged."""
    return values.to_array() if isinstance(values, Blocks) else values


def call_on_blocks(model: Any, name: str, X: Any, *args: Any, **params: Any) -> Any:
    """Call a method of a fitted estimator for data in blocks and return the result as lazy blocks.

    Parameters
    ----------
    model : fitted estimator
    name : str
        The name of the method, one of `_ROWWISE_METHODS`.
    X : Blocks, or an object that `as_blocks` accepts
    *args, **params
        Additional arguments of the method.
    """
    check_is_fitted(model)
    if name not in _ROWWISE_METHODS:
        raise TypeError(
            f"{type(model).__name__}.{name} does not support data in blocks, only arrays; blocks "
            f"are supported by methods with one result row per point: "
            f"{', '.join(method for method in _ROWWISE_METHODS if method[0] != '_')}"
        )
    blocks = as_blocks(X)
    method = _BlockMethod(_without_feature_names(model, blocks), name, args, params)
    is_float32 = blocks.dtype == np.float32
    example = method(
        np.ones((1, blocks.width or 1), dtype=np.float32 if is_float32 else np.float64)
    )
    if isinstance(example, tuple):
        raise TypeError(
            f"{name} for data in blocks can return only one array; request only the predictions"
        )
    if not isinstance(example, np.ndarray):
        raise TypeError(
            f"{name} for data in blocks returns arrays, but set_output, or the configuration of "
            f"scikit-learn, requests a {type(example).__name__}; set it to 'default'"
        )
    return blocks.mapped(method, example)


def _without_feature_names(model: Any, blocks: Blocks) -> Any:
    """Check the column names of the blocks, and return a copy of the model without feature names.

    Each block is passed to the model as an array without column names. scikit-learn would warn
    about this if the model had feature names.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return model
    if blocks.names is not None and blocks.names != list(names):
        raise ValueError(
            f"X has the columns {', '.join(blocks.names)}, but {type(model).__name__} was fitted "
            f"with {', '.join(names)}; pass the same columns in this order"
        )
    unnamed = copy(model)  # a shallow copy, so that the user's model keeps its feature names
    del unnamed.feature_names_in_
    return unnamed


@dataclass(frozen=True)
class _BlockMethod:
    """A method of a fitted model as a picklable function of one block."""

    model: Any
    method: str
    args: tuple[Any, ...]
    params: dict[str, Any]

    def __call__(self, X: np.ndarray, /) -> Any:
        """Return the result of the method for the rows of one block."""
        return getattr(self.model, self.method)(X, *self.args, **self.params)
