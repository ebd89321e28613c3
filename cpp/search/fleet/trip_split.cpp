#include "search/fleet/trip_split.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace arcfleet {

namespace {

// Stands for what is not allowed; sums of a few stay in range.
constexpr int64_t kNoWay = int64_t{1} << 60;
// What a route counts where the fewest are wanted: more than any plan costs.
constexpr int64_t kOneRoute = int64_t{1} << 44;
// Memory for the ways of using up a fleet: so many labels, each of 16 bytes.
constexpr size_t kMostLabels = size_t{1} << 24;

using Costs = std::array<int64_t, 2>; // by direction: as given, turned round
using Drives = std::array<Costs, 2>;  // by direction of this service and of the next

// One service of the order, as one set of driving costs sees it.
struct Step {
    Costs service; // kNoWay where there is no such direction
    Drives drive;  // to the next service
    Drives via;    // likewise, by way of the facility that costs least
};

// Costs of driving, with what is closed marked as such.
class Ways {
  public:
    Ways(const Network &network, const std::vector<FacilityStop> &facilities)
        : network_(network), facilities_(facilities) {}

    int64_t straight(int32_t from, int32_t to) const {
        const int32_t cost = network_.distances_from(from)[to];
        const bool closed =
            network_.closed_cost() != 0 && cost == network_.closed_cost();
        return cost < 0 || closed ? kNoWay : cost;
    }
    int64_t via(int32_t from, int32_t to) const {
        int64_t best = kNoWay;
        for (const FacilityStop &stop : facilities_) {
            best = std::min(best, straight(from, stop.terminal) + stop.cost +
                                      straight(stop.terminal, to));
        }
        return best;
    }

  private:
    const Network &network_;
    const std::vector<FacilityStop> &facilities_;
};

// All routes of one vehicle type that start at one place of the order.
class RoutesFrom {
  public:
    RoutesFrom(const std::vector<const Network *> &networks, const FleetRules &rules,
               std::span<const int32_t> arcs, bool choose_directions, int32_t type)
        : vehicle_(rules.vehicles[idx(type)]),
          network_(*networks[idx(vehicle_.driving)]),
          most_cost_(vehicle_.max_route_cost == INT32_MAX ? kNoWay - 1
                                                          : vehicle_.max_route_cost),
          ways_(network_, rules.facilities), has_facilities_(!rules.facilities.empty()),
          directions_(choose_directions ? 2 : 1) {
        const size_t n = arcs.size();
        steps_.resize(n);
        out_.resize(n);
        home_.resize(n);
        done_.resize(n);
        trip_of_.resize(n);
        for (size_t i = 0; i < n; ++i) {
            const int32_t task = network_.arc(arcs[i]).task;
            const size_t row = idx(vehicle_.driving) * idx(network_.num_tasks());
            const bool may_serve = rules.may_serve[row + idx(task)] != 0;
            demand_.push_back(network_.arc(arcs[i]).demand);
            for (size_t d = 0; d < directions_; ++d) {
                const Arc *arc = turned(arcs[i], d);
                steps_[i].service[d] =
                    arc == nullptr || !may_serve ? kNoWay : arc->service_cost;
                if (arc == nullptr) {
                    out_[i][d] = home_[i][d] = kNoWay;
                    continue;
                }
                out_[i][d] = ways_.straight(vehicle_.start, arc->start);
                home_[i][d] = ways_.via(arc->end, vehicle_.end);
                if (!rules.ends_at_facility()) {
                    home_[i][d] =
                        std::min(home_[i][d], ways_.straight(arc->end, vehicle_.end));
                }
                for (size_t e = 0; i + 1 < n && e < directions_; ++e) {
                    const Arc *next = turned(arcs[i + 1], e);
                    const bool is_there = next != nullptr;
                    steps_[i].drive[d][e] =
                        is_there ? ways_.straight(arc->end, next->start) : kNoWay;
                    steps_[i].via[d][e] =
                        is_there ? ways_.via(arc->end, next->start) : kNoWay;
                }
            }
        }
    }

    // Calls offer(end, cost) for every route from `first` up to, but not including,
    // `end` that keeps the rules; the cost is the least, the fixed cost apart.
    template <typename Offer> void each(size_t first, const Offer &offer) {
        size_t reached = first; // no service from here on was done yet
        extend_trip(first, first, reached);
        for (size_t trip = first + 1;
             has_facilities_ && trip <= reached && trip < steps_.size(); ++trip) {
            extend_trip(first, trip, reached);
        }
        for (size_t last = first; last < reached; ++last) {
            int64_t cost = kNoWay;
            for (size_t d = 0; d < directions_; ++d) {
                cost = std::min(cost, done_[last][d] + home_[last][d]);
            }
            if (cost <= most_cost_) {
                offer(last + 1, cost);
            }
        }
    }

