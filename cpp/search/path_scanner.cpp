#include "search/path_scanner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace arcfleet {

void UnservedArcs::add_all() {
    std::fill(wanted_.begin(), wanted_.end(), uint8_t{1});
    for (size_t i = 0; i < open_.size(); ++i) {
        open_[i] = t_.arcs_at[i + 1] - t_.arcs_at[i];
    }
}

PathScanner::PathScanner(const PathScanningTables &tables,
                         const PathScanningSettings &settings)
    : t_(tables), settings_(settings), rules_(tables.rules), unserved_(tables) {
    plan_.arcs.reserve(t_.demand.size());
    plan_.route_starts.reserve(t_.demand.size() + 1);
}

void PathScanner::start_plan() {
    unserved_.add_all();
    smallest_ = 0;
    cost_ = 0;
    plan_.arcs.clear();
    plan_.route_starts.clear();
    if (settings_.tie_order == TieOrder::unserved_list) {
        list_.resize(t_.arcs.size());
        std::iota(list_.begin(), list_.end(), 1); // arc 0 is the depot
        list_at_.resize(t_.arcs.size() + 1);
        std::iota(list_at_.begin(), list_at_.end(), -1);
    }
}

void PathScanner::start_route() {
    plan_.route_starts.push_back(static_cast<int32_t>(plan_.arcs.size()));
    place_ = 0;
    load_ = 0;
    travelled_ = 0;
    choosy_ = false;
}

void PathScanner::serve(const ArcHere &here) {
    const Arc &arc = t_.network.arc(here.arc);
    travelled_ += nearest_.distance + arc.service_cost;
    load_ += arc.demand;
    unserved_.remove(arc);
    if (settings_.tie_order == TieOrder::unserved_list) {
        drop_from_list(here.arc);
        if (arc.inverse >= 0) {
            drop_from_list(arc.inverse);
        }
    }
    plan_.arcs.push_back(here.arc);
    place_ = arc.end;
}

void PathScanner::drop_from_list(int32_t arc) {
    const int32_t hole = list_at_[idx(arc)];
    list_[idx(hole)] = list_.back();
    list_at_[idx(list_.back())] = hole;
    list_.pop_back();
}

void PathScanner::close_route() {
    const int32_t home = t_.network.distances_from(place_)[0];
    cost_ += travelled_ + home + rules_.route_cost();
}

bool PathScanner::nothing_fits() {
    while (!unserved_.has(t_.tasks_by_demand[smallest_])) {
        ++smallest_;
    }
    return !rules_.fits(int64_t{load_} + t_.demand[idx(t_.tasks_by_demand[smallest_])]);
}

double PathScanner::mean_demand_near() const {
    int64_t sum = 0;
    int64_t count = 0;
    for (size_t i = t_.neighbours_at[idx(place_)];
         i < t_.neighbours_at[idx(place_) + 1]; ++i) {
        const int32_t task = t_.neighbours[i];
        const int64_t open = unserved_.has(task);
        sum += open * t_.demand[idx(task)];
        count += open;
    }
    return count ? static_cast<double>(sum) / static_cast<double>(count)
                 : t_.mean_demand;
}

// Whether the route becomes choosy at this step. An empty route never does: it could
// refuse everything, for ever.
bool PathScanner::triggers() const {
    if (plan_.route_starts.back() == static_cast<int32_t>(plan_.arcs.size())) {
        return false;
    }
    const double remaining = rules_.remaining_capacity(load_);
    if (settings_.trigger == Trigger::everywhere) {
        return remaining <= settings_.alpha * t_.mean_demand;
    }
    // A mean is at most the largest: most steps are decided without looking around.
    return remaining <= settings_.alpha * t_.largest_demand &&
           remaining <= settings_.alpha * mean_demand_near();
}

// All arcs that fit and pass, at the smallest distance at which there is one.
template <typename Passes>
void PathScanner::collect(int64_t farthest, const Passes &passes) {
    const RouteSlack slack = rules_.slack(load_);
    const int64_t travelled = travelled_;
    const auto fits = [&](const ArcHere &arc, int32_t reach) {
        // Of the route if it serves the arc and ends.
        const int64_t cost = travelled + reach + arc.service_cost + arc.home;
        return slack.takes(arc.demand, cost) && passes(arc, reach);
    };
    nearest_ = unserved_.nearest(place_, farthest, fits);
}

