"""Sphinx: the module docstrings are the pages."""

from heatsketch import __version__

project = "heatsketch"
author = "The heatsketch developers"
release = __version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "benchmarks/*.md"]  # which pages include

myst_enable_extensions = ["dollarmath"]
numpydoc_show_class_members = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types

html_theme = "pydata_sphinx_theme"
html_title = f"heatsketch {release}"
html_show_copyright = False
html_show_sourcelink = False


def skip(app, what, name, member, would_skip, options):
    """Leave out scikit-learn's own methods, and fields that a named tuple documents itself."""
    foreign = str(getattr(member, "__module__", "")).startswith("sklearn.")
    field = str(member.__doc__).startswith("Alias for field number")
    return True if foreign or field else None


def setup(app):
    app.connect("autodoc-skip-member", skip)
