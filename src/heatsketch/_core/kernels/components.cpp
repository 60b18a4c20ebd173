// Connected components of a symmetric graph. A link must exceed eps times the largest value in the
// row of one of its ends.
//
// Contract: CSR of float32 or float64 with indices of 32 or 64 bits. Components are numbered in the
// order of their first points. NaN is no link.
#include "arrays.hpp"

template <class T, class I>
static int64_t label_components(Ints indptr, Vector<const I> indices, Vector<const T> values, double eps,
                                Vector<int32_t> labels) {
    const int64_t n_rows = labels.size;
    need(indptr.size == n_rows + 1, "labels must have one entry for each row");
    std::vector<T> least(n_rows, T(0));
    std::vector<I> waiting(n_rows);
    for (int64_t i = 0; i < n_rows; ++i) {
        labels[i] = -1;
        for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e)
            least[i] = std::max(least[i], T(T(eps) * values[e]));
    }
    int32_t n_components = 0;
    for (int64_t first = 0; first < n_rows; ++first) {
        if (labels[first] >= 0) continue;
        labels[first] = n_components;
        waiting[0] = I(first);
        for (int64_t n_waiting = 1; n_waiting;) {
            const int64_t i = waiting[--n_waiting];
            for (int64_t e = indptr[i], end = indptr[i + 1]; e < end; ++e) {
                const I j = indices[e];
                if (labels[j] < 0 && values[e] > std::min(least[i], least[j])) {
                    labels[j] = n_components;
                    waiting[n_waiting++] = j;
                }
            }
        }
        ++n_components;
    }
    return n_components;
}

void bind_components(nb::module_& m) { BIND_INDICES(m, label_components); }
