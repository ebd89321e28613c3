// The plan that a chain of a fleet search changes. A slot is a vehicle with its route,
// which may be empty. Changes between `begin` and `keep` can be undone.
#pragma once

#include "search/fleet/trip_route.h"
#include "search/plan.h"
#include "search/ruin_recreate/current_plan.h"
#include "search/ruin_recreate/slot_blocks.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace arcfleet {

// What is added up over a plan.
struct FleetSums {
    int64_t route_costs = 0; // fixed costs apart
    int64_t fixed_costs = 0;
    Excesses excess{};
    int64_t moved = 0;       // tasks that are not in their slot of the earlier plan
    int64_t interleaved = 0; // tasks whose mate is in another slot
    double squares = 0.0;    // of route costs
    int32_t routes = 0;
};

// Routes, where fewer come first, then the cost with all prices: a sum of both would be
// too large to tell plans apart by what they cost.
using Objective = std::pair<int32_t, double>;

// Routes that a change takes out of a plan and puts in, fixed costs apart.
struct RouteChange {
    int32_t routes = 0;
    int64_t cost = 0;
    double squares = 0.0;

    RouteChange &add(int64_t route_cost) { return count(route_cost, 1); }
    RouteChange &drop(int64_t route_cost) { return count(route_cost, -1); }

  private:
    RouteChange &count(int64_t route_cost, int32_t times) {
        routes += times;
        cost += times * route_cost;
        squares +=
            times * static_cast<double>(route_cost) * static_cast<double>(route_cost);
        return *this;
    }
};

// A task that is to be put into a slot.
struct Placement {
    int32_t task;
    int32_t slot;
};

// What decides whether the route of a slot is looked at for a task, by slot; there are
// padded_slots numbers of each.
struct SlotNumbers {
    // The largest demand that fits into some trip, and into all. An empty slot has room
    // for all, unless it is not the first of its type.
    std::vector<int32_t> most_room;
    std::vector<int32_t> least_room;
    std::vector<int32_t> least_between; // of TripLimits
};

class FleetPlan {
  public:
    explicit FleetPlan(const FleetTables &tables);

    // Slots beyond the numbered ones are taken as they come.
    void load(const Plan &plan);
    Plan to_plan() const;

    int32_t num_slots() const { return static_cast<int32_t>(routes_.size()); }
    const TripRoute &route(int32_t slot) const { return routes_[idx(slot)]; }
    const FleetSums &sums() const { return sums_; }
    int32_t routes_of(int32_t type) const { return routes_of_[idx(type)]; }
    // Where a task was when the changes under way began.
    Spot spot(int32_t task) const { return spots_[idx(task)]; }
    bool has(int32_t task) const { return slot_of_[idx(task)] >= 0; }
    int64_t cost() const { return sums_.route_costs + sums_.fixed_costs; }
    // What plans that keep all rules are compared by.
    Objective objective() const;
    // Whether every task is there, on a route of a vehicle that may serve it.
    bool is_sound() const;
    // Where it is now; below 0 while it is out or on a locked route.
    int32_t slot_of(int32_t task) const { return slot_of_[idx(task)]; }
    const SlotNumbers &slot_numbers() const { return numbers_; }

    // Routes beyond the fleet, or missing where it is exact; of all vehicle types, and
    // what routes more or less of one change.
    int64_t fleet_faults() const;
    int64_t faults_of(int32_t type, int32_t more) const;

    // Squared deviations of the costs of all routes, the locked ones included, from
    // their mean, over the mean; after a change.
    double unevenness(const RouteChange &change = {}) const;
    // What putting a task into a slot adds to `moved` and `interleaved`.
    int64_t moves_in(int32_t task, int32_t slot) const {
        const int32_t home = tables_.rules.home[idx(task)];
        return home >= 0 && home != slot ? 1 : 0;
    }
    int64_t mates_apart(int32_t task, int32_t slot) const;
    // By how much both would change if tasks moved to other slots.
    FleetSums shape_change(const std::vector<Placement> &placements);

    void begin();
    void keep();
    void undo();
    const std::vector<int32_t> &touched() const { return touched_; }
    // Takes out all marked tasks of a slot; they are at places first .. last.
    void remove_marked(int32_t slot, const std::vector<uint8_t> &marked, int32_t first,
                       int32_t last);
    void insert(int32_t slot, int32_t task, const TripPlace &place);
    // Improves the facility visits of a slot around one place; false if that changed
    // nothing. Can be undone like the others where changes are under way.
    bool mend_visits(int32_t slot, int32_t place, double price);
    // Changes the order of tasks of a trip. Not to be undone.
    void reorder(int32_t slot, const WithinRoute &move);
    // Gives an empty slot to a vehicle of another type. Can be undone.
    void retype(int32_t slot, int32_t type);
    // Puts the same tasks by another vehicle in the place of a route. Not to be undone.
    void replace(int32_t slot, TripRoute route);
    bool is_numbered(int32_t slot) const { return slot < numbered_; }

    // Changes two routes at once, by change(first, second); their labels are computed
    // anew. Not to be undone.
    template <typename Change>
    void change(int32_t first, int32_t second, const Change &change_both) {
        const bool opens = route(first).empty() || route(second).empty();
        forget(first);
        forget(second);
        change_both(routes_[idx(first)], routes_[idx(second)]);
        renew(first);
        renew(second);
        if (opens || route(first).empty() || route(second).empty()) {
            open_empty_slots();
        }
    }

    // Whether all that is noted agrees with the routes; for checks.
    bool notes_hold() const;

  private:
    void touch(int32_t slot);
    void forget(int32_t slot);
    void remember(int32_t slot);
    void renew(int32_t slot);
    void note_spots(int32_t slot);
    void note_slot(int32_t slot, bool is_open = true);
    void put(int32_t task, int32_t slot);
    void take(int32_t task);
    void open_empty_slots();
    void add_slot(int32_t type);
    int64_t faults_with(int32_t type, int32_t routes) const;

    const FleetTables &tables_;
    const bool tracks_shape_;
    const int32_t numbered_;
    RouteChange locked_;            // the locked routes
    std::vector<TripRoute> routes_; // by slot
    SlotNumbers numbers_;
    std::vector<Spot> spots_; // by task
    // By task: its slot now, -1 while it is out, below -1 on a locked route.
    std::vector<int32_t> slot_of_;
    std::vector<int32_t> routes_of_; // by vehicle type
    FleetSums sums_;
    // The changes under way.
    bool under_way_ = false;
    std::vector<int32_t> touched_;
    std::vector<uint8_t> is_touched_;
    std::vector<TripRoute> saved_;
    size_t num_saved_ = 0;
    std::vector<int32_t> saved_routes_of_;
    FleetSums saved_sums_;
    bool opened_or_closed_ = false;
};

} // namespace arcfleet
