"""The controller handles the requests of one page; long computations run in other threads.

`Controller.handle` lists all requests.  Those with a lane run as a `Job`; the others are handled at
once, so they must be fast.  A page always shows the result of its newest fit request.  A newer
request, even an invalid one, cancels an older fit at its next step.  A job that was cancelled sends
no more messages, so no reply about older embeddings follows a message with newer ones.
"""

from __future__ import annotations

import base64
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ..._core import running_resources
from ...solvers import Status
from ...tables import open_table
from ._clusters import DEFAULT_CLUSTERS, cluster_column
from ._embeddings import Embedding
from ._jobs import Cancelled, Job, Jobs
from ._model_requests import (
    MAX_COMPONENTS,
    FitRequest,
    changed_request,
    current_request,
    model_state,
    parameter_titles,
    plan_fits,
    second_options,
)
from ._point_queries import POINT_QUERIES
from ._scene import Scene, WatchedScene
from ._serialize import Message, pack, page
from ._view_code import view_code

MAX_UNCONFIRMED_SECONDS = 1.0  # longer fits start only when the user presses Run
_MAX_SLIDERS = 12  # at most this many parameters of a kernel have sliders


Handler = Callable[[dict], None]  # handles a request of the page


@dataclass(frozen=True)
class Route:
    """How the requests of one type are handled.

    Attributes
    ----------
    handler : function
        Handles a request.
    lane : str or None
        The lane of `Jobs` in which the handler runs; None means in the calling thread.
    title : str
        The name of the job on the page.
    key : str
        Identifies the result; by default the title.  If a job with the same key is running, the new
        request cancels it, or is ignored if `is_repeatable` and the job has not yet replied.
    is_repeatable : bool
        Whether two requests with the same key have the same answer.
    needs_models : bool
        Whether the result becomes useless when the embeddings change.
    """

    handler: Handler
    lane: str | None = None
    title: str = ""
    key: str = ""
    is_repeatable: bool = False
    needs_models: bool = False


