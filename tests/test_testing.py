"""The checks of mercer.testing can fail: each law is violated once, and the error must name it."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Expansion
from mercer.gram import DenseGram
from mercer.kernels import (
    RBF,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    Prepared,
    RankOne,
    Select,
    White,
    node,
    parameter,
)
from mercer.solvers import Arpack, Cholesky, DenseEigen
from mercer.testing import (
    check_expansion,
    check_gram,
    check_input_gradient,
    check_kernel,
    check_pullback,
    check_solver,
)

X = np.random.default_rng(0).normal(size=(9, 3))
Z = np.random.default_rng(1).normal(size=(4, 3))


def breaks(law, check, *args, **options):
    """Require that the check fails, and that its message has the name of the law and a reason."""
    with pytest.raises(AssertionError, match=f"law '{law}' fails for .*: .+"):
        check(*args, **options)


# ---------------------------------------------------------------------- kernels


@node
class Good(Kernel):
    """k(x, z) = exp(-|x - z|^2 / (2 l^2)), implemented directly."""

    scale: float = parameter(1.0)

    def _prepare(self, X, like):
        return Prepared((np.asarray(X, dtype=float),))

    def _tile(self, P, Q, out):
        out[...] = self.block(P.arrays[0], Q.arrays[0])

    def block(self, A, B):
        return np.exp(-self.squares(A, B) / 2)

    def squares(self, A, B):
        return np.square((A[:, None] - B[None]) / self.scale).sum(axis=2)

    def _pullback(self, X, Z, W):
        Z = X if Z is None else Z
        return {"scale": np.sum(W * self.squares(X, Z) * self.block(X, Z))}

    def _input_gradient(self, X, Z, W):
        Z = X if Z is None else Z
        M = W * self.block(X, Z) / self.scale**2
        return M @ Z - M.sum(axis=1)[:, None] * X


@node
class Asymmetric(Good):
    def block(self, A, B):
        return super().block(A, B) + 1e-6 * A[:, :1]


@node
class WrongDiagonal(Good):
    def _diag(self, X):
        return np.full(len(X), 1.001)


@node
class WrongPullback(Good):
    def _pullback(self, X, Z, W):
        return {"scale": 1.001 * super()._pullback(X, Z, W)["scale"]}


@node
class WrongSlope(Good):
    def _input_gradient(self, X, Z, W):
        return 1.001 * super()._input_gradient(X, Z, W)


@node
class NoPullback(Good):
    _pullback = Kernel._pullback


@node
class NoGradient(Good):
    _input_gradient = Kernel._input_gradient


@node
class Indefinite(Good):
    def block(self, A, B):
        return super().block(A, B) - 0.5

    def _pullback(self, X, Z, W):
        Z = X if Z is None else Z
        return {"scale": np.sum(W * self.squares(X, Z) * Good.block(self, X, Z))}

    def _input_gradient(self, X, Z, W):
        Z = X if Z is None else Z
        M = W * Good.block(self, X, Z) / self.scale**2
        return M @ Z - M.sum(axis=1)[:, None] * X


@node
class Vandal(Good):
    def _diag(self, X):
        X *= 0.5
        return np.ones(len(X))


@node
class WeightVandal(Good):
    def _pullback(self, X, Z, W):
        value = super()._pullback(X, Z, W)
        W *= 2.0
        return value


@node
class ForgetsRows(Good):
    """A kernel whose tile is wrong if it is not the whole matrix."""

    def _tile(self, P, Q, out):
        super()._tile(P, Q, out)
        if 0 < len(P) < 9 and len(Q) < 9:
            out[0] += 0.01


@node
class OneShape(Good):
    def _diag(self, X):
        return np.ones(9)


@node
class Lossy(Good):
    def __repr__(self):
        return "Lossy()"


@node
class Unreadable(Good):
    def __repr__(self):
        return "<a kernel>"


@node
class AllEqual(Good):
    def __eq__(self, other):
        return isinstance(other, AllEqual)

    __hash__ = Kernel.__hash__


@node
class OwnHash(Good):
    def __hash__(self):
        return id(self)


@node
class Stubborn(Good):
    def set_params(self, **params):
        return Stubborn(scale=3.0)


@node
class Drifting(Good):
    def with_theta(self, theta):
        return type(self)(float(np.exp(theta[0]) * 1.001))


@node
class Named(Good):
    @property
    def theta_names(self):
        return ["scale", "scale"]


@node
class Single(Good):
    def _prepare(self, X, like):
        return super()._prepare(1.1 * X if X.dtype == np.float32 else X, like)


@node
class Restless(Good):
    def block(self, A, B):
        return super().block(A, B) * (1 + 1e-12 * np.random.default_rng().random())


@node
class Undefined(Good):
    def block(self, A, B):
        return np.where(self.squares(A, B) > 4.0, np.nan, super().block(A, B))


class Mutable(RBF):
    __setattr__ = object.__setattr__


def test_the_honest_kernel_passes():
    check_kernel(Good(1.2), X, Z)
    check_kernel(Good(1.2), X)


@pytest.mark.parametrize(
    ("law", "kernel"),
    [
        ("symmetry", Asymmetric(1.2)),
        ("diagonal", WrongDiagonal(1.2)),
        ("pullback", WrongPullback(1.2)),
        ("input gradient", WrongSlope(1.2)),
        ("differentiable", NoPullback(1.2)),
        ("differentiable", NoGradient(1.2)),
        ("positive semidefinite", Indefinite(1.2)),
        ("points are not modified", Vandal(1.2)),
        ("weights are not modified", WeightVandal(1.2)),
        ("tiles", ForgetsRows(1.2)),
        ("no points", OneShape(1.2)),
        ("repr", Lossy(1.2)),
        ("repr", Unreadable(1.2)),
        ("equality", AllEqual(1.2)),
        ("hash", OwnHash(1.2)),
        ("parameters", Stubborn(1.2)),
        ("pullback", Drifting(1.2)),
        ("theta", Named(1.2)),
        ("float32", Single(1.2)),
        ("determinism", Restless(1.2)),
        ("finite", Undefined(1.2)),
        ("value", Mutable()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Kernel) else value,
)
def test_broken_kernels(law, kernel):
    breaks(law, check_kernel, kernel, X.copy(), Z.copy())


def test_a_drifting_theta_is_found_without_derivatives():
    k = Drifting(1.2)
    assert k.with_theta(k.theta) != k
    with pytest.raises(AssertionError, match="law 'theta' fails"):
        check_kernel(DriftingRough(1.2), X, Z, differentiable=False)


@node
class DriftingRough(Drifting):
    _pullback = Kernel._pullback


def test_what_is_not_differentiable_may_be_declared():
    check_kernel(NoPullback(1.2), X, Z, differentiable=False)
    check_kernel(NoGradient(1.2), X, Z, differentiable=False)
    check_kernel(RankOne(np.ravel), X[:, :1], differentiable=False)


def test_derivatives_that_exist_are_checked_all_the_same():
    breaks("pullback", check_kernel, WrongPullback(1.2), X, Z, differentiable=False)


def test_definiteness_is_a_claim():
    check_kernel(Indefinite(1.2), X, Z, psd=False)
    check_kernel(Indefinite(1.2), X, Z, psd=False, cpd_order=1)
    breaks("conditionally positive definite of order 1", check_kernel, Negative(), X, psd=False,
           cpd_order=1)  # fmt: skip


@node
class Negative(Good):
    """The negative of a Mercer kernel, which is not conditionally positive definite."""

    def block(self, A, B):
        return -super().block(A, B)


def test_a_failure_shows_numbers():
    with pytest.raises(AssertionError) as error:
        check_pullback(WrongPullback(1.2), X, Z)
    text = str(error.value)
    assert "WrongPullback(scale=1.2)" in text
    assert "'scale'" in text
    for word in ("differ in 1 of 1 entries", "got", "expected", "allowed"):
        assert word in text


@pytest.mark.parametrize("second", [None, Z], ids=["k(X)", "k(X, Z)"])
def test_gradient_checks_alone(second):
    k = 2 * RBF(0.8) + Polynomial(degree=2, gamma=0.3) * Matern() + White(0.1)
    check_pullback(k, X, second, random_state=3)
    check_input_gradient(k, X, second, random_state=3)
    breaks("pullback", check_pullback, 2 * WrongPullback(1.2), X, second)
    breaks("input gradient", check_input_gradient, Linear() * WrongSlope(1.2), X, second)


def test_gradient_checks_take_single_precision_and_sparse_points():
    for points in (X.astype(np.float32), sp.csr_array(X)):
        check_pullback(RBF(), points)
        check_pullback(RBF(), points, Z)
        check_input_gradient(RBF(), points)
        check_input_gradient(RBF(), points, Z)


def test_gradient_checks_of_a_table_compare_no_differences():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    check_input_gradient(Select(RBF(), ["a", "b"]), frame)

    class Careless(Changed):
        def __call__(self, *points):
            return self.inner(*points)

    def overwrite(method):
        return lambda X, Z, W: W.fill(0.0)

    broken = Careless(Select(RBF(), ["a", "b"]), {"input_gradient": overwrite})
    breaks("weights are not modified", check_input_gradient, broken, frame)


def test_zero_points_are_no_reason_to_fail():
    check_pullback(RBF(), X[:0])
    check_input_gradient(RBF(), X[:0], Z)


# ---------------------------------------------------------------------- Grams


def held(**changes):
    """Return a DenseGram with some methods replaced."""
    K = DenseGram(RBF() + White(0.1), X)
    K.__class__ = type("Broken", (DenseGram,), changes)
    return K


def offset(method):
    """Return a method whose result is off by one."""

    def broken(self, *args):
        return getattr(DenseGram, method)(self, *args) + 1.0

    return broken


@pytest.mark.parametrize(
    ("law", "changes"),
    [
        ("matmul", {"_matmat": offset("_matmat")}),
        ("matmul", {"_matvec": offset("_matvec")}),
        ("adjoint", {"_adjoint": lambda self: DenseGram(Linear(), X)}),
        ("adjoint", {"_transpose": lambda self: DenseGram(Linear(), X)}),
        ("rows", {"rows": offset("rows")}),
        ("block", {"block": lambda self, i, j: DenseGram.block(self, i, j)[:, ::-1],
                   "rows": lambda self, i: self.array[i]}),
        ("diagonal", {"diagonal": offset("diagonal")}),
        ("pullback", {"pullback": lambda self, U, V: 2 * DenseGram.pullback(self, U, V)}),
        ("dtype", {"to_array": lambda self: self.array.astype(np.float32)}),
        ("shape", {"to_array": lambda self: self.array[:-1]}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)  # fmt: skip
def test_broken_grams(law, changes):
    breaks(law, check_gram, held(**changes))


def test_a_gram_of_other_values():
    check_gram(held(), (RBF() + White(0.1))(X))
    breaks("matrix", check_gram, held(), RBF()(X))


def test_a_gram_that_changes():
    state = np.random.default_rng(0)

    def restless(self, V):
        return DenseGram._matmat(self, V) * (1 + 1e-13 * state.random())

    breaks("determinism", check_gram, held(_matmat=restless))


def test_a_gram_without_derivatives_is_not_a_failure():
    check_gram(DenseGram(NoPullback(1.2), X), Good(1.2)(X))


# ---------------------------------------------------------------------- solvers


class Wrong:
    """A solver that changes the result of another solver."""

    def __init__(self, solver, **changes):
        self.solver, self.changes = solver, changes

    def __getattr__(self, verb):
        if verb not in ("factorize", "eigenpairs") or not hasattr(self.solver, verb):
            raise AttributeError(verb)

        def answer(*args):
            inner = getattr(self.solver, verb)(*args)
            return Changed(inner, self.changes)

        return answer


class Changed:
    def __init__(self, inner, changes):
        self.__dict__.update(inner=inner, changes=changes)

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        return self.changes[name](value) if name in self.changes else value


def times(factor):
    return lambda method: lambda *args: factor * method(*args)


@pytest.mark.parametrize(
    ("law", "solver"),
    [
        ("solve", Wrong(Cholesky(), solve=times(1.0001))),
        ("logdet", Wrong(Cholesky(), logdet=times(1.0001))),
        ("inverse diagonal", Wrong(Cholesky(), inverse_diagonal=times(1.0001))),
        ("report", Wrong(Cholesky(), report=lambda r: dataclasses.replace(r, residual=np.nan))),
        ("report", Wrong(Cholesky(), report=lambda r: None)),
        ("eigenpairs", Wrong(DenseEigen(), values=lambda v: v * 1.0001)),
        ("eigenpairs", Wrong(DenseEigen(), values=lambda v: v[::-1])),
        ("eigenpairs", Wrong(DenseEigen(), vectors=lambda v: v[:, :1])),
        ("orthonormality", Wrong(DenseEigen(), vectors=lambda v: v * 1.0001)),
        ("sign", Wrong(DenseEigen(), vectors=lambda v: -v)),
        ("residuals", Wrong(DenseEigen(), residuals=lambda r: r + 1.0)),
        ("determinism", Arpack()),
        ("methods", object()),
    ],
)
def test_broken_solvers(law, solver):
    breaks(law, check_solver, solver, DenseGram(RBF(), X), k=2)


def test_a_solver_of_other_eigenvalues():
    class Second:
        def eigenpairs(self, gram, k):
            pairs = DenseEigen().eigenpairs(gram, k + 1)
            return dataclasses.replace(
                pairs,
                values=pairs.values[1:],
                vectors=pairs.vectors[:, 1:],
                residuals=pairs.residuals[1:],
            )

    breaks("eigenvalues", check_solver, Second(), DenseGram(RBF(), X), k=2)


# ---------------------------------------------------------------------- expansions


def expansion(**changes):
    a = np.random.default_rng(2).normal(size=(len(Z), 2))
    return type("Broken", (Expansion,), changes)(RBF() + Linear(), Z, a)


def altered(method, change):
    def broken(self, *args):
        return change(getattr(Expansion, method)(self, *args))

    return broken


@pytest.mark.parametrize(
    ("law", "changes"),
    [
        ("representer", {"__call__": altered("__call__", lambda v: v * 1.0001)}),
        ("reproducing property", {"inner": altered("inner", lambda v: v * 1.0001)}),
        ("norm", {"norm": altered("norm", lambda v: v * 1.0001)}),
        ("distance", {"distance": altered("distance", lambda v: v + 0.1)}),
        ("linearity", {"__add__": lambda self, other: Expansion.__add__(self, 1.1 * other)}),
        ("linearity", {"__rmul__": lambda self, c: self}),
        ("linearity", {"__neg__": lambda self: self}),
        ("columns", {"__getitem__": lambda self, c: Expansion.__getitem__(self, 0)}),
        ("gradient", {"gradient": altered("gradient", lambda g: g * 1.0001)}),
        ("gradient", {"gradient": altered("gradient", lambda g: g[:, 0])}),
        ("sections", {"sections": classmethod(lambda cls, k, X: Expansion.sections(k, X) * 2.0)}),
        ("mean", {"mean": classmethod(lambda cls, k, X: Expansion.mean(k, X) * 2.0)}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
def test_broken_expansions(law, changes):
    check_expansion(expansion(), X)
    breaks(law, check_expansion, expansion(**changes), X)


def test_an_expansion_without_gradients():
    f = Expansion(NoGradient(1.2), Z, np.ones(len(Z)))
    check_expansion(f, X, differentiable=False)
    breaks("differentiable", check_expansion, f, X)


def test_an_expansion_of_sparse_points():
    f = Expansion(RBF(), sp.csr_array(Z), np.ones(len(Z)))
    check_expansion(f, sp.csr_array(X))
