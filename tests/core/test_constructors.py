"""Messages of constructors for unknown, misspelled and surplus arguments."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import mercer
from mercer import (
    SVC,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    ParzenDensity,
    ProbabilisticPCA,
    parse_kernel,
)
from mercer.kernels import (
    RBF,
    Bilinear,
    Constant,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Select,
    White,
)

ESTIMATORS = [
    cls
    for name in mercer.__all__
    if inspect.isclass(cls := getattr(mercer, name)) and issubclass(cls, BaseEstimator)
]
KERNELS = [
    cls
    for name in mercer.kernels.__all__
    if inspect.isclass(cls := getattr(mercer.kernels, name))
    and issubclass(cls, Kernel)
    and not inspect.isabstract(cls)
]
X = np.random.default_rng(0).normal(size=(8, 2))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SVC(probability=True), r"CalibratedClassifierCV\(SVC\(\.\.\.\), ensemble=False\)"),
        (lambda: SVC(probability=True), "KernelLogisticRegression, which has predict_proba"),
        (lambda: SVC(probability=False), "never has predict_proba. Leave this argument out"),
        (lambda: KernelLogisticRegression(probability=True), "always has predict_proba"),
        (lambda: KernelPCA(n_component=3), r"'n_component'\. Did you mean n_components\?"),
        (lambda: KernelPCA(nComponents=3), r"Did you mean n_components\?"),
        (lambda: KernelRidge(lam=3), r"called alpha: write KernelRidge\(alpha=3\)"),
        (lambda: KernelRidge(C=3), "alpha, which acts like 1 / C"),
        (lambda: SVC(alpha=3), "C, which acts like 1 / alpha"),
        (lambda: KernelRidgeCV(alpha=3), r"KernelRidgeCV\(alphas=3\)"),
        (lambda: KernelRidge(length_scale=3), r"KernelRidge\(kernel=RBF\(3\)\)"),
        (lambda: KernelRidge(class_weight="balanced"), "Pass sample_weight to fit"),
        (lambda: KernelKMeans(k=3), r"KernelKMeans\(n_clusters=3\)"),
        (lambda: ParzenDensity(h=3), r"ParzenDensity\(bandwidth=3\)"),
        (lambda: ParzenDensity(n_jobs=3), "no parameter for threads"),
        (lambda: SVC(seed=3), r"SVC\(random_state=3\)"),
        (lambda: SVC(standardize=True), r"make_pipeline\(StandardScaler\(\), SVC\(\.\.\.\)\)"),
        (lambda: ProbabilisticPCA(bogus=1), "The parameters of ProbabilisticPCA are: n_components"),
        (lambda: SVC(RBF()), "SVC.. takes no positional arguments, but 1 was given.*kernel=..."),
        (
            lambda: KernelPCA(2, RBF()),
            r"at most 1 positional argument \(n_components\), but 2 were given.*kernel=\.\.\.",
        ),
        (lambda: RBF(gamma=0.5), r"RBF.from_gamma\(0.5\), which is RBF\(length_scale=1.0\)"),
        (lambda: RBF(gamma=-1), r"write RBF.from_gamma\(-1\)$"),
        (lambda: Laplacian(gamma=0.5), r"which is Laplacian\(length_scale=2.0\)"),
        (lambda: RBF(sigma=2.0), r"write RBF\(length_scale=2.0\).*kernlab.*from_gamma\(2.0\)"),
        (lambda: RBF(lenght_scale=1), r"Did you mean length_scale\?"),
        (lambda: RBF(lengthscale=1), r"write RBF\(length_scale=1\)"),
        (lambda: RBF(bandwidth=1), r"write RBF\(length_scale=1\)"),
        (lambda: RBF(outputscale=2.0), r"write 2.0 \* RBF\(\.\.\.\)"),
        (lambda: RBF(active_dims=[0]), r"write Select\(RBF\(\.\.\.\), \[0\]\)"),
        (lambda: RBF(length_scale_bounds=(1, 2)), r"Bounded\(RBF\(\.\.\.\), \(low, high\)\)"),
        (lambda: RBF(ard_num_dims=2), r"one length scale per column.*RBF\(\[1.0, 2.0\]\)"),
        (lambda: Matern(smoothness=2.5), r"Matern\(nu=2.5\)"),
        (lambda: Periodic(periodicity=2), r"Periodic\(period=2\)"),
        (lambda: Polynomial(offset=2), r"Polynomial\(coef0=2\)"),
        (lambda: White(noise_level=2), r"White\(noise=2\)"),
        (lambda: Constant(constant_value=2), r"Constant\(value=2\)"),
        (lambda: Bilinear(matrix=np.eye(9)), r"Bilinear\(A=array\(.*\.\.\."),
        (lambda: RBF(foo=3), "The parameters of RBF are: length_scale"),
        (lambda: Linear(foo=3), "Linear has no parameters"),
        (lambda: RBF(1, 2), r"at most 1 positional argument \(length_scale\), but 2 were given$"),
        (lambda: Select(), "missing 1 required positional argument: 'kernel'"),
    ],
)
def test_messages(make, text):
    with pytest.raises(TypeError, match=text):
        make()


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_estimator_explains_unknown_arguments(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) got an unexpected keyword .*'bogus'"):
        cls(bogus=1)
    name = next(name for name in inspect.signature(cls).parameters if len(name) > 2)
    with pytest.raises(TypeError, match=rf"Did you mean {name}\?"):
        cls(**{name + "x": 1})


@pytest.mark.parametrize("cls", KERNELS, ids=lambda cls: cls.__name__)
def test_every_kernel_explains_unknown_arguments(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) got an unexpected keyword .*'bogus'"):
        cls(bogus=1)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_signatures_start_with_the_important_parameters(cls):
    parameters = inspect.signature(cls).parameters
    assert set(parameters) == set(cls().get_params(deep=False))
    resources = [n for n in parameters if n in ("random_state", "max_memory", "n_jobs", "verbose")]
    assert list(parameters)[len(parameters) - len(resources) :] == resources
    assert repr(clone(cls())) == repr(cls())


def test_an_error_inside_a_constructor_is_kept():
    with pytest.raises(TypeError, match="length_scale must be a number"):
        RBF(length_scale=True)


def test_subclasses_are_named():
    class Narrow(RBF):
        pass

    with pytest.raises(TypeError, match=r"Narrow\(\) got an unexpected"):
        Narrow(gamma=2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RBF(gamma=0.5)", r"no parameter 'gamma'.*write RBF\(length_scale=1.0\)"),
        ("RBF(lenght_scale=0.5)", "did you mean length_scale"),
        ("RBF(outputscale=2)", r"write 2 \* RBF"),
        ("RBF(foo=2)", "RBF has no parameter 'foo'"),
    ],
)
def test_kernel_expressions_get_the_same_advice(text, message):
    with pytest.raises(mercer.KernelSyntaxError, match=message):
        parse_kernel(text)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda k: k - Linear(), r"difference of RBF\(\.\.\.\) and Linear\(\.\.\.\).*Callable"),
        (lambda k: 1 - k, r"difference of 1 and RBF\(\.\.\.\)"),
        (lambda k: k - 1.0, r"difference of RBF\(\.\.\.\) and 1.0"),
        (lambda k: -k, "Factors must be positive"),
        (lambda k: k / 2, r"0.5 \* RBF\(\.\.\.\)"),
        (lambda k: k @ X, r"k\(X, Z\) @ v"),
    ],
)
def test_operators_that_kernels_do_not_have(make, text):
    with pytest.raises(TypeError, match=text):
        make(RBF())


def test_the_proposed_difference_is_a_kernel():
    k, other = 2.0 * RBF(), RBF()
    difference = mercer.kernels.Callable(lambda X, Z: k(X, Z) - other(X, Z), "matrix")
    assert isinstance(difference, Kernel)
    np.testing.assert_allclose(difference(X), RBF()(X))


@pytest.mark.parametrize("points", [X[0], X[:, 0].tolist(), (X[0], X[1])])
def test_one_dimensional_points(points):
    points = points if isinstance(points, tuple) else (points,)
    with pytest.raises(
        ValueError, match=r"RBF: Expected 2D array.*1D array.* with \d values.*k\(\["
    ):
        RBF()(*points)
    assert RBF()([X[0]], [X[1]])[0, 0] == RBF()(X[:1], X[1:2])[0, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.5", r"got '0.5'. It is a string; write the number without quotes, RBF\(0.5\)"),
        ("medain", "did you mean 'median'"),
        ("xyz", "got 'xyz'$"),
    ],
)
def test_strings_as_length_scales(value, text):
    with pytest.raises(ValueError, match=text):
        RBF(value)
