"""Plots of fitted models: predictive bands, SVM margins, eigenvalues, numbers of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from .._core import Points, length
from ..gram import gram
from ..solvers import silhouette
from ._axes import (
    CLASS_STYLES,
    PALETTE,
    POINT_STYLE,
    Axes,
    Style,
    as_column,
    diverging_styles,
    draw_function,
    evaluate_on_grid,
    interpret_labels,
    legend_above,
    legend_below,
    new_axes,
    open_frame,
    plane_window,
    plot,
    require_attribute,
    scatter,
    twin_axes,
    window_around,
)


@plot
def credible_band(
    model: Any,
    x: Any,
    X: Points = None,
    y: Any = None,
    *,
    width: float = 2.0,
    ax: Axes | None = None,
) -> Axes:
    """Plot the predictive mean m(x) and standard deviation s(x) of a model, as m(x) +- width s(x).

    Parameters
    ----------
    model : estimator
        A fitted model whose `predict` accepts ``return_std=True``, such as
        GaussianProcessRegressor or KernelRidge.
    x : array-like of shape (n,) or (n, 1)
        The points at which the model is evaluated, in ascending order.
    X, y : array-like of shape (m, 1) and (m,), default=None
        Observations, which are drawn as points.
    width : float, default=2.0
        The number of standard deviations on each side of the mean.  With 2, the band contains f(x)
        with a probability of about 95 % if the model is correct; with 1, about 68 %.

    See Also
    --------
    GaussianProcessRegressor : Regression with predictive variances.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelRidge
    >>> from mercer.plotting import credible_band
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = KernelRidge(0.1, kernel="rbf").fit(X, [0.0, 1.0, 0.0])
    >>> ax = credible_band(model, np.linspace(-1, 3, 50), ax=Figure().subplots())
    >>> len(ax.lines), len(ax.collections)
    (1, 1)
    """
    x = as_column(x, "x")
    try:
        mean, deviation = evaluate_on_grid(model.predict, x, return_std=True)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__} does not predict standard deviations - usually because it is "
            f"not a probabilistic model - try GaussianProcessRegressor or KernelRidge"
        ) from error
    if np.ndim(mean) != 1:
        raise ValueError(
            f"the model has {np.shape(mean)[1]} targets, but the plot can show only one - "
            f"try a model fitted to one of them"
        )
    if not width > 0:
        raise ValueError(f"width must be a positive number of standard deviations, got {width!r}")
    observed = None if X is None or y is None else (np.ravel(X), np.ravel(y))
    names = f"± {width:g} standard deviations", "mean", "observations"
    ax = new_axes(ax, (6.4, 4.0))
    return draw_band(ax, x[:, 0], mean, width * deviation, observed, names)


def draw_band(
    ax: Axes, x: np.ndarray, f: np.ndarray, half_width: Any, observed: Any, names: Sequence[str]
) -> Axes:
    """Draw the curve f, the band from f - half_width to f + half_width, and observations if any.

    `observed` is None or a pair of arrays x and y.  `names` are the legend labels of the band, the
    curve and the observations.
    """
    shade: Style = {"color": PALETTE[5], "alpha": 0.35, "linewidth": 0}
    ax.fill_between(x, f - half_width, f + half_width, label=names[0], **shade)
    ax.plot(x, f, color=PALETTE[0], linewidth=2.0, label=names[1])
    if observed is not None:
        ax.plot(*observed, ".", color="black", markersize=5, label=names[2])
    ax.set_xlabel("x")
    ax.margins(x=0.0)
    return ax


@plot
def margin(
    model: Any, X: Points, y: Any = None, ax: Axes | None = None, *, n_grid: int | None = None
) -> Axes:
    """Plot the decision function of an SVM, its margin and its support vectors.

    ======================  =======================================================
    two classes             f in colours, with lines at f = 0 (bold) and f = -1, 1
    more than two classes   the region of each class
    one class               f in colours, with the line f = 0 around the sample
    regression (1 feature)  f, with the tube from f - epsilon to f + epsilon
    ======================  =======================================================

    An open circle marks a free support vector, whose dual coefficient v_i satisfies
    0 < |v_i| < C_i; it lies on the margin.  An open square marks a support vector at its bound,
    |v_i| = C_i, which lies inside the margin or on the wrong side.  With more than two classes, a
    square marks a point that is at its bound for at least one pair of classes.  The attribute
    `at_bound_` of the model distinguishes the two kinds.  Removing all other points from the
    training data would not change the decision function.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, SVR or NuSVR
        A model fitted to X, with one feature for SVR and NuSVR, and two for the others.
        Compressed models and models with a precomputed kernel are not supported.
    X : array-like of shape (n, 2), or (n, 1) for regression
        The training points.
    y : array-like of shape (n,), default=None
        The class labels, which determine the colours; for regression, the targets, which are
        required.
    n_grid : int, default=None
        The number of grid points per axis at which f is evaluated; None means 200 in two
        dimensions and 400 in one.

    See Also
    --------
    SVC : Support vector classification.
    contours : Contour lines of any function.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import SVC
    >>> from mercer.plotting import margin
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> ax = margin(SVC(kernel="linear", C=10.0).fit(X, y), X, y, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2 free support vectors']
    """
    _check(model, X)
    if hasattr(model, "decision_function"):
        return _plane(model, X, y, ax, 200 if n_grid is None else n_grid)
    return _line(model, X, y, ax, 400 if n_grid is None else n_grid)


def _check(model: Any, X: Points) -> None:
    """Raise a ValueError if the support vectors of the model are not among the points X."""
    name = type(model).__name__
    if getattr(model, "reduction_", None) is not None:
        m = len(model.expansion_.points)
        raise ValueError(
            f"this {name} was compressed to {m} points, but the plot needs the support vectors, "
            f"which a compressed model does not have - try the model before compress, or "
            f"plotting.contours, which draws only the decision function"
        )
    require_attribute(model, "at_bound_")
    if get_tags(model).input_tags.pairwise:
        raise ValueError(
            f"this {name} has a precomputed kernel, but a plot needs vectors, because f is "
            f"evaluated between the points - usually because K was passed to fit instead of X - "
            f"try to fit to X with a kernel that is not precomputed"
        )
    n, n_fitted = length(X), model.shape_fit_[0]
    if n != n_fitted:
        raise ValueError(
            f"X has {n} points, but this {name} was fitted to {n_fitted} - usually because X "
            f"contains other data - try the training points, which contain the support vectors"
        )


def _plane(model: Any, X: Points, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    """Plot a classifier or a one-class SVM in two dimensions."""
    window = plane_window(X, n_grid, "margin")
    points = window.points
    labels = interpret_labels(y, len(points))
    count = len(getattr(model, "classes_", ()))  # a one-class SVM has no labels
    is_multiclass = count > 2
    if is_multiclass:
        ax = new_axes(ax, (5.8, 5.0))
        predicted = np.searchsorted(model.classes_, evaluate_on_grid(model.predict, window.grid))
        *sides, regions = window.surface(np.asarray(predicted))
        colours = [colour for colour, _ in CLASS_STYLES[:count]]
        ax.contourf(*sides, regions, np.arange(count + 1) - 0.5, colors=colours, alpha=0.3)
        # Draw the border of one class at a time, because a single contour plot would draw a strip
        # of class 1 between the classes 0 and 2.
        for c in range(count):
            ax.contour(*sides, regions == c, [0.5], colors="black", linewidths=1.2)
        window.frame(ax)
    else:
        f = window.evaluate(model.decision_function)
        ax = draw_function(new_axes(ax, (5.8, 5.0)), window, f, n_levels=12, lines=False)
        if count == 2:
            dashed: Style = {"colors": "black", "linestyles": "--", "linewidths": 1.1}
            ax.contour(*window.surface(f), [-1.0, 1.0], **dashed)
    two_sides = not is_multiclass and len(labels.names or ()) <= 2
    styles = diverging_styles(0.02, 0.98) if two_sides else CLASS_STYLES
    # Targets that are numbers do not determine the colour.
    scatter(ax, points, labels._replace(values=None), "0.1", styles, s=26, **POINT_STYLE)
    _mark_support(ax, points, model)
    return legend_below(ax)


def _line(model: Any, X: Points, y: Any, ax: Axes | None, n_grid: int) -> Axes:
    """Plot a support vector regression with one feature."""
    x = as_column(X, "X")
    window = window_around(x, n_grid, 0.05)
    if y is None or np.shape(y) != (len(x),):
        raise ValueError(
            f"y has shape {np.shape(y)}, but there are {len(x)} points - usually because y was "
            f"omitted, but the plot of a regression needs the targets - try margin(model, X, y)"
        )
    target = np.asarray(y, dtype=float)
    epsilon = float(model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon)
    f, names = (
        evaluate_on_grid(model.predict, window.grid),
        (f"± ε = {epsilon:.3g}", "f", "targets"),
    )
    ax = new_axes(ax, (6.4, 4.0))
    draw_band(ax, window.sides[0], f, epsilon, (x[:, 0], target), names)
    _mark_support(ax, np.column_stack([x, target]), model)
    return legend_below(open_frame(ax))


def _mark_support(ax: Axes, points: np.ndarray, model: Any) -> None:
    """Mark the free support vectors and those at their bound, with different markers."""
    support, at_bound = points[model.support_], model.at_bound_
    hollow: Style = {"s": 70, "facecolors": "none", "edgecolors": "black", "zorder": 4}
    for selected, start, end, marker, width in (
        (support[~at_bound], "free support vector", "", "o", 1.3),
        (support[at_bound], "support vector", " at bound", "s", 0.8),
    ):
        if len(selected):
            name = f"{len(selected)} {start}{'' if len(selected) == 1 else 's'}{end}"
            ax.scatter(*selected.T, marker=marker, linewidths=width, label=name, **hollow)


@plot
def spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the eigenvalues of a kernel PCA, their bounds, and the cumulative explained variance.

        lower_j <= l_j <= upper_j,        (l_1 + ... + l_j) / tr(K_c)

    The left axis, which is logarithmic, shows the eigenvalues l_1 >= l_2 >= ... of the centred
    kernel matrix K_c.  The right axis shows the cumulative fraction of the variance.  The
    intervals between the bounds are often smaller than a marker, so the legend states their largest
    relative width.  A bar that extends beyond the top of the axes has no upper bound; one that
    extends beyond the bottom has no positive lower bound.

    Parameters
    ----------
    model : KernelPCA
        A fitted model.  The bounds are its `eigenvalue_bounds_`, or `eigenvalues_` plus and minus
        `residuals_` if these do not exist.

    Returns
    -------
    matplotlib Axes
        The axes of the eigenvalues; the axes of the variance are the last in `ax.figure.axes`.

    See Also
    --------
    KernelPCA : The model.
    eigenfunctions : Plot the components as functions.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import spectrum
    >>> X, _ = three_clusters(90, random_state=0)
    >>> model = KernelPCA(8, kernel="rbf", gamma=10.0).fit(X)
    >>> ax = spectrum(model, ax=Figure().subplots())
    >>> ax.get_yscale()
    'log'
    """
    values = np.asarray(require_attribute(model, "eigenvalues_"), dtype=float)
    bounds, kind = _bounds(model, values)
    ratios = require_attribute(model, "explained_variance_ratio_")
    component = np.arange(1, len(values) + 1)
    shown = values > 0  # a logarithmic scale cannot show 0
    if not shown.any():
        raise ValueError(
            f"none of the {len(values)} eigenvalues is positive - usually because the kernel does "
            f"not distinguish the points - try a smaller length scale, or inspect the data"
        )
    positive, (lower, upper) = values[shown], bounds[shown].T
    has_upper = np.isfinite(upper)  # for a large matrix, some components may have no upper bound
    highest = max(positive[0], upper[has_upper].max(initial=0.0))
    lowest = min(positive[-1], lower[lower > 0].min(initial=positive[-1]))

    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax = new_axes(ax)
    has_markers, n_zero = len(values) <= 40, len(values) - len(positive)
    x, label = component[shown], "eigenvalue" + (f" ({n_zero} more are 0)" if n_zero else "")
    left_style: Style = {"color": PALETTE[0], "markersize": 6, "linewidth": 1.0}
    (line,) = ax.plot(x, positive, "o-" if has_markers else "-", label=label, **left_style)
    bar_style: Style = {"color": "black", "zorder": 3}
    # A bar without an upper bound extends beyond the axes.
    tops = np.where(has_upper, upper, 2.0 * highest)
    label = f"{kind}, {_widths((upper - lower) / positive)}"
    bars = ax.vlines(x, lower, tops, linewidth=1.5, label=label, **bar_style)
    ax.plot(np.r_[x, x[has_upper]], np.r_[lower, upper[has_upper]], "_", **bar_style)
    ax.set_yscale("log")
    ax.set_ylim(lowest / 1.8, 1.8 * highest)
    if highest < 300.0 * lowest:  # the axis has few powers of ten, so label other values, too
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())

    right_axes = twin_axes(ax, "component", "eigenvalue", "explained variance (%)")
    right_style: Style = {"color": PALETTE[1], "markersize": 5, "linewidth": 1.0}
    percent, label = 100.0 * np.cumsum(ratios), "cumulative explained variance"
    (variance_line,) = right_axes.plot(
        component, percent, "^--" if has_markers else "--", label=label, **right_style
    )
    right_axes.set_ylim(0.0, 102.0)
    return legend_above(ax, [line, bars, variance_line])


