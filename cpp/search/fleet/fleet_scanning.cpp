#include "search/fleet/fleet_scanning.h"

#include "base/parallel.h"
#include "search/fleet/trip_split.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace arcfleet {

namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// Costs below this can be driven.
int64_t closed_from(const Network &network) {
    return network.closed_cost() != 0 ? network.closed_cost() : kMostCost;
}

// The settings of the searches that start from a plan are of no use here.
constexpr RuinRecreateSettings kNoSearch{};

} // namespace

// ---- one plan ----

FleetScanner::FleetScanner(const FleetTables &tables,
                           const PathScanningSettings &settings)
    : tables_(tables), settings_(settings),
      num_terminals_(
          static_cast<size_t>(tables.driving(0).tasks().network().num_terminals())),
      work_(idx(tables.num_tasks()), 0.0),
      serves_(idx(tables.num_types()) * idx(tables.num_tasks()), 0),
      scarce_(idx(tables.num_tasks()), 0), is_waiting_(idx(tables.num_tasks()), 0) {
    double demand = 0.0;
    double cost = 0.0;
    for (const int32_t task : tables.planned) {
        demand += tables.ends(task).demand;
        cost += tables.ends(task).forward_cost;
    }
    const double n = std::max(1.0, static_cast<double>(tables.planned.size()));
    mean_demand_ = demand / n;
    mean_cost_ = cost / n;
    for (const int32_t task : tables.planned) {
        const TaskEnds &ends = tables.ends(task);
        work_[idx(task)] = ends.demand / std::max(1.0, demand) +
                           ends.forward_cost / std::max(1.0, cost) + 0.01 / n;
        for (int32_t type = 0; type < tables.num_types(); ++type) {
            const VehicleType &vehicle = tables.vehicle(type);
            const bool can = tables.may_serve(type, task) &&
                             ends.demand <= vehicle.capacity &&
                             tables.alone(type, task) <= vehicle.max_route_cost;
            serves_[idx(type) * idx(tables.num_tasks()) + idx(task)] = can ? 1 : 0;
            scarce_[idx(task)] |= can ? 0 : 1;
        }
    }
    for (int32_t type = 0; type < tables.num_types(); ++type) {
        const DrivingTable &table = tables.driving(type);
        for (size_t terminal = 0; terminal < num_terminals_; ++terminal) {
            const int32_t *row = table.from(static_cast<int32_t>(terminal));
            int64_t least = kForbidden;
            for (const FacilityStop &stop : tables.rules.facilities) {
                least = std::min(least, int64_t{row[stop.terminal]} + stop.cost);
            }
            if (!tables.has_facilities()) {
                least = row[tables.vehicle(type).end];
            }
            trip_end_.push_back(static_cast<int32_t>(least));
        }
    }
}

