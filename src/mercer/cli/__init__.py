"""`mercer`, the command: kernel methods from the shell.

Commands are thin: a file becomes a table (`mercer.tables`), a recipe makes points of it, and an
estimator of mercer does the rest.  Importing this package imports click and nothing heavy, so that
help and completion answer at once.
"""

from ._app import main

__all__ = ["main"]
