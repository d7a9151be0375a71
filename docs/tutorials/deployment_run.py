"""Measure the models of the tutorial deployment.md, and draw its picture.

    python docs/tutorials/deployment_run.py

Sizes are those of the files of `mercer.save`. Times are processor times relative to the
model before compression, for one row and for a batch of 1000 rows; each is the smallest of several
repetitions.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time
from timeit import repeat

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import KernelRidge, compress, to_primal

PICTURE = Path(__file__).with_name("deployment.png")
N_POINTS = (25, 50, 100, 200, 400)
N_REPEATS = 15


def times(model, X) -> tuple[float, float]:
    """Return the processor time of a prediction of one row and of all rows, with one thread."""
    model.set_params(n_jobs=1)
    options = {"timer": process_time, "repeat": N_REPEATS}
    one = min(repeat(lambda: model.predict(X[:1]), number=50, **options)) / 50
    return one, min(repeat(lambda: model.predict(X), number=5, **options)) / 5


def file_size(model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mercer"
        mercer.save(model, path)
        return path.stat().st_size


def main() -> None:
    X, y = make_friedman1(4000, n_features=8, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    rbf = KernelRidge(0.1, kernel="rbf", gamma=0.05, fit_intercept=True).fit(X, y)
    cubic = KernelRidge(1.0, kernel="poly", degree=3, gamma=0.1, fit_intercept=True).fit(X, y)
    models = {"RBF, 3000 points": (rbf, rbf)}
    models |= {f"RBF, compressed to {m}": (compress(rbf, m), rbf) for m in N_POINTS}
    models |= {"cubic, 3000 points": (cubic, cubic), "cubic, to_primal": (to_primal(cubic), cubic)}
    print("model                    R2      max difference  bound    size KiB  one row  batch")
    rows = {}
    for name, (model, base) in models.items():
        reduction = getattr(model, "reduction_", None)
        bound = 0.0 if reduction is None else float(np.max(reduction.bound(X_test)))
        difference = float(np.abs(model.predict(X_test) - base.predict(X_test)).max())
        one, batch = (t / b for t, b in zip(times(model, X_test), times(base, X_test), strict=True))
        rows[name] = (model.score(X_test, y_test), difference, bound, one, batch)
        print(
            f"{name:<24} {rows[name][0]:.4f}  {difference:<14.2g}  {bound:<7.3g}  "
            f"{file_size(model) / 1024:>8.0f}  {one:>7.2f}  {batch:>5.2f}"
        )
    draw([rows[f"RBF, compressed to {m}"] for m in N_POINTS], rows["RBF, 3000 points"][0])


def draw(rows: list[tuple], score: float) -> None:
    """Draw score, errors and relative time by the number of points."""
    R2, difference, bound, one, batch = np.array(rows).T
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    left.semilogx(N_POINTS, R2, "o-")
    left.axhline(score, color="0.3", linestyle="--", label="3000 points")
    left.set(title="accuracy", ylabel="R² of 1000 test rows")
    left.legend(loc="lower right")
    middle.loglog(N_POINTS, bound, "o-", label="bound: ‖f − g‖ √k(x, x)")
    middle.loglog(N_POINTS, difference, "s-", label="largest difference")
    middle.set(title="error of the compressed model")
    middle.legend(loc="upper right")
    middle.set_ylim(top=3000)
    right.semilogx(N_POINTS, one, "o-", label="one row")
    right.semilogx(N_POINTS, batch, "s-", label="1000 rows")
    right.set(title="time relative to 3000 points", ylim=(0, None))
    right.legend()
    for axes in (left, middle, right):
        axes.set_xticks(N_POINTS, [str(m) for m in N_POINTS])
        axes.minorticks_off()
        axes.set_xlabel("points after compress")
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main()
