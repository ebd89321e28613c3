#include "search/maens_scanner.h"

#include <algorithm>

namespace arcfleet {

MaensScanner::MaensScanner(const MaensTables &tables) : tables_(tables) {
    left_.reserve(tables.network().arcs().size());
    ties_.reserve(tables.network().arcs().size());
    place_.resize(tables.network().arcs().size());
}

template <typename Choose>
void MaensScanner::build(const std::vector<int32_t> &tasks, Choose choose, Plan &plan) {
    left_.clear();
    for (const int32_t task : tasks) {
        const int32_t first = tables_.network().task_arc(task);
        for (int32_t a : {first, tables_.arc(first).twin}) {
            if (a >= 0) {
                place_[at(a)] = left_.size();
                left_.push_back({a, tables_.arc(a).start, tables_.arc(a).demand});
            }
        }
    }
    const int32_t *row = tables_.from(0);
    int64_t load = 0;
    while (!left_.empty()) {
        ties_.clear();
        int32_t nearest = INT32_MAX;
        const auto room = static_cast<int32_t>(tables_.capacity() - load);
        // Two plain passes are faster than one that collects as it goes.
        for (const Candidate &candidate : left_) {
            const int32_t reach =
                candidate.demand <= room ? row[candidate.start] : INT32_MAX;
            nearest = std::min(nearest, reach);
        }
        for (const Candidate &candidate : left_) {
            if (row[candidate.start] == nearest && candidate.demand <= room) {
                ties_.push_back(candidate.arc);
            }
        }
        if (ties_.empty()) { // no demand is above the capacity, so the route is not new
            plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
            row = tables_.from(0);
            load = 0;
            continue;
        }
        const int32_t chosen = ties_.size() == 1 ? ties_[0] : choose(load);
        plan.arcs.push_back(chosen);
        load += tables_.arc(chosen).demand;
        row = tables_.from(chosen);
        const int32_t twin = tables_.arc(chosen).twin;
        for (const int32_t a : {chosen, twin}) {
            if (a >= 0) {
                const size_t hole = place_[at(a)];
                left_[hole] = left_.back();
                place_[at(left_[hole].arc)] = hole;
                left_.pop_back();
            }
        }
    }
    if (plan.route_starts.back() < static_cast<int32_t>(plan.arcs.size())) {
        plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
    }
}

bool MaensScanner::better(ScanRule rule, int32_t a, int32_t b, int64_t load) const {
    const Arc &x = tables_.arc(a);
    const Arc &y = tables_.arc(b);
    switch (rule) {
    case ScanRule::far_from_depot:
        return tables_.from(a)[0] > tables_.from(b)[0];
    case ScanRule::near_to_depot:
        return tables_.from(a)[0] < tables_.from(b)[0];
    case ScanRule::most_demand_per_cost:
        return int64_t{x.demand} * y.service_cost > int64_t{y.demand} * x.service_cost;
    case ScanRule::least_demand_per_cost:
        return better(ScanRule::most_demand_per_cost, b, a, load);
    default:
        return better(2 * load < tables_.capacity() ? ScanRule::far_from_depot
                                                    : ScanRule::near_to_depot,
                      a, b, load);
    }
}

// Arcs that end at the depot come last: they would waste the rest of the route. Among
// equals the lowest number wins.
int32_t MaensScanner::best_tie(ScanRule rule, int64_t load) const {
    int32_t best = ties_[0];
    for (const int32_t a : ties_) {
        const bool home = tables_.arc(a).end == 0;
        const bool best_home = tables_.arc(best).end == 0;
        if (home != best_home) {
            best = home ? best : a;
        } else if (better(rule, a, best, load) ||
                   (a < best && !better(rule, best, a, load))) {
            best = a;
        }
    }
    return best;
}

void MaensScanner::scan(const std::vector<int32_t> &tasks, ScanRule rule, Plan &plan) {
    build(tasks, [&](int64_t load) { return best_tie(rule, load); }, plan);
}

void MaensScanner::scan_random(const std::vector<int32_t> &tasks, Random &random,
                               Plan &plan) {
    const auto draw = [&](int64_t) {
        return ties_[random.below(static_cast<uint32_t>(ties_.size()))];
    };
    build(tasks, draw, plan);
}

} // namespace arcfleet
