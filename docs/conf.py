"""Settings of the site: ``make docs`` builds it from these pages, the docstrings, the command and the saved numbers."""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
BACK_LINK = re.compile(r'(class="viewcode-back" href="[^"#]*)#[^"]*')
sys.path[:0] = [str(HERE.parent), str(HERE)]

from docutils import nodes
from docutils.utils.math import latex2mathml
from written import NAMES, relinked, write_pages

project = "plaudit"
author = "The plaudit authors"
copyright = "The plaudit authors, Apache-2.0"
release = version = metadata.version("plaudit")
language = "en"

extensions = ["myst_nb", "numpydoc", "sphinx_design"]
extensions += [f"sphinx.ext.{name}" for name in ("autodoc", "autosummary", "viewcode")]
templates_path = ["_templates"]
exclude_patterns = ["_build", "reliability.json"]
nitpicky = False
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # autosummary writes files of the first kind

# Notebooks are text, and run anew by every build: what a page shows is what its code does today.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say the types, with shapes and units
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "plaudit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_sidebars = {"index": []}
html_show_sourcelink = False
html_copy_source = False
# Where GitHub builds the site, it says of which repository.
repository = "/".join(os.environ.get(f"GITHUB_{part}", "") for part in ("SERVER_URL", "REPOSITORY")).strip("/")
links = {"Source": repository, "Issues": f"{repository}/issues"} if repository else {}
html_theme_options = {
    "logo": {"text": "plaudit"},
    "external_links": [{"name": name, "url": url} for name, url in links.items()],
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_center": ["version"],
    "footer_end": ["sphinx-version"],
    # Pages of wide tables have the room.
    "secondary_sidebar_items": {
        **{"**": ["page-toc"], "reliability": [], "explanation/topdown_production": []},
        **{f"generated/findings/{name}": [] for name in (*NAMES, "index")},
    },
}


def formula(translator, node):
    """Formulas are MathML, which browsers draw without a library from elsewhere."""
    block = node.tagname == "math_block"
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


def escaped(app, what, name, thing, options, lines):
    """Shapes such as (runs, *output) are no emphasis, |x| is no substitution, and references are a plain list.

    Citations get roles that readers of screens no longer know.
    """
    lines[:] = [re.sub(r"^(\s*)\.\. \[\d+\] ", r"\1#. ", line) for line in lines]
    lines[:] = [re.sub(r"\[(\d+)\]_", r"[\1]", line) for line in lines]
    lines[:] = [re.sub(r"(?<=, )\*(?=[a-z])", r"\\*", line) for line in lines]
    lines[:] = [re.sub(r"(?<!`)\|(\w+)\|(?!`)", r"\\|\1\\|", line) for line in lines]


def without_anchors(context, name):
    """Drop the anchors of back links on pages of source: viewcode expects one page a module, ours is one a name."""
    return {"body": BACK_LINK.sub(r"\1", context["body"])} if name.startswith("_modules/") else {}


def setup(app):
    """Write the pages that others are the source of, and lead links of the repository to pages of the site."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("config-inited", lambda app, config: write_pages(HERE / "generated"))
    app.connect("autodoc-process-docstring", escaped, priority=100)  # before numpydoc
    app.connect("source-read", lambda app, name, source: source.__setitem__(0, relinked(source[0], name)))
    app.connect(
        "html-page-context", lambda app, name, template, context, tree: context.update(without_anchors(context, name))
    )
