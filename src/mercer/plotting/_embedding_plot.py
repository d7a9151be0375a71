"""Scatter plot of two components of a kernel PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core import entry_point
from ._axes import (
    PALETTE,
    SEQUENTIAL,
    Axes,
    Style,
    check_components,
    new_axes,
    require_attribute,
    require_matplotlib,
)
from ._class_colours import interpret_labels, scatter

__all__ = ["embedding"]


@entry_point
def embedding(
    model_or_scores: Any,
    y: Any = None,
    X: Any = None,
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
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes.

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
    require_matplotlib()
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
    if y is not None and labels.names is None:
        horizontal, vertical = plane.T
        points = ax.scatter(horizontal, vertical, c=labels.values, cmap=SEQUENTIAL, **style)
        ax.figure.colorbar(points, ax=ax, label=str(getattr(y, "name", None) or "y"))
    else:
        scatter(ax, plane, labels, PALETTE[0], **style)
    if labels.names is not None:
        # loc="best" checks all points, which is slow if there are many.
        location: Style = {"loc": "best" if len(scores) <= 5000 else "upper right"}
        ax.legend(framealpha=0.85, markerscale=1.5, **location)
    suffixes = ["" if ratios is None else f" ({100.0 * ratios[j]:.1f} %)" for j in components]
    names = [f"component {j + 1}{suffix}" for j, suffix in zip(components, suffixes, strict=True)]
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _scores(model: Any, X: Any) -> np.ndarray:
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
