"""The base class of all kernels.

A kernel expression such as `2 * RBF() + Linear()` is a tree of nodes.  Each node is a kernel, and a
frozen dataclass whose fields are parameters, children and options (`_parameter_tree.py`).  `Kernel`
derives parameters, `theta`, equality and `repr` from the fields.  A subclass only implements its
mathematics, in the methods that the docstring of `Kernel` lists.

Operations that only a few classes support are functions that dispatch on the class: `linearise`
(`_evaluation.py`), float32 error bounds and distances without cancellation (`_rounding.py`),
pre-images by a formula (`_preimage_formulas.py`), formatting (`_dataclass.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache, cached_property, partial
from html import escape
from itertools import takewhile
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from .._core import (
    ENTRY_WORK,
    FormerAttribute,
    NotDifferentiableError,
    Points,
    entry_point,
    length,
    slices,
    take,
)
from ._dataclass import node as node
from ._evaluation import (
    KernelLinearisation,
    ParameterGradients,
    Prepared,
    linearisation,
    prepare_pair,
)
from ._parameter_tree import ParameterTree
from ._parameter_tree import option as option
from ._parameter_tree import parameter as parameter
from ._properties import Domain, Properties

if TYPE_CHECKING:
    from .validity import Validity

_ROWS_PER_TILE = 1024  # number of rows of k(X, Z) filled at a time, to limit memory
_DIAGONAL_BLOCK = 64  # block size for the diagonal; larger blocks waste work

_renamed = partial(FormerAttribute, since="0.1.0", removed_in="0.2.0")


@entry_point
@node
class Kernel(ParameterTree):
    """Base class of all kernels: symmetric functions k(x, z) of two points.

    Kernels are immutable.  They are combined with `+`, `*` and `**`, and evaluated by calling them:
    `k(X, Z)` returns the matrix with the entries k(x_i, z_j).  What a point is depends on the
    kernel: a row of an array of shape (n, d), a string, a set, a graph, ...; `domain.kind` names
    it.  The positive parameters are available as one vector of logarithms, `theta`, for parameter
    searches.

    A new kernel overrides some of the following methods.  P and Q are prepared points, and `inner`
    contains one value per child kernel.  Base classes such as `Radial`, `DotProduct`, `Explicit`
    and `Wrapper` implement most of them.

    =============================== ============================== =================================
    method                          default                        override it if
    =============================== ============================== =================================
    `_check()`                      nothing                        the checks of single fields (see
                                                                   `parameter`) are not sufficient:
                                                                   raise an error
    `_prepare(X, like)`             `Prepared((X,))`               points must be checked, or
                                                                   converted once for all tiles, in
                                                                   the same way as operand `like`
    `_tile(P, Q, out)`              abstract                       always: out <- k(P, Q)
    `_diag(X)`                      from small tiles               k(x_i, x_i) has a formula
    `_pullback(X, Z, W)`            NotDifferentiableError         there are parameters: return
                                                                   {path: sum_ij W_ij dk(x_i, z_j) /
                                                                   d log parameter}
    `_input_gradient(X, Z, W)`      NotDifferentiableError         k is differentiable in x: return
                                                                   sum_j W_ij dk(x_i, z_j) / dx_i
    `_properties(*inner)`           nothing is known               k is positive definite, bounded,
                                                                   ...: return a `Properties`
    `_domain(*inner)`               any points, or the points of   the kind of points matters:
                                    the children                   return a `Domain`
    `_inner_points(X)`              `(X, None)`                    children are evaluated on other
                                                                   points: return them, and the
                                                                   index of the point of X to which
                                                                   each belongs (None: in order)
    `_resolve(X, weights, targets)` `self`                         fields are computed from training
                                                                   points, or these are checked:
                                                                   return the new kernel
    =============================== ============================== =================================

    See Also
    --------
    Radial : Base class of kernels that depend on the distance of two vectors.
    DotProduct : Base class of kernels that depend on the inner product of two vectors.
    Explicit : Base class of kernels with sparse explicit features.
    PairwiseKernel : Base class of kernels that are computed pair by pair.
    Callable : Makes a kernel of a Python function, without a new class.
    as_kernel : Converts names, functions and scikit-learn kernels to kernels.

    Examples
    --------
    >>> from mercer.kernels import RBF, Kernel
    >>> k = 2.0 * RBF() + 1.0
    >>> isinstance(k, Kernel), k.theta_names
    (True, ['terms__0__kernel__length_scale', 'terms__0__factor', 'terms__1__value'])
    >>> k([[0.0], [1.0]]).round(3)
    array([[3.   , 2.213],
           [2.213, 3.   ]])
    """

    __array_ufunc__ = None  # None, so that numpy.float64(2) * k calls __rmul__

    # ------------------------------------------------------------------ evaluation

    def __call__(self, X: Points, Z: Points = None) -> np.ndarray:
        """Return the matrix with the entries k(x_i, z_j).

        Parameters
        ----------
        X : collection of n points
            The points x_i in a form that the kernel accepts, such as an array of shape (n, d).
        Z : collection of m points, optional
            The points z_j.  By default Z is X itself; the result is then the Gram matrix of X.

        Returns
        -------
        ndarray of shape (n, m)
            The kernel values, in float32 if all points are float32 and the kernel supports it, else
            in float64.
        """
        P, Q = prepare_pair(self, X, Z)
        out = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        for rows in slices(len(P), _ROWS_PER_TILE):
            self._tile(P[rows], Q, out[rows])
        return out

    def diag(self, X: Points) -> np.ndarray:
        """Return the diagonal of the Gram matrix, k(x_i, x_i), without computing the matrix.

        Parameters
        ----------
        X : collection of n points
            The points x_i in a form that the kernel accepts, such as an array of shape (n, d).

        Returns
        -------
        ndarray of shape (n,)
            The values k(x_i, x_i): the squared norms of the feature vectors, or the prior variances
            of a Gaussian process with this covariance.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear().diag([[1.0, 2.0], [3.0, 4.0]])
        array([ 5., 25.])
        """
        self._require_resolved()
        return self._diag(X)

    def prepare(self, X: Points, like: Prepared | None = None) -> Prepared:
        """Return the points in the form from which `tile` computes kernel values.

        Preparation validates and converts the points once, so that many tiles (blocks of the kernel
        matrix) can be computed from them.  Most users call the kernel, `k(X, Z)`, which does both.

        Parameters
        ----------
        X : collection of n points
            The points in a form that the kernel accepts, such as an array of shape (n, d).
        like : Prepared, optional
            The other operand of the tile, already prepared.  Both operands then share their frame;
            for example, both are centred at the same point.  Pass it whenever X is compared with
            points that were prepared before.

        Returns
        -------
        Prepared
            The n prepared points.  Slices and index arrays select rows from them.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import Linear
        >>> k = Linear()
        >>> P = k.prepare([[1.0], [2.0], [3.0]])
        >>> Q = k.prepare([[10.0]], like=P)
        >>> k.tile(P[1:], Q, np.empty((2, 1)))
        array([[20.],
               [30.]])
        """
        self._require_resolved()
        return self._prepare(X, like)

    def tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> np.ndarray:
        """Compute a tile, that is, a block of the kernel matrix, from prepared points.

        Parameters
        ----------
        P : Prepared
            The n points of the rows, from `prepare`.
        Q : Prepared
            The m points of the columns, prepared with `like=P`, or a selection of rows of P.
        out : ndarray of shape (n, m)
            The array that receives the kernel values, of dtype float64, or float32 if both operands
            have this dtype.

        Returns
        -------
        ndarray of shape (n, m)
            The array `out`, which contains the values k(p_i, q_j).
        """
        self._tile(P, Q, out)
        return out

    def pullback(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        """Return the gradient of a weighted sum of kernel values with respect to `theta`.

            g = sum_ij W_ij dk(x_i, z_j) / d theta

        If W is the derivative of a loss with respect to the kernel matrix, g is the derivative of
        the loss with respect to the logarithms of the parameters.  This is reverse-mode
        differentiation: the weights are propagated through the kernel expression, so that the (n,
        m, p) array of all derivatives is never formed.

        Parameters
        ----------
        X : collection of n points
            The points x_i in a form that the kernel accepts, such as an array of shape (n, d).
        Z : collection of m points, or None
            The points z_j.  None means X itself.
        W : array-like of shape (n, m)
            The weight of each kernel value.

        Returns
        -------
        ndarray of shape (p,)
            One derivative per entry of `theta`, in the order of `theta_names`.  It is empty if the
            kernel has no free parameters.

        Raises
        ------
        NotDifferentiableError
            If the kernel has parameters without a derivative; wrap it as `Fixed(...)` to exclude
            them.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import RBF
        >>> k, X = 3.0 * RBF(), [[0.0], [1.0]]
        >>> k.theta_names
        ['kernel__length_scale', 'factor']
        >>> k.pullback(X, None, np.ones((2, 2))).round(4)  # the second entry is the sum of k(X)
        array([3.6392, 9.6392])
        """
        if not self._n_free_parameters:
            return np.zeros(0)
        W = self._check_weights(X, Z, W)
        gradient = self._pullback(X, Z, W)
        return np.concatenate([np.ravel(gradient[path]) for path, _ in self._parts])

    def linearise(self, X: Points, Z: Points = None) -> KernelLinearisation:
        """Return the matrix k(X, Z) together with its derivatives with respect to `theta`.

        Optimisers use it if they need both products with the matrix and with its derivatives at the
        same parameters, because intermediate results such as distances are then shared.

        Parameters
        ----------
        X : collection of n points
            The points x_i in a form that the kernel accepts, such as an array of shape (n, d).
        Z : collection of m points, optional
            The points z_j.  None means X itself.

        Returns
        -------
        KernelLinearisation
            An object with the attribute `values`, the matrix K of shape (n, m), and these methods
            for p parameters: `pullback(W)`, the gradient of shape (p,), as in `Kernel.pullback`;
            `products(V)`, the product K V of shape (n, q) for V of shape (m, q); and `tangents(V)`,
            the products (dK / d theta) V of shape (p, n, q).

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import RBF
        >>> linearised = RBF().linearise([[0.0], [1.0]])
        >>> linearised.products(np.ones((2, 1))).round(4)
        array([[1.6065],
               [1.6065]])
        >>> linearised.tangents(np.ones((2, 1))).shape
        (1, 2, 1)
        """
        self._require_resolved()
        return linearisation(self, X, Z)

    def input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        """Return the gradient of weighted sums of kernel values with respect to the points.

            g_i = sum_j W_ij dk(x_i, z_j) / dx_i

        It is the gradient of functions f(x) = sum_j c_j k(x, z_j), and is used to optimise points,
        for example pre-images and inducing points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points x_i at which the gradient is computed.
        Z : array-like of shape (m, d), or None
            The points z_j.  None means X itself; even then, the derivative is the one with respect
            to the first argument only.
        W : array-like of shape (n, m)
            The weight of each kernel value.

        Returns
        -------
        ndarray of shape (n, d)
            One gradient per point of X.  If k is not differentiable at x_i = z_j (`Laplacian`,
            `Matern(nu=0.5)`, ...), such a pair contributes 0, the midpoint of its subgradients.

        Raises
        ------
        NotDifferentiableError
            If the kernel has no derivative with respect to its points.

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> Polynomial(degree=2, coef0=0.0).input_gradient([[3.0]], [[1.0], [2.0]], [[1.0, 1.0]])
        array([[30.]])
        """
        self._require_resolved()
        return self._input_gradient(X, Z, self._check_weights(X, Z, W))

    # ------------------------------------------------------------------ methods for subclasses

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        """Return the points X in the form that `_tile` requires, compatible with operand `like`."""
        return Prepared((X,))

    @abstractmethod
    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Write the kernel values k(P, Q) of prepared points to `out`, shape (n, m)."""

    def _diag(self, X: Points) -> np.ndarray:
        """Return k(x_i, x_i), computed from small blocks of K; subclasses may be faster."""
        P = self.prepare(X)
        out = np.empty(len(P), dtype=P.dtype)
        for rows in slices(len(P), _DIAGONAL_BLOCK):
            Pc = P[rows]
            out[rows] = self.tile(Pc, Pc, np.empty((len(Pc), len(Pc)), dtype=P.dtype)).diagonal()
        return out

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        """Return {path: sum_ij W_ij dk(x_i, z_j) / d log parameter}."""
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its parameters; "
            f"wrap it as Fixed(...) to exclude them from the search"
        )

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        """Return sum_j W_ij dk(x_i, z_j) / dx_i, shape (n, d)."""
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its points; "
            f"choose a method that does not need input_gradient"
        )

    def _properties(self, *inner: Properties) -> Properties:
        """Return the known properties of this node, given those of its children."""
        return Properties()

    def _domain(self, *inner: Domain) -> Domain:
        """Return the domain of this node, given those of its children."""
        return Domain.of(inner)

    def _inner_points(self, X: Points) -> tuple[Points, np.ndarray | None]:
        """Return the points on which the children are evaluated, and to which points they belong.

        The second value contains, for each inner point, the index of its point in X.  None means
        that inner point i belongs to point i.
        """
        return X, None

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        """Return this node with its rules replaced by values; its children are resolved already.

        All weights are positive.  This is called if a rule is unresolved here or in a child, and if
        `Domain.checks_training_points` is True.
        """
        return self

    # ------------------------------------------------------------------ domain and properties

    @cached_property
    def domain(self) -> Domain:
        """What the points of the kernel are, and how it is evaluated on them."""
        return self._domain(*(child.domain for _, child in self._children()))

    claims = _renamed("properties")
    reads_matrix = _renamed("domain.accepts_matrix")
    tells_observations_apart = FormerAttribute(
        "domain.distinguishes_observations", since="0.1.0", removed_in="0.2.0"
    )
    on_vectors = _renamed("domain.on_vectors")
    accepts_matrix = _renamed("domain.accepts_matrix")
    discrete = _renamed("domain.discrete")
    costly = _renamed("domain.costly")
    distinguishes_observations = FormerAttribute(
        "domain.distinguishes_observations", since="0.1.0", removed_in="0.2.0"
    )
    pullback_in_tiles = FormerAttribute(
        "domain.pullback_in_tiles", since="0.1.0", removed_in="0.2.0"
    )

    def _evaluation_work(self, entries: int, columns: int = 0) -> float:
        """Estimate the number of multiplications needed to compute `entries` entries of K.

        With `columns`, this includes the product of K with a matrix of that many columns.  The
        estimate determines whether to start threads.  It is infinite for costly kernels and for
        points that are not vectors, because these always justify a thread.
        """
        cheap = self.domain.on_vectors and not self.domain.costly
        return entries * (ENTRY_WORK + columns) if cheap else np.inf

    @cached_property
    def properties(self) -> Properties:
        """The known properties of the kernel, such as its order, and the rule that proves them.

        They are derived from the kernel expression, without evaluating k.  If a user-defined
        subclass overrides methods, but not `_properties`, nothing is known about it.
        """
        if _changes_methods(type(self)):
            return Properties()
        return self._properties(*(child.properties for _, child in self._children()))

    @property
    def infinitely_divisible(self) -> bool:
        """Whether k**p is a Mercer kernel for every real p > 0."""
        return self.properties.infinitely_divisible

    @property
    def diagonal_bound(self) -> float:
        """An upper bound B on k(x, x) for all x; then |f(x)|^2 <= B |f|^2 for f in the RKHS.

        It is inf if no bound is known, or if k is only conditionally positive definite.
        """
        return self.properties.diagonal_bound

    def validity(self, X: Points = None, *, order: int = 0, **options: Any) -> Validity:
        """Check whether this is a Mercer kernel: find a proof, a counterexample, or neither.

        Parameters
        ----------
        X : collection of points, optional
            Example points with which the search for a counterexample starts; by default points
            are generated.  Pass typical points if the kernel is a function of your own.
        order : int, default=0
            0 for a Mercer kernel; m to check for conditional positive definiteness of order m.
        **options : keyword arguments
            Further parameters of `mercer.validity`: `n_grams`, `random_state` and `tol`.

        Returns
        -------
        Validity
            Its `status` is "proved", "refuted" or "unknown".

        Examples
        --------
        >>> from mercer.kernels import RBF, Sigmoid
        >>> (RBF() ** 0.5).validity().status, Sigmoid().validity().status
        ('proved', 'refuted')
        """
        from .validity import validity

        return validity(self, X, order=order, **options)

    # ------------------------------------------------------------------ derivatives of k(x, x)

    def _diag_pullback(self, X: Points, w: np.ndarray) -> np.ndarray:
        """Return sum_i w_i dk(x_i, x_i) / d theta."""
        total = np.zeros(self.theta.size)
        for rows in slices(length(X), _DIAGONAL_BLOCK):
            total += self.pullback(take(X, rows), None, np.diag(w[rows]))
        return total

    def _diag_gradient(self, X: Points, w: np.ndarray) -> np.ndarray:
        """Return w_i d/dx_i k(x_i, x_i), by symmetry twice the derivative in one argument."""
        parts = [
            2.0 * self.input_gradient(take(X, rows), None, np.diag(w[rows]))
            for rows in slices(length(X), _DIAGONAL_BLOCK)
            or [slice(0)]  # an empty slice, so that the result has shape (0, d)
        ]
        return np.concatenate(parts)

    # ------------------------------------------------------------------ data-dependent values

    def resolve(
        self, X: Points, weights: np.ndarray | None = None, targets: np.ndarray | None = None
    ) -> Kernel:
        """Return this kernel with rules such as "median" replaced by their values on X.

        Estimators call this in `fit`.  Call it before a kernel with rules is evaluated directly.

        Parameters
        ----------
        X : collection of n points
            The training points, such as an array of shape (n, d).
        weights : ndarray of shape (n,), optional
            The weights of the points: a point of weight 2 counts as two points, and a point of
            weight 0 is ignored.
        targets : ndarray of shape (n, q), optional
            The target values, used only by kernels that learn from targets (`MultipleKernel`).

        Returns
        -------
        Kernel
            The kernel with numbers in place of rules, or the kernel itself if it has no rules.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF("median").resolve([[0.0], [1.0], [3.0]])  # the median of 1, 2 and 3
        RBF(length_scale=2.0)
        """
        if not self._needs_training_points():
            return self
        if weights is not None and not np.all(weights):
            present = np.flatnonzero(weights)
            X, weights = take(X, present), weights[present]
            targets = None if targets is None else targets[present]
        resolved = self
        if any(child._needs_training_points() for _, child in self._children()):
            points, owner = self._inner_points(X)
            of_inner = [v if v is None or owner is None else v[owner] for v in (weights, targets)]
            children = {path: c.resolve(points, *of_inner) for path, c in self._children()}
            resolved = self._with_children(children)
        return resolved._resolve(X, weights, targets)

    def _needs_training_points(self) -> bool:
        """Whether `resolve` depends on its points: it replaces a rule, or checks the points."""
        return bool(self._unresolved) or self.domain.checks_training_points

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Kernel | float) -> Kernel:
        from .algebra._closure_rules import add

        return add(self, other)

    def __radd__(self, other: Kernel | float) -> Kernel:
        from .algebra._closure_rules import add

        return add(other, self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        from .algebra._closure_rules import multiply

        return multiply(self, other)

    def __rmul__(self, other: Kernel | float) -> Kernel:
        from .algebra._closure_rules import multiply

        return multiply(other, self)

    def __pow__(self, exponent: float) -> Kernel:
        from .algebra._closure_rules import Power

        return Power(self, exponent)

    def __sub__(self, other: Kernel | float) -> NoReturn:
        raise _difference_error(self, other)

    def __rsub__(self, other: float) -> NoReturn:
        raise _difference_error(other, self)

    def __neg__(self) -> NoReturn:
        raise TypeError(
            f"-{type(self).__name__}(...) is not supported, because a negative multiple of a "
            f"kernel is not positive semidefinite. Factors must be positive"
        )

    def __truediv__(self, other: float) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}(...) / {_operand(other)} is not supported. Multiply by the "
            f"reciprocal, such as 0.5 * {type(self).__name__}(...); for k(x, x) = 1, write "
            f"Normalized({type(self).__name__}(...))"
        )

    def __matmul__(self, other: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}(...) @ {_operand(other)} is not supported. For the product of "
            f"two kernels write k * l; for the kernel matrix evaluate the kernel first, "
            f"k(X, Z) @ v"
        )

    # ------------------------------------------------------------------ copies and pickling

    def __sklearn_clone__(self) -> Self:
        return self  # kernels are immutable, so a copy is not needed

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are recomputed after loading.
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    # ------------------------------------------------------------------ in notebooks

    def _repr_latex_(self) -> str:
        from .language import formula

        return rf"$\displaystyle {formula(self)}$"

    def _repr_html_(self) -> str:
        from .language import html_tree

        return f"<p>{escape(self._repr_latex_())}</p>{html_tree(self)}"

    # ------------------------------------------------------------------ checks

    def _check_weights(self, X: Points, Z: Points, W: ArrayLike) -> np.ndarray:
        """Return W as an array, after checking that it has the shape of k(X, Z)."""
        W = np.asarray(W)
        shape = (length(X), length(X if Z is None else Z))
        if W.shape != shape:
            raise ValueError(f"W has shape {W.shape}, but k(X, Z) has shape {shape}")
        return W


def _operand(value: object) -> str:
    """Return an operand of an expression as a short text, for error messages."""
    return repr(value) if isinstance(value, Real) else f"{type(value).__name__}(...)"


def _difference_error(left: object, right: object) -> TypeError:
    """Return the error for a difference of two kernels, or of a kernel and a number."""
    return TypeError(
        f"the difference of {_operand(left)} and {_operand(right)} is not supported, because a "
        f"difference of kernels is in general not positive semidefinite. For a conditionally "
        f"positive definite function use Distance or ThinPlate; for any other difference, pass a "
        f"function: Callable(lambda X, Z: k(X, Z) - l(X, Z), 'matrix')"
    )


@cache
def _changes_methods(kernel: type[Kernel]) -> bool:
    """Return True if a class outside of mercer overrides methods, but not `_properties`."""
    outside = takewhile(
        lambda cls: "_properties" not in vars(cls) and not cls.__module__.startswith("mercer."),
        kernel.__mro__,
    )
    members = [item for cls in outside for item in vars(cls).items()]
    return any(
        callable(value) or isinstance(value, property)
        for name, value in members
        if not name.startswith("__")
    )
