// The random stream: Philox words, and Gaussians and signs computed from them.
//
// Contract: entry (i, j) of `out` is a function of the 128-bit key, of the address (distribution,
// version), of row id rows[i] and of column first_column + j only. Philox4x64-10 (Salmon et al.
// 2011, as in numpy.random.Philox) at counter (tile, row, address) gives 4 words: 8 Gaussians or
// 256 signs. They are computed in float64, then rounded to the type of `out`. Logarithm, sine and cosine are
// polynomials, because the last digits of mathematics libraries differ between machines.
#include "elementary.hpp"

namespace {

constexpr uint64_t LOW_32 = 0xFFFFFFFF;

// Upper half of the 128-bit product.
ALWAYS_INLINE uint64_t high_64(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    return uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
#else
    const uint64_t middle = (a >> 32) * (b & LOW_32) + (((a & LOW_32) * (b & LOW_32)) >> 32);
    const uint64_t carry = (a & LOW_32) * (b >> 32) + (middle & LOW_32);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (carry >> 32);
#endif
}

ALWAYS_INLINE void philox(uint64_t counter, uint64_t row, const uint64_t* address, const uint64_t* key,
                          uint64_t* words) {
    uint64_t c0 = counter, c1 = row, c2 = address[0], c3 = address[1], k0 = key[0], k1 = key[1];
    UNROLL for (int round = 0; round < 10; ++round) {
        const uint64_t high_0 = high_64(0xD2E7470EE14C6C93, c0), low_0 = 0xD2E7470EE14C6C93 * c0;
        const uint64_t high_1 = high_64(0xCA5A826395121157, c2), low_1 = 0xCA5A826395121157 * c2;
        c0 = high_1 ^ c1 ^ k0;
        c1 = low_1;
        c2 = high_0 ^ c3 ^ k1;
        c3 = low_0;
        k0 += 0x9E3779B97F4A7C15;
        k1 += 0xBB67AE8584CAA73B;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

// Taylor coefficients, highest first, exact to 1e-17 where they are used:
// 2 atanh(s) / 2s for |s| <= 0.172, sin(y) / y and cos(y) for y <= pi / 4.
constexpr double ATANH[] = {1 / 19., 1 / 17., 1 / 15., 1 / 13., 1 / 11., 1 / 9., 1 / 7., 1 / 5., 1 / 3., 1.};
constexpr double SIN[] = {1 / 355687428096000., -1 / 1307674368000., 1 / 6227020800., -1 / 39916800.,
                          1 / 362880., -1 / 5040., 1 / 120., -1 / 6., 1.};
constexpr double COS[] = {1 / 20922789888000., -1 / 87178291200., 1 / 479001600., -1 / 3628800.,
                          1 / 40320., -1 / 720., 1 / 24., -1 / 2., 1.};

// Converts an integer below 2^51 exactly. Instruction sets before AVX-512 cannot convert vectors.
ALWAYS_INLINE double exact(uint64_t integer) {
    return as_double(integer + 0x4338000000000000) - 6755399441055744.0;  // 2^52 + 2^51
}

// Two independent Gaussians from each word. The high half gives the radius, the low half the
// direction: 29 bits for the angle in an octant, one to swap the two coordinates, and two signs.
ALWAYS_INLINE void box_muller(const uint64_t* RESTRICT words, double* RESTRICT pairs, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
        // log(uniform / 2^32) = exponent log 2 + log(mantissa)
        const uint64_t bits = as_bits(exact(words[j] >> 32) + 0.5);
        const double full = as_double((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
        const bool above = full > 1.4142135623730951;
        const double mantissa = above ? 0.5 * full : full;
        const double exponent = exact((bits >> 52) - (1023 + 32) + (above ? 1 : 0));
        const double s = (mantissa - 1.0) / (mantissa + 1.0);
        const double log_uniform = exponent * 0.6931471805599453 + 2.0 * s * horner(ATANH, s * s);
        const double radius = std::sqrt(-2.0 * log_uniform);

        const uint64_t low = words[j];
        const double angle = (exact(low & 0x1FFFFFFF) + 0.5) * (0.7853981633974483 / 536870912);
        const double z = angle * angle;
        const double cosine = radius * horner(COS, z), sine = radius * (angle * horner(SIN, z));
        const bool swap = low & (uint64_t(1) << 29);
        const uint64_t first = as_bits(swap ? sine : cosine), second = as_bits(swap ? cosine : sine);
        pairs[2 * j] = as_double(first ^ ((low << 33) & 0x8000000000000000));
        pairs[2 * j + 1] = as_double(second ^ ((low << 32) & 0x8000000000000000));
    }
}

template <class T>
void gaussian_entries(Table<T> out, Vector<const uint64_t> rows, int64_t first_column,
                      Vector<const uint64_t> address, Vector<const uint64_t> key) {
    need(rows.size == out.rows && address.size == 2 && key.size == 2, "rows must have one id for each row of out");
    const int64_t first_tile = first_column / 8, last_tile = (first_column + out.columns + 7) / 8;
    const int64_t n_tiles = last_tile - first_tile;
    std::vector<uint64_t> words(4 * n_tiles);
    std::vector<double> pairs(8 * n_tiles);
    for (int64_t i = 0; i < out.rows; ++i) {
        for (int64_t tile = 0; tile < n_tiles; ++tile)
            philox(uint64_t(first_tile + tile), rows[i], address.data, key.data, &words[4 * tile]);
        box_muller(words.data(), pairs.data(), 4 * n_tiles);
        T* RESTRICT row = out[i];
        const double* RESTRICT from = pairs.data() + (first_column - 8 * first_tile);
        for (int64_t j = 0; j < out.columns; ++j) row[j] = T(from[j]);
    }
}

template <class T>
void rademacher_entries(Table<T> out, Vector<const uint64_t> rows, int64_t first_column,
                        Vector<const uint64_t> address, Vector<const uint64_t> key) {
    need(rows.size == out.rows && address.size == 2 && key.size == 2, "rows must have one id for each row of out");
    for (int64_t i = 0; i < out.rows; ++i) {
        uint64_t words[4];
        for (int64_t j = 0; j < out.columns;) {
            const int64_t column = first_column + j, place = column % 256;
            if (j == 0 || place == 0) philox(uint64_t(column / 256), rows[i], address.data, key.data, words);
            const int64_t n = std::min(out.columns - j, 64 - place % 64);
            const uint64_t word = words[place / 64] >> (place % 64);
            T* RESTRICT row = out[i] + j;
            for (int64_t k = 0; k < n; ++k) row[k] = (word >> k) & 1 ? T(-1) : T(1);
            j += n;
        }
    }
}

}  // namespace

void bind_stream(nb::module_& m) {
    BIND_FLOATS(m, gaussian_entries);
    BIND_FLOATS(m, rademacher_entries);
}
