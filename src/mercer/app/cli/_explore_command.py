"""The command `mercer explore`: explore the points of a file interactively in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from ._console import INTERRUPTED, OutputPath, Session, atomic_write, session_options
from ._data_options import Data, data_options, kernel_option, parse_parameters, report_dropped_rows
from ._main import app
from ._pca_command import ComponentCount


class ImageShape(click.ParamType):
    """Option type: an image shape, ROWSxCOLUMNS, or ROWSxCOLUMNSx3 for colour images."""

    name = "shape"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        """Convert text such as "8x8" to a tuple such as (8, 8)."""
        try:
            shape = tuple(int(part) for part in str(value).lower().split("x"))
        except ValueError:
            shape = ()
        if len(shape) not in (2, 3) or min(shape) < 1 or shape[2:] not in ((), (1,), (3,)):
            self.fail(f"{value!r} is not an image shape such as 8x8 or 32x32x3", param, ctx)
        return shape


@app.command()
@session_options
@data_options
@kernel_option()
@click.option(
    "-k",
    "--components",
    type=ComponentCount(),
    default=2,
    show_default=True,
    help="Number of components, or the fraction of the variance to explain (between 0 and 1).",
)
@click.option(
    "--color",
    metavar="NAME",
    help="Column that colours the points; it is not used as a feature.",
)
@click.option(
    "--second",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Second embedding to show: data (two columns of the data), ppca, gplvm, ..., or none.",
)
@click.option(
    "--image-shape",
    type=ImageShape(),
    help="Show points as images of this shape, such as 8x8, or 32x32x3 for colour images.",
)
@click.option(
    "--new", metavar="FILE", help="File with new rows to project into the same embeddings."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--set",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other parameter of mercer.KernelPCA; can be repeated.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the server; by default any free port.",
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--export",
    type=OutputPath(dir_okay=False),
    metavar="FILE",
    help="Write a self-contained HTML page and exit; - for standard output.",
)
@click.option(
    "--preimages",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="With --export: include pre-images for an N x N grid of positions.",
)
def explore(
    session: Session,
    data: Data,
    kernel: str,
    components: Any,
    color: str | None,
    second: str,
    image_shape: tuple[int, ...] | None,
    new: str | None,
    seed: int,
    more: tuple[str, ...],
    port: int,
    no_browser: bool,
    export: str | None,
    preimages: int,
) -> None:
    r"""Explore the rows of DATA interactively in a browser.

    The page shows two embeddings; points selected in one are also selected in the other. Click
    anywhere in an embedding to see the pre-image of that position. Change the kernel to see how the
    embedding changes. The server accepts connections only from this computer and runs until Ctrl-C.
    Its address contains a token, and requests without the token are rejected.

    \b
    Examples:
      mercer explore data.csv --color label
      mercer explore digits.csv --color digit --image-shape 8x8 --export digits.html
    """
    from ...estimators import KernelPCA
    from ..explorer import Explorer, affordable_kernel_pca, file_stamp, scene_from_table

    estimator_options = {"n_components": components, "kernel": kernel, "random_state": seed}

    def read() -> Any:
        source = data.open(session)
        recipe = data.recipe(source, kernel, exclude=() if color is None else (color,))
        table = source.table()
        recipe = recipe.fit(table)
        report_dropped_rows(recipe, table, session)
        requested = KernelPCA(**estimator_options | parse_parameters(KernelPCA, more))
        model, _ = affordable_kernel_pca(requested, recipe.transform(table))
        if model is not requested:
            session.note(
                "exact kernel PCA would take too long; using a Nyström approximation instead"
            )
        with session.progress("embeddings"), session.capture_warnings():
            scene = scene_from_table(
                title=source.title,
                table=table,
                recipe=recipe,
                model=model,
                second=second,
                color=color,
                image=image_shape,
                notes=(*recipe.describe(), *source.notes),
            )
            if new is not None:
                scene = scene.projected(data.open(session, new).table(recipe.text_columns))
        return source, scene

    watched = Path(data.path) if data.path != "-" else None
    stamp = file_stamp(watched)
    source, scene = read()
    if export is not None:
        with session.progress("pre-images"), session.capture_warnings():
            text = Explorer(scene).html(preimages=preimages)
        with atomic_write(export) as file:
            file.write(text)
        if export != "-":
            session.note(f"wrote {export}")
            session.result("", file=export, rows=len(scene), bytes=len(text.encode()))
        return
    from ..explorer import serve

    server = serve(
        lambda: scene,
        port=port,
        title=scene.title,
        reload=None if watched is None else lambda: read()[1],
        watched=watched,
        stamp=stamp,
    ).start()
    session.result(f"The explorer is at {server.url}", url=server.url, rows=len(scene))
    session.note("Press Ctrl-C to stop the server.")
    if not no_browser:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.wait()
    except KeyboardInterrupt:
        if server.is_busy:
            _exit_at_once(None if watched is not None else Path(source.path))
        raise


def _exit_at_once(temporary: Path | None) -> NoReturn:
    """Exit the process immediately, even if a thread is still computing.

    A normal exit would wait for the computation, because Ctrl-C does not interrupt worker threads.
    `temporary` is the temporary copy of standard input, which a normal exit would remove.
    """
    if temporary is not None:
        temporary.unlink(missing_ok=True)
    click.echo("interrupted; the running computation was cancelled", err=True)
    sys.stdout.flush()
    os._exit(INTERRUPTED)
