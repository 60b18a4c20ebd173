r"""The heat operator ``A``, known by what it does to a block.

.. math:: A = \mathrm{diag}(s) \, K \, \mathrm{diag}(s)

It is never formed: the affinity answers ``K @ block``, and whatever answers that, on
whatever machine, is an engine. The rows of new points have the same shape,
:math:`\mathrm{diag}(s_{new}) \, K_{new} \, \mathrm{diag}(s)`, and so are the same class.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

__all__ = ["HeatOperator", "SupportsMatmul", "heat_operator", "heat_rows", "multiply"]

# From so many multiplications on, threads gain more than they cost, compilation included.
MANY_PRODUCTS = 20_000_000


class SupportsMatmul(Protocol):
    """What an affinity must be able to do."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    def dtype(self) -> np.dtype:
        """The precision of the products."""

    def __matmul__(self, block: Any, /) -> Any:
        """Multiply a vector, or a block of column vectors."""


@dataclass(frozen=True)
class HeatOperator:
    r"""``A = diag(left) K diag(right)``.

    Attributes
    ----------
    K : anything that answers ``K @ block``
        The affinity.
    left, right : arrays
        Weights of rows and columns; the same for training points.
    stationary : array
        The eigenvector of eigenvalue one (for new rows, its extension), of any length.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import heat_operator, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> A @ np.eye(2)
    array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]])
    >>> A.deflate(np.array([[3.0], [1.0]]))
    array([[ 1.],
           [-1.]])
    """

    K: Any
    left: Any
    right: Any
    stationary: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.K.shape

    @property
    def dtype(self) -> np.dtype:
        """The precision of the products, which are floats even if the affinities are whole."""
        return self.left.dtype

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        if block.ndim == 1:
            return self.left * (self.K @ (self.right * block))
        return self.left[:, np.newaxis] * multiply(self.K, self.right[:, np.newaxis] * block)

    def stationary_coefficients(self, block: Any) -> Any:
        """Return how much of the stationary direction each column of a block holds."""
        return (self.stationary @ block) / (self.stationary @ self.stationary)

    def stationary_part(self, coefficients: Any) -> Any:
        """Return the block that consists of the stationary direction alone."""
        return self.stationary[:, np.newaxis] * coefficients

    def deflate(self, block: Any) -> Any:
        """Take the stationary direction out of a block.

        Its eigenvalue is one while all others decay, so that after some hundred products
        nothing else would be left in floating point.
        """
        return block - self.stationary_part(self.stationary_coefficients(block))


def heat_operator(K: Any, scaling: Any) -> HeatOperator:
    r"""Heat operator :math:`A = \mathrm{diag}(s) K \mathrm{diag}(s)` of the training points.

    Parameters
    ----------
    K : anything that answers ``K @ block``
        Affinity of the training points.
    scaling : Scaling
        What ``symmetric_scaling(K)`` or ``bistochastic_scaling(K)`` returned.

    Returns
    -------
    HeatOperator

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import bistochastic_scaling, heat_operator
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> heat_operator(K, bistochastic_scaling(K)) @ np.ones(2)
    array([1., 1.])
    """
    s, stationary = _in_precision_of(K, scaling(K))
    return HeatOperator(K, s, s, stationary)


def heat_rows(K_new: Any, scaling: Any, A: HeatOperator) -> HeatOperator:
    r"""Rows of the heat operator that belong to new points.

    Parameters
    ----------
    K_new : anything that answers ``K_new @ block``
        Affinity of new points (rows) to training points (columns).
    scaling : Scaling
        The scaling of the training points.
    A : HeatOperator
        The heat operator of the training points.

    Returns
    -------
    HeatOperator

    Examples
    --------
    A training point given again has its old row:

    >>> import numpy as np
    >>> from heatsketch import heat_operator, symmetric_scaling
    >>> from heatsketch.heat_operator import heat_rows
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> scaling = symmetric_scaling(K)
    >>> A = heat_operator(K, scaling)
    >>> heat_rows(K[:1], scaling, A) @ np.eye(2)
    array([[0.66666667, 0.33333333]])
    """
    s, stationary = _in_precision_of(K_new, scaling(K_new))
    return HeatOperator(K_new, s, A.right, stationary)


def multiply(K: Any, block: Any) -> Any:
    """Return ``K @ block``; for a large CSR matrix the same bits, from all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.heat_operator import multiply
    >>> multiply(np.eye(2), np.ones((2, 1)))
    array([[1.],
           [1.]])
    """
    large = sparse.issparse(K) and K.format == "csr" and K.nnz * block.shape[1] >= MANY_PRODUCTS
    if not large or K.dtype != block.dtype or not block.flags.c_contiguous:
        return K @ block
    from heatsketch.compiled import products  # numba is loaded when first needed

    out = np.empty((K.shape[0], block.shape[1]), block.dtype)
    # Many more pieces than threads: rows differ in length.
    cuts = np.linspace(0, K.shape[0], 64 + 1).astype(np.intp)

    def fill(start: int, stop: int) -> None:
        products.sparse_product(K.indptr, K.indices, K.data, block, out, start, stop)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, cuts[:-1], cuts[1:]))
    return out


def _in_precision_of(K: Any, weights: Any) -> tuple[Any, Any]:
    """Round the float64 weights once, so that float32 products stay float32."""
    dtype = K.dtype if K.dtype.kind == "f" else np.float64
    return weights.s.astype(dtype), weights.stationary.astype(dtype)
