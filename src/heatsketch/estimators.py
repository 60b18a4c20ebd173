"""The estimators: floor one, composed, with scikit-learn's manners.

Both go the same way. Points become distances, distances an affinity, the affinity a heat
operator ``A``; then something is made that ``A`` is applied to once more, ``embedding = A @
before_last``. A new point has a row of ``A`` of its own, and is embedded by the same product.
The two differ only in what ``before_last`` is.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heatsketch.affinity import (
    estimate_epsilon,
    gaussian_affinity,
    gaussian_affinity_rows,
    nearest_squares,
)
from heatsketch.callbacks import CallbackSupportMixin, fit_progress
from heatsketch.diagnosis import (
    warn_about_decay,
    warn_about_far_points,
    warn_about_lonely_points,
    warn_about_pieces,
    warn_about_zero_diagonal,
)
from heatsketch.engines import ENGINES, Engine, resolve_engine
from heatsketch.exceptions import HeatSketchError
from heatsketch.graph import METRICS, count_components, squared_distances
from heatsketch.heat_operator import HeatOperator, heat_operator, heat_rows
from heatsketch.normalization import SCALINGS
from heatsketch.random_block import gaussian_block, rademacher_block
from heatsketch.sketch import diffuse
from heatsketch.spectral import eigenvalue_powers, leading_eigenpairs
from heatsketch.validation import (
    check_affinities,
    check_distances,
    check_idle_parameters,
    check_numbers,
    check_row_ids,
    check_scale,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    stored_like,
)

__all__ = ["DiffusionMap", "HeatSketch"]

BLOCKS = {"gaussian": gaussian_block, "rademacher": rademacher_block}

TRANSFORM_ENTRIES = 16_000_000  # affinities of new points held at a time
EPSILON_ENTRIES = 5_000_000  # distances looked at to choose epsilon
EPSILON_POINTS = 200_000  # at most, to which they are
ALL_PAIRS_UP_TO = 5000  # points, unless told otherwise


class _HeatEmbedding(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """What the two embeddings share: the way from ``X`` to rows of the heat operator."""

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"}), None],
        "metric": [StrOptions({*METRICS, "precomputed"}), callable],
        "affinity": [StrOptions({"gaussian", "precomputed"})],
        "normalization": [StrOptions(set(SCALINGS))],
        "engine": [StrOptions(set(ENGINES)), Engine],
    }

    @abstractmethod
    def _before_last(self, A: HeatOperator, rows: Any) -> np.ndarray:
        """Return the block that ``A`` is applied to once more."""

    def _finish(self, last: np.ndarray, A: HeatOperator) -> np.ndarray:
        """Make an embedding of the last product, in place."""
        return last

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, row_ids: Any = None) -> _HeatEmbedding:
        """Embed the points of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Points; or a square matrix of distances (``metric="precomputed"``) or of affinities
            (``affinity="precomputed"``).
        y : ignored
        row_ids : array of int of shape (n_samples,), optional
            What the random numbers of each row depend on, those that choose epsilon included; the
            position of the row if left out. Rows with the same id in two data sets get the same
            random numbers, which makes the two embeddings comparable.

        Returns
        -------
        self
        """
        with fit_progress(self):
            return self._fit(X, row_ids)

    def _fit(self, X: Any, row_ids: Any) -> _HeatEmbedding:
        self._forget()
        X = self._check(X, reset=True)
        rows = check_row_ids(row_ids, X.shape[0])
        K = self._training_affinity(X, rows)
        del X  # the neighbours have it, in their order
        rows = rows[self.order_]
        warn_about_lonely_points(K, self.epsilon_)
        self.n_connected_components_ = count_components(K)
        warn_about_pieces(self.n_connected_components_)
        self.scaling_ = SCALINGS[self.normalization](K)
        A = heat_operator(K, self.scaling_)
        del K  # which a heat operator may have no use for
        self.before_last_ = self._before_last(A, rows)
        last = A @ self.before_last_
        warn_about_decay(A, self.before_last_, last, power=self.power, epsilon=self.epsilon_)
        self.embedding_ = np.empty_like(last)
        self.embedding_[self.order_] = self._finish(last, A)
        self.heat_operator_ = A
        return self

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
        check_is_fitted(self)
        X = self._check(X, reset=False)
        step = self._rows_at_a_time()
        starts = range(0, X.shape[0], step)
        return np.concatenate([self._transform_batch(X[i : i + step], i) for i in starts])

    def _rows_at_a_time(self) -> int:
        lists = self.affinity == "gaussian" and self.neighbors_.lists is not None
        return max(1, TRANSFORM_ENTRIES // (100 if lists else len(self.before_last_)))

    def _transform_batch(self, X: Any, first_row: int) -> np.ndarray:
        K = self._affinity_to_training(X, first_row)
        A = heat_rows(K, self.scaling_, self.heat_operator_)
        return self._finish(A @ self.before_last_, A)

    def _forget(self) -> None:
        """Drop an earlier fit, so that one that fails or is interrupted leaves no mixture."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    # --- from X to an affinity ------------------------------------------------------------

    def _check(self, X: Any, *, reset: bool) -> Any:
        X = check_numbers(self, X, reset=reset)
        dtype = X.dtype if reset else self.before_last_.dtype
        if self.affinity == "precomputed":
            check_idle_parameters(self)
            check_affinities(X)
            if reset:
                check_square(X, name="affinity='precomputed'")
                check_symmetric(X, name="affinity='precomputed'")
        else:
            check_scale(X, dtype=dtype, reset=reset)
            if self.metric == "precomputed":
                self._check_distances(X, reset=reset)
            elif not reset:
                X = stored_like(self.neighbors_.points, X)
        return X.astype(dtype, copy=False)

    def _check_distances(self, X: Any, *, reset: bool) -> None:
        if sparse.issparse(X) and self.n_neighbors not in (None, "auto"):
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

    def _training_affinity(self, X: Any, rows: np.ndarray) -> Any:
        self.epsilon_: Any = None
        self.order_ = np.arange(X.shape[0])
        if self.affinity == "precomputed":
            warn_about_zero_diagonal(X)
            return X
        if self.metric != "precomputed" and (np.diff(rows) < 0).any():
            # Who is near whom must not depend on the order in which the rows came.
            self.order_ = np.argsort(rows)
            X, rows = X[self.order_], rows[self.order_]
        self.neighbors_, d2 = resolve_engine(self.engine).neighbors(
            X,
            metric=self.metric,
            n_neighbors=self._n_neighbors(X),
            n_columns=self.n_components,
        )
        self.order_ = self.order_[self.neighbors_.order]
        self.epsilon_ = self._estimate(X, rows) if self.epsilon == "auto" else float(self.epsilon)
        return gaussian_affinity(d2, epsilon=self.epsilon_)

    def _n_neighbors(self, X: Any) -> int | None:
        few = self.metric == "precomputed" or X.shape[0] <= ALL_PAIRS_UP_TO
        automatic = None if few else 15
        return automatic if self.n_neighbors == "auto" else self.n_neighbors

    def _estimate(self, X: Any, rows: np.ndarray) -> float:
        """Estimate epsilon from all distances of some points.

        A graph cut to near neighbours has lost the far ones, without which the kernel sum levels
        off too early. The points are drawn by their ids: their order does not matter.
        """
        if self.metric != "precomputed":
            step = -(-X.shape[0] // EPSILON_POINTS)
            X, rows = X[::step], rows[::step]
        # Each is one of the points that distances are taken to, and so at distance 0 from one.
        n_drawn = min(1000, EPSILON_ENTRIES // X.shape[0], X.shape[0])
        lots = gaussian_block(rows, 1, seed=0)[:, 0]
        drawn = X[np.argpartition(lots, n_drawn - 1)[:n_drawn]]
        return estimate_epsilon(squared_distances(drawn, X, metric=self.metric)).epsilon

    def _affinity_to_training(self, X: Any, first_row: int) -> Any:
        if self.affinity == "precomputed":
            return X
        d2 = self.neighbors_.distances_to(X)
        warn_about_far_points(nearest_squares(d2), self.epsilon_, first_row=first_row)
        return gaussian_affinity_rows(d2, epsilon=self.epsilon_)

    # --- scikit-learn ---------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "heat_operator_")  # what a fit sets last: one that failed is none

    @property
    def _n_features_out(self) -> int:
        return self.before_last_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = "precomputed" in (self.metric, self.affinity)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class HeatSketch(_HeatEmbedding):
    r"""Embed points so that Euclidean distances estimate diffusion distances.

    .. math:: Y = \frac{1}{\sqrt{k}} A^p G, \qquad
              E |y_i - y_j|^2 = d_p(i, j)^2 = |(A^p)_i - (A^p)_j|^2

    ``A`` is the heat operator of the data, ``G`` a random block: the Gaussian process embedding
    of Gilbert and O'Neill (2024), Algorithms 4 and 5. There is no eigen-solver, so nothing can
    fail to converge, and the cost is known: ``power`` products with ``A``.

    Parameters
    ----------
    n_components : int, default=64
        Columns ``k`` of the sketch. Distances have a relative error of about
        ``1 / sqrt(2 k)``: 9 % at 64. Two columns make a poor picture.
    power : int, default=8
        Diffusion time ``p``: how many steps heat flows.
    epsilon : float or "auto", default="auto"
        Bandwidth of the Gaussian affinity ``exp(-d**2 / epsilon)``; see
        :func:`estimate_epsilon`.
    n_neighbors : int, "auto" or None, default="auto"
        Keep a pair of points only if one is among the ``n_neighbors`` nearest of the other,
        itself included. None keeps all pairs, as the paper does. "auto" does so up to 5000
        points, and keeps 15 neighbours beyond.
    metric : str or callable, default="euclidean"
        Distance: "euclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard", a
        function of two points, or "precomputed" if ``X`` holds distances.
    affinity : {"gaussian", "precomputed"}, default="gaussian"
        "precomputed" if ``X`` holds affinities, for instance the weights of a graph.
    normalization : {"symmetric", "bistochastic"}, default="symmetric"
        Algorithm 1 or Algorithm 2 of the paper.
    stationary : {"drop", "keep"}, default="drop"
        Whether the stationary direction of ``A`` is part of the embedding. "keep" is the paper
        to the letter; it adds a term that compares densities (symmetric) or a translation
        (bistochastic), and it is all that floating point can see when ``power`` is large.
    random_matrix : {"gaussian", "rademacher"}, default="gaussian"
        Algorithm 4 or Algorithm 5.
    random_state : int, RandomState instance or None, default=0
        Seed of ``G``. A fixed one, so that two fits are comparable unless you ask for more; None
        draws a seed from the operating system. NumPy's global state is never touched.
    engine : "local" or Engine, default="local"
        Where distances are computed.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    epsilon_ : float or None
        Bandwidth used; None for precomputed affinities.
    heat_operator_ : HeatOperator
        ``A``.
    scaling_ : Scaling
        Its normalization, with the number of sweeps and the residual.
    before_last_ : array of shape (n_samples, n_components)
        ``A**(p - 1) G`` without the stationary direction: what :meth:`transform` multiplies.
    stationary_coefficients_ : array of shape (n_components,)
        How much of the stationary direction each column of ``G`` holds.
    seed_ : int
        Seed used.
    n_connected_components_ : int
        Pieces into which the graph falls.
    neighbors_ : Neighbors
        The training points, and who is near them; not for precomputed affinities.
    order_ : array of shape (n_samples,)
        Which row of ``X`` each row of ``heat_operator_`` and ``before_last_`` belongs to: for
        large data near points come next to each other. ``embedding_`` is in the order of ``X``.
    n_features_in_ : int
        Number of features of ``X``.
    feature_names_in_ : array of str
        Their names, where ``X`` has any.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from heatsketch import HeatSketch
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HeatSketch(32, n_neighbors=15).fit(X[:1500])
    >>> model.embedding_.shape, model.transform(X[1500:]).shape
    ((1500, 32), (297, 32))
    >>> bool((model.transform(X[:1500]) == model.embedding_).all())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **_HeatEmbedding._parameter_constraints,
        "power": [Interval(Integral, 1, None, closed="left")],
        "stationary": [StrOptions({"drop", "keep"})],
        "random_matrix": [StrOptions(set(BLOCKS))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=64,
        *,
        power=8,
        epsilon="auto",
        n_neighbors="auto",
        metric="euclidean",
        affinity="gaussian",
        normalization="symmetric",
        stationary="drop",
        random_matrix="gaussian",
        random_state=0,
        engine="local",
    ):
        self.n_components = n_components
        self.power = power
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.affinity = affinity
        self.normalization = normalization
        self.stationary = stationary
        self.random_matrix = random_matrix
        self.random_state = random_state
        self.engine = engine

    def _before_last(self, A: HeatOperator, rows: Any) -> np.ndarray:
        self.seed_ = _seed(self.random_state)
        G = BLOCKS[self.random_matrix](rows, self.n_components, seed=self.seed_, dtype=A.dtype)
        self.stationary_coefficients_ = A.stationary_coefficients(G)
        before_last = diffuse(A, G, power=self.power - 1)
        return A.deflate(before_last, out=before_last)

    def _finish(self, last: np.ndarray, A: HeatOperator) -> np.ndarray:
        if self.stationary == "keep":
            last += A.stationary_part(self.stationary_coefficients_)
        last /= np.sqrt(last.dtype.type(last.shape[1]))
        return last


class DiffusionMap(_HeatEmbedding):
    r"""Embed points by the leading eigenvectors of the heat operator.

    .. math:: y_j = (\lambda_1^t (v_1)_j, \ldots, \lambda_k^t (v_k)_j)

    Coifman and Lafon's diffusion map (Algorithm 3 of the paper), with the same kernels,
    normalizations and extension to new points as :class:`HeatSketch`. The best choice in few
    dimensions, for pictures above all; blind to whatever its ``k`` eigenvectors leave out.

    Parameters
    ----------
    n_components : int, default=2
        Number ``k`` of eigenvectors, the stationary one not counted.
    power : float, default=1.0
        Diffusion time ``t``.
    epsilon, n_neighbors, metric, affinity, normalization, engine :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    eigenvalues_ : array of shape (n_components,)
        From the largest down.
    before_last_ : array of shape (n_samples, n_components)
        Eigenvectors times eigenvalues to the power ``t - 1``: what :meth:`transform` multiplies.
    epsilon_, heat_operator_, scaling_, n_connected_components_ :
        As for :class:`HeatSketch`.
    neighbors_, order_, n_features_in_, feature_names_in_ :
        As for :class:`HeatSketch`.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from heatsketch import DiffusionMap
    >>> X, position = make_swiss_roll(600, random_state=0)
    >>> DiffusionMap(2, n_neighbors=12, power=4).fit_transform(X).shape
    (600, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **_HeatEmbedding._parameter_constraints,
        "power": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components=2,
        *,
        power=1.0,
        epsilon="auto",
        n_neighbors="auto",
        metric="euclidean",
        affinity="gaussian",
        normalization="symmetric",
        engine="local",
    ):
        self.n_components = n_components
        self.power = power
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.affinity = affinity
        self.normalization = normalization
        self.engine = engine

    def _before_last(self, A: HeatOperator, rows: Any) -> np.ndarray:
        self.eigenvalues_, vectors = leading_eigenpairs(A, self.n_components)
        eigenvalue_powers(self.eigenvalues_, self.power)  # a refusal names the power as given
        # One power is left for the last product, since A v = lambda v.
        return vectors * eigenvalue_powers(self.eigenvalues_, self.power - 1)


def _seed(random_state: Any) -> int:
    if random_state is None:
        return secrets.randbits(64)
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
