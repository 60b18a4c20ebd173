"""HeatGraph: a neighbour graph, its heat operator, and the rule for new points.

A graph is made in three steps: affinities ``K`` of points, neighbours or nodes (``_rules.py``), the
normalization of ``K`` to the heat operator ``A``, and its connected components. It is immutable, so
that any number of sketches, labels, clusters and comparisons can share it.

Rows of ``A`` are sorted so that near points are adjacent, which makes products fast. Everything
public is in the order of the given rows; :meth:`HeatGraph.inner` and :meth:`HeatGraph.outer`
convert between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heatsketch._core.checks import (
    check_choice,
    check_distance_matrix,
    check_points,
    is_graph,
    plain_numbers,
)
from heatsketch._core.partitioned import in_memory, is_lazy
from heatsketch.diffusion._affinity import gaussian_affinity, strongest_columns
from heatsketch.diffusion._all_times import Components
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._normalization import SCALINGS, Scaling, row_sums
from heatsketch.diffusion._operator import heat_operator, heat_rows
from heatsketch.engines import Engine, LocalEngine
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph._graph_affinity import graph_affinity
from heatsketch.graph._metrics import ALIASES
from heatsketch.heat._checks import (
    N_NEIGHBORS,
    check_ids,
    check_number_of_neighbors,
    warn_about_components,
    warn_about_isolated_points,
)
from heatsketch.heat._rules import NodeRule, lists_as_distances, point_rule
from heatsketch.persistence import Saved
from heatsketch.persistence._values import with_pairs, without_pairs

BATCH_ENTRIES = 16_000_000  # affinities of new points in memory at a time
LISTED = 100  # affinities of a new point whose neighbours are searched in inverted lists


@dataclass(frozen=True, eq=False, repr=False)
class HeatGraph(Saved):
    r"""A neighbour graph with its heat operator, of points or of the nodes of a given graph.

    .. math:: A = \mathrm{diag}(s) \, K \, \mathrm{diag}(s)

    Make one with :meth:`from_points`, :meth:`from_neighbors` or :meth:`from_affinity`, and pass it
    to :func:`sketch`, :func:`compare`, :func:`smooth`, :func:`harmonic` and to ``fit`` of every
    estimator. It is immutable, so that all of them can share it.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    ids : array of shape (n_samples,)
        Names of the rows: those given, names of nodes, or positions.
    components : array of int of shape (n_samples,)
        Connected component of each row, numbered from 0.
    n_connected_components : int
    epsilon : float, array of shape (n_samples,) or None
        Bandwidth of the weights: local scales if ``weights="local"``, None if weights were given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, sketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> graph = HeatGraph.from_points(X)
    >>> graph
    HeatGraph(1797 points, 15 neighbours each, 1 connected component)
    >>> sketch(graph, 32).embedding.shape
    (1797, 32)
    """

    operator: Any
    scaling: Scaling
    settings: dict[str, Any]  # how the graph was made
    rule: Any  # PointRule or NodeRule
    order: Any  # the given row of each row of the operator
    row_numbers: Any  # random numbers depend on these; in the order of the operator
    labels: Any  # the connected component of each row of the operator
    n_connected_components: int
    engine: Engine
    names: Any = None

    # --- three ways to make one -----------------------------------------------------------

    @classmethod
    def from_points(
        cls,
        X: Any,
        *,
        n_neighbors: int | None = N_NEIGHBORS,
        metric: Any = "euclidean",
        weights: Any = "local",
        normalization: str = "symmetric",
        ids: Any = None,
        engine: Engine | None = None,
    ) -> HeatGraph:
        """Find the nearest neighbours of points, and compute weights of the links to them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Points. With ``metric="precomputed"`` a square matrix of distances; the stored entries
            of a sparse one are the neighbours.
        n_neighbors : int or None, default=15
            Two points are linked if one of them is among the ``n_neighbors`` nearest of the other,
            where each point counts as its own neighbour. None links all pairs.
        metric : str or callable, default="euclidean"
            "euclidean" or "l2", "cosine", "manhattan", "cityblock" or "l1", "chebyshev",
            "hamming", "jaccard", "precomputed", or a function of two points.
        weights : {"local", "gaussian"} or float, default="local"
            Weight of a link. A number is the bandwidth ``epsilon`` of ``exp(-d**2 / epsilon)``;
            "gaussian" estimates it (:func:`estimate_epsilon`). "local" replaces it by
            ``sigma_i * sigma_j``, with ``sigma`` the distance to the seventh neighbour.
        normalization : {"symmetric", "degree", "bistochastic"}, default="symmetric"
            "symmetric" first divides by the density of points, "degree" gives the random walk
            on the links, "bistochastic" scales until all rows sum to one.
        ids : array of shape (n_samples,), optional
            Distinct integers or text on which the random numbers of the rows depend; positions by
            default. Rows with the same id in two graphs have the same random numbers, so that
            their sketches can be compared.
        engine : Engine, optional
            Where neighbours are searched and the graph is stored; by default this machine.

        Returns
        -------
        HeatGraph
        """
        metric, engine = ALIASES.get(metric, metric), engine or LocalEngine()
        check_choice("normalization", normalization, SCALINGS)
        with engine.working() as session:
            X = plain_numbers(session.read(X), least=2, metric=metric)
            if metric == "precomputed":
                check_distance_matrix(X)
            check_points(X)
            names, numbers = check_ids(ids, X)
            n_neighbors = check_number_of_neighbors(n_neighbors, X, metric)
            order = None
            if metric != "precomputed" and names is not None and (np.diff(numbers) < 0).any():
                # Sorted by ids, so that neighbours do not depend on the order of rows.
                order = np.argsort(numbers)
                X, numbers = X[order], numbers[order]
            neighbors, d2 = session.neighbors(X, metric=metric, n_neighbors=n_neighbors)
            rule, d2 = point_rule(neighbors, d2, X, numbers, weights)
            K = gaussian_affinity(d2, epsilon=rule.bandwidth)
            del d2  # as large as K
            if numbers is not None:
                numbers = session.hold_vector(numbers[in_memory(neighbors.order)], K)
            order = neighbors.order if order is None else order[in_memory(neighbors.order)]
            settings = {"metric": metric, "n_neighbors": n_neighbors, "weights": weights}
            settings["normalization"] = normalization
            return _normalized(K, rule, (order, numbers, names), settings, session, engine)

    @classmethod
    def from_neighbors(
        cls,
        indices: Any,
        distances: Any,
        X: Any = None,
        *,
        metric: Any = "euclidean",
        weights: Any = "local",
        normalization: str = "symmetric",
        ids: Any = None,
    ) -> HeatGraph:
        """Compute weights of links to neighbours that another library has searched.

        Two points are linked if one is listed for the other.

        Parameters
        ----------
        indices : array of int of shape (n_samples, n_neighbors)
            Neighbours of each point, as lists of faiss, cuVS, pynndescent or scikit-learn; -1
            where there is none. A point may be listed for itself.
        distances : array of shape (n_samples, n_neighbors)
            Their distances, not squared.
        X : array of shape (n_samples, n_features), optional
            The points, if new points will be embedded. These are compared with all of them.
        metric : str or callable, default="euclidean"
            The metric of ``distances``, used with ``X`` only.
        weights, normalization, ids :
            As for :meth:`from_points`.

        Returns
        -------
        HeatGraph

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.neighbors import NearestNeighbors
        >>> from heatsketch import HeatGraph
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> distances, indices = NearestNeighbors(n_neighbors=15).fit(X).kneighbors(X)
        >>> listed = HeatGraph.from_neighbors(indices, distances)
        >>> searched = HeatGraph.from_points(X, n_neighbors=15)
        >>> bool(abs(listed.operator.matrix - searched.operator.matrix).max() < 1e-12)
        True
        """
        graph = lists_as_distances(indices, distances)
        made = cls.from_points(
            graph, metric="precomputed", weights=weights, normalization=normalization, ids=ids
        )
        if X is None:
            return made
        X = plain_numbers(X, least=2).astype(made.dtype, copy=False)
        check_points(X)
        return replace(made, rule=made.rule.with_points(X, metric, graph))

    @classmethod
    def from_affinity(
        cls,
        W: Any,
        *,
        weight: str | None = "weight",
        source: str = "source",
        target: str = "target",
        normalization: str = "degree",
        self_loops: bool = True,
        ids: Any = None,
        engine: Engine | None = None,
    ) -> HeatGraph:
        """Make a graph of given weights.

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph, or data frame
            A square symmetric matrix of weights, large for strong links; a graph; or an edge list,
            with one row for each edge.
        weight, source, target :
            Attribute of the edges with the weights, and columns of an edge list; see
            :func:`graph_affinity`.
        normalization : {"degree", "symmetric", "bistochastic"}, default="degree"
            As for :meth:`from_points`.
        self_loops : bool, default=True
            Whether nodes without a self-loop get one, with a tenth of the weight of their
            strongest link. Without self-loops, a walk on a bipartite graph never mixes.
        ids : array of shape (n_samples,), optional
            As for :meth:`from_points`; by default names of nodes, if all are text or integers.
        engine : Engine, optional
            As for :meth:`from_points`. The matrix must be sparse on a cluster.

        Returns
        -------
        HeatGraph

        Examples
        --------
        >>> import networkx as nx
        >>> from heatsketch import HeatGraph
        >>> HeatGraph.from_affinity(nx.karate_club_graph())
        HeatGraph(34 nodes, 78 links, 1 connected component)
        """
        engine, nodes = engine or LocalEngine(), None
        check_choice("normalization", normalization, SCALINGS)
        if is_graph(W) or hasattr(W, "columns"):
            W, nodes = graph_affinity(W, weight=weight, source=source, target=target)
        # Other objects may have another text in each process, so their nodes have no ids.
        if ids is None and nodes is not None:
            ids = nodes if all(isinstance(name, int | str) for name in nodes.tolist()) else None
        with engine.working() as session:
            W = plain_numbers(session.read(W), least=2)
            names, numbers = check_ids(ids, W)
            rule, K = NodeRule.of(W, nodes, self_loops=self_loops)
            K, order = session.hold(K), np.arange(K.shape[0])
            numbers = session.hold_vector(numbers, K)
            names = nodes if nodes is not None else names
            settings = {"self_loops": self_loops, "normalization": normalization}
            return _normalized(K, rule, (order, numbers, names), settings, session, engine)

    # --- new points -----------------------------------------------------------------------

    def rows(self, X: Any) -> NewRows:
        """Return the rows of the heat operator for new points, which sketches can embed.

        A training point has its own row, whatever the other rows are.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            Points in the metric of the graph, or with ``metric="precomputed"`` their distances to
            all rows; for given weights, those of links to all nodes, or a graph of these nodes. A
            row that equals that of one node is this node, and has its self-loop. Other rows are
            new nodes, without self-loops; this includes rows that equal those of several nodes,
            with a warning, unless ``X`` is the whole matrix.

        Returns
        -------
        NewRows
        """
        return NewRows(self, self.rule.checked(X, self.dtype))

    # --- properties -----------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.operator.shape[0]

    @property
    def n_features_in(self) -> int:
        """Number of features of the points, or number of nodes."""
        return self.rule.n_features

    @property
    def dtype(self) -> np.dtype:
        """Precision of the operator."""
        return self.operator.dtype

    @property
    def ids(self) -> np.ndarray:
        """Names of the rows: those given, names of nodes, or positions."""
        return np.arange(self.n_samples) if self.names is None else self.names

    @property
    def numbers(self) -> np.ndarray:
        """Numbers of the rows on which their random numbers depend."""
        if self.names is None:
            return np.arange(self.n_samples)
        return self.gathered(self.row_numbers)

    @property
    def components(self) -> np.ndarray:
        """Connected component of each row, numbered from 0."""
        if self.labels is None:
            return np.zeros(self.n_samples, np.int32)
        return self.gathered(self.labels)

    @property
    def epsilon(self) -> Any:
        """Bandwidth of the weights; local scales in the order of the rows, or None."""
        scales = self.rule.scales
        return self.rule.bandwidth if scales is None else self.gathered(scales)

    @property
    def stationary_length(self) -> Any:
        """Length of the stationary direction of the operator."""
        return self.operator.stationary.dtype.type(np.sqrt(self.operator.squared_length))

    @property
    def parts(self) -> Components | None:
        """Stationary directions of the connected components, or None if there is only one."""
        return None if self.labels is None else Components(self.operator, self.labels)

    def local(self) -> tuple[Any, Components | None]:
        """Return the operator, and its parts, for blocks in the memory of this machine."""
        A = self.operator.local()
        return A, None if self.labels is None else Components(A, in_memory(self.labels))

    def inner(self, values: np.ndarray) -> Any:
        """Return rows in the order of the operator, stored where the operator is."""
        with self.engine.working() as session:
            return session.hold_vector(values[in_memory(self.order)], self.operator)

    def outer(self, block: Any) -> Any:
        """Return rows of the operator in the order of the given rows."""
        with self.engine.working() as session:
            return session.in_given_order(block, self.order)

    def gathered(self, block: Any) -> np.ndarray:
        """Return rows of the operator in the order of the given rows, in memory."""
        return in_memory(self.outer(block))

    # --- files and pickles ----------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without affinities of all pairs, which the points determine."""
        return vars(self) | {"operator": without_pairs(self.operator, self.rule)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, and compute affinities of all pairs again."""
        vars(self).update(state)
        vars(self)["operator"] = with_pairs(self.operator, self.rule)

    def _stored_parts(self) -> dict[str, Any]:
        return {name: value for name, value in self.__getstate__().items() if name != "engine"}

    def _summary(self) -> dict[str, Any]:
        numbers = {"n_samples": self.n_samples, "n_features": self.n_features_in}
        return {**self.settings, **numbers, "n_connected_components": self.n_connected_components}

    def __repr__(self) -> str:
        parts = f"{self.n_connected_components} connected component"
        plural = "" if self.n_connected_components == 1 else "s"
        links = f"{self.rule.kind}, {self.rule.links(self.operator)}"
        return f"HeatGraph({self.n_samples} {links}, {parts}{plural})"


def graph_of(source: Any) -> HeatGraph:
    """Return a graph, or the graph that a sketch or a fitted estimator has."""
    if is_graph(source):  # of networkx or igraph
        return HeatGraph.from_affinity(source)
    for name in ("graph_", "graph"):
        source = getattr(source, name, source)
    if not isinstance(source, HeatGraph):
        raise HeatSketchError(
            "graph must be a HeatGraph, a graph of networkx or igraph, a sketch or a fitted model, "
            f"got a {type(source).__name__}."
        )
    return source


def _normalized(
    K: Any,
    rule: Any,
    rows: tuple[Any, Any, Any],
    settings: dict[str, Any],
    session: Engine,
    engine: Engine,
) -> HeatGraph:
    """Normalize affinities to the heat operator, and find connected components."""
    order, numbers, names = rows
    sums = row_sums(K)
    warn_about_isolated_points(K, sums, rule.bandwidth)
    n_parts, labels = Components.label(K)
    if n_parts > 1:
        warn_about_components(n_parts, rule)
    scaling = SCALINGS[settings["normalization"]](K, sums=sums)
    if scaling.previous is not None:
        scaling = replace(scaling, previous=session.keep(scaling.previous))
    session.needs(scaling.current, *([] if numbers is None else [numbers]))
    return HeatGraph(
        operator=heat_operator(K, scaling),
        scaling=scaling,
        settings=settings,
        rule=rule,
        order=order,
        row_numbers=order if numbers is None else numbers,
        labels=labels if n_parts > 1 else None,
        n_connected_components=n_parts,
        engine=engine,
        names=names,
    )


# --- new points -------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Rows of the operator for some new points.

    Attributes
    ----------
    operator : HeatOperator of shape (n_rows, n_columns)
    labels : array of int of shape (n_rows,) or None
        The component of the training point with the largest affinity.
    columns : array of int or None
        Rows of the graph's operator that are columns here; all if None.
    """

    operator: Any
    labels: Any
    columns: Any

    def times(self, block: Any) -> np.ndarray:
        """Multiply a block that has a row for each row of the graph's operator."""
        return self.operator @ self.of(block)

    def of(self, block: Any) -> Any:
        """Return the rows of a block that are columns here."""
        return block if self.columns is None else np.asarray(block[self.columns])


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of the heat operator for new points, computed in batches when they are used.

    Attributes
    ----------
    graph : HeatGraph
    X : array or CSR array of shape (n_new, n_features)
    """

    graph: HeatGraph
    X: Any

    def each(self, function: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Apply a function to each batch, and concatenate the results."""
        graph = self.graph
        step = max(1, BATCH_ENTRIES // (LISTED if graph.rule.is_listed else graph.n_samples))
        starts = range(0, self.X.shape[0], step)
        return np.concatenate([function(self._batch(start, start + step)) for start in starts])

    def _batch(self, start: int, stop: int) -> Batch:
        graph, X = self.graph, self.X[start:stop]
        rows = graph.rule.entries(in_memory(X) if is_lazy(X) else X)
        A, rows, columns = graph.operator.at_columns_of(rows)
        starts = graph.rule.starts
        # Copies of a point share a column, the scale and the component of the first of them.
        some = starts[:-1] if columns is None and starts is not None else columns

        def at(vector: Any) -> Any:
            return vector if vector is None or some is None else np.asarray(vector[some])

        K = graph.rule.affinity(rows, at(graph.rule.scales), first_row=start)
        labels = None if graph.labels is None else at(graph.labels)[strongest_columns(K)]
        scaling = graph.scaling if columns is None else graph.scaling.at(columns)
        spread = K if starts is None else SharedRows(K, starts, is_square=False)
        return Batch(heat_rows(spread, scaling, A), labels, columns)
