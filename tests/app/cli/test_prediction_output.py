"""Options of `mercer predict`: intervals, copied columns, several files and output formats."""

import contextlib
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import mercer as library
from mercer import load as load_trained
from mercer.tables import predict_observation_interval, predict_observations, read_table


def columns(text):
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [row[j] for row in rows[1:]] for j, name in enumerate(rows[0])}


def run(code):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "<printed>", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.fixture
def noisy(mercer):
    """Write training and test rows with noise of standard deviation 2 and identifiers."""
    rng = np.random.default_rng(0)
    for name, n in (("train.csv", 150), ("test.csv", 400)):
        x = rng.uniform(-3, 3, n)
        y = 500 + 10 * np.sin(2 * x) + 2 * rng.normal(size=n)
        rows = [f"{i:04d},{x[i]:.4f},{'ab'[i % 2]},{y[i]:.4f}" for i in range(n)]
        Path(name).write_text("\n".join(["id,x,group,y", *rows]) + "\n")
    return mercer


METHODS = {
    "ridge": ("--kernel", "RBF(0.7)", "--set", "alpha=0.1"),
    "nystroem": ("--kernel", "RBF(0.7)", "--set", "alpha=0.1", "--set", "solver=nystroem"),
    "gp": ("--kernel", "2*RBF(0.7) + White(0.1)"),
    "gp-alpha": ("--kernel", "2*RBF(0.7)", "--set", "alpha=0.06"),
}


@pytest.mark.parametrize("name", METHODS)
def test_intervals_contain_new_observations(noisy, name):
    """The same meaning for all models: 90 % of new observations are inside."""
    method = "gp" if name.startswith("gp") else "ridge"
    noisy("fit", method, "train.csv", "--columns", "x", "--target", "y", *METHODS[name],
          "-o", "m.mercer")  # fmt: skip
    options = ("predict", "m.mercer", "test.csv", "--interval", "0.9", "--std")
    done = noisy(*options)
    assert done.code == 0, done
    told = columns(done.out)
    assert list(told) == ["row", "prediction", "std", "lower", "upper"]
    y = read_table("test.csv").columns["y"]
    lower, upper, std = (np.array(told[key], float) for key in ("lower", "upper", "std"))
    assert 0.85 < np.mean((lower < y) & (y < upper)) < 0.95
    np.testing.assert_allclose(np.mean(upper - lower), 2 * 1.645 * np.mean(std), rtol=0.1)
    trained = load_trained("m.mercer")
    new = trained.recipe.transform("test.csv")
    bounds = trained.estimator.predict_interval(new, 0.9)
    np.testing.assert_allclose(np.stack([lower, upper], axis=1), bounds, rtol=1e-9)
    assert run(noisy(*options, "--show-code").out) == done.out


def test_intervals_without_leave_one_out_models_assume_gaussian_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    process = library.GaussianProcessRegressor("RBF(1.0) + White(0.1)", solver="cg", rank=5)
    process.set_params(optimizer=None).fit(X, y)
    with pytest.warns(UserWarning, match="assume Gaussian noise, because .* solver='cg'"):
        bounds = predict_observation_interval(process, X, 0.9)
    mean, std = predict_observations(process, X)
    np.testing.assert_allclose(bounds[:, 1], mean + 1.6448536 * std, rtol=1e-6)
    vectors = library.SVR().fit(X, y)
    with pytest.raises(ValueError, match="conformalize"):
        predict_observation_interval(vectors, X, 0.9)
    vectors.conformalize(X, y)
    np.testing.assert_array_equal(
        predict_observation_interval(vectors, X, 0.9), vectors.predict_interval(X, 0.9)
    )


def test_standard_deviations_include_the_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    for alpha in (1e-3, 0.5):
        ridge = library.KernelRidge(alpha=alpha, kernel="rbf", fit_intercept=True).fit(X, y)
        mean, std = predict_observations(ridge, X)
        np.testing.assert_array_equal(mean, ridge.predict(X))
        K = ridge.kernel_(X)
        c = (y - ridge.intercept_) @ np.linalg.solve(K + alpha * np.eye(50), y - ridge.intercept_)
        noise = np.square(std) - np.square(ridge.predict(X, return_std=True)[1])
        np.testing.assert_allclose(noise, alpha * c / 49, rtol=1e-6)
    gp = library.GaussianProcessRegressor("RBF(1.0)", alpha=0.3, optimizer=None).fit(X, y)
    noise = np.square(predict_observations(gp, X)[1]) - np.square(gp.predict(X, return_std=True)[1])
    np.testing.assert_allclose(noise, 0.3)
    gp = library.GaussianProcessRegressor("RBF(1.0)", alpha=np.full(50, 0.3)).fit(X, y)
    with pytest.raises(ValueError, match="one noise variance for each training row"):
        predict_observations(gp, X)
    with pytest.raises(ValueError, match="SVR has no standard deviations"):
        predict_observations(library.SVR().fit(X, y), X)


