"""Support vector classification by C or by nu: a machine for each pair of classes, and a vote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..._errors import warn_caller
from ...solvers import BlockSMO, Dual, Duals, DualSolution, DualSolutions
from .._parameters import estimator, fitting, parameter, threaded
from .._sample import class_weights
from ._machine import SupportVectorMachine
from ._pairs import couples, votes_of_pairs
from ._problem import Problem

__all__ = ["SVC", "NuSVC"]

_NO_MARGIN = 1e-12  # a rho that is smaller than this times the largest |f| is rounding


@estimator(kw_only=True)
class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """A vote of machines, one for each pair of classes; see SVC.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights of classes, positive, which multiply those of the points; "balanced" makes the sums
        of the weights of all classes equal.
    decision_function_shape : {"ovr", "ovo"}
        Whether `decision_function` has a column for each class, or for each pair of classes.
    break_ties : bool
        Whether equal votes are decided by the values of f.
    """

    class_weight: dict | str | None = parameter(StrOptions({"balanced"}), dict, None, default=None)
    decision_function_shape: str = parameter(StrOptions({"ovr", "ovo"}), default="ovr")
    break_ties: bool = parameter("boolean", default=False)

    _one_class_left: ClassVar[str] = (
        "Invalid input - all samples with positive weights belong to the same class: {!r}"
    )

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a machine to each pair of classes of the labels y, (n,).

        Weights multiply C, point by point; a point of weight 0 or less is left out.  A class is
        one that has points of positive weight.
        """
        problem = self._classes(X, y, sample_weight)
        self._learn(problem, self._duals(problem))
        return self

    @abstractmethod
    def _duals(self, problem: Problem) -> Duals:
        """Return the dual of each pair of classes."""

    def _classes(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Check what a fit was given; more than two classes are sorted."""
        sample, y = self._sample_of(X, y, sample_weight, labels=True)
        kept = y if len(sample) == len(y) else y[sample.kept]
        classes, labels = np.unique(kept, return_inverse=True)
        if y.dtype.kind not in "biu" or 2 * len(classes) > len(kept):
            check_classification_targets(y)  # slow, and known to pass for a few integers
        if len(classes) < 2:
            if len(np.unique(y)) < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got 1 class: "
                    f"{classes.tolist()}"
                )
            raise ValueError(self._one_class_left.format(classes.tolist()[0]))
        factors = np.ones(len(classes))
        if self.class_weight is not None:
            sums = np.bincount(labels, sample.counts)
            factors = class_weights(self.class_weight, classes, sums)
        sample = sample.with_classes(classes, labels, factors)
        if len(classes) > 2:
            sample = sample.take(np.argsort(labels, kind="stable"))
        return replace(self._problem(sample), class_weights=factors)

    # ------------------------------------------------------------------ predictions

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) + b for two classes, (n,), positive for `classes_[1]`.

        For more classes and "ovo" the f of each pair, (n, pairs), positive for its first class; for
        "ovr" the votes for each class, (n, n_classes), plus something smaller than 1/3 that rises
        with the sum of the f.  For a precomputed kernel X is k(X, training points).
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return self._by_class(values)

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the most votes; of equals the first, unless `break_ties`."""
        if self.break_ties and self.decision_function_shape == "ovo":
            check_is_fitted(self)
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken "
                "by the values of 'ovr'"
            )
        values = self._values(X)
        if len(self.classes_) == 2:
            # f = 0 is the second class, as in LIBSVM.
            best = (values[:, 0] >= 0).astype(np.intp)
        elif self.break_ties:
            best = self._by_class(values).argmax(axis=1)
        else:
            best = votes_of_pairs(values, len(self.classes_)).argmax(axis=1)
        return self.classes_[best]

    def _by_class(self, values: np.ndarray) -> np.ndarray:
        return _ovr_decision_function(values < 0, -values, len(self.classes_))


