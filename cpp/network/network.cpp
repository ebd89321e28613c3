#include "network/network.h"

#include <stdexcept>

namespace arcfleet {

Network::Network(int32_t num_nodes, const LinkArrays &links,
                 const ServiceArrays &services, const Vehicle &vehicle, int threads)
    : graph_(num_nodes, links), vehicle_(vehicle), node_terminal_(idx(num_nodes), -1) {
    const size_t num_links = links.tail.size();
    if (services.required.size() != num_links || services.demand.size() != num_links ||
        services.service_cost.size() != num_links ||
        services.reverse_service_cost.size() != num_links) {
        throw std::invalid_argument("link arrays differ in length");
    }
    if (vehicle.depot < 0 || vehicle.depot >= num_nodes) {
        throw std::invalid_argument("the depot is no known node");
    }
    const int32_t depot = terminal_of(vehicle.depot);
    arcs_.push_back({-1, -1, depot, depot, 0, 0, -1});
    for (size_t i = 0; i < num_links; ++i) {
        if (!services.required[i]) {
            continue;
        }
        const auto task = static_cast<int32_t>(task_arc_.size());
        const auto first = static_cast<int32_t>(arcs_.size());
        const bool two_way = links.reverse_cost[i] >= 0;
        const auto edge = static_cast<int32_t>(2 * i);
        const int32_t tail = terminal_of(links.tail[i]);
        const int32_t head = terminal_of(links.head[i]);
        task_arc_.push_back(first);
        arcs_.push_back({task, edge, tail, head, services.service_cost[i],
                         services.demand[i], two_way ? first + 1 : -1});
        if (two_way) {
            arcs_.push_back({task, edge + 1, head, tail,
                             services.reverse_service_cost[i], services.demand[i],
                             first});
        }
    }
    distance_ = distance_matrix(graph_, terminal_node_, terminal_node_, threads);
}

int32_t Network::terminal_of(int32_t node) {
    int32_t &terminal = node_terminal_[idx(node)];
    if (terminal < 0) {
        terminal = static_cast<int32_t>(terminal_node_.size());
        terminal_node_.push_back(node);
    }
    return terminal;
}

std::vector<StreetStep> Network::street_path(std::span<const int32_t> route) const {
    Dijkstra dijkstra(graph_);
    std::vector<StreetStep> steps;
    const auto drive = [&](int32_t from, int32_t to) {
        const int32_t source = terminal_node_[idx(arc(from).end)];
        const int32_t target = terminal_node_[idx(arc(to).start)];
        for (const int32_t edge : dijkstra.path(source, target)) {
            steps.push_back({edge, false});
        }
    };
    int32_t last = 0;
    for (const int32_t next : route) {
        if (next <= 0 || idx(next) >= arcs_.size()) {
            throw std::invalid_argument("unknown arc");
        }
        drive(last, next);
        steps.push_back({arc(next).edge, true});
        last = next;
    }
    drive(last, 0);
    return steps;
}

} // namespace arcfleet
