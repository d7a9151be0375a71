"""Advice for keywords that estimators of other libraries have, and the order of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core import closest_name, first_known, short_repr

# Keyword-only parameters at the beginning of a signature: those that most users set.
_FIRST = (
    "C",
    "nu",
    "epsilon",
    "n_components",
    "bandwidth",
    "kernel",
    "kernel_y",
    "gamma",
    "gammas",
    "degree",
    "coef0",
    "kernel_params",
    "alpha",
    "fit_intercept",
    "class_weight",
    "solver",
    "rank",
    "landmarks",
)
# Keyword-only parameters at the end of a signature: resources and technical details.
_LAST = (
    "shrinking",
    "cache_size",
    "tol",
    "max_iter",
    "copy_X",
    "copy_X_train",
    "warm_start",
    "random_state",
    "max_memory",
    "n_jobs",
    "verbose",
)

# For each parameter, its names in other libraries.
_SYNONYMS = {
    "alpha": "lam lambda lambda_ lmbda reg regularization regularisation ridge l2 reg_lambda noise "
    "noise_variance noise_level sigma2",
    "alphas": "alpha lambdas lam lambda lambda_ regs",
    "C": "cost penalty_c",
    "Cs": "c costs",
    "kernel": "kern kernel_function covariance cov cov_function covar_module metric affinity",
    "n_components": "k dim dims n_dims latent_dim q input_dim n_features ncomp features",
    "n_clusters": "k n_components centers clusters",
    "n_neighbors": "k neighbours neighbors n_neighbours",
    "rank": "n_landmarks n_inducing num_inducing inducing m n_components",
    "n_inducing": "num_inducing inducing rank m",
    "bandwidth": "h sigma bw bw_method length_scale lengthscale width",
    "solver": "eigen_solver method algorithm",
    "eigen_solver": "solver method algorithm svd_solver",
    "max_iter": "maxiter max_iterations n_iter iterations n_iterations epochs n_epochs",
    "tol": "tolerance eps atol rtol",
    "random_state": "seed random_seed rng",
    "n_jobs": "jobs n_threads num_threads threads workers n_workers",
    "max_memory": "memory memory_limit max_ram ram",
    "fit_intercept": "intercept use_intercept bias",
    "normalize_y": "normalize_targets standardize_y normalise_y",
    "quantile": "tau q quantiles level",
    "eta0": "eta learning_rate lr",
    "epsilon": "eps svr_epsilon",
    "optimizer": "optimiser",
    "n_restarts_optimizer": "n_restarts restarts num_restarts",
    "class_weight": "class_weights weights",
    "whiten": "whitening",
    "dissimilarity": "metric",
    "outlier_label": "outlier",
}
_SCALING = (
    "mercer does not scale the columns. Use a pipeline: "
    "make_pipeline(StandardScaler(), {model}(...))"
)
_WITHOUT_PARAMETER = {
    "probability": (
        "{model} does not estimate probabilities. Use "
        "sklearn.calibration.CalibratedClassifierCV({model}(...), ensemble=False), or "
        "mercer.KernelLogisticRegression, which has predict_proba"
    ),
    "class_weight": (
        "{model} has no class weights. Pass sample_weight to fit, if fit accepts it, for instance "
        "from sklearn.utils.class_weight.compute_sample_weight('balanced', y)"
    ),
    "normalize": _SCALING,
    "standardize": _SCALING,
    "scale": _SCALING,
    "scaled": _SCALING,
    "n_jobs": "{model} has no parameter for threads. It uses all processors",
    "random_state": "{model} draws no random numbers, so that it needs no seed",
    "verbose": "{model} prints no messages",
    "dual": "{model} chooses between the primal and the dual problem itself",
    "multi_class": "{model} accepts several classes without this argument",
    "C": "{model} has the parameter alpha, which acts like 1 / C: a larger alpha is smoother",
    "alpha": "{model} has the parameter C, which acts like 1 / alpha: a smaller C is smoother",
    "fit_intercept": "{model} has no intercept that can be switched off",
    "fit_inverse_transform": "{model} has no inverse transform of this kind",
}
# Parameters of kernels.  If an estimator does not have them, they are set in the kernel.
_OF_KERNELS = {
    **dict.fromkeys(("length_scale", "lengthscale", "bandwidth", "sigma", "width"), "RBF({value})"),
    "gamma": "RBF.from_gamma({value})",
    "degree": "Polynomial(degree={value})",
    "coef0": "Polynomial(coef0={value})",
    "period": "Periodic({value})",
    "outputscale": "{value} * RBF()",
    "variance": "{value} * RBF()",
    "kpar": "RBF.from_gamma(...)",
}


def signature_order(names: list[str], n_positional: int) -> list[str]:
    """Return the names of parameters in the order of the signature of an estimator.

    The first `n_positional` names keep their positions, which are part of the API.  All others are
    keyword-only.
    """
    positional, others = names[:n_positional], names[n_positional:]
    first = [name for name in _FIRST if name in others]
    last = [name for name in _LAST if name in others]
    return [*positional, *first, *(n for n in others if n not in (*first, *last)), *last]


def estimator_argument_advice(cls: type, name: str, value: Any) -> str:
    """Return advice for an unknown keyword of an estimator, or "" if nothing is known about it.

    Parameters
    ----------
    cls : type
        The class of the estimator.
    name : str
        The keyword.
    value : object
        Its value, which appears in the advice.
    """
    known, shown = list(cls._get_param_names()), short_repr(value)  # type: ignore[attr-defined]
    if parameter := first_known(_SYNONYMS, name, known):
        return f"The parameter is called {parameter}: write {cls.__name__}({parameter}={shown})"
    if name in _OF_KERNELS and "kernel" in known:
        kernel = _OF_KERNELS[name].format(value=shown)
        return f"It is a parameter of the kernel: write {cls.__name__}(kernel={kernel})"
    is_inverse = {"C": "alpha", "alpha": "C"}.get(name)
    if is_inverse and is_inverse not in known:
        return ""
    if name == "probability" and (hasattr(cls, "predict_proba") or value is False):
        always = "always has" if hasattr(cls, "predict_proba") else "never has"
        return f"{cls.__name__} {always} predict_proba. Leave this argument out"
    return _WITHOUT_PARAMETER.get(name, "").format(model=cls.__name__)


def unknown_option_error(
    cls: type, method: str, known: set[str], params: Mapping[str, Any]
) -> TypeError:
    """Return the error for an unknown keyword of a method such as `predict`.

    Parameters
    ----------
    cls : type
        The class of the estimator.
    method : str
        The name of the method.
    known : set of str
        The names of its parameters.
    params : mapping
        The keywords that were passed, at least one of which is unknown.
    """
    name = next(name for name in params if name not in known)
    advice = _OPTIONS_OF_CLASS.get((cls.__name__, name), _OPTIONS.get(name, ""))
    similar = closest_name(name, known - {"self"})
    if not advice and similar:
        advice = f"Did you mean {similar}?"
    text = f"{cls.__name__}.{method}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{text}. {advice}" if advice else text)


_STD = (
    "This model has no predictive distribution. Use GaussianProcessRegressor or KernelRidge, whose "
    "predict has return_std"
)
# Keywords of methods of other estimators, and what to use instead.
_OPTIONS = {"return_std": _STD, "return_cov": _STD}
# Advice that differs for some classes.
_OPTIONS_OF_CLASS = {
    ("KernelRidgeCV", "return_std"): (
        "Fit the chosen model with KernelRidge, which has it: KernelRidge(model.alpha_, "
        "kernel=model.kernel_, fit_intercept=model.fit_intercept).fit(X, y)"
    )
}
