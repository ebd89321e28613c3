// Shared by the files that bind the searches over plans of a fleet: what the instance
// asks of a plan, and what a plan has beside its arcs, as flat arrays.
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

// One row for each vehicle type, in the order of VehicleType.
inline std::vector<VehicleType> vehicle_types(const InArray<int32_t> &rows) {
    constexpr size_t kColumns = 7;
    const auto values = view(rows);
    std::vector<VehicleType> types;
    for (size_t i = 0; i + kColumns <= values.size(); i += kColumns) {
        types.push_back({values[i], values[i + 1], values[i + 2], values[i + 3],
                         values[i + 4], values[i + 5], values[i + 6]});
    }
    return types;
}

inline std::vector<FacilityStop> facility_stops(const InArray<int32_t> &rows) {
    const auto values = view(rows);
    std::vector<FacilityStop> stops;
    for (size_t i = 0; i + 2 <= values.size(); i += 2) {
        stops.push_back({values[i], values[i + 1]});
    }
    return stops;
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
