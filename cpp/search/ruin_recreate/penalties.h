// What a plan costs in the eyes of the search: beside its true cost, a price for load
// above capacity and one for routes beyond the fleet limit, so that the search may pass
// through such plans. The price of excess rises and falls such that a given share of
// plans keeps the capacity.
#pragma once

#include "search/ruin_recreate/current_plan.h"

#include <cstdint>

namespace arcfleet {

class Penalties {
  public:
    explicit Penalties(const RuinRecreateTables &tables);

    double excess_price() const { return excess_price_; }
    // For a search that another goes on with.
    void set_excess_price(double price) { excess_price_ = price; }
    // Of one route.
    int32_t max_excess() const { return max_excess_; }
    int64_t max_load() const { return rules_.capacity() + max_excess_; }

    // Of so many routes, with the price of those beyond the fleet limit.
    int64_t fixed_cost(int32_t routes) const {
        return routes * rules_.route_cost() +
               rules_.routes_over_fleet(routes) * overfleet_cost_;
    }
    // The change if one of so many routes is opened or closed.
    int64_t cost_of_opening(int32_t routes) const {
        return fixed_cost(routes + 1) - fixed_cost(routes);
    }
    int64_t cost_of_closing(int32_t routes) const {
        return fixed_cost(routes - 1) - fixed_cost(routes);
    }
    // Without the price of excess, and with it.
    int64_t cost(const CurrentPlan &plan) const {
        return plan.route_costs() + fixed_cost(plan.num_routes());
    }
    double penalised_cost(const CurrentPlan &plan) const {
        return static_cast<double>(cost(plan)) +
               excess_price_ * static_cast<double>(plan.excess());
    }

    // By how much a move makes the plan dearer.
    double price(const MoveDelta &delta, const MoveSite &site,
                 const CurrentPlan &plan) const {
        const int64_t cost =
            delta.cost(site) +
            (delta.closes_route ? cost_of_closing(plan.num_routes()) : 0);
        const int64_t excess =
            rules_.excess(delta.first) + rules_.excess(delta.second) -
            rules_.excess(site.first.totals()) - rules_.excess(site.second.totals());
        return static_cast<double>(cost) + excess_price_ * static_cast<double>(excess);
    }

    // Notes whether the plan keeps the capacity; true if the price changed by it.
    bool adapt(const CurrentPlan &plan);

  private:
    const RouteRules rules_;
    const double target_fit_;
    int64_t overfleet_cost_ = 0; // of each route beyond the fleet limit
    double excess_price_ = 0.0;
    int32_t max_excess_ = 0;
    int32_t window_ = 0;      // iterations since the price was last adapted
    int32_t window_fits_ = 0; // of these, how many ended within capacity
};

} // namespace arcfleet
