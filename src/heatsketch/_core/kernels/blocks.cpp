// Products of tall blocks of columns, with each other and with small matrices.
//
// Contract: float32 or float64, the same type for both blocks; small matrices are float64. Products and
// sums are computed in float64, each rounded separately, for the rows from the first to the last.
#include "arrays.hpp"

namespace {

// left^T right, added to the sums.
template <class T> void cross_sums(Table<const T> left, Table<const T> right, Table<double> sums) {
    need(left.rows == right.rows, "left and right must have the same number of rows");
    need(sums.rows == left.columns && sums.columns == right.columns, "sums must have a row for each column of left");
    const int64_t n = right.columns;
    std::vector<double> wide(n);
    for (int64_t i = 0; i < left.rows; ++i) {
        std::copy(right[i], right[i] + n, wide.begin());
        const double* RESTRICT y = wide.data();
        for (int64_t a = 0; a < left.columns; ++a) {
            const double x = left[i][a];
            double* RESTRICT sum = sums[a];
            for (int64_t c = 0; c < n; ++c) sum[c] += x * y[c];
        }
    }
}

// block factors, in place, for an upper triangular matrix of factors.
template <class T> void times_triangular(Table<T> block, Table<const double> factors) {
    const int64_t n = block.columns;
    need(factors.rows == n && factors.columns == n, "factors must have a row and a column for each column of block");
    std::vector<double> row(n);
    for (int64_t i = 0; i < block.rows; ++i) {
        double* RESTRICT y = row.data();
        std::fill(y, y + n, 0.0);
        for (int64_t a = 0; a < n; ++a) {
            const double x = block[i][a];
            const double* RESTRICT factor = factors[a];
            for (int64_t c = a; c < n; ++c) y[c] += x * factor[c];
        }
        for (int64_t c = 0; c < n; ++c) block[i][c] = T(y[c]);
    }
}

}  // namespace

void bind_blocks(nb::module_& m) {
    BIND_FLOATS(m, cross_sums);
    BIND_FLOATS(m, times_triangular);
}
