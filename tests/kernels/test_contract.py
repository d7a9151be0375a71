"""The contract of kernel classes: the methods of `Kernel` that a subclass may override."""

import importlib
import inspect
import pkgutil
import re

import mercer
from mercer.kernels import Kernel

MAX_HOOKS = 10


def every_class():
    """Return all classes of kernels in the package, also those outside of `mercer.kernels`."""
    for module in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if module.name.startswith(("mercer.kernels", "mercer.models")):
            importlib.import_module(module.name)
    found, below = set(), [Kernel]
    while below:
        cls = below.pop()
        found.add(cls)
        below += cls.__subclasses__()
    # A kernel may also inherit from classes that are not kernels.
    parents = {parent for cls in found for parent in cls.__mro__} - set(Kernel.__mro__)
    return {cls for cls in found | parents if cls.__module__.startswith("mercer.")} - {Kernel}


def hooks():
    """Return {name: classes} of the members of `Kernel` that classes in the package override.

    Special methods and the fields of dataclasses are not counted.
    """
    members = {name for cls in Kernel.__mro__[:-1] for name in vars(cls)}
    overridden = {}
    for cls in every_class():
        for name in members & vars(cls).keys():
            if not name.startswith("__") and name not in Kernel.__dataclass_fields__:
                overridden.setdefault(name, []).append(cls.__name__)
    overridden.pop("_abc_impl", None)  # the cache of abc.ABC
    return overridden


def test_few_methods_are_overridden():
    assert len(hooks()) <= MAX_HOOKS, hooks()


def test_the_table_lists_the_methods_that_are_overridden():
    table = re.findall(r"^`(_\w+)\((.*?)\)`", inspect.getdoc(Kernel), re.MULTILINE)
    assert {name for name, _ in table} == set(hooks())
    for name, arguments in table:
        parameters = list(inspect.signature(getattr(Kernel, name)).parameters.values())[1:]
        assert arguments == ", ".join(str(p).partition(":")[0] for p in parameters), name
