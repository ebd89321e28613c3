// Shortest distances from many nodes to all others, several at a time.
//
// Nodes are eliminated one by one, those with few neighbours first: where a way leads
// over the node, an edge between its neighbours takes its place. Distances from a node
// then follow in two sweeps over the edges, up the order of elimination and down again
// (the sweep of PHAST, Delling et al. 2013, over the order of sparse Gaussian
// elimination), for as many nodes at once as fit into the lanes of a vector.
#pragma once

#include "base/index.h"
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

    // Sweeps between a few nodes only.
    class Among {
      public:
        // Distances up to `farthest` are right; a longer one may be found even longer.
        Among(const Elimination &elimination, std::span<const int32_t> sources,
              std::span<const int32_t> targets, int32_t farthest = kFar);
        // As `sweep`, from some of the sources: the distances to a target are those
        // from row(target) on, until the next call.
        void sweep(std::span<const int32_t> sources);
        const int32_t *row(int32_t target) const {
            return lanes_.data() + idx(row_[idx(elimination_.rank_[idx(target)])]);
        }

      private:
        // Edges of a node, which lead up from it or down to it.
        struct Node {
            int32_t row; // where its lanes begin
            uint32_t first;
            uint32_t last;
        };
        struct Edge {
            int32_t row;
            int32_t cost;
        };

        void sweep_down();

        const Elimination &elimination_;
        std::vector<int32_t> row_; // by rank; -1 where no way leads
        std::vector<Node> up_;     // in the order of elimination
        std::vector<Edge> up_edges_;
        std::vector<Node> down_; // in its reverse
        std::vector<Edge> down_edges_;
        std::vector<int32_t> lanes_;
        std::vector<uint8_t> is_reached_; // by row
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
