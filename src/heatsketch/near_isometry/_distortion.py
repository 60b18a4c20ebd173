r"""Linear map to fewer dimensions that distorts distances least.

For a linear map :math:`y = P^T z` the squared stretch of a pair is

.. math:: s_{ij} = \frac{|P^T (z_i - z_j)|^2}{|z_i - z_j|^2}, \qquad
          \log L = \tfrac12 \log \max s_{ij} - \tfrac12 \log \min s_{ij}.

The objective depends on the worst pairs only, and at the optimum hundreds of them are equally bad,
so its gradient is of no use. Instead, a smooth upper bound of :math:`\log L` is minimized,

.. math:: f_q(P) = \frac{1}{2 q} \log \sum s_{ij}^q + \frac{1}{2 q} \log \sum s_{ij}^{-q}
          \le \log L + \frac{\log m}{q}

for :math:`m` pairs, with :math:`q` doubled every one or two rounds. It depends mostly on a few
pairs: each round begins with a search for the worst pairs of the current map, and uses the worst
pairs of all rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from heatsketch._core import kernels
from heatsketch._core.checks import check_finite, check_integer, plain_floats
from heatsketch._core.progress import steps
from heatsketch.exceptions import DtypeError, HeatSketchError
from heatsketch.near_isometry._pairs import (
    Pairs,
    Stretches,
    compare_pairs,
    hardest,
    joined,
    near_pairs,
    scan_pairs,
    united,
)

MOST_CERTIFIED = 50_000  # points up to which all pairs are scanned at the end
MOST_SCANNED = 8000  # points up to which all pairs are scanned in each round
FEW_PAIRS = 130_000  # number of pairs up to which the first round uses all pairs
NEW_PAIRS = 20_000  # pairs that each round adds
WORKING_PAIRS = 60_000  # pairs that each round uses
FEWEST_ROUNDS = 7
MOST_ROUNDS = 12
GAIN = 0.005  # stop if the logarithm decreases by a smaller share in a round
# In each round q is 2**doublings. With all pairs in the first round, q starts small.
DOUBLINGS = tuple(range(4, 4 + MOST_ROUNDS))
# With the worst pairs only, a small q would depend too much on which pairs are missing. So q starts
# larger, and grows slowly while the missing pairs are added.
SLOW_DOUBLINGS = (7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12)
STEPS = 60  # of the optimizer in each round
# Sizes of samples: to optimize all initial maps, to optimize them again, and to compare them.
SAMPLES = (250, 500, 2000)
SMALL_DESCENT = (range(1, 5), 30)  # doublings, and steps of the optimizer at each of them
LARGER_DESCENT = (range(4, 7), STEPS)
SHARES = (0.0, 1.0, 0.5, 1.0)  # random share of each initial map
MEMORY = 20  # corrections that L-BFGS stores
TINY = 1e-200  # squared stretch of a pair with equal images
SMALLEST_AXIS = 1e-4  # smaller axes, relative to the largest, are ignored


class Distortion(NamedTuple):
    r"""Largest distortion of distances by an embedding, :math:`\log L`.

    Attributes
    ----------
    log_distortion : float
        Logarithm of the ratio of the largest to the smallest stretch.
    least, largest : float
        The smallest and the largest stretch: distance in the embedding divided by distance between
        the points.
    n_pairs : int
        Number of pairs examined; a search may count a pair more than once.
    exact : bool
        Whether these are all pairs of different points. If not, ``log_distortion`` is a lower
        bound from a search for the worst pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.near_isometry import certified_distortion
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
        Logarithm of the ratio of the largest to the smallest stretch.
    n_pairs : int
        Number of pairs examined; a search may count a pair more than once.
    exact : bool
        Whether these are all pairs of different points.
    converged : bool
        Whether the last round was no significant improvement.
    history : array
        ``log_distortion`` of the start, and after each round.

    Examples
    --------
    A plane in three dimensions is flat:

    >>> import numpy as np
    >>> from heatsketch.near_isometry import least_distortion_map
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

    The problem is not convex: several initial maps are optimized on a sample, and the result is a
    good local minimum. Points that are equal up to rounding are not compared.

    Parameters
    ----------
    Z : array of shape (n, w)
        High-dimensional coordinates, whose distances should be preserved.
    n_components : int
        Dimension of the image, at most ``w``.
    seed : int, default=0
        Seed of the initial maps, and of the samples in which the worst pairs are searched.

    Returns
    -------
    DistortionMap
        It is scaled so that the product of the extreme stretches is one: distances change by at
        most a factor of ``exp(log_distortion / 2)``. Its components are the principal axes of the
        image.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.near_isometry import certified_distortion, least_distortion_map
    >>> Z = np.random.default_rng(0).normal(size=(100, 10))
    >>> found = least_distortion_map(Z, 5)
    >>> plain = certified_distortion(Z[:, :5], Z)
    >>> found.log_distortion < 0.6 * plain.log_distortion
    True
    """
    Z = _floats(Z, "Z")
    n_components = check_integer("n_components", n_components, most=Z.shape[1])
    rng = _generator(seed)
    center, axes = _principal_axes(Z)
    points = _Points(Z, (Z - center) @ axes)
    if n_components >= axes.shape[1]:
        P, history, converged = np.eye(axes.shape[1], n_components), np.empty(0), True
    else:
        P, history, converged = _descent(points, _best_start(points, n_components, rng), rng)
    Y = points.coordinates @ P
    worst = _certificate(Y, points, rng)
    return DistortionMap(
        components=_normalized(axes @ P, Y, worst),
        log_distortion=worst.log_distortion,
        n_pairs=worst.n_pairs,
        exact=len(Z) <= MOST_CERTIFIED,
        converged=converged,
        history=history,
    )


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
    >>> from heatsketch.near_isometry import certified_distortion
    >>> Z = np.random.default_rng(0).normal(size=(100, 10))
    >>> found = certified_distortion(Z * 2, Z)
    >>> round(found.log_distortion, 9), round(found.largest, 9), found.n_pairs, found.exact
    (0.0, 2.0, 4950, True)
    """
    Y, Z = _floats(Y, "Y"), _floats(Z, "Z")
    if len(Y) != len(Z):
        raise HeatSketchError(
            f"Y must have one row for each of the {len(Z)} rows of Z, got {len(Y)} rows."
        )
    worst = _certificate(Y, _Points(Z, Z), _generator(seed))
    least, largest = float(np.sqrt(worst.low)), float(np.sqrt(worst.high))
    is_all = len(Z) <= MOST_CERTIFIED
    return Distortion(worst.log_distortion, least, largest, worst.n_pairs, is_all)


