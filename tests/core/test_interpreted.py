"""Compiled functions compute the same in the interpreter, as loops and with NumPy."""

import inspect
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mercer
import mercer.compile as ahead_of_time
from mercer._core import JIT_FUNCTIONS, JitFunction, bitcast_int, jit, resource_scope
from mercer._core._interpreted import as_entry, interpreted_copy, substitute_names
from mercer._core._jit import interpreted_form
from mercer.gram._kernel_rows import add_weighted_rows
from mercer.kernels import Gapped
from mercer.kernels.strings._word_kernels import _weighted_profiles

_SCALE = 0.5


@jit()
def _helper(x, y):
    return x / y


@jit()
def _arithmetic(single, numbers, small, words, scale):
    """Return results that differ between plain Python and compiled code."""
    total = 0.0
    for j in range(len(single)):
        total += single[j] * _SCALE
    division = _helper(scale, 0.0)
    undefined = 0.0 * np.inf
    words[0] = words[0] * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(2**63)
    overflow = np.exp(numbers[0] * 1e6)
    small[0] = small[0] + np.uint8(7)
    return total, division, undefined, overflow, bitcast_int(numbers[0]) << 52


def _inputs():
    single = np.array([0.1, 0.2, 1e-9], dtype=np.float32)
    words = np.array([2**63 + 11], dtype=np.uint64)
    return single, np.array([3.0, 4.0]), np.array([250], dtype=np.uint8), words, 2.0


def _loop_form(function):
    return as_entry(_interpreted(function._function))


def _interpreted(function):
    copy = interpreted_copy(function)
    substitute_names(copy, interpreted_form)
    return copy


def test_the_arithmetic_is_that_of_compiled_code():
    compiled, interpreted = _inputs(), _inputs()
    wanted = _arithmetic(*compiled)
    found = _loop_form(_arithmetic)(*interpreted)  # without warnings, which would be errors
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert [type(value) for value in found] == [type(value) for value in wanted]
    assert found[1] == np.inf and np.isnan(found[2]) and found[3] == np.inf
    for a, b in zip(interpreted[:-1], compiled[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert interpreted[2][0] == 1


def test_the_function_itself_is_unchanged():
    _loop_form(_arithmetic)
    assert type(_arithmetic._function.__globals__["_SCALE"]) is float
    assert _arithmetic._function.__globals__["_helper"] is _helper
    with pytest.raises(ZeroDivisionError):
        _helper._function(1.0, 0.0)


def test_closures_are_replaced():
    factor = 3.0

    def function(x):
        return _helper(x, factor)

    copy = _interpreted(function)
    assert copy(6.0) == 2.0 and type(copy.__closure__[-1].cell_contents) in (np.float64, type(copy))
    assert (copy.__name__, copy.__qualname__) == (function.__name__, function.__qualname__)


def test_functions_inside_a_function_are_converted():
    def outer(x):
        def inner(z, shift=1.0):
            return _helper(z, 0.0) + shift * _SCALE

        return inner(x)

    copy = _interpreted(outer)
    with np.errstate(all="ignore"):
        assert copy(1.0) == np.inf and type(copy(1.0)) is np.float64


def test_defaults_are_converted():
    def inverse(x=0.0):
        return 1.0 / x

    with np.errstate(all="ignore"):
        assert _interpreted(inverse)() == np.inf


@jit()
def _factorial(n):
    return 1 if n <= 1 else n * _factorial(n - 1)


@jit()
def _is_even(n):
    return True if n == 0 else _is_odd(n - 1)


@jit()
def _is_odd(n):
    return False if n == 0 else _is_even(n - 1)


def test_a_function_can_call_itself():
    assert _factorial(5) == as_entry(_factorial.interpreted())(5) == 120
    assert len(_factorial.signatures) == 1


def test_functions_that_call_each_other_are_refused():
    """numba would crash when it reads them from its cache."""
    with pytest.raises(RecursionError):
        _is_even(4)


def test_sums_of_bytes_do_not_overflow(monkeypatch):
    """The 1444 pairs of equal words are counted in bytes."""
    kernel, strings = Gapped(10, 5), ["A" * 47, "A" * 47]
    wanted = kernel(strings[:1], strings[1:])
    calls = []

    def interpreted(*args):
        calls.append(args)
        return _loop_form(_weighted_profiles)(*args)

    monkeypatch.setattr(_weighted_profiles, "_run", interpreted)
    np.testing.assert_array_equal(kernel(strings[:1], strings[1:]), wanted)
    assert len(calls) == 1


def test_numba_is_imported_by_two_modules_only():
    package = Path(mercer.__file__).parent
    importing = {
        path.name
        for path in package.rglob("*.py")
        if re.search(r"^\s*(?:import|from) (?:numba|llvmlite)\b", path.read_text("utf-8"), re.M)
    }
    assert importing == {"_jit.py", "_numba_hooks.py"}
    source = (package / "_core" / "_jit.py").read_text("utf-8")
    assert not re.search(r"numba\.core|llvmlite|dispatcher\._", source)


# --- All functions of the library.

# Working arrays, whose values after a call have no meaning.
SCRATCH = {"_add_pairs": {"row"}, "_rotate": {"phi"}, "_table_of_unequal_bits": {"counts"}}
# These iterate until the violation of the optimality conditions is below a tolerance of 5e-4, so
# that rounding errors may change the number of steps.
ITERATIVE = {"take_steps", "_minimize_pair", "_refine_programs"}
# This is only called with large data; `test_weighted_rows` compares it with a formula.
NOT_CALLED = {"mercer.gram._kernel_rows.add_weighted_rows"}


def test_weighted_rows():
    rng = np.random.default_rng(0)
    array, weights, slots = rng.random((20, 300)), rng.random(11), rng.permutation(20)[:11]
    start = rng.random(290)
    wanted = start + weights @ array[slots, :290]
    for form in (add_weighted_rows, as_entry(add_weighted_rows.interpreted())):
        out = start.copy()
        form(array, slots, weights, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-13)


def _copied(value):
    if isinstance(value, tuple):
        items = map(_copied, value)
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    return value.copy() if isinstance(value, np.ndarray) else value


def _arrays(value):
    if isinstance(value, tuple):
        return [array for item in value for array in _arrays(item)]
    return [] if value is None else [np.asarray(value)]


def _assert_same(found, wanted, rtol, what):
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b, err_msg=what)
            continue
        tolerance = 1e-6 if b.dtype == np.float32 else rtol
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=0.0)
        np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=what)
        assert np.abs(a[finite] - b[finite]).max(initial=0.0) <= tolerance * scale, what


