// Shared by the files that bind the searches over plans of a fleet: the rules, which
// fleet_rules.cpp binds, and what a plan has beside its arcs.
#pragma once

#include "bindings/engine.h"
#include "search/fleet/tables.h"

#include <cstdint>
#include <vector>

namespace arcfleet {

template <typename T> std::vector<T> copied(const InArray<T> &array) {
    const auto values = view(array);
    return {values.begin(), values.end()};
}

template <typename Type> void bind_best_fleet(nb::class_<Type> &engine) {
    engine.def(
        "best_fleet",
        [](const Type &search) {
            const Plan &plan = search.best_plan();
            return std::tuple(to_array(std::vector<int32_t>(plan.vehicles)),
                              to_array(std::vector<int32_t>(plan.slots)),
                              to_array(std::vector<uint8_t>(plan.vias)));
        },
        "Of the best plan: vehicle type and numbered slot of each route, and for each "
        "arc whether the vehicle comes by way of a facility.");
}

} // namespace arcfleet
