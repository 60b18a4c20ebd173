// The extension modules _baseline, _avx2 and _avx512: the same loops for three instruction sets.
//
// Contract: the results of all three are bit-identical. A module is imported only if `supports` of
// _baseline returns True for it. If the compiler does not support the options, only _baseline is built.
#include "arrays.hpp"

#include <string>

using Bind = void(nb::module_&);
Bind bind_affinities, bind_products, bind_neighbors, bind_rows, bind_stream, bind_pairs, bind_components, bind_blocks;

NB_MODULE(HEATSKETCH_MODULE, m) {
    m.attr("CHUNK") = CHUNK;
    m.def("supports", [](const char* given) {
        const std::string level = given;
#if defined(HEATSKETCH_LEVELS)
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (level == "avx2") return avx2;
        if (level == "avx512")
            return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
        return level == "baseline";
    });
    for (Bind* bind : {bind_affinities, bind_products, bind_neighbors, bind_rows, bind_stream, bind_pairs, bind_components, bind_blocks}) bind(m);
}
