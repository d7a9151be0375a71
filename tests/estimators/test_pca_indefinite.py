"""Indefinite similarities: errors with numbers, and clipping, flipping or shifting the spectrum."""

import re

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.kernels import RBF, Callable, Sigmoid
from mercer.solvers import BlockKrylov

rng = np.random.default_rng(7)
X = rng.normal(size=(70, 4))
Z = rng.normal(size=(23, 4))
W = rng.integers(1, 4, size=70).astype(float)
KERNEL = Sigmoid(gamma=2.0, coef0=-1.0)
POLICIES = ["clip", "flip", "shift"]
every_policy = pytest.mark.parametrize("policy", POLICIES)


def similarity(A, B):
    """Return a symmetric matrix with many negative eigenvalues, which is not a kernel matrix."""
    return np.cos(3.0 * np.abs(A[:, None] - B[None]).sum(axis=2)) + 0.5 * (A @ B.T)


def centred(K, w=None):
    w = np.full(len(K), 1.0 / len(K)) if w is None else w / w.sum()
    M = np.eye(len(K)) - np.outer(np.ones(len(K)), w)
    return M @ K @ M.T


def mended(K_c, policy):
    """Return the positive semidefinite matrix that the policy puts in place of K_c."""
    values, U = np.linalg.eigh(K_c)
    real = np.abs(values) > 1e-10 * np.abs(values).max()
    new = {
        "clip": np.maximum(values, 0.0),
        "flip": np.abs(values),
        "shift": np.where(real, values - values.min(), 0.0),
    }[policy]
    return (U * new) @ U.T


MATRICES = {"sigmoid": KERNEL(X), "similarity": similarity(X, X)}
CROSS = {"sigmoid": KERNEL(Z, X), "similarity": similarity(Z, X)}
every_matrix = pytest.mark.parametrize("name", list(MATRICES))


@every_matrix
def test_the_examples_are_what_they_claim(name):
    values = np.linalg.eigvalsh(centred(MATRICES[name]))
    assert values[0] < -0.05 * values[-1] and np.count_nonzero(values < -1e-6) > 10


