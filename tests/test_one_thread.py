"""Small problems use one thread: in fits, predictions, pre-images, tests and all other functions.

On a busy computer, a second thread makes thousands of small calls many times slower, because each
of them waits for a thread that has no processor.
"""

import inspect
import warnings

import numpy as np
import pytest
from one_thread import needs_counts, watching
from zoo import ESTIMATORS

import mercer
from mercer import KernelKMeans, KernelPCA, KernelRidge
from mercer.kernels import RBF, Linear

pytestmark = needs_counts
N, D = 240, 12  # large enough for OpenBLAS to split products between threads

rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(N, D)))  # nonnegative, because kernels on histograms need it
LABELS = (X[:, 0] > X[:, 1]).astype(float)
VALUES = 1.0 + np.sin(X[:, 0]) + 0.1 * rng.random(N)  # positive, for the Poisson loss

KINDS = {type(estimator): estimator for estimator in ESTIMATORS}
# Models with leave-one-out predictions in closed form; intervals of others need scores.
CLOSED_FORM = (KernelRidge, mercer.KernelRidgeCV, mercer.GaussianProcessRegressor)
SLOW = {"GPLVM", "BayesianGPLVM", "Autoencoder", "MetricMDS", "GaussianProcessClassifier"}

# Arguments of each public method, by its name.
TRIVIAL = {"set_params", "get_feature_names_out", "plan", "summary"}
ON_SCORES = {"inverse_transform", "decode", "preimage"}
CALLS = {
    "dual_basis": lambda m, X, y: m.dual_basis([0, 1]),
    "explore": lambda m, X, y: m.explore(X),
    "leave_one_out": lambda m, X, y: m.leave_one_out(),
    "log_marginal_likelihood": lambda m, X, y: m.log_marginal_likelihood(
        m.kernel_.theta, eval_gradient=True
    ),
    "merge": lambda m, X, y: None,  # needs two models fitted by partial_fit
    "path": lambda m, X, y: m.path(X, y, [0.1, 1.0]),
    "sample": lambda m, X, y: m.sample(20, random_state=0),
    "conformalize": lambda m, X, y: m.conformalize(X, y),
    "correlations": lambda m, X, y: m.correlations(X, y),
    "fit": lambda m, X, y: m.fit(X, y),
    "fit_predict": lambda m, X, y: m.fit_predict(X),
    "fit_transform": lambda m, X, y: m.fit_transform(X, y),
    "partial_fit": lambda m, X, y: m.partial_fit(X, y),
    "predict_interval": lambda m, X, y: (
        m if isinstance(m, CLOSED_FORM) else m.conformalize(X, y)
    ).predict_interval(X),
    "predict_set": lambda m, X, y: m.conformalize(X, y).predict_set(X),
    "score": lambda m, X, y: m.score(X, y),
}


def methods_of(kind):
    """Return the names of the public methods of a class that are defined in mercer."""
    ours = [vars(base) for base in kind.__mro__ if base.__module__.startswith("mercer.")]
    names = {name for names in ours for name in names if not name.startswith("_")}
    return sorted(n for n in names if inspect.isfunction(getattr(kind, n)) and n not in TRIVIAL)


def call(model, name, X, y):
    """Call a method of a fitted model."""
    if name.startswith("set_") and name.endswith("_request"):
        return None
    if name in ON_SCORES:
        options = {"method": "auto"} if isinstance(model, KernelPCA) else {}
        if name == "decode":
            options = {}
        return getattr(model, name)(model.transform(X), **options)
    if name == "denoise":
        return model.denoise(X, method="auto")
    return CALLS[name](model, X, y) if name in CALLS else getattr(model, name)(X)


def problem(kind):
    few = 60 if kind.__name__ in SLOW else N
    y = LABELS if "Classifier" in kind.__name__ or "SVC" in kind.__name__ else VALUES
    y = LABELS if kind.__name__ in ("KernelPerceptron", "KernelFisherDiscriminant") else y
    y = LABELS if kind.__name__.startswith("KernelLogistic") else y
    return X[:few], y[:few]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_method_of_a_small_model_uses_a_second_thread(kind, monkeypatch):
    # a default KernelKMeans has 100 restarts
    model = KernelKMeans(3) if kind is KernelKMeans else KINDS[kind]
    X, y = problem(kind)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fits that stop early
        model.fit(X, y)  # compile first
        for name in methods_of(kind):
            if not hasattr(model, name):  # not all losses have probabilities
                continue
            with watching(monkeypatch) as ran:
                call(model, name, X, y)
            if ran:
                found[name] = sorted(set(ran))
            if name.startswith(("fit", "partial_fit")):
                model.fit(X, y)
    assert not found


GRAM = RBF()(X)
PCA = KernelPCA(3, kernel="rbf").fit(X)
RIDGE = KernelRidge(kernel="rbf").fit(X, VALUES)
LINEAR = KernelRidge(kernel="linear").fit(X, VALUES)
LINEAR_PRIMAL = mercer.to_primal(LINEAR)

# Calls of every public function of `mercer` that computes something, on a small problem.
FUNCTIONS = {
    "accelerate": lambda: mercer.accelerate(RIDGE, X).predict(X),
    "alignment": lambda: mercer.alignment(RBF(), LABELS, X),
    "check_gram": lambda: mercer.check_gram(GRAM),
    "compare": lambda: mercer.compare(X[:80], models={"pca": PCA}),
    "compress": lambda: mercer.compress(RIDGE, 20, random_state=0),
    "embedding_quality": lambda: mercer.embedding_quality(X, X[:, :2]),
    "explore": lambda: mercer.explore(PCA, X),
    "herd": lambda: mercer.herd(X, 10),
    "hsic": lambda: mercer.hsic(X, X[:, :2]),
    "independence_test": lambda: mercer.independence_test(
        X, X[:, :2], n_permutations=99, random_state=0
    ),
    "mmd": lambda: mercer.mmd(X[:100], X[100:]),
    "primal_or_dual": lambda: mercer.primal_or_dual(Linear(), X),
    "search_kernels": lambda: mercer.search_kernels(X[:60], VALUES[:60], max_levels=1),
    "thin": lambda: mercer.thin(X, 10),
    "to_dual": lambda: mercer.to_dual(LINEAR_PRIMAL, X),
    "to_primal": lambda: mercer.to_primal(LINEAR),
    "tune": lambda: mercer.tune(KernelRidge(kernel="rbf"), X, VALUES),
    "two_sample_test": lambda: mercer.two_sample_test(X[:100], X[100:], random_state=0),
    "validity": lambda: mercer.validity(RBF() + Linear(), X),
}
NO_LINEAR_ALGEBRA = {"load", "open_blocks", "parse_kernel", "save"}


def test_every_public_function_is_on_the_list():
    public = {n for n in mercer.__all__ if inspect.isfunction(getattr(mercer, n))}
    assert public == set(FUNCTIONS) | NO_LINEAR_ALGEBRA


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_uses_a_second_thread_for_a_small_problem(name, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        FUNCTIONS[name]()  # compile first
        with watching(monkeypatch) as ran:
            FUNCTIONS[name]()
    assert not ran
