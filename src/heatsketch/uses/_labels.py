r"""Labels from few examples: Poisson learning (Calder et al., 2020).

.. math:: u = \sum_{t \ge 0} \alpha^t P^t D^{-1} b, \qquad
          b = \sum_j w_j (e_{y_j} - \bar y) \, \delta_j, \qquad \alpha = 1 - \frac{1}{T}

Each labelled point ``j`` is a source: the unit vector of its class, less the mean :math:`\bar y` of
all labels, times its weight. ``P`` is the random walk of symmetric weights ``W`` with the row sums
``D``. As the horizon ``T`` grows, ``u`` tends to the solution of the Poisson equation
:math:`(D - W) u = b`. With a finite horizon the sum also converges in a graph of several connected
components, and labels are more accurate. Unlike in label propagation, labelled points are not
fixed at their labels: with few of them, such a solution is flat everywhere except next to them.

The score of a training point or a new point is the mean of ``u`` over its neighbours, itself
included,

.. math:: F_x = \sum_j W_{xj} u_j \Big/ \sum_j W_{xj},

and the class with the largest entry is predicted. The weights are the eighth power of the
affinities of a model, which with a local bandwidth is :math:`\exp(-8 d^2 / \sigma_x \sigma_j)`:
only the nearest neighbours count. docs/how_to/labels.md has the measurements.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch.diffusion._all_times import resolvent
from heatsketch.diffusion._normalization import degree_scaling
from heatsketch.diffusion._operator import heat_operator
from heatsketch.diffusion._rows import rows_of
from heatsketch.exceptions import HeatSketchError
from heatsketch.heat import HeatGraph

# Measured on digits and MNIST with 1 and 5 labels per class; docs/how_to/labels.md.
SHARPNESS = 8
VOTING_SHARPNESS = 2  # for neighbours that vote on a label
# A horizon of 2500 steps takes a few hundred products, enough to reach along long curves.
HORIZON = 2500
TOLERANCE = 1e-6
CONFIDENCE = 4.0
# A third of the labels is held out, so that few classes lose all of theirs, but half of them up to
# 19, which a coverage of 95 % needs.
HALF_UP_TO = 19
# Maximum number of sweeps until probabilities have the given means, and the tolerance of these.
MOST_SWEEPS, SHARE_TOLERANCE = 1000, 1e-6


def label_sources(labels: np.ndarray, n_classes: int, weights: Any = None) -> np.ndarray:
    """Return the sources ``b``, one column for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.uses._labels import label_sources
    >>> label_sources(np.array([0, -1, 1]), 2)
    array([[ 0.5, -0.5],
           [ 0. ,  0. ],
           [-0.5,  0.5]])
    """
    known = np.flatnonzero(labels >= 0)
    w = np.ones(len(known)) if weights is None else np.asarray(weights, np.float64)[known]
    shares = np.bincount(labels[known], w, minlength=n_classes) / w.sum()
    sources = np.zeros((len(labels), n_classes))
    sources[known] = -shares
    sources[known, labels[known]] += 1
    sources[known] *= w[:, np.newaxis]
    return sources


def potentials(K: Any, sources: Any, *, horizon: float = HORIZON) -> Any:
    """Return the sum ``u`` over all steps of a walk from sources of sum zero."""
    A = heat_operator(K, degree_scaling(K))
    s = A.s[:, np.newaxis]  # one over the root of the row sums
    return resolvent(A, s * sources, tolerance=TOLERANCE, horizon=horizon).block * s


def neighbor_means(A: Any, block: Any, *, exponent: float = 1.0) -> np.ndarray:
    r"""Return means of a block over the neighbours of each row of an operator.

    .. math:: F_x = \sum_j w_{xj} u_j \Big/ \sum_j w_{xj}, \qquad w_{xj} = (A_{xj} / s_j)^\beta

    ``A`` may be rows of new points. Factors of rows cancel, so the weights are powers of
    affinities.
    """
    ones = np.float64(1) + 0 * A.stationary.astype(np.float64)
    w = rows_of(A).scaled(ones, 1 / A.s)
    w = w.map_blocks(partial(_row_powers, exponent=exponent), np.float64)
    return w.product(block) / (w @ w.ones())[:, np.newaxis]


def label_margins(
    graph: HeatGraph, W: Any, labels: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the margin of each label among neighbours, and the strongest rival.

    Labelled neighbours vote with the weights of their links ``W``. The margin is the share of votes
    for the label itself, less the largest share of another class, the rival. It is 0 in rows
    without a label, or without a labelled neighbour.
    """
    votes = graph.gathered(W.product(graph.inner(_indicators(labels, n_classes))))
    known = np.flatnonzero(labels >= 0)
    own = known, labels[known]
    loops = graph.gathered(W.map_rows(_diagonal, np.float64))
    votes[own] -= loops[known]  # a label does not vote for itself
    sums = votes.sum(axis=1, keepdims=True)
    np.divide(votes, sums, out=votes, where=sums > 0)
    margins = np.zeros(len(labels))
    margins[known] = votes[own]
    votes[own] = 0
    margins[known] -= votes[known].max(axis=1)
    return margins, votes.argmax(axis=1)


