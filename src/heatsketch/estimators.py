"""The estimators: what is made from the heat operator of some points."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from heatsketch.confidence import DistanceEstimate
from heatsketch.distances import DiffusionNeighbors, diffusion_distances, diffusion_neighbors
from heatsketch.drift import Drift, check_comparable, drift
from heatsketch.engines import resolve_engine
from heatsketch.exceptions import DtypeError, HeatSketchError, SpectrumError
from heatsketch.heat_embedding import HeatEmbedding
from heatsketch.heat_operator import HeatOperator
from heatsketch.heat_trace import FEWEST_COLUMNS, diffuse_until
from heatsketch.multiscale import multiscale_sketch
from heatsketch.random_block import gaussian_block, rademacher_block
from heatsketch.row_blocks import in_memory, is_lazy, over_rows
from heatsketch.sketch import diffuse, diffuse_path
from heatsketch.spectral import (
    DiffusionCoordinates,
    eigenvalue_powers,
    leading_eigenpairs,
    ritz_pairs,
)
from heatsketch.validation import check_whole, seed_of

__all__ = ["DiffusionMap", "HeatSketch"]

BLOCKS = {"gaussian": gaussian_block, "rademacher": rademacher_block}

# What power="auto" chooses; benchmarks/choices.py tells why. Up to the largest heat flows step by
# step, so that a power given and the same one chosen are the same bits.
DIRECTIONS_PER_COLUMN = 1.75
SMALLEST_POWER, LARGEST_POWER = 2, 128


class HeatSketch(HeatEmbedding):
    r"""Embed points so that Euclidean distances estimate diffusion distances.

    .. math:: Y = \frac{1}{\sqrt{k}} A^p G, \qquad
              E |y_i - y_j|^2 = d_p(i, j)^2 = |(A^p)_i - (A^p)_j|^2

    ``A`` is the heat operator of the data, ``G`` a random block: the Gaussian process embedding
    of Gilbert and O'Neill (2024), Algorithms 4 and 5. There is no eigen-solver: with the default
    normalization nothing has to converge, and the cost is known: ``power`` products with ``A``.

    Parameters
    ----------
    n_components : int, default=64
        Columns ``k`` of the sketch. Distances have a relative error of about
        ``1 / sqrt(2 k)``: 9 % at 64. Two columns make a poor picture.
    power : int, float or "auto", default="auto"
        Diffusion time ``p``: how many steps heat flows. "auto" is the first power, from 2 to 128,
        at which the heat kernel extends in no more directions than 1.75 for each column of the
        sketch; see :func:`heat_trace`. A power that is not whole needs a kernel of all pairs, and
        ``epsilon`` not "local".
    epsilon : float, "auto" or "local", default="local"
        Bandwidth of the Gaussian affinity ``exp(-d**2 / epsilon)``. "local" is
        ``sigma_i * sigma_j`` for each pair, with ``sigma`` the distance to the seventh neighbour;
        "auto" is one number for all, by :func:`estimate_epsilon`.
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
    weighting : {"symmetric", "random_walk"}, default="symmetric"
        Which diffusion distance: that of the paper, between rows of ``A**p``, or that of Coifman
        and Lafon, between distributions of a random walk, in which points of low density count
        for more. The same for the bistochastic normalization.
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
    power_ : int or float
        Power used.
    heat_trace_ : HeatTrace
        The curve that the power was read from, if it was "auto".
    epsilon_ : float, array of shape (n_samples,) or None
        Bandwidth used; the scales ``sigma`` if it was "local"; None for precomputed affinities,
        and for scales in a model that was saved without its training data.
    epsilon_estimate_ : EpsilonEstimate
        What it was read from, if it was "auto".
    heat_operator_ : HeatOperator
        ``A``; None in a model that was saved without its training data.
    scaling_ : Scaling
        Its normalization, with the number of sweeps and the residual; like ``before_last_`` and
        ``neighbors_``, no part of a model that was saved without its training data.
    before_last_ : array of shape (n_samples, n_components)
        ``A**(p - 1) G`` without the stationary direction: what :meth:`transform` multiplies.
    stationary_coefficients_ : array of shape (n_components,)
        How much of the stationary direction each column of ``G`` holds.
    seed_ : int
        Seed used.
    parameters_ : dict
        All parameters but ``engine``, as they were in :meth:`fit`; other methods go by them.
    row_ids_ : array of int of shape (n_samples,)
        Row ids, in the order of ``heat_operator_``.
    stationary_length_ : float
        Length of the stationary direction of ``heat_operator_``.
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
        **HeatEmbedding._parameter_constraints,
        "power": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
        "stationary": [StrOptions({"drop", "keep"})],
        "random_matrix": [StrOptions(set(BLOCKS))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components=64,
        *,
        power="auto",
        epsilon="local",
        n_neighbors="auto",
        metric="euclidean",
        affinity="gaussian",
        normalization="symmetric",
        weighting="symmetric",
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
        self.weighting = weighting
        self.stationary = stationary
        self.random_matrix = random_matrix
        self.random_state = random_state
        self.engine = engine

    def grow(self, n_components: int) -> Self:
        """Add columns to the sketch: what a fit with so many would have given, bit for bit.

        The graph, which takes most of the time of a fit, is not searched again. Nor is the power
        chosen again, if it was "auto": distances become more accurate, not others.

        Parameters
        ----------
        n_components : int
            Columns in all, not less than there are.

        Returns
        -------
        self

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
        grown = self._as_fitted()._with(n_components=check_whole("n_components", n_components))
        A = grown._training_operator("grow")
        if grown.n_components < self.embedding_.shape[1]:
            raise HeatSketchError(
                f"n_components={n_components} is less than the {self.embedding_.shape[1]} that "
                "there are; take the first columns of embedding_, or fit again."
            )
        with resolve_engine(self.engine).working() as engine:
            grown._embed(A, engine)
        self.n_components = grown.n_components
        return self._become(grown)

    def path(self, powers: Iterable[int]) -> list[np.ndarray]:
        """Embeddings of the training points at many powers, from one pass.

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
        A, G = model._operator_and_block("path")
        given = powers if isinstance(powers, Iterable) else [powers]
        whole = [check_whole("powers", power, least=0) for power in given]
        blocks = diffuse_path(A, G, powers=whole)
        return [self._in_given_order(model._finish(block.copy(), A)) for block in blocks]

    def multiscale(self) -> np.ndarray:
        r"""Embedding of the training points by all diffusion times together.

        .. math:: Y = \frac{1}{\sqrt{k}} \sum_{p \ge 1} \tilde A^p G

        Returns
        -------
        array of shape (n_samples, n_components)
            See :func:`multiscale_sketch`.
        """
        model = self._as_fitted()
        A, G = model._operator_and_block("multiscale")
        if self.n_connected_components_ > 1:
            raise SpectrumError(
                f"n_connected_components_={self.n_connected_components_}: heat never flows between "
                "pieces, and differences add up for ever; use a larger n_neighbors or epsilon, or "
                "embed the pieces one by one."
            )
        return self._in_given_order(model._weighted(multiscale_sketch(A, G), A))

    def pseudotime(self, root: int, *, confidence: float = 0.95) -> DistanceEstimate:
        """Diffusion pseudotime: how far all training points are from one, at all times together.

        Parameters
        ----------
        root : int
            A row of ``X``.
        confidence : float, default=0.95

        Returns
        -------
        DistanceEstimate
            ``distance``, ``low`` and ``high``, arrays of shape (n_samples,). Divide by the largest
            for values up to one.
        """
        model = self._as_fitted()
        n_rows = len(model.embedding_)
        root = check_whole("root", root, least=0, most=n_rows - 1)
        pairs = np.column_stack([np.full(n_rows, root), np.arange(n_rows)])
        return diffusion_distances(model.multiscale(), pairs, **model._sure(confidence))

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
        """
        sure = self._as_fitted()._sure(confidence)
        return diffusion_distances(self.embedding_, pairs, simultaneous=simultaneous, **sure)

    def diffusion_neighbors(
        self, rows: Any, *, n_neighbors: int, confidence: float = 0.95
    ) -> DiffusionNeighbors:
        """Nearest training points of some, with the confidence that their order is right.

        Parameters
        ----------
        rows : array of int of shape (m,)
            Rows of ``X``.
        n_neighbors, confidence :
            As for :func:`diffusion_neighbors`.

        Returns
        -------
        DiffusionNeighbors
        """
        sure = self._as_fitted()._sure(confidence)
        return diffusion_neighbors(self.embedding_, rows, n_neighbors=n_neighbors, **sure)

    def diffusion_map(self, n_components: int = 2) -> DiffusionCoordinates:
        """Diffusion map of the training points, out of the same sketch: the one for pictures.

        Parameters
        ----------
        n_components : int, default=2
            At most as many as the sketch has columns; with some to spare it is faster.

        Returns
        -------
        DiffusionCoordinates
            ``coordinates``, ``eigenvalues`` and ``residuals``.
        """
        model = self._as_fitted()
        A = model._training_operator("diffusion_map")
        most = min(self.before_last_.shape[1], A.shape[0] - 1)
        n_components = check_whole("n_components", n_components, most=most)
        values, vectors, residuals = ritz_pairs(A, self.before_last_, n_components)
        coordinates = model._weighted(vectors * eigenvalue_powers(values, self.power_), A)
        return DiffusionCoordinates(self._in_given_order(coordinates), values, residuals)

    def drift(self, other: HeatSketch, *, confidence: float = 0.95) -> Drift:
        """Compare with another sketch: how far the geometry moved, and which rows did.

        Parameters
        ----------
        other : HeatSketch
            Fitted with the same seed, random matrix, power and number of components, to rows of
            which some have the same ids.
        confidence : float, default=0.95

        Returns
        -------
        Drift
            See :func:`drift`.
        """
        if not isinstance(other, HeatSketch):
            raise DtypeError(f"other is a {type(other).__name__}; give a fitted HeatSketch.")
        model, other = self._as_fitted(), other._as_fitted()
        check_comparable(model, other)
        return drift(
            model.embedding_,
            other.embedding_,
            ids=model._in_given_order(model.row_ids_),
            other_ids=other._in_given_order(other.row_ids_),
            **model._sure(confidence),
        )

    def _sure(self, confidence: float) -> dict[str, Any]:
        """Return what intervals depend on."""
        return {"confidence": confidence, "random_matrix": self.random_matrix}

    # --- the sketch itself ----------------------------------------------------------------

    def _before_last(self, A: HeatOperator) -> np.ndarray:
        if not hasattr(self, "seed_"):  # which a sketch that grows has, and its power
            self.seed_ = seed_of(self.random_state)
        G = self._block(A, self.n_components)
        self.stationary_coefficients_ = in_memory(A.stationary_coefficients(G))
        power = getattr(self, "power_", self.power)
        if power == "auto":
            before_last = self._until_few_directions(A, G)
        else:
            self.power_ = int(power) if isinstance(power, Integral) else float(power)
            before_last = self._before_power(A, G)
        return A.deflate(before_last, out=before_last)

    def _before_power(self, A: HeatOperator, G: np.ndarray) -> np.ndarray:
        before = self.power_ - 1
        try:
            return diffuse(A, G, power=before)
        except SpectrumError as error:
            cause = f"power={self.power_} is one step after power={before}, and {error}"
            raise SpectrumError(cause) from error

    def _until_few_directions(self, A: HeatOperator, G: np.ndarray) -> np.ndarray:
        """Choose the power, and return the block that is one step from it."""
        # A few columns do not tell how many directions there are, but they are the first of more.
        few = self.n_components < FEWEST_COLUMNS
        block = self._block(A, FEWEST_COLUMNS) if few else G
        options = {"smallest": SMALLEST_POWER, "largest": LARGEST_POWER}
        directions = DIRECTIONS_PER_COLUMN * self.n_components
        before_last, self.heat_trace_ = diffuse_until(A, block, directions=directions, **options)
        self.power_ = int(self.heat_trace_.powers[-1])
        return diffuse(A, G, power=self.power_ - 1) if few else before_last

    def _finish(self, last: np.ndarray, A: HeatOperator) -> np.ndarray:
        if self.stationary == "keep":
            last += A.stationary_part(self.stationary_coefficients_)
        last /= np.sqrt(last.dtype.type(last.shape[1]))
        return super()._finish(last, A)

    def _block(self, A: HeatOperator, k: int) -> np.ndarray:
        options: dict[str, Any] = {"n_columns": k, "seed": self.seed_, "dtype": A.dtype}
        return over_rows(partial(BLOCKS[self.random_matrix], **options), self.row_ids_, k)

    def _operator_and_block(self, task: str) -> tuple[HeatOperator, np.ndarray]:
        A = self._training_operator(task)
        return A, self._block(A, self.n_components)


class DiffusionMap(HeatEmbedding):
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
    epsilon, n_neighbors, metric, affinity, normalization, weighting, engine :
        As for :class:`HeatSketch`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The embedding of the training points.
    eigenvalues_ : array of shape (n_components,)
        From the largest down.
    before_last_ : array of shape (n_samples, n_components)
        Eigenvectors times eigenvalues to the power ``t - 1``: what :meth:`transform` multiplies.
    epsilon_, epsilon_estimate_, heat_operator_, scaling_, n_connected_components_ :
        As for :class:`HeatSketch`.
    neighbors_, order_, stationary_length_, n_features_in_, feature_names_in_ :
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
        **HeatEmbedding._parameter_constraints,
        "power": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components=2,
        *,
        power=1.0,
        epsilon="local",
        n_neighbors="auto",
        metric="euclidean",
        affinity="gaussian",
        normalization="symmetric",
        weighting="symmetric",
        engine="local",
    ):
        self.n_components = n_components
        self.power = power
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.affinity = affinity
        self.normalization = normalization
        self.weighting = weighting
        self.engine = engine

    def _before_last(self, A: HeatOperator) -> np.ndarray:
        if is_lazy(A.stationary):
            raise HeatSketchError(
                f"engine={self.engine!r} keeps no eigenvectors; use HeatSketch, or engine='local'."
            )
        self.eigenvalues_, vectors = leading_eigenpairs(A, self.n_components)
        eigenvalue_powers(self.eigenvalues_, self.power)  # a refusal names the power as given
        # One power is left for the last product, since A v = lambda v.
        return vectors * eigenvalue_powers(self.eigenvalues_, self.power - 1)
