"""What estimators need for data in blocks: checks, a random sample of rows, and predictions."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core import Points
from ..blocks import Blocks, RowSample, as_blocks, sample_rows
from ..gram import CANDIDATES_PER_LANDMARK, DEFAULT_CANDIDATES, Landmarks

_ROWWISE_METHODS = (  # methods whose result has one row per point
    *("transform", "predict", "decision_function", "predict_proba", "predict_log_proba"),
    *("predict_interval", "predict_set"),
    *("score_samples", "reconstruction_error", "_values"),
)


def check_block_support(model: Any, method: str, X: Points) -> Blocks:
    """Return the points of a fit as `Blocks`; raise an error if the estimator needs an array.

    Parameters
    ----------
    model : estimator
    method : str
        The name of the method that the user called.
    X : Blocks, or an object that `as_blocks` accepts
    """
    name = type(model).__name__
    if not getattr(model, "_accepts_blocks", False):
        raise TypeError(
            f"{name} does not support data in blocks ({type(X).__name__}); estimators with "
            f"landmarks or explicit features do, such as KernelPCA, KernelRidge, SVC and Nystroem. "
            f"If the data fit into memory, pass an array: X.compute(), or blocks.to_array()"
        )
    if getattr(model, "_precomputed", False):
        raise ValueError(f"{name} does not support a precomputed matrix in blocks; pass points")
    if method not in ("fit", "fit_transform", "plan"):
        raise TypeError(f"{name}.{method} takes arrays; call `fit` with all blocks at once")
    blocks = as_blocks(X)
    if blocks.ndim != 2:
        raise ValueError(
            f"X in blocks must have two dimensions with one row per point, got shape {blocks.shape}"
        )
    return blocks


def draw_candidates(
    blocks: Blocks, landmarks: Landmarks | None = None, rank: int | None = None
) -> RowSample:
    """Draw a random sample of the rows of positive weight.

    Parameters
    ----------
    blocks : Blocks
        The points, with targets and weights.
    landmarks : Landmarks or None
        The landmarks that will be chosen from the sample; they determine its size and seed.
    rank : int or None
        The number of landmarks, if `landmarks` does not specify it.
    """
    count = DEFAULT_CANDIDATES
    if landmarks is not None and not landmarks.given:
        count = max(count, CANDIDATES_PER_LANDMARK * landmarks.count(len(blocks)))
    if rank is not None:
        count = max(count, CANDIDATES_PER_LANDMARK * rank)
    seed = getattr(landmarks, "random_state", None)
    if isinstance(seed, np.random.RandomState):
        # Derive a seed from the generator without advancing it.
        seed = int(seed.get_state(legacy=False)["state"]["key"][0])
    return sample_rows(blocks, count, 0 if seed is None else int(seed))


def require_landmarks(model: Any, name: str = "solver", others: str = "") -> None:
    """Raise an error unless the parameter `name` is 'nystroem', the solver with landmarks.

    `others` names further values of the parameter that support blocks, for the error message.
    """
    value = getattr(model, name)
    if not (isinstance(value, str) and value == "nystroem"):
        raise ValueError(
            f"{type(model).__name__} supports data in blocks only with landmarks: set "
            f"{name}='nystroem'{others}; {name}={value!r} needs all points at once"
        )


def require_products(model: Any, name: str, supported: tuple[str, ...]) -> None:
    """Raise an error unless the solver parameter `name` needs only products with K."""
    value = getattr(model, name)
    if not (isinstance(value, str) and value in supported):
        raise ValueError(
            f"{type(model).__name__} supports data in blocks with {name}='nystroem' (landmarks) "
            f"and {name}='{supported[-1]}' (products with K); {name}={value!r} needs K in one array"
        )


def in_memory(values: Any) -> Any:
    """Return targets or weights as an array if they are in blocks, otherwise unchanged."""
    return values.to_array() if isinstance(values, Blocks) else values


def call_on_blocks(model: Any, name: str, X: Points, *args: Any, **params: Any) -> Any:
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
