#include "search/split.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>

namespace arcfleet {

namespace {

// The costs of one order, `before` positions of nonsense ahead of it.
struct Gathered {
    std::vector<int32_t> service, out, back, drive, demand;
    std::vector<uint8_t> can_turn;
    GatheredCosts costs;

    Gathered(const Network &network, const std::vector<int32_t> &order, int directions,
             size_t before) {
        const size_t rows = static_cast<size_t>(directions);
        const size_t positions = before + order.size();
        service.assign(rows * positions, -1);
        out = back = service;
        drive.assign(rows * rows * positions, -1);
        demand.assign(positions, -1);
        can_turn.assign(positions, 0);
        // A service that cannot be turned round counts as given; nobody may look.
        const auto arc_of = [&](size_t i, size_t turned) {
            const int32_t inverse = network.arc(order[i]).inverse;
            return turned && inverse >= 0 ? inverse : order[i];
        };
        for (size_t i = 0; i < order.size(); ++i) {
            const size_t at = before + i;
            demand[at] = network.arc(order[i]).demand;
            can_turn[at] = network.arc(order[i]).inverse >= 0;
            for (size_t turned = 0; turned < rows; ++turned) {
                const int32_t arc = arc_of(i, turned);
                service[turned * positions + at] = network.arc(arc).service_cost;
                out[turned * positions + at] = network.deadhead(0, arc);
                back[turned * positions + at] = network.deadhead(arc, 0);
                for (size_t last = 0; last < rows && i > 0; ++last) {
                    drive[(last * rows + turned) * positions + at] =
                        network.deadhead(arc_of(i - 1, last), arc);
                }
            }
        }
        costs = {positions,   directions,   service.data(), out.data(),
                 back.data(), drive.data(), demand.data(),  can_turn.data()};
    }
};

Plan plan_of(const std::vector<int32_t> &arcs, const std::vector<uint8_t> &starts) {
    Plan plan{arcs, {}};
    for (size_t i = 0; i < arcs.size(); ++i) {
        if (starts[i]) {
            plan.route_starts.push_back(static_cast<int32_t>(i));
        }
    }
    plan.route_starts.push_back(static_cast<int32_t>(arcs.size()));
    return plan;
}

} // namespace

// Both forms find the same plan, and it costs what they say.
void check_split() {
    Random random(11);
    Splitter splitter, other; // kept, so that what one order leaves meets the next
    for (int round = 0; round < 300; ++round) {
        RandomStreets streets(random);
        streets.vehicle.fleet_limit = static_cast<int32_t>(random.below(4));
        const auto network = streets.network();
        std::vector<int32_t> order;
        for (int32_t task = 0; task < network->num_tasks(); ++task) {
            const int32_t arc = network->task_arc(task);
            const bool turn = network->arc(arc).inverse >= 0 && random.below(2);
            order.push_back(turn ? network->arc(arc).inverse : arc);
        }
        for (size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
        }
        for (const int directions : {1, 2}) {
            std::vector<int32_t> arcs = order;
            std::vector<uint8_t> starts(order.size()), same_starts(order.size());
            std::vector<uint8_t> turned(order.size());
            const int64_t cost =
                splitter.split(*network, arcs, starts, directions == 2);
            const Gathered gathered(*network, order, directions, random.below(3));
            const int64_t same =
                other.split(gathered.costs, gathered.costs.positions - order.size(),
                            RouteRules(*network), turned, same_starts);
            ARCFLEET_EQUAL(same, cost);
            if (cost < 0) {
                continue;
            }
            const Plan plan = plan_of(arcs, starts);
            check_plan(*network, plan);
            ARCFLEET_EQUAL(plan_cost(*network, plan), cost);
            ARCFLEET_EQUAL(starts == same_starts, true);
            for (size_t i = 0; i < order.size(); ++i) {
                const int32_t arc =
                    turned[i] ? network->arc(order[i]).inverse : order[i];
                ARCFLEET_EQUAL(arc, arcs[i]);
            }
        }
    }
}

} // namespace arcfleet
