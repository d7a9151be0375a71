"""Kernels as text: formatting, parsing, syntax errors, formulas and trees."""

import math
import pickle
import re
import time

import fuzz
import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.kernels
from mercer import KernelSyntaxError, parse_kernel
from mercer.kernels import (
    RBF,
    Bounded,
    Callable,
    Constant,
    Cosine,
    Exp,
    Features,
    Fixed,
    GaussianBasis,
    Jaccard,
    Kernel,
    Linear,
    Map,
    Matern,
    MeanOf,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scale,
    Select,
    Spectrum,
    Stretch,
    Sum,
    VertexHistogram,
    White,
)
from mercer.kernels.language._display import TEMPLATES

NAMES = vars(mercer.kernels) | {"inf": math.inf}
k, m, n = RBF(), Linear(), Cosine()

# ---------------------------------------------------------------------- formatting


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (2.0 * RBF() + White(0.1), "2.0*RBF(length_scale=1.0) + White(noise=0.1)"),
        (m + 1, "Linear() + 1.0"),
        (1 + m + 2, "1.0 + Linear() + 2.0"),
        (Sum((Constant(1.0), Constant(2.0), m)),
         "Constant(value=1.0) + Constant(value=2.0) + Linear()"),
        (Constant(2.0) * m, "Constant(value=2.0)*Linear()"),
        (Constant(2.0) ** 2, "Constant(value=2.0)**2"),
        ((m + n) * n, "(Linear() + Cosine())*Cosine()"),
        (m * n + n, "Linear()*Cosine() + Cosine()"),
        (2 * m * n, "2.0*Linear()*Cosine()"),
        (2 * (m * n), "2.0*(Linear()*Cosine())"),
        (m * (2 * n), "Linear()*(2.0*Cosine())"),
        (2 * (3 * m), "2.0*(3.0*Linear())"),
        (2 * m**2, "2.0*Linear()**2"),
        ((2 * m) ** 2, "(2.0*Linear())**2"),
        ((m**2) ** 3, "(Linear()**2)**3"),
        (m**2 * n, "Linear()**2*Cosine()"),
        (0 * m, "0.0*Linear()"),
        (Exp(m + n), "Exp(Linear() + Cosine())"),
        (Stretch(Normalized(m), 0.5), "Stretch(Normalized(Linear()), length_scale=0.5)"),
        (Fixed(m) * n, "Fixed(Linear())*Cosine()"),
        (Sum((m,)), "Sum(terms=(Linear(),))"),
        (Sum((m + n, m)), "Sum(terms=(Linear() + Cosine(), Linear()))"),
        (Product((m * n, m + n)), "Product(factors=(Linear()*Cosine(), Linear() + Cosine()))"),
        (2 * Product((m,)), "2.0*Product(factors=(Linear(),))"),
        (Scale(m, 2**60 + 1), f"Scale(Linear(), factor={2**60 + 1})"),
        (0.1 * RBF(1 / 3), "0.1*RBF(length_scale=0.3333333333333333)"),
    ],
)  # fmt: skip
def test_written_with_the_brackets_that_are_needed(kernel, text):
    assert repr(kernel) == text
    assert eval(text, NAMES) == parse_kernel(text) == kernel


numbers = st.floats(0, 1e300) | st.integers(0, 10**6)
positive = st.floats(1e-300, 1e300, allow_subnormal=False)
leaves = st.one_of(
    st.builds(RBF, positive | st.sampled_from(["median", "auto"])),
    st.builds(RBF, st.lists(positive, min_size=1, max_size=3).map(tuple)),
    st.builds(Matern, positive, st.sampled_from([0.5, 1.5, math.inf])),
    st.builds(Polynomial, st.integers(1, 9), numbers, positive),
    st.builds(Constant, numbers),
    st.builds(White, numbers),
    st.sampled_from([Linear(), Cosine(), Precomputed(), Jaccard()]),
    st.builds(Precomputed, st.just([[2.0, 0.1], [0.1, 1.0]])),
    st.builds(Features, st.builds(GaussianBasis, st.just([[0.0, -1e-3]]), positive)),
)