// The same among the arcs that pass the filter. Both filters bound the distance from
// above, which ends the walk early.
template <Filter filter> void PathScanner::collect_nearest_filtered() {
    const int64_t home = t_.network.distances_from(place_)[0];
    const double load = load_;
    // What the route costs if it ends here.
    const auto route = static_cast<double>(travelled_ + home);
    // The ellipse's tolerance of 0.001 is the published program's.
    const int64_t widest =
        home + static_cast<int64_t>(std::floor(t_.mean_cost + 0.001));
    const auto passes = [&](const ArcHere &arc, int32_t reach) {
        const int64_t via = static_cast<int64_t>(reach) + arc.service_cost + arc.home;
        if constexpr (filter == Filter::ellipse) {
            return via <= widest;
        } else {
            // (via - home) / demand <= route / load, without dividing. Doubles are
            // exact below 2^53 and cannot overflow above.
            return static_cast<double>(via - home) * load <= route * arc.demand;
        }
    };
    int64_t farthest = widest - t_.smallest_cost;
    if constexpr (filter == Filter::efficiency) {
        const double gain =
            route * std::min(rules_.remaining_capacity(load_), t_.largest_demand);
        farthest = gain < load * kMaxDistance
                       ? home + static_cast<int64_t>(gain / load) - t_.smallest_cost
                       : int64_t{kMaxDistance};
    }
    collect(farthest, passes);
}

const PathScanner::ArcHere &PathScanner::draw(Random &random) {
    const auto ties = nearest_.arcs;
    const size_t drawn = random.below(static_cast<uint32_t>(ties.size()));
    if (settings_.tie_order == TieOrder::unserved_list) {
        const auto place = ties.begin() + static_cast<std::ptrdiff_t>(drawn);
        std::nth_element(ties.begin(), place, ties.end(),
                         [&](const ArcHere *a, const ArcHere *b) {
                             return list_at_[idx(a->arc)] < list_at_[idx(b->arc)];
                         });
    }
    return *ties[drawn];
}

// A random arc among the nearest; then, with a rule, the best by the rule. Where the
// random one is not among the best, the first in the order of the instance is taken.
const PathScanner::ArcHere &PathScanner::choose(Random &random, TieRule rule) {
    if (nearest_.arcs.size() == 1) {
        return *nearest_.arcs[0];
    }
    const ArcHere &drawn = draw(random);
    if (settings_.choice == Choice::random_arc) {
        return drawn;
    }
    if (settings_.choice == Choice::random_rule) {
        rule = static_cast<TieRule>(random.below(kTieRules));
    }
    const TieRule plain = plain_rule(rule, rules_, load_);
    const ArcHere *chosen = &drawn;
    for (const ArcHere *arc : nearest_.arcs) {
        if (prefers(plain, *arc, *chosen) ||
            (chosen != &drawn && arc->arc < chosen->arc &&
             !prefers(plain, *chosen, *arc))) {
            chosen = arc;
        }
    }
    return *chosen;
}

int64_t PathScanner::build(Random &random, TieRule rule) {
    start_plan();
    const size_t num_tasks = t_.demand.size();
    if (num_tasks > 0) {
        start_route();
    }
    while (plan_.arcs.size() < num_tasks) {
        nearest_.arcs = {};
        if (!nothing_fits()) {
            if (!choosy_ && settings_.trigger != Trigger::never) {
                choosy_ = triggers();
            }
            if (!choosy_) {
                collect(INT64_MAX, [](const ArcHere &, int32_t) { return true; });
            } else if (settings_.filter == Filter::ellipse) {
                collect_nearest_filtered<Filter::ellipse>();
            } else {
                collect_nearest_filtered<Filter::efficiency>();
            }
        }
        if (nearest_.arcs.empty()) {
            close_route();
            start_route();
            continue;
        }
        serve(choose(random, rule));
    }
    if (num_tasks > 0) {
        close_route();
    }
    plan_.route_starts.push_back(static_cast<int32_t>(num_tasks));
    return cost_;
}

