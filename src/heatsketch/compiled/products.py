r"""A sparse matrix times a block, and all that a recurrence does besides.

.. math:: y = a (A x - v w) + b x - g y, \qquad t_j \leftarrow t_j + c_j y, \qquad v^T y

Every product is the plain sum of its row's stored entries, from left to right, each product and
each sum rounded once: what scipy computes, bit for bit, wherever the rows are cut. Sums down the
rows are taken in float64 over chunks of rows that never change.

Why an intrinsic. Written as nested loops, ``y[i, c] += value * x[j, c]`` does become vector
instructions, but since the number of columns is known only at run time the running sums stay in
memory: every stored entry loads and stores them again, and starts a loop over the columns anew,
which takes twice the time. A vector of known width stays in registers, to the end of the step.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from heatsketch.compiled._compile import compile_loop, spread

__all__ = ["CHUNK", "heat_step", "scaled_values", "stationary_sums"]

# Rows whose sum is taken on its own. Part of what the bits are: never a matter of tuning.
CHUNK = 1024


@compile_loop
def scaled_values(indptr, indices, data, left, right, out, start, stop):
    """Set the values in some chunks of rows to ``left[i] * right[j]`` times as much."""
    for i in range(start * CHUNK, min(stop * CHUNK, len(indptr) - 1)):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = data[e] * (left[i] * right[indices[e]])


@compile_loop
def stationary_sums(v, block, sums, start, stop):
    """Set ``sums[c]`` to ``v @ block`` over the rows of chunk ``c``, for some chunks."""
    for chunk in range(start, stop):
        sums[chunk] = 0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, block.shape[0])):
            for c in range(block.shape[1]):
                sums[chunk, c] += np.float64(v[i]) * np.float64(block[i, c])


@intrinsic(prefer_literal=True)
def _step_tile(typing, matrix, x, out, v, w, factors, totals, terms, sums, place, n_bytes):
    """Take one row's step in a few columns, as many as ``n_bytes`` hold; 0 mean one.

    ``matrix`` is (indices, data); ``place`` is (row, first entry, last entry, column, chunk).
    The generated code reads, with ``s``, ``y`` and ``x[...]`` such vectors::

        s = 0
        for e in range(first, last):
            s = s + data[e] * x[indices[e]]
        a, b, g = factors
        y = a * (s - v[row] * w)
        if b != 0: y = y + b * x[row]
        if g != 0: y = y - g * out[row]
        out[row] = y
        sums[chunk] = sums[chunk] + v[row] * y     (in float64)
        for t in range(len(terms)):
            if terms[t] != 0: totals[t, row] = totals[t, row] + terms[t] * y
    """
    arrays = (*matrix.types, x, out, v, w, factors, totals, terms, sums)
    if any(not isinstance(a, types.Array) or a.layout != "C" for a in arrays):
        raise TypingError("arrays must be C-contiguous")
    floats = {a.dtype for a in arrays[1:-1]}
    if len(floats) > 1 or x.dtype not in (types.float32, types.float64):
        raise TypingError("all arrays must share one dtype, float32 or float64")
    if not isinstance(n_bytes, types.IntegerLiteral):
        raise TypingError("n_bytes must be a literal: it is a number of registers")
    place = types.UniTuple(types.intp, 5)
    signature = types.void(matrix, x, out, v, w, factors, totals, terms, sums, place, n_bytes)

    def generate(context, builder, signature, args):
        _StepCode(context, builder, signature, args).write()
        return context.get_dummy_value()

    return signature, generate


class _StepCode:
    """The instructions of :func:`_step_tile`."""

    def __init__(self, context, builder, signature, args):
        self.context, self.builder = context, builder
        matrix, *kinds = signature.args[:9]
        matrix, *values = args[:9]
        kinds = [*signature.args[0].types, *kinds]
        values = [*cgutils.unpack_tuple(builder, matrix), *values]
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(kinds, values, strict=True)
        ]
        (self.indices, self.data, self.x, self.out, self.v, self.w) = (a.data for a in arrays[:6])
        (self.factors, self.totals, self.terms, self.sums) = (a.data for a in arrays[6:])
        self.index = kinds[0].dtype
        self.n_rows, self.n_columns = cgutils.unpack_tuple(builder, arrays[3].shape)
        self.n_terms = cgutils.unpack_tuple(builder, arrays[8].shape)[0]
        place = cgutils.unpack_tuple(builder, args[9])
        self.row, self.first, self.last, self.column, self.chunk = place
        self.number = context.get_value_type(kinds[2].dtype)
        self.size = kinds[2].dtype.bitwidth // 8  # all the alignment that numpy promises
        width = max(1, signature.args[10].literal_value // self.size)
        self.vector = ir.VectorType(self.number, width)
        self.wide = ir.VectorType(ir.DoubleType(), width)

    def write(self):
        builder = self.builder
        y = cgutils.alloca_once_value(builder, ir.Constant(self.vector, None))
        with cgutils.for_range_slice(
            builder, self.first, self.last, self.first.type(1), self.first.type
        ) as (e, _):
            row = builder.load(builder.gep(self.indices, [e]))
            row = self.context.cast(builder, row, self.index, types.intp)
            x = self.load(self.x, self.place(row))
            self.add(y, self.number_at(self.data, e), x)
        self.combine(y)
        y = builder.load(y)
        self.store(y, self.out, self.place(self.row))
        self.sum_down(y)
        self.add_to_totals(y)

    def combine(self, y):
        builder, here = self.builder, self.place(self.row)
        a, b, g = (self.number_at(self.factors, ir.IntType(64)(i)) for i in range(3))
        v = spread(builder, self.number_at(self.v, self.row), self.vector)
        part = builder.fmul(v, self.load(self.w, self.column))
        product = builder.fsub(builder.load(y), part)
        builder.store(builder.fmul(spread(builder, a, self.vector), product), y)
        with builder.if_then(self.not_zero(b)):
            self.add(y, b, self.load(self.x, here))
        with builder.if_then(self.not_zero(g)):
            self.add(y, builder.fneg(g), self.load(self.out, here))

    def sum_down(self, y):
        builder = self.builder
        place = builder.add(builder.mul(self.chunk, self.n_columns), self.column)
        v = self.number_at(self.v, self.row)
        if self.size == 4:
            v, y = builder.fpext(v, ir.DoubleType()), builder.fpext(y, self.wide)
        product = builder.fmul(spread(builder, v, self.wide), y)
        total = builder.fadd(self.load(self.sums, place, self.wide), product)
        self.store(total, self.sums, place)

    def add_to_totals(self, y):
        builder = self.builder
        length = builder.mul(self.n_rows, self.n_columns)
        with cgutils.for_range(builder, self.n_terms) as loop:
            term = self.number_at(self.terms, loop.index)
            place = builder.add(builder.mul(loop.index, length), self.place(self.row))
            with builder.if_then(self.not_zero(term)):
                product = builder.fmul(spread(builder, term, self.vector), y)
                self.store(builder.fadd(self.load(self.totals, place), product), self.totals, place)

    # --- single instructions ----------------------------------------------------------------

    def place(self, row):
        return self.builder.add(self.builder.mul(row, self.n_columns), self.column)

    def number_at(self, array, place):
        return self.builder.load(self.builder.gep(array, [place]))

    def not_zero(self, number):
        return self.builder.fcmp_unordered("!=", number, number.type(0.0))

    def add(self, y, number, x):
        product = self.builder.fmul(spread(self.builder, number, self.vector), x)
        self.builder.store(self.builder.fadd(self.builder.load(y), product), y)

    def load(self, array, place, vector=None):
        pointer = self.builder.gep(array, [place])
        pointer = self.builder.bitcast(pointer, (vector or self.vector).as_pointer())
        return self.builder.load(pointer, align=self.size)

    def store(self, value, array, place):
        pointer = self.builder.bitcast(self.builder.gep(array, [place]), value.type.as_pointer())
        self.builder.store(value, pointer, align=self.size)


@njit(inline="always")
def _step_row(matrix, x, out, v, w, factors, totals, terms, sums, i, first, last, chunk):
    """Take one row's step: tiles of 256 bytes, then what remains in halves.

    256 bytes fill 4 registers of AVX-512, 8 of AVX2, 16 of NEON: enough of them to
    hide the latency of an addition, and nowhere more than there are.
    """
    n_columns, tile, c = x.shape[1], 256 // x.itemsize, 0
    while c + tile <= n_columns:
        place = (i, first, last, c, chunk)
        _step_tile(matrix, x, out, v, w, factors, totals, terms, sums, place, 256)
        c += tile
    if c + tile // 2 <= n_columns:
        place = (i, first, last, c, chunk)
        _step_tile(matrix, x, out, v, w, factors, totals, terms, sums, place, 128)
        c += tile // 2
    if c + tile // 4 <= n_columns:
        place = (i, first, last, c, chunk)
        _step_tile(matrix, x, out, v, w, factors, totals, terms, sums, place, 64)
        c += tile // 4
    if c + tile // 8 <= n_columns:
        place = (i, first, last, c, chunk)
        _step_tile(matrix, x, out, v, w, factors, totals, terms, sums, place, 32)
        c += tile // 8
    while c < n_columns:
        place = (i, first, last, c, chunk)
        _step_tile(matrix, x, out, v, w, factors, totals, terms, sums, place, 0)
        c += 1


@compile_loop
def heat_step(indptr, indices, data, x, out, v, w, factors, totals, terms, sums, start, stop):
    """Take the step of the module's formula in some chunks of rows; ``out`` is ``y``."""
    for chunk in range(start, stop):
        sums[chunk] = 0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, out.shape[0])):
            _step_row(
                (indices, data),
                x,
                out,
                v,
                w,
                factors,
                totals,
                terms,
                sums,
                i,
                indptr[i],
                indptr[i + 1],
                chunk,
            )
