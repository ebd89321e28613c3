#include "search/maens_merge_split.h"

#include <algorithm>

namespace arcfleet {

namespace {

constexpr size_t kMemory = size_t{1} << 17;
constexpr ScanRule kRules[] = {
    ScanRule::far_from_depot, ScanRule::near_to_depot, ScanRule::most_demand_per_cost,
    ScanRule::least_demand_per_cost, ScanRule::out_then_home};

} // namespace

MergeSplit::MergeSplit(const MaensTables &tables)
    : tables_(tables), scanner_(tables), memory_(kMemory) {
    const size_t tasks = at(tables.num_tasks());
    for (Plan *plan : {&trial_, &best_}) {
        plan->arcs.reserve(tasks);
        plan->route_starts.reserve(tasks + 1);
    }
    value_.resize(tasks + 1);
    cut_.resize(tasks + 1);
    steps_.resize(tasks);
}

int64_t MergeSplit::cost(const std::vector<int32_t> &tasks) {
    uint64_t key = 0;
    for (const int32_t task : tasks) {
        key += tables_.task_word(task);
    }
    Remembered &known = memory_[key % kMemory];
    if (known.cost < 0 || known.key != key) {
        known = {key, plan(tasks)};
    }
    return known.cost;
}

int64_t MergeSplit::plan(const std::vector<int32_t> &tasks) {
    sorted_ = tasks;
    std::sort(sorted_.begin(), sorted_.end());
    int64_t best = INT64_MAX;
    for (const ScanRule rule : kRules) {
        trial_.arcs.clear();
        trial_.route_starts.assign(1, 0);
        scanner_.scan(sorted_, rule, trial_);
        const int64_t cost = split(trial_);
        if (cost < best) {
            best = cost;
            std::swap(best_, trial_);
        }
    }
    return best;
}

int64_t MergeSplit::split(Plan &order) {
    const std::vector<int32_t> &arcs = order.arcs;
    const size_t size = arcs.size();
    int32_t last = 0;
    for (size_t i = 0; i < size; ++i) {
        const Arc &arc = tables_.arc(arcs[i]);
        steps_[i] = {arc.demand, tables_.from(arcs[i])[0],
                     int64_t{tables_.to(arcs[i])[0]} + arc.service_cost,
                     int64_t{tables_.network().deadhead(last, arcs[i])} +
                         arc.service_cost};
        last = arcs[i];
    }
    value_[0] = 0;
    std::fill_n(value_.begin() + 1, size, INT64_MAX);
    for (size_t i = 0; i < size; ++i) {
        int64_t room = tables_.capacity() - steps_[i].demand;
        int64_t driven = value_[i] + tables_.route_cost() + steps_[i].from_depot;
        for (size_t j = i;;) {
            const int64_t whole = driven + steps_[j].home;
            if (whole < value_[j + 1]) {
                value_[j + 1] = whole;
                cut_[j + 1] = static_cast<int32_t>(i);
            }
            if (++j == size || (room -= steps_[j].demand) < 0) {
                break;
            }
            driven += steps_[j].from_last;
        }
    }
    order.route_starts.clear();
    for (auto end = static_cast<int32_t>(size); end > 0; end = cut_[at(end)]) {
        order.route_starts.push_back(end);
    }
    order.route_starts.push_back(0);
    std::reverse(order.route_starts.begin(), order.route_starts.end());
    return value_[size];
}

} // namespace arcfleet
