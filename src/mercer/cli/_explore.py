"""mercer explore: look at the points of a file, in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from ._app import INTERRUPTED, app
from ._data import Data, data_options, kept, kernel_option, parameters
from ._pca import Count
from ._session import Output, Session, replacing, session_options


class ImageShape(click.ParamType):
    """Rows x columns of pixels, and x 3 for colours."""

    name = "shape"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        """Return (8, 8) for "8x8"."""
        try:
            shape = tuple(int(part) for part in str(value).lower().split("x"))
        except ValueError:
            shape = ()
        if len(shape) not in (2, 3) or min(shape) < 1 or shape[2:] not in ((), (1,), (3,)):
            self.fail(f"{value!r} is not of the form 8x8, or 32x32x3 for colours", param, ctx)
        return shape


@app.command()
@session_options
@data_options
@kernel_option()
@click.option("-k", "--components", type=Count(), default=2, show_default=True, help="How many.")
@click.option("--color", metavar="NAME", help="The column to colour by; not among the points.")
@click.option(
    "--second",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="The second map: data (two columns), ppca, gplvm, ..., or none.",
)
@click.option(
    "--image-shape", type=ImageShape(), help="Points are pictures of so many pixels: 8x8."
)
@click.option("--new", metavar="FILE", help="Rows of another file, put into the same maps.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option("--set", "more", multiple=True, metavar="NAME=VALUE", help="Of mercer.KernelPCA.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Any free one unless given.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser, just print the address.")
@click.option(
    "--export",
    type=Output(dir_okay=False),
    metavar="FILE",
    help="Write a page that needs no network, and stop; - for the standard output.",
)
@click.option(
    "--preimages",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="With --export: what would be at N x N places is put into the page.",
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
    r"""Look at the points in DATA: two maps with a common selection, in a browser.

    Click anywhere to see what would be there; change the kernel and see the map change. The server
    listens on this machine alone, until Ctrl-C. Its address contains a token, without which it
    refuses every request.

    \b
      mercer explore data.csv --color label
      mercer explore digits.csv --color digit --image-shape 8x8 --export digits.html
    """
    from ..estimators import KernelPCA
    from ..explorer import Explorer, affordable, file_stamp, scene_of

    given = {"n_components": components, "kernel": kernel, "random_state": seed}

    def read() -> Any:
        source = data.open(session)
        recipe = data.recipe(source, kernel, beside=() if color is None else (color,))
        table = source.table()
        recipe = recipe.fit(table)
        kept(recipe, table, session)
        wanted = KernelPCA(**given | parameters(KernelPCA, more))
        model, _ = affordable(wanted, recipe.transform(table))
        if model is not wanted:
            session.note("exact components would take long: an approximation on landmarks")
        with session.progress("maps"), session.listening():
            scene = scene_of(
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
        with session.progress("pre-images"), session.listening():
            text = Explorer(scene).html(preimages=preimages)
        with replacing(export) as file:
            file.write(text)
        if export != "-":
            session.note(f"wrote {export}")
            session.result("", file=export, rows=len(scene), bytes=len(text.encode()))
        return
    from ..explorer import serve

    serving = serve(
        lambda: scene,
        port=port,
        title=scene.title,
        reread=None if watched is None else lambda: read()[1],
        watched=watched,
        stamp=stamp,
    ).start()
    session.result(f"The explorer is at {serving.url}", url=serving.url, rows=len(scene))
    session.note("Ctrl-C ends it.")
    if not no_browser:
        import webbrowser

        webbrowser.open(serving.url)
    try:
        serving.wait()
    except KeyboardInterrupt:
        if serving.is_busy:
            _exit_at_once(None if watched is not None else Path(source.path))
        raise


def _exit_at_once(temporary: Path | None) -> NoReturn:
    """End the process although a thread is computing.

    The interpreter would wait for the threads of the computation, which Ctrl-C does not reach.
    `temporary` is the copy of the standard input, which the interpreter would have removed.
    """
    if temporary is not None:
        temporary.unlink(missing_ok=True)
    click.echo("interrupted; the running computation was dropped", err=True)
    sys.stdout.flush()
    os._exit(INTERRUPTED)
