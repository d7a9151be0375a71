"""The function `search_kernels`: find a sum of products of kernels that explains the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from .._core import (
    MemoryLimit,
    NotebookResult,
    Points,
    as_vectors,
    blas_threads,
    entry_point,
    is_count,
    length,
    progress,
    resource_scope,
    take,
)
from ..kernels import RBF, Bounded, Kernel, Linear, Periodic, RationalQuadratic, Select, as_kernel
from ..models.kernel_learning import ExpressionSearch, SearchLog
from .gaussian_process._gp_regressor import GaussianProcessRegressor


@dataclass(frozen=True, eq=False, repr=False)
class FoundKernel(NotebookResult):
    """The result of `search_kernels`; `print` shows the log of the search.

    Attributes
    ----------
    kernel : Kernel
        The best kernel expression, including a noise term, for targets scaled to variance 1 and
        centred points.
    estimator : Pipeline or GaussianProcessRegressor
        An estimator that is not fitted yet. It centres the points if they are vectors, normalises
        the targets, and uses `kernel`. If the search used a subsample, its `fit` optimises the
        parameters of `kernel` again on all points.
    story : SearchLog
        All expressions that were tried.

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
    story: SearchLog

    def __str__(self) -> str:
        """Return the log of the search."""
        return str(self.story)


@entry_point
def search_kernels(
    X: Points,
    y: ArrayLike,
    base: Sequence[Kernel] | None = None,
    *,
    max_levels: int = 5,
    max_evaluations: int = 5000,
    subsample: int | None = 300,
    random_state: int = 0,
    max_memory: MemoryLimit = None,
    verbose: int = 0,
) -> FoundKernel:
    """Search greedily for the sum of products of kernels that best explains y.

    Starting from the best expression so far, each step tries to add a base kernel, to multiply a
    term by a base kernel, or to replace a base kernel by another one. It keeps the change that
    increases log p(y) - p/2 log n most, the Bayesian information criterion for p parameters and n
    points (Duvenaud et al., 2013). The search is heuristic: other expressions may be as good, and
    the `story` of the result lists all that were tried.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or list of objects
        Training points, of a type for which the base kernels are defined. Vectors are centred,
        which only affects `Linear` kernels.
    y : array-like of shape (n,)
        Numeric targets.
    base : sequence of Kernel or None, default=None
        The base kernels. Several length scales around those of the base kernels are tried. None
        means RBF, Linear, Periodic and RationalQuadratic, separately for each column of X. Pass
        fewer to make the search faster, or kernels of other objects.
    max_levels : int, default=5
        The maximum number of steps. Each step adds at most one base kernel.
    max_evaluations : int, default=5000
        The maximum number of likelihood evaluations, which limits the time of the search.
    subsample : int or None, default=300
        The number of random points used in the search; None means all. Each likelihood takes n^3
        operations. Fit the resulting estimator to all points.
    random_state : int, default=0
        Seed of the subsample.
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of the
        computer.
    verbose : int, default=0
        Whether to print progress: 0 for no output, 1 for messages.

    Returns
    -------
    FoundKernel
        The result, with attributes `kernel`, `estimator` and `story`.

    See Also
    --------
    tune : Optimises the parameters of a given kernel expression.
    GaussianProcessRegressor : The estimator of the result.
    MultipleKernel : Learns the weights of a sum of kernels.
    sklearn.model_selection.GridSearchCV : Compares a short list of kernels by cross-validation.

    References
    ----------
    Duvenaud, Lloyd, Grosse, Tenenbaum and Ghahramani, "Structure discovery in nonparametric
    regression through compositional kernel search", ICML 2013.

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
        raise ValueError(
            f"y must be numeric, because the search fits Gaussian processes; got dtype {y.dtype}"
        )
    y = y.astype(float)
    on_vectors = base is None or all(k.domain.on_vectors for k in base)
    X = as_vectors(X, "X") if on_vectors else X
    n = length(X)
    if y.shape != (n,) or not np.all(np.isfinite(y)):
        raise ValueError(f"y must be {n} finite numbers, one for each point; got shape {y.shape}")
    if n < 3:
        raise ValueError(f"search_kernels needs at least 3 points, got {n}")
    if not np.ptp(y) > 0:
        raise ValueError(f"all {n} targets are equal, so there is nothing to explain; check y")
    for name, count in (("max_levels", max_levels), ("max_evaluations", max_evaluations)):
        if not is_count(count):
            raise ValueError(f"{name} must be a positive integer, got {count!r}")
    if subsample is not None and not is_count(subsample):
        raise ValueError(f"subsample must be a positive integer or None, got {subsample!r}")
    subset = np.arange(n)
    if subsample is not None and subsample < n:
        subset = np.sort(np.random.default_rng(random_state).permutation(n)[:subsample])
    points = take(X, subset)
    if on_vectors:
        points = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=float)
        points = points - points.mean(axis=0)
    base = _default_base(points) if base is None else base
    base = [k.resolve(points) for k in base]
    targets = (y[subset] - y[subset].mean()) / y[subset].std()
    with blas_threads(len(subset)), resource_scope(), progress("search_kernels", verbose) as log:
        search = ExpressionSearch(
            points, targets, base, max_levels, max_evaluations, log, max_memory
        )
        story = search.run()
    model: Any = GaussianProcessRegressor(
        story.kernel,
        optimizer=None if len(subset) == n else "fmin_l_bfgs_b",
        normalize_y=True,
        max_memory=max_memory,
    )
    if on_vectors:
        model = make_pipeline(StandardScaler(with_std=False), model)
    return FoundKernel(story.kernel, model, story)


def _default_base(X: np.ndarray) -> list[Kernel]:
    """Return four kernels for each column that is not constant, at the scale of the column."""
    base: list[Kernel] = []
    for j, std in enumerate(X.std(axis=0).tolist()):
        if std > 0:
            # A Periodic kernel with a long length scale is nearly constant, and its products with
            # other kernels would fit trends instead of periods.
            span = float(np.ptp(X[:, j]))
            periodic = Bounded(Periodic(std, 1.0), ((1e-4 * span, span), (0.1, 2.0)))
            kernels = [RBF(std), Linear(), periodic, RationalQuadratic(std)]
            base += kernels if X.shape[1] == 1 else [Select(k, [j]) for k in kernels]
    if not base:
        raise ValueError("all points are equal, so they cannot explain the targets; check X")
    return base
