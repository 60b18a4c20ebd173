r"""A sparse matrix times a block, and all that a recurrence does besides.

.. math:: y = a (A x - v w) + b x - g y, \qquad t_j \leftarrow t_j + c_j y, \qquad v^T y

Every product is the plain sum of its row's stored entries, from left to right, each product and
each sum rounded once: what scipy computes, bit for bit, wherever the rows are cut. Sums down the
rows are taken over chunks of rows that never change; those of a step, which tell how much of ``v``
rounding has put back, in the precision of the block.

Why an intrinsic. Written as nested loops, ``y[i, c] += value * x[j, c]`` does become vector
instructions, but since the number of columns is known only at run time the running sums stay in
memory: every stored entry loads and stores them again, and starts a loop over the columns anew,
which takes twice the time. A vector of known width stays in registers, to the end of the step.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from heatsketch.compiled._compile import compile_loop, spread

__all__ = [
    "CHUNK",
    "heat_step",
    "positive_places",
    "row_products",
    "scaled_values",
    "segment_sums",
    "spread_step",
    "stationary_sums",
]

# Rows whose sum is taken on its own. Part of what the bits are: never a matter of tuning.
CHUNK = 1024


@compile_loop
def scaled_values(indptr, indices, data, left, right, out, start, stop):
    """Set the values in some chunks of rows to ``left[i] * right[j]`` times as much."""
    for i in range(start * CHUNK, min(stop * CHUNK, len(indptr) - 1)):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = data[e] * (left[i] * right[indices[e]])


@compile_loop
def row_products(indptr, indices, data, vector, out, start, stop):
    """Set some chunks of rows of ``out`` to the matrix times a vector, summed in float64."""
    for i in range(start * CHUNK, min(stop * CHUNK, len(out))):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[e]) * vector[indices[e]]
        out[i] = total


@compile_loop
def segment_sums(block, starts, out, start, stop):
    """Set some chunks of rows of ``out`` to sums of rows from one start to the next, in float64."""
    total = np.empty(block.shape[1])
    for u in range(start * CHUNK, min(stop * CHUNK, len(out))):
        if starts[u + 1] == starts[u] + 1:
            out[u] = block[starts[u]]
            continue
        total[:] = 0
        for i in range(starts[u], starts[u + 1]):
            for c in range(block.shape[1]):
                total[c] += block[i, c]
        for c in range(block.shape[1]):
            out[u, c] = total[c]


@compile_loop
def spread_step(product, places, x, b, g, out, totals, terms, v, sums, start, stop):
    """Take the step of the module's formula in rows that share those of ``product``."""
    n_columns = x.shape[1]
    for i in range(start * CHUNK, min(stop * CHUNK, len(out))):
        u, chunk = places[i], i // CHUNK
        if g != 0:  # else there may be anything in out
            for c in range(n_columns):
                out[i, c] = product[u, c] + b * x[i, c] - g * out[i, c]
        else:
            for c in range(n_columns):
                out[i, c] = product[u, c] + b * x[i, c]
        for c in range(n_columns):
            sums[chunk, c] += v[i] * out[i, c]
        for t in range(len(terms)):
            for c in range(n_columns):
                totals[t, i, c] += terms[t] * out[i, c]


@compile_loop
def positive_places(indptr, data, place, out, start, stop):
    """Set ``out`` to the ``place``-th smallest entry above zero of each row, or to the last one."""
    smallest = np.empty(place, data.dtype)  # so far, in order; a sort would make an array a row
    for i in range(start * CHUNK, min(stop * CHUNK, len(out))):
        n_found = 0
        for e in range(indptr[i], indptr[i + 1]):
            value = data[e]
            if value <= 0 or (n_found == place and value >= smallest[place - 1]):
                continue
            n_found = min(n_found + 1, place)
            p = n_found - 1
            while p > 0 and smallest[p - 1] > value:
                smallest[p] = smallest[p - 1]
                p -= 1
            smallest[p] = value
        if n_found:
            out[i] = smallest[n_found - 1]


