"""Laws of kernels, for the zoo and for composites of its entries."""

import inspect
import itertools
import pickle

import numpy as np
import pytest
import zoo
from sklearn.base import clone

import mercer.kernels
from mercer import NotDifferentiableError
from mercer.kernels import (
    RBF,
    Constant,
    Cosine,
    Exp,
    Fixed,
    Kernel,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Product,
    Scale,
    Sum,
    White,
)
from mercer.testing import check_kernel, check_pullback

every_kernel = pytest.mark.parametrize("entry", **zoo.every())

# ---------------------------------------------------------------------- the zoo


def public_kernels():
    """Return the concrete kernel classes of mercer.kernels."""
    classes = [getattr(mercer.kernels, name) for name in mercer.kernels.__all__]
    kernels = [c for c in classes if inspect.isclass(c) and issubclass(c, Kernel)]
    return {c for c in kernels if not c.__subclasses__() and not inspect.isabstract(c)}


def parts(kernel):
    """Yield the kernel and all kernels inside it."""
    yield kernel
    for _, child in kernel._children():
        yield from parts(child)


def test_every_public_kernel_is_in_the_zoo():
    present = {type(part) for entry in zoo.KERNELS for part in parts(entry.kernel)}
    assert {c.__name__ for c in public_kernels() - present} == set()


def test_every_node_of_the_algebra_occurs_twice_among_the_composites():
    nodes = [type(part) for entry in zoo.COMPOSITES for part in parts(entry.kernel)]
    for node in (Sum, Product, Scale, Power, Exp, Normalized, Fixed, White, Constant):
        assert nodes.count(node) >= 2, node


def test_ids_are_unique():
    ids = [entry.id for entry in zoo.KERNELS]
    assert sorted(ids) == sorted(set(ids))


@every_kernel
def test_laws(entry):
    for columns in [entry.columns] if entry.columns else [zoo.COLUMNS, zoo.WIDE]:
        X, Z = entry.points(11, columns), entry.points(5, columns, seed=1)
        check_kernel(
            entry.kernel,
            X,
            Z,
            psd=entry.psd,
            cpd_order=entry.cpd_order,
            differentiable=entry.differentiable,
        )


@pytest.mark.parametrize("entry", **zoo.every(differentiable=False))
def test_what_is_not_differentiable_says_so(entry):
    X = entry.points()
    W = np.ones((len(X), len(X)))
    refused = 0
    for derivative in (entry.kernel.pullback, entry.kernel.input_gradient):
        try:
            derivative(X, None, W)
        except NotDifferentiableError as error:
            refused += 1
            assert any(type(part).__name__ in str(error) for part in parts(entry.kernel))
    assert refused


@every_kernel
def test_pickle_and_eval(entry):
    names = vars(np) | vars(mercer.kernels) | vars(zoo)
    again = eval(repr(entry.kernel), names)
    assert again == entry.kernel
    assert hash(again) == hash(entry.kernel)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(entry.kernel, protocol))
        assert loaded == entry.kernel
    X = entry.points()
    np.testing.assert_array_equal(loaded(X), entry.kernel(X))
    assert clone(entry.kernel) == entry.kernel


@every_kernel
def test_read_only_points(entry):
    X = entry.points()
    if isinstance(X, np.ndarray):
        K = entry.kernel(X)
        X.setflags(write=False)
        np.testing.assert_array_equal(entry.kernel(X), K)
        entry.kernel.diag(X)


# ---------------------------------------------------------------------- all (k1 + k2) k3

# All leaves that accept the same points, and one composite of each class.  The points are positive,
# so that kernels on histograms can be included.
POSITIVE = np.random.default_rng(0).uniform(0.1, 2.0, size=(6, 3))


def takes_positive(entry):
    return entry.domain in ("vectors", "nonnegative") and entry.columns in (None, 3)


VECTORS = [e for e in zoo.LEAVES if takes_positive(e)]
VECTORS += {type(e.kernel): e for e in zoo.COMPOSITES if takes_positive(e)}.values()


PAIRS = [*itertools.combinations_with_replacement(VECTORS, 2)]


def triples(third, step):
    """Yield sums of two kernels with a third: one of `step` parts of all pairs for each third."""
    for a, b in PAIRS[VECTORS.index(third) % step :: step]:
        yield a.kernel, b.kernel, third.kernel


each_step = pytest.mark.parametrize("step", [23, pytest.param(5, marks=pytest.mark.long)])


@pytest.fixture(scope="module")
def blocks():
    return {entry.kernel: entry.kernel(POSITIVE) for entry in VECTORS}


def test_sums_commute(blocks):  # so that unordered pairs are enough below
    for a, b in PAIRS:
        np.testing.assert_allclose((a.kernel + b.kernel)(POSITIVE), (b.kernel + a.kernel)(POSITIVE))


