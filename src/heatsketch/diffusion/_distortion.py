r"""Linear map to fewer dimensions that distorts distances least.

For a linear map :math:`y = P^T z` the squared stretch of a pair is

.. math:: s_{ij} = \frac{|P^T (z_i - z_j)|^2}{|z_i - z_j|^2}, \qquad
          \log L = \tfrac12 \log \max s_{ij} - \tfrac12 \log \min s_{ij}.

Only the worst pairs matter, and at the optimum hundreds of them are equally bad, so the objective
has no useful gradient. Minimized instead is a smooth upper bound of :math:`\log L`,

.. math:: f_q(P) = \frac{1}{2 q} \log \sum s_{ij}^q + \frac{1}{2 q} \log \sum s_{ij}^{-q}
          \le \log L + \frac{\log m}{q}

for :math:`m` pairs, with :math:`q` doubled every one or two rounds. Few pairs matter: each round
begins with a search for the worst pairs of the current map, and uses those found so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from heatsketch._core import kernels
from heatsketch._core.checks import check_finite, check_integer, plain_floats
from heatsketch._core.progress import steps
from heatsketch.diffusion._pair_search import (
    Pairs,
    PairSearch,
    PairTiles,
    Stretches,
    hardest,
    joined,
)
from heatsketch.exceptions import DtypeError, HeatSketchError

MOST_SCANNED = 50_000  # points up to which all pairs are scanned at the end
SCANNED_EACH_ROUND = 8000  # points up to which all pairs are scanned in each round
FEW_PAIRS = 130_000  # up to this number, the first round uses all pairs
FOUND_PAIRS = 20_000  # pairs that a round adds
WORKING_PAIRS = 60_000  # pairs that a round uses
FEWEST_ROUNDS = 7
MOST_ROUNDS = 12
GAIN = 0.005  # relative decrease of the logarithm in a round, below which iteration stops
DOUBLINGS = tuple(range(4, 4 + MOST_ROUNDS))  # of q in each round, if the first one has all pairs
# If it has the worst pairs only: these mislead a small q, and q grows only as most are found.
SLOW_DOUBLINGS = (7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12)
STEPS = 60  # of the optimizer in each round
SAMPLES = (250, 500, 2000)  # points on which starts are tried, compared, and the best improved
SMALL_DESCENT = (range(1, 5), 30)  # doublings of q, and steps at each
LARGER_DESCENT = (range(4, 7), STEPS)
SHARES = (0.0, 1.0, 0.5, 1.0)  # random share of each start
MEMORY = 20  # corrections that L-BFGS keeps
NEGLIGIBLE = 1e-12  # a term of the sums, relative to the largest
TINY = 1e-200  # stretch assigned to a pair with equal images
SMALLEST_AXIS = 1e-4  # of the largest; smaller axes are ignored
ROWS_AT_A_TIME = 10_000


class Distortion(NamedTuple):
    r"""Largest distortion of distances by an embedding, :math:`\log L`.

    Attributes
    ----------
    log_distortion : float
        Logarithm of the largest stretch over the least.
    least, largest : float
        Extreme stretches: distance in the embedding over distance between the points.
    n_pairs : int
        Number of pairs examined; in a search, pairs may be counted more than once.
    exact : bool
        Whether these are all pairs of different points. If not, ``log_distortion`` is a lower
        bound from a search for the worst pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import certified_distortion
    >>> Z = np.random.default_rng(0).normal(size=(40, 3))
    >>> found = certified_distortion(2 * Z, Z)
    >>> round(found.log_distortion, 6), found.n_pairs, found.exact
    (0.0, 780, True)
    """

    log_distortion: float
    least: float
    largest: float
    n_pairs: int
    exact: bool


class DistortionMap(NamedTuple):
    r"""Linear map :math:`y = P^T z` and its largest distortion of distances.

    Attributes
    ----------
    components : array of shape (n_features, n_components)
        The map: ``Z @ components`` is the embedding.
    log_distortion : float
        Logarithm of the largest stretch over the least.
    n_pairs : int
        Number of pairs examined; in a search, pairs may be counted more than once.
    exact : bool
        Whether these are all pairs of different points.
    converged : bool
        Whether the last round brought no significant improvement.
    history : array
        ``log_distortion`` of the start, and after each round.

    Examples
    --------
    A plane in three dimensions is flat:

    >>> import numpy as np
    >>> from heatsketch.diffusion import least_distortion_map
    >>> Z = np.random.default_rng(0).normal(size=(40, 2)) @ np.array([[1.0, 2, 3], [3, 1, 0]])
    >>> found = least_distortion_map(Z, 2)
    >>> found.components.shape, bool(found.log_distortion < 1e-2)
    ((3, 2), True)
    """

    components: np.ndarray
    log_distortion: float
    n_pairs: int
    exact: bool
    converged: bool
    history: np.ndarray


def least_distortion_map(Z: Any, n_components: int, *, seed: int = 0) -> DistortionMap:
    r"""Find the linear map with the least distortion over all pairs.

    .. math:: \min_P \; \log \max_{i \ne j} \frac{|P^T (z_i - z_j)|}{|z_i - z_j|}
              - \log \min_{i \ne j} \frac{|P^T (z_i - z_j)|}{|z_i - z_j|}

    The problem is not convex: several starts are tried on a sample, and the result is a good
    local minimum. Pairs of points that are equal, or different by rounding only, do not influence
    the map; its distortion is certified over all pairs of different points.

    Parameters
    ----------
    Z : array of shape (n, w)
        High-dimensional coordinates, whose distances are to be preserved.
    n_components : int
        Dimension of the image, at most ``w``.
    seed : int, default=0
        Seed of the starts, and of the samples in which the worst pairs are searched.

    Returns
    -------
    DistortionMap
        It is scaled such that the extreme stretches are reciprocal: no distance changes by more
        than a factor ``exp(log_distortion / 2)``. Its components are the principal axes of the
        image.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._distortion import certified_distortion, least_distortion_map
    >>> Z = np.random.default_rng(0).normal(size=(100, 10))
    >>> found = least_distortion_map(Z, 5)
    >>> plain = certified_distortion(Z[:, :5], Z)
    >>> found.log_distortion < 0.6 * plain.log_distortion
    True
    """
    Z = _floats(Z, "Z")
    n_components = check_integer("n_components", n_components, most=Z.shape[1])
    ground, finder = _surveyed(Z), _PairFinder(Z, seed)
    n_axes = ground.axes.shape[1]
    if n_components >= n_axes:
        P, history, converged = np.eye(n_axes, n_components), np.empty(0), True
    else:
        P, history, converged = _descent(ground, finder, _best_start(ground, n_components, seed))
    certificate = finder.certificate(ground.images(P), partial(ground.stretches, P))
    components = _in_shape(ground, P, certificate)
    value, n_pairs, exact = certificate.log_distortion, certificate.n_pairs, certificate.exact
    return DistortionMap(components, value, n_pairs, exact, converged, history)


def certified_distortion(Y: Any, Z: Any, *, seed: int = 0) -> Distortion:
    r"""Distortion of an embedding ``Y`` of points ``Z``, exact or a lower bound.

    .. math:: \log L = \log \max_{i \ne j} \frac{|y_i - y_j|}{|z_i - z_j|}
              - \log \min_{i \ne j} \frac{|y_i - y_j|}{|z_i - z_j|}

    Up to 50,000 points all pairs are examined. Beyond that, the worst pairs are searched, and the
    result is a lower bound of the distortion over all pairs.

    Parameters
    ----------
    Y : array of shape (n, k)
    Z : array of shape (n, w)
    seed : int, default=0
        Seed of the search.

    Returns
    -------
    Distortion

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._distortion import certified_distortion
    >>> Z = np.random.default_rng(0).normal(size=(100, 10))
    >>> found = certified_distortion(Z * 2, Z)
    >>> round(found.log_distortion, 9), round(found.largest, 9), found.n_pairs, found.exact
    (0.0, 2.0, 4950, True)
    """
    Y, Z = _floats(Y, "Y"), _floats(Z, "Z")
    if len(Y) != len(Z):
        raise HeatSketchError(
            f"Y has {len(Y)} rows and Z has {len(Z)}; give the embedding of each point of Z."
        )
    found = _PairFinder(Z, seed).certificate(Y, lambda pairs: pairs.stretches(Y))
    least, largest = float(np.sqrt(found.low)), float(np.sqrt(found.high))
    return Distortion(found.log_distortion, least, largest, found.n_pairs, found.exact)


class _PairFinder:
    """Finds the worst pairs of a map by a scan of all pairs, or by a search."""

    def __init__(self, Z: np.ndarray, seed: int = 0) -> None:
        self.pairs, self.n_points = PairTiles(Z), len(Z)
        self.seed = check_integer("seed", seed, least=0)
        self.n_each = len(Z) if _has_few_pairs(Z) else max(1, FOUND_PAIRS // (2 * len(Z)))

    @cached_property
    def search(self) -> PairSearch:
        return PairSearch.arrange(self.pairs.points)

    def __call__(self, Y: np.ndarray, *, n_round: int = 0) -> Stretches:
        most = MOST_SCANNED if n_round >= FEWEST_ROUNDS else SCANNED_EACH_ROUND
        if self.n_points <= most:
            return self.pairs.worst(Y, n_each=self.n_each)
        return self.search.worst(Y, n_pairs=FOUND_PAIRS, seed=self.seed + n_round)

    def certificate(self, Y: np.ndarray, of_close: Callable[[Pairs], np.ndarray]) -> Stretches:
        """Examine every pair of different points, or search with new random numbers."""
        if self.n_points <= MOST_SCANNED:
            # The rounds leave out pairs as close as rounding; a certificate must not.
            found = PairTiles(self.pairs.points, of_close=of_close).worst(Y)
        else:
            found = self(Y, n_round=MOST_ROUNDS + 1)
        if not found.n_pairs:
            raise HeatSketchError(
                f"Z has {self.n_points} points that all lie at one place, so no distortion is "
                "defined; give at least two different points."
            )
        return found


# --- the coordinates of maps ----------------------------------------------------------------


class _Ground(NamedTuple):
    """Points and their principal axes, the coordinates of the optimization."""

    points: np.ndarray
    center: np.ndarray
    axes: np.ndarray

    def images(self, P: np.ndarray) -> np.ndarray:
        components, dtype = self.axes @ P, self.points.dtype
        return self.points @ components.astype(dtype) - (self.center @ components).astype(dtype)

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        return (self.points[rows] - self.center) @ self.axes

    def differences(self, pairs: Pairs) -> np.ndarray:
        """Return the unit vectors between the ends of some pairs."""
        unit = self.points[pairs.first] - self.points[pairs.second].astype(np.float64)
        unit /= np.sqrt(pairs.squares)[:, np.newaxis]
        return unit @ self.axes

    def stretches(self, P: np.ndarray, pairs: Pairs) -> np.ndarray:
        """Return squared stretches of pairs too close to compare their images."""
        starts = range(0, len(pairs), ROWS_AT_A_TIME)
        some = [self.differences(pairs[i : i + ROWS_AT_A_TIME]) @ P for i in starts]
        return np.concatenate([np.einsum("ij,ij->i", unit, unit) for unit in some] or [np.empty(0)])


def _surveyed(Z: np.ndarray) -> _Ground:
    center = Z.mean(axis=0, dtype=np.float64)
    if Z.shape[1] > len(Z):
        _, sizes, axes = np.linalg.svd(Z - center, full_matrices=False)
        return _Ground(Z, center, axes[sizes > SMALLEST_AXIS * sizes[0]].T)
    gram = np.zeros((Z.shape[1], Z.shape[1]))
    for start in range(0, len(Z), ROWS_AT_A_TIME):
        some = Z[start : start + ROWS_AT_A_TIME] - center
        gram += some.T @ some
    squares, axes = np.linalg.eigh(gram)
    return _Ground(Z, center, axes[:, squares > SMALLEST_AXIS**2 * squares[-1]][:, ::-1])


def _in_shape(ground: _Ground, P: np.ndarray, found: Stretches) -> np.ndarray:
    """Scale a map to stretches around one, and rotate it to principal axes."""
    Y = ground.images(P).astype(np.float64)
    _, turn = np.linalg.eigh(Y.T @ Y)
    # If different points have equal images, the scale is that of the largest stretch.
    scale = (found.low * found.high) ** 0.25 or found.high**0.5
    components = ground.axes @ P @ turn[:, ::-1] / scale
    places = np.abs(components).argmax(axis=0)[np.newaxis]
    return components * np.where(np.take_along_axis(components, places, axis=0) < 0, -1, 1)


# --- the descent ----------------------------------------------------------------------------


def _best_start(ground: _Ground, n_components: int, seed: int) -> np.ndarray:
    """Optimize several starts on a sample, and select the best on a larger one.

    The starts are the leading axes, random maps and mixtures of both. A map can be good on a sample
    by folding the points between the sampled ones onto each other. Such a map is bad on other
    points, and no later step unfolds it.
    """
    rng = np.random.default_rng(seed)
    small, middle, large = (_sampled(ground, size, rng) for size in SAMPLES)
    maps = _starts(ground.axes.shape[1], n_components, rng)
    maps = _improved(small, maps, *SMALL_DESCENT)
    if len(middle.points) < len(ground.points):
        maps = _improved(middle, maps, *LARGER_DESCENT)
    judge = _PairFinder(large.points)
    best = min(maps, key=lambda P: judge(large.images(P)).log_distortion)
    if len(large.points) < len(ground.points):
        (best,) = _improved(large, [best], *LARGER_DESCENT)
    return best


def _starts(n_axes: int, n_components: int, rng: np.random.Generator) -> list[np.ndarray]:
    shape = n_axes, n_components
    randoms = [rng.standard_normal(shape) / np.sqrt(n_axes) for _ in SHARES]
    return [
        (1 - share) * np.eye(*shape) + share * random
        for share, random in zip(SHARES, randoms, strict=True)
    ]


def _improved(
    sample: _Ground, maps: list[np.ndarray], doublings: range, n_steps: int
) -> list[np.ndarray]:
    finder = _PairFinder(sample.points)
    return [list(_rounds(sample, finder, P, doublings, n_steps))[-1].P for P in maps]


def _sampled(ground: _Ground, size: int, rng: np.random.Generator) -> _Ground:
    chosen = np.sort(rng.permutation(len(ground.points))[:size])
    return ground._replace(points=ground.points[chosen])


class _Round(NamedTuple):
    """A map and its worst pairs."""

    stretches: Stretches
    P: np.ndarray

    @property
    def badness(self) -> float:
        return self.stretches.log_distortion


def _descent(
    ground: _Ground, finder: _PairFinder, P: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the best map, its distortion after each round, and if it converged."""
    doublings = DOUBLINGS if _has_few_pairs(ground.points) else SLOW_DOUBLINGS
    done = steps("near isometry", len(doublings) + 1)
    found: list[_Round] = []
    converged = False
    for last in _rounds(ground, finder, P, doublings, STEPS):
        done()
        # A search gives a lower bound, which is not comparable with the result of a scan.
        alike = [one.badness for one in found if one.stretches.exact == last.stretches.exact]
        found.append(last)
        converged = len(found) > FEWEST_ROUNDS and last.badness >= (1 - GAIN) * min(
            alike, default=np.inf
        )
        if converged:
            break
    best = min(found, key=lambda one: (not one.stretches.exact, one.badness))
    return best.P, np.array([one.badness for one in found]), converged


