"""Messy files: each opens at the first attempt, or fails with one message that lists everything."""

import csv
import io
import json
import re
import shlex
import sys
from datetime import date

import numpy as np
import pytest
from tables.messy_files import CITIES, FILES, N_ROWS, csv_bytes, houses

import mercer as library
from mercer.tables import read_table

MESSAGE = re.compile(r"^(?:mercer|Error): ", re.MULTILINE)  # the beginning of an error message
TREATMENTS = re.compile(r"^column +type +treatment +missing$", re.MULTILINE)
NAMES = [file.name + " from stdin" * file.stdin for file in FILES]


@pytest.fixture
def run(mercer, monkeypatch):
    """Run a command with the bytes of a file as its standard input."""

    def start(content, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return mercer(*arguments)

    return start


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def commands(file, data):
    """Return the commands that read the file, with the target as the only option about columns."""
    target = f"--target={file.target}"
    color = [] if file.target == "prize" else [f"--color={file.target}"]
    return {
        "pca": ["pca", data, *color],
        "fit": ["fit", file.method, data, target, "-o", "m.mercer"],
        "score": ["score", file.method, data, target, "--cv", "2", "--json"],
        "explore": ["explore", data, *color, "--export", "page.html"],
    }


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def is_one_message(done):
    return (
        done.code in (1, 2)
        and len(MESSAGE.findall(done.err)) == 1
        and "Traceback" not in done.err
        and "--debug" not in done.err
        and not done.out
    )


def check_refused(file, results):
    """Yield the defects of the messages about a file that is refused."""
    for command, done in results.items():
        if command not in file.commands:
            if done.code != 0 and not is_one_message(done):
                yield f"{command} should succeed or fail with one message: {done}"
        elif not is_one_message(done):
            yield f"{command} should fail with exactly one message: {done}"
        else:
            message = done.err[MESSAGE.search(done.err).start() :]
            missing = [part for part in file.refused if part not in message]
            yield from (f"{command} should mention {part!r}: {message}" for part in missing)


def check_values(file):
    """Yield the columns whose values differ from the expected ones."""
    table = read_table(file.name)
    for name, expected in file.values().items():
        found = table.columns.get(name)
        dates = isinstance(expected[0], date)
        expected = np.array(expected, dtype="M8[us]" if dates else float)
        if found is None or found.dtype != expected.dtype:
            yield f"{name!r} should be of dtype {expected.dtype}: {found}"
        elif not (found == expected if dates else np.isclose(found, expected, rtol=1e-5)).all():
            yield f"{name!r} has wrong values: {found[:5]} instead of {expected[:5]}"


def check_opens(file, results, new, run):
    """Yield the defects of the results for a file that opens."""
    for command, done in results.items():
        if done.code != 0:
            yield f"{command} should succeed: {done}"
        elif not TREATMENTS.search(done.err):
            yield f"{command} should print the treatment of the columns: {done}"
    pca, fit, score = (results[name] for name in ("pca", "fit", "score"))
    if pca.code == 0 and len(rows(pca.out)) != file.rows:
        yield f"pca should give {file.rows} rows, not {len(rows(pca.out))}"
    if score.code == 0 and (mean := json.loads(score.out)["mean"]) < file.score:
        yield f"score should be at least {file.score}, not {mean:.3f}: {fit.err}"
    if fit.code:
        return
    if file.values is not None and not file.stdin:
        yield from check_values(file)
    yield from (
        f"fit should print {note!r}: {fit.err}" for note in file.notes if note not in fit.err
    )
    treatments = {t.column: t.type for t in library.load("m.mercer").recipe.treatments_}
    for column, expected in file.types.items():
        if treatments.get(column) != expected:
            yield f"{column!r} should be of type {expected}, not {treatments.get(column)}"
    data = "-" if file.stdin else new.name
    done = run(new.read_bytes(), "predict", "m.mercer", data)
    if done.code != 0:
        yield f"predict should succeed: {done}"
    elif sum(bool(row["prediction"]) for row in rows(done.out)) != file.rows:
        yield f"predict should give {file.rows} predictions: {done}"
    done = run(new.read_bytes(), "score", "m.mercer", data)
    if done.code != 0:
        yield f"score of the saved model should succeed: {done}"


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_a_messy_file(file, run, tmp_path):
    if file.needs:
        pytest.importorskip(file.needs)
    path = file.write(tmp_path)
    content = path.read_bytes()
    new = path
    if file.new is not None:
        new = path.with_name(f"new_{path.name}")
        new.write_bytes(file.new())
    if file.stdin:
        path = path.rename(tmp_path / "elsewhere")  # so that only standard input has the rows
        new = path
    data = "-" if file.stdin else file.name
    results = {name: run(content, *arguments) for name, arguments in commands(file, data).items()}
    check = check_refused(file, results) if file.refused else check_opens(file, results, new, run)
    defects = list(check)
    assert not defects, f"{file.name}: {file.description}\n" + "\n".join(defects)


def test_there_are_many_files_with_different_names():
    names = [file.name for file in FILES if not file.stdin]
    assert len(FILES) >= 60 and len(names) == len(set(names))
    assert all(file.content() == file.content() for file in FILES[:10])


def mixed_table(rng):
    table = houses(rng)
    table["area"][3] = table["city"][8] = None
    return {
        **table,
        "patient id": [f"P-{i:04}" for i in range(N_ROWS)],
        "year": [2024] * N_ROWS,
        "remark": [None] * N_ROWS,
        "day": [f"2024-05-{1 + i % 28:02}" for i in range(N_ROWS)],
    }


@pytest.mark.parametrize("command", ["fit ridge", "score ridge", "pca", "explore"])
def test_strict_lists_all_problems_and_options_that_work(run, tmp_path, command, rng):
    (tmp_path / "a.csv").write_bytes(csv_bytes(mixed_table(rng)))
    name, *method = command.split()
    options = {"fit": ["--target", "price"], "score": ["--target", "price"]}.get(
        name, ["--color", "price"]
    )
    options += ["--export", "page.html"] if name == "explore" else []
    assert run(b"", name, *method, "a.csv", *options).code == 0
    done = run(b"", name, *method, "a.csv", *options, "--strict")
    assert is_one_message(done), done
    for column in ("area", "city", "patient id", "year", "remark", "day"):
        assert f"'{column}'" in done.err, done
    command = shlex.split(done.err.rpartition("The complete command: ")[2])
    assert command[0] == "mercer", done
    assert command[1] == name
    again = run(b"", *command[1:])
    assert again.code == 0, f"{command}\n{again}"


@pytest.mark.parametrize("how", ["ignore", "error", "drop"])
def test_unknown_categories(run, tmp_path, how, rng):
    table = houses(rng)
    (tmp_path / "a.csv").write_bytes(csv_bytes(table))
    new = table | {"city": ["Worms" if i in (2, 5) else c for i, c in enumerate(table["city"])]}
    (tmp_path / "new.csv").write_bytes(csv_bytes(new))
    assert set(new["city"]) - set(CITIES) == {"Worms"}
    options = ("--target", "price", "--unknown", how, "-o", "m.mercer")
    done = run(b"", "fit", "ridge", "a.csv", *options)
    assert done.code == 0, done
    done = run(b"", "predict", "m.mercer", "new.csv")
    if how == "error":
        assert is_one_message(done) and "'city'" in done.err and "'Worms'" in done.err, done
        assert "line 4" in done.err, done
    else:
        assert done.code == 0 and "'city'" in done.err and "'Worms'" in done.err, done
        empty = [i for i, row in enumerate(rows(done.out)) if not row["prediction"]]
        assert empty == ([] if how == "ignore" else [2, 5])