def test_models_without_intervals_or_probabilities(noisy):
    noisy("fit", "svr", "train.csv", "--columns", "x", "--target", "y", "-o", "svr.mercer")
    noisy("fit", "svc", "train.csv", "--columns", "x", "--target", "group", "-o", "svc.mercer")
    for arguments, message in [
        (("svr.mercer", "--std"), "omit --std: use a model from `mercer fit ridge`"),
        (("svr.mercer", "--interval", "0.5"), "omit --interval: use a model"),
        (("svc.mercer", "--std"), "it predicts labels; for probabilities, use --proba"),
        (("svc.mercer", "--proba"), "SVC does not compute probabilities; omit --proba"),
    ]:
        model, *more = arguments
        done = noisy("predict", model, "test.csv", *more)
        assert done.code == 1 and message in done.err and done.out == "", done
    assert noisy("predict", "svr.mercer", "test.csv", "--interval", "90").code == 2


def test_copied_columns(noisy):
    noisy("fit", "ridge", "train.csv", "--columns", "x", "--target", "y", "-o", "m.mercer")
    options = ("predict", "m.mercer", "test.csv", "--keep", "id,group")
    done = noisy(*options)
    told = columns(done.out)
    assert list(told) == ["row", "id", "group", "prediction"]
    assert told["id"][:2] == ["0000", "0001"]  # as written in the file
    assert run(noisy(*options, "--show-code").out) == done.out
    told = columns(noisy("predict", "m.mercer", "test.csv", "--keep", "all").out)
    assert list(told) == ["row", "id", "x", "group", "y", "prediction"]
    given = columns(Path("test.csv").read_text())
    assert all(told[name] == given[name] for name in ("id", "group", "y"))
    np.testing.assert_array_equal(np.array(told["x"], float), np.array(given["x"], float))
    unknown = noisy("predict", "m.mercer", "test.csv", "--keep", "ids")
    assert unknown.code == 2 and "did you mean 'id'?" in unknown.err, unknown


def test_several_files(noisy):
    noisy("fit", "ridge", "train.csv", "--columns", "x", "--target", "y", "-o", "m.mercer")
    options = ("predict", "m.mercer", "train.csv", "test.csv", "--keep", "id")
    done = noisy(*options)
    told = columns(done.out)
    assert list(told) == ["file", "row", "id", "prediction"]
    assert told["file"] == ["train.csv"] * 150 + ["test.csv"] * 400
    assert told["row"] == [*map(str, range(1, 151)), *map(str, range(1, 401))]
    alone = columns(noisy("predict", "m.mercer", "test.csv").out)
    assert told["prediction"][150:] == alone["prediction"]
    assert run(noisy(*options, "--show-code").out) == done.out
    assert noisy("predict", "m.mercer").code == 2


def test_missing_values_in_one_of_several_files(noisy):
    fit = ("--columns", "x", "--target", "y", "--impute", "drop", "-o", "m.mercer")
    noisy("fit", "ridge", "train.csv", *fit)
    Path("empty.csv").write_text("x\n?\nNA\n")
    Path("one.csv").write_text("x\n1\nNA\n")
    done = noisy("predict", "m.mercer", "empty.csv", "one.csv", "empty.csv")
    told = columns(done.out)
    assert told["file"] == ["empty.csv"] * 2 + ["one.csv"] * 2 + ["empty.csv"] * 2
    assert [bool(value) for value in told["prediction"]] == [False, False, True, *[False] * 3]
    assert "5 of 6 rows have missing values" in done.err
    assert noisy("predict", "m.mercer", "empty.csv").code == 1


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "jsonl.gz", "parquet", "arrow", "npz"])
def test_formats_of_the_output(noisy, ending):
    if ending in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    noisy("fit", "ridge", "train.csv", "--columns", "x", "--target", "y", "-o", "m.mercer")
    path = f"p.{ending}"
    done = noisy("predict", "m.mercer", "test.csv", "--keep", "all", "-o", path)
    assert done.code == 0 and done.out == "" and f"wrote {path}" in done.err, done
    table = read_table(path)
    assert list(table.columns) == ["row", "id", "x", "group", "y", "prediction"]
    trained = load_trained("m.mercer")
    expected = trained.predict("test.csv")
    np.testing.assert_array_equal(table.columns["prediction"], expected)
    np.testing.assert_array_equal(table.columns["x"], read_table("test.csv").columns["x"])
    if ending == "jsonl":
        first = json.loads(Path(path).read_text().splitlines()[0])
        assert first["id"] == 0 and isinstance(first["id"], int) and isinstance(first["x"], float)


def test_copies_in_other_commands(noisy):
    noisy("pca", "train.csv", "--columns", "x", "--color", "group", "-k", "1", "-o", "out", "-q")
    told = columns(noisy("transform", "out/model.mercer", "test.csv", "--keep", "id").out)
    assert list(told) == ["row", "id", "component1"]
    told = columns(noisy("denoise", "out/model.mercer", "test.csv", "--keep", "x").out)
    assert list(told) == ["row", "input_x", "x"]
