"""Class weights and sample weights equal repetitions of points, also for rules of a kernel."""

import inspect
import warnings

import numpy as np
import pytest
import zoo
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    SVC,
    Blocks,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    MultipleKernel,
    NuSVC,
    ParzenDensity,
    SparseKernelClassifier,
    tune,
)
from mercer.estimators._kernel_estimator import NamedKernelEstimator
from mercer.estimators.support_vector._svm_base import SupportVectorMachine
from mercer.kernels import RBF, RULES, BagOfWords, Laplacian, LocalRBF

rng = np.random.default_rng(0)
n = 36
X = rng.normal(size=(n, 2)) * [1.0, 3.0] + 5.0
LABELS = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 5.3, "up", "down")
LABELS[:4] = "else"
X[LABELS == "up"] += 2.0
NUMBERS = np.abs(np.sin(X[:, 0]) + 0.1 * rng.normal(size=n))
COUNTS = rng.integers(0, 4, size=n)
COUNTS[:2] = [1, 2]
ROWS = np.repeat(np.arange(n), COUNTS)
NEW = rng.normal(size=(9, 2)) + 5.0
CLASS_WEIGHT = {"up": 3, "down": 1, "else": 2}
OF_CLASS = np.array([CLASS_WEIGHT[label] for label in LABELS])

# Models in which weighted and repeated points differ: the order of points or a random start
# matters, or validation leaves out a point of weight 2 as a whole.
ONLY_THE_KERNEL = {
    "KernelKMeans",
    "KernelLogisticRegressionCV",
    "KernelRidgeCV",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
}


def is_weighted(model):
    return "sample_weight" in inspect.signature(type(model).fit).parameters


def has_rules(model):
    return isinstance(model, NamedKernelEstimator)


def targets(model):
    return LABELS if is_classifier(model) else NUMBERS


def values(model):
    for name in ("transform", "decision_function", "predict", "score_samples"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(NEW), dtype=float)
    raise TypeError(f"{model!r} has no values at new points")


def assert_same(model, other, functions=True):
    assert same_kernel(model.kernel_, other.kernel_)
    if functions:
        got, expected = values(model), values(other)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(got, expected, atol=1e-4 * scale)


def same_kernel(one, other):
    assert type(one) is type(other)
    for name, value in one.get_params(deep=False).items():
        expected = getattr(other, name)
        if hasattr(value, "get_params"):
            same_kernel(value, expected)
        elif not isinstance(value, str | tuple | dict) and value is not None:
            np.testing.assert_allclose(value, expected, rtol=1e-9)
        elif isinstance(value, dict):
            assert value == pytest.approx(expected, rel=1e-9)
    return True


@pytest.fixture(autouse=True)
def short_searches():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# One model of each class, because the rules do not depend on its other parameters.
WEIGHTED = list({type(m): m for m in reversed(zoo.ESTIMATORS) if is_weighted(m)}.values())
CLASSIFIERS = [m for m in zoo.ESTIMATORS if "class_weight" in m.get_params() and has_rules(m)]
NAMED = [m for m in WEIGHTED if has_rules(m)]
by_name = {"ids": lambda m: type(m).__name__ if hasattr(m, "fit") else None}


def with_rule(model, rule):
    names = [name for name in ("kernel", "kernel_y") if name in model.get_params()]
    reset = {"gamma": rule, **dict.fromkeys(names, "rbf")}
    if isinstance(model, SupportVectorMachine):
        reset |= {"solver": "auto", "tol": 1e-7}
    return clone(model).set_params(**reset)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", NAMED, **by_name)
def test_sample_weights_are_repetitions(model, rule):
    model, y = with_rule(model, rule), targets(model)
    weighted = clone(model).fit(X, y, sample_weight=COUNTS)
    repeated = clone(model).fit(X[ROWS], y[ROWS])
    assert_same(weighted, repeated, type(model).__name__ not in ONLY_THE_KERNEL)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", NAMED, **by_name)
def test_points_of_weight_0_are_absent(model, rule):
    model, y, present = with_rule(model, rule), targets(model), COUNTS > 0
    weighted = clone(model).fit(X, y, sample_weight=present.astype(float))
    absent = clone(model).fit(X[present], y[present])
    assert_same(weighted, absent, type(model).__name__ not in ONLY_THE_KERNEL)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", CLASSIFIERS, **by_name)
def test_class_weights_are_sample_weights_are_repetitions(model, rule):
    model = with_rule(model, rule).set_params(class_weight=None)
    rows, functions = np.repeat(np.arange(n), OF_CLASS), not isinstance(model, KernelPerceptron)
    by_class = clone(model).set_params(class_weight=CLASS_WEIGHT).fit(X, LABELS)
    repeated = clone(model).fit(X[rows], LABELS[rows])
    compared = functions and type(model).__name__ not in ONLY_THE_KERNEL
    assert_same(by_class, repeated, compared)
    if is_weighted(model):
        by_point = clone(model).fit(X, LABELS, sample_weight=OF_CLASS)
        assert_same(by_class, by_point, "CV" not in type(model).__name__)
        both = clone(model).set_params(class_weight=CLASS_WEIGHT)
        both.fit(X, LABELS, sample_weight=COUNTS)
        product = clone(model).fit(X, LABELS, sample_weight=COUNTS * OF_CLASS)
        assert_same(both, product, "CV" not in type(model).__name__)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("class_weight", [CLASS_WEIGHT, "balanced", None], ids=str)
