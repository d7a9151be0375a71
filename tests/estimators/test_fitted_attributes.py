"""Fitted attributes are declared once: fits, documentation and types agree."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import zoo
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import mercer
from mercer import KernelFisherDiscriminant, KernelKMeans, KernelRidge
from mercer.estimators._kernel_estimator import KernelEstimator, LandmarkMixin
from mercer.estimators._parameters import fitted_names, fitted_types

CLASSES = sorted({type(model) for model in zoo.ESTIMATORS}, key=lambda cls: cls.__name__)
VALIDATION = {"n_features_in_", "feature_names_in_"}  # set by scikit-learn
X = np.random.default_rng(0).uniform(0.1, 2.0, size=(40, 3))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 1.0


def by_name(model):
    return f"{type(model).__name__}-{zoo.ESTIMATORS.index(model)}"


@pytest.mark.parametrize("model", zoo.ESTIMATORS, ids=by_name)
def test_every_attribute_of_a_fitted_estimator_is_declared(model):
    model = clone(model)
    assert "fit" in dir(model)  # reads all properties, and must not raise an error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        y = (np.median(Y) < Y).astype(int) if is_classifier(model) else Y
        model.fit(X, y) if "y" in inspect.signature(model.fit).parameters else model.fit(X)
    found = vars(model).keys() - model.get_params(deep=False).keys() - VALIDATION
    assert found <= set(fitted_names(type(model)))
    assert found <= set(dir(model))


def documented(cls):
    """Return the names in the section "Attributes" of a docstring."""
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=\n\n|\Z)", inspect.cleandoc(cls.__doc__), re.M | re.S
    )
    heads = [line for line in section[1].splitlines() if not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(" : ")[0].split(",")}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_documentation_lists_the_public_fitted_attributes(cls):
    computed = {
        name
        for name in dir(cls)
        if name.endswith("_") and isinstance(inspect.getattr_static(cls, name), property)
    }
    public = {name for name in {*fitted_names(cls), *computed} if not name.startswith("_")}
    # `compress` documents `reduction_`
    assert documented(cls) - VALIDATION == public - {"reduction_"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_types_of_fitted_attributes_can_be_resolved(cls):
    assert fitted_types(cls).keys() == set(fitted_names(cls))


def test_a_fit_removes_the_attributes_of_an_earlier_one():
    y = np.median(Y) < Y
    model = KernelFisherDiscriminant().fit(X, y)
    assert hasattr(model, "leave_one_out_") and hasattr(model, "scores_")
    model.set_params(alpha=1.0, within="fit").fit(X, y)
    assert not hasattr(model, "leave_one_out_") and not hasattr(model, "scores_")
    ridge = KernelRidge().fit(X, Y).set_params(solver="nystroem", rank=5).fit(X, Y)
    assert not hasattr(ridge, "_places")


def test_a_failed_fit_restores_the_earlier_one():
    model = KernelKMeans(2).fit(X)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="init has 2 columns"):
        model.set_params(init=X[:2, :2]).fit(X)
    assert vars(model) == before | {"init": model.init}


def test_conversions_delete_what_refers_to_training_points():
    model = KernelRidge(kernel="poly", degree=2).fit(X, Y).conformalize(X, Y)
    assert set(fitted_names(KernelRidge, per_point=True)) <= vars(model).keys()
    small = mercer.to_primal(model)
    assert not set(fitted_names(KernelRidge, per_point=True)) & vars(small).keys()


def test_landmarks_come_before_kernels_in_the_order_of_bases():
    """Otherwise the rules of `KernelEstimator` for blocks hide those of `LandmarkMixin`."""
    classes = [getattr(mercer.estimators, name) for name in mercer.estimators.__all__]
    with_landmarks = [c for c in classes if isinstance(c, type) and issubclass(c, LandmarkMixin)]
    assert len(with_landmarks) > 10
    for cls in with_landmarks:
        bases = cls.__mro__
        assert bases.index(LandmarkMixin) < bases.index(KernelEstimator), cls.__name__


@pytest.mark.parametrize("name", ["KernelLogisticRegression", "KernelFisherDiscriminant"])
def test_exact_solvers_refuse_blocks(name):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = getattr(mercer, name)()
    with pytest.raises(ValueError, match="only with landmarks: set solver='nystroem'"):
        model.fit(mercer.Blocks.of(X, 10), X[:, 0] > 0)


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_failed_fit_restores_the_columns(warm_start):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    y = (X["a"] > 0).to_numpy()
    model = mercer.KernelLogisticRegression(warm_start=warm_start).fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X[["c", "a"]], np.zeros(30, dtype=int))
    assert model.n_features_in_ == 3 and list(model.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(model.predict(X), expected)


def test_a_failed_first_fit_leaves_the_model_unfitted():
    model = mercer.SVC()
    with pytest.raises(ValueError, match="class"):
        model.fit(np.ones((4, 2)), np.zeros(4))
    with pytest.raises(NotFittedError):
        model.predict(np.ones((1, 2)))