@estimator(kw_only=True)
class SVC(SupportVectorClassifier):
    """Minimise  1/2 |f|^2 + C sum_i w_i max(0, 1 - y_i (f(x_i) + b))  over the RKHS of the kernel.

    A drop-in for scikit-learn's estimator of this name, but for what the notes list.  Its fit holds
    the rows of K that it needs in a cache, works on many points at a time, and ends with a
    certificate; predictions evaluate the support vectors alone, whatever the kernel.

    f = sum_i v_i k(x_i, .), where v_i = 0 for every point outside of the margin: what is left are
    the support vectors.  For more than two classes there is one f for each pair, and they vote.

    Parameters
    ----------
    C : float
        The price of a point inside of the margin; positive, may be infinite.

    Attributes
    ----------
    classes_ : ndarray
        The classes that have a positive weight.
    support_ : ndarray of int
        The rows of X that are support vectors, class by class.
    support_vectors_ : points
        Those rows; empty for a precomputed kernel.
    n_support_ : ndarray of int
        How many there are of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_support_vectors)
        v, in LIBSVM's layout: what a support vector of class a has in the f of a and b stands in
        row b if b < a, else in row b - 1.
    at_bound_ : ndarray of bool
        Whether a support vector is inside of the margin of some f, or on the wrong side: its v is
        as large as C w_i allows.  The others are free: 0 < |v_i| < C w_i wherever v_i is not 0.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
    coef_ : ndarray of shape (n_classes * (n_classes - 1) / 2, n_features)
        For a linear kernel: f(x) = <coef_, x>.
    expansion_ : Expansion
        The f as values, one for each pair, without intercepts; on landmarks for "nystroem".
    class_weight_ : ndarray of shape (n_classes,)
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
    fit_status_ : int
        0 if all searches converged, else 1.
    report_ : Report
        With `certificate`: the primal and the dual objective, their gap and the bound promised for
        it, the violation, how many variables are free and at their bounds, the entries of K
        evaluated, the share of rows found in the cache, and the most negative curvature met (0 for
        a Mercer kernel).  For several pairs sums, or the worst.
    reports_ : list of Report
        One for each pair.
    shape_fit_, gamma_, kernel_, solver_

    Notes
    -----
    Differences from scikit-learn: a point of weight 2 counts as two points also in gamma="scale"
    and in class_weight="balanced", and class weights count like sample weights (scikit-learn
    computes gamma="scale" without weights; give a number to have its value); gamma must be
    positive; the parameter `probability` does not exist: use
    ``CalibratedClassifierCV(SVC(), ensemble=False)``.

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

    C: float = parameter(Interval(Real, 0, None, closed="right"), default=1.0)

    @fitting
    def path(self, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None) -> list[Self]:
        """Return one fitted SVC for each C, in the order given.

        What they share is done once: rows of K that one of them has evaluated serve the others, and
        each search starts from the last solution v, as the t v in the new box that is best.  They
        are what fits one by one find, to `tol`; `report_` says how each started.  (An interior
        point, of "primal" and "nystroem", gains nothing from a start, and has none.)

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
        problem, found = models[0]._classes(X, y, sample_weight), None
        known = {name: value for name, value in vars(models[0]).items() if name.endswith("_in_")}
        for place, model in enumerate(models):
            model.__dict__.update(known)  # n_features_in_ and the like
            duals, note = model._duals(problem), ""
            if found is not None and isinstance(problem.solver, BlockSMO):
                factors = [_best_factor(d, s) for d, s in zip(duals, found, strict=True)]
                scaled = np.repeat(factors, np.diff(duals.ends)) * found.variables
                duals = duals.started(_on_bounds(duals.all, scaled))
                note = f"started from the solution for C={models[place - 1].C:g}, times " + (
                    f"{factors[0]:.3g}"
                    if len(factors) == 1
                    else f"{min(factors):.3g} to {max(factors):.3g}"
                )
            found = model._learn(problem, duals, note)
        return models

    def _duals(self, problem: Problem) -> Duals:
        pairs, sample = problem.pairs, problem.sample
        members, _, signs = pairs.everybody
        ends = np.concatenate([[0], np.cumsum(pairs.sizes)])
        C = self.C * sample.counts[members]
        return Duals(Dual.classify(signs, C), members, ends, ends)


