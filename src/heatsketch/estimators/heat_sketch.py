"""HeatSketch: the estimator for one diffusion time or the sum over all times."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from heatsketch._core.checks import check_integer
from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.partitioned import in_memory, over_rows
from heatsketch.diffusion._all_times import (
    HORIZON,
    add_offsets,
    all_times_weights,
    resolvent,
    without_stationary,
)
from heatsketch.diffusion._compare import (
    Comparison,
    check_can_join,
    compare_in_order,
    compare_new_rows,
)
from heatsketch.diffusion._confidence import DistanceEstimate
from heatsketch.diffusion._distances import (
    DiffusionNeighbors,
    diffusion_distances,
    diffusion_neighbors,
)
from heatsketch.diffusion._drift import Drift, check_comparable, drift
from heatsketch.diffusion._heat_trace import FEWEST_COLUMNS, diffuse_until, is_settled
from heatsketch.diffusion._normalization import row_sums
from heatsketch.diffusion._operator import HeatOperator
from heatsketch.diffusion._random_matrix import gaussian_matrix, rademacher_matrix
from heatsketch.diffusion._sketch import diffuse, diffuse_path
from heatsketch.diffusion._spectral import (
    DiffusionCoordinates,
    eigenvalue_powers,
    ritz_pairs,
)
from heatsketch.engines import Engine
from heatsketch.estimators._base import HeatEmbedding, checks_parameters
from heatsketch.estimators._validation import seed_of
from heatsketch.estimators._warnings import (
    warn_about_decay,
    warn_about_other_components,
    warn_about_rounding,
    warn_about_saturation,
)
from heatsketch.exceptions import DtypeError, HeatSketchError, SpectrumError

__all__ = ["HeatSketch"]

RANDOM_MATRICES = {"gaussian": gaussian_matrix, "rademacher": rademacher_matrix}

# The sum over all times starts at the first power that meets two conditions: the number of
# directions of the heat kernel is at most DIRECTIONS_PER_COMPONENT times the number of components,
# and that of the sum is settled. Measurements: docs/background/method.md.
DIRECTIONS_PER_COMPONENT = 6
LARGEST_POWER = 128


class HeatSketch(HeatEmbedding):
    r"""Embed points or graphs so that Euclidean distances are diffusion distances.

    .. math:: Y = \frac{1}{\sqrt{k}} B G, \qquad E |y_i - y_j|^2 = |B_i - B_j|^2, \qquad
              B = \mathrm{diag}(v)^{-1} f(A), \qquad f(x) = \frac{x^{p_0}}{1 - \alpha x}

    ``A`` is the heat operator of the data, ``v`` its stationary direction, ``G`` a random matrix,
    and ``f`` the sum over all diffusion times from :math:`p_0` on. With ``power=p``,
    :math:`f(x) = x^p` instead, and with ``weighting="symmetric"`` also :math:`B = f(A)`: the
    Gaussian process embedding of Gilbert and O'Neill (2024).

    Parameters
    ----------
    n_components : int, default=64
        Number ``k`` of components. Distances have a relative error of about
        ``1 / sqrt(2 k)``: 9 % at 64. For plots in two dimensions use :meth:`diffusion_map`, not
        two components.
    power : int, float or "all", default="all"
        Diffusion time: the number of steps. "all" sums over all times from the first power
        :math:`p_0` that the sketch resolves, with a horizon :math:`1 / (1 - \alpha)` of 10,000
        steps; see :func:`heat_trace`. A number is a single diffusion time, as in the paper.
        Non-integer powers need a kernel of all pairs and ``epsilon`` other than "local".
    epsilon : float, "auto" or "local", default="local"
        Bandwidth of the Gaussian affinity ``exp(-d**2 / epsilon)``. "local" is
        ``sigma_i * sigma_j`` for each pair, with ``sigma`` the distance to the seventh neighbour;
        "auto" is a single number, from :func:`estimate_epsilon`.
    n_neighbors : int or None, default=15
        Keep a pair of points only if one is among the ``n_neighbors`` nearest neighbours of the
        other, where each point counts as its own neighbour. None keeps all pairs, as the paper
        does.
    neighbors : transformer or None, default=None
        Transformer that finds the neighbours: scikit-learn's ``KNeighborsTransformer``,
        pynndescent's ``PyNNDescentTransformer``, or any other that returns sparse distances to the
        training points. A clone of it is fitted and kept as ``neighbors_.transformer``. It replaces
        ``n_neighbors`` and ``engine``, which must be left at their defaults. ``metric`` must be
        the metric of the transformer. A training point keeps its embedding in :meth:`transform`
        if the transformer lists the same neighbours for it again. Not allowed for precomputed
        distances or affinities. The model can be pickled if the transformer can, but not saved.
    metric : str or callable, default="euclidean"
        Distance: "euclidean" or "l2", "cosine", "manhattan", "cityblock" or "l1", "chebyshev",
        "hamming", "jaccard", a function of two points, or "precomputed" if ``X`` contains
        distances.
    affinity : {"gaussian", "precomputed"}, default="gaussian"
        "precomputed" if ``X`` contains affinities, for instance the weights of a graph.
    self_loops : bool, default=True
        Whether nodes of a graph (``affinity="precomputed"``) without a self-loop get one, with a
        tenth of the weight of their strongest link. Without self-loops, a walk on a bipartite
        graph never mixes. Points always have self-loops.
    normalization : {"auto", "degree", "symmetric", "bistochastic"}, default="auto"
        Normalization of the affinities. "degree" gives the random walk on the graph;
        "symmetric" first divides by the density of points;
        "bistochastic" scales until all rows sum to one. "auto" is "degree" for
        ``affinity="precomputed"``, where the degrees are informative, and "symmetric" for points,
        whose density depends on the sampling.
    weighting : {"random_walk", "symmetric"}, default="random_walk"
        Type of diffusion distance. "random_walk" is that of Coifman and Lafon, between
        distributions of a random walk: rows of ``f(A)`` divided by the stationary direction.
        "symmetric" is that of the paper, between rows of ``A**p``. Not allowed for
        ``power="all"``: where a few points are almost disconnected from the rest, the slowest
        eigenvector is nearly proportional to the stationary direction within each part, and a
        comparison of densities would outweigh all other distances.
    stationary : {"drop", "keep"}, default="drop"
        Whether the stationary direction of ``A`` is part of the embedding. "keep" follows the
        paper exactly; it adds a term that compares densities (symmetric) or a translation
        (bistochastic). For large ``power`` this term dominates, the rest is lost to rounding, and
        a warning is issued. Not allowed for ``power="all"``, since this direction never decays.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        Distribution of the entries of ``G``.
    random_state : int, RandomState instance or None, default=0
        Seed of ``G``. The default is fixed, so that two fits are comparable. None draws a seed
        from the operating system. NumPy's global random state is never changed.
    engine : Engine or None, default=None
        Where distances are computed and stored; None is this machine.
    n_jobs : int or None, default=None
        Number of threads; results are bit-identical for any number. -1 means all cores, -2 all but
        one. None uses the setting of ``joblib.parallel_config``, or else -1. Only cores that
        this process may use are counted; limits that joblib sets for each worker of a search, or
        threadpoolctl for OpenMP, are respected. Products of dense matrices (``n_neighbors=None``)
        run in the threads of BLAS, which threadpoolctl limits; tasks on a cluster run in the
        threads of its workers.
    verbose : bool, int or None, default=None
        Whether :meth:`fit` writes its progress to standard error. None does so only after
        some seconds, and only on a terminal or in a notebook.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    power_ : int or float
        Power used; the first power of the sum if ``power="all"``, at most 255.
    heat_trace_ : HeatTrace
        Heat trace up to the first power that the sketch resolves, if ``power="all"``. The sum
        starts at that power or some steps later.
    interval_ : array of shape (2,)
        Interval of eigenvalues on which a polynomial approximates the sum, if ``power="all"``.
    n_products_ : int
        Number of products with ``heat_operator_``, if ``power="all"``.
    epsilon_ : float, array of shape (n_samples,) or None
        Bandwidth used; the scales ``sigma`` if ``epsilon="local"``. None for precomputed
        affinities, and instead of scales in a model saved without its training data.
    epsilon_estimate_ : EpsilonEstimate
        Curve from which the bandwidth was chosen, if ``epsilon="auto"``.
    heat_operator_ : HeatOperator
        ``A``; None in a model saved without its training data.
    scaling_ : Scaling
        Normalization of ``heat_operator_``, with the number of sweeps and the residual. Like
        ``before_last_`` and ``neighbors_``, absent from a model saved without its training data.
    before_last_ : array of shape (n_samples, n_components)
        ``f(A) A**-1 G`` without the stationary direction, by which :meth:`transform` multiplies.
    stationary_coefficients_ : array of shape (n_components,)
        Coefficient of the stationary direction in each column of ``G``.
    seed_ : int
        Seed used.
    parameters_ : dict
        Values of all parameters except ``engine``, ``n_jobs`` and ``verbose`` at the time of
        :meth:`fit`. Other methods use these values.
    row_ids_ : array of int of shape (n_samples,)
        Row ids, in the order of ``heat_operator_``.
    row_names_ : array of shape (n_samples,)
        Names of the nodes in the order of ``embedding_``, if ``X`` was a graph; absent from a
        model saved without its training data.
    fingerprints_ : array of shape (n_samples,)
        Numbers by which :meth:`transform` recognizes nodes that got a self-loop; NaN for others.
    stationary_length_ : float
        Length of the stationary direction of ``heat_operator_``.
    n_connected_components_ : int
        Number of connected components of the graph.
    component_labels_ : array of int of shape (n_samples,)
        Connected component of each row of ``heat_operator_``, if there are several.
    component_offsets_ : array of shape (c, n_components)
        Offset added to the rows of each of ``c`` connected components, if there are several and
        ``power="all"``.
    neighbors_ : Neighbors or TransformerNeighbors
        The training points and the rule for their neighbours; not for precomputed affinities.
    order_ : array of shape (n_samples,)
        Row of ``X`` for each row of ``heat_operator_`` and ``before_last_``. Large data are
        reordered so that near points are adjacent. ``embedding_`` is in the order of ``X``.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HeatSketch(32).fit(X[:1500])
    >>> model.embedding_.shape, model.transform(X[1500:]).shape
    ((1500, 32), (297, 32))
    >>> bool((model.transform(X[:1500]) == model.embedding_).all())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **HeatEmbedding._parameter_constraints,
        "power": [Interval(Real, 1, None, closed="left"), StrOptions({"all"})],
        "stationary": [StrOptions({"drop", "keep"})],
        "random_matrix": [StrOptions(set(RANDOM_MATRICES))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=64,
        *,
        power="all",
        epsilon="local",
        n_neighbors=15,
        neighbors=None,
        metric="euclidean",
        affinity="gaussian",
        self_loops=True,
        normalization="auto",
        weighting="random_walk",
        stationary="drop",
        random_matrix="gaussian",
        random_state=0,
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.n_components = n_components
        self.power = power
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.metric = metric
        self.affinity = affinity
        self.self_loops = self_loops
        self.normalization = normalization
        self.weighting = weighting
        self.stationary = stationary
        self.random_matrix = random_matrix
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    @with_n_jobs
    def fit(self, X: Any, y: Any = None, *, row_ids: Any = None) -> Self:
        """Embed the points of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Points; or a square matrix of distances (``metric="precomputed"``) or of affinities
            (``affinity="precomputed"``). A graph of networkx or igraph, or from
            :func:`graph_affinity`, provides both affinities and names of nodes.
        y : ignored
        row_ids : array of int of shape (n_samples,), optional
            Ids that determine the random numbers of each row, including those that choose epsilon.
            By default they come from the names of a graph's nodes, if all are text or integers,
            and otherwise from the positions of the rows. Rows with the same id in two data sets
            get the same random numbers, which makes the two embeddings comparable.

        Returns
        -------
        self
        """
        with self._fitting() as (model, engine):
            model._check_options()
            X, ids = model._read(engine, X, row_ids)
            K = model._affinity(engine, X, ids)
            sums = row_sums(K)
            model._check_graph(K, sums, X)
            del X  # neighbors_ holds it, reordered
            A = model._operator(engine, K, sums, ids)
            del K  # the heat operator may not need it
            model._embed(engine, A)
            model.heat_operator_ = model._remembering_points(A)
        return self

    @with_n_jobs
    def grow(self, n_components: int) -> Self:
        r"""Return a model with more components, without searching the graph again.

        .. math:: Y_k = \sqrt{K / k} \, (Y_K)_{1 \ldots k}

        This model is not changed. The graph, which takes most of the time of a fit, is reused. For
        a given ``power`` the result is bit-identical to a fit with as many components. For
        ``power="all"`` the first power is kept, so that the same distances become more accurate.
        The first ``k`` of ``K`` components are the old ones times ``sqrt(k / K)``, since a sketch
        is divided by the square root of its number of components. Connected components may be
        shifted, since their offsets depend on all components.

        Parameters
        ----------
        n_components : int
            Total number of components, at least the current number.

        Returns
        -------
        HeatSketch
            A model with the parameters of this fit except ``n_components``. The two models share
            the graph and the training points; each has its own ``embedding_`` and
            ``before_last_``, of ``n_samples * n_components`` numbers each. Write
            ``model = model.grow(128)`` to free those of the old model.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatSketch
        >>> X, _ = load_digits(return_X_y=True)
        >>> grown = HeatSketch(16, power=8, n_neighbors=15).fit(X).grow(64)
        >>> fresh = HeatSketch(64, power=8, n_neighbors=15).fit(X)
        >>> bool((grown.embedding_ == fresh.embedding_).all())
        True
        """
        model = self._as_fitted()
        n_components = check_integer("n_components", n_components)
        k = model.embedding_.shape[1]
        if n_components < k:
            raise HeatSketchError(
                f"n_components={n_components} is less than the {k} that there are; take "
                f"embedding_[:, :{n_components}] * np.sqrt({k} / {n_components}) instead, or fit "
                "again."
            )
        return model._embedded_again("grow", n_components=n_components)

    def _embedded_again(self, task: str, *, long: bool = False, **parameters: Any) -> Self:
        """Return the model with other parameters or a long horizon, on the same graph."""
        other = self._with(**parameters)
        A = other._training_operator(task)
        if "power" in parameters:
            del other.power_
        with other._engine().working() as engine:
            other._embed(engine, A, long=long)
        return other

    def _of_the_same_sum(self, other: HeatSketch) -> Self:
        """Return the model whose sum over all times is the same polynomial as for another."""
        model = self._with()
        model.power_ = max(self.power_, other.power_)
        (low, high), (other_low, other_high) = self.interval_, other.interval_
        model.interval_ = np.array([min(low, other_low), max(high, other_high)])
        is_same = model.power_ == self.power_ and (model.interval_ == self.interval_).all()
        return self if is_same else model._embedded_again("drift")

    @with_n_jobs
    def path(self, powers: Iterable[int]) -> list[np.ndarray]:
        """Embeddings of the training points at several powers, from one pass.

        Parameters
        ----------
        powers : iterable of int
            Diffusion times.

        Returns
        -------
        list of arrays of shape (n_samples, n_components)
            In the order of ``powers``.
        """
        model = self._as_fitted()
        A = model._training_operator("path")
        G = model._random_matrix(A, model.n_components)
        given = powers if isinstance(powers, Iterable) else [powers]
        whole = [check_integer("powers", power, least=0) for power in given]
        blocks = diffuse_path(A, G, powers=whole)
        return [self._in_given_order(model._finish(block.copy(), A)) for block in blocks]

    @with_n_jobs
    def pseudotime(self, root: int, *, confidence: float = 0.95) -> DistanceEstimate:
        """Diffusion pseudotime: distances from a root, over all diffusion times.

        Parameters
        ----------
        root : int
            Row of ``X``.
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
        computed again with a horizon of up to a million steps, in up to ten times as many products
        as for the fit. If that is too short as well, there is a warning.
        """
        model = self._as_fitted()
        if model.power != "all":
            of_all_times: Any = {"power": "all", "stationary": "drop", "weighting": "random_walk"}
            model = model._embedded_again("pseudotime", **of_all_times)
        if model.interval_[1] == 1:  # heat spreads so slowly that distances would saturate
            model = model._with()
            del model.interval_
            model = model._embedded_again("pseudotime", long=True)
            if model.interval_[1] == 1:
                warn_about_saturation()
        n_rows = len(model.embedding_)
        root = check_integer("root", root, least=0, most=n_rows - 1)
        pairs = np.column_stack([np.full(n_rows, root), np.arange(n_rows)])
        return diffusion_distances(model.embedding_, pairs, **model._sure(confidence))

    def diffusion_distances(
        self, pairs: Any, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> DistanceEstimate:
        """Diffusion distances of pairs of training points, with intervals.

        Parameters
        ----------
        pairs : array of int of shape (m, 2)
            Rows of ``X``.
        confidence, simultaneous :
            As for :func:`diffusion_distances`.

        Returns
        -------
        DistanceEstimate
            The intervals cover the error of the sketch only, not that of the sample, and are valid
            for pairs chosen without looking at the sketch.
        """
        sure = self._as_fitted()._sure(confidence)
        return diffusion_distances(self.embedding_, pairs, simultaneous=simultaneous, **sure)

    def diffusion_neighbors(
        self,
        rows: Any,
        *,
        n_neighbors: int,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> DiffusionNeighbors:
        """Nearest training points, with intervals and the confidence in their order.

        Parameters
        ----------
        rows : array of int of shape (m,), or new points of shape (m, n_features)
            Query points: rows of ``X``, or new points as for :meth:`transform`.
        n_neighbors, confidence, simultaneous :
            As for :func:`diffusion_neighbors`.

        Returns
        -------
        DiffusionNeighbors
            The intervals account for the fact that the sketch selects the neighbours. They cover
            the error of the sketch only, not that of the sample.
        """
        rows = self.transform(rows) if np.ndim(rows) == 2 else rows
        sure = {"simultaneous": simultaneous, **self._as_fitted()._sure(confidence)}
        return diffusion_neighbors(self.embedding_, rows, n_neighbors=n_neighbors, **sure)

    @with_n_jobs
    def diffusion_map(self, n_components: int = 2) -> DiffusionCoordinates:
        """Diffusion map of the training points from the same sketch, for plots.

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
        model = self._as_fitted()
        A = model._training_operator("diffusion_map")
        block, most = self.before_last_, A.shape[0] - self.n_connected_components_
        n_components = check_integer("n_components", n_components, most=min(block.shape[1], most))
        components = model._components(A)
        values, vectors, residuals = ritz_pairs(A, block, n_components, components=components)
        weights = all_times_weights if model.power == "all" else eigenvalue_powers
        coordinates = model._weighted(vectors * weights(values, self.power_), A)
        return DiffusionCoordinates(self._in_given_order(coordinates), values, residuals)

    @with_n_jobs
    def drift(self, other: HeatSketch, *, confidence: float = 0.95) -> Drift:
        """Compare with another sketch: how much the geometry and which rows changed.

        Parameters
        ----------
        other : HeatSketch
            Model fitted with the same parameters and seed to data that share some row ids. If the
            sums over all times differ in ``power_`` or ``interval_``, the larger of both is used,
            and models are embedded again.
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        Drift
            See :func:`drift`. Its intervals cover the error of the sketch only. With
            ``power="all"`` the distance between connected components is left out.
        """
        if not isinstance(other, HeatSketch):
            raise DtypeError(f"other is a {type(other).__name__}; give a fitted HeatSketch.")
        model, other = self._as_fitted(), other._as_fitted()
        if model.power == other.power == "all":
            model, other = model._of_the_same_sum(other), other._of_the_same_sum(model)
            parts = model.n_connected_components_, other.n_connected_components_
            if parts[0] != parts[1]:
                warn_about_other_components(*parts)
        check_comparable(model, other)
        return drift(
            model._without_offsets(),
            other._without_offsets(),
            ids=model._in_given_order(model.row_ids_),
            other_ids=other._in_given_order(other.row_ids_),
            **model._sure(confidence),
        )

    def _without_offsets(self) -> Any:
        """Return the embedding without the distance between connected components."""
        if not hasattr(self, "component_offsets_"):
            return self.embedding_
        self._training_operator("drift")
        labels = self._in_given_order(self.component_labels_)
        return add_offsets(self.embedding_, labels, -self.component_offsets_)

    @with_n_jobs
    def compare(
        self, group: Any, *, units: Any = None, n_permutations: int = 199, level: float = 0.05
    ) -> Comparison:
        """Test whether groups of training points differ, and locate the differences.

        Parameters
        ----------
        group, units, n_permutations, level :
            As for :func:`compare_groups`, for the rows of ``X``. Without ``units``, equal rows are
            one unit if all of them are of one group. Equal rows that may be repeated records, or
            shared by groups, are a warning, if the points are in memory.

        Returns
        -------
        Comparison
            Results in the order of ``X``.

        Examples
        --------
        Two samples of digits, where only the second contains sevens:

        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from heatsketch import HeatSketch
        >>> X, digit = load_digits(return_X_y=True)
        >>> sample = np.random.default_rng(0).integers(2, size=len(X))
        >>> kept = (digit != 7) | (sample == 1)
        >>> found = HeatSketch(16).fit(X[kept]).compare(sample[kept])
        >>> found.p_value, round(float(np.mean(digit[kept][found.flagged] == 7)), 1)
        (0.005, 1.0)
        """
        model = self._as_fitted()
        A, order = model._training_operator("compare"), in_memory(model.order_)
        options: Any = {"n_permutations": n_permutations, "level": level, "seed": model.seed_}
        options |= {"neighbors": getattr(model, "neighbors_", None), "units": units}
        with model._engine().working():
            return compare_in_order(A, group, order, model.row_ids_, **options)

    @with_n_jobs
    def compare_to(
        self, X_new: Any, *, n_permutations: int = 199, level: float = 0.05
    ) -> Comparison:
        """Test whether a new sample differs from the training points, and where.

        New points are added to the graph of the training points, which is not searched again. The
        result is that of :meth:`compare` after a fit to both samples. It differs slightly if the
        neighbours are approximate, or if ``epsilon="auto"``, since this model's bandwidth is kept.

        Parameters
        ----------
        X_new : array, sparse matrix or data frame of shape (n_new, n_features)
            New points. A warning says if some are training points, or are repeated.
        n_permutations, level :
            As for :func:`compare_groups`.

        Returns
        -------
        Comparison
            Results for the training points in the order of ``X``, then for the new points. The
            groups are "reference" and "new"; effects are those of "new".
        """
        model = self._as_fitted()
        A, neighbors = model._training_operator("compare_to"), getattr(model, "neighbors_", None)
        check_can_join(A, neighbors)
        graph: Any = {"epsilon": model._named_epsilon, "normalization": model._normalization}
        options: Any = {"n_permutations": n_permutations, "level": level, "seed": model.seed_}
        return compare_new_rows(A, neighbors, model._check(X_new, reset=False), graph, **options)

    def _sure(self, confidence: float) -> dict[str, Any]:
        """Return the options that intervals depend on."""
        return {"confidence": confidence, "random_matrix": self.random_matrix}

    # --- the sketch itself ----------------------------------------------------------------

    def _check_options(self) -> None:
        if self.power == "all" and self.stationary == "keep":
            raise HeatSketchError(
                "stationary='keep' is not for power='all': the stationary direction never decays, "
                "so its sum grows with the horizon and hides all others. Use stationary='drop', or "
                "one power such as power=8."
            )
        if self.power == "all" and self.weighting == "symmetric":
            raise HeatSketchError(
                "weighting='symmetric' is not for power='all', whose distances it would mix with "
                "differences of density. Use weighting='random_walk', or one power such as power=8."
            )

    def _embed(self, engine: Engine, A: HeatOperator, *, long: bool = False) -> None:
        """Sketch the heat kernel: ``Y = f(A) G / sqrt(k)``, with the weighting of its rows."""
        if not hasattr(self, "seed_"):  # set already when a fitted model is embedded again
            self.seed_ = seed_of(self.random_state)
        self.before_last_ = engine.keep(self._before_last(A, long))
        last = A @ self.before_last_
        warn_about_decay(A, self.before_last_, last, power=self.power_, epsilon=self._named_epsilon)
        embedding = self._finish(last, A)
        if self.stationary == "keep":
            warn_about_rounding(embedding, power=self.power_)
        components = self._components(A)
        if self.power == "all" and components is not None:
            G = self._random_matrix(A, self.n_components)
            self.component_offsets_ = components.offsets(G, embedding)
            embedding = add_offsets(embedding, self.component_labels_, self.component_offsets_)
        self.embedding_ = engine.keep(engine.in_given_order(embedding, self.order_))

    def _before_last(self, A: HeatOperator, long: bool) -> np.ndarray:
        """Return ``f(A) A**-1 G`` without the stationary direction."""
        if self.power != "all":
            self.power_ = int(self.power) if isinstance(self.power, Integral) else float(self.power)
            before_last = self._before_power(A)
            return A.deflate(before_last, out=before_last)
        if self.n_components < FEWEST_COLUMNS and not hasattr(self, "power_"):
            # Few components cannot estimate the number of directions: use more to find the start.
            self._sum_over_times(A, FEWEST_COLUMNS)
        return self._sum_over_times(A, self.n_components, long=long)

    def _diffused(self, A: HeatOperator, block: np.ndarray) -> np.ndarray:
        """Apply ``f(A)`` to a block, without the stationary direction."""
        if self.power != "all":
            return diffuse(A, block, power=self.power_)
        components = self._components(A)
        block = without_stationary(A, block, components)
        block = diffuse(A, block, power=self.power_ - 1)
        return A @ resolvent(A, block, components=components, tolerance=1e-6).block

    def _before_power(self, A: HeatOperator) -> np.ndarray:
        G, before = self._random_matrix(A, self.n_components), self.power_ - 1
        self.stationary_coefficients_ = in_memory(A.stationary_coefficients(G))
        try:
            return diffuse(A, G, power=before)
        except SpectrumError as error:
            cause = f"power={self.power_} is one step after power={before}, and {error}"
            raise SpectrumError(cause, **{**error.parameters, "power": self.power_}) from error

    def _sum_over_times(self, A: HeatOperator, n_components: int, *, long: bool = False) -> Any:
        """Return the sum over all times, except for the last step; choose what is not known of it.

        The sum commutes with the steps. It is applied once the heat kernel is resolved, since only
        then can the sum's own directions be counted. At most three blocks are held in memory.
        """
        components, G = self._components(A), self._random_matrix(A, n_components)
        self.stationary_coefficients_ = in_memory(A.stationary_coefficients(G))
        G = G if components is None else components.deflate(G)
        # Both are known if the model is embedded again.
        is_known, interval = hasattr(self, "power_"), getattr(self, "interval_", None)
        if is_known:
            block = diffuse(A, G, power=min(self._resolved_power, self.power_) - 1)
        else:
            few = DIRECTIONS_PER_COMPONENT * self.n_components
            block, self.heat_trace_ = diffuse_until(
                A, G, lambda directions: directions[-1] <= few, few=few, largest=LARGEST_POWER
            )
        del G
        horizon = None if long else HORIZON
        found = resolvent(A, block, components=components, horizon=horizon, interval=interval)
        del block
        self.interval_ = np.array(found.interval)
        if is_known:
            steps_left = max(self.power_ - self._resolved_power, 0)
            before_last = diffuse(A, found.block, power=steps_left)
        else:
            before_last, curve = diffuse_until(A, found.block, is_settled, largest=LARGEST_POWER)
            self.power_ = self._resolved_power + len(curve.powers) - 1
        self.n_products_ = self.power_ + found.n_products
        return without_stationary(A, before_last, components, out=before_last)

    @property
    def _resolved_power(self) -> int:
        """The first power at which the sketch resolves the heat kernel."""
        return int(self.heat_trace_.powers[-1])

    def _finish(self, last: np.ndarray, A: HeatOperator, labels: Any = None) -> np.ndarray:
        if self.stationary == "keep":
            last += A.stationary_part(self.stationary_coefficients_)
        last /= np.sqrt(last.dtype.type(last.shape[1]))
        rows = self._weighted(last, A)
        if labels is None or not hasattr(self, "component_offsets_"):
            return rows
        return add_offsets(rows, labels, self.component_offsets_)

    def _random_matrix(self, A: HeatOperator, k: int) -> np.ndarray:
        options: dict[str, Any] = {"n_columns": k, "seed": self.seed_, "dtype": A.dtype}
        return over_rows(partial(RANDOM_MATRICES[self.random_matrix], **options), self.row_ids_, k)
