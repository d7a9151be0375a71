"""search_kernels(): which sum of products of kernels explains the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from .._points import as_vectors, length, take
from .._runtime import blas_threads, entry_point, is_count, progress, reserving
from ..kernels import RBF, Bounded, Kernel, Linear, Periodic, RationalQuadratic, Select, as_kernel
from ..learning import ExpressionSearch, Story
from ._gaussian_process import GaussianProcessRegressor

__all__ = ["FoundKernel", "search_kernels"]


@dataclass(frozen=True, eq=False)
class FoundKernel:
    """What `search_kernels` found; `print` it for the story.

    Attributes
    ----------
    kernel : Kernel
        The best expression, noise included, for targets of variance 1 and centred points.
    estimator : Pipeline or GaussianProcessRegressor
        Not fitted: points are centred (if they are vectors), targets normalised; theta is that of
        `kernel`, from which the search goes on if it was made on a subsample.
    story : Story
        All that was tried.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import search_kernels
    >>> from mercer.kernels import RBF, Linear
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> found = search_kernels(X, 2 * X[:, 0] + 1, [RBF(), Linear()], max_levels=1)
    >>> type(found.estimator).__name__
    'Pipeline'
    """

    kernel: Kernel
    estimator: Pipeline | GaussianProcessRegressor
    story: Story

    def __str__(self) -> str:
        return str(self.story)


@entry_point
def search_kernels(
    X: Any,
    y: Any,
    base: Sequence[Kernel] | None = None,
    *,
    max_levels: int = 5,
    max_evaluations: int = 5000,
    subsample: int | None = 300,
    random_state: int = 0,
    max_memory: Any = None,
    verbose: int = 0,
) -> FoundKernel:
    """Search greedily for the sum of products of kernels that is likeliest to explain y.

    From the best expression so far: add a base kernel, multiply a term by one, or put another in
    its place; keep what raises log p(y) - p/2 log n (BIC) most (Duvenaud et al., 2013).  It is a
    search, not a proof: other expressions may be as good, and the `story` shows them.

    Parameters
    ----------
    X : points
        Vectors are centred, which only `Linear` sees.
    y : array of shape (n,)
    base : sequence of Kernel, optional
        At typical scales, from which several are tried.  By default RBF, Linear, Periodic and
        RationalQuadratic, for vectors of several columns on each of them.
    max_levels, max_evaluations : int
        Moves that are made at most, and likelihoods that are computed at most.
    subsample : int or None
        Search on so many points, drawn at random; None for all.  Each likelihood takes n^3
        operations.  The estimator is to be fitted on all of them.
    random_state : int
        Of that draw.
    max_memory : int, str or None
    verbose : int

    Returns
    -------
    FoundKernel
        With `kernel`, `estimator`, `story`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import search_kernels
    >>> from mercer.kernels import Linear, Periodic
    >>> x = np.linspace(0, 10, 60)
    >>> y = x + 2 * np.sin(2 * np.pi * x / 1.7) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> found = search_kernels(x[:, None], y, [Linear(), Periodic()], max_levels=2)
    >>> found.story.best.words
    'Linear + Periodic'
    """
    if base is not None:
        if isinstance(base, (Kernel, str)) or not len(base):
            raise TypeError(f"base must be a sequence of at least one kernel, got {base!r}")
        base = list(map(as_kernel, base))
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y must be numbers, which a Gaussian process explains, got {y.dtype}")
    y = y.astype(float)
    vectors = base is None or all(k.on_vectors for k in base)
    X = as_vectors(X, "X") if vectors else X
    n = length(X)
    if y.shape != (n,) or not np.all(np.isfinite(y)):
        raise ValueError(f"y must be {n} finite numbers, one for each point, got {y.shape}")
    if n < 3:
        raise ValueError(f"search_kernels needs at least 3 points, got {n}")
    if not np.ptp(y) > 0:
        raise ValueError(f"{n} targets that are all equal have nothing to explain")
    for name, count in (("max_levels", max_levels), ("max_evaluations", max_evaluations)):
        if not is_count(count):
            raise ValueError(f"{name} must be a positive integer, got {count!r}")
    if subsample is not None and not is_count(subsample):
        raise ValueError(f"subsample must be a positive integer or None, got {subsample!r}")
    some = np.arange(n)
    if subsample is not None and subsample < n:
        some = np.sort(np.random.default_rng(random_state).permutation(n)[:subsample])
    points = take(X, some)
    if vectors:
        points = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=float)
        points = points - points.mean(axis=0)
    base = _default_base(points) if base is None else base
    base = [k.resolve(points) for k in base]
    targets = (y[some] - y[some].mean()) / y[some].std()
    with blas_threads(len(some)), reserving(), progress("search_kernels", verbose) as say:
        search = ExpressionSearch(
            points, targets, base, max_levels, max_evaluations, say, max_memory
        )
        story = search.run()
    model: Any = GaussianProcessRegressor(
        story.kernel,
        optimizer=None if len(some) == n else "fmin_l_bfgs_b",
        normalize_y=True,
        max_memory=max_memory,
    )
    if vectors:
        model = make_pipeline(StandardScaler(with_std=False), model)
    return FoundKernel(story.kernel, model, story)


def _default_base(X: np.ndarray) -> list[Kernel]:
    """Return four kernels for each column that varies, at the scale of the column."""
    base: list[Kernel] = []
    for j, spread in enumerate(X.std(axis=0).tolist()):
        if spread > 0:
            # a long length scale would make of a Periodic a constant, and of its products trends
            span = float(np.ptp(X[:, j]))
            periodic = Bounded(Periodic(spread, 1.0), ((1e-4 * span, span), (0.1, 2.0)))
            own = [RBF(spread), Linear(), periodic, RationalQuadratic(spread)]
            base += own if X.shape[1] == 1 else [Select(k, [j]) for k in own]
    if not base:
        raise ValueError("all points are equal: there is nothing to explain the targets by")
    return base
