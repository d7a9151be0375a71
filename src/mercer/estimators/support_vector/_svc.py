"""Support vector classification, C-SVC and nu-SVC, with one-vs-one voting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, warn_caller
from ...solvers import BlockSMO, BoxInterior, CoreSet, Dual, Duals, DualSolution, DualSolutions
from .._parameters import (
    estimator,
    exact_as_auto,
    fit_method,
    fitted,
    parameter,
    predict_method,
    solver,
)
from .._prediction_intervals import PredictionSetMixin
from .._training_sample import Sample, class_weights
from ._svm_base import SupportVectorMachine
from ._svm_training import SVMProblem, class_pairs, votes_of_pairs

_MIN_RELATIVE_MARGIN = 1e-12  # smaller margins rho, relative to max |f|, are rounding errors


@estimator(kw_only=True)
class SupportVectorClassifier(PredictionSetMixin, ClassifierMixin, SupportVectorMachine):
    """Base class of SVC and NuSVC: one function for each pair of classes, which vote.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Positive class weights, which multiply the weights of the points; "balanced" makes the total
        weights of all classes equal, which helps if small classes are important. None means weight
        1 for each class.
    decision_function_shape : {"ovr", "ovo"}
        Whether `decision_function` has a column for each class ("ovr") or for each pair of classes
        ("ovo"). It does not affect the fit.
    break_ties : bool
        Whether ties in the vote are broken by the values of f; otherwise the first of the tied
        classes is predicted.
    """

    class_weight: dict | str | None = parameter({"balanced"}, dict, None, default=None)
    decision_function_shape: str = parameter({"ovr", "ovo"}, default="ovr")
    break_ties: bool = parameter("boolean", default=False)

    classes_: np.ndarray = fitted()
    class_weight_: np.ndarray = fitted()

    _one_class_left: ClassVar[str] = (
        "Invalid input - all samples with positive weights belong to the same class: {!r}"
    )

    @fit_method
    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a function f to each pair of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n). Data in blocks (`open_blocks`, Dask arrays) need solver="nystroem" or, for
            `SVC`, "core-set".
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which multiply C for each point. Points of weight 0 or less are ignored, and so
            are classes without points of positive weight.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        problem = self._classification_problem(X, y, sample_weight)
        if isinstance(problem.solver, CoreSet):
            self._fit_core_sets(problem, self._duals)
        else:
            self._solve_and_set(problem, self._duals(problem))
        return self

    @abstractmethod
    def _duals(self, problem: SVMProblem) -> Duals:
        """Return the dual problem of each pair of classes."""

    def _classification_problem(
        self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> SVMProblem:
        """Check the data and return the training problem."""
        sample = self._training_sample(X, y, sample_weight, labels=True)
        classes, labels, factors = sample.classes, sample.labels, np.ones(len(sample.classes))
        if self.class_weight is not None:
            factors = class_weights(self.class_weight, classes, np.bincount(labels, sample.counts))
            sample = sample.with_classes(classes, labels, factors)
        return replace(self._problem(sample), class_weights=factors)

    def _with_targets(self, sample: Sample, y: np.ndarray, labels: bool) -> Sample:
        kept_labels = y if len(sample) == len(y) else y[sample.kept]
        classes, indices = np.unique(kept_labels, return_inverse=True)
        if y.dtype.kind not in "biu" or 2 * len(classes) > len(kept_labels):
            check_classification_targets(y)  # a slow check, skipped if y has few distinct integers
        if len(classes) < 2:
            if len(np.unique(y)) < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got 1 class: "
                    f"{classes.tolist()}"
                )
            raise ValueError(self._one_class_left.format(classes.tolist()[0]))
        return sample.with_classes(classes, indices)

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        self.classes_, self.class_weight_ = problem.sample.classes, problem.class_weights
        self.n_iter_ = solutions.reports.n_iter.astype(np.int32)
        return ""

    @property
    def _sign_differs(self) -> bool:
        return len(getattr(self, "classes_", ())) == 2

    # ------------------------------------------------------------------ predictions

    @predict_method
    def decision_function(self, X: Points) -> np.ndarray:
        """Return the decision values of each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,), (n, n_pairs) or (n, n_classes)
            For two classes f(x) + b, which is positive for `classes_[1]`. For more classes and
            "ovo", the value of each of the n_classes (n_classes - 1) / 2 pairs, positive for its
            first class. For "ovr", the number of votes for each class, plus a tie-breaking term
            between -1/3 and 1/3 that increases with the values of f in favour of this class.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return self._by_class(values)

    def _values_by_class(self, X: Points) -> np.ndarray:
        values = self._values(X)
        if len(self.classes_) == 2:
            return np.column_stack([-values[:, 0], values[:, 0]])
        return self._by_class(values)

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the class of each point, the one with the most votes.

        If several classes have the most votes, the first of them is returned, or with `break_ties`
        the one with the largest decision value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Labels from `classes_`.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            check_is_fitted(self)
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo', because ties are "
                "broken by the decision values of 'ovr'"
            )
        values = self._values(X)
        if len(self.classes_) == 2:
            # A decision value of 0 means the second class, as in LIBSVM.
            best = (values[:, 0] >= 0).astype(np.intp)
        elif self.break_ties:
            best = self._by_class(values).argmax(axis=1)
        else:
            best = votes_of_pairs(values, len(self.classes_)).argmax(axis=1)
        return self.classes_[best]

    def _by_class(self, values: np.ndarray) -> np.ndarray:
        """Return one decision value for each class from the values of all pairs."""
        return _ovr_decision_function(values < 0, -values, len(self.classes_))


