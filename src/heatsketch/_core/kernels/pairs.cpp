// Squared distances of some pairs of rows, powers of stretches, and the gradient that pairs give.
//
// Contract: points of float32 or float64, pairs as two arrays of row indices of 32 or 64 bits.
// Coordinates are added from first to last. Pairs are independent but for add_pulls and the two
// sums of extreme_powers, which take them from first to last.
#include "arrays.hpp"

namespace {

// By fused multiply-adds in the type of the points: the bits of neighbors.cpp.
template <class T>
void squares_between(Table<const T> queries, Table<const T> points, Ints first, Ints second, Vector<T> out) {
    need(first.size == out.size && second.size == out.size, "a square for each pair");
    need(queries.columns == points.columns, "queries and points of different widths");
    for (int64_t e = 0; e < out.size; ++e) {
        const T *x = queries[first[e]], *y = points[second[e]];
        T total = 0;
        for (int64_t c = 0; c < points.columns; ++c) total = std::fma(x[c] - y[c], x[c] - y[c], total);
        out[e] = total;
    }
}

// Squares in the type of the points, added in float64.
template <class T> void pair_squares(Table<const T> points, Ints first, Ints second, Vector<double> out) {
    need(first.size == out.size && second.size == out.size, "a square for each pair");
    for (int64_t e = 0; e < out.size; ++e) {
        const T *x = points[first[e]], *y = points[second[e]];
        double total = 0;
        for (int64_t c = 0; c < points.columns; ++c) total += double(T((x[c] - y[c]) * (x[c] - y[c])));
        out[e] = total;
    }
}

// Powers 2^doublings of values over the largest, and of the least over values; the sums of both.
// Ratios below `negligible` count as zero. NaN makes all of them zero.
std::tuple<double, double> extreme_powers(Vector<const double> values, int64_t doublings, double negligible,
                                          Vector<double> up, Vector<double> down) {
    need(values.size > 0 && up.size == values.size && down.size == values.size, "powers for each value");
    double low = values[0], high = values[0];
    for (int64_t e = 1; e < values.size; ++e) {
        low = values[e] < low || values[e] != values[e] ? values[e] : low;
        high = values[e] > high || values[e] != values[e] ? values[e] : high;
    }
    const double most = negligible * high, least = low / negligible;
    const auto doubled = [doublings](double ratio) {
        for (int64_t k = 0; k < doublings; ++k) ratio *= ratio;
        return ratio;
    };
    double sum_up = 0, sum_down = 0;
    for (int64_t e = 0; e < values.size; ++e) {
        sum_up += up[e] = values[e] >= most ? doubled(values[e] / high) : 0;
        sum_down += down[e] = values[e] <= least ? doubled(low / values[e]) : 0;
    }
    return {sum_up, sum_down};
}

template <class T> inline void pull(double step, T& plus, T& minus) {
    plus = T(double(plus) + step);
    minus = T(double(minus) - step);
}

template <class T>
inline void pull_apart(double weight, const T* x, const T* y, T* RESTRICT plus, T* RESTRICT minus, int64_t n) {
    for (int64_t c = 0; c < n; ++c) pull(weight * double(x[c] - y[c]), plus[c], minus[c]);
}

// Add to one row the weighted difference of the two, and subtract it from the other.
template <class T>
void add_pulls(Table<const T> points, Ints first, Ints second, Vector<const double> weights, Table<T> out) {
    need(first.size == weights.size && second.size == weights.size, "a weight for each pair");
    need(out.rows == points.rows && out.columns == points.columns, "out must have the shape of the points");
    for (int64_t e = 0; e < weights.size; ++e) {
        if (weights[e] == 0) continue;
        const T *x = points[first[e]], *y = points[second[e]];
        T *plus = out[first[e]], *minus = out[second[e]];
        if (plus == minus)  // a row and itself: first added to, then subtracted from
            for (int64_t c = 0; c < points.columns; ++c) pull(weights[e] * double(x[c] - y[c]), plus[c], minus[c]);
        else
            pull_apart(weights[e], x, y, plus, minus, points.columns);
    }
}

}  // namespace

void bind_pairs(nb::module_& m) {
    BIND_FLOATS(m, squares_between);
    BIND_FLOATS(m, pair_squares);
    BIND(m, extreme_powers);
    BIND_FLOATS(m, add_pulls);
}
