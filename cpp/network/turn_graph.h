// Driving under turn rules: shortest ways over directed edges instead of nodes, because
// what a vehicle may do at a node depends on the edge it came along.
#pragma once

#include "base/allowance.h"
#include "network/dijkstra.h"
#include "network/elimination.h"
#include "network/street_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// Where a vehicle may leave a node by the link that it came along.
enum class UTurns : int32_t { allowed, dead_ends, forbidden };

// The turn rules of an instance. A turn is named by the edges driven before and after
// it, as in DirectedEdge; a negative penalty means that it is forbidden.
struct TurnArrays {
    std::span<const int32_t> edge_in;
    std::span<const int32_t> edge_out;
    std::span<const int32_t> penalty;
    UTurns u_turns = UTurns::allowed;
    int32_t u_turn_penalty = 0;

    bool any() const {
        return !edge_in.empty() || u_turns != UTurns::allowed || u_turn_penalty != 0;
    }
};

// A place where driving starts or ends: a node, and the edge that was driven just
// before driving starts there, or that is driven next when driving ends there. -1 means
// no such edge: the place is the start or the end of a route, and no turn is taken.
struct TurnPlace {
    int32_t node;
    int32_t arrived_along;
    int32_t leaves_along;
};

class TurnGraph {
  public:
    // `streets` has all links, closed ones too: what is a dead end depends on them.
    TurnGraph(const StreetGraph &streets, const LinkArrays &links,
              const TurnArrays &turns, std::span<const TurnPlace> places);

    // Driving costs between all places, row by row, over threads; kUnreachable where no
    // way obeys the rules. Throws TooSlow where that will last longer than allowed.
    std::vector<int32_t> distance_matrix(int threads,
                                         Allowance allowance = Allowance()) const;

    // The same between some of the places, one thread; null where there is no
    // elimination of `graph` to sweep over. `graph()` has the states. Beyond `farthest`
    // they may be found longer, or no way at all.
    std::vector<int32_t> distances_among(std::span<const int32_t> places,
                                         const Elimination *elimination,
                                         int32_t farthest) const;
    const StreetGraph &graph() const { return graph_; }
    int32_t dearest_turn() const;

    // Where driving from a place starts in `graph()`, and where driving to one may end.
    int32_t start_of(int32_t place) const { return start_[static_cast<size_t>(place)]; }
    std::vector<WayEnd> ends_of(int32_t place) const;

    // Cost of driving along an edge.
    int32_t edge_cost(int32_t edge) const { return cost_[static_cast<size_t>(edge)]; }

  private:
    // A state from which a place is reached, and the cost of the turn still to take.
    struct Entry {
        int32_t state;
        int32_t turn;
        int32_t place;
    };

    struct RowOrder;
    RowOrder row_order() const;
    void measure_row(std::span<const int32_t> distances, int32_t *out) const;
    void measure_rows(const Elimination &elimination, std::span<const int32_t> lanes,
                      std::span<const int32_t> sources,
                      std::span<int32_t *const> rows) const;
    void derive_row(int32_t state, std::span<const int32_t *const> rows,
                    int32_t *out) const;

    std::span<const Entry> entries(size_t place) const {
        return {entries_.data() + entries_at_[place],
                entries_at_[place + 1] - entries_at_[place]};
    }

    // States are edges just driven, and after them the nodes from which driving starts
    // without a turn. An edge of the graph is a turn and the drive along the next edge.
    StreetGraph graph_;
    std::vector<int32_t> cost_;           // by edge
    std::vector<int32_t> start_;          // by place: the state where driving starts
    std::vector<Entry> entries_;          // by place: the states where driving ends
    std::vector<size_t> entries_at_;      // where a place's entries begin
    std::vector<Entry> entries_of_state_; // the same by state
    std::vector<size_t> of_state_at_;     // where a state's entries begin
};

} // namespace arcfleet
