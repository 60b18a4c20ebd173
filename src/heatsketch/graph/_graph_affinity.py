r"""Affinities and node names from graphs of other libraries.

.. math:: K_{ij} = K_{ji} = w_{ij}

for an edge of weight :math:`w_{ij}` between nodes :math:`i` and :math:`j`; nothing is added to the
diagonal. A node without edges has a row of zeros. The estimators add a self-loop to it, and it is
a separate connected component.

The libraries are not imported here: their objects are recognized by their methods.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.checks import check_finite, is_missing
from heatsketch.exceptions import DtypeError, HeatSketchError


class Graph(NamedTuple):
    """An undirected graph: affinities :math:`K_{ij}`, and the names of its nodes.

    Attributes
    ----------
    affinity : scipy.sparse.csr_array of shape (n_nodes, n_nodes)
        Symmetric matrix for :meth:`HeatGraph.from_affinity`. The diagonal is that of the
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

    def is_directed(self) -> bool:
        """Return False, as graphs of other libraries do if their edges have no direction."""
        return False


def graph_affinity(
    graph: Any,
    *,
    weight: str | None = "weight",
    source: str = "source",
    target: str = "target",
) -> Graph:
    r"""Return affinities of an undirected graph and the names of its nodes.

    The affinities are the weights of the edges, :math:`K_{ij} = w_{ij}`.
    :meth:`HeatGraph.from_affinity` calls this function, and keeps the names as ``ids``.

    Parameters
    ----------
    graph : graph or data frame
        A graph of networkx or igraph; or an edge list, as a data frame of pandas or polars with a
        row for each edge.
    weight : str or None, default="weight"
        Edge attribute or column that contains the weights; a large weight is a strong link. Edges
        have weight 1 if there are no weights, or if ``weight`` is None. The weights of parallel
        edges of a multigraph are added.
    source, target : str, default="source" and "target"
        Columns of an edge list. An edge may be listed once or in both directions, but not with two
        different weights. Nodes are sorted.

    Returns
    -------
    Graph
        ``affinity``, a CSR array, and ``ids``, the names of the nodes.

    Examples
    --------
    >>> import pandas as pd
    >>> from heatsketch.graph import graph_affinity
    >>> edges = pd.DataFrame({"source": ["anna", "bert"], "target": ["bert", "cleo"]})
    >>> graph_affinity(edges).affinity.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    if isinstance(graph, Graph):
        return graph
    if _is_networkx(graph):
        return _of_networkx(graph, weight)
    if _is_igraph(graph):
        return _of_igraph(graph, weight)
    if hasattr(graph, "columns"):
        return _of_frame(graph, (source, target), weight)
    raise DtypeError(
        "graph must be a graph of networkx or igraph, or a data frame of edges, got a "
        f"{type(graph).__name__}; pass a matrix of weights to HeatGraph.from_affinity."
    )


def _is_networkx(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("adj", "nodes", "edges", "is_directed"))


def _is_igraph(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("vs", "es", "get_edgelist", "is_directed"))


def _of_networkx(graph: Any, weight: str | None) -> Graph:
    _check_undirected(graph, "to_undirected")
    weights, names = None, list(graph.nodes)
    if _has_weights(graph, weight, {name for *_, data in graph.edges.data() for name in data}):
        weights = [value for *_, value in graph.edges(data=weight, default=1.0)]
    return _graph(_symmetric, _numbered(graph.edges(), names), weights, names)


def _of_igraph(graph: Any, weight: str | None) -> Graph:
    _check_undirected(graph, "as_undirected")
    weights = graph.es[weight] if _has_weights(graph, weight, graph.es.attributes()) else None
    has_names = "name" in graph.vs.attributes()
    names = list(graph.vs["name"] if has_names else range(len(graph.vs)))
    return _graph(_symmetric, graph.get_edgelist(), weights, names)


def _of_frame(frame: Any, ends: tuple[str, str], weight: str | None) -> Graph:
    columns = list(frame.columns)
    for option, column in zip(("source", "target"), ends, strict=True):
        if column not in columns:
            raise HeatSketchError(
                f"{option}={column!r} is not a column of the edge list; use one of "
                f"{reprlib.repr(columns)}, or pass an array if the frame is a matrix of weights."
            )
    edges = list(zip(*(frame[column] for column in ends), strict=True))
    for row, nodes in enumerate(edges):
        if any(map(is_missing, nodes)):
            raise HeatSketchError(
                f"The edge in row {row} of the edge list has a missing node {nodes!r}; fill it in "
                "or drop the row."
            )
    weights = frame[weight] if _has_weights(frame, weight, columns) else None
    distinct = {name for nodes in edges for name in nodes}
    names = sorted(distinct, key=lambda name: (type(name).__name__, name))
    return _graph(undirected, _numbered(edges, names), weights, names)


def _has_weights(graph: Any, weight: str | None, known: Collection[Any]) -> bool:
    """Return whether edges have an attribute; raise if not, unless it is the default."""
    if weight not in (None, "weight", *known):
        raise HeatSketchError(
            f"weight={weight!r} is not an attribute of the edges of this {_kind(graph)}; use an "
            "attribute, or weight=None for weights of 1."
        )
    return weight in known


def _numbered(edges: Iterable[Any], names: list[Any]) -> list[tuple[int, int]]:
    """Return the numbers of the nodes of each edge."""
    place = {name: number for number, name in enumerate(names)}
    return [(place[one], place[other]) for one, other in edges]


def _graph(make: Callable[..., Any], pairs: list[Any], weights: Any, names: list[Any]) -> Graph:
    """Return a graph of edges; raise for weights that are not finite numbers."""
    try:
        values = np.ones(len(pairs)) if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise DtypeError(
            f"The weight of each edge must be a number ({error}); use another attribute, or "
            "weight=None for weights of 1."
        ) from error
    ids = _names(names)
    affinity = make(np.array(pairs, int).reshape(-1, 2), values, len(names), names=ids)
    check_finite(affinity, ids, "The matrix of weights", ids=ids)
    return Graph(affinity, ids)


def undirected(
    pairs: np.ndarray, weights: np.ndarray, n_nodes: int, *, names: Any
) -> sparse.csr_array:
    """Return a symmetric matrix that counts each edge once, in either direction."""
    low, high = np.sort(pairs.reshape(-1, 2), axis=1).T
    _, first, edges = np.unique(low * n_nodes + high, return_index=True, return_inverse=True)
    before = weights[first[edges]]
    differ = (weights < before) | (weights > before)  # not for NaN, which is reported later
    if differ.any():
        edge = int(np.argmax(differ))
        raise HeatSketchError(
            f"The edge between nodes {names[low[edge]]} and {names[high[edge]]} has two weights, "
            f"{before[edge]:.6g} and {weights[edge]:.6g}; list each edge once, or with the same "
            "weight in both directions."
        )
    return _symmetric(pairs[first], weights[first], n_nodes, names=names)


def _symmetric(
    pairs: np.ndarray, weights: np.ndarray, n_nodes: int, *, names: Any
) -> sparse.csr_array:
    """Return a symmetric matrix in which the weights of parallel edges are added."""
    low, high = np.sort(pairs, axis=1).T
    upper = sparse.csr_array((weights, (low, high)), shape=(n_nodes, n_nodes))
    affinity = sparse.csr_array(upper + sparse.triu(upper, k=1).T)
    affinity.eliminate_zeros()
    affinity.sort_indices()
    return affinity


def _names(names: list) -> np.ndarray:
    """Return names as int64 if all are integers, and as objects otherwise."""
    is_integer = (isinstance(name, Integral) and not isinstance(name, bool) for name in names)
    if all(is_integer) and all(abs(name) < 2**63 for name in names):
        return np.array(names, dtype=np.int64)
    return np.fromiter(names, dtype=object, count=len(names))  # a name may be a tuple


def _kind(graph: Any) -> str:
    return f"{type(graph).__name__} of {type(graph).__module__.partition('.')[0]}"


def _check_undirected(graph: Any, remedy: str) -> None:
    if graph.is_directed():
        raise HeatSketchError(
            f"The graph must be undirected, got a directed {_kind(graph)}; pass graph.{remedy}()."
        )
