// Fixed numbers of neighbouring values that stay in registers.
//
// Contract: Lanes<T, W> has W values of type float or double. Every operation acts on each value
// separately and rounds once, so that the result does not depend on the width of the registers.
// Addresses must be aligned to one value only.
#pragma once

#include "arrays.hpp"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define ALWAYS_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#define UNROLL
#define PREFETCH(address)
#endif

#if !defined(__GNUC__)
constexpr int REGISTER = 1;  // no vectors: every register holds one value
#elif defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX2__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

// The widest register that divides a number of bytes, or the size of a single value.
constexpr int register_bytes(int bytes, int size) {
    int widest = size;
    for (int wide = 16; wide <= REGISTER; wide *= 2)
        if (bytes % wide == 0) widest = wide;
    return widest;
}

template <class T, int BYTES> struct Register {
#if defined(__GNUC__)
    typedef T type __attribute__((vector_size(BYTES)));
    typedef T loose __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#endif
};
template <> struct Register<float, 4> {
    typedef float type, loose;
};
template <> struct Register<double, 8> {
    typedef double type, loose;
};

// a * b + c, rounded once.
template <class V> ALWAYS_INLINE V fused(V a, V b, V c) {
    if constexpr (sizeof(V) <= 8) {
        return std::fma(a, b, c);
    } else {
        for (unsigned k = 0; k < sizeof(V) / sizeof(a[0]); ++k) c[k] = std::fma(a[k], b[k], c[k]);
        return c;
    }
}
#if defined(__AVX512F__)
template <>
ALWAYS_INLINE __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
template <>
ALWAYS_INLINE __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
ALWAYS_INLINE uint32_t bits_within(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
ALWAYS_INLINE uint32_t bits_within(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
#elif defined(__AVX2__)
template <>
ALWAYS_INLINE __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
template <>
ALWAYS_INLINE __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
ALWAYS_INLINE uint32_t bits_within(__m256 a, __m256 b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
ALWAYS_INLINE uint32_t bits_within(__m256d a, __m256d b) { return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ)); }
#else
template <class V> ALWAYS_INLINE uint32_t bits_within(V a, V b) {
    if constexpr (sizeof(V) <= 8) {
        return a <= b;
    } else {
        uint32_t bits = 0;
        for (unsigned k = 0; k < sizeof(V) / sizeof(a[0]); ++k) bits |= uint32_t(a[k] <= b[k]) << k;
        return bits;
    }
}
#endif

template <class T, int W> struct Lanes {
    static constexpr int BYTES = register_bytes(W * sizeof(T), sizeof(T));
    static constexpr int EACH = BYTES / sizeof(T), N = W / EACH;
    using V = typename Register<T, BYTES>::type;
    using Loose = typename Register<T, BYTES>::loose;
    V part[N];

    static ALWAYS_INLINE V all(T value) { return value - V{}; }  // keeps the sign of -0
    static ALWAYS_INLINE Lanes zeros() {
        Lanes result;
        UNROLL for (int n = 0; n < N; ++n) result.part[n] = V{};
        return result;
    }
    static ALWAYS_INLINE Lanes load(const T* from) {
        Lanes result;
        UNROLL for (int n = 0; n < N; ++n)
            result.part[n] = *reinterpret_cast<const Loose*>(from + n * EACH);
        return result;
    }
    ALWAYS_INLINE void store(T* to) const {
        UNROLL for (int n = 0; n < N; ++n) *reinterpret_cast<Loose*>(to + n * EACH) = part[n];
    }
    // this + factor * x, with the product and the sum rounded separately.
    ALWAYS_INLINE void add(T factor, const Lanes& x) {
        const V f = all(factor);
        UNROLL for (int n = 0; n < N; ++n) part[n] = part[n] + f * x.part[n];
    }
    ALWAYS_INLINE void scale(T factor) {
        const V f = all(factor);
        UNROLL for (int n = 0; n < N; ++n) part[n] = f * part[n];
    }
    // this + (x - y)^2, with the difference rounded, and then the square and sum rounded once.
    ALWAYS_INLINE void add_square(const Lanes& x, T y) {
        const V wide = all(y);
        UNROLL for (int n = 0; n < N; ++n) {
            const V difference = x.part[n] - wide;
            part[n] = fused(difference, difference, part[n]);
        }
    }
    // Bit k is set if value k is at most the limit, and not for NaN.
    ALWAYS_INLINE uint32_t within(T limit) const {
        const V wide = all(limit);
        uint32_t bits = 0;
        UNROLL for (int n = 0; n < N; ++n) bits |= bits_within(part[n], wide) << (n * EACH);
        return bits;
    }
};