def nodes(inner):
    """Return composite kernels, made by constructors and by operators."""
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Sum, several),
        st.builds(Product, several),
        st.builds(Scale, inner, numbers),
        st.builds(Power, inner, st.integers(1, 5)),
        st.builds(lambda a, b: a + b, inner, inner | numbers),
        st.builds(lambda a, b: a * b, inner, inner | numbers),
        st.builds(Exp, inner) | st.builds(Normalized, inner) | st.builds(Fixed, inner),
        st.builds(Select, inner, st.sampled_from([0, [1, -2], slice(0, 2), "a'b\n", ["é", "\\"]])),
        st.builds(Bounded, inner, st.just((1e-3, 2.0))),
        st.builds(Stretch, inner, positive),
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(leaves, nodes, max_leaves=8))
def test_what_is_written_is_read_back(kernel):
    for again in (eval(repr(kernel), NAMES), parse_kernel(repr(kernel))):
        assert again == kernel
        assert hash(again) == hash(kernel)


HOLDS_FUNCTIONS = ("RankOne", "Features rough", "Map rough", "Callable", "Sklearn", "words")


@pytest.mark.parametrize("entry", **zoo.every())
def test_the_zoo_is_read_back(entry):
    text = repr(entry.kernel)
    if entry.id.startswith(HOLDS_FUNCTIONS):
        with pytest.raises(KernelSyntaxError, match="unknown name"):
            parse_kernel(text)
    elif entry.id.startswith("Conditioned"):  # a class of mercer.models.gp
        assert parse_kernel(text, {"Conditioned": type(entry.kernel)}) == entry.kernel
    else:
        assert parse_kernel(text) == entry.kernel


# ---------------------------------------------------------------------- parsing


def f(X):
    return X


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("0.5*RBF(length_scale=2) + Polynomial(degree=2)", 0.5 * RBF(2) + Polynomial(degree=2)),
        (" RBF ( 1.5 ) \n\t*\n( Linear( ) )", RBF(1.5) * Linear()),
        ("RBF([1, 2.0,])", RBF((1, 2.0))),
        ("RBF(.5) * 2 * 3", 3 * (2 * RBF(0.5))),
        ("2*RBF()*3*Linear()", (2 * RBF() * 3) * Linear()),
        ("(RBF() + Linear()) + (Cosine() + 1)", RBF() + Linear() + Cosine() + 1),
        ("RBF()*(Linear()*Cosine())", RBF() * Linear() * Cosine()),
        ("rbf", RBF("auto")),
        ("0.5*rbf(gamma=0.5) + poly(degree=2)", 0.5 * RBF() + Polynomial(2, 1, "auto")),
        ("linear + cosine()", Linear() + Cosine()),
        ("Matern(nu=inf)", Matern(nu=math.inf)),
        ("sigmoid(coef0=-1e-1)", mercer.kernels.Sigmoid("auto", -0.1)),
        ("Select(RBF(), slice(0, 2))", Select(RBF(), slice(0, 2))),
        ("Select(RBF(), ('a', \"b\"))", Select(RBF(), ["a", "b"])),
        ("Select(Spectrum(3), 'dna') + Select(RBF(), ['a'])",
         Select(Spectrum(3), "dna") + Select(RBF(), ["a"])),
        ("Mismatch(3, alphabet=b'AC\\x47T')", mercer.kernels.Mismatch(3, alphabet=b"ACGT")),
        ("BagOfWords(tfidf={'a': 1.5, 'b': 2}, options=None)",
         mercer.kernels.BagOfWords(tfidf={"a": 1.5, "b": 2})),
        ("Map(RBF(), PolynomialBasis(degree=3))", Map(RBF(), mercer.kernels.PolynomialBasis(3))),
        ("WeisfeilerLehman(2, True)", mercer.kernels.WeisfeilerLehman(2, True)),
    ],
)  # fmt: skip
def test_read(text, kernel):
    assert parse_kernel(text) == kernel


def test_names_of_the_callers():
    names = {"f": f, "Mine": type(Linear())}
    assert parse_kernel("Map(Mine(), f) + Callable(f)", names) == Map(Linear(), f) + Callable(f)
    with pytest.raises(KernelSyntaxError, match="f is not a kernel class and cannot be called"):
        parse_kernel("f(1)", names)