PathScanningTables::PathScanningTables(const Network &net, bool with_neighbours,
                                       size_t longest_row)
    : network(net), rules(net) {
    const int32_t terminals = net.num_terminals();
    if (terminals > UINT16_MAX) {
        throw std::invalid_argument("more than 65535 places to serve from");
    }
    demand.resize(idx(net.num_tasks()));
    arcs_at.assign(idx(terminals) + 1, 0);
    int64_t total_demand = 0;
    int64_t total_cost = 0;
    largest_demand = 0;
    smallest_cost = INT32_MAX;
    for (size_t a = 1; a < net.arcs().size(); ++a) {
        const Arc &arc = net.arcs()[a];
        // A task's cost is the mean over its directions: in halves, to stay exact.
        total_cost +=
            arc.inverse >= 0 ? arc.service_cost : 2 * int64_t{arc.service_cost};
        smallest_cost = std::min(smallest_cost, arc.service_cost);
        demand[idx(arc.task)] = arc.demand;
        ++arcs_at[idx(arc.start) + 1];
    }
    for (const int32_t d : demand) {
        largest_demand = std::max(largest_demand, d);
        total_demand += d;
        if (!rules.fits(d)) {
            throw std::invalid_argument("a demand is above the capacity");
        }
    }
    const double tasks = std::max(1.0, static_cast<double>(demand.size()));
    mean_demand = static_cast<double>(total_demand) / tasks;
    mean_cost = static_cast<double>(total_cost) / 2.0 / tasks;

    std::partial_sum(arcs_at.begin(), arcs_at.end(), arcs_at.begin());
    arcs.resize(net.arcs().size() - 1);
    std::vector<int32_t> next(arcs_at.begin(), arcs_at.end() - 1);
    for (int32_t a = 1; idx(a) < net.arcs().size(); ++a) {
        const Arc &arc = net.arc(a);
        const int32_t back = net.distances_from(arc.end)[0];
        arcs[idx(next[idx(arc.start)]++)] = {
            {arc.demand, arc.service_cost, back}, a, arc.task};
    }

    for (int32_t t = 0; t < terminals; ++t) {
        if (arcs_at[idx(t) + 1] > arcs_at[idx(t)]) {
            starts.push_back(static_cast<uint16_t>(t));
        }
    }
    const size_t row_length = std::min(starts.size(), longest_row);
    num_nearest = static_cast<int32_t>(row_length);
    nearest.reserve(idx(terminals) * row_length);
    neighbours_at.push_back(0);
    // Distance in the high part, terminal in the low one.
    std::vector<uint64_t> keys(starts.size());
    std::vector<int32_t> seen_from(demand.size(), -1);
    for (int32_t t = 0; t < terminals; ++t) {
        const int32_t *row = net.distances_from(t);
        std::transform(starts.begin(), starts.end(), keys.begin(), [&](uint16_t start) {
            return static_cast<uint64_t>(row[start]) << 16 | start;
        });
        const auto row_end = keys.begin() + num_nearest;
        if (row_end != keys.end()) {
            std::nth_element(keys.begin(), row_end, keys.end());
        }
        std::sort(keys.begin(), row_end);
        for (auto key = keys.begin(); key != row_end; ++key) {
            nearest.push_back(static_cast<uint16_t>(*key));
        }
        for (const uint16_t start : starts) {
            if (!with_neighbours || row[start] > mean_cost) {
                continue;
            }
            for (int32_t k = arcs_at[start]; k < arcs_at[idx(start) + 1]; ++k) {
                int32_t &seen = seen_from[idx(arcs[idx(k)].task)];
                if (seen != t) {
                    seen = t;
                    neighbours.push_back(arcs[idx(k)].task);
                }
            }
        }
        neighbours_at.push_back(neighbours.size());
    }

    tasks_by_demand.resize(demand.size());
    std::iota(tasks_by_demand.begin(), tasks_by_demand.end(), 0);
    std::stable_sort(
        tasks_by_demand.begin(), tasks_by_demand.end(),
        [&](int32_t a, int32_t b) { return demand[idx(a)] < demand[idx(b)]; });
}

} // namespace arcfleet
