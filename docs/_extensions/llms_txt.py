"""Sphinx extension: write llms.txt, an index of the site for language models (llmstxt.org).

The file lists all pages in the order of the tables of contents, each with the first sentence of the
page. Addresses are relative to the file.
"""

import re
from pathlib import Path

from docutils import nodes


def first_sentence(doctree) -> str:
    """Return the first sentence of a page, or of the class or function that it documents."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text and not isinstance(paragraph.parent, nodes.entry):  # not in a table
            return re.split(r"(?<=[.?])\s", text, maxsplit=1)[0]
    return ""


def entries(env, docname, seen):
    """Yield the pages below a page, in the order of its tables of contents."""
    for child in env.toctree_includes.get(docname, []):
        if child not in seen:
            seen.add(child)
            yield child
            yield from entries(env, child, seen)


def write(app, exception):
    """Write llms.txt into the folder of the site."""
    if exception or app.builder.format != "html":
        return
    env, root = app.env, app.config.root_doc
    lines = [f"# {app.config.project}", "", f"> {first_sentence(env.get_doctree(root))}", ""]
    seen = {root}
    for section in env.toctree_includes[root]:
        lines += [f"## {env.titles[section].astext()}", ""]
        pages = [section] if section not in seen else []
        for page in [*pages, *entries(env, section, seen | {section})]:
            seen.add(page)
            address = app.builder.get_target_uri(page)
            sentence = first_sentence(env.get_doctree(page))
            lines.append(f"- [{env.titles[page].astext()}]({address}): {sentence}".rstrip(": "))
        lines.append("")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines), "utf-8")


def setup(app):
    """Connect the function above to Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
