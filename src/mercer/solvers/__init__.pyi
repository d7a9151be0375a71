from ._choose_solver import EIGEN as EIGEN
from ._choose_solver import LINEAR as LINEAR
from ._choose_solver import MAX_EXACT_POINTS as MAX_EXACT_POINTS
from ._choose_solver import ProblemKind, choose
from ._choose_solver import affordable_landmarks as affordable_landmarks
from ._choose_solver import cheapest as cheapest
from ._choose_solver import choose_linear_svm_solver as choose_linear_svm_solver
from ._choose_solver import choose_svm_solver as choose_svm_solver
from ._choose_solver import eigen_costs as eigen_costs
from ._choose_solver import use_landmarks as use_landmarks
from ._cost_model import Cost
from ._cost_model import cost_of_entries as cost_of_entries
from ._cost_model import cost_of_storing_and_reading as cost_of_storing_and_reading
from ._eigen_plan import LOW_MEMORY_KRYLOV as LOW_MEMORY_KRYLOV
from ._eigen_plan import dense_eigen_bytes as dense_eigen_bytes
from ._eigen_plan import feature_solver_bytes as feature_solver_bytes
from ._eigen_plan import plan_eigenproblem as plan_eigenproblem
from ._eigen_plan import prefers_dense_eigen as prefers_dense_eigen
from ._fallback import FallbackChain as FallbackChain
from ._fallback import FallbackSolver, SMOThenInteriorPoint
from ._fallback import GivenUp as GivenUp
from ._plan import Option, Plan
from ._plan import make_plan as make_plan
from ._plan_families import MIN_SVM_CACHE_BYTES as MIN_SVM_CACHE_BYTES
from ._plan_families import landmark_bytes as landmark_bytes
from ._plan_families import n_columns as n_columns
from ._plan_families import plan_clusters as plan_clusters
from ._plan_families import plan_exact_or_landmarks as plan_exact_or_landmarks
from ._plan_families import plan_ridge as plan_ridge
from ._plan_families import plan_stored_points as plan_stored_points
from ._plan_families import plan_svm as plan_svm
from ._plan_families import tile_bytes as tile_bytes
from ._protocols import DualSolver as DualSolver
from ._protocols import RiskSolver as RiskSolver
from ._report import Report, Status, residual_floor, status_of
from ._report import worst_report as worst_report
from .eigen import (
    Arpack,
    BlockKrylov,
    Certificate,
    DenseEigen,
    EigenPairs,
    FourierEigen,
    LowRankEigen,
    Moments,
    PowerDeflation,
    RandomizedEigen,
    certify,
)
from .eigen import canonical_signs as canonical_signs
from .eigen import eigenpairs_of_moments as eigenpairs_of_moments
from .eigen import eigenpairs_of_points as eigenpairs_of_points
from .eigen import feature_moments as feature_moments
from .eigen import unknown_certificate as unknown_certificate
from .eigen import weyl_certificate as weyl_certificate
from .kmeans import Clusters, Lloyd, cluster, silhouette
from .linear import BorderedSystem as BorderedSystem
from .linear import CGRecurrence as CGRecurrence
from .linear import (
    Cholesky,
    ConjugateGradient,
    Factor,
    LeastSquares,
    MixedCholesky,
    ShiftedLowRank,
    conjugate_gradients,
)
from .linear import InPlaceSymmetric as InPlaceSymmetric
from .linear import check_stopping_criteria as check_stopping_criteria
from .linear import columnwise_dot as columnwise_dot
from .linear import gram_to_array as gram_to_array
from .linear import inverse_diagonal_with_intercept as inverse_diagonal_with_intercept
from .linear import iteration_status as iteration_status
from .linear import max_relative_residual as max_relative_residual
from .linear import minimum_norm_solution as minimum_norm_solution
from .linear import mirror_lower_triangle as mirror_lower_triangle
from .linear import normalise_columns as normalise_columns
from .linear import row_gram as row_gram
from .linear import solve_with_intercept as solve_with_intercept
from .linear import warn_inaccurate as warn_inaccurate
from .online import (
    BudgetPerceptron,
    Norma,
    OnlineLearner,
    Perceptron,
    RecursiveLeastSquares,
    Schedule,
)
from .ridge import Calibration as Calibration
from .ridge import (
    Discriminants,
    ExactPath,
    ExactRidge,
    Krill,
    LandmarkRidge,
    NystroemPath,
    RidgePath,
    Tridiagonal,
)
from .ridge import DualSmoother as DualSmoother
from .ridge import check_interval_memory as check_interval_memory
from .ridge import interval_bounds as interval_bounds
from .ridge import interval_rank as interval_rank
from .ridge import invert_lower as invert_lower
from .ridge import jackknife_bounds as jackknife_bounds
from .ridge import kernel_rows as kernel_rows
from .ridge import warn_if_infinite as warn_if_infinite
from .risk import (
    Absolute,
    CustomLoss,
    CuttingPlanes,
    EpsilonInsensitive,
    GradientDescent,
    Hinge,
    Huber,
    InteriorPoint,
    LearnedVectors,
    Logistic,
    Loss,
    Minimum,
    Newton,
    NormPenaltySolver,
    Penalty,
    PiecewiseQuadratic,
    Poisson,
    Quantile,
    ReducedExpansionRisk,
    RegularisedRisk,
    Softmax,
    Squared,
    SquaredHinge,
    WhitenedCoordinates,
    whiten,
)
from .risk import OutOfCoreNewton as OutOfCoreNewton
from .risk import OutOfCoreRisk as OutOfCoreRisk
from .risk import max_stored_cuts as max_stored_cuts
from .svm import BlockSMO, BoxInterior, CoreProblem, CoreSet, Dual, DualSolution
from .svm import CoreSolution as CoreSolution
from .svm import DualProgress as DualProgress
from .svm import FollowCallback as FollowCallback
from .svm import ReadableRows as ReadableRows
from .svm import StopReason as StopReason
from .two_view import CanonicalCorrelations, PartialLeastSquares, TwoViewResult, View
from .two_view import columnwise_correlations as columnwise_correlations
from .two_view import two_view_coordinates as two_view_coordinates
from .two_view import two_view_memory as two_view_memory

