// Nearest points in lists, tile by tile.
//
// Contract: queries and points of one type, float32 or float64. A squared distance is the sum of
// squared differences over the coordinates from first to last, each added by one fused multiply-add.
// It is exactly symmetric, exactly zero between duplicates, and does not depend on other pairs. The
// neighbours of a query depend only on its coordinates and on the lists that it probes, not on other
// queries. Points with NaN are never neighbours.
//
// QUERIES queries are compared with a strip of candidates at a time. Strips are stored coordinate by
// coordinate, so that the sums of many pairs stay in registers.
#include "lanes.hpp"

namespace {

constexpr int QUERIES = 4;
constexpr int STRIP_BYTES = 2 * (REGISTER < 16 ? 16 : REGISTER);
constexpr int64_t PACKED_NUMBERS = 65536;  // of a list at a time, so that they fit in a cache
constexpr double GOLDEN = 0.6180339887498949;

ALWAYS_INLINE double next_weight(double weight) {
    return weight + GOLDEN < 1.5 ? weight + GOLDEN : weight + GOLDEN - 1;
}

void second_weights(Vector<double> out) {
    double weight = 0.5;
    for (int64_t c = 0; c < out.size; ++c) out[c] = weight = next_weight(weight);
}

// The second distance, which breaks ties: the sum of absolute differences with weights between 1/2
// and 3/2, in float64. Only duplicates and mirror images are tied in both distances.
template <class T> double second_distance(const T* query, const T* point, int64_t d) {
    double total = 0, weight = 0.5;
    for (int64_t c = 0; c < d; ++c) {
        weight = next_weight(weight);
        total += weight * std::fabs(double(query[c]) - double(point[c]));
    }
    return total;
}

template <class T>
void second_distances(Table<const T> queries, Ints rows, Table<const T> points, Ints ids, Vector<double> out) {
    need(rows.size == out.size && ids.size == out.size, "out must have one entry for each pair");
    need(queries.columns == points.columns, "queries and points must have the same number of columns");
    for (int64_t e = 0; e < out.size; ++e)
        out[e] = second_distance(queries[rows[e]], points[ids[e]], points.columns);
}

// Squared distances of QUERIES queries to the points of one strip. A bit is set for each point that is
// within the bound of the query.
template <class T> struct Tile {
    static constexpr int WIDTH = STRIP_BYTES / sizeof(T);
    const T* query[QUERIES];
    T bound[QUERIES];
    T square[QUERIES][WIDTH];
    uint32_t bits[QUERIES];

    ALWAYS_INLINE void fill(const T* strip, int64_t d) {
        Lanes<T, WIDTH> sum[QUERIES];
        UNROLL for (int a = 0; a < QUERIES; ++a) sum[a] = Lanes<T, WIDTH>::zeros();
        for (int64_t c = 0; c < d; ++c) {
            const Lanes<T, WIDTH> y = Lanes<T, WIDTH>::load(strip + c * WIDTH);
            UNROLL for (int a = 0; a < QUERIES; ++a) sum[a].add_square(y, query[a][c]);
        }
        UNROLL for (int a = 0; a < QUERIES; ++a) {
            sum[a].store(square[a]);
            bits[a] = sum[a].within(bound[a]);
        }
    }
};

// Rows in strips, coordinate by coordinate; the last strip is padded with NaN.
template <class T> struct Packed {
    static constexpr int WIDTH = Tile<T>::WIDTH;
    const Table<const T> points;
    const int64_t n_strips;
    std::vector<T> strips;

    explicit Packed(Table<const T> given)
        : points(given),
          n_strips(std::max<int64_t>(1, PACKED_NUMBERS / std::max<int64_t>(1, given.columns * WIDTH))),
          strips(n_strips * given.columns * WIDTH) {}

    int64_t step() const { return n_strips * WIDTH; }
    const T* strip(int64_t number) const { return strips.data() + number * points.columns * WIDTH; }

    void pack(int64_t start, int64_t stop) {
        const int64_t d = points.columns;
        for (int64_t j = 0; j < (stop - start + WIDTH - 1) / WIDTH * WIDTH; ++j) {
            T* lane = strips.data() + j / WIDTH * WIDTH * d + j % WIDTH;
            const T* from = start + j < stop ? points[start + j] : nullptr;
            for (int64_t c = 0; c < d; ++c) lane[c * WIDTH] = from ? from[c] : T(NAN);
        }
    }
};

ALWAYS_INLINE int lowest_bit(uint32_t bits) {
#if defined(__GNUC__)
    return __builtin_ctz(bits);
#else
    int place = 0;
    while (!(bits >> place & 1)) ++place;
    return place;
#endif
}

template <class T> void all_squares(Table<const T> queries, Table<const T> points, Table<T> out) {
    need(out.rows == queries.rows && out.columns == points.rows, "out must have one entry for each pair");
    need(queries.columns == points.columns, "queries and points must have the same number of columns");
    constexpr int WIDTH = Tile<T>::WIDTH;
    const int64_t d = points.columns;
    Packed<T> packed(points);
    Tile<T> tile;
    for (int a = 0; a < QUERIES; ++a) tile.bound[a] = 0;
    for (int64_t start = 0; start < points.rows; start += packed.step()) {
        const int64_t stop = std::min(points.rows, start + packed.step());
        packed.pack(start, stop);
        for (int64_t q = 0; q < queries.rows; q += QUERIES) {
            const int n = int(std::min<int64_t>(queries.rows - q, QUERIES));
            for (int a = 0; a < QUERIES; ++a) tile.query[a] = queries[q + std::min(a, n - 1)];
            for (int64_t first = start; first < stop; first += WIDTH) {
                tile.fill(packed.strip((first - start) / WIDTH), d);
                const int64_t width = std::min<int64_t>(stop - first, WIDTH);
                for (int a = 0; a < n; ++a) std::copy(tile.square[a], tile.square[a] + width, out[q + a] + first);
            }
        }
    }
}

// The lists that are probed, nearest first, and the queries that probe each of them; -1 is no list.
struct Groups {
    int64_t n_groups = 0;
    std::vector<int64_t> order, ends, members;

