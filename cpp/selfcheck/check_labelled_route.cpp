#include "search/insertion.h"
#include "search/labelled_route.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <limits>

namespace arcfleet {

namespace {

// The cheapest cost of serving the tasks in this order, over all directions tried out.
int64_t cheapest(const Network &network, const std::vector<int32_t> &order) {
    int64_t best = INT64_MAX;
    for (uint32_t choice = 0; choice < (1U << order.size()); ++choice) {
        int64_t cost = 0;
        int32_t last = 0;
        bool legal = true;
        for (size_t i = 0; i < order.size(); ++i) {
            int32_t next = network.task_arc(order[i]);
            if (choice >> i & 1U) {
                legal = legal && network.arc(next).inverse >= 0;
                ++next;
            }
            if (!legal) {
                break;
            }
            cost += network.deadhead(last, next) + network.arc(next).service_cost;
            last = next;
        }
        if (legal) {
            best = std::min(best, cost + network.deadhead(last, 0));
        }
    }
    return best;
}

// The scan of a route finds the first of the cheapest places, with and without one that
// is overlooked, and no place is cheaper than the bound of the task.
void check_scan(const TaskTable &tasks, int32_t task, const LabelledRoute &route,
                int32_t overlooked) {
    const Insertion insertion(tasks, task);
    const InsertionPlace none{std::numeric_limits<int64_t>::max() / 2, -1};
    InsertionPlace all = none;
    InsertionPlace other = none;
    for (int32_t place = 1; place < static_cast<int32_t>(route.visits.size());
         ++place) {
        const Visit *right = route.visits.data() + place;
        const int64_t cost = insertion.cost(right[-1], right[0]);
        if (cost < all.cost) {
            all = {cost, place};
        }
        if (place != overlooked && cost < other.cost) {
            other = {cost, place};
        }
    }
    const InsertionPlace found = cheapest_insertion(tasks, task, route);
    ARCFLEET_EQUAL(found.cost, all.cost);
    ARCFLEET_EQUAL(found.place, all.place);
    const InsertionPlace found_other =
        cheapest_other_insertion(tasks, task, route, {overlooked});
    ARCFLEET_EQUAL(found_other.cost, other.cost);
    ARCFLEET_EQUAL(found_other.place, other.place);
    ARCFLEET_EQUAL(all.cost - route.cost >= tasks.ends(task).least_extra, true);
}

void check_loads(const TaskTable &tasks, const LabelledRoute &route) {
    int32_t load = 0;
    for (size_t i = 1; i + 1 < route.visits.size(); ++i) {
        load += tasks.ends(route.visits[i].task).demand;
        ARCFLEET_EQUAL(route.visits[i].load, load);
    }
    ARCFLEET_EQUAL(route.load, load);
}

// Routes long enough that labels are shifted and not computed anew: as if they were.
// And long enough that closed ways are counted as less than they cost before any is
// looked at again.
void check_shifts(const TaskTable &tasks, Random &random) {
    LabelledRoute route;
    const auto check = [&] {
        LabelledRoute anew = route;
        anew.refresh(tasks);
        ARCFLEET_EQUAL(route.cost, anew.cost);
        ARCFLEET_EQUAL(route.load, anew.load);
        const int32_t closed = tasks.network().closed_cost();
        for (size_t i = 1; i + 1 < route.visits.size(); ++i) {
            const Visit &one = route.visits[i];
            const Visit &other = anew.visits[i];
            ARCFLEET_EQUAL(one.load, other.load);
            for (const auto label : {&Visit::done_at_u, &Visit::done_at_v,
                                     &Visit::from_u, &Visit::from_v}) {
                // Beyond that, nothing is driven.
                const int32_t most = closed > 0 ? closed : kForbidden;
                ARCFLEET_EQUAL(std::min(one.*label, most),
                               std::min(other.*label, most));
            }
        }
    };
    const auto below = [&](int32_t n) {
        return static_cast<int32_t>(random.below(static_cast<uint32_t>(n)));
    };
    for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
        const int32_t place = 1 + below(route.num_tasks() + 1);
        check_scan(tasks, task, route, place);
        route.insert(tasks, task, place);
        check();
    }
    while (route.num_tasks() > 4) {
        const int32_t first = 1 + below(route.num_tasks() - 3);
        const int32_t count = 1 + below(3);
        route.erase(first, first + count);
        route.refresh(tasks, first, first - 1);
        check();
    }
}

} // namespace

void check_labelled_route() {
    for (uint64_t round = 0; round < 450; ++round) {
        Random random(3, round);
        RandomStreets streets(random);
        streets.vary(round);
        // Where 16 bits hold all costs, those of open ways alone, and not even those.
        const int32_t unit = round % 5 == 4 ? 20'000 : round % 5 == 3 ? 200 : 1;
        for (auto *costs : {&streets.cost, &streets.reverse_cost}) {
            for (int32_t &cost : *costs) {
                cost = cost < 0 ? cost : unit * cost;
            }
        }
        const auto network = streets.network();
        const TaskTable tasks(*network);
        check_shifts(tasks, random);
        LabelledRoute route;
        std::vector<int32_t> order;
        for (int32_t task = 0; task < std::min(7, tasks.num_tasks()); ++task) {
            const auto gap = random.below(static_cast<uint32_t>(order.size()) + 1);
            // Every insertion's cost as evaluated is the cost after trying all
            // directions.
            const Insertion insertion(tasks, task);
            check_scan(tasks, task, route, static_cast<int32_t>(gap) + 1);
            for (size_t i = 0; i <= order.size(); ++i) {
                std::vector<int32_t> longer = order;
                longer.insert(longer.begin() + static_cast<int64_t>(i), task);
                ARCFLEET_EQUAL(
                    int64_t{insertion.cost(route.visits[i], route.visits[i + 1])},
                    cheapest(*network, longer));
            }
            order.insert(order.begin() + gap, task);
            route.insert(tasks, task, static_cast<int32_t>(gap) + 1);
            ARCFLEET_EQUAL(int64_t{route.cost}, cheapest(*network, order));
            check_loads(tasks, route);
        }
        for (size_t i = 0; i <= order.size(); ++i) {
            ARCFLEET_EQUAL(
                joined_cost(tasks, head(route.visits[i]), tail(route.visits[i + 1])),
                route.cost);
            if (tasks.reversible()) {
                ARCFLEET_EQUAL(joined_cost(tasks, tail(route.visits[i + 1]),
                                           head(route.visits[i])),
                               route.cost);
            }
        }
        if (order.size() > 3) {
            route.erase(2, 4);
            order.erase(order.begin() + 1, order.begin() + 3);
            // The labels behind the gap are still right, as are those in front of it.
            route.refresh(tasks, 2, 1);
            check_loads(tasks, route);
        }
        Plan plan;
        route.append_arcs(tasks, plan.arcs);
        plan.route_starts = {0, static_cast<int32_t>(plan.arcs.size())};
        ARCFLEET_EQUAL(plan_cost(*network, plan) - network->vehicle().route_cost,
                       int64_t{route.cost});
        ARCFLEET_EQUAL(int64_t{route.cost}, cheapest(*network, order));
    }
}

} // namespace arcfleet
