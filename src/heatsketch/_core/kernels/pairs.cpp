// Squared distances of given pairs of rows, and the gradient over pairs.
//
// Contract: points of float32 or float64, pairs as two arrays of row indices of 32 or 64 bits.
// Coordinates are added from first to last. Pairs are independent, except in add_pulls, which adds
// them from first to last.
#include "arrays.hpp"

namespace {

// Squares in the type of the points, added in float64.
template <class T> void pair_squares(Table<const T> points, Ints first, Ints second, Vector<double> out) {
    need(first.size == out.size && second.size == out.size, "out must have one entry for each pair");
    for (int64_t e = 0; e < out.size; ++e) {
        const T *x = points[first[e]], *y = points[second[e]];
        double total = 0;
        for (int64_t c = 0; c < points.columns; ++c) total += double(T((x[c] - y[c]) * (x[c] - y[c])));
        out[e] = total;
    }
}

template <class T> inline void pull(double step, T& plus, T& minus) {
    plus = T(double(plus) + step);
    minus = T(double(minus) - step);
}

template <class T>
inline void pull_apart(double weight, const T* x, const T* y, T* RESTRICT plus, T* RESTRICT minus, int64_t n) {
    for (int64_t c = 0; c < n; ++c) pull(weight * double(x[c] - y[c]), plus[c], minus[c]);
}

// Add the weighted difference of each pair to the first row, and subtract it from the second.
template <class T>
void add_pulls(Table<const T> points, Ints first, Ints second, Vector<const double> weights, Table<T> out) {
    need(first.size == weights.size && second.size == weights.size, "first and second must have one entry for each weight");
    need(out.rows == points.rows && out.columns == points.columns, "out must have the shape of the points");
    for (int64_t e = 0; e < weights.size; ++e) {
        if (weights[e] == 0) continue;
        const T *x = points[first[e]], *y = points[second[e]];
        T *plus = out[first[e]], *minus = out[second[e]];
        if (plus == minus)  // a pair of equal rows: add, then subtract
            for (int64_t c = 0; c < points.columns; ++c) pull(weights[e] * double(x[c] - y[c]), plus[c], minus[c]);
        else
            pull_apart(weights[e], x, y, plus, minus, points.columns);
    }
}

}  // namespace

void bind_pairs(nb::module_& m) {
    BIND_FLOATS(m, pair_squares);
    BIND_FLOATS(m, add_pulls);
}
