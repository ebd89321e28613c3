#include "search/fleet/fleet_scanning.h"

#include "bindings/engine.h"
#include "bindings/fleet_rules.h"

namespace arcfleet {

static void bind_fleet_scanning(nb::module_ &module) {
    nb::class_<FleetScanning> engine(
        module, "FleetScanning",
        "Builds plans of a fleet by path scanning and keeps the best.");
    engine.def(
        "__init__",
        [](FleetScanning *self, const std::vector<const Network *> &networks,
           const InArray<int32_t> &vehicles, const InArray<int32_t> &facilities,
           bool empty_at_end, bool exact_fleet, bool fewest_routes, double balance,
           int64_t compactness, int64_t change_price,
           const InArray<int32_t> &numbered_slots, const InArray<int32_t> &home,
           const InArray<int32_t> &pin, const InArray<int32_t> &locked,
           const InArray<uint8_t> &may_serve, const InArray<int32_t> &locked_costs,
           Choice choice, Trigger trigger, Filter filter, double alpha, uint64_t seed) {
            FleetRules rules{vehicle_types(vehicles),
                             facility_stops(facilities),
                             empty_at_end,
                             exact_fleet,
                             fewest_routes,
                             balance,
                             compactness,
                             change_price,
                             copied(numbered_slots),
                             copied(home),
                             copied(pin),
                             copied(locked),
                             copied(may_serve),
                             copied(locked_costs)};
            const nb::gil_scoped_release release;
            new (self) FleetScanning(networks, std::move(rules),
                                     {choice, trigger, filter, alpha}, seed);
        },
        nb::arg("networks"), nb::arg("vehicles"), nb::arg("facilities"),
        nb::arg("empty_at_end"), nb::arg("exact_fleet"), nb::arg("fewest_routes"),
        nb::arg("balance"), nb::arg("compactness"), nb::arg("change_price"),
        nb::arg("numbered_slots"), nb::arg("home"), nb::arg("pin"), nb::arg("locked"),
        nb::arg("may_serve"), nb::arg("locked_costs"), nb::arg("choice"),
        nb::arg("trigger"), nb::arg("filter"), nb::arg("alpha"), nb::arg("seed"),
        nb::keep_alive<1, 2>());
    bind_engine(engine);
    bind_best_fleet(engine);
}

static const Binding binding{"fleet_scanning", bind_fleet_scanning};

} // namespace arcfleet
