"""scikit-learn's own judgement: its estimator checks, and its own tests with our class inside."""

import importlib.util
import sys

import pytest
import sklearn.kernel_ridge
import sklearn.tests.test_kernel_ridge as theirs
import zoo
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import estimators


@parametrize_with_checks(zoo.ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


def _with_our_class():
    """Load scikit-learn's test file for KernelRidge with the one import changed."""
    source = importlib.util.find_spec(theirs.__name__).origin
    with open(source, encoding="utf-8") as file:
        text = file.read()
    line = "from sklearn.kernel_ridge import KernelRidge"
    assert text.count(line) == 1
    namespace = {"__name__": "their_tests_of_our_class"}
    exec(compile(text.replace(line, "from mercer import KernelRidge"), source, "exec"), namespace)
    assert namespace["KernelRidge"] is mercer.KernelRidge
    assert namespace["KernelRidge"] is not sklearn.kernel_ridge.KernelRidge
    return namespace


NAMESPACE = _with_our_class()
TESTS = sorted(name for name in NAMESPACE if name.startswith("test_"))


def _cases():
    for name in TESTS:
        marks = getattr(NAMESPACE[name], "pytestmark", [])
        values = [v for mark in marks if mark.name == "parametrize" for v in mark.args[1]]
        for i, value in enumerate(values or [None]):
            yield pytest.param(name, value, id=f"{name}-{i}" if values else name)


@pytest.mark.parametrize(("name", "value"), list(_cases()))
def test_their_file(name, value):
    NAMESPACE[name](*([] if value is None else [value]))


def test_their_file_is_all_there():
    assert len(TESTS) >= 7
    assert set(TESTS) == {name for name in vars(theirs) if name.startswith("test_")}
    assert sys.modules[theirs.__name__].KernelRidge is sklearn.kernel_ridge.KernelRidge


def test_every_estimator_is_in_the_zoo():
    ours = {getattr(estimators, name) for name in estimators.__all__}
    assert ours == {type(e) for e in zoo.ESTIMATORS}
