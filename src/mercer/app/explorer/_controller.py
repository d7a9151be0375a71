"""The controller handles the requests of one page; long computations run in other threads.

A page always shows the result of its newest fit request.  A newer request, even an invalid one,
cancels an older fit at its next step or discards its result.
"""

from __future__ import annotations

import base64
import logging
import queue
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._core import capture_progress
from ...estimators import KernelPCA
from ...kernels import Kernel, as_kernel
from ...solvers import Status
from ...tables import open_table
from ._embeddings import (
    Embedding,
    affordable_kernel_pca,
    as_vectors,
    embedding_of,
    fit_second_embedding,
    second_fit_seconds,
    second_options,
    uses_kernel_distances,
)
from ._scene import Scene, WatchedScene
from ._serialize import Message, pack, page

_log = logging.getLogger("mercer.app.explorer")


class Worker:
    """Run tasks in order, in one daemon thread that starts with the first task.

    `concurrent.futures.ThreadPoolExecutor` is not suitable, because the interpreter waits for its
    threads at exit, so Ctrl-C would not end the process while a task is running.  If a task raises
    an exception, one line is written to the log.

    Parameters
    ----------
    name : str
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks = queue.SimpleQueue[Callable[[], None] | None]()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._running = False

    @property
    def is_busy(self) -> bool:
        """Whether a task is running."""
        return self._running

    def submit(self, task: Callable[[], None]) -> None:
        """Queue the call `task()`; after `close`, do nothing."""
        with self._lock:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._tasks.put(task)

    def close(self) -> None:
        """Discard the queued tasks, and end the thread after the running task."""
        with self._lock:
            self._closed = True
            while not self._tasks.empty():
                self._tasks.get()
            self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._running = True
            try:
                task()
            except Exception as error:  # the next task must still run
                _log.warning("%s failed: %s", self._name, type(error).__name__)
            finally:
                self._running = False
            del task  # a task may refer to a large scene; release it before waiting


MAX_UNCONFIRMED_SECONDS = 1.0  # longer fits start only when the user presses Run
_MAX_COMPONENTS = 50  # the page does not accept more components
_STRUCTURED = ("strings", "texts", "graphs")  # domains of kernels that do not compare vectors


Handler = Callable[[dict], None]  # handles a request of the page


class Superseded(Exception):
    """Raised in a fit that was cancelled by a newer request."""


@dataclass(frozen=True)
class FitRequest:
    """A request for a fit: a kernel, a number of components, and the second embedding.

    `second` is a key of `second_options`, or "given" for a model that the user passed to `explore`.
    """

    kernel: Kernel | None
    components: int
    second: str


class Controller:
    """Handles the requests of one page about a scene.

    Parameters
    ----------
    scene : Scene
        The initial scene.
    send : function
        Sends the bytes of a message to the page.
    source : WatchedScene, optional
        The file that the scene was read from.

    Attributes
    ----------
    scene : Scene
        The current scene.
    selection : ndarray of int
        The indices of the rows that are selected on the page, counted from 0.
    """

    def __init__(
        self,
        scene: Scene,
        send: Callable[[bytes], None],
        source: WatchedScene | None = None,
    ) -> None:
        self.scene, self.selection = scene, np.zeros(0, dtype=np.int64)
        self._send, self._source = send, source
        self._fit_request = self._initial_fit_request(scene)
        self._newest = 0
        self._lock = threading.Lock()
        self._fits = Worker("mercer-fits")
        self._queries = Worker("mercer-answers")
        self._seen_stamp = None if source is None else source.stamp
        self._notified = False

    def close(self) -> None:
        """Discard queued requests, and cancel a running fit at its next step."""
        self._supersede()
        self._fits.close()
        self._queries.close()

    @property
    def is_busy(self) -> bool:
        """Whether a fit or another long request is running."""
        return self._fits.is_busy or self._queries.is_busy

    def initial_message(self) -> bytes:
        """Return the scene as bytes, for a page that has just been opened."""
        return pack(self.scene.to_message(live=True) | self._panes_message())

    # ------------------------------------------------------------------ requests

    def handle(self, request: object) -> None:
        """Handle a request: a dict with the key "type"; anything else is ignored."""
        handlers: dict[str, Handler] = {
            "scene": self._in_background(self._open),
            "select": self._select,
            "preimage": self._in_background(self._preimage),
            "column": self._in_background(self._column),
            "field": self._in_background(self._contours),
            "axes": self._axes,
            "fit": self._fit,
            "page": self._in_background(self._page),
            "project": self._in_background(self._project),
            "reload": self._in_background(self._reload),
        }
        kind = request.get("type") if isinstance(request, dict) else None
        if isinstance(request, dict) and isinstance(kind, str) and kind in handlers:
            self._run_guarded(handlers[kind], request)

    def _in_background(self, handler: Handler) -> Handler:
        """Return a handler that runs in the background thread."""
        return lambda request: self._queries.submit(partial(self._run_guarded, handler, request))

    def _run_guarded(self, handler: Handler, request: dict) -> None:
        """Run a handler; if it fails, send the error to the page."""
        try:
            handler(request)
        except Superseded:
            return
        except Exception as error:
            text, kind = _error_text(error), request.get("type")
            token, pane, x, y = (_numeric_field(request, n) for n in ("token", "pane", "x", "y"))
            if kind == "column":
                self.reply("column", name=str(request.get("name")), error=text)
            elif kind == "preimage":
                empty = {"title": "Error", "record": [], "position": [x, y], "image": None}
                self.reply("preimage", token=token, pane=pane, text=text, **empty)
            elif kind == "fit":
                self.reply("state", error=text, token=token)
            else:
                self.reply("notice", text=text, action="reload" if kind == "reload" else None)

    def reply(self, kind: str, **values: object) -> None:
        """Send a message to the page."""
        self._send(pack({"kind": kind, **values}))

    # ------------------------------------------------------------------ handlers

    def _select(self, request: dict) -> None:
        rows = np.frombuffer(base64.b64decode(request["rows"]), "<u4").astype(np.int64)
        self.selection = rows[rows < len(self.scene)]

    def _preimage(self, request: dict) -> None:
        """Send the point that corresponds to a position in an embedding."""
        scene, x, y = self.scene, float(request["x"]), float(request["y"])
        embedding = scene.embeddings[int(request["pane"])]
        preimage = embedding.preimages(np.array([[x, y]]))[0]
        self.reply(
            "preimage",
            token=_numeric_field(request, "token"),
            pane=int(request["pane"]),
            position=[x, y],
            title=embedding.title,
            record=[] if scene.image else scene.record(preimage.points),
            image=scene.pixels(preimage.points),
            residual=preimage.residual,
            text=preimage.text,
        )

    def _column(self, request: dict) -> None:
        self.reply("column", **self.scene.column(str(request["name"])))

    def _contours(self, request: dict) -> None:
        """Send the values of a function over an embedding, which the page draws as contours."""
        pane, name = int(request["pane"]), str(request["name"])
        embedding = self.scene.embeddings[pane]
        if not name:
            self.reply("field", pane=pane, values=None, text="No contours.")
            return
        kind, _, number = name.partition(" ")
        if kind == "magnification":
            field = embedding.magnification()
            text = "Contours of log10 of the factor by which the inverse transform scales areas."
        else:
            model, j = self._kernel_pca.model, int(number) - 1
            field = embedding.function_on_grid(lambda X: model.transform(X)[:, j])
            text = f"Contours of eigenfunction {j + 1} of {self._kernel_pca.title}."
        if not len(field.levels):
            text += f" The value is {float(field.values.flat[0]):.4g} everywhere."
        self.reply(
            "field",
            pane=pane,
            name=name,
            values=field.values.reshape(-1),
            rows=field.values.shape[0],
            columns=field.values.shape[1],
            **field.box._asdict(),
            levels=field.levels.tolist(),
            text=text,
        )

    def _axes(self, request: dict) -> None:
        """Show the requested dimensions of the first embedding."""
        across, up = (int(j) for j in request["axes"])
        first, *rest = self.scene.embeddings
        if not 0 <= min(across, up) <= max(across, up) < first.coordinates.shape[1]:
            raise ValueError(f"the embedding has only {first.coordinates.shape[1]} dimensions")
        self._update_embeddings((replace(first, shown_dims=(across, up)), *rest))

    def _page(self, request: dict) -> None:
        self.reply("page", name="explorer.html", bytes=np.frombuffer(self.html().encode(), "u1"))

    def html(self) -> str:
        """Return the current scene as a self-contained HTML page."""
        return page(self.scene.to_message(live=False))

    def _project(self, request: dict) -> None:
        """Project the rows of an uploaded file into the embeddings."""
        name = str(request["name"])
        suffixes = "".join(Path(name).suffixes[-2:])  # .csv.gz has two suffixes
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"new{suffixes if suffixes.isascii() else ''}"
            path.write_bytes(base64.b64decode(request["bytes"]))
            try:
                source = open_table(path)
                source.name = name
                recipe = self.scene.recipe
                if recipe is None:
                    table = source.table()
                else:
                    table = source.table(recipe.text_columns, recipe.notations_)
            except (ValueError, OSError) as error:  # show the user's file name
                raise ValueError(str(error).replace(str(path), name)) from None
        self._replace_scene(self.scene.projected(table))
        self.reply("notice", text=f"{len(table)} rows of {name} were added to the embeddings.")

    def _reload(self, request: dict) -> None:
        """Read the file again if it has changed, and show it."""
        if self._source is not None:
            self._source.refresh()
            self._reset(self._source)

    def _reset(self, source: WatchedScene) -> None:
        """Show the scene that was most recently read from the file."""
        self._seen_stamp, self._notified = source.stamp, False
        self._replace_scene(source.scene)
        self._fit_request = self._initial_fit_request(self.scene)

    def _replace_scene(self, scene: Scene) -> None:
        """Show another scene."""
        self._supersede()  # cancel fits to the old points
        self.scene = scene
        self._send(self.initial_message())

    # ------------------------------------------------------------------ the file

    def _open(self, request: dict) -> None:
        """Send the scene to a new page, after reading the file again if it has changed."""
        source = self._source
        if source is None or source.path is None or not source.changed_since(self._seen_stamp):
            self._send(self.initial_message())
            return
        try:
            source.refresh()
        except Exception as error:
            self._notified = True
            self._send(self.initial_message())
            text = f"{source.path.name} was changed, but cannot be read: {_error_text(error)}"
            self.reply("notice", text=text, action="reload")
        else:
            self._reset(source)

    def check_file(self) -> None:
        """Notify the page, once, if the file has changed or no longer exists."""
        source = self._source
        if source is None or source.path is None or self._notified:
            return
        if not source.changed_since(self._seen_stamp):
            return
        self._notified, action = True, None
        text = f"{source.path.name} no longer exists; the page shows what was read earlier."
        if not source.is_gone:
            action = "reload" if source.can_read else None
            text = f"{source.path.name} has changed since it was read."
        self.reply("notice", text=text, action=action)

    # ------------------------------------------------------------------ fits

    @property
    def _kernel_pca(self) -> Embedding:
        """The first kernel PCA embedding."""
        return next(e for e in self.scene.embeddings if e.is_kernel_pca)

    def _initial_fit_request(self, scene: Scene) -> FitRequest:
        """Return the fit request that corresponds to the current embeddings of a scene."""
        first, *rest = scene.embeddings
        kernel = first.model.kernel_ if first.is_kernel_pca else None
        titles = {title: key for key, title in second_options(scene.points)}
        titles["the data"] = "data"
        second = titles.get(rest[0].title, "given") if rest else "none"
        return FitRequest(kernel, first.coordinates.shape[1], second)

    def _supersede(self) -> int:
        """Cancel the running and queued fits, and return the number of the next fit."""
        with self._lock:
            self._newest += 1
            return self._newest

    def _fit(self, request: dict) -> None:
        """Validate a fit request, and submit it to the thread that fits models."""
        number = self._supersede()  # even an invalid request replaces older requests
        changes: dict[str, Any] = {}
        first = self.scene.embeddings[0]
        if "kernel" in request:
            changes["kernel"] = as_kernel(str(request["kernel"]))
            self._check_domain(changes["kernel"])
        if "parameter" in request and first.is_kernel_pca:  # change one kernel parameter
            theta = first.model.kernel_.theta
            theta[int(request["parameter"])] = np.log(float(request["value"]))
            changes["kernel"] = first.model.kernel_.with_theta(theta)
        if "components" in request:
            changes["components"] = int(np.clip(int(request["components"]), 1, _MAX_COMPONENTS))
        if "second" in request:
            changes["second"] = str(request["second"])
        self._fit_request = fit_request = replace(self._fit_request, **changes)
        handler = partial(self._run_fit, number, fit_request)
        self._fits.submit(partial(self._run_guarded, handler, request))

    def _check_domain(self, kernel: Kernel) -> None:
        """Raise a ValueError for a kernel on strings or graphs if the points are vectors.

        Some of these kernels would treat a row of numbers as a sequence of symbols, so that no two
        rows would be similar.
        """
        X, first = self.scene.points, self.scene.embeddings[0]
        domain = first.model.kernel_.domain.kind if first.is_kernel_pca else "vectors"
        dense = as_vectors(X)
        if (dense is None and not hasattr(X, "toarray")) or domain in _STRUCTURED:
            return
        if kernel.domain.kind in _STRUCTURED:
            columns = (X if dense is None else dense).shape[1]
            raise ValueError(
                f"{kernel} compares {kernel.domain.kind}, but the points are vectors of {columns} "
                f"numbers; use a kernel on vectors, for example RBF(1.0), or open a file with a "
                f"column of {kernel.domain.kind}"
            )

    def _needs_second(self, fit_request: FitRequest, model: Any) -> bool:
        """Return True if the second embedding must be fitted again for this request."""
        if fit_request.second != self._initial_fit_request(self.scene).second:
            return True
        new_kernel = model is not self.scene.embeddings[0].model
        X = self.scene.training_points
        return new_kernel and uses_kernel_distances(fit_request.second, X)

    def _requested_model(self, fit_request: FitRequest) -> tuple[Any, float]:
        """Return the model to fit (the old model if nothing changes) and the expected seconds."""
        old = self.scene.embeddings[0].model
        if not isinstance(old, KernelPCA) or fit_request.kernel is None:
            return old, 0.0
        if (old.kernel_, old.n_components_) == (fit_request.kernel, fit_request.components):
            return old, 0.0
        model = clone(old).set_params(
            kernel=fit_request.kernel,
            n_components=fit_request.components,
            eigen_solver="auto",
            **old._named_kernel_defaults(),
        )
        model, plan = affordable_kernel_pca(model, self.scene.training_points)
        return model, plan.seconds

    def _run_fit(self, number: int, fit_request: FitRequest, request: dict) -> None:
        """Fit the requested models, or ask the user to press Run if this would take long."""
        if number != self._newest:
            raise Superseded
        run, token = bool(request.get("run")), _numeric_field(request, "token")
        model, cost = self._requested_model(fit_request)
        if self._needs_second(fit_request, model):
            cost += second_fit_seconds(fit_request.second, self.scene.training_points)
        if cost > MAX_UNCONFIRMED_SECONDS and not run:
            duration = f"about {cost:.0f} s" if np.isfinite(cost) else "an unknown time"
            self.reply(
                "state", text=f"This fit takes {duration}. Press Run.", run=True, token=token
            )
            return
        self.reply("state", text="Fitting ...", busy=True, token=token)
        scene, (first, *rest), start = self.scene, self.scene.embeddings, time.perf_counter()

        def on_progress(text: str) -> None:
            if number != self._newest:
                raise Superseded
            done, total = getattr(text, "done", None), getattr(text, "total", None)
            fraction = done / total if total else None
            self.reply("state", text=text, busy=True, fraction=fraction, token=token)

        X = scene.training_points
        with capture_progress(on_progress):
            if model is not first.model:
                model.set_params(verbose=1).fit(X)
                model.set_params(verbose=0)
                first = embedding_of(model, X, shown_dims=first.shown_dims, trained=True)
            if self._needs_second(fit_request, model):
                second = fit_second_embedding(
                    fit_request.second, X, scene.features, fit_request.kernel, verbose=True
                )
                rest = [] if second is None else [second]
        if number != self._newest:
            raise Superseded
        embeddings = tuple(  # project rows that the models were not fitted to
            e
            if len(e.coordinates) == len(scene)
            else replace(e, coordinates=e.model.transform(scene.points))
            for e in (first, *rest)
        )
        self._update_embeddings(embeddings, seconds=time.perf_counter() - start, token=token)
        status = getattr(getattr(first.model, "report_", None), "status", None)
        not_accurate = status in (Status.NOT_CONVERGED, Status.INACCURATE)
        text = f"Solver status: {status.value}." if not_accurate and status else ""
        self.reply("state", text=text, token=token)

    def _update_embeddings(self, embeddings: tuple[Embedding, ...], **values: object) -> None:
        """Show new embeddings of the same points; `values` are added to the message."""
        self.scene = self.scene.with_embeddings(embeddings)
        columns = self.scene.derived_columns(live=True)
        self.reply("embeddings", columns=columns, **values, **self._panes_message())

    def _panes_message(self) -> Message:
        """Return the embeddings and the state of the controls, for a message."""
        scene, has_kernel_pca = self.scene, any(e.is_kernel_pca for e in self.scene.embeddings)
        panes = []
        for embedding in scene.embeddings:
            message, overlays = embedding.to_message(), list(embedding.overlays)
            if has_kernel_pca and embedding.has_inverse and not embedding.is_kernel_pca:
                count = self._kernel_pca.coordinates.shape[1]
                overlays = [(f"eigenfunction {j + 1}",) * 2 for j in range(count)] + overlays
            panes.append(message | {"overlays": overlays})
        return {"panes": panes, "controls": self._controls_message()}

    def _controls_message(self) -> Message:
        """Return the values and options of the controls that change the models."""
        scene, first = self.scene, self.scene.embeddings[0]
        shown = self._initial_fit_request(scene)
        parameters: list[Message] = []
        if shown.kernel is not None:
            values = np.exp(shown.kernel.theta).tolist()
            parameters = [
                {"name": name.replace("__", " "), "value": value, "centre": value}
                for name, value in zip(shown.kernel.theta_names, values, strict=True)
            ]
        options = second_options(scene.points)
        if shown.second == "given":
            options = [*options, ("given", scene.embeddings[1].title)]
        return {
            "kernel": None if shown.kernel is None else repr(shown.kernel),
            "parameters": parameters[:12],
            "components": shown.components,
            "max_components": min(_MAX_COMPONENTS, max(2, len(scene) - 1)),
            "axes": list(first.shown_dims),
            "second": shown.second,
            "second_options": options,
            "can_project": scene.can_project,
            "titles": [e.title for e in scene.embeddings],
        }


def _numeric_field(request: dict, name: str) -> float | None:
    """Return a numeric field of a request, or None if it is missing or not a number."""
    value = request.get(name)
    return value if isinstance(value, (int, float)) else None


def _error_text(error: Exception) -> str:
    """Return the message of an exception; for unexpected types, add the file and the line."""
    text = str(error) or type(error).__name__
    if isinstance(error, (ValueError, TypeError, ArithmeticError, MemoryError, OSError)):
        return text
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"
