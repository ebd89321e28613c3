// What the instance asks of a plan of a fleet, from the flat arrays of Python.
#pragma once

#include "bindings/bindings.h"
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

} // namespace arcfleet
