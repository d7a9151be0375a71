"""Fits and answers in blocks: the same estimators on what is not in one array.

A uniform sample of the rows comes first (`draw`), and passes the door as any array does: rules of
the kernel are resolved on it, and landmarks are chosen among it.  Everything after that is a sum
over the blocks.  A class that can do so has `_fit_blocks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..blocks import Blocks, Drawn, as_blocks, beside, draw
from ..gram import CANDIDATES, PER_LANDMARK, Landmarks, elsewhere

__all__ = ["answered", "exactly", "fitted", "gathered", "require_landmarks", "sampled"]

_ANSWERS = (  # what has one row for each point
    *("transform", "predict", "decision_function", "predict_proba", "predict_log_proba"),
    *("score_samples", "reconstruction_error", "_values"),
)
_HAVE = (
    "KernelPCA, KernelRidge, KernelRidgeCV, KernelLogisticRegression, KernelKMeans, SVC, SVR, "
    "NuSVC, NuSVR, OneClassSVM, ParzenDensity, Nystroem, RandomFeatures, RBFSampler and "
    "SkewedChi2Sampler"
)


def fitted(model: Any, method: str, X: Any, *args: Any, **params: Any) -> Any:
    """Return what a method that fits returns, for points in blocks."""
    name = type(model).__name__
    if not hasattr(model, "_fit_blocks"):
        raise TypeError(
            f"{name} has no form for points in blocks ({type(X).__name__}); {_HAVE} have one. With "
            f"few points, give an array: X.compute(), or blocks.to_array()"
        )
    if getattr(model, "_precomputed", False):
        raise ValueError(f"{name} in blocks needs points and a kernel, not a matrix of its values")
    if method not in ("fit", "fit_transform"):
        raise TypeError(f"{name}.{method} takes arrays; `fit` takes all blocks at once")
    X = as_blocks(X)
    if X.ndim != 2:
        raise ValueError(f"X in blocks has the shape {X.shape}; points are rows of several columns")
    model._fit_blocks(X, *args, **params)
    if X.names is not None:
        model.feature_names_in_ = np.asarray(X.names, dtype=object)
    return model if method == "fit" else model.transform(X)


def sampled(
    X: Blocks,
    landmarks: Landmarks | None = None,
    y: Any = None,
    sample_weight: Any = None,
    rank: int | None = None,
) -> tuple[Blocks, Drawn]:
    """Return the blocks with what is beside them, and the rows to choose landmarks among."""
    blocks, count = beside(X, y, sample_weight), CANDIDATES
    if landmarks is not None and not landmarks.given:
        count = max(count, PER_LANDMARK * landmarks.count(len(X)))
    if rank is not None:
        count = max(count, PER_LANDMARK * rank)
    seed = getattr(landmarks, "random_state", None)
    if isinstance(seed, np.random.RandomState):
        seed = int(seed.get_state(legacy=False)["state"]["key"][0])  # without a draw
    drawn = draw(blocks, count, 0 if seed is None else int(seed))
    if not len(drawn.places):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return blocks, drawn


def require_landmarks(model: Any, name: str = "solver") -> None:
    """Refuse a solver that needs all points at once."""
    given = getattr(model, name)
    if not (isinstance(given, str) and given == "nystroem"):
        raise ValueError(
            f"{type(model).__name__} of points in blocks is sought in the span of landmarks: set "
            f"{name}='nystroem' to say so; {name}={given!r} needs all points at once"
        )


def gathered(model: Any, X: Blocks, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
    """Return points, targets and weights as arrays, if the points fit the budget of the model."""
    blocks = beside(X, y, sample_weight)
    points = X.to_array(getattr(model, "max_memory", None))
    return points, _array(blocks.y), _array(blocks.weights)


@contextmanager
def exactly(model: Any, X: Blocks, name: str, known: tuple[str, ...]) -> Iterator[None]:
    """Do products with all of K where the blocks are: each worker is sent all points, once."""
    given = getattr(model, name)
    if not (isinstance(given, str) and given in known):
        raise ValueError(
            f"{type(model).__name__} of points in blocks has {name}='nystroem', on landmarks, and "
            f"for products with all of K {name}='{known[-1]}'; {name}={given!r} needs K in one "
            f"place"
        )
    with elsewhere(X.spread):
        yield


def _array(part: Any) -> Any:
    return part.to_array() if isinstance(part, Blocks) else part


def answered(model: Any, name: str, X: Any, *args: Any, **params: Any) -> Any:
    """Return a method's answers for points in blocks as blocks again, which are lazy."""
    check_is_fitted(model)
    if name not in _ANSWERS:
        raise TypeError(
            f"{type(model).__name__}.{name} takes arrays; with one row for each point, and so for "
            f"blocks, there are {', '.join(a for a in _ANSWERS if a[0] != '_')}"
        )
    blocks = as_blocks(X)
    answer = _Answer(_nameless(model, blocks), name, args, params)
    single = blocks.dtype == np.float32
    like = answer(np.ones((1, blocks.width or 1), dtype=np.float32 if single else np.float64))
    if isinstance(like, tuple):
        raise TypeError(f"{name} of points in blocks returns one array; ask for its values alone")
    if not isinstance(like, np.ndarray):
        raise TypeError(
            f"{name} of points in blocks returns arrays, but set_output, or the configuration of "
            f"scikit-learn, asks for a {type(like).__name__}; set it to 'default'"
        )
    return blocks.mapped(answer, like)


def _nameless(model: Any, blocks: Blocks) -> Any:
    """Return the model without names of columns, once those of the blocks are the same."""
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        return model
    if blocks.names is not None and blocks.names != list(known):
        raise ValueError(
            f"X has the columns {', '.join(blocks.names)}, but {type(model).__name__} was fitted "
            f"with {', '.join(known)}; give the same, in this order"
        )
    plain = copy(model)  # blocks are arrays, which have no names
    del plain.feature_names_in_
    return plain


@dataclass(frozen=True)
class _Answer:
    """A method of a fitted model, for one block; another process can be told of it."""

    model: Any
    method: str
    args: tuple[Any, ...]
    params: dict[str, Any]

    def __call__(self, X: np.ndarray, /) -> Any:
        return getattr(self.model, self.method)(X, *self.args, **self.params)
