"""The site: `make docs` builds it into build/site.

The source directory is the root of the repository, so that links between README, docs/, benchmarks/
and the rest are the same on the site and in a browser of the repository.
"""

import ast
import re
import sys
from pathlib import Path

from docutils.parsers.rst.states import Inliner

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import mercer  # noqa: E402

release = mercer.__version__

project, author = "mercer", "the mercer developers"
project_copyright = author
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/*.md",
    "benchmarks/results/*.md",
    "docs/**",
]
exclude_patterns = [
    "build",
    "out",
    "src",
    "tests",
    "examples",
    ".*",
    "docs/gallery/*.py",
    "docs/_templates",
]

templates_path = [str(ROOT / "docs" / "_templates")]  # autosummary looks below the root

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_extra_path = ["_extra"]  # the way from / to docs/index.html
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"docs/index": []}
myst_heading_anchors = 3

nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # a word in single backticks links where it is a name, and else is code
    ("py:class", ".*"),  # signatures name types of NumPy and scikit-learn, which are not fetched
]
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say more than annotations
numpydoc_show_class_members = False  # the template of a class lists its own


# --- the gallery ------------------------------------------------------------------------------
# The examples are plain scripts.  Copies of them get what sphinx-gallery wants: an underlined
# title, and the words behind `# %%` on a line of their own.


def staged(name: str, text: str) -> str:
    """Return the source of an example as sphinx-gallery reads it."""
    head = ast.parse(text).body[0]
    title, *rest = head.value.value.split("\n")
    title = title.removesuffix(".")
    words = "\n".join(literal_formulas([title, "=" * len(title), *rest]))
    code = "\n".join(text.split("\n")[head.end_lineno :])
    code = re.sub(r"^# %% (.+)$", r"# %%\n# \1", code, flags=re.M)
    hidden = [
        "# sphinx_gallery_start_ignore",
        f'__file__ = "{name}"',
        "# sphinx_gallery_end_ignore",
    ]
    return "\n".join([f'"""{words}\n"""', "", *hidden, code])


def literal_formulas(lines: list[str]) -> list[str]:
    """Mark indented paragraphs as literal: they are formulas, laid out by hand."""
    result: list[str] = []
    for at, line in enumerate(lines):
        above = next((x for x in reversed(result) if x.strip()), "")
        starts = line.startswith("    ") and at > 0 and not lines[at - 1].strip()
        if starts and above and not above.startswith((" ", "* ", "- ", "::", "---")):
            result += ["::", ""]
        result.append(line)
    return result


def stage_examples() -> Path:
    """Write the copies into build/gallery/examples."""
    folder = ROOT / "build" / "gallery" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ROOT / "examples").glob("*.py"):
        copy, text = folder / path.name, staged(path.name, path.read_text("utf-8"))
        if not copy.exists() or copy.read_text("utf-8") != text:  # else it would run again
            copy.write_text(text, "utf-8")
    for copy in folder.glob("*.py"):
        if not (ROOT / "examples" / copy.name).exists():
            copy.unlink()
    (folder / "GALLERY_HEADER.rst").write_text(
        "Gallery\n=======\n\nScripts of `examples/`, each with what it prints and draws.\n", "utf-8"
    )
    return folder


sphinx_gallery_conf = {
    "examples_dirs": [str(stage_examples())],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": r"\.py$",
    "copyfile_regex": r"",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # no times: they belong to a machine
    "write_computation_times": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}


# --- what docstrings mean ---------------------------------------------------------------------


def as_text(self, match, lineno):
    """Take a mark of reStructuredText as the character that it is."""
    text, end = match.string, match.end("refend" if match["refend"] else "start")
    return text[:end], [], text[end:], []


# In docstrings |x| is a norm and values_ a fitted attribute: no substitutions, no targets.
Inliner.dispatch = {**Inliner.dispatch, "|": as_text, "_": as_text, "__": as_text}


def docstring(app, what, name, obj, options, lines):
    lines[:] = literal_formulas(lines)


def skip(app, what, name, obj, skipped, options):
    """Leave out what scikit-learn writes for its routing of metadata."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def links(app, docname, source):
    """Let links to scripts lead to the gallery, and words in code that name one be links."""
    if docname.startswith(("docs/gallery", "docs/api")):
        return
    text = re.sub(r"\]\((?:\.\./)?examples/(\w+)\.py\)", r"](/docs/gallery/\1.rst)", source[0])
    text = re.sub(r"\]\((?:\.\./)?examples/?\)", "](/docs/gallery/index.rst)", text)
    text = re.sub(r"(?<!\[)`examples/(\w+)\.py`", r"[`examples/\1.py`](/docs/gallery/\1.rst)", text)
    source[0] = text


def setup(app):
    """Connect what is above."""
    app.connect("autodoc-process-docstring", docstring, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip)
    app.connect("source-read", links)
