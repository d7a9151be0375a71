"""Plots of embeddings and of functions: contours, components, pre-image paths and witnesses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core import Points, as_vectors, concatenate
from ..expansion import Expansion
from ..expansion.preimage import PreImageTarget
from ._axes import (
    PALETTE,
    POINT_STYLE,
    Axes,
    Labels,
    PlotWindow,
    Style,
    check_components,
    diverging_styles,
    draw_curve,
    draw_function,
    evaluate_on_grid,
    interpret_labels,
    legend_below,
    new_axes,
    open_frame,
    plane_window,
    plot,
    require_attribute,
    scatter,
    window_around,
)

# --- Scatter plots of one or several embeddings.

_MAX_WIDE_PANELS = 6  # up to this number of plots, there are three per row; otherwise, four
_MAX_LARGE_MARKERS = 2000  # with more points, the markers are smaller


@plot
def embedding(
    model_or_scores: Any,
    y: Any = None,
    X: Points = None,
    components: Sequence[int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Plot the points in the plane of two principal components.

    The coordinates of a point x are its scores (<w_i, phi(x) - mu>, <w_j, phi(x) - mu>), where w_i
    and w_j are principal directions in feature space, and mu is the mean.  Both scores are lengths
    in feature space, so both axes have the same scale.

    Parameters
    ----------
    model_or_scores : fitted KernelPCA, or array of shape (n, k)
        The scores, or a model that computes them.  With a model, the axis labels show the
        explained variance of each component.
    y : array-like of shape (n,), default=None
        Values that determine the colours of the points: class labels, explained by a legend, or
        numbers, explained by a colour bar.  Up to ten different integers are treated as class
        labels.
    X : points, default=None
        The points to plot; None plots the training points of the model.
    components : pair of int, default=(0, 1)
        The components to plot, counted from 0.  (The axis labels count from 1.)

    See Also
    --------
    maps : Plot several embeddings side by side.
    embedding_quality : Measure how well an embedding preserves neighbours.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import circles
    >>> from mercer.plotting import embedding
    >>> X, y = circles(200, random_state=0)
    >>> model = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)
    >>> ax = embedding(model, y, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'component 1 (21.8 %)'
    """
    if hasattr(model_or_scores, "fit"):
        scores = _scores(model_or_scores, X)
        ratios = getattr(model_or_scores, "explained_variance_ratio_", None)
    else:
        scores, ratios = np.asarray(model_or_scores), None
        if scores.ndim != 2 or X is not None:
            what = "X" if scores.ndim == 2 else f"scores of shape {scores.shape}"
            raise ValueError(
                f"got {what}, but no model to compute scores of shape (n, k) - usually because "
                f"points were passed instead of a model - try a fitted KernelPCA, or "
                f"model.transform(X)"
            )
    if len(components) != 2:
        raise ValueError(
            f"got {len(components)} components, but the plot has two axes - "
            f"usually because all components were passed - try components=(0, 1)"
        )
    plane = scores[:, check_components(components, scores.shape[1])]
    labels = interpret_labels(y, len(scores))

    ax = new_axes(ax)
    style: Style = {"s": 18, "alpha": 0.75, "linewidths": 0}
    points = scatter(ax, plane, labels, **style)
    if points is not None:
        ax.figure.colorbar(points, ax=ax, label=labels.title)
    if labels.names is not None:
        # loc="best" checks all points, which is slow if there are many.
        location: Style = {"loc": "best" if len(scores) <= 5000 else "upper right"}
        ax.legend(framealpha=0.85, markerscale=1.5, **location)
    suffixes = ["" if ratios is None else f" ({100.0 * ratios[j]:.1f} %)" for j in components]
    names = [f"component {j + 1}{suffix}" for j, suffix in zip(components, suffixes, strict=True)]
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="datalim")
    return open_frame(ax)


def _scores(model: Any, X: Points) -> np.ndarray:
    """Return the scores of X, or those of the training points if X is None."""
    if X is not None:
        check_is_fitted(
            model,
            msg="this %(name)s has no scores - usually because it was not fitted yet - "
            "try fit(X) first",
        )
        return np.asarray(model.transform(X))
    # Models of mercer have this attribute, which takes weights and whitening into account.
    if hasattr(model, "training_scores_"):
        return np.asarray(model.training_scores_)
    return require_attribute(model, "eigenvectors_") * np.sqrt(
        require_attribute(model, "eigenvalues_")
    )


