// A plan as solvers hold it.
#pragma once

#include "base/index.h"
#include "network/network.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// The arcs of all routes one after the other, and where each route begins;
// `route_starts` has one entry more than there are routes.
struct Plan {
    std::vector<int32_t> arcs;
    std::vector<int32_t> route_starts;

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
