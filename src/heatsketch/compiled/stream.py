"""The random stream: Philox words, and Gaussians and signs made of them.

Logarithm, sine and cosine are written out as polynomials instead of being taken from a
mathematics library, whose last digits differ from machine to machine.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from heatsketch.compiled._compile import compile_loop

__all__ = ["gaussian_entries", "philox", "rademacher_entries"]

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


@njit(inline="always")
def _high_64(a, b):
    """Return the upper half of the 128-bit product."""
    a_low, a_high = a & _LOW_32, a >> _32
    b_low, b_high = b & _LOW_32, b >> _32
    middle = a_high * b_low + ((a_low * b_low) >> _32)
    carry = a_low * b_high + (middle & _LOW_32)
    return a_high * b_high + (middle >> _32) + (carry >> _32)


@compile_loop
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


@compile_loop
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


@compile_loop
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


@compile_loop
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
