r"""The heat operator ``A``, defined by its products with blocks of vectors.

.. math:: A = \mathrm{diag}(s) \, K \, \mathrm{diag}(s)

The affinity only has to support ``K @ block``, and ``A`` is never formed. But if the affinity is a
CSR matrix in memory, its values are multiplied by the weights once. Rows of new points have the
same form, :math:`\mathrm{diag}(s_{new}) \, K_{new} \, \mathrm{diag}(s)`, and the same class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from heatsketch._core import kernels
from heatsketch._core.partitioned import RowBlocks
from heatsketch._core.row_chunks import by_chunks, check_length, is_compiled, scaled_values


@dataclass(frozen=True)
class Scaled:
    """``diag(left) K diag(right)`` with a ``K`` that supports products only."""

    K: Any
    left: Any
    right: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.K.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the products, which is a float even if the affinities are integers."""
        return self.left.dtype

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        left, right = self.left, self.right
        if block.ndim > 1:
            left, right = left[:, np.newaxis], right[:, np.newaxis]
        return left * np.asarray(self.K @ (right * block))


@dataclass(frozen=True)
class HeatOperator:
    r"""``A = diag(s_rows) K diag(s)``.

    Attributes
    ----------
    matrix : CSR array, SharedRows or Scaled
        The product of weights and affinities.
    s : array
        Weights of the columns, that is, of the training points.
    stationary : array
        The eigenvector of eigenvalue one, not normalized; for new rows, its extension.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> A = heat_operator(K, symmetric_scaling(K))
    >>> A @ np.eye(2)
    array([[0.66666667, 0.33333333],
           [0.33333333, 0.66666667]])
    >>> A.deflate(np.array([[3.0], [1.0]]))
    array([[ 1.],
           [-1.]])
    """

    matrix: Any
    s: Any
    stationary: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the products."""
        return self.matrix.dtype

    def __matmul__(self, block: Any) -> Any:
        """Multiply a vector, or a block of column vectors."""
        if not self._is_compiled_for(block):
            return self.matrix @ block
        no_sums = np.empty((0, block.shape[1]), block.dtype)
        return self._compiled_step(block, np.zeros(block.shape[1], block.dtype), no_sums)

    def local(self) -> HeatOperator:
        """Return the operator for blocks in the memory of this machine."""
        return self

    def at_columns_of(self, rows: Any) -> tuple[HeatOperator, Any, None]:
        """Return the operator and rows unchanged: all columns are in memory."""
        return self, rows, None

    def stationary_coefficients(self, block: Any) -> Any:
        """Return the coefficient of the stationary direction in each column."""
        # Without BLAS, whose rounding depends on the number of threads.
        sums = chunk_sums(self.stationary, block)
        return stationary_ratio(sums, self.squared_length, np.result_type(self.dtype, block))

    def stationary_part(self, coefficients: Any) -> Any:
        """Return the stationary part of a block with these coefficients."""
        return self.stationary[:, np.newaxis] * coefficients

    def deflate(self, block: Any, *, out: Any = None) -> Any:
        """Remove the stationary direction; ``out`` may be the block itself.

        Its eigenvalue is one and all others are smaller, so after a few hundred products rounding
        errors of this direction would be larger than the rest.
        """
        coefficients = self.stationary_coefficients(block)
        out = np.empty(block.shape, coefficients.dtype) if out is None else out

        def work(start: int, stop: int) -> None:
            some = slice(start * kernels.CHUNK, stop * kernels.CHUNK)
            part = self.stationary[some, np.newaxis] * coefficients
            np.subtract(block[some], part, out=out[some])

        by_chunks(work, len(block))
        return out

    def step(
        self,
        block: Any,
        coefficients: Any,
        *,
        factors: tuple[float, float, float] = (1.0, 0.0, 0.0),
        out: Any = None,
        totals: Any = (),
        terms: Sequence[float] = (),
    ) -> tuple[Any, Any]:
        r"""Take a step of a recurrence, without the stationary direction ``v``.

        .. math:: y = a A (x - v w) + b x - g z = a (A x - v w) + b x - g z

        Parameters
        ----------
        block : array of shape (n, k)
            The block ``x``.
        coefficients : array of shape (k,)
            Its stationary coefficients ``w``, as returned by the previous step.
        factors : tuple of float, default=(1.0, 0.0, 0.0)
            ``a``, ``b`` and ``g``.
        out : array of shape (n, k), optional
            The block ``z``, whose memory may be reused for ``y``.
        totals : list or array of blocks
            To each of them a multiple of ``y`` is added in place.
        terms : sequence of float
            The factors of these multiples.

        Returns
        -------
        y : array of shape (n, k)
        coefficients : array of shape (k,)
            The stationary coefficients of ``y``.

        Examples
        --------
        >>> import numpy as np
        >>> from heatsketch.diffusion import heat_operator, symmetric_scaling
        >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
        >>> A = heat_operator(K, symmetric_scaling(K))
        >>> x = np.array([[3.0], [1.0]])
        >>> y, _ = A.step(x, A.stationary_coefficients(x))
        >>> bool(np.allclose(y, A @ A.deflate(x)))
        True
        """
        block = np.ascontiguousarray(block)  # so that results do not depend on the layout
        recurrence = {"factors": factors, "out": out, "totals": totals, "terms": terms}
        if self._is_compiled_for(block):
            y, sums = self.step_of_rows(block, coefficients, **recurrence)
        elif hasattr(self.matrix, "step") and self.matrix.dtype == block.dtype:
            # SharedRows also computes a step in one pass.
            y, sums = self.matrix.step(self.stationary, block, coefficients, **recurrence)
        else:
            a, b, g = factors
            y = a * (self.matrix @ (block - self.stationary_part(coefficients)))
            if b:
                y += b * block
            if g:
                y -= g * out
            for total, term in zip(totals, terms, strict=True):
                total += term * y
            return y, self.stationary_coefficients(y)
        return y, stationary_ratio(sums, self.squared_length, y.dtype)

    def step_of_rows(self, block: Any, coefficients: Any, **recurrence: Any) -> tuple[Any, Any]:
        """Take the step of :meth:`step` in some or all rows of a CSR matrix.

        The columns of the matrix are these rows, followed by the rows of ``halo``, if given.
        Returns the rows of ``y``, and ``v @ y`` over each chunk of them.
        """
        sums = _room_for_sums((self.shape[0], block.shape[1]), block.dtype)
        return self._compiled_step(block, coefficients, sums, **recurrence), sums

    def _is_compiled_for(self, block: Any) -> bool:
        return (
            block.ndim == 2
            and block.flags.c_contiguous
            and sparse.issparse(self.matrix)
            and self.matrix.dtype == block.dtype
        )

    def _compiled_step(
        self,
        block: Any,
        w: Any,
        sums: Any,
        *,
        halo: Any = None,
        factors: Any = (1, 0, 0),
        out: Any = None,
        totals: Any = (),
        terms: Any = (),
    ) -> Any:
        """Take a step in one pass over memory, and sum ``v @ y`` by chunks of rows."""
        matrix, shape, dtype = self.matrix, (self.shape[0], block.shape[1]), block.dtype
        if out is None:
            out = _aligned(shape, dtype)
        if not len(terms):
            totals = np.empty((0, *shape), dtype)
        halo = block[:0] if halo is None else halo
        check_length("block", block, matrix.shape[1] - len(halo))
        recurrence = w, np.array(factors, dtype), totals, np.array(terms, dtype), sums
        arrays = matrix.indptr, matrix.indices, matrix.data, block, halo, out, self.stationary
        by_chunks(partial(kernels.heat_step, *arrays, *recurrence), shape[0])
        return out

    @cached_property
    def squared_length(self) -> Any:
        """Squared length of the stationary direction."""
        sums = chunk_sums(self.stationary, self.stationary[:, np.newaxis])
        return stationary_ratio(sums, 1.0, np.float64)[0]


def heat_operator(K: Any, scaling: Any) -> HeatOperator:
    r"""Heat operator :math:`A = \mathrm{diag}(s) K \mathrm{diag}(s)`.

    Parameters
    ----------
    K : object that supports ``K @ block``
        Affinity of the training points.
    scaling : Scaling
        From ``symmetric_scaling(K)`` or ``bistochastic_scaling(K)``, for instance.

    Returns
    -------
    HeatOperator

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch.diffusion import bistochastic_scaling, heat_operator
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> heat_operator(K, bistochastic_scaling(K)) @ np.ones(2)
    array([1., 1.])
    """
    s, stationary = scaling(K, is_training=True)
    return _scaled(K, s, s, stationary)


def heat_rows(K_new: Any, scaling: Any, A: HeatOperator) -> HeatOperator:
    r"""Rows of the heat operator for new points.

    Parameters
    ----------
    K_new : object that supports ``K_new @ block``
        Affinity of new points (rows) to training points (columns).
    scaling : Scaling
        The scaling of the training points.
    A : HeatOperator
        The heat operator of the training points.

    Returns
    -------
    HeatOperator
    """
    s, stationary = scaling(K_new)
    return _scaled(K_new, s, A.s, stationary)


def _scaled(K: Any, left: Any, right: Any, stationary: Any) -> HeatOperator:
    """Multiply float64 weights into the values, or apply them around products."""
    dtype = K.dtype if K.dtype.kind == "f" else np.float64
    stationary = stationary.astype(dtype)
    if isinstance(K, RowBlocks):
        return K.heat_operator(left, right, stationary)
    if is_compiled(K):
        return HeatOperator(scaled_matrix(K, left, right), right, stationary)
    matrix = Scaled(K, np.asarray(left, dtype), np.asarray(right, dtype))
    return HeatOperator(matrix, right, np.asarray(stationary))


def scaled_matrix(K: Any, left: Any, right: Any) -> sparse.csr_array:
    """Return ``diag(left) K diag(right)`` for a CSR matrix ``K``."""
    values = scaled_values(K, left, right)
    return sparse.csr_array((values, K.indices, K.indptr), shape=K.shape)


def multiply_block(matrix: sparse.csr_array, block: np.ndarray) -> np.ndarray:
    """Multiply a block of columns by a CSR matrix, in fixed order if their dtypes are equal."""
    return HeatOperator(matrix, None, np.zeros(matrix.shape[0], block.dtype)) @ block


def stationary_ratio(sums: np.ndarray, squared_length: float, dtype: Any) -> np.ndarray:
    """Return coefficients from the sums over chunks, added in order."""
    total = np.cumsum(sums, axis=0, dtype=np.float64)[-1]
    return (total / squared_length).astype(dtype)


def chunk_sums(v: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return ``v @ block`` over each chunk of rows, in float64."""
    check_length("block", block, len(v))
    sums = _room_for_sums(block.shape, np.float64)
    arrays = v, np.ascontiguousarray(block), sums
    by_chunks(partial(kernels.stationary_sums, *arrays), len(block))
    return sums


def _room_for_sums(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    sums = _aligned((-(-shape[0] // kernels.CHUNK), shape[1]), np.dtype(dtype))
    sums[:] = 0
    return sums


def _aligned(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return an empty block aligned to cache lines, so that each row spans fewer of them."""
    line, size = 64, shape[0] * shape[1] * dtype.itemsize
    memory = np.empty(size + line, np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + size].view(dtype).reshape(shape)
