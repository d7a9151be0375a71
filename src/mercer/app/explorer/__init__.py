"""Interactive exploration of embeddings in a browser, in a notebook or in one HTML file.

    Scene ──► pack ──► view

A `Scene` contains the points, a table with one row per point, and one or two `Embedding`s with
their models.  The view (`assets/`, JavaScript without other libraries) draws it; it is the same in
the page of the server, in a notebook, and in a saved page.  A `Controller` handles the requests of
a view.  It does not depend on the transport: a websocket of the server, or the comm of a notebook.
"""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
