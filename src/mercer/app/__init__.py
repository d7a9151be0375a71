"""Applications on top of the library: command line, tables, explorer, model comparison."""