@pytest.mark.parametrize("Model", [KernelLogisticRegression, SVC, NuSVC])
def test_classifiers_in_blocks_are_those_in_memory(Model, class_weight, rule):
    options = {"nu": 0.1} if Model is NuSVC else {}
    model = Model(
        solver="nystroem",
        landmarks="rpcholesky",
        gamma=rule,
        class_weight=class_weight,
        tol=1e-7,
        **options,
    )
    for weights in (None, COUNTS.astype(float)):
        memory = clone(model).fit(X, LABELS, sample_weight=weights)
        blocks = clone(model).fit(Blocks.of(X, rows=10), LABELS, sample_weight=weights)
        assert_same(blocks, memory)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(0.1, solver="nystroem", landmarks="rpcholesky"),
        KernelPCA(2, eigen_solver="nystroem", landmarks="rpcholesky"),
    ],
    **by_name,
)
def test_other_models_in_blocks_are_those_in_memory(model, rule):
    model = model.set_params(kernel="rbf", gamma=rule)
    repeated = clone(model).fit(Blocks.of(X[ROWS], rows=7), NUMBERS[ROWS])
    weighted = clone(model).fit(Blocks.of(X, rows=10), NUMBERS, sample_weight=COUNTS.astype(float))
    memory = clone(model).fit(X, NUMBERS, sample_weight=COUNTS)
    assert_same(weighted, repeated, functions=False)
    assert_same(weighted, memory, functions=False)
    np.testing.assert_allclose(np.abs(values(weighted)), np.abs(values(memory)), atol=1e-5)


def test_a_stream_of_labels_resolves_the_kernel_with_class_weights():
    model = KernelPerceptron(kernel="rbf", gamma="scale", class_weight=CLASS_WEIGHT)
    streamed = clone(model).partial_fit(X, LABELS, classes=list(CLASS_WEIGHT))
    assert streamed.kernel_ == clone(model).fit(X, LABELS).kernel_
    assert streamed.kernel_ == RBF("scale").resolve(X, OF_CLASS.astype(float))


@pytest.mark.parametrize(
    "Model",
    [SVC, KernelLogisticRegression, KernelMachineClassifier, SparseKernelClassifier],
)
def test_kernels_learned_from_targets_see_class_weights(Model):
    kernel = MultipleKernel((RBF("median"), Laplacian("scale")), "alignf")
    rows = np.repeat(np.arange(n), OF_CLASS)
    model = Model(kernel=kernel, class_weight=CLASS_WEIGHT).fit(X, LABELS)
    repeated = Model(kernel=kernel).fit(X[rows], LABELS[rows])
    np.testing.assert_allclose(model.kernel_(NEW), repeated.kernel_(NEW), rtol=1e-6)


@pytest.mark.parametrize("kernel", [RBF("median"), RBF("scott"), RBF("scale"), "RBF('silverman')"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_density_resolves_its_kernel_with_weights(kernel, in_blocks):
    model, given = ParzenDensity(kernel=kernel), Blocks.of(X, rows=10) if in_blocks else X
    weighted = clone(model).fit(given, sample_weight=COUNTS.astype(float))
    assert_same(weighted, clone(model).fit(X[ROWS]))
    present = COUNTS > 0
    assert_same(
        clone(model).fit(given, sample_weight=present.astype(float)), clone(model).fit(X[present])
    )


@pytest.mark.parametrize("objective", ["alignment", "gcv"])
def test_tune_starts_from_the_kernel_of_repeated_points(objective):
    model = KernelRidge(kernel=RBF("median"), fit_intercept=True)
    weighted = tune(model, X, NUMBERS, objective, sample_weight=COUNTS)
    repeated = tune(model, X[ROWS], NUMBERS[ROWS], objective)
    np.testing.assert_allclose(weighted.start[:1], repeated.start[:1], rtol=1e-9)
    found, expected = (tuned.estimator.kernel.length_scale for tuned in (weighted, repeated))
    assert found == pytest.approx(expected, rel=1e-3) or objective == "gcv"


@pytest.mark.parametrize("many", [10, 100])
def test_a_kernel_of_local_density_counts_repetitions(many):
    Z = rng.normal(size=(12 * many, 2))
    counts = rng.integers(0, 4, size=len(Z)).astype(float)
    weighted = LocalRBF(5).resolve(Z, counts)
    repeated = LocalRBF(5).resolve(np.repeat(Z, counts.astype(int), axis=0))
    np.testing.assert_array_equal(weighted.points, repeated.points)


def test_texts_in_a_model_count_as_often_as_their_weights():
    texts = ["a cat sat", "the dog sat", "a dog", "the bird sang", "birds sing", "a bird"] * 2
    y, w = np.array([0, 0, 0, 1, 1, 1] * 2), np.array([2, 1, 0, 1, 3, 1, 1, 1, 1, 0, 1, 2])
    rows = np.repeat(np.arange(12), w)
    kernel = BagOfWords(options={"min_df": 3, "max_df": 0.6, "token_pattern": r"\w+"})
    weighted = SVC(kernel=kernel).fit(texts, y, sample_weight=w)
    repeated = SVC(kernel=kernel).fit([texts[i] for i in rows], y[rows])
    assert weighted.kernel_.tfidf == pytest.approx(repeated.kernel_.tfidf)


@pytest.mark.parametrize("objective", ["loo", "likelihood"])
def test_a_process_does_not_ignore_weights_silently(objective):
    model = GaussianProcessRegressor(kernel=RBF(), alpha=0.1)
    with pytest.raises(ValueError, match=r"would ignore the sample_weight .* 36 points.*'gcv'"):
        tune(model, X, NUMBERS, objective, sample_weight=np.full(n, 2.0))
