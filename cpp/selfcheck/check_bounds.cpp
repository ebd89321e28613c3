#include "bounds/max_flow.h"
#include "bounds/separator.h"
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

} // namespace

void check_bounds() {
    Random random(23);
    for (int round = 0; round < 300; ++round) {
        check_flow(random);
        check_separator(random);
    }
}

} // namespace arcfleet
