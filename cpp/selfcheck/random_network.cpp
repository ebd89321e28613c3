#include "selfcheck/selfcheck.h"

namespace arcfleet {

RandomStreets::RandomStreets(Random &random) {
    const auto draw = [&](int32_t least, int32_t most) {
        return least + static_cast<int32_t>(
                           random.below(static_cast<uint32_t>(most - least + 1)));
    };
    num_nodes = draw(1, 25);
    const auto add = [&](int32_t from, int32_t to, bool one_way) {
        const int32_t there = draw(0, 30);
        const int32_t back = draw(0, 1) ? there : draw(0, 30);
        tail.push_back(from);
        head.push_back(to);
        cost.push_back(there);
        reverse_cost.push_back(one_way ? -1 : back);
        const bool needs_service = draw(0, 3) > 0;
        required.push_back(needs_service);
        demand.push_back(needs_service ? draw(0, 12) : 0);
        service_cost.push_back(draw(0, 40));
        reverse_service_cost.push_back(draw(0, 40));
    };
    for (int32_t node = 0; node < num_nodes; ++node) {
        add(node, (node + 1) % num_nodes, false);
    }
    for (int32_t chord = draw(0, 40); chord > 0; --chord) {
        add(draw(0, num_nodes - 1), draw(0, num_nodes - 1), draw(0, 1) == 1);
    }
    vehicle = {draw(0, num_nodes - 1), draw(12, 60), draw(0, 1) * draw(0, 20), 0};
    if (draw(0, 3) == 0) {
        draw_turns(random);
    }
}

void RandomStreets::draw_turns(Random &random) {
    u_turns = static_cast<UTurns>(random.below(3));
    u_turn_penalty = static_cast<int32_t>(random.below(2) * random.below(20));
    const auto share = random.below(40); // of all turns, in percent
    const auto num_edges = static_cast<int32_t>(2 * tail.size());
    const auto exists = [&](int32_t edge) {
        return edge % 2 == 0 || reverse_cost[idx(edge / 2)] >= 0;
    };
    for (int32_t in = 0; in < num_edges; ++in) {
        const int32_t node = in % 2 == 0 ? head[idx(in / 2)] : tail[idx(in / 2)];
        for (int32_t out = 0; out < num_edges; ++out) {
            const int32_t from = out % 2 == 0 ? tail[idx(out / 2)] : head[idx(out / 2)];
            if (exists(in) && exists(out) && from == node &&
                random.below(100) < share) {
                turn_in.push_back(in);
                turn_out.push_back(out);
                turn_penalty.push_back(static_cast<int32_t>(random.below(30)) - 10);
            }
        }
    }
}

void RandomStreets::clear_turns() {
    turn_in.clear();
    turn_out.clear();
    turn_penalty.clear();
    u_turns = UTurns::allowed;
    u_turn_penalty = 0;
}

void RandomStreets::vary(uint64_t round) {
    if (round % 3 == 1) {
        make_reversible();
    } else if (round % 3 == 2) {
        make_symmetric();
    }
}

void RandomStreets::make_reversible() {
    clear_turns();
    reverse_cost = cost;
    reverse_service_cost = service_cost;
}

void RandomStreets::make_symmetric() {
    clear_turns();
    const size_t links = cost.size();
    for (size_t link = 0; link < links; ++link) {
        if (reverse_cost[link] >= 0) {
            reverse_cost[link] = cost[link];
            continue;
        }
        tail.push_back(tail[link]);
        head.push_back(head[link]);
        cost.push_back(cost[link]);
        reverse_cost.push_back(cost[link]);
        required.push_back(0);
        demand.push_back(0);
        service_cost.push_back(0);
        reverse_service_cost.push_back(0);
    }
}

std::unique_ptr<Network> RandomStreets::network(int threads,
                                                Network::Measured measured) const {
    const ServiceArrays services{required, demand, service_cost, reverse_service_cost};
    return std::make_unique<Network>(num_nodes, links(), services, vehicle, turns(),
                                     threads, std::span<const int32_t>(), 0,
                                     Allowance(), measured);
}

void check_plan(const Network &network, const Plan &plan) {
    std::vector<int32_t> times_served(static_cast<size_t>(network.num_tasks()), 0);
    ARCFLEET_EQUAL(plan.route_starts.front(), 0);
    ARCFLEET_EQUAL(plan.route_starts.back(), static_cast<int32_t>(plan.arcs.size()));
    for (size_t route = 0; route < plan.num_routes(); ++route) {
        int64_t load = 0;
        for (int32_t i = plan.route_starts[route]; i < plan.route_starts[route + 1];
             ++i) {
            const Arc &arc = network.arc(plan.arcs[static_cast<size_t>(i)]);
            ++times_served[static_cast<size_t>(arc.task)];
            load += arc.demand;
        }
        ARCFLEET_EQUAL(load <= network.vehicle().capacity, true);
        ARCFLEET_EQUAL(plan.route_starts[route] < plan.route_starts[route + 1], true);
    }
    for (const int32_t times : times_served) {
        ARCFLEET_EQUAL(times, 1);
    }
}

} // namespace arcfleet
