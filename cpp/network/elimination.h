// Shortest distances from many nodes to all others, several at a time.
//
// Nodes are eliminated one by one, those with few neighbours first: where a way leads
// over the node, an edge between its neighbours takes its place. Distances from a node
// then follow in two sweeps over the edges, up the order of elimination and down again
// (the sweep of PHAST, Delling et al. 2013, over the order of sparse Gaussian
// elimination), for as many nodes at once as fit into the lanes of a vector.
#pragma once

#include "network/street_graph.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arcfleet {

class Elimination {
  public:
    // Sources of one sweep.
    static constexpr size_t kLanes = 16;
    // In `sweep`: no way there. Two of them, or a distance more, add up within 32 bits.
    static constexpr int32_t kFar = (1 << 30) - 1;

    // Whether it pays for so many sources, and no path can be longer than kMaxDistance,
    // with so much in addition.
    static bool suits(const StreetGraph &graph, size_t sources, int64_t addition);

    explicit Elimination(const StreetGraph &graph);

    // Fills in the distances from up to kLanes sources, lane by lane: of node i they
    // are those from row_of(i) on. Lanes without a source hold kFar.
    void sweep(std::span<const int32_t> sources, std::vector<int32_t> &lanes) const;
    size_t row_of(int32_t node) const {
        return static_cast<size_t>(rank_[static_cast<size_t>(node)]) * kLanes;
    }

  private:
    // Nodes are named by rank, the node eliminated last being the first.
    struct Step {
        int32_t rank;
        int32_t cost;
    };

    void sweep_down(int32_t *lanes) const;

    std::vector<int32_t> rank_;   // by node
    std::vector<Step> up_;        // by rank: edges to nodes eliminated later
    std::vector<uint32_t> up_at_; // where a node's edges begin
    std::vector<Step> down_;      // by rank: edges from nodes eliminated later
    std::vector<uint32_t> down_at_;
};

} // namespace arcfleet
