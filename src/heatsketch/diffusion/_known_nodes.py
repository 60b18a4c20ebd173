r"""Rows of a graph that are those of training nodes.

.. math:: f_i = \sum_j W_{ij} g_j

A training node has a self-loop, which is added to its row of weights ``W`` in a fit. A new node has
none, since no column is its own. So a new row gets a self-loop only if it equals the row of one
training node. Equal rows have equal fingerprints ``f``; as the numbers ``g`` are random, different
rows almost surely have different ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from heatsketch._core.partitioned import from_each_block, is_lazy
from heatsketch._core.row_chunks import multiply_vector
from heatsketch.diffusion._random_matrix import gaussian_matrix

SEED = 0  # of the random numbers g


class KnownNodes(NamedTuple):
    """The rows that equal those of training nodes.

    Attributes
    ----------
    rows : array of int of shape (m,)
        Rows that equal the row of one training node.
    nodes : array of int of shape (m,)
        This node.
    shared : array of int
        Rows with links that equal the rows of several training nodes.
    """

    rows: np.ndarray
    nodes: np.ndarray
    shared: np.ndarray


def row_fingerprints(W: Any) -> np.ndarray:
    """Return a number for each row, equal for equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._known_nodes import row_fingerprints
    >>> first, second, third = row_fingerprints(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    if is_lazy(W):
        return np.concatenate(from_each_block(row_fingerprints, W))
    # Sparse, so that sums are rounded alike for all layouts and all selections of rows.
    return multiply_vector(sparse.csr_array(W), gaussian_matrix(W.shape[1], 1, seed=SEED)[:, 0])


def known_nodes(W: Any, fingerprints: np.ndarray) -> KnownNodes:
    """Return the rows of ``W`` that are those of training nodes.

    If ``W`` has all rows of the fit in their order, each is known, even if several are equal.

    Parameters
    ----------
    W : array or CSR array of shape (n_rows, n_nodes)
    fingerprints : array of shape (n_nodes,)
        Those of the training nodes; NaN for nodes that are not looked for.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion._known_nodes import known_nodes, row_fingerprints
    >>> W = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> rows, nodes, shared = known_nodes(W[[1, 0]], row_fingerprints(W))
    >>> rows.tolist(), nodes.tolist(), shared.tolist()
    ([1], [0], [0])
    """
    given, is_listed = row_fingerprints(W), ~np.isnan(fingerprints)
    if len(given) == len(fingerprints) and (given == fingerprints)[is_listed].all():
        nodes = np.flatnonzero(is_listed)
        return KnownNodes(nodes, nodes, nodes[:0])
    order = np.argsort(fingerprints, kind="stable")  # NaN at the end
    starts, ends = (np.searchsorted(fingerprints[order], given, side) for side in ("left", "right"))
    rows = np.flatnonzero(ends - starts == 1)
    shared = np.flatnonzero((ends - starts > 1) & (given != 0))
    return KnownNodes(rows, order[starts[rows]], shared)
