"""The classes that a model file may contain, with their names and format versions.

`load` never imports a class that a file names.  It only creates objects of the classes that are
listed here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

import numpy as np
import sklearn.gaussian_process.kernels as sklearn_kernels
import sklearn.model_selection as sklearn_splitters
from sklearn.base import BaseEstimator

from .. import estimators, gram, kernels, solvers, tables
from ..expansion import Expansion, Primal
from ..expansion.reduced_set import Reduction
from ..kernels import Graph, Graphs
from ..models import embedding, gp, kernel_learning, kpca, mean_embedding

MAX_KERNEL_CHARACTERS = 10_000  # kernels with longer expressions are stored field by field


@dataclasses.dataclass(frozen=True, eq=False)
class StoredClass:
    """A class whose objects can be stored in a file.

    Parameters
    ----------
    cls : type
        The class.
    name : str
        Its name in files.
    attributes : tuple of str
        The names of the stored attributes.
    value : bool, default=False
        If True, objects are restored by calling the constructor, which checks its arguments.
        Otherwise their attributes are set directly.
    format : int, default=1
        The version number of the stored attributes.  Files with another version cannot be read.
    """

    cls: type
    name: str
    attributes: tuple[str, ...]
    value: bool = False
    format: int = 1

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of the constructor parameters of an estimator; () for other classes."""
        return tuple(inspect.signature(self.cls).parameters) if self.estimator else ()

    @property
    def estimator(self) -> bool:
        """Whether the class is an estimator, with parameters and fitted attributes."""
        return issubclass(self.cls, BaseEstimator)


# The stored attributes of classes that are not dataclasses.
_ATTRIBUTES: dict[type, str] = {
    Graphs: "offsets directed indptr indices labels attributes edge_labels weights",
    estimators.ThetaMap: "given kernel _place _factor _offset",
    estimators.PairExpansion: "kernel points dual pairs",
    gp.Preconditioned: "Q scale P rounding _beside",
    solvers.NystroemPath: "points phi X Y weights _kept _mean _constant _V _s _c _yy report",
    solvers.ShiftedLowRank: "F shift n_threads",
    **dict.fromkeys((solvers.Squared, solvers.Poisson, solvers.SquaredHinge, solvers.Hinge), ""),
    **dict.fromkeys((solvers.Logistic, solvers.Softmax), ""),
    **dict.fromkeys(
        (solvers.Absolute, solvers.EpsilonInsensitive, solvers.Huber, solvers.Quantile),
        "above below epsilon bend",
    ),
}

# Dataclasses and named tuples, of which all fields are stored.
_FIELD_CLASSES: tuple[type, ...] = (
    Expansion,
    Primal,
    Reduction,
    Graph,
    estimators.AcceleratedModel,
    estimators.LatentProcess,
    estimators.Pairs,
    estimators.ReparametrisedObjective,
    gp.ClassCovariance,
    gp.InducingBound,
    gp.LaplaceLikelihood,
    gp.MarginalLikelihood,
    gp.Posterior,
    gp.Projection,
    gp.StochasticLikelihood,
    estimators.CountSketchMap,
    estimators.FlippedMap,
    gram.FourierMap,
    gram.Landmarks,
    gram.NystroemMap,
    kernel_learning.KernelWeights,
    embedding.BayesianGPLVMModel,
    embedding.GPLVMModel,
    embedding.MLP,
    embedding.LinearGaussian,
    mean_embedding.DensityKernel,
    solvers.Report,
    solvers.Reports,
    solvers.Certificate,
    solvers.FeatureBasis,
    solvers.Calibration,
    solvers.Moments,
    solvers.ExactRidge,
    solvers.LandmarkRidge,
    solvers.BudgetPerceptron,
    solvers.Norma,
    solvers.Perceptron,
    solvers.RecursiveLeastSquares,
    solvers.Schedule,
    # Solvers are parameters of estimators, or attributes that contain the chosen solver.
    solvers.Arpack,
    solvers.BlockKrylov,
    solvers.BlockSMO,
    solvers.BoxInterior,
    solvers.CoreSet,
    solvers.FallbackSolver,
    solvers.CanonicalCorrelations,
    solvers.Cholesky,
    solvers.ConjugateGradient,
    solvers.DenseEigen,
    solvers.FourierEigen,
    solvers.GradientDescent,
    solvers.InteriorPoint,
    solvers.Krill,
    solvers.CuttingPlanes,
    solvers.LearnedVectors,
    solvers.LeastSquares,
    solvers.Lloyd,
    solvers.LowRankEigen,
    solvers.NormPenaltySolver,
    solvers.MixedCholesky,
    solvers.Newton,
    solvers.OutOfCoreNewton,
    solvers.PartialLeastSquares,
    solvers.PowerDeflation,
    solvers.RandomizedEigen,
    solvers.SMOThenInteriorPoint,
    kpca.Components,
    kpca.LearnedInverse,
    # Tables: the preprocessing of columns, which is stored with the model.
    tables.CategoryColumn,
    tables.DateColumn,
    tables.NumberColumn,
    tables.TableModel,
    tables.TextColumn,
    tables.Treatment,
)

