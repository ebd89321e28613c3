#include "search/maens/rule_scanner.h"

#include <algorithm>
#include <bit>

namespace arcfleet {

// Whether a rule prefers an arc to another. Arcs that end at the depot come last: they
// would waste the rest of the route.
bool RuleScanner::better(TieRule rule, const ArcHere &a, const ArcHere &b) const {
    const auto key = [](TieKey arc) {
        // No demand at no cost counts as little demand, so that the rules are orders.
        arc.service_cost = std::max(arc.demand == 0 ? 1 : 0, arc.service_cost);
        return arc;
    };
    const bool a_ends = tables_.arc(a.arc).end == 0;
    const bool b_ends = tables_.arc(b.arc).end == 0;
    if (a_ends != b_ends) {
        return b_ends;
    }
    return prefers(rule, key(a), key(b)) ||
           (a.arc < b.arc && !prefers(rule, key(b), key(a)));
}

int32_t RuleScanner::least_service_cost(const Arc &arc) const {
    return arc.inverse < 0
               ? arc.service_cost
               : std::min(arc.service_cost, tables_.arc(arc.inverse).service_cost);
}

void RuleScanner::take(const std::vector<int32_t> &tasks) {
    const auto arc_of = [&](int32_t task) -> const Arc & {
        return tables_.arc(tables_.network().task_arc(task));
    };
    for (const int32_t task : tasks_) {
        if (unserved_.has(task)) {
            unserved_.remove(arc_of(task));
        }
    }
    tasks_ = tasks;
    largest_demand_ = 0;
    int64_t service_cost = 0; // of all tasks, in the cheaper direction each
    int32_t home = INT32_MAX; // distance to the depot where it is the shortest
    for (const int32_t task : tasks) {
        const Arc &arc = arc_of(task);
        unserved_.add(arc);
        largest_demand_ = std::max(largest_demand_, arc.demand);
        service_cost += least_service_cost(arc);
        home = std::min(home, tables_.distances_to(0)[arc.end]);
        if (arc.inverse >= 0) {
            home = std::min(home, tables_.distances_to(0)[arc.start]);
        }
    }
    steps_.resize(std::max(steps_.size(), tasks.size() + 1));
    steps_[0] = {};
    steps_[0].to_come = service_cost + home;
    last_ = 0;
}

void RuleScanner::serve(int32_t a) {
    const Arc &arc = tables_.arc(a);
    unserved_.remove(arc);
    const Step &last = steps_[last_];
    Step &step = steps_[++last_];
    const int32_t from = tables_.arc(last.arc).end; // arc 0 is the depot
    const int64_t driven = last.driven + tables_.distances_from(from)[arc.start];
    step.arc = a;
    step.place = arc.end;
    step.load = last.load + arc.demand;
    step.driven = driven + arc.service_cost;
    step.begun = last.cost + tables_.rules().route_cost() +
                 tables_.distances_from(0)[arc.start] - driven;
    step.load_all = last.load_all + arc.demand;
    step.to_come = last.to_come - least_service_cost(arc);
    step.cut = last_;
    cut(step);
    const int64_t open = steps_[step.cut].begun + step.driven;
    step.cost = open + tables_.distances_to(0)[arc.end];
    step.bound = open + step.to_come;
}

// Ulusoy's split, one arc further. The cost of one route is a part that depends on its
// first arc (`begun`) plus a part that depends on its last.
void RuleScanner::cut(Step &step) const {
    const auto fits = [&](size_t first) {
        return tables_.rules().fits(step.load_all - steps_[first - 1].load_all);
    };
    const size_t old = steps_[last_ - 1].cut;
    if (old == 0 || steps_[old].begun > step.begun) {
        return;
    }
    if (fits(old)) {
        step.cut = old;
        return;
    }
    // Too long for the vehicle: the best of the shorter ones.
    for (size_t first = last_ - 1; first > 0 && fits(first); --first) {
        if (steps_[first].begun <= steps_[step.cut].begun) {
            step.cut = first;
        }
    }
}

bool RuleScanner::something_fits(const RouteSlack &slack) const {
    return slack.takes(largest_demand_, 0) ||
           std::any_of(tasks_.begin(), tasks_.end(), [&](int32_t task) {
               return unserved_.has(task) &&
                      slack.takes(tables_.scanning().demand[idx(task)], 0);
           });
}

// Finds the nearest arcs that fit, after a return to the depot if none does, and the
// one that each of the chosen rules takes.
void RuleScanner::branch(std::span<const TieRule> rules, uint32_t chosen) {
    Step &step = steps_[last_];
    RouteSlack slack = tables_.rules().slack(static_cast<int32_t>(step.load));
    if (!something_fits(slack)) {
        step.place = 0;
        step.load = 0; // no demand is above the capacity: something fits now
        slack = tables_.rules().slack(0);
    }
    const auto fits = [slack](const ArcHere &arc, int32_t) {
        return slack.takes(arc.demand, 0);
    };
    const auto ties = unserved_.nearest(step.place, INT64_MAX, fits).arcs;
    if (ties.size() == 1) {
        branches_.push_back({last_, ties[0]->arc, chosen});
        return;
    }
    const auto here = static_cast<std::ptrdiff_t>(branches_.size());
    for (; chosen != 0; chosen &= chosen - 1) {
        const auto number = static_cast<size_t>(std::countr_zero(chosen));
        const TieRule rule = plain_rule(rules[number], tables_.rules(), step.load);
        const ArcHere *first =
            *std::min_element(ties.begin(), ties.end(),
                              [&](auto *a, auto *b) { return better(rule, *a, *b); });
        auto same = std::find_if(branches_.begin() + here, branches_.end(),
                                 [&](auto &other) { return other.arc == first->arc; });
        if (same == branches_.end()) {
            same = branches_.insert(same, {last_, first->arc, 0});
        }
        same->rules |= uint32_t{1} << number;
    }
}

int64_t RuleScanner::scan(const std::vector<int32_t> &tasks,
                          std::span<const TieRule> rules, int64_t limit, Plan &routes) {
    take(tasks);
    int64_t best = INT64_MAX;
    int best_rule = 0;
    branch(rules, (uint32_t{1} << rules.size()) - 1);
    while (!branches_.empty()) {
        const Branch next = branches_.back();
        branches_.pop_back();
        while (last_ > next.step) {
            unserved_.add(tables_.arc(steps_[last_--].arc));
        }
        serve(next.arc);
        const Step &step = steps_[last_];
        if (step.bound >= limit) {
            continue;
        }
        if (last_ < tasks.size()) {
            branch(rules, next.rules);
            continue;
        }
        const int rule = std::countr_zero(next.rules);
        if (step.cost < limit && (step.cost < best || rule < best_rule)) {
            best = step.cost;
            best_rule = rule;
            limit = best + 1; // an earlier rule may cost the same
            write(routes);
        }
    }
    return best;
}

void RuleScanner::write(Plan &routes) const {
    routes.arcs.clear();
    for (size_t i = 1; i <= last_; ++i) {
        routes.arcs.push_back(steps_[i].arc);
    }
    routes.route_starts.clear();
    for (size_t end = last_; end > 0; end = steps_[end].cut - 1) {
        routes.route_starts.push_back(static_cast<int32_t>(end));
    }
    routes.route_starts.push_back(0);
    std::reverse(routes.route_starts.begin(), routes.route_starts.end());
}

} // namespace arcfleet
