"""The way from points to rows of the heat operator, as a scikit-learn estimator.

Points become distances, distances an affinity, the affinity a heat operator ``A``; then something
is made that ``A`` is applied to once more, ``embedding = A @ before_last``. A new point has a row
of ``A`` of its own, and is embedded by the same product. The estimators differ only in what
``before_last`` is.
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
    gaussian_affinity,
    gaussian_affinity_rows,
    local_scales,
    locally_scaled,
    nearest_squares,
    strongest_columns,
    with_self_loops,
)
from heatsketch.diffusion._all_pairs import remembering_points
from heatsketch.diffusion._bandwidth import estimate_epsilon, sampled_squares
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._harmonic import checked_rows, harmonic_extension
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
    warn_about_unreached_rows,
    warn_about_zero_diagonal,
)
from heatsketch.exceptions import HeatSketchError, TrainingDataError
from heatsketch.graph._graph_affinity import graph_affinity, is_graph
from heatsketch.graph._metrics import ALIASES, METRICS
from heatsketch.graph._neighbors import label_components
from heatsketch.graph._transformer_neighbors import neighbors_by_transformer
from heatsketch.persistence._save_load import SaveMixin

TRANSFORM_ENTRIES = 16_000_000  # affinities of new points held at a time
N_NEIGHBORS = 15  # by default

Method = TypeVar("Method", bound=Callable[..., Any])


def checks_parameters(fit: Method) -> Method:
    """Let scikit-learn check the parameters before a fit; the method keeps its types."""
    return _fit_context(prefer_skip_nested_validation=True)(fit)


class _Trained(NamedTuple):
    """What new points are embedded with."""

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
    """What the two embeddings share: the way from ``X`` to rows of the heat operator."""

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
        "weighting": [StrOptions({"auto", "symmetric", "random_walk"})],
        "engine": [Engine, None],
        **MACHINE_CONSTRAINTS,
    }

    @abstractmethod
    def _finish(self, last: np.ndarray, A: HeatOperator, labels: Any = None) -> np.ndarray:
        """Turn ``A @ before_last_`` into rows of the embedding, in place."""

    # --- the stages of a fit, in order ----------------------------------------------------

    @contextmanager
    def _fitting(self) -> Iterator[tuple[Self, Engine]]:
        """Yield the model to fit and the engine at work; take over the fit if it succeeds.

        The model is a copy with the parameters of this moment. So a fit that fails or is
        interrupted leaves neither the fit before it nor a mixture of the two.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        model = self._with(**self._plain_parameters())
        if model.neighbors is not None:  # whose own parameters may be set later
            model = model._with(neighbors=clone(model.neighbors))
            model._check_transformer()
        with fit_progress(self), model._engine().working() as engine:
            yield model, engine
            engine.finish(model.scaling_.current)
        found = {name: value for name, value in vars(model).items() if name.endswith("_")}
        self.__dict__.update(found)

    def _read(self, engine: Engine, X: Any, row_ids: Any) -> tuple[Any, Any]:
        """Check ``X`` and the ids of its rows; None are the ids of rows read from storage."""
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
        """Return the affinities of all rows, in the order that is best for products."""
        self.epsilon_: Any = None
        self.order_: Any = None if ids is None else np.arange(X.shape[0])
        if self.affinity == "precomputed":
            if not self.self_loops:
                warn_about_zero_diagonal(X)
            return engine.hold(X)
        # Compared, and not subtracted: a difference of unsigned ids is never negative.
        falls = ids is not None and bool((ids[1:] < ids[:-1]).any())
        if falls and self.metric != "precomputed":
            # Who is near whom must not depend on the order in which the rows came.
            self.order_ = np.argsort(ids)
            X, ids = X[self.order_], ids[self.order_]
        self.neighbors_, d2 = self._find_neighbors(engine, X)
        found = self.neighbors_.order
        self.order_ = found if self.order_ is None else self.order_[in_memory(found)]
        d2 = self._in_units(d2, X, ids)  # and the first ones are let go
        return gaussian_affinity(d2, epsilon=self._bandwidth)

    def _check_graph(self, K: Any, sums: Any, X: Any) -> None:
        """Find connected components, and warn of what makes an embedding useless."""
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
        """Return the operator as a model keeps it: one of all pairs can be made again."""
        # Of another engine we do not know how it came to its distances.
        if self.affinity == "precomputed" or type(self._engine()) is not LocalEngine:
            return A
        scales = self.epsilon_ if self.epsilon == "local" else None
        return remembering_points(A, self.neighbors_, scales=scales, bandwidth=self._bandwidth)

    # --- what the stages need -------------------------------------------------------------

    def _engine(self) -> Engine:
        return LocalEngine() if self.engine is None else self.engine

    def _as_fitted(self) -> Self:
        """Return the model with the parameters of its fit, whatever has been set since."""
        check_is_fitted(self)
        return self._with()

    def _with(self, **parameters: Any) -> Self:
        """Return a copy with the parameters of its fit, some of them others."""
        other = copy(self)
        # A pickle from before they were remembered has none.
        other.parameters_ = getattr(self, "parameters_", {}) | parameters
        other.__dict__.update(other.parameters_)
        return other

    def _named_rows(self, X: Any, row_ids: Any) -> tuple[Any, Any]:
        """Return the affinities of a graph, and row ids that depend on names of nodes."""
        if not is_graph(X):
            return X, row_ids
        if self.affinity != "precomputed":
            raise HeatSketchError(
                f"affinity={self.affinity!r} is for points, and X is a graph; use "
                "affinity='precomputed', by which the weights of its edges are the affinities."
            )
        affinity, self.row_names_ = graph_affinity(X)
        # The text of other objects may be another one in the next process.
        plain = all(isinstance(name, int | str) for name in self.row_names_.tolist())
        if row_ids is None and plain:
            row_ids = row_numbers(self.row_names_)
        return affinity, row_ids

    def _weighted(self, block: np.ndarray, A: HeatOperator) -> np.ndarray:
        """Weigh rows as the distance asked for does, in place."""
        if self._weighting == "random_walk":
            block *= (self.stationary_length_ / A.stationary)[:, np.newaxis]
        return block

    def _in_given_order(self, block: Any) -> Any:
        """Return the rows of a block, which are in the order of ``A``, in the order of ``X``."""
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
        """Embed new points by the rule that embedded the training points.

        A training point given again gets its embedding back, whatever comes with it. (Sparse
        precomputed distances are taken row by row as they are: give the symmetric rows, with the
        zero diagonal stored, to have the same.)

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features)
            New points; or their distances (``metric="precomputed"``) or affinities
            (``affinity="precomputed"``) to the training points.

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
        """Return what a function makes of the heat rows of new points, some at a time."""
        self._training_operator(task)
        X = self._check(X, reset=False)
        step = self._rows_at_a_time()
        starts = range(0, X.shape[0], step)
        parts = (X[i : i + step] for i in starts)
        batches = (in_memory(part) if is_lazy(part) else part for part in parts)
        rows = map(self._heat_rows, batches, starts)
        return np.concatenate([function(*some) for some in rows])

    @with_n_jobs
    def harmonic(self, values: Any, rows: Any, *, tolerance: float = 1e-6) -> np.ndarray:
        """Extend values at some training points to all, as means over random walks.

        The value of a point is the mean of those at the first of ``rows`` that a random walk from
        it meets. With one column for each terminal state, and a one in it for rows in that state,
        these are the probabilities of fates, and sum to one.

        Parameters
        ----------
        values : array of shape (m,) or (m, k)
            Values at the given rows.
        rows : array of int of shape (m,)
            Rows of ``X``, all different.
        tolerance : float, default=1e-6
            Bound of the error, relative to the largest absolute value.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, k), of float64
            In the order of ``X``. NaN, with a warning, in connected components without any of
            ``rows``.
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
        """Smooth columns of numbers over the graph, to reduce their noise.

        A smoothed value is a weighted mean over the places of a random walk after ``time`` steps:
        what MAGIC does to counts of genes.

        Parameters
        ----------
        values : array, sparse matrix or data frame of shape (n_samples, m), or (n_samples,)
            Numbers of the training points, in the order of ``X``. Sparse columns become dense some
            at a time.
        time : int or "auto", default="auto"
            Number of steps. "auto" chooses the longest time at which a sample of at most 64 columns
            agrees with data that were held out within one standard error of the best: half of the
            counts, if all values are counts, else a tenth of the entries. Noise must be independent
            between entries, and counts about Poisson.
        sizes : array of shape (n_samples,) or "sum", optional
            What each row was measured with, such as the depth of a cell; "sum" takes the sums of
            rows. Smoothed values are then divided by smoothed sizes, and have the scale of a row of
            mean size.
        out : array of shape (n_samples, m), optional
            Where the result goes, such as an array of zarr or ``numpy.memmap``.

        Returns
        -------
        Smoothing
            ``values``, ``time``, and the ``times`` and ``scores`` that it was chosen from.
        """
        model = self._as_fitted()
        A, order = model._training_operator("smooth"), in_memory(model.order_)
        return smooth(A, values, time=time, sizes=sizes, order=order, out=out)

    def vectors(
        self, X: Any = None, *, normalize: bool = True, append: Any = None, weight: float = 0.5
    ) -> np.ndarray:
        r"""Vectors for an index or a database, which ranks them by Euclidean distance.

        With rows of length one, inner products and cosines rank in the same way, and
        :math:`u_i \cdot u_j = \cos(y_i, y_j) + w \cos(x_i, x_j)`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_new, n_features), optional
            New points, as for :meth:`transform`; the training points if left out.
        normalize : bool, default=True
            Whether rows of the embedding and of ``append`` get length one.
        append : array of shape (n_new, m), optional
            Features of the same points, which decide between points that belong together.
        weight : float, default=0.5
            Weight ``w`` of ``append``: its squared distances count so much.

        Returns
        -------
        array of float32 of shape (n_new, n_components), or (n_new, n_components + m)
        """
        rows = in_memory(self._as_fitted().embedding_) if X is None else self.transform(X)
        return search_vectors(rows, normalize=normalize, append=append, weight=weight)

    def _training_operator(self, task: str) -> HeatOperator:
        """Return the heat operator, for a task that cannot do without."""
        if self.heat_operator_ is None:
            raise TrainingDataError(
                f"{task} needs the training data, without which this model was saved; load one "
                "that was saved with training_data=True, or fit again.",
                training_data=True,
            )
        return self.heat_operator_

    def _spectral_block(self, A: HeatOperator) -> Any:
        """Return a block that holds the leading eigenvectors of the heat operator roughly."""
        if not hasattr(self, "component_offsets_"):
            return self.before_last_
        # Eigenvectors of the eigenvalue one, which tell components apart.
        return (
            self.before_last_
            + A.stationary_part(1) * self.component_offsets_[self.component_labels_]
        )

    def _rows_at_a_time(self) -> int:
        lists = self.affinity == "gaussian" and self.neighbors_.lists is not None
        return max(1, TRANSFORM_ENTRIES // (100 if lists else len(self.before_last_)))

    def _heat_rows(self, X: Any, first_row: int) -> tuple[HeatOperator, _Trained, Any]:
        """Return rows of the operator, what they are multiplied with, and their components."""
        rows = X if self.affinity == "precomputed" else self.neighbors_.distances_to(X)
        rows, trained = self._trained(rows)
        K = rows
        if self.affinity != "precomputed":
            K = self._affinity_to_training(rows, trained.scales, first_row)
        A = heat_rows(self._over_copies(K), trained.scaling, trained.operator)
        # A new point belongs to the component of the training point that is most like it.
        labels = None if trained.labels is None else trained.labels[strongest_columns(K)]
        return A, trained, labels

    def _trained(self, rows: Any) -> tuple[Any, _Trained]:
        """Return what new rows are multiplied with, all of it in memory."""
        scales = self.epsilon_ if self.epsilon == "local" else None
        labels = getattr(self, "component_labels_", None)
        starts = self._starts_of_copies
        if starts is not None:
            scales = None if scales is None else scales[starts[:-1]]
            labels = None if labels is None else labels[starts[:-1]]
        trained = _Trained(self.scaling_, self.heat_operator_, self.before_last_, scales, labels)
        if isinstance(self.before_last_, np.ndarray):
            return rows, trained
        # It is far away: bring what these rows need. Their entries stay in the order they have.
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
        """Return True if these are the rows of the fit; of distances or affinities, as many."""
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
        """Where the copies of each training point begin, if they share rows; else None."""
        return getattr(getattr(self, "neighbors_", None), "starts", None)

    def _over_copies(self, K: Any) -> Any:
        """Return affinities to distinct training points as affinities to all of them."""
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
                X = with_self_loops(X) if self.self_loops else X
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
        """Raise for parameters that say how to search where a transformer does."""
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
        """Choose the bandwidth, and return squared distances that it is the bandwidth of."""
        if self.epsilon == "local":
            self.epsilon_ = local_scales(d2)
            return locally_scaled(d2, self.epsilon_, self.epsilon_)
        if self.epsilon == "auto":
            # A graph cut to near neighbours has lost the far ones, without which the kernel sum
            # levels off too early. The points are drawn by their ids: their order does not matter.
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
        """The bandwidth of squares that have been scaled locally, or not."""
        return 1.0 if self.epsilon == "local" else self.epsilon_

    @property
    def _named_epsilon(self) -> Any:
        """The bandwidth as messages show it."""
        if self.epsilon_ is None:
            return None
        return "local" if self.epsilon == "local" else float(self.epsilon_)

    @property
    def _normalization(self) -> str:
        """The name of the normalization; a density is that of points, a degree that of nodes."""
        if self.normalization != "auto":
            return self.normalization
        return "degree" if self.affinity == "precomputed" else "symmetric"

    @property
    def _weighting(self) -> str:
        """The name of the weighting; "degree" gives nodes of high degree long rows otherwise."""
        if self.weighting != "auto":
            return self.weighting
        return "random_walk" if self._normalization == "degree" else "symmetric"

    def _n_neighbors(self, X: Any) -> int | None:
        if self.n_neighbors is None or (self.metric == "precomputed" and sparse.issparse(X)):
            return None
        return min(int(self.n_neighbors), X.shape[0])

    def _edges(self, X: Any) -> str:
        """Return where the edges of the graph come from."""
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
        return hasattr(self, "heat_operator_")  # what a fit sets last: one that failed is none

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = "precomputed" in (self.metric, self.affinity)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
