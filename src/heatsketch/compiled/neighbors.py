"""Nearest points, found tile by tile.

A squared distance is the sum of squared differences, over the coordinates from first to last, each
added by one fused multiply-add: exactly symmetric, exactly zero between duplicates, and the same
bits whatever is computed beside it.

Four queries meet a strip of 128 bytes of candidates at a time. The candidates are packed with one
coordinate after the other, so that the running sums of many pairs are one vector, which stays in
registers; candidates beyond the last are NaN, which is no neighbour of anything.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from heatsketch.compiled._compile import compile_loop, spread

__all__ = [
    "all_squares",
    "distinct_rows",
    "fill_union",
    "nearest",
    "reverse",
    "second_distances",
    "second_weights",
    "sort_rows",
    "sparse_squares",
    "union_sizes",
    "within",
]

STRIP_BYTES = 128
QUERIES = 4
PACKED_NUMBERS = 65_536  # of a list at a time: what a cache close to the core holds
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of |x|^2 + |y|^2 - 2 x y, over its sums
GOLDEN = 0.6180339887498949
LONG_ROW = 64  # from here on a sort is faster than insertion, whose time is the square


@intrinsic
def _square_tile(typing, queries, packed, strip, limits, squares, masks):
    """Set ``squares[a, j]`` for four queries and one strip, and bit j of ``masks[a]``.

    The bit says whether the squared distance is within ``limits[a]``.
    """
    signature = types.void(queries, packed, types.intp, limits, squares, masks)

    def generate(context, builder, signature, args):
        structs = [
            context.make_array(signature.args[a])(context, builder, args[a])
            for a in (0, 1, 3, 4, 5)
        ]
        queries, packed, limits, squares, masks = (struct.data for struct in structs)
        n_features = cgutils.unpack_tuple(builder, structs[0].shape)[1]
        number = signature.args[0].dtype
        size = number.bitwidth // 8  # all the alignment that numpy promises
        width = STRIP_BYTES // size
        vector = ir.VectorType(context.get_value_type(number), width)
        zero = ir.Constant(vector, None)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(QUERIES)]
        word = n_features.type
        first = builder.mul(builder.mul(args[2], n_features), word(width))
        with cgutils.for_range_slice(builder, word(0), n_features, word(1), word) as (c, _):
            y = builder.gep(packed, [builder.add(first, builder.mul(c, word(width)))])
            y = builder.load(builder.bitcast(y, vector.as_pointer()), align=size)
            for a, total in enumerate(sums):
                x = builder.gep(queries, [builder.add(builder.mul(n_features, word(a)), c)])
                difference = builder.fsub(y, spread(builder, builder.load(x), vector))
                builder.store(_add_square(builder, builder.load(total), difference), total)
        for a, total in enumerate(sums):
            total_now = builder.load(total)
            target = builder.gep(squares, [word(a * width)])
            builder.store(total_now, builder.bitcast(target, vector.as_pointer()), align=size)
            limit = spread(builder, builder.load(builder.gep(limits, [word(a)])), vector)
            within = builder.fcmp_ordered("<=", total_now, limit)
            bits = builder.bitcast(within, ir.IntType(width))
            builder.store(builder.zext(bits, ir.IntType(64)), builder.gep(masks, [word(a)]))
        return context.get_dummy_value()

    return signature, generate


def _add_square(builder, total, difference):
    """Return ``total + difference**2``, rounded once."""
    vector = total.type
    bits = 8 * STRIP_BYTES // vector.count
    kind = ir.FunctionType(vector, [vector] * 3)
    fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{vector.count}f{bits}")
    return builder.call(fused, [difference, difference, total])


@intrinsic
def _lowest_bit(typing, mask):
    """Return the place of the lowest bit that is set."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@njit
