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
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._all_times import Resolvent, resolvent
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.diffusion._links import check_sparse, mapped, scaled
from heatsketch.diffusion._normalization import degree_scaling
from heatsketch.diffusion._operator import HeatOperator, heat_operator
from heatsketch.exceptions import HeatSketchError

# Measured on digits and MNIST with 1 and 5 labels per class; docs/how_to/labels.md.
SHARPNESS = 8
VOTING_SHARPNESS = 2  # for neighbours that vote on a label
# A walk reaches no farther than its number of products: a few hundred follow long curves.
HORIZON = 2500
TOLERANCE = 1e-6
CONFIDENCE = 4.0
# With a third of the labels held out, all labels of a class are held out less often than with half
# of them; a coverage of 95 % needs 19.
HALF_UP_TO = 19
# Maximum number of sweeps until probabilities have the given means, and the tolerance of these.
MOST_SWEEPS, SHARE_TOLERANCE = 1000, 1e-6


def poisson_learning(
    K: Any, labels: Any, *, weights: Any = None, horizon: float = HORIZON
) -> np.ndarray:
    """Potentials of each class from the labels of a few points.

    Parameters
    ----------
    K : object of shape (n, n) that supports ``K @ block``
        Affinity, preferably without self-loops.
    labels : array of int of shape (n,)
        Classes, numbered from 0; -1 where unknown.
    weights : array of shape (n,), optional
        Weights of the labels; all one if omitted.
    horizon : float, default=2500
        ``T``: a walk loses a fraction ``1 / T`` of its weight at every step.

    Returns
    -------
    array of shape (n, n_classes)
        The predicted class of a point is that of its largest potential.

    Examples
    --------
    A path of six points with a label at either end:

    >>> import numpy as np
    >>> from heatsketch.diffusion import poisson_learning
    >>> K = np.eye(6, k=1) + np.eye(6, k=-1)
    >>> poisson_learning(K, [0, -1, -1, -1, -1, 1]).argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    labels = np.asarray(labels)
    if labels.shape != K.shape[:1] or labels.dtype.kind not in "iu" or not labels.max() >= 0:
        raise HeatSketchError(
            f"labels of shape {labels.shape} and dtype {labels.dtype} must be integers, one for "
            f"each of the {K.shape[0]} rows of K; use -1 for unknown labels, and give one or more."
        )
    sources = label_sources(labels, int(labels.max()) + 1, weights)
    return potentials(K, sources, horizon=horizon).block


def label_sources(labels: np.ndarray, n_classes: int, weights: Any = None) -> np.ndarray:
    """Return the sources ``b``, one column for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._labels import label_sources
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


def potentials(K: Any, sources: np.ndarray, *, horizon: float = HORIZON) -> Resolvent:
    """Return the sum ``u`` over all steps of a walk from sources of sum zero.

    The number of products is returned with it.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._labels import potentials
    >>> K, sources = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0], [-1.0]])
    >>> potentials(K, sources).block.round(1)
    array([[ 0.5],
           [-0.5]])
    """
    A = heat_operator(K, degree_scaling(K))
    s = A.s[:, np.newaxis]  # one over the root of the row sums
    found = resolvent(A, s * sources, tolerance=TOLERANCE, horizon=horizon)
    np.multiply(found.block, s, out=found.block)
    return found


def neighbor_means(A: Any, block: np.ndarray, *, exponent: float = 1.0) -> np.ndarray:
    r"""Return means of a block over the neighbours of each row of an operator.

    .. math:: F_x = \sum_j w_{xj} u_j \Big/ \sum_j w_{xj}, \qquad w_{xj} = (A_{xj} / s_j)^\beta

    ``A`` may be rows of new points. Factors of rows cancel, so the weights are powers of
    affinities.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch.diffusion import degree_scaling, heat_operator
    >>> from heatsketch.diffusion._labels import neighbor_means
    >>> K = sparse.csr_array([[1.0, 0.5], [0.5, 1.0]])
    >>> neighbor_means(heat_operator(K, degree_scaling(K)), np.array([[3.0], [0.0]]))
    array([[2.],
           [1.]])
    """
    check_sparse(A)
    affinity = scaled(A.matrix, np.ones(A.shape[0]), 1 / A.s)
    w = mapped(affinity, lambda rows: _row_powers(rows, exponent))
    means = HeatOperator(w, None, np.zeros(w.shape[0])) @ block
    means /= _row_sums(w)[:, np.newaxis]
    return means