@estimator(kw_only=True)
class NuSVC(SupportVectorClassifier):
    """Minimise  1/2 |f|^2 - nu W rho + sum_i w_i max(0, rho - y_i (f(x_i) + b))  over f, b, rho.

    A drop-in for scikit-learn's estimator of this name.  W is the sum of the weights w_i.  At most
    a share nu of the weight lies inside of the margin, and at least that share belongs to support
    vectors: nu takes the place of C.  f, b and v are then divided by rho, so that the
    margin is at f + b = +-1, as in SVC.

    Parameters
    ----------
    nu : float
        In (0, 1].  For each pair of classes at most twice the part of the weight that belongs to
        the lighter one, as both must have support vectors for a share nu / 2 of all.
    class_weight : dict, "balanced" or None
        Weights of classes, positive, which multiply those of the points.  Where they leave one
        class too little weight for nu, the largest nu that they allow takes its place, and `nu_`
        says so; "balanced" allows every nu.  (scikit-learn ignores them.)
    tol : float
        How much the conditions of a minimum may be violated, in units of y f(x) before the division
        by rho.

    Attributes
    ----------
    nu_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The nu of each pair: smaller than asked for only because of `class_weight`.
    classes_, support_, support_vectors_, n_support_, dual_coef_, at_bound_, intercept_, coef_
        As in SVC.
    expansion_, class_weight_, n_iter_, fit_status_, report_, reports_
        As in SVC; objectives are those of the problem before the division by rho.
    shape_fit_, gamma_, kernel_, solver_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(X, y)
    >>> model.predict([[5.9, 3.0, 5.0, 1.8]])
    array([2])
    """

    nu: float = parameter(Interval(Real, 0, 1, closed="right"), default=0.5)

    _one_class_left: ClassVar[str] = (
        "specified nu is infeasible: all samples with positive weights belong to the same class, "
        "{!r}, which allows no nu > 0"
    )

    def _duals(self, problem: Problem) -> Duals:
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
        members, _, signs = pairs.everybody
        ends = np.concatenate([[0], np.cumsum(pairs.sizes)])
        w = sample.counts[members]
        a, b = couples(pairs.q)
        nu = np.minimum(self.nu, weighted)
        # f is to be as large as without weights of classes
        factors = self.nu * (sums[a] + sums[b]) / (nu * np.add.reduceat(w, ends[:-1]))
        every = Dual.nu_classify(signs, w * np.repeat(factors, pairs.sizes), nu, ends)
        every = replace(every, start=_on_bounds(every, every.start))
        return Duals(every, members, ends, ends)

    def _scales(self, found: DualSolutions) -> np.ndarray:
        rho = 0.5 * (found.multipliers[:, 0] - found.multipliers[:, 1])
        if np.any(rho == 0.0):
            raise ValueError(
                f"nu={self.nu:g} leaves no margin: rho is 0, and f / rho is not finite; the usual "
                f"cause are classes of the same points, or kernel values that are all the same. "
                f"Raise nu, or choose another kernel"
            )
        violation = found.reports.residual
        size = np.maximum.reduceat(np.abs(found.values), found.point_ends[:-1])
        if np.any(small := rho <= np.maximum(violation, _NO_MARGIN * size)):
            p = int(np.flatnonzero(small)[np.argmin(rho[small])])
            warn_caller(
                f"nu={self.nu:g} leaves no margin: rho is {rho[p]:.2g} where the conditions of a "
                f"minimum hold to {violation[p]:.2g}, so that f / rho is mostly rounding; the "
                f"usual cause are classes that overlap too much for so few margin errors. Raise "
                f"nu, or lower tol"
            )
        return rho

    def _read(self, problem: Problem, found: DualSolutions) -> str:
        self.nu_ = np.minimum(self.nu, _largest_nu(problem.weighted_sums))
        lowest = float(self.nu_.min())
        return "" if lowest == self.nu else f"class_weight lowers nu to {lowest:.3g}"


def _best_factor(dual: Dual, last: DualSolution) -> float:
    """Return the t for which t v is best, up to where t v leaves the box of the new dual."""
    v = last.variables
    bounds = np.where(v > 0, dual.upper, dual.lower)
    some = v != 0.0
    most = float(np.min(bounds[some] / v[some], initial=np.inf))
    bend, slope = float(v @ last.values[dual.points]), float(v @ dual.linear)
    if bend <= 0.0:  # no minimum along the line: go as far as the box allows if it falls
        return most if slope < 0.0 and np.isfinite(most) else 0.0
    return float(np.clip(-slope / bend, 0.0, most))


def _on_bounds(dual: Dual, v: np.ndarray) -> np.ndarray:
    """Return v, exactly on the bounds that rounding keeps it from."""
    v = np.clip(v, dual.lower, dual.upper)
    for bound in (dual.lower, dual.upper):
        v = np.where(np.abs(v - bound) < 1e-12 * np.abs(bound), bound, v)
    return v


def _largest_nu(sums: np.ndarray) -> np.ndarray:
    """Return for each pair the nu at which all points of one class are at their bounds."""
    a, b = couples(len(sums))
    return 2.0 * np.minimum(sums[a], sums[b]) / (sums[a] + sums[b])
