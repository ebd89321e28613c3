#include "bounds/max_flow.h"
#include "bounds/separator.h"
#include "bounds/trip_pricer.h"
#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <map>

namespace arcfleet {

namespace {

struct Edge {
    int32_t tail, head;
    int64_t capacity;
};

// The value of the cut around the nodes whose bits are set.
int64_t cut_of(const std::vector<Edge> &edges, uint32_t inside) {
    int64_t value = 0;
    for (const Edge &edge : edges) {
        if ((inside >> edge.tail & 1U) != (inside >> edge.head & 1U)) {
            value += edge.capacity;
        }
    }
    return value;
}

// A maximum flow is as large as the least of all cuts, and its sides are such cuts.
void check_flow(Random &random) {
    const auto nodes = static_cast<int32_t>(2 + random.below(7));
    std::vector<Edge> edges;
    MaxFlow flow(nodes);
    for (uint32_t i = 0; i < 2 + random.below(14); ++i) {
        const auto most = static_cast<uint32_t>(nodes);
        const Edge edge{static_cast<int32_t>(random.below(most)),
                        static_cast<int32_t>(random.below(most)),
                        static_cast<int64_t>(random.below(9))};
        if (edge.tail != edge.head) {
            edges.push_back(edge);
            flow.add_edge(edge.tail, edge.head, edge.capacity, edge.capacity);
        }
    }
    flow.finish();
    for (int32_t sink = 1; sink < nodes; ++sink) {
        int64_t least = MaxFlow::kEndless;
        for (uint32_t inside = 0; inside < 1U << nodes; ++inside) {
            if ((inside & 1U) && !(inside >> sink & 1U)) {
                least = std::min(least, cut_of(edges, inside));
            }
        }
        ARCFLEET_EQUAL(flow.run(0, sink), least);
        uint32_t source_side = 0, sink_side = 0;
        std::vector<uint8_t> side;
        flow.find_sink_side(side);
        for (int32_t node = 0; node < nodes; ++node) {
            source_side |= static_cast<uint32_t>(flow.on_source_side(node)) << node;
            sink_side |= static_cast<uint32_t>(side[idx(node)]) << node;
        }
        ARCFLEET_EQUAL(cut_of(edges, source_side), least);
        ARCFLEET_EQUAL(cut_of(edges, sink_side), least);
    }
}

// Every row of the pool was violated when it was found.
void check_separator(Random &random) {
    RandomStreets streets(random);
    std::vector<int32_t> tail, head, pair_tail, pair_head;
    std::vector<int64_t> demand;
    std::map<std::pair<int32_t, int32_t>, int> pairs;
    for (size_t link = 0; link < streets.tail.size(); ++link) {
        if (streets.required[link]) {
            tail.push_back(streets.tail[link]);
            head.push_back(streets.head[link]);
            demand.push_back(streets.demand[link]);
        }
        if (streets.tail[link] != streets.head[link]) {
            pairs[std::minmax(streets.tail[link], streets.head[link])] = 1;
        }
    }
    std::vector<double> deadheads;
    for (const auto &[ends, one] : pairs) {
        pair_tail.push_back(ends.first);
        pair_head.push_back(ends.second);
        deadheads.push_back(0.25 * random.below(6));
    }
    std::vector<uint8_t> outside(idx(streets.num_nodes), 0);
    outside[0] = 1;
    Separator separator(streets.num_nodes, {tail, head, demand}, pair_tail, pair_head,
                        outside, streets.vehicle.capacity);
    int32_t found = separator.find_components(deadheads, 50);
    found += separator.find_odd(deadheads, 50);
    found += separator.find_by_flow(deadheads, 1, 10, 50);
    found += separator.find_by_growth(deadheads, 1, 20, false, 50);
    found += separator.find_by_growth(deadheads, 2, 20, true, 50);
    ARCFLEET_EQUAL(separator.num_rows(), found);
    for (const double violation : separator.violations(deadheads)) {
        ARCFLEET_EQUAL(violation > 0.004, true);
    }
    separator.find_first();
    separator.cancel();
    ARCFLEET_EQUAL(separator.find_by_growth(deadheads, 3, 20, true, 50), 0);
}

// A few tasks on a random network, at random prices, and the trips among them.
struct PricedTrips {
    RandomStreets streets;
    std::vector<int32_t> arc_tail, arc_head, arc_column;
    std::vector<int32_t> side_tail, side_head, side_task;
    std::vector<int64_t> demand, columns, sides, costs;
    std::vector<uint8_t> outside;
    std::vector<std::vector<int64_t>> distance; // at the prices

