"""Base class of the embeddings: from points to rows of the heat operator.

Distances between points give affinities, and these give the heat operator ``A``. The embedding is
``A @ before_last``, and the estimators differ only in ``before_last``. A new point gets a row of
``A`` of its own, and is embedded by the same product.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heatsketch._core.checks import (
    check_distances,
    check_square,
    check_symmetric,
    check_zero_diagonal,
)
from heatsketch._core.parallel import with_n_jobs
from heatsketch._core.partitioned import in_memory, is_lazy
from heatsketch._core.row_names import row_numbers
from heatsketch.diffusion._affinity import (
    add_self_loops,
    gaussian_affinity,
    gaussian_affinity_rows,
    local_scales,
    locally_scaled,
    nearest_squares,
    strongest_columns,
    with_self_loops,
)
from heatsketch.diffusion._all_pairs import remembering_points
from heatsketch.diffusion._all_times import Components
from heatsketch.diffusion._bandwidth import estimate_epsilon, sampled_squares
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._harmonic import checked_rows, harmonic_extension
from heatsketch.diffusion._known_nodes import known_nodes, row_fingerprints
from heatsketch.diffusion._normalization import SCALINGS
from heatsketch.diffusion._operator import HeatOperator, heat_operator, heat_rows
from heatsketch.diffusion._random_matrix import Kind, gaussians_apart
from heatsketch.diffusion._smoothing import Smoothing, smooth
from heatsketch.diffusion._vectors import search_vectors
from heatsketch.engines import Engine, LocalEngine
from heatsketch.estimators._callbacks import CallbackSupportMixin, fit_progress
from heatsketch.estimators._validation import (
    MACHINE_CONSTRAINTS,
    Count,
    check_affinities,
    check_idle_parameters,
    check_numbers,
    check_row_ids,
    check_scale,
    stored_like,
)
from heatsketch.estimators._warnings import (
    warn_about_components,
    warn_about_far_points,
    warn_about_isolated_points,
    warn_about_shared_rows,
    warn_about_unreached_rows,
    warn_about_zero_diagonal,
)
from heatsketch.exceptions import HeatSketchError, TrainingDataError
from heatsketch.graph._graph_affinity import Graph, graph_affinity, is_graph
from heatsketch.graph._metrics import ALIASES, METRICS
from heatsketch.graph._neighbors import label_components
from heatsketch.graph._transformer_neighbors import neighbors_by_transformer
from heatsketch.persistence._save_load import SaveMixin

TRANSFORM_ENTRIES = 16_000_000  # affinities of new points per batch
N_NEIGHBORS = 15  # by default

Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method) -> Method:
    """Let scikit-learn validate the parameters before a fit; keep type hints."""
    return _fit_context(prefer_skip_nested_validation=True)(fit)


class _Trained(NamedTuple):
    """Arrays of the training points that embed new points."""

    scaling: Any
    operator: Any
    before_last: Any
    scales: Any
    labels: Any


class HeatEmbedding(
    SaveMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    ABC,
):
    """Base class of the embeddings: from ``X`` to rows of the heat operator."""

    embedding_: np.ndarray
    component_offsets_: np.ndarray

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Count()],
        "epsilon": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "local"})],
        "n_neighbors": [Interval(Integral, 2, None, closed="left"), None],
        "neighbors": [HasMethods(["fit", "transform", "get_params"]), None],
        "metric": [StrOptions({*METRICS, *ALIASES, "precomputed"}), callable],
        "affinity": [StrOptions({"gaussian", "precomputed"})],
        "self_loops": ["boolean"],
        "normalization": [StrOptions({"auto", *SCALINGS})],
        "weighting": [StrOptions({"random_walk", "symmetric"})],
        "engine": [Engine, None],
        **MACHINE_CONSTRAINTS,
    }

    @abstractmethod
    def _finish(self, last: np.ndarray, A: HeatOperator, labels: Any = None) -> np.ndarray:
        """Convert ``A @ before_last_`` to rows of the embedding, in place."""

    # --- the stages of a fit, in order ----------------------------------------------------

    @contextmanager
    def _fitting(self) -> Iterator[tuple[Self, Engine]]:
        """Yield a copy to fit and a running engine; adopt the fit if it succeeds.

        The copy has the current parameters. The attributes of an earlier fit are deleted first. So
        a fit that fails or is interrupted leaves no attributes, neither old ones nor a mixture.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        model = self._with(**self._plain_parameters())
        if model.neighbors is not None:  # the caller may change its parameters later
            model = model._with(neighbors=clone(model.neighbors))
            model._check_transformer()
        with fit_progress(self), model._engine().working() as engine:
            yield model, engine
            engine.finish(model.scaling_.current)
        found = {name: value for name, value in vars(model).items() if name.endswith("_")}
        self.__dict__.update(found)

    def _read(self, engine: Engine, X: Any, row_ids: Any) -> tuple[Any, Any]:
        """Check ``X`` and its row ids; return None as ids of rows on storage."""
        X, row_ids = self._named_rows(X, row_ids)
        X = self._check(engine.read(X), reset=True)
        if not is_lazy(X):
            return X, check_row_ids(row_ids, X.shape[0])
        if row_ids is not None:
            raise HeatSketchError(
                f"row_ids={reprlib.repr(row_ids)} is not for an X that is read from storage, whose "
                "rows are numbered from 0; leave it out, or put the rows in the order of their ids."
            )
        return X, None

    def _affinity(self, engine: Engine, X: Any, ids: Any) -> Any:
        """Return the affinities of all rows, in an order that is fast for products."""
        self.epsilon_: Any = None
        self.order_: Any = None if ids is None else np.arange(X.shape[0])
        if self.affinity == "precomputed":
            if not self.self_loops:
                warn_about_zero_diagonal(X)
            return engine.hold(X)
        # Compare instead of subtracting: differences of unsigned ids are never negative.
        falls = ids is not None and bool((ids[1:] < ids[:-1]).any())
        if falls and self.metric != "precomputed":
            # The neighbours must not depend on the order of the given rows.
            self.order_ = np.argsort(ids)
            X, ids = X[self.order_], ids[self.order_]
        self.neighbors_, d2 = self._find_neighbors(engine, X)
        found = self.neighbors_.order
        self.order_ = found if self.order_ is None else self.order_[in_memory(found)]
        d2 = self._in_units(d2, X, ids)  # frees the unscaled distances
        return gaussian_affinity(d2, epsilon=self._bandwidth)

    def _check_graph(self, K: Any, sums: Any, X: Any) -> None:
        """Find connected components, and warn if the graph makes embeddings useless."""
        warn_about_isolated_points(K, sums, self._named_epsilon)
        self.n_connected_components_, labels = label_components(K)
        if self.n_connected_components_ > 1:
            warn_about_components(
                self.n_connected_components_, edges=self._edges(X), n_neighbors=self.n_neighbors
            )
            self.component_labels_ = labels

    def _operator(self, engine: Engine, K: Any, sums: Any, ids: Any) -> HeatOperator:
        """Return the heat operator of affinities."""
        self.row_ids_ = self.order_ if ids is None else engine.hold_vector(ids[self.order_], K)
        scaling = SCALINGS[self._normalization](K, sums=sums)
        if scaling.previous is not None:
            scaling = replace(scaling, previous=engine.keep(scaling.previous))
        self.scaling_ = scaling
        A = heat_operator(K, scaling)
        self.stationary_length_ = A.stationary.dtype.type(np.sqrt(A.squared_length))
        return A

    def _remembering_points(self, A: HeatOperator) -> HeatOperator:
        """Return the operator as stored in the model.

        An operator over all pairs is stored so that it can be recomputed from the points.
        """
        # How other engines compute their distances is not known.
        if self.affinity == "precomputed" or type(self._engine()) is not LocalEngine:
            return A
        scales = self.epsilon_ if self.epsilon == "local" else None
        return remembering_points(A, self.neighbors_, scales=scales, bandwidth=self._bandwidth)

    # --- helpers of the stages ------------------------------------------------------------

    def _engine(self) -> Engine:
        return LocalEngine() if self.engine is None else self.engine

    def _as_fitted(self) -> Self:
        """Return a copy with the parameters of the fit, ignoring later changes."""
        check_is_fitted(self)
        return self._with()

    def _with(self, **parameters: Any) -> Self:
        """Return a copy with the parameters of the fit, some of them replaced."""
        other = copy(self)
        # Pickles of early versions lack parameters_.
        other.parameters_ = getattr(self, "parameters_", {}) | parameters
        other.__dict__.update(other.parameters_)
        return other

    def _named_rows(self, X: Any, row_ids: Any) -> tuple[Any, Any]:
        """Return the affinities of a graph, and row ids from the names of its nodes."""
        if not is_graph(X):
            return X, row_ids
        affinity, self.row_names_ = self._graph_affinity(X)
        # The text of other objects may differ between processes.
        plain = all(isinstance(name, int | str) for name in self.row_names_.tolist())
        if row_ids is None and plain:
            row_ids = row_numbers(self.row_names_)
        return affinity, row_ids

    def _graph_affinity(self, X: Any) -> Graph:
        if self.affinity != "precomputed":
            raise HeatSketchError(
                f"affinity={self.affinity!r} is for points, and X is a graph; use "
                "affinity='precomputed', by which the weights of its edges are the affinities."
            )
        return graph_affinity(X)

    def _rows_of_nodes(self, X: Any) -> Any:
        """Return the rows of a graph of the training nodes, in their order."""
        affinity, names = self._graph_affinity(X)
        if not hasattr(self, "row_names_"):
            raise HeatSketchError(
                "X is a graph, but the model was fitted to a matrix, without names of nodes; pass "
                "graph_affinity(X).affinity, with the nodes in the order of the fit."
            )
        places = {name: place for place, name in enumerate(names.tolist())}
        known = self.row_names_.tolist()
        more, fewer = places.keys() - set(known), set(known) - places.keys()
        if more or fewer:
            which = "has the node {!r}, which the graph of the fit lacks"
            which = which if more else "lacks the node {!r}, which the graph of the fit has"
            raise HeatSketchError(
                f"X {which.format(next(iter(more or fewer)))}; fit to this graph, or pass rows of "
                "weights to the training nodes."
            )
        order = [places[name] for name in known]
        affinity = affinity[order][:, order]
        return with_self_loops(affinity) if self.self_loops else affinity

    def _weighted(self, block: np.ndarray, A: HeatOperator) -> np.ndarray:
        """Scale rows according to the weighting, in place."""
        if self.weighting == "random_walk":
            block *= (self.stationary_length_ / A.stationary)[:, np.newaxis]
        return block

    def _in_given_order(self, block: Any) -> Any:
        """Reorder the rows of a block from the order of ``A`` to that of ``X``."""
        return self._engine().in_given_order(block, self.order_)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Embed the points of ``X`` and return the embedding.

        Parameters
        ----------
        X, y :
            As for :meth:`fit`.
        **fit_params :
            As for :meth:`fit`.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self.fit(X, y, **fit_params).embedding_

    @with_n_jobs
    def transform(self, X: Any) -> np.ndarray:
        """Embed new points by the same rule as the training points.

        A training point gets its embedding of :meth:`fit`, whatever the other rows are. Sparse
        precomputed distances are not symmetrized here: to get the same embedding, give rows of the
        symmetric matrix with the zeros of the diagonal stored.

        A row of a graph (``affinity="precomputed"``) that equals the row of one training node is
        that node, and gets its self-loop. Any other row is a new node, which has no self-loop. If
        several training nodes have this row, it is a new node, too, with a warning, unless ``X``
        is the whole matrix of the fit; give rows of :func:`with_self_loops` to tell these nodes
        apart.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            New points; or their distances (``metric="precomputed"``) or affinities
            (``affinity="precomputed"``) to the training points; or a graph whose nodes have the
            names of the training nodes, which are returned in the order of the fit.

        Returns
        -------
        array of shape (n_new, n_components)
        """
        return self._as_fitted()._transform(X)

    def _transform(self, X: Any) -> np.ndarray:
        def finished(A: HeatOperator, trained: _Trained, labels: Any) -> np.ndarray:
            return self._finish(A @ trained.before_last, A, labels)

        return self._of_new_rows("transform", X, finished)

    def _of_new_rows(self, task: str, X: Any, function: Callable[..., np.ndarray]) -> np.ndarray:
        """Apply a function to the heat rows of new points, batch by batch."""
        self._training_operator(task)
        X = self._check(self._rows_of_nodes(X) if is_graph(X) else X, reset=False)
        step = self._rows_at_a_time()
        starts = range(0, X.shape[0], step)
        parts = (X[i : i + step] for i in starts)
        batches = (in_memory(part) if is_lazy(part) else part for part in parts)
        rows = map(self._heat_rows, batches, starts)
        return np.concatenate([function(*some) for some in rows])

    @with_n_jobs
    def harmonic(self, values: Any, rows: Any, *, tolerance: float = 1e-6) -> np.ndarray:
        """Extend values at some training points to all by averaging random walks.

        The value of a point is the expected value at the first of ``rows`` that a random walk from
        this point reaches. With one indicator column for each terminal state, the results are
        fate probabilities, and sum to one.

        Parameters
        ----------
        values : array of shape (m,) or (m, k)
            Values at the given rows.
        rows : array of int of shape (m,)
            Distinct rows of ``X``.
        tolerance : float, default=1e-6
            Bound on the error, relative to the largest absolute value.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, k), of float64
            Values in the order of ``X``. Connected components that contain none of ``rows`` get
            NaN, with a warning.
        """
        model = self._as_fitted()
        A, order = model._training_operator("harmonic"), in_memory(model.order_)
        places = np.argsort(order)[checked_rows(rows, len(order))]
        found = harmonic_extension(A, values, places, tolerance=tolerance)
        warn_about_unreached_rows(found)
        return model._in_given_order(found)

    @with_n_jobs
    def smooth(
        self, values: Any, *, time: Any = "auto", sizes: Any = None, out: Any = None
    ) -> Smoothing:
        """Smooth columns of numbers over the graph to reduce noise.

        A smoothed value is a weighted mean over the positions of a random walk after ``time``
        steps, as in MAGIC for gene counts.

        Parameters
        ----------
        values : array, sparse matrix or data frame of shape (n_samples, m), or (n_samples,)
            Numbers of the training points, in the order of ``X``. Sparse columns are converted to
            dense ones in batches.
        time : int or "auto", default="auto"
            Number of steps. "auto" predicts held-out entries of at most 64 columns from their
            neighbours, and chooses the longest time whose correlation with them is within one
            standard error of the best. Noise may have any distribution, but must be independent
            between entries. If neighbours do not predict the values, the time is 0, with a warning.
        sizes : array of shape (n_samples,) or "sum", optional
            Total measured for each row, such as the sequencing depth of a cell; "sum" uses the
            row sums. Smoothed values are then divided by smoothed sizes, and have the scale of a
            row of mean size.
        out : array of shape (n_samples, m), optional
            Array for the result, such as a zarr array or ``numpy.memmap``.

        Returns
        -------
        Smoothing
            ``values``, ``time``, and the ``times`` and ``scores`` from which it was chosen.

        Warns
        -----
        HeatSketchWarning
            If ``time="auto"`` chooses 0, so that values are not smoothed.
        """
        model = self._as_fitted()
        A, order = model._training_operator("smooth"), in_memory(model.order_)
        return smooth(A, values, time=time, sizes=sizes, order=order, out=out)

    def vectors(
        self, X: Any = None, *, normalize: bool = True, append: Any = None, weight: float = 0.5
    ) -> np.ndarray:
        r"""Vectors for a search index or vector database with Euclidean distance.

        With rows of unit length, inner products and cosines give the same ranking, and
        :math:`u_i \cdot u_j = \cos(y_i, y_j) + w \cos(x_i, x_j)`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features), optional
            New points, as for :meth:`transform`; by default the training points.
        normalize : bool, default=True
            Whether to scale rows of the embedding and of ``append`` to unit length.
        append : array of shape (n_new, m), optional
            Features of the same points, to rank points whose embeddings are similar.
        weight : float, default=0.5
            Weight ``w`` of the squared distances of ``append``.

        Returns
        -------
        array of float32 of shape (n_new, n_components), or (n_new, n_components + m)
        """
        rows = in_memory(self._as_fitted().embedding_) if X is None else self.transform(X)
        return search_vectors(rows, normalize=normalize, append=append, weight=weight)

    def _training_operator(self, task: str) -> HeatOperator:
        """Return the heat operator, or raise if the model was saved without it."""
        if self.heat_operator_ is None:
            raise TrainingDataError(
                f"{task} needs the training data, without which this model was saved; load one "
                "that was saved with training_data=True, or fit again.",
                training_data=True,
            )
        return self.heat_operator_

    def _components(self, A: HeatOperator) -> Components | None:
        several = self.n_connected_components_ > 1
        return Components(A, self.component_labels_) if several else None

    def _spectral_block(self, A: HeatOperator) -> Any:
        """Return a block that approximately spans the leading eigenvectors."""
        if not hasattr(self, "component_offsets_"):
            return self.before_last_
        # Add the eigenvectors of eigenvalue one, which separate the connected components.
        return (
            self.before_last_
            + A.stationary_part(1) * self.component_offsets_[self.component_labels_]
        )

    def _rows_at_a_time(self) -> int:
        lists = self.affinity == "gaussian" and self.neighbors_.lists is not None
        return max(1, TRANSFORM_ENTRIES // (100 if lists else len(self.before_last_)))

    def _heat_rows(self, X: Any, first_row: int) -> tuple[HeatOperator, _Trained, Any]:
        """Return rows of the operator, the training arrays, and component labels."""
        rows = X if self.affinity == "precomputed" else self.neighbors_.distances_to(X)
        rows, trained = self._trained(rows)
        K = rows
        if self.affinity != "precomputed":
            K = self._affinity_to_training(rows, trained.scales, first_row)
        A = heat_rows(self._over_copies(K), trained.scaling, trained.operator)
        # A new point belongs to the component of the training point with the largest affinity.
        labels = None if trained.labels is None else trained.labels[strongest_columns(K)]
        return A, trained, labels

    def _trained(self, rows: Any) -> tuple[Any, _Trained]:
        """Return new rows with the training arrays that they need, all in memory."""
        scales = self.epsilon_ if self.epsilon == "local" else None
        labels = getattr(self, "component_labels_", None)
        starts = self._starts_of_copies
        if starts is not None:
            scales = None if scales is None else scales[starts[:-1]]
            labels = None if labels is None else labels[starts[:-1]]
        trained = _Trained(self.scaling_, self.heat_operator_, self.before_last_, scales, labels)
        if isinstance(self.before_last_, np.ndarray):
            return rows, trained
        # The arrays are on a cluster: load what these rows need, and keep the order of entries.
        columns, places = np.unique(rows.indices, return_inverse=True)
        shape = rows.shape[0], len(columns)
        return sparse.csr_array((rows.data, places, rows.indptr), shape=shape), _Trained(
            trained.scaling.at(columns),
            trained.operator.at(columns),
            np.asarray(trained.before_last[columns]),
            None if scales is None else np.asarray(scales[columns]),
            None if labels is None else np.asarray(labels[columns]),
        )

    def _is_fitted_to(self, X: Any) -> bool:
        """Return True if ``X`` holds the rows of the fit.

        For precomputed distances or affinities, only the shape is compared.
        """
        if X.shape != (len(self.embedding_), self.n_features_in_):
            return False
        if "precomputed" in (self.metric, self.affinity):
            return True
        points, starts = self.neighbors_.points, self._starts_of_copies
        rows = X[self.order_ if starts is None else self.order_[starts[:-1]]]
        different = stored_like(points, rows.astype(points.dtype)) != points
        return not (different.nnz if sparse.issparse(different) else different.any())

    @property
    def _starts_of_copies(self) -> Any:
        """Start of the duplicates of each training point, or None if not grouped."""
        return getattr(getattr(self, "neighbors_", None), "starts", None)

    def _over_copies(self, K: Any) -> Any:
        """Expand affinities to distinct training points to all training points."""
        starts = self._starts_of_copies
        return K if starts is None else SharedRows(K, starts, is_square=False)

    # --- from X to an affinity ------------------------------------------------------------

    def _check(self, X: Any, *, reset: bool) -> Any:
        X = check_numbers(self, X, reset=reset)
        dtype = X.dtype if reset else self.embedding_.dtype
        if self.affinity == "precomputed":
            check_idle_parameters(self)
            if reset:
                check_square(X, name="affinity='precomputed'")
            X = self._with_self_loops(X.astype(dtype, copy=False), reset=reset)
            check_affinities(X)
            if reset:
                check_symmetric(X, name="affinity='precomputed'")
        else:
            check_scale(X, dtype=dtype, reset=reset)
            if self.metric == "precomputed":
                self._check_distances(X, reset=reset)
            elif not reset:
                X = stored_like(self.neighbors_.points, X)
        return X.astype(dtype, copy=False)

    def _with_self_loops(self, X: Any, *, reset: bool) -> Any:
        """Return affinities with the self-loops of training nodes, which are recognized."""
        if reset and self.self_loops:
            looped = with_self_loops(X)
            if looped is not X:
                has_loop = np.asarray(X.diagonal()) != 0
                self.fingerprints_ = np.where(has_loop, np.nan, row_fingerprints(X))
            return looped
        if reset or not hasattr(self, "fingerprints_"):
            return X
        rows, nodes, shared = known_nodes(X, self.fingerprints_)
        warn_about_shared_rows(shared)
        return add_self_loops(X, rows, nodes)

    def _check_distances(self, X: Any, *, reset: bool) -> None:
        if sparse.issparse(X) and self.n_neighbors not in (None, N_NEIGHBORS):
            raise HeatSketchError(
                f"n_neighbors={self.n_neighbors} is not for metric='precomputed' with a sparse "
                "X, which says itself who the neighbours are; leave it out."
            )
        check_distances(X)
        if reset:
            check_square(X, name="metric='precomputed'")
            check_zero_diagonal(X)
        # A sparse graph of nearest neighbours need not be symmetric.
        if reset and not sparse.issparse(X):
            check_symmetric(X, name="metric='precomputed'")

    def _check_transformer(self) -> None:
        """Raise for search parameters that have no effect with a transformer."""
        if self.metric == "precomputed":
            raise HeatSketchError(
                f"neighbors={self.neighbors!r} is not for metric='precomputed', where X holds "
                "distances already; pass points and the metric of the transformer, or leave "
                "neighbors out."
            )
        for name, idle in (("n_neighbors", N_NEIGHBORS), ("engine", None)):
            value = getattr(self, name)
            if value != idle:
                raise HeatSketchError(
                    f"{name}={value!r} has no use with neighbors={self.neighbors!r}, which "
                    f"searches in its own way; leave {name} out, and set the transformer's."
                )

    def _find_neighbors(self, engine: Engine, X: Any) -> tuple[Any, Any]:
        if self.neighbors is not None:
            return neighbors_by_transformer(X, clone(self.neighbors), metric=self.metric)
        return engine.neighbors(
            X,
            metric=self.metric,
            n_neighbors=self._n_neighbors(X),
            n_columns=self.n_components,
        )

    def _in_units(self, d2: Any, X: Any, rows: Any) -> Any:
        """Choose the bandwidth, and return squared distances on its scale."""
        if self.epsilon == "local":
            self.epsilon_ = local_scales(d2)
            return locally_scaled(d2, self.epsilon_, self.epsilon_)
        if self.epsilon == "auto":
            # The neighbour graph lacks distant pairs, without which the kernel sum levels off too
            # early. Points are sampled by their ids, so that their order does not matter.
            ids = X.shape[0] if rows is None else rows
            keys = gaussians_apart(Kind.SAMPLE, ids, 1)[:, 0]
            squares = sampled_squares(X, metric=self.metric, keys=keys)
            self.epsilon_estimate_ = estimate_epsilon(squares)
            self.epsilon_ = self.epsilon_estimate_.epsilon
        else:
            self.epsilon_ = float(self.epsilon)
        return d2

    @property
    def _bandwidth(self) -> float:
        """Bandwidth of the squared distances; 1 if they are scaled locally."""
        return 1.0 if self.epsilon == "local" else self.epsilon_

    @property
    def _named_epsilon(self) -> Any:
        """Bandwidth as shown in messages."""
        if self.epsilon_ is None:
            return None
        return "local" if self.epsilon == "local" else float(self.epsilon_)

    @property
    def _normalization(self) -> str:
        """Name of the normalization used: "auto" is "degree" for graphs only."""
        if self.normalization != "auto":
            return self.normalization
        return "degree" if self.affinity == "precomputed" else "symmetric"

    def _n_neighbors(self, X: Any) -> int | None:
        if self.n_neighbors is None or (self.metric == "precomputed" and sparse.issparse(X)):
            return None
        return min(int(self.n_neighbors), X.shape[0])

    def _edges(self, X: Any) -> str:
        """Return the source of the graph's edges, a key of ``CONNECT``."""
        if self.affinity == "precomputed":
            return "given"
        if self.metric == "precomputed" and sparse.issparse(X):
            return "stored"
        return "all pairs" if self._n_neighbors(X) in (None, X.shape[0]) else "nearest"

    def _affinity_to_training(self, d2: Any, scales: Any, first_row: int) -> Any:
        if scales is not None:
            least = float(self.epsilon_.min())
            d2 = locally_scaled(d2, local_scales(d2, least=least), scales)
        units = {"bandwidth": self._bandwidth, "epsilon": self._named_epsilon}
        warn_about_far_points(nearest_squares(d2), **units, first_row=first_row)
        return gaussian_affinity_rows(d2, epsilon=self._bandwidth)

    # --- scikit-learn ---------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "heat_operator_")  # set last, so that a failed fit does not count

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = "precomputed" in (self.metric, self.affinity)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
