"""Choose a solver: by name, or automatically by comparing predicted costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from .._core import MemoryLimit, Points, budget_in_bytes, length
from ..gram import DEFAULT_RANK, Landmarks
from ..kernels import Kernel, Linear, has_float32_error_bound
from ._cost_model import Cost, cost_of_storing_and_reading
from ._fallback import FallbackSolver, SMOThenInteriorPoint
from .eigen import (
    Arpack,
    BlockKrylov,
    DenseEigen,
    FourierEigen,
    LowRankEigen,
    PowerDeflation,
    RandomizedEigen,
)
from .linear import Cholesky, ConjugateGradient, LeastSquares, MixedCholesky
from .svm import BoxInterior


class ProblemKind(Enum):
    """The kinds of problems for which `choose` selects a solver.

    Attributes
    ----------
    LINEAR : ProblemKind
        Linear systems (K + shift) a = y.
    EIGEN : ProblemKind
        Eigenproblems K u = l u.

    See Also
    --------
    choose : Choose a solver.

    Examples
    --------
    >>> from mercer.solvers import EIGEN, ProblemKind
    >>> EIGEN is ProblemKind.EIGEN, EIGEN.value
    (True, 'K u = l u')
    """

    LINEAR = "(K + shift) a = y"
    EIGEN = "K u = l u"


LINEAR, EIGEN = ProblemKind.LINEAR, ProblemKind.EIGEN

# Largest numbers of points for which solver="auto" chooses an exact solver.  "newton" applies to
# Newton's method for log-losses, "ordered" to ordered outputs (non-crossing quantiles), and "exact"
# to all other regularised risks; at these limits, a fit takes about a minute on one core.
# "clusters" applies to kernel k-means, and "likelihood" to Gaussian processes, where one evaluation
# of the likelihood takes about a minute.
MAX_EXACT_POINTS = {
    **{"newton": 5000, "exact": 3000, "ordered": 1000},
    **{"clusters": 50_000, "likelihood": 10_000},
}
# Up to this many points, a float64 Cholesky factorisation is cheap and is always preferred.
MAX_DIRECT_POINTS = 2000


@dataclass(frozen=True)
class _ChooserTuning:
    """Tuning constants of the choice of a solver."""

    # Conjugate gradients may spend this fraction of the cost of a factorisation on their
    # preconditioner, a pivoted Cholesky factor.
    max_pivot_cost: float = 0.05
    # The preconditioner of conjugate gradients has at least this rank, whatever it costs.
    min_rank: int = 50
    # Conjugate gradients that are tried before a factorisation get at least this max_iter.
    min_cg_steps: int = 20
    # Up to this many points, a linear SVM is always trained by SMO, which reads rows of K.
    max_smo_points: int = 500
    # Largest K in bytes that SMO stores by default for a squared hinge loss, about 8 000 points.
    squared_hinge_bytes: int = 2**29


_TUNING = _ChooserTuning()

_NAMES: dict[ProblemKind, dict[str, Any]] = {
    LINEAR: {
        "cholesky": Cholesky,
        "mixed": MixedCholesky,
        "cg": ConjugateGradient,
        "lstsq": LeastSquares,
    },
    EIGEN: {
        "dense": DenseEigen,
        "krylov": BlockKrylov,
        "nystroem": LowRankEigen,
        "features": FourierEigen,
        "power": PowerDeflation,
        "arpack": Arpack,
        "randomized": RandomizedEigen,
    },
}


def choose(
    problem: ProblemKind,
    gram: Any,
    spec: Any = "auto",
    *,
    k: int | None = None,
    n: int | None = None,
    kernel: Any = None,
    X: Points = None,
    columns: int = 1,
    max_memory: MemoryLimit = None,
    **options: Any,
) -> Any:
    """Return the solver with a given name, or the solver with the lowest predicted cost.

    K is the kernel matrix of n points.  The table shows which solver is returned.

    ========= ========== ============================================ =================
    problem   spec       when                                         solver
    ========= ========== ============================================ =================
    LINEAR    "auto"     K is an array or fits in memory, n <= 2000   Cholesky
                         the same, n > 2000, and another 4 n^2 bytes  CG, mixed, Cholesky
                         also fit
                         the same, but they do not fit, or Cholesky   CG, Cholesky
                         costs less than mixed (slow kernel entries)
                         only 4 n^2 bytes fit                         CG, mixed
                         otherwise                                    CG
              a name     "cholesky", "mixed", "cg", "lstsq"           that solver
    EIGEN     "auto"     the lowest cost, see `eigen_costs`           BlockKrylov or
                                                                      DenseEigen
              a name     "dense", "krylov", "nystroem", "features",   that solver
                         "power", "arpack", "randomized"
    either    a solver                                                that solver
    ========= ========== ============================================ =================

    "CG, mixed" stands for a `FallbackSolver` that tries `ConjugateGradient` first and then
    `MixedCholesky`.  The preconditioner of CG, a pivoted Cholesky factor that costs at most 5 % of
    a full factorisation, predicts how many steps CG will take.  If these would cost more than a
    factorisation, the next solver is used; the time of `MixedCholesky` depends little on the
    spectrum of K.  All solvers reach about the residual of a float64 Cholesky factorisation, and
    this residual is checked.

    The next table shows the processor time, including the evaluation of K, relative to `Cholesky`
    (RBF kernel, 20 columns, alpha = 1, single-threaded BLAS; medians of 5, 3 and 1 runs).  The
    first number is for a spectrum that decays fast, the second for one that decays slowly:

    ======== ============= ================ ================
    n        CG, array     mixed, tiled     mixed, array
    ======== ============= ================ ================
    1500     0.95 / 2.0    0.95 / 1.1       0.86 / 0.84
    4000     0.43 / 0.75   0.73 / 0.73      1.1 / 1.2
    10000    0.14 / 0.30   0.64 / 0.56      0.91 / 0.70
    ======== ============= ================ ================

    Parameters
    ----------
    problem : ProblemKind
        LINEAR or EIGEN.
    gram : GramOperator, CentredGram or None
        The kernel matrix, or None for a linear system whose kernel matrix does not exist yet.  The
        `storage` attribute of the returned solver, "dense" or "tiled", then says how to create it.
    spec : str or solver, default="auto"
        "auto", a name from the table, or a solver, which is returned unchanged.
    k : int or None, default=None
        Number of eigenpairs to compute; None for all.
    n : int or None, default=None
        Number of points, if `gram` is None.
    kernel : Kernel or None, default=None
        Kernel of the kernel matrix, if `gram` is None.  It is used to predict the cost of
        evaluating the matrix.
    X : points or None, default=None
        Points of the kernel matrix, if `gram` is None.
    columns : int, default=1
        Number of right-hand sides.
    max_memory : int, str or None, default=None
        Memory budget, in bytes or as a string such as "2 GiB"; None for half of the memory of the
        computer.
    **options : object
        Options of the solver.  An option that the chosen solver does not have is ignored, if
        another solver for this problem has it.

    Returns
    -------
    solver : object
        An object with the method `factorize` (LINEAR) or `eigenpairs` (EIGEN).

    Raises
    ------
    TypeError
        If `spec` is neither a string nor a solver, or if an option is unknown to every solver.
    ValueError
        If there is no solver with this name.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import EIGEN, LINEAR, choose
    >>> choose(EIGEN, gram(Linear(), [[1.0], [2.0]]), k=1)
    DenseEigen()
    >>> choose(LINEAR, None, n=100)
    Cholesky()
    >>> choose(LINEAR, None, n=50_000, max_memory="8 GiB")
    ConjugateGradient(rank=None, tol=1e-14, max_iter=None, random_state=None, max_memory='8 GiB')
    """
    if not isinstance(spec, str):
        verb = "factorize" if problem is LINEAR else "eigenpairs"
        if not hasattr(spec, verb):
            raise TypeError(
                f"{spec!r} is not a solver for {problem.value}: it has no {verb}() method; pass "
                f"'auto', the name of a solver, or a solver object"
            )
        return spec
    names = _NAMES[problem]
    if spec not in ("auto", *names):
        raise ValueError(
            f"unknown solver {spec!r} for {problem.value}; use 'auto', one of {sorted(names)}, "
            f"or a solver object"
        )
    known = {name for solver in names.values() for name in solver.__dataclass_fields__}
    if unknown := sorted(options.keys() - known):
        raise TypeError(
            f"no solver for {problem.value} has the options {unknown}; check the spelling"
        )

    def make(name: str, **more: Any) -> Any:
        values = {"max_memory": max_memory, **options, **more}
        fields = names[name].__dataclass_fields__
        return names[name](**{name: v for name, v in values.items() if name in fields})

    if spec != "auto":
        return make(spec)
    if problem is EIGEN:
        inner, size = getattr(gram, "gram", gram), gram.shape[0]
        storage = "dense" if hasattr(inner, "release") else "tiled"
        costs = eigen_costs(inner.kernel, inner.X, size, size if k is None else k)
        name, _ = cheapest({way: costs[way] for way in costs if way[1] == storage or k is None})
        return make(name)
    n = n if gram is None else gram.shape[0]
    stored = None
    if gram is not None:
        kernel, X, stored = gram.kernel, gram.X, hasattr(gram, "release")
    sequence, storing, reads = linear_solver_sequence(
        n or 0, kernel, X, columns, budget_in_bytes(max_memory), stored
    )
    if len(sequence) == 1:
        return make(sequence[0])
    trial, hold = _cg_trial_options(make("cg"), n or 0, make(sequence[1]), storing, reads, columns)
    trial = {name: value for name, value in trial.items() if name not in options}
    stages = tuple(make(name, **(trial if name == "cg" else {})) for name in sequence)
    return FallbackSolver(stages, hold if "cholesky" in sequence and "tiled" in reads else np.inf)


def linear_solver_sequence(
    n: int, kernel: Any, X: Points, columns: int, budget: int, stored: bool | None = None
) -> tuple[list[str], Cost, dict[str, Cost]]:
    """Return which linear solvers to try, and the costs of storing and reading K.

    `stored` is whether K is an array, or None if K does not exist yet and its storage is to be
    chosen.  If K does not exist yet, and both a float64 and a float32 factorisation fit in memory,
    `MixedCholesky` is tried before `Cholesky` only if it is cheaper.

    Returns
    -------
    names : list of str
        Names of the solvers, in the order in which they are tried.
    storing : Cost
        The cost of storing K as an array.
    reads : dict
        The cost of one pass over K for each possible storage, "dense" or "tiled".
    """
    storing, dense = cost_of_storing_and_reading(kernel, X, n, stored=True)
    tiled = cost_of_storing_and_reading(kernel, X, n, stored=False)[1]
    float32_bytes = MixedCholesky().workspace(n)
    use_array = 8 * n * n <= budget if stored is None else stored
    if use_array and n <= MAX_DIRECT_POINTS:
        return ["cholesky"], storing, {"dense": dense}
    both_fit = 8 * n * n + float32_bytes <= budget
    if use_array and (stored is not None or not both_fit):
        return (
            ["cg", "mixed", "cholesky"] if both_fit else ["cg", "cholesky"],
            storing,
            {"dense": dense},
        )
    if not use_array:
        return ["cg", "mixed"] if float32_bytes <= budget else ["cg"], storing, {"tiled": tiled}
    costs = {
        "cholesky": storing + Cholesky.cost(n, dense, columns),
        "mixed": tiled + MixedCholesky.cost(n, tiled, columns),
    }
    if cheapest(costs) == "cholesky":
        return ["cg", "cholesky"], storing, {"dense": dense}
    return ["cg", "mixed", "cholesky"], storing, {"dense": dense, "tiled": tiled}


def _cg_trial_options(
    cg: Any, n: int, direct: Any, storing: Cost, reads: dict[str, Cost], columns: int
) -> tuple[dict[str, Any], float]:
    """Return options for conjugate gradients (CG) that are tried before a direct solver.

    Returns
    -------
    trial : dict
        The options `max_iter`, such that half of these steps cost as much as the solver `direct`,
        and `rank`, if the default rank is too expensive.
    min_steps_to_store : float
        If CG takes more steps than this, it is cheaper to store K as an array.
    """
    read = reads.get("tiled") or reads["dense"]
    direct_seconds = direct.cost(n, read, columns).seconds
    setup, step = cg.cost(n, read, columns)
    saved_seconds, min_steps_to_store = 0.0, np.inf
    if len(reads) == 2:
        stored_step = cg.cost(n, reads["dense"], columns)[1]
        saved_seconds = step.seconds - stored_step.seconds
        min_steps_to_store = storing.seconds / saved_seconds if saved_seconds > 0 else np.inf
    max_steps = (direct_seconds - setup.seconds) / step.seconds
    if max_steps > min_steps_to_store:
        max_steps = (direct_seconds - setup.seconds - storing.seconds) / (
            step.seconds - saved_seconds
        )
    # A FallbackSolver skips CG if it expects more than half of max_iter steps.
    trial: dict[str, Any] = {"max_iter": max(_TUNING.min_cg_steps, int(2.0 * max_steps))}
    # If the preconditioner is too expensive, reduce its rank: the cost grows as the rank squared.
    if setup.seconds > _TUNING.max_pivot_cost * direct_seconds:
        affordable_rank = int(
            cg._rank(n) * np.sqrt(_TUNING.max_pivot_cost * direct_seconds / setup.seconds)
        )
        trial["rank"] = min(n, max(_TUNING.min_rank, affordable_rank))
    return trial, min_steps_to_store


def cheapest(costs: dict[Any, Cost]) -> Any:
    """Return the key of the lowest cost, or None if `costs` is empty.

    If several costs are equal, the key of the first one is returned.

    Examples
    --------
    >>> from mercer.solvers import Cost, cheapest
    >>> cheapest({"one pass": Cost(read=1e9), "two passes": Cost(read=2e9)})
    'one pass'
    """
    return min(costs, key=lambda key: costs[key].seconds, default=None)


def eigen_costs(
    kernel: Any, X: Points, n: int, k: int, found: int | None = None
) -> dict[tuple[str, str], Cost]:
    """Predict the cost of k eigenpairs of an n x n kernel matrix K, for each solver and storage.

    Only exact solvers are compared.

    Parameters
    ----------
    kernel, X : Kernel and points
        Used to predict the cost of evaluating an entry of K.
    n : int
        Number of points.
    k : int
        Number of eigenpairs to compute.
    found : int, optional
        Number of eigenpairs that the dense solver (LAPACK) computes, if it is not k.  It can
        differ if the number of components depends on the spectrum.

    Returns
    -------
    costs : dict
        The keys are (name of the solver, storage of K), the values are costs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import cheapest, eigen_costs
    >>> X = np.zeros((3000, 256))
    >>> [cheapest(eigen_costs(RBF(), X, 3000, k))[0] for k in (10, 50, 300)]
    ['krylov', 'krylov', 'dense']
    """
    candidates = (("dense", "dense"), ("krylov", "dense"), ("krylov", "tiled"))
    solvers: dict[str, Any] = {"dense": DenseEigen(), "krylov": BlockKrylov()}
    costs = {}
    for name, storage in candidates:
        storing, read = cost_of_storing_and_reading(kernel, X, n, stored=storage == "dense")
        count = found or k if name == "dense" else k
        options = {"rounds": has_float32_error_bound(kernel)} if storage == "tiled" else {}
        costs[name, storage] = storing + solvers[name].cost(n, count, read, **options)
    return costs


def choose_linear_svm_solver(
    n: int, m: int, largest: int | None = None, max_memory: MemoryLimit = None
) -> str:
    """Return the name of the best solver for a linear SVM on dense features.

    Parameters
    ----------
    n, m : int
        Numbers of points and features.
    largest : int, optional
        Number of points of the largest two-class problem; n by default.
    max_memory : int, str or None
        Memory budget; None for half of the memory of the computer.

    Returns
    -------
    name : {"smo", "primal", "either"}
        "smo", which works on rows of K, if there are few points, at least as many features as
        points, or too little memory for an interior-point method.  "primal", an interior-point
        method on the features, if SMO is predicted to exceed its time budget at once.  Otherwise
        "either", which means `SMOThenInteriorPoint`: SMO first, and the interior-point method if
        SMO takes too long.

    Examples
    --------
    >>> from mercer.solvers import choose_linear_svm_solver
    >>> choose_linear_svm_solver(200, 10), choose_linear_svm_solver(100_000, 10)
    ('smo', 'primal')
    """
    fits = BoxInterior.workspace(n, m, 2 * n) + 8 * n * m <= budget_in_bytes(max_memory)
    largest = n if largest is None else largest
    if largest <= _TUNING.max_smo_points or m >= largest or not fits:
        return "smo"
    return "either" if largest < n or SMOThenInteriorPoint.can_afford_smo(n, m) else "primal"


def choose_svm_solver(
    kernel: Kernel,
    X: Points,
    spec: str = "auto",
    labels: np.ndarray | None = None,
    max_memory: MemoryLimit = None,
    squared: bool = False,
) -> str:
    """Return the name of the solver of a support vector machine.

    Parameters
    ----------
    kernel : Kernel
    X : points
    spec : {"auto", "smo", "primal", "nystroem", "core-set"}
        The requested solver.  "auto" is "smo", unless the kernel is linear and X is an array.
    labels : ndarray of int, shape (n,), optional
        The class of each point, if there is a problem for each pair of classes.
    max_memory : int, str or None
        Memory budget; None for half of the memory of the computer.
    squared : bool, default=False
        Whether the loss is squared, so that "smo" stores K; "auto" is "core-set" for a large K.

    Returns
    -------
    name : {"smo", "primal", "either", "nystroem", "core-set"}
        See `choose_linear_svm_solver`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> from mercer.solvers import choose_svm_solver
    >>> X = np.zeros((100_000, 10))
    >>> choose_svm_solver(RBF(), X), choose_svm_solver(Linear(), X)
    ('smo', 'primal')
    """
    if spec != "auto":
        return spec
    if squared:
        n_bytes = 8 * length(X) ** 2
        stored = n_bytes <= min(_TUNING.squared_hinge_bytes, budget_in_bytes(max_memory) // 3)
        return "smo" if stored else "core-set"
    if not (isinstance(kernel, Linear) and isinstance(X, np.ndarray)):
        return "smo"
    n, m = X.shape
    largest = n if labels is None else int(np.sort(np.bincount(labels))[-2:].sum())
    return choose_linear_svm_solver(n, m, largest, max_memory)


def use_landmarks(spec: str, n: int, limit: str | None = None, fits: bool = True) -> bool:
    """Whether a fit is restricted to the span of landmarks, which is an approximation.

    Parameters
    ----------
    spec : str
        The requested solver.  "nystroem" uses landmarks; all other names except "auto" do not.
    n : int
        Number of points.
    limit : str, optional
        A key of `MAX_EXACT_POINTS`.  "auto" uses landmarks for more points; without a limit, "auto"
        never uses them.
    fits : bool, default=True
        Whether the exact problem fits the memory budget; if it does not, "auto" uses landmarks.

    Examples
    --------
    >>> from mercer.solvers import use_landmarks
    >>> use_landmarks("auto", 3000, "exact"), use_landmarks("auto", 3001, "exact")
    (False, True)
    """
    if spec != "auto" or limit is None:
        return spec == "nystroem"
    return n > MAX_EXACT_POINTS[limit] or not fits


def affordable_landmarks(
    landmarks: Landmarks, spec: str, n: int, needed: Callable[[int], int], budget: int
) -> Landmarks:
    """Return the landmarks, with fewer of them if "auto" must reduce their number.

    `needed(m)` is the memory in bytes for m landmarks.  A number of landmarks that the user
    specified is not changed.

    Examples
    --------
    >>> from mercer.gram import Landmarks
    >>> from mercer.solvers import affordable_landmarks
    >>> affordable_landmarks(Landmarks(), "auto", 5000, lambda m: 8 * m * m, 10**6).rank
    353
    """
    if spec != "auto" or landmarks.rank is not None or landmarks.given:
        return landmarks
    ranks = (m for m in range(min(n, DEFAULT_RANK), 0, -1) if needed(m) <= budget)
    return replace(landmarks, rank=next(ranks, 1))
