"""Displays of results in notebooks, in IPython, and as one line."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from mercer import (
    SVC,
    KernelPCA,
    KernelRidge,
    check_gram,
    compare,
    compress,
    herd,
    independence_test,
    tune,
    two_sample_test,
)
from mercer._core import format_value, html_result
from mercer.kernels import RBF, Sigmoid

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)


def pca():
    return KernelPCA(2, kernel="rbf").fit(X)


RESULTS = {
    "report": lambda: pca().report_,
    "plan": lambda: KernelPCA(2, kernel="rbf").plan(X),
    "certificate": lambda: pca().report_.certificate["bounds"],
    "proved": lambda: RBF().validity(),
    "refuted": lambda: Sigmoid().validity(),
    "counterexample": lambda: Sigmoid().validity().counterexample,
    "gram check": lambda: check_gram(RBF()(X)),
    "two-sample test": lambda: two_sample_test(X[:20], X[20:]),
    "independence test": lambda: independence_test(X[:, 0], X[:, 1]),
    "reduction": lambda: compress(SVC().fit(X, y), 5).reduction_,
    "summary": lambda: herd(X, 3),
    "tuned": lambda: tune(KernelRidge(kernel="rbf"), X, X[:, 0]),
    "pre-images": lambda: pca().preimage(pca().transform(X[:2])),
}


class Balanced(HTMLParser):
    """Checks that all tags are closed in the right order, and collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.styles = [], "", []

    def handle_starttag(self, tag, attrs):
        if tag != "br":  # has no end tag
            self.open.append(tag)
        self.styles += [value for name, value in attrs if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


class Printer:
    """The part of IPython's printer that `_repr_pretty_` uses."""

    def __init__(self):
        self.output = ""

    def text(self, text):
        self.output += text


def parsed(html):
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_displays(name):
    result = RESULTS[name]()
    page = parsed(result._repr_html_())
    assert type(result).__name__ in page.text
    # No colour is fixed, so that the text is readable on light and on dark pages.
    assert not re.search(r"#[0-9a-f]{3}|rgb|white|black", " ".join(page.styles))
    assert all("color:inherit" in style for style in page.styles)
    assert len(result._repr_html_()) < 8000
    printer = Printer()
    result._repr_pretty_(printer, False)
    assert 0 < len(printer.output) < 3000
    assert "\n" not in repr(result)
    assert len(repr(result)) < 300


def test_texts():
    assert repr(RBF().validity()) == "<Validity: proved: a Mercer kernel>"
    assert repr(pca().report_).startswith("<Report: DenseEigen(), direct method")
    assert repr(KernelPCA(2).plan(X)).startswith("<Plan: Kernel PCA of 40 points, 2 components")
    assert str(pca().report_).startswith("solver     DenseEigen()\nstatus     direct method")
    page = parsed(two_sample_test(X[:20], X[20:])._repr_html_())
    assert "p" in page.text
    assert "permutation" in page.text


def test_text_is_escaped():
    html = html_result("<b>", [("a & b", "<script>")], "x < y")
    assert "<script>" not in html
    assert parsed(html).text == "<b>a & b<script>x < y"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (3, "3"),
        (True, "True"),
        (np.float64(2.0), "2"),
        (np.array([0.123456, 1.0]), "[0.1235 1.    ]"),
        (np.zeros((2, 2)), "array of shape (2, 2)"),
        (np.zeros(100), "array of shape (100,)"),
        ((0.0, 1.23456), "0, 1.235"),
        ("text", "text"),
    ],
)
def test_values(value, text):
    assert format_value(value) == text


def test_comparisons_have_a_table():
    result = compare(X, models={"one": KernelPCA(2, kernel="rbf"), "two": KernelPCA(2)})
    assert parsed(result._repr_html_()).text.count("one") >= 1