    // Appends a route of least cost to a plan, whose arcs are as given up to then.
    void append(size_t first, size_t end, std::span<const int32_t> arcs, Plan &plan) {
        each(first, [](size_t, int64_t) {});
        const size_t base = plan.arcs.size();
        plan.arcs.resize(base + end - first);
        plan.vias.resize(base + end - first, 0);
        size_t last = end - 1;
        size_t d = 0;
        if (directions_ == 2 &&
            done_[last][1] + home_[last][1] < done_[last][0] + home_[last][0]) {
            d = 1;
        }
        while (true) {
            // The trip once more, now with the directions that led to its end.
            const auto trip = idx(trip_of_[last][d]);
            std::vector<std::array<uint8_t, 2>> came(last + 1 - trip);
            Costs cost = entering(first, trip);
            for (size_t i = trip; i < last; ++i) {
                cost = onward(i, cost, steps_[i].drive, &came[i + 1 - trip]);
            }
            for (size_t i = last;; --i) {
                const int32_t arc = arcs[i];
                plan.arcs[base + i - first] = d == 0 ? arc : network_.arc(arc).inverse;
                if (i == trip) {
                    break;
                }
                d = came[i - trip][d];
            }
            if (trip == first) {
                return;
            }
            plan.vias[base + trip - first] = 1;
            // Which end of the service before the visit led here.
            std::array<uint8_t, 2> before{};
            onward(trip - 1, done_[trip - 1], steps_[trip - 1].via, &before);
            d = before[d];
            last = trip - 1;
        }
    }

  private:
    const Arc *turned(int32_t arc, size_t direction) const {
        const int32_t number = direction == 0 ? arc : network_.arc(arc).inverse;
        return number < 0 ? nullptr : &network_.arc(number);
    }

    // Cost up to the end of the first service of a trip.
    Costs entering(size_t first, size_t trip) const {
        Costs cost{kNoWay, kNoWay};
        if (trip > first) {
            return onward(trip - 1, done_[trip - 1], steps_[trip - 1].via, nullptr);
        }
        for (size_t d = 0; d < directions_; ++d) {
            cost[d] = std::min(kNoWay, out_[first][d] + steps_[first].service[d]);
        }
        return cost;
    }

    // From the end of service i to the end of the next.
    Costs onward(size_t i, const Costs &cost, const Drives &drives,
                 std::array<uint8_t, 2> *came) const {
        Costs next{kNoWay, kNoWay};
        for (size_t d = 0; d < directions_; ++d) {
            for (size_t e = 0; e < directions_; ++e) {
                const int64_t there = cost[d] + drives[d][e] + steps_[i + 1].service[e];
                if (there < next[e]) {
                    next[e] = there;
                    if (came != nullptr) {
                        (*came)[e] = static_cast<uint8_t>(d);
                    }
                }
            }
        }
        return next;
    }

    void extend_trip(size_t first, size_t trip, size_t &reached) {
        Costs cost = entering(first, trip);
        int64_t load = 0;
        for (size_t i = trip; i < steps_.size(); ++i) {
            load += demand_[i];
            if (load > vehicle_.capacity || std::min(cost[0], cost[1]) > most_cost_) {
                return;
            }
            if (i == reached) {
                done_[i] = {kNoWay, kNoWay};
                ++reached;
            }
            for (size_t d = 0; d < directions_; ++d) {
                if (cost[d] < done_[i][d]) {
                    done_[i][d] = cost[d];
                    trip_of_[i][d] = static_cast<int32_t>(trip);
                }
            }
            if (i + 1 < steps_.size()) {
                cost = onward(i, cost, steps_[i].drive, nullptr);
            }
        }
    }

    const VehicleType &vehicle_;
    const Network &network_;
    int64_t most_cost_;
    Ways ways_;
    bool has_facilities_;
    size_t directions_;
    std::vector<Step> steps_;
    std::vector<int32_t> demand_;
    std::vector<Costs> out_;
    std::vector<Costs> home_;
    // By place, of the routes at hand: least cost up to the end of a service, and the
    // first service of the trip that this takes.
    std::vector<Costs> done_;
    std::vector<std::array<int32_t, 2>> trip_of_;
};

// How much of a fleet is used: one digit for each vehicle type that is counted.
class FleetUse {
  public:
    // Nothing is counted.
    explicit FleetUse(size_t types) : strides_(types, 0), counts_(types, 0) {}
    FleetUse(const std::vector<VehicleType> &vehicles, size_t services)
        : FleetUse(vehicles.size()) {
        for (size_t type = 0; type < vehicles.size(); ++type) {
            if (vehicles[type].count == INT32_MAX) {
                continue;
            }
            const auto count = static_cast<size_t>(std::max(0, vehicles[type].count));
            strides_[type] = states_;
            counts_[type] = std::min(count, services);
            states_ *= counts_[type] + 1;
            if (states_ * (services + 1) > kMostLabels) {
                throw std::overflow_error("too many ways of using up the fleet");
            }
        }
    }

    size_t states() const { return states_; }
    bool is_counted(size_t type) const { return strides_[type] > 0; }
    size_t used(size_t state, size_t type) const {
        return state / strides_[type] % (counts_[type] + 1);
    }
    // Whether one more route of a type is within the fleet.
    bool may_use(size_t state, size_t type) const {
        return !is_counted(type) || used(state, type) < counts_[type];
    }
    size_t with_one_more(size_t state, size_t type) const {
        return state + strides_[type];
    }
    bool all_used(size_t state) const {
        for (size_t type = 0; type < strides_.size(); ++type) {
            if (is_counted(type) && used(state, type) < counts_[type]) {
                return false;
            }
        }
        return true;
    }

