#include "search/areas/area_search.h"

#include "bindings/engine.h"

namespace arcfleet {

static void bind_area_search(nb::module_ &module) {
    nb::class_<AreaSearch> engine(module, "AreaSearch",
                                  "Ruin and recreate in areas of a city.");
    engine.def(
        "__init__",
        [](AreaSearch *self, const Network &network, double average_removed,
           double longest_string, double split_rate, double split_growth,
           double blink_rate, double first_temperature, double last_temperature,
           double most_excess, double target_fit, int64_t most_tasks, uint64_t seed,
           int threads, int64_t horizon_iterations, double horizon_seconds,
           const InArray<int32_t> &arcs, const InArray<int32_t> &route_starts) {
            const RuinRecreateSettings settings{
                average_removed,  longest_string, split_rate,
                split_growth,     blink_rate,     first_temperature,
                last_temperature, most_excess,    target_fit};
            const Plan start = to_plan(arcs, route_starts);
            const nb::gil_scoped_release release;
            new (self) AreaSearch(network, settings, most_tasks, seed, threads,
                                  {horizon_iterations, horizon_seconds}, start);
        },
        nb::arg("network"), nb::arg("average_removed"), nb::arg("longest_string"),
        nb::arg("split_rate"), nb::arg("split_growth"), nb::arg("blink_rate"),
        nb::arg("first_temperature"), nb::arg("last_temperature"),
        nb::arg("most_excess"), nb::arg("target_fit"), nb::arg("most_tasks"),
        nb::arg("seed"), nb::arg("threads"), nb::arg("horizon_iterations"),
        nb::arg("horizon_seconds"), nb::arg("arcs"), nb::arg("route_starts"),
        nb::keep_alive<1, 2>());
    bind_engine(engine);
}

static const Binding binding{"area_search", bind_area_search};

} // namespace arcfleet
