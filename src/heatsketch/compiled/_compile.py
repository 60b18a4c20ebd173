"""How loops are compiled, and the vectors of known width that some are made of."""

from __future__ import annotations

from llvmlite import ir
from numba import njit

__all__ = ["compile_loop", "spread"]


def compile_loop(function):
    """Compile once and keep the result on disk, or once a process where no folder is writable."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def spread(builder, value, vector):
    """Return the vector all of whose entries are ``value``."""
    lane = ir.IntType(32)
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, value, lane(0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(lane, vector.count), None))
