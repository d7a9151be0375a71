"""Deprecations: former modules, names, attributes, parameters and values of parameters.

A former name works until the version in `removed_in`, and issues a DeprecationWarning that contains
the replacement.  There are four kinds:

* modules and names of a package: add them to `RENAMES`;
* attributes of a class: ``former = FormerAttribute("present", since="0.1.0", removed_in="0.2.0")``;
* parameters: decorate the function or class with `renamed_parameter`;
* values of parameters: decorate the function or class with `renamed_value`.

A test collects all deprecations and fails when the package reaches their `removed_in`.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

T = TypeVar("T", bound=Callable[..., Any])

_SKIPPED_PACKAGES = {"mercer", "importlib", "sklearn"}  # warnings refer to a line outside


class Deprecation(NamedTuple):
    """A deprecated part of the public interface.

    Parameters
    ----------
    former : str
        What users may still write, for example "mercer.gp" or "SVC(solver='peeling')".
    present : str
        The replacement; empty if there is none.
    since : str
        The first version that issues the warning.
    removed_in : str
        The first version in which the former name does not work.
    """

    former: str
    present: str
    since: str
    removed_in: str

    def warn(self) -> None:
        """Issue the warning, which points at the line of user code that called mercer."""
        advice = f"use {self.present} instead" if self.present else "remove it"
        message = (
            f"{self.former} is deprecated since mercer {self.since} and will be removed in "
            f"{self.removed_in}; {advice}"
        )
        # A fixed stack level is not possible, because decorators and the import system add frames.
        frame = sys._getframe(1)
        while (
            frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _SKIPPED_PACKAGES
        ):
            frame = frame.f_back
        warnings.warn_explicit(
            message,
            DeprecationWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            module=frame.f_globals.get("__name__"),
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )


class Renames(NamedTuple):
    """Modules and names that were renamed in the same version.

    Parameters
    ----------
    since, removed_in : str
        As in `Deprecation`.
    modules : mapping
        Former import path -> present import path.
    names : mapping
        For each package: former name -> present name.  A present name includes its package if the
        object was moved to another package.
    """

    since: str
    removed_in: str
    modules: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]


RENAMES = (
    Renames(
        since="0.1.0",
        removed_in="0.2.0",
        modules={
            "mercer.app.tables": "mercer.tables",
            "mercer.cli": "mercer.app.cli",
            "mercer.comparison": "mercer.app.comparison",
            "mercer.explorer": "mercer.app.explorer",
            "mercer.gp": "mercer.models.gp",
            "mercer.learning": "mercer.models.kernel_learning",
            "mercer.maps": "mercer.models.embedding",
            "mercer.means": "mercer.models.mean_embedding",
            "mercer.preimage": "mercer.expansion.preimage",
            "mercer.reduce": "mercer.expansion.reduced_set",
            "mercer.spectral": "mercer.models.kpca",
        },
        names={
            "mercer.gram": {
                "CANDIDATES": "DEFAULT_CANDIDATES",
                "CountSketchMap": "mercer.estimators.CountSketchMap",
                "FlippedMap": "mercer.estimators.FlippedMap",
                "METHODS": "LANDMARK_METHODS",
                "PER_LANDMARK": "CANDIDATES_PER_LANDMARK",
                "RANK": "DEFAULT_RANK",
                "add_rows": "add_weighted_rows",
                "fill": "fill_gram",
                "grams": "iter_grams",
                "has_centroids": "supports_kmeans_landmarks",
                "lloyd": "euclidean_kmeans",
                "nearest": "nearest_neighbors",
                "radial_inside": "unwrap_radial",
                "share_distances": "can_share_distances",
                "significance": "residual_tolerances",
                "solve_rows": "solve_triangular_rows",
                "within": "radius_neighbors",
                "without_rounding": "clip_negative_residual",
            },
            "mercer.kernels": {
                "Claims": "Properties",
                "on_indices": "as_index_kernel",
                "pair": "prepare_pair",
                "reads_all": "expects_precomputed_rows",
                "spelled_out": "parse_if_expression",
            },
            "mercer.kernels.validity": {
                "Witness": "Counterexample",
                "declared_witness": "known_counterexample",
            },
            "mercer.models.embedding": {
                "BayesianMap": "BayesianGPLVMModel",
                "LatentMap": "GPLVMModel",
                "Layers": "MLP",
                "LostVariance": "ReconstructionLoss",
                "Measures": "QualityMeasures",
                "across": "feature_space_cdist",
                "autoencode": "fit_autoencoder",
                "classical": "classical_mds",
                "default_relevance": "default_ard_kernel",
                "fit_bayesian": "fit_bayesian_gplvm",
                "fit_latent": "fit_gplvm",
                "of_pairs": "feature_space_pdist",
                "place": "embed_new_points",
                "principal": "fit_ppca",
                "principal_places": "pca_scores",
                "scale": "metric_mds",
                "stress_at": "stress_of_points",
                "whitened": "scale_to_unit_variance",
                "with_gaps": "fit_ppca_missing",
            },
            "mercer.models.gp": {
                "CRITERIA": "RIDGE_CRITERIA",
            },
            "mercer.models.kernel_learning": {
                "Story": "SearchLog",
            },
            "mercer.models.kpca": {
                "Option": "mercer.solvers.Option",
                "Plan": "mercer.solvers.Plan",
            },
            "mercer.models.mean_embedding": {
                "Window": "DensityKernel",
                "log_sums": "log_kernel_sums",
            },
            "mercer.tables": {
                "ColumnTransform": "NumberColumn",
                "Trained": "TableModel",
                "load_trained": "mercer.load",
                "save_trained": "mercer.save",
            },
            "mercer.solvers": {
                "Bordered": "BorderedSystem",
                "Cascade": "FallbackSolver",
                "Given": "CustomLoss",
                "MOST_EXACT": "MAX_EXACT_POINTS",
                "Machine": "NormPenaltySolver",
                "NewtonInPasses": "OutOfCoreNewton",
                "Partition": "Clusters",
                "PowerPeeling": "PowerDeflation",
                "Problem": "ProblemKind",
                "Progress": "DualProgress",
                "Recurrence": "CGRecurrence",
                "Relation": "TwoViewResult",
                "Relay": "SMOThenInteriorPoint",
                "RiskInBlocks": "OutOfCoreRisk",
                "ShortExpansionRisk": "ReducedExpansionRisk",
                "Triangle": "InPlaceSymmetric",
                "Whitened": "WhitenedCoordinates",
                "check_stopping": "check_stopping_criteria",
                "columnwise": "columnwise_dot",
                "coordinates": "two_view_coordinates",
                "correlations": "columnwise_correlations",
                "ended": "iteration_status",
                "enough": "residual_floor",
                "evaluating": "cost_of_entries",
                "judged": "status_of",
                "linear_machine": "choose_linear_svm_solver",
                "matrix_of": "gram_to_array",
                "minimum_norm": "minimum_norm_solution",
                "mirror": "mirror_lower_triangle",
                "moments_of": "feature_moments",
                "outer": "row_gram",
                "reading": "cost_of_storing_and_reading",
                "relative": "max_relative_residual",
                "sandwich": "weyl_certificate",
                "signs_of": "canonical_signs",
                "unit_columns": "normalise_columns",
                "unknown": "unknown_certificate",
                "with_constant": "solve_with_intercept",
                "with_constant_diagonal": "inverse_diagonal_with_intercept",
                "worst": "worst_report",
            },
        },
    ),
)

FORMER_MODULES = {
    former: Deprecation(former, present, group.since, group.removed_in)
    for group in RENAMES
    for former, present in group.modules.items()
}
_FORMER_NAMES = {
    f"{package}.{name}": Deprecation(
        f"{package}.{name}",
        present if "." in present else f"{package}.{present}",
        group.since,
        group.removed_in,
    )
    for group in RENAMES
    for package, names in group.names.items()
    for name, present in names.items()
}
# All deprecations by the former name.  Those of attributes, parameters and values are added when
# their modules are imported.
DEPRECATIONS = FORMER_MODULES | _FORMER_NAMES


def former_name(package: str, name: str) -> Any:
    """Return the object formerly called `name` in `package`, and issue a DeprecationWarning.

    Parameters
    ----------
    package : str
        Full name of the package, such as "mercer.solvers".
    name : str
        Name of an attribute that the package does not have.

    Raises
    ------
    AttributeError
        If the package never had this name.
    """
    former = f"{package}.{name}"
    if former in FORMER_MODULES:
        return importlib.import_module(former)  # `_FormerModules` issues the warning
    deprecation = _FORMER_NAMES.get(former)
    if deprecation is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    deprecation.warn()
    home, _, attribute = deprecation.present.rpartition(".")
    return getattr(importlib.import_module(home), attribute)


def former_names(package: str) -> Callable[[str], Any]:
    """Return a `__getattr__` function for a package, which looks up former names."""
    return lambda name: former_name(package, name)


class FormerAttribute:
    """Descriptor for an attribute that was renamed: forwards to the new name and warns.

    Parameters
    ----------
    present : str
        The new name of the attribute, which may be dotted.
    since, removed_in : str
        As in `Deprecation`.
    """

    def __init__(self, present: str, *, since: str, removed_in: str) -> None:
        self.present, self.since, self.removed_in = present, since, removed_in

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        deprecation = self._deprecation(owner)
        DEPRECATIONS[deprecation.former] = deprecation

    def _deprecation(self, owner: type) -> Deprecation:
        former, present = (f"{owner.__name__}.{name}" for name in (self.name, self.present))
        return Deprecation(former, present, self.since, self.removed_in)

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        self._deprecation(owner).warn()  # names the class of the instance
        return attrgetter(self.present)(instance)


def renamed_parameter(
    former: str, present: str, *, since: str, removed_in: str
) -> Callable[[T], T]:
    """Return a decorator that lets a function or a class accept a former parameter by keyword.

    Only the present name is in the signature.  The decorator of a class applies to its constructor
    and to `set_params`; it is written above decorators that create the constructor.

    Parameters
    ----------
    former : str
        The former name.
    present : str
        The present name; empty if the parameter has no effect any more.
    since, removed_in : str
        As in `Deprecation`.

    Examples
    --------
    >>> import warnings
    >>> from mercer._core import renamed_parameter
    >>> @renamed_parameter("n", "count", since="0.1.0", removed_in="0.2.0")
    ... def repeat(text, count=1):
    ...     return text * count
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     repeat("ab", n=2)
    'abab'
    >>> print(caught[0].message)  # doctest: +ELLIPSIS
    repeat(n=...) is deprecated since mercer 0.1.0 and will be removed in 0.2.0; use count=...
    """

    def decorate(target: T) -> T:
        deprecation = Deprecation(
            f"{target.__name__}({former}=...)", present and f"{present}=...", since, removed_in
        )

        def replace(args: tuple[Any, ...], params: dict[str, Any], names: Sequence[str]) -> Any:
            if former in params:
                if present in params:
                    raise TypeError(
                        f"{target.__name__}() got both {present!r} and its former name {former!r}. "
                        f"Remove {former}=..."
                    )
                deprecation.warn()
                value = params.pop(former)
                params |= {present: value} if present else {}
            return args

        return _with_replaced_arguments(target, deprecation, replace)

    return decorate


def renamed_value(
    parameter: str, former: Any, present: Any, *, since: str, removed_in: str
) -> Callable[[T], T]:
    """Return a decorator that lets a function or a class accept a former value of a parameter.

    The value is replaced before the function is called.  The decorator of a class applies to its
    constructor and to `set_params`, so that the attribute has the present value.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    former, present : str or other scalar
        The former value and the present one.
    since, removed_in : str
        As in `Deprecation`.
    """

    def decorate(target: T) -> T:
        deprecation = Deprecation(
            f"{target.__name__}({parameter}={former!r})",
            f"{parameter}={present!r}",
            since,
            removed_in,
        )

        def is_former(value: Any) -> bool:
            return type(value) is type(former) and value == former

        def replace(args: tuple[Any, ...], params: dict[str, Any], names: Sequence[str]) -> Any:
            position = names.index(parameter) if parameter in names else len(args)
            if is_former(params.get(parameter)):
                params[parameter] = present
            elif position < len(args) and is_former(args[position]):
                args = (*args[:position], present, *args[position + 1 :])
            else:
                return args
            deprecation.warn()
            return args

        return _with_replaced_arguments(target, deprecation, replace)

    return decorate


def _with_replaced_arguments(
    target: T,
    deprecation: Deprecation,
    replace: Callable[[tuple[Any, ...], dict[str, Any], Sequence[str]], Any],
) -> T:
    """Return a function or a class whose arguments are replaced before they are used.

    `replace` gets the positional arguments, the keywords, which it may modify, and the names of the
    parameters.  It returns the positional arguments.
    """
    from inspect import signature  # imported here, because the import is slow

    DEPRECATIONS[deprecation.former] = deprecation

    def wrapped(function: Callable[..., Any]) -> Any:
        names = list(signature(function).parameters)

        @wraps(function)
        def call(*args: Any, **params: Any) -> Any:
            args = replace(args, params, names)
            return function(*args, **params)

        return call

    if not isinstance(target, type):
        return cast(T, wrapped(target))
    for method in ("__init__", "set_params"):
        if hasattr(target, method):
            setattr(target, method, wrapped(getattr(target, method)))
    return target


class _FormerModules:
    """Import a package from its present path when a former path is imported.

    This is a finder and a loader.  It does not derive from the classes of `importlib.abc`, whose
    import would take longer than the rest of `import mercer`.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self)) if fullname in FORMER_MODULES else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates a default module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        deprecation = FORMER_MODULES[module.__name__]
        deprecation.warn()
        # The import system returns what is in sys.modules after this call.
        sys.modules[module.__name__] = importlib.import_module(deprecation.present)


def install_former_modules() -> None:
    """Make the former import paths importable; called once by `import mercer`."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
