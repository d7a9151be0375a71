"""A killed run leaves no broken file, and a resumed run gives identical results."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from shell import ENVIRONMENT

from mercer import KernelPCA
from mercer import load as load_trained

RUN = (
    "from mercer.app.cli import main; import mercer.tables._table_source as s; "
    "s._MAX_BLOCK_ROWS = 256; s._MIN_BLOCK_ROWS = 1; main()"
)
OPTIONS = ["--method", "nystroem", "--rank", "50", "-k", "2", "-q"]
FILES = ("embedding.csv", "embedding.png", "model.mercer", "report.html")


def start(arguments, cwd):
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=ENVIRONMENT)


def outputs(folder):
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.long)])
def test_killed_and_resumed_runs_end_with_the_same_bits(kills, tmp_path):
    X = np.random.default_rng(0).normal(size=(10_000, 5))
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", X)
    arguments = ["pca", "a.npy", *OPTIONS, "-o", "out"]
    begun = time.monotonic()
    assert start(arguments, tmp_path / "whole").wait() == 0
    took = time.monotonic() - begun
    wanted = outputs(tmp_path / "whole" / "out")
    assert list(wanted) == list(FILES)
    draw, out = random.Random(0), tmp_path / "killed" / "out"
    for _ in range(kills):
        run = start([*arguments, "--resume"], tmp_path / "killed")
        time.sleep(took * draw.uniform(0.3, 0.95))
        run.send_signal(signal.SIGKILL)
        run.wait()
        for name, data in outputs(out).items():
            assert data == wanted[name]
        checkpoint = out / ".unfinished" / "checkpoint.mercer"
        if checkpoint.exists():
            load_trained(checkpoint)  # complete, whenever the run was killed
    assert start([*arguments, "--resume"], tmp_path / "killed").wait() == 0
    assert outputs(out) == wanted
    assert sorted(os.listdir(out)) == sorted(FILES)


def test_a_checkpoint_of_other_options_is_refused(mercer, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(20_000, 5)))
    run = start(["pca", "a.npy", *OPTIONS, "-o", "out"], tmp_path)
    place = tmp_path / "out" / ".unfinished" / "checkpoint.mercer"
    while run.poll() is None and not place.exists():
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()
    if place.exists():
        done = mercer("pca", "a.npy", *OPTIONS, "-k", "3", "-o", "out", "--resume")
        assert done.code == 1 and "had a different input or different options" in done.err
    done = mercer("pca", "a.npy", *OPTIONS, "-o", "out")
    assert done.code == 0 and not place.exists()


def test_a_run_that_is_interrupted_is_resumed_or_discarded(mercer, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tables._table_source._MAX_BLOCK_ROWS", 50)
    monkeypatch.setattr("mercer.tables._table_source._MIN_BLOCK_ROWS", 1)
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(200, 3)))
    arguments = ["pca", "a.npy", *OPTIONS[:-1], "-o", "out"]
    assert mercer(*arguments).code == 0
    wanted = outputs(tmp_path / "out")
    partial_fit = KernelPCA.partial_fit
    for options, message in (
        (["--resume"], "resuming the interrupted run after 2 blocks of rows"),
        ([], "discarding the checkpoint of an interrupted run; use --resume to continue it"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(KernelPCA, "partial_fit", interrupted_after(3, partial_fit))
            assert mercer(*arguments).code == 130
        done = mercer(*arguments, *options)
        assert done.code == 0 and message in done.err, done
        assert outputs(tmp_path / "out") == wanted


def interrupted_after(count, method):
    """Return a method that is interrupted after some calls."""
    calls = itertools.count()

    def interrupted(*args):
        if next(calls) == count:
            raise KeyboardInterrupt
        return method(*args)

    return interrupted