def _bounds(model: Any, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the bounds of the eigenvalues, of shape (k, 2), and their name for the legend."""
    bounds = getattr(model, "eigenvalue_bounds_", None)
    if bounds is not None:
        return np.asarray(bounds, dtype=float), "certified bounds"
    residuals = np.asarray(require_attribute(model, "residuals_"), dtype=float)
    return np.column_stack([values - residuals, values + residuals]), "± residual"


def _widths(widths: np.ndarray) -> str:
    """Describe the largest relative width of the bounds, such as 3.1e-14, 12 % or 140 %."""
    finite = widths[np.isfinite(widths)]
    n_open = len(widths) - len(finite)
    if n_open == len(widths):
        return "no upper bounds"
    largest = float(finite.max())
    text = f"{largest:.2g}" if largest < 1e-3 else f"{float(f'{100.0 * largest:.2g}'):g} %"
    return f"relative width at most {text}" + (f"; {n_open} without upper bound" if n_open else "")


@plot
def cluster_numbers(
    model: Any, X: Points, numbers: Iterable[int] = range(2, 9), ax: Axes | None = None
) -> Axes:
    """Plot the inertia and the mean silhouette against the number of clusters.

        inertia = sum_i w_i min_c |k(x_i, .) - f_c|^2,    s_i = (b_i - a_i) / max(a_i, b_i)

    Here w_i are the sample weights, and f_c the cluster centres in feature space.  The inertia, on
    the left axis, decreases with every additional cluster.  After the "elbow", where it starts to
    decrease slowly, more clusters only split groups of similar points.  The silhouette s_i, on the
    right axis, compares the mean distance a_i of a point to its own cluster with the mean distance
    b_i to the nearest other cluster, both in feature space.  The largest
    mean silhouette is marked.  The cost is quadratic in the number of points for each number of
    clusters.

    Parameters
    ----------
    model : KernelKMeans
        The model, which need not be fitted.  Copies of it are fitted with each number of clusters.
    X : points
        The points.  For a precomputed matrix K, use ``kernel=Precomputed(K)`` and the indices of
        the points.
    numbers : iterable of int, default=range(2, 9)
        The numbers of clusters, each at least 2.

    Returns
    -------
    matplotlib Axes
        The axes of the inertia; the axes of the silhouettes are the last in `ax.figure.axes`.

    See Also
    --------
    KernelKMeans : The model.
    mercer.solvers.silhouette : Compute silhouettes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import cluster_numbers
    >>> X, _ = three_clusters(90, random_state=0)
    >>> ax = cluster_numbers(KernelKMeans(kernel="linear"), X, range(2, 6), Figure().subplots())
    >>> ax.figure.axes[-1].lines[0].get_label()
    'mean silhouette, largest at 3'
    """
    counts = sorted(set(numbers))
    if not counts or counts[0] < 2:
        raise ValueError(
            f"silhouettes require at least 2 clusters, but the numbers are {counts} - usually "
            f"because the range begins at 1 - try range(2, 9)"
        )
    inertias, means = [], []
    K: Any = None
    for count in counts:
        fitted = clone(model).set_params(n_clusters=count).fit(X)
        inertias.append(require_attribute(fitted, "inertia_"))
        if K is None:  # the kernel matrix is the same for all numbers of clusters
            K = gram(fitted.kernel_, X, max_memory=fitted.max_memory)
        means.append(float(silhouette(K, fitted.labels_).mean()))

    ax = new_axes(ax)
    right = twin_axes(
        ax, "clusters", "inertia in feature space", "mean silhouette in feature space"
    )
    left: Style = {"color": PALETTE[0], "linewidth": 1.0, "markersize": 6}
    (line,) = ax.plot(counts, inertias, "o-", label="inertia", **left)
    ax.set_ylim(0.0, 1.05 * max(inertias))
    style: Style = {"color": PALETTE[1], "linewidth": 1.0, "markersize": 5}
    best = int(np.argmax(means))
    label = f"mean silhouette, largest at {counts[best]}"
    (silhouette_line,) = right.plot(counts, means, "^--", label=label, **style)
    hollow: Style = {"markerfacecolor": "none", "markeredgecolor": PALETTE[1]}
    right.plot(counts[best], means[best], "o", markersize=13, **hollow)
    right.set_ylim(min(0.0, 1.1 * min(means)), max(1.15 * max(means), 0.05))
    return legend_above(ax, [line, silhouette_line], n_columns=2)