  private:
    std::vector<size_t> strides_; // 0 where a type is not counted
    std::vector<size_t> counts_;
    size_t states_ = 1;
};

// The shortest path over places of the order and uses of the fleet.
class Cutter {
  public:
    Cutter(std::vector<RoutesFrom> &routes, const FleetRules &rules, size_t services)
        : routes_(routes), rules_(rules), services_(services) {}

    struct Cut {
        size_t first;
        size_t end;
        size_t type;
    };

    // The routes of the best plan, in order; nullopt where there is none.
    std::optional<std::vector<Cut>> cut(const FleetUse &use, bool all_used) {
        labels_.assign(use.states() * (services_ + 1), {});
        labels_[0].value = 0;
        for (size_t first = 0; first < services_; ++first) {
            for (size_t type = 0; type < routes_.size(); ++type) {
                const VehicleType &vehicle = rules_.vehicles[type];
                const int64_t more =
                    vehicle.fixed_cost + (rules_.fewest_routes ? kOneRoute : 0);
                routes_[type].each(first, [&](size_t end, int64_t cost) {
                    relax(use, first, end, type, cost + more);
                });
            }
        }
        size_t best = use.states();
        for (size_t state = 0; state < use.states(); ++state) {
            const int64_t value = label(services_, state, use).value;
            if (value < kNoWay && (!all_used || use.all_used(state)) &&
                (best == use.states() || value < label(services_, best, use).value)) {
                best = state;
            }
        }
        if (best == use.states()) {
            return std::nullopt;
        }
        std::vector<Cut> cuts;
        for (size_t end = services_; end > 0;) {
            const Label &here = label(end, best, use);
            const auto type = static_cast<size_t>(here.type);
            cuts.push_back({idx(here.first), end, type});
            best -= use.with_one_more(0, type);
            end = idx(here.first);
        }
        std::reverse(cuts.begin(), cuts.end());
        return cuts;
    }

  private:
    struct Label {
        int64_t value = kNoWay;
        int32_t first = -1; // where the last route starts
        int32_t type = -1;
    };

    Label &label(size_t place, size_t state, const FleetUse &use) {
        return labels_[place * use.states() + state];
    }

    void relax(const FleetUse &use, size_t first, size_t end, size_t type,
               int64_t cost) {
        for (size_t state = 0; state < use.states(); ++state) {
            const int64_t before = label(first, state, use).value;
            if (before >= kNoWay || !use.may_use(state, type)) {
                continue;
            }
            Label &there = label(end, use.with_one_more(state, type), use);
            if (before + cost < there.value) {
                there = {before + cost, static_cast<int32_t>(first),
                         static_cast<int32_t>(type)};
            }
        }
    }

    std::vector<RoutesFrom> &routes_;
    const FleetRules &rules_;
    size_t services_;
    std::vector<Label> labels_; // by place, and by use of the fleet
};

bool within_fleet(const std::vector<Cutter::Cut> &cuts, const FleetRules &rules) {
    for (size_t type = 0; type < rules.vehicles.size(); ++type) {
        const int64_t count = rules.vehicles[type].count;
        const int64_t used =
            std::count_if(cuts.begin(), cuts.end(),
                          [&](const Cutter::Cut &cut) { return cut.type == type; });
        if (used > count || (rules.exact_fleet && used < count)) {
            return false;
        }
    }
    return true;
}

} // namespace

std::optional<Plan> split_into_trips(const std::vector<const Network *> &networks,
                                     const FleetRules &rules,
                                     std::span<const int32_t> arcs,
                                     bool choose_directions) {
    for (const int32_t arc : arcs) {
        if (arc < 1 || idx(arc) >= networks[0]->arcs().size()) {
            throw std::invalid_argument("unknown arc");
        }
    }
    std::vector<RoutesFrom> routes;
    const auto types = static_cast<int32_t>(rules.vehicles.size());
    for (int32_t type = 0; type < types; ++type) {
        routes.emplace_back(networks, rules, arcs, choose_directions, type);
    }
    Cutter cutter(routes, rules, arcs.size());
    // Most fleets are large enough, and then they need not be counted.
    auto cuts = cutter.cut(FleetUse(rules.vehicles.size()), false);
    if (cuts && !within_fleet(*cuts, rules)) {
        cuts = cutter.cut(FleetUse(rules.vehicles, arcs.size()), rules.exact_fleet);
    }
    if (!cuts || !within_fleet(*cuts, rules)) {
        return std::nullopt;
    }
    Plan plan;
    plan.route_starts.push_back(0);
    for (const Cutter::Cut &cut : *cuts) {
        routes[cut.type].append(cut.first, cut.end, arcs, plan);
        plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
        plan.vehicles.push_back(static_cast<int32_t>(cut.type));
        plan.slots.push_back(-1);
    }
    return plan;
}

} // namespace arcfleet
