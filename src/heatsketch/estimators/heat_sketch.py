"""HeatSketch: the estimator for one diffusion time or the sum over all times."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.parallel import with_n_jobs
from heatsketch.estimators._base import Count, EmbeddingEstimator, checks_parameters
from heatsketch.heat import Sketch, sketch

__all__ = ["HeatSketch"]


class HeatSketch(EmbeddingEstimator):
    r"""Embed points or graphs so that Euclidean distances are diffusion distances.

    .. math:: Y = B S, \qquad E |y_i - y_j|^2 = |B_i - B_j|^2, \qquad
              B = \mathrm{diag}(v)^{-1} f(A), \qquad f(x) = \frac{x^{p_0}}{1 - \alpha x}

    ``A`` is the heat operator of the data, ``v`` its stationary direction, and ``f`` the sum over
    all diffusion times from :math:`p_0` on; with ``power=p``, :math:`f(x) = x^p` instead. Half of
    the columns of ``S`` are leading directions, in which rows differ most, and half are random; see
    :func:`sketch`. With random columns only, ``power=p`` and ``weighting="symmetric"``, it is the
    Gaussian process embedding of Gilbert and O'Neill (2024): ``sketch(graph, n_leading=0, ...)``.

    This is :meth:`HeatGraph.from_points` followed by :func:`sketch`. Distances with intervals,
    neighbours and more components are methods of ``sketch_``; :func:`compare`, :func:`smooth` and
    other uses take the fitted estimator or ``graph_``.

    Parameters
    ----------
    n_components : int, default=64
        Number ``k`` of components. With 64 of them, distances of random pairs of points have a
        relative error of 0.1 to 2 %, and those of near pairs of 0.3 to 6 %; on a graph with hubs
        both are about 9 %. For plots in two dimensions use :meth:`Sketch.diffusion_map`, not two
        components.
    power : int or "all", default="all"
        Diffusion time: the number of steps. "all" sums over all times from the first power
        :math:`p_0` that the sketch resolves, with a horizon :math:`1 / (1 - \alpha)` of 10,000
        steps. A number is a single diffusion time, as in the paper.
    n_neighbors, metric, weights :
        As for :meth:`HeatGraph.from_points`.
    normalization : {"auto", "degree", "symmetric", "bistochastic"}, default="auto"
        As for :meth:`HeatGraph.from_points`. "auto" is "degree" for given weights, whose sums are
        informative, and "symmetric" for points, whose density depends on the sampling.
    weighting : {"random_walk", "symmetric"}, default="random_walk"
        Type of diffusion distance; see :func:`sketch`.
    random_state : int, RandomState instance or None, default=0
        Seed of ``G``. The default is fixed, so that two fits are comparable. None draws a seed
        from the operating system. NumPy's global random state is never changed.
    engine : Engine or None, default=None
        Where the graph is made and stored; None is this machine.
    n_jobs : int or None, default=None
        Number of threads; results are bit-identical for any number. -1 means all cores, -2 all but
        one. None uses the setting of ``joblib.parallel_config``, or else -1. Only cores that
        this process may use are counted; limits that joblib sets for each worker of a search, or
        threadpoolctl for OpenMP, are respected.
    verbose : bool, int or None, default=None
        Whether :meth:`fit` writes its progress to standard error. None does so only after
        some seconds, and only on a terminal or in a notebook.

    Attributes
    ----------
    graph_ : HeatGraph
    sketch_ : Sketch
    embedding_ : array of shape (n_samples, n_components)
        ``sketch_.embedding``: the embedding of the training points.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Names of the features, if ``X`` has any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HeatSketch(32).fit(X[:1500])
    >>> model.embedding_.shape, model.transform(X[1500:]).shape
    ((1500, 32), (297, 32))
    >>> bool((model.transform(X[:1500]) == model.embedding_).all())
    True
    """

    sketch_: Sketch

    _fitted: ClassVar[tuple[str, ...]] = ("sketch_",)
    _parameter_constraints: ClassVar[dict] = {
        **EmbeddingEstimator._parameter_constraints,
        "n_components": [Count()],
        "power": [Interval(Real, 1, None, closed="left"), StrOptions({"all"})],
        "weighting": [StrOptions({"random_walk", "symmetric"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=64,
        *,
        power="all",
        n_neighbors=15,
        metric="euclidean",
        weights="local",
        normalization="auto",
        weighting="random_walk",
        random_state=0,
        engine=None,
        n_jobs=None,
        verbose=None,
    ):
        self.n_components = n_components
        self.power = power
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weights = weights
        self.normalization = normalization
        self.weighting = weighting
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Embed points or the nodes of a graph.

        Parameters
        ----------
        X : array, sparse matrix, data frame, HeatGraph, or graph of networkx or igraph
            Points, of shape (n_samples, n_features); with ``metric="precomputed"`` their distances;
            or a graph. A square symmetric sparse matrix holds the weights of a graph.
        y : ignored
        ids : array of shape (n_samples,), optional
            As for :meth:`HeatGraph.from_points`.

        Returns
        -------
        self
        """
        with self._working(X):
            graph = self._graph_of(X, ids)
            made = sketch(
                graph,
                self.n_components,
                power=self.power,
                weighting=self.weighting,
                random_state=self.random_state,
            )
        self._accept(X, graph, sketch_=made, embedding_=made.embedding)
        return self

    @with_n_jobs
    def transform(self, X: Any) -> np.ndarray:
        """Embed new points by the same rule as the training points.

        A training point gets its embedding of :meth:`fit`, whatever the other rows are. Sparse
        precomputed distances are not symmetrized here: to get the same embedding, give rows of the
        symmetric matrix with the zeros of the diagonal stored.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            As for :meth:`HeatGraph.rows`.

        Returns
        -------
        array of shape (n_new, n_components)
        """
        check_is_fitted(self)
        return self.sketch_.extend(self._rows(X))
