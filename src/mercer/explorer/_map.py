"""A map: the places of points in a few dimensions, and the way back from a place to a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._points import take
from ..estimators import KernelPCA

__all__ = ["Answer", "Box", "Field", "Map", "Plane"]

_GRID = 97  # places across and up at which a function is drawn
_LEVELS = 9
_DECADES = 3.0  # of magnification that are told apart


class Answer(NamedTuple):
    """What would be at a place: a point, and how true that is."""

    points: Any
    residual: float
    words: str


class Box(NamedTuple):
    """A part of the screen, in the units of a map."""

    left: float
    right: float
    low: float
    high: float


class Field(NamedTuple):
    """A function of places, on a grid, and the levels at which it is drawn."""

    values: np.ndarray
    box: Box
    levels: np.ndarray


class Plane:
    """Points that are places themselves: two columns of numbers."""

    def transform(self, X: Any) -> np.ndarray:
        """Return the points."""
        return np.asarray(X, dtype=float)

    inverse_transform = transform


@dataclass(frozen=True, eq=False)
class Map:
    """Places of points, the model that put them there, and which two of its dimensions are shown.

    Attributes
    ----------
    title : str
    model : fitted estimator
        With `transform`; and with `preimage` or `inverse_transform`, if there is a way back.
    places : ndarray of shape (n, k)
    shown : pair of int
    names : tuple of str
        What the dimensions are called.
    """

    title: str
    model: Any
    places: np.ndarray
    shown: tuple[int, int] = (0, 1)
    names: tuple[str, ...] = ()

    @property
    def is_kernel_pca(self) -> bool:
        """Whether its dimensions are eigenfunctions of a kernel."""
        return isinstance(self.model, KernelPCA)

    @property
    def decodes(self) -> bool:
        """Whether there is a way back from a place to a point."""
        if self.is_kernel_pca:
            return not self.model._components.in_features
        if isinstance(self.model, Plane):
            return self.places.shape[1] == 2
        return hasattr(self.model, "inverse_transform")

    def axis(self, side: int) -> str:
        """Return what is shown across (0) or up (1)."""
        j = self.shown[side]
        if j >= self.places.shape[1]:
            return "nothing: the map has one dimension"
        if self.names:
            return self.names[j]
        if self.is_kernel_pca:
            share = 100.0 * self.model.explained_variance_ratio_[j]
            return f"component {j + 1} ({share:.1f} %)"
        return f"dimension {j + 1}"

    def coordinates(self, side: int) -> np.ndarray:
        """Return where points lie across (0) or up (1), in the precision of a screen."""
        j = self.shown[side]
        if j >= self.places.shape[1]:
            return np.zeros(len(self.places), dtype=np.float32)
        return np.ascontiguousarray(self.places[:, j], dtype=np.float32)

    def scores(self, places: np.ndarray) -> np.ndarray:
        """Return places on the screen, (m, 2), as places of the map; 0 in what is not shown."""
        found = np.zeros((len(places), self.places.shape[1]))
        for side in (1, 0):  # the first dimension wins, should both be the same
            if self.shown[side] < found.shape[1]:
                found[:, self.shown[side]] = places[:, side]
        return found

    def answers(self, places: np.ndarray) -> list[Answer]:
        """Return what would be at places on the screen, (m, 2)."""
        scores = self.scores(places)
        more = "" if scores.shape[1] <= 2 else " (0 in the dimensions that are not shown)"
        if self.is_kernel_pca:
            found = self.model.preimage(scores)
            points, residuals = found.points, found.residuals
            told = [
                f"The pre-image{more}: |φ(z) − place|² = {r:.4g} in the feature space of the "
                f"kernel, found by {by!r}."
                for r, by in zip(residuals, found.methods, strict=True)
            ]
        else:
            points = self.model.inverse_transform(scores)
            back = np.asarray(self.model.transform(points), dtype=float)
            residuals = np.linalg.norm(back - scores, axis=1)
            told = [
                f"Expected by the model{more}; it would be mapped {r:.4g} from here."
                for r in residuals
            ]
        each = enumerate(zip(residuals, told, strict=True))
        return [Answer(take(points, slice(i, i + 1)), float(r), words) for i, (r, words) in each]

    def grid(self, count: int, margin: float = 0.125) -> tuple[np.ndarray, Box]:
        """Return count x count places around all points, row by row from below, and their box."""
        across, up = (self.coordinates(side) for side in (0, 1))
        more = margin * (max(float(np.ptp(across)), float(np.ptp(up))) or 1.0)
        box = Box(*(float(c) for a in (across, up) for c in (a.min() - more, a.max() + more)))
        x, y = np.linspace(box.left, box.right, count), np.linspace(box.low, box.high, count)
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2), box

    # ------------------------------------------------------------------ overlays

    @property
    def overlays(self) -> list[tuple[str, str]]:
        """Names and titles of the functions of places that can be drawn, beside eigenfunctions."""
        if self.is_kernel_pca or isinstance(self.model, Plane) or not self.decodes:
            return []
        return [("magnification", "magnification")]

    def over_points(self, function: Any) -> Field:
        """Return a function of points, seen in this map: z -> f(decode(z))."""
        return self._field(lambda Z: function(self.model.inverse_transform(self.scores(Z))))

    def magnification(self) -> Field:
        """Return log10 sqrt(det J^T J), how much the way back stretches areas at each place.

        J is the derivative of the way back in the two dimensions shown, by differences.  Far from
        all points a Gaussian process is flat: values end three decades below the largest.
        """
        step = 1e-3 * max(float(np.ptp(self.coordinates(side))) or 1.0 for side in (0, 1))
        sides = 2 if self.places.shape[1] > 1 else 1

        def stretch(Z: np.ndarray) -> np.ndarray:
            columns = []
            for side in range(sides):
                ahead, behind = Z.copy(), Z.copy()
                ahead[:, side] += step
                behind[:, side] -= step
                there, here = (
                    self.model.inverse_transform(self.scores(W)) for W in (ahead, behind)
                )
                columns.append((np.asarray(there) - np.asarray(here)) / (2.0 * step))
            J = np.stack(columns, axis=-1)
            gram = np.einsum("nda,ndb->nab", J, J)
            found = 0.5 * np.log10(np.maximum(np.linalg.det(gram), 1e-300))
            return np.maximum(found, found.max() - _DECADES)

        return self._field(stretch)

    def _field(self, function: Any) -> Field:
        """Return a function of places on the screen, on a grid around all points."""
        places, box = self.grid(_GRID)
        values = np.asarray(function(places), dtype=np.float32).reshape(_GRID, _GRID)
        return Field(values, box, _levels(values))

    # ------------------------------------------------------------------ for the view

    def told(self) -> dict[str, Any]:
        """Return the map for the wire."""
        return {
            "title": self.title,
            "axes": [self.axis(0), self.axis(1)],
            "x": self.coordinates(0),
            "y": self.coordinates(1),
            "decodes": self.decodes,
            "spectrum": self._spectrum(),
        }

    def _spectrum(self) -> dict[str, Any] | None:
        if not self.is_kernel_pca:
            return None
        model, bounds = self.model, self.model.eigenvalue_bounds_
        c = model.certificate_
        known = np.isfinite(bounds).all(axis=1)
        words = "No bounds are known for this approximation."
        if known.any():
            words = "Marks show between which bounds the exact eigenvalues are proved to lie."
            missed = "; proved: no larger one was missed" if c.nothing_missed else ""
            words += (
                f" Together {model.explained_variance_ratio_.sum():.1%} of the variance{missed}."
            )
        upper = [float(b) if ok else None for (_, b), ok in zip(bounds, known, strict=True)]
        return {
            "values": model.eigenvalues_.tolist(),
            "lower": [
                max(0.0, float(a)) if ok else 0.0 for (a, _), ok in zip(bounds, known, strict=True)
            ],
            "upper": upper,
            "shares": model.explained_variance_ratio_.tolist(),
            "words": words,
        }

    def with_shown(self, shown: tuple[int, int]) -> Map:
        """Return the map with other dimensions across and up."""
        return replace(self, shown=shown)


def _levels(values: np.ndarray) -> np.ndarray:
    """Return round numbers between the smallest and the largest value."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if not high - low > 1e-6 * max(abs(low), abs(high)):  # the same everywhere
        return np.zeros(0)
    raw = (high - low) / _LEVELS
    size = 10.0 ** np.floor(np.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
