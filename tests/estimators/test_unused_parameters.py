"""gamma, degree and coef0 belong to kernels given by name; otherwise they cause a warning."""

import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
import zoo
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF as TheirRBF

from mercer import SVC, KernelCCA, KernelPCA, KernelRidge, Nystroem, tune
from mercer.estimators._kernel_estimator import NamedKernelEstimator
from mercer.kernels import RBF, Laplacian, Matern, Polynomial, Precomputed

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 2))
y = np.arange(20) % 2
NAMED = list(
    {type(m): m for m in reversed(zoo.ESTIMATORS) if isinstance(m, NamedKernelEstimator)}.values()
)


def values_of(X, Z):
    return X @ Z.T


def given(model, kernel, **params):
    both = {"kernel_y": kernel} if "kernel_y" in model.get_params() else {}
    defaults = model._named_kernel_defaults()
    return clone(model).set_params(**{**defaults, "kernel": kernel, **both, **params})


@pytest.mark.parametrize(
    "kernel",
    [RBF(2.0), "RBF(2.0)", TheirRBF(), values_of],
    ids=["kernel", "text", "theirs", "function"],
)
@pytest.mark.parametrize("name", ["gamma", "degree", "coef0"])
@pytest.mark.parametrize("model", NAMED, ids=lambda m: type(m).__name__)
def test_every_estimator_warns_of_what_its_kernel_ignores(model, name, kernel):
    value = {"gamma": 0.25, "degree": 2, "coef0": 0.5}[name]
    target = y if is_classifier(model) else y.astype(float)
    candidate = given(model, kernel, **{name: value})
    if isinstance(model, Nystroem) and kernel is values_of:
        pytest.skip("Nystroem raises an error, see the test below")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with suppress(ValueError, TypeError):  # some estimators do not accept all of the kernels
            candidate.fit(X, target)
    texts = [str(w.message) for w in caught if w.category is UserWarning]
    pattern = rf"{name}={value}.*ignores it.*default"
    found = [text for text in texts if re.search(pattern, text, re.S)]
    assert found
    assert clone(candidate).get_params()[name] == value


@pytest.mark.parametrize("parameter", [{"gamma": 0.25}, {"degree": 2}, {"coef0": 0.5}], ids=str)
@pytest.mark.parametrize("model", [m for m in NAMED if isinstance(m, Nystroem)], ids=str)
def test_nystroem_accepts_no_parameters_for_a_function(model, parameter):
    with pytest.raises(ValueError, match="Don't pass gamma"):  # as in scikit-learn
        given(model, values_of, **parameter).fit(X, y)


@pytest.mark.parametrize(
    ("kernel", "params", "text"),
    [
        (RBF(2.0), {"gamma": 0.25}, r"SVC has gamma=0.25 and the kernel RBF\(length_scale=2.0\)"),
        (RBF(2.0), {"gamma": 0.25}, r"Write kernel=RBF.from_gamma\(0.25\), and leave gamma at its"),
        (RBF(), {"gamma": "median"}, r"from_gamma\('median'\).*its default, 'scale'"),
        (Laplacian(), {"gamma": 3}, r"Write kernel=Laplacian.from_gamma\(3\)"),
        (Polynomial(), {"degree": 2}, r"Write kernel=Polynomial\(degree=2\).*its default, 3"),
        (Polynomial(), {"coef0": 2.0}, r"Write kernel=Polynomial\(coef0=2.0\).*its default, 0.0"),
        (Matern() + RBF(), {"gamma": 0.25}, "Set the parameters of the kernel itself"),
        (TheirRBF(), {"gamma": 0.25}, "Set the parameters of the kernel itself"),
        (values_of, {"gamma": 0.25}, r"with kernel_params=\{'gamma': 0.25\}"),
        (RBF(), {"kernel_params": {"length_scale": 3.0}}, "kernel_params=.*ignores it"),
    ],
)
def test_the_message_says_what_to_write(kernel, params, text):
    with pytest.warns(UserWarning, match=text) as caught:
        model = SVC(kernel=kernel, **params).fit(X, y)
    assert {w.filename for w in caught} == {__file__}  # the warning points to the user's line
    plain = SVC(kernel=kernel).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_defaults_and_names_are_accepted():
    SVC(kernel=RBF(), gamma="scale", degree=3.0, coef0=0).fit(X, y)
    SVC(kernel=values_of, kernel_params={}).fit(X, y)
    # As in scikit-learn, so that one grid may contain several kernel names.
    SVC(kernel="linear", gamma=0.25).fit(X, y)
    SVC(kernel="precomputed", gamma=0.25).fit(X @ X.T, y)
    with pytest.warns(UserWarning, match=r"gamma=0.25 and the kernel Precomputed"):
        SVC(kernel=Precomputed(X @ X.T), gamma=0.25).fit(np.arange(20), y)


def test_one_name_of_two_views_is_enough():
    model = KernelCCA(1, kernel=RBF(2.0), kernel_y="rbf", gamma=0.125).fit(X, X**2)
    assert model.kernel_y_ == model.kernel_
    KernelCCA(1, kernel="rbf", kernel_y=RBF(), gamma=0.125).fit(X, X**2)


def test_tuned_models_leave_no_parameter_behind():
    target = np.sin(X[:, 0])
    found = tune(KernelRidge(kernel="rbf", gamma=0.7), X, target)
    assert found.estimator.gamma is None
    assert isinstance(found.estimator.fit(X, target).kernel_, RBF)
    found = tune(KernelRidge(kernel="poly", degree=2, coef0=0.5), X, target).estimator
    assert (found.degree, found.coef0, found.kernel.degree) == (3, 1, 2)


def test_models_that_choose_a_kernel_before_a_fit():
    with pytest.warns(UserWarning, match=r"gamma=0.25.*ignores it"):
        KernelPCA(kernel=RBF(), gamma=0.25).plan(X)
    with pytest.warns(UserWarning, match=r"degree=2.*ignores it"):
        Nystroem(kernel=RBF(), degree=2, n_components=3).fit(X)
