"""Former import paths and names, which work for one more release with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from operator import attrgetter
from types import ModuleType
from typing import Any, cast

# Packages that were moved: former import path -> present import path.
FORMER_MODULES = {
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
}

# Public names that were renamed, by package: former name -> present name.  A present name includes
# its package if the object was moved to another package.
FORMER_NAMES: dict[str, dict[str, str]] = {
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
}


def _warn(former: str, present: str, stacklevel: int) -> None:
    """Warn that a name will be removed, and name its replacement."""
    warnings.warn(
        f"{former} is deprecated and will be removed in the next release; use {present} instead",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


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
    present = FORMER_NAMES.get(package, {}).get(name)
    if present is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home, _, attribute = present.rpartition(".")
    _warn(former, present if home else f"{package}.{present}", stacklevel=3)
    return getattr(importlib.import_module(home or package), attribute)


def former_names(package: str) -> Callable[[str], Any]:
    """Return a `__getattr__` function for a package, which looks up former names."""
    return lambda name: former_name(package, name)


class FormerAttribute:
    """Descriptor for an attribute that was renamed: forwards to the new name and warns.

    Parameters
    ----------
    present : str
        The new name of the attribute, which may be dotted.
    """

    def __init__(self, present: str) -> None:
        self.present = present

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        _warn(f"{owner.__name__}.{self.name}", f"{owner.__name__}.{self.present}", stacklevel=2)
        return attrgetter(self.present)(instance)


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
        present = FORMER_MODULES[module.__name__]
        _warn(module.__name__, present, stacklevel=2)
        # The import system returns what is in sys.modules after this call.
        sys.modules[module.__name__] = importlib.import_module(present)


def install_former_modules() -> None:
    """Make the former import paths importable; called once by `import mercer`."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
