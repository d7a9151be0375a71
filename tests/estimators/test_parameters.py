"""Parameters are declared once: signature, constraints and documentation agree."""

import inspect
from itertools import pairwise
from typing import ClassVar

import pytest
from sklearn.base import BaseEstimator, clone

import mercer.estimators
from mercer import SVC, KernelMachineClassifier, KernelRidge

CLASSES = [
    model
    for name in mercer.estimators.__all__
    if inspect.isclass(model := getattr(mercer.estimators, name))
    and issubclass(model, BaseEstimator)
]


def sections(model):
    """Return the section titles of a docstring, and the first line of each parameter by name."""
    lines = model.__doc__.split("\n")
    titles = [a for a, b in pairwise(lines) if b and set(b) == {"-"}]
    start = lines.index("Parameters") + 2
    stop = lines.index("", start)
    heads = [line for line in lines[start:stop] if not line.startswith(" ")]
    return titles, {head.split(" : ")[0]: head for head in heads}


@pytest.mark.parametrize("model", CLASSES, ids=lambda model: model.__name__)
def test_each_parameter_has_words_constraints_and_its_default(model):
    titles, heads = sections(model)
    assert titles.count("Parameters") == 1
    assert titles.index("Parameters") < titles.index("Attributes")
    given = inspect.signature(model).parameters
    assert set(heads) == set(given) == set(model._parameter_constraints)
    for name, parameter in given.items():
        shown = repr(parameter.default).replace("'", '"')
        assert heads[name].endswith(f", default={shown}"), heads[name]
        assert getattr(model(), name) is parameter.default


def test_a_subclass_inherits_and_changes():
    assert SVC().kernel == "rbf" and KernelRidge().kernel == "linear"
    assert SVC._parameter_constraints["kernel"] == KernelRidge._parameter_constraints["kernel"]


def test_what_comes_by_place_and_what_by_name():
    model = KernelMachineClassifier("squared_hinge", 0.5, gamma=2.0)
    assert (model.loss, model.alpha, model.gamma) == ("squared_hinge", 0.5, 2.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match="positional argument"):
        SVC(1.0)


def test_learned_attributes_are_no_parameters():
    assert not hasattr(KernelRidge(), "expansion_")
    assert "expansion_" not in KernelRidge().get_params()


def test_a_value_that_is_not_a_default_is_checked():
    with pytest.raises(ValueError, match="'alpha' parameter of KernelRidge"):
        KernelRidge(alpha="much").fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_subclass_with_its_own_constructor_has_its_own_parameters():
    class Ours(KernelRidge):
        _parameter_constraints: ClassVar = {"strength": [float]}

        def __init__(self, strength=1):
            super().__init__(alpha=strength)
            self.strength = strength

    assert Ours().get_params() == {"strength": 1}
    with pytest.raises(ValueError, match="'strength' parameter of Ours"):
        Ours().fit([[0.0], [1.0]], [0.0, 1.0])
    assert Ours(0.5).fit([[0.0], [1.0]], [0.0, 1.0]).alpha == 0.5
