// Shortest paths from one node, over and over on the same graph.
#pragma once

#include "base/allowance.h"
#include "network/elimination.h"
#include "network/street_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

// No way there.
constexpr int32_t kUnreachable = INT32_MAX;
// Longest distance allowed: four of them add up within 32 bits, which is what the
// deltas of local search need.
constexpr int32_t kMaxDistance = (1 << 29) - 1;

// A node where a way may end, and what ending there costs in addition.
struct WayEnd {
    int32_t node;
    int32_t addition;
};

class Dijkstra {
  public:
    explicit Dijkstra(const StreetGraph &graph);

    // Distances from `source` to all nodes; valid until the next call. Throws
    // std::overflow_error if one exceeds kMaxDistance.
    std::span<const int32_t> distances(int32_t source);

    // The edges of a shortest path, in driving order; empty if source is target. Throws
    // std::invalid_argument if there is no way. Among equally short paths the same one
    // is always taken.
    std::vector<int32_t> path(int32_t source, int32_t target);

    // What the cheapest way to one of some ends costs; kUnreachable if there is none.
    // Without ends all nodes are searched; then `found` has what it costs to get there,
    // and `cost_of` what it costs to some ends.
    int32_t search(int32_t source, std::span<const WayEnd> ends);
    std::span<const int32_t> found() const { return distance_; }
    int32_t cost_of(std::span<const WayEnd> ends) const;
    // The same as a search where it is known what the rest of the way costs from each
    // node.
    void follow(int32_t source, std::span<const int32_t> rest);
    // The way of the last search to a node that it reached, or to the first end of
    // those at such a cost. Throws std::invalid_argument if there is no way.
    std::vector<int32_t> path_to(int32_t target) const;
    std::vector<int32_t> path_to(std::span<const WayEnd> ends, int32_t cost) const;

  private:
    template <bool with_parents, typename Ends, typename Leads>
    void run(int32_t source, const Ends &ends_at, const Leads &leads);

    const StreetGraph &graph_;
    std::vector<int32_t> distance_;
    std::vector<int32_t> reached_;     // nodes with a distance
    std::vector<int32_t> parent_edge_; // of these
    std::vector<int32_t> parent_node_;
    std::vector<uint64_t> heap_; // distance in the high half, node in the low half
};

// Distances from each source to each target, row by row, over threads. Throws TooSlow
// where that will last longer than allowed.
std::vector<int32_t> distance_matrix(const StreetGraph &graph,
                                     std::span<const int32_t> sources,
                                     std::span<const int32_t> targets, int threads,
                                     Allowance allowance = Allowance());

// The same between some nodes, on one thread; without an elimination of the graph by
// searches from each. Beyond `farthest` they may be found longer, or no way at all.
std::vector<int32_t> distances_among(const StreetGraph &graph,
                                     std::span<const int32_t> nodes,
                                     const Elimination *elimination, int32_t farthest);

} // namespace arcfleet
