"""Squared distances of some pairs of rows, powers of stretches, and how pairs pull at rows."""

from __future__ import annotations

from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.extending import intrinsic

from heatsketch.compiled._compile import compile_loop

__all__ = ["add_pulls", "extreme_powers", "pair_squares", "squares_between"]


@intrinsic
def _fused(typing, factor, total):
    """Return ``total + factor**2``, rounded once."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(args[0].type, [args[0].type] * 3)
        name = f"llvm.fma.f{signature.args[0].bitwidth}"
        fused = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(fused, [args[0], args[0], args[1]])

    return factor(factor, total), generate


@compile_loop
def squares_between(queries, points, first, second, out):
    """Set ``out[e]`` to the squared distance of query ``first[e]`` and point ``second[e]``.

    The coordinates are added as in :mod:`heatsketch.compiled.neighbors`, to the same bits.
    """
    for e in range(len(first)):
        i, j, total = first[e], second[e], out.dtype.type(0)
        for c in range(points.shape[1]):
            total = _fused(queries[i, c] - points[j, c], total)
        out[e] = total


@compile_loop
def pair_squares(points, first, second, out):
    """Set ``out[e]`` to the squared distance between rows ``first[e]`` and ``second[e]``."""
    for e in range(len(first)):
        i, j, total = first[e], second[e], 0.0
        for c in range(points.shape[1]):
            difference = points[i, c] - points[j, c]
            total += difference * difference
        out[e] = total


@njit
def _doubled(ratio, doublings):
    """Return the ratio to a power: two to the number of doublings."""
    for _ in range(doublings):
        ratio *= ratio
    return ratio


@compile_loop
def extreme_powers(values, doublings, negligible, up, down):
    """Set powers of the values over the largest, and of the least over the values.

    Ratios below ``negligible`` count for nothing. Returns the two sums of powers.
    """
    low, high, sum_up, sum_down = values.min(), values.max(), 0.0, 0.0
    most, least = negligible * high, low / negligible
    for e in range(len(values)):
        up[e] = _doubled(values[e] / high, doublings) if values[e] >= most else 0.0
        down[e] = _doubled(low / values[e], doublings) if values[e] <= least else 0.0
        sum_up += up[e]
        sum_down += down[e]
    return sum_up, sum_down


@compile_loop
def add_pulls(points, first, second, weights, out):
    """Add to one row the weighted difference of the two, and take it off the other.

    This is half the gradient of the weighted sum of squared distances.
    """
    for e in range(len(first)):
        weight = weights[e]
        if weight != 0:
            i, j = first[e], second[e]
            for c in range(points.shape[1]):
                step = weight * (points[i, c] - points[j, c])
                out[i, c] += step
                out[j, c] -= step
