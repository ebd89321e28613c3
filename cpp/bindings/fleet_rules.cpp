#include "bindings/fleet_rules.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace arcfleet {

namespace {

using Columns = std::map<std::string, InArray<int32_t>>;

// By the names of kVehicleFields, of which none may be missing or unknown.
std::vector<VehicleType> vehicle_types(const Columns &columns) {
    std::vector<VehicleType> types;
    for (const VehicleField &field : kVehicleFields) {
        const auto found = columns.find(field.name);
        if (found == columns.end()) {
            throw std::invalid_argument(std::string("vehicles without ") + field.name);
        }
        const auto values = view(found->second);
        if (types.empty()) {
            types.resize(values.size());
        }
        if (types.size() != values.size()) {
            throw std::invalid_argument("columns of vehicles differ in length");
        }
        for (size_t i = 0; i < values.size(); ++i) {
            types[i].*field.value = values[i];
        }
    }
    if (columns.size() != std::size(kVehicleFields)) {
        throw std::invalid_argument("vehicles with a column that is not known");
    }
    return types;
}

std::vector<FacilityStop> facility_stops(const InArray<int32_t> &rows) {
    const auto values = view(rows);
    std::vector<FacilityStop> stops;
    for (size_t i = 0; i + 2 <= values.size(); i += 2) {
        stops.push_back({values[i], values[i + 1]});
    }
    return stops;
}

} // namespace

static void bind_fleet_rules(nb::module_ &module) {
    nb::class_<FleetRules>(module, "FleetRules", "What an instance asks of a plan.")
        .def(
            "__init__",
            [](FleetRules *self, const Columns &vehicles,
               const InArray<int32_t> &facilities, bool empty_at_end, bool exact_fleet,
               bool fewest_routes, double balance, int64_t compactness,
               int64_t change_price, const InArray<int32_t> &numbered_slots,
               const InArray<int32_t> &home, const InArray<int32_t> &pin,
               const InArray<int32_t> &locked, const InArray<uint8_t> &may_serve,
               const InArray<int32_t> &locked_costs) {
                new (self) FleetRules{vehicle_types(vehicles),
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
            },
            nb::arg("vehicles"), nb::arg("facilities"), nb::arg("empty_at_end"),
            nb::arg("exact_fleet"), nb::arg("fewest_routes"), nb::arg("balance"),
            nb::arg("compactness"), nb::arg("change_price"), nb::arg("numbered_slots"),
            nb::arg("home"), nb::arg("pin"), nb::arg("locked"), nb::arg("may_serve"),
            nb::arg("locked_costs"));
}

static const Binding binding{"fleet_rules", bind_fleet_rules};

} // namespace arcfleet
