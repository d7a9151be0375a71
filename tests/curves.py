"""Points on a curve and the oil flow data, for tests of embeddings, and a score based on labels."""

import numpy as np
import pytest
from data_folder import DATA

t = np.linspace(-1.5, 1.5, 60)


def bent(s):
    """Return points on a curve that is one-to-one along its longest axis."""
    return np.c_[s, s**2 / 2, np.sin(2 * s), s**3 / 4]


X = bent(t) + 0.03 * np.random.default_rng(0).normal(size=(60, 4))
GAPS = np.where(np.arange(60)[:, None] % 20 == 3, np.nan, X)


def errors(Z, labels):
    """Return the number of points whose nearest neighbour in the embedding has another label."""
    D = np.linalg.norm(Z[:, None] - Z, axis=2)
    np.fill_diagonal(D, np.inf)
    return int(np.sum(labels[D.argmin(axis=1)] != labels))


def oil_flow():
    """Return the 1000 training points and their labels; skip the test if the file is missing."""
    path = DATA / "oil_flow" / "oil_flow.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path) as file:
        return file["X_train"], file["y_train"]
