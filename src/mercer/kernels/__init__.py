"""Kernels, the operators that combine them, and functions that parse and convert them.

Kernels are immutable values: `2 * RBF() + Linear()` is a new kernel.  `kernel(X, Z)` returns the
matrix with the entries k(x_i, z_j), and `kernel.validity()` checks whether k is a Mercer kernel.
"""

from .._core import former_names
from ._as_kernel import KERNEL_NAMES, SklearnKernel, as_kernel, from_sklearn
from ._as_kernel import parse_if_expression as parse_if_expression
from ._as_kernel import without_targets as without_targets
from ._base import Kernel, node, parameter
from ._dataclass import Value as Value
from ._evaluation import Prepared
from ._evaluation import prepare_pair as prepare_pair
from ._memoised_kernel import memoise as memoise
from ._memoised_kernel import table_bytes as table_bytes
from ._memoised_kernel import unwrap as unwrap
from ._pairwise_kernels import Callable, PairwiseKernel
from ._parameter_tree import child as child
from ._parameter_tree import data_dependent as data_dependent
from ._precomputed import Precomputed
from ._precomputed import as_index_kernel as as_index_kernel
from ._precomputed import expects_precomputed_rows as expects_precomputed_rows
from ._preimage_formulas import PreimageFormula as PreimageFormula
from ._preimage_formulas import closed_form_preimage as closed_form_preimage
from ._preimage_formulas import preimage_neighbours as preimage_neighbours
from ._properties import Domain, Properties
from ._rounding import as_distance_kernel as as_distance_kernel
from ._rounding import float32_error_bound as float32_error_bound
from ._rounding import has_float32_error_bound as has_float32_error_bound
from ._rounding import shifted_to_data as shifted_to_data
from ._sparse_features import Explicit
from .algebra._closure_rules import Exp, Power, Product, Scale, Sum
from .algebra._input_maps import LinearMap, Map, Periodic, Select, Shift, Stretch
from .algebra._wrappers import Bounded, Fixed, MeanOf, Normalized, Wrapper
from .categories._category_kernels import AitchisonAitken, Equal
from .features._explicit_features import finite_features
from .features._feature_kernels import (
    Features,
    GaussianBasis,
    GaussianSeries,
    PolynomialBasis,
    QuadraticMap,
    RankOne,
    SigmoidBasis,
)
from .features._fourier_features import FourierBasis, random_features
from .features._fourier_features import additive_chi2_features as additive_chi2_features
from .features._fourier_features import skewed_features as skewed_features
from .graphs._graph_collection import Graph, Graphs
from .graphs._graph_kernels import (
    EdgeHistogram,
    GraphKernel,
    Graphlet,
    ShortestPath,
    VertexHistogram,
    WeisfeilerLehman,
)
from .graphs._random_walk_kernel import RandomWalk
from .language import parse_kernel
from .sets._ranking_kernels import Kendall, Mallows
from .sets._set_kernels import (
    BraunBlanquet,
    Dice,
    Intersection,
    Jaccard,
    MinMax,
    Ochiai,
    Overlap,
    Subsets,
)
from .strings._local_alignment import LocalAlignment
from .strings._subsequence_kernels import AllSubsequences, Subsequence, SubsequenceSum
from .strings._text_kernels import BagOfNgrams, BagOfWords
from .strings._word_kernels import Gapped, Mismatch, Spectrum, WeightedDegree
from .vectors._bandwidth_rules import RULES
from .vectors._constant import Constant, White
from .vectors._dot_product import Bilinear, Cosine, DotProduct, Linear, Polynomial, Sigmoid
from .vectors._fast_math import exp_inplace as exp_inplace
from .vectors._histogram import AdditiveChi2, Chi2, HistogramIntersection, Laplacian
from .vectors._local_scaling import LocalRBF
from .vectors._manifold_kernels import CommuteTime, Diffusion, Geodesic, LocallyLinear
from .vectors._radial import Radial
from .vectors._radial_kernels import (
    RBF,
    Cauchy,
    Distance,
    InverseMultiquadric,
    Matern,
    Multiquadric,
    RationalQuadratic,
    ThinPlate,
)

__getattr__ = former_names(__name__)

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "RULES",
    "AdditiveChi2",
    "AitchisonAitken",
    "AllSubsequences",
    "BagOfNgrams",
    "BagOfWords",
    "Bilinear",
    "Bounded",
    "BraunBlanquet",
    "Callable",
    "Cauchy",
    "Chi2",
    "CommuteTime",
    "Constant",
    "Cosine",
    "Dice",
    "Diffusion",
    "Distance",
    "Domain",
    "DotProduct",
    "EdgeHistogram",
    "Equal",
    "Exp",
    "Explicit",
    "Features",
    "Fixed",
    "FourierBasis",
    "Gapped",
    "GaussianBasis",
    "GaussianSeries",
    "Geodesic",
    "Graph",
    "GraphKernel",
    "Graphlet",
    "Graphs",
    "HistogramIntersection",
    "Intersection",
    "InverseMultiquadric",
    "Jaccard",
    "Kendall",
    "Kernel",
    "Laplacian",
    "Linear",
    "LinearMap",
    "LocalAlignment",
    "LocalRBF",
    "LocallyLinear",
    "Mallows",
    "Map",
    "Matern",
    "MeanOf",
    "MinMax",
    "Mismatch",
    "Multiquadric",
    "Normalized",
    "Ochiai",
    "Overlap",
    "PairwiseKernel",
    "Periodic",
    "Polynomial",
    "PolynomialBasis",
    "Power",
    "Precomputed",
    "Prepared",
    "Product",
    "Properties",
    "QuadraticMap",
    "Radial",
    "RandomWalk",
    "RankOne",
    "RationalQuadratic",
    "Scale",
    "Select",
    "Shift",
    "ShortestPath",
    "Sigmoid",
    "SigmoidBasis",
    "SklearnKernel",
    "Spectrum",
    "Stretch",
    "Subsequence",
    "SubsequenceSum",
    "Subsets",
    "Sum",
    "ThinPlate",
    "VertexHistogram",
    "WeightedDegree",
    "WeisfeilerLehman",
    "White",
    "Wrapper",
    "as_kernel",
    "finite_features",
    "from_sklearn",
    "node",
    "parameter",
    "parse_kernel",
    "random_features",
]
