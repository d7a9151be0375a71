"""Requests for models: which model each pane shows, and the fits that a change needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..._core import Points, length
from ...estimators import KernelPCA
from ...kernels import RBF, Kernel, as_kernel
from ...solvers import Plan
from ..comparison import MODELS, EmbeddingRequest, find_model
from ._embeddings import Embedding, IdentityEmbedding, as_vectors, embedding_of, model_title
from ._scene import Scene
from ._serialize import Message

MAX_EXACT_SECONDS = 20.0  # if an exact kernel PCA takes longer, use the Nyström approximation
MAX_COMPONENTS = 50  # the page does not accept more components
_FAST_MODELS = ("pca", "ppca", "data", "none")
_MAX_UNCONFIRMED_POINTS = 500  # with more points, slow models are fitted only after confirmation
# With at most this many points, the threads of t-SNE spend more time waiting for each other than
# computing if the processors are busy: 1000 points took more than twice as long as with one.
_MAX_ONE_THREAD_POINTS = 2000
_SECOND_PREFIX = "second "  # in the title of a second embedding by a model of the same type
# Domains of kernels that do not compare vectors.
_STRUCTURED_DOMAINS = ("strings", "texts", "graphs")


@dataclass(frozen=True)
class ModelRequest:
    """A request for a model.

    Attributes
    ----------
    name : str
        A name of `second_options`, or "given" for a model that the user passed to `explore`.
    kernel : Kernel or None
        The kernel of a kernel PCA; for another model, the kernel that a kernel PCA had before.
    components : int or None
        The number of components of a kernel PCA.
    """

    name: str
    kernel: Kernel | None = None
    components: int | None = None


@dataclass(frozen=True)
class FitRequest:
    """A request for the models of both panes; `second.name` is "none" if there is only one."""

    first: ModelRequest
    second: ModelRequest


@dataclass(frozen=True)
class PlannedFit:
    """The next embedding of a pane.

    Attributes
    ----------
    fit : function
        Returns the embedding, or None if the pane is empty.
    seconds : float
        Expected time; 0 if the present embedding is returned, and inf if unknown.
    """

    fit: Callable[[], Embedding | None]
    seconds: float = 0.0


def current_request(scene: Scene) -> FitRequest:
    """Return the request that corresponds to the current embeddings of a scene."""
    first, *rest = scene.embeddings
    return FitRequest(_request_of(first), _request_of(rest[0]) if rest else ModelRequest("none"))


def model_state(scene: Scene) -> Message:
    """Return the models of a scene as JSON, for undo and for sessions.

    It consists of the keys of `changed_request`, and the axes and signs of each embedding.
    """
    request = current_request(scene)
    state: Message = {"second": request.second.name}
    for prefix, model in (("", request.first), ("second_", request.second)):
        is_kernel_pca = model.name == "kernel-pca"
        state[f"{prefix}kernel"] = repr(model.kernel) if is_kernel_pca else None
        state[f"{prefix}components"] = model.components if is_kernel_pca else None
    state["axes"] = [list(e.shown_dims) for e in scene.embeddings]
    state["signs"] = [list(e.signs) if -1 in e.signs else [] for e in scene.embeddings]
    return state


def _request_of(embedding: Embedding) -> ModelRequest:
    if not embedding.is_kernel_pca:
        return ModelRequest(embedding.name)
    return ModelRequest("kernel-pca", embedding.model.kernel_, embedding.coordinates.shape[1])


def _is_shown(request: ModelRequest, embedding: Embedding | None) -> bool:
    """Whether an embedding, or None for no embedding, is what the request describes."""
    if embedding is None or not embedding.is_kernel_pca or request.name != "kernel-pca":
        return request.name == ("none" if embedding is None else embedding.name)
    model, count = embedding.model, embedding.coordinates.shape[1]
    return request.kernel in (model.kernel_, model.kernel) and request.components in (
        count,
        model.n_components,
    )


def parameter_titles(kernel: Kernel) -> list[str]:
    """Return readable names of the free parameters of a kernel, in the order of `theta_names`.

    A parameter of a part of an expression is named with the kernel of this part, and numbered if
    several parameters would have the same name.

    Examples
    --------
    >>> from mercer.app.explorer._model_requests import parameter_titles
    >>> from mercer.kernels import RBF, Laplacian
    >>> parameter_titles(RBF(1.0))
    ['length_scale']
    >>> parameter_titles(2.0 * RBF(1.0) + Laplacian(1.0))
    ['RBF length_scale', 'factor of RBF', 'Laplacian length_scale']
    >>> parameter_titles(RBF(1.0) + RBF(2.0))
    ['RBF length_scale 1', 'RBF length_scale 2']
    """
    names = [_parameter_title(kernel, name) for name in kernel.theta_names]
    return [
        f"{name} {names[:j].count(name) + 1}" if names.count(name) > 1 else name
        for j, name in enumerate(names)
    ]


def _parameter_title(kernel: Kernel, name: str) -> str:
    """Return the readable name of one parameter; other parameters may have the same name."""
    params, (path, _, field) = kernel.get_params(), name.rpartition("__")
    scaled = params.get(f"{path}__kernel" if path else "kernel")
    if field == "factor" and scaled is not None:
        return f"factor of {_kernel_title(scaled)}"
    if path in params:
        return f"{_kernel_title(params[path])} {field}"
    return name.replace("__", " ")


def _kernel_title(kernel: Any) -> str:
    """Return the name of a kernel, without factors and selected columns."""
    while hasattr(kernel, "kernel") and type(kernel).__name__ in ("Scale", "Select"):
        kernel = kernel.kernel
    return type(kernel).__name__


def changed_request(old: FitRequest, changes: dict, scene: Scene) -> FitRequest:
    """Return a request with the changes that the page sent, which are validated.

    The keys are "kernel", "components", and "parameter" with "value" for the first pane, the same
    with the prefix "second_" for the second pane, and "second" for the name of the second model.
    """
    first = _changed_model(old.first, changes, "", scene, 0)
    second = old.second
    if "second" in changes:
        second = replace(second, name=_checked_name(str(changes["second"]), scene))
    second = _changed_model(second, changes, "second_", scene, 1)
    return FitRequest(first, _completed(second, first))


def _completed(second: ModelRequest, first: ModelRequest) -> ModelRequest:
    """Return the second request, with the kernel and the components of the first if necessary."""
    if second.name != "kernel-pca":
        return second
    components = second.components or first.components or 2
    return ModelRequest("kernel-pca", second.kernel or first.kernel or RBF("median"), components)


def _changed_model(
    old: ModelRequest, changes: dict, prefix: str, scene: Scene, pane: int
) -> ModelRequest:
    new: dict[str, Any] = {}
    if f"{prefix}kernel" in changes:
        new["kernel"] = as_kernel(str(changes[f"{prefix}kernel"]))
        _check_domain(new["kernel"], scene)
    shown = scene.embeddings[pane] if pane < len(scene.embeddings) else None
    if f"{prefix}parameter" in changes and shown is not None and shown.is_kernel_pca:
        kernel = _kernel_of_sliders(new.get("kernel", old.kernel), shown.model.kernel_)
        index, value = int(changes[f"{prefix}parameter"]), float(changes[f"{prefix}value"])
        new["kernel"] = _with_parameter(kernel, index, value)
    if f"{prefix}components" in changes:
        count = int(changes[f"{prefix}components"])
        new["components"] = int(np.clip(count, 1, MAX_COMPONENTS))
    return replace(old, **new)


def _with_parameter(kernel: Kernel, index: int, value: float) -> Kernel:
    """Return the kernel with a new value of one free parameter; the others keep their values."""
    if not value > 0.0:
        raise ValueError(f"a kernel parameter must be positive, got {value:g}")
    name = kernel.theta_names[index]
    if not name.endswith("]"):
        return kernel.set_params(**{name: value})
    theta = kernel.theta  # the name is that of an entry of a vector
    theta[index] = np.log(value)
    return kernel.with_theta(theta)


def _kernel_of_sliders(requested: Kernel | None, shown: Kernel) -> Kernel:
    """Return the kernel of which a slider changes a parameter.

    While a kernel with the parameters of the shown one is being fitted, for example because another
    slider was moved, it is the requested kernel, so that both changes are applied.
    """
    if requested is None:
        return shown
    try:
        has_same_sliders = requested.theta_names == shown.theta_names
    except ValueError:  # a parameter such as "median" is known only after the fit
        return shown
    return requested if has_same_sliders else shown


def _check_domain(kernel: Kernel, scene: Scene) -> None:
    """Raise a ValueError for a kernel on strings or graphs if the points are vectors.

    Some of these kernels would treat a row of numbers as a sequence of symbols, so that no two
    rows would be similar.
    """
    X, first = scene.points, scene.embeddings[0]
    domain = first.model.kernel_.domain.kind if first.is_kernel_pca else "vectors"
    dense = as_vectors(X)
    if (dense is None and not hasattr(X, "toarray")) or domain in _STRUCTURED_DOMAINS:
        return
    if kernel.domain.kind in _STRUCTURED_DOMAINS:
        columns = (X if dense is None else dense).shape[1]
        raise ValueError(
            f"{kernel} compares {kernel.domain.kind}, but the points are vectors of {columns} "
            f"numbers; use a kernel on vectors, for example RBF(1.0), or open a file with a "
            f"column of {kernel.domain.kind}"
        )


def plan_fits(request: FitRequest, scene: Scene, *, verbose: bool = True) -> list[PlannedFit]:
    """Return the next embedding of each pane, for the training points of a scene.

    The signs of the new components are those of the present embedding in the same pane.  If a
    kernel PCA is new in the second pane, they are those of the kernel PCA in the first pane.
    """
    X = scene.training_points
    first, *rest = scene.embeddings
    second, kernel = (rest[0] if rest else None), request.first.kernel
    shown_kernel = first.model.kernel_ if first.is_kernel_pca else None
    for shown in reversed(scene.embeddings):
        scene.fitted.add(shown, shown_kernel)
    keeps_first = _is_shown(request.first, first)
    plan = PlannedFit(lambda: first)
    like = first.model if isinstance(first.model, KernelPCA) else KernelPCA()
    if not keeps_first:
        plan = _stored_fit(request.first, scene, kernel, first) or _plan_kernel_pca(
            request.first, X, like, first, verbose=verbose
        )
    keeps_second = keeps_first or not uses_kernel_distances(request.second.name, X)
    if keeps_second and _is_shown(request.second, second):
        return [_storing(plan, scene, kernel), PlannedFit(lambda: second)]
    old = aligned_pane(request.second, first, second)
    other = _stored_fit(request.second, scene, kernel, old) or plan_model(
        request.second, X, scene.features, kernel, like, old, verbose=verbose
    )
    other = _storing(other, scene, kernel)
    return [
        _storing(plan, scene, kernel),
        replace(other, fit=lambda: distinct(other.fit(), first)),
    ]


def _stored_fit(
    request: ModelRequest, scene: Scene, kernel: Kernel | None, old: Embedding | None
) -> PlannedFit | None:
    """Return a model that was fitted before, aligned with `old`; None if there is none."""
    uses_kernel = uses_kernel_distances(request.name, scene.points)
    found = scene.fitted.find(
        lambda embedding, its_kernel: (
            _is_shown(request, embedding) and (not uses_kernel or its_kernel == kernel)
        )
    )
    if found is None:
        return None
    embedding = replace(found, title=found.title.removeprefix(_SECOND_PREFIX))
    if old is not None:
        is_possible = max(old.shown_dims) < embedding.coordinates.shape[1]
        dims = old.shown_dims if is_possible else (0, 1)
        embedding = replace(embedding, shown_dims=dims).aligned_with(old)
    return PlannedFit(lambda: embedding)


def _storing(plan: PlannedFit, scene: Scene, kernel: Kernel | None) -> PlannedFit:
    """Return a plan whose fit also stores the embedding for later requests."""

    def fit() -> Embedding | None:
        embedding = plan.fit()
        if embedding is not None:
            scene.fitted.add(embedding, kernel)
        return embedding

    return replace(plan, fit=fit)


def aligned_pane(
    request: ModelRequest, first: Embedding, second: Embedding | None = None
) -> Embedding | None:
    """Return the embedding with which the model of the second pane is aligned.

    It is the present embedding of the second pane, except that a kernel PCA that is new in the
    second pane is aligned with the kernel PCA in the first pane.
    """
    is_new = second is None or not second.is_kernel_pca
    return first if is_new and first.is_kernel_pca and request.name == "kernel-pca" else second


def distinct(embedding: Embedding | None, first: Embedding) -> Embedding | None:
    """Return a second embedding with a title that differs from the title of the first one."""
    if embedding is None:
        return None
    both_kernel_pca = embedding.is_kernel_pca and first.is_kernel_pca
    if embedding.title == first.title or both_kernel_pca:
        return replace(embedding, title=f"{_SECOND_PREFIX}{embedding.title}")
    return embedding


def plan_model(
    request: ModelRequest,
    X: Points,
    names: list[str],
    kernel: Kernel | None,
    like: KernelPCA,
    old: Embedding | None = None,
    *,
    verbose: bool = False,
) -> PlannedFit:
    """Return the fit of the model of a second embedding to points.

    `names` are the names of the columns, `kernel` defines the distances of points that are not
    vectors, `like` has the other parameters of a kernel PCA, and the signs of the new embedding
    are aligned with `old`.
    """
    if request.name == "none":
        return PlannedFit(lambda: None)
    if request.name == "kernel-pca":
        return _plan_kernel_pca(request, X, like, old, verbose=verbose)
    dense, shown_dims = as_vectors(X), (0, 1) if old is None else old.shown_dims
    if dense is not None and request.name == "data":
        across, up = np.sort(np.argsort(-np.nanvar(dense, axis=0), kind="stable")[:2]).tolist()
        data = Embedding("the data", IdentityEmbedding(), dense, (across, up), tuple(names), "data")
        return PlannedFit(lambda: data)
    known = find_model(request.name)
    if known is None:
        raise ValueError(f"unknown model {request.name!r}")
    points = X if dense is None else dense
    columns = 1 if dense is None else dense.shape[1]
    model = MODELS[known].build(
        EmbeddingRequest(length(X), 2, kernel, vectors=dense is not None, d=columns)
    )

    def fit() -> Embedding:
        _fit(model, points, verbose=verbose)
        new = embedding_of(model, points, model_title(known), shown_dims, trained=True)
        new = replace(new, name=request.name)
        return new if old is None else new.aligned_with(old)

    is_fast = request.name in _FAST_MODELS or length(X) <= _MAX_UNCONFIRMED_POINTS
    return PlannedFit(fit, 0.0 if is_fast else np.inf)


def _plan_kernel_pca(
    request: ModelRequest, X: Points, like: KernelPCA, old: Embedding | None, *, verbose: bool
) -> PlannedFit:
    """Return the fit of a kernel PCA that has the other parameters of the model `like`."""
    model = clone(like).set_params(
        kernel=request.kernel,
        n_components=request.components,
        eigen_solver="auto",
        **like._named_kernel_defaults(),
    )
    model, plan = affordable_kernel_pca(model, X)

    def fit() -> Embedding:
        _fit(model, X, verbose=verbose)
        shown_dims = (0, 1) if old is None else old.shown_dims
        new = embedding_of(model, X, shown_dims=shown_dims, trained=True)
        return new if old is None else new.aligned_with(old)

    return PlannedFit(fit, plan.seconds)


def _fit(model: Any, X: Points, *, verbose: bool) -> None:
    """Fit a model; if `verbose` is True and it is a model of mercer, it reports its progress."""
    is_own = type(model).__module__.startswith("mercer.")  # others print to standard output
    options = ("verbose",) if verbose and is_own and "verbose" in model.get_params() else ()
    threads = 1 if length(X) <= _MAX_ONE_THREAD_POINTS else None
    with threadpool_limits(threads, user_api="openmp"):
        model.set_params(**dict.fromkeys(options, 1)).fit(X)
    model.set_params(**dict.fromkeys(options, 0))


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


def uses_kernel_distances(name: str, X: Points) -> bool:
    """Return True if the second embedding is computed from distances defined by the kernel."""
    return name not in ("none", "given", "kernel-pca") and as_vectors(X) is None


# --- The options of the second pane.


def second_options(X: Points) -> list[tuple[str, str]]:
    """Return the names and titles of the second embeddings that support these points."""
    options, dense = [("none", "none")], as_vectors(X)
    if dense is not None and dense.shape[1] > 1:
        options.append(("data", "the data (two columns)"))
    request = EmbeddingRequest(length(X), 2, "linear", vectors=dense is not None)
    is_wide = dense is None or dense.shape[1] > 2
    order = sorted(MODELS, key=lambda name: name != "kernel PCA")
    return options + [
        (option_name(name), model_title(name))
        for name in order
        if not MODELS[name].reason_unavailable(request) and (is_wide or MODELS[name].any_points)
    ]


def option_name(name: str) -> str:
    """Return the name of an option for a name in `MODELS`, for example "bayesian-gplvm"."""
    return name.lower().replace(" ", "-")


def _checked_name(text: str, scene: Scene) -> str:
    """Return the name of a second model as in `second_options`, or raise a ValueError."""
    if text == "given":
        return text
    return checked_option(text, scene.training_points)


def checked_option(text: str, X: Points) -> str:
    """Return the name of a second embedding as in `second_options`, or raise a ValueError."""
    known, options = find_model(text), [name for name, _ in second_options(X)]
    name = text if known is None else option_name(known)
    if name not in options:
        raise ValueError(
            f"the second embedding {text!r} is not available for these points; the options are "
            f"{', '.join(options)}, or a kernel such as Laplacian(1.0)"
        )
    return name


def requested_model(second: Any, X: Points, first: Embedding) -> ModelRequest:
    """Return the request for a second embedding: an option, or a kernel for a kernel PCA."""
    shown = _request_of(first)
    if isinstance(second, str) and "(" not in second:
        return _completed(ModelRequest(checked_option(second, X)), shown)
    return _completed(ModelRequest("kernel-pca", as_kernel(second)), shown)