class Controller:
    """Handles the requests of one page about a scene.

    Parameters
    ----------
    scene : Scene
        The initial scene.
    send : function, optional
        Sends the bytes of a message to the page; see also `connect`.
    source : WatchedScene, optional
        The file that the scene was read from.

    Attributes
    ----------
    scene : Scene
        The current scene.
    selection : ndarray of int
        The indices of the rows that are selected on the page, counted from 0.
    filtered : ndarray of int
        The indices of the rows that satisfy the filters of the page, counted from 0.
    selections : dict of str to ndarray of int
        The named selections of the page: the indices of their rows, counted from 0.
    """

    def __init__(
        self,
        scene: Scene,
        send: Callable[[bytes], None] | None = None,
        source: WatchedScene | None = None,
    ) -> None:
        self.scene, self.selection = scene, np.zeros(0, dtype=np.int64)
        self._passing: np.ndarray | None = None
        self.selections: dict[str, np.ndarray] = {}
        self._sender, self._source = send, source
        self._is_new = True  # whether no page has been opened yet
        self._fit_request = current_request(scene)
        # A change of the scene and the message about it, or the check that a job has not been
        # cancelled and its reply, happen while this lock is held.
        self._lock = threading.RLock()
        self.jobs = Jobs(lambda message: self._send(pack({"kind": "job"} | message)))
        self._seen_stamp = None if source is None else source.stamp
        self._notified = False

    def connect(self, send: Callable[[bytes], None] | None) -> None:
        """Send messages to another connection, or discard them if it is None."""
        self._sender = send

    def _send(self, data: bytes) -> None:
        if (send := self._sender) is not None:
            send(data)

    def close(self) -> None:
        """Discard waiting requests, and cancel running ones at their next step."""
        self.jobs.close()

    @property
    def is_busy(self) -> bool:
        """Whether a fit or another long request is running."""
        return self.jobs.is_busy

    def initial_message(self) -> bytes:
        """Return the scene as bytes, for a page that has just been opened."""
        return self._scene_message(self.scene)

    def _scene_message(self, scene: Scene) -> bytes:
        return pack(scene.to_message(live=True) | self._panes_message(scene))

    # ------------------------------------------------------------------ requests

    def handle(self, request: object) -> None:
        """Handle a request: a dict with the key "type"; anything else is ignored."""
        if not isinstance(request, dict):
            return
        name, pane = str(request.get("name")), request.get("pane")
        is_derived = name not in self.scene.table.columns
        routes = {
            "scene": Route(self._open, "files", "Opening the page", is_repeatable=True),
            "select": Route(self._select),
            "filter": Route(self._filter),
            "selections": Route(self._store_selections),
            "preimage": Route(self._preimage, "queries", "Pre-image"),
            "column": Route(
                self._column,
                "columns",
                f"Computing {name}",
                is_repeatable=True,
                needs_models=is_derived,
            ),
            "field": Route(
                self._contours, "contours", "Contours", f"Contours {pane}", needs_models=True
            ),
            "clusters": Route(
                self._clusters, "contours", "Clusters", f"Clusters {pane}", needs_models=True
            ),
            "axes": Route(self._axes),
            "orient": Route(self._orient),
            "code": Route(self._code),
            "components": Route(
                self._components, "queries", "Components", f"Components {pane}", needs_models=True
            ),
            "fit": Route(self._fit),
            "page": Route(self._page, "files", "Saving the page", is_repeatable=True),
            "project": Route(self._project, "files", f"Projecting {name}"),
            "reload": Route(self._reload, "files", "Reading the file", is_repeatable=True),
            "cancel": Route(self._cancel),
            "neighbours": Route(self._query_points, "queries", "Neighbours", needs_models=True),
            "contrast": Route(self._query_points, "tests", "Two-sample test", needs_models=True),
            "cells": Route(
                self._query_points, "cells", "Reading rows", repr(request), is_repeatable=True
            ),
            "drawings": Route(
                self._query_points, "drawings", "Drawing points", repr(request), is_repeatable=True
            ),
        }
        kind = request.get("type")
        if isinstance(kind, str) and kind in routes:
            self._start(routes[kind], request)

    def _start(self, route: Route, request: dict) -> None:
        """Handle a request at once, or submit it as a job."""
        if route.lane is None:
            self._run_guarded(route.handler, request)
            return
        key = route.key or route.title
        with self._lock:
            # A page that was reconnected repeats its requests.  It receives the reply of a job that
            # is still computing, but not a reply that was sent to its old connection.
            if route.is_repeatable and self.jobs.find(
                lambda job: job.key == key and not job.has_replied
            ):
                return
        self._cancel_jobs(lambda job: job.key == key)
        task = partial(self._run_guarded, route.handler, request)
        job = Job(task, route.title, key, request, needs_models=route.needs_models)
        self.jobs.submit(route.lane, job, len(self.scene))

    def _cancel_jobs(self, condition: Callable[[Job], bool]) -> list[Job]:
        """Cancel the jobs that satisfy a condition; afterwards they send no more replies."""
        with self._lock:
            return self.jobs.cancel(condition)

    def _cancel(self, request: dict) -> None:
        """Cancel a job that the page shows."""
        for job in self._cancel_jobs(lambda job: job.id == request["id"]):
            self._fail(job.request, f"{job.title}: cancelled.", is_cancelled=True)

    def _run_guarded(self, handler: Handler, request: dict) -> None:
        """Run a handler; if it fails, send the error to the page."""
        try:
            handler(request)
        except Cancelled:
            raise
        except Exception as error:
            self._fail(request, _error_text(error))

    def _fail(self, request: dict, text: str, *, is_cancelled: bool = False) -> None:
        """Report to the page that a request failed or was cancelled."""
        kind = request.get("type")
        token, pane, x, y = (_numeric_field(request, n) for n in ("token", "pane", "x", "y"))
        if kind == "column":
            self.reply("column", name=str(request.get("name")), error=text)
        elif kind == "preimage":
            empty = {"title": "Error", "record": [], "position": [x, y], "image": None}
            self.reply("preimage", token=token, pane=pane, text=text, **empty)
        elif kind == "field":
            self.reply("field", pane=pane, token=token, values=None, text=text)
        elif kind in POINT_QUERIES:
            self.reply(kind, token=token, error=text)
        elif kind == "fit" and is_cancelled:
            self.reply("state", text=f"{text} Press Run to start it again.", run=True, token=token)
        elif kind == "fit":
            self.reply("state", error=text, token=token)
        else:
            self.reply("notice", text=text, action="reload" if kind == "reload" else None)

    def reply(self, kind: str, **values: object) -> None:
        """Send a message to the page; in a job that was cancelled, raise `Cancelled` instead."""
        self._send_unless_cancelled(pack({"kind": kind, **values}))

    def _send_unless_cancelled(self, data: bytes) -> None:
        with self._lock:
            if (checkpoint := running_resources().checkpoint) is not None:
                checkpoint()
            self._send(data)
            for job in self.jobs.find(lambda job: job.is_current):
                job.has_replied = True

    # ------------------------------------------------------------------ handlers

    def _select(self, request: dict) -> None:
        self.selection = self._rows(request["rows"])

    def _store_selections(self, request: dict) -> None:
        named = request["selections"]
        self.selections = {str(one["name"]): self._rows(one["rows"]) for one in named}

    def _rows(self, text: str) -> np.ndarray:
        """Return the indices of rows from the text that the page sends."""
        rows = np.frombuffer(base64.b64decode(text), "<u4").astype(np.int64)
        return rows[rows < len(self.scene)]

    def _filter(self, request: dict) -> None:
        """Store which rows satisfy the filters: one bit per row, or None without filters."""
        mask, n = request["mask"], len(self.scene)
        self._passing = None
        if mask is not None:
            bits = np.frombuffer(base64.b64decode(mask), "u1")
            passing = np.unpackbits(bits, bitorder="little")[:n].astype(bool)
            if len(passing) == n:
                self._passing = passing

    @property
    def filtered(self) -> np.ndarray:
        """The indices of the rows that satisfy the filters of the page, counted from 0."""
        passing = self._passing
        if passing is None or len(passing) != len(self.scene):  # the scene was replaced
            return np.arange(len(self.scene))
        return np.flatnonzero(passing)

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
            drawing=scene.drawing(preimage.points),
            residual=preimage.residual,
            text=preimage.text,
        )

    def _query_points(self, request: dict) -> None:
        """Answer a request about points."""
        kind = str(request["type"])
        message = POINT_QUERIES[kind](self.scene, request)
        self.reply(kind, token=_numeric_field(request, "token"), **message)

    def _column(self, request: dict) -> None:
        self.reply("column", **self.scene.column(str(request["name"])))

    def _contours(self, request: dict) -> None:
        """Send the values of a function over an embedding, which the page draws as contours."""
        pane, name = int(request["pane"]), str(request["name"])
        token = _numeric_field(request, "token")
        embedding = self.scene.embeddings[pane]
        if not name:
            self.reply("field", pane=pane, token=token, values=None, text="No contours.")
            return
        kind, _, number = name.partition(" ")
        if kind == "magnification":
            field = embedding.magnification()
            text = "Contours of log10 of the factor by which the inverse transform scales areas."
        else:
            others = [e for e in self.scene.embeddings if e is not embedding and e.is_kernel_pca]
            other, j = others[0], int(number) - 1
            field = embedding.function_on_grid(lambda X: other.transform(X)[:, j])
            text = f"Contours of eigenfunction {j + 1} of {other.title}."
        if not len(field.levels):
            text += f" The value is {float(field.values.flat[0]):.4g} everywhere."
        self.reply(
            "field",
            pane=pane,
            token=token,
            name=name,
            values=field.values.reshape(-1),
            rows=field.values.shape[0],
            columns=field.values.shape[1],
            **field.box._asdict(),
            levels=field.levels.tolist(),
            text=text,
        )

    def _clusters(self, request: dict) -> None:
        """Send the positions and labels of clusters, and the column with the cluster of a point."""
        pane, count = int(request["pane"]), int(request.get("count", DEFAULT_CLUSTERS))
        message = self.scene.clusters(pane, count)
        texts = ", ".join(
            f"{text} ({size:,} points)"
            for text, size in zip(message["texts"], message["sizes"], strict=True)
        )
        self.reply("clusters", pane=pane, text=f"Clusters: {texts}.", **message)
        self.reply("column", **self.scene.column(cluster_column(self.scene.embeddings[pane])))

    def _axes(self, request: dict) -> None:
        """Show the requested dimensions of an embedding."""
        across, up = (int(j) for j in request["axes"])
        pane = int(request.get("pane", 0))
        with self._lock:
            embeddings = list(self.scene.embeddings)
            count = embeddings[pane].coordinates.shape[1]
            if not 0 <= min(across, up) <= max(across, up) < count:
                raise ValueError(f"the embedding has only {count} dimensions")
            embeddings[pane] = replace(embeddings[pane], shown_dims=(across, up))
            self._update_embeddings(tuple(embeddings))

    def _orient(self, request: dict) -> None:
        """Show the axes and signs of all embeddings that a session contains."""
        with self._lock:
            pairs = zip(request["axes"], request["signs"], strict=True)
            wanted = zip(self.scene.embeddings, pairs, strict=False)
            embeddings = tuple(e.oriented(axes, signs) for e, (axes, signs) in wanted)
            rest = self.scene.embeddings[len(embeddings) :]
            self._update_embeddings((*embeddings, *rest))

    def _components(self, request: dict) -> None:
        """Send the coordinates of the first dimensions of an embedding."""
        pane = int(request["pane"])
        self.reply("components", pane=pane, coordinates=self.scene.embeddings[pane].components())

    def _page(self, request: dict) -> None:
        session = request.get("session")
        text = self.html(session if isinstance(session, str) else None)
        self.reply("page", bytes=np.frombuffer(text.encode(), "u1"))

    def html(self, session: str | None = None) -> str:
        """Return the current scene as a self-contained HTML page that shows a session."""
        scene = replace(self.scene, session=session)
        code = view_code(scene, self.selection)
        return page(scene.to_message(live=False) | {"code": code})

    def _code(self, request: dict) -> None:
        """Send the Python code that computes the embeddings."""
        self.reply("code", text=view_code(self.scene, self.selection))

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
        self._fit_request = current_request(self.scene)

    def _replace_scene(self, scene: Scene) -> None:
        """Show another scene."""
        data = self._scene_message(scene)
        with self._lock:
            self._show(scene, data)
            self._cancel_jobs(lambda job: job.key == "Fit")  # a fit to the old points

    def _show(self, scene: Scene, data: bytes) -> None:
        """Make this the current scene, and send the message about it."""
        with self._lock:
            self._send_unless_cancelled(data)
            self.scene = scene
            self._cancel_jobs(lambda job: job.needs_models)

    # ------------------------------------------------------------------ the file

    def _open(self, request: dict) -> None:
        """Send the scene to a new page, after reading the file again if it has changed.

        A reconnected page already has the points; `key` and `version` identify what it shows.
        """
        is_new, self._is_new = self._is_new, False
        if request.get("key") == self.scene.key:
            self._resume(request, is_new=is_new)
            return
        source = self._source
        if source is None or source.path is None or not source.changed_since(self._seen_stamp):
            self._send_unless_cancelled(self.initial_message())
            return
        try:
            source.refresh()
        except Exception as error:
            self._notified = True
            self._send_unless_cancelled(self.initial_message())
            text = f"{source.path.name} was changed, but cannot be read: {_error_text(error)}"
            self.reply("notice", text=text, action="reload")
        else:
            self._reset(source)

    def _resume(self, request: dict, *, is_new: bool) -> None:
        """Send the changes that a reconnected page has missed.

        If `is_new`, the controller to which it was connected no longer exists.
        """
        with self._lock:
            if request.get("version") != self.scene.version:
                self._send_unless_cancelled(self._embeddings_message(self.scene))
            fits = self.jobs.find(lambda job: job.key == "Fit")
            self.reply("resumed", text="Fitting ..." if fits else "", is_new=is_new)
            self.jobs.show_again()

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

    def _fit(self, request: dict) -> None:
        """Validate a fit request, and submit it to the thread that fits models."""
        self._cancel_jobs(lambda job: job.key == "Fit")  # even if this request is invalid
        self._fit_request = changed_request(self._fit_request, request, self.scene)
        handler = partial(self._run_fit, self._fit_request)
        self._start(Route(handler, "fits", "Fitting the models", "Fit"), request)

    def _run_fit(self, fit_request: FitRequest, request: dict) -> None:
        """Fit the requested models, or ask the user to press Run if this would take long."""
        run, token = bool(request.get("run")), _numeric_field(request, "token")
        plans = plan_fits(fit_request, self.scene)
        cost = sum(plan.seconds for plan in plans)
        if cost > MAX_UNCONFIRMED_SECONDS and not run:
            text = "The duration of this fit is unknown."
            if np.isfinite(cost):
                text = f"This fit takes about {cost:.0f} s."
            self.reply("state", text=f"{text} Press Run to start it.", run=True, token=token)
            return
        self.reply("state", text="Fitting ...", busy=True, token=token)
        scene, start = self.scene, time.perf_counter()
        first = plans[0].fit()  # `Job.run` captures the progress
        is_new = first is not scene.embeddings[0]
        if first is not None and is_new and plans[1].seconds > MAX_UNCONFIRMED_SECONDS:
            self._show_first(first, fit_request)
        fitted = [first, plans[1].fit()]
        embeddings = tuple(scene.with_new_rows(e) for e in fitted if e is not None)
        with self._lock:
            # The user may have changed the axes meanwhile.
            embeddings = tuple(
                e.with_axes_of(now)
                for e, now in zip_longest(embeddings, self.scene.embeddings)
                if e
            )
            seconds = time.perf_counter() - start
            self._update_embeddings(embeddings, seconds=seconds, token=token)
        status = getattr(getattr(embeddings[0].model, "report_", None), "status", None)
        not_accurate = status in (Status.NOT_CONVERGED, Status.INACCURATE)
        text = f"Solver status: {status.value}." if not_accurate and status else ""
        self.reply("state", text=text, token=token)

    def _show_first(self, first: Embedding, fit_request: FitRequest) -> None:
        """Show a new first embedding while the second one is fitted, which takes longer."""
        with self._lock:
            old, *rest = self.scene.embeddings
            new = self.scene.with_new_rows(first).with_axes_of(old)
            scene = self.scene.with_embeddings((new, *rest))
            panes = self._panes_message(scene)
            panes["controls"]["second"] = fit_request.second.name  # which is not shown yet
            self._show(scene, self._embeddings_message(scene, **panes))

    def _update_embeddings(self, embeddings: tuple[Embedding, ...], **values: object) -> None:
        """Show new embeddings of the same points; `values` are added to the message."""
        scene = self.scene.with_embeddings(embeddings)
        self._show(scene, self._embeddings_message(scene, **values))

    def _embeddings_message(self, scene: Scene, **values: object) -> bytes:
        columns = scene.derived_columns(live=True)
        message = {"kind": "embeddings", "columns": columns, "version": scene.version}
        return pack(message | self._panes_message(scene) | values)

    def _panes_message(self, scene: Scene) -> Message:
        """Return the embeddings and the state of the controls, for a message."""
        panes = [
            scene.pane_message(e)
            | {"overlays": e.overlays(f for f in scene.embeddings if f is not e)}
            for e in scene.embeddings
        ]
        return {"panes": panes, "controls": self._controls_message(scene)}

    def _controls_message(self, scene: Scene) -> Message:
        """Return the values and options of the controls that change the models."""
        shown, options = current_request(scene), second_options(scene.points)
        if shown.second.name == "given":
            options = [*options, ("given", scene.embeddings[1].title)]
        max_components = min(MAX_COMPONENTS, max(2, len(scene) - 1))
        first, *rest = (_model_controls(e, max_components) for e in scene.embeddings)
        return first | {
            "state": model_state(scene),
            "other": rest[0] if rest else None,
            "second": shown.second.name,
            "second_options": options,
            "can_project": scene.can_project,
            "titles": [e.title for e in scene.embeddings],
        }


def _model_controls(embedding: Embedding, max_components: int) -> Message:
    """Return the values of the controls for the model of one embedding."""
    kernel = embedding.model.kernel_ if embedding.is_kernel_pca else None
    parameters: list[Message] = []
    if kernel is not None:
        values = np.exp(kernel.theta).tolist()
        parameters = [
            {"name": name, "value": value, "centre": value}
            for name, value in zip(parameter_titles(kernel), values, strict=True)
        ]
    return {
        "kernel": None if kernel is None else repr(kernel),
        "parameters": parameters[:_MAX_SLIDERS],
        "components": embedding.coordinates.shape[1],
        "max_components": max_components,
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