# ---------------------------------------------------------------------- syntax errors


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "", "the text is empty; write a kernel, such as RBF"),
        (" \n ", "", "the text is empty"),
        ("gauss", "gauss", "unknown name 'gauss'; did you mean RBF?"),
        ("0.5*gauss(2)", "gauss", "unknown name 'gauss'; did you mean RBF?"),
        ("RBF() + matern(1)", "matern", "did you mean Matern?"),
        ("squared_exponential()", "squared", "did you mean RBF?"),
        ("SE()", "SE", "did you mean RBF?"),
        ("ExpSineSquared()", "Exp", "did you mean Periodic?"),
        ("DotProduct()", "Dot", "did you mean Linear?"),
        ("Polynomal(2)", "Polynomal", "did you mean Polynomial?"),
        ("xyzzy()", "xyzzy", "unknown name 'xyzzy'; use the names of mercer.kernels"),
        ("RBF", "RBF", "RBF is a class; write RBF()"),
        ("RBF(lengthscale=2)", "length", "no parameter 'lengthscale'; did you mean length_scale?"),
        ("RBF(__class__=2)", "__class", "RBF has no parameter '__class__'"),
        ("rbf(degre=2)", "degre", "did you mean degree?"),
        ("RBF(1, 2)", "RBF", "RBF: too many positional arguments"),
        ("RBF(1, length_scale=2)", "RBF", "multiple values for argument 'length_scale'"),
        ("Matern(nu=1.5, nu=2.5)", "nu=2.5", "Matern got the argument nu twice"),
        ("Matern(nu=1.5, 2)", "2)", "a positional argument must not follow"),
        ("slice(stop=2)", "stop", "slice has no parameter 'stop'"),
        ("Linear() + Normalized()", "Norm", "missing a required argument: 'kernel'"),
        ("RBF(-1)", "RBF", "length_scale must be positive and finite, got -1"),
        ("RBF('mean')", "RBF", "must be positive numbers or one of"),
        ("Normalized(2)", "Norm", "Normalized needs a kernel, got 2"),
        ("-1*RBF()", "-1", "negative factor"),
        ("Linear()**0.5", "Linear", "not known to be infinitely divisible"),
        ("RBF()**-1", "RBF", "the exponent must be a positive number, got -1"),
        ("RBF()**2**3", "2**3", "repeated power: use brackets"),
        ("RBF()**Linear()", "Linear", "the exponent must be a number"),
        ("2**RBF()", "2", "** applies to a kernel, not to 2"),
        ("2*3*RBF()", "2", "* between two numbers"),
        ("1 + 2 + RBF()", "1", "+ between two numbers"),
        ("RBF() + [1]", "[1]", "+ combines kernels and numbers, not a list"),
        ("True*RBF()", "True", "* combines kernels and numbers, not True"),
        ("RBF() - Linear()", "- L", "k1 - k2 need not be a kernel"),
        ("-RBF()", "-", "a minus sign is allowed only before a number"),
        ("--1*RBF()", "--", "a minus sign is allowed only before a number"),
        ("RBF()/2", "/", "division is not supported: write 0.5*k"),
        ("RBF()^2", "^", "write powers with **"),
        ("RBF().theta", ".theta", "attributes are not supported"),
        ("RBF() @ Linear()", "@", "unexpected '@'"),
        ("RBF(2", "", "the ) that closes the bracket in column 4, but the text ends"),
        ("(RBF()", "", "the ) that closes the bracket in column 1, but the text ends"),
        ("RBF(2]", "]", "the ) that closes the bracket in column 4, but got ']'"),
        ("RBF(2))", ")", "expected an operator (+ * **) or the end, but got ')'"),
        ("RBF() Linear()", "Linear", "expected an operator (+ * **) or the end"),
        ("2 RBF()", "RBF", "expected an operator (+ * **) or the end"),
        ("RBF() +", "", "expected a kernel, a number or an opening bracket, but the text ends"),
        ("RBF(,)", ",", "expected a kernel, a number or an opening bracket"),
        ("RBF(x=)", ")", "expected a kernel, a number or an opening bracket, but got ')'"),
        ("BagOfWords(options={1})", "})", "expected a colon"),
        ("BagOfWords(options={[]: 1})", "{", "unhashable type: 'list'"),
        ("1e999*RBF()", "1e999", "1e999 overflows: the largest float is 1.8e308"),
        ("9" * 309 + "*RBF()", "9", "overflows"),
        ("RBF(1e-400)", "1e-400", "1e-400 underflows: the smallest float is 4.9e-324"),
        ("1" * 401 + "*RBF()", "1", "a number has 401 characters, but at most 400 are"),
        ("RBF('median)", "'", "this string is not closed"),
        (r"Select(RBF(), '\q')", r"\q", "unknown escape"),
        (r"Select(RBF(), '\U00110000')", r"\U", "unknown escape"),
        ("Mismatch(alphabet=b'é')", "b'", "bytes may contain only ASCII characters"),
        ("2.5", "2.5", "2.5 is not a kernel; write Constant(2.5)"),
        ("[RBF()]", "[", "a list is not a kernel"),
        ("None", "None", "None is not a kernel"),
        ("GaussianBasis([[1.0]])", "Gauss", "is not a kernel; write Features(GaussianBasis(...))"),
        ("Map(RBF(), tanh)", "tanh", "If it is a function, construct the kernel in Python, or"),
        ("Callable(open)", "open", "If it is a function, construct the kernel in Python"),
        ("__import__('os')", "__import__", "unknown name '__import__'"),
        ("RBF() + Spectrum(3)", "RBF", "RBF(length_scale=1.0) is a kernel on vectors, but Sp"),
        ("1 + a" + "b" * 200, "a", "unknown name 'abbbb"),
    ],
)  # fmt: skip
def test_refused(text, place, problem):
    with pytest.raises(KernelSyntaxError) as caught:
        parse_kernel(text)
    error = caught.value
    assert problem in str(error)
    assert isinstance(error, ValueError)
    assert error.text == text
    assert text[error.position :].startswith(place)
    assert (error.position < len(text)) == bool(place) or not text.strip()


