"""The explorer as a Panel component, connected to a controller."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from ._controller import Controller
from ._html import adapter, script, style
from ._scene import Scene

__all__ = ["Component"]


class Component(JSComponent):
    """A Panel component that shows a scene in a notebook or in a Panel application."""

    css_height = param.String(default="640px", doc="CSS height of the component.")

    _esm = script() + adapter()
    _stylesheets = [style(), ":host { display: block; width: 100%; }"]  # noqa: RUF012

    def __init__(self, scene: Scene, css_height: str = "640px") -> None:
        self.controller = Controller(scene, self._send_msg)
        super().__init__(css_height=css_height, sizing_mode="stretch_width")

    def _handle_msg(self, data: Any) -> None:
        self.controller.handle(data)

    def _cleanup(self, root: Any = None) -> None:
        super()._cleanup(root)
        if not self._models:  # the last page that shows the component was closed
            self.controller.close()
