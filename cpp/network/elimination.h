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

    // Gives up where that takes more work than the searches from so many sources would:
    // streets lie in a plane, but not every graph does.
    Elimination(const StreetGraph &graph, size_t sources);
    bool is_complete() const { return is_complete_; }

    // Fills in the distances from up to kLanes sources, lane by lane: of node i they
    // are those from row_of(i) on. Lanes without a source hold kFar.
    void sweep(std::span<const int32_t> sources, std::vector<int32_t> &lanes) const;
    size_t row_of(int32_t node) const {
        return static_cast<size_t>(rank_[static_cast<size_t>(node)]) * kLanes;
    }

    // Sweeps to a few nodes only.
    class ToTargets {
      public:
        // Refers to the elimination.
        ToTargets(const Elimination &elimination, std::span<const int32_t> targets);
        // As `sweep`: the distances to a target are those from row(target) on, until
        // the next call.
        void sweep(std::span<const int32_t> sources);
        const int32_t *row(int32_t target) const {
            return lanes_.data() + elimination_.row_of(target);
        }

      private:
        void sweep_down();

        const Elimination &elimination_;
        std::vector<int32_t> needed_; // ranks of targets and of all on the way, rising
        std::vector<int32_t> lanes_;  // kFar but for needed and reached ones
        std::vector<uint8_t> is_reached_; // by rank
        std::vector<int32_t> reached_;
    };

  private:
    // Nodes are named by rank, the node eliminated last being the first.
    struct Step {
        int32_t rank;
        int32_t cost;
    };

    void sweep_down(int32_t *lanes) const;

    bool is_complete_ = false;
    std::vector<int32_t> rank_;   // by node
    std::vector<Step> up_;        // by rank: edges to nodes eliminated later
    std::vector<uint32_t> up_at_; // where a node's edges begin
    std::vector<Step> down_;      // by rank: edges from nodes eliminated later
    std::vector<uint32_t> down_at_;
};

} // namespace arcfleet
