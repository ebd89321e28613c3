// Every small move that is listed: what `evaluate` says is what the routes cost after
// `apply`, and what their arcs cost when added up.
#include "search/moves/list.h"
#include "search/moves/within_route.h"

#include "search/plan.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace arcfleet {

namespace {

// Of the arcs that a route stands for, fixed cost apart.
int64_t cost_of_arcs(const TaskTable &tasks, const LabelledRoute &route) {
    Plan plan;
    route.append_arcs(tasks, plan.arcs);
    plan.route_starts = {0, static_cast<int32_t>(plan.arcs.size())};
    return plan_cost(tasks.network(), plan) - tasks.network().vehicle().route_cost;
}

std::vector<int32_t> tasks_of(const LabelledRoute &first, const LabelledRoute &second) {
    std::vector<int32_t> tasks;
    for (const LabelledRoute *route : {&first, &second}) {
        for (size_t i = 1; i + 1 < route->visits.size(); ++i) {
            tasks.push_back(route->visits[i].task);
        }
    }
    std::sort(tasks.begin(), tasks.end());
    return tasks;
}

template <typename Move> void check_move(const Move &move, const MoveSite &site) {
    const auto delta = move.evaluate(site);
    if (!delta) {
        return;
    }
    LabelledRoute first = site.first;
    LabelledRoute second = site.second;
    move.apply(site, first.visits, second.visits);
    for (LabelledRoute *route : {&first, &second}) {
        const bool ends_at_depot =
            route->visits.front().task == -1 && route->visits.back().task == -1;
        ARCFLEET_EQUAL(ends_at_depot, true);
        if (route->empty()) {
            route->clear();
        } else {
            route->refresh(site.tasks);
            ARCFLEET_EQUAL(int64_t{route->cost}, cost_of_arcs(site.tasks, *route));
        }
    }
    ARCFLEET_EQUAL(tasks_of(first, second) == tasks_of(site.first, site.second), true);
    ARCFLEET_EQUAL(delta->first.load, int64_t{first.load});
    ARCFLEET_EQUAL(delta->second.load, int64_t{second.load});
    ARCFLEET_EQUAL(delta->cost(site), int64_t{first.cost} + second.cost -
                                          site.first.cost - site.second.cost);
    ARCFLEET_EQUAL(delta->first.cost, int64_t{first.cost});
    ARCFLEET_EQUAL(delta->second.cost, int64_t{second.cost});
    ARCFLEET_EQUAL(delta->closes_route, first.empty() || second.empty());
    // A move is refused exactly where it would overload a route.
    MoveSite tight = site;
    tight.max_load = std::max(first.load, second.load);
    ARCFLEET_EQUAL(move.evaluate(tight).has_value(), true);
    --tight.max_load;
    ARCFLEET_EQUAL(move.evaluate(tight).has_value(), false);
}

void check_sites(const TaskTable &tasks, const LabelledRoute &first,
                 const LabelledRoute &second) {
    for (size_t i = 1; i + 1 < first.visits.size(); ++i) {
        for (size_t j = 1; j + 1 < second.visits.size(); ++j) {
            for (uint32_t draw = 0; draw < 4; ++draw) {
                const MoveSite site{tasks, first, second, i, j, draw, INT64_MAX};
                for (size_t number = 0; number < kMoves; ++number) {
                    with_move(number, [&](const auto &move) {
                        check_move(move, site);
                        return true;
                    });
                }
            }
        }
    }
}

// What a move within a route says is what the route costs after it.
void check_within(const TaskTable &tasks, const LabelledRoute &route,
                  const WithinRoute &move) {
    LabelledRoute after = route;
    move.apply(after.visits);
    LabelledRoute anew = after;
    after.refresh(tasks, move.first(), move.last() - 1);
    anew.refresh(tasks);
    ARCFLEET_EQUAL(move.cost(tasks, route), anew.cost);
    ARCFLEET_EQUAL(after.cost, anew.cost);
    ARCFLEET_EQUAL(int64_t{anew.cost}, cost_of_arcs(tasks, anew));
    ARCFLEET_EQUAL(tasks_of(after, {}) == tasks_of(route, {}), true);
}

void check_within(const TaskTable &tasks, const LabelledRoute &route) {
    const int32_t n = route.num_tasks();
    for (int32_t one = 1; one <= n; ++one) {
        for (int32_t other = 1; other <= n; ++other) {
            if (one != other) {
                const WithinRoute reversed = WithinRoute::reverse(one, other);
                check_within(tasks, route, reversed);
                std::vector<Visit> visits = route.visits;
                reversed.apply(visits);
                const auto place = [&](int32_t before) {
                    const int32_t task = route.visits[idx(before)].task;
                    return std::find_if(visits.begin(), visits.end(),
                                        [&](const Visit &x) { return x.task == task; });
                };
                ARCFLEET_EQUAL(std::abs(place(one) - place(other)), std::ptrdiff_t{1});
            }
            for (int32_t count = 1; one + count <= n + 1 && count <= 3; ++count) {
                if (other < one || other > one + count) {
                    check_within(tasks, route,
                                 WithinRoute::move(one, count, other, false));
                    check_within(tasks, route,
                                 WithinRoute::move(one, count, other, true));
                }
            }
        }
    }
}

} // namespace

void check_moves() {
    for (uint64_t round = 0; round < 60; ++round) {
        Random random(6, round);
        RandomStreets streets(random);
        streets.vary(round);
        const auto network = streets.network();
        const TaskTable tasks(*network);
        LabelledRoute routes[2];
        const int32_t most = 2 + static_cast<int32_t>(random.below(9));
        for (int32_t task = 0; task < std::min(most, tasks.num_tasks()); ++task) {
            LabelledRoute &route = routes[random.below(2)];
            const auto place =
                random.below(static_cast<uint32_t>(route.num_tasks()) + 1);
            route.insert(tasks, task, static_cast<int32_t>(place) + 1);
        }
        check_sites(tasks, routes[0], routes[1]);
        check_sites(tasks, routes[1], routes[0]);
        LabelledRoute all;
        for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
            const auto place = random.below(static_cast<uint32_t>(task) + 1);
            all.insert(tasks, task, static_cast<int32_t>(place) + 1);
        }
        check_within(tasks, all);
    }
}

} // namespace arcfleet
