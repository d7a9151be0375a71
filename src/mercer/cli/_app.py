"""The group of commands, and the one place where exceptions become messages and exit codes.

0  done      1  failed      2  not understood      3  done, but a solver did not converge
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from .._version import __version__

__all__ = ["FAILED", "NOT_CONVERGED", "USAGE", "Commands", "app", "main"]

FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130

EXTRAS = {"matplotlib": "cli", "pyarrow": "cli", "panel": "explore", "bokeh": "explore"}

ORDER = (
    *("pca", "compare", "fit", "predict", "transform", "denoise", "compress", "score", "tune"),
    *("test", "two-sample", "independence"),
    *("explore", "check", "plan", "kernels", "info", "compile", "demo"),
)


class Commands(click.Group):
    """A group that names the nearest command for one that it does not know."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that is meant."""
        if args and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            near = difflib.get_close_matches(args[0], known, 1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Commands: {', '.join(known)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which one meets them."""
        return [name for name in ORDER if name in self.commands]


@click.group(
    cls=Commands,
    epilog='Completion in bash: eval "$(_MERCER_COMPLETE=bash_source mercer)". '
    "Exit codes: 0 done, 1 failed, 2 not understood, 3 done but not converged.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="mercer")
def app() -> None:
    """Kernel methods from the shell: from a file to a model, a picture and a report."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command `mercer`, and leave with its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app.main(given, prog_name="mercer", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show(sys.stderr)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; files that were there are as they were", err=True)
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if "--debug" in given:
            raise
        click.echo(f"mercer: {_message(error)}", err=True)
        code = FAILED
    sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    """Return what a user can do something with; for a mistake of ours, how to see more."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    package = str(getattr(error, "name", "")).partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package in EXTRAS:
        return (
            f"this needs {package}, which is not installed - usually because mercer was installed "
            f"without its extra - try: pip install 'mercer[{EXTRAS[package]}]'"
        )
    if isinstance(error, (ValueError, OSError, MemoryError, ImportError, ArithmeticError)):
        return text
    if isinstance(error, TypeError) and type(error).__module__ != "builtins":
        return text
    return f"{type(error).__name__}: {text}\n(--debug shows where it comes from)"


# Each adds its commands.
from . import _apply, _compare, _explore, _fit, _look, _pca, _test  # noqa: E402, F401
