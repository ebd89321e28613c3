#include "network/network.h"

#include <algorithm>
#include <stdexcept>

namespace arcfleet {

Network::Network(int32_t num_nodes, const LinkArrays &links,
                 const ServiceArrays &services, const Vehicle &vehicle,
                 const TurnArrays &turns, int threads, std::span<const int32_t> places,
                 int32_t least_closed_cost, const Allowance &allowance,
                 Measured measured)
    : streets_(std::make_shared<Streets>(StreetGraph(num_nodes, links))),
      least_closed_cost_(least_closed_cost), vehicle_(vehicle),
      node_terminal_(idx(num_nodes), -1) {
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
    // Elsewhere a way that there is not is for callers to find.
    may_be_closed_ = turns.any() || !links.closed.empty() || least_closed_cost > 0;
    if (turns.any()) {
        add_turns(links, turns);
    }
    if (measured == Measured::in_parts) {
        eliminate();
        return;
    }
    distance_ = turns.any() ? streets_->turns->distance_matrix(threads, allowance)
                            : distance_matrix(streets_->graph, terminal_node_,
                                              terminal_node_, threads, allowance);
    price_closed_ways();
}

void Network::eliminate() {
    const auto &turns = streets_->turns;
    const StreetGraph &graph = turns ? turns->graph() : streets_->graph;
    const size_t sources = terminal_node_.size();
    if (Elimination::suits(graph, sources, turns ? turns->dearest_turn() : 0)) {
        streets_->elimination.emplace(graph, sources);
        if (!streets_->elimination->is_complete()) {
            streets_->elimination.reset();
        }
    }
}

Network Network::part(std::span<const int32_t> tasks, int32_t fleet_limit,
                      int32_t farthest) const {
    Network part;
    part.streets_ = streets_;
    part.may_be_closed_ = may_be_closed_;
    part.least_closed_cost_ = least_closed_cost_;
    part.vehicle_ = vehicle_;
    part.vehicle_.fleet_limit = fleet_limit;
    std::vector<int32_t> terminals; // of the whole
    std::vector<int32_t> numbers(terminal_node_.size(), -1);
    const auto number_of = [&](int32_t terminal) {
        int32_t &number = numbers[idx(terminal)];
        if (number < 0) {
            number = static_cast<int32_t>(terminals.size());
            terminals.push_back(terminal);
            part.terminal_node_.push_back(terminal_node_[idx(terminal)]);
        }
        return number;
    };
    number_of(0);
    part.arcs_.push_back(arcs_[0]);
    for (const int32_t task : tasks) {
        const auto first = static_cast<int32_t>(part.arcs_.size());
        Arc there = arc(task_arc(task));
        const int32_t inverse = there.inverse;
        there.task = static_cast<int32_t>(part.task_arc_.size());
        there.start = number_of(there.start);
        there.end = number_of(there.end);
        there.inverse = inverse < 0 ? -1 : first + 1;
        part.task_arc_.push_back(first);
        part.arcs_.push_back(there);
        if (inverse >= 0) {
            Arc back = arc(inverse);
            back.task = there.task;
            back.start = there.end;
            back.end = there.start;
            back.inverse = first;
            part.arcs_.push_back(back);
        }
    }
    const Elimination *elimination =
        streets_->elimination ? &*streets_->elimination : nullptr;
    part.distance_ =
        streets_->turns
            ? streets_->turns->distances_among(terminals, elimination, farthest)
            : distances_among(streets_->graph, part.terminal_node_, elimination,
                              farthest);
    part.price_closed_ways();
    return part;
}

void Network::add_turns(const LinkArrays &links, const TurnArrays &turns) {
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
    streets_->turns.emplace(StreetGraph(streets_->graph.num_nodes(), all), links, turns,
                            places);
}

void Network::price_closed_ways() {
    if (!may_be_closed_) {
        return;
    }
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
        closed_cost_ = static_cast<int32_t>(
            std::max({dear, longest, int64_t{least_closed_cost_}}) + 1);
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

int32_t Network::way_start(int32_t terminal) const {
    return streets_->turns ? streets_->turns->start_of(terminal)
                           : terminal_node_[idx(terminal)];
}

std::vector<WayEnd> Network::way_ends(int32_t terminal) const {
    return streets_->turns ? streets_->turns->ends_of(terminal)
                           : std::vector<WayEnd>{{terminal_node_[idx(terminal)], 0}};
}

std::vector<int32_t> Network::drive(int32_t from, int32_t to) const {
    Dijkstra search(ways());
    const std::vector<WayEnd> ends = way_ends(to);
    const int32_t cost = search.search(way_start(from), ends);
    return search.path_to(ends, cost);
}

std::vector<int32_t> Network::deadheads(std::span<const int32_t> route) const {
    std::vector<int32_t> costs;
    int32_t last = 0;
    for (const int32_t next : route) {
        costs.push_back(deadhead(last, next));
        last = next;
    }
    costs.push_back(deadhead(last, 0));
    return costs;
}

} // namespace arcfleet