@plot
def maps(
    embeddings: Mapping[str, Any],
    y: Any = None,
    titles: Mapping[str, str] | None = None,
    figure: Any = None,
) -> Any:
    """Plot several two-dimensional embeddings of the same points side by side.

    Parameters
    ----------
    embeddings : dict of arrays of shape (n, q)
        Coordinates of the points, by name of the embedding.  The first two columns are plotted;
        a single column is plotted against the index of the point.
    y : array-like of shape (n,), default=None
        Values that determine the colours of the points: class labels, explained by one legend for
        all plots, or numbers, explained by a colour bar.
    titles : dict of str, default=None
        Titles of the plots, by name of the embedding; the names themselves by default.
    figure : matplotlib Figure, default=None
        The figure to draw into; None creates a new one.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes of each embedding.

    See Also
    --------
    compare : Embed points with several models.
    embedding : Plot the scores of one model.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer.plotting import maps
    >>> Z = np.random.default_rng(0).normal(size=(20, 2))
    >>> axes = maps({"one": Z, "other": -Z}, figure=Figure(layout="constrained"))
    >>> [ax.get_title(loc="left") for ax in axes]
    ['one', 'other']
    """
    coordinates = {name: np.asarray(Z, dtype=float) for name, Z in embeddings.items()}
    if not coordinates:
        raise ValueError("there are no embeddings to plot; pass at least one")
    n = len(next(iter(coordinates.values())))
    labels = interpret_labels(y, n)
    panels = _map_panels(len(coordinates), figure)
    style: Style = {"s": 14 if n <= _MAX_LARGE_MARKERS else 5, "alpha": 0.75, "linewidths": 0}
    points = None
    for ax, (name, Z) in zip(panels, coordinates.items(), strict=True):
        plane = Z[:, :2] if Z.shape[1] > 1 else np.column_stack([Z[:, 0], np.arange(n)])
        points = scatter(ax, plane, labels, **style)
        ax.set_title((titles or {}).get(name, name), loc="left", fontsize="medium")
        ax.set_xticks([])
        ax.set_yticks([])
        if Z.shape[1] > 1:
            ax.set_aspect("equal", adjustable="datalim")
    parent = panels[0].figure
    if points is not None:
        parent.colorbar(points, ax=list(panels), label=labels.title)
    elif labels.names is not None:
        handles, names = panels[0].get_legend_handles_labels()
        legend_style: Style = {"loc": "outside lower center", "ncols": min(len(names), 8)}
        parent.legend(handles, names, frameon=False, markerscale=2.0, **legend_style)
    return panels


