// Split for a fleet: given an order of services, the best places to end a route, the
// best vehicle type of each route, the best places to visit a facility on the way and,
// if asked, the best directions. Exact, by dynamic programming.
#pragma once

#include "search/fleet/tables.h"
#include "search/plan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace arcfleet {

// Cuts `arcs` into routes and trips at least cost, with `fewest_routes` by the fewest
// routes first; nullopt where the rules leave no way of cutting it. Prices on the shape
// of a plan, pins and numbered slots are not looked at. One network for each set of
// driving costs, as in FleetTables. Throws std::invalid_argument where an arc is
// unknown, and std::overflow_error where the fleet binds and there are too many ways of
// using it up.
std::optional<Plan> split_into_trips(const std::vector<const Network *> &networks,
                                     const FleetRules &rules,
                                     std::span<const int32_t> arcs,
                                     bool choose_directions);

} // namespace arcfleet