def _rounds(
    ground: _Ground, finder: _PairFinder, P: np.ndarray, doublings: Iterable[int], n_steps: int
) -> Iterator[_Round]:
    """Yield the initial map, and then the map after each round."""
    Y = ground.images(P)
    found = finder(Y, n_round=0)
    yield _Round(found, P)
    pairs = found.pairs
    for n_round, exponent in enumerate(doublings, start=1):
        P = _descended(ground, pairs, P, exponent, n_steps)
        Y = ground.images(P)
        found = finder(Y, n_round=n_round)
        yield _Round(found, P)
        pairs = joined([found, found._replace(pairs=pairs)]).pairs
        pairs = hardest(Y, pairs, WORKING_PAIRS)


def _has_few_pairs(Z: np.ndarray) -> bool:
    return len(Z) * (len(Z) - 1) // 2 <= FEW_PAIRS


def _descended(
    ground: _Ground, pairs: Pairs, P: np.ndarray, doublings: int, n_steps: int
) -> np.ndarray:
    """Minimize the smooth distortion of some pairs."""
    X, pairs = _ends(ground, pairs)
    smooth = partial(_smooth_distortion, X=X, pairs=pairs, doublings=doublings, shape=P.shape)
    options = {"maxiter": n_steps, "maxcor": MEMORY, "ftol": 1e-5, "gtol": 0}
    start = P.ravel() / np.linalg.norm(P)  # the objective is scale-invariant
    found = minimize(smooth, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(P.shape)


def _ends(ground: _Ground, pairs: Pairs) -> tuple[np.ndarray, Pairs]:
    """Return the end points of some pairs, and the pairs as indices of these.

    If most end points belong to one pair only, each pair is replaced by its difference and the
    origin. That takes less memory, and is accurate enough in single precision.
    """
    rows, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    if 2 * len(rows) <= len(pairs):
        first, second = np.split(places.astype(np.int32), 2)
        return ground.coordinates(rows), Pairs(first, second, pairs.squares)
    between = ground.differences(pairs).astype(np.float32)
    X = np.vstack([between, np.zeros_like(between[:1])])
    first = np.arange(len(pairs), dtype=np.int32)
    return X, Pairs(first, np.full_like(first, len(pairs)), np.ones(len(pairs)))


def _smooth_distortion(
    flat: np.ndarray, *, X: np.ndarray, pairs: Pairs, doublings: int, shape: tuple[int, int]
) -> tuple[float, np.ndarray]:
    """Return the smooth distortion and its gradient, for ``q = 2**doublings``."""
    Y = X @ flat.reshape(shape).astype(X.dtype)
    stretches = np.maximum(pairs.stretches(Y), TINY)
    up, down = np.empty_like(stretches), np.empty_like(stretches)
    negligible = NEGLIGIBLE ** (0.5**doublings)
    sum_up, sum_down = kernels.extreme_powers(stretches, doublings, negligible, up, down)
    # Both sums are of ratios to the worst pair, so that no power overflows.
    value = np.log(stretches.max() / stretches.min()) + np.log(sum_up * sum_down) / 2**doublings
    weights = (up / sum_up - down / sum_down) / (stretches * pairs.squares)
    pulls = np.zeros_like(Y)
    kernels.add_pulls(Y, pairs.first, pairs.second, weights, pulls)
    return value / 2, (X.T @ pulls).ravel().astype(np.float64)


# --- errors ---------------------------------------------------------------------------------


def _floats(Z: Any, name: str) -> np.ndarray:
    found = plain_floats(Z, name)
    if sparse.issparse(found):
        raise DtypeError(
            f"{name} is a sparse matrix of shape {found.shape}; pass {name}.toarray() if it fits "
            "in memory."
        )
    if found.ndim != 2 or len(found) < 2:
        raise HeatSketchError(
            f"{name} has shape {found.shape}; give a row of coordinates for each of at least 2 "
            "points."
        )
    check_finite(found, name=name)
    return np.ascontiguousarray(found)
