"""Options that several commands share, and the objects in which commands receive them."""

from __future__ import annotations

import ast
import builtins
import shlex
import sys
from dataclasses import dataclass, fields
from functools import wraps
from inspect import signature
from typing import Any

import click

import mercer

from ... import estimators, tables
from ._console import Command, Decorator, OutputPath, Session

_FORMATS = ("csv", "jsonl", "json", "parquet", "arrow", "excel", "npy", "fasta", "graphs")
# Options that are passed to `open_table`.
_READ_OPTIONS = (
    *("format", "delimiter", "header", "sheet", "arrays", "na", "decimal", "encoding"),
)
RBF = "RBF(length_scale='median')"  # the default kernel
positive = click.IntRange(1)  # option type: a positive integer


def option(
    names: str,
    text: str,
    metavar: str | None = None,
    *,
    type: click.ParamType | builtins.type | None = None,
    default: object = None,
    **more: Any,
) -> Decorator:
    """Return an option; `names` are separated by spaces, and `text` is the help text.

    The help text contains the default value, unless it is None.
    """
    more = {"show_default": default is not None, "metavar": metavar} | more
    return click.option(*names.split(), type=type, default=default, help=text, **more)


def flag(names: str, text: str) -> Decorator:
    """Return an option without a value."""
    return click.option(*names.split(), is_flag=True, help=text)


def grouped(name: str, cls: type, *options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, which receives them as one object.

    The command has a parameter `name` for an object of the dataclass `cls`, whose fields are the
    values of the options.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: object, **values: object) -> object:
            names = [field.name for field in fields(cls) if field.name in values]
            group = cls(**{field: values.pop(field) for field in names})
            return command(*args, **{name: group}, **values)

        for option in reversed(options):
            option(run)
        return run

    return decorate


# ---------------------------------------------------------------------- the input file


@dataclass(frozen=True)
class Data:
    """An input file, with the options for reading it and for preprocessing its columns."""

    path: str = "-"
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    sheet: str | None = None
    arrays: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    decimal: str | None = None
    encoding: str | None = None
    columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    standardize: bool | None = None
    onehot: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    impute: tuple[str, ...] = ()
    unknown: str | None = None
    strict: bool = False

    @property
    def has_column_options(self) -> bool:
        """Whether the user gave any option that selects or preprocesses columns."""
        options = (self.columns, self.ignore, self.standardize, self.onehot, self.types)
        return any(value not in ((), None) for value in (*options, self.impute))

    @property
    def read_options(self) -> dict[str, Any]:
        """The keyword arguments of `open_table` that differ from their defaults."""
        options = {n: getattr(self, n) for n in _READ_OPTIONS}
        return {name: value for name, value in options.items() if value not in (None, ())}

    def open(
        self,
        session: Session,
        path: str | None = None,
        recipe: tables.Recipe | None = None,
    ) -> tables.Source:
        """Open the input file (or `path`, with the same options) and print the notes about it.

        `recipe` is the recipe of a fitted model, whose marks of missing values and notations are
        used for the file, unless the user gives other marks.
        """
        options = self.read_options
        if recipe is not None and len(recipe.na):
            options = {"na": tuple(recipe.na)} | options
        source = tables.open_table(path or self.path, **options)
        try:
            if recipe is not None and recipe.notations_:
                source.expect_notations(recipe.notations_)
            _ = source.shape  # reads all rows, which adds notes
        finally:
            for note in source.notes:
                session.note(f"{source.name}: {note}")
        return source

    def recipe(
        self,
        source: tables.Source,
        kernel: str | None,
        target: str | None = None,
        exclude: tuple[str, ...] = (),
    ) -> tables.Recipe:
        """Return the unfitted preprocessing recipe for these options and this kernel.

        The recipe ignores the columns in `exclude`, such as the column that colours the points.
        """
        names = set(source.shape.kinds)
        onehot = _names(self.onehot, names)
        return tables.Recipe(
            columns=_names(self.columns, names) or None,
            target=target,
            ignore=(*_names(self.ignore, names), *exclude),
            points=_input_kind(kernel),
            standardize="auto" if self.standardize is None else self.standardize,
            onehot="all" if onehot == ("all",) and "all" not in names else onehot,
            types=_assignments(self.types, "--type", names) or None,
            impute=self._impute(),
            unknown=self.unknown or "ignore",
            na=self.na,
            strict=self.strict,
        )

    def _impute(self) -> Any:
        """Return the parameter `impute` of the recipe: a value, or a dict of values by type."""
        plain = [text for text in self.impute if "=" not in text]
        by_type = _assignments(tuple(t for t in self.impute if "=" in t), "--impute", set())
        if len(plain) > 1 or (plain and by_type):
            raise click.BadParameter(
                f"give one method ({' '.join(plain)}), or one for each type, such as number=median",
                param_hint="--impute",
            )
        values = {kind: _number_or_text(text) for kind, text in by_type.items()}
        return values or (_number_or_text(plain[0]) if plain else "auto")