@each_step
@pytest.mark.parametrize("third", VECTORS, ids=lambda entry: entry.id)
def test_a_sum_times_a_kernel_is_the_sum_of_the_blocks_times_the_block(third, step, blocks):
    for a, b, c in triples(third, step):
        composite = (a + b) * c
        error = np.abs(composite(POSITIVE) - (blocks[a] + blocks[b]) * blocks[c])
        scale = np.max((np.abs(blocks[a]) + np.abs(blocks[b])) * np.abs(blocks[c]))
        assert error.max() <= 1e-12 * scale, repr(composite)


@each_step
@pytest.mark.parametrize("third", VECTORS, ids=lambda entry: entry.id)
def test_a_sum_times_a_kernel_keeps_its_shape(third, step):
    for a, b, c in triples(third, step):
        composite = (a + b) * c
        terms = [t for k in (a, b) for t in (k.terms if type(k) is Sum else (k,))]
        factors = c.factors if type(c) is Product else (c,)
        assert composite == Product((Sum(tuple(terms)), *factors))


DIFFERENTIABLE = [e for e in VECTORS if e.differentiable]


@pytest.mark.parametrize("seed", range(4))
def test_pullbacks_of_sampled_triples(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        a, b, c = (DIFFERENTIABLE[i].kernel for i in rng.integers(len(DIFFERENTIABLE), size=3))
        check_pullback((a + b) * c, POSITIVE, random_state=seed)


# ---------------------------------------------------------------------- operators


def test_operators_flatten_by_exact_class():
    a, b, c = RBF(), Linear(), Matern()
    assert (a + b + c).terms == (a, b, c)
    assert (a + (b + c)).terms == (a, b, c)
    assert (a * b * c).factors == (a, b, c)
    assert (a * (b * c)).factors == (a, b, c)
    assert ((a + b) * c).factors == (a + b, c)
    assert (a * b + c).terms == (a * b, c)
    assert (a * (b + c)).factors == (a, b + c)


def test_constructors_keep_what_they_are_given():
    inner = Sum((RBF(), Linear()))
    assert Sum((inner, Matern())).terms == (inner, Matern())
    assert Scale(Scale(RBF(), 3.0), 2.0).kernel == Scale(RBF(), 3.0)


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_numbers(two):
    k = RBF()
    assert two * k == k * two == Scale(k, 2.0)
    assert k + two == Sum((k, Constant(2.0)))
    assert two + k == Sum((Constant(2.0), k))
    assert isinstance((two * k).factor, float)
    X = POSITIVE
    np.testing.assert_allclose((two * k)(X), 2 * k(X), rtol=1e-15)
    np.testing.assert_allclose((two + k)(X), 2 + k(X), rtol=1e-15)
    np.testing.assert_allclose((k + 1)(X), k(X) + 1, rtol=1e-15)
    np.testing.assert_allclose((k**two)(X), k(X) ** 2, rtol=1e-14)


def test_a_repr_is_that_of_the_python_number():
    assert repr(np.float64(2) * RBF()) == "2.0*RBF(length_scale=1.0)"
    assert repr(RBF(length_scale=np.float32(2))) == "RBF(length_scale=2.0)"


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: -1 * RBF(), ValueError, r"factor must be >= 0, got -1.0; with a negative factor"),
        (lambda: RBF() * np.float64(-0.5), ValueError, "negative factor"),
        (lambda: Scale(RBF(), -2), ValueError, "negative factor"),
        (lambda: Scale(RBF(), np.nan), ValueError, "factor must be non-negative and finite"),
        (lambda: Scale(RBF(), np.inf), ValueError, "factor must be non-negative and finite"),
        (lambda: Scale(RBF(), "2"), TypeError, "factor must be a number, got '2'"),
        (lambda: Scale(RBF(), True), TypeError, "factor must be a number, got True"),
        (lambda: Scale("RBF", 2.0), TypeError, "Scale needs a kernel, got 'RBF'"),
        (lambda: RBF() + (-1), ValueError, "value must be non-negative and finite, got -1.0"),
        (lambda: Linear() ** 0.5, ValueError, "Linear is not known to be infinitely divisible"),
        (lambda: (RBF() + 1) ** 1.5, ValueError, "Sum is not known to be infinitely divisible"),
        (lambda: RBF() ** -1, ValueError, "exponent must be a positive number, got -1"),
        (lambda: RBF() ** 0, ValueError, "exponent must be a positive number, got 0"),
        (lambda: RBF() ** np.nan, ValueError, "exponent must be a positive number, got nan"),
        (lambda: RBF() ** "2", ValueError, "exponent must be a positive number, got '2'"),
        (lambda: RBF() ** True, ValueError, "exponent must be a positive number, got True"),
        (lambda: RBF() + "Linear", TypeError, "unsupported operand"),
        (lambda: "Linear" + RBF(), TypeError, "kernel|operand|concatenate|sequence"),
        (lambda: RBF() * "Linear", TypeError, "kernel|operand|concatenate|sequence"),
        (lambda: RBF() + None, TypeError, "unsupported operand"),
        (lambda: RBF() * [1.0], TypeError, "kernel|operand|concatenate|sequence"),
        (lambda: np.ones(3) * RBF(), TypeError, "kernel|operand|concatenate|sequence"),
        (lambda: Sum(()), ValueError, "Sum needs a tuple of at least one kernel"),
        (lambda: Sum([RBF()]), ValueError, "Sum needs a tuple"),
        (lambda: Product((RBF(), 2)), TypeError, "Product needs a tuple of kernels, got 2"),
        (lambda: Exp(2), TypeError, "Exp needs a kernel, got 2"),
        (lambda: Normalized("x"), TypeError, "Normalized needs a kernel, got 'x'"),
        (lambda: Fixed(None), TypeError, "Fixed needs a kernel, got None"),
    ],
)
def test_refusals(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_subtraction_and_negation_do_not_exist():
    with pytest.raises(TypeError, match="the difference of RBF"):
        RBF() - Linear()
    with pytest.raises(TypeError, match="a negative multiple of a kernel"):
        -RBF()


# ---------------------------------------------------------------------- parameters


def test_nested_parameters():
    k = (RBF() + Matern()) * Linear() + White()
    k = k.set_params(terms__0__factors__0__terms__1__length_scale=3.0, terms__1__noise=0.2)
    assert k == (RBF() + Matern(length_scale=3.0)) * Linear() + White(0.2)
    k = ((RBF() + Matern()) * Linear()).set_params(factors__0__terms__1__length_scale=4.0)
    assert k == (RBF() + Matern(length_scale=4.0)) * Linear()


def test_set_params_does_not_change_the_kernel():
    k = 2 * RBF()
    assert k.set_params(kernel__length_scale=5.0) is not k
    assert k == 2 * RBF()


def test_set_params_can_replace_a_child_and_set_inside_it():
    k = RBF() + Linear()
    assert k.set_params(terms__1=Matern()) == RBF() + Matern()
    assert k.set_params(terms__1=Matern(), terms__1__nu=2.5) == RBF() + Matern(nu=2.5)
    assert k.set_params(terms=(Linear(), RBF()), terms__0=Matern()) == Matern() + RBF()
    assert (2 * RBF()).set_params(kernel=Matern(), kernel__nu=0.5) == 2 * Matern(nu=0.5)


def test_ten_terms_or_more_are_distinguished():
    k = Sum(tuple(RBF(float(i + 1)) for i in range(12)))
    changed = k.set_params(terms__1__length_scale=0.5, terms__11__length_scale=0.25)
    assert [t.length_scale for t in changed.terms[:2]] == [1.0, 0.5]
    assert changed.terms[11].length_scale == 0.25
    assert changed.terms[10].length_scale == 11.0


@pytest.mark.parametrize("name", ["gamma", "terms__2__length_scale", "terms__0__nu", "terms__x"])
def test_unknown_parameters_are_named(name):
    with pytest.raises(ValueError, match=r"Invalid parameter '\w+' for kernel \w+. Valid"):
        (RBF() + Linear()).set_params(**{name: 1.0})


def test_set_params_checks_values():
    with pytest.raises(ValueError, match="length_scale must be positive"):
        (2 * RBF()).set_params(kernel__length_scale=-1.0)


def test_theta_is_in_the_order_of_its_names():
    k = 2 * RBF((1.0, 3.0)) + Polynomial(coef0=0.0, gamma=0.5) + Fixed(Matern()) + White(0.1)
    assert k.theta_names == [
        "terms__0__kernel__length_scale[0]",
        "terms__0__kernel__length_scale[1]",
        "terms__0__factor",
        "terms__1__gamma",  # coef0 = 0 has no logarithm
        "terms__3__noise",
    ]
    np.testing.assert_allclose(np.exp(k.theta), [1.0, 3.0, 2.0, 0.5, 0.1], rtol=1e-15)
    assert Fixed(k).theta.size == 0


def test_equality_tells_kernels_apart():
    assert RBF() != Matern()
    assert RBF(2) == RBF(2.0)
    assert hash(RBF(2)) == hash(RBF(2.0))
    assert RBF((1.0, 2.0)) == RBF([1.0, 2.0]) == RBF(np.array([1.0, 2.0]))
    assert len({RBF((1.0, 2.0)), RBF([1.0, 2.0]), RBF(np.array([1.0, 2.0]))}) == 1
    assert RBF() + Linear() != Linear() + RBF()  # the order of terms is significant
    assert Sum((RBF(),)) != Product((RBF(),))
    assert RBF() != 1
    assert RBF(1.0) != RBF((1.0, 1.0))


@pytest.mark.parametrize(
    ("k", "text"),
    [
        ((RBF() + Linear()) * Cosine(), "(RBF(length_scale=1.0) + Linear())*Cosine()"),
        (1.23456789 * (RBF(0.1 + 0.2) + 1), "1.23457*(RBF(length_scale=0.3) + 1.0)"),
        (2 * Fixed(RBF() + Linear()), "2.0*(RBF(length_scale=1.0) + Linear())"),
        (RBF([*range(1, 14)]), "RBF(length_scale=[13 entries])"),
    ],
)  # fmt: skip
def test_str_is_mathematics(k, text):
    assert str(k) == text
