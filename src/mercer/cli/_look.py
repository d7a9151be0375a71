"""mercer check, kernels, compile and demo: what needs no file of the user's."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

from ._app import FAILED, NOT_CONVERGED, app
from ._session import Output, Session, session_options


@app.command()
@session_options
@click.argument("expression")
@click.pass_context
def check(ctx: click.Context, session: Session, expression: str) -> None:
    r"""Say whether EXPRESSION is a Mercer kernel: a proof, or a witness against it, or neither.

    Exit code 0 for a proof, 1 for a witness, 3 for neither.

    \b
      mercer check "RBF() + 2*Linear()"
      mercer check "Sigmoid()"
    """
    from ..kernels import as_kernel

    found = as_kernel(expression).validity()
    session.result(
        str(found),
        status=found.status,
        kernel=repr(found.kernel),
        witness=None if found.witness is None else str(found.witness),
    )
    ctx.exit({"proved": 0, "refuted": FAILED}.get(found.status, NOT_CONVERGED))


@app.command()
@session_options
@click.argument("name", required=False)
def kernels(session: Session, name: str | None) -> None:
    """List the kernels with their formulas, or say all about the one called NAME."""
    from .. import kernels as room
    from ..kernels import Kernel, as_kernel, parse_kernel

    known = {
        key: cls
        for key in room.__all__
        if inspect.isclass(cls := getattr(room, key))
        and issubclass(cls, Kernel)
        and not inspect.isabstract(cls)
    }
    if name is not None:
        name = {key.lower(): key for key in known}.get(name.lower(), name)
        if name not in known:
            parse_kernel(f"{name}()")  # which names the nearest
            name = type(as_kernel(name)).__name__  # one of scikit-learn's
        session.result(
            inspect.getdoc(known[name]) or "", name=name, doc=inspect.getdoc(known[name])
        )
        return
    rows = [(key, *_entry(inspect.getdoc(cls) or "")) for key, cls in known.items()]
    width = max(len(key) for key, *_ in rows)
    words = [
        f"{key:<{width}}  {said}" + "".join(f"\n{'':<{width}}      {line}" for line in formula)
        for key, said, formula in rows
    ]
    session.result(
        "\n".join(words),
        kernels=[{"name": key, "what": said, "formula": lines} for key, said, lines in rows],
    )


def _entry(doc: str) -> tuple[str, list[str]]:
    """Return the first sentence of a docstring, and the formula that follows it."""
    first, _, rest = doc.partition("\n\n")
    formula = rest.partition("\n\n")[0]
    indented = [line.strip() for line in formula.splitlines()] if formula.startswith("  ") else []
    return re.sub(r"\s+", " ", first), indented


@app.command("compile")
@session_options
def compile_(session: Session) -> None:
    """Compile all loops now, so that no later command waits for one."""
    from ..compile import compile_loops

    with session.progress("compiling") as at:
        found = compile_loops(lambda step: at(_share(step)))
    session.result(str(found), loops=found.loops, fresh=found.fresh, folder=found.folder)


def _share(step: str) -> float | None:
    """Return how far a step of the library's is, if it says so."""
    done, of = getattr(step, "done", 0), getattr(step, "total", 0)
    return done / of if of else None


@app.command()
@session_options
@click.option("-o", "--output", type=Output(file_okay=False), default="out", show_default=True)
def demo(session: Session, output: str) -> None:
    """Show it on 1797 handwritten digits: a picture, a model, a report."""
    from sklearn.datasets import load_digits

    from ..tables import Table
    from ._session import replacing

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    pixels = {f"pixel{j + 1}": X[:, j].astype(int) for j in range(X.shape[1])}
    with replacing(folder / "digits.csv") as file:
        Table({"digit": digit, **pixels}).write(file)
    command = ["pca", str(folder / "digits.csv"), "-k", "9", "--color", "digit", "-o", output]
    command += ["--kernel", "rbf", "--set", "gamma=scale"]
    session.note(f"$ mercer {' '.join(command)}\n")
    app.main([*command, *["--quiet"] * session.quiet], prog_name="mercer", standalone_mode=False)
    session.result(
        f"\nLook at {folder / 'report.html'} in a browser, and at {folder / 'embedding.png'}.\n"
        f"Three commands to try next:\n"
        f"  mercer info {folder / 'model.mercer'}\n"
        f"  mercer transform {folder / 'model.mercer'} {folder / 'digits.csv'} | head\n"
        f"  mercer score svc {folder / 'digits.csv'} --target digit",
        folder=output,
    )