def _number_or_text(text: str) -> float | str:
    """Return a number if the text is one, otherwise the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _assignments(values: tuple[str, ...], option: str, known: set[str]) -> dict[str, str]:
    """Return the values of an option of the form NAME=VALUE, which may be repeated.

    Several assignments can be separated by commas, unless a column name contains a comma.
    """
    assignments: dict[str, str] = {}
    for text in values:
        is_single = text.rpartition("=")[0] in known
        for part in [text] if is_single else text.split(","):
            name, equals, value = part.strip().rpartition("=")
            if not equals:
                raise click.BadParameter(f"{part!r} is not NAME=VALUE", param_hint=option)
            assignments[name] = value
    return assignments


def _names(values: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    """Return the column names in `values`; a value that is not a column is split at commas."""
    names: list[str] = []
    for text in values:
        names += [text] if text in known else [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(names))


def _input_kind(kernel: str | None) -> str:
    """Return the kind of points that a kernel accepts, as the parameter `points` of a recipe."""
    from ...kernels import as_kernel

    if kernel is None:
        return "vectors"
    domain = as_kernel(kernel).domain
    kinds = {"strings": "texts", "texts": "texts", "graphs": "graphs"}
    return (
        "rows"
        if (domain.selects_by_name or domain.selects_objects)
        else kinds.get(domain.kind, "vectors")
    )


def _split_at_commas(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """Return the parts of the value of an option, which are separated by commas."""
    return tuple(filter(None, (value or "").split(",")))


def unknown_option() -> Decorator:
    """Return the option --unknown."""
    return option(
        "--unknown",
        "What to do with values that did not occur in the training rows: handle them as missing "
        "(ignore), stop (error), or drop the rows (drop). By default they are ignored, with a "
        "warning.",
        type=click.Choice(["ignore", "error", "drop"]),
    )


_read_options = (
    click.argument("path", metavar="DATA"),
    option(
        "--format",
        "File format of DATA; by default inferred from the file name or the first bytes.",
        type=click.Choice(_FORMATS),
    ),
    option(
        "--delimiter",
        'Field delimiter of a CSV file: one character, "tab" or "space"; by default detected.',
    ),
    option(
        "--header/--no-header",
        "Whether the first line of a CSV file contains column names; by default detected.",
    ),
    option(
        "--sheet",
        "Sheet of an Excel workbook: its name, or its position starting at 1; by default the first "
        "sheet that is not empty.",
        "NAME",
    ),
    option(
        "--arrays",
        "Comma-separated names of the arrays to read from a .npz file; X=X_test reads the "
        "array X_test under the name X.",
        "NAMES",
        callback=_split_at_commas,
    ),
    option(
        "--na",
        "Comma-separated cells of a CSV file that mean a missing value, in addition to the usual "
        "ones such as NA and #N/A.",
        "VALUES",
        callback=_split_at_commas,
    ),
    option(
        "--decimal",
        "Decimal separator of a CSV file, for columns such as 1,234 that do not determine it.",
        type=click.Choice([".", ","]),
    ),
    option(
        "--encoding",
        "Encoding of a CSV file, such as latin-1; by default detected.",
        "NAME",
    ),
)
# Several input files, without preprocessing: the command receives `paths` and `data`.
files_argument = click.argument("paths", metavar="DATA...", nargs=-1, required=True)
input_options = grouped("data", Data, *_read_options[1:])
data_options = grouped(
    "data",
    Data,
    *_read_options,
    option("--columns", "Comma-separated columns to use.", "NAMES", multiple=True),
    option("--ignore", "Comma-separated columns not to use.", "NAMES", multiple=True),
    option(
        "--standardize/--no-standardize",
        "Whether to scale numeric columns to mean 0 and standard deviation 1; by default they are "
        "scaled if their scales differ widely, or if there are also columns of other types.",
    ),
    option(
        "--onehot",
        "One-hot encode these columns, also if they are numbers or identifiers. With --strict, "
        "'all' allows it for all columns that contain categories.",
        "NAMES",
        multiple=True,
    ),
    option(
        "--type types",
        "Type of a column, if the detected one is wrong: number, boolean, category, date, text or "
        "identifier (not used); can be repeated.",
        "NAME=TYPE",
        multiple=True,
    ),
    option(
        "--impute",
        "How to replace missing values: mean, median or most_frequent (of the column), a number, "
        "or 'drop' to drop the rows; by type with TYPE=HOW, such as number=median. By default, "
        "numbers are replaced by the mean, and missing categories are a separate level.",
        "HOW",
        multiple=True,
    ),
    unknown_option(),
    flag(
        "--strict",
        "Stop if a column is not numeric or has missing values and no option says what to do.",
    ),
)


def read_table(
    session: Session, source: tables.Source, recipe: tables.Recipe
) -> tuple[tables.Table, tables.Recipe]:
    """Read all rows and fit the recipe; print its description and the number of dropped rows."""
    table = source.table()
    recipe = recipe.fit(table)
    print_treatments(session, recipe)
    report_dropped_rows(recipe, table, session)
    return table, recipe


def print_treatments(session: Session, recipe: tables.Recipe) -> None:
    """Print the treatment of each column, and the options that change it."""
    session.note("\n".join(recipe.describe()))
    session.note(
        "(to change a treatment: --type NAME=TYPE, --ignore NAMES, --impute HOW, "
        "--no-standardize; --strict stops instead)\n"
    )


def report_dropped_rows(recipe: tables.Recipe, table: tables.Table, session: Session) -> None:
    """Print how many rows the recipe drops, and why, if any."""
    dropped = len(table) - len(recipe.kept_rows(table))
    if recipe.target is not None and recipe.target in table.columns:
        count = int(tables.is_missing(table.columns[recipe.target]).sum())
        dropped -= count
        if count:
            session.note(
                f"{table.source}: {count} of {len(table)} rows have no value of the target "
                f"{recipe.target!r} and are not used"
            )
    if dropped:
        session.note(dropped_rows_message(table.source, dropped, len(table)))


def dropped_rows_message(source: str, count: int, rows: int) -> str:
    """Return the message about rows that were dropped because of missing values."""
    return f"{source}: {count} of {rows} rows dropped because of missing values"


# ---------------------------------------------------------------------- the model


@dataclass(frozen=True)
class ModelOptions:
    """An input file, the kernel on its rows, parameters of the model (--set), and the output."""

    data: Data
    kernel: str | None = None
    more: tuple[str, ...] = ()
    seed: int = 0
    output: str | None = None
    show_code: bool = False


seed_option = option("--seed", "Random seed.", type=int, default=0)
code_option = flag("--show-code", "Print the equivalent Python code and exit.")


def kernel_option(default: str | None = RBF) -> Decorator:
    """Return the option --kernel."""
    text = 'Kernel expression, such as "2*RBF(0.5) + Linear()"; see `mercer kernels` for a list.'
    return option("--kernel", text, "EXPRESSION", default=default)


def set_option(what: str = "Parameter of the estimator, such as alpha=0.1 or C=10") -> Decorator:
    """Return the option --set, which can be repeated."""
    return option("--set more", f"{what}; can be repeated.", "NAME=VALUE", multiple=True)


def memory_option(what: str = "Memory limit") -> Decorator:
    """Return the option --max-memory."""
    return option("--max-memory", f'{what}, such as "2 GiB".', "SIZE")


def output_option(what: str, *, folder: bool = False, **more: Any) -> Decorator:
    """Return the option --output for a file, or for a folder."""
    path = OutputPath(dir_okay=folder, file_okay=not folder)
    return option("-o --output", what, "FOLDER" if folder else "FILE", **{"type": path} | more)


def parse_parameters(cls: type, assignments: tuple[str, ...]) -> dict[str, Any]:
    """Parse the NAME=VALUE strings of --set into parameters of the estimator class `cls`.

    An unknown name raises a `TableError` that suggests the closest parameter.
    """
    known, parameters = list(signature(cls).parameters), {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
        if name not in known:
            raise tables.TableError(
                f"{cls.__name__} has no parameter {name!r}{tables.suggest_name(name, known)} its "
                f"parameters are {', '.join(known)}"
            )
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value  # values that are not Python literals are unquoted strings
    return parameters


def command_line() -> str:
    """Return the command that the user typed, without --resume."""
    return shlex.join(["mercer", *(word for word in sys.argv[1:] if word != "--resume")])


def save_model(
    session: Session,
    model: object,
    recipe: tables.Recipe,
    source: tables.Source,
    output: str | None,
) -> None:
    """Save a model with its preprocessing and the command that created it, if `output` is given."""
    if output is not None:
        metadata = {"command": command_line(), "input": source.name}
        mercer.save(tables.TableModel(model, recipe, metadata), output)
        session.note(f"wrote {output}")


# ---------------------------------------------------------------------- embeddings


class ComponentCount(click.ParamType):
    """Option type: a number of components, or a fraction of the variance between 0 and 1."""

    name = "number"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        """Convert text to an int (1 or more) or to a float between 0 and 1; fail otherwise."""
        try:
            count = int(value) if float(value) >= 1 else float(value)
        except ValueError:
            count = 0
        if not count > 0:
            self.fail(
                f"{value!r} is neither a number of components nor a fraction of the variance "
                f"such as 0.9",
                param,
                ctx,
            )
        return count


@dataclass(frozen=True)
class EmbeddingOptions(ModelOptions):
    """The options of a command that embeds the rows of a file."""

    components: int | float = 2
    color: str | None = None

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """The column that colours the points, which is not a feature."""
        return () if self.color is None else (self.color,)

    def open(self, session: Session) -> tuple[tables.Source, tables.Recipe]:
        """Open the input file, and return it with its unfitted preprocessing recipe."""
        source = self.data.open(session)
        with session.reading(source):
            _ = source.shape  # reads the file
        return source, self.data.recipe(source, self.kernel, exclude=self.extra_columns)

    def pca_parameters(self, **options: object) -> dict[str, Any]:
        """Return the parameters of `KernelPCA`; options that are None or "auto" are omitted."""
        given = {name: value for name, value in options.items() if value not in (None, "auto")}
        own = {"n_components": self.components, "kernel": self.kernel, "random_state": self.seed}
        return own | given | parse_parameters(estimators.KernelPCA, self.more)


def embedding_options(
    kernel: str | None = RBF,
    components: str = "Number of components, or the fraction of the variance to explain "
    "(between 0 and 1).",
    type: click.ParamType | None = None,
    color: str = "Column that colours the points; it is not used as a feature.",
) -> Decorator:
    """Return the options of a command that embeds the rows of DATA, as `EmbeddingOptions`.

    `components` and `color` are help texts, and `type` is the type of --components.
    """
    group = grouped(
        "options",
        EmbeddingOptions,
        kernel_option(kernel),
        option("-k --components", components, type=type or ComponentCount(), default=2),
        option("--color", color, "NAME"),
    )
    return lambda command: data_options(group(command))


# ---------------------------------------------------------------------- --show-code


def keyword_code(parameters: dict[str, Any]) -> str:
    """Return the source code of keyword arguments."""
    return ", ".join(f"{key}={value!r}" for key, value in parameters.items())


def open_table_code(source: tables.Source, data: Data) -> str:
    """Return the source code of the `open_table` call that opens a source."""
    path = "-" if source.name == "standard input" else source.name
    return f"open_table({', '.join(filter(None, [repr(path), keyword_code(data.read_options)]))})"