const Plan &FleetScanner::build(Random &random, TieRule rule) {
    plan_ = {};
    plan_.route_starts.push_back(0);
    waiting_ = tables_.planned;
    std::fill(is_waiting_.begin(), is_waiting_.end(), 0);
    for (const int32_t task : waiting_) {
        is_waiting_[idx(task)] = 1;
    }
    const FleetRules &rules = tables_.rules;
    used_.assign(rules.vehicles.size(), 0);
    slot_is_done_.assign(rules.numbered_slots.size(), 0);
    int32_t routes_left = 0; // where the fleet is exact
    for (const VehicleType &vehicle : rules.vehicles) {
        routes_left += rules.exact_fleet ? vehicle.count : 0;
    }
    Filling route;
    Filling other;
    for (size_t slot = 0; slot < rules.numbered_slots.size(); ++slot) {
        const auto number = static_cast<int32_t>(slot);
        slot_is_done_[slot] = 1;
        fill(route, rules.numbered_slots[slot], number, routes_left, random, rule);
        // Any vehicle may drive it, if that one cannot serve all that is pinned to it.
        for (int32_t type = 0;
             type < tables_.num_types() && pins_left(route, number) > 0; ++type) {
            if (used_[idx(type)] < tables_.vehicle(type).count) {
                fill(other, type, number, routes_left, random, rule);
                if (pins_left(other, number) < pins_left(route, number)) {
                    std::swap(route, other);
                }
            }
        }
        if (!route.arcs.empty()) {
            close(route, number);
            --routes_left;
        }
    }
    // Once the fleet is used up, beyond it.
    bool beyond = false;
    while (!waiting_.empty()) {
        route.type = -1;
        for (int32_t type = 0; type < tables_.num_types(); ++type) {
            if (beyond || used_[idx(type)] < tables_.vehicle(type).count) {
                fill(other, type, -1, routes_left, random, rule);
                if (!other.arcs.empty() &&
                    (route.type < 0 || is_better(other, route))) {
                    std::swap(route, other);
                }
            }
        }
        if (route.type >= 0) {
            close(route, -1);
            --routes_left;
        } else if (beyond) {
            break;
        } else {
            beyond = true;
        }
    }
    // What fits nowhere gets a route of its own, for a search to make sense of.
    for (const int32_t task : waiting_) {
        int32_t type = 0;
        while (type + 1 < tables_.num_types() && !tables_.may_serve(type, task)) {
            ++type;
        }
        const int32_t pin = rules.pin[idx(task)];
        plan_.arcs.push_back(tables_.driving(0).tasks().network().task_arc(task));
        plan_.vias.push_back(0);
        plan_.route_starts.push_back(static_cast<int32_t>(plan_.arcs.size()));
        plan_.vehicles.push_back(pin < 0 ? type : rules.numbered_slots[idx(pin)]);
        plan_.slots.push_back(pin);
    }
    return plan_;
}

void FleetScanner::close(const Filling &route, int32_t slot) {
    const Network &network = tables_.driving(route.type).tasks().network();
    plan_.arcs.insert(plan_.arcs.end(), route.arcs.begin(), route.arcs.end());
    plan_.vias.insert(plan_.vias.end(), route.vias.begin(), route.vias.end());
    plan_.route_starts.push_back(static_cast<int32_t>(plan_.arcs.size()));
    plan_.vehicles.push_back(route.type);
    plan_.slots.push_back(slot);
    ++used_[idx(route.type)];
    for (const int32_t arc : route.arcs) {
        is_waiting_[idx(network.arc(arc).task)] = 0;
    }
    std::erase_if(waiting_, [&](int32_t task) { return !is_waiting_[idx(task)]; });
}

// Tasks pinned to a slot that its route does not serve.
int64_t FleetScanner::pins_left(const Filling &route, int32_t slot) const {
    const Network &network = tables_.driving(route.type).tasks().network();
    const std::vector<int32_t> &pin = tables_.rules.pin;
    return std::count_if(waiting_.begin(), waiting_.end(),
                         [&](int32_t task) { return pin[idx(task)] == slot; }) -
           std::count_if(route.arcs.begin(), route.arcs.end(), [&](int32_t arc) {
               return pin[idx(network.arc(arc).task)] == slot;
           });
}

// By what a share of the work costs; where few routes are wanted, by how much is done.
bool FleetScanner::is_better(const Filling &a, const Filling &b) const {
    if (tables_.rules.fewest_routes) {
        return a.work > b.work;
    }
    const auto price = [&](const Filling &route) {
        return static_cast<double>(route.cost + home(route.type, route.place) +
                                   tables_.vehicle(route.type).fixed_cost);
    };
    return price(a) * b.work < price(b) * a.work;
}

int64_t FleetScanner::home(int32_t type, int32_t terminal) const {
    return tables_.driving(type).to(tables_.vehicle(type).end,
                                    tables_.rules.ends_at_facility())[terminal];
}

// ---- one route ----

