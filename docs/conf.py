"""Sphinx settings; `sphinx-build -W -b html docs docs/_build/html` must stay free of warnings.

Nothing is fetched: pages must build, and be readable, without a network.
"""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import powerkern

sys.path.insert(0, str(Path(__file__).parent))
import messages  # messages.py, which writes a page

project = "powerkern"
author = "the powerkern developers"
project_copyright = "2026, the powerkern developers"
version = release = powerkern.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # brings MathJax and its fonts along
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",  # cards, grids and dropdowns
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",  # CHANGELOG.md
    "sphinx_gallery.gen_gallery",
]
default_role = "autolink"  # a link where `name` is public, else italics
exclude_patterns = ["_build", "gallery", "inventories"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["powerkern.css"]

# The names of others that pages and docstrings refer to, and where they are documented: lists kept by hand.
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "inventories/scipy.inv"),
    "sklearn": ("https://scikit-learn.org/stable/", "inventories/sklearn.inv"),
    "pandas": ("https://pandas.pydata.org/docs/", "inventories/pandas.inv"),
    "matplotlib": ("https://matplotlib.org/stable/", "inventories/matplotlib.inv"),
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Pictures of the pages: the code is shown, and runs as a doctest in the tests too.
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 100)]
plot_rcparams = {"figure.figsize": (5.0, 3.6)}
plot_apply_rcparams = True

# Examples run while the documentation is built, on the Agg backend; an example that raises fails the build.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",  # plot_<area>_<what>.py
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "capture_repr": (),  # a picture needs no text beside it that says what type it is
    "thumbnail_size": (400, 280),
    "show_signature": False,
    "download_all_examples": False,
}

toc_object_entries_show_parents = "hide"  # "confint()" beside the page, not "PowerFit.confint()": there is no room
autodoc_typehints = "none"  # the docstrings say shapes and domains, which the signatures cannot
# Half a gigabyte that only signatures need, and that the extra of the documentation leaves out.
autodoc_mock_imports = [name for name in ("flwr", "pyspark", "ray") if find_spec(name) is None]
nitpicky = True  # a broken reference is a warning, and so an error,
nitpick_ignore_regex = [("py:obj", ".*")]  # except single backticks: many of them are names of arguments
numpydoc_show_class_members = False  # autodoc lists them; both together warn

html_theme = "pydata_sphinx_theme"
html_title = "powerkern"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": "_static/versions.json", "version_match": release},
    "check_switcher": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"]},
}
html_sidebars = {"**": ["sections.html"], "index": []}  # _templates/sections.html
html_show_sourcelink = False


def _tidy(app, what, name, obj, options, lines):
    """Keep docutils from taking an author's initial for a list item, and drop what namedtuple says of its fields."""
    lines[:] = [re.sub(r"^(\.\. \[\w+\] )([A-Z]\.)", r"\1\\\2", line) for line in lines]
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def _unlink_attributes(app, what, name, obj, options, lines):
    """Show the attributes of a `PowerFit` in bold: its page documents only methods, so links are ambiguous."""
    if name.endswith(".PowerFit"):
        lines[:] = [re.sub(r"^( *):obj:`(\w+) <[\w.]*\2>`", r"\1**\2**", line) for line in lines]


def setup(app):
    """Run `_tidy` ahead of numpydoc, which parses the references, and `_unlink_attributes` after it; list messages."""
    messages.write(Path(__file__).parent / "contributing" / "messages.rst")
    app.connect("autodoc-process-docstring", _tidy, priority=100)
    app.connect("autodoc-process-docstring", _unlink_attributes, priority=900)
