"""Configuration of Sphinx."""

from heatsketch import __version__

project = "heatsketch"
author = "The heatsketch developers"
release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
# sphinx-gallery writes what Sphinx reads: pages, and beside them scripts and notebooks. What is in
# benchmarks is included by pages.
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "benchmarks/*.md"]

templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": False,  # all failures are reported, and with -W each is an error
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 5,
}

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
