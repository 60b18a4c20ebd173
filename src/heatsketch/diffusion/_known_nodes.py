r"""New rows of a graph that equal rows of training nodes.

.. math:: f_i = \sum_j W_{ij} g_j

In a fit, a self-loop is added to the row of weights ``W`` of each training node. A new node has no
column, so it gets no self-loop unless its row equals the row of exactly one training node. Equal
rows have equal fingerprints ``f``, and since the numbers ``g`` are random, different rows almost
surely have different fingerprints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core.partitioned import from_each_block, is_lazy
from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._random_matrix import gaussian_matrix

SEED = 0  # of the random numbers g


def row_fingerprints(W: Any) -> np.ndarray:
    """Return a number for each row, equal for equal rows."""
    if is_lazy(W):
        return np.concatenate(from_each_block(row_fingerprints, W))
    # As a sparse matrix, so that rounding does not depend on the layout or on the other rows.
    return multiply_vector(sparse.csr_array(W), gaussian_matrix(W.shape[1], 1, seed=SEED)[:, 0])


def known_nodes(W: Any, fingerprints: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of ``W`` that are those of training nodes.

    If ``W`` has all rows of the fit in order, all are known, even if some are equal.

    Parameters
    ----------
    W : array or CSR array of shape (n_rows, n_nodes)
    fingerprints : array of shape (n_nodes,)
        Those of the training nodes; NaN for nodes to ignore.

    Returns
    -------
    rows : array of int of shape (m,)
        Rows that equal the row of one training node.
    nodes : array of int of shape (m,)
        This node.
    shared : array of int
        Rows with links that equal the rows of several training nodes.
    """
    given, is_listed = row_fingerprints(W), ~np.isnan(fingerprints)
    if len(given) == len(fingerprints) and (given == fingerprints)[is_listed].all():
        nodes = np.flatnonzero(is_listed)
        return nodes, nodes, nodes[:0]
    order = np.argsort(fingerprints, kind="stable")  # NaN at the end
    starts, ends = (np.searchsorted(fingerprints[order], given, side) for side in ("left", "right"))
    rows = np.flatnonzero(ends - starts == 1)
    shared = np.flatnonzero((ends - starts > 1) & (given != 0))
    return rows, order[starts[rows]], shared