def _map_panels(count: int, figure: Any) -> Any:
    """Return `count` axes of a figure, in rows of three or four."""
    n_columns = min(count, 3 if count <= _MAX_WIDE_PANELS else 4)
    n_rows = -(-count // n_columns)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(4.2 * n_columns, 4.2 * n_rows + 0.6), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in panels[count:]:
        ax.set_axis_off()
    return panels[:count]


# --- Plots of functions.

_MAX_COLUMNS = 4  # maximum number of panels per row of a new figure
_ITERATIVE_METHODS = ("fixed_point", "regularized", "gradient")  # methods of `Expansion.preimage`


@plot
def contours(
    expansion_or_function: Callable[[np.ndarray], Any],
    X: Points,
    ax: Axes | None = None,
    *,
    n_grid: int = 100,
    n_levels: int = 8,
) -> Axes:
    """Plot the contour lines of a function of two variables, with the points X.

    If the function f changes sign, red means positive, blue means negative, and the line f = 0 is
    bold.  Otherwise brighter colours mean higher values.

    Parameters
    ----------
    expansion_or_function : Expansion of one function, or callable
        The function f.  It maps points of shape (m, 2) to values of shape (m,) or (m, 1).
    X : array-like of shape (n, 2)
        The points to draw, which also determine the plotted region.
    n_grid : int, default=100
        The number of grid points per axis; f is evaluated at n_grid^2 points.  Increase it if the
        lines are not smooth.
    n_levels : int, default=8
        The number of contour lines on each side of 0.

    See Also
    --------
    eigenfunctions : Contours of all components of a kernel PCA.
    margin : Decision function of an SVM.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelRidge
    >>> from mercer.datasets import moons
    >>> from mercer.plotting import contours
    >>> X, y = moons(100, random_state=0)
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=2.0).fit(X, 2 * y - 1)
    >>> ax = contours(model.expansion_, X, ax=Figure().subplots())
    >>> ax.get_aspect()
    1.0
    """
    window = plane_window(X, n_grid)
    values = window.evaluate(expansion_or_function)
    return _with_points(new_axes(ax, (5.6, 5.0)), window, values, n_levels)


@plot
def eigenfunctions(
    model: Any,
    X: Points = None,
    components: Sequence[int] | None = None,
    n_grid: int = 80,
    axes: Any = None,
) -> np.ndarray:
    """Plot the components x -> <w_j, phi(x) - mu> of a kernel PCA of points with two columns.

    w_j is a principal direction in feature space, and mu is the mean.  Each component
    has its own panel, with the eigenvalue in the title, and its own colour scale.

    Parameters
    ----------
    model : KernelPCA
        A model fitted to points with two columns.
    X : array-like of shape (n, 2), default=None
        The points to draw; None draws the training points.
    components : sequence of int, default=None
        The components, counted from 0; None means the first eight.
    n_grid : int, default=80
        The number of grid points per axis.  The model is evaluated once, at n_grid^2 points.
    axes : array of matplotlib Axes, default=None
        The axes to draw into, at least one per component.  None creates a new figure with four
        panels per row.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes of each component.

    See Also
    --------
    spectrum : Plot the eigenvalues.
    embedding : Plot the points in the plane of two components.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import eigenfunctions
    >>> X, _ = three_clusters(90, random_state=3)
    >>> model = KernelPCA(2, kernel="rbf", gamma=10.0).fit(X)
    >>> axes = eigenfunctions(model, n_grid=20, axes=Figure().subplots(1, 2))
    >>> [ax.get_title() for ax in axes]
    ['1: eigenvalue 22.08', '2: eigenvalue 21.65']
    """
    values = require_attribute(model, "eigenvalues_")
    points = require_attribute(model, "X_fit_") if X is None else X
    window = plane_window(points, n_grid, "eigenfunctions")
    if components is None:
        components = range(min(8, len(values)))
    chosen = check_components(components, len(values))
    scores = np.asarray(evaluate_on_grid(model.transform, window.grid), dtype=float)
    panels = _new_panels(len(chosen), window) if axes is None else _user_panels(axes, len(chosen))
    for ax, j in zip(panels, chosen, strict=True):
        _with_points(ax, window, scores[:, j], n_levels=6)
        ax.set_title(f"{j + 1}: eigenvalue {values[j]:.4g}")
    return panels


@plot
def preimage_path(
    expansion: Expansion,
    start: Any,
    ax: Axes | None = None,
    *,
    method: str = "fixed_point",
    n_steps: int = 50,
    n_grid: int = 100,
) -> Axes:
    """Plot the iterations z of a pre-image algorithm over the contours of |phi(z) - f|.

    Use it to see whether the result depends on the start, and how fast a method converges.

    Parameters
    ----------
    expansion : Expansion of one function
        The function f whose pre-image is computed, on points with two columns.
    start : array-like of shape (m, 2)
        The start of each path.
    method : {"fixed_point", "regularized", "gradient"}, default="fixed_point"
        The algorithm, as in `Expansion.preimage`.
    n_steps : int, default=50
        The maximum number of iterations of each path.
    n_grid : int, default=100
        The number of grid points per axis; the residual is evaluated at n_grid^2 points.

    See Also
    --------
    Expansion.preimage : Compute pre-images.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import Expansion
    >>> from mercer.datasets import moons
    >>> from mercer.kernels import RBF
    >>> from mercer.plotting import preimage_path
    >>> X, _ = moons(60, random_state=0)
    >>> f = Expansion.mean(RBF(0.4), X)
    >>> ax = preimage_path(f, [[-1.0, 1.0], [2.0, 1.0]], ax=Figure().subplots(), n_grid=20)
    >>> len(ax.lines)  # a path, its start and its end, twice
    6
    """
    if len(expansion) != 1:
        raise ValueError(
            f"the expansion has {len(expansion)} functions, but the plot can show only one - "
            f"usually because all reconstructions were passed - try f[0]"
        )
    if method not in _ITERATIVE_METHODS:
        raise ValueError(
            f"method={method!r} has no path to plot - usually because it is not iterative - try "
            f"one of {_ITERATIVE_METHODS}"
        )
    start = np.atleast_2d(np.asarray(start, dtype=float))
    window = plane_window(expansion.points, n_grid)
    target = PreImageTarget(expansion.kernel, window.points, expansion.coefficients.T)
    grid = window.grid if target.lower is None else np.maximum(window.grid, target.lower)
    squares = target.costs(grid, np.zeros(len(grid), dtype=int)) + target.squared_norms
    distance = np.sqrt(target.factor * np.maximum(squares, 0.0))
    from matplotlib.patheffects import withStroke

    ax = _with_points(new_axes(ax, (5.6, 5.0)), window, distance, 8)
    for i, path in enumerate(_path(expansion, z, method, n_steps) for z in start):
        colour = PALETTE[(i + 1) % len(PALETTE)]
        # A white outline makes the path visible on any background colour.
        outline = [withStroke(linewidth=3.0, foreground="white")]
        ax.plot(*path.T, color=colour, linewidth=1.5, path_effects=outline, zorder=4)
        ax.scatter(path[:, 0], path[:, 1], s=12, color=colour, zorder=4)
        for z, marker, size, label in ((path[0], "o", 7, "start"), (path[-1], "*", 14, "end")):
            end_style: Style = {"markeredgecolor": colour, "markersize": size, "zorder": 5}
            ax.plot(*z, marker, color="white", label=None if i else label, **end_style)
    return legend_below(ax)


def _with_points(ax: Axes, window: PlotWindow, values: np.ndarray, n_levels: int) -> Axes:
    """Draw a function on the grid of a window, and the points of the window."""
    draw_function(ax, window, values, n_levels)
    horizontal, vertical = window.points.T
    ax.scatter(horizontal, vertical, s=14, color="0.1", **POINT_STYLE)
    return ax


def _user_panels(axes: Any, count: int) -> np.ndarray:
    """Return the first `count` of the axes that the user has passed."""
    flat = np.ravel(np.asarray(axes, dtype=object))
    if len(flat) < count:
        raise ValueError(
            f"there are {count} functions to draw, but only {len(flat)} axes - usually because "
            f"the grid has too few rows - try plt.subplots with more panels, or fewer components"
        )
    return flat[:count]


def _new_panels(count: int, window: PlotWindow) -> np.ndarray:
    """Return the axes of a new figure, with the aspect ratio of the window."""
    import matplotlib.pyplot as plt

    horizontal, vertical = (side[-1] - side[0] for side in window.sides)
    # The height of a panel in inches; 0.6 is the height of the title.
    height = 0.6 + 2.7 * float(np.clip(vertical / horizontal, 0.4, 2.0))
    columns = min(_MAX_COLUMNS, count)
    rows = -(-count // columns)
    figure = plt.figure(figsize=(3.0 * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for unused in grid[count:]:
        figure.delaxes(unused)
    for lowest in grid[max(0, count - columns) : count]:  # the lowest panel of each column
        lowest.tick_params(labelbottom=True)
    return grid[:count]


def _path(expansion: Expansion, z: np.ndarray, method: str, n_steps: int) -> np.ndarray:
    """Return z after 0, 1, 2, ... iterations, until convergence."""
    path = [z]
    with warnings.catch_warnings():
        # Warnings are ignored, because the iteration is stopped early on purpose.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for step in range(1, n_steps + 1):
            result = expansion.preimage(method, start=z[None], max_iter=step)
            path.append(result.points[0])
            if result.report.n_iter < step:
                break
    return np.array(path)


@plot
def witness(
    result_or_expansion: Any,
    X: Points,
    Y: Any,
    ax: Axes | None = None,
    *,
    n_grid: int | None = None,
) -> Axes:
    """Plot the witness function of a two-sample test, with both samples.

    The witness function f = mean of k(x, .) - mean of k(y, .) is positive where X has more mass
    than Y.  In one dimension, f is a curve, and marks below it show the samples.  In two
    dimensions, f is shown in colours (red is positive), with a line at f = 0.

    Parameters
    ----------
    result_or_expansion : TwoSampleResult, Expansion of one function, or callable
        The result of a test, or the witness function itself.
    X, Y : array-like of shape (m, d) and (n, d)
        The samples, with d = 1 or 2 columns.
    n_grid : int, default=None
        The number of grid points per axis at which f is evaluated; None means 400 in one dimension
        and 100 in two.

    See Also
    --------
    two_sample_test : Test whether the difference is significant.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer import two_sample_test
    >>> from mercer.plotting import witness
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 1)), rng.laplace(size=(80, 1))
    >>> ax = witness(two_sample_test(X, Y), X, Y, ax=Figure().subplots())
    >>> ax.get_ylabel()
    'witness'
    """
    f = getattr(result_or_expansion, "witness", result_or_expansion)
    if not callable(f):
        raise TypeError(
            f"got {result_or_expansion!r}, which has no witness function - usually because the "
            f"samples were passed first - try the result of two_sample_test, or an Expansion"
        )
    X, Y = as_vectors(X, "X"), as_vectors(Y, "Y")
    for sample, name in ((X, "X"), (Y, "Y")):
        if sample.shape[0] == 0:
            raise ValueError(
                f"{name} has no points - usually because a selection is empty - try the samples of "
                f"the test"
            )
    if X.shape[1] != Y.shape[1] or X.shape[1] not in (1, 2):
        raise ValueError(
            f"the samples have shapes {X.shape} and {Y.shape}, but the plot needs "
            f"one or two columns, the same for both samples - try to select one or two columns"
        )
    both, index = concatenate(X, Y), np.repeat([0, 1], [X.shape[0], Y.shape[0]])
    if X.shape[1] == 1:
        return _line(f, window_around(both, n_grid or 400, 0.08), index, ax)
    return _plane(f, plane_window(both, n_grid or 100), index, ax)


def _line(f: Any, window: PlotWindow, index: np.ndarray, ax: Axes | None) -> Axes:
    """Plot the witness function in one dimension."""
    values, x = window.evaluate(f, "witness"), window.sides[0]
    ax = draw_curve(new_axes(ax, (6.0, 4.0)), window, values, "witness", "witness")
    (red, _), (blue, _) = _sample_styles()
    for where, colour in ((values > 0, red), (values < 0, blue)):
        ax.fill_between(x, 0.0, values, where=where, interpolate=True, color=colour, alpha=0.2)
    for c, (name, colour, height) in enumerate((("X", red, 0.05), ("Y", blue, 0.02))):
        sample = window.points[index == c, 0]
        # The marks are at a fixed height above the axis, which does not depend on the values.
        above_axis: Style = {"transform": ax.get_xaxis_transform()}
        marks: Style = {"alpha": min(1.0, 0.3 + 40.0 / len(sample)), "markersize": 8} | above_axis
        ax.plot(sample, np.full_like(sample, height), "|", color=colour, label=name, **marks)
    span = float(np.ptp(values)) or 1.0
    ax.set_ylim(values.min() - 0.18 * span, values.max() + 0.08 * span)  # leave space for the marks
    ax.legend(framealpha=0.85, edgecolor="none")
    return ax


def _plane(f: Any, window: PlotWindow, index: np.ndarray, ax: Axes | None) -> Axes:
    """Plot the witness function in two dimensions."""
    values = window.evaluate(f, "witness")
    ax = draw_function(new_axes(ax, (5.8, 5.0)), window, values, n_levels=8)
    labels = Labels(names=["X", "Y"], classes=index)
    scatter(ax, window.points, labels, "0.1", _sample_styles(), s=18, **POINT_STYLE)
    ax.legend(loc="upper right", framealpha=0.85, edgecolor="none", markerscale=1.5)
    return ax


def _sample_styles() -> list[tuple[Any, str]]:
    """Return the styles of X (the colour of positive values) and Y (of negative values)."""
    return diverging_styles(0.95, 0.05)
