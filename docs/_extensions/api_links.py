"""Sphinx extension: link code such as `KernelPCA` or `compress(model, 100)` to the API.

Only text in code style is linked, on all pages outside the API, except in titles and links.
"""

import importlib
import re

from docutils import nodes

_PACKAGES = ("mercer", "mercer.kernels")
_CODE = re.compile(r"(?:mercer\.)?(?:kernels\.)?([A-Za-z]\w+)(?:\(.*\)|\.\w+)?", re.S)


def page_of(name: str) -> str | None:
    """Return the document that describes a public name, or None if the name is unknown."""
    for package in _PACKAGES:
        if name in importlib.import_module(package).__all__:
            return f"docs/api/generated/{package}.{name}"
    return None


def link_code(app, doctree, docname):
    """Turn inline code that starts with a public name into a link."""
    if docname.startswith("docs/api") or app.builder.format != "html":
        return
    for code in list(doctree.findall(nodes.literal)):
        match = _CODE.fullmatch(code.astext())
        page = page_of(match[1]) if match else None
        if page not in app.env.all_docs or _is_inside(code, (nodes.reference, nodes.title)):
            continue
        address = app.builder.get_relative_uri(docname, page)
        link = nodes.reference("", "", internal=True, refuri=address)
        code.replace_self(link)
        link += code


def _is_inside(node, kinds) -> bool:
    while node := node.parent:
        if isinstance(node, kinds):
            return True
    return False


def setup(app):
    """Connect the function above to Sphinx."""
    app.connect("doctree-resolved", link_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
