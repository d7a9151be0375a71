"""Embeddings of points, the models that compute them, and their expected run times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ... import estimators
from ..._core import Points, is_table, length, same_points, take
from ...estimators import KernelPCA
from ...kernels import Kernel
from ...solvers import Plan
from ._serialize import Message

_GRID_SIZE = 97  # contours are computed on a grid with this many positions per axis
_MAX_LEVELS = 9  # approximate number of contour levels
_MAGNIFICATION_DECADES = 3.0  # values more than 3 decades below the largest are clipped


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
    """

    title: str
    model: Any
    coordinates: np.ndarray
    shown_dims: tuple[int, int] = (0, 1)
    names: tuple[str, ...] = ()

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

    def axis(self, side: int) -> str:
        """Return the label of the horizontal (0) or vertical (1) axis."""
        j = self.shown_dims[side]
        if j >= self.coordinates.shape[1]:
            return "none (the embedding has only one dimension)"
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
        return np.ascontiguousarray(self.coordinates[:, j], dtype=np.float32)

    def full_coordinates(self, positions: np.ndarray) -> np.ndarray:
        """Convert m positions in the two shown dimensions to all k dimensions of the embedding.

        The coordinates in the dimensions that are not shown are 0.
        """
        full = np.zeros((len(positions), self.coordinates.shape[1]))
        for side in (1, 0):  # if both axes show the same dimension, the horizontal one wins
            if self.shown_dims[side] < full.shape[1]:
                full[:, self.shown_dims[side]] = positions[:, side]
        return full

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
        pad = margin * (max(float(np.ptp(across)), float(np.ptp(up))) or 1.0)
        box = Box(*(float(c) for a in (across, up) for c in (a.min() - pad, a.max() + pad)))
        x, y = np.linspace(box.left, box.right, count), np.linspace(box.low, box.high, count)
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2), box

    # ------------------------------------------------------------------ overlays

    @property
    def overlays(self) -> list[tuple[str, str]]:
        """Names and titles of functions, other than eigenfunctions, that have contours."""
        if self.is_kernel_pca or isinstance(self.model, IdentityEmbedding) or not self.has_inverse:
            return []
        return [("magnification", "magnification")]

    def function_on_grid(self, function: Callable[[Points], np.ndarray]) -> GridField:
        """Evaluate a function of points at the inverse transforms of a grid of positions."""
        return self._evaluate_on_grid(
            lambda Z: function(self.model.inverse_transform(self.full_coordinates(Z)))
        )

    def magnification(self) -> GridField:
        """Return the log10 of the factor by which the inverse transform scales areas, on a grid.

        The factor is sqrt(det J^T J), where J is the Jacobian of the inverse transform in the two
        dimensions shown, computed by central differences.  Values are clipped at three decades
        below the largest, because far from all points a Gaussian process is constant and the
        determinant is almost 0.
        """
        step = 1e-3 * max(float(np.ptp(self.axis_values(side))) or 1.0 for side in (0, 1))
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
            log_factor = 0.5 * np.log10(np.maximum(np.linalg.det(gram), 1e-300))
            return np.maximum(log_factor, log_factor.max() - _MAGNIFICATION_DECADES)

        return self._evaluate_on_grid(log_area_factor)

    def _evaluate_on_grid(self, function: Callable[[np.ndarray], np.ndarray]) -> GridField:
        """Evaluate a function of positions, (m, 2), on a grid around all points."""
        positions, box = self.grid(_GRID_SIZE)
        values = np.asarray(function(positions), dtype=np.float32).reshape(_GRID_SIZE, _GRID_SIZE)
        return GridField(values, box, _levels(values))

    # ------------------------------------------------------------------ messages

    def to_message(self) -> Message:
        """Return the embedding as a message for the web page."""
        return {
            "title": self.title,
            "axes": [self.axis(0), self.axis(1)],
            "x": self.axis_values(0),
            "y": self.axis_values(1),
            "has_inverse": self.has_inverse,
            "spectrum": self._spectrum(),
        }

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


SECOND_MODELS = {  # for each second embedding: title, estimator class and parameters
    "ppca": ("probabilistic PCA", "ProbabilisticPCA", {}),
    "gplvm": ("GPLVM", "GPLVM", {}),
    "bayesian-gplvm": ("Bayesian GPLVM", "BayesianGPLVM", {}),
    "autoencoder": ("autoencoder", "Autoencoder", {}),
    "mds": ("metric MDS", "MetricMDS", {}),
    "sammon": ("Sammon's map", "MetricMDS", {"stress": "sammon"}),
}
_DISTANCE_MODELS = ("mds", "sammon")  # models that need only distances, which any kernel defines
MAX_EXACT_SECONDS = 20.0  # if an exact kernel PCA takes longer, use the Nyström approximation
_FAST_MODELS = ("ppca", "data", "none")
_MAX_UNCONFIRMED_POINTS = 500  # with more points, slow models are fitted only after confirmation


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


