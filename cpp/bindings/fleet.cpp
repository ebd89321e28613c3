#include "search/fleet/fleet_search.h"

#include "bindings/engine.h"
#include "bindings/fleet_rules.h"

namespace arcfleet {

static void bind_fleet(nb::module_ &module) {
    nb::class_<FleetSearch> engine(module, "FleetSearch",
                                   "Ruin and recreate over plans of a fleet.");
    engine.def(
        "__init__",
        [](FleetSearch *self, const std::vector<const Network *> &networks,
           const FleetRules &rules, double average_removed, double longest_string,
           double split_rate, double split_growth, double blink_rate,
           double first_temperature, double last_temperature, double most_excess,
           double target_fit, uint64_t seed, int chains, int64_t horizon_iterations,
           double horizon_seconds, const InArray<int32_t> &arcs,
           const InArray<int32_t> &route_starts, const InArray<int32_t> &route_vehicles,
           const InArray<int32_t> &route_slots, const InArray<uint8_t> &vias) {
            const RuinRecreateSettings settings{
                average_removed,  longest_string, split_rate,
                split_growth,     blink_rate,     first_temperature,
                last_temperature, most_excess,    target_fit};
            Plan start = to_plan(arcs, route_starts);
            start.vehicles = copied(route_vehicles);
            start.slots = copied(route_slots);
            start.vias = copied(vias);
            const nb::gil_scoped_release release;
            new (self) FleetSearch(networks, rules, settings, seed, chains,
                                   {horizon_iterations, horizon_seconds}, start);
        },
        nb::arg("networks"), nb::arg("rules"), nb::arg("average_removed"),
        nb::arg("longest_string"), nb::arg("split_rate"), nb::arg("split_growth"),
        nb::arg("blink_rate"), nb::arg("first_temperature"),
        nb::arg("last_temperature"), nb::arg("most_excess"), nb::arg("target_fit"),
        nb::arg("seed"), nb::arg("chains"), nb::arg("horizon_iterations"),
        nb::arg("horizon_seconds"), nb::arg("arcs"), nb::arg("route_starts"),
        nb::arg("route_vehicles"), nb::arg("route_slots"), nb::arg("vias"),
        nb::keep_alive<1, 2>());
    bind_engine(engine);
    bind_best_fleet(engine);
}

static const Binding binding{"fleet", bind_fleet};

} // namespace arcfleet