FleetScanner::Phase FleetScanner::phase(int32_t type, int32_t slot,
                                        int32_t task) const {
    const FleetRules &rules = tables_.rules;
    const int32_t pin = rules.pin[idx(task)];
    if (serves_[idx(type) * idx(tables_.num_tasks()) + idx(task)] == 0 ||
        (pin >= 0 && pin != slot)) {
        return never;
    }
    if (pin >= 0) {
        return pinned;
    }
    const int32_t at = rules.home[idx(task)];
    if (at >= 0 && at == slot) {
        return at_home;
    }
    if (at >= 0 && slot_is_done_[idx(at)] == 0) {
        return never; // it is waited for elsewhere
    }
    // What other types cannot serve comes first where there are few of this one.
    return scarce_[idx(task)] != 0 && tables_.vehicle(type).count != INT32_MAX ? scarce
                                                                               : any;
}

void FleetScanner::fill(Filling &route, int32_t type, int32_t slot, int32_t routes_left,
                        Random &random, TieRule rule) {
    route.type = type;
    route.arcs.clear();
    route.vias.clear();
    route.cost = route.trip_cost = 0;
    route.work = 0.0;
    route.load = 0;
    route.place = tables_.vehicle(type).start;
    route.choosy = false;
    // With an exact fleet every route gets its share of what is left.
    double quota = kNoQuota;
    size_t least_left = 0;
    if (tables_.rules.exact_fleet && routes_left > 1) {
        quota = 0.0;
        for (const int32_t task : waiting_) {
            quota += work_[idx(task)];
        }
        quota /= routes_left;
        least_left = idx(routes_left - 1);
    }
    list_.clear();
    const size_t elsewhere = waiting_.size();
    for (const Phase now : {pinned, at_home, scarce, any}) {
        const size_t before = list_.size();
        for (const int32_t task : waiting_) {
            if (phase(type, slot, task) == now) {
                list_.push_back(task);
            }
        }
        if (list_.size() > before) {
            const bool is_pinned = now == pinned;
            // Of all that waits, so many are not in the list.
            const size_t others = elsewhere - route.arcs.size() - list_.size();
            fill_from(route, list_, is_pinned ? kNoQuota : quota,
                      is_pinned || least_left < others ? 0 : least_left - others,
                      is_pinned, random, rule);
        }
    }
}

void FleetScanner::fill_from(Filling &route, std::vector<int32_t> &list, double quota,
                             size_t least_left, bool whatever_it_takes, Random &random,
                             TieRule rule) {
    const Network &network = tables_.driving(route.type).tasks().network();
    while (list.size() > least_left && route.work < quota) {
        bool via = false;
        Scan found = scan(route, list, false, whatever_it_takes);
        if (nearest_.empty() && tables_.has_facilities() && !route.arcs.empty() &&
            route.load > 0 && found.load_forbids) {
            via = true;
            found = scan(route, list, true, whatever_it_takes);
        }
        if (nearest_.empty()) {
            return;
        }
        const Candidate &chosen = choose(route, random, rule);
        const Arc &arc = network.arc(chosen.arc);
        route.arcs.push_back(chosen.arc);
        route.vias.push_back(via ? 1 : 0);
        route.cost += found.reach + arc.service_cost;
        if (via) {
            route.load = 0;
            route.trip_cost = 0;
            route.choosy = false;
        }
        route.trip_cost += found.reach + arc.service_cost;
        route.load += arc.demand;
        route.work += work_[idx(arc.task)];
        route.place = arc.end;
        list[chosen.position] = list.back();
        list.pop_back();
    }
}

bool FleetScanner::triggers(const Filling &route, double near_demand) const {
    if (settings_.trigger == Trigger::never || route.load == 0) {
        return false;
    }
    const double typical =
        settings_.trigger == Trigger::nearby ? near_demand : mean_demand_;
    return tables_.vehicle(route.type).capacity - route.load <=
           settings_.alpha * typical;
}

