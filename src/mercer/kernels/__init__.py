"""Kernels, the operators that combine them, and functions that parse and convert them.

Kernels are immutable values: `2 * RBF() + Linear()` is a new kernel.  `kernel(X, Z)` returns the
matrix of the k(x_i, z_j), and `kernel.validity()` checks whether k is a Mercer kernel.
"""

from ._algebra import Exp, Power, Product, Scale, Sum
from ._alignment import LocalAlignment
from ._bandwidth import RULES
from ._base import Kernel, node, parameter
from ._callable import Callable
from ._chi2_basis import additive_chi2_features
from ._claims import Claims
from ._conditional import Distance, Multiquadric, ThinPlate
from ._dot import Bilinear, Cosine, DotProduct, Linear, Polynomial, Sigmoid
from ._elementwise import AdditiveChi2, Chi2, HistogramIntersection, Laplacian
from ._exp import exp_inplace
from ._explicit import Explicit
from ._features import (
    Features,
    GaussianBasis,
    GaussianSeries,
    PolynomialBasis,
    QuadraticMap,
    RankOne,
    SigmoidBasis,
)
from ._finite import finite_features
from ._flat import Constant, White
from ._fourier import FourierBasis, random_features, skewed_features
from ._graph_collection import Graph, Graphs
from ._graph_walks import RandomWalk
from ._graphs import (
    EdgeHistogram,
    GraphKernel,
    Graphlet,
    ShortestPath,
    VertexHistogram,
    WeisfeilerLehman,
)
from ._hamming import Gapped, Mismatch
from ._local import LocalRBF
from ._maps import Map, Periodic, Select, Shift, Stretch
from ._mean_of import MeanOf
from ._memoised import memoise, table_bytes, unwrap
from ._precomputed import Precomputed, on_indices, reads_all
from ._prepared import Prepared, pair
from ._radial import Radial
from ._rankings import Kendall, Mallows
from ._sets import (
    BraunBlanquet,
    Dice,
    Intersection,
    Jaccard,
    MinMax,
    Ochiai,
    Overlap,
    Subsets,
)
from ._sklearn import SklearnKernel, from_sklearn
from ._specs import KERNEL_NAMES, as_kernel, spelled_out
from ._stationary import RBF, Cauchy, InverseMultiquadric, Matern, RationalQuadratic
from ._strings import Spectrum, WeightedDegree
from ._subsequences import AllSubsequences, Subsequence, SubsequenceSum
from ._text import BagOfNgrams, BagOfWords
from ._wrappers import Bounded, Fixed, Normalized, Wrapper
from .language import parse_kernel

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "RULES",
    "AdditiveChi2",
    "AllSubsequences",
    "BagOfNgrams",
    "BagOfWords",
    "Bilinear",
    "Bounded",
    "BraunBlanquet",
    "Callable",
    "Cauchy",
    "Chi2",
    "Claims",
    "Constant",
    "Cosine",
    "Dice",
    "Distance",
    "DotProduct",
    "EdgeHistogram",
    "Exp",
    "Explicit",
    "Features",
    "Fixed",
    "FourierBasis",
    "Gapped",
    "GaussianBasis",
    "GaussianSeries",
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
    "LocalAlignment",
    "LocalRBF",
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
    "Periodic",
    "Polynomial",
    "PolynomialBasis",
    "Power",
    "Precomputed",
    "Prepared",
    "Product",
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
    "additive_chi2_features",
    "as_kernel",
    "exp_inplace",
    "finite_features",
    "from_sklearn",
    "memoise",
    "node",
    "on_indices",
    "pair",
    "parameter",
    "parse_kernel",
    "random_features",
    "reads_all",
    "skewed_features",
    "spelled_out",
    "table_bytes",
    "unwrap",
]
