#include "search/fleet/tables.h"

#include "base/transpose.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace arcfleet {

namespace {

// Of temperature, where streets have no length: plans that are as good are still taken.
constexpr double kLeastUnit = 1e-3;

// The network in which ways to the ends of routes may be by way of a facility; null
// where that shortens none. With turn rules tasks have terminals of their own, so that
// nothing else is driven to there.
std::unique_ptr<const Network> with_ways_home(const Network &network,
                                              const FleetRules &rules) {
    std::unique_ptr<Network> shortened;
    if (rules.empty_at_end) {
        return shortened;
    }
    for (const FacilityStop &facility : rules.facilities) {
        const int32_t *onward = network.distances_from(facility.terminal);
        for (const VehicleType &vehicle : rules.vehicles) {
            for (int32_t from = 0; from < network.num_terminals(); ++from) {
                const int32_t *row = network.distances_from(from);
                const int64_t by_facility = int64_t{row[facility.terminal]} +
                                            facility.cost + onward[vehicle.end];
                if (by_facility < row[vehicle.end]) {
                    if (!shortened) {
                        shortened = std::make_unique<Network>(network);
                    }
                    shortened->shorten(from, vehicle.end,
                                       static_cast<int32_t>(by_facility));
                }
            }
        }
    }
    return shortened;
}

} // namespace

DrivingTable::DrivingTable(const Network &network, const FleetRules &rules)
    : streets_(&network), shortened_(with_ways_home(network, rules)),
      tasks_(shortened_ ? *shortened_ : network),
      num_facilities_(rules.facilities.size()) {
    const auto note_longest = [&](int32_t distance) {
        if (distance < kMostCost && network.is_open(distance)) {
            longest_drive_ = std::max(longest_drive_, distance);
        }
    };
    for (const int32_t distance : network.distances()) {
        note_longest(distance);
    }
    const std::vector<FacilityStop> &facilities = rules.facilities;
    if (facilities.empty()) {
        return;
    }
    const auto size = static_cast<size_t>(network.num_terminals());
    via_.assign(size * size, kForbidden);
    to_facilities_.resize(size * num_facilities_);
    from_facilities_.resize(size * num_facilities_);
    for (size_t number = 0; number < num_facilities_; ++number) {
        const FacilityStop &facility = facilities[number];
        const int32_t *onward = network.distances_from(facility.terminal);
        for (size_t start = 0; start < size; ++start) {
            // Sums of ways that there are not must stay in range.
            const int32_t *row = network.distances_from(static_cast<int32_t>(start));
            const int64_t there = int64_t{row[facility.terminal]} + facility.cost;
            const auto first =
                static_cast<int32_t>(std::min<int64_t>(there, kForbidden / 2));
            to_facilities_[start * num_facilities_ + number] =
                std::min(first, kMostCost);
            from_facilities_[start * num_facilities_ + number] =
                std::min(onward[start], kMostCost);
            int32_t *out = via_.data() + start * size;
            for (size_t end = 0; end < size; ++end) {
                out[end] =
                    std::min(out[end], first + std::min(onward[end], kForbidden / 2));
            }
        }
    }
    for (size_t i = 0; i < via_.size(); ++i) {
        const int32_t straight = network.distances()[i];
        note_longest(via_[i]);
        via_never_pays_ = via_never_pays_ && via_[i] >= straight;
        via_opens_ways_ = via_opens_ways_ ||
                          (network.closed_cost() > 0 &&
                           straight == network.closed_cost() && via_[i] < straight);
    }
    for (int32_t task = 0; task < tasks_.num_tasks(); ++task) {
        const TaskEnds &ends = tasks_.ends(task);
        FacilityEnds least{kMostCost, kMostCost, kMostCost, kMostCost};
        for (size_t number = 0; number < num_facilities_; ++number) {
            const FacilityEnds here{
                from_facilities(ends.u)[number], from_facilities(ends.v)[number],
                to_facilities(ends.u)[number], to_facilities(ends.v)[number]};
            facility_ends_.push_back(here);
            least = {std::min(least.to_u, here.to_u), std::min(least.to_v, here.to_v),
                     std::min(least.from_u, here.from_u),
                     std::min(least.from_v, here.from_v)};
        }
        const int64_t forward = int64_t{least.to_u} + ends.forward_cost;
        const int64_t reverse = int64_t{least.to_v} + ends.reverse_cost;
        const auto lesser = [](int64_t one, int64_t other) {
            return static_cast<int32_t>(
                std::min<int64_t>(kForbidden, std::min(one, other)));
        };
        first_of_trip_.push_back(lesser(forward, reverse));
        own_trip_.push_back(lesser(forward + least.from_v, reverse + least.from_u));
    }
    via_transposed_ = transpose(via_, size);
    if (via_transposed_ == via_) {
        via_transposed_.clear();
    }
    via_to_ = via_transposed_.empty() ? via_.data() : via_transposed_.data();
}

