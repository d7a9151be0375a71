"""The map of the points: two scores of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import MARKERS, PALETTE, SEQUENTIAL, new_axes, require_matplotlib
from ._classes import as_classes
from ._model import check_components, component_label, scores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["embedding"]


def embedding(
    model_or_scores: Any,
    y: Any = None,
    X: Any = None,
    components: Sequence[int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw the points at their scores (<w_i, phi(x) - mu>, <w_j, phi(x) - mu>).

    Both scores are lengths in feature space, so that both axes have the same scale.

    Parameters
    ----------
    model_or_scores : fitted KernelPCA, or array of shape (n, k)
        Of a model the labels say how much of the variance each component explains.
    y : array-like of shape (n,), optional
        What to colour by: classes, with a legend, or a number, with a colour bar.  Whole numbers
        are classes if there are at most ten different ones.
    X : points, optional
        Whose scores to draw; the training points by default.
    components : pair of int, default=(0, 1)
        Counted from 0; the labels count from 1.
    ax : matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    ax : matplotlib Axes

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
        scores = scores_of(model_or_scores, X)
        ratios = getattr(model_or_scores, "explained_variance_ratio_", None)
    else:
        scores, ratios = np.asarray(model_or_scores), None
        if scores.ndim != 2 or X is not None:
            what = "X" if scores.ndim == 2 else f"scores of shape {scores.shape}"
            raise ValueError(
                f"got {what}, but no model to give scores of shape (n, k) - usually points in "
                f"place of a model - try a fitted KernelPCA, or model.transform(X)"
            )
    if len(components) != 2:
        raise ValueError(
            f"{len(components)} components are asked for, but a map has two axes - "
            f"usually all components at once - try components=(0, 1)"
        )
    i, j = check_components(components, scores.shape[1])
    across, up = scores[:, i], scores[:, j]
    kind = None if y is None else as_classes(y, len(scores))

    ax = new_axes(ax)
    style: dict[str, Any] = {"s": 18, "alpha": 0.75, "linewidths": 0}
    if kind is None:
        ax.scatter(across, up, color=PALETTE[0], **style)
    elif kind[1] is None:
        points = ax.scatter(across, up, c=kind[0], cmap=SEQUENTIAL, **style)
        ax.figure.colorbar(points, ax=ax, label=str(getattr(y, "name", None) or "y"))
    else:
        for c, name in enumerate(kind[1]):
            of_class = kind[2] == c
            round_, colour = divmod(c, len(PALETTE))
            ax.scatter(
                across[of_class],
                up[of_class],
                color=PALETTE[colour],
                marker=MARKERS[round_],
                label=name,
                **style,
            )
        # the best corner is searched for among all points: not among very many
        ax.legend(
            loc="best" if len(scores) <= 5000 else "upper right", framealpha=0.85, markerscale=1.5
        )
    ax.set_xlabel(component_label(i, ratios))
    ax.set_ylabel(component_label(j, ratios))
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