from .svm import Duals as Duals  # isort: skip
from .svm import DualSolutions as DualSolutions  # isort: skip
from .svm import Reports as Reports  # isort: skip
from .eigen import FeatureBasis as FeatureBasis  # isort: skip

__all__ = [
    "Absolute",
    "Arpack",
    "BlockKrylov",
    "BlockSMO",
    "BoxInterior",
    "BudgetPerceptron",
    "CanonicalCorrelations",
    "Certificate",
    "Cholesky",
    "Clusters",
    "ConjugateGradient",
    "CoreProblem",
    "CoreSet",
    "Cost",
    "CustomLoss",
    "CuttingPlanes",
    "DenseEigen",
    "Discriminants",
    "Dual",
    "DualSolution",
    "EigenPairs",
    "EpsilonInsensitive",
    "ExactPath",
    "ExactRidge",
    "Factor",
    "FallbackSolver",
    "FourierEigen",
    "GradientDescent",
    "Hinge",
    "Huber",
    "InteriorPoint",
    "Krill",
    "LandmarkRidge",
    "LearnedVectors",
    "LeastSquares",
    "Lloyd",
    "Logistic",
    "Loss",
    "LowRankEigen",
    "Minimum",
    "MixedCholesky",
    "Moments",
    "Newton",
    "NormPenaltySolver",
    "Norma",
    "NystroemPath",
    "OnlineLearner",
    "Option",
    "PartialLeastSquares",
    "Penalty",
    "Perceptron",
    "PiecewiseQuadratic",
    "Plan",
    "Poisson",
    "PowerDeflation",
    "ProblemKind",
    "Quantile",
    "RandomizedEigen",
    "RecursiveLeastSquares",
    "ReducedExpansionRisk",
    "RegularisedRisk",
    "Report",
    "RidgePath",
    "SMOThenInteriorPoint",
    "Schedule",
    "ShiftedLowRank",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Status",
    "Tridiagonal",
    "TwoViewResult",
    "View",
    "WhitenedCoordinates",
    "certify",
    "choose",
    "cluster",
    "conjugate_gradients",
    "residual_floor",
    "silhouette",
    "status_of",
    "whiten",
]
