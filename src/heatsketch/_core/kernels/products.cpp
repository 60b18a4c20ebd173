// Products of a sparse matrix with a block of columns, combined with a step of a recurrence.
//
//     y = a (A x - v w) + b x - g y,    t_j += c_j y,    sums += v y
//
// Contract: float32 or float64, the same type for all arrays of a step; indices of 32 or 64 bits.
// Loops process the rows of chunks from `start` to `stop`. A product is a sum over the stored entries
// of a row from left to right, with each product and each sum rounded, as in scipy. Sums over rows
// are computed for chunks of CHUNK rows, in the type of `sums`.
//
// Columns are processed in tiles of fixed width, whose sums stay in registers for a whole row. Rows
// of x are prefetched before they are used, since they are scattered over memory.
#include "lanes.hpp"

namespace {

constexpr int AHEAD = 16;  // entries between a prefetch and its use
constexpr int LINE = 64;   // bytes
constexpr int64_t NEAREST_CACHE = 32768;  // bytes
constexpr int64_t AT_A_TIME = 64;         // rows per tile, whose indices stay in the cache

// Values of diag(left) A diag(right), the weights multiplied first, in float64.
template <class T, class I>
void scaled_values(Ints indptr, Vector<const I> indices, Vector<const T> values, Vector<const double> left,
                   Vector<const double> right, Vector<T> out, int64_t start, int64_t stop) {
    need(left.size == indptr.size - 1 && out.size == values.size, "left must have one weight for each row");
    const Rows rows(start, stop, left.size);
    for (int64_t i = rows.first; i < rows.last; ++i)
        for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e)
            out[e] = T(values[e] * (left[i] * right[indices[e]]));
}

// A times a vector, in float64.
template <class T, class I>
void row_products(Ints indptr, Vector<const I> indices, Vector<const T> values, Vector<const double> vector,
                  Vector<double> out, int64_t start, int64_t stop) {
    need(indptr.size == out.size + 1, "out must have one entry for each row");
    const Rows rows(start, stop, out.size);
    for (int64_t i = rows.first; i < rows.last; ++i) {
        double total = 0;
        for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e)
            total += double(values[e]) * vector[indices[e]];
        out[i] = total;
    }
}

// Sums of rows from one start to the next, in float64.
template <class T> void segment_sums(Table<const T> block, Ints starts, Table<T> out, int64_t start, int64_t stop) {
    need(starts.size == out.rows + 1 && out.columns == block.columns, "out must have one row for each segment");
    const Rows rows(start, stop, out.rows);
    const int64_t n = block.columns;
    std::vector<double> total(n);
    for (int64_t u = rows.first; u < rows.last; ++u) {
        const int64_t begin = starts[u], end = starts[u + 1];
        if (end == begin + 1) {
            std::copy(block[begin], block[end], out[u]);
            continue;
        }
        std::fill(total.begin(), total.end(), 0.0);
        for (int64_t i = begin; i < end; ++i)
            for (int64_t c = 0; c < n; ++c) total[c] += block[i][c];
        for (int64_t c = 0; c < n; ++c) out[u][c] = T(total[c]);
    }
}

// The step for rows that share rows of `product`, which is a (A x - v w).
template <class T>
void spread_step(Table<const T> product, Ints places, Table<const T> x, double b_, double g_, Table<T> out,
                 Vector<T> totals, Vector<const T> terms, Vector<const T> v, Table<T> sums, int64_t start, int64_t stop) {
    need(places.size == out.rows && x.rows == out.rows && v.size == out.rows, "places, x, v and out must have the same number of rows");
    need(product.columns == out.columns && x.columns == out.columns && sums.columns == out.columns, "blocks must have the same number of columns");
    need(totals.size >= terms.size * out.rows * out.columns && sums.rows * CHUNK >= out.rows, "totals and sums must have the shape of out");
    const Rows rows(start, stop, out.rows);
    const int64_t n = out.columns;
    const T b = T(b_), g = T(g_);
    for (int64_t i = rows.first; i < rows.last; ++i) {
        const T *RESTRICT shared = product[places[i]], *RESTRICT here = x[i];
        T *RESTRICT y = out[i], *RESTRICT sum = sums[i / CHUNK];
        if (g != 0)  // else out is not initialized
            for (int64_t c = 0; c < n; ++c) y[c] = shared[c] + b * here[c] - g * y[c];
        else
            for (int64_t c = 0; c < n; ++c) y[c] = shared[c] + b * here[c];
        for (int64_t c = 0; c < n; ++c) sum[c] += v[i] * y[c];
        for (int64_t t = 0; t < terms.size; ++t) {
            T* RESTRICT total = totals.data + (t * out.rows + i) * n;
            for (int64_t c = 0; c < n; ++c) total[c] += terms[t] * y[c];
        }
    }
}

