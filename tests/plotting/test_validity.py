"""Figures of proofs and counterexamples."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer import plotting, validity
from mercer.kernels import RBF, Callable, Distance, Exp, Linear, Sigmoid


def axes():
    return Figure().subplots()


def test_a_tree_has_a_node_for_every_kernel():
    kernel = Exp(Distance()) + RBF() * Linear()
    ax = plotting.validity(kernel.validity(), axes())
    assert ax.get_title(loc="left") == "proved: a Mercer kernel"
    texts = [text.get_text() for text in ax.texts]
    names = [str(node) for _, node, _ in kernel.validity().rules()]
    assert all(map(str.startswith, names, (text.removesuffix("...") for text in texts[0::2])))
    assert texts[1].startswith("sum of kernels")
    assert len(ax.lines) == 6 + 5  # nodes, and edges to them
    unknown = (RBF() + Callable(np.dot)).validity([[0.0], [1.0]], n_grams=1)
    assert "no known rule" in [text.get_text() for text in plotting.validity(unknown, axes()).texts]


@pytest.mark.parametrize("columns", [1, 2])
def test_a_witness_shows_its_points(columns):
    verdict = validity(lambda X, Z: np.cos(3.0 * RBF()(X, Z)), np.ones((3, columns)))
    ax = plotting.validity(verdict, axes(), n_grid=20)
    assert f"refuted on {len(verdict.counterexample)} points: c^T K c = -" in ax.get_title()
    drawn = ax.collections[-1].get_offsets()
    np.testing.assert_allclose(drawn[:, 0], verdict.counterexample.points[:, 0])
    np.testing.assert_allclose(ax.collections[-1].get_array(), verdict.counterexample.coefficients)


def test_a_witness_of_words_has_bars():
    verdict = validity(lambda s, t: -float(len(s) * len(t)), ["a", "bb"])
    ax = plotting.validity(verdict, axes())
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(
        verdict.counterexample.coefficients
    )


def test_what_cannot_be_drawn():
    with pytest.raises(
        TypeError, match="not a Validity result - usually because a kernel was passed"
    ):
        plotting.validity(Sigmoid())


def test_a_witness_without_coefficients_is_written_down():
    ax = plotting.validity(validity(lambda x, z: float(x[0] - z[0])), axes())
    assert "k is not symmetric" in ax.texts[0].get_text()
