"""The fitted attributes of each estimator that are stored in a file, and their types.

The constructor parameters are stored, too.  A model with an attribute that is not in this table
cannot be saved or loaded.  The names are part of the file format: do not change them without a new
format version.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from ..expansion import Expansion, Primal
from ..gram import FeatureMap
from ..kernels import Kernel
from ..models.embedding import MLP, BayesianGPLVMModel, GPLVMModel, LinearGaussian
from ..models.kpca import Components, LearnedInverse
from ..models.mean_embedding import DensityKernel
from ..solvers import Certificate, ExactRidge, LandmarkRidge, Loss, OnlineLearner, Report, Reports

# Attributes that several estimators share.
_DUAL = "kernel_ expansion_ X_fit_ dual_coef_ intercept_ report_ "
_CLASSES = "classes_ "
_SVM = (
    "kernel_ gamma_ dual_coef_ intercept_ support_ support_vectors_ n_support_ shape_fit_ solver_ "
    "report_ reports_ fit_status_ n_iter_ at_bound_ _given_expansion _sparse "
)
_ONLINE = _DUAL + "mistakes_ n_iter_ t_ _flat _kept _learner "
_NEIGHBOURS = _DUAL + "n_samples_fit_ _norms "
_VIEWS = _DUAL + "kernel_y_ expansion_y_ intercept_y_ n_components_ _second "
_SPARSE = _DUAL + "n_iter_ objective_curve_ solver_ "

FITTED = {
    "AdditiveChi2Sampler": "",
    "Autoencoder": "encoder_ decoder_ losses_ report_",
    "BayesianGPLVM": "kernel_ expansion_ model_ log_likelihood_ report_",
    "ExplicitFeatures": "kernel_ _frame _n_features_out",
    "GPLVM": "kernel_ expansion_ model_ log_likelihood_ report_",
    "GaussianProcessClassifier": _CLASSES
    + "kernel_ expansion_ expansions_ log_marginal_likelihood_value_ n_classes_ report_ reports_ "
    "_form _latents",
    "GaussianProcessRegressor": "kernel_ expansion_ covariance_ L_ X_train_ y_train_ alpha_ "
    "log_marginal_likelihood_value_ report_ _spelled _y_train_mean _y_train_std",
    "KernelCCA": _VIEWS + "canonical_correlations_",
    "KernelFisherDiscriminant": _DUAL
    + _CLASSES
    + "alpha_ alphas_ discriminant_ratios_ explained_variance_ratio_ leave_one_out_ means_ priors_ "
    "scores_ _decide _n_features_out",
    "KernelKMeans": _DUAL + "inertia_ inertia_history_ labels_ n_iter_ solver_ squared_norms_ "
    "_norms",
    "KernelKNeighborsClassifier": _NEIGHBOURS + _CLASSES,
    "KernelKNeighborsRegressor": _NEIGHBOURS + "_flat",
    "KernelLogisticRegression": _DUAL + _CLASSES + "n_iter_ solver_",
    "KernelLogisticRegressionCV": _DUAL + _CLASSES + "C_ Cs_ best_score_ n_iter_ scores_ solver_",
    "KernelMachineClassifier": _DUAL + _CLASSES + "loss_ n_iter_",
    "KernelMachineRegressor": _DUAL + "loss_ n_iter_ _columns",
    "KernelPCA": "kernel_ expansion_ mean_ X_fit_ X_transformed_fit_ dual_coef_ inverse_alpha_ "
    "inverse_kernel_ certificate_ eigenvalue_bounds_ eigenvalues_ eigenvectors_ "
    "explained_variance_ explained_variance_ratio_ gamma_ n_components_ offset_ report_ residuals_ "
    "solver_ total_variance_ _components _dtype _held _inverse _whole",
    "KernelPLS": _VIEWS + "covariances_ _flat _regression",
    "KernelPerceptron": _ONLINE + _CLASSES,
    "KernelRadiusNeighborsClassifier": _NEIGHBOURS + _CLASSES + "outlier_label_",
    "KernelRecursiveLeastSquares": _ONLINE,
    "KernelRidge": _DUAL + "solver_ _places _ridge",
    "KernelRidgeCV": _DUAL + "alpha_ alphas_ best_score_ cv_results_ gamma_ leave_one_out_ scores_",
    "MetricMDS": "kernel_ X_fit_ embedding_ stress_ stresses_ report_ _least _norms",
    "NuSVC": _SVM + _CLASSES + "class_weight_ nu_",
    "NuSVR": _SVM + "epsilon_",
    "Nystroem": "kernel_ expansion_ components_ component_indices_ normalization_ "
    "approximation_error_ report_ _map",
    "OneClassSVM": _SVM + "offset_",
    "OnlineKernelRegressor": _ONLINE + "eta0_",
    "ParzenDensity": "kernel_ X_fit_ bandwidth_ weights_ _window",
    "PolynomialCountSketch": "kernel_ bitHash_ indexHash_ _map",
    "ProbabilisticPCA": "model_ log_likelihoods_ n_iter_",
    "RBFSampler": "kernel_ random_offset_ random_weights_ _map",
    "RandomFeatures": "kernel_ basis_ _map",
    "SVC": _SVM + _CLASSES + "class_weight_",
    "SVR": _SVM,
    "SecondView": "",
    "SkewedChi2Sampler": "random_offset_ random_weights_ _map",
    "SparseKernelClassifier": _SPARSE + _CLASSES,
    "SparseKernelRegressor": _SPARSE,
}

# Names of attributes by type.  Attributes of various types, such as solvers, are omitted.
_ARRAYS = (
    "Cs_ L_ _places _y_train_mean _y_train_std alphas_ at_bound_ bitHash_ "
    "canonical_correlations_ class_weight_ classes_ covariances_ "
    "discriminant_ratios_ dual_coef_ eigenvalue_bounds_ eigenvalues_ eigenvectors_ "
    "embedding_ explained_variance_ explained_variance_ratio_ feature_names_in_ indexHash_ "
    "inertia_history_ "
    "intercept_y_ labels_ leave_one_out_ log_likelihoods_ losses_ means_ mistakes_ n_support_ "
    "normalization_ nu_ "
    "objective_curve_ priors_ random_offset_ random_weights_ residuals_ scores_ squared_norms_ "
    "stresses_ support_ weights_ y_train_ X_transformed_fit_"
)
_NUMBERS = (
    "C_ approximation_error_ bandwidth_ epsilon_ eta0_ inertia_ "
    "_least log_likelihood_ log_marginal_likelihood_value_ stress_ total_variance_"
)
# attributes that contain points of any kind
_POINTS = "X_fit_ X_train_ _kept components_ support_vectors_"
_COUNTS = "_n_features_out fit_status_ n_classes_ n_components_ n_features_in_ n_samples_fit_ t_"

TYPES: dict[str, Any] = {
    **dict.fromkeys(_ARRAYS.split(), np.ndarray),
    **dict.fromkeys(_NUMBERS.split(), float | None),
    **dict.fromkeys(_COUNTS.split(), int),
    **dict.fromkeys(_POINTS.split(), Sized),
    **dict.fromkeys(("_flat", "_sparse", "_whole"), bool),
    **dict.fromkeys(("_form", "_held"), str),
    **dict.fromkeys(("expansion_", "expansion_y_", "mean_"), Expansion | Primal),
    **dict.fromkeys(("intercept_", "alpha_", "best_score_", "offset_"), float | np.ndarray),
    **dict.fromkeys(("_latents", "expansions_"), list),
    "_columns": np.ndarray | None,
    "_components": Components,
    "_decide": tuple,
    "_given_expansion": Expansion | Primal | None,
    "_inverse": LearnedInverse | None,
    "_learner": OnlineLearner,
    "_map": FeatureMap | None,  # the map is None for a precomputed kernel
    "_norms": np.ndarray | None,
    "_regression": tuple | None,
    "_ridge": ExactRidge | LandmarkRidge,
    "_window": DensityKernel,
    "certificate_": Certificate,
    "component_indices_": np.ndarray | None,
    "covariance_": Kernel,
    "decoder_": MLP,
    "encoder_": MLP,
    "loss_": Loss,
    "model_": BayesianGPLVMModel | GPLVMModel | LinearGaussian,
    "n_iter_": int | np.ndarray,
    "report_": Report,
    "reports_": list | Reports,
    "shape_fit_": tuple,
}
