// A plan as solvers hold it.
#pragma once

#include "base/index.h"
#include "network/network.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// The arcs of all routes one after the other, and where each route begins;
// `route_starts` has one entry more than there are routes. Plans of a fleet also have,
// by route, the vehicle type and the numbered slot (-1 where it has none), and by arc
// whether the vehicle comes by way of a facility.
struct Plan {
    std::vector<int32_t> arcs;
    std::vector<int32_t> route_starts;
    std::vector<int32_t> vehicles = {};
    std::vector<int32_t> slots = {};
    std::vector<uint8_t> vias = {};

    size_t num_routes() const {
        return route_starts.empty() ? 0 : route_starts.size() - 1;
    }
    std::span<const int32_t> route(size_t number) const {
        return {arcs.data() + route_starts[number],
                arcs.data() + route_starts[number + 1]};
    }
};

// Total cost of a plan: service, driving and the fixed cost of its routes.
int64_t plan_cost(const Network &network, const Plan &plan);

// A plan with a route for each task, whatever the fleet limit.
Plan one_route_per_task(const Network &network);

} // namespace arcfleet
