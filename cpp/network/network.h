// What solvers search on: tasks, their arcs, and the cost of driving between arcs.
#pragma once

#include "base/index.h"
#include "network/dijkstra.h"
#include "network/street_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// What must be served, as flat arrays in the order of the instance's links.
// `reverse_service_cost` is read only where the link is two-way.
struct ServiceArrays {
    std::span<const uint8_t> required;
    std::span<const int32_t> demand;
    std::span<const int32_t> service_cost;
    std::span<const int32_t> reverse_service_cost;
};

// A task in one direction. Arc 0 is the depot: task -1, no cost, no demand.
struct Arc {
    int32_t task;
    int32_t edge;  // the link and direction served: twice the link, plus one if reverse
    int32_t start; // terminal where service starts
    int32_t end;   // terminal where it ends
    int32_t service_cost;
    int32_t demand;
    int32_t inverse; // the same task in the other direction; -1 if one-way
};

// One link driven along: `edge` as in DirectedEdge, and whether it is served this time.
struct StreetStep {
    int32_t edge;
    bool serves;
};

// The vehicles as the instance gives them; search/rules.h says what that means.
struct Vehicle {
    int32_t depot;
    int32_t capacity;
    int32_t route_cost;
    int32_t fleet_limit; // 0 means any number of routes
};

class Network {
  public:
    Network(int32_t num_nodes, const LinkArrays &links, const ServiceArrays &services,
            const Vehicle &vehicle, int threads);

    int32_t num_tasks() const { return static_cast<int32_t>(task_arc_.size()); }
    int32_t num_terminals() const {
        return static_cast<int32_t>(terminal_node_.size());
    }

    const Vehicle &vehicle() const { return vehicle_; }
    const std::vector<Arc> &arcs() const { return arcs_; }
    const Arc &arc(int32_t a) const { return arcs_[idx(a)]; }
    // The first arc of a task; a two-way task's second arc follows it.
    int32_t task_arc(int32_t task) const { return task_arc_[idx(task)]; }
    const std::vector<int32_t> &terminal_nodes() const { return terminal_node_; }

    // Distances between terminals, row by row; the depot is terminal 0.
    const std::vector<int32_t> &distances() const { return distance_; }
    const int32_t *distances_from(int32_t terminal) const {
        return distance_.data() + idx(terminal) * terminal_node_.size();
    }
    // Cost of driving from the end of one arc to the start of another.
    int32_t deadhead(int32_t from, int32_t to) const {
        return distances_from(arc(from).end)[arc(to).start];
    }

    // Every link driven along by a route, from depot to depot, services included.
    std::vector<StreetStep> street_path(std::span<const int32_t> route) const;

  private:
    int32_t terminal_of(int32_t node);

    StreetGraph graph_;
    Vehicle vehicle_;
    std::vector<Arc> arcs_;
    std::vector<int32_t> task_arc_;
    std::vector<int32_t> terminal_node_;
    std::vector<int32_t> node_terminal_; // -1 where a node is no terminal
    std::vector<int32_t> distance_;
};

} // namespace arcfleet
