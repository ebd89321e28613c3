#include "network/dijkstra.h"
#include "network/elimination.h"

#include "selfcheck/selfcheck.h"

#include <algorithm>
#include <numeric>

namespace arcfleet {

namespace {

// Bellman and Ford: slow, short, and nothing in common with Dijkstra.
std::vector<int64_t> relax_all(const RandomStreets &streets, int32_t source) {
    std::vector<int64_t> distance(static_cast<size_t>(streets.num_nodes), INT32_MAX);
    distance[static_cast<size_t>(source)] = 0;
    const auto relax = [&](int32_t from, int32_t to, int64_t cost) {
        auto &known = distance[static_cast<size_t>(to)];
        known = std::min(known, distance[static_cast<size_t>(from)] + cost);
    };
    for (int32_t round = 0; round < streets.num_nodes; ++round) {
        for (size_t i = 0; i < streets.tail.size(); ++i) {
            relax(streets.tail[i], streets.head[i], streets.cost[i]);
            if (streets.reverse_cost[i] >= 0) {
                relax(streets.head[i], streets.tail[i], streets.reverse_cost[i]);
            }
        }
    }
    return distance;
}

void check_path(const RandomStreets &streets, Dijkstra &dijkstra, int32_t source,
                int32_t target, int64_t distance) {
    int32_t place = source;
    int64_t driven = 0;
    for (const int32_t edge : dijkstra.path(source, target)) {
        const auto link = static_cast<size_t>(edge / 2);
        const bool reverse = edge % 2 == 1;
        ARCFLEET_EQUAL(place, reverse ? streets.head[link] : streets.tail[link]);
        driven += reverse ? streets.reverse_cost[link] : streets.cost[link];
        place = reverse ? streets.tail[link] : streets.head[link];
    }
    ARCFLEET_EQUAL(place, target);
    ARCFLEET_EQUAL(driven, distance);
}

void check_overflow() {
    const std::vector<int32_t> tail{0, 1}, head{1, 2};
    const std::vector<int32_t> cost{kMaxDistance, INT32_MAX}, one_way{-1, -1};
    const StreetGraph graph(3, {tail, head, cost, one_way});
    Dijkstra dijkstra(graph);
    ARCFLEET_EQUAL(dijkstra.distances(2)[0], kUnreachable);
    bool refused = false;
    try {
        dijkstra.distances(0);
    } catch (const std::overflow_error &) {
        refused = true;
    }
    ARCFLEET_EQUAL(refused, true);
}

void check_elimination(const StreetGraph &graph, const std::vector<int32_t> &nodes,
                       const std::vector<int32_t> &matrix) {
    const Elimination elimination(graph, 1000);
    ARCFLEET_EQUAL(elimination.is_complete(), true);
    std::vector<int32_t> lanes;
    std::vector<int32_t> some; // targets
    for (const int32_t node : nodes) {
        if (node % 3 != 1) {
            some.push_back(node);
        }
    }
    Elimination::Among search(elimination, nodes, some);
    const auto farthest = static_cast<int32_t>(nodes.size());
    Elimination::Among near_by(elimination, nodes, some, farthest);
    for (size_t first = 0; first < nodes.size(); first += Elimination::kLanes) {
        const size_t count = std::min(Elimination::kLanes, nodes.size() - first);
        elimination.sweep(std::span(nodes).subspan(first, count), lanes);
        search.sweep(std::span(nodes).subspan(first, count));
        near_by.sweep(std::span(nodes).subspan(first, count));
        for (size_t lane = 0; lane < count; ++lane) {
            for (const int32_t target : some) {
                const int32_t expected = lanes[elimination.row_of(target) + lane];
                const int32_t found = near_by.row(target)[lane];
                ARCFLEET_EQUAL(search.row(target)[lane], expected);
                ARCFLEET_EQUAL(found >= expected, true);
                ARCFLEET_EQUAL(expected > farthest || found == expected, true);
            }
            for (const int32_t target : nodes) {
                const int32_t found = lanes[elimination.row_of(target) + lane];
                const int32_t expected =
                    matrix[(first + lane) * nodes.size() + static_cast<size_t>(target)];
                ARCFLEET_EQUAL(found, std::min(expected, Elimination::kFar));
            }
        }
    }
}

// Streets whose paths may be too long are left to Dijkstra, who refuses them.
void check_suited() {
    const std::vector<int32_t> tail{0, 1}, head{1, 2}, one_way{-1, -1};
    const std::vector<int32_t> cost{kMaxDistance / 2, kMaxDistance / 2};
    const StreetGraph graph(3, {tail, head, cost, one_way});
    ARCFLEET_EQUAL(Elimination::suits(graph, 1000, 1), true);
    ARCFLEET_EQUAL(Elimination::suits(graph, 1000, 2), false);
    ARCFLEET_EQUAL(Elimination::suits(graph, 1, 0), false);
    // Without sources no work is worth it.
    ARCFLEET_EQUAL(Elimination(graph, 0).is_complete(), false);
}

// A square of crossings is as tangled as streets come; 300 sources are worth the work.
void check_tangled() {
    constexpr int32_t side = 50;
    std::vector<int32_t> tail, head;
    for (int32_t node = 0; node < side * side; ++node) {
        if (node % side + 1 < side) {
            tail.push_back(node);
            head.push_back(node + 1);
        }
        if (node + side < side * side) {
            tail.push_back(node);
            head.push_back(node + side);
        }
    }
    const std::vector<int32_t> cost(tail.size(), 1);
    const StreetGraph graph(side * side, {tail, head, cost, cost});
    ARCFLEET_EQUAL(Elimination(graph, 300).is_complete(), true);
    ARCFLEET_EQUAL(Elimination(graph, 1).is_complete(), false);
}

} // namespace

void check_dijkstra() {
    check_suited();
    check_tangled();
    check_overflow();
    for (uint64_t round = 0; round < 200; ++round) {
        Random random(1, round);
        const RandomStreets streets(random);
        const StreetGraph graph(streets.num_nodes, streets.links());
        Dijkstra dijkstra(graph);
        std::vector<int32_t> nodes(static_cast<size_t>(streets.num_nodes));
        std::iota(nodes.begin(), nodes.end(), 0);
        const auto matrix = distance_matrix(graph, nodes, nodes, 2);
        check_elimination(graph, nodes, matrix);
        for (const int32_t source : nodes) {
            const auto expected = relax_all(streets, source);
            for (const int32_t target : nodes) {
                const auto at =
                    static_cast<size_t>(source * streets.num_nodes + target);
                const int64_t distance = expected[static_cast<size_t>(target)];
                ARCFLEET_EQUAL(static_cast<int64_t>(matrix[at]), distance);
                check_path(streets, dijkstra, source, target, distance);
            }
        }
    }
}

} // namespace arcfleet
