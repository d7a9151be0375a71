"""The kernel perceptron, a classifier that stores the points it misclassified."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..._core import Points
from ...solvers import BudgetPerceptron, Perceptron, Schedule
from .._kernel_estimator import Seed
from .._label_encoding import WeightedClassifierMixin, encode_targets
from .._parameters import estimator, fit_method, parameter
from .._training_sample import Sample, class_weights
from ._online_learning import OnlineEstimator


@estimator()
class KernelPerceptron(OnlineEstimator, WeightedClassifierMixin):
    """Perceptron classifier with a kernel, for batches and streams.

    Each misclassified point is added to the expansion:

        if y (f(x) + b) <= 0:   f <- f + y k(x, .),   b <- b + y

    With two classes there is one function f; with more, there is one f per class (one versus
    rest).  With the linear kernel this is scikit-learn's `Perceptron`, and parameters have the same
    names.  If some f of norm 1 separates the points with margin rho, and k(x, x) <= R^2, all passes
    together make at most (R / rho)^2 mistakes.

    With a `budget`, a misclassified point that is (nearly) in the span of the stored points is
    projected on that span instead of added.  If the budget is exceeded, the point with the least
    influence on f is removed, and its contribution is projected on the remaining points.

    Parameters
    ----------
    average : bool
        Whether to use the average of f over all updates instead of the last f. The average varies
        less with the order of the points, and is usually more accurate.
    budget : int or None
        Maximum number of points in the expansion; None means no limit. A budget needs memory for
        budget^2 numbers. Set it for streams, to bound the time of a prediction.
    fit_intercept : bool
        Whether to learn the intercept b; otherwise it is 0.
    max_iter : int
        Maximum number of passes over the points in `fit`; `partial_fit` makes one pass.
    tol : float or None
        Training of a function f stops if its mean loss, max(0, -y f), did not fall below its best
        value by `tol` in `n_iter_no_change` consecutive passes, or after a pass without mistakes.
        None means to stop only after a pass without mistakes, or after `max_iter` passes.
    n_iter_no_change : int
        Number of passes without progress after which training of a function stops.
    shuffle : bool
        Whether `fit` processes the points in a new random order in each pass.
    random_state : int, RandomState or None
        Seed for shuffling; None means 0, so that fits are reproducible.
    class_weight : dict, "balanced" or None
        Class weights multiply the update y k(x, .).  "balanced" needs all points, so it is not
        available in `partial_fit`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    expansion_ : Expansion
        The functions f, without intercepts: one for two classes, otherwise one for each class.
    X_fit_ : points
        The points of the expansion.
    dual_coef_ : ndarray of shape (len(X_fit_), n_functions)
        Coefficients of the expansion.
    intercept_ : ndarray of shape (n_functions,)
        The intercepts b.
    mistakes_ : ndarray of shape (n_iter_,)
        Number of mistakes of all functions in each pass, or in each call of `partial_fit`.
    n_iter_ : int
        Number of passes, or of calls of `partial_fit`.
    t_ : int
        Number of points processed; each pass counts all points again.
    report_ : Report
        Its certificate contains the number of points in the expansion.  With a budget, it also
        contains the number of removed points, and the sum of the RKHS norms of the changes of f by
        removals and projections.

    See Also
    --------
    SVC : More accurate if all points are available.
    OnlineKernelRegressor : For numeric targets.
    KernelLogisticRegression : Predicts probabilities.
    sklearn.linear_model.Perceptron : The linear case.

    Notes
    -----
    Sample weights are not supported, because a perceptron depends on the order of the points, and
    one point of weight 2 is not equivalent to two points.  Repeat points to give them more weight.

    References
    ----------
    Aizerman, Braverman and Rozonoer, "Theoretical foundations of the potential function method in
    pattern recognition learning", Automation and Remote Control 25, 1964.

    Freund and Schapire, "Large margin classification using the perceptron algorithm", Machine
    Learning 37, 1999.

    Orabona, Keshet and Caputo, "Bounded kernel-based online learning", Journal of Machine Learning
    Research 10, 2009.

    Examples
    --------
    >>> from mercer import KernelPerceptron
    >>> from mercer.datasets import circles
    >>> X, y = circles(200, random_state=0)
    >>> model = KernelPerceptron(gamma=2.0).fit(X, y)
    >>> model.score(X, y), int(model.mistakes_[-1])
    (1.0, 0)
    """

    average: bool = parameter("boolean", default=False)
    _: KW_ONLY
    fit_intercept: bool = parameter("boolean", default=True)
    max_iter: int = parameter("positive integer", default=1000)
    tol: float | None = parameter("non-negative", None, default=1e-3)
    n_iter_no_change: int = parameter("positive integer", default=5)
    shuffle: bool = parameter("boolean", default=True)
    random_state: Seed = parameter("random_state", default=None)

    def _has_probabilities(self) -> bool:
        raise AttributeError(
            "a perceptron does not estimate probabilities; use decision_function, "
            "KernelLogisticRegression, or scikit-learn's CalibratedClassifierCV"
        )

    def _make_learner(self, n_classes: int) -> Perceptron:
        """Return a new learner with the parameters of this estimator."""
        q = 1 if n_classes == 2 else n_classes
        if self.budget is None:
            return Perceptron(q, self.fit_intercept, average=self.average)
        return BudgetPerceptron(
            q, self.fit_intercept, average=self.average, budget=int(self.budget)
        )

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Make passes over the points until there are no mistakes, or the loss stops decreasing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.

        Returns
        -------
        self : KernelPerceptron
            The fitted estimator.
        """
        sample = self._sample(X, y, labels=True).doubled()
        n_classes = len(sample.classes)
        Y = encode_targets(sample.labels, n_classes, "perceptron")[0]
        schedule = Schedule(
            self.max_iter, self.tol, self.n_iter_no_change, self.shuffle, self.random_state
        )
        self._learn_passes(
            self._make_learner(n_classes), sample, Y, self._resolve_kernel(sample), schedule
        )
        self.classes_ = sample.classes
        return self

    @available_if(lambda model: model._can_stream())
    @fit_method
    def partial_fit(self, X: Points, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Update the model with new points, in one pass and in the given order.

        Only misclassified points are stored.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points. The first call also computes parameters that depend on the data, such as
            gamma="scale", so its points should be representative. kernel="precomputed" is not
            supported.
        y : array-like of shape (n,)
            Class labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All classes that will occur; required in the first call.

        Returns
        -------
        self : KernelPerceptron
            The updated estimator.
        """
        self._refuse_compressed()
        is_continued = hasattr(self, "_learner")
        if not is_continued and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        all_classes = self.classes_ if classes is None else np.unique(classes)
        if is_continued and not np.array_equal(all_classes, self.classes_):
            raise ValueError(
                f"classes={all_classes.tolist()} differs from the classes in the first call to "
                f"partial_fit, {self.classes_.tolist()}; pass the same classes, or omit them"
            )
        if len(all_classes) < 2:
            raise ValueError(
                f"KernelPerceptron needs at least 2 classes, got {all_classes.tolist()}"
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all points at once; for partial_fit, pass a dict of "
                "weights, for example from scikit-learn's compute_class_weight on a sample"
            )
        X, y = self._check_points(X, y, reset=not is_continued, supervised=True, labels=True)
        check_classification_targets(y)
        unseen = np.setdiff1d(y, all_classes)
        if len(unseen):
            raise ValueError(
                f"y contains the labels {unseen.tolist()}, which are not among the classes "
                f"{all_classes.tolist()}; pass all classes in the first call to partial_fit"
            )
        weights = None
        labels = np.searchsorted(all_classes, y)
        if self.class_weight is not None:
            weights = class_weights(self.class_weight, all_classes, np.ones(len(all_classes)))[
                labels
            ]
        sample = Sample.of(X, weights, order=self._required_cpd_order).doubled()
        Y = encode_targets(labels, len(all_classes), "perceptron")[0]
        self._learn_stream(sample, Y, lambda kernel: self._make_learner(len(all_classes)))
        self.classes_ = all_classes
        return self