// Finds the nearest arcs that fit. Where a filter is on and nothing passes, no arc is
// found, and the load counts as the reason.
FleetScanner::Scan FleetScanner::scan(Filling &route, const std::vector<int32_t> &list,
                                      bool via, bool whatever_it_takes) {
    const VehicleType &vehicle = tables_.vehicle(route.type);
    const DrivingTable &table = tables_.driving(route.type);
    const Network &network = table.tasks().network();
    const int32_t *row = table.from(route.place, via);
    const int32_t *homeward = table.to(vehicle.end, tables_.rules.ends_at_facility());
    const int32_t *back = trip_end(route.type);
    const int64_t farthest = closed_from(network);
    const int64_t most_cost = whatever_it_takes ? kForbidden : vehicle.max_route_cost;
    const int32_t load = via ? 0 : route.load;
    const int64_t slack = int64_t{vehicle.capacity} - load;
    const double average =
        static_cast<double>(route.trip_cost + back[route.place]) / std::max(1, load);
    Scan found{farthest, false};
    int32_t near = 0;
    int64_t near_demand = 0;
    // The candidates so far, with the filter or without it.
    const auto look = [&](bool filtered) {
        nearest_.clear();
        found.reach = farthest;
        for (size_t i = 0; i < list.size(); ++i) {
            const TaskEnds &ends = tables_.ends(list[i]);
            const bool one_way = ends.reverse_cost >= kForbidden;
            const int64_t to_u = row[ends.u];
            const int64_t to_v = one_way ? farthest : row[ends.v];
            if (!filtered && static_cast<double>(std::min(to_u, to_v)) <= mean_cost_) {
                ++near;
                near_demand += ends.demand;
            }
            if (ends.demand > slack) {
                found.load_forbids = true;
                continue;
            }
            if (std::min(to_u, to_v) > found.reach) {
                continue;
            }
            const auto consider = [&](int64_t reach, int32_t cost, int32_t end,
                                      int32_t reverse) {
                if (reach > found.reach || reach >= farthest ||
                    homeward[end] >= farthest ||
                    route.cost + reach + cost + homeward[end] > most_cost) {
                    return;
                }
                if (filtered) {
                    const int64_t detour = reach + cost + back[end] - back[route.place];
                    const bool passes =
                        settings_.filter == Filter::ellipse
                            ? static_cast<double>(detour) <= mean_cost_
                            : static_cast<double>(detour) <= average * ends.demand;
                    if (!passes) {
                        found.load_forbids = true;
                        return;
                    }
                }
                if (reach < found.reach) {
                    nearest_.clear();
                    found.reach = reach;
                }
                nearest_.push_back({{ends.demand, cost, back[end]},
                                    network.task_arc(list[i]) + reverse,
                                    i});
            };
            consider(to_u, ends.forward_cost, ends.v, 0);
            if (!one_way) {
                consider(to_v, ends.reverse_cost, ends.u, 1);
            }
        }
    };
    if (via || whatever_it_takes || !route.choosy) {
        look(false);
    }
    if (!via && !whatever_it_takes && !route.choosy) {
        route.choosy = triggers(
            route, near > 0 ? static_cast<double>(near_demand) / near : mean_demand_);
    }
    if (!via && !whatever_it_takes && route.choosy) {
        look(true);
    }
    return found;
}

const FleetScanner::Candidate &
FleetScanner::choose(const Filling &route, Random &random, TieRule rule) const {
    size_t chosen =
        nearest_.size() == 1 ? 0 : random.below(static_cast<uint32_t>(nearest_.size()));
    if (nearest_.size() == 1 || settings_.choice == Choice::random_arc) {
        return nearest_[chosen];
    }
    if (settings_.choice == Choice::random_rule) {
        rule = static_cast<TieRule>(random.below(kTieRules));
    }
    const RouteRules rules(tables_.vehicle(route.type).capacity, 0, 0);
    const TieRule plain = plain_rule(rule, rules, route.load);
    for (size_t i = 0; i < nearest_.size(); ++i) {
        if (prefers(plain, nearest_[i], nearest_[chosen])) {
            chosen = i;
        }
    }
    return nearest_[chosen];
}

// ---- the best of many plans ----

