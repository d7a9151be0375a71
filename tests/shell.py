"""Run the `mercer` command, or a Python script, in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}


def process(*arguments, cwd, **options):
    """Run the `mercer` command in another process."""
    command = [
        sys.executable,
        "-c",
        "from mercer.app.cli import main; main()",
        *map(str, arguments),
    ]
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, text=True, capture_output=True, check=False, **options
    )


def python(code, cwd):
    """Run a script in another process and return its standard output."""
    done = subprocess.run(
        [sys.executable, "-"], input=code, cwd=cwd, env=ENVIRONMENT, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
