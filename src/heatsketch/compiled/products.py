"""A sparse matrix times a block.

Every entry is the plain sum of its row's stored entries, from left to right, each product and
each sum rounded once: what scipy computes, bit for bit, wherever the rows are cut.

Why an intrinsic. Written as nested loops, ``out[i, c] += value * block[j, c]`` does become
vector instructions, but since the number of columns is known only at run time the running sums
stay in memory: every stored entry loads and stores them again, and starts a loop over the
columns anew, which takes twice the time. A vector of known width stays in registers.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from heatsketch.compiled._compile import compile_loop, spread

__all__ = ["sparse_product"]


@intrinsic(prefer_literal=True)
def _sum_entries(typing, sums, at, data, indices, first, last, block, column, n_bytes):
    """Set ``sums[at:]`` to ``data[first:last] @ block[indices[first:last], column:]``.

    ``sums`` is taken as flat, and only a vector of ``n_bytes`` of it is set; 0 bytes mean
    a single number. The generated loop reads, with ``s`` and ``x`` such vectors::

        s = 0
        for e in range(first, last):
            x = block[indices[e], column : column + width]
            s = s + data[e] * x
    """
    arrays = (sums, data, indices, block)
    if any(not isinstance(a, types.Array) or a.layout != "C" for a in arrays):
        raise TypingError("arrays must be C-contiguous")
    same = sums.dtype == data.dtype == block.dtype
    if not same or data.dtype not in (types.float32, types.float64):
        raise TypingError("values, block and sums must share one dtype, float32 or float64")
    if not isinstance(n_bytes, types.IntegerLiteral):
        raise TypingError("n_bytes must be a literal: it is a number of registers")
    intp = types.intp
    signature = types.void(sums, intp, data, indices, intp, intp, block, intp, n_bytes)

    def generate(context, builder, signature, args):
        structs = [
            context.make_array(signature.args[a])(context, builder, args[a]) for a in (0, 2, 3, 6)
        ]
        sums, data, indices, block = (struct.data for struct in structs)
        n_columns = cgutils.unpack_tuple(builder, structs[3].shape)[1]
        _, at, _, _, first, last, _, column, _ = args
        number = signature.args[2].dtype
        size = number.bitwidth // 8  # all the alignment that numpy promises
        width = max(1, signature.args[8].literal_value // size)
        vector = ir.VectorType(context.get_value_type(number), width)
        s = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        with cgutils.for_range_slice(builder, first, last, first.type(1), first.type) as (e, _):
            row = builder.load(builder.gep(indices, [e]))
            row = context.cast(builder, row, signature.args[3].dtype, intp)
            x = builder.gep(block, [builder.add(builder.mul(row, n_columns), column)])
            x = builder.load(builder.bitcast(x, vector.as_pointer()), align=size)
            value = spread(builder, builder.load(builder.gep(data, [e])), vector)
            builder.store(builder.fadd(builder.load(s), builder.fmul(value, x)), s)
        target = builder.bitcast(builder.gep(sums, [at]), vector.as_pointer())
        builder.store(builder.load(s), target, align=size)
        return context.get_dummy_value()

    return signature, generate


@njit(inline="always")
def _sum_row(sums, at, data, indices, first, last, block):
    """Set ``sums[at:]`` to one row's product: tiles of 256 bytes, then what remains in halves.

    256 bytes fill 4 registers of AVX-512, 8 of AVX2, 16 of NEON: enough of them to
    hide the latency of an addition, and nowhere more than there are.
    """
    n_columns, tile, column = block.shape[1], 256 // data.itemsize, 0
    while column + tile <= n_columns:
        _sum_entries(sums, at + column, data, indices, first, last, block, column, 256)
        column += tile
    if column + tile // 2 <= n_columns:
        _sum_entries(sums, at + column, data, indices, first, last, block, column, 128)
        column += tile // 2
    if column + tile // 4 <= n_columns:
        _sum_entries(sums, at + column, data, indices, first, last, block, column, 64)
        column += tile // 4
    if column + tile // 8 <= n_columns:
        _sum_entries(sums, at + column, data, indices, first, last, block, column, 32)
        column += tile // 8
    while column < n_columns:
        _sum_entries(sums, at + column, data, indices, first, last, block, column, 0)
        column += 1


@compile_loop
def sparse_product(indptr, indices, data, block, out, start, stop):
    """Set some rows of ``out`` to those of the CSR matrix times ``block``."""
    n_columns = out.shape[1]
    for i in range(start, stop):
        _sum_row(out, i * n_columns, data, indices, indptr[i], indptr[i + 1], block)
