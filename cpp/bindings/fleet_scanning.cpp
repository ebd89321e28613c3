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
           const FleetRules &rules, Choice choice, Trigger trigger, Filter filter,
           double alpha, uint64_t seed) {
            const nb::gil_scoped_release release;
            new (self)
                FleetScanning(networks, rules, {choice, trigger, filter, alpha}, seed);
        },
        nb::arg("networks"), nb::arg("rules"), nb::arg("choice"), nb::arg("trigger"),
        nb::arg("filter"), nb::arg("alpha"), nb::arg("seed"), nb::keep_alive<1, 2>());
    bind_engine(engine);
    bind_best_fleet(engine);
}

static const Binding binding{"fleet_scanning", bind_fleet_scanning};

} // namespace arcfleet
