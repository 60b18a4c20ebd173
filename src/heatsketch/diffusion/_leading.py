r"""Leading directions: some components of a sketch are exact, the others random.

Let the ``m`` columns of ``Q`` be orthonormal and independent of the random matrix ``G``, which has
``k - m`` columns of mean zero and variance one. Then

.. math:: S = \left[ Q, \; \frac{(I - Q Q^T) \, G}{\sqrt{k - m}} \right], \qquad E[S S^T] = I,

so that distances between rows of ``Y = f(A) S`` are unbiased whatever ``Q`` is: a bad ``Q`` costs
accuracy only. The squared distance is the sum of an exact part :math:`a^2` from the first ``m``
columns, and an estimate :math:`\hat b^2` from the others, with
:math:`(k - m) \, \hat b^2 / b^2 \sim \chi^2_{k - m}` given ``Q``. With :math:`d^2 = a^2 + b^2`, the
relative error of a distance is about :math:`(b / d)^2 / \sqrt{2 (k - m)}`.

``Q`` should span the directions in which rows differ most. It is an orthonormal basis of
:math:`f(A) G_0`, with ``m`` random columns :math:`G_0` of their own, and computed roughly. The
estimator of Meyer, Musco, Musco and Woodruff (Hutch++, 2021) splits a trace in the same way.

The basis is computed from Gram matrices, whose sums over rows do not depend on the partition. A
column that depends on those before it becomes zero. Then ``Q Q^T`` is still a projection, and
nothing else changes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from heatsketch._core import kernels
from heatsketch._core.parallel import in_threads
from heatsketch._core.partitioned import PIECE, by_rows, from_each_piece
from heatsketch.diffusion._chebyshev import frobenius_norm

DEPENDENT = 1e-12  # share of a column's squared length below which the rest of it is rounding


def orthonormal_columns(block: Any) -> Any:
    """Return orthonormal columns with the span of a block; dependent ones become zero.

    Parameters
    ----------
    block : array of shape (n, m)

    Returns
    -------
    array of shape (n, m)
    """
    block = block * (1 / (frobenius_norm(block) or 1.0))  # squares stay in range
    for _ in range(2):  # the second time, since the first Gram matrix may be ill-conditioned
        block = by_rows(_times, block, factors=_factors(_inner_products(block, 0)))
    return block


def leading_and_random(Q: Any, G: Any) -> Any:
    r"""Return :math:`[Q, (I - Q Q^T) G]`, which is ``S`` but for the scale of random columns.

    Parameters
    ----------
    Q : array of shape (n, m)
        From :func:`orthonormal_columns`.
    G : array of shape (n, k - m)
        A random matrix.

    Returns
    -------
    array of shape (n, k)
    """
    m = Q.shape[1]
    both = np.concatenate([Q, G], axis=1)
    both = both if isinstance(both, np.ndarray) else both.rechunk({1: -1})
    factors = np.eye(both.shape[1])
    factors[:m, m:] = -_inner_products(both, m)
    return by_rows(_times, both, factors=factors)


def _factors(gram: np.ndarray) -> np.ndarray:
    """Return ``W`` so that the columns of ``Y W`` are orthonormal, for ``gram = Y^T Y``.

    The method of Gram and Schmidt on inner products, without BLAS, whose rounding depends on the
    machine.
    """
    rest, W = gram.copy(), np.eye(len(gram))
    for j in range(len(gram)):
        is_dependent = rest[j, j] <= DEPENDENT * gram[j, j]
        unit = 0.0 if is_dependent else 1 / math.sqrt(rest[j, j])
        W[:, j] *= unit
        shared = rest[j] * unit
        shared[: j + 1] = 0
        rest -= shared[:, np.newaxis] * shared
        W -= W[:, j, np.newaxis] * shared
    return W


def _inner_products(block: Any, first: int) -> np.ndarray:
    """Return those of columns with the columns from ``first`` on, in float64.

    They are computed for the columns before ``first``, or for all if it is zero.
    """
    pieces = from_each_piece(partial(_of_piece, first=first), block)
    return np.cumsum(pieces, axis=0)[-1]  # in a fixed order


def _of_piece(piece: np.ndarray, first: int) -> np.ndarray:
    left = piece[:, : first or None]
    sums = np.zeros((left.shape[1], piece.shape[1] - first))
    kernels.cross_sums(left, piece[:, first:], sums)
    return sums


def _times(block: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return ``block @ factors`` for an upper triangular matrix, on all cores."""
    out = np.array(block, order="C")

    def work(start: int) -> None:
        kernels.times_triangular(out[start : start + PIECE], factors)

    in_threads(work, range(0, len(out), PIECE))
    return out