@estimator(kw_only=True)
class SVC(SupportVectorClassifier):
    """Support vector classification with the hinge loss (C-SVC).

        minimise  1/2 |f|^2 + C sum_i w_i max(0, 1 - y_i (f(x_i) + b))^p

    with p = 1, or p = 2 for the squared hinge loss.

    The solution is f = sum_i v_i k(x_i, .), where v_i = 0 for all points outside the margin;
    the other points are the support vectors.  With more than two classes there is one f for each
    pair of classes, and the class with the most votes is predicted.

    A drop-in replacement for scikit-learn's `SVC`, apart from the differences in the notes.  The
    solver stores the rows of K that it needs in a cache, updates many points at a time, and
    certifies the accuracy of the solution.  Predictions evaluate the kernel at the support vectors
    only.

    Parameters
    ----------
    C : float
        The penalty of margin violations; positive, may be infinite. A smaller C means stronger
        regularisation, a smoother boundary and more support vectors. Search it together with gamma
        on a logarithmic grid, for instance 10^-2 to 10^3; `path` fits all values of C at once.
    loss : {"hinge", "squared_hinge"}
        "squared_hinge" adds 1 / (2 C w_i) to the diagonal of K, and the coefficients have no upper
        bound. All points that violate the margin are then free support vectors. It needs the solver
        "smo", which stores K in this case, or "core-set".
    tol : float
        The solver stops when the optimality conditions are violated by at most this, in units of f.
        The default is accurate enough for predictions; use 1e-5 to compare coefficients. With
        "core-set" the solver stops when the objective exceeds its minimum by at most the factor
        (1 + tol)^2.
    solver : {"auto", "exact", "smo", "primal", "nystroem", "core-set"} or a solver
        "smo": exact, uses rows of K. "primal": exact, uses the columns of X, for a linear kernel.
        "nystroem": approximate, with f in the span of landmarks. "core-set": exact up to `tol`; it
        solves the problem on a growing subset of the points, with passes over all points. Use it
        for more than about 10^5 points, in memory or in blocks, of which few violate the margin
        (core vector machine). "auto" and "exact" are the same here. For the hinge loss they use
        "smo", or for a linear kernel and a dense X with more than 500 rows also "primal", as
        described in `NuSVC`. For the squared hinge loss, they use "smo" up to 8 000 points, and
        otherwise, or if "smo" does not converge, "core-set". A solver object is a `BlockSMO`, a
        `BoxInterior` (for a linear kernel) or a `CoreSet` of `mercer.solvers`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the points of positive weight, sorted.
    support_ : ndarray of int
        The rows of X that are support vectors, class by class.
    support_vectors_ : points
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of int, shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support_vectors)
        The coefficients v, in the layout of LIBSVM: the coefficient of a support vector of class a
        in the f of classes a and b is in row b if b < a, otherwise in row b - 1.
    at_bound_ : ndarray of bool, shape (n_support_vectors,)
        True for support vectors with |v_i| = C w_i in some f, which violate its margin.  The others
        are free support vectors: all their nonzero coefficients have |v_i| < C w_i.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The intercept b of each pair.
    coef_ : ndarray of shape (n_classes * (n_classes - 1) / 2, n_features)
        The weights of a linear kernel: f(x) = <coef_, x>.
    expansion_ : Expansion
        The functions f of all pairs, without intercepts; an expansion in landmarks for
        "nystroem".
    class_weight_ : ndarray of shape (n_classes,)
        The class weights that were used.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Number of solver steps for each pair of classes.
    fit_status_ : int
        0 if the solver converged for all pairs, otherwise 1.
    report_ : Report
        Its `certificate` has the primal and the dual objective, their gap and a guaranteed bound
        on it, the violation of the optimality conditions, the number of free variables and of
        variables at their bounds, the number of evaluated entries of K, the fraction of rows found
        in the cache, and the most negative curvature (0 for a Mercer kernel).  With several pairs,
        these are sums or worst cases.
    reports_ : list of Report
        One report for each pair of classes.
    shape_fit_ : tuple of int
        The shape of X in `fit`.
    gamma_ : float, str or None
        The value of gamma that was used.
    solver_
        The solver that was used.

    See Also
    --------
    NuSVC : Bounds the fraction of margin errors instead of penalising them with C.
    KernelLogisticRegression : Predicts probabilities; the model is not sparse.
    KernelMachineClassifier : Other losses, such as the squared hinge.
    OneClassSVM : Detects outliers, without labels.
    sklearn.svm.SVC : The same model in LIBSVM.
    sklearn.svm.LinearSVC : A linear model for millions of sparse rows.

    Notes
    -----
    Differences from scikit-learn: weights count as repetitions of points, also in
    gamma="scale" and class_weight="balanced", and class weights have the same effect as sample
    weights (scikit-learn computes gamma="scale" without weights; pass a number to reproduce its
    value). gamma must be positive.  There is no parameter `probability`: use
    ``CalibratedClassifierCV(SVC(), ensemble=False)``.

    References
    ----------
    Cortes and Vapnik, "Support-vector networks", Machine Learning 20, 1995.

    Platt, "Fast training of support vector machines using sequential minimal optimization", in
    Advances in Kernel Methods, MIT Press, 1999.

    Chang and Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent
    Systems and Technology 2, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.predict([[5.9, 3.0, 5.0, 1.8]])
    array([2])
    >>> bool(model.n_support_.sum() < 50)
    True
    >>> certificate = model.report_.certificate
    >>> bool(0 <= certificate["gap"] <= certificate["bound"])
    True
    """

    C: float = parameter("positive or infinite", default=1.0)
    loss: str = parameter({"hinge", "squared_hinge"}, default="hinge")
    solver: Any = solver(
        *("smo", "primal", "nystroem", "core-set"),
        given=[BlockSMO, BoxInterior, CoreSet],
        default="auto",
    )

    _has_core_set: ClassVar[bool] = True

    @property
    def _penalty(self) -> float:
        return self.C

    @property
    def _squared(self) -> bool:
        return self.loss == "squared_hinge"

    @fit_method
    def path(
        self, X: Points, y: ArrayLike, Cs: Sequence[float], sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Return one fitted SVC for each value of C, in the order of `Cs`.

        This is faster than separate fits: all models share the cache of rows of K, and each solver
        starts at the coefficients for the previous C, multiplied by the best feasible factor. The
        results equal those of separate fits up to `tol`, and the message of `report_` states the
        initial point. The interior point method of "primal" and "nystroem" does not benefit from an
        initial point, and does not use one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        Cs : sequence of float
            Values of C, preferably in ascending or descending order.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights, which multiply C for each point. Points of weight 0 or less are ignored.

        Returns
        -------
        list of SVC
            The fitted models, one for each value of C. The estimator itself is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> soft, hard = SVC().path(X, y, [0.1, 10.0])
        >>> bool(soft.n_support_.sum() > 3 * hard.n_support_.sum())
        True
        """
        models: list[Self] = [clone(self).set_params(C=C) for C in Cs]
        for model in models:
            model._validate_params()
        if not models:
            return models
        # K depends on C for a squared loss, and a core set accepts no initial point.
        if self._squared or self._uses_core_set:
            return [model.fit(X, y, sample_weight) for model in models]
        problem, solutions = models[0]._classification_problem(X, y, sample_weight), None
        input_attributes = {
            name: value for name, value in vars(models[0]).items() if name.endswith("_in_")
        }
        for i, model in enumerate(models):
            model.__dict__.update(input_attributes)  # sets n_features_in_ and feature_names_in_
            duals, note = model._duals(problem), ""
            if solutions is not None and isinstance(problem.solver, BlockSMO):
                factors = [_best_factor(d, s) for d, s in zip(duals, solutions, strict=True)]
                scaled = np.repeat(factors, np.diff(duals.ends)) * solutions.variables
                duals = duals.started(_snap_to_bounds(duals.all, scaled))
                note = f"started from the solution for C={models[i - 1].C:g}, times " + (
                    f"{factors[0]:.3g}"
                    if len(factors) == 1
                    else f"{min(factors):.3g} to {max(factors):.3g}"
                )
            solutions = model._solve_and_set(problem, duals, note)
        return models

    def _solve_and_set(self, problem: SVMProblem, duals: Duals, note: str = "") -> DualSolutions:
        """Solve all pairs; continue with "core-set" if "smo" was chosen and does not converge."""
        is_auto = isinstance(self.solver, str) and exact_as_auto(self.solver) == "auto"
        if not (self._squared and is_auto and self.max_iter < 0 and np.isfinite(self.C)):
            return super()._solve_and_set(problem, duals, note)
        counts, log = problem.counts, self._progress_callback
        solutions = problem.minimize_all(duals, log)
        if solutions.reports.failed:
            # Newton steps are much less sensitive to the scale of K.
            core_set = CoreSet(self.tol, self.max_iter, self.max_memory)
            values = problem.sample.evaluated(problem.kernel, self.max_memory)
            changed = replace(problem, solver=core_set, data=values)
            changed, found = changed.minimize_core_sets(self.C, True, None, self._duals, log)
            gaps = [float(one.reports.certificate["gap"].sum()) for one in (found, solutions)]
            if not found.reports.failed or gaps[0] < gaps[1]:
                note = f"smo did not converge in {int(solutions.reports.n_iter.sum())} steps"
                problem, solutions, counts = changed, found, changed.counts
        self._set_fit(problem, solutions, counts, note)
        return solutions

    def _duals(self, problem: SVMProblem) -> Duals:
        pairs, sample = problem.pairs, problem.sample
        members, _, signs = pairs.all_members
        ends = np.concatenate([[0], np.cumsum(pairs.sizes)])
        C = self.C * sample.counts[members]
        dual = Dual.classify(signs, np.full(len(C), np.inf) if self._squared else C)
        if self._squared and np.isfinite(self.C):
            dual = replace(dual, shift=0.5 / C)
        return Duals(dual, members, ends, ends)


@estimator(kw_only=True)
class NuSVC(SupportVectorClassifier):
    """Support vector classification with a bound on the fraction of margin errors (nu-SVC).

        minimise  1/2 |f|^2 - nu W rho + sum_i w_i max(0, rho - y_i (f(x_i) + b))   over f, b, rho

    W is the sum of the weights w_i.  The parameter nu replaces C: at most a fraction nu of the
    total weight violates the margin, and the support vectors have at least the fraction nu of it.
    Finally f and b are divided by rho, so that the margin is at f + b = +-1, as in SVC.  A
    drop-in replacement for scikit-learn's `NuSVC`.

    Parameters
    ----------
    nu : float
        Upper bound on the fraction of margin errors, in (0, 1]. Start with about twice the error
        rate that you expect. For each pair of classes it can be at most twice the fraction of their
        weight that the class with less weight has, because the support vectors of each class must
        have at least the fraction nu / 2 of the weight.
    class_weight : dict, "balanced" or None
        Positive class weights, which multiply the weights of the points.  If a class has too
        little weight for nu, the largest feasible nu is used instead, see `nu_`.  "balanced" allows
        every nu.  (scikit-learn ignores class weights here.)
    tol : float
        The solver stops when the optimality conditions are violated by at most this, in units of
        f(x) before the division by rho.

    Attributes
    ----------
    nu_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The nu of each pair; it differs from `nu` only if `class_weight` requires a smaller one.
    classes_, support_, support_vectors_, n_support_, dual_coef_, at_bound_, intercept_, coef_
        As in SVC.
    expansion_, class_weight_, n_iter_, fit_status_, report_, reports_
        As in SVC; the objectives in the reports are those before the division by rho.
    shape_fit_, gamma_, kernel_, solver_
        As in SVC.

    See Also
    --------
    SVC : Has the parameter C instead of nu, and allows all class sizes.
    NuSVR : Regression with the parameter nu.
    KernelLogisticRegression : Predicts probabilities.
    sklearn.svm.NuSVC : The same model in LIBSVM.

    References
    ----------
    Schölkopf, Smola, Williamson and Bartlett, "New support vector algorithms", Neural Computation
    12, 2000.

    Chang and Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent
    Systems and Technology 2, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(X, y)
    >>> model.predict([[5.9, 3.0, 5.0, 1.8]])
    array([2])
    """

    nu: float = parameter("fraction", default=0.5)

    nu_: np.ndarray = fitted()

    _one_class_left: ClassVar[str] = (
        "specified nu is infeasible: all samples with positive weights belong to the same class, "
        "{!r}, so no nu > 0 is feasible"
    )

    def _duals(self, problem: SVMProblem) -> Duals:
        pairs, sample, sums = problem.pairs, problem.sample, problem.sums
        plain, weighted = _largest_nu(sums), _largest_nu(problem.weighted_sums)
        worst = int(np.argmin(np.maximum(plain, weighted)))
        largest = max(plain[worst], weighted[worst])
        if self.nu > largest * (1.0 + 1e-12):
            first, second = list(pairs)[worst]
            a, b = problem.names((first, second))
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu:g}, but the weights of the classes {a!r} "
                f"and {b!r}, {sums[first]:g} and {sums[second]:g}, allow at most nu={largest:.6g}"
            )
        members, _, signs = pairs.all_members
        ends = np.concatenate([[0], np.cumsum(pairs.sizes)])
        w = sample.counts[members]
        a, b = class_pairs(pairs.q)
        nu = np.minimum(self.nu, weighted)
        # Scale the weights so that f has the same magnitude as without class weights.
        factors = self.nu * (sums[a] + sums[b]) / (nu * np.add.reduceat(w, ends[:-1]))
        dual = Dual.nu_classify(signs, w * np.repeat(factors, pairs.sizes), nu, ends)
        dual = replace(dual, start=_snap_to_bounds(dual, dual.start))
        return Duals(dual, members, ends, ends)

    def _margin_divisors(self, solutions: DualSolutions) -> np.ndarray:
        rho = 0.5 * (solutions.multipliers[:, 0] - solutions.multipliers[:, 1])
        if np.any(rho == 0.0):
            raise ValueError(
                f"nu={self.nu:g} leaves no margin: rho is 0, so f / rho is not finite; the usual "
                f"cause is classes that consist of the same points, or kernel values that are all "
                f"equal. Increase nu, or choose another kernel"
            )
        violation = solutions.reports.residual
        size = np.maximum.reduceat(np.abs(solutions.values), solutions.point_ends[:-1])
        if np.any(too_small := rho <= np.maximum(violation, _MIN_RELATIVE_MARGIN * size)):
            p = int(np.flatnonzero(too_small)[np.argmin(rho[too_small])])
            warn_caller(
                f"nu={self.nu:g} leaves no margin: rho is only {rho[p]:.2g}, but the optimality "
                f"conditions are violated by {violation[p]:.2g}, so f / rho is inaccurate; "
                f"the usual cause is classes that overlap too much for this small fraction of "
                f"margin errors. Increase nu, or decrease tol"
            )
        return rho

    def _set_extra_attributes(self, problem: SVMProblem, solutions: DualSolutions) -> str:
        super()._set_extra_attributes(problem, solutions)
        self.nu_ = np.minimum(self.nu, _largest_nu(problem.weighted_sums))
        lowest = float(self.nu_.min())
        return "" if lowest == self.nu else f"class_weight lowers nu to {lowest:.3g}"


def _best_factor(dual: Dual, previous: DualSolution) -> float:
    """Return the factor t >= 0 for which t v, with the previous solution v, is the best start.

    It minimises the new dual objective over all t for which t v satisfies the box constraints.
    """
    v = previous.variables
    bounds = np.where(v > 0, dual.upper, dual.lower)
    nonzero = v != 0.0
    max_factor = float(np.min(bounds[nonzero] / v[nonzero], initial=np.inf))
    curvature, slope = float(v @ previous.values[dual.points]), float(v @ dual.linear)
    if curvature <= 0.0:  # no minimum along the line; go to the bound if the objective falls
        return max_factor if slope < 0.0 and np.isfinite(max_factor) else 0.0
    return float(np.clip(-slope / curvature, 0.0, max_factor))


def _snap_to_bounds(dual: Dual, v: np.ndarray) -> np.ndarray:
    """Clip v to its bounds, and set entries within rounding errors of a bound to the bound."""
    v = np.clip(v, dual.lower, dual.upper)
    for bound in (dual.lower, dual.upper):
        v = np.where(np.abs(v - bound) < 1e-12 * np.abs(bound), bound, v)
    return v


def _largest_nu(sums: np.ndarray) -> np.ndarray:
    """Return the largest feasible nu of each pair of classes, from the total class weights."""
    a, b = class_pairs(len(sums))
    return 2.0 * np.minimum(sums[a], sums[b]) / (sums[a] + sums[b])
