// Parts of logarithm, sine, cosine and exponential: polynomials, and the bits of a number.
//
// Contract: float64, with each addition and multiplication rounded. The functions of mathematics
// libraries are not used, because their last digits differ between machines.
#pragma once

#include "lanes.hpp"

template <int N> ALWAYS_INLINE double horner(const double (&coefficients)[N], double z) {
    double value = coefficients[0];
    UNROLL for (int i = 1; i < N; ++i) value = value * z + coefficients[i];
    return value;
}

ALWAYS_INLINE double as_double(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
ALWAYS_INLINE uint64_t as_bits(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
