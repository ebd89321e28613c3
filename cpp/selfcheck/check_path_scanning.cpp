#include "search/path_scanning.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace arcfleet {

namespace {

constexpr double kForever = 1e6;

// Path scanning as the literature states it: every arc looked at in every step. Counts
// the plans it could have become: the built plan must take a nearest admissible arc at
// each step, and close a route only when none is left.
void check_steps(const Network &network, const PathScanningSettings &rules,
                 int64_t iteration, const Plan &plan) {
    const int64_t capacity = network.vehicle().capacity;
    double demands = 0;
    double costs = 0;
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        const Arc &arc = network.arc(network.task_arc(task));
        demands += arc.demand;
        costs += arc.inverse < 0
                     ? arc.service_cost
                     : (arc.service_cost + network.arc(arc.inverse).service_cost) / 2.0;
    }
    const double mean_demand = demands / network.num_tasks();
    const double mean_cost = costs / network.num_tasks();
    const auto arcs = static_cast<int32_t>(network.arcs().size());
    std::vector<bool> served(static_cast<size_t>(network.num_tasks()), false);
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        const int32_t end = plan.route_starts[route + 1];
        int32_t at = plan.route_starts[route];
        int32_t place = 0;
        int64_t load = 0;
        int64_t travelled = 0;
        bool choosy = false;
        for (;; ++at) {
            const double residual = static_cast<double>(capacity - load);
            double near_demand = 0;
            double near_count = 0;
            for (int32_t task = 0; task < network.num_tasks(); ++task) {
                const int32_t first = network.task_arc(task);
                int32_t reach = network.deadhead(place, first);
                if (network.arc(first).inverse >= 0) {
                    reach = std::min(reach, network.deadhead(place, first + 1));
                }
                if (!served[static_cast<size_t>(task)] && reach <= mean_cost) {
                    near_demand += network.arc(first).demand;
                    near_count += 1;
                }
            }
            const double local =
                near_count > 0 ? near_demand / near_count : mean_demand;
            const bool empty = at == plan.route_starts[route];
            if (!empty && rules.trigger != Trigger::never) {
                const double mean =
                    rules.trigger == Trigger::nearby ? local : mean_demand;
                choosy = choosy || residual <= rules.alpha * mean;
            }
            const int64_t home = network.deadhead(place, 0);
            int64_t nearest = INT64_MAX;
            for (int32_t a = 1; a < arcs; ++a) {
                const Arc &arc = network.arc(a);
                if (served[static_cast<size_t>(arc.task)] ||
                    load + arc.demand > capacity) {
                    continue;
                }
                const int64_t reach = network.deadhead(place, a);
                const int64_t via = reach + arc.service_cost + network.deadhead(a, 0);
                bool admissible = true;
                if (choosy && rules.filter == Filter::ellipse) {
                    admissible = static_cast<double>(via) <=
                                 mean_cost + static_cast<double>(home) + 0.001;
                } else if (choosy) {
                    admissible = (via - home) * load <= (travelled + home) * arc.demand;
                }
                if (admissible) {
                    nearest = std::min(nearest, reach);
                }
            }
            if (at == end) {
                // The last route ends because all is served, the others because
                // nothing more was admissible.
                ARCFLEET_EQUAL(nearest, INT64_MAX);
                break;
            }
            const int32_t chosen = plan.arcs[static_cast<size_t>(at)];
            if (rules.choice == Choice::rules) {
                // No other nearest arc that fits is better by this plan's rule.
                int64_t rule = iteration % 5;
                if (rule == 4) {
                    rule = 2 * (capacity - load) <= capacity ? 2 : 3;
                }
                for (int32_t a = 1; a < arcs; ++a) {
                    const Arc &arc = network.arc(a);
                    if (served[static_cast<size_t>(arc.task)] ||
                        load + arc.demand > capacity ||
                        network.deadhead(place, a) != nearest) {
                        continue;
                    }
                    const Arc &taken = network.arc(chosen);
                    const int64_t cheaper = int64_t{taken.service_cost} * arc.demand -
                                            int64_t{arc.service_cost} * taken.demand;
                    const int64_t nearer =
                        network.deadhead(chosen, 0) - network.deadhead(a, 0);
                    const int64_t better[] = {cheaper, -cheaper, nearer, -nearer};
                    // Cost and demand both 0 compare with nothing.
                    const bool comparable =
                        rule >= 2 || arc.demand > 0 || arc.service_cost > 0;
                    if (comparable &&
                        (taken.demand > 0 || taken.service_cost > 0 || rule >= 2)) {
                        ARCFLEET_EQUAL(better[rule] <= 0, true);
                    }
                }
            }
            ARCFLEET_EQUAL(static_cast<int64_t>(network.deadhead(place, chosen)),
                           nearest);
            load += network.arc(chosen).demand;
            travelled += nearest + network.arc(chosen).service_cost;
            served[static_cast<size_t>(network.arc(chosen).task)] = true;
            place = chosen;
        }
    }
}

