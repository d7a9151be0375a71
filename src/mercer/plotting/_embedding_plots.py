"""Scatter plots of one or several embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core import Points
from ._axes import (
    Axes,
    Style,
    check_components,
    interpret_labels,
    new_axes,
    open_frame,
    plot,
    require_attribute,
    scatter,
)

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
    panels = _panels(len(coordinates), figure)
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


def _panels(count: int, figure: Any) -> Any:
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
