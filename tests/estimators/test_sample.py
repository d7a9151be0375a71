"""Validation of the arguments of fit."""

import numpy as np
import pytest

from mercer.estimators._training_sample import Sample, class_weights
from mercer.kernels import RBF, Precomputed

X = np.arange(12.0).reshape(6, 2)
W = np.array([1.0, 0.0, 2.0, 1.0, 0.0, 3.0])


def test_points_of_positive_weight():
    sample = Sample.of(X, W).with_targets(np.arange(6))
    assert len(sample) == 4 and not sample.whole and sample.flat
    assert np.array_equal(sample.points, X[[0, 2, 3, 5]])
    assert np.array_equal(sample.targets.ravel(), [0, 2, 3, 5])
    assert np.array_equal(sample.places, [0, -1, 1, 2, -1, 3])
    assert np.array_equal(sample.scatter(np.ones((4, 1))).ravel(), W > 0)
    some = sample.take(np.array([3, 0]))
    assert np.array_equal(some.points, X[[5, 0]])
    assert np.array_equal(some.weights, [3.0, 1.0])


def test_a_matrix_becomes_a_kernel_on_indices():
    K = RBF()(X)
    sample = Sample.of(K, W, precomputed=True)
    assert np.array_equal(sample.points, [0, 2, 3, 5])
    kernel = sample.resolve(Precomputed())
    assert kernel == Precomputed()  # a model does not store the matrix
    assert np.array_equal(sample.evaluated(kernel)(sample.points), K[np.ix_(*[[0, 2, 3, 5]] * 2)])
    assert np.shares_memory(sample.values.matrix, K)
    f = sample.expansion(kernel, np.ones((4, 1)))
    assert np.allclose(f(K[:2]).ravel(), K[:2] @ (W > 0))


def test_rules_see_weights_as_repetitions():
    even = Sample.of(X, np.full(6, 2.0))
    assert even.resolve(RBF("scale")) == Sample.of(X).resolve(RBF("scale"))
    assert even.resolve(RBF("scott")) == Sample.of(np.repeat(X, 2, axis=0)).resolve(RBF("scott"))
    assert Sample.of(X, np.ones(6)).resolve(RBF("scott")) == Sample.of(X).resolve(RBF("scott"))
    assert Sample.of(X, W).resolve(RBF("scale")) != Sample.of(X).resolve(RBF("scale"))


def test_classes_are_those_of_points_that_count():
    y = np.array(["a", "z", "b", "a", "z", "b"])
    sample = Sample.of(X, W).with_labels(y, "balanced", "Model")
    assert sample.classes.tolist() == ["a", "b"]
    assert np.array_equal(sample.labels, [0, 1, 0, 1])
    assert np.allclose(np.bincount(sample.labels, sample.weights), 3.5)
    with pytest.raises(ValueError, match="Model needs points of at least 2 classes"):
        Sample.of(X, (y == "a") * 1.0).with_labels(y, None, "Model")


def test_weights_of_classes_that_cannot_be():
    classes, sums = np.array(["a", "b"]), np.ones(2)
    with pytest.raises(ValueError, match="no weight for the classes"):
        class_weights({"A": 1.0, "b": 2.0}, classes, sums)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        class_weights({"a": 0.0}, classes, sums)


def test_points_in_another_order_are_taken_in_it():
    X = np.arange(6.0)[:, None]
    sample = Sample.of(X, np.arange(1.0, 7.0)).take(np.array([3, 0, 5, 1, 2, 4]))
    assert not sample.whole
    np.testing.assert_array_equal(sample.points[:, 0], [3, 0, 5, 1, 2, 4])
    np.testing.assert_array_equal(sample.weights, sample.points[:, 0] + 1.0)
    np.testing.assert_array_equal(sample.scatter(sample.points), X)
