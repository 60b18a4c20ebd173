r"""Weights of the links of the graph of a fitted model.

.. math:: W_{ij} = (c_i A_{ij} c_j)^\beta \quad (i \ne j), \qquad W_{ii} = 0

Links weaker than a tenth are raised to a tenth, unless :math:`\beta = 1`: otherwise their powers
are so small that a point without other links would be practically disconnected.

With ``c = 1 / s`` these are the affinities that the heat operator ``A`` was computed from. With the
stationary direction for ``c`` they are the weights whose random walk is that of ``A``. Self-loops
do not change where a walk ends, only the number of its steps.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._rows import rows_of
from heatsketch.heat import HeatGraph

WEAKEST = 0.1  # lower bound of affinities before they are raised to a power


def link_weights(graph: HeatGraph, *, exponent: float = 1.0, of_walk: bool = False) -> Any:
    """Return the symmetric weights ``W`` of the links of a graph, in float64.

    Parameters
    ----------
    graph : HeatGraph
    exponent : float, default=1.0
        The exponent ``beta``.
    of_walk : bool, default=False
        Whether the weights are those of the random walk of ``A``, instead of the affinities.

    Returns
    -------
    RowBlocks of shape (n, n)
        A row without any link keeps a self-loop, of weight one. Copies of a point that share rows
        keep the links between them.
    """
    A = graph.operator
    c = A.stationary.astype(np.float64) if of_walk else 1 / A.s
    W = rows_of(A).map_blocks(_in_float64, np.float64).scaled(c, c)
    return W.map_blocks(partial(_links, exponent=exponent, copies=W.copies), np.float64)


def _in_float64(rows: sparse.csr_array) -> sparse.csr_array:
    values = rows.data.astype(np.float64, copy=False)
    return sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def _links(rows: sparse.csr_array, exponent: float, copies: np.ndarray | None) -> sparse.csr_array:
    """Return powers of the weights without self-loops; the first columns are the rows."""
    values = rows.data.copy() if exponent == 1 else np.maximum(rows.data, WEAKEST) ** exponent
    links = sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
    numbers = np.arange(rows.shape[0], dtype=rows.indices.dtype)
    is_loop = rows.indices == np.repeat(numbers, np.diff(rows.indptr))
    if copies is not None:  # the diagonal then holds the links between copies
        is_loop &= copies[rows.indices] == 1
    loops = np.flatnonzero(is_loop)
    values[loops] = 0
    is_alone = multiply_vector(links, np.ones(rows.shape[1])) == 0
    values[loops[is_alone[rows.indices[loops]]]] = 1
    return links
