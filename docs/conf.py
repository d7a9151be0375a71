"""Sphinx configuration; `make docs` builds the site into build/site.

The source directory is the root of the repository, so that links between README, docs/, benchmarks/
and other folders work both on the site and in a repository browser.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

from docutils.parsers.rst.states import Inliner

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "_extensions")]

import mercer  # noqa: E402

version = release = mercer.__version__

project, author = "mercer", "the mercer developers"
project_copyright = author
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_links",
    "decision_chart",
    "llms_txt",
]
root_doc = "docs/index"
smartquotes = False  # quotes in prose are often code, such as gamma="scale"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
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
    "docs/_*",
]

templates_path = [str(ROOT / "docs" / "_templates")]  # autosummary resolves paths from the root

html_theme = "pydata_sphinx_theme"
html_title = f"mercer {version}"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_js_files = ["accessible_names.js"]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output of doctests are not copied
html_extra_path = ["_extra"]  # redirects / to docs/index.html
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "docs/howto/which_estimator": [],  # the charts need the width
        "docs/howto/which_kernel": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_persistent": ["search-button"],  # the field has a label that differs from its text
}
html_sidebars = {"docs/index": []}
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False  # "$5 and $6" is not a formula

nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # single backticks become a link if the name is known, otherwise code
    ("py:class", ".*"),  # types of NumPy and scikit-learn: their inventories are not downloaded
]
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"  # types are in the numpydoc sections
numpydoc_show_class_members = False  # the class template lists the members


# --- the gallery ------------------------------------------------------------------------------
# The examples are plain scripts.  They are copied and converted for sphinx-gallery, which needs an
# underlined title, and the text of a `# %%` comment on a separate line.


def to_gallery_source(name: str, text: str) -> str:
    """Return the source of an example in the format of sphinx-gallery."""
    head = ast.parse(text).body[0]
    title, *rest = head.value.value.split("\n")
    title = title.removesuffix(".")
    header = "\n".join(literal_formulas([title, "=" * len(title), *rest]))
    code = "\n".join(text.split("\n")[head.end_lineno :])
    code = re.sub(r"^# %% (.+)$", r"# %%\n# \1", code, flags=re.M)
    hidden = [
        "# sphinx_gallery_start_ignore",
        f'__file__ = "{name}"',
        "# sphinx_gallery_end_ignore",
    ]
    return "\n".join([f'"""{header}\n"""', "", *hidden, code])


def literal_formulas(lines: list[str]) -> list[str]:
    """Mark indented paragraphs as literal blocks, because they are formulas laid out by hand."""
    result: list[str] = []
    for index, line in enumerate(lines):
        previous = next((x for x in reversed(result) if x.strip()), "")
        starts_block = line.startswith("    ") and index > 0 and not lines[index - 1].strip()
        if starts_block and previous and not previous.startswith((" ", "* ", "- ", "::", "---")):
            result += ["::", ""]
        result.append(line)
    return result


def stage_examples() -> Path:
    """Write the converted examples into build/gallery/examples and return this folder."""
    folder = ROOT / "build" / "gallery" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ROOT / "examples").glob("*.py"):
        copy, text = folder / path.name, to_gallery_source(path.name, path.read_text("utf-8"))
        if not copy.exists() or copy.read_text("utf-8") != text:  # unchanged files do not run again
            copy.write_text(text, "utf-8")
    for copy in folder.glob("*.py"):
        if not (ROOT / "examples" / copy.name).exists():
            copy.unlink()
    (folder / "GALLERY_HEADER.rst").write_text(
        "Gallery\n=======\n\nThe scripts in `examples/`, with their output and figures.\n", "utf-8"
    )
    return folder


sphinx_gallery_conf = {
    "examples_dirs": [str(stage_examples())],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": r"\.py$",
    "copyfile_regex": r"",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "notebook_extensions": set(),  # the scripts use __file__, which notebooks do not have
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # do not show run times, which depend on the computer
    "write_computation_times": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "abort_on_example_error": True,
}


# --- reading docstrings -----------------------------------------------------------------------


def as_text(self, match, lineno):
    """Treat a markup character of reStructuredText as plain text."""
    text, end = match.string, match.end("refend" if match["refend"] else "start")
    return text[:end], [], text[end:], []


# In docstrings |x| is a norm and values_ is a fitted attribute, so substitutions and link targets
# are disabled.
Inliner.dispatch = {**Inliner.dispatch, "|": as_text, "_": as_text, "__": as_text}


def process_docstring(app, what, name, obj, options, lines):
    """Mark formulas as literal blocks, and unlink references to pages of scikit-learn."""
    lines[:] = literal_formulas(lines)
    owner = inspect.unwrap(getattr(obj, "fget", obj))
    if not (getattr(owner, "__module__", None) or "mercer").startswith("mercer"):
        lines[:] = [
            re.sub(r":(?!math)\w+:`~?([^`<]+?)(?: <[^`]*>)?`", r"\1", line) for line in lines
        ]


def skip_member(app, what, name, obj, skipped, options):
    """Skip the `set_*_request` methods that scikit-learn adds for metadata routing."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def rewrite_links(app, docname, source):
    """Redirect links to example scripts to the gallery, and link code that names an example."""
    if docname.startswith(("docs/gallery", "docs/api")):
        return
    text = re.sub(r"\]\((?:\.\./)*examples/(\w+)\.py\)", r"](/docs/gallery/\1.rst)", source[0])
    text = re.sub(r"\]\((?:\.\./)*examples/?\)", "](/docs/gallery/index.rst)", text)
    text = re.sub(r"(?<!\[)`examples/(\w+)\.py`", r"[`examples/\1.py`](/docs/gallery/\1.rst)", text)
    source[0] = text


def setup(app):
    """Connect the functions above to Sphinx events."""
    app.connect("autodoc-process-docstring", process_docstring, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", rewrite_links)
