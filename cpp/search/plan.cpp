#include "search/plan.h"

#include "search/rules.h"

namespace arcfleet {

int64_t plan_cost(const Network &network, const Plan &plan) {
    const RouteRules rules(network);
    int64_t total = static_cast<int64_t>(plan.num_routes()) * rules.route_cost();
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        int32_t last = 0;
        for (const int32_t next : plan.route(route)) {
            total +=
                int64_t{network.deadhead(last, next)} + network.arc(next).service_cost;
            last = next;
        }
        total += network.deadhead(last, 0);
    }
    return total;
}

Plan one_route_per_task(const Network &network) {
    Plan plan;
    plan.route_starts.push_back(0);
    for (int32_t task = 0; task < network.num_tasks(); ++task) {
        plan.arcs.push_back(network.task_arc(task));
        plan.route_starts.push_back(task + 1);
    }
    return plan;
}

} // namespace arcfleet
