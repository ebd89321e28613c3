// Maximum flow in an undirected graph with integer capacities, by Dinic's algorithm:
// levels by breadth-first search, then blocking flows by depth-first search along them.
#pragma once

#include "base/index.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace arcfleet {

class MaxFlow {
  public:
    static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 4;

    explicit MaxFlow(int32_t num_nodes);

    // Adds an edge with its own capacity in each direction; returns its number.
    int32_t add_edge(int32_t tail, int32_t head, int64_t capacity, int64_t reverse);
    // Lays the edges out by node; to be called once, after the last edge.
    void finish();
    // Changes the capacities of an edge for the flows that follow.
    void set_capacity(int32_t edge, int64_t capacity, int64_t reverse);
    // The value of a maximum flow, which is that of a minimum cut.
    int64_t run(int32_t source, int32_t sink);
    // After run: whether a node is on the source's side of the smallest minimum cut.
    bool on_source_side(int32_t node) const { return level_[idx(node)] >= 0; }
    // After run: the nodes of the sink's side of the smallest cut around the sink.
    void find_sink_side(std::vector<uint8_t> &side) const;

  private:
    bool find_levels();
    int64_t push();

    int32_t num_nodes_, source_ = 0, sink_ = 0;
    std::vector<int32_t> tails_;    // of each half edge
    std::vector<int32_t> heads_;    // half edge e and e ^ 1 are opposite
    std::vector<int64_t> capacity_; // of each half edge
    std::vector<int64_t> left_;     // residual capacity in the present flow
    std::vector<int32_t> first_;    // of each node: its half edges in order_
    std::vector<int32_t> order_;
    std::vector<int32_t> level_, next_, queue_, path_;
};

} // namespace arcfleet
