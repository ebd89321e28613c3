#include "search/fleet/trip_split.h"

#include "bindings/fleet_rules.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

namespace arcfleet {

static void bind_trip_split(nb::module_ &module) {
    using Parts = std::tuple<OutArray<int32_t>, OutArray<int32_t>, OutArray<int32_t>,
                             OutArray<uint8_t>>;
    module.def(
        "split_trips",
        [](const std::vector<const Network *> &networks, const FleetRules &rules,
           const InArray<int32_t> &arcs,
           bool choose_directions) -> std::optional<Parts> {
            std::optional<Plan> plan;
            {
                const nb::gil_scoped_release release;
                plan = split_into_trips(networks, rules, view(arcs), choose_directions);
            }
            if (!plan) {
                return std::nullopt;
            }
            return Parts(to_array(std::move(plan->arcs)),
                         to_array(std::move(plan->route_starts)),
                         to_array(std::move(plan->vehicles)),
                         to_array(std::move(plan->vias)));
        },
        nb::arg("networks"), nb::arg("rules"), nb::arg("arcs"),
        nb::arg("choose_directions"),
        "Cuts an order of services into routes and trips of a fleet at least cost: "
        "arcs, where each route starts, its vehicle type, and for each arc whether the "
        "vehicle comes by way of a facility. None where the rules leave no way of "
        "cutting it.");
}

static const Binding binding{"trip_split", bind_trip_split};

} // namespace arcfleet
