// What all chains of a fleet search share and none changes: vehicle types, facilities,
// the wishes for the shape of a plan, and driving costs with and without a visit of a
// facility on the way.
#pragma once

#include "search/fleet/limits.h"
#include "search/labelled_route.h"
#include "search/ruin_recreate/tables.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace arcfleet {

// No route that can be driven costs so much; sums of three stay in range.
constexpr int32_t kMostCost = 1 << 28;

struct FacilityStop {
    int32_t terminal;
    int32_t cost; // of a visit
};

// Between a facility and both ends of a task: from the facility to u and to v, and from
// u and from v to it, its visit included.
struct FacilityEnds {
    int32_t to_u;
    int32_t to_v;
    int32_t from_u;
    int32_t from_v;
};

// What the instance asks of a plan. A slot is a vehicle that drives one route; the
// first few slots stand for routes with a number of their own.
struct FleetRules {
    std::vector<VehicleType> vehicles;
    std::vector<FacilityStop> facilities;
    bool empty_at_end = false;
    bool exact_fleet = false;
    bool fewest_routes = false;
    double balance = 0.0;
    int64_t compactness = 0;
    int64_t change_price = 0;
    std::vector<int32_t> numbered_slots; // vehicle type of each
    // By task. Its slot in an earlier plan, or -1; the slot it must be in, or -1; the
    // locked route that serves it, counted from 1, or 0 where it is to be planned.
    std::vector<int32_t> home;
    std::vector<int32_t> pin;
    std::vector<int32_t> locked;
    std::vector<uint8_t> may_serve;         // by driving costs and task
    std::vector<int32_t> locked_costs = {}; // of each locked route, fixed cost apart

    bool ends_at_facility() const { return empty_at_end && !facilities.empty(); }
};

// Driving costs of some vehicle types: straight on, and by way of the facility that is
// least out of the way. A route that need not end at a facility may still do so, as no
// turn is taken there: at the ends of such routes, `straight on` is the lesser of both.
class DrivingTable {
  public:
    DrivingTable(const Network &network, const FleetRules &rules);

    const TaskTable &tasks() const { return tasks_; }
    // Of streets alone.
    const Network &streets() const { return *streets_; }
    // Whether a facility on the way never makes it cheaper.
    bool via_never_pays() const { return via_never_pays_; }
    // Of the ways that there are, straight on or by way of a facility.
    int32_t longest_drive() const { return longest_drive_; }
    // Whether it leads somewhere to where there is no other way: no turn is taken
    // there.
    bool via_opens_ways() const { return via_opens_ways_; }
    const int32_t *from(int32_t terminal) const { return tasks_.from(terminal); }
    const int32_t *to(int32_t terminal) const { return tasks_.to(terminal); }
    // With `via`, by way of a facility.
    const int32_t *from(int32_t terminal, bool via) const {
        return via ? row(via_.data(), terminal) : from(terminal);
    }
    const int32_t *to(int32_t terminal, bool via) const {
        return via ? row(via_to_, terminal) : to(terminal);
    }

    // By facility: to each, its visit included, from each, and between each and a task.
    const int32_t *to_facilities(int32_t terminal) const {
        return to_facilities_.data() + idx(terminal) * num_facilities_;
    }
    const int32_t *from_facilities(int32_t terminal) const {
        return from_facilities_.data() + idx(terminal) * num_facilities_;
    }
    const FacilityEnds *facility_ends(int32_t task) const {
        return facility_ends_.data() + idx(task) * num_facilities_;
    }
    // The least that it costs to come from a facility and serve a task, and to go to
    // one as well.
    int32_t first_of_trip(int32_t task) const { return first_of_trip_[idx(task)]; }
    int32_t own_trip(int32_t task) const { return own_trip_[idx(task)]; }

  private:
    const int32_t *row(const int32_t *matrix, int32_t terminal) const {
        return matrix +
               idx(terminal) * static_cast<size_t>(tasks_.network().num_terminals());
    }

