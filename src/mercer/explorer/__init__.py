"""The explorer: maps of points to look at, in a browser, a notebook or one file.

    Scene ──► pack ──► view

A `Scene` holds points, a table of what is known of each, and one or two `Map`s with the models that
made them.  The view (`assets/`, JavaScript without any library) draws it; it is the same on the
page of the server, in a notebook, and in a saved page.  A `Desk` answers what a view asks of the
models, and knows nothing of how questions and answers travel.
"""

from ._explore import Explorer, explore, scene_of
from ._models import affordable
from ._server import serve

__all__ = ["Explorer", "affordable", "explore", "scene_of", "serve"]
