"""The map of the points: two scores of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._runtime import entry_point
from ._axes import PALETTE, SEQUENTIAL, Axes, Style, new_axes, require_matplotlib
from ._labels import labels_of, scatter
from ._model import check_components, learned

__all__ = ["embedding"]


@entry_point
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
        With a model, the labels say how much of the variance each component explains.
    y : array-like of shape (n,), optional
        What to colour by: classes, with a legend, or a number, with a colour bar.  Whole numbers
        are classes if there are at most ten different ones.
    X : points, optional
        Whose scores to draw; the training points by default.
    components : pair of int, default=(0, 1)
        Counted from 0; the labels count from 1.
    ax : matplotlib Axes, by default those of a new figure; they are returned

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
                f"got {what}, but no model to give scores of shape (n, k) - usually points in "
                f"place of a model - try a fitted KernelPCA, or model.transform(X)"
            )
    if len(components) != 2:
        raise ValueError(
            f"{len(components)} components are asked for, but a map has two axes - "
            f"usually all components at once - try components=(0, 1)"
        )
    plane = scores[:, check_components(components, scores.shape[1])]
    labels = labels_of(y, len(scores))

    ax = new_axes(ax)
    style: Style = {"s": 18, "alpha": 0.75, "linewidths": 0}
    if y is not None and labels.names is None:
        across, up = plane.T
        points = ax.scatter(across, up, c=labels.values, cmap=SEQUENTIAL, **style)
        ax.figure.colorbar(points, ax=ax, label=str(getattr(y, "name", None) or "y"))
    else:
        scatter(ax, plane, labels, PALETTE[0], **style)
    if labels.names is not None:
        # The best corner is searched for among all points, which is slow for many.
        best: Style = {"loc": "best" if len(scores) <= 5000 else "upper right"}
        ax.legend(framealpha=0.85, markerscale=1.5, **best)
    shares = ["" if ratios is None else f" ({100.0 * ratios[j]:.1f} %)" for j in components]
    names = [f"component {j + 1}{share}" for j, share in zip(components, shares, strict=True)]
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _scores(model: Any, X: Any) -> np.ndarray:
    """Return the scores of X, or for None those of the training points."""
    if X is not None:
        check_is_fitted(
            model,
            msg="this %(name)s gives no scores - usually because it was not fitted yet - "
            "try fit(X) first",
        )
        return np.asarray(model.transform(X))
    if hasattr(model, "training_scores_"):  # in mercer weights and whitening change the scores
        return np.asarray(model.training_scores_)
    return learned(model, "eigenvectors_") * np.sqrt(learned(model, "eigenvalues_"))
