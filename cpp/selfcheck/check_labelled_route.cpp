#include "search/labelled_route.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>

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
                legal = legal && network.arc(next).twin >= 0;
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

} // namespace

void check_labelled_route() {
    for (uint64_t round = 0; round < 300; ++round) {
        Random random(3, round);
        RandomStreets streets(random);
        if (round % 2 == 1) {
            streets.make_reversible();
        }
        const auto network = streets.network();
        const TaskTable tasks(*network);
        LabelledRoute route;
        std::vector<int32_t> order;
        for (int32_t task = 0; task < std::min(7, tasks.num_tasks()); ++task) {
            const auto gap = random.below(static_cast<uint32_t>(order.size()) + 1);
            // Every gap's cost as evaluated is the cost after trying all directions.
            const Insertion insertion(tasks, task);
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
            route.refresh(tasks);
        }
        Plan plan;
        route.append_arcs(tasks, plan.arcs);
        plan.route_starts = {0, static_cast<int32_t>(plan.arcs.size())};
        ARCFLEET_EQUAL(network->cost(plan) - network->rules().route_cost,
                       int64_t{route.cost});
        ARCFLEET_EQUAL(int64_t{route.cost}, cheapest(*network, order));
    }
}

} // namespace arcfleet
