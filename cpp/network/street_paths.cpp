#include "network/street_paths.h"

#include <limits>
#include <stdexcept>

namespace arcfleet {

namespace {

// The graph with every edge turned round, and a node more, from which driving starts at
// the ends of ways.
StreetGraph turned_round(const StreetGraph &graph, std::span<const WayEnd> ends) {
    const int32_t n = graph.num_nodes();
    std::vector<int32_t> offsets(idx(n) + 2, 0);
    for (int32_t node = 0; node < n; ++node) {
        for (const DirectedEdge &edge : graph.leaving(node)) {
            ++offsets[idx(edge.target) + 1];
        }
    }
    offsets[idx(n) + 1] = static_cast<int32_t>(ends.size());
    for (size_t i = 1; i < offsets.size(); ++i) {
        offsets[i] += offsets[i - 1];
    }
    std::vector<DirectedEdge> edges(idx(offsets.back()));
    std::vector<int32_t> next(offsets.begin(), offsets.end() - 1);
    const auto put = [&](int32_t node, const DirectedEdge &edge) {
        edges[idx(next[idx(node)]++)] = edge;
    };
    for (int32_t node = 0; node < n; ++node) {
        for (const DirectedEdge &edge : graph.leaving(node)) {
            put(edge.target, {node, edge.cost, edge.edge});
        }
    }
    for (const WayEnd &end : ends) {
        put(n, {end.node, end.addition, -1});
    }
    return {std::move(offsets), std::move(edges)};
}

} // namespace

StreetPaths::StreetPaths(const Network &network)
    : network_(network), from_depot_(network.ways()), between_(network.ways()) {
    from_depot_.search(network.way_start(0), {});
    const StreetGraph home = turned_round(network.ways(), network.way_ends(0));
    Dijkstra to_depot(home);
    to_depot.search(home.num_nodes() - 1, {});
    const auto distances = to_depot.found();
    to_depot_.assign(distances.begin(), distances.end() - 1);
}

RoutePath StreetPaths::of(std::span<const int32_t> route) {
    RoutePath path;
    int32_t last = 0;
    for (const int32_t next : route) {
        if (next <= 0 || idx(next) >= network_.arcs().size()) {
            throw std::invalid_argument("unknown arc");
        }
        drive(last, next, path);
        path.steps.push_back({network_.arc(next).edge, true});
        last = next;
    }
    drive(last, 0, path);
    return path;
}

void StreetPaths::drive(int32_t from, int32_t to, RoutePath &path) {
    const int32_t start = network_.way_start(network_.arc(from).end);
    const std::vector<WayEnd> ends = network_.way_ends(network_.arc(to).start);
    Dijkstra *search = &between_;
    int32_t cost = 0;
    if (from == 0) {
        search = &from_depot_;
        cost = from_depot_.cost_of(ends);
    } else if (to == 0) {
        cost = to_depot_[idx(start)];
        between_.follow(start, to_depot_);
    } else {
        cost = between_.search(start, ends);
    }
    for (const int32_t edge : search->path_to(ends, cost)) {
        path.steps.push_back({edge, false});
    }
    path.deadheads.push_back(cost);
}

} // namespace arcfleet