// The place-th smallest positive value of each row, or the largest if there are fewer than `place`.
// The output is unchanged for rows without positive values.
template <class T>
void positive_places(Ints indptr, Vector<const T> values, int64_t place, Vector<T> out, int64_t start, int64_t stop) {
    need(indptr.size == out.size + 1 && place > 0, "out must have one entry for each row, and place must be > 0");
    const Rows rows(start, stop, out.size);
    std::vector<T> smallest(place);  // the smallest values so far, sorted
    for (int64_t i = rows.first; i < rows.last; ++i) {
        int64_t n_kept = 0;
        for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e) {
            const T value = values[e];
            if (value <= 0 || (n_kept == place && value >= smallest[place - 1])) continue;
            n_kept = std::min(n_kept + 1, place);
            int64_t p = n_kept - 1;
            for (; p > 0 && smallest[p - 1] > value; --p) smallest[p] = smallest[p - 1];
            smallest[p] = value;
        }
        if (n_kept) out[i] = smallest[n_kept - 1];
    }
}

// v @ block over each chunk of rows, added to the sums in float64.
template <class V, class T>
void stationary_sums(Vector<const V> v, Table<const T> block, Table<double> sums, int64_t start, int64_t stop) {
    need(v.size == block.rows && sums.columns == block.columns, "v must have one weight for each row");
    need(sums.rows * CHUNK >= block.rows, "sums must have one row for each chunk");
    const Rows rows(start, stop, block.rows);
    for (int64_t i = rows.first; i < rows.last; ++i) {
        double* RESTRICT total = sums[i / CHUNK];
        const T* RESTRICT row = block[i];
        const double weight = v[i];
        for (int64_t c = 0; c < block.columns; ++c) total[c] += weight * double(row[c]);
    }
}

template <class T, class I> struct Step {
    Ints indptr;
    Vector<const I> indices;
    Vector<const T> values;
    Table<const T> x, halo;  // the columns of the matrix are the rows of x and halo
    Table<T> out;
    Vector<const T> v, w;
    T a, b, g;
    T* totals;
    Vector<const T> terms;
    Table<T> sums;  // without rows if no sums are needed
};

// Where the rows of x are that a row reads: within the nearest cache, farther apart, or in a halo.
enum Reach { NEAR, FAR, HALO };

// The step of some rows in W columns, from `column` on. Factors and terms that are zero are skipped.
// Not inlined, since the compiler would not keep the pointers of all tiles in registers.
template <int W, Reach REACH, class T, class I>
NEVER_INLINE void step_tile(const Step<T, I>& step, Rows rows, int64_t column) {
    using Tile = Lanes<T, W>;
    const Step<T, I> s = step;
    // The rows of the halo are elsewhere; their offset is added to an integer, without a branch.
    const uintptr_t begin = uintptr_t(s.x.data + column), width = s.out.columns * sizeof(T);
    const uintptr_t halo_offset = uintptr_t(s.halo.data) - uintptr_t(s.x.data) - s.x.rows * width;
    const auto row = [=, own = s.x.rows](int64_t j) {
        return reinterpret_cast<const T*>(begin + j * width + (REACH != HALO || j < own ? 0 : halo_offset));
    };
    const I *indices = s.indices.data, *last = indices + s.indices.size - 1;
    const Tile w = Tile::load(&s.w[column]);
    for (int64_t i = rows.first; i < rows.last; ++i) {
        Tile y = Tile::zeros();
        for (int64_t e = s.indptr[i], end = s.indptr[i + 1]; e < end; ++e) {
            if constexpr (REACH != NEAR && W * sizeof(T) >= LINE) {
                const T* later = row(*std::min(indices + e + AHEAD, last));
                UNROLL for (int c = 0; c < W; c += LINE / sizeof(T)) PREFETCH(later + c);
            }
            y.add(s.values[e], Tile::load(row(indices[e])));
        }
        y.add(-s.v[i], w);
        y.scale(s.a);
        if (s.b != 0) y.add(s.b, Tile::load(s.x[i] + column));
        if (s.g != 0) y.add(-s.g, Tile::load(s.out[i] + column));
        y.store(s.out[i] + column);
        const auto add_to = [&y](T* target, T factor) {
            Tile total = Tile::load(target);
            total.add(factor, y);
            total.store(target);
        };
        if (s.sums.rows) add_to(s.sums[i / CHUNK] + column, s.v[i]);
        for (int64_t t = 0; t < s.terms.size; ++t)
            if (s.terms[t] != 0) add_to(s.totals + (t * s.out.rows + i) * s.out.columns + column, s.terms[t]);
    }
}