def affordable_kernel_pca(model: KernelPCA, X: Points) -> tuple[KernelPCA, Plan]:
    """Return a kernel PCA that can be fitted in acceptable time, and the plan of its fit.

    Returns `model` itself if its exact fit takes at most `MAX_EXACT_SECONDS` or if it specifies an
    `eigen_solver`, and otherwise a copy that uses the Nyström approximation.
    """
    plan = model.plan(X)
    if model.eigen_solver != "auto" or plan.seconds <= MAX_EXACT_SECONDS:
        return model, plan
    model = clone(model).set_params(eigen_solver="nystroem")
    return model, model.plan(X)


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
    name = type(model).__name__
    titles = {cls: text for text, cls, parameters in SECOND_MODELS.values() if not parameters}
    title, stored = title or titles.get(name, name), "embedding_"
    if isinstance(model, KernelPCA):
        if not np.any(model.eigenvalues_ > 0):
            raise ValueError(
                f"the kernel {model.kernel_} considers all {length(X)} points equal, so "
                f"there are no components; usual causes are a length scale that is too large and "
                f"constant columns; try another kernel, or check the data"
            )
        has_landmarks = model._components.basis is not None
        title = "kernel PCA on landmarks" if has_landmarks else "kernel PCA"
        stored = "training_scores_"
    trained = trained or same_points(getattr(model, "X_fit_", ()), X)
    coordinates = getattr(model, stored, None) if trained else None
    coordinates = np.asarray(model.transform(X) if coordinates is None else coordinates)
    k = coordinates.shape[1]
    dims_exist = max(shown_dims) < k or k < 2
    return Embedding(title, model, coordinates, shown_dims if dims_exist else (0, 1))


def second_options(X: Points) -> list[tuple[str, str]]:
    """Return the keys and titles of the second embeddings that support these points."""
    options, dense = [("none", "none")], as_vectors(X)
    if dense is not None and dense.shape[1] > 1:
        options.append(("data", "the data (two columns)"))
    models = [(key, m[0]) for key, m in SECOND_MODELS.items() if hasattr(estimators, m[1])]
    wide = dense is not None and dense.shape[1] > 2
    return options + [
        model for model in models if wide or (dense is None and model[0] in _DISTANCE_MODELS)
    ]


def fit_second_embedding(
    name: str, X: Points, names: list[str], kernel: Kernel | None = None, *, verbose: bool = False
) -> Embedding | None:
    """Fit the model of a second embedding, and return the embedding, or None for "none".

    `kernel` defines the distances of points that are not vectors.
    """
    if name == "none":
        return None
    options = [key for key, _ in second_options(X)]
    if name not in options:
        raise ValueError(
            f"the second embedding {name!r} is not available for these points; the options are "
            f"{', '.join(options)}"
        )
    dense = as_vectors(X)
    if dense is not None and name == "data":
        X = dense
        across, up = np.sort(np.argsort(-np.nanvar(X, axis=0), kind="stable")[:2]).tolist()
        return Embedding("the data", IdentityEmbedding(), X, (across, up), tuple(names))
    title, cls, parameters = SECOND_MODELS[name]
    model = getattr(estimators, cls)(n_components=2, **parameters)
    if dense is None:
        model.set_params(kernel=kernel)
    verbose_option = {"verbose": 1} if verbose and "verbose" in model.get_params() else {}
    model.set_params(**verbose_option).fit(X if dense is None else dense)
    model.set_params(**dict.fromkeys(verbose_option, 0))
    return embedding_of(model, X if dense is None else dense, title, trained=True)


def uses_kernel_distances(name: str, X: Points) -> bool:
    """Return True if the second embedding is computed from distances defined by the kernel."""
    return name in _DISTANCE_MODELS and as_vectors(X) is None


def second_fit_seconds(name: str, X: Points) -> float:
    """Return the expected seconds to fit a second embedding; inf if unknown."""
    return 0.0 if name in _FAST_MODELS or length(X) <= _MAX_UNCONFIRMED_POINTS else np.inf
