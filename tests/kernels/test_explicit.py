"""Kernels of sparse explicit features: codes, and the columns that two collections share."""

import subprocess
import sys

import numpy as np
import pytest

from mercer import SVC, KernelPCA
from mercer.kernels import RBF, Explicit, Normalized, node
from mercer.kernels._explicit import Terms, codes_of, mix


@node
class Letters(Explicit):
    """k(s, t) = sum over letters of the products of their counts."""

    def _terms(self, X):
        owner = np.repeat(np.arange(len(X)), [len(s) for s in X])
        return Terms.counted(len(X), owner, codes_of([c for s in X for c in s], "Letters", "them"))


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
    # letters that training never saw count in the norm
    assert Normalized(k)(["bx"], ["b"])[0, 0] == pytest.approx(np.sqrt(0.5))


def test_no_points_and_no_features():
    assert Letters()([], WORDS).shape == (0, 4)
    np.testing.assert_array_equal(Letters()([""], WORDS), np.zeros((1, 4)))
    np.testing.assert_array_equal(Letters()(WORDS, [""]), np.zeros((4, 1)))


def test_codes_are_the_same_in_every_process_and_for_equal_values():
    values = [3, "a", b"a", None, (1, "b"), frozenset({1, 2}), 2.5, -1]
    here = codes_of(values, "", "")
    assert len(set(here.tolist())) == len(values)
    assert (
        codes_of([3.0, np.int8(3), True, 1], "", "").tolist()
        == [here[0]] * 2 + [int(mix(np.array([1]))[0])] * 2
    )
    np.testing.assert_array_equal(codes_of(np.array([3, -1]), "", ""), here[[0, 7]])
    script = (
        "from mercer.kernels._explicit import codes_of\n"
        "print(codes_of([3, 'a', b'a', None, (1, 'b'), frozenset([2, 1]), 2.5, -1], '', '')"
        ".tolist())"
    )
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == str(here.tolist())


def test_a_value_without_a_code_is_named():
    with pytest.raises(TypeError, match=r"Letters: them must be .* number 1 is \[2\]"):
        codes_of([1, [2]], "Letters", "them")


@pytest.mark.parametrize("points", [["ab", "b"], np.array(["ab", "b"]), [{"a"}, {"b"}]])
def test_vector_kernels_say_who_takes_structured_points(points):
    what = "sets" if isinstance(points[0], set) else "strings"
    for call in (RBF(), KernelPCA().fit, lambda X: SVC().fit(X, [0, 1])):
        with pytest.raises(ValueError, match=f"takes vectors, but X holds {what}, the first"):
            call(points)
