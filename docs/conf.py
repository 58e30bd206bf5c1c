"""Sphinx settings; `sphinx-build -W -b html docs docs/_build/html` must stay free of warnings."""

import re

import powerkern

project = "powerkern"
author = "the powerkern developers"
project_copyright = "2026, the powerkern developers"
version = release = powerkern.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",  # CHANGELOG.md
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery"]

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
    "show_signature": False,
    "download_all_examples": False,
}

autodoc_typehints = "none"  # the docstrings say shapes and domains, which the signatures cannot
nitpicky = True  # a reference that leads nowhere is a warning, and so an error
numpydoc_show_class_members = False  # autodoc lists them; both together warn

html_theme = "pydata_sphinx_theme"
html_title = f"powerkern {release}"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_show_sourcelink = False


def _tidy(app, what, name, obj, options, lines):
    """Keep docutils from taking an author's initial for a list item, and drop what namedtuple says of its fields."""
    lines[:] = [re.sub(r"^(\.\. \[\w+\] )([A-Z]\.)", r"\1\\\2", line) for line in lines]
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def setup(app):
    """Register `_tidy` ahead of numpydoc, which takes the references apart."""
    app.connect("autodoc-process-docstring", _tidy, priority=100)