@pytest.mark.long
def test_every_function_of_the_library(monkeypatch):
    """Compare the first calls of each function, with the arguments of `mercer.compile`."""
    compiled, calls = JitFunction.__call__, Counter()

    def call(self, *args):
        size = sum(array.size for array in _arrays(args))
        largest = 4e5 if self._numpy_form else 2000
        if calls[self.name] >= 3 or (calls[self.name] and size > largest):
            return compiled(self, *args)
        calls[self.name] += 1
        forms = [_loop_form(self), *([as_entry(self.interpreted())] if self._numpy_form else [])]
        copies = [_copied(args) for _ in forms]
        wanted = compiled(self, *args)
        name = self._function.__name__
        if name in ITERATIVE:
            assert type(forms[0](*copies[0])) is type(wanted)
            return wanted
        for form, copy in zip(forms, copies, strict=True):
            _assert_same(_arrays(form(*copy)), _arrays(wanted), 1e-12, self.name)
            parameters = inspect.signature(self._function).parameters
            for parameter, a, b in zip(parameters, copy, args, strict=True):
                if parameter not in SCRATCH.get(name, ()):
                    what = f"{self.name}, {parameter}, {form}"
                    _assert_same(_arrays(a), _arrays(b), 1e-12, what)
        return wanted

    monkeypatch.setattr(JitFunction, "__call__", call)
    with warnings.catch_warnings(), resource_scope(n_threads=1):
        for category in (UserWarning, RuntimeWarning):  # small, random data
            warnings.simplefilter("ignore", category)
        for _, task in ahead_of_time._tasks():
            task()
    called_by_others = {
        name
        for function in JIT_FUNCTIONS
        for name, value in function._function.__globals__.items()
        if isinstance(value, JitFunction) and name in function._function.__code__.co_names
    }
    missing = {
        function.name
        for function in JIT_FUNCTIONS
        if function.name.startswith("mercer.")
        and not calls[function.name]
        and function._function.__name__ not in called_by_others
    }
    assert missing <= NOT_CALLED
