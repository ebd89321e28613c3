#include "search/maens/merge_split.h"

#include <algorithm>

namespace arcfleet {

namespace {

constexpr TieRule kRules[] = {TieRule::far_from_depot, TieRule::near_to_depot,
                              TieRule::least_cost_per_demand,
                              TieRule::most_cost_per_demand, TieRule::out_then_home};

} // namespace

MergeSplit::Scanner MergeSplit::make_scanner(const MaensTables &tables) {
    if (RuleScanner<int16_t>::fits(tables)) {
        return Scanner(std::in_place_type<RuleScanner<int16_t>>, tables);
    }
    return Scanner(std::in_place_type<RuleScanner<int32_t>>, tables);
}

MergeSplit::MergeSplit(const MaensTables &tables)
    : tables_(tables), scanner_(make_scanner(tables)), memory_(kMemory) {
    best_.arcs.reserve(idx(tables.num_tasks()));
    best_.route_starts.reserve(idx(tables.num_tasks()) + 1);
}

int64_t MergeSplit::cost(const std::vector<int32_t> &tasks, int64_t limit) {
    uint64_t hash = 0;
    for (const int32_t task : tasks) {
        hash += tables_.task_hash(task);
    }
    const int64_t known = remembered(hash, limit);
    if (known >= 0) {
        return known;
    }
    const int64_t found = plan(tasks, limit);
    // INT64_MAX, where there is no limit, has no double, and needs none.
    const int64_t cost = std::min({found, limit, INT64_MAX / 2});
    memory_[hash % kMemory] = {hash, 2 * cost + (found < limit ? 0 : 1)};
    return cost;
}

int64_t MergeSplit::remembered(uint64_t hash, int64_t limit) const {
    const Remembered &known = memory_[hash % kMemory];
    return known.hash == hash && known.answers(limit) ? known.twice_cost / 2 : -1;
}

int64_t MergeSplit::plan(const std::vector<int32_t> &tasks, int64_t limit) {
    const auto scan_all = [&](auto &scanner) {
        scanner.take(tasks);
        int64_t best = INT64_MAX;
        for (const TieRule rule : kRules) {
            const int64_t cost = scanner.scan(rule, std::min(best, limit));
            if (cost < INT64_MAX) { // less than all before
                best = cost;
                scanner.write(best_);
            }
        }
        return best;
    };
    return std::visit(scan_all, scanner_);
}

} // namespace arcfleet
