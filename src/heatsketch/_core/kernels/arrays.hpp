// Views of numpy arrays, with checks of their types and shapes.
//
// Contract: inputs that are not C-contiguous are copied; outputs must be C-contiguous. Unsupported
// types or numbers of axes raise TypeError, and wrong lengths raise ValueError, before a loop starts.
// The range of indices is checked by the callers in Python. The GIL is released.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nb = nanobind;
using std::int64_t;

#if defined(__GNUC__)
#define RESTRICT __restrict__
#else
#define RESTRICT __restrict
#endif

// Rows whose sums are computed separately. Results depend on this value, so it must not change.
constexpr int64_t CHUNK = 1024;

inline void need(bool is_met, const char* what) {
    if (!is_met) throw nb::value_error(what);
}

// Values in any number of axes; const values are read-only.
template <class T> struct Vector {
    T* data;
    int64_t size;
    T& operator[](int64_t place) const { return data[place]; }
};

// Rows of values, one after the other.
template <class T> struct Table {
    T* data;
    int64_t rows, columns;
    T* operator[](int64_t row) const { return data + row * columns; }
};

// Integers of 32 or 64 bits, whichever an array holds, in one or two axes.
struct Ints {
    const void* data;
    int64_t size, columns;
    bool is_wide;
    int64_t operator[](int64_t place) const {
        return is_wide ? static_cast<const int64_t*>(data)[place]
                       : static_cast<const int32_t*>(data)[place];
    }
};

// The rows of some chunks.
struct Rows {
    int64_t first, last;
    Rows(int64_t start, int64_t stop, int64_t n_rows)
        : first(start * CHUNK), last(std::min(stop * CHUNK, n_rows)) {
        need(start >= 0, "start must be >= 0");
    }
};

namespace nanobind::detail {

template <class View, class T, size_t AXES> struct view_caster {
    NB_TYPE_CASTER(View, const_name("array"))
    using Array = std::conditional_t<std::is_const_v<T>, ndarray<ro, c_contig, device::cpu>, ndarray<c_contig, device::cpu>>;
    make_caster<Array> array;

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        if (!std::is_const_v<T>) flags &= ~uint8_t(cast_flags::convert);
        if (!array.from_python(source, flags, cleanup) || (AXES && array.value.ndim() != AXES)) return false;
        if (array.value.dtype() != dtype<std::remove_const_t<T>>()) return false;
        T* data = static_cast<T*>(array.value.data());
        if constexpr (AXES == 2)
            value = {data, int64_t(array.value.shape(0)), int64_t(array.value.shape(1))};
        else
            value = {data, int64_t(array.value.size())};
        return true;
    }
};
template <class T> struct type_caster<Vector<T>> : view_caster<Vector<T>, T, 0> {};
template <class T> struct type_caster<Table<T>> : view_caster<Table<T>, T, 2> {};

template <> struct type_caster<Ints> {
    NB_TYPE_CASTER(Ints, const_name("array of int32 or int64"))
    make_caster<ndarray<ro, c_contig, device::cpu>> array;

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        if (!array.from_python(source, flags, cleanup)) return false;
        const auto& ints = array.value;
        const bool is_wide = ints.dtype() == dtype<int64_t>();
        if ((!is_wide && ints.dtype() != dtype<int32_t>()) || ints.ndim() < 1 || ints.ndim() > 2) return false;
        value = {ints.data(), int64_t(ints.size()), ints.ndim() == 2 ? int64_t(ints.shape(1)) : 1, is_wide};
        return true;
    }
};

}  // namespace nanobind::detail

// Bind a function for each type of values, and for each type of indices.
#define BIND(m, name) (m).def(#name, &name, nb::call_guard<nb::gil_scoped_release>())
#define BIND_AS(m, name, ...) (m).def(#name, &name<__VA_ARGS__>, nb::call_guard<nb::gil_scoped_release>())
#define BIND_FLOATS(m, name) BIND_AS(m, name, float), BIND_AS(m, name, double)
#define BIND_INDICES(m, name)                                       \
    BIND_AS(m, name, float, int32_t), BIND_AS(m, name, float, int64_t), \
    BIND_AS(m, name, double, int32_t), BIND_AS(m, name, double, int64_t)
