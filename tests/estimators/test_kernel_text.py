"""Kernels as strings, wherever a kernel can be given."""

import inspect

import numpy as np
import pandas as pd
import pytest
import zoo
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

import mercer
from mercer import SVC, KernelPCA, KernelRidge, KernelSyntaxError, Nystroem, gram, parse_kernel
from mercer.kernels import RBF, Linear, Precomputed

rng = np.random.default_rng(0)
X = rng.uniform(0.1, 1.0, size=(30, 2))
y = np.arange(30) % 2
TEXT = "0.5*RBF(length_scale=2) + Polynomial(degree=2)"

WITH_KERNEL = sorted(
    {type(e) for e in zoo.ESTIMATORS if "kernel" in inspect.signature(type(e)).parameters},
    key=lambda cls: cls.__name__,
)
SPECIAL = {"ParzenDensity": "RBF(length_scale=2)", "ExplicitFeatures": "Polynomial(2) + Linear()"}
SPECIAL |= {"RandomFeatures": "2*RBF(0.5)*Matern()", "GPLVM": "RBF() + White(0.1)"}
SPECIAL |= {"BayesianGPLVM": "2*RBF(0.5)"}
SPECIAL |= dict.fromkeys(("RFMClassifier", "RFMRegressor"), "Matern(nu=1.5)")
TARGETS = {"KernelCCA": X**2}  # a second view with two pairs of directions


@pytest.mark.filterwarnings("ignore:Cholesky|nu=0.5|n_components|the model explains")
@pytest.mark.parametrize("cls", WITH_KERNEL)
def test_every_estimator_takes_a_text(cls):
    text = SPECIAL.get(cls.__name__, TEXT)
    given, read = cls(kernel=text), cls(kernel=parse_kernel(text))
    assert clone(given).get_params()["kernel"] == text
    for model in (given, read):
        model.set_params(**{"optimizer": None} if "optimizer" in model.get_params() else {})
        model.fit(X, TARGETS.get(cls.__name__, y))
    assert given.kernel == text
    assert given.kernel_ == read.kernel_
    assert repr(given.kernel_)


@pytest.mark.parametrize("cls", WITH_KERNEL)
def test_every_estimator_points_at_a_mistake(cls):
    with pytest.raises(
        KernelSyntaxError, match=r"unknown name 'gauss'; did you mean RBF\?\n.*\n +\^"
    ):
        cls(kernel="2*gauss()").fit(X, y)


def test_names_are_names():
    kernel = KernelRidge(kernel="rbf", gamma=2.0).fit(X, y).expansion_.kernel
    assert kernel == RBF(0.5)
    kernel = KernelRidge(kernel="rbf()").fit(X, y).expansion_.kernel
    assert kernel == RBF("auto").resolve(X)
    with pytest.warns(UserWarning, match=r"gamma=2.0 and the kernel RBF.*which ignores it"):
        KernelRidge(kernel="rbf()", gamma=2.0).fit(X, y)


def test_a_search_over_texts():
    grid = {"kernel": ["linear", "RBF(0.5) + Linear()", "2*Matern(nu=2.5)"]}
    search = GridSearchCV(KernelRidge(alpha=0.1), grid, cv=3).fit(X, np.sin(9 * X[:, 0]))
    assert search.best_params_["kernel"] in grid["kernel"][1:]
    search = GridSearchCV(KernelRidge(), {"kernel": ["linear", "nope"]}, cv=3)
    with pytest.warns((FitFailedWarning, UserWarning)):
        search.fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]


def test_parameters_inside_a_text():
    model = KernelRidge(kernel="2*RBF()").set_params(kernel__factor=3.0)
    assert model.kernel == 3 * RBF()


def test_texts_for_points_of_any_kind():
    words = ["aab", "abab", "bbb", "abba"]
    model = SVC(kernel="Normalized(Spectrum(2))").fit(words, [0, 1, 0, 1])
    assert model.predict(words).tolist() == [0, 1, 0, 1]
    table = pd.DataFrame({"word": words, "size": [1.0, 2.0, 3.0, 4.0]})
    text = "Select(Spectrum(2), 'word') + Select(RBF(), ['size'])"
    assert KernelPCA(2, kernel=text).fit_transform(table).shape == (4, 2)


def test_precomputed_in_an_expression():
    K = Linear()(X)
    assert get_tags(KernelRidge(kernel="Precomputed()")).input_tags.pairwise
    assert not get_tags(KernelRidge(kernel="nope")).input_tags.pairwise  # the error comes in fit
    given, read = (KernelRidge(kernel=k).fit(K, y) for k in ("Precomputed()", Precomputed()))
    np.testing.assert_array_equal(given.predict(K), read.predict(K))
    with pytest.raises(ValueError, match="Don't pass gamma"):
        Nystroem(kernel="Precomputed()", gamma=1.0).fit(K)


def test_functions_that_take_kernels():
    k = parse_kernel(TEXT)
    np.testing.assert_array_equal(gram.gram(TEXT, X).to_array(), gram.gram(k, X).to_array())
    assert gram.gram("rbf", X).kernel == RBF("auto").resolve(X)
    assert mercer.mmd(X, X + 1, kernel=TEXT) == mercer.mmd(X, X + 1, kernel=k)
    assert mercer.two_sample_test(X, X + 1, kernel=TEXT, random_state=0).kernel == k
    assert mercer.hsic(X, X + 1, kernel=TEXT) == mercer.hsic(X, X + 1, kernel=k)
    with pytest.raises(KernelSyntaxError, match="did you mean RBF"):
        mercer.mmd(X, X, kernel="gauss")
