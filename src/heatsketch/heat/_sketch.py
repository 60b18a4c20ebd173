"""Sketch: an embedding of a heat graph, with its settings and intervals of its distances."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from heatsketch._core.checks import check_choice, check_integer, check_integers
from heatsketch._core.partitioned import in_memory, over_rows
from heatsketch.diffusion._all_times import (
    TOLERANCE,
    Times,
    add_offsets,
    all_times_weights,
    first_times,
    sum_over_times,
)
from heatsketch.diffusion._chebyshev import cut_of
from heatsketch.diffusion._confidence import DistanceEstimate, components_for
from heatsketch.diffusion._distances import (
    DiffusionNeighbors,
    diffusion_distances,
    diffusion_neighbors,
)
from heatsketch.diffusion._heat_trace import FEWEST_COLUMNS
from heatsketch.diffusion._leading import leading_and_random, orthonormal_columns
from heatsketch.diffusion._random_matrix import Kind, random_block
from heatsketch.diffusion._sketch import diffuse, diffuse_path
from heatsketch.diffusion._spectral import DiffusionCoordinates, eigenvalue_powers, ritz_pairs
from heatsketch.exceptions import DtypeError, HeatSketchError, SpectrumError, TrainingDataError
from heatsketch.heat._checks import warn_about_decay, warn_about_rounding, warn_about_saturation
from heatsketch.heat._graph import Batch, HeatGraph, NewRows, graph_of
from heatsketch.persistence import Saved

RANDOM_MATRICES = {"gaussian": Kind.GAUSSIAN, "rademacher": Kind.RADEMACHER}
FEWEST_SPLIT = 16  # components from which on half of them are leading directions
MOST_LEADING = 128  # by default: finding them takes longer than products with many more
SAMPLED_PAIRS = 10_000  # random pairs from which errors are estimated


@dataclass(frozen=True)
class Settings:
    """What a sketch depends on besides its graph.

    Attributes
    ----------
    power : int or "all"
    n_leading : int
    weighting : {"random_walk", "symmetric"}
    stationary : {"drop", "keep"}
    random_matrix : {"gaussian", "rademacher"}
    seed : int
    """

    power: Any
    n_leading: int
    weighting: str
    stationary: str
    random_matrix: str
    seed: int

    def __post_init__(self) -> None:
        check_choice("weighting", self.weighting, ("random_walk", "symmetric"))
        check_choice("stationary", self.stationary, ("drop", "keep"))
        check_choice("random_matrix", self.random_matrix, RANDOM_MATRICES)
        if isinstance(self.power, str):
            check_choice("power", self.power, ("all",))
        elif isinstance(self.power, bool) or self.power < 1 or self.power % 1 != 0:
            raise SpectrumError(f"power must be 'all' or an integer >= 1, got {self.power!r}.")
        if self.power == "all" and (self.stationary, self.weighting) != ("drop", "random_walk"):
            raise HeatSketchError(
                f"power='all' does not support stationary={self.stationary!r} with "
                f"weighting={self.weighting!r}: the stationary direction never decays, and only "
                "distances of a random walk do not depend on the density of points. Use "
                "stationary='drop' and weighting='random_walk', or one power such as power=8."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Saved):
    r"""An embedding whose Euclidean distances estimate diffusion distances.

    .. math:: Y = B S, \qquad E[S S^T] = I, \qquad E |y_i - y_j|^2 = |B_i - B_j|^2

    Made by :func:`sketch`. The first ``n_leading`` components are exact, and the others random:
    only the part of a distance that they estimate has an error.

    Attributes
    ----------
    embedding : array of shape (n_samples, n_components)
        In the order of the rows of the graph.
    graph : HeatGraph or None
        None if the sketch was saved without it.
    settings : Settings
        Power, seed and so on.
    times : Times or None
        How the sum over all diffusion times was cut, if ``power="all"``.
    first_power : int
        The power, or that at which the sum over all times starts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, sketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> made = sketch(HeatGraph.from_points(X[:1500]), 32)
    >>> made
    Sketch(1500 rows, 32 components, all times from power 5)
    >>> made.extend(made.graph.rows(X[1500:])).shape
    (297, 32)
    """

    embedding: Any
    graph: HeatGraph | None
    graph_settings: dict[str, Any]  # how the graph was made
    settings: Settings
    times: Times | None
    before_last: Any  # f(A) A**-1 G, in the order of the operator
    coefficients: Any  # of the stationary direction in G
    offsets: Any = None  # of each connected component
    names: Any = None  # of the rows
    given_numbers: Any = None  # of the rows, on which their random numbers depend

    @property
    def n_components(self) -> int:
        """Number of columns."""
        return self.embedding.shape[1]

    @property
    def first_power(self) -> Any:
        """The power, or that at which the sum over all times starts."""
        return self.settings.power if self.times is None else self.times.first_power

    @property
    def ids(self) -> np.ndarray:
        """Names of the rows: those given, names of nodes, or positions."""
        return self.numbers if self.names is None else self.names

    @property
    def numbers(self) -> np.ndarray:
        """Numbers of the rows on which their random numbers depend."""
        given = self.given_numbers
        return np.arange(self.embedding.shape[0]) if given is None else given

    @property
    def n_connected_components(self) -> int:
        """Number of connected components that are moved apart."""
        return 1 if self.offsets is None else len(self.offsets)

    def how(self) -> dict[str, Any]:
        """Return all settings that two sketches must share to be compared."""
        return {**self.graph_settings, **vars(self.settings), "n_components": self.n_components}

    def __repr__(self) -> str:
        n_rows, n_columns = self.embedding.shape
        power = f"power {self.settings.power}"
        if self.times is not None:
            power = f"all times from power {self.first_power}"
        return f"Sketch({n_rows} rows, {n_columns} components, {power})"

    # --- distances --------------------------------------------------------------------------

    def distances(
        self, pairs: Any, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> DistanceEstimate:
        """Diffusion distances of pairs of rows, with intervals.

        Parameters
        ----------
        pairs : array of int of shape (m, 2)
            Rows.
        confidence, simultaneous :
            As for :func:`diffusion_distances`.

        Returns
        -------
        DistanceEstimate
            The intervals cover the error of the sketch only, not that of the sample, and are valid
            for pairs chosen without looking at the sketch.
        """
        return diffusion_distances(
            self.embedding,
            pairs,
            simultaneous=simultaneous,
            confidence=confidence,
            **self._law,
        )

    def neighbors(
        self,
        rows: Any,
        n_neighbors: int = 10,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> DiffusionNeighbors:
        """Nearest rows, with intervals and the confidence in their order.

        Parameters
        ----------
        rows : int, array of int of shape (m,), or array of float of shape (m, n_components)
            Rows, or embedded new points (:meth:`extend`).
        n_neighbors : int, default=10
        confidence, simultaneous :
            As for :func:`diffusion_neighbors`.

        Returns
        -------
        DiffusionNeighbors
            The intervals account for the fact that the sketch selects the neighbours. They cover
            the error of the sketch only, not that of the sample.
        """
        return diffusion_neighbors(
            self.embedding,
            np.atleast_1d(rows),
            n_neighbors=n_neighbors,
            simultaneous=simultaneous,
            confidence=confidence,
            **self._law,
        )

    def pseudotime(self, root: int, *, confidence: float = 0.95) -> DistanceEstimate:
        """Diffusion pseudotime: distances from a root, over all diffusion times.

        Parameters
        ----------
        root : int
            A row.
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DistanceEstimate
            ``distance``, ``low`` and ``high``, arrays of shape (n_samples,). Divide by the largest
            distance for values up to one. The intervals cover the error of the sketch only, not
            that of the sample, and are valid for a root chosen without looking at the sketch.

        Notes
        -----
        If heat needs more than 10,000 steps to spread over the graph, as on long curves, the sum is
        computed again with a horizon of up to a million steps, in up to ten times as many products.
        If that is too short as well, there is a warning.
        """
        made: Any = self
        if self.times is None:
            settings = replace(
                self.settings, power="all", stationary="drop", weighting="random_walk"
            )
            made = _made(self._graph, self.n_components, settings)
        if made.times.interval[1] == 1:  # heat spreads slowly, and distances would saturate
            times = made.times._replace(interval=None)
            made = _made(self._graph, self.n_components, made.settings, times)
            if made.times.interval[1] == 1:
                warn_about_saturation()
        n_rows = len(made.embedding)
        root = check_integer("root", root, least=0, most=n_rows - 1)
        pairs = np.column_stack([np.full(n_rows, root), np.arange(n_rows)])
        return made.distances(pairs, confidence=confidence)

    # --- other embeddings of the same graph -------------------------------------------------

    def extend(self, rows: NewRows) -> np.ndarray:
        """Embed new points by the same rule as the training points.

        A training point keeps its embedding, whatever the other rows are.

        Parameters
        ----------
        rows : NewRows
            From ``graph.rows(X_new)``.

        Returns
        -------
        array of shape (n_new, n_components)
        """
        _ = self._graph  # raises if it was not saved

        def embedded(batch: Batch) -> np.ndarray:
            return _finished(self, batch.times(self.before_last), batch.operator, batch.labels)

        return rows.each(embedded)

    def components_needed(self, error: float, *, confidence: float = 0.95) -> int:
        r"""Number of components with which distances are within a relative error.

        Computed from the exact and the estimated parts of the distances of random pairs of rows, by
        the law of the random components. Pass the result to :meth:`grow`.

        Parameters
        ----------
        error : float
            Relative error of a distance, between 0 and 1.
        confidence : float, default=0.95
            Probability that the distance of a random pair of rows is within the error.

        Returns
        -------
        int
            At least ``n_leading + 1``; it may be less than ``n_components``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatGraph, sketch
        >>> made = sketch(HeatGraph.from_points(load_digits().data))
        >>> made.components_needed(0.05) < 64 < made.components_needed(0.005)
        True
        """
        rng, m = np.random.default_rng(0), self.settings.n_leading
        pairs = rng.integers(0, len(self.embedding), (SAMPLED_PAIRS, 2))
        rows, places = np.unique(pairs, return_inverse=True)
        some = in_memory(self.embedding[rows]).astype(np.float64)
        squares = (some[places[:, 0]] - some[places[:, 1]]) ** 2
        exact, estimated = squares[:, :m].sum(axis=1), squares[:, m:].sum(axis=1)
        apart = exact + estimated > 0
        shares = estimated[apart] / (exact + estimated)[apart]
        return m + components_for(error, shares, confidence=confidence)

    def grow(self, n_components: int) -> Sketch:
        r"""Return a sketch with more components, of the same graph.

        .. math:: (Y_k)_{m + 1 \ldots k} = \sqrt{\frac{K - m}{k - m}} \, (Y_K)_{m + 1 \ldots k}

        The ``m`` leading components stay, and random ones are added. Since they are divided by the
        square root of their number, those of the smaller sketch are scaled. For ``power="all"``
        the first power is kept, so that the same distances become more accurate. Connected
        components may be shifted, since their offsets depend on all components.

        Parameters
        ----------
        n_components : int
            Total number of components, at least the current number.

        Returns
        -------
        Sketch

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatGraph, sketch
        >>> graph = HeatGraph.from_points(load_digits().data)
        >>> grown = sketch(graph, 16, power=8).grow(64)
        >>> fresh = sketch(graph, 64, power=8, n_leading=8)
        >>> bool((grown.embedding == fresh.embedding).all())
        True
        """
        least = self.n_components
        n_components = check_integer("n_components", n_components, least=least)
        return _made(self._graph, n_components, self.settings, self.times)

    def plain(self, times: Times | None = None) -> Sketch:
        """Return the sketch without leading directions, with these times or its own."""
        settings = replace(self.settings, n_leading=0)
        return _made(self._graph, self.n_components, settings, times or self.times)

    def without_offsets(self) -> Any:
        """Return the embedding without the distance between connected components."""
        if self.offsets is None:
            return self.embedding
        return add_offsets(self.embedding, self._graph.components, -self.offsets)

    def path(self, powers: Iterable[int]) -> list[np.ndarray]:
        """Embeddings at several powers, from one pass.

        Parameters
        ----------
        powers : iterable of int
            Diffusion times.

        Returns
        -------
        list of arrays of shape (n_samples, n_components)
            In the order of ``powers``.
        """
        graph = self._graph
        powers = check_integers("powers", powers, least=0)
        with graph.engine.working():
            S, _ = _directions(graph, self.settings, self.n_components, self.times)
            single = replace(self, offsets=None)
            blocks = diffuse_path(graph.operator, S, powers=powers)
            done = (_finished(single, block.copy(), graph.operator) for block in blocks)
            return [graph.outer(block) for block in done]

    def diffusion_map(self, n_components: int = 2) -> DiffusionCoordinates:
        """Diffusion map of the graph, computed from the sketch; for plots.

        In a graph of several connected components, a coordinate shows the shape of one of them.

        Parameters
        ----------
        n_components : int, default=2
            At most the number of components of the sketch; faster if the sketch has a few more.

        Returns
        -------
        DiffusionCoordinates
            ``coordinates``, ``eigenvalues`` and ``residuals``.
        """
        graph = self._graph
        most = min(self.n_components, graph.n_samples - graph.n_connected_components)
        n_components = check_integer("n_components", n_components, most=most)
        with graph.engine.working():
            A, parts = graph.local()
            pairs = ritz_pairs(A, in_memory(self.before_last), n_components, components=parts)
        weights = eigenvalue_powers if self.times is None else all_times_weights
        coordinates = pairs.vectors * weights(pairs.values, self.first_power)
        coordinates = weighted(coordinates, graph, A, self.settings.weighting)
        return DiffusionCoordinates(graph.outer(coordinates), pairs.values, pairs.residuals)

    # --- files --------------------------------------------------------------------------------

    def save(self, path: Any, *, overwrite: bool = False, graph: bool = True) -> None:
        """Save to a file, as :meth:`HeatGraph.save` does.

        Parameters
        ----------
        path, overwrite :
            As for :meth:`HeatGraph.save`.
        graph : bool, default=True
            Whether to store the graph with the training points. Without it the file is smaller:
            it holds the embedding, the ids and the settings. Distances and
            neighbours work without the graph, and :func:`drift` of sketches with the same times and
            ``n_leading=0``; all else needs it.
        """
        if graph:
            super().save(path, overwrite=overwrite)
        else:
            alone = replace(self, graph=None, before_last=None, coefficients=None, offsets=None)
            alone.save(path, overwrite=overwrite)

    def _summary(self) -> dict[str, Any]:
        n_samples, graph = len(self.embedding), self.graph
        about = {} if graph is None else graph._summary()
        first = None if self.times is None else self.first_power
        sizes = {"n_samples": n_samples, "first_power": first, "has_graph": graph is not None}
        return {**about, **self.how(), **sizes}

    @property
    def _law(self) -> dict[str, Any]:
        """What the law of distances depends on besides the embedding."""
        is_sum = self.times is not None
        return {
            "random_matrix": self.settings.random_matrix,
            "n_leading": self.settings.n_leading,
            "tolerance": TOLERANCE if is_sum else cut_of(self.embedding.dtype),
        }

    @property
    def _graph(self) -> HeatGraph:
        if self.graph is None:
            raise TrainingDataError(
                "This sketch was saved without its graph. Only distances, neighbours and, with "
                "n_leading=0, drift work without it; load one that was saved with graph=True."
            )
        return self.graph


def sketch(
    graph: Any,
    n_components: int = 64,
    *,
    power: Any = "all",
    n_leading: Any = "auto",
    weighting: str = "random_walk",
    stationary: str = "drop",
    random_matrix: str = "gaussian",
    random_state: Any = 0,
) -> Sketch:
    r"""Embed a graph so that Euclidean distances estimate diffusion distances.

    .. math:: Y = B S, \qquad B = \mathrm{diag}(v)^{-1} f(A), \qquad
              f(x) = \frac{x^{p_0}}{1 - \alpha x}, \qquad
              S = \left[ Q, \; \frac{(I - Q Q^T) G}{\sqrt{k - m}} \right]

    ``A`` is the heat operator, ``v`` its stationary direction, and ``f`` the sum over all diffusion
    times from :math:`p_0` on. With ``power=p``, :math:`f(x) = x^p`. ``Q`` are ``m`` leading
    directions, in which rows of ``B`` differ most, and ``G`` is a random matrix. Distances are
    unbiased, and only their part outside the leading directions has an error.

    Parameters
    ----------
    graph : HeatGraph, or anything that has one
    n_components : int, default=64
        Number ``k`` of components.
    power : int or "all", default="all"
        Diffusion time: the number of steps. "all" sums over all times from the first power
        :math:`p_0` that the sketch resolves, with a horizon :math:`1 / (1 - \alpha)` of 10,000
        steps.
    n_leading : int or "auto", default="auto"
        Number ``m`` of leading directions, at most ``n_components - 2``. "auto" is half of the
        components, but at most 128, and none if there are less than 16. 0 is the method of the
        paper, in which all components have the same distribution.
    weighting : {"random_walk", "symmetric"}, default="random_walk"
        "random_walk" is the diffusion distance of Coifman and Lafon, between distributions of a
        random walk. "symmetric" is that of the paper, between rows of ``A**p``; not for
        ``power="all"``.
    stationary : {"drop", "keep"}, default="drop"
        Whether the stationary direction is part of the embedding. "keep" follows the paper; not
        for ``power="all"``, since this direction never decays.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        Distribution of the entries of ``G``.
    random_state : int, RandomState instance or None, default=0
        Seed of ``G``. The default is fixed, so that two sketches are comparable. None draws a seed
        from the operating system.

    Returns
    -------
    Sketch

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatGraph, sketch
    >>> graph = HeatGraph.from_points(load_digits().data)
    >>> sketch(graph, 32, power=8)
    Sketch(1797 rows, 32 components, power 8)
    """
    k = check_integer("n_components", n_components)
    if isinstance(n_leading, str):
        check_choice("n_leading", n_leading, ("auto",))
        n_leading = min(k // 2, MOST_LEADING) if k >= FEWEST_SPLIT else 0
    n_leading = check_integer("n_leading", n_leading, least=0, most=max(k - 2, 0))
    seed = seed_of(random_state)
    settings = Settings(power, n_leading, weighting, stationary, random_matrix, seed)
    return _made(graph_of(graph), k, settings)


def sketch_of(name: str, source: Any) -> Sketch:
    """Return the sketch of a fitted HeatSketch, or a given sketch."""
    made = getattr(source, "sketch_", source)
    if not isinstance(made, Sketch):
        raise DtypeError(
            f"{name} must be a Sketch or a fitted HeatSketch, got {type(source).__name__}."
        )
    return made


def seed_of(random_state: Any) -> int:
    """Return the given integer, or a seed drawn from ``random_state``."""
    if random_state is None:
        return secrets.randbits(64)
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


# --- how a sketch is made -------------------------------------------------------------------------


def _made(
    graph: HeatGraph,
    n_components: int,
    settings: Settings,
    times: Times | None = None,
) -> Sketch:
    """Sketch the heat kernel: ``Y = f(A) S``, with the weighting of its rows.

    A sum over given times is that of another sketch of the same graph.
    """
    A, power, parts = graph.operator, settings.power, graph.parts
    with graph.engine.working() as session:
        S, times = _directions(graph, settings, n_components, times)
        coefficients = of_parts = offsets = None
        if times is None:
            coefficients = in_memory(A.stationary_coefficients(S))
            before_last = _steps_before_last(A, S, power)
        else:
            of_parts = None if parts is None else parts.directions(S)
            before_last, times = sum_over_times(A, S, parts, times)
        del S
        made = Sketch(
            embedding=np.empty((0, n_components)),
            graph=graph,
            graph_settings=graph.settings,
            names=graph.names,
            given_numbers=None if graph.names is None else graph.numbers,
            settings=settings,
            times=times,
            before_last=session.keep(before_last),
            coefficients=coefficients,
        )
        last = A @ made.before_last
        bandwidth = graph.rule.named_bandwidth
        warn_about_decay(A, made.before_last, last, power=made.first_power, bandwidth=bandwidth)
        embedding = _finished(made, last, A)
        if settings.stationary == "keep":
            warn_about_rounding(embedding, power=power)
        if parts is not None and of_parts is not None:
            offsets = parts.offsets(_scaled(made, of_parts), embedding)
            embedding = add_offsets(embedding, graph.labels, offsets)
        embedding = session.keep(session.in_given_order(embedding, graph.order))
        return replace(made, embedding=embedding, offsets=offsets)


def _directions(
    graph: HeatGraph, settings: Settings, n_components: int, times: Times | None
) -> tuple[Any, Times | None]:
    """Return leading directions and random columns, and the times of a sum over all times.

    Leading directions are those of the same sum or power, computed roughly from random columns of
    their own.
    """
    A, m = graph.operator, settings.n_leading
    rough: Any = None
    if settings.power == "all" and (m or times is None):
        chosen_for = n_components if times is None else times.n_components
        G = _random_matrix(graph, Kind.LEADING, max(m, FEWEST_COLUMNS), settings.seed)
        rough, chosen = first_times(A, G, graph.parts, chosen_for)
        times = chosen if times is None else times
    elif m:
        G = _random_matrix(graph, Kind.LEADING, m, settings.seed)
        rough = _steps_before_last(A, G, settings.power)
    Q = orthonormal_columns(rough[:, :m]) if m else None
    del rough
    kind = RANDOM_MATRICES[settings.random_matrix]
    G = _random_matrix(graph, kind, n_components - m, settings.seed)
    return G if Q is None else leading_and_random(Q, G), times


def _steps_before_last(A: Any, block: Any, power: int) -> Any:
    """Return a block after all steps but the last, without the stationary direction."""
    block = diffuse(A, block, power=power - 1)
    return A.deflate(block, out=block)


def _random_matrix(graph: HeatGraph, kind: Kind, k: int, seed: int) -> Any:
    options: dict[str, Any] = {"n_columns": k, "seed": seed, "dtype": graph.dtype}
    return over_rows(partial(random_block, kind, **options), graph.row_numbers, k)


def _finished(made: Sketch, last: Any, A: Any, labels: Any = None) -> Any:
    """Convert ``A @ before_last``, or rows of it, to rows of the embedding, in place."""
    if made.settings.stationary == "keep":
        last += A.stationary_part(made.coefficients)
    rows = weighted(_scaled(made, last), made.graph, A, made.settings.weighting)
    return (
        rows if labels is None or made.offsets is None else add_offsets(rows, labels, made.offsets)
    )


def _scaled(made: Sketch, block: Any) -> Any:
    """Divide random columns by the square root of their number, in place."""
    m, k = made.settings.n_leading, block.shape[1]
    block /= np.sqrt(np.where(np.arange(k) < m, 1, k - m)).astype(block.dtype)
    return block


def weighted(block: Any, graph: Any, A: Any, weighting: str) -> Any:
    """Divide rows by the stationary direction, for distances of a random walk."""
    if weighting == "random_walk":
        block *= (graph.stationary_length / A.stationary)[:, np.newaxis]
    return block
