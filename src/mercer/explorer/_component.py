"""The view as a component of Panel, with a desk behind it."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from ._desk import Desk
from ._page import adapter, script, style
from ._scene import Scene

__all__ = ["Component"]


class Component(JSComponent):
    """A scene in a notebook, or in an application of Panel."""

    tall = param.String(default="640px", doc="The height, in the language of CSS.")

    _esm = script() + adapter()
    _stylesheets = [style(), ":host { display: block; width: 100%; }"]  # noqa: RUF012

    def __init__(self, scene: Scene, tall: str = "640px") -> None:
        self.desk = Desk(scene, self._send_msg)
        super().__init__(tall=tall, sizing_mode="stretch_width")

    def _handle_msg(self, data: Any) -> None:
        self.desk.handle(data)

    def _cleanup(self, root: Any = None) -> None:
        super()._cleanup(root)
        if not self._models:  # the last page that showed it is closed
            self.desk.close()