def label_margins(W: Any, labels: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the margin of each label among neighbours, and the strongest rival.

    Labelled neighbours vote with the weights of their links. The margin is the share of votes for
    the label itself, less the largest share of another class, the rival. It is 0 in rows without a
    label, or without a labelled neighbour.

    Examples
    --------
    Only the last of four points has the label 1:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch.diffusion._labels import label_margins
    >>> W = sparse.csr_array(1 - np.eye(4))
    >>> margins, rivals = label_margins(W, np.array([0, 0, 0, 1]), 2)
    >>> margins.round(1), rivals
    (array([ 0.3,  0.3,  0.3, -1. ]), array([1, 1, 1, 0]))
    """
    known = np.flatnonzero(labels >= 0)
    own = known, labels[known]
    given = np.zeros((len(labels), n_classes))
    given[own] = 1
    votes = HeatOperator(W, None, np.zeros(W.shape[0])) @ given
    votes[own] -= _loops(W)[known]  # a label does not vote for itself
    sums = votes.sum(axis=1, keepdims=True)
    np.divide(votes, sums, out=votes, where=sums > 0)
    margins = np.zeros(len(labels))
    margins[known] = votes[own]
    votes[own] = 0
    margins[known] -= votes[known].max(axis=1)
    return margins, votes.argmax(axis=1)


def _loops(W: Any) -> np.ndarray:
    return W.map_rows(_diagonal) if isinstance(W, SharedRows) else _diagonal(W)


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


def _row_sums(w: Any) -> np.ndarray:
    ones = np.ones(w.shape[1])
    return w @ ones if isinstance(w, SharedRows) else multiply_vector(w, ones)


# --- from scores to probabilities and sets -------------------------------------------------------


def score_scale(scores: np.ndarray) -> float:
    """Return the unit of scores: their root mean square, or one if all are zero."""
    return float(np.sqrt(np.mean(scores**2))) or 1.0


def class_probabilities(scores: np.ndarray, scale: float, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`p_c \propto w_c \exp(4 F_c / \text{scale})`.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._labels import class_probabilities
    >>> class_probabilities(np.array([[1.0, -1.0], [0.0, 0.0]]), 1.0, np.ones(2)).round(3)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    exponents = scores * (CONFIDENCE / scale) + np.log(weights)
    exponents -= exponents.max(axis=1, keepdims=True)
    np.exp(exponents, out=exponents)
    exponents /= exponents.sum(axis=1, keepdims=True)
    return exponents


def class_weights(scores: np.ndarray, scale: float, priors: Any) -> np.ndarray:
    """Return class weights such that mean probabilities equal ``priors``.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._labels import class_probabilities, class_weights
    >>> scores = np.array([[0.1, -0.1], [0.3, -0.3], [-0.2, 0.2]])
    >>> weights = class_weights(scores, 1.0, [0.25, 0.75])
    >>> class_probabilities(scores, 1.0, weights).mean(axis=0).round(3)
    array([0.25, 0.75])
    """
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
    """Return how many labels are held out: a third, or half up to 19.

    Examples
    --------
    >>> from heatsketch.diffusion._labels import n_held_out
    >>> [n_held_out(n_labels) for n_labels in (5, 18, 50, 100)]
    [2, 9, 19, 33]
    """
    return max(n_labels // 3, min(n_labels // 2, HALF_UP_TO))


def conformal_threshold(scores: np.ndarray, coverage: float) -> float:
    r"""Return the :math:`\lceil (m + 1) c \rceil`-th smallest of ``m`` scores.

    If a new score is exchangeable with these, it is at most the threshold with probability ``c``
    or more, for any distribution. Fewer than :math:`c / (1 - c)` scores raise an error, since the
    threshold would be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._labels import conformal_threshold
    >>> conformal_threshold(np.arange(9.0), 0.9)
    8.0
    """
    # Reduced by the rounding error: ten times nine tenths is nine.
    rank = math.ceil((len(scores) + 1) * coverage * (1 - 1e-12))
    if rank > len(scores):
        needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))
        n_labels = 2 * needed if needed <= HALF_UP_TO else 3 * needed
        raise HeatSketchError(
            f"coverage={coverage!r} needs {needed} labels to be held out, and {len(scores)} are; "
            f"label at least {n_labels} rows, or use a smaller coverage.",
            coverage=coverage,
        )
    return float(np.sort(scores)[rank - 1])