@compile_loop
def stationary_sums(v, block, sums, start, stop):
    """Add ``v @ block`` over the rows of chunk ``c`` to ``sums[c]``, for some chunks."""
    for i in range(start * CHUNK, min(stop * CHUNK, block.shape[0])):
        total, row, weight = sums[i // CHUNK], block[i], np.float64(v[i])
        for c in range(len(row)):
            total[c] += weight * np.float64(row[c])


@intrinsic(prefer_literal=True)
def _step_tile(typing, matrix, block, out, v, w, factors, totals, terms, sums, i, column, n_bytes):
    """Take the step of row ``i`` in a few columns, as many as ``n_bytes`` hold; 0 mean one.

    ``matrix`` is (indptr, indices, data), ``block`` (x, halo), ``factors`` (a, b, g). The generated
    code reads, with ``y`` and ``x[...]`` such vectors, and ``(x, halo)[j]`` one of ``x`` as far as
    that goes, then of ``halo``::

        y = 0
        for e in range(indptr[i], indptr[i + 1]):
            y = y + data[e] * (x, halo)[indices[e]]
        y = a * (y - v[i] * w)
        if b != 0: y = y + b * x[i]
        if g != 0: y = y - g * out[i]
        out[i] = y
        if len(sums): sums[i // CHUNK] = sums[i // CHUNK] + v[i] * y
        for t in range(len(terms)):
            if terms[t] != 0: totals[t, i] = totals[t, i] + terms[t] * y
    """
    arrays = (*matrix.types, *block.types, out, v, w, factors, totals, terms, sums)
    if any(not isinstance(a, types.Array) or a.layout != "C" for a in arrays):
        raise TypingError("arrays must be C-contiguous")
    floats = {a.dtype for a in arrays[2:]}
    if len(floats) > 1 or not floats <= {types.float32, types.float64}:
        raise TypingError("all arrays must share one dtype, float32 or float64")
    if not isinstance(n_bytes, types.IntegerLiteral):
        raise TypingError("n_bytes must be a literal: it is a number of registers")
    intp = types.intp
    rest = out, v, w, factors, totals, terms, sums, intp, intp, n_bytes
    signature = types.void(matrix, block, *rest)

    def generate(context, builder, signature, args):
        _StepCode(context, builder, signature, args).write()
        return context.get_dummy_value()

    return signature, generate


class _StepCode:
    """The instructions of :func:`_step_tile`."""

    def __init__(self, context, builder, signature, args):
        self.context, self.builder = context, builder
        tuples, kinds = signature.args[:2], signature.args[2:9]
        kinds = [kind for one in tuples for kind in one.types] + list(kinds)
        values = [value for one in args[:2] for value in cgutils.unpack_tuple(builder, one)]
        values += args[2:9]
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(kinds, values, strict=True)
        ]
        self.indptr, self.indices, self.data, self.x, halo, self.out = (a.data for a in arrays[:6])
        self.v, self.w, self.factors, self.totals, self.terms, self.sums = (
            a.data for a in arrays[6:]
        )
        self.pointer, self.index = kinds[0].dtype, kinds[1].dtype
        self.n_rows, self.n_columns = cgutils.unpack_tuple(builder, arrays[5].shape)
        self.n_own = cgutils.unpack_tuple(builder, arrays[3].shape)[0]
        self.n_terms = cgutils.unpack_tuple(builder, arrays[10].shape)[0]
        self.n_sums = cgutils.unpack_tuple(builder, arrays[11].shape)[0]
        # Where the halo would begin if its rows were counted from 0.
        before = builder.neg(builder.mul(self.n_own, self.n_columns))
        self.halo = builder.gep(halo, [before])
        self.i, self.column = args[9:11]
        self.number = context.get_value_type(kinds[3].dtype)
        self.size = kinds[3].dtype.bitwidth // 8  # all the alignment that numpy promises
        width = max(1, signature.args[11].literal_value // self.size)
        self.vector = ir.VectorType(self.number, width)

    def write(self):
        y = self.product(self.i)
        self.combine(y, self.i)
        y = self.builder.load(y)
        self.store(y, self.out, self.place(self.i))
        with self.builder.if_then(self.builder.icmp_signed(">", self.n_sums, self.n_sums.type(0))):
            self.sum_down(y, self.i)
        self.add_to_totals(y, self.i)

    def product(self, i):
        y = cgutils.alloca_once_value(self.builder, ir.Constant(self.vector, None))
        first = self.whole_at(self.indptr, i, self.pointer)
        last = self.whole_at(self.indptr, self.builder.add(i, i.type(1)), self.pointer)
        with self.loop(first, last) as (e, _):
            j = self.whole_at(self.indices, e, self.index)
            is_own = self.builder.icmp_signed("<", j, self.n_own)
            x = self.builder.select(is_own, self.x, self.halo)
            self.add(y, self.number_at(self.data, e), self.load(x, self.place(j)))
        return y

    def combine(self, y, i):
        builder, here = self.builder, self.place(i)
        a, b, g = (self.number_at(self.factors, i.type(place)) for place in range(3))
        self.add(y, builder.fneg(self.number_at(self.v, i)), self.load(self.w, self.column))
        builder.store(builder.fmul(spread(builder, a, self.vector), builder.load(y)), y)
        with builder.if_then(self.not_zero(b)):
            self.add(y, b, self.load(self.x, here))
        with builder.if_then(self.not_zero(g)):
            self.add(y, builder.fneg(g), self.load(self.out, here))

    def sum_down(self, y, i):
        builder, place = self.builder, self.place(self.builder.udiv(i, i.type(CHUNK)))
        product = builder.fmul(spread(builder, self.number_at(self.v, i), self.vector), y)
        self.store(builder.fadd(self.load(self.sums, place), product), self.sums, place)

    def add_to_totals(self, y, i):
        builder = self.builder
        length = builder.mul(self.n_rows, self.n_columns)
        with self.loop(i.type(0), self.n_terms) as (t, _):
            term, place = self.number_at(self.terms, t), builder.mul(t, length)
            place = builder.add(place, self.place(i))
            with builder.if_then(self.not_zero(term)):
                product = builder.fmul(spread(builder, term, self.vector), y)
                self.store(builder.fadd(self.load(self.totals, place), product), self.totals, place)

    # --- single instructions ----------------------------------------------------------------

    def place(self, row):
        return self.builder.add(self.builder.mul(row, self.n_columns), self.column)

    def loop(self, first, last):
        return cgutils.for_range_slice(self.builder, first, last, first.type(1), first.type)

    def whole_at(self, array, place, kind):
        return self.context.cast(self.builder, self.number_at(array, place), kind, types.intp)

    def number_at(self, array, place):
        return self.builder.load(self.builder.gep(array, [place]))

    def not_zero(self, number):
        return self.builder.fcmp_unordered("!=", number, number.type(0.0))

    def add(self, y, number, x):
        product = self.builder.fmul(spread(self.builder, number, self.vector), x)
        self.builder.store(self.builder.fadd(self.builder.load(y), product), y)

    def load(self, array, place):
        pointer = self.builder.bitcast(self.builder.gep(array, [place]), self.vector.as_pointer())
        return self.builder.load(pointer, align=self.size)

    def store(self, value, array, place):
        pointer = self.builder.bitcast(self.builder.gep(array, [place]), value.type.as_pointer())
        self.builder.store(value, pointer, align=self.size)


@compile_loop
def heat_step(indptr, indices, data, x, halo, out, v, w, factors, totals, terms, sums, start, stop):
    """Take the step of the module's formula in some chunks of rows; ``out`` is ``y``.

    Columns of the matrix are first the rows of ``x``, then those of ``halo``. A row at a time, in
    tiles of 256 bytes of columns, then what remains in halves. 256 bytes fill 4 registers of
    AVX-512, 8 of AVX2, 16 of NEON: enough of them to hide the latency of an addition, and nowhere
    more than there are.
    """
    matrix, block, n_columns, tile = (
        (indptr, indices, data),
        (x, halo),
        x.shape[1],
        256 // x.itemsize,
    )
    for i in range(start * CHUNK, min(stop * CHUNK, out.shape[0])):
        c = 0
        while c + tile <= n_columns:
            _step_tile(matrix, block, out, v, w, factors, totals, terms, sums, i, c, 256)
            c += tile
        if c + tile // 2 <= n_columns:
            _step_tile(matrix, block, out, v, w, factors, totals, terms, sums, i, c, 128)
            c += tile // 2
        if c + tile // 4 <= n_columns:
            _step_tile(matrix, block, out, v, w, factors, totals, terms, sums, i, c, 64)
            c += tile // 4
        if c + tile // 8 <= n_columns:
            _step_tile(matrix, block, out, v, w, factors, totals, terms, sums, i, c, 32)
            c += tile // 8
        while c < n_columns:
            _step_tile(matrix, block, out, v, w, factors, totals, terms, sums, i, c, 0)
            c += 1
