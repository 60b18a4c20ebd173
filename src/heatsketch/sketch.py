r"""Sketch the heat kernel: powers of ``A`` applied to a random block.

.. math:: Y = \frac{1}{\sqrt{k}} A^p G

(Algorithms 4 and 5). The rows of ``Y`` are the embedding: for independent columns of mean zero
and variance one,

.. math:: E |y_i - y_j|^2 = |(A^p)_i - (A^p)_j|^2 = d_p(i, j)^2,

the squared diffusion distance, and for Gaussian ``G`` the ratio
:math:`k |y_i - y_j|^2 / d_p(i, j)^2` is exactly chi-squared with ``k`` degrees of freedom.

The stationary direction of ``A`` is taken out of the block before every product, because it
does not decay and would drown the rest (at p = 512 float64 distances would be noise). What is
left out is known in closed form: :meth:`HeatOperator.stationary_part`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["diffuse", "sketch", "sketch_path"]


def diffuse(A: Any, block: Any, *, power: int) -> Any:
    """Apply ``A`` to a block ``power`` times, without its stationary direction.

    Parameters
    ----------
    A : HeatOperator
    block : array of shape (n, k)
        Left as it is if ``power`` is zero.
    power : int

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    Steps add up:

    >>> import numpy as np
    >>> from heatsketch import heat_operator, symmetric_scaling
    >>> from heatsketch.sketch import diffuse
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> block = np.array([[1.0], [0.0]])
    >>> diffuse(A, diffuse(A, block, power=2), power=1) == diffuse(A, block, power=3)
    array([[ True],
           [ True]])
    """
    for _ in range(power):
        block = A @ A.deflate(block)
    return block


def sketch(A: Any, G: Any, *, power: int) -> Any:
    r"""Embedding :math:`Y = A^p G / \sqrt{k}`, without the stationary direction.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
        A random block; see :func:`gaussian_block` and :func:`rademacher_block`.
    power : int
        Diffusion time ``p``, at least 1.

    Returns
    -------
    array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import (
    ...     bistochastic_scaling, gaussian_affinity, gaussian_block, heat_operator,
    ...     neighbor_graph, sketch)
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> K = gaussian_affinity(neighbor_graph(X), epsilon=2.0)
    >>> A = heat_operator(K, bistochastic_scaling(K))
    >>> sketch(A, gaussian_block(200, 16, seed=0), power=8).shape
    (200, 16)
    """
    return diffuse(A, G, power=power) / np.sqrt(G.shape[1])


def sketch_path(A: Any, G: Any, *, powers: Iterable[int]) -> list[Any]:
    r"""Embeddings :math:`A^p G / \sqrt{k}` of many powers from one pass.

    It costs as many products as the largest power.

    Parameters
    ----------
    A : HeatOperator
    G : array of shape (n, k)
    powers : iterable of int
        Diffusion times, in any order, each at least 1.

    Returns
    -------
    list of arrays of shape (n, k)
        One for each power, in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import gaussian_block, heat_operator, sketch_path, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> [Y.shape for Y in sketch_path(A, gaussian_block(2, 5, seed=0), powers=[8, 1, 64])]
    [(2, 5), (2, 5), (2, 5)]
    """
    powers = list(powers)
    embeddings, reached, block = {}, 0, G
    for power in sorted(set(powers)):
        block = diffuse(A, block, power=power - reached)
        embeddings[power] = block / np.sqrt(G.shape[1])
        reached = power
    return [embeddings[power] for power in powers]