# Kernels that `mercer.kernels` does not export.
_OTHER_KERNELS: tuple[type, ...] = (gp.Conditioned, gp.Solved, kernel_learning.MultipleKernel)


# Names in files of earlier versions: former class name -> present class name.
FORMER_CLASSES = {
    "BayesianMap": "BayesianGPLVMModel",
    "Cascade": "FallbackSolver",
    "KernelTranslation": "ThetaMap",
    "LatentMap": "GPLVMModel",
    "Layers": "MLP",
    "Machine": "NormPenaltySolver",
    "NewtonInPasses": "OutOfCoreNewton",
    "PowerPeeling": "PowerDeflation",
    "Relay": "SMOThenInteriorPoint",
    "SpelledObjective": "ReparametrisedObjective",
    "Window": "DensityKernel",
}

# Fields in files of earlier versions: present class name -> {former field: present field}.  None
# means that the field is no longer stored.
FORMER_FIELDS: dict[str, dict[str, str | None]] = {
    **{name: {"say": "log"} for name in ("ConjugateGradient", "ExactRidge", "LandmarkRidge")},
    "Projection": {"latent": None},
}


@cache
def by_name() -> dict[str, StoredClass]:
    """Return a dictionary from the name of each class in files to its `StoredClass`."""
    language = [getattr(kernels, name) for name in kernels.__all__]
    values = [*filter(_is_value, language), *_OTHER_KERNELS]
    entries = [_value_class(cls) for cls in values]
    entries += [
        StoredClass(cls, cls.__name__, tuple(names.split())) for cls, names in _ATTRIBUTES.items()
    ]
    entries += [StoredClass(cls, cls.__name__, _fields(cls)) for cls in _FIELD_CLASSES]
    entries += [
        StoredClass(cls, cls.__name__, tuple(stored_types(cls)))
        for cls in (*_estimators(), estimators.SecondView, tables.Recipe)
    ]
    # scikit-learn objects that can be parameters: Gaussian process kernels and splitters
    entries += [
        StoredClass(cls, f"sklearn.{cls.__name__}", tuple(inspect.signature(cls).parameters), True)
        for cls in _sklearn_classes()
    ]
    table = {stored.name: stored for stored in entries}
    return table | {former: table[present] for former, present in FORMER_CLASSES.items()}


@cache
def stored_types(cls: type) -> dict[str, Any]:
    """Return the fitted attributes of an estimator class with their types.

    The names are part of the file format: do not change them without a new format version.
    """
    # Two attributes are set by the input validation of scikit-learn.
    return {**estimators.fitted_types(cls), "n_features_in_": int, "feature_names_in_": np.ndarray}


@cache
def by_class() -> dict[type, StoredClass]:
    """Return a dictionary from each class to its `StoredClass`."""
    return {stored.cls: stored for stored in by_name().values()}


def with_user_classes(classes: Iterable[type]) -> dict[str, StoredClass]:
    """Return the dictionary of `by_name` with user-defined kernels and feature bases added."""
    table = dict(by_name())
    for cls in classes:
        if not _is_value(cls):
            raise TypeError(f"classes must be user-defined kernel classes, got {cls!r}")
        if cls.__name__ in table and table[cls.__name__].cls is not cls:
            raise ValueError(
                f"mercer already has a class {cls.__name__}; give your class another name"
            )
        table[cls.__name__] = _value_class(cls)
    return table


def _is_value(cls: Any) -> bool:
    """Whether a class is a kernel or feature basis that is not abstract."""
    return inspect.isclass(cls) and issubclass(cls, kernels.Value) and not inspect.isabstract(cls)


def _value_class(cls: type) -> StoredClass:
    """Return the `StoredClass` of a class whose objects are restored by the constructor."""
    return StoredClass(cls, cls.__name__, _fields(cls), value=True)


def _fields(cls: Any) -> tuple[str, ...]:
    """Return the field names of a dataclass or named tuple."""
    if issubclass(cls, tuple):
        return tuple(cls._fields)
    return tuple(field.name for field in dataclasses.fields(cls))


def _estimators() -> list[type]:
    """Return the public estimator classes of mercer."""
    public = [getattr(estimators, name) for name in estimators.__all__]
    return [cls for cls in public if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]


def _sklearn_classes() -> list[type]:
    """Return the GP kernels and the cross-validation splitters of scikit-learn."""
    names = "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern Product "
    names += "RBF RationalQuadratic Sum WhiteKernel"
    classes = [getattr(sklearn_kernels, name) for name in names.split()]
    names = "GroupKFold KFold LeaveOneOut RepeatedKFold RepeatedStratifiedKFold ShuffleSplit "
    names += "StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit"
    return classes + [getattr(sklearn_splitters, name) for name in names.split()]