def _indicators(labels: np.ndarray, n_classes: int) -> np.ndarray:
    return (labels[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)


def _diagonal(rows: sparse.csr_array) -> np.ndarray:
    return rows.diagonal()


def _row_powers(rows: sparse.csr_array, exponent: float) -> sparse.csr_array:
    """Return powers of entries relative to the largest of their row, in float64."""
    values = rows.data.astype(np.float64)
    counts = np.diff(rows.indptr)
    largest = np.ones(len(counts))
    largest[counts > 0] = np.maximum.reduceat(values, rows.indptr[:-1][counts > 0])
    values /= np.repeat(largest, counts)
    return sparse.csr_array((values**exponent, rows.indices, rows.indptr), shape=rows.shape)


# --- from scores to probabilities and sets -------------------------------------------------------


def score_scale(scores: np.ndarray) -> float:
    """Return the unit of scores: their root mean square, or one if all are zero."""
    return float(np.sqrt(np.mean(scores**2))) or 1.0


def class_probabilities(scores: np.ndarray, scale: float, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`p_c \propto w_c \exp(4 F_c / \text{scale})`."""
    exponents = scores * (CONFIDENCE / scale) + np.log(weights)
    exponents -= exponents.max(axis=1, keepdims=True)
    np.exp(exponents, out=exponents)
    exponents /= exponents.sum(axis=1, keepdims=True)
    return exponents


def class_weights(scores: np.ndarray, scale: float, priors: Any) -> np.ndarray:
    """Return class weights such that mean probabilities equal ``priors``."""
    weights = np.ones(scores.shape[1])
    if priors is None:
        return weights
    for _ in range(MOST_SWEEPS):
        shares = class_probabilities(scores, scale, weights).mean(axis=0)
        if np.abs(shares - priors).max() <= SHARE_TOLERANCE:
            break
        weights *= priors / shares
        weights /= weights.max()
    return weights


def n_held_out(n_labels: int) -> int:
    """Return how many labels are held out: a third, or half up to 19."""
    return max(n_labels // 3, min(n_labels // 2, HALF_UP_TO))


def conformal_threshold(scores: np.ndarray, coverage: float) -> float:
    r"""Return the :math:`\lceil (m + 1) c \rceil`-th smallest of ``m`` scores.

    If a new score is exchangeable with these, it is at most the threshold with probability ``c``
    or more, for any distribution. Fewer than :math:`c / (1 - c)` scores raise an error, since the
    threshold would be infinite.
    """
    # Less the rounding error, so that ten times nine tenths is nine.
    rank = math.ceil((len(scores) + 1) * coverage * (1 - 1e-12))
    if rank > len(scores):
        needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))
        n_labels = 2 * needed if needed <= HALF_UP_TO else 3 * needed
        raise HeatSketchError(
            f"coverage={coverage!r} needs {needed} labels to be held out, but only {len(scores)} "
            f"are; label at least {n_labels} rows, or use a smaller coverage."
        )
    return float(np.sort(scores)[rank - 1])
