"""The `mercer` command group, which converts exceptions to error messages and exit codes.

Exit codes: 0 success; 1 failure; 2 usage error; 3 success, but a solver did not converge; 130
interrupted.
"""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from ..._version import __version__
from ._console import FAILED, INTERRUPTED, keep_line_breaks

# For each optional package, the extra of mercer that installs it.
EXTRAS = {"matplotlib": "cli", "pyarrow": "cli", "panel": "explore", "bokeh": "explore"}

# `mercer --help` lists the commands in this order.
ORDER = (
    *("pca", "compare", "fit", "predict", "transform", "denoise", "compress", "score", "tune"),
    *("test", "two-sample", "independence"),
    *("explore", "check", "plan", "kernels", "info", "compile", "demo"),
)


class ClosedPipe(Exception):
    """The program that reads the output, such as `head`, closed the pipe."""


class CommandGroup(click.Group):
    """A command group that suggests the closest name for an unknown command."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        super().__init__(*args, help=keep_line_breaks(help), **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; raise `ClosedPipe` if its output is not read to the end."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would exit with code 1
            raise ClosedPipe from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command; if it does not exist, fail with an error that suggests another."""
        if args and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            matches = difflib.get_close_matches(args[0], names, 1, cutoff=0.5)
            hint = f"Did you mean {matches[0]!r}?" if matches else f"Commands: {', '.join(names)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of `ORDER`."""
        return [name for name in ORDER if name in self.commands]


@click.group(
    cls=CommandGroup,
    epilog='Shell completion in bash: eval "$(_MERCER_COMPLETE=bash_source mercer)". '
    "Exit codes: 0 success, 1 failure, 2 usage error, 3 success but a solver did not converge, "
    "130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="mercer")
def app() -> None:
    r"""Kernel methods from the shell: turn a data file into a model, a figure and a report.

    Results go to standard output or to a file, messages to standard error; --quiet suppresses
    messages.

    \b
    Examples:
      mercer demo
      mercer score svc out/digits.csv --target digit
      mercer fit svc out/digits.csv --target digit -o model.mercer
      mercer predict model.mercer out/digits.csv > predictions.csv
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the `mercer` command and exit with its exit code."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app.main(argv, prog_name="mercer", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show(sys.stderr)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; existing files were not changed", err=True)
        code = INTERRUPTED
    except (ClosedPipe, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if "--debug" in argv:
            raise
        click.echo(f"mercer: {_message(error)}", err=True)
        if options := getattr(error, "options", ""):
            click.echo(f"The complete command: {shlex.join(['mercer', *argv])} {options}", err=True)
        code = FAILED
    sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    """Return the error message for an exception; for unexpected types it mentions --debug."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    package = str(getattr(error, "name", "")).partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package in EXTRAS:
        return (
            f"this command needs the package {package}, which is not installed. It belongs to an "
            f"optional extra of mercer; to install it: pip install 'mercer[{EXTRAS[package]}]'"
        )
    if isinstance(error, (ValueError, OSError, MemoryError, ImportError, ArithmeticError)):
        return text
    if isinstance(error, TypeError) and type(error).__module__ != "builtins":
        return text
    return f"{type(error).__name__}: {text}\n(use --debug to show the traceback)"


# Importing these modules registers their commands.
from . import (  # noqa: E402, F401
    _embedding_commands,
    _fit_commands,
    _model_commands,
    _test_commands,
    _utility_commands,
)
