#include "selfcheck/check_merge_split.h"

#include "search/maens/merge_split.h"
#include "search/split.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace arcfleet {

namespace {

constexpr TieRule kRules[] = {TieRule::far_from_depot, TieRule::near_to_depot,
                              TieRule::least_cost_per_demand,
                              TieRule::most_cost_per_demand, TieRule::out_then_home};

// What a rule prefers is less.
double value(const MaensTables &tables, TieRule rule, int32_t a, int64_t load) {
    const Arc &arc = tables.arc(a);
    const double home = tables.from(a)[0];
    const double per_cost = arc.demand == 0 ? 0.0
                            : arc.service_cost == 0
                                ? 1e9
                                : double(arc.demand) / double(arc.service_cost);
    switch (rule) {
    case TieRule::far_from_depot:
        return -home;
    case TieRule::near_to_depot:
        return home;
    case TieRule::least_cost_per_demand:
        return -per_cost;
    case TieRule::most_cost_per_demand:
        return per_cost;
    default:
        return 2 * load < tables.rules().capacity() ? -home : home;
    }
}

// Path scanning written down as it is defined.
std::vector<int32_t> plain_scan(const MaensTables &tables, std::vector<int32_t> left,
                                TieRule rule) {
    std::vector<int32_t> order;
    int64_t load = 0;
    int32_t here = 0;
    while (!left.empty()) {
        using Choice = std::tuple<int32_t, bool, double, int32_t>;
        Choice best{INT32_MAX, false, 0.0, 0};
        for (const int32_t task : left) {
            const int32_t first = tables.network().task_arc(task);
            for (const int32_t a : TaskDirections(tables, first)) {
                if (load + tables.arc(a).demand <= tables.rules().capacity()) {
                    best = std::min(best, Choice{tables.deadhead(here, a),
                                                 tables.arc(a).end == 0,
                                                 value(tables, rule, a, load), a});
                }
            }
        }
        here = std::get<3>(best);
        if (here == 0) { // nothing fits: home
            load = 0;
            continue;
        }
        order.push_back(here);
        load += tables.arc(here).demand;
        std::erase(left, tables.arc(here).task);
    }
    return order;
}

struct Scanned {
    int64_t cost = INT64_MAX;
    std::vector<int32_t> order;
};

// The cheapest of the plain scans, each order cut by Split.
Scanned best_scan(const MaensTables &tables, const std::vector<int32_t> &tasks,
                  std::span<const TieRule> rules) {
    Scanned best;
    Splitter splitter;
    for (const TieRule rule : rules) {
        std::vector<int32_t> order = plain_scan(tables, tasks, rule);
        std::vector<uint8_t> starts(order.size());
        const int64_t cost = splitter.split(tables.network(), order, starts, false);
        if (cost < best.cost) {
            best = {cost, order};
        }
    }
    return best;
}

// Every scan equals the plain one, under one rule and under several, and ends early
// only where it may.
void check_scanner(const MaensTables &tables, const std::vector<int32_t> &tasks,
                   RuleScanner &scanner, Random &random) {
    for (size_t scan = 0; scan < 12; ++scan) {
        const size_t first = scan < 5 ? scan : random.below(5);
        const size_t count = scan < 5 ? 1 : 1 + random.below(uint32_t(5 - first));
        const auto rules = std::span(kRules).subspan(first, count);
        const auto [cost, order] = best_scan(tables, tasks, rules);
        const int64_t limit = cost + int64_t{random.below(3)} - 1;
        Plan plan;
        ARCFLEET_EQUAL(scanner.scan(tasks, rules, limit, plan),
                       cost < limit ? cost : INT64_MAX);
        ARCFLEET_EQUAL(plan.arcs.empty(), cost >= limit);
        ARCFLEET_EQUAL(scanner.scan(tasks, rules, INT64_MAX, plan), cost);
        ARCFLEET_EQUAL(plan.arcs == order, true);
        ARCFLEET_EQUAL(plan_cost(tables.network(), plan), cost);
        for (size_t r = 0; r < plan.num_routes(); ++r) {
            int64_t load = 0;
            for (int32_t i = plan.route_starts[r]; i < plan.route_starts[r + 1]; ++i) {
                load += tables.arc(plan.arcs[idx(i)]).demand;
            }
            ARCFLEET_EQUAL(load <= tables.rules().capacity(), true);
        }
    }
}

// A remembered merge equals a fresh one, and the best of the five scans.
void check_memory(const MaensTables &tables, const std::vector<int32_t> &tasks,
                  MergeSplit &merge_split) {
    const auto [cheapest, best] = best_scan(tables, tasks, kRules);
    std::vector<int32_t> turned(tasks.rbegin(), tasks.rend());
    ARCFLEET_EQUAL(merge_split.cost(tasks, cheapest) >= cheapest, true);
    ARCFLEET_EQUAL(merge_split.cost(turned, cheapest) >= cheapest, true);
    ARCFLEET_EQUAL(merge_split.cost(tasks, cheapest + 1), cheapest);
    ARCFLEET_EQUAL(merge_split.cost(turned, INT64_MAX), cheapest);
    uint64_t hash = 0;
    for (const int32_t task : tasks) {
        hash += tables.task_hash(task);
    }
    ARCFLEET_EQUAL(merge_split.remembered(hash, INT64_MAX), cheapest);
    ARCFLEET_EQUAL(merge_split.remembered(hash + 1, INT64_MAX), -1);
    ARCFLEET_EQUAL(merge_split.plan(turned, cheapest), INT64_MAX);
    ARCFLEET_EQUAL(merge_split.plan(turned, INT64_MAX), cheapest);
    ARCFLEET_EQUAL(merge_split.routes().arcs == best, true);
    ARCFLEET_EQUAL(plan_cost(tables.network(), merge_split.routes()), cheapest);
}

} // namespace

void check_merge_split(const MaensTables &tables, Random &random) {
    MergeSplit merge_split(tables);
    RuleScanner scanner(tables);
    for (int round = 0; round < 10; ++round) {
        std::vector<int32_t> tasks;
        for (int32_t task = 0; task < tables.num_tasks(); ++task) {
            if (round == 0 || random.below(3) == 0) {
                tasks.push_back(task);
            }
        }
        if (!tasks.empty()) {
            check_scanner(tables, tasks, scanner, random);
            check_memory(tables, tasks, merge_split);
        }
    }
}

} // namespace arcfleet