def _certificate(Y: np.ndarray, points: _Points, rng: np.random.Generator) -> Stretches:
    """Scan all pairs of different points, or search for the worst ones."""
    Z = points.given
    worst = scan_pairs(Y, Z) if len(Z) <= MOST_CERTIFIED else points.search(Y, rng)
    if not worst.n_pairs:
        raise HeatSketchError(
            f"Z must have at least two different points, got {len(Z)} equal points."
        )
    return worst


@dataclass(frozen=True)
class _Points:
    """Points as given, and along their principal axes, where maps are optimized."""

    given: np.ndarray
    coordinates: np.ndarray

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, rows: np.ndarray) -> _Points:
        return _Points(self.given[rows], self.coordinates[rows])

    @cached_property
    def near(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of neighbours."""
        return near_pairs(self.given)

    def worst(self, P: np.ndarray, rng: np.random.Generator) -> Stretches:
        """Scan all pairs for the worst ones of a map, or search for them."""
        n_points, Y = len(self), self.coordinates @ P
        if n_points > MOST_SCANNED:
            return self.search(Y, rng)
        n_each = n_points if _has_few_pairs(n_points) else max(1, NEW_PAIRS // (2 * n_points))
        return scan_pairs(Y, self.given, n_each=n_each)

    def search(self, Y: np.ndarray, rng: np.random.Generator) -> Stretches:
        """Search for the worst pairs: among neighbours, and among all pairs of a sample."""
        Z, rows = self.given, _sample(len(self), MOST_SCANNED, rng)
        scanned = scan_pairs(Y[rows], Z[rows])
        first, second = rows[scanned.pairs.first], rows[scanned.pairs.second]
        scanned = scanned._replace(pairs=Pairs(first, second, scanned.pairs.squares))
        parts = [compare_pairs(Y, Z, *self.near), compare_pairs(Y, Z, *near_pairs(Y)), scanned]
        return joined(
            [part._replace(pairs=hardest(Y, part.pairs, NEW_PAIRS // 2)) for part in parts]
        )


def _sample(n_points: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of a random sample, sorted; all rows if they are not more."""
    return np.sort(rng.permutation(n_points)[:size])


def _principal_axes(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the points, and their principal axes as columns."""
    center = Z.mean(axis=0)
    _, sizes, axes = np.linalg.svd(Z - center, full_matrices=False)
    return center, axes[sizes > SMALLEST_AXIS * sizes[0]].T


def _normalized(components: np.ndarray, Y: np.ndarray, worst: Stretches) -> np.ndarray:
    """Scale a map so that stretches are around one, and rotate it to principal axes."""
    _, turn = np.linalg.eigh(Y.T @ Y)
    # If different points have equal images, the scale is that of the largest stretch.
    scale = (worst.low * worst.high) ** 0.25 or worst.high**0.5
    components = components @ turn[:, ::-1] / scale
    places = np.abs(components).argmax(axis=0)[np.newaxis]
    return components * np.where(np.take_along_axis(components, places, axis=0) < 0, -1, 1)


# --- the descent ----------------------------------------------------------------------------


def _best_start(points: _Points, n_components: int, rng: np.random.Generator) -> np.ndarray:
    """Optimize several initial maps on a sample, and select the best on a larger one.

    They are the leading axes, random maps and mixtures of both. A map that is good on a sample may
    fold the points between sampled points onto each other, and later steps cannot unfold it. So
    the maps are compared on more points.
    """
    n_points, n_axes = points.coordinates.shape
    small, middle, large = (points[_sample(n_points, size, rng)] for size in SAMPLES)
    maps = _starts(n_axes, n_components, rng)
    maps = [_improved(small, P, *SMALL_DESCENT, rng) for P in maps]
    if len(middle) < n_points:
        maps = [_improved(middle, P, *LARGER_DESCENT, rng) for P in maps]
    best = min(maps, key=lambda P: large.worst(P, rng).log_distortion)
    return _improved(large, best, *LARGER_DESCENT, rng) if len(large) < n_points else best


def _starts(n_axes: int, n_components: int, rng: np.random.Generator) -> list[np.ndarray]:
    shape = n_axes, n_components
    randoms = [rng.standard_normal(shape) / np.sqrt(n_axes) for _ in SHARES]
    return [
        (1 - share) * np.eye(*shape) + share * random
        for share, random in zip(SHARES, randoms, strict=True)
    ]


def _improved(
    points: _Points,
    P: np.ndarray,
    doublings: Iterable[int],
    n_steps: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the map after the last round."""
    *_, (_, last) = _rounds(points, P, doublings, n_steps, rng)
    return last


def _descent(
    points: _Points, P: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the best map, its distortion after each round, and whether it converged."""
    doublings = DOUBLINGS if _has_few_pairs(len(points)) else SLOW_DOUBLINGS
    done = steps("near isometry", len(doublings) + 1)
    maps: list[np.ndarray] = []
    history: list[float] = []
    converged = False
    for value, last in _rounds(points, P, doublings, STEPS, rng):
        done()
        target = (1 - GAIN) * min(history, default=np.inf)
        maps.append(last)
        history.append(value)
        converged = len(history) > FEWEST_ROUNDS and value >= target
        if converged:
            break
    return maps[int(np.argmin(history))], np.array(history), converged


def _rounds(
    points: _Points,
    P: np.ndarray,
    doublings: Iterable[int],
    n_steps: int,
    rng: np.random.Generator,
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the distortion of the initial map and this map, and those after each round."""
    worst = points.worst(P, rng)
    yield worst.log_distortion, P
    pairs = worst.pairs
    for exponent in doublings:
        P = _descended(points.coordinates, pairs, P, exponent, n_steps)
        worst = points.worst(P, rng)
        yield worst.log_distortion, P
        pairs = hardest(points.coordinates @ P, united(worst.pairs, pairs), WORKING_PAIRS)


def _has_few_pairs(n_points: int) -> bool:
    return n_points * (n_points - 1) // 2 <= FEW_PAIRS


def _descended(
    X: np.ndarray, pairs: Pairs, P: np.ndarray, doublings: int, n_steps: int
) -> np.ndarray:
    """Minimize the smooth distortion of some pairs of rows of ``X``."""
    rows, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = np.split(places.astype(np.int32), 2)
    pairs = Pairs(first, second, pairs.squares)
    smooth = partial(_smooth_distortion, X=X[rows], pairs=pairs, doublings=doublings, shape=P.shape)
    options = {"maxiter": n_steps, "maxcor": MEMORY, "ftol": 1e-5, "gtol": 0}
    start = P.ravel() / np.linalg.norm(P)  # the objective is scale-invariant
    return minimize(smooth, start, jac=True, method="L-BFGS-B", options=options).x.reshape(P.shape)


def _smooth_distortion(
    flat: np.ndarray, *, X: np.ndarray, pairs: Pairs, doublings: int, shape: tuple[int, int]
) -> tuple[float, np.ndarray]:
    """Return the smooth distortion and its gradient, for ``q = 2**doublings``."""
    Y = X @ flat.reshape(shape)
    stretches = np.maximum(pairs.stretches(Y), TINY)
    logarithms, q = np.log(stretches), 2**doublings
    low, high = logarithms.min(), logarithms.max()
    # The terms are powers of ratios to the worst pair, so that none overflows.
    up, down = np.exp(q * (logarithms - high)), np.exp(q * (low - logarithms))
    value = high - low + np.log(up.sum() * down.sum()) / q
    weights = (up / up.sum() - down / down.sum()) / (stretches * pairs.squares)
    pulls = np.zeros_like(Y)
    kernels.add_pulls(Y, pairs.first, pairs.second, weights, pulls)
    return value / 2, (X.T @ pulls).ravel()


# --- errors ---------------------------------------------------------------------------------


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer("seed", seed, least=0))


def _floats(Z: Any, name: str) -> np.ndarray:
    Z = plain_floats(Z, name)
    if sparse.issparse(Z):
        raise DtypeError(
            f"{name} must be dense, got a sparse matrix of shape {Z.shape}; pass {name}.toarray() "
            "if it fits in memory."
        )
    if Z.ndim != 2 or len(Z) < 2:
        raise HeatSketchError(
            f"{name} must have two dimensions and at least two rows, got shape {Z.shape}."
        )
    check_finite(Z, name=name)
    return np.ascontiguousarray(Z, np.float64)
