"""Embeddings of points: coordinates, pre-images, contours, and their messages for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._core import Points, is_table, length, report_step, same_points, slices, take
from ...estimators import KernelPCA
from ..comparison import MODELS, find_model
from ._serialize import Message

_GRID_SIZE = 97  # contours are computed on a grid with this many positions per axis
_PREIMAGE_GRID_SIZE = 33  # the same if each position needs an iterative pre-image
_MAX_MATRIX_DIMENSIONS = 6  # the panel of components shows all pairs of the first 6 dimensions
_MAX_LEVELS = 9  # approximate number of contour levels
_BLOCK_ROWS = 4096  # functions of many points are evaluated in blocks, to report the progress
_MAGNIFICATION_DECADES = 3.0  # values more than 3 decades below the largest are clipped


def evaluate_in_blocks(function: Callable[[Points], np.ndarray], X: Points) -> np.ndarray:
    """Return a function of each point, computed in blocks; `capture_progress` can stop it between.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.app.explorer._embeddings import evaluate_in_blocks
    >>> evaluate_in_blocks(lambda X: X.sum(axis=1), np.ones((3, 2)))
    array([2., 2., 2.])
    """
    n, values = length(X), []
    for rows in slices(n, _BLOCK_ROWS) or [slice(0, 0)]:
        values.append(np.asarray(function(take(X, rows))))
        report_step(f"{min(rows.stop, n)} of {n} points", rows.stop, n)
    return np.concatenate(values)


class Preimage(NamedTuple):
    """The point that corresponds to a position in an embedding, and its residual.

    `text` is a sentence about the residual, which is shown to the user.
    """

    points: Points
    residual: float
    text: str


class Box(NamedTuple):
    """A rectangle in the coordinates of an embedding."""

    left: float
    right: float
    low: float
    high: float


class GridField(NamedTuple):
    """The values of a function on a grid of positions, and the levels of its contours."""

    values: np.ndarray
    box: Box
    levels: np.ndarray


class IdentityEmbedding:
    """Model whose embedding is the data itself, of which two columns are shown."""

    def transform(self, X: Points) -> np.ndarray:
        """Return the points unchanged."""
        return np.asarray(X, dtype=float)

    inverse_transform = transform


@dataclass(frozen=True, eq=False)
class Embedding:
    """Coordinates of points, the model that computed them, and the two visible dimensions.

    Attributes
    ----------
    title : str
        Title of the pane.
    model : fitted estimator
        A model with `transform`, and possibly with `preimage` or `inverse_transform`.
    coordinates : ndarray of shape (n, k)
        The coordinates of the points.
    shown_dims : pair of int
        The dimensions on the horizontal and the vertical axis.
    names : tuple of str
        Names of the dimensions; by default they are numbered.
    name : str
        The name of the model in `ModelRequest`; "given" for a model that the user passed.
    signs : tuple of int
        For each dimension 1, or -1 if its sign is the opposite of the sign that the model computes;
        () means that no sign differs.  All methods take and return coordinates with these signs.
    """

    title: str
    model: Any
    coordinates: np.ndarray
    shown_dims: tuple[int, int] = (0, 1)
    names: tuple[str, ...] = ()
    name: str = "given"
    signs: tuple[int, ...] = ()

    @property
    def is_kernel_pca(self) -> bool:
        """Whether the model is a kernel PCA, so that the dimensions are eigenfunctions."""
        return isinstance(self.model, KernelPCA)

    @property
    def has_inverse(self) -> bool:
        """Whether the model can compute the point that corresponds to a position."""
        if self.is_kernel_pca:
            return not self.model._components.in_features
        if isinstance(self.model, IdentityEmbedding):
            return self.coordinates.shape[1] == 2
        return hasattr(self.model, "inverse_transform")

    @property
    def can_transform(self) -> bool:
        """Whether the model can embed new points; t-SNE, for example, cannot."""
        return hasattr(self.model, "transform")

    def transform(self, X: Points) -> np.ndarray:
        """Return the coordinates of points; NaN if the model cannot embed new points."""
        if not self.can_transform:
            return np.full((length(X), self.coordinates.shape[1]), np.nan)
        Z = evaluate_in_blocks(self.model.transform, X)
        return Z * np.asarray(self.signs) if self.signs else Z

    def aligned_with(self, old: Embedding) -> Embedding:
        """Return the embedding with signs such that no dimension is reflected relative to `old`.

        The sign of a component is arbitrary.  For each dimension that both embeddings have, the
        correlation of the coordinates of their common points is made non-negative.
        """
        if isinstance(self.model, IdentityEmbedding) or isinstance(old.model, IdentityEmbedding):
            return self
        n, k = (
            min(pair) for pair in zip(self.coordinates.shape, old.coordinates.shape, strict=True)
        )
        Z, Z_old = (e.coordinates[:n, :k].astype(float) for e in (self, old))
        known = np.isfinite(Z).all(axis=1) & np.isfinite(Z_old).all(axis=1)
        products = np.sum((Z[known] - Z[known].mean(axis=0)) * Z_old[known], axis=0)
        flips = np.ones(self.coordinates.shape[1], dtype=int)
        flips[:k][products < 0] = -1
        return self.with_signs(flips * np.asarray(self.signs or 1))

    def oriented(self, axes: Any, signs: Any) -> Embedding:
        """Return the embedding with other shown dimensions and signs, which are validated."""
        across, up = (int(j) for j in axes)
        k = self.coordinates.shape[1]
        signs = [int(sign) for sign in signs] or [1] * k
        if not 0 <= min(across, up) <= max(across, up) < max(2, k):
            raise ValueError(f"the embedding has only {k} dimensions")
        if len(signs) != k or not {1, -1}.issuperset(signs):
            raise ValueError(f"{k} signs of dimensions are required, each of them 1 or -1")
        return replace(self.with_signs(signs), shown_dims=(across, up))

    def with_signs(self, signs: Any) -> Embedding:
        """Return the embedding with other signs of the dimensions."""
        signs = np.asarray(signs)
        flips = signs * np.asarray(self.signs or 1)
        if np.all(flips == 1):
            return self
        return replace(
            self,
            coordinates=self.coordinates * flips.astype(self.coordinates.dtype),
            signs=tuple(signs.tolist()),
        )

    def with_axes_of(self, other: Embedding | None) -> Embedding:
        """Return the embedding with the axes of another embedding by the same type of model."""
        if other is None or (other.name, other.shown_dims) == (self.name, self.shown_dims):
            return self
        is_possible = other.name == self.name and max(other.shown_dims) < self.coordinates.shape[1]
        return replace(self, shown_dims=other.shown_dims) if is_possible else self

    def axis(self, side: int) -> str:
        """Return the label of the horizontal (0) or vertical (1) axis."""
        j = self.shown_dims[side]
        if j >= self.coordinates.shape[1]:
            return "none (the embedding has only one dimension)"
        return self.dimension(j)

    def dimension(self, j: int) -> str:
        """Return the label of dimension j."""
        if self.names:
            return self.names[j]
        if self.is_kernel_pca:
            percent = 100.0 * self.model.explained_variance_ratio_[j]
            return f"component {j + 1} ({percent:.1f} % of the variance)"
        return f"dimension {j + 1}"

    def axis_values(self, side: int) -> np.ndarray:
        """Return the horizontal (0) or vertical (1) coordinates of the points as float32."""
        j = self.shown_dims[side]
        if j >= self.coordinates.shape[1]:
            return np.zeros(len(self.coordinates), dtype=np.float32)
        return self._values(j)

    def _values(self, j: int) -> np.ndarray:
        return np.ascontiguousarray(self.coordinates[:, j], dtype=np.float32)

    def full_coordinates(self, positions: np.ndarray) -> np.ndarray:
        """Convert m positions in the two shown dimensions to all k dimensions of the embedding.

        The coordinates in the dimensions that are not shown are 0.  The result has the signs of
        the model.
        """
        full = np.zeros((len(positions), self.coordinates.shape[1]))
        for side in (1, 0):  # if both axes show the same dimension, the horizontal one wins
            if self.shown_dims[side] < full.shape[1]:
                full[:, self.shown_dims[side]] = positions[:, side]
        return full * np.asarray(self.signs) if self.signs else full

    def preimages(self, positions: np.ndarray) -> list[Preimage]:
        """Return the points that correspond to m positions in the two shown dimensions."""
        full = self.full_coordinates(positions)
        note = "" if full.shape[1] <= 2 else " (coordinates that are not shown are 0)"
        if self.is_kernel_pca:
            result = self.model.preimage(full)
            points, residuals = result.points, result.residuals
            texts = [
                f"Pre-image z of the position p{note}: |φ(z) − p|² = {r:.4g} in the feature space "
                f"of the kernel (method {method!r})."
                for r, method in zip(residuals, result.methods, strict=True)
            ]
        else:
            points = self.model.inverse_transform(full)
            transformed = np.asarray(self.model.transform(points), dtype=float)
            residuals = np.linalg.norm(transformed - full, axis=1)
            texts = [
                f"Inverse transform of the position{note}; transforming it again gives a position "
                f"at distance {r:.4g}."
                for r in residuals
            ]
        each = enumerate(zip(residuals, texts, strict=True))
        return [Preimage(take(points, slice(i, i + 1)), float(r), text) for i, (r, text) in each]

    def grid(self, count: int, margin: float = 0.125) -> tuple[np.ndarray, Box]:
        """Return a grid of count x count positions around all points, and its bounding box.

        The positions are ordered by row, from the bottom up.  The margin around the
        points is `margin` times their larger extent.
        """
        across, up = (self.axis_values(side) for side in (0, 1))
        pad = margin * (max(_extent(across), _extent(up)) or 1.0)
        box = Box(
            *(float(c) for a in (across, up) for c in (np.nanmin(a) - pad, np.nanmax(a) + pad))
        )
        x, y = np.linspace(box.left, box.right, count), np.linspace(box.low, box.high, count)
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2), box

    # ------------------------------------------------------------------ overlays

    def overlays(self, others: Iterable[Embedding]) -> list[tuple[str, str]]:
        """Return the names and titles of the functions that have contours in this embedding.

        These are the eigenfunctions of the first kernel PCA among `others`, and the magnification.
        """
        if not self.has_inverse or (
            self.is_kernel_pca and not self.model.kernel_.domain.on_vectors
        ):
            return []  # searching pre-images among strings or graphs for a grid takes too long
        other = next((e for e in others if e.is_kernel_pca), None)
        count = 0 if other is None else other.coordinates.shape[1]
        names = [f"eigenfunction {j + 1}" for j in range(count)]
        if not self.is_kernel_pca and not isinstance(self.model, IdentityEmbedding):
            names.append("magnification")
        return [(name, name) for name in names]

    def function_on_grid(self, function: Callable[[Points], np.ndarray]) -> GridField:
        """Evaluate a function of points at the inverse transforms of a grid of positions."""
        return self._evaluate_on_grid(lambda Z: function(self._inverse(Z)))

    def _inverse(self, positions: np.ndarray) -> Points:
        """Return the points that correspond to positions in the two shown dimensions."""
        full = self.full_coordinates(positions)
        if self.is_kernel_pca:
            return self.model.preimage(full).points
        return self.model.inverse_transform(full)

    def magnification(self) -> GridField:
        """Return the log10 of the factor by which the inverse transform scales areas, on a grid.

        The factor is sqrt(det J^T J), where J is the Jacobian of the inverse transform in the two
        dimensions shown, computed by central differences.  Values are clipped at three decades
        below the largest, because far from all points a Gaussian process is constant and the
        determinant is almost 0.
        """
        step = 1e-3 * max(_extent(self.axis_values(side)) or 1.0 for side in (0, 1))
        sides = 2 if self.coordinates.shape[1] > 1 else 1

        def log_area_factor(Z: np.ndarray) -> np.ndarray:
            columns = []
            for side in range(sides):
                ahead, behind = Z.copy(), Z.copy()
                ahead[:, side] += step
                behind[:, side] -= step
                upper, lower = (
                    self.model.inverse_transform(self.full_coordinates(W)) for W in (ahead, behind)
                )
                columns.append((np.asarray(upper) - np.asarray(lower)) / (2.0 * step))
            J = np.stack(columns, axis=-1)
            gram = np.einsum("nda,ndb->nab", J, J)
            return 0.5 * np.log10(np.maximum(np.linalg.det(gram), 1e-300))

        return self._evaluate_on_grid(log_area_factor, _MAGNIFICATION_DECADES)

    def _evaluate_on_grid(
        self, function: Callable[[np.ndarray], np.ndarray], spread: float = np.inf
    ) -> GridField:
        """Evaluate a function of positions, (m, 2), on a grid around all points.

        Values below the largest value minus `spread` are clipped.
        """
        size = _PREIMAGE_GRID_SIZE if self.is_kernel_pca else _GRID_SIZE
        positions, box = self.grid(size)
        values = evaluate_in_blocks(function, positions)
        if np.isfinite(spread):
            values = np.maximum(values, values.max() - spread)
        values = values.astype(np.float32).reshape(size, size)
        return GridField(values, box, _levels(values))

    # ------------------------------------------------------------------ messages

    def to_message(self) -> Message:
        """Return the embedding as a message for the web page."""
        return {
            "title": self.title,
            "axes": [self.axis(0), self.axis(1)],
            "dimensions": [self.dimension(j) for j in range(self.coordinates.shape[1])],
            "shown": list(self.shown_dims),
            "x": self.axis_values(0),
            "y": self.axis_values(1),
            "has_inverse": self.has_inverse,
            "spectrum": self._spectrum(),
        }

    def components(self) -> list[np.ndarray]:
        """Return the coordinates of the points in the first dimensions, as float32."""
        count = min(_MAX_MATRIX_DIMENSIONS, self.coordinates.shape[1])
        return [self._values(j) for j in range(count)]

    def stored_components(self) -> list[np.ndarray | None]:
        """Return the components for a saved page, with None for those on the axes.

        The list is empty if all dimensions are shown.
        """
        if self.coordinates.shape[1] < 3:
            return []
        return [None if j in self.shown_dims else z for j, z in enumerate(self.components())]

    def _spectrum(self) -> Message | None:
        """Return the eigenvalues of a kernel PCA with their bounds, or None for other models."""
        if not self.is_kernel_pca:
            return None
        model, bounds = self.model, self.model.eigenvalue_bounds_
        c = model.certificate_
        is_bounded = np.isfinite(bounds).all(axis=1)
        text = "For this approximation, no bounds on the eigenvalues are known."
        if is_bounded.any():
            text = "The marks show rigorous bounds on the exact eigenvalues."
            proved = "; these are proved to be the largest eigenvalues" if c.nothing_missed else ""
            explained = f"{model.explained_variance_ratio_.sum():.1%}"
            text += f" Explained variance: {explained} in total{proved}."
        return {
            "values": model.eigenvalues_.tolist(),
            "lower": np.where(is_bounded, np.maximum(bounds[:, 0], 0.0), 0.0).tolist(),
            "upper": np.where(is_bounded, bounds[:, 1], np.nan).tolist(),
            "ratios": model.explained_variance_ratio_.tolist(),
            "text": text,
        }


def _extent(values: np.ndarray) -> float:
    """Return the difference of the largest and the smallest number; NaN is ignored."""
    return float(np.nanmax(values) - np.nanmin(values))


def _levels(values: np.ndarray) -> np.ndarray:
    """Return contour levels: round numbers between the smallest and the largest value."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if not high - low > 1e-6 * max(abs(low), abs(high)):  # the function is constant
        return np.zeros(0)
    raw = (high - low) / _MAX_LEVELS
    size = 10.0 ** np.floor(np.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step


def as_vectors(X: Points) -> np.ndarray | None:
    """Return the points as a dense matrix if they are vectors; None if sparse or structured."""
    if hasattr(X, "toarray") or length(X) == 0:
        return None
    if is_table(X) and len(X.shape) == 2:
        kinds = {np.asarray(X[name][:1]).dtype.kind for name in X.columns}
        return np.asarray(X, dtype=float) if kinds <= set("biuf") else None
    if isinstance(X, np.ndarray) or (isinstance(X, (list, tuple)) and np.ndim(X[0]) == 1):
        array = np.asarray(X)
        if array.ndim == 2 and array.dtype.kind in "biuf":
            return array.astype(float, copy=False)
    return None


def embedding_of(
    model: Any,
    X: Points,
    title: str | None = None,
    shown_dims: tuple[int, int] = (0, 1),
    *,
    trained: bool = False,
) -> Embedding:
    """Return the embedding of points by any fitted model with `transform`.

    If the dimensions `shown_dims` do not all exist, the first two are shown.  If `trained` is True,
    the model was fitted to exactly these points.
    """
    known = find_model(type(model).__name__)
    title = title or (type(model).__name__ if known is None else model_title(known))
    stored, requested = "embedding_", "given"
    if isinstance(model, KernelPCA):
        if not np.any(model.eigenvalues_ > 0):
            raise ValueError(
                f"the kernel {model.kernel_} considers all {length(X)} points equal, so "
                f"there are no components; usual causes are a length scale that is too large and "
                f"constant columns; try another kernel, or check the data"
            )
        has_landmarks = model._components.basis is not None
        title = "kernel PCA on landmarks" if has_landmarks else "kernel PCA"
        stored, requested = "training_scores_", "kernel-pca"
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    coordinates = getattr(model, stored, None)
    if not hasattr(model, "transform"):
        if coordinates is None or len(coordinates) != length(X):
            n = 0 if coordinates is None else len(coordinates)
            raise ValueError(
                f"{type(model).__name__} cannot embed new points, because it has no method "
                f"transform; it has coordinates of {n} points, but {length(X)} are shown; fit it "
                f"to the points that are shown, or choose another model"
            )
    elif not trained:
        coordinates = None
    coordinates = np.asarray(model.transform(X) if coordinates is None else coordinates)
    k = coordinates.shape[1]
    dims_exist = max(shown_dims) < k or k < 2
    return Embedding(
        title, model, coordinates, shown_dims if dims_exist else (0, 1), name=requested
    )


def model_title(name: str) -> str:
    """Return the title of a model in `MODELS`."""
    return MODELS[name].title or name
