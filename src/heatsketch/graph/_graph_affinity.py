r"""Affinities and node names from graphs of other libraries.

.. math:: K_{ij} = K_{ji} = w_{ij}

for an edge of weight :math:`w_{ij}` between nodes :math:`i` and :math:`j`; nothing is added to the
diagonal. A node without edges has a row of zeros; the estimators give it a self-loop, and it is a
connected component of its own.

The libraries are not imported here: their objects are recognized by their methods.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_square, check_symmetric, plain_distances
from heatsketch.exceptions import DtypeError, HeatSketchError


class Graph(NamedTuple):
    """An undirected graph: affinities :math:`K_{ij}`, and the names of its nodes.

    Attributes
    ----------
    affinity : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
        Symmetric matrix for ``HeatSketch(affinity="precomputed")``. The diagonal is that of the
        graph, and nothing is added to it.
    ids : array of shape (n_nodes,)
        Names of the nodes, as int64 if all are integers and as objects otherwise.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from heatsketch.io import read_graph
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "a.edges").write_text("anna bert 2.0")
    ...     graph = read_graph(Path(folder, "a.edges"))
    >>> graph.ids.tolist(), graph.affinity.toarray().tolist()
    (['anna', 'bert'], [[0.0, 2.0], [2.0, 0.0]])
    """

    affinity: Any
    ids: Any


def graph_affinity(
    graph: Any,
    *,
    weight: str | None = "weight",
    source: str = "source",
    target: str = "target",
    nodes: Any = None,
) -> Graph:
    r"""Return affinities of an undirected graph and the names of its nodes.

    The affinities are the weights of the edges, :math:`K_{ij} = w_{ij}`.
    ``HeatSketch(affinity="precomputed").fit(graph_affinity(edges))`` embeds the nodes and stores
    their names in ``row_names_``. Graphs of networkx and igraph can also be passed directly.

    Parameters
    ----------
    graph : graph, data frame, sparse matrix or array
        A graph of networkx or igraph; an edge list, as a data frame of pandas or polars with a row
        for each edge; or a square symmetric matrix of weights.
    weight : str or None, default="weight"
        Edge attribute or column that contains the weights; a large weight is a strong link. Edges
        have weight 1 if there are no weights, or if ``weight`` is None. The weights of parallel
        edges of a multigraph are added.
    source, target : str, default="source" and "target"
        Columns of an edge list. An edge may be listed once or in both directions, but not with two
        different weights.
    nodes : sequence or None, default=None
        Names of all nodes, including those without edges, in the order of the rows; for edge
        lists and matrices only. By default the nodes of an edge list are sorted, and those of a
        matrix are numbered.

    Returns
    -------
    Graph
        ``affinity``, a CSR array, and ``ids``, the names of the nodes.

    Examples
    --------
    >>> import pandas as pd
    >>> from heatsketch import HeatSketch
    >>> from heatsketch.graph import graph_affinity
    >>> edges = pd.DataFrame({"source": ["anna", "bert"], "target": ["bert", "cleo"]})
    >>> graph = graph_affinity(edges, nodes=["anna", "bert", "cleo", "dora"])
    >>> graph.affinity.toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 1., 0.],
           [0., 1., 0., 0.],
           [0., 0., 0., 0.]])
    """
    if isinstance(graph, Graph):
        return graph
    is_frame = hasattr(graph, "columns")
    if nodes is not None and is_graph(graph):
        raise HeatSketchError(
            f"nodes={reprlib.repr(nodes)} is not for a {_kind(graph)}, which has nodes already; "
            "leave it out."
        )
    if _is_networkx(graph):
        return _of_networkx(graph, weight)
    if _is_igraph(graph):
        return _of_igraph(graph, weight)
    if is_frame:
        return _of_frame(graph, (source, target), weight, nodes)
    return _of_matrix(graph, nodes)


def is_graph(X: Any) -> bool:
    """Return True for a :class:`Graph` and for graphs of networkx and igraph.

    Examples
    --------
    >>> import networkx as nx
    >>> from heatsketch.graph._graph_affinity import is_graph
    >>> is_graph(nx.path_graph(3)), is_graph([[0.0, 1.0], [1.0, 0.0]])
    (True, False)
    """
    return isinstance(X, Graph) or _is_networkx(X) or _is_igraph(X)


def _is_networkx(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("adj", "nodes", "edges", "is_directed"))


def _is_igraph(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("vs", "es", "get_edgelist", "is_directed"))


def _of_networkx(graph: Any, weight: str | None) -> Graph:
    _check_undirected(graph, "to_undirected")
    place = {name: number for number, name in enumerate(graph.nodes)}
    edges = list(graph.edges(data=weight, default=1.0) if weight else graph.edges())
    pairs = [(place[edge[0]], place[edge[1]]) for edge in edges]
    weights = [edge[2] for edge in edges] if weight else [1.0] * len(edges)
    attributes = (data for *_, data in graph.edges.data())
    if weight not in (None, "weight") and not any(weight in data for data in attributes):
        raise _no_weight(graph, weight)
    return _added(pairs, weights, list(place))


def _of_igraph(graph: Any, weight: str | None) -> Graph:
    _check_undirected(graph, "as_undirected")
    pairs, known = graph.get_edgelist(), graph.es.attributes()
    if weight not in (None, "weight", *known):
        raise _no_weight(graph, weight)
    weights = graph.es[weight] if weight in known else [1.0] * len(pairs)
    n_nodes = len(graph.vs)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(n_nodes)
    return _added(pairs, weights, list(names))


def _of_frame(frame: Any, ends: tuple[str, str], weight: str | None, nodes: Any) -> Graph:
    columns = list(frame.columns)
    for option, column in zip(("source", "target"), ends, strict=True):
        if column not in columns:
            raise HeatSketchError(
                f"{option}={column!r} is none of the columns {reprlib.repr(columns)} of the edge "
                "list; name the two columns that hold the nodes, source= and target=. If the frame "
                "is a matrix of weights, pass it as an array."
            )
    if weight not in (None, "weight", *columns):
        raise _no_weight(frame, weight)
    sources, targets = (list(frame[column]) for column in ends)
    for row, (one, other) in enumerate(zip(sources, targets, strict=True)):
        if one is None or other is None or one != one or other != other:
            raise HeatSketchError(
                f"row {row} of the edge list is an edge between {one!r} and {other!r}; fill in the "
                "name of the node, or drop the row."
            )
    names = _in_order({*sources, *targets}) if nodes is None else list(nodes)
    place = {name: number for number, name in enumerate(names)}
    unknown = {*sources, *targets} - place.keys()
    if unknown or len(place) < len(names):
        what = f"lacks {next(iter(unknown))!r}, the end of an edge" if unknown else "repeats a name"
        raise HeatSketchError(
            f"nodes={reprlib.repr(nodes)} {what}; give each node once, or leave nodes out."
        )
    pairs = np.array([[place[name] for name in side] for side in (sources, targets)], int).T
    weights = list(frame[weight]) if weight in columns else [1.0] * len(pairs)
    ids = _names(names)
    affinity = undirected(pairs, _weights(weights, pairs, ids), len(names), names=ids)
    return Graph(affinity, ids)


def _of_matrix(matrix: Any, nodes: Any) -> Graph:
    affinity = plain_distances(matrix, "graph")
    check_square(affinity, name="graph")
    check_symmetric(affinity, name="graph")
    n_nodes = affinity.shape[0]
    names = list(range(n_nodes) if nodes is None else nodes)
    if len(set(names)) != n_nodes or len(names) != n_nodes:
        raise HeatSketchError(
            f"nodes={reprlib.repr(nodes)} has {len(names)} names, {len(set(names))} of them "
            f"different, for a matrix of shape {affinity.shape}; give each row a name of its own."
        )
    return Graph(sparse.csr_array(affinity), _names(names))


def undirected(pairs: np.ndarray, weights: Any, n_nodes: int, *, names: Any) -> sparse.csr_array:
    """Return a symmetric matrix that counts each edge once, in either direction.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.graph._graph_affinity import undirected
    >>> undirected(np.array([[0, 1], [1, 0]]), [2.0, 2.0], 2, names="ab").toarray()
    array([[0., 2.],
           [2., 0.]])
    """
    pairs = np.sort(pairs.reshape(-1, 2), axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, weights = pairs[order], np.asarray(weights, dtype=np.float64)[order]
    again = (np.diff(pairs, axis=0) == 0).all(axis=1)
    differ = again & (weights[1:] != weights[:-1])
    if differ.any():
        place = int(np.argmax(differ))
        one, other = (names[number] for number in pairs[place])
        raise HeatSketchError(
            f"the edge between nodes {one} and {other} has the weights {weights[place]:.6g} and "
            f"{weights[place + 1]:.6g}; list each edge once, or with the same weight in both "
            "directions."
        )
    first = np.concatenate([[True], ~again]) if len(pairs) else np.zeros(0, dtype=bool)
    return _symmetric(pairs[first], weights[first], n_nodes)


def _added(pairs: list, weights: list, names: list) -> Graph:
    """Return a graph in which the weights of parallel edges are added."""
    ids = _names(names)
    ends = np.sort(np.array(pairs, int).reshape(-1, 2), axis=1)
    return Graph(_symmetric(ends, _weights(weights, ends, ids), len(names)), ids)


def _symmetric(pairs: np.ndarray, weights: np.ndarray, n_nodes: int) -> sparse.csr_array:
    low, high = pairs.T
    upper = sparse.csr_array((weights, (low, high)), shape=(n_nodes, n_nodes))
    affinity = sparse.csr_array(upper + sparse.triu(upper, k=1).T)
    affinity.eliminate_zeros()
    affinity.sort_indices()
    return affinity


def _weights(weights: Iterable[Any], pairs: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return weights as floats; raise for the first edge with an invalid one."""
    values = list(weights)
    try:
        found = np.array(values, dtype=np.float64)
        invalid = ~np.isfinite(found) | [isinstance(value, str) for value in values]
    except (TypeError, ValueError):
        invalid = np.array([not isinstance(v, int | float | np.number) for v in values])
    if not invalid.any():
        return found
    place = int(np.argmax(invalid))
    one, other = (names[number] for number in pairs[place])
    raise DtypeError(
        f"the edge between nodes {one!r} and {other!r} has the weight {values[place]!r}, which is "
        "no finite number; correct it, or use weight=None, by which each edge weighs 1."
    )


def _names(names: list) -> np.ndarray:
    """Return names as int64 if all are integers, and as objects otherwise."""
    if all(isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names):
        try:
            return np.array(names, dtype=np.int64)
        except OverflowError:
            pass
    return np.fromiter(names, dtype=object, count=len(names))  # a name may be a tuple


def _in_order(names: set) -> list:
    try:
        return sorted(names)
    except TypeError:  # not comparable, for instance text and numbers
        return sorted(names, key=lambda name: (type(name).__name__, str(name)))


def _kind(graph: Any) -> str:
    return f"{type(graph).__name__} of {type(graph).__module__.partition('.')[0]}"


def _check_undirected(graph: Any, remedy: str) -> None:
    if graph.is_directed():
        raise HeatSketchError(
            f"the graph is directed (a {_kind(graph)}), and affinities are symmetric; pass "
            f"graph.{remedy}()."
        )


def _no_weight(graph: Any, weight: Any) -> HeatSketchError:
    return HeatSketchError(
        f"weight={weight!r} is no attribute of the edges of this {_kind(graph)}; name one, or use "
        "weight=None, by which each edge weighs 1."
    )
