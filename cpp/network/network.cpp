#include "network/network.h"

#include <algorithm>
#include <stdexcept>

namespace arcfleet {

Network::Network(int32_t num_nodes, const LinkArrays &links,
                 const ServiceArrays &services, const Vehicle &vehicle,
                 const TurnArrays &turns, int threads, std::span<const int32_t> places,
                 int32_t least_closed_cost, const Allowance &allowance)
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
    if (least_closed_cost < 0 || least_closed_cost > kMaxDistance) {
        throw std::invalid_argument("a closed way costs from 0 to 2^29 - 1");
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
        int32_t tail = 0;
        int32_t head = 0;
        if (turns.any()) {
            tail = num_terminals();
            head = tail + 1;
            terminal_node_.push_back(links.tail[i]);
            terminal_node_.push_back(links.head[i]);
        } else {
            tail = terminal_of(links.tail[i]);
            head = terminal_of(links.head[i]);
        }
        task_arc_.push_back(first);
        arcs_.push_back({task, edge, tail, head, services.service_cost[i],
                         services.demand[i], two_way ? first + 1 : -1});
        if (two_way) {
            arcs_.push_back({task, edge + 1, head, tail,
                             services.reverse_service_cost[i], services.demand[i],
                             first});
        }
    }
    for (const int32_t node : places) {
        if (node < 0 || node >= num_nodes) {
            throw std::invalid_argument("a place is no known node");
        }
        if (!turns.any() || node == vehicle.depot) {
            place_terminal_.push_back(terminal_of(node));
        } else {
            place_terminal_.push_back(num_terminals());
            terminal_node_.push_back(node);
        }
    }
    if (turns.any()) {
        measure_by_turns(links, turns, threads, allowance);
    } else {
        distance_ =
            distance_matrix(graph_, terminal_node_, terminal_node_, threads, allowance);
    }
    // Elsewhere a way that there is not is for callers to find.
    if (turns.any() || !links.closed.empty() || least_closed_cost > 0) {
        price_closed_ways(least_closed_cost);
    }
}

void Network::measure_by_turns(const LinkArrays &links, const TurnArrays &turns,
                               int threads, const Allowance &allowance) {
    std::vector<TurnPlace> places{{terminal_node_[0], -1, -1}};
    for (const int32_t first : task_arc_) {
        const Arc &there = arc(first);
        // What is one-way is never left at its head, nor arrived at at its tail, along
        // itself: there the place stands for the node.
        const int32_t back = there.inverse < 0 ? -1 : there.edge + 1;
        places.push_back({terminal_node_[idx(there.start)], back, there.edge});
        places.push_back({terminal_node_[idx(there.end)], there.edge, back});
    }
    for (size_t terminal = places.size(); terminal < terminal_node_.size();
         ++terminal) {
        places.push_back({terminal_node_[terminal], -1, -1});
    }
    LinkArrays all = links;
    all.closed = {};
    turn_graph_.emplace(StreetGraph(graph_.num_nodes(), all), links, turns, places);
    distance_ = turn_graph_->distance_matrix(threads, allowance);
}

void Network::price_closed_ways(int32_t least) {
    int64_t longest = 0;
    bool any_closed = false;
    for (const int32_t distance : distance_) {
        if (distance == kUnreachable) {
            any_closed = true;
        } else {
            longest = std::max<int64_t>(longest, distance);
        }
    }
    if (any_closed) {
        // More than serving every task by a route of its own, where that leaves
        // searches room to add distances up; always more than any open way.
        const int64_t alone = 2 * longest + vehicle_.route_cost;
        const int64_t dear = std::min<int64_t>(kMaxDistance / 4, num_tasks() * alone);
        closed_cost_ =
            static_cast<int32_t>(std::max({dear, longest, int64_t{least}}) + 1);
        std::replace(distance_.begin(), distance_.end(), kUnreachable, closed_cost_);
    }
}

int32_t Network::terminal_of(int32_t node) {
    int32_t &terminal = node_terminal_[idx(node)];
    if (terminal < 0) {
        terminal = static_cast<int32_t>(terminal_node_.size());
        terminal_node_.push_back(node);
    }
    return terminal;
}

std::vector<int32_t> Network::drive(int32_t from, int32_t to) const {
    if (turn_graph_) {
        return turn_graph_->path(from, to, distances_from(from)[to]);
    }
    Dijkstra dijkstra(graph_);
    return dijkstra.path(terminal_node_[idx(from)], terminal_node_[idx(to)]);
}

std::vector<StreetStep> Network::street_path(std::span<const int32_t> route) const {
    Dijkstra dijkstra(graph_);
    std::vector<StreetStep> steps;
    const auto drive = [&](int32_t from, int32_t to) {
        if (turn_graph_) {
            const int32_t cost = deadhead(from, to);
            for (const int32_t edge :
                 turn_graph_->path(arc(from).end, arc(to).start, cost)) {
                steps.push_back({edge, false});
            }
            return;
        }
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