namespace {

// Turning home when work no longer pays is the best variant on most instances (Arakaki
// and Usberti 2019).
constexpr PathScanningSettings kFirstPlan{Choice::random_arc, Trigger::nearby,
                                          Filter::efficiency, 3.0};
// A plan takes time that grows with the square of the number of tasks, so many of these
// squares are spent.
constexpr int64_t kMostTries = 10;
constexpr int64_t kTriesByTasks = 4'000'000;
// Where there are more tasks, counted once for each vehicle type, Split takes longer
// than a search to gain as much.
constexpr int64_t kMostSplit = 2000;

// Whether a plan is nearer to keeping all rules, then by what it is worth.
using Rank = std::tuple<int64_t, int64_t, Objective>;

Rank rank_of(const FleetPlan &plan) {
    return {plan.fleet_faults(), plan.sums().excess.total(), plan.objective()};
}

// Whether the order of services alone says what a plan is worth.
bool can_be_split(const FleetRules &rules) {
    return rules.numbered_slots.empty() && rules.balance == 0.0 &&
           rules.compactness == 0;
}

} // namespace

Plan scanned_plan(const FleetTables &tables, uint64_t seed) {
    FleetScanner scanner(tables, kFirstPlan);
    FleetPlan plan(tables);
    const auto n = std::max<int64_t>(1, tables.num_tasks());
    const int64_t tries = std::clamp<int64_t>(kTriesByTasks / (n * n), 1, kMostTries);
    Plan best;
    Rank best_rank;
    const auto offer = [&](const Plan &offered) {
        plan.load(offered);
        const Rank rank = rank_of(plan);
        if (best.route_starts.empty() || rank < best_rank) {
            best = offered;
            best_rank = rank;
        }
    };
    for (int64_t i = 0; i < tries; ++i) {
        Random random(seed, static_cast<uint64_t>(i));
        offer(scanner.build(random, static_cast<TieRule>(i % kTieRules)));
    }
    const bool keeps_rules = std::get<0>(best_rank) == 0 && std::get<1>(best_rank) == 0;
    if (can_be_split(tables.rules) &&
        (!keeps_rules || n * tables.num_types() <= kMostSplit)) {
        std::vector<const Network *> networks;
        for (const auto &driving : tables.drivings) {
            networks.push_back(&driving->streets());
        }
        try {
            const auto cut = split_into_trips(networks, tables.rules, best.arcs, true);
            if (cut) {
                offer(*cut);
            }
        } catch (const std::overflow_error &) {
            // The fleet is too large to be counted; the plan is good enough.
        }
    }
    return best;
}

FleetScanning::FleetScanning(const std::vector<const Network *> &networks,
                             FleetRules rules, const PathScanningSettings &settings,
                             uint64_t seed)
    : tables_(networks, std::move(rules), kNoSearch), settings_(settings), seed_(seed) {
    start_clock();
}

void FleetScanning::run(int64_t iterations, double seconds, int64_t target,
                        int threads) {
    const Deadline deadline = Deadline::in(seconds);
    const int64_t end = iterations_ + iterations;
    std::atomic<int64_t> next{iterations_};
    std::atomic<bool> done{reached(target)};
    const auto workers = static_cast<int>(std::min<int64_t>(threads, iterations));
    run_workers(workers, [&](int) {
        FleetScanner scanner(tables_, settings_);
        FleetPlan plan(tables_);
        while (!done.load(std::memory_order_relaxed) && !deadline.passed()) {
            const int64_t iteration = next.fetch_add(1, std::memory_order_relaxed);
            if (iteration >= end) {
                break;
            }
            Random random(seed_, static_cast<uint64_t>(iteration));
            plan.load(
                scanner.build(random, static_cast<TieRule>(iteration % kTieRules)));
            if (scanner.all_fit() && plan.sums().excess.none() &&
                plan.fleet_faults() == 0) {
                offer(plan, iteration);
                if (reached(target)) {
                    done.store(true, std::memory_order_relaxed);
                }
            }
        }
    });
    iterations_ = std::min(next.load(), end);
}

void FleetScanning::offer(const FleetPlan &plan, int64_t iteration) {
    const std::lock_guard lock(mutex_);
    const Objective objective = plan.objective();
    // Among equally good plans the earliest wins, whichever thread came first.
    if (!has_plan() || objective < best_objective_ ||
        (objective == best_objective_ && iteration <= best_iteration())) {
        best_objective_ = objective;
        keep_best(plan.to_plan(), plan.cost(), iteration);
    }
}

} // namespace arcfleet