def test_a_caret_stands_under_the_place():
    with pytest.raises(KernelSyntaxError) as caught:
        parse_kernel("RBF()\n  + gauss(2)\n  + Linear()")
    message = "unknown name 'gauss'; did you mean RBF?\n    + gauss(2)\n      ^"
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    with pytest.raises(KernelSyntaxError) as caught:
        parse_kernel("RBF() + " * 100 + "gauss" + " + RBF()" * 100)
    _, line, caret = str(caught.value).split("\n")
    assert len(line) < 130
    assert line[caret.index("^") :].startswith("gauss + RBF()")


def test_text_alone_is_read():
    with pytest.raises(TypeError, match="parse_kernel takes a string, got RBF"):
        parse_kernel(RBF())


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(" * 10**6 + "RBF()" + ")" * 10**6, "2000005 characters, but at most 100000 are"),
        ("(" * 40_000 + "RBF()" + ")" * 40_000, "brackets are nested more than 100 deep"),
        ("[" * 101, "brackets are nested more than 100 deep"),
        ("Exp(" * 101 + "RBF()" + ")" * 101, "brackets are nested more than 100 deep"),
        ("RBF()" + "*2" * 100, "kernels are nested more than 100 deep"),
        ("(2*" * 60 + "RBF()**2" + ")**2" * 60, "kernels are nested more than 100 deep"),
    ],
)  # fmt: skip
def test_what_is_too_long_or_too_deep_is_refused(text, problem):
    with pytest.raises(KernelSyntaxError, match=problem):
        parse_kernel(text)


def test_the_deepest_kernel_that_is_read_is_a_value():
    kernel = parse_kernel("Exp(" * 99 + "RBF()" + ")" * 99)
    assert parse_kernel(repr(kernel)) == kernel
    assert len({kernel, pickle.loads(pickle.dumps(kernel))}) == 1
    assert kernel._repr_html_().count("<li>") == 100


def test_long_sums_and_products_are_read_in_one_pass():
    start = time.perf_counter()
    assert len(parse_kernel(" + ".join(["rbf"] * 2000)).terms) == 2000
    assert len(parse_kernel("*".join(["rbf"] * 2000)).factors) == 2000
    assert time.perf_counter() - start < 5.0


