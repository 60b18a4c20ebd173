"""Configuration of Sphinx."""

import sys
import zlib
from pathlib import Path

from heatsketch import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # gallery_style
REPOSITORY = "https://github.com/heatsketch/heatsketch"

project = "heatsketch"
author = "The heatsketch developers"
release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
# sphinx-gallery writes what Sphinx reads: pages, and beside them scripts and notebooks. What is in
# benchmarks is included by pages.
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "benchmarks/*.md"]

templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_in_temp = True
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # of one cell; the machine may be busy
nb_merge_streams = True
numpydoc_show_class_members = False
autodoc_default_options = {"members": True, "inherited-members": "tuple, str, BaseException"}
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output of examples

# --- links to other projects ---------------------------------------------------------------------
# Without a network these names are found all the same, so that pages are the same everywhere.

OTHERS = {
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/$.html", ["numpy.ndarray"]),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "reference/generated/$.html", [
        "scipy.sparse.csr_array",
        "scipy.sparse.linalg.eigsh",
    ]),
    "sklearn": ("https://scikit-learn.org/stable/", "modules/generated/$.html", [
        "sklearn.cluster.KMeans",
        "sklearn.manifold.SpectralEmbedding",
        "sklearn.neighbors.KNeighborsClassifier",
        "sklearn.neighbors.NearestNeighbors",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing.StandardScaler",
    ]),
    "anndata": ("https://anndata.readthedocs.io/en/stable/", "generated/$.html", [
        "anndata.AnnData",
    ]),
}  # fmt: skip


def inventory(project, page, names):
    """Write an inventory of a few classes and functions, and return where it is."""
    folder = HERE / "_build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: 0\n"
    head += "# The remainder of this file is compressed using zlib.\n"
    kinds = (
        (name, "class" if name.rpartition(".")[2][0].isupper() else "function") for name in names
    )
    lines = "".join(f"{name} py:{kind} 1 {page}#$ -\n" for name, kind in kinds)
    path = folder / f"{project}.inv"
    path.write_bytes(head.encode() + zlib.compress(lines.encode()))
    return str(path)


intersphinx_timeout = 5
intersphinx_mapping = {
    name: (address, (None, inventory(name, page, names)))
    for name, (address, page, names) in OTHERS.items()
}

# --- gallery --------------------------------------------------------------------------------------

SECTIONS = ["start", "search", "compare", "trajectories", "graphs", "maps"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/gallery/{name}" for name in SECTIONS],
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": False,  # all failures are reported, and with -W each is an error
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 5,
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "thumbnail_size": (480, 320),
}

# --- looks ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"heatsketch {release}"
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "github_url": REPOSITORY,
    "collapse_navigation": True,  # buttons that expand it would have no text for screen readers
    "header_links_before_dropdown": 6,
    "logo": {"text": "heatsketch"},
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 2,
    "show_toc_level": 2,
    "footer_start": ["copyright", "sphinx-version"],
    "footer_end": [],
}
html_sidebars = {"index": []}


# Members of HeatGraph and Sketch that are for other packages of heatsketch only.
INTERNAL = {
    "again",
    "gathered",
    "how",
    "inner",
    "local",
    "numbers",
    "outer",
    "parts",
    "stationary_length",
    "without_offsets",
}


def skip(app, what, name, member, would_skip, options):
    """Leave out internal members, those of scikit-learn, and fields of named tuples."""
    foreign = str(getattr(member, "__module__", "")).startswith("sklearn.")
    field = str(member.__doc__).startswith("Alias for field number")
    return True if foreign or field or name in INTERNAL else None


def setup(app):
    app.connect("autodoc-skip-member", skip)