// True if the rows of x that a row reads exceed the nearest cache, so that a prefetch saves time.
template <class T, class I> bool is_far(const Step<T, I>& s, int64_t i) {
    const int64_t begin = s.indptr[i], end = s.indptr[i + 1];
    const int64_t reach = begin < end ? std::abs(int64_t(s.indices[end - 1]) - int64_t(s.indices[begin])) : 0;
    return reach * s.out.columns * int64_t(sizeof(T)) > NEAREST_CACHE;
}

template <Reach REACH, class T, class I> void step_tiles(const Step<T, I>& s, Rows rows) {
    constexpr int UNIT = 16 / sizeof(T), WIDEST = REGISTER < 16 ? 8 * UNIT : 8 * REGISTER / sizeof(T);
    const int64_t n = s.out.columns;
    int64_t c = 0;
    for (; c + WIDEST <= n; c += WIDEST) step_tile<WIDEST, REACH>(s, rows, c);
    if (WIDEST > 16 * UNIT && c + 16 * UNIT <= n) step_tile<16 * UNIT, REACH>(s, rows, c), c += 16 * UNIT;
    if (WIDEST > 8 * UNIT && c + 8 * UNIT <= n) step_tile<8 * UNIT, REACH>(s, rows, c), c += 8 * UNIT;
    if (c + 4 * UNIT <= n) step_tile<4 * UNIT, REACH>(s, rows, c), c += 4 * UNIT;
    // Narrow tiles do not prefetch, so the variant with a halo is enough.
    if (c + 2 * UNIT <= n) step_tile<2 * UNIT, HALO>(s, rows, c), c += 2 * UNIT;
    if (c + UNIT <= n) step_tile<UNIT, HALO>(s, rows, c), c += UNIT;
    if (n - c == 3) step_tile<3, HALO>(s, rows, c);
    if (n - c == 2) step_tile<2, HALO>(s, rows, c);
    if (n - c == 1) step_tile<1, HALO>(s, rows, c);
}

template <class T, class I>
void heat_step(Ints indptr, Vector<const I> indices, Vector<const T> values, Table<const T> x, Table<const T> halo,
               Table<T> out, Vector<const T> v, Vector<const T> w, Vector<const T> factors, Vector<T> totals,
               Vector<const T> terms, Table<T> sums, int64_t start, int64_t stop) {
    const int64_t n = out.columns;
    need(indptr.size == out.rows + 1 && v.size == out.rows && factors.size == 3, "indptr, v and out must have the same number of rows");
    need(x.columns == n && halo.columns == n && w.size == n, "x, halo, w and out must have the same number of columns");
    need(totals.size >= terms.size * out.rows * n, "totals must have one block for each term");
    need(!sums.rows || (sums.columns == n && sums.rows * CHUNK >= out.rows), "sums must have one row for each chunk");
    const Rows rows(start, stop, out.rows);
    const Step<T, I> s{indptr, indices, values, x, halo, out, v, w, factors[0], factors[1], factors[2],
                       totals.data, terms, sums};
    for (Rows some = rows; some.first < rows.last; some.first += AT_A_TIME) {
        some.last = std::min(some.first + AT_A_TIME, rows.last);
        if (halo.rows)
            step_tiles<HALO>(s, some);
        else if (is_far(s, (some.first + some.last) / 2))
            step_tiles<FAR>(s, some);
        else
            step_tiles<NEAR>(s, some);
    }
}

}  // namespace

void bind_products(nb::module_& m) {
    BIND_INDICES(m, scaled_values);
    BIND_INDICES(m, row_products);
    BIND_FLOATS(m, segment_sums);
    BIND_FLOATS(m, spread_step);
    BIND_FLOATS(m, positive_places);
    BIND_AS(m, stationary_sums, float, float), BIND_AS(m, stationary_sums, float, double);
    BIND_AS(m, stationary_sums, double, float), BIND_AS(m, stationary_sums, double, double);
    BIND_INDICES(m, heat_step);
}
