#include "search/maens/merge_split.h"

#include <algorithm>

namespace arcfleet {

namespace {

constexpr TieRule kRules[] = {TieRule::far_from_depot, TieRule::near_to_depot,
                              TieRule::least_cost_per_demand,
                              TieRule::most_cost_per_demand, TieRule::out_then_home};

} // namespace

MergeSplit::MergeSplit(const MaensTables &tables)
    : tables_(tables), scanner_(tables), memory_(kMemory) {
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
    return scanner_.scan(tasks, kRules, limit, best_);
}

} // namespace arcfleet
