"""The classes that a file may name, each by its public name and with the number of its format.

Nothing else is ever made by `load`: a name is looked up here, and not imported.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

import sklearn.gaussian_process.kernels as their_kernels
import sklearn.model_selection as their_splitters
from sklearn.base import BaseEstimator

from .. import estimators, gp, gram, kernels, learning, maps, means, solvers, spectral
from ..expansion import Expansion, Primal
from ..kernels import Graph, Graphs
from ..reduce import Reduction
from ._state import FITTED

__all__ = ["TEXT", "Stored", "by_class", "by_name", "extended"]

TEXT = 10_000  # characters of a kernel that is written as text; longer ones by their fields


@dataclasses.dataclass(frozen=True, eq=False)
class Stored:
    """A class that can stand in a file.

    `attributes` are the names of what is stored.  A `value` is made again by its constructor, with
    its checks; of others the attributes are set.  A `format` that is larger than ours was written
    by a later version of mercer.
    """

    cls: type
    name: str
    attributes: tuple[str, ...]
    value: bool = False
    format: int = 1

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Those of an estimator."""
        return tuple(inspect.signature(self.cls).parameters) if self.estimator else ()

    @property
    def estimator(self) -> bool:
        """Whether it has parameters, and attributes only after a fit."""
        return issubclass(self.cls, BaseEstimator)


# Attributes of classes that are not dataclasses, by their names.
_PLAIN: dict[type, str] = {
    Graphs: "offsets directed indptr indices labels attributes edge_labels weights",
    estimators.KernelTranslation: "given kernel _place _factor _offset",
    estimators.PairExpansion: "kernel points dual pairs",
    gp.Preconditioned: "Q scale P rounding _beside",
    solvers.NystroemPath: "points phi X Y weights _kept _mean _constant _V _s _c _yy report",
    solvers.ShiftedLowRank: "F shift n_threads",
    **dict.fromkeys((solvers.Squared, solvers.Poisson, solvers.SquaredHinge), ""),
    **dict.fromkeys((solvers.Logistic, solvers.Softmax), ""),
    **dict.fromkeys(
        (solvers.Absolute, solvers.EpsilonInsensitive, solvers.Huber, solvers.Quantile),
        "above below epsilon bend",
    ),
}

# Dataclasses and named tuples: their attributes are their fields.
_FIELDS: tuple[type, ...] = (
    Expansion,
    Primal,
    Reduction,
    Graph,
    estimators.LatentProcess,
    estimators.Pairs,
    estimators.SpelledObjective,
    gp.ClassCovariance,
    gp.InducingBound,
    gp.LaplaceLikelihood,
    gp.MarginalLikelihood,
    gp.Posterior,
    gp.Projection,
    gp.StochasticLikelihood,
    gram.CountSketchMap,
    gram.FlippedMap,
    gram.FourierMap,
    gram.Landmarks,
    gram.NystroemMap,
    learning.KernelWeights,
    maps.BayesianMap,
    maps.LatentMap,
    maps.Layers,
    maps.LinearGaussian,
    means.Window,
    solvers.Report,
    solvers.Reports,
    solvers.Certificate,
    solvers.FeatureBasis,
    solvers.Moments,
    solvers.ExactRidge,
    solvers.LandmarkRidge,
    solvers.BudgetPerceptron,
    solvers.Norma,
    solvers.Perceptron,
    solvers.RecursiveLeastSquares,
    solvers.Schedule,
    # solvers as parameters, and as what was chosen
    solvers.Arpack,
    solvers.BlockKrylov,
    solvers.BlockSMO,
    solvers.BoxInterior,
    solvers.Cascade,
    solvers.CanonicalCorrelations,
    solvers.Cholesky,
    solvers.ConjugateGradient,
    solvers.DenseEigen,
    solvers.FourierEigen,
    solvers.GradientDescent,
    solvers.InteriorPoint,
    solvers.Krill,
    solvers.LearnedVectors,
    solvers.LeastSquares,
    solvers.Lloyd,
    solvers.LowRankEigen,
    solvers.Machine,
    solvers.MixedCholesky,
    solvers.Newton,
    solvers.NewtonInPasses,
    solvers.PartialLeastSquares,
    solvers.PowerPeeling,
    solvers.RandomizedEigen,
    solvers.Relay,
    spectral.Components,
    spectral.LearnedInverse,
)

# Kernels beside those of the language, which are values as they are.
_KERNELS: tuple[type, ...] = (gp.Conditioned, gp.Solved, learning.MultipleKernel)


@cache
def by_name() -> dict[str, Stored]:
    """Return all classes by the names that stand in files."""
    language = [getattr(kernels, name) for name in kernels.__all__]
    values = [*filter(_is_value, language), *_KERNELS]
    found = [_value(cls) for cls in values]
    found += [Stored(cls, cls.__name__, tuple(names.split())) for cls, names in _PLAIN.items()]
    found += [Stored(cls, cls.__name__, _fields(cls)) for cls in _FIELDS]
    found += [
        Stored(cls, cls.__name__, (*FITTED[cls.__name__].split(), *_EVERY))
        for cls in (*_estimators(), estimators.SecondView)
    ]
    # scikit-learn's own objects that are parameters: its GP kernels and its splitters
    found += [
        Stored(cls, f"sklearn.{cls.__name__}", tuple(inspect.signature(cls).parameters), True)
        for cls in _theirs()
    ]
    return {stored.name: stored for stored in found}


_EVERY = ("n_features_in_", "feature_names_in_")  # what scikit-learn's validation learns


@cache
def by_class() -> dict[type, Stored]:
    """Return the same by the classes themselves."""
    return {stored.cls: stored for stored in by_name().values()}


def extended(classes: Iterable[type]) -> dict[str, Stored]:
    """Return all classes with those of the user's own: kernels, and bases of features."""
    table = dict(by_name())
    for cls in classes:
        if not _is_value(cls):
            raise TypeError(f"classes are those of kernels of your own, got {cls!r}")
        if cls.__name__ in table and table[cls.__name__].cls is not cls:
            raise ValueError(f"mercer has a {cls.__name__} of its own; give the class another name")
        table[cls.__name__] = _value(cls)
    return table


def _is_value(cls: Any) -> bool:
    """Tell whether this is a class of the kernel language: kernels and bases, not abstract."""
    value = kernels.Kernel.__mro__[1]
    return inspect.isclass(cls) and issubclass(cls, value) and not inspect.isabstract(cls)


def _value(cls: type) -> Stored:
    return Stored(cls, cls.__name__, _fields(cls), value=True)


def _fields(cls: Any) -> tuple[str, ...]:
    if issubclass(cls, tuple):
        return tuple(cls._fields)
    return tuple(field.name for field in dataclasses.fields(cls))


def _estimators() -> list[type]:
    public = [getattr(estimators, name) for name in estimators.__all__]
    return [cls for cls in public if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]


def _theirs() -> list[type]:
    names = "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern Product "
    names += "RBF RationalQuadratic Sum WhiteKernel"
    found = [getattr(their_kernels, name) for name in names.split()]
    names = "GroupKFold KFold LeaveOneOut RepeatedKFold RepeatedStratifiedKFold ShuffleSplit "
    names += "StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit"
    return found + [getattr(their_splitters, name) for name in names.split()]