@every_matrix
@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "arpack"])
def test_raise_says_how_much(name, solver):
    values = np.linalg.eigvalsh(centred(MATRICES[name]))[::-1]
    positive = np.count_nonzero(values > 1e-8)
    k = 69 if solver != "arpack" else 68
    model = KernelPCA(k, kernel="precomputed", eigen_solver=solver)
    with pytest.raises(ValueError, match="There are significant negative eigenvalues") as raised:
        model.fit(MATRICES[name])
    text = str(raised.value)
    share = float(re.search(r"\((\S+) of the maximum positive\)", text)[1])
    assert share == pytest.approx(-values[k - 1] / values[0], rel=1e-5)
    assert "the sigmoid kernel usually is not" in text
    assert "indefinite='clip', 'flip' or 'shift'" in text
    # Up to the number of positive eigenvalues, components are accepted.
    few = KernelPCA(positive // 2, kernel="precomputed", eigen_solver=solver).fit(MATRICES[name])
    np.testing.assert_allclose(few.eigenvalues_, values[: positive // 2], rtol=1e-9)


def test_all_negative():
    with pytest.raises(ValueError, match=r"All eigenvalues are negative \(the largest is"):
        KernelPCA(2, kernel="precomputed").fit(-np.eye(6))


@every_matrix
@every_policy
@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
def test_scores_have_the_repaired_matrix_as_their_gram(name, policy, weights):
    K = MATRICES[name]
    model = KernelPCA(kernel="precomputed", indefinite=policy)
    scores = model.fit_transform(K, sample_weight=weights)
    S = np.ones(70) if weights is None else np.sqrt(70 * weights / weights.sum())
    expected = mended(S[:, None] * centred(K, weights) * S, policy)
    np.testing.assert_allclose((S[:, None] * scores) @ (S[:, None] * scores).T, expected, atol=1e-9)
    np.testing.assert_allclose(model.transform(K), scores, atol=1e-9)
    assert np.all(model.eigenvalues_ > 0) and np.all(np.diff(model.eigenvalues_) <= 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-12)
    count = 70 if weights is None else W.sum()
    variance = np.trace(expected) / 70 * count / (count - 1)
    assert model.total_variance_ == pytest.approx(variance, rel=1e-9)


@every_policy
def test_new_points_follow_the_same_linear_map(policy):
    K, cross = MATRICES["sigmoid"], CROSS["sigmoid"]
    model = KernelPCA(kernel="precomputed", indefinite=policy).fit(K)
    direct = KernelPCA(kernel=KERNEL, indefinite=policy).fit(X)
    scores = model.transform(cross)
    np.testing.assert_allclose(direct.transform(Z), scores, atol=1e-8)
    # The linear map from the centred rows of the training points to their scores.
    K_c = centred(K)
    rows = cross - cross.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    training = model.transform(K)
    gain = np.linalg.lstsq(K_c, training, rcond=1e-10)[0]
    np.testing.assert_allclose(rows @ gain, scores, atol=1e-6)


@every_policy
@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_the_leading_ones(policy, solver):
    K = MATRICES["similarity"]
    every = KernelPCA(kernel="precomputed", indefinite=policy).fit(K)
    few = KernelPCA(4, kernel="precomputed", indefinite=policy, eigen_solver=solver).fit(K)
    expected = np.linalg.eigvalsh(mended(centred(K), policy))[::-1]
    np.testing.assert_allclose(few.eigenvalues_, expected[:4], rtol=1e-10)
    np.testing.assert_allclose(few.transform(K), every.transform(K)[:, :4], atol=1e-9)
    np.testing.assert_allclose(
        few.explained_variance_ratio_, expected[:4] / expected.sum(), rtol=1e-9
    )
    share = KernelPCA(0.6, kernel="precomputed", indefinite=policy).fit(K)
    reached = np.cumsum(expected) / expected.sum()
    assert share.n_components_ == np.argmax(reached >= 0.6) + 1
    white = KernelPCA(4, kernel="precomputed", indefinite=policy, whiten=True).fit_transform(K)
    np.testing.assert_allclose(white.std(axis=0, ddof=1), 1.0, rtol=1e-9)


def test_flipping_keeps_directions_that_clipping_drops():
    K = MATRICES["similarity"]
    sizes = {
        p: KernelPCA(kernel="precomputed", indefinite=p).fit(K).n_components_ for p in POLICIES
    }
    values = np.linalg.eigvalsh(centred(K))
    assert sizes["clip"] == np.count_nonzero(values > 1e-9)
    assert sizes["flip"] == np.count_nonzero(np.abs(values) > 1e-9)
    assert sizes["shift"] == sizes["flip"] - 1  # the lowest eigenvalue becomes 0
    assert sizes["clip"] < sizes["shift"]


@every_policy
def test_a_kernel_is_left_as_it_is(policy):
    plain = KernelPCA(5, kernel="rbf", gamma=0.2, eigen_solver="dense").fit(X)
    model = KernelPCA(5, kernel="rbf", gamma=0.2, indefinite=policy).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(model.transform(Z), plain.transform(Z), atol=1e-11)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-10
    )
    full = KernelPCA(kernel=RBF(1.0), indefinite=policy).fit(X)
    assert full.n_components_ == 69 and full.transform(Z).shape == (23, 69)


@every_policy
def test_points_of_weight_zero(policy):
    here = np.arange(70) % 5 > 0
    K = MATRICES["similarity"]
    model = KernelPCA(3, kernel="precomputed", indefinite=policy)
    scores = model.fit_transform(K, sample_weight=here.astype(float))
    part = KernelPCA(3, kernel="precomputed", indefinite=policy).fit(K[np.ix_(here, here)])
    np.testing.assert_allclose(part.transform(K[:, here]), scores, atol=1e-9)


@every_policy
def test_float32(policy):
    K = MATRICES["similarity"]
    scores = KernelPCA(3, kernel="precomputed", indefinite=policy).fit_transform(K)
    single = KernelPCA(3, kernel="precomputed", indefinite=policy)
    found = single.fit_transform(K.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scores, atol=2e-4)
    np.testing.assert_allclose(single.transform(K.astype(np.float32)), found, atol=2e-4)


@every_policy
@pytest.mark.parametrize("solver", ["krylov", "arpack", "power", "randomized", BlockKrylov()])
def test_the_whole_spectrum_is_needed(policy, solver):
    model = KernelPCA(2, kernel=KERNEL, indefinite=policy, eigen_solver=solver)
    text = (
        rf"indefinite='{policy}' needs the whole spectrum, which \w+\(.*\) does not compute; use ei"
    )
    with pytest.raises(ValueError, match=text):
        model.fit(X)


@every_policy
def test_approximations_of_what_is_not_a_kernel(policy):
    """Landmarks and features require a positive semidefinite kernel, or raise an error."""
    for solver in ("nystroem", "features"):
        model = KernelPCA(2, kernel=KERNEL, indefinite=policy, eigen_solver=solver)
        text = f"indefinite='{policy}' needs the whole spectrum, which landmarks and random feature"
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=text):
                method(X)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_landmarks_refuse_what_is_not_a_kernel():
    with pytest.raises(ValueError, match="not positive semidefinite"):
        KernelPCA(2, kernel=KERNEL, eigen_solver="nystroem", rank=40).fit(X)


def test_an_unknown_policy():
    with pytest.raises(ValueError, match="The 'indefinite' parameter of KernelPCA must be"):
        KernelPCA(2, indefinite="ignore").fit(X)


@every_policy
def test_outliers_and_text(policy):
    edit = Callable(lambda s, t: -float(sum(a != b for a, b in zip(s, t, strict=True))), "pair")
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(40)]
    model = KernelPCA(3, kernel=edit, indefinite=policy, contamination=0.1).fit(words)
    assert isinstance(model.summary(), str)
    np.testing.assert_allclose(model.transform(words), model.fit_transform(words), atol=1e-9)
    assert np.all(model.reconstruction_error(words) >= 0)
