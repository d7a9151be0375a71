"""Kernels with sparse explicit features: hash codes, and the columns that two collections share."""

import subprocess
import sys
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercer import SVC, Graphs, KernelPCA
from mercer.kernels import (
    RBF,
    EdgeHistogram,
    Explicit,
    Jaccard,
    MinMax,
    Mismatch,
    Normalized,
    Spectrum,
    Subsequence,
    VertexHistogram,
    WeisfeilerLehman,
    node,
)
from mercer.kernels._sparse_features import FeatureTerms, hash_codes, splitmix64


@node
class Letters(Explicit):
    """k(s, t) = sum over letters of the products of their counts."""

    def _terms(self, X):
        owner = np.repeat(np.arange(len(X)), [len(s) for s in X])
        return FeatureTerms.counted(
            len(X), owner, hash_codes([c for s in X for c in s], "Letters", "them")
        )


WORDS = ["banana", "", "ban", "cab"]


def brute(X, Z):
    return np.array([[sum(x.count(c) * z.count(c) for c in set(x)) for z in Z] for x in X], float)


def test_values_features_and_diagonal():
    k, unseen = Letters(), ["xyzzy", "bax", ""]
    np.testing.assert_array_equal(k(WORDS), brute(WORDS, WORDS))
    np.testing.assert_array_equal(k(unseen, WORDS), brute(unseen, WORDS))
    np.testing.assert_array_equal(k(WORDS, unseen), brute(WORDS, unseen))
    np.testing.assert_array_equal(k.diag(unseen), np.diag(brute(unseen, unseen)))
    phi = k.features(WORDS)
    np.testing.assert_array_equal((phi @ phi.T).toarray(), brute(WORDS, WORDS))
    assert k.features(unseen, like=WORDS).shape == (3, phi.shape[1])
    # Letters that do not occur in the training strings count in the norm.
    assert Normalized(k)(["bx"], ["b"])[0, 0] == pytest.approx(np.sqrt(0.5))


def test_no_points_and_no_features():
    assert Letters()([], WORDS).shape == (0, 4)
    np.testing.assert_array_equal(Letters()([""], WORDS), np.zeros((1, 4)))
    np.testing.assert_array_equal(Letters()(WORDS, [""]), np.zeros((4, 1)))


def test_codes_are_the_same_in_every_process_and_for_equal_values():
    values = [3, "a", b"a", None, (1, "b"), frozenset({1, 2}), 2.5, -1]
    here = hash_codes(values, "", "")
    assert len(set(here.tolist())) == len(values)
    assert (
        hash_codes([3.0, np.int8(3), True, 1], "", "").tolist()
        == [here[0]] * 2 + [int(splitmix64(np.array([1]))[0])] * 2
    )
    np.testing.assert_array_equal(hash_codes(np.array([3, -1]), "", ""), here[[0, 7]])
    script = (
        "from mercer.kernels._sparse_features import hash_codes\n"
        "print(hash_codes([3, 'a', b'a', None, (1, 'b'), frozenset([2, 1]), 2.5, -1], '', '')"
        ".tolist())"
    )
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == str(here.tolist())


def test_a_value_without_a_code_is_named():
    with pytest.raises(TypeError, match=r"Letters: them must be .* index 1 is \[2\]"):
        hash_codes([1, [2]], "Letters", "them")


@pytest.mark.parametrize("points", [["ab", "b"], np.array(["ab", "b"]), [{"a"}, {"b"}]])
def test_vector_kernels_say_who_takes_structured_points(points):
    what = "sets" if isinstance(points[0], set) else "strings"
    for call in (RBF(), KernelPCA().fit, lambda X: SVC().fit(X, [0, 1])):
        with pytest.raises(
            ValueError, match=f"requires vectors, but X contains {what} .the first is"
        ):
            call(points)


# ---------------------------------------------------------------------- equality of values


class Text(str):
    """A subclass with another repr."""

    __slots__ = ()

    def __repr__(self):
        return "Text"


class Bag(frozenset):
    """A subclass of frozenset."""

    __slots__ = ()


Pair = namedtuple("Pair", ["left", "right"])
NUMBERS = (int, float, bool, complex, Fraction, Decimal, np.int64, np.uint64, np.float32)
NUMBERS += (np.float64, np.longdouble, np.complex128)


