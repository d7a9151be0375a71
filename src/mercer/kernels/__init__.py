"""What k is: kernels, the algebra that combines them, and the functions that read them."""

from ._algebra import Exp, Power, Product, Scale, Sum
from ._alignment import LocalAlignment
from ._base import Kernel, node, parameter
from ._callable import Callable
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
    SigmoidBasis,
)
from ._flat import Constant, RankOne, White
from ._fourier import FourierBasis, random_features
from ._hamming import Gapped, Mismatch
from ._maps import Map, Periodic, Select, Stretch
from ._precomputed import Precomputed, on_indices, reads_all
from ._prepared import Prepared, pair
from ._radial import Radial
from ._sklearn import SklearnKernel, from_sklearn
from ._specs import KERNEL_NAMES, as_kernel
from ._stationary import RBF, Cauchy, InverseMultiquadric, Matern, RationalQuadratic
from ._strings import Spectrum, WeightedDegree
from ._subsequences import AllSubsequences, Subsequence, SubsequenceSum
from ._wrappers import Bounded, Fixed, Normalized, Wrapper

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "AdditiveChi2",
    "AllSubsequences",
    "Bilinear",
    "Bounded",
    "Callable",
    "Cauchy",
    "Chi2",
    "Constant",
    "Cosine",
    "Distance",
    "DotProduct",
    "Exp",
    "Explicit",
    "Features",
    "Fixed",
    "FourierBasis",
    "Gapped",
    "GaussianBasis",
    "GaussianSeries",
    "HistogramIntersection",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "Map",
    "Matern",
    "Mismatch",
    "Multiquadric",
    "Normalized",
    "Periodic",
    "Polynomial",
    "PolynomialBasis",
    "Power",
    "Precomputed",
    "Prepared",
    "Product",
    "QuadraticMap",
    "Radial",
    "RankOne",
    "RationalQuadratic",
    "Scale",
    "Select",
    "Sigmoid",
    "SigmoidBasis",
    "SklearnKernel",
    "Spectrum",
    "Stretch",
    "Subsequence",
    "SubsequenceSum",
    "Sum",
    "ThinPlate",
    "WeightedDegree",
    "White",
    "Wrapper",
    "as_kernel",
    "exp_inplace",
    "from_sklearn",
    "node",
    "on_indices",
    "pair",
    "parameter",
    "random_features",
    "reads_all",
]
