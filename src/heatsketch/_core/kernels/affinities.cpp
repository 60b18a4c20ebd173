// Gaussian affinities.
//
// Contract: out[e] = exp(-squares[e] / epsilon), computed in float64 with a relative error below
// 3e-16, then rounded to the type of `out`, which may be `squares` itself. exp(0) is exactly 1. The
// result is 0 if the square is infinite, or so large that the result underflows.
#include "elementary.hpp"

namespace {

// Taylor coefficients, highest first, exact to 1e-17 for |r| <= log(2) / 2.
constexpr double EXP[] = {1 / 6227020800., 1 / 479001600., 1 / 39916800., 1 / 3628800., 1 / 362880., 1 / 40320., 1 / 5040.,
                          1 / 720., 1 / 120., 1 / 24., 1 / 6., 1 / 2., 1., 1.};
constexpr double SHIFT = 6755399441055744.0;  // 2^52 + 2^51: adding it rounds to an integer
// log(2) in two parts; the product of an exponent and the first is exact.
constexpr double LOG_2 = 0x1.62e42fefap-1, LOG_2_REST = 0x1.cf79abc9e3b39p-40;

// 2^n for |n| < 1000, of n + SHIFT.
ALWAYS_INLINE double power_of_two(double shifted) { return as_double((as_bits(shifted) + 1023) << 52); }

// For x <= 0. The power of two is split into two factors, since it may underflow.
ALWAYS_INLINE double exponential(double x) {
    x = x < -800 ? -800 : x;
    const double n = (x * 1.4426950408889634 + SHIFT) - SHIFT, half = (0.5 * n + SHIFT) - SHIFT;
    const double r = (x - n * LOG_2) - n * LOG_2_REST;
    return horner(EXP, r) * power_of_two(half + SHIFT) * power_of_two(n - half + SHIFT);
}

template <class T> void gaussian_affinities(Vector<const T> squares, double epsilon, Vector<T> out) {
    need(squares.size == out.size, "out must have as many entries as squares");
    for (int64_t e = 0; e < out.size; ++e) out[e] = T(exponential(double(squares[e]) / -epsilon));
}

}  // namespace

void bind_affinities(nb::module_& m) { BIND_FLOATS(m, gaussian_affinities); }