def _pack(points, start, stop, packed):
    """Copy rows into strips, coordinate after coordinate, and fill the last strip with NaN."""
    width = packed.shape[2]
    for j in range((stop - start + width - 1) // width * width):
        strip, lane = j // width, j % width
        for c in range(points.shape[1]):
            packed[strip, c, lane] = points[start + j, c] if start + j < stop else np.nan


@njit
def _second_distance(queries, q, points, p):
    """Return the distance that decides among points at one distance from a query.

    Coordinates have weights between 1/2 and 3/2 that have nothing to do with each other, so that
    points tie again only if they are copies, or mirror images about the query. Each difference,
    product and sum is rounded once, whichever of the two points is the query.
    """
    total, weight = 0.0, 0.5
    for c in range(queries.shape[1]):
        weight = _next_weight(weight)
        total += weight * abs(np.float64(queries[q, c]) - np.float64(points[p, c]))
    return total


@njit
def _next_weight(weight):
    return weight + GOLDEN if weight + GOLDEN < 1.5 else weight + GOLDEN - 1


@compile_loop
def second_weights(out):
    """Set ``out`` to the weights of coordinates in second distances."""
    weight = 0.5
    for c in range(len(out)):
        weight = out[c] = _next_weight(weight)


@compile_loop
def second_distances(queries, rows, points, ids, out):
    """Set ``out[e]`` to the second distance between query ``rows[e]`` and point ``ids[e]``."""
    for e in range(len(ids)):
        out[e] = _second_distance(queries, rows[e], points, ids[e])


@njit
def _keep(kept, q, count, square, point):
    """Insert a point in order of both distances, then of id; drop what lies beyond the nearest.

    Points as near as the last of the nearest in both distances are all kept.
    """
    n_nearest, squares, ids, _, queries, points = kept
    place, last, second = count, n_nearest - 1, -1.0
    if count >= n_nearest and squares[q, last] == square:
        second = _second_distance(queries, q, points, point)
        if second > _second_distance(queries, q, points, ids[q, last]):
            return count
    while place > 0 and squares[q, place - 1] >= square:
        if squares[q, place - 1] == square:
            second = second if second >= 0 else _second_distance(queries, q, points, point)
            other = _second_distance(queries, q, points, ids[q, place - 1])
            if other < second or (other == second and ids[q, place - 1] < point):
                break
        squares[q, place], ids[q, place] = squares[q, place - 1], ids[q, place - 1]
        place -= 1
    squares[q, place], ids[q, place] = square, point
    count += 1
    # All beyond the nearest ones tied with the last of them, and tie no longer if it moved.
    if count > n_nearest and (
        squares[q, last] < squares[q, count - 1]
        or _second_distance(queries, q, points, ids[q, last])
        < _second_distance(queries, q, points, ids[q, count - 1])
    ):
        count = n_nearest
    return count


@njit
def _keep_nearest(kept, q, tile, masks, bounds, a, first):
    """Keep what one query found in a strip, and lower its bound; False if there is no room."""
    n_nearest, squares, _, counts, _, _ = kept
    mask, count, bound = masks[a], counts[q], bounds[a]
    while mask:
        lane: int = _lowest_bit(mask)
        mask &= mask - 1
        if tile[a, lane] <= bound:
            if count == squares.shape[1]:
                return False
            count = _keep(kept, q, count, tile[a, lane], first + lane)
            if count >= n_nearest:
                bound = squares[q, n_nearest - 1]
    counts[q], bounds[a] = count, bound
    return True


@njit
def _keep_all(kept, q, tile, masks, bounds, a, first):
    """Append what one query found in a strip, and count on where there is no room."""
    n_found, finders, ids, squares, ties, queries, points = kept
    mask, place = masks[a], n_found[0]
    while mask:
        lane: int = _lowest_bit(mask)
        mask &= mask - 1
        if tile[a, lane] == bounds[a] and (
            _second_distance(queries, q, points, first + lane) > ties[q]
        ):
            continue
        if place < len(ids):
            finders[place], ids[place], squares[place] = q, first + lane, tile[a, lane]
        place += 1
    n_found[0] = place
    return True


@njit
def _group(probes, n_lists):
    """Return the lists that are probed, nearest ones first, and who probes each; -1 is no list."""
    slots, order = np.full(n_lists, -1, np.int64), np.empty(n_lists, np.int64)
    n_found = 0
    for rank in range(probes.shape[1]):
        for q in range(probes.shape[0]):
            b = probes[q, rank]
            if b >= 0 and slots[b] < 0:
                slots[b], order[n_found] = n_found, b
                n_found += 1
    ends = np.zeros(n_found + 1, np.int64)
    for q in range(probes.shape[0]):
        for rank in range(probes.shape[1]):
            if probes[q, rank] >= 0:
                ends[slots[probes[q, rank]] + 1] += 1
    for slot in range(n_found):
        ends[slot + 1] += ends[slot]
    members, filled = np.empty(probes.size, np.int64), ends[:-1].copy()
    for q in range(probes.shape[0]):
        for rank in range(probes.shape[1]):
            if probes[q, rank] >= 0:
                slot = slots[probes[q, rank]]
                members[filled[slot]] = q
                filled[slot] += 1
    return order[:n_found], ends, members


@njit
def _workspace(points):
    """Return room for packed candidates, four queries, their bounds, a tile and its masks."""
    n_features, width = points.shape[1], STRIP_BYTES // points.itemsize
    n_strips = max(1, PACKED_NUMBERS // (n_features * width))
    packed = np.empty((n_strips, n_features, width), points.dtype)
    four = np.empty((QUERIES, n_features), points.dtype)
    tile = np.empty((QUERIES, width), points.dtype)
    return packed, four, np.zeros(QUERIES, points.dtype), tile, np.empty(QUERIES, np.int64)


@compile_loop
def all_squares(queries, points, out):
    """Set ``out[q, j]`` to the squared distance between a query and a point."""
    packed, four, bounds, tile, masks = _workspace(points)
    width = tile.shape[1]
    step = len(packed) * width
    for start in range(0, len(points), step):
        stop = min(start + step, len(points))
        _pack(points, start, stop, packed)
        for q in range(0, len(queries), QUERIES):
            n_queries = min(QUERIES, len(queries) - q)
            for a in range(QUERIES):
                for c in range(queries.shape[1]):
                    four[a, c] = queries[q + min(a, n_queries - 1), c]
            for first in range(start, stop, width):
                _square_tile(four, packed, (first - start) // width, bounds, tile, masks)
                for a in range(n_queries):
                    for lane in range(min(width, stop - first)):
                        out[q + a, first + lane] = tile[a, lane]


@compile_loop
def sparse_squares(rows, columns, row_norms, norms, out):
    """Set ``out[q, j]``, zero before, to the squared distance between rows of sparse matrices.

    The one is given by rows, the other by columns, each as ``(indptr, indices, data)``. All sums
    go from the first coordinate to the last, so that they are symmetric. What rounding leaves
    between duplicates is a distance of zero, not a tiny one.
    """
    indptr, indices, data = rows
    column_indptr, column_indices, column_data = columns
    for q in range(len(out)):
        inner = out[q]
        for e in range(indptr[q], indptr[q + 1]):
            value = data[e]
            for f in range(column_indptr[indices[e]], column_indptr[indices[e] + 1]):
                inner[column_indices[f]] += value * column_data[f]
        for j in range(len(inner)):
            norm = row_norms[q] + norms[j]
            square = norm - 2 * inner[j]
            inner[j] = square if square > ROUNDING * norm else 0.0


def _meeting(keep):
    """Return the loop in which queries meet the lists that they probe.

    ``keep`` takes what is within their bounds, which are the limits at first. The loop returns the
    query at which there was no room, or -1. It is made once for each way to keep: a function that
    is handed over at run time would have to be compiled in every process.
    """

    @njit
    def meet(queries, probes, points, starts, limits, kept):
        packed, four, bounds, tile, masks = _workspace(points)
        n_features, width = four.shape[1], tile.shape[1]
        step, now = len(packed) * width, limits.copy()
        order, ends, members = _group(probes, len(starts) - 1)
        for slot in range(len(order)):
            last = starts[order[slot] + 1]
            for start in range(starts[order[slot]], last, step):
                stop = min(start + step, last)
                _pack(points, start, stop, packed)
                n_strips = (stop - start + width - 1) // width
                for m in range(ends[slot], ends[slot + 1], QUERIES):
                    n_queries = min(QUERIES, ends[slot + 1] - m)
                    for a in range(QUERIES):
                        q = members[m + min(a, n_queries - 1)]
                        bounds[a] = now[q]
                        for c in range(n_features):
                            four[a, c] = queries[q, c]
                    for strip in range(n_strips):
                        _square_tile(four, packed, strip, bounds, tile, masks)
                        first = start + strip * width
                        for a in range(n_queries):
                            q = members[m + a]
                            if masks[a] and not keep(kept, q, tile, masks, bounds, a, first):
                                return q
                    for a in range(n_queries):
                        now[members[m + a]] = bounds[a]
        return -1

    return meet


_meet_nearest, _meet_all = _meeting(_keep_nearest), _meeting(_keep_all)


@compile_loop
def nearest(queries, probes, points, starts, n_nearest, squares, ids, counts):
    """Find for each query the nearest points in the lists that it probes.

    ``squares[q]`` and ``ids[q]`` are filled in order of distance up to ``counts[q]``. Ties in both
    distances are included; returns the first query that has more than there is room for, or -1.
    """
    counts[:] = 0
    limits = np.full(len(queries), np.inf, points.dtype)
    kept = n_nearest, squares, ids, counts, queries, points
    return _meet_nearest(queries, probes, points, starts, limits, kept)


@compile_loop
def within(queries, probes, points, starts, limits, ties, finders, ids, squares):
    """Find for each query all points within its limit in the lists that it probes.

    Of those at the limit itself, those whose second distance is within that of ``ties``.
    What is found is written in no order, as far as there is room. Returns how much it is.
    """
    n_found = np.zeros(1, np.int64)
    kept = n_found, finders, ids, squares, ties, queries, points
    _meet_all(queries, probes, points, starts, limits, kept)
    return n_found[0]


@njit
def _are_equal(points, i, j):
    c = 0
    while c < points.shape[1] and points[i, c] == points[j, c]:
        c += 1
    return c == points.shape[1]


@compile_loop
def distinct_rows(points, bits, table, places):
    """Set ``places[i]`` to the number of the distinct row that row ``i`` is; return how many.

    They are numbered in the order in which they come. ``table``, full of -1 and of a length that is
    a power of two, is filled with the first of them, at places that follow from their bits.
    """
    last, factor = np.uint64(len(table) - 1), np.uint64(0x9E3779B97F4A7C15)
    n_distinct = 0
    for i in range(len(points)):
        mixed = factor
        for c in range(points.shape[1]):
            if points[i, c] != 0:  # the bits of zero differ from those of -0
                mixed ^= np.uint64(bits[i, c])
            mixed *= factor
            mixed ^= mixed >> np.uint64(32)
        place = mixed & last
        while table[place] >= 0 and not _are_equal(points, table[place], i):
            place = (place + np.uint64(1)) & last
        if table[place] < 0:
            table[place], places[i] = i, n_distinct
            n_distinct += 1
        else:
            places[i] = places[table[place]]
    return n_distinct


# --- from the neighbours of each point to a symmetric graph -----------------------------------


@compile_loop
def sort_rows(indptr, ids, squares, first, last):
    """Sort some rows by id."""
    for i in range(first, last):
        if indptr[i + 1] - indptr[i] >= LONG_ROW:
            row = slice(indptr[i], indptr[i + 1])
            order = np.argsort(ids[row])
            ids[row], squares[row] = ids[row][order], squares[row][order]
            continue
        for e in range(indptr[i] + 1, indptr[i + 1]):
            point, square, place = ids[e], squares[e], e
            while place > indptr[i] and ids[place - 1] > point:
                ids[place], squares[place] = ids[place - 1], squares[place - 1]
                place -= 1
            ids[place], squares[place] = point, square


@compile_loop
def reverse(indptr, ids, squares, n_columns, zero):
    """Return the transpose; its rows come out sorted, and their ids of the type of ``zero``."""
    ends = np.zeros(n_columns + 1, indptr.dtype)
    for point in ids:
        ends[point + 1] += 1
    for j in range(n_columns):
        ends[j + 1] += ends[j]
    filled = ends[:-1].copy()
    back_ids, back_squares = np.full(len(ids), zero), np.empty_like(squares)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            place = filled[ids[e]]
            back_ids[place], back_squares[place] = i, squares[e]
            filled[ids[e]] += 1
    return ends, back_ids, back_squares


@compile_loop
def union_sizes(indptr, ids, other_indptr, other_ids, sizes, first, last):
    """Count the distinct ids in each row of two matrices with sorted rows."""
    for i in range(first, last):
        a, b, size = indptr[i], other_indptr[i], 0
        while a < indptr[i + 1] or b < other_indptr[i + 1]:
            left = a < indptr[i + 1] and (b == other_indptr[i + 1] or ids[a] <= other_ids[b])
            right = b < other_indptr[i + 1] and (a == indptr[i + 1] or other_ids[b] <= ids[a])
            a, b, size = a + left, b + right, size + 1
        sizes[i] = size


@compile_loop
def fill_union(one, other, union, first, last):
    """Merge the rows of two matrices with sorted rows, each ``(indptr, ids, squares)``.

    Where both hold an entry they agree on it.
    """
    indptr, ids, squares = one
    other_indptr, other_ids, other_squares = other
    for i in range(first, last):
        a, b, place = indptr[i], other_indptr[i], union[0][i]
        while a < indptr[i + 1] or b < other_indptr[i + 1]:
            left = a < indptr[i + 1] and (b == other_indptr[i + 1] or ids[a] <= other_ids[b])
            right = b < other_indptr[i + 1] and (a == indptr[i + 1] or other_ids[b] <= ids[a])
            if left:
                union[1][place], union[2][place] = ids[a], squares[a]
            else:
                union[1][place], union[2][place] = other_ids[b], other_squares[b]
            a, b, place = a + left, b + right, place + 1