FleetTables::FleetTables(const std::vector<const Network *> &networks, FleetRules given,
                         const RuinRecreateSettings &given_settings)
    : rules(std::move(given)), settings(given_settings),
      near_distance(std::max(kLeastUnit, mean_near_distance(*networks[0]))),
      row(std::min(networks[0]->num_tasks(), kLongestRow)) {
    for (const Network *network : networks) {
        drivings.push_back(std::make_unique<DrivingTable>(*network, rules));
    }
    // What a route costs is computed no further; and a way that there is not makes any
    // route too long.
    all_may_serve = std::find(rules.may_serve.begin(), rules.may_serve.end(), 0) ==
                    rules.may_serve.end();
    all_may_be_anywhere =
        all_may_serve && std::all_of(rules.pin.begin(), rules.pin.end(),
                                     [](int32_t slot) { return slot < 0; });
    int32_t &most = least_closed_cost;
    most = kMostCost;
    for (const Network *network : networks) {
        if (network->closed_cost() > 0) {
            most = std::min(most, network->closed_cost());
        }
    }
    for (VehicleType &each : rules.vehicles) {
        each.max_route_cost = std::min(each.max_route_cost, most - 1);
    }
    for (const auto &table : drivings) {
        longest_drive = std::max<double>(longest_drive, table->longest_drive());
    }
    nearest = nearest_tasks(drivings[0]->tasks(), row);
    const int32_t n = num_tasks();
    const bool via_end = rules.ends_at_facility();
    insertion_never_pays = rules.balance == 0.0 && !rules.exact_fleet;
    for (int32_t type = 0; type < num_types(); ++type) {
        const DrivingTable &table = driving(type);
        insertion_never_pays = insertion_never_pays &&
                               table.tasks().removal_never_costs() &&
                               !table.via_opens_ways();
        const int32_t *out = table.from(vehicle(type).start);
        const int32_t *home = table.to(vehicle(type).end, via_end);
        for (int32_t task = 0; task < n; ++task) {
            const TaskEnds &e = ends(task);
            const int64_t forward = int64_t{out[e.u]} + e.forward_cost + home[e.v];
            const int64_t reverse = int64_t{out[e.v]} + e.reverse_cost + home[e.u];
            alone_cost.push_back(static_cast<int32_t>(
                std::min<int64_t>(kForbidden, std::min(forward, reverse))));
        }
    }
    int64_t demand = 0;
    int64_t all_driven = 0; // without fixed costs
    for (int32_t task = 0; task < n; ++task) {
        if (rules.locked[idx(task)] == 0) {
            planned.push_back(task);
        }
        int64_t least = kForbidden;
        int64_t least_driven = kForbidden;
        int64_t dearest = 0;
        for (int32_t type = 0; type < num_types(); ++type) {
            if (may_serve(type, task)) {
                const int64_t driven = alone(type, task);
                least_driven = std::min(least_driven, driven);
                least = std::min(least, driven + vehicle(type).fixed_cost);
                if (driven < most) {
                    dearest = std::max(dearest, driven + vehicle(type).fixed_cost);
                }
            }
        }
        demand += ends(task).demand;
        // A task that no vehicle can serve alone may follow a visit of a facility,
        // where no turn is taken.
        if (least_driven < most) {
            all_driven += least_driven;
            all_alone += least;
        }
        all_alone_at_most += dearest;
    }
    if (demand > INT32_MAX) {
        throw std::invalid_argument("demands exceed 2^31 - 1");
    }
    if (all_driven >= most) {
        throw std::overflow_error("plan costs exceed what routes may cost");
    }
    std::vector<int32_t> count(idx(n) + 1, 0);
    for (int32_t task = 0; task < n && row > 1; ++task) {
        ++count[idx(mate(task)) + 1];
    }
    for (size_t i = 1; i < count.size(); ++i) {
        count[i] += count[i - 1];
    }
    mate_of_at = count;
    mate_of.resize(idx(mate_of_at.back()));
    for (int32_t task = 0; task < n && row > 1; ++task) {
        mate_of[idx(count[idx(mate(task))]++)] = task;
    }
}

} // namespace arcfleet
