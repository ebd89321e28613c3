#include "search/maens/maens.h"

#include "bindings/engine.h"

namespace arcfleet {

static void bind_maens(nb::module_ &module) {
    nb::class_<Maens> engine(module, "Maens",
                             "Memetic algorithm with extended neighbourhood search.");
    engine.def(
        "__init__",
        [](Maens *self, const Network &network, int32_t population, int32_t offspring,
           int32_t trials, double local_search_rate, int32_t merge_pairs,
           double rank_by_cost_rate, int32_t tries_per_offspring, uint64_t seed,
           const InArray<int32_t> &arcs, const InArray<int32_t> &route_starts) {
            const MaensSettings settings{
                population,         offspring,   trials,
                local_search_rate,  merge_pairs, rank_by_cost_rate,
                tries_per_offspring};
            const Plan start = to_plan(arcs, route_starts);
            const nb::gil_scoped_release release;
            new (self) Maens(network, settings, seed, start);
        },
        nb::arg("network"), nb::arg("population"), nb::arg("offspring"),
        nb::arg("trials"), nb::arg("local_search_rate"), nb::arg("merge_pairs"),
        nb::arg("rank_by_cost_rate"), nb::arg("tries_per_offspring"), nb::arg("seed"),
        nb::arg("arcs"), nb::arg("route_starts"), nb::keep_alive<1, 2>());
    bind_engine(engine);
}

static const Binding binding{"maens", bind_maens};

} // namespace arcfleet