    explicit PricedTrips(Random &random) : streets(random) {
        const auto draw = [&](int32_t least, int32_t most) {
            return least + static_cast<int32_t>(
                               random.below(static_cast<uint32_t>(most - least + 1)));
        };
        const auto add_arc = [&](int32_t tail, int32_t head, int32_t cost) {
            arc_tail.push_back(tail);
            arc_head.push_back(head);
            // Some are at no price; some columns have two arcs.
            const bool is_free = draw(0, 9) == 0;
            arc_column.push_back(is_free ? -1 : static_cast<int32_t>(costs.size()));
            costs.push_back(cost);
            columns.push_back(draw(0, 30));
        };
        for (size_t link = 0; link < streets.tail.size(); ++link) {
            const int32_t u = streets.tail[link], v = streets.head[link];
            add_arc(u, v, streets.cost[link]);
            if (streets.reverse_cost[link] >= 0) {
                add_arc(v, u, streets.reverse_cost[link]);
            }
            if (demand.size() < 5 && draw(0, 2) == 0) {
                const auto task = static_cast<int32_t>(demand.size());
                demand.push_back(draw(1, 12));
                const auto add_side = [&](int32_t tail, int32_t head) {
                    side_tail.push_back(tail);
                    side_head.push_back(head);
                    side_task.push_back(task);
                    sides.push_back(draw(-60, 10));
                };
                add_side(u, v);
                if (u != v && streets.reverse_cost[link] >= 0) {
                    add_side(v, u);
                }
            }
        }
        outside.assign(idx(streets.num_nodes), 0);
        outside[0] = 1;
        outside.back() = 1;
        const size_t nodes = idx(streets.num_nodes);
        distance.assign(nodes, std::vector<int64_t>(nodes, 1'000'000));
        for (size_t node = 0; node < nodes; ++node) {
            distance[node][node] = 0;
        }
        for (size_t arc = 0; arc < arc_tail.size(); ++arc) {
            int64_t &least = distance[idx(arc_tail[arc])][idx(arc_head[arc])];
            const int32_t column = arc_column[arc];
            least = std::min(least, column < 0 ? 0 : columns[idx(column)]);
        }
        for (size_t k = 0; k < nodes; ++k) {
            for (size_t a = 0; a < nodes; ++a) {
                for (size_t b = 0; b < nodes; ++b) {
                    distance[a][b] =
                        std::min(distance[a][b], distance[a][k] + distance[k][b]);
                }
            }
        }
    }

    int64_t from_outside(int32_t node) const {
        return std::min(distance[0][idx(node)], distance.back()[idx(node)]);
    }
    int64_t to_outside(int32_t node) const {
        return std::min(distance[idx(node)][0], distance[idx(node)].back());
    }
    // Least reduced cost of all that go on from a side, no task twice.
    int64_t least_after(size_t side, uint32_t served, int64_t load,
                        int64_t cost) const {
        served |= 1U << side_task[side];
        load += demand[idx(side_task[side])];
        if (load > streets.vehicle.capacity) {
            return 1'000'000;
        }
        cost += sides[side];
        int64_t least = cost + to_outside(side_head[side]);
        for (size_t next = 0; next < sides.size(); ++next) {
            if (!(served >> side_task[next] & 1U)) {
                const int64_t way =
                    distance[idx(side_head[side])][idx(side_tail[next])];
                least = std::min(least, least_after(next, served, load, cost + way));
            }
        }
        return least;
    }
};

// The trip of least reduced cost is that of brute force, or lower without memory; every
// trip that is kept costs what its drives and services cost.
void check_trips(Random &random) {
    const PricedTrips all(random);
    int64_t least = 0;
    for (size_t side = 0; side < all.sides.size(); ++side) {
        least = std::min(
            least, all.least_after(side, 0, 0, all.from_outside(all.side_tail[side])));
    }
    for (const int32_t num_near : {static_cast<int32_t>(all.demand.size()), 1}) {
        TripPricer pricer(
            all.streets.num_nodes, {all.arc_tail, all.arc_head, all.arc_column},
            {all.side_tail, all.side_head, all.side_task}, all.demand, all.outside,
            all.streets.vehicle.capacity, all.costs, num_near);
        ARCFLEET_EQUAL(pricer.price(all.columns, all.sides, 0, 1'000'000), true);
        const auto &costs = pricer.trip_costs();
        const int64_t found = costs.empty() ? 0 : costs.front();
        if (num_near > 1) {
            ARCFLEET_EQUAL(found, least);
        }
        ARCFLEET_EQUAL(found <= least, true);
        for (size_t trip = 0; trip < costs.size(); ++trip) {
            int64_t cost = 0, load = 0;
            for (int64_t i = pricer.trip_starts()[trip];
                 i < pricer.trip_starts()[trip + 1]; ++i) {
                const auto side = idx(pricer.trip_sides()[idx(i)]);
                cost += all.sides[side];
                load += all.demand[idx(all.side_task[side])];
            }
            for (int64_t i = pricer.drive_starts()[trip];
                 i < pricer.drive_starts()[trip + 1]; ++i) {
                cost += all.columns[idx(pricer.drives()[idx(i)])];
            }
            ARCFLEET_EQUAL(cost, costs[trip]);
            ARCFLEET_EQUAL(load <= all.streets.vehicle.capacity, true);
        }
        pricer.find_single(all.columns);
        ARCFLEET_EQUAL(pricer.trip_sides().size(), all.demand.size());
        // With one way to each load and side, trips may be missed, none is invented.
        pricer.price(all.columns, all.sides, 0, 1);
        ARCFLEET_EQUAL(
            pricer.trip_costs().empty() || pricer.trip_costs().front() >= found, true);
    }
}

} // namespace

void check_bounds() {
    Random random(23);
    for (int round = 0; round < 300; ++round) {
        check_flow(random);
        check_separator(random);
        check_trips(random);
    }
}

} // namespace arcfleet