// Plans with too many routes are not kept, however cheap.
// Rows that leave some starts out change nothing.
void check_short_rows(const Network &network, const PathScanningSettings &rules,
                      uint64_t seed) {
    const PathScanningTables all(network, true);
    const PathScanningTables few(network, true, seed % 5);
    PathScanner one(all, rules);
    PathScanner other(few, rules);
    Random random(3, seed);
    Random again(3, seed);
    ARCFLEET_EQUAL(other.build(again, TieRule{}), one.build(random, TieRule{}));
    ARCFLEET_EQUAL(other.plan().arcs == one.plan().arcs, true);
}

void check_fleet_limit(RandomStreets streets, uint64_t seed) {
    const PathScanningSettings rules{Choice::random_arc, Trigger::never,
                                     Filter::ellipse, 0.0};
    const auto free_network = streets.network();
    PathScanning free(*free_network, rules, seed);
    free.run(5, kForever, -1, 1);
    const auto routes = static_cast<int32_t>(free.best_plan().num_routes());
    for (int32_t limit = std::max(1, routes - 1); limit <= routes; ++limit) {
        streets.vehicle.fleet_limit = limit;
        const auto network = streets.network();
        PathScanning limited(*network, rules, seed);
        limited.run(5, kForever, -1, 1);
        if (limited.has_plan()) {
            const auto found = static_cast<int32_t>(limited.best_plan().num_routes());
            ARCFLEET_EQUAL(found <= limit, true);
        }
        ARCFLEET_EQUAL(limited.has_plan() || limit < routes, true);
    }
}

} // namespace

void check_path_scanning() {
    const std::initializer_list<PathScanningSettings> variants = {
        {Choice::rules, Trigger::never, Filter::ellipse, 0.0},
        {Choice::random_rule, Trigger::never, Filter::ellipse, 0.0},
        {Choice::random_arc, Trigger::never, Filter::ellipse, 0.0},
        {Choice::random_arc, Trigger::everywhere, Filter::ellipse, 1.5},
        {Choice::random_arc, Trigger::nearby, Filter::efficiency, 3.0},
        {Choice::random_arc, Trigger::everywhere, Filter::efficiency, 3.0},
        {Choice::random_arc, Trigger::nearby, Filter::ellipse, 1.0},
    };
    for (uint64_t round = 0; round < 150; ++round) {
        Random random(2, round);
        const RandomStreets streets(random);
        const auto network = streets.network();
        check_fleet_limit(streets, round);
        for (const PathScanningSettings &rules : variants) {
            check_short_rows(*network, rules, round);
            int64_t cheapest = INT64_MAX;
            for (int64_t plans = 1; plans <= 6; ++plans) {
                PathScanning one(*network, rules, round);
                one.run(plans, kForever, -1, 1);
                ARCFLEET_EQUAL(one.iterations(), plans);
                ARCFLEET_EQUAL(one.best_cost(), plan_cost(*network, one.best_plan()));
                ARCFLEET_EQUAL(one.best_cost() <= cheapest, true);
                cheapest = one.best_cost();
                check_plan(*network, one.best_plan());
                check_steps(*network, rules, one.best_iteration(), one.best_plan());
            }
            PathScanning two(*network, rules, round);
            two.run(6, kForever, -1, 2);
            PathScanning one(*network, rules, round);
            one.run(6, kForever, -1, 1);
            ARCFLEET_EQUAL(two.best_cost(), one.best_cost());
            ARCFLEET_EQUAL(two.best_plan().arcs == one.best_plan().arcs, true);
        }
    }
}

} // namespace arcfleet