    const Network *streets_;
    std::unique_ptr<const Network> shortened_; // null where no way home is shorter
    TaskTable tasks_;
    std::vector<int32_t> via_;            // empty without facilities
    std::vector<int32_t> via_transposed_; // empty where it is the same both ways
    const int32_t *via_to_ = nullptr;
    bool via_never_pays_ = true;
    bool via_opens_ways_ = false;
    int32_t longest_drive_ = 0;
    size_t num_facilities_;
    std::vector<int32_t> to_facilities_;
    std::vector<int32_t> from_facilities_;
    std::vector<FacilityEnds> facility_ends_;
    std::vector<int32_t> first_of_trip_;
    std::vector<int32_t> own_trip_;
};

struct FleetTables {
    // One network for each set of driving costs; they have the same terminals. Throws
    // std::overflow_error if serving every task by a route of its own would cost
    // kMostCost or more, or as much as a way that there is not.
    FleetTables(const std::vector<const Network *> &networks, FleetRules given,
                const RuinRecreateSettings &given_settings);

    int32_t num_tasks() const { return drivings[0]->tasks().num_tasks(); }
    const TaskEnds &ends(int32_t task) const { return drivings[0]->tasks().ends(task); }
    bool has_facilities() const { return !rules.facilities.empty(); }
    int32_t num_types() const { return static_cast<int32_t>(rules.vehicles.size()); }
    const VehicleType &vehicle(int32_t type) const { return rules.vehicles[idx(type)]; }
    const DrivingTable &driving(int32_t type) const {
        return *drivings[idx(vehicle(type).driving)];
    }
    bool may_serve(int32_t type, int32_t task) const {
        return rules.may_serve[idx(vehicle(type).driving) * idx(num_tasks()) +
                               idx(task)] != 0;
    }
    // Cost of a route that serves this task alone, fixed cost apart.
    int32_t alone(int32_t type, int32_t task) const {
        return alone_cost[idx(type) * idx(num_tasks()) + idx(task)];
    }
    const int32_t *nearest_to(int32_t task) const {
        return nearest.data() + idx(task) * idx(row);
    }
    // Price of a route beyond the fleet, or beyond those that are tried to do with: one
    // route less always pays, whatever driving it takes.
    double route_price() const {
        return 1.0 +
               (static_cast<double>(all_alone_at_most) + longest_drive * num_tasks()) *
                   (1.0 + rules.balance * num_tasks()) +
               static_cast<double>(rules.change_price + rules.compactness) *
                   num_tasks();
    }
    // The nearest other task; -1 where there is none.
    int32_t mate(int32_t task) const { return row > 1 ? nearest_to(task)[1] : -1; }

    FleetRules rules;
    RuinRecreateSettings settings;
    std::vector<std::unique_ptr<DrivingTable>> drivings;
    double near_distance;
    int32_t row;
    std::vector<int32_t> nearest; // by task, each cut at `row` entries
    std::vector<int32_t> alone_cost;
    std::vector<int32_t> planned; // the tasks that are not locked
    // Whether no plan gets better when a task is put in.
    bool insertion_never_pays;
    // The tasks whose mate a task is, one task after the other.
    std::vector<int32_t> mate_of;
    std::vector<int32_t> mate_of_at;
    // What a route for every task costs, by the cheapest vehicle types and by the
    // dearest, fixed costs included: the latter is more than any plan costs that is
    // worth having.
    int64_t all_alone = 0;
    int64_t all_alone_at_most = 0;
    // From one task to the next at most, by way of a facility or not.
    double longest_drive = 0.0;
    // A route that costs less drives no way that there is not.
    int32_t least_closed_cost;
    // Whether every vehicle may serve every task, and whether no task is pinned either.
    bool all_may_serve;
    bool all_may_be_anywhere;
};

} // namespace arcfleet
