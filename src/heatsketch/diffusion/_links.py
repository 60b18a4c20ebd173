r"""Weights of the links of the graph of a fitted model.

.. math:: W_{ij} = (c_i A_{ij} c_j)^\beta \quad (i \ne j), \qquad W_{ii} = 0

Links weaker than a tenth are raised to a tenth, unless :math:`\beta = 1`: otherwise their powers
are so small that a point without other links would be practically disconnected.

With ``c = 1 / s`` these are the affinities that the heat operator ``A`` was computed from. With the
stationary direction for ``c`` they are the weights whose random walk is that of ``A``. Self-loops
do not change where a walk ends, only the number of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.row_chunks import multiply_vector, scaled_values
from heatsketch.diffusion._duplicates import SharedRows
from heatsketch.exceptions import HeatSketchError

WEAKEST = 0.1  # lower bound of affinities before they are raised to a power


def link_weights(A: Any, c: np.ndarray, *, exponent: float = 1.0) -> Any:
    """Return the symmetric weights ``W`` of the links of a graph, in float64.

    Parameters
    ----------
    A : HeatOperator of shape (n, n)
        Operator of a neighbour graph.
    c : array of shape (n,)
    exponent : float, default=1.0
        The exponent ``beta``.

    Returns
    -------
    CSR array or SharedRows of shape (n, n)
        A row without any link keeps a self-loop, of weight one. Copies of a point that share rows
        keep the links between them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from heatsketch.diffusion import degree_scaling, heat_operator
    >>> from heatsketch.diffusion._links import link_weights
    >>> K = sparse.csr_array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> A = heat_operator(K, degree_scaling(K))
    >>> link_weights(A, 1 / A.s, exponent=2).toarray().round(9)
    array([[0.  , 0.25, 0.  ],
           [0.25, 0.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    check_sparse(A)
    matrix = scaled(mapped(A.matrix, _in_float64), c, c)
    copies = np.diff(matrix.starts) if isinstance(matrix, SharedRows) else None
    return mapped(matrix, lambda rows: _without_loops(_power(rows, exponent), copies))


def check_sparse(A: Any) -> None:
    """Raise if the entries of an operator are not in memory."""
    if not (isinstance(A.matrix, SharedRows) or sparse.issparse(A.matrix)):
        raise HeatSketchError(
            "labels and fates need a graph of neighbours in memory, and the affinities are those "
            "of all pairs, or on a cluster; use n_neighbors=15 for points or distances, a sparse "
            "matrix for given affinities (such as scipy.sparse.csr_array(X), with zeros for small "
            "ones), and no cluster.",
            n_neighbors=15,
        )


def scaled(matrix: Any, left: np.ndarray, right: np.ndarray) -> Any:
    """Return ``diag(left) M diag(right)`` of a CSR array or SharedRows."""
    if isinstance(matrix, SharedRows):
        return matrix.scaled(left, right)
    values = scaled_values(matrix, left, right)
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def mapped(matrix: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the rows of a CSR array or SharedRows."""
    return matrix.map_blocks(function) if isinstance(matrix, SharedRows) else function(matrix)


def _in_float64(rows: sparse.csr_array) -> sparse.csr_array:
    values = rows.data.astype(np.float64, copy=False)
    return sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def _power(rows: sparse.csr_array, exponent: float) -> sparse.csr_array:
    if exponent == 1:
        return rows
    values = np.maximum(rows.data, WEAKEST)
    values **= exponent
    return sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def _without_loops(rows: sparse.csr_array, copies: np.ndarray | None) -> sparse.csr_array:
    numbers = np.arange(rows.shape[0], dtype=rows.indices.dtype)
    is_loop = rows.indices == np.repeat(numbers, np.diff(rows.indptr))
    if copies is not None:  # the diagonal then holds the links between copies
        is_loop &= copies[rows.indices] == 1
    rows.data[is_loop] = 0
    alone = multiply_vector(rows, np.ones(rows.shape[1])) == 0
    rows.data[is_loop & alone[rows.indices]] = 1
    return rows
