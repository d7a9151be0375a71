"""A desk answers the requests of one page: short ones at once, long ones in a thread.

A page always shows the result of its newest request for a fit.  An older fit is ended at its next
step, or its result is dropped, even if the newest request turns out to be invalid.
"""

from __future__ import annotations

import base64
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from .._runtime import hearing
from ..estimators import KernelPCA
from ..kernels import Kernel, as_kernel
from ..solvers import Status
from ..tables import open_table
from ._map import Map
from ._models import affordable, follows, kernel_map, second_map, seconds, seconds_for, vectors
from ._page import page
from ._scene import Scene
from ._watched import WatchedScene
from ._wire import pack
from ._worker import Worker

__all__ = ["Desk"]

AT_ONCE = 1.0  # seconds of a fit beyond which somebody has to press Run
_MOST = 50  # components that can be asked for
_STRUCTURED = ("strings", "texts", "graphs")  # domains of kernels that do not compare vectors


class Overtaken(Exception):
    """A newer question has taken the place of this one."""


@dataclass(frozen=True)
class Wish:
    """What is to be fitted: a kernel, a number of components, and a second map."""

    kernel: Kernel | None
    components: int
    second: str


class Desk:
    """Answers questions about a scene.

    Parameters
    ----------
    scene : Scene
    send : function
        Takes the bytes of an answer.
    source : WatchedScene, optional
        The file that the scene came from.

    Attributes
    ----------
    scene : Scene
        As it is now.
    selection : ndarray of int
        The rows that are selected on the page, counted from 0.
    """

    def __init__(
        self,
        scene: Scene,
        send: Callable[[bytes], None],
        source: WatchedScene | None = None,
    ) -> None:
        self.scene, self.selection = scene, np.zeros(0, dtype=np.int64)
        self._send, self._source = send, source
        self._wish = self._first_wish(scene)
        self._newest = 0
        self._lock = threading.Lock()
        self._fits = Worker("mercer-fits")
        self._answers = Worker("mercer-answers")
        self._seen = None if source is None else source.stamp
        self._told = False

    def close(self) -> None:
        """Drop what is queued, and end a running fit at its next step."""
        self._overtake()
        self._fits.close()
        self._answers.close()

    @property
    def is_busy(self) -> bool:
        """Whether a fit or another long request is running."""
        return self._fits.is_busy or self._answers.is_busy

    def first(self) -> bytes:
        """Return the scene for a page that has just been opened."""
        return pack(self.scene.told(live=True) | self._panes())

    # ------------------------------------------------------------------ questions

    def handle(self, question: Any) -> None:
        """Answer a question: a dict whose `ask` says which; others are not heard."""
        asks: dict[str, Callable[[dict], None]] = {
            "scene": self._later(self._open),
            "select": self._select,
            "place": self._later(self._place),
            "column": self._later(self._column),
            "field": self._later(self._field),
            "axes": self._axes,
            "fit": self._fit,
            "page": self._later(self._page),
            "project": self._later(self._project),
            "reread": self._later(self._again),
        }
        what = question.get("ask") if isinstance(question, dict) else None
        if isinstance(what, str) and what in asks:
            self._guarded(asks[what], question)

    def _later(self, answer: Callable[[dict], None]) -> Callable[[dict], None]:
        return lambda question: self._answers.submit(self._guarded, answer, question)

    def _guarded(self, answer: Callable[[dict], None], question: dict) -> None:
        """Answer a request, or report why that failed, and go on with the next one."""
        try:
            answer(question)
        except Overtaken:
            return
        except Exception as error:
            text = _first_words(error)
            if question.get("ask") == "column":
                self.tell("column", name=str(question.get("name")), error=text)
            elif question.get("ask") == "place":
                token, pane = _number(question, "token"), _number(question, "pane")
                place = [_number(question, "x"), _number(question, "y")]
                more = {"title": "Nothing", "record": [], "place": place, "image": None}
                self.tell("place", token=token, pane=pane, words=text, **more)
            elif question.get("ask") == "fit":
                self.tell("state", error=text, token=_number(question, "token"))
            else:
                act = "reread" if question.get("ask") == "reread" else None
                self.tell("notice", text=text, act=act)

    def tell(self, kind: str, **values: Any) -> None:
        """Send an answer."""
        self._send(pack({"kind": kind, **values}))

    # ------------------------------------------------------------------ answers

    def _select(self, question: dict) -> None:
        rows = np.frombuffer(base64.b64decode(question["rows"]), "<u4").astype(np.int64)
        self.selection = rows[rows < len(self.scene)]

    def _place(self, question: dict) -> None:
        scene, x, y = self.scene, float(question["x"]), float(question["y"])
        one = scene.maps[int(question["pane"])]
        found = one.answers(np.array([[x, y]]))[0]
        self.tell(
            "place",
            token=_number(question, "token"),
            pane=int(question["pane"]),
            place=[x, y],
            title=one.title,
            record=[] if scene.image else scene.record(found.points),
            image=scene.pixels(found.points),
            residual=found.residual,
            words=found.words,
        )

    def _column(self, question: dict) -> None:
        self.tell("column", **self.scene.column(str(question["name"])))

    def _field(self, question: dict) -> None:
        pane, name = int(question["pane"]), str(question["name"])
        one = self.scene.maps[pane]
        if not name:
            self.tell("field", pane=pane, values=None, words="No lines.")
            return
        kind, _, number = name.partition(" ")
        if kind == "magnification":
            found = one.magnification()
            words = "Lines of log10 of how much the way back stretches areas."
        else:
            functions, j = self._eigen.model, int(number) - 1
            found = one.over_points(lambda X: functions.transform(X)[:, j])
            words = f"Lines of eigenfunction {j + 1} of {self._eigen.title}."
        if not len(found.levels):
            words += f" It is {float(found.values.flat[0]):.4g} everywhere."
        self.tell(
            "field",
            pane=pane,
            name=name,
            values=found.values.reshape(-1),
            rows=found.values.shape[0],
            columns=found.values.shape[1],
            **found.box._asdict(),
            levels=found.levels.tolist(),
            words=words,
        )

    def _axes(self, question: dict) -> None:
        across, up = (int(j) for j in question["axes"])
        first, *rest = self.scene.maps
        if not 0 <= min(across, up) <= max(across, up) < first.places.shape[1]:
            raise ValueError(f"the map has {first.places.shape[1]} dimensions")
        self._show((first.with_shown((across, up)), *rest))

    def _page(self, question: dict) -> None:
        self.tell("page", name="explorer.html", bytes=np.frombuffer(self.html().encode(), "u1"))

    def html(self) -> str:
        """Return the scene as it is now as a page of its own."""
        return page(self.scene.told(live=False))

    def _project(self, question: dict) -> None:
        """Add rows of an uploaded file to the same maps."""
        name = str(question["name"])
        suffixes = "".join(Path(name).suffixes[-2:])  # two for .csv.gz
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / f"new{suffixes if suffixes.isascii() else ''}"
            place.write_bytes(base64.b64decode(question["bytes"]))
            try:
                source = open_table(place)
                source.name = name
                recipe = self.scene.recipe
                table = source.table(() if recipe is None else recipe.text_columns)
            except (ValueError, OSError) as error:  # name the user's file, not the temporary one
                raise ValueError(str(error).replace(str(place), name)) from None
        self._renew(self.scene.projected(table))
        self.tell("notice", text=f"{len(table)} rows of {name} are in the maps.")

    def _again(self, question: dict) -> None:
        """Show the file as it is now."""
        if self._source is not None:
            self._source.refresh()
            self._restart(self._source)

    def _restart(self, source: WatchedScene) -> None:
        """Show the scene that was read from the file last."""
        self._seen, self._told = source.stamp, False
        self._renew(source.scene)
        self._wish = self._first_wish(self.scene)

    def _renew(self, scene: Scene) -> None:
        self._overtake()  # drop the fits of the old points
        self.scene = scene
        self._send(self.first())

    # ------------------------------------------------------------------ the file

    def _open(self, question: dict) -> None:
        """Send the scene to a new page, from the file as it is now."""
        source = self._source
        if source is None or source.path is None or not source.changed_since(self._seen):
            self._send(self.first())
            return
        try:
            source.refresh()
        except Exception as error:
            self._told = True
            self._send(self.first())
            text = f"{source.path.name} has changed, but cannot be read: {_first_words(error)}"
            self.tell("notice", text=text, act="reread")
        else:
            self._restart(source)

    def check_file(self) -> None:
        """Tell the page, once, that the file is not the one that was read."""
        source = self._source
        if source is None or source.path is None or self._told:
            return
        if not source.changed_since(self._seen):
            return
        self._told = True
        if source.is_gone:
            text = f"{source.path.name} is gone; the rows shown were read before."
            self.tell("notice", text=text)
        else:
            act = "reread" if source.can_read else None
            text = f"{source.path.name} has changed since it was read."
            self.tell("notice", text=text, act=act)

    # ------------------------------------------------------------------ fits

    @property
    def _eigen(self) -> Map:
        """The first map of a kernel PCA."""
        return next(one for one in self.scene.maps if one.is_kernel_pca)

    def _first_wish(self, scene: Scene) -> Wish:
        first, *rest = scene.maps
        kernel = first.model.kernel_ if first.is_kernel_pca else None
        titles = {words: key for key, words in seconds_for(scene.points)}
        titles["the data"] = "data"
        second = titles.get(rest[0].title, "given") if rest else "none"
        return Wish(kernel, first.places.shape[1], second)

    def _overtake(self) -> int:
        """Drop the running fit and those that wait, and return the number of the next one."""
        with self._lock:
            self._newest += 1
            return self._newest

    def _fit(self, question: dict) -> None:
        """Check a request for a fit, and pass it on to the thread that fits."""
        number = self._overtake()  # first, because an invalid request replaces older ones, too
        wish, first = self._wish, self.scene.maps[0]
        if "kernel" in question:
            kernel = as_kernel(str(question["kernel"]))
            self._check_domain(kernel)
            wish = replace(wish, kernel=kernel)
        if "parameter" in question and first.is_kernel_pca:  # of the kernel that is shown
            theta = first.model.kernel_.theta
            theta[int(question["parameter"])] = np.log(float(question["value"]))
            wish = replace(wish, kernel=first.model.kernel_.with_theta(theta))
        if "components" in question:
            wish = replace(wish, components=int(np.clip(int(question["components"]), 1, _MOST)))
        if "second" in question:
            wish = replace(wish, second=str(question["second"]))
        self._wish = wish
        self._fits.submit(self._guarded, lambda asked: self._work(number, wish, asked), question)

    def _check_domain(self, kernel: Kernel) -> None:
        """Raise a ValueError for a kernel on strings or graphs if the points are vectors.

        Some of these kernels would take a row of numbers for a sequence of symbols, and find no
        two rows alike.
        """
        X, first = self.scene.points, self.scene.maps[0]
        shown = first.model.kernel_.domain if first.is_kernel_pca else "vectors"
        dense = vectors(X)
        if (dense is None and not hasattr(X, "toarray")) or shown in _STRUCTURED:
            return
        if kernel.domain in _STRUCTURED:
            columns = (X if dense is None else dense).shape[1]
            raise ValueError(
                f"{kernel} compares {kernel.domain}, but the points are vectors of {columns} "
                f"numbers; use a kernel on vectors, for example RBF(1.0), or open a file with a "
                f"column of {kernel.domain}"
            )

    def _needs_second(self, wish: Wish, model: Any) -> bool:
        """Tell whether the second map is to be fitted: another one, or one of a new kernel."""
        new = model is not self.scene.maps[0].model
        other = wish.second != self._second_now
        return other or (new and follows(wish.second, self.scene.training))

    @property
    def _second_now(self) -> str:
        return self._first_wish(self.scene).second

    def _model(self, wish: Wish) -> tuple[Any, float]:
        """Return the kernel PCA to be fitted, and what it costs; the old one if nothing changed."""
        old = self.scene.maps[0].model
        if not isinstance(old, KernelPCA) or wish.kernel is None:
            return old, 0.0
        same = old.kernel_ == wish.kernel and old.n_components_ == wish.components
        if same:
            return old, 0.0
        parts = {"kernel": wish.kernel, "n_components": wish.components, "eigen_solver": "auto"}
        model = clone(old).set_params(**parts, **old._defaults_of_names())
        return affordable(model, self.scene.training)

    def _work(self, number: int, wish: Wish, question: dict) -> None:
        """Fit the requested models, or report that this takes long and wait for Run."""
        if number != self._newest:
            raise Overtaken
        run, token = bool(question.get("run")), _number(question, "token")
        model, cost = self._model(wish)
        if self._needs_second(wish, model):
            cost += seconds(wish.second, self.scene.training)
        if cost > AT_ONCE and not run:
            known = f"about {cost:.0f} s" if np.isfinite(cost) else "longer than can be foretold"
            self.tell("state", words=f"This fit takes {known}.", run=True, token=token)
            return
        self.tell("state", words="Fitting ...", busy=True, token=token)
        scene, (first, *rest), start = self.scene, self.scene.maps, time.perf_counter()

        def heard(text: str) -> None:
            if number != self._newest:
                raise Overtaken
            done, total = getattr(text, "done", None), getattr(text, "total", None)
            share = done / total if total else None
            self.tell("state", words=text, busy=True, share=share, token=token)

        X = scene.training
        with hearing(heard):
            if model is not first.model:
                model.set_params(verbose=1).fit(X)
                model.set_params(verbose=0)
                first = kernel_map(model, X, first.shown, trained=True)
            if self._needs_second(wish, model):
                made = second_map(wish.second, X, scene.features, wish.kernel, verbose=True)
                rest = [] if made is None else [made]
        if number != self._newest:
            raise Overtaken
        if scene.fitted is not None:  # new rows are put into the new maps
            maps = (
                one
                if len(one.places) == len(scene)
                else replace(one, places=one.model.transform(scene.points))
                for one in (first, *rest)
            )
            first, *rest = maps
        self._show((first, *rest), seconds=time.perf_counter() - start, token=token)
        status = getattr(getattr(first.model, "report_", None), "status", None)
        missed = status in (Status.NOT_CONVERGED, Status.INACCURATE)
        words = f"The solver: {status.value}." if missed and status else ""
        self.tell("state", words=words, token=token)

    def _show(self, maps: tuple[Map, ...], **values: Any) -> None:
        self.scene = self.scene.with_maps(maps)
        columns = self.scene.told_derived(live=True)
        self.tell("maps", columns=columns, **values, **self._panes())

    def _panes(self) -> dict[str, Any]:
        """Return the maps and what can be changed about them."""
        scene, eigen = self.scene, any(one.is_kernel_pca for one in self.scene.maps)
        panes = []
        for one in scene.maps:
            told, lines = one.told(), list(one.overlays)
            if eigen and one.decodes and not one.is_kernel_pca:
                count = self._eigen.places.shape[1]
                lines = [(f"eigenfunction {j + 1}",) * 2 for j in range(count)] + lines
            panes.append(told | {"overlays": lines})
        return {"panes": panes, "controls": self._controls()}

    def _controls(self) -> dict[str, Any]:
        scene, first = self.scene, self.scene.maps[0]
        kernel = first.model.kernel_ if first.is_kernel_pca else None
        parameters = []
        if kernel is not None:
            values = np.exp(kernel.theta).tolist()
            parameters = [
                {"name": name.replace("__", " "), "value": value, "middle": value}
                for name, value in zip(kernel.theta_names, values, strict=True)
            ]
        seconds_ = seconds_for(scene.points)
        second = self._second_now
        if second == "given":
            seconds_ = [*seconds_, ("given", scene.maps[1].title)]
        return {
            "kernel": None if kernel is None else repr(kernel),
            "parameters": parameters[:12],
            "components": first.places.shape[1],
            "most": min(_MOST, max(2, len(scene) - 1)),
            "axes": list(first.shown),
            "second": second,
            "seconds": seconds_,
            "projects": scene.projects,
            "titles": [one.title for one in scene.maps],
        }


def _number(question: dict, name: str) -> float | None:
    """Return a field of a request that is sent back; None if it is not a number."""
    value = question.get(name)
    return value if isinstance(value, (int, float)) else None


def _first_words(error: Exception) -> str:
    """Return what a person can do something with; where a mistake of ours is, the line of it."""
    text = str(error) or type(error).__name__
    if isinstance(error, (ValueError, TypeError, ArithmeticError, MemoryError, OSError)):
        return text
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"
