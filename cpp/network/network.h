// What solvers search on: tasks, their arcs, and the cost of driving between arcs.
#pragma once

#include "base/index.h"
#include "network/dijkstra.h"
#include "network/elimination.h"
#include "network/street_graph.h"
#include "network/turn_graph.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
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
//
// Terminals are the places where service starts or ends. Without turn rules they are
// nodes. With them every task has two of its own, one at each end of its link: a row of
// the distances says what it costs to drive on after arriving there along the link, a
// column what it costs to get there in order to leave along the link. So an arc's end
// is its inverse's start in both cases, and searches need not know which it is.
struct Arc {
    int32_t task;
    int32_t edge;  // the link and direction served: twice the link, plus one if reverse
    int32_t start; // terminal where service starts
    int32_t end;   // terminal where it ends
    int32_t service_cost;
    int32_t demand;
    int32_t inverse; // the same task in the other direction; -1 if one-way
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
    // Whether distances are measured at once, or only those of its parts.
    enum class Measured { whole, in_parts };

    // `places` are nodes beside the depot where a vehicle may start, end or stop over.
    // A way that there is not costs more than `least_closed_cost`. Throws
    // std::overflow_error where a distance exceeds kMaxDistance, TooSlow where that
    // will last longer than allowed.
    Network(int32_t num_nodes, const LinkArrays &links, const ServiceArrays &services,
            const Vehicle &vehicle, const TurnArrays &turns, int threads,
            std::span<const int32_t> places = {}, int32_t least_closed_cost = 0,
            const Allowance &allowance = Allowance(),
            Measured measured = Measured::whole);

    // The network of some tasks, in their order, with the distances between them and
    // the depot, and a fleet limit of its own. Its places are the depot alone.
    // Distances beyond `farthest` may be found longer, or no way at all.
    Network part(std::span<const int32_t> tasks, int32_t fleet_limit,
                 int32_t farthest = kUnreachable) const;
    bool is_measured() const { return !distance_.empty(); }

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
    // The terminals of the places, in their order.
    const std::vector<int32_t> &place_terminals() const { return place_terminal_; }

    // Distances between terminals, row by row; the depot is terminal 0.
    const std::vector<int32_t> &distances() const { return distance_; }
    const int32_t *distances_from(int32_t terminal) const {
        return distance_.data() + idx(terminal) * terminal_node_.size();
    }
    // Cost of driving from the end of one arc to the start of another.
    int32_t deadhead(int32_t from, int32_t to) const {
        return distances_from(arc(from).end)[arc(to).start];
    }

    // The least that can be driven between the starts of two arcs' services and their
    // ends, on a way that can take the place of serving both: in any route, driving
    // straight from the arc before to the arc after costs at most the deadheads to
    // `first` and from `last`, and this.
    int32_t passing_cost(int32_t first, int32_t last) const {
        const auto &turns = streets_->turns;
        if (!turns) {
            return distances_from(arc(first).start)[arc(last).end];
        }
        // Another way between the same nodes may be closed to who comes from elsewhere.
        const int32_t along = turns->edge_cost(arc(first).edge);
        return first == last
                   ? along
                   : along + deadhead(first, last) + turns->edge_cost(arc(last).edge);
    }

    // Stands in `distances` for a way that there is not, by the turn rules or because
    // of closed links: more than any detour by way of the depot. 0 where there is none
    // such.
    int32_t closed_cost() const { return closed_cost_; }
    // Whether a distance is that of a way that can be driven.
    bool is_open(int32_t distance) const {
        return closed_cost_ == 0 || distance < closed_cost_;
    }

    // Lowers a distance, for a way that is not of streets alone; `drive` does not know
    // it.
    void shorten(int32_t from, int32_t to, int32_t distance) {
        int32_t &now = distance_[idx(from) * terminal_node_.size() + idx(to)];
        now = std::min(now, distance);
    }

    // The links driven along between two terminals, in order.
    std::vector<int32_t> drive(int32_t from, int32_t to) const;
    // The costs of driving to each service of a route, and home.
    std::vector<int32_t> deadheads(std::span<const int32_t> route) const;

    // The streets without turn rules: nodes as the instance counts them.
    const StreetGraph &streets() const { return streets_->graph; }
    // What shortest ways are searched on, and where they start and end there.
    const StreetGraph &ways() const {
        return streets_->turns ? streets_->turns->graph() : streets_->graph;
    }
    int32_t way_start(int32_t terminal) const;
    std::vector<WayEnd> way_ends(int32_t terminal) const;

  private:
    // What a network shares with its parts.
    struct Streets {
        explicit Streets(StreetGraph all) : graph(std::move(all)) {}

        StreetGraph graph;
        std::optional<TurnGraph> turns;         // only with turn rules
        std::optional<Elimination> elimination; // only for parts, where it suits
    };

    Network() = default;
    int32_t terminal_of(int32_t node);
    void eliminate();
    void add_turns(const LinkArrays &links, const TurnArrays &turns);
    void price_closed_ways();

    std::shared_ptr<Streets> streets_;
    bool may_be_closed_ = false; // some way may be none
    int32_t least_closed_cost_ = 0;
    int32_t closed_cost_ = 0;
    Vehicle vehicle_{};
    std::vector<Arc> arcs_;
    std::vector<int32_t> task_arc_;
    std::vector<int32_t> terminal_node_;
    std::vector<int32_t> place_terminal_;
    std::vector<int32_t> node_terminal_; // -1 where a node is no terminal
    std::vector<int32_t> distance_;
};

} // namespace arcfleet
