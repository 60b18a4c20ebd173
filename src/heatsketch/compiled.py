"""The loops that numba compiles, and the only file that imports numba.

It is imported when a loop is first needed, never by ``import heatsketch``.

Only additions, multiplications, divisions and square roots of IEEE numbers
appear here, without ``fastmath``: each is rounded in one prescribed way, so that
every machine computes the same bits. That is why logarithm, sine and cosine are
written out as polynomials instead of being taken from a mathematics library,
whose last digits differ from machine to machine.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

__all__ = ["gaussian_entries", "philox", "rademacher_entries", "sparse_product"]

# Philox4x64-10 of Salmon et al. (2011), the generator behind numpy.random.Philox.
_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

_SQRT_2 = 1.4142135623730951
_LOG_2 = 0.6931471805599453
_OCTANT = math.pi / 4 * 2.0**-29  # an eighth of a turn in 2**29 steps

# Taylor coefficients, highest first, exact to 1e-17 where they are used:
# 2 atanh(s) / 2s for |s| <= 0.172, sin(y) / y and cos(y) for y <= pi / 4.
_ATANH = tuple(1 / (2 * i + 1) for i in range(9, -1, -1))
_SIN = tuple((-1) ** i / math.factorial(2 * i + 1) for i in range(8, -1, -1))
_COS = tuple((-1) ** i / math.factorial(2 * i) for i in range(8, -1, -1))


def _compile(function):
    """Compile once and keep the result on disk, or once a process where no folder is writable."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


@njit(inline="always")
def _high_64(a, b):
    """Return the upper half of the 128-bit product."""
    a_low, a_high = a & _LOW_32, a >> _32
    b_low, b_high = b & _LOW_32, b >> _32
    middle = a_high * b_low + ((a_low * b_low) >> _32)
    carry = a_low * b_high + (middle & _LOW_32)
    return a_high * b_high + (middle >> _32) + (carry >> _32)


@_compile
def philox(c0, c1, c2, c3, k0, k1):
    """Return the four words of Philox4x64-10 at a counter, under a key."""
    for _ in range(10):
        high_0, high_1 = _high_64(_MULTIPLIER_0, c0), _high_64(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = (
            high_1 ^ c1 ^ k0,
            _MULTIPLIER_1 * c2,
            high_0 ^ c3 ^ k1,
            _MULTIPLIER_0 * c0,
        )
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@njit(inline="always")
def _horner(coefficients, z):
    value = coefficients[0]
    for i in range(1, len(coefficients)):
        value = value * z + coefficients[i]
    return value


@_compile
def _box_muller(words, pairs, uniform, bits):
    """Turn each word into two independent Gaussians; ``bits`` views ``uniform``.

    The high half of a word gives the radius, the low half the direction: 29 bits
    within an octant, one bit that swaps the two coordinates, and their two signs.
    """
    for j in range(words.size):
        uniform[j] = np.float64(np.int64(words[j] >> _32)) + 0.5
    for j in range(words.size):
        # log(uniform / 2**32) = exponent * log 2 + log(mantissa)
        exponent = (bits[j] >> 52) - (1023 + 32)
        bits[j] = (bits[j] & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000
        mantissa = uniform[j]
        above = mantissa > _SQRT_2
        mantissa = 0.5 * mantissa if above else mantissa
        exponent = exponent + 1 if above else exponent
        s = (mantissa - 1.0) / (mantissa + 1.0)
        log_uniform = np.float64(exponent) * _LOG_2 + 2.0 * s * _horner(_ATANH, s * s)
        radius = math.sqrt(-2.0 * log_uniform)

        low = words[j] & _LOW_32
        angle = (np.float64(np.int64(low & np.uint64(0x1FFFFFFF))) + 0.5) * _OCTANT
        z = angle * angle
        cosine, sine = radius * _horner(_COS, z), radius * (angle * _horner(_SIN, z))
        swap = (low >> np.uint64(29)) & np.uint64(1)
        first = sine if swap else cosine
        second = cosine if swap else sine
        pairs[2 * j] = -first if (low >> np.uint64(30)) & np.uint64(1) else first
        pairs[2 * j + 1] = -second if (low >> np.uint64(31)) & np.uint64(1) else second


@_compile
def gaussian_entries(out, rows, first_column, address, key):
    """Fill ``out[i, j]`` with the Gaussian of row ``rows[i]``, column ``first_column + j``."""
    n_columns = out.shape[1]
    first_tile, last_tile = first_column // 8, (first_column + n_columns + 7) // 8
    words = np.empty(4 * (last_tile - first_tile), np.uint64)
    pairs = np.empty(2 * words.size)
    uniform = np.empty(words.size)
    bits = uniform.view(np.int64)
    offset = first_column - 8 * first_tile
    for i in range(out.shape[0]):
        for tile in range(last_tile - first_tile):
            q = 4 * tile
            counter = np.uint64(first_tile + tile)
            words[q], words[q + 1], words[q + 2], words[q + 3] = philox(
                counter, rows[i], address[0], address[1], key[0], key[1]
            )
        _box_muller(words, pairs, uniform, bits)
        for j in range(n_columns):
            out[i, j] = pairs[offset + j]


@_compile
def rademacher_entries(out, rows, first_column, address, key):
    """Fill ``out[i, j]`` with the sign of row ``rows[i]``, column ``first_column + j``."""
    for i in range(out.shape[0]):
        tile, words = -1, (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for j in range(out.shape[1]):
            column = first_column + j
            if column // 256 != tile:
                tile = column // 256
                words = philox(np.uint64(tile), rows[i], address[0], address[1], key[0], key[1])
            word = words[(column % 256) // 64]
            out[i, j] = 1.0 - 2.0 * np.float64((word >> np.uint64(column % 64)) & np.uint64(1))


# --- a sparse matrix times a block ----------------------------------------------------------
#
# Every entry is the plain sum of its row's stored entries, from left to right, each product and
# each sum rounded once: what scipy computes, bit for bit, wherever the rows are cut.
#
# Why an intrinsic. Written as nested loops, ``out[i, c] += value * block[j, c]`` does become
# vector instructions, but since the number of columns is known only at run time the running sums
# stay in memory: every stored entry loads and stores them again, and starts a loop over the
# columns anew, which takes twice the time. A vector of known width stays in registers.


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
            value = _spread(builder, builder.load(builder.gep(data, [e])), vector)
            builder.store(builder.fadd(builder.load(s), builder.fmul(value, x)), s)
        target = builder.bitcast(builder.gep(sums, [at]), vector.as_pointer())
        builder.store(builder.load(s), target, align=size)
        return context.get_dummy_value()

    return signature, generate


def _spread(builder, value, vector):
    """Return the vector all of whose entries are ``value``."""
    lane = ir.IntType(32)
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, value, lane(0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(lane, vector.count), None))


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


@_compile
def sparse_product(indptr, indices, data, block, out, start, stop):
    """Set some rows of ``out`` to those of the CSR matrix times ``block``."""
    n_columns = out.shape[1]
    for i in range(start, stop):
        _sum_row(out, i * n_columns, data, indices, indptr[i], indptr[i + 1], block)
