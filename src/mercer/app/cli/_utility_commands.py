"""Commands that need no input file: mercer check, kernels, compile and demo."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

from ... import tables
from ._console import FAILED, NOT_CONVERGED, Session, atomic_write, session_options
from ._main import app
from ._options import output_option


@app.command()
@session_options
@click.argument("expression")
@click.pass_context
def check(ctx: click.Context, session: Session, expression: str) -> None:
    r"""Check whether a kernel is positive semi-definite.

    The result for the kernel EXPRESSION is a proof, a counterexample, or "undecided". The exit
    codes are 0 (proof), 1 (counterexample) and 3 (undecided).

    \b
    Examples:
      mercer check "RBF() + 2*Linear()"
      mercer check "Sigmoid()"
    """
    from ...kernels import as_kernel

    result = as_kernel(expression).validity()
    session.result(
        str(result),
        status=result.status,
        kernel=repr(result.kernel),
        witness=None if result.counterexample is None else str(result.counterexample),
    )
    ctx.exit({"proved": 0, "refuted": FAILED}.get(result.status, NOT_CONVERGED))


@app.command()
@session_options
@click.argument("name", required=False)
def kernels(session: Session, name: str | None) -> None:
    r"""List all kernels, or show the documentation of one.

    Without NAME, lists all kernels with their formulas.

    \b
    Examples:
      mercer kernels
      mercer kernels Matern
    """
    from ... import kernels as package
    from ...kernels import Kernel, as_kernel, parse_kernel

    known = {
        key: cls
        for key in package.__all__
        if inspect.isclass(cls := getattr(package, key))
        and issubclass(cls, Kernel)
        and not inspect.isabstract(cls)
    }
    if name is not None:
        name = {key.lower(): key for key in known}.get(name.lower(), name)
        if name not in known:
            parse_kernel(f"{name}()")  # if the name is unknown, the error suggests the closest one
            name = type(as_kernel(name)).__name__  # `name` is a scikit-learn name such as "poly"
        session.result(
            inspect.getdoc(known[name]) or "", name=name, doc=inspect.getdoc(known[name])
        )
        return
    rows = [(key, *_entry(inspect.getdoc(cls) or "")) for key, cls in known.items()]
    width = max(len(key) for key, *_ in rows)
    lines = [
        f"{key:<{width}}  {summary}" + "".join(f"\n{'':<{width}}      {line}" for line in formula)
        for key, summary, formula in rows
    ]
    session.result(
        "\n".join(lines),
        kernels=[
            {"name": key, "what": summary, "formula": formula} for key, summary, formula in rows
        ],
    )


def _entry(doc: str) -> tuple[str, list[str]]:
    """Return the first paragraph of a docstring, and the lines of the formula that follows it."""
    first, _, rest = doc.partition("\n\n")
    formula = rest.partition("\n\n")[0]
    indented = [line.strip() for line in formula.splitlines()] if formula.startswith("  ") else []
    return re.sub(r"\s+", " ", first), indented


@app.command("compile")
@session_options
def compile_(session: Session) -> None:
    r"""Compile all numba functions in advance.

    Later commands then do not have to wait for the compilation.

    \b
    Examples:
      mercer compile
      mercer compile --quiet
    """
    from ...compile import compile_loops

    with session.progress("compiling") as update:
        compiled = compile_loops(lambda step: update(_fraction(step)))
    session.result(
        str(compiled), loops=compiled.loops, fresh=compiled.fresh, folder=compiled.folder
    )


def _fraction(step: str) -> float | None:
    """Return the fraction of work completed after a progress step, or None if unknown."""
    done, total = getattr(step, "done", 0), getattr(step, "total", 0)
    return done / total if total else None


@app.command()
@session_options
@output_option(
    "Folder for the data, the figure, the model and the report.",
    folder=True,
    default="out",
    show_default=True,
)
def demo(session: Session, output: str) -> None:
    r"""Run kernel PCA on a data set of handwritten digits.

    Writes the 1797 images to a CSV file, and then an embedding, a figure, a model and a report.

    \b
    Examples:
      mercer demo
      mercer demo --quiet -o digits
    """
    from sklearn.datasets import load_digits

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    pixels = {f"pixel{j + 1}": X[:, j].astype(int) for j in range(X.shape[1])}
    with atomic_write(folder / "digits.csv") as file:
        tables.Table({"digit": digit, **pixels}).write(file)
    command = ["pca", str(folder / "digits.csv"), "-k", "9", "--color", "digit", "-o", output]
    command += ["--kernel", "rbf", "--set", "gamma=scale"]
    session.note(f"$ mercer {' '.join(command)}\n")
    app.main([*command, *["--quiet"] * session.quiet], prog_name="mercer", standalone_mode=False)
    session.summary(
        f"\nOpen {folder / 'report.html'} in a browser; the figure is "
        f"{folder / 'embedding.png'}.\n"
        f"Try next:\n"
        f"  mercer info {folder / 'model.mercer'}\n"
        f"  mercer transform {folder / 'model.mercer'} {folder / 'digits.csv'} | head\n"
        f"  mercer score svc {folder / 'digits.csv'} --target digit",
        output,
        folder=output,
    )
