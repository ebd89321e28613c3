#include "search/maens/scanner.h"

#include <algorithm>

namespace arcfleet {

MaensScanner::MaensScanner(const MaensTables &tables) : tables_(tables) {
    left_.reserve(tables.network().arcs().size());
    ties_.reserve(tables.network().arcs().size());
    place_.resize(tables.network().arcs().size());
}

void MaensScanner::scan_random(const std::vector<int32_t> &tasks, Random &random,
                               Plan &plan) {
    left_.clear();
    for (const int32_t task : tasks) {
        const int32_t first = tables_.network().task_arc(task);
        for (int32_t a : {first, tables_.arc(first).inverse}) {
            if (a >= 0) {
                place_[idx(a)] = left_.size();
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
        const auto ties = static_cast<uint32_t>(ties_.size());
        const int32_t chosen = ties_[ties == 1 ? 0 : random.below(ties)];
        plan.arcs.push_back(chosen);
        load += tables_.arc(chosen).demand;
        row = tables_.from(chosen);
        const int32_t inverse = tables_.arc(chosen).inverse;
        for (const int32_t a : {chosen, inverse}) {
            if (a >= 0) {
                const size_t hole = place_[idx(a)];
                left_[hole] = left_.back();
                place_[idx(left_[hole].arc)] = hole;
                left_.pop_back();
            }
        }
    }
    if (plan.route_starts.back() < static_cast<int32_t>(plan.arcs.size())) {
        plan.route_starts.push_back(static_cast<int32_t>(plan.arcs.size()));
    }
}

} // namespace arcfleet