@np.errstate(over="ignore")  # overflow in float32
def forms(value):
    """Return values of other classes that are equal to this one in Python."""
    found = [value]
    if isinstance(value, int | float):
        for kind in NUMBERS:
            try:
                found.append(kind(value))
            except (OverflowError, ValueError):
                continue
        found += [-0.0] if value == 0 else []
    elif isinstance(value, str):
        found += [Text(value), np.str_(value)]
    elif isinstance(value, bytes):
        found.append(np.bytes_(value))
    elif isinstance(value, tuple):
        others = tuple(forms(v)[-1] for v in value)
        found += [others, Pair(*others)] if len(value) == 2 else [others]
    elif isinstance(value, frozenset):
        found += [Bag(value), frozenset(forms(v)[-1] for v in value)]
    return [form for form in found if form == value and hash(form) == hash(value)]


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.sampled_from([2.0**63, -(2.0**63), 2**64, 1e300, 0.5, 0.1, -0.0]),
    st.text(max_size=3),
    st.binary(max_size=3),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner), st.tuples(inner), st.frozensets(inner, max_size=3)
    ),
    max_leaves=5,
)


def is_symbol(value):
    return not isinstance(value, int | float) or value % 1 == 0


@settings(deadline=None)
@given(VALUES)
@example((1, 2))
@example("a\x00")
@example(2**63)
@example(2**63 + 2**11)
@example(float("inf"))
def test_equal_values_have_equal_codes_whatever_their_classes(value):
    equal = forms(value)
    codes = {hash_codes([form], "", "").item() for form in equal}
    assert len(codes) == 1
    assert set(hash_codes(equal, "", "").tolist()) == codes


@settings(deadline=None, max_examples=40)
@given(VALUES)
@example((1, 2))
@example("a\x00")
@example(2**63)
def test_kernels_compare_values_as_python_does(value):
    """Within one collection and across two: sets, bags, sequences and labels of graphs."""
    for form in forms(value):
        for kernel, wrap in (
            (Jaccard(), lambda v: {v}),
            (MinMax(), lambda v: {v: 1.0}),
            (Spectrum(1), lambda v: [v]),
            (Mismatch(1, 0, ("other", value)), lambda v: ("other", v)),
            (Normalized(Subsequence(1)), lambda v: [v]),
        ):
            if isinstance(wrap(value), list | tuple) and not is_symbol(value):
                continue
            within = kernel([wrap(value), wrap(form)])
            np.testing.assert_allclose(within[0, 0], within[0, 1], rtol=1e-12)
            across = kernel([wrap(value)], [wrap(form)])
            np.testing.assert_allclose(across[0, 0], within[0, 1], rtol=1e-12)
        if value is None:
            continue
        x, z = (
            Graphs.from_edges([[(0, 1)]], labels=[[v, "C"]], edge_labels=[[v]])
            for v in (value, form)
        )
        for kernel in (VertexHistogram(), EdgeHistogram(), WeisfeilerLehman(1)):
            assert kernel(x, z) == kernel(x) == kernel(x.joined(z))[0, 1]


def test_different_values_have_different_codes():
    values = [2**63, 2**63 + 1, -(2**63) - 1, 0.1, Fraction(1, 10), "1", b"1", 1, (1,), ((1,),)]
    values += [frozenset({1}), (), frozenset(), None, "None", float("inf"), Decimal("1e-400")]
    assert len(set(hash_codes(values, "", "").tolist())) == len(values)


@pytest.mark.parametrize(
    "value", [1j, Decimal("sNaN"), object(), [1], {1}], ids=lambda value: type(value).__name__
)
def test_values_without_a_code_are_named(value):
    with pytest.raises(TypeError, match=r"K: them must be numbers, strings or tuples of them, but"):
        hash_codes([1, value], "K", "them")


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(6, 4)),
        [[1, 2.5, 3]] * 6,
        [np.array([0.5, 1.0])] * 6,
        [[1.0, float("nan")]] * 6,
        [(np.float32(0.1), 1)] * 6,
    ],
    ids=["matrix", "lists", "arrays", "NaN", "float32"],
)
@pytest.mark.parametrize("kernel", [Spectrum(1), Mismatch(1, 0), Subsequence(1)], ids=str)
def test_numbers_that_are_not_integers_are_no_symbols(kernel, X):
    message = r"symbols of point 0 are compared by equality, but the one at index \d is .*, a float"
    with pytest.raises(TypeError, match=message) as error:
        SVC(kernel=kernel).fit(X, [0, 1] * 3)
    assert "use a kernel on vectors, such as RBF(), or round the numbers" in str(error.value)