@pytest.mark.parametrize("seed", range(4))
def test_survives_fuzzed_texts(seed):
    found = [fuzz.survives(text) for text in fuzz.texts(500, seed + 1)]
    kernels, seconds = zip(*found, strict=True)
    assert 0.02 < np.mean(kernels) < 0.98  # both outcomes occur
    assert max(seconds) < 10.0


# ---------------------------------------------------------------------- one type of points


@pytest.mark.parametrize(
    "combine", [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: Sum((a, b))]
)
@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        (RBF(), Spectrum(3), ("vectors", "strings")),
        (Normalized(Spectrum(2)), 2 * Linear(), ("strings", "vectors")),
        (VertexHistogram(), RBF(), ("graphs", "vectors")),
        (MeanOf(RBF()), RBF(), ("sets of points", "vectors")),
    ],
)  # fmt: skip
def test_no_point_is_of_two_kinds(combine, a, b, kinds):
    first, second = re.escape(str(a)), re.escape(str(b))
    text = rf"{first} is a kernel on {kinds[0]}, but {second} is a kernel on {kinds[1]}"
    with pytest.raises(ValueError, match=text):
        combine(a, b)


def test_kernels_of_any_points_join_all_others():
    for kernel in (RBF(), Spectrum(3), VertexHistogram(RBF()), MeanOf(RBF())):
        assert (kernel + White() + 1) * Callable(f) == Product((kernel + White() + 1, Callable(f)))
    assert Select(Spectrum(3), "dna") + Select(RBF(), ["a"]) + Map(RBF(), f) + Map(Spectrum(2), f)


# ---------------------------------------------------------------------- formulas and trees


def every_class(cls=Kernel):
    yield cls
    for below in cls.__subclasses__():
        yield from every_class(below)


@pytest.mark.parametrize("entry", **zoo.every())
def test_every_kernel_has_a_formula_and_a_tree(entry):
    text, page = entry.kernel._repr_latex_(), entry.kernel._repr_html_()
    assert text.startswith("$") and text.endswith("$") and text.count("$") == 2
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")
    assert not re.search(r"<\w+>", text)
    assert page.count("<ul") == page.count("</ul>")
    inside = [v for v in entry.kernel.get_params().values() if isinstance(v, Kernel)]
    assert page.count("<li>") == 1 + len(inside)


def test_templates_mention_fields():
    for cls, template in TEMPLATES.items():
        for name in re.findall(r"<(\w+)>", template):
            assert name in cls.__dataclass_fields__, cls


@pytest.mark.parametrize(
    ("kernel", "latex"),
    [
        (2 * RBF(0.5) + White(0.1),
         r"2\,\exp\left(-\tfrac{1}{2}\left\|\frac{x - z}{0.5}\right\|^2\right) + 0.1\,\delta_{xz}"),
        ((Linear() + 1e-7) ** 2, r"\left(x^\top z + 1 \cdot 10^{-7}\right)^{2}"),
        (3 * Fixed(Linear() + Cosine()),
         r"3\,\left(x^\top z + \frac{x^\top z}{\|x\|\,\|z\|}\right)"),
        (2 * mercer.kernels.Distance(), r"2\,\left(-\left\|\frac{x - z}{1}\right\|^{1}\right)"),
        (RBF((1, 2)),
         r"\exp\left(-\tfrac{1}{2}\left\|\frac{x - z}{\left(1, 2\right)}\right\|^2\right)"),
        (Matern(nu=np.inf) * Linear(),
         r"\operatorname{Matern}_{\text{length\_scale} = 1, \text{nu} = \infty}\left(x, z\right)"
         r" \cdot x^\top z"),
        (Select(Linear(), "a_$"),
         r"\operatorname{Select}_{\text{columns} = \text{a\_\$}}\left(x^\top z\right)"),
    ],
)  # fmt: skip
def test_formulas(kernel, latex):
    assert kernel._repr_latex_() == rf"$\displaystyle {latex}$"


def test_a_tree_is_text_alone():
    page = (2 * Select(Linear(), "<script>alert(1)</script>"))._repr_html_()
    assert "<script" not in page
    assert "<b>Scale</b> factor=2.0<ul" in page
    assert "<b>Select</b> columns=&#x27;&lt;script&gt;" in page