    Groups(Ints probes, int64_t n_lists) : order(n_lists), members(probes.size) {
        std::vector<int64_t> slots(n_lists, -1);
        for (int64_t rank = 0; rank < probes.columns; ++rank)
            for (int64_t e = rank; e < probes.size; e += probes.columns)
                if (probes[e] >= 0 && slots[probes[e]] < 0) order[slots[probes[e]] = n_groups++] = probes[e];
        // First ends[g + 2] counts group g; then ends[g + 1] moves from its begin to its end.
        ends.assign(n_groups + 2, 0);
        for (int64_t e = 0; e < probes.size; ++e)
            if (probes[e] >= 0) ++ends[slots[probes[e]] + 2];
        for (int64_t g = 0; g < n_groups; ++g) ends[g + 2] += ends[g + 1];
        for (int64_t e = 0; e < probes.size; ++e)
            if (probes[e] >= 0) members[ends[slots[probes[e]] + 1]++] = e / probes.columns;
    }
};

template <class T> struct Lists {
    Table<const T> queries, points;
    Ints probes, starts;
};

// Keeps the nearest points of each query, sorted by squared distance, second distance and id.
template <class T, class I> struct KeepNearest {
    const Lists<T>& lists;
    const int64_t n_nearest;
    const Table<T> all_squares;
    const Table<I> all_ids;
    const Vector<int64_t> counts;

    double second(int64_t q, int64_t point) const {
        return second_distance(lists.queries[q], lists.points[point], lists.points.columns);
    }

    // Points that are tied with the last of the nearest in both distances are all kept.
    ALWAYS_INLINE int64_t insert(int64_t q, int64_t count, T square, int64_t point) const {
        T* squares = all_squares[q];
        I* ids = all_ids[q];
        const int64_t last = n_nearest - 1;
        int64_t place = count;
        double own = -1;
        if (count >= n_nearest && squares[last] == square) {
            own = second(q, point);
            if (own > second(q, ids[last])) return count;
        }
        for (; place > 0 && squares[place - 1] >= square; --place) {
            if (squares[place - 1] == square) {
                if (own < 0) own = second(q, point);
                const double other = second(q, ids[place - 1]);
                if (other < own || (other == own && ids[place - 1] < point)) break;
            }
            squares[place] = squares[place - 1];
            ids[place] = ids[place - 1];
        }
        squares[place] = square;
        ids[place] = I(point);
        ++count;
        // Drop the points after the nearest ones if they are no longer tied with the last of these.
        if (count > n_nearest &&
            (squares[last] < squares[count - 1] || second(q, ids[last]) < second(q, ids[count - 1])))
            count = n_nearest;
        return count;
    }

    // Keep the points of a strip within the bound, and lower the bound; false if the output is full.
    ALWAYS_INLINE bool operator()(Tile<T>& tile, int a, int64_t q, int64_t first) const {
        int64_t count = counts[q];
        T bound = tile.bound[a];
        for (uint32_t bits = tile.bits[a]; bits; bits &= bits - 1) {
            const int lane = lowest_bit(bits);
            if (!(tile.square[a][lane] <= bound)) continue;
            if (count == all_ids.columns) return false;
            count = insert(q, count, tile.square[a][lane], first + lane);
            if (count >= n_nearest) bound = all_squares[q][n_nearest - 1];
        }
        counts[q] = count;
        tile.bound[a] = bound;
        return true;
    }
};

// Appends all points within the bound of each query, and continues to count if the output is full. Of
// points exactly at the bound, only those whose second distance is at most `ties`.
template <class T, class I> struct KeepAll {
    const Lists<T>& lists;
    const Vector<const double> ties;
    const Vector<int32_t> numbers;
    const Vector<I> ids;
    const Vector<T> squares;
    int64_t n_pairs;

    ALWAYS_INLINE bool operator()(Tile<T>& tile, int a, int64_t q, int64_t first) {
        for (uint32_t bits = tile.bits[a]; bits; bits &= bits - 1) {
            const int lane = lowest_bit(bits);
            if (tile.square[a][lane] == tile.bound[a] &&
                second_distance(tile.query[a], lists.points[first + lane], lists.points.columns) > ties[q])
                continue;
            if (n_pairs < ids.size) {
                numbers[n_pairs] = int32_t(q);
                ids[n_pairs] = I(first + lane);
                squares[n_pairs] = tile.square[a][lane];
            }
            ++n_pairs;
        }
        return true;
    }
};

// Compare queries with the points of the lists that they probe, and call `keep` for strips with points
// within their bounds. Returns the query at which the output was full, or -1.
template <class T, class Keep> ALWAYS_INLINE int64_t compare(const Lists<T>& lists, T* bounds, Keep& keep) {
    constexpr int WIDTH = Tile<T>::WIDTH;
    const int64_t d = lists.points.columns;
    Packed<T> packed(lists.points);
    Tile<T> tile;
    const Groups groups(lists.probes, lists.starts.size - 1);
    for (int64_t g = 0; g < groups.n_groups; ++g) {
        const int64_t end = lists.starts[groups.order[g] + 1];
        for (int64_t start = lists.starts[groups.order[g]]; start < end; start += packed.step()) {
            const int64_t stop = std::min(end, start + packed.step());
            packed.pack(start, stop);
            for (int64_t m = groups.ends[g]; m < groups.ends[g + 1]; m += QUERIES) {
                const int n = int(std::min<int64_t>(groups.ends[g + 1] - m, QUERIES));
                const int64_t* member = &groups.members[m];
                for (int a = 0; a < QUERIES; ++a) {
                    const int64_t q = member[std::min(a, n - 1)];
                    tile.query[a] = lists.queries[q];
                    tile.bound[a] = bounds[q];
                }
                for (int64_t first = start; first < stop; first += WIDTH) {
                    tile.fill(packed.strip((first - start) / WIDTH), d);
                    for (int a = 0; a < n; ++a)
                        if (tile.bits[a] && !keep(tile, a, member[a], first)) return member[a];
                }
                for (int a = 0; a < n; ++a) bounds[member[a]] = tile.bound[a];
            }
        }
    }
    return -1;
}

template <class T> Lists<T> checked(Table<const T> queries, Ints probes, Table<const T> points, Ints starts) {
    need(probes.size == queries.rows * probes.columns && starts.size > 0, "probes must have one row for each query");
    need(queries.columns == points.columns, "queries and points must have the same number of columns");
    return {queries, points, probes, starts};
}

// squares[q] and ids[q] are filled up to counts[q]. Returns a query with more points than fit in the
// output, or -1.
template <class T, class I>
int64_t nearest(Table<const T> queries, Ints probes, Table<const T> points, Ints starts, int64_t n_nearest,
                Table<T> squares, Table<I> ids, Vector<int64_t> counts) {
    const Lists<T> lists = checked(queries, probes, points, starts);
    need(squares.rows == queries.rows && ids.rows == queries.rows && counts.size == queries.rows, "outputs must have one row for each query");
    need(squares.columns == ids.columns && n_nearest > 0, "squares and ids must have the same shape, and n_nearest must be > 0");
    std::vector<T> bounds(queries.rows, T(INFINITY));
    std::fill(counts.data, counts.data + counts.size, 0);
    const KeepNearest<T, I> keep{lists, n_nearest, squares, ids, counts};
    return compare(lists, bounds.data(), keep);
}

// Writes as many pairs as fit in the output, in no order. Returns the number of all pairs.
template <class T, class I>
int64_t within(Table<const T> queries, Ints probes, Table<const T> points, Ints starts, Vector<const T> limits,
               Vector<const double> ties, Vector<int32_t> numbers, Vector<I> ids, Vector<T> squares) {
    const Lists<T> lists = checked(queries, probes, points, starts);
    need(limits.size == queries.rows && ties.size == queries.rows, "limits and ties must have one entry for each query");
    need(numbers.size == ids.size && squares.size == ids.size, "outputs must have the same size");
    std::vector<T> bounds(limits.data, limits.data + limits.size);
    KeepAll<T, I> keep{lists, ties, numbers, ids, squares, 0};
    compare(lists, bounds.data(), keep);
    return keep.n_pairs;
}

}  // namespace

void bind_neighbors(nb::module_& m) {
    BIND_INDICES(m, nearest);
    BIND_INDICES(m, within);
    BIND_FLOATS(m, all_squares);
    BIND_FLOATS(m, second_distances);
    BIND(m, second_weights);
}
