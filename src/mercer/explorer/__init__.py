"""The explorer: maps of points to look at, in a browser, a notebook or one file.

    Scene ──► pack ──► view

A `Scene` holds points, a table of what is known of each, and one or two `Map`s with the models that
made them.  The view (`assets/`, JavaScript without any library) draws it; it is the same on the
page of the server, in a notebook, and in a saved page.  A `Desk` answers the requests of a view,
and does not depend on the transport: a websocket of the server, or the comm of a notebook.
"""

from ._explore import Explorer, explore, scene_of
from ._models import affordable
from ._server import serve
from ._watched import file_stamp

__all__ = ["Explorer", "affordable", "explore", "file_stamp", "scene_of", "serve"]
