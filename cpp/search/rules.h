// The rules of a route: what it may carry, what it costs to run one at all, and how
// many there may be. Every engine asks here and nowhere else, so that a new rule of
// routes is a new question of this class.
#pragma once

#include "network/network.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace arcfleet {

// What the rules are asked about.
struct RouteTotals {
    int64_t load;
    int64_t cost; // service and driving, from depot to depot
};

// What a route may still take on: asked in the inner loops, where a route is the same
// for many candidates.
struct RouteSlack {
    int32_t load;

    // Whether so much more load keeps the rules, in a route that then costs so much.
    bool takes(int32_t more_load, int64_t /*route_cost*/) const {
        return more_load <= load;
    }
};

class RouteRules {
  public:
    // `fleet_limit` 0 means any number of routes.
    RouteRules(int32_t capacity, int32_t route_cost, int32_t fleet_limit)
        : capacity_(capacity), route_cost_(route_cost),
          max_routes_(fleet_limit > 0 ? fleet_limit
                                      : std::numeric_limits<int32_t>::max()) {}
    explicit RouteRules(const Network &network)
        : RouteRules(network.vehicle().capacity, network.vehicle().route_cost,
                     network.vehicle().fleet_limit) {}

    // One route as a whole: by how much it breaks the rules, and what it may take on.
    int64_t excess(const RouteTotals &route) const { return excess(route.load); }
    RouteSlack slack(int32_t load) const { return {capacity_ - load}; }
    // Of a route, service and driving apart.
    int64_t route_cost() const { return route_cost_; }

    // Its load.
    int64_t capacity() const { return capacity_; }
    bool fits(int64_t load) const { return load <= capacity_; }
    // Load above capacity; 0 where the load fits.
    template <typename Load> Load excess(Load load) const {
        return std::max<Load>(0, load - capacity_);
    }
    // What fits beside this load.
    template <typename Load> Load remaining_capacity(Load load) const {
        return capacity_ - load;
    }
    bool under_half_full(int64_t load) const { return 2 * load < capacity_; }

    // All routes of a plan.
    int64_t max_routes() const { return max_routes_; }
    bool fits_fleet(int64_t routes) const { return routes <= max_routes_; }
    int64_t routes_over_fleet(int64_t routes) const {
        return std::max<int64_t>(0, routes - max_routes_);
    }

  private:
    int32_t capacity_;
    int32_t route_cost_;
    int32_t max_routes_;
};

} // namespace arcfleet
