// The street network as a directed graph in compressed rows: what Dijkstra runs on.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace arcfleet {

// One way of driving along a link. `edge` names it from outside: twice the link's
// number, plus one for the direction from head to tail.
struct DirectedEdge {
    int32_t target;
    int32_t cost;
    int32_t edge;
};

// The links as flat arrays, in the order of the instance. `reverse_cost` is negative on
// one-way links; nodes are counted from 0. Links that are `closed` are not driven
// along; empty means that none is.
struct LinkArrays {
    std::span<const int32_t> tail;
    std::span<const int32_t> head;
    std::span<const int32_t> cost;
    std::span<const int32_t> reverse_cost;
    std::span<const uint8_t> closed = {};

    bool is_open(size_t link) const { return closed.empty() || !closed[link]; }
};

class StreetGraph {
  public:
    StreetGraph() : offsets_{0} {}
    StreetGraph(int32_t num_nodes, const LinkArrays &links);
    // From its rows: the edges leaving node i are those from offsets[i] to offsets[i +
    // 1].
    StreetGraph(std::vector<int32_t> offsets, std::vector<DirectedEdge> edges)
        : offsets_(std::move(offsets)), edges_(std::move(edges)) {}

    int32_t num_nodes() const { return static_cast<int32_t>(offsets_.size()) - 1; }

    std::span<const DirectedEdge> leaving(int32_t node) const {
        const auto first = static_cast<size_t>(offsets_[static_cast<size_t>(node)]);
        const auto last = static_cast<size_t>(offsets_[static_cast<size_t>(node) + 1]);
        return {edges_.data() + first, last - first};
    }

  private:
    std::vector<int32_t> offsets_;
    std::vector<DirectedEdge> edges_;
};

} // namespace arcfleet
