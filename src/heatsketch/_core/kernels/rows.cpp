// Rows of sparse matrices and tables: sorted, transposed, merged, compared.
//
// Contract: squared distances of float32 or float64, ids of int32 or int64, row starts of either.
// Only the sums of sparse_squares are rounded, in float64. Loops with `first` and `last` process the
// rows from first to last - 1. Rows to merge must be sorted, with equal values where both have an
// entry.
#include "arrays.hpp"

namespace {

constexpr double ROUNDING = 64 * 2.220446049250313e-16;  // relative rounding error of |x|^2 + |y|^2 - 2 x y

// Squared distances between rows of two sparse matrices, the first in CSR format and the second in
// CSC format; out must be zero before. Sums are taken from the first coordinate to the last. Values
// below rounding error become zero, so that the distance of duplicates is zero.
void sparse_squares(Ints indptr, Ints indices, Vector<const double> values, Ints column_indptr,
                    Ints column_indices, Vector<const double> column_values, Vector<const double> row_norms,
                    Vector<const double> norms, Table<double> out) {
    need(indptr.size == out.rows + 1 && row_norms.size == out.rows && norms.size == out.columns, "out must have one row and one column for each point");
    for (int64_t q = 0; q < out.rows; ++q) {
        double* inner = out[q];
        for (int64_t e = indptr[q], end = indptr[q + 1]; e < end; ++e)
            for (int64_t f = column_indptr[indices[e]], last = column_indptr[indices[e] + 1]; f < last; ++f)
                inner[column_indices[f]] += values[e] * column_values[f];
        for (int64_t j = 0; j < out.columns; ++j) {
            const double norm = row_norms[q] + norms[j], square = norm - 2 * inner[j];
            inner[j] = square > ROUNDING * norm ? square : 0;
        }
    }
}

// The number of the distinct row to which each row is equal, by first occurrence. `first` is a hash
// table; its length must be a power of two, and its entries -1 before.
template <class T, class Bits>
int64_t distinct_rows(Table<const T> points, Table<const Bits> bits, Vector<int64_t> first, Vector<int64_t> places) {
    constexpr uint64_t FACTOR = 0x9E3779B97F4A7C15;
    const uint64_t mask = uint64_t(first.size) - 1;
    need(first.size > points.rows && (first.size & mask) == 0 && places.size == points.rows, "first must be longer than the number of rows, and a power of two");
    const auto are_equal = [&](int64_t i, int64_t j) {
        return std::equal(points[i], points[i] + points.columns, points[j]);
    };
    int64_t n_distinct = 0;
    for (int64_t i = 0; i < points.rows; ++i) {
        uint64_t mixed = FACTOR;
        for (int64_t c = 0; c < points.columns; ++c) {
            if (points[i][c] != 0) mixed ^= bits[i][c];  // the bits of zero differ from those of -0
            mixed *= FACTOR;
            mixed ^= mixed >> 32;
        }
        uint64_t place = mixed & mask;
        while (first[place] >= 0 && !are_equal(first[place], i)) place = (place + 1) & mask;
        const bool is_new = first[place] < 0;
        places[i] = is_new ? n_distinct++ : places[first[place]];
        if (is_new) first[place] = i;
    }
    return n_distinct;
}

template <class T, class I>
void sort_rows(Ints indptr, Vector<I> ids, Vector<T> squares, int64_t first, int64_t last) {
    constexpr int64_t LONG_ROW = 64;  // from this length on, std::sort is faster than insertion
    need(first >= 0 && last < indptr.size, "first and last must be existing rows");
    std::vector<std::pair<I, T>> row;
    for (int64_t i = first; i < last; ++i) {
        const int64_t begin = indptr[i], end = indptr[i + 1];
        if (end - begin >= LONG_ROW) {
            row.clear();
            for (int64_t e = begin; e < end; ++e) row.emplace_back(ids[e], squares[e]);
            std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
            for (int64_t e = begin; e < end; ++e) std::tie(ids[e], squares[e]) = row[e - begin];
            continue;
        }
        for (int64_t e = begin + 1; e < end; ++e) {
            const I id = ids[e];
            const T square = squares[e];
            int64_t place = e;
            for (; place > begin && ids[place - 1] > id; --place)
                ids[place] = ids[place - 1], squares[place] = squares[place - 1];
            ids[place] = id, squares[place] = square;
        }
    }
}

// The transpose, with sorted rows; `ends`, zero before, becomes its row starts.
template <class T, class I>
void reverse(Ints indptr, Ints ids, Vector<const T> squares, Vector<int64_t> ends, Vector<I> back_ids,
             Vector<T> back_squares) {
    need(back_ids.size == ids.size && back_squares.size == ids.size && ends.size > 0, "outputs must have as many entries as the input");
    for (int64_t e = 0; e < ids.size; ++e) ++ends[ids[e] + 1];
    for (int64_t j = 1; j < ends.size; ++j) ends[j] += ends[j - 1];
    std::vector<int64_t> filled(ends.data, ends.data + ends.size - 1);
    for (int64_t i = 0; i < indptr.size - 1; ++i)
        for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e) {
            const int64_t place = filled[ids[e]]++;
            back_ids[place] = I(i);
            back_squares[place] = squares[e];
        }
}

// Call take(a, b) for each id in row i of either matrix, in order; a missing entry is -1.
template <class Take> void merge(Ints indptr, Ints ids, Ints other_indptr, Ints other_ids, int64_t i, Take take) {
    int64_t a = indptr[i], b = other_indptr[i];
    const int64_t a_end = indptr[i + 1], b_end = other_indptr[i + 1];
    while (a < a_end || b < b_end) {
        const bool left = a < a_end && (b == b_end || ids[a] <= other_ids[b]);
        const bool right = b < b_end && (a == a_end || other_ids[b] <= ids[a]);
        take(left ? a : -1, right ? b : -1);
        a += left, b += right;
    }
}

void union_sizes(Ints indptr, Ints ids, Ints other_indptr, Ints other_ids, Vector<int64_t> sizes, int64_t first,
                 int64_t last) {
    need(first >= 0 && last <= sizes.size && last < indptr.size && last < other_indptr.size, "first and last must be existing rows");
    for (int64_t i = first; i < last; ++i) {
        int64_t n = 0;
        merge(indptr, ids, other_indptr, other_ids, i, [&n](int64_t, int64_t) { ++n; });
        sizes[i] = n;
    }
}

template <class T, class I>
void fill_union(Ints indptr, Ints ids, Vector<const T> squares, Ints other_indptr, Ints other_ids,
                Vector<const T> other_squares, Ints starts, Vector<I> union_ids, Vector<T> union_squares,
                int64_t first, int64_t last) {
    need(first >= 0 && last < indptr.size && last < other_indptr.size && last < starts.size, "first and last must be existing rows");
    for (int64_t i = first; i < last; ++i) {
        int64_t place = starts[i];
        merge(indptr, ids, other_indptr, other_ids, i, [&](int64_t a, int64_t b) {
            union_ids[place] = I(a >= 0 ? ids[a] : other_ids[b]);
            union_squares[place++] = a >= 0 ? squares[a] : other_squares[b];
        });
    }
}

}  // namespace

void bind_rows(nb::module_& m) {
    BIND(m, sparse_squares);
    BIND_AS(m, distinct_rows, float, uint32_t), BIND_AS(m, distinct_rows, double, uint64_t);
    BIND_INDICES(m, sort_rows);
    BIND_INDICES(m, reverse);
    BIND(m, union_sizes);
    BIND_INDICES(m, fill_union);
}
