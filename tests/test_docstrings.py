"""Docstrings of public names are complete: parameters, results, references and examples."""

import doctest
import enum
import importlib
import inspect
import re
import warnings

import pytest
from numpydoc.docscrape import NumpyDocString
from sklearn.base import BaseEstimator

from mercer.kernels import Kernel

PACKAGES = [
    *("mercer", "mercer.kernels", "mercer.kernels.validity", "mercer.gram", "mercer.solvers"),
    *("mercer.models.mean_embedding", "mercer.models.gp", "mercer.models.kernel_learning"),
    *("mercer.models.embedding", "mercer.plotting", "mercer.datasets", "mercer.testing"),
]


def public_names():
    """Return the public classes and functions by their full names, each of them once."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, f"{package}.{name}")
    return {name: thing for thing, name in found.items()}


PUBLIC = public_names()
# Packages and names without an algorithm or a formula with an author: contracts,
# containers, results, conversions, and operations that are their own definition.
NO_REFERENCES_IN = ("mercer.plotting.", "mercer.testing.")
NO_REFERENCES = {
    "mercer": """
        Blocks Comparison Explorer ExplicitFeatures Graphs Reduction compare explore load
        open_blocks parse_kernel save
        """,
    "mercer.datasets": "circles moons noisy_sine read_fasta read_lines",
    "mercer.gram": """
        DenseGram DistributedGram FeatureMap GramOperator KernelRows Landmarks RowsView
        TiledGram gram iter_grams
        """,
    "mercer.kernels": """
        Bounded Callable Constant Domain DotProduct Explicit Features Fixed Graph
        GraphKernel Kernel Linear Map PairwiseKernel Precomputed Prepared Properties Radial
        Select SklearnKernel Wrapper as_kernel finite_features from_sklearn node parameter
        """,
    "mercer.kernels.validity": "Counterexample Evidence GramCheck Validity",
    "mercer.models.embedding": "EmbeddingQuality",
    "mercer.models.gp": """
        ClassCovariance Estimate LatentState Objective Optimum RowBound choose_objective
        length_scales with_relevance
        """,
    "mercer.models.kernel_learning": "KernelWeights SearchLog",
    "mercer.models.mean_embedding": "IndependenceResult Summary TwoSampleResult",
    "mercer.solvers": """
        Certificate Clusters Cost CustomLoss DualSolution EigenPairs Factor FallbackSolver
        Loss Minimum OnlineLearner Option Plan ProblemKind Report Schedule Status
        TwoViewResult View certify choose residual_floor status_of
        """,
}


def parsed(thing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # numpydoc: unknown sections
        return NumpyDocString(inspect.getdoc(thing) or "")


def documented(section):
    """Return the names in a section that lists several names on a line, with their entries."""
    return {
        name.strip(): entry
        for entry in section
        for name in (entry.name.split(",") if entry.type or "," in entry.name else [entry.name])
    }


def parameters(function):
    """Return the names of the parameters; fields such as `_path` are not for users."""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        marks.get(p.kind, "") + p.name
        for p in inspect.signature(function).parameters.values()
        if p.name not in ("self", "cls") and not re.match("_[a-z]", p.name)
    ]


def methods(cls):
    """Return the public methods and properties of a class that mercer defines."""
    found = {}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        member = getattr(member, "__func__", member)  # of a class method or a static method
        code = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(code):
            continue
        if inspect.unwrap(code).__module__.startswith("mercer"):
            found[name] = member
    return found


def problems_of_parameters(thing, entries):
    problems = []
    wanted = parameters(thing)
    if missing := [name for name in wanted if name not in entries]:
        problems.append(f"without documentation: {', '.join(missing)}")
    if unknown := [name for name in entries if name not in wanted]:
        problems.append(f"documented, but not parameters: {', '.join(unknown)}")
    return problems + [
        f"{name} has no type or no description"
        for name, entry in entries.items()
        if not entry.type or not "".join(entry.desc).strip()
    ]


def problems_of_function(function):
    doc = parsed(function)
    problems = problems_of_parameters(function, documented(doc["Parameters"]))
    returns = inspect.signature(function).return_annotation
    if returns not in (None, "None", "NoReturn") and not doc["Returns"] and not doc["Yields"]:
        problems.append(f"no section Returns (it returns {returns})")
    return problems


def problems_of_class(cls):
    doc = parsed(cls)
    entries = documented(doc["Parameters"])
    if issubclass(cls, BaseException | enum.Enum) or inspect.isabstract(cls):
        problems = []
    elif not entries:  # the result of a function: its fields are attributes
        fields = documented(doc["Attributes"])
        problems = problems_of_parameters(
            cls, {k: v for k, v in fields.items() if k in parameters(cls)}
        )
    else:
        problems = problems_of_parameters(cls, entries)
    for name, member in methods(cls).items():
        if isinstance(member, property):
            found = [] if inspect.getdoc(member) else ["no docstring"]
        else:
            found = problems_of_function(member)
        problems += [
            f"{name} ({inspect.unwrap(getattr(member, 'fget', member)).__qualname__}): {problem}"
            for problem in found
        ]
    return problems


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_parameters_and_results_are_documented(name):
    thing = PUBLIC[name]
    assert parsed(thing)["Summary"], "no docstring"
    check = problems_of_class if inspect.isclass(thing) else problems_of_function
    assert "\n".join(check(thing)) == ""


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_an_example(name):
    text = inspect.getdoc(PUBLIC[name]) or ""
    examples = text.partition("Examples\n--------\n")[2]
    found = doctest.DocTestParser().get_examples(examples)  # test_docs.py runs them
    assert found, "no section Examples"
    assert any(example.want for example in found), "no output is shown"


def needs_references(name):
    package, _, short = name.rpartition(".")
    return (
        not name.startswith(NO_REFERENCES_IN)
        and short not in NO_REFERENCES.get(package, "").split()
        and not (inspect.isclass(PUBLIC[name]) and issubclass(PUBLIC[name], Exception))
    )


@pytest.mark.parametrize("name", sorted(filter(needs_references, PUBLIC)))
def test_every_algorithm_has_references(name):
    assert "".join(parsed(PUBLIC[name])["References"]).strip(), "no section References"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_see_also_names_things_that_exist(name):
    thing, doc = PUBLIC[name], parsed(PUBLIC[name])
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator | Kernel):
        assert doc["See Also"], "no section See Also"
    known = {path.split(".")[-1] for path in PUBLIC} | set(PUBLIC)
    for group, _ in doc["See Also"]:
        for other, _ in group:
            assert other in known or other.split(".")[0] in known or other.startswith("sklearn."), (
                other
            )
